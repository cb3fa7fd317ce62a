//! A booted machine of its own for a test: start, run commands in it, look at its files and
//! processes from outside, end it.
//!
//! The work is done by `systemd-sandbox` beside this file. Its files and its `/proc` are read
//! through `/proc/PID/root` of its first process, so looking costs no command and disturbs nothing.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The script that boots.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/systemd-sandbox");

/// Status of the script where this machine cannot boot another one.
const CANNOT: i32 = 77;

/// A running sandbox; dropping it ends everything in it, and so does the end of this process.
#[derive(Debug)]
pub struct Sandbox {
    name: String,
    pid: u32,
    // The script's watchdog ends the sandbox when this is closed, also by SIGKILL.
    _lifeline: ChildStdin,
}

/// How a sandbox is booted.
#[derive(Debug, Default)]
pub struct Boot {
    arguments: Vec<String>,
}

/// A process of a sandbox, told by its pid and start; proc(5).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    /// Its pid in the sandbox.
    pub pid: u32,
    /// Field 22 of its stat file, clock ticks since boot.
    pub start_ticks: u64,
    /// Its real user id.
    pub uid: u32,
    /// Its arguments, joined by blanks.
    pub command: String,
    /// Its control group.
    pub cgroup: String,
}

impl Boot {
    /// Shows `source` read-only at `target`.
    pub fn show(mut self, source: &Path, target: &str) -> Self {
        self.arguments.push("--bind-ro".into());
        self.arguments
            .push(format!("{}:{target}", source.display()));
        self
    }

    /// Shows `source` at `target`, and lets what is inside write there.
    pub fn lend(mut self, source: &Path, target: &str) -> Self {
        self.arguments.push("--bind".into());
        self.arguments
            .push(format!("{}:{target}", source.display()));
        self
    }

    /// Unpacks an archive over the root before the boot.
    pub fn seed(mut self, archive: &Path) -> Self {
        self.arguments.push("--seed".into());
        self.arguments.push(archive.display().to_string());
        self
    }

    /// Removes a path of the seed before the boot.
    pub fn without(mut self, path: &str) -> Self {
        self.arguments.push("--without".into());
        self.arguments.push(path.into());
        self
    }

    /// Boots; the reason if this machine cannot.
    pub fn start(self) -> Result<Sandbox, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "e2e-{}-{}",
            std::process::id(),
            NUMBER.fetch_add(1, Ordering::Relaxed)
        );
        let mut child = Command::new(SCRIPT)
            .args(["start", &name])
            .args(&self.arguments)
            .arg("--lifeline")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lifeline = child.stdin.take().unwrap();
        let status = child.wait().unwrap();
        if !status.success() {
            let mut text = String::new();
            child.stderr.unwrap().read_to_string(&mut text).unwrap();
            if status.code() == Some(CANNOT) {
                return Err(text.trim().to_owned());
            }
            panic!("the sandbox did not boot: {text}");
        }
        let output = Command::new(SCRIPT).args(["pid", &name]).output().unwrap();
        let pid = String::from_utf8(output.stdout)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        Ok(Sandbox {
            name,
            pid,
            _lifeline: lifeline,
        })
    }
}

impl Sandbox {
    /// A command that will run inside, as root or as `user`, with a login's environment.
    pub fn command<I, S>(&self, user: Option<&str>, arguments: I) -> Command
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let mut command = Command::new(SCRIPT);
        command.args(["exec", &self.name]);
        if let Some(user) = user {
            command.args(["--user", user]);
        }
        command.args(arguments).stdin(Stdio::null());
        command
    }

    /// Runs shell text inside as root or as `user`, and returns how it went.
    pub fn shell(&self, user: Option<&str>, text: &str) -> Output {
        self.command(user, ["bash", "-c", text]).output().unwrap()
    }

    /// Runs shell text that must succeed, and returns what it printed.
    #[track_caller]
    pub fn sh(&self, user: Option<&str>, text: &str) -> String {
        let output = self.shell(user, text);
        assert!(
            output.status.success(),
            "`{text}` ended with {}: {}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// Its first process as this machine sees it: the way into its namespaces.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Where a path of the sandbox is for this process.
    pub fn path(&self, inside: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{inside}", self.pid))
    }

    /// The bytes of a file, if it is there.
    pub fn read(&self, inside: &str) -> Option<Vec<u8>> {
        std::fs::read(self.path(inside)).ok()
    }

    /// Creates or replaces a file with this mode, owned like its folder.
    pub fn write(&self, inside: &str, text: &str, mode: u32) {
        let path = self.path(inside);
        let folder = path.parent().unwrap();
        if !folder.exists() {
            std::fs::create_dir_all(folder).unwrap();
            let owner = folder.parent().unwrap().metadata().unwrap();
            chown(folder, Some(owner.uid()), Some(owner.gid())).unwrap();
        }
        let owner = folder.metadata().unwrap();
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.set_permissions(std::fs::Permissions::from_mode(mode))
            .unwrap();
        chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
    }

    /// Every process, as the sandbox's own `/proc` has them.
    pub fn processes(&self) -> Vec<Process> {
        let mut found: Vec<Process> = std::fs::read_dir(self.path("/proc"))
            .unwrap()
            .filter_map(|entry| {
                let name = entry.ok()?.file_name();
                self.process(name.to_str()?.parse().ok()?)
            })
            .collect();
        found.sort();
        found
    }

    /// One process, if it lives.
    pub fn process(&self, pid: u32) -> Option<Process> {
        let folder = self.path(&format!("/proc/{pid}"));
        let text = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
        let stat = text("stat")?;
        // The command name may hold blanks and parentheses: fields count from the last one.
        let mut fields = stat.rsplit_once(") ")?.1.split(' ');
        if matches!(fields.next()?, "Z" | "X") {
            return None;
        }
        let start_ticks = fields.nth(18)?.parse().ok()?;
        let command = std::fs::read(folder.join("cmdline")).ok()?;
        Some(Process {
            pid,
            start_ticks,
            uid: std::fs::metadata(&folder).ok()?.uid(),
            command: String::from_utf8_lossy(&command)
                .replace('\0', " ")
                .trim_end()
                .to_owned(),
            cgroup: text("cgroup")?
                .lines()
                .find_map(|line| line.strip_prefix("0::"))?
                .to_owned(),
        })
    }

    /// The paths below `folder` that root owns, with whether they are folders.
    pub fn owned_by_root(&self, folder: &str) -> Vec<String> {
        // Who owns a folder may take things out of it meanwhile.
        let text = self.sh(
            None,
            &format!("find {folder} -ignore_readdir_race -uid 0 -printf '%y %p\\n'"),
        );
        text.lines().map(ToOwned::to_owned).collect()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = Command::new(SCRIPT).args(["stop", &self.name]).status();
    }
}

/// Waits for a child until `limit`; `None` if it is still at work then.
pub fn wait(child: &mut Child, limit: Duration) -> Option<std::process::ExitStatus> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        if start.elapsed() > limit {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
