//! Whom a row of the mechanism table is for: its conditions, what they are asked about, and whether one
//! row's conditions leave anything for another's. Pure; only `table` and `rows` decide with it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::rows::one_or_many;
use crate::fleet::{Manager, Runtime, Supervisor};

/// Conditions that must all hold; an empty one holds for everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Match {
    /// Who keeps it running.
    #[serde(deserialize_with = "one_or_many")]
    pub manager: Vec<Owner>,
    /// Names of units; `*` and `?` as in a shell.
    #[serde(deserialize_with = "one_or_many")]
    pub unit: Vec<String>,
    /// Labels of launchd jobs.
    #[serde(deserialize_with = "one_or_many")]
    pub label: Vec<String>,
    /// Paths of control groups.
    #[serde(deserialize_with = "one_or_many")]
    pub cgroup: Vec<String>,
    /// Names of parent programs.
    #[serde(deserialize_with = "one_or_many")]
    pub parent: Vec<String>,
    /// Kinds of runtimes.
    #[serde(deserialize_with = "one_or_many")]
    pub kind: Vec<String>,
    /// Types of services (`simple`, `oneshot`, …).
    #[serde(rename = "type", deserialize_with = "one_or_many")]
    pub service_type: Vec<String>,
}

/// Who keeps a runtime running, as a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Owner {
    /// The system's systemd.
    System,
    /// A user's systemd.
    User,
    /// launchd.
    Launchd,
    /// s6.
    S6,
    /// The application's desktop program.
    Desktop,
    /// Another program that respawns it.
    External,
    /// A person's session.
    Scope,
    /// Nobody.
    Nobody,
    /// It is not known; a row must ask for it by this word.
    Unknown,
}

/// What the table is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject<'a> {
    /// Who keeps it running.
    pub owner: Owner,
    /// Its unit's name, or empty.
    pub unit: &'a str,
    /// Its launchd label, or empty.
    pub label: &'a str,
    /// Its control group's path, or empty.
    pub cgroup: &'a str,
    /// The name of the program that started it, or empty.
    pub parent: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// Its service's type, or empty.
    pub service_type: &'a str,
}
impl Match {
    /// The first condition that does not hold.
    pub(super) fn miss(&self, subject: &Subject<'_>) -> Option<String> {
        let owned = self.manager.is_empty() || self.manager.contains(&subject.owner);
        if !owned || (self.manager.is_empty() && subject.owner == Owner::Unknown) {
            return Some(format!("manager is {}", subject.owner));
        }
        self.globs()
            .into_iter()
            .zip(subject.values())
            .find(|((_, globs), value)| {
                !globs.is_empty() && !globs.iter().any(|pattern| glob(pattern, value))
            })
            .map(|((name, _), value)| match value {
                "" => format!("it has no {name}"),
                value => format!("{name} is {value}"),
            })
    }

    fn globs(&self) -> [(&'static str, &[String]); 6] {
        [
            ("unit", &self.unit),
            ("label", &self.label),
            ("cgroup", &self.cgroup),
            ("parent", &self.parent),
            ("kind", &self.kind),
            ("type", &self.service_type),
        ]
    }

    /// Whether everything that `other` describes is described by this, too.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let owners = self.manager.is_empty() && !other.manager.contains(&Owner::Unknown)
            || (!other.manager.is_empty()
                && other
                    .manager
                    .iter()
                    .all(|owner| self.manager.contains(owner)));
        let globs = self.globs().into_iter().zip(other.globs());
        owners
            && globs.into_iter().all(|((_, ours), (_, theirs))| {
                ours.is_empty()
                    || (!theirs.is_empty()
                        && theirs
                            .iter()
                            .all(|their| ours.iter().any(|our| glob_covers(our, their))))
            })
    }
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if !self.manager.is_empty() {
            let owners: Vec<String> = self.manager.iter().map(ToString::to_string).collect();
            parts.push(format!("manager {}", owners.join("|")));
        }
        for (name, globs) in self.globs() {
            if !globs.is_empty() {
                parts.push(format!("{name} {}", globs.join("|")));
            }
        }
        if parts.is_empty() {
            return f.write_str("anything");
        }
        f.write_str(&parts.join(", "))
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::System => "system",
            Self::User => "user",
            Self::Launchd => "launchd",
            Self::S6 => "s6",
            Self::Desktop => "desktop",
            Self::External => "external",
            Self::Scope => "scope",
            Self::Nobody => "nobody",
            Self::Unknown => "unknown",
        })
    }
}

impl<'a> Subject<'a> {
    /// The subject that a runtime is.
    #[must_use]
    pub fn of(runtime: &'a Runtime) -> Self {
        let mut subject = Self {
            owner: Owner::Unknown,
            unit: "",
            label: "",
            cgroup: runtime
                .process
                .as_ref()
                .map_or("", |process| process.cgroup.as_str()),
            parent: "",
            kind: &runtime.kind,
            service_type: runtime
                .unit
                .as_ref()
                .map_or("", |unit| unit.service_type.as_str()),
        };
        match &runtime.supervisor {
            Supervisor::Systemd { scope, unit } => {
                subject.owner = match scope {
                    Manager::System => Owner::System,
                    Manager::User(_) => Owner::User,
                };
                subject.unit = unit;
            }
            Supervisor::Scope { unit } => {
                subject.owner = Owner::Scope;
                subject.unit = unit;
            }
            Supervisor::Launchd { label, .. } => {
                subject.owner = Owner::Launchd;
                subject.label = label;
            }
            Supervisor::S6 { .. } => subject.owner = Owner::S6,
            Supervisor::Desktop { parent } => {
                subject.owner = Owner::Desktop;
                subject.parent = parent;
            }
            Supervisor::External { program, .. } => {
                subject.owner = Owner::External;
                subject.parent = program;
            }
            Supervisor::Nobody => subject.owner = Owner::Nobody,
            Supervisor::Unknown { .. } => {}
        }
        subject
    }

    const fn values(&self) -> [&'a str; 6] {
        [
            self.unit,
            self.label,
            self.cgroup,
            self.parent,
            self.kind,
            self.service_type,
        ]
    }
}
/// Whether a pattern with `*` (any text) and `?` (any character) matches all of `text`.
fn glob(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    // The last star takes one character more whenever what follows it does not fit.
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    p = at + 1;
                    t = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// Whether everything that `other` matches is matched by `pattern`. May answer no where yes is true.
fn glob_covers(pattern: &str, other: &str) -> bool {
    if pattern == other || pattern == "*" {
        return true;
    }
    if !other.contains(['*', '?']) {
        return glob(pattern, other);
    }
    match pattern.strip_suffix('*') {
        Some(prefix) if !prefix.contains(['*', '?']) => other.starts_with(prefix),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_whole_names() {
        for (pattern, text, expected) in [
            ("a*", "a", true),
            ("a*c", "abbc", true),
            ("a*b*c", "aXbYbZc", true),
            ("?", "", false),
            ("a", "ab", false),
            ("*", "", true),
            ("ssh@*.service", "ssh@1.service", true),
        ] {
            assert_eq!(glob(pattern, text), expected, "{pattern} {text}");
        }
    }
}
