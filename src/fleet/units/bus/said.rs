//! What is said on a bus: why a call gave no answer, and what a manager tells without being asked.

use std::fmt;
use std::time::Duration;

use zbus::names::ErrorName;
use zbus::{DBusError, Message, OwnedObjectPath};

use crate::error::{Error, Kind};

/// Why a call gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The manager refused: the error's D-Bus name and its text.
    Refused {
        /// `org.freedesktop.systemd1.NoSuchUnit`, …
        name: String,
        /// Its text.
        message: String,
    },
    /// No answer within the limit.
    Mute(Duration),
    /// The connection broke, or what arrived cannot be read.
    Lost(String),
}

/// What a manager says without being asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signal {
    /// A job was queued.
    JobNew {
        /// Its number.
        id: u32,
        /// Its object.
        path: String,
        /// The unit that it is for.
        unit: String,
    },
    /// A job ended.
    JobRemoved {
        /// Its number.
        id: u32,
        /// Its object.
        path: String,
        /// The unit that it was for.
        unit: String,
        /// `done`, `canceled`, `timeout`, `failed`, `dependency`, `skipped`.
        result: String,
    },
    /// A unit was loaded.
    UnitNew(String),
    /// A unit was unloaded.
    UnitRemoved(String),
    /// Something of the unit that is watched changed.
    Changed,
    /// A name on the bus got another owner.
    OwnerChanged,
}

impl Signal {
    pub(super) fn read(message: &Message) -> Option<Self> {
        let header = message.header();
        let body = message.body();
        match header.member()?.as_str() {
            "JobNew" => {
                let (id, path, unit): (u32, OwnedObjectPath, String) = body.deserialize().ok()?;
                let path = path.to_string();
                Some(Self::JobNew { id, path, unit })
            }
            "JobRemoved" => {
                let (id, path, unit, result): (u32, OwnedObjectPath, String, String) =
                    body.deserialize().ok()?;
                let path = path.to_string();
                Some(Self::JobRemoved {
                    id,
                    path,
                    unit,
                    result,
                })
            }
            "UnitNew" => {
                let (unit, _): (String, OwnedObjectPath) = body.deserialize().ok()?;
                Some(Self::UnitNew(unit))
            }
            "UnitRemoved" => {
                let (unit, _): (String, OwnedObjectPath) = body.deserialize().ok()?;
                Some(Self::UnitRemoved(unit))
            }
            "PropertiesChanged" => Some(Self::Changed),
            "NameOwnerChanged" => Some(Self::OwnerChanged),
            _ => None,
        }
    }
}

impl Trouble {
    /// Whether it says that nobody was there to answer just then: the connection broke, or nobody had the
    /// manager's name. Nothing follows from it about a unit.
    #[must_use]
    pub fn is_away(&self) -> bool {
        match self {
            Self::Lost(_) => true,
            Self::Refused { name, .. } => matches!(
                short(name),
                "NoReply" | "NameHasNoOwner" | "ServiceUnknown" | "Disconnected"
            ),
            Self::Mute(_) => false,
        }
    }

    /// The error of a whole task that this trouble ends; `who` is the manager.
    #[must_use]
    pub fn into_error(self, who: &str) -> Error {
        match self {
            Self::Refused { name, message } => Error::new(
                Kind::Denied,
                format!("{who} refused: {message} ({})", short(&name)),
            ),
            Self::Mute(limit) => Error::new(
                Kind::Deadline,
                format!("{who} did not answer within {limit:?}"),
            ),
            Self::Lost(reason) => Error::new(Kind::Protocol, format!("{who}: {reason}")),
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { name, message } => write!(f, "{message} ({})", short(name)),
            Self::Mute(limit) => write!(f, "no answer within {limit:?}"),
            Self::Lost(reason) => f.write_str(reason),
        }
    }
}

impl From<zbus::Error> for Trouble {
    fn from(error: zbus::Error) -> Self {
        let refused = |name: ErrorName<'_>, message: Option<&str>| Self::Refused {
            name: name.to_string(),
            message: message.unwrap_or_default().to_owned(),
        };
        match &error {
            zbus::Error::MethodError(name, message, _) => Self::Refused {
                name: name.to_string(),
                message: message.clone().unwrap_or_default(),
            },
            zbus::Error::FDO(fdo) => refused(fdo.name(), fdo.description()),
            other => Self::Lost(other.to_string()),
        }
    }
}

/// The last word of a D-Bus error name.
#[must_use]
pub fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}
