//! The mechanism table: which owner of a runtime is asked to restart it, and how.
//!
//! Rows are data (`mechanisms.toml` and a site's own files before it); the first that matches a
//! [`Subject`] wins, and what no row matches has no mechanism. [`Table::load`] refuses a table that
//! cannot mean what it says – unknown keys, a second row of one id, a row that an earlier one of the
//! same file or of a site hides – naming file and line. It acts on nothing: executors take a [`Mechanism`].

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::rows::{self, one_or_many};
use crate::error::Result;
use crate::fleet::{Manager, Runtime, Supervisor};

/// The rows that are part of the program.
pub const BUILTIN: &str = include_str!("mechanisms.toml");

/// The name of the built-in rows in errors.
const BUILTIN_NAME: &str = "mechanisms.toml";

/// One row: whom it is for, and what is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mechanism {
    /// Its name in the receipt.
    pub id: String,
    /// It is for a subject that one of these describes.
    pub matches: Vec<Match>,
    /// What is done.
    pub action: Action,
    /// How the runtime is asked to finish its work first.
    pub drain: Option<Drain>,
    /// How long the new life must stay constant after it said that it serves.
    pub settle: Duration,
    /// The same for one that says nothing of itself, from when it is up.
    pub settle_silent: Duration,
    /// How long a new life may stay silent if the old one spoke.
    pub speak_limit: Duration,
    /// What stands for a budget that is infinite or not known.
    pub limit: Duration,
    /// The command of [`Action::Command`], an absolute program first; may hold fields in braces.
    pub argv: Vec<String>,
    /// The whole environment of that command.
    pub env: BTreeMap<String, String>,
    /// What a person would do; holds fields in braces.
    pub instruction: String,
    /// Where the row stands: file and line.
    pub origin: String,
}

/// What is done to restart a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// systemd's `TryRestartUnit`.
    TryRestart,
    /// launchd's `kickstart -k`.
    Kickstart,
    /// A command of the row.
    Command,
    /// The drain's signal to the runtime; who keeps it running starts the next.
    Signal,
    /// SIGTERM, or the drain's signal, to the runtime, which nobody keeps; we start the next as it was started.
    Respawn,
    /// Nothing: a living owner will do it by itself.
    Defer,
    /// Nothing: only a person can.
    Manual,
    /// Nothing: it must never be restarted from here.
    Deny,
}

/// How a runtime is asked to finish its work and end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drain {
    /// The signal's name without `SIG`.
    pub signal: SignalName,
    /// How long it may take.
    pub limit: Duration,
}

/// A signal that a runtime may be sent. SIGKILL is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum SignalName {
    /// SIGHUP.
    Hup,
    /// SIGINT.
    Int,
    /// SIGQUIT.
    Quit,
    /// SIGTERM.
    Term,
    /// SIGUSR1.
    Usr1,
    /// SIGUSR2.
    Usr2,
}

/// Conditions that must all hold; an empty one holds for everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Match {
    /// Who keeps it running.
    #[serde(deserialize_with = "one_or_many")]
    pub manager: Vec<Owner>,
    /// Names of units; `*` and `?` as in a shell.
    #[serde(deserialize_with = "one_or_many")]
    pub unit: Vec<String>,
    /// Labels of launchd jobs.
    #[serde(deserialize_with = "one_or_many")]
    pub label: Vec<String>,
    /// Paths of control groups.
    #[serde(deserialize_with = "one_or_many")]
    pub cgroup: Vec<String>,
    /// Names of parent programs.
    #[serde(deserialize_with = "one_or_many")]
    pub parent: Vec<String>,
    /// Kinds of runtimes.
    #[serde(deserialize_with = "one_or_many")]
    pub kind: Vec<String>,
    /// Types of services (`simple`, `oneshot`, …).
    #[serde(rename = "type", deserialize_with = "one_or_many")]
    pub service_type: Vec<String>,
}

/// Who keeps a runtime running, as a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Owner {
    /// The system's systemd.
    System,
    /// A user's systemd.
    User,
    /// launchd.
    Launchd,
    /// s6.
    S6,
    /// The application's desktop program.
    Desktop,
    /// Another program that respawns it.
    External,
    /// A person's session.
    Scope,
    /// Nobody.
    Nobody,
    /// It is not known; a row must ask for it by this word.
    Unknown,
}

/// What the table is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject<'a> {
    /// Who keeps it running.
    pub owner: Owner,
    /// Its unit's name, or empty.
    pub unit: &'a str,
    /// Its launchd label, or empty.
    pub label: &'a str,
    /// Its control group's path, or empty.
    pub cgroup: &'a str,
    /// The name of the program that started it, or empty.
    pub parent: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// Its service's type, or empty.
    pub service_type: &'a str,
}

