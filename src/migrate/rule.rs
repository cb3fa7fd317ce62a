//! What a step says: its changes and their conditions, parsed into types that cannot be wrong.
//!
//! A [`Change`] is read from one `[[change]]` of a step's file. Each operation takes exactly the keys that
//! it needs; any other key is an error, so that a misspelt condition never means "always".

mod read;

pub(super) use read::RawChange;

use serde::{Deserialize, Serialize};

use super::pattern::Pattern;
use crate::document::Value;

/// One change of a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// The file that it changes, relative to the home.
    pub file: String,
    /// What it does.
    pub op: Op,
    /// It is made only where all of these hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<When>,
    /// From this expected version on the value is the schema's default, and is not written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_since: Option<u32>,
}

/// What a change does.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum Op {
    /// Gives a path a value, whatever is there.
    Set {
        /// Where.
        path: Pattern,
        /// What.
        value: Value,
    },
    /// Gives a path a value if it has none.
    SetDefault {
        /// Where.
        path: Pattern,
        /// What.
        value: Value,
    },
    /// Gives a path another value if it has one.
    Replace {
        /// Where.
        path: Pattern,
        /// What.
        value: Value,
    },
    /// Removes a key or an item.
    Remove {
        /// Where.
        path: Pattern,
    },
    /// Moves a value to a path that has none; where that has one, the value only goes.
    Move {
        /// From where.
        path: Pattern,
        /// To where.
        to: Pattern,
    },
    /// Copies a value to a path that has none.
    Copy {
        /// From where.
        path: Pattern,
        /// To where.
        to: Pattern,
    },
    /// Adds an item to a list that is there and lacks it.
    Append {
        /// Which list.
        path: Pattern,
        /// What.
        value: Value,
    },
    /// Removes every item of a list that equals one of these.
    RemoveItem {
        /// Which list.
        path: Pattern,
        /// Which items.
        values: Vec<Value>,
    },
    /// Makes a folder, and those above it, if it is not there.
    MakeDir {
        /// Relative to the home.
        path: String,
    },
    /// A rule that the operations cannot say, written in Rust.
    Builtin {
        /// Which one.
        name: String,
        /// What it needs to know.
        options: Value,
    },
}

/// A condition on a value of the file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct When {
    /// Whose value; the change's own path if it names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Pattern>,
    /// What must hold.
    pub test: Test,
}

/// What must hold for a value.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// It is one of these; whole numbers and others compare by size, truth values are no numbers.
    OneOf(Vec<Value>),
    /// It is text and one of these words, whatever its case and the blanks around it.
    Word(Vec<String>),
    /// It is there, and none of these words.
    NotWord(Vec<String>),
    /// Whether it is absent.
    Absent(bool),
    /// It is of this type.
    IsType(Type),
    /// It is there, and of another type.
    NotType(Type),
    /// Whether people would read it as "yes": true, a number but 0, or `true`, `yes`, `on`, `1`.
    Truthy(bool),
}

/// A type of value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Type {
    /// Nothing.
    Null,
    /// A truth value.
    Bool,
    /// A whole or other number.
    Number,
    /// Text.
    Text,
    /// A sequence.
    List,
    /// A mapping.
    Mapping,
}

impl Type {
    /// Whether `value` is of it.
    #[must_use]
    pub const fn fits(self, value: &Value) -> bool {
        match self {
            Self::Null => matches!(value, Value::Null),
            Self::Bool => matches!(value, Value::Bool(_)),
            Self::Number => matches!(value, Value::Int(_) | Value::Float(_)),
            Self::Text => matches!(value, Value::Str(_)),
            Self::List => matches!(value, Value::List(_)),
            Self::Mapping => matches!(value, Value::Map(_)),
        }
    }
}

impl Test {
    /// Whether it holds for a value, or for its absence.
    #[must_use]
    pub fn holds(&self, value: Option<&Value>) -> bool {
        match self {
            Self::OneOf(values) => {
                value.is_some_and(|value| values.iter().any(|own| same(own, value)))
            }
            Self::Word(words) => value.is_some_and(|value| is_word(value, words)),
            Self::NotWord(words) => value.is_some_and(|value| !is_word(value, words)),
            Self::Absent(absent) => value.is_none() == *absent,
            Self::IsType(kind) => value.is_some_and(|value| kind.fits(value)),
            Self::NotType(kind) => value.is_some_and(|value| !kind.fits(value)),
            Self::Truthy(truthy) => value.is_some_and(|value| is_truthy(value) == *truthy),
        }
    }
}

