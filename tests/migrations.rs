//! The catalogs on disk: every case of every step, the checksums of released steps, the linter itself.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, prints what it counted, and makes homes of its own"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use fleet_update::app::App;
use fleet_update::migrate::catalog::{self, Catalog, Step};
use fleet_update::migrate::{HomeOutcome, HomeView, MemoryHome, StepOutcome, cases, evaluate};

const MIGRATIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations");
const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/apps");

fn hermes() -> (App, Catalog) {
    let app = App::builtin("hermes").unwrap();
    let catalog = Catalog::load(&app, &[]).unwrap();
    (app, catalog)
}

fn home(config: &str) -> MemoryHome {
    MemoryHome {
        files: BTreeMap::from([("config.yaml".to_owned(), config.as_bytes().to_vec())]),
        ..MemoryHome::default()
    }
}

fn migrated(home: &MemoryHome, to: u32) -> String {
    let (app, catalog) = hermes();
    let (evaluation, after) = evaluate(&app, &catalog, home, Some(to));
    assert_eq!(
        evaluation.outcome,
        HomeOutcome::Migrated,
        "{:?}",
        evaluation.failures
    );
    String::from_utf8(after["config.yaml"].clone()).unwrap()
}

#[test]
fn every_case_of_every_step_is_as_it_says() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for name in App::names() {
        let app = App::builtin(&name).unwrap();
        for step in Catalog::load(&app, &[]).unwrap().steps() {
            let folder = Path::new(MIGRATIONS)
                .join(&name)
                .join(&step.id)
                .join("cases");
            for case in cases::read(&app, &folder).unwrap() {
                count += 1;
                wrong.extend(cases::check(&app, step, &case));
            }
        }
    }
    assert!(count > 100);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_migrations_of_this_program_have_no_findings() {
    let released = catalog::released().unwrap();
    assert_eq!(
        catalog::lint(Path::new(MIGRATIONS), &released),
        Vec::<String>::new()
    );
}

#[test]
fn a_second_application_is_a_folder_of_data() {
    let text = std::fs::read_to_string(Path::new(DEMO).join("checksums.toml")).unwrap();
    let released = catalog::parse_checksums(&text).unwrap();
    assert_eq!(
        catalog::lint(Path::new(DEMO), &released),
        Vec::<String>::new()
    );
    let path = Path::new(DEMO).join("demo/app.toml");
    let app = App::parse(&std::fs::read_to_string(&path).unwrap(), &path).unwrap();
    let catalog = Catalog::read(&app, &Path::new(DEMO).join("demo")).unwrap();
    let config = "# ours\nschema = 1\n\n[server]\nport = 80  # old\nhost = \"a\"\n";
    let view = MemoryHome {
        files: BTreeMap::from([(app.config.file.clone(), config.into())]),
        ..MemoryHome::default()
    };
    let (evaluation, after) = evaluate(&app, &catalog, &view, Some(3));
    assert_eq!(
        evaluation.outcome,
        HomeOutcome::Migrated,
        "{:?}",
        evaluation.failures
    );
    let text = String::from_utf8(after[&app.config.file].clone()).unwrap();
    assert_eq!(
        text,
        "# ours\nschema = 3\n\n[server]\nport = 8080  # old\naddress = \"a\"\n"
    );
}

/// Copies the Hermes steps somewhere, so that a test can spoil them.
fn copied() -> (tempfile::TempDir, PathBuf) {
    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            let target = to.join(path.file_name().unwrap());
            if path.is_dir() {
                copy(&path, &target);
            } else {
                std::fs::copy(&path, &target).unwrap();
            }
        }
    }
    let scratch = tempfile::tempdir().unwrap();
    copy(
        &Path::new(MIGRATIONS).join("hermes"),
        &scratch.path().join("hermes"),
    );
    let folder = scratch.path().join("hermes");
    (scratch, folder)
}

fn spoiled(spoil: impl Fn(&Path)) -> String {
    let (scratch, folder) = copied();
    spoil(&folder);
    catalog::lint(scratch.path(), &catalog::released().unwrap()).join("\n")
}

fn rewrite(path: PathBuf, change: impl Fn(String) -> String) {
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, change(text)).unwrap();
}

#[test]
fn a_changed_released_step_is_found() {
    let step = "0025-model-catalog-ttl/step.toml";
    let found = spoiled(|folder| {
        rewrite(folder.join(step), |text| {
            text.replace("value = 1", "value = 2")
        })
    });
    assert!(
        found.contains("a released step is never changed"),
        "{found}"
    );
    let words = spoiled(|folder| {
        rewrite(folder.join(step), |text| {
            text.replace("hourly", "every hour") + "# more\n"
        })
    });
    assert_eq!(words, "");
}

