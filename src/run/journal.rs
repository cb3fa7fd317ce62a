//! The bookkeeping of a run: its events, jobs, cells and request, a transaction a stage.
//!
//! Before the first change a failure here ends the run. After it the fleet goes first: the run goes on, and
//! its receipt says that the audit chain is not whole, so that it is not clean.

mod events;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use super::Session;
use super::look::Look;
use crate::error::{Error, Kind, Result};
use crate::fleet::{Collector, Home};
use crate::helper::Subject;
use crate::migrate::HomeOutcome;
use crate::receipt::{Receipt, RuntimeRow, rows};
use crate::state::audit::{self, Event, HOST, Head, KEPT, millis};
use crate::state::cells::{self, Cell, CellState};
use crate::state::jobs::{self, JobState, Origin};
use crate::state::requests::{Admission, Request};
use crate::state::scope::Scope;
use crate::state::{Lock, Store, receipts, snapshots};
use crate::world;

/// The stage of a job that writes a home.
const MIGRATE: &str = "migrate";

/// The stage of a job that restarts a runtime.
const RESTART: &str = "restart";

/// The record that one run keeps.
#[derive(Debug)]
pub struct Journal<'a> {
    session: &'a Session,
    store: Store,
    run: String,
    worker: String,
    request: Option<Request>,
    cells: Vec<Cell>,
    scopes: BTreeMap<String, Scope>,
    jobs: BTreeMap<(String, String), Vec<(i64, i64)>>,
    head: Option<Head>,
    problem: Option<String>,
}

/// What a request came to that was done before.
#[derive(Debug)]
pub struct Done {
    /// Its receipt.
    pub receipt: Value,
    /// How the command ended.
    pub exit_status: u8,
}

impl<'a> Journal<'a> {
    /// Opens the record of run `run`; jobs whose worker is gone are given back. `content` is what is asked for.
    ///
    /// # Errors
    /// When the storage is not available: then nothing may be done.
    pub fn open(session: &'a Session, run: &str, content: &Value, _lock: &Lock) -> Result<Self> {
        let mut store = Store::open(&session.world, session.state.dir())?;
        store.reap(&session.world)?;
        let request = request(session, content)?;
        Ok(Self {
            worker: jobs::worker(&session.world)?,
            cells: store.cells()?,
            head: store.head()?,
            store,
            session,
            run: run.to_owned(),
            request,
            scopes: BTreeMap::new(),
            jobs: BTreeMap::new(),
            problem: None,
        })
    }

    /// The run's id.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The name of the request, if the run has one.
    #[must_use]
    pub fn request_id(&self) -> Option<String> {
        self.request.as_ref().map(|request| request.id.clone())
    }

    /// Admits the request; what it came to if it was done before.
    ///
    /// # Errors
    /// `Input` when its name stands for something else.
    pub fn admit(&mut self) -> Result<Option<Done>> {
        let Some(request) = &self.request else {
            return Ok(None);
        };
        match self
            .store
            .admit(&self.session.world, request, &self.run, &self.worker)?
        {
            Admission::New => Ok(None),
            Admission::Done {
                receipt,
                exit_status,
                ..
            } => {
                let receipt = serde_json::from_slice(&receipt)
                    .map_err(|_| Error::new(Kind::Input, "the request's receipt is damaged"))?;
                Ok(Some(Done {
                    receipt,
                    exit_status,
                }))
            }
        }
    }

    /// Forgets the request of a run that ended with an error, so that it may be asked again.
    pub fn withdraw(&mut self) {
        if let Some(request) = &self.request {
            // One that stays is admitted again all the same, once this process is gone.
            let _ = self.store.withdraw(request);
        }
    }

    /// The scope of a home.
    #[must_use]
    pub fn scope(&self, home: &Home) -> Scope {
        Scope::of_home(home, &self.cells)
    }

