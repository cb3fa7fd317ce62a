//! What this program is inside a sandbox: the stand-in, the crowd of sleepers, the stop-watch, the limits.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::{limits, stand_in};

/// Where the sandboxes show this program.
pub const BENCH: &str = "/opt/bench";

/// Acts, if this program was started for something inside a sandbox.
pub fn act(arguments: &[String]) -> Option<ExitCode> {
    let (program, words) = arguments.split_first()?;
    if Path::new(program).file_name()? == "hermes" {
        return Some(stand_in::serve(words));
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["time", output, "--", command @ ..] => {
            let (took, status) = time(output, command);
            println!("{} {status}", took.as_nanos());
        }
        ["peak", output, "--", command @ ..] => println!("{}", peak(output, command)),
        ["sleepers", count, program] => sleepers(count.parse().ok()?, program),
        ["walk"] => println!("{}", limits::walk()),
        ["look", list, times] => println!("{}", limits::look(list, times.parse().ok()?)),
        ["write", list, threads] => limits::write(list, threads.parse().ok()?),
        ["hash", file] => println!("{}", limits::hash(file)),
        _ => return None,
    }
    Some(ExitCode::SUCCESS)
}

fn start(output: &str, command: &[&str]) -> Child {
    Command::new(command[0])
        .args(&command[1..])
        .stdin(Stdio::null())
        .stdout(File::create(format!("{output}.out")).unwrap())
        .stderr(File::create(format!("{output}.err")).unwrap())
        .spawn()
        .unwrap()
}

/// Runs a command and says how long it took from fork to end, and its exit status.
fn time(output: &str, command: &[&str]) -> (Duration, i32) {
    let begin = Instant::now();
    let status = start(output, command).wait().unwrap();
    (begin.elapsed(), status.code().unwrap_or(-1))
}

/// Runs a command and says how many KiB it and all its descendants had resident together, at most. What each has
/// for itself is added up; the pages of files, which are the same program's for all of them, count once.
fn peak(output: &str, command: &[&str]) -> u64 {
    let mut child = start(output, command);
    let mut highest = 0;
    while child.try_wait().unwrap().is_none() {
        let (own, files) = resident(child.id());
        highest = highest.max(own + files);
        std::thread::sleep(Duration::from_millis(1));
    }
    highest
}

/// What a process and its descendants have for themselves, and the most that one of them has of files
/// (proc_pid_status(5)).
fn resident(pid: u32) -> (u64, u64) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok())
            .unwrap_or(0)
    };
    let mut own = field("RssAnon:") + field("RssShmem:");
    let mut files = field("RssFile:");
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    for task in tasks.into_iter().flatten().flatten() {
        let list = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in list.split_whitespace().filter_map(|pid| pid.parse().ok()) {
            let (its_own, its_files) = resident(child);
            own += its_own;
            files = files.max(its_files);
        }
    }
    (own, files)
}

/// Starts so many processes that sleep, says so, and waits for the first of them.
fn sleepers(count: usize, program: &str) {
    let mut children: Vec<Child> = (0..count)
        .map(|_| Command::new(program).spawn().unwrap())
        .collect();
    println!("asleep");
    std::io::stdout().flush().unwrap();
    for child in &mut children {
        child.wait().unwrap();
    }
}
