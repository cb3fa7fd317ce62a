//! The second look: what was planned, what was done, and what runs now, made one list.
//!
//! Total: every planned row comes out again, in its order, and whatever runs now without having been
//! planned is a row behind them. A row that was proved fine during the run is proved again here: what
//! came up and fell over since is not `restarted`.

use crate::fleet::{Manager, Runtime, Supervisor};
use crate::plan::decide::{Decision, RuntimeOutcome, Step};
use crate::plan::{Plan, PlannedRuntime};
use crate::restart::Observation;

/// What was done about one planned runtime.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// How it ended, as far as is known.
    pub decision: Decision,
    /// What was seen, if it was acted on.
    pub seen: Option<Box<Observation>>,
}

/// A row of the end: planned or appeared.
#[derive(Debug, Clone)]
pub struct Settled<'a> {
    /// The runtime as it was planned; for one that appeared, as it is.
    pub planned: &'a PlannedRuntime,
    /// How it ended.
    pub decision: Decision,
    /// What was seen, if it was acted on.
    pub seen: Option<&'a Observation>,
    /// What runs now in its place.
    pub now: Option<&'a Runtime>,
    /// Whether it was not planned.
    pub appeared: bool,
}

/// Puts the plan, the outcomes (one for each of its runtimes, in its order) and the second look
/// together.
#[must_use]
pub fn reconcile<'a>(
    plan: &'a Plan,
    outcomes: &'a [Outcome],
    second: &'a Plan,
) -> Vec<Settled<'a>> {
    debug_assert_eq!(
        plan.runtimes.len(),
        outcomes.len(),
        "every planned row has an outcome"
    );
    let acted_on: Vec<Option<Manager>> = plan
        .runtimes
        .iter()
        .zip(outcomes)
        .filter(|(_, outcome)| outcome.seen.is_some())
        .map(|(planned, _)| manager_of(&planned.runtime))
        .collect();
    let mut claimed = vec![false; second.runtimes.len()];
    let mut rows: Vec<Settled<'a>> = Vec::with_capacity(plan.runtimes.len());
    for (planned, outcome) in plan.runtimes.iter().zip(outcomes) {
        let found = find(planned, outcome, second, &claimed);
        if let Some(index) = found {
            claimed[index] = true;
        }
        let now = found.map(|index| &second.runtimes[index]);
        let decision = match &outcome.seen {
            Some(seen) => {
                let in_its_place = now.or_else(|| in_the_place_of(planned, plan, second));
                after_action(planned, outcome, seen, in_its_place)
            }
            None => without_action(planned, outcome, now, &acted_on),
        };
        rows.push(Settled {
            planned,
            decision,
            seen: outcome.seen.as_deref(),
            now: now.map(|now| &now.runtime),
            appeared: false,
        });
    }
    for (now, _) in second
        .runtimes
        .iter()
        .zip(&claimed)
        .filter(|(_, claimed)| !**claimed)
    {
        rows.push(Settled {
            planned: now,
            decision: appeared(now),
            seen: None,
            now: Some(&now.runtime),
            appeared: true,
        });
    }
    rows
}

fn manager_of(runtime: &Runtime) -> Option<Manager> {
    match &runtime.supervisor {
        Supervisor::Systemd { scope, .. } => Some(*scope),
        _ => None,
    }
}

