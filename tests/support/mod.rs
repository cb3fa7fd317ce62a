//! What the end-to-end tests stand on: a machine of their own with a real service manager, a real
//! fleet of Hermes Agent on it, a witness that is independent of the program under test, and the
//! program itself.
//!
//! Everything here needs root, namespaces and systemd. Where they are missing a test is *skipped*,
//! which is said on the terminal past the harness's capture, and is a failure where
//! `UPDATE_REQUIRE_SYSTEMD=1` asks for the whole tier. `UPDATE_TEST_CACHE` names the folder that
//! keeps what is slow to build: the virtual environment and the seeds of the fleets.

#![allow(dead_code, reason = "each test target uses another part of it")]

pub mod fleet;
pub mod sandbox;
pub mod trace;
pub mod update;
pub mod watcher;

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Says something on the terminal whether or not the test harness captures output.
pub fn say(text: &str) {
    // `print!` and `eprint!` are captured by the harness, a write to the stream itself is not.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Says that a test did not run, or fails where all of them must.
pub fn skip(reason: &str) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    assert!(
        std::env::var_os("UPDATE_REQUIRE_SYSTEMD").is_none_or(|value| value != "1"),
        "{name} cannot run here and UPDATE_REQUIRE_SYSTEMD=1: {reason}"
    );
    say(&format!("SKIPPED {name}: {reason}"));
}

/// The folder that keeps what is slow to build between runs.
pub fn cache() -> PathBuf {
    std::env::var_os("UPDATE_TEST_CACHE").map_or_else(
        || {
            // target/tmp is cargo's own scratch folder for integration tests.
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("fleet")
        },
        PathBuf::from,
    )
}

/// Whether the long form of a test was asked for with `UPDATE_LONG=1`.
pub fn long() -> bool {
    std::env::var_os("UPDATE_LONG").is_some_and(|value| value == "1")
}

/// Waits until `probe` gives a value; there is no signal to wait for across namespaces.
pub fn wait_for<T>(what: &str, limit: Duration, mut probe: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = probe() {
            return value;
        }
        assert!(
            start.elapsed() < limit,
            "waited {limit:?} in vain until {what}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}
