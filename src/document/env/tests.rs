//! Tables of edits, and how lines are read.

use super::super::Format;
use super::super::harness::{self, append, check, check_bom, moved, refused, remove};
use super::*;

fn set(name: &str, value: &str) -> Edit {
    harness::set(name, &Value::from(value).to_json().to_string())
}

#[test]
fn only_the_named_line_changes() {
    let table = [
        ("A=1\nB=2 # c\n", set("B", "3"), "A=1\nB=3 # c\n"),
        (
            "export A = 'x'  # c\n",
            set("A", "y"),
            "export A = 'y'  # c\n",
        ),
        ("A=\"x\"\r\nB=1\r\n", set("A", ""), "A=\r\nB=1\r\n"),
        ("A=x # c\n", set("A", ""), "A=\"\" # c\n"),
        (
            "A=1\nLLM_MODEL=gpt",
            set("LLM_MODEL", ""),
            "A=1\nLLM_MODEL=",
        ),
        ("A=1", set("B", "a b"), "A=1\nB='a b'"),
        ("A=1\r\n", set("B", "it's"), "A=1\r\nB=\"it's\"\r\n"),
        ("", set("B", "2"), "B=2\n"),
        ("A\n", set("A", "2"), "A=2\n"),
        ("A=1\nA=2\n", set("A", "3"), "A=1\nA=3\n"),
        ("A=1\n# own\nB=2\nA=3\n", remove("A"), "# own\nB=2\n"),
        ("A=1\n\n  B=2 # c", remove("B"), "A=1\n\n"),
        ("A='x\ny'\nB=1\n", remove("A"), "B=1\n"),
        (
            "junk line\nA=1\n",
            set("A", "a\nb\"c\\"),
            "junk line\nA=\"a\\nb\\\"c\\\\\"\n",
        ),
        ("A=${B}\n", set("C", "1"), "A=${B}\nC=1\n"),
        ("A=1 # c\n", moved("A", "B"), "B=1 # c\n"),
    ];
    check(Format::Env, &table);
    check_bom(Format::Env, &table);
}

#[test]
fn lines_are_read_as_python_dotenv_reads_them() {
    let text = "# c\nexport A=1\nB = 'x # y' # c\nC=\"a\\nb\\q\" \nD=a b # c\nE=a#b\nF\nG=\n'H'=h\nI='it\\'s'\n bad line here\nJ=\"x\" junk\nK='open\nL=1\n";
    let env = Env::parse(text.as_bytes()).unwrap();
    let found = env.value().to_json();
    let expected = serde_json::json!({"A": "1", "B": "x # y", "C": "a\nb\\q", "D": "a b", "E": "a#b", "F": null, "G": "", "H": "h", "I": "it's", "L": "1"});
    assert_eq!(found, expected);
    assert_eq!(env.line_of(&Path::from(["D"])), Some(5));
}

#[test]
fn what_cannot_be_written_is_refused() {
    for edit in [
        set("\"B C\"", "1"),
        harness::set("A", "2"),
        set("A.B", "x"),
        append("A", "\"x\""),
        remove("Z"),
        // It would close the quote that is open before it.
        set("C", "it's"),
    ] {
        refused(Format::Env, "A=1\nB='open\n", &edit);
    }
    assert_eq!(Env::parse(b"A=1\nB=\xff").unwrap_err().line, 2);
}
