//! The formats of our own state: each that was released is read, and a newer one is left alone.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use fleet_update::error::Kind;
use fleet_update::state::cells::CellState;
use fleet_update::state::jobs::{JobState, Origin};
use fleet_update::state::requests::{Admission, Request};
use fleet_update::state::{State, Store};
use serde_json::json;

use crate::place::{Place, profile, work};

/// A state folder that holds the database of a released schema, if there is such a fixture.
fn released(schema: i64) -> Option<Place> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/state");
    let fixture = fs::read_to_string(folder.join(format!("schema-{schema}.sql"))).ok()?;
    let place = Place::new();
    private_dir(&place);
    place.raw().execute_batch(&fixture).expect("a fixture");
    fs::set_permissions(Store::path(&place.dir()), fs::Permissions::from_mode(0o600))
        .expect("ours");
    Some(place)
}

fn private_dir(place: &Place) {
    fs::create_dir(place.dir()).expect("new");
    fs::set_permissions(place.dir(), fs::Permissions::from_mode(0o700)).expect("ours");
}

fn schema_of(path: &Path) -> i64 {
    rusqlite::Connection::open(path)
        .and_then(|database| database.pragma_query_value(None, "user_version", |row| row.get(0)))
        .expect("a database")
}

/// The schema that this release writes.
fn newest() -> i64 {
    let place = Place::new();
    drop(place.store());
    schema_of(&Store::path(&place.dir()))
}

#[test]
fn every_released_schema_is_brought_forward_after_a_backup_and_keeps_what_it_holds() {
    for schema in 1..=newest() {
        let place = released(schema).unwrap_or_else(|| panic!("schema {schema} has no fixture"));
        let mut store = place.store();
        assert_eq!(store.verify().expect("whole").events, 2, "{schema}");
        let cell = store.cell("acme").expect("kept");
        assert_eq!((&*cell.cell_id, cell.state), ("main", CellState::Created));
        store
            .queue(Origin::Command, &[work("r")])
            .expect("the newest tables are there");
        let backup = place.dir().join(format!("state.db.schema-{schema}"));
        assert_eq!(backup.exists(), schema < newest(), "{schema}");
        if backup.exists() {
            let mode = fs::metadata(&backup).expect("a backup").mode() & 0o7777;
            assert_eq!((mode, schema_of(&backup)), (0o600, schema));
        }
        drop(store);
        assert_eq!(schema_of(&Store::path(&place.dir())), newest());
    }
}

#[test]
fn what_schema_2_holds_of_jobs_and_requests_is_used_as_it_was_left() {
    let place = released(2).expect("a fixture");
    let mut store = place.store();
    assert_eq!(store.reap(&place.world).expect("a database"), 1);
    let job = store.job(1).expect("a database").expect("kept");
    assert_eq!((job.state, job.attempt), (JobState::Queued, 1));
    let request = Request::new("deploy-7", &json!({})).expect("canonical");
    let answer = store.admit(&place.world, &request, "r", "w");
    assert_eq!(
        answer.expect("known"),
        Admission::Done {
            run: "0197f0a0-0000-7000-8000-000000000001".into(),
            receipt: b"{}\n".to_vec(),
            exit_status: 0
        }
    );
}

#[test]
fn without_a_backup_nothing_is_brought_forward() {
    let place = released(1).expect("a fixture");
    // What cannot be replaced by a file.
    fs::create_dir_all(place.dir().join("state.db.schema-1/x")).expect("ours");
    let error = Store::open(&place.world, &place.dir()).expect_err("no backup");
    assert_eq!(error.kind().exit_status(), 3, "{error}");
    assert_eq!(schema_of(&Store::path(&place.dir())), 1);
    fs::remove_dir_all(place.dir().join("state.db.schema-1")).expect("ours");
    assert_eq!(place.store().verify().expect("whole").events, 2);
}

#[test]
fn a_pack_of_every_released_format_is_read_and_a_newer_one_is_refused() {
    let place = Place::new();
    private_dir(&place);
    let state = State::at(&place.dir());
    let pack = place.dir().join("snapshots/run-1");
    fs::create_dir_all(&pack).expect("new");
    let entry = json!({"home": "h", "path": "config.yaml", "offset": 0, "length": 5,
        "sha256": fleet_update::digest::sha256(b"a: 1\n"), "mode": 384, "uid": 0, "gid": 0});
    let scope = profile();
    let mut scoped = entry.clone();
    scoped["scope"] = scope.name().into();
    fs::write(pack.join("data"), "a: 1\n").expect("new");
    for (index, is_mine) in [
        (json!([entry]), false),
        (json!({"schema": 2, "entries": [scoped]}), true),
    ] {
        fs::write(pack.join("index.json"), index.to_string()).expect("ours");
        let entries = state.pack_index("run-1").expect("known");
        assert_eq!((entries.len(), entries[0].length), (1, 5));
        // The first format knew no scopes: what it holds is nobody's to read.
        let bytes = state.pack_bytes("run-1", &entries[0], &scope);
        assert_eq!(bytes.is_ok(), is_mine, "{index}");
    }
    let newer = json!({"schema": 99, "entries": []}).to_string();
    fs::write(pack.join("index.json"), &newer).expect("ours");
    let error = state.pack_index("run-1").expect_err("newer");
    assert_eq!(error.kind(), Kind::Refused);
    for damaged in ["", "{}", "[1]", "{\"schema\": 2}"] {
        fs::write(pack.join("index.json"), damaged).expect("ours");
        let error = state.pack_index("run-1").expect_err(damaged);
        assert_eq!(error.kind(), Kind::Input, "{damaged}");
    }
}

#[test]
fn a_newer_schema_is_refused_and_left_alone() {
    let place = Place::new();
    drop(place.store());
    place
        .raw()
        .pragma_update(None, "user_version", 99)
        .expect("ours");
    let before = fs::read(Store::path(&place.dir())).expect("there");
    let error = Store::open(&place.world, &place.dir()).expect_err("newer");
    assert_eq!(error.kind().exit_status(), 4);
    assert_eq!(fs::read(Store::path(&place.dir())).expect("there"), before);
}

#[test]
fn the_database_of_another_program_is_not_taken_for_ours() {
    let place = Place::new();
    private_dir(&place);
    place
        .raw()
        .execute_batch("CREATE TABLE notes (text TEXT)")
        .expect("another's");
    fs::set_permissions(Store::path(&place.dir()), fs::Permissions::from_mode(0o600))
        .expect("ours");
    let error = Store::open(&place.world, &place.dir()).expect_err("another's");
    assert_eq!(error.to_string(), "audit storage unavailable");
}
