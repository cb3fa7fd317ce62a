//! The homes that accounts say they have, and which of two that contradict each other is believed.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;

use crate::fleet::{Home, HomeStatus, installs};

/// The homes that accounts say they have, by what the kernel calls their folders.
#[derive(Default)]
pub(super) struct Claims(BTreeMap<(u64, u64), (u32, Home)>);

impl Claims {
    /// Hears what the account `by` says of a home.
    pub(super) fn add(&mut self, by: u32, mut home: Home) {
        if home.uid != by && !matches!(home.status, HomeStatus::Foreign(_)) {
            home.status = HomeStatus::Foreign(format!("the folder belongs to uid {}", home.uid));
        }
        let Some((known_by, known)) = self.0.remove(&home.file_id) else {
            self.0.insert(home.file_id, (by, home));
            return;
        };
        // Its owner knows best what it is, and of two who say that they are it, the kernel knows.
        let is_better =
            home.uid == by && (known.uid != known_by || (by != known_by && !is_owned(&known)));
        let ((by, mut best), other) = if is_better {
            ((by, home), known)
        } else {
            ((known_by, known), home)
        };
        for found_by in other.found_by {
            if !best.found_by.contains(&found_by) {
                best.found_by.push(found_by);
            }
        }
        self.0.insert(best.file_id, (by, best));
    }

    /// One home for each folder and for each id. One that only a link leads to is a matter of whoever
    /// has the link, and no row of its owner's.
    pub(super) fn settle(self, notes: &mut Vec<String>) -> Vec<Home> {
        let mut homes: BTreeMap<String, Home> = BTreeMap::new();
        for (by, mut home) in self.0.into_values() {
            home.uid = by;
            let Some(known) = homes.remove(&home.id) else {
                homes.insert(home.id.clone(), home);
                continue;
            };
            let (kept, dropped) = if is_owned(&known) || !is_owned(&home) {
                (known, home)
            } else {
                (home, known)
            };
            notes.push(format!(
                "uid {} says that {} is {}",
                dropped.uid,
                dropped.path.display(),
                kept.path.display()
            ));
            homes.insert(kept.id.clone(), kept);
        }
        homes.into_values().collect()
    }
}

/// Whether the kernel says of a home what its owner said. Asked only where two contradict each other. The
/// folder is looked at by the path without links that gives the id, so a link that is swapped meanwhile
/// cannot lend another's.
fn is_owned(home: &Home) -> bool {
    std::fs::canonicalize(&home.path).is_ok_and(|real| {
        std::fs::symlink_metadata(&real).is_ok_and(|meta| {
            meta.uid() == home.uid
                && (meta.dev(), meta.ino()) == home.file_id
                && installs::identifier(&real) == home.id
        })
    })
}
