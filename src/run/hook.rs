//! What starts a run decides how it behaves: a package's hook must not break the package manager, and
//! cron must not send mail about nothing.
//!
//! [`trigger`] says what started this run. [`Scene`] says what a hook may see and touch: nothing runs in
//! a root that is being made, nothing is restarted on a machine that goes down, and `policy-rc.d` can
//! forbid restarts. [`within_limit`] ends a hook in time, whatever hangs. Only `run/*` calls this.

#![expect(
    clippy::disallowed_methods,
    reason = "asks /usr/sbin/policy-rc.d and dpkg-query"
)]

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use zbus::OwnedVariant;

use super::Session;
use crate::cli::{Cli, Command as Subcommand, Trigger};
use crate::error::{Error, Kind};
use crate::fleet::units::bus::{Bus, MANAGER, MANAGER_PATH, Reach};
use crate::fleet::{Manager, Supervisor};
use crate::plan::Plan;
use crate::plan::decide::{Decision, RuntimeOutcome, Step};
use crate::receipt::Receipt;
use crate::ui::{Format, Ui};
use crate::world::World;

/// How long a hook may take, where nobody says.
pub const LIMIT: Duration = Duration::from_secs(30);

/// The administrator's word on starting and stopping services (invoke-rc.d(8)).
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// What is asked looks at a few files; an answer that takes longer hangs.
pub(super) const ASK_LIMIT: Duration = Duration::from_secs(3);

/// Programs that start a person's lines at a time, as the kernel names them.
const CRONS: &[&str] = &["cron", "crond", "fcron", "anacron", "dcron", "bcron-exec"];

/// How far up a chain of parents is looked: cron, its child, a shell, a wrapper or two.
const GENERATIONS: usize = 12;

/// What started this run: what the command line says, else cron if it did, else a person.
#[must_use]
pub fn trigger(cli: &Cli) -> Trigger {
    cli.run.trigger.unwrap_or_else(|| {
        let is_watched = std::io::stdin().is_terminal() || std::io::stderr().is_terminal();
        if !is_watched && is_below_cron(Path::new("/proc"), std::os::unix::process::parent_id()) {
            Trigger::Cron
        } else {
            Trigger::Manual
        }
    })
}

/// Whether a parent of a process is a cron.
fn is_below_cron(proc: &Path, mut pid: u32) -> bool {
    for _ in 0..GENERATIONS {
        let stat = std::fs::read(proc.join(pid.to_string()).join("stat")).unwrap_or_default();
        let stat = String::from_utf8_lossy(&stat);
        // proc(5): the name is in parentheses and may hold some itself; then the state and the parent.
        let Some((name, rest)) = stat.rsplit_once(") ") else {
            return false;
        };
        if name
            .split_once(" (")
            .is_some_and(|(_, name)| CRONS.contains(&name))
        {
            return true;
        }
        let parent = rest.split(' ').nth(1).and_then(|field| field.parse().ok());
        match parent {
            Some(parent) if parent != 0 => pid = parent,
            _ => return false,
        }
    }
    false
}

/// Whether a result is told only where it is not clean: cron mails what is printed.
#[must_use]
pub fn is_silent_when_clean(cli: &Cli, trigger: Trigger, format: Format) -> bool {
    let is_run = matches!(cli.command, None | Some(Subcommand::Apply)) && !cli.run.dry_run;
    is_run && trigger != Trigger::Manual && format == Format::Text && !cli.common.verbose
}

/// What a run may see and touch where it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scene {
    /// Everything.
    #[default]
    Live,
    /// Homes alone, and why: what runs here is another root's, or nobody keeps it.
    Offline(&'static str),
    /// The machine goes down: what runs is looked at, and left.
    Stopping,
}

