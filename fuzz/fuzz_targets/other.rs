//! Readers that share no code with those of the program: what they understand, they must find unchanged.

use fleet_update::document::{Format, Value};

/// What the bytes mean to another reader; nothing where it does not take them.
pub fn read(format: Format, bytes: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(bytes).ok()?;
    match format {
        Format::Yaml => {
            // This reader counts a byte order mark as a column, and takes the next key for one of another block.
            let text = text.strip_prefix('\u{feff}').unwrap_or(text);
            let mut value: serde_yaml::Value = serde_yaml::from_str(text).ok()?;
            value.apply_merge().ok()?;
            match yaml(value)? {
                Value::Null => Some(Value::Map(Vec::new())),
                value => Some(value),
            }
        }
        Format::Toml => toml(toml_span::parse(text).ok()?.take()),
        Format::Json => serde_json::from_str(text).ok().map(|value: serde_json::Value| Value::from(&value)),
        Format::Env => env(text),
        Format::Text => Some(Value::from(text)),
    }
}

fn yaml(value: serde_yaml::Value) -> Option<Value> {
    use serde_yaml::Value as Yaml;
    Some(match value {
        Yaml::Null => Value::Null,
        Yaml::Bool(value) => Value::Bool(value),
        Yaml::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => Value::Int(value),
            (None, Some(value)) => Value::from(value.to_string()),
            (None, None) => Value::Float(number.as_f64()?),
        },
        Yaml::String(text) => Value::from(text),
        Yaml::Sequence(items) => Value::List(items.into_iter().map(yaml).collect::<Option<_>>()?),
        Yaml::Mapping(entries) => {
            let entries = entries.into_iter().map(|(key, value)| Some((yaml(key)?, yaml(value)?)));
            Value::Map(entries.collect::<Option<_>>()?)
        }
        Yaml::Tagged(_) => return None,
    })
}

fn toml(value: toml_span::value::ValueInner<'_>) -> Option<Value> {
    use toml_span::value::ValueInner as Toml;
    Some(match value {
        Toml::String(text) => Value::from(text.into_owned()),
        Toml::Integer(value) => Value::Int(value),
        Toml::Float(value) => Value::Float(value),
        Toml::Boolean(value) => Value::Bool(value),
        Toml::Array(items) => {
            Value::List(items.into_iter().map(|mut item| toml(item.take())).collect::<Option<_>>()?)
        }
        Toml::Table(entries) => {
            let entries = entries
                .into_iter()
                .map(|(key, mut value)| Some((Value::from(key.name.as_ref()), toml(value.take())?)));
            Value::Map(entries.collect::<Option<_>>()?)
        }
    })
}

/// Lines of `NAME=value`: bare words, or one pair of quotes, over more than one line as well, with nothing behind it.
/// What is more than that is not taken.
fn env(text: &str) -> Option<Value> {
    let mut found: Vec<(Value, Value)> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if rest.starts_with(['\n', '#']) {
            rest = rest.split_once('\n').map_or("", |(_, below)| below);
            continue;
        }
        let (name, behind) = rest.split_once('=')?;
        let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        if name.is_empty() || !name.bytes().all(is_name) || name.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let (value, below) = match behind.chars().next() {
            Some(quote @ ('"' | '\'')) => quoted(&behind[1..], quote)?,
            _ => bare(behind)?,
        };
        rest = below;
        let value = Value::from(value);
        match found.iter_mut().find(|(own, _)| own.as_str() == Some(name)) {
            Some((_, old)) => *old = value,
            None => found.push((Value::from(name), value)),
        }
    }
    Some(Value::Map(found))
}

/// A word without quotes, and what stands below its line.
fn bare(text: &str) -> Option<(String, &str)> {
    let (line, below) = text.split_once('\n').unwrap_or((text, ""));
    let line = line.strip_suffix('\r').unwrap_or(line);
    let is_bare = |b: u8| b.is_ascii_graphic() && !matches!(b, b'"' | b'\'' | b'#' | b'\\');
    line.bytes().all(is_bare).then(|| (line.to_owned(), below))
}

/// What stands before the closing quote, without escapes, and what stands below its line.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut plain = String::new();
    let mut letters = text.chars();
    loop {
        match letters.next()? {
            '\\' => match (letters.next()?, quote) {
                (escaped @ ('\\' | '\''), '\'') | (escaped @ ('\\' | '"'), '"') => plain.push(escaped),
                ('n', '"') => plain.push('\n'),
                ('r', '"') => plain.push('\r'),
                ('t', '"') => plain.push('\t'),
                _ => return None,
            },
            letter if letter == quote => break,
            letter => plain.push(letter),
        }
    }
    let below = letters.as_str();
    let below = below.strip_prefix('\r').unwrap_or(below);
    match below.is_empty() {
        true => Some((plain, below)),
        false => Some((plain, below.strip_prefix('\n')?)),
    }
}
