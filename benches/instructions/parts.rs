//! The pure parts, each with the same input every time.

use std::collections::BTreeMap;
use std::hint::black_box;

use fleet_update::app::App;
use fleet_update::config::{Policy, RestartWhen};
use fleet_update::document::{self, Edit, Format, Path, Value};
use fleet_update::fleet::{Home, Inventory, Runtime};
use fleet_update::migrate::{Catalog, Evaluation, HomeOutcome, MemoryHome, evaluate};
use fleet_update::plan::decide::{Decision, RuntimeOutcome};
use fleet_update::plan::{Given, Plan, Wishes, targets};
use fleet_update::restart::table::Table;
use fleet_update::state::Store;
use fleet_update::state::audit::{Event, verify_copy};
use fleet_update::verify::reconcile::{Outcome, reconcile};
use fleet_update::world::{Account, World};
use serde_json::{Value as Json, json};

/// The parts.
pub const NAMES: [&str; 9] = [
    "parse",
    "edit",
    "catalog",
    "evaluate",
    "table",
    "targets",
    "plan",
    "reconcile",
    "audit",
];

/// A home at version 12 that nearly every step changes.
const HOME: &str = include_str!("../fleet/home.before.yaml");

/// How many homes a plan has; one in five has a runtime.
const HOMES: usize = 1000;

/// Does each part once, with its input made beforehand.
pub fn all() {
    documents();
    migrations();
    plans();
    audit();
}

fn documents() {
    let mut text = String::from("_config_version: 24\nmodel_catalog:\n  ttl_hours: 24   # a day\n");
    for number in 0..60 {
        text += &format!(
            "\n# What section {number} is for.\nsection_{number}:\n  enabled: true  # beside\n  names:\n    - alpha\n    - 'beta gamma'\n  nested: {{timeout: 1_000, mode: off}}\n"
        );
    }
    let mut parsed = count_parse(text.as_bytes());
    let edits = [
        Edit::Set {
            path: Path::from(["model_catalog", "ttl_hours"]),
            value: Value::Int(1),
        },
        Edit::Remove {
            path: Path::from(["section_2", "enabled"]),
        },
        Edit::Set {
            path: Path::from(["_config_version"]),
            value: Value::Int(50),
        },
    ];
    count_edit(parsed.as_mut(), &edits);
}

#[inline(never)]
fn count_parse(bytes: &[u8]) -> Box<dyn document::Document> {
    document::parse(Format::Yaml, bytes).unwrap()
}

#[inline(never)]
fn count_edit(parsed: &mut dyn document::Document, edits: &[Edit]) {
    for edit in edits {
        parsed.edit(edit).unwrap();
    }
}

fn migrations() {
    let app = App::builtin("hermes").unwrap();
    let catalog = count_catalog(&app);
    let home = MemoryHome {
        files: BTreeMap::from([("config.yaml".to_owned(), HOME.as_bytes().to_vec())]),
        ..MemoryHome::default()
    };
    let evaluation = count_evaluate(&app, &catalog, &home);
    assert_eq!(evaluation.outcome, HomeOutcome::Migrated);
}

#[inline(never)]
fn count_catalog(app: &App) -> Catalog {
    Catalog::load(app, &[]).unwrap()
}

#[inline(never)]
fn count_evaluate(app: &App, catalog: &Catalog, home: &MemoryHome) -> Evaluation {
    evaluate(app, catalog, home, Some(50)).0
}

fn plans() {
    let table = count_table();
    let inventory = inventory();
    let wishes = Wishes {
        restart: RestartWhen::Stale,
        migrate: true,
        native: false,
        to: None,
        policy: Policy::default(),
    };
    let caller = Account {
        uid: 0,
        gid: 0,
        name: "root".into(),
        home: "/root".into(),
    };
    let names = BTreeMap::from([(1001, "ann".to_owned())]);
    let aims = count_targets(&inventory);
    assert!(aims.values().all(|target| target.expected == Some(50)));
    let evaluation = Evaluation::without_steps(String::new(), HomeOutcome::Current, String::new());
    let evaluations = inventory.homes.iter().map(|home| {
        let id = home.id.clone();
        (
            home.id.clone(),
            Evaluation {
                id,
                ..evaluation.clone()
            },
        )
    });
    let given = Given {
        inventory: &inventory,
        targets: aims,
        evaluations: evaluations.collect(),
        table: &table,
        wishes: &wishes,
        owed: &[],
        caller: &caller,
        names: &names,
        waited: false,
    };
    let plan = count_plan(given);
    assert_eq!(plan.homes.len(), HOMES);
    let decision = Decision::new(RuntimeOutcome::Current, "");
    let outcomes: Vec<Outcome> = plan
        .runtimes
        .iter()
        .map(|_| Outcome {
            decision: decision.clone(),
            seen: None,
        })
        .collect();
    assert_eq!(count_reconcile(&plan, &outcomes), HOMES / 5);
}

