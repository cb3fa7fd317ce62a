//! Snapshots: what a run is about to write over, copied first.
//!
//! One run makes one pack: `snapshots/<run id>/data` holds the bytes one after another, and
//! `index.json` says which file of which home each stretch is, with its digest, mode and owner. Two
//! files mean two syncs, whatever the number of homes. A pack is read back before it counts.

#![expect(
    clippy::disallowed_methods,
    reason = "this is where snapshots are written"
)]

use std::fs::File;
use std::io::{BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::receipts::digest;
use super::{Lock, State};
use crate::error::{Error, Kind, Result};
use crate::world::World;

/// How many runs' snapshots are kept.
pub const KEPT: usize = 20;

/// One file of one home, as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The home's id.
    pub home: String,
    /// The file, relative to the home.
    pub path: String,
    /// Where its bytes start in the pack.
    pub offset: u64,
    /// How many there are.
    pub length: u64,
    /// SHA-256 of them; `None` where there was no such file.
    pub sha256: Option<String>,
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// A pack that is being written.
#[derive(Debug)]
pub struct Pack {
    dir: PathBuf,
    data: BufWriter<File>,
    written: u64,
    entries: Vec<Entry>,
}

impl State {
    fn pack_dir(&self, run_id: &str) -> PathBuf {
        self.dir.join("snapshots").join(run_id)
    }

    /// Starts the pack of a run.
    ///
    /// # Errors
    /// When its folder or file cannot be made.
    pub fn start_pack(&self, world: &World, run_id: &str, _lock: &Lock) -> Result<Pack> {
        let dir = self.pack_dir(run_id);
        super::make_private_dir(world, &dir)?;
        let data = super::create_private(&dir.join("data"))?;
        Ok(Pack {
            dir,
            data: BufWriter::with_capacity(1 << 18, data),
            written: 0,
            entries: Vec::new(),
        })
    }

    /// The index of a run's pack.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub fn pack_index(&self, run_id: &str) -> Result<Vec<Entry>> {
        let path = self.pack_dir(run_id).join("index.json");
        let bytes = super::read(&path)?
            .ok_or_else(|| Error::new(Kind::Input, format!("run {run_id} left no snapshot")))?;
        serde_json::from_slice(&bytes).map_err(|error| {
            Error::new(Kind::Input, format!("{} is damaged", path.display())).with_source(error)
        })
    }

    /// The bytes of one entry of a run's pack, checked against its digest.
    ///
    /// # Errors
    /// When they cannot be read, or are not what was written.
    pub fn pack_bytes(&self, run_id: &str, entry: &Entry) -> Result<Vec<u8>> {
        let path = self.pack_dir(run_id).join("data");
        let failed = |error| Error::io(format!("cannot read {}", path.display()), error);
        let mut file = File::open(&path).map_err(failed)?;
        file.seek(SeekFrom::Start(entry.offset)).map_err(failed)?;
        let mut bytes = Vec::new();
        file.take(entry.length)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
        if entry.sha256.as_deref() != Some(digest(&bytes).as_str()) {
            return Err(Error::new(
                Kind::Input,
                format!(
                    "the snapshot of {} in {} is damaged",
                    entry.path,
                    path.display()
                ),
            ));
        }
        Ok(bytes)
    }

    /// Removes the oldest packs past [`KEPT`].
    ///
    /// # Errors
    /// When the folder cannot be read, or a pack not removed.
    pub fn prune_packs(&self, _lock: &Lock) -> Result<()> {
        let dir = self.dir.join("snapshots");
        let failed = |error| Error::io(format!("cannot prune {}", dir.display()), error);
        let mut runs: Vec<PathBuf> = std::fs::read_dir(&dir)
            .map_err(failed)?
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .collect();
        runs.sort_unstable_by(|a, b| b.cmp(a));
        for run in runs.into_iter().skip(KEPT) {
            std::fs::remove_dir_all(&run).map_err(failed)?;
        }
        Ok(())
    }
}

