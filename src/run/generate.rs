//! `update generate`: the man page update(8) and the completions, from the definition of the command line.
//!
//! What it prints is committed below `man/` and `completions/`, and a test compares; a package only copies.
//! It reads nothing but the definition, so its output is the same on every machine.

use clap::CommandFactory as _;
use clap::ValueEnum as _;

use crate::cli::Cli;
use crate::error::{Error, Kind, Result};
use crate::ui::Ui;

mod completions;
mod man;

/// Prints the man page (`man`) or the completions of a shell.
///
/// # Errors
/// When no such thing can be generated.
pub fn run(ui: &Ui, what: &str) -> Result<u8> {
    let command = Cli::command();
    let text = if what == "man" {
        man::page(command)
    } else {
        let shell = clap_complete::Shell::from_str(what, true).map_err(|_| {
            let shells: Vec<String> = clap_complete::Shell::value_variants()
                .iter()
                .map(ToString::to_string)
                .collect();
            Error::new(
                Kind::Usage,
                format!("nothing called {what:?} can be generated"),
            )
            .with_hint(format!("known are: man, {}", shells.join(", ")))
        })?;
        completions::script(shell, command)?
    };
    ui.result(&text);
    Ok(0)
}
