//! Real gateways in containers: a root folder that was pivoted to, a pid and a mount namespace of their own, and a
//! home of this machine bound into it at the place where images have theirs. One is kept by a unit, as Podman's
//! generated units keep theirs, one was started by hand.
//!
//! No image is pulled: the programs are this machine's, bound into an empty root.

use std::time::Duration;

use serde_json::Value;

use crate::odd::row_of_pid;
use crate::support::fleet::{ANN, BOB, CONFIG_V12, Fleet, Gateway, Plan, VENV};
use crate::support::sandbox::Process;
use crate::support::update::{Receipt, Update};
use crate::support::wait_for;

/// Who owns the bound homes, by whom its container is kept.
const BY_UNIT: (&str, u32) = ("kim", 2103);
const BY_HAND: (&str, u32) = ("lee", 2104);

/// `/usr/local/sbin/contain USER`: becomes the first process of a container of that user's gateway.
const CONTAIN: &str = r#"#!/bin/sh
set -e
user=$1 uid=$(id -u "$1") root=/run/container-of-$1
mkdir -p $root
mount -t tmpfs container $root
mkdir -p $root/opt/data $root/VENV $root/proc $root/tmp $root/host
for folder in usr bin sbin lib lib64 etc dev VENV; do
  [ ! -e /$folder ] || { mkdir -p $root/$folder; mount --rbind /$folder $root/$folder; }
done
mount --bind /home/$user/.hermes $root/opt/data
exec unshare --pid --fork --kill-child --mount --uts --ipc --propagation private /bin/sh -c '
  set -e
  cd "$0"; mount --rbind . .; cd "$0"
  pivot_root . host; cd /
  mount -t proc proc /proc
  umount -l /host
  exec setpriv --reuid "$1" --regid "$1" --clear-groups env -i PATH=/usr/bin:/bin HOME=/opt/data \
    HERMES_HOME=/opt/data /VENV/bin/hermes gateway run' $root $uid
"#;

