//! What is swapped, locked, killed, stopped and traced while root runs.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::machine::{Machine, Mal, PRIVATE, rows_below, show};
use crate::support::long;

/// What a user does all the time; `sys.argv[1]` is its home folder.
struct Race {
    name: &'static str,
    prepare: &'static str,
    script: &'static str,
}

/// Puts a folder and a link to another's in each other's place.
const SWAP: &str = "
import sys, time
home = sys.argv[1]
at, real, link = (home + '/' + name for name in sys.argv[2:5])
while not over():
    for one in (link, real):
        try:
            os.rename(at, home + '/.aside')
            os.rename(one, at)
            os.rename(home + '/.aside', link if one == real else real)
        except OSError:
            for a, b in ((home + '/.aside', real if os.path.exists(link) else link),):
                try: os.rename(a, b)
                except OSError: pass
        time.sleep(0.0007)
";

const RACES: &[Race] = &[
    Race {
        name: "profile folder swapped for a link to another's home",
        prepare: "mkdir -p $H/.hermes/profiles/x; cp $H/.hermes/config.yaml $H/.hermes/profiles/x
ln -s /home/vic/.hermes $H/.hermes/profiles/.l; rm -f $H/.hermes/profiles/.r",
        script: "swap .hermes/profiles/x .hermes/profiles/.r .hermes/profiles/.l",
    },
    Race {
        name: "home folder swapped for a link to another's home",
        prepare: "ln -s /home/vic/.hermes $H/.l",
        script: "swap .hermes .r .l",
    },
    Race {
        name: "config swapped for a link to another's config",
        prepare: "ln -s /home/vic/.hermes/config.yaml $H/.hermes/.l",
        script: "swap .hermes/config.yaml .hermes/.r .hermes/.l",
    },
    Race {
        name: "config swapped for a link to /etc/shadow",
        prepare: "ln -s /etc/shadow $H/.hermes/.l",
        script: "swap .hermes/config.yaml .hermes/.r .hermes/.l",
    },
    Race {
        name: "config swapped for a FIFO",
        prepare: "mkfifo $H/.hermes/.l",
        script: "swap .hermes/config.yaml .hermes/.r .hermes/.l",
    },
    Race {
        name: "our temporary file replaced by a link as it appears",
        prepare: "",
        script: "
import sys, time
folder = sys.argv[1] + '/.hermes'
while not over():
    for name in os.listdir(folder):
        if name.startswith('.fleet-update-'):
            try:
                os.unlink(folder + '/' + name)
                os.symlink('/home/vic/.hermes/config.yaml', folder + '/' + name)
            except OSError: pass
    time.sleep(0.0005)
",
    },
    Race {
        name: "its helpers are killed as they appear",
        prepare: "",
        script: "
import sys, signal, time
looked = {}
while not over():
    for pid in filter(str.isdigit, os.listdir('/proc')):
        looked[pid] = looked.get(pid, 0) + 1
        if looked[pid] > 300: continue
        try:
            if b'\\0helper\\0' in open(f'/proc/{pid}/cmdline', 'rb').read(): os.kill(int(pid), signal.SIGKILL)
        except OSError: pass
",
    },
    Race {
        name: "its helpers are stopped as they survey",
        prepare: "",
        script: "stop survey",
    },
    Race {
        name: "its helpers are stopped as they write",
        prepare: "",
        script: "stop commit",
    },
    Race {
        name: "its helpers are traced, and their memory and descriptors opened",
        prepare: "touch $H/got; chmod 666 $H/got",
        script: "
import ctypes, sys, time
libc = ctypes.CDLL(None, use_errno=True)
tried = 0
while not over():
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            if b'\\0helper\\0' not in open(f'/proc/{pid}/cmdline', 'rb').read(): continue
            owner = [line.split()[1] for line in open(f'/proc/{pid}/status') if line.startswith('Uid:')][0]
            if int(owner) != os.getuid(): continue
        except OSError: continue
        tried += 1
        got = []
        if libc.ptrace(0x4206, int(pid), 0, 0) == 0: got.append('ptrace')
        for name, flags in (('mem', os.O_RDWR), ('environ', os.O_RDONLY), ('maps', os.O_RDONLY)):
            try: opened = os.open(f'/proc/{pid}/{name}', flags)
            except OSError: continue
            # One that is ending has no memory left: its files open, and are empty. Where there is memory, there
            # is none at the address 0.
            try: there = os.read(opened, 1) != b''
            except OSError: there = True
            os.close(opened)
            if there: got.append(name)
        try: os.readlink(f'/proc/{pid}/fd/0'); got.append('fd/0')
        except OSError: pass
        try: os.listdir(f'/proc/{pid}/fd'); got.append('fd')
        except OSError: pass
        with open(sys.argv[1] + '/got', 'a') as out:
            out.write(f'tried {\" \".join(got)}\\n')
    time.sleep(0.0005)
",
    },
    Race {
        name: "the locks of others' homes are held by a stranger",
        prepare: "chmod 755 /home/vic/.hermes /home/vic/.hermes/profiles /home/vic/.hermes/profiles/work",
        script: "
import fcntl, time
held = [os.open('/home/vic/.hermes' + name, os.O_RDONLY) for name in ('', '/profiles/work')]
for fd in held: fcntl.flock(fd, fcntl.LOCK_EX)
while not over(): time.sleep(0.05)
",
    },
    Race {
        name: "config rewritten all the time",
        prepare: "",
        script: "
import sys, time
path = sys.argv[1] + '/.hermes/config.yaml'
text = open(path).read()
while not over():
    with open(path + '.new', 'w') as out: out.write(text + f'# {time.monotonic()}\\n')
    os.rename(path + '.new', path)
    time.sleep(0.0007)
",
    },
];

