//! `update status`: the fleet as it is now, without a word about what to do. Changes nothing.

use super::{Session, debts, opening};
use crate::error::Result;
use crate::receipt::text::{Style, render};
use crate::run::look::look;

/// Shows the fleet as it is.
///
/// # Errors
/// When the machine cannot be looked at.
pub fn run(session: &Session) -> Result<u8> {
    let (_, owed) = debts::owed(session);
    let look = look(session, &owed, false)?;
    let mut receipt = opening::open(session, &look, "status");
    receipt.settle(false);
    let status = u8::from(
        receipt
            .collectors
            .iter()
            .any(|row| row.outcome == "unverified"),
    );
    receipt.verdict.exit_status = Some(status);
    let style = Style {
        color: session.ui.color,
        verbose: session.ui.verbose,
        plan: true,
    };
    if !(session.ui.quiet && status == 0) {
        let value = serde_json::to_value(&receipt).unwrap_or_default();
        session.ui.report(&value, || render(&receipt, style));
    }
    Ok(status)
}
