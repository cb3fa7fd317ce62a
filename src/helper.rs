//! Acting as somebody else: how root does a user's work without a user's link or race reaching
//! anything of root's.
//!
//! A [`Task`] is work inside one account's homes or on its service manager. [`perform`] does it in
//! this process where we *are* that account, else in a helper: this same program, started through
//! `/proc/self/exe`, which gives up root's ids before it reads anything but its arguments
//! ([`become_account`]) and then speaks length-bounded JSON over a socket pair. The helper has an
//! exact environment, no privileges to gain, limits, and a deadline; what it answers is hostile data
//! for the parent. The list of tasks that a helper knows stands in `run/helper.rs`.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::process::{Gid, Resource, Rlimit, Uid};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind, Result};
use crate::world::{Account, World};

pub mod beside;
mod living;
mod subject;
mod wire;
mod worker;

use beside::Beside;
pub use living::end_all;
pub use subject::Subject;
pub use wire::{read_message, write_message};
use worker::{Terms, Worker};
pub use worker::{close_inherited, dismiss_idle, ends_within};

/// The hidden subcommand that a helper is started with.
pub const SUBCOMMAND: &str = "helper";

/// A helper that needs more address space than this is under attack.
const MEMORY_LIMIT: u64 = 2 << 30;

/// How many descriptors a helper may have open, unless it asks for more.
const DESCRIPTOR_LIMIT: u64 = 256;

/// How many it may ask for: one that locks homes holds one a home.
const MOST_DESCRIPTORS: u64 = 1 << 16;

/// Work that is done as one account.
pub trait Task: Serialize + DeserializeOwned {
    /// What the helper is asked for by.
    const VERB: &'static str;
    /// What it tells while it works.
    type Event: Serialize + DeserializeOwned;
    /// What it ends with.
    type Answer: Serialize + DeserializeOwned;

    /// The process whose place the helper takes, if it will start something there: such a helper keeps
    /// the limits and the control group of that process instead of getting the usual limits.
    fn beside(&self) -> Option<Beside> {
        None
    }

    /// Whose homes it is about, which the helper's environment says. A helper that only looks knows no cell:
    /// nothing is opened for it that could say which.
    fn subject(&self) -> Subject {
        Subject::default()
    }

    /// Does the work, as the account of `world`.
    ///
    /// # Errors
    /// Only what makes the whole task impossible; what concerns one home or unit is in the answer.
    fn perform(
        self,
        world: &World,
        tell: &mut dyn FnMut(Self::Event) -> Result<()>,
    ) -> Result<Self::Answer>;
}

#[derive(Serialize, Deserialize)]
enum Message<E, A> {
    Event(E),
    Answer(A),
    Failed { code: FailureCode, error: String },
}

#[derive(Serialize, Deserialize)]
enum FailureCode {
    Input,
    Io,
    Denied,
    Deadline,
    Protocol,
}

/// Does `task` as `account`: here where that is who we are, else in a helper of that account.
///
/// # Errors
/// When the task as a whole failed, the helper could not be started, answered nonsense, or did not
/// answer within `limit`.
pub fn perform<T: Task>(
    world: &World,
    account: &Account,
    task: T,
    limit: Duration,
    tell: &mut dyn FnMut(T::Event) -> Result<()>,
) -> Result<T::Answer> {
    if account.uid == world.account.uid {
        return task.perform(world, tell);
    }
    let mut session = Session::start(world, account, task, limit)?;
    loop {
        match session.listen()? {
            Step::Event(event) => tell(event)?,
            Step::Answer(answer) => {
                session.release();
                return Ok(answer);
            }
        }
    }
}

/// A helper at work. Dropping it before the work is done ends the helper.
#[derive(Debug)]
pub struct Session<T> {
    name: String,
    worker: Worker,
    deadline: Instant,
    task: std::marker::PhantomData<T>,
}

/// What a helper said.
#[derive(Debug)]
pub enum Step<E, A> {
    /// It goes on working.
    Event(E),
    /// It is done.
    Answer(A),
}

impl<T: Task> Session<T> {
    /// Hands `task` to a helper of `account`: to one that has nothing to do, else to a new one.
    ///
    /// # Errors
    /// When this process is not root, or the helper cannot be started.
    pub fn start(world: &World, account: &Account, task: T, limit: Duration) -> Result<Self> {
        let name = format!("helper for {} ({})", account.name, T::VERB);
        if !world.is_root() {
            return Err(Error::new(
                Kind::Denied,
                format!("{name}: only root can act as another user"),
            ));
        }
        let terms = Terms {
            account: account.clone(),
            subject: task.subject(),
            beside: task.beside(),
        };
        let deadline = Instant::now() + limit;
        let hand = |worker| -> Result<Self> {
            let mut session = Self {
                name: name.clone(),
                worker,
                deadline,
                task: std::marker::PhantomData,
            };
            session.hand(&task)?;
            Ok(session)
        };
        if let Some(idle) = worker::idle(&terms) {
            match hand(idle) {
                // Its user ended it meanwhile.
                Err(error) if error.kind() != Kind::Deadline => {}
                handed => return handed,
            }
        }
        hand(Worker::start(terms, &name, T::VERB)?)
    }

