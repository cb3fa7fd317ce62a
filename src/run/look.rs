//! One look at the fleet: the inventory, what each home needs, and the plan. Shared by `plan`,
//! `status` and the run itself, so that they cannot disagree.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::{Session, dpkg, hook};
use crate::config::RestartWhen;
use crate::error::Result;
use crate::fleet::scope::Scope;
use crate::fleet::{Collector, CollectorOutcome, Home, Inventory, inventory};
use crate::helper;
use crate::migrate::catalog::Catalog;
use crate::migrate::home::{Budget, Evaluate, HomeTarget};
use crate::migrate::{Evaluation, HomeOutcome};
use crate::plan::decide::Step;
use crate::plan::{Given, Owed, Plan, Target, Wishes, targets, without_evaluation};
use crate::verify::reconcile::Outcome;
use crate::world::Account;

/// How often a runtime between two states is looked at again.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A runtime between two states is not waited for longer than this.
const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// How much longer a source is given that did not answer when it had to prove something.
const LONGER: u32 = 4;

/// What was seen, and what follows.
#[derive(Debug)]
pub struct Look {
    /// What exists.
    pub inventory: Inventory,
    /// What each home and runtime needs.
    pub plan: Plan,
}

/// Looks once.
///
/// # Errors
/// When the machine cannot be looked at at all.
pub fn look(session: &Session, owed: &[Owed], waited: bool) -> Result<Look> {
    let (scope, wishes) = (session.scope(), &session.wishes);
    look_within(session, owed, waited, &scope, wishes, false)
}

/// Looks once, and keeps what is made of homes for writing it.
fn look_to_write(session: &Session, owed: &[Owed], waited: bool) -> Result<Look> {
    let (scope, wishes) = (session.scope(), &session.wishes);
    look_within(session, owed, waited, &scope, wishes, true)
}

/// The look that proves what was done; `outcomes` are what became of each runtime of the first. A source that answered before and does not now, as on a machine that
/// the restarts themselves keep busy, is asked once more and given longer: what was restarted is not in
/// doubt because somebody was late.
///
/// # Errors
/// As for [`look`].
pub fn look_to_prove(
    session: &Session,
    owed: &[Owed],
    first: &Look,
    outcomes: &[Outcome],
) -> Result<Look> {
    let mut wishes = session.wishes.clone();
    if wishes.restart == RestartWhen::Always {
        // All were asked for once; what was restarted is not to be restarted again.
        wishes.restart = RestartWhen::Stale;
    }
    let look = |waited, scope: &Scope| look_within(session, owed, waited, scope, &wishes, false);
    let mut scope = session.scope();
    let second = look_until_still(session, first, outcomes, &|waited| look(waited, &scope))?;
    let silent = |look: &Look| -> BTreeSet<String> {
        let all = look.inventory.collectors.iter();
        all.filter(|one| one.outcome == CollectorOutcome::Unverified)
            .map(|one| one.name.clone())
            .collect()
    };
    if silent(&second).is_subset(&silent(first)) || session.left().is_zero() {
        return Ok(second);
    }
    session
        .ui
        .tell("asking once more: not every source answered in time");
    scope.limit = (scope.limit * LONGER).min(session.left()).max(scope.limit);
    look(true, &scope)
}

/// Looks until nothing that was fine at the first look, or is new, is between two states, or has been for too
/// long: a runtime that just started is fine, and says so only in a moment. What was acted on was waited for.
fn look_until_still(
    session: &Session,
    first: &Look,
    outcomes: &[Outcome],
    look: &dyn Fn(bool) -> Result<Look>,
) -> Result<Look> {
    let planned = first.plan.runtimes.iter().zip(outcomes);
    let judged: BTreeSet<&str> = planned
        .filter(|(_, outcome)| outcome.seen.is_some() || !outcome.decision.outcome.is_clean())
        .map(|(planned, _)| planned.runtime.id.as_str())
        .collect();
    let moves = |plan: &Plan| {
        plan.runtimes.iter().any(|now| {
            matches!(now.step, Step::Wait(_)) && !judged.contains(now.runtime.id.as_str())
        })
    };
    let mut second = look(false)?;
    let end = Instant::now() + patience(session, &second.plan);
    while moves(&second.plan) && Instant::now() < end {
        std::thread::sleep(LOOK_EVERY);
        second = look(false)?;
    }
    if second.plan.is_between() {
        return look(true);
    }
    Ok(second)
}

