//! What a person started by hand, in a session of its own, and a site's row that lets it be respawned: the
//! next life is the old one again, byte for byte, or nothing was touched.

use std::time::Duration;

use serde_json::Value;

use crate::fleet::StandIns;
use crate::support::sandbox::Sandbox;
use crate::support::update::{Receipt, Update, wait_until_gone};
use crate::support::wait_for;

/// A value that may stand in the environments of the runtimes, and nowhere else.
const CANARY: &str = "c4n4ry-Zq81vLw0TnXe55";

const ROW: &str = r#"
[[mechanism]]
id = "by-hand"
match = { manager = ["scope", "nobody"] }
action = "respawn"
drain = { signal = "TERM", limit = "6s" }
settle = "2s"
speak_limit = "20s"
limit = "20s"
instruction = "in {folder}: {command}"
"#;

/// One that a person started.
struct ByHand {
    user: Option<&'static str>,
    name: &'static str,
    pid: u32,
}

impl ByHand {
    /// Runs shell text in a scope of its own; `RUN` stands for the command, without its output.
    fn start(
        sandbox: &Sandbox,
        user: Option<&'static str>,
        name: &'static str,
        text: &str,
    ) -> Self {
        let run = format!(
            "setsid env STAND_IN_NAME={name} SECRET_TOKEN={CANARY} /opt/stand-in/bin/python \
             -m hermes_cli.main -p {name} gateway run"
        );
        let text = text.replace("RUN", &run);
        let scope = if user.is_some() {
            "--user --scope"
        } else {
            "--scope"
        };
        // What this machine's manager starts has its bounding capabilities, and what enters the sandbox others.
        let from = if name == "own" {
            "systemd-run -q --user --collect"
        } else {
            ""
        };
        sandbox.sh(
            user,
            &format!(
                "mkdir -p ~/.hermes/profiles/{name}; cd; umask 077
                 echo '_config_version: 33' >~/.hermes/profiles/{name}/config.yaml
                 cat >~/{name}.sh <<'END'\n{text}\nEND
                 {from} systemd-run -q {scope} --unit=by-hand-{name} sh ~/{name}.sh </dev/null >/dev/null 2>&1 &
                 exit 0"
            ),
        );
        let pid = wait_for(name, Duration::from_secs(60), || {
            serving(sandbox, name).pop()
        });
        Self { user, name, pid }
    }

    fn row<'a>(&self, receipt: &'a Receipt) -> &'a Value {
        let rows = receipt.rows("runtimes").iter();
        let mut rows = rows.filter(|row| row["profiles"][0] == self.name);
        let row = rows
            .next()
            .unwrap_or_else(|| panic!("no row of {}", self.name));
        assert!(rows.next().is_none(), "two rows of {}", self.name);
        row
    }

    fn is(&self, receipt: &Receipt, outcome: &str, reason: &str) {
        let row = self.row(receipt);
        assert_eq!(row["outcome"], outcome, "{}: {row:#}", self.name);
        let why = row["reason"].as_str().unwrap();
        assert!(why.contains(reason), "{}: {why}", self.name);
    }

    /// Those that serve now; the old one lives exactly if it is among them.
    fn now(&self, sandbox: &Sandbox) -> Vec<u32> {
        serving(sandbox, self.name)
    }

    /// What the kernel says of a process that a new one must have as well.
    fn facts(&self, sandbox: &Sandbox, pid: u32) -> String {
        sandbox.sh(
            None,
            &format!(
                "cd /proc/{pid}; tr '\\0' '\\n' <cmdline; tr '\\0' '\\n' <environ | sort; readlink cwd exe fd/1 fd/2
                 cat limits cgroup oom_score_adj attr/current 2>/dev/null
                 grep -E '^(Uid|Gid|Groups|Umask|NoNewPrivs|Seccomp|Cap)' status; cut -d' ' -f19 stat"
            ),
        )
    }
}

/// The processes that the log of a stand-in says serve, and that live.
fn serving(sandbox: &Sandbox, name: &str) -> Vec<u32> {
    let bytes = sandbox.read(&format!("/tmp/stand-in/{name}"));
    let text = String::from_utf8(bytes.unwrap_or_default()).unwrap();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut found: Vec<u32> = lines
        .filter(|line| line["event"] == "serves")
        .map(|line| {
            (
                line["pid"].as_u64().unwrap(),
                line["start"].as_u64().unwrap(),
            )
        })
        .filter_map(|(pid, start)| {
            let pid = u32::try_from(pid).unwrap();
            let life = sandbox.process(pid)?;
            (life.start_ticks == start).then_some(pid)
        })
        .collect();
    found.dedup();
    found
}

