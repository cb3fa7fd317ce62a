#![expect(clippy::disallowed_methods, reason = "builds trees to look at")]

use super::metadata::{normalized, percent_decoded};
use super::version::{literal_start, version_in};
use super::*;

fn app() -> App {
    App::builtin(crate::app::DEFAULT).expect("the descriptor is valid")
}

fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
    std::fs::write(path, text).expect("a file");
}

fn program(line: &str) -> Program {
    Program {
        argv: line.split_whitespace().map(str::to_owned).collect(),
        ..Program::default()
    }
}

/// A virtual environment the way an installer leaves it.
fn venv(at: &Path, installer: &str) {
    put(
        &at.join("pyvenv.cfg"),
        "home = /usr/bin\ninclude-system-site-packages = false\n",
    );
    put(&at.join("bin/python"), "");
    put(
        &at.join("bin/hermes"),
        &format!("#!{}/bin/python\nimport sys\n", at.display()),
    );
    let site = at.join("lib/python3.11/site-packages");
    put(&site.join("hermes_cli/__init__.py"), "");
    let source = format!(
        "{}\nX = {{\n    \"_config_version\": 33,\n}}\n",
        "# é\n".repeat(100_000)
    );
    put(&site.join("hermes_cli/config.py"), &source);
    let info = site.join("hermes_agent-0.19.0.dist-info");
    put(&info.join("RECORD"), "");
    put(&info.join("INSTALLER"), &format!("{installer}\n"));
    put(&site.join("hermes_agent_extra-9.dist-info/RECORD"), "");
}

#[test]
fn a_virtual_environment_is_read_without_running_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = resolved(folder.path());
    for (name, installer, kind) in [
        ("a", "pip", InstallKind::Pip),
        ("b", "uv", InstallKind::Uv),
        ("pipx/venvs/c", "pip", InstallKind::Pipx),
    ] {
        let at = root.join(name);
        venv(&at, installer);
        let shown = at.display();
        for line in [
            format!("{shown}/bin/python -m hermes_cli.main gateway run"),
            format!("{shown}/bin/python {shown}/bin/hermes gateway run"),
            format!("{shown}/bin/hermes gateway run"),
        ] {
            let place = locate(&app(), &program(&line)).expect(&line);
            let install = describe(&app(), &place);
            assert_eq!((&install.path, install.kind), (&at, kind), "{line}");
            assert_eq!(install.version.as_deref(), Some("0.19.0"));
            assert_eq!(install.config_version, Some(33));
            let changed = install.changed.expect("a time");
            assert!(
                changed
                    .file
                    .ends_with("hermes_agent-0.19.0.dist-info/RECORD")
            );
        }
    }
}

/// A launcher that says where its code is: as a process, and as a script of two lines that becomes one.
#[test]
fn a_launcher_says_which_code_it_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = resolved(folder.path());
    let (checkout, env) = (root.join("it's/agent"), root.join("env"));
    put(&checkout.join("hermes_cli/__init__.py"), "");
    put(
        &checkout.join("hermes_cli/config.py"),
        "X = {\"_config_version\": 50}\n",
    );
    put(
        &checkout.join("pyproject.toml"),
        "[project]\nversion = \"0.22.2\"\n",
    );
    put(&checkout.join(".git/logs/HEAD"), "");
    venv(&env, "pip");
    let site = format!("\"{}\"", checkout.display());
    let source = format!(
        "import os, re, sys\nsys.path.insert(0, {site})\nfrom hermes_cli.main import main\nsys.exit(main())\n"
    );
    let python = env.join("bin/python").display().to_string();
    let process = [&python, "-I", "-c", &source, "gateway", "run"].map(str::to_owned);
    let quoted = source.replace('\'', "'\"'\"'");
    let script = checkout.join(".hermes/bin/hermes");
    put(
        &script,
        &format!("#!/bin/sh\nexec {python} -I -c '{quoted}' \"$@\"\n"),
    );
    let unit = [&script.display().to_string(), "gateway", "run"].map(str::to_owned);
    for argv in [process.to_vec(), unit.to_vec()] {
        let program = Program {
            argv,
            ..Program::default()
        };
        let place = locate(&app(), &program).expect("it is found");
        let install = describe(&app(), &place);
        assert_eq!((&install.path, install.kind), (&checkout, InstallKind::Git));
        assert_eq!(install.version.as_deref(), Some("0.22.2"));
        assert_eq!(install.config_version, Some(50));
    }
    // Whatever else a shell does with its words is not guessed.
    put(
        &script,
        &format!("#!/bin/sh\ncd /\nexec {python} -I -c '{quoted}' \"$@\"\n"),
    );
    assert!(launched(&script).is_none());
}

