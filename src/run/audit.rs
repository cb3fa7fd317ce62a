//! `update audit`: the chain of every event of every run, proved or written out. Changes nothing.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use super::Session;
use crate::cli::AuditCommand;
use crate::error::{Error, Result};
use crate::state::Store;
use crate::state::audit::{Chain, verify_copy};

/// Answers a question about the audit chain.
///
/// # Errors
/// When there is none, it is broken, or it cannot be read.
pub fn run(session: &Session, what: &AuditCommand) -> Result<u8> {
    match what {
        AuditCommand::Verify { file } => {
            let chain = match file {
                Some(file) => copy(&session.world.cwd.join(file))?,
                None => Store::open_existing(&session.world, session.state.dir())?.verify()?,
            };
            report(session, &chain);
        }
        AuditCommand::Export => {
            let store = Store::open_existing(&session.world, session.state.dir())?;
            store.export(&mut |lines| session.ui.result(lines))?;
        }
    }
    Ok(0)
}

fn copy(path: &Path) -> Result<Chain> {
    let file = File::open(path)
        .map_err(|error| Error::io(format!("cannot open {}", path.display()), error))?;
    verify_copy(BufReader::new(file))
}

fn report(session: &Session, chain: &Chain) {
    let head = chain.head.as_ref();
    let value = serde_json::json!({
        "outcome": "whole",
        "events": chain.events,
        "first": chain.first,
        "last": head.map(|head| head.seq),
        "head": head.map(|head| head.hash.as_str()),
    });
    session.ui.report(&value, || match head {
        None => "the audit chain is empty\n".into(),
        Some(head) => format!(
            "the audit chain is whole: {} events, {} to {}, head {}\n",
            chain.events, chain.first, head.seq, head.hash
        ),
    });
}
