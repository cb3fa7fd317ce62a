//! Plugins are loaded only if they are listed: those that a person installed are listed once.

use super::super::ops::{Draft, Failure, obstacle, whole};
use super::{Edit, Path, Value};
use crate::app::Format;
use crate::document;

/// Where people install plugins, and what makes a folder one.
const FOLDER: &str = "plugins";
const MANIFESTS: [&str; 2] = ["plugin.yaml", "plugin.yml"];

pub(super) fn user_plugins(draft: &mut Draft<'_>, _: &Value) -> Result<(), Failure> {
    let path = Path::from(["plugins", "enabled"]);
    if let Some(failure) = obstacle(draft.config(), &path) {
        return Err(failure);
    }
    if draft.config().get(&path).is_some() {
        return Ok(());
    }
    let disabled = draft.config().get(&Path::from(["plugins", "disabled"]));
    let disabled = disabled.and_then(Value::as_list).unwrap_or_default();
    let installed = installed(draft)?;
    let enabled = installed
        .into_iter()
        .filter(|name| !disabled.contains(name))
        .collect();
    let value = Value::List(enabled);
    draft.edit_config(&Edit::Set { path, value })
}

/// The names of the installed plugins, in the order of their folders.
fn installed(draft: &Draft<'_>) -> Result<Vec<Value>, Failure> {
    let view = draft.view;
    let failed =
        |path: &str, error: std::io::Error| whole(path, format!("cannot read it: {error}"));
    let mut found = Vec::new();
    for name in view.names(FOLDER).map_err(|error| failed(FOLDER, error))? {
        let folder = format!("{FOLDER}/{name}");
        if view
            .folder(&folder)
            .map_err(|error| failed(&folder, error))?
            != Some(true)
        {
            continue;
        }
        for manifest in MANIFESTS {
            let file = format!("{folder}/{manifest}");
            if let Some(bytes) = view.read(&file).map_err(|error| failed(&file, error))? {
                found.push(name_in(&bytes).unwrap_or_else(|| Value::from(name.as_str())));
                break;
            }
        }
    }
    Ok(found)
}

/// The name that a manifest gives; a manifest that cannot be read gives none.
fn name_in(manifest: &[u8]) -> Option<Value> {
    let manifest = document::parse(Format::Yaml, manifest).ok()?;
    let name = manifest.value().field("name")?;
    name.as_str()
        .filter(|name| !name.is_empty())
        .map(Value::from)
}