impl Scene {
    /// Looks where this run is, if a package's hook started it.
    #[must_use]
    pub fn of(world: &World, trigger: Trigger) -> Self {
        if trigger != Trigger::Package {
            return Self::Live;
        }
        // systemd's own variables (its docs/ENVIRONMENT.md).
        let says = |name: &str| {
            let value = world.var(name).and_then(|value| value.to_str());
            value.is_some_and(|value| ["1", "yes", "y", "true", "t", "on"].contains(&value))
        };
        if says("SYSTEMD_OFFLINE") {
            return Self::Offline("SYSTEMD_OFFLINE is set");
        }
        if says("SYSTEMD_IN_CHROOT") || is_chroot() {
            return Self::Offline("this is a chroot");
        }
        if !Path::new("/run/systemd/system").is_dir() {
            return Self::Offline("there is no /run/systemd/system");
        }
        if system_state().as_deref() == Some("stopping") {
            return Self::Stopping;
        }
        Self::Live
    }

    /// Whether runtimes are looked for.
    #[must_use]
    pub fn shows_runtimes(self) -> bool {
        !matches!(self, Self::Offline(_))
    }

    /// The line that a receipt has about it.
    #[must_use]
    pub fn note(self) -> Option<String> {
        match self {
            Self::Live => None,
            Self::Offline(why) => Some(format!("package hook: no runtime was looked for, {why}")),
            Self::Stopping => Some("package hook: the machine is going down".into()),
        }
    }
}

/// Whether our root is another one than that of process 1, or there is no `/proc` to tell.
fn is_chroot() -> bool {
    let id = |path: &str| {
        std::fs::metadata(path)
            .map(|meta| (meta.dev(), meta.ino()))
            .map_err(|error| error.kind())
    };
    match (id("/"), id("/proc/1/root")) {
        (Ok(ours), Ok(first)) => ours != first,
        (_, Err(std::io::ErrorKind::NotFound)) => true,
        // Process 1 may be out of reach, as in some containers. Mounts are listed as they are seen from
        // here (proc(5)), so one that was entered as a plain folder has none at its root.
        _ => std::fs::read_to_string("/proc/self/mountinfo").is_ok_and(|mounts| {
            !mounts
                .lines()
                .any(|line| line.split(' ').nth(4) == Some("/"))
        }),
    }
}

/// `SystemState` of the system's manager (org.freedesktop.systemd1(5)).
fn system_state() -> Option<String> {
    let Ok(Reach::Bus(mut bus)) = Bus::reach(Manager::System, ASK_LIMIT) else {
        return None;
    };
    let properties = "org.freedesktop.DBus.Properties";
    let state: OwnedVariant = bus
        .call(MANAGER_PATH, properties, "Get", &(MANAGER, "SystemState"))
        .ok()?;
    String::try_from(state).ok()
}

/// Holds a plan back where the scene or the administrator's policy forbids restarts.
pub fn restrain(session: &Session, plan: &mut Plan) {
    if session.scene == Scene::Stopping {
        for planned in &mut plan.runtimes {
            planned.step = Step::Settled(shutdown());
        }
    }
    if session.trigger != Trigger::Package || !Path::new(POLICY).exists() {
        return;
    }
    let mut answers: BTreeMap<String, Option<String>> = BTreeMap::new();
    for planned in &mut plan.runtimes {
        let Supervisor::Systemd {
            scope: Manager::System,
            unit,
        } = &planned.runtime.supervisor
        else {
            continue;
        };
        let Step::Act(why) = &planned.step else {
            continue;
        };
        let refused = answers
            .entry(unit.clone())
            .or_insert_with(|| refusal(unit, ASK_LIMIT.min(session.left())));
        if let Some(refused) = refused {
            let decision = Decision::new(
                RuntimeOutcome::Manual,
                format!("policy-rc.d: {refused}; {why}"),
            );
            planned.step = Step::Settled(decision.with_remedy(&*planned.instruction));
        }
    }
}

/// What becomes of a runtime while the machine goes down.
fn shutdown() -> Decision {
    Decision::new(RuntimeOutcome::Skipped, "shutdown")
}

/// While the machine goes down, what ends and what appears is its doing and no row's failure.
pub fn excuse_shutdown(session: &Session, receipt: &mut Receipt) {
    if session.scene == Scene::Stopping {
        for row in &mut receipt.runtimes {
            let decision = shutdown();
            (row.outcome, row.reason, row.remedy) = (decision.outcome, decision.reason, None);
        }
    }
}

