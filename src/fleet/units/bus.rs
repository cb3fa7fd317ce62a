//! A service manager's bus, with a limit on everything that is asked of it.
//!
//! [`Bus::reach`] connects to the system manager or to the manager of *this* user, and tells apart
//! the three ways in which there may be none: no manager, a manager without a bus, and one that does
//! not answer. It never asks another user's manager (a helper of that user does), reads no variable
//! of the environment, starts nothing by activation and asks nobody for a password.
//! Callers are `fleet/units` and `restart/*`; what is asked with [`Bus::call`] is their business.
//!
//! Every call, or several at once, is one [`Runtime::block_on`]: nothing blocks inside a future, where it would wait for
//! the thread that it stands on. Between calls nobody reads: what is told meanwhile waits in the socket and in the bus.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_core::Stream;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use tokio::runtime::Runtime;
use zbus::proxy::{CacheProperties, MethodFlags};
use zbus::wire::{DynamicDeserialize, DynamicType};
use zbus::{Connection, MessageStream, Proxy};

use crate::error::{Error, Kind, Result};
use crate::fleet::Manager;
pub use said::{Signal, Trouble, short};

mod said;

/// How long a single call may take unless the caller says otherwise.
pub const CALL_LIMIT: Duration = Duration::from_secs(2);

/// How long a manager may be away: it executes itself anew (systemctl(1), `daemon-reexec`), which an upgrade
/// of systemd does, or its bus is restarted. It comes back with the same units.
pub const AWAY: Duration = Duration::from_secs(15);

/// How often one that is away is asked: the bus that would tell may be what is away.
const AWAY_LOOK: Duration = Duration::from_millis(100);

/// The name of every systemd manager on its bus.
const SYSTEMD: &str = "org.freedesktop.systemd1";

/// The bus itself.
const DBUS: &str = "org.freedesktop.DBus";
const DBUS_PATH: &str = "/org/freedesktop/DBus";

/// The object that every method of a manager is on.
pub const MANAGER_PATH: &str = "/org/freedesktop/systemd1";

/// The interface of that object.
pub const MANAGER: &str = "org.freedesktop.systemd1.Manager";

/// Signals that may wait for us between two calls. The reader stalls at more, until the next call.
const QUEUE: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1023);

/// How many questions are put before the first is answered: a bus holds only so many open ones of a client
/// (dbus-daemon(1), `max_replies_per_connection`).
const AT_ONCE: usize = 16;

/// A connection to one service manager.
pub struct Bus {
    connection: Connection,
    stream: Option<MessageStream>,
    inbox: VecDeque<Signal>,
    limit: Duration,
    manager: Manager,
    socket: PathBuf,
    watched: Option<Watched>,
    /// What drives the connection; it goes last.
    runtime: Runtime,
}

/// What is watched, so that it can be watched again on another connection.
#[derive(Debug, Clone)]
struct Watched {
    unit: String,
    object: String,
    units: bool,
}

/// One method call.
struct Question<'q, B> {
    destination: &'q str,
    path: &'q str,
    interface: &'q str,
    method: &'q str,
    body: &'q B,
}

impl<B: serde::Serialize + DynamicType> Question<'_, B> {
    async fn put<R>(&self, connection: &Connection) -> zbus::Result<Option<R>>
    where
        R: for<'d> DynamicDeserialize<'d>,
    {
        let proxy: Proxy<'_> = zbus::proxy::Builder::new(connection)
            .destination(self.destination.to_owned())
            .path(self.path.to_owned())
            .interface(self.interface.to_owned())
            .cache_properties(CacheProperties::No)
            .build()
            .await?;
        // An unowned name is an answer; starting a program to own it would be a change.
        proxy
            .call_with_flags(self.method, MethodFlags::NO_AUTO_START, self.body)
            .await
    }
}

/// Whether a manager can be asked at all.
#[derive(Debug)]
pub enum Reach {
    /// It answered.
    Bus(Box<Bus>),
    /// There is none: a fact, not a failure.
    NoManager,
    /// There is one, and no bus to ask it on; and why.
    NoBus(String),
}

