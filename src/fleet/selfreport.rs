//! What a runtime says of itself: its pid file, its state file, the lock that it holds and its
//! control socket, all below a home that may be hostile.
//!
//! [`read`] reads, bounded in bytes and time, and reports what was *said*, one report per process
//! and start that was named; whether that process lives, is the home's owner's and of the right kind
//! is for the kernel to say (`procfs`, `runtimes`). What the kernel itself vouches for is marked:
//! `holds_lock` (`/proc/locks`) and `socket_answered` (credentials of the peer). Nothing is written.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::procfs::Flocks;
use super::units::files::read_bounded;
use super::{Phase, SelfReport, procfs};
use crate::app::{RuntimeKind, SelfRules};

/// No pid or state file is larger, and no answer on a socket.
const BYTES: u64 = 64 << 10;

/// How many profiles or characters of one text are kept of what a file says.
const TEXT: usize = 1024;

/// What a control socket answers to with who it is, and then closes.
const IDENTIFY: &str = "identify";

/// What one home's files and socket say of one kind of runtime.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelfFound {
    /// One for each process and start that was named; what the kernel vouches for comes first.
    pub reports: Vec<SelfReport>,
    /// What could not be read, and what contradicts itself: one line each.
    pub notes: Vec<String>,
}

/// What a kind of runtime says of itself in `home`. `locks` are those that are held on this machine;
/// `limit` holds for the whole exchange on the control socket; files cost no waiting.
///
/// Must be called as the home's owner, or as root for homes that root owns.
#[must_use]
pub fn read(home: &Path, kind: &RuntimeKind, locks: &Flocks, limit: Duration) -> SelfFound {
    let Some(rules) = &kind.self_report else {
        return SelfFound::default();
    };
    let mut reading = Reading {
        home,
        kind: &kind.kind,
        rules,
        found: SelfFound::default(),
    };
    reading.file(&rules.pid_file, false);
    reading.file(&rules.state_file, true);
    if let Some(lock) = &rules.lock_file {
        reading.lock(&home.join(lock), locks);
    }
    reading.socket(limit);
    let mut found = reading.found;
    found
        .reports
        .sort_by_key(|report| !(report.holds_lock || report.socket_answered));
    found
}

struct Reading<'a> {
    home: &'a Path,
    kind: &'a str,
    rules: &'a SelfRules,
    found: SelfFound,
}

