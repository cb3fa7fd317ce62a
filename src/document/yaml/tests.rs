//! Tables of shapes: what goes in, what is edited, which bytes come out.

use super::*;
use crate::document::Key;

fn path(text: &str) -> Path {
    text.parse().unwrap()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn set(at: &str, value: &str) -> Edit {
    Edit::Set {
        path: path(at),
        value: json(value),
    }
}

fn remove(at: &str) -> Edit {
    Edit::Remove { path: path(at) }
}

fn moved(from: &str, to: &str) -> Edit {
    Edit::Move {
        from: path(from),
        to: path(to),
    }
}

fn append(at: &str, value: &str) -> Edit {
    Edit::Append {
        path: path(at),
        value: json(value),
    }
}

/// The text after an edit; the edit made again must change nothing if it can be made again.
fn edited(before: &str, edit: &Edit) -> String {
    let mut yaml = Yaml::parse(before.as_bytes()).unwrap_or_else(|e| panic!("{e}: {before:?}"));
    yaml.edit(edit)
        .unwrap_or_else(|e| panic!("{e}: {edit:?} of {before:?}"));
    let after = String::from_utf8(yaml.bytes().to_vec()).unwrap();
    if let Edit::Set { .. } = edit {
        yaml.edit(edit).unwrap();
        assert_eq!(yaml.bytes(), after.as_bytes(), "a second time");
    }
    after
}

fn check(table: &[(&str, Edit, &str)]) {
    for (before, edit, after) in table {
        assert_eq!(edited(before, edit), *after, "{edit:?} of {before:?}");
        // The same file with other line ends gives the same result with other line ends.
        let crlf = |text: &str| text.replace('\n', "\r\n");
        assert_eq!(
            edited(&crlf(before), edit),
            crlf(after),
            "CRLF: {edit:?} of {before:?}"
        );
        let bom = |text: &str| format!("\u{FEFF}{text}");
        assert_eq!(
            edited(&bom(before), edit),
            bom(after),
            "BOM: {edit:?} of {before:?}"
        );
    }
}

fn refused(before: &str, edit: &Edit) -> Refusal {
    let mut yaml = Yaml::parse(before.as_bytes()).unwrap_or_else(|e| panic!("{e}: {before:?}"));
    let refusal = yaml.edit(edit).expect_err(before);
    assert_eq!(yaml.bytes(), before.as_bytes());
    refusal
}

#[test]
fn a_scalar_is_replaced_where_it_stands() {
    check(&[
        (
            "a:\n  ttl_hours: 24   # hourly?\n",
            set("a.ttl_hours", "1"),
            "a:\n  ttl_hours: 1   # hourly?\n",
        ),
        ("a: 'x'\nb: 2\n", set("a", "\"y's\""), "a: 'y''s'\nb: 2\n"),
        (
            "a: \"x\" # c\n",
            set("a", "\"\\u2028\""),
            "a: \"\\u2028\" # c\n",
        ),
        ("a: x\n", set("a", "\"on\""), "a: \"on\"\n"),
        ("a: true\n", set("a", "false"), "a: false\n"),
        ("a: off\nb: no\n", set("a", "true"), "a: true\nb: no\n"),
        ("a:\nb: 1\n", set("a", "5"), "a: 5\nb: 1\n"),
        ("a:   # c\nb: 1\n", set("a", "5"), "a: 5   # c\nb: 1\n"),
        ("a: ~  # c\n", set("a", "5"), "a: 5  # c\n"),
        (
            "a: one\n  two\n  three # c\nb: 1\n",
            set("a", "1"),
            "a: 1 # c\nb: 1\n",
        ),
        (
            "a: \"one\n\n  two\" # c\nb: 1\n",
            set("a", "\"z\""),
            "a: \"z\" # c\nb: 1\n",
        ),
        (
            "a: |  # c\n  one\n  two\n\nb: 1\n",
            set("a", "1"),
            "a: 1  # c\n\nb: 1\n",
        ),
        ("a: >-\n  one\n\nb: 1\n", set("a", "1"), "a: 1\n\nb: 1\n"),
        (
            "a: |\n  one\n  two\nb: 1\n",
            set("a", "\"x\\nw: z\\n\""),
            "a: |\n  x\n  w: z\nb: 1\n",
        ),
        (
            "a: |\n  one\n  two\nb: 1\n",
            set("a", "\"x\\nw\""),
            "a: |-\n  x\n  w\nb: 1\n",
        ),
    ]);
    check(&[
        ("a:\n- 1 # c\n- 2\n", set("a[0]", "3"), "a:\n- 3 # c\n- 2\n"),
        ("a:\n-\n- 2\n", set("a[0]", "3"), "a:\n- 3\n- 2\n"),
        (
            "a: [1, 'x' , {b: 2}]\n",
            set("a[1]", "\"w\""),
            "a: [1, 'w' , {b: 2}]\n",
        ),
        (
            "a: [1, x, {b: 2}]\n",
            set("a[2].b", "\"p,q\""),
            "a: [1, x, {b: \"p,q\"}]\n",
        ),
        ("a: {b: , c: 1}\n", set("a.b", "3"), "a: {b: 3 , c: 1}\n"),
        ("a: {b, c: 1}\n", set("a.b", "3"), "a: {b: 3, c: 1}\n"),
        ("? a\n: 1\n", set("a", "2"), "? a\n: 2\n"),
        ("a: !!str 1\n", set("a", "2"), "a: 2\n"),
        ("a: &x 1\n", set("a", "2"), "a: &x 2\n"),
        (
            "😀: '🎉'\nb: 1\n",
            set("b", "\"🎉 >|\""),
            "😀: '🎉'\nb: 🎉 >|\n",
        ),
    ]);
}

#[test]
fn a_key_is_added_behind_the_last_one_of_its_mapping() {
    check(&[
        (
            "a:\n  b: 1 # c\n\n# next\nd: 2\n",
            set("a.x", "1"),
            "a:\n  b: 1 # c\n  x: 1\n\n# next\nd: 2\n",
        ),
        (
            "a:\n    b:\n        c: 1\n",
            set("a.x.w", "1"),
            "a:\n    b:\n        c: 1\n    x:\n        w: 1\n",
        ),
        (
            "a: 1\n",
            set("b.c.d", "[1,{\"e\":2,\"f\":[]},[3,4]]"),
            "a: 1\nb:\n  c:\n    d:\n      - 1\n      - e: 2\n        f: []\n      - - 3\n        - 4\n",
        ),
        (
            "a:\n- 1\n",
            set("b", "[1,{\"e\":2}]"),
            "a:\n- 1\nb:\n- 1\n- e: 2\n",
        ),
        ("a:\n", set("a.b", "1"), "a:\n  b: 1\n"),
        (
            "a: # c\n  # own\nb: 1\n",
            set("a.x", "1"),
            "a: # c\n  x: 1\n  # own\nb: 1\n",
        ),
        (
            "a: null # c\nb: 1\n",
            set("a.x", "1"),
            "a: # c\n  x: 1\nb: 1\n",
        ),
        ("a: {}\n", set("a.x", "1"), "a:\n  x: 1\n"),
        (
            "a: {} # c\nb: 1\n",
            set("a.x.w", "1"),
            "a: # c\n  x:\n    w: 1\nb: 1\n",
        ),
        ("a: {b: 1}\n", set("a.x.w", "1"), "a: {b: 1, x: {w: 1}}\n"),
        ("a: {b: 1,}\n", set("a.x", "1"), "a: {b: 1, x: 1,}\n"),
        (
            "a: {\"b\": 1}\n",
            set("a.x", "\"s\""),
            "a: {\"b\": 1, \"x\": \"s\"}\n",
        ),
        (
            "a: {\n  b: 1, # one\n  c: 2 # two\n}\n",
            set("a.x", "1"),
            "a: {\n  b: 1, # one\n  c: 2, # two\n  x: 1\n}\n",
        ),
        (
            "a: {\n  b: 1,\n  c: 2, # two\n}\n",
            set("a.x", "1"),
            "a: {\n  b: 1,\n  c: 2, # two\n  x: 1,\n}\n",
        ),
        ("{a: 1}\n", set("b", "2"), "{a: 1, b: 2}\n"),
        ("{}\n", set("b.c", "2"), "b:\n  c: 2\n"),
        (
            "a:\n- b: 1\n  c: 2\n",
            set("a[0].x", "1"),
            "a:\n- b: 1\n  c: 2\n  x: 1\n",
        ),
        (
            "a:\n-\n",
            set("a[0].x", "{\"w\":1,\"z\":2}"),
            "a:\n- x:\n    w: 1\n    z: 2\n",
        ),
        (
            "a: |\n  t\nb: 1\n",
            set("c", "1"),
            "a: |\n  t\nb: 1\nc: 1\n",
        ),
        (
            "b: 1\na: |\n  t\n\n# end\n",
            set("c", "1"),
            "b: 1\na: |\n  t\nc: 1\n\n# end\n",
        ),
        (
            "b: 1\na: |+\n  t\n\n",
            set("c", "1"),
            "b: 1\na: |+\n  t\n\nc: 1\n",
        ),
        (
            "# head\n---\na: 1\n...\n",
            set("c", "1"),
            "# head\n---\na: 1\nc: 1\n...\n",
        ),
        (
            "a: 1\n",
            set("\"x: w\".\"on\"", "1"),
            "a: 1\n\"x: w\":\n  \"on\": 1\n",
        ),
    ]);
}

#[test]
fn a_document_that_holds_nothing_gets_its_first_key() {
    check(&[
        (
            "# only\n# comments\n",
            set("a.b", "1"),
            "# only\n# comments\na:\n  b: 1\n",
        ),
        ("---\n", set("a", "1"), "---\na: 1\n"),
        ("--- # c\n\n", set("a", "1"), "--- # c\n\na: 1\n"),
        ("\n", set("a", "[1]"), "\na:\n  - 1\n"),
    ]);
    assert_eq!(edited("", &set("a", "1")), "a: 1\n");
    assert_eq!(edited("\u{FEFF}", &append("a", "1")), "\u{FEFF}a:\n  - 1\n");
    assert_eq!(edited("# c", &set("a", "1")), "# c\na: 1");
}

#[test]
fn a_last_line_without_an_end_gets_one_only_where_something_follows() {
    assert_eq!(edited("a: 1", &set("b", "2")), "a: 1\nb: 2");
    assert_eq!(
        edited("x: 1\r\na: 1", &set("b", "2")),
        "x: 1\r\na: 1\r\nb: 2"
    );
    assert_eq!(edited("a:", &set("a.b", "2")), "a:\n  b: 2");
    assert_eq!(edited("a: # c", &append("a", "2")), "a: # c\n  - 2");
    assert_eq!(edited("a: 1 # c", &set("a", "2")), "a: 2 # c");
    assert_eq!(edited("a: 1\nb: 2", &remove("b")), "a: 1\n");
    assert_eq!(edited("a: 1\nb:\n  c: 1", &remove("b.c")), "a: 1\nb: {}\n");
    assert_eq!(edited("a: |-\n  x", &set("b", "2")), "a: |-\n  x\nb: 2");
    for open in ["a: |\n  x", "a: >\n  x\n  w", "a: |+\n  x"] {
        refused(open, &set("b", "2"));
    }
}

#[test]
fn what_is_removed_takes_its_line_and_no_comment_of_its_own_line() {
    check(&[
        (
            "a: 1\n# own\nb: 2 # c\n# two\nc: 3\n",
            remove("b"),
            "a: 1\n# own\n# two\nc: 3\n",
        ),
        (
            "a:\n  # note\n  b: 1 # c\n  # end\nx: 1\n",
            remove("a.b"),
            "a: {}\n  # note\n  # end\nx: 1\n",
        ),
        ("a: # k\n  b: 1\nx: 1\n", remove("a.b"), "a: {} # k\nx: 1\n"),
        ("a:\n- 1\n- 2\n", remove("a[0]"), "a:\n- 2\n"),
        ("a:\n- 1\n", remove("a[0]"), "a: []\n"),
        (
            "a:\n  - b: 1\n    c: 2\n",
            remove("a[0].b"),
            "a:\n  - c: 2\n",
        ),
        (
            "a:\n  - b: 1 # x\n    # own\n    c: 2\n",
            remove("a[0].b"),
            "a:\n  -\n    # own\n    c: 2\n",
        ),
        ("a:\n  - b: 1\n", remove("a[0].b"), "a:\n  - {}\n"),
        ("a:\n  - - 1\n    - 2\n", remove("a[0][0]"), "a:\n  - - 2\n"),
        ("a:\n  - - 1\n", remove("a[0][0]"), "a:\n  - []\n"),
        ("a:\n  -\n    b: 1\n", remove("a[0].b"), "a:\n  - {}\n"),
        ("a: 1\n", remove("a"), "{}\n"),
        ("# h\na:\n  b: 1\n# t\n", remove("a"), "# h\n{}\n# t\n"),
        ("a: [1, 2, 3]\n", remove("a[0]"), "a: [2, 3]\n"),
        ("a: [1, 2, 3]\n", remove("a[2]"), "a: [1, 2]\n"),
        ("a: [1, 2,]\n", remove("a[1]"), "a: [1,]\n"),
        ("a: [1]\n", remove("a[0]"), "a: []\n"),
        ("a: { b: 1 }\n", remove("a.b"), "a: {}\n"),
        ("a: {b: 1, c: 2}\n", remove("a.b"), "a: {c: 2}\n"),
        (
            "a: {\n  b: 1, # x\n  # own\n  c: 2\n}\n",
            remove("a.b"),
            "a: {\n  # own\n  c: 2\n}\n",
        ),
        (
            "a: {\n  b: 1,\n  # own\n  c: 2 # x\n}\n",
            remove("a.c"),
            "a: {\n  b: 1,\n  # own\n}\n",
        ),
        ("a: |\n  x\n\nb: 1\n", remove("a"), "\nb: 1\n"),
        ("a: |+\n  x\n\nb: 1\n", remove("a"), "b: 1\n"),
        (
            "a: 1\nb:\n  c:\n    d: 1\n\n# e\n",
            remove("b.c"),
            "a: 1\nb: {}\n\n# e\n",
        ),
        (
            "a: one\n  two\nb: >\n  x\n  # no comment\nc: 1\n",
            remove("b"),
            "a: one\n  two\nc: 1\n",
        ),
        ("a: &x\n  b: 1\n", remove("a.b"), "a: &x {}\n"),
        ("? a\n: 1\nb: 2\n", remove("a"), "b: 2\n"),
    ]);
}

#[test]
fn an_item_is_added_as_the_list_is_written() {
    check(&[
        (
            "a:\n- 1\n# c\nb: 1\n",
            append("a", "2"),
            "a:\n- 1\n- 2\n# c\nb: 1\n",
        ),
        (
            "a:\n    - 1 # c\n",
            append("a", "{\"x\":1,\"w\":[2]}"),
            "a:\n    - 1 # c\n    - x: 1\n      w:\n          - 2\n",
        ),
        ("a: [1]\n", append("a", "\"b c\""), "a: [1, b c]\n"),
        ("a: ['x']\n", append("a", "\"w\""), "a: ['x', 'w']\n"),
        ("a: []\n", append("a", "\"w\""), "a: [w]\n"),
        (
            "a: [] # c\n",
            append("a", "{\"x\":1}"),
            "a: # c\n  - x: 1\n",
        ),
        ("a:\nb: 1\n", append("a", "1"), "a:\n  - 1\nb: 1\n"),
        ("b: 1\n", append("a.c", "1"), "b: 1\na:\n  c:\n    - 1\n"),
        (
            "a: [\n  x,\n  w\n]\n",
            append("a", "\"z\""),
            "a: [\n  x,\n  w,\n  z\n]\n",
        ),
        ("a:\n- - 1\n", append("a[0]", "2"), "a:\n- - 1\n  - 2\n"),
    ]);
}

#[test]
fn what_moves_takes_its_comments_along() {
    check(&[
        ("a: 1 # c\nb: 2\n", moved("a", "x"), "x: 1 # c\nb: 2\n"),
        ("'a': {b: 1}\n", moved("a.b", "a.c"), "'a': {c: 1}\n"),
        (
            "a:\n  b: 1 # c\n  d: 2\n",
            moved("a.b", "x.w"),
            "a:\n  d: 2\nx:\n  w: 1 # c\n",
        ),
        (
            "o:\n    # above\n    t: # side\n        # in\n        x: 1 # one\n\n        w: |\n            text\n              more\n    k: 1\nd:\n    p: 1\n",
            moved("o.t", "d.q.t"),
            "o:\n    # above\n    k: 1\nd:\n    p: 1\n    q:\n        t: # side\n            # in\n            x: 1 # one\n\n            w: |\n                text\n                  more\n",
        ),
        (
            "a:\n  b:\n    c: [1, # x\n      2]\n",
            moved("a.b", "b"),
            "a: {}\nb:\n  c: [1, # x\n    2]\n",
        ),
        (
            "l:\n- name: x # m\n  url: w\n- 2\nm: {}\n",
            moved("l[0]", "m.x"),
            "l:\n- 2\nm:\n  x:\n    name: x # m\n    url: w\n",
        ),
        (
            "l:\n- 5 # m\n- 2\nm:\n",
            moved("l[0]", "m.x"),
            "l:\n- 2\nm:\n  x: 5 # m\n",
        ),
        (
            "a: {b: {c: 1}, d: 2}\n",
            moved("a.b", "x.w"),
            "a: {d: 2}\nx:\n  w:\n    c: 1\n",
        ),
        (
            "a:\n  b:\n  - 1\n  - 2\n",
            moved("a.b", "c"),
            "a: {}\nc:\n- 1\n- 2\n",
        ),
        (
            "s:\n  model: m\n  provider: p\n",
            moved("s.model", "s.p.model"),
            "s:\n  provider: p\n  p:\n    model: m\n",
        ),
        (
            "s:\n  model: m\n",
            moved("s.model", "s.p.model"),
            "s:\n  p:\n    model: m\n",
        ),
    ]);
    refused("a: 1\nb: 2\n", &moved("a", "b"));
    refused("a:\n  b: 1\n", &moved("a", "a.c"));
    refused("a: &x 1\nb: *x\n", &moved("a", "c"));
}

#[test]
fn a_collection_is_replaced_by_another() {
    check(&[
        (
            "a:\n  - name: x\n  - name: w # c\nb: 1\n",
            set("a", "{\"x\":{\"u\":1}}"),
            "a:\n  x:\n    u: 1\nb: 1\n",
        ),
        ("a:\n  b: 1\n  c: 2\n", set("a", "5"), "a: 5\n"),
        ("a: # k\n  b: 1\n", set("a", "[]"), "a: [] # k\n"),
        (
            "a: 5 # c\nb: 1\n",
            set("a", "{\"x\":1}"),
            "a: # c\n  x: 1\nb: 1\n",
        ),
        (
            "a:\n- b: 1\n  c: 2 # x\n- 2\n",
            set("a[0]", "5"),
            "a:\n- 5\n- 2\n",
        ),
        (
            "a:\n- 5 # c\n- 2\n",
            set("a[0]", "{\"x\":1,\"w\":2}"),
            "a:\n- x: 1 # c\n  w: 2\n- 2\n",
        ),
        ("a: [1, 2]\n", set("a", "[3]"), "a: [3]\n"),
        (
            "a: |\n  x\n  w\nb: 1\n",
            set("a", "[3]"),
            "a:\n  - 3\nb: 1\n",
        ),
        (
            "a:\n- |\n  x\n- 2\n",
            set("a[0]", "{\"x\":1,\"w\":2}"),
            "a:\n- x: 1\n  w: 2\n- 2\n",
        ),
        (
            "a: one\n  two # c\nb: 1\n",
            set("a", "[3]"),
            "a: # c\n  - 3\nb: 1\n",
        ),
    ]);
}

#[test]
fn aliases_and_anchored_values_are_left_alone() {
    let text = "base: &b {ttl: 24, m: {x: 1}}\ncat:\n  <<: *b\nali: *b\nfree: &f 1\n";
    check(&[
        (
            text,
            set("cat.ttl", "1"),
            "base: &b {ttl: 24, m: {x: 1}}\ncat:\n  <<: *b\n  ttl: 1\nali: *b\nfree: &f 1\n",
        ),
        (
            text,
            set("cat.m.w", "2"),
            "base: &b {ttl: 24, m: {x: 1}}\ncat:\n  <<: *b\n  m:\n    x: 1\n    w: 2\nali: *b\nfree: &f 1\n",
        ),
        (text, set("ali.ttl", "24"), text),
        (
            text,
            remove("free"),
            "base: &b {ttl: 24, m: {x: 1}}\ncat:\n  <<: *b\nali: *b\n",
        ),
    ]);
    for edit in [
        set("base.ttl", "1"),
        set("base.new", "1"),
        set("ali.ttl", "1"),
        set("ali", "1"),
        set("base", "1"),
        remove("base"),
        remove("cat.ttl"),
        remove("ali"),
        remove("base.ttl"),
        moved("base", "x.w"),
        moved("cat.ttl", "z"),
        append("ali", "1"),
    ] {
        refused(text, &edit);
    }
    assert_eq!(refused(text, &set("ali.ttl", "1")).line, 4);
}

#[test]
fn what_is_no_place_is_refused() {
    for (text, edit) in [
        ("a: x\n", set("a.b", "1")),
        ("a: [1]\n", set("a.b", "1")),
        ("a: [1]\n", set("a[1]", "1")),
        ("a: 1\n", remove("b")),
        ("a: 1\n", append("a", "1")),
        ("a: 1\n", set("", "{}")),
        ("a: 1\n", set("b[0]", "1")),
        ("a: 1\n", remove("")),
        ("a: [b: 1]\n", set("a[0].c", "1")),
        (
            "a: 1\n",
            Edit::Text {
                text: String::new(),
            },
        ),
        (
            "a: 1\n",
            Edit::Set {
                path: Path(vec![Key::Other("5".into())]),
                value: Value::Null,
            },
        ),
    ] {
        refused(text, &edit);
    }
}

#[test]
fn what_loaders_read_differently_is_invalid() {
    for (text, line) in [
        ("a: 1\na: 2\n", 2),
        ("a: 1\nb: 1\n'a': 2\n", 3),
        ("1: a\ntrue: b\n", 2),
        ("y: a\nyes: b\n", 2),
        ("- 1\n", 1),
        ("x\n", 1),
        ("~\n", 1),
        ("a: 1\n---\nb: 1\n", 2),
        ("a: 1\t\n", 1),
        ("a:\t1\n", 1),
        ("a: [1,\t2]\n", 1),
        ("b: 1\na: =\n", 2),
        ("a: 2024-13-45\n", 1),
        ("a: !x 1\n", 1),
        ("a: !!set {x}\n", 1),
        ("%YAML 1.1\n---\na: 1\n", 1),
        ("a: \u{7}\n", 1),
        ("x: 1\na: b\u{2028}c\n", 2),
        ("a: 1\rb: 2\n", 1),
        ("a: b\u{FEFF}\n", 1),
        ("a: [1\n", 1),
        ("? [a]\n: 1\n", 1),
        ("a: &x 1\nb: &x 2\n", 2),
        ("a: *x\n", 1),
        ("a: &x [*x]\n", 1),
        ("a: 0b_\n", 1),
        ("a: -_\n", 1),
        ("a: {<<: 1}\n", 1),
        ("a: <<\n", 1),
        ("a: {<<: {x: 1}, <<: {y: 1}}\n", 1),
        ("a: !!int x\n", 1),
        ("a: ._\n", 1),
    ] {
        match Yaml::parse(text.as_bytes()) {
            Err(invalid) => assert_eq!(invalid.line, line, "{text:?}: {invalid}"),
            Ok(yaml) => panic!("{text:?} is read as {:?}", yaml.value()),
        }
    }
    assert_eq!(Yaml::parse(b"a: 1\nb: \xff\n").unwrap_err().line, 2);
    let deep = format!("a: {}{}\n", "[".repeat(70), "]".repeat(70));
    assert!(
        Yaml::parse(deep.as_bytes())
            .unwrap_err()
            .reason
            .contains("64")
    );
    let twice = Yaml::parse(b"mcp: 1\nx: 2\nmcp: 3\n").unwrap_err();
    assert_eq!(
        twice.to_string(),
        "line 3: the key `mcp` is there twice, first in line 1"
    );
}

#[test]
fn a_bomb_of_aliases_is_invalid() {
    let mut text = String::from("a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n");
    for level in 1..9 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    assert!(
        Yaml::parse(text.as_bytes())
            .unwrap_err()
            .reason
            .contains("1,000,000")
    );
    let long = format!(
        "a: &a {}\nb: [{}]\n",
        "x".repeat(1 << 20),
        vec!["*a"; 100].join(", ")
    );
    assert!(Yaml::parse(long.as_bytes()).is_err());
    let many = format!("a: &a 1\nb: [{}]\n", vec!["*a"; 1_001].join(", "));
    assert!(
        Yaml::parse(many.as_bytes())
            .unwrap_err()
            .reason
            .contains("aliases")
    );
}

#[test]
fn three_hundred_comments_in_a_row_are_read() {
    let text = format!("a:\n{}  b: 1\n", "  # c\n".repeat(3_000));
    assert_eq!(
        Yaml::parse(text.as_bytes()).unwrap().value(),
        &json(r#"{"a":{"b":1}}"#)
    );
}

#[test]
fn scalars_are_typed_as_by_yaml_1_1() {
    let cases: &[(&str, Value)] = &[
        ("on", true.into()),
        ("No", false.into()),
        ("y", "y".into()),
        ("n", "n".into()),
        ("0123", 83.into()),
        ("09", "09".into()),
        ("1:30", 90.into()),
        ("-1:30", Value::Int(-90)),
        ("1_000", 1000.into()),
        ("0x_1F", 31.into()),
        ("0b11", 3.into()),
        ("0o10", "0o10".into()),
        ("1e3", "1e3".into()),
        ("1.5e3", "1.5e3".into()),
        ("1.5e+3", Value::Float(1500.0)),
        (".5", Value::Float(0.5)),
        ("+.5", "+.5".into()),
        ("1:30.5", Value::Float(90.5)),
        (".inf", Value::Float(f64::INFINITY)),
        ("-.INF", Value::Float(f64::NEG_INFINITY)),
        (".NaN", Value::Float(f64::NAN)),
        ("~", Value::Null),
        ("", Value::Null),
        ("NULL", Value::Null),
        ("nUll", "nUll".into()),
        ("2024-01-31", Value::Other("timestamp", "2024-01-31".into())),
        ("2024-1-1", "2024-1-1".into()),
        (
            "2001-12-14t21:59:43.10-05:00",
            Value::Other("timestamp", "2001-12-14t21:59:43.10-05:00".into()),
        ),
        ("9223372036854775807", i64::MAX.into()),
        ("-9223372036854775808", i64::MIN.into()),
        (
            "9223372036854775808",
            Value::Other("int", "9223372036854775808".into()),
        ),
        ("${VAR}", "${VAR}".into()),
        ("!!str 12", "12".into()),
        ("!!float 3", Value::Float(3.0)),
        ("!!int \"7\"", 7.into()),
        ("'12'", "12".into()),
        ("-", "-".into()),
        ("+", "+".into()),
        (".", ".".into()),
        ("0", 0.into()),
        ("00", 0.into()),
        ("-0", 0.into()),
        ("1.", Value::Float(1.0)),
        ("12e03", "12e03".into()),
    ];
    for (text, value) in cases {
        // A lone dash would be a list.
        let text = if *text == "-" { "!!str -x" } else { text };
        let value = if text == "!!str -x" {
            &Value::from("-x")
        } else {
            value
        };
        let yaml = Yaml::parse(format!("a: {text}\n").as_bytes())
            .unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(yaml.value().field("a"), Some(value), "{text}");
    }
}

#[test]
fn text_that_means_something_else_is_quoted() {
    let awkward = [
        "y",
        "n",
        "Y",
        "N",
        "yes",
        "off",
        "On",
        "null",
        "~",
        "",
        " ",
        "1:30",
        "1_000",
        "1e3",
        "0o10",
        "09",
        "0123",
        "2024-01-01",
        "=",
        "<<",
        "a: b",
        "a:",
        ":a",
        "#a",
        "a #b",
        " a",
        "a ",
        "a\tb",
        "\ta",
        "a\nb",
        "a\r\nb",
        "-",
        "- a",
        "-a",
        "?",
        "? a",
        "[",
        "]",
        "{a}",
        "a, b",
        "&a",
        "*a",
        "!a",
        "|",
        ">",
        "%a",
        "@a",
        "`a",
        "'",
        "\"",
        "\\",
        "a'b\"c",
        "\0",
        "\u{7f}",
        "\u{85}",
        "\u{a0}",
        "\u{2028}",
        "\u{2029}",
        "\u{feff}",
        "\u{fffe}",
        "😀",
        "é",
        "---",
        "...",
        "... a",
        "--- a",
        "${VAR}",
        "http://a?b=c#d",
        "C:\\x",
        ".inf",
        ".nan",
        "-.inf",
        "+1",
        "-1",
        "1.5",
        ".5",
        "+.5",
        "._",
        "-_",
        "a?b",
        "a]b",
        "null ",
        "a: |",
        "x >y",
        "a|b",
        "0x1F",
        "0b1",
        "1.2.3",
        "10.0.0.1",
        "::1",
        "a::b",
        "12:30:45.5",
        "190:20:30",
        "1__0",
        "e",
        "E1",
        "_",
        "__",
        "+",
        ".",
        "..",
        "<",
        "<a>",
    ];
    for text in awkward {
        for (before, at) in [
            ("a: x\n", "a"),
            ("a: 'x'\n", "a"),
            ("a: \"x\"\n", "a"),
            ("a: {b: x}\n", "a.b"),
            ("a: [x]\n", "a[0]"),
            ("b: 1\n", "a"),
            ("a: |\n  x\n", "a"),
            ("a:\n- x\n", "a[0]"),
        ] {
            let mut yaml = Yaml::parse(before.as_bytes()).unwrap();
            let value = Value::from(text);
            yaml.edit(&Edit::Set {
                path: path(at),
                value: value.clone(),
            })
            .unwrap_or_else(|e| panic!("{text:?}: {e}"));
            assert_eq!(yaml.value().get(&path(at)), Some(&value));
        }
        if !text.is_empty() {
            let mut yaml = Yaml::parse(b"a: {b: 1}\n").unwrap();
            for at in [Path::from([text]), Path::from(["a", text])] {
                yaml.edit(&Edit::Set {
                    path: at.clone(),
                    value: Value::Int(1),
                })
                .unwrap_or_else(|e| panic!("{text:?}: {e}"));
            }
        }
    }
}

#[test]
fn mixed_line_ends_stay_as_they_are() {
    let text = "a: 1\r\nb:\n  c: 1\r\n  d: 2\ne: 3\r\n";
    assert_eq!(edited(text, &set("b.c", "2")), text.replace("c: 1", "c: 2"));
    assert_eq!(
        edited(text, &set("b.x", "2")),
        "a: 1\r\nb:\n  c: 1\r\n  d: 2\n  x: 2\ne: 3\r\n"
    );
    assert_eq!(
        edited(text, &remove("b.d")),
        "a: 1\r\nb:\n  c: 1\r\ne: 3\r\n"
    );
}

#[test]
fn a_value_has_a_line() {
    let yaml = Yaml::parse(
        "\u{FEFF}# c\na:\n  b: 1\n  l:\n  - x\nd: &x {e: 1}\nf: *x\ng: {<<: *x}\n".as_bytes(),
    )
    .unwrap();
    for (at, line) in [
        ("a", Some(2)),
        ("a.b", Some(3)),
        ("a.l[0]", Some(5)),
        ("f.e", Some(6)),
        ("g.e", None),
        ("z", None),
    ] {
        assert_eq!(yaml.line_of(&path(at)), line, "{at}");
    }
}

#[test]
fn a_refusal_names_the_line_of_the_document() {
    let before = "a: 1\n# c\nb:\n  c: [x: 1]\nd: 2\n";
    assert_eq!(refused(before, &remove("b.c[0].x")).line, 4);
    let before = "a: 1\n\nb: |\n  x\nc: {d: 1}\n";
    assert_eq!(refused(before, &append("c.d", "1")).line, 5);
}

#[test]
fn all_bytes_are_proved_together() {
    let before = "# head\na: 1 # one\nb: 2\nc:\n  - 3\n# tail\n";
    let edited = || {
        let mut yaml = Yaml::parse(before.as_bytes()).unwrap();
        assert_eq!(yaml.entries.len(), 3);
        for edit in [set("a", "7"), append("c", "8"), remove("b"), set("d", "9")] {
            yaml.edit(&edit).unwrap();
        }
        yaml
    };
    let yaml = edited();
    yaml.prove().unwrap();
    assert_eq!(
        yaml.text,
        "# head\na: 7 # one\nc:\n  - 3\n  - 8\nd: 9\n# tail\n"
    );
    // What no edit meant, or a comment that nobody knows, is found.
    let mut other = edited();
    other.text = other.text.replace("- 8", "- 5");
    assert!(other.prove().is_err());
    let mut other = edited();
    other.text = other.text.replace(" # one", "");
    assert!(other.prove().is_err());
    let mut other = edited();
    other.text = other.text.replace("- 8", "- [");
    assert!(other.prove().is_err());
}