fn boot() -> Option<StandIns> {
    let stand_ins = StandIns::boot(Vec::new())?;
    let sandbox = &stand_ins.fleet.sandbox;
    sandbox.write("/etc/fleet-update/mechanisms.d/respawn.toml", ROW, 0o644);
    for user in ["ann", "bob"] {
        let folder = format!("/home/{user}/.config/fleet-update/mechanisms.d");
        sandbox.sh(Some(user), &format!("mkdir -p {folder}"));
        sandbox.write(&format!("{folder}/respawn.toml"), ROW, 0o644);
    }
    Some(stand_ins)
}

/// Makes everything that runs older than its code.
fn release(sandbox: &Sandbox) {
    sandbox.sh(
        None,
        "sleep 0.1; touch /opt/stand-in/lib/python3.*/site-packages/*.dist-info/RECORD",
    );
}

fn shows_no_secret(sandbox: &Sandbox, texts: &[&str]) {
    assert!(texts.iter().all(|text| !text.contains(CANARY)));
    let found = sandbox.sh(
        None,
        &format!(
            "grep -rl {CANARY} /var/lib/fleet-update /run/fleet-update /home/*/.local/state /run/log /var/log || :"
        ),
    );
    assert_eq!(found.trim(), "", "a secret was written down");
}

#[test]
fn what_is_respawned_is_the_same_again_and_what_cannot_be_is_not_touched() {
    let Some(stand_ins) = boot() else { return };
    let sandbox = &stand_ins.fleet.sandbox;
    let by_hand = |name, text| ByHand::start(sandbox, Some("ann"), name, text);
    let same = by_hand(
        "aa-same",
        "mkdir -p w; cd w; umask 027; ulimit -n 777; ulimit -c 0; renice -n 3 $$ >/dev/null
         RUN >>~/same.log 2>&1 &",
    );
    let relative = by_hand(
        "relative",
        "cd /opt/stand-in; setsid env STAND_IN_NAME=relative ./bin/python -m hermes_cli.main -p relative \
         gateway run >/dev/null 2>&1 &",
    );
    let piped = by_hand("piped", "RUN 2>&1 | cat >/dev/null &");
    let parented = by_hand(
        "parented",
        "exec python3 -c 'import subprocess, sys; subprocess.call(sys.argv[1:])' RUN >/dev/null 2>&1",
    );
    let looped = by_hand("looped", "while :; do RUN >/dev/null 2>&1; sleep 0.2; done");
    let terminal = by_hand(
        "terminal",
        "exec script -qec 'env STAND_IN_NAME=terminal /opt/stand-in/bin/python -m hermes_cli.main -p terminal \
         gateway run' /dev/null >/dev/null 2>&1 &",
    );
    let homeless = by_hand("homeless", "mkdir h; cd h; RUN >/dev/null 2>&1 &");
    sandbox.sh(Some("ann"), "rmdir ~/h");
    let lost_program = by_hand(
        "lost-program",
        "mkdir -p venv/bin; ln -s /opt/stand-in/bin/python venv/bin/python; cp /opt/stand-in/pyvenv.cfg venv
         cp -r /opt/stand-in/lib venv/lib
         setsid env STAND_IN_NAME=lost-program ~/venv/bin/python -m hermes_cli.main -p lost-program \
         gateway run >/dev/null 2>&1 &",
    );
    sandbox.sh(
        Some("ann"),
        "ln -sf /bin/true ~/venv/bin/python; touch ~/venv/lib/python3.*/site-packages/*/RECORD",
    );
    let deaf = by_hand("deaf", "export STAND_IN_DEAF=TERM; RUN >/dev/null 2>&1 &");
    let broken = by_hand("zz-broken", "RUN >/dev/null 2>&1 &");
    sandbox.sh(Some("ann"), "echo 0.2 1 >~/.hermes/profiles/zz-broken/end");
    let roots = ByHand::start(sandbox, None, "of-root", "RUN >/dev/null 2>&1 &");
    let before = same.facts(sandbox, same.pid);
    release(sandbox);

    let arguments = [
        "apply",
        "--json",
        "--jobs",
        "8",
        "--max-failures",
        "9",
        "--verbose",
    ];
    let outcome = Update::new(&stand_ins.fleet, &arguments).run();
    let receipt = outcome.expect(1);
    wait_until_gone(&stand_ins.fleet);

    for renewed in [&same, &relative] {
        renewed.is(&receipt, "restarted", "");
        let now = renewed.now(sandbox);
        assert_eq!(now.len(), 1, "{}", renewed.name);
        assert_ne!(now[0], renewed.pid);
        let stat = sandbox.sh(None, &format!("sed 's/.*) //' /proc/{}/stat", now[0]));
        let fields: Vec<&str> = stat.split(' ').collect();
        assert_eq!(
            fields[1], "1",
            "its parent: nothing of ours is left above it"
        );
        assert_eq!(fields[4], "0", "it has no terminal");
    }
    let pid = same.now(sandbox)[0];
    assert_eq!(before, same.facts(sandbox, pid), "it is not what it was");
    assert!(
        before.contains(CANARY) && before.contains(" 777 "),
        "{before}"
    );

    for (left, outcome, why) in [
        (&piped, "manual", "its output is a pipe"),
        (&parented, "manual", "its parent lives"),
        (&looped, "manual", ""),
        (&terminal, "manual", "it has a terminal"),
        (&homeless, "manual", "its folder was removed"),
        (&lost_program, "manual", "does not lead to the program"),
        (&roots, "manual", "root's own"),
        (&deaf, "failed", "the old process still runs"),
    ] {
        left.is(&receipt, outcome, why);
        assert_eq!(left.now(sandbox), [left.pid], "{} was touched", left.name);
        let remedy = left.row(&receipt)["remedy"].as_str().unwrap();
        assert!(!remedy.contains("UNKNOWN"), "{remedy}");
    }
    broken.is(&receipt, "down", "");
    assert_eq!(broken.now(sandbox), [0; 0]);
    shows_no_secret(sandbox, &[&outcome.stdout, &outcome.stderr]);
}

