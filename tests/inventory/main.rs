//! Who runs what, for whom: the inventory on a machine where every public report of a wrong one is true
//! at once. Real systemd, real gateways, dashboards and servers of Hermes Agent; where the program itself
//! does not matter (namespaces, respawning parents), a stand-in that its command line makes one.
//!
//! | kind of report | here | elsewhere |
//! |---|---|---|
//! | unit of another name, template, drop-in, file of variables, legacy name | `reports` | `matrix`: template, drop-in, linked, runtime, transient |
//! | wrapper above the runtime | `reports` | `matrix`: wrapper, wrapper-control-group, wrapper-respawns |
//! | stale pid and state files: start, owner, command line, boot | `reports` | `fleet::assembly`, `fleet::selfreport` |
//! | another user's runtimes, a run without root | `reports` | `matrix`: other-user; `fleet`: operator |
//! | decoys by command line, ourselves | `reports` | `fleet::runtimes` |
//! | serve, dashboard, and programs beside them, in units of their own | `reports` | `matrix`: serve, dashboard |
//! | half-made profiles, odd names below `profiles/` | `reports` | `fleet::homes` |
//! | one runtime that serves many homes | `reports` | `fleet::assembly`, `fleet::runtimes` |
//! | another install than the home's own | `reports` | `plan` |
//! | homes of system services | `reports` | `fleet::homes` |
//! | respawning programs, shells' loops, the desktop, namespaces | `keepers` | `fleet::supervisors` |
//! | real gateways in containers, on homes of this machine | `containers` | – |
//! | `/proc` that hides, folders that may not be read, managers without a bus | `surroundings` | `fleet::units::bus`, `fleet::survey` |
//! | the caller's profile, home and variables | `callers` | `fleet`: homes |
//! | no home, and something runs | `surroundings` | – |
//! | kinds of installs, and what makes them stale | `installs` | `fleet::installs`; `package`: hook (dpkg) |
//! | large machines | `scale` | – |
//! | what a look must not do | `looks` | `fleet`: plan |
//!
//! A root is booted once and looked at by many tests; the one that changes it has its own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests start processes, write files and fail by panicking"
)]

#[path = "../support/mod.rs"]
mod support;

mod callers;
mod containers;
mod installs;
mod keepers;
mod looks;
mod odd;
mod reports;
mod run;
mod scale;
mod surroundings;
