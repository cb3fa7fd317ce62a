//! Whether the application's own updater is at work, as the marker says that it leaves in a root home.

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use crate::app::App;
use crate::fleet::procfs;
use crate::fleet::units::files::read_bounded;
use crate::world;

/// A marker is a line or two.
const SMALL_LIMIT: u64 = 64 << 10;

/// A process that started this much after a marker was written did not write it.
const CLOCK_SLACK: Duration = Duration::from_secs(2);

/// A marker that names no process counts only while it is young.
const ANONYMOUS_MARKER_AGE: Duration = Duration::from_secs(20 * 60);

/// Whether the application's own updater is at work in a root home, and how that is seen.
pub(in crate::fleet) fn active_updater(app: &App, root: &Path) -> Option<String> {
    let markers = app.code.updating.iter().map(|name| root.join(name));
    markers
        .into_iter()
        .find_map(|marker| active_marker(&marker))
}

/// Whether a marker's writer still runs: the process that its first line names, if that one was
/// there when the marker was written. A pid alone would make a crashed updater block for ever.
pub(super) fn active_marker(marker: &Path) -> Option<String> {
    let meta = std::fs::metadata(marker).ok()?;
    let written = meta
        .modified()
        .ok()?
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let shown = marker.display();
    let pid: Option<u32> = read_bounded(marker, SMALL_LIMIT, true)
        .ok()
        .and_then(|bytes| {
            String::from_utf8_lossy(&bytes)
                .lines()
                .next()?
                .trim()
                .parse()
                .ok()
        });
    let Some(pid) = pid else {
        let young = world::now().saturating_sub(written) < ANONYMOUS_MARKER_AGE;
        return young.then(|| format!("{shown} exists"));
    };
    let process = procfs::read(pid, &[]).ok().flatten()?;
    let started = Duration::from_nanos(process.started_at_nanos);
    (started <= written + CLOCK_SLACK).then(|| format!("{shown} names process {pid}, which runs"))
}
