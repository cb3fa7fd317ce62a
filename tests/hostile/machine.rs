//! One machine with honest and hostile users, and what is compared after a run.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use sha2::Digest as _;

use crate::support::fleet::{ANN, BOB, CONFIG_V12, EXPECTED, Fleet, Gateway, Plan};
use crate::support::update::{Outcome, Receipt, Update, wait_until_gone};

/// Stands in every file that no output may show; the victims' and root's.
pub const PRIVATE: &str = "qzjx-private-to-its-owner-qzjx";

/// Homes of the honest user without a gateway, which only a run of root writes.
pub const VICTIM_HOMES: [&str; 2] = ["/home/vic/.hermes", "/home/vic/.hermes/profiles/work"];

/// A hostile user.
#[derive(Debug, Clone)]
pub struct Mal {
    /// Login name.
    pub name: String,
    /// User id.
    pub uid: u32,
}

/// The machine.
pub struct Machine {
    /// With two of ann's gateways at work.
    pub fleet: Fleet,
    /// The honest gateways.
    pub gateways: [Gateway; 2],
    loops: Mutex<Vec<Child>>,
    next_uid: Mutex<u32>,
}

/// What one file is, told so that any change of it is another text.
pub type Tree = BTreeMap<String, String>;

/// What honest people own, before a run.
pub struct Before {
    trees: BTreeMap<&'static str, Tree>,
    owned_by_root: Vec<String>,
}

impl Machine {
    /// Boots it; `None` where that cannot be, which is said.
    pub fn boot() -> Option<Self> {
        let plan = [(ANN, "ops"), (BOB, "default"), (BOB, "lab")]
            .into_iter()
            .fold(Plan::default(), |plan, (user, profile)| {
                plan.asleep(Gateway::of(user, profile))
            });
        let machine = Self {
            fleet: plan.boot()?,
            gateways: ["default", "work"].map(|profile| Gateway::of(ANN, profile)),
            loops: Mutex::default(),
            next_uid: Mutex::new(3001),
        };
        machine.sh(&format!(
            "useradd -m -u 2900 vic
             echo 'vic:{PRIVATE}' | chpasswd
             install -d -o vic -g vic -m 700 /home/vic/.hermes /home/vic/.hermes/profiles \
                 /home/vic/.hermes/profiles/work
             install -d -m 700 /root/.hermes
             printf '_config_version: 12\\nname: {PRIVATE}\\n' >/root/private.yaml
             cp /root/private.yaml /home/vic/notes.yaml
             chown vic:vic /home/vic/notes.yaml
             chmod 600 /home/vic/notes.yaml /root/private.yaml
             cp /root/private.yaml /home/.of-root.yaml
             chmod 644 /home/.of-root.yaml"
        ));
        Some(machine)
    }

    /// Runs shell text as root.
    #[track_caller]
    pub fn sh(&self, text: &str) -> String {
        self.fleet.sandbox.sh(None, text)
    }

    /// A new hostile user with a home like everybody's.
    pub fn mal(&self, name: &str) -> Mal {
        let mut next = self.next_uid.lock().unwrap();
        let uid = *next;
        *next += 1;
        let mal = Mal {
            name: name.to_owned(),
            uid,
        };
        self.sh(&format!(
            "useradd -m -u {uid} {name}
             install -d -o {name} -g {name} -m 700 /home/{name}/.hermes"
        ));
        self.fleet
            .sandbox
            .write(&mal.path(".hermes/config.yaml"), CONFIG_V12, 0o600);
        mal
    }

    /// Starts a Python script as a user, until the machine ends or [`Self::end_loops`].
    pub fn start(&self, user: &str, script: &str, arguments: &[&str]) {
        let script =
            format!("import os\ndef over():\n    return os.path.exists('/run/over')\n{script}");
        let child = self
            .fleet
            .sandbox
            .command(Some(user), ["/usr/bin/python3", "-c", &script])
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.loops.lock().unwrap().push(child);
    }

    /// Ends what [`Self::start`] started and waits for it.
    pub fn end_loops(&self) {
        self.sh("touch /run/over");
        for mut child in self.loops.lock().unwrap().drain(..) {
            if crate::support::sandbox::wait(&mut child, Duration::from_secs(10)).is_none() {
                // Only its launcher; what hangs inside ends with the machine.
                let _ = child.kill();
                let _ = child.wait();
            }
        }
        self.sh("rm /run/over");
    }

    /// Makes every honest home old again, and remembers what belongs to honest people.
    pub fn before(&self) -> Before {
        for profile in ANN.profiles {
            self.fleet.set_config(Gateway::of(ANN, profile), CONFIG_V12);
        }
        for home in VICTIM_HOMES {
            let text = format!("{CONFIG_V12}# {PRIVATE}\n");
            self.fleet
                .sandbox
                .write(&format!("{home}/config.yaml"), &text, 0o600);
        }
        Before {
            trees: ["/home/vic", "/etc", "/root", "/home/.of-root.yaml"]
                .map(|path| (path, self.tree(path)))
                .into(),
            owned_by_root: self.owned_by_root(),
        }
    }

    fn owned_by_root(&self) -> Vec<String> {
        let mut found = self.fleet.sandbox.owned_by_root("/home");
        found.sort();
        found
    }

    /// Everything about every file below a path.
    pub fn tree(&self, path: &str) -> Tree {
        let mut tree = Tree::new();
        walk(&self.fleet.sandbox.path(path), path, &mut tree);
        tree
    }

