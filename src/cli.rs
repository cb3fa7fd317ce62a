//! The command line. Parsing is pure: nothing is read and nothing is decided here.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::config::{Keep, Limit, RestartWhen};
use crate::ui::{Color, Format};

/// What stands below the help of the command itself.
const AFTER_HELP: &str = "\
Exit status: 0 clean, 1 finished but not clean, 2 usage, 3 bad input or state, 4 refused,
5 changes are pending (plan --check), 75 another run holds the lock.
More: update COMMAND --help, update --help-all, man 8 update.";

/// Bring every profile home of a fleet up to date, restart what serves the old state, and prove it
///
/// Finds every profile home and every runtime on this machine, migrates each home's configuration to
/// the version that its installed code expects, restarts what still serves the old state, and ends
/// with a receipt that fails if one runtime is unaccounted for. It never asks a question.
#[derive(Debug, Parser)]
#[command(
    name = "update",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    disable_help_flag = true,
    disable_version_flag = true,
    override_usage = "update [COMMAND] [OPTIONS]",
    after_help = AFTER_HELP
)]
pub struct Cli {
    /// What to do; the run itself where nothing is named
    #[command(subcommand)]
    pub command: Option<Command>,

    /// What concerns every subcommand
    #[command(flatten)]
    pub common: Common,

    /// What concerns a run
    #[command(flatten)]
    pub run: RunFlags,

    /// Print version
    #[arg(long, short = 'V', action = clap::ArgAction::Version)]
    pub version: Option<bool>,
}

impl Cli {
    /// What `--version` alone prints, without the definition of the whole command line, which takes longer to
    /// build than the program to start: scripts ask for nothing else more often.
    #[must_use]
    pub fn version_alone(arguments: &[OsString]) -> Option<&'static str> {
        match arguments {
            [_, word] if word == "--version" || word == "-V" => {
                Some(concat!("update ", env!("CARGO_PKG_VERSION"), "\n"))
            }
            _ => None,
        }
    }
}

/// A subcommand
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Do it: migrate, restart, verify, write the receipt (what `update` alone does)
    Apply,
    /// Show what a run would do, and why; changes nothing
    Plan(PlanFlags),
    /// Show the fleet as it is: who runs what, for whom, and what is stale
    Status(StatusFlags),
    /// Show and check the records of earlier runs (`update receipt show`)
    Receipt {
        /// Which question
        #[command(subcommand)]
        what: ReceiptCommand,
    },
    /// Put back what a run wrote over, if nobody changed it since; databases are never rolled back
    Rollback {
        /// Id of the run
        run: String,
    },
    /// Prove the audit chain, or write it out
    Audit {
        /// Which question
        #[command(subcommand)]
        what: AuditCommand,
    },
    /// Keep the registry of managed root homes
    Cell {
        /// What to do
        #[command(subcommand)]
        what: CellCommand,
    },
    /// Show how each kind of runtime is restarted
    Mechanisms {
        /// For each runtime, why its row was chosen and which rows did not match
        #[arg(long)]
        explain: bool,
        /// With --explain, only this unit
        #[arg(value_name = "UNIT", requires = "explain")]
        unit: Option<String>,
    },
    /// Show the migrations of the application, and what they would change
    Migrations {
        /// Which question
        #[command(subcommand)]
        what: MigrationsCommand,
    },
    /// Do the whole run on synthetic homes in a temporary folder, then remove them
    Rehearse,
    /// Generate man pages and completions
    #[command(hide = true)]
    Generate {
        /// `man`, or the name of a shell
        what: String,
    },
    /// Print names for a shell to complete
    #[command(hide = true)]
    Complete {
        /// Which names
        #[arg(value_enum)]
        names: Names,
    },
}

/// Names that a shell can complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Names {
    /// Profiles of the newest receipt
    Profile,
    /// Users of the newest receipt
    User,
    /// Units of the newest receipt
    Unit,
    /// Runs that left a receipt
    Run,
    /// Migrations of the application
    Migration,
}

