//! What a helper inherits, may and keeps; and which files are made on the way.
//!
//! What is promised of what runs for a profile, and the tests that show it:
//!
//! | promise | tests |
//! |---|---|
//! | a helper's environment: the owner's `HOME`, a fixed `PATH` and `LANG`, nothing inherited | here: `a_helper_has_…`, every helper that is seen |
//! | … the ids of tenant, cell and profile, and the application's variable, where all homes of the helper share them | here: `a_helper_has_…`; `helper/subject.rs` |
//! | a command on a verdict: an exact environment | `tests/metrics.rs`: `under_systemd_a_run_tells_…` |
//! | a command of a mechanism: the row's environment and no more | `tests/restart_signal.rs`: `a_command_gets_the_environment_of_its_row_…` |
//! | a respawn: the old life's environment, and it is shown nowhere | `tests/matrix/respawn.rs`: `what_is_respawned_…` |
//! | the root of a cell is absolute and plain, and one tenant's | `tests/state/cells.rs`: `a_cell_needs_…` |
//! | a folder of ours is 0700, also with `umask 000`; made twice, what is inside stays | here: `a_helper_has_…`; `tests/state/audit.rs`: `the_database_is_0600_…`; `tests/state/place.rs`: every store that is opened again |
//! | a home that is a link to another's, or a folder of profiles that is: not followed out of its owner's tree | `attacks.rs`; `races.rs`, while it is swapped |
//! | no link on the way to a home, and no `..`, is walked | `document/write/open.rs`: `the_walk_follows_no_link_…` |
//! | a link inside that leads out is refused, one that stays inside is kept | `migrate/home/tests.rs`: `a_link_is_kept_…`; `attacks.rs`: files of every kind |
//! | another profile's root is out of scope | `tests/state/scopes.rs`: `access_to_any_other_scope_…`; `attacks.rs`: `profile is a link to another's profile` |

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sha2::Digest as _;

use crate::machine::{Machine, VICTIM_HOMES};
use crate::support::fleet::EXPECTED;
use crate::support::update::Update;
use crate::support::{long, say, wait_for};

/// What `/proc` shows of one helper.
struct Seen {
    fds: Vec<String>,
    environ: String,
    status: String,
    limits: String,
    session: u32,
    pid: u32,
}

/// Looks for the helper that holds the locks of vic's homes while gateways restart.
fn look(machine: &Machine) -> Option<Seen> {
    let sandbox = &machine.fleet.sandbox;
    let found = sandbox
        .processes()
        .into_iter()
        .find(|one| one.command.contains("/exe helper hold-homes 2900 "))?;
    let folder = sandbox.path(&format!("/proc/{}", found.pid));
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    let stat = text("stat")?;
    let session = stat.rsplit_once(") ")?.1.split(' ').nth(3)?.parse().ok()?;
    let mut fds: Vec<String> = std::fs::read_dir(folder.join("fd"))
        .ok()?
        .flatten()
        .filter_map(|entry| {
            let target = std::fs::read_link(entry.path()).ok()?;
            Some(format!(
                "{} {}",
                entry.file_name().display(),
                target.display()
            ))
        })
        .collect();
    fds.sort();
    let seen = Seen {
        fds,
        environ: text("environ")?.replace('\0', "\n"),
        status: text("status")?,
        limits: text("limits")?,
        session,
        pid: found.pid,
    };
    // It holds both locks now, and nothing that it needed for taking them.
    (seen
        .fds
        .iter()
        .filter(|fd| fd.contains("/home/vic/"))
        .count()
        == VICTIM_HOMES.len()
        && seen.fds.len() < 8)
        .then_some(seen)
}

/// The environments of the helpers that live now, by the task and the user that they were started for.
fn environments(machine: &Machine) -> Vec<((String, u32), BTreeSet<String>)> {
    let sandbox = &machine.fleet.sandbox;
    let helpers = sandbox.processes().into_iter().filter_map(|one| {
        let (_, words) = one.command.split_once("/exe helper ")?;
        let mut words = words.split(' ');
        let task = (words.next()?.to_owned(), words.next()?.parse().ok()?);
        let environ = sandbox.path(&format!("/proc/{}/environ", one.pid));
        let text = std::fs::read_to_string(environ).ok()?;
        let lines: BTreeSet<String> = text.split_terminator('\0').map(str::to_owned).collect();
        // One that ended meanwhile has none (proc_pid_environ(5)).
        (!lines.is_empty()).then_some((task, lines))
    });
    helpers.collect()
}

/// What every helper has in its environment, and what this one has besides.
fn environment_of(user: &str, besides: &[&str]) -> BTreeSet<String> {
    let home = format!("HOME=/home/{user}");
    [&home, "LANG=C.UTF-8", "PATH=/usr/bin:/bin"]
        .iter()
        .chain(besides)
        .map(|line| (*line).to_owned())
        .collect()
}

