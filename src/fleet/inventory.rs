//! One look at the machine: every home, install and runtime in scope, and how each source answered.
//!
//! The kernel is asked once, by us; the system manager by us; everything in a user's tree and on a
//! user's manager by one helper of that user ([`super::survey`]), all side by side and each with a
//! limit. A source that fails makes rows `unverified`, never fewer: what the kernel showed of a user
//! whose helper failed is still there. Nothing here decides what to do, or changes anything.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use super::assembly::{Answered, Gathered, assemble};
use super::homes::{Candidate, Reach};
use super::processes::{self, Scan, Seen};
use super::scope::{NAMED, Scope};
use super::survey::{self, Asked, Key, Survey, Surveyed, uid_of_unit};
use super::units::{self, UnitsFound};
use super::{Collector, Inventory, Manager, procfs};
use crate::app::App;
use crate::error::{Error, Kind, Result};
use crate::helper;
use crate::world::{self, Account, World};

/// How many helpers work at once.
const WORKERS: usize = 16;

/// Takes the inventory. `meanwhile` is called while service managers answer.
///
/// # Errors
/// When the user database does not answer, or a home that was named does not exist: everything
/// else that fails is in the inventory itself.
pub fn take(
    world: &World,
    app: &App,
    scope: &Scope,
    meanwhile: impl FnOnce(),
) -> Result<Inventory> {
    let accounts = accounts_in_scope(world, scope)?;
    let uids: Option<BTreeSet<u32>> = (!world.is_root() || !scope.users.is_empty())
        .then(|| accounts.iter().map(|account| account.uid).collect());
    let mut gathered = Gathered {
        service_manager: Path::new("/run/systemd/system").is_dir(),
        ..Gathered::default()
    };
    if scope.runtimes {
        // By the time that a survey asks who holds a home's lock, the kernel is ready to tell.
        procfs::Flocks::announce();
    }
    // Two managers answer side by side, while processes are looked at; helpers ask those of other users.
    let own = std::thread::scope(|threads| {
        let (tell_system, system_names) = mpsc::channel();
        let (tell_own, own_names) = mpsc::channel();
        // It has most to tell of runtimes, so it comes first.
        let own = (scope.runtimes && !world.is_root()).then(|| {
            let names = move || own_names.recv().unwrap_or_default();
            threads.spawn(|| survey::ask_own(world, app, names, scope.limit))
        });
        let system = scope.runtimes.then(|| {
            let names = move || system_names.recv().unwrap_or_default();
            threads.spawn(|| units::survey(Manager::System, app, names, scope.limit))
        });
        gathered.scan = look_at_processes(world, app, scope, uids.as_ref(), &mut gathered.kernel);
        let of = |manager| units_of(&gathered.scan.seen, manager);
        let mut names = of(Manager::System);
        // A process in a manager's own group is no unit's: there is nothing to ask.
        names.retain(|name| !name.starts_with("user@"));
        // Nobody listens where there is no such manager.
        let _ = tell_system.send(names.clone());
        let _ = tell_own.send(of(Manager::User(world.account.uid)));
        meanwhile();
        gathered.system = system_manager(world, &names, system.map(|system| system.join()));
        own.and_then(|own| own.join().ok())
    });

    let mut plan = Plan {
        world,
        app,
        accounts,
        everybody: world.is_root() && scope.users.is_empty(),
        jobs: BTreeMap::new(),
        notes: Vec::new(),
    };
    plan.add_processes(&gathered.scan.seen);
    plan.add_system_units(&gathered.system);
    let places = places(app, scope, &plan);
    let looked = look(places, scope.limit);
    plan.add_places(scope, looked, &mut gathered)?;
    gathered.accounts = plan.accounts.clone();
    gathered.notes.append(&mut plan.notes);
    let mut jobs = plan.into_jobs(scope, &gathered.scan);
    let mut own_jobs = jobs.iter_mut();
    if let Some((_, survey)) = own_jobs.find(|(account, _)| account.uid == world.account.uid) {
        survey.own = own;
    }
    gathered.surveys = survey_all(world, jobs, scope.limit);
    Ok(assemble(app, scope, gathered))
}

fn accounts_in_scope(world: &World, scope: &Scope) -> Result<Vec<Account>> {
    if scope.users.is_empty() {
        return world.accounts();
    }
    if world.is_root() {
        return Ok(scope.users.clone());
    }
    let own = scope
        .users
        .iter()
        .filter(|account| account.uid == world.account.uid);
    Ok(own.cloned().collect())
}

