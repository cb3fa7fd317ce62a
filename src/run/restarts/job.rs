//! What one restart needs, from the plan: the order, who carries it out, and how long it may take.

use std::time::Duration;

use crate::app::App;
use crate::fleet::{Install, Manager, Supervisor, Unit};
use crate::restart::{Expected, Mechanism, Order};
use crate::run::Session;
use crate::run::look::{Look, owner};
use crate::world::{Account, World};

/// Slack for the steps of a restart between its waits.
const SLACK: Duration = Duration::from_secs(10);

/// What one restart needs, owned, so that a thread can outlive the wait for it.
pub(super) struct Job {
    pub(super) index: usize,
    pub(super) owner: u32,
    pub(super) name: String,
    pub(super) world: World,
    pub(super) app: App,
    pub(super) account: Account,
    pub(super) order: Order,
    pub(super) limit: Duration,
    pub(super) install: Option<(Install, Account)>,
}

impl Job {
    /// The install that the runtime runs from.
    pub(super) fn install_id(&self) -> Option<&str> {
        self.install
            .as_ref()
            .map(|(install, _)| install.id.as_str())
    }
}

/// What one restart needs; `None` where no row of the table says how.
pub(super) fn job(session: &Session, look: &Look, index: usize) -> Option<Job> {
    let planned = &look.plan.runtimes[index];
    let runtime = &planned.runtime;
    // The system's manager is asked by us, a user's by that user.
    let account = match &runtime.supervisor {
        Supervisor::Systemd {
            scope: Manager::System,
            ..
        } => session.world.account.clone(),
        _ => owner(session, runtime.uid),
    };
    let install = look
        .inventory
        .installs
        .iter()
        .find(|install| Some(&install.id) == runtime.install.as_ref())
        .map(|install| {
            // Root looks as the owner; anybody else can only look as itself.
            let looker = if session.world.is_root() {
                owner(session, install.uid)
            } else {
                session.world.account.clone()
            };
            (install.clone(), looker)
        });
    let homes = look
        .plan
        .homes
        .iter()
        .filter(|home| runtime.homes.contains(&home.home.id))
        .map(|home| home.home.path.clone())
        .collect();
    let mut row = planned.mechanism.clone()?;
    if runtime.is_ancestor {
        // It would finish its work only after us: we may be that work.
        row.drain = None;
    }
    // Not cut short by the run's deadline: what is under way then is `unaccounted`, not `down`.
    let limit = budget(&row, runtime.unit.as_ref());
    let profile = look
        .plan
        .homes
        .iter()
        .find(|home| runtime.homes.first() == Some(&home.home.id))
        .map(|home| home.home.profile.clone());
    let (manager, unit) = match &runtime.supervisor {
        Supervisor::Systemd { scope, unit } => (*scope, unit.clone()),
        _ => (Manager::System, String::new()),
    };
    let speaks = |report: &crate::fleet::SelfReport| {
        runtime.process.as_ref().is_some_and(|process| {
            report.pid == process.incarnation.pid
                && report.start_ticks == process.incarnation.start_ticks
        })
    };
    Some(Job {
        index,
        owner: runtime.uid,
        name: format!(
            "{} of {} ({})",
            runtime.kind,
            profile.as_deref().unwrap_or("?"),
            account.name
        ),
        world: session.world.clone(),
        app: session.app.clone(),
        account,
        order: Order {
            app: session.app.clone(),
            manager,
            unit,
            kind: runtime.kind.clone(),
            homes,
            expected: Expected {
                incarnation: runtime
                    .process
                    .as_ref()
                    .map(|process| process.incarnation.clone()),
                invocation_id: runtime
                    .unit
                    .as_ref()
                    .map(|unit| unit.invocation_id.clone())
                    .unwrap_or_default(),
            },
            row,
            fields: planned.fields.clone(),
            spoke_before: runtime.self_report.as_ref().is_some_and(speaks),
            deadline: limit,
        },
        limit,
        install,
    })
}

/// How long one restart may take: every wait of its row and of its unit, one after another.
fn budget(row: &Mechanism, unit: Option<&Unit>) -> Duration {
    let finite = |usec: u64| {
        if usec == u64::MAX {
            row.limit
        } else {
            Duration::from_micros(usec).min(row.limit)
        }
    };
    let of_unit = unit.map_or(row.limit, |unit| {
        finite(unit.timeout_stop_usec) + finite(unit.timeout_start_usec) + finite(unit.restart_usec)
    });
    let drain = row
        .drain
        .as_ref()
        .map_or(Duration::ZERO, |drain| drain.limit);
    drain + of_unit + row.speak_limit + row.settle.max(row.settle_silent) + SLACK
}
