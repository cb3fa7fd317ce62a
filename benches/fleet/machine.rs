//! A machine of its own with a fleet of stand-ins: users with lingering managers, homes on this machine's disk,
//! one unit a runtime.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::homes::{self, Home, login, uid};
use crate::inside::BENCH;
use crate::peer::Peer;
use crate::support::sandbox::{Boot, Sandbox};
use crate::support::wait_for;

/// The program under test, inside.
pub const UPDATE: &str = "/usr/bin/update";

/// The list of homes for the limits, inside.
pub const LIST: &str = "/srv/homes";

/// Where state is kept, inside.
const STATE: &str = "/var/lib/fleet-update";

/// The stand-ins' code: as in a virtual environment, at the version that the newest release expects.
const INSTALL: &str = r#"
site=/opt/stand-in/lib/python3.11/site-packages
mkdir -p $site/hermes_cli $site/hermes_agent-0.22.2.dist-info
printf 'home = /usr/bin\ninclude-system-site-packages = false\n' >/opt/stand-in/pyvenv.cfg
: >$site/hermes_cli/__init__.py; : >$site/hermes_cli/main.py
echo '"_config_version": 50' >$site/hermes_cli/config.py
printf 'Metadata-Version: 2.1\nName: hermes-agent\nVersion: 0.22.2\n' >$site/hermes_agent-0.22.2.dist-info/METADATA
: >$site/hermes_agent-0.22.2.dist-info/RECORD
"#;

/// What a fleet is made of.
#[derive(Debug, Clone, Copy, Default)]
pub struct Size {
    /// How many homes.
    pub homes: usize,
    /// How many of them have a runtime.
    pub runtimes: usize,
    /// How long a runtime takes to stop.
    pub stop: Duration,
}

/// A booted machine.
#[derive(Debug)]
pub struct Machine {
    /// The sandbox.
    pub sandbox: Sandbox,
    /// The homes.
    pub homes: Vec<Home>,
    /// Where the users' folders are for this process.
    pub below: PathBuf,
    disk: tempfile::TempDir,
    size: Size,
}

/// Which life a unit lives: its main process and its manager's name for it.
pub type Life = (String, u32, String);

impl Machine {
    /// Boots it and starts its runtimes; the reason if this machine cannot.
    pub fn boot(size: Size, peer: Option<&Peer>) -> Result<Self, String> {
        let disk = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let program = std::env::current_exe().unwrap();
        let mut boot = Boot::default()
            .show(&program, BENCH)
            .show(&program, "/opt/stand-in/bin/hermes")
            .show(Path::new(env!("CARGO_BIN_EXE_update")), UPDATE);
        for (name, target) in [("home", "/home"), ("state", STATE)] {
            let folder = disk.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            boot = boot.lend(&folder, target);
        }
        for (source, target) in peer.map(Peer::shown).unwrap_or_default() {
            boot = boot.show(&source, &target);
        }
        let this = Self {
            sandbox: boot.start()?,
            homes: homes::spread(size.homes),
            below: disk.path().join("home"),
            disk,
            size,
        };
        this.sandbox.sh(None, INSTALL);
        this.sandbox.sh(None, &format!("chmod 700 {STATE}"));
        this.add_users();
        homes::write(&this.homes, &this.below, homes::before);
        this.list();
        this.start();
        Ok(this)
    }

    /// The homes with a runtime: the first ones of each user, the same number each.
    pub fn served(&self) -> impl Iterator<Item = &Home> {
        let each = self.size.runtimes.div_ceil(self.users());
        let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
        let first = move |home: &&Home| {
            let number = seen.entry(home.user).or_default();
            *number += 1;
            *number <= each
        };
        self.homes.iter().filter(first).take(self.size.runtimes)
    }

    /// How many users there are.
    pub fn users(&self) -> usize {
        self.homes.last().map_or(1, |home| home.user + 1)
    }

    fn add_users(&self) {
        for user in 0..self.users() {
            let (login, uid) = (login(user), uid(user));
            self.sandbox.sh(
                None,
                &format!("useradd -m -u {uid} -U {login} && groupmod -g {uid} {login}"),
            );
            if self.size.runtimes > 0 {
                self.sandbox
                    .sh(None, &format!("loginctl enable-linger {login}"));
                let bus = self.sandbox.path(&format!("/run/user/{uid}/bus"));
                wait_for("the user's bus", Duration::from_secs(60), || {
                    bus.exists().then_some(())
                });
            }
        }
    }

    fn list(&self) {
        let mut text = String::new();
        for home in &self.homes {
            let folder = home.below(Path::new("/home"));
            let _ = writeln!(text, "{} {}", home.number, folder.display());
        }
        self.sandbox.write(LIST, &text, 0o644);
    }

