//! What a restart does under a real systemd, and what it says of it: the observations of the design's
//! evidence, one a test, with stand-ins for runtimes and a witness that subscribes by itself.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::missing_panics_doc,
    missing_docs,
    dead_code,
    reason = "tests"
)]

mod support;

use std::path::PathBuf;
use std::process::Child;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::sandbox::{Boot, Sandbox};
use support::watcher::{Watcher, What};
use support::{skip, wait_for};

/// Short spans, so that a test takes seconds; the drain is the real one's signal.
const ROWS: &str = r#"
[[mechanism]]
id = "test"
match = { manager = ["system", "user"] }
action = "try-restart"
drain = { signal = "USR1", limit = "20s" }
settle = "1s"
settle_silent = "2s"
speak_limit = "5s"
limit = "60s"
instruction = "x"
"#;

const USER: &str = "ann";

/// The one sandbox of this file; it ends with this process.
fn sandbox() -> Option<&'static Sandbox> {
    static SANDBOX: OnceLock<Result<Sandbox, String>> = OnceLock::new();
    let sandbox = SANDBOX.get_or_init(|| {
        let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let probe = probe();
        let sandbox = Boot::default()
            .show(&here.join("tests/restart"), "/opt/stand-in")
            .show(&probe, "/opt/restart-probe")
            .start()?;
        for user in [USER, "bob", "carol", "eve"] {
            sandbox.sh(None, &format!("useradd -m -s /bin/bash {user}"));
        }
        for user in [USER, "bob", "eve"] {
            sandbox.sh(
                None,
                &format!(
                    "loginctl enable-linger {user}; for _ in $(seq 200); do \
                 [ -S /run/user/$(id -u {user})/bus ] && exit 0; sleep 0.05; done; exit 1"
                ),
            );
        }
        sandbox.write("/opt/rows.toml", ROWS, 0o644);
        let plain: Vec<&str> = ROWS
            .lines()
            .filter(|line| !line.starts_with("drain"))
            .collect();
        sandbox.write("/opt/rows-plain.toml", &plain.join("\n"), 0o644);
        Ok(sandbox)
    });
    match sandbox {
        Ok(sandbox) => Some(sandbox),
        Err(reason) => {
            skip(reason);
            None
        }
    }
}

/// The program that gives one order; `cargo test --test` alone does not build examples.
fn probe() -> PathBuf {
    let built = std::process::Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--example", "restart-probe"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .unwrap();
    assert!(built.success(), "the probe does not build");
    let test = std::env::current_exe().unwrap();
    let target = test.ancestors().nth(2).unwrap();
    target.join("examples/restart-probe")
}

/// One stand-in under one user's manager.
struct Service {
    sandbox: &'static Sandbox,
    user: &'static str,
    unit: String,
    home: String,
}

impl Service {
    /// Writes and starts a service; `lines` are added to its `[Service]` section.
    fn start(name: &str, lines: &str) -> Option<Self> {
        let service = Self::of(USER, name)?;
        let text = service.text(lines);
        service.write(&text);
        service.up();
        Some(service)
    }

    fn of(user: &'static str, name: &str) -> Option<Self> {
        let sandbox = sandbox()?;
        let home = format!("/home/{user}/{name}");
        // A program of its own, so that a test can take it away.
        sandbox.sh(
            Some(user),
            &format!("mkdir -p {home}/bin && cp /opt/stand-in/stand-in {home}/bin/"),
        );
        Some(Self {
            sandbox,
            user,
            unit: format!("{name}.service"),
            home,
        })
    }

    fn text(&self, lines: &str) -> String {
        let home = &self.home;
        format!(
            "[Unit]\nStartLimitIntervalSec=60\nStartLimitBurst=4\n[Service]\nEnvironment=STAND_IN_HOME={home}\n\
             ExecStart={home}/bin/stand-in serve\nRestart=always\nRestartSec=30\nRestartForceExitStatus=75\n\
             KillMode=mixed\nTimeoutStopSec=20\n\
             ExecStopPost=/bin/sh -c 'echo $EXIT_STATUS >>{home}/ended'\n{lines}\n[Install]\nWantedBy=default.target\n"
        )
    }

