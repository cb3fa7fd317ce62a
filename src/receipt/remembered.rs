//! What is kept in mind of the receipt before: a receipt of many homes is large, and little of it matters to the
//! run that follows.

use serde::Deserialize;

use super::{Debt, check_schema, damaged};
use crate::error::Result;
use crate::migrate::HomeOutcome;
use crate::plan::decide::RuntimeOutcome;

/// What the next run has to know of a receipt: whether its run ended, how far it came, and what it owes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Remembered {
    /// Identifier of the run.
    pub run_id: String,
    /// When it started.
    pub started_at: String,
    /// When it ended.
    pub finished_at: Option<String>,
    /// How each home ended.
    pub homes: Vec<HomeEnd>,
    /// How each runtime ended.
    pub runtimes: Vec<RuntimeEnd>,
    /// Restarts that are owed.
    pub debts: Vec<Debt>,
}

/// How a home ended.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct HomeEnd {
    /// What became of it.
    pub outcome: HomeOutcome,
    /// Whether that happened.
    pub done: bool,
}

/// How a runtime ended.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RuntimeEnd {
    /// What became of it.
    pub outcome: RuntimeOutcome,
}

impl Remembered {
    /// Reads so much of a receipt, and passes over the rest.
    ///
    /// # Errors
    /// As for [`Receipt::parse`].
    pub fn parse(receipt: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        struct Format {
            schema: Option<u64>,
        }
        let format: Format = serde_json::from_slice(receipt).map_err(damaged)?;
        check_schema(format.schema)?;
        serde_json::from_slice(receipt).map_err(damaged)
    }
}
