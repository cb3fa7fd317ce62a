//! What became of a restart: three vantages, one outcome, by a table.
//!
//! [`judge`] is the table of kernel × supervisor × self, total over its whole product. [`classify`]
//! turns what was observed into those three words. Nothing here reads anything, and no rule gives
//! `restarted` without a new process that two vantages saw.

use std::fmt;

use crate::fleet::{Phase, Process, Runtime, SelfReport, Supervisor, Unit};
use crate::plan::decide::{Decision, RuntimeOutcome};
use crate::restart::respawn::LEFT_ALONE;
use crate::restart::systemd::FROZEN;
use crate::restart::{Call, Observation};

pub mod reconcile;

/// What the kernel says after the action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kernel {
    /// It could not be read.
    Unreadable(String),
    /// The old process is alive.
    Old,
    /// The old process is gone, and there is no successor.
    Gone,
    /// The old process is gone, and a successor of the same kind, owner and slot runs.
    New,
    /// The old process is gone, and what runs in its place is not its successor.
    Wrong(String),
}

/// What the service manager says after the action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Manager {
    /// A new invocation is active, and was for the settle time.
    Up,
    /// Invocations follow one another.
    Flapping,
    /// Inactive or failed.
    Down,
    /// Still on the way when the limit was reached.
    Waiting,
    /// The old invocation is active.
    Same,
    /// It did not answer.
    Mute(String),
    /// There is none.
    None,
}

/// What the runtime says of itself after the action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Own {
    /// It is the successor, and serves.
    Serves,
    /// It spoke before, and does not now.
    Silent,
    /// It speaks of the old process.
    Old,
    /// It says that it does not serve as it should.
    Bad(String),
    /// It did not speak before.
    None,
}

/// What is needed for a reason that a person can use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detail {
    /// What the manager answered to the call, if it refused it.
    pub refused: Option<String>,
    /// The result of the job.
    pub job_result: Option<String>,
    /// Why it was left as it is, for a person to restart.
    pub left_alone: Option<String>,
    /// Whether somebody else stopped it meanwhile.
    pub stopped_by_other: bool,
    /// How the unit ended: result, status, condition.
    pub ending: String,
    /// How long the manager may take to stop it.
    pub stop_budget: String,
    /// Whether its control group was seen to be empty; `None` where that is not known.
    pub slot_empty: Option<bool>,
}

/// The table: first line that matches wins.
#[must_use]
pub fn judge(kernel: &Kernel, manager: &Manager, own: &Own, detail: &Detail) -> Decision {
    use RuntimeOutcome as O;
    match (kernel, manager, own) {
        (Kernel::Unreadable(why), _, _) => Decision::new(O::Unverified, format!("kernel: {why}")),
        (Kernel::Old, Manager::Same | Manager::None, _) if detail.left_alone.is_some() => {
            Decision::new(O::Manual, detail.left_alone.clone().unwrap_or_default())
        }
        (Kernel::Old, Manager::Same | Manager::None, _) => {
            match (&detail.refused, detail.job_result.as_deref()) {
                (Some(refusal), _) => Decision::new(O::Failed, refusal.clone()),
                (None, None) if *manager == Manager::Same => {
                    Decision::new(O::Failed, "timeout: its manager's job did not end in time")
                }
                (None, Some(result)) if *manager == Manager::Same => Decision::new(
                    O::Failed,
                    format!(
                        "not-restarted: the job ended with {result}, and the old process still runs"
                    ),
                ),
                (None, _) => Decision::new(O::Failed, "not-restarted: the old process still runs"),
            }
        }
        (Kernel::Old, Manager::Mute(why), _) => {
            Decision::new(O::Unverified, format!("manager: {why}"))
        }
        (Kernel::Old, Manager::Up | Manager::Flapping, _) => Decision::new(
            O::Failed,
            "old-survives: a new one was started beside the old process",
        ),
        (Kernel::Old, Manager::Down | Manager::Waiting, _) => Decision::new(
            O::Failed,
            format!(
                "timeout: the old process still runs; its stop may take {}",
                detail.stop_budget
            ),
        ),
        (Kernel::Gone, Manager::Down, _)
            if detail.stopped_by_other || detail.job_result.as_deref() == Some("canceled") =>
        {
            Decision::new(O::Stopped, "operator: somebody stopped it meanwhile")
        }
        (Kernel::Gone, Manager::Down, _) => Decision::new(O::Down, detail.ending.clone()),
        (Kernel::Gone, Manager::Waiting, _) => {
            Decision::new(O::Down, format!("not up in time: {}", detail.ending))
        }
        (Kernel::Gone, Manager::Up | Manager::Same, _) => {
            Decision::new(O::Unverified, "no process of this kind runs in its unit")
        }
        (Kernel::Gone, Manager::Mute(why), _) => match detail.slot_empty {
            Some(true) => Decision::new(
                O::Down,
                format!("nothing runs, and its manager does not answer: {why}"),
            ),
            _ => Decision::new(O::Unverified, format!("manager: {why}")),
        },
        (Kernel::Gone, Manager::None, _) => Decision::new(O::Down, "nothing runs in its place"),
        (_, Manager::Flapping, _) => {
            Decision::new(O::Failed, format!("crash-loop: {}", detail.ending))
        }
        (Kernel::Wrong(what), _, _) => Decision::new(O::Failed, format!("wrong successor: {what}")),
        (Kernel::New, Manager::Mute(why), _) => {
            Decision::new(O::Unverified, format!("manager: {why}"))
        }
        (Kernel::New, Manager::Same, _) => Decision::new(
            O::Unverified,
            "respawned inside the unit, which was not restarted",
        ),
        (Kernel::New, Manager::Down | Manager::Waiting, _) => Decision::new(
            O::Unverified,
            format!(
                "vantages disagree: a new process runs, and its manager says {}",
                detail.ending
            ),
        ),
        (Kernel::New, _, Own::Bad(state)) => Decision::new(O::Failed, format!("self: {state}")),
        (Kernel::New, _, Own::Silent) => {
            Decision::new(O::Unverified, "self: it spoke before, and does not now")
        }
        (Kernel::New, _, Own::Old) => {
            Decision::new(O::Unverified, "self: it still speaks of the old process")
        }
        (Kernel::New, Manager::Up, Own::Serves | Own::None)
        | (Kernel::New, Manager::None, Own::Serves) => Decision::new(O::Restarted, ""),
        (Kernel::New, Manager::None, Own::None) => {
            Decision::new(O::Unverified, "one vantage: only the kernel saw it")
        }
    }
}

