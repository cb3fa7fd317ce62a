//! The locks: one run at a time for an account, and one run at a time in a home.
//!
//! Both are flock(2) locks on an open descriptor, so that the kernel gives them back however their
//! holder ends. What stands in the lock file only informs. A home is locked on the descriptor of its
//! own folder: root's run and its owner's run exclude each other without a file in the home.

#![expect(
    clippy::disallowed_methods,
    reason = "this is where the lock file is made"
)]

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind, Result};
use crate::fleet::procfs;
use crate::helper::{self, Subject, Task};
use crate::screen;
use crate::world::{self, World, fail_point};

/// flock(2) has no time limit of its own, so a wait looks this often.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A process that was just started holds what its parent had open until it is another program (execve(2)): the lock of
/// a run that was killed at that moment is given back a moment later.
const ORPHAN_GRACE: Duration = Duration::from_secs(2);

/// Proof that this process holds the lock of its account's runs.
///
/// A run that another run started, directly or through others, works under the lock of that one.
#[derive(Debug)]
pub struct Lock {
    file: File,
    is_shared: bool,
}

/// What the holder of a lock wrote into it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its process.
    pub pid: u32,
    /// When that process started, in clock ticks since boot.
    #[serde(default)]
    pub start_ticks: Option<u64>,
    /// Since when.
    pub since: String,
    /// Which run.
    pub run_id: String,
}

impl Lock {
    /// Takes the lock at `path`, waiting up to `patience`.
    ///
    /// # Errors
    /// `Locked` when another run holds it longer than that; the error names the holder.
    pub fn take(world: &World, path: &Path, run_id: &str, patience: Duration) -> Result<Self> {
        let dir = path.parent().unwrap_or_else(|| Path::new("/"));
        super::make_private_dir(world, dir)?;
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(path)
            .map_err(|error| Error::io(format!("cannot open {}", path.display()), error))?;
        let deadline = Instant::now() + patience;
        while let Err(error) = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            if error != rustix::io::Errno::WOULDBLOCK && error != rustix::io::Errno::INTR {
                return Err(Error::io(format!("cannot lock {}", path.display()), error));
            }
            if Self::holder(path).is_some_and(|holder| is_ancestor(world, &holder)) {
                return Ok(Self {
                    file,
                    is_shared: true,
                });
            }
            let orphaned = Self::holder(path).is_some_and(|holder| is_gone(&holder));
            let grace = if orphaned {
                ORPHAN_GRACE
            } else {
                Duration::ZERO
            };
            if Instant::now() >= deadline + grace {
                let who = Self::holder(path).map_or_else(
                    || String::from("another run"),
                    |holder| format!("another run (pid {}, since {})", holder.pid, holder.since),
                );
                return Err(
                    Error::new(Kind::Locked, format!("{who} holds {}", path.display()))
                        .with_hint("wait for it, or give --lock-timeout"),
                );
            }
            std::thread::sleep(LOOK_EVERY.min(deadline.saturating_duration_since(Instant::now())));
        }
        fail_point("lock.taken");
        let holder = Holder {
            pid: world.pid,
            start_ticks: procfs::start_ticks(world.pid).ok().flatten(),
            since: world::timestamp(),
            run_id: run_id.to_owned(),
        };
        let text = serde_json::to_vec(&holder).unwrap_or_default();
        // The text only informs: a full disk must not keep the lock from doing its work.
        let _ = file
            .rewind()
            .and_then(|()| file.set_len(0))
            .and_then(|()| file.write_all(&text));
        fail_point("lock.signed");
        Ok(Self {
            file,
            is_shared: false,
        })
    }

    /// Who holds the lock at `path`, as it wrote itself; read without taking or making anything.
    #[must_use]
    pub fn holder(path: &Path) -> Option<Holder> {
        let mut text = String::new();
        File::open(path)
            .ok()?
            .take(4096)
            .read_to_string(&mut text)
            .ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Whether somebody holds the lock at `path` now, as `/proc/locks` tells (proc(5)); taking it to
    /// find out would be a change.
    #[must_use]
    pub fn is_held(path: &Path) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        let Ok(meta) = std::fs::metadata(path) else {
            return false;
        };
        procfs::flocks()
            .is_ok_and(|locks| locks.iter().any(|lock| lock.is_on(meta.dev(), meta.ino())))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.is_shared {
            return;
        }
        let _ = self.file.set_len(0);
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

/// Whether the holder of a lock started us. Nobody else can write what stands in the lock file, and nobody can choose
/// whose child they are; a pid that was given out again has another start.
fn is_ancestor(world: &World, holder: &Holder) -> bool {
    let mut pid = world.pid;
    // No chain of parents is longer, and one that changes while it is read must not hold us.
    for _ in 0..64 {
        let Ok(Some(parent)) = procfs::parent(pid) else {
            return false;
        };
        if parent == holder.pid {
            let start = procfs::start_ticks(parent).ok().flatten();
            return start.is_some() && start == holder.start_ticks;
        }
        if parent <= 1 {
            return false;
        }
        pid = parent;
    }
    false
}

/// Whether the holder that stands in a lock file ended without giving the lock back.
fn is_gone(holder: &Holder) -> bool {
    holder.start_ticks.is_some()
        && procfs::start_ticks(holder.pid).is_ok_and(|start| start != holder.start_ticks)
}

/// Task: locks homes of one account and holds them until the asker is gone.
#[derive(Debug, Serialize, Deserialize)]
pub struct HoldHomes {
    /// Which homes.
    pub homes: Vec<PathBuf>,
    /// Whose they are.
    pub subject: Subject,
    /// How long to wait for all of them together.
    pub patience: Duration,
}

/// How locking one home went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The home.
    pub home: PathBuf,
    /// Why it could not be locked; `None` when it is.
    pub refused: Option<String>,
}

