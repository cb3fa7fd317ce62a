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

mod witness;
