//! `update generate`: man pages and completions from the definition of the command line.

use clap::CommandFactory as _;
use clap::ValueEnum as _;

use crate::cli::Cli;
use crate::error::{Error, Kind, Result};
use crate::ui::Ui;

/// Prints the man page (`man`) or the completions of a shell.
///
/// # Errors
/// When no such thing can be generated.
pub fn run(ui: &Ui, what: &str) -> Result<u8> {
    let mut command = Cli::command();
    let mut output = Vec::new();
    if what == "man" {
        let man = clap_mangen::Man::new(command)
            .section("8")
            .manual("Fleet administration");
        man.render(&mut output)
            .map_err(|error| Error::io("cannot generate the man page", error))?;
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
        clap_complete::generate(shell, &mut command, "update", &mut output);
    }
    ui.result(&String::from_utf8_lossy(&output));
    Ok(0)
}
