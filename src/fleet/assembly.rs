//! From what each source said to one inventory: which processes are one runtime, which unit keeps
//! it, which stopped units are slots of their own, and what is only a note.
//!
//! Everything was read before; the one thing that is still asked is the kernel, about processes
//! that a self report names and no command line showed.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::installs;
use super::inventory::{Answered, NAMED, Scope, uid_of_unit};
use super::processes::{Scan, Seen, ancestors};
use super::runtimes::{self, OTHER, Recognised};
use super::supervisors::supervisor_of;
use super::survey::{Key, Served, Surveyed, ask_unit};
use super::{
    Collector, Home, HomeStatus, Install, Inventory, Manager, Runtime, SelfReport, Supervisor,
    Unit, procfs,
};
use crate::app::App;
use crate::world::{self, Account};

/// A command that nobody keeps must have run this long to count as something that serves.
const LONG_LIVED_NANOS: u128 = 60 * 1_000_000_000;

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
                    managed: true,
                },
            });
        }
        self.scan.seen.extend(added);
    }

    /// One row for everything of one kind that one unit or one parent keeps.
    fn runtimes(&mut self) -> Vec<Runtime> {
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

    fn report_of(&self, one: &Seen) -> Option<&SelfReport> {
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

    /// Whether we run inside of the unit that would be restarted.
    fn shares_unit(&self, supervisor: &Supervisor) -> bool {
        let Supervisor::Systemd { scope, unit } = supervisor else {
            return false;
        };
        procfs::innermost_service(&self.scan.our_cgroup).is_some_and(|ours| {
            ours.unit == *unit && ours.manager_uid.map_or(Manager::System, Manager::User) == *scope
        })
    }

    /// Units that should run a runtime, and have no process of it.
    fn slots(&mut self) -> Vec<Runtime> {
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
    fn tenants(&mut self, runtimes: &[Runtime]) -> Vec<Runtime> {
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

    fn install_at(&self, program: &Path) -> Option<String> {
        self.installs
            .values()
            .find(|install| program.starts_with(&install.path))
            .map(|install| install.id.clone())
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

/// The homes that accounts say they have, by what the kernel calls their folders.
#[derive(Default)]
struct Claims(BTreeMap<(u64, u64), (u32, Home)>);

impl Claims {
    /// Hears what the account `by` says of a home.
    fn add(&mut self, by: u32, mut home: Home) {
        if home.uid != by && !matches!(home.status, HomeStatus::Foreign(_)) {
            home.status = HomeStatus::Foreign(format!("the folder belongs to uid {}", home.uid));
        }
        let Some((known_by, known)) = self.0.remove(&home.file_id) else {
            self.0.insert(home.file_id, (by, home));
            return;
        };
        // Its owner knows best what it is, and of two who say that they are it, the kernel knows.
        let is_better =
            home.uid == by && (known.uid != known_by || (by != known_by && !is_owned(&known)));
        let ((by, mut best), other) = if is_better {
            ((by, home), known)
        } else {
            ((known_by, known), home)
        };
        for found_by in other.found_by {
            if !best.found_by.contains(&found_by) {
                best.found_by.push(found_by);
            }
        }
        self.0.insert(best.file_id, (by, best));
    }

    /// One home for each folder and for each id. One that only a link leads to is a matter of whoever
    /// has the link, and no row of its owner's.
    fn settle(self, notes: &mut Vec<String>) -> Vec<Home> {
        let mut homes: BTreeMap<String, Home> = BTreeMap::new();
        for (by, mut home) in self.0.into_values() {
            home.uid = by;
            let Some(known) = homes.remove(&home.id) else {
                homes.insert(home.id.clone(), home);
                continue;
            };
            let (kept, dropped) = if is_owned(&known) || !is_owned(&home) {
                (known, home)
            } else {
                (home, known)
            };
            notes.push(format!(
                "uid {} says that {} is {}",
                dropped.uid,
                dropped.path.display(),
                kept.path.display()
            ));
            homes.insert(kept.id.clone(), kept);
        }
        homes.into_values().collect()
    }
}

/// Whether the kernel says of a home what its owner said. Asked only where two contradict each other. The
/// folder is looked at by the path without links that gives the id, so a link that is swapped meanwhile
/// cannot lend another's.
fn is_owned(home: &Home) -> bool {
    std::fs::canonicalize(&home.path).is_ok_and(|real| {
        std::fs::symlink_metadata(&real).is_ok_and(|meta| {
            meta.uid() == home.uid
                && (meta.dev(), meta.ino()) == home.file_id
                && installs::identifier(&real) == home.id
        })
    })
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
