//! Which code tree something runs from, and what that tree says of itself.
//!
//! A tree is found the way the interpreter finds it: from the program's own path, the virtual
//! environment above it, and the folders that imports are looked up in; never from the caller's
//! `PATH`, and never by running anything. Its release, the configuration version that it expects
//! and the time of its last change are read from its files, bounded in size.
//!
//! Call it as the user whose tree it is: links are followed with that user's rights.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::units::files::read_bounded;
use super::{Changed, Install, InstallKind, procfs, runtimes};
use crate::app::App;
use crate::digest::sha256;
use metadata::Metadata;
use version::expected_version;

mod metadata;
mod version;

/// No metadata file is read past this.
const SMALL_LIMIT: u64 = 256 << 10;

/// How many entries of a folder of packages are looked at.
const ENTRY_LIMIT: usize = 20_000;

/// How something of the application is started: all that tells which code it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Command line as tokens.
    pub argv: Vec<String>,
    /// Executable, where the kernel shows it.
    pub exe: Option<PathBuf>,
    /// Working directory, where it is known.
    pub cwd: Option<PathBuf>,
    /// The variables of [`wanted_variables`].
    pub env: Vec<(String, String)>,
    /// The home folder of its owner, which may hold packages of its own.
    pub home: PathBuf,
}

/// The variables that tell which code a process runs.
#[must_use]
pub fn wanted_variables() -> Vec<String> {
    ["PATH", "PYTHONPATH"].map(str::to_owned).to_vec()
}

/// Where a package was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The package folder, links resolved.
    pub package: PathBuf,
    /// The virtual environment that it is run in.
    pub venv: Option<PathBuf>,
    /// The folder that holds its metadata, if one does.
    pub site: Option<PathBuf>,
}

/// Finds the package that a program runs; `None` where its files do not show one.
#[must_use]
pub fn locate(app: &App, program: &Program) -> Option<Place> {
    let started = Started::of(app, program)?;
    for folder in &started.first {
        if let Some(package) = package_in(app, folder) {
            return Some(Place {
                site: started
                    .sites
                    .iter()
                    .find(|site| is_described(app, site))
                    .cloned(),
                package,
                venv: started.venv,
            });
        }
    }
    for site in &started.sites {
        if let Some(package) = package_in(app, site).or_else(|| linked_package(app, site)) {
            return Some(Place {
                package,
                venv: started.venv,
                site: Some(site.clone()),
            });
        }
    }
    None
}

/// The checkout below a root home, if it holds the package.
#[must_use]
pub fn checkout_of(app: &App, root: &Path) -> Option<Place> {
    let folder = root.join(app.code.checkout.as_deref()?);
    let package = package_in(app, &folder).or_else(|| package_in(app, &folder.join("src")))?;
    let venv = app
        .code
        .checkout_venvs
        .iter()
        .map(|name| folder.join(name))
        .find(|venv| venv.join("pyvenv.cfg").is_file());
    let site = venv
        .as_deref()
        .into_iter()
        .flat_map(|venv| sites_below(venv, None))
        .find(|site| is_described(app, site));
    Some(Place {
        package,
        venv,
        site,
    })
}

/// What a code tree says of itself.
#[must_use]
pub fn describe(app: &App, place: &Place) -> Install {
    let parent = place.package.parent().unwrap_or(&place.package);
    let inside_site = place
        .site
        .as_deref()
        .is_some_and(|site| same_folder(site, parent));
    let tree = source_tree(parent);
    let metadata = place
        .site
        .as_deref()
        .and_then(|site| Metadata::find(app, site));
    let git = tree
        .as_deref()
        .filter(|_| !inside_site)
        .and_then(git_folder);
    let (path, kind) = if git.is_some() {
        (tree.clone().unwrap_or_default(), InstallKind::Git)
    } else {
        let path = match (&place.venv, inside_site) {
            (Some(venv), true) => resolved(venv),
            (_, true) => place.package.clone(),
            (_, false) => tree.clone().unwrap_or_else(|| place.package.clone()),
        };
        let kind = kind_of(&path, place.venv.as_deref(), metadata.as_ref());
        (path, kind)
    };
    let own_release = tree
        .as_deref()
        .filter(|_| !inside_site)
        .and_then(declared_version);
    let changed = match (&git, &metadata) {
        (Some(git), _) => git_change(git),
        (None, Some(metadata)) if inside_site => change_of(metadata.folder.join("RECORD")),
        _ => None,
    };
    Install {
        id: identifier(&path),
        uid: std::fs::metadata(&path).map_or(0, |meta| meta.uid()),
        kind,
        version: own_release.or_else(|| metadata.map(|metadata| metadata.version)),
        config_version: expected_version(app, &place.package),
        changed: changed.or_else(|| change_of(place.package.join("__init__.py"))),
        roots: Vec::new(),
        updater: git.as_deref().and_then(|git| active_lock(app, git)),
        package: place.package.clone(),
        interpreter: place
            .venv
            .as_deref()
            .map(|venv| venv.join("bin/python"))
            .filter(|python| python.is_file()),
        path,
    }
}

