//! What a step says: its changes and their conditions, parsed into types that cannot be wrong.
//!
//! A [`Change`] is read from one `[[change]]` of a step's file. Each operation takes exactly the keys that
//! it needs; any other key is an error, so that a misspelt condition never means "always".

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

/// One `[[change]]` as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RawChange {
    op: String,
    file: Option<String>,
    path: Option<Pattern>,
    to: Option<Pattern>,
    value: Option<Value>,
    values: Option<Vec<Value>>,
    name: Option<String>,
    options: Option<Value>,
    #[serde(default)]
    when: RawConditions,
    default_since: Option<u32>,
}

#[derive(Default, Deserialize)]
#[serde(untagged)]
enum RawConditions {
    #[default]
    None,
    One(RawWhen),
    All(Vec<RawWhen>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawWhen {
    path: Option<Pattern>,
    equals: Option<Value>,
    one_of: Option<Vec<Value>>,
    word: Option<RawWords>,
    not_word: Option<RawWords>,
    absent: Option<bool>,
    is_type: Option<Type>,
    not_type: Option<Type>,
    truthy: Option<bool>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawWords {
    One(String),
    Any(Vec<String>),
}

impl RawWords {
    fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(word) => vec![word],
            Self::Any(words) => words,
        }
    }
}

impl RawWhen {
    /// Each key of a condition is one condition: all must hold.
    fn read(self, found: &mut Vec<When>) -> Result<(), String> {
        let tests = [
            self.equals.map(|value| Test::OneOf(vec![value])),
            self.one_of.map(Test::OneOf),
            self.word.map(|words| Test::Word(words.into_vec())),
            self.not_word.map(|words| Test::NotWord(words.into_vec())),
            self.absent.map(Test::Absent),
            self.is_type.map(Test::IsType),
            self.not_type.map(Test::NotType),
            self.truthy.map(Test::Truthy),
        ];
        let before = found.len();
        for test in tests.into_iter().flatten() {
            found.push(When {
                path: self.path.clone(),
                test,
            });
        }
        if found.len() == before {
            return Err("a condition says nothing".to_owned());
        }
        Ok(())
    }
}

impl Change {
    /// Turns what is written into a change; `config` is the file that is meant if none is named.
    pub(super) fn read(mut raw: RawChange, config: &str) -> Result<Self, String> {
        let mut when = Vec::new();
        match std::mem::take(&mut raw.when) {
            RawConditions::None => {}
            RawConditions::One(condition) => condition.read(&mut when)?,
            RawConditions::All(conditions) => {
                for condition in conditions {
                    condition.read(&mut when)?;
                }
            }
        }
        let named = raw.file.take();
        let default_since = raw.default_since.take();
        let (op, usual_file) = read_op(&mut raw)?;
        raw.nothing_left()?;
        let sets = matches!(
            op,
            Op::Set { .. } | Op::SetDefault { .. } | Op::Replace { .. }
        );
        if default_since.is_some() && !sets {
            return Err("default-since belongs to an operation that sets a value".to_owned());
        }
        let change = Self {
            file: named.unwrap_or_else(|| usual_file.unwrap_or(config).to_owned()),
            op,
            when,
            default_since,
        };
        change.check()?;
        Ok(change)
    }

    fn check(&self) -> Result<(), String> {
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

fn read_op(raw: &mut RawChange) -> Result<(Op, Option<&'static str>), String> {
    let op = raw.op.clone();
    let missing = |key: &str| format!("{op} needs a {key}");
    let path = |raw: &mut RawChange| raw.path.take().ok_or_else(|| missing("path"));
    let value = |raw: &mut RawChange| raw.value.take().ok_or_else(|| missing("value"));
    let to = |raw: &mut RawChange| raw.to.take().ok_or_else(|| missing("to"));
    let variable = |raw: &mut RawChange| {
        let name = raw.name.take().ok_or_else(|| missing("name"))?;
        Ok::<_, String>(Pattern::from(crate::document::Path::from([name.as_str()])))
    };
    let found = match op.as_str() {
        "set" => Op::Set {
            path: path(raw)?,
            value: value(raw)?,
        },
        "set-default" => Op::SetDefault {
            path: path(raw)?,
            value: value(raw)?,
        },
        "replace" => Op::Replace {
            path: path(raw)?,
            value: value(raw)?,
        },
        "remove" => Op::Remove { path: path(raw)? },
        "move" => Op::Move {
            path: path(raw)?,
            to: to(raw)?,
        },
        "copy" => Op::Copy {
            path: path(raw)?,
            to: to(raw)?,
        },
        "append" => Op::Append {
            path: path(raw)?,
            value: value(raw)?,
        },
        "remove-item" => Op::RemoveItem {
            path: path(raw)?,
            values: raw.values.take().ok_or_else(|| missing("list of values"))?,
        },
        // A variable is a key of its file; clearing one that is empty already changes nothing.
        "clear-env" => {
            return Ok((
                Op::Replace {
                    path: variable(raw)?,
                    value: "".into(),
                },
                Some(".env"),
            ));
        }
        "remove-env" => {
            return Ok((
                Op::Remove {
                    path: variable(raw)?,
                },
                Some(".env"),
            ));
        }
        "make-dir" => Op::MakeDir {
            path: path(raw)?.to_string(),
        },
        "builtin" => Op::Builtin {
            name: raw.name.take().ok_or_else(|| missing("name"))?,
            options: raw.options.take().unwrap_or(Value::Map(Vec::new())),
        },
        _ => return Err(format!("there is no operation {op:?}")),
    };
    Ok((found, None))
}

impl RawChange {
    /// A key that the operation did not take was meant for something else.
    fn nothing_left(&self) -> Result<(), String> {
        let left = [
            ("path", self.path.is_some()),
            ("to", self.to.is_some()),
            ("value", self.value.is_some()),
            ("values", self.values.is_some()),
            ("name", self.name.is_some()),
            ("options", self.options.is_some()),
        ];
        match left.into_iter().find(|(_, there)| *there) {
            Some((key, _)) => Err(format!("{} takes no {key}", self.op)),
            None => Ok(()),
        }
    }
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
