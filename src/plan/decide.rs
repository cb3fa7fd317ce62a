//! What a runtime needs, decided from facts alone: one function, its first matching rule wins.
//!
//! Nothing here reads anything. `plan` collects the [`Facts`] of a runtime, and asks.

use serde::{Deserialize, Serialize};

use crate::config::RestartWhen;
use crate::fleet::{Phase, Runtime, Supervisor, Unit};
use crate::restart::table::Action;
use crate::world::render_time;

/// How a runtime ends in a receipt.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum RuntimeOutcome {
    /// The old incarnation is gone and a new one is up, proved.
    Restarted,
    /// It needed nothing, by evidence.
    Current,
    /// Its operator stopped it.
    Stopped,
    /// A living, named owner restarts it without being asked.
    Deferred,
    /// Not ours to touch.
    Skipped,
    /// Stale, alive, and only a person can restart it.
    Manual,
    /// A restart was tried and did not work, or it was lost while others were restarted.
    Failed,
    /// It should run, and nothing runs.
    Down,
    /// A source of evidence that must speak did not.
    Unverified,
    /// Nothing above was proved.
    Unaccounted,
}

impl RuntimeOutcome {
    /// Every one of them.
    pub const ALL: [Self; 10] = [
        Self::Restarted,
        Self::Current,
        Self::Stopped,
        Self::Deferred,
        Self::Skipped,
        Self::Manual,
        Self::Failed,
        Self::Down,
        Self::Unverified,
        Self::Unaccounted,
    ];

    /// Whether a run that ends with this row can be clean.
    #[must_use]
    pub const fn is_clean(self) -> bool {
        matches!(
            self,
            Self::Restarted | Self::Current | Self::Stopped | Self::Deferred | Self::Skipped
        )
    }

    /// The word in receipts.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Restarted => "restarted",
            Self::Current => "current",
            Self::Stopped => "stopped",
            Self::Deferred => "deferred",
            Self::Skipped => "skipped",
            Self::Manual => "manual",
            Self::Failed => "failed",
            Self::Down => "down",
            Self::Unverified => "unverified",
            Self::Unaccounted => "unaccounted",
        }
    }
}

/// An outcome with its grounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// How it ends.
    pub outcome: RuntimeOutcome,
    /// Why, as a fragment.
    pub reason: String,
    /// What a person can do about it; a command where there is one.
    pub remedy: Option<String>,
}

impl Decision {
    /// An outcome and why.
    pub fn new(outcome: RuntimeOutcome, reason: impl Into<String>) -> Self {
        Self {
            outcome,
            reason: reason.into(),
            remedy: None,
        }
    }

    /// Adds what a person can do.
    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        let remedy = remedy.into();
        self.remedy = (!remedy.is_empty()).then_some(remedy);
        self
    }
}

/// What becomes of a runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// It is not a row: a slot that nobody enabled.
    NoRow,
    /// Nothing is done; this is how it ends unless it changes meanwhile.
    Settled(Decision),
    /// It is between two states, and has to be looked at again after a while.
    Wait(Decision),
    /// It is restarted, and why.
    Act(String),
}

/// Whether a runtime serves an old state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Age {
    /// It started after its code changed, and no change of ours is owed to it.
    Fresh,
    /// It serves an old state, and why.
    Stale(String),
    /// Its start cannot be compared with its code, and why.
    Unknown(String),
}

/// Whether its service manager can be asked to restart it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// It answered.
    Answers,
    /// It did not answer, and why.
    Mute(String),
    /// It would refuse, and the command that a person with the right can run.
    Denied(String),
}

/// Everything that the decision about one runtime rests on.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// What is known of it.
    pub runtime: &'a Runtime,
    /// Why it is not ours, if it is not.
    pub not_ours: Option<String>,
    /// Whether it serves an old state.
    pub age: Age,
    /// The first home of its that it must not be restarted onto, with that home's outcome.
    pub blocked_by: Option<String>,
    /// What the mechanism table says, if a row matches.
    pub action: Option<Action>,
    /// What the table says a person can do, or who will do it.
    pub instruction: String,
    /// The command that reaches its manager, for who reads the row.
    pub systemctl: String,
    /// Whether its manager can be asked.
    pub reach: Reach,
    /// When runtimes are restarted.
    pub restart: RestartWhen,
    /// Whether a runtime between two states has been waited for already.
    pub waited: bool,
    /// Why its start cannot be told from another host's, if so.
    pub elsewhere: Option<String>,
}

