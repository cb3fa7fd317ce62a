//! The hook of other packages on a machine that runs: it does the work once, asks who may be asked,
//! ends in time, and never breaks the package manager.

use std::time::Duration;

use crate::support::fleet::{ANN, BOB, Fleet, Gateway, Plan, VENV};
use crate::support::update::{Outcome, Receipt, Update};
use crate::support::wait_for;
use crate::support::watcher::Watcher;
use crate::{assert_brief, latest_in};

const DEFAULT: Gateway = Gateway::of(ANN, "default");
const WORK: Gateway = Gateway::of(ANN, "work");
const OPS: Gateway = Gateway::of(ANN, "ops");
const LAB: Gateway = Gateway::of(BOB, "lab");

/// Runs a hook that must not break its package manager, and returns what it said and its receipt.
#[track_caller]
fn hook(fleet: &Fleet) -> (Outcome, Receipt) {
    let outcome = Update::new(fleet, &["--trigger", "package"]).run();
    assert_eq!(outcome.status, Some(0), "{outcome}");
    assert_brief(&outcome.stdout, &outcome.stderr);
    let receipt = latest_in(&fleet.sandbox).expect("a hook leaves a receipt");
    assert_eq!(receipt.0["trigger"], "package");
    (outcome, receipt)
}

/// Adds what dpkg says of a package that holds the fleet's install.
fn say_of_package(fleet: &Fleet, state: &str) {
    let status = String::from_utf8(fleet.sandbox.read("/var/lib/dpkg/status").unwrap()).unwrap();
    let others = status.split("Package: hermes-agent\n").next().unwrap();
    let text = format!(
        "{others}Package: hermes-agent\nStatus: install ok {state}\nVersion: 1\nArchitecture: all\n\
         Maintainer: A B <a@example.org>\nDescription: an agent\n\n"
    );
    fleet.sandbox.write("/var/lib/dpkg/status", &text, 0o644);
    let list = format!("/.\n/opt\n{VENV}\n{VENV}/bin\n");
    fleet
        .sandbox
        .write("/var/lib/dpkg/info/hermes-agent.list", &list, 0o644);
}

#[test]
fn of_ten_calls_in_a_row_one_does_the_work_and_none_while_its_package_is_half_installed() {
    let Some(fleet) = Fleet::boot() else { return };
    fleet.sandbox.sh(None, "rm -f /usr/sbin/policy-rc.d");
    // Two waves of restarts fit into it also on a machine that has other things to do.
    fleet.sandbox.write(
        "/etc/fleet-update/config.toml",
        "[hook]\nlimit = \"3m\"\n",
        0o644,
    );
    let all = Gateway::all();
    let watchers = [
        ("ann", Watcher::start(&fleet.sandbox, "ann")),
        ("bob", Watcher::start(&fleet.sandbox, "bob")),
    ];
    let starts = |gateway: &Gateway| {
        let (_, watcher) = watchers
            .iter()
            .find(|(user, _)| *user == gateway.user)
            .unwrap();
        watcher.starts_of(&gateway.unit())
    };
    let before: Vec<_> = all
        .iter()
        .map(|one| fleet.fingerprint(&one.config()))
        .collect();

    say_of_package(&fleet, "half-installed");
    let (outcome, receipt) = hook(&fleet);
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome}");
    for gateway in &all {
        let row = receipt.gateway(*gateway);
        assert_eq!(row["outcome"], "unaccounted", "{}", receipt.summary());
        let reason = row["reason"].as_str().unwrap();
        assert!(
            reason.starts_with("aborted: package hermes-agent is half-installed"),
            "{reason}"
        );
        assert_eq!(
            receipt.home_outcome(*gateway),
            "conflict",
            "{}",
            receipt.summary()
        );
        assert_eq!(starts(gateway), 0);
    }
    let now: Vec<_> = all
        .iter()
        .map(|one| fleet.fingerprint(&one.config()))
        .collect();
    assert!(before == now, "a home was touched");

    // By hand it is the same: half of it is another release.
    let plan = Update::new(&fleet, &["plan", "--json"]).run().receipt();
    for gateway in &all {
        assert_eq!(plan.outcome(*gateway), "unaccounted", "{}", plan.summary());
        assert_eq!(
            plan.home_outcome(*gateway),
            "conflict",
            "{}",
            plan.summary()
        );
    }

    // The caller's own state, as every postinst finds it. By hand it is worth a line.
    say_of_package(&fleet, "half-configured");
    let plan = Update::new(&fleet, &["plan", "--json"]).run().receipt();
    let notes = plan.0["notes"].to_string();
    assert!(notes.contains("is half-configured"), "{notes}");
    assert_eq!(plan.home_outcome(all[0]), "migrated", "{}", plan.summary());
    for call in 0..10 {
        let (outcome, receipt) = hook(&fleet);
        assert_eq!(outcome.stderr, "", "call {call}: {outcome}");
        assert_eq!(
            receipt.0["verdict"]["outcome"],
            "clean",
            "{}",
            receipt.summary()
        );
        let expected = if call == 0 { "restarted" } else { "current" };
        for gateway in &all {
            assert_eq!(
                receipt.outcome(*gateway),
                expected,
                "call {call}: {}",
                receipt.summary()
            );
            assert_eq!(starts(gateway), 1, "call {call}: {gateway:?}");
        }
    }

    // What cron gives a program: no HOME, a short PATH, and pipes that are closed or full.
    for text in [
        "exec env -i PATH=/usr/bin:/bin update --trigger cron >/dev/full 2>&1",
        "exec env -i PATH=/usr/bin:/bin update --trigger cron <&- >&- 2>&-",
        "exec env -i update --verbose --trigger cron >/dev/full 2>/dev/full",
        "set -o pipefail; env -i update --json 2>&1 | exec true",
    ] {
        let output = fleet.sandbox.shell(None, text);
        assert_eq!(output.status.code(), Some(0), "{text}: {output:?}");
        assert_eq!(
            latest_in(&fleet.sandbox).unwrap().0["verdict"]["outcome"],
            "clean",
            "{text}"
        );
    }
    let output = fleet
        .sandbox
        .shell(None, "exec env -i PATH=/usr/bin:/bin update --trigger cron");
    assert!(
        output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(),
        "{output:?}"
    );
}

