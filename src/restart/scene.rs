//! What the kernel and the runtime itself show while a runtime is restarted: one old life, held by
//! its pidfd, the processes of its kind, and what they say. Shared by the executors of this folder.
//! A signal goes only through [`Life`], which holds one process and no other.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};

use super::{Call, Observation, Order, Progress, SignalName};
use crate::error::Result;
use crate::fleet::{Incarnation, Phase, Process, SelfReport, procfs, runtimes, selfreport};
use crate::world::fail_point;

/// How long a control socket may take while a restart is watched.
const SOCKET_LIMIT: Duration = Duration::from_millis(500);

/// One life of one process.
#[derive(Debug)]
pub(super) struct Life {
    pidfd: OwnedFd,
}

impl Life {
    /// Takes hold of a life; `None` if it is over.
    ///
    /// The descriptor comes first and the start is compared after it: the process that the start was
    /// read of is then the one that the descriptor holds, even if the id is used again.
    pub(super) fn hold(incarnation: &Incarnation) -> std::io::Result<Option<Self>> {
        let Some(pid) = i32::try_from(incarnation.pid)
            .ok()
            .filter(|pid| *pid > 1)
            .and_then(Pid::from_raw)
        else {
            return Err(std::io::ErrorKind::InvalidInput.into());
        };
        let pidfd = match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(Errno::SRCH) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let start = procfs::start_ticks(incarnation.pid)?;
        Ok((start == Some(incarnation.start_ticks)).then_some(Self { pidfd }))
    }

    /// Waits until the process ended, at most `limit`; says whether it did.
    pub(super) fn wait(&self, limit: Duration) -> std::io::Result<bool> {
        let limit = Timespec::try_from(limit).map_err(|_| Errno::INVAL)?;
        // pidfd_open(2): it becomes readable when the process terminates, also as a zombie.
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
        match rustix::event::poll(&mut fds, Some(&limit)) {
            Ok(count) => Ok(count > 0),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Whether the process ended.
    pub(super) fn is_over(&self) -> std::io::Result<bool> {
        self.wait(Duration::ZERO)
    }

    /// Sends it a signal.
    pub(super) fn signal(&self, name: SignalName) -> std::io::Result<()> {
        fail_point("restart.before-signal");
        rustix::process::pidfd_send_signal(&self.pidfd, number(name))?;
        fail_point("restart.signalled");
        Ok(())
    }
}

const fn number(name: SignalName) -> Signal {
    match name {
        SignalName::Hup => Signal::HUP,
        SignalName::Int => Signal::INT,
        SignalName::Quit => Signal::QUIT,
        SignalName::Term => Signal::TERM,
        SignalName::Usr1 => Signal::USR1,
        SignalName::Usr2 => Signal::USR2,
    }
}

/// Whether a process catches a signal (`SigCgt` of proc(5): bit N-1 is signal N).
pub(super) fn catches(process: &Process, name: SignalName) -> bool {
    let bit = number(name).as_raw() - 1;
    process.caught_signals >> bit & 1 == 1
}

/// A process of the order's kind; `None` if it is another, or gone.
pub(super) fn of_kind(order: &Order, pid: u32) -> Result<Option<Process>, String> {
    let argv = procfs::cmdline(pid).map_err(|error| format!("process {pid}: {error}"))?;
    let same = argv
        .and_then(|argv| runtimes::recognise(&order.app, &argv))
        .is_some_and(|found| found.kind == order.kind);
    if !same {
        return Ok(None);
    }
    procfs::read(pid, &runtimes::wanted_variables(&order.app)).map_err(|error| error.to_string())
}

/// Everything that the order's homes say of runtimes of its kind.
pub(super) fn reports(order: &Order) -> Vec<SelfReport> {
    let Some(kind) = order.app.runtime(&order.kind) else {
        return Vec::new();
    };
    // Without the list of locks the files still speak for themselves.
    let locks = procfs::Flocks::default();
    order
        .homes
        .iter()
        .flat_map(|home| selfreport::read(home, kind, &locks, SOCKET_LIMIT).reports)
        .collect()
}

/// The report about one of `processes`, the one furthest along first.
pub(super) fn report_of<'a>(
    reports: &'a [SelfReport],
    processes: &[Process],
) -> Option<&'a SelfReport> {
    reports
        .iter()
        .filter(|report| {
            processes
                .iter()
                .any(|process| names(report, &process.incarnation))
        })
        .max_by_key(|report| match report.phase {
            Phase::Running => 3,
            Phase::Failed | Phase::Stopped => 2,
            Phase::Starting | Phase::Draining => 1,
            Phase::Unknown => 0,
        })
}