/// The row for a subject, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen<'a> {
    /// The row; `None` where no row matches: then nothing may be done.
    pub row: Option<&'a Mechanism>,
    /// Which of its conditions held.
    pub why: String,
    /// The rows before it, and which condition of each did not hold.
    pub rejected: Vec<(String, String)>,
}

/// All rows, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    rows: Vec<Mechanism>,
}

/// What braces stand for in instructions and arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fields(BTreeMap<String, String>);

impl Table {
    /// Reads a table: a site's files in the given order, then the built-in rows.
    ///
    /// `builtin` replaces the rows that are part of the program, so that what deleting one means can
    /// be seen without compiling.
    ///
    /// # Errors
    /// When a row cannot mean what it says; the error names the file and the line.
    pub fn load(builtin: Option<&str>, site: &[(String, String)]) -> Result<Self> {
        let mut rows: Vec<Mechanism> = Vec::new();
        let mut own_from = 0;
        for (name, text) in site {
            rows::add(&mut rows, 0, name, text)?;
            own_from = rows.len();
        }
        // A site's row may hide one of ours on purpose, so ours are compared among themselves.
        rows::add(
            &mut rows,
            own_from,
            BUILTIN_NAME,
            builtin.unwrap_or(BUILTIN),
        )?;
        Ok(Self { rows })
    }

    /// The rows, in the order in which they are tried.
    #[must_use]
    pub fn rows(&self) -> &[Mechanism] {
        &self.rows
    }

    /// The first row that matches.
    #[must_use]
    pub fn choose(&self, subject: &Subject<'_>) -> Chosen<'_> {
        let mut rejected = Vec::new();
        for row in &self.rows {
            let mut misses = Vec::new();
            for candidate in &row.matches {
                match candidate.miss(subject) {
                    None => {
                        return Chosen {
                            row: Some(row),
                            why: candidate.to_string(),
                            rejected,
                        };
                    }
                    Some(miss) if !misses.contains(&miss) => misses.push(miss),
                    Some(_) => {}
                }
            }
            rejected.push((row.id.clone(), misses.join("; ")));
        }
        Chosen {
            row: None,
            why: "no row matches".into(),
            rejected,
        }
    }
}

impl Mechanism {
    /// What a person would do, with the fields filled in; a field that is not known reads `UNKNOWN`.
    #[must_use]
    pub fn instruct(&self, fields: &Fields) -> String {
        fields.fill(&self.instruction)
    }

    /// Whether the action, rather than a person or the owner, restarts the runtime.
    #[must_use]
    pub const fn acts(&self) -> bool {
        matches!(
            self.action,
            Action::TryRestart
                | Action::Kickstart
                | Action::Command
                | Action::Signal
                | Action::Respawn
        )
    }
}

impl Match {
    /// The first condition that does not hold.
    fn miss(&self, subject: &Subject<'_>) -> Option<String> {
        let owned = self.manager.is_empty() || self.manager.contains(&subject.owner);
        if !owned || (self.manager.is_empty() && subject.owner == Owner::Unknown) {
            return Some(format!("manager is {}", subject.owner));
        }
        self.globs()
            .into_iter()
            .zip(subject.values())
            .find(|((_, globs), value)| {
                !globs.is_empty() && !globs.iter().any(|pattern| glob(pattern, value))
            })
            .map(|((name, _), value)| match value {
                "" => format!("it has no {name}"),
                value => format!("{name} is {value}"),
            })
    }

    fn globs(&self) -> [(&'static str, &[String]); 6] {
        [
            ("unit", &self.unit),
            ("label", &self.label),
            ("cgroup", &self.cgroup),
            ("parent", &self.parent),
            ("kind", &self.kind),
            ("type", &self.service_type),
        ]
    }

    /// Whether everything that `other` describes is described by this, too.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let owners = self.manager.is_empty() && !other.manager.contains(&Owner::Unknown)
            || (!other.manager.is_empty()
                && other
                    .manager
                    .iter()
                    .all(|owner| self.manager.contains(owner)));
        let globs = self.globs().into_iter().zip(other.globs());
        owners
            && globs.into_iter().all(|((_, ours), (_, theirs))| {
                ours.is_empty()
                    || (!theirs.is_empty()
                        && theirs
                            .iter()
                            .all(|their| ours.iter().any(|our| glob_covers(our, their))))
            })
    }
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if !self.manager.is_empty() {
            let owners: Vec<String> = self.manager.iter().map(ToString::to_string).collect();
            parts.push(format!("manager {}", owners.join("|")));
        }
        for (name, globs) in self.globs() {
            if !globs.is_empty() {
                parts.push(format!("{name} {}", globs.join("|")));
            }
        }
        if parts.is_empty() {
            return f.write_str("anything");
        }
        f.write_str(&parts.join(", "))
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::System => "system",
            Self::User => "user",
            Self::Launchd => "launchd",
            Self::S6 => "s6",
            Self::Desktop => "desktop",
            Self::External => "external",
            Self::Scope => "scope",
            Self::Nobody => "nobody",
            Self::Unknown => "unknown",
        })
    }
}

