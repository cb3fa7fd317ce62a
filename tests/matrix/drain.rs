//! Twenty that drain side by side take as long as one: the restarts of a run are waves, not a queue.

use std::time::Duration;

use crate::fleet::StandIns;
use crate::scenario::Scenario;
use crate::support::say;
use crate::support::update::Update;

/// A drain, and what a gateway takes to stop and start on a machine of its own.
const DRAIN: f64 = 3.0;

/// The row's settle time.
const SETTLE: f64 = 3.0;

#[test]
fn twenty_that_drain_take_two_waves_and_not_twenty() {
    let names: Vec<&'static str> = (0..20)
        .map(|number| &*String::leak(format!("drains-{number:02}")))
        .collect();
    let all = names
        .iter()
        .map(|&name| Scenario::new(name).told("DRAIN=3"))
        .collect();
    let Some(stand_ins) = StandIns::boot(all) else {
        return;
    };
    let arguments = ["apply", "--json", "--jobs", "20", "--verbose"];
    let outcome = Update::new(&stand_ins.fleet, &arguments).run();
    let receipt = outcome.expect(0);
    // Whoever looks on sees what a drain still waits for.
    assert!(
        outcome.stderr.contains("drain, 1 agent at work"),
        "{}",
        outcome.stderr
    );
    let waited: Vec<f64> = receipt
        .rows("runtimes")
        .iter()
        .map(|row| Duration::from_millis(row["waited_ms"].as_u64().unwrap()).as_secs_f64())
        .collect();
    assert_eq!(waited.len(), 20, "{}", receipt.summary());
    // The first went alone; the longest of the others is the second wave.
    let restarts = waited[0] + waited[1..].iter().copied().fold(0.0, f64::max);
    let floor = 2.0 * (DRAIN + SETTLE);
    let ratio = restarts / floor;
    say(&format!(
        "20 drains of 3 s: restart phase {restarts:.1} s, its two waves {floor:.1} s and two starts, ratio {ratio:.2}; \
         one after another {:.0} s; the whole run {:.1} s",
        waited.iter().sum::<f64>(),
        outcome.took.as_secs_f64(),
    ));
    // On a machine of its own it is below 1.2; a busy one starts twenty programs slowly.
    assert!(ratio < 3.0, "{ratio}\n{}", receipt.summary());
}
