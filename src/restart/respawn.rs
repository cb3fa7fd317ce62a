//! Respawning what nobody keeps: the old life ends by a signal, and this program starts the next as it was
//! started – same program, arguments, folder, environment, owner, limits and output – or leaves it alone.
//!
//! Only a site's row asks for this. Everything is read and checked before anything is stopped, by the owner
//! and never by root; what cannot be read whole or given again is a reason to refuse, and the runtime stays
//! as it is, for a person. What does it is a process of its own ([`starter`]); this one watches for the
//! next life as after any signal, and believes no word of the starter's.

#![expect(
    clippy::disallowed_methods,
    reason = "starts the starter, which is this program"
)]

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::scene::millis;
use super::signal::Watch;
use super::{Call, Drained, Observation, Order, Progress, SignalName};
use crate::error::Result;
use crate::helper::beside::Beside;
use crate::helper::{self, Task, read_message, write_message};
use crate::world::World;

mod origin;
pub mod starter;

use starter::{Go, Said, Wanted};

/// How long reading and preparing may take.
const PREPARE_LIMIT: Duration = Duration::from_secs(15);

/// The starter waits so much longer for the end than we do: what ends at our limit is still replaced.
const LATER: Duration = Duration::from_secs(5);

/// What the answer of a refused respawn is called: the runtime was not touched.
pub const LEFT_ALONE: &str = "left-alone";

/// Restarts one runtime that nobody keeps, and observes. Unlike [`super::Restart`] its helper stands where
/// the runtime stands, so that what it starts does, too.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Respawn(pub Order);

impl Task for Respawn {
    const VERB: &'static str = "respawn";
    type Event = Progress;
    type Answer = Observation;

    fn beside(&self) -> Option<Beside> {
        let life = self.0.expected.incarnation.as_ref()?;
        Some(Beside {
            pid: life.pid,
            start_ticks: life.start_ticks,
        })
    }

    fn perform(
        self,
        _world: &World,
        tell: &mut dyn FnMut(Progress) -> Result<()>,
    ) -> Result<Observation> {
        let began = crate::world::now();
        let seen = restart(&self.0, tell)?;
        Ok(Observation {
            began_at_nanos: u64::try_from(began.as_nanos()).unwrap_or(u64::MAX),
            ..seen
        })
    }
}

/// Carries out an order by a respawn.
///
/// # Errors
/// Only when `tell` fails: whoever ordered it is gone or wants to end.
fn restart(order: &Order, tell: &mut dyn FnMut(Progress) -> Result<()>) -> Result<Observation> {
    let mut watch = match Watch::begin(order, tell) {
        Ok(watch) => watch,
        Err(observation) => return Ok(*observation),
    };
    let drain = order.row.drain.as_ref();
    let signal = drain.map_or(SignalName::Term, |drain| drain.signal);
    let limit = drain.map_or(order.row.limit, |drain| drain.limit);
    if let Err((_, message)) = watch.may_signal(signal) {
        return Ok(watch.refuse(LEFT_ALONE, message));
    }
    watch.clock().tell("prepare", None)?;
    let prepared = Starter::prepare(order, signal, limit + LATER);
    let mut starter = match prepared {
        Ok(starter) => starter,
        Err(why) => return Ok(watch.refuse(LEFT_ALONE, why)),
    };
    let began = Instant::now();
    if let Err(error) = starter.go() {
        return Ok(watch.refuse(LEFT_ALONE, format!("the starter is gone: {error}")));
    }
    watch.seen.call = Call::Signalled { signal };
    let exited = watch.await_end(limit, "drain")?;
    watch.seen.drain = Some(Drained {
        signal,
        exited,
        waited_ms: millis(began.elapsed()),
    });
    if exited {
        watch.seen.notes.extend(starter.outcome());
        watch.await_successor()?;
    } else {
        watch.seen.at_limit = true;
    }
    Ok(watch.finish())
}

/// The starter at work. It goes on when this is dropped; it only is not waited for any more.
struct Starter {
    child: Child,
    channel: UnixStream,
}

impl Starter {
    /// Starts one, and lets it prepare everything; the reason why it cannot is fit for a receipt.
    fn prepare(order: &Order, signal: SignalName, limit: Duration) -> Result<Self, String> {
        let Some(life) = order.expected.incarnation.clone() else {
            return Err("there is no process".into());
        };
        let failed = |error: std::io::Error| format!("the starter cannot be started: {error}");
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        ours.set_read_timeout(Some(PREPARE_LIMIT)).map_err(failed)?;
        let child = Command::new("/proc/self/exe")
            .args([helper::SUBCOMMAND, starter::VERB])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let mut starter = Self {
            child,
            channel: ours,
        };
        let wanted = Wanted {
            life,
            signal,
            limit,
        };
        write_message(&mut starter.channel, &wanted).map_err(failed)?;
        match starter.listen() {
            Ok(Said::Ready) => Ok(starter),
            Ok(Said::Cannot(why)) => Err(why),
            Ok(Said::Ended(_) | Said::Started(_)) => Err("the starter answered nonsense".into()),
            Err(error) => Err(format!("the starter did not answer: {error}")),
        }
    }

    fn go(&mut self) -> std::io::Result<()> {
        write_message(&mut self.channel, &Go)
    }

    fn listen(&mut self) -> std::io::Result<Said> {
        read_message(&mut self.channel)
    }

    /// What it says of a start that failed; it says it at once after the end of the old life.
    fn outcome(&mut self) -> Option<String> {
        let note = loop {
            match self.listen() {
                Ok(Said::Ended(true) | Said::Ready) => {}
                Ok(Said::Started(_)) => break None,
                Ok(Said::Ended(false)) => {
                    break Some("it ended too late to be started again".into());
                }
                Ok(Said::Cannot(why)) => break Some(why),
                Err(error) => break Some(format!("the starter said nothing more: {error}")),
            }
        };
        // It ends after its last word; a run that goes on for long must not keep its remains.
        let _ = self.child.wait();
        note
    }
}
