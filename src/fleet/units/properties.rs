//! One reply of a manager about one unit, as a [`Unit`].
//!
//! What every unit has must be there; what only newer managers show, or only services, may be missing.
//! It asks once and concludes nothing.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use zbus::{OwnedObjectPath, OwnedVariant, Signature, Type, Variant};

use super::PROPERTIES;
use super::bus::{Bus, Trouble};
use crate::error::{Error, Kind, Result};
use crate::fleet::{Unit, procfs};

/// Reads a loaded unit whole.
///
/// # Errors
/// When the manager does not answer, or answers without what every unit has.
pub fn read(bus: &mut Bus, object: &str) -> Result<Unit, Trouble> {
    let mut units = read_each(bus, &[object]);
    units
        .pop()
        .unwrap_or_else(|| Err(Trouble::Lost(format!("{object} has no answer"))))
}

/// Reads loaded units, each whole in one reply: two would be torn (the state of before a restart with
/// the process of after it). The empty interface name asks for all interfaces of an object.
pub fn read_each(bus: &mut Bus, objects: &[&str]) -> Vec<Result<Unit, Trouble>> {
    let questions: Vec<_> = objects.iter().map(|object| (*object, "")).collect();
    let replies = bus.query_each(&questions, PROPERTIES, "GetAll");
    let manager = bus.manager();
    let unit = |reply: Properties| {
        let mut unit = reply
            .unit()
            .map_err(|error| Trouble::Lost(error.to_string()))?;
        unit.manager = Some(manager);
        Ok(unit)
    };
    replies.into_iter().map(|reply| unit(reply?)).collect()
}

/// One command of `ExecStart`: path, words, and when and how it ran.
type ExecCommand = (String, Vec<String>, bool, u64, u64, u64, u64, u32, i32, i32);

/// What is read of the three hundred properties of a service.
const READ: &[&str] = &[
    "ActiveEnterTimestampMonotonic",
    "ActiveExitTimestampMonotonic",
    "ActiveState",
    "BindsTo",
    "ConditionResult",
    "ConditionTimestampMonotonic",
    "ControlGroup",
    "DropInPaths",
    "Environment",
    "EnvironmentFiles",
    "ExecMainCode",
    "ExecMainStartTimestamp",
    "ExecMainStatus",
    "ExecStart",
    "FragmentPath",
    "FreezerState",
    "Id",
    "InactiveExitTimestampMonotonic",
    "InvocationID",
    "Job",
    "KillMode",
    "LoadState",
    "MainPID",
    "NRestarts",
    "NeedDaemonReload",
    "PartOf",
    "RefuseManualStart",
    "RefuseManualStop",
    "Requires",
    "Restart",
    "RestartPreventExitStatus",
    "RestartUSec",
    "Result",
    "SubState",
    "TimeoutStartUSec",
    "TimeoutStopUSec",
    "Type",
    "UnitFileState",
    "User",
    "WorkingDirectory",
];

/// The properties of one object that are read.
#[derive(Debug, Default)]
struct Properties(HashMap<String, OwnedVariant>);

impl Type for Properties {
    const SIGNATURE: &'static Signature = HashMap::<String, OwnedVariant>::SIGNATURE;
}

impl<'de> Deserialize<'de> for Properties {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(Reading)
    }
}

/// Passes over what nobody reads.
struct Reading;

impl<'de> Visitor<'de> for Reading {
    type Value = Properties;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the properties of an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Properties, A::Error> {
        let mut found = Properties::default();
        while let Some(name) = map.next_key::<&str>()? {
            if READ.binary_search(&name).is_ok() {
                found.0.insert(name.to_owned(), map.next_value()?);
            } else {
                map.next_value::<Variant<'_>>()?;
            }
        }
        Ok(found)
    }
}

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
        debug_assert!(READ.binary_search(&name).is_ok(), "{name} is not read");
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use zbus::wire::serialized::Context;
    use zbus::wire::{LE, to_bytes};

    use super::*;

    #[test]
    fn what_nobody_reads_is_passed_over_whatever_it_holds() {
        assert!(READ.is_sorted());
        let reply: BTreeMap<&str, Variant<'_>> = BTreeMap::from([
            ("After", Variant::new(vec!["a.target", "b.target"])),
            ("Id", Variant::new("a.service")),
            (
                "IPAddressAllow",
                Variant::new(vec![(2_i32, vec![1_u8], 32_u32)]),
            ),
            ("Job", Variant::new((7_u32, "/job"))),
            ("MainPID", Variant::new(12_u32)),
            ("Markers", Variant::new(Variant::new(true))),
        ]);
        let bytes = to_bytes(Context::new(LE, 0), &reply).expect("a message");
        let (mut found, _): (Properties, _) = bytes.deserialize().expect("read");
        assert_eq!(found.0.len(), 3);
        assert_eq!(found.take("Id"), Some(String::from("a.service")));
        assert_eq!(found.take("Job"), Some((7_u32, String::from("/job"))));
        assert_eq!(found.take("MainPID"), Some(12_u32));
    }
}
