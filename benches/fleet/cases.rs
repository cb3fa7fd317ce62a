//! The cases: what is timed at which size, beside what, and what must be true of every run.

use std::cell::RefCell;
use std::time::Duration;

use fleet_update::state::Store;
use fleet_update::state::audit::Event;
use fleet_update::world::World;
use serde_json::{Value, json};

use crate::contest::{Contestant, Goal, Output, Role, Row, hold};
use crate::homes::{after, before, differing, login};
use crate::inside::BENCH;
use crate::machine::{LIST, Life, Machine, Size, UPDATE};
use crate::peer::Peer;
use crate::support::{say, skip};
use crate::{Wish, homes};

/// How long a runtime takes to stop where restarts are timed.
const STOP: Duration = Duration::from_secs(2);

/// How long the built-in row of the mechanism table lets a restarted runtime settle.
const SETTLE: &str = "3";

/// How many events the audit chain has.
const EVENTS: u64 = 100_000;

/// Runs what was asked for.
pub fn run(wish: &Wish) -> Vec<Row> {
    let peer = Peer::find();
    let mut rows = Vec::new();
    let small = ["version", "plan", "audit"];
    if small.iter().any(|case| wish.has(case)) {
        let size = Size {
            homes: 3,
            runtimes: 3,
            ..Size::default()
        };
        on(size, peer.as_ref(), |machine| {
            if wish.has("version") {
                rows.push(version(wish, machine));
            }
            if wish.has("plan") {
                rows.push(plan_beside_the_peer(wish, machine, peer.is_some()));
                rows.extend(plan_in_a_crowd(wish, machine));
            }
            if wish.has("audit") {
                rows.push(audit(wish, machine));
            }
        });
    }
    if wish.has("plan") || wish.has("status") || wish.has("reconcile") {
        rows.extend(at_scale(wish));
    }
    if wish.has("migrate") {
        rows.extend(migrate(wish, peer.as_ref()));
    }
    if wish.has("restart") {
        rows.extend(restart(wish));
    }
    rows
}

/// Boots a machine for what is done on it; says so where that cannot be.
fn on(size: Size, peer: Option<&Peer>, work: impl FnOnce(&Machine)) {
    say(&format!(
        "a machine with {} homes and {} runtimes",
        size.homes, size.runtimes
    ));
    match Machine::boot(size, peer) {
        Ok(machine) => work(&machine),
        Err(reason) => skip(&reason),
    }
}

fn version(wish: &Wish, machine: &Machine) -> Row {
    let contestants = vec![
        Contestant::new(Role::Ours, &[UPDATE, "--version"]),
        Contestant::new(Role::Limit, &["/bin/true"]),
    ];
    let name = ("version", "beside /bin/true".to_owned());
    hold(
        machine,
        name,
        wish.rounds(101).max(21),
        &[Goal::Limit(2.0)],
        contestants,
    )
}

/// A look at homes with the bytes that `text` says, and what must be true of it: one row a home and a runtime, and
/// nothing touched.
fn planner<'a>(machine: &'a Machine, verb: &'a str, text: fn(usize) -> String) -> Contestant<'a> {
    let lives = machine.lives();
    let (from, outcome) = if text(0) == before(0) {
        ("12", "migrated")
    } else {
        ("50", "current")
    };
    Contestant::new(Role::Ours, &[UPDATE, verb, "--json"]).check(move |output| {
        let value = document(output)?;
        let homes = rows(&value, "homes");
        let ready = |row: &&Value| {
            row["from"] == from && row["to"] == homes::EXPECTED && row["outcome"] == outcome
        };
        let count = homes.iter().filter(ready).count();
        if [homes.len(), count] != [machine.homes.len(); 2] {
            let first = homes.first().unwrap_or(&Value::Null);
            return Err(format!(
                "{} homes, {count} of them {outcome}; the first: {first}",
                homes.len()
            ));
        }
        let runtimes = rows(&value, "runtimes").len();
        if runtimes != lives.len() {
            return Err(format!("{runtimes} runtimes in place of {}", lives.len()));
        }
        untouched(machine, &lives, text)
    })
}

