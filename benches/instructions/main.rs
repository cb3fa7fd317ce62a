//! How many instructions the pure parts take, compared with what they took when they were last looked at.
//!
//! `cargo bench --profile dev --bench instructions [-- --bless]`: runs every part once under callgrind(1) of
//! valgrind and fails with the names of those that grew by more than the tolerance of `benches/instructions.toml`.
//! Times differ from run to run and machine to machine, instructions hardly do, so the gate can hold on to
//! them. They are counted without optimisation, which the gate has built anyway: a loop in a loop, or work
//! that is done twice, shows there as well. `--bless` writes the figures anew.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a benchmark fails by panicking, prints what it counted, and starts valgrind"
)]

mod parts;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode};

use toml_edit::{DocumentMut, Item};

/// The figures that are kept.
const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/instructions.toml");

/// What every counted function is called, before the part's name.
const PREFIX: &str = "instructions::parts::count_";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    if words.iter().any(|word| word == "--parts") {
        parts::all();
        return ExitCode::SUCCESS;
    }
    let counted = match count() {
        Ok(counted) => counted,
        Err(reason) => {
            eprintln!("SKIPPED instructions: {reason}");
            let required =
                std::env::var_os("UPDATE_REQUIRE_SYSTEMD").is_some_and(|value| value == "1");
            return ExitCode::from(u8::from(required));
        }
    };
    let text = std::fs::read_to_string(KEPT).unwrap_or_default();
    let mut kept: DocumentMut = text.parse().unwrap();
    if words.iter().any(|word| word == "--bless") {
        bless(&mut kept, &counted);
        std::fs::write(KEPT, kept.to_string()).unwrap();
        return ExitCode::SUCCESS;
    }
    let faults = compare(&kept, &counted);
    for fault in &faults {
        eprintln!("{fault}");
    }
    if !faults.is_empty() {
        eprintln!("if that is meant: cargo bench --profile dev --bench instructions -- --bless");
    }
    ExitCode::from(u8::from(!faults.is_empty()))
}

/// Instructions by part.
fn count() -> Result<BTreeMap<String, u64>, String> {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = folder.path().join("callgrind");
    let output = Command::new("valgrind")
        .args(["--quiet", "--tool=callgrind", "--collect-atstart=no"])
        .arg(format!("--toggle-collect={PREFIX}*"))
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(std::env::current_exe().unwrap())
        .arg("--parts")
        .output()
        .map_err(|error| format!("cannot start valgrind: {error}"))?;
    assert!(output.status.success(), "{output:?}");
    let output = Command::new("callgrind_annotate")
        .args([
            "--inclusive=yes",
            "--threshold=100",
            "--auto=no",
            "--show-percs=no",
        ])
        .arg(&file)
        .output()
        .map_err(|error| format!("cannot start callgrind_annotate: {error}"))?;
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| {
        let at = line.find(PREFIX)?;
        let name = line[at + PREFIX.len()..].split([' ', '\'', '(']).next()?;
        let number = line.split_whitespace().next()?.replace(',', "");
        Some((name.to_owned(), number.parse::<u64>().ok()?))
    };
    let mut counted: BTreeMap<String, u64> = BTreeMap::new();
    // What was inlined from another file has a line of its own, with the calls that it makes.
    for (name, number) in text.lines().filter_map(line) {
        *counted.entry(name).or_default() += number;
    }
    assert_eq!(
        counted.len(),
        parts::NAMES.len(),
        "{counted:?} of {:?}\n{text}",
        parts::NAMES
    );
    Ok(counted)
}

/// What grew by more than it may, and what is not kept or not counted any more.
fn compare(kept: &DocumentMut, counted: &BTreeMap<String, u64>) -> Vec<String> {
    let number = |item: Option<&Item>| {
        item.and_then(Item::as_integer)
            .and_then(|n| u64::try_from(n).ok())
    };
    let usual = number(kept.get("tolerance")).unwrap_or(10);
    let mut faults = Vec::new();
    for (part, now) in counted {
        let row = kept.get("parts").and_then(|parts| parts.get(part));
        let Some(before) = number(row.and_then(|row| row.get("instructions"))) else {
            faults.push(format!("{part}: {now} instructions, and none are kept"));
            continue;
        };
        let tolerance = number(row.and_then(|row| row.get("tolerance"))).unwrap_or(usual);
        let most = before + before * tolerance / 100;
        let least = before - before * tolerance.min(100) / 100;
        println!("{part}: {now} instructions, {before} before");
        if *now > most {
            let more = (now - before) as f64 * 100.0 / before as f64;
            faults.push(format!(
                "{part} takes {more:.1} % more instructions: {now} in place of {before}, and {tolerance} % are tolerated"
            ));
        } else if *now < least {
            println!(
                "{part} got cheaper by more than its tolerance: write the figures anew with --bless"
            );
        }
    }
    for part in kept
        .get("parts")
        .and_then(Item::as_table)
        .into_iter()
        .flat_map(|table| table.iter())
    {
        if !counted.contains_key(part.0) {
            faults.push(format!("{}: it is kept, and was not counted", part.0));
        }
    }
    faults
}

/// Writes the figures into what is kept, beside what a person wrote there.
fn bless(kept: &mut DocumentMut, counted: &BTreeMap<String, u64>) {
    if let Some(parts) = kept.get_mut("parts").and_then(Item::as_table_mut) {
        parts.retain(|part, _| counted.contains_key(part));
    }
    for (part, now) in counted {
        if !kept.contains_key("parts") {
            kept["parts"] = toml_edit::table();
        }
        if kept["parts"].get(part).is_none() {
            kept["parts"][part] = toml_edit::table();
        }
        kept["parts"][part]["instructions"] = toml_edit::value(i64::try_from(*now).unwrap());
        println!("{part}: {now} instructions");
    }
    assert!(Path::new(KEPT).parent().is_some_and(Path::is_dir));
}
