//! What is known of an application: its descriptor, read from `migrations/<app>/app.toml`.
//!
//! The descriptor is data. It says where homes are, which file holds the configuration and its
//! version, how a runtime and its home are recognised, and how the version that the code expects
//! is read. It decides nothing, and a second application needs no line of Rust.

use std::path::{Component, Path};

use include_dir::{Dir, include_dir};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind, Result};

pub use expression::Expression;

mod expression;

/// The applications and migrations that are part of the program.
pub static BUILTIN: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/migrations");

/// The name of the application that is meant when none is named.
pub const DEFAULT: &str = "hermes";

/// An application with profile homes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct App {
    /// Short name: the folder below `migrations/`.
    pub name: String,
    /// The name that people know it by.
    pub title: String,
    /// Where its homes are.
    pub home: HomeRules,
    /// Which file of a home holds the configuration.
    pub config: ConfigRules,
    /// How its code is found and read.
    #[serde(default)]
    pub code: CodeRules,
    /// How its command line is recognised.
    #[serde(default)]
    pub command: CommandRules,
    /// How a process that the application's desktop program keeps is told.
    #[serde(default)]
    pub desktop: DesktopRules,
    /// Its own migrator, for versions that no step here leads to.
    #[serde(default)]
    pub migrator: Option<Migrator>,
    /// What of it runs.
    #[serde(default, rename = "runtime")]
    pub runtimes: Vec<RuntimeKind>,
}

/// Where an application's homes are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HomeRules {
    /// The variable that names a root home, or one profile inside it.
    #[serde(default)]
    pub env: Option<String>,
    /// The root home, relative to an account's home folder.
    pub root: String,
    /// Absolute places of system services' root homes; `*` stands for one folder name.
    #[serde(default)]
    pub system: Vec<String>,
    /// The folder below the root home that holds the siblings, if there can be any.
    #[serde(default)]
    pub profiles: Option<String>,
    /// The file in the root home that names the profile that a plain start uses.
    #[serde(default)]
    pub active: Option<String>,
    /// The profile that the root home itself is.
    pub default_profile: String,
    /// What a profile's name looks like (a regular expression for the whole name).
    pub profile_pattern: Expression,
    /// A folder below `profiles` is a profile only if it holds one of these.
    #[serde(default)]
    pub markers: Vec<String>,
}

/// Which file of a home holds the configuration, and its version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigRules {
    /// The file's name, relative to the home.
    pub file: String,
    /// How the file is written.
    pub format: Format,
    /// The top-level key that holds the version.
    pub version: String,
    /// Files below this version are left alone.
    #[serde(default)]
    pub floor: u32,
}

/// How a file of a home is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// YAML, read by the rules of version 1.1.
    Yaml,
    /// TOML 1.0.
    Toml,
    /// JSON.
    Json,
    /// `NAME=value` lines.
    Env,
    /// Text without structure.
    Text,
}

/// How an application's own migrator is started, which asks nothing. It is used only where a person allows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Migrator {
    /// Program and arguments; `{python}` stands for the interpreter of the install that serves the home.
    pub command: Vec<String>,
    /// The files of a home that it is given beside the configuration, and how each is written.
    #[serde(default)]
    pub files: std::collections::BTreeMap<String, Format>,
    /// Top-level keys of the configuration that it must leave as they are.
    #[serde(default)]
    pub protected: Vec<String>,
    /// How many seconds it may take.
    pub limit_secs: u32,
}

/// How an application's code is found, and how its versions are read from files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodeRules {
    /// The package folder inside a code tree.
    #[serde(default)]
    pub package: String,
    /// Names under which it is installed.
    #[serde(default)]
    pub distributions: Vec<String>,
    /// Files of the package that may hold the expected configuration version; the first that does counts.
    #[serde(default)]
    pub version_files: Vec<String>,
    /// A regular expression whose first group is that version.
    #[serde(default)]
    pub version_pattern: String,
    /// How releases are ordered.
    #[serde(default)]
    pub versions: VersionScheme,
    /// A checkout's place below a root home.
    #[serde(default)]
    pub checkout: Option<String>,
    /// Where a checkout keeps its virtual environment.
    #[serde(default)]
    pub checkout_venvs: Vec<String>,
    /// Files below a root home that exist while the application's own updater is active.
    #[serde(default)]
    pub updating: Vec<String>,
    /// Files in a checkout's git folder that are locked (flock(2)) while the application's own updater is active.
    #[serde(default)]
    pub update_locks: Vec<String>,
}

/// How releases are ordered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VersionScheme {
    /// Semantic versioning.
    #[default]
    Semver,
    /// Python's version specifiers.
    Pep440,
}

/// How an application's command line is recognised: by tokens, never by substrings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandRules {
    /// Modules that an interpreter runs with `-m`.
    #[serde(default)]
    pub modules: Vec<String>,
    /// File names of its scripts or executables.
    #[serde(default)]
    pub scripts: Vec<String>,
    /// Sources of the application's launchers, which an interpreter gets with `-c` and which run one of these modules
    /// or scripts in the same process. Groups of the expression say which, and more; all but `module` are written as
    /// Python writes a text: `module`, `script` or `source` (a launcher's source again), `words` (a list that
    /// replaces the words of the command line), `site` (the folder in which imports are looked up first), `home` (the
    /// home that is used unless the environment names one).
    #[serde(default)]
    pub inline: Vec<Expression>,
    /// Flags that name the profile.
    #[serde(default)]
    pub profile_flags: Vec<String>,
}

/// How a process that the application's desktop program keeps is told from one that merely inherited
/// its environment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DesktopRules {
    /// Variables that all are set for a child of the desktop program; their values are never kept.
    #[serde(default)]
    pub env: Vec<String>,
    /// Flags that only a desktop program on another machine passes.
    #[serde(default)]
    pub remote_flags: Vec<String>,
}

