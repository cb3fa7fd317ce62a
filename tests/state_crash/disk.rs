//! A state folder on a disk that is full or read-only.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fleet::{CONFIG, Fleet, go_on, many, wait_until_stopped};
use crate::isolated::{isolated, skip};
use crate::whole::whole_run;

/// A file system of our own, small and empty, in place of the state folder.
struct Mounted(PathBuf);

impl Mounted {
    /// `None` where we may not mount, which is said.
    fn at(path: &Path, options: &str) -> Option<Self> {
        fs::create_dir_all(path).expect("room");
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(path)
            .status()
            .is_ok_and(|status| status.success());
        if !done {
            skip("it needs the right to mount");
        }
        done.then(|| Self(path.to_owned()))
    }

    /// Mounts it with other options.
    fn again(&self, options: &str) {
        let status = Command::new("mount")
            .args(["-o", &format!("remount,{options}")])
            .arg(&self.0)
            .status();
        assert!(status.expect("mount(8)").success());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_disk_that_fills_up_at_any_stage_leaves_whole_files_and_a_run_that_says_so() {
    if !isolated() {
        return;
    }
    let (after, _) = whole_run();
    for point in [
        "lock.signed",
        "run.planned",
        "run.open.committed",
        "receipt.durable",
        "snapshot.file-made",
        "snapshot.read-back",
        "run.copy.committed",
        "run.write.committed",
        "run.restart.committed",
        "run.verified",
    ] {
        let fleet = Fleet::new();
        let Some(_mounted) = Mounted::at(&fleet.state(), "size=8m,mode=0700") else {
            return;
        };
        let mut child = fleet.spawn(
            "apply",
            &[
                ("FLEET_UPDATE_FAIL", point),
                ("FLEET_UPDATE_FAIL_BY", "stop"),
            ],
        );
        let stopped = wait_until_stopped(&mut child);
        let ballast = fleet.state().join("ballast");
        if stopped {
            fill(&ballast);
            go_on(&child);
        }
        let status = child.wait().expect("ours");
        assert!(stopped, "{point} was not reached: {}", fleet.said());
        assert_ne!(
            status.code(),
            Some(0),
            "{point}: a full disk is not clean: {}",
            fleet.said()
        );
        assert!(status.code().is_some(), "{point}: it ended by itself");
        fs::remove_file(&ballast).expect("ours");
        fleet.check_whole(after, point);
        if [
            "lock.signed",
            "run.planned",
            "run.open.committed",
            "snapshot.file-made",
        ]
        .contains(&point)
        {
            assert_eq!(
                fleet.configs(),
                vec![CONFIG; 3],
                "{point}: refused before changes"
            );
        }
        fleet.check_converges(after, point);
    }
}

/// Takes every page of a small file system; its counters are kept by processor, so that a large write gives up too
/// early.
fn fill(path: &Path) {
    use std::io::Write as _;
    let mut file = fs::File::create(path).expect("one more name");
    let mut failures = 0;
    while failures < 64 {
        failures += usize::from(file.write_all(&[0; 4096]).is_err());
    }
}

#[test]
fn a_read_only_state_folder_is_an_error_before_anything_is_changed() {
    if !isolated() {
        return;
    }
    let fleet = Fleet::new();
    let Some(_mounted) = Mounted::at(&fleet.state(), "ro,size=1m,mode=0700") else {
        return;
    };
    assert_eq!(fleet.run("apply", &[]).code(), Some(3), "{}", fleet.said());
    assert_eq!(
        (fleet.configs(), fleet.starts()),
        (vec![CONFIG.to_owned(); 3], vec![1, 1, 1])
    );
}

#[test]
fn a_state_folder_that_became_read_only_changes_nothing_and_can_be_used_again() {
    if !isolated() {
        return;
    }
    let fleet = Fleet::without_runtimes(many(2).into_iter());
    let Some(mounted) = Mounted::at(&fleet.state(), "size=8m,mode=0700") else {
        return;
    };
    assert_eq!(fleet.run("apply", &[]).code(), Some(0), "{}", fleet.said());
    let after = fleet.configs().remove(0);
    let receipt = fleet.latest();
    fleet.write_homes();
    mounted.again("ro");
    assert_eq!(fleet.run("apply", &[]).code(), Some(3), "{}", fleet.said());
    let run = receipt["run_id"].as_str().expect("an id");
    let back = fleet.run(&format!("rollback {run}"), &[("CRASH_TO", "12")]);
    assert_eq!(back.code(), Some(3), "{}", fleet.said());
    assert_eq!(
        (fleet.configs(), fleet.latest()),
        (vec![CONFIG.to_owned(); 2], receipt)
    );
    mounted.again("rw");
    fleet.check_converges(&after, "writable again");
}
