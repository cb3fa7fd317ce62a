//! TOML, edited with toml_edit, which keeps comments, order and notation.
//!
//! Two things are done here on the text itself: removing whole lines (so that a comment above a removed key
//! stays), and giving back line ends and a BOM, which the library does not keep. TOML has no null. After an
//! edit the text is read again and compared, and a comment outside what was removed must still be there.

use std::ops::Range;

use toml_edit::{
    Array, DocumentMut, InlineTable, Item, Key as TomlKey, Table, TableLike, Value as TomlValue,
};

use super::{Document, Edit, Invalid, Key, Path, Refusal, Value, intent};

/// A TOML document.
#[derive(Debug)]
pub struct Toml {
    /// The text with its BOM.
    text: String,
    value: Value,
}

impl Toml {
    /// Reads a document.
    ///
    /// # Errors
    /// When the bytes are not UTF-8 or not TOML.
    pub fn parse(bytes: &[u8]) -> Result<Self, Invalid> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::read(text.to_owned()),
            Err(error) => {
                let before = &bytes[..error.valid_up_to()];
                let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
                Err(Invalid::new(line, "not UTF-8"))
            }
        }
    }

    fn read(text: String) -> Result<Self, Invalid> {
        let document = parse(body(&text))?;
        let value = table_value(document.as_table());
        Ok(Self { text, value })
    }

    fn edited(&self, edit: &Edit, after: &Value) -> Result<Self, String> {
        let old = body(&self.text);
        let plain = old.replace("\r\n", "\n");
        let spans = parse(&plain).map_err(|invalid| invalid.to_string())?;
        let mut gone: Vec<Range<usize>> = Vec::new();
        let mut new = match edit {
            Edit::Remove { path } => {
                gone = lines_of(spans.as_table(), path, &plain).unwrap_or_default();
                if gone.is_empty() {
                    mutated(&plain, |document| remove(document, path).map(drop))?
                } else {
                    without(&plain, &gone)
                }
            }
            Edit::Set { path, value } => {
                gone = lines_of(spans.as_table(), path, &plain).unwrap_or_default();
                mutated(&plain, |document| {
                    set(document.as_table_mut(), &path.0, value)
                })?
            }
            Edit::Append { path, value } => {
                let value = value.clone();
                mutated(&plain, |document| append(document, path, &value, after))?
            }
            Edit::Move { from, to } => mutated(&plain, |document| moved(document, from, to))?,
            Edit::Text { .. } => return Err("only a text is replaced as a whole".to_owned()),
        };
        if !plain.ends_with('\n') && new.ends_with('\n') && !plain.is_empty() {
            new.pop();
        }
        let mut kept: Vec<&str> = comments(&plain)
            .into_iter()
            .filter(|comment| !gone.iter().any(|range| range.contains(&comment.start)))
            .map(|comment| &plain[comment])
            .collect();
        let mut found: Vec<&str> = comments(&new)
            .into_iter()
            .map(|comment| &new[comment])
            .collect();
        kept.sort_unstable();
        found.sort_unstable();
        if !kept
            .iter()
            .all(|comment| found.binary_search(comment).is_ok())
            || found.len() < kept.len()
        {
            return Err("a comment would be lost".to_owned());
        }
        let mut text = self.text[..self.text.len() - old.len()].to_owned();
        text.push_str(&with_line_ends(old, &new));
        let new = Self::read(text)
            .map_err(|invalid| format!("it cannot be written in place ({invalid})"))?;
        if new.value != *after {
            return Err("something else would change, too".to_owned());
        }
        Ok(new)
    }
}

impl Document for Toml {
    fn value(&self) -> &Value {
        &self.value
    }

    fn bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    fn edit(&mut self, edit: &Edit) -> Result<(), Refusal> {
        let path = edit.path();
        let line = self.line_of(&path).unwrap_or(0);
        let refuse = |reason: String| Refusal::new(line, &path, reason);
        let after = intent::after(&self.value, edit).map_err(refuse)?;
        if after != self.value {
            *self = self.edited(edit, &after).map_err(refuse)?;
        }
        Ok(())
    }

    fn line_of(&self, path: &Path) -> Option<usize> {
        let text = body(&self.text);
        let document = parse(text).ok()?;
        let lines = lines_of(document.as_table(), path, text)?;
        let start = lines.iter().map(|range| range.start).min()?;
        Some(1 + text[..start].matches('\n').count())
    }
}

/// The text without its BOM.
fn body(text: &str) -> &str {
    text.strip_prefix('\u{FEFF}').unwrap_or(text)
}

