//! What a process was started with, read whole, or why it could not be: the whole of it or nothing.
//!
//! | what | from | refused |
//! |---|---|---|
//! | program | `argv[0]`, looked up as it was | another file than the one that runs, or none |
//! | arguments, environment | `cmdline`, `environ` | too long, overwritten, not told, or holding what only its starter can give |
//! | folder | `cwd` | removed |
//! | output | descriptors 1 and 2 | a terminal, pipe or socket: its other end is not ours to hold |
//! | who it is | `status`, `attr/current`, `ns` | differs from ours: nothing can be given that we do not have |
//! | who is above it | `stat` | a terminal, or a parent that could start it again |
//!
//! Read as its owner, before anything is stopped. The environment holds secrets: it is in no message, note
//! or error, and leaves this process only as the environment of the next.

#![expect(
    clippy::disallowed_methods,
    reason = "opens the files that the next life writes its output to, as the old one did"
)]

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{Resource, Rlimit};

use crate::fleet::{Incarnation, procfs};
use crate::helper::beside;

/// Arguments or an environment that are longer are not replayed.
const WORDS_LIMIT: u64 = 2 << 20;

/// Lines of `/proc/PID/status` that a child inherits and that cannot be set at will (proc_pid_status(5)).
const INHERITED: &[(&str, &str)] = &[
    ("Uid", "user ids"),
    ("Gid", "group ids"),
    ("Groups", "supplementary groups"),
    ("NoNewPrivs", "right to gain privileges"),
    ("Seccomp", "system call filter"),
    ("CapInh", "inheritable capabilities"),
    ("CapPrm", "capabilities"),
    ("CapEff", "effective capabilities"),
    ("CapBnd", "bounding capabilities"),
    ("CapAmb", "ambient capabilities"),
];

/// Namespaces that decide what a process sees.
const NAMESPACES: &[&str] = &["cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"];

/// Variables by which a starter hands over more than text: a descriptor, or that it waits for an answer.
const HANDED_OVER: &[&str] = &["LISTEN_FDS", "LISTEN_PID", "NOTIFY_SOCKET", "WATCHDOG_USEC"];

/// What a process was started with.
pub(super) struct Origin {
    pub(super) program: PathBuf,
    pub(super) argv: Vec<OsString>,
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) folder: PathBuf,
    pub(super) limits: Vec<(&'static str, Resource, Rlimit)>,
    pub(super) umask: u32,
    pub(super) nice: i32,
    pub(super) oom_score_adj: String,
    pub(super) group: String,
    output: Output,
    errors: Output,
}

/// Where a descriptor leads.
enum Output {
    Null,
    Appended(File),
}

impl Output {
    fn of(pid: u32, descriptor: u32) -> Result<Self, String> {
        let link = format!("/proc/{pid}/fd/{descriptor}");
        let name = if descriptor == 1 {
            "output"
        } else {
            "error output"
        };
        let meta = match std::fs::metadata(&link) {
            Ok(meta) => meta,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::Null),
            Err(error) => return Err(format!("its {name} cannot be looked at: {error}")),
        };
        let kind = meta.file_type();
        if kind.is_char_device()
            && meta.rdev() == std::fs::metadata("/dev/null").map_or(0, |m| m.rdev())
        {
            return Ok(Self::Null);
        }
        if !kind.is_file() {
            let what = if kind.is_fifo() {
                "a pipe"
            } else if kind.is_socket() {
                "a socket"
            } else {
                "a device"
            };
            return Err(format!("its {name} is {what}"));
        }
        // Through the link, so that a log that was removed or rotated is the same file, too.
        std::fs::OpenOptions::new()
            .append(true)
            .open(&link)
            .map(Self::Appended)
            .map_err(|error| format!("its {name} cannot be opened: {error}"))
    }

    fn stdio(&self) -> std::io::Result<Stdio> {
        Ok(match self {
            Self::Null => Stdio::null(),
            Self::Appended(file) => file.try_clone()?.into(),
        })
    }
}

