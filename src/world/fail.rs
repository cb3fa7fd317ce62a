//! Where a test kills the program: compiled in with the feature `failpoints` alone.
//!
//! A point has a name. `FLEET_UPDATE_FAIL_LOG` names a file that gets a line for each one that is
//! reached; `FLEET_UPDATE_FAIL=name` kills the process at that point, `name#3` when it is reached for the
//! third time, `#40` at the fortieth point whatever its name. With `FLEET_UPDATE_FAIL_BY=stop` the process is
//! stopped instead, so that a test can do something at that point and let it go on. `FLEET_UPDATE_CLOCK_BACK=N` sets
//! the clock that we see back by N seconds. `FLEET_UPDATE_FAIL_TIME` names a
//! file that gets the microseconds of each stretch of bookkeeping. The plan is read once.

#![expect(
    clippy::disallowed_methods,
    reason = "the plan of a test stands in the environment, and it ends this very process"
)]

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::{Mutex, OnceLock};

struct Plan {
    name: String,
    nth: usize,
    log: Option<File>,
    seen: Mutex<BTreeMap<String, usize>>,
}

/// Logs that the point was reached, and kills the process there if that is the plan.
pub fn reached(name: &str) {
    static PLAN: OnceLock<Plan> = OnceLock::new();
    let plan = PLAN.get_or_init(|| {
        let text = std::env::var("FLEET_UPDATE_FAIL").unwrap_or_default();
        let (name, nth) = text.split_once('#').unwrap_or((&text, "1"));
        Plan {
            name: name.to_owned(),
            nth: nth.parse().unwrap_or(usize::MAX),
            log: std::env::var_os("FLEET_UPDATE_FAIL_LOG")
                .and_then(|path| OpenOptions::new().append(true).create(true).open(path).ok()),
            seen: Mutex::new(BTreeMap::new()),
        }
    });
    // An empty name counts every point.
    let key = if plan.name.is_empty() { "" } else { name };
    let count = plan.seen.lock().map_or(0, |mut seen| {
        let count = seen.entry(key.to_owned()).or_insert(0);
        *count += 1;
        *count
    });
    if let Some(mut log) = plan.log.as_ref() {
        let _ = log.write_all(format!("{name}\n").as_bytes());
    }
    let is_planned = std::env::var_os("FLEET_UPDATE_FAIL").is_some();
    if is_planned && key == plan.name && count == plan.nth {
        if std::env::var_os("FLEET_UPDATE_FAIL_BY").is_some() {
            // To this very thread (raise(3)): one to the process may be taken by another thread, and this
            // one would go on until that thread is scheduled (signal(7)).
            let _ = signal_hook::low_level::raise(signal_hook::consts::SIGSTOP);
            return;
        }
        let us = rustix::process::getpid();
        let _ = rustix::process::kill_process(us, rustix::process::Signal::KILL);
        // The signal is on its way; nothing may happen before it arrives.
        loop {
            std::thread::park();
        }
    }
}

/// The clock as the test wants it.
pub fn shifted(now: std::time::Duration) -> std::time::Duration {
    static BACK: OnceLock<u64> = OnceLock::new();
    let back = BACK.get_or_init(|| {
        let text = std::env::var("FLEET_UPDATE_CLOCK_BACK").unwrap_or_default();
        text.parse().unwrap_or(0)
    });
    now.saturating_sub(std::time::Duration::from_secs(*back))
}

/// A stretch of bookkeeping that is measured.
#[derive(Debug)]
pub struct Stretch(std::time::Instant);

impl Stretch {
    /// Starts it.
    pub fn begin() -> Self {
        Self(std::time::Instant::now())
    }
}

impl Drop for Stretch {
    fn drop(&mut self) {
        static LOG: OnceLock<Option<File>> = OnceLock::new();
        let log = LOG.get_or_init(|| {
            let path = std::env::var_os("FLEET_UPDATE_FAIL_TIME")?;
            OpenOptions::new().append(true).create(true).open(path).ok()
        });
        if let Some(mut log) = log.as_ref() {
            let _ = log.write_all(format!("{}\n", self.0.elapsed().as_micros()).as_bytes());
        }
    }
}
