//! Our own durable state: the lock, the receipts and the snapshots.
//!
//! Everything lives in one folder that only its owner can enter. Writing into it needs a [`Lock`]
//! as proof that no other run does. Reading (`plan`, `status`, `receipt`) needs nothing and changes
//! nothing: no file is created, not even an empty one.

#![expect(
    clippy::disallowed_methods,
    reason = "this is where our own state is written"
)]

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::error::{Error, Kind, Result};
use crate::world::{World, fail_point};

pub mod audit;
pub mod cells;
pub mod db;
pub mod jobs;
pub mod lock;
pub mod receipts;
pub mod requests;
pub mod scope;
pub mod secret;
pub mod snapshots;

pub use db::Store;
pub use lock::Lock;

/// The state folder.
#[derive(Debug, Clone)]
pub struct State {
    dir: PathBuf,
}

impl State {
    /// The state folder at `dir`, which need not exist: for reading only.
    #[must_use]
    pub fn at(dir: &Path) -> Self {
        Self {
            dir: dir.to_path_buf(),
        }
    }

    /// Makes the folder where it is missing, and refuses one that somebody else could write into.
    ///
    /// # Errors
    /// `Refused` when the folder belongs to another user or others may write into it.
    pub fn prepare(&self, world: &World, _lock: &Lock) -> Result<()> {
        for dir in [
            self.dir.clone(),
            self.dir.join("receipts"),
            self.dir.join("snapshots"),
        ] {
            make_private_dir(world, &dir)?;
            sweep(&dir)?;
        }
        Ok(())
    }

    /// Where it is.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

/// Makes a folder with mode 0700, or checks that the one that is there is ours alone.
fn make_private_dir(world: &World, dir: &Path) -> Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|error| Error::io(format!("cannot make {}", dir.display()), error))?;
    let meta = std::fs::symlink_metadata(dir)
        .map_err(|error| Error::io(format!("cannot look at {}", dir.display()), error))?;
    let refused = |why: String| {
        Err(
            Error::new(Kind::Refused, format!("{} {why}", dir.display()))
                .with_hint("name another folder with --state-dir, or mend this one"),
        )
    };
    if !meta.is_dir() {
        return refused("is not a folder".into());
    }
    if meta.uid() != world.account.uid {
        return refused(format!("belongs to uid {}, not to us", meta.uid()));
    }
    if meta.mode() & 0o022 != 0 {
        return refused(format!(
            "can be written by others (mode {:o})",
            meta.mode() & 0o7777
        ));
    }
    Ok(())
}

/// Replaces a file of ours as a whole: written beside it, synced, renamed, and the folder synced. `label` names
/// the file in tests.
fn replace(label: &str, path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = |error| Error::io(format!("cannot write {}", path.display()), error);
    let dir = path.parent().unwrap_or_else(|| Path::new("/"));
    fail_point(format_args!("{label}.begin"));
    let mut temporary = tempfile::Builder::new()
        .prefix(NEW)
        .tempfile_in(dir)
        .map_err(failed)?;
    let (first, second) = bytes.split_at(bytes.len() / 2);
    temporary.write_all(first).map_err(failed)?;
    fail_point(format_args!("{label}.half-written"));
    temporary.write_all(second).map_err(failed)?;
    fail_point(format_args!("{label}.written"));
    temporary.as_file().sync_all().map_err(failed)?;
    fail_point(format_args!("{label}.synced"));
    temporary
        .persist(path)
        .map_err(|error| failed(error.error))?;
    fail_point(format_args!("{label}.renamed"));
    sync_dir(dir)?;
    fail_point(format_args!("{label}.durable"));
    Ok(())
}

/// Lets `path` be a file of ours by a second name, made durable like [`replace`]; a copy of it where the file
/// system has no hard links. `from` and `path` are in one folder.
fn name(label: &str, from: &Path, path: &Path) -> Result<()> {
    let failed = |error| Error::io(format!("cannot write {}", path.display()), error);
    let dir = path.parent().unwrap_or_else(|| Path::new("/"));
    fail_point(format_args!("{label}.begin"));
    let linked = tempfile::Builder::new()
        .prefix(NEW)
        .make_in(dir, |new| std::fs::hard_link(from, new));
    let Ok(linked) = linked else {
        let bytes = read(from)?.ok_or_else(|| failed(std::io::ErrorKind::NotFound.into()))?;
        return replace(label, path, &bytes);
    };
    fail_point(format_args!("{label}.linked"));
    linked
        .into_temp_path()
        .persist(path)
        .map_err(|error| failed(error.error))?;
    fail_point(format_args!("{label}.renamed"));
    sync_dir(dir)?;
    fail_point(format_args!("{label}.durable"));
    Ok(())
}

/// Whether two names are of one file.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| {
        let meta = std::fs::symlink_metadata(path).ok()?;
        Some((meta.dev(), meta.ino()))
    };
    id(one).is_some_and(|one| Some(one) == id(other))
}

/// Puts run ids into the order of `newest_first`; those that are not in it come last, by their own time.
fn in_order(mut ids: Vec<String>, newest_first: &[String]) -> Vec<String> {
    let rank: std::collections::BTreeMap<&str, usize> = newest_first
        .iter()
        .enumerate()
        .rev()
        .map(|(rank, id)| (id.as_str(), rank))
        .collect();
    ids.sort_by(|a, b| {
        let rank = |id: &str| rank.get(id).copied().unwrap_or(usize::MAX);
        rank(a).cmp(&rank(b)).then_with(|| b.cmp(a))
    });
    ids
}

/// How the name of a file starts that is being written; one that a killed run left is removed by the next.
const NEW: &str = ".new-";

/// Removes what killed runs left half-written.
fn sweep(dir: &Path) -> Result<()> {
    let failed = |error| Error::io(format!("cannot clean {}", dir.display()), error);
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name().to_string_lossy().starts_with(NEW) {
            std::fs::remove_file(entry.path()).map_err(failed)?;
        }
    }
    Ok(())
}

/// Makes what was renamed or created in a folder durable (fsync(2), "does not necessarily ensure
/// that the entry in the directory containing the file has also reached disk").
fn sync_dir(dir: &Path) -> Result<()> {
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(|error| Error::io(format!("cannot sync {}", dir.display()), error))
}

/// Opens a file of ours for writing, new and empty, readable by its owner alone.
fn create_private(path: &Path) -> Result<File> {
    OpenOptions::new()
        .write(true)
        .read(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| Error::io(format!("cannot create {}", path.display()), error))
}

/// Reads a file of ours, `None` where there is none.
fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    let failed = |error| Error::io(format!("cannot read {}", path.display()), error);
    match File::open(path) {
        Ok(mut file) => {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(failed)?;
            Ok(Some(bytes))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
    }
}
