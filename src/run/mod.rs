//! The subcommands: each file here is one, and `apply` alone knows the order of a run.
//!
//! This file reads the command line and the configuration into a [`Session`], which every subcommand
//! receives, and turns what a subcommand answers into an exit status.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser as _;

use crate::app::App;
use crate::cli::{Cli, Command, Trigger};
use crate::config::{Config, Keep, Places, RestartWhen, fragments};
use crate::error::{Error, Kind, Result};
use crate::fleet::scope::Scope;
use crate::plan::Wishes;
use crate::restart::table::Table;
use crate::state::requests::KEPT_DAYS;
use crate::state::{State, snapshots};
use crate::ui::{Format, Ui};
use crate::world::{Account, World};

pub mod apply;
pub mod audit;
pub mod cell;
pub mod closing;
pub mod complete;
pub mod debts;
pub mod dpkg;
pub mod generate;
pub mod helper;
pub mod hook;
pub mod journal;
pub mod look;
pub mod mechanisms;
pub mod metrics;
pub mod migrate;
pub mod migrations;
pub mod notify;
pub mod opening;
pub mod plan;
pub mod receipt;
pub mod rehearse;
pub mod restarts;
pub mod rollback;
pub mod status;

/// How long a whole run may take, where nobody says.
const DEADLINE: Duration = Duration::from_secs(30 * 60);

/// How long a run started by cron waits for another one, where nobody says.
const CRON_PATIENCE: Duration = Duration::from_secs(600);

/// What a subcommand works with.
#[derive(Debug)]
pub struct Session {
    /// The surroundings.
    pub world: World,
    /// The streams.
    pub ui: Ui,
    /// The application.
    pub app: App,
    /// The site's configuration.
    pub config: Config,
    /// Where things are.
    pub places: Places,
    /// The state folder.
    pub state: State,
    /// The mechanism table.
    pub table: Table,
    /// The site's own migrations: name and text.
    pub site_steps: Vec<(String, String)>,
    /// Every account that is in scope.
    pub users: Vec<Account>,
    /// Whether no user was named.
    pub everybody: bool,
    /// What a run is asked for.
    pub wishes: Wishes,
    /// How many restarts run side by side.
    pub jobs: usize,
    /// How many failures end the restarts after the first wave.
    pub max_failures: usize,
    /// When the run has to end.
    pub deadline: Instant,
    /// How long to wait for another run.
    pub patience: Duration,
    /// What starts the run.
    pub trigger: Trigger,
    /// Where the result is written as metrics.
    pub metrics_file: Option<PathBuf>,
    /// What it may see and touch here.
    pub scene: hook::Scene,
    /// How its time is shared out.
    pub pace: hook::Pace,
    /// The name that the asker gave the run.
    pub request_id: Option<String>,
    /// For how many days requests are kept.
    pub request_days: u32,
    /// Which snapshots are kept.
    pub keep: Keep,
    /// Only these homes, if any are named.
    pub only_homes: Vec<PathBuf>,
    /// Only these profiles, if any are named.
    pub only_profiles: Vec<String>,
    /// Subcommand and names of the flags that were given.
    pub argv_flags: Vec<String>,
}

impl Session {
    /// Reads what a subcommand needs.
    ///
    /// # Errors
    /// When the command line or the configuration asks for something that cannot be.
    pub fn new(world: World, ui: Ui, cli: &Cli, trigger: Trigger) -> Result<Self> {
        let (common, run) = (&cli.common, &cli.run);
        let app = App::builtin(&common.app)?;
        let state_dir = common.state_dir.as_deref().map(|dir| world.cwd.join(dir));
        let places = Places::of(&world, state_dir.as_deref())?;
        let file = common.config.as_deref().map(|file| world.cwd.join(file));
        let config = Config::load(&places, file.as_deref())?;
        let site_rows: Vec<(String, String)> = fragments(&places.config_dir.join("mechanisms.d"))?
            .into_iter()
            .map(|(path, text)| (path.display().to_string(), text))
            .collect();
        let table = Table::load(None, &site_rows)?;
        let site_steps = site_steps(&places.config_dir.join("migrations.d").join(&app.name))?;
        let users = users(&world, &common.user)?;
        let defaults = &config.run;
        let limit = |flag: Option<crate::config::Limit>, default: Option<crate::config::Limit>| {
            flag.or(default).map(|limit| limit.0)
        };
        let usual_patience = match trigger {
            Trigger::Cron => CRON_PATIENCE,
            Trigger::Manual | Trigger::Package => Duration::ZERO,
        };
        let limited = limit(run.deadline, defaults.deadline);
        let (pace, deadline) = if trigger == Trigger::Package {
            let of_hook = config.hook.limit.map_or(hook::LIMIT, |limit| limit.0);
            hook::Pace::within(limited.map_or(of_hook, |limit| limit.min(of_hook)))
        } else {
            let deadline = Instant::now() + limited.unwrap_or(DEADLINE);
            (hook::Pace::UNHURRIED, deadline)
        };
        let scene = hook::Scene::of(&world, trigger);
        let may_migrate = match trigger {
            Trigger::Package => config.hook.migrate.unwrap_or(scene == hook::Scene::Live),
            Trigger::Manual | Trigger::Cron => true,
        };
        Ok(Self {
            state: State::at(&places.state_dir),
            wishes: Wishes {
                restart: run
                    .restart
                    .or(defaults.restart)
                    .unwrap_or(RestartWhen::Stale),
                migrate: !run.no_migrate && may_migrate,
                native: run.native_migrate || defaults.native_migrate.unwrap_or(false),
                to: run.to,
                policy: config.policy.clone(),
            },
            jobs: usize::try_from(run.jobs.or(defaults.jobs).unwrap_or(8))
                .unwrap_or(8)
                .max(1),
            max_failures: usize::try_from(run.max_failures.or(defaults.max_failures).unwrap_or(3))
                .unwrap_or(3)
                .max(1),
            deadline,
            patience: limit(run.lock_timeout, defaults.lock_timeout).unwrap_or(usual_patience),
            trigger,
            metrics_file: run
                .metrics_file
                .as_ref()
                .or(defaults.metrics_file.as_ref())
                .map(|file| world.cwd.join(file)),
            scene,
            pace,
            request_id: run.request_id.clone(),
            request_days: defaults.request_days.map_or(KEPT_DAYS, |days| days.0),
            keep: run.keep.or(defaults.keep).unwrap_or(Keep {
                count: Some(snapshots::KEPT),
                age: None,
            }),
            only_homes: common
                .home
                .iter()
                .map(|home| world.cwd.join(home))
                .collect(),
            only_profiles: common.profile.clone(),
            argv_flags: argv_flags(&world),
            world,
            ui,
            app,
            config,
            places,
            table,
            site_steps,
            users,
            everybody: common.user.is_empty(),
        })
    }

