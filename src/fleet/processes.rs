//! One look through all processes: which of them are the application's, and what stands above them.
//!
//! Command lines are read first, cheaply, and only what they recognise is read whole. A candidate
//! that exists and cannot be read is trouble that is told, never a process fewer.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::runtimes::{self, Recognised};
use super::{Process, installs, procfs};
use crate::app::App;
use crate::world::World;

/// How far up parents are followed.
const DEPTH: usize = 64;

/// How many interpreters of unknown purpose are remembered.
const INTERPRETER_LIMIT: usize = 50_000;

/// What one look saw.
#[derive(Debug, Default)]
pub struct Scan {
    /// The application's processes, by process id.
    pub seen: Vec<Seen>,
    /// Other processes of an interpreter: they may run from the application's code.
    pub interpreters: Vec<Interpreter>,
    /// This process and those above it, the nearest first.
    pub ourselves: Vec<u32>,
    /// The control group of this process.
    pub our_cgroup: String,
    /// How many processes were looked at.
    pub looked_at: usize,
    /// What could not be read, and might be a runtime.
    pub trouble: Vec<String>,
}

/// A process of the application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// What the kernel says of it.
    pub process: Process,
    /// What its command line says.
    pub recognised: Recognised,
    /// Whether it lives in another pid namespace, or below another root folder.
    pub foreign: bool,
    /// The processes above it, the parent first, up to process 1.
    pub ancestors: Vec<Ancestor>,
}

/// A process above one of the application's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ancestor {
    /// Process id.
    pub pid: u32,
    /// What runs: the program's file name, or an interpreter's script or module.
    pub program: String,
    /// Whether it is a shell that runs a script or a given command, and not a person's.
    pub scripted_shell: bool,
    /// Whether it is a person's shell.
    pub shell: bool,
    /// Control group.
    pub cgroup: String,
    /// Working directory, where it may be read.
    pub cwd: Option<PathBuf>,
}

/// A process of an interpreter that is none of the application's commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpreter {
    /// Process id.
    pub pid: u32,
    /// Command line as tokens.
    pub argv: Vec<String>,
}

/// Looks through all processes, of `uids` only if given.
///
/// # Errors
/// When `/proc` cannot be listed.
pub fn scan(world: &World, app: &App, uids: Option<&BTreeSet<u32>>) -> std::io::Result<Scan> {
    let needles = needles(app);
    let mut wanted = runtimes::wanted_variables(app);
    wanted.extend(installs::wanted_variables());
    wanted.extend(app.desktop.env.iter().cloned());
    let mut parents = Parents::default();
    let mut scan = Scan {
        ourselves: parents
            .above(world.pid)
            .into_iter()
            .map(|process| process.pid)
            .collect(),
        our_cgroup: parents
            .get(world.pid)
            .map(|process| process.cgroup.clone())
            .unwrap_or_default(),
        ..Scan::default()
    };
    scan.ourselves.insert(0, world.pid);
    let pids = procfs::pids()?;
    if !pids.contains(&world.pid) {
        scan.trouble
            .push("/proc does not list this process: it shows another pid namespace".into());
    }
    scan.looked_at = pids.len();
    let mut bytes = Vec::new();
    let mut managers_own = None;
    for pid in pids {
        if pid == world.pid {
            continue;
        }
        match procfs::cmdline_bytes(pid, &mut bytes) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(error) => {
                // Where others' processes are hidden (hidepid, proc(5)) only our own matter.
                let hidden = error.kind() == ErrorKind::PermissionDenied
                    && (!is_ours(world, pid)
                        || managers_own
                            .get_or_insert_with(|| of_manager(world))
                            .contains(&pid));
                if !hidden {
                    scan.trouble
                        .push(format!("cannot read /proc/{pid}/cmdline: {error}"));
                }
                continue;
            }
        }
        let mentions = needles.iter().any(|needle| contains(&bytes, needle));
        if !mentions && !is_interpreter(&bytes) {
            continue;
        }
        let argv = procfs::tokens(&bytes);
        if runtimes::recognise(app, &argv).is_none() {
            if is_interpreter(&bytes) && scan.interpreters.len() < INTERPRETER_LIMIT {
                scan.interpreters.push(Interpreter { pid, argv });
            }
            continue;
        }
        let mut process = match procfs::read(pid, &wanted) {
            Ok(Some(process)) => process,
            Ok(None) => continue,
            Err(error) => {
                if uids.is_none_or(|uids| owner(pid).is_none_or(|uid| uids.contains(&uid))) {
                    scan.trouble.push(error.to_string());
                }
                continue;
            }
        };
        if uids.is_some_and(|uids| !uids.contains(&process.uid)) {
            continue;
        }
        // Read again: it may have become another program since the first look.
        let Some(recognised) = runtimes::recognise(app, &process.argv) else {
            continue;
        };
        for (name, value) in &mut process.env {
            // That it is set is what tells; its value is a credential.
            if app.desktop.env.contains(name) && !value.is_empty() {
                "set".clone_into(value);
            }
        }
        scan.seen.push(Seen {
            foreign: procfs::is_foreign(pid).unwrap_or(false),
            ancestors: parents.above(pid),
            process,
            recognised,
        });
    }
    Ok(scan)
}

/// The processes above one, the parent first.
#[must_use]
pub fn ancestors(pid: u32) -> Vec<Ancestor> {
    Parents::default().above(pid)
}

