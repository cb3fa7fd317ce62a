//! The main job: every home migrated, every gateway restarted exactly once, and proof of it.

use std::time::Duration;

use crate::support::fleet::{ANN, BOB, CONFIG_V12, Fleet, Gateway};
use crate::support::update::{Update, latest_receipt, wait_until_gone};
use crate::support::wait_for;
use crate::support::watcher::Watcher;
use crate::{assert_migrated, assert_restarted_once, assert_untouched, pretty};

/// Both users' watchers, to be asked by a gateway's owner.
struct Watchers(Watcher, Watcher);

impl Watchers {
    fn start(fleet: &Fleet) -> Self {
        Self(
            Watcher::start(&fleet.sandbox, "ann"),
            Watcher::start(&fleet.sandbox, "bob"),
        )
    }

    fn of(&self, gateway: Gateway) -> &Watcher {
        if gateway.user == "ann" {
            &self.0
        } else {
            &self.1
        }
    }
}

#[test]
fn one_run_migrates_every_home_and_restarts_every_gateway_exactly_once_and_the_next_changes_nothing()
 {
    let Some(fleet) = Fleet::boot() else { return };
    let all = Gateway::all();
    let watchers = Watchers::start(&fleet);
    let before = fleet.lives(&all);
    let roots = fleet.sandbox.owned_by_root("/home");

    let receipt = Update::apply(&fleet).run().expect(0);
    assert_eq!(receipt.0["verdict"]["outcome"], "clean");
    for gateway in &all {
        assert_migrated(&fleet, *gateway);
        assert_restarted_once(&fleet, *gateway, &before[gateway], watchers.of(*gateway));
        assert_eq!(receipt.home_outcome(*gateway), "migrated");
        let row = receipt.gateway(*gateway);
        assert_eq!(row["outcome"], "restarted", "{}", receipt.summary());
        let life = fleet.life(*gateway);
        assert_eq!(
            row["before"]["invocation_id"],
            before[gateway].invocation.as_str()
        );
        assert_eq!(row["before"]["incarnation"]["pid"], before[gateway].pid);
        assert_eq!(row["after"]["invocation_id"], life.invocation.as_str());
        assert_eq!(row["after"]["incarnation"]["pid"], life.pid);
    }
    assert_eq!(
        receipt.rows("runtimes").len(),
        all.len(),
        "{}",
        receipt.summary()
    );
    assert_eq!(latest_receipt(&fleet).map(|kept| kept.0), Some(receipt.0));
    wait_until_gone(&fleet);
    pretty(
        &roots.join("\n"),
        &fleet.sandbox.owned_by_root("/home").join("\n"),
        "what root owns below /home",
    );

    // The second run, and one that knows nothing of the first.
    for forget in [false, true] {
        if forget {
            fleet.sandbox.sh(None, "rm -r /var/lib/fleet-update");
        }
        let watchers = Watchers::start(&fleet);
        let before = fleet.lives(&all);
        let files: Vec<_> = all
            .iter()
            .map(|one| fleet.fingerprint(&one.config()))
            .collect();
        let receipt = Update::apply(&fleet).run().expect(0);
        for gateway in &all {
            assert_untouched(&fleet, *gateway, &before[gateway], watchers.of(*gateway));
            assert_eq!(
                receipt.home_outcome(*gateway),
                "current",
                "{}",
                receipt.summary()
            );
            assert_eq!(
                receipt.outcome(*gateway),
                "current",
                "{}",
                receipt.summary()
            );
        }
        let now: Vec<_> = all
            .iter()
            .map(|one| fleet.fingerprint(&one.config()))
            .collect();
        assert!(
            files == now,
            "a run with nothing to do touched a configuration"
        );
    }

    // Quiet means silent when there is nothing to say.
    let quiet = Update::new(&fleet, &["--quiet"]).run();
    assert_eq!(
        (quiet.status, &*quiet.stdout, &*quiet.stderr),
        (Some(0), "", ""),
        "{quiet}"
    );
}