impl Task for HoldHomes {
    const VERB: &'static str = "hold-homes";
    type Event = Vec<Held>;
    type Answer = ();

    fn subject(&self) -> Subject {
        self.subject.clone()
    }

    fn perform(
        self,
        _world: &World,
        tell: &mut dyn FnMut(Self::Event) -> Result<()>,
    ) -> Result<()> {
        let (_locks, held) = lock_homes(&self.homes, self.patience);
        tell(held)?;
        helper::wait_for_parent()
    }
}

/// Homes of one account, locked for as long as this value lives.
#[derive(Debug)]
pub struct HomeLocks {
    _here: Vec<File>,
    _there: Option<Box<helper::Session<HoldHomes>>>,
}

/// Homes of one account that somebody was asked to lock.
#[derive(Debug)]
pub enum Asked {
    /// Of our own account: it is done.
    Here(Vec<File>, Vec<Held>),
    /// A helper of the account is at it.
    There(Box<helper::Session<HoldHomes>>, String),
}

impl HomeLocks {
    /// Locks `homes` as their owner.
    ///
    /// # Errors
    /// When the owner's helper cannot be asked at all.
    pub fn take(
        world: &World,
        owner: &world::Account,
        homes: Vec<PathBuf>,
        subject: Subject,
        patience: Duration,
    ) -> Result<(Self, Vec<Held>)> {
        Self::ask(world, owner, homes, subject, patience)?.answer()
    }

    /// Asks for the locks of `homes` as their owner, without waiting for them where that is somebody else.
    ///
    /// # Errors
    /// When the owner's helper cannot be asked at all.
    pub fn ask(
        world: &World,
        owner: &world::Account,
        homes: Vec<PathBuf>,
        subject: Subject,
        patience: Duration,
    ) -> Result<Asked> {
        if owner.uid == world.account.uid {
            let (here, held) = lock_homes(&homes, patience);
            return Ok(Asked::Here(here, held));
        }
        let limit = patience + Duration::from_secs(10);
        let task = HoldHomes {
            homes,
            subject,
            patience,
        };
        let session = helper::Session::start(world, owner, task, limit)?;
        Ok(Asked::There(Box::new(session), owner.name.clone()))
    }
}

impl Asked {
    /// Waits for the locks.
    ///
    /// # Errors
    /// When the owner's helper did not answer.
    pub fn answer(self) -> Result<(HomeLocks, Vec<Held>)> {
        let (here, there, held) = match self {
            Self::Here(locks, held) => (locks, None, held),
            Self::There(mut session, name) => match session.listen()? {
                helper::Step::Event(held) => (Vec::new(), Some(session), held),
                helper::Step::Answer(()) => {
                    let what = format!("the helper for {name} locked nothing");
                    return Err(Error::new(Kind::Protocol, what));
                }
            },
        };
        let locks = HomeLocks {
            _here: here,
            _there: there,
        };
        Ok((locks, held))
    }
}

