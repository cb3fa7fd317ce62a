//! What the bookkeeping costs.

use std::fs;
use std::time::{Duration, Instant};

use crate::fleet::{Fleet, many};
use crate::isolated::isolated;

#[test]
fn the_bookkeeping_of_a_run_over_a_thousand_homes_costs_under_a_twentieth_of_it() {
    if !isolated() {
        return;
    }
    let fleet = Fleet::without_runtimes(many(1000).into_iter());
    let log = fleet.folder.path().join("cost");
    let start = Instant::now();
    let status = fleet.run(
        "apply",
        &[("FLEET_UPDATE_FAIL_TIME", log.to_str().expect("a path"))],
    );
    let took = start.elapsed();
    assert_eq!(status.code(), Some(0), "{}", fleet.said());
    let spent: u64 = fs::read_to_string(&log)
        .expect("a log")
        .lines()
        .map(|line| line.parse::<u64>().expect("a number"))
        .sum();
    let spent = Duration::from_micros(spent);
    println!(
        "= bookkeeping {spent:?} of {took:?} on 1,000 homes: {:.1} %",
        100.0 * spent.as_secs_f64() / took.as_secs_f64()
    );
    // Without optimisation the hashing costs several times as much as it does in a release.
    let share = if cfg!(debug_assertions) { 3 } else { 20 };
    assert!(spent * share < took, "{spent:?} of {took:?}");
}
