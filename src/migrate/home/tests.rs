#![expect(
    clippy::disallowed_methods,
    reason = "a test makes homes in a scratch folder"
)]

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::*;

const OLD: &str = "# mine\n_config_version: 12\nterminal: {vercel_runtime: node24}\n";
const ENV: &str = "A=1\nTERMINAL_VERCEL_RUNTIME=node24\n";

struct Scratch {
    dir: tempfile::TempDir,
    world: World,
}

impl Scratch {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self {
            dir,
            world: World::read().unwrap(),
        }
    }

    fn home(&self, name: &str, files: &[(&str, &str)]) -> HomeTarget {
        let path = self.dir.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        for (file, text) in files {
            let file = path.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let within = Some(self.dir.path().to_owned());
        HomeTarget {
            id: name.to_owned(),
            path,
            within,
            expected: Some(50),
            native: None,
        }
    }

    fn evaluate(&self, homes: &[HomeTarget]) -> Vec<Evaluation> {
        let task = Evaluate {
            app: app(),
            site_steps: Vec::new(),
            homes: homes.to_vec(),
            keep: true,
        };
        told(|tell| task.perform(&self.world, tell))
    }

    fn commit(&self, homes: &[Planned]) -> Vec<Committed> {
        let task = Commit {
            app: app(),
            site_steps: Vec::new(),
            homes: homes.to_vec(),
            subject: Subject::default(),
        };
        told(|tell| task.perform(&self.world, tell))
    }

    fn planned(&self, target: &HomeTarget) -> Planned {
        let evaluation = self.evaluate(std::slice::from_ref(target)).remove(0);
        assert_eq!(
            evaluation.outcome,
            HomeOutcome::Migrated,
            "{}",
            evaluation.reason
        );
        Planned {
            target: target.clone(),
            files: evaluation.files,
            dirs: evaluation.dirs,
            kept: evaluation.kept,
        }
    }
}

fn told<E>(work: impl FnOnce(&mut dyn FnMut(E) -> Result<()>) -> Result<()>) -> Vec<E> {
    let mut events = Vec::new();
    work(&mut |event| {
        events.push(event);
        Ok(())
    })
    .unwrap();
    events
}

fn app() -> App {
    App::builtin(crate::app::DEFAULT).unwrap()
}

fn text(target: &HomeTarget, file: &str) -> String {
    std::fs::read_to_string(target.path.join(file)).unwrap()
}

#[test]
fn a_planned_home_is_written_and_is_current_afterwards() {
    let scratch = Scratch::new();
    let home = scratch.home("a", &[("config.yaml", OLD), (".env", ENV)]);
    std::fs::set_permissions(
        home.path.join("config.yaml"),
        PermissionsExt::from_mode(0o640),
    )
    .unwrap();
    let planned = scratch.planned(&home);
    assert_eq!(planned.dirs, ["logs/curator"]);
    let done = scratch.commit(&[planned]).remove(0);
    assert_eq!(
        (done.outcome, done.reason.as_str()),
        (HomeOutcome::Migrated, "")
    );
    assert!(home.path.join("logs/curator").is_dir());
    assert_eq!(text(&home, ".env"), "A=1\n");
    assert!(text(&home, "config.yaml").starts_with("# mine\n_config_version: 50\nterminal: {}\n"));
    let mode = std::fs::metadata(home.path.join("config.yaml"))
        .unwrap()
        .mode();
    assert_eq!(mode & 0o777, 0o640);
    assert_eq!(scratch.evaluate(&[home])[0].outcome, HomeOutcome::Current);
}

#[test]
fn a_current_home_is_not_written() {
    let scratch = Scratch::new();
    let home = scratch.home("a", &[("config.yaml", "_config_version: 50\n")]);
    let state = |path: &Path| {
        let meta = std::fs::metadata(path).unwrap();
        let times = (
            meta.mtime(),
            meta.mtime_nsec(),
            meta.ctime(),
            meta.ctime_nsec(),
        );
        (meta.ino(), times)
    };
    let all = || (state(&home.path), state(&home.path.join("config.yaml")));
    let before = all();
    assert_eq!(
        scratch.evaluate(std::slice::from_ref(&home))[0].outcome,
        HomeOutcome::Current
    );
    assert_eq!(all(), before);
    // Not even if somebody asks for it.
    let done = scratch.commit(&[Planned {
        target: home.clone(),
        files: Vec::new(),
        dirs: Vec::new(),
        kept: None,
    }]);
    assert_eq!(done[0].outcome, HomeOutcome::Conflict);
    assert_eq!(all(), before);
}

