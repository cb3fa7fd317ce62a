//! The restarts of a run: a first wave of one runtime of each install and kind, then the rest side by
//! side, each with its own deadline. One that fails becomes a row; too many of one install end its restarts.
//!
//! The workers are threads that own what they need. A run that is interrupted stops handing out work,
//! waits a little for what is under way, and goes on to its receipt without the rest.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::Session;
use super::look::{Look, owner};
use crate::fleet::again::LookAgain;
use crate::fleet::{Install, Manager, Supervisor, procfs};
use crate::helper;
use crate::plan::PlannedRuntime;
use crate::plan::decide::{Decision, RuntimeOutcome, Step};
use crate::restart::{Action, Observation, Progress, ReloadManager, Respawn, Restart};
use crate::verify::reconcile::Outcome;
use crate::verify::verify;
use crate::world::Account;

mod job;
mod queue;

use job::{Job, job};
use queue::{Held, Queue};

/// How often the main thread looks at the interruption and the deadline.
const TICK: Duration = Duration::from_millis(100);

/// Reading all unit files again may take a manager this long.
const RELOAD_LIMIT: Duration = Duration::from_secs(90);

/// Asking an install about itself takes no longer than this.
const LOOK_LIMIT: Duration = Duration::from_secs(10);

enum Told {
    Progress(String, Progress),
    /// The worker waits until it is answered: whether it may take the next one is known only then.
    Finished(
        usize,
        String,
        Result<Box<Observation>, Decision>,
        Sender<()>,
    ),
}

/// Whether and by which signal the run was interrupted.
#[derive(Debug, Clone, Default)]
pub struct Interruption(pub Arc<std::sync::atomic::AtomicUsize>);

impl Interruption {
    /// The signal, once there was one.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        i32::try_from(self.0.load(Ordering::SeqCst))
            .ok()
            .filter(|signal| *signal != 0)
    }
}

/// Who keeps the record of the restarts; a runtime is named by its place in the plan.
pub trait Record {
    /// These are about to be restarted.
    fn begun(&mut self, indexes: &[usize]);
    /// This one came to an end.
    fn judged(&mut self, index: usize, outcome: &Outcome);
    /// A wave is over; the outcomes so far.
    fn wave_over(&mut self, outcomes: &[Outcome]);
}

/// Restarts what the plan says, and gives an outcome for each of its runtimes, in its order.
///
/// `blocked` says for each runtime why it must not be touched any more, if so.
pub fn run(
    session: &Session,
    look: &Look,
    interruption: &Interruption,
    blocked: &dyn Fn(&PlannedRuntime) -> Option<Decision>,
    record: &mut dyn Record,
) -> Vec<Outcome> {
    let plan = &look.plan;
    let mut outcomes: Vec<Outcome> = plan.runtimes.iter().map(at_first).collect();
    let (first, rest) = plan.waves();
    for index in first.iter().chain(&rest) {
        if let Some(decision) = blocked(&plan.runtimes[*index]) {
            outcomes[*index].decision = decision;
        }
    }
    let is_open = |outcomes: &[Outcome], index: &usize| {
        outcomes[*index].decision.outcome == RuntimeOutcome::Unaccounted
            && blocked(&plan.runtimes[*index]).is_none()
    };
    reload_managers(
        session,
        look,
        first
            .iter()
            .chain(&rest)
            .filter(|index| is_open(&outcomes, index)),
    );
    let mut held = Held::default();
    let mut lost = None;
    for (wave, limit) in [(first, 1), (rest, session.max_failures)] {
        if interruption.signal().is_some() || session.left().is_zero() {
            break;
        }
        let jobs: Vec<Job> = wave
            .iter()
            .filter(|index| is_open(&outcomes, index))
            .filter_map(|index| job(session, look, *index))
            .filter(|job| !held.back(job.install_id()))
            .collect();
        if jobs.is_empty() {
            continue;
        }
        record.begun(&jobs.iter().map(|job| job.index).collect::<Vec<_>>());
        held = run_wave(
            session,
            look,
            jobs,
            held.with_limit(limit),
            interruption,
            (&mut outcomes, record),
        );
        record.wave_over(&outcomes);
        lost = taken_along(&plan.runtimes, &outcomes);
        if lost.is_some() {
            break;
        }
    }
    let why = match interruption.signal() {
        Some(_) => "interrupted: the run was told to end".into(),
        None if session.left().is_zero() => "deadline: the run's time was over".into(),
        None => match lost {
            Some(unit) => format!("aborted: {unit} was lost while another was restarted"),
            None => String::from("aborted: another restart failed first"),
        },
    };
    for (planned, outcome) in plan.runtimes.iter().zip(&mut outcomes) {
        if outcome.decision.reason == PENDING {
            outcome.decision = Decision::new(RuntimeOutcome::Unaccounted, why.clone())
                .with_remedy(&*planned.instruction);
        }
    }
    outcomes
}

