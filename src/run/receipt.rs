//! `update receipt`: the records of earlier runs, and of other machines. Reads files only, and writes none
//! but the page that `--html` names; `verify` reads the audit chain, too.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Session;
use crate::cli::ReceiptCommand;
use crate::digest::sha256;
use crate::error::{Error, Kind, Result};
use crate::receipt::merge::{FleetReceipt, Sent, machines, merge};
use crate::receipt::text::{Style, render};
use crate::receipt::{Receipt, VerdictOutcome, html};
use crate::screen::visible;
use crate::state::audit::Chain;
use crate::state::{Store, receipts};
use crate::world;

/// No inventory and no receipt is larger.
const LARGEST: u64 = 64 * 1024 * 1024;

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
        ReceiptCommand::Show { run, html } => show(session, run, html.as_deref())?,
        ReceiptCommand::Merge {
            inventory,
            receipts,
            max_age,
            html,
        } => {
            let max_age = max_age.map(|limit| limit.0);
            return merge_files(session, inventory, receipts, max_age, html.as_deref());
        }
    }
    Ok(0)
}

fn show(session: &Session, run: &str, page: Option<&Path>) -> Result<()> {
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
    if let Some(file) = page {
        return write_page(session, file, &html::page(&receipt));
    }
    let style = Style {
        color: session.ui.color,
        verbose: session.ui.verbose,
        plan: false,
    };
    session.ui.report(&value, || render(&receipt, style));
    Ok(())
}

fn merge_files(
    session: &Session,
    inventory: &Path,
    receipts: &[PathBuf],
    max_age: Option<Duration>,
    page: Option<&Path>,
) -> Result<u8> {
    let file = session.world.cwd.join(inventory);
    let text = read(&file)
        .and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned()));
    let names = text.and_then(|text| machines(&text)).map_err(|error| {
        Error::new(
            Kind::Input,
            format!("cannot use the inventory {}: {error}", file.display()),
        )
    })?;
    let sent = receipts
        .iter()
        .map(|path| Sent {
            file: path.display().to_string(),
            stem: path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            content: read(&session.world.cwd.join(path)),
        })
        .collect();
    let fleet = merge(&names, sent, &world::timestamp(), max_age);
    if let Some(file) = page {
        write_page(session, file, &html::fleet(&fleet))?;
    }
    let clean = fleet.verdict.outcome == VerdictOutcome::Clean;
    if !(session.ui.quiet && clean) {
        let value = serde_json::to_value(&fleet).unwrap_or_default();
        session.ui.report(&value, || render_fleet(&fleet));
    }
    Ok(fleet.verdict.exit_status)
}

fn render_fleet(fleet: &FleetReceipt) -> String {
    let width = |text: &str| text.chars().count();
    let names = fleet
        .machines
        .iter()
        .map(|row| width(&row.name))
        .max()
        .unwrap_or(0)
        .min(40);
    let mut text = String::new();
    for row in &fleet.machines {
        let mark = if row.outcome.word() == "clean" {
            ' '
        } else {
            '!'
        };
        let line = format!(
            "{mark} {:names$}  {:12}  {}",
            visible(&row.name),
            row.outcome.word(),
            visible(&row.reason)
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let counts: Vec<String> = fleet
        .verdict
        .counts
        .iter()
        .map(|(word, count)| format!("{count} {word}"))
        .collect();
    let word = fleet.verdict.outcome.word().replace('-', " ");
    text + &format!("{word}: machines {}\n", counts.join(", "))
}

/// Reads a file that somebody may have sent: a regular one of a bearable size.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let meta = std::fs::metadata(path).map_err(|error| error.to_string())?;
    // A pipe is fine where a shell makes one: `<(…)`.
    if meta.is_dir() || meta.len() > LARGEST {
        return Err("it is not a file, or larger than 64 MiB".into());
    }
    std::fs::read(path).map_err(|error| error.to_string())
}

/// Writes a page as a whole; it names homes and values, so only its owner may read it. `-` is standard output.
fn write_page(session: &Session, file: &Path, page: &str) -> Result<()> {
    if file == Path::new("-") {
        session.ui.result(page);
        return Ok(());
    }
    let file = session.world.cwd.join(file);
    let failed = |error| Error::io(format!("cannot write {}", file.display()), error);
    let folder = file.parent().unwrap_or_else(|| Path::new("/"));
    let mut temporary = tempfile::Builder::new()
        .prefix(".receipt-")
        .permissions(std::fs::Permissions::from_mode(0o600))
        .tempfile_in(folder)
        .map_err(failed)?;
    temporary.write_all(page.as_bytes()).map_err(failed)?;
    temporary
        .persist(&file)
        .map_err(|error| failed(error.error))?;
    session.ui.tell(&format!("wrote {}", file.display()));
    Ok(())
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
        by_digest.insert(sha256(&bytes), (id, bytes));
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
    session.ui.report(&rows, || text);
    Ok(())
}
