//! A fleet in which nothing is as an installer leaves it.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::Value;

use crate::support::fleet::{ANN, Fleet, Gateway, Plan, VENV};
use crate::support::sandbox::Process;
use crate::support::update::{Receipt, Update};
use crate::support::{say, wait_for};

/// Where a newer release is shown, if this machine has one.
const NEWEST: &str = "/opt/hermes-newest";

/// A program that its command line makes a runtime, and that does nothing.
const STAND_IN: &str = "/opt/stand-in";

/// The fleet, and what it has.
#[derive(Debug)]
pub struct Odd {
    /// Where it lives.
    pub fleet: Fleet,
    /// Whether a newer release runs in it.
    pub has_newest: bool,
}

/// The one that tests look at and do not change; `None` where this machine cannot boot one.
pub fn shared() -> Option<&'static Odd> {
    static SHARED: OnceLock<Option<Odd>> = OnceLock::new();
    SHARED.get_or_init(Odd::boot).as_ref()
}

/// What root's plan says of the shared one.
pub fn plan() -> Option<(&'static Odd, &'static Receipt)> {
    static PLAN: OnceLock<Receipt> = OnceLock::new();
    let odd = shared()?;
    let plan = PLAN.get_or_init(|| Update::new(&odd.fleet, &["plan", "--json"]).run().receipt());
    Some((odd, plan))
}

impl Odd {
    /// Boots it; `None` where this machine cannot.
    pub fn boot() -> Option<Self> {
        let newest = std::env::var_os("UPDATE_ORACLE_NEWEST").map(PathBuf::from);
        let newest = newest.filter(|folder| folder.join("bin/python").exists());
        let mut plan = ANN.profiles.iter().fold(Plan::default(), |plan, profile| {
            plan.asleep(Gateway::of(ANN, profile))
        });
        if let Some(folder) = &newest {
            plan = plan.show(folder.clone(), NEWEST);
        } else {
            say("SKIPPED: a runtime that serves many homes (UPDATE_ORACLE_NEWEST names no venv)");
        }
        let odd = Self {
            fleet: plan.boot()?,
            has_newest: newest.is_some(),
        };
        let sandbox = &odd.fleet.sandbox;
        sandbox.sh(
            None,
            &SETUP.replace("VENV", VENV).replace("STAND_IN", STAND_IN),
        );
        sandbox.sh(Some("ann"), &OF_ANN.replace("VENV", VENV));
        if odd.has_newest {
            sandbox.sh(None, &MANY.replace("NEWEST", NEWEST));
        }
        sandbox.sh(
            None,
            "systemctl daemon-reload; systemctl start --no-block odd.target",
        );
        for home in odd.gateways() {
            wait_for(
                &format!("{home} is served"),
                Duration::from_secs(120),
                || odd.fleet.running_in(home),
            );
        }
        for unit in [
            "hermes-dashboard.service",
            "agent-serve.service",
            "agent-webui.service",
        ] {
            wait_for(&format!("{unit} runs"), Duration::from_secs(60), || {
                odd.in_unit(unit)
            });
        }
        sandbox.sh(None, &KEEPERS.replace("STAND_IN", STAND_IN));
        Some(odd)
    }

    /// The homes that real gateways serve.
    pub fn gateways(&self) -> Vec<&'static str> {
        let mut homes = vec![
            "/home/ann/.hermes",
            "/home/ann/.hermes/profiles/work",
            "/home/ann/.hermes/profiles/ops",
            "/home/bob/.hermes",
            "/home/bob/.hermes/profiles/lab",
            "/var/lib/svc/.hermes",
            "/srv/eve/hermes",
            "/home/cyd/.hermes",
        ];
        if self.has_newest {
            homes.push("/home/dan/.hermes");
        }
        homes
    }

    /// A process of a unit that is no shell: a wrapper's child where it has one.
    pub fn in_unit(&self, unit: &str) -> Option<Process> {
        let group = format!("/{unit}");
        self.fleet
            .sandbox
            .processes()
            .into_iter()
            .find(|one| one.cgroup.ends_with(&group) && !one.command.starts_with("/bin/sh"))
    }
}

