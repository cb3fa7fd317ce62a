use std::path::PathBuf;

use super::*;
use crate::fleet::processes::{Ancestor, Interpreter};
use crate::fleet::runtimes::OTHER;
use crate::fleet::{CollectorOutcome, Incarnation, InstallKind, Phase, Process};

/// Fake processes get ids that no kernel gives (pid_max is at most 2^22, proc_sys_kernel(5)).
const BASE: u32 = 1 << 23;
const UNIT: &str = "/user.slice/user-1001.slice/user@1001.service/app.slice";

fn app() -> App {
    App::builtin(crate::app::DEFAULT).expect("the descriptor is valid")
}

fn ann() -> Account {
    Account {
        uid: 1001,
        gid: 1001,
        name: "ann".into(),
        home: "/home/ann".into(),
    }
}

fn seen(pid: u32, line: &str, cgroup: &str, above: &[(u32, &str)]) -> Seen {
    let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let shell = |program: &str| program == "bash";
    Seen {
        recognised: runtimes::recognise(&app(), &argv).expect("a command of the application"),
        process: Process {
            incarnation: Incarnation {
                boot_id: "boot".into(),
                pid: BASE + pid,
                start_ticks: u64::from(pid),
                pid_namespace: None,
            },
            uid: 1001,
            parent: above.first().map_or(1, |(pid, _)| BASE + pid),
            session: 0,
            terminal: 0,
            argv,
            cgroup: cgroup.to_owned(),
            exe: None,
            exe_deleted: false,
            cwd: None,
            env: Vec::new(),
            env_readable: true,
            caught_signals: 0,
            started_at_nanos: 0,
        },
        foreign: false,
        ancestors: above
            .iter()
            .map(|(pid, program)| Ancestor {
                pid: BASE + pid,
                program: (*program).to_owned(),
                scripted_shell: shell(program),
                shell: false,
                cgroup: cgroup.to_owned(),
                cwd: None,
            })
            .collect(),
    }
}

fn served(pid: u32, homes: &[&str]) -> Served {
    Served {
        key: Key::Process(BASE + pid),
        homes: homes.iter().map(|home| (*home).to_owned()).collect(),
        evidence: "told".into(),
        install: Some("code".into()),
    }
}

fn home(id: &str, inode: u64, uid: u32) -> Home {
    Home {
        id: id.to_owned(),
        profile: id.to_owned(),
        path: PathBuf::from("/home/ann/.hermes/profiles").join(id),
        root: "/home/ann/.hermes".into(),
        uid,
        file_id: (1, inode),
        status: HomeStatus::Configured,
        found_by: vec!["passwd".into()],
        updater: None,
        foreign_state: None,
    }
}

fn install(updater: Option<&str>) -> Install {
    Install {
        id: "code".into(),
        path: "/opt/venv".into(),
        package: "/opt/package".into(),
        interpreter: None,
        kind: InstallKind::Pip,
        uid: 0,
        version: None,
        config_version: Some(33),
        changed: None,
        roots: vec!["/home/ann/.hermes".into()],
        updater: updater.map(str::to_owned),
    }
}

fn unit(name: &str, active: &str, file_state: &str) -> Unit {
    Unit {
        manager: Some(Manager::User(1001)),
        name: name.to_owned(),
        loaded: true,
        load_state: "loaded".into(),
        active_state: active.to_owned(),
        unit_file_state: file_state.to_owned(),
        service_type: "simple".into(),
        exec_start: vec![
            ["/v/bin/hermes", "-p", "work", "gateway", "run"]
                .map(str::to_owned)
                .to_vec(),
        ],
        ..Unit::default()
    }
}

fn report(pid: u32, home: &str) -> SelfReport {
    SelfReport {
        home: PathBuf::from("/home/ann/.hermes/profiles").join(home),
        kind: "gateway".into(),
        pid: BASE + pid,
        start_ticks: u64::from(pid),
        state: Some("running".into()),
        phase: Phase::Running,
        holds_lock: true,
        socket_answered: false,
        active_agents: None,
        updated_at: None,
        code_version: None,
        code_sha: None,
        served_home: None,
        served_profiles: Vec::new(),
    }
}

