//! What has to change in a home: the catalog of steps, and its evaluation over one home.
//!
//! [`evaluate`] is pure: it reads a home through a [`HomeView`], applies every step in memory, proves that
//! nothing else changed, and says what would be written. It writes nothing; `home` holds the tasks that
//! read and write real homes. A home is all or nothing: with one failure no byte of it changes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub mod builtin;
pub mod cases;
pub mod catalog;
pub mod home;
pub mod lint;
pub mod native;
pub mod ops;
pub mod pattern;
mod proof;
pub mod rule;
mod version;
mod view;

pub use catalog::{Catalog, Step};
pub use version::Stamp;
pub use view::{HomeView, MemoryHome};

use crate::app::App;
use crate::defect;
use crate::digest::sha256;
use crate::document::{self, Edit, Path, Value};
use ops::Draft;

/// What becomes of a home.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HomeOutcome {
    /// It was, or in a plan would be, brought to the expected version.
    Migrated,
    /// Nothing has to change.
    Current,
    /// It has no configuration file, and runs on defaults.
    Unconfigured,
    /// It is not ours to change, or a policy says so.
    Skipped,
    /// Its file is newer than the code that serves it.
    NewerThanCode,
    /// Its file is older than what can be migrated.
    BelowFloor,
    /// The code expects more than the catalog knows.
    BeyondCatalog,
    /// No code says which version is expected.
    NoInstall,
    /// Its file cannot be read without doubt.
    Invalid,
    /// It cannot be written.
    ReadOnly,
    /// It changed meanwhile, or two sides disagree about it.
    Conflict,
    /// A step cannot be applied, or a write failed.
    Failed,
}

impl HomeOutcome {
    /// Every one of them.
    pub const ALL: [Self; 12] = [
        Self::Migrated,
        Self::Current,
        Self::Unconfigured,
        Self::Skipped,
        Self::NewerThanCode,
        Self::BelowFloor,
        Self::BeyondCatalog,
        Self::NoInstall,
        Self::Invalid,
        Self::ReadOnly,
        Self::Conflict,
        Self::Failed,
    ];

    /// Whether a run with this outcome can be clean.
    #[must_use]
    pub const fn is_clean(self) -> bool {
        matches!(
            self,
            Self::Migrated | Self::Current | Self::Unconfigured | Self::Skipped
        )
    }

    /// The word for it, as in a receipt.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Migrated => "migrated",
            Self::Current => "current",
            Self::Unconfigured => "unconfigured",
            Self::Skipped => "skipped",
            Self::NewerThanCode => "newer-than-code",
            Self::BelowFloor => "below-floor",
            Self::BeyondCatalog => "beyond-catalog",
            Self::NoInstall => "no-install",
            Self::Invalid => "invalid",
            Self::ReadOnly => "read-only",
            Self::Conflict => "conflict",
            Self::Failed => "failed",
        }
    }
}

impl std::fmt::Display for HomeOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.word())
    }
}

/// How applying one step went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepOutcome {
    /// It changed something.
    Applied,
    /// It found nothing to change.
    Unneeded,
    /// It cannot be applied.
    Failed,
}

/// One step of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepResult {
    /// The step.
    pub id: String,
    /// Its checksum.
    pub checksum: String,
    /// How it went.
    pub result: StepOutcome,
}

/// A file whose bytes change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Relative to the home.
    pub path: String,
    /// SHA-256 of the bytes before; `None` if there is no file.
    pub sha256_before: Option<String>,
    /// SHA-256 of the bytes after.
    pub sha256_after: String,
}

/// A value that changes, computed from the bytes before and after. Values are as they stand in the
/// file: whoever stores or prints them screens them first (`screen`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The step that changed it, or `version` for the stamp.
    pub step: String,
    /// The key; in another file than the configuration, `FILE: KEY`.
    pub path: String,
    /// What it was; absent if it was not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<serde_json::Value>,
    /// What it becomes; absent if it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<serde_json::Value>,
}

/// What evaluating a home found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Which home.
    pub id: String,
    /// What would become of it; `migrated` means that it would be.
    pub outcome: HomeOutcome,
    /// Why, in a few words; for `invalid` it names the line.
    pub reason: String,
    /// The version of the file as it reads, or `unversioned`.
    pub from: Option<String>,
    /// The version that the code expects.
    pub to: Option<u32>,
    /// The steps that were evaluated, in order.
    pub steps: Vec<StepResult>,
    /// Every failure: the step, the key, the reason, the line.
    pub failures: Vec<String>,
    /// The files that change.
    pub files: Vec<FileChange>,
    /// The folders that are made, relative to the home.
    pub dirs: Vec<String>,
    /// The values that change.
    pub changes: Vec<Change>,
    /// SHA-256 of the configuration file as it was read.
    pub config_sha256: Option<String>,
    /// Facts worth a line.
    pub notes: Vec<String>,
    /// What was made of the home, where whoever asked will write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<home::Kept>,
}

