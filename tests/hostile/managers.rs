//! Service managers, buses, sockets, processes and gateways that lie, hang or fail.

use std::time::{Duration, Instant};

use crate::machine::{Machine, Mal, rows_below, show};
use crate::support::wait_for;

/// An install of its own that expects an old version, with a runtime that only waits.
const OWN_INSTALL: &str = "
mkdir -p $H/fake/bin $H/fake/lib/python3.11/site-packages/hermes_cli
ln -sf /usr/bin/python3 $H/fake/bin/python
printf 'home = /usr/bin\\nversion = 3.11.2\\n' >$H/fake/pyvenv.cfg
printf 'import time\\ntime.sleep(9999)\\n' >$H/fake/bin/hermes
echo 'DEFAULT_CONFIG = {\"_config_version\": 13}' >$H/fake/lib/python3.11/site-packages/hermes_cli/config.py
";

/// Listens on `sys.argv[1]` and answers as `sys.argv[2]` says.
const LISTEN: &str = "
import socket, sys, threading, time
path, way = sys.argv[1:3]
try: os.unlink(path)
except OSError: pass
server = socket.socket(socket.AF_UNIX)
server.bind(path)
server.listen(64)
server.settimeout(0.2)
def serve(peer):
    try:
        if way == 'nonsense': peer.sendall(b'\\x00\\xff\\x1b[2J' * 100); peer.close()
        elif way == 'endless':
            while not over(): peer.sendall(b'x' * 65536)
        elif way == 'slow':
            while not over(): peer.sendall(b' '); time.sleep(0.1)
        elif way == 'auth':
            peer.recv(4096); peer.sendall(b'OK 0123456789abcdef0123456789abcdef\\r\\n')
            while not over(): peer.sendall(b'l\\x02\\x00\\x01\\xff\\xff\\xff\\x07' * 512); time.sleep(0.01)
        else:
            while not over(): time.sleep(0.1)
    except OSError: pass
while not over():
    try: peer, _ = server.accept()
    except socket.timeout: continue
    threading.Thread(target=serve, args=(peer,), daemon=True).start()
";

/// Who attacks, and how: what root prepares, and what the user then runs.
struct Attack {
    name: &'static str,
    prepare: &'static str,
    listens: Option<(&'static str, &'static str)>,
}

const ATTACKS: &[Attack] = &[
    Attack {
        name: "bus that answers nonsense",
        prepare: "install -d -m 700 -o $U -g $U /run/user/$I",
        listens: Some(("/run/user/$I/bus", "nonsense")),
    },
    Attack {
        name: "bus that never answers",
        prepare: "install -d -m 700 -o $U -g $U /run/user/$I",
        listens: Some(("/run/user/$I/bus", "mute")),
    },
    Attack {
        name: "bus that lets in and floods",
        prepare: "install -d -m 700 -o $U -g $U /run/user/$I",
        listens: Some(("/run/user/$I/bus", "auth")),
    },
    Attack {
        name: "bus is a link to another's",
        prepare: "install -d -m 700 -o $U -g $U /run/user/$I; ln -s /run/user/2001/bus /run/user/$I/bus",
        listens: None,
    },
    Attack {
        name: "bus is a link to the system's",
        prepare: "install -d -m 700 -o $U -g $U /run/user/$I
ln -s /run/dbus/system_bus_socket /run/user/$I/bus",
        listens: None,
    },
    Attack {
        name: "runtime folder is a link to another's",
        prepare: "ln -sfn /run/user/2001 /run/user/$I",
        listens: None,
    },
    Attack {
        name: "control socket that never answers",
        prepare: "",
        listens: Some(("$H/.hermes/gateway.sock", "mute")),
    },
    Attack {
        name: "control socket that never ends",
        prepare: "",
        listens: Some(("$H/.hermes/gateway.sock", "endless")),
    },
    Attack {
        name: "control socket that drips",
        prepare: "",
        listens: Some(("$H/.hermes/gateway.sock", "slow")),
    },
    Attack {
        name: "control socket is another's",
        prepare: "echo /home/ann/.hermes/gateway.sock >$H/.hermes/gateway.sock.path",
        listens: None,
    },
];

