//! Whose homes a helper is about, as its environment says it.
//!
//! One helper does the work of all homes of an account. What they have in common stands in its environment:
//! the tenant and the cell where all of them are of one, the profile and the folder where it is a single one.
//! Nothing reads it but a person who looks at the process (`ps e`); nothing that a helper does depends on it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What all homes of a piece of work have in common.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// The tenant's id, if it is one.
    pub tenant: Option<String>,
    /// The cell's id, if it is one.
    pub cell: Option<String>,
    /// The profile's id, if it is one home.
    pub profile: Option<String>,
    /// The variable by which the application is told its home, and the folder, if it is one home.
    pub home: Option<(String, PathBuf)>,
}

impl Subject {
    /// The names that hold one of the three ids, in order.
    pub const IDS: [&'static str; 3] = [
        "FLEET_UPDATE_TENANT",
        "FLEET_UPDATE_CELL",
        "FLEET_UPDATE_PROFILE",
    ];

    /// What one home says, whose variable the application may not have.
    #[must_use]
    pub fn of(
        tenant: &str,
        cell: &str,
        profile: &str,
        variable: Option<&str>,
        home: &Path,
    ) -> Self {
        Self {
            tenant: Some(tenant.to_owned()),
            cell: Some(cell.to_owned()),
            profile: Some(profile.to_owned()),
            home: variable.map(|variable| (variable.to_owned(), home.to_path_buf())),
        }
    }

    /// What this one and another have in common.
    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        let tenant = self.tenant.filter(|own| other.tenant.as_ref() == Some(own));
        let is_one_tenant = tenant.is_some();
        Self {
            // Two tenants may use one name for their cells.
            cell: self
                .cell
                .filter(|own| is_one_tenant && other.cell.as_ref() == Some(own)),
            tenant,
            // Two homes: there is no single one.
            profile: None,
            home: None,
        }
    }

    /// As variables of an environment.
    pub(super) fn variables(&self) -> impl Iterator<Item = (String, OsString)> {
        let ids = Self::IDS
            .into_iter()
            .zip([&self.tenant, &self.cell, &self.profile])
            .filter_map(|(name, id)| Some((name.to_owned(), OsString::from(id.as_ref()?))));
        let home = self.home.as_ref();
        ids.chain(home.map(|(variable, home)| (variable.clone(), home.clone().into_os_string())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(tenant: &str, cell: &str, profile: &str) -> Subject {
        Subject::of(tenant, cell, profile, Some("APP_HOME"), Path::new("/srv/a"))
    }

    fn said(subject: Subject) -> String {
        let variables: Vec<String> = subject
            .variables()
            .map(|(name, value)| format!("{name}={}", value.display()))
            .collect();
        variables.join(" ")
    }

    #[test]
    fn only_what_all_homes_have_in_common_is_said() {
        let one = home("acme", "blue", "ops");
        assert_eq!(
            said(one.clone()),
            "FLEET_UPDATE_TENANT=acme FLEET_UPDATE_CELL=blue FLEET_UPDATE_PROFILE=ops APP_HOME=/srv/a"
        );
        for (other, expected) in [
            (
                home("acme", "blue", "lab"),
                "FLEET_UPDATE_TENANT=acme FLEET_UPDATE_CELL=blue",
            ),
            (home("acme", "red", "ops"), "FLEET_UPDATE_TENANT=acme"),
            (home("umbra", "blue", "ops"), ""),
            (Subject::default(), ""),
        ] {
            assert_eq!(said(one.clone().and(&other)), expected, "{other:?}");
        }
        assert_eq!(said(Subject::default()), "");
    }

    #[test]
    fn an_application_without_a_variable_gets_the_ids_alone() {
        let subject = Subject::of("acme", "blue", "ops", None, Path::new("/srv/a"));
        assert!(said(subject).ends_with("FLEET_UPDATE_PROFILE=ops"));
    }
}
