//! How long a home takes: of 4 KB and of 76 KB in memory, and a thousand on disk with every sync, beside the
//! bare writes of the same bytes.
//!
//! `cargo bench --bench migrate`. The homes are made here, in the shape of real ones: written densely, or with
//! the comments of a shipped example. `UPDATE_REAL_CONFIGS` names a folder with the real examples.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, prints what it counted, and makes homes of its own"
)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use divan::Bencher;
use fleet_update::app::App;
use fleet_update::helper::{Subject, Task};
use fleet_update::migrate::home::{
    Commit, Committed, Evaluate, Fetch, Fetched, HomeTarget, Planned,
};
use fleet_update::migrate::{Catalog, HomeOutcome, MemoryHome, evaluate};
use fleet_update::state::scope::Scope;
use fleet_update::state::snapshots::Copied;
use fleet_update::state::{Lock, State};
use fleet_update::world::World;

fn main() {
    divan::main();
    let filters: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    if is_bench
        && (filters.is_empty()
            || filters
                .iter()
                .any(|filter| "bare_writes".contains(filter.as_str())))
    {
        compare_with_bare_writes();
    }
}

/// A commented configuration of about `size` bytes at version `from`.
fn config(size: usize, from: u32) -> String {
    let mut text = format!("# a home\n_config_version: {from}\n");
    text += "delegation:\n  max_iterations: 50  # steps\n  max_concurrent_children: 3\n";
    text += "display:\n  background_process_notifications: all\n  skin: default\n";
    text += "platform_toolsets:\n  cli: [hermes-cli]\nplugins:\n  enabled: [a, b]\n";
    for number in 0.. {
        if text.len() >= size {
            break;
        }
        text += &format!(
            "\n# What section {number} is for, in a line of ordinary length that people write.\nsection_{number}:\n  # a key\n  enabled: true\n  name: \"value of {number}\"  # beside\n  list: [one, two, 3]\n  nested:\n    limit: {number}\n    text: plain words here\n"
        );
    }
    text
}

fn home(size: usize) -> MemoryHome {
    let files = BTreeMap::from([("config.yaml".to_owned(), config(size, 33).into_bytes())]);
    MemoryHome {
        files,
        ..MemoryHome::default()
    }
}

#[divan::bench(args = [4 << 10, 76 << 10])]
fn evaluate_33_to_50(bencher: Bencher<'_, '_>, size: usize) {
    let app = App::builtin("hermes").unwrap();
    let catalog = Catalog::load(&app, &[]).unwrap();
    let home = home(size);
    bencher.bench(|| {
        let (evaluation, after) = evaluate(&app, &catalog, &home, Some(50));
        assert_eq!(evaluation.outcome, HomeOutcome::Migrated);
        after
    });
}

/// A shipped example of 76 KB: nine lines of ten are comments.
fn commented(size: usize) -> MemoryHome {
    let mut text = config(2 << 10, 33);
    for number in 0.. {
        if text.len() >= size {
            break;
        }
        text += &"# What this is for, in a sentence of the length that shipped examples have.\n#\n"
            .repeat(8);
        text += &format!(
            "part_{number}:\n  enabled: true   # whether it is on\n  # unused: {number}\n"
        );
    }
    let files = BTreeMap::from([("config.yaml".to_owned(), text.into_bytes())]);
    MemoryHome {
        files,
        ..MemoryHome::default()
    }
}

#[divan::bench]
fn evaluate_33_to_50_commented(bencher: Bencher<'_, '_>) {
    let app = App::builtin("hermes").unwrap();
    let catalog = Catalog::load(&app, &[]).unwrap();
    let home = commented(76 << 10);
    bencher.bench(|| evaluate(&app, &catalog, &home, Some(50)));
}

/// The example of July, if it is there.
#[divan::bench]
fn evaluate_33_to_50_july(bencher: Bencher<'_, '_>) {
    let app = App::builtin("hermes").unwrap();
    let catalog = Catalog::load(&app, &[]).unwrap();
    let folder = std::env::var_os("UPDATE_REAL_CONFIGS").map(std::path::PathBuf::from);
    let Some(text) = folder
        .and_then(|folder| std::fs::read_to_string(folder.join("cli-config-2026-07.yaml")).ok())
    else {
        eprintln!("SKIPPED: UPDATE_REAL_CONFIGS names no folder with the example of July");
        return;
    };
    let text = format!("_config_version: 33\n{text}").into_bytes();
    let home = MemoryHome {
        files: BTreeMap::from([("config.yaml".to_owned(), text)]),
        ..MemoryHome::default()
    };
    bencher.bench(|| {
        let (evaluation, after) = evaluate(&app, &catalog, &home, Some(50));
        assert_eq!(evaluation.outcome, HomeOutcome::Migrated);
        after
    });
}

#[divan::bench(args = [4 << 10, 76 << 10])]
fn evaluate_current(bencher: Bencher<'_, '_>, size: usize) {
    let app = App::builtin("hermes").unwrap();
    let catalog = Catalog::load(&app, &[]).unwrap();
    let home = home(size);
    bencher.bench(|| evaluate(&app, &catalog, &home, Some(33)));
}

#[divan::bench]
fn load_the_catalog() -> Catalog {
    Catalog::load(&App::builtin("hermes").unwrap(), &[]).unwrap()
}

