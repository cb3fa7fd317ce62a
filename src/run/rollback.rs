//! `update rollback`: puts back what a run wrote over, where nobody changed it since.
//!
//! It is a run like any other: locked, planned, recorded, copied first, and what serves the homes is
//! restarted. A home is put back only if every file that the run wrote, made or removed still is as the run left it, and
//! its code expects the version from before; else it is a conflict, and nothing of it is written. A file that the
//! run made goes, one that it removed comes back with its owner and permissions. A file that it wrote keeps those that
//! it has by now: who tightened them since meant it. Databases are never rolled back, and folders stay.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use super::apply::{self, Run};
use super::look::{Look, home_target, look, owner};
use super::{Session, closing, debts, journal, migrate, opening};
use crate::document::write::Ownership;
use crate::error::{Error, Kind, Result};
use crate::helper::{self, Subject};
use crate::migrate::HomeOutcome;
use crate::migrate::home::{Fetch, Fetched, HomeTarget, Restore, RestoreFile, Restored, Was};
use crate::plan::PlannedHome;
use crate::receipt::{Debt, FileRow, Receipt};
use crate::screen;
use crate::state::lock::HomeLocks;
use crate::state::snapshots::{Copied, Entry};

/// How the reason of a home starts that was put back.
pub const PUT_BACK: &str = "put back";

/// How long another run may hold a home before it is left to it.
const HOME_PATIENCE: Duration = Duration::from_secs(10);

/// Reading or writing homes of one owner takes no longer than this.
const OWNER_LIMIT: Duration = Duration::from_secs(300);

/// A message to a helper holds no more bytes of files than this.
const MESSAGE: u64 = 4 << 20;

/// Puts back what run `of_run` wrote over.
///
/// # Errors
/// When that run left no snapshot, and as for any run.
pub fn run(session: &Session, of_run: &str) -> Result<u8> {
    let entries: Vec<Entry> = session
        .state
        .pack_index(of_run)?
        .into_iter()
        .filter(|entry| session.only_homes.is_empty() || session.only_homes.contains(&entry.folder))
        .collect();
    if entries.is_empty() {
        return Err(Error::new(
            Kind::Input,
            format!("run {of_run} wrote nothing there"),
        ));
    }
    let content = journal::content(session, "rollback", Some(of_run));
    let folders: BTreeSet<PathBuf> = entries.iter().map(|entry| entry.folder.clone()).collect();
    let narrow = session.narrowed(folders.into_iter().collect());
    apply::locked(&narrow, &content, |run| roll_back(run, of_run, &entries))
}

fn roll_back(run: &mut Run<'_>, of_run: &str, entries: &[Entry]) -> Result<u8> {
    let session = run.session;
    let (history, owed) = debts::owed(session);
    session.stage("inventory");
    let (first, moved) = apply::look_from_outside(session, &owed)?;
    let mut receipt = opening::open(session, &first, run.journal.run());
    receipt.notes.extend(history.into_iter().chain(moved));
    receipt.notes.push(format!(
        "rollback of run {of_run}; databases are never rolled back: what a newer release wrote into them stays"
    ));
    run.identify(&mut receipt)?;
    if let Some(refusal) = apply::refusal(&first) {
        return run.refuse(&first, receipt, refusal);
    }
    let homes = choose(run, &first, entries, &mut receipt);
    receipt.debts = debts::debts(session, &first, &owed, run.journal.run());
    owe(session, &first, &homes, &mut receipt);
    run.journal.opened(&first, &receipt)?;
    run.write(&receipt)?;

    let locks = lock(run, &homes, &mut receipt);
    copy(run, &homes, &mut receipt)?;
    run.journal.copied(&receipt)?;
    put_back(run, of_run, &homes, &mut receipt);
    migrate::mark_written(&mut receipt);
    run.journal.written(&receipt);
    run.write(&receipt)?;

    // Only now does the fleet show what is stale: what started before its home was put back.
    let second = look(session, &debts::owed_of(&receipt), true)?;
    receipt.runtimes = opening::open(session, &second, run.journal.run()).runtimes;
    let outcomes = run.restart(&second, &mut receipt);
    session.stage("verify");
    closing::close(session, &second, &outcomes, &mut receipt);
    drop(locks);
    run.finish(receipt)
}

