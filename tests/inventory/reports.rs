//! What people reported, each as it should be.

use crate::odd::{Odd, plan, row_of, row_of_pid};
use crate::support::update::{Receipt, Update};

/// Fails unless a unit's row names this profile and would be restarted through its manager.
#[track_caller]
fn assert_restarts(plan: &Receipt, odd: &Odd, unit: &str, kind: &str, homes: &[&str]) {
    let row = row_of(plan, unit).unwrap_or_else(|| panic!("no row for {unit}\n{}", plan.summary()));
    assert_eq!(row["kind"], kind, "{row}");
    assert_eq!(row["action"], "try-restart", "{row}");
    let served: Vec<&str> = plan
        .rows("homes")
        .iter()
        .filter(|home| row["homes"].as_array().unwrap().contains(&home["id"]))
        .map(|home| home["path"].as_str().unwrap())
        .collect();
    assert_eq!(served, homes, "{row}");
    let process = odd.in_unit(unit).expect("it runs");
    assert_eq!(row["before"]["incarnation"]["pid"], process.pid, "{row}");
    assert_eq!(row["uid"], process.uid, "{row}");
}

#[test]
fn a_runtime_belongs_to_the_unit_of_its_control_group_whatever_that_is_called() {
    let Some((odd, plan)) = plan() else { return };
    for (unit, home) in [
        ("agent-of-work.service", "/home/ann/.hermes/profiles/work"),
        ("agent@default.service", "/home/ann/.hermes"),
        ("secrets.service", "/home/ann/.hermes/profiles/ops"),
        (
            "hermes-gateway-lab.service",
            "/home/bob/.hermes/profiles/lab",
        ),
        ("x-agent@eve.service", "/srv/eve/hermes"),
    ] {
        assert_restarts(plan, odd, unit, "gateway", &[home]);
    }
    // Two managers have a unit of this name.
    let same: Vec<&str> = plan
        .rows("runtimes")
        .iter()
        .filter(|row| row["unit"] == "hermes-gateway.service")
        .map(|row| row["user"].as_str().unwrap())
        .collect();
    assert_eq!(same, ["svc", "bob"], "{}", plan.summary());
}

#[test]
fn a_server_or_dashboard_in_a_unit_is_its_units_and_a_strangers_program_is_named_and_left_alone() {
    let Some((odd, plan)) = plan() else { return };
    assert_restarts(
        plan,
        odd,
        "hermes-dashboard.service",
        "dashboard",
        &["/home/bob/.hermes"],
    );
    // Whatever profile it is started for, this program serves the root home, and says so in its arguments.
    assert_restarts(
        plan,
        odd,
        "agent-serve.service",
        "serve",
        &["/home/bob/.hermes"],
    );
    let row = row_of(plan, "agent-webui.service").expect("it is listed");
    assert_eq!(row["outcome"], "skipped", "{row}");
    assert!(
        row["reason"]
            .as_str()
            .unwrap()
            .starts_with("unmanaged kind"),
        "{row}"
    );
    assert_eq!(row["action"], serde_json::Value::Null, "{row}");
}

#[test]
fn records_of_what_is_gone_are_notes_and_neither_rows_nor_trouble() {
    let Some((odd, plan)) = plan() else { return };
    let notes = plan.0["notes"].to_string();
    for profile in [
        "was-another-start",
        "was-another-owner",
        "was-another-program",
        "was-another-boot",
        "was-init",
    ] {
        let path = format!("/home/cyd/.hermes/profiles/{profile}");
        let home = plan.home(&path);
        assert_eq!(home["outcome"], "current", "{home}");
        assert!(
            notes.contains(&path),
            "nothing is said of {profile}: {notes}"
        );
        let served = plan
            .rows("runtimes")
            .iter()
            .find(|row| row["homes"].as_array().unwrap().contains(&home["id"]));
        assert!(served.is_none(), "{served:?}");
    }
    for innocent in odd.fleet.sandbox.processes() {
        if innocent.command.starts_with("innocent") || innocent.pid == 1 {
            assert!(row_of_pid(plan, innocent.pid).is_none(), "{innocent:?}");
        }
    }
}

#[test]
fn what_only_looks_like_a_runtime_has_no_row() {
    let Some((odd, plan)) = plan() else { return };
    let decoys: Vec<_> = odd
        .fleet
        .sandbox
        .processes()
        .into_iter()
        .filter(|one| {
            [
                "vim hermes",
                "sh -c sleep 100002",
                "tail -f",
                "/usr/bin/python3 -c import time",
            ]
            .iter()
            .any(|start| one.command.starts_with(start))
        })
        .collect();
    assert_eq!(decoys.len(), 4, "{decoys:#?}");
    for decoy in decoys {
        assert!(row_of_pid(plan, decoy.pid).is_none(), "{decoy:?}");
    }
}