/// The row of the runtime that keeps in this unit; `None` if there is none.
pub fn row_of<'a>(plan: &'a Receipt, unit: &str) -> Option<&'a Value> {
    plan.rows("runtimes").iter().find(|row| row["unit"] == unit)
}

/// The row of a process; `None` if there is none.
pub fn row_of_pid(plan: &Receipt, pid: u32) -> Option<&Value> {
    plan.rows("runtimes")
        .iter()
        .find(|row| row["before"]["incarnation"]["pid"] == pid)
}

/// Accounts, system services, stale records and decoys, as root.
const SETUP: &str = r#"
set -e
useradd -m -u 2004 dan; useradd -m -u 2005 eve; useradd -m -u 2006 fay
useradd -r -u 950 -d /var/lib/svc svc
install -d -o svc -g svc /var/lib/svc/.hermes; install -d -o eve -g eve /srv/eve/hermes
for home in /var/lib/svc/.hermes /srv/eve/hermes; do
  echo '_config_version: 12' >$home/config.yaml; chown --reference=$home $home/config.yaml; chmod 600 $home/config.yaml
done

# A stand-in: it is started like the application, and waits.
site=STAND_IN/lib/python3.11/site-packages
mkdir -p STAND_IN/bin $site/hermes_cli $site/hermes_agent-0.19.0.dist-info
ln -s /usr/bin/python3 STAND_IN/bin/python
printf 'home = /usr/bin\ninclude-system-site-packages = false\n' >STAND_IN/pyvenv.cfg
printf 'import signal\nsignal.pause()\n' >$site/hermes_cli/main.py
: >$site/hermes_cli/__init__.py; echo '"_config_version": 33' >$site/hermes_cli/config.py
: >$site/hermes_agent-0.19.0.dist-info/RECORD

unit() { # NAME, then lines of [Service]
  printf '[Service]\nRestart=always\nRestartSec=30\n%s\n[Install]\nWantedBy=odd.target\n' "$2" >/etc/systemd/system/"$1"
}
wanted() { mkdir -p /etc/systemd/system/odd.target.wants; ln -sf "/etc/systemd/system/$1" "/etc/systemd/system/odd.target.wants/${2:-$1}"; }
printf '[Unit]\nDescription=What is odd\n' >/etc/systemd/system/odd.target

# A system unit of the name that an older release used; where its home is, a file of variables says.
echo 'HERMES_HOME=/var/lib/svc/.hermes' >/etc/svc-agent
unit hermes-gateway.service 'User=svc
EnvironmentFile=/etc/svc-agent
ExecStart=VENV/bin/hermes gateway run'
wanted hermes-gateway.service
# A template with a user; where its home is, a drop-in says.
unit x-agent@.service 'User=%i
ExecStart=VENV/bin/hermes gateway run'
mkdir /etc/systemd/system/x-agent@eve.service.d
printf '[Service]\nEnvironment=HERMES_HOME=/srv/%%i/hermes\n' >/etc/systemd/system/x-agent@eve.service.d/home.conf
wanted x-agent@.service x-agent@eve.service
# Servers beside the gateway, and a program of somebody else from the same environment.
unit hermes-dashboard.service 'User=bob
ExecStart=VENV/bin/hermes dashboard --no-open --port 9381'
wanted hermes-dashboard.service
unit agent-serve.service 'User=bob
ExecStart=/usr/bin/env -u NOTHING VENV/bin/python -m hermes_cli.main -p lab serve --port 9382'
wanted agent-serve.service
unit agent-webui.service 'User=bob
ExecStart=VENV/bin/python -c "import hermes_cli, time; time.sleep(100000)" hermes-webui'
wanted agent-webui.service
# A home with a checkout of its own, and a gateway from elsewhere.
runuser -u cyd -- sh -c 'umask 077; mkdir -p ~/.hermes/hermes-agent/hermes_cli ~/.hermes/hermes-agent/.git/logs
  cd ~/.hermes; echo "_config_version: 12" >config.yaml
  echo 0 >hermes-agent/.git/logs/HEAD; : >hermes-agent/hermes_cli/__init__.py
  echo "\"_config_version\": 33" >hermes-agent/hermes_cli/config.py'
