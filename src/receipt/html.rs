//! A receipt as one web page that needs nothing else: no network, no script, no font.
//!
//! It reads on a phone and on paper, without colour (every state is a word and a sign), and aloud
//! (landmarks, headings in order, tables with scoped headers, text for every bar of the timeline).
//! Whatever stands in a receipt was written by others: all of it is escaped, made visible and masked
//! again, and the page forbids a browser to load or run anything.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use super::{HomeRow, Receipt, RuntimeRow, VerdictOutcome};
use crate::screen;

mod changes;
mod evidence;
mod fleet;
mod timeline;

use changes::changes;
use evidence::evidence;
pub use fleet::fleet;

/// The look; in the page, so that it is one file.
const STYLE: &str = include_str!("html/style.css");

/// Text of others as text of a page.
pub(super) fn esc(text: &str) -> String {
    let mut output = String::with_capacity(text.len() + 8);
    for letter in screen::visible(text).chars() {
        match letter {
            '&' => output.push_str("&amp;"),
            '<' => output.push_str("&lt;"),
            '>' => output.push_str("&gt;"),
            '"' => output.push_str("&quot;"),
            '\'' => output.push_str("&#39;"),
            letter => output.push(letter),
        }
    }
    output
}

/// The same for text that may hold a secret.
fn masked(text: &str) -> String {
    esc(&screen::text(text))
}

/// How a state looks: a sign beside its word, so that colour is never all there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// Fine.
    Good,
    /// Fine, and something was done.
    Done,
    /// Known and accepted, or somebody else's.
    Quiet,
    /// Not fine.
    Bad,
}

impl Tone {
    const fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Done => "done",
            Self::Quiet => "quiet",
            Self::Bad => "bad",
        }
    }

    const fn sign(self) -> &'static str {
        match self {
            Self::Good => "✓",
            Self::Done => "↻",
            Self::Quiet => "–",
            Self::Bad => "✗",
        }
    }
}

/// A word with its sign; a reader hears the word alone.
pub(super) fn badge(tone: Tone, word: &str) -> String {
    format!(
        "<span class=\"badge {}\"><span aria-hidden=\"true\">{}</span> {}</span>",
        tone.class(),
        tone.sign(),
        esc(word)
    )
}

fn home_tone(row: &HomeRow) -> Tone {
    match row.outcome.word() {
        _ if row.accepted.is_some() => Tone::Quiet,
        _ if !row.outcome.is_clean() => Tone::Bad,
        "migrated" => Tone::Done,
        "skipped" | "unconfigured" => Tone::Quiet,
        _ => Tone::Good,
    }
}

fn runtime_tone(row: &RuntimeRow) -> Tone {
    match row.outcome.word() {
        _ if row.accepted.is_some() => Tone::Quiet,
        _ if !row.outcome.is_clean() => Tone::Bad,
        "restarted" => Tone::Done,
        "current" => Tone::Good,
        _ => Tone::Quiet,
    }
}

/// What a verdict is called, and its tone.
pub(super) const fn verdict(outcome: VerdictOutcome) -> (&'static str, Tone) {
    match outcome {
        VerdictOutcome::Clean => ("Clean", Tone::Good),
        VerdictOutcome::NotClean => ("Not clean", Tone::Bad),
        VerdictOutcome::Refused => ("Refused", Tone::Bad),
        VerdictOutcome::Interrupted => ("Interrupted", Tone::Bad),
    }
}

/// A page: its head, a header with the verdict, the sections, a footer.
pub(super) fn shell(title: &str, header: &str, main: &str, footer: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#main\">Skip to the result</a>\n{header}<main id=\"main\">\n{main}</main>\n{footer}</body>\n</html>\n",
        esc(title)
    )
}

/// A section with its heading.
pub(super) fn section(id: &str, heading: &str, body: &str) -> String {
    format!(
        "<section aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{}</h2>\n{body}</section>\n",
        esc(heading)
    )
}

/// A list of facts; the values are markup already.
pub(super) fn facts(rows: &[(&str, String)]) -> String {
    let mut output = String::from("<dl class=\"facts\">\n");
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = writeln!(output, "<div><dt>{}</dt><dd>{value}</dd></div>", esc(name));
    }
    output.push_str("</dl>\n");
    output
}

