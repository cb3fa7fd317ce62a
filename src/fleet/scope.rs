//! What an inventory is about: whose homes and runtimes, and how long each source may take.

use std::path::PathBuf;
use std::time::Duration;

use crate::world::Account;

/// What the homes that `--home` named are marked with.
pub const NAMED: &str = "--home";

/// What is looked at.
#[derive(Debug, Clone)]
pub struct Scope {
    /// Accounts whose homes and runtimes are in scope; empty is everybody (as root) or the caller.
    pub users: Vec<Account>,
    /// If any: only these homes and what serves them. A root home stands for its profiles too.
    pub homes: Vec<PathBuf>,
    /// If any: only homes of these profiles and what serves them.
    pub profiles: Vec<String>,
    /// Root homes that the site's configuration adds.
    pub extra_homes: Vec<PathBuf>,
    /// Whether runtimes are looked for at all: not in a chroot, and not where there is no manager.
    pub runtimes: bool,
    /// How long each source may take.
    pub limit: Duration,
}

impl Default for Scope {
    fn default() -> Self {
        Self {
            users: Vec::new(),
            homes: Vec::new(),
            profiles: Vec::new(),
            extra_homes: Vec::new(),
            runtimes: true,
            limit: Duration::from_secs(10),
        }
    }
}
