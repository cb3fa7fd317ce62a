//! JSON, edited by its bytes: what an edit does not name keeps indentation, order and notation.
//!
//! Strict: no comments, no trailing commas, one value, and equal keys are refused, because readers differ
//! in which of them counts.

mod read;

use std::ops::Range;

use super::{Document, Edit, Invalid, Key, Path, Refusal, Scalar, Value, intent};
use read::Reader;

/// A JSON document.
#[derive(Debug)]
pub struct Json {
    text: String,
    root: Node,
    value: Value,
}

/// A value and where it stands.
#[derive(Debug)]
struct Node {
    range: Range<usize>,
    children: Vec<Child>,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Scalar,
    List,
    Map,
}

/// A member or item.
#[derive(Debug)]
struct Child {
    name: Option<String>,
    /// Its first byte: the key of a member.
    start: usize,
    /// Where the key of a member stands, with its quotes.
    key: Range<usize>,
    node: Node,
}

impl Json {
    /// Reads a document.
    ///
    /// # Errors
    /// When the bytes are not UTF-8 or not strict JSON, or a key is there twice.
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
        let mut reader = Reader {
            text: &text,
            at: 0,
            depth: 0,
        };
        let (root, value) = reader.document()?;
        Ok(Self { text, root, value })
    }

    fn line(&self, at: usize) -> usize {
        1 + self.text[..at].matches('\n').count()
    }

    /// Follows a path as far as it goes: the last value found, and how many steps led there.
    fn reach(&self, path: &Path) -> (&Node, usize) {
        let mut node = &self.root;
        for (depth, key) in path.0.iter().enumerate() {
            match position(node, key) {
                Some(position) => node = &node.children[position].node,
                None => return (node, depth),
            }
        }
        (node, path.0.len())
    }

    /// The bytes to replace for an edit.
    fn change(&self, edit: &Edit, after: &Value) -> Result<Vec<(Range<usize>, String)>, String> {
        match edit {
            Edit::Set { path, value } => self.set(path, value),
            Edit::Append { path, value } => match self.reach(path) {
                (node, depth) if depth == path.0.len() && node.kind == Kind::List => {
                    Ok(vec![self.insert(node, |layout, column| {
                        write(value, layout, column)
                    })?])
                }
                _ => self.set(path, after.get(path).ok_or("it is not there")?),
            },
            Edit::Remove { path } => self.remove(path).map(|splice| vec![splice]),
            Edit::Move { from, to } => {
                if let (true, Some(Key::Name(name))) = (intent::same_holder(from, to), to.0.last())
                {
                    let (holder, position) = self.holder(from)?;
                    return Ok(vec![(holder.children[position].key.clone(), quoted(name))]);
                }
                // What is removed may be the last of its object while the new place lies in it.
                Err("a value moves only within its object".to_owned())
            }
            Edit::Text { .. } => Err("only a text is replaced as a whole".to_owned()),
        }
    }

    fn set(&self, path: &Path, value: &Value) -> Result<Vec<(Range<usize>, String)>, String> {
        let (node, depth) = self.reach(path);
        let Some((key, rest)) = path.0[depth..].split_first() else {
            let text = write(value, self.layout(), self.column(node.range.start))?;
            return Ok(vec![(node.range.clone(), text)]);
        };
        let nested = rest
            .iter()
            .rev()
            .try_fold(value.clone(), |inner, key| match key {
                Key::Name(name) => Ok(Value::Map(vec![(Value::from(name.as_str()), inner)])),
                other => Err(format!("there is no `{other}`")),
            })?;
        let Key::Name(name) = key else {
            return Err(format!("there is no `{key}`"));
        };
        if node.kind == Kind::Scalar {
            let map = Value::Map(vec![(Value::from(name.as_str()), nested)]);
            let text = write(&map, self.layout(), self.column(node.range.start))?;
            return Ok(vec![(node.range.clone(), text)]);
        }
        Ok(vec![self.insert(node, |layout, column| {
            Ok(format!(
                "{}: {}",
                quoted(name),
                write(&nested, layout, column)?
            ))
        })?])
    }

    /// Adds a member or item at the end of a collection.
    fn insert(
        &self,
        node: &Node,
        text: impl Fn(Layout<'_>, &str) -> Result<String, String>,
    ) -> Result<(Range<usize>, String), String> {
        let layout = self.layout();
        let Some(last) = node.children.last() else {
            let outer = self.column(node.range.start);
            let inside = node.range.start + 1..node.range.end - 1;
            let Some(unit) = layout.unit else {
                return Ok((inside, text(layout, "")?));
            };
            let inner = format!("{outer}{unit}");
            let eol = layout.eol;
            return Ok((
                inside,
                format!("{eol}{inner}{}{eol}{outer}", text(layout, &inner)?),
            ));
        };
        let end = last.node.range.end;
        let line = self.text[..last.start]
            .rfind('\n')
            .map_or(0, |feed| feed + 1);
        let indent = &self.text[line..last.start];
        let is_own_line = line > node.range.start && indent.trim().is_empty();
        if is_own_line {
            Ok((
                end..end,
                format!(",{}{indent}{}", layout.eol, text(layout, indent)?),
            ))
        } else {
            // On one line with its neighbours, however the rest of the file looks.
            let flat = Layout {
                unit: None,
                ..layout
            };
            Ok((end..end, format!(", {}", text(flat, "")?)))
        }
    }

    fn holder(&self, path: &Path) -> Result<(&Node, usize), String> {
        let absent = || "it is not there".to_owned();
        let (parent, key) = path.split_last().ok_or_else(absent)?;
        let (node, depth) = self.reach(&parent);
        let position = position(node, key).filter(|_| depth == parent.0.len());
        Ok((node, position.ok_or_else(absent)?))
    }

    fn remove(&self, path: &Path) -> Result<(Range<usize>, String), String> {
        let (node, position) = self.holder(path)?;
        let children = &node.children;
        let child = &children[position];
        let range = if children.len() == 1 {
            node.range.start + 1..node.range.end - 1
        } else if let Some(next) = children.get(position + 1) {
            child.start..next.start
        } else {
            children[position - 1].node.range.end..child.node.range.end
        };
        Ok((range, String::new()))
    }

    /// The blanks at the start of the line that holds `at`.
    fn column(&self, at: usize) -> &str {
        let line = self.text[..at].rfind('\n').map_or(0, |feed| feed + 1);
        let rest = &self.text[line..at];
        &rest[..rest.len() - rest.trim_start_matches([' ', '\t']).len()]
    }

    /// How the file is laid out.
    fn layout(&self) -> Layout<'_> {
        let feed = self.text.find('\n');
        let eol = match feed {
            Some(feed) if self.text[..feed].ends_with('\r') => "\r\n",
            _ => "\n",
        };
        let unit = self.root.children.first().and_then(|child| {
            let line = self.text[..child.start].rfind('\n')? + 1;
            let indent = &self.text[line..child.start];
            (indent.trim().is_empty() && line > self.root.range.start).then_some(indent)
        });
        // A file that holds nothing yet gets two blanks.
        let unit = unit.or(self.root.children.is_empty().then_some("  "));
        Layout { unit, eol }
    }
}

