//! Machines that hide things: less evidence is never a smaller fleet.

use serde_json::Value;

use crate::odd::{Odd, shared};
use crate::support::fleet::Fleet;
use crate::support::sandbox::Boot;
use crate::support::skip;
use crate::support::update::{Receipt, Update};

fn homes_and_runtimes(plan: &Receipt) -> (Value, Value) {
    (plan.0["homes"].clone(), plan.0["runtimes"].clone())
}

#[test]
fn a_proc_that_hides_others_processes_hides_none_of_a_users_own() {
    let Some(odd) = shared() else { return };
    let plain = Update::new(&odd.fleet, &["plan", "--json"])
        .by("ann")
        .run()
        .receipt();
    for hide in ["noaccess", "invisible", "ptraceable"] {
        let outcome = hidden(odd, hide);
        assert_eq!(
            outcome.0["verdict"]["exit_status"],
            0,
            "{hide}: {}",
            outcome.summary()
        );
        assert_eq!(
            homes_and_runtimes(&outcome),
            homes_and_runtimes(&plain),
            "{hide}"
        );
    }
}

/// A plan by ann where `/proc` is mounted with this `hidepid` (proc(5)).
fn hidden(odd: &Odd, hide: &str) -> Receipt {
    let before = format!(
        "exec unshare --mount sh -c 'mount -t proc -o hidepid={hide} proc /proc && exec setpriv --reuid ann \
         --regid ann --init-groups env HOME=/home/ann XDG_RUNTIME_DIR=/run/user/2001 \"$@\"' sh"
    );
    Update::new(&odd.fleet, &["plan", "--json"])
        .after(&before)
        .run()
        .receipt()
}

/// A root with users and homes, and nothing that runs yet.
fn bare() -> Option<Fleet> {
    let sandbox = Boot::default()
        .show(
            std::path::Path::new(env!("CARGO_BIN_EXE_update")),
            "/usr/bin/update",
        )
        .start()
        .map_err(|reason| skip(&reason))
        .ok()?;
    for (user, uid) in [("ann", 2001), ("bob", 2002), ("fay", 2006)] {
        sandbox.sh(None, &format!("useradd -m -u {uid} {user}"));
    }
    for user in ["ann", "bob"] {
        sandbox.sh(Some(user), "umask 077; mkdir -p ~/.hermes/profiles/a; for f in ~/.hermes ~/.hermes/profiles/a; do echo '_config_version: 33' >$f/config.yaml; done");
    }
    Some(Fleet { sandbox })
}

fn plan_of(fleet: &Fleet, user: &str) -> (Option<i32>, Receipt) {
    let outcome = Update::new(fleet, &["plan", "--json", "--user", user]).run();
    (outcome.status, outcome.receipt())
}

fn unverified(plan: &Receipt) -> Vec<String> {
    plan.rows("collectors")
        .iter()
        .filter(|row| row["outcome"] == "unverified")
        .map(|row| {
            format!(
                "{}: {}",
                row["name"].as_str().unwrap(),
                row["reason"].as_str().unwrap()
            )
        })
        .collect()
}

#[test]
fn what_may_not_be_read_is_said_and_what_is_not_there_is_none() {
    let Some(fleet) = bare() else { return };
    let sandbox = &fleet.sandbox;
    let (status, plan) = plan_of(&fleet, "ann");
    assert_eq!(
        (status, unverified(&plan)),
        (Some(0), vec![]),
        "{}",
        plan.summary()
    );
    assert_eq!(plan.rows("homes").len(), 2, "{}", plan.summary());

    // Folders that their own owner may not read: the home is there, its siblings are not known.
    sandbox.sh(None, "chmod 000 /home/ann/.hermes/profiles");
    let (status, plan) = plan_of(&fleet, "ann");
    let trouble = unverified(&plan);
    assert_eq!(status, Some(1), "{}", plan.summary());
    assert!(
        trouble[0].contains("/home/ann/.hermes/profiles") && trouble.len() == 1,
        "{trouble:?}"
    );
    assert_eq!(plan.rows("homes").len(), 1, "{}", plan.summary());
    sandbox.sh(
        None,
        "chmod 700 /home/ann/.hermes/profiles; chmod 000 /home/ann/.hermes/profiles/a",
    );
    let (status, plan) = plan_of(&fleet, "ann");
    assert_eq!(
        plan.home("/home/ann/.hermes/profiles/a")["outcome"],
        "invalid",
        "{}",
        plan.summary()
    );
    assert!(matches!(status, Some(0 | 1)), "{}", plan.summary());
    sandbox.sh(None, "chmod 700 /home/ann/.hermes/profiles/a");

    // A runtime folder without a bus: there may be a manager that does not answer.
    sandbox.sh(None, "install -d -m 700 -o bob -g bob /run/user/2002");
    let (_, plan) = plan_of(&fleet, "bob");
    let manager = plan
        .rows("collectors")
        .iter()
        .find(|row| row["name"] == "manager of bob")
        .unwrap();
    assert_ne!(manager["outcome"], "ok", "{manager}");
    sandbox.sh(
        None,
        "mkdir /run/user/2002/systemd; : >/run/user/2002/bus; chown -R bob:bob /run/user/2002",
    );
    let (status, plan) = plan_of(&fleet, "bob");
    assert_eq!(status, Some(1), "{}", plan.summary());
    assert!(
        unverified(&plan)[0].starts_with("manager of bob:"),
        "{:?}",
        unverified(&plan)
    );
}

#[test]
fn where_something_runs_and_no_home_is_found_nothing_is_concluded() {
    let Some(fleet) = bare() else { return };
    fleet.sandbox.sh(
        None,
        "mkdir -p /opt/x/hermes_cli; printf 'import signal\\nsignal.pause()\\n' >/opt/x/hermes_cli/main.py
         : >/opt/x/hermes_cli/__init__.py; cd /opt/x
         setsid -f runuser -u fay -- python3 -m hermes_cli.main gateway run </dev/null >/dev/null 2>&1
         for i in $(seq 100); do pgrep -f 'hermes_cli.main gateway run' >/dev/null && exit 0; sleep 0.1; done; exit 1",
    );
    let outcome = Update::new(&fleet, &["apply", "--json", "--user", "fay"]).run();
    assert_eq!(outcome.status, Some(4), "{outcome}");
    assert_eq!(
        fleet
            .sandbox
            .sh(
                None,
                "pgrep -c -f '^python3 -m hermes_cli.main gateway run'"
            )
            .trim(),
        "1"
    );
    assert!(!fleet.sandbox.path("/home/fay/.hermes").exists());
    assert!(!fleet.sandbox.path("/root/.hermes").exists());
}
