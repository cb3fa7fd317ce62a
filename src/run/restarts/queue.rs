//! Which restart is begun next, and which are not begun any more.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::job::Job;

/// The installs whose runtimes are held back: too many restarts from them failed. Another install is other
/// code, and its runtimes may belong to somebody else.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Held {
    limit: usize,
    failures: BTreeMap<Option<String>, usize>,
    installs: BTreeSet<Option<String>>,
}

impl Held {
    /// The same, with so many failures of one install from now on.
    pub(super) fn with_limit(self, limit: usize) -> Self {
        Self {
            limit,
            failures: BTreeMap::new(),
            ..self
        }
    }

    /// Counts a failure of a runtime of this install.
    pub(super) fn failed(&mut self, install: Option<&str>) {
        let install = install.map(str::to_owned);
        let failures = self.failures.entry(install.clone()).or_default();
        *failures += 1;
        if *failures >= self.limit {
            self.installs.insert(install);
        }
    }

    /// Whether runtimes of this install are left as they are.
    pub(super) fn back(&self, install: Option<&str>) -> bool {
        self.installs.iter().any(|held| held.as_deref() == install)
    }
}

/// The restarts of a wave that nobody has begun.
pub(super) struct Queue {
    waiting: VecDeque<Job>,
    /// How many restarts of each owner are under way.
    busy: BTreeMap<u32, usize>,
    /// How many one owner may have under way while others wait.
    share: usize,
}

impl Queue {
    pub(super) fn of(jobs: Vec<Job>, workers: usize) -> Self {
        Self {
            waiting: VecDeque::from(jobs),
            busy: BTreeMap::new(),
            share: workers.div_ceil(2),
        }
    }

    /// The next restart: the slow runtimes of one owner never keep every worker from the others'.
    pub(super) fn take(&mut self) -> Option<Job> {
        let busy = |job: &Job| self.busy.get(&job.owner).copied().unwrap_or(0);
        let at = self.waiting.iter().position(|job| busy(job) < self.share);
        let job = self.waiting.remove(at.unwrap_or(0))?;
        *self.busy.entry(job.owner).or_default() += 1;
        Some(job)
    }

    /// A restart of this owner is over.
    pub(super) fn done(&mut self, owner: u32) {
        if let Some(busy) = self.busy.get_mut(&owner) {
            *busy = busy.saturating_sub(1);
        }
    }

    /// Leaves out those that must not begin any more, and says how many those were.
    pub(super) fn leave_out(&mut self, held: &Held) -> usize {
        let before = self.waiting.len();
        self.waiting.retain(|job| !held.back(job.install_id()));
        before - self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_one_install_hold_back_that_install_alone() {
        let mut held = Held::default().with_limit(2);
        held.failed(Some("a"));
        assert!(!held.back(Some("a")));
        held.failed(Some("a"));
        assert!(held.back(Some("a")) && !held.back(Some("b")) && !held.back(None));
        // The next wave counts anew, and forgets nothing.
        let mut next = held.with_limit(1);
        assert!(next.back(Some("a")) && !next.back(None));
        next.failed(None);
        assert!(next.back(None) && !next.back(Some("b")));
    }
}