/// Homes for both, and their containers.
const SETUP: &str = r#"
set -e
for user in kim:2103 lee:2104; do
  useradd -m -u ${user#*:} ${user%:*}
  install -d -o ${user%:*} -g ${user%:*} -m 700 /home/${user%:*}/.hermes
done
"#;

fn home(user: (&str, u32)) -> String {
    format!("/home/{}/.hermes", user.0)
}

/// The container's gateway as this machine's `/proc` shows it.
fn gateway(fleet: &Fleet, user: (&str, u32)) -> Option<Process> {
    let processes = fleet.sandbox.processes();
    let own = processes
        .into_iter()
        .find(|one| one.uid == user.1 && one.command.ends_with("hermes gateway run"))?;
    // Its own words: the pid in them is the container's.
    let state = fleet
        .sandbox
        .read(&format!("{}/gateway_state.json", home(user)))?;
    let state: Value = serde_json::from_slice(&state).ok()?;
    (state["gateway_state"] == "running").then_some(own)
}

fn start(fleet: &Fleet) -> [Process; 2] {
    fleet.sandbox.sh(
        None,
        "systemd-run --quiet --unit box-of-kim -p Restart=always -p RestartSec=1 /usr/local/sbin/contain kim
         setsid -f /usr/local/sbin/contain lee </dev/null >/dev/null 2>&1",
    );
    [BY_UNIT, BY_HAND].map(|user| {
        let name = format!("the gateway in the container of {}", user.0);
        wait_for(&name, Duration::from_secs(60), || gateway(fleet, user))
    })
}

/// What the plan or the receipt must say while the containers run.
#[track_caller]
fn both_are_another_machine_s(receipt: &Receipt, running: &[Process; 2]) {
    for (user, process) in [BY_UNIT, BY_HAND].into_iter().zip(running) {
        let row = row_of_pid(receipt, process.pid)
            .unwrap_or_else(|| panic!("no row for {process:?}\n{}", receipt.summary()));
        assert_eq!(row["outcome"], "skipped", "{row}");
        assert_eq!(row["reason"], "another namespace", "{row}");
        assert_eq!(row["action"], Value::Null, "{row}");
        // The lock that it holds says which home it serves, whatever that is called inside.
        let served = row["homes"].clone();
        let row = receipt.home(&home(user));
        assert_eq!(served, serde_json::json!([row["id"]]), "{row}");
        assert_eq!(row["outcome"], "conflict", "{row}");
        let reason = format!(
            "other host? process {} in another namespace holds its lock",
            process.pid
        );
        assert_eq!(row["reason"], reason.as_str(), "{row}");
        let remedy = row["remedy"].as_str().unwrap();
        assert!(remedy.contains("[[policy.skip]]"), "{row}");
    }
}

#[test]
fn a_home_that_a_container_serves_is_left_alone_and_so_is_its_gateway_until_it_is_gone() {
    let plan = [
        (ANN, "ops"),
        (ANN, "default"),
        (BOB, "default"),
        (BOB, "lab"),
    ];
    let plan = plan
        .into_iter()
        .fold(Plan::default(), |plan, (user, profile)| {
            plan.asleep(Gateway::of(user, profile))
        });
    let Some(fleet) = plan.boot() else { return };
    let sandbox = &fleet.sandbox;
    sandbox.write(
        "/usr/local/sbin/contain",
        &CONTAIN.replace("/VENV", VENV).replace("VENV", &VENV[1..]),
        0o755,
    );
    sandbox.sh(None, SETUP);
    for user in [BY_UNIT, BY_HAND] {
        sandbox.write(&format!("{}/config.yaml", home(user)), CONFIG_V12, 0o600);
    }
    let running = start(&fleet);
    // What decides is that they share neither numbers nor paths with this machine.
    for process in &running {
        let link = |pid: u32, name: &str| sandbox.sh(None, &format!("readlink /proc/{pid}/{name}"));
        assert_ne!(link(process.pid, "ns/pid"), link(1, "ns/pid"));
        assert_ne!(link(process.pid, "ns/mnt"), link(1, "ns/mnt"));
    }
    let files = [BY_UNIT, BY_HAND].map(|user| format!("{}/config.yaml", home(user)));
    let before = files.each_ref().map(|file| fleet.fingerprint(file));
    let unit = || {
        sandbox.sh(
            None,
            "systemctl show -p InvocationID,NRestarts,ActiveEnterTimestamp box-of-kim",
        )
    };
    let unit_before = unit();

    let plan = Update::new(&fleet, &["plan", "--json"]).run();
    both_are_another_machine_s(&plan.receipt(), &running);
    // Their owner sees no less than root.
    let own = Update::new(&fleet, &["plan", "--json"]).by("kim").run();
    assert_eq!(
        own.receipt().home(&home(BY_UNIT))["outcome"],
        "conflict",
        "{own}"
    );

    // All that is stale here is restarted; what the containers run is neither asked nor signalled.
    let outcome = Update::new(&fleet, &["apply", "--json", "--restart", "always"]).run();
    let receipt = outcome.receipt();
    assert_eq!(outcome.status, Some(1), "{outcome}");
    both_are_another_machine_s(&receipt, &running);
    assert_eq!(
        receipt.outcome(Gateway::of(ANN, "work")),
        "restarted",
        "{outcome}"
    );
    for (user, process) in [BY_UNIT, BY_HAND].into_iter().zip(&running) {
        assert_eq!(gateway(&fleet, user).as_ref(), Some(process), "{outcome}");
    }
    assert_eq!(unit(), unit_before, "{outcome}");
    assert_eq!(files.each_ref().map(|file| fleet.fingerprint(file)), before);

    // Who has said that they are the containers' gets a clean run.
    let skip = |user| {
        let home = home(user);
        format!("[[policy.skip]]\nhome = \"{home}\"\nreason = \"the image's\"\n")
    };
    let skips = [BY_UNIT, BY_HAND].map(skip).concat();
    sandbox.write("/etc/fleet-update/config.toml", &skips, 0o644);
    let outcome = Update::new(&fleet, &["apply", "--json"]).run();
    let receipt = outcome.expect(0);
    assert_eq!(
        receipt.home(&home(BY_HAND))["outcome"],
        "skipped",
        "{outcome}"
    );
    sandbox.sh(None, "rm /etc/fleet-update/config.toml");

    // The containers are gone: the homes are this machine's again.
    sandbox.sh(
        None,
        &format!("systemctl stop box-of-kim; kill {}", running[1].pid),
    );
    wait_for("the containers end", Duration::from_secs(60), || {
        running
            .iter()
            .all(|process| sandbox.process(process.pid).is_none())
            .then_some(())
    });
    let outcome = Update::new(&fleet, &["apply", "--json", "--to", "33"]).run();
    let receipt = outcome.receipt();
    for user in [BY_UNIT, BY_HAND] {
        assert_eq!(
            receipt.home(&home(user))["outcome"],
            "migrated",
            "{outcome}"
        );
    }
}
