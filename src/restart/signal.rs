//! Restarting a runtime that no service manager keeps: it is asked to end by a signal, and who keeps
//! it running starts the next. Also what both this and `command` do afterwards: watch for the next life.
//!
//! The signal goes to one process, held by its pidfd and compared with its start. A successor is a
//! process that was not there before, of the same kind and owner, that serves one of the homes; it
//! must come and stay as long as the row says. Nothing is started here.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::scene::{self, Clock, Life, Settling, Steady, left, millis};
use super::{Call, Drained, Observation, Order, Progress, SignalName};
use crate::error::Result;
use crate::fleet::runtimes::{self, Sticky};
use crate::fleet::{Phase, Process, SelfReport, procfs};
use crate::world::{self, World};

/// How often processes are looked through.
const LOOK: Duration = Duration::from_millis(250);

/// Carries out an order by a signal.
///
/// # Errors
/// Only when `tell` fails: whoever ordered it is gone or wants to end.
pub fn restart(
    _world: &World,
    order: &Order,
    tell: &mut dyn FnMut(Progress) -> Result<()>,
) -> Result<Observation> {
    let mut watch = match Watch::begin(order, tell) {
        Ok(watch) => watch,
        Err(observation) => return Ok(*observation),
    };
    let Some(drain) = &order.row.drain else {
        let message = format!("row {:?} names no signal", order.row.id);
        return Ok(watch.refuse("row", message));
    };
    let (signal, limit) = (drain.signal, drain.limit);
    if let Err((error, message)) = watch.may_signal(signal) {
        return Ok(watch.refuse(error, message));
    }
    let began = Instant::now();
    if let Err(error) = watch.life.signal(signal) {
        return Ok(watch.refuse("signal", error.to_string()));
    }
    watch.seen.call = Call::Signalled { signal };
    let exited = watch.await_end(limit, "drain")?;
    watch.seen.drain = Some(Drained {
        signal,
        exited,
        waited_ms: millis(began.elapsed()),
    });
    if exited {
        watch.await_successor()?;
    } else {
        watch.seen.at_limit = true;
    }
    Ok(watch.finish())
}

/// One order for a process without a service manager, from the first look to the answer.
pub(super) struct Watch<'a> {
    order: &'a Order,
    clock: Clock<'a>,
    life: Life,
    old: Process,
    before: Vec<Process>,
    account_home: Option<PathBuf>,
    pub(super) seen: Observation,
}

impl<'a> Watch<'a> {
    /// Takes hold of the expected life; what cannot be held is answered at once.
    pub(super) fn begin(
        order: &'a Order,
        tell: &'a mut dyn FnMut(Progress) -> Result<()>,
    ) -> Result<Self, Box<Observation>> {
        let clock = Clock::start(order.deadline, tell);
        let nothing = |why: String| Observation {
            call: Call::Nothing { why },
            ..Observation::default()
        };
        let Some(incarnation) = &order.expected.incarnation else {
            return Err(Box::new(nothing("there is no process".into())));
        };
        let unreadable = |what: String| {
            let why = format!("the process cannot be held: {what}");
            Box::new(nothing(why))
        };
        let gone = || {
            let mut observation = nothing("the process had ended".into());
            observation.old_alive = Some(false);
            Box::new(observation)
        };
        let life = Life::hold(incarnation).map_err(|error| unreadable(error.to_string()))?;
        let life = life.ok_or_else(gone)?;
        let wanted = runtimes::wanted_variables(&order.app);
        let old = procfs::read(incarnation.pid, &wanted)
            .map_err(|error| unreadable(error.to_string()))?
            .ok_or_else(gone)?;
        let account_home = world::account(old.uid)
            .ok()
            .flatten()
            .map(|account| account.home);
        let mut watch = Self {
            order,
            clock,
            life,
            old,
            before: Vec::new(),
            account_home,
            seen: Observation::default(),
        };
        watch.before = watch.of_kind();
        Ok(watch)
    }

    pub(super) fn refuse(mut self, error: &str, message: String) -> Observation {
        self.seen.call = Call::Refused {
            error: error.to_owned(),
            message,
        };
        self.finish()
    }