/// The same life, else the successor that was seen, else the same slot, else the same kind of
/// runtime of the same homes where it has no slot.
fn find(
    planned: &PlannedRuntime,
    outcome: &Outcome,
    second: &Plan,
    claimed: &[bool],
) -> Option<usize> {
    let free = |index: &usize| !claimed[*index];
    let position = |matches: &dyn Fn(&Runtime) -> bool| {
        (0..second.runtimes.len())
            .filter(free)
            .find(|index| matches(&second.runtimes[*index].runtime))
    };
    let lives = |runtime: &Runtime, life: &crate::fleet::Incarnation| {
        runtime
            .process
            .as_ref()
            .is_some_and(|process| process.incarnation.same_life(life))
    };
    let before = planned
        .runtime
        .process
        .as_ref()
        .map(|process| &process.incarnation);
    let successor = outcome
        .seen
        .as_ref()
        .and_then(|seen| seen.successors.first())
        .map(|process| &process.incarnation);
    successor
        .and_then(|life| position(&|runtime| lives(runtime, life)))
        .or_else(|| before.and_then(|life| position(&|runtime| lives(runtime, life))))
        .or_else(|| position(&|runtime| runtime.id == planned.runtime.id))
        .or_else(|| {
            position(&|runtime| {
                planned.runtime.unit.is_none()
                    && runtime.unit.is_none()
                    && runtime.kind == planned.runtime.kind
                    && runtime.uid == planned.runtime.uid
                    && !runtime.homes.is_empty()
                    && runtime.homes == planned.runtime.homes
            })
        })
}

fn after_action(
    planned: &PlannedRuntime,
    outcome: &Outcome,
    seen: &Observation,
    now: Option<&PlannedRuntime>,
) -> Decision {
    let decision = outcome.decision.clone();
    let failed =
        |outcome, reason: String| Decision::new(outcome, reason).with_remedy(&*planned.instruction);
    if decision.outcome == RuntimeOutcome::Unverified
        && let Some(wrong) = wrong_successor(planned, seen, now)
    {
        return failed(RuntimeOutcome::Failed, wrong);
    }
    if decision.outcome != RuntimeOutcome::Restarted {
        return decision;
    }
    let Some(now) = now.filter(|now| now.runtime.process.is_some()) else {
        return failed(
            RuntimeOutcome::Down,
            "it came up, and nothing runs now".into(),
        );
    };
    let still = match (seen.successors.first(), &now.runtime.process) {
        (Some(successor), Some(process)) => successor.incarnation.same_life(&process.incarnation),
        _ => false,
    };
    if !still {
        return failed(
            RuntimeOutcome::Failed,
            "crash-loop: it came up, and another one runs now".into(),
        );
    }
    if let Some(wrong) = wrong_successor(planned, seen, Some(now)) {
        return failed(RuntimeOutcome::Failed, wrong);
    }
    match &now.step {
        Step::Act(why) => failed(
            RuntimeOutcome::Unaccounted,
            format!("restarted, and old again: {why}"),
        ),
        Step::Settled(second) if second.outcome == RuntimeOutcome::Unverified => second.clone(),
        _ => decision,
    }
}

/// What runs in the unit of a runtime now, and did not run when that was planned.
fn in_the_place_of<'a>(
    planned: &PlannedRuntime,
    plan: &Plan,
    second: &'a Plan,
) -> Option<&'a PlannedRuntime> {
    manager_of(&planned.runtime)?;
    second.runtimes.iter().find(|now| {
        let Some(process) = &now.runtime.process else {
            return false;
        };
        let is_new = !plan.runtimes.iter().any(|old| {
            let life = old.runtime.process.as_ref();
            life.is_some_and(|life| life.incarnation.same_life(&process.incarnation))
        });
        is_new && now.runtime.supervisor == planned.runtime.supervisor
    })
}

/// Why what came after the old life is not its successor: it is that slot's new process, and serves
/// other homes or is of another kind.
fn wrong_successor(
    planned: &PlannedRuntime,
    seen: &Observation,
    now: Option<&PlannedRuntime>,
) -> Option<String> {
    let now = &now?.runtime;
    let process = now.process.as_ref()?;
    let before = planned.runtime.process.as_ref();
    if before.is_some_and(|before| before.incarnation.same_life(&process.incarnation)) {
        return None;
    }
    if now.kind != planned.runtime.kind {
        return Some(format!("wrong successor: it is a {}", now.kind));
    }
    let is_it = seen
        .successors
        .first()
        .is_some_and(|successor| successor.incarnation.same_life(&process.incarnation));
    let elsewhere = !now.homes.is_empty() && now.homes != planned.runtime.homes;
    (is_it && elsewhere).then(|| "wrong successor: it serves other homes".into())
}