#[test]
fn a_home_that_changed_since_the_plan_is_a_conflict() {
    let scratch = Scratch::new();
    let home = scratch.home("a", &[("config.yaml", OLD), (".env", ENV)]);
    let planned = scratch.planned(&home);
    for (file, now) in [
        ("config.yaml", OLD.replace("mine", "ours")),
        (".env", format!("{ENV}B=2\n")),
        ("config.yaml", "_config_version: 50\n".to_owned()),
        ("config.yaml", "a: [\n".to_owned()),
    ] {
        let earlier = text(&home, file);
        std::fs::write(home.path.join(file), &now).unwrap();
        let done = scratch.commit(std::slice::from_ref(&planned)).remove(0);
        assert_eq!(done.outcome, HomeOutcome::Conflict, "{}", done.reason);
        assert!(done.files.is_empty());
        assert_eq!(text(&home, file), now);
        std::fs::write(home.path.join(file), earlier).unwrap();
    }
}

#[test]
fn what_was_kept_counts_only_while_all_that_it_was_made_of_is_as_it_was() {
    let scratch = Scratch::new();
    let files = [
        ("config.yaml", OLD),
        (".env", ENV),
        ("plugins/a/plugin.yaml", "name: a\n"),
    ];
    let home = scratch.home("a", &files);
    let planned = scratch.planned(&home);
    let opened = || HomeFolder::open(&home).unwrap().unwrap();
    let kept = planned.kept.clone().expect("it is small");
    assert!(kept.is_made_of(&opened(), &planned.files));

    // Other bytes than those that were planned are not written, whoever hands them over.
    let mut forged = planned.clone();
    let bytes = &mut forged.kept.as_mut().unwrap().after;
    bytes.insert("config.yaml".into(), b"mine: now\n".to_vec());
    assert!(
        !forged
            .kept
            .as_ref()
            .unwrap()
            .is_made_of(&opened(), &planned.files)
    );
    assert_eq!(scratch.commit(&[forged])[0].outcome, HomeOutcome::Migrated);
    assert!(text(&home, "config.yaml").starts_with("# mine\n_config_version: 50\n"));

    for (name, text) in files {
        std::fs::write(home.path.join(name), text).unwrap();
    }
    std::fs::remove_dir(home.path.join("logs/curator")).unwrap();
    assert!(kept.is_made_of(&opened(), &planned.files));
    // A folder that was looked at, and one of its names, and what a file says that is not written.
    let changes: [&dyn Fn(); 3] = [
        &|| std::fs::create_dir(home.path.join("logs/curator")).unwrap(),
        &|| std::fs::create_dir(home.path.join("plugins/b")).unwrap(),
        &|| std::fs::write(home.path.join("plugins/a/plugin.yaml"), "name: b\n").unwrap(),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        change();
        assert!(!kept.is_made_of(&opened(), &planned.files), "{number}");
        std::fs::write(home.path.join("plugins/a/plugin.yaml"), "name: a\n").unwrap();
        let _ = std::fs::remove_dir(home.path.join("logs/curator"));
        let _ = std::fs::remove_dir(home.path.join("plugins/b"));
        assert!(kept.is_made_of(&opened(), &planned.files), "{number}");
    }
}

