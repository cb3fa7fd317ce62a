//! The tasks that read and write real homes, done as the account that owns them.
//!
//! | task | what it does |
//! |---|---|
//! | [`Evaluate`] | says what each home needs; reads only |
//! | [`Preview`] | shows what each home would become, as a diff; reads only |
//! | [`Fetch`] | hands over the bytes that a snapshot must hold; reads only |
//! | [`Commit`] | writes what a plan said, if the home is still the one that was planned |
//! | [`Restore`] | puts the bytes of a snapshot back, if nobody wrote since |
//!
//! Each is a [`Task`]: it runs here for our own account, else in a helper of the account. A home is never
//! written in part: other files go first, the configuration with its version is the commit, and a
//! failure before it puts back what was written. The caller holds the lock of every home that it commits
//! or restores, and has a durable snapshot before it commits.

mod folder;
mod kept;
mod migrator;
mod preview;
mod writing;

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use serde::{Deserialize, Serialize};

use super::{After, Catalog, Evaluation, FileChange, HomeOutcome, HomeView as _, evaluate};
use crate::app::App;
use crate::document::MAX_BYTES;
use crate::document::write::{Folder, Original, Ownership};
use crate::error::{Error, Result};
use crate::helper::{Subject, Task};
use crate::screen;
use crate::world::World;
pub use folder::HomeFolder;
use kept::Witness;
pub use kept::{Budget, Kept};
pub use preview::{Preview, Previewed};
use writing::{Write, write_all};

/// Files of one home together are not larger in one message.
const FETCH_LIMIT: usize = 12 << 20;

/// Homes that are written side by side: the disk orders its syncs better than a loop does.
const WRITERS: usize = 8;

/// A home to look at or to write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HomeTarget {
    /// Its identifier; comes back in every answer.
    pub id: String,
    /// Its folder.
    pub path: PathBuf,
    /// The tree that its owner controls: a link that leads out of it is refused.
    pub within: Option<PathBuf>,
    /// The version that its code expects.
    pub expected: Option<u32>,
    /// The code whose own migrator may be used, where a person allows it.
    #[serde(default)]
    pub native: Option<Native>,
}

/// Where the application's own migrator is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Native {
    /// The interpreter of the install that serves the home.
    pub interpreter: Option<PathBuf>,
    /// The folder of its code.
    pub package: Option<PathBuf>,
}

/// Steps of the site: the name and the text of each file.
pub type SiteSteps = Vec<(String, String)>;

/// Evaluates homes; tells one [`Evaluation`] a home, in order, so that no message grows with their number.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Evaluate {
    /// The application.
    pub app: App,
    /// The site's own steps.
    pub site_steps: SiteSteps,
    /// Which homes.
    pub homes: Vec<HomeTarget>,
    /// Whether what is made of them is handed over, so that writing need not make it again.
    pub keep: bool,
}

/// Reads the bytes that a snapshot must hold; tells one [`Fetched`] a home.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Fetch {
    /// Which files of which homes.
    pub homes: Vec<(HomeTarget, Vec<String>)>,
    /// Whose homes they are.
    pub subject: Subject,
}

/// The files of one home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fetched {
    /// Which home.
    pub id: String,
    /// Its files; one that does not exist is left out.
    pub files: Vec<FetchedFile>,
    /// Why they could not be read. Then there are none.
    pub error: Option<String>,
}

/// One file with what a snapshot must know of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchedFile {
    /// Relative to the home.
    pub path: String,
    /// Its bytes.
    #[serde(with = "hexadecimal")]
    pub bytes: Vec<u8>,
    /// Its permission bits.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// SHA-256 of its bytes.
    pub sha256: String,
}

/// Writes homes as they were planned; tells one [`Committed`] a home.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Commit {
    /// The application.
    pub app: App,
    /// The site's own steps.
    pub site_steps: SiteSteps,
    /// The homes.
    pub homes: Vec<Planned>,
    /// Whose homes they are.
    pub subject: Subject,
}

/// A home that is to be written, as its plan says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Planned {
    /// The home.
    pub target: HomeTarget,
    /// The files that change.
    pub files: Vec<FileChange>,
    /// The folders that are made.
    pub dirs: Vec<String>,
    /// What was made of it, if that was kept.
    pub kept: Option<Kept>,
}

