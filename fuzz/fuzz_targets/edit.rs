//! What every format must hold, whatever was written and whatever is edited: no panic; a refused edit leaves the
//! bytes; a made edit can be proved, and means what it says and nothing else, to us and to a reader that shares no
//! code with ours; the bytes beside a scalar that another one replaces stay; made twice, a value changes nothing.

#[path = "other.rs"]
mod other;

use fleet_update::document::{self, Document, Edit, Format, Key, Path, Value};

/// Reads what follows two bytes of `data` as `format`, and makes every edit at the path that the first byte chooses,
/// with the value that the second one chooses.
pub fn check(format: Format, data: &[u8]) {
    let [choice, shape, bytes @ ..] = data else { return };
    let Ok(document) = document::parse(format, bytes) else { return };
    assert_eq!(document.bytes(), bytes);
    document.prove().expect("what was read is proved");
    let path = choose(document.value(), *choice);
    let value = value(*shape, bytes);
    let edits = [
        Edit::Set { path: path.clone(), value: value.clone() },
        Edit::Set { path: path.name("added"), value: Value::List(vec![value.clone(), Value::Int(1)]) },
        Edit::Set { path: Path::from(["added", "below"]), value: value.clone() },
        Edit::Remove { path: path.clone() },
        Edit::Append { path: path.clone(), value: value.clone() },
        Edit::Move { from: path.clone(), to: Path::from(["moved", "here"]) },
    ];
    for edit in &edits {
        make(format, bytes, edit);
    }
    all(format, bytes, &edits);
}

/// Makes one edit, and judges it.
fn make(format: Format, bytes: &[u8], edit: &Edit) {
    let mut document = document::parse(format, bytes).expect("it was read before");
    let before = document.value().clone();
    let replaced = replaced(document.as_ref(), edit);
    if document.edit(edit).is_err() {
        assert_eq!(document.bytes(), bytes, "a refused edit changed bytes");
        assert_eq!(document.value(), &before, "a refused edit changed the meaning");
        return;
    }
    judge(format, document.as_ref(), &meant(before.clone(), edit));
    let after = document.bytes().to_vec();
    if let Some((head, tail)) = replaced {
        assert!(
            after.starts_with(head.trim_ascii_end()) && after.ends_with(tail.trim_ascii_start()),
            "{edit:?} changed more than its scalar: {}",
            String::from_utf8_lossy(&after)
        );
    }
    if let (Some(old), Some(new)) = (other::read(format, bytes), other::read(format, &after)) {
        if old == plain(before) {
            assert_eq!(new, plain(document.value().clone()), "another reader finds something else");
        }
    } else if other::read(format, bytes).is_some_and(|old| old == plain(before)) {
        panic!("another reader takes it no more: {}", String::from_utf8_lossy(&after));
    }
    if let Edit::Set { .. } = edit {
        document.edit(edit).expect("it could be made once");
        assert_eq!(document.bytes(), after, "made twice, it changed something");
    }
}

/// Makes all of them in one document, and proves them together.
fn all(format: Format, bytes: &[u8], edits: &[Edit]) {
    let mut document = document::parse(format, bytes).expect("it was read before");
    let mut value = document.value().clone();
    for edit in edits {
        if document.edit(edit).is_ok() {
            value = meant(value, edit);
            assert_eq!(document.value(), &value, "{edit:?} after others");
        }
    }
    judge(format, document.as_ref(), &value);
}

/// A document must be provable, and its bytes must mean `meant`.
fn judge(format: Format, document: &dyn Document, meant: &Value) {
    let shown = String::from_utf8_lossy(document.bytes());
    if let Err(invalid) = document.prove() {
        panic!("it was edited, and is not proved: {invalid}: {shown}");
    }
    assert_eq!(document.value(), meant, "something else changed: {shown}");
    let again = document::parse(format, document.bytes()).expect("what was written is read");
    assert_eq!(again.value(), meant, "it is read otherwise: {shown}");
}

/// What stands before and behind the scalar that an edit replaces by another one; blanks and line ends next to it
/// may go with it.
fn replaced(document: &dyn Document, edit: &Edit) -> Option<(Vec<u8>, Vec<u8>)> {
    let Edit::Set { path, value } = edit else { return None };
    let old = document.value().get(path)?;
    if matches!(value, Value::List(_) | Value::Map(_)) || old == value {
        return None;
    }
    let scalars = document.scalars().expect("it was read");
    // Of equal names the last one counts, and one without a value is no scalar.
    let found = scalars.iter().rev().find(|scalar| scalar.path == *path && scalar.value == *old)?;
    let bytes = document.bytes();
    Some((bytes[..found.at.start].to_vec(), bytes[found.at.end..].to_vec()))
}