/// `libexec` of a keg is the formula's environment, `opt/NAME` the keg in use, `bin` has links to its programs
/// (Homebrew's Formula Cookbook and "Python for Formula Authors").
#[test]
fn a_keg_of_homebrew_is_told_by_its_place_and_an_upgrade_leads_to_the_next() {
    let folder = tempfile::tempdir().expect("a folder");
    let prefix = resolved(folder.path()).join("linuxbrew/.linuxbrew");
    let keg = |version: &str| prefix.join(format!("Cellar/hermes-agent/{version}"));
    let pour = |version: &str| {
        let keg = keg(version);
        venv(&keg.join("libexec"), "pip");
        put(&keg.join("INSTALL_RECEIPT.json"), "{}");
        for (link, target) in [
            ("opt/hermes-agent", keg.clone()),
            ("bin/hermes", keg.join("libexec/bin/hermes")),
        ] {
            let link = prefix.join(link);
            std::fs::create_dir_all(link.parent().expect("a folder")).expect("folders");
            let _ = std::fs::remove_file(&link);
            std::os::unix::fs::symlink(target, link).expect("a link");
        }
    };
    let find = |line: &str| {
        // Their interpreter is another formula's, which stays.
        let mut program = program(line);
        program.exe = Some("/usr/bin/python3".into());
        let place = locate(&app(), &program)?;
        let install = describe(&app(), &place);
        Some((install.path, install.kind))
    };
    let shown = prefix.display().to_string();
    let old = keg("0.19.0").join("libexec");
    // The first line of a keg's script names the keg, so this is what the kernel shows.
    let running = format!(
        "{}/bin/python {shown}/bin/hermes gateway run",
        old.display()
    );
    let linked =
        format!("{shown}/opt/hermes-agent/libexec/bin/python -m hermes_cli.main gateway run");
    pour("0.19.0");
    for line in [&running, &linked] {
        assert_eq!(
            find(line),
            Some((old.clone(), InstallKind::Homebrew)),
            "{line}"
        );
    }
    // An upgrade pours the next keg, moves the links and, with its clean-up, removes the last one.
    pour("0.19.1");
    std::fs::remove_dir_all(keg("0.19.0")).expect("removed");
    let new = keg("0.19.1").join("libexec");
    for line in [&running, &linked] {
        assert_eq!(
            find(line),
            Some((new.clone(), InstallKind::Homebrew)),
            "{line}"
        );
    }
    // The user that owns the prefix may have more than kegs.
    let own = resolved(folder.path()).join("linuxbrew/agents");
    venv(&own, "pip");
    let line = format!("{}/bin/hermes gateway run", own.display());
    assert_eq!(find(&line), Some((own, InstallKind::Pip)));
}

#[test]
fn a_bare_word_is_looked_for_in_the_processs_own_path() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = resolved(folder.path()).join("v");
    venv(&at, "pip");
    let mut bare = program("python -m hermes_cli.main gateway run");
    assert_eq!(locate(&app(), &bare), None);
    bare.env = vec![(
        "PATH".into(),
        format!("relative:/nowhere:{}/bin", at.display()),
    )];
    assert_eq!(locate(&app(), &bare).and_then(|place| place.venv), Some(at));
}

#[test]
fn a_link_to_a_script_leads_to_its_environment() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = resolved(folder.path());
    venv(&root.join("v"), "pip");
    put(&root.join("v/bin/hermes"), "not a script at all");
    put(&root.join("bin/x"), "");
    std::os::unix::fs::symlink(root.join("v/bin/hermes"), root.join("bin/hermes")).expect("a link");
    let mut linked = program(&format!("{}/bin/hermes gateway run", root.display()));
    linked.exe = Some("/usr/bin/none".into());
    assert_eq!(
        locate(&app(), &linked).and_then(|place| place.venv),
        Some(root.join("v"))
    );
}

