//! The only place that writes into homes: reads a file with all that must survive, and replaces it
//! atomically.
//!
//! A file is always reached through the descriptor of its folder. A link is followed once, when the file is
//! read, and what is replaced is the link's target. A replacement is written beside the target under a name
//! of ours, gets owner, mode, extended attributes and ACLs of the original, is synced, and takes its name
//! by `rename(2)`; then the folder is synced. Whatever fails, the original is as it was and nothing is
//! left behind; what a killed run left behind, [`Folder::sweep`] removes. Nothing here knows what a file means.
#![expect(
    clippy::disallowed_methods,
    reason = "owns every write into a home, and the opening of its files by descriptor"
)]

mod error;
mod file;
mod open;
mod temporary;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Access, AtFlags, Dir, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;

pub use error::{ReadError, WriteError};
pub use file::{Identity, Original};
use file::{attributes, kind, links, open_file, read_all};
use temporary::Temporary;

/// How the name of a replacement in the making begins.
const PREFIX: &str = ".fleet-update-";

/// The access control list of a file, as an attribute (`acl(5)`).
const ACL: &[u8] = b"system.posix_acl_access";

/// A folder of a home, held open: what is read and written is in *this* folder, whatever happens to
/// its path meanwhile.
#[derive(Debug)]
pub struct Folder {
    fd: OwnedFd,
    path: PathBuf,
    within: Option<PathBuf>,
}

/// Whose a file is, and who may do what with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Ownership {
    /// Permission bits.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
}

/// A write that was made, and what it takes to undo it.
#[derive(Debug)]
pub struct Written {
    /// What was in the file; nothing if there was none.
    pub before: Option<Vec<u8>>,
    /// The file as it is.
    pub after: Original,
}

