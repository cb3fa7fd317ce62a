//! A release that expects more than the catalog knows: the real one, whose number is raised in its machine.

use std::path::PathBuf;

use crate::support::fleet::{ANN, Fleet, Gateway, Plan};
use crate::support::skip;
use crate::support::update::{Receipt, Update};

/// Where its virtual environment is, inside.
const NEWEST: &str = "/opt/hermes-iot-0.22.2";

const OLD: &str = "\
# kept: the first line
_config_version: 33   # what wrote it
agent:
    max_turns: 90       # four blanks, on purpose
approvals: {mode: manual}
# kept: the last line
";

/// A fleet of which nothing runs, and whose units of ann start the raised release.
fn boot() -> Option<Fleet> {
    let Some(venv) = std::env::var_os("UPDATE_ORACLE_NEWEST").map(PathBuf::from) else {
        skip("the application's own migrator (UPDATE_ORACLE_NEWEST names no venv)");
        return None;
    };
    let plan = Gateway::all()
        .into_iter()
        .fold(Plan::default(), Plan::asleep)
        .show(venv, NEWEST);
    let fleet = plan.boot()?;
    let defaults = format!("{NEWEST}/lib/python3.*/site-packages/hermes_cli/config_defaults.py");
    fleet.sandbox.sh(
        None,
        &format!(
            "file=$(echo {defaults}); sed 's/\"_config_version\": 50/\"_config_version\": 51/' $file >/srv/raised.py
             grep -q '\"_config_version\": 51' /srv/raised.py && mount --bind /srv/raised.py $file"
        ),
    );
    for profile in ANN.profiles {
        let gateway = Gateway::of(ANN, profile);
        fleet.set_config(gateway, OLD);
        let profile = match *profile {
            "default" => String::new(),
            name => format!("--profile {name} "),
        };
        fleet.drop_in(
            gateway,
            &format!("[Service]\nExecStart=\nExecStart={NEWEST}/bin/python -m hermes_cli.main {profile}gateway run\n"),
        );
    }
    fleet
        .sandbox
        .sh(Some("ann"), "systemctl --user daemon-reload");
    Some(fleet)
}

fn of(receipt: &Receipt, gateway: Gateway) -> (&str, &str) {
    let row = receipt.home(&gateway.home());
    (
        row["outcome"].as_str().unwrap(),
        row["reason"].as_str().unwrap(),
    )
}

#[test]
fn past_the_catalog_the_applications_own_migrator_works_on_a_copy_if_a_person_allows_it() {
    let Some(fleet) = boot() else { return };
    let (first, second) = (Gateway::of(ANN, "work"), Gateway::of(ANN, "ops"));
    let before = fleet.fingerprint(&first.config());

    let known = Update::apply(&fleet).run().receipt();
    assert_eq!(
        of(&known, first),
        (
            "beyond-catalog",
            "the code expects 51, the catalog ends at 50"
        )
    );
    let planned = Update::new(&fleet, &["plan", "--native-migrate"]).run();
    let said = format!("{}{}", planned.stdout, planned.stderr);
    assert!(said.contains("its own migrator would be asked"), "{said}");
    assert_eq!(fleet.fingerprint(&first.config()), before);

    let outcome = Update::new(&fleet, &["--native-migrate", "--json"]).run();
    let receipt = outcome.receipt();
    for gateway in [first, second] {
        assert_eq!(
            of(&receipt, gateway),
            ("migrated", ""),
            "{}",
            receipt.summary()
        );
        let text = fleet.config(gateway);
        for kept in [
            "# kept: the first line\n_config_version: 51   # what wrote it\n",
            "max_turns: 90",
            "# four blanks, on purpose\n",
            "approvals: {mode: manual}\n",
            "# kept: the last line\n",
        ] {
            assert!(text.contains(kept), "{kept}\n---\n{text}");
        }
        let row = receipt.home(&gateway.home());
        let steps = row["steps"].as_array().unwrap();
        assert_eq!(steps.last().unwrap()["id"], "native");
    }
    // It was ann's process, and what it makes beside the configuration did not come with it.
    assert!(fleet.sandbox.owned_by_root("/home/ann").is_empty());
    for made in ["backups", ".env.lock"] {
        let path = format!("{}/{made}", first.home());
        assert!(!fleet.sandbox.path(&path).exists(), "{path}");
    }
    let left =
        "ls -A /run/user/2001 /home/ann/.hermes /home/ann/.hermes/profiles/* | grep native || true";
    assert_eq!(fleet.sandbox.sh(None, left).trim(), "");

    let again = Update::new(&fleet, &["--native-migrate", "--json"])
        .run()
        .receipt();
    assert_eq!(of(&again, first), ("current", ""));
    let run = receipt.0["run_id"].as_str().unwrap().to_owned();
    // With the release of before, its configuration can come back.
    for profile in ANN.profiles {
        let drop_ins = Gateway::of(ANN, profile).drop_ins();
        fleet.sandbox.sh(None, &format!("rm -r {drop_ins}"));
    }
    fleet
        .sandbox
        .sh(Some("ann"), "systemctl --user daemon-reload");
    let back = Update::new(&fleet, &["rollback", &run]).run();
    let said = format!("{}{}", back.stdout, back.stderr);
    assert_eq!(fleet.config(first), OLD, "{said}");
}
