//! Snapshots: what a run is about to write over, copied first.
//!
//! One run makes one pack: `snapshots/<run id>/data` holds the bytes one after another, and
//! `index.json` says which file of which home each stretch is, with its digest, mode and owner. Two
//! files mean two syncs, whatever the number of homes. A pack is read back before it counts.

#![expect(
    clippy::disallowed_methods,
    reason = "this is where snapshots are written"
)]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::scope::Scope;
use super::{Lock, State};
use crate::digest::sha256;
use crate::error::{Error, Kind, Result};
use crate::world::{World, fail_point};

/// How many runs' snapshots are kept, where nobody says.
pub const KEPT: usize = 20;

/// The version of a pack's index. The first was a bare list of entries, without scopes.
const SCHEMA: u32 = 2;

/// One file of one home, as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The home's id.
    pub home: String,
    /// The scope that it belongs to, by name: nobody else may read it.
    #[serde(default)]
    pub scope: String,
    /// The home's folder.
    #[serde(default)]
    pub folder: PathBuf,
    /// The home's version, as read.
    #[serde(default)]
    pub version: Option<String>,
    /// The file, relative to the home.
    pub path: String,
    /// Where its bytes start in the pack.
    pub offset: u64,
    /// How many there are.
    pub length: u64,
    /// SHA-256 of them; `None` where there was no such file.
    pub sha256: Option<String>,
    /// SHA-256 of what the run was about to write in its place; empty where it was about to remove it.
    #[serde(default)]
    pub sha256_after: String,
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

#[derive(Serialize, Deserialize)]
struct Index {
    schema: u32,
    entries: Vec<Entry>,
}

/// What a pack gets to know of one file.
#[derive(Debug, Clone, Copy)]
pub struct Copied<'a> {
    /// The home's id.
    pub home: &'a str,
    /// The scope that it belongs to.
    pub scope: &'a Scope,
    /// The home's folder.
    pub folder: &'a Path,
    /// The home's version, as read.
    pub version: Option<&'a str>,
    /// The file, relative to the home.
    pub path: &'a str,
    /// What it holds; `None` where there is no such file yet.
    pub bytes: Option<&'a [u8]>,
    /// SHA-256 of what will be written in its place; empty where it will be removed.
    pub sha256_after: &'a str,
    /// Permission bits.
    pub mode: u32,
    /// Owner and group.
    pub owner: (u32, u32),
}

/// A pack that is being written.
#[derive(Debug)]
pub struct Pack {
    dir: PathBuf,
    data: BufWriter<File>,
    written: u64,
    entries: Vec<Entry>,
}

impl Entry {
    /// SHA-256 of what the run left; `None` where it removed the file.
    #[must_use]
    pub fn left(&self) -> Option<&str> {
        Some(self.sha256_after.as_str()).filter(|digest| !digest.is_empty())
    }
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
        fail_point("snapshot.folder-made");
        let data = super::create_private(&dir.join("data"))?;
        fail_point("snapshot.file-made");
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
    /// `Input` when there is none, or it cannot be read; `Refused` when a newer release wrote it.
    pub fn pack_index(&self, run_id: &str) -> Result<Vec<Entry>> {
        super::scope::identifier("run id", run_id)?;
        let path = self.pack_dir(run_id).join("index.json");
        let bytes = super::read(&path)?
            .ok_or_else(|| Error::new(Kind::Input, format!("run {run_id} left no snapshot")))?;
        let damaged = || Error::new(Kind::Input, format!("{} is damaged", path.display()));
        let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(|_| damaged())?;
        if value.is_array() {
            return serde_json::from_value(value).map_err(|_| damaged());
        }
        let schema = value.get("schema").and_then(serde_json::Value::as_u64);
        match schema {
            Some(schema) if schema <= u64::from(SCHEMA) => {
                let index: Index = serde_json::from_value(value).map_err(|_| damaged())?;
                Ok(index.entries)
            }
            Some(schema) => Err(Error::new(
                Kind::Refused,
                format!(
                    "{} is of format {schema}, and {SCHEMA} is known",
                    path.display()
                ),
            )
            .with_hint("use the release of update that wrote it, or a newer one")),
            None => Err(damaged()),
        }
    }