fn untouched(machine: &Machine, lives: &[Life], text: fn(usize) -> String) -> Result<(), String> {
    if let Some(file) = differing(&machine.homes, &machine.below, text) {
        return Err(format!("{} is not what it must be", file.display()));
    }
    machine.compare(lives, false)
}

fn document(output: &Output) -> Result<Value, String> {
    serde_json::from_slice(&output.stdout).map_err(|error| format!("not one document: {error}"))
}

fn rows<'a>(value: &'a Value, list: &str) -> &'a [Value] {
    value[list].as_array().map_or(&[], Vec::as_slice)
}

fn looker(times: &str) -> Contestant<'static> {
    Contestant::new(Role::Limit, &[BENCH, "look", LIST, times])
}

fn plan_beside_the_peer(wish: &Wish, machine: &Machine, peer: bool) -> Row {
    let mut contestants = vec![
        planner(machine, "plan", before).by("ann0"),
        looker("1").by("ann0"),
    ];
    if peer {
        contestants.push(
            Contestant::new(Role::Peer, &Peer::plan())
                .by("ann0")
                .check(|output| {
                    let text = String::from_utf8_lossy(&output.stdout);
                    let all = machine
                        .homes
                        .iter()
                        .all(|home| text.contains(&home.profile));
                    if all {
                        Ok(())
                    } else {
                        Err(format!("the peer did not name every profile: {text}"))
                    }
                }),
        );
    }
    let name = ("plan", "3 homes, 3 runtimes, as their user".to_owned());
    hold(
        machine,
        name,
        wish.rounds(11),
        &[Goal::Peer(50.0)],
        contestants,
    )
}

fn plan_in_a_crowd(wish: &Wish, machine: &Machine) -> Vec<Row> {
    let sizes: &[usize] = if wish.quick {
        &[1000]
    } else {
        &[1000, 5000, 20_000]
    };
    let one = |size: &usize| {
        let _crowd = machine.crowd(*size);
        let contestants = vec![
            planner(machine, "plan", before),
            Contestant::new(Role::Limit, &[BENCH, "walk"]),
        ];
        let goals: &[Goal] = if *size == 5000 {
            &[Goal::Limit(3.0)]
        } else {
            &[]
        };
        let name = ("plan", format!("3 homes, 3 runtimes, {size} processes"));
        hold(machine, name, wish.rounds(11), goals, contestants)
    };
    sizes.iter().map(one).collect()
}

/// What is looked at, from few homes to many: as it is once all is well, and where every home has to be migrated.
fn at_scale(wish: &Wish) -> Vec<Row> {
    let sizes: &[(usize, usize, usize)] = if wish.quick {
        &[(100, 5, 0)]
    } else {
        &[(100, 5, 200), (1000, 50, 2000), (10_000, 500, 20_000)]
    };
    let mut all = Vec::new();
    for &(homes, runtimes, processes) in sizes {
        let size = Size {
            homes,
            runtimes,
            ..Size::default()
        };
        on(size, None, |machine| {
            let _crowd = (processes > 0).then(|| machine.crowd(processes));
            let size = format!(
                "{homes} homes, {runtimes} runtimes, {} processes",
                machine.processes()
            );
            all.extend(looks(wish, machine, &size));
            if wish.has("reconcile") {
                all.push(reconcile(wish, machine, size));
            }
        });
    }
    all
}

fn looks(wish: &Wish, machine: &Machine, size: &str) -> Vec<Row> {
    let largest: &[Goal] = &[Goal::Time(Duration::from_secs(1)), Goal::Memory(128.0)];
    let is_largest = machine.homes.len() == 10_000;
    let mut all = Vec::new();
    for (text, what, verbs) in [
        (after as fn(usize) -> String, "", &["plan", "status"][..]),
        (before, ", all to migrate", &["plan"]),
    ] {
        machine.reset(text);
        for &verb in verbs.iter().filter(|verb| wish.has(verb)) {
            let goals = if is_largest && verb == "plan" && what.is_empty() {
                largest
            } else {
                &[]
            };
            let case = if verb == "plan" { "plan" } else { "status" };
            let contestants = vec![planner(machine, verb, text), looker("1")];
            let name = (case, format!("{size}{what}"));
            all.push(hold(machine, name, wish.rounds(7), goals, contestants));
        }
    }
    all
}

