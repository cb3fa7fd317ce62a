//! The writing half of a run: homes are locked, what will be written over is copied into a verified
//! snapshot, and only then does each owner write its homes.
//!
//! A home that cannot be locked, copied or written becomes a row; the others go on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::Session;
use super::apply::Run;
use super::journal::Journal;
use super::look::{Look, home_target, owner};
use crate::error::Result;
use crate::helper::{self, Subject};
use crate::migrate::home::{Commit, Committed, Fetch, Fetched, Planned};
use crate::migrate::{FileChange, HomeOutcome};
use crate::plan::PlannedHome;
use crate::plan::decide::Step;
use crate::receipt::{HomeRow, Receipt};
use crate::screen;
use crate::state::lock::{Asked, HomeLocks};
use crate::state::scope::Scope;
use crate::state::snapshots::{Copied, Pack};

/// How long another run may hold a home before it is left to it.
const HOME_PATIENCE: Duration = Duration::from_secs(10);

/// Reading or writing all homes of one owner takes no longer than this.
const OWNER_LIMIT: Duration = Duration::from_secs(300);

/// What the helper of an owner may take before it reads or writes the first home, and for each home. One
/// that its user stopped must not hold the others for as long as a thousand homes could take.
const START_LIMIT: Duration = Duration::from_secs(30);
const HOME_LIMIT: Duration = Duration::from_millis(500);

/// Migrates every pending home, and holds the locks of all homes that the run touches until they are
/// dropped.
///
/// # Errors
/// Only when the snapshot cannot be started or recorded at all; then nothing was changed.
pub fn run(run: &mut Run<'_>, look: &Look, receipt: &mut Receipt) -> Result<Vec<HomeLocks>> {
    let (session, interruption) = (run.session, run.interruption);
    let locks = lock_homes(session, &run.journal, look, receipt);
    let pending = pending_by_owner(look, receipt);
    if pending.is_empty() || interruption.signal().is_some() {
        return Ok(locks);
    }
    session.stage("snapshot");
    let pack = session
        .state
        .start_pack(&session.world, run.journal.run(), run.lock)?;
    snapshot(session, &run.journal, &pending, pack, receipt);
    run.journal.copied(receipt)?;
    let pending = pending_by_owner(look, receipt);
    if interruption.signal().is_none() {
        session.stage("migrate");
        commit(session, &run.journal, &pending, receipt);
    }
    mark_written(receipt);
    run.journal.written(receipt);
    Ok(locks)
}

/// How long an owner's helper may work on that many homes.
fn owner_limit(session: &Session, homes: usize) -> Duration {
    let homes = u32::try_from(homes).unwrap_or(u32::MAX);
    let all = START_LIMIT.saturating_add(HOME_LIMIT.saturating_mul(homes));
    all.min(OWNER_LIMIT).min(session.left())
}

/// Locks, as their owners, the homes that will be written and those whose runtimes will be restarted.
fn lock_homes(
    session: &Session,
    journal: &Journal<'_>,
    look: &Look,
    receipt: &mut Receipt,
) -> Vec<HomeLocks> {
    let served: BTreeSet<&str> = look
        .plan
        .runtimes
        .iter()
        .filter(|planned| matches!(planned.step, Step::Act(_)))
        .flat_map(|planned| planned.runtime.homes.iter().map(String::as_str))
        .collect();
    let mut by_owner: BTreeMap<u32, Vec<&PlannedHome>> = BTreeMap::new();
    for home in &look.plan.homes {
        if home.evaluation.outcome == HomeOutcome::Migrated
            || served.contains(home.home.id.as_str())
        {
            by_owner.entry(home.home.uid).or_default().push(home);
        }
    }
    // All are asked before the first is waited for: one that hangs costs its own time, not everybody's.
    let asked: Vec<_> = by_owner
        .into_iter()
        .map(|(uid, homes)| {
            let paths = homes.iter().map(|home| home.home.path.clone()).collect();
            let patience = HOME_PATIENCE.min(session.left());
            let owner = owner(session, uid);
            let subject = journal.subject(homes.iter().map(|home| &home.home));
            let asked = HomeLocks::ask(&session.world, &owner, paths, subject, patience);
            (homes, asked)
        })
        .collect();
    let mut locks = Vec::new();
    for (homes, asked) in asked {
        let answer = asked.and_then(Asked::answer);
        let (lock, held) = match answer {
            Ok((lock, held)) => (Some(lock), Ok(held)),
            Err(error) => (None, Err(error.to_string())),
        };
        locks.extend(lock);
        let held = held.map(|held| {
            let named = held.into_iter().map(|held| (held.home, held.refused));
            named.collect::<BTreeMap<_, _>>()
        });
        for home in homes {
            let refused = match &held {
                Err(error) => Some(error.clone()),
                Ok(held) => held
                    .get(&home.home.path)
                    .cloned()
                    .unwrap_or_else(|| Some("its lock was not taken".into())),
            };
            if let Some(refused) = refused {
                let reason = format!("locked: {refused}");
                end(receipt, &home.home.id, HomeOutcome::Conflict, &reason);
            }
        }
    }
    locks
}