impl Folder {
    /// Opens a folder, whose path must not end in a link.
    ///
    /// # Errors
    /// When it cannot be opened, is a link or is no folder.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(fd) => Ok(Self {
                fd,
                path: path.to_owned(),
                within: None,
            }),
            Err(errno) => Err(ReadError {
                path: path.to_owned(),
                reason: io::Error::from(errno).to_string(),
            }),
        }
    }

    /// Lets links lead only to files below `tree`.
    #[must_use]
    pub fn within(mut self, tree: &Path) -> Self {
        self.within = Some(tree.to_owned());
        self
    }

    /// The path that it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a regular file of at most `limit` bytes, with what its replacement must keep.
    ///
    /// # Errors
    /// When there is something that is no such file, or cannot be read; nothing there is no error.
    pub fn read(&self, name: &Path, limit: u64) -> Result<Option<Original>, ReadError> {
        let fail = |reason: String| ReadError {
            path: self.path.join(name),
            reason,
        };
        let system = |errno: Errno| fail(io::Error::from(errno).to_string());
        let Some((parent, own_name)) = self.parent(name).map_err(system)? else {
            return Ok(None);
        };
        let stat = match rustix::fs::statat(&parent, &own_name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(None),
            found => found.map_err(system)?,
        };
        if kind(&stat) != FileType::Symlink {
            return self.read_at(name, parent, own_name, None, limit).map(Some);
        }
        let target = std::fs::canonicalize(self.path.join(name))
            .map_err(|error| fail(format!("a link that leads nowhere: {error}")))?;
        if let Some(tree) = &self.within {
            let tree = std::fs::canonicalize(tree).unwrap_or_else(|_| tree.clone());
            if !target.starts_with(&tree) {
                return Err(fail(format!(
                    "a link to {}, out of {}",
                    target.display(),
                    tree.display()
                )));
            }
        }
        let (Some(folder), Some(own_name)) = (target.parent(), target.file_name()) else {
            return Err(fail("a link to no file".to_owned()));
        };
        let holder = open::without_links(folder).map_err(system)?;
        self.read_at(
            name,
            holder,
            own_name.to_owned(),
            Some(target.clone()),
            limit,
        )
        .map(Some)
    }

    /// Reads the file `own_name` of `holder`, which must not be a link.
    fn read_at(
        &self,
        name: &Path,
        holder: OwnedFd,
        own_name: OsString,
        target: Option<PathBuf>,
        limit: u64,
    ) -> Result<Original, ReadError> {
        let fail = |reason: String| ReadError {
            path: self.path.join(name),
            reason,
        };
        let system = |errno: Errno| fail(io::Error::from(errno).to_string());
        // Not even opened, because opening a device may do something.
        let stat =
            rustix::fs::statat(&holder, &own_name, AtFlags::SYMLINK_NOFOLLOW).map_err(system)?;
        if kind(&stat) != FileType::RegularFile {
            return Err(fail("not a regular file".to_owned()));
        }
        let fd = open_file(&holder, &own_name).map_err(system)?;
        // A file that is written while it is read is read again.
        for _ in 0..3 {
            let stat = rustix::fs::fstat(&fd).map_err(system)?;
            if kind(&stat) != FileType::RegularFile {
                return Err(fail("not a regular file".to_owned()));
            }
            let identity = Identity::of(&stat);
            if identity.size > limit {
                return Err(fail(format!("larger than {limit} bytes")));
            }
            let bytes = read_all(&fd, identity.size, limit).map_err(system)?;
            let after = Identity::of(&rustix::fs::fstat(&fd).map_err(system)?);
            if after == identity && bytes.len() as u64 == identity.size {
                return Ok(Original {
                    name: name.to_owned(),
                    bytes,
                    identity,
                    mode: Mode::from_raw_mode(stat.st_mode).bits(),
                    uid: stat.st_uid,
                    gid: stat.st_gid,
                    links: links(&stat),
                    attributes: attributes(fd.as_fd()).map_err(system)?,
                    target,
                    holder,
                    own_name,
                });
            }
        }
        Err(fail("it is being written".to_owned()))
    }

    /// Whether a file could be replaced, found out without writing.
    ///
    /// # Errors
    /// When it could not: the file or its folder is not writable, or it has more names than one.
    pub fn writable(&self, original: &Original) -> Result<(), WriteError> {
        let path = self.path.join(&original.name);
        if original.links > 1 {
            let reason = format!(
                "it has {} names (hard links), and only one of them would be replaced",
                original.links
            );
            return Err(WriteError::Refused { path, reason });
        }
        let holder = original.holder.as_fd();
        let file = rustix::fs::accessat(
            holder,
            &original.own_name,
            Access::WRITE_OK,
            AtFlags::EACCESS,
        );
        let folder = || {
            rustix::fs::accessat(
                holder,
                ".",
                Access::WRITE_OK | Access::EXEC_OK,
                AtFlags::EACCESS,
            )
        };
        file.and_then(|()| folder())
            .map_err(|errno| WriteError::from_system(&path, "write", errno))
    }

    /// Whether a file or folder of that name could be created, found out without writing.
    ///
    /// # Errors
    /// When the folder that would hold it is not writable.
    pub fn creatable(&self, name: &Path) -> Result<(), WriteError> {
        let path = self.path.join(name);
        let mut at = name.parent();
        // The first folder of those above it that is there.
        while let Some(folder) = at {
            let folder = if folder.as_os_str().is_empty() {
                Path::new(".")
            } else {
                folder
            };
            match rustix::fs::accessat(
                &self.fd,
                folder,
                Access::WRITE_OK | Access::EXEC_OK,
                AtFlags::EACCESS,
            ) {
                Err(Errno::NOENT) if folder != Path::new(".") => at = folder.parent(),
                found => {
                    return found.map_err(|errno| WriteError::from_system(&path, "create", errno));
                }
            }
        }
        Ok(())
    }

    /// Replaces what was read by new bytes; equal bytes are no write at all.
    ///
    /// # Errors
    /// When it is not the file any more that was read, or cannot be written; it is as it was.
    pub fn replace(
        &self,
        original: &Original,
        bytes: &[u8],
    ) -> Result<Option<Written>, WriteError> {
        if bytes == original.bytes {
            return Ok(None);
        }
        let after = self.put(original, bytes)?;
        let before = Some(original.bytes.clone());
        Ok(Some(Written { before, after }))
    }

    fn put(&self, original: &Original, bytes: &[u8]) -> Result<Original, WriteError> {
        let path = self.path.join(&original.name);
        self.writable(original)?;
        self.unchanged(original)?;
        let temporary = Temporary::create(original.holder.as_fd(), &path)?;
        temporary.fill(bytes)?;
        temporary.resemble(original)?;
        temporary.sync()?;
        // The window that remains is the one between two system calls.
        self.unchanged(original)?;
        temporary.take_name(&original.own_name)?;
        if let Err(error) = temporary.sync_folder() {
            return Err(self.take_back(original, bytes, error));
        }
        self.replaced(original, bytes)
    }

    /// The file that was just written in place of `original`.
    fn replaced(&self, original: &Original, bytes: &[u8]) -> Result<Original, WriteError> {
        self.written(
            &original.name,
            original.holder.as_fd(),
            &original.own_name,
            original.target.clone(),
            bytes,
        )
    }

    /// Gives a file back what it held when its folder cannot be synced, and says why that was needed. What is whole on
    /// the disk is never replaced by what is not: where the earlier bytes cannot be synced either, the new ones stay.
    fn take_back(&self, original: &Original, bytes: &[u8], error: WriteError) -> WriteError {
        let path = self.path.join(&original.name);
        let back = || {
            let now = self.replaced(original, bytes)?;
            let temporary = Temporary::create(original.holder.as_fd(), &path)?;
            temporary.fill(&original.bytes)?;
            temporary.resemble(original)?;
            temporary.sync()?;
            self.unchanged(&now)?;
            temporary.take_name(&original.own_name)
        };
        match back() {
            Ok(()) => error,
            Err(_) => error.that_stays(),
        }
    }

    /// Creates a file that is not there, for its owner only.
    ///
    /// # Errors
    /// When there is one by now, its folder is not there, or it cannot be written.
    pub fn create(&self, name: &Path, bytes: &[u8]) -> Result<Written, WriteError> {
        self.create_for(name, bytes, None)
    }

    /// Creates a file that was there once, for whom it was.
    ///
    /// # Errors
    /// As [`Folder::create`], and when it cannot be given to its owner.
    pub fn restore(
        &self,
        name: &Path,
        bytes: &[u8],
        access: &Ownership,
    ) -> Result<Written, WriteError> {
        self.create_for(name, bytes, Some(access))
    }

    fn create_for(
        &self,
        name: &Path,
        bytes: &[u8],
        access: Option<&Ownership>,
    ) -> Result<Written, WriteError> {
        let path = self.path.join(name);
        let parent = self
            .parent(name)
            .map_err(|errno| WriteError::from_system(&path, "open the folder of", errno))?;
        let Some((holder, own_name)) = parent else {
            return Err(WriteError::from_system(
                &path,
                "open the folder of",
                Errno::NOENT,
            ));
        };
        let temporary = Temporary::create(holder.as_fd(), &path)?;
        temporary.fill(bytes)?;
        match access {
            Some(access) => temporary.admit(access)?,
            None => temporary.belong_to_folder()?,
        }
        temporary.sync()?;
        temporary.take_free_name(&own_name)?;
        let after = self.written(name, holder.as_fd(), &own_name, None, bytes)?;
        Ok(Written {
            before: None,
            after,
        })
    }

    /// Removes what was read; what it was is in `original`, and [`Folder::bring_back`] undoes it.
    ///
    /// # Errors
    /// When it is not the file any more that was read, its name is a link, or it cannot be removed.
    pub fn remove(&self, original: &Original) -> Result<(), WriteError> {
        let path = self.path.join(&original.name);
        if original.target.is_some() {
            let reason = "it is a link, and only what it leads to would go".to_owned();
            return Err(WriteError::Refused { path, reason });
        }
        self.writable(original)?;
        self.unchanged(original)?;
        let holder = original.holder.as_fd();
        rustix::fs::unlinkat(holder, &original.own_name, AtFlags::empty())
            .map_err(|errno| WriteError::from_system(&path, "remove", errno))?;
        rustix::fs::fsync(holder).map_err(|errno| {
            let error = WriteError::from_system(&path, "sync the folder of", errno);
            match self.bring_back(original) {
                Ok(()) => error,
                Err(_) => error.that_stays(),
            }
        })
    }

    /// Makes a file that was removed again, as it was.
    ///
    /// # Errors
    /// When there is one by now, or it cannot be written.
    pub fn bring_back(&self, original: &Original) -> Result<(), WriteError> {
        let path = self.path.join(&original.name);
        let temporary = Temporary::create(original.holder.as_fd(), &path)?;
        temporary.fill(&original.bytes)?;
        temporary.resemble(original)?;
        temporary.sync()?;
        temporary.take_free_name(&original.own_name)
    }

    /// Makes a folder, and those above it that are missing, with the permissions of the folder that holds it.
    /// Says whether there was anything to make.
    ///
    /// # Errors
    /// When something else has that name, or it cannot be made.
    pub fn make_dir(&self, name: &Path) -> Result<bool, WriteError> {
        let path = self.path.join(name);
        let system = |errno| WriteError::from_system(&path, "make", errno);
        let mut at = self.fd.try_clone().map_err(|source| WriteError::Io {
            path: path.clone(),
            tried: "make",
            source,
        })?;
        let mut is_new = false;
        for part in parts(name).map_err(system)? {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let next = match open::beneath(at.as_fd(), Path::new(part), flags) {
                Err(Errno::NOENT) => {
                    let above = rustix::fs::fstat(&at).map_err(system)?;
                    // What the group and others may do above, they may do here; set-id bits are inherited.
                    let mode =
                        Mode::from_raw_mode(above.st_mode) & (Mode::RWXU | Mode::RWXG | Mode::RWXO);
                    match rustix::fs::mkdirat(&at, part, mode | Mode::RWXU) {
                        Ok(()) => is_new = true,
                        Err(Errno::EXIST) => {}
                        Err(errno) => return Err(system(errno)),
                    }
                    let made = open::beneath(at.as_fd(), Path::new(part), flags).map_err(system)?;
                    give_to(made.as_fd(), &above).map_err(system)?;
                    rustix::fs::fsync(&at).map_err(system)?;
                    made
                }
                Err(Errno::NOTDIR) => {
                    return Err(WriteError::Refused {
                        path,
                        reason: "something there is no folder".to_owned(),
                    });
                }
                found => found.map_err(system)?,
            };
            at = next;
        }
        Ok(is_new)
    }

    /// Undoes a write: the earlier bytes come back, or the created file goes.
    ///
    /// # Errors
    /// When the file is not what was written any more, or cannot be written.
    pub fn undo(&self, written: &Written) -> Result<(), WriteError> {
        let path = self.path.join(&written.after.name);
        let Some(before) = &written.before else {
            self.unchanged(&written.after)?;
            let holder = written.after.holder.as_fd();
            return rustix::fs::unlinkat(holder, &written.after.own_name, AtFlags::empty())
                .and_then(|()| rustix::fs::fsync(holder))
                .map_err(|errno| WriteError::from_system(&path, "remove", errno));
        };
        self.put(&written.after, before).map(drop)
    }

    /// Removes what a run that was killed left in this folder, and in the folders that its links lead to
    /// (those of `originals`). Only files that belong to us and have a name of ours count; the caller holds
    /// the lock of the home. Gives how many there were.
    ///
    /// # Errors
    /// When the folder cannot be listed or a file cannot be removed.
    pub fn sweep<'o>(
        &self,
        originals: impl IntoIterator<Item = &'o Original>,
    ) -> Result<usize, WriteError> {
        let system = |errno| WriteError::from_system(&self.path, "tidy", errno);
        let mut count = sweep_one(self.fd.as_fd()).map_err(system)?;
        for original in originals
            .into_iter()
            .filter(|original| original.target.is_some())
        {
            count += sweep_one(original.holder.as_fd()).map_err(system)?;
        }
        Ok(count)
    }

    /// The folder that holds a name, and its last part; nothing if there is no such folder.
    fn parent(&self, name: &Path) -> Result<Option<(OwnedFd, OsString)>, Errno> {
        let parts = parts(name)?;
        let Some((last, above)) = parts.split_last() else {
            return Err(Errno::INVAL);
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder: PathBuf = if above.is_empty() {
            PathBuf::from(".")
        } else {
            above.iter().collect()
        };
        match open::beneath(self.fd.as_fd(), &folder, flags) {
            Err(Errno::NOENT) => Ok(None),
            found => Ok(Some((found?, (*last).to_owned()))),
        }
    }

    /// Whether a file is the one that was read, byte for byte.
    fn unchanged(&self, original: &Original) -> Result<(), WriteError> {
        let path = self.path.join(&original.name);
        let changed = || WriteError::Changed { path: path.clone() };
        let system = |errno| WriteError::from_system(&path, "read", errno);
        let fd = match open_file(&original.holder, &original.own_name) {
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Err(changed()),
            found => found.map_err(system)?,
        };
        let stat = rustix::fs::fstat(&fd).map_err(system)?;
        if kind(&stat) != FileType::RegularFile || Identity::of(&stat) != original.identity {
            return Err(changed());
        }
        let size = original.identity.size;
        if read_all(&fd, size, size).map_err(system)? != original.bytes {
            return Err(changed());
        }
        if original.target.is_some() {
            // The name in the home must still lead there.
            let Some((parent, own_name)) = self.parent(&original.name).map_err(system)? else {
                return Err(changed());
            };
            let now =
                rustix::fs::statat(&parent, &own_name, AtFlags::empty()).map_err(|_| changed())?;
            if Identity::of(&now) != original.identity {
                return Err(changed());
            }
        }
        Ok(())
    }

    /// The file that was just written.
    fn written(
        &self,
        name: &Path,
        holder: BorrowedFd<'_>,
        own_name: &OsStr,
        target: Option<PathBuf>,
        bytes: &[u8],
    ) -> Result<Original, WriteError> {
        let path = self.path.join(name);
        let holder = holder
            .try_clone_to_owned()
            .map_err(|source| WriteError::Io {
                path: path.clone(),
                tried: "read back",
                source,
            })?;
        let found = self.read_at(
            name,
            holder,
            own_name.to_owned(),
            target,
            bytes.len() as u64,
        );
        match found {
            Ok(after) if after.bytes == bytes => Ok(after),
            // Somebody wrote over it within microseconds.
            _ => Err(WriteError::Changed { path }),
        }
    }
}