fn gathered(seen: Vec<Seen>, answer: Surveyed) -> Gathered {
    let keys = seen
        .iter()
        .map(|seen| Key::Process(seen.process.incarnation.pid))
        .collect();
    Gathered {
        service_manager: true,
        scan: Scan {
            seen,
            ..Scan::default()
        },
        accounts: vec![ann()],
        surveys: vec![(ann(), keys, Ok(answer))],
        ..Gathered::default()
    }
}

fn inventory(gathered: Gathered) -> Inventory {
    inventory_of(&Scope::default(), gathered)
}

fn inventory_of(scope: &Scope, gathered: Gathered) -> Inventory {
    assemble(&app(), scope, gathered)
}

fn pids(inventory: &Inventory) -> Vec<Option<u32>> {
    inventory
        .runtimes
        .iter()
        .map(|runtime| Some(runtime.process.as_ref()?.incarnation.pid - BASE))
        .collect()
}

#[test]
fn a_wrapper_and_its_child_are_one_runtime_and_it_is_the_child() {
    let cgroup = format!("{UNIT}/agent.service");
    let wrapper = seen(
        10,
        "/bin/bash /usr/local/bin/hermes gateway run",
        &cgroup,
        &[(2, "systemd")],
    );
    let child = seen(
        11,
        "/v/bin/python /v/bin/hermes gateway run",
        &cgroup,
        &[(10, "bash"), (2, "systemd")],
    );
    let answer = Surveyed {
        homes: vec![home("work", 1, 1001)],
        units: vec![unit("agent.service", "active", "enabled")],
        served: vec![served(10, &["work"]), served(11, &["work"])],
        ..Surveyed::default()
    };
    let found = inventory(gathered(vec![wrapper, child], answer));
    assert_eq!(pids(&found), [Some(11)]);
    let runtime = &found.runtimes[0];
    assert_eq!(runtime.homes, ["work"]);
    assert_eq!(
        runtime.unit.as_ref().map(|unit| unit.name.as_str()),
        Some("agent.service")
    );
    assert!(found.notes.is_empty(), "{:?}", found.notes);
}

#[test]
fn workers_are_notes_and_the_topmost_is_the_runtime_unless_another_says_so() {
    let line = "/v/bin/python -m hermes_cli.main gateway run";
    for cgroup in [
        format!("{UNIT}/agent.service"),
        format!("{UNIT}/run-1.scope"),
    ] {
        let all = || {
            vec![
                seen(20, line, &cgroup, &[(2, "systemd")]),
                seen(
                    21,
                    line,
                    &cgroup,
                    &[(20, "hermes_cli.main"), (2, "systemd")],
                ),
            ]
        };
        let found = inventory(gathered(all(), Surveyed::default()));
        assert_eq!(pids(&found), [Some(20)], "{cgroup}");
        assert_eq!(found.notes.len(), 1);
        let answer = Surveyed {
            reports: vec![report(21, "work")],
            ..Surveyed::default()
        };
        let found = inventory(gathered(all(), answer));
        assert_eq!(pids(&found), [Some(21)], "{cgroup}");
    }
}

#[test]
fn two_kinds_in_one_unit_are_two_runtimes() {
    let cgroup = format!("{UNIT}/all.service");
    let all = vec![
        seen(30, "/v/bin/hermes gateway run", &cgroup, &[(2, "systemd")]),
        seen(
            31,
            "/v/bin/hermes serve",
            &cgroup,
            &[(30, "hermes"), (2, "systemd")],
        ),
    ];
    let found = inventory(gathered(all, Surveyed::default()));
    assert_eq!(pids(&found), [Some(30), Some(31)]);
}

#[test]
fn one_process_that_serves_many_homes_is_one_row() {
    let one = seen(
        40,
        "/v/bin/hermes gateway run",
        &format!("{UNIT}/m.service"),
        &[(2, "systemd")],
    );
    let answer = Surveyed {
        homes: vec![home("a", 1, 1001), home("b", 2, 1001), home("c", 3, 1001)],
        served: vec![served(40, &["a", "c"])],
        ..Surveyed::default()
    };
    let found = inventory(gathered(vec![one], answer));
    assert_eq!(found.runtimes.len(), 1);
    assert_eq!(found.runtimes[0].homes, ["a", "c"]);
}

