//! The run that nothing disturbs, which the others are compared with.

use std::fs;
use std::sync::OnceLock;

use crate::fleet::{CONFIG, Fleet};
use crate::isolated::isolate;

/// What a home holds after a whole run, and every point that the run passed, in order.
pub fn whole_run() -> &'static (String, Vec<String>) {
    static RUN: OnceLock<(String, Vec<String>)> = OnceLock::new();
    RUN.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let told = folder.path().join("told");
        let isolated_already = std::env::var_os("CRASH_ISOLATED").is_some();
        if isolated_already {
            return one_whole_run();
        }
        isolate(
            "whole::a_whole_run",
            &[("CRASH_WHOLE", told.to_str().expect("a path"))],
        );
        serde_json::from_slice(&fs::read(&told).expect("told")).expect("JSON")
    })
}

/// Not a test by itself: the run that the others compare with.
#[test]
fn a_whole_run() {
    if let Some(told) = std::env::var_os("CRASH_WHOLE") {
        fs::write(told, serde_json::to_vec(&one_whole_run()).expect("JSON")).expect("room");
    }
}

fn one_whole_run() -> (String, Vec<String>) {
    let fleet = Fleet::new();
    let log = fleet.folder.path().join("points");
    let vars = [
        ("FLEET_UPDATE_FAIL_LOG", log.to_str().expect("a path")),
        ("CRASH_REQUEST", "deploy-1"),
    ];
    let status = fleet.run("apply", &vars);
    assert_eq!(status.code(), Some(0), "{}", fleet.said());
    assert_eq!(fleet.starts(), [2, 2, 2], "{}", fleet.said());
    let configs = fleet.configs();
    assert_ne!(configs[0], CONFIG);
    let points = fs::read_to_string(&log)
        .expect("a log")
        .lines()
        .map(str::to_owned)
        .collect();
    // A second run changes nothing, and says so.
    assert_eq!(fleet.run("apply", &[]).code(), Some(0), "{}", fleet.said());
    assert_eq!(fleet.starts(), [2, 2, 2]);
    assert_eq!(fleet.configs(), configs);
    (configs[0].clone(), points)
}
