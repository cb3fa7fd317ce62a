//! Applies the changes of a step to the documents of one home, in memory.
//!
//! A [`Draft`] holds what a home's files would say: every file is read once, edited in place, and never
//! written here. A change acts on the value that is there; one that cannot be made is a [`Failure`] that
//! names the key, and the other changes are tried all the same, so that a person sees all at once.

use std::collections::{BTreeMap, BTreeSet};

use super::HomeView;
use super::catalog::Step;
use super::rule::{Change, Op, same};
use crate::app::{App, Format};
use crate::document::{self, Document, Edit, Path, Refusal, Value};

/// Why a change of a step cannot be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The file, where it is not the configuration.
    pub file: Option<String>,
    /// The key, where one can be named.
    pub path: String,
    /// Why.
    pub reason: String,
    /// The line, from 1; 0 where none can be named.
    pub line: usize,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}: ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.reason)?;
        match self.line {
            0 => Ok(()),
            line => write!(f, " (line {line})"),
        }
    }
}

/// One file of a draft.
#[derive(Debug)]
pub(super) struct DraftFile {
    /// What it says now.
    pub document: Box<dyn Document>,
    /// What it said, once it was edited.
    pub before: Option<Before>,
    /// Which steps edited which path, in order.
    pub edits: Vec<(usize, Path)>,
}

/// What a file said before the first edit.
#[derive(Debug)]
pub(super) struct Before {
    /// Its meaning.
    pub value: Value,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What the files of one home would say.
pub(super) struct Draft<'a> {
    /// The application.
    pub app: &'a App,
    /// The home as it is.
    pub view: &'a dyn HomeView,
    /// The version that the file will have.
    pub to: u32,
    /// Every file that was looked at; `None` is one that does not exist.
    pub files: BTreeMap<String, Option<DraftFile>>,
    /// Folders that must be made.
    pub dirs: BTreeSet<String>,
    /// The position of the step that is at work.
    step: usize,
}

impl<'a> Draft<'a> {
    /// A draft of a home whose configuration was read already.
    pub fn new(app: &'a App, view: &'a dyn HomeView, to: u32, config: Box<dyn Document>) -> Self {
        let file = DraftFile {
            document: config,
            before: None,
            edits: Vec::new(),
        };
        Self {
            app,
            view,
            to,
            files: BTreeMap::from([(app.config.file.clone(), Some(file))]),
            dirs: BTreeSet::new(),
            step: 0,
        }
    }

    /// Applies one step, and says all that cannot be done. `position` is its place in the run.
    pub fn apply(&mut self, step: &Step, position: usize) -> Vec<Failure> {
        self.step = position;
        let mut failures = Vec::new();
        for change in &step.changes {
            self.change(change, &mut failures);
        }
        for failure in &mut failures {
            self.locate(failure);
        }
        failures
    }

    /// Adds the line of the value that a failure is about.
    fn locate(&self, failure: &mut Failure) {
        let name = failure.file.as_ref().unwrap_or(&self.app.config.file);
        let file = self.files.get(name).and_then(Option::as_ref);
        if failure.line == 0
            && !failure.path.is_empty()
            && let (Some(file), Ok(path)) = (file, failure.path.parse())
        {
            failure.line = file.document.line_of(&path).unwrap_or(0);
        }
    }

    /// Writes the version into the configuration; `position` is its place in the run.
    pub fn stamp(&mut self, position: usize, edit: &Edit, failures: &mut Vec<String>) {
        self.step = position;
        if let Err(failure) = self.edit_config(edit) {
            failures.push(format!("version: {failure}"));
        }
    }

    /// Whether the step at `position` changed anything.
    pub fn touched(&self, position: usize) -> bool {
        let mut edits = self.files.values().flatten().flat_map(|file| &file.edits);
        edits.any(|(step, _)| *step == position)
    }

