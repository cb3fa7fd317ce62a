//! Restarting a launchd job: which domain has the label loaded, what launchd says of it before and after,
//! and `kickstart -k` in between.
//!
//! A label may be loaded in `gui/UID`, in `user/UID` or in `system`, and only asking tells; a command for the
//! wrong one fails with numbers that have several meanings each. So no exit number is read here: `launchctl
//! print` says whether a job is loaded, in what state, and with which process, and a job is restarted only if
//! it has another process afterwards. Nothing is loaded, unloaded, enabled or started that did not run.
//!
//! launchctl(1) is run through [`Launchctl`], so that a program that answers as documented can stand for it.

#![expect(
    clippy::disallowed_methods,
    reason = "starts launchctl, and nothing else"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::scene::{self, Clock, Life, Settling, Steady, left, millis};
use super::{Call, Observation, Order, Progress};
use crate::error::Result;
use crate::fleet::units::files::read_bounded;
use crate::fleet::{Process, Unit, procfs};

/// Where macOS has it; a program that any user could put before it on a path is not run.
const PROGRAM: &str = "/bin/launchctl";

/// How often a job is looked at: launchd tells nobody.
const LOOK: Duration = Duration::from_millis(250);

/// How long one answer may take.
const CALL_LIMIT: Duration = Duration::from_secs(10);

/// How long a job that is down must stay so before that is an end state.
const DOWN: Duration = Duration::from_secs(15);

/// No answer and no property list is read past this.
const BYTES: u64 = 256 << 10;

/// A program that answers as launchctl(1) does.
#[derive(Debug, Clone)]
pub struct Launchctl {
    program: PathBuf,
}

/// What `launchctl print` says of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Printed {
    /// It is loaded.
    Loaded(Job),
    /// That domain has no such service.
    Absent,
    /// It could not be asked, or answered what cannot be read.
    Unreadable(String),
}

/// A loaded job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Job {
    /// `running`, `waiting`, `not running`, `spawn scheduled`, …
    pub state: String,
    /// Its process, 0 if none.
    pub pid: u32,
    /// How often it was started; 0 where it does not say.
    pub runs: u64,
    /// `last exit code`, as written.
    pub last_exit: String,
    /// Its property list.
    pub path: PathBuf,
}

/// A job as its property list has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Agent {
    /// Its label.
    pub label: String,
    /// The property list.
    pub path: PathBuf,
    /// `ProgramArguments`, else `Program`.
    pub argv: Vec<String>,
    /// `EnvironmentVariables`; holds secrets, never printed.
    pub environment: Vec<(String, String)>,
    /// `WorkingDirectory`.
    pub working_directory: PathBuf,
    /// `UserName`, of a daemon.
    pub user: String,
}

impl Launchctl {
    /// The system's own.
    #[must_use]
    pub fn system() -> Self {
        Self::at(Path::new(PROGRAM))
    }

    /// Another program that answers in the same way.
    #[must_use]
    pub fn at(program: &Path) -> Self {
        Self {
            program: program.to_owned(),
        }
    }

    /// The domain in which a label is loaded for an account, and what is said of it there. One that has a
    /// process comes before one that has none.
    ///
    /// # Errors
    /// Why it is not known, where no domain has it and one of them could not be asked; or that none has it.
    pub fn find(&self, label: &str, uid: u32) -> Result<(String, Job), String> {
        let mut idle = None;
        let mut unreadable = None;
        for domain in [format!("gui/{uid}"), format!("user/{uid}"), "system".into()] {
            match self.print(&format!("{domain}/{label}")) {
                Printed::Loaded(job) if job.pid > 0 => return Ok((domain, job)),
                Printed::Loaded(job) => idle = idle.or(Some((domain, job))),
                Printed::Absent => {}
                Printed::Unreadable(why) => unreadable = Some(format!("{domain}: {why}")),
            }
        }
        idle.ok_or_else(|| unreadable.unwrap_or_else(|| format!("no domain has {label} loaded")))
    }

