//! The source tree's order holds: a file uses what stands above it in its group, and the groups
//! before. The order below is the map of `src/lib.rs`, file by file.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Every module from the bottom up. A module may use those before it; a folder's own files are in order.
const ORDER: &[&str] = &[
    "error",
    "defect",
    "digest",
    "world",
    "screen",
    "helper",
    "ui",
    "app",
    "config",   // base
    "document", // parse, edit, prove, replace
    "fleet",
    "fleet::procfs",
    "fleet::runtimes",
    "fleet::units",
    "fleet::selfreport",
    "fleet::scope",
    "fleet::installs",
    "fleet::homes",
    "fleet::processes",
    "fleet::supervisors",
    "fleet::survey",
    "fleet::assembly",
    "fleet::again",
    "fleet::inventory", // what exists
    "migrate",          // what has to change
    "restart",          // how it is restarted
    "state",            // our own state
    "plan",
    "verify",
    "receipt", // decide
    "cli",
    "run", // top
];

#[test]
fn no_file_uses_what_stands_above_it() {
    let mut breaches = Vec::new();
    let mut seen = BTreeSet::new();
    for file in sources(Path::new("src")) {
        let module = module_of(&file);
        let Some(own) = rank(&module) else { continue };
        seen.insert(ORDER[own]);
        let text = fs::read_to_string(&file).expect("a source file");
        for (number, line) in code_lines(&text) {
            for used in uses(line, &module) {
                let used_rank = rank(&used).expect("it was looked up");
                let same_folder =
                    ORDER[used_rank].split("::").next() == ORDER[own].split("::").next();
                let fleet = same_folder && ORDER[own].starts_with("fleet");
                if used_rank > own && (!same_folder || fleet) {
                    breaches.push(format!(
                        "{}:{}: {} uses {used}",
                        file.display(),
                        number,
                        ORDER[own]
                    ));
                }
            }
        }
    }
    assert!(breaches.is_empty(), "\n{}", breaches.join("\n"));
    for module in ORDER {
        assert!(
            seen.contains(module),
            "{module} has no file: the order is out of date"
        );
    }
}

#[test]
fn only_the_builtin_migrations_name_the_application() {
    let mut named = Vec::new();
    for file in sources(Path::new("src")) {
        if file.starts_with("src/migrate/builtin") || file == Path::new("src/migrate/builtin.rs") {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source file");
        for (number, line) in code_lines(&text) {
            let default = file == Path::new("src/app.rs") && line.contains("DEFAULT: &str");
            if line.to_ascii_lowercase().contains("hermes") && !default {
                named.push(format!("{}:{number}: {}", file.display(), line.trim()));
            }
        }
    }
    assert!(named.is_empty(), "\n{}", named.join("\n"));
}

/// Lines before the unit tests, with their numbers.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(number, line)| (number + 1, line))
        .take_while(|(_, line)| *line != "#[cfg(test)]")
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path
            .file_name()
            .is_some_and(|name| name == "tests.rs" || name == "sample.rs")
        {
            // Tests reach up to see the whole; so do their samples.
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn module_of(file: &Path) -> String {
    let relative = file
        .strip_prefix("src")
        .expect("below src")
        .with_extension("");
    let parts: Vec<String> = relative
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    parts.join("::").trim_end_matches("::mod").to_owned()
}

/// The position of a module: its own, or that of the module that it is a part of.
fn rank(module: &str) -> Option<usize> {
    let mut name = module;
    loop {
        if let Some(rank) = ORDER.iter().position(|known| *known == name) {
            return Some(rank);
        }
        name = name.rsplit_once("::")?.0;
    }
}

/// What a line of `module` uses of this crate, as `module` or `module::part`: by its whole path, or by
/// `super::` from where the module stands.
fn uses(line: &str, module: &str) -> Vec<String> {
    let code = line.split("//").next().unwrap_or_default();
    let mut found = Vec::new();
    for word in
        code.split(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == ':'))
    {
        let parts: Vec<&str> = word.split("::").filter(|part| !part.is_empty()).collect();
        let ups = parts.iter().take_while(|part| **part == "super").count();
        let mut path: Vec<&str> = match parts.first() {
            Some(&"crate") => Vec::new(),
            Some(&"super") => {
                let own: Vec<&str> = module.split("::").collect();
                own[..own.len().saturating_sub(ups)].to_vec()
            }
            _ => continue,
        };
        path.extend(&parts[ups.max(1)..]);
        path.truncate(2);
        // `super::{…}` and `super::*` name what is above; so does an item of the module above.
        let name = path.join("::");
        if rank(&name).is_some() {
            found.push(name);
        } else {
            assert!(
                ups > 0 || name.is_empty(),
                "{module}: {name} is in no group"
            );
        }
    }
    found
}
