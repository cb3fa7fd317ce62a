//! Running the application's own migrator: as the owner, on a copy, cut off from everything else.
//!
//! | what it gets | how |
//! |---|---|
//! | a copy of the files that the descriptor names, and nothing else of the home | a folder of its own, 0700, that goes with it |
//! | no network, no process but its own | namespaces (unshare(1)); where the kernel gives none, it is not run |
//! | a limit of time, memory and file size, no privileges to gain | timeout(1), prlimit(1), setpriv(1); what is left of it ends with its namespace |
//! | an exact environment, no input | `HOME`, `PATH`, `LANG`, `TMPDIR`, and the variable that names the copy as its home |
//!
//! It is code that the owner runs every day, with the owner's rights: it is kept from surprises, not from
//! its owner's other files. Code that somebody else can change is not run. If this process is killed, what it
//! started ends by its own limit of time at the latest.

#![expect(
    clippy::disallowed_methods,
    reason = "the application's own migrator is started here, on a copy that is made here"
)]

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{Read, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::FlockOperation;
use tempfile::TempDir;

use super::{Folder, MAX_BYTES, Native, Witness};
use crate::app::{App, Migrator};
use crate::helper;
use crate::migrate::native::{self, Before, Start};
use crate::migrate::{After, Catalog, Evaluation, HomeOutcome, HomeView as _, or_failed};
use crate::screen;

/// How the folder of a copy is called; one that a killed run left is removed by the next.
const PREFIX: &str = "fleet-update-native.";

/// How much memory it may ask for, and how large a file of its may be.
const MEMORY: u64 = 2 << 30;
const FILE: u64 = 64 << 20;

/// How much of what it says is kept: the end.
const SAID: usize = 1024;

/// How much longer than its limit it is waited for.
const GRACE: Duration = Duration::from_secs(5);

/// A home whose migrator may be asked.
pub(super) struct Asked<'a> {
    pub(super) app: &'a App,
    pub(super) catalog: &'a Catalog,
    pub(super) view: &'a Witness<'a>,
    pub(super) native: &'a Native,
    /// As whom it would run.
    pub(super) uid: u32,
}

impl Asked<'_> {
    /// What becomes of a home that is `found` to be past the catalog. Only with `run` anything is started.
    pub(super) fn evaluate(&self, found: Evaluation, run: bool) -> (Evaluation, After) {
        let without = |found: Evaluation, why: &str| {
            let reason = format!("{}; {why}", found.reason);
            (
                found.concluded(HomeOutcome::BeyondCatalog, reason),
                After::new(),
            )
        };
        let Some(migrator) = &self.app.migrator else {
            return without(found, "the application has no migrator of its own");
        };
        let start = match native::start(self.app, self.catalog, self.view, found.clone()) {
            Ok(start) => start,
            Err(evaluation) => return (*evaluation, After::new()),
        };
        if !run {
            return without(found, "its own migrator would be asked");
        }
        let asked = self.before(migrator, &start).and_then(|before| {
            let after = self.ask(migrator, &before)?;
            Ok((before, after))
        });
        match asked {
            Ok((before, after)) => or_failed(found.to, || {
                native::judge(self.app, migrator, self.view, start, (&before, &after))
            }),
            Err(why) => without(found, &format!("its own migrator: {why}")),
        }
    }

    /// The files that it is given.
    fn before(&self, migrator: &Migrator, start: &Start) -> Result<Before, String> {
        let mut before = Before::new();
        for (name, _) in native::files(self.app, migrator) {
            let bytes = match start.made.get(name) {
                Some(bytes) => Some(bytes.clone()),
                None => self
                    .view
                    .read(name)
                    .map_err(|error| format!("{name}: {error}"))?,
            };
            before.extend(bytes.map(|bytes| (name.to_owned(), bytes)));
        }
        Ok(before)
    }

    /// What it makes of them.
    fn ask(&self, migrator: &Migrator, before: &Before) -> Result<Before, String> {
        let python = self.native.interpreter.as_deref();
        let python = python.ok_or("the interpreter of its install is not known")?;
        let package = self.native.package.as_deref();
        for path in [python].into_iter().chain(package) {
            may_run(path, self.uid)?;
        }
        let copy = Copy::make(self.uid, self.view.path())?;
        copy.fill(before)?;
        let words = migrator
            .command
            .iter()
            .map(|word| match word.as_str() {
                "{python}" => python.as_os_str().to_owned(),
                word => word.into(),
            })
            .collect();
        let home = self.app.home.env.as_deref();
        run(
            words,
            &copy,
            home,
            Duration::from_secs(migrator.limit_secs.into()),
        )?;
        let mut after = Before::new();
        let folder = Folder::open(&copy.home()).map_err(|error| error.to_string())?;
        for (name, _) in native::files(self.app, migrator) {
            // Everything that could change it now has ended.
            let meta = std::fs::symlink_metadata(copy.home().join(name));
            if meta.is_ok_and(|meta| !meta.is_file()) {
                return Err(format!("{name}: it is no regular file any more"));
            }
            let file = folder
                .read(Path::new(name), MAX_BYTES)
                .map_err(|error| format!("{name}: {}", error.reason))?;
            after.extend(file.map(|file| (name.to_owned(), file.bytes)));
        }
        Ok(after)
    }
}