    fn start(&self) {
        let mut units: BTreeMap<usize, String> = BTreeMap::new();
        for home in self.served() {
            let profile = match home.profile.as_str() {
                "default" => String::new(),
                profile => format!("-p {profile} "),
            };
            let text = format!(
                "[Service]\nExecStart=/opt/stand-in/bin/hermes {profile}gateway run\nEnvironment=STAND_IN_STOP={}\n\
                 Restart=always\nRestartSec=5\nRestartForceExitStatus=75\nKillMode=mixed\nTimeoutStopSec=60\n",
                self.size.stop.as_millis()
            );
            let folder = format!("/home/{}/.config/systemd/user", login(home.user));
            if !units.contains_key(&home.user) {
                self.sandbox
                    .sh(Some(&login(home.user)), &format!("mkdir -p {folder}"));
            }
            self.sandbox
                .write(&format!("{folder}/{}", home.unit()), &text, 0o644);
            let _ = write!(units.entry(home.user).or_default(), " {}", home.unit());
        }
        for (user, units) in &units {
            self.sandbox.sh(
                Some(&login(*user)),
                &format!(
                    "systemctl --user daemon-reload && systemctl --user start --no-block {units}"
                ),
            );
        }
        for home in self.served() {
            let state = home.below(&self.below).join("gateway_state.json");
            wait_for(&home.unit(), Duration::from_secs(300), || {
                state.exists().then_some(())
            });
        }
    }

    /// What the managers say of every runtime's unit.
    pub fn lives(&self) -> Vec<Life> {
        let users: std::collections::BTreeSet<usize> =
            self.served().map(|home| home.user).collect();
        let mut lives = Vec::new();
        for user in users {
            let text = self.sandbox.sh(
                Some(&login(user)),
                "systemctl --user show -p Id,MainPID,InvocationID,ActiveState 'hermes-gateway*.service'",
            );
            for block in text.split("\n\n") {
                let of = |key: &str| {
                    block
                        .lines()
                        .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
                        .unwrap_or_default()
                };
                assert_eq!(of("ActiveState"), "active", "{} of user {user}", of("Id"));
                lives.push((
                    format!("{user} {}", of("Id")),
                    of("MainPID").parse().unwrap(),
                    of("InvocationID").to_owned(),
                ));
            }
        }
        lives.sort();
        assert_eq!(lives.len(), self.size.runtimes);
        lives
    }

    /// Whether every runtime lives on, or, with `renewed`, every one lives another life and serves.
    pub fn compare(&self, before: &[Life], renewed: bool) -> Result<(), String> {
        let after = self.lives();
        for (old, new) in before.iter().zip(&after) {
            let other = old.1 != new.1 && old.2 != new.2;
            if old.0 != new.0 || other != renewed || (!renewed && old != new) {
                return Err(format!("{old:?} became {new:?}"));
            }
        }
        for home in self.served() {
            let state = std::fs::read(home.below(&self.below).join("gateway_state.json"))
                .map_err(|error| error.to_string())?;
            let state: serde_json::Value = serde_json::from_slice(&state).unwrap();
            let unit = format!("{} {}", home.user, home.unit());
            let lives = after
                .iter()
                .any(|life| life.0 == unit && life.1 == state["pid"]);
            if !lives || state["gateway_state"] != "running" {
                return Err(format!("{unit} says {state}"));
            }
        }
        Ok(())
    }

    /// Makes every runtime older than its code.
    pub fn age(&self) {
        self.sandbox.sh(
            None,
            "sleep 0.1; touch /opt/stand-in/lib/python3.*/site-packages/*.dist-info/RECORD",
        );
    }

    /// Gives the homes these bytes and lets the disk come to rest.
    pub fn reset(&self, text: fn(usize) -> String) {
        homes::write(&self.homes, &self.below, text);
        rustix::fs::syncfs(std::fs::File::open(self.disk.path()).unwrap()).unwrap();
    }

    /// Fills `/proc` up to so many processes.
    pub fn crowd(&self, processes: usize) -> Crowd<'_> {
        let program = self.disk.path().join("home/sleeper");
        if !program.exists() {
            compile(&program);
        }
        let here = self.processes();
        let count = processes.saturating_sub(here);
        self.sandbox.sh(
            None,
            &format!(
                "systemd-run --quiet --unit=crowd -p TasksMax=infinity {BENCH} sleepers {count} /home/sleeper"
            ),
        );
        wait_for("all sleep", Duration::from_secs(300), || {
            (self.processes() >= here + count).then_some(())
        });
        Crowd(self)
    }

    /// How many processes the sandbox has.
    pub fn processes(&self) -> usize {
        std::fs::read_dir(self.sandbox.path("/proc"))
            .unwrap()
            .flatten()
            .filter(|entry| entry.file_name().as_encoded_bytes()[0].is_ascii_digit())
            .count()
    }
}

/// Sleeping processes; dropping it ends them.
#[derive(Debug)]
pub struct Crowd<'a>(&'a Machine);

impl Drop for Crowd<'_> {
    fn drop(&mut self) {
        self.0.sandbox.shell(None, "systemctl stop crowd");
        let end = Instant::now() + Duration::from_secs(120);
        while self
            .0
            .sandbox
            .shell(None, "systemctl is-active -q crowd")
            .status
            .success()
            && Instant::now() < end
        {
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// A program that sleeps and shares nearly all of its memory with its like.
fn compile(program: &Path) {
    let source = program.with_extension("rs");
    std::fs::write(&source, "fn main() { loop { std::thread::park(); } }\n").unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args(["-Cpanic=abort", "-Copt-level=s", "-Cstrip=symbols"])
        .arg("-Ctarget-feature=+crt-static")
        .arg("-o")
        .args([program, &source])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    std::fs::remove_file(source).unwrap();
}