    /// Runs `update apply` as root.
    pub fn run(&self, more: &[&str]) -> Outcome {
        let to = EXPECTED.to_string();
        let mut arguments = vec!["apply", "--json", "--to", &to];
        arguments.extend(more);
        Update::new(&self.fleet, &arguments).run()
    }

    /// What must hold after any run among hostile users, as a list of breaches.
    pub fn breaches(&self, before: &Before, outcome: &Outcome) -> Vec<String> {
        wait_until_gone(&self.fleet);
        let mut found = Vec::new();
        for (root, tree) in &before.trees {
            let now = self.tree(root);
            let paths: std::collections::BTreeSet<&String> =
                tree.keys().chain(now.keys()).collect();
            for path in paths {
                // What a migration makes: the configuration, and the folders of one step.
                let is_migrated = VICTIM_HOMES.iter().any(|home| {
                    ["", "/config.yaml", "/logs", "/logs/curator"]
                        .iter()
                        .any(|name| **path == format!("{home}{name}"))
                });
                if tree.get(path) != now.get(path) && !is_migrated {
                    found.push(format!(
                        "{path} was {:?} and is {:?}",
                        tree.get(path),
                        now.get(path)
                    ));
                }
            }
        }
        for home in VICTIM_HOMES {
            let expected = format!("{}# {PRIVATE}\n", crate::migrated(CONFIG_V12));
            let text = self.fleet.sandbox.read(&format!("{home}/config.yaml"));
            if text.as_deref() != Some(expected.as_bytes()) {
                found.push(format!("{home} is not migrated"));
            }
        }
        for profile in ANN.profiles {
            let gateway = Gateway::of(ANN, profile);
            if self.fleet.config(gateway) != crate::migrated(CONFIG_V12) {
                found.push(format!("{} is not migrated", gateway.home()));
            }
        }
        let owned = self.owned_by_root();
        if owned != before.owned_by_root {
            found.push(format!("files of root in homes: {owned:?}"));
        }
        if outcome.stdout.contains(PRIVATE) || outcome.stderr.contains(PRIVATE) {
            found.push("private content in the output".into());
        }
        let Ok(document) = serde_json::from_str(&outcome.stdout) else {
            found.push(format!("stdout is not one document: {outcome}"));
            return found;
        };
        let receipt = Receipt(document);
        for home in VICTIM_HOMES
            .map(str::to_owned)
            .into_iter()
            .chain(ANN.profiles.iter().map(|one| Gateway::of(ANN, one).home()))
        {
            let rows: Vec<_> = receipt
                .rows("homes")
                .iter()
                .filter(|row| row["path"] == home.as_str())
                .collect();
            if rows.len() != 1 || rows[0]["outcome"] != "migrated" {
                found.push(format!("rows of {home}: {rows:?}"));
            }
        }
        for gateway in self.gateways {
            let row = receipt
                .rows("runtimes")
                .iter()
                .find(|row| row["unit"] == gateway.unit().as_str() && row["uid"] == gateway.uid);
            if row.is_none_or(|row| row["outcome"] != "restarted") {
                found.push(format!("the honest {}: {row:?}", gateway.unit()));
            }
        }
        found
    }
}

impl Mal {
    /// A path in its home folder.
    pub fn path(&self, inside: &str) -> String {
        format!("/home/{}/{inside}", self.name)
    }
}

/// The rows of homes below this path.
pub fn rows_below<'a>(receipt: &'a Receipt, path: &str) -> Vec<&'a serde_json::Value> {
    receipt
        .rows("homes")
        .iter()
        .filter(|row| {
            row["path"]
                .as_str()
                .is_some_and(|one| Path::new(one).starts_with(path))
        })
        .collect()
}

fn walk(real: &Path, shown: &str, tree: &mut Tree) {
    let Ok(meta) = std::fs::symlink_metadata(real) else {
        return;
    };
    let kind = meta.file_type();
    let content = if kind.is_symlink() {
        format!("{:?}", std::fs::read_link(real).unwrap())
    } else if kind.is_file() && meta.len() < 16 << 20 {
        let bytes = std::fs::read(real).unwrap_or_default();
        sha2::Sha256::digest(&bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    } else {
        String::new()
    };
    let times = if kind.is_dir() {
        String::new()
    } else {
        format!("{}.{}", meta.mtime(), meta.mtime_nsec())
    };
    tree.insert(
        shown.to_owned(),
        format!(
            "{:o} {}:{} {} {} {times} {content}",
            meta.mode(),
            meta.uid(),
            meta.gid(),
            meta.ino(),
            meta.nlink(),
        ),
    );
    if kind.is_dir() {
        for entry in std::fs::read_dir(real).into_iter().flatten().flatten() {
            let name = String::from_utf8_lossy(entry.file_name().as_bytes()).into_owned();
            walk(&entry.path(), &format!("{shown}/{name}"), tree);
        }
    }
}

/// Shows a table on the terminal, one attack a row.
pub fn show(title: &str, rows: &[(String, String)], since: Instant) {
    let mut text = format!("\n{title} ({:.1} s)\n", since.elapsed().as_secs_f64());
    for (name, found) in rows {
        let found: String = found.chars().take(300).collect();
        text += &format!("  {name:<44} {}\n", found.escape_debug());
    }
    crate::support::say(&text);
}
