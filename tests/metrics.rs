//! What a run tells others: metrics that Prometheus takes, a command on a verdict, and under a real systemd its
//! stage and the priority of its lines.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test may panic, and looks at the program from outside"
)]

mod support;

use std::io::Write as _;
use std::process::{Command, Stdio};

use fleet_update::migrate::HomeOutcome;
use fleet_update::plan::decide::RuntimeOutcome;
use fleet_update::receipt::Receipt;
use fleet_update::run::metrics;
use support::fleet::{ANN, BOB, Gateway, Plan};

fn sample() -> Receipt {
    Receipt::parse(serde_json::from_str(include_str!("support/receipt.json")).unwrap()).unwrap()
}

/// What `promtool check metrics` says; `None` where it is not installed, which is said.
fn promtool(text: &str) -> Option<String> {
    let child = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => {
            support::say(&format!("SKIPPED the check of metrics: promtool: {error}"));
            return None;
        }
    };
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    Some(format!(
        "{}{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        if output.status.success() {
            ""
        } else {
            "failed"
        }
    ))
}

#[test]
fn every_outcome_has_a_sample_and_promtool_says_nothing() {
    let mut receipt = sample();
    receipt.application = "odd \"name\"\\".into();
    let text = metrics::render(&receipt);
    for (list, words) in [
        (
            "homes",
            HomeOutcome::ALL.map(|outcome| outcome.word()).to_vec(),
        ),
        (
            "runtimes",
            RuntimeOutcome::ALL.map(|outcome| outcome.word()).to_vec(),
        ),
    ] {
        let rows = if list == "homes" {
            receipt.homes.len()
        } else {
            receipt.runtimes.len()
        };
        let mut sum = 0;
        for word in words {
            let start = format!(
                "fleet_update_{list}{{application=\"odd \\\"name\\\"\\\\\",outcome=\"{word}\"}} "
            );
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix(start.as_str()));
            let line = line.unwrap_or_else(|| panic!("{start} is not in\n{text}"));
            sum += line.parse::<usize>().unwrap();
        }
        assert_eq!(sum, rows, "{text}");
    }
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        // A name with labels, a value, and no timestamp.
        let (_, rest) = line.rsplit_once("} ").unwrap();
        assert!(rest.parse::<f64>().is_ok(), "{line}");
    }
    if let Some(said) = promtool(&text) {
        assert_eq!(said, "");
    }
}

