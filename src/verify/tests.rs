//! The table over its whole product.

use super::*;
use crate::fleet::{Unit, sample};
use RuntimeOutcome as O;

fn detail() -> Detail {
    Detail {
        ending: "failed/failed".into(),
        ..Detail::default()
    }
}

fn kernels() -> Vec<Kernel> {
    vec![
        Kernel::Unreadable("x".into()),
        Kernel::Old,
        Kernel::Gone,
        Kernel::New,
        Kernel::Wrong("uid".into()),
    ]
}

fn managers() -> Vec<Manager> {
    vec![
        Manager::Up,
        Manager::Flapping,
        Manager::Down,
        Manager::Waiting,
        Manager::Same,
        Manager::Mute("x".into()),
        Manager::None,
    ]
}

fn owns() -> Vec<Own> {
    vec![
        Own::Serves,
        Own::Silent,
        Own::Old,
        Own::Bad("degraded".into()),
        Own::None,
    ]
}

/// Every line of the table, in its order.
#[test]
fn each_line_of_the_table_gives_its_outcome() {
    let lines: Vec<(Kernel, Manager, Own, O, &str)> = vec![
        (
            Kernel::Unreadable("x".into()),
            Manager::Up,
            Own::Serves,
            O::Unverified,
            "kernel",
        ),
        (
            Kernel::Old,
            Manager::Same,
            Own::Serves,
            O::Failed,
            "timeout",
        ),
        (
            Kernel::Old,
            Manager::Up,
            Own::Serves,
            O::Failed,
            "old-survives",
        ),
        (Kernel::Old, Manager::Down, Own::None, O::Failed, "timeout"),
        (
            Kernel::Old,
            Manager::Waiting,
            Own::None,
            O::Failed,
            "timeout",
        ),
        (
            Kernel::Gone,
            Manager::Down,
            Own::None,
            O::Down,
            "failed/failed",
        ),
        (
            Kernel::Gone,
            Manager::Waiting,
            Own::None,
            O::Down,
            "not up in time",
        ),
        (
            Kernel::Gone,
            Manager::Up,
            Own::None,
            O::Unverified,
            "no process of this kind",
        ),
        (
            Kernel::Gone,
            Manager::Same,
            Own::None,
            O::Unverified,
            "no process of this kind",
        ),
        (
            Kernel::Gone,
            Manager::Mute("x".into()),
            Own::None,
            O::Unverified,
            "manager",
        ),
        (
            Kernel::Gone,
            Manager::None,
            Own::None,
            O::Down,
            "nothing runs",
        ),
        (
            Kernel::Gone,
            Manager::Flapping,
            Own::None,
            O::Failed,
            "crash-loop",
        ),
        (
            Kernel::New,
            Manager::Flapping,
            Own::Serves,
            O::Failed,
            "crash-loop",
        ),
        (
            Kernel::Wrong("uid".into()),
            Manager::Up,
            Own::Serves,
            O::Failed,
            "wrong successor",
        ),
        (
            Kernel::New,
            Manager::Mute("x".into()),
            Own::Serves,
            O::Unverified,
            "manager",
        ),
        (
            Kernel::New,
            Manager::Same,
            Own::Serves,
            O::Unverified,
            "respawned inside",
        ),
        (
            Kernel::New,
            Manager::Down,
            Own::Serves,
            O::Unverified,
            "vantages disagree",
        ),
        (
            Kernel::New,
            Manager::Waiting,
            Own::Serves,
            O::Unverified,
            "vantages disagree",
        ),
        (
            Kernel::New,
            Manager::Up,
            Own::Bad("degraded".into()),
            O::Failed,
            "self: degraded",
        ),
        (
            Kernel::New,
            Manager::None,
            Own::Bad("degraded".into()),
            O::Failed,
            "self: degraded",
        ),
        (Kernel::New, Manager::Up, Own::Silent, O::Unverified, "self"),
        (Kernel::New, Manager::None, Own::Old, O::Unverified, "self"),
        (Kernel::New, Manager::Up, Own::Serves, O::Restarted, ""),
        (Kernel::New, Manager::Up, Own::None, O::Restarted, ""),
        (Kernel::New, Manager::None, Own::Serves, O::Restarted, ""),
        (
            Kernel::New,
            Manager::None,
            Own::None,
            O::Unverified,
            "one vantage",
        ),
    ];
    for (kernel, manager, own, outcome, reason) in lines {
        let decision = judge(&kernel, &manager, &own, &detail());
        assert_eq!(
            decision.outcome, outcome,
            "{kernel:?} {manager:?} {own:?}: {decision:?}"
        );
        assert!(
            decision.reason.starts_with(reason),
            "{kernel:?} {manager:?} {own:?}: {decision:?}"
        );
    }
}

