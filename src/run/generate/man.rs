//! update(8): synopsis, commands and options from the definition, the other sections from `update.8.in`.
//!
//! Written in the classic man(7) macros, which every reader of man pages has. Text of the definition is
//! escaped, so that a hyphen can be copied into a shell and a line that begins with a dot stays text.

use std::fmt::Write as _;

use clap::{Arg, ArgAction, Command};

/// When the pages were last looked through; every page bears it (a linter asks for a date).
const DATE: &str = "2026-11-30";

/// The sections that no definition holds: DESCRIPTION, and all from EXIT STATUS on.
const WRITTEN: &str = include_str!("update.8.in");

/// Where the generated sections go in it.
const PLACE: &str = ".\\\" GENERATED\n";

/// The whole page.
#[must_use]
pub fn page(mut command: Command) -> String {
    command.build();
    let mut generated = String::new();
    synopsis(&command, &mut generated);
    let (before, after) = WRITTEN.split_once(PLACE).unwrap_or((WRITTEN, ""));
    let mut body = String::new();
    body.push_str(".SH COMMANDS\n");
    for subcommand in visible(&command) {
        describe(
            subcommand,
            &format!("update {}", subcommand.get_name()),
            &mut body,
        );
    }
    body.push_str(".SH OPTIONS\nThey may stand before and after the command.\n");
    let mut heading = None;
    for argument in command.get_arguments().filter(|one| !one.is_hide_set()) {
        let own = argument.get_help_heading().unwrap_or("General");
        if heading != Some(own) {
            let _ = writeln!(body, ".SS {}", text(own));
            heading = Some(own);
        }
        option(argument, &mut body);
    }
    format!(
        ".\\\" Made by `update generate man`: change src/cli.rs or update.8.in instead.\n\
         .TH UPDATE 8 \"{DATE}\" \"fleet\\-update {}\" \"Fleet administration\"\n\
         .SH NAME\nupdate \\- {}\n{generated}{before}{body}{after}",
        env!("CARGO_PKG_VERSION"),
        text(&lowered(
            &command
                .get_about()
                .map(ToString::to_string)
                .unwrap_or_default()
        )),
    )
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|one| !one.is_hide_set())
}

fn synopsis(command: &Command, output: &mut String) {
    output.push_str(".SH SYNOPSIS\n.nf\n\\fBupdate\\fR [\\fIOPTIONS\\fR]\n");
    for subcommand in visible(command) {
        usage(
            subcommand,
            &format!("update {}", subcommand.get_name()),
            output,
        );
    }
    output.push_str(".fi\n");
}

/// One line a command that does something.
fn usage(command: &Command, name: &str, output: &mut String) {
    let inner: Vec<&Command> = visible(command).collect();
    if inner.is_empty() {
        let own: Vec<String> = own_arguments(command).map(shape).collect();
        let _ = writeln!(output, "\\fB{}\\fR {}", text(name), own.join(" "));
        trim_line(output);
    }
    for subcommand in inner {
        usage(
            subcommand,
            &format!("{name} {}", subcommand.get_name()),
            output,
        );
    }
}

/// A blank at the end of a line is a fault to a linter.
fn trim_line(output: &mut String) {
    output.truncate(output.trim_end().len());
    output.push('\n');
}

fn describe(command: &Command, name: &str, output: &mut String) {
    let _ = writeln!(output, ".SS {}", text(name));
    let about = command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default();
    let _ = writeln!(output, "{}.", text(about.trim_end_matches('.')));
    for argument in own_arguments(command) {
        option(argument, output);
    }
    for subcommand in visible(command) {
        describe(
            subcommand,
            &format!("{name} {}", subcommand.get_name()),
            output,
        );
    }
}

/// The arguments of this command alone: the global ones have a section of their own.
fn own_arguments(command: &Command) -> impl Iterator<Item = &Arg> {
    command
        .get_arguments()
        .filter(|one| !one.is_global_set() && !one.is_hide_set())
}

