//! The process's surroundings: the only place that reads the environment, the arguments, the
//! working directory, the ids, the clock and the user database.
//!
//! Everything else receives a [`World`], so that a result cannot depend on a variable that some
//! parent leaked, and tests can say exactly what a command was started with.

#![expect(
    clippy::disallowed_methods,
    reason = "this is where the surroundings are read, and the user database is asked"
)]

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind, Result};

#[cfg(feature = "failpoints")]
pub mod fail;

/// How many keys one getent(1) is given: far from the kernel's limit of a command line.
const GETENT_KEYS: usize = 500;

/// What this process was started with, and as whom it runs.
#[derive(Debug, Clone)]
pub struct World {
    /// The command line, the program's own name first.
    pub args: Vec<OsString>,
    /// The environment as it was at the start.
    pub env: BTreeMap<OsString, OsString>,
    /// The folder that relative paths of the command line start from.
    pub cwd: PathBuf,
    /// The account that this process acts as: the effective user id decides, never `$HOME`.
    pub account: Account,
    /// This process.
    pub pid: u32,
    /// The kernel's id of this boot (`/proc/sys/kernel/random/boot_id`, proc(5)).
    pub boot_id: String,
    /// When the kernel was booted, in seconds since 1970 (`btime` of `/proc/stat`).
    pub boot_time_secs: u64,
    /// The kernel's name for this machine.
    pub hostname: String,
}

/// One entry of the user database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Numeric user id.
    pub uid: u32,
    /// Numeric id of the primary group.
    pub gid: u32,
    /// Login name; the number itself where the database has none.
    pub name: String,
    /// Home folder from the database, never from `$HOME`; empty where there is none.
    pub home: PathBuf,
}

impl World {
    /// Reads the surroundings of this process.
    ///
    /// # Errors
    /// When `/proc` is there and cannot be read: then no runtime could be told from another.
    pub fn read() -> Result<Self> {
        let uid = rustix::process::geteuid().as_raw();
        let account = match account(uid) {
            Ok(Some(account)) => account,
            // A uid without an entry is normal in containers; it just owns no home folder.
            Ok(None) | Err(_) => Account {
                uid,
                gid: rustix::process::getegid().as_raw(),
                name: uid.to_string(),
                home: PathBuf::new(),
            },
        };
        Self::read_as(account)
    }

    /// Like [`World::read`] for a process that was told its account, and so needs no user database.
    ///
    /// # Errors
    /// When `/proc` is there and cannot be read.
    pub fn read_as(account: Account) -> Result<Self> {
        let (boot_id, boot_time_secs) = boot()?;
        Ok(Self {
            args: arguments(),
            env: std::env::vars_os().collect(),
            cwd: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
            account,
            pid: std::process::id(),
            boot_id: boot_id.trim().to_owned(),
            boot_time_secs,
            hostname: rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
        })
    }

    /// The value of an environment variable, if it is set and not empty.
    #[must_use]
    pub fn var(&self, name: &str) -> Option<&OsStr> {
        self.env
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
            .filter(|value| !value.is_empty())
    }

    /// An environment variable that must be an absolute path; the XDG base directory
    /// specification says that relative values are ignored.
    #[must_use]
    pub fn absolute_path(&self, name: &str) -> Option<PathBuf> {
        self.var(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    }

    /// Whether this process acts as root.
    #[must_use]
    pub const fn is_root(&self) -> bool {
        self.account.uid == 0
    }

    /// Every account of this machine as root, the caller's own otherwise.
    ///
    /// # Errors
    /// When the user database does not answer: an empty list would look like a small fleet.
    pub fn accounts(&self) -> Result<Vec<Account>> {
        if self.is_root() {
            all_accounts()
        } else {
            Ok(vec![self.account.clone()])
        }
    }
}

impl Account {
    /// The account's runtime folder, where its service manager and bus listen (pam_systemd(8)).
    #[must_use]
    pub fn runtime_dir(&self) -> PathBuf {
        PathBuf::from(format!("/run/user/{}", self.uid))
    }

    /// The ids of every group that the account is a member of, the primary one among them.
    ///
    /// # Errors
    /// When the user database does not answer.
    pub fn groups(&self) -> Result<Vec<u32>> {
        if let Some(groups) = known_groups().and_then(|known| known.get(&self.name).cloned()) {
            return Ok(groups);
        }
        learn_groups(&[self])?;
        Ok(known_groups()
            .and_then(|known| known.get(&self.name).cloned())
            .unwrap_or_else(|| vec![self.gid]))
    }
}

/// The groups that were asked for before, by login name.
fn known_groups() -> Option<MutexGuard<'static, BTreeMap<String, Vec<u32>>>> {
    static KNOWN: Mutex<BTreeMap<String, Vec<u32>>> = Mutex::new(BTreeMap::new());
    KNOWN.lock().ok()
}

/// Asks for the groups of many accounts at once, for [`Account::groups`]: each question is a process.
///
/// # Errors
/// When the user database does not answer.
pub fn learn_groups(accounts: &[&Account]) -> Result<()> {
    for some in accounts.chunks(GETENT_KEYS) {
        let mut args = vec!["initgroups"];
        args.extend(some.iter().map(|account| account.name.as_str()));
        // A line an account: its name, then the supplementary ids (getent(1)).
        let text = getent(&args)?.unwrap_or_default();
        let Some(mut known) = known_groups() else {
            return Ok(());
        };
        for account in some {
            let line = text
                .lines()
                .map(str::split_whitespace)
                .find_map(|mut words| (words.next() == Some(&account.name)).then_some(words));
            let mut groups: Vec<u32> = line
                .into_iter()
                .flatten()
                .filter_map(|id| id.parse().ok())
                .collect();
            groups.push(account.gid);
            groups.sort_unstable();
            groups.dedup();
            known.insert(account.name.clone(), groups);
        }
    }
    Ok(())
}

