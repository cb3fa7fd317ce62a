//! What a service manager keeps: the units that run, or should run, a runtime of the application.
//!
//! [`survey`] lists, and asks in full only about units that a recognised process was found in or
//! whose files name the application's program; a unit that nobody loaded is read from its files,
//! because asking for it would load it, and everybody who watches the manager would see that.
//! [`read`] is how one reply becomes a [`Unit`]; `restart/systemd` reads with it too.
//! Nothing here changes, loads or judges a unit.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::DirEntry;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use memchr::memmem;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use zbus::{OwnedObjectPath, OwnedVariant};

use self::bus::{Bus, Reach, Trouble};
use self::files::Names;
use super::runtimes::{self, Recognised};
use super::{Manager, Unit};
use crate::app::App;
use crate::error::{Error, Result};
use crate::world;

pub mod bus;
pub mod files;
mod properties;

pub use properties::read;
use properties::read_each;

/// The standard interface that all properties of an object are read with.
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

/// Programs that run the command line that follows them in their own place or as their child.
const WRAPPERS: &[&str] = &[
    "env",
    "nice",
    "ionice",
    "chrt",
    "taskset",
    "timeout",
    "flock",
    "setpriv",
    "runuser",
    "setsid",
    "stdbuf",
    "systemd-inhibit",
    "dbus-run-session",
    "xvfb-run",
    "catchsegv",
    "exec",
];

/// What a survey of one manager found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitsFound {
    /// The units, sorted by name.
    pub units: Vec<Unit>,
    /// How many service units the manager has in memory, of any program.
    pub listed: usize,
    /// Whether there is a manager, and what it says of itself.
    pub manager_state: ManagerState,
    /// Facts worth a line: units that vanished while they were read, files that cannot be read.
    pub notes: Vec<String>,
}

/// Whether a service manager can be asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ManagerState {
    /// It answered: `running`, `degraded`, `starting`, `stopping`, `maintenance`.
    Answered(String),
    /// There is none: a fact.
    #[default]
    Absent,
    /// There is one, and no bus to ask it on; and why.
    NoBus(String),
}

/// One line of the manager's list.
type Listed = (
    String,
    String,
    String,
    String,
    String,
    String,
    OwnedObjectPath,
    u32,
    String,
    OwnedObjectPath,
);

/// Reads the units of `manager` that concern `app`: those in `cgroup_units`, which is called when the list of
/// units is about to be asked for, those whose `ExecStart=`
/// runs one of its runtimes, in any state, and the enabled ones that nobody loaded.
///
/// `limit` holds for the connection and for each call. A user's manager is asked by that user only.
///
/// # Errors
/// When the manager exists and does not answer, or answers what cannot be read.
pub fn survey(
    manager: Manager,
    app: &App,
    cgroup_units: impl FnOnce() -> Vec<String>,
    limit: Duration,
) -> Result<UnitsFound> {
    let mut bus = match Bus::reach(manager, limit)? {
        Reach::Bus(bus) => bus,
        Reach::NoManager => return Ok(UnitsFound::default()),
        Reach::NoBus(reason) => {
            return Ok(UnitsFound {
                manager_state: ManagerState::NoBus(reason),
                ..UnitsFound::default()
            });
        }
    };
    let who = bus::name_of(manager);
    let survey = Survey {
        app,
        names: names(manager),
        notes: Vec::new(),
        path: Vec::new(),
    };
    survey
        .take(&mut bus, cgroup_units)
        .map_err(|trouble| trouble.into_error(&who))
}

/// Whether everything that a unit hangs on is active: what stops takes those along that are bound to
/// it, that require it or are part of it (systemd.unit(5)).
fn dependencies_active(bus: &mut Bus, unit: &Unit) -> Result<bool, Trouble> {
    let names: BTreeSet<&str> = [&unit.binds_to, &unit.requires, &unit.part_of]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    let any: &[&str] = &[];
    let patterns: Vec<&str> = names.iter().copied().collect();
    // No pattern would mean every unit.
    if patterns.is_empty() {
        return Ok(true);
    }
    let listed: Vec<Listed> = bus.query_manager("ListUnitsByPatterns", &(any, patterns))?;
    Ok(names.iter().all(|name| {
        listed
            .iter()
            .any(|other| other.0 == *name && other.3 == "active")
    }))
}

