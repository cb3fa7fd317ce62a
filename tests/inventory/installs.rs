//! Code that came here in several ways, and what makes what runs from it stale: the evidence that it
//! was replaced, and not an edit by somebody.

use std::time::Duration;

use serde_json::Value;

use crate::support::fleet::Fleet;
use crate::support::sandbox::Boot;
use crate::support::update::{Receipt, Update};
use crate::support::{skip, wait_for};

/// An install of each kind with something that runs from it, each of an account of its own.
const SETUP: &str = r#"
set -e
# This machine may be a container, and the one of the test is not meant to be.
rm -f /.dockerenv /run/.containerenv
code() { # FOLDER [VERSION]: the package, as far as anybody looks
  mkdir -p $1/hermes_cli; : >$1/hermes_cli/__init__.py
  printf 'import signal\nsignal.pause()\n' >$1/hermes_cli/main.py
  echo '"_config_version": 33' >$1/hermes_cli/config.py
}
about() { # SITE INSTALLER
  mkdir -p $1/hermes_agent-0.19.0.dist-info; echo $2 >$1/hermes_agent-0.19.0.dist-info/INSTALLER
  : >$1/hermes_agent-0.19.0.dist-info/RECORD
}
venv() { # FOLDER INSTALLER
  mkdir -p $1/bin; ln -s /usr/bin/python3 $1/bin/python
  printf 'home = /usr/bin\ninclude-system-site-packages = false\n' >$1/pyvenv.cfg
  about $1/lib/python3.11/site-packages $2; code $1/lib/python3.11/site-packages
}
venv /opt/by-pip pip
venv /opt/by-uv uv
mkdir -p /opt/pipx/venvs; venv /opt/pipx/venvs/by-pipx pip
venv /opt/by-nobody ''; rm -r /opt/by-nobody/lib/python3.11/site-packages/*.dist-info
mkdir -p /opt/by-git; code /opt/by-git; mkdir -p /opt/by-git/.git/logs; echo a >/opt/by-git/.git/logs/HEAD
store=/nix/store/0123456789abcdfghijklmnpqrsvwxyz-hermes-0.19.0
mkdir -p $store/bin; code $store/lib/python3.11/site-packages; about $store/lib/python3.11/site-packages ''
printf '#!/usr/bin/python3\nimport sys\nsys.path.insert(0, "%s")\nimport hermes_cli.main\n' $store/lib/python3.11/site-packages >$store/bin/hermes
chmod +x $store/bin/hermes
# A real package, built and installed by dpkg.
deb() { # RELEASE
  root=/tmp/deb-$1; site=$root/usr/lib/python3/dist-packages
  code $site; about $site dpkg; mkdir -p $root/usr/bin $root/DEBIAN
  printf '#!/usr/bin/python3\nimport hermes_cli.main\n' >$root/usr/bin/hermes; chmod 755 $root/usr/bin/hermes
  printf 'Package: hermes-agent\nVersion: %s\nArchitecture: all\nMaintainer: A <a@example.org>\nDescription: an agent\n' $1 >$root/DEBIAN/control
  find $root -exec touch -d 2001-01-01 {} +
  dpkg-deb --build --root-owner-group $root /tmp/$1.deb >/dev/null
}
deb 1; deb 2; dpkg --install /tmp/1.deb >/dev/null 2>&1
uid=3000
start() { # NAME COMMAND...
  uid=$((uid + 1)); name=$1; shift
  useradd -m -u $uid $name
  runuser -u $name -- sh -c 'umask 077; mkdir ~/.hermes; echo "_config_version: 33" >~/.hermes/config.yaml'
  (cd /; setsid -f runuser -u $name -- "$@" </dev/null >/dev/null 2>&1)
}
start pip /opt/by-pip/bin/python -m hermes_cli.main serve
start uv /opt/by-uv/bin/python -m hermes_cli.main serve
start pipx /opt/pipx/venvs/by-pipx/bin/python -m hermes_cli.main serve
start unknown /opt/by-nobody/bin/python -m hermes_cli.main serve
start git /usr/bin/python3 /opt/by-git/hermes_cli/main.py serve
start nix /usr/bin/python3 $store/bin/hermes serve
start dpkg /usr/bin/python3 /usr/bin/hermes serve
"#;

const KINDS: [&str; 7] = ["pip", "uv", "pipx", "unknown", "git", "nix", "dpkg"];

fn boot() -> Option<Fleet> {
    let sandbox = Boot::default()
        .show(
            std::path::Path::new(env!("CARGO_BIN_EXE_update")),
            "/usr/bin/update",
        )
        .start()
        .map_err(|reason| skip(&reason))
        .ok()?;
    sandbox.sh(None, SETUP);
    wait_for("all of them run", Duration::from_secs(60), || {
        let runs = |one: &&crate::support::sandbox::Process| {
            one.uid > 3000 && one.command.ends_with(" serve") && one.command.contains("python")
        };
        (sandbox.processes().iter().filter(runs).count() == KINDS.len()).then_some(())
    });
    Some(Fleet { sandbox })
}

fn plan(fleet: &Fleet) -> Receipt {
    Update::new(fleet, &["plan", "--json"]).run().receipt()
}

fn row<'a>(plan: &'a Receipt, user: &str) -> &'a Value {
    let rows = plan.rows("runtimes");
    rows.iter()
        .find(|row| row["user"] == user)
        .unwrap_or_else(|| panic!("no row of {user}\n{}", plan.summary()))
}

/// Which of them are stale.
fn stale(plan: &Receipt) -> Vec<&'static str> {
    let is_stale = |user: &&&str| row(plan, user)["stale"] == true;
    KINDS.iter().filter(is_stale).copied().collect()
}

#[test]
fn each_kind_of_install_is_told_and_is_stale_by_what_its_installer_leaves_and_by_no_edit() {
    let Some(fleet) = boot() else { return };
    let sandbox = &fleet.sandbox;
    let first = plan(&fleet);
    for user in KINDS {
        let row = row(&first, user);
        let install = first
            .rows("installs")
            .iter()
            .find(|install| install["id"] == row["install"])
            .unwrap_or_else(|| panic!("{row}"));
        assert_eq!(install["kind"], user, "{install}");
        assert_eq!(install["config_version"], 33, "{install}");
        assert_eq!(row["stale"], false, "{row}");
    }

    // Somebody edits code, and another environment shares its files by hard links, as uv makes them.
    sandbox.sh(
        None,
        "for f in /opt/by-*/lib/python3.11/site-packages /opt/by-git /usr/lib/python3/dist-packages; do
           echo '# edited' >>$f/hermes_cli/main.py; touch $f/hermes_cli/config.py; done
         mkdir /opt/by-uv-2; cp -al /opt/by-uv/lib/python3.11/site-packages/hermes_cli /opt/by-uv-2",
    );
    let edited = plan(&fleet);
    let expected: &[&str] = &[];
    assert_eq!(stale(&edited), expected, "{}", edited.summary());

    // A configuration that somebody else edits makes nothing stale either.
    sandbox.sh(
        None,
        "for h in /home/*/.hermes; do echo 'model: x' >>$h/config.yaml; done",
    );
    assert_eq!(stale(&plan(&fleet)), expected);

    // What each installer does.
    for (text, user) in [
        (
            "echo x >/opt/by-pip/lib/python3.11/site-packages/hermes_agent-0.19.0.dist-info/RECORD",
            "pip",
        ),
        (
            "echo x >/opt/by-uv/lib/python3.11/site-packages/hermes_agent-0.19.0.dist-info/RECORD",
            "uv",
        ),
        (
            "echo x >/opt/pipx/venvs/by-pipx/lib/python3.11/site-packages/hermes_agent-0.19.0.dist-info/RECORD",
            "pipx",
        ),
        ("echo b >>/opt/by-git/.git/logs/HEAD", "git"),
        ("dpkg --install /tmp/2.deb >/dev/null 2>&1", "dpkg"),
    ] {
        sandbox.sh(None, text);
        let now = plan(&fleet);
        assert!(stale(&now).contains(&user), "{user}: {}", now.summary());
    }
    let last = plan(&fleet);
    assert_eq!(
        stale(&last),
        ["pip", "uv", "pipx", "git", "dpkg"],
        "{}",
        last.summary()
    );
    // Where no file says when it changed, that is said.
    sandbox.sh(
        None,
        "rm /opt/by-nobody/lib/python3.11/site-packages/hermes_cli/__init__.py",
    );
    let row = row(&plan(&fleet), "unknown").clone();
    assert_eq!(row["stale"], Value::Null, "{row}");
    assert_eq!(row["outcome"], "unverified", "{row}");
    assert!(row["reason"].as_str().unwrap().starts_with("age:"), "{row}");
}
