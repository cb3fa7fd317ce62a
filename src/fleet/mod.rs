//! What exists on this machine: homes, installs and runtimes, each with the evidence for it.
//!
//! These are the types; the files beside this one fill them. Nothing here decides what to do with
//! a runtime (`plan`), and nothing here changes anything. All of it can be serialised, since what
//! belongs to another user is read by a helper that runs as that user.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub mod procfs;
pub mod runtimes;
pub mod units;
pub mod selfreport;
pub mod scope;
pub mod installs;
pub mod homes;
pub mod processes;
pub mod supervisors;
pub mod survey;
pub mod assembly;
pub mod again;
#[cfg(test)]
pub mod sample;
pub mod inventory;

/// One look at the machine.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Inventory {
    /// Homes, sorted by owner and path.
    pub homes: Vec<Home>,
    /// Code trees, sorted by path.
    pub installs: Vec<Install>,
    /// Runtimes, sorted by their first home and kind.
    pub runtimes: Vec<Runtime>,
    /// What each source of evidence was asked, and answered.
    pub collectors: Vec<Collector>,
    /// Facts worth a line that are not a row: stale records, odd surroundings.
    pub notes: Vec<String>,
}

/// A profile's directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Home {
    /// Stable identifier: derived from the resolved path.
    pub id: String,
    /// Profile name: the folder's name, or the default profile's.
    pub profile: String,
    /// Where it is, as found.
    pub path: PathBuf,
    /// The root home that it belongs to; its siblings share it.
    pub root: PathBuf,
    /// Its owner.
    pub uid: u32,
    /// Device and inode of the folder: what makes two paths one home.
    pub file_id: (u64, u64),
    /// What the folder is.
    pub status: HomeStatus,
    /// How it was found (`passwd`, `unit x.service`, `process 12`, `--home`, `config`).
    pub found_by: Vec<String>,
    /// Whether the application's own updater is active in its root home, and how that was seen.
    pub updater: Option<String>,
    /// Why a runtime on another machine may serve it: a fresh state file whose process is not here.
    #[serde(default)]
    pub foreign_state: Option<String>,
}

/// What a home's folder is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HomeStatus {
    /// A profile with a configuration file.
    Configured,
    /// A profile without a configuration file: it runs on defaults.
    Unconfigured,
    /// A folder among profiles that the application would not take for one.
    NotAProfile,
    /// It could not be looked at, and why.
    Unreadable(String),
    /// Its folder or a link of it leads out of what its owner controls, and how.
    Foreign(String),
}

/// A code tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Install {
    /// Stable identifier: derived from the resolved path.
    pub id: String,
    /// The virtual environment, checkout or package folder.
    pub path: PathBuf,
    /// What put it there.
    pub kind: InstallKind,
    /// The package folder, links resolved.
    pub package: PathBuf,
    /// The interpreter of its virtual environment.
    pub interpreter: Option<PathBuf>,
    /// Its owner.
    pub uid: u32,
    /// Release version, as written.
    pub version: Option<String>,
    /// The configuration version that its code expects.
    pub config_version: Option<u32>,
    /// When its code last changed (ctime), in nanoseconds since 1970, and the file that says so.
    pub changed: Option<Changed>,
    /// Root homes whose own checkout it is.
    pub roots: Vec<PathBuf>,
    /// Whether its own updater or package manager is at work, and how that was seen.
    pub updater: Option<String>,
}

/// When code changed, and the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// Status change time in nanoseconds since 1970: build tools do not set it (stat(2)).
    pub at_nanos: u64,
    /// The file whose time it is.
    pub file: PathBuf,
}

/// What put a code tree where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InstallKind {
    /// A git checkout.
    Git,
    /// A virtual environment filled by pip.
    Pip,
    /// A virtual environment filled by uv.
    Uv,
    /// A pipx environment.
    Pipx,
    /// A container image.
    Image,
    /// The Nix store.
    Nix,
    /// A Debian package.
    Dpkg,
    /// Homebrew's cellar.
    Homebrew,
    /// None of these.
    Unknown,
}

