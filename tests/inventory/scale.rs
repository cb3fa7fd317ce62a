//! What a look costs on a large machine: in proportion to what is there, and bounded.
//!
//! Counted in system calls and memory, which do not depend on who else works on the machine. With
//! `UPDATE_LONG=1` on a quiet one it is timed as well, with the program that `UPDATE_RELEASE` names.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::support::fleet::Fleet;
use crate::support::sandbox::Boot;
use crate::support::update::Update;
use crate::support::{long, say, skip, wait_for};

/// A stand-in for the application: its command line is what counts, a shell that waits is what runs.
const SETUP: &str = r#"
set -e
site=/opt/stand-in/lib/python3.11/site-packages
mkdir -p /opt/stand-in/bin $site/hermes_cli $site/hermes_agent-0.19.0.dist-info
ln -s /usr/bin/python3 /opt/stand-in/bin/python
printf 'home = /usr/bin\ninclude-system-site-packages = false\n' >/opt/stand-in/pyvenv.cfg
printf '#!/opt/stand-in/bin/python\n' >/opt/stand-in/bin/hermes; chmod +x /opt/stand-in/bin/hermes
: >$site/hermes_cli/__init__.py; echo '"_config_version": 33' >$site/hermes_cli/config.py
: >$site/hermes_agent-0.19.0.dist-info/RECORD
useradd -m -u 2001 ann; mkfifo -m 666 /tmp/never
runuser -u ann -- sh -c 'umask 077; mkdir -p ~/.hermes/profiles; echo "_config_version: 33" >~/.hermes/config.yaml'
sleep 0.1
"#;

/// How much there is.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    homes: usize,
    runtimes: usize,
    others: usize,
}

/// What one plan cost.
#[derive(Debug, Clone, Copy)]
struct Cost {
    calls: usize,
    peak_mib: usize,
}

struct Machine {
    fleet: Fleet,
    size: Size,
    before: usize,
}

impl Machine {
    fn boot() -> Option<Self> {
        let here = env!("CARGO_BIN_EXE_update");
        let program = std::env::var_os("UPDATE_RELEASE").map_or_else(|| here.into(), PathBuf::from);
        let sandbox = Boot::default()
            .show(&program, "/usr/bin/update")
            .start()
            .map_err(|reason| skip(&reason))
            .ok()?;
        sandbox.sh(None, SETUP);
        let before = processes(&sandbox);
        Some(Self {
            fleet: Fleet { sandbox },
            size: Size::default(),
            before,
        })
    }

    /// Adds what is missing to a size.
    fn grow(&mut self, to: Size) {
        let from = self.size;
        let mut text = String::from("cd /; ");
        let _ = write!(
            text,
            "runuser -u ann -- bash -c 'umask 077; cd ~/.hermes/profiles; for i in $(seq {} {}); do mkdir p$i; \
             echo \"_config_version: 33\" >p$i/config.yaml; done'; ",
            from.homes + 1,
            to.homes
        );
        let _ = write!(
            text,
            "setsid -f runuser -u ann -- bash -c 'for i in $(seq {} {}); do \
             (exec -a /opt/stand-in/bin/hermes sh -c \"read x </tmp/never\" -p p$i serve) & done; exec sleep 100000' \
             </dev/null >/dev/null 2>&1; ",
            from.runtimes + 1,
            to.runtimes
        );
        let _ = write!(
            text,
            "setsid -f runuser -u nobody -- bash -c 'for i in $(seq {} {}); do sleep 100000 & done; exec sleep 100000' \
             </dev/null >/dev/null 2>&1; ",
            from.others + 1,
            to.others
        );
        self.fleet.sandbox.sh(None, &text);
        self.size = to;
        let expected = self.before + to.runtimes + to.others;
        wait_for("all of them run", Duration::from_secs(300), || {
            (processes(&self.fleet.sandbox) >= expected).then_some(())
        });
    }

    fn cost(&self) -> Cost {
        let count = "exec strace -f -c -o /tmp/calls";
        let outcome = Update::new(&self.fleet, &["plan", "--json"])
            .after(count)
            .run();
        let plan = outcome.receipt();
        assert_eq!(plan.rows("homes").len(), self.size.homes + 1, "{outcome}");
        assert_eq!(plan.rows("runtimes").len(), self.size.runtimes, "{outcome}");
        let table = String::from_utf8(self.fleet.sandbox.read("/tmp/calls").unwrap()).unwrap();
        let total = table.lines().last().unwrap().split_whitespace().nth(3);
        let peak = self.fleet.sandbox.sh(
            None,
            "python3 -c 'import resource, subprocess
subprocess.run([\"/usr/bin/update\", \"plan\"], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)'",
        );
        let peak_kib: usize = peak.trim().parse().unwrap();
        Cost {
            calls: total.unwrap().parse().unwrap(),
            peak_mib: peak_kib / 1024,
        }
    }

    fn median(&self) -> Duration {
        let mut took: Vec<Duration> = (0..21)
            .map(|_| {
                let start = Instant::now();
                self.fleet.sandbox.sh(None, "update plan >/dev/null");
                start.elapsed()
            })
            .collect();
        took.sort();
        took[10]
    }
}

fn processes(sandbox: &crate::support::sandbox::Sandbox) -> usize {
    std::fs::read_dir(sandbox.path("/proc"))
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok())
        .count()
}

#[test]
fn a_look_costs_in_proportion_to_what_is_there() {
    let Some(mut machine) = Machine::boot() else {
        return;
    };
    let sizes = [
        (50, 10, 100),
        (150, 10, 100),
        (150, 30, 100),
        (150, 30, 400),
    ]
    .map(|(homes, runtimes, others)| Size {
        homes,
        runtimes,
        others,
    });
    let costs: Vec<Cost> = sizes
        .into_iter()
        .map(|size| {
            machine.grow(size);
            machine.cost()
        })
        .collect();
    let more =
        |from: usize, count: usize| costs[from + 1].calls.saturating_sub(costs[from].calls) / count;
    let (home, runtime, other) = (more(0, 100), more(1, 20), more(2, 300));
    say(&format!(
        "system calls: {} at first, {home} a home, {runtime} a runtime, {other} another process; {} MiB",
        costs[0].calls, costs[3].peak_mib
    ));
    // Opening, reading and closing a command line, and a share of listing.
    assert!(
        other <= 4,
        "{other} calls for a process that is none of ours"
    );
    assert!(home <= 60, "{home} calls a home");
    assert!(runtime <= 140, "{runtime} calls a runtime");
    assert!(costs[3].peak_mib < 60, "{} MiB", costs[3].peak_mib);
    if !long() {
        return;
    }
    machine.grow(Size {
        homes: 200,
        runtimes: 60,
        others: 5000,
    });
    let (cost, took) = (machine.cost(), machine.median());
    say(&format!(
        "200 homes, 60 runtimes, 5,000 processes: median {took:?} of 21 with the launcher, {} MiB, {} calls",
        cost.peak_mib, cost.calls
    ));
    assert!(cost.peak_mib < 60, "{} MiB", cost.peak_mib);
}
