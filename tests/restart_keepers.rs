//! Restarting what a real s6 keeps, by the row that is built in, and what a real runit and a real supervisord
//! keep, by the rows that ship as examples.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    missing_docs,
    reason = "tests"
)]

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fleet_update::app::App;
use fleet_update::fleet::{Manager, procfs, runtimes};
use fleet_update::helper::Task;
use fleet_update::restart::{Call, Expected, Fields, Mechanism, Order, Restart, Table};
use fleet_update::world::World;

/// The name of the one program, as the examples call it: its kind and its profile.
const NAME: &str = "serve-work";

/// A keeper with one stand-in; both end when dropped.
struct Keeper {
    child: Child,
    folder: tempfile::TempDir,
}

impl Keeper {
    /// Starts `program` in a folder that `prepare` fills; `None` where it is not installed.
    fn start(
        needed: &[&str],
        prepare: impl Fn(&Path, &str),
        command: impl Fn(&Path) -> Command,
    ) -> Option<Self> {
        let all = [needed, &["/usr/bin/python3"]].concat();
        if let Some(missing) = all.iter().find(|path| !Path::new(path).exists()) {
            // The harness captures `eprint!`, and a skipped test must be seen.
            let _ = std::io::Write::write_all(
                &mut std::io::stderr(),
                format!("SKIPPED: a keeper cannot be tried without {missing}\n").as_bytes(),
            );
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let stand_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/restart/stand-in");
        prepare(folder.path(), &stand_in.to_string_lossy());
        let child = command(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let keeper = Self { child, folder };
        let began = Instant::now();
        while keeper.pid().is_none() {
            assert!(began.elapsed() < Duration::from_secs(60), "it does not run");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(keeper)
    }

    fn pid(&self) -> Option<u32> {
        let text = std::fs::read(self.folder.path().join("state.json")).ok()?;
        let state: serde_json::Value = serde_json::from_slice(&text).ok()?;
        let running = state["state"] == "running";
        running
            .then(|| u32::try_from(state["pid"].as_u64()?).ok())
            .flatten()
    }

    /// Restarts what it keeps by a row, and checks that another life runs.
    fn restart(&self, mut row: Mechanism) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/restart/app.toml");
        let app = App::parse(&std::fs::read_to_string(&path).unwrap(), &path).unwrap();
        let before = self.pid().unwrap();
        let process = procfs::read(before, &runtimes::wanted_variables(&app))
            .unwrap()
            .unwrap();
        row.settle = Duration::from_millis(500);
        row.limit = Duration::from_secs(30);
        let mut fields = Fields::default();
        fields.set("kind", "serve");
        fields.set("profile", "work");
        fields.set("slot", &self.folder.path().join(NAME).to_string_lossy());
        let order = Order {
            app,
            manager: Manager::System,
            unit: String::new(),
            kind: "serve".into(),
            homes: vec![PathBuf::from(self.folder.path())],
            expected: Expected {
                incarnation: Some(process.incarnation),
                invocation_id: String::new(),
            },
            row,
            fields,
            spoke_before: true,
            deadline: Duration::from_secs(120),
        };
        let world = World::read().unwrap();
        let seen = Restart(order).perform(&world, &mut |_| Ok(())).unwrap();
        let is_run = matches!(
            seen.call,
            Call::Ran {
                status: Some(0),
                ..
            }
        );
        assert!(is_run, "{seen:#?}");
        assert_eq!(seen.old_alive, Some(false), "{seen:#?}");
        assert_eq!(seen.successors.len(), 1, "{seen:#?}");
        assert_eq!(Some(seen.successors[0].incarnation.pid), self.pid());
        assert_ne!(Some(before), self.pid());
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // runsv(8), s6-svscan(8) and supervisord: SIGTERM ends what they keep, and then themselves.
        let keeper = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(keeper, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

/// The row of an example, with its place of services replaced.
fn example(name: &str, place: (&str, &str)) -> Mechanism {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!(
        "dist/etc/fleet-update/mechanisms.d/{name}.toml.example"
    ));
    let text = std::fs::read_to_string(path).unwrap();
    let text = if place.0.is_empty() {
        text
    } else {
        text.replace(place.0, place.1)
    };
    let table = Table::load(None, &[(name.to_owned(), text)]).unwrap();
    let row = table.rows().iter().find(|row| row.id == name);
    row.unwrap().clone()
}

/// A service's folder as runit and s6 have it.
fn service(folder: &Path, stand_in: &str) {
    let service = folder.join(NAME);
    std::fs::create_dir(&service).unwrap();
    let run = service.join("run");
    let home = folder.display();
    let text = format!("#!/bin/sh\nexport STAND_IN_HOME={home}\nexec {stand_in} serve\n");
    std::fs::write(&run, text).unwrap();
    std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn what_s6_supervises_is_restarted_by_the_built_in_row() {
    let command = |folder: &Path| {
        let mut command = Command::new("/usr/bin/s6-svscan");
        command.arg(folder);
        command
    };
    let needed = ["/usr/bin/s6-svscan", "/usr/bin/s6-svc"];
    let Some(keeper) = Keeper::start(&needed, service, command) else {
        return;
    };
    let table = Table::load(None, &[]).unwrap();
    let row = table.rows().iter().find(|row| row.id == "s6").unwrap();
    keeper.restart(row.clone());
}

#[test]
fn what_runit_keeps_is_restarted_by_the_example() {
    let command = |folder: &Path| {
        let mut command = Command::new("/usr/bin/runsv");
        command.arg(folder.join(NAME));
        command
    };
    let needed = ["/usr/bin/runsv", "/usr/bin/sv"];
    let Some(keeper) = Keeper::start(&needed, service, command) else {
        return;
    };
    let place = keeper.folder.path().to_string_lossy().into_owned();
    keeper.restart(example("runit", ("/etc/service", &place)));
}

#[test]
fn what_supervisord_keeps_is_restarted_by_the_example() {
    let prepare = |folder: &Path, stand_in: &str| {
        let here = folder.display();
        let text = format!(
            "[supervisord]\nlogfile={here}/log\npidfile={here}/pid\nnodaemon=true\n\
             [unix_http_server]\nfile={here}/socket\n\
             [rpcinterface:supervisor]\n\
             supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface\n\
             [supervisorctl]\nserverurl=unix://{here}/socket\n\
             [program:{NAME}]\ncommand={stand_in} serve\nenvironment=STAND_IN_HOME=\"{here}\"\n"
        );
        std::fs::write(folder.join("conf"), text).unwrap();
    };
    let command = |folder: &Path| {
        let mut command = Command::new("/usr/bin/supervisord");
        command.arg("-c").arg(folder.join("conf"));
        command
    };
    let needed = ["/usr/bin/supervisord", "/usr/bin/supervisorctl"];
    let Some(keeper) = Keeper::start(&needed, prepare, command) else {
        return;
    };
    let mut row = example("supervisord", ("", ""));
    let conf = keeper.folder.path().join("conf");
    let conf = conf.to_string_lossy().into_owned();
    row.argv.splice(1..1, ["-c".to_owned(), conf]);
    keeper.restart(row);
}
