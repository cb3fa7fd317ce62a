//! Receipts on disk: `receipts/<run id>.json`, and `latest.json` beside them.
//!
//! A receipt is opened before the first change and replaced as a whole each time it grows, so that a
//! run that was killed leaves one that says how far it came. `latest.json` is a second name of the newest
//! one, where the file system has hard links. Reading needs no lock.

#![expect(
    clippy::disallowed_methods,
    reason = "this is where receipts are written"
)]

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Lock, State};
use crate::digest::sha256;
use crate::error::{Error, Kind, Result};
use crate::world::fail_point;

/// How many receipts are kept.
pub const KEPT: usize = 50;

/// All that is read of a receipt to know whose it is.
#[derive(Default, Deserialize)]
struct Named {
    run_id: String,
}

impl State {
    fn receipts_dir(&self) -> PathBuf {
        self.dir.join("receipts")
    }

    /// Where the receipt of a run is.
    #[must_use]
    pub fn receipt_path(&self, run_id: &str) -> PathBuf {
        self.receipts_dir().join(format!("{run_id}.json"))
    }

    /// Writes the receipt of a run, and makes it the latest one.
    ///
    /// # Errors
    /// When it cannot be made durable: a run without a receipt must not go on.
    pub fn write_receipt(
        &self,
        run_id: &str,
        receipt: &impl Serialize,
        _lock: &Lock,
    ) -> Result<()> {
        let path = self.receipt_path(run_id);
        super::replace("receipt", &path, &bytes(receipt)?)?;
        super::name("latest", &path, &self.latest_path())
    }

    fn latest_path(&self) -> PathBuf {
        self.receipts_dir().join("latest.json")
    }

    /// Makes the latest receipt what its run last wrote: a run that was killed between its two files left an older one.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn heal_latest(&self, _lock: &Lock) -> Result<()> {
        let path = self.latest_path();
        let Some(latest) = super::read(&path)? else {
            return Ok(());
        };
        let Named { run_id } = serde_json::from_slice(&latest).unwrap_or_default();
        if super::scope::identifier("run id", &run_id).is_err() {
            return Ok(());
        }
        let own = self.receipt_path(&run_id);
        if super::is_same_file(&own, &path) {
            return Ok(());
        }
        match super::read(&own)? {
            Some(bytes) if bytes != latest => super::name("latest", &own, &path),
            _ => Ok(()),
        }
    }

    /// Removes the oldest receipts past [`KEPT`]. `newest_first` are the runs as the audit chain orders them: a
    /// clock that was set back must not make the newest the oldest.
    ///
    /// # Errors
    /// When the folder cannot be read, or a file not removed.
    pub fn prune_receipts(&self, newest_first: &[String], _lock: &Lock) -> Result<()> {
        for id in super::in_order(self.receipt_ids()?, newest_first)
            .iter()
            .skip(KEPT)
        {
            fail_point("receipts.before-prune");
            let path = self.receipt_path(id);
            std::fs::remove_file(&path)
                .map_err(|error| Error::io(format!("cannot remove {}", path.display()), error))?;
        }
        Ok(())
    }

    /// The ids of the runs that left a receipt, the newest first.
    ///
    /// # Errors
    /// When the folder is there and cannot be read.
    pub fn receipt_ids(&self) -> Result<Vec<String>> {
        let dir = self.receipts_dir();
        let failed = |error| Error::io(format!("cannot read {}", dir.display()), error);
        let entries = match std::fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut ids = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name();
            if let Some(id) = name.to_str().and_then(|name| name.strip_suffix(".json"))
                && id != "latest"
                && !id.starts_with('.')
            {
                ids.push(id.to_owned());
            }
        }
        // A run id is a UUID of version 7: its text sorts by time.
        ids.sort_unstable_by(|a, b| b.cmp(a));
        Ok(ids)
    }

    /// The receipt of a run; `latest` names the newest.
    ///
    /// # Errors
    /// When the file cannot be read or is not JSON.
    pub fn read_receipt(&self, run_id: &str) -> Result<Option<Value>> {
        if run_id.is_empty() || run_id.contains('/') || run_id.starts_with('.') {
            return Err(
                Error::new(Kind::Usage, format!("{run_id:?} is not the id of a run"))
                    .with_hint("`update receipt list` names the runs"),
            );
        }
        let path = self.receipt_path(run_id);
        let Some(bytes) = super::read(&path)? else {
            return Ok(None);
        };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| {
            Error::new(Kind::Input, format!("{} is not a receipt", path.display()))
                .with_source(error)
        })
    }

    /// The bytes of a receipt as they stand on disk.
    ///
    /// # Errors
    /// When the file is there and cannot be read.
    pub fn receipt_bytes(&self, run_id: &str) -> Result<Option<Vec<u8>>> {
        super::read(&self.receipt_path(run_id))
    }

    /// SHA-256 of the newest receipt as it stands on disk, for the next one to name as its parent.
    ///
    /// # Errors
    /// When the file is there and cannot be read.
    pub fn latest_digest(&self) -> Result<Option<String>> {
        Ok(super::read(&self.latest_path())?.map(|bytes| sha256(&bytes)))
    }
}

/// A receipt as it is written.
///
/// # Errors
/// Never at present: every receipt is JSON.
pub fn bytes(receipt: &impl Serialize) -> Result<Vec<u8>> {
    let text = serde_json::to_string_pretty(receipt)
        .map_err(|error| Error::new(Kind::Io, "cannot write the receipt").with_source(error))?;
    let mut bytes = crate::screen::visible_json(&text).into_owned().into_bytes();
    bytes.push(b'\n');
    Ok(bytes)
}

/// SHA-256 of a receipt's bytes without the head of the audit chain that it names: what the closing event of
/// its run says, which is that head.
#[must_use]
pub fn seal(bytes: &[u8]) -> String {
    // A receipt is written with two spaces a level, so that this line can only be the receipt's own.
    let start: &[u8] = b"\n  \"audit_head\": ";
    let Some(at) = bytes
        .windows(start.len())
        .position(|window| window == start)
    else {
        return sha256(bytes);
    };
    let (before, rest) = bytes.split_at(at + start.len());
    let end = rest.iter().position(|byte| *byte == b'\n');
    let after = end.map_or(&[][..], |end| &rest[end..]);
    sha256(&[before, b"null,", after].concat())
}