#[test]
fn the_linter_finds_what_is_wrong() {
    let gone = spoiled(|folder| {
        std::fs::remove_dir_all(folder.join("0036-delegation-iterations")).unwrap()
    });
    assert!(
        gone.contains("0036-delegation-iterations: released with")
            && gone.contains("no step leads on from version 35"),
        "{gone}"
    );
    let renamed = spoiled(|folder| {
        std::fs::rename(
            folder.join("0036-delegation-iterations"),
            folder.join("0136-x"),
        )
        .unwrap();
    });
    assert!(
        renamed.contains("0136-x: the name does not start with 0036-"),
        "{renamed}"
    );
    let twice = spoiled(|folder| {
        let old =
            std::fs::read_to_string(folder.join("0036-delegation-iterations/step.toml")).unwrap();
        std::fs::create_dir_all(folder.join("0036-again/cases")).unwrap();
        std::fs::write(folder.join("0036-again/step.toml"), old).unwrap();
    });
    assert!(
        twice.contains("both lead past version 35") && twice.contains("not in checksums.toml"),
        "{twice}"
    );
    assert!(
        twice.contains("0036-again: no case that it changes"),
        "{twice}"
    );
    let unknown = spoiled(|folder| {
        rewrite(
            folder.join("0036-delegation-iterations/step.toml"),
            |text| text + "unless = 5\n",
        );
    });
    assert!(unknown.contains("unless"), "{unknown}");
    let case = spoiled(|folder| {
        rewrite(
            folder.join("0036-delegation-iterations/cases/old-default.after.yaml"),
            |text| text + "# more\n",
        );
    });
    assert!(
        case.contains("0036-delegation-iterations: old-default: config.yaml must say"),
        "{case}"
    );
}

#[test]
fn homes_end_as_the_table_says() {
    let (app, catalog) = hermes();
    let end = |view: &MemoryHome, to: Option<u32>| evaluate(&app, &catalog, view, to).0.outcome;
    let config = |text: &str, to: u32| end(&home(text), Some(to));
    assert_eq!(
        end(&MemoryHome::default(), Some(50)),
        HomeOutcome::Unconfigured
    );
    for text in [
        "",
        "\n \n",
        "null\n",
        "a: [1\n",
        "- a\n",
        "5\n",
        "a: 1\n---\nb: 2\n",
        "a: 1\na: 2\n",
    ] {
        assert_eq!(config(text, 50), HomeOutcome::Invalid, "{text:?}");
    }
    assert_eq!(end(&home("a: 1\n"), None), HomeOutcome::NoInstall);
    assert_eq!(
        config("_config_version: 50\n", 51),
        HomeOutcome::BeyondCatalog
    );
    assert_eq!(
        config("_config_version: 60\n", 60),
        HomeOutcome::BeyondCatalog
    );
    assert_eq!(
        config("_config_version: 999\n", 50),
        HomeOutcome::NewerThanCode
    );
    assert_eq!(
        config("_config_version: 34\n", 33),
        HomeOutcome::NewerThanCode
    );
    for version in ["11", "true", "abc", "-3", "null", "0", "[12]"] {
        assert_eq!(
            config(&format!("_config_version: {version}\n"), 50),
            HomeOutcome::BelowFloor,
            "{version}"
        );
    }
    for version in ["50", "\"50\"", "50.9", "0x32"] {
        assert_eq!(
            config(&format!("_config_version: {version}\n"), 50),
            HomeOutcome::Current,
            "{version}"
        );
    }
    for version in ["12", "\"12\"", "44.9", "49"] {
        assert_eq!(
            config(&format!("_config_version: {version}\n"), 50),
            HomeOutcome::Migrated,
            "{version}"
        );
    }
    assert_eq!(config("model: x\n", 50), HomeOutcome::Migrated);
    assert_eq!(config("# only a comment\n", 50), HomeOutcome::Migrated);
    assert_eq!(
        config(
            "_config_version: 16\nauxiliary: 5\ncompression: {summary_model: m}\n",
            50
        ),
        HomeOutcome::Failed
    );
    let mut view = home("_config_version: 49\n");
    view.read_only.insert("config.yaml".into());
    let (evaluation, _) = evaluate(&app, &catalog, &view, Some(50));
    assert_eq!(evaluation.outcome, HomeOutcome::ReadOnly);
    assert_eq!(evaluation.changes.len(), 1, "the pending change is listed");
    // What needs nothing is never asked whether it can be written.
    view.files
        .insert("config.yaml".into(), b"_config_version: 50\n".to_vec());
    assert_eq!(end(&view, Some(50)), HomeOutcome::Current);
}