impl Bus {
    /// Connects to a manager; `limit` holds for the connection and for each call after it.
    ///
    /// # Errors
    /// When there is a bus and it does not answer in time or refuses this process, and when another
    /// user's manager is asked for.
    pub fn reach(manager: Manager, limit: Duration) -> Result<Reach> {
        let socket = match manager {
            // sd_booted(3): the folder exists exactly where systemd is process 1.
            Manager::System if !Path::new("/run/systemd/system").is_dir() => {
                return Ok(Reach::NoManager);
            }
            Manager::System => PathBuf::from("/run/dbus/system_bus_socket"),
            Manager::User(uid) => {
                if uid != rustix::process::geteuid().as_raw() {
                    let what = format!("the manager of uid {uid} is asked by that user only");
                    return Err(Error::new(Kind::Denied, what));
                }
                // Never $XDG_RUNTIME_DIR: su and sudo leak it from another account.
                let folder = PathBuf::from(format!("/run/user/{uid}"));
                if !folder.is_dir() {
                    return Ok(Reach::NoManager);
                }
                folder.join("bus")
            }
        };
        let mute = |trouble: Trouble| trouble.into_error(&name_of(manager));
        let mut bus = match Self::open(&socket, manager, limit) {
            Ok(bus) => bus,
            Err(Opening::NoBus(reason)) => return Ok(Reach::NoBus(reason)),
            Err(Opening::Trouble(trouble)) => return Err(mute(trouble)),
        };
        if !bus.await_manager().map_err(mute)? {
            return Ok(Reach::NoBus("no service manager is on the bus".into()));
        }
        Ok(Reach::Bus(Box::new(bus)))
    }

    fn open(socket: &Path, manager: Manager, limit: Duration) -> Result<Self, Opening> {
        let deadline = Instant::now() + limit;
        let stream = connect(socket, limit)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(|error| Trouble::Lost(error.to_string()))?;
        let building = async {
            zbus::connection::Builder::unix_stream(stream)
                .max_queued(QUEUE)
                .build()
                .await
        };
        let connection = within(&runtime, deadline, building)
            .map_err(|Expired| Trouble::Mute(limit))?
            .map_err(Trouble::from)?;
        Ok(Self {
            connection,
            stream: None,
            inbox: VecDeque::new(),
            limit,
            manager,
            socket: socket.to_owned(),
            watched: None,
            runtime,
        })
    }

    /// Whether the manager is on the bus, or comes within the limit.
    ///
    /// A user's bus is started by its first client, which may be this one, and the manager joins it
    /// a moment later: systemctl itself talks to the manager past the bus.
    fn await_manager(&mut self) -> Result<bool, Trouble> {
        if self.is_owned()? {
            return Ok(true);
        }
        let end = Instant::now() + self.limit;
        self.stream = Some(MessageStream::from(&self.connection));
        let rule =
            format!("type='signal',sender='{DBUS}',member='NameOwnerChanged',arg0='{SYSTEMD}'");
        self.ask::<_, ()>(DBUS, DBUS_PATH, DBUS, "AddMatch", &rule)?;
        let mut owned = self.is_owned()?;
        while !owned && Instant::now() < end {
            self.wait(end.saturating_duration_since(Instant::now()))?;
            self.inbox.clear();
            owned = self.is_owned()?;
        }
        self.stream = None;
        Ok(owned)
    }

    fn is_owned(&mut self) -> Result<bool, Trouble> {
        self.ask(DBUS, DBUS_PATH, DBUS, "NameHasOwner", &SYSTEMD)
    }

    /// Whose manager it is.
    #[must_use]
    pub const fn manager(&self) -> Manager {
        self.manager
    }

    /// Asks for what changes nothing, and asks again where the manager, or its bus, is away for a moment.
    ///
    /// # Errors
    /// See [`Trouble`]; it was away for longer than [`AWAY`].
    pub fn query<B, R>(
        &mut self,
        path: &str,
        interface: &str,
        method: &str,
        body: &B,
    ) -> Result<R, Trouble>
    where
        B: serde::Serialize + DynamicType,
        R: for<'d> DynamicDeserialize<'d>,
    {
        let until = Instant::now() + AWAY;
        loop {
            match self.call(path, interface, method, body) {
                Err(trouble) if trouble.is_away() => self.come_back(&trouble, until)?,
                answer => return answer,
            }
        }
    }

