//! The proof of a chain: walked from its beginning to its end, in the database or in an exported copy.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::BufRead;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::{CHECKPOINT, GENESIS, Head, render};
use crate::error::{Error, Kind, Result};
use crate::state::db::{Store, unavailable};
use crate::state::scope;

/// No exported line is longer: one event is at most a few kilobytes.
const LONGEST_LINE: u64 = 16 << 20;

/// A chain that was walked from its beginning to its end, and is whole.
#[derive(Debug, Clone)]
pub struct Chain {
    /// How many events it holds.
    pub events: u64,
    /// The first one's number: 1, unless it was cut.
    pub first: i64,
    /// Its end; `None` when it is empty.
    pub head: Option<Head>,
    /// What is older than this was cut off (milliseconds since 1970).
    pub cut_before: Option<i64>,
    hashes: BTreeSet<[u8; 32]>,
}

impl Chain {
    /// Whether an event with this hash is in the chain: how a receipt's `audit_head` is checked.
    #[must_use]
    pub fn has(&self, hash: &str) -> bool {
        unhex(hash).is_some_and(|hash| self.hashes.contains(&hash))
    }
}

impl Store {
    /// Walks the whole chain.
    ///
    /// # Errors
    /// `Input` when it is broken, and where; `Io` when the storage is not available.
    pub fn verify(&self) -> Result<Chain> {
        let mut walk = Walk::default();
        let mut statement = self
            .connection()
            .prepare("SELECT seq, at, run, tenant, kind, payload, previous, hash FROM audit ORDER BY seq")
            .map_err(unavailable)?;
        let mut rows = statement.query([]).map_err(unavailable)?;
        let mut text = String::new();
        while let Some(row) = rows.next().map_err(unavailable)? {
            let seq: i64 = row.get(0).map_err(unavailable)?;
            let at: i64 = row.get(1).map_err(unavailable)?;
            let column = |index: usize| {
                row.get_ref(index)
                    .map_err(unavailable)?
                    .as_str()
                    .map_err(|_| broken(seq, "is not text"))
            };
            let payload = column(5)?;
            let kind = column(4)?;
            let previous = column(6)?;
            for (what, id) in [("run", column(2)?), ("tenant", column(3)?), ("kind", kind)] {
                scope::identifier(what, id).map_err(|_| broken(seq, "has a bad identifier"))?;
            }
            render(
                &mut text,
                seq,
                at,
                (column(2)?, column(3)?, kind),
                payload,
                previous,
            );
            let is_checkpoint = kind == CHECKPOINT;
            walk.step(
                seq,
                previous,
                &text,
                column(7)?,
                is_checkpoint.then_some(payload),
            )?;
            if serde_json::from_str::<IgnoredAny>(payload).is_err() {
                return Err(broken(seq, "has a payload that is not JSON"));
            }
        }
        walk.end()
    }

    /// Writes the whole chain, one line an event, in pieces.
    ///
    /// # Errors
    /// When the storage is not available.
    pub fn export(&self, write: &mut dyn FnMut(&str)) -> Result<()> {
        let mut statement = self
            .connection()
            .prepare("SELECT seq, at, run, tenant, kind, payload, previous, hash FROM audit ORDER BY seq")
            .map_err(unavailable)?;
        let mut rows = statement.query([]).map_err(unavailable)?;
        let (mut text, mut lines) = (String::new(), String::new());
        while let Some(row) = rows.next().map_err(unavailable)? {
            let seq = row.get(0).map_err(unavailable)?;
            let at = row.get(1).map_err(unavailable)?;
            let column = |index: usize| {
                row.get_ref(index)
                    .map_err(unavailable)?
                    .as_str()
                    .map_err(|_| broken(seq, "is not text"))
            };
            render(
                &mut text,
                seq,
                at,
                (column(2)?, column(3)?, column(4)?),
                column(5)?,
                column(6)?,
            );
            // Writing into a string cannot fail.
            let _ = writeln!(lines, "{} {text}", column(7)?);
            if lines.len() > 1 << 20 {
                write(&lines);
                lines.clear();
            }
        }
        write(&lines);
        Ok(())
    }
}

