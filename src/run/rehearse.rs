//! `update rehearse`: the real pipeline on synthetic homes and stand-in runtimes, in one temporary
//! folder that is removed at the end. Nothing of the live fleet is looked at, and nothing of it changes.
//!
//! The stand-ins are a copy of this program in the place of an interpreter: they write the
//! files that a runtime writes, hold its lock, and end on the drain's signal, after which a thread of
//! ours starts the next one, as a supervisor would.

#![expect(
    clippy::disallowed_methods,
    reason = "a rehearsal builds its own folder, and starts its own stand-ins"
)]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGTERM, SIGUSR1};

use super::{Session, apply};
use crate::app::{App, SelfRules};
use crate::config::Places;
use crate::error::{Error, Kind, Result};
use crate::fleet::procfs;
use crate::migrate::Catalog;
use crate::restart::table::Table;
use crate::state::State;
use crate::world::{self, World};

/// The variable that makes this program a stand-in runtime; its value is the home.
pub const STAND_IN: &str = "FLEET_UPDATE_STAND_IN";

/// The profiles of the synthetic fleet.
const PROFILES: &[&str] = &["work", "lab"];

/// How long a stand-in may take to say that it runs.
const START_LIMIT: Duration = Duration::from_secs(10);

/// How often a file that another process writes is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The mechanism of the stand-ins: a signal, after which their supervisor starts the next.
const MECHANISMS: &str = r#"
[[mechanism]]
id = "rehearsal"
match = { manager = ["external", "nobody", "scope", "system", "user", "unknown"] }
action = "signal"
drain = { signal = "USR1", limit = "10s" }
settle = "300ms"
instruction = "end process {pid}: the rehearsal starts the next"
"#;

/// A configuration with everything that a person cares for: comments, order, quoting.
const CONFIG: &str = "\
# A synthetic home: every comment below has to survive.
_config_version: 12   # where it starts

model_catalog:
  enabled: true
  ttl_hours: 24   # hourly?

agent:
  max_turns: 60     # as the team agreed
  # nothing was ever said about verifying

delegation:
  max_concurrent_children: 3
  max_async_children: 5   # folds into the one above

memory:
  write_mode: \"approve\"
";

/// Does the whole run on synthetic homes, and shows its receipt and what was removed.
///
/// # Errors
/// When the folder cannot be made, or a stand-in does not start.
pub fn run(session: &Session) -> Result<u8> {
    let failed = |error: std::io::Error| Error::io("cannot build the rehearsal's folder", error);
    let folder = tempfile::Builder::new()
        .prefix("fleet-rehearsal-")
        .tempdir()
        .map_err(failed)?;
    let stage = Stage::build(session, folder.path())?;
    let mut supervisors = Vec::new();
    for home in &stage.homes {
        supervisors.push(Supervised::start(&stage, home)?);
    }
    for home in &stage.homes {
        stage.wait_until_up(home)?;
    }
    session.ui.tell(&format!(
        "rehearsal in {}: {} homes",
        folder.path().display(),
        stage.homes.len()
    ));
    let rehearsal = stage.session(session)?;
    let status = apply::run(&rehearsal);
    let ended: Vec<bool> = supervisors.into_iter().map(Supervised::end).collect();
    let path = folder.path().to_path_buf();
    folder
        .close()
        .map_err(|error| Error::io(format!("cannot remove {}", path.display()), error))?;
    if ended.contains(&false) || path.exists() {
        return Err(Error::new(
            Kind::Io,
            format!("the rehearsal left something behind in {}", path.display()),
        ));
    }
    session.ui.tell(&format!(
        "removed {}; {} stand-ins ended",
        path.display(),
        ended.len()
    ));
    status
}

/// The synthetic fleet's folder.
struct Stage {
    root: PathBuf,
    program: PathBuf,
    app: App,
    homes: Vec<PathBuf>,
}

