//! What is found does not depend on who is asked from where: not on the caller's profile, folder or
//! variables.

use serde_json::Value;

use crate::odd::{Odd, shared};
use crate::support::long;
use crate::support::update::{Receipt, Update};

/// Values that each of these takes in turn; the first is a login's.
const VARIABLES: [(&str, &[&str]); 8] = [
    (
        "HOME",
        &[
            "/home/ann",
            "",
            "/nowhere",
            "/home/ann/.hermes/profiles/work/home",
            "relative",
            "/home/bob",
        ],
    ),
    (
        "HERMES_HOME",
        &[
            "",
            "/home/ann/.hermes",
            "/home/ann/.hermes/profiles/ops",
            "/home/bob/.hermes",
            "/nowhere",
        ],
    ),
    ("HERMES_PROFILE", &["", "work"]),
    ("INVOCATION_ID", &["", "0123456789abcdef0123456789abcdef"]),
    (
        "XDG_RUNTIME_DIR",
        &["", "/run/user/0", "/run/user/2002", "/nowhere"],
    ),
    (
        "DBUS_SESSION_BUS_ADDRESS",
        &["", "unix:path=/run/user/2002/bus", "garbage"],
    ),
    ("PATH", &["/usr/bin:/bin", "", "/nowhere"]),
    ("LANG", &["C.UTF-8", "de_DE.UTF-8"]),
];

const FOLDERS: [&str; 3] = ["/", "/home/ann/.hermes/profiles/ops", "/home/bob"];

/// A small generator with a known sequence (Knuth's MMIX constants): the same callers on every run.
struct Sequence(u64);

impl Sequence {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

#[test]
fn what_is_found_does_not_depend_on_the_caller() {
    let Some(odd) = shared() else { return };
    for user in [None, Some("ann")] {
        let expected = found(
            &Update::new(&odd.fleet, &["plan", "--json"])
                .by_maybe(user)
                .run()
                .receipt(),
        );
        assert!(
            expected["homes"].as_array().unwrap().len() >= 3,
            "{expected}"
        );
        let mut sequence = Sequence(7);
        for _ in 0..if long() { 200 } else { 10 } {
            let (before, folder) = caller(&mut sequence);
            let outcome = asked(odd, user, &before, folder);
            let seen = found(&outcome);
            assert!(
                seen == expected,
                "as {user:?} from {folder} with {before} something else is found\n--- expected\n{expected:#}\n--- found\n{seen:#}"
            );
        }
    }
}

fn caller(sequence: &mut Sequence) -> (String, &'static str) {
    let mut before = String::from("exec env -i");
    for (name, values) in VARIABLES {
        let value = values[sequence.below(values.len())];
        if !value.is_empty() {
            before.push_str(&format!(" {name}='{value}'"));
        }
    }
    (before, FOLDERS[sequence.below(FOLDERS.len())])
}

fn asked(odd: &Odd, user: Option<&'static str>, before: &str, folder: &str) -> Receipt {
    // A folder that may not be entered is as good as none.
    let before = format!("cd {folder} 2>/dev/null; {before}");
    let outcome = Update::new(&odd.fleet, &["plan", "--json"])
        .by_maybe(user)
        .after(&before)
        .run();
    assert_eq!(outcome.status, Some(0), "{before}: {outcome}");
    outcome.receipt()
}

/// What a plan found and would do: all of it but its own time.
fn found(plan: &Receipt) -> Value {
    let mut found = serde_json::Map::new();
    for key in [
        "homes",
        "runtimes",
        "installs",
        "collectors",
        "notes",
        "verdict",
    ] {
        found.insert(key.to_owned(), plan.0[key].clone());
    }
    // How quickly a socket answers is not the caller's doing.
    if let Some(notes) = found["notes"].as_array_mut() {
        notes.retain(|note| !note.to_string().contains("does not answer in time"));
    }
    found.into()
}
