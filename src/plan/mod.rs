//! The plan: what every home and every runtime needs, and why. It is the work list of a run.
//!
//! Pure: an inventory, the evaluations of its homes, the mechanism table and the site's wishes go in,
//! a [`Plan`] comes out. Every home and every runtime of the inventory is in it; nothing is acted on
//! that is not.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::{Policy, RestartWhen};
use crate::fleet::{Home, HomeStatus, Inventory, Manager, Runtime, Supervisor};
use crate::migrate::{Evaluation, HomeOutcome};
use crate::restart::table::{Fields, Mechanism, Subject, Table};
use crate::world::Account;

pub mod decide;
mod targets;

pub use targets::{Target, targets};

use decide::{Age, Facts, Reach, Step, age_by_code, decide};

/// What a run was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wishes {
    /// When runtimes are restarted.
    pub restart: RestartWhen,
    /// Whether homes are migrated.
    pub migrate: bool,
    /// Whether the application's own migrator may be asked where the catalog ends.
    pub native: bool,
    /// The version for homes whose installs do not say.
    pub to: Option<u32>,
    /// What is accepted or left alone.
    pub policy: Policy,
}

/// A restart that an earlier run owed to a living process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owed {
    /// Which life of which process.
    pub incarnation: crate::fleet::Incarnation,
    /// Which home was written.
    pub home: std::path::PathBuf,
    /// Its configuration as it was written.
    pub sha256: String,
    /// Whether it was written for certain.
    pub written: bool,
}

/// A home of the plan.
#[derive(Debug, Clone)]
pub struct PlannedHome {
    /// The home.
    pub home: Home,
    /// What it needs.
    pub target: Target,
    /// What its migration would do, or why there is none.
    pub evaluation: Evaluation,
}

/// A runtime of the plan.
#[derive(Debug, Clone)]
pub struct PlannedRuntime {
    /// The runtime.
    pub runtime: Runtime,
    /// What becomes of it.
    pub step: Step,
    /// Whether it serves an old state.
    pub age: Age,
    /// The row of the mechanism table that is its, if one matches.
    pub mechanism: Option<Mechanism>,
    /// Why that row.
    pub chosen: String,
    /// What braces stand for in the row's texts.
    pub fields: Fields,
    /// What a person can do, with its names filled in.
    pub instruction: String,
}

/// What every home and every runtime needs.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// In the order of the inventory.
    pub homes: Vec<PlannedHome>,
    /// In the order of the inventory, without slots that are not rows.
    pub runtimes: Vec<PlannedRuntime>,
}

/// What a plan is made of.
#[derive(Debug)]
pub struct Given<'a> {
    /// What exists.
    pub inventory: &'a Inventory,
    /// What each home needs, by the home's id.
    pub targets: BTreeMap<String, Target>,
    /// What migrating each home would do, by the home's id.
    pub evaluations: BTreeMap<String, Evaluation>,
    /// The mechanism table.
    pub table: &'a Table,
    /// What was asked for.
    pub wishes: &'a Wishes,
    /// What earlier runs owe.
    pub owed: &'a [Owed],
    /// Who asks.
    pub caller: &'a Account,
    /// Login names by user id.
    pub names: &'a BTreeMap<u32, String>,
    /// Whether runtimes between two states have been waited for.
    pub waited: bool,
}

/// Why a home is not even looked into, if so; the others are evaluated by their owner.
#[must_use]
pub fn without_evaluation(home: &Home, wishes: &Wishes) -> Option<(HomeOutcome, String)> {
    let skip = wishes
        .policy
        .skip
        .iter()
        .find(|rule| rule.home.as_deref() == Some(&*home.path));
    if let Some(rule) = skip {
        return Some((HomeOutcome::Skipped, format!("policy: {}", rule.reason)));
    }
    match &home.status {
        HomeStatus::NotAProfile => Some((HomeOutcome::Skipped, "not a profile".into())),
        HomeStatus::Unconfigured => Some((HomeOutcome::Unconfigured, String::new())),
        HomeStatus::Unreadable(why) => Some((HomeOutcome::Invalid, format!("unreadable: {why}"))),
        HomeStatus::Foreign(why) => Some((HomeOutcome::Failed, format!("foreign: {why}"))),
        HomeStatus::Configured => home
            .foreign_state
            .as_ref()
            .map(|seen| (HomeOutcome::Conflict, format!("other host? {seen}")))
            .or_else(|| {
                let seen = home.updater.as_ref()?;
                Some((HomeOutcome::Conflict, format!("updater: {seen}")))
            }),
    }
}

