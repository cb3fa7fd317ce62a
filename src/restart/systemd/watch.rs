//! What is seen of a unit while an order is carried out: its state, its jobs, who else acts on it, and
//! which processes live in it. Reads and remembers; what to do about it is decided in `systemd`.

use zbus::OwnedVariant;

use super::super::scene;
use super::super::scene::left;
use super::super::{ForeignJob, Observation};
use super::{Acting, Halt, JOB, Job, PROPERTIES};
use crate::fleet::units::bus::{self, Signal, Trouble};
use crate::fleet::units::{self, files};
use crate::fleet::{Process, Unit, procfs};

/// How often a state is read anew because more was told; a unit that changes faster is in no state.
const QUIET_READS: usize = 20;

/// When the unit was started, as it was when it was last seen up, and how many jobs were known then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LastUp {
    condition: u64,
    inactive_exit: u64,
    known_jobs: usize,
}

impl LastUp {
    const fn of(unit: &Unit, known_jobs: usize) -> Self {
        Self {
            condition: unit.condition_timestamp_monotonic,
            inactive_exit: unit.inactive_exit_monotonic,
            known_jobs,
        }
    }
}

impl Acting<'_> {
    /// Reads the unit until nothing was told since, so that what is decided on this state knows of every
    /// job and helper up to it: signals that overtook the reply are about a later state.
    pub(super) fn read_quiet(&mut self) -> Result<(), Halt> {
        for _ in 0..QUIET_READS {
            if !self.read()? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reads the unit, and takes in what was told meanwhile; says whether anything was.
    pub(super) fn read(&mut self) -> Result<bool, Halt> {
        let known_jobs = self.jobs.len();
        let mut unit = self.read_unit()?;
        if unit.is_up() {
            self.last_up = Some(LastUp::of(&unit, known_jobs));
        }
        units::narrow_environment(&self.order.app, &mut unit);
        let told = self.collect()?;
        let known = self.seen.invocations.last().map(String::as_str);
        let known = known.unwrap_or_else(|| self.old_invocation());
        let is_new = !unit.invocation_id.is_empty() && unit.invocation_id != known;
        // The first look has nothing to compare with.
        if !self.seen.unit_before.name.is_empty() {
            let respawned = unit.n_restarts > self.last.n_restarts;
            let had_new_life = !self.seen.invocations.is_empty();
            if had_new_life && (unit.sub_state.starts_with("auto-restart") || (is_new && respawned))
            {
                self.seen.flapping = true;
            }
            if is_new {
                self.seen.invocations.push(unit.invocation_id.clone());
            }
        }
        if !unit.control_group.is_empty() {
            self.cgroup.clone_from(&unit.control_group);
        }
        self.last = unit;
        Ok(told)
    }

    /// The unit in one reply. A manager that answered before and is slow now, as on a busy machine, is asked
    /// again: what is seen of a restart must not end with the first answer that is late.
    fn read_unit(&mut self) -> Result<Unit, Halt> {
        let until = self.clock.until(bus::AWAY);
        loop {
            match units::read(&mut self.bus, &self.object) {
                Err(Trouble::Mute(_)) if self.was_read() && !left(until).is_zero() => {
                    self.clock.tell("manager", None)?;
                }
                answer => return Ok(answer?),
            }
        }
    }

    /// Whether the unit was read at least once.
    fn was_read(&self) -> bool {
        !self.last.name.is_empty()
    }

    /// Takes in what the manager told; says whether it told anything.
    pub(super) fn collect(&mut self) -> Result<bool, Halt> {
        let told = self.bus.told();
        let any = !told.is_empty();
        for signal in told {
            match signal {
                Signal::JobNew { id, path, unit } if unit == self.order.unit => {
                    self.know_job(id, &path);
                }
                Signal::JobRemoved {
                    id,
                    path,
                    unit,
                    result,
                } if unit == self.order.unit => {
                    self.know_job(id, &path);
                    if let Some(job) = self.jobs.iter_mut().find(|job| job.path == path) {
                        job.result = Some(result);
                    }
                }
                Signal::UnitNew(unit) if self.is_helper(&unit) => self.helpers.push(unit),
                Signal::UnitRemoved(unit) => self.helpers.retain(|helper| *helper != unit),
                Signal::JobNew { .. }
                | Signal::JobRemoved { .. }
                | Signal::UnitNew(_)
                | Signal::Changed
                | Signal::OwnerChanged => {}
            }
        }
        Ok(any)
    }

    /// A runtime may restart itself through a service of its own while it drains; what tells such a
    /// service is that it is named after the unit and after the process that ends (evidence: B2).
    pub(super) fn is_helper(&self, unit: &str) -> bool {
        let Some(incarnation) = &self.order.expected.incarnation else {
            return false;
        };
        let pid = incarnation.pid.to_string();
        files::stem(unit)
            .strip_prefix(files::stem(&self.order.unit))
            .is_some_and(|rest| rest.split(['-', '@', '_', '.']).any(|word| word == pid))
    }

    /// Remembers a job of somebody else, and of what type it is while it can be asked.
    pub(super) fn know_job(&mut self, id: u32, path: &str) {
        if self.jobs.iter().any(|job| job.path == path) {
            return;
        }
        let body = (JOB, "JobType");
        let job_type: Result<OwnedVariant, Trouble> =
            self.bus.query(path, PROPERTIES, "Get", &body);
        let job_type = job_type
            .ok()
            .and_then(|value| String::try_from(value).ok())
            .unwrap_or_default();
        self.seen.stop_seen |= job_type == "stop";
        self.jobs.push(Job {
            id,
            path: path.to_owned(),
            job_type,
            result: None,
            ours: false,
        });
    }

    /// Remembers that a job is ours.
    pub(super) fn own(&mut self, path: &str) {
        let id = path.rsplit('/').next().and_then(|id| id.parse().ok());
        self.jobs.push(Job {
            id: id.unwrap_or_default(),
            path: path.to_owned(),
            job_type: String::new(),
            result: None,
            ours: true,
        });
    }

    pub(super) fn result_of(&self, path: &str) -> Option<String> {
        let job = self.jobs.iter().find(|job| job.path == path)?;
        job.result.clone()
    }

    /// A job of somebody else that was over before its type could be asked was a stop if it is done,
    /// the unit is down, and no start was tried since: a start checks the unit's conditions first.
    pub(super) fn recognise_stop(&mut self) {
        let up = self.last_up.clone();
        let up = up.unwrap_or_else(|| LastUp::of(&self.seen.unit_before, 0));
        let untyped = self.jobs[up.known_jobs..].iter().any(|job| {
            !job.ours && job.job_type.is_empty() && job.result.as_deref() == Some("done")
        });
        let unstarted = up == LastUp::of(&self.last, up.known_jobs);
        let down = matches!(self.last.active_state.as_str(), "inactive" | "failed");
        if untyped && unstarted && down && !self.seen.stop_seen {
            self.seen.stop_seen = true;
            self.note("a short job of somebody else left it down: a stop".into());
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.life
            .as_ref()
            .is_some_and(|life| life.is_over().unwrap_or(false))
    }

    /// The processes of the order's kind in the unit's control group.
    pub(super) fn running(&mut self) -> Vec<Process> {
        if self.cgroup.is_empty() {
            return Vec::new();
        }
        let pids = match procfs::in_cgroup(&self.cgroup) {
            Ok(pids) => pids,
            Err(error) => {
                self.note(format!("{}: {error}", self.cgroup));
                return Vec::new();
            }
        };
        let mut found = Vec::new();
        for pid in pids {
            match scene::of_kind(self.order, pid) {
                Ok(process) => found.extend(process),
                Err(reason) => self.note(reason),
            }
        }
        found
    }

    pub(super) fn note(&mut self, note: String) {
        if !self.seen.notes.contains(&note) {
            self.seen.notes.push(note);
        }
    }

    pub(super) fn finish(mut self) -> Observation {
        if !self.object.is_empty() && self.seen.unit_error.is_none() {
            match self.read() {
                Ok(_) => self.seen.unit_after = Some(self.last.clone()),
                Err(Halt::Manager(trouble)) => self.seen.unit_error = Some(trouble.to_string()),
                Err(Halt::Told(error)) => self.seen.unit_error = Some(error.to_string()),
            }
        }
        self.recognise_stop();
        let (survivors, successors) = scene::split(self.running(), &self.before);
        let reports = scene::reports(self.order);
        self.seen.self_after = scene::report_of(&reports, &successors)
            .or(reports.first())
            .cloned();
        self.seen.old_alive = match &self.life {
            Some(life) => life.is_over().ok().map(|over| !over),
            None => scene::is_alive(self.order),
        };
        self.seen.successors = successors;
        self.seen.survivors = survivors;
        self.seen.foreign_jobs = self
            .jobs
            .into_iter()
            .filter(|job| !job.ours)
            .map(|job| ForeignJob {
                job: job.path,
                job_type: job.job_type,
                result: job.result,
            })
            .collect();
        self.seen.waited_ms = self.clock.waited_ms();
        self.seen
    }
}
