//! `update receipt`: the records of earlier runs. Reads files only; `verify` reads the audit chain, too.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Session;
use crate::cli::ReceiptCommand;
use crate::error::{Error, Kind, Result};
use crate::receipt::Receipt;
use crate::receipt::text::{Style, render};
use crate::state::audit::Chain;
use crate::state::{Store, receipts};
use crate::world;

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
        ReceiptCommand::Verify => verify(session)?,
        ReceiptCommand::Show { run } => {
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

/// Walks the receipts from the newest to its parents, and proves each against the audit chain: the only question about
/// receipts that opens the database.
fn verify(session: &Session) -> Result<()> {
    let state = &session.state;
    let store = Store::open_existing(&session.world, state.dir())?;
    let chain = store.verify()?;
    let mut by_digest = BTreeMap::new();
    for id in state.receipt_ids()? {
        let bytes = state.receipt_bytes(&id)?.unwrap_or_default();
        by_digest.insert(receipts::digest(&bytes), (id, bytes));
    }
    let kept = by_digest.len();
    let mut next = state.latest_digest()?;
    let mut problems = Vec::new();
    let mut walked = Vec::new();
    while let Some((id, bytes)) = next.as_ref().and_then(|digest| by_digest.remove(digest)) {
        let receipt = serde_json::from_slice(&bytes)
            .map_err(|_| Error::new(Kind::Input, format!("the receipt of run {id} is damaged")))
            .and_then(Receipt::parse)?;
        if let Some(problem) = problem(&store, &chain, &receipt, &bytes)? {
            problems.push(format!("{id}: {problem}"));
        }
        next = receipt.parent;
        walked.push(id);
    }
    // One that a run was killed over before it was the latest proves nothing.
    by_digest.retain(|_, (_, bytes)| {
        let receipt = serde_json::from_slice::<serde_json::Value>(bytes).unwrap_or_default();
        !receipt["finished_at"].is_null() || receipt["schema"].is_null()
    });
    if !by_digest.is_empty() {
        let at = walked.last().map_or("latest", String::as_str);
        problems.push(format!(
            "{at}: the receipt before it was changed or taken away; {} older ones hang on nothing",
            by_digest.len()
        ));
    }
    if !problems.is_empty() {
        return Err(Error::new(Kind::Input, problems.join("; ")));
    }
    let value = serde_json::json!({"outcome": "whole", "receipts": kept, "events": chain.events});
    session.ui.report(&value, || {
        format!(
            "{kept} receipts are whole, and so is the audit chain of {} events\n",
            chain.events
        )
    });
    Ok(())
}

/// What is wrong with one receipt, if anything. One that a killed run left open proves nothing, and names no head.
fn problem(
    store: &Store,
    chain: &Chain,
    receipt: &Receipt,
    bytes: &[u8],
) -> Result<Option<&'static str>> {
    if receipt.finished_at.is_none() {
        return Ok(None);
    }
    let Some(head) = receipt.audit_head.as_deref() else {
        return Ok(Some("it names no head of the audit chain"));
    };
    if !chain.has(head) {
        let is_cut = store.event(&receipt.run_id, "run-opened")?.is_none()
            && chain.cut_before.is_some_and(|cut| {
                world::render_time(Duration::from_millis(cut.unsigned_abs())) > receipt.started_at
            });
        return Ok((!is_cut).then_some("its head is not in the audit chain"));
    }
    let end = store.event(&receipt.run_id, "run-closed")?;
    let sealed = end.as_ref().and_then(|end| end["receipt"].as_str());
    Ok((sealed != Some(&*receipts::seal(bytes))).then_some("it is not what its run wrote"))
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
