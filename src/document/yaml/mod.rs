//! YAML, read as the application reads it, and edited in place.

mod lines;
mod preflight;
mod resolve;
mod schema;
mod tree;

use super::{Document, Edit, Invalid, Path, Refusal, Value};
use lines::Lines;
use tree::Tree;

/// A YAML document.
#[derive(Debug)]
pub struct Yaml {
    bytes: Vec<u8>,
    tree: Tree,
    value: Value,
}

impl Yaml {
    /// Reads a document.
    ///
    /// # Errors
    /// When not every loader of the application would read the bytes, and read them alike.
    pub fn parse(bytes: &[u8]) -> Result<Self, Invalid> {
        let text = preflight::text(bytes)?;
        let lines = Lines::new(text);
        let tree = tree::build(text, &lines)?;
        preflight::tabs(text, &tree, &lines)?;
        let value = resolve::resolve(&tree, &lines)?;
        Ok(Self {
            bytes: bytes.to_vec(),
            tree,
            value,
        })
    }
}

impl Document for Yaml {
    fn value(&self) -> &Value {
        &self.value
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn edit(&mut self, edit: &Edit) -> Result<(), Refusal> {
        Err(Refusal::new(
            0,
            &edit.path(),
            "the editor comes with the next commit",
        ))
    }

    fn line_of(&self, _path: &Path) -> Option<usize> {
        None
    }
}
