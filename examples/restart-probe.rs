//! Gives one order of the library from the command line, for the tests of `restart`.
//!
//! ```text
//! restart-probe survey MANAGER APP.TOML [UNIT]...          prints the units that were found
//! restart-probe order  MANAGER APP.TOML ROWS.TOML UNIT     prints the order for what runs in UNIT now
//! restart-probe run    ORDER.JSON                          carries it out and prints the observation
//! restart-probe reload MANAGER                             makes it read its unit files again
//! ```
//! MANAGER is `system` or `user`: this process's own. It decides nothing that the library decides.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a tool of tests"
)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use fleet_update::app::App;
use fleet_update::fleet::units::{self, bus};
use fleet_update::fleet::{Manager, procfs, runtimes, selfreport};
use fleet_update::helper::Task;
use fleet_update::restart::table::{Fields, Owner, Subject, Table};
use fleet_update::restart::{Expected, Order, ReloadManager, Restart};
use fleet_update::world::World;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["survey", manager, app, named @ ..] => survey(manager, app, named),
        ["order", manager, app, rows, unit] => order(manager, app, rows, unit),
        ["run", order] => run(order),
        ["reload", word] => {
            let limit = Duration::from_secs(30);
            let manager = manager(word);
            let task = ReloadManager { manager, limit };
            task.perform(&World::read().unwrap(), &mut |()| Ok(()))
                .unwrap();
        }
        _ => panic!("see the head of examples/restart-probe.rs"),
    }
}

fn manager(word: &str) -> Manager {
    match word {
        "system" => Manager::System,
        _ => Manager::User(rustix::process::geteuid().as_raw()),
    }
}

fn app(path: &str) -> App {
    App::parse(&std::fs::read_to_string(path).unwrap(), Path::new(path)).unwrap()
}

fn survey(word: &str, path: &str, named: &[&str]) {
    let named: Vec<String> = named.iter().map(ToString::to_string).collect();
    let began = std::time::Instant::now();
    let found = units::survey(manager(word), &app(path), || named, bus::CALL_LIMIT);
    let took = began.elapsed().as_micros();
    match found {
        Ok(found) => println!(
            "{}",
            serde_json::json!({ "took_usec": took, "found": found })
        ),
        Err(error) => println!(
            "{}",
            serde_json::json!({ "took_usec": took, "error": error.to_string() })
        ),
    }
}

fn order(word: &str, path: &str, rows: &str, name: &str) {
    let (manager, app) = (manager(word), app(path));
    let found = units::survey(manager, &app, || vec![name.to_owned()], bus::CALL_LIMIT).unwrap();
    let unit = found
        .units
        .into_iter()
        .find(|unit| unit.name == name)
        .unwrap();
    let wanted = runtimes::wanted_variables(&app);
    let (process, kind) = procfs::in_cgroup(&unit.control_group)
        .unwrap()
        .into_iter()
        .filter_map(|pid| procfs::read(pid, &wanted).unwrap())
        .find_map(|process| {
            let kind = runtimes::recognise(&app, &process.argv).filter(|found| found.managed)?;
            Some((process, kind.kind))
        })
        .unwrap();
    let variable = app.home.env.clone().unwrap();
    let home = process
        .env
        .iter()
        .find(|(name, _)| *name == variable)
        .map(|(_, value)| PathBuf::from(value));
    let homes: Vec<PathBuf> = home.into_iter().collect();
    let locks = procfs::Flocks::default();
    let spoke_before = homes.iter().any(|home| {
        let rules = app.runtime(&kind).unwrap();
        let reports = selfreport::read(home, rules, &locks, Duration::from_millis(500)).reports;
        reports.iter().any(|report| {
            report.pid == process.incarnation.pid
                && report.start_ticks == process.incarnation.start_ticks
        })
    });
    let site = [("rows".to_owned(), std::fs::read_to_string(rows).unwrap())];
    let table = Table::load(None, &site).unwrap();
    let subject = Subject {
        owner: match manager {
            Manager::System => Owner::System,
            Manager::User(_) => Owner::User,
        },
        unit: name,
        label: "",
        cgroup: &process.cgroup,
        parent: "",
        kind: &kind,
        service_type: &unit.service_type,
    };
    let mut fields = Fields::default();
    fields.set("unit", name);
    fields.set("pid", &process.incarnation.pid.to_string());
    let order = Order {
        row: table.choose(&subject).row.unwrap().clone(),
        app,
        manager,
        unit: name.to_owned(),
        kind,
        homes,
        expected: Expected {
            incarnation: Some(process.incarnation),
            invocation_id: unit.invocation_id,
        },
        fields,
        spoke_before,
        deadline: Duration::from_secs(120),
    };
    println!("{}", serde_json::to_string(&order).unwrap());
}

fn run(path: &str) {
    let order: Order = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let world = World::read().unwrap();
    let mut told = Vec::new();
    let seen = Restart(order).perform(&world, &mut |progress| {
        told.push(progress);
        Ok(())
    });
    let seen = seen.unwrap();
    println!("{}", serde_json::json!({ "seen": seen, "told": told }));
}
