//! The matrix: many units, each with another disturbance, on real service managers in one booted root, under one
//! run of the program. What really happened is told by a witness of its own, and is compared row by row.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    dead_code,
    reason = "tests start processes, write files and fail by panicking"
)]

#[path = "../support/mod.rs"]
mod support;

mod coverage;
mod drain;
mod fleet;
mod inside;
mod interrupted;
mod respawn;
mod scenario;
mod scenes;
mod truth;
mod waves;

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fleet::StandIns;
use scenario::{Scenario, When};
use support::say;
use support::update::Update;
use support::watcher::{Watcher, What};
use truth::{compare, find, log};

#[test]
fn every_scenario_ends_as_it_really_ended() {
    run(scenes::all(), None);
}

#[test]
fn what_is_between_two_lives_is_waited_for() {
    run(scenes::between(), None);
}

#[test]
fn what_a_user_may_not_restart_is_not_drained() {
    run(scenes::denied(), Some("bob"));
}

/// Makes one run over all of these, by root or a user, and compares each row with what happened.
fn run(all: Vec<Scenario>, user: Option<&'static str>) {
    let began = Instant::now();
    let Some(stand_ins) = StandIns::boot(all) else {
        return;
    };
    let booted = began.elapsed();
    let sandbox = &stand_ins.fleet.sandbox;
    let watchers = [
        Watcher::start(sandbox, "ann"),
        Watcher::start(sandbox, "bob"),
        Watcher::start(sandbox, "carl"),
        Watcher::of_system(sandbox),
    ];
    let before: Vec<usize> = stand_ins
        .all
        .iter()
        .map(|one| log(sandbox, one).len())
        .collect();
    let files = stand_ins.unit_files();
    let over = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        for (one, before) in stand_ins.all.iter().zip(&before) {
            if one.during.is_some() {
                let (watcher, over, stand_ins) = (watcher_of(&watchers, one), &over, &stand_ins);
                scope.spawn(move || disturb(stand_ins, one, *before, watcher, over));
            }
        }
        let arguments = [
            "apply",
            "--json",
            "--jobs",
            "32",
            "--max-failures",
            "200",
            "--verbose",
        ];
        let update = Update::new(&stand_ins.fleet, &arguments);
        let outcome = match user {
            Some(user) => update.by(user),
            None => update,
        }
        .run();
        over.store(true, Ordering::SeqCst);
        outcome
    });
    let receipt = outcome.receipt();
    let mut table = String::new();
    let mut counts = [0; 4];
    for (one, before) in stand_ins.all.iter().zip(&before) {
        let found = find(sandbox, one, *before, watcher_of(&watchers, one));
        let row = receipt.rows("runtimes").iter().find(|row| one.is(row));
        let text = |key: &str| row.map_or("", |row| row[key].as_str().unwrap_or(""));
        let verdict = compare(one, &found, text("outcome"), text("reason"));
        counts[verdict as usize] += 1;
        let _ = writeln!(
            table,
            "{:14} {:24} {:?}, {} starts, {} | {}: {}",
            format!("{verdict:?}"),
            one.log(),
            found.truth,
            found.starts,
            found.state,
            text("outcome"),
            text("reason"),
        );
    }
    let summary = format!(
        "{} scenarios: {} true, {} false success, {} false failure, {} unexpected; {} s, of these {} s to boot and {} s the run",
        stand_ins.all.len(),
        counts[0],
        counts[1],
        counts[2],
        counts[3],
        began.elapsed().as_secs(),
        booted.as_secs(),
        outcome.took.as_secs(),
    );
    // On a busy machine a bus may be slow to take so many connections at once: that must change no row.
    let asked_again = receipt.0["runtimes"]
        .to_string()
        .matches("asked again")
        .count();
    say(&format!(
        "{table}{summary}; {asked_again} buses were asked again"
    ));
    if counts[1..] != [0, 0, 0] {
        say(&outcome.stderr);
    }
    assert_eq!(
        counts[1..],
        [0, 0, 0],
        "{summary}\n{}",
        outcome.receipt().summary()
    );
    assert_eq!(
        files,
        stand_ins.unit_files(),
        "a unit file, drop-in or link changed"
    );
}

fn watcher_of<'a>(watchers: &'a [Watcher; 4], one: &Scenario) -> &'a Watcher {
    match one.manager {
        scenario::Manager::User("ann") => &watchers[0],
        scenario::Manager::User("bob") => &watchers[1],
        scenario::Manager::User(_) => &watchers[2],
        scenario::Manager::System(_) => &watchers[3],
    }
}

/// Waits for a scenario's moment, and does what is to be done then.
fn disturb(
    stand_ins: &StandIns,
    one: &Scenario,
    before: usize,
    watcher: &Watcher,
    over: &AtomicBool,
) {
    let Some((when, text)) = &one.during else {
        return;
    };
    let sandbox = &stand_ins.fleet.sandbox;
    let heard = watcher.of(&one.unit).len();
    while !over.load(Ordering::SeqCst) {
        let reached = match when {
            When::Draining => {
                std::thread::sleep(Duration::from_millis(50));
                log(sandbox, one)[before..]
                    .iter()
                    .any(|line| line.event == "draining")
            }
            When::Job | When::Started => {
                watcher.wait_until(Duration::from_millis(500), |event| {
                    event.unit == one.unit && is_it(*when, &event.what)
                }) && watcher.of(&one.unit)[heard..]
                    .iter()
                    .any(|what| is_it(*when, what))
            }
        };
        if reached {
            stand_ins.shell(one, text);
            return;
        }
    }
}

fn is_it(when: When, what: &What) -> bool {
    match when {
        When::Job => *what == What::JobNew,
        When::Started => matches!(what, What::Started(..)),
        When::Draining => false,
    }
}