    /// What is said of one service, `DOMAIN/LABEL`.
    #[must_use]
    pub fn print(&self, service: &str) -> Printed {
        match self.run(&["print", service]) {
            Ok((out, _)) if out.trim_start().starts_with(&format!("{service} = {{")) => {
                Printed::Loaded(Job::parse(&out))
            }
            Ok((_, err)) if is_absent(&err) => Printed::Absent,
            Ok((_, err)) => Printed::Unreadable(err.lines().next().unwrap_or("no answer").into()),
            Err(why) => Printed::Unreadable(why),
        }
    }

    /// Ends the process of a loaded service and lets launchd start the next.
    fn kickstart(&self, service: &str) -> Result<String, String> {
        self.run(&["kickstart", "-k", service]).map(|(_, err)| err)
    }

    fn run(&self, arguments: &[&str]) -> Result<(String, String), String> {
        let mut out = tempfile::tempfile().map_err(|error| error.to_string())?;
        let mut err = tempfile::tempfile().map_err(|error| error.to_string())?;
        let copy = |file: &std::fs::File| file.try_clone().map_err(|error| error.to_string());
        let mut child = Command::new(&self.program)
            .args(arguments)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(copy(&out)?)
            .stderr(copy(&err)?)
            .spawn()
            .map_err(|error| format!("{}: {error}", self.program.display()))?;
        let until = Instant::now() + CALL_LIMIT;
        // Its end has no descriptor on macOS that could be waited on with a limit.
        while child
            .try_wait()
            .map_err(|error| error.to_string())?
            .is_none()
        {
            if left(until).is_zero() {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("did not answer within {CALL_LIMIT:?}"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let text = |file: &mut std::fs::File| {
            use std::io::{Read as _, Seek as _};
            let mut bytes = Vec::new();
            file.rewind()?;
            file.take(BYTES).read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        let read = |error: std::io::Error| error.to_string();
        Ok((text(&mut out).map_err(read)?, text(&mut err).map_err(read)?))
    }
}

/// Whether the text says that there is no such service or domain, and not that it could not be asked.
fn is_absent(text: &str) -> bool {
    text.contains("Could not find service") || text.contains("Could not find domain")
}

impl Job {
    /// Reads the outermost level of what `print` shows: nested groups repeat names.
    fn parse(text: &str) -> Self {
        let mut job = Self::default();
        let mut depth = 0_usize;
        for line in text.lines().map(str::trim) {
            if line.ends_with('{') {
                depth += 1;
                continue;
            }
            if line == "}" {
                depth = depth.saturating_sub(1);
                continue;
            }
            let Some((key, value)) = line.split_once(" = ").filter(|_| depth == 1) else {
                continue;
            };
            match key {
                "state" => value.clone_into(&mut job.state),
                "pid" => job.pid = value.parse().unwrap_or_default(),
                "runs" => job.runs = value.parse().unwrap_or_default(),
                "last exit code" => value.clone_into(&mut job.last_exit),
                "path" => job.path = value.into(),
                _ => {}
            }
        }
        job
    }

    /// The same facts in the words of a unit, for the judgement: one process is one invocation.
    fn as_unit(&self) -> Unit {
        let up = self.pid > 0 && self.state == "running";
        let (active_state, sub_state) = match self.state.as_str() {
            _ if up => ("active", "running"),
            "spawn scheduled" | "running" => ("activating", "auto-restart"),
            _ => ("inactive", "dead"),
        };
        Unit {
            loaded: true,
            load_state: "loaded".into(),
            active_state: active_state.into(),
            sub_state: sub_state.into(),
            main_pid: self.pid,
            invocation_id: if up {
                self.pid.to_string()
            } else {
                String::new()
            },
            result: format!("last exit code {}", self.last_exit),
            condition_result: true,
            ..Unit::default()
        }
    }
}

/// The jobs of a folder of property lists, and why others could not be read; every label, whoever's it is.
#[must_use]
pub fn agents(folder: &Path) -> (Vec<Agent>, Vec<String>) {
    let (mut agents, mut notes) = (Vec::new(), Vec::new());
    let Ok(entries) = std::fs::read_dir(folder) else {
        return (agents, notes);
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "plist"));
    paths.sort();
    for path in paths {
        match read_agent(&path) {
            Ok(agent) => agents.push(agent),
            Err(why) => notes.push(format!("{}: {why}", path.display())),
        }
    }
    (agents, notes)
}

fn read_agent(path: &Path) -> Result<Agent, String> {
    let bytes = read_bounded(path, BYTES, true).map_err(|error| error.to_string())?;
    let value = plist::Value::from_reader(std::io::Cursor::new(bytes))
        .map_err(|error| error.to_string())?;
    let list = value.as_dictionary().ok_or("is no dictionary")?;
    let text = |key: &str| {
        list.get(key)
            .and_then(plist::Value::as_string)
            .unwrap_or_default()
    };
    let label = text("Label");
    if label.is_empty() {
        return Err("has no Label".into());
    }
    let words = list
        .get("ProgramArguments")
        .and_then(plist::Value::as_array);
    let argv = match words {
        Some(words) => words
            .iter()
            .filter_map(|word| word.as_string().map(str::to_owned))
            .collect(),
        None => vec![text("Program").to_owned()],
    };
    let environment = list
        .get("EnvironmentVariables")
        .and_then(plist::Value::as_dictionary);
    Ok(Agent {
        label: label.to_owned(),
        path: path.to_owned(),
        argv,
        environment: environment
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.clone(), value.as_string()?.to_owned())))
            .collect(),
        working_directory: text("WorkingDirectory").into(),
        user: text("UserName").to_owned(),
    })
}

