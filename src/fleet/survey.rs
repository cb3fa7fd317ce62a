//! What one account knows: its homes, the units of its own manager, what its runtimes say of
//! themselves, and the code that they run. The work that root never does in a user's tree.
//!
//! A [`Survey`] is done by a helper of that account (`helper`), or in this process where we are
//! that account. The parent says which processes and units of the system manager are the account's;
//! the answer says which homes they serve and which install they run. It reads, and nothing else.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::homes::{self, Candidate, HomesFound, Reach};
use super::installs::{self, Place, Program};
use super::procfs::Flocks;
use super::runtimes::{self, HomeEvidence, Recognised};
use super::units::{self, ManagerState, UnitsFound};
use super::{
    Collector, Home, HomeStatus, Incarnation, Install, Manager, Phase, Process, SelfReport, Unit,
    procfs, selfreport,
};
use crate::app::App;
use crate::error::Result;
use crate::helper::Task;
use crate::world::{self, Account, World};

/// How long one control socket may take.
const SOCKET_LIMIT: Duration = Duration::from_millis(400);

/// A state file that was written this lately speaks of a runtime that may live elsewhere.
const FRESH: Duration = Duration::from_secs(300);

/// One account's part of the inventory.
#[derive(Debug, Serialize, Deserialize)]
pub struct Survey {
    /// The application.
    pub app: App,
    /// Where to look for homes.
    pub candidates: Vec<Candidate>,
    /// What runs, or should run, as this account or on its homes.
    pub asked: Vec<Asked>,
    /// Units of the account's own manager that processes were found in; `None`: do not ask it.
    pub cgroup_units: Option<Vec<String>>,
    /// What that manager answered, where it was asked already.
    #[serde(skip)]
    pub own: Option<Asking>,
    /// Budget of the whole survey, in milliseconds.
    pub limit_millis: u64,
}

/// Who a question or an answer is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Key {
    /// A process.
    Process(u32),
    /// A unit of a service manager.
    Unit(Manager, String),
}

/// A process or a stopped unit whose homes and install are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Who it is.
    pub key: Key,
    /// What the kernel says of it; for a unit, what its files would make the kernel say.
    pub process: Process,
    /// What its command line says.
    pub recognised: Recognised,
}

/// What is known of somebody who was asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// Who it is.
    pub key: Key,
    /// Ids of the homes that it serves.
    pub homes: Vec<String>,
    /// How that is known, or why it is not.
    pub evidence: String,
    /// Id of the install that it runs.
    pub install: Option<String>,
}

/// The answer to a [`Survey`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surveyed {
    /// Homes that the account owns or has folders for.
    pub homes: Vec<Home>,
    /// Installs that something of the account runs, and checkouts below its root homes.
    pub installs: Vec<Install>,
    /// Units of its manager that concern the application.
    pub units: Vec<Unit>,
    /// What is known of everybody who was asked about, and of the units above.
    pub served: Vec<Served>,
    /// What the runtimes say of themselves.
    pub reports: Vec<SelfReport>,
    /// How each source answered.
    pub collectors: Vec<Collector>,
    /// Facts worth a line.
    pub notes: Vec<String>,
}

impl Task for Survey {
    const VERB: &'static str = "survey";
    type Event = ();
    type Answer = Surveyed;

    fn perform(self, world: &World, _: &mut dyn FnMut(()) -> Result<()>) -> Result<Surveyed> {
        let deadline = Instant::now() + Duration::from_millis(self.limit_millis);
        let mut answer = Surveyed::default();
        let mut asked = self.asked;
        if let Some(names) = &self.cgroup_units {
            let limit = Duration::from_millis(self.limit_millis);
            let ask = || ask_own(world, &self.app, || names.clone(), limit);
            let Asking(found) = self.own.unwrap_or_else(ask);
            take_units(
                &mut answer,
                &format!("manager of {}", world.account.name),
                world.account.uid,
                names,
                found,
            );
            let slots = answer
                .units
                .iter()
                .filter_map(|unit| ask_unit(&self.app, unit, world.account.uid));
            asked.extend(slots);
        }
        let mut candidates = self.candidates;
        for asked in &asked {
            candidates.extend(claimed(&self.app, asked, &world.account.home));
        }
        let found = homes::enumerate(&self.app, world.account.uid, &candidates);
        // Asked once for all homes. Without the list the files still speak for themselves.
        let locks = Flocks::default();
        answer.reports = reports(&self.app, world, &found, deadline, &locks, &mut answer);
        let mut code = Code {
            app: &self.app,
            installs: BTreeMap::new(),
            places: Vec::new(),
            programs: Vec::new(),
        };
        for asked in &asked {
            answer.served.push(serve(
                &self.app,
                world,
                asked,
                &found,
                &answer.reports,
                &mut code,
            ));
        }
        for root in &found.roots {
            if let Some(place) = installs::checkout_of(&self.app, &root.path) {
                let id = code.describe(place);
                if let Some(install) = code.installs.get_mut(&id) {
                    install.roots.push(root.path.clone());
                }
            }
        }
        answer.installs = code.installs.into_values().collect();
        answer.notes.extend(found.notes);
        let name = format!("homes of {}", world.account.name);
        answer.collectors.push(match found.trouble.as_slice() {
            [] => Collector::ok(name, world.account.uid, found.homes.len()),
            trouble => Collector {
                found: found.homes.len(),
                ..Collector::unverified(name, world.account.uid, trouble.join("; "))
            },
        });
        answer.homes = found.homes;
        flag_other_hosts(&self.app, &locks, &mut answer);
        if let Some(error) = locks.trouble() {
            answer.notes.push(format!("/proc/locks: {error}"));
        }
        Ok(answer)
    }
}

