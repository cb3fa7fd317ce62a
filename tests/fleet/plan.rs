//! `update plan` changes nothing anywhere, and the run after it does what it said.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::fleet::{ANN, BOB, CONFIG_V12, Fleet, Gateway};
use crate::support::trace::traced;
use crate::support::update::{Receipt, Update};

#[test]
fn a_plan_writes_nothing_starts_no_manager_and_the_run_after_it_does_what_it_said() {
    let Some(fleet) = Fleet::boot() else { return };
    // A user without a manager, whose home has to be looked at, and homes of several kinds.
    fleet.sandbox.sh(Some("cyd"), "mkdir /home/cyd/.hermes");
    fleet
        .sandbox
        .write("/home/cyd/.hermes/config.yaml", CONFIG_V12, 0o600);
    fleet.set_config(Gateway::of(ANN, "ops"), "_config_version: 33\nmodel: x\n");
    fleet.set_config(Gateway::of(BOB, "lab"), "_config_version: 5\nmodel: x\n");
    assert!(!fleet.sandbox.path("/run/user/2003").exists());

    let traced = traced_plan(&fleet);
    let frozen = frozen_plan(&fleet);
    assert_eq!(
        fleet
            .sandbox
            .shell(None, "systemctl is-active user@2003.service")
            .stdout,
        b"inactive\n"
    );
    assert!(!fleet.sandbox.path("/run/user/2003").exists());
    assert!(!fleet.sandbox.path("/var/lib/fleet-update").exists());
    assert!(!fleet.sandbox.path("/run/fleet-update").exists());
    // On a root that nobody can write, what would be migrated cannot be: the plan says so, and that
    // nothing has to be restarted for it. All else is the same.
    for row in frozen.rows("homes") {
        let twin = &planned(&traced)[&format!("home {}", row["id"])];
        let expected = match twin["outcome"].as_str() {
            Some("migrated") => "read-only",
            other => other.unwrap_or_default(),
        };
        assert_eq!(row["outcome"], expected, "{row}");
        for key in ["path", "uid", "install", "from", "to", "changes"] {
            assert_eq!(row[key], twin[key], "{row}");
        }
    }
    assert_eq!(frozen.rows("homes").len(), traced.rows("homes").len());
    let acts = |row: &&Value| !row["action"].is_null();
    assert_eq!(frozen.rows("runtimes").iter().filter(acts).count(), 0);
    assert_eq!(
        Update::new(&fleet, &["plan", "--check"]).run().status,
        Some(5)
    );

    let before = fleet.lives(&Gateway::all());
    let outcome = Update::apply(&fleet).run();
    let receipt = outcome.expect(1);
    let (said, did) = (planned(&traced), planned(&receipt));
    assert_eq!(
        said.keys().collect::<Vec<_>>(),
        did.keys().collect::<Vec<_>>(),
        "{outcome}"
    );
    for (id, said) in &said {
        assert_eq!(said, &did[id], "{id} was planned otherwise\n{outcome}");
    }
    // And what it planned is what really happened.
    for gateway in Gateway::all() {
        let acted = fleet.life(gateway).invocation != before[&gateway].invocation;
        let row = traced.gateway(gateway);
        let meant = row["outcome"] == "unaccounted" && !row["action"].is_null();
        assert_eq!(acted, meant, "{row}\n{outcome}");
    }
    assert!(
        !fleet.sandbox.path("/run/user/2003").exists(),
        "the run started a manager"
    );
}

/// What a plan says will be, or a receipt says was: a row's promise by its id.
fn planned(document: &Receipt) -> BTreeMap<String, Value> {
    let keep = |row: &Value, keys: &[&str]| -> Value {
        keys.iter()
            .map(|&key| (key.to_owned(), row[key].clone()))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let homes = document.rows("homes").iter().map(|row| {
        let kept = keep(
            row,
            &["path", "uid", "install", "from", "to", "outcome", "changes"],
        );
        (format!("home {}", row["id"]), kept)
    });
    let runtimes = document.rows("runtimes").iter().map(|row| {
        let mut kept = keep(
            row,
            &["unit", "uid", "homes", "mechanism", "action", "before"],
        );
        // A row that will be acted on is not accounted for until it was.
        let outcome = match row["outcome"].as_str() {
            Some("restarted") => "unaccounted",
            other => other.unwrap_or(""),
        };
        kept["outcome"] = outcome.into();
        (format!("runtime {}", row["id"]), kept)
    });
    homes.chain(runtimes).collect()
}

/// A plan of the writable root under a tracer, which must not even have tried to change anything.
fn traced_plan(fleet: &Fleet) -> Receipt {
    let outcome = traced(
        fleet,
        None,
        &["plan", "--json"],
        &["/run/user/2001/bus", "/run/user/2002/bus"],
    );
    assert_eq!(outcome.status, Some(0), "{outcome}");
    outcome.receipt()
}

/// A plan on a read-only copy of the root.
fn frozen_plan(fleet: &Fleet) -> Receipt {
    // The same mounts once more, each of them read-only, entered by chroot: the processes and the
    // managers are the ones outside of it, and nobody else notices.
    fleet.sandbox.sh(
        None,
        "mkdir /run/frozen
         mount --rbind / /run/frozen && mount --make-rprivate /run/frozen
         awk '$5 ~ \"^/run/frozen\" {print $5}' /proc/self/mountinfo | while read -r one; do
           mount -o remount,bind,ro \"$one\" || exit 1
         done
         ! touch /run/frozen/home/ann/x /run/frozen/var/x /run/frozen/run/x /run/frozen/tmp/x 2>/dev/null",
    );
    let outcome = Update::new(fleet, &["plan", "--json"])
        .after("exec chroot /run/frozen")
        .run();
    fleet.sandbox.sh(None, "umount --recursive /run/frozen");
    assert_eq!(outcome.status, Some(0), "{outcome}");
    outcome.receipt()
}
