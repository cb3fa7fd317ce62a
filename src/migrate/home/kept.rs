//! What an evaluation made of a home, kept until it is written.
//!
//! Making it again proves nothing more where all that it was made of is as it was: the same files with the same
//! bytes, the same names in the same folders ([`Witness`]). Anything else, and whatever is larger than what may be
//! kept, is evaluated again.

use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};

use super::HomeFolder;
use crate::digest::sha256;
use crate::migrate::{After, FileChange, HomeView};

/// How many bytes one task keeps of all its homes: they go back in one message, as text twice as long.
const ALL: usize = 8 << 20;

/// How many bytes are kept of one home.
const ONE: usize = 256 << 10;

/// New bytes of a home's files, and what they were made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The bytes, by path.
    #[serde(with = "files")]
    pub(super) after: After,
    seen: Vec<Seen>,
    /// Whether it cannot be made again.
    only: bool,
}

/// What was asked of a home, and what it answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Seen {
    /// SHA-256 of a file's bytes.
    File(String, Option<String>),
    /// The names in a folder.
    Names(String, Vec<String>),
    /// Whether a path is a folder.
    Folder(String, Option<bool>),
}

impl Kept {
    /// Whether a home is still what these bytes were made of, and they are the ones that were planned.
    pub(super) fn is_made_of(&self, home: &HomeFolder, planned: &[FileChange]) -> bool {
        let is_planned = |(path, bytes): (&String, &Vec<u8>)| {
            let mut files = planned.iter();
            files.any(|file| file.path == *path && file.sha256_after == sha256(bytes))
        };
        self.after.len() == planned.len()
            && self.after.iter().all(is_planned)
            && self.seen.iter().all(|seen| seen.is_still_so(home))
    }
}

impl Seen {
    fn is_still_so(&self, home: &dyn HomeView) -> bool {
        match self {
            Self::File(path, digest) => home
                .read(path)
                .is_ok_and(|bytes| bytes.as_deref().map(sha256) == *digest),
            Self::Names(path, names) => home.names(path).is_ok_and(|now| now == *names),
            Self::Folder(path, is) => home.folder(path).is_ok_and(|now| now == *is),
        }
    }
}

/// A home that is asked through us, so that all that was seen of it is known.
pub(super) struct Witness<'h> {
    home: &'h HomeFolder,
    /// Nothing once a question could not be answered.
    seen: RefCell<Option<Vec<Seen>>>,
}

impl<'h> Witness<'h> {
    pub(super) fn of(home: &'h HomeFolder) -> Self {
        Self {
            home,
            seen: RefCell::new(Some(Vec::new())),
        }
    }

    /// Where the home is.
    pub(super) fn path(&self) -> &Path {
        self.home.folder.path()
    }

    fn note<T>(&self, answer: &io::Result<T>, seen: impl FnOnce(&T) -> Seen) {
        let mut all = self.seen.borrow_mut();
        match answer {
            Ok(answer) => {
                if let Some(all) = all.as_mut() {
                    all.push(seen(answer));
                }
            }
            Err(_) => *all = None,
        }
    }
}

impl HomeView for Witness<'_> {
    fn read(&self, file: &str) -> io::Result<Option<Vec<u8>>> {
        let answer = self.home.read(file);
        self.note(&answer, |bytes| {
            Seen::File(file.to_owned(), bytes.as_deref().map(sha256))
        });
        answer
    }

    fn names(&self, folder: &str) -> io::Result<Vec<String>> {
        let answer = self.home.names(folder);
        self.note(&answer, |names| {
            Seen::Names(folder.to_owned(), names.clone())
        });
        answer
    }

    fn folder(&self, path: &str) -> io::Result<Option<bool>> {
        let answer = self.home.folder(path);
        self.note(&answer, |is| Seen::Folder(path.to_owned(), *is));
        answer
    }

    fn unwritable(&self, path: &str) -> Option<String> {
        self.home.unwritable(path)
    }
}

/// How much of the homes of one owner may still be kept.
#[derive(Debug)]
pub struct Budget(AtomicUsize);

impl Budget {
    /// A whole one, or one that lets nothing be kept.
    #[must_use]
    pub const fn new(keep: bool) -> Self {
        Self(AtomicUsize::new(if keep { ALL } else { 0 }))
    }

    /// Keeps what was made of a home, if there is room and all that was seen of it is known.
    /// What cannot be made again may be as large as all of it.
    pub(super) fn keep(&self, after: After, witness: Witness<'_>, only: bool) -> Option<Kept> {
        let seen = witness.seen.into_inner()?;
        self.admit(Kept { after, seen, only })
    }

    /// Whether anything may be kept at all.
    pub(super) fn keeps(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// What somebody else kept, if there is room.
    #[must_use]
    pub fn admit(&self, kept: Kept) -> Option<Kept> {
        let size = kept.after.values().map(Vec::len).sum();
        let take = |left: usize| left.checked_sub(size).filter(|_| kept.only || size <= ONE);
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .ok()?;
        Some(kept)
    }
}

/// Bytes of files as hexadecimal text.
mod files {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::After;
    use crate::digest;

    pub(super) fn serialize<S: Serializer>(
        files: &After,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(files.iter().map(|(path, bytes)| (path, digest::hex(bytes))))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<After, D::Error> {
        let files = std::collections::BTreeMap::<String, String>::deserialize(deserializer)?;
        let bytes = |(path, text): (String, String)| Some((path, digest::unhex(&text)?));
        files
            .into_iter()
            .map(bytes)
            .collect::<Option<After>>()
            .ok_or_else(|| serde::de::Error::custom("not hexadecimal"))
    }
}