#[test]
fn a_bump_of_the_version_alone_is_one_line() {
    let before = "# top\n_config_version: 40  # stamped\nsecurity: {redact_secrets: true}\napprovals:\n  mode: off\n";
    assert_eq!(migrated(&home(before), 50), before.replace("40", "50"));
    let unversioned = "model: x\n# end\n";
    let after = migrated(&home(unversioned), 50);
    assert_eq!(after.replace("_config_version: 50\n", ""), unversioned);
}

#[test]
fn a_scalar_that_is_folded_over_lines_stays_folded() {
    let before = "# top\n_config_version: 34\nagent:\n  system_prompt: Speak as I do, in words that go\n    on over lines,\n\n    and paragraphs.\n  note: \"quoted words that go on,\n    \\\n    and on\"\n  other: 'single\n    quoted'\n  text: >-\n    folded\n    lines\ndelegation:\n  max_iterations: 50\n  why: because of\n    this\n";
    let expected = before
        .replace("_config_version: 34", "_config_version: 50")
        .replace("max_iterations: 50", "max_iterations: 250");
    assert_eq!(migrated(&home(before), 50), expected);
}

#[test]
fn every_failure_is_listed_and_nothing_is_written() {
    let text = "_config_version: 13\nstt: {model: x, provider: openai, openai: 5}\ncompression: {summary_model: m}\nauxiliary: 5\nplugins: 5\n";
    let (app, catalog) = hermes();
    let (evaluation, after) = evaluate(&app, &catalog, &home(text), Some(50));
    assert_eq!(evaluation.outcome, HomeOutcome::Failed);
    assert!(after.is_empty() && evaluation.files.is_empty());
    assert_eq!(
        evaluation.failures,
        [
            "step 0014-stt-model: stt.openai: a mapping is expected, here is a whole number (line 2)",
            "step 0017-compression-summary: auxiliary: a mapping is expected, here is a whole number (line 4)",
            "step 0021-plugins-opt-in: plugins: a mapping is expected, here is a whole number (line 5)",
        ]
    );
    let failed = evaluation
        .steps
        .iter()
        .filter(|step| step.result == StepOutcome::Failed);
    assert_eq!(failed.count(), 3);
    assert_eq!(
        evaluation.steps.len(),
        27,
        "the others are evaluated all the same"
    );
}

#[test]
fn an_unversioned_file_gets_only_the_steps_for_legacy_keys() {
    let text = "delegation: {max_iterations: 50}\nagent: {verify_on_stop: true}\nsecurity: {tirith_path: x}\n";
    let after = migrated(&home(text), 50);
    assert!(
        after.contains("max_iterations: 50") && after.contains("verify_on_stop: true"),
        "{after}"
    );
    assert!(!after.contains("tirith"), "{after}");
    let (app, catalog) = hermes();
    let (evaluation, _) = evaluate(&app, &catalog, &home(text), Some(50));
    assert_eq!(evaluation.from.as_deref(), Some("unversioned"));
    let steps: Vec<&str> = evaluation.steps.iter().map(|step| &step.id[..4]).collect();
    let legacy = [
        "0012", "0014", "0016", "0017", "0029", "0033", "0038", "0039", "0042", "0043", "0046",
        "0050",
    ];
    assert_eq!(steps, legacy);
}

#[test]
fn what_changed_is_named_with_its_step() {
    let text = "_config_version: 34\ndisplay: {background_process_notifications: all}\ndelegation: {max_iterations: 50}\n";
    let (app, catalog) = hermes();
    let (evaluation, after) = evaluate(&app, &catalog, &home(text), Some(50));
    let lines: Vec<String> = evaluation
        .changes
        .iter()
        .map(|change| {
            format!(
                "{} {} {:?} {:?}",
                &change.step[..4],
                change.path,
                change.before,
                change.after
            )
        })
        .collect();
    assert_eq!(
        lines,
        [
            "vers _config_version Some(Number(34)) Some(Number(50))",
            "0035 display.background_process_notifications Some(String(\"all\")) Some(String(\"concise\"))",
            "0036 delegation.max_iterations Some(Number(50)) Some(Number(250))",
        ]
    );
    assert_eq!(
        evaluation.files[0].sha256_after,
        fleet_update::digest::sha256(&after["config.yaml"])
    );
    let mut again = home("");
    again.files = after;
    assert_eq!(
        evaluate(&app, &catalog, &again, Some(50)).0.outcome,
        HomeOutcome::Current
    );
}

