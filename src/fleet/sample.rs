//! Samples for unit tests: one healthy gateway under a user's manager, to change a field of.

use super::{
    Home, HomeStatus, Incarnation, Manager, Phase, Process, Runtime, SelfReport, Supervisor, Unit,
};

/// A life with this pid; the start follows from it.
pub fn incarnation(pid: u32) -> Incarnation {
    Incarnation {
        boot_id: "boot".into(),
        pid,
        start_ticks: u64::from(pid) * 10,
        pid_namespace: None,
    }
}

/// A process with this pid that started at second 1000.
pub fn process(pid: u32) -> Process {
    Process {
        incarnation: incarnation(pid),
        uid: 1001,
        parent: 1,
        session: pid,
        terminal: 0,
        argv: vec!["python".into()],
        cgroup: "/user.slice/user-1001.slice/user@1001.service/app.slice/agent.service".into(),
        exe: None,
        exe_deleted: false,
        cwd: None,
        env: Vec::new(),
        env_readable: true,
        caught_signals: u64::MAX,
        started_at_nanos: 1_000_000_000_000,
    }
}

/// A running, enabled unit whose main process has this pid.
pub fn unit(pid: u32) -> Unit {
    Unit {
        manager: Some(Manager::User(1001)),
        name: "agent.service".into(),
        loaded: true,
        load_state: "loaded".into(),
        active_state: "active".into(),
        sub_state: "running".into(),
        unit_file_state: "enabled".into(),
        invocation_id: format!("{pid:032}"),
        main_pid: pid,
        result: "success".into(),
        restart: "always".into(),
        condition_result: true,
        condition_timestamp_monotonic: 1,
        active_enter_monotonic: 2,
        inactive_exit_monotonic: 1,
        dependencies_active: true,
        ..Unit::default()
    }
}

/// What the process with this pid says of itself: that it runs.
pub fn report(pid: u32) -> SelfReport {
    SelfReport {
        home: "/home/ann/.agent".into(),
        kind: "gateway".into(),
        pid,
        start_ticks: u64::from(pid) * 10,
        state: Some("running".into()),
        phase: Phase::Running,
        holds_lock: true,
        socket_answered: false,
        active_agents: Some(0),
        updated_at: None,
        code_version: None,
        code_sha: None,
        served_home: None,
        served_profiles: Vec::new(),
    }
}

/// A healthy gateway.
pub fn runtime(pid: u32) -> Runtime {
    Runtime {
        id: "user-1001/agent.service".into(),
        kind: "gateway".into(),
        managed: true,
        homes: vec!["home".into()],
        home_evidence: "gateway.pid".into(),
        uid: 1001,
        install: Some("install".into()),
        process: Some(process(pid)),
        supervisor: Supervisor::Systemd {
            scope: Manager::User(1001),
            unit: "agent.service".into(),
        },
        unit: Some(unit(pid)),
        self_report: Some(report(pid)),
        unreadable: Vec::new(),
        foreign_namespace: false,
        encloses_us: false,
        is_ancestor: false,
    }
}

/// A slot without a process.
pub fn slot(change: impl FnOnce(&mut Unit)) -> Runtime {
    let mut runtime = runtime(1);
    runtime.process = None;
    runtime.self_report = None;
    if let Some(unit) = &mut runtime.unit {
        unit.active_state = "inactive".into();
        unit.sub_state = "dead".into();
        unit.main_pid = 0;
        change(unit);
    }
    runtime
}

/// A configured home.
pub fn home(id: &str) -> Home {
    Home {
        id: id.into(),
        profile: "default".into(),
        path: format!("/home/ann/{id}").into(),
        root: format!("/home/ann/{id}").into(),
        uid: 1001,
        file_id: (1, 1),
        status: HomeStatus::Configured,
        foreign_state: None,
        found_by: Vec::new(),
        updater: None,
    }
}
