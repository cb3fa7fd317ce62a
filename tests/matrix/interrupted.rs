//! A run that is told to end, whose reader is gone or whose terminal is killed, ends with a receipt that is
//! true, and the next run settles what it left.

use std::process::Child;
use std::time::Duration;

use rustix::process::{Signal, pidfd_send_signal};

use crate::fleet::StandIns;
use crate::scenario::Scenario;
use crate::support::update::{Receipt, Update, latest_receipt, wait_until_gone};
use crate::support::wait_for;
use crate::truth::log;

/// The units, their witness and their receipts.
struct Scene(StandIns);

impl Scene {
    fn boot() -> Option<Self> {
        let all = vec![
            Scenario::new("aa-drains")
                .unit_lines("StartLimitIntervalSec=0")
                .told("DRAIN=3")
                .lines("RestartSec=0.5"),
            Scenario::new("bb-waits")
                .unit_lines("StartLimitIntervalSec=0")
                .told("DRAIN=0.2")
                .lines("RestartSec=0.5"),
        ];
        StandIns::boot(all).map(Self)
    }

    fn update(&self) -> Update<'_> {
        Update::new(&self.0.fleet, &["apply", "--json", "--jobs", "1"])
    }

    /// The processes of a unit's stand-in that serve.
    fn serving(&self, one: &Scenario) -> Vec<u32> {
        let sandbox = &self.0.fleet.sandbox;
        let lines = log(sandbox, one);
        let alive = lines.iter().filter(|line| {
            let life = sandbox.process(line.pid);
            line.event == "serves" && life.is_some_and(|life| life.start_ticks == line.start)
        });
        alive.map(|line| line.pid).collect()
    }

    /// Makes all of them old again; both must be up.
    fn release(&self) -> Vec<u32> {
        let old = self.0.all.iter().map(|one| {
            wait_for(&one.log(), Duration::from_secs(60), || {
                self.serving(one).pop()
            })
        });
        let old = old.collect();
        self.0.fleet.sandbox.sh(
            None,
            "sleep 0.1; touch /opt/stand-in/lib/python3.*/site-packages/*.dist-info/RECORD",
        );
        old
    }

    /// Waits until the first of them was asked to finish its work.
    fn until_it_drains(&self, drained: usize) {
        wait_for("it drains", Duration::from_secs(60), || {
            (self.drains() > drained).then_some(())
        });
    }

    fn drains(&self) -> usize {
        let lines = log(&self.0.fleet.sandbox, &self.0.all[0]);
        lines.iter().filter(|line| line.event == "draining").count()
    }

    /// The receipt that the run left, which must say what is; `old` are the processes before it.
    fn check(&self, old: &[u32], verdict: &str, why: &str) -> Receipt {
        wait_until_gone(&self.0.fleet);
        let receipt = latest_receipt(&self.0.fleet).unwrap();
        let said = &receipt.0["verdict"]["outcome"];
        assert_eq!(said, verdict, "{why}\n{}", receipt.summary());
        for (one, old) in self.0.all.iter().zip(old) {
            let row = receipt.rows("runtimes").iter().find(|row| one.is(row));
            let row = row.unwrap_or_else(|| panic!("{why}: no row of {}", one.log()));
            assert_eq!(row["before"]["incarnation"]["pid"], *old, "{why}: {row:#}");
            let now = self.serving(one);
            match row["outcome"].as_str().unwrap() {
                // Its drain went on, and its manager started the next.
                "restarted" | "current" => {
                    assert_eq!(now.len(), 1, "{why}: {row:#}");
                    assert_ne!(now[0], *old, "{why}: {row:#}");
                }
                "unaccounted" => {
                    let reason = row["reason"].as_str().unwrap();
                    assert!(reason.starts_with("interrupted"), "{why}: {row:#}");
                    assert!(row["remedy"].is_string(), "{why}: {row:#}");
                }
                other => panic!("{why}: {other}: {row:#}"),
            }
        }
        receipt
    }
}

#[test]
fn a_run_that_is_told_to_end_or_loses_its_reader_leaves_a_true_receipt() {
    let Some(scene) = Scene::boot() else { return };
    for (signal, name) in [
        (Signal::INT, "SIGINT"),
        (Signal::TERM, "SIGTERM"),
        (Signal::HUP, "SIGHUP"),
    ] {
        let old = scene.release();
        let drained = scene.drains();
        let running = scene.update().start();
        scene.until_it_drains(drained);
        let handle = running.handle().unwrap();
        pidfd_send_signal(&handle, signal).unwrap();
        let outcome = running.finish();
        // nsenter(1) gives a death by a signal on only if it may die of that signal itself.
        assert_ne!(outcome.status, Some(0), "{name}: {outcome}");
        let receipt = scene.check(&old, "interrupted", name);
        let waits = receipt
            .rows("runtimes")
            .iter()
            .find(|row| scene.0.all[1].is(row));
        assert_eq!(waits.unwrap()["outcome"], "unaccounted", "{name}");
        assert_eq!(
            scene.serving(&scene.0.all[1]),
            [old[1]],
            "{name}: it was touched"
        );
    }

    let old = scene.release();
    let shell = |text: &str| -> Child {
        let command = ["bash", "-c", text];
        scene
            .0
            .fleet
            .sandbox
            .command(None, command)
            .spawn()
            .unwrap()
    };
    let piped = "/usr/bin/update apply --jobs 1 --verbose 2>&1 | head -c 1 >/dev/null";
    shell(piped).wait().unwrap();
    scene.check(&old, "clean", "a closed pipe");

    let old = scene.release();
    let drained = scene.drains();
    let mut terminal = shell(
        "script -qfec '/usr/bin/update apply --jobs 1 --verbose' /dev/null >/dev/null </dev/null & \
         echo $! >/run/terminal; wait",
    );
    scene.until_it_drains(drained);
    scene
        .0
        .fleet
        .sandbox
        .sh(None, "kill -9 $(cat /run/terminal)");
    terminal.wait().unwrap();
    scene.check(&old, "interrupted", "a killed terminal");

    let receipt = scene.update().run().expect(0);
    assert_eq!(receipt.rows("runtimes").len(), 2, "{}", receipt.summary());
    for one in &scene.0.all {
        assert_eq!(scene.serving(one).len(), 1, "{}", one.log());
    }
}