/// The run, with its receipt as a document.
fn runner<'a>(more: &[&str]) -> Contestant<'a> {
    let mut command = vec![UPDATE, "apply", "--json"];
    command.extend(more);
    Contestant::new(Role::Ours, &command)
}

/// What must be true of every run: clean, so many rows with these outcomes, and a receipt that verifies.
fn proved(machine: &Machine, output: &Output, home: &str, runtime: &str) -> Result<(), String> {
    let value = document(output)?;
    let count = |list: &str, outcome: &str| {
        rows(&value, list)
            .iter()
            .filter(|row| row["outcome"] == outcome)
            .count()
    };
    let counts = [count("homes", home), count("runtimes", runtime)];
    let truth = [machine.homes.len(), machine.served().count()];
    if value["verdict"]["outcome"] != "clean" || counts != truth {
        return Err(format!(
            "{} with {counts:?} in place of {truth:?}",
            value["verdict"]
        ));
    }
    let verified = machine
        .sandbox
        .shell(None, &format!("{UPDATE} receipt verify"));
    if verified.status.success() {
        Ok(())
    } else {
        Err(format!("the receipt does not verify: {verified:?}"))
    }
}

/// A whole run that finds everything as it should be.
fn reconcile(wish: &Wish, machine: &Machine, size: String) -> Row {
    machine.reset(after);
    let lives = machine.lives();
    let ours = runner(&[]).check(|output| {
        proved(machine, output, "current", "current")?;
        untouched(machine, &lives, after)
    });
    let row = hold(
        machine,
        ("reconcile", size),
        wish.rounds(5),
        &[],
        vec![ours, looker("2")],
    );
    machine.reset(before);
    row
}

fn migrate(wish: &Wish, peer: Option<&Peer>) -> Vec<Row> {
    let sizes: &[usize] = if wish.quick {
        &[3, 100]
    } else {
        &[3, 100, 1000, 10_000]
    };
    let mut all = Vec::new();
    for &homes in sizes {
        let size = Size {
            homes,
            ..Size::default()
        };
        on(size, peer, |machine| {
            all.push(migrate_on(wish, machine, peer))
        });
    }
    all
}

fn migrate_on(wish: &Wish, machine: &Machine, peer: Option<&Peer>) -> Row {
    let count = machine.homes.len();
    let migrated = || match differing(&machine.homes, &machine.below, after) {
        None => Ok(()),
        Some(file) => Err(format!("{} is not what it must be", file.display())),
    };
    let mut contestants = vec![
        runner(&["--to", "50"])
            .before(|| machine.reset(before))
            .check(move |output| {
                proved(machine, output, "migrated", "")?;
                migrated()
            }),
    ];
    for threads in ["1", "8", "32"] {
        contestants.push(
            Contestant::new(Role::Limit, &[BENCH, "write", LIST, threads])
                .before(|| machine.reset(before))
                .check(move |_| migrated()),
        );
    }
    let is_long = count > 100;
    if peer.is_some() && (!is_long || (wish.long && count == 1000)) {
        contestants.push(
            Contestant::new(Role::Peer, &Peer::migrate())
                .by("ann0")
                .rounds(if count > 3 { 1 } else { 3 })
                .before(|| machine.reset(before))
                .check(|output| as_the_peer(machine, output)),
        );
    }
    let goals: &[Goal] = match count {
        1000 => &[Goal::Peer(500.0), Goal::Limit(1.3)],
        _ => &[],
    };
    let name = ("migrate", format!("{count} homes, 12 → 50"));
    let rounds = wish.rounds(if count > 1000 { 3 } else { 7 });
    hold(machine, name, rounds, goals, contestants)
}

