//! Standing where another process stands: in its control group and under its limits.
//!
//! What is started in a process's place has to be what that one was, and no child can raise a limit
//! that its parent gave up. So a helper that will start something is put beside the process that it
//! replaces while it is still root's. Whether that worked is not decided here: whoever starts something
//! compares again (`restart/respawn`), and what could not be done only makes it refuse.

use std::fmt::Write as _;
use std::path::{Component, Path};

use rustix::process::{Resource, Rlimit};

/// Names in `/proc/PID/limits` (proc_pid_limits(5)), and what setrlimit(2) calls them.
const LIMITS: &[(&str, Resource)] = &[
    ("Max cpu time", Resource::Cpu),
    ("Max file size", Resource::Fsize),
    ("Max data size", Resource::Data),
    ("Max stack size", Resource::Stack),
    ("Max core file size", Resource::Core),
    ("Max resident set", Resource::Rss),
    ("Max processes", Resource::Nproc),
    ("Max open files", Resource::Nofile),
    ("Max locked memory", Resource::Memlock),
    ("Max address space", Resource::As),
    ("Max file locks", Resource::Locks),
    ("Max pending signals", Resource::Sigpending),
    ("Max msgqueue size", Resource::Msgqueue),
    ("Max nice priority", Resource::Nice),
    ("Max realtime priority", Resource::Rtprio),
    ("Max realtime timeout", Resource::Rttime),
];

/// A process to stand beside: its id, and its start so that it is no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beside {
    /// Process id.
    pub pid: u32,
    /// Its start, in clock ticks since boot.
    pub start_ticks: u64,
}

impl Beside {
    /// Reads back what [`Beside::to_argument`] wrote.
    #[must_use]
    pub fn parse(argument: &str) -> Option<Self> {
        let (pid, start_ticks) = argument.split_once(':')?;
        Some(Self {
            pid: pid.parse().ok().filter(|pid| *pid > 1)?,
            start_ticks: start_ticks.parse().ok()?,
        })
    }

    /// How a helper is told of it.
    #[must_use]
    pub fn to_argument(self) -> String {
        let mut text = String::new();
        // Writing into a string cannot fail.
        let _ = write!(text, "{}:{}", self.pid, self.start_ticks);
        text
    }

    /// Takes its place: what fails is found out by whoever starts something here.
    pub(super) fn stand(self) {
        let Ok(limits) = limits_of(self.pid) else {
            return;
        };
        let group = group_of(self.pid);
        if start_of(self.pid) != Some(self.start_ticks) {
            return;
        }
        if let Some(group) = group {
            join(&group);
        }
        for (_, resource, limit) in limits {
            let _ = rustix::process::setrlimit(resource, limit);
        }
    }
}

/// The limits of a process, each with its name.
///
/// # Errors
/// When they cannot be read whole.
pub fn limits_of(pid: u32) -> std::io::Result<Vec<(&'static str, Resource, Rlimit)>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/limits"))?;
    let found = parse_limits(&text);
    if found.len() == LIMITS.len() {
        Ok(found)
    } else {
        Err(std::io::ErrorKind::InvalidData.into())
    }
}

fn parse_limits(text: &str) -> Vec<(&'static str, Resource, Rlimit)> {
    let value = |word: &str| match word {
        "unlimited" => Some(None),
        number => number.parse().ok().map(Some),
    };
    LIMITS
        .iter()
        .filter_map(|(name, resource)| {
            let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
            let mut words = rest.split_ascii_whitespace();
            let limit = Rlimit {
                current: value(words.next()?)?,
                maximum: value(words.next()?)?,
            };
            Some((*name, *resource, limit))
        })
        .collect()
}

/// The path of a process's group in the unified hierarchy.
fn group_of(pid: u32) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    text.lines()
        .find_map(|line| line.strip_prefix("0::"))
        .map(str::to_owned)
}

fn start_of(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[expect(
    clippy::disallowed_methods,
    reason = "a process is moved by writing into cgroup.procs (cgroups(7))"
)]
fn join(group: &str) {
    let below = Path::new(group.trim_start_matches('/'));
    // `/../x` is a group outside of our own cgroup namespace (cgroup_namespaces(7)).
    if below
        .components()
        .any(|part| !matches!(part, Component::Normal(_)))
    {
        return;
    }
    for root in ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"] {
        let folder = Path::new(root).join(below);
        let frozen = std::fs::read_to_string(folder.join("cgroup.events"));
        // In a frozen group we would stop as well, and answer nobody.
        if frozen.is_ok_and(|events| !events.contains("frozen 1"))
            && std::fs::write(folder.join("cgroup.procs"), "0").is_ok()
        {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_limits_are_read_whole() {
        let limits = limits_of(std::process::id()).expect("readable");
        for (name, resource, limit) in limits {
            assert_eq!(rustix::process::getrlimit(resource), limit, "{name}");
        }
    }

    #[test]
    fn a_limit_that_is_missing_makes_all_of_them_unknown() {
        let text = "Max cpu time              unlimited            10            seconds\n";
        let found = parse_limits(text);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].2.current, found[0].2.maximum), (None, Some(10)));
        assert!(parse_limits("Max cpu time many few").is_empty());
    }

    #[test]
    fn a_process_to_stand_beside_is_named_by_its_start() {
        let beside = Beside {
            pid: 7,
            start_ticks: 99,
        };
        assert_eq!(Beside::parse(&beside.to_argument()), Some(beside));
        for wrong in ["", "7", "1:5", "0:5", "x:5", "7:x"] {
            assert_eq!(Beside::parse(wrong), None, "{wrong}");
        }
        let me = std::process::id();
        assert!(start_of(me).is_some_and(|start| start > 0));
        assert!(group_of(me).is_some_and(|group| group.starts_with('/')));
    }
}
