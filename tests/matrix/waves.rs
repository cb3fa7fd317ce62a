//! How much one bad release may take down: the first wave, the limit of the second, and one install whose
//! code is being changed while the others go on.

use std::time::Duration;

use crate::fleet::StandIns;
use crate::scenario::{Scenario, command};
use crate::support::update::{Receipt, Update};
use crate::support::wait_for;
use crate::truth::log;

/// Outcomes of these units, by the beginning of their names.
fn outcomes(receipt: &Receipt, all: &[Scenario], prefix: &str) -> Vec<String> {
    let of = all.iter().filter(|one| one.name.starts_with(prefix));
    of.map(|one| {
        let row = receipt
            .rows("runtimes")
            .iter()
            .find(|row| one.is(row))
            .unwrap();
        let reason = row["reason"].as_str().unwrap();
        let word = reason.split(':').next().unwrap();
        match row["outcome"].as_str().unwrap() {
            "unaccounted" => word.to_owned(),
            other => other.to_owned(),
        }
    })
    .collect()
}

#[test]
fn after_so_many_failures_no_further_one_is_touched_and_they_all_live() {
    let names = ["bad-1", "bad-2", "bad-3", "bad-4", "bad-5", "bad-6"];
    let mut all = vec![Scenario::new("aa-good")];
    for name in names {
        all.push(
            Scenario::new(name)
                .lines("Restart=no\nExecStartPre=/usr/bin/test ! -e %h/bad")
                .prepare("touch ~/bad"),
        );
    }
    let Some(stand_ins) = StandIns::boot(all) else {
        return;
    };
    let arguments = ["apply", "--json", "--jobs", "1", "--max-failures", "2"];
    let receipt = Update::new(&stand_ins.fleet, &arguments).run().expect(1);
    let all = &stand_ins.all;
    assert_eq!(outcomes(&receipt, all, "aa-"), ["restarted"]);
    assert_eq!(
        outcomes(&receipt, all, "bad-"),
        ["down", "down", "aborted", "aborted", "aborted", "aborted"],
        "{}",
        receipt.summary()
    );
    let sandbox = &stand_ins.fleet.sandbox;
    let living = all.iter().skip(3).filter(|one| {
        log(sandbox, one).iter().any(|line| {
            let life = sandbox.process(line.pid);
            life.is_some_and(|life| life.start_ticks == line.start)
        })
    });
    assert_eq!(living.count(), 4, "{}", receipt.summary());
}

#[test]
fn one_install_that_changes_meanwhile_is_left_alone_and_the_others_go_on() {
    // Those of the second install wait for the first: one after another, and its drain takes a while.
    let other = |name: &'static str| {
        Scenario::new(name).exec(&command(name, "gateway run").replace("stand-in", "fresh"))
    };
    let all = vec![
        Scenario::new("aa-slow").told("DRAIN=4"),
        Scenario::new("bb-next"),
        other("cc-other"),
        other("dd-other"),
    ];
    let Some(stand_ins) = StandIns::boot(all) else {
        return;
    };
    let sandbox = &stand_ins.fleet.sandbox;
    let record = |name: &str| format!("/opt/{name}/lib/python3.*/site-packages/*.dist-info/RECORD");
    sandbox.sh(None, &format!("touch {}", record("fresh")));
    let running = Update::new(&stand_ins.fleet, &["apply", "--json", "--jobs", "1"]).start();
    wait_for("the first drains", Duration::from_secs(60), || {
        let lines = log(sandbox, &stand_ins.all[0]);
        lines
            .iter()
            .any(|line| line.event == "draining")
            .then_some(())
    });
    sandbox.sh(None, &format!("touch {}", record("fresh")));
    let receipt = running.finish().expect(1);
    let all = &stand_ins.all;
    assert_eq!(
        outcomes(&receipt, all, "aa-"),
        ["restarted"],
        "{}",
        receipt.summary()
    );
    assert_eq!(
        outcomes(&receipt, all, "bb-"),
        ["restarted"],
        "{}",
        receipt.summary()
    );
    assert_eq!(
        outcomes(&receipt, all, "cc-"),
        ["aborted"],
        "{}",
        receipt.summary()
    );
    assert_eq!(
        outcomes(&receipt, all, "dd-"),
        ["aborted"],
        "{}",
        receipt.summary()
    );
}

#[test]
fn what_the_first_wave_takes_along_ends_the_restarts() {
    let fresh = |name: &'static str| {
        Scenario::new(name).exec(&command(name, "gateway run").replace("stand-in", "fresh"))
    };
    let all = vec![
        Scenario::new("aa-first").told("DEAF=UNCAUGHT"),
        fresh("sibling")
            .unit_lines(
                "BindsTo=hermes-gateway-aa-first.service\nAfter=hermes-gateway-aa-first.service",
            )
            .lines("ExecCondition=/usr/bin/test ! -e %h/sibling")
            .prepare("touch ~/sibling"),
        Scenario::new("zz-next"),
    ];
    let Some(stand_ins) = StandIns::boot(all) else {
        return;
    };
    let receipt = Update::new(&stand_ins.fleet, &["apply", "--json"])
        .run()
        .expect(1);
    let all = &stand_ins.all;
    assert_eq!(
        outcomes(&receipt, all, "aa-"),
        ["restarted"],
        "{}",
        receipt.summary()
    );
    assert_eq!(
        outcomes(&receipt, all, "sibling"),
        ["failed"],
        "{}",
        receipt.summary()
    );
    assert_eq!(
        outcomes(&receipt, all, "zz-"),
        ["aborted"],
        "{}",
        receipt.summary()
    );
}
