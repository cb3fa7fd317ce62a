//! Tables of edits.

use super::super::Format;
use super::super::harness::{
    append, check, check_bom, check_crlf, edited, moved, path, refused, remove, set,
};
use super::*;

#[test]
fn only_the_named_entry_changes() {
    let table = [
        (
            "# h\na = 1 # c\n\n[t]\nb = 'x'\n",
            set("a", "2"),
            "# h\na = 2 # c\n\n[t]\nb = 'x'\n",
        ),
        (
            "a = 1\n\n[t]\nb = 1 # c\n# own\n\n[u]\n",
            set("t.c", "\"x\""),
            "a = 1\n\n[t]\nb = 1 # c\nc = \"x\"\n# own\n\n[u]\n",
        ),
        (
            "a = 1\n",
            set("t.u.c", "true"),
            "a = 1\n\n[t.u]\nc = true\n",
        ),
        ("a = { b = 1 }\n", set("a.c", "2"), "a = { b = 1, c = 2 }\n"),
        ("a = [1, 2] # c\n", append("a", "3"), "a = [1, 2, 3] # c\n"),
        (
            "a = [\n  1, # one\n  2,\n]\n",
            append("a", "3"),
            "a = [\n  1, # one\n  2,\n  3,\n]\n",
        ),
        (
            "[[a]]\nx = 1\n",
            append("a", "{\"x\":2}"),
            "[[a]]\nx = 1\n\n[[a]]\nx = 2\n",
        ),
        ("# own\na = 1 # c\nb = 2\n", remove("a"), "# own\nb = 2\n"),
        (
            "[t]\n# own\na = 1\n# end\n",
            remove("t.a"),
            "[t]\n# own\n# end\n",
        ),
        (
            "x = 1\n# own\n[t]\n# in\na = 1\n\n[t.u]\nb = 1\n# after\n[v]\n",
            remove("t"),
            "x = 1\n# own\n\n# after\n[v]\n",
        ),
        ("a = [1, 2, 3]\n", remove("a[0]"), "a = [2, 3]\n"),
        ("a = {b = 1, c = 2}\n", remove("a.b"), "a = { c = 2}\n"),
        (
            "# own\na = 1 # c\nb = 2\n",
            moved("a", "z"),
            "# own\nz = 1 # c\nb = 2\n",
        ),
        (
            "x = 1\n# own\na = 1 # c\n[t]\nb = 2\n",
            moved("a", "t.z"),
            "x = 1\n[t]\nb = 2\n# own\nz = 1 # c\n",
        ),
    ];
    check(Format::Toml, &table);
    check_crlf(Format::Toml, &table);
    check_bom(Format::Toml, &table);
    assert_eq!(edited(Format::Toml, "a = 1", &set("a", "2")), "a = 2");
    assert_eq!(edited(Format::Toml, "", &set("a", "2")), "a = 2\n");
}

#[test]
fn what_cannot_be_written_is_refused() {
    for (text, edit) in [
        ("a = 1\n", set("a", "null")),
        ("a = 1\n", set("a.b", "1")),
        ("a = 1\n", append("a", "1")),
        ("a = 1\n", remove("b")),
        // The table would not be there any more, instead of being empty.
        ("[a.b]\nc = 1\n", remove("a.b")),
        ("a.b = 1\n", remove("a.b")),
    ] {
        refused(Format::Toml, text, &edit);
    }
    assert_eq!(Toml::parse(b"a = 1\na = 2\n").unwrap_err().line, 2);
    assert_eq!(Toml::parse(b"a = 1\nb = \xff\n").unwrap_err().line, 2);
}

#[test]
fn a_value_has_a_line() {
    let document = Toml::parse(b"a = 1\n[t]\n# c\nb = 1\n").unwrap();
    assert_eq!(document.line_of(&path("t.b")), Some(4));
    assert_eq!(document.line_of(&path("t")), Some(2));
}

#[test]
fn a_line_that_another_one_replaces_lends_it_its_end() {
    check(
        Format::Toml,
        &[
            (
                "# c\r\na = [1, 2]\nb = 1\r\n",
                set("a", "[3]"),
                "# c\r\na = [3]\nb = 1\r\n",
            ),
            ("a = 1\nb = 1\r\n", set("b", "2"), "a = 1\nb = 2\r\n"),
            (
                "a = 1\r\nb = 1\n",
                set("c", "2"),
                "a = 1\r\nb = 1\nc = 2\r\n",
            ),
        ],
    );
}
