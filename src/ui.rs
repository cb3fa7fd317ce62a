//! What a person sees: results on standard output, everything else on standard error.
//!
//! A closed pipe is not an error: a run goes on without its reader, and the receipt keeps the truth.
//! Progress is drawn only where standard error is a terminal; elsewhere `--verbose` prints a line for
//! each step instead. Under systemd, lines on standard error carry a priority (sd-daemon(3)).

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::error::Error;
use crate::screen;
use crate::world::World;

/// Whether colours are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    /// On a terminal, unless the environment says otherwise.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How results are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For a person.
    #[default]
    Text,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
}

/// The two streams, and how to write on them.
#[derive(Debug)]
pub struct Ui {
    /// How results are written.
    pub format: Format,
    /// Whether a clean result is silent.
    pub quiet: bool,
    /// Whether every step is told.
    pub verbose: bool,
    /// Whether results may be coloured.
    pub color: bool,
    journal: bool,
    progress: MultiProgress,
    bars: Mutex<BTreeMap<String, ProgressBar>>,
}

impl Ui {
    /// Looks at the streams and the environment once.
    #[must_use]
    pub fn new(world: &World, format: Format, color: Color, quiet: bool, verbose: bool) -> Self {
        let color = match color {
            Color::Always => true,
            Color::Never => false,
            // https://no-color.org and https://bixense.com/clicolors
            Color::Auto => {
                let forced = world
                    .var("CLICOLOR_FORCE")
                    .is_some_and(|value| value != "0");
                let plain = world.var("NO_COLOR").is_some()
                    || world.var("CLICOLOR").is_some_and(|value| value == "0")
                    || world.var("TERM").is_none_or(|term| term == "dumb");
                forced || (!plain && std::io::stdout().is_terminal())
            }
        };
        let shows_progress = !quiet
            && format == Format::Text
            && world.var("CI").is_none()
            && std::io::stderr().is_terminal();
        let target = if shows_progress {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        Self {
            format,
            quiet,
            verbose,
            color: color && format == Format::Text,
            journal: is_journal(world),
            progress: MultiProgress::with_draw_target(target),
            bars: Mutex::new(BTreeMap::new()),
        }
    }

    /// The same streams and ways, with progress of its own.
    #[must_use]
    pub fn again(&self) -> Self {
        let target = if self.progress.is_hidden() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        Self {
            progress: MultiProgress::with_draw_target(target),
            bars: Mutex::new(BTreeMap::new()),
            ..*self
        }
    }

    /// Writes a result as it is.
    pub fn result(&self, text: &str) {
        let mut stdout = std::io::stdout().lock();
        // A reader that went away (EPIPE) has seen enough.
        let _ = stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush());
    }

    /// Draws a picture over the one before it, and says whether the terminal is still there. The cursor
    /// goes home, each line's rest and all below are erased (console_codes(4)); no mode is changed.
    #[must_use]
    pub fn draw(&self, picture: &str) -> bool {
        let mut frame = String::from("\x1b[H");
        for line in picture.lines() {
            frame.push_str(line);
            frame.push_str("\x1b[K\r\n");
        }
        frame.push_str("\x1b[J");
        let mut stdout = std::io::stdout().lock();
        stdout
            .write_all(frame.as_bytes())
            .and_then(|()| stdout.flush())
            .is_ok()
    }

    /// Writes a value in the format that was asked for; `text` is how a person reads it.
    pub fn report(&self, value: &impl Serialize, text: impl FnOnce() -> String) {
        match self.format {
            Format::Text => self.result(&text()),
            Format::Json => {
                let mut json = serde_json::to_string_pretty(value).unwrap_or_default();
                json.push('\n');
                self.result(&screen::visible_json(&json));
            }
            Format::Yaml => {
                // As the same document as in JSON: YAML has tags of its own for variants.
                let value = serde_json::to_value(value).unwrap_or_default();
                let yaml = serde_yaml::to_string(&value).unwrap_or_default();
                let lines = yaml.split('\n').map(screen::visible);
                self.result(&lines.collect::<Vec<_>>().join("\n"));
            }
        }
    }

    /// Tells a step of the work, with `--verbose`.
    pub fn tell(&self, text: &str) {
        if self.verbose {
            self.line(6, text);
        }
    }

    /// Warns.
    pub fn warn(&self, text: &str) {
        self.line(4, &format!("warning: {text}"));
    }

    /// Says in one line what a package's hook has to say.
    pub fn brief(&self, text: &str) {
        self.line(4, &format!("update: {text}"));
    }

    /// Says what ends the command.
    pub fn fail(&self, error: &Error) {
        if self.format == Format::Json {
            let value =
                serde_json::json!({"code": error.kind().code(), "error": error.to_string()});
            self.line(3, &screen::visible_json(&value.to_string()));
            return;
        }
        self.line(3, &format!("update: {error}"));
        if let Some(hint) = error.hint() {
            self.line(3, &format!("hint: {hint}"));
        }
    }

    /// Shows how far one thing is; the line goes with [`Ui::done`].
    pub fn progress(&self, name: &str, text: &str) {
        if self.progress.is_hidden() {
            return;
        }
        let Ok(mut bars) = self.bars.lock() else {
            return;
        };
        let bar = bars.entry(name.to_owned()).or_insert_with(|| {
            let bar = self.progress.add(ProgressBar::new_spinner());
            let style = ProgressStyle::with_template("{spinner} {prefix}  {msg}  {elapsed}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar.set_prefix(screen::visible(name).into_owned());
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        bar.set_message(screen::visible(text).into_owned());
    }

    /// Takes the line of one thing away.
    pub fn done(&self, name: &str) {
        if let Ok(mut bars) = self.bars.lock()
            && let Some(bar) = bars.remove(name)
        {
            bar.finish_and_clear();
            self.progress.remove(&bar);
        }
    }

    fn line(&self, priority: u8, text: &str) {
        self.progress.suspend(|| {
            let mut stderr = std::io::stderr().lock();
            for line in text.lines() {
                let line = screen::visible(line);
                let _ = if self.journal {
                    writeln!(stderr, "<{priority}>{line}")
                } else {
                    writeln!(stderr, "{line}")
                };
            }
        });
    }
}

/// Columns and rows of the terminal that standard output is; `None` where it is none.
#[must_use]
pub fn terminal_size() -> Option<(usize, usize)> {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&stdout).unwrap_or_else(|_| nameless());
    // A terminal that was never told its size says 0 (ioctl_tty(2)).
    let or = |size: u16, usual| match size {
        0 => usual,
        size => usize::from(size),
    };
    Some((or(size.ws_col, 80), or(size.ws_row, 24)))
}

/// The size of a terminal that does not tell.
const fn nameless() -> rustix::termios::Winsize {
    rustix::termios::Winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

/// Whether standard error is the journal: `$JOURNAL_STREAM` names its device and inode
/// (systemd.exec(5)).
fn is_journal(world: &World) -> bool {
    let Some(stream) = world.var("JOURNAL_STREAM").and_then(|value| value.to_str()) else {
        return false;
    };
    rustix::fs::fstat(std::io::stderr())
        .is_ok_and(|stat| stream == format!("{}:{}", stat.st_dev, stat.st_ino))
}
