//! The drains and restarts of a run as bars over one axis of time. Each bar is a picture for the eye; the
//! same numbers stand beside it as text.

use std::fmt::Write as _;

use super::super::{Receipt, RuntimeRow};
use super::{badge, esc, runtime_name, runtime_tone};

/// One restart, in milliseconds from the begin of the axis.
struct Bar<'a> {
    row: &'a RuntimeRow,
    begin: i64,
    drained: i64,
    up: Option<i64>,
    settle: i64,
    end: i64,
}

/// The timeline; `None` where nothing was restarted.
pub(super) fn render(receipt: &Receipt) -> Option<String> {
    let mut bars: Vec<Bar<'_>> = receipt.runtimes.iter().filter_map(bar).collect();
    bars.sort_by_key(|bar| bar.begin);
    let first = bars.first()?.begin;
    let last = bars.iter().map(|bar| bar.end).max()?;
    let whole = (last - first).max(1);
    let mut output = String::from(
        "<p class=\"legend\" aria-hidden=\"true\"><span class=\"seg drain\"></span> finishing its work \
         <span class=\"seg gap\"></span> down <span class=\"seg rise\"></span> coming up \
         <span class=\"seg settle\"></span> watched while constant</p>\n<ol class=\"timeline\">\n",
    );
    for bar in &bars {
        let left = |at: i64| percent(at - first, whole);
        let mut segments = String::new();
        let mut segment = |class: &str, from: i64, to: i64| {
            if to > from {
                let _ = write!(
                    segments,
                    "<span class=\"seg {class}\" style=\"left:{};width:{}\"></span>",
                    left(from),
                    percent(to - from, whole)
                );
            }
        };
        let up = bar.up.unwrap_or(bar.end);
        segment("drain", bar.begin, bar.drained);
        segment("gap", bar.drained, up);
        segment("rise", up, bar.settle.max(up));
        segment("settle", bar.settle.max(up), bar.end);
        let _ = writeln!(
            output,
            "<li><p>{} of {} {}<span class=\"why\">{}</span></p>\n<div class=\"bar\" aria-hidden=\"true\">{segments}</div></li>",
            esc(&runtime_name(bar.row)),
            esc(&bar.row.user),
            badge(runtime_tone(bar.row), bar.row.outcome.word()),
            esc(&sentence(bar, first))
        );
    }
    output.push_str("</ol>\n<p class=\"axis\" aria-hidden=\"true\">");
    for part in 0..=4 {
        let _ = write!(output, "<span>{}</span>", seconds(whole * part / 4));
    }
    output.push_str("</p>\n");
    Some(output)
}

fn bar(row: &RuntimeRow) -> Option<Bar<'_>> {
    let begin = millis(row.began_at.as_deref()?)?;
    let length = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX / 4);
    let end = begin + length(row.waited_ms);
    let drained = (begin + row.drained_ms.map_or(0, length)).min(end);
    // A life that began before is the old one: then nothing came up.
    let up = row
        .after
        .as_ref()
        .and_then(|life| millis(&life.started_at))
        .filter(|up| *up >= begin && *up <= end)
        .map(|up| up.max(drained));
    let settle = (end - length(row.settled_ms)).clamp(drained, end);
    Some(Bar {
        row,
        begin,
        drained,
        up,
        settle,
        end,
    })
}

/// What the bar shows, as text.
fn sentence(bar: &Bar<'_>, first: i64) -> String {
    let mut text = format!("at {}", seconds(bar.begin - first));
    if bar.row.drained_ms.is_some() {
        let _ = write!(
            text,
            ", finished its work in {}",
            seconds(bar.drained - bar.begin)
        );
    }
    match bar.up {
        Some(up) => {
            let _ = write!(
                text,
                ", down for {}, up after {}, watched for {}",
                seconds(up - bar.drained),
                seconds(up - bar.begin),
                seconds(bar.end - bar.settle.max(up))
            );
        }
        None => {
            let _ = write!(
                text,
                ", nothing new was up after {}",
                seconds(bar.end - bar.begin)
            );
        }
    }
    text
}

/// How long it was between two times of a receipt.
pub(super) fn between(begin: &str, end: &str) -> String {
    match (millis(begin), millis(end)) {
        (Some(begin), Some(end)) => seconds(end - begin),
        _ => String::new(),
    }
}

fn millis(time: &str) -> Option<i64> {
    time.parse::<jiff::Timestamp>()
        .ok()
        .map(jiff::Timestamp::as_millisecond)
}

fn percent(part: i64, whole: i64) -> String {
    // In hundredths of a percent: a page needs no finer lines, and has no floating point to round.
    let hundredths = part.saturating_mul(10_000) / whole;
    format!("{}.{:02}%", hundredths / 100, hundredths % 100)
}

fn seconds(millis: i64) -> String {
    let millis = millis.max(0);
    match millis {
        0..10_000 => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
        10_000..120_000 => format!("{} s", millis / 1000),
        _ => format!("{} min {} s", millis / 60_000, millis % 60_000 / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_short() {
        assert_eq!(seconds(1_440), "1.4 s");
        assert_eq!(seconds(61_000), "61 s");
        assert_eq!(seconds(125_000), "2 min 5 s");
        assert_eq!(percent(1, 3), "33.33%");
    }
}
