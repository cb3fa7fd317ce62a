//! A text without structure: it is one value, and it is replaced as a whole.

use super::{Document, Edit, Invalid, Path, Refusal, Scalar, Value};

/// A text.
#[derive(Debug)]
pub struct Text {
    value: Value,
}

impl Text {
    /// Reads a text.
    ///
    /// # Errors
    /// When it is not UTF-8.
    pub fn parse(bytes: &[u8]) -> Result<Self, Invalid> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self {
                value: Value::from(text),
            }),
            Err(error) => {
                let before = &bytes[..error.valid_up_to()];
                let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
                Err(Invalid::new(line, "not UTF-8"))
            }
        }
    }
}

impl Document for Text {
    fn value(&self) -> &Value {
        &self.value
    }

    fn bytes(&self) -> &[u8] {
        self.value.as_str().unwrap_or_default().as_bytes()
    }

    fn edit(&mut self, edit: &Edit) -> Result<(), Refusal> {
        match edit {
            Edit::Text { text } => {
                self.value = Value::from(text.as_str());
                Ok(())
            }
            _ => Err(Refusal::new(0, &edit.path(), "a text has no keys")),
        }
    }

    fn prove(&self) -> Result<(), Invalid> {
        // Any text means itself.
        Ok(())
    }

    fn line_of(&self, path: &Path) -> Option<usize> {
        path.is_root().then_some(1)
    }

    fn scalars(&self) -> Result<Vec<Scalar>, Invalid> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_replaced_as_a_whole() {
        let mut text = Text::parse("é\r\n".as_bytes()).unwrap();
        assert_eq!(text.value(), &Value::from("é\r\n"));
        text.edit(&Edit::Text { text: "b".into() }).unwrap();
        assert_eq!(text.bytes(), b"b");
        assert!(
            text.edit(&Edit::Remove {
                path: Path::from(["a"])
            })
            .is_err()
        );
        assert_eq!(Text::parse(b"a\n\xff").unwrap_err().line, 2);
    }
}
