//! Scopes: nobody reads or writes another's.

use std::path::Path;
use std::time::Duration;

use fleet_update::error::Kind;
use fleet_update::state::scope::{self, Scope};
use fleet_update::state::{Lock, State};

use crate::place::{Place, profile};

#[test]
fn access_to_any_other_scope_is_refused_and_what_is_shared_is_read_only() {
    let own = |t: &str, c: &str, p: &str| Scope::Profile(t.into(), c.into(), p.into());
    let mine = own("acme", "main", "work");
    for other in [
        own("bolt", "main", "work"),
        own("acme", "other", "work"),
        own("acme", "main", "play"),
        Scope::Cell("acme".into(), "main".into()),
        Scope::Tenant("acme".into()),
        Scope::Session("acme".into(), "main".into(), "work".into(), "s1".into()),
    ] {
        assert!(
            mine.may_read(&other).is_err() && mine.may_write(&other).is_err(),
            "{}",
            other.name()
        );
        assert!(
            other.may_read(&mine).is_err() && other.may_write(&mine).is_err(),
            "{}",
            other.name()
        );
        assert_eq!(Scope::parse(&other.name()).expect("canonical"), other);
    }
    assert!(mine.may_read(&mine).is_ok() && mine.may_write(&mine).is_ok());
    assert!(mine.may_read(&Scope::Shared).is_ok());
    assert!(
        mine.may_write(&Scope::Shared).is_err() && Scope::Shared.may_write(&Scope::Shared).is_err()
    );
    assert!(Scope::Shared.may_read(&mine).is_err());
}

#[test]
fn a_key_or_scope_that_is_not_canonical_is_refused() {
    for key in [
        "../x", "a/b", " x", "x ", "x?y", "", ".", "..", "x#y", "ä", "x\0",
    ] {
        assert!(profile().thing("snapshot", key).is_err(), "{key:?}");
        assert!(scope::identifier("key", key).is_err(), "{key:?}");
    }
    assert_eq!(
        profile().thing("snapshot", "run-1").expect("canonical"),
        "tenant/acme/cell/main/profile/work/snapshot/run-1"
    );
    for name in [
        "",
        "/",
        "tenant",
        "tenant/",
        "tenant/Acme",
        "tenant/acme/",
        "tenant/acme/profile/p",
        "tenant/a/cell/..",
        "/tenant/a",
        "tenant//cell/c",
        "tenant/a/cell/c/profile/p/x/y",
    ] {
        assert!(Scope::parse(name).is_err(), "{name:?}");
    }
}

#[test]
fn a_rollback_of_one_profile_cannot_read_the_snapshot_of_another() {
    use fleet_update::state::snapshots::Copied;
    let place = Place::new();
    let state = State::at(&place.dir());
    let lock = Lock::take(
        &place.world,
        &place.folder.path().join("run/lock"),
        "r",
        Duration::ZERO,
    )
    .expect("free");
    state.prepare(&place.world, &lock).expect("new");
    let mut pack = state.start_pack(&place.world, "r", &lock).expect("new");
    let scope = profile();
    let copied = Copied {
        home: "h",
        scope: &scope,
        folder: Path::new("/h"),
        version: Some("12"),
        path: "config.yaml",
        bytes: Some(b"a: 1\n"),
        sha256_after: "",
        mode: 0o600,
        owner: (0, 0),
    };
    pack.add(copied).expect("room");
    let entries = pack.finish().expect("durable");
    assert_eq!(entries[0].scope, "tenant/acme/cell/main/profile/work");
    assert!(state.pack_bytes("r", &entries[0], &scope).is_ok());
    let other = Scope::Profile("acme".into(), "main".into(), "play".into());
    assert_eq!(
        state
            .pack_bytes("r", &entries[0], &other)
            .expect_err("another's")
            .kind(),
        Kind::Denied
    );
}
