//! Who holds which flock(2) lock, as `/proc/locks` lists them (proc_locks(5)).

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// How many descriptors of one process are looked at.
const DESCRIPTOR_LIMIT: usize = 65_536;

/// Bytes of the list that are read at once: the kernel tells at most a page, 80 locks or so, at a time.
const ROOM: usize = 64 << 10;

/// Of how many files the likely holders are looked at: a process has dozens of descriptors, and of many files the
/// list tells sooner.
const FEW: u32 = 16;

/// A file lock that a process holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileLock {
    /// Process that took it, by its id in our pid namespace.
    pub pid: u32,
    /// Major and minor number of the file's device.
    pub device: (u32, u32),
    /// The file's inode.
    pub inode: u64,
    /// Whether nobody else can hold one on the same file.
    pub exclusive: bool,
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

/// Who holds which locks.
///
/// The kernel makes whoever reads the list of [`flocks`] first wait until every processor has passed a quiet state,
/// 10 to 20 milliseconds, and all who take or give up a lock with it; whoever follows within a moment waits
/// not at all ([`Flocks::announce`]). So the list is read when it is first needed, and once; of a few files it is not
/// needed where their likely holders show that they are.
#[derive(Debug, Default)]
pub struct Flocks {
    list: OnceCell<io::Result<Vec<FileLock>>>,
    shown: RefCell<BTreeMap<(u64, u64), u32>>,
    asked: Cell<u32>,
}

impl Flocks {
    /// The processes that hold a lock on a file; none where that cannot be read. Of `likely` holders, one that
    /// is on the list is believed to mean this file where a layered file system hides which it is.
    pub fn holders(&self, file: &Metadata, likely: &[u32]) -> Vec<u32> {
        let id = (file.dev(), file.ino());
        if let Some(pid) = self.shown.borrow().get(&id) {
            return vec![*pid];
        }
        if self.list.get().is_none() && !likely.is_empty() && self.asked.get() < FEW {
            self.asked.set(self.asked.get() + 1);
            let mut likely = likely.iter().copied();
            if let Some(pid) = likely.find(|pid| shows_exclusive(*pid, id).unwrap_or(false)) {
                self.shown.borrow_mut().insert(id, pid);
                return vec![pid];
            }
        }
        let list = self.list.get_or_init(flocks);
        let list = list.as_deref().unwrap_or_default().iter();
        let same_inode: Vec<&FileLock> = list.filter(|lock| lock.inode == id.1).collect();
        let pids = |meant: &dyn Fn(&FileLock) -> bool| -> Vec<u32> {
            let of_file = same_inode.iter().filter(|lock| meant(lock));
            of_file.map(|lock| lock.pid).collect()
        };
        let sure = pids(&|lock| lock.is_on(id.0, id.1));
        if sure.is_empty() {
            return pids(&|lock| likely.contains(&lock.pid));
        }
        sure
    }

    /// Why they could not be read, if they were asked for.
    pub fn trouble(&self) -> Option<&io::Error> {
        self.list.get()?.as_ref().err()
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
        let exclusive = fields.nth(1)? == "WRITE";
        let pid = fields.next()?.parse().ok()?;
        let mut file = fields.next()?.split(':');
        Some(Self {
            pid,
            device: (
                u32::from_str_radix(file.next()?, 16).ok()?,
                u32::from_str_radix(file.next()?, 16).ok()?,
            ),
            inode: file.next()?.parse().ok()?,
            exclusive,
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
    Ok(descriptors(pid, (device, inode))?.next().is_some())
}

/// Whether a process has a file open with an exclusive lock that it took itself: then nobody else holds one. Only
/// its owner and root may know (proc_pid_fdinfo(5), `lock`).
fn shows_exclusive(pid: u32, file: (u64, u64)) -> io::Result<bool> {
    let holds = |descriptor: OsString| {
        let info = Path::new("/proc")
            .join(format!("{pid}/fdinfo"))
            .join(descriptor);
        std::fs::read_to_string(info).is_ok_and(|info| {
            let locks = info.lines().filter_map(|line| line.strip_prefix("lock:"));
            let mut locks = locks.filter_map(FileLock::parse);
            locks.any(|lock| lock.pid == pid && lock.exclusive)
        })
    };
    Ok(descriptors(pid, file)?.any(holds))
}

/// The names of a process's descriptors of a file.
fn descriptors(pid: u32, file: (u64, u64)) -> io::Result<impl Iterator<Item = OsString>> {
    let listing = std::fs::read_dir(format!("/proc/{pid}/fd"))?;
    // A descriptor may be closed meanwhile.
    let open = listing.take(DESCRIPTOR_LIMIT).flatten();
    Ok(open.filter_map(move |entry| {
        let meta = std::fs::metadata(entry.path()).ok()?;
        ((meta.dev(), meta.ino()) == file).then(|| entry.file_name())
    }))
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
                inode: 131,
                exclusive: true,
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
        let lock = |pid, device, inode| FileLock {
            pid,
            device,
            inode,
            exclusive: true,
        };
        let ours = std::process::id();
        let device = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
        assert!(lock(1 << 23, device, meta.ino()).is_on(meta.dev(), meta.ino()));
        assert!(lock(ours, (9999, 9), meta.ino()).is_on(meta.dev(), meta.ino()));
        assert!(!lock(1 << 23, (9999, 9), meta.ino()).is_on(meta.dev(), meta.ino()));
        assert!(!lock(ours, device, meta.ino() + 1).is_on(meta.dev(), meta.ino()));
    }

    #[test]
    fn a_likely_holder_is_known_without_the_list() {
        use rustix::fs::{FlockOperation, flock};

        let file = tempfile::NamedTempFile::new().expect("a file");
        let meta = file.as_file().metadata().expect("readable");
        let (ours, parent) = (std::process::id(), std::os::unix::process::parent_id());
        let ask = |likely: &[u32]| {
            let locks = Flocks::default();
            (locks.holders(&meta, likely), locks.list.get().is_none())
        };
        assert_eq!(ask(&[ours]), (vec![], false));
        flock(file.as_file(), FlockOperation::LockExclusive).expect("locked");
        assert_eq!(ask(&[parent, ours]), (vec![ours], true));
        assert_eq!(ask(&[parent]), (vec![ours], false));
        assert_eq!(ask(&[]), (vec![ours], false));
        // Others may hold one as well: the list tells them all.
        flock(file.as_file(), FlockOperation::LockShared).expect("locked");
        assert_eq!(ask(&[ours]), (vec![ours], false));
        // Of many files the list is read.
        flock(file.as_file(), FlockOperation::LockExclusive).expect("locked");
        let locks = Flocks::default();
        locks.asked.set(FEW);
        assert_eq!(locks.holders(&meta, &[ours]), [ours]);
        assert!(locks.list.get().is_some());
    }
}
