//! Proves that a draft changed what its steps declare, and nothing else, and says what that is.
//!
//! The bytes of every file are read once more as a whole: they must mean what all edits together mean.
//! Both sides are what the application would read: aliases and merge keys resolved. So a value that
//! another one inherits counts as changed there, too. What is reported comes from the bytes before
//! and after, never from what a step meant to do.

use super::catalog::Step;
use super::ops::{Draft, DraftFile};
use super::{Change, Stamp};
use crate::document::{Key, Lookup, Path, Value};

/// Every value that changed, the version among them, or why the draft must not be written.
pub(super) fn changes(draft: &Draft<'_>, steps: &[&Step]) -> Result<Vec<Change>, String> {
    let found = declared(draft, steps)?;
    let version = draft.config().field(&draft.app.config.version);
    if Stamp::of(version).version() != Some(draft.to) {
        return Err(format!(
            "{}: the version was not written",
            draft.app.config.file
        ));
    }
    Ok(found)
}

/// Every value that changed, or which change no step declares.
pub(super) fn declared(draft: &Draft<'_>, steps: &[&Step]) -> Result<Vec<Change>, String> {
    let mut found = Vec::new();
    for (name, file) in &draft.files {
        let Some(file) = file else { continue };
        let Some(before) = &file.before else { continue };
        file.document
            .prove()
            .map_err(|invalid| format!("{name}: {invalid}"))?;
        let proof = Proof {
            draft,
            steps,
            name,
            file,
        };
        for leaf in leaves(&before.value, file.document.value()) {
            found.push(proof.change(leaf)?);
        }
    }
    Ok(found)
}

/// A value that differs, at the finest place that can be named.
pub(super) struct Leaf<'v> {
    pub(super) path: Path,
    pub(super) before: Option<&'v Value>,
    pub(super) after: Option<&'v Value>,
}

/// Every value that differs.
pub(super) fn leaves<'v>(before: &'v Value, after: &'v Value) -> Vec<Leaf<'v>> {
    let mut found = Vec::new();
    if before != after {
        collect(Some(before), Some(after), &mut Path::root(), &mut found);
    }
    found
}

/// Finds the differences between two values that differ; what came or went as a whole mapping is named key by key.
fn collect<'v>(
    before: Option<&'v Value>,
    after: Option<&'v Value>,
    path: &mut Path,
    found: &mut Vec<Leaf<'v>>,
) {
    if let (Some(old), Some(new)) = (entries(before), entries(after))
        && (!old.is_empty() || !new.is_empty())
    {
        let mut differ = |key: &Value, before: Option<&'v Value>, after: Option<&'v Value>| {
            path.0.push(key.to_key());
            collect(before, after, path, found);
            path.0.pop();
        };
        let mut lookup = Lookup::new(new);
        for (key, value) in old {
            let now = lookup.find(key);
            if now != Some(value) {
                differ(key, Some(value), now);
            }
        }
        let mut lookup = Lookup::new(old);
        for (key, value) in new {
            if lookup.find(key).is_none() {
                differ(key, None, Some(value));
            }
        }
        return;
    }
    found.push(Leaf {
        path: path.clone(),
        before,
        after,
    });
}

/// The entries of a mapping; what is absent or null has none.
fn entries(value: Option<&Value>) -> Option<&[(Value, Value)]> {
    match value {
        None | Some(Value::Null) => Some(&[]),
        Some(value) => value.as_map(),
    }
}

struct Proof<'d> {
    draft: &'d Draft<'d>,
    steps: &'d [&'d Step],
    name: &'d str,
    file: &'d DraftFile,
}

impl Proof<'_> {
    fn change(&self, leaf: Leaf<'_>) -> Result<Change, String> {
        let config = self.name == self.draft.app.config.file;
        let stamp = Path(vec![Key::Name(self.draft.app.config.version.clone())]);
        let step = if config && leaf.path == stamp {
            "version".to_owned()
        } else {
            let step = self.step_of(&leaf.path).filter(|step| {
                if config {
                    step.paths.iter().any(|pattern| pattern.covers(&leaf.path))
                } else {
                    step.files.contains(self.name)
                }
            });
            let Some(step) = step else {
                return Err(format!(
                    "{}: {} would change, which no step declares",
                    self.name, leaf.path
                ));
            };
            step.id.clone()
        };
        let path = match (config, leaf.path.is_root()) {
            (true, _) => leaf.path.to_string(),
            (false, true) => self.name.to_owned(),
            (false, false) => format!("{}: {}", self.name, leaf.path),
        };
        Ok(Change {
            step,
            path,
            before: leaf.before.map(Value::to_json),
            after: leaf.after.map(Value::to_json),
        })
    }

    /// The last step whose edits explain a change at `path`.
    fn step_of(&self, path: &Path) -> Option<&Step> {
        let mut edits = self.file.edits.iter().rev();
        let (position, _) =
            edits.find(|(_, edited)| path.starts_with(edited) || edited.starts_with(path))?;
        self.steps.get(*position).copied()
    }
}
