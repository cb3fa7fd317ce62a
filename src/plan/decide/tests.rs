//! Every line of the decision table, by its number.

use super::*;
use crate::fleet::{Changed, sample};
use RuntimeOutcome as O;

fn facts(runtime: &Runtime) -> Facts<'_> {
    Facts {
        runtime,
        not_ours: None,
        age: Age::Stale("its code changed".into()),
        blocked_by: None,
        action: Some(Action::TryRestart),
        instruction: "systemctl --user restart agent.service".into(),
        systemctl: "systemctl --user".into(),
        reach: Reach::Answers,
        restart: RestartWhen::Stale,
        waited: true,
        elsewhere: None,
    }
}

fn outcome(facts: &Facts<'_>) -> (O, String) {
    match decide(facts) {
        Step::Settled(decision) | Step::Wait(decision) => (decision.outcome, decision.reason),
        other => panic!("not settled: {other:?}"),
    }
}

/// Asserts the outcome of a slot, and that its reason starts so.
fn slot_is(change: impl FnOnce(&mut Unit), expected: O, reason: &str) {
    let runtime = sample::slot(change);
    let (outcome, why) = outcome(&facts(&runtime));
    assert_eq!(outcome, expected, "{why}");
    assert!(why.starts_with(reason), "{why}");
}

fn failed(unit: &mut Unit) {
    unit.active_state = "failed".into();
    unit.sub_state = "failed".into();
    unit.result = "exit-code".into();
    unit.exec_main_status = 1;
    unit.inactive_exit_monotonic = 10;
    unit.active_exit_monotonic = 20;
}

#[test]
fn line_1_what_could_not_be_read_is_unverified() {
    let mut runtime = sample::runtime(7);
    runtime
        .unreadable
        .push("status of 7: permission denied".into());
    assert_eq!(outcome(&facts(&runtime)).0, O::Unverified);
}

#[test]
fn line_2_what_is_not_ours_is_skipped_with_the_reason() {
    let runtime = sample::runtime(7);
    let facts = Facts {
        not_ours: Some("another user's: uid 1002".into()),
        ..facts(&runtime)
    };
    assert_eq!(
        outcome(&facts),
        (O::Skipped, "another user's: uid 1002".into())
    );
}

#[test]
fn line_4_a_process_of_an_unknown_home_is_left_alone() {
    let mut runtime = sample::runtime(7);
    runtime.homes.clear();
    let (outcome, reason) = outcome(&facts(&runtime));
    assert_eq!(outcome, O::Unverified);
    assert!(reason.starts_with("home: "));
}

#[test]
fn line_5_a_process_of_an_unknown_owner_is_unaccounted_and_left_alone() {
    let mut runtime = sample::runtime(7);
    runtime.supervisor = Supervisor::Unknown {
        seen: "a parent that no rule knows".into(),
    };
    let unknown = Facts {
        action: None,
        ..facts(&runtime)
    };
    assert_eq!(outcome(&unknown).0, O::Unaccounted);
    let named = Facts {
        action: Some(Action::Signal),
        ..facts(&runtime)
    };
    assert!(
        matches!(decide(&named), Step::Act(_)),
        "a row of the table names it"
    );
}

#[test]
fn line_6_a_slot_that_nobody_enabled_is_no_row() {
    for state in ["disabled", "static", "masked", "indirect", ""] {
        let runtime = sample::slot(|unit| unit.unit_file_state = state.into());
        assert_eq!(decide(&facts(&runtime)), Step::NoRow, "{state}");
    }
}

#[test]
fn line_7_a_condition_that_does_not_hold_is_down_and_a_stop_is_stopped() {
    slot_is(
        |unit| unit.result = "exec-condition".into(),
        O::Down,
        "condition",
    );
    slot_is(|unit| unit.condition_result = false, O::Down, "condition");
    slot_is(|_| {}, O::Stopped, "");
    slot_is(|unit| unit.result = "exit-code".into(), O::Stopped, "");
    slot_is(
        |unit| (unit.condition_result, unit.condition_timestamp_monotonic) = (false, 0),
        O::Stopped,
        "",
    );
}