#[test]
fn no_more_is_kept_than_fits_into_a_message() {
    let scratch = Scratch::new();
    let large = format!("{OLD}# {}\n", "x".repeat(200 << 10));
    let names: Vec<String> = (0..60).map(|number| format!("h{number}")).collect();
    let homes: Vec<HomeTarget> = names
        .iter()
        .map(|name| scratch.home(name, &[("config.yaml", &large)]))
        .collect();
    let evaluations = scratch.evaluate(&homes);
    let kept = evaluations.iter().filter(|home| home.kept.is_some());
    assert_eq!(kept.count(), (8 << 20) / large.len());
    let planned = homes
        .iter()
        .zip(evaluations)
        .map(|(home, planned)| Planned {
            target: home.clone(),
            files: planned.files,
            dirs: planned.dirs,
            kept: planned.kept,
        });
    let done = scratch.commit(&planned.collect::<Vec<_>>());
    assert!(
        done.iter()
            .all(|home| home.outcome == HomeOutcome::Migrated)
    );
    assert!(text(&homes[59], "config.yaml").contains("_config_version: 50\n"));
}

#[test]
fn a_failure_before_the_configuration_puts_the_others_back() {
    let scratch = Scratch::new();
    let home = scratch.home("a", &[("config.yaml", OLD), (".env", ENV)]);
    let view = open(&home).unwrap();
    let catalog = Catalog::load(&app(), &[]).unwrap();
    let (_, after) = evaluate(&app(), &catalog, &view, Some(50));
    // The configuration changes between the check and the write.
    std::fs::write(home.path.join("config.yaml"), OLD.replace("mine", "ours")).unwrap();
    let originals = view.originals.into_inner();
    let writes = after
        .iter()
        .map(|(path, bytes)| Write::Replace(&originals[path], bytes))
        .collect();
    let failed = write_all(&app(), &view.folder, writes).unwrap_err();
    assert_eq!(failed.outcome, HomeOutcome::Conflict, "{}", failed.reason);
    assert_eq!(text(&home, ".env"), ENV);
    let left: Vec<_> = std::fs::read_dir(&home.path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn a_link_is_kept_and_one_that_leads_out_is_refused() {
    let scratch = Scratch::new();
    let home = scratch.home("a", &[]);
    std::fs::write(scratch.dir.path().join("dotfile.yaml"), OLD).unwrap();
    symlink("../dotfile.yaml", home.path.join("config.yaml")).unwrap();
    let planned = scratch.planned(&home);
    let done = scratch.commit(&[planned]).remove(0);
    assert_eq!(done.outcome, HomeOutcome::Migrated, "{}", done.reason);
    assert!(
        std::fs::symlink_metadata(home.path.join("config.yaml"))
            .unwrap()
            .is_symlink()
    );
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("x.yaml"), OLD).unwrap();
    let other = scratch.home("b", &[]);
    symlink(
        outside.path().join("x.yaml"),
        other.path.join("config.yaml"),
    )
    .unwrap();
    let evaluation = scratch.evaluate(std::slice::from_ref(&other)).remove(0);
    assert_eq!(evaluation.outcome, HomeOutcome::Invalid);
    assert!(
        evaluation.reason.contains("out of"),
        "{}",
        evaluation.reason
    );
    let linked = HomeTarget {
        path: scratch.dir.path().join("c"),
        ..other
    };
    symlink(outside.path(), &linked.path).unwrap();
    assert_eq!(scratch.evaluate(&[linked])[0].outcome, HomeOutcome::Invalid);
}

#[test]
fn what_is_no_regular_file_is_invalid() {
    let scratch = Scratch::new();
    let folder = scratch.home("a", &[]);
    std::fs::create_dir(folder.path.join("config.yaml")).unwrap();
    let pipe = scratch.home("b", &[]);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        pipe.path.join("config.yaml"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let large = scratch.home("c", &[]);
    let file = std::fs::File::create(large.path.join("config.yaml")).unwrap();
    file.set_len(MAX_BYTES + 1).unwrap();
    let bytes = scratch.home("d", &[]);
    std::fs::write(bytes.path.join("config.yaml"), b"a: \xff\n").unwrap();
    for evaluation in scratch.evaluate(&[folder, pipe, large, bytes]) {
        assert_eq!(
            evaluation.outcome,
            HomeOutcome::Invalid,
            "{}: {}",
            evaluation.id,
            evaluation.reason
        );
    }
}

#[test]
fn a_hard_link_is_left_alone_with_its_pending_change() {
    let scratch = Scratch::new();
    let home = scratch.home("a", &[("config.yaml", OLD)]);
    std::fs::hard_link(
        home.path.join("config.yaml"),
        scratch.dir.path().join("other"),
    )
    .unwrap();
    let evaluation = scratch.evaluate(&[home]).remove(0);
    assert_eq!(evaluation.outcome, HomeOutcome::ReadOnly);
    assert!(!evaluation.changes.is_empty() && !evaluation.files.is_empty());
}

#[test]
fn a_snapshot_is_fetched_and_put_back() {
    let scratch = Scratch::new();
    let home = scratch.home("a", &[("config.yaml", OLD), (".env", ENV)]);
    let files = vec![
        "config.yaml".to_owned(),
        ".env".to_owned(),
        "none".to_owned(),
    ];
    let fetch = Fetch {
        homes: vec![(home.clone(), files)],
        subject: Subject::default(),
    };
    let fetched = told(|tell| fetch.perform(&scratch.world, tell)).remove(0);
    // As it would come from a helper.
    let fetched: Fetched = serde_json::from_str(&serde_json::to_string(&fetched).unwrap()).unwrap();
    assert_eq!(fetched.error, None);
    assert_eq!(fetched.files.len(), 2);
    assert_eq!(fetched.files[0].bytes, OLD.as_bytes());
    assert_eq!(
        fetched.files[0].sha256,
        crate::digest::sha256(OLD.as_bytes())
    );
    let planned = scratch.planned(&home);
    let done = scratch.commit(&[planned]).remove(0);
    let back = |file: &FetchedFile| RestoreFile {
        path: file.path.clone(),
        was: Was::Present {
            bytes: file.bytes.clone(),
            access: Ownership {
                mode: file.mode,
                uid: file.uid,
                gid: file.gid,
            },
        },
        sha256_now: done
            .files
            .iter()
            .find(|own| own.path == file.path)
            .map(|own| own.sha256_after.clone()),
    };
    let homes = vec![(
        home.clone(),
        fetched.files.iter().map(back).collect::<Vec<_>>(),
    )];
    let restore = Restore {
        app: app(),
        homes,
        subject: Subject::default(),
    };
    let migrated = text(&home, "config.yaml");
    std::fs::write(home.path.join("config.yaml"), "theirs: 1\n").unwrap();
    let failed = told(|tell| restore.clone().perform(&scratch.world, tell))
        .remove(0)
        .failure;
    assert_eq!(failed.unwrap().outcome, HomeOutcome::Conflict);
    assert_eq!(text(&home, ".env"), "A=1\n", "all or nothing");
    std::fs::write(home.path.join("config.yaml"), migrated).unwrap();
    for _ in 0..2 {
        let failed = told(|tell| restore.clone().perform(&scratch.world, tell))
            .remove(0)
            .failure;
        assert_eq!(failed, None);
        assert_eq!(
            (
                text(&home, "config.yaml").as_str(),
                text(&home, ".env").as_str()
            ),
            (OLD, ENV)
        );
    }
}

#[test]
fn plugins_are_found_through_links_inside_the_tree() {
    let scratch = Scratch::new();
    let home = scratch.home("a", &[("config.yaml", "_config_version: 20\n")]);
    std::fs::create_dir(home.path.join("plugins")).unwrap();
    std::fs::create_dir(scratch.dir.path().join("dev")).unwrap();
    std::fs::write(scratch.dir.path().join("dev/plugin.yaml"), "name: bee\n").unwrap();
    symlink(scratch.dir.path().join("dev"), home.path.join("plugins/b")).unwrap();
    std::fs::write(home.path.join("plugins/file"), "").unwrap();
    let change = scratch
        .evaluate(&[home])
        .remove(0)
        .changes
        .into_iter()
        .find(|change| change.path == "plugins.enabled");
    assert_eq!(change.unwrap().after, Some(serde_json::json!(["bee"])));
}

#[test]
fn a_made_file_goes_and_a_removed_one_comes_back_and_a_failure_undoes_both() {
    let scratch = Scratch::new();
    let home = scratch.home("a", &[("config.yaml", OLD), ("made", "made")]);
    let access = Ownership {
        mode: 0o640,
        uid: scratch.world.account.uid,
        gid: scratch.world.account.gid,
    };
    let present = |bytes: &str| Was::Present {
        bytes: bytes.into(),
        access,
    };
    let file = |path: &str, was: Was, now: Option<&str>| RestoreFile {
        path: path.into(),
        was,
        sha256_now: now.map(|now| crate::digest::sha256(now.as_bytes())),
    };
    let restore = |files: &[RestoreFile]| {
        let homes = vec![(home.clone(), files.to_vec())];
        let restore = Restore {
            app: app(),
            homes,
            subject: Subject::default(),
        };
        let text = serde_json::to_string(&restore).unwrap();
        // As it would reach a helper.
        let restore: Restore = serde_json::from_str(&text).unwrap();
        told(|tell| restore.perform(&scratch.world, tell))
            .remove(0)
            .failure
    };
    let made = file("made", Was::Absent, Some("made"));
    let gone = file("gone", present("gone"), None);
    let config = file("config.yaml", present("new: 1\n"), Some(OLD));

    // The last of them cannot be written, after the others were.
    let nowhere = file("none/y", present("y"), None);
    let failed = restore(&[made.clone(), gone.clone(), nowhere, config.clone()]).unwrap();
    assert_eq!(failed.outcome, HomeOutcome::Failed, "{failed:?}");
    assert_eq!(text(&home, "made"), "made");
    assert_eq!(text(&home, "config.yaml"), OLD);
    assert!(!home.path.join("gone").exists());

    for _ in 0..2 {
        assert_eq!(restore(&[made.clone(), gone.clone(), config.clone()]), None);
        assert!(!home.path.join("made").exists());
        assert_eq!(text(&home, "gone"), "gone");
        let meta = std::fs::metadata(home.path.join("gone")).unwrap();
        assert_eq!(meta.permissions().mode() & 0o7777, 0o640);
        assert_eq!(text(&home, "config.yaml"), "new: 1\n");
    }
    // What is a link by now is nobody's file of ours.
    symlink("gone", home.path.join("made")).unwrap();
    let linked = restore(&[file("made", Was::Absent, Some("gone"))]).unwrap();
    assert!(linked.reason.contains("it is a link"), "{linked:?}");
    assert!(home.path.join("made").exists() && home.path.join("gone").exists());
}

#[test]
fn a_preview_is_the_diff_of_the_planned_home_without_its_secrets() {
    let scratch = Scratch::new();
    let config = OLD.replace("# mine", "# not wordy42 but");
    let env = "A=wordy42\nTERMINAL_VERCEL_RUNTIME=node24\n";
    let home = scratch.home("a", &[("config.yaml", &config), (".env", env)]);
    let Planned { target, files, .. } = scratch.planned(&home);
    let preview = |homes: Vec<(HomeTarget, Vec<FileChange>)>| {
        let task = Preview {
            app: app(),
            site_steps: Vec::new(),
            homes,
        };
        told::<Previewed>(|tell| task.perform(&scratch.world, tell)).remove(0)
    };
    let shown = preview(vec![(target.clone(), files.clone())]);
    let path = home.path.display();
    let expected = format!(
        "--- {path}/.env\n+++ {path}/.env\n@@ -1,2 +1 @@\n A=[masked]\n-TERMINAL_VERCEL_RUNTIME=[masked]\n\
         --- {path}/config.yaml\n+++ {path}/config.yaml\n@@ -1,3 +1,5 @@\n # not [masked] but\n\
         -_config_version: 12\n-terminal: {{vercel_runtime: [masked]}}\n\
         +_config_version: 50\n+terminal: {{}}\n+plugins:\n+  enabled: []\n"
    );
    assert_eq!((shown.diff, shown.error), (expected, None));
    assert_eq!(text(&home, "config.yaml"), config);

    std::fs::write(home.path.join("config.yaml"), OLD).unwrap();
    let shown = preview(vec![(target, files)]);
    assert_eq!(shown.diff, "");
    assert!(shown.error.unwrap().contains("changed since"));
}
