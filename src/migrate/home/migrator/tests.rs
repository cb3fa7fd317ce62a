#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test makes homes, and stand-ins for an application's migrator"
)]

use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use super::super::{Budget, Commit, HomeTarget, Planned, look};
use super::*;
use crate::helper::{Subject, Task as _};
use crate::world::World;

const OLD: &str = "# mine\n_config_version: 50\na: 1 # one\n";
const ENV: &str = "A=1\nB=secret-value\n";

/// A home at the catalog's end, and an install whose code expects one version more.
struct Scratch {
    dir: TempDir,
    app: App,
    target: HomeTarget,
}

impl Scratch {
    /// With a stand-in for the migrator: a shell script, in the place of the interpreter.
    fn with(script: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        let code = dir.path().join("code");
        for folder in [&home, &code] {
            std::fs::create_dir(folder).unwrap();
        }
        std::fs::write(home.join("config.yaml"), OLD).unwrap();
        std::fs::write(home.join(".env"), ENV).unwrap();
        let stand_in = code.join("stand-in");
        std::fs::write(&stand_in, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&stand_in, PermissionsExt::from_mode(0o755)).unwrap();
        let mut app = App::builtin(crate::app::DEFAULT).unwrap();
        let migrator = app.migrator.as_mut().unwrap();
        migrator.limit_secs = 2;
        let target = HomeTarget {
            id: "a".into(),
            path: home,
            within: None,
            expected: Some(51),
            native: Some(Native {
                interpreter: Some(stand_in),
                package: Some(code),
            }),
        };
        Self { dir, app, target }
    }

    fn home(&self) -> &Path {
        &self.target.path
    }

    fn look(&self, keep: bool) -> Evaluation {
        let catalog = Catalog::load(&self.app, &[]).unwrap();
        let world = World::read().unwrap();
        look(
            &world,
            &self.app,
            &catalog,
            &self.target,
            &Budget::new(keep),
        )
    }

    fn commit(&self, planned: Evaluation) -> (HomeOutcome, String) {
        let task = Commit {
            app: self.app.clone(),
            site_steps: Vec::new(),
            homes: vec![Planned {
                target: self.target.clone(),
                files: planned.files,
                dirs: planned.dirs,
                kept: planned.kept,
            }],
            subject: Subject::default(),
        };
        let mut done = Vec::new();
        let mut tell = |home| {
            done.push(home);
            Ok(())
        };
        task.perform(&World::read().unwrap(), &mut tell).unwrap();
        (done[0].outcome, done.remove(0).reason)
    }

    fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.home().join(file)).unwrap()
    }

    /// Whether the home is as it was, and nothing was left beside it or in memory.
    #[track_caller]
    fn assert_untouched(&self) {
        assert_eq!(
            (self.text("config.yaml"), self.text(".env")),
            (OLD.into(), ENV.into())
        );
        self.assert_tidy();
    }

    #[track_caller]
    fn assert_tidy(&self) {
        let uid = rustix::process::geteuid().as_raw();
        for place in [self.home().to_owned(), format!("/run/user/{uid}").into()] {
            let names = std::fs::read_dir(place).into_iter().flatten().flatten();
            let left: Vec<_> = names
                .map(|entry| entry.path())
                .filter(|path| path.to_string_lossy().contains(PREFIX))
                .filter(|path| {
                    std::fs::File::open(path).is_ok_and(|dir| {
                        rustix::fs::flock(&dir, FlockOperation::NonBlockingLockExclusive).is_ok()
                    })
                })
                .collect();
            assert!(left.is_empty(), "{left:?}");
        }
    }
}

/// Whether namespaces can be had here; where not, says what was skipped.
fn isolates() -> bool {
    let probe = Command::new("/usr/bin/unshare")
        .args([
            "--user",
            "--map-current-user",
            "--net",
            "--ipc",
            "--pid",
            "--fork",
            "true",
        ])
        .status();
    let isolates = probe.is_ok_and(|status| status.success());
    if !isolates {
        println!("SKIPPED: an application's own migrator: this kernel gives no namespaces");
    }
    isolates
}

const RAISE: &str = "sed -i 's/_config_version: 50/_config_version: 51/' config.yaml";

