//! A thousand generated homes on disk, looked at and written as a run does it: what every byte outside of a
//! change keeps, whatever a home holds.
//!
//! A quarter each is written with line feeds, with CRLF, with a BOM, and with both. The real programs judge the
//! meaning of such homes in `hermes_oracle`; this needs none of them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, prints what it counted, and makes homes of its own"
)]

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use fleet_update::app::App;
use fleet_update::document::{self, Value};
use fleet_update::helper::{Subject, Task};
use fleet_update::migrate::home::{Commit, Committed, Evaluate, HomeTarget, Planned};
use fleet_update::migrate::{Catalog, HomeOutcome, MemoryHome, evaluate};
use fleet_update::world::World;

#[path = "support/homes.rs"]
#[allow(
    dead_code,
    reason = "what a home was made for is asked in `hermes_oracle`"
)]
mod homes;

use homes::Generator;

const COUNT: usize = 1_000;
const TO: u32 = 50;
const MODES: [u32; 3] = [0o600, 0o640, 0o644];

/// How the same text is written.
#[derive(Debug, Clone, Copy)]
struct Notation {
    crlf: bool,
    bom: bool,
}

impl Notation {
    fn of(position: usize) -> Self {
        Self {
            crlf: position % 2 == 1,
            bom: position / 2 % 2 == 1,
        }
    }

    fn write(self, text: &[u8]) -> Vec<u8> {
        let text = std::str::from_utf8(text).unwrap();
        let text = if self.crlf {
            text.replace('\n', "\r\n")
        } else {
            text.to_owned()
        };
        let bom = if self.bom { "\u{feff}" } else { "" };
        format!("{bom}{text}").into_bytes()
    }
}

/// One home, and what the same home without CRLF and BOM becomes in memory.
struct Made {
    target: HomeTarget,
    before: MemoryHome,
    after: MemoryHome,
    expected: HomeOutcome,
    notation: Notation,
    mode: u32,
    owner: (u32, u32),
}

#[test]
fn a_thousand_homes_keep_every_byte_that_no_step_names() {
    let world = World::read().unwrap();
    let (app, catalog) = hermes();
    let scratch = tempfile::tempdir().unwrap();
    let mut generator = Generator::new(1_000, TO);
    let made: Vec<Made> = (0..COUNT)
        .map(|position| {
            let before = generator.next().home;
            make(&app, &catalog, scratch.path(), position, before)
        })
        .collect();
    let targets: Vec<HomeTarget> = made.iter().map(|home| home.target.clone()).collect();
    let look = Evaluate {
        app: app.clone(),
        site_steps: Vec::new(),
        homes: targets.clone(),
        keep: true,
    };
    let mut evaluations = Vec::new();
    let mut add = |evaluation| {
        evaluations.push(evaluation);
        Ok(())
    };
    look.perform(&world, &mut add).unwrap();
    let mut outcomes: BTreeMap<HomeOutcome, usize> = BTreeMap::new();
    for (home, evaluation) in made.iter().zip(&evaluations) {
        *outcomes.entry(evaluation.outcome).or_default() += 1;
        assert_eq!(
            evaluation.outcome, home.expected,
            "{}: {}",
            home.target.id, evaluation.reason
        );
    }
    println!("{COUNT} homes to {TO}: {outcomes:?}");
    assert!(outcomes[&HomeOutcome::Migrated] > COUNT / 2);
    let planned = targets.into_iter().zip(evaluations);
    let pending = planned.filter(|(_, evaluation)| evaluation.outcome == HomeOutcome::Migrated);
    let commit = Commit {
        app,
        site_steps: Vec::new(),
        homes: pending
            .map(|(target, planned)| Planned {
                target,
                files: planned.files,
                dirs: planned.dirs,
                kept: planned.kept,
            })
            .collect(),
        subject: Subject::default(),
    };
    let mut written = 0;
    let mut count = |home: Committed| {
        assert_eq!(
            home.outcome,
            HomeOutcome::Migrated,
            "{}: {}",
            home.id,
            home.reason
        );
        written += 1;
        Ok(())
    };
    commit.perform(&world, &mut count).unwrap();
    assert_eq!(written, outcomes[&HomeOutcome::Migrated]);
    let mut comments = 0;
    for home in &made {
        kept(home);
        comments += comments_kept(home);
    }
    println!("{comments} comments on lines of their own");
    assert!(comments > COUNT);
}