/// Which service manager, or which bus: root's or one user's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Manager {
    /// Process 1.
    System,
    /// The manager of this user id (`user@UID.service`).
    User(u32),
}

/// One life of a process. A process id alone is reused; together with its start it is not.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Incarnation {
    /// The kernel's id of the boot that it lives in.
    pub boot_id: String,
    /// Process id.
    pub pid: u32,
    /// Start in clock ticks since boot (field 22 of `/proc/PID/stat`).
    pub start_ticks: u64,
    /// Inode of its pid namespace, where it may be read.
    pub pid_namespace: Option<u64>,
}

/// What the kernel says of a process (`/proc/PID`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Which life of which process.
    pub incarnation: Incarnation,
    /// Real user id.
    pub uid: u32,
    /// Parent process id.
    pub parent: u32,
    /// Session id (setsid(2)).
    pub session: u32,
    /// Controlling terminal's device number; 0 is none.
    pub terminal: u32,
    /// Command line as tokens, lossily decoded.
    pub argv: Vec<String>,
    /// Path in the unified hierarchy (`0::` of `/proc/PID/cgroup`).
    pub cgroup: String,
    /// Executable, without the kernel's ` (deleted)`; `None` where it may not be read.
    pub exe: Option<PathBuf>,
    /// Whether that file was replaced or removed since the start.
    pub exe_deleted: bool,
    /// Working directory, where it may be read.
    pub cwd: Option<PathBuf>,
    /// The variables of its initial environment that a descriptor asks for, where they may be read.
    pub env: Vec<(String, String)>,
    /// Whether the initial environment could be read at all.
    pub env_readable: bool,
    /// Mask of the signals that it catches (`SigCgt` of `/proc/PID/status`, bit N-1 is signal N).
    pub caught_signals: u64,
    /// When it started, in nanoseconds since 1970 (boot time plus ticks; exact to about a second).
    pub started_at_nanos: u64,
}

/// What a service manager says of a unit, all read in one call (`GetAll("")`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// Whose manager; `None` only in a default value.
    pub manager: Option<Manager>,
    /// Full name with suffix.
    pub name: String,
    /// Whether the manager has it in memory. Unloaded units are read from their files and are inactive.
    pub loaded: bool,
    /// `loaded`, `not-found`, `masked`, `error`, `bad-setting`.
    pub load_state: String,
    /// `active`, `reloading`, `inactive`, `failed`, `activating`, `deactivating`, `maintenance`.
    pub active_state: String,
    /// Finer: `running`, `auto-restart`, `dead`, `stop-sigterm`, …
    pub sub_state: String,
    /// `enabled`, `enabled-runtime`, `static`, `disabled`, `masked`, …; empty for transient ones.
    pub unit_file_state: String,
    /// Where the unit is written.
    pub fragment_path: PathBuf,
    /// Its drop-ins.
    pub drop_in_paths: Vec<PathBuf>,
    /// 32 hexadecimal digits; empty if it never ran.
    pub invocation_id: String,
    /// Main process, 0 if none.
    pub main_pid: u32,
    /// Its control group's path.
    pub control_group: String,
    /// Whether its processes are frozen: they would not hear a signal, and its stop would wait for them.
    #[serde(default)]
    pub is_frozen: bool,
    /// `success`, `exit-code`, `signal`, `timeout`, `start-limit-hit`, `exec-condition`, …
    pub result: String,
    /// Last main process's exit code kind (`CLD_*`).
    pub exec_main_code: i32,
    /// Last main process's exit status or signal.
    pub exec_main_status: i32,
    /// Wall clock start of the main process, in microseconds since 1970.
    pub exec_main_start_usec: u64,
    /// Service type: `simple`, `notify`, `oneshot`, …
    pub service_type: String,
    /// `Restart=`.
    pub restart: String,
    /// `RestartSec=` in microseconds.
    pub restart_usec: u64,
    /// Start budget in microseconds; `u64::MAX` is infinity.
    pub timeout_start_usec: u64,
    /// Stop budget in microseconds; `u64::MAX` is infinity.
    pub timeout_stop_usec: u64,
    /// Automatic restarts so far. Proves nothing about ours.
    pub n_restarts: u32,
    /// Whether the unit's files changed since they were read.
    pub need_daemon_reload: bool,
    /// Id of the queued job, 0 if none.
    pub job_id: u32,
    /// Object path of the queued job, `/` if none.
    pub job_path: String,
    /// Whether its `Condition…=` held at the last start.
    pub condition_result: bool,
    /// When the last `Condition…=` check was, monotonic microseconds; 0 is never.
    pub condition_timestamp_monotonic: u64,
    /// Monotonic microseconds: when it last became active.
    pub active_enter_monotonic: u64,
    /// Monotonic microseconds: when it last ceased to be active.
    pub active_exit_monotonic: u64,
    /// Monotonic microseconds: when it last ceased to be inactive.
    pub inactive_exit_monotonic: u64,
    /// The commands of `ExecStart=`, as tokens.
    pub exec_start: Vec<Vec<String>>,
    /// `Environment=` as it takes effect; holds secrets, never printed.
    pub environment: Vec<String>,
    /// `EnvironmentFile=` paths.
    pub environment_files: Vec<PathBuf>,
    /// `WorkingDirectory=`.
    pub working_directory: PathBuf,
    /// `User=`; empty is the manager's own.
    pub user: String,
    /// `KillMode=`.
    pub kill_mode: String,
    /// Exit statuses after which it is not restarted.
    pub restart_prevent_status: Vec<i32>,
    /// Units that it is bound to, requires or is part of.
    pub binds_to: Vec<String>,
    /// See `binds_to`.
    pub requires: Vec<String>,
    /// See `binds_to`.
    pub part_of: Vec<String>,
    /// Whether every unit of these three lists is active; an inactive one may have stopped this one.
    pub dependencies_active: bool,
    /// `RefuseManualStart=`.
    pub refuse_manual_start: bool,
    /// `RefuseManualStop=`.
    pub refuse_manual_stop: bool,
}

