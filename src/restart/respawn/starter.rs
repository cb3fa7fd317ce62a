//! The process between the old life and the next: it reads what the old one was started with, asks it to
//! end, and starts the next in its place. It is ours, and neither its life nor that of what it starts
//! hangs on the run: it has a session of its own, stands in the control group of the old one or in one
//! that outlives us, and once it was told to go it finishes also if the run is killed.
//!
//! | it is told | it answers |
//! |---|---|
//! | which life, which signal, how long | `ready`, or why it cannot; nothing was done yet |
//! | go | `ended` or not, then `started` or why not |
//! | nothing any more | it ends; before `go` that leaves everything as it was |

#![expect(
    clippy::disallowed_methods,
    reason = "starts the next life of a runtime, as its owner"
)]

use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::SignalName;
use super::super::escape;
use super::super::scene::Life;
use super::origin::{Origin, oom_score_adj};
use crate::error::{Error, Result};
use crate::fleet::Incarnation;
use crate::fleet::procfs::{self, Cgroup, innermost_service};
use crate::helper::{read_message, write_message};
use crate::world::World;

/// What the hidden subcommand of a helper is called that starts a starter.
pub const VERB: &str = "starter";

/// What a starter is asked for.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Wanted {
    pub(super) life: Incarnation,
    pub(super) signal: SignalName,
    pub(super) limit: Duration,
}

/// The word that lets it act.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Go;

/// What it answers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Said {
    /// All that is needed was read, and all that can be given was taken.
    Ready,
    /// Why nothing was done, or why nothing was started.
    Cannot(String),
    /// Whether the old life ended within the limit.
    Ended(bool),
    /// The process of the next life.
    Started(u32),
}

/// Serves one order on the socket that is standard input, then returns.
///
/// # Errors
/// When nobody is there to say what is wanted.
pub fn main() -> Result<()> {
    let lost = |error: std::io::Error| Error::io("the starter lost its parent", error);
    let input = std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map_err(lost)?;
    let mut channel = UnixStream::from(input);
    let wanted: Wanted = read_message(&mut channel).map_err(lost)?;
    let prepared = prepare(&wanted);
    let (life, origin) = match prepared {
        Ok(prepared) => prepared,
        Err(why) => return write_message(&mut channel, &Said::Cannot(why)).map_err(lost),
    };
    write_message(&mut channel, &Said::Ready).map_err(lost)?;
    let Go = read_message(&mut channel).map_err(lost)?;
    // From here on nobody has to listen any more.
    if let Err(error) = life.signal(wanted.signal) {
        let _ = write_message(
            &mut channel,
            &Said::Cannot(format!("it cannot be signalled: {error}")),
        );
        return Ok(());
    }
    let ended = await_end(&life, wanted.limit);
    let _ = write_message(&mut channel, &Said::Ended(ended));
    if ended {
        let said = match start(&origin) {
            Ok(pid) => Said::Started(pid),
            // The system's reason alone: it names no argument and no variable.
            Err(error) => Said::Cannot(format!("the next one cannot be started: {error}")),
        };
        let _ = write_message(&mut channel, &said);
    }
    Ok(())
}

/// Everything that can fail, before anything is done.
fn prepare(wanted: &Wanted) -> Result<(Life, Origin), String> {
    let life = Life::hold(&wanted.life)
        .map_err(|error| format!("the process cannot be held: {error}"))?
        .ok_or("the process had ended")?;
    let origin = Origin::read(&wanted.life)?;
    rustix::process::setsid().map_err(|error| format!("no session of its own: {error}"))?;
    stand_where_it_lasts(&origin.group)?;
    take(&origin)?;
    Ok((life, origin))
}

/// The next life must not be in a group that ends with us.
fn stand_where_it_lasts(group: &str) -> Result<(), String> {
    let ours = procfs::read(std::process::id(), &[])
        .ok()
        .flatten()
        .map(|process| process.cgroup)
        .ok_or("our own control group cannot be read")?;
    let unit = innermost_service(&ours);
    if ours == group || unit.as_ref().is_some_and(Cgroup::is_scope) {
        return Ok(());
    }
    let world = World::read().map_err(|error| error.to_string())?;
    match escape::leave(&world) {
        // Without a unit, and without a manager that could make one, nothing ends with us.
        Err(error) if unit.is_some() => Err(format!(
            "what is started here would end with this run: {error}"
        )),
        _ => Ok(()),
    }
}

/// Takes on what a child inherits.
fn take(origin: &Origin) -> Result<(), String> {
    let me = std::process::id();
    let nice = rustix::process::getpriority_process(None).ok();
    if nice != Some(origin.nice) {
        rustix::process::setpriority_process(None, origin.nice)
            .map_err(|error| format!("its priority cannot be given: {error}"))?;
    }
    if oom_score_adj(me).ok().as_ref() != Some(&origin.oom_score_adj) {
        std::fs::write("/proc/self/oom_score_adj", &origin.oom_score_adj)
            .map_err(|error| format!("its OOM score cannot be given: {error}"))?;
    }
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(origin.umask));
    // Last: under them we can do less.
    for (name, resource, limit) in &origin.limits {
        if rustix::process::getrlimit(*resource) != *limit {
            rustix::process::setrlimit(*resource, *limit)
                .map_err(|error| format!("{name} cannot be given: {error}"))?;
        }
    }
    Ok(())
}

fn await_end(life: &Life, limit: Duration) -> bool {
    let until = std::time::Instant::now() + limit;
    loop {
        let left = super::super::scene::left(until);
        match life.wait(left) {
            Ok(true) => return true,
            Ok(false) if left.is_zero() => return false,
            Ok(false) => {}
            Err(_) => return false,
        }
    }
}

fn start(origin: &Origin) -> std::io::Result<u32> {
    let (first, rest) = origin
        .argv
        .split_first()
        .ok_or(std::io::ErrorKind::InvalidInput)?;
    // What we ignore would be ignored by the next one, too; std gives SIGPIPE back by itself (signal(7)).
    let child = Command::new(&origin.program)
        .arg0(first)
        .args(rest)
        .env_clear()
        .envs(origin.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(&origin.folder)
        .stdin(Stdio::null())
        .stdout(origin.stdout()?)
        .stderr(origin.stderr()?)
        .spawn()?;
    Ok(child.id())
}
