//! The program killed at every point where it writes, syncs, renames, signals or commits, and at random moments: every
//! file stays whole, the audit chain proves itself, the next run converges, and no debt is lost or paid twice.
//!
//! Runs the real pipeline as a process of its own on synthetic homes with stand-in runtimes. Short by
//! default; `UPDATE_LONG=1` kills at every point and at 500 random moments. Needs the feature `failpoints`.

#![allow(clippy::disallowed_methods, reason = "tests build what they need")]
#![allow(clippy::print_stdout, reason = "counts are part of the result")]
#![allow(clippy::exit, reason = "a child ends as a run ends")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clap::Parser as _;
use fleet_update::app::App;
use fleet_update::cli::{Cli, ReceiptCommand, Trigger};
use fleet_update::config::{Config, Places};
use fleet_update::migrate::Catalog;
use fleet_update::restart::table::Table;
use fleet_update::run::rehearse::STAND_IN;
use fleet_update::run::{Session, apply, receipt, rollback};
use fleet_update::state::{State, Store};
use fleet_update::ui::{Color, Format, Ui};
use fleet_update::world::World;
use serde_json::Value;
use tempfile::TempDir;

const PROFILES: &[&str] = &["", "profiles/work", "profiles/lab"];

const MECHANISMS: &str = r#"
[[mechanism]]
id = "stand-in"
match = { manager = ["external", "nobody", "scope", "system", "user", "unknown"] }
action = "signal"
drain = { signal = "USR1", limit = "10s" }
settle = "100ms"
settle_silent = "100ms"
instruction = "end process {pid}"
"#;

const CONFIG: &str = "_config_version: 12 # where it starts\nmodel_catalog:\n  ttl_hours: 24\nagent:\n  max_turns: 60\n";

fn app() -> App {
    App::builtin(fleet_update::app::DEFAULT).expect("built in")
}

/// Homes, and the stand-ins that serve them.
struct Fleet {
    folder: TempDir,
    homes: Vec<PathBuf>,
    runtimes: Vec<Runtime>,
}