/// About receipts
#[derive(Debug, Subcommand)]
pub enum ReceiptCommand {
    /// Show a receipt
    Show {
        /// Id of the run
        #[arg(default_value = "latest")]
        run: String,
        /// Write it as one self-contained web page
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// List the runs that left one
    List,
    /// Prove that no receipt was changed or taken away, by their chain and the audit chain
    Verify,
    /// Print the JSON Schema of a receipt
    Schema,
    /// Make one receipt of a fleet from those of its machines; ends with 1 if one of them is missing
    Merge {
        /// The machines that must be there: one name a line, or an inventory of Ansible (INI or JSON)
        #[arg(long, value_name = "FILE")]
        inventory: PathBuf,
        /// Their receipts
        #[arg(value_name = "RECEIPT", required = true)]
        receipts: Vec<PathBuf>,
        /// A receipt of a run that began longer ago proves nothing
        #[arg(long, value_name = "TIME")]
        max_age: Option<Limit>,
        /// Write it as one self-contained web page, too
        #[arg(long, value_name = "PAGE")]
        html: Option<PathBuf>,
    },
}

/// About the audit chain
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Walk the chain from its beginning to its end
    Verify {
        /// An exported copy, instead of our own chain
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Write the chain to standard output, one event a line
    Export,
}

/// About cells
#[derive(Debug, Subcommand)]
pub enum CellCommand {
    /// Make a tenant's cell
    Create {
        /// The tenant
        tenant: String,
        /// The cell's own name
        cell: String,
        /// The root home
        root: PathBuf,
        /// The release that it runs
        #[arg(long, value_name = "RELEASE")]
        release: Option<String>,
        /// SHA-256 of its configuration
        #[arg(long, value_name = "SHA256")]
        config_digest: Option<String>,
    },
    /// Show a tenant's cell
    Status {
        /// The tenant
        tenant: String,
    },
    /// Move a tenant's cell to another state
    Transition {
        /// The tenant
        tenant: String,
        /// The state
        state: String,
    },
    /// List every cell
    List,
}

/// About migrations
#[derive(Debug, Subcommand)]
pub enum MigrationsCommand {
    /// List them
    List,
    /// Show one
    Show {
        /// Its id, or the version that it leads to
        id: String,
    },
    /// Show what a run would change in each home, as a diff with secrets masked
    Diff,
    /// Prove a catalog: numbers, overlaps, unknown keys, cases, checksums
    Lint {
        /// Folder of a site's own migrations; the built-in catalog where none is named
        folder: Option<PathBuf>,
    },
}

/// What concerns `plan` alone
#[derive(Debug, Args)]
pub struct PlanFlags {
    /// End with 5 if a run would change something, else with 1 if a row could not be clean
    #[arg(long)]
    pub check: bool,
}

/// What concerns `status` alone
#[derive(Debug, Args)]
pub struct StatusFlags {
    /// Look again each second until Ctrl-C; only on a terminal, and only as text
    #[arg(long)]
    pub watch: bool,
}

/// What concerns every subcommand
#[derive(Debug, Args)]
#[command(next_help_heading = "Scope and output")]
pub struct Common {
    /// Application
    #[arg(long, global = true, hide_short_help = true, value_name = "NAME", default_value = crate::app::DEFAULT)]
    pub app: String,
    /// Only this home (may be repeated)
    #[arg(long, global = true, value_name = "PATH")]
    pub home: Vec<PathBuf>,
    /// Only this user's homes, as root (may be repeated)
    #[arg(long, global = true, value_name = "NAME")]
    pub user: Vec<String>,
    /// Only this profile (may be repeated)
    #[arg(long, global = true, value_name = "NAME")]
    pub profile: Vec<String>,
    /// Where receipts and snapshots are kept
    #[arg(long, global = true, hide_short_help = true, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Read this configuration file alone
    #[arg(long, global = true, hide_short_help = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// How results are written
    #[arg(long, global = true, hide_short_help = true, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    pub format: Format,
    /// The same as --format json
    #[arg(long, global = true, conflicts_with = "format")]
    pub json: bool,
    /// Say nothing when all is clean
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say more
    #[arg(long, short, global = true)]
    pub verbose: bool,
    /// When to use colours
    #[arg(long, global = true, hide_short_help = true, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    pub color: Color,
    /// Print help
    #[arg(long, short, global = true, action = clap::ArgAction::HelpShort)]
    pub help: Option<bool>,
    /// Print help with every option
    #[arg(long, global = true, action = clap::ArgAction::HelpLong)]
    pub help_all: Option<bool>,
}

/// What started the run
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Trigger {
    /// A person
    #[default]
    Manual,
    /// A timer or cron
    Cron,
    /// A package's post-installation hook
    Package,
}

impl Trigger {
    /// The word in receipts.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Cron => "cron",
            Self::Package => "package",
        }
    }
}