#[test]
fn line_8_a_stop_that_ends_with_a_status_is_an_operators_stop() {
    slot_is(failed, O::Stopped, "nonzero-exit");
}

#[test]
fn line_9_any_other_failure_is_down_before() {
    slot_is(
        |unit| {
            failed(unit);
            unit.restart = "on-failure".into();
        },
        O::Down,
        "before",
    );
    slot_is(
        |unit| {
            failed(unit);
            unit.restart_prevent_status = vec![1];
        },
        O::Down,
        "before",
    );
    slot_is(
        |unit| {
            failed(unit);
            unit.inactive_exit_monotonic = 30;
        },
        O::Down,
        "before",
    );
    slot_is(
        |unit| {
            failed(unit);
            unit.dependencies_active = false;
        },
        O::Down,
        "before",
    );
}

#[test]
fn line_10_an_auto_restart_is_waited_for_once_and_is_then_a_crash_loop() {
    let runtime = sample::slot(|unit| {
        unit.active_state = "activating".into();
        unit.sub_state = "auto-restart".into();
    });
    let early = Facts {
        waited: false,
        ..facts(&runtime)
    };
    assert!(matches!(decide(&early), Step::Wait(decision) if decision.outcome == O::Unverified));
    let (outcome, reason) = outcome(&facts(&runtime));
    assert_eq!(outcome, O::Down);
    assert!(reason.starts_with("crash-loop"));
}

#[test]
fn line_11_a_home_that_must_not_be_started_on_protects_its_runtime() {
    let runtime = sample::runtime(7);
    let facts = Facts {
        blocked_by: Some("invalid".into()),
        ..facts(&runtime)
    };
    assert_eq!(outcome(&facts), (O::Skipped, "home-invalid".into()));
}

#[test]
fn line_12_a_fresh_runtime_is_current_if_every_vantage_agrees() {
    let mut runtime = sample::runtime(7);
    assert_eq!(
        outcome(&Facts {
            age: Age::Fresh,
            ..facts(&runtime)
        })
        .0,
        O::Current
    );
    if let Some(report) = &mut runtime.self_report {
        report.phase = Phase::Failed;
    }
    assert_eq!(
        outcome(&Facts {
            age: Age::Fresh,
            ..facts(&runtime)
        })
        .0,
        O::Unverified
    );
    for phase in [Phase::Starting, Phase::Draining] {
        if let Some(report) = &mut runtime.self_report {
            report.phase = phase;
        }
        let facts = Facts {
            age: Age::Fresh,
            ..facts(&runtime)
        };
        assert!(matches!(decide(&facts), Step::Wait(_)), "{phase:?}");
    }
    let mut runtime = sample::runtime(7);
    if let Some(unit) = &mut runtime.unit {
        unit.active_state = "deactivating".into();
    }
    assert_eq!(
        outcome(&Facts {
            age: Age::Fresh,
            ..facts(&runtime)
        })
        .0,
        O::Unverified
    );
}

#[test]
fn line_12_a_fresh_runtime_is_restarted_if_all_shall_be() {
    let runtime = sample::runtime(7);
    let facts = Facts {
        age: Age::Fresh,
        restart: RestartWhen::Always,
        ..facts(&runtime)
    };
    assert!(matches!(decide(&facts), Step::Act(_)));
}

#[test]
fn line_13_what_cannot_be_compared_is_unverified() {
    let runtime = sample::runtime(7);
    let facts = Facts {
        age: Age::Unknown("no file".into()),
        ..facts(&runtime)
    };
    assert_eq!(outcome(&facts), (O::Unverified, "age: no file".into()));
}

#[test]
fn line_14_a_stale_runtime_is_manual_if_none_shall_be_restarted() {
    let runtime = sample::runtime(7);
    let facts = Facts {
        restart: RestartWhen::Never,
        ..facts(&runtime)
    };
    let Step::Settled(decision) = decide(&facts) else {
        panic!("it is settled")
    };
    assert_eq!(decision.outcome, O::Manual);
    assert_eq!(
        decision.remedy.as_deref(),
        Some("systemctl --user restart agent.service")
    );
}