/// Decides about one runtime.
#[must_use]
pub fn decide(facts: &Facts<'_>) -> Step {
    use RuntimeOutcome as O;
    let runtime = facts.runtime;
    if let Some(problem) = runtime.unreadable.first() {
        return settled(O::Unverified, format!("collector: {problem}"));
    }
    if let Some(reason) = &facts.not_ours {
        return settled(O::Skipped, reason.clone());
    }
    if let Some(reason) = &facts.elsewhere {
        return settled(O::Unverified, format!("other host? {reason}"));
    }
    let Some(process) = &runtime.process else {
        return runtime
            .unit
            .as_ref()
            .map_or(Step::NoRow, |unit| slot(unit, facts));
    };
    if runtime.homes.is_empty() {
        return settled(O::Unverified, format!("home: {}", runtime.home_evidence));
    }
    // A row of the table may name an owner that nothing else knows; without one it is hands off.
    if let (Supervisor::Unknown { seen }, None) = (&runtime.supervisor, facts.action) {
        return Step::Settled(
            Decision::new(O::Unaccounted, format!("owner: {seen}")).with_remedy(format!(
                "find out what keeps process {} running, and restart it there",
                process.incarnation.pid
            )),
        );
    }
    if let Some(home) = &facts.blocked_by {
        return settled(O::Skipped, format!("home-{home}"));
    }
    let always = facts.restart == RestartWhen::Always;
    let why = match &facts.age {
        Age::Fresh if !always => return fresh(runtime),
        Age::Unknown(why) if !always => return settled(O::Unverified, format!("age: {why}")),
        Age::Stale(why) => why.clone(),
        Age::Fresh | Age::Unknown(_) => String::from("asked to restart all"),
    };
    if facts.restart == RestartWhen::Never {
        return Step::Settled(
            Decision::new(O::Manual, format!("asked not to; {why}"))
                .with_remedy(&*facts.instruction),
        );
    }
    if facts.action == Some(Action::Defer) {
        return Step::Settled(
            Decision::new(O::Deferred, format!("owner; {why}")).with_remedy(&*facts.instruction),
        );
    }
    if runtime.encloses_us {
        return Step::Settled(
            Decision::new(
                O::Deferred,
                format!("self: this run was started from inside it; {why}"),
            )
            .with_remedy("run update again from outside of it, or let the next run settle it"),
        );
    }
    if let Some(decision) = only_a_person(facts, &why) {
        return Step::Settled(decision);
    }
    match facts.action {
        None => settled(
            O::Unaccounted,
            format!("owner: no mechanism is known for it; {why}"),
        ),
        _ => match &facts.reach {
            Reach::Mute(reason) => settled(O::Unverified, format!("manager: {reason}")),
            Reach::Denied(command) => Step::Settled(
                Decision::new(O::Failed, format!("denied; {why}")).with_remedy(command),
            ),
            Reach::Answers => Step::Act(why),
        },
    }
}

/// What a person has to do, because a row says so or because the row's action cannot be done here.
fn only_a_person(facts: &Facts<'_>, why: &str) -> Option<Decision> {
    let manual = |reason: String, remedy: String| {
        Some(Decision::new(RuntimeOutcome::Manual, reason).with_remedy(remedy))
    };
    let (process, unit) = (&facts.runtime.process, &facts.runtime.unit);
    match facts.action {
        Some(Action::Manual | Action::Deny) => manual(why.into(), facts.instruction.clone()),
        // The rest of what a respawn needs is read when it is done, before anything is stopped.
        Some(Action::Respawn)
            if process
                .as_ref()
                .is_some_and(|process| process.terminal != 0) =>
        {
            manual(
                format!("respawn: it has a terminal; {why}"),
                facts.instruction.clone(),
            )
        }
        Some(Action::TryRestart) => unit
            .as_ref()
            .filter(|unit| unit.is_frozen)
            .and_then(|unit| {
                manual(
                    format!("frozen: somebody froze its processes; {why}"),
                    format!(
                        "{ctl} thaw {name}, then {}",
                        facts.instruction,
                        ctl = facts.systemctl,
                        name = unit.name
                    ),
                )
            }),
        _ => None,
    }
}

fn settled(outcome: RuntimeOutcome, reason: impl Into<String>) -> Step {
    Step::Settled(Decision::new(outcome, reason))
}

