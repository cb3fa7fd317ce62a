//! Documents of a home behind one interface: parse, look up, edit in place, prove.
//!
//! A [`Document`] keeps the bytes that it was read from. An [`Edit`] changes only the bytes that it
//! must: comments, order, quoting, indentation, line ends and a BOM stay. After every edit the text is
//! parsed again and compared with the tree that the edit means; what cannot be proved is refused with
//! the line and the key, and the bytes stay as they were. Nothing here decides what to edit (`migrate`).

use std::fmt;

use serde::{Deserialize, Serialize};

pub use crate::app::Format;

/// A value as the application reads it: aliases and merge keys resolved, scalars typed.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number; wider ones stay text in [`Value::Other`].
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Text.
    Str(String),
    /// A scalar of another type (date, binary, a wide integer): its type and its text.
    Other(&'static str, String),
    /// A sequence.
    List(Vec<Value>),
    /// A mapping, in the order written. Keys need not be text.
    Map(Vec<(Value, Value)>),
}

/// Where a value stands: keys of mappings and positions in sequences.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path(pub Vec<Key>);

/// One step of a [`Path`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// A key of a mapping.
    Name(String),
    /// A position in a sequence, from 0.
    Index(usize),
}

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

/// Text that can be looked into and edited.
pub trait Document: fmt::Debug + Send {
    /// What it means to the application.
    fn value(&self) -> &Value;
    /// The bytes as they are now.
    fn bytes(&self) -> &[u8];
    /// Makes one change and proves it.
    ///
    /// # Errors
    /// When the change cannot be made or proved; the document is as it was.
    fn edit(&mut self, edit: &Edit) -> Result<(), Refusal>;
    /// The line of a value, from 1, where it has one of its own.
    fn line_of(&self, path: &Path) -> Option<usize>;
}