fn without_action(
    planned: &PlannedRuntime,
    outcome: &Outcome,
    now: Option<&PlannedRuntime>,
    acted_on: &[Option<Manager>],
) -> Decision {
    let decision = outcome.decision.clone();
    let Some(before) = &planned.runtime.process else {
        return match now.filter(|now| now.runtime.process.is_some()) {
            Some(now) => appeared(now),
            None => decision,
        };
    };
    // Its own restart was under way when the run's time was over, or when it was told to end.
    let is_cut_short = matches!(planned.step, Step::Act(_))
        && decision.outcome == RuntimeOutcome::Unaccounted
        && ["deadline", "interrupted"]
            .iter()
            .any(|why| decision.reason.starts_with(why));
    if is_cut_short && now.is_none_or(|now| now.runtime.process.is_none()) {
        return decision;
    }
    let Some(now) = now else {
        return lost(planned, acted_on);
    };
    match &now.runtime.process {
        Some(process) if process.incarnation.same_life(&before.incarnation) => {
            still_so(decision, planned, now)
        }
        Some(_) => match &now.step {
            Step::Settled(second) if second.outcome == RuntimeOutcome::Current => {
                Decision::new(RuntimeOutcome::Current, "respawned")
            }
            Step::Settled(second) | Step::Wait(second) => second.clone(),
            Step::Act(why) => Decision::new(
                RuntimeOutcome::Unaccounted,
                format!("respawned, and old: {why}"),
            )
            .with_remedy(&*planned.instruction),
            Step::NoRow => lost(planned, acted_on),
        },
        None => match &now.step {
            // Somebody else stopped it; had we restarted something in its manager, it could be our doing.
            Step::Settled(second)
                if second.outcome == RuntimeOutcome::Stopped
                    && !acted_on.contains(&manager_of(&planned.runtime)) =>
            {
                second.clone()
            }
            _ => lost(planned, acted_on),
        },
    }
}

/// What lived on untouched is what the plan said, unless it was fine then and is not by now: somebody else
/// changed the code or a home meanwhile.
fn still_so(decision: Decision, planned: &PlannedRuntime, now: &PlannedRuntime) -> Decision {
    if decision.outcome != RuntimeOutcome::Current {
        return decision;
    }
    match &now.step {
        Step::Settled(second) if second.outcome == RuntimeOutcome::Current => decision,
        Step::Settled(second) | Step::Wait(second) => second.clone(),
        Step::Act(why) => Decision::new(
            RuntimeOutcome::Unaccounted,
            format!("it was current, and is old now: {why}"),
        )
        .with_remedy(&*planned.instruction),
        Step::NoRow => Decision::new(RuntimeOutcome::Unaccounted, "no row matches it any more"),
    }
}

fn lost(planned: &PlannedRuntime, acted_on: &[Option<Manager>]) -> Decision {
    // A process of a person that ended by itself took nothing of ours with it.
    if planned.runtime.unit.is_none() && acted_on.is_empty() {
        return Decision::new(RuntimeOutcome::Stopped, "it ended meanwhile");
    }
    Decision::new(
        RuntimeOutcome::Failed,
        "collateral: it ran before, and was lost while others were restarted",
    )
    .with_remedy(&*planned.instruction)
}

fn appeared(now: &PlannedRuntime) -> Decision {
    match &now.step {
        Step::Settled(decision) if decision.outcome == RuntimeOutcome::Current => {
            Decision::new(RuntimeOutcome::Current, "appeared")
        }
        Step::Settled(decision) | Step::Wait(decision) => decision.clone(),
        Step::Act(why) => Decision::new(
            RuntimeOutcome::Unaccounted,
            format!("appeared, and old: {why}"),
        )
        .with_remedy(&*now.instruction),
        Step::NoRow => Decision::new(RuntimeOutcome::Unaccounted, "appeared"),
    }
}

#[cfg(test)]
mod tests;
