//! Jobs: the work of a run as rows that outlive it, so that a killed run is resumed and not repeated.
//!
//! ```text
//! queued --claim--> running --finish--> completed | failed | cancelled
//!    ^                 |
//!    +------reap-------+   when the worker's incarnation is gone; the attempt counts up
//! ```
//!
//! A claim takes what is queued, and nothing else; it names its scope exactly. Only the reaper gives a running
//! job back, so that two runs can never do one job at a time. What is proved on the live fleet decides
//! whether a job is still to be done: this table only says who does it.

use rusqlite::{OptionalExtension as _, Row, Transaction, params};
use serde::{Deserialize, Serialize};

use super::audit::millis;
use super::db::{Store, storage, unavailable};
use super::scope::{self, Scope};
use crate::error::{Error, Kind, Result};
use crate::fleet::procfs;
use crate::world::{self, World};

/// What asked for work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A request whose sender was authenticated.
    Request,
    /// The local command.
    Command,
    /// A sign of life.
    Heartbeat,
    /// Another service.
    Service,
    /// This program by itself.
    Internal,
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// To be done.
    Queued,
    /// Somebody does it.
    Running,
    /// Done.
    Completed,
    /// Not done, and why stands in the receipt.
    Failed,
    /// Not to be done any more.
    Cancelled,
}

impl JobState {
    const fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        [
            Self::Queued,
            Self::Running,
            Self::Completed,
            Self::Failed,
            Self::Cancelled,
        ]
        .into_iter()
        .find(|state| state.word() == word)
    }
}

/// Work to be queued.
#[derive(Debug, Clone)]
pub struct Work {
    /// The request or run that asks for it.
    pub event: String,
    /// Which stage of a run.
    pub stage: String,
    /// Which home or runtime, by its id.
    pub subject: String,
    /// Whose it is: a profile's, a cell's or a tenant's.
    pub scope: Scope,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its number.
    pub id: i64,
    /// The request or run that asked for it.
    pub event: String,
    /// Which stage of a run.
    pub stage: String,
    /// Which home or runtime, by its id.
    pub subject: String,
    /// Where it stands.
    pub state: JobState,
    /// How often it was given out again; a finish names it.
    pub attempt: i64,
    /// The incarnation of who does it.
    pub worker: Option<String>,
    /// Whose it is.
    pub scope: Scope,
}

const COLUMNS: &str = "id, event, stage, subject, state, attempt, worker, tenant, cell, profile";

impl Job {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let word: String = row.get(4)?;
        Ok(Self {
            id: row.get(0)?,
            event: row.get(1)?,
            stage: row.get(2)?,
            subject: row.get(3)?,
            state: JobState::parse(&word).ok_or(rusqlite::Error::InvalidQuery)?,
            attempt: row.get(5)?,
            worker: row.get(6)?,
            scope: {
                let (tenant, cell, profile): (String, String, String) =
                    (row.get(7)?, row.get(8)?, row.get(9)?);
                match (cell.is_empty(), profile.is_empty()) {
                    (true, _) => Scope::Tenant(tenant),
                    (false, true) => Scope::Cell(tenant, cell),
                    (false, false) => Scope::Profile(tenant, cell, profile),
                }
            },
        })
    }
}

/// The incarnation of this process as a job names it: boot, pid and start.
///
/// # Errors
/// When `/proc` does not say when this process started.
pub fn worker(world: &World) -> Result<String> {
    let ticks = procfs::start_ticks(world.pid)
        .map_err(|error| Error::io("cannot read /proc/self/stat", error))?
        .unwrap_or_default();
    Ok(format!("{}:{}:{ticks}", world.boot_id, world.pid))
}

/// Whether the incarnation that a job names still lives. What cannot be read is taken to live.
#[must_use]
pub fn lives(world: &World, worker: &str) -> bool {
    let mut parts = worker.split(':');
    let (Some(boot), Some(pid), Some(ticks)) = (
        parts.next(),
        parts.next().and_then(|pid| pid.parse().ok()),
        parts.next().and_then(|ticks| ticks.parse::<u64>().ok()),
    ) else {
        return false;
    };
    boot == world.boot_id
        && match procfs::start_ticks(pid) {
            Ok(start) => start == Some(ticks),
            Err(_) => true,
        }
}

