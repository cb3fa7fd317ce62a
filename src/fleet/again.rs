//! The last look at an install before a runtime is started from it.
//!
//! Between a plan and a restart a package manager or the application's own updater may have begun to
//! replace the code; what starts then would import a mix of old and new.

use std::os::unix::fs::MetadataExt as _;

use serde::{Deserialize, Serialize};

use super::{Install, homes, installs};
use crate::app::App;
use crate::error::Result;
use crate::helper::Task;
use crate::world::World;

/// Task: looks at an install again, as its owner. The answer says why it must not be started from.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LookAgain {
    /// The application.
    pub app: App,
    /// The install as it was planned on.
    pub install: Install,
}

impl Task for LookAgain {
    const VERB: &'static str = "look-again";
    type Event = ();
    type Answer = Option<String>;

    fn perform(
        self,
        _world: &World,
        _tell: &mut dyn FnMut(()) -> Result<()>,
    ) -> Result<Option<String>> {
        let Self { app, install } = self;
        let updating = install
            .roots
            .iter()
            .find_map(|root| homes::active_updater(&app, root))
            .or_else(|| installs::active_lock(&app, &install.path.join(".git")));
        if let Some(seen) = updating {
            return Ok(Some(format!("updater: {seen}")));
        }
        let Some(planned) = &install.changed else {
            return Ok(None);
        };
        let file = planned.file.display();
        Ok(match std::fs::metadata(&planned.file) {
            Err(error) => Some(format!("its code changes now: {file}: {error}")),
            Ok(meta) if change_time(&meta) != planned.at_nanos => {
                Some(format!("its code changed since the plan ({file})"))
            }
            Ok(_) => None,
        })
    }
}

fn change_time(meta: &std::fs::Metadata) -> u64 {
    let nanos = i128::from(meta.ctime()) * 1_000_000_000 + i128::from(meta.ctime_nsec());
    u64::try_from(nanos).unwrap_or_default()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "changes an install to look at")]
mod tests {
    use super::*;
    use crate::fleet::{Changed, InstallKind};

    #[test]
    fn an_install_that_changed_since_the_plan_is_noticed() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("RECORD");
        std::fs::write(&file, "1").expect("ours");
        let meta = std::fs::metadata(&file).expect("there");
        let install = Install {
            id: "i".into(),
            path: dir.path().into(),
            package: "/opt/package".into(),
            interpreter: None,
            kind: InstallKind::Pip,
            uid: 0,
            version: None,
            config_version: Some(1),
            changed: Some(Changed {
                at_nanos: change_time(&meta),
                file: file.clone(),
            }),
            roots: Vec::new(),
            updater: None,
        };
        let look = || {
            let task = LookAgain {
                app: App::builtin("hermes").expect("built in"),
                install: install.clone(),
            };
            task.perform(&World::read().expect("proc"), &mut |()| Ok(()))
                .expect("it answers")
        };
        assert_eq!(look(), None);
        std::fs::write(&file, "2").expect("ours");
        assert!(look().is_some_and(|why| why.contains("changed since the plan")));
        std::fs::remove_file(&file).expect("ours");
        assert!(look().is_some_and(|why| why.contains("changes now")));
    }
}
