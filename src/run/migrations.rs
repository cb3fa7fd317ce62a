//! `update migrations`: the steps of the application, what they would change, and whether a catalog
//! holds together.

mod diff;

use std::fmt::Write as _;

use super::Session;
use crate::cli::MigrationsCommand;
use crate::error::{Error, Kind, Result};
use crate::migrate::catalog::{self, released};
use crate::migrate::{Catalog, Step};
use crate::screen::visible;

/// Answers a question about migrations.
///
/// # Errors
/// When there is no such step, or the fleet cannot be looked at.
pub fn run(session: &Session, what: &MigrationsCommand) -> Result<u8> {
    match what {
        MigrationsCommand::List => list(session),
        MigrationsCommand::Show { id } => show(session, id),
        MigrationsCommand::Diff => diff::run(session),
        MigrationsCommand::Lint { folder } => lint(session, folder.as_deref()),
    }
}

fn load(session: &Session) -> Result<Catalog> {
    Catalog::load(&session.app, &session.site_steps)
}

fn value_of(step: &Step) -> serde_json::Value {
    serde_json::json!({
        "id": step.id,
        "to": step.to,
        "title": step.title,
        "why": step.why,
        "legacy": step.legacy,
        "touches": step.touches(),
        "checksum": step.checksum(),
    })
}

fn list(session: &Session) -> Result<u8> {
    let catalog = load(session)?;
    let steps: Vec<serde_json::Value> = catalog.steps().iter().map(value_of).collect();
    session.ui.report(&steps, || {
        let mut text = String::new();
        for step in catalog.steps() {
            // Writing into a string cannot fail.
            let _ = writeln!(
                text,
                "{:>5}  {:<38} {}",
                step.to,
                step.id,
                visible(&step.title)
            );
        }
        text
    });
    Ok(0)
}

fn show(session: &Session, id: &str) -> Result<u8> {
    let catalog = load(session)?;
    let step = catalog
        .steps()
        .iter()
        .find(|step| step.id == id || step.to.to_string() == id)
        .ok_or_else(|| {
            Error::new(Kind::Usage, format!("there is no migration {id:?}"))
                .with_hint("`update migrations list` names them")
        })?;
    session.ui.report(&value_of(step), || {
        format!(
            "{}\nto:       {}\ntitle:    {}\nwhy:      {}\ntouches:  {}\nlegacy:   {}\nchecksum: {}\n",
            step.id,
            step.to,
            visible(&step.title),
            visible(&step.why),
            visible(&step.touches().join(", ")),
            if step.legacy { "yes: also for files without a version" } else { "no" },
            step.checksum()
        )
    });
    Ok(0)
}

/// Proves a folder of migrations; where none is named, the site's own one and the built-in catalog.
fn lint(session: &Session, folder: Option<&std::path::Path>) -> Result<u8> {
    let released = released()?;
    let mut problems = Vec::new();
    let site = session.places.config_dir.join("migrations.d");
    let folder = match folder {
        Some(folder) => Some(session.world.cwd.join(folder)),
        None => site.is_dir().then_some(site),
    };
    if let Some(folder) = folder {
        if !folder.is_dir() {
            return Err(Error::new(
                Kind::Input,
                format!("there is no folder {}", folder.display()),
            ));
        }
        problems.extend(catalog::lint(&folder, &released));
    }
    match Catalog::load(&session.app, &[]) {
        Ok(builtin) => problems.extend(builtin.steps().iter().filter_map(|step| {
            let known = released.iter().find(|known| known.id == step.id)?;
            (known.checksum != step.checksum())
                .then(|| format!("{}: its meaning changed since it was released", step.id))
        })),
        Err(error) => problems.push(error.to_string()),
    }
    session.ui.report(&problems, || {
        if problems.is_empty() {
            return "the catalog holds together\n".into();
        }
        problems.iter().fold(String::new(), |text, problem| {
            text + &visible(problem) + "\n"
        })
    });
    Ok(u8::from(!problems.is_empty()))
}
