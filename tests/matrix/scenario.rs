//! One scenario: a unit, what disturbs it, and what must come of it.

use serde_json::Value;

/// Whose manager keeps a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manager {
    /// A user's, by login name.
    User(&'static str),
    /// The system's; the unit runs as this account.
    System(&'static str),
}

/// When a disturbance happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// A job was queued on the unit.
    Job,
    /// The stand-in said that it drains.
    Draining,
    /// The manager started another main process.
    Started,
}

/// What the kernel, the manager and the stand-in's own log show at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    /// The old life is gone, one new one serves the same home in an active unit.
    Renewed,
    /// The old life lives, and nothing was started.
    Untouched,
    /// Nothing lives.
    Gone,
    /// The old and a new life live side by side.
    Beside,
    /// Only a new life lives, and it does not serve, serves another home, or its unit is not active.
    Ill,
    /// Another life came after the first new one, and serves.
    Again,
    /// Lives follow one another.
    Looping,
}

/// A unit, a disturbance, an outcome.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its profile, and its unit's name without the prefix.
    pub name: &'static str,
    /// Whose unit it is.
    pub manager: Manager,
    /// Unit name.
    pub unit: String,
    /// File of the unit, if it is written by the fleet.
    pub file: Option<String>,
    /// `[Unit]` lines.
    pub unit_lines: String,
    /// `[Service]` lines after the usual ones: systemd takes the last of most settings.
    pub lines: String,
    /// `ExecStart=`.
    pub exec: String,
    /// Whether the fleet starts it.
    pub started: bool,
    /// Shell text before its first start.
    pub first: String,
    /// Shell text after its start, before its manager reads its units again.
    pub prepare: String,
    /// Shell text after that.
    pub late: String,
    /// Shell text during the run.
    pub during: Option<(When, String)>,
    /// The outcome, and how its reason starts; `None` where there must be no row.
    pub outcome: Option<(&'static str, &'static str)>,
    /// What must be true at the end.
    pub truth: Truth,
    /// How many main processes its manager starts during the run; `None` where that is open.
    pub starts: Option<usize>,
    /// What the environment of the new life must say: that its unit was read again.
    pub mark: &'static str,
}

/// The stand-in's command for a profile.
pub fn command(profile: &str, subcommand: &str) -> String {
    format!("/opt/stand-in/bin/python -m hermes_cli.main -p {profile} {subcommand}")
}

impl Scenario {
    /// A healthy gateway under ann's manager, restarted once.
    pub fn new(name: &'static str) -> Self {
        let unit = format!("hermes-gateway-{name}.service");
        Self {
            name,
            manager: Manager::User("ann"),
            file: Some(format!("/home/ann/.config/systemd/user/{unit}")),
            unit,
            unit_lines: String::new(),
            lines: String::new(),
            exec: command(name, "gateway run"),
            started: true,
            first: String::new(),
            prepare: String::new(),
            late: String::new(),
            during: None,
            outcome: Some(("restarted", "")),
            truth: Truth::Renewed,
            starts: Some(1),
            mark: "",
        }
    }

    /// Under another user's manager.
    pub fn of(mut self, user: &'static str) -> Self {
        self.manager = Manager::User(user);
        self.file = Some(format!("/home/{user}/.config/systemd/user/{}", self.unit));
        self
    }

    /// Under the system's manager, as an account.
    pub fn system(mut self, user: &'static str) -> Self {
        self.manager = Manager::System(user);
        self.file = Some(format!("/etc/systemd/system/{}", self.unit));
        self.lines(&format!("User={user}"))
    }

    /// The name of the unit, if it is not made of the profile's.
    pub fn unit(mut self, unit: &str) -> Self {
        let file = self.file.take().unwrap();
        self.file = Some(file.replace(&self.unit, unit));
        unit.clone_into(&mut self.unit);
        self
    }

    /// Another file of the unit; `None`: it is made by `first`.
    pub fn file(mut self, file: Option<String>) -> Self {
        self.file = file;
        self
    }

    /// Adds to `[Unit]`.
    pub fn unit_lines(mut self, lines: &str) -> Self {
        self.unit_lines = format!("{}{lines}\n", self.unit_lines);
        self
    }

    /// Adds to `[Service]`.
    pub fn lines(mut self, lines: &str) -> Self {
        self.lines = format!("{}{lines}\n", self.lines);
        self
    }

    /// Sets what the stand-in is told, as `NAME=value …`.
    pub fn told(self, words: &str) -> Self {
        let words: Vec<String> = words
            .split(' ')
            .map(|word| format!("STAND_IN_{word}"))
            .collect();
        self.lines(&format!("Environment={}", words.join(" ")))
    }

