//! A run that is killed at any moment leaves whole files, and the next one finishes its work.
//!
//! Moments are chosen by what can be seen from outside (the receipt, the snapshot, the homes, the
//! gateways) and a delay after it; which stage a kill really hit is told by what it left behind.

use std::collections::{BTreeMap, VecDeque};
use std::os::unix::fs::MetadataExt;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::process::{Signal, pidfd_send_signal};

use crate::support::fleet::{ANN, BOB, CONFIG_V12, Fleet, Gateway, Plan};
use crate::support::sandbox::Process;
use crate::support::update::{Outcome, Update, latest_receipt, wait_until_gone};
use crate::support::{long, say};
use crate::{migrated, pretty};

/// The gateways that run in this fleet; the other homes have none, so that a round is short.
const AWAKE: [Gateway; 2] = [Gateway::of(ANN, "default"), Gateway::of(ANN, "work")];
const ASLEEP: [Gateway; 3] = [
    Gateway::of(ANN, "ops"),
    Gateway::of(BOB, "default"),
    Gateway::of(BOB, "lab"),
];

const STATE: &str = "/var/lib/fleet-update";

/// Linux has told user space of 100 ticks a second on every architecture of today; time(7).
const TICKS_PER_SECOND: u32 = 100;

/// How many fleets are killed side by side: most of a run is waiting.
const LANES: usize = 4;

/// What has to be seen before the delay begins.
#[derive(Debug, Clone, Copy)]
enum Sign {
    Begun,
    ReceiptOpened,
    SnapshotBegun,
    HomesWritten(usize),
    GatewaysGone(usize),
    GatewaysBack(usize),
}

/// When a run is killed.
#[derive(Debug, Clone, Copy)]
struct Moment {
    after: Sign,
    delay: Duration,
}

/// How far a killed run had come, told by what it left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    BeforeTheReceipt,
    ReceiptOpened,
    SnapshotBegun,
    HomesPartlyWritten,
    HomesWritten,
    GatewaysPartlyRestarted,
    GatewaysRestarted,
    Closed,
}

const STAGES: [Stage; 8] = [
    Stage::BeforeTheReceipt,
    Stage::ReceiptOpened,
    Stage::SnapshotBegun,
    Stage::HomesPartlyWritten,
    Stage::HomesWritten,
    Stage::GatewaysPartlyRestarted,
    Stage::GatewaysRestarted,
    Stage::Closed,
];

/// What can be seen of a run from outside.
struct Seen {
    receipt: Option<u64>,
    snapshots: usize,
    configs: Vec<u64>,
    gateways: Vec<Option<Process>>,
}

impl Seen {
    fn of(fleet: &Fleet) -> Self {
        let inode = |path: &str| {
            fleet
                .sandbox
                .path(path)
                .metadata()
                .ok()
                .map(|meta| meta.ino())
        };
        Self {
            receipt: inode(&format!("{STATE}/receipts/latest.json")),
            snapshots: std::fs::read_dir(fleet.sandbox.path(&format!("{STATE}/snapshots")))
                .map_or(0, Iterator::count),
            configs: homes()
                .map(|home| inode(&home.config()).unwrap_or_default())
                .collect(),
            gateways: AWAKE.iter().map(|one| fleet.running(*one)).collect(),
        }
    }

    fn written(&self, fleet: &Fleet) -> usize {
        homes()
            .zip(&self.configs)
            .filter(|(home, inode)| {
                fleet
                    .sandbox
                    .path(&home.config())
                    .metadata()
                    .is_ok_and(|meta| meta.ino() != **inode)
            })
            .count()
    }

    fn gone(&self, fleet: &Fleet) -> usize {
        self.gateways
            .iter()
            .flatten()
            .filter(|was| {
                fleet
                    .sandbox
                    .process(was.pid)
                    .is_none_or(|now| now.start_ticks != was.start_ticks)
            })
            .count()
    }