#[test]
fn what_it_makes_of_a_copy_is_written_and_nothing_else() {
    if !isolates() {
        return;
    }
    let scratch = Scratch::with(&format!(
        "{RAISE}\necho 'new: true' >>config.yaml\necho x >SOUL.md\nmkdir backups\necho C=2 >>.env"
    ));
    let planned = scratch.look(true);
    assert_eq!(
        (planned.outcome, planned.reason.as_str()),
        (HomeOutcome::Migrated, "")
    );
    let named: Vec<&str> = planned
        .changes
        .iter()
        .map(|change| change.path.as_str())
        .collect();
    assert_eq!(named, ["_config_version", "new", ".env: C"]);
    scratch.assert_untouched();
    assert_eq!(
        scratch.commit(planned),
        (HomeOutcome::Migrated, String::new())
    );
    assert_eq!(
        scratch.text("config.yaml"),
        format!("{}new: true\n", OLD.replace("50", "51"))
    );
    assert_eq!(scratch.text(".env"), format!("{ENV}C=2\n"));
    assert!(!scratch.home().join("SOUL.md").exists() && !scratch.home().join("backups").exists());
    scratch.assert_tidy();
    assert_eq!(scratch.look(false).outcome, HomeOutcome::Current);
}

#[test]
fn our_own_steps_go_first_as_far_as_they_lead() {
    if !isolates() {
        return;
    }
    let scratch = Scratch::with(RAISE);
    std::fs::write(scratch.home().join("config.yaml"), OLD.replace("50", "33")).unwrap();
    let planned = scratch.look(true);
    assert_eq!(
        (planned.outcome, planned.reason.as_str()),
        (HomeOutcome::Migrated, "")
    );
    let version = planned
        .changes
        .iter()
        .find(|change| change.step == "version")
        .unwrap();
    assert_eq!(
        (&version.before, &version.after),
        (&Some(33.into()), &Some(51.into()))
    );
    assert!(planned.steps.len() > 5 && planned.is_native());
    assert_eq!(scratch.commit(planned).0, HomeOutcome::Migrated);
    assert!(
        scratch
            .text("config.yaml")
            .starts_with("# mine\n_config_version: 51\na: 1 # one\n")
    );
}

#[test]
fn a_look_that_will_not_write_starts_nothing() {
    let scratch = Scratch::with("touch /tmp/must-not-be-made-by-a-look; exit 1");
    let seen = scratch.look(false);
    assert_eq!(seen.outcome, HomeOutcome::BeyondCatalog);
    assert!(
        seen.reason.ends_with("its own migrator would be asked"),
        "{}",
        seen.reason
    );
    assert!(!Path::new("/tmp/must-not-be-made-by-a-look").exists());
    let mut unasked = Scratch::with("exit 0");
    unasked.target.native = None;
    let seen = unasked.look(true);
    assert_eq!(seen.reason, "the code expects 51, the catalog ends at 50");
}

#[test]
fn it_runs_cut_off_with_an_exact_environment() {
    if !isolates() {
        return;
    }
    let scratch = Scratch::with(&format!(
        "{RAISE}\nnames=$(env | cut -d= -f1 | grep -v '^PWD$\\|^_$\\|^SHLVL$\\|^OLDPWD$' | sort | tr '\\n' ' ')\n\
         echo \"seen: '$names'\" >>config.yaml\n\
         echo \"devices: $(grep -c : /proc/net/dev)\" >>config.yaml\n\
         echo \"inside: $([ \"$HERMES_HOME\" = \"$PWD\" ] && echo yes-copy)\" >>config.yaml\n\
         (setsid sleep 86461 >/dev/null 2>&1 &)"
    ));
    let planned = scratch.look(true);
    assert_eq!(
        (planned.outcome, planned.reason.as_str()),
        (HomeOutcome::Migrated, "")
    );
    let value = |name: &str| {
        let found = planned.changes.iter().find(|change| change.path == name);
        found.and_then(|change| change.after.clone()).unwrap()
    };
    assert_eq!(value("seen"), "HERMES_HOME HOME LANG PATH TMPDIR ");
    assert_eq!(
        (value("devices"), value("inside")),
        (1.into(), "yes-copy".into())
    );
    let sleeps = |pid: &std::ffi::OsStr| {
        std::fs::read(Path::new("/proc").join(pid).join("cmdline"))
            .is_ok_and(|line| line == b"sleep\086461\0")
    };
    let living = std::fs::read_dir("/proc").unwrap().flatten();
    assert_eq!(living.filter(|entry| sleeps(&entry.file_name())).count(), 0);
}

