//! From what each source said to one inventory: which processes are one runtime, which unit keeps
//! it, which stopped units are slots of their own, and what is only a note.
//!
//! Everything was read before; the one thing that is still asked is the kernel, about processes
//! that a self report names and no command line showed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::processes::{Scan, Seen, ancestors};
use super::runtimes::{self, Recognised};
use super::scope::{NAMED, Scope};
use super::survey::{Key, Served, Surveyed};
use super::{
    Collector, Home, HomeStatus, Install, Inventory, Manager, Runtime, SelfReport, Unit, procfs,
};
use crate::app::App;
use crate::world::Account;
use claims::Claims;

mod claims;
mod grouping;
mod slots;

/// One account's answer, or why there is none.
pub(super) type Answered = (Account, Vec<Key>, Result<Surveyed, String>);

/// All that the sources said.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// Whether a service manager runs on this machine.
    pub service_manager: bool,
    /// What the kernel said.
    pub scan: Scan,
    /// How the kernel answered.
    pub kernel: Vec<Collector>,
    /// What the system's manager said.
    pub system: Surveyed,
    /// Accounts in scope, and those that turned up.
    pub accounts: Vec<Account>,
    /// What each account said.
    pub surveys: Vec<Answered>,
    /// Facts worth a line.
    pub notes: Vec<String>,
}

/// Puts together what was gathered.
pub(super) fn assemble(app: &App, scope: &Scope, gathered: Gathered) -> Inventory {
    let mut assembly = Assembly::new(app, gathered);
    assembly.add_vouched();
    let mut runtimes = assembly.runtimes();
    runtimes.extend(assembly.slots());
    runtimes.extend(assembly.tenants(&runtimes));
    assembly.note_stale(&runtimes);
    assembly.note_installers();
    assembly.finish(scope, runtimes)
}

struct Assembly<'a> {
    app: &'a App,
    service_manager: bool,
    scan: Scan,
    accounts: Vec<Account>,
    homes: Vec<Home>,
    installs: BTreeMap<String, Install>,
    units: BTreeMap<(Manager, String), Unit>,
    served: BTreeMap<Key, Served>,
    /// With the uid of the account that read them.
    reports: Vec<(u32, SelfReport)>,
    /// Where the reports of a process stand among them.
    reports_of: BTreeMap<u32, Vec<usize>>,
    /// Processes that belong to the runtime of another process.
    workers: BTreeSet<u32>,
    collectors: Vec<Collector>,
    notes: Vec<String>,
    /// Why nobody answered for a key.
    failed: BTreeMap<Key, String>,
}

impl<'a> Assembly<'a> {
    fn new(app: &'a App, gathered: Gathered) -> Self {
        let mut this = Self {
            app,
            service_manager: gathered.service_manager,
            scan: gathered.scan,
            accounts: gathered.accounts,
            homes: Vec::new(),
            installs: BTreeMap::new(),
            units: BTreeMap::new(),
            served: BTreeMap::new(),
            reports: Vec::new(),
            reports_of: BTreeMap::new(),
            workers: BTreeSet::new(),
            collectors: gathered.kernel,
            notes: gathered.notes,
            failed: BTreeMap::new(),
        };
        let mut claims = Claims::default();
        let mut served = Vec::new();
        this.take(0, gathered.system, None, &mut claims, &mut served);
        for (account, keys, answer) in gathered.surveys {
            match answer {
                Ok(answer) => this.take(account.uid, answer, Some(&keys), &mut claims, &mut served),
                Err(reason) => {
                    let name = format!("homes of {}", account.name);
                    this.collectors
                        .push(Collector::unverified(name, account.uid, reason.clone()));
                    this.failed
                        .extend(keys.into_iter().map(|key| (key, reason.clone())));
                }
            }
        }
        this.homes = claims.settle(&mut this.notes);
        let owners: BTreeMap<&str, u32> = this
            .homes
            .iter()
            .map(|home| (home.id.as_str(), home.uid))
            .collect();
        for (uid, mut served) in served {
            // Nobody says for others who serves their homes: it would choose the version for them.
            let is_own = |id: &String| owners.get(id.as_str()) == Some(&uid);
            served.homes.retain(is_own);
            this.served.insert(served.key.clone(), served);
        }
        for install in this.installs.values() {
            let Some(updater) = &install.updater else {
                continue;
            };
            for home in &mut this.homes {
                if home.updater.is_none() && install.roots.contains(&home.root) {
                    home.updater = Some(updater.clone());
                }
            }
        }
        this
    }

