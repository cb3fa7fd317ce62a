//! The rows of a receipt after the second look at the fleet: nothing stays an outcome that the fleet
//! does not show.

use std::collections::{BTreeMap, BTreeSet};

use super::look::{Look, look_to_prove};
use super::opening::{fill_runtimes, user_name};
use super::{Session, debts, hook, opening};
use crate::fleet::Collector;
use crate::migrate::{Evaluation, HomeOutcome};
use crate::plan::PlannedHome;
use crate::plan::decide::RuntimeOutcome;
use crate::receipt::{Debt, FileRow, Receipt, RuntimeRow, rows};
use crate::screen;
use crate::verify::reconcile::{Outcome, Settled, reconcile};

/// Takes the inventory again and settles every row by what runs now.
pub fn close(session: &Session, first: &Look, outcomes: &[Outcome], receipt: &mut Receipt) {
    let owed = debts::owed_of(receipt);
    let second = match look_to_prove(session, &owed, first) {
        Ok(second) => second,
        Err(error) => {
            // Without a second look nothing is proved.
            fill_runtimes(session, receipt, first, outcomes);
            for row in &mut receipt.runtimes {
                row.outcome = RuntimeOutcome::Unaccounted;
                row.reason = "the fleet could not be looked at again".into();
            }
            let problem = Collector::unverified(
                "second inventory",
                session.world.account.uid,
                error.to_string(),
            );
            receipt.collectors.push(rows::collector(&problem));
            return;
        }
    };
    let settled = reconcile(&first.plan, outcomes, &second.plan);
    let profiles = opening::profiles(first)
        .into_iter()
        .chain(opening::profiles(&second))
        .collect();
    receipt.runtimes = settled
        .iter()
        .map(|row| settled_row(session, row, &profiles))
        .collect();
    hook::excuse_shutdown(session, receipt);
    settle_homes(session, receipt, &second);
    let collectors: BTreeSet<(String, String)> = receipt
        .collectors
        .iter()
        .map(|row| (row.name.clone(), row.outcome.clone()))
        .collect();
    let new = second
        .inventory
        .collectors
        .iter()
        .map(rows::collector)
        .filter(|row| !collectors.contains(&(row.name.clone(), row.outcome.clone())));
    receipt.collectors.extend(new.collect::<Vec<_>>());
    for note in second.inventory.notes.iter().map(|note| screen::text(note)) {
        if !receipt.notes.contains(&note) {
            receipt.notes.push(note);
        }
    }
    // What is still owed is what still lives. A write that could not be made durable or undone is owed, too.
    let holds = |debt: &Debt| {
        second.plan.homes.iter().any(|home| {
            home.home.path == debt.home
                && home.evaluation.config_sha256.as_ref() == Some(&debt.sha256)
        })
    };
    receipt.debts.retain(|debt| {
        !session.scene.shows_runtimes()
            || (debt.written || holds(debt))
                && second.inventory.runtimes.iter().any(|runtime| {
                    runtime
                        .process
                        .as_ref()
                        .is_some_and(|process| process.incarnation.same_life(&debt.incarnation))
                })
    });
}

fn settled_row(
    session: &Session,
    row: &Settled<'_>,
    profiles: &BTreeMap<&str, &str>,
) -> RuntimeRow {
    let user = user_name(session, row.planned.runtime.uid);
    rows::runtime(
        row.planned,
        &row.decision,
        row.seen,
        row.now,
        (&user, profiles),
    )
}