/// Whether a report speaks of this life.
pub(super) fn names(report: &SelfReport, incarnation: &Incarnation) -> bool {
    report.pid == incarnation.pid && report.start_ticks == incarnation.start_ticks
}

/// Those of `now` that are, or are not, among `before`.
pub(super) fn split(now: Vec<Process>, before: &[Process]) -> (Vec<Process>, Vec<Process>) {
    now.into_iter().partition(|process| {
        before.iter().any(|known| {
            known.incarnation.pid == process.incarnation.pid
                && known.incarnation.start_ticks == process.incarnation.start_ticks
        })
    })
}

/// An observation in which nothing was done, because who has to be asked was not reached.
pub(super) fn unreached(order: &Order, error: &str, message: String) -> Observation {
    Observation {
        old_alive: is_alive(order),
        unit_error: Some(message.clone()),
        call: Call::Refused {
            error: error.to_owned(),
            message,
        },
        ..Observation::default()
    }
}

/// Whether the life that was to end lives, by its start; `None` where that cannot be read.
pub(super) fn is_alive(order: &Order) -> Option<bool> {
    let Some(incarnation) = &order.expected.incarnation else {
        return Some(false);
    };
    let start = procfs::start_ticks(incarnation.pid).ok()?;
    Some(start == Some(incarnation.start_ticks))
}

/// Time and talk of one order.
pub(super) struct Clock<'a> {
    started: Instant,
    deadline: Instant,
    told: Option<(String, Instant)>,
    tell: &'a mut dyn FnMut(Progress) -> Result<()>,
}

impl<'a> Clock<'a> {
    pub(super) fn start(limit: Duration, tell: &'a mut dyn FnMut(Progress) -> Result<()>) -> Self {
        let started = Instant::now();
        Self {
            started,
            deadline: started + limit,
            told: None,
            tell,
        }
    }

    /// When a wait of `limit` that starts now must end: the order's own deadline holds for all.
    pub(super) fn until(&self, limit: Duration) -> Instant {
        Instant::now()
            .checked_add(limit)
            .map_or(self.deadline, |end| end.min(self.deadline))
    }

    pub(super) fn waited_ms(&self) -> u64 {
        millis(self.started.elapsed())
    }

    /// Tells of a new phase at once, and of a known one once a second.
    pub(super) fn tell(&mut self, phase: &str, active_agents: Option<u32>) -> Result<()> {
        let recent = self
            .told
            .as_ref()
            .is_some_and(|(told, at)| told == phase && at.elapsed() < Duration::from_secs(1));
        if recent {
            return Ok(());
        }
        self.told = Some((phase.to_owned(), Instant::now()));
        let waited_ms = self.waited_ms();
        (self.tell)(Progress {
            phase: phase.to_owned(),
            active_agents,
            waited_ms,
        })
    }

    /// Whether a known phase was told of less than a second ago.
    pub(super) fn is_due(&self) -> bool {
        self.told
            .as_ref()
            .is_none_or(|(_, at)| at.elapsed() >= Duration::from_secs(1))
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}

/// How long an end state has been the same.
///
/// Fed with what was just seen; a state that must not count (down, between two states) is `None`.
#[derive(Debug)]
pub(super) struct Steady<K> {
    state: Option<(K, Instant)>,
}

impl<K: PartialEq> Steady<K> {
    pub(super) const fn new() -> Self {
        Self { state: None }
    }

