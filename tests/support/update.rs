//! The program under test, run inside a fleet, and its receipt.

use std::fmt::Write as _;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::Value;

use super::fleet::{Fleet, Gateway};
use super::sandbox::wait;

/// Where the fleets show the program.
pub const PROGRAM: &str = "/usr/bin/update";

/// No run of these tests may take longer; its own deadlines are shorter.
const LIMIT: Duration = Duration::from_secs(420);

/// A run to be made.
#[derive(Debug)]
pub struct Update<'a> {
    fleet: &'a Fleet,
    user: Option<&'static str>,
    arguments: Vec<String>,
    before: String,
}

/// A run at work.
#[derive(Debug)]
pub struct Running {
    child: Child,
    started: Instant,
    readers: [std::thread::JoinHandle<Vec<u8>>; 2],
}

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// Its exit status; `None` if a signal ended it.
    pub status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it told.
    pub stderr: String,
    /// How long it took.
    pub took: Duration,
}

/// A receipt or a plan: one JSON document with rows of homes and runtimes.
#[derive(Debug, Clone)]
pub struct Receipt(pub Value);

impl<'a> Update<'a> {
    /// A run as root with these arguments.
    pub fn new(fleet: &'a Fleet, arguments: &[&str]) -> Self {
        Self {
            fleet,
            user: None,
            arguments: arguments.iter().map(|&one| one.to_owned()).collect(),
            before: "exec".into(),
        }
    }

    /// The run itself, with its receipt on stdout.
    pub fn apply(fleet: &'a Fleet) -> Self {
        Self::new(fleet, &["apply", "--json"])
    }

    /// Runs it as a user instead.
    pub fn by(mut self, user: &'static str) -> Self {
        self.user = Some(user);
        self
    }

    /// Runs it as a user, or as root.
    pub fn by_maybe(mut self, user: Option<&'static str>) -> Self {
        self.user = user;
        self
    }

    /// Puts shell words before the program, instead of `exec`.
    pub fn after(mut self, before: &str) -> Self {
        before.clone_into(&mut self.before);
        self
    }

