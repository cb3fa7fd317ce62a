//! Where a value stands in a document, and how that is written: `display.platforms."a.b"[2]`.
//!
//! A name that holds one of `. [ ] { } "`, a blank or a control character, or is empty, is written as a
//! JSON string. `[2]` is a position in a sequence. `{5}` is a key that is not text (the number 5; `{true}`
//! is the truth value). Everybody may use this; it knows nothing of a file.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Where a value stands: keys of mappings and positions in sequences.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path(pub Vec<Key>);

/// One step of a [`Path`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// A key of a mapping that is text.
    Name(String),
    /// A position in a sequence, from 0.
    Index(usize),
    /// A key of a mapping that is not text, in the spelling of [`super::Value::key_text`].
    Other(String),
}

impl Path {
    /// The whole document.
    #[must_use]
    pub const fn root() -> Self {
        Self(Vec::new())
    }

    /// Whether this is the whole document.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The value under `name` in this mapping.
    #[must_use]
    pub fn name(&self, name: impl Into<String>) -> Self {
        self.child(Key::Name(name.into()))
    }

    /// The item at `index` of this sequence, from 0.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.child(Key::Index(index))
    }

    /// One step further down.
    #[must_use]
    pub fn child(&self, key: Key) -> Self {
        let mut keys = Vec::with_capacity(self.0.len() + 1);
        keys.extend_from_slice(&self.0);
        keys.push(key);
        Self(keys)
    }

    /// Where the value is held, and its last step; nothing for the root.
    #[must_use]
    pub fn split_last(&self) -> Option<(Self, &Key)> {
        let (last, parent) = self.0.split_last()?;
        Some((Self(parent.to_vec()), last))
    }

    /// Whether `self` is `prefix` or lies below it.
    #[must_use]
    pub fn starts_with(&self, prefix: &Self) -> bool {
        self.0.starts_with(&prefix.0)
    }
}

impl<const N: usize> From<[&str; N]> for Path {
    fn from(names: [&str; N]) -> Self {
        Self(
            names
                .iter()
                .map(|name| Key::Name((*name).to_owned()))
                .collect(),
        )
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, key) in self.0.iter().enumerate() {
            if position > 0 && !matches!(key, Key::Index(_)) {
                f.write_str(".")?;
            }
            fmt::Display::fmt(key, f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) if is_bare(name) => f.write_str(name),
            Self::Name(name) => write!(f, "{}", serde_json::Value::from(name.as_str())),
            Self::Index(index) => write!(f, "[{index}]"),
            Self::Other(text) => write!(f, "{{{text}}}"),
        }
    }
}

/// Whether a name needs no quotes in a path.
fn is_bare(name: &str) -> bool {
    !name.is_empty()
        && !name.chars().any(|c| {
            matches!(c, '.' | '[' | ']' | '{' | '}' | '"') || c.is_whitespace() || c.is_control()
        })
}

/// Why a text is not a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathError {
    text: String,
    reason: &'static str,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a path: {}", self.text, self.reason)
    }
}

impl std::error::Error for PathError {}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let fail = |reason| PathError {
            text: text.to_owned(),
            reason,
        };
        let mut keys = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(inside) = rest.strip_prefix('[') {
                let (digits, after) = inside
                    .split_once(']')
                    .ok_or_else(|| fail("a `[` is not closed"))?;
                let index = digits
                    .parse()
                    .map_err(|_| fail("between `[` and `]` stands no position"))?;
                keys.push(Key::Index(index));
                rest = after;
            } else {
                if !keys.is_empty() {
                    rest = rest
                        .strip_prefix('.')
                        .ok_or_else(|| fail("a `.` is missing between two keys"))?;
                }
                let (key, after) = next_key(rest).map_err(fail)?;
                keys.push(key);
                rest = after;
            }
        }
        Ok(Self(keys))
    }
}

/// Takes one name, quoted or bare, or one `{…}` off the front.
fn next_key(rest: &str) -> Result<(Key, &str), &'static str> {
    if rest.starts_with('"') {
        let mut quoted = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        return match quoted.next() {
            Some(Ok(name)) => Ok((Key::Name(name), &rest[quoted.byte_offset()..])),
            _ => Err("a quoted key is not a JSON string"),
        };
    }
    if let Some(inside) = rest.strip_prefix('{') {
        let (key, after) = inside.split_once('}').ok_or("a `{` is not closed")?;
        return Ok((Key::Other(key.to_owned()), after));
    }
    let end = rest.find(['.', '[']).unwrap_or(rest.len());
    let (name, after) = rest.split_at(end);
    if is_bare(name) {
        Ok((Key::Name(name.to_owned()), after))
    } else {
        Err("a key is empty, or needs quotes")
    }
}

impl Serialize for Path {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Path {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_back_as_it_was_written() {
        let paths = [
            Path::root(),
            Path::from(["a", "b-c", "d e", "x.y", "", "\"", "*", "é", "\n"]),
            Path::from(["a"]).index(0).name("b").index(12).index(3),
            Path::root()
                .index(1)
                .name("[x]")
                .child(Key::Other("5".into())),
        ];
        for path in paths {
            assert_eq!(path.to_string().parse(), Ok(path.clone()), "{path}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for text in [
            ".", "a.", ".a", "a..b", "a[", "a[x]", "a[1]b", "a b", "\"a", "{a", "a]", "\"a\"b",
        ] {
            assert!(text.parse::<Path>().is_err(), "{text}");
        }
    }
}
