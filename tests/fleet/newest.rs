//! The newest real release as its users have it: one gateway for all profiles of a user, installed and started by
//! the application itself, whose unit runs `python -I -c SOURCE`.

use std::path::PathBuf;
use std::time::Duration;

use crate::assert_restarted_once;
use crate::support::fleet::{Fleet, Gateway, Plan};
use crate::support::update::{Receipt, Update};
use crate::support::watcher::Watcher;
use crate::support::{skip, wait_for};

/// Where its virtual environment is, inside.
const NEWEST: &str = "/opt/hermes-iot-0.22.2";

/// Whose gateway it is; the profile beside the default one is served by the same process.
const EVA: Gateway = Gateway {
    user: "eva",
    uid: 2004,
    profile: "default",
};
const LAB: Gateway = Gateway {
    profile: "lab",
    ..EVA
};

const OLD: &str =
    "# kept\n_config_version: 33   # what wrote it\nagent:\n    max_turns: 90  # kept, too\n";
/// A fleet of which nothing of the older release runs, and eva's gateway.
fn boot() -> Option<Fleet> {
    let Some(venv) = std::env::var_os("UPDATE_ORACLE_NEWEST").map(PathBuf::from) else {
        skip("the newest release's own units (UPDATE_ORACLE_NEWEST names no venv)");
        return None;
    };
    let asleep = Gateway::all()
        .into_iter()
        .fold(Plan::default(), Plan::asleep);
    let fleet = asleep.show(venv, NEWEST).boot()?;
    // It writes no unit in what it takes for a container.
    let script = "rm -f /.dockerenv; useradd -m -u 2004 eva; loginctl enable-linger eva";
    fleet.sandbox.sh(None, script);
    fleet.wait_for_bus(2004);
    let path = format!("export PATH={NEWEST}/bin:/usr/bin:/bin; cd");
    let made = fleet
        .sandbox
        .sh(Some("eva"), &format!("{path}; hermes profile create lab"));
    for home in [EVA, LAB] {
        fleet.sandbox.sh(
            Some("eva"),
            &format!("cat >{} <<'END'\n{OLD}END", home.config()),
        );
    }
    let text = format!("{path}; yes n | hermes gateway install; hermes gateway start");
    let said = fleet.sandbox.shell(Some("eva"), &text);
    assert!(said.status.success(), "{made} {said:?}");
    fleet.wait_until_running(EVA);
    Some(fleet)
}

/// Eva's only runtime.
fn gateway(receipt: &Receipt) -> serde_json::Value {
    let rows = receipt.rows("runtimes").iter();
    let own: Vec<_> = rows.filter(|row| row["user"] == "eva").collect();
    assert_eq!(own.len(), 1, "{}", receipt.summary());
    own[0].clone()
}

#[test]
fn the_gateway_of_the_newest_release_is_found_by_its_unit_and_its_process_and_restarted_once() {
    let Some(fleet) = boot() else { return };
    let unit = fleet
        .sandbox
        .sh(Some("eva"), &format!("systemctl --user cat {}", EVA.unit()));
    assert!(unit.contains("runpy.run_module("), "{unit}");
    let watcher = Watcher::start(&fleet.sandbox, "eva");
    let before = fleet.life(EVA);
    // It wrote the default one itself when it started.
    let migrated = |home| {
        fleet
            .config(home)
            .replace("_config_version: 33 ", "_config_version: 50 ")
    };
    let expected = [EVA, LAB].map(|home| (home, migrated(home)));

    let receipt = Update::apply(&fleet).run().expect(0);
    assert_eq!(
        receipt.0["verdict"]["outcome"],
        "clean",
        "{}",
        receipt.summary()
    );
    let row = gateway(&receipt);
    assert_eq!(row["outcome"], "restarted", "{}", receipt.summary());
    assert_eq!(row["unit"], EVA.unit());
    let served = [EVA, LAB].map(|home| receipt.home(&home.home())["id"].clone());
    assert_eq!(row["homes"], serde_json::json!(served), "{row}");
    assert_eq!(row["before"]["invocation_id"], before.invocation.as_str());
    // The kernel and the manager know it, not only its own pid file.
    let seen_by: Vec<&str> = row["evidence"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["vantage"].as_str().unwrap())
        .collect();
    for vantage in ["kernel", "supervisor", "self"] {
        assert!(seen_by.contains(&vantage), "{row}");
    }
    assert_restarted_once(&fleet, EVA, &before, &watcher);
    for (home, text) in expected {
        assert_eq!(receipt.home_outcome(home), "migrated");
        assert_eq!(fleet.config(home), text);
    }

    let after = fleet.life(EVA);
    let again = Update::apply(&fleet).run().expect(0);
    assert_eq!(gateway(&again)["outcome"], "current", "{}", again.summary());
    assert_eq!(fleet.life(EVA), after);
}

#[test]
fn one_that_it_started_by_itself_is_found_by_its_process_alone() {
    let Some(fleet) = boot() else { return };
    fleet.sandbox.sh(
        Some("eva"),
        &format!("systemctl --user disable --now {unit}; rm ~/.config/systemd/user/{unit}; systemctl --user daemon-reload", unit = EVA.unit()),
    );
    // What it runs is what its own launcher says.
    let script = format!(
        "cd; exec systemd-run --user --scope --collect --quiet {NEWEST}/bin/python -I -c \"$({NEWEST}/bin/python -I -c '
from pathlib import Path; import hermes_cli; from hermes_cli._launchers import runtime_command
print(runtime_command(Path(hermes_cli.__file__).parents[1])[3])')\" gateway run </dev/null >/tmp/eva.log 2>&1 &"
    );
    fleet.sandbox.sh(Some("eva"), &script);
    let process = fleet.wait_until_running(EVA);
    // Nothing but the process itself says that it is one.
    for file in ["gateway.pid", "gateway_state.json", "gateway.sock"] {
        let path = format!("{}/{file}", EVA.home());
        fleet.sandbox.sh(None, &format!("rm -f {path}"));
    }
    let planned = Update::new(&fleet, &["plan", "--json"]).run().receipt();
    let row = gateway(&planned);
    assert_eq!(row["before"]["incarnation"]["pid"], process.pid, "{row}");
    assert_eq!(row["homes"][0], planned.home(&EVA.home())["id"], "{row}");
    assert_eq!(row["outcome"], "manual", "{row}");

    // What a person is told to do can be done as it stands.
    let remedy = row["remedy"].as_str().unwrap();
    let (_, start) = remedy.split_once("when it has ended: ").expect(remedy);
    fleet.sandbox.sh(None, &format!("kill {}", process.pid));
    wait_for("its end", Duration::from_secs(60), || {
        fleet.sandbox.process(process.pid).is_none().then_some(())
    });
    fleet.sandbox.write("/srv/start", start, 0o755);
    let again = "systemd-run --user --scope --collect --quiet sh /srv/start >/tmp/eva.log 2>&1 </dev/null &";
    fleet.sandbox.sh(Some("eva"), again);
    fleet.wait_until_running(EVA);
}