unit cyd-fork.service 'User=cyd
ExecStart=VENV/bin/hermes gateway run'
wanted cyd-fork.service

# Folders among profiles: half-made, stray, and with names that no profile may have.
runuser -u cyd -- bash -c 'cd ~/.hermes; mkdir profiles; cd profiles
  mkdir good1 good2 half 0 "With Space" -- -dash .hidden $'"'"'new\nline'"'"' "$(printf %065d 7)"
  for good in good1 good2; do echo "_config_version: 33" >$good/config.yaml; done
  touch half/.env; touch file; ln -s /nowhere dangling; ln -s good1 alias'

# Records of what is gone: another start, another owner, another program, another boot.
record() { # FOLDER PID START
  printf '{"pid": %s, "kind": "hermes-gateway", "start_time": %s}' $2 $3 >$1/gateway.pid
  printf '{"pid": %s, "kind": "hermes-gateway", "start_time": %s, "gateway_state": "running", "updated_at": "2026-01-01T00:00:00Z"}' $2 $3 >$1/gateway_state.json
  : >$1/gateway.lock; chown -R --reference=/home/cyd/.hermes/config.yaml $1
}
ticks() { sed 's/.*) //' /proc/$1/stat | cut -d' ' -f20; }
profile() { mkdir -p /home/cyd/.hermes/profiles/$1; echo '_config_version: 33' >/home/cyd/.hermes/profiles/$1/config.yaml; }
setsid -f runuser -u cyd -- sh -c 'exec -a innocent-of-cyd sleep 100000' </dev/null >/dev/null 2>&1
setsid -f runuser -u fay -- sh -c 'exec -a innocent-of-fay sleep 100000' </dev/null >/dev/null 2>&1
for i in $(seq 100); do pgrep -f innocent-of-fay >/dev/null && pgrep -f innocent-of-cyd >/dev/null && break; sleep 0.05; done
cyd=$(pgrep -n -f innocent-of-cyd); fay=$(pgrep -n -f innocent-of-fay)
profile was-another-start; record /home/cyd/.hermes/profiles/was-another-start $cyd 5
profile was-another-owner; record /home/cyd/.hermes/profiles/was-another-owner $fay $(ticks $fay)
profile was-another-program; record /home/cyd/.hermes/profiles/was-another-program $cyd $(ticks $cyd)
profile was-another-boot; record /home/cyd/.hermes/profiles/was-another-boot 4194303 99999999999
profile was-init; record /home/cyd/.hermes/profiles/was-init 1 $(ticks 1)
chown -R cyd:cyd /home/cyd/.hermes/profiles

# What only looks like a runtime.
decoy() { name=$1; shift; setsid -f runuser -u cyd -- "$@" </dev/null >/dev/null 2>&1; }
decoy a bash -c 'exec -a "vim hermes gateway notes" sleep 100001'
decoy b sh -c 'sleep 100002; : python -m hermes_cli.main gateway run'
decoy c tail -f /dev/null --pid 1 hermes_cli/main.py gateway run
decoy d /usr/bin/python3 -c 'import time; time.sleep(100003)' -m hermes_cli.main --profile p gateway run
"#;

/// Units of ann's own: another name, a template, and a wrapper above the runtime.
const OF_ANN: &str = r#"
set -e
cd ~/.config/systemd/user
unit() { printf '[Service]\nRestart=always\nRestartSec=30\nRestartForceExitStatus=75\nKillMode=mixed\n%s\n' "$2" >"$1"; }
unit agent-of-work.service 'ExecStart=VENV/bin/hermes -p work gateway run'
unit agent@.service 'ExecStart=VENV/bin/hermes -p %i gateway run'
unit secrets.service "ExecStart=/bin/sh -c 'VENV/bin/python -m hermes_cli.main -p ops gateway run & wait'"
systemctl --user daemon-reload
systemctl --user start agent-of-work.service agent@default.service secrets.service
"#;

