//! Changes of one home's files, made together or not at all.

use std::path::Path;

use super::Failed;
use crate::app::App;
use crate::document::write::{Folder, Original, Ownership, WriteError, Written};
use crate::migrate::HomeOutcome;

/// One change of a home.
pub(super) enum Write<'w> {
    /// A file gets other bytes.
    Replace(&'w Original, &'w [u8]),
    /// A file that is not there is made.
    Create(&'w Path, &'w [u8], &'w Ownership),
    /// A file goes.
    Remove(&'w Original),
}

/// A change that was made, as it is undone.
enum Done<'w> {
    Written(Box<Written>),
    Removed(&'w Original),
}

impl<'w> Write<'w> {
    fn name(&self) -> &Path {
        match self {
            Self::Replace(original, _) | Self::Remove(original) => &original.name,
            Self::Create(name, ..) => name,
        }
    }

    /// Whether it could be done, found out without writing.
    fn check(&self, folder: &Folder) -> std::result::Result<(), WriteError> {
        match self {
            Self::Replace(original, bytes) if *bytes == original.bytes => Ok(()),
            Self::Replace(original, _) | Self::Remove(original) => folder.writable(original),
            Self::Create(name, ..) => folder.creatable(name),
        }
    }

    fn perform(self, folder: &Folder) -> std::result::Result<Option<Done<'w>>, WriteError> {
        Ok(match self {
            Self::Replace(original, bytes) => folder
                .replace(original, bytes)?
                .map(|written| Done::Written(Box::new(written))),
            Self::Create(name, bytes, access) => Some(Done::Written(Box::new(
                folder.restore(name, bytes, access)?,
            ))),
            Self::Remove(original) => {
                folder.remove(original)?;
                Some(Done::Removed(original))
            }
        })
    }
}

/// Makes changes, that of the configuration last; a failure undoes those that were made.
pub(super) fn write_all(
    app: &App,
    folder: &Folder,
    mut writes: Vec<Write<'_>>,
) -> std::result::Result<(), Failed> {
    writes.sort_by_key(|write| write.name() == Path::new(&app.config.file));
    // Nothing is touched if one of them cannot be.
    for write in &writes {
        write.check(folder)?;
    }
    let mut made = Vec::new();
    for write in writes {
        match write.perform(folder) {
            Ok(done) => made.extend(done),
            Err(error) => return Err(put_back(folder, &made, error)),
        }
    }
    Ok(())
}

fn put_back(folder: &Folder, made: &[Done<'_>], error: WriteError) -> Failed {
    let mut failed = Failed::from(error);
    for done in made.iter().rev() {
        let undone = match done {
            Done::Written(written) => folder.undo(written),
            Done::Removed(original) => folder.bring_back(original),
        };
        if let Err(error) = undone {
            failed.outcome = HomeOutcome::Failed;
            failed.reason = format!("{}; and what was written stays: {error}", failed.reason);
        }
    }
    failed
}

impl From<WriteError> for Failed {
    fn from(error: WriteError) -> Self {
        let outcome = match &error {
            WriteError::ReadOnly { .. } => HomeOutcome::ReadOnly,
            WriteError::Changed { .. } => HomeOutcome::Conflict,
            WriteError::Refused { .. } | WriteError::Stays { .. } | WriteError::Io { .. } => {
                HomeOutcome::Failed
            }
        };
        Self {
            outcome,
            reason: error.to_string(),
        }
    }
}