impl Pack {
    /// Adds a file as it was; `bytes` is `None` where there is no such file yet.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(
        &mut self,
        home: &str,
        path: &str,
        bytes: Option<&[u8]>,
        mode: u32,
        owner: (u32, u32),
    ) -> Result<()> {
        let content = bytes.unwrap_or_default();
        self.data.write_all(content).map_err(|error| {
            Error::io(
                format!("cannot write {}", self.dir.join("data").display()),
                error,
            )
        })?;
        let length = content.len() as u64;
        self.entries.push(Entry {
            home: home.to_owned(),
            path: path.to_owned(),
            offset: self.written,
            length,
            sha256: bytes.map(digest),
            mode,
            uid: owner.0,
            gid: owner.1,
        });
        self.written += length;
        Ok(())
    }

    /// Makes the pack durable and reads it back.
    ///
    /// # Errors
    /// When it cannot be synced, or what is read is not what was written: nothing may be changed then.
    pub fn finish(mut self) -> Result<Vec<Entry>> {
        let path = self.dir.join("data");
        let failed = |error| Error::io(format!("cannot write {}", path.display()), error);
        self.data.flush().map_err(failed)?;
        let mut file = self
            .data
            .into_inner()
            .map_err(|error| failed(error.into_error()))?;
        file.sync_all().map_err(failed)?;
        let index = serde_json::to_vec(&self.entries).map_err(|error| {
            Error::new(Kind::Io, "cannot write the snapshot's index").with_source(error)
        })?;
        super::replace(&self.dir.join("index.json"), &index)?;
        if let Some(parent) = self.dir.parent() {
            super::sync_dir(parent)?;
        }
        file.rewind().map_err(failed)?;
        let mut bytes = Vec::new();
        for entry in &self.entries {
            bytes.clear();
            (&mut file)
                .take(entry.length)
                .read_to_end(&mut bytes)
                .map_err(failed)?;
            if entry.sha256.is_some() && entry.sha256.as_deref() != Some(digest(&bytes).as_str()) {
                return Err(Error::new(
                    Kind::Io,
                    format!("{} does not read back as it was written", path.display()),
                ));
            }
        }
        Ok(self.entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::time::Duration;

    fn state(dir: &Path) -> (World, State, Lock) {
        let world = World::read().expect("this machine has /proc");
        let state = State::at(&dir.join("state"));
        let lock = Lock::take(&world, &dir.join("run/lock"), "r", Duration::ZERO).expect("free");
        state.prepare(&world, &lock).expect("a new folder");
        (world, state, lock)
    }

    #[test]
    fn a_pack_gives_back_each_file_and_notices_damage() {
        let dir = tempfile::tempdir().expect("a folder");
        let (world, state, lock) = state(dir.path());
        let mut pack = state.start_pack(&world, "run", &lock).expect("new");
        pack.add("h1", "config.yaml", Some(b"a: 1\n"), 0o600, (1, 2))
            .expect("room");
        pack.add("h1", ".env", None, 0, (0, 0)).expect("room");
        pack.add("h2", "config.yaml", Some(b"b: 2\n"), 0o640, (3, 4))
            .expect("room");
        let entries = pack.finish().expect("durable");
        assert_eq!(state.pack_index("run").expect("there"), entries);
        assert_eq!(
            state.pack_bytes("run", &entries[2]).expect("whole"),
            b"b: 2\n"
        );
        assert_eq!(entries[1].sha256, None);
        std::fs::write(dir.path().join("state/snapshots/run/data"), b"a: 1\nb: 3\n").expect("ours");
        assert!(state.pack_bytes("run", &entries[2]).is_err());
    }

    #[test]
    fn a_state_folder_that_others_can_write_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().expect("a folder");
        let (world, state, lock) = state(dir.path());
        std::fs::set_permissions(state.dir(), std::fs::Permissions::from_mode(0o777))
            .expect("ours");
        let error = state.prepare(&world, &lock).expect_err("refused");
        assert_eq!(error.kind(), Kind::Refused);
    }

    #[test]
    fn only_the_newest_receipts_are_kept() {
        let dir = tempfile::tempdir().expect("a folder");
        let (_, state, lock) = state(dir.path());
        for number in 0..60 {
            let id = format!("{number:03}");
            state
                .write_receipt(&id, &serde_json::json!({"run_id": id}), &lock)
                .expect("room");
        }
        state.prune_receipts(&lock).expect("ours");
        let ids = state.receipt_ids().expect("ours");
        assert_eq!(
            (ids.len(), ids[0].as_str()),
            (super::super::receipts::KEPT, "059")
        );
        assert_eq!(
            state.read_receipt("latest").expect("there"),
            state.read_receipt("059").expect("there")
        );
        assert!(state.read_receipt("../x").is_err());
    }
}
