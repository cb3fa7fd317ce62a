//! A run as metrics for the textfile collector of Prometheus' node exporter (`--metrics-file`).
//!
//! The file is replaced as a whole by rename, since the collector may read at any time, and readable by
//! all, since the collector runs as somebody else. Samples bear no timestamps: the collector refuses
//! them. Every outcome word is there with its count, zero included, so that an alert on one that never
//! happened has a series to look at.

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::error::{Error, Result};
use crate::migrate::HomeOutcome;
use crate::plan::decide::RuntimeOutcome;
use crate::receipt::{Receipt, VerdictOutcome};
use crate::world;

/// Writes the metrics of a run that left a receipt.
///
/// # Errors
/// When the file cannot be replaced.
pub fn write(file: &Path, receipt: &Receipt) -> Result<()> {
    replace(file, &render(receipt))
}

/// Writes that a run ended with `status` before it had a receipt: then nothing is known to be clean.
///
/// # Errors
/// When the file cannot be replaced.
pub fn write_failure(file: &Path, application: &str, status: u8) -> Result<()> {
    let mut text = String::new();
    verdict(&mut text, application, false, status);
    replace(file, &text)
}

fn verdict(text: &mut String, application: &str, clean: bool, status: u8) {
    let labels = [("application", application)];
    metric(
        text,
        "clean",
        "Whether the last run found or made every home and runtime fine.",
    );
    sample(text, "clean", &labels, u8::from(clean));
    metric(text, "exit_status", "The exit status of the last run.");
    sample(text, "exit_status", &labels, status);
    metric(
        text,
        "finished_timestamp_seconds",
        "When the last run ended, in seconds since 1970.",
    );
    sample(
        text,
        "finished_timestamp_seconds",
        &labels,
        world::now().as_secs(),
    );
}

/// The metrics of a receipt, in the text format.
#[must_use]
pub fn render(receipt: &Receipt) -> String {
    let mut text = String::new();
    let app = receipt.application.as_str();
    let clean = receipt.verdict.outcome == VerdictOutcome::Clean;
    verdict(
        &mut text,
        app,
        clean,
        receipt.verdict.exit_status.unwrap_or(1),
    );
    let count = |list: &str, word: &str| {
        let counts = &receipt.verdict.counts;
        counts.get(&format!("{list}.{word}")).copied().unwrap_or(0)
    };
    metric(
        &mut text,
        "homes",
        "Profile homes by how they came out of the last run.",
    );
    for word in HomeOutcome::ALL.iter().map(|outcome| outcome.word()) {
        sample(
            &mut text,
            "homes",
            &[("application", app), ("outcome", word)],
            count("homes", word),
        );
    }
    metric(
        &mut text,
        "runtimes",
        "Runtimes by how they came out of the last run.",
    );
    for word in RuntimeOutcome::ALL.iter().map(|outcome| outcome.word()) {
        sample(
            &mut text,
            "runtimes",
            &[("application", app), ("outcome", word)],
            count("runtimes", word),
        );
    }
    metric(
        &mut text,
        "collectors",
        "Sources of evidence by whether they answered.",
    );
    for word in ["ok", "skipped", "unverified"] {
        let found = receipt
            .collectors
            .iter()
            .filter(|row| row.outcome == word)
            .count();
        sample(
            &mut text,
            "collectors",
            &[("application", app), ("outcome", word)],
            found,
        );
    }
    metric(
        &mut text,
        "accepted",
        "Rows that are not fine and that the site accepts.",
    );
    let accepted = receipt
        .homes
        .iter()
        .filter(|row| row.accepted.is_some())
        .count()
        + receipt
            .runtimes
            .iter()
            .filter(|row| row.accepted.is_some())
            .count();
    sample(&mut text, "accepted", &[("application", app)], accepted);
    metric(
        &mut text,
        "owed_restarts",
        "Restarts that the last run left owed.",
    );
    sample(
        &mut text,
        "owed_restarts",
        &[("application", app)],
        receipt.debts.len(),
    );
    metric(&mut text, "info", "The program that ran.");
    sample(
        &mut text,
        "info",
        &[("application", app), ("version", &receipt.tool.version)],
        1,
    );
    text
}

fn metric(text: &mut String, name: &str, help: &str) {
    // Writing into a string cannot fail.
    let _ = writeln!(
        text,
        "# HELP fleet_update_{name} {help}\n# TYPE fleet_update_{name} gauge"
    );
}

fn sample(text: &mut String, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
    let labels: Vec<String> = labels
        .iter()
        .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
        .collect();
    let _ = writeln!(text, "fleet_update_{name}{{{}}} {value}", labels.join(","));
}

fn escaped(value: &str) -> String {
    crate::screen::visible(value)
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

fn replace(file: &Path, text: &str) -> Result<()> {
    let failed = |error| Error::io(format!("cannot write {}", file.display()), error);
    let folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    // The collector takes `*.prom`; what is still being written must not match.
    let mut temporary = tempfile::Builder::new()
        .prefix(".fleet-update-")
        .suffix(".tmp")
        .tempfile_in(folder.unwrap_or_else(|| Path::new(".")))
        .map_err(failed)?;
    temporary.write_all(text.as_bytes()).map_err(failed)?;
    let mode = std::fs::Permissions::from_mode(0o644);
    temporary.as_file().set_permissions(mode).map_err(failed)?;
    temporary
        .persist(file)
        .map_err(|error| failed(error.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_stays_one_label() {
        let mut text = String::new();
        sample(&mut text, "x", &[("a", "b\"} 1\nc\\")], 2);
        assert_eq!(text, "fleet_update_x{a=\"b\\\"} 1\\\\nc\\\\\"} 2\n");
    }

    #[test]
    fn the_file_is_replaced_and_all_may_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("fleet.prom");
        write_failure(&file, "app", 3).unwrap();
        write_failure(&file, "app", 4).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(
            text.contains("fleet_update_exit_status{application=\"app\"} 4\n"),
            "{text}"
        );
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o644);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
