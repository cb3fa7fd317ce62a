//! From what was planned and done to the rows of a receipt. Strings that come from outside are
//! screened here, once, when they are written.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{
    ChangeRow, CollectorRow, EvidenceRow, FileRow, HomeRow, InstallRow, Life, RuntimeRow, StepRow,
};
use crate::fleet::{
    Collector, CollectorOutcome, Install, Process, Runtime, SelfReport, Supervisor, Unit,
};
use crate::plan::decide::{Age, Decision, RuntimeOutcome, Step};
use crate::plan::{PlannedHome, PlannedRuntime};
use crate::restart::{Call, Observation};
use crate::screen;
use crate::world::render_time;

/// The row of an install.
#[must_use]
pub fn install(install: &Install) -> InstallRow {
    InstallRow {
        id: install.id.clone(),
        path: install.path.clone(),
        kind: word_of(&install.kind),
        version: install.version.as_deref().map(screen::text),
        config_version: install.config_version,
        changed_at: install
            .changed
            .as_ref()
            .map(|changed| render_time(Duration::from_nanos(changed.at_nanos))),
    }
}

/// The row of a source of evidence.
#[must_use]
pub fn collector(collector: &Collector) -> CollectorRow {
    CollectorRow {
        name: collector.name.clone(),
        principal: collector.principal.clone(),
        found: collector.found,
        outcome: match collector.outcome {
            CollectorOutcome::Ok => "ok",
            CollectorOutcome::Skipped => "skipped",
            CollectorOutcome::Unverified => "unverified",
        }
        .into(),
        reason: screen::text(&collector.reason),
    }
}

/// The row of a planned home. What a run would migrate is not `done`; anything else already is what
/// it will be.
#[must_use]
pub fn home(planned: &PlannedHome, user: &str) -> HomeRow {
    let evaluation = &planned.evaluation;
    let pending = evaluation.outcome == crate::migrate::HomeOutcome::Migrated;
    HomeRow {
        id: planned.home.id.clone(),
        profile: planned.home.profile.clone(),
        path: planned.home.path.clone(),
        uid: planned.home.uid,
        user: user.to_owned(),
        install: planned.target.install.clone(),
        from: evaluation.from.clone(),
        to: evaluation.to.or(planned.target.expected),
        outcome: evaluation.outcome,
        done: !pending,
        reason: screen::text(&evaluation.reason),
        remedy: home_remedy(planned),
        accepted: None,
        steps: evaluation
            .steps
            .iter()
            .map(|step| StepRow {
                id: step.id.clone(),
                checksum: step.checksum.clone(),
                result: word_of(&step.result),
            })
            .collect(),
        failures: evaluation
            .failures
            .iter()
            .map(|failure| screen::text(failure))
            .collect(),
        files: evaluation
            .files
            .iter()
            .map(|file| FileRow {
                path: file.path.clone(),
                sha256_before: file.sha256_before.clone(),
                sha256_after: Some(file.sha256_after.clone()),
                snapshot: false,
            })
            .collect(),
        changes: evaluation
            .changes
            .iter()
            .map(|change| ChangeRow {
                step: change.step.clone(),
                path: screen::text(&change.path),
                before: change
                    .before
                    .as_ref()
                    .map(|value| screen::json(&change.path, value)),
                after: change
                    .after
                    .as_ref()
                    .map(|value| screen::json(&change.path, value)),
            })
            .collect(),
    }
}

/// What a person can do about a home that is not fine.
fn home_remedy(planned: &PlannedHome) -> Option<String> {
    use crate::migrate::HomeOutcome as O;
    let path = planned.home.path.display();
    let remedy = match planned.evaluation.outcome {
        O::Invalid => format!("mend {path}, then run update again"),
        O::NewerThanCode => "install the release that this configuration was written for".into(),
        O::BelowFloor => format!(
            "the application no longer reads so old a file: set up {path} anew, or raise it by hand"
        ),
        O::BeyondCatalog => {
            "install a release of update that knows this version, or let the application's own migrator do it: --native-migrate"
                .into()
        }
        O::NoInstall => {
            "name the version with --to, or the install's place in the configuration".into()
        }
        O::ReadOnly => format!("make {path} writable for its owner, then run update again"),
        O::Conflict if planned.home.foreign_state.is_some() => {
            "run update where its runtime runs, or leave the home to that with [[policy.skip]]"
                .into()
        }
        O::Conflict => "run update again when nothing else works on it".into(),
        O::Failed => format!("mend what is named in {path}, then run update again"),
        O::Migrated | O::Current | O::Unconfigured | O::Skipped => return None,
    };
    Some(remedy)
}

