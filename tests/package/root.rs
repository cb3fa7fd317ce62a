//! A root that is being made: debootstrap's, entered by chroot(8), where no service manager runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::built::{newer, package, run};
use crate::support::fleet::CONFIG_V12;
use crate::support::{cache, skip, wait_for};
use crate::{assert_brief, latest, packaged_cron_line};

/// What a Debian of its own needs for these tests.
const INCLUDE: &str = "cron";

/// A root of its own for a test, removed with it.
pub struct Root {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Root {
    /// Unpacks a fresh one, with the package in its `/`; `None` where there is none, which is said.
    pub fn fresh() -> Option<(Self, &'static Path)> {
        let package = package()?;
        let archive = match archive() {
            Ok(archive) => archive,
            Err(reason) => {
                skip(&reason);
                return None;
            }
        };
        let folder = tempfile::tempdir_in(package.parent().unwrap()).unwrap();
        let path = folder.path().join("root");
        std::fs::create_dir(&path).unwrap();
        run(Command::new("tar")
            .args([
                "--extract",
                "--numeric-owner",
                "--same-permissions",
                "--file",
            ])
            .arg(archive)
            .arg("-C")
            .arg(&path));
        let _folder = folder;
        Some((Self { _folder, path }, package))
    }

    /// Shell text inside, in a mount namespace of its own; `proc` says whether it has a `/proc`,
    /// which is this machine's, with the process 1 of another root.
    fn shell(&self, proc: bool, text: &str) -> Output {
        let mount = if proc {
            "mount -t proc proc \"$0/proc\" &&"
        } else {
            ""
        };
        Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c"])
            .arg(format!("{mount} exec chroot \"$0\" /bin/sh -c \"$1\""))
            .arg(&self.path)
            .arg(text)
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// Shell text that must succeed.
    #[track_caller]
    fn sh(&self, text: &str) -> String {
        let output = self.shell(true, text);
        let (out, err) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(
            output.status.success(),
            "{text}: {}\n{out}{err}",
            output.status
        );
        out.into_owned()
    }

    fn copy(&self, file: &Path, name: &str) {
        std::fs::copy(file, self.path.join(name)).unwrap();
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Every path, without what dpkg and rpm themselves keep of any package.
    pub fn paths(&self) -> BTreeSet<String> {
        let text =
            run(Command::new("find")
                .arg(&self.path)
                .args(["-mindepth", "1", "-printf", "%P\\n"]));
        let kept = ["var/lib/dpkg", "root/.rpmdb", "var/log", "var/cache", "tmp"];
        text.lines()
            .filter(|path| !kept.iter().any(|folder| path.starts_with(folder)))
            .map(str::to_owned)
            .collect()
    }
}

fn archive() -> Result<PathBuf, String> {
    let archive = cache().join("debian-root-1.tar");
    std::fs::create_dir_all(cache()).unwrap();
    let lock = std::fs::File::create(archive.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    if archive.exists() {
        return Ok(archive);
    }
    if rustix::process::geteuid().as_raw() != 0 {
        return Err("debootstrap needs root".into());
    }
    if !Path::new("/usr/sbin/debootstrap").exists() {
        return Err("debootstrap is missing (Debian package debootstrap)".into());
    }
    let folder = tempfile::tempdir_in(cache()).unwrap();
    let root = folder.path().join("root");
    let mut command = Command::new("debootstrap");
    command
        .args(["--variant=minbase", "--include", INCLUDE, "bookworm"])
        .arg(&root);
    if let Some(mirror) = mirror() {
        command.arg(mirror);
    }
    let output = command.output().unwrap();
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        return Err(format!(
            "debootstrap: {}",
            text.lines().last().unwrap_or_default()
        ));
    }
    let part = archive.with_extension("part");
    run(Command::new("tar")
        .args(["--create", "--numeric-owner", "--one-file-system", "--file"])
        .arg(&part)
        .arg("-C")
        .arg(&root)
        .arg("."));
    std::fs::rename(&part, &archive).unwrap();
    Ok(archive)
}

/// Where this machine's own packages come from.
fn mirror() -> Option<String> {
    let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
    let listed = std::fs::read_dir("/etc/apt/sources.list.d")
        .into_iter()
        .flatten()
        .flatten();
    files.extend(listed.map(|entry| entry.path()));
    files.iter().find_map(|file| {
        let text = std::fs::read_to_string(file).ok()?;
        let mut words = text
            .lines()
            .filter(|line| line.starts_with("deb ") || line.starts_with("URIs:"))
            .flat_map(str::split_whitespace);
        words
            .find(|word| {
                word.starts_with("http") && word.trim_end_matches('/').ends_with("/debian")
            })
            .map(str::to_owned)
    })
}

#[track_caller]
fn assert_hook(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert_brief(&String::from_utf8_lossy(&output.stdout), &stderr);
    stderr
}

#[test]
fn in_a_root_that_is_being_made_the_package_installs_and_its_hook_says_that_no_manager_is_there() {
    let Some((root, package)) = Root::fresh() else {
        return;
    };
    let before = root.paths();
    root.copy(package, "fleet-update.deb");
    let installed = root.shell(false, "dpkg -i /fleet-update.deb");
    assert!(installed.status.success(), "{installed:?}");
    let home = root.path.join("home/ann/.hermes");
    root.sh("useradd -m -u 2001 ann && install -d -o ann -g ann /home/ann/.hermes");
    std::fs::write(home.join("config.yaml"), CONFIG_V12).unwrap();
    root.sh("chown ann:ann /home/ann/.hermes/config.yaml");

    // As an image is built: no /proc, no /run/systemd; then a /proc; then the folder of a manager of
    // somebody else's; then systemd's own variable.
    let scenes = [
        (false, "update --trigger package"),
        (true, "update --trigger package"),
        (
            true,
            "mkdir -p /run/systemd/system; update --trigger package",
        ),
        (true, "SYSTEMD_OFFLINE=1 update --trigger package"),
    ];
    for (proc, text) in scenes {
        let _ = std::fs::remove_dir_all(root.path.join("var/lib/fleet-update"));
        assert_hook(&root.shell(proc, text));
        let receipt = latest(&root.path).expect("a hook leaves a receipt");
        assert_eq!(receipt.0["trigger"], "package");
        for source in ["kernel", "system manager"] {
            let row = receipt
                .rows("collectors")
                .iter()
                .find(|row| row["name"] == source);
            let row = row.unwrap_or_else(|| panic!("no row for {source}: {}", receipt.summary()));
            assert_eq!(row["outcome"], "skipped", "{text}: {}", receipt.summary());
            assert_eq!(row["reason"], "no manager", "{text}: {}", receipt.summary());
        }
        assert_eq!(receipt.rows("runtimes").len(), 0, "{}", receipt.summary());
        let now = std::fs::read_to_string(home.join("config.yaml")).unwrap();
        assert_eq!(now, CONFIG_V12, "a home was migrated unasked");
    }

    // Where the site says so, homes are migrated here as well.
    let conf = root.path.join("etc/fleet-update/conf.d/50-hook.toml");
    std::fs::write(&conf, "[hook]\nmigrate = true\n").unwrap();
    assert_hook(&root.shell(true, "update --trigger package --to 33"));
    let receipt = latest(&root.path).unwrap();
    let row = receipt.home("/home/ann/.hermes");
    assert_eq!(row["outcome"], "migrated", "{}", receipt.summary());
    let now = std::fs::read_to_string(home.join("config.yaml")).unwrap();
    assert!(now.contains("_config_version: 33 "), "{now}");
    std::fs::write(&conf, "[hook]\nmigrat = true\n").unwrap();
    let said = assert_hook(&root.shell(true, "update --trigger package"));
    assert!(said.contains("50-hook.toml line 2"), "{said}");
    let usage = root.shell(true, "update --trigger package --no-such-flag");
    assert_eq!(usage.status.code(), Some(2));
    std::fs::remove_file(&conf).unwrap();

    // Upgrade, remove, reinstall and purge: an administrator's words stay until the purge, and then nothing does.
    std::fs::write(
        root.path.join("etc/fleet-update/config.toml"),
        "[run]\njobs = 2\n",
    )
    .unwrap();
    root.copy(&newer(package), "newer.deb");
    root.sh("dpkg -i /newer.deb && dpkg -r fleet-update");
    let kept = std::fs::read_to_string(root.path.join("etc/fleet-update/config.toml")).unwrap();
    assert_eq!(kept, "[run]\njobs = 2\n");
    assert!(
        latest(&root.path).is_some(),
        "the receipts went with a removal"
    );
    assert!(!root.path.join("usr/bin/update").exists());
    root.sh("dpkg -i /fleet-update.deb && dpkg -P fleet-update");
    root.sh("userdel -r ann 2>/dev/null; rm -r /run/systemd/system; rmdir /run/systemd; rm /*.deb");
    let after = root.paths();
    let ours: Vec<_> = after
        .difference(&before)
        .filter(|path| !path.starts_with("etc/"))
        .collect();
    assert!(ours.is_empty(), "left behind: {ours:?}");
    let ours: Vec<_> = after
        .iter()
        .filter(|path| path.contains("fleet-update"))
        .collect();
    assert!(ours.is_empty(), "left behind: {ours:?}");
    let lost: Vec<_> = before
        .difference(&after)
        .filter(|path| !path.starts_with("run/"))
        .collect();
    assert!(lost.is_empty(), "taken away: {lost:?}");
}

#[test]
fn a_trigger_of_another_package_runs_the_hook_once() {
    let Some((root, package)) = Root::fresh() else {
        return;
    };
    root.copy(package, "fleet-update.deb");
    root.sh("dpkg -i /fleet-update.deb");
    for name in ["one", "two"] {
        let folder = root.path.join(format!("build/{name}/DEBIAN"));
        std::fs::create_dir_all(&folder).unwrap();
        let control = format!(
            "Package: agent-{name}\nVersion: 1\nArchitecture: all\nMaintainer: A B <a@example.org>\nDescription: an agent\n"
        );
        std::fs::write(folder.join("control"), control).unwrap();
        std::fs::write(folder.join("triggers"), "activate-noawait fleet-update\n").unwrap();
        root.sh(&format!("dpkg-deb -b /build/{name} /{name}.deb"));
    }
    let said = root.sh("dpkg -i /one.deb /two.deb");
    assert_eq!(
        said.matches("Processing triggers for fleet-update").count(),
        1,
        "{said}"
    );
    let receipts = std::fs::read_dir(root.path.join("var/lib/fleet-update/receipts")).unwrap();
    let runs = receipts
        .flatten()
        .filter(|entry| entry.file_name() != "latest.json")
        .count();
    assert_eq!(runs, 1, "{said}");
    assert_eq!(latest(&root.path).unwrap().0["trigger"], "package");
}

#[test]
fn the_packaged_crontab_line_runs_under_cron_where_there_is_no_systemd_and_nowhere_else() {
    let Some((root, package)) = Root::fresh() else {
        return;
    };
    root.copy(package, "fleet-update.deb");
    root.sh("dpkg -i /fleet-update.deb");
    let text = format!(
        "{}@reboot root echo done >/run/witness\n",
        packaged_cron_line("@reboot")
    );
    std::fs::write(root.path.join("etc/cron.d/fleet-update"), text).unwrap();
    for systemd in [true, false] {
        let folder = root.path.join("run/systemd/system");
        if systemd {
            std::fs::create_dir_all(&folder).unwrap();
        } else {
            std::fs::remove_dir(&folder).unwrap();
        }
        for file in ["run/crond.reboot", "run/crond.pid", "run/witness"] {
            let _ = std::fs::remove_file(root.path.join(file));
        }
        // Process 1 of its own namespace, as in a container; it ends with its parent.
        let mut cron = Command::new("unshare")
            .args([
                "--mount",
                "--pid",
                "--fork",
                "--kill-child",
                "--propagation",
                "private",
                "sh",
                "-c",
            ])
            .arg("mount -t proc proc \"$0/proc\" && exec chroot \"$0\" /usr/sbin/cron -f")
            .arg(&root.path)
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        wait_for("cron runs its lines", Duration::from_secs(60), || {
            root.path.join("run/witness").exists().then_some(())
        });
        if systemd {
            // Both lines were started together; one that was going to run has begun by now.
            std::thread::sleep(Duration::from_secs(1));
            assert!(latest(&root.path).is_none(), "the guard did not hold");
        } else {
            let receipt = wait_for("cron's run ends", Duration::from_secs(60), || {
                latest(&root.path).filter(|receipt| !receipt.0["finished_at"].is_null())
            });
            assert_eq!(receipt.0["trigger"], "cron", "{}", receipt.summary());
        }
        cron.kill().unwrap();
        cron.wait().unwrap();
    }
}
