//! Documents of a home behind one interface: parse, look up, edit in place, prove.
//!
//! A [`Document`] keeps the bytes that it was read from. An [`Edit`] changes only the bytes that it
//! must: comments, order, quoting, indentation, line ends and a BOM stay. After every edit the lines around it
//! are parsed again and compared with the tree that the edit means; what cannot be proved is refused with
//! the line and the key, and the bytes stay as they were. After the last edit the whole text is proved once
//! ([`Document::prove`]). Nothing here decides what to edit (`migrate`).

pub mod value;
pub mod path;
pub mod diff;
mod intent;
pub mod text;
pub mod env;
pub mod json;
pub mod toml;
pub mod yaml;
pub mod shown;
pub mod unified;
pub mod write;
#[cfg(test)]
mod harness;

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

pub use crate::app::Format;
pub use diff::changed_paths;
pub use path::{Key, Path};
pub(crate) use value::Lookup;
pub use value::Value;

/// Files of a home that are larger are not read.
pub const MAX_BYTES: u64 = 8 * 1024 * 1024;
/// Mappings and sequences may be nested this deep.
pub const MAX_DEPTH: usize = 64;
/// Aliases that one file may hold.
pub const MAX_ALIASES: usize = 1_000;
/// Values that one file may mean after its aliases and merge keys are expanded.
pub const MAX_NODES: usize = 1_000_000;

/// A change of a document.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    /// Gives `path` this value; parents that are absent or null become mappings.
    Set {
        /// Where.
        path: Path,
        /// What.
        value: Value,
    },
    /// Removes a key or an item; a mapping or sequence that is left empty stays, as `{}` or `[]`.
    Remove {
        /// Where.
        path: Path,
    },
    /// Moves a value, with the comments beside and inside it, to another path that must be free.
    Move {
        /// From where.
        from: Path,
        /// To where.
        to: Path,
    },
    /// Adds an item at the end of the sequence at `path`.
    Append {
        /// Which sequence.
        path: Path,
        /// What.
        value: Value,
    },
    /// Replaces the whole text of a text document.
    Text {
        /// What it shall say.
        text: String,
    },
}

/// Why bytes are not a document that can be worked on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invalid {
    /// The line, from 1; 0 where none can be named.
    pub line: usize,
    /// What is wrong there.
    pub reason: String,
}

/// Why an edit cannot be made without touching what it must not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The line of the value, from 1; 0 where none can be named.
    pub line: usize,
    /// The path that was to be edited.
    pub path: String,
    /// Why not.
    pub reason: String,
}

impl Invalid {
    /// Bytes that are refused for `reason`, at `line` (from 1; 0 where none can be named).
    pub fn new(line: usize, reason: impl Into<String>) -> Self {
        Self {
            line,
            reason: reason.into(),
        }
    }
}

impl Refusal {
    /// An edit of `path` that is refused for `reason`, at `line` (from 1; 0 where none can be named).
    pub fn new(line: usize, path: &Path, reason: impl Into<String>) -> Self {
        Self {
            line,
            path: path.to_string(),
            reason: reason.into(),
        }
    }
}

impl Edit {
    /// The path that the edit is about: for a move, where it starts from.
    #[must_use]
    pub fn path(&self) -> Path {
        match self {
            Self::Set { path, .. } | Self::Remove { path } | Self::Append { path, .. } => {
                path.clone()
            }
            Self::Move { from, .. } => from.clone(),
            Self::Text { .. } => Path::root(),
        }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.reason),
            line => write!(f, "line {line}: {}", self.reason),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.reason),
            line => write!(f, "line {line}: {}: {}", self.path, self.reason),
        }
    }
}

impl std::error::Error for Invalid {}
impl std::error::Error for Refusal {}

/// A value that holds no others, and where it stands in the bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Scalar {
    /// The keys that lead to it.
    pub path: Path,
    /// Its bytes, quotes included.
    pub at: Range<usize>,
    /// What it means.
    pub value: Value,
}

/// Text that can be looked into and edited.
pub trait Document: fmt::Debug + Send {
    /// What it means to the application.
    fn value(&self) -> &Value;
    /// The bytes as they are now.
    fn bytes(&self) -> &[u8];
    /// Makes one change, and proves it on the lines around it.
    ///
    /// # Errors
    /// When the change cannot be made or proved; the document is as it was.
    fn edit(&mut self, edit: &Edit) -> Result<(), Refusal>;
    /// Proves all changes together: the bytes, read anew as a whole, mean what [`value`](Self::value) says, and
    /// hold every comment. Must be asked before the bytes are written anywhere.
    ///
    /// # Errors
    /// When it cannot be proved: the line, where one can be named, and the reason.
    fn prove(&self) -> Result<(), Invalid>;
    /// The line of a value, from 1, where it has one of its own.
    fn line_of(&self, path: &Path) -> Option<usize>;
    /// Every scalar that is written out, in the order of the bytes; what an alias repeats stands once. A
    /// text has none: it is no structure.
    ///
    /// # Errors
    /// When the bytes cannot be read anew as a whole.
    fn scalars(&self) -> Result<Vec<Scalar>, Invalid>;
}

/// Reads `bytes` as a document of `format`.
///
/// # Errors
/// When the bytes are not what the application would read without doubt: the line and the reason.
pub fn parse(format: Format, bytes: &[u8]) -> Result<Box<dyn Document>, Invalid> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Invalid::new(0, "larger than 8 MiB"));
    }
    Ok(match format {
        Format::Yaml => Box::new(yaml::Yaml::parse(bytes)?),
        Format::Toml => Box::new(toml::Toml::parse(bytes)?),
        Format::Json => Box::new(json::Json::parse(bytes)?),
        Format::Env => Box::new(env::Env::parse(bytes)?),
        Format::Text => Box::new(text::Text::parse(bytes)?),
    })
}