/// What a manager answered, or why it did not.
#[derive(Debug)]
pub struct Asking(Result<UnitsFound>);

/// Asks our own manager about its units, of a survey that may take so long.
pub(super) fn ask_own(
    world: &World,
    app: &App,
    names: impl FnOnce() -> Vec<String>,
    limit: Duration,
) -> Asking {
    let manager = Manager::User(world.account.uid);
    // Half the budget: the homes must be told even if the manager is mute.
    Asking(units::survey(manager, app, names, limit / 2))
}

/// Adds what a manager answered, and says how it went. A manager that has processes in its control
/// groups and knows none of their units did not tell the truth.
pub(super) fn take_units(
    answer: &mut Surveyed,
    name: &str,
    uid: u32,
    names: &[String],
    found: Result<UnitsFound>,
) {
    let collector = match found {
        Ok(found) => {
            let collector = match &found.manager_state {
                ManagerState::Answered(_) => Collector::ok(name, uid, found.units.len()),
                ManagerState::Absent if names.is_empty() => {
                    Collector::skipped(name, uid, "no manager")
                }
                ManagerState::Absent => {
                    let reason = format!(
                        "there is none, and processes are in its {}",
                        names.join(", ")
                    );
                    Collector::unverified(name, uid, reason)
                }
                ManagerState::NoBus(reason) => Collector::unverified(name, uid, reason.clone()),
            };
            answer.notes.extend(found.notes);
            answer.units.extend(found.units);
            collector
        }
        Err(error) => Collector::unverified(name, uid, error.to_string()),
    };
    answer.collectors.push(collector);
}

/// What a unit would start, as a question; `None` if it would start no runtime.
pub(super) fn ask_unit(app: &App, unit: &Unit, uid: u32) -> Option<Asked> {
    let manager = unit.manager?;
    let variables: Vec<(String, String)> = unit
        .environment
        .iter()
        .filter_map(|assignment| assignment.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let (argv, recognised) = unit.exec_start.iter().find_map(|argv| {
        let argv = with_variables(argv, &variables);
        let recognised = units::recognise_exec(app, &argv)?;
        let own = (0..argv.len()).find(|start| runtimes::recognise(app, &argv[*start..]).is_some());
        Some((argv[own.unwrap_or(0)..].to_vec(), recognised))
    })?;
    Some(Asked {
        key: Key::Unit(manager, unit.name.clone()),
        process: Process {
            incarnation: Incarnation {
                boot_id: String::new(),
                pid: 0,
                start_ticks: 0,
                pid_namespace: None,
            },
            uid,
            parent: 0,
            session: 0,
            terminal: 0,
            argv,
            cgroup: unit.control_group.clone(),
            exe: None,
            exe_deleted: false,
            cwd: Some(unit.working_directory.clone()).filter(|path| path.is_absolute()),
            env: variables,
            env_readable: true,
            caught_signals: 0,
            started_at_nanos: 0,
        },
        recognised,
    })
}

/// Replaces `$NAME` and `${NAME}` as a service manager does before it starts something
/// (systemd.service(5), "Command lines"); what is not known stays as it is.
fn with_variables(argv: &[String], variables: &[(String, String)]) -> Vec<String> {
    let value = |name: &str| {
        variables
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value)
    };
    let braced = |word: &str| {
        variables
            .iter()
            .fold(word.to_owned(), |word, (name, value)| {
                word.replace(&format!("${{{name}}}"), value)
            })
    };
    argv.iter()
        .map(|word| {
            word.strip_prefix('$')
                .and_then(value)
                .cloned()
                .unwrap_or_else(|| braced(word))
        })
        .collect()
}

