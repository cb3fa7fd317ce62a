#![expect(clippy::disallowed_methods, reason = "builds homes to look at")]

use std::time::{Duration, UNIX_EPOCH};

use super::updater::active_marker;
use super::*;

fn app() -> App {
    App::builtin(crate::app::DEFAULT).expect("the descriptor is valid")
}

fn uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn candidate(path: &Path, reach: Reach) -> Candidate {
    Candidate {
        path: path.to_path_buf(),
        found_by: "passwd".into(),
        reach,
    }
}

fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
    std::fs::write(path, text).expect("a file");
}

/// A root home with profiles of every kind.
fn fleet(root: &Path) {
    put(&root.join("config.yaml"), "a: 1\n");
    put(&root.join("profiles/good1/config.yaml"), "a: 1\n");
    put(&root.join("profiles/good2/config.yaml"), "a: 1\n");
    put(&root.join("profiles/bare/.env"), "");
    put(&root.join("profiles/stray/notes.txt"), "");
    put(&root.join("profiles/0/logs/x"), "");
    put(&root.join("profiles/UPPER/config.yaml"), "a: 1\n");
    put(&root.join("profiles/default/config.yaml"), "a: 1\n");
    put(&root.join("profiles/file"), "");
    std::fs::create_dir_all(root.join("profiles/dangling")).expect("a folder");
    std::os::unix::fs::symlink("/nowhere", root.join("profiles/dangling/config.yaml"))
        .expect("a link");
    std::os::unix::fs::symlink("/nowhere", root.join("profiles/lost")).expect("a link");
}

fn rows(found: &HomesFound) -> Vec<(String, HomeStatus)> {
    found
        .homes
        .iter()
        .map(|home| (home.profile.clone(), home.status.clone()))
        .collect()
}

#[test]
fn every_folder_among_the_profiles_is_a_row() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join(".hermes");
    fleet(&root);
    let found = enumerate(&app(), uid(), &[candidate(&root, Reach::Fleet)]);
    let expected = [
        ("default", HomeStatus::Configured),
        ("0", HomeStatus::NotAProfile),
        ("UPPER", HomeStatus::NotAProfile),
        ("bare", HomeStatus::Unconfigured),
        ("dangling", HomeStatus::Unconfigured),
        ("default", HomeStatus::NotAProfile),
        ("good1", HomeStatus::Configured),
        ("good2", HomeStatus::Configured),
        ("stray", HomeStatus::NotAProfile),
    ];
    let expected: Vec<_> = expected
        .map(|(name, status)| (name.to_owned(), status))
        .to_vec();
    assert_eq!(rows(&found), expected);
    assert!(
        found
            .notes
            .iter()
            .any(|note| note.ends_with("profiles/lost leads nowhere"))
    );
    assert!(found.trouble.is_empty(), "{:?}", found.trouble);
}

#[test]
fn a_name_that_is_not_text_is_a_row_that_can_be_written() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join(".hermes");
    fleet(&root);
    let odd = root
        .join("profiles")
        .join(std::ffi::OsStr::from_bytes(b"a\xff"));
    put(&odd.join("config.yaml"), "a: 1\n");
    let found = enumerate(&app(), uid(), &[candidate(&root, Reach::Fleet)]);
    let named = |home: &&Home| home.profile == "a\u{fffd}";
    let home = found.homes.iter().find(named).expect("it is a row");
    assert_eq!(home.status, HomeStatus::NotAProfile);
    serde_json::to_string(home).expect("it can be written");
}

#[test]
fn it_does_not_matter_which_home_of_a_fleet_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join(".hermes");
    fleet(&root);
    std::os::unix::fs::symlink(&root, folder.path().join("link")).expect("a link");
    let ids = |paths: &[PathBuf]| {
        let candidates: Vec<_> = paths
            .iter()
            .map(|path| candidate(path, Reach::Claimed))
            .collect();
        let mut ids: Vec<_> = enumerate(&app(), uid(), &candidates)
            .homes
            .into_iter()
            .map(|home| home.id)
            .collect();
        ids.sort_unstable();
        ids
    };
    let from_root = ids(std::slice::from_ref(&root));
    assert_eq!(from_root.len(), 9);
    for paths in [
        vec![root.join("profiles/good1")],
        vec![root.join("profiles/bare"), root.clone()],
        vec![folder.path().join("link"), root.join("profiles/good2")],
        vec![folder.path().join("link/profiles/good1")],
    ] {
        assert_eq!(ids(&paths), from_root, "{paths:?}");
    }
}

