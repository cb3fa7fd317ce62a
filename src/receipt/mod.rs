//! The record of a run: its types, its verdict, and its words.
//!
//! A receipt is opened before the first change with every planned row `unaccounted`, so that a run
//! that is killed leaves a true one. [`Receipt::settle`] computes the verdict from the rows alone.
//! Writing it is `state`'s work. The JSON is schema 1: adding a field is a minor change, changing a
//! meaning is a major one (fleet-update-receipt(5)).

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::Accept;
use crate::error::{Error, Kind, Result};
use crate::fleet::Incarnation;
use crate::migrate::HomeOutcome;
use crate::plan::decide::RuntimeOutcome;

pub mod html;
pub mod merge;
mod remembered;
pub mod rows;
pub mod status;
pub mod text;

pub use remembered::Remembered;

/// The version of the receipt's format.
pub const SCHEMA: u32 = 1;

/// The record of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Receipt {
    /// Version of this format.
    pub schema: u32,
    /// Identifier of the run; sorts by time.
    pub run_id: String,
    /// The name that the asker gave this run.
    pub request_id: Option<String>,
    /// SHA-256 of the receipt before this one.
    pub parent: Option<String>,
    /// Head of the audit chain when the run ended.
    pub audit_head: Option<String>,
    /// Which application.
    pub application: String,
    /// What started the run: `manual`, `cron` or `package`.
    pub trigger: String,
    /// Subcommand and names of the flags that were given, never their values.
    pub argv_flags: Vec<String>,
    /// When it started (RFC 3339, UTC).
    pub started_at: String,
    /// When it ended; absent while it runs, and for ever if it was killed.
    pub finished_at: Option<String>,
    /// The program.
    pub tool: Tool,
    /// The machine.
    pub host: Host,
    /// Who ran it.
    pub invoker: Invoker,
    /// Code trees.
    pub installs: Vec<InstallRow>,
    /// One row a home.
    pub homes: Vec<HomeRow>,
    /// One row a runtime.
    pub runtimes: Vec<RuntimeRow>,
    /// One row a source of evidence.
    pub collectors: Vec<CollectorRow>,
    /// Restarts that are owed because of what this run or an earlier one wrote.
    pub debts: Vec<Debt>,
    /// Facts that are not a row.
    pub notes: Vec<String>,
    /// What it all comes to.
    pub verdict: Verdict,
}

/// The program that ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// Its release.
    pub version: String,
    /// SHA-256 of its file.
    pub sha256: Option<String>,
}

/// The machine that it ran on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Its name.
    pub hostname: String,
    /// The kernel's id of this boot.
    pub boot_id: String,
}

/// Who ran it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Invoker {
    /// Effective user id.
    pub uid: u32,
    /// Login name.
    pub user: String,
    /// `host` as root, `user` otherwise.
    pub scope: String,
}

/// A code tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstallRow {
    /// Identifier.
    pub id: String,
    /// Where it is.
    pub path: PathBuf,
    /// What put it there.
    pub kind: String,
    /// Its release.
    pub version: Option<String>,
    /// The configuration version that it expects.
    pub config_version: Option<u32>,
    /// When its code last changed.
    pub changed_at: Option<String>,
}

/// What became of a home.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HomeRow {
    /// Identifier.
    pub id: String,
    /// Profile name.
    pub profile: String,
    /// Where it is.
    pub path: PathBuf,
    /// Its owner.
    pub uid: u32,
    /// Its owner's login name.
    pub user: String,
    /// The install that says which version it needs.
    pub install: Option<String>,
    /// Version before, as read.
    pub from: Option<String>,
    /// Version that it needs.
    pub to: Option<u32>,
    /// How it ended; `null` while it is planned.
    #[schemars(with = "String")]
    pub outcome: HomeOutcome,
    /// Whether `outcome` is what happened (false: what is planned).
    pub done: bool,
    /// Why.
    pub reason: String,
    /// What a person can do.
    pub remedy: Option<String>,
    /// The site's reason for accepting this outcome.
    pub accepted: Option<String>,
    /// The migrations that were evaluated.
    pub steps: Vec<StepRow>,
    /// Every failure of a step.
    pub failures: Vec<String>,
    /// The files that were replaced.
    pub files: Vec<FileRow>,
    /// The values that changed, computed from the bytes before and after.
    pub changes: Vec<ChangeRow>,
}

