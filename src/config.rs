//! The site's configuration: `config.toml` and `conf.d/*.toml` (fleet-update-config(5)).
//!
//! Read from `/etc/fleet-update` by root and from `$XDG_CONFIG_HOME/fleet-update` by anybody else.
//! Files are read in the order of their names, `config.toml` first; a later value replaces an
//! earlier one and lists are joined. An unknown key is an error that names the file and the line.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind, Result};
use crate::world::World;

/// Everything that a site can say; what it does not say is `None` or empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Defaults of the command line.
    pub run: RunDefaults,
    /// Homes that no rule finds.
    pub home: Vec<ExtraHome>,
    /// What is accepted or left alone, and why.
    pub policy: Policy,
    /// Who is told of a verdict.
    pub notify: Notify,
    /// How a package's hook behaves.
    pub hook: Hook,
    /// Where secrets come from.
    pub secrets: Secrets,
}

/// How a run behaves that a package's hook started (`--trigger package`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Hook {
    /// Whether it migrates homes. Where nothing is said: only where it also sees what runs on them, so
    /// not in a chroot, without a service manager or during a shutdown.
    pub migrate: Option<bool>,
    /// How long a hook may take; what is left then is the next run's.
    pub limit: Option<Limit>,
}

/// Where the values of secret references come from, besides the service manager's credentials.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Secrets {
    /// A folder of files that are ours alone, each 0600.
    pub folder: Option<PathBuf>,
}

/// Defaults of the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunDefaults {
    /// When runtimes are restarted.
    pub restart: Option<RestartWhen>,
    /// Whether the application's own migrator may be asked where the catalog ends.
    pub native_migrate: Option<bool>,
    /// How many restarts run side by side.
    pub jobs: Option<u32>,
    /// How many failures end the restarts after the first wave.
    pub max_failures: Option<u32>,
    /// How long a whole run may take.
    pub deadline: Option<Limit>,
    /// How long a run waits for another one.
    pub lock_timeout: Option<Limit>,
    /// Where the result is written as metrics.
    pub metrics_file: Option<PathBuf>,
    /// How many snapshots are kept, and for how long.
    pub keep: Option<Keep>,
    /// For how many days a request and its receipt are kept, 1 to 365.
    pub request_days: Option<RequestDays>,
}

/// Who is told of a verdict: an absolute program with its arguments. The receipt's path and the verdict
/// follow them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Notify {
    /// Run after a run that was clean.
    pub on_clean: Vec<String>,
    /// Run after a run that was anything else: not clean, refused or interrupted.
    pub on_not_clean: Vec<String>,
    /// How long it may take.
    pub limit: Option<Limit>,
}

/// For how many days a request is kept: 1 to 365.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestDays(pub u32);

impl<'de> Deserialize<'de> for RequestDays {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let days = u32::deserialize(deserializer)?;
        if (1..=365).contains(&days) {
            return Ok(Self(days));
        }
        Err(serde::de::Error::custom(
            "request_days is not within 1 and 365",
        ))
    }
}

/// What is kept: so many, those younger than an age, or what both say. The last good one is always kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// No more than this many.
    pub count: Option<usize>,
    /// None that is older.
    pub age: Option<Duration>,
}

impl std::str::FromStr for Keep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || format!("{text:?} is not what to keep, such as 20, 90d or 20,90d");
        let mut keep = Self {
            count: None,
            age: None,
        };
        for part in text.split(',') {
            if let Ok(count) = part.parse::<usize>() {
                keep.count = Some(count.max(1));
            } else if let Some(days) = part.strip_suffix('d').and_then(|days| days.parse().ok()) {
                keep.age = Some(Duration::from_secs(24 * 60 * 60).saturating_mul(days));
            } else {
                keep.age = Some(part.parse::<Limit>().map_err(|_| invalid())?.0);
            }
        }
        Ok(keep)
    }
}