fn hermes() -> (App, Catalog) {
    let app = App::builtin("hermes").unwrap();
    let catalog = Catalog::load(&app, &[]).unwrap();
    (app, catalog)
}

fn make(app: &App, catalog: &Catalog, scratch: &Path, position: usize, before: MemoryHome) -> Made {
    let notation = Notation::of(position);
    let path = scratch.join(format!("h{position:04}"));
    let mode = MODES[position % MODES.len()];
    for dir in &before.folders {
        std::fs::create_dir_all(path.join(dir)).unwrap();
    }
    let own = std::fs::metadata(scratch).unwrap();
    // Only root can give files away.
    let owner = match own.uid() {
        0 => (1_000 + u32::try_from(position % 5).unwrap(), 2_000),
        uid => (uid, own.gid()),
    };
    for (name, bytes) in &before.files {
        let file = path.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, notation.write(bytes)).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        chown(&file, Some(owner.0), Some(owner.1)).unwrap();
    }
    let (evaluation, changed) = evaluate(app, catalog, &before, Some(TO));
    let mut after = before.clone();
    if evaluation.outcome == HomeOutcome::Migrated {
        after.files.extend(changed);
    }
    Made {
        target: HomeTarget {
            id: position.to_string(),
            path,
            within: None,
            expected: Some(TO),
            native: None,
        },
        before,
        after,
        expected: evaluation.outcome,
        notation,
        mode,
        owner,
    }
}

/// Every file has the bytes of its twin in its own notation, its mode and its owner; and nothing else is there.
fn kept(home: &Made) {
    for (name, bytes) in &home.after.files {
        let file = home.target.path.join(name);
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let found = std::fs::read(&file).unwrap();
        assert_eq!(
            shown(&found),
            shown(&home.notation.write(bytes)),
            "{name} of home {}, {:?}",
            home.target.id,
            home.notation
        );
        let meta = std::fs::metadata(&file).unwrap();
        assert_eq!(meta.mode() & 0o7777, home.mode, "{}", file.display());
        assert_eq!((meta.uid(), meta.gid()), home.owner, "{}", file.display());
    }
    let mut names: Vec<String> = std::fs::read_dir(&home.target.path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with('.') && name != ".env")
        .collect();
    names.sort();
    assert_eq!(names, Vec::<String>::new(), "home {}", home.target.id);
}

/// Every comment on a line of its own is there still, but those inside an entry of the root that is gone; says how many
/// there are.
fn comments_kept(home: &Made) -> usize {
    let before = std::str::from_utf8(&home.before.files["config.yaml"]).unwrap();
    let after = std::str::from_utf8(&home.after.files["config.yaml"]).unwrap();
    let sections = |text: &str| -> Vec<String> {
        let document = document::parse(document::Format::Yaml, text.as_bytes()).unwrap();
        let entries = document.value().as_map().unwrap().iter();
        entries
            .map(|(key, _): &(Value, Value)| key.key_text())
            .collect()
    };
    let left = sections(after);
    let mut section = String::new();
    let mut expected = Vec::new();
    for line in before.lines() {
        if let Some((key, _)) = line.split_once(':')
            && !line.starts_with([' ', '#', '-'])
        {
            section = key.to_owned();
        }
        let is_inside = line.starts_with(' ');
        if line.trim_start().starts_with('#') && (!is_inside || left.contains(&section)) {
            expected.push(line.trim());
        }
    }
    let mut found: Vec<&str> = after
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with('#'))
        .collect();
    let count = expected.len();
    expected.sort_unstable();
    found.sort_unstable();
    // What is inside an entry may also have moved along with it.
    for comment in expected {
        let place = found.iter().position(|other| *other == comment);
        assert!(place.is_some(), "{comment:?} is lost in\n{before}\n{after}");
        found.remove(place.unwrap());
    }
    count
}
