//! A home as an evaluation looks at it: what it reads, and nothing that writes.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Reads one home. Paths are relative to it, and never leave it.
pub trait HomeView {
    /// The bytes of a file; `None` if there is none.
    ///
    /// # Errors
    /// When it is not a regular file, too large, or cannot be read.
    fn read(&self, file: &str) -> io::Result<Option<Vec<u8>>>;

    /// The names in a folder, sorted; none if there is no folder.
    ///
    /// # Errors
    /// When the folder cannot be read.
    fn names(&self, folder: &str) -> io::Result<Vec<String>>;

    /// Whether a path is a folder; `None` if nothing is there.
    ///
    /// # Errors
    /// When it cannot be looked at.
    fn folder(&self, path: &str) -> io::Result<Option<bool>>;

    /// Why a file could not be replaced, or a folder made, if that is known beforehand (access(2)).
    fn unwritable(&self, path: &str) -> Option<String>;
}

/// A home in memory, for tests and previews.
#[derive(Debug, Clone, Default)]
pub struct MemoryHome {
    /// Its files.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Its empty folders; those of its files need not be named.
    pub folders: BTreeSet<String>,
    /// Files and folders that cannot be written.
    pub read_only: BTreeSet<String>,
}

impl HomeView for MemoryHome {
    fn read(&self, file: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.files.get(file).cloned())
    }

    fn names(&self, folder: &str) -> io::Result<Vec<String>> {
        let prefix = format!("{folder}/");
        let all = self.files.keys().chain(&self.folders);
        let names: BTreeSet<String> = all
            .filter_map(|path| path.strip_prefix(&prefix)?.split('/').next())
            .map(str::to_owned)
            .collect();
        Ok(names.into_iter().collect())
    }

    fn folder(&self, path: &str) -> io::Result<Option<bool>> {
        let prefix = format!("{path}/");
        let mut all = self.files.keys().chain(&self.folders);
        if self.folders.contains(path) || all.any(|own| own.starts_with(&prefix)) {
            return Ok(Some(true));
        }
        Ok(self.files.contains_key(path).then_some(false))
    }

    fn unwritable(&self, path: &str) -> Option<String> {
        let denied = self.read_only.contains(path);
        denied.then(|| format!("{path} is read-only"))
    }
}
