//! `update receipt`: the records of earlier runs. Reads files only.

use super::Session;
use crate::cli::ReceiptCommand;
use crate::error::{Error, Kind, Result};
use crate::receipt::Receipt;
use crate::receipt::text::{Style, render};

/// Answers a question about receipts.
///
/// # Errors
/// When there is no such receipt, or it cannot be read.
pub fn run(session: &Session, what: &ReceiptCommand) -> Result<u8> {
    match what {
        ReceiptCommand::Schema => {
            let schema = Receipt::schema();
            let text = serde_json::to_string_pretty(&schema).unwrap_or_default();
            session.ui.report(&schema, || format!("{text}\n"));
        }
        ReceiptCommand::List => list(session)?,
        ReceiptCommand::Merge { .. } => {}
        ReceiptCommand::Show { run, .. } => {
            let value = session.state.read_receipt(run)?.ok_or_else(|| {
                Error::new(
                    Kind::Input,
                    format!(
                        "there is no receipt of run {run} in {}",
                        session.state.dir().display()
                    ),
                )
                .with_hint("`update receipt list` names the runs")
            })?;
            let receipt = Receipt::parse(value.clone())?;
            let style = Style {
                color: session.ui.color,
                verbose: session.ui.verbose,
                plan: false,
            };
            session.ui.report(&value, || render(&receipt, style));
        }
    }
    Ok(0)
}

fn list(session: &Session) -> Result<()> {
    let mut rows = Vec::new();
    let mut text = String::new();
    for id in session.state.receipt_ids()? {
        let Some(value) = session.state.read_receipt(&id)? else {
            continue;
        };
        let of = |path: &str| {
            value
                .pointer(path)
                .and_then(serde_json::Value::as_str)
                .unwrap_or("")
                .to_owned()
        };
        let (started, outcome) = (of("/started_at"), of("/verdict/outcome"));
        text.push_str(&format!("{id}  {started}  {outcome}\n"));
        rows.push(serde_json::json!({"run_id": id, "started_at": started, "outcome": outcome}));
    }
    session.ui.report(&rows.into(), || text);
    Ok(())
}