/// A folder with a copy of a home's files; locked for as long as it is used.
struct Copy {
    dir: TempDir,
    _lock: std::fs::File,
}

impl Copy {
    /// Makes one in memory, where the account has such a place, else in the home.
    fn make(uid: u32, home: &Path) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("cannot make a copy: {error}");
        let runtime = PathBuf::from(format!("/run/user/{uid}"));
        let is_own = std::fs::symlink_metadata(&runtime)
            .is_ok_and(|meta| meta.is_dir() && meta.uid() == uid);
        let place = if is_own { &runtime } else { home };
        sweep(place, uid);
        let dir = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700))
            .tempdir_in(place)
            .map_err(failed)?;
        let lock = std::fs::File::open(dir.path()).map_err(failed)?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|errno| failed(errno.into()))?;
        let copy = Self { dir, _lock: lock };
        for folder in [copy.home(), copy.temporary()] {
            std::fs::create_dir(folder).map_err(failed)?;
        }
        Ok(copy)
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    fn temporary(&self) -> PathBuf {
        self.dir.path().join("tmp")
    }

    fn fill(&self, files: &Before) -> Result<(), String> {
        for (name, bytes) in files {
            let path = self.home().join(name);
            let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
            made.and_then(|()| {
                std::fs::OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .mode(0o600)
                    .open(&path)?
                    .write_all(bytes)
            })
            .map_err(|error| format!("cannot copy {name}: {error}"))?;
        }
        Ok(())
    }
}

/// Removes the copies that killed runs left; one in use is locked.
fn sweep(place: &Path, uid: u32) {
    let Ok(entries) = std::fs::read_dir(place) else {
        return;
    };
    for entry in entries.flatten() {
        let is_copy = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let path = entry.path();
        let is_own =
            std::fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir() && meta.uid() == uid);
        if !(is_copy && is_own) {
            continue;
        }
        // What cannot be removed now is tried again by the next run.
        if let Ok(dir) = std::fs::File::open(&path)
            && rustix::fs::flock(&dir, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}

/// Whether nobody but `uid` and root can change what `path` names: every folder on the way to it, and every link.
fn may_run(path: &Path, uid: u32) -> Result<(), String> {
    let shown = path.display();
    let mut links = 0;
    let mut at = PathBuf::from("/");
    let mut rest: VecDeque<OsString> = parts(path);
    check(&at, uid)?;
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            at.pop();
            continue;
        }
        let next = at.join(part);
        let meta = check(&next, uid)?;
        if !meta.is_symlink() {
            at = next;
            continue;
        }
        links += 1;
        // As many as the kernel follows (path_resolution(7)).
        if links > 40 {
            return Err(format!("{shown} leads through too many links"));
        }
        let target = std::fs::read_link(&next).map_err(|error| format!("{shown}: {error}"))?;
        if target.is_absolute() {
            at = PathBuf::from("/");
        }
        for part in parts(&target).into_iter().rev() {
            rest.push_front(part);
        }
    }
    Ok(())
}

