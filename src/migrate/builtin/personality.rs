//! Personalities start from none: a selected name goes, and with it a prompt that is only its text.

use super::super::ops::{Draft, Failure};
use super::{Path, Value, python_text, section, set, words};

pub(super) fn personality(draft: &mut Draft<'_>, options: &Value) -> Result<(), Failure> {
    let neutral = words(options, "neutral");
    if let Some(display) = section(draft.config(), "display")
        && let Some(name) = display.field("personality")
    {
        let name = match name {
            Value::Null | Value::Bool(false) | Value::Int(0) => String::new(),
            name => python_text(name).trim().to_lowercase(),
        };
        if !neutral.contains(&name.as_str()) {
            set(
                draft,
                Path::from(["display", "personality"]),
                Value::from(""),
            )?;
        }
    }
    if let Some(agent) = section(draft.config(), "agent")
        && let Some(prompt) = agent.field("system_prompt")
    {
        let prompt = prompt_text(prompt);
        if !prompt.is_empty() && is_known(draft.config(), options, &neutral, &prompt) {
            set(
                draft,
                Path::from(["agent", "system_prompt"]),
                Value::from(""),
            )?;
        }
    }
    Ok(())
}

/// Whether a text is what a personality renders to: a built-in one, known by its digest, or one that the
/// configuration defines itself.
fn is_known(config: &Value, options: &Value, neutral: &[&str], prompt: &str) -> bool {
    let own = [
        config.field("personalities"),
        section(config, "agent").and_then(|agent| agent.field("personalities")),
    ];
    let own = own
        .into_iter()
        .flatten()
        .filter_map(Value::as_map)
        .flatten();
    let mut defined: Vec<(String, &Value)> = Vec::new();
    for (name, definition) in own {
        let name = python_text(name).trim().to_lowercase();
        if !neutral.contains(&name.as_str()) {
            defined.retain(|(other, _)| *other != name);
            defined.push((name, definition));
        }
    }
    if defined
        .iter()
        .any(|(_, definition)| rendered(definition) == prompt)
    {
        return true;
    }
    let digest = crate::digest::sha256(prompt.as_bytes());
    let builtins = options
        .field("builtins")
        .and_then(Value::as_map)
        .unwrap_or_default();
    builtins.iter().any(|(name, known)| {
        known.as_str() == Some(&digest)
            && !defined
                .iter()
                .any(|(own, _)| Some(own.as_str()) == name.as_str())
    })
}

/// A personality's text, as the application renders it.
fn rendered(definition: &Value) -> String {
    let Value::Map(_) = definition else {
        return prompt_text(definition);
    };
    let part = |name: &str, title: &str| {
        let value = definition.field(name).filter(|value| !is_empty(value))?;
        Some(format!("{title}{}", python_text(value)).trim().to_owned())
    };
    let parts = [
        part("system_prompt", ""),
        part("tone", "Tone: "),
        part("style", "Style: "),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .flatten()
        .filter(|part| !part.is_empty())
        .collect();
    parts.join("\n")
}

fn is_empty(value: &Value) -> bool {
    matches!(value, Value::Null | Value::Bool(false) | Value::Int(0)) || value.as_str() == Some("")
}

fn prompt_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::List(items) => {
            let items = items.iter().map(|item| python_text(item).trim().to_owned());
            items
                .filter(|item| !item.is_empty())
                .collect::<Vec<_>>()
                .join("\n")
        }
        other => python_text(other).trim().to_owned(),
    }
}
