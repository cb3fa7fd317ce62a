//! Restarting launchd jobs, with a stand-in for launchctl(1) that answers as documented and starts stand-ins for
//! the runtime. Nothing here ran on macOS.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    missing_docs,
    reason = "tests"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fleet_update::app::App;
use fleet_update::fleet::{Manager, procfs, runtimes};
use fleet_update::restart::launchd::{Launchctl, restart_by};
use fleet_update::restart::{Call, Expected, Fields, Observation, Order, Table};
use serde_json::{Value, json};

/// A machine's launchd: a folder with domains, and what was started.
struct Launchd {
    folder: tempfile::TempDir,
}

/// One loaded label with a running stand-in.
struct Loaded {
    file: PathBuf,
    home: PathBuf,
    label: &'static str,
}

impl Launchd {
    fn new() -> Option<Self> {
        if !Path::new("/usr/bin/python3").exists() {
            // The harness captures `eprint!`, and a skipped test must be seen.
            let _ = std::io::Write::write_all(
                &mut std::io::stderr(),
                b"SKIPPED: the stand-in needs /usr/bin/python3\n",
            );
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/launchd/launchctl");
        std::fs::copy(source, folder.path().join("launchctl")).unwrap();
        Some(Self { folder })
    }

    fn launchctl(&self) -> Launchctl {
        Launchctl::at(&self.folder.path().join("launchctl"))
    }

    fn domain(&self, kind: &str) -> PathBuf {
        let uid = rustix::process::getuid().as_raw();
        let name = if kind == "system" {
            kind.to_owned()
        } else {
            format!("{kind}-{uid}")
        };
        let domain = self.folder.path().join(name);
        std::fs::create_dir_all(&domain).unwrap();
        domain
    }

    /// Loads a label into a domain, and starts it as launchd would.
    fn load(&self, kind: &str, label: &'static str, extra: &Value) -> Loaded {
        let home = self.folder.path().join(format!("home-{label}"));
        std::fs::create_dir_all(&home).unwrap();
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/restart/stand-in");
        let mut child = Command::new(&program)
            .arg("serve")
            .env_clear()
            .env("STAND_IN_HOME", &home)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let mut job = json!({
            "argv": [program, "serve"],
            "env": { "STAND_IN_HOME": home },
            "pid": child.id(),
            "runs": 1,
        });
        job.as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        let file = self.domain(kind).join(label);
        std::fs::write(&file, job.to_string()).unwrap();
        // Somebody must take its status, or it stays a zombie that the kernel still lists.
        std::thread::spawn(move || child.wait());
        let loaded = Loaded { file, home, label };
        loaded.until_it_runs();
        loaded
    }

    fn calls(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

impl Loaded {
    fn pid(&self) -> u32 {
        let job: Value = serde_json::from_slice(&std::fs::read(&self.file).unwrap()).unwrap();
        u32::try_from(job["pid"].as_u64().unwrap()).unwrap()
    }

    fn until_it_runs(&self) {
        let began = Instant::now();
        let runs = || {
            let state: Value =
                serde_json::from_slice(&std::fs::read(self.home.join("state.json")).ok()?).ok()?;
            (state["pid"].as_u64()? == u64::from(self.pid())).then_some(())
        };
        while runs().is_none() {
            assert!(began.elapsed() < Duration::from_secs(20), "it does not run");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn order(&self) -> Order {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/restart/app.toml");
        let app = App::parse(&std::fs::read_to_string(&path).unwrap(), &path).unwrap();
        let process = procfs::read(self.pid(), &runtimes::wanted_variables(&app))
            .unwrap()
            .unwrap();
        let table = Table::load(None, &[]).unwrap();
        let mut row = table
            .rows()
            .iter()
            .find(|row| row.id == "launchd")
            .unwrap()
            .clone();
        row.settle = Duration::from_millis(500);
        row.speak_limit = Duration::from_secs(5);
        row.limit = Duration::from_secs(3);
        let mut fields = Fields::default();
        fields.set("label", self.label);
        Order {
            app,
            manager: Manager::System,
            unit: String::new(),
            kind: "serve".into(),
            homes: vec![self.home.clone()],
            expected: Expected {
                incarnation: Some(process.incarnation),
                invocation_id: String::new(),
            },
            row,
            fields,
            spoke_before: true,
            deadline: Duration::from_secs(60),
        }
    }

    fn restart(&self, launchd: &Launchd) -> Observation {
        restart_by(&launchd.launchctl(), &self.order(), &mut |_| Ok(())).unwrap()
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let pid = i32::try_from(self.pid()).ok().filter(|pid| *pid > 1);
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

#[test]
fn every_label_gets_a_new_process_in_the_domain_that_has_it() {
    let Some(launchd) = Launchd::new() else {
        return;
    };
    launchd.domain("gui");
    for (kind, label) in [
        ("gui", "org.agent"),
        ("user", "org.agent.work"),
        ("system", "org.agent.ops"),
    ] {
        let job = launchd.load(kind, label, &json!({}));
        let before = job.pid();
        let seen = job.restart(&launchd);
        assert!(matches!(seen.call, Call::Queued { .. }), "{seen:#?}");
        assert_eq!(seen.old_alive, Some(false), "{seen:#?}");
        assert_eq!(seen.successors.len(), 1, "{seen:#?}");
        assert_eq!(seen.successors[0].incarnation.pid, job.pid());
        assert_ne!(before, job.pid());
        assert_eq!(seen.unit_after.unwrap().active_state, "active");
    }
    let uid = rustix::process::getuid().as_raw();
    let expected = [
        format!("kickstart -k gui/{uid}/org.agent"),
        format!("kickstart -k user/{uid}/org.agent.work"),
        "kickstart -k system/org.agent.ops".to_owned(),
    ];
    assert_eq!(launchd.calls(), expected);
}

#[test]
fn an_exit_number_proves_nothing_in_either_direction() {
    let Some(launchd) = Launchd::new() else {
        return;
    };
    let job = launchd.load("gui", "org.odd", &json!({ "status": 5 }));
    let seen = job.restart(&launchd);
    assert_eq!(seen.old_alive, Some(false), "{seen:#?}");
    assert_eq!(seen.successors.len(), 1, "{seen:#?}");
    let job = launchd.load("gui", "org.broken", &json!({ "broken": true }));
    let seen = job.restart(&launchd);
    assert_eq!(seen.old_alive, Some(false), "{seen:#?}");
    assert_eq!(seen.successors.len(), 0, "{seen:#?}");
    assert_eq!(seen.unit_after.unwrap().active_state, "inactive");
}

#[test]
fn a_job_that_kept_its_process_was_not_restarted() {
    let Some(launchd) = Launchd::new() else {
        return;
    };
    let job = launchd.load("user", "org.deaf", &json!({ "deaf": true }));
    let seen = job.restart(&launchd);
    assert_eq!(seen.old_alive, Some(true), "{seen:#?}");
    assert_eq!(seen.successors.len(), 0, "{seen:#?}");
    let (before, after) = (seen.unit_before, seen.unit_after.unwrap());
    assert_eq!(before.invocation_id, after.invocation_id);
    assert!(
        seen.notes[0].contains("Operation already in progress"),
        "{:?}",
        seen.notes
    );
}

#[test]
fn a_label_that_nobody_loaded_or_that_may_not_be_asked_for_is_left_alone() {
    let Some(launchd) = Launchd::new() else {
        return;
    };
    let job = launchd.load("gui", "org.unloaded", &json!({}));
    let order = job.order();
    let elsewhere = Launchd::new().unwrap();
    let seen = restart_by(&elsewhere.launchctl(), &order, &mut |_| Ok(())).unwrap();
    assert!(
        matches!(&seen.call, Call::Refused { message, .. } if message.contains("no domain has")),
        "{seen:#?}"
    );
    std::fs::write(elsewhere.domain("gui").join("denied"), "").unwrap();
    let seen = restart_by(&elsewhere.launchctl(), &order, &mut |_| Ok(())).unwrap();
    assert!(
        matches!(&seen.call, Call::Refused { message, .. } if message.contains("not permitted")),
        "{seen:#?}"
    );
    assert!(elsewhere.calls().is_empty());
    // A process that is not the job's is not the job's to end.
    let other = launchd.load("gui", "org.other", &json!({}));
    let mut order = other.order();
    order.fields.set("label", "org.unloaded");
    let seen = restart_by(&launchd.launchctl(), &order, &mut |_| Ok(())).unwrap();
    assert!(matches!(seen.call, Call::Nothing { .. }), "{seen:#?}");
    assert!(launchd.calls().is_empty());
}