/// The arguments of this process, the program's own name first.
#[must_use]
pub fn arguments() -> Vec<OsString> {
    std::env::args_os().collect()
}

/// The boot's id and its time in seconds since 1970. A root that is being made has no `/proc`, and
/// then nothing that runs in it can be seen either: whoever looks for runtimes says so.
fn boot() -> Result<(String, u64)> {
    if !Path::new("/proc/self").exists() {
        return Ok(("no-proc".into(), 0));
    }
    let boot_id = read_text("/proc/sys/kernel/random/boot_id")?;
    let stat = read_text("/proc/stat")?;
    let secs = stat
        .lines()
        .find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok())
        .ok_or_else(|| Error::new(Kind::Io, "cannot find btime in /proc/stat"))?;
    Ok((boot_id, secs))
}

/// Names a point between two effects, at which a test may kill this process. Costs nothing unless the
/// feature `failpoints` is on.
#[inline]
pub fn fail_point(name: impl std::fmt::Display) {
    #[cfg(feature = "failpoints")]
    fail::reached(&name.to_string());
    #[cfg(not(feature = "failpoints"))]
    drop(name);
}

/// The wall clock, in nanoseconds since 1970; what a file's change time is compared with.
#[must_use]
pub fn now() -> Duration {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    #[cfg(feature = "failpoints")]
    let now = fail::shifted(now);
    now
}

/// The wall clock as text, in UTC with milliseconds (RFC 3339).
#[must_use]
pub fn timestamp() -> String {
    render_time(now())
}

/// A time since 1970 as RFC 3339 text in UTC.
#[must_use]
pub fn render_time(since_epoch: Duration) -> String {
    let millis = i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis)
        .map_or_else(|_| String::from("unknown"), |time| format!("{time:.3}"))
}

/// A new identifier that sorts by time (UUID version 7).
#[must_use]
pub fn new_id() -> String {
    let now = now();
    let time = uuid::Timestamp::from_unix(uuid::NoContext, now.as_secs(), now.subsec_nanos());
    uuid::Uuid::new_v7(time).to_string()
}

/// The account of a user id.
///
/// # Errors
/// When the user database does not answer.
pub fn account(uid: u32) -> Result<Option<Account>> {
    // The file answers for nearly every machine, and costs no process.
    if let Ok(text) = std::fs::read_to_string("/etc/passwd")
        && let Some(account) = text
            .lines()
            .filter_map(parse_passwd)
            .find(|account| account.uid == uid)
    {
        return Ok(Some(account));
    }
    let text = getent(&["passwd", &uid.to_string()])?;
    Ok(text.and_then(|text| text.lines().find_map(parse_passwd)))
}

/// The whole database, asked once: one run sees one list of users, and each look-up is a process.
fn all_accounts() -> Result<Vec<Account>> {
    static ALL: OnceLock<Vec<Account>> = OnceLock::new();
    if let Some(accounts) = ALL.get() {
        return Ok(accounts.clone());
    }
    let text = getent(&["passwd"])?
        .ok_or_else(|| Error::new(Kind::Io, "the user database is empty (getent passwd)"))?;
    let mut accounts: Vec<Account> = text.lines().filter_map(parse_passwd).collect();
    accounts.sort_by_key(|account| account.uid);
    accounts.dedup_by_key(|account| account.uid);
    Ok(ALL.get_or_init(|| accounts).clone())
}

/// Asks the name service switch; `None` when the key does not exist.
fn getent(args: &[&str]) -> Result<Option<String>> {
    let program = ["/usr/bin/getent", "/bin/getent"]
        .into_iter()
        .find(|path| Path::new(path).exists());
    let Some(program) = program else {
        // musl systems may lack getent: there the file is the whole database.
        return match args {
            ["passwd"] => read_text("/etc/passwd").map(Some),
            _ => Ok(None),
        };
    };
    let output = Command::new(program)
        .args(args)
        .env_clear()
        .env("LANG", "C.UTF-8")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .map_err(|error| Error::io(format!("cannot run {program}"), error))?;
    match output.status.code() {
        Some(0) => Ok(Some(String::from_utf8_lossy(&output.stdout).into_owned())),
        // getent(1): 2 is "one or more supplied key could not be found".
        Some(2) => Ok(None),
        _ => Err(Error::new(
            Kind::Io,
            format!("{program} {} ended with {}", args.join(" "), output.status),
        )),
    }
}

fn parse_passwd(line: &str) -> Option<Account> {
    let mut fields = line.split(':');
    let name = fields.next().filter(|name| !name.is_empty())?;
    let uid = fields.nth(1)?.parse().ok()?;
    let gid = fields.next()?.parse().ok()?;
    let home = fields.nth(1)?;
    Some(Account {
        uid,
        gid,
        name: name.to_owned(),
        home: PathBuf::from(home),
    })
}

fn read_text(path: &str) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| Error::io(format!("cannot read {path}"), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passwd_line_gives_ids_and_home() {
        let account = parse_passwd("ann:x:1001:1002:Ann,,,:/home/ann:/bin/bash");
        assert_eq!(
            account,
            Some(Account {
                uid: 1001,
                gid: 1002,
                name: "ann".into(),
                home: "/home/ann".into()
            })
        );
        assert_eq!(parse_passwd("+::::::"), None);
    }

    #[test]
    fn times_are_utc_with_milliseconds() {
        assert_eq!(
            render_time(Duration::from_millis(1_500)),
            "1970-01-01T00:00:01.500Z"
        );
    }
}