#[test]
fn a_user_s_run_touches_only_the_homes_and_the_manager_of_that_user() {
    let Some(fleet) = Fleet::boot() else { return };
    let watchers = Watchers::start(&fleet);
    let before = fleet.lives(&Gateway::all());
    let foreign: Vec<_> = BOB
        .profiles
        .iter()
        .map(|profile| fleet.fingerprint(&Gateway::of(BOB, profile).config()))
        .collect();

    let receipt = Update::apply(&fleet).by("ann").run().expect(0);
    assert_eq!(receipt.0["invoker"]["uid"], ANN.uid);
    for profile in ANN.profiles {
        let gateway = Gateway::of(ANN, profile);
        assert_migrated(&fleet, gateway);
        assert_restarted_once(&fleet, gateway, &before[&gateway], &watchers.0);
        assert_eq!(
            receipt.outcome(gateway),
            "restarted",
            "{}",
            receipt.summary()
        );
    }
    for (profile, was) in BOB.profiles.iter().zip(&foreign) {
        let gateway = Gateway::of(BOB, profile);
        assert!(
            *was == fleet.fingerprint(&gateway.config()),
            "bob's file was touched"
        );
        assert_untouched(&fleet, gateway, &before[&gateway], &watchers.1);
    }
    assert!(
        receipt
            .rows("homes")
            .iter()
            .all(|row| row["uid"] == ANN.uid || row["outcome"] == "skipped"),
        "{}",
        receipt.summary()
    );
    assert!(!fleet.sandbox.path("/var/lib/fleet-update").exists());
    assert!(
        fleet
            .sandbox
            .path("/home/ann/.local/state/fleet-update/receipts/latest.json")
            .exists()
    );

    // Root finds one user done and finishes the other.
    let receipt = Update::apply(&fleet).run().expect(0);
    for gateway in Gateway::all() {
        let expected = if gateway.user == "ann" {
            "current"
        } else {
            "restarted"
        };
        assert_eq!(receipt.outcome(gateway), expected, "{}", receipt.summary());
        assert_migrated(&fleet, gateway);
    }
}

#[test]
fn an_empty_environment_and_a_closed_stdin_make_no_difference_and_a_second_run_at_the_same_time_ends_with_75()
 {
    let Some(fleet) = Fleet::boot() else { return };
    let all = Gateway::all();
    let watchers = Watchers::start(&fleet);
    let before = fleet.lives(&all);

    let first = Update::apply(&fleet)
        .after("exec <&- env -i PATH=/usr/bin:/bin")
        .start();
    // Its receipt is opened before the first change, so from here on it is at work and holds the lock.
    wait_for("the receipt is opened", Duration::from_secs(30), || {
        latest_receipt(&fleet)
    });
    let second = Update::apply(&fleet).run();
    assert_eq!(second.status, Some(75), "{second}");
    assert_eq!(second.stdout, "", "{second}");
    assert!(second.stderr.contains("lock"), "{second}");

    let receipt = first.finish().expect(0);
    for gateway in &all {
        assert_migrated(&fleet, *gateway);
        assert_restarted_once(&fleet, *gateway, &before[gateway], watchers.of(*gateway));
        assert_eq!(
            receipt.outcome(*gateway),
            "restarted",
            "{}",
            receipt.summary()
        );
    }
}

#[test]
fn a_home_that_was_changed_by_hand_after_the_run_restarts_nothing() {
    let Some(fleet) = Fleet::boot() else { return };
    Update::apply(&fleet).run().expect(0);
    let gateway = Gateway::of(ANN, "work");
    let before = fleet.life(gateway);
    let watcher = Watcher::start(&fleet.sandbox, "ann");
    let edited = format!("{}# by hand\n", fleet.config(gateway));
    fleet.set_config(gateway, &edited);

    let receipt = Update::apply(&fleet).run().expect(0);
    assert_untouched(&fleet, gateway, &before, &watcher);
    assert_eq!(receipt.outcome(gateway), "current", "{}", receipt.summary());
    pretty(&edited, &fleet.config(gateway), "the edited file");

    // An old file that somebody puts back is an old home again, and is brought up once more.
    fleet.set_config(gateway, CONFIG_V12);
    let receipt = Update::apply(&fleet).run().expect(0);
    assert_migrated(&fleet, gateway);
    assert_restarted_once(&fleet, gateway, &before, &watcher);
    assert_eq!(
        receipt.outcome(gateway),
        "restarted",
        "{}",
        receipt.summary()
    );
    assert_eq!(watcher.starts_of(&Gateway::of(ANN, "ops").unit()), 0);
}
