//! The man pages say what the program knows: every key, field, word, status and operation stands in the
//! page that is the reference for it, and the pages pass the linters.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test may panic, and looks at the program from outside"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use fleet_update::config::{Config, Places};
use fleet_update::error::Kind;
use fleet_update::migrate::{HomeOutcome, Step};
use fleet_update::plan::decide::RuntimeOutcome;
use fleet_update::receipt::Receipt;
use fleet_update::receipt::merge::FleetReceipt;
use fleet_update::restart::Table;

/// The text of a page as a reader sees it, without the marks of roff(7).
fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("man").join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    text.replace("\\fB", "\u{1}")
        .replace("\\fI", "\u{2}")
        .replace("\\fR", "\u{3}")
        .replace("\\-", "-")
        .replace("\\(aq", "'")
        .replace("\\(dq", "\"")
}

/// Whether a word stands in a page as something that is typed: bold, alone or at a place of its own.
#[track_caller]
fn assert_named(page_name: &str, words: impl IntoIterator<Item = impl AsRef<str>>) {
    let text = page(page_name);
    let missing: Vec<String> = words
        .into_iter()
        .map(|word| word.as_ref().to_owned())
        .filter(|word| {
            let bold = format!("\u{1}{word}\u{3}");
            let line = text.lines().any(|line| {
                line.strip_prefix(".B ")
                    .or(line.strip_prefix(".BR "))
                    .is_some_and(|rest| rest.split([' ', ',']).next() == Some(word))
            });
            !text.contains(&bold) && !line
        })
        .collect();
    assert!(missing.is_empty(), "{page_name} does not name {missing:?}");
}

/// The words in backquotes of an error that lists what would have been valid.
fn expected(error: &str) -> BTreeSet<String> {
    let list = error
        .split_once("expected ")
        .unwrap_or_else(|| panic!("{error:?} lists nothing"))
        .1;
    let words: BTreeSet<String> = list
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect();
    assert!(!words.is_empty(), "{error:?} lists nothing");
    words
}

/// What the configuration says of a text that it must refuse.
fn refusal(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    std::fs::write(&file, text).unwrap();
    let places = Places {
        config_dir: folder.path().into(),
        state_dir: PathBuf::new(),
        lock: PathBuf::new(),
    };
    Config::load(&places, Some(&file)).unwrap_err().to_string()
}

#[test]
fn every_key_of_the_configuration_is_in_its_page() {
    let mut keys = BTreeSet::new();
    for table in expected(&refusal("zzz = 1\n")) {
        // A table, an array of tables, or a table of them: the one that is refused for its key tells.
        let ways = [
            format!("[{table}]\nzzz = 1\n"),
            format!("[[{table}]]\nzzz = 1\n"),
        ];
        let found = ways
            .iter()
            .map(|text| refusal(text))
            .find(|error| error.contains("unknown field `zzz`"))
            .unwrap_or_else(|| panic!("{table} has no keys"));
        for key in expected(&found) {
            let nested = refusal(&format!("[[{table}.{key}]]\nzzz = 1\n"));
            if nested.contains("unknown field `zzz`") {
                assert_named_heading(&format!("[[{table}.{key}]]"));
                keys.extend(expected(&nested));
            } else {
                keys.insert(key);
            }
        }
    }
    assert!(
        keys.contains("max_failures") && keys.contains("on-not-clean") && keys.contains("outcome")
    );
    assert_named("fleet-update-config.5", keys);
}

#[track_caller]
fn assert_named_heading(heading: &str) {
    let text = page("fleet-update-config.5");
    assert!(
        text.contains(&format!(".SS {heading}\n")),
        "no section {heading}"
    );
}

/// What the table says of a row that it must refuse.
fn row_refusal(row: &str) -> String {
    let text = format!("[[mechanism]]\n{row}\n");
    Table::load(None, &[("x.toml".into(), text)])
        .unwrap_err()
        .to_string()
}