/// A unit that ran, was not to be restarted, and has no process any more: what a wave took along ends the
/// restarts before the next one takes more. One that came back with it, as by `PartOf=`, has processes.
fn taken_along(planned: &[PlannedRuntime], outcomes: &[Outcome]) -> Option<String> {
    let untouched = planned
        .iter()
        .zip(outcomes)
        .filter(|(_, outcome)| outcome.seen.is_none());
    untouched
        .filter_map(|(planned, _)| {
            Some((
                planned.runtime.process.as_ref()?,
                planned.runtime.unit.as_ref()?,
            ))
        })
        .find(|(process, unit)| {
            let life = &process.incarnation;
            procfs::start_ticks(life.pid).is_ok_and(|start| start != Some(life.start_ticks))
                && procfs::in_cgroup(&unit.control_group).is_ok_and(|pids| pids.is_empty())
        })
        .map(|(_, unit)| unit.name.clone())
}

/// What stands in a row whose restart has not been judged; never left in a receipt of a run that ended.
const PENDING: &str = "not yet restarted";

/// Where every row starts: settled by the plan, or unaccounted until something is proved.
#[must_use]
pub fn at_first(planned: &PlannedRuntime) -> Outcome {
    let decision = match &planned.step {
        Step::Settled(decision) | Step::Wait(decision) => decision.clone(),
        Step::Act(_) | Step::NoRow => Decision::new(RuntimeOutcome::Unaccounted, PENDING),
    };
    Outcome {
        decision,
        seen: None,
    }
}

/// Runs one wave and returns what is held back after it.
fn run_wave(
    session: &Session,
    look: &Look,
    jobs: Vec<Job>,
    mut held: Held,
    interruption: &Interruption,
    (outcomes, record): (&mut [Outcome], &mut dyn Record),
) -> Held {
    let mut open = jobs.len();
    let workers = session.jobs.min(open);
    let queue = Arc::new(Mutex::new(Queue::of(jobs, workers)));
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = channel();
    for _ in 0..workers {
        let (queue, stop, sender) = (Arc::clone(&queue), Arc::clone(&stop), sender.clone());
        std::thread::spawn(move || work(&queue, &stop, &sender));
    }
    drop(sender);
    let mut give_up = None;
    let mut last = BTreeMap::new();
    while open > 0 {
        let told = match next(&receiver, session, interruption, &stop, &mut give_up) {
            Ok(Some(told)) => told,
            Ok(None) => continue,
            Err(()) => break,
        };
        match told {
            Told::Progress(name, progress) => {
                let text = shown(&progress);
                session.ui.progress(&name, &text);
                if last
                    .insert(name.clone(), text.clone())
                    .is_none_or(|before| before != text)
                {
                    session.stage(&format!("{name}: {text}"));
                }
            }
            Told::Finished(index, name, result, go_on) => {
                open -= 1;
                session.ui.done(&name);
                let planned = &look.plan.runtimes[index];
                outcomes[index] = judge(look, planned, result);
                record.judged(index, &outcomes[index]);
                let decision = &outcomes[index].decision;
                session.stage(&format!(
                    "{name}: {} {}",
                    decision.outcome.word(),
                    decision.reason
                ));
                if is_failure(decision) {
                    held.failed(planned.runtime.install.as_deref());
                    if let Ok(mut queue) = queue.lock() {
                        open -= queue.leave_out(&held);
                    }
                }
                let _ = go_on.send(());
            }
        }
    }
    held
}

/// Whether this speaks against restarting others: something was tried, or may have been, and did not end well.
/// What was left alone, for a person or because its code is being changed just now, says nothing of the rest.
fn is_failure(decision: &Decision) -> bool {
    !decision.outcome.is_clean()
        && !matches!(
            decision.outcome,
            RuntimeOutcome::Manual | RuntimeOutcome::Unaccounted
        )
}

fn shown(progress: &Progress) -> String {
    match progress.active_agents {
        Some(1) => format!("{}, 1 agent at work", progress.phase),
        Some(count) if count > 0 => format!("{}, {count} agents at work", progress.phase),
        _ => progress.phase.clone(),
    }
}

/// The next thing that a worker tells; `None` when it is only time to look around, `Err` when nothing
/// more is waited for.
fn next(
    receiver: &Receiver<Told>,
    session: &Session,
    interruption: &Interruption,
    stop: &AtomicBool,
    give_up: &mut Option<Instant>,
) -> Result<Option<Told>, ()> {
    let told = match receiver.recv_timeout(TICK) {
        Ok(told) => Some(told),
        Err(RecvTimeoutError::Timeout) => None,
        // Every worker is gone: the queue is empty, or they were told to stop.
        Err(RecvTimeoutError::Disconnected) => return Err(()),
    };
    if give_up.is_none() && (interruption.signal().is_some() || session.left().is_zero()) {
        stop.store(true, Ordering::SeqCst);
        *give_up = Some(Instant::now() + session.pace.grace);
    }
    if told.is_none() && give_up.is_some_and(|time| Instant::now() >= time) {
        return Err(());
    }
    Ok(told)
}