/// Processes whose words and environment lie; each is started with `env -i`.
const PROCESSES: &[(&str, &str)] = &[
    ("HERMES_HOME of another", "HERMES_HOME=/home/vic/.hermes"),
    ("HERMES_HOME is a link to another's", "HERMES_HOME=$H/link"),
    ("HERMES_HOME of root", "HERMES_HOME=/root"),
    (
        "loader and interpreter variables",
        "LD_PRELOAD=$H/evil.so PYTHONPATH=$H/evil HERMES_HOME=/etc",
    ),
    (
        "home and profile with escapes and dots",
        "HERMES_HOME=$'/tmp/\\e[2Ja\\nb\\u202e/../../root'",
    ),
];

#[test]
fn what_lies_hangs_or_fails_of_one_user_changes_nothing_but_its_own_rows() {
    let Some(machine) = Machine::boot() else {
        return;
    };
    let mut users: Vec<(Mal, String)> = Vec::new();
    for (number, attack) in ATTACKS.iter().enumerate() {
        let mal = machine.mal(&format!("m{number:02}"));
        let place = |text: &str| {
            text.replace("$H", &format!("/home/{}", mal.name))
                .replace("$I", &mal.uid.to_string())
                .replace("$U", &mal.name)
        };
        machine.sh(&place(attack.prepare));
        if let Some((socket, way)) = attack.listens {
            let socket = place(socket);
            machine.start(&mal.name, LISTEN, &[&socket, way]);
            wait_for("the socket is there", Duration::from_secs(10), || {
                machine.fleet.sandbox.path(&socket).exists().then_some(())
            });
        }
        users.push((mal, attack.name.to_owned()));
    }
    for (number, (name, variables)) in PROCESSES.iter().enumerate() {
        let mal = machine.mal(&format!("p{number:02}"));
        let home = format!("/home/{}", mal.name);
        machine.sh(&format!(
            "H={home}\n{OWN_INSTALL}\nln -s /home/vic/.hermes $H/link; chown -hR {0}: $H",
            mal.name
        ));
        let text = format!(
            "H={home}; exec env -i {variables} setsid --fork $H/fake/bin/python $H/fake/bin/hermes -p \
             $'../x\\e[2J' gateway run --token qzjxtokenqzjx </dev/null >/dev/null 2>&1"
        );
        // The loader's complaint about a file that is not there goes nowhere.
        machine.fleet.sandbox.shell(Some(leak(&mal.name)), &text);
        users.push((mal, format!("process: {name}")));
    }
    users.push(hung_manager(&machine));
    users.push(lying_units(&machine));
    users.push(failing_canary(&machine));

    let before = machine.before();
    let start = Instant::now();
    let outcome = machine.run(&["--verbose"]);
    let mut wrong = machine.breaches(&before, &outcome);
    let receipt = outcome.receipt();
    let mut table = Vec::new();
    for (mal, name) in &users {
        let homes = rows_below(&receipt, &mal.path(""));
        wrong.extend(
            homes
                .iter()
                .filter(|row| row["uid"] != mal.uid)
                .map(|row| format!("{name}: a row of another: {row}")),
        );
        let own = |row: &&serde_json::Value| row["uid"] == mal.uid;
        let runtimes: Vec<String> = receipt
            .rows("runtimes")
            .iter()
            .filter(own)
            .map(|row| format!("{} {}", row["outcome"], row["reason"]))
            .collect();
        let sources: Vec<String> = receipt
            .rows("collectors")
            .iter()
            .filter(|row| {
                row["principal"] == format!("uid {}", mal.uid).as_str()
                    && row["outcome"] == "unverified"
            })
            .map(|row| row["reason"].to_string())
            .collect();
        let home = homes
            .first()
            .map_or("none", |row| row["outcome"].as_str().unwrap_or("?"));
        table.push((
            name.clone(),
            format!("home {home}; {} {}", runtimes.join(" "), sources.join(" ")),
        ));
    }
    show("what lies, hangs or fails", &table, start);
    for text in ["qzjxtokenqzjx", "\u{1b}", "\u{202e}"] {
        if outcome.stdout.contains(text) || outcome.stderr.contains(text) {
            wrong.push(format!("{text:?} is shown"));
        }
    }
    if outcome.status != Some(1) || outcome.took > Duration::from_secs(150) {
        wrong.push(format!("{outcome}"));
    }
    // What is proved of the honest ones is worth something only if the failing one failed.
    let canary = receipt
        .rows("runtimes")
        .iter()
        .find(|row| row["uid"] == 1500);
    if canary.is_none_or(|row| !matches!(row["outcome"].as_str(), Some("failed" | "down"))) {
        let said = machine.sh(
            "cat /home/able/.config/systemd/user/*.service; ls -la /home/able; \
            systemctl --user -M able@ status hermes-gateway 2>&1 | head -40 || :",
        );
        wrong.push(format!("the failing gateway: {canary:?} {said}"));
    }
    machine.end_loops();
    assert!(wrong.is_empty(), "{}\n{outcome}", wrong.join("\n"));
}

