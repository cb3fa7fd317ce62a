//! Our own state, from outside: what the contracts say of the audit chain, cells, jobs, requests, scopes and
//! secret references, a test a sentence. Where processes are named they are processes, started by a barrier.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, prints what it counted, and starts processes"
)]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use fleet_update::error::Kind;
use fleet_update::state::audit::{self, Event, HOST};
use fleet_update::state::cells::CellState;
use fleet_update::state::jobs::{self, JobState, Origin, Work};
use fleet_update::state::requests::{self, Admission, Request};
use fleet_update::state::scope::{self, Scope};
use fleet_update::state::secret::{self, Broker, Purpose, Reference, Secret};
use fleet_update::state::{Lock, State, Store};
use fleet_update::world::World;
use serde_json::json;
use tempfile::TempDir;

struct Place {
    folder: TempDir,
    world: World,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("state-")
            .tempdir()
            .expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).expect("ours");
        Self {
            folder,
            world: World::read().expect("this machine has /proc"),
        }
    }

    fn dir(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn store(&self) -> Store {
        Store::open(&self.world, &self.dir()).expect("a database")
    }

    /// The database, for tampering.
    fn raw(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(Store::path(&self.dir())).expect("a database")
    }

    /// Starts `count` children that do `work`, lets them go at once, and waits for what they print.
    fn children(&self, count: usize, work: &str) -> Vec<String> {
        let mut children: Vec<Child> = (0..count)
            .map(|number| {
                Command::new(std::env::current_exe().expect("ourselves"))
                    .args(["--exact", "child", "--nocapture", "--test-threads=1"])
                    .env("STATE_CHILD", work)
                    .env("STATE_DIR", self.dir())
                    .env("STATE_NUMBER", number.to_string())
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::null())
                    .spawn()
                    .expect("a child")
            })
            .collect();
        let mut outputs: Vec<_> = children
            .iter_mut()
            .map(|child| {
                let mut output = BufReader::new(child.stdout.take().expect("piped"));
                let mut line = String::new();
                while !line.contains("READY") {
                    line.clear();
                    assert!(
                        output.read_line(&mut line).expect("a child speaks") > 0,
                        "it ended early"
                    );
                }
                output
            })
            .collect();
        // The barrier: all of them are there, and wait for the end of their input.
        children
            .iter_mut()
            .for_each(|child| drop(child.stdin.take()));
        let said = outputs
            .iter_mut()
            .map(|output| {
                let mut text = String::new();
                output.read_to_string(&mut text).expect("a child speaks");
                text.lines()
                    .find_map(|line| line.split_once("SAYS "))
                    .map_or(String::new(), |(_, said)| said.into())
            })
            .collect();
        for mut child in children {
            assert!(child.wait().expect("a child ends").success());
        }
        said
    }
}

fn event(run: &str, tenant: &str, number: u64) -> Event {
    Event {
        run: run.into(),
        tenant: tenant.into(),
        kind: "test".into(),
        payload: json!({"number": number}),
    }
}

fn profile() -> Scope {
    Scope::Profile("acme".into(), "main".into(), "work".into())
}

fn work(event: &str) -> Work {
    Work {
        event: event.into(),
        stage: "migrate".into(),
        subject: "home-1".into(),
        scope: profile(),
    }
}

/// Not a test: what the children of the others do.
#[test]
fn child() {
    let Ok(task) = std::env::var("STATE_CHILD") else {
        return;
    };
    let dir = PathBuf::from(std::env::var_os("STATE_DIR").expect("told"));
    let number: u64 = std::env::var("STATE_NUMBER")
        .expect("told")
        .parse()
        .expect("a number");
    let world = World::read().expect("this machine has /proc");
    println!("\nREADY");
    let _ = std::io::stdin().read_to_string(&mut String::new());
    let mut store = Store::open(&world, &dir).expect("a database");
    let worker = jobs::worker(&world).expect("we live");
    let said = match task.as_str() {
        "append" => {
            for step in 0..100 {
                let event = event(&format!("run-{number}"), HOST, step);
                store.append("test", &[event]).expect("room");
            }
            String::new()
        }
        "cell-each" => {
            let root = format!("/srv/{number}");
            let made =
                store.create_cell(&format!("t{number}"), "main", Path::new(&root), None, None);
            made.is_ok().to_string()
        }
        "cell-one" => {
            let root = format!("/srv/one/{number}");
            store
                .create_cell("acme", &format!("c{number}"), Path::new(&root), None, None)
                .is_ok()
                .to_string()
        }
        "queue" => store
            .queue(Origin::Request, &[work("request-1")])
            .is_ok()
            .to_string(),
        "claim" => {
            let job = store.claim(1, &profile(), &worker).expect("a database");
            // Stays alive until all have tried: a dead winner would be reaped by nobody, but is not the point.
            job.map_or("none".into(), |job| format!("{:?}", job.state))
        }
        other => panic!("no child does {other}"),
    };
    println!("\nSAYS {said}");
}

