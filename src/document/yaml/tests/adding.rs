//! What edits write that replace a scalar or add something.

use super::*;

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