/// Whether the peer migrated every sibling, to what our own files mean to it.
fn as_the_peer(machine: &Machine, output: &Output) -> Result<(), String> {
    let said = String::from_utf8_lossy(&output.stdout);
    let siblings = machine.homes.len() - 1;
    if !said.lines().any(|line| line == siblings.to_string()) {
        return Err(format!("the peer migrated {said} of {siblings} siblings"));
    }
    for home in &machine.homes {
        let folder = home.below(&machine.below);
        std::fs::write(folder.join("truth.yaml"), after(home.number)).unwrap();
        if home.number == 0 {
            // It leaves the home that it is asked from to another command.
            std::fs::write(folder.join(homes::FILE), after(0)).unwrap();
        }
    }
    let output = machine
        .sandbox
        .command(Some(&login(0)), Peer::compare())
        .output()
        .unwrap();
    for home in &machine.homes {
        std::fs::remove_file(home.below(&machine.below).join("truth.yaml")).unwrap();
    }
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// One wave of one, one of all others: what the limit does with nothing but the service manager.
fn restart(wish: &Wish) -> Vec<Row> {
    let runtimes = if wish.quick { 5 } else { 50 };
    let mut all = Vec::new();
    let size = Size {
        homes: runtimes,
        runtimes,
        stop: STOP,
    };
    on(size, None, |machine| {
        machine.reset(after);
        let lives = RefCell::new(machine.lives());
        let begin = || {
            machine.age();
            *lives.borrow_mut() = machine.lives();
        };
        let ours = runner(&["--jobs", "64"]).before(begin).check(|output| {
            proved(machine, output, "current", "restarted")?;
            machine.compare(&lives.borrow(), true)
        });
        let units: Vec<String> = machine.served().map(homes::Home::unit).collect();
        let (first, others) = units.split_first().unwrap();
        let script = format!(
            "systemctl --user restart {first}; sleep {SETTLE}; systemctl --user restart {}; sleep {SETTLE}",
            others.join(" ")
        );
        let bare = Contestant::new(Role::Limit, &["/bin/sh", "-c", &script])
            .by(&login(0))
            .before(begin)
            .check(|_| machine.compare(&lives.borrow(), true));
        let name = (
            "restart",
            format!("{runtimes} units that take {STOP:?} to stop"),
        );
        all.push(hold(
            machine,
            name,
            wish.rounds(5),
            &[Goal::Limit(1.2)],
            vec![ours, bare],
        ));
    });
    all
}

fn audit(wish: &Wish, machine: &Machine) -> Row {
    let folder = machine.below.join("audit");
    let count = if wish.quick { EVENTS / 10 } else { EVENTS };
    let world = World::read().unwrap();
    let mut store = Store::open(&world, &folder).unwrap();
    for run in 0..count / 1000 {
        let event = |number| Event {
            run: format!("run-{run}"),
            tenant: "acme".into(),
            kind: "home-committed".into(),
            payload: json!({"home": format!("h{number}"), "outcome": "migrated", "from": "12", "to": 50,
                "files": [{"path": "config.yaml", "before": "b".repeat(64), "after": "a".repeat(64)}]}),
        };
        let events: Vec<Event> = (0..1000).map(event).collect();
        store.append("bench", &events).unwrap();
    }
    drop(store);
    let file = Store::path("/home/audit".as_ref());
    let ours = Contestant::new(
        Role::Ours,
        &[
            UPDATE,
            "audit",
            "verify",
            "--state-dir",
            "/home/audit",
            "--json",
        ],
    )
    .check(move |output| {
        let events = document(output)?["events"].clone();
        if events == count {
            Ok(())
        } else {
            Err(format!("{events} events"))
        }
    });
    let hash = Contestant::new(Role::Limit, &[BENCH, "hash", &file.display().to_string()]);
    let name = ("audit verify", format!("{count} events"));
    hold(machine, name, wish.rounds(7), &[], vec![ours, hash])
}
