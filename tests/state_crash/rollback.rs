//! Putting back what a run wrote over.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use fleet_update::digest::sha256 as digest;
use serde_json::Value;

use crate::fleet::{CONFIG, Fleet, go_on, many, wait_until_stopped};
use crate::isolated::{isolated, skip};
use crate::whole::whole_run;

#[test]
fn a_rollback_puts_back_the_exact_bytes_restarts_what_serves_them_and_is_itself_a_run() {
    if !isolated() {
        return;
    }
    let (after, _) = whole_run();
    let fleet = Fleet::new();
    assert_eq!(fleet.run("apply", &[]).code(), Some(0), "{}", fleet.said());
    let run = fleet.latest()["run_id"].as_str().expect("an id").to_owned();
    // The code still expects the newer version: nothing may be written.
    let refused = fleet.run(&format!("rollback {run}"), &[]);
    assert_eq!(refused.code(), Some(1), "{}", fleet.said());
    assert_eq!(fleet.configs(), vec![after.clone(); 3]);
    assert_eq!(
        fleet.latest()["homes"][0]["outcome"],
        "conflict",
        "{}",
        fleet.said()
    );
    assert_eq!(fleet.starts(), [2, 2, 2]);
    // The code is the older one again, and one home was changed by its owner.
    fleet.expect_version(12);
    let changed = format!("{after}# mine\n");
    fs::write(fleet.homes[1].join("config.yaml"), &changed).expect("ours");
    let status = fleet.run(&format!("rollback {run}"), &[]);
    assert_eq!(
        status.code(),
        Some(1),
        "one of them is a conflict: {}",
        fleet.said()
    );
    assert_eq!(
        fleet.configs(),
        [CONFIG, &changed, CONFIG],
        "{}",
        fleet.said()
    );
    let latest = fleet.latest();
    let notes = latest["notes"].to_string();
    assert!(notes.contains("databases are never rolled back"), "{notes}");
    let outcomes: Vec<&str> = latest["homes"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| row["outcome"].as_str().expect("a word"))
        .collect();
    assert_eq!(
        outcomes
            .iter()
            .filter(|outcome| **outcome == "conflict")
            .count(),
        1,
        "{}",
        fleet.said()
    );
    let starts = fleet.starts();
    assert_eq!((starts[0], starts[2]), (3, 3), "{}", fleet.said());
    assert_eq!(fleet.run("verify", &[]).code(), Some(0), "{}", fleet.said());
    assert_eq!(
        fleet
            .run("rollback 01900000-0000-7000-8000-000000000000", &[])
            .code(),
        Some(3)
    );
    assert_eq!(fleet.run("rollback ../receipts", &[]).code(), Some(3));
}

/// Writes into the pack of a run that it also made and removed files, as one does that a step of a later release
/// makes do so: `left` is what it left of each, `was` what it had found.
struct Recorded<'a> {
    path: &'a str,
    was: Option<(&'a str, u32, u32)>,
    left: Option<&'a str>,
}