/// How an argument stands in a synopsis.
fn shape(argument: &Arg) -> String {
    let value = values(argument);
    let many = if repeats(argument) { " ..." } else { "" };
    match argument.get_long() {
        Some(long) if argument.is_required_set() => {
            format!("\\fB{}\\fR{value}", text(&format!("--{long}")))
        }
        Some(long) => format!("[\\fB{}\\fR{value}]", text(&format!("--{long}"))),
        None if argument.is_required_set() => format!("{}{many}", value.trim_start()),
        None => format!("[{}]{many}", value.trim_start()),
    }
}

fn repeats(argument: &Arg) -> bool {
    argument.is_positional() && matches!(argument.get_action(), ArgAction::Append)
}

/// The names of its values, with the blank before them.
fn values(argument: &Arg) -> String {
    if !argument.get_action().takes_values() {
        return String::new();
    }
    let names = argument.get_value_names().unwrap_or_default();
    names.iter().fold(String::new(), |all, name| {
        all + " \\fI" + &text(name) + "\\fR"
    })
}

/// A tagged paragraph: the option, and what it means.
fn option(argument: &Arg, output: &mut String) {
    output.push_str(".TP\n");
    let mut tags = Vec::new();
    if let Some(short) = argument.get_short() {
        tags.push(format!("\\fB{}\\fR", text(&format!("-{short}"))));
    }
    if let Some(long) = argument.get_long() {
        tags.push(format!("\\fB{}\\fR", text(&format!("--{long}"))));
    }
    let value = values(argument);
    if tags.is_empty() {
        let _ = writeln!(output, "{}", value.trim_start());
    } else {
        let _ = writeln!(output, "{}{value}", tags.join(", "));
    }
    let help = argument
        .get_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let _ = write!(output, "{}.", text(help.trim_end_matches('.')));
    let defaults = argument.get_default_values();
    if argument.get_action().takes_values() && !defaults.is_empty() {
        let words: Vec<String> = defaults
            .iter()
            .map(|word| text(&word.to_string_lossy()))
            .collect();
        let _ = write!(output, "\nThe default is \\fB{}\\fR.", words.join(", "));
    }
    output.push('\n');
    if !argument.get_action().takes_values() {
        return;
    }
    let possible = argument.get_possible_values();
    if possible.is_empty() {
        return;
    }
    output.push_str(".RS\n");
    for value in possible.iter().filter(|value| !value.is_hide_set()) {
        let help = value
            .get_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        let _ = writeln!(
            output,
            ".TP\n\\fB{}\\fR\n{}.",
            text(value.get_name()),
            text(help.trim_end_matches('.'))
        );
    }
    output.push_str(".RE\n");
}

/// Text that means itself to roff(7). Backquotes are how the definition marks what is typed.
fn text(plain: &str) -> String {
    let mut output = String::with_capacity(plain.len());
    let mut typed = false;
    for letter in plain.chars() {
        match letter {
            '\\' => output.push_str("\\e"),
            '-' => output.push_str("\\-"),
            '\'' => output.push_str("\\(aq"),
            '`' => {
                typed = !typed;
                output.push_str(if typed { "\\fB" } else { "\\fR" });
            }
            '\n' => output.push(' '),
            _ => output.push(letter),
        }
    }
    if output.starts_with('.') {
        output.insert_str(0, "\\&");
    }
    output
}

/// The line of NAME is a fragment, as whatis(1) shows it.
fn lowered(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(letters).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_means_itself() {
        assert_eq!(text("a-b \\ 'c'"), "a\\-b \\e \\(aqc\\(aq");
        assert_eq!(text(".TH"), "\\&.TH");
        assert_eq!(text("what `update` does"), "what \\fBupdate\\fR does");
    }

    #[test]
    fn the_written_part_has_a_place_for_the_generated_one() {
        assert_eq!(WRITTEN.matches(PLACE).count(), 1);
    }
}
