//! How long a home takes: one of 4 KB and one of 76 KB in memory, and a thousand on disk with every sync.
//!
//! `cargo bench --bench migrate`. The homes are made here, in the shape of real ones.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, prints what it counted, and makes homes of its own"
)]

use std::collections::BTreeMap;

use divan::Bencher;
use fleet_update::app::App;
use fleet_update::helper::Task;
use fleet_update::migrate::home::{Commit, Evaluate, HomeTarget};
use fleet_update::migrate::{Catalog, HomeOutcome, MemoryHome, evaluate};
use fleet_update::world::World;

fn main() {
    divan::main();
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

/// Evaluates and commits a thousand homes of 4 KB, 12 to 33, with every sync.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn commit_1000_homes_12_to_33(bencher: Bencher<'_, '_>) {
    let world = World::read().unwrap();
    bencher
        .with_inputs(thousand)
        .bench_values(|(folder, homes)| {
            let app = App::builtin("hermes").unwrap();
            let look = Evaluate {
                app: app.clone(),
                site_steps: Vec::new(),
                homes: homes.clone(),
            };
            let evaluations = look.perform(&world, &mut |()| Ok(())).unwrap();
            let planned = homes.into_iter().zip(evaluations);
            let homes = planned
                .map(|(home, planned)| (home, planned.files, planned.dirs))
                .collect();
            let mut done = 0;
            let commit = Commit {
                app,
                site_steps: Vec::new(),
                homes,
            };
            commit
                .perform(&world, &mut |home| {
                    assert_eq!(home.outcome, HomeOutcome::Migrated);
                    done += 1;
                    Ok(())
                })
                .unwrap();
            assert_eq!(done, 1000);
            folder
        });
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
        }
    });
    let homes = homes.collect();
    (folder, homes)
}