#[test]
fn under_systemd_a_run_tells_its_stage_its_metrics_and_its_verdict() {
    // One of each user's runs: that is how the homes of a user have an install.
    let awake = [Gateway::of(ANN, "default"), Gateway::of(BOB, "lab")];
    let plan = Gateway::all()
        .into_iter()
        .filter(|one| !awake.contains(one))
        .fold(Plan::default(), Plan::asleep);
    let Some(fleet) = plan.boot() else { return };
    let sandbox = &fleet.sandbox;
    sandbox.write(
        "/usr/local/bin/told",
        "#!/bin/sh\n{ printf '<%s>' \"$@\"; echo; env | sort; readlink /proc/self/fd/0; } >>/run/told\nexit 3\n",
        0o755,
    );
    sandbox.write(
        "/etc/fleet-update/config.toml",
        "[notify]\non-clean = [\"/usr/local/bin/told\", \"$HOME a b\"]\non-not-clean = [\"/bin/sh\", \"-c\", \"sleep 1000 & wait\"]\nlimit = \"1s\"\n\
         [run]\nmetrics_file = \"/run/fleet.prom\"\n",
        0o644,
    );
    sandbox.write(
        "/run/systemd/system/try.service",
        "[Service]\nType=oneshot\nRemainAfterExit=yes\nNotifyAccess=main\nSuccessExitStatus=1\nEnvironment=SECRET=x\n\
         ExecStart=/usr/bin/update --verbose\n",
        0o644,
    );
    sandbox.sh(
        None,
        "systemctl daemon-reload && systemctl start try.service",
    );
    let show = |property: &str| {
        sandbox
            .sh(None, &format!("systemctl show -P {property} try.service"))
            .trim()
            .to_owned()
    };
    let receipt = support::update::latest_receipt(&fleet).unwrap();
    assert_eq!(
        (show("ExecMainStatus").as_str(), show("StatusText").as_str()),
        ("0", "clean"),
        "{}",
        receipt.summary()
    );

    // The command: an argv without a shell, an exact environment, and its failure is a warning.
    let told = String::from_utf8(sandbox.read("/run/told").unwrap()).unwrap();
    let lines: Vec<&str> = told.lines().collect();
    let run = lines[0]
        .split("/receipts/")
        .nth(1)
        .unwrap()
        .split(".json")
        .next()
        .unwrap();
    assert_eq!(
        lines[0],
        format!("<$HOME a b></var/lib/fleet-update/receipts/{run}.json><clean>")
    );
    assert!(
        sandbox
            .path(&format!("/var/lib/fleet-update/receipts/{run}.json"))
            .exists()
    );
    let names: Vec<&str> = lines
        .iter()
        .filter_map(|line| Some(line.split_once('=')?.0))
        .collect();
    // A shell adds PWD by itself.
    assert_eq!(
        names,
        ["HOME", "LANG", "LOGNAME", "PATH", "PWD", "USER"],
        "{told}"
    );
    assert_eq!(lines.last(), Some(&"/dev/null"), "{told}");

    // The journal: what is told is information, what went wrong is a warning; no mark is left in the text.
    let journal = sandbox.sh(None, "journalctl --sync; journalctl -u try.service -o json --output-fields=PRIORITY,MESSAGE,SYSLOG_IDENTIFIER");
    let of = |text: &str| {
        journal
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .find(|entry| {
                entry["MESSAGE"]
                    .as_str()
                    .is_some_and(|message| message.starts_with(text))
            })
            .and_then(|entry| Some(entry["PRIORITY"].as_str()?.to_owned()))
            .unwrap_or_else(|| panic!("{text:?} is not in\n{journal}"))
    };
    assert_eq!(of("inventory"), "6");
    assert_eq!(
        of("warning: the notification /usr/local/bin/told ended with exit status: 3"),
        "4"
    );

    // The metrics: all may read them, and they are those of this run.
    let check = |clean: u8| {
        let text = String::from_utf8(sandbox.read("/run/fleet.prom").unwrap()).unwrap();
        let line = format!("fleet_update_clean{{application=\"hermes\"}} {clean}\n");
        assert!(text.contains(&line), "{text}");
        if let Some(said) = promtool(&text) {
            assert_eq!(said, "");
        }
        text
    };
    let text = check(1);
    assert!(text.contains("outcome=\"restarted\"} 2\n"), "{text}");
    assert_eq!(sandbox.sh(None, "stat -c %a /run/fleet.prom").trim(), "644");

    // Not clean: the other command, which is ended at its limit with all that it started.
    fleet.set_config(Gateway::of(ANN, "work"), "broken: [unclosed\n");
    let start = std::time::Instant::now();
    sandbox.sh(None, "systemctl restart try.service");
    assert!(start.elapsed() < std::time::Duration::from_secs(60));
    assert_eq!(
        (show("ExecMainStatus").as_str(), show("StatusText").as_str()),
        ("1", "not-clean")
    );
    let journal = sandbox.sh(None, "journalctl --sync; journalctl -u try.service -o cat");
    assert!(
        journal.contains("warning: the notification /bin/sh was ended after 1 s"),
        "{journal}"
    );
    assert!(
        !sandbox
            .processes()
            .iter()
            .any(|process| process.command == "sleep 1000")
    );
    check(0);
    assert_eq!(
        sandbox.read("/run/told").map(|told| told.len()),
        Some(told.len()),
        "told twice"
    );

    // Bad input: there is no receipt, and nothing is known to be clean.
    sandbox.sh(
        None,
        "echo 'zzz = 1' >/etc/fleet-update/config.toml; update --metrics-file=/run/fleet.prom; [ $? = 3 ]",
    );
    let text = check(0);
    assert!(
        text.contains("fleet_update_exit_status{application=\"hermes\"} 3\n"),
        "{text}"
    );
}
