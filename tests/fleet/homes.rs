//! Which home a gateway serves, however it was started.

use std::process::Stdio;
use std::time::Duration;

use crate::support::fleet::{ANN, Fleet, Gateway, Plan, VENV};
use crate::support::sandbox::Process;
use crate::support::update::{Receipt, Update};
use crate::support::wait_for;

/// A way of starting: its environment, its arguments, the sticky profile, and the home that the
/// gateway then really serves.
struct Way {
    environment: &'static str,
    arguments: &'static str,
    sticky: Option<&'static str>,
    home: &'static str,
}

const OPS: &str = "/home/ann/.hermes/profiles/ops";
const WORK: &str = "/home/ann/.hermes/profiles/work";

const WAYS: [Way; 5] = [
    Way {
        environment: "",
        arguments: "-p ops",
        sticky: None,
        home: OPS,
    },
    Way {
        environment: "HERMES_HOME=/home/ann/.hermes",
        arguments: "-p ops",
        sticky: None,
        home: OPS,
    },
    Way {
        environment: "",
        arguments: "",
        sticky: Some("work"),
        home: WORK,
    },
    Way {
        environment: "HERMES_HOME=/home/ann/.hermes",
        arguments: "",
        sticky: Some("work"),
        home: WORK,
    },
    Way {
        environment: "HERMES_HOME=/home/ann/.hermes/profiles/ops",
        arguments: "-p work",
        sticky: None,
        home: WORK,
    },
];

#[test]
fn each_of_five_ways_to_start_a_gateway_gives_the_home_that_it_really_serves() {
    let Some(fleet) = ANN
        .profiles
        .iter()
        .fold(Plan::default(), |plan, profile| {
            plan.asleep(Gateway::of(ANN, profile))
        })
        .boot()
    else {
        return;
    };
    for (number, way) in WAYS.iter().enumerate() {
        set_sticky(&fleet, way.sticky);
        let unit = format!("by-hand-{number}");
        let process = start(&fleet, way, &unit);

        // First with what it says of itself, then from its arguments and environment alone.
        for silent in [false, true] {
            if silent {
                fleet.sandbox.sh(
                    None,
                    &format!(
                        "rm {home}/gateway.pid {home}/gateway_state.json {home}/gateway.lock",
                        home = way.home
                    ),
                );
            }
            let plan = Update::new(&fleet, &["plan", "--json"]).run().receipt();
            // A sticky profile may have been another one when the gateway started: without a word
            // of its own its home is not known, and nothing else would be right to say.
            let known = !silent || way.sticky.is_none();
            let expected: &[&str] = if known { &[way.home] } else { &[] };
            assert_eq!(
                homes_of(&plan, &process),
                expected,
                "way {number}, {} {}: {}",
                way.environment,
                way.arguments,
                plan.summary()
            );
        }
        fleet.sandbox.sh(
            Some("ann"),
            &format!("systemctl --user stop {unit}.scope; true"),
        );
        wait_for("it is gone", Duration::from_secs(30), || {
            (fleet.sandbox.process(process.pid).as_ref() != Some(&process)).then_some(())
        });
    }
}

fn set_sticky(fleet: &Fleet, profile: Option<&str>) {
    match profile {
        Some(name) => fleet
            .sandbox
            .write("/home/ann/.hermes/active_profile", name, 0o600),
        None => {
            fleet
                .sandbox
                .sh(None, "rm -f /home/ann/.hermes/active_profile");
        }
    }
}

/// Starts a gateway in its way and waits until it serves the home that it should.
fn start(fleet: &Fleet, way: &Way, unit: &str) -> Process {
    let text = format!(
        "cd /; exec setsid env {} systemd-run --user --quiet --scope --unit={unit} {VENV}/bin/hermes {} gateway run",
        way.environment, way.arguments
    );
    let mut child = fleet
        .sandbox
        .command(Some("ann"), ["sh", "-c", &text])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::spawn(move || child.wait());
    wait_for("it serves its home", Duration::from_secs(60), || {
        fleet.running_in(way.home)
    })
}

/// The folders of the homes that the row of a process names.
fn homes_of(plan: &Receipt, process: &Process) -> Vec<String> {
    let row = plan
        .rows("runtimes")
        .iter()
        .find(|row| row["before"]["incarnation"]["pid"] == process.pid)
        .unwrap_or_else(|| panic!("no row for process {}\n{}", process.pid, plan.summary()));
    let ids = row["homes"].as_array().unwrap();
    plan.rows("homes")
        .iter()
        .filter(|home| ids.contains(&home["id"]))
        .map(|home| home["path"].as_str().unwrap().to_owned())
        .collect()
}