/// The homes that are still to be migrated, by owner.
fn pending_by_owner<'a>(look: &'a Look, receipt: &Receipt) -> BTreeMap<u32, Vec<&'a PlannedHome>> {
    let open: BTreeSet<&str> = receipt
        .homes
        .iter()
        .filter(|row| !row.done)
        .map(|row| row.id.as_str())
        .collect();
    let mut by_owner: BTreeMap<u32, Vec<&PlannedHome>> = BTreeMap::new();
    for home in look
        .plan
        .pending()
        .filter(|home| open.contains(home.home.id.as_str()))
    {
        by_owner.entry(home.home.uid).or_default().push(home);
    }
    by_owner
}

/// What was copied so far, of all owners.
struct Copies {
    pack: Pack,
    done: BTreeSet<String>,
    problems: BTreeMap<String, String>,
}

/// Copies what will be written over, of all owners side by side. A home of which not every file is in the
/// verified pack is not written.
fn snapshot(
    session: &Session,
    journal: &Journal<'_>,
    pending: &BTreeMap<u32, Vec<&PlannedHome>>,
    pack: Pack,
    receipt: &mut Receipt,
) {
    let copies = Mutex::new(Copies {
        pack,
        done: BTreeSet::new(),
        problems: BTreeMap::new(),
    });
    std::thread::scope(|threads| {
        for (uid, homes) in pending {
            let scopes: Vec<(&PlannedHome, Scope)> = homes
                .iter()
                .map(|home| (*home, journal.scope(&home.home)))
                .collect();
            let subject = journal.subject(homes.iter().map(|home| &home.home));
            let copies = &copies;
            threads.spawn(move || copy(session, *uid, &scopes, subject, copies));
        }
    });
    let Copies {
        pack,
        done: copied,
        problems,
    } = copies.into_inner().unwrap_or_else(PoisonError::into_inner);
    let durable = pack.finish();
    for row in receipt.homes.iter_mut().filter(|row| !row.done) {
        let problem = match &durable {
            Err(error) => Some(error.to_string()),
            Ok(_) if copied.contains(&row.id) => None,
            Ok(_) => Some(
                problems
                    .get(&row.id)
                    .cloned()
                    .unwrap_or_else(|| "it was not copied".into()),
            ),
        };
        match problem {
            None => row.files.iter_mut().for_each(|file| file.snapshot = true),
            Some(problem) => settle(row, HomeOutcome::Failed, &format!("snapshot: {problem}")),
        }
    }
}

/// Copies the homes of one owner.
fn copy(
    session: &Session,
    uid: u32,
    homes: &[(&PlannedHome, Scope)],
    subject: Subject,
    copies: &Mutex<Copies>,
) {
    let task = Fetch {
        subject,
        homes: homes
            .iter()
            .map(|(home, _)| {
                let files = home.evaluation.files.iter();
                (
                    home_target(session, &home.home, &home.target),
                    files.map(|file| file.path.clone()).collect(),
                )
            })
            .collect(),
    };
    let asked: BTreeMap<&str, &(&PlannedHome, Scope)> = homes
        .iter()
        .map(|asked| (asked.0.home.id.as_str(), asked))
        .collect();
    let mut add = |fetched: Fetched| {
        // What a helper answers is hostile: only what was asked for, once, and as it was planned, counts.
        let Some((home, scope)) = asked.get(fetched.id.as_str()) else {
            return Ok(());
        };
        let mut copies = copies.lock().unwrap_or_else(PoisonError::into_inner);
        if copies.done.contains(&fetched.id) {
            return Ok(());
        }
        if !is_whole(home, &fetched) {
            let problem = fetched
                .error
                .unwrap_or_else(|| "it changed before it could be copied".into());
            copies.problems.insert(fetched.id, problem);
            return Ok(());
        }
        let from = home.evaluation.from.as_ref().map(ToString::to_string);
        for planned in &home.evaluation.files {
            // One that is not there yet stands in the pack as that.
            let file = fetched.files.iter().find(|file| file.path == planned.path);
            copies.pack.add(Copied {
                home: &fetched.id,
                scope,
                folder: &home.home.path,
                version: from.as_deref(),
                path: &planned.path,
                bytes: file.map(|file| file.bytes.as_slice()),
                sha256_after: &planned.sha256_after,
                mode: file.map_or(0, |file| file.mode),
                owner: file.map_or((0, 0), |file| (file.uid, file.gid)),
            })?;
        }
        copies.done.insert(fetched.id);
        Ok(())
    };
    let limit = owner_limit(session, homes.len());
    let answer = helper::perform(&session.world, &owner(session, uid), task, limit, &mut add);
    if let Err(error) = answer {
        let mut copies = copies.lock().unwrap_or_else(PoisonError::into_inner);
        for (home, _) in homes {
            copies
                .problems
                .entry(home.home.id.clone())
                .or_insert_with(|| error.to_string());
        }
    }
}