    /// The same session for these homes alone.
    #[must_use]
    pub fn narrowed(&self, homes: Vec<PathBuf>) -> Self {
        Self {
            world: self.world.clone(),
            ui: self.ui.again(),
            app: self.app.clone(),
            config: self.config.clone(),
            places: self.places.clone(),
            state: self.state.clone(),
            table: self.table.clone(),
            site_steps: self.site_steps.clone(),
            users: self.users.clone(),
            wishes: self.wishes.clone(),
            request_id: self.request_id.clone(),
            metrics_file: self.metrics_file.clone(),
            only_homes: homes,
            only_profiles: self.only_profiles.clone(),
            argv_flags: self.argv_flags.clone(),
            ..*self
        }
    }

    /// What the inventory looks at.
    #[must_use]
    pub fn scope(&self) -> Scope {
        Scope {
            users: if self.everybody {
                Vec::new()
            } else {
                self.users.clone()
            },
            homes: self.only_homes.clone(),
            profiles: self.only_profiles.clone(),
            extra_homes: self
                .config
                .home
                .iter()
                .map(|home| home.path.clone())
                .collect(),
            runtimes: self.scene.shows_runtimes(),
            // The last look, which proves what was done, is taken even when the time is up.
            limit: self.pace.ask.min(self.left()).max(self.pace.least),
        }
    }

    /// Tells a stage of a run: a person with `--verbose`, and the service manager that started it.
    pub fn stage(&self, text: &str) {
        self.ui.tell(text);
        notify::stage(&self.world, text);
    }

    /// Writes the metrics of a run, and tells the service manager how it ended. What cannot be told is a
    /// warning.
    pub fn publish(&self, receipt: &crate::receipt::Receipt) {
        if let Some(file) = &self.metrics_file
            && let Err(error) = metrics::write(file, receipt)
        {
            self.ui.warn(&error.to_string());
        }
        notify::stage(&self.world, receipt.verdict.outcome.word());
    }

    /// The same for a run that ended before it had a receipt; another run's word is left as it is.
    fn publish_failure(&self, error: &Error) {
        notify::stage(&self.world, &error.to_string());
        let Some(file) = self.metrics_file.as_ref() else {
            return;
        };
        // Another run is at work, or a refusal has its receipt: both wrote or will write for themselves.
        if matches!(error.kind(), Kind::Locked | Kind::Refused) {
            return;
        }
        let status = error.kind().exit_status();
        if let Err(error) = metrics::write_failure(file, &self.app.name, status) {
            self.ui.warn(&error.to_string());
        }
    }

    /// How much of the run's time is left.
    #[must_use]
    pub fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// The account of a user id, if it is in scope.
    #[must_use]
    pub fn account(&self, uid: u32) -> Option<&Account> {
        self.users.iter().find(|account| account.uid == uid)
    }

    /// Login names by user id.
    #[must_use]
    pub fn names(&self) -> BTreeMap<u32, String> {
        self.users
            .iter()
            .map(|account| (account.uid, account.name.clone()))
            .collect()
    }
}

