//! What the names in braces stand for, in the instructions and commands of the mechanism table.
//!
//! What an instruction says is for a person who copies it: paths and command lines are quoted for a shell,
//! and what looks like a secret in them is masked. A command of a row gets no such text: it must not guess,
//! and nothing that a runtime's owner wrote is an argument of what root runs, but names.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::fleet::{Manager, Process, Runtime, Supervisor};
use crate::screen;

/// What braces stand for in instructions and arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fields(BTreeMap<String, String>);
impl Fields {
    /// What is known of a runtime; `user` is its owner's login name, and `reader` who will read it.
    #[must_use]
    pub fn of(runtime: &Runtime, reader: u32, user: &str, profile: &str, home: &str) -> Self {
        let mut fields = Self::default();
        fields.set("kind", &runtime.kind);
        fields.set("user", user);
        fields.set("uid", &runtime.uid.to_string());
        fields.set("profile", profile);
        fields.set("home", home);
        if let Some(process) = &runtime.process {
            fields.set("pid", &process.incarnation.pid.to_string());
            fields.set("container", container(&process.cgroup).unwrap_or_default());
            fields.set("command", &command_line(process));
            let folder = process.cwd.as_deref().map(|cwd| cwd.to_string_lossy());
            fields.set("folder", &quoted(&folder.unwrap_or_default()));
        }
        match &runtime.supervisor {
            Supervisor::Systemd { scope, unit } => {
                fields.set("unit", unit);
                fields.set("systemctl", &systemctl(*scope, reader, user));
            }
            Supervisor::Scope { unit } => fields.set("unit", unit),
            Supervisor::Launchd { domain, label } => {
                fields.set("domain", domain);
                fields.set("label", label);
            }
            Supervisor::S6 { slot } => fields.set("slot", &slot.to_string_lossy()),
            Supervisor::Desktop { parent } => fields.set("program", parent),
            Supervisor::External { program, .. } => fields.set("program", program),
            Supervisor::Nobody | Supervisor::Unknown { .. } => {}
        }
        fields
    }

    /// One field; empty where it is not known.
    #[must_use]
    pub fn of_name(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// Sets one field; an empty value leaves it unknown.
    pub fn set(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.0.insert(name.to_owned(), value.to_owned());
        }
    }

    /// Replaces every `{field}` of `text`.
    #[must_use]
    pub fn fill(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for piece in pieces(text) {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Field(name) => {
                    out.push_str(self.0.get(name).map_or("UNKNOWN", String::as_str));
                }
            }
        }
        out
    }

    /// Like [`Fields::fill`]; `None` where a field is not known: a command must not guess.
    #[must_use]
    pub fn fill_exactly(&self, text: &str) -> Option<String> {
        let known = |piece: &Piece<'_>| match piece {
            Piece::Text(_) => true,
            Piece::Field(name) => self.0.contains_key(*name),
        };
        pieces(text).iter().all(known).then(|| self.fill(text))
    }
}

/// The command with which somebody reaches a manager: root's own `systemctl --user` is root's manager.
fn systemctl(manager: Manager, reader: u32, user: &str) -> String {
    match manager {
        Manager::System => "systemctl".into(),
        Manager::User(uid) if uid == reader => "systemctl --user".into(),
        Manager::User(_) => format!("systemctl --user --machine={}@", quoted(user)),
    }
}

/// How a process was started, for a shell: the variables that say which home it serves, and its arguments.
fn command_line(process: &Process) -> String {
    let variables = process.env.iter().map(|(name, value)| {
        let value = if screen::is_secret_name(name) {
            screen::MASK.to_owned()
        } else {
            screen::text(value)
        };
        format!("{name}={}", quoted(&value))
    });
    let mut words: Vec<String> = variables.collect();
    let mut secret_follows = false;
    for word in &process.argv {
        let shown = if secret_follows {
            screen::MASK.to_owned()
        } else {
            match word.split_once('=') {
                Some((flag, _)) if flag.starts_with('-') && screen::is_secret_name(flag) => {
                    format!("{flag}={}", screen::MASK)
                }
                _ => screen::text(word),
            }
        };
        secret_follows =
            word.starts_with('-') && !word.contains('=') && screen::is_secret_name(word);
        words.push(quoted(&shown));
    }
    words.join(" ")
}

/// A word as a shell reads it back (sh(1), "Quoting").
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    if word.is_empty() || word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The id of the container that a control group is of: 64 hexadecimal digits, whoever made it.
fn container(cgroup: &str) -> Option<&str> {
    let mut words = cgroup.split(|c: char| !c.is_ascii_alphanumeric());
    words.rfind(|word| word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

pub(super) enum Piece<'a> {
    Text(&'a str),
    Field(&'a str),
}

pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, tail)) = after.split_once('}') else {
            break;
        };
        pieces.extend([Piece::Text(before), Piece::Field(name)]);
        rest = tail;
    }
    pieces.push(Piece::Text(rest));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_never_guesses_a_field() {
        let mut fields = Fields::default();
        fields.set("unit", "a.service");
        assert_eq!(fields.fill("x {unit} {pid}"), "x a.service UNKNOWN");
        assert_eq!(fields.fill_exactly("{unit}").as_deref(), Some("a.service"));
        assert_eq!(fields.fill_exactly("{unit} {pid}"), None);
    }

    #[test]
    fn a_command_line_can_be_pasted_and_shows_no_secret() {
        let mut process = crate::fleet::sample::process(7);
        process.env = vec![
            ("AGENT_HOME".into(), "/home/ann/it's here".into()),
            ("AGENT_TOKEN".into(), "abc".into()),
        ];
        process.argv = [
            "./bin/agent",
            "serve",
            "--port",
            "9118",
            "--api-key",
            "hunter2",
            "--token=x",
            "$(id)",
        ]
        .map(str::to_owned)
        .to_vec();
        assert_eq!(
            command_line(&process),
            r"AGENT_HOME='/home/ann/it'\''s here' AGENT_TOKEN='[masked]' ./bin/agent serve --port 9118 \
              --api-key '[masked]' '--token=[masked]' '$(id)'"
                .replace("\\\n              ", "")
        );
    }

    #[test]
    fn a_manager_is_reached_by_who_reads() {
        for (manager, reader, expected) in [
            (Manager::System, 0, "systemctl"),
            (Manager::User(1001), 1001, "systemctl --user"),
            (Manager::User(1001), 0, "systemctl --user --machine=ann@"),
        ] {
            assert_eq!(systemctl(manager, reader, "ann"), expected);
        }
    }

    #[test]
    fn a_container_is_known_by_the_id_in_its_control_group() {
        let id = "0123456789abcdef".repeat(4);
        for cgroup in [
            format!("/system.slice/docker-{id}.scope"),
            format!("/docker/{id}"),
            format!("/machine.slice/libpod-{id}.scope/container"),
        ] {
            assert_eq!(container(&cgroup), Some(id.as_str()), "{cgroup}");
        }
        assert_eq!(container("/system.slice/agent.service"), None);
    }
}
