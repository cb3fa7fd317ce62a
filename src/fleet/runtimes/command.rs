//! What a command line starts: read token by token, the way the program itself reads it, and never by a substring.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::Path;

use super::inline::{self, Inline};
use super::{OTHER, Recognised};
use crate::app::App;

/// What a command line starts, if it is the application's own.
///
/// Recognised are an interpreter that runs one of the application's modules or scripts, and such a
/// script by itself. A program that merely starts the application (a wrapper) is not: its child is.
/// A subcommand that is one word away from a runtime's (`gateway status`) only controls it.
#[must_use]
pub fn recognise(app: &App, argv: &[String]) -> Option<Recognised> {
    let run = run_of(app, argv)?;
    let words = &run.words[..];
    let found = |kind: &str, managed| Recognised {
        kind: kind.to_owned(),
        profile: profile_flag(app, words),
        home: run.inline.as_ref().and_then(|inline| inline.home.clone()),
        managed,
    };
    let positional = positional(app, words);
    let matching = app
        .runtimes
        .iter()
        .filter(|runtime| is_prefix(&runtime.subcommand, &positional))
        .max_by_key(|runtime| runtime.subcommand.len());
    if let Some(runtime) = matching {
        return Some(found(&runtime.kind, true));
    }
    let first = positional.first()?;
    if let Some(runtime) = app
        .runtimes
        .iter()
        .find(|runtime| runtime.subcommand.first().is_some_and(|word| word == first))
    {
        // The group without a word runs its first command; with another word it controls a runtime.
        return (positional.len() == 1 && !asks_for_help(words))
            .then(|| found(&runtime.kind, true));
    }
    Some(found(OTHER, false))
}

/// Whether the program of a command line is a shell: it then only waits for what its script starts.
#[must_use]
pub fn is_shell(argv: &[String]) -> bool {
    argv.first().is_some_and(|program| {
        let name = file_name(program).trim_start_matches('-');
        matches!(
            name,
            "sh" | "bash" | "dash" | "zsh" | "ksh" | "mksh" | "fish" | "ash" | "busybox"
        )
    })
}

/// The words of a command line up to the application's own program: what decides which code it runs.
#[must_use]
pub fn program_words<'a>(app: &App, argv: &'a [String]) -> &'a [String] {
    let count = run_of(app, argv).map_or(argv.len(), |run| run.program);
    &argv[..count]
}

/// What the source of a command line says, if it is one of the application's launchers.
#[must_use]
pub fn inline_of(app: &App, argv: &[String]) -> Option<Inline> {
    run_of(app, argv)?.inline
}

/// How a command line runs the application's own program.
struct Run<'a> {
    /// How many words name the program.
    program: usize,
    /// The words that the program gets.
    words: Cow<'a, [String]>,
    /// The source that runs it, if one does.
    inline: Option<Inline>,
}

impl<'a> Run<'a> {
    /// A program that gets the rest of a command line.
    fn rest(argv: &'a [String], words: &'a [String]) -> Self {
        Self {
            program: argv.len() - words.len(),
            words: Cow::Borrowed(words),
            inline: None,
        }
    }
}

/// How a command line runs the application's own program, if it does.
fn run_of<'a>(app: &App, argv: &'a [String]) -> Option<Run<'a>> {
    let (program, rest) = argv.split_first()?;
    if is_script(app, program) {
        return Some(Run::rest(argv, rest));
    }
    match interpreter(program)? {
        Interpreter::Python => python_run(app, argv),
        Interpreter::Other => {
            // Only the script itself: what stands before it are the interpreter's own flags.
            let at = rest.iter().position(|word| !word.starts_with(['-', '+']))?;
            let flags = &rest[..at];
            if flags.iter().any(|flag| is_inline_code(flag)) {
                return None;
            }
            is_script(app, &rest[at]).then(|| Run::rest(argv, &rest[at + 1..]))
        }
    }
}

enum Interpreter {
    Python,
    Other,
}

fn interpreter(program: &str) -> Option<Interpreter> {
    let name = file_name(program).trim_start_matches('-');
    let versioned = |stem: &str| {
        name.strip_prefix(stem)
            .is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
    };
    if versioned("python") || versioned("pypy") {
        return Some(Interpreter::Python);
    }
    let other = ["node", "nodejs", "ruby", "perl", "php"]
        .into_iter()
        .any(versioned);
    (other || is_shell(&[program.to_owned()])).then_some(Interpreter::Other)
}

/// `-c` of a shell, `-e` of others: what follows is code and no script.
fn is_inline_code(flag: &str) -> bool {
    flag.starts_with('-') && !flag.starts_with("--") && flag.contains(['c', 'e'])
        || matches!(flag, "--eval" | "--print")
}

