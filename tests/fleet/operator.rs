//! What belongs to a person stays a person's: stopped units, stops during our restart, and gateways
//! that somebody started by hand.

use std::process::Stdio;
use std::time::Duration;

use crate::support::fleet::{ANN, BOB, Fleet, Gateway, Plan, VENV};
use crate::support::sandbox::Process;
use crate::support::update::Update;
use crate::support::wait_for;
use crate::support::watcher::{Watcher, What};
use crate::{assert_migrated, assert_restarted_once};

const DEFAULT: Gateway = Gateway::of(ANN, "default");
const WORK: Gateway = Gateway::of(ANN, "work");
const OPS: Gateway = Gateway::of(ANN, "ops");
const LAB: Gateway = Gateway::of(BOB, "lab");

#[test]
fn a_stopped_unit_stays_stopped_however_it_was_stopped() {
    let Some(fleet) = Fleet::boot() else { return };
    // `systemctl stop` leaves it failed with a state file that says `running`; Hermes's own stop does not.
    fleet.sandbox.sh(
        Some("ann"),
        &format!("systemctl --user stop {}", WORK.unit()),
    );
    // On a busy machine Hermes's own stop sometimes looks like the other to the gateway.
    wait_for("Hermes stops it cleanly", Duration::from_secs(90), || {
        fleet.sandbox.sh(
            Some("ann"),
            &format!("cd; PATH={VENV}/bin:$PATH hermes -p ops gateway stop"),
        );
        let clean = fleet.life(OPS).active == "inactive";
        if !clean {
            fleet.sandbox.sh(
                Some("ann"),
                &format!("systemctl --user start {}", OPS.unit()),
            );
            fleet.wait_until_running(OPS);
        }
        clean.then_some(())
    });
    assert_eq!(fleet.life(WORK).active, "failed");
    let watcher = Watcher::start(&fleet.sandbox, "ann");
    let before = fleet.life(DEFAULT);

    let receipt = Update::apply(&fleet).run().expect(0);
    for gateway in [WORK, OPS] {
        assert_eq!(receipt.outcome(gateway), "stopped", "{}", receipt.summary());
        assert_eq!(
            watcher.starts_of(&gateway.unit()),
            0,
            "{:#?}",
            watcher.of(&gateway.unit())
        );
        assert_eq!(fleet.life(gateway).pid, 0);
        assert!(fleet.running(gateway).is_none());
        // Its home is migrated all the same.
        assert_migrated(&fleet, gateway);
    }
    assert_restarted_once(&fleet, DEFAULT, &before, &watcher);
}

#[test]
fn a_unit_that_its_operator_stops_during_our_restart_stays_stopped() {
    let Some(fleet) = Fleet::boot() else { return };
    // Time for the operator: the unit takes three seconds to start.
    fleet.drop_in(LAB, "[Service]\nExecStartPre=/bin/sleep 3\n");
    let watcher = Watcher::start(&fleet.sandbox, "bob");

    let run = Update::apply(&fleet).start();
    assert!(
        watcher.wait_until(Duration::from_secs(90), |event| {
            event.unit == LAB.unit() && event.what == What::State("activating/start-pre".into())
        }),
        "it was never restarted: {:#?}",
        watcher.events()
    );
    fleet.sandbox.sh(
        Some("bob"),
        &format!("systemctl --user stop {}", LAB.unit()),
    );
    let outcome = run.finish();
    let receipt = outcome.receipt();

    assert_eq!(receipt.outcome(LAB), "stopped", "{outcome}");
    assert_eq!(
        watcher.starts_of(&LAB.unit()),
        0,
        "{:#?}",
        watcher.of(&LAB.unit())
    );
    assert_eq!(fleet.life(LAB).pid, 0);
    for gateway in Gateway::all() {
        if gateway != LAB {
            assert_eq!(receipt.outcome(gateway), "restarted", "{outcome}");
        }
    }
    outcome.expect(0);
    // Not now, and not a little later either; the operator's own stop was a job, too.
    let from = std::time::Instant::now();
    assert!(!watcher.wait_until(Duration::from_secs(7), |event| {
        event.unit == LAB.unit()
            && matches!(event.what, What::JobNew | What::Started(..))
            && event.at > from
    }));
    assert_eq!(fleet.life(LAB).pid, 0);
}