/// A stable identifier of a resolved path.
#[must_use]
pub fn identifier(path: &Path) -> String {
    let mut digest = sha256(path.as_os_str().as_encoded_bytes());
    digest.truncate(16);
    digest
}

/// What a command line starts with, and where its imports are looked up.
struct Started {
    venv: Option<PathBuf>,
    /// Folders that come before the installed packages.
    first: Vec<PathBuf>,
    /// Folders of installed packages.
    sites: Vec<PathBuf>,
}

impl Started {
    fn of(app: &App, program: &Program) -> Option<Self> {
        let own = program.absolute(program.argv.first()?);
        let own = own.filter(|_| runtimes::is_script(app, &program.argv[0]));
        let launched = own.as_deref().and_then(launched);
        let argv = launched.as_ref().unwrap_or(&program.argv);
        let (word, script) = if let (Some(script), None) = (own, &launched) {
            (shebang(&script), Some(script))
        } else {
            let script = argv
                .iter()
                .skip(1)
                .find(|word| runtimes::is_program(app, word));
            (
                argv.first().cloned(),
                script.and_then(|script| program.absolute(script)),
            )
        };
        let interpreter = word
            .and_then(|word| program.absolute(&word))
            .filter(|path| path.exists())
            .or_else(|| program.exe.clone())?;
        let script_folder = script.as_deref().and_then(Path::parent);
        let venv = venv_above(&interpreter)
            .or_else(|| program.exe.as_deref().and_then(venv_above))
            // `~/.local/bin/NAME` is often a link into the environment's own `bin`.
            .or_else(|| {
                script
                    .as_deref()
                    .and_then(|script| venv_above(&resolved(script)))
            });
        let mut first = Vec::new();
        let isolated = argv
            .iter()
            .skip(1)
            .take_while(|word| word.starts_with('-') && !word.starts_with("-m"))
            .any(|flags| !flags.starts_with("--") && flags.contains(['I', 'P']));
        let by_module = script.is_none();
        first.extend(runtimes::inline_of(app, argv).and_then(|inline| inline.site));
        if by_module && !isolated {
            first.extend(program.cwd.clone());
        }
        if let Some(folder) = script_folder.filter(|_| !isolated) {
            // A module's own file: its package lies in the folder above.
            first.extend(
                folder
                    .parent()
                    .map(Path::to_path_buf)
                    .filter(|up| package_in(app, up).is_some()),
            );
        }
        if !isolated && let Some(path) = program.variable("PYTHONPATH") {
            let entries = path.split(':').map(PathBuf::from);
            first.extend(entries.filter(|entry| entry.is_absolute()).take(64));
        }
        let mut sites = Vec::new();
        match &venv {
            Some(venv) => {
                sites.extend(sites_below(venv, None));
                if shares_system_packages(venv) {
                    sites.extend(system_sites(program, &interpreter));
                }
            }
            None => {
                let above = script_folder.and_then(Path::parent);
                sites.extend(
                    above
                        .into_iter()
                        .flat_map(|prefix| sites_below(prefix, None)),
                );
                sites.extend(system_sites(program, &interpreter));
            }
        }
        Some(Self { venv, first, sites })
    }
}

