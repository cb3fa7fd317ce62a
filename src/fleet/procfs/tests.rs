use super::*;

#[test]
fn this_process_is_read_whole() {
    let process = read(std::process::id(), &["PATH".to_owned()])
        .expect("we may read ourselves")
        .expect("we are alive");
    assert_eq!(process.uid, rustix::process::getuid().as_raw());
    assert_eq!(
        start_ticks(std::process::id()).expect("readable"),
        Some(process.incarnation.start_ticks)
    );
    assert!(process.env_readable && process.env.iter().all(|(name, _)| name == "PATH"));
    assert!(process.exe.is_some_and(|exe| exe.is_absolute()));
    let now = crate::world::now().as_nanos();
    let age = now.abs_diff(u128::from(process.started_at_nanos));
    assert!(age < 600_000_000_000, "{age}");
    assert!(!is_foreign(std::process::id()).expect("readable"));
    assert!(pids().expect("listed").contains(&std::process::id()));
}

#[test]
fn a_process_that_never_was_is_none_and_not_an_error() {
    // Larger than the kernel's highest pid_max (2^22, proc_sys_kernel(5)).
    assert!(read(1 << 23, &[]).expect("not an error").is_none());
    assert_eq!(start_ticks(1 << 23).expect("not an error"), None);
    assert_eq!(cmdline(1 << 23).expect("not an error"), None);
}

#[test]
fn the_innermost_unit_is_the_one_that_a_manager_keeps() {
    let user = "/user.slice/user-1001.slice/user@1001.service";
    for (path, manager_uid, unit) in [
        (
            format!("{user}/app.slice/x.service"),
            Some(1001),
            "x.service",
        ),
        (
            format!("{user}/app.slice/app-hermes.slice/hermes@work.service"),
            Some(1001),
            "hermes@work.service",
        ),
        (
            format!("{user}/app.slice/tmux-spawn-1.scope"),
            Some(1001),
            "tmux-spawn-1.scope",
        ),
        (
            format!("{user}/app.slice/x.service/worker/y.service"),
            Some(1001),
            "x.service",
        ),
        // A user may make any group below what is delegated to the manager; it stays that user's.
        (
            format!("{user}/user@0.service/app.slice/sshd.service"),
            Some(1001),
            "user@0.service",
        ),
        (user.to_owned(), None, "user@1001.service"),
        (
            "/user.slice/user-1001.slice/session-3.scope".into(),
            None,
            "session-3.scope",
        ),
        ("/system.slice/y.service".into(), None, "y.service"),
        (
            "/system.slice/system-agent.slice/agent@a\\x2db.service".into(),
            None,
            "agent@a\\x2db.service",
        ),
        ("/system.slice/_cpu.service".into(), None, "cpu.service"),
        (
            "/system.slice/docker-1.scope/system.slice/y.service".into(),
            None,
            "docker-1.scope",
        ),
    ] {
        let expected = Cgroup {
            manager_uid,
            unit: unit.into(),
        };
        assert_eq!(innermost_service(&path), Some(expected), "{path}");
    }
    for path in ["", "/", "/user.slice", "/../../system.slice/y.service"] {
        assert_eq!(innermost_service(path), None, "{path}");
    }
}

#[test]
fn a_hybrid_host_shows_the_unified_path_and_a_legacy_one_the_named() {
    let hybrid = "9:name=systemd:/a.slice\n1:cpu:/b\n0::/system.slice/x.service\n";
    assert_eq!(unified_path(hybrid), "/system.slice/x.service");
    assert_eq!(
        unified_path("1:name=systemd:/system.slice/x.service\n0::/\n"),
        "/system.slice/x.service"
    );
    assert_eq!(unified_path("9:name=systemd:/\n0::/\n"), "/");
}

#[test]
fn a_name_with_parentheses_does_not_shift_the_fields() {
    let rest = "S 7 8 9 34816 -1 0 0 0 0 0 0 0 0 0 20 0 4 0 4242 1";
    let stat = Stat::parse(&format!("12 (a) Z 1 (b) {rest}")).expect("valid");
    assert_eq!(
        (
            stat.parent,
            stat.session,
            stat.terminal,
            stat.start_ticks,
            stat.dead
        ),
        (7, 9, 34816, 4242, false)
    );
}

#[test]
fn a_zombie_is_gone_unless_threads_of_it_go_on() {
    let stat = |threads: u32| {
        Stat::parse(&format!(
            "1 (x) Z 7 8 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 42 1"
        ))
    };
    assert!(stat(1).is_some_and(|stat| stat.dead));
    assert!(stat(3).is_some_and(|stat| !stat.dead));
}

#[test]
fn a_replaced_program_keeps_its_path() {
    assert_eq!(
        strip_deleted("/a/b (deleted)".into()),
        (Some("/a/b".into()), true)
    );
    assert_eq!(strip_deleted("/a/b".into()), (Some("/a/b".into()), false));
}

#[test]
fn the_first_of_two_equal_variables_counts() {
    let bytes = b"A=1\0HERMES_HOME=/a\0noise\0HERMES_HOME=/b\0X=a=b\0";
    let wanted = ["HERMES_HOME".to_owned(), "X".to_owned()];
    let expected = [
        ("HERMES_HOME".to_owned(), "/a".to_owned()),
        ("X".to_owned(), "a=b".to_owned()),
    ];
    assert_eq!(variables(bytes, &wanted), expected);
}

#[test]
fn groups_are_listed_with_all_below_them() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(folder.path().join("a/b")).expect("folders");
    std::fs::write(folder.path().join("cgroup.procs"), "7\n0\n").expect("a file");
    std::fs::write(folder.path().join("a/b/cgroup.procs"), "9\n").expect("a file");
    std::fs::write(folder.path().join("a/cgroup.procs"), "8\n").expect("a file");
    assert_eq!(in_group(folder.path()).expect("readable"), [7, 8, 9]);
    assert_eq!(
        in_group(&folder.path().join("none")).expect("empty"),
        [0; 0]
    );
    assert!(in_cgroup("/../x").is_err());
}
