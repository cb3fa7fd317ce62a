use super::super::*;
use super::*;

fn app() -> App {
    App::builtin(crate::app::DEFAULT).expect("the descriptor is valid")
}

/// A command that is bound to one install, as a unit holds it.
const BOUND: &str = "import os, sys, runpy; os.environ.pop('PYTHONPATH', None); sys.path.insert(0, '/v/site'); \
     os.environ['HERMES_HOME'] = os.environ.get('HERMES_HOME') or \"/home/it's/.hermes/profiles/ops\"; import x; \
     runpy.run_module('hermes_cli.main', run_name='__main__', alter_sys=True)";

/// The launcher of a checkout.
const LAUNCHER: &str = "import os, re, sys\nimport io\nsys.path.insert(0, '/src/agent')\ndef repair():\n    pass\n\
     from hermes_cli.main import main\nsys.argv[0] = 'x'\nsys.exit(main())\n";

/// How a command line is recognised that runs a source, with these words behind it.
fn kind(source: &str, words: &[&str]) -> Option<String> {
    let argv = command(source, words);
    recognise(&app(), &argv).map(|found| found.kind)
}

fn command(source: &str, words: &[&str]) -> Vec<String> {
    let start = ["/v/bin/python3", "-X", "utf8", "-I", "-c", source];
    start.iter().chain(words).map(|w| (*w).to_owned()).collect()
}

/// As Python writes a text.
fn repr(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    format!("'{}'", text.replace('\'', "\\'"))
}

/// A source that goes on with `how`, with these words.
fn again(words: &str, how: &str) -> String {
    format!("import sys, runpy; sys.path.insert(0, '/again'); sys.argv = {words}; {how}")
}

#[test]
fn every_launcher_is_what_it_runs() {
    let module = "runpy.run_module('hermes_cli.main', run_name='__main__', alter_sys=True)";
    let script = "runpy.run_path('/v/bin/hermes', run_name='__main__')";
    let launcher = format!("exec({})", repr(LAUNCHER));
    let twice = format!(
        "exec({})",
        repr(&again("['-c', 'serve']", &format!("exec({})", repr(BOUND))))
    );
    let set = "['-c', '-p', 'lab', 'gateway', 'run']";
    for (source, words, site) in [
        (BOUND.to_owned(), &["gateway", "run"][..], "/v/site"),
        (
            LAUNCHER.to_owned(),
            &["-p", "lab", "gateway", "run"],
            "/src/agent",
        ),
        (again(set, module), &[], "/again"),
        (again(set, script), &["status"], "/again"),
        (again(set, &launcher), &[], "/again"),
        (again(set, &twice), &[], "/again"),
    ] {
        assert_eq!(kind(&source, words).as_deref(), Some("gateway"), "{source}");
        let inline = inline_of(&app(), &command(&source, words)).expect("a launcher");
        assert_eq!(inline.site.as_deref(), Some(Path::new(site)), "{source}");
    }
}

#[test]
fn a_source_that_runs_something_else_is_no_runtime() {
    let other = BOUND.replace("hermes_cli.main", "gateway.stop_mark");
    let watcher = BOUND.replace(
        "runpy.run_module('hermes_cli.main', run_name='__main__', alter_sys=True)",
        "exec('wait()')",
    );
    let respawn = ["77", "/v/bin/python", "-I", "-c", BOUND, "gateway", "run"];
    let named = "['-c', 'gateway', 'run']";
    for (source, words) in [
        (other.as_str(), &["gateway", "run"][..]),
        (&watcher, &respawn),
        ("import time; time.sleep(9)", &["hermes", "gateway", "run"]),
        (&format!("print(1)\n{BOUND}"), &["gateway", "run"]),
        (&format!("{BOUND}; print(1)"), &["gateway", "run"]),
        (
            &again(named, "runpy.run_path('/tmp/x.py', run_name='__main__')"),
            &[],
        ),
        (&again("[]", &format!("exec({})", repr(BOUND))), &[]),
        (
            &again("[gateway, run]", &format!("exec({})", repr(BOUND))),
            &[],
        ),
        (BOUND, &["gateway", "status"]),
    ] {
        assert_eq!(kind(source, words), None, "{source} {words:?}");
    }
}

#[test]
fn a_source_inside_too_many_others_is_not_followed() {
    let mut source = BOUND.to_owned();
    for _ in 0..DEPTH {
        source = again(
            "['-c', 'gateway', 'run']",
            &format!("exec({})", repr(&source)),
        );
    }
    assert_eq!(kind(&source, &[]).as_deref(), Some("gateway"));
    source = again(
        "['-c', 'gateway', 'run']",
        &format!("exec({})", repr(&source)),
    );
    assert_eq!(kind(&source, &[]), None);
}

#[test]
fn the_words_before_a_source_and_the_source_are_the_program() {
    let argv = command(BOUND, &["gateway", "run"]);
    assert_eq!(program_words(&app(), &argv), &argv[..6]);
    let argv = command(
        &again(
            "['x', 'serve']",
            "runpy.run_path('/v/bin/hermes', run_name='__main__')",
        ),
        &["ignored"],
    );
    assert_eq!(program_words(&app(), &argv), &argv[..]);
}

#[test]
fn texts_are_read_as_python_writes_them() {
    for (written, text) in [
        ("''", Some("")),
        ("'a'", Some("a")),
        ("\"it's\"", Some("it's")),
        ("'it\\'s \"so\"'", Some("it's \"so\"")),
        ("'\\\\ \\n\\r\\t'", Some("\\ \n\r\t")),
        ("'\\x7f\\u00e9\\U0001f600'", Some("\u{7f}é😀")),
        ("'é'", Some("é")),
        ("'open", None),
        ("'\\x7'", None),
        ("'\\ud800'", None),
        ("'\\q'", None),
        ("plain", None),
        ("", None),
    ] {
        let read = literal(&mut written.chars());
        assert_eq!(read.as_deref(), text, "{written}");
    }
    assert_eq!(texts("['a', \"b\", 'c']").map(|all| all.len()), Some(3));
    assert_eq!(texts("['a' 'b']"), None);
    assert_eq!(texts("['a', ]"), None);
}