/// Whether every file that will be written was fetched, with the bytes that were planned on.
fn is_whole(home: &PlannedHome, fetched: &Fetched) -> bool {
    let planned = &home.evaluation.files;
    let is_as_planned = |file: &FileChange| {
        let found = fetched.files.iter().find(|found| found.path == file.path);
        found.map(|found| crate::digest::sha256(&found.bytes)) == file.sha256_before
    };
    fetched.error.is_none()
        && fetched.files.len() <= planned.len()
        && planned.iter().all(is_as_planned)
}

/// Lets each owner write its homes, side by side.
fn commit(
    session: &Session,
    journal: &Journal<'_>,
    pending: &BTreeMap<u32, Vec<&PlannedHome>>,
    receipt: &mut Receipt,
) {
    let told: Mutex<BTreeMap<String, Committed>> = Mutex::default();
    std::thread::scope(|scope| {
        for (uid, homes) in pending {
            let told = &told;
            let subject = journal.subject(homes.iter().map(|home| &home.home));
            scope.spawn(move || {
                let task = Commit {
                    subject,
                    app: session.app.clone(),
                    site_steps: session.site_steps.clone(),
                    homes: homes
                        .iter()
                        .map(|home| Planned {
                            target: home_target(session, &home.home, &home.target),
                            files: home.evaluation.files.clone(),
                            dirs: home.evaluation.dirs.clone(),
                            kept: home.evaluation.kept.clone(),
                        })
                        .collect(),
                };
                let asked: BTreeSet<&str> =
                    homes.iter().map(|home| home.home.id.as_str()).collect();
                // Of a home that a helper speaks of twice, the first word counts.
                let note = |committed: Committed| {
                    let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                    told.entry(committed.id.clone()).or_insert(committed);
                };
                let mut add = |committed: Committed| {
                    if asked.contains(committed.id.as_str()) {
                        note(committed);
                    }
                    Ok(())
                };
                let limit = owner_limit(session, homes.len());
                let failure =
                    helper::perform(&session.world, &owner(session, *uid), task, limit, &mut add)
                        .err();
                if let Some(error) = failure {
                    for id in &asked {
                        note(Committed {
                            id: (*id).to_owned(),
                            outcome: HomeOutcome::Failed,
                            // It may have ended between a rename and its word; the restart stays owed then.
                            reason: format!("{error}; whether it was written is not known"),
                            files: Vec::new(),
                        });
                    }
                }
            });
        }
    });
    let mut told = told.into_inner().unwrap_or_else(PoisonError::into_inner);
    for row in &mut receipt.homes {
        if let Some(committed) = told.remove(&row.id) {
            settle(row, committed.outcome, &committed.reason);
        }
    }
}

/// From here on the restarts that the written homes call for are owed.
pub fn mark_written(receipt: &mut Receipt) {
    let written: BTreeSet<_> = receipt
        .homes
        .iter()
        .filter(|row| row.done && row.outcome == HomeOutcome::Migrated)
        .map(|row| row.path.clone())
        .collect();
    for debt in &mut receipt.debts {
        debt.written |= written.contains(&debt.home);
    }
}

/// Says in a home's row what became of it.
pub fn end(receipt: &mut Receipt, id: &str, outcome: HomeOutcome, reason: &str) {
    if let Some(row) = receipt.homes.iter_mut().find(|row| row.id == id) {
        settle(row, outcome, reason);
    }
}

/// Says in a row what became of its home; one that was not written lists no change.
pub fn settle(row: &mut HomeRow, outcome: HomeOutcome, reason: &str) {
    row.outcome = outcome;
    row.done = true;
    row.reason = screen::text(reason);
    if outcome != HomeOutcome::Migrated {
        // Nothing of it was changed, so nothing of it is listed as changed.
        row.changes.clear();
        row.files.clear();
        row.remedy =
            Some("run update again; if it fails again, look at what the reason names".into());
    }
}
