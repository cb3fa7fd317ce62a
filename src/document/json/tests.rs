//! Tables of edits, and what is no JSON.

use super::super::Format;
use super::super::harness::{append, check, edited, moved, path, refused, remove, set};
use super::*;

#[test]
fn only_the_named_value_changes() {
    let table = [
        (
            "{\"a\":1, \"b\" : [1,2]}",
            set("a", "2"),
            "{\"a\":2, \"b\" : [1,2]}",
        ),
        (
            "{\"a\":1}",
            set("b.c", "[1,{}]"),
            "{\"a\":1, \"b\": {\"c\": [1, {}]}}",
        ),
        (
            "{\n  \"a\": 1\n}\n",
            set("b.c", "[1,{}]"),
            "{\n  \"a\": 1,\n  \"b\": {\n    \"c\": [\n      1,\n      {}\n    ]\n  }\n}\n",
        ),
        (
            "{\n\t\"a\": {}\n}",
            set("a.b", "1"),
            "{\n\t\"a\": {\n\t\t\"b\": 1\n\t}\n}",
        ),
        (
            "{\r\n    \"a\": 1\r\n}\r\n",
            set("b", "1"),
            "{\r\n    \"a\": 1,\r\n    \"b\": 1\r\n}\r\n",
        ),
        ("{}\n", set("a", "1"), "{\n  \"a\": 1\n}\n"),
        ("{\"a\": null}", set("a.b", "1"), "{\"a\": {\"b\": 1}}"),
        (
            "{\n  \"a\": [1, 2]\n}",
            append("a", "3"),
            "{\n  \"a\": [1, 2, 3]\n}",
        ),
        (
            "{\n  \"a\": [\n    1\n  ]\n}",
            append("a", "{\"x\":1}"),
            "{\n  \"a\": [\n    1,\n    {\n      \"x\": 1\n    }\n  ]\n}",
        ),
        ("{}", append("a", "3"), "{\n  \"a\": [\n    3\n  ]\n}"),
        (
            "{\n  \"a\": 1,\n  \"b\": 2,\n  \"c\": 3\n}",
            remove("b"),
            "{\n  \"a\": 1,\n  \"c\": 3\n}",
        ),
        (
            "{\n  \"a\": 1,\n  \"b\": 2\n}",
            remove("b"),
            "{\n  \"a\": 1\n}",
        ),
        (
            "{\n  \"a\": {\n    \"b\": 2\n  }\n}",
            remove("a.b"),
            "{\n  \"a\": {}\n}",
        ),
        ("[1, 2, 3]", remove("[0]"), "[2, 3]"),
        (
            "{\"a\": {\"b\": 2}, \"c\": {}}",
            moved("a.b", "a.d.b"),
            "{\"a\": {\"d\": {\"b\": 2}}, \"c\": {}}",
        ),
    ];
    check(Format::Json, &table);
    let renamed = edited(
        Format::Json,
        "{\"a\": 1, \"b\": 2}",
        &moved("a", "\"x \\\"y\""),
    );
    assert_eq!(renamed, r#"{"x \"y": 1, "b": 2}"#);
}

#[test]
fn what_is_no_strict_json_is_invalid() {
    for (text, line) in [
        ("", 1),
        ("{\"a\":1,\n\"a\":2}", 2),
        ("{a:1}", 1),
        ("[1,]", 1),
        ("[1] x", 1),
        ("{\"a\" 1}", 1),
        ("[\n01]", 2),
        ("[1 2]", 1),
        ("\"a", 1),
        ("[\"\\x\"]", 1),
        ("// c\n{}", 1),
        ("{\"a\":1", 1),
        ("nul", 1),
        ("[\"\\", 1),
        ("\u{FEFF}{}", 1),
    ] {
        let invalid = Json::parse(text.as_bytes()).expect_err(text);
        assert_eq!(invalid.line, line, "{text:?}: {invalid}");
    }
    assert!(Json::parse(&[b"[".repeat(65), b"]".repeat(65)].concat()).is_err());
    assert_eq!(Json::parse(b"[\n\xff]").unwrap_err().line, 2);
}

#[test]
fn numbers_keep_their_kind() {
    let document =
        Json::parse(b"[1, 1.0, -3, 1e2, 18446744073709551616, 18446744073709551615]").unwrap();
    let expected = [
        Value::Int(1),
        Value::Float(1.0),
        Value::Int(-3),
        Value::Float(100.0),
        Value::Other("int", "18446744073709551616".into()),
        Value::Other("int", "18446744073709551615".into()),
    ];
    assert_eq!(document.value(), &Value::List(expected.to_vec()));
    assert_eq!(document.line_of(&path("[1]")), Some(1));
    let endless = Edit::Set {
        path: path("[0]"),
        value: Value::Float(f64::NAN),
    };
    refused(Format::Json, "[1]", &endless);
}