/// A kind of runtime.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuntimeKind {
    /// The word for it.
    pub kind: String,
    /// The words of the command line that start it, after flags.
    pub subcommand: Vec<String>,
    /// The words that a person would use to start it again.
    #[serde(default)]
    pub start: Vec<String>,
    /// What it says of itself, if anything.
    #[serde(default, rename = "self")]
    pub self_report: Option<SelfRules>,
}

/// Where a runtime says of itself what it is; the paths are relative to its home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelfRules {
    /// JSON with `pid` and `start_time`.
    pub pid_file: String,
    /// JSON with `pid`, `start_time` and a state.
    pub state_file: String,
    /// The key of that file that holds the state.
    pub state_key: String,
    /// The key, there and in the socket's answer, that holds the home that is served.
    #[serde(default)]
    pub home_key: Option<String>,
    /// A file that a living runtime holds locked (flock(2)).
    #[serde(default)]
    pub lock_file: Option<String>,
    /// A Unix socket that answers `{"verb":"identify"}`.
    #[serde(default)]
    pub socket_file: Option<String>,
    /// A file that holds the path of that socket, where it is elsewhere.
    #[serde(default)]
    pub socket_pointer: Option<String>,
    /// States that mean that it serves.
    pub running: Vec<String>,
    /// States that mean that it will serve soon.
    #[serde(default)]
    pub starting: Vec<String>,
    /// States that mean that it finishes its work.
    #[serde(default)]
    pub draining: Vec<String>,
    /// States that mean that it was stopped on purpose.
    #[serde(default)]
    pub stopped: Vec<String>,
    /// States that mean that it does not serve as it should.
    #[serde(default)]
    pub failed: Vec<String>,
}

impl App {
    /// Reads the descriptor of a built-in application.
    ///
    /// # Errors
    /// When there is no application of that name, or its descriptor is not valid.
    pub fn builtin(name: &str) -> Result<Self> {
        let path = Path::new(name).join("app.toml");
        let file = BUILTIN.get_file(&path).ok_or_else(|| {
            Error::new(Kind::Usage, format!("unknown application {name:?}"))
                .with_hint(format!("known are: {}", Self::names().join(", ")))
        })?;
        let text = file.contents_utf8().unwrap_or_default();
        Self::parse(text, &path)
    }

    /// Reads a descriptor from its text; `path` is named in errors.
    ///
    /// # Errors
    /// When the text is not a valid descriptor.
    pub fn parse(text: &str, path: &Path) -> Result<Self> {
        let app: Self = toml_edit::de::from_str(text).map_err(|error| {
            Error::new(Kind::Input, format!("cannot read {}", path.display())).with_source(error)
        })?;
        let inline = app.command.inline.iter();
        let version = regex_lite::Regex::new(&app.code.version_pattern);
        for (key, checked) in [
            ("home.profile_pattern", app.home.profile_pattern.check()),
            ("code.version_pattern", version.map(drop)),
        ]
        .into_iter()
        .chain(inline.map(|form| ("command.inline", form.check())))
        {
            checked.map_err(|error| {
                Error::new(Kind::Input, format!("{}: {key}", path.display())).with_source(error)
            })?;
        }
        if let Some(migrator) = &app.migrator {
            let is_plain = |name: &String| {
                let parts = Path::new(name).components();
                !name.is_empty()
                    && parts
                        .into_iter()
                        .all(|part| matches!(part, Component::Normal(_)))
            };
            if migrator.command.is_empty() || !migrator.files.keys().all(is_plain) {
                let what = format!(
                    "{}: migrator needs a command, and files inside a home",
                    path.display()
                );
                return Err(Error::new(Kind::Input, what));
            }
        }
        Ok(app)
    }

    /// The names of the built-in applications, in order.
    #[must_use]
    pub fn names() -> Vec<String> {
        let mut names: Vec<String> = BUILTIN
            .dirs()
            .filter(|dir| dir.get_file(dir.path().join("app.toml")).is_some())
            .map(|dir| dir.path().to_string_lossy().into_owned())
            .collect();
        names.sort_unstable();
        names
    }

    /// The kind of runtime with this name.
    #[must_use]
    pub fn runtime(&self, kind: &str) -> Option<&RuntimeKind> {
        self.runtimes.iter().find(|runtime| runtime.kind == kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_builtin_application_has_a_valid_descriptor() {
        for name in App::names() {
            let app = App::builtin(&name);
            assert!(app.as_ref().is_ok_and(|app| app.name == name), "{app:?}");
        }
        assert!(App::names().contains(&DEFAULT.to_owned()));
    }

    #[test]
    fn a_migrator_is_given_files_of_a_home_alone() {
        let text = BUILTIN
            .get_file("hermes/app.toml")
            .expect("part of the program");
        let text = text.contents_utf8().expect("text");
        for (name, is_valid) in [
            (".env", true),
            ("a/b.env", true),
            ("../.env", false),
            ("/etc/x", false),
        ] {
            let text = text.replace("\".env\" = \"env\"", &format!("\"{name}\" = \"env\""));
            assert_eq!(
                App::parse(&text, Path::new("a")).is_ok(),
                is_valid,
                "{name}"
            );
        }
        let without = text.replace("command = [\"{python}\"", "command = [] # ");
        assert!(App::parse(&without, Path::new("a")).is_err());
    }

    #[test]
    fn an_unknown_application_is_a_usage_error_that_names_the_known_ones() {
        let error = App::builtin("nope").expect_err("there is no such application");
        assert_eq!(error.kind(), Kind::Usage);
        assert!(error.hint().is_some_and(|hint| hint.contains(DEFAULT)));
    }
}