fn look_at_processes(
    world: &World,
    app: &App,
    scope: &Scope,
    uids: Option<&BTreeSet<u32>>,
    collectors: &mut Vec<Collector>,
) -> Scan {
    let uid = world.account.uid;
    if !scope.runtimes {
        collectors.push(Collector::skipped("kernel", uid, "no manager"));
        return Scan::default();
    }
    match processes::scan(world, app, uids) {
        Ok(scan) => {
            collectors.push(match scan.trouble.as_slice() {
                [] => Collector::ok("kernel", uid, scan.seen.len()),
                trouble => Collector {
                    found: scan.seen.len(),
                    ..Collector::unverified("kernel", uid, trouble.join("; "))
                },
            });
            scan
        }
        Err(error) => {
            collectors.push(Collector::unverified(
                "kernel",
                uid,
                format!("cannot list /proc: {error}"),
            ));
            Scan::default()
        }
    }
}

/// Units of processes that `manager` keeps, by name.
fn units_of(seen: &[Seen], manager: Manager) -> Vec<String> {
    let names: BTreeSet<String> = seen
        .iter()
        // A unit of another machine's manager is no unit of ours, whatever it is called.
        .filter(|seen| !seen.foreign)
        .filter_map(|seen| procfs::innermost_service(&seen.process.cgroup))
        .filter(|group| !group.is_scope())
        .filter(|group| group.manager_uid.map_or(Manager::System, Manager::User) == manager)
        .map(|group| group.unit)
        .collect();
    names.into_iter().collect()
}

/// What the system manager answered, if it was asked.
fn system_manager(
    world: &World,
    names: &[String],
    asked: Option<std::thread::Result<Result<UnitsFound>>>,
) -> Surveyed {
    let mut answer = Surveyed::default();
    let (name, uid) = ("system manager", world.account.uid);
    match asked {
        None => answer
            .collectors
            .push(Collector::skipped(name, uid, "no manager")),
        Some(Ok(found)) => survey::take_units(&mut answer, name, uid, names, found),
        Some(Err(panic)) => std::panic::resume_unwind(panic),
    }
    answer
}

/// What each account will be asked.
struct Plan<'a> {
    world: &'a World,
    app: &'a App,
    accounts: Vec<Account>,
    everybody: bool,
    jobs: BTreeMap<u32, Job>,
    notes: Vec<String>,
}

#[derive(Default)]
struct Job {
    candidates: Vec<Candidate>,
    asked: Vec<Asked>,
}

