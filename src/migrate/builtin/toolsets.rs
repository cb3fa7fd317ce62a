//! Saved lists of toolsets gain one that came later, unless a person declined it.

use super::super::ops::{Draft, Failure};
use super::{Edit, Path, Value, python_text, section, word, words};

pub(super) fn connections(draft: &mut Draft<'_>, options: &Value) -> Result<(), Failure> {
    let toolset = word(options, "toolset");
    let explicit = words(options, "explicit");
    let config = draft.config();
    let disabled = section(config, "agent").and_then(|agent| agent.field("disabled_toolsets"));
    if disabled.is_some_and(|disabled| names_in(disabled).iter().any(|name| name == toolset)) {
        return Ok(());
    }
    let Some(saved) = section(config, "platform_toolsets").and_then(Value::as_map) else {
        return Ok(());
    };
    let known = section(config, "known_builtin_toolsets");
    let has = |list: &[Value]| list.iter().any(|item| item.as_str() == Some(toolset));
    let mut lists = Vec::new();
    for (platform, list) in saved {
        let Some(list) = list.as_list() else { continue };
        // A list that names only whole sets inherits every toolset of theirs.
        let names_one = list
            .iter()
            .any(|item| explicit.contains(&python_text(item).as_str()));
        let offered = known
            .and_then(|known| known.step(&platform.to_key()))
            .and_then(Value::as_list);
        if has(list) || !names_one || offered.is_some_and(has) {
            continue;
        }
        let key = platform.to_key();
        lists.push(Path::from(["platform_toolsets"]).child(key.clone()));
        if offered.is_some() {
            lists.push(Path::from(["known_builtin_toolsets"]).child(key));
        }
    }
    for path in lists {
        let value = Value::from(toolset);
        draft.edit_config(&Edit::Append { path, value })?;
    }
    Ok(())
}

/// The names in a value that may be a list, one name, or text that spells a list.
fn names_in(value: &Value) -> Vec<String> {
    match value {
        Value::List(items) => items.iter().map(python_text).collect(),
        Value::Str(text) => match text
            .trim()
            .strip_prefix('[')
            .and_then(|text| text.strip_suffix(']'))
        {
            Some(inside) => {
                let names = inside
                    .split(',')
                    .map(|name| name.trim().trim_matches(['"', '\'']));
                names
                    .filter(|name| !name.is_empty())
                    .map(str::to_owned)
                    .collect()
            }
            None => vec![text.to_string()],
        },
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_may_be_spelled_as_text() {
        assert_eq!(names_in(&Value::from("['a', \"b\"]")), ["a", "b"]);
        assert_eq!(names_in(&Value::from("a")), ["a"]);
        assert_eq!(names_in(&Value::Int(5)), Vec::<String>::new());
    }
}
