//! Rows without a process of their own: units that do not run, and what runs in a unit beside its runtime.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{Assembly, installer, unit_id};
use crate::fleet::processes::{Seen, ancestors};
use crate::fleet::runtimes::{OTHER, Recognised};
use crate::fleet::supervisors::supervisor_of;
use crate::fleet::survey::{Key, ask_unit, uid_of_unit};
use crate::fleet::{Manager, Runtime, Supervisor, procfs};

impl Assembly<'_> {
    /// Whether we run inside of the unit that would be restarted.
    pub(super) fn shares_unit(&self, supervisor: &Supervisor) -> bool {
        let Supervisor::Systemd { scope, unit } = supervisor else {
            return false;
        };
        procfs::innermost_service(&self.scan.our_cgroup).is_some_and(|ours| {
            ours.unit == *unit && ours.manager_uid.map_or(Manager::System, Manager::User) == *scope
        })
    }

    /// Units that should run a runtime, and have no process of it.
    pub(super) fn slots(&mut self) -> Vec<Runtime> {
        let mut slots = Vec::new();
        for ((manager, name), unit) in &self.units {
            let uid = match manager {
                Manager::User(uid) => *uid,
                Manager::System => uid_of_unit(&self.accounts, &unit.user).unwrap_or(0),
            };
            if !self.accounts.iter().any(|account| account.uid == uid) {
                continue;
            }
            let Some(asked) = ask_unit(self.app, unit, uid) else {
                continue;
            };
            // One that nobody enabled is no row of a plan, and still says which install serves its homes.
            if name.contains("@.") || unit.load_state == "masked" {
                continue;
            }
            let key = Key::Unit(*manager, name.clone());
            let served = self.served.get(&key);
            slots.push(Runtime {
                id: unit_id(*manager, name, &asked.recognised.kind),
                kind: asked.recognised.kind,
                managed: asked.recognised.managed,
                homes: served
                    .map(|served| served.homes.clone())
                    .unwrap_or_default(),
                home_evidence: served.map_or_else(
                    || String::from("its owner could not be asked"),
                    |served| served.evidence.clone(),
                ),
                uid,
                install: served.and_then(|served| served.install.clone()),
                process: None,
                supervisor: Supervisor::Systemd {
                    scope: *manager,
                    unit: name.clone(),
                },
                unit: Some(unit.clone()),
                self_report: None,
                unreadable: self.failed.get(&key).cloned().into_iter().collect(),
                foreign_namespace: false,
                encloses_us: false,
                is_ancestor: false,
            });
        }
        slots
    }

    /// Services that run from the application's code without being one of its commands: a web
    /// interface, a worker. They are not ours to restart, and a person wants to know of them.
    pub(super) fn tenants(&mut self, runtimes: &[Runtime]) -> Vec<Runtime> {
        let taken: BTreeSet<u32> = runtimes
            .iter()
            .filter_map(|runtime| runtime.process.as_ref())
            .map(|process| process.incarnation.pid)
            .collect();
        let units: BTreeSet<(Manager, &str)> = runtimes
            .iter()
            .filter_map(|runtime| match &runtime.supervisor {
                Supervisor::Systemd { scope, unit } => Some((*scope, unit.as_str())),
                _ => None,
            })
            .collect();
        let mut found: BTreeMap<String, Runtime> = BTreeMap::new();
        for interpreter in &self.scan.interpreters {
            let Some(install) = interpreter
                .argv
                .first()
                .and_then(|program| self.install_at(Path::new(program)))
            else {
                continue;
            };
            if taken.contains(&interpreter.pid) || installer(&interpreter.argv) {
                continue;
            }
            let Some(process) = procfs::read(interpreter.pid, &[]).ok().flatten() else {
                continue;
            };
            if !self
                .accounts
                .iter()
                .any(|account| account.uid == process.uid)
            {
                continue;
            }
            let one = Seen {
                foreign: procfs::is_foreign(interpreter.pid).unwrap_or(false),
                ancestors: ancestors(interpreter.pid),
                recognised: Recognised {
                    kind: OTHER.to_owned(),
                    profile: None,
                    home: None,
                    managed: false,
                },
                process,
            };
            let supervisor = supervisor_of(self.app, &one, self.service_manager);
            let Supervisor::Systemd { scope, unit } = supervisor.clone() else {
                continue;
            };
            if units.contains(&(scope, unit.as_str()))
                || one.ancestors.iter().any(|above| taken.contains(&above.pid))
            {
                continue;
            }
            let id = unit_id(scope, &unit, OTHER);
            found.entry(id.clone()).or_insert_with(|| Runtime {
                id,
                kind: OTHER.to_owned(),
                managed: false,
                homes: Vec::new(),
                home_evidence: format!("it only runs from the code of {}", self.app.title),
                uid: one.process.uid,
                install: Some(install),
                unit: self.units.get(&(scope, unit)).cloned(),
                process: Some(one.process),
                foreign_namespace: one.foreign,
                supervisor,
                self_report: None,
                unreadable: Vec::new(),
                encloses_us: false,
                is_ancestor: false,
            });
        }
        found.into_values().collect()
    }

    pub(super) fn install_at(&self, program: &Path) -> Option<String> {
        self.installs
            .values()
            .find(|install| program.starts_with(&install.path))
            .map(|install| install.id.clone())
    }
}
