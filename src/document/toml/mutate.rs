//! The edits themselves, on the tree of toml_edit: what is replaced keeps the comments and blanks around it.

use toml_edit::{Array, DocumentMut, InlineTable, Item, Key as TomlKey, Table, Value as TomlValue};

use super::super::{Key, Path, Value, intent};

/// A value in TOML.
fn inline(value: &Value) -> Result<TomlValue, String> {
    Ok(match value {
        Value::Null => return Err("TOML has no null".to_owned()),
        Value::Bool(truth) => (*truth).into(),
        Value::Int(number) => (*number).into(),
        Value::Float(number) => (*number).into(),
        Value::Str(text) => text.as_str().into(),
        Value::Other("datetime", text) => {
            let date: toml_edit::Datetime = text.parse().map_err(|_| "not a date".to_owned())?;
            date.into()
        }
        Value::Other(kind, _) => return Err(format!("a value of type {kind} cannot be written")),
        Value::List(items) => {
            let items: Result<Array, String> = items.iter().map(inline).collect();
            TomlValue::Array(items?)
        }
        Value::Map(entries) => {
            let mut table = InlineTable::new();
            for (key, value) in entries {
                table.insert(text_key(key)?, inline(value)?);
            }
            TomlValue::InlineTable(table)
        }
    })
}

fn text_key(key: &Value) -> Result<&str, String> {
    key.as_str()
        .ok_or_else(|| format!("a key that is {} is never written", key.kind()))
}

/// A value as an entry of a table with lines of its own.
fn block(value: &Value) -> Result<Item, String> {
    match value {
        Value::Map(entries) => {
            let mut table = Table::new();
            for (key, value) in entries {
                table.insert(text_key(key)?, block(value)?);
            }
            Ok(Item::Table(table))
        }
        other => inline(other).map(Item::Value),
    }
}

fn name(key: &Key) -> Result<&str, String> {
    match key {
        Key::Name(name) => Ok(name),
        other => Err(format!("there is no `{other}`")),
    }
}

/// Puts a value in the place of another, with the comments and blanks around it.
fn put(old: &mut TomlValue, value: &Value) -> Result<(), String> {
    let mut new = inline(value)?;
    *new.decor_mut() = old.decor().clone();
    *old = new;
    Ok(())
}

pub(super) fn set(table: &mut Table, keys: &[Key], value: &Value) -> Result<(), String> {
    let Some((key, rest)) = keys.split_first() else {
        return Err("the whole document is never replaced".to_owned());
    };
    let key = name(key)?;
    match table.get_mut(key) {
        Some(item) => set_item(item, rest, value),
        None => {
            let nested = rest.iter().rev().try_fold(value.clone(), |inner, key| {
                Ok::<_, String>(Value::from([(name(key)?, inner)]))
            })?;
            // What is written with dots is not continued under a header.
            let mut item = if table.is_dotted() {
                Item::Value(inline(&nested)?)
            } else {
                block(&nested)?
            };
            hide_outer(&mut item);
            table.insert(key, item);
            Ok(())
        }
    }
}

/// Tables that hold only another one get no header.
fn hide_outer(item: &mut Item) {
    let Item::Table(table) = item else { return };
    let mut inner: Vec<&mut Item> = table.iter_mut().map(|(_, inner)| inner).collect();
    if let [inner] = inner.as_mut_slice()
        && inner.is_table()
    {
        hide_outer(inner);
        table.set_implicit(true);
    }
}

fn set_item(item: &mut Item, rest: &[Key], value: &Value) -> Result<(), String> {
    let Some((key, below)) = rest.split_first() else {
        return match item {
            Item::Value(old) => put(old, value),
            other => {
                *other = block(value)?;
                Ok(())
            }
        };
    };
    match (item, key) {
        (Item::Table(table), _) => set(table, rest, value),
        (Item::Value(inner), _) => set_value(inner, rest, value),
        (Item::ArrayOfTables(tables), Key::Index(index)) => {
            let table = tables.get_mut(*index).ok_or("there is no such item")?;
            set(table, below, value)
        }
        _ => Err(format!("there is no `{key}`")),
    }
}

fn set_value(old: &mut TomlValue, keys: &[Key], value: &Value) -> Result<(), String> {
    let Some((key, rest)) = keys.split_first() else {
        return put(old, value);
    };
    match (old, key) {
        (TomlValue::Array(items), Key::Index(index)) => set_value(
            items.get_mut(*index).ok_or("there is no such item")?,
            rest,
            value,
        ),
        (TomlValue::InlineTable(table), Key::Name(name)) => match table.get_mut(name) {
            Some(inner) => set_value(inner, rest, value),
            None => {
                let nested = rest.iter().rev().try_fold(value.clone(), |inner, key| {
                    Ok::<_, String>(Value::from([(self::name(key)?, inner)]))
                })?;
                let mut new = inline(&nested)?;
                // The blank before the brace stays before the brace.
                if let Some((_, last)) = table.iter_mut().last() {
                    let suffix = last
                        .decor()
                        .suffix()
                        .and_then(|suffix| suffix.as_str())
                        .unwrap_or_default()
                        .to_owned();
                    if suffix.trim().is_empty() {
                        last.decor_mut().set_suffix("");
                        new = new.decorated(" ", suffix);
                    }
                }
                table.insert(name.as_str(), new);
                Ok(())
            }
        },
        _ => Err(format!("there is no `{key}`")),
    }
}

