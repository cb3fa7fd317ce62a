//! What the children of the tests do: one command of the program on the fleet that they are told.

use std::path::{Path, PathBuf};

use clap::Parser as _;
use fleet_update::cli::{Cli, ReceiptCommand, Trigger};
use fleet_update::config::{Config, Places};
use fleet_update::restart::table::Table;
use fleet_update::run::{Session, apply, receipt, rollback};
use fleet_update::state::State;
use fleet_update::ui::{Color, Format, Ui};
use fleet_update::world::World;

use crate::fleet::{MECHANISMS, PROFILES, home, many};

/// Not a test: what the children of the others do.
#[test]
fn child() {
    let Ok(task) = std::env::var("CRASH_CHILD") else {
        return;
    };
    let folder = PathBuf::from(std::env::var_os("CRASH_FOLDER").expect("told"));
    let count: usize = std::env::var("CRASH_HOMES")
        .expect("told")
        .parse()
        .expect("a number");
    let session = session(&folder, count);
    let result = match task.split_once(' ').unwrap_or((&task, "")) {
        ("apply", _) => apply::run(&session),
        ("rollback", run) => rollback::run(&session, run),
        ("verify", _) => receipt::run(&session, &ReceiptCommand::Verify),
        other => panic!("no child does {other:?}"),
    };
    let status = result.unwrap_or_else(|error| {
        session.ui.fail(&error);
        error.kind().exit_status()
    });
    std::process::exit(i32::from(status));
}

fn session(folder: &Path, count: usize) -> Session {
    let world = World::read().expect("proc");
    let mut line = vec!["update".to_owned()];
    for (variable, flag) in [
        ("CRASH_REQUEST", "--request-id"),
        ("CRASH_PATIENCE", "--lock-timeout"),
        ("CRASH_RESTART", "--restart"),
        ("CRASH_COLOR", "--color"),
        ("CRASH_TO", "--to"),
    ] {
        if let Ok(value) = std::env::var(variable) {
            line.extend([flag.to_owned(), value]);
        }
    }
    let cli = Cli::try_parse_from(line).expect("valid");
    let ui = Ui::new(&world, Format::Text, Color::Never, true, false);
    let users = vec![world.account.clone()];
    let places = Places {
        config_dir: folder.join("config"),
        state_dir: folder.join("state"),
        lock: folder.join("run/lock"),
    };
    let names: Vec<String> = if count == PROFILES.len() {
        PROFILES
            .iter()
            .map(|profile| (*profile).to_owned())
            .collect()
    } else {
        many(count)
    };
    let session = Session::new(world, ui, &cli, Trigger::Manual).expect("valid");
    Session {
        config: Config::default(),
        state: State::at(&places.state_dir),
        places,
        table: Table::load(None, &[("test".into(), MECHANISMS.into())]).expect("valid"),
        site_steps: Vec::new(),
        users,
        only_homes: names.iter().map(|name| home(folder, name)).collect(),
        ..session
    }
}