#[test]
fn every_folder_among_the_profiles_has_a_row_and_none_hides_another() {
    let Some((_, plan)) = plan() else { return };
    let below = "/home/cyd/.hermes/profiles/";
    for (name, outcome, reason) in [
        ("good1", "current", ""),
        ("good2", "current", ""),
        ("half", "unconfigured", ""),
        ("0", "skipped", "not a profile"),
        ("With Space", "skipped", "not a profile"),
        ("-dash", "skipped", "not a profile"),
        ("new\nline", "skipped", "not a profile"),
        (
            "00000000000000000000000000000000000000000000000000000000000000007",
            "skipped",
            "not a profile",
        ),
    ] {
        let row = plan.home(&format!("{below}{name}"));
        assert_eq!(row["outcome"], outcome, "{row}");
        assert_eq!(row["reason"], reason, "{row}");
    }
    for absent in ["file", "dangling"] {
        let path = format!("{below}{absent}");
        assert!(
            plan.rows("homes")
                .iter()
                .all(|row| row["path"] != path.as_str()),
            "{absent}"
        );
    }
}

#[test]
fn a_runtime_from_another_install_than_its_homes_own_is_listed_and_left_alone() {
    let Some((_, plan)) = plan() else { return };
    let row = row_of(plan, "cyd-fork.service").expect("it is listed");
    assert_eq!(row["outcome"], "skipped", "{row}");
    assert!(
        row["reason"]
            .as_str()
            .unwrap()
            .starts_with("other-install: it runs from /opt/hermes"),
        "{row}"
    );
    let runs = plan
        .rows("installs")
        .iter()
        .find(|one| one["id"] == row["install"])
        .expect("its install is listed");
    assert_eq!(runs["path"], crate::support::fleet::VENV, "{runs}");
}

#[test]
fn one_runtime_that_serves_many_homes_is_one_row_with_all_of_them() {
    let Some((odd, plan)) = plan() else { return };
    if !odd.has_newest {
        return;
    }
    let rows: Vec<_> = plan
        .rows("runtimes")
        .iter()
        .filter(|row| row["user"] == "dan")
        .collect();
    let [row] = rows.as_slice() else {
        panic!("{rows:#?}")
    };
    assert_eq!(
        row["profiles"],
        serde_json::json!(["default", "a", "b"]),
        "{row}"
    );
    assert_eq!(row["outcome"], "current", "{row}");
}

#[test]
fn a_user_sees_its_own_alone_and_root_sees_whose_each_is() {
    let Some((odd, of_root)) = plan() else { return };
    let of_bob = Update::new(&odd.fleet, &["plan", "--json"])
        .by("bob")
        .run()
        .receipt();
    assert_eq!(of_bob.0["invoker"]["scope"], "user");
    for list in ["homes", "runtimes"] {
        for row in of_bob.rows(list) {
            assert_eq!(row["uid"], 2002, "{row}");
        }
        let count = |plan: &Receipt| {
            plan.rows(list)
                .iter()
                .filter(|row| row["uid"] == 2002)
                .count()
        };
        assert_eq!(
            count(&of_bob),
            count(of_root),
            "{list}: {}",
            of_bob.summary()
        );
    }
    // What the system's manager keeps for bob, bob may not restart, and is told who can.
    let row = row_of(&of_bob, "agent-serve.service").expect("it is listed");
    assert_eq!(row["outcome"], "failed", "{row}");
    assert_eq!(
        row["remedy"], "sudo systemctl restart agent-serve.service",
        "{row}"
    );
}

#[test]
fn the_fleet_is_told_by_user_and_install() {
    let Some((odd, plan)) = plan() else { return };
    let outcome = Update::new(&odd.fleet, &["status"]).run();
    assert_eq!(outcome.status, Some(0), "{outcome}");
    let text = &outcome.stdout;
    for row in plan.rows("runtimes") {
        let pid = format!(" {} ", row["before"]["incarnation"]["pid"]);
        assert!(
            row["before"].is_null() || text.contains(&pid),
            "{row}\n{text}"
        );
    }
    for user in [
        "ann (uid 2001)\n",
        "bob (uid 2002)\n",
        "cyd (uid 2003)\n",
        "eve (uid 2005)\n",
        "svc (uid 950)\n",
    ] {
        assert_eq!(text.matches(user).count(), 1, "{text}");
    }
    assert!(
        text.contains("  /opt/hermes-0.19.0  pip 0.19.0, expects 33\n"),
        "{text}"
    );
    assert!(!text.contains('\x1b'), "{text}");
}