/// Carries out an order under launchd.
///
/// # Errors
/// Only when `tell` fails: whoever ordered it is gone or wants to end.
pub fn restart(order: &Order, tell: &mut dyn FnMut(Progress) -> Result<()>) -> Result<Observation> {
    restart_by(&Launchctl::system(), order, tell)
}

/// The same, by a given launchctl.
///
/// # Errors
/// As for [`restart`].
pub fn restart_by(
    launchctl: &Launchctl,
    order: &Order,
    tell: &mut dyn FnMut(Progress) -> Result<()>,
) -> Result<Observation> {
    let clock = Clock::start(order.deadline, tell);
    let refused = |error: &str, why: String| Ok(scene::unreached(order, error, why));
    let Some(label) = order.fields.fill_exactly("{label}") else {
        return refused("row", "its label is not known".into());
    };
    let Some(incarnation) = &order.expected.incarnation else {
        return refused("row", "it has no process".into());
    };
    let uid = match procfs::read(incarnation.pid, &[]) {
        Ok(Some(process)) => process.uid,
        Ok(None) => return refused("gone", "the process had ended".into()),
        Err(error) => return refused("kernel", error.to_string()),
    };
    let (domain, job) = match launchctl.find(&label, uid) {
        Ok(found) => found,
        Err(why) => return refused("NoSuchUnit", why),
    };
    let life = match Life::hold(incarnation) {
        Ok(Some(life)) => life,
        Ok(None) => return refused("gone", "the process had ended".into()),
        Err(error) => return refused("kernel", error.to_string()),
    };
    let mut acting = Acting {
        launchctl,
        order,
        clock,
        service: format!("{domain}/{label}"),
        life,
        before: Vec::new(),
        last: job.clone(),
        seen: Observation {
            unit_before: job.as_unit(),
            ..Observation::default()
        },
    };
    acting.before = acting.running();
    if job.pid == incarnation.pid || acting.is_below(job.pid) {
        acting.act()?;
    } else {
        acting.seen.call = Call::Nothing {
            why: format!("{} has process {}", acting.service, job.pid),
        };
    }
    Ok(acting.finish())
}

