//! The cases of a step: files before it and after it, in `cases/` beside its `step.toml`.
//!
//! | file | what it is |
//! |---|---|
//! | `NAME.before.yaml` | a configuration before the step (the ending is that of the application's own file) |
//! | `NAME.after.yaml` | the same after it; without one, the step must leave every byte alone |
//! | `NAME.before/…`, `NAME.after/…` | the same for a whole home: the other files that matter, too |
//! | `NAME.fails.txt` | the step must refuse this home, and say every line of this file |
//!
//! A case applies its own step alone, and no version is stamped. It runs twice: the second run on the
//! result of the first must change nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path as FilePath, PathBuf};

use super::catalog::Step;
use super::ops::Draft;
use super::{After, HomeView as _, MemoryHome};
use crate::app::App;
use crate::document;

/// One case of a step.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// The home before the step.
    pub before: MemoryHome,
    /// What must become of it.
    pub expected: Expected,
}

/// What must become of a case.
#[derive(Debug, Clone)]
pub enum Expected {
    /// Every byte stays.
    Untouched,
    /// These files, and these folders, are there afterwards.
    Home(MemoryHome),
    /// The step refuses it, and says each of these.
    Refused(Vec<String>),
}

/// Reads the cases in a folder, sorted by name.
///
/// # Errors
/// When the folder or a file cannot be read, or a file belongs to no case.
pub fn read(app: &App, folder: &FilePath) -> io::Result<Vec<Case>> {
    let mut names = BTreeSet::new();
    let mut entries = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let file = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let stray = || io::Error::other(format!("{file} belongs to no case"));
        let (name, role) = file.split_once('.').ok_or_else(stray)?;
        let role = role.split('.').next().unwrap_or(role);
        if !matches!(role, "before" | "after" | "fails") {
            return Err(stray());
        }
        names.insert(name.to_owned());
        entries.insert((name.to_owned(), role.to_owned()), path);
    }
    let mut cases = Vec::new();
    for name in names {
        let mut take = |role: &str| entries.remove(&(name.clone(), role.to_owned()));
        let before = take("before")
            .ok_or_else(|| io::Error::other(format!("{name} has no before")))
            .and_then(|path| read_home(app, &path))?;
        let expected = match (take("after"), take("fails")) {
            (None, None) => Expected::Untouched,
            (Some(path), None) => Expected::Home(read_home(app, &path)?),
            (None, Some(path)) => {
                let text = std::fs::read_to_string(path)?;
                Expected::Refused(text.lines().map(str::to_owned).collect())
            }
            (Some(_), Some(_)) => return Err(io::Error::other(format!("{name} has two ends"))),
        };
        cases.push(Case {
            name,
            before,
            expected,
        });
    }
    Ok(cases)
}

fn read_home(app: &App, path: &FilePath) -> io::Result<MemoryHome> {
    let mut home = MemoryHome::default();
    if path.is_dir() {
        read_folder(path, path, &mut home)?;
    } else {
        home.files
            .insert(app.config.file.clone(), std::fs::read(path)?);
    }
    Ok(home)
}

fn read_folder(root: &FilePath, folder: &FilePath, home: &mut MemoryHome) -> io::Result<()> {
    let relative = |path: &FilePath| {
        let path = path.strip_prefix(root).unwrap_or(path);
        path.to_string_lossy().into_owned()
    };
    let mut entries: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        entries.push(entry?.path());
    }
    for path in entries {
        if path.is_dir() {
            home.folders.insert(relative(&path));
            read_folder(root, &path, home)?;
        } else if path.file_name().is_some_and(|name| name != ".gitkeep") {
            home.files.insert(relative(&path), std::fs::read(&path)?);
        }
    }
    Ok(())
}

/// Applies one step to a home, in memory.
///
/// # Errors
/// Every failure, as text.
pub fn apply(
    app: &App,
    step: &Step,
    home: &MemoryHome,
) -> Result<(After, BTreeSet<String>), Vec<String>> {
    let bytes = match home.read(&app.config.file) {
        Ok(Some(bytes)) => bytes,
        Ok(None) | Err(_) => return Err(vec![format!("there is no {}", app.config.file)]),
    };
    let config =
        document::parse(app.config.format, &bytes).map_err(|error| vec![error.to_string()])?;
    let mut draft = Draft::new(app, home, step.to, config);
    let failures = draft.apply(step, 0);
    if !failures.is_empty() {
        return Err(failures.iter().map(ToString::to_string).collect());
    }
    super::proof::declared(&draft, &[step]).map_err(|reason| vec![reason])?;
    let mut after = After::new();
    for (name, file) in &draft.files {
        if let Some(file) = file {
            after.insert(name.clone(), file.document.bytes().to_vec());
        }
    }
    Ok((after, draft.dirs))
}

/// Runs a case, and says everything that is not as it must be.
#[must_use]
pub fn check(app: &App, step: &Step, case: &Case) -> Vec<String> {
    let mut found = Vec::new();
    let mut say = |what: String| found.push(format!("{}: {}: {what}", step.id, case.name));
    let (after, dirs) = match (apply(app, step, &case.before), &case.expected) {
        (Ok(done), Expected::Untouched | Expected::Home(_)) => done,
        (Ok(_), Expected::Refused(_)) => {
            say("it must be refused, and is not".to_owned());
            return found;
        }
        (Err(failures), Expected::Refused(expected)) => {
            if failures != *expected {
                say(format!(
                    "it must be refused with {expected:?}, and says {failures:?}"
                ));
            }
            return found;
        }
        (Err(failures), _) => {
            say(format!("it is refused: {}", failures.join("; ")));
            return found;
        }
    };
    let mut result = case.before.clone();
    result.files.extend(after);
    result.folders.extend(dirs);
    let expected = match &case.expected {
        Expected::Home(home) => home,
        Expected::Untouched | Expected::Refused(_) => &case.before,
    };
    for (name, bytes) in &result.files {
        match expected.files.get(name) {
            Some(wanted) if wanted == bytes => {}
            wanted => say(format!(
                "{name} must say\n{}and says\n{}",
                wanted.map_or("nothing".into(), |wanted| String::from_utf8_lossy(wanted)),
                String::from_utf8_lossy(bytes)
            )),
        }
    }
    for dir in &expected.folders {
        if result.folder(dir).ok().flatten() != Some(true) {
            say(format!("{dir} must be there, and is not"));
        }
    }
    match apply(app, step, &result) {
        Ok((again, dirs)) => {
            let changed = again
                .iter()
                .any(|(name, bytes)| result.files.get(name) != Some(bytes));
            if changed || !dirs.is_empty() {
                say("a second run changes it again".to_owned());
            }
        }
        Err(failures) => say(format!("a second run is refused: {}", failures.join("; "))),
    }
    found
}

/// What is wrong with the cases of a step: at least one must change, and one must stay as it is.
pub(super) fn lint(app: &App, step: &Step, folder: &FilePath, found: &mut Vec<String>) {
    let cases = match read(app, folder) {
        Ok(cases) => cases,
        Err(error) => return found.push(format!("{}: cases: {error}", step.id)),
    };
    let has = |wanted: fn(&Expected) -> bool| cases.iter().any(|case| wanted(&case.expected));
    if !has(|expected| matches!(expected, Expected::Home(_))) {
        found.push(format!("{}: no case that it changes", step.id));
    }
    if !has(|expected| matches!(expected, Expected::Untouched)) {
        found.push(format!("{}: no case that it leaves alone", step.id));
    }
    for case in &cases {
        found.extend(check(app, step, case));
    }
}