    fn path(&self) -> String {
        format!("/home/{}/.config/systemd/user/{}", self.user, self.unit)
    }

    fn write(&self, text: &str) {
        let folder = format!("/home/{}/.config/systemd/user", self.user);
        self.sh(&format!("mkdir -p {folder}"));
        self.sandbox.write(&self.path(), text, 0o644);
        self.sh("systemctl --user daemon-reload");
    }

    fn sh(&self, text: &str) -> String {
        self.sandbox.sh(Some(self.user), text)
    }

    fn systemctl(&self, verb: &str) -> String {
        self.sh(&format!("systemctl --user {verb} {}", self.unit))
    }

    fn up(&self) {
        self.systemctl("start");
        if !self.sandbox.path(&self.path()).exists() {
            return;
        }
        let young = String::from_utf8(self.sandbox.read(&self.path()).unwrap()).unwrap();
        if !young.contains("YOUNG") {
            self.until_it_runs();
        }
    }

    fn until_it_runs(&self) {
        let file = format!("{}/state.json", self.home);
        wait_for("it says that it runs", Duration::from_secs(10), || {
            let text = String::from_utf8(self.sandbox.read(&file)?).ok()?;
            let pid = format!("\"pid\": {},", self.main_pid());
            (text.contains("running") && text.contains(&pid)).then_some(())
        });
    }

    fn show(&self, property: &str) -> String {
        let text = self.systemctl(&format!("show --value -p {property}"));
        text.trim().to_owned()
    }

    fn main_pid(&self) -> String {
        self.show("MainPID")
    }

    /// Writes down the order for what runs now.
    fn order(&self) {
        self.order_by("/opt/rows.toml");
    }

    fn order_by(&self, rows: &str) {
        self.sh(&format!(
            "/opt/restart-probe order user /opt/stand-in/app.toml {rows} {} >{}/order.json",
            self.unit, self.home
        ));
    }

    /// Carries the order out.
    fn run(&self) -> Value {
        let text = self.sh(&format!("/opt/restart-probe run {}/order.json", self.home));
        serde_json::from_str::<Value>(&text).unwrap()["seen"].clone()
    }

    /// Carries the order out beside the test.
    fn begin(&self) -> Child {
        let order = format!("{}/order.json", self.home);
        let output = std::fs::File::create(self.sandbox.path(&format!("{}/seen.json", self.home)));
        self.sandbox
            .command(Some(self.user), ["/opt/restart-probe", "run", &order])
            .stdout(output.unwrap())
            .spawn()
            .unwrap()
    }

    fn end(&self, mut child: Child) -> Value {
        assert!(child.wait().unwrap().success());
        let text = self
            .sandbox
            .read(&format!("{}/seen.json", self.home))
            .unwrap();
        serde_json::from_slice::<Value>(&text).unwrap()["seen"].clone()
    }

    fn watch(&self) -> Watcher {
        Watcher::start(self.sandbox, self.user)
    }

    /// What the main processes ended with, by systemd's word.
    fn endings(&self) -> Vec<String> {
        let text = self
            .sandbox
            .read(&format!("{}/ended", self.home))
            .unwrap_or_default();
        let text = String::from_utf8(text).unwrap();
        text.lines().map(ToOwned::to_owned).collect()
    }

    fn jobs(&self, watcher: &Watcher) -> Vec<String> {
        let jobs = watcher.of(&self.unit).into_iter();
        jobs.filter_map(|what| match what {
            What::JobRemoved(result) => Some(result),
            _ => None,
        })
        .collect()
    }
}

