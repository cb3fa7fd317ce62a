//! A home on disk, as an evaluation looks at it. It reads only.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::super::HomeView;
use super::HomeTarget;
use crate::document::MAX_BYTES;
use crate::document::write::{Folder, Original};

/// A home on disk, held open.
#[derive(Debug)]
pub struct HomeFolder {
    pub(super) folder: Folder,
    within: Option<PathBuf>,
    pub(super) originals: RefCell<BTreeMap<String, Original>>,
}

impl HomeFolder {
    /// Opens a home; `None` if there is no such folder.
    ///
    /// # Errors
    /// When it cannot be opened, or lies outside of what its owner controls.
    pub fn open(target: &HomeTarget) -> std::result::Result<Option<Self>, String> {
        let shown = target.path.display();
        let path = match std::fs::canonicalize(&target.path) {
            Ok(path) => path,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("cannot open {shown}: {error}")),
        };
        let within = match &target.within {
            None => None,
            Some(tree) => Some(
                std::fs::canonicalize(tree)
                    .map_err(|error| format!("cannot open {}: {error}", tree.display()))?,
            ),
        };
        if let Some(tree) = &within
            && !path.starts_with(tree)
        {
            return Err(format!("{shown} leads out of {}", tree.display()));
        }
        let mut folder = Folder::open(&path).map_err(|error| error.to_string())?;
        if let Some(tree) = &within {
            folder = folder.within(tree);
        }
        Ok(Some(Self {
            folder,
            within,
            originals: RefCell::default(),
        }))
    }

    /// Where a path of the home really is, if its owner controls it.
    fn real(&self, path: &str) -> io::Result<Option<PathBuf>> {
        let real = match std::fs::canonicalize(self.folder.path().join(path)) {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match &self.within {
            Some(tree) if !real.starts_with(tree) => Err(io::Error::other(format!(
                "a link to {}, out of {}",
                real.display(),
                tree.display()
            ))),
            _ => Ok(Some(real)),
        }
    }
}

impl HomeView for HomeFolder {
    fn read(&self, file: &str) -> io::Result<Option<Vec<u8>>> {
        let path = Path::new(file);
        // A folder of the home may be a link: what is read in it is only looked at, never written.
        let linked = match path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
        {
            Some(parent) => {
                let real = self.real(&parent.to_string_lossy())?;
                real.filter(|real| *real != self.folder.path().join(parent))
            }
            None => None,
        };
        if let (Some(real), Some(name)) = (linked, path.file_name()) {
            let mut folder = Folder::open(&real).map_err(io::Error::other)?;
            if let Some(tree) = &self.within {
                folder = folder.within(tree);
            }
            let found = folder
                .read(Path::new(name), MAX_BYTES)
                .map_err(io::Error::other)?;
            return Ok(found.map(|original| original.bytes));
        }
        let original = self
            .folder
            .read(path, MAX_BYTES)
            .map_err(|error| io::Error::other(error.reason))?;
        Ok(original.map(|original| {
            let bytes = original.bytes.clone();
            self.originals
                .borrow_mut()
                .insert(file.to_owned(), original);
            bytes
        }))
    }

    fn names(&self, folder: &str) -> io::Result<Vec<String>> {
        let Some(path) = self.real(folder)? else {
            return Ok(Vec::new());
        };
        let entries = match std::fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        for entry in entries {
            // A name that is not UTF-8 cannot stand in a configuration.
            names.extend(entry?.file_name().into_string());
        }
        names.sort();
        Ok(names)
    }

    fn folder(&self, path: &str) -> io::Result<Option<bool>> {
        match std::fs::metadata(self.folder.path().join(path)) {
            Ok(found) => Ok(Some(found.is_dir())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn unwritable(&self, path: &str) -> Option<String> {
        let originals = self.originals.borrow();
        let checked = match originals.get(path) {
            Some(original) => self.folder.writable(original),
            None => self.folder.creatable(Path::new(path)),
        };
        checked.err().map(|error| error.to_string())
    }
}
