//! Secret references: the configuration names secrets, and never holds one.
//!
//! A reference is `secret://TENANT/CELL/KIND/NAME/VERSION`; the kinds are `channel model tool runtime`. A broker
//! gives the value: the credentials that the service manager passes (systemd.exec(5), `LoadCredential=`), or a
//! file that is ours alone. Both look for `TENANT~CELL~KIND~NAME~VERSION`: a tilde is in no identifier, so that two
//! references never name one file. A broker that fails says nothing of why: the reason may hold the secret.

#![expect(
    clippy::disallowed_methods,
    reason = "a secret's file is opened without following links"
)]

use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::scope;
use crate::error::{Error, Kind, Result};
use crate::world::World;

/// A secret is no longer than this, in bytes.
const LARGEST: u64 = 64 << 10;

/// What a secret is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To speak on a channel.
    Channel,
    /// To ask a model.
    Model,
    /// To use a tool.
    Tool,
    /// To run at all.
    Runtime,
}

impl Purpose {
    const fn word(self) -> &'static str {
        match self {
            Self::Channel => "channel",
            Self::Model => "model",
            Self::Tool => "tool",
            Self::Runtime => "runtime",
        }
    }
}

/// The name of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    tenant: String,
    cell: String,
    purpose: Purpose,
    name: String,
    version: String,
}

impl Reference {
    /// Reads a reference.
    ///
    /// # Errors
    /// `Input` when it is not canonical; the text is not repeated, for it may be a secret by mistake.
    pub fn parse(text: &str) -> Result<Self> {
        let invalid = || {
            Error::new(Kind::Input, "a secret reference is not canonical")
                .with_hint("secret://TENANT/CELL/channel|model|tool|runtime/NAME/VERSION")
        };
        let rest = text.strip_prefix("secret://").ok_or_else(invalid)?;
        let parts: Vec<&str> = rest.split('/').collect();
        let [tenant, cell, purpose, name, version] = parts[..] else {
            return Err(invalid());
        };
        let purpose = [
            Purpose::Channel,
            Purpose::Model,
            Purpose::Tool,
            Purpose::Runtime,
        ]
        .into_iter()
        .find(|known| known.word() == purpose)
        .ok_or_else(invalid)?;
        scope::tenant(tenant).map_err(|_| invalid())?;
        for part in [cell, name, version] {
            scope::identifier("part", part).map_err(|_| invalid())?;
        }
        Ok(Self {
            tenant: tenant.to_owned(),
            cell: cell.to_owned(),
            purpose,
            name: name.to_owned(),
            version: version.to_owned(),
        })
    }

    /// The name that a broker knows it by.
    #[must_use]
    pub fn file_name(&self) -> String {
        [
            &self.tenant,
            &self.cell,
            self.purpose.word(),
            &self.name,
            &self.version,
        ]
        .join("~")
    }
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "secret://{}/{}/{}/{}/{}",
            self.tenant,
            self.cell,
            self.purpose.word(),
            self.name,
            self.version
        )
    }
}

impl<'de> serde::Deserialize<'de> for Reference {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Zeroizing::new(String::deserialize(deserializer)?);
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// Who gives values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broker {
    /// The service manager, by files in this folder (`$CREDENTIALS_DIRECTORY`).
    Credentials(PathBuf),
    /// Files in a folder of ours, each 0600.
    Files(PathBuf),
}

impl Broker {
    /// The brokers of this process, the service manager's first.
    #[must_use]
    pub fn all(world: &World, folder: Option<&Path>) -> Vec<Self> {
        let credentials = world
            .absolute_path("CREDENTIALS_DIRECTORY")
            .map(Self::Credentials);
        let files = folder.map(|folder| Self::Files(folder.to_path_buf()));
        credentials.into_iter().chain(files).collect()
    }

    fn read(&self, world: &World, name: &str) -> Option<Secret> {
        let (folder, is_strict) = match self {
            Self::Credentials(folder) => (folder, false),
            Self::Files(folder) => (folder, true),
        };
        let file = OpenOptions::new()
            .read(true)
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
            .open(folder.join(name))
            .ok()?;
        let meta = file.metadata().ok()?;
        // systemd passes 0400 files of root or of the unit's user (systemd.exec(5)).
        let is_private = meta.mode() & 0o077 == 0;
        let is_ours = meta.uid() == world.account.uid && meta.mode() & 0o777 == 0o600;
        if !meta.is_file() || !is_private || (is_strict && !is_ours) || meta.len() > LARGEST {
            return None;
        }
        // The buffer never grows, so that no copy of a part is left behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(usize::try_from(LARGEST).ok()? + 1));
        file.take(LARGEST + 1).read_to_end(&mut bytes).ok()?;
        Secret::new(bytes)
    }
}

/// A value. It cannot be printed, and its memory is zeroed when it goes.
#[expect(
    missing_debug_implementations,
    reason = "a secret has no text but its own"
)]
pub struct Secret(Zeroizing<Vec<u8>>);

/// Its one field is zeroed.
impl ZeroizeOnDrop for Secret {}

impl Secret {
    /// A value without its final line end; `None` for one that is empty, not text, or too long.
    fn new(mut bytes: Zeroizing<Vec<u8>>) -> Option<Self> {
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        let is_text = std::str::from_utf8(&bytes).is_ok_and(|text| !text.contains('\0'));
        (is_text && !bytes.is_empty() && bytes.len() as u64 <= LARGEST).then_some(Self(bytes))
    }

    /// The value, for the one call that needs it.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

/// Asks the brokers for a secret that belongs to exactly this tenant and cell.
///
/// # Errors
/// `Denied` when the reference is another's, or for something else; `Io` with the same words for whatever else is
/// wrong.
pub fn resolve(
    world: &World,
    brokers: &[Broker],
    reference: &Reference,
    (tenant, cell, purpose): (&str, &str, Purpose),
) -> Result<Secret> {
    if reference.tenant != tenant || reference.cell != cell {
        return Err(Error::new(
            Kind::Denied,
            "the secret reference is out of scope",
        ));
    }
    let name = reference.file_name();
    let found = (reference.purpose == purpose)
        .then(|| brokers.iter().find_map(|broker| broker.read(world, &name)))
        .flatten();
    found.ok_or_else(|| Error::new(Kind::Io, "secret broker unavailable"))
}
