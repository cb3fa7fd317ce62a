//! The mechanism table: which owner of a runtime is asked to restart it, and how.
//!
//! Rows are data (`mechanisms.toml` and a site's own files before it); the first that matches a
//! [`Subject`] wins, and what no row matches has no mechanism. [`Table::load`] refuses a table that
//! cannot mean what it says – unknown keys, a second row of one id, a row that an earlier one of the
//! same file or of a site hides – naming file and line. It acts on nothing: executors take a [`Mechanism`].

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use super::fields::Fields;
pub use super::matching::{Match, Owner, Subject};
use super::rows;
use crate::error::Result;

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
}
