//! `update mechanisms`: the table that says how each kind of owner is asked for a restart.

use std::fmt::Write as _;

use super::Session;
use crate::error::Result;
use crate::restart::table::Subject;
use crate::run::look::look;
use crate::screen::{self, visible};

/// Prints the table; with `explain`, for each runtime, or for those of `unit`, why its row was chosen.
///
/// # Errors
/// When the machine cannot be looked at.
pub fn run(session: &Session, explain: bool, unit: Option<&str>) -> Result<u8> {
    if explain {
        return explain_runtimes(session, unit);
    }
    let rows = session.table.rows();
    // The site's own rows may hold what a person or a command needs, and this output is pasted.
    let value = screen::json("", &serde_json::to_value(rows).unwrap_or_default());
    session.ui.report(&value, || {
        let mut table = comfy_table::Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        table.set_header(["ID", "MATCH", "ACTION", "WHAT A PERSON CAN DO"]);
        for row in rows {
            let matches: Vec<String> = row.matches.iter().map(ToString::to_string).collect();
            let action = serde_json::to_value(row.action).unwrap_or_default();
            table.add_row([
                row.id.clone(),
                matches.join("\n"),
                action.as_str().unwrap_or_default().to_owned(),
                visible(&screen::text(&row.instruction)).into_owned(),
            ]);
        }
        format!("{table}\n")
    });
    Ok(0)
}

fn explain_runtimes(session: &Session, unit: Option<&str>) -> Result<u8> {
    let look = look(session, &[], false)?;
    let mut values = Vec::new();
    let mut text = String::new();
    for planned in look.plan.runtimes.iter().filter(|planned| {
        let own = planned.runtime.unit.as_ref();
        unit.is_none_or(|unit| own.is_some_and(|own| own.name == unit))
    }) {
        let chosen = session.table.choose(&Subject::of(&planned.runtime));
        let row = chosen.row.map(|row| row.id.as_str());
        let name = planned
            .runtime
            .unit
            .as_ref()
            .map_or(planned.runtime.id.as_str(), |unit| unit.name.as_str());
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "{} {}: {} ({})",
            planned.runtime.kind,
            visible(name),
            row.unwrap_or("no row"),
            chosen.why
        );
        for (id, why) in &chosen.rejected {
            let _ = writeln!(text, "    not {id}: {}", visible(why));
        }
        let instruction = screen::text(&planned.instruction);
        let _ = writeln!(text, "    do: {}", visible(&instruction));
        values.push(serde_json::json!({
            "runtime": planned.runtime.id,
            "kind": planned.runtime.kind,
            "row": row,
            "why": chosen.why,
            "rejected": chosen.rejected.iter().map(|(id, why)| serde_json::json!({"id": id, "why": why})).collect::<Vec<_>>(),
            "instruction": instruction,
        }));
    }
    session.ui.report(&values, || text);
    Ok(0)
}
