//! Why a file is not read or not written.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// Why a file cannot be read.
#[derive(Debug)]
pub struct ReadError {
    /// Which.
    pub path: PathBuf,
    /// Why.
    pub reason: String,
}

/// Why a file was not written; it is as it was, except where it says that it is not.
#[derive(Debug)]
pub enum WriteError {
    /// Not allowed, or the file system is read-only.
    ReadOnly {
        /// What.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// It is not the file any more that was read.
    Changed {
        /// What.
        path: PathBuf,
    },
    /// It could be written, but not without harm.
    Refused {
        /// What.
        path: PathBuf,
        /// Which harm.
        reason: String,
    },
    /// It was changed, that cannot be made durable, and it could not be changed back.
    Stays {
        /// What.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The system failed.
    Io {
        /// What.
        path: PathBuf,
        /// What was tried.
        tried: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot read {}: {}", self.path.display(), self.reason)
    }
}

impl std::error::Error for ReadError {}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReadOnly { path, source } => {
                write!(f, "{} is not writable: {source}", path.display())
            }
            Self::Changed { path } => {
                write!(
                    f,
                    "{} was changed by somebody else since it was read",
                    path.display()
                )
            }
            Self::Refused { path, reason } => {
                write!(f, "{} is left alone: {reason}", path.display())
            }
            Self::Stays { path, source } => write!(
                f,
                "{} was changed, and whether that lasts is not known ({source}): what was written stays",
                path.display()
            ),
            Self::Io {
                path,
                tried,
                source,
            } => write!(f, "cannot {tried} {}: {source}", path.display()),
        }
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::ReadOnly { source, .. }
            | Self::Stays { source, .. }
            | Self::Io { source, .. } => Some(source),
            Self::Changed { .. } | Self::Refused { .. } => None,
        }
    }
}

impl WriteError {
    /// The same where what was done could not be undone.
    pub(super) fn that_stays(self) -> Self {
        match self {
            Self::Io { path, source, .. } | Self::ReadOnly { path, source } => {
                Self::Stays { path, source }
            }
            other => other,
        }
    }

    /// What `tried` met on `path`.
    pub(super) fn from_system(path: &Path, tried: &'static str, errno: Errno) -> Self {
        let path = path.to_owned();
        let source = io::Error::from(errno);
        match errno {
            Errno::ROFS | Errno::ACCESS | Errno::PERM => Self::ReadOnly { path, source },
            _ => Self::Io {
                path,
                tried,
                source,
            },
        }
    }
}
