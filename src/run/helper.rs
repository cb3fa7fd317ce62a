//! The hidden subcommand that root starts as another user: which tasks a helper knows.

use std::process::ExitCode;

use crate::error::{Error, Kind, Result};
use crate::fleet::again::LookAgain;
use crate::fleet::survey::Survey;
use crate::helper::{self, Invocation, Task};
use crate::migrate::home::{Commit, Evaluate, Fetch, Preview, Restore};
use crate::restart::respawn::starter;
use crate::restart::{ReloadManager, Respawn, Restart};
use crate::state::lock::HoldHomes;
use crate::world::World;

/// Serves tasks until there are no more. Only a parent that holds the other end of standard input hears of it.
#[must_use]
pub fn main(args: &[std::ffi::OsString]) -> ExitCode {
    match serve(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => ExitCode::from(error.kind().exit_status()),
    }
}

fn serve(args: &[std::ffi::OsString]) -> Result<()> {
    // A helper of its owner started it, or the owner's own run: it has no ids to give up.
    if args.iter().eq([starter::VERB]) {
        return starter::main();
    }
    let invocation = Invocation::parse(args)?;
    // Before anything is read that somebody else could have written.
    helper::become_account(&invocation)?;
    let world = World::read_as(invocation.account.clone())?;
    while let Some(verb) = helper::next_verb()? {
        serve_one(&verb, &world)?;
    }
    Ok(())
}

fn serve_one(verb: &str, world: &World) -> Result<()> {
    match verb {
        Survey::VERB => helper::serve::<Survey>(world),
        Evaluate::VERB => helper::serve::<Evaluate>(world),
        Preview::VERB => helper::serve::<Preview>(world),
        Fetch::VERB => helper::serve::<Fetch>(world),
        Commit::VERB => helper::serve::<Commit>(world),
        Restore::VERB => helper::serve::<Restore>(world),
        Respawn::VERB => helper::serve::<Respawn>(world),
        Restart::VERB => helper::serve::<Restart>(world),
        LookAgain::VERB => helper::serve::<LookAgain>(world),
        ReloadManager::VERB => helper::serve::<ReloadManager>(world),
        HoldHomes::VERB => helper::serve::<HoldHomes>(world),
        verb => Err(Error::new(
            Kind::Usage,
            format!("no task is called {verb:?}"),
        )),
    }
}
