//! The second look, over plans and outcomes made by hand.

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
fn what_was_current_and_is_old_at_the_second_look_is_not_current() {
    let first = plan(vec![planned(sample::runtime(7), settled(O::Current))]);
    let now = |step| plan(vec![planned(sample::runtime(7), step)]);
    for (step, expected) in [
        (settled(O::Current), O::Current),
        (settled(O::Manual), O::Manual),
        (settled(O::Unverified), O::Unverified),
        (Step::Act("its code changed".into()), O::Unaccounted),
    ] {
        let rows = outcomes(&first, &[untouched(O::Current)], &now(step));
        assert_eq!(rows[0].0, expected);
    }
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
