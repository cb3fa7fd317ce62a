//! Which processes are runtimes of the application, and which homes they serve.
//!
//! A command line is read token by token, the way the program itself reads it; nothing is found by
//! a substring, by a unit's name or by a process's name. A home is told by evidence in a fixed
//! order (what the kernel and the runtime say, then flags, then the environment), and a home that
//! no evidence gives stays unknown: a wrong home would be migrated, or judged by another's runtime.
//!
//! Nothing here reads a file or a process: values in, values out.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Process, SelfReport};
use crate::app::App;

pub use inline::Inline;

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

/// What a command line starts, if it is the application's own.
///
/// Recognised are an interpreter that runs one of the application's modules or scripts, and such a
/// script by itself. A program that merely starts the application (a wrapper) is not: its child is.
/// A subcommand that is one word away from a runtime's (`gateway status`) only controls it.
#[must_use]
pub fn recognise(app: &App, argv: &[String]) -> Option<Recognised> {
    let run = run_of(app, argv)?;
    let words = &run.words[..];
    let found = |kind: &str, managed| Recognised {
        kind: kind.to_owned(),
        profile: profile_flag(app, words),
        home: run.inline.as_ref().and_then(|inline| inline.home.clone()),
        managed,
    };
    let positional = positional(app, words);
    let matching = app
        .runtimes
        .iter()
        .filter(|runtime| is_prefix(&runtime.subcommand, &positional))
        .max_by_key(|runtime| runtime.subcommand.len());
    if let Some(runtime) = matching {
        return Some(found(&runtime.kind, true));
    }
    let first = positional.first()?;
    if let Some(runtime) = app
        .runtimes
        .iter()
        .find(|runtime| runtime.subcommand.first().is_some_and(|word| word == first))
    {
        // The group without a word runs its first command; with another word it controls a runtime.
        return (positional.len() == 1 && !asks_for_help(words))
            .then(|| found(&runtime.kind, true));
    }
    Some(found(OTHER, false))
}

/// Whether the program of a command line is a shell: it then only waits for what its script starts.
#[must_use]
pub fn is_shell(argv: &[String]) -> bool {
    argv.first().is_some_and(|program| {
        let name = file_name(program).trim_start_matches('-');
        matches!(
            name,
            "sh" | "bash" | "dash" | "zsh" | "ksh" | "mksh" | "fish" | "ash" | "busybox"
        )
    })
}

/// The words of a command line up to the application's own program: what decides which code it runs.
#[must_use]
pub fn program_words<'a>(app: &App, argv: &'a [String]) -> &'a [String] {
    let count = run_of(app, argv).map_or(argv.len(), |run| run.program);
    &argv[..count]
}

/// What the source of a command line says, if it is one of the application's launchers.
#[must_use]
pub fn inline_of(app: &App, argv: &[String]) -> Option<Inline> {
    run_of(app, argv)?.inline
}

/// How a command line runs the application's own program.
struct Run<'a> {
    /// How many words name the program.
    program: usize,
    /// The words that the program gets.
    words: Cow<'a, [String]>,
    /// The source that runs it, if one does.
    inline: Option<Inline>,
}

impl<'a> Run<'a> {
    /// A program that gets the rest of a command line.
    fn rest(argv: &'a [String], words: &'a [String]) -> Self {
        Self {
            program: argv.len() - words.len(),
            words: Cow::Borrowed(words),
            inline: None,
        }
    }
}

/// How a command line runs the application's own program, if it does.
fn run_of<'a>(app: &App, argv: &'a [String]) -> Option<Run<'a>> {
    let (program, rest) = argv.split_first()?;
    if is_script(app, program) {
        return Some(Run::rest(argv, rest));
    }
    match interpreter(program)? {
        Interpreter::Python => python_run(app, argv),
        Interpreter::Other => {
            // Only the script itself: what stands before it are the interpreter's own flags.
            let at = rest.iter().position(|word| !word.starts_with(['-', '+']))?;
            let flags = &rest[..at];
            if flags.iter().any(|flag| is_inline_code(flag)) {
                return None;
            }
            is_script(app, &rest[at]).then(|| Run::rest(argv, &rest[at + 1..]))
        }
    }
}

enum Interpreter {
    Python,
    Other,
}

fn interpreter(program: &str) -> Option<Interpreter> {
    let name = file_name(program).trim_start_matches('-');
    let versioned = |stem: &str| {
        name.strip_prefix(stem)
            .is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
    };
    if versioned("python") || versioned("pypy") {
        return Some(Interpreter::Python);
    }
    let other = ["node", "nodejs", "ruby", "perl", "php"]
        .into_iter()
        .any(versioned);
    (other || is_shell(&[program.to_owned()])).then_some(Interpreter::Other)
}

