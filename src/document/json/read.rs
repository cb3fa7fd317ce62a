//! Reads strict JSON and keeps where everything stands.

use std::collections::HashSet;

use super::super::{Invalid, MAX_DEPTH, Value};
use super::{Child, Kind, Node};

/// Reads strict JSON with positions; strings and numbers are taken apart by serde_json.
pub(super) struct Reader<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    pub(super) depth: usize,
}

impl Reader<'_> {
    fn fail<T>(&self, at: usize, reason: impl Into<String>) -> Result<T, Invalid> {
        let line = 1 + self.text.as_bytes()[..at.min(self.text.len())]
            .iter()
            .filter(|b| **b == b'\n')
            .count();
        Err(Invalid::new(line, reason))
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    pub(super) fn document(&mut self) -> Result<(Node, Value), Invalid> {
        self.blanks();
        let found = self.value()?;
        self.blanks();
        if self.at < self.text.len() {
            return self.fail(self.at, "something stands behind the value");
        }
        Ok(found)
    }

    fn value(&mut self) -> Result<(Node, Value), Invalid> {
        match self.peek() {
            Some(b'{') => self.collection(Kind::Map, b'}'),
            Some(b'[') => self.collection(Kind::List, b']'),
            Some(_) => self.scalar(),
            None => self.fail(self.at, "the text ends where a value should stand"),
        }
    }

    fn collection(&mut self, kind: Kind, close: u8) -> Result<(Node, Value), Invalid> {
        let start = self.at;
        if self.depth == MAX_DEPTH {
            return self.fail(start, "nested more than 64 levels deep");
        }
        self.depth += 1;
        self.at += 1;
        let mut children = Vec::new();
        let mut values = Vec::new();
        let mut names = HashSet::new();
        self.blanks();
        while self.peek() != Some(close) {
            if !children.is_empty() {
                if self.peek() != Some(b',') {
                    return self.fail(
                        self.at,
                        format!("`,` or `{}` is missing", char::from(close)),
                    );
                }
                self.at += 1;
                self.blanks();
            }
            let start = self.at;
            let name = if kind == Kind::Map {
                Some(self.key()?)
            } else {
                None
            };
            let key = start..self.at;
            if let Some(name) = &name {
                if !names.insert(name.clone()) {
                    return self.fail(start, format!("the key `{name}` is there twice"));
                }
                self.blanks();
                if self.peek() != Some(b':') {
                    return self.fail(self.at, "`:` is missing");
                }
                self.at += 1;
                self.blanks();
            }
            let (node, value) = self.value()?;
            values.push((name.as_deref().unwrap_or_default().into(), value));
            children.push(Child {
                name,
                start,
                key,
                node,
            });
            self.blanks();
        }
        self.at += 1;
        self.depth -= 1;
        let value = match kind {
            Kind::List => Value::List(values.into_iter().map(|(_, value)| value).collect()),
            _ => Value::Map(values),
        };
        Ok((
            Node {
                range: start..self.at,
                children,
                kind,
            },
            value,
        ))
    }

    fn key(&mut self) -> Result<String, Invalid> {
        let start = self.at;
        if self.peek() != Some(b'"') {
            return self.fail(start, "a key is not in double quotes");
        }
        match self.scalar()?.1 {
            Value::Str(name) => Ok(name.into()),
            _ => self.fail(start, "a key is not text"),
        }
    }

    fn scalar(&mut self) -> Result<(Node, Value), Invalid> {
        let start = self.at;
        let rest = &self.text.as_bytes()[start..];
        let length = if rest[0] == b'"' {
            let mut at = 1;
            while at < rest.len() && rest[at] != b'"' {
                at += if rest[at] == b'\\' { 2 } else { 1 };
            }
            at + 1
        } else {
            let ends_it =
                |b: &u8| matches!(b, b' ' | b'\t' | b'\r' | b'\n' | b',' | b']' | b'}' | b':');
            rest.iter().position(ends_it).unwrap_or(rest.len())
        };
        let text = self.text.get(start..start + length);
        let Some(json) = text.and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok())
        else {
            return self.fail(start, "not a value of JSON");
        };
        self.at += length;
        let value = match (&json, text) {
            // Whole numbers that are too wide come back as fractions.
            (serde_json::Value::Number(number), Some(text))
                if number.is_f64() && !text.contains(['.', 'e', 'E']) =>
            {
                Value::Other("int", text.into())
            }
            _ => Value::from(&json),
        };
        Ok((
            Node {
                range: start..self.at,
                children: Vec::new(),
                kind: Kind::Scalar,
            },
            value,
        ))
    }
}
