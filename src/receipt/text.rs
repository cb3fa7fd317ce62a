//! A receipt, and a plan, as a person reads them: one line a home and one line a runtime, grouped by
//! their owner, what is not fine marked and explained, and the verdict last.

use std::fmt::Write as _;

use super::{HomeRow, Receipt, RuntimeRow, VerdictOutcome};
use crate::plan::decide::RuntimeOutcome;
use crate::screen::visible;

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether colours may be used.
    pub color: bool,
    /// Whether every value that changed and every source of evidence is listed.
    pub verbose: bool,
    /// Whether it is a plan: what would be done, not what was.
    pub plan: bool,
}

const GOOD: anstyle::Style = anstyle::AnsiColor::Green.on_default();
const BAD: anstyle::Style = anstyle::AnsiColor::Red.on_default().bold();
const DIM: anstyle::Style = anstyle::Style::new().dimmed();

/// A row of the table before it is laid out.
struct Line {
    indent: usize,
    name: String,
    place: String,
    outcome: String,
    fine: Option<bool>,
    detail: String,
    below: Vec<String>,
}

/// The whole receipt as text.
#[must_use]
pub fn render(receipt: &Receipt, style: Style) -> String {
    let mut output = String::new();
    let lines = lines(receipt, style);
    let width = |pick: fn(&Line) -> &String, most: usize| {
        lines
            .iter()
            .filter(|line| !line.outcome.is_empty())
            .map(|line| line.indent + pick(line).chars().count())
            .max()
            .unwrap_or(0)
            .min(most)
    };
    let (names, places) = (width(|line| &line.name, 32), width(|line| &line.place, 56));
    let outcomes = width(|line| &line.outcome, 24);
    for line in &lines {
        write_line(&mut output, line, (names, places, outcomes), style);
    }
    for row in &receipt.collectors {
        if row.outcome != "ok" && (style.verbose || row.outcome == "unverified") {
            let mark = if row.outcome == "unverified" {
                paint(style, BAD, "!")
            } else {
                " ".into()
            };
            let _ = writeln!(
                output,
                "{mark} {} {}: {}",
                visible(&row.name),
                row.outcome,
                visible(&row.reason)
            );
        }
    }
    for note in &receipt.notes {
        let _ = writeln!(output, "  note: {}", visible(note));
    }
    output.push_str(&verdict(receipt, style));
    output
}

fn lines(receipt: &Receipt, style: Style) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut shown = vec![false; receipt.runtimes.len()];
    let mut user: Option<&str> = None;
    for home in &receipt.homes {
        if user != Some(&home.user) {
            user = Some(&home.user);
            lines.push(heading(&format!(
                "{} (uid {})",
                visible(&home.user),
                home.uid
            )));
        }
        lines.push(home_line(home, style));
        for (index, runtime) in receipt.runtimes.iter().enumerate() {
            if !shown[index] && runtime.homes.first() == Some(&home.id) {
                shown[index] = true;
                lines.push(runtime_line(runtime, style));
            }
        }
    }
    let rest: Vec<&RuntimeRow> = receipt
        .runtimes
        .iter()
        .zip(&shown)
        .filter(|(_, shown)| !**shown)
        .map(|(row, _)| row)
        .collect();
    if !rest.is_empty() {
        lines.push(heading("of no home"));
        lines.extend(rest.into_iter().map(|row| runtime_line(row, style)));
    }
    lines
}

fn heading(text: &str) -> Line {
    Line {
        indent: 0,
        name: text.to_owned(),
        place: String::new(),
        outcome: String::new(),
        fine: None,
        detail: String::new(),
        below: Vec::new(),
    }
}

fn home_line(home: &HomeRow, style: Style) -> Line {
    let versions = match (&home.from, home.to) {
        (Some(from), Some(to)) if *from == to.to_string() => from.clone(),
        (Some(from), Some(to)) => format!("{from} → {to}"),
        (Some(from), None) => from.clone(),
        (None, Some(to)) => format!("→ {to}"),
        (None, None) => String::new(),
    };
    let values = match home.changes.len() {
        0 => String::new(),
        1 => "1 value".into(),
        count => format!("{count} values"),
    };
    let detail = [versions, values, visible(&home.reason).into_owned()]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(", ");
    let mut below: Vec<String> = home
        .failures
        .iter()
        .map(|failure| visible(failure).into_owned())
        .collect();
    if style.verbose {
        below.extend(home.changes.iter().map(|change| {
            format!(
                "{}: {} → {}",
                visible(&change.path),
                shown(change.before.as_ref()),
                shown(change.after.as_ref())
            )
        }));
    }
    advice(&mut below, home.remedy.as_deref(), home.accepted.as_deref());
    let word = home.outcome.word();
    let planned = style.plan && word == "migrated";
    Line {
        indent: 2,
        name: visible(&home.profile).into_owned(),
        place: visible(&home.path.to_string_lossy()).into_owned(),
        outcome: if planned {
            "migrate".into()
        } else {
            word.into()
        },
        fine: Some(home.outcome.is_clean() || home.accepted.is_some()),
        detail,
        below,
    }
}