    fn change(&mut self, change: &Change, failures: &mut Vec<Failure>) {
        match &change.op {
            Op::Builtin { name, options } => {
                super::builtin::run(name, self, options, failures);
            }
            Op::MakeDir { path } => self.make_dir(path, failures),
            op => {
                let version = self.to;
                let value = match self.value(&change.file) {
                    Ok(Some(value)) => value,
                    Ok(None) => return,
                    Err(failure) => return failures.push(failure),
                };
                let edits = plan(op, change, value, version);
                for edit in edits {
                    if let Err(failure) = edit.and_then(|edit| self.edit(&change.file, &edit)) {
                        failures.push(Failure {
                            file: self.named(&change.file),
                            ..failure
                        });
                    }
                }
            }
        }
    }

    fn make_dir(&mut self, path: &str, failures: &mut Vec<Failure>) {
        match self.view.folder(path) {
            Ok(Some(true)) => {}
            Ok(None) => {
                self.dirs.insert(path.to_owned());
            }
            Ok(Some(false)) => {
                failures.push(whole(path, "there is a file where a folder is expected"))
            }
            Err(error) => failures.push(whole(path, format!("cannot look at the folder: {error}"))),
        }
    }

    /// The file's name for a message: none for the configuration.
    fn named(&self, file: &str) -> Option<String> {
        (file != self.app.config.file).then(|| file.to_owned())
    }

    /// What a file means now; `None` if there is none.
    pub fn value(&mut self, file: &str) -> Result<Option<&Value>, Failure> {
        Ok(self.open(file)?.map(|file| file.document.value()))
    }

    /// What the configuration means now.
    pub fn config(&self) -> &Value {
        const NOTHING: &Value = &Value::Null;
        let config = self.files.get(&self.app.config.file);
        config
            .and_then(Option::as_ref)
            .map_or(NOTHING, |file| file.document.value())
    }

    /// Edits the configuration.
    pub fn edit_config(&mut self, edit: &Edit) -> Result<(), Failure> {
        let file = self.app.config.file.clone();
        self.edit(&file, edit)
    }

    /// Makes one edit of a file that exists.
    pub fn edit(&mut self, name: &str, edit: &Edit) -> Result<(), Failure> {
        let step = self.step;
        let Some(file) = self.open(name)? else {
            return Err(whole(name, "the file is not there"));
        };
        if file.before.is_none() {
            file.before = Some(Before {
                value: file.document.value().clone(),
                bytes: file.document.bytes().to_vec(),
            });
        }
        file.document.edit(edit)?;
        file.edits.push((step, edit.path()));
        if let Edit::Move { to, .. } = edit {
            file.edits.push((step, to.clone()));
        }
        Ok(())
    }

    fn open(&mut self, name: &str) -> Result<Option<&mut DraftFile>, Failure> {
        if !self.files.contains_key(name) {
            let bytes = self
                .view
                .read(name)
                .map_err(|error| whole(name, format!("cannot read it: {error}")))?;
            let file = match bytes {
                None => None,
                Some(bytes) => Some(DraftFile {
                    document: document::parse(format_of(self.app, name), &bytes)
                        .map_err(|invalid| whole(name, invalid.to_string()))?,
                    before: None,
                    edits: Vec::new(),
                }),
            };
            self.files.insert(name.to_owned(), file);
        }
        Ok(self.files.get_mut(name).and_then(Option::as_mut))
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self {
            file: None,
            path: refusal.path,
            reason: refusal.reason,
            line: refusal.line,
        }
    }
}

/// A failure that is about a whole file or folder.
pub(super) fn whole(file: &str, reason: impl Into<String>) -> Failure {
    Failure {
        file: Some(file.to_owned()),
        path: String::new(),
        reason: reason.into(),
        line: 0,
    }
}

/// A failure at a key.
pub(super) fn at(path: &Path, reason: impl Into<String>) -> Failure {
    Failure {
        file: None,
        path: path.to_string(),
        reason: reason.into(),
        line: 0,
    }
}

/// How a file of a home is written, from its name.
#[must_use]
pub fn format_of(app: &App, file: &str) -> Format {
    if file == app.config.file {
        return app.config.format;
    }
    let name = file.rsplit('/').next().unwrap_or(file);
    match name.rsplit_once('.') {
        Some((_, "env")) => Format::Env,
        Some((_, "yaml" | "yml")) => Format::Yaml,
        Some((_, "toml")) => Format::Toml,
        Some((_, "json")) => Format::Json,
        _ => Format::Text,
    }
}

