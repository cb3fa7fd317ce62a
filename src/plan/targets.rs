//! Which configuration version each home needs, and which install says so. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::fleet::{Home, Install, Inventory, Unit};
use crate::migrate::home::Native;

/// The version that a home needs, and who says so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Target {
    /// The configuration version; `None` where nobody says.
    pub expected: Option<u32>,
    /// The install that says so.
    pub install: Option<String>,
    /// Where that install's own migrator is.
    pub native: Native,
    /// Facts worth a note: other installs that expect another version.
    pub notes: Vec<String>,
}

/// The version that each home needs: the first of these that answers. The installs of the runtimes
/// and enabled units that serve it (the lowest), of those that serve its siblings, its root's own
/// checkout, the only install that its owner has, that of a unit which is not enabled, and the version
/// that the caller named.
#[must_use]
pub fn targets(inventory: &Inventory, to: Option<u32>) -> BTreeMap<String, Target> {
    let installs = Installs::of(inventory);
    let mut siblings: BTreeMap<&std::path::Path, BTreeSet<&str>> = BTreeMap::new();
    for home in &inventory.homes {
        siblings.entry(&home.root).or_default().insert(&home.id);
    }
    // Once a root, not once a home: a root may have thousands of both.
    let busy_siblings = installs.busy.serving_each(&siblings);
    let idle_siblings = installs.idle.serving_each(&siblings);
    inventory
        .homes
        .iter()
        .map(|home| {
            let own = BTreeSet::from([home.id.as_str()]);
            let found = installs
                .busy
                .serving(&own)
                .or_else(|| busy_siblings.get(&*home.root).cloned())
                .or_else(|| installs.checkout_of(home))
                .or_else(|| installs.only_one_of(home.uid))
                .or_else(|| installs.idle.serving(&own))
                .or_else(|| idle_siblings.get(&*home.root).cloned())
                .unwrap_or_default();
            let target = match found.first() {
                Some(lowest) => Target {
                    expected: lowest.config_version,
                    install: Some(lowest.id.clone()),
                    native: Native {
                        interpreter: lowest.interpreter.clone(),
                        package: Some(lowest.package.clone()),
                    },
                    notes: higher_expectations(home, lowest, &found),
                },
                None => Target {
                    expected: to,
                    ..Target::default()
                },
            };
            (home.id.clone(), target)
        })
        .collect()
}

/// The installs that say which configuration version they expect.
struct Installs<'a> {
    known: Vec<&'a Install>,
    /// Those of processes and enabled units.
    busy: Serving<'a>,
    /// Those of units that nobody enabled.
    idle: Serving<'a>,
}

/// Which installs serve a home.
#[derive(Default)]
struct Serving<'a>(BTreeMap<&'a str, Vec<&'a Install>>);

impl<'a> Serving<'a> {
    /// Those that serve any home of each root.
    fn serving_each<'b>(
        &self,
        roots: &BTreeMap<&'b std::path::Path, BTreeSet<&str>>,
    ) -> BTreeMap<&'b std::path::Path, Vec<&'a Install>> {
        let found = |homes| self.serving(homes);
        roots
            .iter()
            .filter_map(|(root, homes)| Some((*root, found(homes)?)))
            .collect()
    }

    /// Those that serve any of these homes, the lowest expectation first.
    fn serving(&self, homes: &BTreeSet<&str>) -> Option<Vec<&'a Install>> {
        let mut found: Vec<&Install> = homes
            .iter()
            .filter_map(|home| self.0.get(home))
            .flatten()
            .copied()
            .collect();
        found.sort_by_key(|install| (install.config_version, &install.id));
        found.dedup_by_key(|install| &install.id);
        (!found.is_empty()).then_some(found)
    }
}

impl<'a> Installs<'a> {
    fn of(inventory: &'a Inventory) -> Self {
        let known: Vec<&Install> = inventory
            .installs
            .iter()
            .filter(|install| install.config_version.is_some())
            .collect();
        let (mut busy, mut idle) = (Serving::default(), Serving::default());
        for runtime in inventory.runtimes.iter().filter(|runtime| runtime.managed) {
            let install = known
                .iter()
                .find(|install| Some(&install.id) == runtime.install.as_ref());
            let enabled = runtime.unit.as_ref().is_some_and(Unit::is_enabled);
            let serving = if runtime.process.is_some() || enabled {
                &mut busy
            } else {
                &mut idle
            };
            for home in &runtime.homes {
                serving.0.entry(home).or_default().extend(install);
            }
        }
        Self { known, busy, idle }
    }

    fn checkout_of(&self, home: &Home) -> Option<Vec<&'a Install>> {
        let found = self
            .known
            .iter()
            .find(|install| install.roots.contains(&home.root));
        found.map(|install| vec![*install])
    }

    fn only_one_of(&self, uid: u32) -> Option<Vec<&'a Install>> {
        let mut of_user = self.known.iter().filter(|install| install.uid == uid);
        match (of_user.next(), of_user.next()) {
            (Some(only), None) => Some(vec![*only]),
            _ => None,
        }
    }
}

fn higher_expectations(home: &Home, lowest: &Install, found: &[&Install]) -> Vec<String> {
    found
        .iter()
        .filter(|install| install.config_version != lowest.config_version)
        .map(|install| {
            format!(
                "{} is served from {} as well, which expects {}: the lowest expectation counts",
                home.path.display(),
                install.path.display(),
                install.config_version.unwrap_or_default()
            )
        })
        .collect()
}