fn is_new_life(seen: &Value) {
    assert_eq!(seen["old_alive"], false, "{seen:#}");
    assert_eq!(seen["successors"].as_array().unwrap().len(), 1, "{seen:#}");
    assert_eq!(seen["survivors"].as_array().unwrap().len(), 0, "{seen:#}");
    assert_eq!(seen["invocations"].as_array().unwrap().len(), 1, "{seen:#}");
    assert_eq!(seen["unit_after"]["active_state"], "active", "{seen:#}");
    assert_eq!(
        seen["unit_after"]["invocation_id"], seen["invocations"][0],
        "{seen:#}"
    );
    assert_eq!(seen["flapping"], false, "{seen:#}");
    assert_eq!(seen["at_limit"], false, "{seen:#}");
}

#[test]
fn a_drained_runtime_is_restarted_once_and_does_not_wait_for_its_own_respawn() {
    let Some(service) = Service::start("drained", "Environment=STAND_IN_DRAIN=1") else {
        return;
    };
    let watcher = service.watch();
    service.order();
    let began = Instant::now();
    let seen = service.run();
    is_new_life(&seen);
    assert_eq!(seen["drain"]["exited"], true, "{seen:#}");
    assert_eq!(seen["call"]["call"], "queued", "{seen:#}");
    assert_eq!(seen["job_result"], "done", "{seen:#}");
    assert_eq!(seen["self_after"]["state"], "running", "{seen:#}");
    assert!(seen["settled_ms"].as_u64().unwrap() >= 1000, "{seen:#}");
    assert_eq!(service.endings(), ["75"]);
    assert_eq!(watcher.starts_of(&service.unit), 1);
    // Its RestartSec is 30 s: the job took over the pending respawn (D).
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_young_runtime_is_not_signalled() {
    let Some(service) = Service::start("young", "Environment=STAND_IN_YOUNG=600") else {
        return;
    };
    service.order();
    let seen = service.run();
    is_new_life(&seen);
    assert_eq!(seen["drain"], Value::Null, "{seen:#}");
    // Not 10, USR1: its handler was not there (B).
    assert_eq!(service.endings(), ["TERM"]);
}

#[test]
fn a_runtime_that_restarts_itself_through_a_helper_is_restarted_once() {
    let name = "helped";
    let lines = format!("Environment=STAND_IN_HELPER={name}.service STAND_IN_DRAIN=0.3");
    let Some(service) = Service::start(name, &lines) else {
        return;
    };
    let watcher = service.watch();
    service.order();
    let seen = service.run();
    is_new_life(&seen);
    assert_eq!(seen["call"]["call"], "adopted", "{seen:#}");
    assert_eq!(watcher.starts_of(&service.unit), 1, "{seen:#}");
}

#[test]
fn what_an_operator_stopped_stays_stopped() {
    let Some(service) = Service::start("stopped", "") else {
        return;
    };
    service.order();
    service.systemctl("stop");
    // It left `failed`, as the real program does (F).
    assert_eq!(service.show("ActiveState"), "failed");
    let watcher = service.watch();
    let seen = service.run();
    assert_eq!(seen["call"]["call"], "nothing", "{seen:#}");
    assert_eq!(seen["unit_after"]["active_state"], "failed", "{seen:#}");
    assert_eq!(seen["old_alive"], false, "{seen:#}");
    assert_eq!(watcher.starts_of(&service.unit), 0);
    assert_eq!(service.jobs(&watcher), Vec::<String>::new());
}

#[test]
fn a_stop_that_is_under_way_is_adopted_and_never_canceled() {
    let Some(service) = Service::start("stopping", "Environment=STAND_IN_STOP=3") else {
        return;
    };
    let watcher = service.watch();
    service.order();
    service.systemctl("stop --no-block");
    let seen = service.run();
    assert_eq!(seen["call"]["call"], "adopted", "{seen:#}");
    assert_eq!(seen["stop_seen"], true, "{seen:#}");
    assert_eq!(seen["foreign_jobs"][0]["job_type"], "stop", "{seen:#}");
    assert_eq!(seen["drain"], Value::Null, "{seen:#}");
    assert_eq!(service.jobs(&watcher), ["done"]);
    assert_eq!(watcher.starts_of(&service.unit), 0);
}

#[test]
fn an_operators_stop_during_our_restart_wins() {
    let lines = "Environment=STAND_IN_STOP=4 STAND_IN_YOUNG=0.5";
    let Some(service) = Service::start("overruled", lines) else {
        return;
    };
    service.until_it_runs();
    let watcher = service.watch();
    // Without a drain: the restart itself takes the four seconds.
    service.order_by("/opt/rows-plain.toml");
    let child = service.begin();
    let unit = service.unit.clone();
    assert!(watcher.wait_until(Duration::from_secs(10), |event| {
        event.unit == unit && event.what == What::JobNew
    }));
    service.systemctl("stop");
    let seen = service.end(child);
    assert_eq!(seen["call"]["call"], "queued", "{seen:#}");
    assert_eq!(seen["job_result"], "canceled", "{seen:#}");
    assert_eq!(seen["stop_seen"], true, "{seen:#}");
    assert_eq!(watcher.starts_of(&service.unit), 0, "{seen:#}");
}

#[test]
fn an_operators_stop_during_our_drain_wins() {
    let Some(service) = Service::start("drain-stopped", "Environment=STAND_IN_DRAIN=3") else {
        return;
    };
    let watcher = service.watch();
    service.order();
    let child = service.begin();
    wait_for("it drains", Duration::from_secs(10), || {
        let text = service
            .sandbox
            .read(&format!("{}/state.json", service.home))?;
        String::from_utf8(text)
            .ok()?
            .contains("draining")
            .then_some(())
    });
    service.systemctl("stop");
    let seen = service.end(child);
    assert_eq!(seen["stop_seen"], true, "{seen:#}");
    assert_eq!(seen["successors"].as_array().unwrap().len(), 0, "{seen:#}");
    assert_eq!(watcher.starts_of(&service.unit), 0, "{seen:#}");
}

#[test]
fn what_our_drain_left_dead_is_started_once() {
    let lines = "Restart=no\nSuccessExitStatus=75\nRestartForceExitStatus=";
    let Some(service) = Service::start("left-dead", lines) else {
        return;
    };
    let watcher = service.watch();
    service.order();
    let seen = service.run();
    is_new_life(&seen);
    assert_eq!(seen["call"]["call"], "queued", "{seen:#}");
    assert_eq!(watcher.starts_of(&service.unit), 1);
}

#[test]
fn a_condition_that_fails_leaves_it_down_although_the_job_is_done() {
    let Some(service) = Service::of(USER, "conditional") else {
        return;
    };
    let text = service.text("").replace(
        "[Service]",
        &format!("ConditionPathExists={}/go\n[Service]", service.home),
    );
    service.sh(&format!("touch {}/go", service.home));
    service.write(&text);
    service.up();
    service.order();
    service.sh(&format!("rm {}/go", service.home));
    let seen = service.run();
    assert_eq!(seen["job_result"], "done", "{seen:#}");
    assert_eq!(seen["unit_after"]["active_state"], "inactive", "{seen:#}");
    assert_eq!(seen["unit_after"]["condition_result"], false, "{seen:#}");
    assert_eq!(seen["stop_seen"], false, "{seen:#}");
}

#[test]
fn a_crash_loop_is_seen_although_the_job_is_done() {
    let Some(service) = Service::start("looping", "RestartSec=0.1") else {
        return;
    };
    service.order();
    service.sh(&format!("echo 0.3 1 >{}/end", service.home));
    let seen = service.run();
    assert_eq!(seen["job_result"], "done", "{seen:#}");
    assert_eq!(seen["flapping"], true, "{seen:#}");
}

#[test]
fn a_missing_program_is_seen_although_the_job_is_done() {
    let Some(service) = Service::start("missing", "Restart=no\nRestartForceExitStatus=") else {
        return;
    };
    service.order();
    service.sh(&format!("rm {}/bin/stand-in", service.home));
    let seen = service.run();
    assert_eq!(seen["job_result"], "done", "{seen:#}");
    assert_eq!(seen["unit_after"]["active_state"], "failed", "{seen:#}");
    assert_eq!(seen["unit_after"]["exec_main_status"], 203, "{seen:#}");
    assert_eq!(seen["successors"].as_array().unwrap().len(), 0, "{seen:#}");
}

#[test]
fn a_start_that_must_not_be_repeated_is_seen_as_down() {
    let Some(service) = Service::start("misconfigured", "RestartPreventExitStatus=78") else {
        return;
    };
    service.order();
    service.sh(&format!("echo 0.5 78 >{}/end", service.home));
    let seen = service.run();
    assert_eq!(seen["job_result"], "done", "{seen:#}");
    assert_eq!(seen["unit_after"]["active_state"], "failed", "{seen:#}");
    assert_eq!(seen["unit_after"]["exec_main_status"], 78, "{seen:#}");
    assert_eq!(seen["flapping"], false, "{seen:#}");
}

#[test]
fn a_unit_that_refuses_is_not_drained() {
    let Some(service) = Service::of(USER, "refusing") else {
        return;
    };
    service.write(
        &service
            .text("")
            .replace("[Service]", "RefuseManualStop=yes\n[Service]"),
    );
    service.up();
    let pid = service.main_pid();
    service.order();
    let seen = service.run();
    assert_eq!(seen["call"]["call"], "refused", "{seen:#}");
    assert_eq!(seen["call"]["error"], "OnlyByDependency", "{seen:#}");
    assert_eq!(seen["drain"], Value::Null, "{seen:#}");
    assert_eq!(service.main_pid(), pid);
}

#[test]
fn a_unit_that_is_gone_is_refused() {
    let Some(service) = Service::start("vanished", "") else {
        return;
    };
    service.order();
    service.systemctl("stop");
    service.sh(&format!(
        "rm {}; systemctl --user daemon-reload",
        service.path()
    ));
    service.sh(&format!(
        "systemctl --user reset-failed {} || :",
        service.unit
    ));
    let seen = service.run();
    assert_eq!(seen["call"]["call"], "refused", "{seen:#}");
    assert_eq!(seen["call"]["error"], "NoSuchUnit", "{seen:#}");
}

#[test]
fn a_denial_is_seen_before_anything_is_drained() {
    let Some(service) = Service::of(USER, "denied") else {
        return;
    };
    let sandbox = service.sandbox;
    let text = service.text("User=ann");
    sandbox.write("/etc/systemd/system/denied.service", &text, 0o644);
    sandbox.sh(
        None,
        "systemctl daemon-reload; systemctl start denied.service",
    );
    let pid = || sandbox.sh(None, "systemctl show --value -p MainPID denied.service");
    let state = format!("{}/state.json", service.home);
    wait_for("it runs", Duration::from_secs(10), || sandbox.read(&state));
    let before = pid();
    service.sh(&format!(
        "/opt/restart-probe order system /opt/stand-in/app.toml /opt/rows.toml denied.service >{}/order.json",
        service.home
    ));
    let seen = service.run();
    assert_eq!(seen["call"]["call"], "refused", "{seen:#}");
    assert_eq!(
        seen["call"]["error"], "InteractiveAuthorizationRequired",
        "{seen:#}"
    );
    assert_eq!(seen["drain"], Value::Null, "{seen:#}");
    assert_eq!(seen["old_alive"], true, "{seen:#}");
    assert_eq!(pid(), before);
    // Root may, with the same order.
    let text = sandbox.sh(
        None,
        &format!("/opt/restart-probe run {}/order.json", service.home),
    );
    let seen = serde_json::from_str::<Value>(&text).unwrap()["seen"].clone();
    is_new_life(&seen);
}

#[test]
fn what_died_meanwhile_is_left_to_its_own_respawn() {
    let Some(service) = Service::start("killed", "RestartSec=1") else {
        return;
    };
    let watcher = service.watch();
    service.order();
    service.sh(&format!("kill -9 {}", service.main_pid()));
    let seen = service.run();
    assert_eq!(seen["call"]["call"], "nothing", "{seen:#}");
    is_new_life(&seen);
    assert_eq!(watcher.starts_of(&service.unit), 1);
}

#[test]
fn children_that_outlive_the_restart_are_named() {
    let Some(service) = Service::of(USER, "wrapped") else {
        return;
    };
    let text = service.text("KillMode=process\nRestart=no").replace(
        &format!("{}/bin/stand-in serve", service.home),
        &format!("/bin/sh -c '{}/bin/stand-in serve & wait'", service.home),
    );
    service.write(&text);
    service.systemctl("start");
    let state = format!("{}/state.json", service.home);
    wait_for("its child runs", Duration::from_secs(10), || {
        service.sandbox.read(&state)
    });
    service.order_by("/opt/rows-plain.toml");
    let seen = service.run();
    assert_eq!(seen["job_result"], "done", "{seen:#}");
    assert_eq!(seen["old_alive"], true, "{seen:#}");
    assert_eq!(seen["survivors"].as_array().unwrap().len(), 1, "{seen:#}");
    assert_eq!(seen["successors"].as_array().unwrap().len(), 1, "{seen:#}");
}

#[test]
fn a_successor_that_stays_silent_is_waited_for_only_so_long() {
    let Some(service) = Service::start("silent", "") else {
        return;
    };
    service.order();
    service.sh(&format!("touch {}/mute", service.home));
    let seen = service.run();
    assert_eq!(
        seen["self_after"]["pid"].as_u64(),
        seen["unit_before"]["main_pid"].as_u64()
    );
    assert!(seen["settled_ms"].as_u64().unwrap() >= 5000, "{seen:#}");
    assert_eq!(seen["successors"].as_array().unwrap().len(), 1, "{seen:#}");
}

#[test]
fn a_changed_unit_file_is_seen_and_read_again_when_asked() {
    let Some(service) = Service::of("eve", "edited") else {
        return;
    };
    service.write(&service.text(""));
    service.up();
    let edited = service.text("Environment=STAND_IN_YOUNG=0.1");
    service.sandbox.write(&service.path(), &edited, 0o644);
    service.order();
    assert_eq!(service.show("NeedDaemonReload"), "yes");
    service.sh("/opt/restart-probe reload user");
    assert_eq!(service.show("NeedDaemonReload"), "no");
    is_new_life(&service.run());
}

#[test]
fn a_stopped_manager_costs_no_more_than_the_limit() {
    let Some(service) = Service::of("bob", "frozen") else {
        return;
    };
    service.write(&service.text(""));
    service.up();
    service.order();
    let sandbox = service.sandbox;
    let manager = sandbox.sh(
        None,
        "systemctl show --value -p MainPID user@$(id -u bob).service",
    );
    let manager = manager.trim();
    sandbox.sh(None, &format!("kill -STOP {manager}"));
    let began = Instant::now();
    let seen = service.run();
    let took = began.elapsed();
    let survey = service.sh("/opt/restart-probe survey user /opt/stand-in/app.toml");
    sandbox.sh(None, &format!("kill -CONT {manager}"));
    assert_eq!(seen["call"]["call"], "refused", "{seen:#}");
    assert_eq!(seen["call"]["error"], "mute", "{seen:#}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert!(survey.contains("did not answer within 2s"), "{survey}");
}

#[test]
fn a_bus_that_nobody_used_yet_is_waited_for() {
    let Some(sandbox) = sandbox() else {
        return;
    };
    // systemctl talks to the manager past the bus, so the survey is the bus's first client.
    let text = sandbox.sh(
        None,
        "useradd -m dan; loginctl enable-linger dan; uid=$(id -u dan)
         for _ in $(seq 400); do [ -S /run/user/$uid/bus ] && break; sleep 0.02; done
         setpriv --reuid dan --regid dan --init-groups \
         /opt/restart-probe survey user /opt/stand-in/app.toml",
    );
    let survey: Value = serde_json::from_str(&text).unwrap();
    assert!(
        survey["found"]["manager_state"]["answered"].is_string(),
        "{survey:#}"
    );
}

#[test]
fn a_user_without_a_manager_has_none_and_gets_none() {
    let Some(sandbox) = sandbox() else {
        return;
    };
    let survey = sandbox.sh(
        Some("carol"),
        // A folder that another account's session leaked must not be asked.
        "XDG_RUNTIME_DIR=/run/user/$(id -u ann) /opt/restart-probe survey user /opt/stand-in/app.toml",
    );
    let survey: Value = serde_json::from_str(&survey).unwrap();
    assert_eq!(survey["found"]["manager_state"], "absent", "{survey:#}");
    let started = sandbox.sh(None, "systemctl is-active user@$(id -u carol).service || :");
    assert_eq!(started.trim(), "inactive");
}

#[test]
fn a_survey_finds_what_runs_failed_or_could_run_and_loads_nothing() {
    let Some(service) = Service::start("surveyed", "") else {
        return;
    };
    let failed = Service::of(USER, "survey-failed").unwrap();
    failed.write(&failed.text(""));
    failed.up();
    failed.systemctl("stop");
    let unloaded = Service::of(USER, "survey-unloaded").unwrap();
    let text = unloaded
        .text("")
        .replace(
            "Environment=STAND",
            "EnvironmentFile=%h/survey-env\nEnvironment=STAND",
        )
        .replace(
            "WantedBy=default.target",
            "WantedBy=graphical-session.target",
        );
    unloaded.write(&text);
    unloaded.sh("echo STAND_IN_HOME=/elsewhere >~/survey-env");
    unloaded.systemctl("--quiet enable");
    let plain = Service::of(USER, "survey-plain").unwrap();
    plain.write(&plain.text(""));
    let watcher = service.watch();
    let text = service.sh("/opt/restart-probe survey user /opt/stand-in/app.toml");
    let survey: Value = serde_json::from_str(&text).unwrap();
    let find = |name: &str| {
        let units = survey["found"]["units"].as_array().unwrap();
        let found = units.iter().find(|unit| unit["name"] == name).cloned();
        assert!(found.is_some(), "{name} is not in {survey:#}");
        found
    };
    let running = find("surveyed.service").unwrap();
    assert_eq!(running["active_state"], "active");
    assert_eq!(running["main_pid"].to_string(), service.main_pid());
    assert_eq!(
        find("survey-failed.service").unwrap()["active_state"],
        "failed"
    );
    let enabled = find("survey-unloaded.service").unwrap();
    assert_eq!(enabled["loaded"], false, "{enabled:#}");
    assert_eq!(enabled["active_state"], "inactive", "{enabled:#}");
    assert_eq!(
        enabled["environment"][0], "STAND_IN_HOME=/elsewhere",
        "{enabled:#}"
    );
    // One that nobody enabled is no slot of a plan, and still says which install serves its home.
    let plain = find("survey-plain.service").unwrap();
    assert_eq!(plain["loaded"], false, "{plain:#}");
    assert_eq!(plain["unit_file_state"], "disabled", "{plain:#}");
    for unit in ["survey-unloaded.service", "survey-plain.service"] {
        assert_eq!(watcher.of(unit), [], "{unit} was loaded");
    }
}
