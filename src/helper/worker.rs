//! One helper process, from its start to its end, and those that have nothing to do.
//!
//! A helper does one task after another, as long as they are for the same account and about the same homes:
//! a look at a fleet asks each user twice, a run many times, and a start costs more than most answers.

#![expect(
    clippy::disallowed_methods,
    reason = "this is where helpers are started"
)]

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::living::Living;
use super::wire::Channel;
use super::{Beside, SUBCOMMAND, Subject};
use crate::error::{Error, Result};
use crate::world::Account;

/// A helper whose channel was closed has this long to end.
const END_LIMIT: Duration = Duration::from_secs(2);

/// How many helpers wait for work at most: each holds memory.
const MOST_IDLE: usize = 16;

/// Those that have nothing to do.
static IDLE: Mutex<Vec<Worker>> = Mutex::new(Vec::new());

/// What a helper is from its start, and cannot become later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Terms {
    /// As whom it works.
    pub(super) account: Account,
    /// Whose homes its environment names.
    pub(super) subject: Subject,
    /// Whose place it takes.
    pub(super) beside: Option<Beside>,
}

/// A helper process. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Worker {
    terms: Terms,
    child: Child,
    living: Option<Living>,
    pub(super) channel: Channel,
}

/// One of [`Worker::release`] that was started on the same terms and still lives.
pub(super) fn idle(terms: &Terms) -> Option<Worker> {
    loop {
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        let at = idle.iter().position(|worker| worker.terms == *terms)?;
        let worker = idle.swap_remove(at);
        drop(idle);
        if !ends_within(&worker.child, Duration::ZERO) {
            return Some(worker);
        }
    }
}

/// Ends all that have nothing to do: before this process ends, and after it moved to another control group, because
/// what it started before is still in the old one.
pub fn dismiss_idle() {
    let idle = std::mem::take(&mut *IDLE.lock().unwrap_or_else(PoisonError::into_inner));
    for worker in &idle {
        worker.channel.close();
    }
    // They end side by side; those that their users stopped cost the limit once.
    let end = Instant::now() + END_LIMIT;
    for mut worker in idle {
        if !ends_within(&worker.child, end.saturating_duration_since(Instant::now())) {
            let _ = worker.child.kill();
        }
    }
}

/// Lets no descriptor that whoever started us left open reach what we start. Ours all close themselves (fcntl(2),
/// `FD_CLOEXEC`).
pub fn close_inherited() {
    close_fds::CloseFdsBuilder::new()
        .threadsafe(true)
        .cloexecfrom(3);
}

impl Worker {
    /// Starts a helper; `name` is what errors call it.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) fn start(terms: Terms, name: &str, verb: &str) -> Result<Self> {
        let account = &terms.account;
        let groups: Vec<String> = account.groups()?.iter().map(u32::to_string).collect();
        let (ours, theirs) = UnixStream::pair()
            .map_err(|error| Error::io(format!("{name}: cannot make a socket pair"), error))?;
        close_inherited();
        // `/proc/self/exe` is the file that runs, also when its path was replaced since (proc(5)).
        let mut command = Command::new("/proc/self/exe");
        command
            .arg(SUBCOMMAND)
            .arg(verb)
            .arg(account.uid.to_string())
            .arg(account.gid.to_string())
            .arg(groups.join(","))
            .arg(&account.name)
            .arg(&account.home)
            .args(terms.beside.map(Beside::to_argument))
            .env_clear()
            .env("HOME", &account.home)
            .env("LANG", "C.UTF-8")
            .env("PATH", "/usr/bin:/bin")
            .envs(terms.subject.variables())
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let (child, living) =
            spawn(command).map_err(|error| Error::io(format!("cannot start the {name}"), error))?;
        Ok(Self {
            terms,
            child,
            living: Some(living),
            channel: Channel::new(ours),
        })
    }

    /// Keeps a helper that did its task for the next one. One that stands in another's place does nothing else, and one
    /// that goes on talking is not asked again.
    pub(super) fn release(self) {
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        if self.terms.beside.is_none() && !self.channel.has_more() && idle.len() < MOST_IDLE {
            idle.push(self);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The closed channel ends a helper; only one that hangs is ended by a signal.
        self.channel.close();
        if !ends_within(&self.child, END_LIMIT) {
            let _ = self.child.kill();
        }
        drop(self.living.take());
        let _ = self.child.wait();
    }
}

/// A process that is to be started, and who is told of it.
type Order = (Command, mpsc::Sender<std::io::Result<(Child, Living)>>);

/// Starts a process from a thread that lives as long as this process does: a helper dies with the thread that
/// started it (prctl(2), `PR_SET_PDEATHSIG`), and it may be needed for longer than whoever asked first.
fn spawn(command: Command) -> std::io::Result<(Child, Living)> {
    static STARTER: OnceLock<mpsc::Sender<Order>> = OnceLock::new();
    let gone = || std::io::Error::other("the thread that starts helpers is gone");
    let starter = STARTER.get_or_init(|| {
        let (sender, orders) = mpsc::channel::<Order>();
        // Where no thread can be made, nobody takes the orders, and each says so.
        let _ = std::thread::Builder::new()
            .name("helpers".into())
            .spawn(move || {
                for (mut command, asker) in orders {
                    let started = command
                        .spawn()
                        .map(|child| (Living::note(Pid::from_child(&child)), child))
                        .map(|(living, child)| (child, living));
                    let _ = asker.send(started);
                }
            });
        sender
    });
    let (sender, answer) = mpsc::channel();
    starter.send((command, sender)).map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}

/// Whether a child ends within `limit`. It is not reaped yet, so its id is still its own.
#[must_use]
pub fn ends_within(child: &Child, limit: Duration) -> bool {
    let Ok(pidfd) = pidfd_open(Pid::from_child(child), PidfdFlags::empty()) else {
        return false;
    };
    // pidfd_open(2): the descriptor is readable when the process has ended.
    let mut ended = [rustix::event::PollFd::new(
        &pidfd,
        rustix::event::PollFlags::IN,
    )];
    let limit = rustix::event::Timespec::try_from(limit).ok();
    rustix::event::poll(&mut ended, limit.as_ref()).is_ok_and(|count| count > 0)
}
