//! The helpers that this process started and has not seen end.
//!
//! A helper dies with the thread that started it (prctl(2), `PR_SET_PDEATHSIG`), once it has asked for that. One
//! that its user stops before it asks would outlive us, so whoever ends this process ends them first.

#![expect(
    clippy::disallowed_methods,
    reason = "a helper that was not waited for still has its id, so this reaches nobody else"
)]

use std::sync::{Mutex, PoisonError};

use rustix::process::{Pid, Signal, kill_process};

/// `None` once this process is about to end: what is started then is ended at once.
static LIVING: Mutex<Option<Vec<Pid>>> = Mutex::new(Some(Vec::new()));

/// A helper that lives, until this is dropped. It must be dropped before the helper is waited for: until then
/// its id is still its own.
#[derive(Debug)]
pub(super) struct Living(Pid);

impl Living {
    pub(super) fn note(pid: Pid) -> Self {
        lock(|living| match living {
            Some(living) => living.push(pid),
            None => end(pid),
        });
        Self(pid)
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        lock(|living| {
            if let Some(living) = living {
                living.retain(|pid| *pid != self.0);
            }
        });
    }
}

/// Ends every helper that is left, whatever it is doing. For the last moment of a process.
pub fn end_all() {
    lock(|living| living.take().into_iter().flatten().for_each(end));
}

/// Ends a helper that was not waited for: it may have ended by itself, but nobody else has its id.
fn end(pid: Pid) {
    let _ = kill_process(pid, Signal::KILL);
}

fn lock(change: impl FnOnce(&mut Option<Vec<Pid>>)) {
    // A list of numbers is whole, whoever panicked.
    change(&mut LIVING.lock().unwrap_or_else(PoisonError::into_inner));
}
