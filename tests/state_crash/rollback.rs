//! Putting back what a run wrote over.

use std::fs;

use crate::fleet::{CONFIG, Fleet};
use crate::isolated::isolated;
use crate::whole::whole_run;

#[test]
fn a_rollback_puts_back_the_exact_bytes_restarts_what_serves_them_and_is_itself_a_run() {
    if !isolated() {
        return;
    }
    let (after, _) = whole_run();
    let fleet = Fleet::new();
    assert_eq!(fleet.run("apply", &[]).code(), Some(0), "{}", fleet.said());
    let run = fleet.latest()["run_id"].as_str().expect("an id").to_owned();
    // The code still expects the newer version: nothing may be written.
    let refused = fleet.run(&format!("rollback {run}"), &[]);
    assert_eq!(refused.code(), Some(1), "{}", fleet.said());
    assert_eq!(fleet.configs(), vec![after.clone(); 3]);
    assert_eq!(
        fleet.latest()["homes"][0]["outcome"],
        "conflict",
        "{}",
        fleet.said()
    );
    assert_eq!(fleet.starts(), [2, 2, 2]);
    // The code is the older one again, and one home was changed by its owner.
    fleet.expect_version(12);
    let changed = format!("{after}# mine\n");
    fs::write(fleet.homes[1].join("config.yaml"), &changed).expect("ours");
    let status = fleet.run(&format!("rollback {run}"), &[]);
    assert_eq!(
        status.code(),
        Some(1),
        "one of them is a conflict: {}",
        fleet.said()
    );
    assert_eq!(
        fleet.configs(),
        [CONFIG, &changed, CONFIG],
        "{}",
        fleet.said()
    );
    let latest = fleet.latest();
    let notes = latest["notes"].to_string();
    assert!(notes.contains("databases are never rolled back"), "{notes}");
    let outcomes: Vec<&str> = latest["homes"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| row["outcome"].as_str().expect("a word"))
        .collect();
    assert_eq!(
        outcomes
            .iter()
            .filter(|outcome| **outcome == "conflict")
            .count(),
        1,
        "{}",
        fleet.said()
    );
    let starts = fleet.starts();
    assert_eq!((starts[0], starts[2]), (3, 3), "{}", fleet.said());
    assert_eq!(fleet.run("verify", &[]).code(), Some(0), "{}", fleet.said());
    assert_eq!(
        fleet
            .run("rollback 01900000-0000-7000-8000-000000000000", &[])
            .code(),
        Some(3)
    );
    assert_eq!(fleet.run("rollback ../receipts", &[]).code(), Some(3));
}
