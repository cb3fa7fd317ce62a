//! A root with the stand-ins of many scenarios: written, started and disturbed, before any run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use crate::scenario::{Manager, Scenario};
use crate::support::fleet::Fleet;
use crate::support::sandbox::Boot;
use crate::support::{skip, wait_for};
use crate::truth::log;

/// Spans that let a test take seconds; otherwise the row that is built in.
const ROW: &str = r#"
[[mechanism]]
id = "deny"
match = { manager = ["system", "user"], type = "oneshot" }
action = "deny"
instruction = "never restarted from here"

[[mechanism]]
id = "systemd"
match = [
  { manager = "system", unit = ["hermes*"] },
  { manager = "user", unit = ["hermes*"] },
]
action = "try-restart"
drain = { signal = "USR1", limit = "6s" }
settle = "3s"
settle_silent = "5s"
speak_limit = "30s"
limit = "60s"
instruction = "{systemctl} restart {unit}"
"#;

/// A folder with the application's code: one that changes, and one that does not.
const INSTALL: &str = "
for name in stand-in fresh; do
  site=/opt/$name/lib/python3.11/site-packages
  mkdir -p /opt/$name/bin $site/hermes_cli $site/hermes_agent-0.19.0.dist-info
  ln -s /usr/bin/python3 /opt/$name/bin/python
  printf 'home = /usr/bin\\ninclude-system-site-packages = false\\n' >/opt/$name/pyvenv.cfg
  cp /opt/source/main.py $site/hermes_cli/main.py
  : >$site/hermes_cli/__init__.py
  echo '\"_config_version\": 33' >$site/hermes_cli/config.py
  printf 'Metadata-Version: 2.1\\nName: hermes-agent\\nVersion: 0.19.0\\n' >$site/hermes_agent-0.19.0.dist-info/METADATA
  : >$site/hermes_agent-0.19.0.dist-info/RECORD
done
site=$(/opt/stand-in/bin/python -c 'import sys; print(sys.version_info[1])')
for name in stand-in fresh; do
  [ $site = 11 ] || mv /opt/$name/lib/python3.11 /opt/$name/lib/python3.$site
done
mkdir -m 1777 /tmp/stand-in; mkdir -m 1777 /srv/units
";

/// The stand-ins, running.
#[derive(Debug)]
pub struct StandIns {
    pub fleet: Fleet,
    pub all: Vec<Scenario>,
}

