//! What dpkg says of the packages that installs come from: whether their files are whole.
//!
//! | state of the package | what it means here |
//! |---|---|
//! | `half-installed` | files of two releases: its homes and runtimes are left alone |
//! | `unpacked`, `half-configured` | files are whole, its own scripts have not ended: a note, outside of a hook |
//!
//! Locks of dpkg mean nothing, and inside a hook neither does `half-configured`: both are always there.
//! dpkg-query(1) is only asked where dpkg's own files show that some package is in such a state.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use memchr::{memmem, memrchr};

use super::Session;
use super::hook::{ASK_LIMIT, ask};
use crate::cli::Trigger;
use crate::fleet::Inventory;
use crate::plan::decide::{Decision, RuntimeOutcome, Step};
use crate::plan::{Plan, Target};

/// Says what dpkg knows of packages; it reads without dpkg's lock, also while dpkg works.
const DPKG_QUERY: &str = "/usr/bin/dpkg-query";

/// Where dpkg keeps the state of packages, and what a dpkg at work has not merged into it yet
/// (dpkg(1), "FILES").
const STATUS: &str = "/var/lib/dpkg/status";
const UPDATES: &str = "/var/lib/dpkg/updates";

/// The states that matter, the worst first.
const UNSETTLED: [&str; 3] = ["half-installed", "unpacked", "half-configured"];

/// Withholds the homes of installs whose own package is half-installed, and notes the others that are
/// not done. Returns each install that is withheld, with the reason.
pub fn withhold_half_installed(
    session: &Session,
    inventory: &mut Inventory,
    targets: &BTreeMap<String, Target>,
) -> BTreeMap<String, String> {
    let is_hook = session.trigger == Trigger::Package;
    if !Path::new(DPKG_QUERY).exists() || !(is_hook || is_unsettled(STATUS, UPDATES)) {
        return BTreeMap::new();
    }
    let packages = unsettled();
    let mut broken = BTreeMap::new();
    let mut notes = Vec::new();
    for install in &inventory.installs {
        let owner = install.path.to_str().and_then(|path| {
            packages
                .iter()
                .find(|package| package.files.lines().any(|line| line == path))
        });
        let Some(Package { name, state, .. }) = owner else {
            continue;
        };
        if state == UNSETTLED[0] {
            broken.insert(install.id.clone(), format!("package {name} is {state}"));
        } else if !is_hook {
            notes.push(format!(
                "package {name}, which {} comes from, is {state}: dpkg --configure -a ends its installation",
                install.path.display()
            ));
        }
    }
    inventory.notes.extend(notes);
    for home in &mut inventory.homes {
        let install = targets
            .get(&home.id)
            .and_then(|target| target.install.as_ref());
        if let Some(why) = install.and_then(|install| broken.get(install)) {
            home.updater.get_or_insert_with(|| why.clone());
        }
    }
    broken
}

/// Leaves the runtimes of such installs alone.
pub fn leave_half_installed(broken: &BTreeMap<String, String>, plan: &mut Plan) {
    for planned in &mut plan.runtimes {
        let why = planned
            .runtime
            .install
            .as_ref()
            .and_then(|install| broken.get(install));
        if let (Some(why), Some(_)) = (why, &planned.runtime.process) {
            let decision = Decision::new(RuntimeOutcome::Unaccounted, format!("aborted: {why}"));
            planned.step = Step::Settled(
                decision
                    .with_remedy("finish the installation (dpkg --audit), then run update again"),
            );
        }
    }
}

/// A package that is not done.
struct Package {
    name: String,
    state: String,
    /// Its files, one a line.
    files: String,
}

fn unsettled() -> Vec<Package> {
    let query = |args: &[&str]| {
        ask(DPKG_QUERY, args, ASK_LIMIT).map_or_else(|_| String::new(), |(_, text)| text)
    };
    let states = query(&["-W", "-f", "${db:Status-Status} ${binary:Package}\\n"]);
    states
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(state, _)| UNSETTLED.contains(state))
        .map(|(state, name)| Package {
            name: name.to_owned(),
            state: state.to_owned(),
            files: query(&["-L", name]),
        })
        .collect()
}

/// Whether dpkg's own files may speak of a package that is not done; what cannot be read may.
fn is_unsettled(status: &str, updates: &str) -> bool {
    let is_at_work =
        std::fs::read_dir(updates).map_or(true, |mut entries| entries.next().is_some());
    is_at_work || tells_unsettled(status).unwrap_or(true)
}

/// Whether dpkg's list of packages has one that is not done. It is read through one small buffer, by whole lines: a page
/// that is touched for the first time costs as much as to search several.
fn tells_unsettled(status: &str) -> io::Result<bool> {
    let mut file = File::open(status)?;
    let mut buffer = vec![0; 64 << 10];
    let mut kept = 0;
    loop {
        let count = file.read(&mut buffer[kept..])?;
        let filled = kept + count;
        let lines = match memrchr(b'\n', &buffer[..filled]) {
            _ if count == 0 => filled,
            Some(end) => end + 1,
            None => 0,
        };
        // A search is many times quicker than a walk over the lines, and mostly there is nothing.
        let text = &buffer[..lines];
        let found = UNSETTLED.iter().any(|state| {
            let end = format!(" {state}\n");
            memmem::find_iter(text, &end).any(|at| {
                let start = memrchr(b'\n', &text[..at]).map_or(0, |end| end + 1);
                text[start..].starts_with(b"Status: ")
            })
        });
        if found || count == 0 {
            return Ok(found);
        }
        buffer.copy_within(lines..filled, 0);
        kept = filled - lines;
        if kept == buffer.len() {
            buffer.resize(2 * kept, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "a test writes what dpkg would write"
    )]
    fn dpkg_is_only_asked_where_its_own_files_show_a_package_that_is_not_done() {
        let folder = tempfile::tempdir().expect("made");
        let (status, updates) = (folder.path().join("status"), folder.path().join("updates"));
        std::fs::create_dir(&updates).expect("made");
        let said_after = |before: usize, state: &str| {
            let text = format!(
                "Package: a\nDescription: {}\nStatus: install ok {state}\nDescription: is half-installed\n",
                "-".repeat(before)
            );
            std::fs::write(&status, text).expect("written");
            is_unsettled(
                status.to_str().expect("text"),
                updates.to_str().expect("text"),
            )
        };
        let said = |state: &str| said_after(3, state);
        assert!(!said("installed"));
        for state in UNSETTLED {
            assert!(said(state), "{state}");
        }
        // Wherever the buffer ends, and however long a line is.
        for before in ((64 << 10) - 90..(64 << 10) + 5).chain([200_000]) {
            assert!(said_after(before, "unpacked"), "{before}");
            assert!(!said_after(before, "installed"), "{before}");
        }
        std::fs::write(updates.join("0001"), "").expect("written");
        assert!(said("installed"));
        assert!(is_unsettled("/nowhere", "/nowhere"));
    }
}