struct Survey<'a> {
    app: &'a App,
    names: Names,
    notes: Vec<String>,
    /// The folders that unit files are looked for in, the first wins.
    path: Vec<PathBuf>,
}

/// What the names of unit files end in, and of the folders of drop-ins for one, for instances, or for all.
const SERVICE: &str = ".service";
const DROP_INS: &str = "service.d";

/// A unit file, and whether it or a drop-in names the application's program.
#[derive(Debug, Clone)]
struct Listing {
    path: PathBuf,
    mentions: bool,
}

impl Survey<'_> {
    fn take(
        mut self,
        bus: &mut Bus,
        cgroup_units: impl FnOnce() -> Vec<String>,
    ) -> Result<UnitsFound, Trouble> {
        let [state, path] =
            ["SystemState", "UnitPath"].map(|name| (bus::MANAGER_PATH, (bus::MANAGER, name)));
        let mut said = bus
            .query_each::<_, OwnedVariant>(&[state, path], PROPERTIES, "Get")
            .into_iter();
        let mut next = || {
            said.next()
                .unwrap_or_else(|| Err(Trouble::Lost("no answer".into())))
        };
        let lost = |error: zbus::Error| Trouble::Lost(error.to_string());
        let state: String = next()?.try_into().map_err(lost)?;
        let path: Vec<String> = next()?.try_into().map_err(lost)?;
        self.path = path.into_iter().map(PathBuf::from).collect();
        // A unit that is loaded from a file of after this is asked itself.
        let files = self.look_at();

        // Names of before the list: what has ended since is in neither, what came since is in the list.
        let cgroup_units = cgroup_units();
        let pattern = ["*.service"].as_slice();
        let any: &[&str] = &[];
        let listed: Vec<Listed> = bus.query_manager("ListUnitsByPatterns", &(any, pattern))?;
        let loaded: BTreeMap<&str, &Listed> =
            listed.iter().map(|unit| (unit.0.as_str(), unit)).collect();

        let mut units = Vec::new();
        let wanted: BTreeSet<&str> = cgroup_units.iter().map(String::as_str).collect();
        let asked: Vec<&Listed> = listed
            .iter()
            .filter(|unit| {
                let (name, load_state) = (unit.0.as_str(), unit.2.as_str());
                // A stub is about to be loaded; asking for it in full loads it first.
                let mentioned =
                    || matches!(load_state, "loaded" | "stub") && mentions(&files, name);
                wanted.contains(name) || mentioned()
            })
            .collect();
        let objects: Vec<&str> = asked.iter().map(|unit| unit.6.as_str()).collect();
        for (unit, facts) in asked.into_iter().zip(read_each(bus, &objects)) {
            let name = unit.0.as_str();
            match facts {
                Ok(mut facts) => {
                    narrow_environment(self.app, &mut facts);
                    if wanted.contains(name) || self.runs(&facts) {
                        units.push(facts);
                    }
                }
                Err(Trouble::Refused { message, .. }) => {
                    self.notes.push(format!("{name} vanished: {message}"));
                }
                Err(trouble) => return Err(trouble),
            }
        }
        for name in wanted {
            if !loaded.contains_key(name) {
                self.notes
                    .push(format!("{name} has processes and is not loaded"));
            }
        }
        units.extend(self.unloaded(bus, &files, &loaded)?);
        for unit in units
            .iter_mut()
            .filter(|unit| unit.active_state == "failed")
        {
            unit.dependencies_active = dependencies_active(bus, unit)?;
        }
        units.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(UnitsFound {
            units,
            listed: listed.len(),
            manager_state: ManagerState::Answered(state),
            notes: self.notes,
        })
    }

    fn runs(&self, unit: &Unit) -> bool {
        unit.exec_start
            .iter()
            .any(|argv| recognise_exec(self.app, argv).is_some_and(|found| found.managed))
    }

    /// Which unit files, or drop-ins for them, name the application's program.
    ///
    /// The folders are read here: asking the manager for all its files costs it a quarter of a second,
    /// as it looks up for each whether it is enabled.
    fn look_at(&mut self) -> BTreeMap<String, Listing> {
        let listed: Vec<(PathBuf, Vec<DirEntry>)> = self
            .path
            .iter()
            .map(|root| (root.clone(), ending(root, &[SERVICE, DROP_INS]).collect()))
            .collect();
        let drop_ins = self.mentioning_drop_ins(&listed);
        let mut found: BTreeMap<String, Listing> = BTreeMap::new();
        let mut bytes = Vec::new();
        for (root, entries) in listed {
            // Below an open folder a name is found without the way to it.
            let folder = match files::folder(&root) {
                Ok(folder) => folder,
                Err(Errno::NOENT) => continue,
                Err(error) => {
                    let note = format!("cannot open {}: {error}", root.display());
                    self.notes.push(note);
                    continue;
                }
            };
            for entry in entries {
                let path = entry.path();
                let name = path.file_name().and_then(|name| name.to_str());
                let Some(name) = name.filter(|name| name.ends_with(SERVICE)) else {
                    continue;
                };
                // A file of the same name in an earlier folder hides this one.
                if found.contains_key(name) {
                    continue;
                }
                let dropped = files::drop_in_folders(name)
                    .iter()
                    .any(|folder| drop_ins.contains(folder));
                let mentions = !is_another(&entry, &path, name)
                    && (dropped
                        || match files::read_in(folder.as_fd(), name, &mut bytes) {
                            Ok(()) => self.names_program(&bytes),
                            Err(error) => {
                                // A unit may outlive its file; it is asked in full instead.
                                if error.kind() != std::io::ErrorKind::NotFound {
                                    let note = format!("cannot read {}: {error}", path.display());
                                    self.notes.push(note);
                                }
                                true
                            }
                        });
                found.insert(name.to_owned(), Listing { path, mentions });
            }
        }
        // Specific drop-ins of one instance concern that instance alone.
        for folder in drop_ins {
            if let Some(name) = folder.strip_suffix(".d")
                && let Some(template) = files::template(name)
                && let Some(listing) = found.get(&template).cloned()
            {
                let mentions = true;
                found.insert(
                    name.to_owned(),
                    Listing {
                        mentions,
                        ..listing
                    },
                );
            }
        }
        found
    }

    /// The names of the drop-in folders that hold a file which names the program.
    fn mentioning_drop_ins(&self, listed: &[(PathBuf, Vec<DirEntry>)]) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for (_, entries) in listed {
            for entry in entries {
                let folder = entry.path();
                if !folder
                    .as_os_str()
                    .as_encoded_bytes()
                    .ends_with(DROP_INS.as_bytes())
                {
                    continue;
                }
                let Some(name) = folder.file_name().and_then(|name| name.to_str()) else {
                    continue;
                };
                let mentions = std::fs::read_dir(&folder).is_ok_and(|listing| {
                    listing.flatten().any(|file| {
                        file.path().extension().is_some_and(|ext| ext == "conf")
                            && files::read(&file.path())
                                .is_ok_and(|bytes| self.names_program(&bytes))
                    })
                });
                if mentions {
                    found.insert(name.to_owned());
                }
            }
        }
        found
    }

    /// Whether a file holds one of the words that every command line of the program has.
    fn names_program(&self, bytes: &[u8]) -> bool {
        let command = &self.app.command;
        command
            .modules
            .iter()
            .chain(&command.scripts)
            .any(|word| memmem::find(bytes, word.as_bytes()).is_some())
    }

    /// The enabled units that nobody loaded, from their files.
    fn unloaded(
        &mut self,
        bus: &mut Bus,
        files: &BTreeMap<String, Listing>,
        loaded: &BTreeMap<&str, &Listed>,
    ) -> Result<Vec<Unit>, Trouble> {
        let mut found = Vec::new();
        let instances = self.enabled_instances(files);
        let plain = files
            .iter()
            .filter(|(_, listing)| listing.mentions)
            .map(|(name, listing)| (name.clone(), listing.clone()));
        for (name, listing) in plain.chain(instances) {
            // One that something asked for before its file was there is known as not found.
            let known = loaded.get(name.as_str());
            if name.contains("@.") || known.is_some_and(|unit| unit.2 != "not-found") {
                continue;
            }
            // This looks at links of the file and loads nothing.
            let state: String = match bus.query_manager("GetUnitFileState", &name.as_str()) {
                Ok(state) => state,
                Err(Trouble::Refused { message, .. }) => {
                    self.notes.push(format!("{name}: {message}"));
                    continue;
                }
                Err(trouble) => return Err(trouble),
            };
            // One that is not enabled is nobody's slot, and still says which install serves its home.
            if !matches!(
                state.as_str(),
                "enabled" | "enabled-runtime" | "disabled" | "static"
            ) {
                continue;
            }
            match self.unit_from_files(bus.manager(), &name, &listing) {
                Ok(unit) if self.runs(&unit) => found.push(Unit {
                    unit_file_state: state,
                    ..unit
                }),
                Ok(_) => {}
                Err(error) => self.notes.push(error.to_string()),
            }
        }
        Ok(found)
    }

    /// Instances of templates that name the program and that some unit wants (systemctl(1), enable).
    fn enabled_instances(&self, files: &BTreeMap<String, Listing>) -> Vec<(String, Listing)> {
        if !files
            .iter()
            .any(|(name, listing)| name.contains("@.") && listing.mentions)
        {
            return Vec::new();
        }
        let mut found = BTreeMap::new();
        for root in &self.path {
            for kind in [".wants", ".requires", ".upholds"] {
                for folder in ending(root, &[kind]) {
                    let Ok(listing) = std::fs::read_dir(folder.path()) else {
                        continue;
                    };
                    for link in listing.flatten() {
                        let Ok(name) = link.file_name().into_string() else {
                            continue;
                        };
                        let template = files::template(&name);
                        let file = template.and_then(|template| files.get(&template));
                        if let Some(listing) = file.filter(|listing| listing.mentions) {
                            found.insert(name, listing.clone());
                        }
                    }
                }
            }
        }
        found.into_iter().collect()
    }

    fn unit_from_files(&self, manager: Manager, name: &str, listing: &Listing) -> Result<Unit> {
        let names = Names {
            unit: name.to_owned(),
            ..self.names.clone()
        };
        let drop_ins = files::drop_ins(name, &self.path);
        let mut entries = Vec::new();
        for path in std::iter::once(&listing.path).chain(&drop_ins) {
            let bytes = files::read(path)
                .map_err(|error| Error::io(format!("cannot read {}", path.display()), error))?;
            entries.extend(files::parse(&String::from_utf8_lossy(&bytes)));
        }
        let mut unit = from_entries(&entries, &names);
        unit.manager = Some(manager);
        unit.fragment_path.clone_from(&listing.path);
        unit.drop_in_paths = drop_ins;
        narrow_environment(self.app, &mut unit);
        Ok(unit)
    }
}