/// Judges an observed restart; `systemctl` is the command that reaches its manager, for who reads the row.
#[must_use]
pub fn verify(
    before: &Runtime,
    seen: &Observation,
    code_version: Option<&str>,
    systemctl: &str,
) -> Decision {
    let (kernel, manager, own) = classify(before, seen, code_version);
    let detail = detail(seen);
    let decision = judge(&kernel, &manager, &own, &detail);
    if decision.outcome.is_clean() || decision.remedy.is_some() {
        return decision;
    }
    let unit = seen.unit_after.as_ref().unwrap_or(&seen.unit_before);
    if unit.name.is_empty() {
        return decision;
    }
    let status = format!("{systemctl} status {}", unit.name);
    let remedy = match decision.outcome {
        RuntimeOutcome::Down => format!("{status}, then {systemctl} start {}", unit.name),
        _ => status,
    };
    decision.with_remedy(remedy)
}

/// What each vantage says.
#[must_use]
pub fn classify(
    before: &Runtime,
    seen: &Observation,
    code_version: Option<&str>,
) -> (Kernel, Manager, Own) {
    let kernel = classify_kernel(before, seen);
    let successor = seen.successors.first();
    (
        kernel,
        classify_manager(before, seen),
        classify_own(before, seen.self_after.as_ref(), successor, code_version),
    )
}

fn classify_kernel(before: &Runtime, seen: &Observation) -> Kernel {
    match seen.old_alive {
        None => return Kernel::Unreadable("the old process could not be looked at".into()),
        Some(true) => return Kernel::Old,
        // A child of the old life that was left behind is the old life, too.
        Some(false) if !seen.survivors.is_empty() => return Kernel::Old,
        Some(false) => {}
    }
    match seen.successors.first() {
        None => Kernel::Gone,
        Some(successor) if successor.uid != before.uid => Kernel::Wrong(format!(
            "process {} belongs to uid {}",
            successor.incarnation.pid, successor.uid
        )),
        Some(_) => Kernel::New,
    }
}

