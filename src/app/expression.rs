//! A regular expression that a whole text must match, compiled when it is first used.

use std::fmt;
use std::sync::OnceLock;

use regex_lite::{Captures, Error, Regex};
use serde::{Deserialize, Serialize};

/// A regular expression for a whole text.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Expression {
    text: String,
    /// Nothing where the text is no expression, which [`super::App::parse`] refuses.
    #[serde(skip)]
    compiled: OnceLock<Option<Regex>>,
}

impl Expression {
    /// Why the text is no expression, if it is none.
    ///
    /// # Errors
    /// When it cannot be compiled.
    pub fn check(&self) -> Result<(), Error> {
        let compiled = Regex::new(&format!("^(?:{})$", self.text))?;
        self.compiled.get_or_init(|| Some(compiled));
        Ok(())
    }

    /// The groups of a text that matches.
    #[must_use]
    pub fn captures<'t>(&self, text: &'t str) -> Option<Captures<'t>> {
        if self.compiled.get().is_none() && self.check().is_err() {
            self.compiled.get_or_init(|| None);
        }
        self.compiled.get()?.as_ref()?.captures(text)
    }

    /// Whether a text matches.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.captures(text).is_some()
    }
}

impl From<&str> for Expression {
    fn from(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            compiled: OnceLock::new(),
        }
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Expression {}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_a_text_must_match() {
        let either = Expression::from("ab|cd");
        assert!(either.is_match("ab") && either.is_match("cd"));
        assert!(!either.is_match("abd") && !either.is_match("xcd"));
        assert!(either.check().is_ok());
    }

    #[test]
    fn what_is_no_expression_matches_nothing() {
        let broken = Expression::from("(");
        assert!(broken.check().is_err());
        assert!(!broken.is_match("(") && !broken.is_match(""));
    }
}