    /// Starts it.
    pub fn start(self) -> Running {
        let text = format!("{} {PROGRAM} \"$@\"", self.before);
        let mut child = self
            .fleet
            .sandbox
            .command(self.user, ["sh", "-c", &text, "sh"])
            .args(&self.arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let readers = [
            std::thread::spawn(move || drain(&mut out)),
            std::thread::spawn(move || drain(&mut err)),
        ];
        Running {
            child,
            started: Instant::now(),
            readers,
        }
    }

    /// Runs it to its end.
    pub fn run(self) -> Outcome {
        self.start().finish()
    }
}

fn drain(stream: &mut impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

impl Running {
    /// Whether it has ended.
    pub fn ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// The program's own process as this machine sees it, once it is more than its launcher.
    fn pid(&self) -> Option<Pid> {
        // The script becomes nsenter(1), which forks once to enter the pid namespace; that child
        // becomes the program.
        let launcher = self.child.id();
        let children =
            std::fs::read_to_string(format!("/proc/{launcher}/task/{launcher}/children")).ok()?;
        let pid = children.trim();
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        (name.trim() == "update")
            .then(|| pid.parse().ok().and_then(Pid::from_raw))
            .flatten()
    }

    /// A handle on the program's own process, as soon as there is one.
    pub fn handle(&self) -> Option<OwnedFd> {
        let handle = pidfd_open(self.pid()?, PidfdFlags::empty()).ok()?;
        // Still the same one: its launcher has not waited for it.
        self.pid().map(|_| handle)
    }

    /// Waits for its end, and fails the test if it does not come.
    #[track_caller]
    pub fn finish(mut self) -> Outcome {
        let Some(status) = wait(&mut self.child, LIMIT) else {
            let _ = self.child.kill();
            panic!("update did not end within {LIMIT:?}");
        };
        let took = self.started.elapsed();
        let [stdout, stderr] = self
            .readers
            .map(|reader| String::from_utf8(reader.join().unwrap()).unwrap());
        Outcome {
            status: status.code(),
            signal: status.signal(),
            stdout,
            stderr,
            took,
        }
    }
}

impl Outcome {
    /// The one document on stdout.
    #[track_caller]
    pub fn receipt(&self) -> Receipt {
        Receipt(
            serde_json::from_str(&self.stdout)
                .unwrap_or_else(|error| panic!("stdout is not one document: {error}\n{self}")),
        )
    }

    /// The receipt of a run that must have ended with `status`.
    #[track_caller]
    pub fn expect(&self, status: i32) -> Receipt {
        assert_eq!(self.status, Some(status), "{self}");
        let receipt = self.receipt();
        assert_eq!(
            receipt.0["verdict"]["exit_status"], status,
            "the receipt says another status\n{self}"
        );
        receipt
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let summary = serde_json::from_str(&self.stdout).map_or_else(
            |_| self.stdout.clone(),
            |document| Receipt(document).summary(),
        );
        write!(
            f,
            "status {:?}, signal {:?}, after {:?}\n{summary}\n{}",
            self.status, self.signal, self.took, self.stderr
        )
    }
}

impl Receipt {
    /// The rows of `homes` or `runtimes`.
    pub fn rows(&self, list: &str) -> &[Value] {
        self.0[list].as_array().map_or(&[], Vec::as_slice)
    }

    /// The row of a home, by its folder.
    #[track_caller]
    pub fn home(&self, path: &str) -> &Value {
        self.rows("homes")
            .iter()
            .find(|row| row["path"] == path)
            .unwrap_or_else(|| panic!("no row for the home {path}\n{}", self.summary()))
    }

    /// The row of a gateway, by its unit and owner.
    #[track_caller]
    pub fn gateway(&self, gateway: Gateway) -> &Value {
        self.rows("runtimes")
            .iter()
            .find(|row| row["unit"] == gateway.unit().as_str() && row["uid"] == gateway.uid)
            .unwrap_or_else(|| {
                panic!(
                    "no row for {} of {}\n{}",
                    gateway.unit(),
                    gateway.user,
                    self.summary()
                )
            })
    }

    /// The outcome of a gateway's row.
    #[track_caller]
    pub fn outcome(&self, gateway: Gateway) -> &str {
        self.gateway(gateway)["outcome"].as_str().unwrap_or("")
    }

    /// The outcome of a home's row.
    #[track_caller]
    pub fn home_outcome(&self, gateway: Gateway) -> &str {
        self.home(&gateway.home())["outcome"].as_str().unwrap_or("")
    }

    /// One line a row, for a person who reads a failed test.
    pub fn summary(&self) -> String {
        let mut text = format!("verdict {}\n", self.0["verdict"]);
        for row in self.rows("homes") {
            let _ = writeln!(
                text,
                "  home {} {} {} {}",
                row["path"], row["outcome"], row["reason"], row["failures"]
            );
        }
        for row in self.rows("runtimes") {
            let _ = writeln!(
                text,
                "  {} uid {} {} {} {} {}",
                row["unit"],
                row["uid"],
                row["mechanism"],
                row["outcome"],
                row["reason"],
                row["remedy"]
            );
        }
        for row in self.rows("collectors") {
            if row["outcome"] != "ok" {
                let _ = writeln!(text, "  collector {row}");
            }
        }
        let _ = write!(text, "  notes {}", self.0["notes"]);
        text
    }
}

/// The newest receipt in root's state folder, if there is one.
pub fn latest_receipt(fleet: &Fleet) -> Option<Receipt> {
    let bytes = fleet
        .sandbox
        .read("/var/lib/fleet-update/receipts/latest.json")?;
    serde_json::from_slice(&bytes).ok().map(Receipt)
}

/// Waits until no process of the program is left, helpers included.
pub fn wait_until_gone(fleet: &Fleet) {
    let start = Instant::now();
    loop {
        let mut left = fleet.sandbox.processes();
        left.retain(|one| one.command.starts_with(PROGRAM) || one.command.contains("/exe helper"));
        if left.is_empty() {
            return;
        }
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "still there: {left:#?}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}