/// What became of one home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Committed {
    /// Which home.
    pub id: String,
    /// `migrated`, `read-only`, `conflict` or `failed`; every other than `migrated` left its files as they were.
    pub outcome: HomeOutcome,
    /// Why it was not migrated.
    pub reason: String,
    /// The files that changed.
    pub files: Vec<FileChange>,
}

/// Puts the bytes of a snapshot back; tells one [`Restored`] a home. A message holds 32 MiB: a caller with
/// more than a few large files makes more than one task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Restore {
    /// The application.
    pub app: App,
    /// The homes, and the files of each.
    pub homes: Vec<(HomeTarget, Vec<RestoreFile>)>,
    /// Whose homes they are.
    pub subject: Subject,
}

/// One file to put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreFile {
    /// Relative to the home.
    pub path: String,
    /// What it was.
    pub was: Was,
    /// SHA-256 that it must have now; `None` if it must not be there.
    pub sha256_now: Option<String>,
}

/// What a file was before a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Was {
    /// It was not there.
    Absent,
    /// It held these bytes.
    Present {
        /// The bytes.
        #[serde(with = "hexadecimal")]
        bytes: Vec<u8>,
        /// Whose it was: what a file that is there has by now stays.
        access: Ownership,
    },
}

/// What became of putting a home back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// Which home.
    pub id: String,
    /// Why nothing was put back; nothing if all of it was.
    pub failure: Option<Failed>,
}

/// Why a home was not written; its files are as they were.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// `read-only`, `conflict`, `invalid` or `failed`.
    pub outcome: HomeOutcome,
    /// What went wrong.
    pub reason: String,
}

impl Task for Evaluate {
    const VERB: &'static str = "evaluate";
    type Event = Evaluation;
    type Answer = ();

    fn perform(self, world: &World, tell: &mut dyn FnMut(Evaluation) -> Result<()>) -> Result<()> {
        let catalog = Catalog::shared(&self.app, &self.site_steps)?;
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        let budget = Budget::new(self.keep);
        side_by_side(threads, &self.homes, tell, |target| {
            look(world, &self.app, &catalog, target, &budget)
        })
    }
}

/// Evaluates one home.
fn look(
    world: &World,
    app: &App,
    catalog: &Catalog,
    target: &HomeTarget,
    budget: &Budget,
) -> Evaluation {
    let mut evaluation = match HomeFolder::open(target) {
        Ok(Some(home)) => {
            let witness = Witness::of(&home);
            let (mut evaluation, mut after) = evaluate(app, catalog, &witness, target.expected);
            let native = target.native.as_ref();
            if let Some(native) =
                native.filter(|_| evaluation.outcome == HomeOutcome::BeyondCatalog)
            {
                let asked = migrator::Asked {
                    app,
                    catalog,
                    view: &witness,
                    native,
                    uid: world.account.uid,
                };
                (evaluation, after) = asked.evaluate(evaluation, budget.keeps());
            }
            if evaluation.outcome == HomeOutcome::Migrated {
                let is_native = evaluation.is_native();
                evaluation.kept = budget.keep(after, witness, is_native);
                if is_native && evaluation.kept.is_none() {
                    let why = "what its own migrator made is too large to be kept";
                    evaluation = evaluation.concluded(HomeOutcome::Failed, why);
                }
            }
            without_secrets(&home, evaluation)
        }
        Ok(None) => Evaluation::new(
            HomeOutcome::Unconfigured,
            "there is no folder",
            target.expected,
        ),
        Err(reason) => Evaluation::new(HomeOutcome::Invalid, reason, target.expected),
    };
    evaluation.id.clone_from(&target.id);
    evaluation
}

/// The file whose every value is a secret.
const SECRETS: &str = ".env";

/// What an evaluation says, without the values of the home's own secrets: only here are they known.
fn without_secrets(home: &HomeFolder, mut evaluation: Evaluation) -> Evaluation {
    let bytes = home.read(SECRETS).ok().flatten().unwrap_or_default();
    let secrets = crate::document::env::values(&String::from_utf8_lossy(&bytes));
    if secrets.is_empty() {
        return evaluation;
    }
    let text = |text: &mut String| *text = screen::without(&secrets, text);
    text(&mut evaluation.reason);
    evaluation.failures.iter_mut().for_each(text);
    for change in &mut evaluation.changes {
        for value in [&mut change.before, &mut change.after]
            .into_iter()
            .flatten()
        {
            *value = screen::json_without(&secrets, value);
        }
    }
    evaluation
}

