//! The page of a fleet of machines: one row each, and what needs a person.

use std::fmt::Write as _;

use super::super::merge::{FleetReceipt, MachineOutcome, MachineRow};
use super::super::{Receipt, VerdictOutcome};
use super::{Grid, Tone, badge, cell, esc, facts, matrix, section, shell, time, todo, verdict};

/// The whole page of a fleet's receipt.
#[must_use]
pub fn fleet(receipt: &FleetReceipt) -> String {
    let (word, tone) = verdict(receipt.verdict.outcome);
    let sentence = match receipt.verdict.outcome {
        VerdictOutcome::Clean => {
            "Every machine of the inventory sent a receipt, and all are clean."
        }
        _ => "Not every machine of the inventory is proved clean.",
    };
    let tallies: Vec<String> = receipt
        .verdict
        .counts
        .iter()
        .map(|(word, count)| {
            badge(
                if word == "clean" {
                    Tone::Good
                } else {
                    Tone::Bad
                },
                &format!("{count} {word}"),
            )
        })
        .collect();
    let header = format!(
        "<header class=\"{}\">\n<p class=\"kicker\">Receipt of a fleet of machines</p>\n\
         <h1><span class=\"sign\" aria-hidden=\"true\">{}</span> {word}</h1>\n<p class=\"lead\">{sentence}</p>\n\
         <ul class=\"tallies\"><li><b>{}</b> machines {}</li></ul>\n{}</header>\n",
        tone.class(),
        tone.sign(),
        receipt.machines.len(),
        tallies.join(" "),
        facts(&[("Made", time(&receipt.merged_at))]),
    );
    let mut grid = Grid::new(
        "matrix",
        "Machines",
        &["Machine", "State", "Homes", "Runtimes", "Run"],
    );
    for row in &receipt.machines {
        grid.row("", &cells(row));
    }
    let mut main = section("machines", "The machines", &grid.close());
    for (index, row) in receipt.machines.iter().enumerate() {
        if let Some(own) = &row.receipt {
            let mut body = format!(
                "<details{}>\n<summary>{}</summary>\n",
                open(row),
                esc(&own.run_id)
            );
            body.push_str(&todo(own, &format!("todo-{index}")));
            body.push_str(&matrix(own));
            body.push_str("</details>\n");
            main.push_str(&section(&format!("machine-{index}"), &row.name, &body));
        }
    }
    let title = format!("{word}: {} machines", receipt.machines.len());
    let footer = format!(
        "<footer>\n{}</footer>\n",
        facts(&[
            (
                "Made by",
                esc(&format!("update {}", env!("CARGO_PKG_VERSION")))
            ),
            ("Format", receipt.schema.to_string()),
        ])
    );
    shell(&title, &header, &main, &footer)
}

const fn open(row: &MachineRow) -> &'static str {
    match row.outcome {
        MachineOutcome::Clean => "",
        _ => " open",
    }
}

fn cells(row: &MachineRow) -> Vec<String> {
    let tone = if row.outcome == MachineOutcome::Clean {
        Tone::Good
    } else {
        Tone::Bad
    };
    let mut name = esc(&row.name);
    if let Some(file) = &row.file {
        let _ = write!(name, "<span class=\"place\">{}</span>", esc(file));
    }
    let own = row.receipt.as_ref();
    vec![
        name,
        cell(tone, row.outcome.word(), &row.reason, None),
        own.map(|own| counts(own, "homes.")).unwrap_or_default(),
        own.map(|own| counts(own, "runtimes.")).unwrap_or_default(),
        own.map(|own| time(&own.started_at)).unwrap_or_default(),
    ]
}

fn counts(receipt: &Receipt, prefix: &str) -> String {
    let parts: Vec<String> = receipt
        .verdict
        .counts
        .iter()
        .filter_map(|(name, count)| {
            name.strip_prefix(prefix)
                .map(|word| esc(&format!("{count} {word}")))
        })
        .collect();
    parts.join(", ")
}
