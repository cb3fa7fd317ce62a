//! The one error type of the crate.
//!
//! An [`Error`] says what was tried, on what, and what was left behind, as a lower-case fragment
//! that reads well after `update: `. Its [`Kind`] is what a caller treats differently, which is
//! also what decides the exit status. What happens to one home or one runtime is not an error of
//! a run: it becomes a row of the receipt.

use std::fmt;

/// What a caller does differently about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// The command line asks for something that does not exist or contradicts itself.
    Usage,
    /// A file, value or state that was given cannot be used as it is.
    Input,
    /// Something on this machine could not be read or written.
    Io,
    /// Nothing was changed, on purpose: the situation forbids a run.
    Refused,
    /// Another run holds the lock.
    Locked,
    /// A call or a child did not answer within its limit.
    Deadline,
    /// The other side answered, and denied it.
    Denied,
    /// The other side answered with something that cannot be used.
    Protocol,
}

impl Kind {
    /// The exit status that ends a command with this kind of error.
    #[must_use]
    pub const fn exit_status(self) -> u8 {
        match self {
            Self::Usage => 2,
            Self::Input | Self::Io | Self::Deadline | Self::Denied | Self::Protocol => 3,
            Self::Refused => 4,
            Self::Locked => 75,
        }
    }

    /// The word that stands in `"code"` when an error is printed as JSON.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Usage => "USAGE_ERROR",
            Self::Input => "VALIDATION_ERROR",
            Self::Io => "IO_ERROR",
            Self::Refused => "REFUSED",
            Self::Locked => "LOCKED",
            Self::Deadline => "DEADLINE",
            Self::Denied => "DENIED",
            Self::Protocol => "PROTOCOL_ERROR",
        }
    }
}

/// What went wrong, where, why, and what a person can do about it.
#[derive(Debug)]
pub struct Error {
    kind: Kind,
    what: String,
    hint: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The result of anything that can fail with an [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of `kind`; `what` is a lower-case fragment that names the path, unit or step.
    pub fn new(kind: Kind, what: impl Into<String>) -> Self {
        Self {
            kind,
            what: what.into(),
            hint: None,
            source: None,
        }
    }

    /// An input/output error: what was tried, on which path, and the system's reason.
    pub fn io(what: impl Into<String>, source: impl Into<std::io::Error>) -> Self {
        Self::new(Kind::Io, what).with_source(source.into())
    }

    /// Adds the error that caused this one; it is shown after a colon.
    #[must_use]
    pub fn with_source(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Adds the one line that says what the person can do.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What a caller does differently.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// What the person can do, if anything is known.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        let mut cause: Option<&(dyn std::error::Error + 'static)> =
            self.source.as_deref().map(|source| source as _);
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            // An `Error` prints its own chain, so walking on would say everything twice.
            if error.is::<Self>() {
                break;
            }
            cause = error.source();
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_reads_as_one_line_with_its_causes() {
        let inner = Error::io("cannot open /a", std::io::Error::from_raw_os_error(13));
        let outer = Error::new(Kind::Input, "cannot read the configuration").with_source(inner);
        assert_eq!(
            outer.to_string(),
            "cannot read the configuration: cannot open /a: Permission denied (os error 13)"
        );
    }
}