#[test]
fn one_that_does_not_do_its_work_leaves_the_home_as_it_is() {
    if !isolates() {
        return;
    }
    let begun = Instant::now();
    for (script, outcome, why) in [
        ("exit 0", HomeOutcome::Failed, "it left version 50"),
        (
            "echo token-of-mine=abc >&2; echo it broke >&2; exit 3",
            HomeOutcome::BeyondCatalog,
            "it broke",
        ),
        (
            "sleep 60",
            HomeOutcome::BeyondCatalog,
            "it did not end within 2 s",
        ),
        (
            "trap '' TERM; while :; do :; done",
            HomeOutcome::BeyondCatalog,
            "it did not end within 2 s",
        ),
        (
            "head -c 100M /dev/zero >big || exit 9",
            HomeOutcome::BeyondCatalog,
            "exit status",
        ),
        ("rm config.yaml", HomeOutcome::Failed, "it was removed"),
        (
            "rm config.yaml; ln -s /etc/hostname config.yaml",
            HomeOutcome::BeyondCatalog,
            "config.yaml",
        ),
        (
            "rm config.yaml; mkfifo config.yaml",
            HomeOutcome::BeyondCatalog,
            "config.yaml",
        ),
        (
            "while :; do echo noise >&2; done",
            HomeOutcome::BeyondCatalog,
            "it did not end within 2 s",
        ),
        (": >config.yaml", HomeOutcome::Failed, "config.yaml"),
    ] {
        let scratch = Scratch::with(script);
        let seen = scratch.look(true);
        assert_eq!(seen.outcome, outcome, "{script}: {}", seen.reason);
        assert!(seen.reason.contains(why), "{script}: {}", seen.reason);
        assert!(seen.kept.is_none() && seen.files.is_empty(), "{script}");
        scratch.assert_untouched();
    }
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_home_that_changes_while_its_copy_is_worked_on_is_a_conflict() {
    if !isolates() {
        return;
    }
    let scratch = Scratch::with(RAISE);
    let planned = scratch.look(true);
    assert_eq!(planned.outcome, HomeOutcome::Migrated);
    let mine = format!("{OLD}b: 2\n");
    std::fs::write(scratch.home().join("config.yaml"), &mine).unwrap();
    let (outcome, reason) = scratch.commit(planned);
    assert_eq!(
        (outcome, reason.as_str()),
        (HomeOutcome::Conflict, "it changed since it was planned")
    );
    assert_eq!(scratch.text("config.yaml"), mine);
}

#[test]
fn code_that_others_can_change_is_not_run() {
    let scratch = Scratch::with(RAISE);
    let code = scratch.dir.path().join("code");
    std::fs::set_permissions(&code, PermissionsExt::from_mode(0o777)).unwrap();
    let seen = scratch.look(true);
    assert_eq!(seen.outcome, HomeOutcome::BeyondCatalog);
    assert!(seen.reason.contains("others can change"), "{}", seen.reason);
    std::fs::set_permissions(&code, PermissionsExt::from_mode(0o755)).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(code.join("stand-in"), Some(12345), None).unwrap();
        assert!(scratch.look(true).reason.contains("others can change"));
    }
    // A link on the way, in a folder of somebody else's.
    let linked = Scratch::with(RAISE);
    let others = tempfile::tempdir().unwrap();
    let (code, hop) = (linked.dir.path().join("code"), others.path().join("hop"));
    std::os::unix::fs::symlink(code.join("stand-in"), &hop).unwrap();
    std::os::unix::fs::symlink(&hop, code.join("linked")).unwrap();
    let uid = rustix::process::geteuid().as_raw();
    assert_eq!(may_run(&code.join("linked"), uid), Ok(()));
    std::fs::set_permissions(others.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let refused = may_run(&code.join("linked"), uid).unwrap_err();
    assert!(
        refused.ends_with(&others.path().display().to_string()),
        "{refused}"
    );
    let mut unknown = Scratch::with(RAISE);
    unknown.target.native = Some(Native::default());
    let seen = unknown.look(true);
    assert!(seen.reason.contains("interpreter"), "{}", seen.reason);
    unknown.assert_untouched();
}

#[test]
fn what_a_killed_run_left_is_removed_and_what_another_uses_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let uid = rustix::process::geteuid().as_raw();
    let place = |name: &str| {
        let path = dir.path().join(format!("{PREFIX}{name}"));
        std::fs::create_dir(&path).unwrap();
        path
    };
    let (left, used) = (place("left"), place("used"));
    let lock = std::fs::File::open(&used).unwrap();
    rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    std::fs::create_dir(dir.path().join("other")).unwrap();
    sweep(dir.path(), uid);
    assert!(!left.exists() && used.exists() && dir.path().join("other").exists());
}
