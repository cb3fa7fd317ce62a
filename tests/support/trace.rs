//! Proof that a command only looks: every system call of it and of its helpers, read from strace(1).

use super::fleet::Fleet;
use super::update::{Outcome, PROGRAM, Update};

/// What the program may always connect to: the system's bus, the runtimes' own sockets, and what the C
/// library asks on behalf of getent(1).
const SOCKETS: [&str; 4] = [
    "/dbus/system_bus_socket",
    "/gateway.sock",
    "/run/nscd/socket",
    "/run/systemd/userdb/",
];

/// Calls that change a file, a name, a lock or a process: none of them may even be tried.
const CHANGING: [&str; 44] = [
    "bind",
    "chmod",
    "chown",
    "copy_file_range",
    "creat",
    "fallocate",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "fchown",
    "fchownat",
    "flock",
    "fremovexattr",
    "fsetxattr",
    "ftruncate",
    "futimesat",
    "kill",
    "lchown",
    "link",
    "linkat",
    "lremovexattr",
    "lsetxattr",
    "mkdir",
    "mkdirat",
    "mknod",
    "mknodat",
    "mount",
    "pidfd_send_signal",
    "removexattr",
    "rename",
    "renameat",
    "renameat2",
    "rmdir",
    "rt_sigqueueinfo",
    "setxattr",
    "symlink",
    "symlinkat",
    "tkill",
    "truncate",
    "umount2",
    "unlink",
    "unlinkat",
    "utime",
    "utimensat",
];

/// Methods of a service manager that load, start, stop or change something.
const METHODS: [&str; 13] = [
    "LoadUnit",
    "StartUnit",
    "StopUnit",
    "RestartUnit",
    "TryRestartUnit",
    "ReloadUnit",
    "KillUnit",
    "StartTransientUnit",
    "ResetFailedUnit",
    "SetUnitProperties",
    "EnableUnitFiles",
    "Reexecute",
    "StartServiceByName",
];

/// Runs the program under a tracer, as root or as `user`. It must not even have tried to change a file,
/// a lock or a process, to connect to anything but `buses` and what is always fine, or to run anything but
/// itself and getent(1).
#[track_caller]
pub fn traced(
    fleet: &Fleet,
    user: Option<&'static str>,
    arguments: &[&str],
    buses: &[&str],
) -> Outcome {
    let trace = format!("/tmp/trace-of-{}-{}", user.unwrap_or("root"), arguments[0]);
    let tracer = format!("exec strace -f -y -s 4096 -o {trace} --trace=all");
    let outcome = Update::new(fleet, arguments)
        .by_maybe(user)
        .after(&tracer)
        .run();
    let bytes = fleet.sandbox.read(&trace).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    let bad: Vec<&str> = text
        .lines()
        .filter(|line| changes_something(line, buses))
        .collect();
    assert!(
        bad.is_empty(),
        "{arguments:?} tried to change something:\n{}",
        bad.join("\n")
    );
    // The filter itself, and that there was something to filter.
    assert!(text.lines().count() > 200, "{outcome}");
    assert!(text.contains("/.hermes/profiles/"), "no home was looked at");
    for line in [
        "7 openat(AT_FDCWD</>, \"/x\", O_WRONLY|O_CREAT|O_CLOEXEC, 0666) = -1 EROFS (Read-only file system)",
        "7 renameat2(3</a>, \"b\", 3</a>, \"c\", 0) = 0",
        "7 fcntl(3</x>, F_OFD_SETLK, {l_type=F_RDLCK}) = 0",
        "7 flock(3</x>, LOCK_SH|LOCK_NB <unfinished ...>",
        "7 connect(3<UNIX-STREAM:[1]>, {sa_family=AF_UNIX, sun_path=\"/run/user/2003/bus\"}, 21) = -1 ENOENT",
        "7 execve(\"/usr/bin/systemctl\", [\"systemctl\"], 0x7f /* 4 vars */) = 0",
        "7 sendmsg(3<UNIX-STREAM:[1]>, {msg_iov=[{iov_base=\"l\\1LoadUnit\\0\"}]}, 0) = 5",
    ] {
        assert!(
            changes_something(line, buses),
            "the filter lets through: {line}"
        );
    }
    outcome
}

/// Whether a line of strace(1) is a call that one who only looks must not make.
fn changes_something(line: &str, buses: &[&str]) -> bool {
    let Some((_, call)) = line.split_once(' ') else {
        return false;
    };
    let Some((name, arguments)) = call.trim_start().split_once('(') else {
        return false;
    };
    match name {
        "open" | "openat" | "openat2" => {
            [
                "O_WRONLY",
                "O_RDWR",
                "O_CREAT",
                "O_TRUNC",
                "O_APPEND",
                "O_TMPFILE",
            ]
            .iter()
            .any(|flag| arguments.contains(flag))
                && !arguments.contains("\"/dev/null\"")
        }
        "fcntl" => arguments.contains("SETLK"),
        "connect" => {
            arguments.contains("AF_INET")
                || (arguments.contains("sun_path")
                    && !SOCKETS
                        .iter()
                        .chain(buses)
                        .any(|socket| arguments.contains(socket)))
        }
        "execve" | "execveat" => {
            let program = arguments.split('"').nth(1).unwrap_or("");
            program != PROGRAM && program != "/proc/self/exe" && !program.ends_with("/getent")
        }
        "sendmsg" | "sendto" | "write" | "writev" => {
            // Method names stand in a message as they are, ended by a NUL byte.
            METHODS
                .iter()
                .any(|method| arguments.contains(&format!("{method}\\0")))
        }
        other => CHANGING.contains(&other),
    }
}