#[test]
fn a_user_respawns_its_own_and_neither_its_units_end_nor_its_death_takes_the_next_along() {
    let Some(stand_ins) = boot() else { return };
    let sandbox = &stand_ins.fleet.sandbox;
    let own = ByHand::start(sandbox, Some("ann"), "own", "RUN >/dev/null 2>&1 &");
    let slow = ByHand::start(
        sandbox,
        Some("bob"),
        "slow",
        "export STAND_IN_STOP=4; RUN >/dev/null 2>&1 &",
    );
    release(sandbox);
    let service = "exec systemd-run --user --quiet --wait --pipe --collect";
    let arguments = ["apply", "--json"];
    let outcome = Update::new(&stand_ins.fleet, &arguments)
        .by("ann")
        .after(service)
        .run();
    let receipt = outcome.expect(0);
    own.is(&receipt, "restarted", "");
    wait_until_gone(&stand_ins.fleet);
    let now = own.now(sandbox);
    assert_eq!(now.len(), 1, "it ended with the unit that the run was in");
    assert_ne!(now[0], own.pid);
    let group = sandbox.process(now[0]).unwrap().cgroup;
    assert!(group.contains(".scope"), "{group}");

    // Killed, helper and all, while the old life ends: whoever was told to go still finishes.
    let mut running = Update::new(&stand_ins.fleet, &["apply", "--json", "--user", "bob"]).start();
    wait_for("it was asked to end", Duration::from_secs(60), || {
        let starters = sandbox.processes();
        let asked = starters
            .iter()
            .any(|one| one.command.ends_with("helper starter"));
        let handle = running.handle();
        let state = sandbox.sh(None, &format!("cat /proc/{}/wchan || :", slow.pid));
        (asked && handle.is_some() && state.contains("nanosleep")).then_some(())
    });
    let handle = running.handle().unwrap();
    rustix::process::pidfd_send_signal(&handle, rustix::process::Signal::KILL).unwrap();
    wait_for("the run is dead", Duration::from_secs(10), || {
        running.ended().then_some(())
    });
    let next = wait_for("the next life", Duration::from_secs(60), || {
        slow.now(sandbox).into_iter().find(|pid| *pid != slow.pid)
    });
    wait_until_gone(&stand_ins.fleet);
    assert_eq!(slow.now(sandbox), [next]);
    let again = Update::new(&stand_ins.fleet, &["apply", "--json"])
        .run()
        .expect(0);
    slow.is(&again, "current", "");
    own.is(&again, "current", "");
    shows_no_secret(sandbox, &[&outcome.stdout, &outcome.stderr]);
}
