//! The configuration version that a code tree expects, as its sources say it.

use std::path::Path;

use memchr::memmem;

use crate::app::App;
use crate::fleet::units::files::read_bounded;

/// No source file of a package is read past this.
const SOURCE_LIMIT: u64 = 8 << 20;

/// How far behind its literal start a version pattern may reach.
const PATTERN_WINDOW: usize = 512;

/// The configuration version that the code expects, from the first of its files that says one.
pub(super) fn expected_version(app: &App, package: &Path) -> Option<u32> {
    let pattern = regex_lite::Regex::new(&app.code.version_pattern).ok()?;
    let literal = literal_start(&app.code.version_pattern);
    app.code.version_files.iter().find_map(|file| {
        let bytes = read_bounded(&package.join(file), SOURCE_LIMIT, true).ok()?;
        version_in(&bytes, &pattern, literal)
    })
}

/// The pattern's first match. Only the places where its literal start stands are tried: such a
/// source is hundreds of kilobytes, and the engine is built to be small, not fast.
pub(super) fn version_in(source: &[u8], pattern: &regex_lite::Regex, literal: &str) -> Option<u32> {
    let first = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        pattern.captures(&text)?.get(1)?.as_str().parse().ok()
    };
    if literal.is_empty() {
        return first(source);
    }
    memmem::find_iter(source, literal)
        .take(1000)
        .find_map(|at| first(&source[at..source.len().min(at + PATTERN_WINDOW)]))
}

/// The characters that every match of a pattern starts with.
pub(super) fn literal_start(pattern: &str) -> &str {
    let end = pattern
        .find(|c| "\\.+*?()|[]{}^$".contains(c))
        .unwrap_or(pattern.len());
    // A quantifier makes the character before it optional.
    let quantified = pattern[end..].starts_with(['?', '*', '{', '|']);
    if pattern.contains('|') {
        return "";
    }
    let literal = &pattern[..end];
    match literal.char_indices().next_back() {
        Some((last, _)) if quantified => &literal[..last],
        _ => literal,
    }
}
