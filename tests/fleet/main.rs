//! The end-to-end tier: the program on a real fleet under real systemd.
//!
//! Each test boots a machine of its own from the same seed and reads what happened from the kernel,
//! the service managers and the files, and only then what the receipt says about it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests start processes, write files and fail by panicking"
)]

#[path = "../support/mod.rs"]
mod support;

mod failures;
mod homes;
mod kill;
mod main_job;
mod native;
mod newest;
mod operator;
mod plan;
mod witness;

use support::fleet::{CONFIG_V12, EXPECTED, Fleet, Gateway, Life};
use support::watcher::Watcher;

/// The configuration that [`CONFIG_V12`] becomes: what the steps change, and no other byte.
fn migrated(config: &str) -> String {
    config
        .replace(
            "_config_version: 12 ",
            &format!("_config_version: {EXPECTED} "),
        )
        .replace("ttl_hours: 24 ", "ttl_hours: 1 ")
        .replace("verify_on_stop: auto", "verify_on_stop: false")
        .replace(
            "{max_async_children: 5, max_concurrent_children: 3}",
            "{max_concurrent_children: 5}",
        )
}

/// Fails unless a home's configuration is exactly what its migration makes of [`CONFIG_V12`].
#[track_caller]
fn assert_migrated(fleet: &Fleet, gateway: Gateway) {
    pretty(
        &migrated(CONFIG_V12),
        &fleet.config(gateway),
        &gateway.config(),
    );
}

/// Compares two texts, and shows both where they differ.
#[track_caller]
fn pretty(expected: &str, found: &str, what: &str) {
    assert!(
        expected == found,
        "{what} is not what it should be\n--- expected\n{expected}\n--- found\n{found}\n---"
    );
}

/// Fails unless a gateway lives a new life: another process, another invocation, started exactly
/// once since its watcher listens, and serving now.
#[track_caller]
fn assert_restarted_once(fleet: &Fleet, gateway: Gateway, before: &Life, watcher: &Watcher) {
    let unit = gateway.unit();
    let name = format!("{unit} of {}", gateway.user);
    assert_eq!(
        watcher.starts_of(&unit),
        1,
        "{name} was not started exactly once: {:#?}",
        watcher.of(&unit)
    );
    let after = fleet.life(gateway);
    assert_eq!(after.active, "active", "{name}");
    assert_ne!(after.invocation, before.invocation, "{name}");
    assert_ne!(after.pid, before.pid, "{name}");
    let process = fleet.running(gateway).expect("it says that it runs");
    assert_eq!(process.pid, after.pid, "{name}");
}

/// Fails unless a gateway lives the same life as before.
#[track_caller]
fn assert_untouched(fleet: &Fleet, gateway: Gateway, before: &Life, watcher: &Watcher) {
    let unit = gateway.unit();
    assert_eq!(watcher.starts_of(&unit), 0, "{:#?}", watcher.of(&unit));
    assert_eq!(fleet.life(gateway), *before, "{unit} of {}", gateway.user);
}