impl Fleet {
    fn new() -> Self {
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

    fn without_runtimes(profiles: impl Iterator<Item = String>) -> Self {
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
        for home in &fleet.homes {
            fs::create_dir_all(home).expect("room");
            fs::write(home.join("config.yaml"), CONFIG).expect("room");
        }
        fleet
    }

    /// Makes the code expect a version.
    fn expect_version(&self, version: u32) {
        let app = app();
        let text = format!("DEFAULTS = {{\"{}\": {version}}}\n", app.config.version);
        let file = app.code.version_files.first().expect("it has one");
        fs::write(self.site().join(&app.code.package).join(file), text).expect("room");
    }

    fn venv(&self) -> PathBuf {
        self.folder.path().join("venv")
    }

    fn site(&self) -> PathBuf {
        self.venv().join("lib/python3.11/site-packages")
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn wait_until_up(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        for runtime in &self.runtimes {
            while !runtime.is_up() {
                assert!(Instant::now() < deadline, "a stand-in does not start");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }

    fn starts(&self) -> Vec<usize> {
        self.runtimes
            .iter()
            .map(|runtime| runtime.starts.load(Ordering::SeqCst))
            .collect()
    }

    fn spawn(&self, task: &str, vars: &[(&str, &str)]) -> Child {
        Command::new(std::env::current_exe().expect("ourselves"))
            .args(["--exact", "child", "--nocapture", "--test-threads=1"])
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

    fn run(&self, task: &str, vars: &[(&str, &str)]) -> ExitStatus {
        self.spawn(task, vars).wait().expect("a child ends")
    }

    /// What the children said, and how the rows of the latest receipt stand.
    fn said(&self) -> String {
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

    fn configs(&self) -> Vec<String> {
        self.homes
            .iter()
            .map(|home| fs::read_to_string(home.join("config.yaml")).expect("there"))
            .collect()
    }

    fn latest(&self) -> Value {
        let text = fs::read(self.state().join("receipts/latest.json")).expect("a receipt");
        serde_json::from_slice(&text).expect("JSON")
    }

    /// Every file is whole, and the chain proves itself.
    fn check_whole(&self, after: &str, why: &str) {
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
    fn check_converges(&self, after: &str, why: &str) {
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
struct Runtime {
    home: PathBuf,
    starts: Arc<AtomicUsize>,
    pid: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    keeper: Option<JoinHandle<()>>,
}

impl Runtime {
    fn start(script: &Path, home: &Path) -> Self {
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

    fn is_up(&self) -> bool {
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

fn stand_in(script: &Path, home: &Path) -> Child {
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

/// Not a test: what the children of the others do.
#[test]
fn child() {
    let Ok(task) = std::env::var("CRASH_CHILD") else {
        return;
    };
    let folder = PathBuf::from(std::env::var_os("CRASH_FOLDER").expect("told"));
    let count: usize = std::env::var("CRASH_HOMES")
        .expect("told")
        .parse()
        .expect("a number");
    let session = session(&folder, count);
    let result = match task.split_once(' ').unwrap_or((&task, "")) {
        ("apply", _) => apply::run(&session),
        ("rollback", run) => rollback::run(&session, run),
        ("verify", _) => receipt::run(&session, &ReceiptCommand::Verify),
        other => panic!("no child does {other:?}"),
    };
    let status = result.unwrap_or_else(|error| {
        session.ui.fail(&error);
        error.kind().exit_status()
    });
    std::process::exit(i32::from(status));
}

fn session(folder: &Path, count: usize) -> Session {
    let world = World::read().expect("proc");
    let mut line = vec!["update".to_owned()];
    for (variable, flag) in [
        ("CRASH_REQUEST", "--request-id"),
        ("CRASH_PATIENCE", "--lock-timeout"),
        ("CRASH_RESTART", "--restart"),
        ("CRASH_TO", "--to"),
    ] {
        if let Ok(value) = std::env::var(variable) {
            line.extend([flag.to_owned(), value]);
        }
    }
    let cli = Cli::try_parse_from(line).expect("valid");
    let ui = Ui::new(&world, Format::Text, Color::Never, true, false);
    let users = vec![world.account.clone()];
    let places = Places {
        config_dir: folder.join("config"),
        state_dir: folder.join("state"),
        lock: folder.join("run/lock"),
    };
    let names: Vec<String> = if count == PROFILES.len() {
        PROFILES
            .iter()
            .map(|profile| (*profile).to_owned())
            .collect()
    } else {
        many(count)
    };
    let session = Session::new(world, ui, &cli, Trigger::Manual).expect("valid");
    Session {
        config: Config::default(),
        state: State::at(&places.state_dir),
        places,
        table: Table::load(None, &[("test".into(), MECHANISMS.into())]).expect("valid"),
        site_steps: Vec::new(),
        users,
        only_homes: names.iter().map(|name| home(folder, name)).collect(),
        ..session
    }
}

/// The folder of a profile; the root home has no name.
fn home(folder: &Path, profile: &str) -> PathBuf {
    let root = folder.join("root");
    if profile.is_empty() {
        root
    } else {
        root.join(profile)
    }
}

fn many(count: usize) -> Vec<String> {
    (0..count)
        .map(|number| format!("profiles/p{number:04}"))
        .collect()
}

/// What a home holds after a whole run, and every point that the run passed, in order.
fn whole_run() -> &'static (String, Vec<String>) {
    static RUN: OnceLock<(String, Vec<String>)> = OnceLock::new();
    RUN.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let told = folder.path().join("told");
        let isolated_already = std::env::var_os("CRASH_ISOLATED").is_some();
        if isolated_already {
            return one_whole_run();
        }
        isolated(
            "a_whole_run",
            &[("CRASH_WHOLE", told.to_str().expect("a path"))],
        );
        serde_json::from_slice(&fs::read(&told).expect("told")).expect("JSON")
    })
}

/// Not a test by itself: the run that the others compare with.
#[test]
fn a_whole_run() {
    if let Some(told) = std::env::var_os("CRASH_WHOLE") {
        fs::write(told, serde_json::to_vec(&one_whole_run()).expect("JSON")).expect("room");
    }
}

fn one_whole_run() -> (String, Vec<String>) {
    let fleet = Fleet::new();
    let log = fleet.folder.path().join("points");
    let vars = [
        ("FLEET_UPDATE_FAIL_LOG", log.to_str().expect("a path")),
        ("CRASH_REQUEST", "deploy-1"),
    ];
    let status = fleet.run("apply", &vars);
    assert_eq!(status.code(), Some(0), "{}", fleet.said());
    assert_eq!(fleet.starts(), [2, 2, 2], "{}", fleet.said());
    let configs = fleet.configs();
    assert_ne!(configs[0], CONFIG);
    let points = fs::read_to_string(&log)
        .expect("a log")
        .lines()
        .map(str::to_owned)
        .collect();
    // A second run changes nothing, and says so.
    assert_eq!(fleet.run("apply", &[]).code(), Some(0), "{}", fleet.said());
    assert_eq!(fleet.starts(), [2, 2, 2]);
    assert_eq!(fleet.configs(), configs);
    (configs[0].clone(), points)
}

/// Runs the test `name` again in a process table of its own, where no other fleet of this machine is seen; `true` there.
/// `vars` say which part of it.
fn isolated(name: &str, vars: &[(&str, &str)]) -> bool {
    if std::env::var_os("CRASH_ISOLATED").is_some() {
        return true;
    }
    // The shell is process 1 there, and takes in what is orphaned.
    let output = Command::new("unshare")
        .args(["--pid", "--fork", "--mount", "--mount-proc"])
        .args(if rustix::process::geteuid().is_root() {
            &[][..]
        } else {
            &["--map-root-user"]
        })
        .args(["--", "sh", "-c", "\"$@\"; exit $?", "sh"])
        .arg(std::env::current_exe().expect("ourselves"))
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env("CRASH_ISOLATED", "1")
        .envs(vars.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("unshare(1)");
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    for line in out.lines().filter_map(|line| line.split_once("= ")) {
        println!("{}", line.1);
    }
    assert!(output.status.success(), "{name} {vars:?}:\n{out}\n{err}");
    false
}

fn is_long() -> bool {
    std::env::var_os("UPDATE_LONG").is_some()
}

/// Does `work` on every item, a few at a time: most of it is waiting.
fn side_by_side<T: Send>(items: Vec<T>, work: impl Fn(T) + Sync) {
    let items = Mutex::new(items.into_iter());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..5)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let next = items.lock().expect("no worker panics here").next();
                        let Some(item) = next else { return };
                        work(item);
                    }
                })
            })
            .collect();
        for worker in workers {
            if let Err(panic) = worker.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}

#[test]
fn killed_at_any_point_the_next_run_finishes_what_was_owed_and_repeats_nothing() {
    let (after, points) = whole_run();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for point in points {
        *counts.entry(point).or_default() += 1;
    }
    println!(
        "{} different points, {} passages: {:?}",
        counts.len(),
        points.len(),
        counts.keys()
    );
    assert!(counts.len() >= 60, "{}", counts.len());
    // A point that is passed more than once is a kill at its first passage, and at its last.
    let mut kills: Vec<(String, usize)> = Vec::new();
    for (point, count) in &counts {
        kills.push(((*point).to_owned(), 1));
        if *count > 1 {
            kills.push(((*point).to_owned(), *count));
        }
    }
    let step = if is_long() { 1 } else { 6 };
    let kills: Vec<_> = kills.into_iter().step_by(step).collect();
    println!("{} kills", kills.len());
    side_by_side(kills, |(point, nth)| {
        isolated(
            "one_kill_at_a_point",
            &[
                ("CRASH_POINT", &format!("{point}#{nth}")),
                ("CRASH_AFTER", after),
            ],
        );
    });
}

/// Not a test by itself: one kill of the test above, in a process table of its own.
#[test]
fn one_kill_at_a_point() {
    let Ok(plan) = std::env::var("CRASH_POINT") else {
        return;
    };
    let after = std::env::var("CRASH_AFTER").expect("told");
    let fleet = Fleet::new();
    let status = fleet.run(
        "apply",
        &[("FLEET_UPDATE_FAIL", &plan), ("CRASH_REQUEST", "deploy-1")],
    );
    let is_killed = status.signal() == Some(9);
    // How often a receipt is written, and so a late passage, depends on the waves; a first one is always there.
    assert!(
        is_killed || !plan.ends_with("#1"),
        "{plan} was not reached: {}",
        fleet.said()
    );
    fleet.check_whole(&after, &plan);
    fleet.check_converges(&after, &plan);
    if is_killed {
        // The request is answered now or was then; asking again does nothing twice.
        let again = fleet.run("apply", &[("CRASH_REQUEST", "deploy-1")]);
        assert_eq!(again.code(), Some(0), "{plan}: {}", fleet.said());
        assert_eq!(fleet.starts(), [2, 2, 2], "{plan}");
    }
}

#[test]
fn killed_at_random_moments_the_next_run_finishes_what_was_owed_and_repeats_nothing() {
    let (after, _) = whole_run();
    let rounds: usize = if is_long() { 500 } else { 10 };
    let mut random = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(1, |time| u64::from(time.subsec_nanos()) | 1);
    println!("seed {random}");
    // Shares of a run's usual time, in thousandths: xorshift is random enough for moments.
    let shares: Vec<u64> = (0..rounds)
        .map(|_| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % 950
        })
        .collect();
    let stages: Mutex<BTreeMap<String, usize>> = Mutex::default();
    side_by_side(shares, |share| {
        let folder = tempfile::tempdir().expect("a folder");
        let told = folder.path().join("stage");
        let vars = [
            ("CRASH_SHARE", share.to_string()),
            ("CRASH_AFTER", after.clone()),
            ("CRASH_TOLD", told.display().to_string()),
        ];
        let vars: Vec<(&str, &str)> = vars
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        isolated("one_kill_at_a_moment", &vars);
        let stage = fs::read_to_string(&told).expect("a stage");
        *stages.lock().expect("no panic").entry(stage).or_default() += 1;
    });
    let stages = stages.into_inner().expect("no panic");
    let inside = rounds - stages.get("over").copied().unwrap_or(0);
    println!("{inside} of {rounds} kills inside the run: {stages:?}");
    assert!(inside * 10 >= rounds * 9, "{inside} of {rounds}");
    if is_long() {
        for stage in ["inventory", "snapshot", "migrate", "restart", "verify"] {
            assert!(stages.contains_key(stage), "{stage} was never hit");
        }
    }
}

/// Not a test by itself: one kill of the test above.
#[test]
fn one_kill_at_a_moment() {
    let Ok(share) = std::env::var("CRASH_SHARE") else {
        return;
    };
    let share: u32 = share.parse().expect("a number");
    let after = std::env::var("CRASH_AFTER").expect("told");
    // How long a run takes depends on what else the machine does, so it is measured right before.
    let (took, passages) = {
        let fleet = Fleet::new();
        let log = fleet.folder.path().join("points");
        let mut child = fleet.spawn(
            "apply",
            &[("FLEET_UPDATE_FAIL_LOG", log.to_str().expect("a path"))],
        );
        let start = await_file(&log);
        assert_eq!(
            child.wait().expect("ours").code(),
            Some(0),
            "{}",
            fleet.said()
        );
        (start.elapsed(), lines(&log))
    };
    let mut stage = "over";
    for attempt in 1..=4 {
        let fleet = Fleet::new();
        let log = fleet.folder.path().join("points");
        let mut child = fleet.spawn(
            "apply",
            &[("FLEET_UPDATE_FAIL_LOG", log.to_str().expect("a path"))],
        );
        // The moment counts from the first point: before it nothing has been done. Where most of the time is spent
        // waiting for runtimes, half of the moments follow what is done instead of the clock. One that came too late
        // is taken again, earlier.
        let start = await_file(&log);
        if share.is_multiple_of(2) {
            std::thread::sleep((took * share / 1000 / attempt).saturating_sub(start.elapsed()));
        } else {
            let number = passages * share as usize / 1000 / attempt as usize;
            while lines(&log) < number && child.try_wait().expect("ours").is_none() {
                std::thread::sleep(Duration::from_micros(u64::from(share)));
            }
        }
        let _ = child.kill();
        let status = child.wait().expect("ours");
        let points = fs::read_to_string(&log).unwrap_or_default();
        let why = format!(
            "{share} thousandths, after {}",
            points.lines().last().unwrap_or("nothing")
        );
        fleet.check_whole(&after, &why);
        fleet.check_converges(&after, &why);
        if status.signal() == Some(9) {
            stage = self::stage(&points);
            break;
        }
    }
    fs::write(std::env::var_os("CRASH_TOLD").expect("told"), stage).expect("room");
}

fn lines(path: &Path) -> usize {
    fs::read(path).map_or(0, |bytes| {
        bytes.iter().filter(|byte| **byte == b'\n').count()
    })
}

fn await_file(path: &Path) -> Instant {
    let start = Instant::now();
    while !path.exists() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never began");
        std::thread::sleep(Duration::from_millis(1));
    }
    Instant::now()
}

/// Which stage a run was in, by the points that it passed.
fn stage(points: &str) -> &'static str {
    let passed = |name: &str| points.lines().any(|line| line == name);
    if passed("run.verified") {
        "close"
    } else if passed("run.before-verify") {
        "verify"
    } else if passed("run.write.committed") {
        "restart"
    } else if passed("run.copy.committed") {
        "migrate"
    } else if passed("run.open.committed") {
        "snapshot"
    } else {
        "inventory"
    }
}

#[test]
fn of_thirty_two_invocations_at_once_one_runs_and_the_others_wait_or_end_with_75() {
    if !isolated(
        "of_thirty_two_invocations_at_once_one_runs_and_the_others_wait_or_end_with_75",
        &[],
    ) {
        return;
    }
    for (patience, allowed) in [("0s", &[0, 75][..]), ("120s", &[0][..])] {
        let fleet = Fleet::new();
        let mut children: Vec<Child> = (0..32)
            .map(|_| fleet.spawn("apply", &[("CRASH_PATIENCE", patience)]))
            .collect();
        let codes: Vec<i32> = children
            .iter_mut()
            .map(|child| child.wait().expect("ours").code().unwrap_or(-1))
            .collect();
        assert!(
            codes.iter().all(|code| allowed.contains(code)),
            "{codes:?}: {}",
            fleet.said()
        );
        assert!(codes.contains(&0));
        assert_eq!(fleet.starts(), [2, 2, 2], "{codes:?}");
        if patience == "0s" {
            let said = fleet.said();
            assert!(
                codes.contains(&75) && said.contains("another run (pid "),
                "{said}"
            );
        }
        assert_eq!(fleet.run("verify", &[]).code(), Some(0), "{}", fleet.said());
    }
}

#[test]
fn sixteen_identical_requests_make_one_run_and_all_get_its_receipt() {
    if !isolated(
        "sixteen_identical_requests_make_one_run_and_all_get_its_receipt",
        &[],
    ) {
        return;
    }
    let fleet = Fleet::new();
    let vars = [("CRASH_PATIENCE", "120s"), ("CRASH_REQUEST", "deploy-9")];
    let mut children: Vec<Child> = (0..16).map(|_| fleet.spawn("apply", &vars)).collect();
    for child in &mut children {
        assert_eq!(
            child.wait().expect("ours").code(),
            Some(0),
            "{}",
            fleet.said()
        );
    }
    let receipts = fs::read_dir(fleet.state().join("receipts"))
        .expect("a folder")
        .count();
    assert_eq!(receipts, 2, "one run, and the link to the latest");
    assert_eq!(fleet.starts(), [2, 2, 2]);
    let other = fleet.run(
        "apply",
        &[("CRASH_REQUEST", "deploy-9"), ("CRASH_RESTART", "never")],
    );
    assert_eq!(other.code(), Some(3), "{}", fleet.said());
    assert!(fleet.said().contains("conflict: request deploy-9"));
}

#[test]
fn a_rollback_puts_back_the_exact_bytes_restarts_what_serves_them_and_is_itself_a_run() {
    if !isolated(
        "a_rollback_puts_back_the_exact_bytes_restarts_what_serves_them_and_is_itself_a_run",
        &[],
    ) {
        return;
    }
    let (after, _) = whole_run();
    let fleet = Fleet::new();
    assert_eq!(fleet.run("apply", &[]).code(), Some(0), "{}", fleet.said());
    let run = fleet.latest()["run_id"].as_str().expect("an id").to_owned();
    // The code still expects the newer version: nothing may be written.
    let refused = fleet.run(&format!("rollback {run}"), &[]);
    assert_eq!(refused.code(), Some(1), "{}", fleet.said());
    assert_eq!(fleet.configs(), vec![after.clone(); 3]);
    assert_eq!(
        fleet.latest()["homes"][0]["outcome"],
        "conflict",
        "{}",
        fleet.said()
    );
    assert_eq!(fleet.starts(), [2, 2, 2]);
    // The code is the older one again, and one home was changed by its owner.
    fleet.expect_version(12);
    let changed = format!("{after}# mine\n");
    fs::write(fleet.homes[1].join("config.yaml"), &changed).expect("ours");
    let status = fleet.run(&format!("rollback {run}"), &[]);
    assert_eq!(
        status.code(),
        Some(1),
        "one of them is a conflict: {}",
        fleet.said()
    );
    assert_eq!(
        fleet.configs(),
        [CONFIG, &changed, CONFIG],
        "{}",
        fleet.said()
    );
    let latest = fleet.latest();
    let notes = latest["notes"].to_string();
    assert!(notes.contains("databases are never rolled back"), "{notes}");
    let outcomes: Vec<&str> = latest["homes"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| row["outcome"].as_str().expect("a word"))
        .collect();
    assert_eq!(
        outcomes
            .iter()
            .filter(|outcome| **outcome == "conflict")
            .count(),
        1,
        "{}",
        fleet.said()
    );
    let starts = fleet.starts();
    assert_eq!((starts[0], starts[2]), (3, 3), "{}", fleet.said());
    assert_eq!(fleet.run("verify", &[]).code(), Some(0), "{}", fleet.said());
    assert_eq!(
        fleet
            .run("rollback 01900000-0000-7000-8000-000000000000", &[])
            .code(),
        Some(3)
    );
    assert_eq!(fleet.run("rollback ../receipts", &[]).code(), Some(3));
}

#[test]
fn after_our_state_was_deleted_a_second_run_changes_nothing() {
    if !isolated(
        "after_our_state_was_deleted_a_second_run_changes_nothing",
        &[],
    ) {
        return;
    }
    let fleet = Fleet::new();
    assert_eq!(fleet.run("apply", &[]).code(), Some(0), "{}", fleet.said());
    let configs = fleet.configs();
    fs::remove_dir_all(fleet.state()).expect("ours");
    assert_eq!(fleet.run("apply", &[]).code(), Some(0), "{}", fleet.said());
    assert_eq!((fleet.starts(), fleet.configs()), (vec![2, 2, 2], configs));
}

#[test]
fn a_clock_that_was_set_back_loses_nothing_and_repeats_nothing() {
    if !isolated(
        "a_clock_that_was_set_back_loses_nothing_and_repeats_nothing",
        &[],
    ) {
        return;
    }
    let fleet = Fleet::new();
    assert_eq!(fleet.run("apply", &[]).code(), Some(0), "{}", fleet.said());
    for days in [1, 400] {
        let back = (days * 24 * 60 * 60).to_string();
        assert_eq!(
            fleet
                .run("apply", &[("FLEET_UPDATE_CLOCK_BACK", &back)])
                .code(),
            Some(0),
            "{}",
            fleet.said()
        );
        assert_eq!(fleet.run("verify", &[]).code(), Some(0), "{}", fleet.said());
    }
    assert_eq!(fleet.starts(), [2, 2, 2]);
    let receipts = fs::read_dir(fleet.state().join("receipts"))
        .expect("a folder")
        .count();
    assert_eq!(receipts, 4, "none was taken for an old one");
}

#[test]
fn a_changed_or_missing_receipt_is_noticed() {
    if !isolated("a_changed_or_missing_receipt_is_noticed", &[]) {
        return;
    }
    let fleet = Fleet::without_runtimes(many(2).into_iter());
    for _ in 0..3 {
        assert_eq!(fleet.run("apply", &[]).code(), Some(0), "{}", fleet.said());
    }
    assert_eq!(fleet.run("verify", &[]).code(), Some(0), "{}", fleet.said());
    let mut ids: Vec<PathBuf> = fs::read_dir(fleet.state().join("receipts"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| !path.ends_with("latest.json"))
        .collect();
    ids.sort();
    let whole = fs::read_to_string(&ids[1]).expect("there");
    fs::write(
        &ids[1],
        whole.replace("\"outcome\": \"clean\"", "\"outcome\": \"not-clean\""),
    )
    .expect("ours");
    assert_eq!(fleet.run("verify", &[]).code(), Some(3), "changed");
    fs::remove_file(&ids[1]).expect("ours");
    assert_eq!(fleet.run("verify", &[]).code(), Some(3), "missing");
    fs::write(&ids[1], &whole).expect("ours");
    assert_eq!(fleet.run("verify", &[]).code(), Some(0), "{}", fleet.said());
    // The newest one has no child that names it: the chain does.
    let latest = fleet.state().join("receipts/latest.json");
    let newest = fs::read_to_string(&latest)
        .expect("there")
        .replace("\"trigger\": \"manual\"", "\"trigger\": \"cron\"");
    fs::write(&latest, &newest).expect("ours");
    fs::write(ids.last().expect("three"), &newest).expect("ours");
    assert_eq!(
        fleet.run("verify", &[]).code(),
        Some(3),
        "the newest was changed"
    );
}

/// A file system of our own, small and empty, in place of the state folder.
struct Mounted(PathBuf);

impl Mounted {
    /// `None` where we may not mount, which is said.
    fn at(path: &Path, options: &str) -> Option<Self> {
        fs::create_dir_all(path).expect("room");
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(path)
            .status()
            .is_ok_and(|status| status.success());
        if !done {
            println!("skipped: this needs the right to mount");
        }
        done.then(|| Self(path.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_disk_that_fills_up_at_any_stage_leaves_whole_files_and_a_run_that_says_so() {
    if !isolated(
        "a_disk_that_fills_up_at_any_stage_leaves_whole_files_and_a_run_that_says_so",
        &[],
    ) {
        return;
    }
    let (after, _) = whole_run();
    for point in [
        "lock.signed",
        "run.planned",
        "run.open.committed",
        "receipt.durable",
        "snapshot.file-made",
        "snapshot.read-back",
        "run.copy.committed",
        "run.write.committed",
        "run.restart.committed",
        "run.verified",
    ] {
        let fleet = Fleet::new();
        let Some(_mounted) = Mounted::at(&fleet.state(), "size=8m,mode=0700") else {
            return;
        };
        let mut child = fleet.spawn(
            "apply",
            &[
                ("FLEET_UPDATE_FAIL", point),
                ("FLEET_UPDATE_FAIL_BY", "stop"),
            ],
        );
        let stopped = wait_until_stopped(&mut child);
        let ballast = fleet.state().join("ballast");
        if stopped {
            fill(&ballast);
            let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).expect("a pid"))
                .expect("a pid");
            rustix::process::kill_process(pid, rustix::process::Signal::CONT).expect("ours");
        }
        let status = child.wait().expect("ours");
        assert!(stopped, "{point} was not reached: {}", fleet.said());
        assert_ne!(
            status.code(),
            Some(0),
            "{point}: a full disk is not clean: {}",
            fleet.said()
        );
        assert!(status.code().is_some(), "{point}: it ended by itself");
        fs::remove_file(&ballast).expect("ours");
        fleet.check_whole(after, point);
        if [
            "lock.signed",
            "run.planned",
            "run.open.committed",
            "snapshot.file-made",
        ]
        .contains(&point)
        {
            assert_eq!(
                fleet.configs(),
                vec![CONFIG; 3],
                "{point}: refused before changes"
            );
        }
        fleet.check_converges(after, point);
    }
}

/// Takes every page of a small file system; its counters are kept by processor, so that a large write gives up too
/// early.
fn fill(path: &Path) {
    use std::io::Write as _;
    let mut file = fs::File::create(path).expect("one more name");
    let mut failures = 0;
    while failures < 64 {
        failures += usize::from(file.write_all(&[0; 4096]).is_err());
    }
}

fn wait_until_stopped(child: &mut Child) -> bool {
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

#[test]
fn a_read_only_state_folder_is_an_error_before_anything_is_changed() {
    if !isolated(
        "a_read_only_state_folder_is_an_error_before_anything_is_changed",
        &[],
    ) {
        return;
    }
    let fleet = Fleet::new();
    let Some(_mounted) = Mounted::at(&fleet.state(), "ro,size=1m,mode=0700") else {
        return;
    };
    assert_eq!(fleet.run("apply", &[]).code(), Some(3), "{}", fleet.said());
    assert_eq!(
        (fleet.configs(), fleet.starts()),
        (vec![CONFIG.to_owned(); 3], vec![1, 1, 1])
    );
}

#[test]
fn a_run_inside_a_run_works_under_the_lock_of_the_outer_one() {
    if !isolated(
        "a_run_inside_a_run_works_under_the_lock_of_the_outer_one",
        &[],
    ) {
        return;
    }
    use fleet_update::state::Lock;
    let fleet = Fleet::without_runtimes(many(1).into_iter());
    let world = World::read().expect("proc");
    let lock = fleet.folder.path().join("run/lock");
    let held = Lock::take(&world, &lock, "outer", Duration::ZERO).expect("free");
    assert_eq!(
        fleet.run("apply", &[]).code(),
        Some(0),
        "a child of ours: {}",
        fleet.said()
    );
    assert!(Lock::is_held(&lock), "the inner run did not give it back");
    drop(held);
    assert!(!Lock::is_held(&lock));
}

#[test]
fn the_bookkeeping_of_a_run_over_a_thousand_homes_costs_under_a_twentieth_of_it() {
    if !isolated(
        "the_bookkeeping_of_a_run_over_a_thousand_homes_costs_under_a_twentieth_of_it",
        &[],
    ) {
        return;
    }
    let fleet = Fleet::without_runtimes(many(1000).into_iter());
    let log = fleet.folder.path().join("cost");
    let start = Instant::now();
    let status = fleet.run(
        "apply",
        &[("FLEET_UPDATE_FAIL_TIME", log.to_str().expect("a path"))],
    );
    let took = start.elapsed();
    assert_eq!(status.code(), Some(0), "{}", fleet.said());
    let spent: u64 = fs::read_to_string(&log)
        .expect("a log")
        .lines()
        .map(|line| line.parse::<u64>().expect("a number"))
        .sum();
    let spent = Duration::from_micros(spent);
    println!(
        "= bookkeeping {spent:?} of {took:?} on 1,000 homes: {:.1} %",
        100.0 * spent.as_secs_f64() / took.as_secs_f64()
    );
    // Without optimisation the hashing costs several times as much as it does in a release.
    let share = if cfg!(debug_assertions) { 3 } else { 20 };
    assert!(spent * share < took, "{spent:?} of {took:?}");
}
