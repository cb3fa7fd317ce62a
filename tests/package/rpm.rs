//! The RPM package, installed by the real rpm(8) into a root that is being made. That root is Debian's:
//! rpm runs the scriptlets in it by chroot(2) and keeps a database of its own there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::built::{program, run, with_tool};
use crate::latest;
use crate::root::Root;
use crate::support::skip;

/// The RPM package in the given version; `None` where a tool for it is missing, which is said.
fn package(folder: &Path, version: &str) -> Option<PathBuf> {
    let Some(path) = with_tool("cargo-generate-rpm") else {
        skip("cargo-generate-rpm is missing (cargo install --locked cargo-generate-rpm)");
        return None;
    };
    for tool in ["rpm", "rpmbuild"] {
        if !Path::new("/usr/bin").join(tool).exists() {
            skip(&format!("{tool} is missing (Debian package rpm)"));
            return None;
        }
    }
    let target = folder.join("target");
    std::fs::create_dir_all(target.join("release")).unwrap();
    std::fs::copy(program()?, target.join("release/update")).unwrap();
    let file = folder.join(format!("fleet-update-{version}.rpm"));
    run(Command::new("cargo")
        .args(["generate-rpm", "--payload-compress", "none", "--target-dir"])
        .arg(&target)
        .arg("--output")
        .arg(&file)
        .arg("--set-metadata")
        .arg(format!("version = \"{version}\""))
        .env("PATH", path));
    Some(file)
}

/// A package of an agent whose `%posttrans` is the one that the README shows.
fn agent(folder: &Path, name: &str) -> PathBuf {
    let readme = include_str!("../../README.md");
    let scriptlet = readme
        .split("%posttrans\n")
        .nth(1)
        .and_then(|rest| rest.lines().next())
        .expect("the README shows a %posttrans");
    let spec = folder.join(format!("{name}.spec"));
    let text = format!(
        "Name: {name}\nVersion: 1\nRelease: 1\nSummary: An agent\nLicense: MIT\nBuildArch: noarch\n\
         AutoReqProv: no\n%description\nAn agent.\n%posttrans\n{scriptlet}\n%files\n"
    );
    std::fs::write(&spec, text).unwrap();
    let output = folder.join("built");
    run(Command::new("rpmbuild")
        .arg("-bb")
        .arg("--define")
        .arg(format!("_topdir {}", folder.join("rpmbuild").display()))
        .arg("--define")
        .arg(format!("_rpmdir {}", output.display()))
        .arg(&spec));
    output.join(format!("noarch/{name}-1-1.noarch.rpm"))
}

/// Runs rpm(8) on the root. Changes say `--nodeps`: the root's glibc and shell are in no RPM database.
#[track_caller]
fn rpm(root: &Root, arguments: &[&str], files: &[&Path]) -> String {
    run(Command::new("rpm")
        .arg("--root")
        .arg(root.path())
        .args(arguments)
        .args(files))
}

#[test]
fn the_rpm_package_installs_upgrades_and_goes_and_posttrans_of_another_runs_the_hook() {
    let folder = tempfile::tempdir().unwrap();
    let (Some(first), Some(second)) = (
        package(folder.path(), "0.1.0"),
        package(folder.path(), "99.0"),
    ) else {
        return;
    };
    let Some((root, _)) = Root::fresh() else {
        return;
    };
    let before = root.paths();

    rpm(&root, &["-i", "--nodeps"], &[&first]);
    assert_eq!(rpm(&root, &["-V", "--nodeps", "fleet-update"], &[]), "");
    let needs = rpm(&root, &["-q", "--requires", "fleet-update"], &[]);
    let needs: BTreeSet<_> = needs
        .lines()
        .filter(|line| !line.starts_with("rpmlib(") && !line.starts_with("config("))
        .collect();
    assert_eq!(needs, BTreeSet::from(["/bin/sh", "glibc >= 2.34"]));
    assert!(
        latest(root.path()).is_none(),
        "an installation ran something"
    );
    assert!(
        !root
            .paths()
            .iter()
            .any(|path| path.ends_with(".wants/fleet-update.timer")),
        "an installation scheduled something"
    );

    let agents = [
        agent(folder.path(), "agent-one"),
        agent(folder.path(), "agent-two"),
    ];
    rpm(&root, &["-i", "--nodeps"], &[&agents[0], &agents[1]]);
    let receipt = latest(root.path()).expect("a hook leaves a receipt");
    assert_eq!(receipt.0["trigger"], "package", "{}", receipt.summary());
    rpm(&root, &["-e", "agent-one", "agent-two", "--nodeps"], &[]);

    let config = root.path().join("etc/fleet-update/config.toml");
    std::fs::write(&config, "[run]\njobs = 2\n").unwrap();
    rpm(&root, &["-U", "--nodeps"], &[&second]);
    let version = rpm(&root, &["-q", "fleet-update"], &[]);
    assert!(version.starts_with("fleet-update-99.0-1."), "{version}");
    let kept = std::fs::read_to_string(&config).unwrap();
    assert_eq!(
        kept, "[run]\njobs = 2\n",
        "an administrator's words were lost"
    );

    rpm(&root, &["-e", "fleet-update", "--nodeps"], &[]);
    let after = root.paths();
    let left: Vec<_> = after
        .difference(&before)
        .filter(|path| !path.starts_with("var/lib/fleet-update"))
        .filter(|path| !path.starts_with("run/"))
        // A shared folder that Debian's root has not: another package of Fedora's brings it there.
        .filter(|path| path.contains("fleet-update") || !root.path().join(path).is_dir())
        .collect();
    // rpm keeps what an administrator changed, and receipts are an administrator's as well.
    let expected = ["etc/fleet-update", "etc/fleet-update/config.toml.rpmsave"];
    assert_eq!(left, expected);
    assert!(before.is_subset(&after), "something was taken away");
}
