//! Writes values as YAML that every loader of the application reads back as the same.
//!
//! Text is plain only if it is text by the rules of YAML 1.1, of ruamel.yaml and of YAML 1.2, and made of
//! harmless characters; everything else is quoted. What has no safe notation is not written at all.

use granit_parser::ScalarStyle;

use super::super::{Key, Value};
use super::schema::{self, Plain};

/// How a file is laid out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    /// Columns that a mapping is indented by below its key.
    pub unit: usize,
    /// Columns that the dashes of a sequence are indented by below its key.
    pub dash: usize,
    /// The line end that new lines get, where no neighbour has one.
    pub eol: &'static str,
    /// How the line above the part ends.
    pub above: Option<&'static str>,
}

/// A value that is no non-empty collection, or any value in flow style, on one line; `like` is the style
/// of what stood there.
pub(super) fn inline(value: &Value, like: ScalarStyle, in_flow: bool) -> Result<String, String> {
    Ok(match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => float(*value),
        Value::Str(text) => string(text, like, in_flow),
        Value::Other(kind, text) => match schema::plain(text) {
            Ok(Plain::Value(read)) if read == *value => text.to_string(),
            _ => return Err(format!("a value of type {kind} cannot be written")),
        },
        Value::List(items) => {
            let items: Result<Vec<_>, _> =
                items.iter().map(|item| inline(item, like, true)).collect();
            format!("[{}]", items?.join(", "))
        }
        Value::Map(entries) => {
            let entries: Result<Vec<_>, String> = entries
                .iter()
                .map(|(name, value)| {
                    Ok(format!(
                        "{}: {}",
                        key(name, like, true)?,
                        inline(value, like, true)?
                    ))
                })
                .collect();
            format!("{{{}}}", entries?.join(", "))
        }
    })
}

/// Whether a value goes on lines of its own in block style.
pub(super) fn is_tall(value: &Value) -> bool {
    match value {
        Value::List(items) => !items.is_empty(),
        Value::Map(entries) => !entries.is_empty(),
        _ => false,
    }
}

/// The key of a new entry.
pub(super) fn key(name: &Value, like: ScalarStyle, in_flow: bool) -> Result<String, String> {
    match name {
        Value::Str(text) => Ok(string(
            text,
            like,
            in_flow || text.contains([':', '#', '?']),
        )),
        other => Err(format!("a key that is {} is never written", other.kind())),
    }
}

/// The key of a new entry, from a step of a path.
pub(super) fn path_key(step: &Key, like: ScalarStyle, in_flow: bool) -> Result<String, String> {
    match step {
        Key::Name(name) => key(&Value::from(name.as_str()), like, in_flow),
        Key::Index(_) | Key::Other(_) => Err("only a key that is text is ever added".to_owned()),
    }
}

/// An entry in block style whose key is written already: lines from `column`, without a final line end.
pub(super) fn entry(
    name: &str,
    value: &Value,
    column: usize,
    layout: Layout,
) -> Result<String, String> {
    let pad = " ".repeat(column);
    if is_tall(value) {
        let below = below(value, column, layout)?;
        Ok(format!("{pad}{name}:{}{below}", layout.eol))
    } else {
        Ok(format!(
            "{pad}{name}: {}",
            inline(value, ScalarStyle::Plain, false)?
        ))
    }
}

/// The lines of a non-empty collection below a key that stands in `column`.
pub(super) fn below(value: &Value, column: usize, layout: Layout) -> Result<String, String> {
    match value {
        Value::List(_) => block(value, column + layout.dash, layout),
        _ => block(value, column + layout.unit, layout),
    }
}

/// The lines of a non-empty collection from `column` on, without a final line end.
pub(super) fn block(value: &Value, column: usize, layout: Layout) -> Result<String, String> {
    let lines: Result<Vec<_>, String> = match value {
        Value::List(items) => items
            .iter()
            .map(|value| item(value, column, layout))
            .collect(),
        Value::Map(entries) => entries
            .iter()
            .map(|(name, value)| {
                entry(
                    &key(name, ScalarStyle::Plain, false)?,
                    value,
                    column,
                    layout,
                )
            })
            .collect(),
        other => Ok(vec![format!(
            "{}{}",
            " ".repeat(column),
            inline(other, ScalarStyle::Plain, false)?
        )]),
    };
    Ok(lines?.join(layout.eol))
}

