//! Restarting what a real s6 supervises, by the row that is built in.

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
use fleet_update::restart::{Call, Expected, Fields, Order, Restart, Table};
use fleet_update::world::World;

/// A supervision tree with one service; all of it ends when dropped.
struct Tree {
    scan: Child,
    folder: tempfile::TempDir,
}

impl Tree {
    fn start() -> Option<Self> {
        let programs = ["/usr/bin/s6-svscan", "/usr/bin/s6-svc", "/usr/bin/python3"];
        if let Some(missing) = programs.iter().find(|path| !Path::new(path).exists()) {
            eprintln!("SKIPPED: s6 cannot be tried without {missing}");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let slot = folder.path().join("agent");
        std::fs::create_dir(&slot).unwrap();
        let run = slot.join("run");
        let stand_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/restart/stand-in");
        let text = format!(
            "#!/bin/sh\nexport STAND_IN_HOME={}\nexec {} serve\n",
            folder.path().display(),
            stand_in.display()
        );
        std::fs::write(&run, text).unwrap();
        std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o755)).unwrap();
        let scan = Command::new("/usr/bin/s6-svscan")
            .arg(folder.path())
            .stdin(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let tree = Self { scan, folder };
        let began = Instant::now();
        while tree.pid().is_none() {
            assert!(began.elapsed() < Duration::from_secs(20), "it does not run");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(tree)
    }

    fn pid(&self) -> Option<u32> {
        let text = std::fs::read(self.folder.path().join("state.json")).ok()?;
        let state: serde_json::Value = serde_json::from_slice(&text).ok()?;
        let running = state["state"] == "running";
        running
            .then(|| u32::try_from(state["pid"].as_u64()?).ok())
            .flatten()
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let service = self.folder.path().join("agent");
        let _ = Command::new("/usr/bin/s6-svc")
            .args(["-xd"])
            .arg(&service)
            .status();
        // s6-svscan(8): SIGTERM ends the tree.
        let scan = rustix::process::Pid::from_child(&self.scan);
        let _ = rustix::process::kill_process(scan, rustix::process::Signal::TERM);
        let _ = self.scan.wait();
    }
}

#[test]
fn what_s6_supervises_is_restarted_by_the_built_in_row() {
    let Some(tree) = Tree::start() else { return };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/restart/app.toml");
    let app = App::parse(&std::fs::read_to_string(&path).unwrap(), &path).unwrap();
    let before = tree.pid().unwrap();
    let process = procfs::read(before, &runtimes::wanted_variables(&app))
        .unwrap()
        .unwrap();
    let table = Table::load(None, &[]).unwrap();
    let mut row = table
        .rows()
        .iter()
        .find(|row| row.id == "s6")
        .unwrap()
        .clone();
    row.settle = Duration::from_millis(500);
    row.limit = Duration::from_secs(10);
    let mut fields = Fields::default();
    fields.set("slot", &tree.folder.path().join("agent").to_string_lossy());
    let order = Order {
        app,
        manager: Manager::System,
        unit: String::new(),
        kind: "serve".into(),
        homes: vec![PathBuf::from(tree.folder.path())],
        expected: Expected {
            incarnation: Some(process.incarnation),
            invocation_id: String::new(),
        },
        row,
        fields,
        spoke_before: true,
        deadline: Duration::from_secs(60),
    };
    let world = World::read().unwrap();
    let seen = Restart(order).perform(&world, &mut |_| Ok(())).unwrap();
    assert!(
        matches!(
            &seen.call,
            Call::Ran {
                status: Some(0),
                ..
            }
        ),
        "{seen:#?}"
    );
    assert_eq!(seen.old_alive, Some(false), "{seen:#?}");
    assert_eq!(seen.successors.len(), 1, "{seen:#?}");
    assert_eq!(Some(seen.successors[0].incarnation.pid), tree.pid());
    assert_ne!(Some(before), tree.pid());
}
