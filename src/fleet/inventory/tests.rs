#![expect(clippy::disallowed_methods, reason = "builds homes to look at")]

use super::*;

#[test]
fn a_star_is_one_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    for path in ["a/.hermes", "b/.hermes", "c/d/.hermes"] {
        std::fs::create_dir_all(folder.path().join(path)).expect("folders");
    }
    let pattern = format!("{}/*/.hermes", folder.path().display());
    let expected = ["a/.hermes", "b/.hermes"].map(|path| folder.path().join(path));
    assert_eq!(expand(&pattern), expected);
    assert!(expand("/no/such/*/place").is_empty());
}

#[test]
fn a_units_user_is_a_name_a_number_or_root() {
    let ann = Account {
        uid: 1001,
        gid: 1001,
        name: "ann".into(),
        home: "/home/ann".into(),
    };
    assert_eq!(uid_of_unit(std::slice::from_ref(&ann), "ann"), Some(1001));
    assert_eq!(uid_of_unit(std::slice::from_ref(&ann), "1002"), Some(1002));
    assert_eq!(uid_of_unit(std::slice::from_ref(&ann), ""), Some(0));
    assert_eq!(uid_of_unit(&[ann], "nobody-here"), None);
}

/// The homes that are found must not depend on what the caller inherited (E14, E16 of the
/// field reports): only the user database, units and processes count.
#[test]
fn homes_do_not_depend_on_the_callers_environment() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().join("ann");
    for name in [
        "config.yaml",
        "profiles/work/config.yaml",
        "profiles/ops/.env",
    ] {
        let path = home.join(".hermes").join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        std::fs::write(path, "a: 1\n").expect("a file");
    }
    let app = App::builtin(crate::app::DEFAULT).expect("valid");
    let mut world = World::read().expect("readable");
    world.account.home.clone_from(&home);
    let scope = Scope {
        users: vec![world.account.clone()],
        runtimes: false,
        ..Scope::default()
    };
    let root = home.join(".hermes").into_os_string();
    let work = home.join(".hermes/profiles/work").into_os_string();
    let values = |name: &str| match name {
        "HERMES_HOME" => vec![
            None,
            Some(root.clone()),
            Some(work.clone()),
            Some("/nowhere".into()),
        ],
        "HOME" => vec![None, Some(work.clone()), Some("/".into())],
        _ => vec![None, Some("0123456789abcdef0123456789abcdef".into())],
    };
    let mut seen = BTreeSet::new();
    for hermes_home in values("HERMES_HOME") {
        for own_home in values("HOME") {
            for invocation in values("INVOCATION_ID") {
                for sticky in ["", "work", "ops"] {
                    std::fs::write(home.join(".hermes/active_profile"), sticky).expect("a file");
                    let mut world = world.clone();
                    world.env = [
                        ("HERMES_HOME", &hermes_home),
                        ("HOME", &own_home),
                        ("INVOCATION_ID", &invocation),
                    ]
                    .into_iter()
                    .filter_map(|(name, value)| Some((name.into(), value.clone()?)))
                    .collect();
                    let found = take(&world, &app, &scope, || ()).expect("an inventory");
                    seen.insert(
                        serde_json::to_string(&(found.homes, found.runtimes)).expect("JSON"),
                    );
                }
            }
        }
    }
    assert_eq!(seen.len(), 1);
    assert_eq!(
        seen.first()
            .map(|text| text.matches("\"configured\"").count()),
        Some(2)
    );
}

#[test]
fn a_home_that_is_named_must_exist() {
    let app = App::builtin(crate::app::DEFAULT).expect("valid");
    let world = World::read().expect("readable");
    let scope = Scope {
        homes: vec!["/no/such/home".into()],
        runtimes: false,
        ..Scope::default()
    };
    let error = take(&world, &app, &scope, || ()).expect_err("refused");
    assert_eq!(error.kind(), Kind::Input);
}
