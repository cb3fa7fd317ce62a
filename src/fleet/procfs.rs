//! What the kernel says of processes: `/proc/PID`, control groups and file locks (proc(5)).
//!
//! A process is read through one descriptor of its `/proc` folder, so that all fields belong to
//! one process even if its id is used again meanwhile. What another user's process may not show
//! (`environ`, `exe`, `cwd`, `ns`) is reported as not readable, never as empty. Everything here is
//! text that strangers wrote: it identifies, and nothing that it names is opened or run.
//!
//! Nothing here signals, waits, or decides what a process is (`runtimes` does).

#![expect(
    clippy::disallowed_methods,
    reason = "opens files below the descriptor of /proc/PID, for reading only"
)]

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::time::ClockId;

use super::{Incarnation, Process};
use text::{Stat, status_field, strip_deleted, unified_path, variables};

mod locks;
pub mod text;

pub use locks::{FileLock, Flocks, flocks};
pub use text::{Cgroup, innermost_service, tokens};

/// How much of a command line is read: what identifies a program stands at its start.
const ARGV_LIMIT: u64 = 64 << 10;

/// How much of an environment is read.
const ENVIRON_LIMIT: u64 = 1 << 20;

/// How deep control groups are followed (cgroups(7) allows any depth).
const CGROUP_DEPTH: usize = 32;

/// How many processes of one control group are looked at.
const CGROUP_PIDS: usize = 100_000;

/// Why a process could not be read: which of its files, and the system's reason.
#[derive(Debug)]
pub struct ReadError {
    /// Process id.
    pub pid: u32,
    /// The file below `/proc/PID`.
    pub field: &'static str,
    /// The system's reason.
    pub error: io::Error,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cannot read /proc/{}/{}: {}",
            self.pid, self.field, self.error
        )
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// Every process id that this process may see, in ascending order.
///
/// # Errors
/// When `/proc` cannot be listed.
pub fn pids() -> io::Result<Vec<u32>> {
    let mut pids = Vec::with_capacity(512);
    for entry in std::fs::read_dir("/proc")? {
        if let Some(pid) = entry?
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        {
            pids.push(pid);
        }
    }
    pids.sort_unstable();
    Ok(pids)
}

/// Reads a process whole; `wanted_env` are the variables of its initial environment to keep.
///
/// `Ok(None)`: there is no such process, or only its exit status is left (a zombie).
///
/// # Errors
/// When something that every process shows could not be read: then nothing may be concluded.
pub fn read(pid: u32, wanted_env: &[String]) -> Result<Option<Process>, ReadError> {
    gone_is_none(read_whole(pid, wanted_env))
}

/// The start of a process in clock ticks since boot, which tells its lives apart.
///
/// `Ok(None)`: there is no such process, or only its exit status is left.
///
/// # Errors
/// When its `stat` could not be read.
pub fn start_ticks(pid: u32) -> io::Result<Option<u64>> {
    let result = Folder::open(pid).and_then(|folder| folder.stat());
    match gone_is_none(result.map(Some)) {
        Ok(stat) => Ok(stat.filter(|stat| !stat.dead).map(|stat| stat.start_ticks)),
        Err(error) => Err(error.error),
    }
}

/// The parent of a process; `None` if it is gone.
///
/// # Errors
/// When its `stat` could not be read.
pub fn parent(pid: u32) -> io::Result<Option<u32>> {
    let result = Folder::open(pid).and_then(|folder| folder.stat());
    match gone_is_none(result.map(Some)) {
        Ok(stat) => Ok(stat.map(|stat| stat.parent)),
        Err(error) => Err(error.error),
    }
}

/// The real user id of a process; `None` if it is gone. Who owns its folder says less: the kernel gives
/// that of a process that may not be traced to root (proc(5)).
///
/// # Errors
/// When its `status` could not be read.
pub fn real_uid(pid: u32) -> io::Result<Option<u32>> {
    let result = Folder::open(pid).and_then(|folder| {
        let status = folder.text("status")?;
        status_field(&status, "Uid")
            .and_then(|uid| uid.parse().ok())
            .ok_or_else(|| folder.error("status")(malformed("Uid")))
    });
    gone_is_none(result.map(Some)).map_err(|error| error.error)
}