    /// Asks the same of several objects, or of one object several times, as [`Bus::query`] does: while one
    /// answer is read, the manager works on the next. The answers are in the order of the questions.
    pub fn query_each<B, R>(
        &mut self,
        questions: &[(&str, B)],
        interface: &str,
        method: &str,
    ) -> Vec<Result<R, Trouble>>
    where
        B: serde::Serialize + DynamicType,
        R: for<'d> DynamicDeserialize<'d>,
    {
        let mut answers = Vec::with_capacity(questions.len());
        for some in questions.chunks(AT_ONCE) {
            let asked: Vec<_> = some
                .iter()
                .map(|(path, body)| Question {
                    destination: SYSTEMD,
                    path,
                    interface,
                    method,
                    body,
                })
                .collect();
            let said = self.ask_each(&asked);
            answers.extend(
                said.into_iter()
                    .zip(some)
                    .map(|(answer, (path, body))| match answer {
                        Err(trouble) if trouble.is_away() => {
                            self.query(path, interface, method, body)
                        }
                        answer => answer,
                    }),
            );
        }
        answers
    }

    /// Asks the manager's own object, as [`Bus::query`] does.
    ///
    /// # Errors
    /// As for [`Bus::query`].
    pub fn query_manager<B, R>(&mut self, method: &str, body: &B) -> Result<R, Trouble>
    where
        B: serde::Serialize + DynamicType,
        R: for<'d> DynamicDeserialize<'d>,
    {
        self.query(MANAGER_PATH, MANAGER, method, body)
    }

    /// After a trouble that [`Trouble::is_away`]: waits a moment, and connects anew where the connection broke.
    ///
    /// A manager that executes itself anew keeps its subscribers; a bus that is restarted keeps nothing, and
    /// what was told meanwhile is lost: who watches a job asks for it.
    ///
    /// # Errors
    /// The same trouble, at `until`.
    pub fn come_back(&mut self, trouble: &Trouble, until: Instant) -> Result<(), Trouble> {
        loop {
            if Instant::now() >= until {
                return Err(trouble.clone());
            }
            std::thread::sleep(AWAY_LOOK);
            if !matches!(trouble, Trouble::Lost(_)) || self.reconnect().is_ok() {
                return Ok(());
            }
        }
    }

    fn reconnect(&mut self) -> Result<(), Trouble> {
        let opened = Self::open(&self.socket, self.manager, self.limit);
        let mut fresh = opened.map_err(|opening| match opening {
            Opening::NoBus(reason) => Trouble::Lost(reason),
            Opening::Trouble(trouble) => trouble,
        })?;
        if !fresh.is_owned()? {
            return Err(Trouble::Lost("no service manager is on the bus".into()));
        }
        if let Some(watched) = self.watched.clone() {
            fresh.watch(&watched.unit, &watched.object, watched.units)?;
        }
        fresh.inbox = std::mem::take(&mut self.inbox);
        // Whoever waits for a signal must look: what it waits for may have come and gone.
        fresh.inbox.push_back(Signal::OwnerChanged);
        *self = fresh;
        Ok(())
    }

    /// Calls a method of the manager at `path` once and reads the answer.
    ///
    /// # Errors
    /// See [`Trouble`].
    pub fn call<B, R>(
        &mut self,
        path: &str,
        interface: &str,
        method: &str,
        body: &B,
    ) -> Result<R, Trouble>
    where
        B: serde::Serialize + DynamicType,
        R: for<'d> DynamicDeserialize<'d>,
    {
        self.ask(SYSTEMD, path, interface, method, body)
    }

    /// Calls a method of the manager's own object once.
    ///
    /// # Errors
    /// See [`Trouble`].
    pub fn manage<B, R>(&mut self, method: &str, body: &B) -> Result<R, Trouble>
    where
        B: serde::Serialize + DynamicType,
        R: for<'d> DynamicDeserialize<'d>,
    {
        self.call(MANAGER_PATH, MANAGER, method, body)
    }

    fn ask<B, R>(
        &mut self,
        destination: &str,
        path: &str,
        interface: &str,
        method: &str,
        body: &B,
    ) -> Result<R, Trouble>
    where
        B: serde::Serialize + DynamicType,
        R: for<'d> DynamicDeserialize<'d>,
    {
        let question = Question {
            destination,
            path,
            interface,
            method,
            body,
        };
        let mut answers = self.ask_each(&[question]);
        answers
            .pop()
            .unwrap_or_else(|| Err(Trouble::Lost(format!("{method} has no answer"))))
    }

