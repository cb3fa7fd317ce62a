//! The `update` command.

use std::io::Write as _;
use std::process::ExitCode;

use fleet_update::defect;
use fleet_update::error::Kind;

#[expect(
    clippy::disallowed_methods,
    reason = "a helper must give up its ids before anything else of its surroundings is read"
)]
fn main() -> ExitCode {
    defect::tell_only_places();
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
    let status = defect::guard(fleet_update::run::main).unwrap_or_else(|defect| {
        // Like any state of ours that cannot be trusted; the next run finishes what this one owed.
        let _ = writeln!(std::io::stderr(), "update: {defect}");
        ExitCode::from(Kind::Input.exit_status())
    });
    fleet_update::helper::dismiss_idle();
    fleet_update::helper::end_all();
    status
}