/// The command line of a process as tokens; `None` if it is gone. Empty for kernel threads and zombies.
///
/// # Errors
/// When it exists and could not be read.
pub fn cmdline(pid: u32) -> io::Result<Option<Vec<String>>> {
    let mut bytes = Vec::new();
    Ok(cmdline_bytes(pid, &mut bytes)?.then(|| tokens(&bytes)))
}

/// The command line of a process as the kernel shows it, NUL between tokens, into `bytes`; false
/// if the process is gone. For looking through all processes: one buffer, three system calls each.
///
/// # Errors
/// When it exists and could not be read.
pub fn cmdline_bytes(pid: u32, bytes: &mut Vec<u8>) -> io::Result<bool> {
    bytes.clear();
    let file = match File::open(format!("/proc/{pid}/cmdline")) {
        Ok(file) => file,
        Err(error) if is_gone(&error) => return Ok(false),
        Err(error) => return Err(error),
    };
    // The kernel gives all that there is and fits, so that a short read is the end.
    let mut chunk = [0; 4096];
    loop {
        match rustix::io::read(&file, &mut chunk) {
            Ok(count) => {
                bytes.extend_from_slice(&chunk[..count]);
                if count < chunk.len() || bytes.len() as u64 >= ARGV_LIMIT {
                    return Ok(true);
                }
            }
            Err(Errno::INTR) => {}
            Err(error) => {
                bytes.clear();
                let error = io::Error::from(error);
                return if is_gone(&error) {
                    Ok(false)
                } else {
                    Err(error)
                };
            }
        }
    }
}

/// The processes of a control group and of all below it, in ascending order; `path` is what
/// `/proc/PID/cgroup` shows after `0::`. A group that does not exist has no processes.
///
/// # Errors
/// When no hierarchy is mounted, `path` leads out of it, or a group could not be read.
pub fn in_cgroup(path: &str) -> io::Result<Vec<u32>> {
    let relative = Path::new(path.trim_start_matches('/'));
    if relative
        .components()
        .any(|part| !matches!(part, Component::Normal(_)))
    {
        // `/../x` is a group outside of our own cgroup namespace (cgroup_namespaces(7)).
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{path:?} is not below our own hierarchy"),
        ));
    }
    in_group(&hierarchy()?.join(relative))
}

/// Whether the processes of a control group are frozen, by it or by a group above it (cgroups(7),
/// `cgroup.events`). Where that is not told, as in the legacy hierarchy, they are not.
#[must_use]
pub fn is_frozen(path: &str) -> bool {
    let below = path.trim_start_matches('/');
    !below.is_empty()
        && hierarchy()
            .and_then(|root| std::fs::read_to_string(root.join(below).join("cgroup.events")))
            .is_ok_and(|events| events.lines().any(|line| line == "frozen 1"))
}

fn in_group(folder: &Path) -> io::Result<Vec<u32>> {
    let mut pids = Vec::new();
    let mut pending = vec![(folder.to_path_buf(), 0)];
    while let Some((folder, depth)) = pending.pop() {
        match std::fs::read_to_string(folder.join("cgroup.procs")) {
            // 0 stands for a process that our pid namespace does not show.
            Ok(text) => pids.extend(
                text.lines()
                    .filter_map(|line| line.parse::<u32>().ok())
                    .filter(|pid| *pid != 0),
            ),
            Err(error)
                if is_gone(&error) || error.raw_os_error() == Some(Errno::NODEV.raw_os_error()) =>
            {
                continue;
            }
            // The processes of a threaded group are listed by the group above it (cgroups(7)).
            Err(error) if error.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error()) => {}
            Err(error) => return Err(error),
        }
        if depth == CGROUP_DEPTH || pids.len() > CGROUP_PIDS {
            return Err(io::Error::other(format!(
                "{} holds too much",
                folder.display()
            )));
        }
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if is_gone(&error) => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                pending.push((entry.path(), depth + 1));
            }
        }
    }
    pids.sort_unstable();
    pids.dedup();
    Ok(pids)
}

/// Where the hierarchy is mounted that systemd keeps its units in.
fn hierarchy() -> io::Result<&'static Path> {
    // Unified, hybrid, and legacy, as file-hierarchy and systemd's CGROUP_DELEGATION.md list them.
    [
        "/sys/fs/cgroup",
        "/sys/fs/cgroup/unified",
        "/sys/fs/cgroup/systemd",
    ]
    .into_iter()
    .map(Path::new)
    .find(|path| path.join("cgroup.procs").exists())
    .ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::NotFound,
            "no control group hierarchy is mounted",
        )
    })
}