impl Stage {
    fn build(session: &Session, folder: &Path) -> Result<Self> {
        let failed =
            |error: std::io::Error| Error::io("cannot build the rehearsal's folder", error);
        let app = session.app.clone();
        let root = folder.join("root");
        let venv = folder.join("venv");
        let site = venv.join("lib/python3.11/site-packages");
        let package = site.join(&app.code.package);
        let distribution = app
            .code
            .distributions
            .first()
            .map_or("agent", String::as_str);
        let metadata = site.join(format!(
            "{}-0.0.0.dist-info",
            distribution.replace('-', "_")
        ));
        for dir in [&venv.join("bin"), &package, &metadata] {
            fs::create_dir_all(dir).map_err(failed)?;
        }
        let expected = Catalog::load(&app, &[])?.newest();
        let file = app
            .code
            .version_files
            .first()
            .map_or("version.py", String::as_str);
        for (path, text) in [
            (
                package.join(file),
                format!("DEFAULTS = {{\"{}\": {expected}}}\n", app.config.version),
            ),
            (package.join("__init__.py"), String::new()),
            (
                metadata.join("METADATA"),
                format!("Metadata-Version: 2.1\nName: {distribution}\nVersion: 0.0.0\n"),
            ),
            (metadata.join("RECORD"), String::new()),
            (metadata.join("INSTALLER"), "pip\n".into()),
            (
                venv.join("pyvenv.cfg"),
                "home = /usr/bin\nversion = 3.11.0\n".into(),
            ),
        ] {
            fs::write(path, text).map_err(failed)?;
        }
        let program = venv.join("bin/python");
        fs::copy("/proc/self/exe", &program).map_err(failed)?;
        let mut homes = vec![root.clone()];
        if let Some(profiles) = &app.home.profiles {
            homes.extend(
                PROFILES
                    .iter()
                    .map(|profile| root.join(profiles).join(profile)),
            );
        }
        for home in &homes {
            fs::create_dir_all(home).map_err(failed)?;
            fs::write(home.join(&app.config.file), CONFIG).map_err(failed)?;
        }
        Ok(Self {
            root,
            program,
            app,
            homes,
        })
    }

    /// The session of the rehearsal: the same program and wishes, its own places, homes and table.
    fn session(&self, session: &Session) -> Result<Session> {
        let folder = self.root.parent().unwrap_or(&self.root);
        let places = Places {
            config_dir: folder.join("config"),
            state_dir: folder.join("state"),
            lock: folder.join("run/lock"),
        };
        Ok(Session {
            world: session.world.clone(),
            ui: session.ui.again(),
            app: self.app.clone(),
            config: crate::config::Config::default(),
            state: State::at(&places.state_dir),
            places,
            table: Table::load(None, &[("rehearsal".into(), MECHANISMS.into())])?,
            site_steps: Vec::new(),
            users: vec![session.world.account.clone()],
            wishes: session.wishes.clone(),
            only_homes: self.homes.clone(),
            only_profiles: Vec::new(),
            request_id: None,
            argv_flags: session.argv_flags.clone(),
            metrics_file: None,
            ..*session
        })
    }

