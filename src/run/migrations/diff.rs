//! `update migrations diff`: what a run would change in each home, as a diff that patch(1) reads.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::time::Duration;

use anstyle::{AnsiColor, Style};

use crate::error::Result;
use crate::helper;
use crate::migrate::home::{Preview, Previewed};
use crate::plan::PlannedHome;
use crate::run::Session;
use crate::run::look::{Look, home_target, look, owner};
use crate::screen::{self, visible};

/// Showing all homes of one owner takes no longer than this, and none takes so long by far.
const OWNER_LIMIT: Duration = Duration::from_secs(120);

/// The diff of each home by its identifier, or why there is none.
type Told = BTreeMap<String, std::result::Result<String, String>>;

/// Shows what would change in each home; with 1 if that could not be told of one.
pub(super) fn run(session: &Session) -> Result<u8> {
    let look = look(session, &[], false)?;
    let previews = previews(session, &look);
    let mut values = Vec::new();
    let mut text = String::new();
    let mut is_whole = true;
    for home in look.plan.pending() {
        let path = home.home.path.display().to_string();
        let silent = Err("its owner's helper said nothing of it".to_owned());
        let preview = previews.get(&home.home.id).unwrap_or(&silent);
        let mut value = serde_json::json!({"home": path, "changes": changes(home)});
        match preview {
            Ok(diff) => {
                for dir in &home.evaluation.dirs {
                    let dir = home.home.path.join(dir).display().to_string();
                    let _ = writeln!(text, "new folder {}", visible(&dir));
                }
                let lines = diff.split_inclusive('\n');
                text.extend(lines.map(|line| painted(line, session.ui.color)));
                value["diff"] = diff.as_str().into();
            }
            Err(reason) => {
                is_whole = false;
                let reason = screen::text(reason);
                session.ui.warn(&format!("{path}: {reason}"));
                value["error"] = reason.into();
            }
        }
        values.push(value);
    }
    session.ui.report(&values, || text);
    Ok(u8::from(!is_whole))
}

/// The values that change in a home, secrets masked.
fn changes(home: &PlannedHome) -> Vec<serde_json::Value> {
    let changes = home.evaluation.changes.iter().map(|change| {
        let masked = |value: &Option<serde_json::Value>| {
            let value = value.as_ref();
            value.map(|value| screen::json(&change.path, value))
        };
        serde_json::json!({
            "step": change.step,
            "path": screen::text(&change.path),
            "before": masked(&change.before),
            "after": masked(&change.after),
        })
    });
    changes.collect()
}

/// Lets each owner show its homes that would change, side by side.
fn previews(session: &Session, look: &Look) -> Told {
    let mut by_owner: BTreeMap<u32, Vec<&PlannedHome>> = BTreeMap::new();
    for home in look.plan.pending() {
        by_owner.entry(home.home.uid).or_default().push(home);
    }
    let told = Mutex::new(Told::new());
    std::thread::scope(|scope| {
        for (uid, homes) in &by_owner {
            let told = &told;
            scope.spawn(move || of_owner(session, *uid, homes, told));
        }
    });
    told.into_inner().unwrap_or_default()
}

fn of_owner(session: &Session, uid: u32, homes: &[&PlannedHome], told: &Mutex<Told>) {
    let task = Preview {
        app: session.app.clone(),
        site_steps: session.site_steps.clone(),
        homes: homes
            .iter()
            .map(|home| {
                let target = home_target(session, &home.home, &home.target);
                (target, home.evaluation.files.clone())
            })
            .collect(),
    };
    let mut add = |previewed: Previewed| {
        // What a helper answers is hostile: only what was asked for, once, counts.
        if homes.iter().any(|home| home.home.id == previewed.id)
            && let Ok(mut told) = told.lock()
        {
            told.entry(previewed.id)
                .or_insert(previewed.error.map_or(Ok(previewed.diff), Err));
        }
        Ok(())
    };
    let limit = session.left().min(OWNER_LIMIT);
    let answer = helper::perform(&session.world, &owner(session, uid), task, limit, &mut add);
    if let (Err(error), Ok(mut told)) = (answer, told.lock()) {
        for home in homes {
            told.entry(home.home.id.clone())
                .or_insert_with(|| Err(error.to_string()));
        }
    }
}

/// A line of a diff, with what could draw on a terminal escaped: all but its tabs and its line end.
fn painted(line: &str, color: bool) -> String {
    let body = line.strip_suffix('\n').unwrap_or(line);
    let (body, end) = match body.strip_suffix('\r') {
        Some(body) => (body, "\r\n"),
        None => (body, "\n"),
    };
    let parts: Vec<_> = body.split('\t').map(visible).collect();
    let shown = parts.join("\t");
    let style = match body.as_bytes().first() {
        _ if body.starts_with("--- ") || body.starts_with("+++ ") => Style::new().bold(),
        Some(b'@') => AnsiColor::Cyan.on_default(),
        Some(b'-') => AnsiColor::Red.on_default(),
        Some(b'+') => AnsiColor::Green.on_default(),
        _ => return shown + end,
    };
    if color {
        format!("{style}{shown}{style:#}{end}")
    } else {
        shown + end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_cannot_draw_and_keeps_its_tabs_and_its_end() {
        assert_eq!(
            painted(" a\tb\u{1b}[31m\rc\r\n", false),
            " a\tb\\u{1b}[31m\\rc\r\n"
        );
        assert_eq!(
            painted("+x\u{202e}\n", true),
            "\u{1b}[32m+x\\u{202e}\u{1b}[0m\n"
        );
        assert_eq!(
            painted("@@ -1 +1 @@\n", true),
            "\u{1b}[36m@@ -1 +1 @@\u{1b}[0m\n"
        );
    }
}
