//! A real fleet: two users with lingering managers, five profiles at configuration version 12, and
//! one real gateway each, installed and started by Hermes itself.
//!
//! A fleet is built once and kept as an archive (its *seed*): the accounts, their homes and their
//! enabled units. A test boots a sandbox from the seed, and the managers start the gateways as they
//! would after any boot. What a test then reads here comes from files, `/proc` and systemctl, never
//! from the program under test.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use super::sandbox::{Boot, Process, Sandbox};
use super::{cache, skip, wait_for};

/// Where the sandboxes show the virtual environment.
pub const VENV: &str = "/opt/hermes-0.19.0";

/// The version that hermes-agent 0.19.0 expects.
pub const EXPECTED: u32 = 33;

/// Changes whenever what a seed is built from changes, so that no old one is used.
const SEED_VERSION: u32 = 2;

/// What every profile is configured with at first; the comments are part of what is promised.
pub const CONFIG_V12: &str = "\
# kept: the first line
_config_version: 12   # what wrote it

model_catalog:
  ttl_hours: 24   # hourly?
agent:
    max_turns: 90       # four blanks, on purpose
    verify_on_stop: auto
plugins:
  enabled: []   # none is ours
delegation: {max_async_children: 5, max_concurrent_children: 3}   # flow
# kept: the last line
";

/// A user with profiles.
#[derive(Debug, Clone, Copy)]
pub struct User {
    /// Login name.
    pub name: &'static str,
    /// User id.
    pub uid: u32,
    /// Profiles, each with a gateway.
    pub profiles: &'static [&'static str],
}

/// The users of the fleet.
pub const ANN: User = User {
    name: "ann",
    uid: 2001,
    profiles: &["default", "work", "ops"],
};
/// See [`ANN`].
pub const BOB: User = User {
    name: "bob",
    uid: 2002,
    profiles: &["default", "lab"],
};

/// One profile with its gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gateway {
    /// Login name of its owner.
    pub user: &'static str,
    /// User id of its owner.
    pub uid: u32,
    /// Profile name.
    pub profile: &'static str,
}

/// Which life of a unit, as its manager tells it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Life {
    /// Main process, 0 if none.
    pub pid: u32,
    /// 32 hexadecimal digits.
    pub invocation: String,
    /// `ActiveState`.
    pub active: String,
    /// `SubState`.
    pub sub: String,
    /// `Result`.
    pub result: String,
    /// `NRestarts`.
    pub automatic_restarts: u32,
}

/// A fleet in its sandbox.
#[derive(Debug)]
pub struct Fleet {
    /// Where it lives.
    pub sandbox: Sandbox,
}

/// How a fleet is booted.
#[derive(Debug, Default)]
pub struct Plan {
    asleep: Vec<Gateway>,
    without_program: bool,
    shown: Vec<(PathBuf, &'static str)>,
}

impl Gateway {
    /// The gateway of `user`'s profile.
    pub const fn of(user: User, profile: &'static str) -> Self {
        Self {
            user: user.name,
            uid: user.uid,
            profile,
        }
    }

    /// All five, in the order of their homes.
    pub fn all() -> Vec<Self> {
        [ANN, BOB]
            .into_iter()
            .flat_map(|user| user.profiles.iter().map(move |name| Self::of(user, name)))
            .collect()
    }

    /// The unit that Hermes made for it.
    pub fn unit(&self) -> String {
        match self.profile {
            "default" => "hermes-gateway.service".into(),
            name => format!("hermes-gateway-{name}.service"),
        }
    }

    /// Its profile's home.
    pub fn home(&self) -> String {
        match self.profile {
            "default" => format!("/home/{}/.hermes", self.user),
            name => format!("/home/{}/.hermes/profiles/{name}", self.user),
        }
    }

    /// Its configuration.
    pub fn config(&self) -> String {
        format!("{}/config.yaml", self.home())
    }

    /// The folder of its unit's drop-ins.
    pub fn drop_ins(&self) -> String {
        format!("/home/{}/.config/systemd/user/{}.d", self.user, self.unit())
    }

    /// The link that makes its manager start it.
    fn wants(&self) -> String {
        format!(
            "/home/{}/.config/systemd/user/default.target.wants/{}",
            self.user,
            self.unit()
        )
    }
}

impl Plan {
    /// Leaves a gateway installed but disabled, so that it is not started.
    pub fn asleep(mut self, gateway: Gateway) -> Self {
        self.asleep.push(gateway);
        self
    }

    /// Leaves the program out: a package will bring it.
    pub fn without_program(mut self) -> Self {
        self.without_program = true;
        self
    }