impl StandIns {
    /// Boots a root, starts what is to be started, and prepares every scenario; `None` where this machine cannot.
    pub fn boot(all: Vec<Scenario>) -> Option<Self> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let sandbox = Boot::default()
            .show(&here.join("tests/matrix/stand_in"), "/opt/source")
            .show(Path::new(env!("CARGO_BIN_EXE_update")), "/usr/bin/update")
            .start()
            .map_err(|reason| skip(&reason))
            .ok()?;
        let this = Self {
            fleet: Fleet { sandbox },
            all,
        };
        let sandbox = &this.fleet.sandbox;
        sandbox.sh(None, INSTALL);
        sandbox.write("/etc/fleet-update/mechanisms.d/short.toml", ROW, 0o644);
        for (user, uid) in [("ann", 2001), ("bob", 2002), ("carl", 2003)] {
            sandbox.sh(
                None,
                &format!(
                    "useradd -m -s /bin/bash -u {uid} {user} && loginctl enable-linger {user}"
                ),
            );
            this.fleet.wait_for_bus(uid);
        }
        this.write();
        this.start();
        this.each("prepare", |one| one.prepare.clone());
        this.each_manager("daemon-reload");
        this.each("late", |one| one.late.clone());
        // From here on what runs is older than its code.
        sandbox.sh(
            None,
            "sleep 0.1; touch /opt/stand-in/lib/python3.*/site-packages/*.dist-info/RECORD",
        );
        Some(this)
    }

    /// Runs shell text as the one whose manager keeps a scenario's unit.
    pub fn shell(&self, one: &Scenario, text: &str) {
        let output = self.fleet.sandbox.shell(user_of(one), text);
        if !output.status.success() {
            crate::say(&format!(
                "{}: {text}: {}",
                one.log(),
                String::from_utf8_lossy(&output.stderr)
            ));
        }
    }

    /// Every unit file, drop-in and link below the users' and the site's folders, with bytes.
    pub fn unit_files(&self) -> String {
        self.fleet.sandbox.sh(
            None,
            "find /home/*/.config/systemd /etc/systemd /run/systemd/transient /var/lib/systemd/linger -type f -exec sha256sum {} + \
             -o -type l -printf '%p %l\\n' | sort",
        )
    }

    fn write(&self) {
        let sandbox = &self.fleet.sandbox;
        let mut folders: BTreeMap<&str, String> = BTreeMap::new();
        for one in &self.all {
            let text = folders.entry(one.user()).or_default();
            let _ = write!(text, " {}", one.home());
        }
        for (user, folders) in folders {
            sandbox.sh(
                Some(user),
                &format!(
                    "mkdir -p ~/.config/systemd/user ~/bin {folders} $XDG_RUNTIME_DIR/systemd/user
                     for home in {folders}; do (umask 077; echo '_config_version: 33' >$home/config.yaml); done"
                ),
            );
        }
        for one in &self.all {
            if let Some(file) = &one.file {
                sandbox.write(file, &one.text(), 0o644);
            }
        }
    }

    fn start(&self) {
        let enable = |one: &Scenario| {
            let file = one.file.as_deref()?;
            (file.contains("/.config/") || file.contains("/etc/")).then(|| one.unit.clone())
        };
        self.each_list("enable -q", enable);
        self.each("first", |one| one.first.clone());
        self.each_manager("daemon-reload");
        self.each_list("start --no-block", |one| {
            (one.started && one.file.is_some()).then(|| one.unit.clone())
        });
        for one in self.all.iter().filter(|one| one.started) {
            wait_for(
                &format!("{} serves", one.log()),
                Duration::from_secs(120),
                || {
                    log(&self.fleet.sandbox, one)
                        .iter()
                        .any(|line| line.event == "serves")
                        .then_some(())
                },
            );
        }
        // Serving is not yet active for a unit whose command goes on after it.
        for one in self.all.iter().filter(|one| one.started) {
            let ctl = one.systemctl();
            wait_for(
                &format!("{} is active", one.log()),
                Duration::from_secs(60),
                || {
                    let output = self
                        .fleet
                        .sandbox
                        .shell(user_of(one), &format!("{ctl} is-active -q {}", one.unit));
                    output.status.success().then_some(())
                },
            );
        }
    }

    /// Runs a text of each scenario, those of one manager side by side.
    fn each(&self, what: &str, text: impl Fn(&Scenario) -> String) {
        let mut scripts: BTreeMap<Option<&str>, String> = BTreeMap::new();
        for one in &self.all {
            let text = text(one);
            if !text.is_empty() {
                let script = scripts.entry(user_of(one)).or_default();
                let _ = writeln!(
                    script,
                    "({text}\n) || echo {what} of {} failed &",
                    one.log()
                );
            }
        }
        for (user, script) in scripts {
            let said = self.fleet.sandbox.sh(user, &format!("{script}\nwait"));
            assert!(said.is_empty(), "{said}");
        }
    }

    fn each_manager(&self, verb: &str) {
        self.fleet.sandbox.sh(None, &format!("systemctl {verb}"));
        for user in ["ann", "bob", "carl"] {
            self.fleet
                .sandbox
                .sh(Some(user), &format!("systemctl --user {verb}"));
        }
    }

    /// Gives each manager one command about the units that `name` gives.
    fn each_list(&self, verb: &str, name: impl Fn(&Scenario) -> Option<String>) {
        let mut lists: BTreeMap<Option<&str>, (&str, String)> = BTreeMap::new();
        for one in &self.all {
            if let Some(name) = name(one) {
                let list = lists
                    .entry(user_of(one))
                    .or_insert((one.systemctl(), String::new()));
                let _ = write!(list.1, " {name}");
            }
        }
        for (user, (ctl, list)) in lists {
            self.fleet.sandbox.sh(user, &format!("{ctl} {verb}{list}"));
        }
    }
}

/// Who may ask the manager of a unit; root for the system's.
pub fn user_of(one: &Scenario) -> Option<&'static str> {
    match one.manager {
        Manager::User(user) => Some(user),
        Manager::System(_) => None,
    }
}
