//! `update receipt`: the records of earlier runs, and of other machines. Reads files only, and writes none
//! but the page that `--html` names.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Session;
use crate::cli::ReceiptCommand;
use crate::error::{Error, Kind, Result};
use crate::receipt::merge::{FleetReceipt, Sent, machines, merge};
use crate::receipt::text::{Style, render};
use crate::receipt::{Receipt, VerdictOutcome, html};
use crate::screen::visible;
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