impl<'a> Subject<'a> {
    /// The subject that a runtime is.
    #[must_use]
    pub fn of(runtime: &'a Runtime) -> Self {
        let mut subject = Self {
            owner: Owner::Unknown,
            unit: "",
            label: "",
            cgroup: runtime
                .process
                .as_ref()
                .map_or("", |process| process.cgroup.as_str()),
            parent: "",
            kind: &runtime.kind,
            service_type: runtime
                .unit
                .as_ref()
                .map_or("", |unit| unit.service_type.as_str()),
        };
        match &runtime.supervisor {
            Supervisor::Systemd { scope, unit } => {
                subject.owner = match scope {
                    Manager::System => Owner::System,
                    Manager::User(_) => Owner::User,
                };
                subject.unit = unit;
            }
            Supervisor::Scope { unit } => {
                subject.owner = Owner::Scope;
                subject.unit = unit;
            }
            Supervisor::Launchd { label, .. } => {
                subject.owner = Owner::Launchd;
                subject.label = label;
            }
            Supervisor::S6 { .. } => subject.owner = Owner::S6,
            Supervisor::Desktop { parent } => {
                subject.owner = Owner::Desktop;
                subject.parent = parent;
            }
            Supervisor::External { program, .. } => {
                subject.owner = Owner::External;
                subject.parent = program;
            }
            Supervisor::Nobody => subject.owner = Owner::Nobody,
            Supervisor::Unknown { .. } => {}
        }
        subject
    }

    const fn values(&self) -> [&'a str; 6] {
        [
            self.unit,
            self.label,
            self.cgroup,
            self.parent,
            self.kind,
            self.service_type,
        ]
    }
}

impl Fields {
    /// What is known of a runtime; `user` is its owner's login name.
    #[must_use]
    pub fn of(runtime: &Runtime, user: &str, profile: &str, home: &str) -> Self {
        let mut fields = Self::default();
        fields.set("kind", &runtime.kind);
        fields.set("user", user);
        fields.set("uid", &runtime.uid.to_string());
        fields.set("profile", profile);
        fields.set("home", home);
        if let Some(process) = &runtime.process {
            fields.set("pid", &process.incarnation.pid.to_string());
            fields.set("container", container(&process.cgroup).unwrap_or_default());
        }
        match &runtime.supervisor {
            Supervisor::Systemd { scope, unit } => {
                fields.set("unit", unit);
                fields.set(
                    "systemctl",
                    match scope {
                        Manager::System => "systemctl",
                        Manager::User(_) => "systemctl --user",
                    },
                );
            }
            Supervisor::Scope { unit } => fields.set("unit", unit),
            Supervisor::Launchd { domain, label } => {
                fields.set("domain", domain);
                fields.set("label", label);
            }
            Supervisor::S6 { slot } => fields.set("slot", &slot.to_string_lossy()),
            Supervisor::Desktop { parent } => fields.set("program", parent),
            Supervisor::External { program, .. } => fields.set("program", program),
            Supervisor::Nobody | Supervisor::Unknown { .. } => {}
        }
        fields
    }

    /// Sets one field; an empty value leaves it unknown.
    pub fn set(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.0.insert(name.to_owned(), value.to_owned());
        }
    }

    /// Replaces every `{field}` of `text`.
    #[must_use]
    pub fn fill(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for piece in pieces(text) {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Field(name) => {
                    out.push_str(self.0.get(name).map_or("UNKNOWN", String::as_str));
                }
            }
        }
        out
    }

    /// Like [`Fields::fill`]; `None` where a field is not known: a command must not guess.
    #[must_use]
    pub fn fill_exactly(&self, text: &str) -> Option<String> {
        let known = |piece: &Piece<'_>| match piece {
            Piece::Text(_) => true,
            Piece::Field(name) => self.0.contains_key(*name),
        };
        pieces(text).iter().all(known).then(|| self.fill(text))
    }
}

