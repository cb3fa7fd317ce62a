//! The audit chain: one, whole, and every way to tamper with it noticed.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::time::{Duration, Instant};

use fleet_update::error::Kind;
use fleet_update::state::Store;
use fleet_update::state::audit::{self, Event, HOST};
use serde_json::json;

use crate::place::{Place, event, update};

#[test]
fn eight_processes_and_twenty_four_writers_in_sixteen_threads_make_one_valid_chain() {
    let place = Place::new();
    place.children(8, "append");
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                loop {
                    let writer = next.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    if writer >= 24 {
                        return;
                    }
                    let mut store = place.store();
                    for step in 0..5 {
                        store
                            .append("test", &[event(&format!("w{writer}"), HOST, step)])
                            .expect("room");
                    }
                }
            });
        }
    });
    let chain = place.store().verify().expect("whole");
    assert_eq!(chain.events, 8 * 100 + 24 * 5);
    assert_eq!(chain.head.expect("not empty").seq, 920);
}

#[test]
fn the_first_event_follows_genesis_and_each_hash_is_that_of_its_canonical_text() {
    let place = Place::new();
    let mut store = place.store();
    store
        .append("test", &[event("r", HOST, 1), event("r", HOST, 2)])
        .expect("room");
    let mut lines = String::new();
    store
        .export(&mut |text| lines.push_str(text))
        .expect("a database");
    let mut previous = "GENESIS".to_owned();
    for line in lines.lines() {
        let (hash, text) = line.split_once(' ').expect("a hash and an event");
        assert_eq!(hash, fleet_update::digest::sha256(text.as_bytes()));
        let value: serde_json::Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(value["previous"], previous.as_str());
        assert_eq!(
            serde_jcs::to_string(&value).expect("JSON"),
            text,
            "RFC 8785"
        );
        previous = hash.to_owned();
    }
    let copy = audit::verify_copy(lines.as_bytes()).expect("whole");
    assert_eq!((copy.events, copy.head.expect("two").hash), (2, previous));
    let damaged = lines.replacen("\"number\":1", "\"number\":7", 1);
    assert!(audit::verify_copy(damaged.as_bytes()).is_err());
}

#[test]
fn every_way_to_tamper_with_the_chain_is_noticed() {
    for (how, sql) in [
        (
            "a changed payload",
            "UPDATE audit SET payload = '{\"number\":9}' WHERE seq = 3",
        ),
        (
            "a changed tenant",
            "UPDATE audit SET tenant = 'other' WHERE seq = 3",
        ),
        (
            "a changed time",
            "UPDATE audit SET at = at + 1 WHERE seq = 3",
        ),
        ("a deleted middle event", "DELETE FROM audit WHERE seq = 3"),
        ("a deleted beginning", "DELETE FROM audit WHERE seq < 3"),
        (
            "a payload that is not JSON",
            "UPDATE audit SET payload = '{number' WHERE seq = 3",
        ),
        (
            "a reordered sequence",
            "UPDATE audit SET seq = -3 WHERE seq = 3; UPDATE audit SET seq = 3 WHERE seq = 4; UPDATE audit SET seq = 4 WHERE seq = -3",
        ),
    ] {
        let place = Place::new();
        let events: Vec<Event> = (1..=5).map(|number| event("r", HOST, number)).collect();
        place.store().append("test", &events).expect("room");
        place.store().verify().expect("whole before");
        place.raw().execute_batch(sql).expect("tampered");
        let error = place.store().verify().expect_err(how);
        assert_eq!(error.kind(), Kind::Input, "{how}");
    }
}

