//! A light runtime: keeps a pid and a state file as a gateway does, and takes as long to stop as it is told.
//!
//! `STAND_IN_STOP` is the time that a stop takes, in milliseconds.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;
use signal_hook::consts::{SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

/// How a gateway says that it wants to be started again.
const AGAIN: u8 = 75;

/// Serves a home until it is told to stop.
pub fn serve(words: &[String]) -> ExitCode {
    let home = home(words);
    let mut signals = Signals::new([SIGTERM, SIGUSR1]).unwrap();
    say(&home, "running", 0);
    let signal = signals.forever().next().unwrap();
    say(&home, "draining", 1);
    let millis = std::env::var("STAND_IN_STOP").map_or(0, |text| text.parse().unwrap());
    std::thread::sleep(Duration::from_millis(millis));
    say(&home, "stopped", 0);
    ExitCode::from(if signal == SIGUSR1 { AGAIN } else { 0 })
}

fn home(words: &[String]) -> PathBuf {
    let root = Path::new(&std::env::var_os("HOME").unwrap()).join(".hermes");
    let at = words.iter().position(|word| word == "-p");
    match at.and_then(|at| words.get(at + 1)) {
        Some(profile) => root.join("profiles").join(profile),
        None => root,
    }
}

fn say(home: &Path, state: &str, agents: u32) {
    let who = json!({"pid": std::process::id(), "kind": "hermes-gateway", "start_time": start()});
    let mut whole = who.clone();
    whole["gateway_state"] = state.into();
    whole["active_agents"] = agents.into();
    for (name, value) in [("gateway.pid", who), ("gateway_state.json", whole)] {
        let new = home.join(format!("{name}.new"));
        std::fs::write(&new, value.to_string()).unwrap();
        std::fs::rename(new, home.join(name)).unwrap();
    }
}

/// Field 22 of the stat file, proc(5).
fn start() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit_once(") ").unwrap().1;
    fields.split(' ').nth(19).unwrap().parse().unwrap()
}
