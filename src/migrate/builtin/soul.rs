//! A section that an older program copied into `SOUL.md` goes.

use super::super::ops::{Draft, Failure};
use super::{Edit, Value, word};

pub(super) fn soul_section(draft: &mut Draft<'_>, options: &Value) -> Result<(), Failure> {
    let file = word(options, "file");
    let text = match draft.value(file)? {
        Some(Value::Str(text)) => text,
        _ => return Ok(()),
    };
    match without_section(text, word(options, "heading")) {
        Some(text) => draft.edit(file, &Edit::Text { text }),
        None => Ok(()),
    }
}

/// The text without every section that starts with the line `heading`, each up to the next heading of its
/// level, with the blank lines before it; `None` if there is no such line.
fn without_section(text: &str, heading: &str) -> Option<String> {
    let mark = format!("{} ", heading.split(' ').next().unwrap_or_default());
    let mut kept: Vec<&str> = Vec::new();
    let mut inside = false;
    let mut found = false;
    for line in text.split_inclusive('\n') {
        let content = line.trim_end();
        if content.trim_start_matches('\u{feff}') == heading && line.ends_with('\n') {
            inside = true;
            found = true;
            while kept
                .last()
                .is_some_and(|line| line.trim_end_matches(['\r', '\n']).is_empty())
            {
                kept.pop();
            }
            continue;
        }
        if inside && line.starts_with(&mark) {
            inside = false;
            // One blank line stays between what stood before the section and what follows it.
            if let Some(last) = kept.last() {
                kept.push(if last.ends_with("\r\n") { "\r\n" } else { "\n" });
            }
        }
        if !inside {
            kept.push(line);
        }
    }
    found.then(|| kept.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_section_goes() {
        let heading = "## Old";
        let cut = |text: &str| without_section(text, heading);
        assert_eq!(
            cut("a\n\n## Old\nb\n### c\nd\n\n## New\ne\n").as_deref(),
            Some("a\n\n## New\ne\n")
        );
        assert_eq!(
            cut("a\r\n\r\n\r\n## Old \r\nb\r\n").as_deref(),
            Some("a\r\n")
        );
        assert_eq!(cut("## Old\nb\n## New\n").as_deref(), Some("## New\n"));
        assert_eq!(cut("### Old\nb\n"), None);
        assert_eq!(cut("a ## Old\nb\n"), None);
        assert_eq!(cut("a\n## Older\n"), None);
    }
}
