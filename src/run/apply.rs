//! The run itself, and the only file that knows its order:
//!
//! lock → inventory → plan → receipt opened → snapshot → migrate → restart → verify → inventory again →
//! reconcile → receipt closed → exit status.
//!
//! Each stage takes what the one before returned. What happens to one home or one runtime becomes a row
//! and stops nothing else; only what makes a true receipt impossible ends the run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::Value;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::journal::{self, Journal};
use super::look::{Look, is_blind, is_withheld, look_to_prove, look_until_settled};
use super::restarts::{self, Interruption};
use super::{Session, hook, migrate, notify};
use crate::cli::Trigger;
use crate::error::{Error, Kind, Result};
use crate::migrate::HomeOutcome;
use crate::plan::decide::{Decision, RuntimeOutcome};
use crate::plan::{Owed, PlannedRuntime, blocks};
use crate::receipt::text::{Style, render};
use crate::receipt::{
    Debt, Host, Invoker, Receipt, RuntimeRow, SCHEMA, Tool, Verdict, VerdictOutcome, rows,
};
use crate::restart::escape;
use crate::state::{Lock, receipts};
use crate::verify::reconcile::{Outcome, Settled, reconcile};
use crate::world::fail_point;
use crate::{screen, world};

/// Does the whole run.
///
/// # Errors
/// `Locked` when another run holds the lock, `Refused` when nothing may be changed, and whatever keeps
/// the receipt from being written.
pub fn run(session: &Session) -> Result<u8> {
    let content = journal::content(session, "apply", None);
    locked(session, &content, apply)
}

/// What a run works with.
#[derive(Debug)]
pub struct Run<'a> {
    /// The session.
    pub session: &'a Session,
    /// The lock of runs, held.
    pub lock: &'a Lock,
    /// Whether it was told to end.
    pub interruption: &'a Interruption,
    /// Its bookkeeping.
    pub journal: Journal<'a>,
    /// Its receipt, once it is closed.
    closed: Option<Receipt>,
}