/// The row of a runtime that was only planned.
#[must_use]
pub fn planned_runtime(
    planned: &PlannedRuntime,
    user: &str,
    profiles: &BTreeMap<&str, &str>,
) -> RuntimeRow {
    let decision = match &planned.step {
        Step::Settled(decision) | Step::Wait(decision) => decision.clone(),
        Step::Act(why) => Decision::new(RuntimeOutcome::Unaccounted, why.clone()),
        Step::NoRow => Decision::new(RuntimeOutcome::Unaccounted, ""),
    };
    runtime(planned, &decision, None, None, (user, profiles))
}

/// The row of a runtime at the end of a run.
#[must_use]
pub fn runtime(
    planned: &PlannedRuntime,
    decision: &Decision,
    seen: Option<&Observation>,
    now: Option<&Runtime>,
    (user, profiles): (&str, &BTreeMap<&str, &str>),
) -> RuntimeRow {
    let runtime = &planned.runtime;
    let before = runtime
        .process
        .as_ref()
        .map(|process| life(process, runtime.unit.as_ref(), runtime.self_report.as_ref()));
    let acts = matches!(planned.step, Step::Act(_));
    let (stale, stale_reason) = match &planned.age {
        // Nothing runs: there is nothing that could be old.
        _ if runtime.process.is_none() => (None, ""),
        Age::Fresh => (Some(false), ""),
        Age::Stale(why) => (Some(true), why.as_str()),
        Age::Unknown(why) => (None, why.as_str()),
    };
    RuntimeRow {
        id: runtime.id.clone(),
        kind: runtime.kind.clone(),
        profiles: runtime
            .homes
            .iter()
            .filter_map(|home| {
                profiles
                    .get(home.as_str())
                    .map(|profile| (*profile).to_owned())
            })
            .collect(),
        homes: runtime.homes.clone(),
        uid: runtime.uid,
        user: user.to_owned(),
        install: runtime.install.clone(),
        stale,
        stale_reason: screen::text(stale_reason),
        supervisor: screen::text(&supervisor(&runtime.supervisor)),
        unit: slot(runtime),
        mechanism: planned.mechanism.as_ref().map(|row| row.id.clone()),
        action: planned
            .mechanism
            .as_ref()
            .filter(|_| acts)
            .map(|row| word_of(&row.action)),
        job: seen.and_then(|seen| match &seen.call {
            Call::Queued { job } | Call::Adopted { job } => Some(format!(
                "{job} {}",
                seen.job_result.as_deref().unwrap_or("unfinished")
            ))
            .map(|text| screen::text(&text)),
            Call::Signalled { signal } => Some(format!("signal {}", word_of(signal))),
            Call::Ran { program, status } => Some(match status {
                Some(status) => format!("{program} ended with {status}"),
                None => format!("{program} did not end by itself"),
            }),
            Call::Refused { .. } | Call::Nothing { .. } => None,
        }),
        outcome: decision.outcome,
        reason: screen::text(&decision.reason),
        remedy: decision.remedy.as_deref().map(screen::text),
        accepted: None,
        began_at: seen
            .filter(|seen| seen.began_at_nanos != 0)
            .map(|seen| render_time(Duration::from_nanos(seen.began_at_nanos))),
        drained_ms: seen.and_then(|seen| seen.drain.as_ref().map(|drain| drain.waited_ms)),
        settled_ms: seen.map_or(0, |seen| seen.settled_ms),
        waited_ms: seen.map_or(0, |seen| seen.waited_ms),
        before,
        after: now.and_then(|now| {
            now.process
                .as_ref()
                .map(|process| life(process, now.unit.as_ref(), now.self_report.as_ref()))
        }),
        evidence: evidence(now.unwrap_or(runtime), seen),
    }
}