/// A gateway of ann's as a unit of the system, which `policy-rc.d` is asked about.
fn as_system_unit(fleet: &Fleet, gateway: Gateway, name: &str) {
    let profile = gateway.profile;
    fleet.sandbox.write(
        &format!("/etc/systemd/system/{name}"),
        &format!(
            "[Service]\nUser=ann\nExecStart={VENV}/bin/hermes -p {profile} gateway run\nRestart=always\n\
             Environment=HOME=/home/ann\n[Install]\nWantedBy=sandbox.target\n"
        ),
        0o644,
    );
    fleet.sandbox.sh(
        None,
        &format!("systemctl daemon-reload && systemctl enable -q --now {name}"),
    );
    fleet.wait_until_running(gateway);
}

#[track_caller]
fn row<'a>(receipt: &'a Receipt, unit: &str) -> &'a serde_json::Value {
    let mut rows = receipt.rows("runtimes").iter();
    rows.find(|row| row["unit"] == unit)
        .unwrap_or_else(|| panic!("no row for {unit}\n{}", receipt.summary()))
}

#[test]
fn the_administrator_s_policy_the_hook_s_limit_and_a_shutdown_hold_restarts_back_and_the_receipt_says_so()
 {
    let Some(fleet) = Plan::default().asleep(WORK).boot() else {
        return;
    };
    as_system_unit(&fleet, WORK, "agent-work.service");
    fleet.sandbox.write(
        "/usr/sbin/policy-rc.d",
        "#!/bin/sh\necho \"$@\" >>/run/asked\nexit 101\n",
        0o755,
    );
    fleet.sandbox.write(
        "/etc/fleet-update/config.toml",
        &format!(
            "[[policy.skip]]\nunit = \"{}\"\nreason = \"a person unlocks it\"\n",
            OPS.unit()
        ),
        0o644,
    );
    // One that does not come up again: the package goes on, and the receipt says it.
    fleet.drop_in(LAB, "[Service]\nExecStartPre=/bin/false\n");
    let work = fleet.running(WORK).unwrap();
    let ops = fleet.running(OPS).unwrap();
    let ann = Watcher::start(&fleet.sandbox, "ann");

    let (outcome, receipt) = hook(&fleet);
    let held = row(&receipt, "agent-work.service");
    assert_eq!(held["outcome"], "manual", "{}", receipt.summary());
    assert!(
        held["reason"]
            .as_str()
            .unwrap()
            .starts_with("policy-rc.d: 101"),
        "{held}"
    );
    assert!(
        held["remedy"]
            .as_str()
            .unwrap()
            .contains("agent-work.service"),
        "{held}"
    );
    assert_eq!(
        fleet.running(WORK),
        Some(work),
        "it was restarted against the policy"
    );
    let asked = String::from_utf8(fleet.sandbox.read("/run/asked").unwrap()).unwrap();
    assert_eq!(asked, "agent-work.service restart\n");
    assert_eq!(receipt.outcome(OPS), "skipped", "{}", receipt.summary());
    assert_eq!(
        receipt.gateway(OPS)["reason"],
        "policy: a person unlocks it"
    );
    assert_eq!(fleet.running(OPS), Some(ops));
    assert_eq!(
        receipt.outcome(DEFAULT),
        "restarted",
        "{}",
        receipt.summary()
    );
    assert_eq!(ann.starts_of(&DEFAULT.unit()), 1);
    assert!(
        ["failed", "down", "unaccounted"].contains(&receipt.outcome(LAB)),
        "{}",
        receipt.summary()
    );
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome}");
    assert!(outcome.stderr.contains("not-clean"), "{outcome}");
    assert!(
        outcome.stderr.contains("`update receipt show "),
        "{outcome}"
    );
    assert_ne!(receipt.0["verdict"]["exit_status"], 0);

    // The next run settles what policy-rc.d held back: it is asked in hooks alone.
    fleet.sandbox.sh(Some("bob"), &format!("rm {}/50-test.conf; systemctl --user daemon-reload; systemctl --user reset-failed {unit}; systemctl --user start {unit}", LAB.drop_ins(), unit = LAB.unit()));
    fleet.wait_until_running(LAB);
    let receipt = Update::apply(&fleet).run().receipt();
    assert_eq!(
        row(&receipt, "agent-work.service")["outcome"],
        "restarted",
        "{}",
        receipt.summary()
    );

    // A restart that takes longer than the hook may: another run is told to finish it.
    fleet.sandbox.sh(None, "rm /usr/sbin/policy-rc.d");
    fleet.sandbox.write(
        "/etc/fleet-update/conf.d/10-hook.toml",
        "[hook]\nlimit = \"12s\"\n",
        0o644,
    );
    fleet.drop_in(LAB, "[Service]\nExecStartPre=/bin/sleep 40\n");
    fleet.set_config(LAB, crate::support::fleet::CONFIG_V12);
    let (outcome, receipt) = hook(&fleet);
    assert!(outcome.took < Duration::from_secs(14), "{outcome}");
    assert_eq!(receipt.outcome(LAB), "unaccounted", "{}", receipt.summary());
    let reason = receipt.gateway(LAB)["reason"].as_str().unwrap();
    assert!(reason.starts_with("deadline"), "{reason}");

    // A manager that does not answer costs its own rows, and not the hook's time.
    fleet.sandbox.write(
        "/etc/fleet-update/conf.d/10-hook.toml",
        "[hook]\nlimit = \"25s\"\n",
        0o644,
    );
    let manager = wait_for("bob's manager", Duration::from_secs(10), || {
        let all = fleet.sandbox.processes();
        all.into_iter()
            .find(|one| one.uid == BOB.uid && one.command.contains("systemd --user"))
    });
    fleet
        .sandbox
        .sh(None, &format!("kill -STOP {}", manager.pid));
    fleet.set_config(DEFAULT, crate::support::fleet::CONFIG_V12);
    let (outcome, receipt) = hook(&fleet);
    fleet
        .sandbox
        .sh(None, &format!("kill -CONT {}", manager.pid));
    assert!(outcome.took < Duration::from_secs(27), "{outcome}");
    assert_eq!(
        receipt.outcome(DEFAULT),
        "restarted",
        "{}",
        receipt.summary()
    );
    assert_eq!(receipt.0["verdict"]["outcome"], "not-clean");

    // While the machine goes down nothing is restarted. Something keeps it up for a while.
    fleet.set_config(DEFAULT, crate::support::fleet::CONFIG_V12);
    fleet.sandbox.sh(
        None,
        "systemd-run -q --unit=slow -p ExecStop='/bin/sleep 60' -p TimeoutStopSec=90 -p Type=oneshot -p RemainAfterExit=yes true
         systemctl poweroff --no-block --no-wall",
    );
    wait_for("the machine goes down", Duration::from_secs(20), || {
        let output = fleet.sandbox.shell(None, "systemctl is-system-running");
        (output.stdout == b"stopping\n").then_some(())
    });
    let (_, receipt) = hook(&fleet);
    for row in receipt.rows("runtimes") {
        assert_eq!(row["outcome"], "skipped", "{}", receipt.summary());
        assert_eq!(row["reason"], "shutdown", "{}", receipt.summary());
    }
    assert_eq!(fleet.config(DEFAULT), crate::support::fleet::CONFIG_V12);
}