/// A migration of a home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepRow {
    /// Its id.
    pub id: String,
    /// Checksum of its meaning.
    pub checksum: String,
    /// What it did.
    pub result: String,
}

/// A file of a home that was replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileRow {
    /// Relative to the home.
    pub path: String,
    /// SHA-256 of what it was; absent if it was not there.
    pub sha256_before: Option<String>,
    /// SHA-256 of what it is; absent if it is not there any more.
    pub sha256_after: Option<String>,
    /// Whether a verified copy of what it was is kept under this run's id.
    pub snapshot: bool,
}

/// A value that changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeRow {
    /// The migration that changed it.
    pub step: String,
    /// Where.
    pub path: String,
    /// What it was, secrets masked; absent if there was none.
    pub before: Option<serde_json::Value>,
    /// What it is, secrets masked; absent if it went.
    pub after: Option<serde_json::Value>,
}

/// What became of a runtime.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuntimeRow {
    /// Identifier: its slot, else its process.
    pub id: String,
    /// Its kind.
    pub kind: String,
    /// Profiles that it serves.
    pub profiles: Vec<String>,
    /// Ids of the homes that it serves.
    pub homes: Vec<String>,
    /// Its owner.
    pub uid: u32,
    /// Its owner's login name.
    pub user: String,
    /// Id of the install that it runs from.
    pub install: Option<String>,
    /// Whether it served an old state when it was planned; absent where nothing runs, or it cannot be
    /// told.
    #[serde(default)]
    pub stale: Option<bool>,
    /// Why it is stale, or why that cannot be told.
    #[serde(default)]
    pub stale_reason: String,
    /// Who keeps it running.
    pub supervisor: String,
    /// Its unit, label or slot.
    pub unit: Option<String>,
    /// The row of the mechanism table.
    pub mechanism: Option<String>,
    /// What was done or would be done.
    pub action: Option<String>,
    /// The manager's job, and its result.
    pub job: Option<String>,
    /// How it ended.
    pub outcome: RuntimeOutcome,
    /// Why.
    pub reason: String,
    /// What a person can do.
    pub remedy: Option<String>,
    /// The site's reason for accepting this outcome.
    pub accepted: Option<String>,
    /// When its restart was begun (RFC 3339, UTC); absent where none was.
    #[serde(default)]
    pub began_at: Option<String>,
    /// How long the old life was given to finish its work; absent where it was not asked to.
    #[serde(default)]
    pub drained_ms: Option<u64>,
    /// How long the end state had been constant when it was judged.
    #[serde(default)]
    pub settled_ms: u64,
    /// How long it was waited for, all in all.
    pub waited_ms: u64,
    /// What ran before.
    pub before: Option<Life>,
    /// What runs after.
    pub after: Option<Life>,
    /// What each vantage said.
    pub evidence: Vec<EvidenceRow>,
}

/// One life of a runtime.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Life {
    /// Which process, and when it started.
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub incarnation: Incarnation,
    /// The unit's invocation.
    pub invocation_id: Option<String>,
    /// The release that it says it runs.
    pub code_version: Option<String>,
    /// When it started.
    pub started_at: String,
}

/// What one vantage said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvidenceRow {
    /// `kernel`, `supervisor` or `self`.
    pub vantage: String,
    /// Who asked.
    pub principal: String,
    /// What was seen.
    pub observed: String,
}

/// How a source of evidence did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CollectorRow {
    /// Which source.
    pub name: String,
    /// Who asked.
    pub principal: String,
    /// How many things it found.
    pub found: usize,
    /// `ok`, `skipped` or `unverified`.
    pub outcome: String,
    /// Why, if not `ok`.
    pub reason: String,
}

/// A restart that is owed: this life of a runtime started before we wrote its home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Debt {
    /// Which life; the debt ends with it.
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub incarnation: Incarnation,
    /// Which home.
    pub home: PathBuf,
    /// The home's configuration as we wrote it, or were about to.
    pub sha256: String,
    /// Whether it was written for certain.
    pub written: bool,
    /// Which run wrote it.
    pub run_id: String,
}

/// What a run comes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Clean, or what else.
    pub outcome: VerdictOutcome,
    /// The status that the command ended with; absent while it runs.
    pub exit_status: Option<u8>,
    /// How many rows there are of each outcome.
    pub counts: BTreeMap<String, usize>,
}