#[derive(Deserialize)]
struct Exported<'a> {
    seq: i64,
    previous: &'a str,
    kind: &'a str,
    payload: Value,
}

/// Walks an exported copy of a chain.
///
/// # Errors
/// `Input` when it is broken, and where; `Io` when it cannot be read.
pub fn verify_copy(mut copy: impl BufRead) -> Result<Chain> {
    let mut walk = Walk::default();
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        number += 1;
        std::io::Read::take(&mut copy, LONGEST_LINE)
            .read_until(b'\n', &mut line)
            .map_err(|error| Error::io("cannot read the copy", error))?;
        if line.is_empty() {
            return walk.end();
        }
        let not_ours = || {
            Error::new(
                Kind::Input,
                format!("line {number} of the copy is not an event of an audit chain"),
            )
        };
        let text = std::str::from_utf8(&line).map_err(|_| not_ours())?;
        let (hash, event) = text
            .strip_suffix('\n')
            .and_then(|text| text.split_once(' '))
            .ok_or_else(not_ours)?;
        let fields: Exported<'_> = serde_json::from_str(event).map_err(|_| not_ours())?;
        let payload = (fields.kind == CHECKPOINT).then(|| fields.payload.to_string());
        walk.step(fields.seq, fields.previous, event, hash, payload.as_deref())?;
    }
}

/// What a checkpoint says.
#[derive(Deserialize)]
struct Checkpoint {
    before: i64,
    hash: String,
    seq: i64,
}

/// The state of a walk along a chain.
#[derive(Default)]
struct Walk {
    first: Option<(i64, String)>,
    head: Option<Head>,
    events: u64,
    checkpoints: Vec<Checkpoint>,
    hashes: Vec<[u8; 32]>,
}

impl Walk {
    fn step(
        &mut self,
        seq: i64,
        previous: &str,
        text: &str,
        hash: &str,
        checkpoint: Option<&str>,
    ) -> Result<()> {
        match &self.head {
            None => self.first = Some((seq, previous.to_owned())),
            Some(head) if seq != head.seq + 1 => {
                return Err(broken(seq, &format!("follows event {}", head.seq)));
            }
            Some(head) if previous != head.hash => {
                return Err(broken(seq, "does not follow from the one before"));
            }
            Some(_) => {}
        }
        let bytes: [u8; 32] = <sha2::Sha256 as sha2::Digest>::digest(text.as_bytes()).into();
        if unhex(hash) != Some(bytes) {
            return Err(broken(seq, "is not what it was"));
        }
        if let Some(payload) = checkpoint {
            let checkpoint = serde_json::from_str(payload)
                .map_err(|_| broken(seq, "is a checkpoint that says nothing"))?;
            self.checkpoints.push(checkpoint);
        }
        self.hashes.push(bytes);
        self.events += 1;
        match &mut self.head {
            Some(head) => {
                head.seq = seq;
                head.hash.clear();
                head.hash.push_str(hash);
            }
            None => {
                self.head = Some(Head {
                    seq,
                    hash: hash.to_owned(),
                })
            }
        }
        Ok(())
    }

    fn end(self) -> Result<Chain> {
        let mut cut_before = None;
        let first = match self.first {
            None => 1,
            Some((1, previous)) if previous == GENESIS => 1,
            Some((seq, previous)) => {
                let vouched = self
                    .checkpoints
                    .iter()
                    .rev()
                    .find(|cut| cut.seq == seq - 1 && cut.hash == previous);
                let Some(cut) = vouched else {
                    return Err(broken(
                        seq,
                        "is the first, and no checkpoint vouches for that",
                    ));
                };
                cut_before = Some(cut.before);
                seq
            }
        };
        Ok(Chain {
            events: self.events,
            first,
            head: self.head,
            cut_before,
            hashes: self.hashes.into_iter().collect(),
        })
    }
}

fn broken(seq: i64, why: &str) -> Error {
    Error::new(
        Kind::Input,
        format!("the audit chain is broken: event {seq} {why}"),
    )
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let text = text.as_bytes();
    if text.len() != 64 {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}