/// Whether the files of a loaded unit name the program. A unit without a listed file (a transient
/// one, or one whose file went away) is asked itself.
fn mentions(files: &BTreeMap<String, Listing>, name: &str) -> bool {
    let template = files::template(name);
    files
        .get(name)
        .or_else(|| template.as_ref().and_then(|template| files.get(template)))
        .is_none_or(|listing| listing.mentions)
}

/// Whether a link stands for another unit, or for none: an alias is the unit that it leads to, and
/// a masked unit runs nothing.
fn is_another(entry: &DirEntry, path: &Path, name: &str) -> bool {
    // The listing tells what is a link (readdir(3)), so that plain files cost no system call.
    if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
        return false;
    }
    std::fs::read_link(path).is_ok_and(|target| {
        let leads_to = target.file_name().and_then(|name| name.to_str());
        let same = leads_to == Some(name) || leads_to == files::template(name).as_deref();
        target == Path::new("/dev/null") || !same
    })
}

/// What in a folder has a name with such an end; nothing if there is no such folder.
fn ending(root: &Path, ends: &[&str]) -> impl Iterator<Item = DirEntry> {
    let listing = std::fs::read_dir(root).into_iter().flatten().flatten();
    listing.filter(move |entry| {
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        ends.iter().any(|end| name.ends_with(end.as_bytes()))
    })
}

