//! Who holds which flock(2) lock, as `/proc/locks` lists them (proc_locks(5)).

use std::cell::OnceCell;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;

/// How many descriptors of one process are looked at.
const DESCRIPTOR_LIMIT: usize = 65_536;

/// Bytes of the list that are read at once: the kernel tells at most a page, 80 locks or so, at a time.
const ROOM: usize = 64 << 10;

/// A file lock that a process holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileLock {
    /// Process that took it, by its id in our pid namespace.
    pub pid: u32,
    /// Major and minor number of the file's device.
    pub device: (u32, u32),
    /// The file's inode.
    pub inode: u64,
}

/// The flock(2) locks that are held on this machine, as `/proc/locks` lists them.
///
/// # Errors
/// When the list could not be read.
pub fn flocks() -> io::Result<Vec<FileLock>> {
    // Every read(2) stops all who take or give up a lock, and goes on after as many entries as were told:
    // one that is given up meanwhile hides another. So there is room for all that one read tells.
    let mut text = String::with_capacity(ROOM);
    File::open("/proc/locks")?.read_to_string(&mut text)?;
    Ok(text.lines().filter_map(FileLock::parse).collect())
}

/// The list of [`flocks`], read when it is first asked for, and once.
///
/// The kernel makes whoever reads it first wait until every processor has passed a quiet state, 10 to 20
/// milliseconds, and whoever follows within a moment not at all ([`Flocks::announce`]).
#[derive(Debug, Default)]
pub struct Flocks(OnceCell<io::Result<Vec<FileLock>>>);

impl Flocks {
    /// The locks; none where they cannot be read.
    pub fn held(&self) -> &[FileLock] {
        let list = self.0.get_or_init(flocks);
        list.as_deref().unwrap_or_default()
    }

    /// Why they could not be read, if they were asked for.
    pub fn trouble(&self) -> Option<&io::Error> {
        self.0.get()?.as_ref().err()
    }

    /// Lets the kernel get ready for the readers that will come, whichever processes they are, meanwhile.
    pub fn announce() {
        // A hint, and nobody waits for it: a thread that cannot be started leaves the wait to the first reader.
        let reader = std::thread::Builder::new().name("locks".into());
        drop(reader.spawn(flocks));
    }
}

impl FileLock {
    /// Reads a line of `/proc/locks`; `None` for a lock of another kind.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        // `1: FLOCK  ADVISORY  WRITE 123 08:02:1234 0 EOF`; a waiter has `->` after the number.
        let mut fields = line.split_ascii_whitespace().skip(1);
        if fields.next()? != "FLOCK" {
            return None;
        }
        let pid = fields.nth(2)?.parse().ok()?;
        let mut file = fields.next()?.split(':');
        Some(Self {
            pid,
            device: (
                u32::from_str_radix(file.next()?, 16).ok()?,
                u32::from_str_radix(file.next()?, 16).ok()?,
            ),
            inode: file.next()?.parse().ok()?,
        })
    }

    /// Whether it is a lock on the file with this device and inode (stat(2)).
    ///
    /// The list shows the device of the file system, which a layered or subvolume file system hides
    /// from stat(2); there the descriptors of the holder say which file it is.
    #[must_use]
    pub fn is_on(&self, device: u64, inode: u64) -> bool {
        if self.inode != inode {
            return false;
        }
        self.device == (rustix::fs::major(device), rustix::fs::minor(device))
            || has_open(self.pid, device, inode).unwrap_or(false)
    }
}

/// Whether a process has a file open; only its owner and root may know.
fn has_open(pid: u32, device: u64, inode: u64) -> io::Result<bool> {
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd"))?.take(DESCRIPTOR_LIMIT) {
        // A descriptor may be closed meanwhile.
        if let Ok(meta) = std::fs::metadata(entry?.path())
            && (meta.dev(), meta.ino()) == (device, inode)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_held_flocks_are_read() {
        let lock = FileLock::parse("3: FLOCK  ADVISORY  WRITE 812 fd:0a:131 0 EOF");
        assert_eq!(
            lock,
            Some(FileLock {
                pid: 812,
                device: (0xfd, 0x0a),
                inode: 131
            })
        );
        for other in [
            "3: -> FLOCK  ADVISORY  WRITE 812 fd:0a:131 0 EOF",
            "1: POSIX  ADVISORY  WRITE 812 fd:0a:131 0 EOF",
            "4: OFDLCK ADVISORY  WRITE -1 fd:0a:131 0 EOF",
            "",
        ] {
            assert_eq!(FileLock::parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_lock_is_known_by_its_file_even_where_the_device_is_hidden() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let meta = file.as_file().metadata().expect("readable");
        let lock = |pid, device, inode| FileLock { pid, device, inode };
        let ours = std::process::id();
        let device = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
        assert!(lock(1 << 23, device, meta.ino()).is_on(meta.dev(), meta.ino()));
        assert!(lock(ours, (9999, 9), meta.ino()).is_on(meta.dev(), meta.ino()));
        assert!(!lock(1 << 23, (9999, 9), meta.ino()).is_on(meta.dev(), meta.ino()));
        assert!(!lock(ours, device, meta.ino() + 1).is_on(meta.dev(), meta.ino()));
    }
}