/// Clean, or what else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictOutcome {
    /// Every row is accounted for and fine.
    Clean,
    /// At least one is not.
    NotClean,
    /// Nothing was changed, on purpose.
    Refused,
    /// The run did not come to its end. Also what stands in a receipt that is still open.
    Interrupted,
}

impl VerdictOutcome {
    /// The word in receipts.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::NotClean => "not-clean",
            Self::Refused => "refused",
            Self::Interrupted => "interrupted",
        }
    }
}

fn damaged(error: serde_json::Error) -> Error {
    Error::new(Kind::Input, "the receipt is damaged").with_source(error)
}

fn check_schema(schema: Option<u64>) -> Result<()> {
    match schema {
        Some(number) if number == u64::from(SCHEMA) => Ok(()),
        Some(number) => Err(Error::new(
            Kind::Input,
            format!("the receipt is of format {number}, and {SCHEMA} is known"),
        )
        .with_hint("read it with the release of update that wrote it, or a newer one")),
        None => Err(Error::new(
            Kind::Input,
            "this is not a receipt: it has no schema",
        )),
    }
}

impl Receipt {
    /// Reads a receipt.
    ///
    /// # Errors
    /// When it is of a newer format, or not a receipt.
    pub fn parse(value: serde_json::Value) -> Result<Self> {
        check_schema(value.get("schema").and_then(serde_json::Value::as_u64))?;
        serde_json::from_value(value).map_err(damaged)
    }

    /// Applies the site's policy: rows that it accepts say so, and keep their outcome.
    pub fn accept(&mut self, policy: &[Accept]) {
        for row in &mut self.homes {
            row.accepted = policy
                .iter()
                .find(|rule| {
                    rule.home.as_deref() == Some(&*row.path) && rule.outcome == row.outcome.word()
                })
                .map(|rule| rule.reason.clone());
        }
        let paths: BTreeMap<&str, &PathBuf> = self
            .homes
            .iter()
            .map(|home| (home.id.as_str(), &home.path))
            .collect();
        for row in &mut self.runtimes {
            // Only what can be known and left so: a failed restart is never fine.
            let acceptable = match row.outcome {
                RuntimeOutcome::Manual => true,
                RuntimeOutcome::Down => row.reason.starts_with("before"),
                _ => false,
            };
            row.accepted = policy
                .iter()
                .filter(|_| acceptable)
                .find(|rule| {
                    rule.outcome == row.outcome.word()
                        && (rule.unit.is_some() && rule.unit == row.unit
                            || rule.home.as_ref().is_some_and(|path| {
                                row.homes
                                    .iter()
                                    .any(|id| paths.get(id.as_str()) == Some(&path))
                            }))
                })
                .map(|rule| rule.reason.clone());
        }
    }

    /// Whether every row is accounted for and fine.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.homes
            .iter()
            .all(|row| row.accepted.is_some() || (row.done && row.outcome.is_clean()))
            && self
                .runtimes
                .iter()
                .all(|row| row.accepted.is_some() || row.outcome.is_clean())
            && self
                .collectors
                .iter()
                .all(|row| row.outcome != "unverified")
    }

    /// Computes the verdict from the rows; an interrupted run is never clean.
    pub fn settle(&mut self, interrupted: bool) {
        let outcome = match (interrupted, self.is_clean()) {
            (true, _) => VerdictOutcome::Interrupted,
            (false, true) => VerdictOutcome::Clean,
            (false, false) => VerdictOutcome::NotClean,
        };
        let mut counts = BTreeMap::new();
        for word in self.homes.iter().map(|row| row.outcome.word()) {
            *counts.entry(format!("homes.{word}")).or_insert(0) += 1;
        }
        for word in self.runtimes.iter().map(|row| row.outcome.word()) {
            *counts.entry(format!("runtimes.{word}")).or_insert(0) += 1;
        }
        for row in self.collectors.iter().filter(|row| row.outcome != "ok") {
            *counts
                .entry(format!("collectors.{}", row.outcome))
                .or_insert(0) += 1;
        }
        self.verdict = Verdict {
            outcome,
            exit_status: Some(u8::from(outcome != VerdictOutcome::Clean)),
            counts,
        };
    }

    /// The JSON Schema of a receipt.
    #[must_use]
    pub fn schema() -> serde_json::Value {
        schemars::schema_for!(Self).to_value()
    }
}