/// A runtime whose start is after every change: current, unless another vantage disagrees.
fn fresh(runtime: &Runtime) -> Step {
    if let (Supervisor::Systemd { unit, .. }, None) = (&runtime.supervisor, &runtime.unit) {
        let reason = format!("manager: it said nothing of {unit}");
        return settled(RuntimeOutcome::Unverified, reason);
    }
    if let Some(unit) = &runtime.unit
        && !unit.is_up()
    {
        let state = format!("{}/{}", unit.active_state, unit.sub_state);
        return Step::Wait(Decision::new(
            RuntimeOutcome::Unverified,
            format!("vantages disagree: it runs, and its manager says {state}"),
        ));
    }
    if let Some(report) = &runtime.self_report {
        let state = report.state.as_deref().unwrap_or("unknown");
        let said = Decision::new(RuntimeOutcome::Unverified, format!("self: it says {state}"));
        match report.phase {
            Phase::Failed => return Step::Settled(said),
            // It has not shown yet that it stays up, or will be another one in a moment.
            Phase::Starting | Phase::Draining => return Step::Wait(said),
            Phase::Running | Phase::Stopped | Phase::Unknown => {}
        }
    }
    settled(RuntimeOutcome::Current, "")
}

/// A slot without a process: who stopped it, and did anybody?
fn slot(unit: &Unit, facts: &Facts<'_>) -> Step {
    use RuntimeOutcome as O;
    let look_at = |unit: &Unit| format!("{} status {}", facts.systemctl, unit.name);
    match unit.active_state.as_str() {
        "activating" | "deactivating" | "reloading" | "active" if !facts.waited => {
            let reason = if unit.sub_state == "auto-restart" {
                String::from("auto-restart")
            } else {
                format!(
                    "{}/{}, and no process of it",
                    unit.active_state, unit.sub_state
                )
            };
            return Step::Wait(Decision::new(O::Unverified, reason));
        }
        "activating" if unit.sub_state == "auto-restart" => {
            return Step::Settled(
                Decision::new(O::Down, format!("crash-loop; {}", exit_of(unit)))
                    .with_remedy(look_at(unit)),
            );
        }
        "activating" | "deactivating" | "reloading" | "active" => {
            return settled(
                O::Unverified,
                format!(
                    "{}/{}, and no process of it",
                    unit.active_state, unit.sub_state
                ),
            );
        }
        _ => {}
    }
    if !unit.is_enabled() || unit.load_state == "masked" {
        return Step::NoRow;
    }
    if unit.active_state == "inactive" {
        let unmet = unit.result == "exec-condition"
            || (!unit.condition_result && unit.condition_timestamp_monotonic > 0);
        return if unmet {
            Step::Settled(
                Decision::new(O::Down, "condition: a condition of its unit does not hold")
                    .with_remedy(look_at(unit)),
            )
        } else {
            settled(O::Stopped, "its operator stopped it, or never started it")
        };
    }
    // A stop of this application's runtimes ends with a status that is not 0, so the unit is
    // `failed`. Without a stop, `Restart=always` would have tried to start it again: then it leaves
    // `inactive` after it left `active`.
    let prevented = unit.restart_prevent_status.contains(&unit.exec_main_status);
    let respawned = unit.inactive_exit_monotonic >= unit.active_exit_monotonic;
    if unit.restart == "always" && !prevented && !respawned && unit.dependencies_active {
        return settled(
            O::Stopped,
            format!("nonzero-exit: its operator stopped it; {}", exit_of(unit)),
        );
    }
    Step::Settled(
        Decision::new(O::Down, format!("before: {}", exit_of(unit))).with_remedy(look_at(unit)),
    )
}

fn exit_of(unit: &Unit) -> String {
    format!(
        "result {}, last status {}",
        unit.result, unit.exec_main_status
    )
}

/// Compares the start of a runtime with the last change of its code.
#[must_use]
pub fn age_by_code(runtime: &Runtime, changed: Option<&crate::fleet::Changed>) -> Age {
    let Some(process) = &runtime.process else {
        return Age::Unknown("it has no process".into());
    };
    let Some(changed) = changed else {
        return Age::Unknown("no file says when its code changed".into());
    };
    let started = started_at(runtime, process);
    if changed.at_nanos > started {
        let time = |nanos: u64| render_time(std::time::Duration::from_nanos(nanos));
        Age::Stale(format!(
            "started {}, its code changed {} ({})",
            time(started),
            time(changed.at_nanos),
            changed.file.display()
        ))
    } else {
        Age::Fresh
    }
}

/// When a runtime started. The manager's record of its main process is a wall-clock time that was
/// taken then; one computed from ticks moves with every step of the clock since.
fn started_at(runtime: &Runtime, process: &crate::fleet::Process) -> u64 {
    match &runtime.unit {
        Some(unit) if unit.main_pid == process.incarnation.pid && unit.exec_main_start_usec > 0 => {
            unit.exec_main_start_usec.saturating_mul(1000)
        }
        _ => process.started_at_nanos,
    }
}

#[cfg(test)]
mod tests;