/// What a runtime says of itself, in its home's files and on its control socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelfReport {
    /// The home whose files were read.
    pub home: PathBuf,
    /// The kind of runtime that writes such files.
    pub kind: String,
    /// Process id that it names.
    pub pid: u32,
    /// Start that it names, in clock ticks since boot.
    pub start_ticks: u64,
    /// Its state, as it calls it; `None` where only the pid file was there.
    pub state: Option<String>,
    /// What that state means.
    pub phase: Phase,
    /// Whether the kernel says that this process holds the home's lock file (`/proc/locks`).
    pub holds_lock: bool,
    /// Whether its control socket answered with this pid and start.
    pub socket_answered: bool,
    /// What is being worked on, where it says so.
    pub active_agents: Option<u32>,
    /// When it last wrote its state, as written.
    pub updated_at: Option<String>,
    /// Code version that it runs, where it says so.
    pub code_version: Option<String>,
    /// Code revision that it runs, where it says so.
    pub code_sha: Option<String>,
    /// Home that it serves, where it says so.
    pub served_home: Option<PathBuf>,
    /// Profiles that it serves, where it says so.
    pub served_profiles: Vec<String>,
}

/// What a runtime's own state means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// It said nothing that a descriptor knows.
    #[default]
    Unknown,
    /// It will serve soon.
    Starting,
    /// It serves.
    Running,
    /// It finishes its work.
    Draining,
    /// It was stopped on purpose.
    Stopped,
    /// It says that it does not serve as it should.
    Failed,
}