    /// Shows something else of this machine, too, read-only.
    pub fn show(mut self, source: PathBuf, target: &'static str) -> Self {
        self.shown.push((source, target));
        self
    }

    /// Boots the fleet and waits for its gateways; `None` where this machine cannot, which is said.
    pub fn boot(self) -> Option<Fleet> {
        let seed = seed().or_skip()?;
        let mut boot = Boot::default().seed(&seed).show(&venv().or_skip()?, VENV);
        if !self.without_program {
            boot = boot.show(
                std::path::Path::new(env!("CARGO_BIN_EXE_update")),
                "/usr/bin/update",
            );
        }
        for (source, target) in &self.shown {
            boot = boot.show(source, target);
        }
        for gateway in &self.asleep {
            boot = boot.without(&gateway.wants());
        }
        let fleet = Fleet {
            sandbox: boot.start().or_skip()?,
        };
        for gateway in Gateway::all() {
            if !self.asleep.contains(&gateway) {
                fleet.wait_until_running(gateway);
            }
        }
        // Where all of a user's gateways sleep, nothing else has waited for its manager.
        for user in [ANN, BOB] {
            fleet.wait_for_bus(user.uid);
        }
        Some(fleet)
    }
}

impl Fleet {
    /// Boots all of it.
    pub fn boot() -> Option<Self> {
        Plan::default().boot()
    }

    /// Replaces a profile's configuration.
    pub fn set_config(&self, gateway: Gateway, yaml: &str) {
        self.sandbox.write(&gateway.config(), yaml, 0o600);
    }

    /// A profile's configuration.
    #[track_caller]
    pub fn config(&self, gateway: Gateway) -> String {
        String::from_utf8(self.sandbox.read(&gateway.config()).unwrap()).unwrap()
    }

    /// Everything that an untouched file keeps: inode, both times and bytes.
    pub fn fingerprint(&self, inside: &str) -> (u64, i64, i64, i64, i64, Vec<u8>) {
        let meta = self.sandbox.path(inside).metadata().unwrap();
        (
            meta.ino(),
            meta.mtime(),
            meta.mtime_nsec(),
            meta.ctime(),
            meta.ctime_nsec(),
            self.sandbox.read(inside).unwrap(),
        )
    }

    /// Adds a drop-in to a gateway's unit and lets its manager read it.
    pub fn drop_in(&self, gateway: Gateway, text: &str) {
        let path = format!("{}/50-test.conf", gateway.drop_ins());
        self.sandbox.write(&path, text, 0o644);
        self.sandbox
            .sh(Some(gateway.user), "systemctl --user daemon-reload");
    }

    /// What the managers say of these gateways' units.
    pub fn lives(&self, gateways: &[Gateway]) -> BTreeMap<Gateway, Life> {
        gateways.iter().map(|one| (*one, self.life(*one))).collect()
    }

    /// What its manager says of a gateway's unit.
    pub fn life(&self, gateway: Gateway) -> Life {
        let text = self.sandbox.sh(
            Some(gateway.user),
            &format!(
                "systemctl --user show -p MainPID,InvocationID,ActiveState,SubState,Result,NRestarts {}",
                gateway.unit()
            ),
        );
        let mut life = Life::default();
        for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
            match key {
                "MainPID" => life.pid = value.parse().unwrap(),
                "InvocationID" => value.clone_into(&mut life.invocation),
                "ActiveState" => value.clone_into(&mut life.active),
                "SubState" => value.clone_into(&mut life.sub),
                "Result" => value.clone_into(&mut life.result),
                "NRestarts" => life.automatic_restarts = value.parse().unwrap(),
                _ => {}
            }
        }
        life
    }

    /// The process that a gateway's own state file says is running, if it is.
    pub fn running(&self, gateway: Gateway) -> Option<Process> {
        self.running_in(&gateway.home())
    }

    /// The process that the state file of a home says is running, if it is.
    pub fn running_in(&self, home: &str) -> Option<Process> {
        let bytes = self.sandbox.read(&format!("{home}/gateway_state.json"))?;
        let state: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
        let pid = u32::try_from(state.get("pid")?.as_u64()?).ok()?;
        let process = self.sandbox.process(pid)?;
        (state.get("gateway_state")? == "running"
            && state.get("start_time")?.as_u64() == Some(process.start_ticks))
        .then_some(process)
    }

    /// Waits until a user's manager has opened the user's bus, as it does soon after it lingers.
    #[track_caller]
    pub fn wait_for_bus(&self, uid: u32) {
        let bus = self.sandbox.path(&format!("/run/user/{uid}/bus"));
        wait_for("the user's bus", Duration::from_secs(60), || {
            bus.exists().then_some(())
        });
    }