/// The names that a path is made of.
fn parts(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter(|part| !matches!(part, Component::RootDir | Component::CurDir))
        .map(|part| part.as_os_str().to_owned())
        .collect()
}

/// Looks at one place, and refuses what others own or may write.
fn check(place: &Path, uid: u32) -> Result<std::fs::Metadata, String> {
    let meta = std::fs::symlink_metadata(place)
        .map_err(|error| format!("{}: {error}", place.display()))?;
    // A link's own mode means nothing (symlink(7)), and in a sticky folder nobody replaces another's entry.
    let is_sticky = meta.is_dir() && meta.mode() & 0o1000 != 0;
    let open = if uid == 0 { 0o022 } else { 0o002 };
    let is_open = !meta.is_symlink() && !is_sticky && meta.mode() & open != 0;
    if is_open || ![0, uid].contains(&meta.uid()) {
        return Err(format!("others can change {}", place.display()));
    }
    Ok(meta)
}

/// Runs it to its end.
fn run(
    words: Vec<OsString>,
    copy: &Copy,
    home: Option<&str>,
    limit: Duration,
) -> Result<(), String> {
    let seconds = limit.as_secs().max(1).to_string();
    helper::close_inherited();
    let mut command = Command::new("/usr/bin/prlimit");
    command
        .args([format!("--as={MEMORY}"), format!("--fsize={FILE}")])
        .args([format!("--cpu={seconds}"), "--core=0".into()])
        .args(["/usr/bin/setpriv", "--no-new-privs"])
        // With a process namespace all that it started ends with it; a network namespace is empty.
        .args(["/usr/bin/unshare", "--user", "--map-current-user"])
        .args(["--net", "--ipc", "--pid", "--fork", "--kill-child=KILL"])
        .args(["/usr/bin/timeout", "--signal=KILL", &seconds])
        .args(words)
        .env_clear()
        .env("HOME", copy.home())
        .env("TMPDIR", copy.temporary())
        .env("PATH", "/usr/bin:/bin")
        .env("LANG", "C.UTF-8")
        .envs(home.map(|variable| (variable, copy.home())))
        .current_dir(copy.home())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .map_err(|error| format!("/usr/bin/prlimit: {error}"))?;
    let stderr = child.stderr.take();
    let said = std::thread::spawn(move || stderr.map(last_words).unwrap_or_default());
    if !helper::ends_within(&child, limit + GRACE) {
        let _ = child.kill();
        let _ = child.wait();
        return Err(format!("it did not end within {seconds} s"));
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    if status.success() {
        return Ok(());
    }
    let said = said.join().unwrap_or_default();
    let last = said.lines().rfind(|line| !line.trim().is_empty());
    Err(match status.code() {
        // timeout(1): it was ended by the signal that it was to be ended by.
        Some(137) => format!("it did not end within {seconds} s, or was killed"),
        _ => format!(
            "{status}: {}",
            screen::text(last.unwrap_or("it said nothing"))
        ),
    })
}

/// The end of what a process says, however much that is.
fn last_words(mut stderr: impl Read) -> String {
    let mut kept = VecDeque::new();
    let mut part = [0; 4096];
    while let Ok(count) = stderr.read(&mut part)
        && count > 0
    {
        kept.extend(&part[..count]);
        let surplus = kept.len().saturating_sub(SAID);
        kept.drain(..surplus);
    }
    String::from_utf8_lossy(kept.make_contiguous()).into_owned()
}

#[cfg(test)]
mod tests;