/// How long is waited for what is between two states.
fn patience(session: &Session, plan: &Plan) -> Duration {
    if session.scene == hook::Scene::Stopping {
        return Duration::ZERO;
    }
    budget(plan).min(LONGEST_WAIT).min(session.left())
}

fn look_within(
    session: &Session,
    owed: &[Owed],
    waited: bool,
    scope: &Scope,
    wishes: &Wishes,
    keep: bool,
) -> Result<Look> {
    let mut inventory = inventory::take(&session.world, &session.app, scope, || {
        // Homes of ours are evaluated here. Why it cannot be read is told to whoever needs it.
        let _ = Catalog::shared(&session.app, &session.site_steps);
    })?;
    let targets = targets(&inventory, session.wishes.to);
    let half_installed = dpkg::withhold_half_installed(session, &mut inventory, &targets);
    let (evaluations, failures) = evaluate(session, &inventory.homes, &targets, keep);
    inventory.collectors.extend(failures);
    for target in targets.values() {
        inventory.notes.extend(target.notes.iter().cloned());
    }
    let mut plan = Plan::new(Given {
        inventory: &inventory,
        targets,
        evaluations,
        table: &session.table,
        wishes,
        owed,
        caller: &session.world.account,
        names: &session.names(),
        waited,
    });
    dpkg::leave_half_installed(&half_installed, &mut plan);
    Ok(Look { inventory, plan })
}

/// Looks until no runtime is between two states, or one has been for too long, and holds back what
/// must not be restarted here.
///
/// # Errors
/// As for [`look`].
pub fn look_until_settled(session: &Session, owed: &[Owed]) -> Result<Look> {
    let mut settled = wait_until_settled(session, owed)?;
    hook::restrain(session, &mut settled.plan);
    Ok(settled)
}

fn wait_until_settled(session: &Session, owed: &[Owed]) -> Result<Look> {
    let first = look_to_write(session, owed, false)?;
    if !first.plan.is_between() || session.scene == hook::Scene::Stopping {
        return Ok(first);
    }
    session
        .ui
        .tell("waiting for a runtime that is between two states");
    let end = Instant::now() + patience(session, &first.plan);
    while Instant::now() < end {
        std::thread::sleep(LOOK_EVERY);
        let again = look_to_write(session, owed, false)?;
        if !again.plan.is_between() {
            return Ok(again);
        }
    }
    look_to_write(session, owed, true)
}

/// What a unit between two states may take: its pause, its start, and slack.
fn budget(plan: &Plan) -> Duration {
    let longest = plan
        .runtimes
        .iter()
        .filter(|planned| matches!(planned.step, Step::Wait(_)))
        .filter_map(|planned| planned.runtime.unit.as_ref())
        .map(|unit| {
            unit.restart_usec
                .saturating_add(unit.timeout_start_usec.min(30_000_000))
        })
        .max()
        .unwrap_or(0);
    Duration::from_micros(longest) + Duration::from_secs(2)
}

/// Lets each owner evaluate its homes, side by side.
fn evaluate(
    session: &Session,
    homes: &[Home],
    targets: &BTreeMap<String, Target>,
    keep: bool,
) -> (BTreeMap<String, Evaluation>, Vec<Collector>) {
    let mut by_owner: BTreeMap<u32, Vec<HomeTarget>> = BTreeMap::new();
    for home in homes {
        if without_evaluation(home, &session.wishes).is_none() {
            let nobody = Target::default();
            let target = targets.get(&home.id).unwrap_or(&nobody);
            by_owner
                .entry(home.uid)
                .or_default()
                .push(home_target(session, home, target));
        }
    }
    let results = Mutex::new((BTreeMap::new(), Vec::new()));
    std::thread::scope(|scope| {
        for (uid, targets) in by_owner {
            let results = &results;
            scope.spawn(move || {
                let answer = evaluate_as_owner(session, uid, targets, keep);
                let Ok(mut results) = results.lock() else {
                    return;
                };
                match answer {
                    Ok(evaluations) => results.0.extend(evaluations),
                    Err(error) => {
                        let reason = error.to_string();
                        let name = owner(session, uid).name;
                        results.1.push(Collector::unverified(
                            format!("evaluation for {name}"),
                            uid,
                            reason,
                        ));
                    }
                }
            });
        }
    });
    results.into_inner().unwrap_or_default()
}