/// Why `policy-rc.d` forbids a restart, if it does. A status that it does not define forbids nothing
/// (deb-systemd-invoke(1p)); not being able to ask does.
fn refusal(unit: &str, limit: Duration) -> Option<String> {
    match ask(POLICY, &[unit, "restart"], limit) {
        Ok((Some(101), _)) => Some("101".into()),
        Ok(_) => None,
        Err(error) => Some(error),
    }
}

/// Runs a program to its end: its exit status and what it printed; one that does not end is ended.
pub(super) fn ask(
    program: &str,
    args: &[&str],
    limit: Duration,
) -> Result<(Option<i32>, String), String> {
    let mut child = Command::new(program)
        .args(args)
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("LANG", "C.UTF-8")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("{program}: {error}"))?;
    let mut stdout = child.stdout.take();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stdout.as_mut().map(|stdout| stdout.read_to_end(&mut bytes));
        let _ = sender.send(bytes);
    });
    let status =
        ended(child, limit).ok_or_else(|| format!("no answer within {} s", limit.as_secs()))?;
    // A child of its own may hold the pipe open for longer.
    let bytes = receiver.recv_timeout(ASK_LIMIT).unwrap_or_default();
    Ok((status, String::from_utf8_lossy(&bytes).into_owned()))
}

/// The exit status of a child that ended within `limit`; one that did not is ended.
fn ended(mut child: Child, limit: Duration) -> Option<Option<i32>> {
    let deadline = Instant::now() + limit;
    let pid = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw)?;
    if let Ok(handle) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) {
        // pidfd_open(2): readable once the process has ended.
        let mut waiting = [rustix::event::PollFd::new(
            &handle,
            rustix::event::PollFlags::IN,
        )];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = rustix::event::Timespec::try_from(left).ok();
            match rustix::event::poll(&mut waiting, timeout.as_ref()) {
                Err(rustix::io::Errno::INTR) => {}
                _ => break,
            }
        }
    }
    if let Ok(Some(status)) = child.try_wait() {
        return Some(status.code());
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

/// How the time of a run is shared out.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// When the run has to end, if it has to.
    pub end: Option<Instant>,
    /// How long one source of evidence may take.
    pub ask: Duration,
    /// What one gets also when the time is up.
    pub least: Duration,
    /// How long what is under way at the deadline is waited for.
    pub grace: Duration,
}

impl Pace {
    /// A run that takes as long as it needs.
    pub const UNHURRIED: Self = Self {
        end: None,
        ask: Duration::from_secs(15),
        least: Duration::from_secs(5),
        grace: Duration::from_secs(5),
    };

    /// A hook that has to end within `limit`, and the time at which it stops acting: what follows is
    /// the second look and the receipt.
    #[must_use]
    pub fn within(limit: Duration) -> (Self, Instant) {
        let now = Instant::now();
        let pace = Self {
            end: Some(now + limit),
            ask: Self::UNHURRIED.ask.min(limit.mul_f64(0.12)),
            least: Self::UNHURRIED.least.min(limit.mul_f64(0.12)),
            grace: Self::UNHURRIED.grace.min(limit.mul_f64(0.08)),
        };
        (pace, now + limit.mul_f64(0.62))
    }
}

enum Told {
    EndsAt(Option<Instant>),
    Ended(u8),
}