impl Reading<'_> {
    fn note(&mut self, path: &Path, what: impl std::fmt::Display) {
        self.found.notes.push(format!("{}: {what}", path.display()));
    }

    fn file(&mut self, name: &str, has_state: bool) {
        let path = self.home.join(name);
        let bytes = match read_bounded(&path, BYTES, false) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return,
            Err(error) => return self.note(&path, error),
        };
        let Ok(said) = serde_json::from_slice::<Value>(&bytes) else {
            return self.note(&path, "is not JSON");
        };
        let Some(at) = self.named(&said) else {
            // A record that was cleared on the way out names nobody, and that is fine.
            if said.get("pid").is_some_and(|pid| !pid.is_null()) {
                self.note(&path, "names a process without its start");
            }
            return;
        };
        self.fill(at, &said);
        if has_state && let Some(state) = text(&said, &self.rules.state_key) {
            let report = &mut self.found.reports[at];
            report.phase = phase(self.rules, &state);
            report.state = Some(state);
            report.updated_at = text(&said, "updated_at");
        }
    }

    /// The position of the report for the process and start that `said` names.
    fn named(&mut self, said: &Value) -> Option<usize> {
        let pid = said.get("pid")?.as_u64()?;
        let pid = u32::try_from(pid).ok().filter(|pid| *pid > 1)?;
        let start_ticks = said.get("start_time")?.as_u64()?;
        Some(self.position(pid, start_ticks))
    }

    fn position(&mut self, pid: u32, start_ticks: u64) -> usize {
        let reports = &mut self.found.reports;
        let known = reports
            .iter()
            .position(|report| report.pid == pid && report.start_ticks == start_ticks);
        known.unwrap_or_else(|| {
            reports.push(SelfReport {
                home: self.home.to_owned(),
                kind: self.kind.to_owned(),
                pid,
                start_ticks,
                state: None,
                phase: Phase::Unknown,
                holds_lock: false,
                socket_answered: false,
                active_agents: None,
                updated_at: None,
                code_version: None,
                code_sha: None,
                served_home: None,
                served_profiles: Vec::new(),
            });
            reports.len() - 1
        })
    }

    /// Takes over the fields that a file and a socket have in common.
    fn fill(&mut self, at: usize, said: &Value) {
        let home_key = self.rules.home_key.as_deref();
        let report = &mut self.found.reports[at];
        report.active_agents = said
            .get("active_agents")
            .and_then(Value::as_u64)
            .and_then(|count| u32::try_from(count).ok())
            .or(report.active_agents);
        report.code_version = text(said, "code_version").or(report.code_version.take());
        report.code_sha = text(said, "code_sha").or(report.code_sha.take());
        report.served_home = home_key
            .and_then(|key| text(said, key))
            .map(PathBuf::from)
            .or(report.served_home.take());
        if let Some(profiles) = said.get("served_profiles").and_then(Value::as_array) {
            report.served_profiles = profiles
                .iter()
                .take(TEXT)
                .filter_map(|profile| profile.as_str().map(shorten))
                .collect();
        }
    }

    /// Who holds the home's lock, by the kernel's word.
    fn lock(&mut self, path: &Path, locks: &Flocks) {
        let metadata = match std::fs::symlink_metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => return,
            Err(error) => return self.note(path, error),
        };
        let likely: Vec<u32> = self.found.reports.iter().map(|said| said.pid).collect();
        let Some(pid) = locks.holders(&metadata, &likely).first().copied() else {
            return;
        };
        match procfs::start_ticks(pid) {
            Ok(Some(start)) => {
                let at = self.position(pid, start);
                self.found.reports[at].holds_lock = true;
            }
            // It let go of the lock by ending, just now.
            Ok(None) => {}
            Err(error) => self.note(path, format!("its holder {pid} cannot be read: {error}")),
        }
    }

    fn socket(&mut self, limit: Duration) {
        let Some(path) = socket_path(self.home, self.rules) else {
            return;
        };
        let owner = match std::fs::symlink_metadata(&path) {
            Ok(metadata) => metadata.uid(),
            // Most versions have no socket, and a stopped runtime takes its own away.
            Err(_) => return,
        };
        match ask(&path, owner, None, IDENTIFY, Instant::now() + limit) {
            Ok((peer, said)) => {
                let said = said.get("result").unwrap_or(&said);
                match self.named(said) {
                    Some(at) if self.found.reports[at].pid == peer => {
                        self.fill(at, said);
                        self.found.reports[at].socket_answered = true;
                    }
                    Some(_) => self.note(&path, format!("process {peer} speaks for another")),
                    None => self.note(&path, "answers without a process and its start"),
                }
            }
            Err(reason) => self.note(&path, reason),
        }
    }
}

/// Says a verb on the control socket of the process `pid` that serves `home`, and to nobody else. `limit`
/// holds for the whole exchange.
///
/// Must be called as the home's owner, or as root for homes that root owns.
///
/// # Errors
/// Why it was not said, or not agreed to.
pub fn say(
    home: &Path,
    kind: &RuntimeKind,
    pid: u32,
    verb: &str,
    limit: Duration,
) -> Result<(), String> {
    let path = kind
        .self_report
        .as_ref()
        .and_then(|rules| socket_path(home, rules))
        .ok_or("it has no control socket")?;
    let owner = std::fs::symlink_metadata(&path)
        .map_err(|error| error.to_string())?
        .uid();
    let (_, said) = ask(&path, owner, Some(pid), verb, Instant::now() + limit)?;
    match said.get("ok").and_then(Value::as_bool) {
        Some(true) => Ok(()),
        _ => Err(text(&said, "error").unwrap_or_else(|| "does not agree".into())),
    }
}

/// Where the control socket of a home is.
fn socket_path(home: &Path, rules: &SelfRules) -> Option<PathBuf> {
    // The pointer exists where the home's own path is too long for a socket address.
    let pointer = rules.socket_pointer.as_ref().and_then(|pointer| {
        let bytes = read_bounded(&home.join(pointer), 4096, false).ok()?;
        let path = PathBuf::from(std::str::from_utf8(&bytes).ok()?.trim());
        path.is_absolute().then_some(path)
    });
    pointer.or_else(|| Some(home.join(rules.socket_file.as_ref()?)))
}