/// Starts a gateway as a person does, in a scope of that person's session, and waits for it.
fn by_hand(fleet: &Fleet, gateway: Gateway, scope: &str) -> Process {
    let mut command = fleet.sandbox.command(
        Some(gateway.user),
        [
            "sh",
            "-c",
            "cd; exec setsid systemd-run --user --quiet --scope --unit=\"$1\" \
             \"$2/bin/hermes\" -p \"$3\" gateway run",
            "sh",
            scope,
            VENV,
            gateway.profile,
        ],
    );
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let process = fleet.wait_until_running(gateway);
    assert!(
        process.cgroup.ends_with(&format!("/{scope}.scope")),
        "{process:?}"
    );
    std::thread::spawn(move || child.wait());
    process
}

#[test]
fn a_gateway_that_was_started_by_hand_is_never_signalled_and_its_row_says_how_to_restart_it() {
    let Some(fleet) = Plan::default().asleep(WORK).asleep(OPS).boot() else {
        return;
    };
    let hands = [
        (WORK, by_hand(&fleet, WORK, "run-by-hand")),
        (OPS, by_hand(&fleet, OPS, "tmux-spawn-5f3c")),
    ];
    for (gateway, process) in &hands {
        // A tracer sees every signal, also one that the gateway would ignore.
        let mut command = fleet.sandbox.command(
            None,
            [
                "strace",
                "-f",
                "-e",
                "trace=none",
                "-e",
                "signal=all",
                "-o",
                &format!("/run/signals-{}", gateway.profile),
                "-p",
                &process.pid.to_string(),
            ],
        );
        let mut tracer = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::spawn(move || tracer.wait());
        let status = format!("/proc/{}/status", process.pid);
        wait_for("the tracer is attached", Duration::from_secs(20), || {
            let text = String::from_utf8(fleet.sandbox.read(&status)?).ok()?;
            (!text.contains("TracerPid:\t0\n")).then_some(())
        });
    }
    let watcher = Watcher::start(&fleet.sandbox, "ann");
    let before = fleet.life(DEFAULT);

    let receipt = Update::apply(&fleet).run().expect(1);
    for (gateway, process) in &hands {
        assert_eq!(
            fleet.running(*gateway).as_ref(),
            Some(process),
            "it was replaced"
        );
        let signals = fleet
            .sandbox
            .read(&format!("/run/signals-{}", gateway.profile))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap();
        for signal in [
            "SIGUSR1", "SIGTERM", "SIGINT", "SIGHUP", "SIGKILL", "SIGQUIT", "SIGSTOP",
        ] {
            assert!(!signals.contains(&format!("--- {signal}")), "{signals}");
        }
        let row = receipt
            .rows("runtimes")
            .iter()
            .find(|row| row["before"]["incarnation"]["pid"] == process.pid)
            .unwrap_or_else(|| panic!("no row\n{}", receipt.summary()));
        assert_eq!(row["outcome"], "manual", "{}", receipt.summary());
        let remedy = row["remedy"].as_str().unwrap_or("");
        assert!(
            remedy.contains("gateway") && remedy.contains(gateway.profile),
            "the remedy names no command that restarts it: {remedy:?}"
        );
        assert_migrated(&fleet, *gateway);
    }
    assert_restarted_once(&fleet, DEFAULT, &before, &watcher);

    // The witness itself: a signal that is sent is seen.
    let (gateway, process) = &hands[0];
    fleet
        .sandbox
        .sh(Some("ann"), &format!("kill -USR1 {}", process.pid));
    wait_for("the tracer saw it", Duration::from_secs(20), || {
        let bytes = fleet
            .sandbox
            .read(&format!("/run/signals-{}", gateway.profile))?;
        String::from_utf8_lossy(&bytes)
            .contains("--- SIGUSR1")
            .then_some(())
    });
}
