//! Cells: the registry and its moves. That runs move them is shown where runs are (`state_crash`).

use std::fs;
use std::path::Path;

use fleet_update::state::cells::CellState;
use serde_json::json;

use crate::place::{Place, count, update};

#[test]
fn of_concurrent_creates_distinct_tenants_lose_none_and_one_tenant_has_one_winner() {
    let place = Place::new();
    assert_eq!(count(&place.children(24, "cell-each"), "true"), 24);
    assert_eq!(place.store().cells().expect("whole").len(), 24);
    assert_eq!(count(&place.children(16, "cell-one"), "true"), 1);
    assert_eq!(place.store().cells().expect("whole").len(), 25);
    place.store().verify().expect("whole");
}

#[test]
fn a_cell_makes_exactly_the_moves_of_the_table() {
    use CellState::{Created, Failed, Healthy, Rollback, Starting, Upgrading};
    let all = [Created, Starting, Healthy, Upgrading, Rollback, Failed];
    let allowed = [
        (Created, Starting),
        (Created, Failed),
        (Starting, Healthy),
        (Starting, Failed),
        (Healthy, Upgrading),
        (Healthy, Failed),
        (Upgrading, Healthy),
        (Upgrading, Rollback),
        (Upgrading, Failed),
        (Rollback, Healthy),
        (Rollback, Failed),
        (Failed, Starting),
    ];
    for from in all {
        for to in all {
            assert_eq!(
                from.may_become(to),
                allowed.contains(&(from, to)),
                "{from:?}->{to:?}"
            );
        }
    }
    let place = Place::new();
    let mut store = place.store();
    store
        .create_cell("acme", "main", Path::new("/srv/acme"), Some("0.19.0"), None)
        .expect("new");
    let before = store.verify().expect("whole").events;
    assert_eq!(
        store
            .move_cell("r", "acme", Created)
            .expect("no move")
            .state,
        Created
    );
    assert_eq!(
        store.verify().expect("whole").events,
        before,
        "the same state again is no event"
    );
    let error = store
        .move_cell("r", "acme", Healthy)
        .expect_err("no such move");
    assert!(error.to_string().contains("created->healthy"), "{error}");
    assert_eq!(error.kind().exit_status(), 3);
    for state in [Starting, Healthy, Upgrading, Rollback, Failed, Starting] {
        store
            .move_cell("r", "acme", state)
            .expect("a move of the table");
    }
    let cell = place
        .store()
        .cell("acme")
        .expect("a restart reads the same");
    assert_eq!(
        (cell.state, cell.version.as_deref()),
        (Starting, Some("0.19.0"))
    );
}

#[test]
fn a_damaged_cell_registry_answers_nothing_at_all() {
    for sql in [
        "UPDATE cells SET record = 'x' WHERE tenant = 'bolt'",
        "UPDATE cells SET record = json_set(record, '$.extra', 1) WHERE tenant = 'bolt'",
        "UPDATE cells SET record = json_set(record, '$.tenant_id', 'acme') WHERE tenant = 'bolt'",
        "UPDATE cells SET record = json_remove(record, '$.state') WHERE tenant = 'bolt'",
        "UPDATE cells SET record = json_set(record, '$.root', '/srv/../etc') WHERE tenant = 'bolt'",
    ] {
        let place = Place::new();
        for tenant in ["acme", "bolt"] {
            let root = format!("/srv/{tenant}");
            place
                .store()
                .create_cell(tenant, "main", Path::new(&root), None, None)
                .expect("new");
        }
        place.raw().execute(sql, []).expect("tampered");
        assert!(place.store().cells().is_err(), "{sql}");
        assert!(place.store().cell("bolt").is_err(), "{sql}");
        assert!(
            place
                .store()
                .create_cell("new", "main", Path::new("/srv/new"), None, None)
                .is_err(),
            "{sql}"
        );
    }
}

#[test]
fn a_cell_needs_canonical_names_a_plain_root_and_a_root_of_its_own() {
    let place = Place::new();
    let mut store = place.store();
    let mut make = |tenant: &str, cell: &str, root: &str| {
        store.create_cell(tenant, cell, Path::new(root), None, None)
    };
    for root in [
        "",
        "/",
        "srv",
        "/srv/../etc",
        "/srv/./a",
        "/srv//a",
        "/srv/",
    ] {
        assert!(make("acme", "main", root).is_err(), "{root:?}");
    }
    for (tenant, cell) in [
        ("Acme", "main"),
        ("..", "main"),
        ("acme", "a/b"),
        ("", "x"),
        ("acme", " x"),
    ] {
        assert!(make(tenant, cell, "/srv/a").is_err());
    }
    make("acme", "main", "/srv/a").expect("canonical");
    assert!(
        make("acme", "other", "/srv/b").is_err(),
        "one cell a tenant"
    );
    assert!(make("bolt", "main", "/srv/a").is_err(), "one tenant a root");
}

#[test]
fn the_cell_command_prints_the_record_and_a_refusal_prints_nothing_on_stdout() {
    let place = Place::new();
    let made = update(
        &place,
        &["--json", "cell", "create", "acme", "main", "/srv/acme"],
    );
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let record: serde_json::Value = serde_json::from_slice(&made.stdout).expect("JSON");
    assert_eq!(
        (&record["tenant_id"], &record["state"]),
        (&json!("acme"), &json!("created"))
    );
    for words in [
        &["--json", "cell", "create", "acme", "main", "/srv/acme"][..],
        &["--json", "cell", "transition", "acme", "healthy"],
        &["--json", "cell", "transition", "acme", "flying"],
        &["--json", "cell", "status", "nobody"],
        &["--json", "cell", "status", "../x"],
    ] {
        let refused = update(&place, words);
        assert_eq!(refused.status.code(), Some(3), "{words:?}");
        assert!(refused.stdout.is_empty(), "{words:?}");
        let error: serde_json::Value = serde_json::from_slice(&refused.stderr).expect("JSON");
        assert_eq!(error["code"], "VALIDATION_ERROR", "{words:?}");
    }
    let moved = update(
        &place,
        &["--json", "cell", "transition", "acme", "starting"],
    );
    let record: serde_json::Value = serde_json::from_slice(&moved.stdout).expect("JSON");
    assert_eq!(record["state"], "starting");
    let verified = update(&place, &["audit", "verify"]);
    assert!(verified.status.success());
    let copy = place.folder.path().join("copy");
    fs::write(&copy, update(&place, &["audit", "export"]).stdout).expect("room");
    let words = ["audit", "verify", "--file", copy.to_str().expect("a path")];
    assert!(update(&place, &words).status.success());
}
