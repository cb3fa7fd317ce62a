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
        Some(process) if process.incarnation.same_life(&before.incarnation) => decision,
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
mod tests {
    use super::*;
    use crate::fleet::{Process, sample};
    use crate::restart::{Call, Fields};
    use RuntimeOutcome as O;

    fn planned(runtime: Runtime, step: Step) -> PlannedRuntime {
        PlannedRuntime {
            runtime,
            step,
            age: crate::plan::decide::Age::Fresh,
            mechanism: None,
            chosen: String::new(),
            fields: Fields::default(),
            instruction: "restart it".into(),
        }
    }

    fn settled(outcome: O) -> Step {
        Step::Settled(Decision::new(outcome, ""))
    }

    fn plan(runtimes: Vec<PlannedRuntime>) -> Plan {
        Plan {
            homes: Vec::new(),
            runtimes,
        }
    }

    fn untouched(outcome: O) -> Outcome {
        Outcome {
            decision: Decision::new(outcome, "as planned"),
            seen: None,
        }
    }

    fn restarted(successor: Option<Process>) -> Outcome {
        let seen = Observation {
            call: Call::Nothing { why: String::new() },
            successors: successor.into_iter().collect(),
            ..Observation::default()
        };
        Outcome {
            decision: Decision::new(O::Restarted, ""),
            seen: Some(Box::new(seen)),
        }
    }

    fn outcomes(first: &Plan, done: &[Outcome], second: &Plan) -> Vec<(O, String)> {
        reconcile(first, done, second)
            .into_iter()
            .map(|row| (row.decision.outcome, row.decision.reason))
            .collect()
    }

    #[test]
    fn a_restart_is_restarted_only_while_its_successor_runs() {
        let first = plan(vec![planned(sample::runtime(7), Step::Act("old".into()))]);
        let done = [restarted(Some(sample::process(8)))];
        let still = plan(vec![planned(sample::runtime(8), settled(O::Current))]);
        assert_eq!(outcomes(&first, &done, &still)[0].0, O::Restarted);
        let another = plan(vec![planned(sample::runtime(9), settled(O::Current))]);
        assert_eq!(outcomes(&first, &done, &another)[0].0, O::Failed);
        let gone = plan(vec![planned(sample::slot(|_| {}), settled(O::Stopped))]);
        assert_eq!(outcomes(&first, &done, &gone)[0].0, O::Down);
        assert_eq!(outcomes(&first, &done, &plan(Vec::new()))[0].0, O::Down);
        let old_again = plan(vec![planned(
            sample::runtime(8),
            Step::Act("its code changed".into()),
        )]);
        assert_eq!(outcomes(&first, &done, &old_again)[0].0, O::Unaccounted);
        let mut elsewhere = sample::runtime(8);
        elsewhere.homes = vec!["another".into()];
        let elsewhere = plan(vec![planned(elsewhere, settled(O::Current))]);
        assert_eq!(outcomes(&first, &done, &elsewhere)[0].0, O::Failed);
    }

    #[test]
    fn what_runs_in_its_unit_and_is_of_another_kind_or_home_is_a_wrong_successor() {
        let first = plan(vec![planned(sample::runtime(7), Step::Act("old".into()))]);
        let mut done = restarted(None);
        done.decision = Decision::new(O::Unverified, "no process of this kind runs in its unit");
        let mut other = sample::runtime(8);
        (other.kind, other.id) = ("serve".into(), "user-1001/agent.service/serve".into());
        let second = plan(vec![planned(other, settled(O::Current))]);
        let rows = outcomes(&first, &[done], &second);
        assert_eq!(
            rows[0],
            (O::Failed, "wrong successor: it is a serve".into())
        );
        assert_eq!(rows[1].0, O::Current, "and a row of its own");

        let mut done = restarted(Some(sample::process(8)));
        done.decision = Decision::new(O::Unverified, "self: it still speaks of the old process");
        let mut elsewhere = sample::runtime(8);
        elsewhere.homes = vec!["another".into()];
        let second = plan(vec![planned(elsewhere, settled(O::Current))]);
        let rows = outcomes(&first, &[done], &second);
        assert_eq!(
            rows[0],
            (O::Failed, "wrong successor: it serves other homes".into())
        );
    }

