//! In the hands of packages, timers and cron: the Debian package in a root that is being made and on a
//! real fleet, the hook of other packages, and cron.
//!
//! What cannot be had here (root, systemd, cargo-deb, debootstrap, cron) is said loudly, and is a failure
//! where `UPDATE_REQUIRE_SYSTEMD=1` asks for the whole tier.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    dead_code,
    reason = "tests start processes, write files and fail by panicking; the support is shared"
)]

#[path = "../support/mod.rs"]
mod support;

mod built;
mod files;
mod hook;
mod installed;
mod root;
mod rpm;

use support::sandbox::Sandbox;
use support::update::Receipt;

/// The newest receipt of root in a root folder.
fn latest(root: &std::path::Path) -> Option<Receipt> {
    let bytes = std::fs::read(root.join("var/lib/fleet-update/receipts/latest.json")).ok()?;
    serde_json::from_slice(&bytes).ok().map(Receipt)
}

/// The newest receipt of root in a sandbox.
fn latest_in(sandbox: &Sandbox) -> Option<Receipt> {
    latest(&sandbox.path("/"))
}

/// Fails unless what a hook printed is at most one line, and only on standard error.
#[track_caller]
fn assert_brief(stdout: &str, stderr: &str) {
    assert_eq!(stdout, "", "a hook wrote on standard output; {stderr}");
    assert!(stderr.lines().count() <= 1, "more than one line:\n{stderr}");
}

/// The line of the packaged crontab without its comment sign, at another time.
fn packaged_cron_line(time: &str) -> String {
    let text = include_str!("../../dist/etc/cron.d/fleet-update");
    let line = text.lines().last().unwrap().strip_prefix('#').unwrap();
    let rest = line.strip_prefix("17 4 * * * ").expect("a daily line");
    format!("{time} {rest}\n")
}

/// The README's own crontab line, at another time.
fn readme_cron_line(time: &str) -> String {
    let text = include_str!("../../README.md");
    let line = text
        .lines()
        .find(|line| line.contains("* * *") && line.contains("/usr/bin/update"))
        .expect("the README shows a crontab line");
    let rest = line
        .trim()
        .strip_prefix("17 4 * * * ")
        .expect("a daily line");
    format!("{time} {rest}\n")
}