    /// Takes over what the account `uid` said. It is heard on what is its own: its homes, its manager
    /// and what it was `asked` about; a helper that was tampered with may say anything. What the system's
    /// manager said is our own word, and nobody was asked.
    fn take(
        &mut self,
        uid: u32,
        answer: Surveyed,
        asked: Option<&[Key]>,
        claims: &mut Claims,
        served: &mut Vec<(u32, Served)>,
    ) {
        for home in answer.homes {
            claims.add(uid, home);
        }
        for install in answer.installs {
            match self.installs.get_mut(&install.id) {
                Some(known) => {
                    let roots: Vec<_> = install
                        .roots
                        .iter()
                        .chain(&known.roots)
                        .cloned()
                        .collect::<BTreeSet<_>>()
                        .into_iter()
                        .collect();
                    if install.uid == uid {
                        *known = install;
                    }
                    known.roots = roots;
                }
                None => {
                    self.installs.insert(install.id.clone(), install);
                }
            }
        }
        let is_own = |manager: Manager| asked.is_none() || manager == Manager::User(uid);
        for unit in answer.units {
            if let Some(manager) = unit.manager.filter(|manager| is_own(*manager)) {
                self.units.insert((manager, unit.name.clone()), unit);
            }
        }
        let mine = answer
            .served
            .into_iter()
            .filter(|served| match &served.key {
                Key::Unit(Manager::User(owner), _) if *owner == uid => true,
                key => asked.is_none_or(|asked| asked.contains(key)),
            });
        served.extend(mine.map(|served| (uid, served)));
        for report in answer.reports {
            let at = self.reports.len();
            self.reports_of.entry(report.pid).or_default().push(at);
            self.reports.push((uid, report));
        }
        self.collectors.extend(answer.collectors);
        self.notes.extend(answer.notes);
    }

    /// Adds processes that no command line showed, but that say in a home of their owner's that they
    /// serve it, while the kernel says that they hold its lock: a fallback start, a frozen program.
    fn add_vouched(&mut self) {
        let known: BTreeSet<u32> = self
            .scan
            .seen
            .iter()
            .map(|seen| seen.process.incarnation.pid)
            .collect();
        let wanted = runtimes::wanted_variables(self.app);
        let mut added: Vec<Seen> = Vec::new();
        for (uid, report) in &self.reports {
            let new = !known.contains(&report.pid)
                && added
                    .iter()
                    .all(|seen| seen.process.incarnation.pid != report.pid);
            if !new || !report.holds_lock {
                continue;
            }
            let Some(process) = procfs::read(report.pid, &wanted).ok().flatten() else {
                continue;
            };
            if process.uid != *uid || process.incarnation.start_ticks != report.start_ticks {
                continue;
            }
            let homes = self.homes.iter().filter(|home| home.path == report.home);
            let key = Key::Process(report.pid);
            self.served.insert(
                key.clone(),
                Served {
                    key,
                    homes: homes.map(|home| home.id.clone()).collect(),
                    evidence: String::from("its own pid file and the lock that it holds"),
                    install: None,
                },
            );
            added.push(Seen {
                foreign: procfs::is_foreign(report.pid).unwrap_or(false),
                ancestors: ancestors(report.pid),
                process,
                recognised: Recognised {
                    kind: report.kind.clone(),
                    profile: None,
                    home: None,
                    managed: true,
                },
            });
        }
        self.scan.seen.extend(added);
    }

    /// An installer that runs inside an install's own environment is changing it.
    fn note_installers(&mut self) {
        for interpreter in &self.scan.interpreters {
            let Some(program) = interpreter
                .argv
                .first()
                .filter(|_| installer(&interpreter.argv))
            else {
                continue;
            };
            let program = Path::new(program);
            for install in self.installs.values_mut() {
                if install.updater.is_none() && program.starts_with(&install.path) {
                    install.updater = Some(format!(
                        "an installer runs in it (process {})",
                        interpreter.pid
                    ));
                }
            }
        }
    }

