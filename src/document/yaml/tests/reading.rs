//! What is read, as what, and what is no document.

use super::super::*;
use crate::document::harness::json;

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
