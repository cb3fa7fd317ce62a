//! The `update` command.

use std::process::ExitCode;

#[expect(
    clippy::disallowed_methods,
    reason = "a helper must give up its ids before anything else of its surroundings is read"
)]
fn main() -> ExitCode {
    let args: Vec<std::ffi::OsString> = std::env::args_os().collect();
    if args
        .get(1)
        .is_some_and(|word| word == fleet_update::helper::SUBCOMMAND)
    {
        return fleet_update::run::helper::main(&args[2..]);
    }
    if let Some(home) = std::env::var_os(fleet_update::run::rehearse::STAND_IN) {
        return fleet_update::run::rehearse::stand_in(home.as_ref());
    }
    let status = fleet_update::run::main();
    fleet_update::helper::dismiss_idle();
    fleet_update::helper::end_all();
    status
}
