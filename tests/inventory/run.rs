//! A run over all of it, on a root of its own: who was signalled, by handles on every process that must
//! not be.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::odd::Odd;
use crate::support::sandbox::{Process, Sandbox};
use crate::support::update::Update;

#[test]
fn a_run_over_an_odd_fleet_ends_the_runtimes_that_it_restarts_and_nobody_else() {
    let Some(odd) = Odd::boot() else { return };
    let sandbox = &odd.fleet.sandbox;
    let plan = Update::new(&odd.fleet, &["plan", "--json"]).run().receipt();
    let meant: Vec<u32> = plan
        .rows("runtimes")
        .iter()
        .filter(|row| !row["action"].is_null())
        .map(|row| u32::try_from(row["before"]["incarnation"]["pid"].as_u64().unwrap()).unwrap())
        .collect();
    assert!(meant.len() >= 9, "{}", plan.summary());
    // A unit's other processes end with it.
    let groups: Vec<String> = sandbox
        .processes()
        .into_iter()
        .filter(|one| meant.contains(&one.pid))
        .map(|one| one.cgroup)
        .collect();
    let handles = handles(sandbox);
    let outcome = Update::apply(&odd.fleet).run();
    assert_eq!(outcome.status, Some(1), "{outcome}");
    let mut kept = 0;
    for (process, handle) in &handles {
        let ended = has_ended(handle);
        if groups.contains(&process.cgroup) {
            assert!(
                ended,
                "{process:?} is of the old state and lives\n{outcome}"
            );
        } else if process.command.contains("hermes") || process.command.starts_with("innocent") {
            kept += 1;
            assert!(!ended, "{process:?} was ended\n{outcome}");
        }
    }
    assert!(kept > 12, "{kept} were watched");
    let receipt = outcome.receipt();
    for pid in meant {
        let row = crate::odd::row_of_pid(&receipt, pid).expect("it has a row");
        assert_eq!(row["outcome"], "restarted", "{row}\n{outcome}");
    }
    // Nobody runs twice: a wrapper, a template and a drop-in each have one gateway.
    let mut gateways: BTreeMap<String, usize> = BTreeMap::new();
    for one in sandbox.processes() {
        if one.command.contains("gateway run")
            && !one.command.starts_with("/bin/sh")
            && one.cgroup.ends_with(".service")
        {
            *gateways.entry(one.cgroup).or_default() += 1;
        }
    }
    assert!(gateways.values().all(|count| *count == 1), "{gateways:#?}");
    assert!(!sandbox.path("/root/.hermes").exists());
}

/// A handle on each process of a sandbox (pidfd_open(2)): it is of one life, whatever becomes of the pid.
fn handles(sandbox: &Sandbox) -> Vec<(Process, OwnedFd)> {
    let namespace = std::fs::read_link(format!("/proc/{}/ns/pid", sandbox.pid())).unwrap();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let folder = entry.path();
        if std::fs::read_link(folder.join("ns/pid")).ok().as_ref() != Some(&namespace) {
            continue;
        }
        let status = std::fs::read_to_string(folder.join("status")).unwrap_or_default();
        let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        let Some((outer, inner)) = ids.and_then(|ids| {
            let ids: Vec<i32> = ids
                .split_whitespace()
                .filter_map(|id| id.parse().ok())
                .collect();
            Some((*ids.first()?, *ids.last()?))
        }) else {
            continue;
        };
        let handle = Pid::from_raw(outer).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let process = sandbox.process(u32::try_from(inner).unwrap());
        if let (Some(process), Some(handle)) = (process, handle) {
            found.push((process, handle));
        }
    }
    found
}

fn has_ended(handle: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(handle, PollFlags::IN)];
    poll(
        &mut polled,
        Some(&Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        }),
    )
    .unwrap()
        > 0
}
