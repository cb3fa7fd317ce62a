//! What every format must hold: no panic; a refused edit leaves the bytes; a made edit means what it says,
//! and made twice it changes nothing.

use fleet_update::document::{self, Edit, Format, Key, Path, Value};

/// Reads `data` as `format` and edits it in several ways at a path that `data` chooses.
pub fn check(format: Format, data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    let Ok(document) = document::parse(format, bytes) else { return };
    assert_eq!(document.bytes(), bytes);
    let path = choose(document.value(), *choice);
    let text = Value::from(String::from_utf8_lossy(&bytes[..bytes.len().min(8)]).into_owned());
    let edits = [
        Edit::Set { path: path.clone(), value: text.clone() },
        Edit::Set { path: path.name("added"), value: Value::List(vec![text.clone(), Value::Int(1)]) },
        Edit::Remove { path: path.clone() },
        Edit::Append { path: path.clone(), value: text },
        Edit::Move { from: path.clone(), to: Path::from(["moved", "here"]) },
    ];
    for edit in edits {
        let Ok(mut document) = document::parse(format, bytes) else { return };
        let before = document.value().clone();
        match document.edit(&edit) {
            Err(_) => {
                assert_eq!(document.bytes(), bytes);
                assert_eq!(document.value(), &before);
            }
            Ok(()) => {
                let again = document::parse(format, document.bytes()).expect("what was written is read");
                assert_eq!(again.value(), document.value());
                if let Edit::Set { path, value } = &edit {
                    assert_eq!(again.value().get(path), Some(value));
                }
            }
        }
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