/// Takes the lock and opens the journal, lets `work` be done unless its request was done before, and ends as the work did.
///
/// # Errors
/// `Locked` when another run holds the lock, a conflict of requests, and what `work` says.
pub fn locked(
    session: &Session,
    content: &Value,
    work: impl FnOnce(&mut Run<'_>) -> Result<u8>,
) -> Result<u8> {
    let interruption = watch_signals()?;
    let run_id = world::new_id();
    journal::check_request(session, content)?;
    let lock = Lock::take(
        &session.world,
        &session.places.lock,
        &run_id,
        session.patience,
    )?;
    session.state.prepare(&session.world, &lock)?;
    session.state.heal_latest(&lock)?;
    let mut run = Run {
        session,
        lock: &lock,
        interruption: &interruption,
        journal: Journal::open(session, &run_id, content, &lock)?,
        closed: None,
    };
    if let Some(done) = run.journal.admit()? {
        report(session, &Receipt::parse(done.receipt)?);
        return Ok(done.exit_status);
    }
    let result = work(&mut run);
    if result.is_err() {
        run.journal.withdraw();
    }
    let closed = run.closed.take();
    drop(run);
    drop(lock);
    // The command may take its time: nobody has to wait for our lock meanwhile.
    if let Some(receipt) = closed {
        notify::verdict(session, &receipt);
    }
    if let Some(signal) = interruption.signal() {
        // The shell sees that a signal ended us (128 + signal), and why.
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
    result
}

fn apply(run: &mut Run<'_>) -> Result<u8> {
    let session = run.session;
    let (history, owed) = owed(session)?;
    session.stage("inventory");
    let (first, moved) = look_from_outside(session, &owed)?;
    let mut receipt = open(session, &first, run.journal.run());
    receipt.notes.extend(history.into_iter().chain(moved));
    receipt.notes.extend(session.scene.note());
    receipt.debts = debts(session, &first, &owed, run.journal.run());
    run.identify(&mut receipt)?;
    fail_point("run.planned");
    if let Some(refusal) = refusal(&first) {
        return run.refuse(&first, receipt, refusal);
    }
    // From here on a run that is killed leaves a receipt that says so, and what it owes.
    run.journal.opened(&first, &receipt)?;
    run.write(&receipt)?;

    let locks = migrate::run(run, &first, &mut receipt)?;
    run.write(&receipt)?;

    let outcomes = run.restart(&first, &mut receipt);
    fail_point("run.before-verify");
    session.stage("verify");
    close(session, &first, &outcomes, &mut receipt);
    fail_point("run.verified");
    drop(locks);
    run.finish(receipt)
}

impl Run<'_> {
    /// Says in a receipt which program wrote it, for whom, and after which other.
    ///
    /// # Errors
    /// When the newest receipt is there and cannot be read.
    pub fn identify(&self, receipt: &mut Receipt) -> Result<()> {
        receipt.request_id = self.journal.request_id();
        receipt.parent = self.session.state.latest_digest()?;
        receipt.tool.sha256 = std::fs::read("/proc/self/exe")
            .ok()
            .map(|bytes| receipts::digest(&bytes));
        Ok(())
    }

    /// Writes the receipt as it stands.
    ///
    /// # Errors
    /// When it cannot be made durable.
    pub fn write(&self, receipt: &Receipt) -> Result<()> {
        let value = serde_json::to_value(receipt)
            .map_err(|error| Error::new(Kind::Io, "cannot write the receipt").with_source(error))?;
        self.session
            .state
            .write_receipt(&receipt.run_id, &value, self.lock)
    }

    /// Restarts what the plan of `look` says; the homes' rows say what must not be touched any more.
    pub fn restart(&mut self, look: &Look, receipt: &mut Receipt) -> Vec<Outcome> {
        self.session.stage("restart");
        let homes = home_outcomes(receipt);
        let blocked = |planned: &PlannedRuntime| blocked(planned, &homes);
        let (session, interruption) = (self.session, self.interruption);
        let mut record = Recorder {
            run: self,
            look,
            receipt,
        };
        restarts::run(session, look, interruption, &blocked, &mut record)
    }

    /// Computes the verdict, closes the journal and the receipt, and shows it.
    ///
    /// # Errors
    /// When the receipt cannot be written.
    pub fn finish(&mut self, mut receipt: Receipt) -> Result<u8> {
        receipt.accept(&self.session.wishes.policy.accept);
        receipt.settle(self.interruption.signal().is_some());
        receipt.finished_at = Some(world::timestamp());
        self.journal.closed(&mut receipt);
        self.write(&receipt)?;
        // That something old could not be removed is worth a warning and no more.
        if let Err(error) = self.journal.prune(self.lock) {
            self.session.ui.warn(&error.to_string());
        }
        report(self.session, &receipt);
        self.session.publish(&receipt);
        let status = receipt.verdict.exit_status.unwrap_or(1);
        self.closed = Some(receipt);
        Ok(status)
    }

    /// Ends a run that may change nothing, with a receipt that says why.
    ///
    /// # Errors
    /// Always: `Refused`, or that the receipt could not be written.
    pub fn refuse(&mut self, look: &Look, mut receipt: Receipt, refusal: &str) -> Result<u8> {
        receipt.settle(false);
        receipt.verdict.outcome = VerdictOutcome::Refused;
        receipt.verdict.exit_status = Some(Kind::Refused.exit_status());
        receipt.notes.push(refusal.to_owned());
        receipt.finished_at = Some(world::timestamp());
        self.journal.refused(look, &mut receipt)?;
        self.write(&receipt)?;
        self.session.publish(&receipt);
        let hint = format!("`update receipt show {}` has the details", receipt.run_id);
        self.closed = Some(receipt);
        let what = format!("nothing was changed: {refusal}");
        Err(Error::new(Kind::Refused, what).with_hint(hint))
    }
}

/// Keeps the record of the restarts in the journal and in the receipt.
struct Recorder<'r, 'a> {
    run: &'r mut Run<'a>,
    look: &'r Look,
    receipt: &'r mut Receipt,
}

impl restarts::Record for Recorder<'_, '_> {
    fn begun(&mut self, indexes: &[usize]) {
        let rows = indexes
            .iter()
            .filter_map(|index| self.receipt.runtimes.get(*index));
        self.run.journal.begun(rows);
    }

    fn judged(&mut self, index: usize, outcome: &Outcome) {
        let planned = &self.look.plan.runtimes[index];
        let row = runtime_row(self.run.session, planned, outcome, &profiles(self.look));
        self.run.journal.judged(&row);
    }

    fn wave_over(&mut self, outcomes: &[Outcome]) {
        fill_runtimes(self.run.session, self.receipt, self.look, outcomes);
        // The closing write reports what this one could not.
        let _ = self.run.write(self.receipt);
    }
}

/// Looks at the fleet; where this run was started from inside a runtime that it would restart, it first
/// moves out of that runtime's control group, which the restart empties.
///
/// # Errors
/// When the machine cannot be looked at.
pub fn look_from_outside(session: &Session, owed: &[Owed]) -> Result<(Look, Option<String>)> {
    let first = look_until_settled(session, owed)?;
    if !first.plan.is_enclosed(session.world.pid) {
        return Ok((first, None));
    }
    match escape::leave(&session.world) {
        Ok(group) => {
            let note = format!("this run was started from inside a runtime, and moved to {group}");
            Ok((look_until_settled(session, owed)?, Some(note)))
        }
        Err(error) => Ok((
            first,
            Some(format!(
                "this run cannot leave the runtime that it was started from: {error}"
            )),
        )),
    }
}

/// A first signal is remembered, and the run comes to a true end; a second one ends it at once.
fn watch_signals() -> Result<Interruption> {
    let interruption = Interruption::default();
    let armed = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let number = usize::try_from(signal).unwrap_or_default();
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&armed))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&armed)))
            .and_then(|_| {
                signal_hook::flag::register_usize(signal, Arc::clone(&interruption.0), number)
            })
            .map_err(|error| Error::io("cannot watch for signals", error))?;
    }
    Ok(interruption)
}