    /// Records that name no living runtime are facts worth a line, and nothing more.
    fn note_stale(&mut self, runtimes: &[Runtime]) {
        let alive: BTreeSet<(u32, u64)> = runtimes
            .iter()
            .filter_map(|runtime| runtime.process.as_ref())
            .map(|process| {
                let incarnation = &process.incarnation;
                (incarnation.pid, incarnation.start_ticks)
            })
            .collect();
        for (_, report) in &self.reports {
            let lives = alive.contains(&(report.pid, report.start_ticks));
            if !lives && !self.workers.contains(&report.pid) {
                let state = report
                    .state
                    .as_deref()
                    .map(|state| format!(" ({state})"))
                    .unwrap_or_default();
                self.notes.push(format!(
                    "stale record in {}: process {}{state} is no {} of its owner any more",
                    report.home.display(),
                    report.pid,
                    report.kind
                ));
            }
        }
    }

    fn finish(self, scope: &Scope, mut runtimes: Vec<Runtime>) -> Inventory {
        // A slot whose process is a row already is that row.
        let with_process: BTreeSet<String> = runtimes
            .iter()
            .filter(|runtime| runtime.process.is_some())
            .map(|runtime| runtime.id.clone())
            .collect();
        runtimes.retain(|runtime| runtime.process.is_some() || !with_process.contains(&runtime.id));

        let mut homes = self.homes;
        let narrowed = !scope.homes.is_empty() || !scope.profiles.is_empty();
        homes.retain(|home| {
            (scope.homes.is_empty() || home.found_by.iter().any(|by| by == NAMED))
                && (scope.profiles.is_empty() || scope.profiles.contains(&home.profile))
        });
        homes.sort_by(|a, b| (a.uid, &a.path).cmp(&(b.uid, &b.path)));
        let position: BTreeMap<&str, usize> = homes
            .iter()
            .enumerate()
            .map(|(index, home)| (home.id.as_str(), index))
            .collect();
        let first = |runtime: &Runtime| {
            runtime
                .homes
                .iter()
                .filter_map(|id| position.get(id.as_str()))
                .min()
                .copied()
        };
        let owners: BTreeSet<u32> = homes.iter().map(|home| home.uid).collect();
        runtimes.retain(|runtime| {
            // What serves a home that is not known may serve one of these, but not from elsewhere.
            let may_serve = runtime.homes.is_empty()
                && runtime.managed
                && !runtime.foreign_namespace
                && owners.contains(&runtime.uid);
            !narrowed || first(runtime).is_some() || may_serve
        });
        runtimes.sort_by(|a, b| {
            let key = |runtime: &Runtime| first(runtime).unwrap_or(usize::MAX);
            (key(a), &a.kind, &a.id).cmp(&(key(b), &b.kind, &b.id))
        });
        let used: BTreeSet<&str> = runtimes
            .iter()
            .filter_map(|runtime| runtime.install.as_deref())
            .collect();
        let mut installs: Vec<Install> = self
            .installs
            .into_values()
            .filter(|install| {
                !narrowed
                    || used.contains(install.id.as_str())
                    || homes.iter().any(|home| install.roots.contains(&home.root))
            })
            .collect();
        installs.sort_by(|a, b| a.path.cmp(&b.path));
        let mut notes = self.notes;
        notes.sort_unstable();
        notes.dedup();
        for home in homes
            .iter()
            .filter(|home| matches!(home.status, HomeStatus::Foreign(_)))
        {
            notes.push(format!("{} is not its user's", home.path.display()));
        }
        Inventory {
            homes,
            installs,
            runtimes,
            collectors: self.collectors,
            notes,
        }
    }
}

/// The id of a slot: stable over restarts, and over inventories.
fn unit_id(manager: Manager, unit: &str, kind: &str) -> String {
    match manager {
        Manager::System => format!("system/{unit}/{kind}"),
        Manager::User(uid) => format!("user-{uid}/{unit}/{kind}"),
    }
}

/// Whether a command line is an installer's that changes packages.
fn installer(argv: &[String]) -> bool {
    let words: Vec<&str> = argv
        .iter()
        .skip(1)
        .map(String::as_str)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let is_pip = words.first().is_some_and(|word| {
        let name = word.rsplit('/').next().unwrap_or(word);
        name.strip_prefix("pip")
            .is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
    });
    is_pip
        && words
            .get(1)
            .is_some_and(|word| matches!(*word, "install" | "uninstall"))
}

#[cfg(test)]
mod tests;