/// Reads Python's own flags up to `-m MODULE`, `-c SOURCE` or the script (the manual's "Command line and environment").
fn python_run<'a>(app: &App, argv: &'a [String]) -> Option<Run<'a>> {
    let rest_from = |at: usize| Run::rest(argv, &argv[at..]);
    let mut at = 1;
    while let Some(word) = argv.get(at) {
        at += 1;
        let Some(flags) = word.strip_prefix('-').filter(|flags| !flags.is_empty()) else {
            return is_program(app, word).then(|| rest_from(at));
        };
        if flags == "-" {
            let script = argv.get(at)?;
            return is_program(app, script).then(|| rest_from(at + 1));
        }
        if flags.starts_with('-') {
            // The one long flag that takes a value; the others stand alone.
            at += usize::from(flags == "-check-hash-based-pycs");
            continue;
        }
        let Some((index, flag)) = flags
            .char_indices()
            .find(|(_, flag)| "cmWX".contains(*flag))
        else {
            continue;
        };
        let attached = &flags[index + 1..];
        let value = if attached.is_empty() {
            at += 1;
            argv.get(at - 1)?.as_str()
        } else {
            attached
        };
        match flag {
            'c' => {
                let inline = inline::read(app, value)?;
                let words = inline.words.clone();
                return Some(Run {
                    program: if words.is_some() { argv.len() } else { at },
                    words: words.map_or(Cow::Borrowed(&argv[at..]), Cow::Owned),
                    inline: Some(inline),
                });
            }
            'm' => {
                let known = app.command.modules.iter().any(|module| module == value);
                return known.then(|| rest_from(at));
            }
            _ => {}
        }
    }
    None
}

/// A script of the application, or the file of one of its modules.
pub(in crate::fleet) fn is_program(app: &App, word: &str) -> bool {
    is_script(app, word)
        || app.command.modules.iter().any(|module| {
            let file = format!("{}.py", module.replace('.', "/"));
            Path::new(word).ends_with(file)
        })
}

pub(in crate::fleet) fn is_script(app: &App, word: &str) -> bool {
    let name = file_name(word);
    // Nix keeps the script as `.NAME-wrapped` beside the wrapper that sets its environment.
    let name = name
        .strip_prefix('.')
        .and_then(|name| name.strip_suffix("-wrapped"))
        .unwrap_or(name);
    app.command.scripts.iter().any(|script| script == name)
}

fn file_name(word: &str) -> &str {
    Path::new(word)
        .file_name()
        .and_then(OsStr::to_str)
        .unwrap_or(word)
}

/// The profile that a flag names, wherever it stands: the first one counts, up to `--`.
fn profile_flag(app: &App, words: &[String]) -> Option<String> {
    let flags = &app.command.profile_flags;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            return None;
        }
        let value = if flags.contains(word) {
            words.next()?.as_str()
        } else if let Some((flag, value)) = word.split_once('=')
            && flag.starts_with("--")
            && flags.iter().any(|known| known == flag)
        {
            value
        } else {
            continue;
        };
        let name = value.trim().to_lowercase();
        return app.home.profile_pattern.is_match(&name).then_some(name);
    }
    None
}

/// The words that are neither flags nor, as far as can be told, values of flags.
fn positional<'a>(app: &App, words: &'a [String]) -> Vec<&'a str> {
    let starts_runtime = |word: &str| {
        app.runtimes.iter().any(|runtime| {
            runtime
                .subcommand
                .first()
                .is_some_and(|first| first == word)
        })
    };
    let mut found: Vec<&str> = Vec::new();
    let mut words = words.iter().map(String::as_str).peekable();
    while let Some(word) = words.next() {
        if word == "--" {
            break;
        }
        if !word.starts_with('-') {
            found.push(word);
            continue;
        }
        let takes_value = app.command.profile_flags.iter().any(|flag| flag == word);
        // Before the subcommand, a flag that we do not know may have a value. Afterwards the words
        // of the subcommand are what counts, and a value behind them does no harm.
        let may_take_value = found.is_empty()
            && !word.contains('=')
            && words
                .peek()
                .is_some_and(|next| !next.starts_with('-') && !starts_runtime(next));
        if takes_value || may_take_value {
            words.next();
        }
    }
    found
}

fn asks_for_help(words: &[String]) -> bool {
    words
        .iter()
        .any(|word| matches!(word.as_str(), "-h" | "--help" | "--version"))
}

fn is_prefix(subcommand: &[String], words: &[&str]) -> bool {
    !subcommand.is_empty()
        && subcommand.len() <= words.len()
        && subcommand.iter().zip(words).all(|(a, b)| a == b)
}
