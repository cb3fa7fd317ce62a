//! `status` only looks, and a watch ends when it is told to.

use std::io::{Read, Write};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use crate::odd::shared;
use crate::support::sandbox::wait;
use crate::support::trace::traced;
use crate::support::update::Update;
use crate::support::wait_for;

const BUSES: [&str; 2] = ["/run/user/2001/bus", "/run/user/2002/bus"];

#[test]
fn status_writes_nothing_asks_the_buses_alone_and_runs_nothing() {
    let Some(odd) = shared() else { return };
    let outcome = traced(&odd.fleet, None, &["status", "--json"], &BUSES);
    assert_eq!(outcome.status, Some(0), "{outcome}");
    let outcome = traced(&odd.fleet, Some("ann"), &["status", "--json"], &BUSES[..1]);
    assert_eq!(outcome.status, Some(0), "{outcome}");
    assert!(!odd.fleet.sandbox.path("/var/lib/fleet-update").exists());
    assert!(!odd.fleet.sandbox.path("/run/fleet-update").exists());
}

#[test]
fn status_needs_no_lock_and_says_that_a_run_is_under_way() {
    let Some(odd) = shared() else { return };
    let held = "mkdir -m 700 -p $XDG_RUNTIME_DIR/fleet-update; exec flock $XDG_RUNTIME_DIR/fleet-update/lock";
    let outcome = Update::new(&odd.fleet, &["status", "--json"])
        .by("ann")
        .after(held)
        .run();
    assert_eq!(outcome.status, Some(0), "{outcome}");
    let status = outcome.receipt();
    assert_eq!(status.rows("homes").len(), 3, "{outcome}");
    let notes = status.0["notes"].to_string();
    assert!(notes.contains("a run is under way now"), "{notes}");
}

#[test]
fn a_watch_draws_over_its_picture_fits_the_terminal_and_ends_with_ctrl_c() {
    let Some(odd) = shared() else { return };
    let sandbox = &odd.fleet.sandbox;
    let mut child = sandbox
        .command(
            None,
            [
                "script",
                "-qec",
                "stty cols 80 rows 60; exec update status --watch --color always --user bob",
                "/dev/null",
            ],
        )
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keys = child.stdin.take().unwrap();
    let mut screen = child.stdout.take().unwrap();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = [0; 65_536];
        while let Ok(count @ 1..) = screen.read(&mut bytes) {
            if sender.send(bytes[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    let mut shown = String::new();
    let until = |what: &str, shown: &mut String, seen: &dyn Fn(&[&str]) -> bool| {
        wait_for(what, Duration::from_secs(30), || {
            while let Ok(bytes) = receiver.try_recv() {
                shown.push_str(&String::from_utf8_lossy(&bytes));
            }
            let frames: Vec<&str> = shown.split("\x1b[H").skip(1).collect();
            // The last one may not be whole yet.
            seen(frames.split_last().map_or(&[], |(_, whole)| whole)).then_some(())
        });
    };
    until("it looked three times", &mut shown, &|frames| {
        frames.len() >= 3
    });
    let plain = |frame: &str| anstream::adapter::strip_str(frame).to_string();
    for frame in shown.split("\x1b[H").skip(1).take(3) {
        let frame = plain(frame);
        assert!(frame.contains("bob (uid 2002)"), "{frame}");
        for line in frame.lines() {
            assert!(line.chars().count() <= 80, "{line:?}");
        }
        assert!(!frame.contains("SUPERVISOR"), "{frame}");
    }
    // A wider terminal is used at once.
    let watcher = sandbox
        .processes()
        .into_iter()
        .find(|one| one.command.starts_with("update status --watch"))
        .expect("it runs");
    sandbox.sh(
        None,
        &format!(
            "stty cols 160 rows 60 <$(readlink /proc/{}/fd/1)",
            watcher.pid
        ),
    );
    until("it draws wider", &mut shown, &|frames| {
        frames.iter().any(|frame| frame.contains("SUPERVISOR"))
    });
    keys.write_all(b"\x03").unwrap();
    let status = wait(&mut child, Duration::from_secs(10)).expect("it ends");
    assert_eq!(status.code(), Some(0), "{shown}");
    // No mode was changed that would have to be changed back: no alternate screen, no hidden cursor.
    assert!(!shown.contains("\x1b[?"), "{shown:?}");
}

#[test]
fn a_watch_that_nobody_could_see_is_a_usage_error() {
    let Some(odd) = shared() else { return };
    for arguments in [
        &["status", "--watch"][..],
        &["status", "--watch", "--json"],
        &["status", "--watch", "--format", "yaml"],
        &["status", "--watch", "--quiet"],
    ] {
        let outcome = Update::new(&odd.fleet, arguments).run();
        assert_eq!(outcome.status, Some(2), "{arguments:?}: {outcome}");
        assert_eq!(outcome.stdout, "", "{arguments:?}");
    }
}