impl Plan<'_> {
    fn account(&self, uid: u32) -> Option<&Account> {
        self.accounts.iter().find(|account| account.uid == uid)
    }

    /// The account of an owner; one that the user database does not know is made up from its
    /// number where everybody is in scope, as containers' users are.
    fn admit(&mut self, uid: u32) -> bool {
        if self.account(uid).is_some() {
            return true;
        }
        if !self.everybody {
            return false;
        }
        let account = world::account(uid)
            .ok()
            .flatten()
            .unwrap_or_else(|| Account {
                uid,
                gid: uid,
                name: uid.to_string(),
                home: PathBuf::new(),
            });
        self.accounts.push(account);
        true
    }

    fn add_processes(&mut self, seen: &[Seen]) {
        // What lives in another namespace names paths of its own world, not of ours.
        for seen in seen.iter().filter(|seen| !seen.foreign) {
            let uid = seen.process.uid;
            if self.admit(uid) {
                self.jobs.entry(uid).or_default().asked.push(Asked {
                    key: Key::Process(seen.process.incarnation.pid),
                    process: seen.process.clone(),
                    recognised: seen.recognised.clone(),
                });
            }
        }
    }

    fn add_system_units(&mut self, system: &Surveyed) {
        for unit in &system.units {
            // A user that does not exist (yet) keeps its unit from starting: that is root's to know.
            let uid = uid_of_unit(&self.accounts, &unit.user).unwrap_or(0);
            if !self.admit(uid) {
                continue;
            }
            if let Some(asked) = survey::ask_unit(self.app, unit, uid) {
                self.jobs.entry(uid).or_default().asked.push(asked);
            }
        }
    }

    /// Hands each place to its owner.
    fn add_places(&mut self, scope: &Scope, looked: Looked, gathered: &mut Gathered) -> Result<()> {
        let own = self.world.account.uid;
        let Looked::Done { owners, homes } = looked else {
            let reason = "looking at the places of homes did not end in time";
            gathered
                .kernel
                .push(Collector::unverified("places of homes", own, reason));
            // Whoever has a home folder is asked then: the helpers have limits of their own.
            for account in self.accounts.clone() {
                self.add_passwd(&account);
            }
            return Ok(());
        };
        for account in homes {
            self.add_passwd(&account);
        }
        for (place, owner) in owners {
            let uid = match owner {
                Ok(uid) if self.world.is_root() => uid,
                Ok(uid) if uid == own || place.reach == Reach::Exact => own,
                // Another user's system home is out of a user's scope.
                Ok(_) => continue,
                Err(error) if place.reach == Reach::Exact => {
                    let what = format!("cannot look at {}", place.path.display());
                    return Err(Error::new(Kind::Input, what).with_source(error));
                }
                Err(error) => {
                    if place.found_by == "config" || error.kind() != io::ErrorKind::NotFound {
                        let text = format!(
                            "{}: cannot look at {}: {error}",
                            place.found_by,
                            place.path.display()
                        );
                        self.notes.push(text);
                    }
                    continue;
                }
            };
            if self.admit(uid) {
                self.jobs.entry(uid).or_default().candidates.push(place);
            } else if place.found_by != "system" {
                let text = format!(
                    "{} belongs to uid {uid}, which is out of scope",
                    place.path.display()
                );
                self.notes.push(text);
            }
        }
        self.hand_over(scope);
        Ok(())
    }

    fn add_passwd(&mut self, account: &Account) {
        let job = self.jobs.entry(account.uid).or_default();
        if account.home.is_absolute() {
            job.candidates.push(Candidate {
                path: account.home.join(&self.app.home.root),
                found_by: String::from("passwd"),
                reach: Reach::Fleet,
            });
        }
    }

    /// What root runs on a user's home is that user's to answer: root does not look into the tree.
    fn hand_over(&mut self, scope: &Scope) {
        if !self.world.is_root() {
            return;
        }
        let Some(root) = self.jobs.get(&0) else {
            return;
        };
        let root_home = self
            .account(0)
            .map(|account| account.home.clone())
            .unwrap_or_default();
        let claims: Vec<(usize, Candidate)> = root
            .asked
            .iter()
            .enumerate()
            .filter_map(|(index, asked)| {
                Some((index, survey::claimed(self.app, asked, &root_home)?))
            })
            .collect();
        let places = claims
            .iter()
            .map(|(_, candidate)| candidate.clone())
            .collect();
        let Looked::Done { owners, .. } = look(
            Places {
                places,
                ..Places::default()
            },
            scope.limit,
        ) else {
            return;
        };
        let mut moved: Vec<(usize, u32)> = Vec::new();
        for ((index, _), (_, owner)) in claims.iter().zip(&owners) {
            if let Ok(uid) = owner
                && *uid != 0
                && self.account(*uid).is_some()
            {
                moved.push((*index, *uid));
            }
        }
        for (index, uid) in moved.into_iter().rev() {
            let Some(root) = self.jobs.get_mut(&0) else {
                return;
            };
            let asked = root.asked.remove(index);
            self.jobs.entry(uid).or_default().asked.push(asked);
        }
    }

    fn into_jobs(self, scope: &Scope, scan: &Scan) -> Vec<(Account, Survey)> {
        let named: Option<BTreeSet<u32>> = (!scope.homes.is_empty()).then(|| {
            self.jobs
                .iter()
                .filter(|(_, job)| {
                    job.candidates
                        .iter()
                        .any(|candidate| candidate.reach == Reach::Exact)
                })
                .map(|(uid, _)| *uid)
                .collect()
        });
        let limit_millis = u64::try_from(scope.limit.as_millis()).unwrap_or(u64::MAX);
        let mut jobs: Vec<(Account, Survey)> = Vec::new();
        for (uid, mut job) in self.jobs {
            if named.as_ref().is_some_and(|named| !named.contains(&uid)) {
                continue;
            }
            let Some(account) = self.accounts.iter().find(|account| account.uid == uid) else {
                continue;
            };
            // Exact ones first: they say how a home was found, whoever else names it.
            job.candidates
                .sort_by_key(|candidate| candidate.reach != Reach::Exact);
            let cgroup_units = scope
                .runtimes
                .then(|| units_of(&scan.seen, Manager::User(uid)));
            jobs.push((
                account.clone(),
                Survey {
                    app: self.app.clone(),
                    candidates: job.candidates,
                    asked: job.asked,
                    cgroup_units,
                    own: None,
                    limit_millis,
                },
            ));
        }
        jobs
    }
}

/// Places whose owners must be known before anybody can be asked.
#[derive(Default)]
struct Places {
    places: Vec<Candidate>,
    /// Patterns of system services' root homes.
    patterns: Vec<String>,
    /// Accounts of which it must be known whether they have a home or a manager at all.
    accounts: Vec<Account>,
    root: String,
    runtimes: bool,
}

enum Looked {
    Done {
        owners: Vec<(Candidate, io::Result<u32>)>,
        homes: Vec<Account>,
    },
    TimeUp,
}

