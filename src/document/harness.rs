//! What the tests of every format share: edits from short texts, and tables of what they write.

use super::{Edit, Format, Path, Refusal, Value, parse};

pub(super) fn path(text: &str) -> Path {
    text.parse().unwrap()
}

pub(super) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

pub(super) fn set(at: &str, value: &str) -> Edit {
    Edit::Set {
        path: path(at),
        value: json(value),
    }
}

pub(super) fn remove(at: &str) -> Edit {
    Edit::Remove { path: path(at) }
}

pub(super) fn moved(from: &str, to: &str) -> Edit {
    Edit::Move {
        from: path(from),
        to: path(to),
    }
}

pub(super) fn append(at: &str, value: &str) -> Edit {
    Edit::Append {
        path: path(at),
        value: json(value),
    }
}

/// The text after an edit, which is proved as a whole; a value that is set again must change nothing.
pub(super) fn edited(format: Format, before: &str, edit: &Edit) -> String {
    let mut document =
        parse(format, before.as_bytes()).unwrap_or_else(|e| panic!("{e}: {before:?}"));
    document
        .edit(edit)
        .unwrap_or_else(|e| panic!("{e}: {edit:?} of {before:?}"));
    document
        .prove()
        .unwrap_or_else(|e| panic!("{e}: {edit:?} of {before:?}"));
    let after = String::from_utf8(document.bytes().to_vec()).unwrap();
    if let Edit::Set { .. } = edit {
        document.edit(edit).unwrap();
        assert_eq!(document.bytes(), after.as_bytes(), "a second time");
    }
    after
}

/// Checks what edits write: a text, an edit of it, the text after it.
pub(super) fn check(format: Format, table: &[(&str, Edit, &str)]) {
    for (before, edit, after) in table {
        let found = edited(format, before, edit);
        assert_eq!(found, *after, "{edit:?} of {before:?}");
    }
}

/// The same with CRLF, which gives the same with CRLF.
pub(super) fn check_crlf(format: Format, table: &[(&str, Edit, &str)]) {
    let crlf = |text: &str| text.replace('\n', "\r\n");
    for (before, edit, after) in table {
        let found = edited(format, &crlf(before), edit);
        assert_eq!(found, crlf(after), "CRLF: {edit:?} of {before:?}");
    }
}

/// The same with a BOM, which stays.
pub(super) fn check_bom(format: Format, table: &[(&str, Edit, &str)]) {
    let bom = |text: &str| format!("\u{FEFF}{text}");
    for (before, edit, after) in table {
        let found = edited(format, &bom(before), edit);
        assert_eq!(found, bom(after), "BOM: {edit:?} of {before:?}");
    }
}

/// Why an edit is refused; the text stays as it was.
pub(super) fn refused(format: Format, before: &str, edit: &Edit) -> Refusal {
    let mut document =
        parse(format, before.as_bytes()).unwrap_or_else(|e| panic!("{e}: {before:?}"));
    let Err(refusal) = document.edit(edit) else {
        panic!("{edit:?} of {before:?} is not refused");
    };
    assert_eq!(document.bytes(), before.as_bytes());
    refusal
}
