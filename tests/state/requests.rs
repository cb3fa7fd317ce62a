//! Requests: a name stands for one run.

use fleet_update::error::Kind;
use fleet_update::state::requests::{self, Admission, Request};
use fleet_update::state::{Store, audit, jobs};
use fleet_update::world::World;
use serde_json::json;

use crate::place::Place;

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

#[test]
fn a_write_that_fails_midway_admits_nothing_and_says_nothing_of_the_drivers() {
    let place = Place::new();
    let request = Request::new("deploy-7", &json!({})).expect("canonical");
    drop(place.store());
    place
        .raw()
        .execute_batch(
            "CREATE TRIGGER boom AFTER INSERT ON requests
             BEGIN SELECT RAISE(FAIL, 'hunter2'); END",
        )
        .expect("ours");
    let mut store = place.store();
    let error = store
        .admit(&place.world, &request, "run-1", "w")
        .expect_err("it failed");
    assert_eq!(error.to_string(), "audit storage unavailable");
    let count: i64 = place
        .raw()
        .query_row("SELECT count(*) FROM requests", [], |row| row.get(0))
        .expect("ours");
    assert_eq!(count, 0);
    place
        .raw()
        .execute_batch("DROP TRIGGER boom")
        .expect("ours");
    let admitted = store.admit(&place.world, &request, "run-1", "w");
    assert_eq!(admitted.expect("room"), Admission::New);
}