fn classify_manager(before: &Runtime, seen: &Observation) -> Manager {
    let by_launchd = matches!(before.supervisor, Supervisor::Launchd { .. });
    if before.unit.is_none() && !by_launchd {
        return Manager::None;
    }
    let Some(after) = &seen.unit_after else {
        return Manager::Mute(
            seen.unit_error
                .clone()
                .unwrap_or_else(|| "it did not answer".into()),
        );
    };
    if seen.flapping {
        return Manager::Flapping;
    }
    // When the restart was begun, somebody else's may have been over: what was planned is what counts.
    let planned = before.unit.as_ref().map(|unit| &unit.invocation_id);
    let old = planned
        .filter(|id| !id.is_empty())
        .unwrap_or(&seen.unit_before.invocation_id);
    match after.active_state.as_str() {
        "active" | "reloading" if after.invocation_id == *old => Manager::Same,
        "active" | "reloading" => Manager::Up,
        "inactive" | "failed" => Manager::Down,
        _ => Manager::Waiting,
    }
}

fn classify_own(
    before: &Runtime,
    after: Option<&SelfReport>,
    successor: Option<&Process>,
    code_version: Option<&str>,
) -> Own {
    let is = |report: &SelfReport, process: &Process| {
        report.pid == process.incarnation.pid
            && report.start_ticks == process.incarnation.start_ticks
    };
    let spoke_before = matches!((&before.self_report, &before.process), (Some(report), Some(process)) if is(report, process));
    let Some(report) = after else {
        return if spoke_before { Own::Silent } else { Own::None };
    };
    let Some(successor) = successor.filter(|process| is(report, process)) else {
        let speaks_of_old = before
            .process
            .as_ref()
            .is_some_and(|process| is(report, process));
        return match (spoke_before, speaks_of_old) {
            (true, true) => Own::Old,
            (true, false) => Own::Silent,
            (false, _) => Own::None,
        };
    };
    let Some(state) = report.state.clone() else {
        // Its lock or its pid file is all there is. The one before may have said no more than that.
        let said_more = before
            .self_report
            .as_ref()
            .is_some_and(|report| report.state.is_some());
        return if spoke_before && said_more {
            Own::Silent
        } else {
            Own::None
        };
    };
    match report.phase {
        Phase::Failed => return Own::Bad(format!("it says {state}")),
        Phase::Running => {}
        // Before, it had said nothing; that it says little now takes nothing away.
        _ if !spoke_before => return Own::None,
        _ => return Own::Bad(format!("it says {state}, and not that it serves")),
    }
    if let (Some(says), Some(installed)) = (report.code_version.as_deref(), code_version)
        && says != installed
    {
        return Own::Bad(format!("it runs {says}, and {installed} is installed"));
    }
    let _ = successor;
    Own::Serves
}

fn detail(seen: &Observation) -> Detail {
    let unit = seen.unit_after.as_ref().unwrap_or(&seen.unit_before);
    Detail {
        refused: match &seen.call {
            Call::Refused { error, message } => Some(refusal(error, message, unit)),
            _ => None,
        },
        left_alone: match &seen.call {
            Call::Refused { error, message } if error == LEFT_ALONE => {
                Some(format!("respawn: {message}"))
            }
            Call::Refused { error, message } if error == FROZEN => {
                Some(format!("frozen: {message}"))
            }
            _ => None,
        },
        job_result: seen.job_result.clone(),
        stopped_by_other: seen.stop_seen,
        ending: Ending(unit).to_string(),
        stop_budget: budget(seen.unit_before.timeout_stop_usec),
        slot_empty: None,
    }
}

/// Names what a service manager refused, in the words of the error that it gave.
fn refusal(error: &str, message: &str, unit: &Unit) -> String {
    let short = error.rsplit('.').next().unwrap_or(error);
    let what = match short {
        "AccessDenied" | "InteractiveAuthorizationRequired" => "denied",
        "NoSuchUnit" | "LoadFailed" => "not-found",
        "OnlyByDependency" => "only-by-dependency",
        "TransactionIsDestructive" => "destructive",
        "UnitMasked" => "masked",
        "BadUnitSetting" => "bad-setting",
        _ => "refused",
    };
    format!("{what}: {} of {}", message.trim_end_matches('.'), unit.name)
}

fn budget(usec: u64) -> String {
    if usec == u64::MAX {
        "for ever".into()
    } else {
        format!("{} s", usec / 1_000_000)
    }
}

/// How a unit stands, for a person.
struct Ending<'a>(&'a Unit);

impl fmt::Display for Ending<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = self.0;
        write!(
            f,
            "{}/{}, result {}, last status {}",
            unit.active_state, unit.sub_state, unit.result, unit.exec_main_status
        )?;
        if unit.active_state == "inactive"
            && !unit.condition_result
            && unit.condition_timestamp_monotonic > 0
        {
            f.write_str(", a condition does not hold")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
