//! The cells of tenants, as runs move them by what they prove.

use std::fs;

use fleet_update::state::cells::CellState;

use crate::fleet::{CONFIG, Fleet, many};
use crate::isolated::isolated;

/// The moves of a tenant's cell that the audit chain holds, as `run from->to`.
fn moves(fleet: &Fleet, tenant: &str) -> Vec<String> {
    let mut lines = String::new();
    let store = fleet.store();
    store
        .export(&mut |text| lines.push_str(text))
        .expect("a database");
    let events = lines.lines().map(|line| {
        let (_, text) = line.split_once(' ').expect("a hash and an event");
        serde_json::from_str::<serde_json::Value>(text).expect("JSON")
    });
    let word = |value: &serde_json::Value| value.as_str().unwrap_or("-").to_owned();
    events
        .filter(|event| event["tenant"] == tenant && event["kind"] == "cell")
        .map(|event| {
            let (from, to) = (&event["payload"]["from"], &event["payload"]["to"]);
            format!("{} {}->{}", word(&event["run"]), word(from), word(to))
        })
        .collect()
}

#[test]
fn a_run_moves_the_cells_that_it_touches_by_its_own_evidence_and_no_others() {
    if !isolated() {
        return;
    }
    let fleet = Fleet::without_runtimes(many(2).into_iter());
    // The cell's root is the root of all these homes; the other tenant's is elsewhere.
    let elsewhere = fleet.folder.path().join("elsewhere");
    for (tenant, root) in [("acme", fleet.root()), ("bolt", elsewhere)] {
        let made = fleet
            .store()
            .create_cell(tenant, "main", &root, None, None)
            .expect("new");
        assert_eq!(made.state, CellState::Created);
    }
    let state = |tenant: &str| fleet.store().cell(tenant).expect("there").state;
    let run_id = || fleet.latest()["run_id"].as_str().expect("an id").to_owned();
    let mut expected = vec!["cell -->created".to_owned()];

    // Brought up by its first run.
    assert_eq!(fleet.run("apply", &[]).code(), Some(0), "{}", fleet.said());
    let first = run_id();
    expected.push(format!("{first} created->starting"));
    expected.push(format!("{first} starting->healthy"));
    assert_eq!(moves(&fleet, "acme"), expected);

    // A run that has nothing to do there leaves it alone.
    assert_eq!(fleet.run("apply", &[]).code(), Some(0), "{}", fleet.said());
    assert_eq!(moves(&fleet, "acme"), expected);

    // One that writes goes through upgrading, and one whose home is not proved fine fails it.
    fs::write(fleet.homes[0].join("config.yaml"), CONFIG).expect("ours");
    assert_eq!(fleet.run("apply", &[]).code(), Some(0), "{}", fleet.said());
    let second = run_id();
    expected.push(format!("{second} healthy->upgrading"));
    expected.push(format!("{second} upgrading->healthy"));
    fleet.write_homes();
    let (config, other) = (
        fleet.homes[1].join("config.yaml"),
        fleet.homes[1].join("other"),
    );
    fs::hard_link(&config, &other).expect("ours");
    let left_alone = fleet.run("apply", &[]);
    assert_eq!(left_alone.code(), Some(1), "{}", fleet.said());
    fs::remove_file(&other).expect("ours");
    let third = run_id();
    expected.push(format!("{third} healthy->upgrading"));
    expected.push(format!("{third} upgrading->failed"));
    assert_eq!(moves(&fleet, "acme"), expected);

    // The next one brings it up again.
    assert_eq!(fleet.run("apply", &[]).code(), Some(0), "{}", fleet.said());
    let fourth = run_id();
    expected.push(format!("{fourth} failed->starting"));
    expected.push(format!("{fourth} starting->healthy"));
    assert_eq!(moves(&fleet, "acme"), expected);

    // A rollback says that it is one.
    let back = fleet.run(&format!("rollback {second}"), &[("CRASH_TO", "12")]);
    assert_eq!(back.code(), Some(0), "{}", fleet.said());
    let fifth = run_id();
    for step in [
        "healthy->upgrading",
        "upgrading->rollback",
        "rollback->healthy",
    ] {
        expected.push(format!("{fifth} {step}"));
    }
    assert_eq!(moves(&fleet, "acme"), expected);
    assert_eq!(state("acme"), CellState::Healthy);

    assert_eq!(moves(&fleet, "bolt"), ["cell -->created"]);
    assert_eq!(state("bolt"), CellState::Created);
    assert_eq!(fleet.run("verify", &[]).code(), Some(0), "{}", fleet.said());
}

#[test]
fn a_cell_keeps_the_digest_of_the_configuration_that_a_run_left() {
    if !isolated() {
        return;
    }
    let fleet = Fleet::without_runtimes(many(1).into_iter());
    let root = &fleet.homes[0];
    fleet
        .store()
        .create_cell("acme", "main", root, None, None)
        .expect("new");
    assert_eq!(fleet.run("apply", &[]).code(), Some(0), "{}", fleet.said());
    let config = fs::read(root.join("config.yaml")).expect("there");
    let cell = fleet.store().cell("acme").expect("there");
    assert_eq!(
        cell.config_digest,
        Some(fleet_update::digest::sha256(&config))
    );
}