impl Origin {
    /// Reads a living process; the reason is fit for a receipt.
    pub(super) fn read(life: &Incarnation) -> Result<Self, String> {
        let pid = life.pid;
        let unread = |what: &str| {
            let what = format!("its {what} cannot be read");
            move |error: std::io::Error| format!("{what}: {error}")
        };
        let process = procfs::read(pid, &[])
            .map_err(|error| error.to_string())?
            .ok_or("the process had ended")?;
        if process.uid == 0 {
            return Err("root's own runtimes are started by a person".into());
        }
        if process.terminal != 0 {
            return Err("it has a terminal".into());
        }
        is_alone(process.parent, process.uid)?;
        let status =
            std::fs::read_to_string(format!("/proc/{pid}/status")).map_err(unread("status"))?;
        same_credentials(&status)?;
        same_surroundings(pid)?;
        let argv = words(pid, "cmdline", "arguments")?;
        let environment = environment(&words(pid, "environ", "environment")?)?;
        let folder = link(pid, "cwd", "folder")?;
        if !folder.is_dir() {
            return Err("its folder was removed".into());
        }
        let exe = link(pid, "exe", "program")?;
        let program = program(&exe, &argv, &environment, &folder)?;
        script_exists(&argv, &folder)?;
        let origin = Self {
            program,
            argv,
            environment,
            folder,
            limits: beside::limits_of(pid).map_err(unread("limits"))?,
            umask: field(&status, "Umask")
                .and_then(|mask| u32::from_str_radix(mask, 8).ok())
                .ok_or("its file mode mask is not told")?,
            nice: nice_of(pid).ok_or("its priority is not told")?,
            oom_score_adj: oom_score_adj(pid).map_err(unread("OOM score"))?,
            group: process.cgroup,
            output: Output::of(pid, 1)?,
            errors: Output::of(pid, 2)?,
        };
        // All of it was read by number: it is that life's only if that life still has the number.
        match procfs::start_ticks(pid) {
            Ok(Some(start)) if start == life.start_ticks => Ok(origin),
            _ => Err("the process had ended".into()),
        }
    }

    pub(super) fn stdout(&self) -> std::io::Result<Stdio> {
        self.output.stdio()
    }

    pub(super) fn stderr(&self) -> std::io::Result<Stdio> {
        self.errors.stdio()
    }
}

/// Whether nobody above it could start it again: it was left to process 1 or to its user's manager, which
/// adopt what has lost its parent and start nothing in its place.
fn is_alone(parent: u32, uid: u32) -> Result<(), String> {
    if parent == 1 {
        return Ok(());
    }
    let above = procfs::read(parent, &[]).map_err(|error| error.to_string())?;
    let Some(above) = above else {
        return Err("its parent just ended".into());
    };
    let is_manager = above.uid == uid
        && above
            .cgroup
            .ends_with(&format!("/user@{uid}.service/init.scope"));
    if is_manager {
        return Ok(());
    }
    let program = above.argv.first().map_or("?", String::as_str);
    let program = program.rsplit('/').next().unwrap_or(program);
    Err(format!(
        "its parent lives and could start it again: {program} (process {parent})"
    ))
}

/// Everything that a child inherits and that we can neither take nor give must be ours already.
fn same_credentials(theirs: &str) -> Result<(), String> {
    let ours = std::fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    for (key, what) in INHERITED {
        let (Some(their), Some(our)) = (field(theirs, key), field(&ours, key)) else {
            return Err(format!("its {what} are not told"));
        };
        if their.split_whitespace().ne(our.split_whitespace()) {
            return Err(format!(
                "its {what} are not those that could be given to it"
            ));
        }
    }
    // The same word for two filters says nothing of what they let through.
    if field(theirs, "Seccomp") == Some("0") {
        Ok(())
    } else {
        Err("it has a system call filter".into())
    }
}