    /// Another command.
    pub fn exec(mut self, exec: &str) -> Self {
        self.exec = exec.replace("STAND-IN", &self.exec);
        self
    }

    /// Before the first start.
    pub fn first(mut self, text: &str) -> Self {
        self.first = self.filled(text);
        self
    }

    /// After the start.
    pub fn prepare(mut self, text: &str) -> Self {
        self.prepare = self.filled(text);
        self
    }

    /// After the manager read its units again.
    pub fn late(mut self, text: &str) -> Self {
        self.late = self.filled(text);
        self
    }

    /// During the run.
    pub fn during(mut self, when: When, text: &str) -> Self {
        self.during = Some((when, self.filled(text)));
        self
    }

    /// What must come of it.
    pub fn ends(mut self, outcome: &'static str, reason: &'static str, truth: Truth) -> Self {
        self.outcome = Some((outcome, reason));
        self.truth = truth;
        match truth {
            Truth::Untouched => self.starts = Some(0),
            Truth::Renewed => {}
            _ => self.starts = None,
        }
        self
    }

    /// It must be no row.
    pub fn no_row(mut self) -> Self {
        self.outcome = None;
        self.starts = Some(0);
        self
    }

    /// Its witness goes with the bus that it listens on: the log alone says what was started.
    pub const fn unwitnessed(mut self) -> Self {
        self.starts = None;
        self
    }

    /// How often it is started.
    pub fn starts(mut self, starts: usize) -> Self {
        self.starts = Some(starts);
        self
    }

    /// What the new life's environment must say.
    pub const fn mark(mut self, mark: &'static str) -> Self {
        self.mark = mark;
        self
    }

    /// It is not started by the fleet.
    pub fn asleep(mut self) -> Self {
        self.started = false;
        self
    }

    /// Its account.
    pub const fn user(&self) -> &'static str {
        match self.manager {
            Manager::User(user) | Manager::System(user) => user,
        }
    }

    /// Its home's folder.
    pub fn home(&self) -> String {
        format!("/home/{}/.hermes/profiles/{}", self.user(), self.name)
    }

    /// The file of its unit.
    pub fn text(&self) -> String {
        format!(
            "[Unit]\nDescription=stand-in {name}\nStartLimitIntervalSec=120\nStartLimitBurst=4\n{unit}\
             [Service]\nEnvironment=STAND_IN_NAME={log} STAND_IN_UNIT={file}\nExecStart={exec}\nRestart=always\n\
             RestartSec=5\nRestartForceExitStatus=75\nKillMode=mixed\nTimeoutStopSec=20\n{lines}\n\
             [Install]\nWantedBy={target}\n",
            name = self.name,
            unit = self.unit_lines,
            log = self.log(),
            file = self.unit,
            exec = self.exec,
            lines = self.lines,
            target = match self.manager {
                Manager::User(_) => "default.target",
                Manager::System(_) => "multi-user.target",
            }
        )
    }

    /// The name of the stand-in's own log: two units of one profile name have two.
    pub fn log(&self) -> String {
        match self.manager {
            Manager::User(user) => format!("{user}-{}", self.name),
            Manager::System(user) => format!("system-{user}-{}", self.name),
        }
    }

    /// systemctl for its manager.
    pub const fn systemctl(&self) -> &'static str {
        match self.manager {
            Manager::User(_) => "systemctl --user",
            Manager::System(_) => "systemctl",
        }
    }

    /// The kind of its runtime.
    pub fn kind(&self) -> &'static str {
        ["serve", "dashboard"]
            .into_iter()
            .rfind(|kind| self.exec.ends_with(kind))
            .unwrap_or("gateway")
    }

    /// Whether a row of a receipt is its.
    pub fn is(&self, row: &Value) -> bool {
        let supervisor = row["supervisor"].as_str().unwrap_or_default();
        let here = match self.manager {
            Manager::System(_) => supervisor == "systemd (system)",
            Manager::User(_) => supervisor.starts_with("systemd (user"),
        };
        let keeper = !supervisor.starts_with("systemd (");
        row["unit"] == self.unit.as_str() && here
            || keeper
                && row["profiles"]
                    .as_array()
                    .is_some_and(|all| all.iter().any(|one| one == self.name))
    }

    fn filled(&self, text: &str) -> String {
        text.replace("UNIT", &self.unit)
            .replace("FILE", self.file.as_deref().unwrap_or_default())
            .replace("CTL", self.systemctl())
            .replace("HOME", &self.home())
    }
}