    /// Asks all questions at once; each has its own answer, in their order.
    fn ask_each<B, R>(&mut self, questions: &[Question<'_, B>]) -> Vec<Result<R, Trouble>>
    where
        B: serde::Serialize + DynamicType,
        R: for<'d> DynamicDeserialize<'d>,
    {
        let limit = self.limit;
        let connection = &self.connection;
        let mut asked: Vec<_> = questions
            .iter()
            .map(|question| (Box::pin(question.put(connection)), None))
            .collect();
        let (stream, inbox) = (&mut self.stream, &mut self.inbox);
        let answering = poll_fn(|cx| {
            // A full queue stalls the reader and with it the answers, so it is emptied while we wait.
            while let Some(Poll::Ready(Some(message))) =
                stream.as_mut().map(|stream| Pin::new(stream).poll_next(cx))
            {
                inbox.extend(message.ok().as_ref().and_then(Signal::read));
            }
            for (asking, answer) in &mut asked {
                if answer.is_none()
                    && let Poll::Ready(said) = asking.as_mut().poll(cx)
                {
                    *answer = Some(said);
                }
            }
            if asked.iter().all(|(_, answer)| answer.is_some()) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        });
        let _ = within(&self.runtime, Instant::now() + limit, answering);
        let answers = asked.into_iter().map(|(_, answer)| answer);
        answers
            .zip(questions)
            .map(|(answer, question)| {
                let said: Option<R> = answer.ok_or(Trouble::Mute(limit))?.map_err(Trouble::from)?;
                said.ok_or_else(|| Trouble::Lost(format!("{} has no answer", question.method)))
            })
            .collect()
    }

    /// Asks to be told of the jobs of one unit, of changes of its object, and with `units` of every
    /// unit that is loaded, and keeps the unit loaded. Must come before what is to be watched: only subscribers are told of
    /// other people's jobs.
    ///
    /// # Errors
    /// See [`Trouble`].
    pub fn watch(&mut self, unit: &str, object: &str, units: bool) -> Result<(), Trouble> {
        if self.stream.is_none() {
            self.stream = Some(MessageStream::from(&self.connection));
        }
        let watched = Watched {
            unit: unit.to_owned(),
            object: object.to_owned(),
            units,
        };
        let manager = format!("type='signal',sender='{SYSTEMD}',path='{MANAGER_PATH}'");
        let unit = unit.replace('\'', "'\\''");
        let mut rules = vec![
            format!("{manager},member='JobNew',arg2='{unit}'"),
            format!("{manager},member='JobRemoved',arg2='{unit}'"),
            format!("type='signal',sender='{SYSTEMD}',path='{object}',member='PropertiesChanged'"),
        ];
        if units {
            rules.push(format!("{manager},member='UnitNew'"));
            rules.push(format!("{manager},member='UnitRemoved'"));
        }
        for rule in &rules {
            self.ask::<_, ()>(DBUS, DBUS_PATH, DBUS, "AddMatch", rule)?;
        }
        match self.manage::<_, ()>("Subscribe", &()) {
            // The rules alone may have been answered by an earlier subscription of this connection.
            Err(Trouble::Refused { name, .. }) if name.ends_with(".AlreadySubscribed") => {}
            other => other?,
        }
        // A unit that dies unreferenced is unloaded, and its result is lost; the reference goes with
        // this connection. It may be refused: then the unit is read as long as it stays loaded.
        let _: Result<(), Trouble> = self.manage("RefUnit", &watched.unit.as_str());
        self.watched = Some(watched);
        Ok(())
    }

    /// Waits for signals, at most `limit`; returns early with the first. A connection that broke is made anew.
    ///
    /// # Errors
    /// When the connection broke, and none could be made for longer than [`AWAY`].
    pub fn wait(&mut self, limit: Duration) -> Result<(), Trouble> {
        match self.listen(limit) {
            Err(trouble @ Trouble::Lost(_)) => self.come_back(&trouble, Instant::now() + AWAY),
            heard => heard,
        }
    }

    fn listen(&mut self, limit: Duration) -> Result<(), Trouble> {
        if !self.inbox.is_empty() {
            return Ok(());
        }
        let Some(stream) = &mut self.stream else {
            return Ok(());
        };
        let inbox = &mut self.inbox;
        let waiting = poll_fn(|cx| {
            loop {
                match Pin::new(&mut *stream).poll_next(cx) {
                    Poll::Ready(Some(Ok(message))) => inbox.extend(Signal::read(&message)),
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
                    Poll::Ready(None) => {
                        let error = zbus::Error::Failure("the bus closed the connection".into());
                        return Poll::Ready(Err(error));
                    }
                    Poll::Pending if inbox.is_empty() => return Poll::Pending,
                    Poll::Pending => return Poll::Ready(Ok(())),
                }
            }
        });
        match within(&self.runtime, Instant::now() + limit, waiting) {
            Ok(outcome) => outcome.map_err(Trouble::from),
            Err(Expired) => Ok(()),
        }
    }

    /// Takes what was told so far, in order.
    pub fn told(&mut self) -> Vec<Signal> {
        self.inbox.drain(..).collect()
    }
}

impl fmt::Debug for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bus")
            .field("manager", &self.manager)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// The words for a manager in an error.
#[must_use]
pub fn name_of(manager: Manager) -> String {
    match manager {
        Manager::System => "the system manager".into(),
        Manager::User(uid) => format!("the manager of uid {uid}"),
    }
}

enum Opening {
    NoBus(String),
    Trouble(Trouble),
}

impl From<Trouble> for Opening {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

struct Expired;

/// Runs a future on this thread until it is ready or the deadline passed.
fn within<F: Future>(
    runtime: &Runtime,
    deadline: Instant,
    future: F,
) -> Result<F::Output, Expired> {
    let waiting = async { tokio::time::timeout_at(deadline.into(), future).await };
    runtime.block_on(waiting).map_err(|_| Expired)
}

/// Connects without ever waiting in connect(2): a stopped bus whose backlog is full says so at once.
fn connect(socket: &Path, limit: Duration) -> Result<UnixStream, Opening> {
    let lost = |errno: Errno| {
        let error = std::io::Error::from(errno);
        Opening::Trouble(Trouble::Lost(format!("{}: {error}", socket.display())))
    };
    let address = SocketAddrUnix::new(socket).map_err(lost)?;
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let fd: OwnedFd =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
            .map_err(lost)?;
    match rustix::net::connect(&fd, &address) {
        Ok(()) => Ok(UnixStream::from(fd)),
        Err(Errno::NOENT) => Err(Opening::NoBus(format!("no socket {}", socket.display()))),
        Err(Errno::CONNREFUSED) => Err(Opening::NoBus(format!(
            "nobody listens on {}",
            socket.display()
        ))),
        // unix(7): a non-blocking connect to a full backlog fails with EAGAIN.
        Err(Errno::AGAIN) => Err(Opening::Trouble(Trouble::Mute(limit))),
        Err(errno) => Err(lost(errno)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_bus_that_accepts_and_stays_silent_costs_no_more_than_the_limit() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("bus");
        let _listener = UnixListener::bind(&path).expect("a socket");
        let started = Instant::now();
        let outcome = Bus::open(&path, Manager::System, Duration::from_millis(150));
        let waited = started.elapsed();
        assert!(matches!(outcome, Err(Opening::Trouble(Trouble::Mute(_)))));
        assert!(waited < Duration::from_secs(1), "waited {waited:?}");
    }

    #[test]
    fn a_bus_whose_backlog_is_full_costs_no_more_than_the_limit() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("bus");
        let address = SocketAddrUnix::new(&path).expect("an address");
        let listener =
            rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
        rustix::net::bind(&listener, &address).expect("bound");
        rustix::net::listen(&listener, 0).expect("listening");
        let _first = UnixStream::connect(&path).expect("the backlog takes one");
        let started = Instant::now();
        let outcome = Bus::open(&path, Manager::System, Duration::from_millis(150));
        let waited = started.elapsed();
        assert!(matches!(outcome, Err(Opening::Trouble(Trouble::Mute(_)))));
        assert!(waited < Duration::from_secs(1), "waited {waited:?}");
    }

    #[test]
    fn a_missing_socket_is_no_bus_and_not_a_failure() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("bus");
        let outcome = Bus::open(&path, Manager::System, CALL_LIMIT);
        assert!(matches!(outcome, Err(Opening::NoBus(_))));
        drop(UnixListener::bind(&path).expect("a socket"));
        let outcome = Bus::open(&path, Manager::System, CALL_LIMIT);
        assert!(matches!(outcome, Err(Opening::NoBus(_))));
    }

    #[test]
    fn another_users_manager_is_never_asked() {
        let other = rustix::process::geteuid().as_raw() + 1;
        let error = Bus::reach(Manager::User(other), CALL_LIMIT).expect_err("refused");
        assert_eq!(error.kind(), Kind::Denied);
    }
}