/// The namespaces of a process that decide whether its ids and paths mean what ours mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Namespaces {
    /// Inode of its pid namespace.
    pub pid: u64,
    /// Inode of its mount namespace.
    pub mount: u64,
}

/// The namespaces of a process.
///
/// # Errors
/// When they could not be read: only its owner and root may (ptrace(2), access mode checking).
pub fn namespaces(pid: u32) -> io::Result<Namespaces> {
    Ok(Namespaces {
        pid: namespace_inode(&std::fs::read_link(format!("/proc/{pid}/ns/pid"))?)?,
        mount: namespace_inode(&std::fs::read_link(format!("/proc/{pid}/ns/mnt"))?)?,
    })
}

/// Whether a process lives in another pid namespace than ours, or sees another root folder.
///
/// A mount namespace of its own is not enough to be foreign: `PrivateTmp=` and its like give one
/// to services whose paths are still ours (systemd.exec(5)). A container's root is another folder.
///
/// # Errors
/// When it could not be read.
pub fn is_foreign(pid: u32) -> io::Result<bool> {
    let ours = namespaces(std::process::id())?;
    let theirs = namespaces(pid)?;
    if ours == theirs {
        return Ok(!same_root(pid)?);
    }
    Ok(ours.pid != theirs.pid || !same_root(pid)?)
}

fn same_root(pid: u32) -> io::Result<bool> {
    let id = |path: String| std::fs::metadata(path).map(|meta| (meta.dev(), meta.ino()));
    Ok(id(String::from("/proc/self/root"))? == id(format!("/proc/{pid}/root"))?)
}

fn namespace_inode(link: &Path) -> io::Result<u64> {
    link.to_str()
        .and_then(|text| text.split_once(":["))
        .and_then(|(_, rest)| rest.strip_suffix(']')?.parse().ok())
        .ok_or_else(|| malformed("ns"))
}

/// The folder of one process, held open.
struct Folder {
    pid: u32,
    fd: OwnedFd,
}

impl Folder {
    fn open(pid: u32) -> Result<Self, ReadError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat(
            rustix::fs::CWD,
            format!("/proc/{pid}"),
            flags,
            Mode::empty(),
        )
        .map(|fd| Self { pid, fd })
        .map_err(|error| ReadError {
            pid,
            field: "",
            error: error.into(),
        })
    }

    fn error(&self, field: &'static str) -> impl Fn(io::Error) -> ReadError {
        let pid = self.pid;
        move |error| ReadError { pid, field, error }
    }

    fn bytes(&self, field: &'static str, limit: u64) -> Result<Vec<u8>, ReadError> {
        // No file here knows its size; most are smaller than a page.
        let mut bytes = Vec::with_capacity(4096);
        open_below(self.fd.as_fd(), field)
            .and_then(|file| file.take(limit).read_to_end(&mut bytes))
            .map_err(self.error(field))?;
        Ok(bytes)
    }

    fn text(&self, field: &'static str) -> Result<String, ReadError> {
        let bytes = self.bytes(field, 64 << 10)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A link's target, `None` where we may not read it or there is none (kernel threads).
    fn link(&self, field: &'static str) -> Result<Option<PathBuf>, ReadError> {
        match rustix::fs::readlinkat(&self.fd, field, Vec::new()) {
            Ok(target) => Ok(Some(
                std::ffi::OsString::from_vec(target.into_bytes()).into(),
            )),
            Err(Errno::ACCESS | Errno::PERM) => Ok(None),
            Err(error) => Err(self.error(field)(error.into())),
        }
    }

    fn stat(&self) -> Result<Stat, ReadError> {
        let text = self.text("stat")?;
        Stat::parse(&text).ok_or_else(|| self.error("stat")(malformed("stat")))
    }
}

fn open_below(folder: BorrowedFd<'_>, name: &str) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    Ok(File::from(rustix::fs::openat(
        folder,
        name,
        flags,
        Mode::empty(),
    )?))
}