/// The first value on the way to `path` that can hold no key, if there is one. Null counts as absent.
pub(super) fn obstacle(value: &Value, path: &Path) -> Option<Failure> {
    let mut at_value = value;
    for (depth, key) in path.0.iter().enumerate() {
        match at_value {
            Value::Map(_) | Value::List(_) => match at_value.step(key) {
                Some(next) => at_value = next,
                None => return None,
            },
            Value::Null => return None,
            other => {
                let place = Path(path.0[..depth].to_vec());
                return Some(at(
                    &place,
                    format!("a mapping is expected, here is {}", other.kind()),
                ));
            }
        }
    }
    None
}

/// The edits that an operation needs, each of them or why it cannot be made.
fn plan(op: &Op, change: &Change, value: &Value, version: u32) -> Vec<Result<Edit, Failure>> {
    let pattern = match op {
        Op::Set { path, .. }
        | Op::SetDefault { path, .. }
        | Op::Replace { path, .. }
        | Op::Remove { path }
        | Op::Move { path, .. }
        | Op::Copy { path, .. }
        | Op::Append { path, .. }
        | Op::RemoveItem { path, .. } => path,
        Op::MakeDir { .. } | Op::Builtin { .. } => return Vec::new(),
    };
    let implied = change.default_since.is_some_and(|since| version >= since);
    let mut edits = Vec::new();
    for place in pattern.places(value) {
        let path = place.path;
        let now = value.get(&path);
        let holds = change.when.iter().all(|when| {
            let tested = match &when.path {
                Some(other) => value.get(&other.bind(&place.keys)),
                None => now,
            };
            when.test.holds(tested)
        });
        if !holds {
            continue;
        }
        match op {
            Op::Set { value: new, .. } if now.is_some() || !implied => {
                set(value, path, new, &mut edits)
            }
            Op::SetDefault { value: new, .. } if now.is_none() && !implied => {
                set(value, path, new, &mut edits);
            }
            Op::Replace { value: new, .. } if now.is_some() => set(value, path, new, &mut edits),
            Op::Remove { .. } if now.is_some() => edits.push(Ok(Edit::Remove { path })),
            Op::Move { to, .. } if now.is_some() => {
                let to = to.bind(&place.keys);
                match (value.get(&to), obstacle(value, &to)) {
                    (_, Some(failure)) => edits.push(Err(failure)),
                    (None, None) => edits.push(Ok(Edit::Move { from: path, to })),
                    (Some(_), None) => edits.push(Ok(Edit::Remove { path })),
                }
            }
            Op::Copy { to, .. } => {
                let to = to.bind(&place.keys);
                if let (Some(now), None) = (now, value.get(&to)) {
                    set(value, to, now, &mut edits);
                }
            }
            Op::Append { value: new, .. } => {
                if let Some(Value::List(items)) = now
                    && !items.iter().any(|item| same(item, new))
                {
                    let value = new.clone();
                    edits.push(Ok(Edit::Append { path, value }));
                }
            }
            Op::RemoveItem { values, .. } => {
                if let Some(Value::List(items)) = now {
                    edits.extend(remove_items(&path, items, |item| {
                        values.iter().any(|value| same(value, item))
                    }));
                }
            }
            _ => {}
        }
    }
    edits
}

/// Gives `path` a value, if that changes anything.
fn set(value: &Value, path: Path, new: &Value, edits: &mut Vec<Result<Edit, Failure>>) {
    if let Some(failure) = obstacle(value, &path) {
        edits.push(Err(failure));
    } else if value.get(&path) != Some(new) {
        let value = new.clone();
        edits.push(Ok(Edit::Set { path, value }));
    }
}

/// The edits that remove the items of a list for which `goes` holds, the last one first: what comes
/// before it keeps its position.
pub(super) fn remove_items(
    path: &Path,
    items: &[Value],
    goes: impl Fn(&Value) -> bool,
) -> Vec<Result<Edit, Failure>> {
    let positions = (0..items.len()).rev().filter(|index| goes(&items[*index]));
    positions
        .map(|index| {
            Ok(Edit::Remove {
                path: path.index(index),
            })
        })
        .collect()
}