    fn back(&self, fleet: &Fleet) -> usize {
        AWAKE
            .iter()
            .zip(&self.gateways)
            .filter(|(gateway, was)| {
                fleet.running(**gateway).is_some_and(|now| {
                    was.as_ref()
                        .is_none_or(|was| (was.pid, was.start_ticks) != (now.pid, now.start_ticks))
                })
            })
            .count()
    }

    fn shows(&self, sign: Sign, fleet: &Fleet) -> bool {
        let now = |path: &str| {
            fleet
                .sandbox
                .path(path)
                .metadata()
                .ok()
                .map(|meta| meta.ino())
        };
        match sign {
            Sign::Begun => true,
            Sign::ReceiptOpened => now(&format!("{STATE}/receipts/latest.json")) != self.receipt,
            Sign::SnapshotBegun => {
                std::fs::read_dir(fleet.sandbox.path(&format!("{STATE}/snapshots")))
                    .map_or(0, Iterator::count)
                    > self.snapshots
            }
            Sign::HomesWritten(count) => self.written(fleet) >= count,
            Sign::GatewaysGone(count) => self.gone(fleet) >= count,
            Sign::GatewaysBack(count) => self.back(fleet) >= count,
        }
    }

    /// How far the run came that began when this was seen and that is over now.
    fn stage(&self, fleet: &Fleet) -> Stage {
        let inode = fleet
            .sandbox
            .path(&format!("{STATE}/receipts/latest.json"))
            .metadata()
            .ok()
            .map(|meta| meta.ino());
        let receipt = latest_receipt(fleet).filter(|_| inode != self.receipt);
        let closed = receipt
            .as_ref()
            .is_some_and(|receipt| !receipt.0["finished_at"].is_null());
        let (written, gone) = (self.written(fleet), self.gone(fleet));
        if closed {
            Stage::Closed
        } else if gone == AWAKE.len() && self.back(fleet) == AWAKE.len() {
            Stage::GatewaysRestarted
        } else if gone > 0 {
            Stage::GatewaysPartlyRestarted
        } else if written == self.configs.len() {
            Stage::HomesWritten
        } else if written > 0 {
            Stage::HomesPartlyWritten
        } else if self.shows(Sign::SnapshotBegun, fleet) {
            Stage::SnapshotBegun
        } else if receipt.is_some() {
            Stage::ReceiptOpened
        } else {
            Stage::BeforeTheReceipt
        }
    }
}

fn homes() -> impl Iterator<Item = Gateway> {
    AWAKE.into_iter().chain(ASLEEP)
}

/// The moments of a round over the whole run; later rounds are a little later each.
fn moments(count: usize) -> VecDeque<Moment> {
    let table: [(Sign, &[u64]); 14] = [
        (Sign::Begun, &[0, 3, 6, 12, 18, 25, 35, 50]),
        (Sign::ReceiptOpened, &[0, 0, 0, 1, 1, 2, 4]),
        (Sign::SnapshotBegun, &[0, 0, 0, 1, 2, 4]),
        (Sign::HomesWritten(1), &[0, 0, 1]),
        (Sign::HomesWritten(2), &[0, 1]),
        (Sign::HomesWritten(3), &[0, 1]),
        (Sign::HomesWritten(4), &[0, 1]),
        (Sign::HomesWritten(5), &[0, 1, 50, 300]),
        (Sign::GatewaysGone(1), &[0, 150, 500, 1200]),
        (Sign::GatewaysBack(1), &[0, 1000, 2500]),
        (Sign::GatewaysGone(2), &[0, 250, 800]),
        (Sign::GatewaysBack(2), &[0, 600, 1500, 2300]),
        (Sign::GatewaysBack(2), &[2800]),
        (Sign::GatewaysBack(2), &[3200]),
    ];
    let all: Vec<Moment> = table
        .iter()
        .flat_map(|(after, delays)| {
            delays.iter().map(|&millis| Moment {
                after: *after,
                delay: Duration::from_millis(millis),
            })
        })
        .collect();
    (0..count)
        .map(|index| {
            let round = u32::try_from(index / all.len()).unwrap();
            let moment = all[index % all.len()];
            Moment {
                delay: moment.delay + moment.delay / 7 * round + Duration::from_micros(170) * round,
                ..moment
            }
        })
        .collect()
}