/// The place that somebody's command line and environment name.
pub(super) fn claimed(app: &App, asked: &Asked, account_home: &Path) -> Option<Candidate> {
    let path = runtimes::named_place(app, &asked.process, &asked.recognised, Some(account_home))?;
    let found_by = match &asked.key {
        Key::Process(pid) => format!("process {pid}"),
        Key::Unit(_, unit) => format!("unit {unit}"),
    };
    Some(Candidate {
        path,
        found_by,
        reach: Reach::Claimed,
    })
}

fn serve(
    app: &App,
    world: &World,
    asked: &Asked,
    found: &HomesFound,
    reports: &[SelfReport],
    code: &mut Code<'_>,
) -> Served {
    // A pid in a home's file counts only if its process is the home's owner's.
    let reports = if asked.process.uid == world.account.uid {
        reports
    } else {
        &[]
    };
    let HomeEvidence {
        homes,
        mut evidence,
    } = runtimes::home_of(
        app,
        &asked.process,
        &asked.recognised,
        Some(&world.account.home),
        reports,
        &|root| found.sticky(root),
    );
    let mut ids: Vec<String> = Vec::new();
    for path in homes {
        match found.at(&path) {
            Some(home) if !ids.contains(&home.id) => ids.push(home.id.clone()),
            Some(_) => {}
            None => evidence.push_str(&format!(
                "; {} is no home of {}",
                path.display(),
                world.account.name
            )),
        }
    }
    let program = Program {
        argv: runtimes::program_words(app, &asked.process.argv).to_vec(),
        exe: asked.process.exe.clone(),
        cwd: asked.process.cwd.clone(),
        env: code_variables(&asked.process.env),
        home: world.account.home.clone(),
    };
    Served {
        key: asked.key.clone(),
        homes: ids,
        evidence,
        install: code.of(program),
    }
}

/// Those that tell which code runs: the others differ from one runtime to the next.
fn code_variables(env: &[(String, String)]) -> Vec<(String, String)> {
    let wanted = installs::wanted_variables();
    env.iter()
        .filter(|(name, _)| wanted.contains(name))
        .cloned()
        .collect()
}

/// Installs, each described once.
struct Code<'a> {
    app: &'a App,
    installs: BTreeMap<String, Install>,
    places: Vec<(Place, String)>,
    programs: Vec<(Program, Option<String>)>,
}

impl Code<'_> {
    /// The install that a program runs; many runtimes are started the same way.
    fn of(&mut self, program: Program) -> Option<String> {
        if let Some((_, id)) = self.programs.iter().find(|(known, _)| *known == program) {
            return id.clone();
        }
        let id = installs::locate(self.app, &program).map(|place| self.describe(place));
        self.programs.push((program, id.clone()));
        id
    }

    fn describe(&mut self, place: Place) -> String {
        if let Some((_, id)) = self.places.iter().find(|(known, _)| *known == place) {
            return id.clone();
        }
        let install = installs::describe(self.app, &place);
        let id = install.id.clone();
        self.installs.entry(id.clone()).or_insert(install);
        self.places.push((place, id.clone()));
        id
    }
}

/// What the runtimes say of themselves in every home.
fn reports(
    app: &App,
    world: &World,
    found: &HomesFound,
    deadline: Instant,
    locks: &Flocks,
    answer: &mut Surveyed,
) -> Vec<SelfReport> {
    let mut reports = Vec::new();
    let mut unread = 0;
    let homes = found.homes.iter().filter(|home| {
        !matches!(
            home.status,
            HomeStatus::Foreign(_) | HomeStatus::Unreadable(_)
        )
    });
    for home in homes {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            unread += 1;
            continue;
        }
        for kind in app
            .runtimes
            .iter()
            .filter(|kind| kind.self_report.is_some())
        {
            let said = selfreport::read(&home.path, kind, locks, left.min(SOCKET_LIMIT));
            reports.extend(said.reports);
            answer.notes.extend(said.notes);
        }
    }
    let name = format!("self of {}", world.account.name);
    answer.collectors.push(if unread == 0 {
        Collector::ok(name, world.account.uid, reports.len())
    } else {
        let reason = format!("the time was up before {unread} homes were asked");
        Collector::unverified(name, world.account.uid, reason)
    });
    reports
}