/// `-c` of a shell, `-e` of others: what follows is code and no script.
fn is_inline_code(flag: &str) -> bool {
    flag.starts_with('-') && !flag.starts_with("--") && flag.contains(['c', 'e'])
        || matches!(flag, "--eval" | "--print")
}

/// Reads Python's own flags up to `-m MODULE`, `-c SOURCE` or the script (the manual's "Command line and environment").
fn python_run<'a>(app: &App, argv: &'a [String]) -> Option<Run<'a>> {
    let rest_from = |at: usize| Run::rest(argv, &argv[at..]);
    let mut at = 1;
    while let Some(word) = argv.get(at) {
        at += 1;
        let Some(flags) = word.strip_prefix('-').filter(|flags| !flags.is_empty()) else {
            return is_program(app, word).then(|| rest_from(at));
        };
        if flags == "-" {
            let script = argv.get(at)?;
            return is_program(app, script).then(|| rest_from(at + 1));
        }
        if flags.starts_with('-') {
            // The one long flag that takes a value; the others stand alone.
            at += usize::from(flags == "-check-hash-based-pycs");
            continue;
        }
        let Some((index, flag)) = flags
            .char_indices()
            .find(|(_, flag)| "cmWX".contains(*flag))
        else {
            continue;
        };
        let attached = &flags[index + 1..];
        let value = if attached.is_empty() {
            at += 1;
            argv.get(at - 1)?.as_str()
        } else {
            attached
        };
        match flag {
            'c' => {
                let inline = inline::read(app, value)?;
                let words = inline.words.clone();
                return Some(Run {
                    program: if words.is_some() { argv.len() } else { at },
                    words: words.map_or(Cow::Borrowed(&argv[at..]), Cow::Owned),
                    inline: Some(inline),
                });
            }
            'm' => {
                let known = app.command.modules.iter().any(|module| module == value);
                return known.then(|| rest_from(at));
            }
            _ => {}
        }
    }
    None
}

/// A script of the application, or the file of one of its modules.
pub(super) fn is_program(app: &App, word: &str) -> bool {
    is_script(app, word)
        || app.command.modules.iter().any(|module| {
            let file = format!("{}.py", module.replace('.', "/"));
            Path::new(word).ends_with(file)
        })
}

pub(super) fn is_script(app: &App, word: &str) -> bool {
    let name = file_name(word);
    // Nix keeps the script as `.NAME-wrapped` beside the wrapper that sets its environment.
    let name = name
        .strip_prefix('.')
        .and_then(|name| name.strip_suffix("-wrapped"))
        .unwrap_or(name);
    app.command.scripts.iter().any(|script| script == name)
}

fn file_name(word: &str) -> &str {
    Path::new(word)
        .file_name()
        .and_then(OsStr::to_str)
        .unwrap_or(word)
}

/// The profile that a flag names, wherever it stands: the first one counts, up to `--`.
fn profile_flag(app: &App, words: &[String]) -> Option<String> {
    let flags = &app.command.profile_flags;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            return None;
        }
        let value = if flags.contains(word) {
            words.next()?.as_str()
        } else if let Some((flag, value)) = word.split_once('=')
            && flag.starts_with("--")
            && flags.iter().any(|known| known == flag)
        {
            value
        } else {
            continue;
        };
        let name = value.trim().to_lowercase();
        return app.home.profile_pattern.is_match(&name).then_some(name);
    }
    None
}

/// The words that are neither flags nor, as far as can be told, values of flags.
fn positional<'a>(app: &App, words: &'a [String]) -> Vec<&'a str> {
    let starts_runtime = |word: &str| {
        app.runtimes.iter().any(|runtime| {
            runtime
                .subcommand
                .first()
                .is_some_and(|first| first == word)
        })
    };
    let mut found: Vec<&str> = Vec::new();
    let mut words = words.iter().map(String::as_str).peekable();
    while let Some(word) = words.next() {
        if word == "--" {
            break;
        }
        if !word.starts_with('-') {
            found.push(word);
            continue;
        }
        let takes_value = app.command.profile_flags.iter().any(|flag| flag == word);
        // Before the subcommand, a flag that we do not know may have a value. Afterwards the words
        // of the subcommand are what counts, and a value behind them does no harm.
        let may_take_value = found.is_empty()
            && !word.contains('=')
            && words
                .peek()
                .is_some_and(|next| !next.starts_with('-') && !starts_runtime(next));
        if takes_value || may_take_value {
            words.next();
        }
    }
    found
}

fn asks_for_help(words: &[String]) -> bool {
    words
        .iter()
        .any(|word| matches!(word.as_str(), "-h" | "--help" | "--version"))
}

fn is_prefix(subcommand: &[String], words: &[&str]) -> bool {
    !subcommand.is_empty()
        && subcommand.len() <= words.len()
        && subcommand.iter().zip(words).all(|(a, b)| a == b)
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