#[test]
fn a_helper_has_its_user_s_ids_an_exact_environment_limits_and_no_descriptor_of_its_parent() {
    let Some(machine) = Machine::boot() else {
        return;
    };
    let solo = machine.mal("solo");
    machine.sh("update cell create acme blue /home/vic/.hermes");
    machine.before();
    let to = EXPECTED.to_string();
    let mut running = Update::new(&machine.fleet, &["apply", "--json", "--to", &to])
        .after(
            "umask 000; ulimit -c unlimited; export SECRET=qzjx LD_LIBRARY_PATH=/home/vic HERMES_HOME=/root \
             XDG_RUNTIME_DIR=/run/user/2001; cd /root; exec 7</etc/shadow 8<>/root/private.yaml 9>/run/nine; exec",
        )
        .start();
    let mut environs: BTreeMap<(String, u32), BTreeSet<String>> = BTreeMap::new();
    let seen = wait_for("a helper holds the locks", Duration::from_secs(60), || {
        environs.extend(environments(&machine));
        let holds = |uid: u32| environs.contains_key(&("hold-homes".to_owned(), uid));
        look(&machine)
            .filter(|_| holds(2900) && holds(solo.uid))
            .map(Some)
            .or_else(|| running.ended().then_some(None))
    });
    let outcome = running.finish();
    let seen = seen.unwrap_or_else(|| panic!("no helper was seen: {outcome}"));
    let receipt = outcome.expect(0);
    assert_eq!(receipt.home("/home/vic/.hermes")["outcome"], "migrated");

    // The run was started with `umask 000`: what it keeps is root's alone all the same.
    let open = machine.sh("find /var/lib/fleet-update /run/fleet-update -perm /077 ! -type l");
    assert_eq!(open, "", "others may read what a run keeps");

    let field = |name: &str| {
        seen.status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"))
            .unwrap_or("")
            .trim()
            .to_owned()
    };
    assert_eq!(field("Uid"), "2900\t2900\t2900\t2900");
    assert_eq!(field("Gid"), "2900\t2900\t2900\t2900");
    assert_eq!(field("Groups"), "2900");
    assert_eq!(field("NoNewPrivs"), "1");
    assert_eq!(field("Umask"), "0077");
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(field(set), "0000000000000000", "{set}");
    }
    assert_eq!(seen.session, seen.pid, "it shares root's session");
    // Two homes of a cell that somebody made, and one of a user of whom nobody said anything.
    let of_cell = ["FLEET_UPDATE_TENANT=acme", "FLEET_UPDATE_CELL=blue"];
    let root = sha2::Sha256::digest("/home/solo/.hermes");
    let root: String = root.iter().map(|byte| format!("{byte:02x}")).collect();
    let of_home = [
        &format!("FLEET_UPDATE_TENANT=uid-{}", solo.uid),
        &format!("FLEET_UPDATE_CELL=root-{}", &root[..32]),
        "FLEET_UPDATE_PROFILE=default",
        "HERMES_HOME=/home/solo/.hermes",
    ];
    let held: BTreeSet<String> = seen.environ.lines().map(str::to_owned).collect();
    assert_eq!(held, environment_of("vic", &of_cell));
    for ((verb, uid), environ) in &environs {
        let user = ["ann", "bob", "vic", "solo"]
            .into_iter()
            .find(|user| environ.contains(&format!("HOME=/home/{user}")))
            .unwrap_or_else(|| panic!("{verb} {uid}: {environ:?}"));
        let acts = ["hold-homes", "fetch", "commit"].contains(&verb.as_str());
        match user {
            "vic" if acts => assert_eq!(*environ, environment_of(user, &of_cell), "{verb}"),
            "solo" if acts => assert_eq!(*environ, environment_of(user, &of_home), "{verb}"),
            // Several homes of one root: no profile is theirs.
            _ if acts => assert!(
                environ.contains(&format!("FLEET_UPDATE_TENANT=uid-{uid}"))
                    && environ.len() == 5
                    && environment_of(user, &[]).is_subset(environ),
                "{verb}: {environ:?}"
            ),
            // One that looks, or asks a manager, acts for no profile.
            _ => assert_eq!(*environ, environment_of(user, &[]), "{verb}"),
        }
    }
    let verbs: BTreeSet<&str> = environs.keys().map(|(verb, _)| verb.as_str()).collect();
    say(&format!(
        "  environments of {} helpers were read: {}",
        environs.len(),
        Vec::from_iter(verbs).join(", ")
    ));
    let limit = |name: &str| {
        let line = seen.limits.lines().find(|line| line.starts_with(name));
        let words: Vec<&str> = line
            .unwrap_or("")
            .strip_prefix(name)
            .unwrap_or("")
            .split_whitespace()
            .collect();
        (words[0].to_owned(), words[1].to_owned())
    };
    let both = |value: &str| (value.to_owned(), value.to_owned());
    assert_eq!(limit("Max address space"), both("2147483648"));
    // It has room for the homes that it locks, and no more than that.
    let (now, most) = limit("Max open files");
    assert!(
        now.parse::<u32>()
            .is_ok_and(|now| (256..300).contains(&now)),
        "{now}"
    );
    assert!(
        most.parse::<u32>().is_ok_and(|most| most <= 65_536),
        "{most}"
    );
    assert_eq!(limit("Max core file size"), both("0"));
    // Its channel, two times nothing, and the folders that it locks.
    for fd in &seen.fds {
        let (number, target) = fd.split_once(' ').unwrap();
        let is_own = match number {
            "0" => target.starts_with("socket:"),
            "1" | "2" => target == "/dev/null",
            _ => VICTIM_HOMES.contains(&target) || target.starts_with("socket:"),
        };
        assert!(is_own, "{fd} of {:?}", seen.fds);
    }
    say(&format!(
        "  a helper's descriptors: {}",
        seen.fds.join(", ")
    ));
}