/// Says a verb on a control socket, and tells which process answered what. Every wait ends at `deadline`;
/// with `only`, nothing is said to another process.
fn ask(
    path: &Path,
    owner: u32,
    only: Option<u32>,
    verb: &str,
    deadline: Instant,
) -> Result<(u32, Value), String> {
    let said = |error: std::io::Error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => String::from("does not answer in time"),
        _ => error.to_string(),
    };
    let mut stream = connect(path).map_err(|errno| match errno {
        Errno::CONNREFUSED => String::from("nobody listens"),
        // unix(7): the backlog is full.
        Errno::AGAIN => String::from("does not answer in time"),
        errno => std::io::Error::from(errno).to_string(),
    })?;
    let peer = rustix::net::sockopt::socket_peercred(&stream)
        .map_err(|errno| std::io::Error::from(errno).to_string())?;
    if peer.uid.as_raw() != owner {
        return Err(format!(
            "uid {} listens, uid {owner} owns it",
            peer.uid.as_raw()
        ));
    }
    let pid = u32::try_from(peer.pid.as_raw_nonzero().get()).unwrap_or_default();
    if only.is_some_and(|only| only != pid) {
        return Err(format!("process {pid} listens there"));
    }
    let arm = |stream: &UnixStream| {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(std::io::Error::from(ErrorKind::TimedOut));
        }
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(left))?;
        stream.set_write_timeout(Some(left))
    };
    arm(&stream).map_err(said)?;
    let question = format!("{}\n", serde_json::json!({ "verb": verb }));
    stream.write_all(question.as_bytes()).map_err(said)?;
    let mut answer = Vec::new();
    let mut chunk = [0; 4096];
    // One deadline for all of it: a byte now and then must not keep us.
    while !answer.contains(&b'\n') {
        arm(&stream).map_err(said)?;
        let count = stream.read(&mut chunk).map_err(said)?;
        if count == 0 {
            break;
        }
        answer.extend_from_slice(&chunk[..count]);
        if answer.len() as u64 > BYTES {
            return Err(String::from("answers more than it may"));
        }
    }
    let line = answer
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let value = serde_json::from_slice(line).map_err(|_| String::from("does not answer JSON"))?;
    Ok((pid, value))
}

fn connect(path: &Path) -> Result<UnixStream, Errno> {
    let address = SocketAddrUnix::new(path.as_os_str().as_bytes())?;
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let fd = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&fd, &address)?;
    Ok(UnixStream::from(fd))
}

fn phase(rules: &SelfRules, state: &str) -> Phase {
    let known = [
        (&rules.running, Phase::Running),
        (&rules.starting, Phase::Starting),
        (&rules.draining, Phase::Draining),
        (&rules.stopped, Phase::Stopped),
        (&rules.failed, Phase::Failed),
    ];
    known
        .into_iter()
        .find(|(words, _)| words.iter().any(|word| word == state))
        .map_or(Phase::Unknown, |(_, phase)| phase)
}

