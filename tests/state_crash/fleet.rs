//! Homes in a temporary folder, the stand-ins that serve them, and the program that is run on them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fleet_update::app::App;
use fleet_update::migrate::Catalog;
use fleet_update::run::rehearse::STAND_IN;
use fleet_update::state::Store;
use fleet_update::world::World;
use serde_json::Value;
use tempfile::TempDir;

pub const PROFILES: &[&str] = &["", "profiles/work", "profiles/lab"];

pub const MECHANISMS: &str = r#"
[[mechanism]]
id = "stand-in"
match = { manager = ["external", "nobody", "scope", "system", "user", "unknown"] }
action = "signal"
drain = { signal = "USR1", limit = "10s" }
settle = "100ms"
settle_silent = "100ms"
instruction = "end process {pid}"
"#;

pub const CONFIG: &str = "_config_version: 12 # where it starts\nmodel_catalog:\n  ttl_hours: 24\nagent:\n  max_turns: 60\n";

pub fn app() -> App {
    App::builtin(fleet_update::app::DEFAULT).expect("built in")
}

/// Homes, and the stand-ins that serve them.
pub struct Fleet {
    pub folder: TempDir,
    pub homes: Vec<PathBuf>,
    pub runtimes: Vec<Runtime>,
}

impl Fleet {
    pub fn new() -> Self {
        let mut fleet =
            Self::without_runtimes(PROFILES.iter().map(|profile| (*profile).to_owned()));
        let script = fleet.venv().join("bin/python");
        fs::hard_link(env!("CARGO_BIN_EXE_update"), &script)
            .or_else(|_| fs::copy(env!("CARGO_BIN_EXE_update"), &script).map(|_| ()))
            .expect("room");
        fleet.runtimes = fleet
            .homes
            .iter()
            .map(|home| Runtime::start(&script, home))
            .collect();
        fleet.wait_until_up();
        fleet
    }