#[test]
fn runs_of_root_leave_nothing_of_root_s_in_a_home_and_nothing_in_a_temporary_folder() {
    let Some(machine) = Machine::boot() else {
        return;
    };
    let sandbox = &machine.fleet.sandbox;
    // What must be kept of a file: mode, owner, group, access control list and attributes.
    machine.sh("groupadd -g 2950 crew; usermod -aG crew vic");
    let rounds = if long() { 100 } else { 5 };
    for _ in 0..rounds {
        machine.before();
        machine.sh(
            "chown vic:crew /home/vic/.hermes/config.yaml; chmod 640 /home/vic/.hermes/config.yaml",
        );
        let file = sandbox.path("/home/vic/.hermes/config.yaml");
        let acl = acl();
        let flags = rustix::fs::XattrFlags::empty();
        let set = |name: &str, value: &[u8]| rustix::fs::setxattr(&file, name, value, flags);
        let has_acl = set("system.posix_acl_access", &acl).is_ok();
        let has_user = set("user.note", b"kept").is_ok();
        let mode = std::fs::metadata(&file).unwrap();
        let owned = sandbox.owned_by_root("/home");
        let outcome = machine.run(&["--restart", "never"]);
        let receipt = outcome.receipt();
        assert_eq!(
            receipt.home("/home/vic/.hermes")["outcome"],
            "migrated",
            "{outcome}"
        );
        assert_eq!(sandbox.owned_by_root("/home"), owned);
        use std::os::unix::fs::MetadataExt as _;
        let now = std::fs::metadata(&file).unwrap();
        assert_ne!(now.ino(), mode.ino(), "it was replaced");
        assert_eq!(
            (now.mode(), now.uid(), now.gid()),
            (mode.mode(), 2900, 2950)
        );
        let mut value = [0_u8; 256];
        if has_acl {
            let length = rustix::fs::getxattr(&file, "system.posix_acl_access", &mut value[..]);
            assert_eq!(&value[..length.unwrap()], acl);
        } else {
            crate::support::say("SKIPPED: access control lists: this file system has none");
        }
        if has_user {
            let length = rustix::fs::getxattr(&file, "user.note", &mut value[..]);
            assert_eq!(&value[..length.unwrap()], b"kept");
        } else {
            crate::support::say("SKIPPED: attributes: this file system has none");
        }
    }
    traced(&machine);
}

/// `user::rw-, user:2001:r--, group::r--, mask::r--, other::---` as the kernel keeps it (acl(5)).
fn acl() -> Vec<u8> {
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in [
        (0x01_u16, 6_u16, u32::MAX),
        (0x02, 4, 2001),
        (0x04, 4, u32::MAX),
        (0x10, 4, u32::MAX),
        (0x20, 0, u32::MAX),
    ] {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(rights.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

/// Every file that a run makes, by the kernel's word.
fn traced(machine: &Machine) {
    machine.before();
    machine.sh(
        "strace -f -qq -y -s 400 -e trace=openat,openat2,open,creat,mkdir,mkdirat,mknod,mknodat,symlinkat -o /run/trace \
         /usr/bin/update apply --restart never --to 33 >/dev/null 2>&1 || :",
    );
    let trace = machine.sh("cat /run/trace");
    assert!(trace.lines().count() > 1000, "nothing was traced");
    let mut temporary = 0;
    for line in trace.lines() {
        let makes = line.contains("O_CREAT")
            || ["mkdir", "mknod", "symlink", "creat("]
                .iter()
                .any(|call| line.contains(call));
        if !makes {
            continue;
        }
        let failed = line.contains(" = -1 ");
        assert!(
            failed
                || !["\"/tmp", "\"/var/tmp", "\"/dev/shm"]
                    .iter()
                    .any(|one| line.contains(one)),
            "{line}"
        );
        if line.contains(".fleet-update-") {
            temporary += 1;
            for word in ["O_EXCL", "O_NOFOLLOW", ", 0600"] {
                assert!(line.contains(word), "{line}");
            }
        }
    }
    assert!(temporary >= VICTIM_HOMES.len(), "no replacement was seen");
    // The folders of a home are opened so that no link leads out.
    let beneath = trace
        .lines()
        .filter(|line| line.contains("RESOLVE_BENEATH"))
        .count();
    let without = trace
        .lines()
        .filter(|line| line.contains("RESOLVE_NO_SYMLINKS"))
        .count();
    assert!(beneath > 0, "nothing was opened beneath a folder");
    say(&format!(
        "  {temporary} replacements, each 0600 from birth; {beneath} opened beneath their folder, {without} without links"
    ));
}
