#![no_main]
//! What the kernel shows of a process that somebody else chose: its command line and its control group.

use fleet_update::app::App;
use fleet_update::fleet::{procfs, runtimes};
use libfuzzer_sys::fuzz_target;

thread_local! {
    static APP: App = App::builtin("hermes").expect("it is part of the program");
}

fuzz_target!(|data: &[u8]| {
    let argv = procfs::tokens(data);
    APP.with(|app| {
        if let Some(found) = runtimes::recognise(app, &argv) {
            assert!(argv.len() > 1, "{argv:?} is a {}", found.kind);
        }
        let words = runtimes::program_words(app, &argv);
        assert!(words.len() <= argv.len());
    });
    let text = String::from_utf8_lossy(data);
    if let Some(unit) = procfs::innermost_service(&text) {
        assert!(unit.unit.ends_with(".service") || unit.unit.ends_with(".scope"));
        assert!(!unit.unit.contains('/'));
    }
});