impl<'de> Deserialize<'de> for Keep {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// When runtimes are restarted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum RestartWhen {
    /// Those that still serve an old state.
    #[default]
    Stale,
    /// All that run.
    Always,
    /// None; stale ones are reported.
    Never,
}

/// A home that no rule finds.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtraHome {
    /// Absolute path of the home.
    pub path: PathBuf,
}

/// What is accepted or left alone, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// Outcomes that do not make a run unclean.
    pub accept: Vec<Accept>,
    /// Runtimes and homes that are never touched.
    pub skip: Vec<Skip>,
}

/// An outcome that a site knows of and accepts. The row keeps its outcome and says `accepted`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accept {
    /// The home's path.
    #[serde(default)]
    pub home: Option<PathBuf>,
    /// The unit's name.
    #[serde(default)]
    pub unit: Option<String>,
    /// The outcome, exactly.
    pub outcome: String,
    /// Why it is fine; shown in the receipt.
    pub reason: String,
}

/// Something that is never touched.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skip {
    /// The home's path.
    #[serde(default)]
    pub home: Option<PathBuf>,
    /// The unit's name.
    #[serde(default)]
    pub unit: Option<String>,
    /// Why; shown in the receipt.
    pub reason: String,
}

/// A length of time as people write it: `30s`, `5m`, `1h 30m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit(pub Duration);

impl std::str::FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Systemd reads a bare number as seconds, and so do people.
        let spelled = if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
            format!("{text}s")
        } else {
            text.to_owned()
        };
        spelled
            .parse::<jiff::SignedDuration>()
            .ok()
            .and_then(|duration| Duration::try_from(duration).ok())
            .map(Self)
            .ok_or_else(|| format!("{text:?} is not a length of time such as 30s, 5m or 1h"))
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// Where a run reads and writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The configuration's folder.
    pub config_dir: PathBuf,
    /// The state folder.
    pub state_dir: PathBuf,
    /// The lock file.
    pub lock: PathBuf,
}

impl Places {
    /// The places of this account; `state_dir` replaces the usual state folder.
    ///
    /// # Errors
    /// When the account has no home folder and says nowhere where its state shall be.
    pub fn of(world: &World, state_dir: Option<&Path>) -> Result<Self> {
        if world.is_root() {
            return Ok(Self {
                config_dir: "/etc/fleet-update".into(),
                state_dir: state_dir
                    .map_or_else(|| "/var/lib/fleet-update".into(), Path::to_path_buf),
                lock: "/run/fleet-update/lock".into(),
            });
        }
        let home = &world.account.home;
        let below_home =
            |relative: &str| (!home.as_os_str().is_empty()).then(|| home.join(relative));
        let state_dir = state_dir
            .map(Path::to_path_buf)
            .or_else(|| {
                own_dir(world, "XDG_STATE_HOME")
                    .or_else(|| below_home(".local/state"))
                    .map(|dir| dir.join("fleet-update"))
            })
            .ok_or_else(|| {
                Error::new(
                    Kind::Input,
                    format!(
                        "user {} has no home folder for the state",
                        world.account.name
                    ),
                )
                .with_hint("name a folder with --state-dir")
            })?;
        let config_dir = own_dir(world, "XDG_CONFIG_HOME")
            .or_else(|| below_home(".config"))
            .map_or_else(|| state_dir.join("config"), |dir| dir.join("fleet-update"));
        // The runtime folder is computed, not taken from a variable that su(1) may have leaked.
        let runtime_dir = world.account.runtime_dir();
        let lock = if runtime_dir.is_dir() {
            runtime_dir.join("fleet-update").join("lock")
        } else {
            state_dir.join("lock")
        };
        Ok(Self {
            config_dir,
            state_dir,
            lock,
        })
    }
}