/// A table whose roles are spelled out: a browser forgets them where a phone shows cells as blocks.
pub(super) struct Grid {
    head: Vec<String>,
    text: String,
}

impl Grid {
    pub(super) fn new(class: &str, caption: &str, head: &[&str]) -> Self {
        let mut text = format!(
            "<table role=\"table\" class=\"{class}\">\n<caption>{}</caption>\n<thead role=\"rowgroup\"><tr role=\"row\">",
            esc(caption)
        );
        for name in head {
            let _ = write!(
                text,
                "<th role=\"columnheader\" scope=\"col\">{}</th>",
                esc(name)
            );
        }
        text.push_str("</tr></thead>\n<tbody role=\"rowgroup\">\n");
        Self {
            head: head.iter().map(|name| esc(name)).collect(),
            text,
        }
    }

    /// A line over the rows that follow.
    pub(super) fn group(&mut self, name: &str) {
        let _ = writeln!(
            self.text,
            "</tbody>\n<tbody role=\"rowgroup\"><tr role=\"row\" class=\"group\"><th role=\"rowheader\" scope=\"rowgroup\" colspan=\"{}\">{}</th></tr>",
            self.head.len(),
            esc(name)
        );
    }

    /// A row; its cells are markup already, the first is its header.
    pub(super) fn row(&mut self, class: &str, cells: &[String]) {
        let _ = write!(self.text, "<tr role=\"row\" class=\"{class}\">");
        for (index, cell) in cells.iter().enumerate() {
            let name = self.head.get(index).map_or("", String::as_str);
            let _ = if index == 0 {
                write!(
                    self.text,
                    "<th role=\"rowheader\" scope=\"row\">{cell}</th>"
                )
            } else {
                write!(
                    self.text,
                    "<td role=\"cell\" data-name=\"{name}\">{cell}</td>"
                )
            };
        }
        self.text.push_str("</tr>\n");
    }

    pub(super) fn close(self) -> String {
        // A region that scrolls must be reachable by the keyboard.
        format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"table\">\n{}</tbody>\n</table>\n</div>\n",
            self.text
        )
    }
}

/// The whole page of one receipt.
#[must_use]
pub fn page(receipt: &Receipt) -> String {
    let (word, _) = verdict(receipt.verdict.outcome);
    let title = format!(
        "{word}: {} on {}",
        receipt.application, receipt.host.hostname
    );
    let mut main = todo(receipt, "todo");
    main.push_str(&section("fleet", "The fleet", &matrix(receipt)));
    if let Some(bars) = timeline::render(receipt) {
        main.push_str(&section("timeline", "Drains and restarts", &bars));
    }
    main.push_str(&section(
        "changes",
        "What changed in the homes",
        &changes(receipt),
    ));
    main.push_str(&section("evidence", "Evidence", &evidence(receipt)));
    shell(&title, &header(receipt), &main, &footer(receipt))
}

fn header(receipt: &Receipt) -> String {
    let (word, tone) = verdict(receipt.verdict.outcome);
    let sentence = match receipt.verdict.outcome {
        VerdictOutcome::Clean => "Every home and every runtime is accounted for and fine.",
        VerdictOutcome::NotClean => "Not every home and runtime is accounted for and fine.",
        VerdictOutcome::Refused => "Nothing was changed, on purpose.",
        VerdictOutcome::Interrupted => "The run did not come to its end.",
    };
    format!(
        "<header class=\"{}\">\n<p class=\"kicker\">Receipt of a run on <b>{}</b></p>\n\
         <h1><span class=\"sign\" aria-hidden=\"true\">{}</span> {word}</h1>\n<p class=\"lead\">{sentence}</p>\n{}{}</header>\n",
        tone.class(),
        esc(&receipt.host.hostname),
        tone.sign(),
        tallies(receipt),
        facts(&[
            ("Application", esc(&receipt.application)),
            ("Started", time(&receipt.started_at)),
            (
                "Took",
                receipt.finished_at.as_deref().map_or_else(
                    || "it has no end".into(),
                    |end| timeline::between(&receipt.started_at, end),
                ),
            ),
            (
                "By",
                esc(&format!(
                    "{} ({}, {})",
                    receipt.invoker.user, receipt.invoker.scope, receipt.trigger
                ))
            ),
            (
                "Exit status",
                receipt
                    .verdict
                    .exit_status
                    .map_or_else(String::new, |status| status.to_string()),
            ),
            ("Run", format!("<code>{}</code>", esc(&receipt.run_id))),
        ])
    )
}

