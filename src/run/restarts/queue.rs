//! Which restart is begun next, and which are not begun any more.

use std::collections::{BTreeMap, VecDeque};

use super::job::Job;

/// The installs whose runtimes are held back: too many restarts from them failed. Another install is other
/// code, and its runtimes may belong to somebody else.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Held {
    limit: usize,
    failures: BTreeMap<Option<String>, usize>,
    /// With the runtime whose failure was the last one that was borne.
    installs: BTreeMap<Option<String>, String>,
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

    /// Counts a failure of a runtime of this install, whose name is `name`.
    pub(super) fn failed(&mut self, install: Option<&str>, name: &str) {
        let install = install.map(str::to_owned);
        let failures = self.failures.entry(install.clone()).or_default();
        *failures += 1;
        if *failures >= self.limit {
            self.installs
                .entry(install)
                .or_insert_with(|| name.to_owned());
        }
    }

    /// The runtime for whose failure those of this install are left as they are, if they are.
    pub(super) fn back(&self, install: Option<&str>) -> Option<&str> {
        let mut installs = self.installs.iter();
        let (_, name) = installs.find(|(held, _)| held.as_deref() == install)?;
        Some(name)
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
        self.waiting
            .retain(|job| held.back(job.install_id()).is_none());
        before - self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_one_install_hold_back_that_install_alone() {
        let mut held = Held::default().with_limit(2);
        held.failed(Some("a"), "one");
        assert_eq!(held.back(Some("a")), None);
        held.failed(Some("a"), "two");
        assert_eq!(held.back(Some("a")), Some("two"));
        assert_eq!((held.back(Some("b")), held.back(None)), (None, None));
        // The next wave counts anew, and forgets nothing.
        let mut next = held.with_limit(1);
        assert_eq!((next.back(Some("a")), next.back(None)), (Some("two"), None));
        next.failed(None, "three");
        assert_eq!(next.back(None), Some("three"));
        assert_eq!(next.back(Some("b")), None);
    }
}