impl Task for Fetch {
    const VERB: &'static str = "fetch";
    type Event = Fetched;
    type Answer = ();

    fn subject(&self) -> Subject {
        self.subject.clone()
    }

    fn perform(self, _: &World, tell: &mut dyn FnMut(Fetched) -> Result<()>) -> Result<()> {
        for (target, files) in self.homes {
            let (files, error) = match fetch(&target, &files) {
                Ok(files) => (files, None),
                Err(reason) => (Vec::new(), Some(reason)),
            };
            tell(Fetched {
                id: target.id,
                files,
                error,
            })?;
        }
        Ok(())
    }
}

fn fetch(target: &HomeTarget, files: &[String]) -> std::result::Result<Vec<FetchedFile>, String> {
    let home = open(target)?;
    let mut found = Vec::new();
    let mut left = FETCH_LIMIT;
    for path in files {
        let original = home
            .folder
            .read(Path::new(path), MAX_BYTES)
            .map_err(|error| error.to_string())?;
        let Some(original) = original else { continue };
        left = left.checked_sub(original.bytes.len()).ok_or_else(|| {
            format!(
                "the files of {} are too large for a snapshot",
                target.path.display()
            )
        })?;
        found.push(FetchedFile {
            path: path.clone(),
            mode: original.mode,
            uid: original.uid,
            gid: original.gid,
            sha256: original.digest(),
            bytes: original.bytes,
        });
    }
    Ok(found)
}

impl Task for Commit {
    const VERB: &'static str = "commit";
    type Event = Committed;
    type Answer = ();

    fn subject(&self) -> Subject {
        self.subject.clone()
    }

    fn perform(self, _: &World, tell: &mut dyn FnMut(Committed) -> Result<()>) -> Result<()> {
        let catalog = Catalog::shared(&self.app, &self.site_steps)?;
        side_by_side(WRITERS, &self.homes, tell, |planned| {
            match commit(&self.app, &catalog, planned) {
                Ok(()) => Committed {
                    id: planned.target.id.clone(),
                    outcome: HomeOutcome::Migrated,
                    reason: String::new(),
                    files: planned.files.clone(),
                },
                Err(failed) => Committed {
                    id: planned.target.id.clone(),
                    outcome: failed.outcome,
                    reason: failed.reason,
                    files: Vec::new(),
                },
            }
        })
    }
}

impl Task for Restore {
    const VERB: &'static str = "restore";
    type Event = Restored;
    type Answer = ();

    fn subject(&self) -> Subject {
        self.subject.clone()
    }

    fn perform(self, _: &World, tell: &mut dyn FnMut(Restored) -> Result<()>) -> Result<()> {
        side_by_side(WRITERS, &self.homes, tell, |(target, files)| Restored {
            id: target.id.clone(),
            failure: restore(&self.app, target, files).err(),
        })
    }
}

/// Does `work` on every item, several at a time, and tells the results in order.
fn side_by_side<T: Sync, R: Send>(
    threads: usize,
    items: &[T],
    tell: &mut dyn FnMut(R) -> Result<()>,
    work: impl Fn(&T) -> R + Sync,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let (sender, results) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads.min(items.len()) {
            let (sender, next, work) = (sender.clone(), &next, &work);
            let writer = move || {
                while let Some((at, item)) = take(items, next) {
                    // Nobody listens any more: the caller gave up, and nothing more is begun.
                    if sender.send((at, work(item))).is_err() {
                        break;
                    }
                }
            };
            std::thread::Builder::new()
                .spawn_scoped(scope, writer)
                .map_err(|error| Error::io("cannot start threads", error))?;
        }
        drop(sender);
        let mut early = BTreeMap::new();
        let mut due = 0;
        for (at, result) in results {
            early.insert(at, result);
            while let Some(result) = early.remove(&due) {
                tell(result)?;
                due += 1;
            }
        }
        Ok(())
    })
}

/// The next item that nobody has taken, and its place.
fn take<'t, T>(items: &'t [T], next: &AtomicUsize) -> Option<(usize, &'t T)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    items.get(at).map(|item| (at, item))
}