#[test]
fn every_key_and_word_of_the_mechanism_table_is_in_its_page() {
    let good = "id = \"x\"\naction = \"manual\"\ninstruction = \"\"\n";
    let in_match = |inner: &str| row_refusal(&format!("{good}match = {{ {inner} }}"));
    let mut words = expected(&row_refusal("zzz = 1"));
    words.extend(expected(&in_match("zzz = 1")));
    words.extend(expected(&in_match("manager = \"zzz\"")));
    words.extend(expected(&row_refusal(
        "id = \"x\"\nmatch = {}\naction = \"zzz\"\ninstruction = \"\"",
    )));
    words.extend(expected(&row_refusal(&format!(
        "{good}match = {{}}\ndrain = {{ signal = \"KILL\", limit = \"1s\" }}"
    ))));
    words.extend(expected(&row_refusal(&format!(
        "{good}match = {{}}\ndrain = {{ zzz = 1 }}"
    ))));
    for word in ["settle_silent", "cgroup", "scope", "respawn", "USR1"] {
        assert!(words.contains(word), "{word} is not among {words:?}");
    }
    assert_named("fleet-update-mechanisms.5", words);
    // Names in braces are a list of the source; the built-in rows and the page use no other.
    let source = include_str!("../src/restart/rows.rs");
    let (_, list) = source.split_once("const FIELDS: &[&str] = &[").unwrap();
    let list = list.split_once("];").unwrap().0;
    let fields: Vec<String> = list
        .split('"')
        .skip(1)
        .step_by(2)
        .map(|name| format!("{{{name}}}"))
        .collect();
    assert!(fields.len() > 5);
    assert_named("fleet-update-mechanisms.5", fields);
}

#[test]
fn every_key_and_operation_of_a_migration_is_in_its_page() {
    let refusal = |text: &str| {
        Step::parse("0001-x", text, "config.yaml")
            .unwrap_err()
            .to_string()
    };
    let good = "to = 1\ntitle = \"t\"\nwhy = \"w\"\n[[change]]\nop = \"set\"\n";
    let mut words = expected(&refusal("zzz = 1"));
    words.remove("change");
    words.extend(expected(&refusal(&format!("{good}zzz = 1"))));
    assert!(words.contains("default-since") && words.contains("legacy"));
    let source = include_str!("../src/migrate/rule/read.rs");
    // Conditions are read untagged, whose errors list nothing: the source does.
    let fields = source
        .split_once("struct RawWhen {")
        .unwrap()
        .1
        .split_once('}')
        .unwrap()
        .0;
    let conditions: Vec<String> = fields
        .lines()
        .filter_map(|line| Some(line.trim().split_once(':')?.0.replace('_', "-")))
        .collect();
    assert!(
        conditions.contains(&"not-word".to_owned()),
        "{conditions:?}"
    );
    words.extend(conditions);
    let arms = source
        .split_once("fn read_op(")
        .unwrap()
        .1
        .split_once("_ => return Err")
        .unwrap()
        .0;
    let operations: Vec<&str> = arms
        .lines()
        .filter_map(|line| {
            line.trim()
                .strip_prefix('"')?
                .split_once("\" =>")
                .map(|(name, _)| name)
        })
        .collect();
    assert!(
        operations.len() >= 12 && operations.contains(&"builtin"),
        "{operations:?}"
    );
    for operation in &operations {
        let error = refusal(&format!(
            "to = 1\ntitle = \"t\"\nwhy = \"w\"\n[[change]]\nop = \"{operation}\""
        ));
        assert!(!error.contains("there is no operation"), "{error}");
    }
    words.extend(operations.iter().map(|&name| name.to_owned()));
    assert_named("fleet-update-migrations.5", words);
}

