//! Our own state, from outside: what the contracts say of the audit chain, cells, jobs, requests, scopes and
//! secret references, a test a sentence. Where processes are named they are processes, started by a barrier.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, prints what it counted, and starts processes"
)]

mod audit;
mod cells;
mod child;
mod jobs;
mod place;
mod requests;
mod retention;
mod schema;
mod scopes;
mod secrets;
