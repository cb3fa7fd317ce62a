//! The audit chain: every event of every run, each bound to the one before by its hash.
//!
//! An event's text is the canonical JSON (RFC 8785) of `at kind payload previous run seq tenant`; its hash is the
//! SHA-256 of that text, and `previous` is the hash of the event before, `GENESIS` for the first. Nothing
//! is ever changed in it. What is older than [`KEPT`] is cut off at its beginning, and the cut is
//! itself an event (`checkpoint`), which vouches for the new beginning. The chain does not prove that its own end is
//! whole: for that a receipt names the head as it was ([`Chain::has`]).
//!
//! Exported, an event is a line: its hash, a space, its text.

mod verify;

use std::fmt::Write as _;
use std::time::Duration;

use rusqlite::{OptionalExtension as _, Transaction, params};
use serde_json::{Value, json};

use super::db::{Store, storage, unavailable};
use super::scope;
use crate::digest::sha256;
use crate::error::{Error, Kind, Result};
use crate::world;
pub use verify::{Chain, verify_copy};

/// What the first event names as the one before it.
pub const GENESIS: &str = "GENESIS";

/// The tenant of what is no tenant's.
pub const HOST: &str = "host";

/// How long events are kept.
pub const KEPT: Duration = Duration::from_secs(400 * 24 * 60 * 60);

/// The kind of the event that vouches for a cut.
const CHECKPOINT: &str = "checkpoint";

/// RFC 8785 writes numbers as IEEE doubles: beyond this two integers would be one text.
const LARGEST: u64 = (1 << 53) - 1;

/// Something that happened, before it is in the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The run that it is part of, or what else caused it.
    pub run: String,
    /// Whose it is; [`HOST`] where nobody's.
    pub tenant: String,
    /// What happened.
    pub kind: String,
    /// The facts; numbers are integers.
    pub payload: Value,
}

/// Where a chain ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The last event's number.
    pub seq: i64,
    /// Its hash.
    pub hash: String,
}

impl Store {
    /// Appends events in one transaction, and says where the chain ends now.
    ///
    /// # Errors
    /// `Input` for an event that may not be in the chain; `Io` when the storage is not available. Then
    /// none of them is in it.
    pub fn append(&mut self, label: &str, events: &[Event]) -> Result<Option<Head>> {
        self.change(label, |transaction| append(transaction, events))
    }

    /// Where the chain ends.
    ///
    /// # Errors
    /// When the storage is not available.
    pub fn head(&self) -> Result<Option<Head>> {
        self.connection()
            .query_row(
                "SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1",
                [],
                |row| {
                    Ok(Head {
                        seq: row.get(0)?,
                        hash: row.get(1)?,
                    })
                },
            )
            .optional()
            .map_err(unavailable)
    }

    /// Cuts off what is older than `before` (milliseconds since 1970), at an event that says so. The
    /// newest event always stays.
    ///
    /// # Errors
    /// When the storage is not available.
    pub fn cut(&mut self, run: &str, before: i64) -> Result<Option<Head>> {
        self.change("audit.cut", |transaction| cut(transaction, run, before))
    }

    /// The runs that the chain knows, the newest first: by their order in the chain, which no clock can turn round.
    ///
    /// # Errors
    /// When the storage is not available.
    pub fn runs(&self) -> Result<Vec<String>> {
        let mut statement = self
            .connection()
            .prepare("SELECT run FROM audit WHERE kind = 'run-opened' ORDER BY seq DESC")
            .map_err(unavailable)?;
        let rows = statement
            .query_map([], |row| row.get(0))
            .map_err(unavailable)?;
        rows.collect::<rusqlite::Result<_>>().map_err(unavailable)
    }

    /// The payload of a run's first event of a kind.
    ///
    /// # Errors
    /// When the storage is not available.
    pub fn event(&self, run: &str, kind: &str) -> Result<Option<Value>> {
        let text: Option<String> = self
            .connection()
            .query_row(
                "SELECT payload FROM audit WHERE run = ?1 AND kind = ?2 ORDER BY seq LIMIT 1",
                [run, kind],
                |row| row.get(0),
            )
            .optional()
            .map_err(unavailable)?;
        text.map(|text| serde_json::from_str(&text).map_err(|_| storage()))
            .transpose()
    }
}

