//! Values that moved between sections: speech recognition, the summary model, the limits of delegation.

use super::super::ops::{Draft, Failure, at, obstacle};
use super::{Edit, Path, Value, python_text, remove, section, set, trimmed, word, words};

/// `stt.model` belongs to the provider that it was meant for.
pub(super) fn stt_model(draft: &mut Draft<'_>, options: &Value) -> Result<(), Failure> {
    let Some(stt) = section(draft.config(), "stt") else {
        return Ok(());
    };
    let Some(model) = stt.field("model").cloned() else {
        return Ok(());
    };
    let provider = match stt.field("provider") {
        None | Some(Value::Null) => word(options, "default_provider").to_owned(),
        Some(Value::Str(provider)) => provider.to_string(),
        Some(other) => {
            let reason = format!("text is expected, here is {}", other.kind());
            return Err(at(&Path::from(["stt", "provider"]), reason));
        }
    };
    let old = Path::from(["stt", "model"]);
    let is_local = words(options, "local_providers").contains(&provider.as_str());
    let fits = match model.as_str() {
        Some(name) if is_local => words(options, "local_models").contains(&name),
        Some(_) => true,
        None => !is_local && !model.is_null(),
    };
    let target = if is_local {
        word(options, "local_section")
    } else {
        &provider
    };
    // A provider of that name would be the very key that goes.
    if !fits || target == "model" {
        return remove(draft, old);
    }
    let to = Path::from(["stt", target, "model"]);
    if let Some(failure) = obstacle(draft.config(), &to) {
        return Err(failure);
    }
    if draft.config().get(&to).is_some() || is_default(options, target, &model, draft.to) {
        return remove(draft, old);
    }
    draft.edit_config(&Edit::Move { from: old, to })
}

/// Whether the code that will read the file uses this model anyway.
fn is_default(options: &Value, provider: &str, model: &Value, version: u32) -> bool {
    let defaults = options
        .field("defaults")
        .and_then(Value::as_list)
        .unwrap_or_default();
    defaults.iter().any(|default| {
        let since = default.field("since").and_then(Value::as_int).unwrap_or(0);
        default.field("provider").and_then(Value::as_str) == Some(provider)
            && default.field("model") == Some(model)
            && i64::from(version) >= since
    })
}

/// `compression.summary_*` becomes `auxiliary.compression.*`, where nothing is set.
pub(super) fn compression_summary(draft: &mut Draft<'_>, _: &Value) -> Result<(), Failure> {
    let Some(compression) = section(draft.config(), "compression") else {
        return Ok(());
    };
    let names = ["model", "provider", "base_url"];
    let legacy = names.map(|name| compression.field(&format!("summary_{name}")).cloned());
    if legacy.iter().flatten().all(Value::is_null) {
        return Ok(());
    }
    let mut moves = Vec::new();
    for (name, value) in names.into_iter().zip(legacy) {
        let Some(value) = value else { continue };
        let from = Path::from(["compression"]).name(format!("summary_{name}"));
        let to = Path::from(["auxiliary", "compression", name]);
        let text = match &value {
            Value::Null | Value::Bool(false) | Value::Int(0) => String::new(),
            other => python_text(other).trim().to_owned(),
        };
        if text.is_empty() || (name == "provider" && text == "auto") {
            moves.push((from, None));
            continue;
        }
        if let Some(failure) = obstacle(draft.config(), &to) {
            return Err(failure);
        }
        let current = draft.config().get(&to);
        let is_set = match current {
            Some(Value::Str(current)) => {
                let is_automatic = name == "provider" && current == "auto";
                !current.is_empty() && !is_automatic
            }
            Some(Value::Null | Value::Bool(false) | Value::Int(0)) | None => false,
            Some(_) => true,
        };
        let kept_as_is = value.as_str() == Some(&text);
        moves.push((
            from,
            (!is_set).then(|| (to, text, current.is_none() && kept_as_is)),
        ));
    }
    for (from, target) in moves {
        match target {
            // A move takes the comment beside the value along.
            Some((to, _, true)) => draft.edit_config(&Edit::Move { from, to })?,
            Some((to, text, false)) => {
                set(draft, to, Value::from(text))?;
                remove(draft, from)?;
            }
            None => remove(draft, from)?,
        }
    }
    Ok(())
}

/// `delegation.max_async_children` counts as `max_concurrent_children` where it is the larger one.
pub(super) fn delegation_cap(draft: &mut Draft<'_>, options: &Value) -> Result<(), Failure> {
    let Some(delegation) = section(draft.config(), "delegation") else {
        return Ok(());
    };
    let Some(old) = delegation.field("max_async_children") else {
        return Ok(());
    };
    let option = |name: &str| options.field(name).and_then(Value::as_int).unwrap_or(0);
    let cap = option("cap");
    let current = delegation.field("max_concurrent_children");
    let limit = current.and_then(whole_number).unwrap_or(cap);
    let raised = whole_number(old).filter(|old| *old > cap && *old > limit);
    let implied = current.is_none()
        && raised == Some(option("default"))
        && i64::from(draft.to) >= option("default_since");
    let target = Path::from(["delegation", "max_concurrent_children"]);
    if let Some(raised) = raised
        && !implied
    {
        set(draft, target, Value::Int(raised))?;
    }
    remove(draft, Path::from(["delegation", "max_async_children"]))
}

/// A value as a whole number, as Python's `int` reads it.
fn whole_number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        Value::Bool(truth) => Some(i64::from(*truth)),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a fraction is cut off on purpose"
        )]
        Value::Float(number) if number.is_finite() => Some(*number as i64),
        other => trimmed(Some(other)).and_then(|text| text.parse().ok()),
    }
}
