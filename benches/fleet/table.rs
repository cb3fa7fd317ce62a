//! The table: one line a case and size.

use std::fmt::Write as _;
use std::time::Duration;

use crate::contest::{Goal, Row, median};

/// All rows as one table in Markdown, and what was wrong below it.
pub fn render(rows: &[Row]) -> String {
    let mut text = String::from(
        "| case | size | update | limit | × | peer | × | memory | goals |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let _ = writeln!(text, "{}", line(row));
    }
    for row in rows {
        for wrong in &row.wrong {
            let _ = writeln!(text, "WRONG {} {}: {wrong}", row.case, row.size);
        }
    }
    text
}

/// One row.
pub fn line(row: &Row) -> String {
    let times = |ratio: Option<f64>| ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"));
    let goals: Vec<String> = row.goals.iter().map(|goal| judged(row, *goal)).collect();
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
        row.case,
        row.size,
        span(&row.ours),
        span(&row.limit),
        times(row.of_limit()),
        span(&row.peer),
        times(row.of_peer()),
        row.memory
            .map_or(String::new(), |mib| format!("{mib:.0} MiB")),
        goals.join(", "),
    )
}

fn judged(row: &Row, goal: Goal) -> String {
    let words = match goal {
        Goal::Peer(times) => format!("peer ≥ {times}×"),
        Goal::Limit(times) => format!("≤ {times}× limit"),
        Goal::Time(limit) => format!("≤ {}", short(limit)),
        Goal::Memory(mib) => format!("≤ {mib} MiB"),
    };
    match row.meets(goal) {
        Some(true) => format!("{words}: met"),
        Some(false) => format!("{words}: **missed**"),
        None => format!("{words}: not measured"),
    }
}

/// Median, fastest and slowest.
fn span(times: &[Duration]) -> String {
    let (Some(middle), Some(least), Some(most)) =
        (median(times), times.iter().min(), times.iter().max())
    else {
        return String::new();
    };
    match times.len() {
        1 => short(middle),
        _ => format!("{} ({}–{})", short(middle), short(*least), short(*most)),
    }
}

fn short(time: Duration) -> String {
    let millis = time.as_secs_f64() * 1000.0;
    match millis {
        ..10.0 => format!("{millis:.2} ms"),
        ..1000.0 => format!("{millis:.0} ms"),
        _ => format!("{:.2} s", millis / 1000.0),
    }
}