#[test]
fn a_profile_that_is_named_exactly_is_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("data");
    fleet(&root);
    let exact = candidate(&root.join("profiles/good1"), Reach::Exact);
    let found = enumerate(&app(), uid(), &[exact]);
    assert_eq!(rows(&found), [("good1".to_owned(), HomeStatus::Configured)]);
    assert_eq!(found.homes[0].root, root);
    let missing = candidate(&root.join("profiles/none"), Reach::Exact);
    assert_eq!(enumerate(&app(), uid(), &[missing]).trouble.len(), 1);
}

#[test]
fn a_place_without_a_home_is_normal_and_stays_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join(".hermes");
    let found = enumerate(&app(), uid(), &[candidate(&root, Reach::Fleet)]);
    assert_eq!(found, HomesFound::default());
    assert!(!root.exists());
    assert_eq!(found.sticky(&root), Sticky::Root);
}

#[test]
fn a_folder_of_somebody_else_is_a_row_among_profiles_and_none_where_it_is_claimed() {
    let found = enumerate(
        &app(),
        uid() + 1,
        &[candidate(Path::new("/etc"), Reach::Claimed)],
    );
    assert!(
        found.homes.is_empty() && found.notes.len() == 1,
        "{found:?}"
    );
    let folder = tempfile::tempdir().expect("a folder");
    fleet(&folder.path().join("r"));
    let found = enumerate(
        &app(),
        uid() + 1,
        &[candidate(&folder.path().join("r"), Reach::Fleet)],
    );
    assert_eq!(found.homes.len(), 9);
    assert!(
        found
            .homes
            .iter()
            .all(|home| matches!(home.status, HomeStatus::Foreign(_)))
    );
}

#[test]
fn a_system_folder_is_a_home_only_if_it_looks_like_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("data");
    put(&root.join("photos/x"), "");
    let likely = [candidate(&root, Reach::Likely)];
    assert_eq!(enumerate(&app(), uid(), &likely), HomesFound::default());
    put(&root.join("profiles/work/config.yaml"), "a: 1\n");
    assert_eq!(enumerate(&app(), uid(), &likely).homes.len(), 2);
}

#[test]
fn the_sticky_profile_is_the_one_that_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join(".hermes");
    fleet(&root);
    for (text, expected) in [
        ("work\n", Sticky::Named("work".into())),
        ("default", Sticky::Root),
        (" \n", Sticky::Root),
        ("\u{feff}ops", Sticky::Named("ops".into())),
    ] {
        put(&root.join("active_profile"), text);
        let found = enumerate(&app(), uid(), &[candidate(&root, Reach::Fleet)]);
        assert_eq!(found.sticky(&root), expected, "{text:?}");
        assert_eq!(
            found
                .at(&root.join("profiles/bare"))
                .map(|home| home.profile.as_str()),
            Some("bare")
        );
    }
    std::fs::remove_file(root.join("active_profile")).expect("removed");
    std::fs::create_dir(root.join("active_profile")).expect("a folder");
    let found = enumerate(&app(), uid(), &[candidate(&root, Reach::Fleet)]);
    assert!(matches!(found.sticky(&root), Sticky::Unknown(_)));
}

#[test]
fn a_marker_counts_while_its_writer_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let marker = folder.path().join("marker");
    assert_eq!(active_marker(&marker), None);
    put(&marker, "");
    assert!(active_marker(&marker).is_some_and(|seen| seen.ends_with("exists")));
    put(&marker, &format!("{}\n1\nct:1.000\n", std::process::id()));
    assert!(active_marker(&marker).is_some_and(|seen| seen.ends_with("which runs")));
    put(&marker, &format!("{}\n", 1 << 23));
    assert_eq!(active_marker(&marker), None);
    // Written long before this process started: the pid was used again.
    put(&marker, &format!("{}\n", std::process::id()));
    let file = std::fs::File::options()
        .write(true)
        .open(&marker)
        .expect("open");
    file.set_modified(UNIX_EPOCH + Duration::from_secs(1000))
        .expect("set");
    assert_eq!(active_marker(&marker), None);
}
