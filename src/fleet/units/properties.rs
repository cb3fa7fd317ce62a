//! One reply of a manager about one unit, as a [`Unit`].
//!
//! What every unit has must be there; what only newer managers show, or only services, may be missing.
//! It asks once and concludes nothing.

use std::collections::HashMap;
use std::path::PathBuf;

use zbus::{OwnedObjectPath, OwnedVariant};

use super::PROPERTIES;
use super::bus::{Bus, Trouble};
use crate::error::{Error, Kind, Result};
use crate::fleet::{Unit, procfs};

/// Reads a loaded unit whole, in one reply: two would be torn (the state of before a restart with
/// the process of after it). The empty interface name asks for all interfaces of the object.
///
/// # Errors
/// When the manager does not answer, or answers without what every unit has.
pub fn read(bus: &mut Bus, object: &str) -> Result<Unit, Trouble> {
    let reply: HashMap<String, OwnedVariant> = bus.query(object, PROPERTIES, "GetAll", &"")?;
    let mut unit = Properties(reply)
        .unit()
        .map_err(|error| Trouble::Lost(error.to_string()))?;
    unit.manager = Some(bus.manager());
    Ok(unit)
}

/// One command of `ExecStart`: path, words, and when and how it ran.
type ExecCommand = (String, Vec<String>, bool, u64, u64, u64, u64, u32, i32, i32);

/// The properties of one object.
#[derive(Debug)]
struct Properties(HashMap<String, OwnedVariant>);

impl Properties {
    fn unit(mut self) -> Result<Unit> {
        let name = self.must("Id")?;
        let mut unit = Unit {
            loaded: true,
            load_state: self.must("LoadState")?,
            active_state: self.must("ActiveState")?,
            sub_state: self.must("SubState")?,
            name,
            ..Unit::default()
        };
        let invocation: Vec<u8> = self.must("InvocationID")?;
        unit.invocation_id = invocation.iter().fold(String::new(), |mut text, byte| {
            text.push_str(&format!("{byte:02x}"));
            text
        });
        let (id, path): (u32, OwnedObjectPath) = self.must("Job")?;
        unit.job_id = id;
        unit.job_path = path.to_string();
        unit.unit_file_state = self.may("UnitFileState");
        unit.fragment_path = self.may::<String>("FragmentPath").into();
        unit.drop_in_paths = self.paths("DropInPaths");
        unit.need_daemon_reload = self.may("NeedDaemonReload");
        unit.condition_result = self.may("ConditionResult");
        unit.condition_timestamp_monotonic = self.may("ConditionTimestampMonotonic");
        unit.active_enter_monotonic = self.may("ActiveEnterTimestampMonotonic");
        unit.active_exit_monotonic = self.may("ActiveExitTimestampMonotonic");
        unit.inactive_exit_monotonic = self.may("InactiveExitTimestampMonotonic");
        unit.binds_to = self.may("BindsTo");
        unit.requires = self.may("Requires");
        unit.part_of = self.may("PartOf");
        unit.refuse_manual_start = self.may("RefuseManualStart");
        unit.refuse_manual_stop = self.may("RefuseManualStop");
        if unit.name.ends_with(".service") {
            // Units that could not be loaded have no service properties worth anything, but they
            // have them all: a reply without the main process is no reply.
            unit.main_pid = self.must("MainPID")?;
            self.service(&mut unit);
        }
        Ok(unit)
    }

    fn service(&mut self, unit: &mut Unit) {
        unit.control_group = self.may("ControlGroup");
        let freezer: String = self.may("FreezerState");
        // A slice above it, or somebody past the manager, may have frozen it as well.
        unit.is_frozen = matches!(freezer.as_str(), "frozen" | "freezing")
            || procfs::is_frozen(&unit.control_group);
        unit.result = self.may("Result");
        unit.exec_main_code = self.may("ExecMainCode");
        unit.exec_main_status = self.may("ExecMainStatus");
        unit.exec_main_start_usec = self.may("ExecMainStartTimestamp");
        unit.service_type = self.may("Type");
        unit.restart = self.may("Restart");
        unit.restart_usec = self.may("RestartUSec");
        unit.timeout_start_usec = self.may("TimeoutStartUSec");
        unit.timeout_stop_usec = self.may("TimeoutStopUSec");
        unit.n_restarts = self.may("NRestarts");
        unit.environment = self.may("Environment");
        // A folder that may be missing is shown with a `!` before it.
        let folder: String = self.may("WorkingDirectory");
        unit.working_directory = folder.trim_start_matches('!').into();
        unit.user = self.may("User");
        unit.kill_mode = self.may("KillMode");
        let commands: Vec<ExecCommand> = self.may("ExecStart");
        unit.exec_start = commands
            .into_iter()
            .map(|command| {
                // The path says what runs; with `@` the first word is only what it is called.
                let words = command.1.into_iter().skip(1);
                std::iter::once(command.0).chain(words).collect()
            })
            .collect();
        let files: Vec<(String, bool)> = self.may("EnvironmentFiles");
        unit.environment_files = files.into_iter().map(|(path, _)| path.into()).collect();
        let (statuses, _signals): (Vec<i32>, Vec<i32>) = self.may("RestartPreventExitStatus");
        unit.restart_prevent_status = statuses;
    }

    fn take<T: TryFrom<OwnedVariant>>(&mut self, name: &str) -> Option<T> {
        self.0.remove(name).and_then(|value| value.try_into().ok())
    }

    /// A property that every unit has: without it nothing may be concluded.
    fn must<T: TryFrom<OwnedVariant>>(&mut self, name: &str) -> Result<T> {
        self.take(name)
            .ok_or_else(|| Error::new(Kind::Protocol, format!("a unit was shown without {name}")))
    }

    fn may<T: TryFrom<OwnedVariant> + Default>(&mut self, name: &str) -> T {
        self.take(name).unwrap_or_default()
    }

    fn paths(&mut self, name: &str) -> Vec<PathBuf> {
        let names: Vec<String> = self.may(name);
        names.into_iter().map(PathBuf::from).collect()
    }
}