impl Evaluation {
    fn new(outcome: HomeOutcome, reason: impl Into<String>, expected: Option<u32>) -> Self {
        Self {
            id: String::new(),
            outcome,
            reason: reason.into(),
            from: None,
            to: expected,
            steps: Vec::new(),
            failures: Vec::new(),
            files: Vec::new(),
            dirs: Vec::new(),
            changes: Vec::new(),
            config_sha256: None,
            notes: Vec::new(),
            kept: None,
        }
    }

    /// The evaluation of a home that is not even looked into.
    #[must_use]
    pub fn without_steps(id: String, outcome: HomeOutcome, reason: String) -> Self {
        Self {
            id,
            ..Self::new(outcome, reason, None)
        }
    }

    /// Whether the application's own migrator made it.
    #[must_use]
    pub fn is_native(&self) -> bool {
        self.steps.iter().any(|step| step.id == native::STEP)
    }

    fn concluded(mut self, outcome: HomeOutcome, reason: impl Into<String>) -> Self {
        self.outcome = outcome;
        self.reason = reason.into();
        self
    }
}

/// New bytes of files, by path relative to the home.
pub type After = BTreeMap<String, Vec<u8>>;

/// What a home needs to be what code that expects `expected` would read; nothing is written. A file that this program
/// fails on costs its own home a row, and the homes beside it nothing.
#[must_use]
pub fn evaluate(
    app: &App,
    catalog: &Catalog,
    view: &dyn HomeView,
    expected: Option<u32>,
) -> (Evaluation, After) {
    or_failed(expected, || match prepare(app, catalog, view, expected) {
        Ok(prepared) => prepared.run(app, view),
        Err(evaluation) => (*evaluation, After::new()),
    })
}

/// What `work` says, or that this program has a defect.
fn or_failed(
    expected: Option<u32>,
    work: impl FnOnce() -> (Evaluation, After),
) -> (Evaluation, After) {
    defect::guard(work).unwrap_or_else(|defect| {
        let failed = Evaluation::new(HomeOutcome::Failed, defect.to_string(), expected);
        (failed, After::new())
    })
}

/// A home that needs steps, before any of them is applied.
struct Prepared<'c> {
    evaluation: Evaluation,
    config: Box<dyn document::Document>,
    steps: Vec<&'c Step>,
    to: u32,
}

/// Decides all that can be decided without applying a step (evidence.md 1.5, in order).
fn prepare<'c>(
    app: &App,
    catalog: &'c Catalog,
    view: &dyn HomeView,
    expected: Option<u32>,
) -> Result<Prepared<'c>, Box<Evaluation>> {
    use HomeOutcome as Is;
    let file = &app.config.file;
    let end = |outcome, reason: String| Box::new(Evaluation::new(outcome, reason, expected));
    let bytes = match view.read(file) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Err(end(Is::Unconfigured, format!("there is no {file}"))),
        Err(error) => return Err(end(Is::Invalid, format!("cannot read {file}: {error}"))),
    };
    let mut evaluation = Evaluation::new(Is::Current, "", expected);
    evaluation.config_sha256 = Some(sha256(&bytes));
    // A file without a word is what a crash leaves behind; one with comments alone was written by somebody.
    if bytes
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(&bytes)
        .trim_ascii()
        .is_empty()
    {
        return Err(Box::new(
            evaluation.concluded(Is::Invalid, format!("{file} is empty")),
        ));
    }
    let config = match document::parse(app.config.format, &bytes) {
        Ok(config) if matches!(config.value(), Value::Map(_)) => config,
        Ok(config) => {
            let reason = format!("{file} holds {}, not a mapping", config.value().kind());
            return Err(Box::new(evaluation.concluded(Is::Invalid, reason)));
        }
        Err(invalid) => {
            let reason = format!("{file}: {invalid}");
            return Err(Box::new(evaluation.concluded(Is::Invalid, reason)));
        }
    };
    let stamp = Stamp::of(config.value().field(&app.config.version));
    evaluation.from = Some(stamp.to_string());
    let finish =
        |outcome, reason: String| Err(Box::new(evaluation.clone().concluded(outcome, reason)));
    let Some(to) = expected else {
        return finish(
            Is::NoInstall,
            "no install says which version it expects".into(),
        );
    };
    let newest = catalog.newest();
    if to > newest {
        return finish(
            Is::BeyondCatalog,
            format!("the code expects {to}, the catalog ends at {newest}"),
        );
    }
    // A version that no chain of steps leads to must never be stamped.
    let steps = match catalog.range(stamp.version(), to) {
        Ok(steps) => steps,
        Err(_)
            if stamp
                .version()
                .is_some_and(|version| version < app.config.floor) =>
        {
            Vec::new()
        }
        Err(gap) => {
            let reason = format!("no step leads from {} to {to}", gap.reached);
            return finish(Is::BeyondCatalog, reason);
        }
    };
    match stamp.version() {
        Some(version) if version > to => finish(
            Is::NewerThanCode,
            format!("the file has {version}, the code expects {to}"),
        ),
        Some(version) if version < app.config.floor => {
            let floor = app.config.floor;
            finish(
                Is::BelowFloor,
                format!("the file has {version}, the oldest that can be migrated is {floor}"),
            )
        }
        Some(version) if version == to => finish(Is::Current, String::new()),
        _ => Ok(Prepared {
            evaluation,
            config,
            steps,
            to,
        }),
    }
}

