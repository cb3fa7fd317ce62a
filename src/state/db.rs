//! The database of our state: how it is opened, brought to this release's schema, and changed.
//!
//! One SQLite file, `state.db`, 0600 from its first moment in the 0700 state folder; WAL, and every
//! commit synced. Any number of processes use it at once: a change is one immediate transaction, and
//! needs no run's lock. `plan`, `status` and `receipt show` never open it (reading a WAL database
//! writes). What the driver says never leaves this file: it may quote values.

#![expect(
    clippy::disallowed_methods,
    reason = "this is where the database's file is made, and its backup"
)]

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};
use rustix::fs::{FlockOperation, OFlags};

use crate::error::{Error, Kind, Result};
use crate::world::{World, fail_point};

/// The scripts that lead from one schema to the next; their number is the schema that this release writes.
const LADDER: &[&str] = &[include_str!("schema/1.sql"), include_str!("schema/2.sql")];

/// Stands in the file's header, so that another program's database is not taken for ours ("fupd").
const APPLICATION_ID: i64 = 0x6675_7064;

/// How long a transaction waits for another process's.
const BUSY_LIMIT: Duration = Duration::from_secs(60);

/// The open database.
pub struct Store {
    connection: Connection,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Store")
    }
}

impl Store {
    /// The database's file in a state folder.
    #[must_use]
    pub fn path(dir: &Path) -> PathBuf {
        dir.join("state.db")
    }

    /// Opens the database of the state folder `dir`, and makes either where it is missing.
    ///
    /// # Errors
    /// `Refused` when the folder or file is not ours alone, or a newer release wrote it; `Io` when the
    /// file is not a database, or cannot be written.
    pub fn open(world: &World, dir: &Path) -> Result<Self> {
        #[cfg(feature = "failpoints")]
        let _measured = crate::world::fail::Stretch::begin();
        super::make_private_dir(world, dir)?;
        // Two first runs must not both make the schema; the folder itself is locked, so no file is needed.
        let folder = File::open(dir)
            .map_err(|error| Error::io(format!("cannot open {}", dir.display()), error))?;
        rustix::fs::flock(&folder, FlockOperation::LockExclusive)
            .map_err(|error| Error::io(format!("cannot lock {}", dir.display()), error))?;
        let path = Self::path(dir);
        let is_new = make_file(&path)?;
        check_file(world, &path)?;
        if is_new {
            fail_point("database.made");
            super::sync_dir(dir)?;
        }
        let connection = connect(&path).map_err(unavailable)?;
        let mut store = Self { connection };
        store.climb(dir)?;
        Ok(store)
    }

