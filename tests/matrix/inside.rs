//! A run that was started from inside a runtime's control group, which that runtime's restart empties.

use crate::fleet::StandIns;
use crate::scenario::Scenario;
use crate::support::update::{Update, latest_receipt};
use crate::truth::log;

#[test]
fn a_run_from_inside_a_runtime_restarts_it_and_lives_to_say_so() {
    let one = Scenario::new("encloses").lines("RestartSec=0.5");
    let Some(stand_ins) = StandIns::boot(vec![one]) else {
        return;
    };
    let sandbox = &stand_ins.fleet.sandbox;
    let one = &stand_ins.all[0];
    let as_ann = "setpriv --reuid 2001 --regid 2001 --init-groups env -i HOME=/home/ann";
    for user in ["", as_ann] {
        sandbox.sh(
            None,
            "sleep 0.1; touch /opt/stand-in/lib/python3.*/site-packages/*.dist-info/RECORD",
        );
        let group = sandbox.sh(
            Some("ann"),
            &format!("systemctl --user show --value -p ControlGroup {}", one.unit),
        );
        let before = log(sandbox, one).len();
        let inside = format!(
            "echo $$ >/sys/fs/cgroup{}/cgroup.procs; exec {user}",
            group.trim()
        );
        let arguments = ["apply", "--json", "--user", "ann"];
        let outcome = Update::new(&stand_ins.fleet, &arguments)
            .after(&inside)
            .run();
        let receipt = outcome.expect(0);
        let row = receipt
            .rows("runtimes")
            .iter()
            .find(|row| one.is(row))
            .unwrap();
        assert_eq!(row["outcome"], "restarted", "{user}: {}", receipt.summary());
        let notes = receipt.0["notes"].to_string();
        assert!(
            notes.contains("moved to") && notes.contains(".scope"),
            "{notes}"
        );
        let lines = log(sandbox, one);
        let started = lines[before..]
            .iter()
            .filter(|line| line.event == "started");
        assert_eq!(started.count(), 1, "{user}");
        if user.is_empty() {
            let kept = latest_receipt(&stand_ins.fleet).unwrap();
            assert_eq!(kept.0["run_id"], receipt.0["run_id"]);
        }
    }
}
