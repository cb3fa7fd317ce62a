#![no_main]
//! The files in which a runtime speaks of itself: whoever owns the home may write anything there.

use std::time::Duration;

use fleet_update::app::App;
use fleet_update::fleet::procfs::Flocks;
use fleet_update::fleet::selfreport;
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

thread_local! {
    static APP: App = App::builtin("hermes").expect("it is part of the program");
    // In memory where there is such a place: every input is written and read.
    static HOME: TempDir = tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("a folder");
}

fuzz_target!(|data: &[u8]| {
    APP.with(|app| {
        HOME.with(|home| {
            let kind = app.runtime("gateway").expect("it is described");
            let rules = kind.self_report.as_ref().expect("it speaks of itself");
            let (pid_file, state_file) = data.split_at(data.len() / 2);
            std::fs::write(home.path().join(&rules.pid_file), pid_file).expect("written");
            std::fs::write(home.path().join(&rules.state_file), state_file).expect("written");
            let found = selfreport::read(home.path(), kind, &Flocks::default(), Duration::from_millis(50));
            for report in &found.reports {
                assert!(report.pid > 1, "{report:?}");
                assert!(!report.holds_lock && !report.socket_answered, "{report:?}");
            }
        });
    });
});
