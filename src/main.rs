//! The `update` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    #[expect(
        clippy::disallowed_methods,
        reason = "a helper must give up its ids before anything else is read"
    )]
    let args: Vec<std::ffi::OsString> = std::env::args_os().collect();
    match args.get(1) {
        Some(word) if word == fleet_update::helper::SUBCOMMAND => {
            fleet_update::run::helper::main(&args[2..])
        }
        _ => fleet_update::run::main(),
    }
}
