//! The Debian package, built once from the program under test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::support::{cache, skip};

/// The package; `None` where cargo-deb is missing, which is said.
pub fn package() -> Option<&'static Path> {
    static PACKAGE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match PACKAGE.get_or_init(build) {
        Ok(path) => Some(path),
        Err(reason) => {
            skip(reason);
            None
        }
    }
}

/// A newer release of the package: the same files under a higher version.
pub fn newer(package: &Path) -> PathBuf {
    let folder = tempfile::tempdir_in(package.parent().unwrap()).unwrap();
    let tree = folder.path().join("tree");
    run(Command::new("dpkg-deb").arg("-R").arg(package).arg(&tree));
    let control = tree.join("DEBIAN/control");
    let text = std::fs::read_to_string(&control).unwrap();
    let version = text
        .lines()
        .find(|line| line.starts_with("Version: "))
        .unwrap();
    std::fs::write(&control, text.replace(version, "Version: 99.0-1")).unwrap();
    let newer = package.with_file_name("newer.deb");
    run(Command::new("dpkg-deb")
        .args(["-b", "-Znone"])
        .arg(&tree)
        .arg(&newer));
    newer
}

/// The program as a package holds it; `None` where no package can be built, which is said.
pub fn program() -> Option<PathBuf> {
    Some(package()?.with_file_name("release").join("update"))
}

fn build() -> Result<PathBuf, String> {
    let Some(path) = with_tool("cargo-deb") else {
        return Err("cargo-deb is missing (cargo install --locked cargo-deb)".into());
    };
    for file in ["man/update.8", "completions/_update"] {
        assert!(Path::new(file).exists(), "the package needs {file}");
    }
    static HELD: OnceLock<std::fs::File> = OnceLock::new();
    let folder = cache().join("package");
    std::fs::create_dir_all(&folder).unwrap();
    // Another process of these tests waits until this one is over.
    let lock = std::fs::File::create(folder.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    let _ = HELD.set(lock);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(folder.join("release")).unwrap();
    let program = folder.join("release/update");
    run(Command::new("strip")
        .arg("-o")
        .arg(&program)
        .arg(env!("CARGO_BIN_EXE_update")));
    run(Command::new("cargo")
        .args([
            "deb",
            "--no-build",
            "--no-strip",
            "--fast",
            "--quiet",
            "--offline",
            "--output",
        ])
        .arg(folder.join("fleet-update.deb"))
        .env("PATH", path)
        .env("CARGO_TARGET_DIR", &folder));
    Ok(folder.join("fleet-update.deb"))
}

/// A PATH on which a tool of cargo's is, if it is anywhere.
pub fn with_tool(tool: &str) -> Option<std::ffi::OsString> {
    let known = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&known).collect();
    folders.extend(std::env::var_os("UPDATE_TOOLS").map(|tools| PathBuf::from(tools).join("bin")));
    let found = folders.iter().any(|folder| folder.join(tool).exists());
    found.then(|| std::env::join_paths(folders).unwrap())
}

/// Runs a command that must succeed, and returns what it printed.
#[track_caller]
pub fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?} ended with {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}