fn same_surroundings(pid: u32) -> Result<(), String> {
    for name in NAMESPACES {
        let of = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/{name}")).ok();
        // A kernel without one of them has it nowhere.
        if of(&pid.to_string()) != of("self") {
            return Err(format!("its {name} namespace is not ours"));
        }
    }
    let place = |process: &str| {
        let meta = std::fs::metadata(format!("/proc/{process}/root")).ok()?;
        Some((meta.dev(), meta.ino()))
    };
    if place(&pid.to_string()) != place("self") {
        return Err("its root folder is not ours".into());
    }
    let label = |process: &str| std::fs::read(format!("/proc/{process}/attr/current")).ok();
    if label(&pid.to_string()) != label("self") {
        return Err("its security label is not ours".into());
    }
    Ok(())
}

fn field<'a>(status: &'a str, key: &str) -> Option<&'a str> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))
        .map(str::trim)
}

fn nice_of(pid: u32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    // Field 19 of proc_pid_stat(5); the first after the name is field 3.
    rest.split_ascii_whitespace().nth(16)?.parse().ok()
}

pub(super) fn oom_score_adj(pid: u32) -> std::io::Result<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj"))?;
    Ok(text.trim().to_owned())
}

fn link(pid: u32, name: &str, what: &str) -> Result<PathBuf, String> {
    std::fs::read_link(format!("/proc/{pid}/{name}"))
        .map_err(|error| format!("its {what} cannot be read: {error}"))
}

fn words(pid: u32, file: &str, what: &str) -> Result<Vec<OsString>, String> {
    let mut bytes = Vec::new();
    File::open(format!("/proc/{pid}/{file}"))
        .and_then(|file| file.take(WORDS_LIMIT + 1).read_to_end(&mut bytes))
        .map_err(|error| format!("its {what} cannot be read: {error}"))?;
    split(&bytes).ok_or_else(|| format!("its {what} cannot be read whole"))
}

/// Words that each end with a NUL, as execve(2) lays them out; a process may write over them.
fn split(bytes: &[u8]) -> Option<Vec<OsString>> {
    if bytes.len() as u64 > WORDS_LIMIT {
        return None;
    }
    let whole = bytes.strip_suffix(&[0])?;
    let words = whole.split(|byte| *byte == 0);
    Some(
        words
            .map(|word| OsString::from_vec(word.to_vec()))
            .collect(),
    )
}

fn environment(words: &[OsString]) -> Result<Vec<(OsString, OsString)>, String> {
    let mut found: Vec<(OsString, OsString)> = Vec::new();
    for word in words {
        let bytes = word.as_bytes();
        let at = bytes
            .iter()
            .position(|byte| *byte == b'=')
            .filter(|at| *at > 0);
        let Some(at) = at else {
            return Err("its environment was written over".into());
        };
        let name = OsStr::from_bytes(&bytes[..at]).to_owned();
        if found.iter().any(|(known, _)| *known == name) {
            return Err("its environment names a variable twice".into());
        }
        if let Some(handed) = HANDED_OVER.iter().find(|handed| name == **handed) {
            return Err(format!(
                "{handed} is in its environment: only who started it can give that"
            ));
        }
        found.push((name, OsStr::from_bytes(&bytes[at + 1..]).to_owned()));
    }
    Ok(found)
}

/// The file that was started, by the name that it was started by: the same name finds the same place, which
/// is how an interpreter finds its environment, and a file that was replaced there is the new release.
fn program(
    exe: &Path,
    argv: &[OsString],
    environment: &[(OsString, OsString)],
    folder: &Path,
) -> Result<PathBuf, String> {
    let first = argv
        .first()
        .filter(|first| !first.is_empty())
        .ok_or("it has no arguments")?;
    let exe = match exe.as_os_str().as_bytes().strip_suffix(b" (deleted)") {
        Some(replaced) => PathBuf::from(OsStr::from_bytes(replaced)),
        None => exe.to_owned(),
    };
    let candidates: Vec<PathBuf> = if first.as_bytes().contains(&b'/') {
        vec![folder.join(first)]
    } else {
        let path = environment.iter().find(|(name, _)| name == "PATH");
        let path = path.map(|(_, value)| value.clone()).unwrap_or_default();
        std::env::split_paths(&path)
            .map(|entry| folder.join(entry).join(first))
            .collect()
    };
    let found = candidates.into_iter().find(|path| is_executable(path));
    let leads_to = found
        .as_deref()
        .and_then(|path| std::fs::canonicalize(path).ok());
    match found {
        Some(path) if leads_to.as_deref() == Some(&*exe) => Ok(path),
        _ => Err("its first argument does not lead to the program that runs".into()),
    }
}

fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path)
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// An interpreter's script must still be there.
fn script_exists(argv: &[OsString], folder: &Path) -> Result<(), String> {
    match argv.get(1) {
        Some(script)
            if script.as_bytes().contains(&b'/')
                && script.as_bytes().first() != Some(&b'-')
                && !folder.join(script).exists() =>
        {
            Err("the script that it runs was removed".into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(text: &[&str]) -> Vec<OsString> {
        text.iter().map(OsString::from).collect()
    }

    #[test]
    fn words_that_do_not_end_were_written_over() {
        assert_eq!(split(b"a\0b c\0"), Some(words_of(&["a", "b c"])));
        assert_eq!(split(b"a\0\0"), Some(words_of(&["a", ""])));
        assert_eq!(split(b"a title that a program gave itself"), None);
        assert_eq!(split(b""), None);
        assert_eq!(split(&vec![0; 2 << 20 | 1]), None);
    }

    #[test]
    fn an_environment_is_taken_whole_or_not_at_all() {
        let good = environment(&words_of(&["A=b=c", "EMPTY="])).expect("whole");
        assert_eq!(
            good,
            [("A".into(), "b=c".into()), ("EMPTY".into(), "".into())]
        );
        for (text, why) in [
            (&["A=b", "title"][..], "written over"),
            (&["=b"][..], "written over"),
            (&["A=b", "A=c"][..], "twice"),
            (&["NOTIFY_SOCKET=/x"][..], "NOTIFY_SOCKET"),
        ] {
            let error = environment(&words_of(text)).expect_err("refused");
            assert!(error.contains(why), "{error}");
            assert!(
                !error.contains("=b") && !error.contains("/x"),
                "no value: {error}"
            );
        }
    }

    #[test]
    fn a_program_is_found_by_the_name_that_it_was_started_by() {
        let shell = std::fs::canonicalize("/bin/sh").expect("there is one");
        let path = vec![("PATH".into(), "/nowhere:/bin".into())];
        let find = |exe: &Path, first: &str, folder: &str| {
            program(exe, &words_of(&[first]), &path, Path::new(folder))
        };
        assert_eq!(find(&shell, "/bin/sh", "/"), Ok("/bin/sh".into()));
        assert_eq!(find(&shell, "sh", "/"), Ok("/bin/sh".into()));
        assert_eq!(find(&shell, "./sh", "/bin"), Ok("/bin/./sh".into()));
        let mut replaced = shell.clone().into_os_string();
        replaced.push(" (deleted)");
        assert_eq!(find(replaced.as_ref(), "sh", "/"), Ok("/bin/sh".into()));
        for (first, folder) in [("./sh", "/tmp"), ("-sh", "/"), ("cat", "/"), ("", "/")] {
            assert!(find(&shell, first, folder).is_err(), "{first}");
        }
    }

    #[test]
    fn a_script_that_is_gone_is_not_run() {
        let gone = words_of(&["/usr/bin/python3", "/nowhere/agent", "serve"]);
        assert!(script_exists(&gone, Path::new("/")).is_err());
        let module = words_of(&["/usr/bin/python3", "-m", "agent"]);
        assert_eq!(script_exists(&module, Path::new("/")), Ok(()));
    }

    #[test]
    fn what_a_child_inherits_is_what_we_have() {
        let ours = std::fs::read_to_string("/proc/self/status").expect("readable");
        let fewer = ours.replace("NoNewPrivs:\t0", "NoNewPrivs:\t1");
        if fewer != ours {
            assert!(same_credentials(&fewer).is_err());
        }
        assert!(same_credentials("Uid:\t1\n").is_err());
        assert!(nice_of(std::process::id()).is_some());
        assert!(field(&ours, "Umask").is_some());
    }
}
