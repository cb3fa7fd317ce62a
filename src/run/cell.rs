//! `update cell`: the registry of managed root homes, by hand. A run moves the cells that it touches itself.

use clap::ValueEnum as _;
use serde_json::Value;

use super::Session;
use crate::cli::CellCommand;
use crate::error::{Error, Kind, Result};
use crate::state::Store;
use crate::state::cells::{Cell, CellState};

/// Answers a question about cells, or changes one.
///
/// # Errors
/// `Input` for what the registry does not allow.
pub fn run(session: &Session, what: &CellCommand) -> Result<u8> {
    let dir = session.state.dir();
    match what {
        CellCommand::Create {
            tenant,
            cell,
            root,
            release,
            config_digest,
        } => {
            let mut store = Store::open(&session.world, dir)?;
            let cell = store.create_cell(
                tenant,
                cell,
                root,
                release.as_deref(),
                config_digest.as_deref(),
            )?;
            show(session, &cell);
        }
        CellCommand::Status { tenant } => {
            show(
                session,
                &Store::open_existing(&session.world, dir)?.cell(tenant)?,
            );
        }
        CellCommand::Transition { tenant, state } => {
            let state = CellState::from_str(state, false)
                .map_err(|_| Error::new(Kind::Input, "there is no such state of a cell"))?;
            let mut store = Store::open_existing(&session.world, dir)?;
            show(session, &store.move_cell(BY_HAND, tenant, state)?);
        }
        CellCommand::List => {
            let cells = Store::open_existing(&session.world, dir)?.cells()?;
            let value = Value::Array(cells.iter().map(record).collect());
            session
                .ui
                .report(&value, || cells.iter().map(line).collect());
        }
    }
    Ok(0)
}

/// What stands in the audit chain instead of a run.
const BY_HAND: &str = "cell";

fn show(session: &Session, cell: &Cell) {
    session.ui.report(&record(cell), || line(cell));
}

fn record(cell: &Cell) -> Value {
    serde_json::to_value(cell).unwrap_or_default()
}

fn line(cell: &Cell) -> String {
    format!(
        "{}  {}  {}  {}\n",
        cell.tenant_id,
        cell.cell_id,
        cell.state.word(),
        cell.root.display()
    )
}