impl Store {
    /// Queues work that something asks for, all of it or nothing.
    ///
    /// # Errors
    /// `Denied` for an origin that may not ask; `Input` for a duplicate or what is not canonical.
    pub fn queue(&mut self, origin: Origin, work: &[Work]) -> Result<Vec<i64>> {
        self.change("jobs.queue", |transaction| queue(transaction, origin, work))
    }

    /// Takes one queued job, exactly that of this scope.
    ///
    /// # Errors
    /// When the storage is not available. `None`: it is not there to be taken.
    pub fn claim(&mut self, id: i64, scope: &Scope, worker: &str) -> Result<Option<Job>> {
        let (tenant, cell, profile) = parts(scope)?;
        self.change("jobs.claim", |transaction| {
            transaction
                .query_row(
                    &format!(
                        "UPDATE jobs SET state = 'running', worker = ?2
                         WHERE id = ?1 AND state = 'queued'
                           AND tenant = ?3 AND cell = ?4 AND profile = ?5
                         RETURNING {COLUMNS}"
                    ),
                    params![id, worker, tenant, cell, profile],
                    Job::read,
                )
                .optional()
                .map_err(unavailable)
        })
    }

    /// Ends a job that was claimed.
    ///
    /// # Errors
    /// `Denied` when it was given to somebody else since: the attempt is an older one.
    pub fn finish(&mut self, id: i64, attempt: i64, state: JobState) -> Result<()> {
        self.change("jobs.finish", |transaction| {
            finish(transaction, &[(id, attempt, state)])
        })
    }

    /// Gives back every running job whose worker is gone.
    ///
    /// # Errors
    /// When the storage is not available.
    pub fn reap(&mut self, world: &World) -> Result<usize> {
        self.change("jobs.reap", |transaction| {
            let mut statement = transaction
                .prepare("SELECT DISTINCT worker FROM jobs WHERE state = 'running'")
                .map_err(unavailable)?;
            let workers: Vec<Option<String>> = statement
                .query_map([], |row| row.get(0))
                .and_then(Iterator::collect)
                .map_err(unavailable)?;
            let mut reaped = 0;
            for worker in workers {
                if worker.as_deref().is_some_and(|worker| lives(world, worker)) {
                    continue;
                }
                reaped += transaction
                    .execute(
                        "UPDATE jobs SET state = 'queued', worker = NULL, attempt = attempt + 1
                         WHERE state = 'running' AND worker IS ?1",
                        [&worker],
                    )
                    .map_err(unavailable)?;
            }
            Ok(reaped)
        })
    }

    /// A job as it stands.
    ///
    /// # Errors
    /// When the storage is not available.
    pub fn job(&self, id: i64) -> Result<Option<Job>> {
        self.connection()
            .query_row(
                &format!("SELECT {COLUMNS} FROM jobs WHERE id = ?1"),
                [id],
                Job::read,
            )
            .optional()
            .map_err(unavailable)
    }

    /// Every job that is queued or running.
    ///
    /// # Errors
    /// When the storage is not available.
    pub fn open_jobs(&self) -> Result<Vec<Job>> {
        let mut statement = self
            .connection()
            .prepare(&format!(
                "SELECT {COLUMNS} FROM jobs WHERE state IN ('queued', 'running') ORDER BY id"
            ))
            .map_err(unavailable)?;
        let rows = statement.query_map([], Job::read).map_err(unavailable)?;
        rows.collect::<rusqlite::Result<_>>().map_err(unavailable)
    }
}