/// Over the whole product: `restarted` only with a new process and a second vantage that saw it.
#[test]
fn no_combination_is_restarted_without_a_new_process_that_two_vantages_saw() {
    let mut restarted = 0;
    for kernel in kernels() {
        for manager in managers() {
            for own in owns() {
                for refused in [None, Some("denied".to_owned())] {
                    for job_result in [None, Some("done".to_owned()), Some("canceled".to_owned())] {
                        for stopped_by_other in [false, true] {
                            let detail = Detail {
                                refused: refused.clone(),
                                job_result: job_result.clone(),
                                stopped_by_other,
                                ..detail()
                            };
                            let decision = judge(&kernel, &manager, &own, &detail);
                            match decision.outcome {
                                O::Restarted => {
                                    restarted += 1;
                                    assert_eq!(kernel, Kernel::New);
                                    assert!(manager == Manager::Up || own == Own::Serves);
                                    assert!(matches!(manager, Manager::Up | Manager::None));
                                    assert!(matches!(own, Own::Serves | Own::None));
                                }
                                O::Stopped => {
                                    assert_eq!((&kernel, &manager), (&Kernel::Gone, &Manager::Down))
                                }
                                O::Failed | O::Down | O::Unverified => {
                                    assert!(!decision.reason.is_empty())
                                }
                                other => panic!("{other:?} is not for an acted row"),
                            }
                        }
                    }
                }
            }
        }
    }
    assert_eq!(
        restarted,
        3 * 12,
        "three lines of the table, whatever the details"
    );
}

#[test]
fn an_operators_stop_wins_over_down() {
    for detail in [
        Detail {
            stopped_by_other: true,
            ..detail()
        },
        Detail {
            job_result: Some("canceled".into()),
            ..detail()
        },
    ] {
        assert_eq!(
            judge(&Kernel::Gone, &Manager::Down, &Own::Old, &detail).outcome,
            O::Stopped
        );
    }
}

#[test]
fn a_refused_call_says_why() {
    let detail = Detail {
        refused: Some("denied: x".into()),
        ..detail()
    };
    let decision = judge(&Kernel::Old, &Manager::Same, &Own::Serves, &detail);
    assert_eq!(
        (decision.outcome, decision.reason.as_str()),
        (O::Failed, "denied: x")
    );
}

#[test]
fn a_lock_alone_is_silence_after_one_that_said_more() {
    let successor = sample::process(8);
    let mut lock_only = sample::report(8);
    (lock_only.state, lock_only.phase) = (None, Phase::Unknown);
    let own = |before: &Runtime| classify_own(before, Some(&lock_only), Some(&successor), None);
    let mut before = sample::runtime(7);
    assert_eq!(own(&before), Own::Silent);
    if let Some(report) = &mut before.self_report {
        (report.state, report.phase) = (None, Phase::Unknown);
    }
    assert_eq!(own(&before), Own::None);
}

/// Somebody else's restart may be over before ours looks at the unit for the first time.
#[test]
fn an_invocation_is_new_if_it_was_not_planned() {
    let before = sample::runtime(7);
    let planned = before.unit.clone().expect("it has a unit");
    let new = Unit {
        invocation_id: "new".into(),
        ..planned.clone()
    };
    for (unit, is_new) in [(&planned, false), (&new, true)] {
        let seen = Observation {
            unit_before: unit.clone(),
            unit_after: Some(unit.clone()),
            ..Observation::default()
        };
        let found = classify_manager(&before, &seen);
        assert_eq!(matches!(found, Manager::Up), is_new, "{found:?}");
        assert_eq!(matches!(found, Manager::Same), !is_new, "{found:?}");
    }
}