#[test]
fn units_without_a_process_are_slots_and_templates_are_none() {
    for (active, file_state, expected) in [
        ("failed", "enabled", 1),
        ("inactive", "enabled", 1),
        ("activating", "disabled", 1),
        ("active", "", 1),
        ("failed", "disabled", 1),
        ("inactive", "static", 1),
        ("inactive", "linked", 1),
    ] {
        let answer = Surveyed {
            units: vec![
                unit("agent.service", active, file_state),
                unit("agent@.service", "inactive", "enabled"),
            ],
            ..Surveyed::default()
        };
        let found = inventory(gathered(Vec::new(), answer));
        assert_eq!(found.runtimes.len(), expected, "{active} {file_state}");
        assert!(
            found
                .runtimes
                .iter()
                .all(|runtime| runtime.process.is_none())
        );
    }
}

#[test]
fn a_unit_with_its_process_is_one_row() {
    let one = seen(
        50,
        "/v/bin/hermes -p work gateway run",
        &format!("{UNIT}/agent.service"),
        &[(2, "systemd")],
    );
    let answer = Surveyed {
        units: vec![unit("agent.service", "active", "enabled")],
        ..Surveyed::default()
    };
    assert_eq!(pids(&inventory(gathered(vec![one], answer))), [Some(50)]);
}

#[test]
fn a_user_who_could_not_be_asked_still_has_rows_and_the_source_is_unverified() {
    let one = seen(
        60,
        "/v/bin/hermes gateway run",
        &format!("{UNIT}/agent.service"),
        &[(2, "systemd")],
    );
    let mut all = gathered(vec![one], Surveyed::default());
    all.surveys[0].2 = Err("helper for ann did not answer in time".into());
    let found = inventory(all);
    assert_eq!(pids(&found), [Some(60)]);
    assert_eq!(
        found.runtimes[0].unreadable,
        ["helper for ann did not answer in time"]
    );
    let collector = found
        .collectors
        .iter()
        .find(|collector| collector.name == "homes of ann");
    assert_eq!(
        collector.map(|collector| collector.outcome),
        Some(CollectorOutcome::Unverified)
    );
}

#[test]
fn commands_that_serve_nothing_are_no_rows() {
    let session = "/user.slice/user-1001.slice/session-3.scope";
    let gateway = seen(
        70,
        "/v/bin/hermes gateway run",
        &format!("{UNIT}/agent.service"),
        &[(2, "systemd")],
    );
    let tool = seen(
        71,
        "/v/bin/hermes chat",
        &format!("{UNIT}/agent.service"),
        &[(70, "hermes"), (2, "systemd")],
    );
    let chat = seen(72, "/v/bin/hermes chat", session, &[(5, "sshd")]);
    let web = seen(
        73,
        "/v/bin/hermes webui",
        &format!("{UNIT}/web.service"),
        &[(2, "systemd")],
    );
    let found = inventory(gathered(
        vec![gateway, tool, chat, web],
        Surveyed::default(),
    ));
    assert_eq!(pids(&found), [Some(70), Some(73)]);
    assert!(!found.runtimes[1].managed && found.runtimes[1].kind == OTHER);
    assert_eq!(found.notes.len(), 1, "{:?}", found.notes);
}

#[test]
fn a_record_of_an_earlier_life_is_a_note_and_no_row() {
    let one = seen(
        80,
        "/v/bin/hermes gateway run",
        &format!("{UNIT}/agent.service"),
        &[(2, "systemd")],
    );
    let mut old = report(80, "work");
    old.start_ticks = 7;
    let answer = Surveyed {
        reports: vec![old, report(81, "gone")],
        ..Surveyed::default()
    };
    let found = inventory(gathered(vec![one], answer));
    assert_eq!(pids(&found), [Some(80)]);
    assert_eq!(found.runtimes[0].self_report, None);
    assert_eq!(
        found
            .notes
            .iter()
            .filter(|note| note.starts_with("stale record"))
            .count(),
        2
    );
}

#[test]
fn a_record_in_somebody_elses_home_says_nothing_of_this_process() {
    let mut one = seen(
        85,
        "/v/bin/hermes gateway run",
        "/system.slice/a.service",
        &[(1, "systemd")],
    );
    one.process.uid = 0;
    let answer = Surveyed {
        reports: vec![report(85, "work")],
        ..Surveyed::default()
    };
    let found = inventory(gathered(vec![one], answer));
    assert_eq!(found.runtimes[0].self_report, None);
}

