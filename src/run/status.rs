//! `update status`: who runs what, for whom, and whether it is stale. Changes nothing and needs no
//! lock.
//!
//! With `--watch` it looks again each second. It draws over its own picture and changes no mode of the
//! terminal, so that there is nothing to put back, however it ends.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGINT, SIGWINCH};

use super::{DEADLINE, Session, debts, opening, plan};
use crate::error::{Error, Kind, Result};
use crate::receipt::Receipt;
use crate::receipt::status::{View, render};
use crate::run::look::look;
use crate::ui::{self, Format};

/// How often a watch looks.
const EVERY: Duration = Duration::from_secs(1);

/// Shows the fleet as it is, once or until Ctrl-C.
///
/// # Errors
/// When the machine cannot be looked at, or a watch was asked for that nobody could see.
pub fn run(session: &Session, watches: bool) -> Result<u8> {
    if watches {
        return watch(session);
    }
    let receipt = fleet(session)?;
    let status = receipt.verdict.exit_status.unwrap_or_default();
    if !(session.ui.quiet && status == 0) {
        session.ui.report(&receipt, || {
            let width = ui::terminal_size().map(|(columns, _)| columns);
            render(&receipt, view(session, width))
        });
    }
    Ok(status)
}

const fn view(session: &Session, width: Option<usize>) -> View {
    View {
        color: session.ui.color,
        width,
    }
}

/// The fleet as it is now, in the form of a receipt.
fn fleet(session: &Session) -> Result<Receipt> {
    let (_, owed) = debts::owed(session);
    let look = look(session, &owed, false)?;
    let mut receipt = opening::open(session, &look, "status");
    plan::note_run(session, &mut receipt);
    receipt.settle(false);
    let is_unverified = |row: &crate::receipt::CollectorRow| row.outcome == "unverified";
    receipt.verdict.exit_status = Some(u8::from(receipt.collectors.iter().any(is_unverified)));
    Ok(receipt)
}

/// Why a watch goes on or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wake {
    /// It is time to look again.
    Tick,
    /// The terminal has another size.
    Resized,
    /// Somebody has seen enough.
    Interrupted,
}

fn watch(session: &Session) -> Result<u8> {
    let usage = |why: &str| Error::new(Kind::Usage, format!("--watch {why}"));
    if session.ui.format != Format::Text || session.ui.quiet {
        return Err(
            usage("draws for a person: it goes with no --json, --format or --quiet")
                .with_hint("call update status --json as often as you need it"),
        );
    }
    if ui::terminal_size().is_none() {
        return Err(usage("needs a terminal on standard output"));
    }
    let signals = Signals::listen()?;
    loop {
        let next = Instant::now() + EVERY;
        let mut session = session.narrowed(session.only_homes.clone());
        // A watch has no end that it must keep; each of its looks has.
        session.deadline = Instant::now() + DEADLINE;
        let receipt = fleet(&session)?;
        loop {
            let Some((columns, rows)) = ui::terminal_size() else {
                return Ok(0);
            };
            let picture = render(&receipt, view(&session, Some(columns)));
            if !session.ui.draw(&fit(&picture, rows)) {
                return Ok(0);
            }
            match signals.wait(next)? {
                Wake::Tick => break,
                Wake::Resized => {}
                Wake::Interrupted => {
                    // Below the terminal's own `^C`.
                    session.ui.result("\n");
                    return Ok(0);
                }
            }
        }
    }
}

/// As many lines as a terminal shows; one less, so that the cursor's own does not scroll it.
fn fit(picture: &str, rows: usize) -> String {
    let room = rows.saturating_sub(1).max(2);
    let lines: Vec<&str> = picture.lines().collect();
    if lines.len() <= room {
        return picture.to_owned();
    }
    // The last one is the sum.
    let hidden = lines.len() - room + 1;
    let mut text: String = lines[..room - 2]
        .iter()
        .flat_map(|line| [*line, "\n"])
        .collect();
    text.push_str(&format!(
        "… {hidden} more lines\n{}\n",
        lines[lines.len() - 1]
    ));
    text
}

/// The signals that a watch hears, each on a stream that poll(2) can wait for: nothing is lost
/// between a look and the wait after it.
struct Signals {
    interrupted: UnixStream,
    resized: UnixStream,
}

impl Signals {
    fn listen() -> Result<Self> {
        let stream = |signal| -> io::Result<UnixStream> {
            let (ours, handlers) = UnixStream::pair()?;
            ours.set_nonblocking(true)?;
            signal_hook::low_level::pipe::register(signal, handlers)?;
            Ok(ours)
        };
        let failed = |error: io::Error| Error::io("cannot listen for signals", error);
        Ok(Self {
            interrupted: stream(SIGINT).map_err(failed)?,
            resized: stream(SIGWINCH).map_err(failed)?,
        })
    }

    fn wait(&self, until: Instant) -> Result<Wake> {
        let left = until.saturating_duration_since(Instant::now());
        let mut streams = [
            PollFd::new(&self.interrupted, PollFlags::IN),
            PollFd::new(&self.resized, PollFlags::IN),
        ];
        match poll(&mut streams, Timespec::try_from(left).ok().as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Error::io("cannot wait for signals", error)),
        }
        let [interrupted, resized] = streams.map(|stream| !stream.revents().is_empty());
        if interrupted {
            return Ok(Wake::Interrupted);
        }
        if resized {
            // Many changes of size are one.
            let mut bytes = [0; 64];
            while rustix::io::read(&self.resized, &mut bytes).is_ok_and(|count| count > 0) {}
            return Ok(Wake::Resized);
        }
        Ok(Wake::Tick)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_that_is_too_long_keeps_its_start_and_its_sum() {
        let picture = "a\nb\nc\nd\nsum\n";
        assert_eq!(fit(picture, 6), picture);
        assert_eq!(fit(picture, 5), "a\nb\n… 2 more lines\nsum\n");
        assert_eq!(fit(picture, 1), "… 4 more lines\nsum\n");
    }
}
