//! Who else is told of a run: the service manager of its stage, and the site's own command of its verdict.
//!
//! Neither can change a run: what cannot be told is a warning. The command is an argv of an absolute
//! program, never a shell; the receipt's path and the verdict's word follow its own arguments, its
//! environment is exact, it has a limit, and its exit status is a warning at most.

#![expect(
    clippy::disallowed_methods,
    reason = "starts the one program that the site's configuration names"
)]

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::Session;
use crate::receipt::{Receipt, VerdictOutcome};
use crate::screen;
use crate::world::World;

/// How long the command may take where nobody says.
const LIMIT: Duration = Duration::from_secs(30);

/// The same after a signal ended the run: whoever sent it waits for us.
const LIMIT_INTERRUPTED: Duration = Duration::from_secs(5);

/// The search path of the command; nothing of ours is passed on.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Tells the service manager what a run is doing, if one asked for it (sd_notify(3)).
pub fn stage(world: &World, text: &str) {
    let Some(place) = world.var("NOTIFY_SOCKET") else {
        return;
    };
    // `@` stands for the zero byte that an abstract address begins with.
    let address = match place.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(place),
    };
    let line: String = screen::visible(text).lines().take(1).collect();
    let told = address.and_then(|address| {
        UnixDatagram::unbound()?.send_to_addr(format!("STATUS={line}\n").as_bytes(), &address)
    });
    // A manager that cannot be told does not need to know.
    drop(told);
}

/// Runs the site's command for this verdict, if it has one.
pub fn verdict(session: &Session, receipt: &Receipt) {
    let notify = &session.config.notify;
    let argv = match receipt.verdict.outcome {
        VerdictOutcome::Clean => &notify.on_clean,
        VerdictOutcome::NotClean | VerdictOutcome::Refused | VerdictOutcome::Interrupted => {
            &notify.on_not_clean
        }
    };
    let Some((program, rest)) = argv.split_first() else {
        return;
    };
    let mut limit = notify.limit.map_or(LIMIT, |limit| limit.0);
    if receipt.verdict.outcome == VerdictOutcome::Interrupted {
        limit = limit.min(LIMIT_INTERRUPTED);
    }
    let account = &session.world.account;
    let child = Command::new(program)
        .args(rest)
        .arg(session.state.receipt_path(&receipt.run_id))
        .arg(receipt.verdict.outcome.word())
        .env_clear()
        .env("PATH", PATH)
        .env("LANG", "C.UTF-8")
        .env("HOME", &account.home)
        .env("USER", &account.name)
        .env("LOGNAME", &account.name)
        .current_dir("/")
        .stdin(Stdio::null())
        // Our standard output is the result and nothing else.
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .process_group(0)
        .spawn();
    let problem = match child.and_then(|child| wait(child, limit)) {
        Ok(Some(status)) if status.success() => return,
        Ok(Some(status)) => format!("ended with {status}"),
        Ok(None) => format!("was ended after {} s", limit.as_secs_f32()),
        Err(error) => error.to_string(),
    };
    session
        .ui
        .warn(&format!("the notification {program} {problem}"));
}

/// Waits for our child; `None` where it had to be ended, with all that it started.
fn wait(mut child: Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    // Nobody but us reaps our child, so its id is still its own here.
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let Some(pid) = pid else {
        return child.wait().map(Some);
    };
    let handle = pidfd_open(pid, PidfdFlags::empty())?;
    let timeout = Timespec::try_from(limit).ok();
    let ready = poll(&mut [PollFd::new(&handle, PollFlags::IN)], timeout.as_ref());
    // A signal to us ends the wait early; the command is not waited for any longer then.
    if ready.is_ok_and(|count| count > 0) {
        return child.wait().map(Some);
    }
    let _ = kill_process_group(pid, Signal::KILL);
    child.wait().map(|_| None)
}