impl Prepared<'_> {
    /// Applies every step, stamps the version, proves the result.
    fn run(self, app: &App, view: &dyn HomeView) -> (Evaluation, After) {
        let Self {
            mut evaluation,
            config,
            steps,
            to,
        } = self;
        let mut draft = Draft::new(app, view, to, config);
        for (position, step) in steps.iter().enumerate() {
            let dirs = draft.dirs.len();
            let failures = draft.apply(step, position);
            let result = if !failures.is_empty() {
                StepOutcome::Failed
            } else if draft.touched(position) || draft.dirs.len() > dirs {
                StepOutcome::Applied
            } else {
                StepOutcome::Unneeded
            };
            let failures = failures
                .iter()
                .map(|failure| format!("step {}: {failure}", step.id));
            evaluation.failures.extend(failures);
            evaluation.steps.push(StepResult {
                id: step.id.clone(),
                checksum: step.checksum().to_owned(),
                result,
            });
        }
        let stamp = Edit::Set {
            path: Path::root().name(&app.config.version),
            value: Value::Int(i64::from(to)),
        };
        // The version comes last, so that it never stands above content that is older.
        draft.stamp(steps.len(), &stamp, &mut evaluation.failures);
        if !evaluation.failures.is_empty() {
            let reason = evaluation.failures[0].clone();
            return (
                evaluation.concluded(HomeOutcome::Failed, reason),
                After::new(),
            );
        }
        match proof::changes(&draft, &steps) {
            Ok(changes) => evaluation.changes = changes,
            Err(reason) => {
                evaluation.failures.push(reason.clone());
                return (
                    evaluation.concluded(HomeOutcome::Failed, reason),
                    After::new(),
                );
            }
        }
        conclude(evaluation, draft, view)
    }
}

/// Names the files that change, and says if one of them cannot be written.
fn conclude(
    mut evaluation: Evaluation,
    draft: Draft<'_>,
    view: &dyn HomeView,
) -> (Evaluation, After) {
    let mut after = After::new();
    let mut obstacles = Vec::new();
    for (path, file) in draft.files {
        let Some(file) = file else { continue };
        let Some(before) = file.before else { continue };
        let bytes = file.document.bytes();
        if bytes == before.bytes {
            continue;
        }
        obstacles.extend(view.unwritable(&path));
        let is_config = path == draft.app.config.file;
        let known = evaluation.config_sha256.clone().filter(|_| is_config);
        evaluation.files.push(FileChange {
            path: path.clone(),
            sha256_before: Some(known.unwrap_or_else(|| sha256(&before.bytes))),
            sha256_after: sha256(bytes),
        });
        after.insert(path, bytes.to_vec());
    }
    for dir in draft.dirs {
        obstacles.extend(view.unwritable(&dir));
        evaluation.dirs.push(dir);
    }
    if obstacles.is_empty() {
        (evaluation.concluded(HomeOutcome::Migrated, ""), after)
    } else {
        (
            evaluation.concluded(HomeOutcome::ReadOnly, obstacles.join("; ")),
            after,
        )
    }
}