    fn wait_until_up(&self, home: &Path) -> Result<()> {
        let Some(rules) = self.rules() else {
            return Ok(());
        };
        let deadline = Instant::now() + START_LIMIT;
        while !fs::read_to_string(home.join(&rules.state_file))
            .is_ok_and(|text| rules.running.iter().any(|state| text.contains(state)))
        {
            if Instant::now() >= deadline {
                return Err(Error::new(
                    Kind::Deadline,
                    format!("the stand-in of {} did not start", home.display()),
                ));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    fn rules(&self) -> Option<&SelfRules> {
        self.app
            .runtimes
            .iter()
            .find_map(|runtime| runtime.self_report.as_ref())
    }
}

/// A stand-in runtime with the thread that keeps it running.
struct Supervised {
    stop: Arc<AtomicBool>,
    keeper: JoinHandle<bool>,
}

impl Supervised {
    fn start(stage: &Stage, home: &Path) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let start = command(stage, home);
        let mut child = start()?;
        let asked = Arc::clone(&stop);
        let keeper = std::thread::spawn(move || {
            loop {
                match child.try_wait() {
                    Ok(None) if asked.load(Ordering::SeqCst) => return end(&mut child),
                    Ok(None) => std::thread::sleep(LOOK_EVERY),
                    Ok(Some(_)) if asked.load(Ordering::SeqCst) => return true,
                    Ok(Some(_)) => match start() {
                        Ok(next) => child = next,
                        Err(_) => return false,
                    },
                    Err(_) => return false,
                }
            }
        });
        Ok(Self { stop, keeper })
    }

    /// Ends the stand-in; whether it is gone.
    fn end(self) -> bool {
        self.stop.store(true, Ordering::SeqCst);
        self.keeper.join().unwrap_or(false)
    }
}

fn command(stage: &Stage, home: &Path) -> impl Fn() -> Result<Child> + Send + 'static {
    let program = stage.program.clone();
    let home = home.to_path_buf();
    let module = stage.app.command.modules.first();
    let module = module.map(|module| ["-m".to_owned(), module.clone()]);
    let kind = stage.app.runtimes.first();
    let kind = kind.map(|runtime| runtime.subcommand.clone());
    let words: Vec<String> = module
        .into_iter()
        .flatten()
        .chain(kind.into_iter().flatten())
        .collect();
    let variable = stage.app.home.env.clone();
    move || {
        let mut command = Command::new(&program);
        command
            .args(&words)
            .env_clear()
            .env(STAND_IN, &home)
            .envs(variable.as_ref().map(|name| (name, &home)))
            .current_dir(&home)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
            .spawn()
            .map_err(|error| Error::io("cannot start a stand-in", error))
    }
}

fn end(child: &mut Child) -> bool {
    child.kill().is_ok() && child.wait().is_ok()
}

/// Is a stand-in runtime until it is told to end.
#[must_use]
pub fn stand_in(home: &Path) -> ExitCode {
    match pretend(home) {
        Ok(status) => ExitCode::from(status),
        Err(_) => ExitCode::FAILURE,
    }
}

/// What a real runtime's exit status says after it finished its work.
const FINISHED: u8 = 75;

fn pretend(home: &Path) -> Result<u8> {
    let failed = |error: std::io::Error| Error::io("the stand-in cannot write", error);
    // A stand-in never outlives its rehearsal (prctl(2), PR_SET_PDEATHSIG).
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(|error| failed(error.into()))?;
    let world = World::read()?;
    let app = App::builtin(crate::app::DEFAULT)?;
    let kind = app
        .runtimes
        .iter()
        .find(|runtime| runtime.self_report.is_some());
    let Some((kind, rules)) = kind.and_then(|kind| Some((kind, kind.self_report.as_ref()?))) else {
        return Err(Error::new(
            Kind::Input,
            "the application's runtimes say nothing of themselves",
        ));
    };
    let mut signals = signal_hook::iterator::Signals::new([SIGUSR1, SIGTERM]).map_err(failed)?;
    let start = procfs::start_ticks(world.pid)
        .map_err(failed)?
        .unwrap_or_default();
    let lock = rules
        .lock_file
        .as_ref()
        .map(|name| fs::File::create(home.join(name)))
        .transpose()
        .map_err(failed)?;
    if let Some(lock) = &lock {
        rustix::fs::flock(lock, rustix::fs::FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| failed(error.into()))?;
    }
    let say = |state: &[String]| -> Result<()> {
        let text = serde_json::json!({
            "pid": world.pid,
            "kind": kind.kind,
            "argv": [],
            "start_time": start,
            rules.state_key.as_str(): state.first(),
            "active_agents": 0,
            "updated_at": world::timestamp(),
        })
        .to_string();
        for name in [&rules.pid_file, &rules.state_file] {
            let mut file = tempfile::NamedTempFile::new_in(home).map_err(failed)?;
            file.write_all(text.as_bytes()).map_err(failed)?;
            file.persist(home.join(name))
                .map_err(|error| failed(error.error))?;
        }
        Ok(())
    };
    say(&rules.running)?;
    let signal = signals.forever().next();
    say(&rules.stopped)?;
    Ok(if signal == Some(SIGUSR1) { FINISHED } else { 0 })
}
