//! Getting out of the control group of a runtime that is about to be restarted.
//!
//! What a service's stop kills is its control group (systemd.kill(5)), however a process detached itself.
//! A run that was started from inside a runtime moves itself into a transient scope of its own, and
//! believes it only when `/proc/self/cgroup` says so. The main process of a unit is killed wherever it
//! is; it must not try.

use std::time::{Duration, Instant};

use zbus::{OwnedObjectPath, Variant};

use crate::error::{Error, Kind, Result};
use crate::fleet::units::bus::{self, Bus, Reach};
use crate::fleet::{Manager, procfs};
use crate::world::World;

/// How long the manager may take to answer, and then to move us.
const LIMIT: Duration = Duration::from_secs(5);

/// The kernel tells nobody that a process was moved, so its group is looked at this often.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Moves this process into a scope of its own, and says which control group it is in then.
///
/// # Errors
/// When no manager of ours answers, it refuses, or the move cannot be seen.
pub fn leave(world: &World) -> Result<String> {
    let manager = if world.is_root() {
        Manager::System
    } else {
        Manager::User(world.account.uid)
    };
    let who = bus::name_of(manager);
    let mut bus = match Bus::reach(manager, LIMIT)? {
        Reach::Bus(bus) => bus,
        Reach::NoManager => return Err(Error::new(Kind::Io, format!("{who} does not run"))),
        Reach::NoBus(reason) => return Err(Error::new(Kind::Io, format!("{who}: {reason}"))),
    };
    let scope = format!("fleet-update-{}.scope", world.pid);
    let properties = [
        (
            "Description",
            Variant::new("fleet-update, outside of what it restarts"),
        ),
        ("PIDs", Variant::new(vec![world.pid])),
    ];
    let none: &[(&str, &[(&str, Variant<'_>)])] = &[];
    let body = (scope.as_str(), "fail", properties.as_slice(), none);
    bus.manage::<_, OwnedObjectPath>("StartTransientUnit", &body)
        .map_err(|trouble| trouble.into_error(&who))?;
    let deadline = Instant::now() + LIMIT;
    loop {
        let group = procfs::read(world.pid, &[])
            .map_err(|error| {
                Error::new(Kind::Io, "cannot read our own control group").with_source(error)
            })?
            .map(|process| process.cgroup)
            .unwrap_or_default();
        if group.ends_with(&scope) {
            return Ok(group);
        }
        if Instant::now() >= deadline {
            return Err(Error::new(
                Kind::Deadline,
                format!("{who} did not move us into {scope}"),
            ));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
