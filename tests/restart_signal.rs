//! Restarting without a service manager: by a signal, and by a command, with a stand-in for the
//! runtime and a loop of a shell for the one that keeps it running.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    missing_docs,
    reason = "tests"
)]

/// Says that something was not tested, past the capture of the test harness.
macro_rules! skipped {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fleet_update::app::App;
use fleet_update::fleet::{Manager, procfs, runtimes};
use fleet_update::helper::Task;
use fleet_update::restart::{
    Action, Call, Drain, Expected, Fields, Observation, Order, Restart, SignalName, Table,
};
use fleet_update::world::World;

/// A loop that keeps one stand-in running; it ends, with what it started, when dropped.
struct Kept {
    group: Child,
    home: tempfile::TempDir,
}

impl Kept {
    /// `again` is what the loop does when the stand-in ended: `true` to start the next, `false` to end.
    fn start(again: &str) -> Option<Self> {
        if !Path::new("/usr/bin/python3").exists() {
            skipped!("SKIPPED: the stand-in needs /usr/bin/python3");
            return None;
        }
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let home = tempfile::tempdir().unwrap();
        let loops = format!(
            "while :; do {here}/tests/restart/stand-in serve; {again} || exit; done",
            here = here.display()
        );
        let group = Command::new("/bin/sh")
            .args(["-c", &loops])
            .env("STAND_IN_HOME", home.path())
            .stdin(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let kept = Self { group, home };
        kept.until_it_runs();
        Some(kept)
    }

    fn state(&self) -> Option<(u32, String)> {
        let text = std::fs::read(self.home.path().join("state.json")).ok()?;
        let state: serde_json::Value = serde_json::from_slice(&text).ok()?;
        let pid = u32::try_from(state["pid"].as_u64()?).ok()?;
        Some((pid, state["state"].as_str()?.to_owned()))
    }

    fn until_it_runs(&self) {
        let began = Instant::now();
        while self.state().is_none_or(|(_, state)| state != "running") {
            assert!(began.elapsed() < Duration::from_secs(10), "it does not run");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn order(&self, action: Action) -> Order {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/restart/app.toml");
        let app = App::parse(&std::fs::read_to_string(&path).unwrap(), &path).unwrap();
        let (pid, _) = self.state().unwrap();
        let process = procfs::read(pid, &runtimes::wanted_variables(&app))
            .unwrap()
            .unwrap();
        let table = Table::load(None, &[]).unwrap();
        let mut row = table
            .rows()
            .iter()
            .find(|row| row.id == "external")
            .unwrap()
            .clone();
        row.action = action;
        row.drain = Some(Drain {
            verb: None,
            signal: SignalName::Usr1,
            limit: Duration::from_secs(5),
        });
        row.settle = Duration::from_millis(500);
        row.limit = Duration::from_secs(3);
        let mut fields = Fields::default();
        fields.set("pid", &pid.to_string());
        Order {
            app,
            manager: Manager::System,
            unit: String::new(),
            kind: "serve".into(),
            homes: vec![PathBuf::from(self.home.path())],
            expected: Expected {
                incarnation: Some(process.incarnation),
                invocation_id: String::new(),
            },
            row,
            fields,
            spoke_before: true,
            deadline: Duration::from_secs(30),
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.group);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.group.wait();
    }
}

fn perform(order: Order) -> Observation {
    let world = World::read().unwrap();
    Restart(order).perform(&world, &mut |_| Ok(())).unwrap()
}

fn is_new_life(seen: &Observation) {
    assert_eq!(seen.old_alive, Some(false), "{seen:#?}");
    assert_eq!(seen.successors.len(), 1, "{seen:#?}");
    assert!(seen.survivors.is_empty(), "{seen:#?}");
    assert!(!seen.at_limit && !seen.flapping, "{seen:#?}");
    assert!(seen.settled_ms >= 500, "{seen:#?}");
    let report = seen.self_after.as_ref().unwrap();
    assert_eq!(report.pid, seen.successors[0].incarnation.pid);
}

#[test]
fn a_signal_ends_one_life_and_the_loop_starts_the_next() {
    let Some(kept) = Kept::start("true") else {
        return;
    };
    let seen = perform(kept.order(Action::Signal));
    let signal = SignalName::Usr1;
    assert_eq!(seen.call, Call::Signalled { signal });
    is_new_life(&seen);
}

#[test]
fn another_life_than_the_expected_one_is_not_signalled() {
    let Some(kept) = Kept::start("true") else {
        return;
    };
    let mut order = kept.order(Action::Signal);
    let incarnation = order.expected.incarnation.as_mut().unwrap();
    incarnation.start_ticks += 1;
    let before = kept.state();
    let seen = perform(order);
    assert!(matches!(seen.call, Call::Nothing { .. }), "{seen:#?}");
    assert_eq!(kept.state(), before);
}

#[test]
fn a_signal_that_is_not_caught_is_not_sent() {
    let Some(kept) = Kept::start("true") else {
        return;
    };
    let mut order = kept.order(Action::Signal);
    order.row.drain.as_mut().unwrap().signal = SignalName::Hup;
    let before = kept.state();
    let seen = perform(order);
    assert!(matches!(seen.call, Call::Refused { .. }), "{seen:#?}");
    assert_eq!(seen.old_alive, Some(true));
    assert_eq!(kept.state(), before);
}

#[test]
fn nobody_starts_the_next_and_that_is_seen() {
    let Some(kept) = Kept::start("false") else {
        return;
    };
    let seen = perform(kept.order(Action::Signal));
    assert_eq!(seen.old_alive, Some(false), "{seen:#?}");
    assert!(seen.successors.is_empty() && seen.at_limit, "{seen:#?}");
}

#[test]
fn a_command_is_run_without_a_shell_and_the_next_life_is_watched_for() {
    let Some(kept) = Kept::start("true") else {
        return;
    };
    let mut order = kept.order(Action::Command);
    order.row.argv = ["/bin/kill", "-USR1", "{pid}"].map(String::from).to_vec();
    let seen = perform(order);
    let program = String::from("/bin/kill");
    let status = Some(0);
    assert_eq!(seen.call, Call::Ran { program, status });
    is_new_life(&seen);
}

#[test]
fn a_command_gets_the_environment_of_its_row_and_nothing_that_is_ours() {
    let Some(kept) = Kept::start("true") else {
        return;
    };
    let told = tempfile::NamedTempFile::new().unwrap();
    let mut order = kept.order(Action::Command);
    let read = format!(
        "/bin/cat /proc/$$/environ >{}; kill -USR1 {{pid}}",
        told.path().display()
    );
    order.row.argv = ["/bin/sh", "-c", &read].map(String::from).to_vec();
    order.row.env = [("FLEET", "a b"), ("PATH", "/bin")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    is_new_life(&perform(order));
    let told = std::fs::read_to_string(told.path()).unwrap();
    let mut lines: Vec<&str> = told.split_terminator('\0').collect();
    lines.sort_unstable();
    assert_eq!(lines, ["FLEET=a b", "PATH=/bin"]);
    assert!(
        std::env::vars_os().count() > 2,
        "there is something to inherit"
    );
}

#[test]
fn a_command_that_hangs_is_ended_at_its_limit() {
    let Some(kept) = Kept::start("true") else {
        return;
    };
    let mut order = kept.order(Action::Command);
    order.row.argv = ["/bin/sleep", "600"].map(String::from).to_vec();
    order.row.limit = Duration::from_millis(300);
    let began = Instant::now();
    let seen = perform(order);
    // It would sleep for ten minutes; the rest is a busy machine.
    assert!(began.elapsed() < Duration::from_secs(30));
    let program = String::from("/bin/sleep");
    let status = None;
    assert_eq!(seen.call, Call::Ran { program, status });
    assert_eq!(seen.old_alive, Some(true), "{seen:#?}");
    assert!(seen.at_limit);
}