/// An item in block style, its dash in `column`, without a final line end.
pub(super) fn item(value: &Value, column: usize, layout: Layout) -> Result<String, String> {
    let lines = block_or_inline(value, column + 2, layout)?;
    Ok(format!(
        "{}- {}",
        " ".repeat(column),
        lines.trim_start_matches(' ')
    ))
}

fn block_or_inline(value: &Value, column: usize, layout: Layout) -> Result<String, String> {
    if is_tall(value) {
        block(value, column, layout)
    } else {
        inline(value, ScalarStyle::Plain, false)
    }
}

/// Text in literal style, if it can be: the header and the lines from `column` on, without a final line end.
pub(super) fn literal(text: &str, column: usize, layout: Layout) -> Option<String> {
    let body = text.trim_end_matches('\n');
    let is_plain = body.contains('\n')
        && !body.starts_with([' ', '\n'])
        && body.chars().all(|c| c == '\n' || is_printable(c))
        && body.lines().all(|line| !line.ends_with(' '));
    // More than one line feed at the end would swallow blank lines that follow.
    let chomp = match text.len() - body.len() {
        0 => "-",
        1 => "",
        _ => return None,
    };
    if !is_plain {
        return None;
    }
    let mut lines = format!("|{chomp}");
    for line in body.split('\n') {
        lines.push_str(layout.eol);
        if !line.is_empty() {
            lines.extend(std::iter::repeat_n(' ', column));
            lines.push_str(line);
        }
    }
    Some(lines)
}

/// A number that every loader reads as one: with a dot, and a sign in the exponent.
fn float(value: f64) -> String {
    if value.is_nan() {
        return ".nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let text = format!("{value:?}");
    match text.split_once('e') {
        None => text,
        Some((mantissa, exponent)) => {
            let dot = if mantissa.contains('.') { "" } else { ".0" };
            let sign = if exponent.starts_with('-') { "" } else { "+" };
            format!("{mantissa}{dot}e{sign}{exponent}")
        }
    }
}

fn string(text: &str, like: ScalarStyle, in_flow: bool) -> String {
    let is_single = text.chars().all(is_printable);
    match like {
        ScalarStyle::DoubleQuoted => double(text),
        ScalarStyle::SingleQuoted if is_single => single(text),
        _ if is_plain(text, in_flow) => text.to_owned(),
        _ if is_single && text.contains(['"', '\\']) => single(text),
        _ => double(text),
    }
}

/// Whether text means itself without quotes, to every loader and wherever it stands.
fn is_plain(text: &str, in_flow: bool) -> bool {
    let Some(first) = text.chars().next() else {
        return false;
    };
    let begins_well = first.is_alphanumeric()
        || (!first.is_ascii() && !first.is_whitespace())
        || matches!(first, '_' | '/' | '.' | '$' | '(' | '+' | '^' | '<' | ';');
    let means_itself = matches!(schema::plain(text), Ok(Plain::Value(Value::Str(_))))
        && !schema::is_disputed(text)
        && !schema::breaks_ruamel(text);
    let is_marker = text.starts_with("...");
    let has_syntax = text.contains(": ") || text.contains(" #") || text.ends_with([':', ' ']);
    let has_flow_syntax = text.contains([',', '[', ']', '{', '}', '?', ':', '#']);
    begins_well
        && means_itself
        && !is_marker
        && !has_syntax
        && !(in_flow && has_flow_syntax)
        && text.chars().all(is_printable)
}

/// Whether a character stands for itself in every style, on one line.
fn is_printable(c: char) -> bool {
    !c.is_control()
        && !matches!(
            c,
            '\u{2028}' | '\u{2029}' | '\u{FEFF}' | '\u{FFFE}' | '\u{FFFF}'
        )
}

fn single(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn double(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\0' => quoted.push_str("\\0"),
            c if is_printable(c) => quoted.push(c),
            // What is not printable lies in the basic plane.
            c => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
        }
    }
    quoted.push('"');
    quoted
}
