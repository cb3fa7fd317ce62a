//! Restarting a runtime with the command of a site's row: one absolute program with arguments, never
//! a shell, an exact environment, and a limit. What it prints is not looked at and its exit status is
//! recorded, not believed: the next life is watched for as after a signal.

#![expect(
    clippy::disallowed_methods,
    reason = "starts the one program that a row of the mechanism table names"
)]

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::scene::{Life, left};
use super::signal::Watch;
use super::{Call, Observation, Order, Progress};
use crate::error::{Error, Result};
use crate::fleet::{Incarnation, procfs};
use crate::world::World;

/// How often the command is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// Carries out an order by a command.
///
/// # Errors
/// Only when `tell` fails: whoever ordered it is gone or wants to end.
pub fn restart(
    world: &World,
    order: &Order,
    tell: &mut dyn FnMut(Progress) -> Result<()>,
) -> Result<Observation> {
    let mut watch = match Watch::begin(order, tell) {
        Ok(watch) => watch,
        Err(observation) => return Ok(*observation),
    };
    let Some(argv) = arguments(order) else {
        let message = format!(
            "row {:?} needs a field that is not known here",
            order.row.id
        );
        return Ok(watch.refuse("row", message));
    };
    let Some((program, rest)) = argv.split_first() else {
        return Ok(watch.refuse("row", "it names no program".into()));
    };
    let child = Command::new(program)
        .args(rest)
        .env_clear()
        .envs(&order.row.env)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return Ok(watch.refuse("command", format!("{program}: {error}"))),
    };
    let status = match await_command(world, &mut child, order, &mut watch) {
        Ok(status) => status,
        Err(error) => {
            end(&mut child);
            return Err(error);
        }
    };
    watch.seen.call = Call::Ran {
        program: program.clone(),
        status,
    };
    if watch.await_end(order.row.limit, "command")? {
        watch.await_successor()?;
    } else {
        watch.seen.at_limit = true;
    }
    Ok(watch.finish())
}

fn arguments(order: &Order) -> Option<Vec<String>> {
    let words = order.row.argv.iter();
    words.map(|word| order.fields.fill_exactly(word)).collect()
}

/// Waits for the command, at most the row's limit; `None` where it was ended.
fn await_command(
    world: &World,
    child: &mut Child,
    order: &Order,
    watch: &mut Watch<'_>,
) -> Result<Option<i32>> {
    let until = watch.clock().until(order.row.limit);
    let failed = |error: std::io::Error| Error::io("cannot wait for the command", error);
    // Nobody but us reaps our child, so its id is still its own here.
    let incarnation = Incarnation {
        boot_id: world.boot_id.clone(),
        pid: child.id(),
        start_ticks: procfs::start_ticks(child.id())
            .map_err(failed)?
            .unwrap_or_default(),
        pid_namespace: None,
    };
    // One that ended already cannot be held, and need not be waited for.
    if let Some(life) = Life::hold(&incarnation).map_err(failed)? {
        while !life.wait(LOOK.min(left(until))).map_err(failed)? {
            if left(until).is_zero() {
                watch.seen.at_limit = true;
                watch
                    .seen
                    .notes
                    .push("the command was ended at its limit".into());
                end(child);
                return Ok(None);
            }
            watch.clock().tell("command", None)?;
        }
    }
    Ok(child.wait().map_err(failed)?.code())
}

/// Ends our own command; its limit was its row's word.
fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}