    #[test]
    fn what_was_not_touched_keeps_its_outcome_while_it_lives() {
        for outcome in [O::Current, O::Manual, O::Skipped, O::Deferred] {
            let first = plan(vec![planned(sample::runtime(7), settled(outcome))]);
            let second = plan(vec![planned(sample::runtime(7), settled(O::Current))]);
            assert_eq!(
                outcomes(&first, &[untouched(outcome)], &second)[0].0,
                outcome
            );
        }
    }

    #[test]
    fn a_sibling_that_was_lost_while_others_were_restarted_is_collateral() {
        let mut sibling = sample::runtime(20);
        sibling.id = "user-1001/sibling.service".into();
        let first = plan(vec![
            planned(sample::runtime(7), Step::Act("old".into())),
            planned(sibling, settled(O::Current)),
        ]);
        let done = [restarted(Some(sample::process(8))), untouched(O::Current)];
        let second = plan(vec![planned(sample::runtime(8), settled(O::Current))]);
        let rows = outcomes(&first, &done, &second);
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[1].0, O::Failed);
        assert!(rows[1].1.starts_with("collateral"));
    }

    #[test]
    fn one_that_its_operator_stopped_while_nothing_was_restarted_is_stopped() {
        let first = plan(vec![planned(sample::runtime(7), settled(O::Current))]);
        let second = plan(vec![planned(sample::slot(|_| {}), settled(O::Stopped))]);
        assert_eq!(
            outcomes(&first, &[untouched(O::Current)], &second)[0].0,
            O::Stopped
        );
    }

    #[test]
    fn what_was_respawned_is_current_if_it_is_fresh_and_unaccounted_if_not() {
        let first = plan(vec![planned(sample::runtime(7), settled(O::Current))]);
        let fresh = plan(vec![planned(sample::runtime(8), settled(O::Current))]);
        assert_eq!(
            outcomes(&first, &[untouched(O::Current)], &fresh)[0],
            (O::Current, "respawned".into())
        );
        let old = plan(vec![planned(
            sample::runtime(8),
            Step::Act("its code changed".into()),
        )]);
        assert_eq!(
            outcomes(&first, &[untouched(O::Current)], &old)[0].0,
            O::Unaccounted
        );
    }

    #[test]
    fn what_appeared_is_a_row_and_is_fine_only_if_it_is_fresh() {
        let first = plan(Vec::new());
        let fresh = plan(vec![planned(sample::runtime(8), settled(O::Current))]);
        assert_eq!(
            outcomes(&first, &[], &fresh),
            [(O::Current, "appeared".into())]
        );
        let old = plan(vec![planned(
            sample::runtime(8),
            Step::Act("its code changed".into()),
        )]);
        assert_eq!(outcomes(&first, &[], &old)[0].0, O::Unaccounted);
    }

    #[test]
    fn every_planned_row_comes_out_in_its_order() {
        let runtimes: Vec<Runtime> = (1..=5)
            .map(|pid| Runtime {
                id: format!("slot-{pid}"),
                ..sample::runtime(pid)
            })
            .collect();
        let first = plan(
            runtimes
                .iter()
                .cloned()
                .map(|runtime| planned(runtime, settled(O::Current)))
                .collect(),
        );
        let done: Vec<Outcome> = (0..5).map(|_| untouched(O::Current)).collect();
        let second = plan(
            runtimes
                .into_iter()
                .rev()
                .map(|runtime| planned(runtime, settled(O::Current)))
                .collect(),
        );
        let rows = reconcile(&first, &done, &second);
        let ids: Vec<&str> = rows
            .iter()
            .map(|row| row.planned.runtime.id.as_str())
            .collect();
        assert_eq!(ids, ["slot-1", "slot-2", "slot-3", "slot-4", "slot-5"]);
        assert!(
            rows.iter()
                .all(|row| !row.appeared && row.decision.outcome == O::Current)
        );
    }
}