fn time(text: &str) -> String {
    // Seconds are enough for a person; the machine's attribute keeps the whole.
    let short = text.get(..19).unwrap_or(text).replace('T', " ");
    format!(
        "<time datetime=\"{}\">{} UTC</time>",
        esc(text),
        esc(&short)
    )
}

/// How many there are of each outcome.
fn tallies(receipt: &Receipt) -> String {
    let mut homes: BTreeMap<&str, (usize, Tone)> = BTreeMap::new();
    for row in &receipt.homes {
        homes
            .entry(row.outcome.word())
            .or_insert((0, home_tone(row)))
            .0 += 1;
    }
    let mut runtimes: BTreeMap<&str, (usize, Tone)> = BTreeMap::new();
    for row in &receipt.runtimes {
        runtimes
            .entry(row.outcome.word())
            .or_insert((0, runtime_tone(row)))
            .0 += 1;
    }
    let mut output = String::from("<ul class=\"tallies\">\n");
    for (name, all, counts) in [
        ("homes", receipt.homes.len(), homes),
        ("runtimes", receipt.runtimes.len(), runtimes),
    ] {
        let words: Vec<String> = counts
            .iter()
            .map(|(word, (count, tone))| badge(*tone, &format!("{count} {word}")))
            .collect();
        let _ = writeln!(output, "<li><b>{all}</b> {name} {}</li>", words.join(" "));
    }
    output.push_str("</ul>\n");
    output
}

/// What is not fine, why, and what a person can do.
fn todo(receipt: &Receipt, id: &str) -> String {
    let mut items = String::new();
    let mut item =
        |what: String, word: &str, reason: &str, more: &[String], remedy: Option<&str>| {
            let _ = write!(items, "<li><p>{what} {}", badge(Tone::Bad, word));
            let _ = write!(items, " {}</p>", masked(reason));
            for line in more {
                let _ = write!(items, "<p class=\"more\">{}</p>", masked(line));
            }
            if let Some(remedy) = remedy {
                let _ = write!(
                    items,
                    "<p class=\"remedy\"><b>Do:</b> <code>{}</code></p>",
                    masked(remedy)
                );
            }
            items.push_str("</li>\n");
        };
    for row in receipt
        .homes
        .iter()
        .filter(|row| home_tone(row) == Tone::Bad)
    {
        let what = format!(
            "<b>{}</b> of {}: its home",
            esc(&row.profile),
            esc(&row.user)
        );
        item(
            what,
            row.outcome.word(),
            &row.reason,
            &row.failures,
            row.remedy.as_deref(),
        );
    }
    for row in receipt
        .runtimes
        .iter()
        .filter(|row| runtime_tone(row) == Tone::Bad)
    {
        let what = format!("<b>{}</b> of {}", esc(&runtime_name(row)), esc(&row.user));
        item(
            what,
            row.outcome.word(),
            &row.reason,
            &[],
            row.remedy.as_deref(),
        );
    }
    for row in receipt
        .collectors
        .iter()
        .filter(|row| row.outcome == "unverified")
    {
        let what = format!("<b>{}</b> as {}", esc(&row.name), esc(&row.principal));
        item(what, &row.outcome, &row.reason, &[], None);
    }
    if items.is_empty() {
        return String::new();
    }
    section(
        id,
        "What needs a person",
        &format!("<ul class=\"todo\">\n{items}</ul>\n"),
    )
}

fn runtime_name(row: &RuntimeRow) -> String {
    match &row.unit {
        Some(unit) => format!("{} {unit}", row.kind),
        None => match row.before.as_ref().or(row.after.as_ref()) {
            Some(life) => format!("{} (pid {})", row.kind, life.incarnation.pid),
            None => row.kind.clone(),
        },
    }
}

