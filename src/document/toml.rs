//! TOML, edited with toml_edit, which keeps comments, order and notation.
//!
//! Two things are done here on the text itself: removing whole lines (so that a comment above a removed key
//! stays), and giving back line ends and a BOM, which the library does not keep. TOML has no null. After an
//! edit the text is read again and compared, and a comment outside what was removed must still be there.

mod mutate;

use std::ops::Range;

use toml_edit::{DocumentMut, Item, Key as TomlKey, Table, TableLike, Value as TomlValue};

use mutate::{append, moved, remove, set};

use super::{Document, Edit, Invalid, Key, Path, Refusal, Scalar, Value, intent};

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

    fn prove(&self) -> Result<(), Invalid> {
        // Every edit was proved on the whole text.
        Ok(())
    }

    fn line_of(&self, path: &Path) -> Option<usize> {
        let text = body(&self.text);
        let document = parse(text).ok()?;
        let lines = lines_of(document.as_table(), path, text)?;
        let start = lines.iter().map(|range| range.start).min()?;
        Some(1 + text[..start].matches('\n').count())
    }

    fn scalars(&self) -> Result<Vec<Scalar>, Invalid> {
        let text = body(&self.text);
        let document = parse(text)?;
        let mut found = Vec::new();
        table_scalars(document.as_table(), &Path::root(), &mut found);
        let bom = self.text.len() - text.len();
        for scalar in &mut found {
            scalar.at = scalar.at.start + bom..scalar.at.end + bom;
        }
        // A table may be written in parts, with others between them.
        found.sort_by_key(|scalar| scalar.at.start);
        Ok(found)
    }
}

fn table_scalars(table: &dyn TableLike, path: &Path, found: &mut Vec<Scalar>) {
    for (name, item) in table.iter() {
        let path = path.name(name);
        match item {
            Item::None => {}
            Item::Value(value) => value_scalars(value, &path, found),
            Item::Table(table) => table_scalars(table, &path, found),
            Item::ArrayOfTables(tables) => {
                for (index, table) in tables.iter().enumerate() {
                    table_scalars(table, &path.index(index), found);
                }
            }
        }
    }
}

fn value_scalars(value: &TomlValue, path: &Path, found: &mut Vec<Scalar>) {
    match value {
        TomlValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                value_scalars(item, &path.index(index), found);
            }
        }
        TomlValue::InlineTable(table) => table_scalars(table, path, found),
        scalar => found.extend(scalar.span().map(|at| Scalar {
            path: path.clone(),
            at,
            value: value_value(scalar),
        })),
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
/// change keep theirs, those in the place of as many others theirs, new ones get that of the first line.
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
    let replaced = &old[head..old.len() - tail];
    let replacing = &new[head..new.len() - tail];
    for (position, line) in replacing.iter().enumerate() {
        text.push_str(line.trim_end_matches('\n'));
        if line.ends_with('\n') {
            let own = replaced
                .get(position)
                .filter(|old| old.ends_with('\n') && replaced.len() == replacing.len());
            text.push_str(own.map_or(eol, |old| if old.ends_with("\r\n") { "\r\n" } else { "\n" }));
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
        TomlValue::Datetime(date) => Value::Other("datetime", date.value().to_string().into()),
        TomlValue::Array(items) => Value::List(items.iter().map(value_value).collect()),
        TomlValue::InlineTable(table) => table_value(table),
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
mod tests;
