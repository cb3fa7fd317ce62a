//! Which processes are runtimes of the application, and which homes they serve.
//!
//! A command line is read token by token, the way the program itself reads it; nothing is found by
//! a substring, by a unit's name or by a process's name. A home is told by evidence in a fixed
//! order (what the kernel and the runtime say, then flags, then the environment), and a home that
//! no evidence gives stays unknown: a wrong home would be migrated, or judged by another's runtime.
//!
//! Nothing here reads a file or a process: values in, values out.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Process, SelfReport};
use crate::app::App;

pub use command::{inline_of, is_shell, program_words, recognise};
pub(super) use command::{is_program, is_script};
pub use inline::Inline;

mod command;
mod inline;

/// The kind of a process of the application that its descriptor does not know.
pub const OTHER: &str = "other";

/// The kernel shows this variable of a process to its owner; Python takes `~` from it first.
const HOME_VARIABLE: &str = "HOME";

/// What a command line says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recognised {
    /// Kind of the descriptor, or [`OTHER`].
    pub kind: String,
    /// The profile that a flag names.
    pub profile: Option<String>,
    /// The home that its launcher sets unless the environment names one.
    #[serde(default)]
    pub home: Option<PathBuf>,
    /// Whether the descriptor knows the kind.
    pub managed: bool,
}

/// Which profile a plain start in a root home uses now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sticky {
    /// None is named, or the default one: the root home itself.
    Root,
    /// This one. Whether it was named when a process started is not known.
    Named(String),
    /// It could not be read, and why.
    Unknown(String),
}

/// Which homes a process serves, and how that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomeEvidence {
    /// Paths of the homes; empty where nothing gives one.
    pub homes: Vec<PathBuf>,
    /// What gave them, or why nothing did.
    pub evidence: String,
}

/// The homes that a process serves; the first evidence that answers counts.
///
/// | evidence | what it gives |
/// |---|---|
/// | a self report with this pid, start and owner | the home that holds it, and the profiles that it says it serves |
/// | a profile flag | that profile below the root home |
/// | the variable inside `profiles/` | that profile |
/// | a root home without a sticky profile | the root home |
///
/// `account_home` is the owner's folder in the user database; `reports` are those of homes of the
/// same owner; `sticky` says what a plain start in a root home uses.
#[must_use]
pub fn home_of(
    app: &App,
    process: &Process,
    recognised: &Recognised,
    account_home: Option<&Path>,
    reports: &[SelfReport],
    sticky: &dyn Fn(&Path) -> Sticky,
) -> HomeEvidence {
    if let Some(known) = from_reports(app, process, reports) {
        return known;
    }
    let unknown = |evidence: &str| HomeEvidence {
        homes: Vec::new(),
        evidence: evidence.to_owned(),
    };
    if !process.env_readable {
        return unknown("its environment may not be read");
    }
    let Some(root) = root_of(app, process, recognised, account_home) else {
        return unknown("its owner has no home folder, and its environment names none");
    };
    let one = |home: PathBuf, evidence: String| HomeEvidence {
        homes: vec![home],
        evidence,
    };
    if let Some(profile) = &recognised.profile {
        return match profile_home(app, &root.path, profile) {
            Some(home) => one(home, format!("profile flag below {}", root.evidence)),
            None => unknown("a profile flag, but the application has no profiles"),
        };
    }
    if let Some(home) = root.profile {
        return one(home, root.evidence);
    }
    match sticky(&root.path) {
        Sticky::Root => one(root.path, root.evidence),
        // Its name is whatever stands in a file, and is not shown.
        Sticky::Named(_) => {
            unknown("no flag names a profile, and a plain start may use the sticky one or the root")
        }
        Sticky::Unknown(reason) => unknown(&reason),
    }
}

