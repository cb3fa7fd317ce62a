//! What goes wrong for one home, gateway or manager is a row, and the others are done.

use std::time::Duration;

use crate::support::fleet::{ANN, BOB, CONFIG_V12, Fleet, Gateway};
use crate::support::update::Update;
use crate::support::watcher::Watcher;
use crate::{assert_migrated, assert_restarted_once, assert_untouched};

/// Whether a gateway's row says that the run gave up before it.
fn aborted(row: &serde_json::Value) -> bool {
    row["outcome"] == "unaccounted" && row["reason"].as_str().unwrap_or("").contains("aborted")
}

#[test]
fn a_gateway_whose_unit_cannot_start_is_not_clean_and_the_others_are_restarted() {
    let Some(fleet) = Fleet::boot() else { return };
    let broken = Gateway::of(BOB, "lab");
    fleet.drop_in(broken, "[Service]\nExecStartPre=/bin/false\n");

    let receipt = Update::apply(&fleet).run().expect(1);
    assert_eq!(receipt.0["verdict"]["outcome"], "not-clean");
    assert!(
        matches!(receipt.outcome(broken), "failed" | "down"),
        "{}",
        receipt.summary()
    );
    assert!(fleet.running(broken).is_none());
    for gateway in Gateway::all() {
        assert_migrated(&fleet, gateway);
        if gateway != broken {
            assert_eq!(
                receipt.outcome(gateway),
                "restarted",
                "{}",
                receipt.summary()
            );
        }
    }
}

#[test]
fn a_first_wave_that_does_not_come_back_keeps_the_rest_of_the_fleet_alive() {
    let Some(fleet) = Fleet::boot() else { return };
    let all = Gateway::all();
    // Whichever is first, it cannot start again.
    for gateway in &all {
        fleet.drop_in(*gateway, "[Service]\nExecStartPre=/bin/false\n");
    }
    let before = fleet.lives(&all);

    let receipt = Update::apply(&fleet).run().expect(1);
    let (first, rest): (Vec<&Gateway>, Vec<&Gateway>) = all
        .iter()
        .partition(|gateway| !aborted(receipt.gateway(**gateway)));
    // One of each owner: a user could make its own fail, and two that do are the release.
    let owners: Vec<&str> = first.iter().map(|gateway| gateway.user).collect();
    assert_eq!(owners, ["ann", "bob"], "{}", receipt.summary());
    for gateway in first {
        assert!(
            matches!(receipt.outcome(*gateway), "failed" | "down"),
            "{}",
            receipt.summary()
        );
    }
    for gateway in rest {
        assert_eq!(
            fleet.life(*gateway),
            before[gateway],
            "{}",
            receipt.summary()
        );
        assert!(fleet.running(*gateway).is_some());
    }
}

#[test]
fn an_invalid_configuration_is_left_as_it_is_with_its_gateway_and_the_others_are_done() {
    let Some(fleet) = Fleet::boot() else { return };
    let broken = Gateway::of(ANN, "ops");
    fleet.set_config(broken, &format!("{CONFIG_V12}broken: [1, 2\n"));
    let file = fleet.fingerprint(&broken.config());
    let watcher = Watcher::start(&fleet.sandbox, "ann");
    let before = fleet.lives(&Gateway::all());

    let receipt = Update::apply(&fleet).run().expect(1);
    assert!(
        file == fleet.fingerprint(&broken.config()),
        "the file was touched"
    );
    assert_untouched(&fleet, broken, &before[&broken], &watcher);
    let home = receipt.home(&broken.home());
    assert_eq!(home["outcome"], "invalid", "{}", receipt.summary());
    let said = format!("{} {}", home["reason"], home["failures"]);
    assert!(said.contains("line 1"), "no line in {said}");
    let row = receipt.gateway(broken);
    assert_eq!(row["outcome"], "skipped", "{}", receipt.summary());
    assert!(
        row["reason"].as_str().unwrap_or("").contains("home"),
        "{row}"
    );
    for gateway in Gateway::all() {
        if gateway != broken {
            assert_migrated(&fleet, gateway);
            assert_eq!(
                receipt.outcome(gateway),
                "restarted",
                "{}",
                receipt.summary()
            );
        }
    }
    for profile in ["default", "work"] {
        let gateway = Gateway::of(ANN, profile);
        assert_restarted_once(&fleet, gateway, &before[&gateway], &watcher);
    }
}

#[test]
fn a_mute_manager_makes_its_own_user_s_rows_unverified_within_the_deadline_and_no_others() {
    let Some(fleet) = Fleet::boot() else { return };
    let before = fleet.lives(&Gateway::all());
    let watcher = Watcher::start(&fleet.sandbox, "ann");
    let manager = fleet
        .sandbox
        .sh(None, "systemctl show -p MainPID --value user@2002.service");
    fleet
        .sandbox
        .sh(None, &format!("kill -STOP {}", manager.trim()));

    let outcome = Update::apply(&fleet).run();
    fleet
        .sandbox
        .sh(None, &format!("kill -CONT {}", manager.trim()));
    let receipt = outcome.expect(1);
    assert!(outcome.took < Duration::from_secs(60), "{outcome}");
    for gateway in Gateway::all() {
        if gateway.user == "bob" {
            let row = receipt
                .rows("runtimes")
                .iter()
                .find(|row| row["before"]["incarnation"]["pid"] == before[&gateway].pid)
                .unwrap_or_else(|| panic!("no row for {gateway:?}\n{outcome}"));
            assert_eq!(row["outcome"], "unverified", "{outcome}");
            assert_eq!(fleet.life(gateway), before[&gateway], "{outcome}");
        } else {
            assert_restarted_once(&fleet, gateway, &before[&gateway], &watcher);
            assert_eq!(receipt.outcome(gateway), "restarted", "{outcome}");
        }
    }

    // Once it answers again, the next run finishes what this one had to leave.
    let receipt = Update::apply(&fleet).run().expect(0);
    for gateway in Gateway::all() {
        assert_migrated(&fleet, gateway);
        let expected = if gateway.user == "bob" {
            "restarted"
        } else {
            "current"
        };
        assert_eq!(receipt.outcome(gateway), expected, "{}", receipt.summary());
    }
}