    /// Waits until a gateway says that it serves.
    pub fn wait_until_running(&self, gateway: Gateway) -> Process {
        wait_for(
            &format!("{} of {} runs", gateway.unit(), gateway.user),
            Duration::from_secs(120),
            || self.running(gateway),
        )
    }
}

/// Installs a distribution from PyPI into the cache, once; the reason if that cannot be.
pub fn install(distribution: &str, version: &str) -> Result<PathBuf, String> {
    std::fs::create_dir_all(cache()).unwrap();
    let folder = cache().join(format!("{distribution}-{version}"));
    let output = Command::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/support/install-hermes"
    ))
    .args([distribution, version])
    .arg(&folder)
    .arg(&folder)
    .output()
    .unwrap();
    if output.status.success() {
        return Ok(folder);
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!("cannot install {distribution} {version}: {said}"))
}

/// A thing that this machine may be unable to give.
trait OrSkip<T> {
    fn or_skip(self) -> Option<T>;
}

impl<T> OrSkip<T> for Result<T, String> {
    fn or_skip(self) -> Option<T> {
        self.map_err(|reason| skip(&reason)).ok()
    }
}

/// The virtual environment with hermes-agent 0.19.0, built if it is not there.
fn venv() -> Result<PathBuf, String> {
    static VENV_FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    VENV_FOLDER
        .get_or_init(|| {
            let folder = cache().join("hermes-0.19.0");
            let output = Command::new(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/tests/support/install-hermes"
            ))
            .args(["hermes-agent", "0.19.0"])
            .arg(&folder)
            .arg(VENV)
            .output()
            .unwrap();
            if output.status.success() {
                Ok(folder)
            } else {
                Err(format!(
                    "cannot install hermes-agent 0.19.0: {}",
                    String::from_utf8_lossy(&output.stderr).trim()
                ))
            }
        })
        .clone()
}

/// The archive that fleets are booted from, built if it is not there.
fn seed() -> Result<PathBuf, String> {
    static SEED: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    SEED.get_or_init(|| {
        let venv = venv()?;
        let archive = cache().join(format!("fleet-{SEED_VERSION}.tar"));
        let lock = std::fs::File::create(archive.with_extension("lock")).unwrap();
        lock.lock().unwrap();
        if !archive.exists() {
            let fleet = Fleet {
                sandbox: Boot::default().show(&venv, VENV).start()?,
            };
            grow(&fleet);
            let output = fleet
                .sandbox
                .command(
                    None,
                    [
                        "sh",
                        "-c",
                        "cd / && tar --create --numeric-owner home var/lib/systemd/linger \
                         etc/passwd etc/shadow etc/group etc/gshadow",
                    ],
                )
                .output()
                .unwrap();
            assert!(output.status.success(), "the fleet cannot be kept");
            let part = archive.with_extension("part");
            std::fs::write(&part, output.stdout).unwrap();
            std::fs::rename(&part, &archive).unwrap();
        }
        Ok(archive)
    })
    .clone()
}

/// Has Hermes install and start every gateway, and leaves homes as after a shutdown.
fn grow(fleet: &Fleet) {
    // A third account without a manager: nothing may ever start one for it.
    fleet.sandbox.sh(None, "useradd -m -u 2003 cyd");
    for user in [ANN, BOB] {
        fleet.sandbox.sh(
            None,
            &format!(
                "useradd -m -u {uid} {name} && loginctl enable-linger {name}",
                uid = user.uid,
                name = user.name
            ),
        );
        fleet.wait_for_bus(user.uid);
        for profile in user.profiles {
            let flag = match *profile {
                "default" => String::new(),
                name => format!("-p {name}"),
            };
            let create = match *profile {
                "default" => String::new(),
                name => format!("hermes profile create {name};"),
            };
            fleet.sandbox.sh(
                Some(user.name),
                &format!(
                    "export PATH={VENV}/bin:/usr/bin:/bin; cd; {create}
                     yes n | hermes {flag} gateway install && hermes {flag} gateway start"
                ),
            );
        }
    }
    for gateway in Gateway::all() {
        fleet.wait_until_running(gateway);
        fleet.set_config(gateway, CONFIG_V12);
    }
    for user in [ANN, BOB] {
        fleet
            .sandbox
            .sh(None, &format!("systemctl stop user@{}.service", user.uid));
    }
    // The records of the ended processes, whose pids another machine would give to others.
    fleet.sandbox.sh(
        None,
        "find /home \\( -name gateway.pid -o -name gateway.lock -o -name gateway_state.json \\) -delete",
    );
}