/// How many more runs are killed for the sake of stages that no planned kill hit: some are over in a millisecond,
/// which a busy machine may look past a dozen times.
const MORE: usize = 40;

/// What all lanes share.
struct Work {
    moments: VecDeque<Moment>,
    done: usize,
    more: usize,
    hits: BTreeMap<Stage, usize>,
}

impl Work {
    /// The number of the next round, and when its run is to be killed.
    fn next(&mut self) -> Option<(usize, Moment)> {
        let moment = self.moments.pop_front().or_else(|| self.another())?;
        self.done += 1;
        Some((self.done, moment))
    }

    /// A moment for a stage that was not hit.
    fn another(&mut self) -> Option<Moment> {
        let missed = STAGES
            .into_iter()
            .find(|stage| *stage != Stage::Closed && !self.hits.contains_key(stage))?;
        self.more = self.more.checked_sub(1)?;
        let after = match missed {
            Stage::BeforeTheReceipt => Sign::Begun,
            Stage::ReceiptOpened => Sign::ReceiptOpened,
            Stage::SnapshotBegun => Sign::SnapshotBegun,
            Stage::HomesPartlyWritten => Sign::HomesWritten(1 + self.more % 3),
            Stage::HomesWritten => Sign::HomesWritten(homes().count()),
            Stage::GatewaysPartlyRestarted => Sign::GatewaysGone(1),
            Stage::GatewaysRestarted | Stage::Closed => Sign::GatewaysBack(AWAKE.len()),
        };
        let delay = Duration::ZERO;
        Some(Moment { after, delay })
    }
}

/// Starts a run, kills it at its moment, and says how it ended.
fn killed_at(fleet: &Fleet, moment: Moment, seen: &Seen) -> Outcome {
    let mut run = Update::apply(fleet).start();
    let start = Instant::now();
    let handle = loop {
        if let Some(handle) = run.handle() {
            break handle;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "it never began");
    };
    while !seen.shows(moment.after, fleet) && !run.ended() {
        // Busy on purpose: some stages last less than any sleep.
        std::hint::spin_loop();
    }
    std::thread::sleep(moment.delay);
    // It may have ended by itself; then there is nothing to kill, and the stage says so.
    let _ = pidfd_send_signal(&handle, Signal::KILL);
    let outcome = run.finish();
    wait_until_gone(fleet);
    outcome
}

/// Fails if a process serves a configuration that was written after it had started.
#[track_caller]
fn assert_serves_what_is_written(fleet: &Fleet, gateway: Gateway, round: &str) {
    // What was killed over may have left one that starts by itself: a current one, and not up yet.
    let process = fleet.wait_until_running(gateway);
    let nanos = |time: rustix::time::Timespec| {
        i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
    };
    let booted = nanos(rustix::time::clock_gettime(rustix::time::ClockId::Realtime))
        - nanos(rustix::time::clock_gettime(rustix::time::ClockId::Boottime));
    let ticks = i128::from(TICKS_PER_SECOND);
    // Start times are whole ticks, rounded down (proc(5)).
    let latest_start = booted + (i128::from(process.start_ticks) + 1) * 1_000_000_000 / ticks;
    let meta = fleet.sandbox.path(&gateway.config()).metadata().unwrap();
    let written = i128::from(meta.ctime()) * 1_000_000_000 + i128::from(meta.ctime_nsec());
    assert!(
        latest_start >= written,
        "{gateway:?} started {} ms before its configuration was written {round}",
        (written - latest_start) / 1_000_000
    );
}

