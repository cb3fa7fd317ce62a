//! `update` as root among hostile users: what they try, and that it changes nothing but their own rows.
//!
//! | file | what is tried |
//! |---|---|
//! | `attacks` | files, links, names and records that stand there when root runs |
//! | `races` | what is swapped, killed, stopped and traced while root runs |
//! | `managers` | service managers, buses, sockets and gateways that lie, hang or fail |
//! | `helpers` | what a helper inherits, may and keeps |
//! | `canaries` | secrets in every place of input, looked for in every place of output |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests start processes, write files and fail by panicking"
)]

#[path = "../support/mod.rs"]
mod support;

mod attacks;
mod canaries;
mod helpers;
mod machine;
mod managers;
mod races;

use support::fleet::EXPECTED;

/// The configuration that the old one becomes: what the steps change, and no other byte.
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