fn life(process: &Process, unit: Option<&Unit>, report: Option<&SelfReport>) -> Life {
    Life {
        incarnation: process.incarnation.clone(),
        invocation_id: unit
            .map(|unit| unit.invocation_id.clone())
            .filter(|id| !id.is_empty()),
        code_version: report.and_then(|report| report.code_version.as_deref().map(screen::text)),
        started_at: render_time(Duration::from_nanos(process.started_at_nanos)),
    }
}

fn supervisor(supervisor: &Supervisor) -> String {
    match supervisor {
        Supervisor::Systemd {
            scope: crate::fleet::Manager::System,
            ..
        } => "systemd (system)".into(),
        Supervisor::Systemd {
            scope: crate::fleet::Manager::User(uid),
            ..
        } => format!("systemd (user {uid})"),
        Supervisor::Scope { unit } => format!("a person's session ({unit})"),
        Supervisor::Launchd { domain, .. } => format!("launchd ({domain})"),
        Supervisor::S6 { .. } => "s6".into(),
        Supervisor::Desktop { parent } => format!("desktop ({parent})"),
        Supervisor::External { program, pid } => format!("{program} (pid {pid})"),
        Supervisor::Nobody => "nobody".into(),
        Supervisor::Unknown { seen } => seen.clone(),
    }
}

fn slot(runtime: &Runtime) -> Option<String> {
    match &runtime.supervisor {
        Supervisor::Systemd { unit, .. } => Some(unit.clone()),
        Supervisor::Launchd { label, .. } => Some(label.clone()),
        Supervisor::S6 { slot } => Some(slot.display().to_string()),
        _ => runtime.unit.as_ref().map(|unit| unit.name.clone()),
    }
}

fn evidence(runtime: &Runtime, seen: Option<&Observation>) -> Vec<EvidenceRow> {
    let mut rows = Vec::new();
    let mut add = |vantage: &str, principal: String, observed: String| {
        rows.push(EvidenceRow {
            vantage: vantage.into(),
            principal,
            observed: screen::text(&observed),
        });
    };
    match &runtime.process {
        Some(process) => add(
            "kernel",
            "proc".into(),
            format!(
                "pid {}, start {}, {}",
                process.incarnation.pid, process.incarnation.start_ticks, runtime.home_evidence
            ),
        ),
        None => add("kernel", "proc".into(), "no process".into()),
    }
    if let Some(unit) = &runtime.unit {
        let by = match unit.manager {
            Some(crate::fleet::Manager::User(uid)) => format!("manager of uid {uid}"),
            _ => "system manager".into(),
        };
        add(
            "supervisor",
            by,
            format!(
                "{}/{}, result {}, main pid {}",
                unit.active_state, unit.sub_state, unit.result, unit.main_pid
            ),
        );
    }
    if let Some(report) = &runtime.self_report {
        add(
            "self",
            format!("uid {}", runtime.uid),
            format!(
                "pid {}, start {}, {}",
                report.pid,
                report.start_ticks,
                report.state.as_deref().unwrap_or("no state")
            ),
        );
    }
    if let Some(seen) = seen {
        if let Some(drain) = &seen.drain {
            let ended = if drain.exited { "ended" } else { "did not end" };
            add(
                "supervisor",
                "update".into(),
                match &drain.verb {
                    Some(verb) => format!(
                        "asked on its control socket to {verb}: it {ended} after {} ms",
                        drain.waited_ms
                    ),
                    None => format!(
                        "asked to finish by signal {}: it {ended} after {} ms",
                        word_of(&drain.signal),
                        drain.waited_ms
                    ),
                },
            );
        }
        for job in &seen.foreign_jobs {
            add(
                "supervisor",
                "others".into(),
                format!(
                    "a job of somebody else: {} {}",
                    job.job_type,
                    job.result.as_deref().unwrap_or("unfinished")
                ),
            );
        }
        for note in &seen.notes {
            add("supervisor", "update".into(), note.clone());
        }
    }
    rows
}

fn word_of(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}