/// Homes by kinds of runtimes.
fn matrix(receipt: &Receipt) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for row in &receipt.runtimes {
        *counts.entry(row.kind.as_str()).or_insert(0) += 1;
    }
    // The kind that there is most of stands first.
    let mut kinds: Vec<&str> = counts.keys().copied().collect();
    kinds.sort_by_key(|kind| std::cmp::Reverse(counts[kind]));
    let mut head = vec!["Profile", "Version", "Home"];
    head.extend(&kinds);
    let mut grid = Grid::new("matrix", "Homes and the runtimes that serve them", &head);
    let mut user = None;
    for home in &receipt.homes {
        if user != Some((home.uid, &home.user)) {
            user = Some((home.uid, &home.user));
            grid.group(&format!("{} (uid {})", home.user, home.uid));
        }
        let mut cells = vec![
            format!(
                "{}<span class=\"place\">{}</span>",
                esc(&home.profile),
                esc(&home.path.to_string_lossy())
            ),
            format!("<span class=\"version\">{}</span>", versions(home)),
            cell(
                home_tone(home),
                home.outcome.word(),
                &home.reason,
                home.accepted.as_deref(),
            ),
        ];
        for kind in &kinds {
            let of_home = receipt
                .runtimes
                .iter()
                .filter(|row| row.kind == *kind && row.homes.contains(&home.id));
            cells.push(runtime_cells(of_home));
        }
        grid.row("", &cells);
    }
    let of_none: Vec<&RuntimeRow> = receipt
        .runtimes
        .iter()
        .filter(|row| {
            !row.homes
                .iter()
                .any(|id| receipt.homes.iter().any(|home| home.id == *id))
        })
        .collect();
    if !of_none.is_empty() {
        grid.group("Of no home");
        let mut cells = vec!["runtimes".to_owned(), String::new(), String::new()];
        for kind in &kinds {
            cells.push(runtime_cells(
                of_none.iter().copied().filter(|row| row.kind == *kind),
            ));
        }
        grid.row("", &cells);
    }
    grid.close()
}

fn versions(home: &HomeRow) -> String {
    match (&home.from, home.to) {
        (Some(from), Some(to)) if *from == to.to_string() => esc(from),
        (Some(from), Some(to)) => format!(
            "{} <span aria-hidden=\"true\">→</span><span class=\"aloud\">to</span> {to}",
            esc(from)
        ),
        (Some(from), None) => esc(from),
        (None, Some(to)) => to.to_string(),
        (None, None) => String::new(),
    }
}

fn cell(tone: Tone, word: &str, reason: &str, accepted: Option<&str>) -> String {
    let mut output = badge(tone, word);
    if !reason.is_empty() {
        let _ = write!(output, "<span class=\"why\">{}</span>", masked(reason));
    }
    if let Some(accepted) = accepted {
        let _ = write!(
            output,
            "<span class=\"why\">accepted: {}</span>",
            masked(accepted)
        );
    }
    output
}

fn runtime_cells<'a>(rows: impl Iterator<Item = &'a RuntimeRow>) -> String {
    let mut output = String::new();
    for row in rows {
        let mut inner = cell(
            runtime_tone(row),
            row.outcome.word(),
            &row.reason,
            row.accepted.as_deref(),
        );
        let place = row.unit.as_deref().unwrap_or(&row.supervisor);
        let _ = write!(inner, "<span class=\"place\">{}</span>", esc(place));
        if row.homes.len() > 1 {
            let _ = write!(
                inner,
                "<span class=\"why\">serves {} homes</span>",
                row.homes.len()
            );
        }
        let _ = write!(output, "<div class=\"one\">{inner}</div>");
    }
    if output.is_empty() {
        output.push_str("<span class=\"none\"><span aria-hidden=\"true\">·</span><span class=\"aloud\">none</span></span>");
    }
    output
}

fn footer(receipt: &Receipt) -> String {
    let digest = |value: &Option<String>| {
        value
            .as_deref()
            .map_or_else(String::new, |value| format!("<code>{}</code>", esc(value)))
    };
    format!(
        "<footer>\n{}</footer>\n",
        facts(&[
            ("Made by", esc(&format!("update {}", receipt.tool.version))),
            ("Program, SHA-256", digest(&receipt.tool.sha256)),
            ("Receipt before this one, SHA-256", digest(&receipt.parent)),
            ("Format", count(receipt.schema)),
        ])
    )
}

fn count(number: impl Display) -> String {
    number.to_string()
}
