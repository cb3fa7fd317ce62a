//! What is kept, and what goes.

use std::fs;
use std::path::Path;
use std::time::Duration;

use fleet_update::state::{Lock, State};

use crate::place::{Place, profile};

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
