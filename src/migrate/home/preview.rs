//! What homes would become, as unified diffs with their secrets masked: only their owner knows these.
//!
//! A home is evaluated as for a plan, and nothing is written. A line of a diff is masked by the names of
//! keys, by the shapes of tokens, and by every value of the home's own secrets file, before and after.

use serde::{Deserialize, Serialize};

use super::super::ops::format_of;
use super::super::{Catalog, FileChange, HomeOutcome, HomeView as _, evaluate};
use super::{HomeTarget, SECRETS, SiteSteps, open};
use crate::app::App;
use crate::document::shown::{self, Shown};
use crate::document::unified::{Side, unified};
use crate::document::{env, parse};
use crate::error::Result;
use crate::helper::Task;
use crate::screen::visible;
use crate::world::World;

/// What is said of one home is not longer, in bytes: a message to root is bounded, and nobody reads more.
const LIMIT: usize = 8 << 20;

/// Shows what homes would become; tells one [`Previewed`] a home.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Preview {
    /// The application.
    pub app: App,
    /// The site's own steps.
    pub site_steps: SiteSteps,
    /// The homes and, as the plan says of each, the files that change.
    pub homes: Vec<(HomeTarget, Vec<FileChange>)>,
}

/// What one home would become.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Previewed {
    /// Which home.
    pub id: String,
    /// The unified diff of every file that changes, secrets masked. Its lines are not escaped yet.
    pub diff: String,
    /// Why there is none.
    pub error: Option<String>,
}

impl Task for Preview {
    const VERB: &'static str = "preview";
    type Event = Previewed;
    type Answer = ();

    fn perform(self, _: &World, tell: &mut dyn FnMut(Previewed) -> Result<()>) -> Result<()> {
        let catalog = Catalog::load(&self.app, &self.site_steps)?;
        for (target, files) in self.homes {
            let (diff, error) = match preview(&self.app, &catalog, &target, &files) {
                Ok(diff) => (diff, None),
                Err(reason) => (String::new(), Some(reason)),
            };
            tell(Previewed {
                id: target.id,
                diff,
                error,
            })?;
        }
        Ok(())
    }
}

/// The bytes of one file before and after, as text.
struct Changed {
    file: String,
    before: String,
    after: String,
}

fn preview(
    app: &App,
    catalog: &Catalog,
    target: &HomeTarget,
    files: &[FileChange],
) -> std::result::Result<String, String> {
    let home = open(target)?;
    let (now, after) = evaluate(app, catalog, &home, target.expected);
    if now.outcome != HomeOutcome::Migrated || now.files != files {
        return Err("it changed since it was planned".to_owned());
    }
    let kept = home.read(SECRETS).ok().flatten().unwrap_or_default();
    let mut secrets = env::values(&String::from_utf8_lossy(&kept));
    let mut changed = Vec::new();
    for (file, bytes) in after {
        let originals = home.originals.borrow();
        let before = originals
            .get(&file)
            .ok_or_else(|| format!("{file} was never read"))?;
        let text = |bytes: &[u8]| {
            let text = std::str::from_utf8(bytes).map(str::to_owned);
            text.map_err(|_| format!("{file}: not UTF-8"))
        };
        let one = Changed {
            before: text(&before.bytes)?,
            after: text(&bytes)?,
            file,
        };
        for side in [&one.before, &one.after] {
            if one.file == SECRETS {
                secrets.extend(env::values(side));
            } else if let Ok(document) = parse(format_of(app, &one.file), side.as_bytes()) {
                secrets.extend(shown::secrets(document.value()));
            }
        }
        changed.push(one);
    }
    // Of a value of many lines each one tells enough.
    let rows = secrets.iter().flat_map(|secret| secret.lines());
    let rows: Vec<String> = rows.map(|row| row.trim().to_owned()).collect();
    secrets.extend(rows);
    let secrets = env::tellable(secrets);
    let mut diff = String::new();
    for one in &changed {
        diff.push_str(&of_file(app, target, one, &secrets));
        if diff.len() > LIMIT {
            return Err(format!("its diff is larger than {} MiB", LIMIT >> 20));
        }
    }
    Ok(diff)
}

fn of_file(app: &App, target: &HomeTarget, changed: &Changed, secrets: &[String]) -> String {
    let format = format_of(app, &changed.file);
    let before = Shown::new(format, &changed.before, secrets);
    let after = Shown::new(format, &changed.after, secrets);
    let name = target.path.join(&changed.file);
    unified(
        &visible(&name.to_string_lossy()),
        Side {
            text: &changed.before,
            shown: &|index| before.line(index),
        },
        Side {
            text: &changed.after,
            shown: &|index| after.line(index),
        },
    )
}
