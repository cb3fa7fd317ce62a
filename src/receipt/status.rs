//! The fleet as a person reads it: who runs what, for whom. A table a user and install, one line a
//! home and runtime, whatever is odd below its line, and a sum last.
//!
//! Pure: a receipt that was only planned goes in. Where a width is given no line is longer: what does
//! not fit beside goes below, and a word that does not fit on a line goes on in the next. Without one,
//! as in a pipe, each runtime is one line. Nothing depends on colour.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::{HomeRow, InstallRow, Receipt, RuntimeRow};
use crate::plan::decide::RuntimeOutcome;
use crate::screen::visible;

/// How it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// Whether colours may be used.
    pub color: bool,
    /// Columns of the terminal; `None` where there is none.
    pub width: Option<usize>,
}

const BAD: anstyle::Style = anstyle::AnsiColor::Red.on_default().bold();
const OLD: anstyle::Style = anstyle::AnsiColor::Yellow.on_default();
const DIM: anstyle::Style = anstyle::Style::new().dimmed();

/// The headings of the columns; those from [`BESIDE`] on go below their line where it is too long.
const HEADINGS: [&str; 8] = [
    "PROFILE",
    "VERSION",
    "RUNTIME",
    "PID",
    "AGE",
    "STALE",
    "SUPERVISOR",
    "UNIT",
];

/// How many columns always stand beside each other.
const BESIDE: usize = 6;

/// The widest that one of them is made; a longer word moves its own line alone.
const WIDEST: usize = 24;

/// Room before a line of a table, and before what stands below one.
const INDENT: usize = 4;

/// Room between two columns.
const GAP: usize = 2;

/// What stands where there is nothing.
const NOTHING: &str = "-";

/// A user's homes and runtimes of one install.
#[derive(Debug, Default)]
struct Group<'a> {
    user: &'a str,
    install: Option<&'a InstallRow>,
    lines: Vec<Line>,
}

/// One home with one runtime, a home without one, or a runtime without a home.
#[derive(Debug)]
struct Line {
    cells: [String; HEADINGS.len()],
    /// Whether something about it is not as it should be.
    odd: bool,
    stale: bool,
    below: Vec<String>,
}

/// The whole fleet as text.
#[must_use]
pub fn render(receipt: &Receipt, view: View) -> String {
    let groups = groups(receipt);
    let mut page = Page {
        text: String::new(),
        view,
    };
    let widths = widths(&groups);
    let full = INDENT + widths.iter().sum::<usize>() + GAP * (HEADINGS.len() - 1);
    let columns = match view.width {
        Some(width) if full > width => BESIDE,
        _ => HEADINGS.len(),
    };
    let mut last = None;
    for ((uid, _), group) in &groups {
        if last != Some(uid) {
            page.line(0, &format!("{} (uid {uid})", visible(group.user)), None);
            last = Some(uid);
        }
        page.line(2, &described(group.install), Some(DIM));
        let headings = HEADINGS.map(str::to_owned);
        page.row(" ", &headings[..columns], &widths, Some(DIM));
        for line in &group.lines {
            let style = if line.odd {
                Some(BAD)
            } else {
                line.stale.then_some(OLD)
            };
            let mark = if line.odd { "!" } else { " " };
            page.row(mark, &line.cells[..columns], &widths, style);
            let beside: Vec<&str> = line.cells[columns..]
                .iter()
                .map(String::as_str)
                .filter(|cell| *cell != NOTHING)
                .collect();
            if !beside.is_empty() {
                page.line(INDENT + 2, &beside.join(" "), None);
            }
            for below in &line.below {
                page.line(INDENT + 2, below, Some(DIM));
            }
        }
    }
    for row in &receipt.collectors {
        if row.outcome == "unverified" {
            let text = format!("! {} unverified: {}", row.name, row.reason);
            page.line(0, &visible(&text), Some(BAD));
        }
    }
    for note in &receipt.notes {
        page.line(2, &visible(&format!("note: {note}")), None);
    }
    page.line(0, &sum(receipt), None);
    page.text
}

fn described(install: Option<&InstallRow>) -> String {
    let Some(install) = install else {
        return String::from("no install is known");
    };
    let version = install.version.as_deref().unwrap_or("of unknown release");
    let expects = install.config_version.map_or_else(
        || String::from("expects no known version"),
        |version| format!("expects {version}"),
    );
    let path = install.path.to_string_lossy();
    visible(&format!("{path}  {} {version}, {expects}", install.kind)).into_owned()
}

