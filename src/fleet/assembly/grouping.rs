//! Which processes are one runtime, and what is known of it.

use std::collections::BTreeMap;

use super::{Assembly, unit_id};
use crate::fleet::processes::Seen;
use crate::fleet::runtimes::{self};
use crate::fleet::supervisors::supervisor_of;
use crate::fleet::survey::Key;
use crate::fleet::{Runtime, SelfReport, Supervisor};
use crate::world;

/// A command that nobody keeps must have run this long to count as something that serves.
const LONG_LIVED_NANOS: u128 = 60 * 1_000_000_000;

impl Assembly<'_> {
    /// One row for everything of one kind that one unit or one parent keeps.
    pub(super) fn runtimes(&mut self) -> Vec<Runtime> {
        let seen = std::mem::take(&mut self.scan.seen);
        let mut groups: BTreeMap<String, Vec<(Supervisor, &Seen)>> = BTreeMap::new();
        let mut sessions: BTreeMap<u32, usize> = BTreeMap::new();
        for one in &seen {
            let supervisor = supervisor_of(self.app, one, self.service_manager);
            if !one.recognised.managed && !self.serves(one, &supervisor, &seen) {
                *sessions.entry(one.process.uid).or_default() += 1;
                continue;
            }
            let id = self.slot_id(one, &supervisor, &seen);
            groups.entry(id).or_default().push((supervisor, one));
        }
        for (uid, count) in sessions {
            self.notes.push(format!(
                "uid {uid} has {count} commands of {} at work that serve nothing",
                self.app.title
            ));
        }
        groups
            .into_iter()
            .map(|(id, members)| self.runtime(id, &members))
            .collect()
    }

    /// Whether a command that the descriptor does not know serves something: a unit's own process, or
    /// one that runs long without a terminal and was not started by a runtime for its work.
    fn serves(&self, one: &Seen, supervisor: &Supervisor, all: &[Seen]) -> bool {
        let started_by_another = one.ancestors.iter().any(|above| {
            all.iter()
                .any(|other| other.process.incarnation.pid == above.pid)
        });
        if started_by_another || one.process.terminal != 0 {
            return false;
        }
        let age = world::now()
            .as_nanos()
            .saturating_sub(u128::from(one.process.started_at_nanos));
        match supervisor {
            Supervisor::Systemd { scope, unit } => self
                .units
                .get(&(*scope, unit.clone()))
                .is_none_or(|unit| unit.service_type != "oneshot"),
            Supervisor::Scope { .. } => false,
            _ => age > LONG_LIVED_NANOS,
        }
    }

    fn slot_id(&self, one: &Seen, supervisor: &Supervisor, all: &[Seen]) -> String {
        let kind = &one.recognised.kind;
        if let Supervisor::Systemd { scope, unit } = supervisor {
            return unit_id(*scope, unit, kind);
        }
        // A worker is a child that looks like its parent; the parent is the runtime. A shell is one
        // only until its script has started the program.
        let same = |other: &&Seen| {
            other.recognised == one.recognised
                && (other.process.argv == one.process.argv
                    || runtimes::is_shell(&other.process.argv))
        };
        let top = one
            .ancestors
            .iter()
            .filter_map(|above| {
                all.iter()
                    .find(|other| other.process.incarnation.pid == above.pid)
            })
            .rfind(same)
            .unwrap_or(one);
        let incarnation = &top.process.incarnation;
        format!(
            "process/{}/{}/{kind}",
            incarnation.pid, incarnation.start_ticks
        )
    }

    fn runtime(&mut self, id: String, members: &[(Supervisor, &Seen)]) -> Runtime {
        let (supervisor, main) = self.main_of(members);
        let (supervisor, main) = (supervisor.clone(), *main);
        let pid = main.process.incarnation.pid;
        let mut homes: Vec<String> = Vec::new();
        let mut unreadable = Vec::new();
        for (_, one) in members {
            let key = Key::Process(one.process.incarnation.pid);
            for home in self
                .served
                .get(&key)
                .into_iter()
                .flat_map(|served| &served.homes)
            {
                if !homes.contains(home) {
                    homes.push(home.clone());
                }
            }
            let is_other = one.process.incarnation.pid != pid && !main.foreign;
            if is_other && !runtimes::is_shell(&one.process.argv) {
                self.workers.insert(one.process.incarnation.pid);
                self.notes.push(format!(
                    "process {} belongs to the {} of process {pid}",
                    one.process.incarnation.pid, main.recognised.kind
                ));
            }
        }
        let key = Key::Process(pid);
        if let Some(reason) = self.failed.get(&key) {
            unreadable.push(reason.clone());
        }
        if !main.process.env_readable && homes.is_empty() {
            unreadable.push(String::from("its environment may not be read"));
        }
        let served = self.served.get(&key);
        let lock = self.locked_home(main);
        if let Some(home) = lock.filter(|home| main.foreign && !homes.contains(home)) {
            homes.push(home);
        }
        let home_evidence = match served {
            None if main.foreign && !homes.is_empty() => {
                String::from("the lock that it holds, from another namespace")
            }
            Some(served) => served.evidence.clone(),
            None if main.foreign => {
                String::from("it lives in another namespace, where paths mean other things")
            }
            None => String::from("its owner could not be asked"),
        };
        let unit = match &supervisor {
            Supervisor::Systemd { scope, unit } => self.units.get(&(*scope, unit.clone())).cloned(),
            _ => None,
        };
        let is_ancestor = members
            .iter()
            .any(|(_, one)| self.scan.ourselves.contains(&one.process.incarnation.pid));
        // A unit's stop reaches what is in its control group, and a descendant may have left it.
        let encloses_us = match &supervisor {
            Supervisor::Systemd { .. } => self.shares_unit(&supervisor),
            _ => is_ancestor,
        };
        Runtime {
            id,
            kind: main.recognised.kind.clone(),
            managed: main.recognised.managed,
            homes,
            home_evidence,
            uid: main.process.uid,
            install: served.and_then(|served| served.install.clone()),
            self_report: self.report_of(main).cloned(),
            process: Some(main.process.clone()),
            supervisor,
            unit,
            unreadable,
            foreign_namespace: main.foreign,
            encloses_us,
            is_ancestor,
        }
    }

    /// The one of several processes that is the runtime: the one that says so itself, else the
    /// top-most that is no shell, else the oldest.
    fn main_of<'s>(&self, members: &'s [(Supervisor, &'s Seen)]) -> &'s (Supervisor, &'s Seen) {
        let rank = |(_, one): &(Supervisor, &Seen)| {
            let above = one
                .ancestors
                .iter()
                .filter(|above| {
                    members.iter().any(|(_, other)| {
                        other.process.incarnation.pid == above.pid
                            && !runtimes::is_shell(&other.process.argv)
                    })
                })
                .count();
            (
                self.report_of(one).is_none(),
                runtimes::is_shell(&one.process.argv),
                above,
                one.process.incarnation.start_ticks,
                one.process.incarnation.pid,
            )
        };
        let mut best = &members[0];
        for member in members {
            if rank(member) < rank(best) {
                best = member;
            }
        }
        best
    }

    pub(super) fn report_of(&self, one: &Seen) -> Option<&SelfReport> {
        self.reports_of
            .get(&one.process.incarnation.pid)?
            .iter()
            .map(|at| &self.reports[*at])
            .filter(|(uid, report)| {
                *uid == one.process.uid
                    && report.kind == one.recognised.kind
                    && report.start_ticks == one.process.incarnation.start_ticks
            })
            .map(|(_, report)| report)
            .max_by_key(|report| {
                (
                    report.holds_lock,
                    report.socket_answered,
                    report.state.is_some(),
                )
            })
    }

    /// The home whose lock a process holds by the kernel's word, whatever its own paths mean.
    fn locked_home(&self, one: &Seen) -> Option<String> {
        let report = self.report_of(one).filter(|report| report.holds_lock)?;
        let home = self.homes.iter().find(|home| home.path == report.home)?;
        Some(home.id.clone())
    }
}
