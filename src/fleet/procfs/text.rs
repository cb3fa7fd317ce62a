//! What the texts of `/proc` mean (proc(5)). Pure: nothing is opened here, so that any text can be tried.

use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The tokens of a command line as the kernel shows it.
#[must_use]
pub fn tokens(bytes: &[u8]) -> Vec<String> {
    let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    if bytes.is_empty() {
        return Vec::new();
    }
    bytes
        .split(|byte| *byte == 0)
        .map(|token| String::from_utf8_lossy(token).into_owned())
        .collect()
}

/// Which unit a control group belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroup {
    /// User id whose manager keeps the unit; `None` is process 1.
    pub manager_uid: Option<u32>,
    /// Full unit name: a `.service`, or a `.scope`, which is a person's session.
    pub unit: String,
}

impl Cgroup {
    /// Whether the unit is a scope: processes that a person or program started and no manager restarts.
    #[must_use]
    pub fn is_scope(&self) -> bool {
        self.unit.ends_with(".scope")
    }
}

/// The innermost unit that a service manager keeps at this path, if the path shows one.
///
/// Slices hold units and units hold none, except that a user's manager, `user@UID.service`, keeps
/// units of its own below itself (systemd.slice(5)). What else lies below a unit was delegated to
/// it and may be named by whoever runs in it, so it says nothing.
#[must_use]
pub fn innermost_service(cgroup: &str) -> Option<Cgroup> {
    let mut parts = cgroup.split('/').filter(|part| !part.is_empty());
    let (unit, uid) = leaf(&mut parts)?;
    let system = Cgroup {
        manager_uid: None,
        unit,
    };
    let Some(uid) = uid else {
        return Some(system);
    };
    match leaf(&mut parts) {
        Some((unit, _)) => Some(Cgroup {
            manager_uid: Some(uid),
            unit,
        }),
        None => Some(system),
    }
}

/// The next unit on a path, and whose manager it is if it is one.
fn leaf<'a>(parts: &mut impl Iterator<Item = &'a str>) -> Option<(String, Option<u32>)> {
    for part in parts {
        if part == ".." {
            return None;
        }
        // systemd puts `_` before names that the kernel reserves (cg_escape); no unit's own starts so.
        let name = part.strip_prefix('_').unwrap_or(part);
        if name.ends_with(".service") || name.ends_with(".scope") {
            let uid = name
                .strip_prefix("user@")
                .and_then(|rest| rest.strip_suffix(".service")?.parse().ok());
            return Some((name.to_owned(), uid));
        }
    }
    None
}

/// The first value of a line of `status`.
#[must_use]
pub fn status_field<'s>(status: &'s str, name: &str) -> Option<&'s str> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .and_then(|value| value.split_ascii_whitespace().next())
}

/// The kernel appends this to the target of a file that was replaced or removed (proc(5)).
#[must_use]
pub fn strip_deleted(target: PathBuf) -> (Option<PathBuf>, bool) {
    let bytes = target.into_os_string().into_vec();
    match bytes.strip_suffix(b" (deleted)") {
        Some(path) => (
            Some(std::ffi::OsString::from_vec(path.to_vec()).into()),
            true,
        ),
        None => (Some(std::ffi::OsString::from_vec(bytes).into()), false),
    }
}

/// The variables that were asked for; the first of two equal names counts, as getenv(3) has it.
#[must_use]
pub fn variables(bytes: &[u8], wanted: &[String]) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for entry in bytes.split(|byte| *byte == 0) {
        let Some(at) = entry.iter().position(|byte| *byte == b'=') else {
            continue;
        };
        let (name, value) = (&entry[..at], &entry[at + 1..]);
        if let Some(name) = wanted.iter().find(|wanted| wanted.as_bytes() == name)
            && !found.iter().any(|(known, _)| known == name)
        {
            found.push((name.clone(), String::from_utf8_lossy(value).into_owned()));
        }
    }
    found
}

/// The path in systemd's hierarchy: the unified one; on a legacy host, which has no units there,
/// its named one.
#[must_use]
pub fn unified_path(text: &str) -> String {
    let path = |prefix: &str| text.lines().find_map(|line| line.strip_prefix(prefix));
    let named = || {
        text.lines()
            .find_map(|line| line.split_once(":name=systemd:").map(|(_, path)| path))
    };
    match path("0::") {
        Some(path) if path != "/" => path.to_owned(),
        root => named().or(root).unwrap_or_default().to_owned(),
    }
}

/// The fields of `/proc/PID/stat` that are needed (proc_pid_stat(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Whether only its exit status is left.
    pub dead: bool,
    /// Its parent's process id.
    pub parent: u32,
    /// Its session.
    pub session: u32,
    /// Its controlling terminal's device number; 0 is none.
    pub terminal: u32,
    /// Its start in clock ticks since boot.
    pub start_ticks: u64,
}

impl Stat {
    /// Reads them; `None` if the text is not what the kernel documents.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        // The name in parentheses may hold anything, parentheses and spaces too: the last one ends it.
        let fields: Vec<&str> = text[text.rfind(')')? + 1..]
            .split_ascii_whitespace()
            .collect();
        // Field 3 of the manual is the first one here.
        let field = |number: usize| fields.get(number - 3).copied();
        let threads: u32 = field(20)?.parse().ok()?;
        Some(Self {
            // A leader may be a zombie while other threads of its process go on.
            dead: matches!(field(3)?, "Z" | "X" | "x") && threads <= 1,
            parent: field(4)?.parse().ok()?,
            session: field(6)?.parse().unwrap_or(0),
            terminal: field(7)?.parse::<i32>().ok()?.cast_unsigned(),
            start_ticks: field(22)?.parse().ok()?,
        })
    }
}
