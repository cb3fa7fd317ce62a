//! Plans of large fleets: what each home needs is looked up, not searched for.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::*;
use crate::fleet::{Changed, Install, InstallKind, sample};

const HOMES: usize = 10_000;
const RUNTIMES: usize = 500;

/// One root with thousands of profiles, some of which are served.
fn large() -> Inventory {
    let home = |index: usize| {
        let mut home = sample::home(&format!("{index:05}"));
        home.root = "/home/ann/root".into();
        home
    };
    let runtime = |index: usize| {
        let mut runtime = sample::runtime(u32::try_from(index).expect("small") + 2);
        runtime.homes = vec![format!("{:05}", index * 7)];
        runtime
    };
    Inventory {
        homes: (0..HOMES).map(home).collect(),
        runtimes: (0..RUNTIMES).map(runtime).collect(),
        installs: vec![Install {
            id: "install".into(),
            path: "/opt/agent".into(),
            package: "/opt/package".into(),
            interpreter: None,
            kind: InstallKind::Pip,
            uid: 0,
            version: None,
            config_version: Some(33),
            changed: Some(Changed {
                at_nanos: 1,
                file: "/opt/agent/RECORD".into(),
            }),
            roots: Vec::new(),
            updater: None,
        }],
        ..Inventory::default()
    }
}

/// What this thread has used of a processor: others on the machine do not count.
fn used() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

#[test]
fn ten_thousand_siblings_and_five_hundred_runtimes_are_planned_in_proportion() {
    let inventory = large();
    let start = used();
    let targets = targets(&inventory, None);
    let expected = |target: &Target| {
        target.expected == Some(33) && target.install.as_deref() == Some("install")
    };
    assert_eq!(targets.len(), HOMES);
    assert!(targets.values().all(expected));
    let table = Table::load(None, &[]).expect("valid");
    let caller = Account {
        uid: 0,
        gid: 0,
        name: "root".into(),
        home: "/root".into(),
    };
    let wishes = Wishes {
        restart: RestartWhen::Stale,
        migrate: true,
        native: false,
        to: None,
        policy: Policy::default(),
    };
    let plan = Plan::new(Given {
        inventory: &inventory,
        targets,
        evaluations: BTreeMap::new(),
        table: &table,
        wishes: &wishes,
        owed: &[],
        caller: &caller,
        names: &BTreeMap::new(),
        waited: false,
    });
    assert_eq!((plan.homes.len(), plan.runtimes.len()), (HOMES, RUNTIMES));
    // A search through all siblings for each of them takes minutes, unoptimised.
    let took = used() - start;
    assert!(took < Duration::from_secs(5), "{took:?}");
}