    pub(super) fn clock(&mut self) -> &mut Clock<'a> {
        &mut self.clock
    }

    /// Whether the signal asks rather than kills, and the runtime is in a state to be asked.
    pub(super) fn may_signal(&self, signal: SignalName) -> Result<(), (&'static str, String)> {
        let ends = matches!(signal, SignalName::Term | SignalName::Int);
        let hears = procfs::read(self.old.incarnation.pid, &[])
            .ok()
            .flatten()
            .is_some_and(|process| scene::catches(&process, signal));
        if !ends && !hears {
            return Err((
                "not-caught",
                "it does not catch the signal, which would kill it".into(),
            ));
        }
        let running = scene::reports(self.order)
            .iter()
            .any(|report| self.speaks(report) && report.phase == Phase::Running);
        if self.order.spoke_before && !running {
            return Err(("not-running", "it does not say that it runs".into()));
        }
        Ok(())
    }

    fn speaks(&self, report: &SelfReport) -> bool {
        scene::names(report, &self.old.incarnation)
    }

    /// Waits until the old process ended.
    pub(super) fn await_end(&mut self, limit: Duration, phase: &str) -> Result<bool> {
        let until = self.clock.until(limit);
        loop {
            match self.life.wait(LOOK.min(left(until))) {
                Ok(true) => return Ok(true),
                Ok(false) if left(until).is_zero() => return Ok(false),
                Ok(false) => {}
                Err(error) => {
                    self.seen.notes.push(format!("cannot watch it: {error}"));
                    return Ok(false);
                }
            }
            if self.clock.is_due() {
                let reports = scene::reports(self.order);
                let report = reports.iter().find(|report| self.speaks(report));
                let agents = report.and_then(|report| report.active_agents);
                self.clock.tell(phase, agents)?;
            }
        }
    }

    /// Waits for the next life, and until it stayed for as long as the row says.
    pub(super) fn await_successor(&mut self) -> Result<()> {
        let mut settling = Settling::new(self.order);
        let comes_by = self.clock.until(self.order.row.limit);
        let until = self.clock.until(self.order.row.limit + settling.longest());
        let mut steady = Steady::new();
        let mut lives_seen = Vec::new();
        loop {
            let reports = scene::reports(self.order);
            let successors = self.successors(&reports);
            let lives: Vec<(u32, u64)> = successors
                .iter()
                .map(|life| (life.incarnation.pid, life.incarnation.start_ticks))
                .collect();
            if !lives.is_empty() && lives_seen.last() != Some(&lives) {
                lives_seen.push(lives.clone());
                self.seen.flapping = lives_seen.len() > 1;
            }
            let report = scene::report_of(&reports, &successors);
            let is_there = !successors.is_empty();
            let constant = steady.see(is_there.then_some(lives));
            self.seen.settled_ms = millis(constant);
            if is_there && settling.is_done(constant, true, report) {
                return Ok(());
            }
            let until = if is_there { until } else { comes_by };
            if left(until).is_zero() {
                self.seen.at_limit = true;
                return Ok(());
            }
            let agents = report.and_then(|report| report.active_agents);
            self.clock.tell("settle", agents)?;
            // Nothing tells of a process that will be started; the kernel has no signal for it
            // that needs no privilege (proc connector), so there is only looking again.
            std::thread::sleep(LOOK.min(left(until)));
        }
    }

    /// Every process of the order's kind and the old one's owner.
    fn of_kind(&mut self) -> Vec<Process> {
        let pids = match procfs::pids() {
            Ok(pids) => pids,
            Err(error) => {
                self.note(format!("cannot list processes: {error}"));
                return Vec::new();
            }
        };
        let mut found = Vec::new();
        for pid in pids {
            match scene::of_kind(self.order, pid) {
                Ok(Some(process)) if process.uid == self.old.uid => found.push(process),
                Ok(_) => {}
                Err(reason) => self.note(reason),
            }
        }
        found
    }

    fn successors(&mut self, reports: &[SelfReport]) -> Vec<Process> {
        let (_, new) = scene::split(self.of_kind(), &self.before);
        new.into_iter()
            .filter(|process| self.serves_the_homes(process, reports))
            .collect()
    }

    /// Whether a new process serves what the old one served: by evidence, or because it was started in
    /// the very same way.
    fn serves_the_homes(&self, process: &Process, reports: &[SelfReport]) -> bool {
        let app = &self.order.app;
        let Some(recognised) = runtimes::recognise(app, &process.argv) else {
            return false;
        };
        let unknown = |_: &std::path::Path| Sticky::Unknown("not read here".into());
        let home = self.account_home.as_deref();
        let evidence = runtimes::home_of(app, process, &recognised, home, reports, &unknown);
        if evidence.homes.is_empty() {
            let old = &self.old;
            return process.env_readable
                && (&process.argv, &process.env, &process.cwd) == (&old.argv, &old.env, &old.cwd);
        }
        evidence
            .homes
            .iter()
            .any(|home| self.order.homes.contains(home))
    }

    fn note(&mut self, note: String) {
        if !self.seen.notes.contains(&note) {
            self.seen.notes.push(note);
        }
    }

    pub(super) fn finish(mut self) -> Observation {
        let reports = scene::reports(self.order);
        let successors = self.successors(&reports);
        // Without a slot, what else ran before and still does are other runtimes of the same owner.
        let running = self.of_kind();
        let (survivors, _) = scene::split(running, std::slice::from_ref(&self.old));
        self.seen.self_after = scene::report_of(&reports, &successors)
            .or(reports.first())
            .cloned();
        self.seen.old_alive = self.life.is_over().ok().map(|over| !over);
        self.seen.successors = successors;
        self.seen.survivors = survivors;
        self.seen.waited_ms = self.clock.waited_ms();
        self.seen
    }
}