fn runtime_line(runtime: &RuntimeRow, style: Style) -> Line {
    let pid = |life: &Option<super::Life>| life.as_ref().map(|life| life.incarnation.pid);
    let pids = match (pid(&runtime.before), pid(&runtime.after)) {
        (Some(before), Some(after)) if before != after => format!("pid {before} → {after}"),
        (Some(pid), _) | (None, Some(pid)) => format!("pid {pid}"),
        (None, None) => String::new(),
    };
    let waited = if runtime.waited_ms == 0 {
        String::new()
    } else {
        format!(
            "{}.{} s",
            runtime.waited_ms / 1000,
            runtime.waited_ms % 1000 / 100
        )
    };
    let detail = [pids, waited, visible(&runtime.reason).into_owned()]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(", ");
    let will_act =
        style.plan && runtime.outcome == RuntimeOutcome::Unaccounted && runtime.action.is_some();
    let mut below = Vec::new();
    if runtime.profiles.len() > 1 {
        below.push(format!("serves {}", visible(&runtime.profiles.join(", "))));
    }
    if style.verbose {
        below.extend(runtime.evidence.iter().map(|row| {
            format!(
                "{} ({}): {}",
                row.vantage,
                row.principal,
                visible(&row.observed)
            )
        }));
    }
    advice(
        &mut below,
        runtime.remedy.as_deref(),
        runtime.accepted.as_deref(),
    );
    Line {
        indent: 4,
        name: visible(&runtime.kind).into_owned(),
        place: visible(runtime.unit.as_deref().unwrap_or(&runtime.supervisor)).into_owned(),
        outcome: if will_act {
            "restart".into()
        } else {
            runtime.outcome.word().into()
        },
        fine: Some(will_act || runtime.outcome.is_clean() || runtime.accepted.is_some()),
        detail,
        below,
    }
}

fn advice(below: &mut Vec<String>, remedy: Option<&str>, accepted: Option<&str>) {
    if let Some(remedy) = remedy {
        below.push(format!("do: {}", visible(remedy)));
    }
    if let Some(reason) = accepted {
        below.push(format!("accepted: {}", visible(reason)));
    }
}

fn shown(value: Option<&serde_json::Value>) -> String {
    value.map_or_else(
        || "(absent)".into(),
        |value| visible(&value.to_string()).into_owned(),
    )
}

fn write_line(output: &mut String, line: &Line, widths: (usize, usize, usize), style: Style) {
    if line.outcome.is_empty() {
        let _ = writeln!(output, "{}", line.name);
        return;
    }
    let (names, places, outcomes) = widths;
    let mark = match line.fine {
        Some(false) => paint(style, BAD, "!"),
        _ => " ".into(),
    };
    let indent = line.indent.saturating_sub(1);
    let name = pad(&line.name, names.saturating_sub(line.indent));
    let place = pad(&line.place, places.saturating_sub(2));
    let outcome = pad(&line.outcome, outcomes.saturating_sub(2));
    let color = if line.fine == Some(false) { BAD } else { GOOD };
    let text = format!(
        "{mark}{:indent$}{name}  {place}  {}  {}",
        "",
        paint(style, color, &outcome),
        line.detail
    );
    let _ = writeln!(output, "{}", text.trim_end());
    for below in &line.below {
        let _ = writeln!(
            output,
            "{:width$}{}",
            "",
            paint(style, DIM, below),
            width = line.indent + 2
        );
    }
}

fn pad(text: &str, width: usize) -> String {
    let length = text.chars().count();
    format!("{text}{:fill$}", "", fill = width.saturating_sub(length))
}

fn paint(style: Style, color: anstyle::Style, text: &str) -> String {
    if style.color {
        format!("{color}{text}{color:#}")
    } else {
        text.to_owned()
    }
}

/// One line that says it all.
#[must_use]
pub fn verdict(receipt: &Receipt, style: Style) -> String {
    let count = |prefix: &str| {
        let parts: Vec<String> = receipt
            .verdict
            .counts
            .iter()
            .filter_map(|(name, count)| {
                name.strip_prefix(prefix)
                    .map(|word| format!("{count} {word}"))
            })
            .collect();
        if parts.is_empty() {
            "none".into()
        } else {
            parts.join(", ")
        }
    };
    let word = receipt.verdict.outcome.word().replace('-', " ");
    let color = if receipt.verdict.outcome == VerdictOutcome::Clean {
        GOOD
    } else {
        BAD
    };
    if style.plan {
        let migrate = receipt
            .homes
            .iter()
            .filter(|row| !row.done && row.outcome.word() == "migrated")
            .count();
        let restart = receipt
            .runtimes
            .iter()
            .filter(|row| row.outcome == RuntimeOutcome::Unaccounted && row.action.is_some())
            .count();
        return format!(
            "plan: {migrate} of {} homes to migrate, {restart} of {} runtimes to restart\n",
            receipt.homes.len(),
            receipt.runtimes.len()
        );
    }
    format!(
        "{}: homes {}; runtimes {}; receipt {}\n",
        paint(style, color, &word),
        count("homes."),
        count("runtimes."),
        receipt.run_id
    )
}