fn places(app: &App, scope: &Scope, plan: &Plan<'_>) -> Places {
    let candidates = |paths: &[PathBuf], found_by: &str, reach| -> Vec<Candidate> {
        let candidate = |path: &PathBuf| Candidate {
            path: path.clone(),
            found_by: found_by.to_owned(),
            reach,
        };
        paths.iter().map(candidate).collect()
    };
    let mut places = candidates(&scope.homes, NAMED, Reach::Exact);
    places.extend(candidates(&scope.extra_homes, "config", Reach::Fleet));
    Places {
        places,
        patterns: app.home.system.clone(),
        accounts: plan.accounts.clone(),
        root: app.home.root.clone(),
        runtimes: scope.runtimes,
    }
}

/// Looks at places in a thread of its own: a file system that does not answer must not hold us.
fn look(places: Places, limit: Duration) -> Looked {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut candidates = places.places;
        for pattern in &places.patterns {
            candidates.extend(expand(pattern).into_iter().map(|path| Candidate {
                path,
                found_by: String::from("system"),
                reach: Reach::Likely,
            }));
        }
        let owners = candidates
            .into_iter()
            .map(|candidate| {
                let owner = std::fs::metadata(&candidate.path).map(|meta| meta.uid());
                (candidate, owner)
            })
            .collect();
        let homes = places
            .accounts
            .into_iter()
            .filter(|account| {
                let home = account.home.join(&places.root);
                // What may not be looked at may be there.
                let absent = !account.home.is_absolute()
                    || std::fs::symlink_metadata(home).is_err_and(|error| {
                        matches!(
                            error.kind(),
                            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                        )
                    });
                !absent || (places.runtimes && account.runtime_dir().exists())
            })
            .collect();
        // Nobody listens any more if the time was up.
        let _ = sender.send(Looked::Done { owners, homes });
    });
    receiver.recv_timeout(limit).unwrap_or(Looked::TimeUp)
}

/// The paths of a pattern in which a component `*` stands for one folder's name.
fn expand(pattern: &str) -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::from("/")];
    for part in Path::new(pattern).components().skip(1) {
        paths = paths
            .into_iter()
            .flat_map(|path| {
                if part.as_os_str() != "*" {
                    return vec![path.join(part)];
                }
                let Ok(entries) = std::fs::read_dir(&path) else {
                    return Vec::new();
                };
                let mut names: Vec<_> = entries
                    .take(10_000)
                    .flatten()
                    .map(|entry| entry.path())
                    .collect();
                names.sort_unstable();
                names
            })
            .collect();
    }
    paths.retain(|path| std::fs::symlink_metadata(path).is_ok());
    paths
}

/// Asks all accounts side by side. A thread that hangs is left behind.
fn survey_all(world: &World, jobs: Vec<(Account, Survey)>, limit: Duration) -> Vec<Answered> {
    let waves = u32::try_from(jobs.len().div_ceil(WORKERS)).unwrap_or(1);
    let deadline = Instant::now() + limit.saturating_mul(waves) + Duration::from_secs(1);
    let mut waiting: BTreeMap<u32, (Account, Vec<Key>)> = jobs
        .iter()
        .map(|(account, survey)| {
            let keys = survey.asked.iter().map(|asked| asked.key.clone()).collect();
            (account.uid, (account.clone(), keys))
        })
        .collect();
    let others: Vec<&Account> = jobs
        .iter()
        .map(|(account, _)| account)
        .filter(|account| account.uid != world.account.uid)
        .collect();
    // What fails here is asked again, and told, for each account.
    let _ = world::learn_groups(&others);
    let workers = jobs.len().min(WORKERS);
    let queue = Arc::new(Mutex::new(jobs));
    let world = Arc::new(world.clone());
    let (sender, receiver) = mpsc::channel();
    for _ in 0..workers {
        let (queue, world, sender) = (Arc::clone(&queue), Arc::clone(&world), sender.clone());
        std::thread::spawn(move || {
            loop {
                let next = queue.lock().ok().and_then(|mut queue| queue.pop());
                let Some((account, survey)) = next else {
                    return;
                };
                let answer = helper::perform(&world, &account, survey, limit, &mut |()| Ok(()));
                if sender
                    .send((account.uid, answer.map_err(|error| error.to_string())))
                    .is_err()
                {
                    return;
                }
            }
        });
    }
    drop(sender);
    let mut answers = Vec::new();
    while !waiting.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok((uid, answer)) = receiver.recv_timeout(left) else {
            break;
        };
        if let Some((account, keys)) = waiting.remove(&uid) {
            answers.push((account, keys, answer));
        }
    }
    if let Ok(mut queue) = queue.lock() {
        // Nobody listens any more.
        queue.clear();
    }
    for (account, keys) in waiting.into_values() {
        answers.push((
            account,
            keys,
            Err(String::from("it did not answer in time")),
        ));
    }
    answers.sort_by_key(|(account, ..)| account.uid);
    answers
}

#[cfg(test)]
mod tests;
