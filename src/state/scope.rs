//! Identifiers and scopes: whose something is, as a name, and who may touch it.
//!
//! | kind | name |
//! |---|---|
//! | tenant | `tenant/T` |
//! | cell | `tenant/T/cell/C` |
//! | profile | `tenant/T/cell/C/profile/P` |
//! | session | `tenant/T/cell/C/profile/P/session/S` |
//! | shared artifact | `shared` |
//!
//! A thing in a scope is `<scope>/<kind of thing>/<key>`. A name is compared as a whole: there is no
//! search across scopes, no prefix and no repair of a name that is not canonical.

use std::path::Path;

use crate::error::{Error, Kind, Result};
use crate::fleet::Home;

use super::cells::Cell;
use crate::digest::sha256;

/// No identifier is longer.
const LONGEST: usize = 128;

/// Checks an identifier: `[A-Za-z0-9][A-Za-z0-9._-]{0,127}`.
///
/// # Errors
/// When it is anything else; it is never trimmed or repaired.
pub fn identifier(what: &str, text: &str) -> Result<()> {
    let mut bytes = text.bytes();
    let starts_well = bytes
        .next()
        .is_some_and(|byte| byte.is_ascii_alphanumeric());
    let goes_on_well =
        bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'));
    if starts_well && goes_on_well && text.len() <= LONGEST {
        return Ok(());
    }
    Err(
        Error::new(Kind::Input, format!("the {what} is not canonical")).with_hint(
            "letters, digits, dot, underscore and hyphen, at most 128, a letter or digit first",
        ),
    )
}

/// Checks the identifier of a tenant, which has no capital letters.
///
/// # Errors
/// When it is anything else.
pub fn tenant(text: &str) -> Result<()> {
    identifier("tenant id", text)?;
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Err(Error::new(
            Kind::Input,
            "the tenant id is not in lower case",
        ));
    }
    Ok(())
}

/// Whose something is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scope {
    /// A tenant's.
    Tenant(String),
    /// A cell's: tenant and cell.
    Cell(String, String),
    /// A profile's: tenant, cell and profile.
    Profile(String, String, String),
    /// A session's: tenant, cell, profile and session.
    Session(String, String, String, String),
    /// Everybody's, to read.
    Shared,
}

impl Scope {
    /// Checks every part of a scope.
    ///
    /// # Errors
    /// When a part is not canonical.
    pub fn check(&self) -> Result<()> {
        let (first, rest): (&str, &[(&str, &str)]) = match self {
            Self::Shared => return Ok(()),
            Self::Tenant(tenant) => (tenant, &[]),
            Self::Cell(tenant, cell) => (tenant, &[("cell id", cell)]),
            Self::Profile(tenant, cell, profile) => {
                (tenant, &[("cell id", cell), ("profile id", profile)])
            }
            Self::Session(tenant, cell, profile, session) => (
                tenant,
                &[
                    ("cell id", cell),
                    ("profile id", profile),
                    ("session id", session),
                ],
            ),
        };
        tenant(first)?;
        rest.iter().try_for_each(|(what, id)| identifier(what, id))
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Tenant(tenant) => format!("tenant/{tenant}"),
            Self::Cell(tenant, cell) => format!("tenant/{tenant}/cell/{cell}"),
            Self::Profile(tenant, cell, profile) => {
                format!("tenant/{tenant}/cell/{cell}/profile/{profile}")
            }
            Self::Session(tenant, cell, profile, session) => {
                format!("tenant/{tenant}/cell/{cell}/profile/{profile}/session/{session}")
            }
            Self::Shared => "shared".into(),
        }
    }

    /// Reads a name.
    ///
    /// # Errors
    /// When it is not exactly what [`Scope::name`] writes.
    pub fn parse(name: &str) -> Result<Self> {
        let parts: Vec<&str> = name.split('/').collect();
        let own = |part: &str| part.to_owned();
        let scope = match parts[..] {
            ["shared"] => Self::Shared,
            ["tenant", t] => Self::Tenant(own(t)),
            ["tenant", t, "cell", c] => Self::Cell(own(t), own(c)),
            ["tenant", t, "cell", c, "profile", p] => Self::Profile(own(t), own(c), own(p)),
            ["tenant", t, "cell", c, "profile", p, "session", s] => {
                Self::Session(own(t), own(c), own(p), own(s))
            }
            _ => return Err(Error::new(Kind::Input, "the scope is not canonical")),
        };
        scope.check()?;
        Ok(scope)
    }

    /// The name of a thing in this scope.
    ///
    /// # Errors
    /// When the key or the kind of thing is not canonical.
    pub fn thing(&self, kind: &str, key: &str) -> Result<String> {
        self.check()?;
        identifier("kind", kind)?;
        identifier("key", key)?;
        Ok(format!("{}/{kind}/{key}", self.name()))
    }

    /// Whether who acts for this scope may read what is in `other`: its own and what is shared.
    ///
    /// # Errors
    /// `Denied` for any other scope, also one above or below its own.
    pub fn may_read(&self, other: &Self) -> Result<()> {
        if *other == Self::Shared && *self != Self::Shared {
            return Ok(());
        }
        self.is_exactly(other)
    }

    /// Whether who acts for this scope may write into `other`: its own alone, and never what is shared.
    ///
    /// # Errors
    /// `Denied` for any other scope.
    pub fn may_write(&self, other: &Self) -> Result<()> {
        if *other == Self::Shared {
            return Err(Error::new(Kind::Denied, "shared artifacts are read-only"));
        }
        self.is_exactly(other)
    }

    fn is_exactly(&self, other: &Self) -> Result<()> {
        self.check()?;
        other.check()?;
        if self == other {
            return Ok(());
        }
        Err(Error::new(
            Kind::Denied,
            format!("{} is out of the scope {}", other.name(), self.name()),
        ))
    }

    /// The scope of a home: that of the cell whose root holds it, else one made of its owner and root.
    /// A name that is not canonical is replaced by a digest, so that two names never become one.
    #[must_use]
    pub fn of_home(home: &Home, cells: &[Cell]) -> Self {
        let cell = cells
            .iter()
            .find(|cell| cell.root == home.root || cell.root == home.path);
        let (tenant, cell) = match cell {
            Some(cell) => (cell.tenant_id.clone(), cell.cell_id.clone()),
            None => (
                format!("uid-{}", home.uid),
                format!("root-{}", digest_of(&home.root)),
            ),
        };
        let profile = if identifier("profile", &home.profile).is_ok() {
            home.profile.clone()
        } else {
            format!("path-{}", digest_of(&home.path))
        };
        Self::Profile(tenant, cell, profile)
    }

    /// The tenant that it belongs to; `host` for what is everybody's.
    #[must_use]
    pub fn tenant_id(&self) -> &str {
        match self {
            Self::Tenant(tenant)
            | Self::Cell(tenant, _)
            | Self::Profile(tenant, _, _)
            | Self::Session(tenant, _, _, _) => tenant,
            Self::Shared => super::audit::HOST,
        }
    }
}

fn digest_of(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt as _;
    let mut text = sha256(path.as_os_str().as_bytes());
    text.truncate(32);
    text
}
