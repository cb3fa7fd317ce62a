//! What is owed: a restart for each life of a runtime that serves a home which was written after that
//! life began. Debts stand in the receipt, so a run that was killed leaves them to the next one, which
//! believes the live fleet and nothing else about what was paid.

use super::Session;
use super::look::Look;
use crate::migrate::HomeOutcome;
use crate::plan::decide::RuntimeOutcome;
use crate::plan::{Owed, PlannedHome};
use crate::receipt::{Debt, Receipt, Remembered};

/// What earlier runs owe, and what the last one left unfinished. Reads the newest receipt alone; one
/// that cannot be read is told as a note, since nothing depends on it that the live fleet does not show.
#[must_use]
pub fn owed(session: &Session) -> (Vec<String>, Vec<Owed>) {
    let last = match session.state.receipt_bytes("latest") {
        Ok(None) => return (Vec::new(), Vec::new()),
        Ok(Some(bytes)) => Remembered::parse(&bytes),
        Err(error) => Err(error),
    };
    let last = match last {
        Ok(last) => last,
        Err(error) => {
            let note = format!("the last receipt cannot be used: {error}");
            return (vec![note], Vec::new());
        }
    };
    let mut notes = Vec::new();
    if last.finished_at.is_none() {
        let migrated = last
            .homes
            .iter()
            .filter(|row| row.done && row.outcome == HomeOutcome::Migrated)
            .count();
        let restarted = last
            .runtimes
            .iter()
            .filter(|row| row.outcome == RuntimeOutcome::Restarted)
            .count();
        notes.push(format!(
            "run {} (started {}) was interrupted and left no verdict: of its {} homes {migrated} were recorded as migrated, of its {} runtimes {restarted} as restarted",
            last.run_id, last.started_at, last.homes.len(), last.runtimes.len()
        ));
    }
    let owed = last
        .debts
        .into_iter()
        .filter(|debt| debt.incarnation.boot_id == session.world.boot_id)
        .map(|debt| Owed {
            incarnation: debt.incarnation,
            home: debt.home,
            sha256: debt.sha256,
            written: debt.written,
        })
        .collect();
    (notes, owed)
}

/// What a receipt says is owed.
#[must_use]
pub fn owed_of(receipt: &Receipt) -> Vec<Owed> {
    let owed = receipt.debts.iter().map(|debt| Owed {
        incarnation: debt.incarnation.clone(),
        home: debt.home.clone(),
        sha256: debt.sha256.clone(),
        written: debt.written,
    });
    owed.collect()
}

/// Restarts that will be owed once the homes are written, and those that were and still are: one for
/// each life that serves such a home. A life that ended owes nothing; where no runtime is looked for,
/// all that was owed still is.
#[must_use]
pub fn debts(session: &Session, look: &Look, owed: &[Owed], run_id: &str) -> Vec<Debt> {
    let keep = |old: &Owed| Debt {
        incarnation: old.incarnation.clone(),
        home: old.home.clone(),
        sha256: old.sha256.clone(),
        written: old.written,
        run_id: run_id.to_owned(),
    };
    if !session.scene.shows_runtimes() {
        return owed.iter().map(keep).collect();
    }
    let mut debts = Vec::new();
    for planned in &look.plan.runtimes {
        let Some(process) = &planned.runtime.process else {
            continue;
        };
        for home in look
            .plan
            .homes
            .iter()
            .filter(|home| planned.runtime.homes.contains(&home.home.id))
        {
            if home.evaluation.outcome != HomeOutcome::Migrated {
                continue;
            }
            if let Some(sha256) = config_after(home) {
                debts.push(Debt {
                    incarnation: process.incarnation.clone(),
                    home: home.home.path.clone(),
                    sha256,
                    written: false,
                    run_id: run_id.to_owned(),
                });
            }
        }
        for old in owed
            .iter()
            .filter(|old| old.incarnation.same_life(&process.incarnation))
        {
            let is_there = debts
                .iter()
                .any(|debt| debt.home == old.home && debt.incarnation == old.incarnation);
            if !is_there {
                debts.push(keep(old));
            }
        }
    }
    debts
}

/// The digest that a home's configuration will have: the version stands in it, so it always changes.
fn config_after(home: &PlannedHome) -> Option<String> {
    let before = home.evaluation.config_sha256.as_ref();
    home.evaluation
        .files
        .iter()
        .find(|file| file.sha256_before.as_ref() == before && before.is_some())
        .map(|file| file.sha256_after.clone())
}