/// The item at a path, to be changed.
fn item_at<'d>(document: &'d mut DocumentMut, keys: &[Key]) -> Option<&'d mut Item> {
    keys.iter()
        .try_fold(document.as_item_mut(), |item, key| match key {
            Key::Name(name) => item.get_mut(name.as_str()),
            Key::Index(_) | Key::Other(_) => None,
        })
}

pub(super) fn append(
    document: &mut DocumentMut,
    path: &Path,
    value: &Value,
    after: &Value,
) -> Result<(), String> {
    let Some(item) = item_at(document, &path.0) else {
        let list = after.get(path).ok_or("it is not there")?;
        return set(document.as_table_mut(), &path.0, list);
    };
    match (item, value) {
        (Item::Value(TomlValue::Array(items)), value) => {
            let mut new = inline(value)?;
            let before = items
                .iter()
                .last()
                .and_then(|last| last.decor().prefix()?.as_str());
            match before.filter(|before| before.contains('\n')) {
                // One a line, like those before it.
                Some(before) => {
                    let indent = &before[before.rfind('\n').unwrap_or(0)..];
                    new.decor_mut().set_prefix(indent);
                    items.push_formatted(new);
                }
                None => items.push(new),
            }
            Ok(())
        }
        (Item::ArrayOfTables(tables), Value::Map(_)) => match block(value)? {
            Item::Table(table) => {
                tables.push(table);
                Ok(())
            }
            _ => Err("it is not a list of such values".to_owned()),
        },
        _ => Err("it is not a list".to_owned()),
    }
}

pub(super) fn remove(document: &mut DocumentMut, path: &Path) -> Result<(TomlKey, Item), String> {
    let absent = || "it is not there".to_owned();
    let (parent, last) = path.split_last().ok_or_else(absent)?;
    let mut keys = parent.0.as_slice();
    let mut item = document.as_item_mut();
    while let Some((key, rest)) = keys.split_first() {
        item = match key {
            Key::Name(name) => item.get_mut(name.as_str()),
            Key::Index(index) => item.get_mut(*index),
            Key::Other(_) => None,
        }
        .ok_or_else(absent)?;
        keys = rest;
    }
    match (item, last) {
        (Item::Table(table), Key::Name(name)) => table.remove_entry(name).ok_or_else(absent),
        (Item::Value(TomlValue::InlineTable(table)), Key::Name(name)) => {
            let (key, value) = table.remove_entry(name).ok_or_else(absent)?;
            Ok((key, Item::Value(value)))
        }
        (Item::Value(TomlValue::Array(items)), Key::Index(index)) if *index < items.len() => {
            let was_first = *index == 0;
            let value = items.remove(*index);
            if was_first && let Some(first) = items.iter_mut().next() {
                // The blank after a comma is not needed behind the bracket.
                let prefix = first
                    .decor()
                    .prefix()
                    .and_then(|prefix| prefix.as_str())
                    .unwrap_or_default();
                if prefix.trim().is_empty() && !prefix.contains('\n') {
                    first.decor_mut().set_prefix("");
                }
            }
            Ok((TomlKey::new(""), Item::Value(value)))
        }
        (Item::ArrayOfTables(tables), Key::Index(index)) if *index < tables.len() => {
            Ok((TomlKey::new(""), Item::Table(tables.remove(*index))))
        }
        _ => Err(absent()),
    }
}

pub(super) fn moved(document: &mut DocumentMut, from: &Path, to: &Path) -> Result<(), String> {
    let (parent, last) = to.split_last().ok_or("a key needs a name")?;
    let last = name(last)?;
    let position = intent::same_holder(from, to);
    let order: Vec<String> = match item_at(document, &parent.0).and_then(|item| item.as_table()) {
        Some(table) if position => table.iter().map(|(name, _)| name.to_owned()).collect(),
        _ => Vec::new(),
    };
    let (key, mut item) = remove(document, from)?;
    if let Item::Table(table) = &mut item {
        // Its header is written anew, where the tables of its new place are.
        table.set_position(None);
    }
    let new = TomlKey::new(last).with_leaf_decor(key.leaf_decor().clone());
    if item_at(document, &parent.0).is_none() {
        set(document.as_table_mut(), &parent.0, &Value::Map(Vec::new()))?;
    }
    match item_at(document, &parent.0) {
        Some(Item::Table(table)) => {
            table.insert_formatted(&new, item);
            if !order.is_empty() {
                let old = key.get().to_owned();
                let rank = |name: &str| {
                    let name = if name == last { old.as_str() } else { name };
                    order.iter().position(|other| other == name)
                };
                table.sort_values_by(|a, _, b, _| rank(a.get()).cmp(&rank(b.get())));
            }
            Ok(())
        }
        Some(Item::Value(TomlValue::InlineTable(table))) => {
            let value = item
                .into_value()
                .map_err(|_| "a table does not fit on one line".to_owned())?;
            table.insert_formatted(&new, value);
            Ok(())
        }
        _ => Err("there is no table to move it into".to_owned()),
    }
}