    /// What the helper that works on these homes is told of whose they are.
    pub fn subject<'h>(&self, homes: impl IntoIterator<Item = &'h Home>) -> Subject {
        let variable = self.session.app.home.env.as_deref();
        homes
            .into_iter()
            .map(|home| match self.scope(home) {
                Scope::Profile(tenant, cell, profile) => {
                    Subject::of(&tenant, &cell, &profile, variable, &home.path)
                }
                _ => Subject::default(),
            })
            .reduce(|all, home| all.and(&home))
            .unwrap_or_default()
    }

    /// Records the plan, and takes the jobs that it makes and those that earlier runs left.
    ///
    /// # Errors
    /// When it cannot be recorded: then nothing may be done.
    pub fn opened(&mut self, look: &Look, receipt: &Receipt) -> Result<()> {
        self.scopes = look
            .plan
            .homes
            .iter()
            .map(|home| (home.home.id.clone(), self.scope(&home.home)))
            .collect();
        let mut events = vec![self.event(
            HOST,
            "run-opened",
            json!({
                "application": receipt.application,
                "homes": receipt.homes.len(),
                "parent": receipt.parent,
                "request": receipt.request_id,
                "runtimes": receipt.runtimes.len(),
                "trigger": receipt.trigger,
                "uid": receipt.invoker.uid,
            }),
        )];
        events.extend(
            receipt
                .homes
                .iter()
                .map(|row| self.home(row, "home-planned")),
        );
        events.extend(
            receipt
                .runtimes
                .iter()
                .map(|row| self.runtime(row, "runtime-planned")),
        );
        let work = self.work(look, receipt);
        let (settled, touched) = (self.settled(look, receipt), self.touched(look, receipt));
        let (run, worker) = (self.run.clone(), self.worker.clone());
        let mut cells = self.cells.clone();
        let (head, taken) = self.store.change("run.open", |transaction| {
            audit::append(transaction, &events)?;
            jobs::finish(transaction, &settled)?;
            jobs::queue(transaction, Origin::Command, &work)?;
            let mut taken = Vec::new();
            for stage in [MIGRATE, RESTART] {
                let subjects: Vec<&str> = work
                    .iter()
                    .filter(|work| work.stage == stage)
                    .map(|work| work.subject.as_str())
                    .collect();
                taken.extend(jobs::claim_stage(transaction, stage, &subjects, &worker)?);
            }
            for cell in cells
                .iter_mut()
                .filter(|cell| touched.contains(&cell.tenant_id))
            {
                let to = match cell.state {
                    CellState::Healthy => CellState::Upgrading,
                    CellState::Created | CellState::Failed => CellState::Starting,
                    state => state,
                };
                cells::step(transaction, &run, cell, to)?;
            }
            let head = audit::append(transaction, &[])?;
            Ok((head, taken))
        })?;
        self.head = head;
        self.cells = cells;
        for job in taken {
            self.jobs
                .entry((job.stage, job.subject))
                .or_default()
                .push((job.id, job.attempt));
        }
        Ok(())
    }

    /// Records a run that may change nothing: its plan, and its end.
    ///
    /// # Errors
    /// When it cannot be recorded.
    pub fn refused(&mut self, look: &Look, receipt: &mut Receipt) -> Result<()> {
        let plan = Receipt {
            homes: Vec::new(),
            runtimes: Vec::new(),
            ..receipt.clone()
        };
        let nothing = Look {
            inventory: look.inventory.clone(),
            plan: crate::plan::Plan::default(),
        };
        self.opened(&nothing, &plan)?;
        self.try_close(receipt)
    }

    /// Records which homes are copied.
    ///
    /// # Errors
    /// When it cannot be recorded: then nothing may be written.
    pub fn copied(&mut self, receipt: &Receipt) -> Result<()> {
        let events: Vec<Event> = receipt
            .homes
            .iter()
            .filter(|row| !row.done && row.files.iter().any(|file| file.snapshot))
            .map(|row| self.home(row, "home-snapshotted"))
            .collect();
        self.head = self.store.append("run.copy", &events)?.or(self.head.take());
        Ok(())
    }

    /// Records what became of the homes that were to be written.
    pub fn written(&mut self, receipt: &Receipt) {
        let mut events = Vec::new();
        let mut ends = Vec::new();
        for row in &receipt.homes {
            let Some(jobs) = self.jobs.remove(&(MIGRATE.into(), row.id.clone())) else {
                continue;
            };
            let state = if row.done && row.outcome == HomeOutcome::Migrated {
                JobState::Completed
            } else {
                JobState::Failed
            };
            ends.extend(jobs.iter().map(|(id, attempt)| (*id, *attempt, state)));
            events.push(self.home(row, "home-committed"));
        }
        self.note("run.write", &events, &ends);
    }

    /// Records that restarts are about to be carried out.
    pub fn begun<'r>(&mut self, rows: impl Iterator<Item = &'r RuntimeRow>) {
        let events: Vec<Event> = rows.map(|row| self.runtime(row, "restart-begun")).collect();
        self.note("run.restart", &events, &[]);
    }

    /// Records what one restart came to.
    pub fn judged(&mut self, row: &RuntimeRow) {
        let ends = self.ends(row);
        let event = self.runtime(row, "restart-judged");
        self.note("run.judge", &[event], &ends);
    }

    /// Records the end, moves the cells, answers the request, and puts the head of the chain into the receipt.
    pub fn closed(&mut self, receipt: &mut Receipt) {
        receipt.audit_head = None;
        let result = self.problem.take().map_or_else(
            || self.try_close(receipt),
            |why| Err(Error::new(Kind::Io, why)),
        );
        if let Err(error) = result {
            let row =
                Collector::unverified("audit", self.session.world.account.uid, error.to_string());
            receipt.collectors.push(rows::collector(&row));
            let interrupted =
                receipt.verdict.outcome == crate::receipt::VerdictOutcome::Interrupted;
            receipt.settle(interrupted);
            receipt.audit_head = self.head.as_ref().map(|head| head.hash.clone());
        }
    }

    fn try_close(&mut self, receipt: &mut Receipt) -> Result<()> {
        let seal = receipts::seal(&receipts::bytes(receipt)?);
        let verdict = &receipt.verdict;
        let event = self.event(
            HOST,
            "run-closed",
            json!({
                "exit_status": verdict.exit_status,
                "outcome": verdict.outcome,
                "receipt": seal,
            }),
        );
        let mut ends = Vec::new();
        for row in &receipt.runtimes {
            ends.extend(self.ends(row));
        }
        let left = std::mem::take(&mut self.jobs).into_values().flatten();
        ends.extend(left.map(|(id, attempt)| (id, attempt, JobState::Failed)));
        let moves = self.moves(receipt);
        let (run, request) = (self.run.clone(), self.request.clone());
        let status = receipt.verdict.exit_status.unwrap_or(1);
        let mut cells = self.cells.clone();
        let head = self.store.change("run.close", |transaction| {
            jobs::finish(transaction, &ends)?;
            for (cell, (to, digest)) in cells
                .iter_mut()
                .filter_map(|cell| moves.get(&cell.tenant_id).map(|to| (cell, to)))
            {
                for to in to {
                    cells::step(transaction, &run, cell, *to)?;
                }
                if digest.is_some() {
                    cell.config_digest.clone_from(digest);
                    cells::save(transaction, cell)?;
                }
            }
            let head = audit::append(transaction, &[event])?;
            receipt.audit_head = head.as_ref().map(|head| head.hash.clone());
            if let Some(request) = &request {
                let bytes = receipts::bytes(receipt)?;
                crate::state::requests::answer(transaction, request, &bytes, status)?;
            }
            Ok(head)
        })?;
        self.head = head;
        self.cells = cells;
        Ok(())
    }

    /// Old receipts, snapshots, jobs, requests and events go.
    ///
    /// # Errors
    /// When one of them could not; the others did.
    pub fn prune(&mut self, lock: &Lock) -> Result<()> {
        let runs = self.store.runs()?;
        let newest: Vec<String> = runs
            .iter()
            .take(receipts::KEPT.max(snapshots::KEPT))
            .cloned()
            .collect();
        let mut good = BTreeSet::new();
        for run in newest {
            let end = self.store.event(&run, "run-closed")?;
            if end.is_some_and(|end| end["outcome"] == "clean") {
                good.insert(run);
            }
        }
        let state = &self.session.state;
        let keep = self.session.keep;
        let old = millis(world::now().saturating_sub(KEPT));
        let results = [
            state.prune_receipts(&runs, lock),
            state.prune_packs((keep.count, keep.age), &runs, &good, lock),
            self.store
                .purge_requests(self.session.request_days)
                .map(|_| ()),
            self.store
                .change("jobs.purge", |transaction| jobs::purge(transaction, old)),
            self.store.cut(&self.run, old).map(|_| ()),
        ];
        results.into_iter().collect()
    }

    /// Appends and finishes; a failure is kept for the receipt.
    fn note(&mut self, label: &str, events: &[Event], ends: &[(i64, i64, JobState)]) {
        if events.is_empty() && ends.is_empty() {
            return;
        }
        let result = self.store.change(label, |transaction| {
            jobs::finish(transaction, ends)?;
            audit::append(transaction, events)
        });
        match result {
            Ok(head) => self.head = head.or(self.head.take()),
            Err(error) => {
                self.problem.get_or_insert(error.to_string());
            }
        }
    }

    fn ends(&mut self, row: &RuntimeRow) -> Vec<(i64, i64, JobState)> {
        let jobs = self
            .jobs
            .remove(&(RESTART.into(), row.id.clone()))
            .unwrap_or_default();
        let state = if row.outcome.is_clean() {
            JobState::Completed
        } else {
            JobState::Failed
        };
        jobs.into_iter()
            .map(|(id, attempt)| (id, attempt, state))
            .collect()
    }
}

