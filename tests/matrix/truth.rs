//! What really happened: by the kernel's start ticks, the stand-ins' own logs and what the managers signalled.
//! No word of the program under test is used here.

use serde_json::Value;

use crate::scenario::{Manager, Scenario, Truth};
use crate::support::sandbox::Sandbox;
use crate::support::watcher::Watcher;

/// One line of a stand-in's log.
#[derive(Debug, Clone)]
pub struct Line {
    pub pid: u32,
    pub start: u64,
    pub event: String,
    pub home: String,
    pub mark: String,
    pub kind: String,
}

/// The log of a scenario's stand-ins, one line an event.
pub fn log(sandbox: &Sandbox, scenario: &Scenario) -> Vec<Line> {
    let bytes = sandbox.read(&format!("/tmp/stand-in/{}", scenario.log()));
    let text = String::from_utf8(bytes.unwrap_or_default()).unwrap();
    let lines = text.lines().map(|line| {
        let value: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| value[key].as_str().unwrap().to_owned();
        Line {
            pid: u32::try_from(value["pid"].as_u64().unwrap()).unwrap(),
            start: value["start"].as_u64().unwrap(),
            event: text("event"),
            home: text("home"),
            mark: text("mark"),
            kind: text("kind"),
        }
    });
    lines.collect()
}

/// What is known of one scenario at the end.
#[derive(Debug, Clone)]
pub struct Found {
    pub truth: Truth,
    /// Main processes that the manager started during the run.
    pub starts: usize,
    /// `ActiveState` at the end.
    pub state: String,
}

/// Looks; `before` is how many lines the log had before the run.
pub fn find(sandbox: &Sandbox, scenario: &Scenario, before: usize, watcher: &Watcher) -> Found {
    let starts = watcher.starts_of(&scenario.unit);
    let user = match scenario.manager {
        Manager::User(user) => Some(user),
        Manager::System(_) => None,
    };
    let ctl = scenario.systemctl();
    let state = sandbox.sh(
        user,
        &format!("{ctl} show --value -p ActiveState {}", scenario.unit),
    );
    let state = state.trim().to_owned();
    let lines = log(sandbox, scenario);
    let lives = |line: &&Line| {
        sandbox
            .process(line.pid)
            .is_some_and(|process| process.start_ticks == line.start)
    };
    let started = |lines: &[Line]| -> Vec<Line> {
        let of = lines.iter().filter(|line| line.event == "started");
        of.filter(lives).cloned().collect()
    };
    let old = started(&lines[..before]);
    let new = started(&lines[before..]);
    let serves = |life: &Line| {
        let mut events = lines
            .iter()
            .filter(|line| line.pid == life.pid && line.start == life.start);
        events.any(|line| line.event == "serves")
            && life.home == scenario.home()
            && life.mark == scenario.mark
            && life.kind == scenario.kind()
    };
    let truth = match (old.as_slice(), new.as_slice()) {
        _ if starts > 2 => Truth::Looping,
        ([], []) => Truth::Gone,
        ([..], []) if starts == 0 => Truth::Untouched,
        ([_, ..], _) => Truth::Beside,
        ([], [life]) if state == "active" && serves(life) => {
            if starts > 1 {
                Truth::Again
            } else {
                Truth::Renewed
            }
        }
        ([], _) => Truth::Ill,
    };
    Found {
        truth,
        starts,
        state,
    }
}

/// How a row of the receipt compares with what happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It says what happened.
    True,
    /// It says that all is well, and it is not.
    FalseSuccess,
    /// It says that something is wrong, and nothing is.
    FalseFailure,
    /// Neither, and not what the scenario asks for.
    Unexpected,
}

/// Compares a row with the truth first, and then with what the scenario asks for.
pub fn compare(scenario: &Scenario, found: &Found, outcome: &str, reason: &str) -> Verdict {
    let up = matches!(found.truth, Truth::Renewed | Truth::Again);
    let claims = match outcome {
        "restarted" => up,
        "current" => up || found.truth == Truth::Untouched && scenario.exec.contains("/opt/fresh"),
        "stopped" => found.truth == Truth::Gone,
        _ => true,
    };
    if !claims {
        return Verdict::FalseSuccess;
    }
    if found.truth == Truth::Renewed && !matches!(outcome, "restarted" | "current") {
        return Verdict::FalseFailure;
    }
    let (expected, why) = scenario.outcome.unwrap_or_default();
    let as_asked = outcome == expected
        && reason.contains(why)
        && found.truth == scenario.truth
        && scenario.starts.is_none_or(|starts| starts == found.starts);
    if as_asked {
        Verdict::True
    } else {
        Verdict::Unexpected
    }
}