impl Program {
    fn variable(&self, name: &str) -> Option<&str> {
        self.env
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// Where a word of the command line is, the way execvp(3) looks for it.
    fn absolute(&self, word: &str) -> Option<PathBuf> {
        let path = Path::new(word);
        if path.is_absolute() {
            return Some(path.to_path_buf());
        }
        if word.contains('/') {
            return self.cwd.as_ref().map(|cwd| cwd.join(path));
        }
        self.variable("PATH")?
            .split(':')
            .map(Path::new)
            .filter(|folder| folder.is_absolute())
            .take(256)
            .map(|folder| folder.join(path))
            .find(|path| path.is_file())
    }
}

/// The interpreter that a script names in its first lines.
fn shebang(script: &Path) -> Option<String> {
    let bytes = read_bounded(script, SMALL_LIMIT, true).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines();
    let words: Vec<&str> = lines
        .next()?
        .strip_prefix("#!")?
        .split_whitespace()
        .collect();
    let program = *words.first()?;
    if program.ends_with("/env") {
        return words
            .iter()
            .skip(1)
            .find(|word| !word.starts_with('-'))
            .map(|word| (*word).to_owned());
    }
    if program.ends_with("/sh") {
        // Installers write this where the interpreter's path is too long for the kernel:
        // '''exec' "/long/path/python" "$0" "$@"
        let rest = lines.next()?.strip_prefix("'''exec' ")?;
        let path = rest.split_once(" \"$0\"").map_or(rest, |(path, _)| path);
        return Some(path.trim_matches('"').to_owned());
    }
    Some(program.to_owned())
}

/// The command line that a launcher of two lines becomes: a shell's `exec PROGRAM WORD… "$@"`.
fn launched(script: &Path) -> Option<Vec<String>> {
    let bytes = read_bounded(script, SMALL_LIMIT, true).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let command = text.strip_prefix("#!/bin/sh\nexec ")?;
    let mut words = shlex::split(command.strip_suffix(" \"$@\"\n")?)?;
    // What an argument would be is not known, and no matter to which code is run.
    words.retain(|word| !word.is_empty());
    (!words.is_empty()).then_some(words)
}

/// The virtual environment of an interpreter: the folder with `pyvenv.cfg`, beside it or above.
fn venv_above(interpreter: &Path) -> Option<PathBuf> {
    interpreter
        .ancestors()
        .skip(1)
        .take(2)
        .find(|folder| folder.join("pyvenv.cfg").is_file())
        .map(Path::to_path_buf)
}

fn shares_system_packages(venv: &Path) -> bool {
    read_bounded(&venv.join("pyvenv.cfg"), SMALL_LIMIT, true).is_ok_and(|bytes| {
        String::from_utf8_lossy(&bytes).lines().any(|line| {
            line.split_once('=').is_some_and(|(key, value)| {
                key.trim() == "include-system-site-packages"
                    && value.trim().eq_ignore_ascii_case("true")
            })
        })
    })
}

/// The folders of packages that an interpreter without a virtual environment uses, its user's first.
fn system_sites(program: &Program, interpreter: &Path) -> Vec<PathBuf> {
    let real = resolved(interpreter);
    let version = real
        .file_name()
        .and_then(OsStr::to_str)
        .and_then(|name| name.strip_prefix("python"))
        .filter(|version| version.contains('.'));
    let mut sites = Vec::new();
    if !program.home.as_os_str().is_empty() {
        sites.extend(sites_below(&program.home.join(".local"), version));
    }
    if let Some(prefix) = real.parent().and_then(Path::parent) {
        if prefix == Path::new("/usr") {
            sites.extend(sites_below(Path::new("/usr/local"), version));
        }
        sites.extend(sites_below(prefix, version));
    }
    sites
}

/// The folders of packages below a prefix; of one Python version where that is known.
fn sites_below(prefix: &Path, version: Option<&str>) -> Vec<PathBuf> {
    let mut sites = BTreeSet::new();
    for lib in ["lib", "lib64"] {
        for entry in names_in(&prefix.join(lib)) {
            let Some(rest) = entry.strip_prefix("python3") else {
                continue;
            };
            // `python3` alone is Debian's folder for every version.
            if version.is_some_and(|version| !rest.is_empty() && version != format!("3{rest}")) {
                continue;
            }
            for name in ["site-packages", "dist-packages"] {
                let site = prefix.join(lib).join(&entry).join(name);
                if site.is_dir() {
                    sites.insert(resolved(&site));
                }
            }
        }
    }
    sites.into_iter().collect()
}

fn package_in(app: &App, folder: &Path) -> Option<PathBuf> {
    let package = folder.join(&app.code.package);
    (!app.code.package.is_empty() && package.join("__init__.py").is_file())
        .then(|| resolved(&package))
}

/// A package that lies elsewhere: an editable install's source, by its metadata or a `.pth` line.
fn linked_package(app: &App, site: &Path) -> Option<PathBuf> {
    let below =
        |folder: &Path| package_in(app, folder).or_else(|| package_in(app, &folder.join("src")));
    let by_metadata = Metadata::find(app, site)
        .and_then(|metadata| metadata.source())
        .and_then(|source| below(&source));
    by_metadata.or_else(|| {
        names_in(site)
            .iter()
            .filter(|name| name.ends_with(".pth"))
            .take(64)
            .filter_map(|name| read_bounded(&site.join(name), SMALL_LIMIT, true).ok())
            .find_map(|bytes| {
                String::from_utf8_lossy(&bytes)
                    .lines()
                    .map(Path::new)
                    .filter(|line| line.is_absolute())
                    .find_map(below)
            })
    })
}

fn is_described(app: &App, site: &Path) -> bool {
    Metadata::find(app, site).is_some()
}

/// The source tree that a package outside of installed packages belongs to.
fn source_tree(parent: &Path) -> Option<PathBuf> {
    let above = parent
        .file_name()
        .filter(|name| *name == "src")
        .and_then(|_| parent.parent());
    [Some(parent), above]
        .into_iter()
        .flatten()
        .find(|folder| {
            ["pyproject.toml", ".git", "setup.py"]
                .iter()
                .any(|name| folder.join(name).exists())
        })
        .map(Path::to_path_buf)
}

/// The release that a source tree declares (`project.version`); a dynamic one is not guessed.
fn declared_version(tree: &Path) -> Option<String> {
    let bytes = read_bounded(&tree.join("pyproject.toml"), SMALL_LIMIT, true).ok()?;
    let document: toml_edit::DocumentMut = std::str::from_utf8(&bytes).ok()?.parse().ok()?;
    Some(
        document
            .get("project")?
            .get("version")?
            .as_str()?
            .to_owned(),
    )
}

/// The git folder of a checkout; a linked worktree names its own in a file (gitrepository-layout(5)).
fn git_folder(tree: &Path) -> Option<PathBuf> {
    let git = tree.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let bytes = read_bounded(&git, SMALL_LIMIT, true).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let path = Path::new(text.trim().strip_prefix("gitdir:")?.trim());
    Some(tree.join(path)).filter(|folder| folder.is_dir())
}

/// When a checkout last moved: its reflog, else `HEAD` and the branch that it names.
fn git_change(git: &Path) -> Option<Changed> {
    if let Some(changed) = change_of(git.join("logs/HEAD")) {
        return Some(changed);
    }
    let head = git.join("HEAD");
    let branch = read_bounded(&head, SMALL_LIMIT, true)
        .ok()
        .and_then(|bytes| {
            let text = String::from_utf8_lossy(&bytes);
            let name = text.trim().strip_prefix("ref: ")?.to_owned();
            (!Path::new(&name)
                .components()
                .any(|part| part == std::path::Component::ParentDir))
            .then(|| git.join(name))
        });
    [Some(head), branch]
        .into_iter()
        .flatten()
        .filter_map(change_of)
        .max_by_key(|changed| changed.at_nanos)
}

fn change_of(file: PathBuf) -> Option<Changed> {
    let meta = std::fs::metadata(&file).ok()?;
    let seconds = u64::try_from(meta.ctime()).ok()?;
    let nanos = u64::try_from(meta.ctime_nsec()).ok()?;
    Some(Changed {
        at_nanos: seconds.checked_mul(1_000_000_000)?.checked_add(nanos)?,
        file,
    })
}

fn kind_of(path: &Path, venv: Option<&Path>, metadata: Option<&Metadata>) -> InstallKind {
    let has = |name: &str| path.components().any(|part| part.as_os_str() == name);
    if path.starts_with("/nix/store") {
        return InstallKind::Nix;
    }
    // What pip puts beside Homebrew's own links is pip's; only a keg of the cellar is Homebrew's.
    if has("Cellar") {
        return InstallKind::Homebrew;
    }
    if path.starts_with("/usr/lib/python3") {
        return InstallKind::Dpkg;
    }
    let pipx = venv.is_some_and(|venv| venv.join("pipx_metadata.json").is_file());
    if pipx || (has("pipx") && has("venvs")) {
        return InstallKind::Pipx;
    }
    match metadata.map(Metadata::installer).as_deref() {
        Some("uv") => InstallKind::Uv,
        Some("pip") => InstallKind::Pip,
        Some("dpkg" | "debian") => InstallKind::Dpkg,
        // A container says so in a file of its own; nothing else put the code there.
        _ if ["/.dockerenv", "/run/.containerenv"]
            .iter()
            .any(|file| Path::new(file).exists()) =>
        {
            InstallKind::Image
        }
        _ => InstallKind::Unknown,
    }
}

/// Whether the application's own updater holds one of its locks in a git folder.
pub(super) fn active_lock(app: &App, git: &Path) -> Option<String> {
    let files: Vec<(PathBuf, u64, u64)> = app
        .code
        .update_locks
        .iter()
        .filter_map(|name| {
            let path = git.join(name);
            let meta = std::fs::metadata(&path).ok()?;
            Some((path, meta.dev(), meta.ino()))
        })
        .collect();
    if files.is_empty() {
        return None;
    }
    let held = procfs::flocks().ok()?;
    files.into_iter().find_map(|(path, dev, ino)| {
        held.iter()
            .find(|lock| lock.is_on(dev, ino))
            .map(|lock| format!("{} is locked by process {}", path.display(), lock.pid))
    })
}

fn same_folder(a: &Path, b: &Path) -> bool {
    resolved(a) == resolved(b)
}

/// A path without links, or as it is where that cannot be found out.
fn resolved(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

fn names_in(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .take(ENTRY_LIMIT)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests;