#[test]
fn line_15_a_desktop_restarts_its_own() {
    let runtime = sample::runtime(7);
    let facts = Facts {
        action: Some(Action::Defer),
        ..facts(&runtime)
    };
    assert_eq!(outcome(&facts).0, O::Deferred);
}

#[test]
fn line_16_what_this_run_was_started_from_is_deferred() {
    let mut runtime = sample::runtime(7);
    runtime.encloses_us = true;
    let (outcome, reason) = outcome(&facts(&runtime));
    assert_eq!(outcome, O::Deferred);
    assert!(reason.starts_with("self"));
}

#[test]
fn line_17_what_only_a_person_can_restart_is_manual() {
    let runtime = sample::runtime(7);
    for action in [Action::Manual, Action::Deny] {
        let facts = Facts {
            action: Some(action),
            ..facts(&runtime)
        };
        assert_eq!(outcome(&facts).0, O::Manual, "{action:?}");
    }
    let facts = Facts {
        action: None,
        ..facts(&runtime)
    };
    assert_eq!(
        outcome(&facts).0,
        O::Unaccounted,
        "no row of the table, no action"
    );
}

#[test]
fn line_17_what_is_frozen_or_has_a_terminal_is_left_to_a_person() {
    let mut runtime = sample::runtime(7);
    if let Some(unit) = &mut runtime.unit {
        unit.is_frozen = true;
    }
    let Step::Settled(decision) = decide(&facts(&runtime)) else {
        panic!("it is settled")
    };
    assert_eq!(decision.outcome, O::Manual);
    assert!(decision.reason.starts_with("frozen"), "{decision:?}");
    assert!(
        decision
            .remedy
            .is_some_and(|remedy| remedy.contains(" thaw "))
    );
    let mut runtime = sample::runtime(7);
    let respawn = |runtime: &Runtime| {
        decide(&Facts {
            action: Some(Action::Respawn),
            ..facts(runtime)
        })
    };
    assert!(matches!(respawn(&runtime), Step::Act(_)));
    if let Some(process) = &mut runtime.process {
        process.terminal = 136 << 8;
    }
    assert!(matches!(respawn(&runtime), Step::Settled(decision) if decision.outcome == O::Manual));
}

#[test]
fn line_18_a_manager_that_cannot_be_asked_is_not_asked() {
    let runtime = sample::runtime(7);
    let mute = Facts {
        reach: Reach::Mute("no answer".into()),
        ..facts(&runtime)
    };
    assert_eq!(outcome(&mute).0, O::Unverified);
    let denied = Facts {
        reach: Reach::Denied("sudo systemctl restart x".into()),
        ..facts(&runtime)
    };
    assert_eq!(outcome(&denied).0, O::Failed);
}

#[test]
fn line_19_everything_else_is_restarted() {
    let runtime = sample::runtime(7);
    assert_eq!(
        decide(&facts(&runtime)),
        Step::Act("its code changed".into())
    );
}

#[test]
fn a_runtime_is_stale_if_its_code_changed_after_its_start() {
    let mut runtime = sample::runtime(7);
    let changed = |at_nanos| Changed {
        at_nanos,
        file: "/x/RECORD".into(),
    };
    let start = 1_000_000_000_000;
    assert!(matches!(
        age_by_code(&runtime, Some(&changed(start + 1))),
        Age::Stale(_)
    ));
    assert_eq!(age_by_code(&runtime, Some(&changed(start))), Age::Fresh);
    assert!(matches!(age_by_code(&runtime, None), Age::Unknown(_)));
    // The manager's own record of the start counts before what the ticks say.
    if let Some(unit) = &mut runtime.unit {
        unit.exec_main_start_usec = 1_000_000_100;
    }
    assert_eq!(
        age_by_code(&runtime, Some(&changed(start + 1000))),
        Age::Fresh
    );
}