fn lock_homes(homes: &[PathBuf], patience: Duration) -> (Vec<File>, Vec<Held>) {
    let deadline = Instant::now() + patience;
    let mut locks = Vec::new();
    let mut held = Vec::new();
    helper::make_room(homes.len());
    for home in homes {
        let refused = match lock_home(home, deadline) {
            Ok(lock) => {
                locks.push(lock);
                None
            }
            Err(reason) => Some(screen::text(&reason)),
        };
        held.push(Held {
            home: home.clone(),
            refused,
        });
    }
    (locks, held)
}

fn lock_home(home: &Path, deadline: Instant) -> Result<File, String> {
    let dir = OpenOptions::new()
        .read(true)
        .custom_flags((OFlags::DIRECTORY | OFlags::NONBLOCK).bits().cast_signed())
        .open(home)
        .map_err(|error| error.to_string())?;
    let start = Instant::now();
    loop {
        match rustix::fs::flock(&dir, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(dir),
            Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.to_string()),
        }
        // Whoever may read a folder may lock it (flock(2)): only its owner's lock and root's count.
        if is_held_by_strangers(&dir, start.elapsed() > ORPHAN_GRACE) {
            return Ok(dir);
        }
        if Instant::now() >= deadline {
            return Err("another run holds it".into());
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Whether somebody holds the lock of a folder who neither owns it nor is root, and nobody else does.
/// A run that holds one lives: with `late`, a holder that is gone and left its descriptor to a child is a
/// stranger as well. What cannot be known is no stranger.
fn is_held_by_strangers(dir: &File, late: bool) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let (Ok(meta), Ok(locks)) = (dir.metadata(), procfs::flocks()) else {
        return false;
    };
    // By inode alone: a layered file system hides the device. One holder too many changes nothing.
    let mut holders = locks
        .iter()
        .filter(|lock| lock.inode == meta.ino())
        .peekable();
    let hides_others = !matches!(procfs::real_uid(1), Ok(Some(_)));
    holders.peek().is_some()
        && holders.all(|lock| match procfs::real_uid(lock.pid) {
            Ok(Some(uid)) => uid != 0 && uid != meta.uid(),
            Ok(None) => late && !hides_others,
            Err(_) => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world() -> World {
        World::read().expect("this machine has /proc")
    }

    #[test]
    fn a_second_taker_is_told_who_holds_the_lock() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("run").join("lock");
        let world = world();
        let first = Lock::take(&world, &path, "r1", Duration::ZERO).expect("free");
        assert!(Lock::is_held(&path));
        let error = Lock::take(&world, &path, "r2", Duration::ZERO).expect_err("held");
        assert_eq!(error.kind(), Kind::Locked);
        assert!(
            error.to_string().contains(&format!("pid {}", world.pid)),
            "{error}"
        );
        drop(first);
        assert!(!Lock::is_held(&path));
        Lock::take(&world, &path, "r3", Duration::ZERO).expect("free again");
    }

    #[test]
    fn a_home_is_locked_without_a_file_in_it() {
        let dir = tempfile::tempdir().expect("a folder");
        let homes = vec![dir.path().to_path_buf()];
        let world = world();
        let (locks, held) = HomeLocks::take(
            &world,
            &world.account,
            homes.clone(),
            Subject::default(),
            Duration::ZERO,
        )
        .expect("ours");
        assert_eq!(held[0].refused, None);
        assert_eq!(std::fs::read_dir(dir.path()).expect("a folder").count(), 0);
        let (_, again) = HomeLocks::take(
            &world,
            &world.account,
            homes.clone(),
            Subject::default(),
            Duration::ZERO,
        )
        .expect("ours");
        assert_eq!(again[0].refused.as_deref(), Some("another run holds it"));
        drop(locks);
        let (_, free) = HomeLocks::take(
            &world,
            &world.account,
            homes,
            Subject::default(),
            Duration::ZERO,
        )
        .expect("ours");
        assert_eq!(free[0].refused, None);
    }
}
