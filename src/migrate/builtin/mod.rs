//! Rules of Hermes Agent that the operations of a step cannot say.
//!
//! Each is a function over a draft, named by a step (`op = "builtin"`), which declares the paths and files
//! that it may touch; what it needs to know stands in the step's `options`. Where a value is not what the
//! rule expects, it fails with the key instead of guessing. Nothing else in `src` names Hermes.

use super::ops::{Draft, Failure, obstacle};
use crate::document::{Edit, Path, Value};

mod personality;
mod plugins;
mod providers;
mod sections;
mod soul;
mod toolsets;

type Rule = fn(&mut Draft<'_>, &Value) -> Result<(), Failure>;

const RULES: &[(&str, Rule)] = &[
    ("hermes.custom-providers", providers::custom_providers),
    ("hermes.stt-model", sections::stt_model),
    ("hermes.compression-summary", sections::compression_summary),
    ("hermes.user-plugins", plugins::user_plugins),
    ("hermes.delegation-cap", sections::delegation_cap),
    ("hermes.personality", personality::personality),
    ("hermes.soul-section", soul::soul_section),
    ("hermes.connections", toolsets::connections),
];

/// Whether there is a builtin of this name.
#[must_use]
pub fn is_known(name: &str) -> bool {
    RULES.iter().any(|(own, _)| *own == name)
}

/// Runs a builtin.
pub(super) fn run(name: &str, draft: &mut Draft<'_>, options: &Value, failures: &mut Vec<Failure>) {
    // A step with an unknown name is refused when it is read.
    if let Some((_, rule)) = RULES.iter().find(|(own, _)| *own == name)
        && let Err(failure) = rule(draft, options)
    {
        failures.push(failure);
    }
}

/// A list of words in the options.
fn words<'o>(options: &'o Value, name: &str) -> Vec<&'o str> {
    let items = options
        .field(name)
        .and_then(Value::as_list)
        .unwrap_or_default();
    items.iter().filter_map(Value::as_str).collect()
}

/// A word in the options.
fn word<'o>(options: &'o Value, name: &str) -> &'o str {
    options
        .field(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// A section of the configuration, if it is a mapping.
fn section<'v>(config: &'v Value, name: &str) -> Option<&'v Value> {
    config
        .field(name)
        .filter(|value| matches!(value, Value::Map(_)))
}

/// Gives a path of the configuration a value, if that changes anything.
fn set(draft: &mut Draft<'_>, path: Path, value: Value) -> Result<(), Failure> {
    if let Some(failure) = obstacle(draft.config(), &path) {
        return Err(failure);
    }
    if draft.config().get(&path) == Some(&value) {
        return Ok(());
    }
    draft.edit_config(&Edit::Set { path, value })
}

/// Removes a path of the configuration.
fn remove(draft: &mut Draft<'_>, path: Path) -> Result<(), Failure> {
    draft.edit_config(&Edit::Remove { path })
}

/// Text as the application strips it.
fn trimmed(value: Option<&Value>) -> Option<&str> {
    value
        .and_then(Value::as_str)
        .map(str::trim)
        .filter(|text| !text.is_empty())
}

/// A scalar as Python's `str` writes it.
fn python_text(value: &Value) -> String {
    match value {
        Value::Null => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        other => other.key_text(),
    }
}