#[test]
fn an_editable_install_is_its_checkout() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = resolved(folder.path());
    let checkout = root.join(".hermes/hermes-agent");
    put(&checkout.join("hermes_cli/__init__.py"), "");
    put(
        &checkout.join("hermes_cli/config_defaults.py"),
        "{\"_config_version\": 50}",
    );
    put(
        &checkout.join("pyproject.toml"),
        "[project]\nname = \"hermes-agent\"\nversion = \"0.20.1\"\n",
    );
    put(&checkout.join(".git/HEAD"), "ref: refs/heads/main\n");
    put(&checkout.join(".git/refs/heads/main"), "0000\n");
    put(&checkout.join("venv/pyvenv.cfg"), "");
    put(&checkout.join("venv/bin/python"), "");
    let info = checkout.join("venv/lib64/python3.12/site-packages/hermes_agent-0.20.0.dist-info");
    let url = format!(
        "{{\"url\": \"file://{}\", \"dir_info\": {{\"editable\": true}}}}",
        checkout.display()
    );
    put(&info.join("direct_url.json"), &url);
    let line = format!(
        "{}/venv/bin/python -m hermes_cli.main gateway run",
        checkout.display()
    );
    let by_process = locate(&app(), &program(&line)).expect("found");
    let by_root = checkout_of(&app(), &root.join(".hermes")).expect("found");
    for place in [by_process, by_root] {
        let install = describe(&app(), &place);
        assert_eq!(
            (install.path, install.kind),
            (checkout.clone(), InstallKind::Git)
        );
        assert_eq!(install.version.as_deref(), Some("0.20.1"));
        assert_eq!(install.config_version, Some(50));
        let file = install.changed.expect("a time").file;
        assert!(
            file.starts_with(checkout.join(".git")),
            "{}",
            file.display()
        );
    }
    put(&checkout.join(".git/logs/HEAD"), "");
    let place = checkout_of(&app(), &root.join(".hermes")).expect("found");
    let file = describe(&app(), &place).changed.expect("a time").file;
    assert!(file.ends_with(".git/logs/HEAD"));
}

#[test]
fn the_module_flag_runs_what_lies_in_the_working_directory() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = resolved(folder.path());
    venv(&root.join("v"), "pip");
    put(&root.join("fork/hermes_cli/__init__.py"), "");
    put(&root.join("fork/setup.py"), "");
    let python = root.join("v/bin/python");
    let mut here = program(&format!(
        "{} -m hermes_cli.main gateway run",
        python.display()
    ));
    here.cwd = Some(root.join("fork"));
    let install = describe(&app(), &locate(&app(), &here).expect("found"));
    assert_eq!(install.path, root.join("fork"));
    here.argv.insert(1, "-I".into());
    let install = describe(&app(), &locate(&app(), &here).expect("found"));
    assert_eq!(install.path, root.join("v"));
}

#[test]
fn a_lock_of_the_applications_updater_is_seen_while_it_is_held() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = resolved(folder.path());
    let checkout = root.join("hermes-agent");
    put(&checkout.join("hermes_cli/__init__.py"), "");
    put(&checkout.join(".git/HEAD"), "ref: ../../outside\n");
    put(&checkout.join(".git/hermes-update.lock"), "");
    let look = || describe(&app(), &checkout_of(&app(), &root).expect("found")).updater;
    assert_eq!(look(), None);
    let file = std::fs::File::open(checkout.join(".git/hermes-update.lock")).expect("open");
    file.lock().expect("locked");
    let ours = format!("process {}", std::process::id());
    assert!(
        look().is_some_and(|seen| seen.ends_with(&ours)),
        "{:?}",
        look()
    );
}

#[test]
fn a_pattern_is_only_tried_where_its_literal_start_stands() {
    for (pattern, literal) in [
        (
            r#""_config_version"\s*:\s*([0-9]+)"#,
            r#""_config_version""#,
        ),
        (r"ab?c(1)", "a"),
        (r"(x|y)", ""),
        (r"a|b", ""),
        (r"v = ([0-9]+)", "v = "),
    ] {
        assert_eq!(literal_start(pattern), literal, "{pattern}");
    }
    let pattern = regex_lite::Regex::new(r"v = ([0-9]+)").expect("valid");
    assert_eq!(
        version_in(b"v = x\nv = 7\nv = 8", &pattern, "v = "),
        Some(7)
    );
}

#[test]
fn names_are_compared_as_installers_do() {
    assert_eq!(
        normalized("Hermes.Agent-IoT"),
        normalized("hermes_agent__iot")
    );
    assert_eq!(percent_decoded("/a%20b%2"), "/a b%2");
}
