//! Contestants that run in turn, what each run took, and whether it counts.

use std::time::Duration;

use crate::inside::BENCH;
use crate::machine::Machine;

/// Who a contestant is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The program under test.
    Ours,
    /// What the machine allows; of several, the fastest counts.
    Limit,
    /// Another program that does the same job.
    Peer,
}

/// Something that has to be true of a run, beside its exit status.
type Check<'a> = Box<dyn FnMut(&Output) -> Result<(), String> + 'a>;

/// A command that is timed.
pub struct Contestant<'a> {
    role: Role,
    command: Vec<String>,
    user: Option<String>,
    status: i32,
    rounds: Option<usize>,
    before: Box<dyn FnMut() + 'a>,
    check: Check<'a>,
}

/// What a run printed.
#[derive(Debug)]
pub struct Output {
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
}

/// What must hold between the medians of one row.
#[derive(Debug, Clone, Copy)]
pub enum Goal {
    /// The peer takes at least so many times as long.
    Peer(f64),
    /// It takes at most so many times as long as the limit.
    Limit(f64),
    /// It takes at most so long.
    Time(Duration),
    /// It and its helpers have at most so many MiB.
    Memory(f64),
}

/// What came of one case at one size.
#[derive(Debug, Default)]
pub struct Row {
    /// The case.
    pub case: &'static str,
    /// Its size.
    pub size: String,
    /// What the program took.
    pub ours: Vec<Duration>,
    /// What the fastest limit took.
    pub limit: Vec<Duration>,
    /// What the peer took.
    pub peer: Vec<Duration>,
    /// Peak of the memory of the program, in MiB.
    pub memory: Option<f64>,
    /// What must hold.
    pub goals: Vec<Goal>,
    /// Runs that do not count, and why.
    pub wrong: Vec<String>,
}

impl<'a> Contestant<'a> {
    /// One whose command must end with 0.
    pub fn new<S: AsRef<str>>(role: Role, command: &[S]) -> Self {
        Self {
            role,
            command: command
                .iter()
                .map(|word| word.as_ref().to_owned())
                .collect(),
            user: None,
            status: 0,
            rounds: None,
            before: Box::new(|| ()),
            check: Box::new(|_| Ok(())),
        }
    }

    /// As a user.
    pub fn by(mut self, user: &str) -> Self {
        self.user = Some(user.to_owned());
        self
    }

    /// In fewer rounds than the others.
    pub fn rounds(mut self, rounds: usize) -> Self {
        self.rounds = Some(rounds);
        self
    }

    /// What is done before each run, and not timed.
    pub fn before(mut self, before: impl FnMut() + 'a) -> Self {
        self.before = Box::new(before);
        self
    }

    /// What has to be true after each run.
    pub fn check(mut self, check: impl FnMut(&Output) -> Result<(), String> + 'a) -> Self {
        self.check = Box::new(check);
        self
    }

    /// Runs it once; how long it took, or why the run does not count.
    fn run(&mut self, machine: &Machine) -> Result<Duration, String> {
        (self.before)();
        let said = self.inside(machine, "time");
        let (nanos, status) = said.split_once(' ').unwrap();
        let output = Output {
            stdout: machine.sandbox.read("/tmp/run.out").unwrap_or_default(),
            stderr: machine.sandbox.read("/tmp/run.err").unwrap_or_default(),
        };
        if status != self.status.to_string() {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            let start: String = text.chars().take(400).collect();
            return Err(format!("{:?} ended with {status}: {start}", self.command));
        }
        (self.check)(&output)?;
        Ok(Duration::from_nanos(nanos.parse().unwrap()))
    }

    fn inside(&self, machine: &Machine, verb: &str) -> String {
        let _ = std::fs::remove_file(machine.sandbox.path("/tmp/run.out"));
        let _ = std::fs::remove_file(machine.sandbox.path("/tmp/run.err"));
        let output = machine
            .sandbox
            .command(self.user.as_deref(), [BENCH, verb, "/tmp/run", "--"])
            .args(&self.command)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

/// Runs every contestant once a round, in turn, each round beginning with another one; one more run of ours
/// measures its memory.
pub fn hold(
    machine: &Machine,
    (case, size): (&'static str, String),
    rounds: usize,
    goals: &[Goal],
    mut contestants: Vec<Contestant<'_>>,
) -> Row {
    let mut row = Row {
        case,
        size,
        goals: goals.to_vec(),
        ..Row::default()
    };
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); contestants.len()];
    for round in 0..rounds {
        for turn in 0..contestants.len() {
            let index = (round + turn) % contestants.len();
            let contestant = &mut contestants[index];
            if contestant.rounds.is_some_and(|rounds| round >= rounds) {
                continue;
            }
            match contestant.run(machine) {
                Ok(took) => times[index].push(took),
                Err(error) => row.wrong.push(error),
            }
        }
    }
    for (contestant, took) in contestants.iter().zip(times) {
        match contestant.role {
            Role::Ours => row.ours = took,
            Role::Peer => row.peer = took,
            Role::Limit if row.limit.is_empty() || median(&took) < median(&row.limit) => {
                row.limit = took;
            }
            Role::Limit => {}
        }
    }
    if let Some(ours) = contestants
        .iter_mut()
        .find(|contestant| contestant.role == Role::Ours)
    {
        (ours.before)();
        let kib: f64 = ours.inside(machine, "peak").parse().unwrap();
        row.memory = Some(kib / 1024.0);
    }
    eprintln!("{}", crate::table::line(&row));
    row
}

/// The middle one.
pub fn median(times: &[Duration]) -> Option<Duration> {
    let mut sorted = times.to_vec();
    sorted.sort();
    sorted.get(sorted.len() / 2).copied()
}

impl Row {
    /// How many times as long the program takes as the limit.
    pub fn of_limit(&self) -> Option<f64> {
        ratio(&self.ours, &self.limit)
    }

    /// How many times as long the peer takes as the program.
    pub fn of_peer(&self) -> Option<f64> {
        ratio(&self.peer, &self.ours)
    }

    /// Whether a goal was missed; one without a contestant to compare with is not.
    pub fn missed(&self) -> bool {
        self.goals
            .iter()
            .any(|goal| self.meets(*goal) == Some(false))
    }

    /// Whether it meets a goal, if that can be told.
    pub fn meets(&self, goal: Goal) -> Option<bool> {
        match goal {
            Goal::Peer(times) => self.of_peer().map(|ratio| ratio >= times),
            Goal::Limit(times) => self.of_limit().map(|ratio| ratio <= times),
            Goal::Time(limit) => median(&self.ours).map(|took| took <= limit),
            Goal::Memory(limit) => self.memory.map(|mib| mib <= limit),
        }
    }
}

fn ratio(above: &[Duration], below: &[Duration]) -> Option<f64> {
    Some(median(above)?.as_secs_f64() / median(below)?.as_secs_f64())
}