fn evaluate_as_owner(
    session: &Session,
    uid: u32,
    homes: Vec<HomeTarget>,
    keep: bool,
) -> Result<BTreeMap<String, Evaluation>> {
    // A minute is for a thousand homes; one user's hung helper must not hold the others for so long.
    let count = u32::try_from(homes.len()).unwrap_or(u32::MAX);
    let usual =
        Duration::from_secs(20).saturating_add(Duration::from_millis(40) * count.min(1_000));
    let migrator = session.app.migrator.as_ref().filter(|_| keep);
    let native = migrator.map_or(0, |migrator| migrator.limit_secs);
    let asked = homes.iter().filter(|home| home.native.is_some()).count();
    let asked = u32::try_from(asked).unwrap_or(u32::MAX);
    let usual = usual.saturating_add(Duration::from_secs(native.into()).saturating_mul(asked));
    let limit = session.left().clamp(session.pace.least, usual);
    let ids: BTreeSet<String> = homes.iter().map(|home| home.id.clone()).collect();
    let task = Evaluate {
        app: session.app.clone(),
        site_steps: session.site_steps.clone(),
        homes,
        keep,
    };
    let mut evaluations = BTreeMap::new();
    let budget = Budget::new(keep);
    let mut add = |mut evaluation: Evaluation| {
        // An owner says something of its own homes, and of nobody else's.
        if ids.contains(&evaluation.id) {
            evaluation.kept = evaluation.kept.and_then(|kept| budget.admit(kept));
            evaluations.insert(evaluation.id.clone(), evaluation);
        }
        Ok(())
    };
    helper::perform(&session.world, &owner(session, uid), task, limit, &mut add)?;
    Ok(evaluations)
}

/// The account that owns something; one that no database knows has just its number.
#[must_use]
pub fn owner(session: &Session, uid: u32) -> Account {
    session
        .account(uid)
        .cloned()
        .or_else(|| crate::world::account(uid).ok().flatten())
        .unwrap_or_else(|| Account {
            uid,
            gid: uid,
            name: uid.to_string(),
            home: "/".into(),
        })
}

/// How a home is named to its owner's helper. As root, links out of the owner's tree are refused.
#[must_use]
pub fn home_target(session: &Session, home: &Home, target: &Target) -> HomeTarget {
    let tree = || {
        let of_user = owner(session, home.uid).home;
        if home.root.starts_with(&of_user) && of_user.parent().is_some() {
            of_user
        } else {
            home.root.clone()
        }
    };
    HomeTarget {
        id: home.id.clone(),
        path: home.path.clone(),
        within: session.world.is_root().then(tree),
        expected: target.expected,
        native: session.wishes.native.then(|| target.native.clone()),
    }
}

/// Whether nothing at all was found although something runs.
#[must_use]
pub fn is_blind(look: &Look) -> bool {
    look.plan.homes.is_empty()
        && look
            .plan
            .runtimes
            .iter()
            .any(|planned| planned.runtime.managed && planned.runtime.process.is_some())
}

/// Whether every home is withheld because the application's own updater is at work.
#[must_use]
pub fn is_withheld(look: &Look) -> bool {
    let configured = look.plan.homes.iter().filter(|home| {
        !matches!(
            home.evaluation.outcome,
            HomeOutcome::Skipped | HomeOutcome::Unconfigured
        )
    });
    let mut any = false;
    for home in configured {
        any = true;
        if home.evaluation.outcome != HomeOutcome::Conflict
            || !home.evaluation.reason.starts_with("updater")
        {
            return false;
        }
    }
    any
}
