//! What an edit means, on values: the tree that the edited bytes must be read as.
//!
//! Every editor compares what it wrote with this; it says nothing about notation.

use super::{Edit, Key, Path, Value};

/// The meaning of a document after `edit`.
///
/// # Errors
/// When the edit has no meaning there: the reason.
pub(super) fn after(before: &Value, edit: &Edit) -> Result<Value, String> {
    let mut root = before.clone();
    match edit {
        Edit::Set { path, value } => set(&mut root, &path.0, value.clone())?,
        Edit::Remove { path } => drop(take(&mut root, &path.0)?),
        Edit::Append { path, value } => append(&mut root, &path.0, value.clone())?,
        Edit::Move { from, to } => {
            if to.starts_with(from) {
                return Err("it cannot move into itself".to_owned());
            }
            if before.get(to).is_some() {
                return Err(format!("{to} is already there"));
            }
            if same_holder(from, to) {
                rename(&mut root, from, to)?;
            } else {
                let value = before.get(from).ok_or("it is not there")?.clone();
                set(&mut root, &to.0, value)?;
                take(&mut root, &from.0)?;
            }
        }
        Edit::Text { .. } => return Err("only a text is replaced as a whole".to_owned()),
    }
    Ok(root)
}

/// Whether a move only gives a key of a mapping another name.
pub(super) fn same_holder(from: &Path, to: &Path) -> bool {
    match (from.0.split_last(), to.0.split_last()) {
        (Some((Key::Name(_), from)), Some((Key::Name(_), to))) => from == to,
        _ => false,
    }
}

fn rename(root: &mut Value, from: &Path, to: &Path) -> Result<(), String> {
    let Some((Key::Name(old), parents)) = from.0.split_last() else {
        return Err("it is not there".to_owned());
    };
    let Some(Key::Name(new)) = to.0.last() else {
        return Err("a key needs a name".to_owned());
    };
    let Value::Map(entries) = at(root, parents)? else {
        return Err("it is not there".to_owned());
    };
    let found = entries
        .iter_mut()
        .find(|(key, _)| key.as_str() == Some(old));
    let (key, _) = found.ok_or("it is not there")?;
    *key = Value::from(new.as_str());
    Ok(())
}

/// The value at `keys`, which must be there.
fn at<'v>(root: &'v mut Value, keys: &[Key]) -> Result<&'v mut Value, String> {
    keys.iter()
        .try_fold(root, |value, key| step(value, key))
        .ok_or_else(|| "it is not there".to_owned())
}

fn step<'v>(value: &'v mut Value, key: &Key) -> Option<&'v mut Value> {
    match (value, key) {
        (Value::List(items), Key::Index(index)) => items.get_mut(*index),
        (Value::Map(entries), key) => entries
            .iter_mut()
            .find(|(own, _)| own.is_key(key))
            .map(|(_, value)| value),
        _ => None,
    }
}

/// The value at `keys`; mappings that are absent or null on the way are made, and a null at the end.
fn make<'v>(root: &'v mut Value, keys: &[Key]) -> Result<&'v mut Value, String> {
    let mut value = root;
    for key in keys {
        if value.is_null() {
            *value = Value::Map(Vec::new());
        }
        value = match (value, key) {
            (Value::Map(entries), Key::Name(name)) => {
                let position = entries.iter().position(|(own, _)| own.is_key(key));
                let position = position.unwrap_or_else(|| {
                    entries.push((Value::from(name.as_str()), Value::Null));
                    entries.len() - 1
                });
                &mut entries[position].1
            }
            (Value::Map(entries), key) => entries
                .iter_mut()
                .find(|(own, _)| own.is_key(key))
                .map(|(_, value)| value)
                .ok_or_else(|| format!("there is no `{key}`"))?,
            (Value::List(items), Key::Index(index)) => items
                .get_mut(*index)
                .ok_or_else(|| format!("there is no item `{key}`"))?,
            (other, key) => return Err(format!("`{key}` would stand in {}", other.kind())),
        };
    }
    Ok(value)
}

fn set(root: &mut Value, keys: &[Key], new: Value) -> Result<(), String> {
    if keys.is_empty() {
        return Err("the whole document is never replaced".to_owned());
    }
    *make(root, keys)? = new;
    Ok(())
}

fn append(root: &mut Value, keys: &[Key], new: Value) -> Result<(), String> {
    let list = make(root, keys)?;
    if list.is_null() {
        *list = Value::List(Vec::new());
    }
    match list {
        Value::List(items) => {
            items.push(new);
            Ok(())
        }
        other => Err(format!("it is {}, not a list", other.kind())),
    }
}

fn take(root: &mut Value, keys: &[Key]) -> Result<Value, String> {
    let Some((last, parents)) = keys.split_last() else {
        return Err("the whole document is never removed".to_owned());
    };
    let absent = || "it is not there".to_owned();
    match (at(root, parents)?, last) {
        (Value::Map(entries), key) => {
            let position = entries.iter().position(|(own, _)| own.is_key(key));
            Ok(entries.remove(position.ok_or_else(absent)?).1)
        }
        (Value::List(items), Key::Index(index)) if *index < items.len() => Ok(items.remove(*index)),
        _ => Err(absent()),
    }
}
