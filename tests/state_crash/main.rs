//! The program killed at every point where it writes, syncs, renames, signals or commits, and at random moments: every
//! file stays whole, the audit chain proves itself, the next run converges, and no debt is lost or paid twice.
//!
//! Runs the real pipeline as a process of its own on synthetic homes with stand-in runtimes. Short by
//! default; `UPDATE_LONG=1` kills at every point and at 500 random moments. Needs the feature `failpoints`.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::exit,
    clippy::disallowed_methods,
    reason = "tests build what they need, say their counts and fail by panicking; a child ends as a run ends"
)]

mod at_once;
mod cells;
mod child;
mod cost;
mod disk;
mod eio;
mod failing;
mod fleet;
mod isolated;
mod kill;
mod record;
mod rollback;
mod whole;
