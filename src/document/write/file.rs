//! A file as it was read, with all that its replacement must keep.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// Attributes that depend on a file's content or are kept by the kernel itself; copies of them are wrong.
const OWN_ATTRIBUTES: [&[u8]; 2] = [b"security.ima", b"security.evm"];

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The device.
    pub device: u64,
    /// The inode.
    pub inode: u64,
    /// Bytes.
    pub size: u64,
    /// When its content changed, in nanoseconds since the epoch.
    pub modified_ns: i128,
    /// When anything about it changed, in nanoseconds since the epoch.
    pub changed_ns: i128,
}

/// A file as it was read, with all that its replacement must keep.
#[derive(Debug)]
pub struct Original {
    /// Its path in the folder.
    pub name: PathBuf,
    /// Its content.
    pub bytes: Vec<u8>,
    /// Its state.
    pub identity: Identity,
    /// Permission bits, with setuid, setgid and sticky.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// How many names it has.
    pub links: u64,
    /// Extended attributes, ACLs and labels among them.
    pub attributes: Vec<(OsString, Vec<u8>)>,
    /// Where it really is, if its name is a link.
    pub target: Option<PathBuf>,
    /// The folder that really holds it.
    pub(super) holder: OwnedFd,
    /// Its name in that folder.
    pub(super) own_name: OsString,
}

impl Original {
    /// The SHA-256 of its content, in hexadecimal digits.
    #[must_use]
    pub fn digest(&self) -> String {
        crate::digest::sha256(&self.bytes)
    }
}

impl Identity {
    #[allow(
        clippy::useless_conversion,
        reason = "the types of these fields differ between platforms"
    )]
    pub(super) fn of(stat: &Stat) -> Self {
        let ns = |seconds: i128, ns: i128| seconds * 1_000_000_000 + ns;
        Self {
            device: u64::try_from(stat.st_dev).unwrap_or_default(),
            inode: u64::from(stat.st_ino),
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            modified_ns: ns(stat.st_mtime.into(), stat.st_mtime_nsec.into()),
            changed_ns: ns(stat.st_ctime.into(), stat.st_ctime_nsec.into()),
        }
    }
}

#[allow(
    clippy::useless_conversion,
    reason = "the type of this field differs between platforms"
)]
pub(super) fn links(stat: &Stat) -> u64 {
    u64::from(stat.st_nlink)
}

pub(super) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Opens a file to read it, never through a link and never waiting for the other end of a pipe.
pub(super) fn open_file(holder: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::openat(holder, name, flags, Mode::empty())
}

/// All of a file from its start, at most one byte more than `limit`.
pub(super) fn read_all(fd: &OwnedFd, size: u64, limit: u64) -> Result<Vec<u8>, Errno> {
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
    let mut part = [0; 64 * 1024];
    loop {
        let at = bytes.len() as u64;
        let count = rustix::io::pread(fd, &mut part, at)?;
        bytes.extend_from_slice(&part[..count]);
        if count == 0 || bytes.len() as u64 > limit {
            return Ok(bytes);
        }
    }
}

/// The extended attributes of a file; none where the file system has none.
pub(super) fn attributes(fd: BorrowedFd<'_>) -> Result<Vec<(OsString, Vec<u8>)>, Errno> {
    let mut names = vec![0; 64 * 1024];
    let length = match rustix::fs::flistxattr(fd, &mut names[..]) {
        Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(Vec::new()),
        found => found?,
    };
    let mut found = Vec::new();
    for name in names[..length]
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
    {
        if OWN_ATTRIBUTES.contains(&name) {
            continue;
        }
        let mut value = vec![0; 64 * 1024];
        match rustix::fs::fgetxattr(fd, name, &mut value[..]) {
            Ok(length) => {
                value.truncate(length);
                found.push((OsStr::from_bytes(name).to_owned(), value));
            }
            // Listed, but not for us to read (`trusted.`), or gone.
            Err(Errno::NODATA | Errno::PERM | Errno::ACCESS | Errno::NOTSUP) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(found)
}