fn users(world: &World, names: &[String]) -> Result<Vec<Account>> {
    let all = world.accounts()?;
    if names.is_empty() {
        return Ok(all);
    }
    names
        .iter()
        .map(|name| {
            all.iter()
                .find(|account| account.name == *name)
                .cloned()
                .ok_or_else(|| {
                    let error = Error::new(
                        Kind::Usage,
                        format!("--user {name}: no such user is in reach"),
                    );
                    if world.is_root() {
                        error
                    } else {
                        error.with_hint("only root reaches other users")
                    }
                })
        })
        .collect()
}

/// The site's own migrations: a folder a step, as in the program.
fn site_steps(folder: &std::path::Path) -> Result<Vec<(String, String)>> {
    let failed = |error| Error::io(format!("cannot read {}", folder.display()), error);
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut folders = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        if entry.file_type().map_err(failed)?.is_dir() {
            folders.push(entry.path());
        }
    }
    folders.sort();
    let mut steps = Vec::new();
    for folder in folders {
        let name = folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        steps.extend(
            fragments(&folder)?
                .into_iter()
                .map(|(_, text)| (name.clone(), text)),
        );
    }
    Ok(steps)
}

/// Words and names of flags, never a value: a value may be a secret.
fn argv_flags(world: &World) -> Vec<String> {
    let mut flags = Vec::new();
    for argument in world
        .args
        .iter()
        .skip(1)
        .filter_map(|argument| argument.to_str())
    {
        if argument.starts_with('-') {
            flags.push(argument.split('=').next().unwrap_or(argument).to_owned());
        } else if flags.is_empty() {
            flags.push(argument.to_owned());
        }
    }
    flags
}

/// Runs the command that this process was started as.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = crate::world::arguments();
    if let Some(version) = Cli::version_alone(&arguments) {
        // As clap does it: there is nobody to tell that nobody listens.
        let _ = std::io::stdout().write_all(version.as_bytes());
        return ExitCode::SUCCESS;
    }
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are results; everything else is a usage error.
            let _ = error.print();
            return ExitCode::from(u8::from(error.use_stderr()) * 2);
        }
    };
    let trigger = hook::trigger(&cli);
    let is_hook = trigger == Trigger::Package;
    let world = match World::read() {
        Ok(world) => world,
        Err(error) => {
            // There is nothing yet that knows how to print.
            let _ = writeln!(std::io::stderr(), "update: {error}");
            return ExitCode::from(if is_hook {
                0
            } else {
                error.kind().exit_status()
            });
        }
    };
    let format = if cli.common.json {
        Format::Json
    } else {
        cli.common.format
    };
    let ui = Ui::new(
        &world,
        format,
        cli.common.color,
        cli.common.quiet || hook::is_silent_when_clean(&cli, trigger, format),
        cli.common.verbose,
    );
    if is_hook {
        return ExitCode::from(hook::within_limit(world, ui, cli));
    }
    let status = match dispatch(world, ui, &cli, trigger) {
        Ok(status) => status,
        Err((ui, error)) => {
            ui.fail(&error);
            error.kind().exit_status()
        }
    };
    ExitCode::from(status)
}

fn dispatch(
    world: World,
    ui: Ui,
    cli: &Cli,
    trigger: Trigger,
) -> std::result::Result<u8, (Ui, Error)> {
    match &cli.command {
        Some(Command::Generate { what }) => {
            return generate::run(&ui, what).map_err(|error| (ui, error));
        }
        Some(Command::Complete { names }) => {
            let state_dir = cli.common.state_dir.as_deref();
            return Ok(complete::run(&world, &ui, state_dir, *names));
        }
        _ => {}
    }
    let look = ui.again();
    let session = Session::new(world, ui, cli, trigger).map_err(|error| {
        // Without a configuration only the command line says where the metrics are.
        if matches!(cli.command, None | Some(Command::Apply))
            && let Some(file) = &cli.run.metrics_file
            && let Err(error) =
                metrics::write_failure(file, &cli.common.app, error.kind().exit_status())
        {
            look.warn(&error.to_string());
        }
        (look, error)
    })?;
    answer(&session, cli).map_err(|error| (session.ui, error))
}

fn answer(session: &Session, cli: &Cli) -> Result<u8> {
    match &cli.command {
        None | Some(Command::Apply) if cli.run.dry_run => plan::run(session, false),
        None | Some(Command::Apply) => {
            apply::run(session).inspect_err(|error| session.publish_failure(error))
        }
        Some(Command::Plan(flags)) => plan::run(session, flags.check),
        Some(Command::Status(flags)) => status::run(session, flags.watch),
        Some(Command::Receipt { what }) => receipt::run(session, what),
        Some(Command::Audit { what }) => audit::run(session, what),
        Some(Command::Cell { what }) => cell::run(session, what),
        Some(Command::Rollback { run }) => rollback::run(session, run),
        Some(Command::Mechanisms { explain, unit }) => {
            mechanisms::run(session, *explain, unit.as_deref())
        }
        Some(Command::Migrations { what }) => migrations::run(session, what),
        Some(Command::Rehearse) => rehearse::run(session),
        Some(Command::Generate { .. } | Command::Complete { .. }) => Ok(0),
    }
}
