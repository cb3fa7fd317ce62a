//! Restarting a unit with its systemd manager, to the letter of what was measured (evidence 1.3).
//!
//! | step | what is done |
//! |---|---|
//! | look | subscribe, then read the unit in one reply; another life than the expected one: nothing |
//! | adopt | a job that somebody else queued is waited for; a stop is the operator's word |
//! | drain | the row's signal, only if it is caught, the runtime says that it runs, and a restart is allowed |
//! | queue | `TryRestartUnit` for what runs or waits to run; `StartUnit` once for what our drain left dead |
//! | wait | for *that* job's object, at most the unit's own budgets; every 500 ms a look in case a signal was lost |
//! | settle | invocation and process constant for as long as the row says |
//!
//! Never `RestartUnit` (starts what was stopped), `replace` (cancels an operator's stop), `reload` (proves
//! nothing), `reset-failed`, or SIGKILL. `done` is not success: the answer is what was seen afterwards.

mod drain;
mod watch;

use std::time::{Duration, Instant};

use zbus::OwnedObjectPath;

use super::scene::{self, Clock, Life, Settling, Steady, left, millis};
use super::{Call, Observation, Order, Progress};
use crate::error::{Error, Result};
use crate::fleet::units::bus::{self, Bus, Reach, Trouble};
use crate::fleet::{Process, Unit};

/// How long a call may take: a stopped manager costs no more than this, and a busy one answers within it.
const CALL_LIMIT: Duration = Duration::from_secs(5);

/// How often the unit is read although no signal came.
const BACKSTOP: Duration = Duration::from_millis(500);

/// How often a unit that settles is looked at: processes and files send no signals.
const LOOK: Duration = Duration::from_millis(250);

/// What systemd may take beyond a unit's budgets: its final SIGKILL, a busy machine.
const SLACK: Duration = Duration::from_secs(10);

/// How long the manager may take to notice that a process of it ended.
const NOTICE: Duration = Duration::from_secs(2);

/// How long a unit that is down must stay so before that is an end state.
const DOWN: Duration = Duration::from_secs(1);

/// So many lives after the first new one are a crash loop, and more would show nothing new.
const ENOUGH_LIVES: usize = 3;

/// What the answer is called where somebody froze the unit: it was not touched.
pub const FROZEN: &str = "Frozen";

const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
const JOB: &str = "org.freedesktop.systemd1.Job";
const UNIT: &str = "org.freedesktop.systemd1.Unit";

/// Carries out an order under systemd.
///
/// # Errors
/// Only when `tell` fails: whoever ordered it is gone or wants to end. What systemd refuses or does
/// not answer is in the observation.
pub fn restart(order: &Order, tell: &mut dyn FnMut(Progress) -> Result<()>) -> Result<Observation> {
    let mut clock = Clock::start(order.deadline, tell);
    let mut notes = Vec::new();
    let bus = match reach(order, &mut clock, &mut notes)? {
        Ok(bus) => bus,
        Err((error, message)) => return Ok(scene::unreached(order, &error, message)),
    };
    let mut acting = Acting {
        order,
        clock,
        bus,
        object: String::new(),
        life: None,
        before: Vec::new(),
        jobs: Vec::new(),
        helpers: Vec::new(),
        cgroup: String::new(),
        asked_again: false,
        last_up: None,
        seen: Observation {
            notes,
            ..Observation::default()
        },
        last: Unit::default(),
    };
    match acting.run() {
        Ok(()) => {}
        Err(Halt::Told(error)) => return Err(error),
        Err(Halt::Manager(trouble)) => acting.seen.unit_error = Some(trouble.to_string()),
    }
    Ok(acting.finish())
}

/// Connects to the manager. Nothing was asked yet, so a bus that is slow, as where a whole fleet connects to
/// it on a busy machine, or that is away for a moment, is tried again.
fn reach(
    order: &Order,
    clock: &mut Clock<'_>,
    notes: &mut Vec<String>,
) -> Result<Result<Box<Bus>, (String, String)>> {
    let until = clock.until(bus::AWAY);
    loop {
        let (error, message) = match Bus::reach(order.manager, CALL_LIMIT) {
            Ok(Reach::Bus(bus)) => return Ok(Ok(bus)),
            Ok(Reach::NoManager) => {
                return Ok(Err(("no-manager".into(), "no manager runs".into())));
            }
            Ok(Reach::NoBus(reason)) => ("no-bus".into(), reason),
            Err(error) => (error.kind().code().to_ascii_lowercase(), error.to_string()),
        };
        if left(until).is_zero() {
            return Ok(Err((error, message)));
        }
        let note = format!("asked again: {message}");
        if !notes.contains(&note) {
            notes.push(note);
        }
        clock.tell("connect", None)?;
        std::thread::sleep(LOOK.min(left(until)));
    }
}