#[test]
fn a_home_that_two_surveys_saw_is_its_owners_row() {
    let mut theirs = home("shared", 9, 1001);
    theirs.status = HomeStatus::Foreign("the folder belongs to uid 1001".into());
    theirs.found_by = vec!["unit x.service".into()];
    let bob = Account {
        uid: 1002,
        name: "bob".into(),
        ..ann()
    };
    let owners = Surveyed {
        homes: vec![home("shared", 9, 1001)],
        ..Surveyed::default()
    };
    let others = Surveyed {
        homes: vec![theirs],
        ..Surveyed::default()
    };
    for swapped in [false, true] {
        let mut all = gathered(Vec::new(), Surveyed::default());
        all.surveys = vec![
            (ann(), Vec::new(), Ok(owners.clone())),
            (bob.clone(), Vec::new(), Ok(others.clone())),
        ];
        if swapped {
            all.surveys.swap(0, 1);
        }
        let found = inventory(all);
        assert_eq!(found.homes.len(), 1);
        assert_eq!(found.homes[0].status, HomeStatus::Configured, "{swapped}");
        assert_eq!(found.homes[0].found_by.len(), 2);
    }
}

#[test]
fn an_installer_at_work_is_told_of_the_install_and_an_updater_of_its_homes() {
    let answer = Surveyed {
        homes: vec![home("work", 1, 1001)],
        installs: vec![install(None)],
        ..Surveyed::default()
    };
    let mut all = gathered(Vec::new(), answer);
    let argv = |line: &str| line.split(' ').map(str::to_owned).collect();
    all.scan.interpreters = vec![
        Interpreter {
            pid: BASE + 90,
            argv: argv("/opt/venv/bin/python -m pip list"),
        },
        Interpreter {
            pid: BASE + 91,
            argv: argv("/opt/other/bin/python -m pip install x"),
        },
    ];
    let quiet = inventory(all);
    assert_eq!(quiet.installs[0].updater, None);

    let answer = Surveyed {
        homes: vec![home("work", 1, 1001)],
        installs: vec![install(Some("its lock is held"))],
        ..Surveyed::default()
    };
    let found = inventory(gathered(Vec::new(), answer));
    assert_eq!(found.homes[0].updater.as_deref(), Some("its lock is held"));

    let answer = Surveyed {
        installs: vec![install(None)],
        ..Surveyed::default()
    };
    let mut all = gathered(Vec::new(), answer);
    all.scan.interpreters = vec![Interpreter {
        pid: BASE + 92,
        argv: argv("/opt/venv/bin/python3 /opt/venv/bin/pip3.11 --quiet install -U x"),
    }];
    assert!(inventory(all).installs[0].updater.is_some());
}

#[test]
fn a_narrowed_scope_keeps_what_serves_its_homes_and_what_may() {
    let cgroup = |name: &str| format!("{UNIT}/{name}.service");
    let all = || {
        let mut named = home("work", 1, 1001);
        named.found_by = vec![NAMED.into(), "passwd".into()];
        let answer = Surveyed {
            homes: vec![named, home("ops", 2, 1001)],
            served: vec![served(1, &["work"]), served(2, &["ops"]), served(3, &[])],
            ..Surveyed::default()
        };
        let seen = vec![
            seen(
                1,
                "/v/bin/hermes -p work gateway run",
                &cgroup("a"),
                &[(2, "systemd")],
            ),
            seen(
                2,
                "/v/bin/hermes -p ops gateway run",
                &cgroup("b"),
                &[(2, "systemd")],
            ),
            seen(3, "/v/bin/hermes serve", &cgroup("c"), &[(2, "systemd")]),
        ];
        gathered(seen, answer)
    };
    let by_home = Scope {
        homes: vec!["/home/ann/.hermes/profiles/work".into()],
        ..Scope::default()
    };
    let by_profile = Scope {
        profiles: vec!["work".into()],
        ..Scope::default()
    };
    for scope in [by_home, by_profile] {
        let found = inventory_of(&scope, all());
        assert_eq!(found.homes.len(), 1);
        assert_eq!(pids(&found), [Some(1), Some(3)]);
    }
    assert_eq!(inventory(all()).runtimes.len(), 3);
}

