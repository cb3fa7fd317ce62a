//! What each vantage saw, how each source of evidence did, and which code was found.

use std::fmt::Write as _;

use super::super::{Life, Receipt};
use super::{Grid, Tone, badge, cell, esc, facts, masked, runtime_name, runtime_tone, time};

/// What each vantage said of each runtime, and how each source of evidence did.
pub(super) fn evidence(receipt: &Receipt) -> String {
    let mut output = String::new();
    for row in &receipt.runtimes {
        let _ = write!(
            output,
            "<details>\n<summary>{} of {} {}</summary>\n",
            esc(&runtime_name(row)),
            esc(&row.user),
            badge(runtime_tone(row), row.outcome.word())
        );
        let life = |life: &Option<Life>| {
            life.as_ref().map_or_else(String::new, |life| {
                format!(
                    "pid {}, since {}",
                    life.incarnation.pid,
                    time(&life.started_at)
                )
            })
        };
        output.push_str(&facts(&[
            ("Kept by", esc(&row.supervisor)),
            (
                "Mechanism",
                esc(row.mechanism.as_deref().unwrap_or("no row matches")),
            ),
            ("Job", esc(row.job.as_deref().unwrap_or_default())),
            ("Before", life(&row.before)),
            ("After", life(&row.after)),
        ]));
        let mut grid = Grid::new(
            "plain",
            "What each vantage saw",
            &["Vantage", "Asked as", "Saw"],
        );
        for seen in &row.evidence {
            grid.row(
                "",
                &[
                    esc(&seen.vantage),
                    esc(&seen.principal),
                    masked(&seen.observed),
                ],
            );
        }
        output.push_str(&grid.close());
        output.push_str("</details>\n");
    }
    let mut grid = Grid::new(
        "plain",
        "Sources of evidence",
        &["Source", "Asked as", "Answer", "Found"],
    );
    for row in &receipt.collectors {
        let tone = match row.outcome.as_str() {
            "ok" => Tone::Good,
            "skipped" => Tone::Quiet,
            _ => Tone::Bad,
        };
        grid.row(
            "",
            &[
                esc(&row.name),
                esc(&row.principal),
                cell(tone, &row.outcome, &row.reason, None),
                row.found.to_string(),
            ],
        );
    }
    output.push_str(&grid.close());
    if !receipt.installs.is_empty() {
        let mut grid = Grid::new(
            "plain",
            "Code",
            &["Install", "Release", "Expects version", "Changed"],
        );
        for row in &receipt.installs {
            grid.row(
                "",
                &[
                    format!("<code>{}</code>", esc(&row.path.to_string_lossy())),
                    esc(row.version.as_deref().unwrap_or("not known")),
                    row.config_version
                        .map_or_else(|| "not known".into(), |version| version.to_string()),
                    row.changed_at.as_deref().map(time).unwrap_or_default(),
                ],
            );
        }
        output.push_str(&grid.close());
    }
    if !receipt.notes.is_empty() {
        output.push_str("<h3>Notes</h3>\n<ul>\n");
        for note in &receipt.notes {
            let _ = writeln!(output, "<li>{}</li>", masked(note));
        }
        output.push_str("</ul>\n");
    }
    output
}
