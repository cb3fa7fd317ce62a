//! The run itself, and the only file that knows its order:
//!
//! lock → inventory → plan → receipt opened → snapshot → migrate → restart → verify → inventory again →
//! reconcile → receipt closed → exit status.
//!
//! Each stage takes what the one before returned. What happens to one home or one runtime becomes a row
//! and stops nothing else; only what makes a true receipt impossible ends the run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::Value;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::journal::{self, Journal};
use super::look::{Look, is_blind, is_withheld, look_until_settled};
use super::restarts::{self, Interruption};
use super::{Session, closing, debts, hook, migrate, notify, opening};
use crate::cli::Trigger;
use crate::digest;
use crate::error::{Error, Kind, Result};
use crate::helper;
use crate::migrate::HomeOutcome;
use crate::plan::decide::{Decision, RuntimeOutcome};
use crate::plan::{Owed, PlannedRuntime, blocks};
use crate::receipt::text::{Style, render};
use crate::receipt::{Receipt, VerdictOutcome};
use crate::restart::escape;
use crate::state::Lock;
use crate::verify::reconcile::Outcome;
use crate::world;
use crate::world::fail_point;

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
        helper::end_all();
        // The shell sees that a signal ended us (128 + signal), and why.
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
    result
}

fn apply(run: &mut Run<'_>) -> Result<u8> {
    let session = run.session;
    let (history, owed) = debts::owed(session);
    session.stage("inventory");
    std::thread::spawn(digest::own_program);
    let (first, moved) = look_from_outside(session, &owed)?;
    let mut receipt = opening::open(session, &first, run.journal.run());
    receipt.notes.extend(history.into_iter().chain(moved));
    receipt.notes.extend(session.scene.note());
    receipt.debts = debts::debts(session, &first, &owed, run.journal.run());
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
    closing::close(session, &first, &outcomes, &mut receipt);
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
        receipt.tool.sha256 = digest::own_program().map(str::to_owned);
        Ok(())
    }

    /// Writes the receipt as it stands.
    ///
    /// # Errors
    /// When it cannot be made durable.
    pub fn write(&self, receipt: &Receipt) -> Result<()> {
        self.session
            .state
            .write_receipt(&receipt.run_id, receipt, self.lock)
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
        let row = opening::runtime_row(
            self.run.session,
            planned,
            outcome,
            &opening::profiles(self.look),
        );
        self.run.journal.judged(&row);
    }

    fn wave_over(&mut self, outcomes: &[Outcome]) {
        opening::fill_runtimes(self.run.session, self.receipt, self.look, outcomes);
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
            helper::dismiss_idle();
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
    session.ui.report(receipt, || render(receipt, style));
}