/// A home that is to be put back, with its files in the pack.
struct Chosen<'a> {
    planned: &'a PlannedHome,
    entries: Vec<&'a Entry>,
}

/// Which homes may be put back; the rows of the others say why not.
fn choose<'a>(
    run: &Run<'_>,
    look: &'a Look,
    entries: &'a [Entry],
    receipt: &mut Receipt,
) -> Vec<Chosen<'a>> {
    let mut chosen = Vec::new();
    for (planned, row) in look.plan.homes.iter().zip(&mut receipt.homes) {
        row.steps.clear();
        row.changes.clear();
        row.files.clear();
        row.failures.clear();
        let mine: Vec<&Entry> = entries
            .iter()
            .filter(|entry| entry.home == row.id)
            .collect();
        if mine.is_empty() {
            row.outcome = HomeOutcome::Skipped;
            row.reason = "the run wrote nothing here".into();
            row.done = true;
            continue;
        }
        let scope = run.journal.scope(&planned.home).name();
        let before = mine[0].version.clone();
        let expected = planned.target.expected.map(|version| version.to_string());
        let conflict = if mine.iter().any(|entry| entry.scope != scope) {
            Some("the snapshot belongs to another scope".to_owned())
        } else if before.is_none() || before != expected {
            let word =
                |version: Option<String>| version.unwrap_or_else(|| "none that is known".into());
            Some(format!(
                "the snapshot has version {}, and the code expects {}",
                word(before),
                word(expected)
            ))
        } else {
            let updater = planned.home.updater.as_ref();
            updater.map(|updater| format!("updater: {updater}"))
        };
        if let Some(reason) = conflict {
            migrate::settle(row, HomeOutcome::Conflict, &reason);
            continue;
        }
        row.outcome = HomeOutcome::Migrated;
        row.done = false;
        row.reason = PUT_BACK.into();
        row.remedy = None;
        row.to = planned.target.expected;
        row.files = mine
            .iter()
            .map(|entry| FileRow {
                path: entry.path.clone(),
                sha256_before: entry.left().map(str::to_owned),
                sha256_after: entry.sha256.clone(),
                snapshot: false,
            })
            .collect();
        chosen.push(Chosen {
            planned,
            entries: mine,
        });
    }
    chosen
}

/// A life that serves a home which is about to be put back owes a restart.
fn owe(session: &Session, look: &Look, homes: &[Chosen<'_>], receipt: &mut Receipt) {
    for runtime in &look.plan.runtimes {
        let Some(process) = &runtime.runtime.process else {
            continue;
        };
        for home in homes
            .iter()
            .filter(|home| runtime.runtime.homes.contains(&home.planned.home.id))
        {
            let config = home
                .entries
                .iter()
                .find(|entry| entry.path == session.app.config.file);
            let Some(sha256) = config
                .or(home.entries.first())
                .and_then(|entry| entry.sha256.clone())
            else {
                continue;
            };
            // What holds it already was put back before: who did that owed it, and whoever started since has it.
            if home.planned.evaluation.config_sha256.as_ref() == Some(&sha256) {
                continue;
            }
            let path = &home.planned.home.path;
            receipt
                .debts
                .retain(|debt| debt.home != *path || debt.incarnation != process.incarnation);
            receipt.debts.push(Debt {
                incarnation: process.incarnation.clone(),
                home: path.clone(),
                sha256,
                written: false,
                run_id: receipt.run_id.clone(),
            });
        }
    }
}

fn by_owner<'h, 'a>(
    homes: &'h [Chosen<'a>],
    receipt: &Receipt,
) -> BTreeMap<u32, Vec<&'h Chosen<'a>>> {
    let mut owners: BTreeMap<u32, Vec<&Chosen<'a>>> = BTreeMap::new();
    for home in homes {
        let is_open = |row: &crate::receipt::HomeRow| row.id == home.planned.home.id && !row.done;
        if receipt.homes.iter().any(is_open) {
            owners.entry(home.planned.home.uid).or_default().push(home);
        }
    }
    owners
}

/// Whose these homes are, for the helper of their owner.
fn subject(run: &Run<'_>, homes: &[&Chosen<'_>]) -> Subject {
    let homes = homes.iter().map(|chosen| &chosen.planned.home);
    run.journal.subject(homes)
}