/// What concerns a run
#[derive(Debug, Args)]
#[command(next_help_heading = "Run")]
pub struct RunFlags {
    /// Version for homes whose installs do not say one
    #[arg(long, global = true, hide_short_help = true, value_name = "VERSION")]
    pub to: Option<u32>,
    /// Which runtimes to restart: stale, always or never [default: stale]
    #[arg(
        long,
        global = true,
        value_enum,
        hide_possible_values = true,
        value_name = "WHEN"
    )]
    pub restart: Option<RestartWhen>,
    /// Leave every home as it is
    #[arg(long, global = true, hide_short_help = true)]
    pub no_migrate: bool,
    /// Let the application's own migrator bring a copy of a home to versions that are not known here
    #[arg(long, global = true, hide_short_help = true)]
    pub native_migrate: bool,
    /// How many restarts run side by side [default: 8]
    #[arg(long, global = true, hide_short_help = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub jobs: Option<u32>,
    /// How many failures end the restarts of one install, after the first wave [default: 3]
    #[arg(long, global = true, hide_short_help = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_failures: Option<u32>,
    /// How long the whole run may take [default: 30m]
    #[arg(long, global = true, hide_short_help = true, value_name = "TIME")]
    pub deadline: Option<Limit>,
    /// How long to wait for another run [default: 0, with --trigger cron 10m]
    #[arg(long, global = true, hide_short_help = true, value_name = "TIME")]
    pub lock_timeout: Option<Limit>,
    /// Name of this run: the same name again gives its receipt again, and does nothing twice
    #[arg(long, global = true, hide_short_help = true, value_name = "ID")]
    pub request_id: Option<String>,
    /// How many snapshots are kept, for how long, or both: 20, 90d, 20,90d [default: 20]
    #[arg(long, global = true, hide_short_help = true, value_name = "KEEP")]
    pub keep: Option<Keep>,
    /// What starts the run [default: cron where cron does, else manual]
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        value_enum,
        value_name = "WHAT"
    )]
    pub trigger: Option<Trigger>,
    /// Write the result as metrics for the textfile collector of Prometheus
    #[arg(long, global = true, hide_short_help = true, value_name = "FILE")]
    pub metrics_file: Option<PathBuf>,
    /// The same as `update plan`
    #[arg(long, global = true)]
    pub dry_run: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_version_alone_is_what_the_definition_says() {
        for word in ["--version", "-V"] {
            let line = ["update", word].map(OsString::from);
            let said = Cli::try_parse_from(&line)
                .expect_err("a result")
                .to_string();
            assert_eq!(Cli::version_alone(&line), Some(&*said));
        }
        let line = ["update", "plan", "--version"].map(OsString::from);
        assert_eq!(Cli::version_alone(&line), None);
    }

    #[test]
    fn flags_may_stand_before_and_after_the_subcommand() {
        for line in [
            &["update", "--json", "plan"][..],
            &["update", "plan", "--json"],
        ] {
            let cli = Cli::try_parse_from(line).expect("valid");
            assert!(cli.common.json);
        }
    }
}
