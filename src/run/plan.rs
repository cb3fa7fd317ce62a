//! `update plan`: the run stopped after its plan. Takes no lock, opens no database, writes nothing.

use super::{Session, debts, opening};
use crate::error::Result;
use crate::migrate::HomeOutcome;
use crate::receipt::Receipt;
use crate::receipt::text::{Style, render};
use crate::run::look::look;
use crate::state::Lock;

/// Shows what a run would do; with `check`, the status says whether it would do anything.
///
/// # Errors
/// When the machine cannot be looked at.
pub fn run(session: &Session, check: bool) -> Result<u8> {
    let (_, owed) = debts::owed(session);
    let look = look(session, &owed, false)?;
    let mut receipt = opening::open(session, &look, "plan");
    note_run(session, &mut receipt);
    receipt.accept(&session.wishes.policy.accept);
    receipt.settle(false);
    // What the application's own migrator makes of a home is not known before it is asked.
    let asks = session.wishes.native
        && look.plan.homes.iter().any(|home| {
            home.evaluation.outcome == HomeOutcome::BeyondCatalog
                && home.target.native.interpreter.is_some()
        });
    let changes = look.plan.changes_something() || asks;
    // A row that is to be restarted is not settled yet; it is not a row that could not be clean.
    let could_be_clean = receipt
        .homes
        .iter()
        .all(|row| row.accepted.is_some() || row.outcome.is_clean())
        && receipt
            .runtimes
            .iter()
            .all(|row| row.accepted.is_some() || row.outcome.is_clean() || row.action.is_some())
        && receipt
            .collectors
            .iter()
            .all(|row| row.outcome != "unverified");
    let asked_in_vain = receipt
        .collectors
        .iter()
        .any(|row| row.outcome == "unverified");
    let status = match (check, changes, could_be_clean) {
        (true, true, _) => 5,
        (true, false, false) => 1,
        (true, false, true) => 0,
        (false, ..) => u8::from(asked_in_vain),
    };
    receipt.verdict.exit_status = Some(status);
    let style = Style {
        color: session.ui.color,
        verbose: session.ui.verbose,
        plan: true,
    };
    if !(session.ui.quiet && status == 0) {
        session.ui.report(&receipt, || render(&receipt, style));
    }
    Ok(status)
}

/// Says that a run is under way, if one is: what is seen may change in a moment.
pub(super) fn note_run(session: &Session, receipt: &mut Receipt) {
    if !Lock::is_held(&session.places.lock) {
        return;
    }
    receipt
        .notes
        .push(match Lock::holder(&session.places.lock) {
            Some(holder) => format!(
                "a run is under way now (pid {}, since {})",
                holder.pid, holder.since
            ),
            None => "a run is under way now".into(),
        });
}