#[test]
fn a_shared_value_is_never_edited() {
    let (app, catalog) = hermes();
    let end = |text: &str| evaluate(&app, &catalog, &home(text), Some(50)).0;
    let aliased = end("_config_version: 24\nbase: &b {ttl_hours: 24}\nmodel_catalog: *b\n");
    assert_eq!(
        aliased.outcome,
        HomeOutcome::Failed,
        "{:?}",
        aliased.changes
    );
    let anchored = end("_config_version: 24\nmodel_catalog: &b {ttl_hours: 24}\nother: *b\n");
    assert_eq!(
        anchored.outcome,
        HomeOutcome::Failed,
        "{:?}",
        anchored.changes
    );
    // A value that is inherited gets a key of its own.
    let text = "_config_version: 24\nbase: &b {ttl_hours: 24}\nmodel_catalog:\n  <<: *b\nother:\n  <<: *b\n";
    let after = migrated(&home(text), 33);
    assert!(after.contains("base: &b {ttl_hours: 24}\n"), "{after}");
    assert!(
        after.contains("model_catalog:\n  <<: *b\n  ttl_hours: 1\n"),
        "{after}"
    );
}

#[test]
fn a_site_step_leads_past_the_catalog() {
    let app = App::builtin("hermes").unwrap();
    let text = "to = 51\ntitle = \"ours\"\nwhy = \"ours\"\n[[change]]\nop = \"set\"\npath = \"a.b\"\nvalue = [1, {x = true}]\n";
    let site = [("0051-ours.toml".to_owned(), text.to_owned())];
    let catalog = Catalog::load(&app, &site).unwrap();
    assert_eq!(catalog.newest(), 51);
    let (evaluation, after) = evaluate(&app, &catalog, &home("_config_version: 50\n"), Some(51));
    assert_eq!(
        evaluation.outcome,
        HomeOutcome::Migrated,
        "{:?}",
        evaluation.failures
    );
    let after = String::from_utf8_lossy(&after["config.yaml"]).into_owned();
    assert!(
        after.contains("_config_version: 51") && after.contains("a:"),
        "{after}"
    );
    let missing = [("0052-ours.toml".to_owned(), text.replace("51", "52"))];
    let catalog = Catalog::load(&app, &missing).unwrap();
    let (evaluation, _) = evaluate(&app, &catalog, &home("_config_version: 49\n"), Some(52));
    assert_eq!(
        evaluation.outcome,
        HomeOutcome::BeyondCatalog,
        "never stamped"
    );
    let twice = [("x.toml".to_owned(), text.replace("51", "50"))];
    assert!(Catalog::load(&app, &twice).is_err());
}

#[test]
fn a_step_says_what_it_may_touch() {
    let (_, catalog) = hermes();
    let touches = |id: &str| -> Vec<String> {
        catalog
            .steps()
            .iter()
            .find(|step: &&Step| step.id.starts_with(id))
            .unwrap()
            .touches()
    };
    assert_eq!(touches("0025"), ["model_catalog.ttl_hours"]);
    assert_eq!(touches("0049"), ["terminal.vercel_runtime", ".env"]);
    assert_eq!(touches("0041"), ["SOUL.md"]);
    for step in catalog.steps() {
        for path in step.touches() {
            let guarded = path.starts_with("approvals") || path.starts_with("security");
            assert!(
                !guarded || path.starts_with("security.tirith_"),
                "{}: {path}",
                step.id
            );
        }
    }
}

