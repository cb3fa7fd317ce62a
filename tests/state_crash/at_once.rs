//! Many invocations at once, and one inside another.

use std::fs;
use std::process::Child;
use std::time::Duration;

use fleet_update::state::Lock;
use fleet_update::world::World;

use crate::fleet::{Fleet, many};
use crate::isolated::isolated;

#[test]
fn of_thirty_two_invocations_at_once_one_runs_and_the_others_wait_or_end_with_75() {
    if !isolated() {
        return;
    }
    for (patience, allowed) in [("0s", &[0, 75][..]), ("120s", &[0][..])] {
        let fleet = Fleet::new();
        let mut children: Vec<Child> = (0..32)
            .map(|_| fleet.spawn("apply", &[("CRASH_PATIENCE", patience)]))
            .collect();
        let codes: Vec<i32> = children
            .iter_mut()
            .map(|child| child.wait().expect("ours").code().unwrap_or(-1))
            .collect();
        assert!(
            codes.iter().all(|code| allowed.contains(code)),
            "{codes:?}: {}",
            fleet.said()
        );
        assert!(codes.contains(&0));
        assert_eq!(fleet.starts(), [2, 2, 2], "{codes:?}");
        if patience == "0s" {
            let said = fleet.said();
            assert!(
                codes.contains(&75) && said.contains("another run (pid "),
                "{said}"
            );
        }
        assert_eq!(fleet.run("verify", &[]).code(), Some(0), "{}", fleet.said());
    }
}

#[test]
fn sixteen_identical_requests_make_one_run_and_all_get_its_receipt() {
    if !isolated() {
        return;
    }
    let fleet = Fleet::new();
    let vars = [("CRASH_PATIENCE", "120s"), ("CRASH_REQUEST", "deploy-9")];
    let mut children: Vec<Child> = (0..16).map(|_| fleet.spawn("apply", &vars)).collect();
    for child in &mut children {
        assert_eq!(
            child.wait().expect("ours").code(),
            Some(0),
            "{}",
            fleet.said()
        );
    }
    let receipts = fs::read_dir(fleet.state().join("receipts"))
        .expect("a folder")
        .count();
    assert_eq!(receipts, 2, "one run, and the link to the latest");
    assert_eq!(fleet.starts(), [2, 2, 2]);
    let other = fleet.run(
        "apply",
        &[("CRASH_REQUEST", "deploy-9"), ("CRASH_RESTART", "never")],
    );
    assert_eq!(other.code(), Some(3), "{}", fleet.said());
    assert!(fleet.said().contains("conflict: request deploy-9"));
    let other = fleet.run(
        "apply",
        &[("CRASH_REQUEST", "deploy-9"), ("CRASH_TO", "12")],
    );
    assert_eq!(other.code(), Some(3), "another target: {}", fleet.said());
    // How a run is shown, and how long it waits, is not what is asked for.
    let shown = fleet.run(
        "apply",
        &[
            ("CRASH_REQUEST", "deploy-9"),
            ("CRASH_COLOR", "always"),
            ("CRASH_PATIENCE", "5s"),
        ],
    );
    assert_eq!(shown.code(), Some(0), "{}", fleet.said());
    let again = fs::read_dir(fleet.state().join("receipts"))
        .expect("a folder")
        .count();
    assert_eq!(again, receipts, "none of these was a run");
}

#[test]
fn a_run_inside_a_run_works_under_the_lock_of_the_outer_one() {
    if !isolated() {
        return;
    }
    let fleet = Fleet::without_runtimes(many(1).into_iter());
    let world = World::read().expect("proc");
    let lock = fleet.folder.path().join("run/lock");
    let held = Lock::take(&world, &lock, "outer", Duration::ZERO).expect("free");
    assert_eq!(
        fleet.run("apply", &[]).code(),
        Some(0),
        "a child of ours: {}",
        fleet.said()
    );
    assert!(Lock::is_held(&lock), "the inner run did not give it back");
    drop(held);
    assert!(!Lock::is_held(&lock));
}