fn lock(run: &Run<'_>, homes: &[Chosen<'_>], receipt: &mut Receipt) -> Vec<HomeLocks> {
    let session = run.session;
    let mut locks = Vec::new();
    for (uid, homes) in by_owner(homes, receipt) {
        let paths = homes
            .iter()
            .map(|home| home.planned.home.path.clone())
            .collect();
        let subject = subject(run, &homes);
        let owner = owner(session, uid);
        let held = match HomeLocks::take(&session.world, &owner, paths, subject, HOME_PATIENCE) {
            Ok((lock, held)) => {
                locks.push(lock);
                held
            }
            Err(_) => Vec::new(),
        };
        for home in homes {
            let held = held.iter().find(|held| held.home == home.planned.home.path);
            let refused = held.map_or(Some("its lock was not taken"), |held| {
                held.refused.as_deref()
            });
            if let Some(refused) = refused {
                let reason = format!("locked: {refused}");
                migrate::end(
                    receipt,
                    &home.planned.home.id,
                    HomeOutcome::Conflict,
                    &reason,
                );
            }
        }
    }
    locks
}

/// Copies what is there now, which has to be what the run wrote: this rollback can be rolled back, too.
fn copy(run: &Run<'_>, homes: &[Chosen<'_>], receipt: &mut Receipt) -> Result<()> {
    let session = run.session;
    let owners = by_owner(homes, receipt);
    if owners.is_empty() {
        return Ok(());
    }
    session.stage("snapshot");
    let mut pack = session
        .state
        .start_pack(&session.world, run.journal.run(), run.lock)?;
    let mut copied = BTreeSet::new();
    let mut done = BTreeSet::new();
    let mut problems = BTreeMap::new();
    for (uid, homes) in owners {
        let target = |home: &&Chosen<'_>| target(session, home);
        let files = |home: &&Chosen<'_>| {
            home.entries
                .iter()
                .map(|entry| entry.path.clone())
                .collect()
        };
        let task = Fetch {
            subject: subject(run, &homes),
            homes: homes
                .iter()
                .map(|home| (target(home), files(home)))
                .collect(),
        };
        let mut add = |fetched: Fetched| {
            let Some(home) = homes.iter().find(|home| home.planned.home.id == fetched.id) else {
                return Ok(());
            };
            let found = |entry: &Entry| fetched.files.iter().find(|file| file.path == entry.path);
            let now = |entry: &Entry| found(entry).map(|file| crate::digest::sha256(&file.bytes));
            // A rollback that was killed put back some of them already.
            let is_back = |entry: &Entry| now(entry) == entry.sha256;
            let changed = home
                .entries
                .iter()
                .find(|entry| !is_back(entry) && now(entry).as_deref() != entry.left());
            let reason = changed.map(|entry| {
                let path = screen::text(&entry.path);
                format!("{path} was changed since")
            });
            if let Some(reason) = fetched.error.clone().or(reason) {
                problems.insert(fetched.id, reason);
                return Ok(());
            }
            if home.entries.iter().all(|entry| is_back(entry)) {
                done.insert(fetched.id);
                return Ok(());
            }
            let scope = run.journal.scope(&home.planned.home);
            for entry in &home.entries {
                // One that is not there now stands in the pack as that.
                let file = found(entry);
                pack.add(Copied {
                    home: &fetched.id,
                    scope: &scope,
                    folder: &home.planned.home.path,
                    version: home.planned.evaluation.from.as_deref(),
                    path: &entry.path,
                    bytes: file.map(|file| file.bytes.as_slice()),
                    sha256_after: entry.sha256.as_deref().unwrap_or_default(),
                    mode: file.map_or(0, |file| file.mode),
                    owner: file.map_or((0, 0), |file| (file.uid, file.gid)),
                })?;
            }
            copied.insert(fetched.id.clone());
            Ok(())
        };
        let limit = OWNER_LIMIT.min(session.left());
        let asked = helper::perform(&session.world, &owner(session, uid), task, limit, &mut add);
        if let Err(error) = asked {
            for home in homes {
                problems
                    .entry(home.planned.home.id.clone())
                    .or_insert_with(|| error.to_string());
            }
        }
    }
    pack.finish()?;
    for row in receipt.homes.iter_mut().filter(|row| !row.done) {
        if done.contains(&row.id) {
            migrate::settle(row, HomeOutcome::Current, "put back before");
            row.remedy = None;
        } else if copied.contains(&row.id) {
            row.files.iter_mut().for_each(|file| file.snapshot = true);
        } else {
            let reason = problems
                .remove(&row.id)
                .unwrap_or_else(|| "it was not copied".into());
            migrate::settle(row, HomeOutcome::Conflict, &reason);
        }
    }
    Ok(())
}