/// A home that was written must still hold what was written, one that was fine must be so; one that
/// appeared is a row, too.
fn settle_homes(session: &Session, receipt: &mut Receipt, second: &Look) {
    let now: BTreeMap<&str, &PlannedHome> = second
        .plan
        .homes
        .iter()
        .map(|home| (home.home.id.as_str(), home))
        .collect();
    for row in receipt.homes.iter_mut().filter(|row| row.done) {
        let now = now.get(row.id.as_str()).map(|home| &home.evaluation);
        // A rollback may have put back other files alone.
        let mut files = row.files.iter();
        let config = files.find(|file| file.path == session.app.config.file);
        if let Some((outcome, reason)) = contradiction(row.outcome, config, now) {
            row.outcome = outcome;
            row.reason = screen::text(&reason);
            row.remedy = Some("look at what changed it, then run update again".into());
        }
    }
    let known: BTreeSet<String> = receipt.homes.iter().map(|row| row.id.clone()).collect();
    for home in second
        .plan
        .homes
        .iter()
        .filter(|home| !known.contains(&home.home.id))
    {
        let mut row = rows::home(home, &user_name(session, home.home.uid));
        if !row.done {
            row.outcome = HomeOutcome::Conflict;
            row.done = true;
            row.changes.clear();
            row.files.clear();
            row.remedy = Some("run update again".into());
        }
        row.reason = if row.reason.is_empty() {
            "appeared".into()
        } else {
            format!("appeared; {}", row.reason)
        };
        receipt.homes.push(row);
    }
}

/// What a home is instead, if what is seen of it now contradicts its row, and why; `config` is what was
/// written of its configuration.
fn contradiction(
    outcome: HomeOutcome,
    config: Option<&FileRow>,
    now: Option<&Evaluation>,
) -> Option<(HomeOutcome, String)> {
    match (outcome, now) {
        (HomeOutcome::Migrated, Some(now))
            if now.config_sha256.is_none() && now.outcome == HomeOutcome::Invalid =>
        {
            let reason = format!("written, and now: {}", now.reason);
            Some((HomeOutcome::Invalid, reason))
        }
        (HomeOutcome::Migrated, now) => {
            let holds = now.is_some_and(|now| {
                config.is_none_or(|file| now.config_sha256 == file.sha256_after)
            });
            let reason = "changed by somebody else after it was written";
            (!holds).then(|| (HomeOutcome::Conflict, reason.into()))
        }
        (HomeOutcome::Current | HomeOutcome::Unconfigured, Some(now)) => {
            let state = match now.outcome {
                HomeOutcome::Current | HomeOutcome::Unconfigured => return None,
                HomeOutcome::Migrated => "old".to_owned(),
                outcome => outcome.to_string(),
            };
            let reason = format!("changed by somebody else: it is {state} now");
            Some((HomeOutcome::Conflict, reason))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(outcome: HomeOutcome, digest: &str) -> Evaluation {
        let mut now = Evaluation::without_steps("home".into(), outcome, String::new());
        now.config_sha256 = Some(digest.to_owned());
        now
    }

    #[test]
    fn a_home_is_what_its_row_says_only_while_the_fleet_shows_it() {
        use HomeOutcome as O;
        let written = FileRow {
            path: "config.yaml".into(),
            sha256_before: None,
            sha256_after: Some("written".into()),
            snapshot: true,
        };
        let mut unreadable = now(O::Invalid, "");
        unreadable.config_sha256 = None;
        let cases = [
            (O::Migrated, Some(now(O::Current, "written")), None),
            (
                O::Migrated,
                Some(now(O::Current, "other")),
                Some(O::Conflict),
            ),
            (O::Migrated, Some(unreadable), Some(O::Invalid)),
            (O::Migrated, None, Some(O::Conflict)),
            (O::Current, Some(now(O::Current, "any")), None),
            (O::Current, Some(now(O::Migrated, "any")), Some(O::Conflict)),
            (O::Current, Some(now(O::Invalid, "any")), Some(O::Conflict)),
            (O::Unconfigured, Some(now(O::Current, "any")), None),
            (
                O::Unconfigured,
                Some(now(O::NewerThanCode, "any")),
                Some(O::Conflict),
            ),
            // Who removed a home that needed nothing left nothing to do.
            (O::Current, None, None),
            // What is not fine already stays what it is.
            (O::Invalid, Some(now(O::Current, "any")), None),
        ];
        for (outcome, now, expected) in cases {
            let found = contradiction(outcome, Some(&written), now.as_ref());
            assert_eq!(found.map(|found| found.0), expected, "{outcome}: {now:?}");
        }
        let other = now(O::Current, "other");
        assert_eq!(contradiction(O::Migrated, None, Some(&other)), None);
    }
}
