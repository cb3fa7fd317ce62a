//! Jobs: claimed once, given back by the reaper alone.

use std::collections::BTreeSet;

use fleet_update::error::Kind;
use fleet_update::state::jobs::{self, JobState, Origin, Work};
use fleet_update::state::scope::Scope;

use crate::place::{Place, count, profile, work};

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

#[test]
fn of_sixteen_runs_one_takes_a_whole_stage_and_no_job_twice() {
    let place = Place::new();
    let work: Vec<Work> = (0..20)
        .map(|number| Work {
            subject: format!("home-{number}"),
            ..work("run-1")
        })
        .collect();
    let ids: BTreeSet<i64> = place
        .store()
        .queue(Origin::Command, &work)
        .expect("room")
        .into_iter()
        .collect();
    let said = place.children(16, "claim-stage");
    let winners: Vec<&String> = said.iter().filter(|said| !said.is_empty()).collect();
    assert_eq!(winners.len(), 1, "{said:?}");
    let taken = winners[0]
        .split(' ')
        .map(|id| id.parse().expect("a number"));
    assert_eq!(taken.collect::<Vec<i64>>(), Vec::from_iter(ids));
    let jobs = place.store().open_jobs().expect("a database");
    assert!(jobs.iter().all(|job| job.state == JobState::Running));
}