/// Stops what it may of the helpers of one kind, for good.
const STOP: &str = "
import sys, signal, time
verb = b'\\0helper\\0' + sys.argv[2].encode() + b'\\0'
looked = {}
while not over():
    for pid in filter(str.isdigit, os.listdir('/proc')):
        looked[pid] = looked.get(pid, 0) + 1
        if looked[pid] > 300: continue
        try:
            if verb in open(f'/proc/{pid}/cmdline', 'rb').read(): os.kill(int(pid), signal.SIGSTOP)
        except OSError: pass
";

/// Two looks, a write and what is asked once more each wait for a stopped helper as long as they may.
const LONGEST: Duration = Duration::from_secs(300);

#[test]
fn what_a_user_swaps_stops_kills_or_traces_meanwhile_changes_nothing_but_its_own_rows() {
    let Some(machine) = Machine::boot() else {
        return;
    };
    let users: Vec<(Mal, &Race)> = RACES
        .iter()
        .enumerate()
        .map(|(number, race)| (machine.mal(&format!("r{number:02}")), race))
        .collect();
    for (mal, race) in &users {
        machine.sh(&format!(
            "H=/home/{0}\n{1}\nchown -hR {0}: /home/{0}",
            mal.name, race.prepare
        ));
        let home = mal.path("");
        let home = home.trim_end_matches('/');
        let words: Vec<&str> = race.script.split(' ').collect();
        match words.as_slice() {
            ["swap", rest @ ..] => machine.start(&mal.name, SWAP, &[&[home], rest].concat()),
            ["stop", rest @ ..] => machine.start(&mal.name, STOP, &[&[home], rest].concat()),
            _ => machine.start(&mal.name, race.script, &[home]),
        }
    }
    let rounds = if long() { 50 } else { 2 };
    let start = Instant::now();
    let mut wrong = Vec::new();
    let mut table = Vec::new();
    for _ in 0..rounds {
        for (mal, _) in &users {
            machine.fleet.sandbox.shell(
                Some(Box::leak(mal.name.clone().into_boxed_str())),
                "timeout 2 sed -i 's/^_config_version: 33 /_config_version: 12 /' ~/.hermes/config.yaml",
            );
        }
        let before = machine.before();
        let outcome = machine.run(&[]);
        wrong.extend(machine.breaches(&before, &outcome));
        if !matches!(outcome.status, Some(0 | 1)) || outcome.took > LONGEST {
            wrong.push(format!("{outcome}"));
        }
        let receipt = outcome.receipt();
        if receipt.0["verdict"]["exit_status"] != 1
            || receipt.0["verdict"]["outcome"] != "not-clean"
        {
            wrong.push(format!(
                "stopped and killed helpers are clean: {}",
                receipt.0["verdict"]
            ));
        }
        table.clear();
        for (mal, race) in &users {
            let rows = rows_below(&receipt, &mal.path(""));
            wrong.extend(
                rows.iter()
                    .filter(|row| row["uid"] != mal.uid)
                    .map(|row| format!("{}: a row of another: {row}", race.name)),
            );
            let said = rows.first().map_or_else(
                || {
                    let sources = receipt.rows("collectors").iter();
                    let mut own = sources.filter(|row| {
                        row["principal"] == format!("uid {}", mal.uid).as_str()
                            && row["outcome"] == "unverified"
                    });
                    own.next()
                        .map_or("no row".into(), |row| row["reason"].to_string())
                },
                |row| {
                    format!(
                        "{} {}",
                        row["outcome"].as_str().unwrap_or("?"),
                        row["reason"]
                    )
                },
            );
            table.push((race.name.to_owned(), said));
        }
        let mut mixed = format!("{}{}", outcome.stdout, outcome.stderr);
        mixed.retain(|c| c != '\n');
        assert!(!mixed.contains(PRIVATE));
        table.push((
            "the run".into(),
            format!(
                "{} s, {}",
                outcome.took.as_secs(),
                receipt.0["verdict"]["counts"]
            ),
        ));
    }
    show("what a user does while root runs", &table, start);
    machine.end_loops();
    // The tracer was at work, and got nothing.
    let tracer = users
        .iter()
        .find(|(_, race)| race.name.contains("traced"))
        .unwrap();
    let got = machine.fleet.sandbox.read(&tracer.0.path("got")).unwrap();
    let got = String::from_utf8(got).unwrap();
    let tried = got.lines().count();
    crate::support::say(&format!(
        "  helpers that their user tried to trace: {tried}"
    ));
    let more: BTreeSet<&str> = got.lines().filter(|line| *line != "tried ").collect();
    if tried == 0 || !more.is_empty() {
        wrong.push(format!("traced {tried} times: {more:?}"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
