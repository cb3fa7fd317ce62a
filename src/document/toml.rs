//! Placeholder of the first commit.
use super::{Document, Edit, Invalid, Path, Refusal, Value};
/// A document.
#[derive(Debug)]
pub struct Toml {
    bytes: Vec<u8>,
    value: Value,
}
impl Toml {
    /// Reads.
    ///
    /// # Errors
    /// When it cannot.
    pub fn parse(bytes: &[u8]) -> Result<Self, Invalid> {
        Ok(Self {
            bytes: bytes.to_vec(),
            value: Value::Map(Vec::new()),
        })
    }
}
impl Document for Toml {
    fn value(&self) -> &Value {
        &self.value
    }
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }
    fn edit(&mut self, edit: &Edit) -> Result<(), Refusal> {
        Err(Refusal::new(0, &edit.path(), "comes with a later commit"))
    }
    fn line_of(&self, _path: &Path) -> Option<usize> {
        None
    }
}
