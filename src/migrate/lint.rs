//! What is wrong with a folder of migrations: numbers, chains, unknown keys, cases, released steps that changed.
//!
//! It reads step files and says its findings, one line each. It judges no home.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path as FilePath;

use serde::Deserialize;

use super::catalog::{Catalog, Step, sorted_folders};
use crate::app::{App, BUILTIN};
use crate::error::{Error, Kind, Result};

/// The file, beside the applications' folders, with the checksum of every released step.
const CHECKSUMS: &str = "checksums.toml";

/// Released steps: their checksums must not change.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Released {
    /// The application.
    pub app: String,
    /// The step.
    pub id: String,
    /// Its checksum when it was released.
    pub checksum: String,
    /// The release of this program that first had it.
    pub release: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReleasedFile {
    #[serde(default)]
    step: Vec<Released>,
}

/// Reads the text of a `checksums.toml`.
///
/// # Errors
/// When it is not valid.
pub fn parse_checksums(text: &str) -> Result<Vec<Released>> {
    toml_edit::de::from_str::<ReleasedFile>(text)
        .map(|file| file.step)
        .map_err(|error| {
            Error::new(Kind::Input, format!("cannot read {CHECKSUMS}")).with_source(error)
        })
}

/// The checksums of the steps that this program was released with.
///
/// # Errors
/// When the file that is part of the program is not valid.
pub fn released() -> Result<Vec<Released>> {
    let text = BUILTIN
        .get_file(CHECKSUMS)
        .and_then(|file| file.contents_utf8())
        .unwrap_or_default();
    parse_checksums(text)
}

/// What is wrong with a folder of migrations (`migrations/`, or an administrator's copy of its layout):
/// one line a finding, none if all is well. `released` are the checksums that must not change.
#[must_use]
pub fn lint(folder: &FilePath, released: &[Released]) -> Vec<String> {
    let mut found = Vec::new();
    let apps = match sorted_folders(folder) {
        Ok(apps) => apps,
        Err(error) => return vec![format!("{}: {error}", folder.display())],
    };
    for app_folder in apps {
        let descriptor = app_folder.join("app.toml");
        let text = match std::fs::read_to_string(&descriptor) {
            Ok(text) => text,
            Err(error) => {
                found.push(format!("{}: {error}", descriptor.display()));
                continue;
            }
        };
        match App::parse(&text, &descriptor) {
            Ok(app) => lint_app(&app, &app_folder, released, &mut found),
            Err(error) => found.push(error.to_string()),
        }
    }
    found
}

fn lint_app(app: &App, folder: &FilePath, released: &[Released], found: &mut Vec<String>) {
    let mut steps = Vec::new();
    for step_folder in sorted_folders(folder).unwrap_or_default() {
        let id = step_folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        match std::fs::read_to_string(step_folder.join("step.toml")) {
            Ok(text) => match Step::parse(&id, &text, &app.config.file) {
                Ok(step) => {
                    if !id.starts_with(&format!("{:04}-", step.to)) {
                        found.push(format!(
                            "{id}: the name does not start with {:04}-",
                            step.to
                        ));
                    }
                    super::cases::lint(app, &step, &step_folder.join("cases"), found);
                    steps.push(step);
                }
                Err(error) => found.push(error.to_string()),
            },
            Err(error) => found.push(format!("{id}/step.toml: {error}")),
        }
    }
    lint_checksums(app, &steps, released, found);
    match Catalog::new(steps) {
        Ok(catalog) => lint_chain(app, &catalog, found),
        Err(error) => found.push(error.to_string()),
    }
}

fn lint_chain(app: &App, catalog: &Catalog, found: &mut Vec<String>) {
    let start = app.config.floor.max(catalog.oldest());
    if let Err(gap) = catalog.range(Some(start), catalog.newest()) {
        found.push(format!(
            "{}: no step leads on from version {} (to {})",
            app.name, gap.reached, gap.wanted
        ));
    }
}

fn lint_checksums(app: &App, steps: &[Step], released: &[Released], found: &mut Vec<String>) {
    let known: BTreeMap<&str, &Step> = steps.iter().map(|step| (step.id.as_str(), step)).collect();
    let mut listed = BTreeSet::new();
    for entry in released.iter().filter(|entry| entry.app == app.name) {
        if !listed.insert(entry.id.as_str()) {
            found.push(format!("{CHECKSUMS}: {} is listed twice", entry.id));
        }
        match known.get(entry.id.as_str()) {
            None => found.push(format!(
                "{}: released with {}, and gone",
                entry.id, entry.release
            )),
            Some(step) if step.checksum() != entry.checksum => found.push(format!(
                "{}: released with {} as {}, and now {}: a released step is never changed, write a new one",
                entry.id, entry.release, entry.checksum, step.checksum()
            )),
            Some(_) => {}
        }
    }
    for step in steps {
        if !listed.contains(step.id.as_str()) {
            found.push(format!(
                "{}: not in {CHECKSUMS} (its checksum is {})",
                step.id,
                step.checksum()
            ));
        }
    }
}