/// What earlier runs owe, and what the last one left unfinished. Reads the newest receipt alone.
///
/// # Errors
/// Never at present: a receipt that cannot be read is told as a note, since nothing depends on it
/// that the live fleet does not show.
pub fn owed(session: &Session) -> Result<(Vec<String>, Vec<Owed>)> {
    let last = match session.state.read_receipt("latest") {
        Ok(None) => return Ok((Vec::new(), Vec::new())),
        Ok(Some(value)) => Receipt::parse(value),
        Err(error) => Err(error),
    };
    let last = match last {
        Ok(last) => last,
        Err(error) => {
            return Ok((
                vec![format!("the last receipt cannot be used: {error}")],
                Vec::new(),
            ));
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
    Ok((notes, owed))
}

/// The receipt of a plan: every row as it is before anything was done.
#[must_use]
pub fn open(session: &Session, look: &Look, run_id: &str) -> Receipt {
    let world = &session.world;
    let mut receipt = Receipt {
        schema: SCHEMA,
        run_id: run_id.to_owned(),
        request_id: None,
        parent: None,
        audit_head: None,
        application: session.app.name.clone(),
        trigger: session.trigger.word().into(),
        argv_flags: session
            .argv_flags
            .iter()
            .map(|flag| screen::text(flag))
            .collect(),
        started_at: world::timestamp(),
        finished_at: None,
        tool: Tool {
            version: env!("CARGO_PKG_VERSION").into(),
            sha256: None,
        },
        host: Host {
            hostname: world.hostname.clone(),
            boot_id: world.boot_id.clone(),
        },
        invoker: Invoker {
            uid: world.account.uid,
            user: world.account.name.clone(),
            scope: if world.is_root() {
                "host".into()
            } else {
                "user".into()
            },
        },
        installs: look.inventory.installs.iter().map(rows::install).collect(),
        homes: look
            .plan
            .homes
            .iter()
            .map(|home| rows::home(home, &user_name(session, home.home.uid)))
            .collect(),
        runtimes: Vec::new(),
        collectors: look
            .inventory
            .collectors
            .iter()
            .map(rows::collector)
            .collect(),
        debts: Vec::new(),
        notes: look
            .inventory
            .notes
            .iter()
            .map(|note| screen::text(note))
            .collect(),
        verdict: Verdict {
            outcome: VerdictOutcome::Interrupted,
            exit_status: None,
            counts: BTreeMap::new(),
        },
    };
    let profiles = profiles(look);
    receipt.runtimes = look
        .plan
        .runtimes
        .iter()
        .map(|planned| {
            rows::planned_runtime(planned, &user_name(session, planned.runtime.uid), &profiles)
        })
        .collect();
    receipt
}

fn user_name(session: &Session, uid: u32) -> String {
    session
        .account(uid)
        .map_or_else(|| uid.to_string(), |account| account.name.clone())
}

fn profiles(look: &Look) -> BTreeMap<&str, &str> {
    look.plan
        .homes
        .iter()
        .map(|home| (home.home.id.as_str(), home.home.profile.as_str()))
        .collect()
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
            let config = home
                .evaluation
                .files
                .iter()
                .find(|_| home.evaluation.outcome == HomeOutcome::Migrated);
            let after = look_up_config(home).filter(|_| config.is_some());
            if let Some(sha256) = after {
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
fn look_up_config(home: &crate::plan::PlannedHome) -> Option<String> {
    let before = home.evaluation.config_sha256.as_ref();
    home.evaluation
        .files
        .iter()
        .find(|file| file.sha256_before.as_ref() == before && before.is_some())
        .map(|file| file.sha256_after.clone())
}

/// Why nothing may be changed at all, if so.
#[must_use]
pub fn refusal(look: &Look) -> Option<&'static str> {
    if is_blind(look) {
        return Some("no home was found although runtimes run: the inventory cannot be right");
    }
    is_withheld(look).then_some("the application's own updater is at work on every home")
}

fn home_outcomes(receipt: &Receipt) -> BTreeMap<String, (HomeOutcome, String)> {
    receipt
        .homes
        .iter()
        .map(|row| (row.id.clone(), (row.outcome, row.reason.clone())))
        .collect()
}

/// Why a runtime must not be touched after all: a home that it serves came out of the migration as
/// something that it must not be restarted onto, or that others work on.
fn blocked(
    planned: &PlannedRuntime,
    homes: &BTreeMap<String, (HomeOutcome, String)>,
) -> Option<Decision> {
    planned.runtime.homes.iter().find_map(|id| {
        let (outcome, reason) = homes.get(id)?;
        let others = reason.starts_with("locked") || reason.starts_with("updater");
        if *outcome == HomeOutcome::Conflict && others {
            return Some(
                Decision::new(RuntimeOutcome::Unaccounted, format!("aborted: {reason}"))
                    .with_remedy(&*planned.instruction),
            );
        }
        blocks(*outcome).then(|| Decision::new(RuntimeOutcome::Skipped, format!("home-{outcome}")))
    })
}

fn fill_runtimes(session: &Session, receipt: &mut Receipt, look: &Look, outcomes: &[Outcome]) {
    let profiles = profiles(look);
    receipt.runtimes = look
        .plan
        .runtimes
        .iter()
        .zip(outcomes)
        .map(|(planned, outcome)| runtime_row(session, planned, outcome, &profiles))
        .collect();
}

fn runtime_row(
    session: &Session,
    planned: &PlannedRuntime,
    outcome: &Outcome,
    profiles: &BTreeMap<&str, &str>,
) -> RuntimeRow {
    let user = user_name(session, planned.runtime.uid);
    rows::runtime(
        planned,
        &outcome.decision,
        outcome.seen.as_deref(),
        None,
        (&user, profiles),
    )
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

/// Takes the inventory again and settles every row by what runs now.
pub fn close(session: &Session, first: &Look, outcomes: &[Outcome], receipt: &mut Receipt) {
    let owed = owed_of(receipt);
    let second = match look_to_prove(session, &owed, first) {
        Ok(second) => second,
        Err(error) => {
            // Without a second look nothing is proved.
            fill_runtimes(session, receipt, first, outcomes);
            for row in &mut receipt.runtimes {
                row.outcome = RuntimeOutcome::Unaccounted;
                row.reason = "the fleet could not be looked at again".into();
            }
            let problem = crate::fleet::Collector::unverified(
                "second inventory",
                session.world.account.uid,
                error.to_string(),
            );
            receipt.collectors.push(rows::collector(&problem));
            return;
        }
    };
    let settled = reconcile(&first.plan, outcomes, &second.plan);
    let profiles = profiles(first)
        .into_iter()
        .chain(self::profiles(&second))
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
    // What is still owed is what still lives.
    receipt.debts.retain(|debt| {
        !session.scene.shows_runtimes()
            || debt.written
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
) -> crate::receipt::RuntimeRow {
    let user = user_name(session, row.planned.runtime.uid);
    rows::runtime(
        row.planned,
        &row.decision,
        row.seen,
        row.now,
        (&user, profiles),
    )
}

/// A home that was written must still hold what was written; one that appeared is a row, too.
fn settle_homes(session: &Session, receipt: &mut Receipt, second: &Look) {
    let now: BTreeMap<&str, &crate::plan::PlannedHome> = second
        .plan
        .homes
        .iter()
        .map(|home| (home.home.id.as_str(), home))
        .collect();
    for row in receipt
        .homes
        .iter_mut()
        .filter(|row| row.done && row.outcome == HomeOutcome::Migrated)
    {
        let written = row
            .files
            .iter()
            .map(|file| file.sha256_after.as_str())
            .collect::<BTreeSet<_>>();
        let holds = now
            .get(row.id.as_str())
            .and_then(|home| home.evaluation.config_sha256.as_deref());
        if holds.is_none_or(|digest| !written.contains(digest)) {
            row.outcome = HomeOutcome::Conflict;
            row.reason = "changed by somebody else after it was written".into();
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

fn report(session: &Session, receipt: &Receipt) {
    if session.ui.quiet && receipt.verdict.outcome == VerdictOutcome::Clean {
        return;
    }
    if session.trigger == Trigger::Package && session.ui.quiet {
        session.ui.brief(&hook::line(receipt));
        return;
    }
    let style = Style {
        color: session.ui.color,
        verbose: session.ui.verbose,
        plan: false,
    };
    let value = serde_json::to_value(receipt).unwrap_or_default();
    session.ui.report(&value, || render(receipt, style));
}
