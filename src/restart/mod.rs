//! Restarting a runtime: the mechanism table and what carries out its rows.
//!
//! [`Restart`] is one order for one runtime, done as the account whose manager or process it is, and
//! its answer is an [`Observation`]: what was called, what was seen, and for how long. Nothing here
//! concludes that a restart worked; `verify` does, from the observation, and `plan` says what to
//! order. An executor acts only on the incarnation that it was told of, and at most once.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::error::{Error, Kind, Result};
use crate::fleet::units::bus::{self, Bus, Reach};
use crate::fleet::{Incarnation, Manager, Process, SelfReport, Unit};
use crate::helper::Task;
use crate::world::World;

pub mod command;
pub mod escape;
mod fields;
pub mod launchd;
mod matching;
pub mod respawn;
mod rows;
mod scene;
pub mod signal;
pub mod systemd;
pub mod table;

pub use respawn::Respawn;
pub use table::{Action, Drain, Fields, Mechanism, SignalName, Subject, Table};

/// What is to be restarted, as it was when that was decided, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The application that the runtime is of.
    pub app: App,
    /// Whose service manager keeps it; not looked at where the row asks no manager.
    pub manager: Manager,
    /// Its unit, or empty.
    pub unit: String,
    /// Its kind.
    pub kind: String,
    /// The homes that it serves: where it speaks of itself.
    pub homes: Vec<PathBuf>,
    /// The life that is to end.
    pub expected: Expected,
    /// How.
    pub row: Mechanism,
    /// What the row's fields stand for, for a command.
    pub fields: Fields,
    /// Whether that life spoke of itself: then the next one must, too.
    pub spoke_before: bool,
    /// How long all of it may take, from when it is begun.
    pub deadline: Duration,
}

/// One life of a runtime. Where anything else lives when an executor looks, it does nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    /// The process; `None` for a slot between two lives (`auto-restart`).
    pub incarnation: Option<Incarnation>,
    /// The unit's invocation; empty where there is no unit.
    pub invocation_id: String,
}

/// What an executor says while it works; at least once a second while it waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// `drain`, `job`, `settle`, …
    pub phase: String,
    /// What the runtime still works on, where it says so.
    pub active_agents: Option<u32>,
    /// How long this order has taken so far.
    pub waited_ms: u64,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "call")]
pub enum Call {
    /// We queued this job.
    Queued {
        /// The job's object.
        job: String,
    },
    /// Somebody else's job was there; we waited for it and queued none.
    Adopted {
        /// The job's object.
        job: String,
    },
    /// What we asked for was refused, or could not be asked.
    Refused {
        /// The error's name: `AccessDenied`, `NoSuchUnit`, `OnlyByDependency`, `mute`, …
        error: String,
        /// Its text.
        message: String,
    },
    /// We sent the process a signal.
    Signalled {
        /// Its name.
        signal: SignalName,
    },
    /// We ran the row's command.
    Ran {
        /// Its program.
        program: String,
        /// Its exit status; `None` if it was ended by a signal or by its limit.
        status: Option<i32>,
    },
    /// We asked for nothing.
    Nothing {
        /// Why.
        why: String,
    },
}

impl Default for Call {
    fn default() -> Self {
        Self::Nothing { why: String::new() }
    }
}

/// A job on the unit that we did not queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignJob {
    /// Its object.
    pub job: String,
    /// `start`, `stop`, `restart`, …; empty if it ended before it could be asked.
    pub job_type: String,
    /// How it ended; `None` if it had not when we stopped looking.
    pub result: Option<String>,
}

/// How the old life took being asked to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drained {
    /// The signal.
    pub signal: SignalName,
    /// Whether it ended within the limit.
    pub exited: bool,
    /// How long it took, or we waited.
    pub waited_ms: u64,
}

/// Raw facts of one restart; the judgement is `verify`'s. By default nothing was done and nothing seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// What was done.
    pub call: Call,
    /// How the job that we queued or adopted ended; `None` if it was not seen.
    pub job_result: Option<String>,
    /// Jobs of others on the unit since we looked first.
    pub foreign_jobs: Vec<ForeignJob>,
    /// Whether one of them was a stop: then somebody wants it down, and nothing is started.
    pub stop_seen: bool,
    /// The drain, if the old life was asked to end.
    pub drain: Option<Drained>,
    /// The unit before anything was done; a default value where there is none.
    pub unit_before: Unit,
    /// The unit at the end.
    pub unit_after: Option<Unit>,
    /// Why the unit could not be read at the end.
    pub unit_error: Option<String>,
    /// Invocations seen after the action, in order, the old one not among them.
    pub invocations: Vec<String>,
    /// Whether it went down again after it had come up.
    pub flapping: bool,
    /// Whether the old process lives; `None` where that could not be read.
    pub old_alive: Option<bool>,
    /// Processes of the same kind that run in the same slot at the end and did not before.
    pub successors: Vec<Process>,
    /// Processes of the same kind that ran in the same slot before and still do, the old one among them.
    pub survivors: Vec<Process>,
    /// What the successor says of itself at the end; else what is still said.
    pub self_after: Option<SelfReport>,
    /// How long the end state had been constant.
    pub settled_ms: u64,
    /// When it began, in nanoseconds since 1970; set by the task, not by an executor.
    #[serde(default)]
    pub began_at_nanos: u64,
    /// How long all of it took.
    pub waited_ms: u64,
    /// Whether a limit ended it.
    pub at_limit: bool,
    /// Facts worth a line.
    pub notes: Vec<String>,
}

/// Restarts one runtime, and observes; a [`Respawn`] is a task of its own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Restart(pub Order);

impl Task for Restart {
    const VERB: &'static str = "restart";
    type Event = Progress;
    type Answer = Observation;

    fn perform(
        self,
        world: &World,
        tell: &mut dyn FnMut(Progress) -> Result<()>,
    ) -> Result<Observation> {
        let Self(order) = self;
        let began = crate::world::now();
        let seen = match order.row.action {
            Action::TryRestart => systemd::restart(&order, tell),
            Action::Signal => signal::restart(world, &order, tell),
            Action::Command => command::restart(world, &order, tell),
            Action::Kickstart => launchd::restart(&order, tell),
            Action::Respawn | Action::Defer | Action::Manual | Action::Deny => Err(Error::new(
                Kind::Input,
                format!("row {:?} restarts nothing here", order.row.id),
            )),
        };
        seen.map(|seen| Observation {
            began_at_nanos: u64::try_from(began.as_nanos()).unwrap_or(u64::MAX),
            ..seen
        })
    }
}

/// Makes a manager read its unit files again, as it must once before its first restart if a planned
/// unit says `NeedDaemonReload`: a restart would otherwise run the old command (evidence: N2).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReloadManager {
    /// Whose manager.
    pub manager: Manager,
    /// How long it may take; a manager answers when it is done.
    pub limit: Duration,
}

impl Task for ReloadManager {
    const VERB: &'static str = "reload-manager";
    type Event = ();
    type Answer = ();

    fn perform(self, _world: &World, _tell: &mut dyn FnMut(()) -> Result<()>) -> Result<()> {
        let who = bus::name_of(self.manager);
        let mut bus = match Bus::reach(self.manager, self.limit)? {
            Reach::Bus(bus) => bus,
            Reach::NoManager => return Err(Error::new(Kind::Io, format!("{who} does not run"))),
            Reach::NoBus(reason) => return Err(Error::new(Kind::Io, format!("{who}: {reason}"))),
        };
        bus.manage::<_, ()>("Reload", &())
            .map_err(|trouble| trouble.into_error(&who))
    }
}
