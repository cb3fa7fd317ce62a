//! Cells: one managed root home of a tenant each, and the states that it may go through.
//!
//! | from | to |
//! |---|---|
//! | created | starting, failed |
//! | starting | healthy, failed |
//! | healthy | upgrading, failed |
//! | upgrading | healthy, rollback, failed |
//! | rollback | healthy, failed |
//! | failed | starting |
//!
//! The same state again changes nothing. A record that is not exactly what was written is an error for every
//! question about cells: no answer is given from the rest. Each move is an event of the audit chain.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, Transaction, params};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::audit::{Event, append};
use super::db::{Store, unavailable};
use super::scope;
use crate::error::{Error, Kind, Result};
use crate::world;

/// Where a cell stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum CellState {
    /// It is known.
    Created,
    /// It is brought up.
    Starting,
    /// It does its work.
    Healthy,
    /// A run works on it.
    Upgrading,
    /// A rollback works on it.
    Rollback,
    /// A person has to look.
    Failed,
}

impl CellState {
    /// The word in records.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Starting => "starting",
            Self::Healthy => "healthy",
            Self::Upgrading => "upgrading",
            Self::Rollback => "rollback",
            Self::Failed => "failed",
        }
    }

    /// Whether a cell may go from here to `next`.
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        matches!(
            (self, next),
            (Self::Created, Self::Starting | Self::Failed)
                | (Self::Starting, Self::Healthy | Self::Failed)
                | (Self::Healthy, Self::Upgrading | Self::Failed)
                | (
                    Self::Upgrading,
                    Self::Healthy | Self::Rollback | Self::Failed
                )
                | (Self::Rollback, Self::Healthy | Self::Failed)
                | (Self::Failed, Self::Starting)
        )
    }
}

/// One tenant's managed root home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Whose it is.
    pub tenant_id: String,
    /// Its own name.
    pub cell_id: String,
    /// The root home.
    pub root: PathBuf,
    /// The release that it runs, as far as is known.
    pub version: Option<String>,
    /// Where it stands.
    pub state: CellState,
    /// SHA-256 of its configuration, as a run last left it.
    pub config_digest: Option<String>,
    /// When it was made (RFC 3339, UTC).
    pub created_at: String,
}

impl Cell {
    fn check(&self) -> Result<()> {
        scope::tenant(&self.tenant_id)?;
        scope::identifier("cell id", &self.cell_id)?;
        if let Some(version) = &self.version {
            scope::identifier("version", version)?;
        }
        if let Some(digest) = &self.config_digest {
            let is_digest = digest.len() == 64
                && digest
                    .bytes()
                    .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            if !is_digest {
                return Err(invalid("the config digest is not a SHA-256"));
            }
        }
        if !is_plain(&self.root) {
            return Err(invalid("the root is not an absolute path without . and .."));
        }
        Ok(())
    }
}

/// Whether a path is absolute, and written as it is resolved.
fn is_plain(path: &Path) -> bool {
    let Some(text) = path.to_str() else {
        return false;
    };
    text.starts_with('/')
        && text.len() > 1
        && text[1..]
            .split('/')
            .all(|part| !part.is_empty() && part != "." && part != "..")
        && !text.contains('\0')
}

impl Store {
    /// Makes a tenant's cell.
    ///
    /// # Errors
    /// `Input` when the tenant has one, another tenant has that root, or a part is not canonical.
    pub fn create_cell(
        &mut self,
        tenant: &str,
        cell: &str,
        root: &Path,
        version: Option<&str>,
        config_digest: Option<&str>,
    ) -> Result<Cell> {
        let cell = Cell {
            tenant_id: tenant.to_owned(),
            cell_id: cell.to_owned(),
            root: root.to_path_buf(),
            version: version.map(str::to_owned),
            state: CellState::Created,
            config_digest: config_digest.map(str::to_owned),
            created_at: world::timestamp(),
        };
        cell.check()?;
        self.change("cell.create", |transaction| {
            let others = load_all(transaction)?;
            if others.iter().any(|other| other.tenant_id == cell.tenant_id) {
                return Err(invalid(&format!("tenant {tenant} has a cell")));
            }
            if others.iter().any(|other| other.root == cell.root) {
                return Err(invalid("another tenant's cell has that root"));
            }
            save(transaction, &cell)?;
            let payload = json!({"cell": cell.cell_id, "to": cell.state});
            note(transaction, &cell, "cell", payload)?;
            Ok(cell)
        })
    }

