//! A state folder of its own for a test, its children, and samples of what is kept there.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use fleet_update::state::Store;
use fleet_update::state::audit::Event;
use fleet_update::state::jobs::Work;
use fleet_update::state::scope::Scope;
use fleet_update::world::World;
use serde_json::json;
use tempfile::TempDir;

pub struct Place {
    pub folder: TempDir,
    pub world: World,
}

impl Place {
    pub fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("state-")
            .tempdir()
            .expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).expect("ours");
        Self {
            folder,
            world: World::read().expect("this machine has /proc"),
        }
    }

    pub fn dir(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub fn store(&self) -> Store {
        Store::open(&self.world, &self.dir()).expect("a database")
    }

    /// The database, for tampering.
    pub fn raw(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(Store::path(&self.dir())).expect("a database")
    }

    /// Starts `count` children that do `work`, lets them go at once, and waits for what they print.
    pub fn children(&self, count: usize, work: &str) -> Vec<String> {
        let mut children: Vec<Child> = (0..count)
            .map(|number| {
                Command::new(std::env::current_exe().expect("ourselves"))
                    .args(["--exact", "child::child", "--nocapture", "--test-threads=1"])
                    .env("STATE_CHILD", work)
                    .env("STATE_DIR", self.dir())
                    .env("STATE_NUMBER", number.to_string())
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::null())
                    .spawn()
                    .expect("a child")
            })
            .collect();
        let mut outputs: Vec<_> = children
            .iter_mut()
            .map(|child| {
                let mut output = BufReader::new(child.stdout.take().expect("piped"));
                let mut line = String::new();
                while !line.contains("READY") {
                    line.clear();
                    assert!(
                        output.read_line(&mut line).expect("a child speaks") > 0,
                        "it ended early"
                    );
                }
                output
            })
            .collect();
        // The barrier: all of them are there, and wait for the end of their input.
        children
            .iter_mut()
            .for_each(|child| drop(child.stdin.take()));
        let said = outputs
            .iter_mut()
            .map(|output| {
                let mut text = String::new();
                output.read_to_string(&mut text).expect("a child speaks");
                text.lines()
                    .find_map(|line| line.split_once("SAYS "))
                    .map_or(String::new(), |(_, said)| said.into())
            })
            .collect();
        for mut child in children {
            assert!(child.wait().expect("a child ends").success());
        }
        said
    }
}

pub fn event(run: &str, tenant: &str, number: u64) -> Event {
    Event {
        run: run.into(),
        tenant: tenant.into(),
        kind: "test".into(),
        payload: json!({"number": number}),
    }
}

pub fn profile() -> Scope {
    Scope::Profile("acme".into(), "main".into(), "work".into())
}

pub fn work(event: &str) -> Work {
    Work {
        event: event.into(),
        stage: "migrate".into(),
        subject: "home-1".into(),
        scope: profile(),
    }
}

pub fn count(said: &[String], word: &str) -> usize {
    said.iter().filter(|said| *said == word).count()
}

pub fn update(place: &Place, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_update"))
        .args(words)
        .arg("--state-dir")
        .arg(place.dir())
        .env_clear()
        .env("LANG", "C.UTF-8")
        .stdin(Stdio::null())
        .output()
        .expect("the program")
}
