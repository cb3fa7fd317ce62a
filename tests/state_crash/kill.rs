//! The program killed at every point and at random moments.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::fleet::Fleet;
use crate::isolated::{is_long, isolate, side_by_side};
use crate::whole::whole_run;

#[test]
fn killed_at_any_point_the_next_run_finishes_what_was_owed_and_repeats_nothing() {
    let (after, points) = whole_run();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for point in points {
        *counts.entry(point).or_default() += 1;
    }
    println!(
        "{} different points, {} passages: {:?}",
        counts.len(),
        points.len(),
        counts.keys()
    );
    assert!(counts.len() >= 60, "{}", counts.len());
    // A point that is passed more than once is a kill at its first passage, and at its last.
    let mut kills: Vec<(String, usize)> = Vec::new();
    for (point, count) in &counts {
        kills.push(((*point).to_owned(), 1));
        if *count > 1 {
            kills.push(((*point).to_owned(), *count));
        }
    }
    let step = if is_long() { 1 } else { 6 };
    let kills: Vec<_> = kills.into_iter().step_by(step).collect();
    println!("{} kills", kills.len());
    side_by_side(kills, |(point, nth)| {
        isolate(
            "kill::one_kill_at_a_point",
            &[
                ("CRASH_POINT", &format!("{point}#{nth}")),
                ("CRASH_AFTER", after),
            ],
        );
    });
}

/// Not a test by itself: one kill of the test above, in a process table of its own.
#[test]
fn one_kill_at_a_point() {
    let Ok(plan) = std::env::var("CRASH_POINT") else {
        return;
    };
    let after = std::env::var("CRASH_AFTER").expect("told");
    let fleet = Fleet::new();
    let status = fleet.run(
        "apply",
        &[("FLEET_UPDATE_FAIL", &plan), ("CRASH_REQUEST", "deploy-1")],
    );
    let is_killed = status.signal() == Some(9);
    // How often a receipt is written, and so a late passage, depends on the waves; a first one is always there.
    assert!(
        is_killed || !plan.ends_with("#1"),
        "{plan} was not reached: {}",
        fleet.said()
    );
    fleet.check_whole(&after, &plan);
    fleet.check_converges(&after, &plan);
    if is_killed {
        // The request is answered now or was then; asking again does nothing twice.
        let again = fleet.run("apply", &[("CRASH_REQUEST", "deploy-1")]);
        assert_eq!(again.code(), Some(0), "{plan}: {}", fleet.said());
        assert_eq!(fleet.starts(), [2, 2, 2], "{plan}");
    }
}

#[test]
fn killed_at_random_moments_the_next_run_finishes_what_was_owed_and_repeats_nothing() {
    let (after, _) = whole_run();
    let rounds: usize = if is_long() { 500 } else { 10 };
    let mut random = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(1, |time| u64::from(time.subsec_nanos()) | 1);
    println!("seed {random}");
    // Shares of a run's usual time, in thousandths: xorshift is random enough for moments.
    let shares: Vec<u64> = (0..rounds)
        .map(|_| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % 950
        })
        .collect();
    let stages: Mutex<BTreeMap<String, usize>> = Mutex::default();
    side_by_side(shares, |share| {
        let folder = tempfile::tempdir().expect("a folder");
        let told = folder.path().join("stage");
        let vars = [
            ("CRASH_SHARE", share.to_string()),
            ("CRASH_AFTER", after.clone()),
            ("CRASH_TOLD", told.display().to_string()),
        ];
        let vars: Vec<(&str, &str)> = vars
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        isolate("kill::one_kill_at_a_moment", &vars);
        let stage = fs::read_to_string(&told).expect("a stage");
        *stages.lock().expect("no panic").entry(stage).or_default() += 1;
    });
    let stages = stages.into_inner().expect("no panic");
    let inside = rounds - stages.get("over").copied().unwrap_or(0);
    println!("{inside} of {rounds} kills inside the run: {stages:?}");
    assert!(inside * 10 >= rounds * 9, "{inside} of {rounds}");
    if is_long() {
        for stage in ["inventory", "snapshot", "migrate", "restart", "verify"] {
            assert!(stages.contains_key(stage), "{stage} was never hit");
        }
    }
}

/// Not a test by itself: one kill of the test above.
#[test]
fn one_kill_at_a_moment() {
    let Ok(share) = std::env::var("CRASH_SHARE") else {
        return;
    };
    let share: u32 = share.parse().expect("a number");
    let after = std::env::var("CRASH_AFTER").expect("told");
    // How long a run takes depends on what else the machine does, so it is measured right before.
    let (took, passages) = {
        let fleet = Fleet::new();
        let log = fleet.folder.path().join("points");
        let mut child = fleet.spawn(
            "apply",
            &[("FLEET_UPDATE_FAIL_LOG", log.to_str().expect("a path"))],
        );
        let start = await_file(&log);
        assert_eq!(
            child.wait().expect("ours").code(),
            Some(0),
            "{}",
            fleet.said()
        );
        (start.elapsed(), lines(&log))
    };
    let mut stage = "over";
    for attempt in 1..=4 {
        let fleet = Fleet::new();
        let log = fleet.folder.path().join("points");
        let mut child = fleet.spawn(
            "apply",
            &[("FLEET_UPDATE_FAIL_LOG", log.to_str().expect("a path"))],
        );
        // The moment counts from the first point: before it nothing has been done. Where most of the time is spent
        // waiting for runtimes, half of the moments follow what is done instead of the clock. One that came too late
        // is taken again, earlier.
        let start = await_file(&log);
        if share.is_multiple_of(2) {
            std::thread::sleep((took * share / 1000 / attempt).saturating_sub(start.elapsed()));
        } else {
            let number = passages * share as usize / 1000 / attempt as usize;
            while lines(&log) < number && child.try_wait().expect("ours").is_none() {
                std::thread::sleep(Duration::from_micros(u64::from(share)));
            }
        }
        let _ = child.kill();
        let status = child.wait().expect("ours");
        let points = fs::read_to_string(&log).unwrap_or_default();
        let why = format!(
            "{share} thousandths, after {}",
            points.lines().last().unwrap_or("nothing")
        );
        fleet.check_whole(&after, &why);
        fleet.check_converges(&after, &why);
        if status.signal() == Some(9) {
            stage = self::stage(&points);
            break;
        }
    }
    fs::write(std::env::var_os("CRASH_TOLD").expect("told"), stage).expect("room");
}

fn lines(path: &Path) -> usize {
    fs::read(path).map_or(0, |bytes| {
        bytes.iter().filter(|byte| **byte == b'\n').count()
    })
}

fn await_file(path: &Path) -> Instant {
    let start = Instant::now();
    while !path.exists() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never began");
        std::thread::sleep(Duration::from_millis(1));
    }
    Instant::now()
}

/// Which stage a run was in, by the points that it passed.
fn stage(points: &str) -> &'static str {
    let passed = |name: &str| points.lines().any(|line| line == name);
    if passed("run.verified") {
        "close"
    } else if passed("run.before-verify") {
        "verify"
    } else if passed("run.write.committed") {
        "restart"
    } else if passed("run.copy.committed") {
        "migrate"
    } else if passed("run.open.committed") {
        "snapshot"
    } else {
        "inventory"
    }
}