fn parse(text: &str) -> Result<toml_edit::Document<&str>, Invalid> {
    toml_edit::Document::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = 1 + text.as_bytes()[..at]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        Invalid::new(line, error.message().trim())
    })
}

fn mutated(
    text: &str,
    change: impl FnOnce(&mut DocumentMut) -> Result<(), String>,
) -> Result<String, String> {
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error: toml_edit::TomlError| error.to_string())?;
    change(&mut document)?;
    Ok(document.to_string())
}

/// Gives a text that was changed without regard to line ends those of the old one: lines that did not
/// change keep theirs, new ones get that of the first line.
fn with_line_ends(old: &str, new: &str) -> String {
    if !old.contains('\r') {
        return new.to_owned();
    }
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let same =
        |old: &str, new: &str| old.trim_end_matches(['\r', '\n']) == new.trim_end_matches('\n');
    let head = old
        .iter()
        .zip(&new)
        .take_while(|(old, new)| same(old, new))
        .count();
    let most = old.len().min(new.len()) - head;
    let tail = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take(most)
        .take_while(|(old, new)| same(old, new))
        .count();
    let eol = if old[0].ends_with("\r\n") {
        "\r\n"
    } else {
        "\n"
    };
    let mut text: String = old[..head].concat();
    for line in &new[head..new.len() - tail] {
        text.push_str(line.trim_end_matches('\n'));
        if line.ends_with('\n') {
            text.push_str(eol);
        }
    }
    text.push_str(&old[old.len() - tail..].concat());
    text
}

/// The comments of a text: from `#` to the end of the line.
fn comments(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        at += match bytes[at] {
            b'#' => {
                let length = rest.find('\n').unwrap_or(rest.len());
                found.push(at..at + length);
                length
            }
            b'"' | b'\'' => {
                let quote = &rest[..1];
                let triple = quote.repeat(3);
                let close = if rest.starts_with(&triple) {
                    triple.as_str()
                } else {
                    quote
                };
                let mut end = close.len();
                while end < rest.len() && !rest[end..].starts_with(close) {
                    let escapes = quote == "\"" && rest[end..].starts_with('\\');
                    end += rest[end..]
                        .chars()
                        .take(if escapes { 2 } else { 1 })
                        .map(char::len_utf8)
                        .sum::<usize>();
                }
                (end + close.len()).min(rest.len())
            }
            _ => rest.chars().next().map_or(1, char::len_utf8),
        };
    }
    found
}

fn table_value(table: &dyn TableLike) -> Value {
    Value::Map(
        table
            .iter()
            .map(|(name, item)| (Value::from(name), item_value(item)))
            .collect(),
    )
}

fn item_value(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(value) => value_value(value),
        Item::Table(table) => table_value(table),
        Item::ArrayOfTables(tables) => {
            Value::List(tables.iter().map(|table| table_value(table)).collect())
        }
    }
}

fn value_value(value: &TomlValue) -> Value {
    match value {
        TomlValue::String(text) => Value::from(text.value().as_str()),
        TomlValue::Integer(number) => Value::Int(*number.value()),
        TomlValue::Float(number) => Value::Float(*number.value()),
        TomlValue::Boolean(truth) => Value::Bool(*truth.value()),
        TomlValue::Datetime(date) => Value::Other("datetime", date.value().to_string()),
        TomlValue::Array(items) => Value::List(items.iter().map(value_value).collect()),
        TomlValue::InlineTable(table) => table_value(table),
    }
}

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

