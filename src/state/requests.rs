//! Requests: a name that an asker gives a run, so that asking twice does it once.
//!
//! Who holds the run's lock asks [`Store::admit`]. The first one of a name is [`Admission::New`]; when it
//! ended, its receipt and exit status are kept with it, and everybody after gets those. A name whose run was
//! killed is admitted again: what is left of it is done. The same name for another content is a conflict.
//! A name is compared exactly.

use rusqlite::{OptionalExtension as _, Transaction, params};
use serde_json::Value;

use super::audit::millis;
use super::db::{Store, storage, unavailable};
use super::scope;
use crate::digest::sha256;
use crate::error::{Error, Kind, Result};
use crate::world::{self, World};

/// How many days a request is kept, where the site says nothing.
pub const KEPT_DAYS: u32 = 7;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its name.
    pub id: String,
    /// SHA-256 of what it asks for.
    pub content: String,
}

/// What became of asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// It is to be done now.
    New,
    /// It was done: its receipt as it was written, and its exit status.
    Done {
        /// The run that did it.
        run: String,
        /// The receipt's bytes.
        receipt: Vec<u8>,
        /// How the command ended.
        exit_status: u8,
    },
}

impl Request {
    /// A request for what `content` says; only what decides what a run does may be in it.
    ///
    /// # Errors
    /// When the name is not canonical.
    pub fn new(id: &str, content: &Value) -> Result<Self> {
        scope::identifier("request id", id)?;
        let text = serde_jcs::to_vec(content)
            .map_err(|_| Error::new(Kind::Input, "the request's content is not JSON"))?;
        Ok(Self {
            id: id.to_owned(),
            content: sha256(&text),
        })
    }
}

impl Store {
    /// Refuses a request whose name stands for another content; asks nothing else, and waits for nobody.
    ///
    /// # Errors
    /// `Input` for a conflict.
    pub fn check_request(&self, request: &Request) -> Result<()> {
        let content: Option<String> = self
            .connection()
            .query_row(
                "SELECT content FROM requests WHERE id = ?1",
                [&request.id],
                |row| row.get(0),
            )
            .optional()
            .map_err(unavailable)?;
        match content {
            Some(content) if content != request.content => Err(conflict(&request.id)),
            _ => Ok(()),
        }
    }

    /// Admits a request for `run`, or says what it came to. Only who holds the lock of runs may ask, so that a
    /// request without an end is one whose run was killed.
    ///
    /// # Errors
    /// `Input` for a conflict; `Locked` while another process works on it.
    pub fn admit(
        &mut self,
        world: &World,
        request: &Request,
        run: &str,
        worker: &str,
    ) -> Result<Admission> {
        type Row = (String, String, String, Option<u8>, Option<Vec<u8>>);
        self.change("request.admit", |transaction| {
            let known: Option<Row> = transaction
                .query_row(
                    "SELECT content, run, worker, exit_status, receipt FROM requests WHERE id = ?1",
                    [&request.id],
                    |row| {
                        Ok((
                            row.get(0)?,
                            row.get(1)?,
                            row.get(2)?,
                            row.get(3)?,
                            row.get(4)?,
                        ))
                    },
                )
                .optional()
                .map_err(unavailable)?;
            match known {
                Some((content, ..)) if content != request.content => {
                    return Err(conflict(&request.id));
                }
                Some((_, run, _, Some(exit_status), receipt)) => {
                    let receipt = receipt.ok_or_else(storage)?;
                    return Ok(Admission::Done {
                        run,
                        receipt,
                        exit_status,
                    });
                }
                Some((_, _, other, None, _))
                    if other != worker && super::jobs::lives(world, &other) =>
                {
                    return Err(Error::new(
                        Kind::Locked,
                        format!("another process works on request {}", request.id),
                    ));
                }
                _ => {}
            }
            transaction
                .execute(
                    "INSERT INTO requests (id, content, run, worker, admitted_at)
                     VALUES (?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT (id) DO UPDATE SET run = ?3, worker = ?4",
                    params![
                        request.id,
                        request.content,
                        run,
                        worker,
                        millis(world::now())
                    ],
                )
                .map_err(unavailable)?;
            Ok(Admission::New)
        })
    }

    /// Forgets a request that came to nothing, so that it may be asked again.
    ///
    /// # Errors
    /// When the storage is not available.
    pub fn withdraw(&mut self, request: &Request) -> Result<()> {
        self.change("request.withdraw", |transaction| {
            transaction
                .execute(
                    "DELETE FROM requests WHERE id = ?1 AND finished_at IS NULL",
                    [&request.id],
                )
                .map(|_| ())
                .map_err(unavailable)
        })
    }

    /// Removes answered requests older than `days`.
    ///
    /// # Errors
    /// When the storage is not available.
    pub fn purge_requests(&mut self, days: u32) -> Result<usize> {
        let kept = i64::from(days) * 24 * 60 * 60 * 1000;
        let before = millis(world::now()) - kept;
        self.change("request.purge", |transaction| {
            transaction
                .execute("DELETE FROM requests WHERE finished_at < ?1", [before])
                .map_err(unavailable)
        })
    }
}

/// Keeps what a request came to, in the transaction that closes its run.
///
/// # Errors
/// When the storage is not available: the request is still open then, and is done again.
pub fn answer(
    transaction: &Transaction<'_>,
    request: &Request,
    receipt: &[u8],
    exit_status: u8,
) -> Result<()> {
    transaction
        .execute(
            "UPDATE requests SET finished_at = ?2, exit_status = ?3, receipt = ?4 WHERE id = ?1",
            params![request.id, millis(world::now()), exit_status, receipt],
        )
        .map(|_| ())
        .map_err(unavailable)
}

fn conflict(id: &str) -> Error {
    Error::new(
        Kind::Input,
        format!("conflict: request {id} asked for something else before"),
    )
    .with_hint("give another --request-id")
}
