//! Who keeps a runtime, where it is no service manager. The runtimes are stand-ins: only their parents,
//! namespaces and environments are what is tested.

use serde_json::Value;

use crate::odd::{Odd, plan, row_of_pid};
use crate::support::sandbox::Process;
use crate::support::update::Receipt;

/// The stand-in of a profile: the one that is no shell and no launcher.
fn stand_in(odd: &Odd, profile: &str) -> Process {
    let start = format!("/opt/stand-in/bin/python -m hermes_cli.main -p {profile} ");
    odd.fleet
        .sandbox
        .processes()
        .into_iter()
        .find(|one| one.command.starts_with(&start))
        .unwrap_or_else(|| panic!("the stand-in of {profile} does not run"))
}

fn row<'a>(odd: &Odd, plan: &'a Receipt, profile: &str) -> &'a Value {
    let process = stand_in(odd, profile);
    row_of_pid(plan, process.pid)
        .unwrap_or_else(|| panic!("no row for {process:?}\n{}", plan.summary()))
}

#[test]
fn what_another_program_respawns_is_that_programs_and_only_a_person_restarts_it() {
    let Some((odd, plan)) = plan() else { return };
    for keeper in ["runsv", "supervisord", "pm2", "bash"] {
        let row = row(odd, plan, &format!("by-{keeper}"));
        assert_eq!(row["outcome"], "manual", "{row}");
        let supervisor = row["supervisor"].as_str().unwrap().to_lowercase();
        assert!(supervisor.starts_with(&format!("{keeper} (pid ")), "{row}");
        assert!(!row["remedy"].as_str().unwrap().is_empty(), "{row}");
        assert_eq!(row["action"], Value::Null, "{row}");
    }
}

#[test]
fn what_the_desktop_owns_is_left_to_it_and_its_credential_is_nowhere() {
    let Some((odd, plan)) = plan() else { return };
    let row = row(odd, plan, "by-desktop");
    assert_eq!(row["outcome"], "deferred", "{row}");
    assert!(
        row["supervisor"].as_str().unwrap().starts_with("desktop ("),
        "{row}"
    );
    assert!(!plan.0.to_string().contains("canary"), "{row}");
}

#[test]
fn what_nobody_is_known_to_keep_is_left_alone_and_said() {
    let Some((odd, plan)) = plan() else { return };
    let row = row(odd, plan, "by-nobody");
    assert_eq!(row["outcome"], "unaccounted", "{row}");
    assert!(
        row["reason"].as_str().unwrap().starts_with("owner:"),
        "{row}"
    );
    assert_eq!(row["action"], Value::Null, "{row}");
}

#[test]
fn another_pid_namespace_or_root_is_another_machine_and_a_mount_namespace_alone_is_not() {
    let Some((odd, plan)) = plan() else { return };
    for name in ["in-pid-namespace", "in-another-root"] {
        let row = row(odd, plan, name);
        assert_eq!(row["outcome"], "skipped", "{row}");
        assert_eq!(row["reason"], "another namespace", "{row}");
        assert_eq!(row["homes"].as_array().unwrap().len(), 0, "{row}");
    }
    let row = row(odd, plan, "in-mount-namespace");
    assert_eq!(
        row["profiles"],
        serde_json::json!(["in-mount-namespace"]),
        "{row}"
    );
    assert_ne!(row["outcome"], "skipped", "{row}");
}
