//! What the other tests rely on, proven with systemctl instead of the program: the fleet runs, and
//! the watcher counts what the managers did, no more and no less.

use std::time::Duration;

use crate::support::fleet::{ANN, Fleet, Gateway};
use crate::support::wait_for;
use crate::support::watcher::{Watcher, What};

const WORK: Gateway = Gateway::of(ANN, "work");
const OPS: Gateway = Gateway::of(ANN, "ops");

#[test]
fn the_watcher_counts_one_restart_where_there_was_one_and_two_where_there_were_two() {
    let Some(fleet) = Fleet::boot() else { return };
    let watcher = Watcher::start(&fleet.sandbox, "ann");
    let before = fleet.life(WORK);

    fleet.sandbox.sh(
        Some("ann"),
        &format!("systemctl --user restart {}", WORK.unit()),
    );
    let after = fleet.wait_until_running(WORK);
    assert_eq!(
        watcher.starts_of(&WORK.unit()),
        1,
        "{:#?}",
        watcher.of(&WORK.unit())
    );
    assert_eq!(
        watcher.starts_of(&OPS.unit()),
        0,
        "{:#?}",
        watcher.of(&OPS.unit())
    );
    let life = fleet.life(WORK);
    assert_ne!(life.invocation, before.invocation);
    assert_eq!(life.pid, after.pid);

    // Hermes 0.19 restarts itself after a drain, through a helper unit of its own. Somebody who then
    // restarts it as well, after the helper's job, makes it two.
    let first = fleet.life(OPS);
    fleet
        .sandbox
        .sh(Some("ann"), &format!("kill -USR1 {}", first.pid));
    let helper = |unit: &str| unit.starts_with("hermes-gateway-ops-planned-restart-");
    assert!(
        watcher.wait_until(Duration::from_secs(20), |event| helper(&event.unit)
            && event.what == What::UnitNew),
        "Hermes 0.19 did not start its helper: {:#?}",
        watcher.events()
    );
    assert!(watcher.wait_until(Duration::from_secs(20), |event| {
        event.unit == OPS.unit() && event.what == What::JobRemoved("done".into())
    }));
    assert_eq!(
        watcher.starts_of(&OPS.unit()),
        1,
        "{:#?}",
        watcher.of(&OPS.unit())
    );
    fleet.sandbox.sh(
        Some("ann"),
        &format!("systemctl --user try-restart {}", OPS.unit()),
    );
    // systemctl may know it before the watcher's own connection does.
    wait_for("the second start is told", Duration::from_secs(20), || {
        (watcher.starts_of(&OPS.unit()) >= 2).then_some(())
    });

    wait_for("ops runs", Duration::from_secs(60), || fleet.running(OPS));
    let last = fleet.life(OPS);
    assert_eq!(
        watcher.starts_of(&OPS.unit()),
        2,
        "{:#?}",
        watcher.of(&OPS.unit())
    );
    assert_ne!(last.invocation, first.invocation);
    // The count that a receipt must not be judged by.
    assert_eq!(last.automatic_restarts, 0);
}