    /// Opens the database only if it is there.
    ///
    /// # Errors
    /// As [`Store::open`]; `Input` when there is none.
    pub fn open_existing(world: &World, dir: &Path) -> Result<Self> {
        match std::fs::symlink_metadata(Self::path(dir)) {
            Ok(_) => Self::open(world, dir),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Error::new(
                Kind::Input,
                format!("{} holds no state yet", dir.display()),
            )
            .with_hint("the first run makes it; --state-dir names another folder")),
            Err(error) => Err(Error::io(
                format!("cannot look at {}", dir.display()),
                error,
            )),
        }
    }

    /// Brings an older schema to this release's, after a backup.
    fn climb(&mut self, dir: &Path) -> Result<()> {
        let pragma = |connection: &Connection, name: &str| {
            connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0))
        };
        let schema = pragma(&self.connection, "user_version").map_err(unavailable)?;
        let application = pragma(&self.connection, "application_id").map_err(unavailable)?;
        let newest = i64::try_from(LADDER.len()).unwrap_or(i64::MAX);
        if schema > newest {
            return Err(Error::new(
                Kind::Refused,
                format!(
                    "the state in {} is of schema {schema}, and this release knows {newest}",
                    dir.display()
                ),
            )
            .with_hint("use the release of update that wrote it, or a newer one"));
        }
        let tables: i64 = self
            .connection
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .map_err(unavailable)?;
        let is_ours = application == APPLICATION_ID || (schema == 0 && tables == 0);
        if !is_ours || schema < 0 {
            return Err(storage());
        }
        if schema == newest {
            return Ok(());
        }
        if schema > 0 {
            self.back_up(dir, schema)?;
        }
        let from = usize::try_from(schema).unwrap_or_default();
        self.change("schema", |transaction| {
            for script in &LADDER[from..] {
                transaction.execute_batch(script).map_err(unavailable)?;
            }
            transaction
                .pragma_update(None, "application_id", APPLICATION_ID)
                .and_then(|()| transaction.pragma_update(None, "user_version", newest))
                .map_err(unavailable)
        })
    }

    /// Copies the database as it is to `state.db.schema-N`, durable before anything of it changes.
    fn back_up(&self, dir: &Path, schema: i64) -> Result<()> {
        let target = dir.join(format!("state.db.schema-{schema}"));
        let failed = |error| Error::io(format!("cannot write {}", target.display()), error);
        // SQLite fills a file that is there and empty, and so keeps its mode.
        let copy = tempfile::Builder::new()
            .prefix(super::NEW)
            .tempfile_in(dir)
            .map_err(failed)?;
        let name = copy.path().to_str().ok_or_else(storage)?;
        fail_point("schema.before-backup");
        self.connection
            .execute("VACUUM INTO ?1", [name])
            .map_err(unavailable)?;
        copy.as_file().sync_all().map_err(failed)?;
        fail_point("schema.backup-written");
        copy.persist(&target).map_err(|error| failed(error.error))?;
        super::sync_dir(dir)?;
        fail_point("schema.backed-up");
        Ok(())
    }

    /// Does `work` in one immediate transaction: all of it is durable, or none of it happened. `label`
    /// names the change in tests.
    ///
    /// # Errors
    /// What `work` says, or that the storage is not available.
    pub fn change<T>(
        &mut self,
        label: &str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        #[cfg(feature = "failpoints")]
        let _measured = crate::world::fail::Stretch::begin();
        fail_point(format_args!("{label}.begin"));
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(unavailable)?;
        let result = work(&transaction)?;
        fail_point(format_args!("{label}.before-commit"));
        transaction.commit().map_err(unavailable)?;
        fail_point(format_args!("{label}.committed"));
        Ok(result)
    }

    /// For questions alone.
    pub(super) const fn connection(&self) -> &Connection {
        &self.connection
    }
}

fn make_file(path: &Path) -> Result<bool> {
    let made = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path);
    match made {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(Error::io(format!("cannot make {}", path.display()), error)),
    }
}

fn check_file(world: &World, path: &Path) -> Result<()> {
    let meta = std::fs::symlink_metadata(path).map_err(|_| storage())?;
    if !meta.is_file() {
        return Err(storage());
    }
    if meta.uid() != world.account.uid || meta.mode() & 0o077 != 0 {
        return Err(Error::new(
            Kind::Refused,
            format!("{} is not ours alone", path.display()),
        )
        .with_hint("it has to belong to us with mode 0600"));
    }
    Ok(())
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NOFOLLOW
            | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(BUSY_LIMIT)?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    // FULL also syncs the log at each commit, so that a commit survives a power cut (sqlite.org/pragma.html).
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}

/// What leaves the program when the storage does not do its work.
pub(super) fn storage() -> Error {
    Error::new(Kind::Io, "audit storage unavailable")
}

/// The driver's error as ours: why in our words, and nothing of the driver's.
#[expect(
    clippy::needless_pass_by_value,
    reason = "stands in `map_err`, which gives the error away"
)]
pub(super) fn unavailable(error: rusqlite::Error) -> Error {
    let why = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "no space is left",
        Some(ErrorCode::ReadOnly) => "it cannot be written",
        Some(ErrorCode::SystemIoFailure) => "it cannot be read or written",
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => "it is busy",
        _ => return storage(),
    };
    Error::new(Kind::Io, format!("audit storage unavailable: {why}"))
}