/// Flags homes that something serves which is not of this machine, or not of our namespaces: its
/// code is not what we see, and nobody here can restart it.
fn flag_other_hosts(app: &App, locks: &Flocks, answer: &mut Surveyed) {
    for home in &mut answer.homes {
        home.foreign_state = foreign_holder(app, home, locks);
    }
    let mut by_path: BTreeMap<&Path, &mut Option<String>> = answer
        .homes
        .iter_mut()
        .map(|home| (home.path.as_path(), &mut home.foreign_state))
        .collect();
    for report in &answer.reports {
        let Some(text) = said_elsewhere(app, report) else {
            continue;
        };
        if let Some(state) = by_path.get_mut(report.home.as_path()) {
            state.get_or_insert(text);
        }
    }
}

/// Who holds a home's lock, if it lives in another namespace: a container that shares the folder.
fn foreign_holder(app: &App, home: &Home, locks: &Flocks) -> Option<String> {
    let files = app.runtimes.iter().filter_map(|kind| {
        let rules = kind.self_report.as_ref()?;
        std::fs::metadata(home.path.join(rules.lock_file.as_deref()?)).ok()
    });
    files
        .flat_map(|file| locks.holders(&file, &[]))
        .find(|pid| procfs::is_foreign(*pid).unwrap_or(false))
        .map(|pid| format!("process {pid} in another namespace holds its lock"))
}

/// What a report says of a runtime on another machine: its pid and state files agree, the state
/// says that it serves, it was written just now, and no such process is here.
fn said_elsewhere(app: &App, report: &SelfReport) -> Option<String> {
    let serves = matches!(
        report.phase,
        Phase::Running | Phase::Starting | Phase::Draining
    );
    // A runtime that was stopped here takes its pid file away and may leave its state.
    let rules = app.runtime(&report.kind)?.self_report.as_ref()?;
    let both = std::fs::symlink_metadata(report.home.join(&rules.pid_file)).is_ok();
    let here = procfs::start_ticks(report.pid).ok().flatten() == Some(report.start_ticks);
    let age = age_of(report.updated_at.as_deref()?)?;
    (serves && both && !here && age <= FRESH).then(|| {
        format!(
            "its state was written {} s ago and names process {}, which is not on this machine",
            age.as_secs(),
            report.pid
        )
    })
}

/// How long ago a time was that a runtime wrote; a time in the future is now.
fn age_of(text: &str) -> Option<Duration> {
    let time: jiff::Timestamp = text.parse().ok()?;
    let then = Duration::from_secs(u64::try_from(time.as_second()).ok()?);
    Some(world::now().saturating_sub(then))
}

/// The uid that a system unit runs as; `None` where its user does not exist (yet).
pub(super) fn uid_of_unit(accounts: &[Account], user: &str) -> Option<u32> {
    if user.is_empty() {
        return Some(0);
    }
    accounts
        .iter()
        .find(|account| account.name == user)
        .map(|account| account.uid)
        .or_else(|| user.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_as_a_service_manager_does() {
        let variables = [("PROFILE".to_owned(), "ops".to_owned())];
        let argv = [
            "hermes",
            "-p",
            "${PROFILE}",
            "$PROFILE",
            "a-${PROFILE}",
            "$OTHER",
        ]
        .map(str::to_owned);
        let expected = ["hermes", "-p", "ops", "ops", "a-ops", "$OTHER"].map(str::to_owned);
        assert_eq!(with_variables(&argv, &variables), expected);
    }

    #[test]
    fn a_manager_that_denies_what_the_kernel_shows_is_not_believed() {
        let mut answer = Surveyed::default();
        take_units(
            &mut answer,
            "manager of ann",
            1001,
            &[],
            Ok(UnitsFound::default()),
        );
        take_units(
            &mut answer,
            "manager of ann",
            1001,
            &["x.service".into()],
            Ok(UnitsFound::default()),
        );
        let outcomes: Vec<_> = answer
            .collectors
            .iter()
            .map(|collector| collector.outcome)
            .collect();
        use crate::fleet::CollectorOutcome::{Skipped, Unverified};
        assert_eq!(outcomes, [Skipped, Unverified]);
    }

    #[test]
    fn a_time_with_an_offset_has_an_age() {
        assert!(age_of("1970-01-01T00:00:00+00:00").is_some_and(|age| age > FRESH));
        assert!(age_of("2970-01-01T00:00:00.5Z").is_some_and(|age| age.is_zero()));
        assert_eq!(age_of("yesterday"), None);
    }
}