#[inline(never)]
fn count_table() -> Table {
    Table::load(None, &[]).unwrap()
}

#[inline(never)]
fn count_targets(inventory: &Inventory) -> BTreeMap<String, fleet_update::plan::Target> {
    targets(inventory, None)
}

#[inline(never)]
fn count_plan(given: Given<'_>) -> Plan {
    Plan::new(given)
}

#[inline(never)]
fn count_reconcile(plan: &Plan, outcomes: &[Outcome]) -> usize {
    black_box(reconcile(plan, outcomes, plan)).len()
}

fn inventory() -> Inventory {
    let root = "/home/ann/.agent";
    let home = |number: usize| -> Home {
        typed(json!({
            "id": format!("{number:016x}"), "profile": format!("p{number}"), "path": format!("{root}/profiles/p{number}"),
            "root": root, "uid": 1001, "file_id": [1, number], "status": "configured", "found_by": [], "updater": null,
        }))
    };
    Inventory {
        homes: (0..HOMES).map(home).collect(),
        installs: vec![typed(json!({
            "id": "install", "path": "/opt/agent", "package": "/opt/agent/agent", "interpreter": null, "kind": "pip", "uid": 0, "version": "1.0", "config_version": 50,
            "changed": null, "roots": [], "updater": null,
        }))],
        runtimes: (0..HOMES / 5).map(runtime).collect(),
        ..Inventory::default()
    }
}

fn runtime(number: usize) -> Runtime {
    let unit = format!("agent-{number}.service");
    let group = format!("/user.slice/user-1001.slice/user@1001.service/app.slice/{unit}");
    let mut slot = serde_json::to_value(fleet_update::fleet::Unit::default()).unwrap();
    let facts = json!({
        "manager": {"user": 1001}, "name": unit, "loaded": true, "load_state": "loaded", "active_state": "active",
        "sub_state": "running", "unit_file_state": "enabled", "main_pid": number + 10, "result": "success",
        "restart": "always", "condition_result": true, "dependencies_active": true,
    });
    for (key, value) in facts.as_object().unwrap() {
        slot[key] = value.clone();
    }
    typed(json!({
        "id": format!("user-1001/{unit}"), "kind": "gateway", "managed": true, "homes": [format!("{number:016x}")],
        "home_evidence": "flag", "uid": 1001, "install": "install", "supervisor": {"manager": "systemd", "scope": {"user": 1001}, "unit": unit},
        "unit": slot, "self_report": null, "unreadable": [], "foreign_namespace": false, "encloses_us": false,
        "process": {
            "incarnation": {"boot_id": "boot", "pid": number + 10, "start_ticks": number * 10, "pid_namespace": null},
            "uid": 1001, "parent": 1, "session": number + 10, "terminal": 0, "argv": ["agent"], "cgroup": group, "exe": null,
            "exe_deleted": false, "cwd": null, "env": [], "env_readable": true, "caught_signals": 512, "started_at_nanos": 1,
        },
    }))
}

fn typed<T: serde::de::DeserializeOwned>(value: Json) -> T {
    serde_json::from_value(value).unwrap()
}

fn audit() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let world = World::read().unwrap();
    let mut store = Store::open(&world, &folder.path().join("state")).unwrap();
    let event = |number: u64| Event {
        run: "run".into(),
        tenant: "acme".into(),
        kind: "home-committed".into(),
        payload: json!({"home": format!("h{number}"), "outcome": "migrated", "from": "12", "to": 50}),
    };
    let events: Vec<Event> = (0..1000).map(event).collect();
    store.append("bench", &events).unwrap();
    let mut copy = String::new();
    store.export(&mut |lines| copy.push_str(lines)).unwrap();
    assert_eq!(count_audit(copy.as_bytes()), 1000);
}

#[inline(never)]
fn count_audit(copy: &[u8]) -> u64 {
    verify_copy(copy).unwrap().events
}