/// Lets each owner put its homes back.
fn put_back(run: &Run<'_>, of_run: &str, homes: &[Chosen<'_>], receipt: &mut Receipt) {
    let session = run.session;
    session.stage("put back");
    for (uid, homes) in by_owner(homes, receipt) {
        for part in parts(&homes) {
            let subject = subject(run, &part);
            let mut tasks = Vec::new();
            for home in part {
                match files(run, of_run, home) {
                    Ok(files) => tasks.push((target(session, home), files)),
                    Err(error) => {
                        let id = &home.planned.home.id;
                        migrate::end(receipt, id, HomeOutcome::Failed, &error.to_string());
                    }
                }
            }
            if tasks.is_empty() || run.interruption.signal().is_some() {
                continue;
            }
            let ids: Vec<String> = tasks.iter().map(|(target, _)| target.id.clone()).collect();
            let task = Restore {
                subject,
                app: session.app.clone(),
                homes: tasks,
            };
            let mut told = Vec::new();
            let mut add = |restored: Restored| {
                told.push(restored);
                Ok(())
            };
            let limit = OWNER_LIMIT.min(session.left());
            let asked =
                helper::perform(&session.world, &owner(session, uid), task, limit, &mut add);
            for id in ids {
                let answer = told.iter().find(|restored| restored.id == id);
                match (answer.map(|restored| &restored.failure), &asked) {
                    (Some(None), _) => migrate::end(receipt, &id, HomeOutcome::Migrated, PUT_BACK),
                    (Some(Some(failed)), _) => {
                        migrate::end(receipt, &id, failed.outcome, &failed.reason)
                    }
                    (None, Err(error)) => {
                        migrate::end(receipt, &id, HomeOutcome::Failed, &error.to_string())
                    }
                    (None, Ok(())) => {
                        migrate::end(receipt, &id, HomeOutcome::Failed, "no answer about it")
                    }
                }
            }
        }
    }
    for row in receipt.homes.iter_mut().filter(|row| !row.done) {
        migrate::settle(
            row,
            HomeOutcome::Failed,
            "interrupted: the run was told to end",
        );
    }
}

fn target(session: &Session, home: &Chosen<'_>) -> HomeTarget {
    home_target(session, &home.planned.home, &home.planned.target)
}

/// The bytes of a home's files, from the pack, for the home's own scope.
fn files(run: &Run<'_>, of_run: &str, home: &Chosen<'_>) -> Result<Vec<RestoreFile>> {
    let scope = run.journal.scope(&home.planned.home);
    home.entries
        .iter()
        .map(|entry| {
            let was = if entry.sha256.is_some() {
                Was::Present {
                    bytes: run.session.state.pack_bytes(of_run, entry, &scope)?,
                    access: Ownership {
                        mode: entry.mode,
                        uid: entry.uid,
                        gid: entry.gid,
                    },
                }
            } else {
                Was::Absent
            };
            Ok(RestoreFile {
                path: entry.path.clone(),
                was,
                sha256_now: entry.left().map(str::to_owned),
            })
        })
        .collect()
}

/// Homes in parts that fit into a message each.
fn parts<'h, 'a>(homes: &[&'h Chosen<'a>]) -> Vec<Vec<&'h Chosen<'a>>> {
    let mut parts: Vec<Vec<&Chosen<'a>>> = Vec::new();
    let mut size = u64::MAX;
    for home in homes {
        let length: u64 = home.entries.iter().map(|entry| entry.length).sum();
        size = size.saturating_add(length);
        if size > MESSAGE {
            parts.push(Vec::new());
            size = length;
        }
        if let Some(part) = parts.last_mut() {
            part.push(*home);
        }
    }
    parts
}
