//! What is kept of runs: deleted, changed, left behind by a kill, and written by a clock that was set back.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;

use fleet_update::state::Store;
use fleet_update::state::jobs::JobState;

use crate::fleet::{Fleet, many};
use crate::isolated::isolated;

#[test]
fn after_our_state_was_deleted_a_second_run_changes_nothing() {
    if !isolated() {
        return;
    }
    let fleet = Fleet::new();
    assert_eq!(fleet.run("apply", &[]).code(), Some(0), "{}", fleet.said());
    let configs = fleet.configs();
    fs::remove_dir_all(fleet.state()).expect("ours");
    assert_eq!(fleet.run("apply", &[]).code(), Some(0), "{}", fleet.said());
    assert_eq!((fleet.starts(), fleet.configs()), (vec![2, 2, 2], configs));
}

#[test]
fn a_clock_that_was_set_back_loses_nothing_and_repeats_nothing() {
    if !isolated() {
        return;
    }
    let fleet = Fleet::new();
    assert_eq!(fleet.run("apply", &[]).code(), Some(0), "{}", fleet.said());
    for days in [1, 400] {
        let back = (days * 24 * 60 * 60).to_string();
        assert_eq!(
            fleet
                .run("apply", &[("FLEET_UPDATE_CLOCK_BACK", &back)])
                .code(),
            Some(0),
            "{}",
            fleet.said()
        );
        assert_eq!(fleet.run("verify", &[]).code(), Some(0), "{}", fleet.said());
    }
    assert_eq!(fleet.starts(), [2, 2, 2]);
    let receipts = fs::read_dir(fleet.state().join("receipts"))
        .expect("a folder")
        .count();
    assert_eq!(receipts, 4, "none was taken for an old one");
}

#[test]
fn a_changed_or_missing_receipt_is_noticed() {
    if !isolated() {
        return;
    }
    let fleet = Fleet::without_runtimes(many(2).into_iter());
    for _ in 0..3 {
        assert_eq!(fleet.run("apply", &[]).code(), Some(0), "{}", fleet.said());
    }
    assert_eq!(fleet.run("verify", &[]).code(), Some(0), "{}", fleet.said());
    let mut ids: Vec<PathBuf> = fs::read_dir(fleet.state().join("receipts"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| !path.ends_with("latest.json"))
        .collect();
    ids.sort();
    let whole = fs::read_to_string(&ids[1]).expect("there");
    fs::write(
        &ids[1],
        whole.replace("\"outcome\": \"clean\"", "\"outcome\": \"not-clean\""),
    )
    .expect("ours");
    assert_eq!(fleet.run("verify", &[]).code(), Some(3), "changed");
    fs::remove_file(&ids[1]).expect("ours");
    assert_eq!(fleet.run("verify", &[]).code(), Some(3), "missing");
    fs::write(&ids[1], &whole).expect("ours");
    assert_eq!(fleet.run("verify", &[]).code(), Some(0), "{}", fleet.said());
    // The newest one has no child that names it: the chain does.
    let latest = fleet.state().join("receipts/latest.json");
    let newest = fs::read_to_string(&latest)
        .expect("there")
        .replace("\"trigger\": \"manual\"", "\"trigger\": \"cron\"");
    fs::write(&latest, &newest).expect("ours");
    fs::write(ids.last().expect("three"), &newest).expect("ours");
    assert_eq!(
        fleet.run("verify", &[]).code(),
        Some(3),
        "the newest was changed"
    );
}

#[test]
fn a_tail_that_was_cut_off_the_chain_is_noticed_by_the_receipt_that_names_its_head() {
    if !isolated() {
        return;
    }
    let fleet = Fleet::without_runtimes(many(1).into_iter());
    assert_eq!(fleet.run("apply", &[]).code(), Some(0), "{}", fleet.said());
    // Later events may follow.
    let later = fleet_update::state::audit::Event {
        run: "later".into(),
        tenant: fleet_update::state::audit::HOST.into(),
        kind: "test".into(),
        payload: serde_json::json!({}),
    };
    fleet.store().append("test", &[later]).expect("room");
    assert_eq!(fleet.run("verify", &[]).code(), Some(0), "{}", fleet.said());
    let raw = rusqlite::Connection::open(Store::path(&fleet.state())).expect("a database");
    raw.execute(
        "DELETE FROM audit WHERE seq > (SELECT max(seq) FROM audit) - 2",
        [],
    )
    .expect("tampered");
    assert_eq!(fleet.run("verify", &[]).code(), Some(3), "{}", fleet.said());
}

#[test]
fn a_run_that_was_killed_leaves_jobs_that_the_next_one_takes_up_once_and_ends() {
    if !isolated() {
        return;
    }
    let fleet = Fleet::without_runtimes(many(2).into_iter());
    let killed = fleet.run("apply", &[("FLEET_UPDATE_FAIL", "run.copy.committed")]);
    assert_eq!(killed.signal(), Some(9));
    let running = fleet.store().open_jobs().expect("a database");
    assert_eq!(running.len(), 2);
    assert!(
        running
            .iter()
            .all(|job| job.state == JobState::Running && job.attempt == 0),
        "{running:?}"
    );
    assert_eq!(fleet.run("apply", &[]).code(), Some(0), "{}", fleet.said());
    for job in &running {
        let now = fleet
            .store()
            .job(job.id)
            .expect("a database")
            .expect("kept");
        assert_eq!((now.state, now.attempt), (JobState::Completed, 1));
        // Whoever was killed cannot come back and say otherwise.
        assert!(
            fleet
                .store()
                .finish(job.id, job.attempt, JobState::Failed)
                .is_err()
        );
    }
    assert_eq!(fleet.store().open_jobs().expect("a database"), []);
}
