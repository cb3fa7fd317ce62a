//! Which version a configuration file has, read the way the application reads it.

use std::fmt;

use crate::document::Value;

/// The version of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamp {
    /// The file names none: it is current content that nobody stamped, not an old file.
    Unversioned,
    /// The number that it reads as; anything that is no number reads as 0.
    Version(u32),
}

impl Stamp {
    /// Reads the value of the version key.
    #[must_use]
    pub fn of(value: Option<&Value>) -> Self {
        let Some(value) = value else {
            return Self::Unversioned;
        };
        let number = match value {
            Value::Int(int) => *int,
            // A cast cuts the fraction off, and makes 0 of what is no number.
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a fraction is cut off on purpose"
            )]
            Value::Float(float) => *float as i64,
            Value::Str(text) | Value::Other("int", text) => whole_number(text),
            _ => 0,
        };
        Self::Version(u32::try_from(number.max(0)).unwrap_or(u32::MAX))
    }

    /// The number; `None` if the file names none.
    #[must_use]
    pub const fn version(self) -> Option<u32> {
        match self {
            Self::Unversioned => None,
            Self::Version(version) => Some(version),
        }
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unversioned => f.write_str("unversioned"),
            Self::Version(version) => write!(f, "{version}"),
        }
    }
}

/// Text as a whole number, as Python's `int` reads it: blanks around it, a sign and single `_` between
/// digits are fine.
fn whole_number(text: &str) -> i64 {
    let text = text.trim();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let parts = digits.split('_');
    if parts
        .clone()
        .any(|part| part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()))
    {
        return 0;
    }
    let number = digits.replace('_', "").parse().unwrap_or(i64::MAX);
    if text.starts_with('-') { 0 } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_as_the_application_reads_it() {
        let cases = [
            (Some(Value::Int(12)), Some(12)),
            (Some(Value::from("12")), Some(12)),
            (Some(Value::from(" 1_2 ")), Some(12)),
            (Some(Value::Float(44.9)), Some(44)),
            (Some(Value::Float(f64::NAN)), Some(0)),
            (Some(Value::Bool(true)), Some(0)),
            (Some(Value::from("abc")), Some(0)),
            (Some(Value::from("44.9")), Some(0)),
            (Some(Value::from("1__2")), Some(0)),
            (Some(Value::Int(-3)), Some(0)),
            (Some(Value::from("-3")), Some(0)),
            (Some(Value::Null), Some(0)),
            (Some(Value::List(vec![])), Some(0)),
            (Some(Value::Int(i64::MAX)), Some(u32::MAX)),
            (None, None),
        ];
        for (value, version) in cases {
            assert_eq!(Stamp::of(value.as_ref()).version(), version, "{value:?}");
        }
    }
}