    /// How long the state has been what it is now.
    pub(super) fn see(&mut self, now: Option<K>) -> Duration {
        let same = match (&self.state, &now) {
            (Some((known, _)), Some(now)) => known == now,
            _ => false,
        };
        if !same {
            self.state = now.map(|key| (key, Instant::now()));
        }
        self.duration()
    }

    pub(super) fn duration(&self) -> Duration {
        self.state
            .as_ref()
            .map_or(Duration::ZERO, |(_, since)| since.elapsed())
    }
}

/// Whether a new life has been seen for long enough, by what it says of itself.
#[derive(Debug)]
pub(super) struct Settling {
    spoke_before: bool,
    spoke_at: Option<(u32, Instant)>,
    settle: Duration,
    settle_silent: Duration,
    speak_limit: Duration,
}

impl Settling {
    pub(super) const fn new(order: &Order) -> Self {
        Self {
            spoke_before: order.spoke_before,
            spoke_at: None,
            settle: order.row.settle,
            settle_silent: order.row.settle_silent,
            speak_limit: order.row.speak_limit,
        }
    }

    /// The longest that [`Settling::is_done`] can want to wait for one life.
    pub(super) fn longest(&self) -> Duration {
        if self.spoke_before {
            self.speak_limit + self.settle
        } else {
            self.settle_silent
        }
    }

    /// Whether `steady` is long enough. `report` is about a successor; `successors` says whether there is one.
    pub(super) fn is_done(
        &mut self,
        steady: Duration,
        successors: bool,
        report: Option<&SelfReport>,
    ) -> bool {
        if !self.spoke_before {
            return steady >= self.settle_silent;
        }
        if !successors {
            // `Type=idle` and wrappers start the program itself late, and are active meanwhile.
            return steady >= self.speak_limit;
        }
        match report {
            // What it says of a bad start is as final as that it serves.
            Some(report) if matches!(report.phase, Phase::Running | Phase::Failed) => {
                let since = match self.spoke_at {
                    Some((pid, since)) if pid == report.pid => since,
                    _ => {
                        let now = Instant::now();
                        self.spoke_at = Some((report.pid, now));
                        now
                    }
                };
                since.elapsed().min(steady) >= self.settle
            }
            _ => {
                self.spoke_at = None;
                steady >= self.speak_limit
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn incarnation(pid: u32, start_ticks: u64) -> Incarnation {
        Incarnation {
            boot_id: String::new(),
            pid,
            start_ticks,
            pid_namespace: None,
        }
    }

    #[test]
    fn only_the_life_that_was_meant_is_held() {
        let pid = std::process::id();
        let start = procfs::start_ticks(pid).expect("read").expect("we live");
        let ours = Life::hold(&incarnation(pid, start)).expect("read");
        assert!(ours.is_some_and(|life| !life.is_over().expect("read")));
        assert!(
            Life::hold(&incarnation(pid, start + 1))
                .expect("read")
                .is_none()
        );
    }

    #[test]
    fn process_one_and_none_are_never_held() {
        for pid in [0, 1, u32::MAX] {
            assert!(Life::hold(&incarnation(pid, 0)).is_err(), "{pid}");
        }
    }

    #[test]
    fn a_state_that_changes_or_must_not_count_starts_anew() {
        let mut steady = Steady::new();
        steady.see(Some(1));
        std::thread::sleep(Duration::from_millis(5));
        assert!(steady.see(Some(1)) >= Duration::from_millis(5));
        assert!(steady.see(Some(2)) < Duration::from_millis(5));
        assert_eq!(steady.see(None), Duration::ZERO);
        assert_eq!(steady.duration(), Duration::ZERO);
    }
}