fn set(table: &mut Table, keys: &[Key], value: &Value) -> Result<(), String> {
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

fn append(
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

fn remove(document: &mut DocumentMut, path: &Path) -> Result<(TomlKey, Item), String> {
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

fn moved(document: &mut DocumentMut, from: &Path, to: &Path) -> Result<(), String> {
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

/// The whole lines that an entry of tables stands on: a key with its value, or a header with all that it
/// holds. Nothing if it stands on lines with something else, or is not there.
fn lines_of(root: &Table, path: &Path, text: &str) -> Option<Vec<Range<usize>>> {
    let (parent, last) = path.split_last()?;
    let mut table = root;
    for key in &parent.0 {
        table = match key {
            Key::Name(name) => table.get(name)?.as_table()?,
            Key::Index(_) | Key::Other(_) => return None,
        };
    }
    let Key::Name(name) = last else { return None };
    let (key, item) = table.get_key_value(name)?;
    let mut found = Vec::new();
    collect(key, item, text, &mut found)?;
    found.sort_by_key(|range| range.start);
    Some(found)
}

fn collect(key: &TomlKey, item: &Item, text: &str, found: &mut Vec<Range<usize>>) -> Option<()> {
    match item {
        Item::Value(value) => found.push(whole_lines(key.span()?.start..value.span()?.end, text)),
        Item::Table(table) => collect_table(table, text, found)?,
        Item::ArrayOfTables(tables) => tables
            .iter()
            .try_for_each(|table| collect_table(table, text, found))?,
        Item::None => {}
    }
    Some(())
}

fn collect_table(table: &Table, text: &str, found: &mut Vec<Range<usize>>) -> Option<()> {
    let mut inner = Vec::new();
    for (name, item) in table.iter() {
        collect(table.key(name)?, item, text, &mut inner)?;
    }
    if !table.is_dotted() && !table.is_implicit() {
        // A header and its keys are one block, with the comments in between.
        let header = whole_lines(table.span()?, text);
        let own_end = table
            .iter()
            .filter_map(|(_, item)| item.as_value()?.span())
            .map(|span| whole_lines(span, text).end)
            .max();
        let block = header.start..own_end.unwrap_or(header.end).max(header.end);
        inner.retain(|range| !(block.start <= range.start && range.end <= block.end));
        inner.push(block);
    }
    found.append(&mut inner);
    Some(())
}

fn whole_lines(range: Range<usize>, text: &str) -> Range<usize> {
    let start = text[..range.start].rfind('\n').map_or(0, |feed| feed + 1);
    let end = text[range.end..]
        .find('\n')
        .map_or(text.len(), |feed| range.end + feed + 1);
    start..end
}

fn without(text: &str, gone: &[Range<usize>]) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut at = 0;
    for range in gone {
        kept.push_str(&text[at..range.start.max(at)]);
        at = range.end.max(at);
    }
    kept.push_str(&text[at..]);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(before: &str, edit: &Edit) -> String {
        let mut document =
            Toml::parse(before.as_bytes()).unwrap_or_else(|e| panic!("{e}: {before:?}"));
        document
            .edit(edit)
            .unwrap_or_else(|e| panic!("{e}: {edit:?} of {before:?}"));
        String::from_utf8(document.bytes().to_vec()).unwrap()
    }

    fn set(at: &str, value: &str) -> Edit {
        Edit::Set {
            path: at.parse().unwrap(),
            value: serde_json::from_str(value).unwrap(),
        }
    }

    fn remove(at: &str) -> Edit {
        Edit::Remove {
            path: at.parse().unwrap(),
        }
    }

    fn append(at: &str, value: &str) -> Edit {
        Edit::Append {
            path: at.parse().unwrap(),
            value: serde_json::from_str(value).unwrap(),
        }
    }

    fn moved(from: &str, to: &str) -> Edit {
        Edit::Move {
            from: from.parse().unwrap(),
            to: to.parse().unwrap(),
        }
    }

    #[test]
    fn only_the_named_entry_changes() {
        for (before, edit, after) in [
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
        ] {
            assert_eq!(edited(before, &edit), after, "{edit:?} of {before:?}");
            let crlf = |text: &str| text.replace('\n', "\r\n");
            assert_eq!(
                edited(&crlf(before), &edit),
                crlf(after),
                "CRLF {edit:?} of {before:?}"
            );
            let bom = |text: &str| format!("\u{FEFF}{text}");
            assert_eq!(
                edited(&bom(before), &edit),
                bom(after),
                "BOM {edit:?} of {before:?}"
            );
        }
        assert_eq!(edited("a = 1", &set("a", "2")), "a = 2");
        assert_eq!(edited("", &set("a", "2")), "a = 2\n");
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
            let mut document = Toml::parse(text.as_bytes()).unwrap();
            document.edit(&edit).expect_err(text);
            assert_eq!(document.bytes(), text.as_bytes());
        }
        assert_eq!(Toml::parse(b"a = 1\na = 2\n").unwrap_err().line, 2);
        assert_eq!(Toml::parse(b"a = 1\nb = \xff\n").unwrap_err().line, 2);
    }

    #[test]
    fn a_value_has_a_line() {
        let document = Toml::parse(b"a = 1\n[t]\n# c\nb = 1\n").unwrap();
        assert_eq!(document.line_of(&"t.b".parse().unwrap()), Some(4));
        assert_eq!(document.line_of(&"t".parse().unwrap()), Some(2));
    }
}