    fn hand(&mut self, task: &T) -> Result<()> {
        let channel = &mut self.worker.channel;
        channel.set_deadline(self.deadline);
        channel
            .write(&T::VERB)
            .and_then(|()| channel.write(task))
            .map_err(|error| self.failed(error))
    }

    /// Lets the helper wait for other work, now that this is done.
    fn release(self) {
        self.worker.release();
    }

    /// Waits for the next thing that the helper says.
    ///
    /// # Errors
    /// When the deadline passed, the helper ended early, or what it said is not valid.
    pub fn listen(&mut self) -> Result<Step<T::Event, T::Answer>> {
        let read = self.worker.channel.read();
        let message: Message<T::Event, T::Answer> = read.map_err(|error| self.failed(error))?;
        match message {
            Message::Event(event) => Ok(Step::Event(event)),
            Message::Answer(answer) => Ok(Step::Answer(answer)),
            Message::Failed { code, error } => {
                let kind = match code {
                    FailureCode::Input => Kind::Input,
                    FailureCode::Io => Kind::Io,
                    FailureCode::Denied => Kind::Denied,
                    FailureCode::Deadline => Kind::Deadline,
                    FailureCode::Protocol => Kind::Protocol,
                };
                Err(Error::new(kind, format!("{}: {error}", self.name)))
            }
        }
    }

    fn failed(&self, error: std::io::Error) -> Error {
        let kind = match error.kind() {
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => Kind::Deadline,
            std::io::ErrorKind::InvalidData => Kind::Protocol,
            _ => Kind::Io,
        };
        let what = match kind {
            Kind::Deadline => "did not answer in time",
            Kind::Protocol => "answered with something that cannot be used",
            _ => "ended early",
        };
        Error::new(kind, format!("{} {what}", self.name)).with_source(error)
    }
}

/// What the hidden subcommand was started with, before any of it is believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// What it was started for, for whoever looks at the process: it is told what to do on its socket.
    pub verb: String,
    /// As whom.
    pub account: Account,
    /// Every group of the account.
    pub groups: Vec<u32>,
    /// Whose place the helper takes.
    pub beside: Option<Beside>,
}

impl Invocation {
    /// Reads the arguments that [`Session::start`] writes; `args` starts at the verb.
    ///
    /// # Errors
    /// When they are not what `Session::start` writes.
    pub fn parse(args: &[std::ffi::OsString]) -> Result<Self> {
        let usage = || Error::new(Kind::Usage, "the helper is started by update itself");
        let ([verb, uid, gid, groups, name, home], rest) = match args {
            [verb, uid, gid, groups, name, home, rest @ ..] if rest.len() < 2 => {
                ([verb, uid, gid, groups, name, home], rest)
            }
            _ => return Err(usage()),
        };
        let text = |value: &std::ffi::OsString| value.to_str().map(str::to_owned).ok_or_else(usage);
        let number = |value: &str| value.parse::<u32>().map_err(|_| usage());
        Ok(Self {
            verb: text(verb)?,
            account: Account {
                uid: number(&text(uid)?)?,
                gid: number(&text(gid)?)?,
                name: text(name)?,
                home: home.into(),
            },
            groups: text(groups)?
                .split(',')
                .map(number)
                .collect::<Result<_>>()?,
            beside: match rest.first() {
                None => None,
                Some(beside) => Some(Beside::parse(&text(beside)?).ok_or_else(usage)?),
            },
        })
    }
}

/// Gives up root's ids for good. Must be called before a second thread exists.
///
/// # Errors
/// When any of it cannot be done: then nothing may be done at all.
pub fn become_account(invocation: &Invocation) -> Result<()> {
    let failed = |what: &str| {
        let what = format!("cannot {what} for {}", invocation.account.name);
        move |error: rustix::io::Errno| Error::io(what.clone(), error)
    };
    let uid = Uid::from_raw(invocation.account.uid);
    let gid = Gid::from_raw(invocation.account.gid);
    let groups: Vec<Gid> = invocation
        .groups
        .iter()
        .copied()
        .map(Gid::from_raw)
        .collect();
    if let Some(beside) = invocation.beside {
        beside.stand();
    }
    // The raw calls change the calling thread alone (setresuid(2), "C library/kernel
    // differences"); while there is one thread, that is the process. Groups go first: they need root.
    rustix::thread::set_thread_groups(&groups).map_err(failed("set the groups"))?;
    rustix::thread::set_thread_res_gid(gid, gid, gid).map_err(failed("set the group id"))?;
    rustix::thread::set_thread_res_uid(uid, uid, uid).map_err(failed("set the user id"))?;
    // Its user may trace and rewrite its own processes, but not one that leaves no dump (ptrace(2)); the
    // change of ids did as much unless fs.suid_dumpable says otherwise (prctl(2), PR_SET_DUMPABLE).
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
        .map_err(failed("refuse to be traced"))?;
    // Root's terminal is no business of a user's process (ioctl_tty(2), TIOCSTI).
    rustix::process::setsid().map_err(failed("leave the session"))?;
    // A change of ids clears this, so it comes after (prctl(2), PR_SET_PDEATHSIG).
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(failed("follow the parent's death"))?;
    if invocation.beside.is_none() {
        confine().map_err(|(what, error)| failed(what)(error))?;
    }
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    if uid.as_raw() != 0
        && rustix::thread::set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).is_ok()
    {
        return Err(Error::new(Kind::Denied, "the user id could be taken back"));
    }
    Ok(())
}

