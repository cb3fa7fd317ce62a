//! What is kept of runs: deleted, changed, and written by a clock that was set back.

use std::fs;
use std::path::PathBuf;

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