fn names(manager: Manager) -> Names {
    let uid = match manager {
        Manager::System => 0,
        Manager::User(uid) => uid,
    };
    let account = world::account(uid).ok().flatten();
    Names {
        unit: String::new(),
        uid,
        home: account
            .as_ref()
            .map(|account| account.home.to_string_lossy().into_owned())
            .unwrap_or_default(),
        user: account.map(|account| account.name).unwrap_or_default(),
    }
}

/// What an `ExecStart=` starts, also through a shell's `-c` and the usual wrappers.
#[must_use]
pub fn recognise_exec(app: &App, argv: &[String]) -> Option<Recognised> {
    let found = |argv: &[String]| runtimes::recognise(app, argv).filter(|found| found.managed);
    if let Some(direct) = found(argv) {
        return Some(direct);
    }
    let program = argv.first()?;
    let name = program.rsplit('/').next().unwrap_or(program);
    if runtimes::is_shell(argv) {
        let at = argv.iter().position(|word| {
            word.starts_with('-') && !word.starts_with("--") && word.ends_with('c')
        })?;
        let script = files::words(argv.get(at + 1)?);
        return (0..script.len()).find_map(|start| found(&script[start..]));
    }
    if WRAPPERS.contains(&name) {
        return (1..argv.len()).find_map(|start| {
            let rest = &argv[start..];
            found(rest).or_else(|| {
                runtimes::is_shell(rest)
                    .then(|| recognise_exec(app, rest))
                    .flatten()
            })
        });
    }
    None
}