/// One kill, and the run after it.
fn round(fleet: &Fleet, number: usize, moment: Moment) -> Stage {
    let old = format!("{CONFIG_V12}# round {number}\n");
    let new = migrated(&old);
    for home in homes() {
        fleet.set_config(home, &old);
        // Hermes keeps a ledger of its starts, and sleeps after six of them within two minutes: no
        // fleet but this one is restarted that often.
        let ledger = format!("{}/gateway-starts.log", home.home());
        let _ = std::fs::remove_file(fleet.sandbox.path(&ledger));
    }
    let seen = Seen::of(fleet);
    let killed = killed_at(fleet, moment, &seen);
    let stage = seen.stage(fleet);
    let round = format!("in round {number}, killed {moment:?}, at {stage:?}");

    for home in homes() {
        let found = fleet.config(home);
        assert!(
            found == old || found == new,
            "{} is not whole {round}:\n{found}",
            home.config()
        );
    }
    let left =
        latest_receipt(fleet).filter(|_| !matches!(stage, Stage::BeforeTheReceipt | Stage::Closed));
    if let Some(left) = &left {
        assert_eq!(left.0["verdict"]["outcome"], "interrupted", "{round}");
        assert!(killed.signal == Some(9), "{round}: {killed}");
    }

    let next = Update::apply(fleet).run();
    assert_eq!(next.status, Some(0), "{round}: {next}");
    for home in homes() {
        pretty(
            &new,
            &fleet.config(home),
            &format!("{} {round}", home.config()),
        );
        let names = std::fs::read_dir(fleet.sandbox.path(&home.home())).unwrap();
        for name in names.filter_map(|entry| entry.unwrap().file_name().into_string().ok()) {
            assert!(
                name == "config.yaml" || !name.contains("config.yaml"),
                "{name} was left in {} {round}",
                home.home()
            );
        }
    }
    for gateway in AWAKE {
        assert_serves_what_is_written(fleet, gateway, &format!("{round}\n{next}"));
    }
    if let Some(left) = left {
        let id = left.0["run_id"].as_str().unwrap();
        let notes = next.receipt().0["notes"].to_string();
        assert!(
            notes.contains(id) && notes.contains("interrupted"),
            "the next run does not say that {id} was interrupted {round}: {notes}"
        );
    }
    stage
}

#[test]
fn a_run_that_is_killed_at_any_of_fifty_moments_leaves_whole_files_and_the_next_one_converges() {
    let count = if long() { 500 } else { 50 };
    let work = Mutex::new(Work {
        moments: moments(count),
        done: 0,
        more: MORE,
        hits: BTreeMap::new(),
    });
    let lane = || {
        let plan = ASLEEP
            .iter()
            .fold(Plan::default(), |plan, one| plan.asleep(*one));
        let Some(fleet) = plan.boot() else {
            return false;
        };
        loop {
            let Some((number, moment)) = work.lock().unwrap().next() else {
                return true;
            };
            let stage = round(&fleet, number, moment);
            *work.lock().unwrap().hits.entry(stage).or_default() += 1;
        }
    };
    let ran = std::thread::scope(|scope| {
        let name = std::thread::current().name().unwrap_or("kill").to_owned();
        let lanes: Vec<_> = (0..LANES)
            .map(|_| {
                std::thread::Builder::new()
                    .name(name.clone())
                    .spawn_scoped(scope, lane)
                    .unwrap()
            })
            .collect();
        lanes.into_iter().all(|lane| lane.join().unwrap())
    });
    if !ran {
        return;
    }
    let Work { hits, done, .. } = work.into_inner().unwrap();
    say(&format!(
        "killed {done} runs, by the stage that each had reached:"
    ));
    for stage in STAGES {
        say(&format!(
            "  {:>4} {stage:?}",
            hits.get(&stage).unwrap_or(&0)
        ));
    }
    for stage in STAGES {
        // A run that had closed its receipt was not killed: it need not be hit.
        assert!(
            stage == Stage::Closed || hits.contains_key(&stage),
            "no kill hit {stage:?}: {hits:?}"
        );
    }
}
