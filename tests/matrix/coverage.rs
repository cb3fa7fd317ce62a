//! Which test stands for which line of the design's evidence: the tables of what is decided before and after
//! acting, what was observed of systemd, and what people reported. A line without a test is a failure here.

use std::path::Path;

/// `what | file | test or scenario`.
const COVERED: &str = r#"
before 1, a source or process could not be read | src/plan/decide/tests.rs | line_1_what_could_not_be_read_is_unverified
before 2, another's, another namespace, policy | src/plan/decide/tests.rs | line_2_what_is_not_ours_is_skipped_with_the_reason
before 3, a record of a pid that is another's now | tests/matrix/scenes.rs | "limit-before"
before 4, home unknown | src/plan/decide/tests.rs | line_4_a_process_of_an_unknown_home_is_left_alone
before 5, owner unknown | src/plan/decide/tests.rs | line_5_a_process_of_an_unknown_owner_is_unaccounted_and_left_alone
before 6, a slot that nobody enabled | tests/matrix/scenes.rs | "disabled-asleep"
before 7, stopped; a condition | tests/matrix/scenes.rs | "stopped-clean"
before 8, a stop that ends with a status | tests/matrix/scenes.rs | "stopped"
before 9, failed before | tests/matrix/scenes.rs | "failed-before"
before 10, between two lives | tests/matrix/scenes.rs | "never-comes-back"
before 11, a home that must not be started on | tests/fleet/failures.rs | an_invalid_configuration_is_left_as_it_is_with_its_gateway_and_the_others_are_done
before 12, fresh | tests/matrix/scenes.rs | "fresh"
before 13, cannot be compared | src/plan/decide/tests.rs | line_13_what_cannot_be_compared_is_unverified
before 14, asked not to | src/plan/decide/tests.rs | line_14_a_stale_runtime_is_manual_if_none_shall_be_restarted
before 15, a desktop's | src/plan/decide/tests.rs | line_15_a_desktop_restarts_its_own
before 16, ourselves | src/plan/decide/tests.rs | line_16_what_this_run_was_started_from_is_deferred
before 17, only a person | tests/fleet/operator.rs | a_gateway_that_was_started_by_hand_is_never_signalled_and_its_row_says_how_to_restart_it
before 17, frozen | tests/matrix/scenes.rs | "frozen"
before 17, frozen past the manager | tests/matrix/scenes.rs | "frozen-past-manager"
before 18, mute | tests/fleet/failures.rs | a_mute_manager_makes_its_own_user_s_rows_unverified_within_the_deadline_and_no_others
before 18, denied | tests/matrix/scenes.rs | "of-the-system"
before 19, act | tests/matrix/scenes.rs | "aa-healthy"
acting 1, a job of another is adopted | tests/matrix/scenes.rs | "restarted-stopping"
acting 2, drained only if it hears | tests/matrix/scenes.rs | "no-handler"
acting 3, started once what a drain left dead | tests/matrix/scenes.rs | "drain-left-failed"
acting 4, the unit's own budgets | tests/matrix/scenes.rs | "start-notify-12s"
acting 5, constant for the settle time | tests/matrix/scenes.rs | "crash-once"
after 1 to 20, the whole product | src/verify/tests.rs | no_combination_is_restarted_without_a_new_process_that_two_vantages_saw
after 3, the old one survives | tests/matrix/scenes.rs | "kill-mode-none"
after 5, an operator's stop | tests/matrix/scenes.rs | "stopped-after"
after 7, active and no process | tests/matrix/scenes.rs | "exit-0-remains"
after 9, a crash loop | tests/matrix/scenes.rs | "crash-late"
after 10, a wrong successor | tests/matrix/scenes.rs | "other-home"
after 14, it says that it is ill | tests/matrix/scenes.rs | "says-degraded"
after 15, silent, or of the old one | tests/matrix/scenes.rs | "says-old"
after 17, kernel and self | tests/matrix/respawn.rs | what_is_respawned_is_the_same_again_and_what_cannot_be_is_not_touched
after 19, collateral | tests/matrix/scenes.rs | "bound-to-lost"
after 19, taken along and back | tests/matrix/scenes.rs | "part-of"
after 20, appeared | src/verify/reconcile/tests.rs | what_appeared_is_a_row_and_is_fine_only_if_it_is_fresh
A, a restart | tests/matrix/scenes.rs | "drain"
A', torn reads | tests/fleet/main_job.rs | one_run_migrates_every_home_and_restarts_every_gateway_exactly_once_and_the_next_changes_nothing
A'', others' jobs are told to subscribers alone | tests/restart_systemd.rs | an_operators_stop_during_our_restart_wins
B, a young one is not signalled | tests/restart_systemd.rs | a_young_runtime_is_not_signalled
B2 G G2, its own helper: one restart, not two | tests/matrix/scenes.rs | "own-helper-late"
B3 D, a pending respawn is taken over | tests/matrix/scenes.rs | "restart-sec-30"
C, a reload proves nothing | tests/matrix/scenes.rs | "reloaded-meanwhile"
F F2 F3, what was stopped stays stopped | tests/restart_systemd.rs | what_an_operator_stopped_stays_stopped
H1 H2 H3, a stop under way | tests/restart_systemd.rs | a_stop_that_is_under_way_is_adopted_and_never_canceled
H4, a stop during our restart | tests/matrix/scenes.rs | "stopped-stopping"
I1, a condition | tests/matrix/scenes.rs | "condition"
I2 I3, a start limit | tests/matrix/scenes.rs | "crash-loop-limit"
I4, a missing program | tests/matrix/scenes.rs | "program-missing"
I5, a status that must not be repeated | tests/matrix/scenes.rs | "exit-78"
I7, refused by the unit | tests/matrix/scenes.rs | "refuses-stop"
I8, missing, masked, bad | tests/matrix/scenes.rs | "masked"
I9, denied before anything is drained | tests/restart_systemd.rs | a_denial_is_seen_before_anything_is_drained
K, executed anew | tests/matrix/scenes.rs | "reexecuted-meanwhile"
K, its bus restarted, or killed | tests/matrix/scenes.rs | "bus-killed"
L, killed and respawned | tests/matrix/scenes.rs | "killed-draining"
N1, old children beside new ones | tests/matrix/scenes.rs | "kill-mode-process"
N2, files that changed | tests/matrix/scenes.rs | "edited-drop-in"
N3, nothing is loaded by looking | tests/restart_systemd.rs | a_survey_finds_what_runs_failed_or_could_run_and_loads_nothing
N4, it speaks late | tests/matrix/scenes.rs | "start-20s"
R1 R3 C14, started from inside | tests/matrix/inside.rs | a_run_from_inside_a_runtime_restarts_it_and_lives_to_say_so
R4, one slow unit stops no other | tests/matrix/scenes.rs | "stop-slow"
R5, a stop longer than a client's patience | tests/matrix/scenes.rs | "exec-stop"
R6, a pause longer than a health check | tests/matrix/scenes.rs | "restart-sec-30"
R8 R9, restored whole or left alone | tests/matrix/respawn.rs | what_is_respawned_is_the_same_again_and_what_cannot_be_is_not_touched
R10 R11, no contract of exit statuses | tests/matrix/scenes.rs | "drain-exit-0"
R12 R23, a loop after the restart | tests/matrix/scenes.rs | "crash-loop"
R13 R14, at its limit, or failed before | tests/matrix/scenes.rs | "limit-before"
R15, what is down stays down | tests/matrix/scenes.rs | "never-started"
R17, no right: known before, and the command | tests/matrix/scenes.rs | "of-the-system"
R18 R19, no environment, or another's | tests/fleet/main_job.rs | an_empty_environment_and_a_closed_stdin_make_no_difference_and_a_second_run_at_the_same_time_ends_with_75
R20, no manager is a fact, and none is started | tests/restart_systemd.rs | a_user_without_a_manager_has_none_and_gets_none
R21, a call that hangs | tests/restart_systemd.rs | a_stopped_manager_costs_no_more_than_the_limit
R22 R27, no unit file changes | tests/matrix/main.rs | a unit file, drop-in or link changed
R26, kept by a loop | tests/matrix/scenes.rs | "keeper"
R28 C1 C15, unaccounted until proved | src/verify/reconcile/tests.rs | every_planned_row_comes_out_in_its_order
R30, a drain that is not heeded | tests/matrix/scenes.rs | "drain-unheeded"
R34, s6 | tests/restart_keepers.rs | what_s6_supervises_is_restarted_by_the_built_in_row
R35 R37, launchd's domains and labels | tests/restart_launchd.rs | every_label_gets_a_new_process_in_the_domain_that_has_it
R36, launchd's numbers | tests/restart_launchd.rs | an_exit_number_proves_nothing_in_either_direction
C3, units by whatever name | tests/matrix/scenes.rs | "template"
C3, one name under two managers | tests/matrix/scenes.rs | "same-name"
C4, rows that should be there | src/fleet/survey.rs | a_manager_that_denies_what_the_kernel_shows_is_not_believed
C5 C7, killed at any moment | tests/fleet/kill.rs | a_run_that_is_killed_at_any_of_fifty_moments_leaves_whole_files_and_the_next_one_converges
C7, interrupted, its reader or terminal gone | tests/matrix/interrupted.rs | a_run_that_is_told_to_end_or_loses_its_reader_leaves_a_true_receipt
C8 C9, the second run restarts nothing | tests/state_crash/record.rs | after_our_state_was_deleted_a_second_run_changes_nothing
C11, one record | tests/state_crash/record.rs | a_changed_or_missing_receipt_is_noticed
a bad release takes one down | tests/fleet/failures.rs | a_first_wave_that_does_not_come_back_keeps_the_rest_of_the_fleet_alive
so many failures end the second wave | tests/matrix/waves.rs | after_so_many_failures_no_further_one_is_touched_and_they_all_live
what a wave takes along ends the restarts | tests/matrix/waves.rs | what_the_first_wave_takes_along_ends_the_restarts
an install that changes meanwhile | tests/matrix/waves.rs | one_install_that_changes_meanwhile_is_left_alone_and_the_others_go_on
side by side | tests/matrix/drain.rs | twenty_that_drain_take_two_waves_and_not_twenty
"#;

#[test]
fn every_line_names_a_test_that_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut missing = Vec::new();
    for line in COVERED.lines().filter(|line| !line.is_empty()) {
        let mut parts = line.splitn(3, " | ");
        let (Some(_), Some(file), Some(name)) = (parts.next(), parts.next(), parts.next()) else {
            panic!("not three parts: {line}");
        };
        let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        let scenario = name.starts_with('"').then(|| format!("({name})"));
        if !text.contains(scenario.as_deref().unwrap_or(name)) {
            missing.push(line);
        }
    }
    assert!(missing.is_empty(), "\n{}", missing.join("\n"));
}
