//! A disk that answers EIO: every write, sync, rename, read and removal of our state, and of the homes, is made to fail,
//! once and for good. Either nothing was changed, or the receipt says what was; no file is torn; the next run
//! converges.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;

use signal_hook::consts::SIGBUS;

use crate::failing::{Call, Disk, Fault};
use crate::fleet::{CONFIG, Fleet, many};
use crate::isolated::{is_long, isolated, skip};

/// Which files lie on the disk that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    State,
    Homes,
}

fn fleet(place: Place) -> Option<(Fleet, Disk)> {
    let fleet = Fleet::without_runtimes(many(2).into_iter());
    let path = match place {
        Place::State => fleet.state(),
        Place::Homes => fleet.root(),
    };
    let Some(disk) = Disk::mount(&path) else {
        skip("no file system can be mounted here (/dev/fuse)");
        return None;
    };
    fleet.write_homes();
    Some((fleet, disk))
}

/// The faults to try, of the calls that a run makes when nothing fails.
fn faults(counts: &BTreeMap<Call, usize>) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (&call, &count) in counts {
        let ways = |from| {
            [true, false].map(|for_good| Fault {
                call,
                from,
                for_good,
            })
        };
        if is_long() {
            faults.extend((1..=count).flat_map(ways));
            continue;
        }
        let [first, _] = ways(1);
        let [_, middle] = ways(count / 2 + 1);
        let [last, _] = ways(count);
        faults.extend([first, middle, last]);
    }
    faults
}

fn try_every_fault(place: Place) {
    let Some((whole, disk)) = fleet(place) else {
        return;
    };
    disk.mend();
    assert_eq!(whole.run("apply", &[]).code(), Some(0), "{}", whole.said());
    let counts = disk.mend();
    let after = whole.configs().remove(0);
    assert_ne!(after, CONFIG);
    drop(disk);
    drop(whole);
    // A run removes nothing from a home: what it wrote beside took the name of what was there.
    let expected: Vec<Call> = Call::ALL
        .into_iter()
        .filter(|call| place == Place::State || *call != Call::Unlink)
        .collect();
    assert_eq!(
        counts.keys().copied().collect::<Vec<_>>(),
        expected,
        "{counts:?}"
    );
    let faults = faults(&counts);
    let mut ends: BTreeMap<(Call, Option<i32>), usize> = BTreeMap::new();
    for fault in &faults {
        let Some((fleet, disk)) = fleet(place) else {
            return;
        };
        disk.fail(*fault);
        let status = fleet.run("apply", &[]);
        let made = disk.mend();
        let why = format!("{place:?} {fault:?} of {counts:?}, then {made:?}");
        *ends.entry((fault.call, status.code())).or_default() += 1;
        if fault.from == 1 {
            assert!(made.contains_key(&fault.call), "{why}: it was not reached");
        }
        fleet.check_whole(&after, &why);
        if status.signal() == Some(SIGBUS) && fault.call == Call::Read && place == Place::State {
            // SQLite maps the index of its log into memory, and a page that cannot be read ends the process
            // (mmap(2)): a kill like any other.
        } else {
            check_end(&fleet, place, status.code(), &after, &why);
        }
        fleet.check_converges(&after, &why);
    }
    println!("= {place:?}: {} faults: {ends:?}", faults.len());
}

/// How a run may end on a disk that fails.
fn check_end(fleet: &Fleet, place: Place, code: Option<i32>, after: &str, why: &str) {
    let said = fleet.said();
    let configs = fleet.configs();
    let is_done = |config: &String| config == after;
    match code {
        // What failed was of no consequence: something old that stays, a copy that SQLite makes again, a page that the
        // kernel reads again.
        Some(0) => assert!(configs.iter().all(is_done), "{why}: {said}"),
        Some(1) => {
            let latest = fleet.latest();
            assert_eq!(latest["verdict"]["outcome"], "not-clean", "{why}: {said}");
            for (row, config) in latest["homes"]
                .as_array()
                .into_iter()
                .flatten()
                .zip(&configs)
            {
                // A row lists the files that were written, and those alone.
                let has_files = row["files"]
                    .as_array()
                    .is_some_and(|files| !files.is_empty());
                let stays = row["reason"]
                    .as_str()
                    .is_some_and(|reason| reason.ends_with("what was written stays"));
                let says_done = has_files || stays;
                assert_eq!(says_done, is_done(config), "{why}: {row} {said}");
            }
        }
        Some(3) => {
            assert_eq!(place, Place::State, "{why}: {said}");
            assert!(said.contains("update: "), "{why}: it says nothing");
            let receipts = fleet.state().join("receipts");
            let is_told = receipts.join("latest.json").exists();
            assert!(
                is_told || !configs.iter().any(is_done),
                "{why}: a home was written, and no receipt tells: {said}"
            );
        }
        other => panic!("{why}: it ended with {other:?}: {said}"),
    }
}

#[test]
fn a_state_folder_on_a_disk_that_fails_stops_the_run_before_changes_or_in_a_receipt_that_says_so() {
    if isolated() {
        try_every_fault(Place::State);
    }
}

#[test]
fn a_home_on_a_disk_that_fails_is_a_row_and_stays_whole() {
    if isolated() {
        try_every_fault(Place::Homes);
    }
}