/// The id of the container that a control group is of: 64 hexadecimal digits, whoever made it.
fn container(cgroup: &str) -> Option<&str> {
    let mut words = cgroup.split(|c: char| !c.is_ascii_alphanumeric());
    words.rfind(|word| word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

pub(super) enum Piece<'a> {
    Text(&'a str),
    Field(&'a str),
}

pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, tail)) = after.split_once('}') else {
            break;
        };
        pieces.extend([Piece::Text(before), Piece::Field(name)]);
        rest = tail;
    }
    pieces.push(Piece::Text(rest));
    pieces
}

/// Whether a pattern with `*` (any text) and `?` (any character) matches all of `text`.
fn glob(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    // The last star takes one character more whenever what follows it does not fit.
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    p = at + 1;
                    t = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// Whether everything that `other` matches is matched by `pattern`. May answer no where yes is true.
fn glob_covers(pattern: &str, other: &str) -> bool {
    if pattern == other || pattern == "*" {
        return true;
    }
    if !other.contains(['*', '?']) {
        return glob(pattern, other);
    }
    match pattern.strip_suffix('*') {
        Some(prefix) if !prefix.contains(['*', '?']) => other.starts_with(prefix),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table::load(None, &[]).expect("the built-in rows are valid")
    }

    fn site(text: &str) -> Result<Table> {
        Table::load(None, &[("site.toml".to_owned(), text.to_owned())])
    }

    fn subject(owner: Owner, unit: &str) -> Subject<'_> {
        Subject {
            owner,
            unit,
            label: "",
            cgroup: "",
            parent: "",
            kind: "gateway",
            service_type: "simple",
        }
    }

    fn row(table: &Table, subject: &Subject<'_>) -> String {
        table
            .choose(subject)
            .row
            .map_or_else(|| "none".to_owned(), |row| row.id.clone())
    }

    #[test]
    fn every_owner_has_the_row_that_it_should() {
        let oneshot = Subject {
            service_type: "oneshot",
            ..subject(Owner::User, "a.service")
        };
        let remote = Subject {
            parent: "sshd",
            ..subject(Owner::Desktop, "")
        };
        for (subject, expected) in [
            (subject(Owner::System, "agent.service"), "systemd"),
            (subject(Owner::User, "agent@work.service"), "systemd"),
            (subject(Owner::System, "dbus.service"), "deny"),
            (subject(Owner::System, "systemd-logind.service"), "deny"),
            (subject(Owner::System, "sshd@3.service"), "deny"),
            (subject(Owner::System, "gdm3.service"), "deny"),
            (subject(Owner::System, "fleet-update.service"), "deny"),
            (oneshot, "deny"),
            (subject(Owner::Launchd, ""), "launchd"),
            (subject(Owner::S6, ""), "s6"),
            (remote, "desktop-ssh"),
            (subject(Owner::Desktop, ""), "desktop"),
            (subject(Owner::External, ""), "external"),
            (subject(Owner::Scope, "session-2.scope"), "manual"),
            (subject(Owner::Nobody, ""), "manual"),
            (subject(Owner::Unknown, ""), "none"),
        ] {
            assert_eq!(row(&table(), &subject), expected, "{subject:?}");
        }
    }

    #[test]
    fn deleting_a_row_changes_what_is_done_without_compiling() {
        let start = BUILTIN.find("id = \"systemd\"").expect("there is one");
        let start = BUILTIN[..start].rfind("[[mechanism]]").expect("its header");
        let end = start
            + 2
            + BUILTIN[start + 2..]
                .find("[[mechanism]]")
                .expect("a next row");
        let without = format!("{}{}", &BUILTIN[..start], &BUILTIN[end..]);
        let table = Table::load(Some(&without), &[]).expect("still valid");
        assert_eq!(row(&table, &subject(Owner::User, "agent.service")), "none");
    }

    #[test]
    fn a_sites_row_stands_before_ours_and_the_choice_says_why() {
        let table = site(
            "[[mechanism]]\nid = \"ours\"\nmatch = { unit = \"agent-*.service\", kind = \"gateway\" }\n\
             action = \"manual\"\ninstruction = \"call ops\"\n",
        )
        .expect("valid");
        let special = subject(Owner::System, "agent-x.service");
        assert_eq!(row(&table, &special), "ours");
        let other = subject(Owner::System, "agent.service");
        let chosen = table.choose(&other);
        assert_eq!(chosen.row.map(|row| row.id.as_str()), Some("systemd"));
        assert_eq!(chosen.why, "manager system|user");
        assert_eq!(
            chosen.rejected[0],
            ("ours".to_owned(), "unit is agent.service".to_owned())
        );
    }

    #[test]
    fn a_site_replaces_a_row_of_ours_by_its_id() {
        let table = site(
            "[[mechanism]]\nid = \"systemd\"\nmatch = { manager = \"user\" }\naction = \"manual\"\ninstruction = \"x\"\n",
        )
        .expect("valid");
        assert_eq!(row(&table, &subject(Owner::User, "a.service")), "systemd");
        assert_eq!(row(&table, &subject(Owner::System, "a.service")), "none");
    }

    #[test]
    fn an_unknown_owner_is_matched_only_by_a_row_that_says_unknown() {
        let anything = "[[mechanism]]\nid = \"all\"\nmatch = { kind = \"*\" }\naction = \"manual\"\ninstruction = \"x\"\n";
        let table = site(anything).expect("valid");
        assert_eq!(row(&table, &subject(Owner::Unknown, "")), "none");
        let named = anything.replace("kind = \"*\"", "manager = \"unknown\"");
        let table = site(&named).expect("valid");
        assert_eq!(row(&table, &subject(Owner::Unknown, "")), "all");
    }

    #[test]
    fn a_table_that_cannot_mean_what_it_says_is_refused_with_file_and_line() {
        let good = "[[mechanism]]\nid = \"a\"\nmatch = { unit = \"a*\" }\naction = \"manual\"\ninstruction = \"x\"\n";
        let cases: &[(String, &str)] = &[
            (
                good.replace("unit", "units"),
                "site.toml line 3: unknown field `units`",
            ),
            (
                format!("{good}extra = 1\n"),
                "site.toml line 6: unknown field `extra`",
            ),
            (
                format!("{good}{good}"),
                "site.toml line 6: a second row \"a\", the first is site.toml:1",
            ),
            (
                format!(
                    "{good}{}",
                    good.replace("\"a\"", "\"b\"").replace("a*", "ab*")
                ),
                "site.toml line 6: row \"b\" can never match",
            ),
            (
                good.replace("\"x\"", "\"{nope}\""),
                "site.toml line 1: {nope} is none of",
            ),
            (
                good.replace("\"x\"", "\"\""),
                "site.toml line 1: a row needs an instruction",
            ),
            (
                good.replace("manual", "command"),
                "site.toml line 1: action \"command\" needs argv",
            ),
            (
                good.replace("\"manual\"", "\"command\"\nargv = [\"sv\"]"),
                "site.toml line 1: the program \"sv\" must be an absolute path",
            ),
            (
                good.replace("\"manual\"", "\"command\"\nargv = [\"/{unit}\"]"),
                "site.toml line 1: the program itself",
            ),
            (
                good.replace("manual", "signal"),
                "site.toml line 1: action \"signal\" needs a drain",
            ),
            (
                good.replace(
                    "\"manual\"",
                    "\"signal\"\ndrain = { signal = \"KILL\", limit = \"1s\" }",
                ),
                "site.toml line 5: unknown variant `KILL`",
            ),
            (
                format!("{good}settle = \"3\"\n"),
                "site.toml line 6: \"3\" is no duration",
            ),
            ("[[mechanism]\n".to_owned(), "site.toml line 1:"),
        ];
        for (text, expected) in cases {
            let error = site(text).expect_err(text).to_string();
            assert!(error.starts_with(expected), "{error}\nexpected {expected}");
        }
    }

    #[test]
    fn globs_match_whole_names() {
        for (pattern, text, expected) in [
            ("a*", "a", true),
            ("a*c", "abbc", true),
            ("a*b*c", "aXbYbZc", true),
            ("?", "", false),
            ("a", "ab", false),
            ("*", "", true),
            ("ssh@*.service", "ssh@1.service", true),
        ] {
            assert_eq!(glob(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_command_never_guesses_a_field() {
        let mut fields = Fields::default();
        fields.set("unit", "a.service");
        assert_eq!(fields.fill("x {unit} {pid}"), "x a.service UNKNOWN");
        assert_eq!(fields.fill_exactly("{unit}").as_deref(), Some("a.service"));
        assert_eq!(fields.fill_exactly("{unit} {pid}"), None);
    }

    #[test]
    fn a_container_is_known_by_the_id_in_its_control_group() {
        let id = "0123456789abcdef".repeat(4);
        for cgroup in [
            format!("/system.slice/docker-{id}.scope"),
            format!("/docker/{id}"),
            format!("/machine.slice/libpod-{id}.scope/container"),
        ] {
            assert_eq!(container(&cgroup), Some(id.as_str()), "{cgroup}");
        }
        assert_eq!(container("/system.slice/agent.service"), None);
    }
}