fn read_whole(pid: u32, wanted_env: &[String]) -> Result<Option<Process>, ReadError> {
    let folder = Folder::open(pid)?;
    let stat = folder.stat()?;
    if stat.dead {
        return Ok(None);
    }
    let status = folder.text("status")?;
    let field = |name: &str| status_field(&status, name);
    let uid = field("Uid")
        .and_then(|uid| uid.parse().ok())
        .ok_or_else(|| folder.error("status")(malformed("Uid")))?;
    let caught_signals = field("SigCgt")
        .and_then(|mask| u64::from_str_radix(mask, 16).ok())
        .ok_or_else(|| folder.error("status")(malformed("SigCgt")))?;
    let argv = tokens(&folder.bytes("cmdline", ARGV_LIMIT)?);
    let cgroup = unified_path(&folder.text("cgroup")?);
    let (exe, exe_deleted) = match kernel_link(&folder, "exe")? {
        Some(target) => strip_deleted(target),
        None => (None, false),
    };
    let cwd = kernel_link(&folder, "cwd")?.and_then(|target| strip_deleted(target).0);
    let environ = if wanted_env.is_empty() {
        // It may be large, and nothing of it is asked for.
        Some(Vec::new())
    } else {
        match folder.bytes("environ", ENVIRON_LIMIT) {
            Ok(bytes) => Some(bytes),
            Err(error) if is_denied(&error.error) => None,
            Err(error) => return Err(error),
        }
    };
    let pid_namespace = folder
        .link("ns/pid")?
        .and_then(|link| namespace_inode(&link).ok());
    // Still the same life: a process that ended in between shows no `stat` any more.
    let again = folder.stat()?;
    if again.dead || again.start_ticks != stat.start_ticks {
        return Ok(None);
    }
    let machine = Machine::this().map_err(folder.error("boot"))?;
    Ok(Some(Process {
        incarnation: Incarnation {
            boot_id: machine.boot_id.clone(),
            pid,
            start_ticks: stat.start_ticks,
            pid_namespace,
        },
        uid,
        parent: stat.parent,
        session: stat.session,
        terminal: stat.terminal,
        argv,
        cgroup,
        exe,
        exe_deleted,
        cwd,
        env: environ
            .as_deref()
            .map_or_else(Vec::new, |bytes| variables(bytes, wanted_env)),
        env_readable: environ.is_some(),
        caught_signals,
        started_at_nanos: machine.started_at(stat.start_ticks),
    }))
}

/// A link that a kernel thread does not have: its absence is not the process's.
fn kernel_link(folder: &Folder, field: &'static str) -> Result<Option<PathBuf>, ReadError> {
    match folder.link(field) {
        Err(error) if error.error.raw_os_error() == Some(Errno::NOENT.raw_os_error()) => Ok(None),
        other => other,
    }
}

/// What turns ticks into a time, and a process into one of this boot.
struct Machine {
    boot_id: String,
    booted_at_nanos: u64,
    ticks_per_second: u64,
}

impl Machine {
    /// Read once, so that a process that is read twice started at one and the same time.
    fn this() -> io::Result<&'static Self> {
        static THIS: OnceLock<Machine> = OnceLock::new();
        if let Some(machine) = THIS.get() {
            return Ok(machine);
        }
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        let nanos = |clock| {
            let time = rustix::time::clock_gettime(clock);
            u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
                + u64::try_from(time.tv_nsec).unwrap_or(0)
        };
        // Starts are counted on the boot-time clock, which goes on during suspend (proc_pid_stat(5)).
        let machine = Self {
            boot_id: boot_id.trim().to_owned(),
            booted_at_nanos: nanos(ClockId::Realtime).saturating_sub(nanos(ClockId::Boottime)),
            ticks_per_second: rustix::param::clock_ticks_per_second().max(1),
        };
        Ok(THIS.get_or_init(|| machine))
    }

    fn started_at(&self, ticks: u64) -> u64 {
        let whole = (ticks / self.ticks_per_second).saturating_mul(1_000_000_000);
        let part = (ticks % self.ticks_per_second) * 1_000_000_000 / self.ticks_per_second;
        self.booted_at_nanos
            .saturating_add(whole)
            .saturating_add(part)
    }
}

fn gone_is_none<T>(result: Result<Option<T>, ReadError>) -> Result<Option<T>, ReadError> {
    match result {
        Err(error) if is_gone(&error.error) => Ok(None),
        other => other,
    }
}

/// A process that ended is ENOENT by its path, and ESRCH through a descriptor of its folder.
fn is_gone(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    code == Some(Errno::NOENT.raw_os_error()) || code == Some(Errno::SRCH.raw_os_error())
}

fn is_denied(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("{what} is not what the kernel documents"),
    )
}

#[cfg(test)]
mod tests;
