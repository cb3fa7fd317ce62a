//! The rows of a receipt before the second look at the fleet: as planned, and as the work on each
//! runtime ended.

use std::collections::BTreeMap;

use super::Session;
use super::look::Look;
use crate::plan::PlannedRuntime;
use crate::receipt::{
    Host, Invoker, Receipt, RuntimeRow, SCHEMA, Tool, Verdict, VerdictOutcome, rows,
};
use crate::verify::reconcile::Outcome;
use crate::{screen, world};

/// The receipt of a plan: every row as it is before anything was done.
#[must_use]
pub fn open(session: &Session, look: &Look, run_id: &str) -> Receipt {
    let world = &session.world;
    let mut receipt = Receipt {
        schema: SCHEMA,
        run_id: run_id.to_owned(),
        request_id: None,
        parent: None,
        audit_head: None,
        application: session.app.name.clone(),
        trigger: session.trigger.word().into(),
        argv_flags: session
            .argv_flags
            .iter()
            .map(|flag| screen::text(flag))
            .collect(),
        started_at: world::timestamp(),
        finished_at: None,
        tool: Tool {
            version: env!("CARGO_PKG_VERSION").into(),
            sha256: None,
        },
        host: Host {
            hostname: world.hostname.clone(),
            boot_id: world.boot_id.clone(),
        },
        invoker: Invoker {
            uid: world.account.uid,
            user: world.account.name.clone(),
            scope: if world.is_root() {
                "host".into()
            } else {
                "user".into()
            },
        },
        installs: look.inventory.installs.iter().map(rows::install).collect(),
        homes: look
            .plan
            .homes
            .iter()
            .map(|home| rows::home(home, &user_name(session, home.home.uid)))
            .collect(),
        runtimes: Vec::new(),
        collectors: look
            .inventory
            .collectors
            .iter()
            .map(rows::collector)
            .collect(),
        debts: Vec::new(),
        notes: look
            .inventory
            .notes
            .iter()
            .map(|note| screen::text(note))
            .collect(),
        verdict: Verdict {
            outcome: VerdictOutcome::Interrupted,
            exit_status: None,
            counts: BTreeMap::new(),
        },
    };
    let profiles = profiles(look);
    receipt.runtimes = look
        .plan
        .runtimes
        .iter()
        .map(|planned| {
            rows::planned_runtime(planned, &user_name(session, planned.runtime.uid), &profiles)
        })
        .collect();
    receipt
}

/// The name of a user, or the number where there is none.
#[must_use]
pub fn user_name(session: &Session, uid: u32) -> String {
    session
        .account(uid)
        .map_or_else(|| uid.to_string(), |account| account.name.clone())
}

/// The profile of each home, by the home's id.
#[must_use]
pub fn profiles(look: &Look) -> BTreeMap<&str, &str> {
    look.plan
        .homes
        .iter()
        .map(|home| (home.home.id.as_str(), home.home.profile.as_str()))
        .collect()
}

/// Writes what is known of each runtime so far into the receipt.
pub fn fill_runtimes(session: &Session, receipt: &mut Receipt, look: &Look, outcomes: &[Outcome]) {
    let profiles = profiles(look);
    receipt.runtimes = look
        .plan
        .runtimes
        .iter()
        .zip(outcomes)
        .map(|(planned, outcome)| runtime_row(session, planned, outcome, &profiles))
        .collect();
}

/// The row of one runtime, after the work on it and before the second look.
#[must_use]
pub fn runtime_row(
    session: &Session,
    planned: &PlannedRuntime,
    outcome: &Outcome,
    profiles: &BTreeMap<&str, &str>,
) -> RuntimeRow {
    let user = user_name(session, planned.runtime.uid);
    rows::runtime(
        planned,
        &outcome.decision,
        outcome.seen.as_deref(),
        None,
        (&user, profiles),
    )
}