/// By the user's id and the install's path, as the rows of a receipt are sorted.
fn groups(receipt: &Receipt) -> BTreeMap<(u32, Option<&std::path::Path>), Group<'_>> {
    let installs: BTreeMap<&str, &InstallRow> = receipt
        .installs
        .iter()
        .map(|install| (install.id.as_str(), install))
        .collect();
    let mut serving: BTreeMap<&str, Vec<&RuntimeRow>> = BTreeMap::new();
    for runtime in &receipt.runtimes {
        for home in &runtime.homes {
            serving.entry(home).or_default().push(runtime);
        }
    }
    let mut groups: BTreeMap<_, Group<'_>> = BTreeMap::new();
    let mut add = |uid: u32, user, install: Option<&String>, line| {
        let install = install.and_then(|id| installs.get(id.as_str()).copied());
        let group = groups
            .entry((uid, install.map(|install| install.path.as_path())))
            .or_insert_with(|| Group {
                user,
                install,
                lines: Vec::new(),
            });
        group.lines.push(line);
    };
    for home in &receipt.homes {
        let runtimes = serving.remove(home.id.as_str()).unwrap_or_default();
        if runtimes.is_empty() {
            let line = line(Some(home), None, home.uid, receipt);
            add(home.uid, &home.user, home.install.as_ref(), line);
        }
        for runtime in runtimes {
            let install = runtime.install.as_ref().or(home.install.as_ref());
            let line = line(Some(home), Some(runtime), home.uid, receipt);
            add(home.uid, &home.user, install, line);
        }
    }
    // What serves a home that is no row serves none that is known here.
    let known: BTreeSet<&str> = receipt.homes.iter().map(|home| home.id.as_str()).collect();
    let homeless = |runtime: &&RuntimeRow| {
        !runtime
            .homes
            .iter()
            .any(|home| known.contains(home.as_str()))
    };
    for runtime in receipt.runtimes.iter().filter(homeless) {
        let line = line(None, Some(runtime), runtime.uid, receipt);
        add(runtime.uid, &runtime.user, runtime.install.as_ref(), line);
    }
    groups
}

fn line(home: Option<&HomeRow>, runtime: Option<&RuntimeRow>, uid: u32, receipt: &Receipt) -> Line {
    let mut below = Vec::new();
    let mut odd = false;
    if let Some(home) = home {
        odd = !home.outcome.is_clean();
        // What a run would migrate is told by the versions, and that all is well by nothing.
        if odd || home.outcome.word() == "skipped" {
            below.push(told("home", home.outcome.word(), &home.reason));
            below.extend(home.failures.iter().map(|text| visible(text).into_owned()));
        }
    }
    let life = runtime.and_then(|runtime| runtime.before.as_ref());
    let text = |text: Option<&str>| text.map_or(NOTHING.into(), |text| visible(text).into_owned());
    let mut stale = NOTHING;
    if let Some(runtime) = runtime {
        stale = match (runtime.stale, life) {
            (Some(true), _) => "yes",
            (Some(false), _) => "no",
            (None, Some(_)) => "?",
            (None, None) => NOTHING,
        };
        odd |= !fine(runtime);
        below.extend(why(runtime));
    }
    let supervisor = runtime.map(|runtime| {
        let own = format!("systemd (user {uid})");
        runtime.supervisor.replace(&own, "systemd (user)")
    });
    Line {
        cells: [
            text(home.map(|home| home.profile.as_str())),
            home.map_or(NOTHING.into(), versions),
            text(runtime.map(|runtime| runtime.kind.as_str())),
            life.map_or(NOTHING.into(), |life| life.incarnation.pid.to_string()),
            life.and_then(|life| age(&life.started_at, &receipt.started_at))
                .unwrap_or_else(|| NOTHING.into()),
            stale.into(),
            text(supervisor.as_deref()),
            text(runtime.and_then(|runtime| runtime.unit.as_deref())),
        ],
        odd,
        stale: stale == "yes",
        below,
    }
}

/// Whether a runtime is as it should be, staleness aside: that a restart mends.
fn fine(runtime: &RuntimeRow) -> bool {
    let is_restarted_by_a_run =
        runtime.outcome == RuntimeOutcome::Unaccounted && runtime.action.is_some();
    is_restarted_by_a_run || runtime.outcome.is_clean()
}

/// Why it is stale, and what else is to be said of it.
fn why(runtime: &RuntimeRow) -> Vec<String> {
    let mut lines = Vec::new();
    let says_why = runtime.reason.contains(&runtime.stale_reason);
    if !says_why || (runtime.stale == Some(true) && fine(runtime)) {
        lines.push(visible(&runtime.stale_reason).into_owned());
    }
    let is_plain = fine(runtime) && (runtime.action.is_some() || runtime.reason.is_empty());
    if !is_plain {
        lines.push(told("it is", runtime.outcome.word(), &runtime.reason));
    }
    lines
}

fn told(what: &str, outcome: &str, reason: &str) -> String {
    let text = match reason {
        "" => format!("{what} {outcome}"),
        reason => format!("{what} {outcome}: {reason}"),
    };
    visible(&text).into_owned()
}

