//! How long reading and editing a configuration takes.

use fleet_update::document::{self, Edit, Format, Path, Value};

fn main() {
    divan::main();
}

/// A commented configuration of about `bytes` bytes, shaped like a real one.
fn configuration(bytes: usize) -> String {
    let mut text = String::from("_config_version: 24\nmodel_catalog:\n  ttl_hours: 24   # a day\n");
    let mut number = 0;
    while text.len() < bytes {
        number += 1;
        text.push_str(&format!(
            "\n# =============================================================================\n# Section {number}\n# \
             =============================================================================\n# What this is for, in a sentence or two, as \
             shipped examples have it.\n# Options: one, two, three\nsection_{number}:\n  enabled: true        # whether it is on\n  # \
             commented_out: 5\n  limit: {number}\n  endpoint: \"https://example.invalid/v1/{number}\"\n  names:\n    - alpha\n    - 'beta gamma'\n  \
             nested:\n    timeout: 1_000\n    mode: off\n"
        ));
    }
    text
}

fn edits() -> [Edit; 3] {
    [
        Edit::Set {
            path: Path::from(["model_catalog", "ttl_hours"]),
            value: Value::Int(1),
        },
        Edit::Remove {
            path: Path::from(["section_2", "limit"]),
        },
        Edit::Set {
            path: Path::from(["_config_version"]),
            value: Value::Int(50),
        },
    ]
}

#[divan::bench(args = [4_000, 30_000, 76_000, 1_000_000])]
fn parse(bencher: divan::Bencher<'_, '_>, bytes: usize) {
    let text = configuration(bytes);
    bencher.bench(|| document::parse(Format::Yaml, text.as_bytes()));
}

#[divan::bench(args = [4_000, 30_000, 76_000])]
fn parse_and_edit_once(bencher: divan::Bencher<'_, '_>, bytes: usize) {
    let text = configuration(bytes);
    let [edit, ..] = edits();
    bencher.bench(|| {
        let mut document = document::parse(Format::Yaml, text.as_bytes()).ok()?;
        document.edit(&edit).ok()?;
        Some(document)
    });
}

#[divan::bench(args = [4_000, 76_000])]
fn parse_and_edit_three_times(bencher: divan::Bencher<'_, '_>, bytes: usize) {
    let text = configuration(bytes);
    let edits = edits();
    bencher.bench(|| {
        let mut document = document::parse(Format::Yaml, text.as_bytes()).ok()?;
        for edit in &edits {
            document.edit(edit).ok()?;
        }
        Some(document)
    });
}