/// A thousand homes of 4 KB, 12 to 33, with their snapshot and every sync, beside the bare writes of the same
/// bytes: each round does all in turn, so that a busy machine is busy for all of them. Prints the medians.
fn compare_with_bare_writes() {
    const ROUNDS: usize = 5;
    let world = World::read().unwrap();
    let mut times: [Vec<Duration>; 3] = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        let new = migrated(&config(4 << 10, 12));
        let (folder, homes) = thousand();
        times[0].push(timed(|| bare_writes(folder.path(), &homes, &new, 1)));
        let (folder, homes) = thousand();
        times[1].push(timed(|| bare_writes(folder.path(), &homes, &new, 8)));
        let (folder, homes) = thousand();
        times[2].push(timed(|| migrate(&world, folder.path(), homes)));
    }
    let [one, eight, ours] = times.map(|mut times| {
        times.sort();
        times[ROUNDS / 2].as_secs_f64()
    });
    println!("1,000 homes, median of {ROUNDS} rounds:");
    println!("  bare writes, one after another  {one:.3} s");
    println!("  bare writes, 8 side by side     {eight:.3} s");
    println!("  migrated, 8 side by side        {ours:.3} s");
    println!(
        "  ratio to bare writes            {:.2} and {:.2}",
        ours / one,
        ours / eight
    );
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// What a home's configuration becomes.
fn migrated(before: &str) -> Vec<u8> {
    let app = App::builtin("hermes").unwrap();
    let catalog = Catalog::load(&app, &[]).unwrap();
    let home = MemoryHome {
        files: BTreeMap::from([("config.yaml".to_owned(), before.as_bytes().to_vec())]),
        ..MemoryHome::default()
    };
    let (_, mut after) = evaluate(&app, &catalog, &home, Some(33));
    after.remove("config.yaml").unwrap()
}

/// Copies every file into one that is synced, then replaces each: read, write beside it, sync, rename, sync
/// the folder.
fn bare_writes(folder: &Path, homes: &[HomeTarget], new: &[u8], writers: usize) {
    let mut copy = File::create(folder.join("copy")).unwrap();
    for home in homes {
        let bytes = std::fs::read(home.path.join("config.yaml")).unwrap();
        copy.write_all(&bytes).unwrap();
    }
    copy.sync_all().unwrap();
    File::open(folder).unwrap().sync_all().unwrap();
    std::thread::scope(|scope| {
        for homes in homes.chunks(homes.len().div_ceil(writers)) {
            scope.spawn(move || {
                for home in homes {
                    let name = home.path.join("config.yaml");
                    assert!(!std::fs::read(&name).unwrap().is_empty());
                    let beside = home.path.join(".new");
                    let mut file = File::create(&beside).unwrap();
                    file.write_all(new).unwrap();
                    file.sync_all().unwrap();
                    std::fs::rename(&beside, &name).unwrap();
                    File::open(&home.path).unwrap().sync_all().unwrap();
                }
            });
        }
    });
}

/// What a run does with homes: looks at each, copies them into a pack, writes them.
fn migrate(world: &World, folder: &Path, homes: Vec<HomeTarget>) {
    let app = App::builtin("hermes").unwrap();
    let look = Evaluate {
        app: app.clone(),
        site_steps: Vec::new(),
        homes: homes.clone(),
        keep: true,
    };
    let mut evaluations = Vec::new();
    let mut add = |evaluation| {
        evaluations.push(evaluation);
        Ok(())
    };
    look.perform(world, &mut add).unwrap();
    let state = State::at(&folder.join("state"));
    let lock = Lock::take(world, &folder.join("lock"), "run", Duration::ZERO).unwrap();
    state.prepare(world, &lock).unwrap();
    let mut pack = state.start_pack(world, "run", &lock).unwrap();
    let files = evaluations.iter().map(|evaluation| {
        let files = evaluation.files.iter();
        files.map(|file| file.path.clone()).collect()
    });
    let fetch = Fetch {
        homes: homes.iter().cloned().zip(files).collect(),
        subject: Subject::default(),
    };
    let scope = Scope::Profile("t".into(), "c".into(), "p".into());
    let mut add = |fetched: Fetched| {
        for file in &fetched.files {
            pack.add(Copied {
                home: &fetched.id,
                scope: &scope,
                folder,
                version: Some("12"),
                path: &file.path,
                bytes: Some(&file.bytes),
                sha256_after: &file.sha256,
                mode: file.mode,
                owner: (file.uid, file.gid),
            })?;
        }
        Ok(())
    };
    fetch.perform(world, &mut add).unwrap();
    assert_eq!(pack.finish().unwrap().len(), 1000);
    let planned = homes.into_iter().zip(evaluations);
    let commit = Commit {
        app,
        site_steps: Vec::new(),
        homes: planned
            .map(|(target, planned)| Planned {
                target,
                files: planned.files,
                dirs: planned.dirs,
                kept: planned.kept,
            })
            .collect(),
        subject: Subject::default(),
    };
    let mut done = 0;
    let mut count = |home: Committed| {
        assert_eq!(home.outcome, HomeOutcome::Migrated);
        done += 1;
        Ok(())
    };
    commit.perform(world, &mut count).unwrap();
    assert_eq!(done, 1000);
}

fn thousand() -> (tempfile::TempDir, Vec<HomeTarget>) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let text = config(4 << 10, 12);
    let homes = (0..1000).map(|number| {
        let path = folder.path().join(format!("h{number:04}"));
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("config.yaml"), &text).unwrap();
        HomeTarget {
            id: number.to_string(),
            path,
            within: None,
            expected: Some(33),
            native: None,
        }
    });
    let homes = homes.collect();
    (folder, homes)
}