fn count(said: &[String], word: &str) -> usize {
    said.iter().filter(|said| *said == word).count()
}

// ---- audit chain

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

// ---- cells

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

fn update(place: &Place, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_update"))
        .args(words)
        .arg("--state-dir")
        .arg(place.dir())
        .env_clear()
        .env("LANG", "C.UTF-8")
        .stdin(Stdio::null())
        .output()
        .expect("the program")
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

// ---- jobs

#[test]
fn of_sixteen_claimants_one_wins_and_of_sixteen_duplicates_one_is_queued() {
    let place = Place::new();
    assert_eq!(count(&place.children(16, "queue"), "true"), 1);
    let said = place.children(16, "claim");
    assert_eq!(
        (count(&said, "Running"), count(&said, "none")),
        (1, 15),
        "{said:?}"
    );
    assert_eq!(
        place
            .store()
            .job(1)
            .expect("a database")
            .expect("queued")
            .state,
        JobState::Running
    );
}

#[test]
fn a_claim_is_scoped_exactly_and_takes_only_what_is_queued() {
    let place = Place::new();
    let mut store = place.store();
    let id = store.queue(Origin::Command, &[work("r1")]).expect("room")[0];
    for other in [
        Scope::Tenant("acme".into()),
        Scope::Cell("acme".into(), "main".into()),
        Scope::Profile("acme".into(), "main".into(), "worK".into()),
        Scope::Profile("bolt".into(), "main".into(), "work".into()),
    ] {
        assert!(
            store.claim(id, &other, "w").expect("a database").is_none(),
            "{}",
            other.name()
        );
    }
    for end in [JobState::Completed, JobState::Failed, JobState::Cancelled] {
        let id = store
            .queue(Origin::Command, &[work(&format!("{end:?}"))])
            .expect("room")[0];
        let job = store
            .claim(id, &profile(), "w")
            .expect("a database")
            .expect("queued");
        assert_eq!(job.state, JobState::Running);
        assert!(
            store
                .claim(id, &profile(), "w")
                .expect("a database")
                .is_none(),
            "running"
        );
        store.finish(id, job.attempt, end).expect("ours");
        assert!(
            store
                .claim(id, &profile(), "w")
                .expect("a database")
                .is_none(),
            "{end:?}"
        );
    }
}

#[test]
fn only_a_request_or_the_local_command_makes_a_job() {
    let place = Place::new();
    let mut store = place.store();
    for origin in [Origin::Heartbeat, Origin::Service, Origin::Internal] {
        assert_eq!(
            store
                .queue(origin, &[work("e")])
                .expect_err("refused")
                .kind(),
            Kind::Denied
        );
    }
    assert!(store.queue(Origin::Request, &[work("e")]).is_ok());
    let error = store
        .queue(Origin::Command, &[work("new"), work("e")])
        .expect_err("a duplicate");
    assert!(error.to_string().starts_with("conflict"), "{error}");
    assert_eq!(
        store.open_jobs().expect("a database").len(),
        1,
        "all of it or nothing"
    );
}

#[test]
fn the_reaper_gives_back_the_jobs_of_the_dead_and_an_old_attempt_cannot_finish_them() {
    let place = Place::new();
    let mut store = place.store();
    let ids = store
        .queue(Origin::Command, &[work("a"), work("b")])
        .expect("room");
    let us = jobs::worker(&place.world).expect("we live");
    // The same pid with another start is another process: it is gone.
    let gone = us
        .rsplit_once(':')
        .map(|(start, _)| format!("{start}:1"))
        .expect("three parts");
    store
        .claim(ids[0], &profile(), &gone)
        .expect("a database")
        .expect("queued");
    store
        .claim(ids[1], &profile(), &us)
        .expect("a database")
        .expect("queued");
    assert_eq!(store.reap(&place.world).expect("a database"), 1);
    let job = store.job(ids[0]).expect("a database").expect("there");
    assert_eq!(
        (job.state, job.attempt, job.worker),
        (JobState::Queued, 1, None)
    );
    assert_eq!(
        store.job(ids[1]).expect("a database").expect("there").state,
        JobState::Running
    );
    let again = store
        .claim(ids[0], &profile(), &us)
        .expect("a database")
        .expect("queued");
    let error = store
        .finish(ids[0], 0, JobState::Completed)
        .expect_err("an older attempt");
    assert_eq!(error.kind(), Kind::Denied);
    store
        .finish(ids[0], again.attempt, JobState::Completed)
        .expect("ours");
}

// ---- requests

fn answered(store: &mut Store, request: &Request) {
    let admission = store
        .admit(&World::read().expect("proc"), request, "run-1", "w")
        .expect("new");
    assert_eq!(admission, Admission::New);
    store
        .change("test", |transaction| {
            requests::answer(transaction, request, b"{\"a\": 1}\n", 1)
        })
        .expect("room");
}

#[test]
fn the_same_request_again_gets_the_first_receipt_and_other_content_is_a_conflict() {
    let place = Place::new();
    let mut store = place.store();
    let request = Request::new("deploy-7", &json!({"restart": "stale"})).expect("canonical");
    answered(&mut store, &request);
    let again = store
        .admit(&place.world, &request, "run-2", "w")
        .expect("known");
    assert_eq!(
        again,
        Admission::Done {
            run: "run-1".into(),
            receipt: b"{\"a\": 1}\n".to_vec(),
            exit_status: 1
        }
    );
    let other = Request::new("deploy-7", &json!({"restart": "always"})).expect("canonical");
    let error = store
        .admit(&place.world, &other, "run-3", "w")
        .expect_err("a conflict");
    assert_eq!(error.kind().exit_status(), 3);
    assert!(store.check_request(&other).is_err());
    for near in ["Deploy-7", "deploy-70", "deploy"] {
        let near = Request::new(near, &json!({"restart": "always"})).expect("canonical");
        assert_eq!(
            store
                .admit(&place.world, &near, "r", "w")
                .expect("another name"),
            Admission::New
        );
    }
    assert!(Request::new("deploy 7", &json!({})).is_err());
    drop(store);
    let later = place
        .store()
        .admit(&place.world, &request, "run-9", "w")
        .expect("survives a restart");
    assert!(matches!(later, Admission::Done { .. }));
}

#[test]
fn a_request_whose_run_was_killed_is_admitted_again_and_one_at_work_is_waited_for() {
    let place = Place::new();
    let mut store = place.store();
    let request = Request::new("deploy-7", &json!({})).expect("canonical");
    let us = jobs::worker(&place.world).expect("we live");
    store
        .admit(&place.world, &request, "run-1", "elsewhere:1:1")
        .expect("new");
    assert_eq!(
        store
            .admit(&place.world, &request, "run-2", &us)
            .expect("its run is gone"),
        Admission::New
    );
    assert_eq!(
        store
            .admit(&place.world, &request, "run-3", "w")
            .expect_err("at work")
            .kind(),
        Kind::Locked
    );
    store.withdraw(&request).expect("room");
    assert_eq!(
        store
            .admit(&place.world, &request, "run-4", &us)
            .expect("forgotten"),
        Admission::New
    );
}

#[test]
fn answered_requests_are_purged_after_their_time_and_open_ones_are_not() {
    let place = Place::new();
    let mut store = place.store();
    for id in ["old", "young"] {
        answered(
            &mut store,
            &Request::new(id, &json!({})).expect("canonical"),
        );
    }
    let open = Request::new("open", &json!({})).expect("canonical");
    store
        .admit(&place.world, &open, "r", "elsewhere:1:1")
        .expect("new");
    let past = audit::millis(fleet_update::world::now()) - 8 * 24 * 3600 * 1000;
    place
        .raw()
        .execute(
            "UPDATE requests SET finished_at = ?1 WHERE id = 'old'",
            [past],
        )
        .expect("ours");
    place
        .raw()
        .execute(
            "UPDATE requests SET admitted_at = ?1 WHERE id = 'open'",
            [past],
        )
        .expect("ours");
    assert_eq!(store.purge_requests(requests::KEPT_DAYS).expect("room"), 1);
}

// ---- scopes

#[test]
fn access_to_any_other_scope_is_refused_and_what_is_shared_is_read_only() {
    let own = |t: &str, c: &str, p: &str| Scope::Profile(t.into(), c.into(), p.into());
    let mine = own("acme", "main", "work");
    for other in [
        own("bolt", "main", "work"),
        own("acme", "other", "work"),
        own("acme", "main", "play"),
        Scope::Cell("acme".into(), "main".into()),
        Scope::Tenant("acme".into()),
        Scope::Session("acme".into(), "main".into(), "work".into(), "s1".into()),
    ] {
        assert!(
            mine.may_read(&other).is_err() && mine.may_write(&other).is_err(),
            "{}",
            other.name()
        );
        assert!(
            other.may_read(&mine).is_err() && other.may_write(&mine).is_err(),
            "{}",
            other.name()
        );
        assert_eq!(Scope::parse(&other.name()).expect("canonical"), other);
    }
    assert!(mine.may_read(&mine).is_ok() && mine.may_write(&mine).is_ok());
    assert!(mine.may_read(&Scope::Shared).is_ok());
    assert!(
        mine.may_write(&Scope::Shared).is_err() && Scope::Shared.may_write(&Scope::Shared).is_err()
    );
    assert!(Scope::Shared.may_read(&mine).is_err());
}

#[test]
fn a_key_or_scope_that_is_not_canonical_is_refused() {
    for key in [
        "../x", "a/b", " x", "x ", "x?y", "", ".", "..", "x#y", "ä", "x\0",
    ] {
        assert!(profile().thing("snapshot", key).is_err(), "{key:?}");
        assert!(scope::identifier("key", key).is_err(), "{key:?}");
    }
    assert_eq!(
        profile().thing("snapshot", "run-1").expect("canonical"),
        "tenant/acme/cell/main/profile/work/snapshot/run-1"
    );
    for name in [
        "",
        "/",
        "tenant",
        "tenant/",
        "tenant/Acme",
        "tenant/acme/",
        "tenant/acme/profile/p",
        "tenant/a/cell/..",
        "/tenant/a",
        "tenant//cell/c",
        "tenant/a/cell/c/profile/p/x/y",
    ] {
        assert!(Scope::parse(name).is_err(), "{name:?}");
    }
}

#[test]
fn a_rollback_of_one_profile_cannot_read_the_snapshot_of_another() {
    use fleet_update::state::snapshots::Copied;
    let place = Place::new();
    let state = State::at(&place.dir());
    let lock = Lock::take(
        &place.world,
        &place.folder.path().join("run/lock"),
        "r",
        Duration::ZERO,
    )
    .expect("free");
    state.prepare(&place.world, &lock).expect("new");
    let mut pack = state.start_pack(&place.world, "r", &lock).expect("new");
    let scope = profile();
    let copied = Copied {
        home: "h",
        scope: &scope,
        folder: Path::new("/h"),
        version: Some("12"),
        path: "config.yaml",
        bytes: Some(b"a: 1\n"),
        sha256_after: "",
        mode: 0o600,
        owner: (0, 0),
    };
    pack.add(copied).expect("room");
    let entries = pack.finish().expect("durable");
    assert_eq!(entries[0].scope, "tenant/acme/cell/main/profile/work");
    assert!(state.pack_bytes("r", &entries[0], &scope).is_ok());
    let other = Scope::Profile("acme".into(), "main".into(), "play".into());
    assert_eq!(
        state
            .pack_bytes("r", &entries[0], &other)
            .expect_err("another's")
            .kind(),
        Kind::Denied
    );
}

// ---- secret references

const REFERENCE: &str = "secret://acme/main/channel/bot-token/v3";

#[test]
fn a_secret_reference_is_canonical_or_refused() {
    assert_eq!(
        Reference::parse(REFERENCE).expect("canonical").to_string(),
        REFERENCE
    );
    for bad in [
        "",
        "secret://",
        "http://acme/main/channel/bot/v3",
        "SECRET://acme/main/channel/bot/v3",
        "secret://acme/main/channel/bot/v3?x=1",
        "secret://acme/main/channel/bot/v3#x",
        "secret://acme/main/channel/b\\t/v3",
        "secret://acme//channel/bot/v3",
        "secret://acme/./channel/bot/v3",
        "secret://acme/../channel/bot/v3",
        "secret://acme/main/channel/bot",
        "secret://acme/main/channel/bot/v3/",
        "secret://acme/main/password/bot/v3",
        "secret://Acme/main/channel/bot/v3",
        " secret://acme/main/channel/bot/v3",
        "hunter2",
    ] {
        let error = Reference::parse(bad).expect_err(bad).to_string();
        assert!(
            bad.is_empty() || !error.contains(bad),
            "a value is not repeated: {error}"
        );
    }
}

#[test]
fn brokers_give_a_value_or_say_nothing_but_that_they_cannot() {
    let place = Place::new();
    let folder = place.folder.path().join("secrets");
    fs::create_dir(&folder).expect("new");
    let reference = Reference::parse(REFERENCE).expect("canonical");
    let file = folder.join(reference.file_name());
    let brokers = [Broker::Files(folder.clone())];
    let asked = ("acme", "main", Purpose::Channel);
    let ask = |brokers: &[Broker], asked| secret::resolve(&place.world, brokers, &reference, asked);
    let unavailable = |result: Result<Secret, fleet_update::error::Error>, why: &str| {
        let error = result.map(|_| ()).expect_err(why);
        assert_eq!(error.to_string(), "secret broker unavailable", "{why}");
    };
    unavailable(ask(&[], asked), "no broker");
    unavailable(ask(&brokers, asked), "no file");
    fs::write(&file, "s3cr3t\n").expect("new");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("ours");
    unavailable(ask(&brokers, asked), "a file that others read");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("ours");
    assert_eq!(ask(&brokers, asked).expect("there").expose(), b"s3cr3t");
    unavailable(
        ask(&brokers, ("acme", "main", Purpose::Model)),
        "another purpose",
    );
    for scope in [
        ("bolt", "main", Purpose::Channel),
        ("acme", "other", Purpose::Channel),
    ] {
        assert_eq!(
            ask(&brokers, scope)
                .map(|_| ())
                .expect_err("another scope")
                .kind(),
            Kind::Denied
        );
    }
    for (why, bytes) in [
        ("empty", &b""[..]),
        ("only a line end", b"\n"),
        ("not text", b"\xff\xfe"),
    ] {
        fs::write(&file, bytes).expect("ours");
        unavailable(ask(&brokers, asked), why);
    }
    fs::remove_file(&file).expect("ours");
    std::os::unix::fs::symlink("/etc/hostname", &file).expect("new");
    unavailable(ask(&brokers, asked), "a link");
    fs::remove_file(&file).expect("ours");
    fs::create_dir(&file).expect("new");
    unavailable(ask(&brokers, asked), "a folder");
    // The service manager's credentials go first.
    let credentials = place.folder.path().join("credentials");
    fs::create_dir(&credentials).expect("new");
    fs::write(credentials.join(reference.file_name()), "from systemd").expect("new");
    fs::set_permissions(
        credentials.join(reference.file_name()),
        fs::Permissions::from_mode(0o400),
    )
    .expect("ours");
    let mut world = place.world.clone();
    world
        .env
        .insert("CREDENTIALS_DIRECTORY".into(), credentials.into());
    let brokers = Broker::all(&world, Some(&folder));
    assert_eq!(
        secret::resolve(&world, &brokers, &reference, asked)
            .expect("there")
            .expose(),
        b"from systemd"
    );
}

#[test]
fn a_secret_has_no_debug_text() {
    // Compiles only while `Secret` is not `Debug`: else the call could mean either.
    trait Silent<Marker> {
        fn silent() {}
    }
    impl<T: ?Sized> Silent<()> for T {}
    struct Speaks;
    impl<T: ?Sized + std::fmt::Debug> Silent<Speaks> for T {}
    let _: fn() = <Secret as Silent<_>>::silent;
    struct Prints;
    impl<T: ?Sized + std::fmt::Display> Silent<Prints> for (T,) where (T,): Sized {}
}

// ---- schema

#[test]
fn an_older_schema_is_brought_forward_after_a_backup_and_keeps_what_it_holds() {
    let place = Place::new();
    fs::create_dir(place.dir()).expect("new");
    fs::set_permissions(place.dir(), fs::Permissions::from_mode(0o700)).expect("ours");
    let fixture = include_str!("fixtures/state/schema-1.sql");
    place.raw().execute_batch(fixture).expect("a fixture");
    fs::set_permissions(Store::path(&place.dir()), fs::Permissions::from_mode(0o600))
        .expect("ours");
    let mut store = place.store();
    assert_eq!(store.verify().expect("whole").events, 2);
    assert_eq!(store.cell("acme").expect("kept").cell_id, "main");
    store
        .queue(Origin::Command, &[work("r")])
        .expect("the new tables are there");
    let backup = place.dir().join("state.db.schema-1");
    assert_eq!(
        fs::metadata(&backup).expect("a backup").mode() & 0o7777,
        0o600
    );
    let old = rusqlite::Connection::open(&backup).expect("a database");
    let schema: i64 = old
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .expect("a schema");
    assert_eq!(schema, 1);
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
    fs::create_dir(place.dir()).expect("new");
    fs::set_permissions(place.dir(), fs::Permissions::from_mode(0o700)).expect("ours");
    place
        .raw()
        .execute_batch("CREATE TABLE notes (text TEXT)")
        .expect("another's");
    fs::set_permissions(Store::path(&place.dir()), fs::Permissions::from_mode(0o600))
        .expect("ours");
    let error = Store::open(&place.world, &place.dir()).expect_err("another's");
    assert_eq!(error.to_string(), "audit storage unavailable");
}

// ---- retention

#[test]
fn snapshots_are_kept_by_count_and_age_and_the_last_good_one_always() {
    use fleet_update::state::snapshots::Copied;
    let place = Place::new();
    let state = State::at(&place.dir());
    let lock = Lock::take(
        &place.world,
        &place.folder.path().join("run/lock"),
        "r",
        Duration::ZERO,
    )
    .expect("free");
    state.prepare(&place.world, &lock).expect("new");
    let scope = profile();
    let ids: Vec<String> = (1..=6).map(|number| format!("run-{number}")).collect();
    for id in &ids {
        let mut pack = state.start_pack(&place.world, id, &lock).expect("new");
        let copied = Copied {
            home: "h",
            scope: &scope,
            folder: Path::new("/h"),
            version: None,
            path: "c",
            bytes: Some(b"x"),
            sha256_after: "",
            mode: 0o600,
            owner: (0, 0),
        };
        pack.add(copied).expect("room");
        pack.finish().expect("durable");
    }
    // One that a killed run left without an index.
    drop(state.start_pack(&place.world, "run-7", &lock).expect("new"));
    let newest_first: Vec<String> = ids.iter().rev().cloned().collect();
    let good = [ids[1].clone()].into();
    let left = || {
        let mut left: Vec<String> = fs::read_dir(place.dir().join("snapshots"))
            .expect("a folder")
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .into_string()
                    .expect("text")
            })
            .collect();
        left.sort();
        left
    };
    state
        .prune_packs((Some(3), None), &newest_first, &good, &lock)
        .expect("ours");
    assert_eq!(left(), ["run-2", "run-4", "run-5", "run-6"]);
    state
        .prune_packs((None, Some(Duration::ZERO)), &newest_first, &good, &lock)
        .expect("ours");
    assert_eq!(left(), ["run-2"], "never the last good one");
}