fn record(state: &Path, run: &str, home: &str, files: &[Recorded<'_>]) {
    let pack = state.join("snapshots").join(run);
    let index = pack.join("index.json");
    let mut value: Value = serde_json::from_slice(&fs::read(&index).expect("there")).expect("JSON");
    let mut data = fs::read(pack.join("data")).expect("there");
    let like = value["entries"]
        .as_array()
        .expect("entries")
        .iter()
        .find(|entry| entry["home"] == home)
        .expect("the home was written")
        .clone();
    for file in files {
        let (bytes, mode, uid) = file.was.unwrap_or(("", 0, 0));
        let mut entry = like.clone();
        entry["path"] = file.path.into();
        entry["offset"] = data.len().into();
        entry["length"] = bytes.len().into();
        entry["sha256"] = file.was.map(|_| digest(bytes.as_bytes())).into();
        entry["sha256_after"] = file
            .left
            .map_or(String::new(), |left| digest(left.as_bytes()))
            .into();
        entry["mode"] = mode.into();
        entry["uid"] = uid.into();
        entry["gid"] = uid.into();
        data.extend_from_slice(bytes.as_bytes());
        value["entries"]
            .as_array_mut()
            .expect("entries")
            .push(entry);
    }
    fs::write(pack.join("data"), data).expect("ours");
    fs::write(index, serde_json::to_vec(&value).expect("JSON")).expect("ours");
}

#[test]
fn a_file_that_the_run_made_goes_and_one_that_it_removed_comes_back_or_nothing_is_touched() {
    if !isolated() {
        return;
    }
    let fleet = Fleet::without_runtimes(many(1).into_iter());
    assert_eq!(fleet.run("apply", &[]).code(), Some(0), "{}", fleet.said());
    let after = fleet.configs();
    let latest = fleet.latest();
    let run = latest["run_id"].as_str().expect("an id");
    let id = latest["homes"][0]["id"].as_str().expect("an id");
    let home = &fleet.homes[0];
    let (made, gone) = (home.join("made.txt"), home.join("gone.txt"));
    fs::write(&made, "made\n").expect("room");
    record(
        &fleet.state(),
        run,
        id,
        &[
            Recorded {
                path: "made.txt",
                was: None,
                left: Some("made\n"),
            },
            Recorded {
                path: "gone.txt",
                was: Some(("gone\n", 0o640, 0)),
                left: None,
            },
        ],
    );
    let back = |run: &str, to: &str| fleet.run(&format!("rollback {run}"), &[("CRASH_TO", to)]);

    // Whoever changed or made one of them since wins, and nothing of the home is touched.
    for (path, theirs, then) in [(&made, "mine\n", Some("made\n")), (&gone, "mine\n", None)] {
        fs::write(path, theirs).expect("ours");
        assert_eq!(back(run, "12").code(), Some(1), "{}", fleet.said());
        let row = fleet.latest()["homes"][0].clone();
        assert_eq!(row["outcome"], "conflict", "{row}");
        let reason = row["reason"].as_str().expect("text");
        assert!(reason.ends_with(" was changed since"), "{reason}");
        assert_eq!(row["files"], serde_json::json!([]));
        assert_eq!(fleet.configs(), after);
        assert_eq!(fs::read_to_string(path).expect("theirs"), theirs);
        match then {
            Some(text) => fs::write(path, text).expect("ours"),
            None => fs::remove_file(path).expect("ours"),
        }
    }

    assert_eq!(back(run, "12").code(), Some(0), "{}", fleet.said());
    assert_eq!(fleet.configs(), [CONFIG]);
    assert!(!made.exists());
    assert_eq!(fs::read_to_string(&gone).expect("back"), "gone\n");
    assert_eq!(fs::metadata(&gone).expect("back").mode() & 0o7777, 0o640);
    let rollback = fleet.latest();
    let file = |path: &str| {
        let files = rollback["homes"][0]["files"].as_array().expect("files");
        let row = files
            .iter()
            .find(|file| file["path"] == path)
            .expect("a row");
        (
            row["sha256_before"].is_null(),
            row["sha256_after"].is_null(),
        )
    };
    assert_eq!(
        (file("made.txt"), file("gone.txt")),
        ((false, true), (true, false))
    );

    // It is a run like any other, and can itself be put back.
    let other = rollback["run_id"].as_str().expect("an id");
    assert_eq!(back(other, "50").code(), Some(0), "{}", fleet.said());
    assert_eq!(fleet.configs(), after);
    assert_eq!(fs::read_to_string(&made).expect("back"), "made\n");
    assert!(!gone.exists());
    assert_eq!(fleet.run("verify", &[]).code(), Some(0), "{}", fleet.said());
}

#[test]
fn a_rollback_waits_for_the_lock_of_runs_like_any_other() {
    if !isolated() {
        return;
    }
    let fleet = Fleet::without_runtimes(many(1).into_iter());
    assert_eq!(fleet.run("apply", &[]).code(), Some(0), "{}", fleet.said());
    let run = fleet.latest()["run_id"].as_str().expect("an id").to_owned();
    let vars = [
        ("FLEET_UPDATE_FAIL", "run.planned"),
        ("FLEET_UPDATE_FAIL_BY", "stop"),
    ];
    let mut other = fleet.spawn("apply", &vars);
    assert!(wait_until_stopped(&mut other), "{}", fleet.said());
    let vars = [("CRASH_TO", "12"), ("CRASH_PATIENCE", "0s")];
    let busy = fleet.run(&format!("rollback {run}"), &vars);
    go_on(&other);
    assert_eq!(busy.code(), Some(75), "{}", fleet.said());
    assert_eq!(other.wait().expect("ours").code(), Some(0));
}

#[test]
fn a_rollback_that_was_killed_is_finished_by_the_next_one_and_restarts_what_it_owed() {
    if !isolated() {
        return;
    }
    let fleet = Fleet::new();
    assert_eq!(fleet.run("apply", &[]).code(), Some(0), "{}", fleet.said());
    let run = fleet.latest()["run_id"].as_str().expect("an id").to_owned();
    let after = fleet.configs().remove(0);
    fleet.expect_version(12);
    let task = format!("rollback {run}");
    let killed = fleet.run(&task, &[("FLEET_UPDATE_FAIL", "home-file.renamed#2")]);
    assert_eq!(killed.signal(), Some(9), "{}", fleet.said());
    fleet.check_whole(&after, "killed");
    let back = fleet
        .configs()
        .iter()
        .filter(|text| *text == CONFIG)
        .count();
    assert!(back >= 2, "two were put back: {back}");
    assert_eq!(fleet.run(&task, &[]).code(), Some(0), "{}", fleet.said());
    assert_eq!(fleet.configs(), [CONFIG; 3]);
    assert_eq!(fleet.starts(), [3, 3, 3], "{}", fleet.said());
    // Once more there is nothing to do.
    assert_eq!(fleet.run(&task, &[]).code(), Some(0), "{}", fleet.said());
    assert_eq!(fleet.starts(), [3, 3, 3], "{}", fleet.said());
    assert_eq!(fleet.store().open_jobs().expect("a database"), []);
    assert_eq!(fleet.run("verify", &[]).code(), Some(0), "{}", fleet.said());
}

/// The program itself as root, with a user database of its own in which `bob` is uid 4242.
struct Bob<'f> {
    fleet: &'f Fleet,
    home: PathBuf,
}