fn commit(app: &App, catalog: &Catalog, planned: &Planned) -> std::result::Result<(), Failed> {
    let home = open(&planned.target).map_err(|reason| Failed {
        outcome: HomeOutcome::Conflict,
        reason,
    })?;
    let kept = planned.kept.as_ref();
    let kept = kept.filter(|kept| kept.is_made_of(&home, &planned.files));
    let after = match kept {
        Some(kept) => kept.after.clone(),
        None => evaluate_again(app, catalog, &home, planned)?,
    };
    let originals = home.originals.into_inner();
    home.folder.sweep(originals.values())?;
    for dir in &planned.dirs {
        home.folder.make_dir(Path::new(dir))?;
    }
    let mut writes = Vec::new();
    for (path, bytes) in &after {
        let original = originals.get(path).ok_or_else(|| Failed {
            outcome: HomeOutcome::Failed,
            reason: format!("{path} was never read"),
        })?;
        writes.push(Write::Replace(original, bytes));
    }
    write_all(app, &home.folder, writes)
}

/// What is to be written, made once more; it must be what was planned.
fn evaluate_again(
    app: &App,
    catalog: &Catalog,
    home: &HomeFolder,
    planned: &Planned,
) -> std::result::Result<After, Failed> {
    let (now, after) = evaluate(app, catalog, home, planned.target.expected);
    let (outcome, reason) = match now.outcome {
        // The application's own migrator is never asked a second time.
        HomeOutcome::BeyondCatalog if planned.kept.is_some() => (
            HomeOutcome::Conflict,
            "it changed since it was planned".to_owned(),
        ),
        HomeOutcome::Migrated if now.files == planned.files && now.dirs == planned.dirs => {
            return Ok(after);
        }
        HomeOutcome::ReadOnly => (HomeOutcome::ReadOnly, now.reason),
        HomeOutcome::Migrated => (
            HomeOutcome::Conflict,
            "it changed since it was planned".to_owned(),
        ),
        other => {
            let reason = format!(
                "it changed since it was planned, and is {other} now: {}",
                now.reason
            );
            let reason = reason.trim_end_matches(": ").to_owned();
            (HomeOutcome::Conflict, reason)
        }
    };
    Err(Failed { outcome, reason })
}

fn restore(
    app: &App,
    target: &HomeTarget,
    files: &[RestoreFile],
) -> std::result::Result<(), Failed> {
    let conflict = |reason: String| Failed {
        outcome: HomeOutcome::Conflict,
        reason,
    };
    let home = open(target).map_err(conflict)?;
    let mut found = Vec::new();
    for file in files {
        let original = home
            .folder
            .read(Path::new(&file.path), MAX_BYTES)
            .map_err(|error| conflict(error.to_string()))?;
        found.push((original, file));
    }
    let mut writes = Vec::new();
    for (original, file) in &found {
        let is_as_written = original.as_ref().map(Original::digest) == file.sha256_now;
        let write = match (original, &file.was) {
            // What was put back already needs nothing; anything else is somebody's own change.
            (None, Was::Absent) => continue,
            (Some(original), Was::Present { bytes, .. }) if original.bytes == *bytes => continue,
            (None, Was::Present { .. }) if !is_as_written => {
                return Err(conflict(format!("{} is not there any more", file.path)));
            }
            _ if !is_as_written => {
                return Err(conflict(format!("{} was changed since", file.path)));
            }
            (Some(original), Was::Absent) => Write::Remove(original),
            (Some(original), Was::Present { bytes, .. }) => Write::Replace(original, bytes),
            (None, Was::Present { bytes, access }) => {
                Write::Create(Path::new(&file.path), bytes, access)
            }
        };
        writes.push(write);
    }
    write_all(app, &home.folder, writes)
}

fn open(target: &HomeTarget) -> std::result::Result<HomeFolder, String> {
    HomeFolder::open(target)?.ok_or_else(|| format!("{} is not there", target.path.display()))
}

/// Bytes as hexadecimal text: twice as long as they are, whatever they hold.
mod hexadecimal {
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::digest;

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&digest::hex(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        digest::unhex(&text).ok_or_else(|| serde::de::Error::custom("not hexadecimal"))
    }
}

#[cfg(test)]
mod tests;