fn versions(home: &HomeRow) -> String {
    let from = home.from.as_deref();
    let text = match (from, home.to) {
        (Some(from), Some(to)) if from == to.to_string() => from.to_owned(),
        (from, Some(to)) => format!("{} → {to}", from.unwrap_or(NOTHING)),
        (from, None) => from.unwrap_or(NOTHING).to_owned(),
    };
    visible(&text).into_owned()
}

/// How long a life has lasted, in its largest unit; one that the clock puts into the future has just
/// begun.
fn age(started: &str, now: &str) -> Option<String> {
    let time = |text: &str| text.parse::<jiff::Timestamp>().ok();
    let seconds = time(now)?
        .as_second()
        .saturating_sub(time(started)?.as_second())
        .max(0);
    Some(match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    })
}

fn widths(
    groups: &BTreeMap<(u32, Option<&std::path::Path>), Group<'_>>,
) -> [usize; HEADINGS.len()] {
    let mut widths = HEADINGS.map(str::len);
    for line in groups.values().flat_map(|group| &group.lines) {
        for (index, cell) in line.cells.iter().enumerate() {
            let most = if index < BESIDE { WIDEST } else { usize::MAX };
            widths[index] = widths[index].max(cell.chars().count().min(most));
        }
    }
    widths
}

/// One line that says it all.
fn sum(receipt: &Receipt) -> String {
    let count = |keep: &dyn Fn(&&RuntimeRow) -> bool| receipt.runtimes.iter().filter(keep).count();
    let runs = |row: &&RuntimeRow| row.before.is_some();
    let stale = count(&|row| row.stale == Some(true));
    let unknown = count(&|row| runs(row) && row.stale.is_none());
    let odd = count(&|row| !fine(row))
        + receipt
            .homes
            .iter()
            .filter(|home| !home.outcome.is_clean())
            .count();
    let homes = receipt.homes.len();
    let mut text = format!(
        "{homes} {}, {} running: {stale} stale, {unknown} unknown",
        if homes == 1 { "home" } else { "homes" },
        match count(&|row| runs(row)) {
            1 => String::from("1 runtime"),
            count => format!("{count} runtimes"),
        }
    );
    if odd > 0 {
        let _ = write!(text, "; {odd} marked ! (update plan says what to do)");
    }
    text
}

/// Text that grows line by line, none longer than the view is wide.
struct Page {
    text: String,
    view: View,
}

impl Page {
    fn row(
        &mut self,
        mark: &str,
        cells: &[String],
        widths: &[usize],
        style: Option<anstyle::Style>,
    ) {
        let mut line = String::new();
        for (index, cell) in cells.iter().enumerate() {
            if index > 0 {
                line.push_str(&" ".repeat(GAP));
            }
            line.push_str(cell);
            if index + 1 < cells.len() {
                let room = widths[index].saturating_sub(cell.chars().count());
                line.push_str(&" ".repeat(room));
            }
        }
        let line = format!("{mark:<INDENT$}{}", line.trim_end());
        let fits = |width| line.chars().count() <= width;
        match cells.split_first() {
            // A name that pushes the rest out of sight has a line of its own.
            Some((name, rest)) if name != NOTHING && !self.view.width.is_none_or(fits) => {
                self.line(INDENT, name, style);
                let mut cells = vec![NOTHING.to_owned()];
                cells.extend_from_slice(rest);
                self.row(mark, &cells, widths, style);
            }
            _ => self.line(0, &line, style),
        }
    }

    /// A text that may take several lines, all with the same room before them.
    fn line(&mut self, indent: usize, text: &str, style: Option<anstyle::Style>) {
        let room = self
            .view
            .width
            .map_or(usize::MAX, |width| width.saturating_sub(indent).max(1));
        let mut line = String::new();
        let mut lines = Vec::new();
        // Spaces are kept: what fits on one line stays as it is.
        for word in text.split_inclusive(' ') {
            let length = line.chars().count() + word.trim_end().chars().count();
            if length > room && !line.trim_end().is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            line.push_str(word);
            while line.trim_end().chars().count() > room {
                let at = line
                    .char_indices()
                    .nth(room)
                    .map_or(line.len(), |(at, _)| at);
                let rest = line.split_off(at);
                lines.push(std::mem::replace(&mut line, rest));
            }
        }
        lines.push(line);
        for line in lines {
            self.put(&format!("{:indent$}{}", "", line.trim_end()), style);
        }
    }

    fn put(&mut self, line: &str, style: Option<anstyle::Style>) {
        let _ = match style.filter(|_| self.view.color) {
            Some(style) => writeln!(self.text, "{style}{line}{style:#}"),
            None => writeln!(self.text, "{line}"),
        };
    }
}

#[cfg(test)]
mod tests;