const BOB: u32 = 4242;

impl<'f> Bob<'f> {
    fn new(fleet: &'f Fleet) -> Self {
        let folder = fleet.folder.path();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("ours");
        let home = folder.join("bob");
        let agent = home.join(".hermes");
        let profiles = agent.join("profiles");
        let work = profiles.join("work");
        fs::create_dir_all(&work).expect("room");
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours");
            chown(path, Some(BOB), Some(BOB)).expect("we are root");
        };
        mode(&home, 0o700);
        for folder in [&agent, &profiles, &work] {
            mode(folder, 0o700);
        }
        for config in [agent.join("config.yaml"), work.join("config.yaml")] {
            fs::write(&config, CONFIG).expect("room");
            mode(&config, 0o640);
        }
        for (file, line) in [
            (
                "passwd",
                format!("bob:x:{BOB}:{BOB}::{}:/bin/sh\n", home.display()),
            ),
            ("group", format!("bob:x:{BOB}:\n")),
        ] {
            let own = folder.join(file);
            let text = fs::read_to_string(Path::new("/etc").join(file)).expect("there");
            fs::write(&own, text + &line).expect("room");
            // Seen by this test and its children alone: the mounts are ours.
            let mounted = Command::new("mount")
                .arg("--bind")
                .args([own, Path::new("/etc").join(file)])
                .status();
            assert!(mounted.expect("mount(8)").success());
        }
        let run = Command::new("mount")
            .args(["-t", "tmpfs", "tmpfs", "/run"])
            .status();
        assert!(run.expect("mount(8)").success());
        Self { fleet, home: agent }
    }

    fn update(&self, words: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_update"))
            .args(words)
            .args(["--user", "bob", "--state-dir"])
            .arg(self.fleet.state())
            .env_clear()
            .env("LANG", "C.UTF-8")
            .stdin(Stdio::null())
            .output()
            .expect("the program")
    }

    /// Text, owner and mode of a file.
    fn file(&self, name: &str) -> Option<(String, u32, u32)> {
        let path = self.home.join(name);
        let meta = fs::metadata(&path).ok()?;
        let text = fs::read_to_string(&path).expect("there");
        Some((text, meta.uid(), meta.mode() & 0o7777))
    }
}