/// What runs: an interpreter's script or module, else the program's file name.
#[must_use]
pub fn program_name(argv: &[String]) -> String {
    let Some((first, rest)) = argv.split_first() else {
        return String::new();
    };
    // Programs that rename themselves put a sentence there: `PM2 v5.3.0: God Daemon (/home/a/.pm2)`.
    let word = first.split([' ', ':']).next().unwrap_or(first);
    let name = |word: &str| {
        Path::new(word)
            .file_name()
            .and_then(OsStr::to_str)
            .unwrap_or(word)
            .trim_start_matches('-')
            .to_owned()
    };
    if !is_interpreter(first.as_bytes()) {
        return name(word);
    }
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        if word == "-m" {
            return rest.next().map(|module| name(module)).unwrap_or_default();
        }
        if !word.starts_with('-') {
            return name(word);
        }
    }
    name(word)
}

/// Parents, each read once.
#[derive(Default)]
struct Parents {
    known: BTreeMap<u32, Option<Process>>,
}

impl Parents {
    fn get(&mut self, pid: u32) -> Option<&Process> {
        self.known
            .entry(pid)
            .or_insert_with(|| procfs::read(pid, &[]).ok().flatten())
            .as_ref()
    }

    fn above(&mut self, pid: u32) -> Vec<Ancestor> {
        let mut found: Vec<Ancestor> = Vec::new();
        let mut next = self.get(pid).map_or(0, |process| process.parent);
        while next != 0 && found.len() < DEPTH && found.iter().all(|known| known.pid != next) {
            let Some(process) = self.get(next) else {
                break;
            };
            let shell = runtimes::is_shell(&process.argv);
            let scripted = process.argv.iter().skip(1).any(|word| {
                !word.starts_with('-') || (!word.starts_with("--") && word.contains('c'))
            });
            found.push(Ancestor {
                pid: next,
                program: program_name(&process.argv),
                scripted_shell: shell && scripted,
                shell: shell && !scripted,
                cgroup: process.cgroup.clone(),
                cwd: process.cwd.clone(),
            });
            next = process.parent;
        }
        found
    }
}

/// Byte strings of which a recognised command line holds at least one.
fn needles(app: &App) -> Vec<Vec<u8>> {
    let modules = app
        .command
        .modules
        .iter()
        .flat_map(|module| [module.clone(), format!("{}.py", module.replace('.', "/"))]);
    app.command
        .scripts
        .iter()
        .cloned()
        .chain(modules)
        .map(String::into_bytes)
        .collect()
}

fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    bytes
        .windows(needle.len().max(1))
        .any(|window| window == needle)
}

/// Whether a command line starts with a Python interpreter.
fn is_interpreter(bytes: &[u8]) -> bool {
    let program = bytes.split(|byte| *byte == 0).next().unwrap_or(bytes);
    let name = program
        .rsplit(|byte| *byte == b'/')
        .next()
        .unwrap_or(program);
    [&b"python"[..], b"pypy"].iter().any(|stem| {
        name.strip_prefix(*stem).is_some_and(|rest| {
            rest.iter()
                .all(|byte| byte.is_ascii_digit() || *byte == b'.')
        })
    })
}

fn owner(pid: u32) -> Option<u32> {
    std::fs::metadata(format!("/proc/{pid}"))
        .ok()
        .map(|meta| meta.uid())
}

/// The processes that our own service manager consists of: besides itself `(sd-pam)`, which its own user
/// may not read. No unit runs in their control group.
fn of_manager(world: &World) -> BTreeSet<u32> {
    let uid = world.account.uid;
    let group = format!("/user.slice/user-{uid}.slice/user@{uid}.service/init.scope");
    procfs::in_cgroup(&group)
        .unwrap_or_default()
        .into_iter()
        .collect()
}

fn is_ours(world: &World, pid: u32) -> bool {
    owner(pid) == Some(world.account.uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_named_by_what_it_runs() {
        for (argv, expected) in [
            (
                &["/usr/bin/python3", "-u", "/usr/bin/supervisord", "-n"][..],
                "supervisord",
            ),
            (&["python3", "-m", "circus.circusd"], "circus.circusd"),
            (&["PM2 v5.3.0: God Daemon (/home/a/.pm2)"], "PM2"),
            (&["tmux: server"], "tmux"),
            (&["-bash"], "bash"),
            (&["/usr/bin/python3"], "python3"),
            (&[], ""),
        ] {
            let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(program_name(&argv), expected);
        }
    }

    #[test]
    fn every_recognised_command_line_passes_the_first_look() {
        let app = App::builtin(crate::app::DEFAULT).expect("valid");
        let needles = needles(&app);
        for line in [
            "python -m hermes_cli.main gateway run",
            "python /o/hermes_cli/main.py serve",
            "/v/bin/python /v/bin/hermes gateway run",
            "/nix/store/x/bin/python3 /nix/store/y/bin/.hermes-wrapped gateway run",
        ] {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert!(runtimes::recognise(&app, &argv).is_some(), "{line}");
            let bytes = line.replace(' ', "\0");
            assert!(
                needles
                    .iter()
                    .any(|needle| contains(bytes.as_bytes(), needle)),
                "{line}"
            );
        }
        assert!(
            is_interpreter(b"/v/bin/python3.11\0-m\0x") && !is_interpreter(b"/bin/pythonic\0x")
        );
    }

    #[test]
    fn a_look_never_shows_the_one_who_looks() {
        let app = App::builtin(crate::app::DEFAULT).expect("valid");
        let world = World::read().expect("readable");
        let scan = scan(&world, &app, None).expect("listed");
        assert_eq!(scan.ourselves.first(), Some(&world.pid));
        assert!(
            scan.looked_at > 0
                && scan
                    .seen
                    .iter()
                    .all(|seen| seen.process.incarnation.pid != world.pid)
        );
    }
}