    pub fn without_runtimes(profiles: impl Iterator<Item = String>) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("crash-")
            .tempdir()
            .expect("a folder");
        let fleet = Self {
            homes: profiles
                .map(|profile| home(folder.path(), &profile))
                .collect(),
            folder,
            runtimes: Vec::new(),
        };
        let app = app();
        let package = fleet.site().join(&app.code.package);
        let distribution = app.code.distributions.first().expect("it has a name");
        let metadata = fleet.site().join(format!(
            "{}-0.0.0.dist-info",
            distribution.replace('-', "_")
        ));
        for dir in [fleet.venv().join("bin"), package.clone(), metadata.clone()] {
            fs::create_dir_all(dir).expect("room");
        }
        for (path, text) in [
            (package.join("__init__.py"), String::new()),
            (
                metadata.join("METADATA"),
                format!("Metadata-Version: 2.1\nName: {distribution}\nVersion: 0.0.0\n"),
            ),
            (metadata.join("RECORD"), String::new()),
            (metadata.join("INSTALLER"), "pip\n".into()),
            (
                fleet.venv().join("pyvenv.cfg"),
                "home = /usr/bin\nversion = 3.11.0\n".into(),
            ),
        ] {
            fs::write(path, text).expect("room");
        }
        fleet.expect_version(Catalog::load(&app, &[]).expect("whole").newest());
        fleet.write_homes();
        fleet
    }

    /// Gives every home the configuration that it starts from.
    pub fn write_homes(&self) {
        for home in &self.homes {
            fs::create_dir_all(home).expect("room");
            fs::write(home.join("config.yaml"), CONFIG).expect("room");
        }
    }

    /// The folder that holds all homes.
    pub fn root(&self) -> PathBuf {
        home(self.folder.path(), "")
    }

    /// Our state's database, opened as the program opens it.
    pub fn store(&self) -> Store {
        Store::open(&World::read().expect("proc"), &self.state()).expect("a database")
    }

    /// Makes the code expect a version.
    pub fn expect_version(&self, version: u32) {
        let app = app();
        let text = format!("DEFAULTS = {{\"{}\": {version}}}\n", app.config.version);
        let file = app.code.version_files.first().expect("it has one");
        fs::write(self.site().join(&app.code.package).join(file), text).expect("room");
    }

    pub fn venv(&self) -> PathBuf {
        self.folder.path().join("venv")
    }

    pub fn site(&self) -> PathBuf {
        self.venv().join("lib/python3.11/site-packages")
    }

    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub fn wait_until_up(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        for runtime in &self.runtimes {
            while !runtime.is_up() {
                assert!(Instant::now() < deadline, "a stand-in does not start");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }

    pub fn starts(&self) -> Vec<usize> {
        self.runtimes
            .iter()
            .map(|runtime| runtime.starts.load(Ordering::SeqCst))
            .collect()
    }

    pub fn spawn(&self, task: &str, vars: &[(&str, &str)]) -> Child {
        Command::new(std::env::current_exe().expect("ourselves"))
            .args(["--exact", "child::child", "--nocapture", "--test-threads=1"])
            .env("CRASH_CHILD", task)
            .env("CRASH_FOLDER", self.folder.path())
            .env("CRASH_HOMES", self.homes.len().to_string())
            .envs(self.runtimes.is_empty().then_some(("CRASH_TO", "50")))
            .envs(vars.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(
                fs::OpenOptions::new()
                    .create(true)
                    .append(true)
                    .open(self.folder.path().join("stderr"))
                    .expect("room"),
            )
            .spawn()
            .expect("a child")
    }

    pub fn run(&self, task: &str, vars: &[(&str, &str)]) -> ExitStatus {
        self.spawn(task, vars).wait().expect("a child ends")
    }

    /// What the children said, and how the rows of the latest receipt stand.
    pub fn said(&self) -> String {
        let mut said = fs::read_to_string(self.folder.path().join("stderr")).unwrap_or_default();
        let text = fs::read(self.state().join("receipts/latest.json")).unwrap_or_default();
        let receipt: Value = serde_json::from_slice(&text).unwrap_or_default();
        for rows in ["homes", "runtimes", "collectors"] {
            for row in receipt[rows].as_array().into_iter().flatten() {
                said.push_str(&format!("{rows}: {} {}\n", row["outcome"], row["reason"]));
            }
        }
        said
    }

    pub fn configs(&self) -> Vec<String> {
        self.homes
            .iter()
            .map(|home| fs::read_to_string(home.join("config.yaml")).expect("there"))
            .collect()
    }

    pub fn latest(&self) -> Value {
        let text = fs::read(self.state().join("receipts/latest.json")).expect("a receipt");
        serde_json::from_slice(&text).expect("JSON")
    }

    /// Every file is whole, and the chain proves itself.
    pub fn check_whole(&self, after: &str, why: &str) {
        for config in self.configs() {
            assert!(
                config == CONFIG || config == after,
                "{why}: a torn file:\n{config}"
            );
        }
        if Store::path(&self.state()).exists() {
            let world = World::read().expect("proc");
            let store =
                Store::open(&world, &self.state()).unwrap_or_else(|error| panic!("{why}: {error}"));
            store
                .verify()
                .unwrap_or_else(|error| panic!("{why}: {error}"));
        }
        for entry in fs::read_dir(self.state().join("receipts"))
            .into_iter()
            .flatten()
        {
            let entry = entry.expect("an entry");
            if entry.file_name().to_string_lossy().ends_with(".json") {
                let text = fs::read(entry.path()).expect("there");
                serde_json::from_slice::<Value>(&text)
                    .unwrap_or_else(|error| panic!("{why}: a torn receipt: {error}"));
            }
        }
    }

    /// The next run converges: all homes migrated, each runtime restarted exactly once since the start of it all.
    pub fn check_converges(&self, after: &str, why: &str) {
        self.wait_until_up();
        let status = self.run("apply", &[]);
        assert_eq!(status.code(), Some(0), "{why}: {}", self.said());
        assert_eq!(
            self.configs(),
            vec![after.to_owned(); self.homes.len()],
            "{why}"
        );
        assert_eq!(
            self.starts(),
            vec![2; self.runtimes.len()],
            "{why}: {}",
            self.said()
        );
        assert_eq!(self.latest()["debts"], serde_json::json!([]), "{why}");
        let status = self.run("verify", &[]);
        assert_eq!(status.code(), Some(0), "{why}: {}", self.said());
        let open = self.store().open_jobs().expect("a database");
        assert!(open.is_empty(), "{why}: work that nobody ends: {open:?}");
        let leftovers: Vec<PathBuf> = [self.state(), self.state().join("receipts")]
            .iter()
            .flat_map(|dir| fs::read_dir(dir).expect("a folder"))
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| {
                path.file_name()
                    .is_some_and(|name| name.to_string_lossy().starts_with('.'))
            })
            .collect();
        assert!(leftovers.is_empty(), "{why}: {leftovers:?}");
    }
}

/// A stand-in with the thread that starts it again, as a supervisor would.
pub struct Runtime {
    home: PathBuf,
    starts: Arc<AtomicUsize>,
    pid: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    keeper: Option<JoinHandle<()>>,
}

impl Runtime {
    pub fn start(script: &Path, home: &Path) -> Self {
        let runtime = Self {
            home: home.to_owned(),
            starts: Arc::default(),
            pid: Arc::default(),
            stop: Arc::default(),
            keeper: None,
        };
        let (script, home) = (script.to_owned(), home.to_owned());
        let (starts, pid, stop) = (
            runtime.starts.clone(),
            runtime.pid.clone(),
            runtime.stop.clone(),
        );
        let keeper = std::thread::spawn(move || {
            while !stop.load(Ordering::SeqCst) {
                let mut child = stand_in(&script, &home);
                pid.store(child.id() as usize, Ordering::SeqCst);
                starts.fetch_add(1, Ordering::SeqCst);
                while child.try_wait().expect("ours").is_none() {
                    if stop.load(Ordering::SeqCst) {
                        let _ = child.kill();
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        });
        Self {
            keeper: Some(keeper),
            ..runtime
        }
    }

    pub fn is_up(&self) -> bool {
        let rules = app()
            .runtimes
            .into_iter()
            .find_map(|kind| kind.self_report)
            .expect("they speak");
        let text = fs::read_to_string(self.home.join(&rules.state_file)).unwrap_or_default();
        let pid = self.pid.load(Ordering::SeqCst);
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        value["pid"] == pid
            && rules
                .running
                .iter()
                .any(|word| value[&rules.state_key] == word.as_str())
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for runtime in &self.runtimes {
            runtime.stop.store(true, Ordering::SeqCst);
        }
        for runtime in &mut self.runtimes {
            let _ = runtime.keeper.take().map(JoinHandle::join);
        }
    }
}

pub fn stand_in(script: &Path, home: &Path) -> Child {
    let app = app();
    Command::new(script)
        .arg("-m")
        .arg(&app.command.modules[0])
        .args(&app.runtimes[0].subcommand)
        .env_clear()
        .env(STAND_IN, home)
        .envs(app.home.env.as_ref().map(|name| (name, home)))
        .current_dir(home)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a stand-in")
}

/// The folder of a profile; the root home has no name.
pub fn home(folder: &Path, profile: &str) -> PathBuf {
    let root = folder.join("root");
    if profile.is_empty() {
        root
    } else {
        root.join(profile)
    }
}

pub fn many(count: usize) -> Vec<String> {
    (0..count)
        .map(|number| format!("profiles/p{number:04}"))
        .collect()
}

/// Whether a child stops at its fail point before it ends.
pub fn wait_until_stopped(child: &mut Child) -> bool {
    let stat = format!("/proc/{}/stat", child.id());
    let deadline = Instant::now() + Duration::from_secs(60);
    while Instant::now() < deadline {
        if child.try_wait().expect("ours").is_some() {
            return false;
        }
        let text = fs::read_to_string(&stat).unwrap_or_default();
        if text
            .rsplit(')')
            .next()
            .is_some_and(|rest| rest.trim_start().starts_with('T'))
        {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

/// Lets a child that was stopped go on.
pub fn go_on(child: &Child) {
    let pid = i32::try_from(child.id()).expect("a pid");
    let pid = rustix::process::Pid::from_raw(pid).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).expect("ours");
}