    /// A tenant's cell.
    ///
    /// # Errors
    /// `Input` when there is none, or the registry is damaged.
    pub fn cell(&self, tenant: &str) -> Result<Cell> {
        scope::tenant(tenant)?;
        load(self.connection(), tenant)
    }

    /// Every cell, by tenant.
    ///
    /// # Errors
    /// `Input` when the registry is damaged.
    pub fn cells(&self) -> Result<Vec<Cell>> {
        load_all(self.connection())
    }

    /// Moves a tenant's cell to a state, on behalf of `run`.
    ///
    /// # Errors
    /// `Input` when there is no such cell, or no such move.
    pub fn move_cell(&mut self, run: &str, tenant: &str, to: CellState) -> Result<Cell> {
        scope::tenant(tenant)?;
        self.change("cell.move", |transaction| {
            let mut cell = load(transaction, tenant)?;
            step(transaction, run, &mut cell, to)?;
            Ok(cell)
        })
    }
}

/// Moves a cell within a transaction that also changes something else.
///
/// # Errors
/// `Input` when there is no such move.
pub fn step(
    transaction: &Transaction<'_>,
    run: &str,
    cell: &mut Cell,
    to: CellState,
) -> Result<()> {
    let from = cell.state;
    if from == to {
        return Ok(());
    }
    if !from.may_become(to) {
        return Err(invalid(&format!(
            "a cell cannot go {}->{}",
            from.word(),
            to.word()
        )));
    }
    cell.state = to;
    save(transaction, cell)?;
    let payload = json!({"cell": cell.cell_id, "from": from, "to": to});
    note(transaction, cell, run, payload)
}

fn note(
    transaction: &Transaction<'_>,
    cell: &Cell,
    run: &str,
    payload: serde_json::Value,
) -> Result<()> {
    let event = Event {
        run: run.to_owned(),
        tenant: cell.tenant_id.clone(),
        kind: "cell".into(),
        payload,
    };
    append(transaction, &[event]).map(|_| ())
}

/// Writes a cell's record.
///
/// # Errors
/// When the storage is not available.
pub fn save(transaction: &Transaction<'_>, cell: &Cell) -> Result<()> {
    let record =
        serde_json::to_string(cell).map_err(|_| invalid("the cell's record cannot be written"))?;
    transaction
        .execute(
            "INSERT INTO cells VALUES (?1, ?2) ON CONFLICT (tenant) DO UPDATE SET record = ?2",
            params![cell.tenant_id, record],
        )
        .map(|_| ())
        .map_err(unavailable)
}

fn load(connection: &Connection, tenant: &str) -> Result<Cell> {
    let record: Option<String> = connection
        .query_row(
            "SELECT record FROM cells WHERE tenant = ?1",
            [tenant],
            |row| row.get(0),
        )
        .optional()
        .map_err(unavailable)?;
    let record = record.ok_or_else(|| invalid(&format!("tenant {tenant} has no cell")))?;
    parse(tenant, &record)
}

/// Every cell, within or without a transaction.
///
/// # Errors
/// `Input` when one record is damaged.
pub fn load_all(connection: &Connection) -> Result<Vec<Cell>> {
    let mut statement = connection
        .prepare_cached("SELECT tenant, record FROM cells ORDER BY tenant")
        .map_err(unavailable)?;
    let rows = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .map_err(unavailable)?;
    let rows: Vec<(String, String)> = rows.collect::<rusqlite::Result<_>>().map_err(unavailable)?;
    rows.iter()
        .map(|(tenant, record)| parse(tenant, record))
        .collect()
}

/// A record is believed only as a whole. What the parser says may quote it, so it is not passed on.
fn parse(tenant: &str, record: &str) -> Result<Cell> {
    let damaged = || invalid("the cell registry is damaged");
    let cell: Cell = serde_json::from_str(record).map_err(|_| damaged())?;
    if cell.tenant_id != tenant || cell.check().is_err() {
        return Err(damaged());
    }
    Ok(cell)
}

fn invalid(why: &str) -> Error {
    Error::new(Kind::Input, why)
}