/// Appends within a transaction that also changes something else.
///
/// # Errors
/// As [`Store::append`].
pub fn append(transaction: &Transaction<'_>, events: &[Event]) -> Result<Option<Head>> {
    let mut head: Option<Head> = transaction
        .prepare_cached("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1")
        .and_then(|mut last| {
            last.query_row([], |row| {
                Ok(Head {
                    seq: row.get(0)?,
                    hash: row.get(1)?,
                })
            })
            .optional()
        })
        .map_err(unavailable)?;
    let mut insert = transaction
        .prepare_cached("INSERT INTO audit VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")
        .map_err(unavailable)?;
    let at = millis(world::now());
    let mut text = String::new();
    for event in events {
        let payload = event.check()?;
        let (seq, previous) = match &head {
            Some(head) => (head.seq + 1, head.hash.as_str()),
            None => (1, GENESIS),
        };
        let ids = (&*event.run, &*event.tenant, &*event.kind);
        render(&mut text, seq, at, ids, &payload, previous);
        let hash = sha256(text.as_bytes());
        insert
            .execute(params![
                seq,
                at,
                event.run,
                event.tenant,
                event.kind,
                payload,
                previous,
                hash
            ])
            .map_err(unavailable)?;
        head = Some(Head { seq, hash });
    }
    Ok(head)
}

impl Event {
    /// Checks the event, and gives its payload as canonical JSON.
    fn check(&self) -> Result<String> {
        scope::identifier("run id", &self.run)?;
        scope::tenant(&self.tenant)?;
        scope::identifier("kind", &self.kind)?;
        if !has_integers_alone(&self.payload) {
            return Err(Error::new(
                Kind::Input,
                format!(
                    "the event {} holds a number that is not an exact integer",
                    self.kind
                ),
            ));
        }
        serde_jcs::to_string(&self.payload)
            .map_err(|_| Error::new(Kind::Input, format!("the event {} is not JSON", self.kind)))
    }
}

fn has_integers_alone(value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            let size = number
                .as_u64()
                .or_else(|| number.as_i64().map(i64::unsigned_abs));
            size.is_some_and(|size| size <= LARGEST)
        }
        Value::Array(values) => values.iter().all(has_integers_alone),
        Value::Object(values) => values.values().all(has_integers_alone),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

/// The canonical text of an event. Its keys are in order, its identifiers need no escapes, and its
/// payload is canonical already.
fn render(
    text: &mut String,
    seq: i64,
    at: i64,
    (run, tenant, kind): (&str, &str, &str),
    payload: &str,
    previous: &str,
) {
    text.clear();
    // Writing into a string cannot fail.
    let _ = write!(
        text,
        r#"{{"at":{at},"kind":"{kind}","payload":{payload},"previous":"{previous}","run":"{run}","seq":{seq},"tenant":"{tenant}"}}"#
    );
}

fn cut(transaction: &Transaction<'_>, run: &str, before: i64) -> Result<Option<Head>> {
    // A clock that was wrong once must not cut what came later: all up to here have to be old.
    let last: Option<(i64, String)> = transaction
        .query_row(
            "SELECT seq, hash FROM audit
             WHERE seq < coalesce((SELECT min(seq) FROM audit WHERE at >= ?1), (SELECT max(seq) FROM audit))
             ORDER BY seq DESC LIMIT 1",
            [before],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()
        .map_err(unavailable)?;
    let Some((seq, hash)) = last else {
        return Ok(None);
    };
    let head = append(
        transaction,
        &[Event {
            run: run.into(),
            tenant: HOST.into(),
            kind: CHECKPOINT.into(),
            payload: json!({"before": before, "hash": hash, "seq": seq}),
        }],
    )?;
    transaction
        .execute("DELETE FROM audit WHERE seq <= ?1", [seq])
        .map_err(unavailable)?;
    Ok(head)
}

/// A time as the chain writes it.
#[must_use]
pub fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