/// Why the course of an order ends early.
enum Halt {
    /// Nobody wants the answer any more.
    Told(Error),
    /// The manager went away or went mute; what was seen so far is the answer.
    Manager(Trouble),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Told(error)
    }
}

impl From<Trouble> for Halt {
    fn from(trouble: Trouble) -> Self {
        Self::Manager(trouble)
    }
}

/// A job on the unit.
struct Job {
    id: u32,
    path: String,
    /// Empty if it ended before it could be asked.
    job_type: String,
    result: Option<String>,
    ours: bool,
}

struct Acting<'a> {
    order: &'a Order,
    clock: Clock<'a>,
    bus: Box<Bus>,
    object: String,
    life: Option<Life>,
    before: Vec<Process>,
    jobs: Vec<Job>,
    /// Services named after the unit and the old process that appeared since: the runtime's own restart.
    helpers: Vec<String>,
    cgroup: String,
    /// Whether our one call was lost with the manager once.
    asked_again: bool,
    last_up: Option<watch::LastUp>,
    seen: Observation,
    last: Unit,
}

impl Acting<'_> {
    fn run(&mut self) -> Result<(), Halt> {
        if !self.look()? {
            return Ok(());
        }
        if let Some(why) = self.unexpected() {
            self.seen.call = Call::Nothing { why };
            // What runs now is what came after the life that was meant.
            let meant = self.order.expected.incarnation.as_ref();
            self.before
                .retain(|process| Some(&process.incarnation) == meant);
            if self.has_new_life() {
                let id = self.last.invocation_id.clone();
                self.seen.invocations.push(id);
            }
            return self.settle();
        }
        if self.adopt()? {
            return self.settle();
        }
        if !self.is_ours_to_restart() {
            let state = self.state();
            self.seen.call = Call::Nothing {
                why: format!("it is {state}"),
            };
            return self.settle();
        }
        if let Some((error, message)) = self.cannot_start() {
            self.seen.call = Call::Refused {
                error: error.into(),
                message: message.into(),
            };
            return Ok(());
        }
        if self.should_drain()? {
            if let Err((error, message)) = self.may_restart()? {
                self.seen.call = Call::Refused { error, message };
                return Ok(());
            }
            self.drain()?;
            if self.after_drain()? {
                return self.settle();
            }
        }
        if self.is_taken_over()? {
            return self.settle();
        }
        self.queue()?;
        self.settle()
    }

    /// Whether somebody else restarts the unit, or did, since it was looked at.
    fn is_taken_over(&mut self) -> Result<bool, Halt> {
        self.read_quiet()?;
        if self.adopt()? {
            return Ok(true);
        }
        Ok(self.has_new_life() && self.came_back())
    }

    /// Subscribes and reads everything once; false if there is nothing to act on.
    fn look(&mut self) -> Result<bool, Halt> {
        self.clock.tell("look", None)?;
        let object: Result<OwnedObjectPath, Trouble> =
            self.bus.query_manager("GetUnit", &self.order.unit.as_str());
        self.object = match object {
            Ok(object) => object.to_string(),
            Err(Trouble::Refused { name, message }) => {
                let error = bus::short(&name).to_owned();
                self.seen.call = Call::Refused { error, message };
                return Ok(false);
            }
            Err(trouble) => {
                self.seen.call = Call::Refused {
                    error: "mute".into(),
                    message: trouble.to_string(),
                };
                return Err(trouble.into());
            }
        };
        self.seen.call = Call::Refused {
            error: "mute".into(),
            message: "the manager stopped answering before anything was asked".into(),
        };
        let drains = self.order.row.drain.is_some();
        self.bus.watch(&self.order.unit, &self.object, drains)?;
        self.read()?;
        self.seen.unit_before = self.last.clone();
        self.before = self.running();
        Ok(true)
    }

    /// Why this is not the life that was ordered to end, if it is not.
    fn unexpected(&mut self) -> Option<String> {
        let expected = &self.order.expected;
        if !expected.invocation_id.is_empty() && expected.invocation_id != self.last.invocation_id {
            return Some("another invocation runs already".into());
        }
        let incarnation = expected.incarnation.as_ref()?;
        match Life::hold(incarnation) {
            Ok(Some(life)) => {
                self.life = Some(life);
                None
            }
            Ok(None) => Some("the process had ended".into()),
            Err(error) => Some(format!("the process cannot be held: {error}")),
        }
    }

    /// Waits for jobs that others queued; true if there is nothing left for us to do.
    fn adopt(&mut self) -> Result<bool, Halt> {
        let mut adopted = None;
        while self.last.job_id != 0 && !self.seen.at_limit {
            let path = self.last.job_path.clone();
            self.know_job(self.last.job_id, &path);
            self.wait_for(&path)?;
            self.read_quiet()?;
            adopted = Some(path);
        }
        let Some(job) = adopted else {
            return Ok(false);
        };
        let same_life = !self.has_new_life() && self.last.is_up() && !self.is_over();
        if same_life && !self.seen.stop_seen && !self.seen.at_limit {
            let note = format!("job {job} of somebody else left the old life running");
            self.seen.notes.push(note);
            return Ok(false);
        }
        self.seen.job_result = self.result_of(&job);
        self.seen.call = Call::Adopted { job };
        Ok(true)
    }

    fn is_ours_to_restart(&self) -> bool {
        self.last.is_up() || self.waits_to_run()
    }

    /// Why the unit could not be started again, by what its manager knows of its file and its processes. The
    /// probe of [`Self::may_restart`] does not get that far, and what is drained then would stay dead.
    fn cannot_start(&self) -> Option<(&'static str, &'static str)> {
        Some(match self.last.load_state.as_str() {
            "masked" => ("UnitMasked", "its file is masked"),
            "not-found" => ("NoSuchUnit", "its file is gone"),
            "bad-setting" => ("BadUnitSetting", "its file holds a setting that cannot be"),
            "error" => ("LoadFailed", "its file could not be read"),
            _ if self.last.is_frozen => (
                FROZEN,
                "its processes are frozen, and would neither finish their work nor end",
            ),
            _ => return None,
        })
    }

    fn waits_to_run(&self) -> bool {
        self.last.active_state == "activating" && self.last.sub_state.starts_with("auto-restart")
    }

    fn state(&self) -> String {
        format!("{} ({})", self.last.active_state, self.last.sub_state)
    }

    fn has_new_life(&self) -> bool {
        self.last.invocation_id != self.old_invocation() && !self.last.invocation_id.is_empty()
    }

    fn old_invocation(&self) -> &str {
        match self.order.expected.invocation_id.as_str() {
            "" => &self.seen.unit_before.invocation_id,
            expected => expected,
        }
    }

    /// Notes that somebody else's restart gave the unit a new life.
    fn came_back(&mut self) -> bool {
        let job = self
            .jobs
            .iter()
            .rev()
            .find(|job| job.job_type != "stop" && job.result.is_some());
        self.seen.call = match job {
            Some(job) => {
                self.seen.job_result.clone_from(&job.result);
                Call::Adopted {
                    job: job.path.clone(),
                }
            }
            None => Call::Nothing {
                why: "it came back by itself".into(),
            },
        };
        true
    }

    /// Queues our one job, if the unit is still in a state that asks for it, and waits for it.
    fn queue(&mut self) -> Result<(), Halt> {
        let left_dead = matches!(self.last.active_state.as_str(), "inactive" | "failed")
            && self.seen.drain.as_ref().is_some_and(|drain| drain.exited)
            && !self.jobs.iter().any(|job| !job.ours);
        let method = if self.is_ours_to_restart() {
            "TryRestartUnit"
        } else if left_dead {
            "StartUnit"
        } else {
            let state = self.state();
            self.seen.call = Call::Nothing {
                why: format!("it is {state}"),
            };
            return Ok(());
        };
        self.clock.tell("queue", None)?;
        let body = (self.order.unit.as_str(), "fail");
        let queued: Result<OwnedObjectPath, Trouble> = self.bus.manage(method, &body);
        match queued {
            Ok(path) => {
                let job = path.to_string();
                self.own(&job);
                self.seen.call = Call::Queued { job: job.clone() };
                self.wait_for(&job)?;
                self.seen.job_result = self.result_of(&job);
                Ok(())
            }
            Err(trouble) if trouble.is_away() && !self.asked_again => {
                // Whether it took the job before it went away shows once it answers.
                self.asked_again = true;
                let until = self.clock.until(bus::AWAY);
                self.bus.come_back(&trouble, until)?;
                if self.is_taken_over()? {
                    Ok(())
                } else {
                    self.queue()
                }
            }
            Err(Trouble::Refused { name, message }) => {
                let error = bus::short(&name).to_owned();
                self.seen.call = Call::Refused { error, message };
                Ok(())
            }
            Err(trouble) => {
                let message = format!("{method} was asked for and may have been queued: {trouble}");
                let error = "mute".into();
                self.seen.call = Call::Refused { error, message };
                Err(trouble.into())
            }
        }
    }

    /// Waits until a job ended, at most the unit's own budgets.
    fn wait_for(&mut self, path: &str) -> Result<(), Halt> {
        let until = self.clock.until(self.budget());
        loop {
            self.collect()?;
            let job = self.jobs.iter().find(|job| job.path == path);
            let Some(id) = job.filter(|job| job.result.is_none()).map(|job| job.id) else {
                return Ok(());
            };
            if left(until).is_zero() {
                self.seen.at_limit = true;
                return Ok(());
            }
            self.clock.tell("job", None)?;
            let began = Instant::now();
            self.bus.wait(BACKSTOP.min(left(until)))?;
            let told = began.elapsed() < BACKSTOP;
            self.read()?;
            if !told
                && self.last.job_id != id
                && self.result_of(path).is_none()
                && self.is_gone(id)?
            {
                let note = format!("the end of job {id} was not told");
                self.seen.notes.push(note);
                return Ok(());
            }
        }
    }

    fn is_gone(&mut self, id: u32) -> Result<bool, Halt> {
        let found: Result<OwnedObjectPath, Trouble> = self.bus.query_manager("GetJob", &id);
        // The signal may have come just before this answer.
        self.collect()?;
        match found {
            Ok(_) => Ok(false),
            Err(Trouble::Refused { .. }) => Ok(true),
            Err(trouble) => Err(trouble.into()),
        }
    }

    /// What a stop and a start of this unit may take, and the pause between them.
    fn budget(&self) -> Duration {
        let unit = &self.seen.unit_before;
        let finite = |usec: u64| match usec {
            u64::MAX => self.order.row.limit,
            usec => Duration::from_micros(usec),
        };
        finite(unit.timeout_stop_usec)
            + finite(unit.timeout_start_usec)
            + finite(unit.restart_usec)
            + SLACK
    }

    /// Watches until the end state has been constant for long enough, or is down, or a limit ends it.
    fn settle(&mut self) -> Result<(), Halt> {
        if matches!(self.seen.call, Call::Refused { .. }) || self.seen.at_limit {
            return Ok(());
        }
        let mut settling = Settling::new(self.order);
        let until = self.clock.until(self.budget() + settling.longest());
        let mut up = Steady::new();
        let mut down = Steady::new();
        loop {
            self.read()?;
            let (_, successors) = scene::split(self.running(), &self.before);
            let reports = scene::reports(self.order);
            let report = scene::report_of(&reports, &successors);
            let quiet = self.last.job_id == 0;
            let is_up = quiet && self.last.active_state == "active";
            let is_down = quiet && matches!(self.last.active_state.as_str(), "inactive" | "failed");
            let lives: Vec<(u32, u64)> = successors
                .iter()
                .map(|life| (life.incarnation.pid, life.incarnation.start_ticks))
                .collect();
            let id = || self.last.invocation_id.clone();
            let steady = up.see(is_up.then(|| (id(), lives)));
            let lying = down.see(is_down.then(id));
            self.seen.settled_ms = millis(steady.max(lying));
            let looping = self.seen.flapping && self.seen.invocations.len() > ENOUGH_LIVES;
            // What nobody asked to restart does not have to prove a new life.
            let untouched = !self.has_new_life() && is_up;
            let enough = if untouched {
                steady >= self.order.row.settle
            } else {
                settling.is_done(steady, !successors.is_empty(), report)
            };
            if (is_up && enough) || lying >= DOWN || looping {
                return Ok(());
            }
            if left(until).is_zero() {
                self.seen.at_limit = true;
                return Ok(());
            }
            let agents = report.and_then(|report| report.active_agents);
            self.clock.tell("settle", agents)?;
            self.bus.wait(LOOK.min(left(until)))?;
        }
    }
}