/// A user whose manager is stopped, with a gateway under it.
fn hung_manager(machine: &Machine) -> (Mal, String) {
    let mal = machine.mal("hung");
    linger(machine, &mal);
    let pid = machine.sh(&format!(
        "systemctl show -p MainPID --value user@{}.service",
        mal.uid
    ));
    machine.sh(&format!("kill -STOP {}", pid.trim()));
    (mal, "manager is stopped".into())
}

/// A user whose units name the homes of others.
fn lying_units(machine: &Machine) -> (Mal, String) {
    let mal = machine.mal("units");
    machine.sh(&format!(
        "H=/home/units\n{OWN_INSTALL}\nchown -hR units: $H"
    ));
    linger(machine, &mal);
    for (name, home) in [
        ("hermes-gateway", "/root"),
        ("hermes-gateway-vic", "/home/vic/.hermes"),
        ("hermes-gateway-ann", "/home/ann/.hermes/profiles/ops"),
        ("hermes-gateway-etc", "/etc\u{202e}\\x1b[2J"),
    ] {
        machine.fleet.sandbox.write(
            &format!("/home/units/.config/systemd/user/{name}.service"),
            &format!(
                "[Unit]\nDescription=\\x1b]0;owned\\x07 \u{202e}\n[Service]\nEnvironment=\"HERMES_HOME={home}\"\n\
                 ExecStart=/home/units/fake/bin/python /home/units/fake/bin/hermes gateway run\n\
                 [Install]\nWantedBy=default.target\n"
            ),
            0o644,
        );
        machine.sh("chown -hR units: /home/units/.config");
        machine.fleet.sandbox.sh(
            Some("units"),
            &format!(
                "systemctl --user daemon-reload; systemctl --user enable --now {name}.service"
            ),
        );
    }
    (mal, "units name homes of root and of others".into())
}

/// A user whose gateway runs the code of the honest ones, comes first, and never comes back.
fn failing_canary(machine: &Machine) -> (Mal, String) {
    let mal = Mal {
        name: "able".into(),
        uid: 1500,
    };
    machine.sh("useradd -m -u 1500 able && cp -a /home/bob/.hermes /home/able/ &&
        mkdir -p /home/able/.config/systemd/user && rm -rf /home/able/.hermes/profiles &&
        sed s,/home/bob,/home/able,g \
            /home/bob/.config/systemd/user/hermes-gateway.service \
            >/home/able/.config/systemd/user/hermes-gateway.service &&
        mkdir /home/able/.config/systemd/user/hermes-gateway.service.d &&
        printf '[Service]\\nExecStartPre=/usr/bin/test ! -e /home/able/ran\\n' \
            >/home/able/.config/systemd/user/hermes-gateway.service.d/50-test.conf && chown -R able: /home/able");
    linger(machine, &mal);
    machine.fleet.sandbox.sh(
        Some("able"),
        "systemctl --user daemon-reload; systemctl --user enable --now hermes-gateway.service",
    );
    wait_for("the gateway runs", Duration::from_secs(60), || {
        machine.fleet.running_in("/home/able/.hermes")
    });
    machine.sh("touch /home/able/ran");
    (mal, "gateway that comes first and never comes back".into())
}

fn linger(machine: &Machine, mal: &Mal) {
    machine.sh(&format!("loginctl enable-linger {}", mal.name));
    let bus = machine
        .fleet
        .sandbox
        .path(&format!("/run/user/{}/bus", mal.uid));
    wait_for("the user's bus", Duration::from_secs(30), || {
        bus.exists().then_some(())
    });
}

/// Commands want a name for as long as the test runs.
fn leak(name: &str) -> &'static str {
    Box::leak(name.to_owned().into_boxed_str())
}