/// The parts of a path below a folder: names only.
fn parts(name: &Path) -> Result<Vec<&OsStr>, Errno> {
    name.components()
        .filter(|part| !matches!(part, Component::CurDir))
        .map(|part| match part {
            Component::Normal(part) => Ok(part),
            _ => Err(Errno::INVAL),
        })
        .collect()
}

/// As root, gives a new file or folder to whom the one above belongs.
fn give_to(fd: BorrowedFd<'_>, above: &Stat) -> Result<(), Errno> {
    let own = rustix::fs::fstat(fd)?;
    if !rustix::process::geteuid().is_root()
        || (own.st_uid == above.st_uid && own.st_gid == above.st_gid)
    {
        return Ok(());
    }
    rustix::fs::fchown(
        fd,
        Some(Uid::from_raw(above.st_uid)),
        Some(Gid::from_raw(above.st_gid)),
    )
}

fn sweep_one(folder: BorrowedFd<'_>) -> Result<usize, Errno> {
    let mut count = 0;
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if !name.to_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let euid = rustix::process::geteuid();
        let is_ours = euid.is_root() || stat.st_uid == euid.as_raw();
        if kind(&stat) == FileType::RegularFile && is_ours {
            rustix::fs::unlinkat(folder, name, AtFlags::empty())?;
            count += 1;
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests;
