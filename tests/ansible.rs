//! The Ansible collection, run by real ansible-core over ssh on three booted machines: each has its own
//! root, network address, users and fleet. The network is a bridge inside the first machine's namespace,
//! so nothing of this machine is touched, and all of it goes with the machines.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test may panic, and looks at the program from outside"
)]

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use support::fleet::{ANN, BOB, Fleet, Gateway, Plan, install};
use support::{skip, wait_for};

/// The release that is tested: the newest for the Python of Debian 12.
const ANSIBLE: &str = "2.19.14";

/// Which gateways run on which machine; the others are installed and disabled. One of each user's runs:
/// that is how the homes of a user have an install.
fn awake() -> [(&'static str, [Gateway; 2]); 3] {
    [
        (
            "atlas",
            [Gateway::of(ANN, "default"), Gateway::of(BOB, "lab")],
        ),
        (
            "borea",
            [Gateway::of(ANN, "ops"), Gateway::of(BOB, "default")],
        ),
        (
            "ceres",
            [Gateway::of(ANN, "work"), Gateway::of(BOB, "default")],
        ),
    ]
}

struct Machine {
    name: &'static str,
    address: String,
    fleet: Fleet,
    awake: [Gateway; 2],
}

struct Site {
    machines: Vec<Machine>,
    folder: tempfile::TempDir,
    ansible: PathBuf,
}

impl Site {
    /// Boots the machines, joins their networks and lets them be reached by ssh.
    fn boot() -> Option<Self> {
        for program in ["/usr/sbin/sshd", "/usr/bin/ssh", "/usr/bin/ssh-keygen"] {
            if !Path::new(program).exists() {
                skip(&format!("{program} is not there"));
                return None;
            }
        }
        let ansible = match install("ansible-core", ANSIBLE) {
            Ok(folder) => folder,
            Err(reason) => {
                skip(&reason);
                return None;
            }
        };
        let machines: Vec<Machine> = std::thread::scope(|scope| {
            let boots: Vec<_> = awake()
                .into_iter()
                .zip(1..)
                .map(|((name, awake), number)| {
                    scope.spawn(move || {
                        let asleep = Gateway::all()
                            .into_iter()
                            .filter(|one| !awake.contains(one));
                        Some(Machine {
                            name,
                            address: format!("10.77.0.{number}"),
                            fleet: asleep.fold(Plan::default(), Plan::asleep).boot()?,
                            awake,
                        })
                    })
                })
                .collect();
            boots
                .into_iter()
                .map(|boot| boot.join().unwrap())
                .collect::<Option<_>>()
        })?;
        let folder = tempfile::tempdir().unwrap();
        let site = Self {
            machines,
            folder,
            ansible,
        };
        site.join();
        site.admit();
        site.write_inventory();
        site.install_collection();
        Some(site)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command in the network of the first machine, with this machine's files.
    fn near(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        let pid = self.machines[0].fleet.sandbox.pid().to_string();
        command.args(["--target", &pid, "--net", "--"]).arg(program);
        command
    }

    fn ip(&self, text: &str) {
        let output = self.near("ip").args(text.split(' ')).output().unwrap();
        assert!(output.status.success(), "ip {text}: {output:?}");
    }

    fn join(&self) {
        self.ip("link add br0 type bridge");
        self.ip("addr add 10.77.0.1/24 dev br0");
        self.ip("link set br0 up");
        self.ip("link set lo up");
        for (index, machine) in self.machines.iter().enumerate().skip(1) {
            let pid = machine.fleet.sandbox.pid();
            self.ip(&format!(
                "link add port{index} type veth peer name eth0 netns {pid}"
            ));
            self.ip(&format!("link set port{index} master br0 up"));
            machine.fleet.sandbox.sh(
                None,
                &format!(
                    "ip addr add {}/24 dev eth0 && ip link set eth0 up && ip link set lo up",
                    machine.address
                ),
            );
        }
    }

    fn admit(&self) {
        let key = self.file("key");
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(&key)
            .status()
            .unwrap();
        assert!(made.success());
        let public = std::fs::read_to_string(self.file("key.pub")).unwrap();
        for machine in &self.machines {
            let sandbox = &machine.fleet.sandbox;
            sandbox.sh(None, &format!("hostname {}", machine.name));
            sandbox.sh(None, "install -d -m 700 /root/.ssh");
            sandbox.write("/root/.ssh/authorized_keys", &public, 0o600);
            // The machine's own keys: those of the machine below are nobody's business.
            sandbox.sh(
                None,
                "rm -f /etc/ssh/ssh_host_*_key* && ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key \
                 && systemctl start ssh.service",
            );
        }
        for machine in &self.machines {
            wait_for("sshd answers", Duration::from_secs(20), || {
                let output = self
                    .near("ssh")
                    .arg("-i")
                    .arg(&key)
                    .args([
                        "-o",
                        "BatchMode=yes",
                        "-o",
                        "StrictHostKeyChecking=accept-new",
                        "-o",
                    ])
                    .arg(format!(
                        "UserKnownHostsFile={}",
                        self.file("known").display()
                    ))
                    .arg(format!("root@{}", machine.address))
                    .arg("true")
                    .output()
                    .unwrap();
                output.status.success().then_some(())
            });
        }
    }

    fn write_inventory(&self) {
        let mut text = String::from("[machines]\n");
        for machine in &self.machines {
            text += &format!("{} ansible_host={}\n", machine.name, machine.address);
        }
        text += &format!(
            "[machines:vars]\nansible_user=root\nansible_ssh_private_key_file={}\n\
             ansible_ssh_common_args=-o UserKnownHostsFile={}\nansible_python_interpreter=/usr/bin/python3\n\
             [all:vars]\nfleet_update_hosts=machines\n",
            self.file("key").display(),
            self.file("known").display(),
        );
        std::fs::write(self.file("hosts"), text).unwrap();
    }

    /// Builds the collection and installs the archive, as a user would.
    fn install_collection(&self) {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/dist/ansible");
        let galaxy = |arguments: &[&str]| {
            let output = self
                .command("ansible-galaxy")
                .arg("collection")
                .args(arguments)
                .output()
                .unwrap();
            assert!(output.status.success(), "{arguments:?}: {}", told(&output));
        };
        let folder = self.folder.path().to_str().unwrap();
        galaxy(&["build", source, "--output-path", folder]);
        let archive = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|path| path.extension().is_some_and(|extension| extension == "gz"))
            .unwrap();
        let collections = self.file("collections");
        galaxy(&[
            "install",
            "--offline",
            archive.to_str().unwrap(),
            "--collections-path",
            collections.to_str().unwrap(),
        ]);
    }

    fn command(&self, program: &str) -> Command {
        let mut command = self.near(self.ansible.join("bin").join(program));
        command
            .env_clear()
            .env(
                "PATH",
                format!("{}/bin:/usr/bin:/bin", self.ansible.display()),
            )
            .env("HOME", self.folder.path())
            .env("LANG", "C.UTF-8")
            .env("ANSIBLE_COLLECTIONS_PATH", self.file("collections"))
            // As a shell has it: receipts are kept below where the playbook is run.
            .env("PWD", self.folder.path())
            .env("ANSIBLE_PIPELINING", "1")
            .env("ANSIBLE_NOCOLOR", "1")
            .env("ANSIBLE_LOCALHOST_WARNING", "False")
            .current_dir(self.folder.path());
        command
    }

    fn play(&self, playbook: &str, more: &[&str]) -> Output {
        self.command("ansible-playbook")
            .arg(playbook)
            .args(["--inventory", "hosts", "--extra-vars"])
            .arg(format!("fleet_update_executable={}", "/usr/bin/update"))
            .args(more)
            .output()
            .unwrap()
    }

    /// The fleet's receipt, made by the program on the control node, through the playbook.
    fn merge(&self) -> Output {
        self.command("ansible-playbook")
            .args(["fleet.update.merge", "--inventory", "hosts", "--extra-vars"])
            .arg(format!(
                "fleet_update_executable={}",
                env!("CARGO_BIN_EXE_update")
            ))
            .output()
            .unwrap()
    }

    fn configurations(&self) -> Vec<String> {
        self.machines
            .iter()
            .flat_map(|machine| {
                Gateway::all()
                    .into_iter()
                    .map(|gateway| machine.fleet.config(gateway))
            })
            .collect()
    }
}

fn told(output: &Output) -> String {
    format!(
        "{}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// The counts of the recap line of a machine, such as `changed=1`.
#[track_caller]
fn assert_recap(text: &str, machine: &str, counts: &[&str]) {
    let line = text
        .lines()
        .rev()
        .find(|line| line.starts_with(machine) && line.contains("ok="))
        .unwrap_or_else(|| panic!("no recap of {machine} in\n{text}"));
    for count in counts {
        assert!(
            line.split_whitespace().any(|word| word == *count),
            "{count} is not in {line}\n{text}"
        );
    }
}

#[test]
fn a_playbook_brings_three_machines_up_to_date_in_waves_and_one_receipt_proves_it() {
    let Some(site) = Site::boot() else { return };

    let documented = site
        .command("ansible-doc")
        .args(["--type", "module", "fleet.update.fleet_update"])
        .output()
        .unwrap();
    assert!(documented.status.success(), "{}", told(&documented));

    // What would change is shown, and nothing changes.
    let before = site.configurations();
    let lives: Vec<_> = site
        .machines
        .iter()
        .map(|machine| machine.fleet.lives(&machine.awake))
        .collect();
    let text = told(&site.play("fleet.update.fleet", &["--check", "--diff"]));
    for machine in &site.machines {
        assert_recap(
            &text,
            machine.name,
            &["changed=1", "failed=0", "unreachable=0"],
        );
    }
    assert!(
        text.contains("-_config_version: 12") && text.contains("+_config_version: 33"),
        "{text}"
    );
    assert!(site.configurations() == before, "check mode wrote");
    for (machine, lives) in site.machines.iter().zip(&lives) {
        assert_eq!(
            machine.fleet.lives(&machine.awake),
            *lives,
            "check mode restarted"
        );
        assert!(!machine.fleet.sandbox.path("/var/lib/fleet-update").exists());
    }
    assert!(!site.file("receipts").exists());

    // It is done, one machine before the others.
    let text = told(&site.play("fleet.update.fleet", &[]));
    for (machine, lives) in site.machines.iter().zip(&lives) {
        assert_recap(
            &text,
            machine.name,
            &["changed=1", "failed=0", "unreachable=0"],
        );
        for gateway in &machine.awake {
            let now = machine.fleet.life(*gateway);
            assert!(
                now.active == "active" && now.invocation != lives[gateway].invocation,
                "{text}"
            );
        }
        assert!(
            site.file("receipts")
                .join(format!("{}.json", machine.name))
                .exists(),
            "{text}"
        );
    }
    assert_eq!(
        text.matches("PLAY [Bring every machine up to date]")
            .count(),
        3,
        "{text}"
    );
    assert!(
        site.configurations()
            .iter()
            .all(|config| config.contains("_config_version: 33"))
    );
    let merged = site.merge();
    assert!(merged.status.success(), "{}", told(&merged));
    let page = std::fs::read_to_string(site.file("receipts/fleet.html")).unwrap();
    assert!(page.contains("</span> Clean</h1>") && page.contains("ceres"));

    // Again: nothing changes.
    let text = told(&site.play("fleet.update.fleet", &[]));
    for machine in &site.machines {
        assert_recap(&text, machine.name, &["changed=0", "failed=0"]);
    }

    // A home that is broken on the second machine ends its wave; its receipt is kept, the third's is old.
    let lab = Gateway::of(BOB, "lab");
    site.machines[1]
        .fleet
        .set_config(lab, "broken: [unclosed\n");
    let third = site.machines[2].fleet.config(lab);
    let text = told(&site.play("fleet.update.fleet", &[]));
    assert_recap(&text, "borea", &["failed=1"]);
    assert!(
        text.contains("not clean: ") && text.contains("invalid"),
        "{text}"
    );
    assert!(
        !text
            .lines()
            .any(|line| line.starts_with("ceres") && line.contains("ok=")),
        "the third wave began\n{text}"
    );
    assert_eq!(site.machines[2].fleet.config(lab), third);
    std::fs::remove_file(site.file("receipts/ceres.json")).unwrap();
    let text = told(&site.merge());
    assert!(!text.starts_with("exit status: 0"), "{text}");
    assert!(text.contains("1 clean, 1 missing, 1 not-clean"), "{text}");
}