struct Acting<'a> {
    launchctl: &'a Launchctl,
    order: &'a Order,
    clock: Clock<'a>,
    service: String,
    life: Life,
    before: Vec<Process>,
    last: Job,
    seen: Observation,
}

impl Acting<'_> {
    /// Whether the expected process is a child of the job's own: a wrapper's.
    fn is_below(&self, pid: u32) -> bool {
        let expected = self.order.expected.incarnation.as_ref();
        expected
            .and_then(|life| procfs::read(life.pid, &[]).ok().flatten())
            .is_some_and(|process| pid > 1 && process.parent == pid)
    }

    fn act(&mut self) -> Result<()> {
        self.clock.tell("kickstart", None)?;
        match self.launchctl.kickstart(&self.service) {
            Ok(said) => {
                if let Some(line) = said.lines().find(|line| !line.trim().is_empty()) {
                    self.seen.notes.push(format!("launchctl said: {line}"));
                }
                self.seen.call = Call::Queued {
                    job: self.service.clone(),
                };
            }
            Err(message) => {
                self.seen.call = Call::Refused {
                    error: "launchctl".into(),
                    message,
                };
                return Ok(());
            }
        }
        self.settle()
    }

    /// Looks until a new process has been the job's for as long as the row says.
    fn settle(&mut self) -> Result<()> {
        let mut settling = Settling::new(self.order);
        let until = self.clock.until(self.order.row.limit + settling.longest());
        let old_pid = self.last.pid;
        let (mut up, mut down) = (Steady::new(), Steady::new());
        loop {
            match self.launchctl.print(&self.service) {
                Printed::Loaded(job) => self.last = job,
                Printed::Absent => {
                    self.seen.unit_error = Some(format!("{} is not loaded any more", self.service));
                    return Ok(());
                }
                Printed::Unreadable(why) => {
                    self.seen.unit_error = Some(why);
                    return Ok(());
                }
            }
            let unit = self.last.as_unit();
            let is_new = unit.is_up() && unit.main_pid != old_pid;
            let id = unit.invocation_id.clone();
            if is_new && self.seen.invocations.last() != Some(&id) {
                self.seen.flapping |= !self.seen.invocations.is_empty();
                self.seen.invocations.push(id.clone());
            }
            let (_, successors) = scene::split(self.running(), &self.before);
            let lives: Vec<(u32, u64)> = successors
                .iter()
                .map(|life| (life.incarnation.pid, life.incarnation.start_ticks))
                .collect();
            let reports = scene::reports(self.order);
            let report = scene::report_of(&reports, &successors);
            let steady = up.see(is_new.then_some((id, lives)));
            // Where nothing ended, launchd did not do it: that is seen as long as a new start would take.
            let idle = down.see((!is_new).then_some(unit.active_state));
            self.seen.settled_ms = millis(steady.max(idle));
            let done = is_new && settling.is_done(steady, !successors.is_empty(), report);
            if done || idle >= DOWN.min(self.order.row.limit) {
                return Ok(());
            }
            if left(until).is_zero() {
                self.seen.at_limit = true;
                return Ok(());
            }
            self.clock
                .tell("settle", report.and_then(|report| report.active_agents))?;
            std::thread::sleep(LOOK.min(left(until)));
        }
    }

    /// The job's own process and its children, those of the order's kind.
    fn running(&mut self) -> Vec<Process> {
        let pid = self.last.pid;
        let pids = procfs::pids().unwrap_or_default();
        let mut found = Vec::new();
        for candidate in pids {
            if let Ok(Some(process)) = scene::of_kind(self.order, candidate)
                && (candidate == pid || pid > 1 && process.parent == pid)
            {
                found.push(process);
            }
        }
        found
    }

    fn finish(mut self) -> Observation {
        if self.seen.unit_error.is_none() {
            self.seen.unit_after = Some(self.last.as_unit());
        }
        let (survivors, successors) = scene::split(self.running(), &self.before);
        let reports = scene::reports(self.order);
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

#[cfg(test)]
mod tests;
