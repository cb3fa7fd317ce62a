//! Asking the old life to finish its work and end, before its manager is asked to restart it: whether it may
//! be asked, whether the restart after it would be allowed, and who takes over once it ended.

use std::time::{Duration, Instant};

use zbus::{OwnedObjectPath, OwnedVariant};

use super::super::Drained;
use super::super::scene::{self, left, millis};
use super::{Acting, BACKSTOP, Halt, LOOK, NOTICE, PROPERTIES, UNIT};
use crate::fleet::units::bus::{self, Trouble};
use crate::fleet::{Manager, Phase, SelfReport, procfs};

impl Acting<'_> {
    /// Whether the old life is to be asked to end, and whether it can hear.
    pub(super) fn should_drain(&mut self) -> Result<bool, Halt> {
        let (Some(drain), Some(incarnation), Some(_)) = (
            &self.order.row.drain,
            &self.order.expected.incarnation,
            &self.life,
        ) else {
            return Ok(false);
        };
        if self.is_bound_to() {
            let note =
                "not drained: units that are bound to it would be stopped, and not started again";
            self.seen.notes.push(note.into());
            return Ok(false);
        }
        let reports = scene::reports(self.order);
        let report = reports
            .iter()
            .filter(|report| scene::names(report, incarnation))
            .find(|report| matches!(report.phase, Phase::Running | Phase::Draining));
        let Some(report) = report else {
            if self.order.spoke_before {
                let note = "not drained: it does not say that it runs";
                self.seen.notes.push(note.into());
            }
            return Ok(false);
        };
        if report.phase == Phase::Draining {
            let note = "not signalled: it finishes its work already";
            self.seen.notes.push(note.into());
            return self.await_end(drain.limit, "drain").map(|_| false);
        }
        // A signal before its handler is there kills: a young runtime is not asked (evidence: B).
        let hears = procfs::read(incarnation.pid, &[])
            .ok()
            .flatten()
            .is_some_and(|process| scene::catches(&process, drain.signal));
        if !hears {
            let note = "not drained: it does not catch the signal yet";
            self.seen.notes.push(note.into());
        }
        Ok(hears)
    }

    /// Whether other units stop as soon as this one is not active: a restart takes them along, and brings
    /// them back; the end of its process only stops them (systemd.unit(5), `BindsTo=`).
    pub(super) fn is_bound_to(&mut self) -> bool {
        let body = (UNIT, "BoundBy");
        let bound: Result<OwnedVariant, Trouble> =
            self.bus.query(&self.object, PROPERTIES, "Get", &body);
        bound
            .ok()
            .and_then(|value| Vec::<String>::try_from(value).ok())
            .is_some_and(|units| !units.is_empty())
    }

    /// Whether we may restart the unit, found out without restarting it: a drain that is followed by
    /// a denial would leave the runtime dead.
    ///
    /// `triggering` is a mode for stop jobs only; systemd checks who asks, then whether the unit allows
    /// it, then refuses that mode for any other job. Nothing is queued (systemd 246 and later).
    pub(super) fn may_restart(&mut self) -> Result<Result<(), (String, String)>, Halt> {
        let body = (self.order.unit.as_str(), "triggering");
        // It queues nothing, so it may be asked again.
        let probe: Result<OwnedObjectPath, Trouble> =
            self.bus.query_manager("TryRestartUnit", &body);
        let (name, message) = match probe {
            Ok(path) => {
                // Not refused by some future systemd: then it is our restart, and it is watched as one.
                self.own(path.as_str());
                return Ok(Ok(()));
            }
            Err(Trouble::Refused { name, message }) => (bus::short(&name).to_owned(), message),
            Err(trouble) => return Err(trouble.into()),
        };
        if name != "InvalidArgs" {
            return Ok(Err((name, message)));
        }
        // Older managers do not know the mode and say so before they check who asks.
        let unchecked = !message.contains("triggering is only valid");
        let trusted = match self.order.manager {
            Manager::System => rustix::process::geteuid().is_root(),
            Manager::User(_) => true,
        };
        if unchecked && !trusted {
            let message = "whether a restart is allowed cannot be found out beforehand";
            return Ok(Err(("unproven".into(), message.into())));
        }
        Ok(Ok(()))
    }

    pub(super) fn drain(&mut self) -> Result<(), Halt> {
        let (Some(drain), Some(life)) = (&self.order.row.drain, &self.life) else {
            return Ok(());
        };
        let began = Instant::now();
        if let Err(error) = life.signal(drain.signal) {
            self.seen.notes.push(format!("not drained: {error}"));
            return Ok(());
        }
        let mut drained = Drained {
            signal: drain.signal,
            exited: false,
            waited_ms: 0,
        };
        self.seen.drain = Some(drained.clone());
        drained.exited = self.await_end(drain.limit, "drain")?;
        drained.waited_ms = millis(began.elapsed());
        self.seen.drain = Some(drained);
        Ok(())
    }

    /// Waits until the old process ended.
    pub(super) fn await_end(&mut self, limit: Duration, phase: &str) -> Result<bool, Halt> {
        let until = self.clock.until(limit);
        loop {
            let Some(life) = &self.life else {
                return Ok(true);
            };
            match life.is_over() {
                Ok(true) => return Ok(true),
                Ok(false) if left(until).is_zero() => return Ok(false),
                Ok(false) => {}
                Err(error) => {
                    self.seen.notes.push(format!("cannot watch it: {error}"));
                    return Ok(false);
                }
            }
            if self.clock.is_due() {
                let agents = self.old_report().and_then(|report| report.active_agents);
                self.clock.tell(phase, agents)?;
            }
            // The manager tells of the end of its main processes, so this wakes for it; it also tells
            // of an operator's stop, whose type can be asked only while it lasts.
            self.bus.wait(LOOK.min(left(until)))?;
            self.collect()?;
        }
    }

    pub(super) fn old_report(&self) -> Option<SelfReport> {
        let incarnation = self.order.expected.incarnation.as_ref()?;
        scene::reports(self.order)
            .into_iter()
            .find(|report| scene::names(report, incarnation))
    }

    /// After the old life ended by itself: waits until somebody's restart took over or nobody's will.
    /// True if there is nothing left for us to do.
    pub(super) fn after_drain(&mut self) -> Result<bool, Halt> {
        if self.seen.drain.as_ref().is_none_or(|drain| !drain.exited) {
            self.read_quiet()?;
            return self.adopt();
        }
        let noticed = self.clock.until(NOTICE);
        let stopped = self.clock.until(self.budget());
        loop {
            self.read_quiet()?;
            if self.last.job_id != 0 {
                return self.adopt();
            }
            if self.has_new_life() {
                return Ok(self.came_back());
            }
            let pid = self
                .order
                .expected
                .incarnation
                .as_ref()
                .map(|life| life.pid);
            let unnoticed = self.last.is_up() && Some(self.last.main_pid) == pid;
            let until = match self.last.active_state.as_str() {
                // Its own helper restarts it; a second restart would end a new life of a moment.
                _ if !self.helpers.is_empty() => stopped,
                "deactivating" => stopped,
                _ if unnoticed => noticed,
                _ => return Ok(false),
            };
            if left(until).is_zero() {
                return Ok(false);
            }
            self.clock.tell("drained", None)?;
            self.bus.wait(BACKSTOP.min(left(until)))?;
        }
    }
}