/// What a child would inherit for good, so only of helpers that start nothing in another's place.
fn confine() -> std::result::Result<(), (&'static str, rustix::io::Errno)> {
    rustix::thread::set_no_new_privs(true).map_err(|error| ("renounce new privileges", error))?;
    for (resource, current, maximum) in [
        (Resource::As, MEMORY_LIMIT, MEMORY_LIMIT),
        (Resource::Nofile, DESCRIPTOR_LIMIT, MOST_DESCRIPTORS),
        (Resource::Core, 0, 0),
    ] {
        // What was inherited is not raised: by now nothing of ours may do that (setrlimit(2)).
        let most = rustix::process::getrlimit(resource).maximum;
        let maximum = most.map_or(maximum, |most| most.min(maximum));
        let limit = Rlimit {
            current: Some(current.min(maximum)),
            maximum: Some(maximum),
        };
        rustix::process::setrlimit(resource, limit).map_err(|error| ("set the limits", error))?;
    }
    Ok(())
}

/// Raises the number of descriptors that this process may have open by `more`, as far as it may: where that is
/// not far enough, opening one says so.
pub fn make_room(more: usize) {
    let mut limit = rustix::process::getrlimit(Resource::Nofile);
    let more = u64::try_from(more).unwrap_or(u64::MAX);
    let wanted = limit.current.map(|now| now.saturating_add(more));
    limit.current = match (wanted, limit.maximum) {
        (Some(wanted), Some(most)) => Some(wanted.min(most)),
        (wanted, _) => wanted,
    };
    let _ = rustix::process::setrlimit(Resource::Nofile, limit);
}

/// The parent's end of the socket that is a helper's standard input.
fn parent() -> Result<UnixStream> {
    let fd = std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map_err(lost)?;
    Ok(UnixStream::from(fd))
}

fn lost(error: std::io::Error) -> Error {
    Error::io("the helper lost its parent", error)
}

/// What a helper is asked for next; nothing once its parent has no more for it.
///
/// # Errors
/// When the socket cannot be used, or what came is not the name of a task.
pub fn next_verb() -> Result<Option<String>> {
    match read_message(&mut parent()?) {
        Ok(verb) => Ok(Some(verb)),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(lost(error)),
    }
}

/// Serves one task on the socket that is standard input, then returns.
///
/// # Errors
/// When the socket cannot be used; failures of the task itself are answered.
pub fn serve<T: Task>(world: &World) -> Result<()> {
    let mut channel = parent()?;
    let task: T = read_message(&mut channel).map_err(lost)?;
    let mut events = channel.try_clone().map_err(lost)?;
    let mut tell = |event: T::Event| {
        write_message(&mut events, &Message::<T::Event, T::Answer>::Event(event)).map_err(lost)
    };
    let message = match task.perform(world, &mut tell) {
        Ok(answer) => Message::Answer(answer),
        Err(error) => Message::Failed {
            code: match error.kind() {
                Kind::Input | Kind::Usage => FailureCode::Input,
                Kind::Denied | Kind::Refused => FailureCode::Denied,
                Kind::Deadline | Kind::Locked => FailureCode::Deadline,
                Kind::Protocol => FailureCode::Protocol,
                Kind::Io => FailureCode::Io,
            },
            error: error.to_string(),
        },
    };
    write_message::<Message<T::Event, T::Answer>>(&mut channel, &message).map_err(lost)
}

/// Blocks until the parent closes its end of the socket: how a helper holds something for as long
/// as its parent lives.
///
/// # Errors
/// When the socket cannot be read.
pub fn wait_for_parent() -> Result<()> {
    // Nothing more is said to a helper at this point; whatever comes is not kept.
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())
        .map(drop)
        .map_err(lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_helpers_arguments_are_read_back_whole() {
        let args: Vec<std::ffi::OsString> =
            ["survey", "1001", "1002", "27,1002", "ann", "/home/ann"]
                .map(Into::into)
                .to_vec();
        let invocation = Invocation::parse(&args).expect("they are valid");
        assert_eq!(
            (invocation.account.uid, invocation.account.gid),
            (1001, 1002)
        );
        assert_eq!(invocation.groups, [27, 1002]);
        assert_eq!(invocation.beside, None);
        assert!(Invocation::parse(&args[1..]).is_err());
        let with = |beside: &str| [args.clone(), vec![beside.into()]].concat();
        let placed = Invocation::parse(&with("77:5")).expect("they are valid");
        assert_eq!(placed.beside.map(|beside| beside.pid), Some(77));
        assert!(Invocation::parse(&with("1:5")).is_err());
    }
}