fn from_reports(app: &App, process: &Process, reports: &[SelfReport]) -> Option<HomeEvidence> {
    let report = reports
        .iter()
        .filter(|report| {
            report.pid == process.incarnation.pid
                && report.start_ticks == process.incarnation.start_ticks
        })
        .max_by_key(|report| (report.holds_lock, report.socket_answered))?;
    let mut homes = vec![report.home.clone()];
    let root = root_above(app, &report.home).unwrap_or_else(|| report.home.clone());
    for profile in &report.served_profiles {
        if let Some(home) = profile_home(app, &root, profile)
            && !homes.contains(&home)
        {
            homes.push(home);
        }
    }
    let mut evidence = String::from("its own pid file");
    if report.holds_lock {
        evidence.push_str(" and the lock that it holds");
    }
    if homes.len() > 1 {
        evidence.push_str(", with the profiles that it says it serves");
    }
    Some(HomeEvidence { homes, evidence })
}

/// The place that a command line and its environment name: a profile's home or a root home. It is
/// what to look at, and no proof of what is served.
#[must_use]
pub fn named_place(
    app: &App,
    process: &Process,
    recognised: &Recognised,
    account_home: Option<&Path>,
) -> Option<PathBuf> {
    let root = root_of(app, process, recognised, account_home).filter(|_| process.env_readable)?;
    match &recognised.profile {
        Some(profile) => profile_home(app, &root.path, profile),
        None => Some(root.profile.unwrap_or(root.path)),
    }
}

/// The root home that a process uses.
struct Root {
    path: PathBuf,
    /// The profile's home, where the variable points into the profiles.
    profile: Option<PathBuf>,
    evidence: String,
}

fn root_of(
    app: &App,
    process: &Process,
    recognised: &Recognised,
    account_home: Option<&Path>,
) -> Option<Root> {
    let variable = |name: &str| {
        process
            .env
            .iter()
            .find(|(known, value)| known == name && !value.is_empty())
            .map(|(_, value)| value.as_str())
    };
    let own_home = variable(HOME_VARIABLE)
        .map(Path::new)
        .filter(|path| path.is_absolute());
    let (folder, folder_evidence) = match (own_home, account_home) {
        (Some(own), account) if account != Some(own) => (own.to_path_buf(), "its HOME"),
        (_, Some(account)) if !account.as_os_str().is_empty() => {
            (account.to_path_buf(), "its owner's home folder")
        }
        _ => (PathBuf::new(), ""),
    };
    let native = (!folder.as_os_str().is_empty()).then(|| folder.join(&app.home.root));
    let from_launcher = recognised.home.as_deref().and_then(Path::to_str);
    let named = app
        .home
        .env
        .as_deref()
        .and_then(|name| Some((name, variable(name)?)))
        .or_else(|| Some(("its launcher", from_launcher?)));
    let Some((name, value)) = named else {
        return native.map(|path| Root {
            path,
            profile: None,
            evidence: folder_evidence.to_owned(),
        });
    };
    let path = match value.strip_prefix("~/") {
        Some(rest) => folder.join(rest),
        None => PathBuf::from(value),
    };
    if !path.is_absolute() {
        return None;
    }
    let (root, profile) = match root_above(app, &path) {
        Some(root) => (root, Some(path)),
        None => (path, None),
    };
    Some(Root {
        path: root,
        profile,
        evidence: name.to_owned(),
    })
}

/// The root home above a profile's home, by the path alone; `None` if the path is a root's.
#[must_use]
pub fn root_above(app: &App, home: &Path) -> Option<PathBuf> {
    let folder = home.parent()?;
    let profiles = app.home.profiles.as_deref()?;
    (folder.file_name() == Some(OsStr::new(profiles)))
        .then(|| folder.parent().map(Path::to_path_buf))
        .flatten()
}

/// Where a profile's home is below a root home.
#[must_use]
pub fn profile_home(app: &App, root: &Path, profile: &str) -> Option<PathBuf> {
    if profile == app.home.default_profile {
        return Some(root.to_path_buf());
    }
    // A name from a command line or a file must stay one folder below the profiles.
    let single = Path::new(profile).components().count() == 1
        && Path::new(profile).file_name() == Some(OsStr::new(profile));
    let profiles = app.home.profiles.as_deref()?;
    single.then(|| root.join(profiles).join(profile))
}

/// The variables of a process that tell its home.
#[must_use]
pub fn wanted_variables(app: &App) -> Vec<String> {
    app.home
        .env
        .iter()
        .cloned()
        .chain([HOME_VARIABLE.to_owned()])
        .collect()
}

#[cfg(test)]
mod tests;