/// A base directory variable counts only if it is not another user's (su and sudo leak them).
fn own_dir(world: &World, variable: &str) -> Option<PathBuf> {
    use std::os::unix::fs::MetadataExt as _;
    let path = world.absolute_path(variable)?;
    let nearest = path.ancestors().find_map(|dir| {
        std::fs::metadata(dir)
            .ok()
            .map(|meta| (dir == path, meta.uid()))
    });
    match nearest {
        Some((true, uid)) if uid == world.account.uid => Some(path),
        Some((false, uid)) if uid == world.account.uid => Some(path),
        _ => None,
    }
}

impl Config {
    /// Reads `file` alone if it is given, else the files of the configuration folder.
    ///
    /// # Errors
    /// When a file cannot be read, or holds something that is not known.
    pub fn load(places: &Places, file: Option<&Path>) -> Result<Self> {
        let mut config = Self::default();
        if let Some(file) = file {
            config.merge(Self::read(file)?.unwrap_or_default());
            if !file.exists() {
                return Err(Error::new(
                    Kind::Input,
                    format!("there is no {}", file.display()),
                ));
            }
            return Ok(config);
        }
        if let Some(first) = Self::read(&places.config_dir.join("config.toml"))? {
            config.merge(first);
        }
        for (path, text) in fragments(&places.config_dir.join("conf.d"))? {
            config.merge(Self::parse(&text, &path)?);
        }
        Ok(config)
    }

    fn read(path: &Path) -> Result<Option<Self>> {
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text, path).map(Some),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(format!("cannot read {}", path.display()), error)),
        }
    }

    fn parse(text: &str, path: &Path) -> Result<Self> {
        let config: Self =
            toml_edit::de::from_str(text).map_err(|error| parse_error(path, text, &error))?;
        for accept in &config.policy.accept {
            if accept.home.is_none() == accept.unit.is_none() {
                return Err(Error::new(
                    Kind::Input,
                    format!(
                        "{}: policy.accept names either a home or a unit",
                        path.display()
                    ),
                ));
            }
        }
        for skip in &config.policy.skip {
            if skip.home.is_none() == skip.unit.is_none() {
                return Err(Error::new(
                    Kind::Input,
                    format!(
                        "{}: policy.skip names either a home or a unit",
                        path.display()
                    ),
                ));
            }
        }
        if let Some(home) = config.home.iter().find(|home| !home.path.is_absolute()) {
            return Err(Error::new(
                Kind::Input,
                format!(
                    "{}: home.path {:?} is not absolute",
                    path.display(),
                    home.path
                ),
            ));
        }
        for argv in [&config.notify.on_clean, &config.notify.on_not_clean] {
            if argv
                .first()
                .is_some_and(|one| !Path::new(one).is_absolute())
            {
                return Err(Error::new(
                    Kind::Input,
                    format!("{}: notify: {:?} is not absolute", path.display(), argv[0]),
                )
                .with_hint("no shell looks for it: name the program with its whole path"));
            }
        }
        if let Some(file) = config.run.metrics_file.as_ref()
            && !file.is_absolute()
        {
            return Err(Error::new(
                Kind::Input,
                format!(
                    "{}: run.metrics_file {file:?} is not absolute",
                    path.display()
                ),
            ));
        }
        Ok(config)
    }

    fn merge(&mut self, later: Self) {
        let run = later.run;
        self.run.restart = run.restart.or(self.run.restart);
        self.run.native_migrate = run.native_migrate.or(self.run.native_migrate);
        self.run.jobs = run.jobs.or(self.run.jobs);
        self.run.max_failures = run.max_failures.or(self.run.max_failures);
        self.run.deadline = run.deadline.or(self.run.deadline);
        self.run.lock_timeout = run.lock_timeout.or(self.run.lock_timeout);
        self.run.metrics_file = run.metrics_file.or_else(|| self.run.metrics_file.take());
        let notify = later.notify;
        if !notify.on_clean.is_empty() {
            self.notify.on_clean = notify.on_clean;
        }
        if !notify.on_not_clean.is_empty() {
            self.notify.on_not_clean = notify.on_not_clean;
        }
        self.notify.limit = notify.limit.or(self.notify.limit);
        self.hook.migrate = later.hook.migrate.or(self.hook.migrate);
        self.hook.limit = later.hook.limit.or(self.hook.limit);
        self.run.keep = run.keep.or(self.run.keep);
        self.run.request_days = run.request_days.or(self.run.request_days);
        self.secrets.folder = later.secrets.folder.or(self.secrets.folder.take());
        self.home.extend(later.home);
        self.policy.accept.extend(later.policy.accept);
        self.policy.skip.extend(later.policy.skip);
    }
}