/// One runtime of a newer release that serves all profiles of its root.
const MANY: &str = r#"
set -e
runuser -u dan -- sh -c 'umask 077; mkdir -p ~/.hermes/profiles/a ~/.hermes/profiles/b; cd ~/.hermes
  printf "_config_version: 50\ngateway:\n  multiplex_profiles: true\n" >config.yaml
  echo "_config_version: 50" >profiles/a/config.yaml; echo "_config_version: 50" >profiles/b/config.yaml'
printf '[Service]\nUser=dan\nRestart=always\nExecStart=NEWEST/bin/python -m hermes_cli.main gateway run\n' >/etc/systemd/system/many.service
mkdir -p /etc/systemd/system/odd.target.wants
ln -sf /etc/systemd/system/many.service /etc/systemd/system/odd.target.wants/many.service
"#;

/// Stand-ins below programs that respawn them, below the desktop, below nobody, and in other namespaces.
/// They are older than their code.
const KEEPERS: &str = r#"
set -e
names="by-runsv by-supervisord by-pm2 by-bash by-desktop by-nobody in-pid-namespace in-another-root in-mount-namespace"
for name in $names; do
  install -d -o eve -g eve /srv/eve/hermes/profiles /srv/eve/hermes/profiles/$name
  echo '_config_version: 33' >/srv/eve/hermes/profiles/$name/config.yaml
  chown eve:eve /srv/eve/hermes/profiles/$name/config.yaml
done
as_eve='env -i PATH=/usr/bin:/bin HERMES_HOME=/srv/eve/hermes setsid -f setpriv --reuid eve --regid eve --init-groups'
command() { echo "STAND_IN/bin/python -m hermes_cli.main -p $1 serve"; }
start() { "$@" </dev/null >/dev/null 2>&1; }
mkdir -p /opt/keepers
cp /bin/sh /opt/keepers/runsv
cp /bin/sh /opt/keepers/desktop
printf 'import subprocess, sys\nsubprocess.run(sys.argv[1:])\n' >/opt/keepers/supervisord
start $as_eve /opt/keepers/runsv -c "$(command by-runsv) & wait"
start $as_eve /usr/bin/python3 /opt/keepers/supervisord $(command by-supervisord)
start $as_eve bash -c 'exec -a "PM2 v5.3.0: God Daemon (/srv/eve/.pm2)" sh -c "$1 & wait"' sh "$(command by-pm2)"
start $as_eve bash -c "while :; do $(command by-bash); sleep 5; done"
start $as_eve env HERMES_DESKTOP=1 HERMES_DASHBOARD_SESSION_TOKEN=canary /opt/keepers/desktop -c "$(command by-desktop) & wait"
start $as_eve $(command by-nobody)
start env -i PATH=/usr/bin:/bin HERMES_HOME=/srv/eve/hermes setsid -f unshare --pid --fork --mount-proc \
  setpriv --reuid eve --regid eve --init-groups $(command in-pid-namespace)
start env -i PATH=/usr/bin:/bin HERMES_HOME=/srv/eve/hermes setsid -f unshare --mount \
  setpriv --reuid eve --regid eve --init-groups $(command in-mount-namespace)
mkdir /run/box; mount -t tmpfs box /run/box
for folder in usr lib lib64 bin sbin opt srv etc dev proc; do
  [ ! -e /$folder ] || { mkdir /run/box/$folder; mount --rbind /$folder /run/box/$folder; }
done
start env -i PATH=/usr/bin:/bin HERMES_HOME=/srv/eve/hermes setsid -f /usr/sbin/chroot --userspec eve:eve /run/box $(command in-another-root)
for i in $(seq 200); do
  [ $(pgrep -c -f '^STAND_IN/bin/python -m hermes_cli.main -p (by|in)-.* serve$') -ge 9 ] && break; sleep 0.1
done
# What is moved out of its unit, beside the manager itself, belongs to nobody that is known.
for pid in $(pgrep -f 'hermes_cli.main -p by-nobody serve'); do echo $pid >/sys/fs/cgroup/init.scope/cgroup.procs; done
sleep 0.1; touch STAND_IN/lib/python3.11/site-packages/hermes_agent-0.19.0.dist-info/RECORD
"#;