/// Every property and every enumerated word of a JSON Schema.
fn words_of(schema: &serde_json::Value, words: &mut BTreeSet<String>) {
    match schema {
        serde_json::Value::Object(entries) => {
            if let Some(properties) = entries.get("properties").and_then(|one| one.as_object()) {
                words.extend(properties.keys().cloned());
            }
            for (key, value) in entries {
                match (key.as_str(), value.as_str()) {
                    ("const", Some(word)) => {
                        words.insert(word.to_owned());
                    }
                    _ => words_of(value, words),
                }
            }
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| words_of(item, words)),
        _ => {}
    }
}

#[test]
fn every_field_and_outcome_of_a_receipt_is_in_its_page() {
    let mut words = BTreeSet::new();
    words_of(&Receipt::schema(), &mut words);
    words_of(&schemars::schema_for!(FleetReceipt).to_value(), &mut words);
    for word in [
        "settled_ms",
        "invocation_id",
        "unaccounted",
        "newer-schema",
        "merged_at",
        "interrupted",
    ] {
        assert!(
            words.contains(word),
            "{word} is not in the schema: {words:?}"
        );
    }
    words.extend(
        HomeOutcome::ALL
            .iter()
            .map(|outcome| outcome.word().to_owned()),
    );
    words.extend(
        RuntimeOutcome::ALL
            .iter()
            .map(|outcome| outcome.word().to_owned()),
    );
    assert_named("fleet-update-receipt.5", words);
}

#[test]
fn every_outcome_and_exit_status_is_in_the_page_of_the_command() {
    let statuses: BTreeSet<u8> = [
        Kind::Usage,
        Kind::Input,
        Kind::Io,
        Kind::Refused,
        Kind::Locked,
        Kind::Deadline,
        Kind::Denied,
        Kind::Protocol,
    ]
    .into_iter()
    .map(Kind::exit_status)
    .chain([0, 1, 5])
    .collect();
    assert_named("update.8", statuses.iter().map(u8::to_string));
    assert_named(
        "update.8",
        HomeOutcome::ALL.iter().map(|outcome| outcome.word()),
    );
    assert_named(
        "update.8",
        RuntimeOutcome::ALL.iter().map(|outcome| outcome.word()),
    );
}

fn pages() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("man");
    let mut pages: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    pages.sort();
    assert!(pages.len() >= 5);
    pages
}

#[test]
fn the_pages_bear_the_release_and_refer_to_pages_that_there_are() {
    let own: BTreeSet<String> = pages()
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    for name in &own {
        let text = page(name);
        let title = text.lines().find(|line| line.starts_with(".TH ")).unwrap();
        assert!(
            title.contains(&format!("fleet-update {}", env!("CARGO_PKG_VERSION"))),
            "{title}"
        );
        assert!(title.contains("\"2026-11-30\""), "{title}");
        for part in text.split("fleet-update-").skip(1) {
            if let Some((word, rest)) = part.split_once(['\u{3}', ' '])
                && let Some(section) = rest.trim_start_matches('\u{3}').strip_prefix('(')
            {
                let file = format!("fleet-update-{word}.{}", &section[..1]);
                assert!(own.contains(&file), "{name} refers to {file}");
            }
        }
    }
}

#[test]
fn the_linters_have_nothing_to_say() {
    for (program, arguments) in [
        ("mandoc", &["-Tlint", "-W", "warning"][..]),
        ("groff", &["-ww", "-mandoc", "-Tutf8", "-z"]),
    ] {
        for page in pages() {
            let output = match Command::new(program).args(arguments).arg(&page).output() {
                Ok(output) => output,
                Err(error) => {
                    say_skipped(&format!("{program}: {error}"));
                    break;
                }
            };
            let said = format!(
                "{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
            assert_eq!(said, "", "{program} of {}", page.display());
        }
    }
}

/// Past the harness's capture, so that it is seen.
fn say_skipped(why: &str) {
    use std::io::Write as _;
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = writeln!(std::io::stderr(), "SKIPPED {name}: {why}");
}