/// Queues within a transaction that also changes something else.
///
/// # Errors
/// As [`Store::queue`].
pub fn queue(transaction: &Transaction<'_>, origin: Origin, work: &[Work]) -> Result<Vec<i64>> {
    if !matches!(origin, Origin::Request | Origin::Command) {
        return Err(Error::new(
            Kind::Denied,
            "only an authenticated request or the local command makes a job",
        ));
    }
    let mut insert = transaction
        .prepare_cached(
            "INSERT INTO jobs (event, stage, subject, tenant, cell, profile, state, attempt, queued_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'queued', 0, ?7)
             ON CONFLICT DO NOTHING RETURNING id",
        )
        .map_err(unavailable)?;
    let at = millis(world::now());
    let mut ids = Vec::with_capacity(work.len());
    for work in work {
        scope::identifier("event", &work.event)?;
        scope::identifier("stage", &work.stage)?;
        let (tenant, cell, profile) = parts(&work.scope)?;
        let id = insert
            .query_row(
                params![
                    work.event,
                    work.stage,
                    work.subject,
                    tenant,
                    cell,
                    profile,
                    at
                ],
                |row| row.get(0),
            )
            .optional()
            .map_err(unavailable)?
            .ok_or_else(|| {
                Error::new(
                    Kind::Input,
                    format!("conflict: {} made this job before", work.event),
                )
            })?;
        ids.push(id);
    }
    Ok(ids)
}

/// Takes every queued job of a stage whose subject is named, in one transaction with what else changes. Jobs that an
/// earlier run left come first: they are the same work.
///
/// # Errors
/// When the storage is not available.
pub fn claim_stage(
    transaction: &Transaction<'_>,
    stage: &str,
    subjects: &[&str],
    worker: &str,
) -> Result<Vec<Job>> {
    let mut update = transaction
        .prepare_cached(&format!(
            "UPDATE jobs SET state = 'running', worker = ?3
             WHERE state = 'queued' AND stage = ?1 AND subject = ?2 RETURNING {COLUMNS}"
        ))
        .map_err(unavailable)?;
    let mut jobs = Vec::new();
    for subject in subjects {
        let rows = update
            .query_map(params![stage, subject, worker], Job::read)
            .map_err(unavailable)?;
        for job in rows {
            jobs.push(job.map_err(unavailable)?);
        }
    }
    Ok(jobs)
}

/// Ends jobs within a transaction that also changes something else.
///
/// # Errors
/// `Denied` when one of them was given to somebody else since.
pub fn finish(transaction: &Transaction<'_>, ends: &[(i64, i64, JobState)]) -> Result<()> {
    let mut update = transaction
        .prepare_cached(
            "UPDATE jobs SET state = ?3, finished_at = ?4
             WHERE id = ?1 AND attempt = ?2 AND state IN ('running', 'queued')",
        )
        .map_err(unavailable)?;
    let at = millis(world::now());
    for (id, attempt, state) in ends {
        if matches!(state, JobState::Queued | JobState::Running) {
            return Err(storage());
        }
        let changed = update
            .execute(params![id, attempt, state.word(), at])
            .map_err(unavailable)?;
        if changed != 1 {
            return Err(Error::new(
                Kind::Denied,
                format!("job {id} is not ours any more: attempt {attempt} is over"),
            ));
        }
    }
    Ok(())
}

/// Removes jobs that ended before `before` (milliseconds since 1970).
///
/// # Errors
/// When the storage is not available.
pub fn purge(transaction: &Transaction<'_>, before: i64) -> Result<()> {
    transaction
        .execute(
            "DELETE FROM jobs WHERE state NOT IN ('queued', 'running') AND finished_at < ?1",
            [before],
        )
        .map(|_| ())
        .map_err(unavailable)
}

/// What a row says of a scope; a part that a wider scope does not have is empty.
fn parts(scope: &Scope) -> Result<(&str, &str, &str)> {
    scope.check()?;
    match scope {
        Scope::Tenant(tenant) => Ok((tenant, "", "")),
        Scope::Cell(tenant, cell) => Ok((tenant, cell, "")),
        Scope::Profile(tenant, cell, profile) => Ok((tenant, cell, profile)),
        Scope::Session(..) | Scope::Shared => Err(Error::new(
            Kind::Input,
            "a job belongs to a tenant, a cell or a profile",
        )),
    }
}
