//! Tables of shapes: what goes in, what is edited, which bytes come out.

use super::*;
use crate::document::Format;
use crate::document::harness::{self, append, moved, path, remove, set};

fn check(table: &[(&str, Edit, &str)]) {
    harness::check(Format::Yaml, table);
    harness::check_crlf(Format::Yaml, table);
    harness::check_bom(Format::Yaml, table);
}

fn edited(before: &str, edit: &Edit) -> String {
    harness::edited(Format::Yaml, before, edit)
}

fn refused(before: &str, edit: &Edit) -> Refusal {
    harness::refused(Format::Yaml, before, edit)
}

mod adding;
mod knowing;
mod reading;
mod taking;

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
