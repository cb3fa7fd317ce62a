//! From a step's file to its changes: every key belongs to the operation that takes it, or is an error.

use serde::Deserialize;

use super::{Change, Op, Test, Type, When};
use crate::document::{Path, Value};
use crate::migrate::pattern::Pattern;

/// One `[[change]]` as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(in super::super) struct RawChange {
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
    pub(in super::super) fn read(mut raw: RawChange, config: &str) -> Result<Self, String> {
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
}

fn read_op(raw: &mut RawChange) -> Result<(Op, Option<&'static str>), String> {
    let op = raw.op.clone();
    let missing = |key: &str| format!("{op} needs a {key}");
    let path = |raw: &mut RawChange| raw.path.take().ok_or_else(|| missing("path"));
    let value = |raw: &mut RawChange| raw.value.take().ok_or_else(|| missing("value"));
    let to = |raw: &mut RawChange| raw.to.take().ok_or_else(|| missing("to"));
    let variable = |raw: &mut RawChange| {
        let name = raw.name.take().ok_or_else(|| missing("name"))?;
        Ok::<_, String>(Pattern::from(Path::from([name.as_str()])))
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