/// Whether two values are the same to a person: `24` and `24.0` are, `1` and `true` are not.
#[must_use]
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        #[expect(clippy::cast_precision_loss, reason = "defaults are small numbers")]
        (Value::Int(int), Value::Float(float)) | (Value::Float(float), Value::Int(int)) => {
            *int as f64 == *float
        }
        _ => a == b,
    }
}

/// Whether people would read a value as "yes".
#[must_use]
pub fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Bool(value) => *value,
        Value::Int(value) => *value != 0,
        Value::Str(text) => {
            matches!(
                text.trim().to_lowercase().as_str(),
                "true" | "yes" | "on" | "1"
            )
        }
        _ => false,
    }
}

fn is_word(value: &Value, words: &[String]) -> bool {
    value.as_str().is_some_and(|text| {
        let text = text.trim().to_lowercase();
        words.iter().any(|word| word.to_lowercase() == text)
    })
}

impl Change {
    pub(super) fn check(&self) -> Result<(), String> {
        let own = match &self.op {
            Op::MakeDir { path } => {
                if !is_inside(path) || !self.when.is_empty() {
                    return Err(
                        "make-dir takes a path inside the home, and no condition".to_owned()
                    );
                }
                return Ok(());
            }
            Op::Builtin { name, .. } => {
                if !super::builtin::is_known(name) {
                    return Err(format!("there is no builtin {name:?}"));
                }
                if !self.when.is_empty() {
                    return Err("a builtin takes no condition".to_owned());
                }
                return Ok(());
            }
            Op::Set { path, .. }
            | Op::SetDefault { path, .. }
            | Op::Replace { path, .. }
            | Op::Remove { path }
            | Op::Move { path, .. }
            | Op::Copy { path, .. }
            | Op::Append { path, .. }
            | Op::RemoveItem { path, .. } => path,
        };
        if !is_inside(&self.file) {
            return Err(format!("{:?} is not a file inside the home", self.file));
        }
        let target = match &self.op {
            Op::Move { to, .. } | Op::Copy { to, .. } => Some(to),
            _ => None,
        };
        let others = self
            .when
            .iter()
            .filter_map(|when| when.path.as_ref())
            .chain(target);
        for other in others {
            if other.stars() > own.stars() {
                return Err(format!("{other} has a `*` that {own} does not have"));
            }
        }
        Ok(())
    }

    /// The files that it may change and, in each, the paths. A builtin's are declared by its step.
    pub(super) fn touches(&self) -> Vec<(&str, Option<&Pattern>)> {
        let file = self.file.as_str();
        match &self.op {
            Op::Set { path, .. }
            | Op::SetDefault { path, .. }
            | Op::Replace { path, .. }
            | Op::Remove { path }
            | Op::Append { path, .. }
            | Op::RemoveItem { path, .. } => vec![(file, Some(path))],
            Op::Move { path, to } => vec![(file, Some(path)), (file, Some(to))],
            Op::Copy { to, .. } => vec![(file, Some(to))],
            Op::MakeDir { .. } | Op::Builtin { .. } => Vec::new(),
        }
    }
}

/// Whether a relative path stays inside the home by its words alone.
pub(super) fn is_inside(path: &str) -> bool {
    !path.is_empty()
        && path
            .split('/')
            .all(|part| !part.is_empty() && part != "." && part != "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_hold_by_meaning() {
        let text = |text: &str| Value::from(text);
        let word = Test::Word(vec!["auto".into()]);
        assert!(word.holds(Some(&text(" AUTO "))));
        assert!(!word.holds(Some(&text("automatic"))) && !word.holds(None));
        let one = Test::OneOf(vec![Value::Int(1)]);
        assert!(one.holds(Some(&Value::Float(1.0))));
        assert!(!one.holds(Some(&Value::Bool(true))) && !one.holds(Some(&text("1"))));
        assert!(Test::NotWord(vec!["x".into()]).holds(Some(&Value::Null)));
        assert!(!Test::NotWord(vec!["x".into()]).holds(None));
        assert!(Test::Absent(true).holds(None) && !Test::Absent(true).holds(Some(&Value::Null)));
        assert!(Test::Truthy(true).holds(Some(&text("On"))) && !Test::Truthy(true).holds(None));
    }

    #[test]
    fn a_path_that_leaves_the_home_is_refused() {
        assert!(is_inside("logs/curator") && is_inside(".env"));
        for path in ["", "/etc", "../x", "a/../../b", "a//b", "./a"] {
            assert!(!is_inside(path), "{path}");
        }
    }
}
