use super::*;
use crate::fleet::{Incarnation, Phase};

fn app() -> App {
    App::builtin(crate::app::DEFAULT).expect("the descriptor is valid")
}

fn argv(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn kind(line: &str) -> Option<(String, Option<String>)> {
    recognise(&app(), &argv(line)).map(|found| (found.kind, found.profile))
}

#[test]
fn every_way_to_start_a_runtime_is_recognised() {
    for (line, expected, profile) in [
        (
            "/v/bin/python -m hermes_cli.main gateway run",
            "gateway",
            None,
        ),
        (
            "python3.11 -u -X dev -Wignore -m hermes_cli.main --profile ops gateway run --replace",
            "gateway",
            Some("ops"),
        ),
        (
            "/usr/bin/python3 -Im hermes_cli.main -p Work serve",
            "serve",
            Some("work"),
        ),
        (
            "/usr/bin/python3 -mhermes_cli.main dashboard --no-open",
            "dashboard",
            None,
        ),
        ("/v/bin/python3 /v/bin/hermes gateway run", "gateway", None),
        (
            "/v/bin/python3 -- /v/bin/hermes gateway run",
            "gateway",
            None,
        ),
        ("hermes --profile=lab gateway run", "gateway", Some("lab")),
        ("/v/bin/hermes gateway run -p lab", "gateway", Some("lab")),
        (
            "/bin/bash /usr/local/bin/hermes gateway run",
            "gateway",
            None,
        ),
        (
            "python /o/hermes_cli/main.py gateway -v run",
            "gateway",
            None,
        ),
        (
            "hermes --model x/y --profile p dashboard",
            "dashboard",
            Some("p"),
        ),
        ("hermes gateway", "gateway", None),
        ("hermes --verbose gateway run", "gateway", None),
        ("hermes gateway run -- -p other", "gateway", None),
        ("hermes -p no:xdist gateway run", "gateway", None),
    ] {
        let expected = Some((expected.to_owned(), profile.map(str::to_owned)));
        assert_eq!(kind(line), expected, "{line}");
    }
}

#[test]
fn what_only_looks_like_a_runtime_is_not_one() {
    for line in [
        "vim hermes gateway notes",
        "grep -r hermes gateway run",
        "hermes-server gateway run",
        "/usr/bin/hermes-gateway run",
        "/usr/bin/env hermes gateway run",
        "wrapper run -- python -m hermes_cli.main gateway run",
        "python -m hermes_cli.mainly gateway run",
        "python -m other hermes gateway run",
        "python -c hermes gateway run",
        "bash -c hermes gateway run",
        "pythonic /v/bin/hermes gateway run",
        "tail -f /v/bin/hermes gateway run",
        "hermes gateway stop",
        "hermes gateway status",
        "hermes gateway --help",
        "hermes",
        "python",
        "update apply --app hermes",
    ] {
        assert_eq!(kind(line), None, "{line}");
    }
    assert_eq!(recognise(&app(), &[]), None);
    // One token that holds spaces is a title or a name, and no command line.
    assert_eq!(recognise(&app(), &["hermes gateway run".to_owned()]), None);
}

#[test]
fn an_unknown_subcommand_is_another_kind_and_not_managed() {
    let found = recognise(&app(), &argv("hermes -p ops webui --port 80")).expect("recognised");
    assert_eq!((found.kind.as_str(), found.managed), (OTHER, false));
    assert_eq!(found.profile.as_deref(), Some("ops"));
}

fn process(line: &str, env: &[(&str, &str)]) -> Process {
    Process {
        incarnation: Incarnation {
            boot_id: String::from("boot"),
            pid: 12,
            start_ticks: 34,
            pid_namespace: None,
        },
        uid: 1001,
        parent: 1,
        session: 12,
        terminal: 0,
        argv: argv(line),
        cgroup: String::new(),
        exe: None,
        exe_deleted: false,
        cwd: Some("/".into()),
        env: env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        env_readable: true,
        caught_signals: 0,
        started_at_nanos: 0,
    }
}

fn report(home: &str) -> SelfReport {
    SelfReport {
        home: home.into(),
        kind: String::from("gateway"),
        pid: 12,
        start_ticks: 34,
        state: None,
        phase: Phase::Unknown,
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

fn home(process: &Process, reports: &[SelfReport], sticky: Sticky) -> Vec<PathBuf> {
    let app = app();
    let recognised = recognise(&app, &process.argv).expect("a runtime");
    let account = Path::new("/home/ann");
    home_of(&app, process, &recognised, Some(account), reports, &|_| {
        sticky.clone()
    })
    .homes
}

#[test]
fn a_flag_beats_the_variable_and_the_runtimes_own_word_beats_both() {
    let root = "/home/ann/.hermes";
    let ops = "/home/ann/.hermes/profiles/ops";
    let work = "/home/ann/.hermes/profiles/work";
    let named = || Sticky::Named(String::from("work"));
    let none: [PathBuf; 0] = [];
    for (line, env, sticky, expected) in [
        (
            "hermes -p ops gateway run",
            &[][..],
            Sticky::Root,
            &[PathBuf::from(ops)][..],
        ),
        (
            "hermes -p ops gateway run",
            &[("HERMES_HOME", root)],
            named(),
            &[ops.into()],
        ),
        (
            "hermes -p work gateway run",
            &[("HERMES_HOME", ops)],
            Sticky::Root,
            &[work.into()],
        ),
        (
            "hermes gateway run",
            &[("HERMES_HOME", ops)],
            named(),
            &[ops.into()],
        ),
        (
            "hermes gateway run",
            &[("HERMES_HOME", root)],
            named(),
            &none,
        ),
        ("hermes gateway run", &[], named(), &none),
        ("hermes gateway run", &[], Sticky::Root, &[root.into()]),
        (
            "hermes gateway run",
            &[("HERMES_HOME", "~/.hermes")],
            Sticky::Root,
            &[root.into()],
        ),
        (
            "hermes gateway run",
            &[("HERMES_HOME", "relative")],
            Sticky::Root,
            &none,
        ),
        (
            "hermes gateway run",
            &[("HOME", "/srv/x")],
            Sticky::Root,
            &["/srv/x/.hermes".into()],
        ),
        (
            "hermes -p default gateway run",
            &[("HERMES_HOME", ops)],
            named(),
            &[root.into()],
        ),
    ] {
        assert_eq!(
            home(&process(line, env), &[], sticky.clone()),
            expected,
            "{line} {env:?}"
        );
        let spoken = home(&process(line, env), &[report(work)], sticky);
        assert_eq!(spoken, [PathBuf::from(work)], "{line} {env:?}");
    }
}

#[test]
fn a_report_of_an_earlier_life_says_nothing() {
    let mut old = report("/home/ann/.hermes/profiles/work");
    old.start_ticks = 33;
    let found = home(
        &process("hermes -p ops gateway run", &[]),
        &[old],
        Sticky::Root,
    );
    assert_eq!(found, [PathBuf::from("/home/ann/.hermes/profiles/ops")]);
}

#[test]
fn a_multiplexing_runtime_serves_the_profiles_that_it_names() {
    let mut multiplexing = report("/home/ann/.hermes");
    multiplexing.served_profiles = ["default", "work", "../../etc", "work"]
        .map(str::to_owned)
        .to_vec();
    let found = home(
        &process("hermes gateway run", &[]),
        &[multiplexing],
        Sticky::Root,
    );
    let expected = ["/home/ann/.hermes", "/home/ann/.hermes/profiles/work"].map(PathBuf::from);
    assert_eq!(found, expected);
}

#[test]
fn a_process_that_hides_its_environment_has_no_known_home() {
    let mut hidden = process("hermes -p ops gateway run", &[]);
    hidden.env_readable = false;
    assert!(home(&hidden, &[], Sticky::Root).is_empty());
}

#[test]
fn the_home_of_a_launcher_is_used_unless_the_environment_names_one() {
    let ops = "/home/ann/.hermes/profiles/ops";
    let source = format!(
        "import os, sys, runpy; sys.path.insert(0, '/v'); os.environ['HERMES_HOME'] = os.environ.get('HERMES_HOME') \
         or '{ops}'; runpy.run_module('hermes_cli.main', run_name='__main__', alter_sys=True)"
    );
    let root = PathBuf::from("/home/ann/.hermes");
    let work = root.join("profiles/work");
    for (env, words, expected) in [
        (&[][..], "gateway run", PathBuf::from(ops)),
        (&[("HERMES_HOME", "")], "gateway run", ops.into()),
        (&[("HERMES_HOME", "/home/ann/.hermes")], "gateway run", root),
        (&[], "-p work gateway run", work),
    ] {
        let mut started = process("", env);
        started.argv = ["python", "-I", "-c", &source].map(str::to_owned).to_vec();
        started.argv.extend(argv(words));
        assert_eq!(
            home(&started, &[], Sticky::Root),
            [expected],
            "{env:?} {words}"
        );
    }
}