/// The `*.toml` files of a folder in the order of their names; none where there is no folder.
///
/// # Errors
/// When the folder or one of the files cannot be read.
pub fn fragments(folder: &Path) -> Result<Vec<(PathBuf, String)>> {
    let failed = |error| Error::io(format!("cannot read {}", folder.display()), error);
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            paths.push(path);
        }
    }
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path)
                .map_err(|error| Error::io(format!("cannot read {}", path.display()), error))?;
            Ok((path, text))
        })
        .collect()
}

/// One line that names the file, the line and what is wrong there.
fn parse_error(path: &Path, text: &str, error: &toml_edit::de::Error) -> Error {
    let line = error.span().map_or(0, |span| {
        text.get(..span.start).unwrap_or(text).matches('\n').count() + 1
    });
    let place = if line == 0 {
        path.display().to_string()
    } else {
        format!("{} line {line}", path.display())
    };
    Error::new(Kind::Input, format!("{place}: {}", error.message()))
        .with_hint("fleet-update-config(5) lists the keys")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_names_the_file_and_the_line() {
        let error = Config::parse("[run]\njobs = 4\nfoo = 1\n", Path::new("/etc/x.toml"))
            .expect_err("unknown key");
        assert!(
            error
                .to_string()
                .starts_with("/etc/x.toml line 3: unknown field `foo`"),
            "{error}"
        );
    }

    #[test]
    fn a_later_file_replaces_values_and_joins_lists() {
        let path = Path::new("x.toml");
        let mut config =
            Config::parse("[run]\njobs = 4\n[[home]]\npath = \"/a\"\n", path).expect("valid");
        config.merge(
            Config::parse("[run]\njobs = 5\n[[home]]\npath = \"/b\"\n", path).expect("valid"),
        );
        config.merge(Config::parse("[hook]\nmigrate = true\n", path).expect("valid"));
        config.merge(Config::parse("[hook]\nlimit = \"10s\"\n", path).expect("valid"));
        assert_eq!(config.hook.migrate, Some(true));
        assert_eq!(config.hook.limit, Some(Limit(Duration::from_secs(10))));
        assert_eq!(config.run.jobs, Some(5));
        assert_eq!(config.home.len(), 2);
    }

    #[test]
    fn lengths_of_time_are_read_as_people_write_them() {
        assert_eq!("90".parse(), Ok(Limit(Duration::from_secs(90))));
        assert_eq!("5m".parse(), Ok(Limit(Duration::from_secs(300))));
        assert!("soon".parse::<Limit>().is_err());
        assert!("-5s".parse::<Limit>().is_err());
        assert!("".parse::<Limit>().is_err());
    }

    #[test]
    fn a_notification_is_an_absolute_program() {
        let path = Path::new("x.toml");
        let error = Config::parse("[notify]\non-not-clean = [\"mail\", \"root\"]\n", path);
        assert!(error.is_err_and(|error| error.to_string().contains("\"mail\" is not absolute")));
        let config = Config::parse("[notify]\non-not-clean = [\"/bin/mail\"]\n", path);
        assert_eq!(config.expect("valid").notify.on_not_clean, ["/bin/mail"]);
    }

    #[test]
    fn a_policy_names_one_thing() {
        let text = "[[policy.accept]]\noutcome = \"invalid\"\nreason = \"r\"\n";
        assert!(Config::parse(text, Path::new("x.toml")).is_err());
    }
}