    /// The bytes of one entry of a run's pack, checked against its digest, for who acts in `scope`.
    ///
    /// # Errors
    /// `Denied` when the entry belongs to another scope; else when they cannot be read, or are not what was
    /// written.
    pub fn pack_bytes(&self, run_id: &str, entry: &Entry, scope: &Scope) -> Result<Vec<u8>> {
        super::scope::identifier("run id", run_id)?;
        scope.may_read(&Scope::parse(&entry.scope)?)?;
        let path = self.pack_dir(run_id).join("data");
        let failed = |error| Error::io(format!("cannot read {}", path.display()), error);
        let mut file = File::open(&path).map_err(failed)?;
        file.seek(SeekFrom::Start(entry.offset)).map_err(failed)?;
        let mut bytes = Vec::new();
        file.take(entry.length)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
        if entry.sha256.as_deref() != Some(sha256(&bytes).as_str()) {
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

    /// Removes packs that are past what is to be kept, and what killed runs left of theirs. The newest of a
    /// `good` run always stays. `newest_first` are the runs as the audit chain orders them.
    ///
    /// # Errors
    /// When the folder cannot be read, or a pack not removed.
    pub fn prune_packs(
        &self,
        keep: (Option<usize>, Option<Duration>),
        newest_first: &[String],
        good: &BTreeSet<String>,
        _lock: &Lock,
    ) -> Result<()> {
        let dir = self.dir.join("snapshots");
        let failed = |error| Error::io(format!("cannot prune {}", dir.display()), error);
        let mut ids = Vec::new();
        for entry in std::fs::read_dir(&dir).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if let Some(id) = entry.file_name().to_str() {
                ids.push(id.to_owned());
            }
        }
        let ids = super::in_order(ids, newest_first);
        let is_whole = |id: &str| dir.join(id).join("index.json").is_file();
        let last_good = ids
            .iter()
            .find(|id| good.contains(*id) && is_whole(id))
            .or_else(|| ids.iter().find(|id| is_whole(id)));
        let now = SystemTime::now();
        for (rank, id) in ids.iter().enumerate() {
            let path = dir.join(id);
            // A clock that was set back makes nothing old.
            let age = std::fs::metadata(&path)
                .and_then(|meta| meta.modified())
                .ok()
                .and_then(|time| now.duration_since(time).ok())
                .unwrap_or_default();
            let is_over = keep.0.is_some_and(|count| rank >= count)
                || keep.1.is_some_and(|limit| age > limit)
                || !is_whole(id);
            if is_over && Some(id) != last_good {
                fail_point("snapshots.before-prune");
                std::fs::remove_dir_all(&path).map_err(failed)?;
            }
        }
        Ok(())
    }
}

impl Pack {
    /// Adds a file as it is before it is written over.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, file: Copied<'_>) -> Result<()> {
        file.scope.check()?;
        let content = file.bytes.unwrap_or_default();
        self.data.write_all(content).map_err(|error| {
            Error::io(
                format!("cannot write {}", self.dir.join("data").display()),
                error,
            )
        })?;
        fail_point("snapshot.file-copied");
        let length = content.len() as u64;
        self.entries.push(Entry {
            home: file.home.to_owned(),
            scope: file.scope.name(),
            folder: file.folder.to_path_buf(),
            version: file.version.map(str::to_owned),
            path: file.path.to_owned(),
            offset: self.written,
            length,
            sha256: file.bytes.map(sha256),
            sha256_after: file.sha256_after.to_owned(),
            mode: file.mode,
            uid: file.owner.0,
            gid: file.owner.1,
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
        fail_point("snapshot.synced");
        let index = Index {
            schema: SCHEMA,
            entries: self.entries,
        };
        let text = serde_json::to_vec(&index).map_err(|error| {
            Error::new(Kind::Io, "cannot write the snapshot's index").with_source(error)
        })?;
        super::replace("index", &self.dir.join("index.json"), &text)?;
        if let Some(parent) = self.dir.parent() {
            super::sync_dir(parent)?;
        }
        file.rewind().map_err(failed)?;
        let mut bytes = Vec::new();
        for entry in &index.entries {
            bytes.clear();
            (&mut file)
                .take(entry.length)
                .read_to_end(&mut bytes)
                .map_err(failed)?;
            if entry.sha256.is_some() && entry.sha256.as_deref() != Some(sha256(&bytes).as_str()) {
                return Err(Error::new(
                    Kind::Io,
                    format!("{} does not read back as it was written", path.display()),
                ));
            }
        }
        fail_point("snapshot.read-back");
        Ok(index.entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let scope = Scope::Profile("t".into(), "c".into(), "p".into());
        let mut add = |home, path, bytes| {
            pack.add(Copied {
                home,
                scope: &scope,
                folder: Path::new("/h"),
                version: Some("1"),
                path,
                bytes,
                sha256_after: "",
                mode: 0o640,
                owner: (3, 4),
            })
            .expect("room");
        };
        add("h1", "config.yaml", Some(b"a: 1\n"));
        add("h1", ".env", None);
        add("h2", "config.yaml", Some(b"b: 2\n"));
        let entries = pack.finish().expect("durable");
        assert_eq!(state.pack_index("run").expect("there"), entries);
        assert_eq!(
            state.pack_bytes("run", &entries[2], &scope).expect("whole"),
            b"b: 2\n"
        );
        assert_eq!(entries[1].sha256, None);
        std::fs::write(dir.path().join("state/snapshots/run/data"), b"a: 1\nb: 3\n").expect("ours");
        assert!(state.pack_bytes("run", &entries[2], &scope).is_err());
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
        state.prune_receipts(&[], &lock).expect("ours");
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