/// What an edit means, said once more and apart from what is tested.
fn meant(before: Value, edit: &Edit) -> Value {
    let root = match edit {
        Edit::Set { path, value } => with(Some(before), &path.0, &|_| Some(value.clone())),
        Edit::Remove { path } => with(Some(before), &path.0, &|_| None),
        Edit::Append { path, value } => with(Some(before), &path.0, &|old| match old {
            None | Some(Value::Null) => Some(Value::List(vec![value.clone()])),
            Some(Value::List(mut items)) => {
                items.push(value.clone());
                Some(Value::List(items))
            }
            Some(other) => panic!("an item was added to {}", other.kind()),
        }),
        Edit::Move { from, to } => {
            let value = before.get(from).cloned().expect("it was moved from somewhere");
            let copied = with(Some(before), &to.0, &|_| Some(value.clone()));
            with(copied, &from.0, &|_| None)
        }
        Edit::Text { text } => Some(Value::from(text.as_str())),
    };
    root.expect("a document stays")
}

/// A value in which what is at `keys` became what `change` makes of it; mappings on the way are made.
fn with(value: Option<Value>, keys: &[Key], change: &dyn Fn(Option<Value>) -> Option<Value>) -> Option<Value> {
    let Some((key, rest)) = keys.split_first() else { return change(value) };
    match value {
        Some(Value::List(items)) => {
            let changed = |(index, item)| match *key == Key::Index(index) {
                true => with(Some(item), rest, change),
                false => Some(item),
            };
            Some(Value::List(items.into_iter().enumerate().filter_map(changed).collect()))
        }
        Some(Value::Map(_) | Value::Null) | None => {
            let entries = match value {
                Some(Value::Map(entries)) => entries,
                _ => Vec::new(),
            };
            let (mut found, others): (Vec<_>, Vec<_>) =
                entries.into_iter().partition(|(own, _)| own.to_key() == *key);
            let old = found.pop();
            assert!(found.is_empty(), "a key is there twice");
            let name = match key {
                Key::Name(name) => Value::from(name.as_str()),
                _ => old.as_ref().expect("only text is added as a key").0.clone(),
            };
            let new = with(old.map(|(_, value)| value), rest, change).map(|value| (name, value));
            Some(Value::Map(others.into_iter().chain(new).collect()))
        }
        Some(other) => panic!("something was put into {}", other.kind()),
    }
}

/// The same without the types that only some readers know.
fn plain(value: Value) -> Value {
    match value {
        Value::Other(_, text) => Value::Str(text),
        Value::List(items) => Value::List(items.into_iter().map(plain).collect()),
        Value::Map(entries) => {
            Value::Map(entries.into_iter().map(|(key, value)| (plain(key), plain(value))).collect())
        }
        other => other,
    }
}

/// Some value, made of the bytes.
fn value(shape: u8, bytes: &[u8]) -> Value {
    let text = |from: usize, length: usize| {
        let piece = bytes.iter().skip(from).take(length).copied().collect::<Vec<u8>>();
        Value::from(String::from_utf8_lossy(&piece).into_owned())
    };
    let number = i64::from(shape) * 1_000_003 - 50_000_000;
    match shape % 12 {
        0 => text(0, 8),
        1 => text(usize::from(shape), 24),
        2 => Value::Int(number),
        3 => Value::Float(number as f64 / 1024.0),
        4 => Value::Bool(shape & 16 == 0),
        5 => Value::Null,
        6 => Value::List(vec![text(3, 5), Value::Int(number), Value::Null]),
        7 => Value::from([("one", text(2, 9)), ("two", Value::List(vec![text(0, 3)]))]),
        8 => Value::from("two\nlines, the second one: with \"quotes\" # and no comment\n"),
        9 => Value::from([("deep", Value::from([("er", Value::Map(Vec::new()))]))]),
        10 => Value::from(["yes", "1e3", "0o17", "y", "2026-01-01", "~", "1:30", ""][usize::from(shape >> 5)]),
        _ => text(bytes.len() / 2, 40),
    }
}

/// Some path of a value.
fn choose(value: &Value, choice: u8) -> Path {
    let mut path = Path::root();
    let mut at = value;
    let mut left = usize::from(choice);
    loop {
        let (key, next): (Key, &Value) = match at {
            Value::Map(entries) if !entries.is_empty() => {
                let (key, next) = &entries[left % entries.len()];
                (key.to_key(), next)
            }
            Value::List(items) if !items.is_empty() => {
                let index = left % items.len();
                (Key::Index(index), &items[index])
            }
            _ => return path,
        };
        path = path.child(key);
        at = next;
        left /= 3;
        if left == 0 {
            return path;
        }
    }
}
