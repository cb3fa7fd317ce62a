//! A test in a process table and with mounts of its own, and several of them side by side.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// Runs this test again in a process table of its own, where no other fleet of this machine is seen; `true` there.
pub fn isolated() -> bool {
    if std::env::var_os("CRASH_ISOLATED").is_some() {
        return true;
    }
    // The harness names the thread of a test after it.
    let thread = std::thread::current();
    isolate(thread.name().expect("a test has a name"), &[]);
    false
}

/// Runs the test `name` in a process table and with mounts of its own; `vars` say which part of it.
pub fn isolate(name: &str, vars: &[(&str, &str)]) {
    // The shell is process 1 there, and takes in what is orphaned.
    let output = Command::new("unshare")
        .args(["--pid", "--fork", "--mount", "--mount-proc"])
        .args(if rustix::process::geteuid().is_root() {
            &[][..]
        } else {
            &["--map-root-user"]
        })
        .args(["--", "sh", "-c", "\"$@\"; exit $?", "sh"])
        .arg(std::env::current_exe().expect("ourselves"))
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env("CRASH_ISOLATED", "1")
        .envs(vars.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("unshare(1)");
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    for line in out.lines().filter_map(|line| line.split_once("= ")) {
        println!("{}", line.1);
    }
    for line in err.lines().filter(|line| line.starts_with("SKIPPED")) {
        say(line);
    }
    assert!(output.status.success(), "{name} {vars:?}:\n{out}\n{err}");
}

/// Says something on the terminal past the harness's capture.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Says that a test, or a part of it, did not run.
pub fn skip(why: &str) {
    let thread = std::thread::current();
    say(&format!(
        "SKIPPED: {}: {why}",
        thread.name().unwrap_or("a test")
    ));
}

pub fn is_long() -> bool {
    std::env::var_os("UPDATE_LONG").is_some()
}

/// Does `work` on every item, a few at a time: most of it is waiting.
pub fn side_by_side<T: Send>(items: Vec<T>, work: impl Fn(T) + Sync) {
    let items = Mutex::new(items.into_iter());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..5)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let next = items.lock().expect("no worker panics here").next();
                        let Some(item) = next else { return };
                        work(item);
                    }
                })
            })
            .collect();
        for worker in workers {
            if let Err(panic) = worker.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}
