//! What changed between two meanings of a document, as paths.
//!
//! A path that is there names the outermost value that differs: a key that came, went or has another
//! scalar; a list whose length changed. Lists of one length are compared item by item. This is
//! computed from values that were read from bytes, never from what an edit meant to do.

use super::{Key, Path, Value};

/// The paths at which `after` differs from `before`, in the order of `before`, what is new last.
#[must_use]
pub fn changed_paths(before: &Value, after: &Value) -> Vec<Path> {
    let mut found = Vec::new();
    compare(before, after, &mut Vec::new(), &mut found);
    found
}

fn compare(before: &Value, after: &Value, at: &mut Vec<Key>, found: &mut Vec<Path>) {
    match (before, after) {
        (Value::Map(old), Value::Map(new)) => {
            let mut next = 0;
            for (key, value) in old {
                at.push(key.to_key());
                match lookup(new, key, &mut next) {
                    Some(now) => compare(value, now, at, found),
                    None => found.push(Path(at.clone())),
                }
                at.pop();
            }
            let mut next = 0;
            for (key, _) in new {
                if lookup(old, key, &mut next).is_none() {
                    at.push(key.to_key());
                    found.push(Path(at.clone()));
                    at.pop();
                }
            }
        }
        (Value::List(old), Value::List(new)) if old.len() == new.len() => {
            for (index, (value, now)) in old.iter().zip(new).enumerate() {
                at.push(Key::Index(index));
                compare(value, now, at, found);
                at.pop();
            }
        }
        _ if before == after => {}
        _ => found.push(Path(at.clone())),
    }
}

/// The value under `key`, looked for first at `next`, behind the one found before.
fn lookup<'v>(entries: &'v [(Value, Value)], key: &Value, next: &mut usize) -> Option<&'v Value> {
    let (before, behind) = entries.split_at((*next).min(entries.len()));
    let steps = behind
        .iter()
        .chain(before)
        .position(|(own, _)| own == key)?;
    let place = (before.len() + steps) % entries.len();
    *next = place + 1;
    Some(&entries[place].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outermost_difference_is_named() {
        let before: Value =
            serde_json::from_str(r#"{"a":{"b":1,"c":[1,2]},"d":[1,2],"e":1}"#).unwrap();
        let after: Value =
            serde_json::from_str(r#"{"a":{"b":2,"c":[1,3]},"d":[1],"f":{"g":1}}"#).unwrap();
        let paths: Vec<String> = changed_paths(&before, &after)
            .iter()
            .map(Path::to_string)
            .collect();
        assert_eq!(paths, ["a.b", "a.c[1]", "d", "e", "f"]);
        assert!(changed_paths(&before, &before.clone()).is_empty());
    }
}