/// Something that serves one or more homes, or a slot that should.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runtime {
    /// Stable within a run: the slot (manager and unit), else the process.
    pub id: String,
    /// Kind of the descriptor (`gateway`, `serve`, …), or `other`.
    pub kind: String,
    /// Whether the descriptor knows the kind.
    pub managed: bool,
    /// Ids of the homes that it serves; empty where that is not known.
    pub homes: Vec<String>,
    /// How its home was found, or why it was not.
    pub home_evidence: String,
    /// Owner of its process, or of its slot.
    pub uid: u32,
    /// Id of the install that it runs from.
    pub install: Option<String>,
    /// The process that is the runtime (not a wrapper); `None` for a slot without one.
    pub process: Option<Process>,
    /// Who keeps it running.
    pub supervisor: Supervisor,
    /// Its unit, where a service manager keeps it.
    pub unit: Option<Unit>,
    /// What it says of itself.
    pub self_report: Option<SelfReport>,
    /// Why it must not be judged by what was read: one line a problem.
    pub unreadable: Vec<String>,
    /// Other pid or mount namespace than ours, where that could be read.
    pub foreign_namespace: bool,
    /// Whether this process is in its control group, or is below it where it has no unit.
    pub encloses_us: bool,
    /// Whether this process descends from it.
    #[serde(default)]
    pub is_ancestor: bool,
}

/// Who keeps a runtime running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "manager")]
pub enum Supervisor {
    /// A service unit.
    Systemd {
        /// Whose manager.
        scope: Manager,
        /// The innermost service of its control group.
        unit: String,
    },
    /// A scope: a person's session or terminal.
    Scope {
        /// The scope's unit name.
        unit: String,
    },
    /// A launchd job.
    Launchd {
        /// `system`, `gui/UID` or `user/UID`.
        domain: String,
        /// The job's label.
        label: String,
    },
    /// An s6 service directory.
    S6 {
        /// Path of the service directory.
        slot: PathBuf,
    },
    /// The application's desktop program respawns it.
    Desktop {
        /// What the parent is.
        parent: String,
    },
    /// Another program respawns it.
    External {
        /// The program's name: `runsv`, `supervisord`, `pm2`, a shell's loop.
        program: String,
        /// Its process.
        pid: u32,
    },
    /// Nobody: its parent is process 1 or a terminal's shell, and it has no service.
    Nobody,
    /// A living parent that no rule knows, or a control group that says nothing.
    Unknown {
        /// What was seen.
        seen: String,
    },
}

/// A source of evidence, and how it went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collector {
    /// `kernel`, `system manager`, `manager of ann`, `self of ann`, `homes of ann`, …
    pub name: String,
    /// Who asked: `uid 0`, `uid 1001`.
    pub principal: String,
    /// How many things it found.
    pub found: usize,
    /// How it went.
    pub outcome: CollectorOutcome,
    /// Why, if not `ok`.
    pub reason: String,
}

/// How asking a source went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CollectorOutcome {
    /// It answered.
    Ok,
    /// It does not exist here, which is a fact and fine.
    Skipped,
    /// It exists and did not answer, or answered what cannot be: the run is not clean.
    Unverified,
}

impl Collector {
    /// A source that answered with `found` things.
    pub fn ok(name: impl Into<String>, uid: u32, found: usize) -> Self {
        Self::with(name, uid, found, CollectorOutcome::Ok, String::new())
    }

    /// A source that does not exist here.
    pub fn skipped(name: impl Into<String>, uid: u32, reason: impl Into<String>) -> Self {
        Self::with(name, uid, 0, CollectorOutcome::Skipped, reason.into())
    }

    /// A source that must answer, and did not.
    pub fn unverified(name: impl Into<String>, uid: u32, reason: impl Into<String>) -> Self {
        Self::with(name, uid, 0, CollectorOutcome::Unverified, reason.into())
    }

    fn with(
        name: impl Into<String>,
        uid: u32,
        found: usize,
        outcome: CollectorOutcome,
        reason: String,
    ) -> Self {
        Self {
            name: name.into(),
            principal: format!("uid {uid}"),
            found,
            outcome,
            reason,
        }
    }
}

impl Unit {
    /// Whether the manager reports it as running or about to run.
    #[must_use]
    pub fn is_up(&self) -> bool {
        matches!(self.active_state.as_str(), "active" | "reloading")
    }

    /// Whether a person enabled it.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        matches!(
            self.unit_file_state.as_str(),
            "enabled" | "enabled-runtime" | "linked" | "linked-runtime" | "alias"
        )
    }
}
