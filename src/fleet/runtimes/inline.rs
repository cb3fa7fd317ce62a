//! Programs that an interpreter is given as text (`python -c SOURCE`).
//!
//! A process of an interpreter is what its source does, and what follows the source is data to it: the words of a
//! runtime behind a source that only starts one later do not make it one. So a source counts only if all of it has a
//! form that the descriptor knows: one of the application's own launchers, which run a module or a script in this
//! very process.

use std::path::PathBuf;

use crate::app::App;

/// A launcher may be started again by another one, whose source holds its own.
const DEPTH: usize = 3;

/// What a source runs of the application.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inline {
    /// The words of the command line, where the source sets them itself.
    pub words: Option<Vec<String>>,
    /// The folder in which imports are looked up first.
    pub site: Option<PathBuf>,
    /// The home that is used unless the environment names one.
    pub home: Option<PathBuf>,
}

/// Reads a source; nothing if it is not one of the application's launchers.
pub(super) fn read(app: &App, source: &str) -> Option<Inline> {
    nested(app, source, DEPTH)
}

fn nested(app: &App, source: &str, depth: usize) -> Option<Inline> {
    let known = &app.command.inline;
    let groups = known.iter().find_map(|form| form.captures(source))?;
    let literal = |name: &str| {
        let group = groups.name(name)?;
        literal(&mut group.as_str().chars())
    };
    let inner = match groups.name("module") {
        Some(module) => {
            let modules = &app.command.modules;
            modules.iter().find(|known| *known == module.as_str())?;
            Inline::default()
        }
        None => match literal("script") {
            Some(script) => super::is_program(app, &script).then(Inline::default)?,
            None => nested(app, &literal("source")?, depth.checked_sub(1)?)?,
        },
    };
    let folder = |name: &str| {
        let path = literal(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    Some(Inline {
        // Its own name comes first.
        words: match groups.name("words") {
            Some(list) => Some(texts(list.as_str())?.split_off(1)),
            None => inner.words,
        },
        site: folder("site").or(inner.site),
        home: folder("home").or(inner.home),
    })
}

/// A list of at least one text, as Python writes it.
fn texts(list: &str) -> Option<Vec<String>> {
    let mut rest = list.strip_prefix('[')?.chars();
    let mut found = Vec::new();
    loop {
        found.push(literal(&mut rest)?);
        match rest.as_str() {
            "]" => return Some(found),
            more => rest = more.strip_prefix(", ")?.chars(),
        }
    }
}

/// A text, as Python writes it (`repr`): in either quotes, what cannot be printed escaped.
fn literal(chars: &mut std::str::Chars<'_>) -> Option<String> {
    let quote = chars.next().filter(|c| matches!(c, '\'' | '"'))?;
    let mut text = String::new();
    loop {
        let next = chars.next()?;
        if next == quote {
            return Some(text);
        }
        if next != '\\' {
            text.push(next);
            continue;
        }
        text.push(match chars.next()? {
            same @ ('\\' | '\'' | '"') => same,
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'x' => escaped(chars, 2)?,
            'u' => escaped(chars, 4)?,
            'U' => escaped(chars, 8)?,
            _ => return None,
        });
    }
}

/// The character whose number is written in so many hexadecimal digits.
fn escaped(chars: &mut std::str::Chars<'_>, digits: usize) -> Option<char> {
    let (number, rest) = chars.as_str().split_at_checked(digits)?;
    *chars = rest.chars();
    char::from_u32(u32::from_str_radix(number, 16).ok()?)
}

#[cfg(test)]
mod tests;
