#![no_main]
//! A descriptor of an application: read or refused; what was read can judge any command line.

use std::path::Path;

use fleet_update::app::App;
use fleet_update::fleet::runtimes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(app) = App::parse(text, Path::new("app.toml")) else { return };
    for argv in [
        vec![],
        vec![String::new()],
        vec!["/opt/venv/bin/python3".into(), "-m".into(), "pkg.main".into(), "run".into()],
        vec!["/opt/venv/bin/agent".into(), "--profile".into(), "x".into(), "gateway".into(), "run".into()],
    ] {
        let _ = runtimes::recognise(&app, &argv);
    }
});
