//! The values that changed, home by home.

use std::fmt::Write as _;

use super::super::Receipt;
use super::{esc, masked};
use crate::screen;

/// More changes than this are folded away.
const UNFOLDED: usize = 40;

/// The values that changed, home by home, as a person reads a diff.
pub(super) fn changes(receipt: &Receipt) -> String {
    let count: usize = receipt.homes.iter().map(|home| home.changes.len()).sum();
    let open = if count <= UNFOLDED { " open" } else { "" };
    let mut output = String::new();
    for home in receipt
        .homes
        .iter()
        .filter(|home| !home.changes.is_empty() || !home.files.is_empty())
    {
        let files: Vec<String> = home
            .files
            .iter()
            .map(|file| {
                let kept = if file.snapshot {
                    "a copy of it before is kept"
                } else {
                    "no copy of it before"
                };
                format!("<code>{}</code> ({kept})", esc(&file.path))
            })
            .collect();
        let values = match home.changes.len() {
            1 => "1 value".to_owned(),
            count => format!("{count} values"),
        };
        let planned = if home.done { "" } else { ", not done" };
        let _ = write!(
            output,
            "<details{open}>\n<summary><b>{}</b> of {}: {values}{planned}</summary>\n",
            esc(&home.profile),
            esc(&home.user)
        );
        if !files.is_empty() {
            let _ = writeln!(output, "<p class=\"files\">{}</p>", files.join(", "));
        }
        output.push_str("<ul class=\"diff\">\n");
        for change in &home.changes {
            let _ = write!(
                output,
                "<li><code class=\"key\">{}</code>",
                masked(&change.path)
            );
            let value =
                |value: &serde_json::Value| esc(&screen::json(&change.path, value).to_string());
            if let Some(before) = &change.before {
                let _ = write!(
                    output,
                    "<del><span aria-hidden=\"true\">−</span><span class=\"aloud\">was</span> <code>{}</code></del>",
                    value(before)
                );
            }
            if let Some(after) = &change.after {
                let _ = write!(
                    output,
                    "<ins><span aria-hidden=\"true\">+</span><span class=\"aloud\">is</span> <code>{}</code></ins>",
                    value(after)
                );
            }
            let _ = writeln!(
                output,
                "<span class=\"step\">{}</span></li>",
                esc(&change.step)
            );
        }
        output.push_str("</ul>\n</details>\n");
    }
    if output.is_empty() {
        output.push_str("<p>Nothing.</p>\n");
    }
    output
}