/// How a file is laid out.
#[derive(Debug, Clone, Copy)]
struct Layout<'t> {
    /// What each level is indented by; nothing if all is on one line.
    unit: Option<&'t str>,
    eol: &'static str,
}

fn position(node: &Node, key: &Key) -> Option<usize> {
    match (node.kind, key) {
        (Kind::List, Key::Index(index)) => (*index < node.children.len()).then_some(*index),
        (Kind::Map, Key::Name(name)) => node
            .children
            .iter()
            .position(|child| child.name.as_deref() == Some(name)),
        _ => None,
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A value that starts on a line indented by `column`.
fn write(value: &Value, layout: Layout<'_>, column: &str) -> Result<String, String> {
    let (open, close, parts): (_, _, Vec<(String, &Value)>) = match value {
        Value::List(items) => (
            '[',
            ']',
            items.iter().map(|item| (String::new(), item)).collect(),
        ),
        Value::Map(entries) => {
            let member = |(key, value): &'_ (Value, Value)| {
                match key {
                    Value::Str(name) => Ok(format!("{}: ", quoted(name))),
                    _ => Err(format!("a key that is {} is never written", key.kind())),
                }
                .map(|key| (key, value.clone()))
            };
            let members: Result<Vec<_>, String> = entries.iter().map(member).collect();
            let members = members?;
            return write_parts('{', '}', &members, layout, column);
        }
        Value::Float(number) if !number.is_finite() => {
            return Err("JSON has no such number".to_owned());
        }
        Value::Other("int", digits) if digits.bytes().all(|b| b.is_ascii_digit() || b == b'-') => {
            return Ok(digits.to_string());
        }
        Value::Other(kind, _) => return Err(format!("a value of type {kind} cannot be written")),
        scalar => return Ok(scalar.to_json().to_string()),
    };
    let parts: Vec<(String, Value)> = parts
        .into_iter()
        .map(|(key, value)| (key, value.clone()))
        .collect();
    write_parts(open, close, &parts, layout, column)
}

fn write_parts(
    open: char,
    close: char,
    parts: &[(String, Value)],
    layout: Layout<'_>,
    column: &str,
) -> Result<String, String> {
    if parts.is_empty() {
        return Ok(format!("{open}{close}"));
    }
    let inner = layout.unit.map(|unit| format!("{column}{unit}"));
    let texts: Result<Vec<String>, String> = parts
        .iter()
        .map(|(key, value)| {
            Ok(format!(
                "{key}{}",
                write(value, layout, inner.as_deref().unwrap_or(""))?
            ))
        })
        .collect();
    let texts = texts?;
    Ok(match &inner {
        None => format!("{open}{}{close}", texts.join(", ")),
        Some(inner) => {
            let eol = layout.eol;
            let between = format!(",{eol}{inner}");
            format!(
                "{open}{eol}{inner}{}{eol}{column}{close}",
                texts.join(&between)
            )
        }
    })
}

impl Document for Json {
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
        if after == self.value {
            return Ok(());
        }
        if let (Edit::Move { from, to }, false) = (edit, is_rename(edit)) {
            // Written first and removed then, so that no object is empty in between.
            let value = self.value.get(from).cloned().unwrap_or(Value::Null);
            let mut copy =
                Self::read(self.text.clone()).map_err(|invalid| refuse(invalid.to_string()))?;
            copy.edit(&Edit::Set {
                path: to.clone(),
                value,
            })?;
            copy.edit(&Edit::Remove { path: from.clone() })?;
            if copy.value != after {
                return Err(refuse("something else would change, too".to_owned()));
            }
            *self = copy;
            return Ok(());
        }
        let mut text = self.text.clone();
        for (range, new) in self.change(edit, &after).map_err(refuse)?.into_iter().rev() {
            text.replace_range(range, &new);
        }
        let new = Self::read(text)
            .map_err(|invalid| refuse(format!("it cannot be written in place ({invalid})")))?;
        if new.value != after {
            return Err(refuse("something else would change, too".to_owned()));
        }
        *self = new;
        Ok(())
    }

    fn prove(&self) -> Result<(), Invalid> {
        // Every edit was proved on the whole text.
        Ok(())
    }

    fn line_of(&self, path: &Path) -> Option<usize> {
        if path.is_root() {
            return Some(self.line(self.root.range.start));
        }
        let (node, position) = self.holder(path).ok()?;
        Some(self.line(node.children[position].start))
    }

    fn scalars(&self) -> Result<Vec<Scalar>, Invalid> {
        let mut found = Vec::new();
        scalars(&self.root, &self.value, &Path::root(), &mut found);
        Ok(found)
    }
}

/// The scalars of a value; its nodes were read in the order of its entries.
fn scalars(node: &Node, value: &Value, path: &Path, found: &mut Vec<Scalar>) {
    match value {
        Value::Map(entries) => {
            for (child, (key, value)) in node.children.iter().zip(entries) {
                scalars(&child.node, value, &path.child(key.to_key()), found);
            }
        }
        Value::List(items) => {
            for (index, (child, value)) in node.children.iter().zip(items).enumerate() {
                scalars(&child.node, value, &path.index(index), found);
            }
        }
        value => found.push(Scalar {
            path: path.clone(),
            at: node.range.clone(),
            value: value.clone(),
        }),
    }
}

fn is_rename(edit: &Edit) -> bool {
    matches!(edit, Edit::Move { from, to } if intent::same_holder(from, to))
}

#[cfg(test)]
mod tests;
