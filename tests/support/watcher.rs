//! An independent witness: what a user's service manager itself signals while a test acts.
//!
//! A [`Watcher`] is a subscriber of its own on the user's bus. It counts how often a unit was
//! started, by the start times and pids of main processes that the manager published, and so knows
//! of a restart that the program under test did not cause or did not notice. It asks nothing of the
//! program and reads no receipt.

use std::collections::HashMap;
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use zbus::export::ordered_stream::OrderedStreamExt;
use zbus::message::Type;
use zbus::{Connection, MatchRule, MessageStream, OwnedObjectPath, OwnedVariant};

use super::sandbox::Sandbox;

const MANAGER: &str = "org.freedesktop.systemd1";
const MANAGER_PATH: &str = "/org/freedesktop/systemd1";

/// One thing that a manager signalled.
#[derive(Debug, Clone)]
pub struct Event {
    /// When it arrived.
    pub at: Instant,
    /// The unit that it is about.
    pub unit: String,
    /// What it says.
    pub what: What,
}

/// What a manager said of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A job was queued.
    JobNew,
    /// A job is over, with its result.
    JobRemoved(String),
    /// The unit was loaded.
    UnitNew,
    /// The unit was unloaded.
    UnitRemoved,
    /// Its `ActiveState` and `SubState`.
    State(String),
    /// Its main process was started: pid, and monotonic microseconds.
    Started(u32, u64),
}

/// A subscriber on one user's manager, from its creation until it is dropped.
#[derive(Debug)]
pub struct Watcher {
    shared: Arc<Shared>,
    bridge: Child,
    since_usec: u64,
}

#[derive(Debug, Default)]
struct Shared {
    events: Mutex<Vec<Event>>,
    changed: Condvar,
}

impl Watcher {
    /// Subscribes to `user`'s manager; returns once it listens.
    pub fn start(sandbox: &Sandbox, user: &str) -> Self {
        Self::on(sandbox, Some(user), "$DBUS_SESSION_BUS_ADDRESS")
    }

    /// Subscribes to the system's manager; returns once it listens.
    pub fn of_system(sandbox: &Sandbox) -> Self {
        Self::on(sandbox, None, "unix:path=/run/dbus/system_bus_socket")
    }

    fn on(sandbox: &Sandbox, user: Option<&str>, address: &str) -> Self {
        // A user's bus refuses everybody else, so the bridge runs as the user, and this process
        // speaks D-Bus with it over a socket pair.
        let (ours, theirs) = UnixStream::pair().unwrap();
        let theirs = OwnedFd::from(theirs);
        let bridge = sandbox
            .command(
                user,
                [
                    "sh",
                    "-c",
                    &format!("exec systemd-stdio-bridge --bus-path={address}"),
                ],
            )
            .stdin(Stdio::from(theirs.try_clone().unwrap()))
            .stdout(Stdio::from(theirs))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let shared = Arc::new(Shared::default());
        let (ready, listening) = channel();
        let writer = Arc::clone(&shared);
        std::thread::spawn(move || {
            zbus::block_on(async move {
                match subscribe(ours).await {
                    Ok((_connection, stream)) => {
                        let _ = ready.send(Ok(()));
                        record(stream, &writer).await;
                    }
                    Err(error) => {
                        let _ = ready.send(Err(error.to_string()));
                    }
                }
            });
        });
        expect_ready(&listening, user.unwrap_or("root"));
        Self {
            shared,
            bridge,
            since_usec: monotonic_usec(),
        }
    }

    /// Everything heard so far.
    pub fn events(&self) -> Vec<Event> {
        self.shared.events.lock().unwrap().clone()
    }

    /// What was heard of one unit, in order.
    pub fn of(&self, unit: &str) -> Vec<What> {
        self.events()
            .into_iter()
            .filter(|event| event.unit == unit)
            .map(|event| event.what)
            .collect()
    }

    /// How many main processes the unit was given since this watcher listens.
    pub fn starts_of(&self, unit: &str) -> usize {
        let mut seen: Vec<What> = self
            .of(unit)
            .into_iter()
            // A manager repeats what it knows of a main process whenever anything else changes.
            .filter(|what| matches!(what, What::Started(_, start) if *start >= self.since_usec))
            .collect();
        seen.dedup();
        seen.len()
    }

