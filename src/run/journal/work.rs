//! What a plan makes of jobs and cells: which work there is, which of an earlier run's is settled, and where the cells
//! go at the end.

use std::collections::{BTreeMap, BTreeSet};

use super::super::look::Look;
use super::super::rollback;
use super::{Journal, MIGRATE, RESTART};
use crate::plan::decide::Step;
use crate::receipt::{HomeRow, Receipt};
use crate::state::audit::HOST;
use crate::state::cells::{Cell, CellState};
use crate::state::jobs::{Job, JobState, Work};
use crate::state::scope::Scope;

impl Journal<'_> {
    /// The jobs of the plan.
    pub(super) fn work(&self, look: &Look, receipt: &Receipt) -> Vec<Work> {
        let work = |stage: &str, subject: &str, home: Option<&String>| Work {
            event: self.run.clone(),
            stage: stage.into(),
            subject: subject.to_owned(),
            scope: home
                .and_then(|home| self.scopes.get(home).cloned())
                .unwrap_or_else(|| Scope::Tenant(HOST.into())),
        };
        let homes = receipt
            .homes
            .iter()
            .filter(|row| !row.done)
            .map(|row| work(MIGRATE, &row.id, Some(&row.id)));
        let acts = look
            .plan
            .runtimes
            .iter()
            .zip(&receipt.runtimes)
            .filter(|(planned, _)| matches!(planned.step, Step::Act(_)))
            .map(|(_, row)| work(RESTART, &row.id, row.homes.first()));
        homes.chain(acts).collect()
    }

    /// What earlier runs left open and the live fleet shows to be done, or to be nobody's any more.
    pub(super) fn settled(&self, look: &Look, receipt: &Receipt) -> Vec<(i64, i64, JobState)> {
        // A run that may change nothing judges nothing either.
        if look.plan.homes.is_empty() && look.plan.runtimes.is_empty() {
            return Vec::new();
        }
        let open: BTreeSet<(String, String)> = self
            .work(look, receipt)
            .into_iter()
            .map(|work| (work.stage, work.subject))
            .collect();
        let sees_all = self.session.only_homes.is_empty()
            && self.session.only_profiles.is_empty()
            && self.session.everybody;
        let shows_runtimes = self.session.scene.shows_runtimes();
        // Who sees a home sees all that serves it.
        let sees = |job: &Job| sees_all || self.scopes.values().any(|scope| *scope == job.scope);
        let jobs = self.store.open_jobs().unwrap_or_default();
        jobs.into_iter()
            .filter(|job| job.state == JobState::Queued)
            .filter(|job| shows_runtimes || job.stage != RESTART)
            .filter(|job| !open.contains(&(job.stage.clone(), job.subject.clone())))
            .filter_map(|job| {
                let is_clean = match job.stage.as_str() {
                    MIGRATE => receipt
                        .homes
                        .iter()
                        .find(|row| row.id == job.subject)
                        .map(|row| row.outcome.is_clean()),
                    RESTART => receipt
                        .runtimes
                        .iter()
                        .find(|row| row.id == job.subject)
                        .map(|row| row.outcome.is_clean()),
                    _ => return None,
                };
                match is_clean {
                    Some(true) => Some((job.id, job.attempt, JobState::Completed)),
                    Some(false) => Some((job.id, job.attempt, JobState::Failed)),
                    None if sees(&job) => Some((job.id, job.attempt, JobState::Cancelled)),
                    None => None,
                }
            })
            .collect()
    }

    /// The tenants whose cells this run works on.
    pub(super) fn touched(&self, look: &Look, receipt: &Receipt) -> BTreeSet<String> {
        self.work(look, receipt)
            .iter()
            .map(|work| work.scope.tenant_id().to_owned())
            .collect()
    }

    /// Where the cells go at the end: those that a run works on, by what it proved of their homes and runtimes.
    pub(super) fn moves(
        &self,
        receipt: &Receipt,
    ) -> BTreeMap<String, (Vec<CellState>, Option<String>)> {
        let is_in = |home: &str, cell: &Cell| {
            self.scopes
                .get(home)
                .is_some_and(|scope| scope.tenant_id() == cell.tenant_id)
        };
        let is_at_work = |cell: &&Cell| {
            matches!(
                cell.state,
                CellState::Starting | CellState::Upgrading | CellState::Rollback
            )
        };
        let mut moves = BTreeMap::new();
        for cell in self.cells.iter().filter(is_at_work) {
            let homes: Vec<&HomeRow> = receipt
                .homes
                .iter()
                .filter(|row| is_in(&row.id, cell))
                .collect();
            if homes.is_empty() {
                continue;
            }
            let well = homes
                .iter()
                .all(|row| row.done && (row.outcome.is_clean() || row.accepted.is_some()))
                && receipt
                    .runtimes
                    .iter()
                    .filter(|row| row.homes.iter().any(|home| is_in(home, cell)))
                    .all(|row| row.outcome.is_clean() || row.accepted.is_some());
            let rolled_back = cell.state == CellState::Upgrading
                && homes.iter().any(|row| row.reason == rollback::PUT_BACK);
            let end = if well {
                CellState::Healthy
            } else {
                CellState::Failed
            };
            let path = if rolled_back {
                vec![CellState::Rollback, end]
            } else {
                vec![end]
            };
            let digest = homes
                .iter()
                .find(|row| row.path == cell.root)
                .and_then(|row| {
                    let config = &self.session.app.config.file;
                    row.files.iter().find(|file| file.path == *config)
                })
                .and_then(|file| file.sha256_after.clone());
            moves.insert(cell.tenant_id.clone(), (path, digest));
        }
        moves
    }
}