impl Plan {
    /// Decides about every home and every runtime.
    #[must_use]
    pub fn new(mut given: Given<'_>) -> Self {
        let homes: Vec<PlannedHome> = given
            .inventory
            .homes
            .iter()
            .map(|home| {
                plan_home(
                    home,
                    &mut given.targets,
                    &mut given.evaluations,
                    given.wishes,
                )
            })
            .collect();
        let by_id: BTreeMap<&str, usize> = homes
            .iter()
            .enumerate()
            .map(|(index, home)| (home.home.id.as_str(), index))
            .collect();
        let served = |runtime: &Runtime| -> Vec<&PlannedHome> {
            let ids = runtime.homes.iter();
            // In the order of the plan, whatever order the runtime names them in.
            let found: BTreeSet<usize> = ids
                .filter_map(|id| by_id.get(id.as_str()).copied())
                .collect();
            found.into_iter().map(|index| &homes[index]).collect()
        };
        let runtimes = given
            .inventory
            .runtimes
            .iter()
            .filter_map(|runtime| plan_runtime(runtime, &served(runtime), &given))
            .collect();
        Self { homes, runtimes }
    }

    /// Whether a runtime is between two states, so that looking again after a while tells more.
    #[must_use]
    pub fn is_between(&self) -> bool {
        self.runtimes
            .iter()
            .any(|planned| matches!(planned.step, Step::Wait(_)))
    }

    /// Whether a runtime is left alone only because this run was started from inside it, and leaving
    /// it would help: the main process of a unit is ended wherever it is.
    #[must_use]
    pub fn is_enclosed(&self, pid: u32) -> bool {
        self.runtimes.iter().any(|planned| {
            let main_pid = planned.runtime.unit.as_ref().map(|unit| unit.main_pid);
            planned.runtime.encloses_us
                && main_pid.is_some_and(|main_pid| main_pid != pid)
                && matches!(&planned.step, Step::Settled(decision) if decision.outcome == decide::RuntimeOutcome::Deferred)
        })
    }

    /// Whether a run would change something.
    #[must_use]
    pub fn changes_something(&self) -> bool {
        self.pending().next().is_some()
            || self
                .runtimes
                .iter()
                .any(|planned| matches!(planned.step, Step::Act(_)))
    }

    /// The runtimes to restart, in two waves: one of each install and kind, then the rest.
    #[must_use]
    pub fn waves(&self) -> (Vec<usize>, Vec<usize>) {
        let mut acts: Vec<usize> = (0..self.runtimes.len())
            .filter(|index| matches!(self.runtimes[*index].step, Step::Act(_)))
            .collect();
        // What this run was started from goes last: our own reader may end with it.
        acts.sort_by_key(|index| self.runtimes[*index].runtime.is_ancestor);
        let mut seen = BTreeSet::new();
        acts.into_iter().partition(|index| {
            let runtime = &self.runtimes[*index].runtime;
            seen.insert((runtime.install.clone(), runtime.kind.clone()))
        })
    }

    /// The homes to migrate.
    pub fn pending(&self) -> impl Iterator<Item = &PlannedHome> {
        self.homes
            .iter()
            .filter(|home| home.evaluation.outcome == HomeOutcome::Migrated)
    }
}

fn plan_home(
    home: &Home,
    targets: &mut BTreeMap<String, Target>,
    evaluations: &mut BTreeMap<String, Evaluation>,
    wishes: &Wishes,
) -> PlannedHome {
    let target = targets.remove(&home.id).unwrap_or_default();
    let mut evaluation = evaluations.remove(&home.id).unwrap_or_else(|| {
        let (outcome, reason) = without_evaluation(home, wishes).unwrap_or_else(|| {
            (
                HomeOutcome::Failed,
                "its owner's helper did not evaluate it".into(),
            )
        });
        Evaluation::without_steps(home.id.clone(), outcome, reason)
    });
    if !wishes.migrate && evaluation.outcome == HomeOutcome::Migrated {
        evaluation.outcome = HomeOutcome::Skipped;
        evaluation.reason = "asked not to migrate".into();
    }
    PlannedHome {
        home: home.clone(),
        target,
        evaluation,
    }
}

fn plan_runtime(
    runtime: &Runtime,
    served: &[&PlannedHome],
    given: &Given<'_>,
) -> Option<PlannedRuntime> {
    let user = given
        .names
        .get(&runtime.uid)
        .cloned()
        .unwrap_or_else(|| runtime.uid.to_string());
    let fields = fields(runtime, given.caller.uid, &user, served);
    let chosen = given.table.choose(&Subject::of(runtime));
    let mechanism = chosen.row.cloned();
    let instruction = mechanism
        .as_ref()
        .map(|row| row.instruct(&fields))
        .unwrap_or_default();
    let facts = Facts {
        runtime,
        not_ours: not_ours(runtime, served, given),
        age: age(runtime, served, given),
        blocked_by: served
            .iter()
            .map(|home| home.evaluation.outcome)
            .find(|outcome| blocks(*outcome))
            .map(|outcome| outcome.word().to_owned()),
        action: mechanism.as_ref().map(|row| row.action),
        instruction: instruction.clone(),
        systemctl: fields.of_name("systemctl").to_owned(),
        reach: reach(runtime, given.caller),
        restart: given.wishes.restart,
        waited: given.waited,
        elsewhere: served
            .iter()
            .filter(|_| runtime.process.is_none())
            .find_map(|home| home.home.foreign_state.clone()),
    };
    match decide(&facts) {
        Step::NoRow => None,
        step => Some(PlannedRuntime {
            runtime: runtime.clone(),
            step,
            age: facts.age,
            mechanism,
            chosen: chosen.why,
            fields,
            instruction,
        }),
    }
}