    /// Waits until an event that `wanted` accepts was heard; whether it was within `limit`.
    pub fn wait_until(&self, limit: Duration, wanted: impl Fn(&Event) -> bool) -> bool {
        let end = Instant::now() + limit;
        let mut events = self.shared.events.lock().unwrap();
        let mut next = 0;
        loop {
            if events[next..].iter().any(&wanted) {
                return true;
            }
            next = events.len();
            let Some(left) = end.checked_duration_since(Instant::now()) else {
                return false;
            };
            events = self.shared.changed.wait_timeout(events, left).unwrap().0;
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // The bridge ends with its connection; the stream in the thread ends with the bridge.
        let _ = self.bridge.kill();
        let _ = self.bridge.wait();
    }
}

fn monotonic_usec() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap() * 1_000_000 + u64::try_from(now.tv_nsec).unwrap() / 1_000
}

fn expect_ready(listening: &Receiver<Result<(), String>>, user: &str) {
    match listening.recv_timeout(Duration::from_secs(20)) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => panic!("cannot subscribe to {user}'s manager: {error}"),
        Err(error) => panic!("cannot subscribe to {user}'s manager: {error}"),
    }
}

async fn subscribe(stream: UnixStream) -> zbus::Result<(Connection, MessageStream)> {
    let connection = zbus::connection::Builder::unix_stream(stream)
        .build()
        .await?;
    let rule = MatchRule::builder()
        .msg_type(Type::Signal)
        .sender(MANAGER)
        .path_namespace(MANAGER_PATH)
        .build()?;
    let signals = MessageStream::for_match_rule(rule, &connection, NonZero::new(4096)).await?;
    // Without it the manager tells only the owner of a job about that job: org.freedesktop.systemd1(5).
    connection
        .call_method(
            Some(MANAGER),
            MANAGER_PATH,
            Some("org.freedesktop.systemd1.Manager"),
            "Subscribe",
            &(),
        )
        .await?;
    Ok((connection, signals))
}

async fn record(mut signals: MessageStream, shared: &Shared) {
    while let Some(Ok(message)) = signals.next().await {
        let Some((unit, what)) = understand(&message) else {
            continue;
        };
        let mut events = shared.events.lock().unwrap();
        for what in what {
            events.push(Event {
                at: Instant::now(),
                unit: unit.clone(),
                what,
            });
        }
        shared.changed.notify_all();
    }
}

/// What a signal says about which unit; `None` for signals that this witness does not need.
fn understand(message: &zbus::Message) -> Option<(String, Vec<What>)> {
    let header = message.header();
    let body = message.body();
    match header.member()?.as_str() {
        "JobNew" => {
            let (_, _, unit): (u32, OwnedObjectPath, String) = body.deserialize().ok()?;
            Some((unit, vec![What::JobNew]))
        }
        "JobRemoved" => {
            let (_, _, unit, result): (u32, OwnedObjectPath, String, String) =
                body.deserialize().ok()?;
            Some((unit, vec![What::JobRemoved(result)]))
        }
        "UnitNew" => {
            let (unit, _): (String, OwnedObjectPath) = body.deserialize().ok()?;
            Some((unit, vec![What::UnitNew]))
        }
        "UnitRemoved" => {
            let (unit, _): (String, OwnedObjectPath) = body.deserialize().ok()?;
            Some((unit, vec![What::UnitRemoved]))
        }
        "PropertiesChanged" => {
            let unit = unit_of(header.path()?.as_str())?;
            let (_, changed, _): (String, HashMap<String, OwnedVariant>, Vec<String>) =
                body.deserialize().ok()?;
            let text = |name: &str| {
                changed
                    .get(name)
                    .and_then(|v| String::try_from(v.clone()).ok())
            };
            let mut what = Vec::new();
            if let (Some(active), Some(sub)) = (text("ActiveState"), text("SubState")) {
                what.push(What::State(format!("{active}/{sub}")));
            }
            let pid = changed
                .get("MainPID")
                .and_then(|value| u32::try_from(value).ok());
            let start = changed
                .get("ExecMainStartTimestampMonotonic")
                .and_then(|value| u64::try_from(value).ok());
            if let (Some(pid @ 1..), Some(start)) = (pid, start) {
                what.push(What::Started(pid, start));
            }
            (!what.is_empty()).then_some((unit, what))
        }
        _ => None,
    }
}

/// The unit behind an object path: every byte but letters and digits is `_` and two hex digits.
fn unit_of(path: &str) -> Option<String> {
    let mut rest = path
        .strip_prefix("/org/freedesktop/systemd1/unit/")?
        .bytes();
    let mut name = Vec::new();
    while let Some(byte) = rest.next() {
        if byte == b'_' {
            let digits = [rest.next()?, rest.next()?];
            let digits = std::str::from_utf8(&digits).ok()?.to_owned();
            name.push(u8::from_str_radix(&digits, 16).ok()?);
        } else {
            name.push(byte);
        }
    }
    String::from_utf8(name).ok()
}
