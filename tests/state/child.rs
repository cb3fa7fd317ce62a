//! What the children of the other tests do, all at once.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use fleet_update::state::Store;
use fleet_update::state::audit::HOST;
use fleet_update::state::jobs::{self, Origin};
use fleet_update::world::World;

use crate::place::{event, profile, work};

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
        "claim-stage" => {
            let subjects: Vec<String> = (0..20).map(|number| format!("home-{number}")).collect();
            let subjects: Vec<&str> = subjects.iter().map(String::as_str).collect();
            let taken = store
                .change("test", |transaction| {
                    jobs::claim_stage(transaction, "migrate", &subjects, &worker)
                })
                .expect("a database");
            let ids: Vec<String> = taken.iter().map(|job| job.id.to_string()).collect();
            ids.join(" ")
        }
        other => panic!("no child does {other}"),
    };
    println!("\nSAYS {said}");
}