/// What `update migrations diff` prints of one home in a folder of its own.
fn diff_of(folder: &Path, files: &[(&str, &str)], arguments: &[&str]) -> String {
    let home = folder.join(".hermes");
    std::fs::create_dir_all(&home).unwrap();
    for (name, text) in files {
        std::fs::write(home.join(name), text).unwrap();
    }
    let output = Command::new(env!("CARGO_BIN_EXE_update"))
        .args(["--to", "50", "migrations", "diff", "--home"])
        .arg(&home)
        .arg("--state-dir")
        .arg(folder.join("state"))
        .args(arguments)
        .env("HOME", folder)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), told.as_str()), (Some(0), ""));
    for (name, text) in files {
        assert_eq!(std::fs::read_to_string(home.join(name)).unwrap(), *text);
    }
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn patch_makes_of_a_home_what_a_run_would() {
    let folder = tempfile::tempdir().unwrap();
    let before = "# mine\t\n_config_version: 12   # where it starts\n\nmodel: gpt\nterminal: {vercel_runtime: node24}\n\
                  display:\n  a: 1\n  b: 2\n  c: 3\n  d: 4\n# end";
    let diff = diff_of(folder.path(), &[("config.yaml", before)], &[]);
    let path = folder.path().join(".hermes/config.yaml");
    let shown = path.display();
    let expected = format!(
        "new folder {}/.hermes/logs/curator\n--- {shown}\n+++ {shown}\n@@ -1,11 +1,13 @@\n # mine\t\n\
         -_config_version: 12   # where it starts\n+_config_version: 50   # where it starts\n \n model: gpt\n\
         -terminal: {{vercel_runtime: node24}}\n+terminal: {{}}\n display:\n   a: 1\n   b: 2\n   c: 3\n   d: 4\n\
         +plugins:\n+  enabled: []\n # end\n\\ No newline at end of file\n",
        folder.path().display()
    );
    assert_eq!(diff, expected);
    let file = folder.path().join("diff");
    std::fs::write(&file, &diff).unwrap();
    let patch = |arguments: &[&str]| {
        let mut command = Command::new("patch");
        command.args(["--batch", "--silent", "-p1", "-d", "/", "-i"]);
        command.arg(&file).args(arguments).output()
    };
    let Ok(output) = patch(&["--dry-run"]) else {
        // The harness captures `eprint!`, and a skipped test must be seen.
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            b"SKIPPED: the diff was not applied: patch is not installed\n",
        );
        return;
    };
    assert!(output.status.success(), "{output:?}\n{diff}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), before);
    assert!(patch(&[]).unwrap().status.success());
    let expected = migrated(&home(before), 50);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
}

#[test]
fn a_diff_shows_no_secret_of_its_home_in_any_format() {
    let folder = tempfile::tempdir().unwrap();
    let config = "# once it was plainword, then sk-proj-abcdefgh12345678\n_config_version: 12\nmodel: gpt\n\
                  terminal: {vercel_runtime: node24}\nproviders:\n  own: {api_key: \"\\x68ushed\", url: https://me:pazz@h/x}\n\
                  token: |\n  lineone\n  linetwo\nnote: hushed again # linetwo\n";
    let env = "A=plainword\nTERMINAL_VERCEL_RUNTIME=node24\n# B=commented\nC='multi\nrow' # D=beside\nleftover\n";
    let files = [("config.yaml", config), (".env", env)];
    for format in ["text", "json", "yaml"] {
        let diff = diff_of(folder.path(), &files, &["--format", format]);
        assert!(diff.contains("_config_version: 50"), "{diff}");
        for secret in [
            "plainword",
            "sk-proj",
            "hushed",
            "x68ushed",
            "pazz",
            "lineone",
            "linetwo",
            "node24",
            "commented",
            "multi",
            "row",
            "beside",
            "leftover",
        ] {
            assert!(!diff.contains(secret), "{format}: {secret} in\n{diff}");
        }
    }
}

/// A home that this program fails on as soon as it reads it, as if by a defect that nobody knows yet.
struct Breaking;

impl HomeView for Breaking {
    fn read(&self, _: &str) -> std::io::Result<Option<Vec<u8>>> {
        panic!("an unheard-of text: sk-ant-canary");
    }

    fn names(&self, _: &str) -> std::io::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn folder(&self, _: &str) -> std::io::Result<Option<bool>> {
        Ok(None)
    }

    fn unwritable(&self, _: &str) -> Option<String> {
        None
    }
}

#[test]
fn a_home_that_this_program_fails_on_is_a_row() {
    let (app, catalog) = hermes();
    fleet_update::defect::tell_only_places();
    let (evaluation, after) = evaluate(&app, &catalog, &Breaking, Some(50));
    assert_eq!(evaluation.outcome, HomeOutcome::Failed);
    assert!(
        evaluation
            .reason
            .contains("a defect of this program, at tests/migrations.rs:"),
        "{}",
        evaluation.reason
    );
    assert!(
        !evaluation.reason.contains("canary"),
        "{}",
        evaluation.reason
    );
    assert!(after.is_empty());
}