/// Refuses a request whose name stands for something else, before anything is waited for.
///
/// # Errors
/// `Input` for a conflict.
pub fn check_request(session: &Session, content: &Value) -> Result<()> {
    let Some(request) = request(session, content)? else {
        return Ok(());
    };
    if !Store::path(session.state.dir()).exists() {
        return Ok(());
    }
    Store::open(&session.world, session.state.dir())?.check_request(&request)
}

fn request(session: &Session, content: &Value) -> Result<Option<Request>> {
    session
        .request_id
        .as_deref()
        .map(|id| Request::new(id, content))
        .transpose()
}

/// What decides what a run does: its scope and wishes, and none of the ways in which it is shown.
#[must_use]
pub fn content(session: &Session, command: &str, of_run: Option<&str>) -> Value {
    let texts = |paths: &[std::path::PathBuf]| -> Vec<String> {
        paths.iter().map(|path| text(path)).collect()
    };
    let users: Vec<&str> = if session.everybody {
        Vec::new()
    } else {
        session
            .users
            .iter()
            .map(|user| user.name.as_str())
            .collect()
    };
    json!({
        "application": session.app.name,
        "command": command,
        "homes": texts(&session.only_homes),
        "migrate": session.wishes.migrate,
        "of_run": of_run,
        "profiles": session.only_profiles,
        "restart": session.wishes.restart,
        "native": session.wishes.native,
        "to": session.wishes.to,
        "users": users,
    })
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
