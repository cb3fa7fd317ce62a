//! Attacks that stand there when root runs: one user each, all of them in one run.

use std::time::{Duration, Instant};

use crate::machine::{Machine, Mal, PRIVATE, rows_below, show};
use crate::support::fleet::CONFIG_V12;
use crate::support::update::Outcome;

/// One attack.
struct Attack {
    name: &'static str,
    /// What root prepares, with `$H` for the user's home folder, `$U` for its name and `$I` for its id.
    prepare: &'static str,
    /// What may become of the homes below the user's folder; empty: there may be no row.
    outcomes: &'static [&'static str],
}

const ATTACKS: &[Attack] = &[
    Attack {
        name: "home is a link to another's home",
        prepare: "rm -r $H/.hermes; ln -s /home/vic/.hermes $H/.hermes",
        outcomes: &["skipped"],
    },
    Attack {
        name: "home is a link to root's folder",
        prepare: "rm -r $H/.hermes; ln -s /root $H/.hermes",
        outcomes: &["failed"],
    },
    Attack {
        name: "profile is a link to another's profile",
        prepare: "mkdir $H/.hermes/profiles; ln -s /home/vic/.hermes/profiles/work $H/.hermes/profiles/x",
        outcomes: &["migrated", "skipped"],
    },
    Attack {
        name: "profile is a link to root's home",
        prepare: "mkdir $H/.hermes/profiles; ln -s /root/.hermes $H/.hermes/profiles/x",
        outcomes: &["migrated", "skipped"],
    },
    Attack {
        name: "the folder of profiles is a link to another's",
        prepare: "ln -s /home/vic/.hermes/profiles $H/.hermes/profiles",
        outcomes: &["migrated"],
    },
    Attack {
        name: "the folder of profiles is a link to /etc",
        prepare: "ln -s /etc $H/.hermes/profiles",
        outcomes: &["migrated", "failed"],
    },
    Attack {
        name: "config is a link to another's config",
        prepare: "ln -sf /home/vic/.hermes/config.yaml $H/.hermes/config.yaml",
        outcomes: &["invalid", "failed"],
    },
    Attack {
        name: "config is a link to /etc/shadow",
        prepare: "ln -sf /etc/shadow $H/.hermes/config.yaml",
        outcomes: &["invalid", "failed"],
    },
    Attack {
        name: "config is a link to a world-readable file",
        prepare: "ln -sf /etc/passwd $H/.hermes/config.yaml",
        outcomes: &["invalid", "failed"],
    },
    Attack {
        name: "config is a hard link to another's file",
        prepare: "ln -f /home/vic/notes.yaml $H/.hermes/config.yaml",
        outcomes: &["invalid", "failed"],
    },
    Attack {
        name: "config is a hard link to root's readable file",
        prepare: "ln -f /home/.of-root.yaml $H/.hermes/config.yaml",
        outcomes: &["failed", "read-only"],
    },
    Attack {
        name: "secrets file is a link to another's",
        prepare: "ln -s /home/vic/notes.yaml $H/.hermes/.env",
        outcomes: &["migrated", "invalid", "failed"],
    },
    Attack {
        name: "config is a FIFO",
        prepare: "rm $H/.hermes/config.yaml; mkfifo -m 666 $H/.hermes/config.yaml",
        outcomes: &["invalid"],
    },
    Attack {
        name: "config is a device",
        prepare: "rm $H/.hermes/config.yaml; mknod -m 666 $H/.hermes/config.yaml c 1 5",
        outcomes: &["invalid"],
    },
    Attack {
        name: "config is a socket",
        prepare: "rm $H/.hermes/config.yaml; python3 -c 'import socket,sys
s=socket.socket(socket.AF_UNIX); s.bind(sys.argv[1])' $H/.hermes/config.yaml",
        outcomes: &["invalid"],
    },
    Attack {
        name: "config is a folder",
        prepare: "rm $H/.hermes/config.yaml; mkdir $H/.hermes/config.yaml",
        outcomes: &["invalid"],
    },
    Attack {
        name: "config is sparse, 8 GB",
        prepare: "truncate -s 8G $H/.hermes/config.yaml",
        outcomes: &["invalid"],
    },
    Attack {
        name: "config is huge, 50 MB",
        prepare: "yes 'a: 1' | head -c 50000000 >$H/.hermes/config.yaml",
        outcomes: &["invalid"],
    },
    Attack {
        name: "config nests 100,000 deep",
        prepare: "python3 -c 'print(\"a: \" + \"[\" * 100000)' >$H/.hermes/config.yaml",
        outcomes: &["invalid"],
    },
    Attack {
        name: "config is an alias bomb",
        prepare: "python3 -c '
print(\"_config_version: 12\\na0: &a0 [x, x, x, x, x, x, x, x, x]\")
for n in range(1, 40): print(f\"a{n}: &a{n} [\" + \", \".join([f\"*a{n-1}\"] * 9) + \"]\")' >$H/.hermes/config.yaml",
        outcomes: &["invalid"],
    },
    Attack {
        name: "pid files name others' processes, 1, 0, -1, 2^64",
        prepare: "n=0; for pid in $G 1 0 -1 99999999999999999999 $$; do n=$((n + 1)); p=$H/.hermes/profiles/p$n
  mkdir -p $p; cp $H/.hermes/config.yaml $p
  echo \"{\\\"pid\\\": $pid, \\\"start_time\\\": $(awk '{print $22}' /proc/$G/stat)}\" >$p/gateway.pid
done",
        outcomes: &["migrated"],
    },
    Attack {
        name: "state file says that another's gateway is ours",
        prepare: "echo \"{\\\"pid\\\": $G, \\\"start_time\\\": $(awk '{print $22}' /proc/$G/stat), \
\\\"gateway_state\\\": \\\"running\\\", \\\"hermes_home\\\": \\\"$H/.hermes\\\"}\" >$H/.hermes/gateway_state.json
cp $H/.hermes/gateway_state.json $H/.hermes/gateway.pid",
        outcomes: &["migrated"],
    },
    Attack {
        name: "lock file is a link to another's lock",
        prepare: "ln -s /home/ann/.hermes/gateway.lock $H/.hermes/gateway.lock
echo \"{\\\"pid\\\": $G, \\\"start_time\\\": $(awk '{print $22}' /proc/$G/stat)}\" >$H/.hermes/gateway.pid",
        outcomes: &["migrated"],
    },
    Attack {
        name: "the updater's marker names process 1",
        prepare: "echo 1 >$H/.hermes/.hermes-update-in-progress",
        outcomes: &["conflict"],
    },
    Attack {
        name: "profile names with line ends, escapes, bidi, dots",
        prepare: "for n in $'a\\nhome /root migrated' $'\\e[2J\\e]0;x\\a' $'\\u202egro.live' '...' '..x' $'\\x80\\xff'; do
  mkdir -p \"$H/.hermes/profiles/$n\"; cp $H/.hermes/config.yaml \"$H/.hermes/profiles/$n/\"; done",
        outcomes: &["migrated", "skipped"],
    },
    Attack {
        name: "config cannot be changed (immutable)",
        prepare: "chown $U: $H/.hermes/config.yaml
chattr +i $H/.hermes/config.yaml || { mount --bind $H/.hermes $H/.hermes; mount -o remount,bind,ro $H/.hermes; }",
        outcomes: &["read-only"],
    },
    Attack {
        name: "home without any permission",
        prepare: "chown $U: $H/.hermes; chmod 0000 $H/.hermes",
        outcomes: &["invalid", "failed", "skipped"],
    },
    Attack {
        name: "home on a full file system",
        prepare: "cp $H/.hermes/config.yaml $H/c; mount -t tmpfs -o size=64k,mode=700 tmpfs $H/.hermes
cp $H/c $H/.hermes/config.yaml; head -c 1M /dev/zero >$H/.hermes/fill || :",
        outcomes: &["failed"],
    },
    Attack {
        name: "a thousand names of our temporary files are taken",
        prepare: "for p in $(seq 1 60); do for n in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
  ln -s /home/vic/.hermes/config.yaml $H/.hermes/.fleet-update-$p-$n.tmp; done; done",
        outcomes: &["migrated"],
    },
    Attack {
        name: "checkout with hostile git configuration and version",
        prepare: "mkdir -p $H/.hermes/hermes-agent/.git $H/.hermes/hermes-agent/hermes_cli
printf '[core]\\n\\tfsmonitor = \"touch /tmp/pwned-git\"\\n\\thooksPath = /tmp\\n' >$H/.hermes/hermes-agent/.git/config
echo 'DEFAULT_CONFIG = {\"_config_version\": 4000000000}' >$H/.hermes/hermes-agent/hermes_cli/config.py",
        outcomes: &["beyond-catalog", "no-install", "migrated"],
    },
    Attack {
        name: "config commands the reader to run code",
        prepare: "cat >$H/.hermes/config.yaml <<'EOS'
_config_version: 12
a: !!python/object/apply:os.system [\"touch /tmp/pwned-yaml\"]
EOS",
        outcomes: &["migrated", "invalid", "failed"],
    },
];

#[test]
fn what_stands_in_a_hostile_home_changes_nothing_but_its_own_rows() {
    let Some(machine) = Machine::boot() else {
        return;
    };
    let gateway = machine.fleet.wait_until_running(machine.gateways[0]).pid;
    let users: Vec<(Mal, &Attack)> = ATTACKS
        .iter()
        .enumerate()
        .map(|(number, attack)| (machine.mal(&format!("a{number:02}")), attack))
        .collect();
    for (mal, attack) in &users {
        machine.sh(&format!(
            "H=/home/{name} U={name} I={uid} G={gateway}\n{prepare}",
            name = mal.name,
            uid = mal.uid,
            prepare = attack.prepare,
        ));
        // What is one name of several keeps its owner.
        machine.sh(&format!(
            "find /home/{0} ! -type d -links 1 -user root -exec chown -h {0}: {{}} + ; \
             find /home/{0} -type d -user root -exec chown -h {0}: {{}} +",
            mal.name
        ));
    }
    let before = machine.before();
    let start = Instant::now();
    let outcome = machine.run(&[]);
    let breaches = machine.breaches(&before, &outcome);
    let receipt = outcome.receipt();
    let mut table = Vec::new();
    let mut wrong = breaches;
    for (mal, attack) in &users {
        let rows = rows_below(&receipt, &mal.path(""));
        let found: Vec<&str> = rows
            .iter()
            .map(|row| row["outcome"].as_str().unwrap_or("?"))
            .collect();
        if found
            .iter()
            .any(|outcome| !attack.outcomes.contains(outcome))
            || found.is_empty() && !attack.outcomes.is_empty() && !attack.name.starts_with("home ")
        {
            wrong.push(format!("{}: {found:?} {rows:#?}", attack.name));
        }
        if rows.iter().any(|row| row["uid"] != mal.uid) {
            wrong.push(format!("{}: a row of another: {rows:#?}", attack.name));
        }
        let reason = rows
            .iter()
            .find_map(|row| row["reason"].as_str().filter(|one| !one.is_empty()));
        table.push((
            attack.name.to_owned(),
            format!("{} {}", counted(&found), reason.unwrap_or("")),
        ));
    }
    show("what stands in a hostile home", &table, start);
    for trace in ["pwned-git", "pwned-yaml"] {
        if machine
            .fleet
            .sandbox
            .path(&format!("/tmp/{trace}"))
            .exists()
        {
            wrong.push(format!("{trace}: something of a user's was run"));
        }
    }
    wrong.extend(drawn(&machine, &outcome));
    if outcome.status != Some(1) || outcome.took > Duration::from_secs(60) {
        wrong.push(format!("{outcome}"));
    }
    assert!(wrong.is_empty(), "{}\n{outcome}", wrong.join("\n"));
    // The hostile homes that were migrated hold what everybody's hold.
    let kept = machine.fleet.sandbox.read("/home/a22/.hermes/config.yaml");
    assert_eq!(
        kept.as_deref(),
        Some(crate::migrated(CONFIG_V12).as_bytes())
    );
    assert!(!format!("{outcome}").contains(PRIVATE));
}

/// The outputs in which a name kept a letter that draws on a terminal, hides or turns text.
fn drawn(machine: &Machine, outcome: &Outcome) -> Vec<String> {
    let sandbox = &machine.fleet.sandbox;
    let mut shown = vec![
        ("apply --json".to_owned(), outcome.stdout.clone()),
        ("what apply told".to_owned(), outcome.stderr.clone()),
    ];
    for arguments in [
        "plan --verbose --to 33",
        "plan --format yaml --to 33",
        "receipt show --verbose",
        "receipt show --json",
        "receipt show --format yaml",
        "receipt show --html /run/names.html",
        "audit export",
        "apply --to 33 --verbose --metrics-file /run/names.prom",
    ] {
        let output = sandbox.shell(None, &format!("/usr/bin/update {arguments} 2>&1"));
        let text = String::from_utf8(output.stdout).unwrap();
        shown.push((arguments.to_owned(), text));
    }
    for path in [
        "/run/names.html",
        "/run/names.prom",
        "/var/lib/fleet-update/receipts/latest.json",
    ] {
        let bytes = sandbox.read(path).unwrap();
        shown.push((path.to_owned(), String::from_utf8(bytes).unwrap()));
    }
    let is_fine = |letter: char| {
        letter == '\n'
            || !letter.is_control()
                && !matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut drawn = Vec::new();
    for (name, text) in &shown {
        if let Some(at) = text.find(|letter| !is_fine(letter)) {
            let around: String = text[at..].chars().take(20).collect();
            drawn.push(format!("{name}: {around:?}"));
        }
        // A name with a line end must not begin a line of its own.
        if text
            .lines()
            .any(|line| line.trim_start().starts_with("home /root migrated"))
        {
            drawn.push(format!("{name}: a name forged a line"));
        }
    }
    let is_there = shown
        .iter()
        .filter(|(_, text)| text.contains("gro.live"))
        .count();
    if is_there < 8 {
        drawn.push(format!("the name is in {is_there} outputs only"));
    }
    drawn
}

/// `migrated ×3, failed`.
fn counted(outcomes: &[&str]) -> String {
    let mut counts = std::collections::BTreeMap::new();
    for outcome in outcomes {
        *counts.entry(*outcome).or_insert(0) += 1;
    }
    let words: Vec<String> = counts
        .into_iter()
        .map(|(word, count)| match count {
            1 => word.to_owned(),
            _ => format!("{word} ×{count}"),
        })
        .collect();
    words.join(", ")
}