#[test]
fn a_runtime_that_we_run_inside_of_says_so() {
    let outer = seen(
        100,
        "/v/bin/hermes gateway run",
        &format!("{UNIT}/agent.service"),
        &[(2, "systemd")],
    );
    let other = seen(
        101,
        "/v/bin/hermes gateway run",
        &format!("{UNIT}/other.service"),
        &[(2, "systemd")],
    );
    let mut all = gathered(vec![outer.clone(), other.clone()], Surveyed::default());
    all.scan.our_cgroup = format!("{UNIT}/agent.service");
    let enclosing = |found: &Inventory| -> Vec<bool> {
        found
            .runtimes
            .iter()
            .map(|runtime| runtime.encloses_us)
            .collect()
    };
    assert_eq!(enclosing(&inventory(all)), [true, false]);
    let mut all = gathered(vec![outer, other], Surveyed::default());
    all.scan.ourselves = vec![7, BASE + 101];
    let found = inventory(all);
    assert_eq!(
        enclosing(&found),
        [false, false],
        "a descendant may have left the group"
    );
    let ancestors: Vec<bool> = found
        .runtimes
        .iter()
        .map(|runtime| runtime.is_ancestor)
        .collect();
    assert_eq!(ancestors, [false, true]);
}

#[test]
fn a_container_that_holds_a_homes_lock_serves_that_home() {
    let mut one = seen(110, "/v/bin/hermes gateway run", "/", &[(5, "unshare")]);
    one.foreign = true;
    let answer = Surveyed {
        homes: vec![home("work", 1, 1001)],
        reports: vec![report(110, "work")],
        ..Surveyed::default()
    };
    let found = inventory(gathered(vec![one.clone()], answer));
    assert_eq!(found.runtimes[0].homes, ["work"]);
    assert!(found.runtimes[0].foreign_namespace);
    let unknown = inventory(gathered(vec![one], Surveyed::default()));
    assert!(unknown.runtimes[0].homes.is_empty());
}

#[test]
fn an_account_is_heard_on_its_own_homes_units_and_runtimes_alone() {
    let cgroup = format!("{UNIT}/gateway.service");
    let ann = seen(7, "/v/bin/hermes -p work gateway run", &cgroup, &[]);
    let key = Key::Process(BASE + 7);
    let honest = Surveyed {
        homes: vec![home("work", 5, 1001)],
        units: vec![unit("gateway.service", "active", "enabled")],
        served: vec![served(7, &["work"])],
        ..Surveyed::default()
    };
    let stopped = |manager: Manager| Unit {
        manager: Some(manager),
        ..unit("gateway.service", "inactive", "masked")
    };
    let forged = Surveyed {
        homes: vec![
            // Another's folder and id, as its own; root's; and one that it says is ann's.
            Home {
                uid: 1002,
                status: HomeStatus::NotAProfile,
                ..home("work", 5, 1002)
            },
            home("work", 6, 1002),
            home("of-root", 7, 0),
            home("of-ann", 8, 1001),
        ],
        units: vec![stopped(Manager::User(1001)), stopped(Manager::System)],
        served: vec![Served {
            key: key.clone(),
            ..served(7, &["of-root"])
        }],
        ..Surveyed::default()
    };
    let mal = Account {
        uid: 1002,
        gid: 1002,
        name: "mal".into(),
        home: "/home/mal".into(),
    };
    for turned in [false, true] {
        let mut all = gathered(vec![ann.clone()], honest.clone());
        all.accounts.push(mal.clone());
        all.surveys[0].1 = vec![key.clone()];
        all.surveys
            .push((mal.clone(), Vec::new(), Ok(forged.clone())));
        if turned {
            all.surveys.reverse();
        }
        let inventory = assemble(&app(), &Scope::default(), all);
        for home in &inventory.homes {
            let is_foreign = matches!(home.status, HomeStatus::Foreign(_));
            assert!(
                home.uid == 1001 && home.id == "work" && home.status == HomeStatus::Configured
                    || home.uid == 1002 && (is_foreign || home.id == "work"),
                "{home:?}"
            );
        }
        let served: Vec<_> = inventory
            .runtimes
            .iter()
            .filter(|runtime| runtime.process.is_some())
            .collect();
        assert_eq!(served.len(), 1, "{served:?}");
        assert!(!served[0].homes.contains(&"of-root".to_owned()));
        let unit = served[0].unit.as_ref().expect("ann's own manager says it");
        assert_eq!(unit.active_state, "active");
    }
}