/// Leaves of a unit's environment the variables that tell a home, environment files included: the
/// rest is full of secrets, and nobody needs it.
///
/// A file that cannot be read says nothing here: whether its unit could start without it is the
/// manager's to say (a `-` before the path), and a home that stays unknown is a row of its own.
pub fn narrow_environment(app: &App, unit: &mut Unit) {
    let wanted = runtimes::wanted_variables(app);
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for assignment in &unit.environment {
        if let Some((name, value)) = assignment.split_once('=') {
            found.insert(name.to_owned(), value.to_owned());
        }
    }
    // "Settings from these files override settings made with Environment=" (systemd.exec(5)).
    for path in &unit.environment_files {
        if let Ok(bytes) = files::read(path) {
            found.extend(files::assignments(&String::from_utf8_lossy(&bytes)));
        }
    }
    unit.environment = found
        .into_iter()
        .filter(|(name, _)| wanted.contains(name))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
}

fn from_entries(entries: &[files::Entry], names: &Names) -> Unit {
    let mut unit = Unit {
        name: names.unit.clone(),
        load_state: "loaded".into(),
        active_state: "inactive".into(),
        sub_state: "dead".into(),
        result: "success".into(),
        service_type: "simple".into(),
        restart: "no".into(),
        kill_mode: "control-group".into(),
        job_path: "/".into(),
        condition_result: true,
        ..Unit::default()
    };
    for entry in entries {
        let value = entry.value.as_str();
        let text = || names.expand(value);
        match (entry.section.as_str(), entry.key.as_str()) {
            // An empty assignment resets a list (systemd.syntax(7)).
            ("Service", "ExecStart") if value.is_empty() => unit.exec_start.clear(),
            ("Service", "ExecStart") => unit.exec_start.extend(files::commands(value, names)),
            ("Service", "Environment") if value.is_empty() => unit.environment.clear(),
            ("Service", "Environment") => {
                let words = files::words(value);
                unit.environment
                    .extend(words.iter().map(|word| names.expand(word)));
            }
            ("Service", "EnvironmentFile") if value.is_empty() => unit.environment_files.clear(),
            ("Service", "EnvironmentFile") => {
                let path = names.expand(value.trim_start_matches('-'));
                unit.environment_files.push(path.into());
            }
            ("Service", "WorkingDirectory") => {
                unit.working_directory = text().trim_start_matches('-').into();
            }
            ("Service", "User") => unit.user = text(),
            ("Service", "Type") => unit.service_type = text(),
            ("Service", "Restart") => unit.restart = text(),
            ("Service", "KillMode") => unit.kill_mode = text(),
            ("Unit", "BindsTo") => unit.binds_to.extend(files::words(value)),
            ("Unit", "Requires") => unit.requires.extend(files::words(value)),
            ("Unit", "PartOf") => unit.part_of.extend(files::words(value)),
            ("Unit", "RefuseManualStart") => unit.refuse_manual_start = truth(value),
            ("Unit", "RefuseManualStop") => unit.refuse_manual_stop = truth(value),
            _ => {}
        }
    }
    unit
}

fn truth(value: &str) -> bool {
    matches!(
        value.to_ascii_lowercase().as_str(),
        "1" | "yes" | "true" | "on" | "y" | "t"
    )
}