/// A field's text; numbers that some versions write there are taken as text.
fn text(said: &Value, key: &str) -> Option<String> {
    match said.get(key)? {
        Value::String(text) if !text.is_empty() => Some(shorten(text)),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(TEXT).collect()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests prepare their files")]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::app::App;

    const LIMIT: Duration = Duration::from_millis(300);

    struct Fixture {
        folder: tempfile::TempDir,
        kind: RuntimeKind,
    }

    impl Fixture {
        fn new() -> Self {
            let app = App::builtin(crate::app::DEFAULT).expect("the descriptor is valid");
            let kind = app
                .runtimes
                .into_iter()
                .find(|kind| kind.self_report.is_some())
                .expect("one kind speaks");
            let folder = tempfile::tempdir().expect("a folder");
            Self { folder, kind }
        }

        fn rules(&self) -> &SelfRules {
            self.kind.self_report.as_ref().expect("it speaks")
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        fn write(&self, name: &str, text: &str) {
            std::fs::write(self.path(name), text).expect("written");
        }

        fn read(&self) -> SelfFound {
            read(self.folder.path(), &self.kind, &Flocks::default(), LIMIT)
        }
    }

    #[test]
    fn pid_and_state_file_of_one_process_are_one_report() {
        let fixture = Fixture::new();
        let rules = fixture.rules().clone();
        fixture.write(
            &rules.pid_file,
            r#"{"pid":4242,"start_time":77,"argv":["x"]}"#,
        );
        let state = format!(
            r#"{{"pid":4242,"start_time":77,"{}":"{}","active_agents":2,"more":[1]}}"#,
            rules.state_key, rules.running[0]
        );
        fixture.write(&rules.state_file, &state);
        let found = fixture.read();
        assert_eq!(found.notes, Vec::<String>::new());
        let [report] = found.reports.as_slice() else {
            panic!("one report: {found:?}");
        };
        assert_eq!((report.pid, report.start_ticks), (4242, 77));
        assert_eq!(report.phase, Phase::Running);
        assert_eq!(report.active_agents, Some(2));
    }

    #[test]
    fn files_that_disagree_are_two_reports() {
        let fixture = Fixture::new();
        let rules = fixture.rules().clone();
        fixture.write(&rules.pid_file, r#"{"pid":4242,"start_time":77}"#);
        fixture.write(&rules.state_file, r#"{"pid":4242,"start_time":66}"#);
        assert_eq!(fixture.read().reports.len(), 2);
    }

    #[test]
    fn hostile_files_are_notes_and_never_reports() {
        for text in [
            "{",
            "[]",
            r#"{"pid":1,"start_time":1}"#,
            r#"{"pid":0,"start_time":1}"#,
            r#"{"pid":-5,"start_time":1}"#,
            r#"{"pid":99999999999,"start_time":1}"#,
            r#"{"pid":"12","start_time":1}"#,
            r#"{"pid":12}"#,
        ] {
            let fixture = Fixture::new();
            fixture.write(&fixture.rules().pid_file.clone(), text);
            let found = fixture.read();
            assert_eq!(found.reports, [], "{text}");
        }
        let fixture = Fixture::new();
        let large = format!(
            r#"{{"pid":12,"start_time":1,"x":"{}"}}"#,
            "y".repeat(70_000)
        );
        fixture.write(&fixture.rules().pid_file.clone(), &large);
        assert_eq!(fixture.read().reports, []);
        assert_eq!(fixture.read().notes.len(), 1);
    }

    #[test]
    fn a_link_in_place_of_a_file_is_not_followed() {
        let fixture = Fixture::new();
        fixture.write("elsewhere", r#"{"pid":4242,"start_time":77}"#);
        let link = fixture.path(&fixture.rules().pid_file);
        std::os::unix::fs::symlink(fixture.path("elsewhere"), link).expect("linked");
        let found = fixture.read();
        assert_eq!(found.reports, []);
        assert_eq!(found.notes.len(), 1);
    }

    #[test]
    fn who_holds_the_lock_is_a_report_by_the_kernels_word() {
        let fixture = Fixture::new();
        let name = fixture.rules().lock_file.clone().expect("it has one");
        let file = std::fs::File::create(fixture.path(&name)).expect("made");
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).expect("locked");
        // On overlayfs only a holder that the files name counts.
        let start = procfs::start_ticks(std::process::id())
            .expect("read")
            .expect("we live");
        let text = format!(r#"{{"pid":{},"start_time":{start}}}"#, std::process::id());
        fixture.write(&fixture.rules().pid_file.clone(), &text);
        let found = fixture.read();
        let [report] = found.reports.as_slice() else {
            panic!("one report: {found:?}");
        };
        assert!(report.holds_lock);
        drop(file);
        assert!(!fixture.read().reports[0].holds_lock);
    }

    fn answering(fixture: &Fixture, answer: String) -> std::thread::JoinHandle<()> {
        let name = fixture.rules().socket_file.clone().expect("it has one");
        let listener = UnixListener::bind(fixture.path(&name)).expect("bound");
        std::thread::spawn(move || {
            if let Ok((mut stream, _)) = listener.accept() {
                let mut question = [0; 64];
                let _ = stream.read(&mut question);
                // One byte at a time: the reader must put up with it, up to its limit.
                for byte in answer.bytes() {
                    if stream.write_all(&[byte]).is_err() {
                        break;
                    }
                    if answer.starts_with('~') {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                }
            }
        })
    }

    #[test]
    fn the_socket_counts_only_for_the_process_that_answers() {
        for (pid, answered) in [(std::process::id(), true), (4242, false)] {
            let fixture = Fixture::new();
            let answer = format!(
                "{{\"ok\":true,\"result\":{{\"pid\":{pid},\"start_time\":5,\"code_version\":\"1.2.3.4\",\"served_profiles\":[\"a\",\"b\"]}}}}\n"
            );
            let server = answering(&fixture, answer);
            let found = fixture.read();
            server.join().expect("ended");
            assert_eq!(
                found.reports.iter().any(|report| report.socket_answered),
                answered,
                "{found:?}"
            );
            if answered {
                assert_eq!(found.reports[0].served_profiles, ["a", "b"]);
                assert_eq!(found.reports[0].code_version.as_deref(), Some("1.2.3.4"));
            }
        }
    }

    #[test]
    fn a_socket_that_trickles_costs_no_more_than_the_limit() {
        let fixture = Fixture::new();
        let server = answering(&fixture, "~".repeat(1000));
        let started = Instant::now();
        let found = fixture.read();
        let waited = started.elapsed();
        assert_eq!(found.notes.len(), 1, "{found:?}");
        assert!(waited < LIMIT * 3, "waited {waited:?}");
        server.join().expect("ended");
    }
}