#[test]
fn a_payload_that_is_not_json_is_noticed_even_where_its_hash_was_made_to_fit() {
    let place = Place::new();
    place
        .store()
        .append("test", &[event("r", HOST, 1)])
        .expect("room");
    let text: String = {
        let mut lines = String::new();
        place
            .store()
            .export(&mut |text| lines.push_str(text))
            .expect("a database");
        lines.trim_end()[65..].replace(r#"{"number":1}"#, "{number")
    };
    let hash = fleet_update::digest::sha256(text.as_bytes());
    place
        .raw()
        .execute("UPDATE audit SET payload = '{number', hash = ?1", [hash])
        .expect("tampered");
    assert!(
        place
            .store()
            .verify()
            .expect_err("broken")
            .to_string()
            .contains("not JSON")
    );
}

#[test]
fn a_deleted_tail_is_noticed_by_the_head_that_a_receipt_names_and_later_events_are_not() {
    let place = Place::new();
    let mut store = place.store();
    let head = store
        .append("test", &[event("r", HOST, 1), event("r", HOST, 2)])
        .expect("room")
        .expect("two");
    store.append("test", &[event("r", HOST, 3)]).expect("room");
    assert!(store.verify().expect("whole").has(&head.hash));
    place
        .raw()
        .execute("DELETE FROM audit WHERE seq >= 2", [])
        .expect("tampered");
    let chain = place.store().verify().expect("whole as far as it goes");
    assert!(!chain.has(&head.hash));
}

#[test]
fn numbers_are_exact_integers_and_bad_identifiers_are_rejected() {
    let place = Place::new();
    let mut store = place.store();
    let with = |payload| Event {
        payload,
        ..event("r", HOST, 1)
    };
    for bad in [
        json!({"a": 1.5}),
        json!([9_007_199_254_740_993_u64]),
        json!({"a": {"b": 1e3}}),
    ] {
        assert!(store.append("test", &[with(bad)]).is_err());
    }
    for bad in [
        "",
        ".",
        "..",
        " x",
        "x ",
        "a/b",
        "ä",
        "-a",
        "a\n",
        &"x".repeat(129),
    ] {
        assert!(
            store
                .append(
                    "test",
                    &[Event {
                        run: bad.into(),
                        ..event("r", HOST, 1)
                    }]
                )
                .is_err(),
            "{bad:?}"
        );
        assert!(
            store
                .append(
                    "test",
                    &[Event {
                        tenant: bad.into(),
                        ..event("r", HOST, 1)
                    }]
                )
                .is_err(),
            "{bad:?}"
        );
    }
    assert!(
        store.append("test", &[event("r", "Acme", 1)]).is_err(),
        "tenants are lower case"
    );
    assert_eq!(
        store.verify().expect("whole").events,
        0,
        "nothing of it was admitted"
    );
}

#[test]
fn equal_payloads_of_two_tenants_have_different_hashes() {
    let (one, other) = (Place::new(), Place::new());
    let head = |place: &Place, tenant| {
        place
            .store()
            .append("test", &[event("r", tenant, 1)])
            .expect("room")
            .expect("one")
            .hash
    };
    assert_ne!(head(&one, "acme"), head(&other, "bolt"));
}

#[test]
fn payloads_that_are_not_ascii_verify_after_a_restart() {
    let place = Place::new();
    let payload = json!({"größe": "µ – 漢字 🦀 \u{7f} \" \\ \u{1}", "\u{e000}": 1, "🦀": 2});
    place
        .store()
        .append(
            "test",
            &[Event {
                payload,
                ..event("r", HOST, 1)
            }],
        )
        .expect("room");
    assert_eq!(place.store().verify().expect("whole").events, 1);
}

#[test]
fn events_older_than_the_limit_are_cut_at_a_checkpoint_that_vouches_for_the_new_beginning() {
    let place = Place::new();
    let mut store = place.store();
    let old: Vec<Event> = (1..=9).map(|number| event("old", HOST, number)).collect();
    let head = store.append("test", &old).expect("room").expect("nine");
    std::thread::sleep(Duration::from_millis(5));
    let limit = audit::millis(fleet_update::world::now());
    std::thread::sleep(Duration::from_millis(5));
    store
        .append("test", &[event("new", HOST, 1)])
        .expect("room");
    store.cut("new", limit).expect("room");
    let chain = store.verify().expect("whole");
    assert_eq!(
        (chain.first, chain.events, chain.cut_before),
        (10, 2, Some(limit))
    );
    assert!(!chain.has(&head.hash));
    // A second cut, of the first checkpoint's own past, and an illicit one.
    store
        .append("test", &[event("newer", HOST, 1)])
        .expect("room");
    assert!(store.cut("new", limit).expect("nothing to do").is_none());
    place
        .raw()
        .execute("DELETE FROM audit WHERE seq = 10", [])
        .expect("tampered");
    assert!(place.store().verify().is_err());
}

#[test]
fn a_file_that_is_not_a_database_is_audit_storage_unavailable_and_nothing_more() {
    let place = Place::new();
    fs::create_dir(place.dir()).expect("new");
    fs::set_permissions(place.dir(), fs::Permissions::from_mode(0o700)).expect("ours");
    let secret = "password hunter2 ".repeat(100);
    fs::write(Store::path(&place.dir()), &secret).expect("new");
    fs::set_permissions(Store::path(&place.dir()), fs::Permissions::from_mode(0o600))
        .expect("ours");
    let error = Store::open(&place.world, &place.dir()).expect_err("not a database");
    assert_eq!(error.to_string(), "audit storage unavailable");
    assert_eq!(error.kind().exit_status(), 3);
    assert_eq!(error.hint(), None);
    assert_eq!(
        fs::read_to_string(Store::path(&place.dir())).expect("left alone"),
        secret
    );
}

#[test]
fn the_database_is_0600_in_a_0700_folder_whatever_the_umask() {
    let place = Place::new();
    let mut store = place.store();
    store.append("test", &[event("r", HOST, 1)]).expect("room");
    assert_eq!(
        fs::metadata(place.dir()).expect("made").mode() & 0o7777,
        0o700
    );
    let mut seen = 0;
    for entry in fs::read_dir(place.dir()).expect("a folder") {
        let entry = entry.expect("an entry");
        assert_eq!(
            entry.metadata().expect("there").mode() & 0o7777,
            0o600,
            "{:?}",
            entry.file_name()
        );
        seen += 1;
    }
    assert!(seen >= 2, "the log is there, too");
    drop(store);
    fs::set_permissions(Store::path(&place.dir()), fs::Permissions::from_mode(0o644))
        .expect("ours");
    assert_eq!(
        Store::open(&place.world, &place.dir())
            .expect_err("refused")
            .kind(),
        Kind::Refused
    );
}

#[test]
fn a_hundred_thousand_events_verify_within_a_second() {
    let place = Place::new();
    let mut store = place.store();
    for run in 0..100 {
        let events: Vec<Event> = (0..1000)
            .map(|number| Event {
                kind: "home-committed".into(),
                payload: json!({"home": format!("h{number}"), "outcome": "migrated", "from": "12", "to": 33,
                    "files": [{"path": "config.yaml", "before": "b".repeat(64), "after": "a".repeat(64)}]}),
                ..event(&format!("run-{run}"), "acme", number)
            })
            .collect();
        store.append("test", &events).expect("room");
    }
    let start = Instant::now();
    assert_eq!(store.verify().expect("whole").events, 100_000);
    let took = start.elapsed();
    println!("100,000 events verified in {took:?}");
    // Without optimisation the same work takes several times as long.
    let limit = Duration::from_secs(if cfg!(debug_assertions) { 8 } else { 1 });
    assert!(took < limit, "{took:?}");
}

#[test]
fn the_commands_say_of_a_file_that_is_no_database_that_the_storage_is_unavailable_and_end_with_3() {
    let place = Place::new();
    drop(place.store());
    for log in ["state.db-wal", "state.db-shm"] {
        let _ = fs::remove_file(place.dir().join(log));
    }
    fs::write(Store::path(&place.dir()), "hunter2 ".repeat(1000)).expect("ours");
    for words in [
        &["audit", "verify"][..],
        &["audit", "export"],
        &["cell", "list"],
        &["cell", "status", "acme"],
    ] {
        let output = update(&place, words);
        assert_eq!(output.status.code(), Some(3), "{words:?}");
        assert!(output.stdout.is_empty(), "{words:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said, "update: audit storage unavailable\n", "{words:?}");
    }
}