fn work(queue: &Mutex<Queue>, stop: &AtomicBool, sender: &Sender<Told>) {
    loop {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        let Some(job) = queue.lock().ok().and_then(|mut queue| queue.take()) else {
            return;
        };
        let (index, name, owner) = (job.index, job.name.clone(), job.owner);
        let result = restart(job, sender);
        if let Ok(mut queue) = queue.lock() {
            queue.done(owner);
        }
        // The main thread may have given up on us; the runtime's row says so then.
        let (go_on, judged) = channel();
        let told = Told::Finished(index, name, result, go_on);
        if sender.send(told).is_err() || judged.recv().is_err() {
            return;
        }
    }
}

fn restart(job: Job, sender: &Sender<Told>) -> Result<Box<Observation>, Decision> {
    if let Some((install, account)) = &job.install {
        look_again(&job, install, account)?;
    }
    let name = job.name.clone();
    let mut tell = |progress: Progress| {
        let _ = sender.send(Told::Progress(name.clone(), progress));
        Ok(())
    };
    // The task has its own limit; the helper's is only there for one that hangs.
    let limit = job.limit + Duration::from_secs(10);
    let (world, account) = (&job.world, &job.account);
    match job.order.row.action {
        Action::Respawn => helper::perform(world, account, Respawn(job.order), limit, &mut tell),
        _ => helper::perform(world, account, Restart(job.order), limit, &mut tell),
    }
    .map(Box::new)
    .map_err(|error| Decision::new(RuntimeOutcome::Unverified, format!("manager: {error}")))
}

/// Looks at the install once more: one that changed since the plan, or whose own updater is at work,
/// must not be started from.
fn look_again(job: &Job, install: &Install, account: &Account) -> Result<(), Decision> {
    let task = LookAgain {
        app: job.app.clone(),
        install: install.clone(),
    };
    let aborted =
        |why: String| Decision::new(RuntimeOutcome::Unaccounted, format!("aborted: {why}"));
    match helper::perform(&job.world, account, task, LOOK_LIMIT, &mut |()| Ok(())) {
        Ok(None) => Ok(()),
        Ok(Some(why)) => Err(aborted(why)),
        Err(error) => Err(aborted(error.to_string())),
    }
}

fn judge(
    look: &Look,
    planned: &PlannedRuntime,
    result: Result<Box<Observation>, Decision>,
) -> Outcome {
    match result {
        Err(decision) => Outcome {
            decision: decision.with_remedy(&*planned.instruction),
            seen: None,
        },
        Ok(seen) => {
            let version = look
                .inventory
                .installs
                .iter()
                .find(|install| Some(&install.id) == planned.runtime.install.as_ref())
                .and_then(|install| install.version.as_deref());
            let systemctl = planned.fields.of_name("systemctl");
            let mut decision = verify(&planned.runtime, &seen, version, systemctl);
            if !decision.outcome.is_clean() && decision.remedy.is_none() {
                decision = decision.with_remedy(&*planned.instruction);
            }
            Outcome {
                decision,
                seen: Some(seen),
            }
        }
    }
}

/// Lets a manager read its units again, once, if one that is about to be restarted says that its files
/// changed: without it the old command would be started (org.freedesktop.systemd1(5), `NeedDaemonReload`).
fn reload_managers<'a>(session: &Session, look: &Look, indexes: impl Iterator<Item = &'a usize>) {
    let mut reloaded = Vec::new();
    for index in indexes {
        let runtime = &look.plan.runtimes[*index].runtime;
        let (Some(unit), Supervisor::Systemd { scope, .. }) = (&runtime.unit, &runtime.supervisor)
        else {
            continue;
        };
        if !unit.need_daemon_reload || reloaded.contains(scope) {
            continue;
        }
        reloaded.push(*scope);
        let account = match scope {
            Manager::System => session.world.account.clone(),
            Manager::User(uid) => owner(session, *uid),
        };
        let limit = RELOAD_LIMIT.min(session.left());
        let task = ReloadManager {
            manager: *scope,
            limit,
        };
        // What could not be reloaded shows in the restart itself.
        if let Err(error) = helper::perform(&session.world, &account, task, limit, &mut |()| Ok(()))
        {
            session.ui.warn(&format!(
                "cannot reload the manager of {}: {error}",
                account.name
            ));
        }
    }
}