#[test]
fn root_puts_back_the_files_of_another_user_as_that_user_with_owner_and_mode() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root can act as another user");
    }
    if !isolated() {
        return;
    }
    let fleet = Fleet::without_runtimes(std::iter::empty());
    let bob = Bob::new(&fleet);
    let said = |output: &Output| {
        let (out, err) = (&output.stdout, &output.stderr);
        format!(
            "{}{}",
            String::from_utf8_lossy(out),
            String::from_utf8_lossy(err)
        )
    };
    let applied = bob.update(&["apply", "--to", "50"]);
    assert_eq!(applied.status.code(), Some(0), "{}", said(&applied));
    let (after, uid, mode) = bob.file("config.yaml").expect("there");
    assert_eq!((uid, mode), (BOB, 0o640));
    assert_ne!(after, CONFIG);
    let latest = fleet.latest();
    let run = latest["run_id"].as_str().expect("an id");
    let homes = latest["homes"].as_array().expect("rows");
    let root = homes
        .iter()
        .find(|row| {
            row["path"]
                .as_str()
                .is_some_and(|path| Path::new(path) == bob.home)
        })
        .expect("a row");
    let id = root["id"].as_str().expect("an id");
    let before = Some((CONFIG.to_owned(), BOB, 0o640));

    // One home alone, by its path.
    let work = bob.home.join("profiles/work");
    let work = work.to_str().expect("a path");
    let one = bob.update(&["rollback", run, "--to", "12", "--home", work]);
    assert_eq!(one.status.code(), Some(0), "{}", said(&one));
    assert_eq!(bob.file("profiles/work/config.yaml"), before);
    let root_home = bob.file("config.yaml").expect("there");
    assert_eq!(root_home.0, after);
    let none = bob.update(&["rollback", run, "--to", "12", "--home", "/etc"]);
    assert_eq!(none.status.code(), Some(3), "{}", said(&none));
    assert!(
        said(&none).contains("wrote nothing there"),
        "{}",
        said(&none)
    );

    fs::write(bob.home.join("made.txt"), "made\n").expect("room");
    chown(bob.home.join("made.txt"), Some(BOB), Some(BOB)).expect("we are root");
    let gone = |uid| {
        [
            Recorded {
                path: "made.txt",
                was: None,
                left: Some("made\n"),
            },
            Recorded {
                path: "gone.txt",
                was: Some(("gone\n", 0o604, uid)),
                left: None,
            },
        ]
    };
    let whole =
        fs::read(fleet.state().join("snapshots").join(run).join("index.json")).expect("there");

    // A file of root's cannot come back as bob: nothing is touched.
    record(&fleet.state(), run, id, &gone(0));
    let refused = bob.update(&["rollback", run, "--to", "12"]);
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    assert!(
        said(&refused).contains("its owner cannot be kept"),
        "{}",
        said(&refused)
    );
    assert_eq!(bob.file("config.yaml"), Some((after, BOB, 0o640)));
    assert!(bob.file("made.txt").is_some() && bob.file("gone.txt").is_none());

    fs::write(
        fleet.state().join("snapshots").join(run).join("index.json"),
        whole,
    )
    .expect("ours");
    record(&fleet.state(), run, id, &gone(BOB));
    let back = bob.update(&["rollback", run, "--to", "12"]);
    assert_eq!(back.status.code(), Some(0), "{}", said(&back));
    assert!(
        said(&back).contains("databases are never rolled back"),
        "{}",
        said(&back)
    );
    assert_eq!(bob.file("config.yaml"), before);
    assert_eq!(bob.file("profiles/work/config.yaml"), before);
    assert_eq!(
        bob.file("gone.txt"),
        Some(("gone\n".to_owned(), BOB, 0o604))
    );
    assert_eq!(bob.file("made.txt"), None);
}