/// Runs a command as a hook: in at most its limit, with at most one line on standard error and with
/// status 0, unless the command line itself is wrong.
#[must_use]
pub fn within_limit(world: World, ui: Ui, cli: Cli) -> u8 {
    let (sender, receiver) = channel();
    let teller = ui.again();
    // The main thread does not wait for this one at the end: a run that is cut off leaves an open
    // receipt, and the next one says so.
    std::thread::spawn(move || {
        let look = ui.again();
        let session = match Session::new(world, ui, &cli, Trigger::Package) {
            Ok(session) => session,
            Err(error) => {
                let _ = sender.send(Told::Ended(fail(&look, &error)));
                return;
            }
        };
        let _ = sender.send(Told::EndsAt(session.pace.end));
        let status =
            super::answer(&session, &cli).unwrap_or_else(|error| fail(&session.ui, &error));
        let _ = sender.send(Told::Ended(status));
    });
    let mut end = Instant::now() + LIMIT;
    loop {
        match receiver.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(Told::EndsAt(session)) => end = session.unwrap_or(end),
            Ok(Told::Ended(2)) => return 2,
            Ok(Told::Ended(_)) => return 0,
            Err(error) => {
                teller.brief(match error {
                    RecvTimeoutError::Timeout => {
                        "the hook's time is over; run `update` to finish what it left"
                    }
                    RecvTimeoutError::Disconnected => {
                        "the hook ended early; run `update` to finish what it left"
                    }
                });
                return 0;
            }
        }
    }
}

fn fail(ui: &Ui, error: &Error) -> u8 {
    if ui.format == Format::Json || error.kind() == Kind::Usage {
        ui.fail(error);
    } else {
        let hint = error
            .hint()
            .map(|hint| format!("; {hint}"))
            .unwrap_or_default();
        ui.brief(&format!("{error}{hint}"));
    }
    error.kind().exit_status()
}

/// The one line about a run that is not clean.
#[must_use]
pub fn line(receipt: &Receipt) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let homes = receipt
        .homes
        .iter()
        .filter(|row| row.accepted.is_none() && !(row.done && row.outcome.is_clean()));
    for row in homes {
        *counts
            .entry(format!("homes {}", row.outcome.word()))
            .or_default() += 1;
    }
    let runtimes = receipt
        .runtimes
        .iter()
        .filter(|row| row.accepted.is_none() && !row.outcome.is_clean());
    for row in runtimes {
        *counts
            .entry(format!("runtimes {}", row.outcome.word()))
            .or_default() += 1;
    }
    let collectors = receipt
        .collectors
        .iter()
        .filter(|row| row.outcome == "unverified");
    for _ in collectors {
        *counts.entry("sources unverified".into()).or_default() += 1;
    }
    let counts: Vec<String> = counts
        .into_iter()
        .map(|(what, count)| format!("{count} {what}"))
        .collect();
    format!(
        "{} ({}); `update receipt show {}` says why, `update` tries again",
        receipt.verdict.outcome.word(),
        counts.join(", "),
        receipt.run_id
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(proc: &Path, pid: u32, name: &str, parent: u32) {
        let folder = proc.join(pid.to_string());
        std::fs::create_dir_all(&folder).expect("ours");
        std::fs::write(
            folder.join("stat"),
            format!("{pid} ({name}) S {parent} 1 1 0"),
        )
        .expect("ours");
    }

    #[test]
    fn a_run_below_cron_is_cron_s_and_one_below_a_shell_of_a_person_is_not() {
        let proc = tempfile::tempdir().expect("a folder");
        process(proc.path(), 1, "systemd", 0);
        process(proc.path(), 20, "cron", 1);
        process(proc.path(), 21, "cron", 20);
        process(proc.path(), 22, "sh", 21);
        process(proc.path(), 30, "a) (cron", 1);
        process(proc.path(), 31, "bash", 30);
        assert!(is_below_cron(proc.path(), 22));
        assert!(is_below_cron(proc.path(), 20));
        assert!(!is_below_cron(proc.path(), 31));
        assert!(!is_below_cron(proc.path(), 99));
    }

    #[test]
    fn a_child_that_hangs_is_ended_at_its_limit() {
        let start = Instant::now();
        let child = Command::new("/bin/sleep").arg("30").spawn().expect("sleep");
        assert_eq!(ended(child, Duration::from_millis(50)), None);
        assert!(start.elapsed() < Duration::from_secs(10));
        let answer = ask(
            "/bin/sh",
            &["-c", "echo said; exit 101"],
            Duration::from_secs(10),
        );
        assert_eq!(answer, Ok((Some(101), "said\n".into())));
        assert!(ask("/no/such/program", &[], Duration::from_secs(1)).is_err());
    }
}