fn fields(runtime: &Runtime, reader: u32, user: &str, served: &[&PlannedHome]) -> Fields {
    let first = served.first();
    let profile = first.map_or("", |home| home.home.profile.as_str());
    let home = first.map_or_else(String::new, |home| home.home.path.display().to_string());
    Fields::of(runtime, reader, user, profile, &home)
}

/// A runtime must not be restarted onto such a home: it would start, on its defaults, and say that
/// it runs.
#[must_use]
pub const fn blocks(outcome: HomeOutcome) -> bool {
    matches!(
        outcome,
        HomeOutcome::Invalid
            | HomeOutcome::NewerThanCode
            | HomeOutcome::Failed
            | HomeOutcome::Conflict
    )
}

fn not_ours(runtime: &Runtime, served: &[&PlannedHome], given: &Given<'_>) -> Option<String> {
    if given.caller.uid != 0 && runtime.uid != given.caller.uid {
        return Some(format!("another user's: uid {}", runtime.uid));
    }
    if runtime.foreign_namespace {
        return Some("another namespace".into());
    }
    let unit = runtime.unit.as_ref().map(|unit| &unit.name);
    let policy = given.wishes.policy.skip.iter().find(|rule| {
        let names_unit = rule.unit.is_some() && rule.unit.as_ref() == unit;
        let names_home = served
            .iter()
            .any(|home| Some(&home.home.path) == rule.home.as_ref());
        names_unit || names_home
    });
    if let Some(rule) = policy {
        return Some(format!("policy: {}", rule.reason));
    }
    if !runtime.managed {
        return Some(format!("unmanaged kind {}", runtime.kind));
    }
    let installs = &given.inventory.installs;
    let own = installs.iter().find(|install| {
        served
            .iter()
            .any(|home| install.roots.contains(&home.home.root))
    })?;
    let runs = installs
        .iter()
        .find(|install| Some(&install.id) == runtime.install.as_ref())?;
    (own.id != runs.id).then(|| format!("other-install: it runs from {}", runs.path.display()))
}

fn age(runtime: &Runtime, served: &[&PlannedHome], given: &Given<'_>) -> Age {
    let Some(process) = &runtime.process else {
        return Age::Fresh;
    };
    let pending = served
        .iter()
        .find(|home| home.evaluation.outcome == HomeOutcome::Migrated);
    if let Some(home) = pending {
        let from = home.evaluation.from.as_deref().unwrap_or("unversioned");
        let to = home.evaluation.to.unwrap_or_default();
        return Age::Stale(format!(
            "its home {} goes from {from} to {to}",
            home.home.profile
        ));
    }
    let owed = given.owed.iter().find(|owed| {
        owed.incarnation.same_life(&process.incarnation)
            && served.iter().any(|home| {
                let holds_it = home.evaluation.config_sha256.as_deref() == Some(&owed.sha256);
                home.home.path == owed.home && (owed.written || holds_it)
            })
    });
    if let Some(owed) = owed {
        let home = owed.home.display();
        return Age::Stale(format!("an earlier run wrote {home} after it had started"));
    }
    given
        .inventory
        .installs
        .iter()
        .find(|install| Some(&install.id) == runtime.install.as_ref())
        .map_or_else(
            || Age::Unknown("its install is not known".into()),
            |install| age_by_code(runtime, install.changed.as_ref()),
        )
}

fn reach(runtime: &Runtime, caller: &Account) -> Reach {
    let Supervisor::Systemd { scope, unit } = &runtime.supervisor else {
        return Reach::Answers;
    };
    if *scope == Manager::System && caller.uid != 0 {
        return Reach::Denied(format!("sudo systemctl restart {unit}"));
    }
    match &runtime.unit {
        Some(facts) if facts.loaded => Reach::Answers,
        Some(_) => Reach::Mute(format!(
            "it does not know {unit}, whose control group the process is in"
        )),
        None => Reach::Mute(format!("it said nothing of {unit}")),
    }
}

impl crate::fleet::Incarnation {
    /// Whether both are the same life of the same process. The namespace is compared only where
    /// both could be read.
    #[must_use]
    pub fn same_life(&self, other: &Self) -> bool {
        let same_namespace = match (self.pid_namespace, other.pid_namespace) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => true,
        };
        same_namespace
            && self.boot_id == other.boot_id
            && self.pid == other.pid
            && self.start_ticks == other.start_ticks
    }
}

#[cfg(test)]
mod tests;
