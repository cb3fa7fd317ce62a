//! `update plan` changes nothing anywhere, and the run after it does what it said.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::fleet::{ANN, BOB, CONFIG_V12, Fleet, Gateway};
use crate::support::update::{PROGRAM, Receipt, Update};

/// What the program may connect to: the buses, the runtimes' own sockets, and what the C library asks
/// on behalf of getent(1).
const SOCKETS: [&str; 5] = [
    "/dbus/system_bus_socket",
    "/run/user/2001/bus",
    "/run/user/2002/bus",
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

#[test]
fn a_plan_writes_nothing_starts_no_manager_and_the_run_after_it_does_what_it_said() {
    let Some(fleet) = Fleet::boot() else { return };
    // A user without a manager, whose home has to be looked at, and homes of several kinds.
    fleet.sandbox.sh(Some("cyd"), "mkdir /home/cyd/.hermes");
    fleet
        .sandbox
        .write("/home/cyd/.hermes/config.yaml", CONFIG_V12, 0o600);
    fleet.set_config(Gateway::of(ANN, "ops"), "_config_version: 33\nmodel: x\n");
    fleet.set_config(Gateway::of(BOB, "lab"), "_config_version: 5\nmodel: x\n");
    assert!(!fleet.sandbox.path("/run/user/2003").exists());

    let traced = traced_plan(&fleet);
    let frozen = frozen_plan(&fleet);
    assert_eq!(
        fleet
            .sandbox
            .shell(None, "systemctl is-active user@2003.service")
            .stdout,
        b"inactive\n"
    );
    assert!(!fleet.sandbox.path("/run/user/2003").exists());
    assert!(!fleet.sandbox.path("/var/lib/fleet-update").exists());
    assert!(!fleet.sandbox.path("/run/fleet-update").exists());
    // On a root that nobody can write, what would be migrated cannot be: the plan says so, and that
    // nothing has to be restarted for it. All else is the same.
    for row in frozen.rows("homes") {
        let twin = &planned(&traced)[&format!("home {}", row["id"])];
        let expected = match twin["outcome"].as_str() {
            Some("migrated") => "read-only",
            other => other.unwrap_or_default(),
        };
        assert_eq!(row["outcome"], expected, "{row}");
        for key in ["path", "uid", "install", "from", "to", "changes"] {
            assert_eq!(row[key], twin[key], "{row}");
        }
    }
    assert_eq!(frozen.rows("homes").len(), traced.rows("homes").len());
    let acts = |row: &&Value| !row["action"].is_null();
    assert_eq!(frozen.rows("runtimes").iter().filter(acts).count(), 0);
    assert_eq!(
        Update::new(&fleet, &["plan", "--check"]).run().status,
        Some(5)
    );

    let before = fleet.lives(&Gateway::all());
    let outcome = Update::apply(&fleet).run();
    let receipt = outcome.expect(1);
    let (said, did) = (planned(&traced), planned(&receipt));
    assert_eq!(
        said.keys().collect::<Vec<_>>(),
        did.keys().collect::<Vec<_>>(),
        "{outcome}"
    );
    for (id, said) in &said {
        assert_eq!(said, &did[id], "{id} was planned otherwise\n{outcome}");
    }
    // And what it planned is what really happened.
    for gateway in Gateway::all() {
        let acted = fleet.life(gateway).invocation != before[&gateway].invocation;
        let row = traced.gateway(gateway);
        let meant = row["outcome"] == "unaccounted" && !row["action"].is_null();
        assert_eq!(acted, meant, "{row}\n{outcome}");
    }
    assert!(
        !fleet.sandbox.path("/run/user/2003").exists(),
        "the run started a manager"
    );
}

/// What a plan says will be, or a receipt says was: a row's promise by its id.
fn planned(document: &Receipt) -> BTreeMap<String, Value> {
    let keep = |row: &Value, keys: &[&str]| -> Value {
        keys.iter()
            .map(|&key| (key.to_owned(), row[key].clone()))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let homes = document.rows("homes").iter().map(|row| {
        let kept = keep(
            row,
            &["path", "uid", "install", "from", "to", "outcome", "changes"],
        );
        (format!("home {}", row["id"]), kept)
    });
    let runtimes = document.rows("runtimes").iter().map(|row| {
        let mut kept = keep(
            row,
            &["unit", "uid", "homes", "mechanism", "action", "before"],
        );
        // A row that will be acted on is not accounted for until it was.
        let outcome = match row["outcome"].as_str() {
            Some("restarted") => "unaccounted",
            other => other.unwrap_or(""),
        };
        kept["outcome"] = outcome.into();
        (format!("runtime {}", row["id"]), kept)
    });
    homes.chain(runtimes).collect()
}

/// A plan of the writable root under a tracer, which must not even have tried to change anything.
fn traced_plan(fleet: &Fleet) -> Receipt {
    let outcome = Update::new(fleet, &["plan", "--json"])
        .after("exec strace -f -y -s 4096 -o /run/trace --trace=all")
        .run();
    assert_eq!(outcome.status, Some(0), "{outcome}");
    let trace = String::from_utf8_lossy(&fleet.sandbox.read("/run/trace").unwrap()).into_owned();
    let bad: Vec<&str> = trace
        .lines()
        .filter(|line| changes_something(line))
        .collect();
    assert!(
        bad.is_empty(),
        "plan tried to change something:\n{}",
        bad.join("\n")
    );
    // The filter itself, and that there was something to filter.
    assert!(trace.lines().count() > 200);
    assert!(trace.contains("/home/ann/.hermes/profiles/work/config.yaml"));
    for line in [
        "7 openat(AT_FDCWD</>, \"/x\", O_WRONLY|O_CREAT|O_CLOEXEC, 0666) = -1 EROFS (Read-only file system)",
        "7 renameat2(3</a>, \"b\", 3</a>, \"c\", 0) = 0",
        "7 fcntl(3</x>, F_OFD_SETLK, {l_type=F_RDLCK}) = 0",
        "7 flock(3</x>, LOCK_SH|LOCK_NB <unfinished ...>",
        "7 connect(3<UNIX-STREAM:[1]>, {sa_family=AF_UNIX, sun_path=\"/run/user/2003/bus\"}, 21) = -1 ENOENT",
        "7 execve(\"/usr/bin/systemctl\", [\"systemctl\"], 0x7f /* 4 vars */) = 0",
        "7 sendmsg(3<UNIX-STREAM:[1]>, {msg_iov=[{iov_base=\"l\\1LoadUnit\\0\"}]}, 0) = 5",
    ] {
        assert!(changes_something(line), "the filter lets through: {line}");
    }
    outcome.receipt()
}

/// Whether a line of strace(1) is a call that a plan must not make.
fn changes_something(line: &str) -> bool {
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
                    && !SOCKETS.iter().any(|socket| arguments.contains(socket))
                    && !arguments.contains("/gateway.sock"))
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

/// A plan on a read-only copy of the root.
fn frozen_plan(fleet: &Fleet) -> Receipt {
    // The same mounts once more, each of them read-only, entered by chroot: the processes and the
    // managers are the ones outside of it, and nobody else notices.
    fleet.sandbox.sh(
        None,
        "mkdir /run/frozen
         mount --rbind / /run/frozen && mount --make-rprivate /run/frozen
         awk '$5 ~ \"^/run/frozen\" {print $5}' /proc/self/mountinfo | while read -r one; do
           mount -o remount,bind,ro \"$one\" || exit 1
         done
         ! touch /run/frozen/home/ann/x /run/frozen/var/x /run/frozen/run/x /run/frozen/tmp/x 2>/dev/null",
    );
    let outcome = Update::new(fleet, &["plan", "--json"])
        .after("exec chroot /run/frozen")
        .run();
    fleet.sandbox.sh(None, "umount --recursive /run/frozen");
    assert_eq!(outcome.status, Some(0), "{outcome}");
    outcome.receipt()
}
