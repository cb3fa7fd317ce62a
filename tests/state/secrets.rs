//! Secret references, and those who give the values.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use fleet_update::error::Kind;
use fleet_update::state::secret::{self, Broker, Purpose, Reference, Secret};

use crate::place::Place;

const REFERENCE: &str = "secret://acme/main/channel/bot-token/v3";

#[test]
fn a_secret_reference_is_canonical_or_refused() {
    assert_eq!(
        Reference::parse(REFERENCE).expect("canonical").to_string(),
        REFERENCE
    );
    for bad in [
        "",
        "secret://",
        "http://acme/main/channel/bot/v3",
        "SECRET://acme/main/channel/bot/v3",
        "secret://acme/main/channel/bot/v3?x=1",
        "secret://acme/main/channel/bot/v3#x",
        "secret://acme/main/channel/b\\t/v3",
        "secret://acme//channel/bot/v3",
        "secret://acme/./channel/bot/v3",
        "secret://acme/../channel/bot/v3",
        "secret://acme/main/channel/bot",
        "secret://acme/main/channel/bot/v3/",
        "secret://acme/main/password/bot/v3",
        "secret://Acme/main/channel/bot/v3",
        " secret://acme/main/channel/bot/v3",
        "hunter2",
    ] {
        let error = Reference::parse(bad).expect_err(bad).to_string();
        assert!(
            bad.is_empty() || !error.contains(bad),
            "a value is not repeated: {error}"
        );
    }
}

#[test]
fn brokers_give_a_value_or_say_nothing_but_that_they_cannot() {
    let place = Place::new();
    let folder = place.folder.path().join("secrets");
    fs::create_dir(&folder).expect("new");
    let reference = Reference::parse(REFERENCE).expect("canonical");
    let file = folder.join(reference.file_name());
    let brokers = [Broker::Files(folder.clone())];
    let asked = ("acme", "main", Purpose::Channel);
    let ask = |brokers: &[Broker], asked| secret::resolve(&place.world, brokers, &reference, asked);
    let unavailable = |result: Result<Secret, fleet_update::error::Error>, why: &str| {
        let error = result.map(|_| ()).expect_err(why);
        assert_eq!(error.to_string(), "secret broker unavailable", "{why}");
    };
    unavailable(ask(&[], asked), "no broker");
    unavailable(ask(&brokers, asked), "no file");
    fs::write(&file, "s3cr3t\n").expect("new");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("ours");
    unavailable(ask(&brokers, asked), "a file that others read");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("ours");
    assert_eq!(ask(&brokers, asked).expect("there").expose(), b"s3cr3t");
    unavailable(
        ask(&brokers, ("acme", "main", Purpose::Model)),
        "another purpose",
    );
    for scope in [
        ("bolt", "main", Purpose::Channel),
        ("acme", "other", Purpose::Channel),
    ] {
        assert_eq!(
            ask(&brokers, scope)
                .map(|_| ())
                .expect_err("another scope")
                .kind(),
            Kind::Denied
        );
    }
    for (why, bytes) in [
        ("empty", &b""[..]),
        ("only a line end", b"\n"),
        ("not text", b"\xff\xfe"),
    ] {
        fs::write(&file, bytes).expect("ours");
        unavailable(ask(&brokers, asked), why);
    }
    fs::remove_file(&file).expect("ours");
    std::os::unix::fs::symlink("/etc/hostname", &file).expect("new");
    unavailable(ask(&brokers, asked), "a link");
    fs::remove_file(&file).expect("ours");
    fs::create_dir(&file).expect("new");
    unavailable(ask(&brokers, asked), "a folder");
    // The service manager's credentials go first.
    let credentials = place.folder.path().join("credentials");
    fs::create_dir(&credentials).expect("new");
    fs::write(credentials.join(reference.file_name()), "from systemd").expect("new");
    fs::set_permissions(
        credentials.join(reference.file_name()),
        fs::Permissions::from_mode(0o400),
    )
    .expect("ours");
    let mut world = place.world.clone();
    world
        .env
        .insert("CREDENTIALS_DIRECTORY".into(), credentials.into());
    let brokers = Broker::all(&world, Some(&folder));
    assert_eq!(
        secret::resolve(&world, &brokers, &reference, asked)
            .expect("there")
            .expose(),
        b"from systemd"
    );
}

#[test]
fn a_secret_has_no_debug_text_and_is_zeroed() {
    fn zeroed<T: zeroize::ZeroizeOnDrop>() {}
    zeroed::<Secret>();
    // Compiles only while `Secret` is not `Debug`: else the call could mean either.
    trait Silent<Marker> {
        fn silent() {}
    }
    impl<T: ?Sized> Silent<()> for T {}
    struct Speaks;
    impl<T: ?Sized + std::fmt::Debug> Silent<Speaks> for T {}
    let _: fn() = <Secret as Silent<_>>::silent;
    struct Prints;
    impl<T: ?Sized + std::fmt::Display> Silent<Prints> for (T,) where (T,): Sized {}
}
