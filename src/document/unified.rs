//! Two texts as a unified diff, as `diff -u` and git write it and patch(1) reads it.
//!
//! The lines are compared as they are, and shown as somebody else wants them shown ([`super::shown`]): a
//! line of which both sides were masked still counts as changed. Nothing here knows what a secret is.

use std::fmt::Write as _;
use std::time::Duration;

use similar::udiff::UnifiedHunkHeader;
use similar::{ChangeTag, TextDiff};

use crate::screen::MASK;

/// Unchanged lines around a change.
const CONTEXT: usize = 3;

/// Two long texts that have little in common are compared no longer; the diff is then right, but not short.
const LIMIT: Duration = Duration::from_secs(2);

/// A text, and how its lines may be shown.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// The text.
    pub text: &'a str,
    /// A line by its number, from 0, with its line end.
    pub shown: &'a dyn Fn(usize) -> String,
}

impl std::fmt::Debug for Side<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Side").finish_non_exhaustive()
    }
}

/// How `before` becomes `after`; empty if they are the same. `name` stands in the head, as it is to be shown.
#[must_use]
pub fn unified(name: &str, before: Side<'_>, after: Side<'_>) -> String {
    let lines = |text| str::split_inclusive(text, '\n').collect::<Vec<_>>();
    let (old, new) = (lines(before.text), lines(after.text));
    let diff = TextDiff::configure().timeout(LIMIT).diff_slices(&old, &new);
    let mut text = String::new();
    for hunk in diff.grouped_ops(CONTEXT) {
        if text.is_empty() {
            // Where a name holds blanks, a tab is its end for patch(1).
            let end = if name.contains(' ') { "\t" } else { "" };
            // Writing into a string cannot fail.
            let _ = writeln!(text, "--- {name}{end}\n+++ {name}{end}");
        }
        let _ = writeln!(text, "{}", UnifiedHunkHeader::new(&hunk));
        for change in hunk.iter().flat_map(|part| diff.iter_changes(part)) {
            let old = change.old_index().map(before.shown);
            let new = change.new_index().map(after.shown);
            let (sign, line) = match change.tag() {
                ChangeTag::Delete => ('-', old),
                ChangeTag::Insert => ('+', new),
                ChangeTag::Equal => (' ', both(change.value(), old, new)),
            };
            let line = line.unwrap_or_else(|| format!("{MASK}\n"));
            text.push(sign);
            text.push_str(&line);
            if !line.ends_with('\n') {
                text.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    text
}

/// A line that stands on both sides: what either of them hides is hidden.
fn both(line: &str, old: Option<String>, new: Option<String>) -> Option<String> {
    if old == new || new.as_deref() == Some(line) {
        old
    } else if old.as_deref() == Some(line) {
        new
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> impl Fn(usize) -> String {
        let lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
        move |index| lines[index].clone()
    }

    fn diff(before: &str, after: &str) -> String {
        let (old, new) = (plain(before), plain(after));
        unified(
            "/h/f",
            Side {
                text: before,
                shown: &old,
            },
            Side {
                text: after,
                shown: &new,
            },
        )
    }

    #[test]
    fn hunks_have_three_lines_of_context_and_stand_apart() {
        let before: String = (1..=20).map(|line| format!("{line}\n")).collect();
        let after = before.replace("\n2\n", "\nzwei\n").replace("\n19\n", "\n");
        assert_eq!(
            diff(&before, &after),
            "--- /h/f\n+++ /h/f\n@@ -1,5 +1,5 @@\n 1\n-2\n+zwei\n 3\n 4\n 5\n\
             @@ -16,5 +16,4 @@\n 16\n 17\n 18\n-19\n 20\n"
        );
        assert_eq!(diff(&before, &before), "");
    }

    #[test]
    fn a_last_line_without_an_end_is_told_and_line_ends_stay() {
        assert_eq!(
            diff("a\r\nb", "a\r\nb\n"),
            "--- /h/f\n+++ /h/f\n@@ -1,2 +1,2 @@\n a\r\n-b\n\\ No newline at end of file\n+b\n"
        );
    }

    #[test]
    fn what_either_side_hides_is_hidden() {
        let text = "a\nb\n";
        let after = "a\nb\nc\n";
        let open = plain(after);
        let (hidden, other) = (plain("[1]\nb\nc\n"), plain("[2]\nB\nc\n"));
        let show = |old: &dyn Fn(usize) -> String, new: &dyn Fn(usize) -> String| {
            let (old, new) = (
                Side { text, shown: old },
                Side {
                    text: after,
                    shown: new,
                },
            );
            unified("/h/a b", old, new)
        };
        let head = "--- /h/a b\t\n+++ /h/a b\t\n@@ -1,2 +1,3 @@\n";
        assert_eq!(show(&open, &hidden), format!("{head} [1]\n b\n+c\n"));
        assert_eq!(show(&hidden, &open), format!("{head} [1]\n b\n+c\n"));
        assert_eq!(show(&hidden, &other), format!("{head} {MASK}\n B\n+c\n"));
    }
}
