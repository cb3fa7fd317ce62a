//! Unit files, read without a service manager: what an enabled unit that nobody loaded would run.
//!
//! It knows the syntax of systemd.syntax(7) – sections, continuation lines, quoting, the specifiers
//! that name places – and which drop-ins belong to a unit (systemd.unit(5)). It does not judge a
//! setting, follows no dependency and is no substitute for what a manager says of a loaded unit.
//! Only `fleet/units` calls it; [`read_bounded`] also serves `fleet/selfreport`.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// No unit file or environment file is larger; more is not a configuration.
const FILE_LIMIT: u64 = 1 << 20;

/// One `Key=Value` of a unit file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The section, without brackets.
    pub section: String,
    /// The key.
    pub key: String,
    /// The value, continuation lines joined.
    pub value: String,
}

/// What the specifiers of a unit stand for (systemd.unit(5), "Specifiers").
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// The unit's full name.
    pub unit: String,
    /// The home folder of the manager's user.
    pub home: String,
    /// The name of the manager's user.
    pub user: String,
    /// The id of the manager's user.
    pub uid: u32,
}

/// Reads a regular file of at most `limit` bytes without waiting for one that is not: a FIFO or a
/// device is an error. `follow` allows a link as the last component.
///
/// # Errors
/// The system's reason, or that the file is too large or not regular.
pub fn read_bounded(path: &Path, limit: u64, follow: bool) -> std::io::Result<Vec<u8>> {
    let mut flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    if !follow {
        flags |= OFlags::NOFOLLOW;
    }
    let mut bytes = Vec::new();
    read_open(
        rustix::fs::open(path, flags, Mode::empty())?,
        limit,
        &mut bytes,
    )?;
    Ok(bytes)
}

/// Opens a folder, to read what is in it by name.
///
/// # Errors
/// The system's reason.
pub fn folder(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

/// Reads the unit file of that name in an open folder, in place of what is in `bytes`; links are followed.
///
/// # Errors
/// See [`read_bounded`].
#[expect(
    clippy::disallowed_methods,
    reason = "opens below the descriptor of a folder of unit files, for reading only"
)]
pub fn read_in(folder: BorrowedFd<'_>, name: &str, bytes: &mut Vec<u8>) -> std::io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = rustix::fs::openat(folder, name, flags, Mode::empty())?;
    read_open(file, FILE_LIMIT, bytes)
}

fn read_open(file: OwnedFd, limit: u64, bytes: &mut Vec<u8>) -> std::io::Result<()> {
    bytes.clear();
    let file = std::fs::File::from(file);
    let invalid = |what: &str| std::io::Error::new(std::io::ErrorKind::InvalidData, what);
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(invalid("not a regular file"));
    }
    // Room for all of it and one more: two reads in place of a row of growing ones.
    let room = usize::try_from(meta.len().min(limit)).unwrap_or_default() + 1;
    bytes.reserve(room);
    file.take(limit + 1).read_to_end(bytes)?;
    if bytes.len() as u64 > limit {
        return Err(invalid("larger than it may be"));
    }
    Ok(())
}

/// A unit file's bytes, links followed: a unit that is linked or enabled is one.
///
/// # Errors
/// See [`read_bounded`].
pub fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    read_bounded(path, FILE_LIMIT, true)
}

/// The entries of a unit file, in order. Lines that are no entry are left out, as systemd does.
#[must_use]
pub fn parse(text: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut section = String::new();
    let mut pending = String::new();
    for line in text.lines() {
        let trimmed = line.trim_start();
        // Comment lines inside a continued value are skipped and do not end it.
        if trimmed.starts_with(['#', ';']) || (pending.is_empty() && trimmed.is_empty()) {
            continue;
        }
        pending.push_str(if pending.is_empty() { trimmed } else { line });
        if let Some(start) = pending.strip_suffix('\\') {
            pending = format!("{start} ");
            continue;
        }
        let line = std::mem::take(&mut pending);
        let line = line.trim();
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            name.clone_into(&mut section);
        } else if let Some((key, value)) = line.split_once('=') {
            entries.push(Entry {
                section: section.clone(),
                key: key.trim_end().to_owned(),
                value: value.trim_start().to_owned(),
            });
        }
    }
    entries
}

/// Splits a value into words: quotes join and are removed, C escapes are read, `\s` is a space.
#[must_use]
pub fn words(value: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut chars = value.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let escaped = unescape(&mut chars);
                word.get_or_insert_default().push_str(&escaped);
            }
            _ if quote == Some(c) => quote = None,
            '"' | '\'' if quote.is_none() => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            _ if c.is_whitespace() && quote.is_none() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// What a backslash and the characters after it stand for.
fn unescape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    let Some(c) = chars.next() else {
        return String::from("\\");
    };
    let mut number = |digits: usize, radix: u32, first: &str| {
        let mut text = first.to_owned();
        while text.len() < digits && chars.peek().is_some_and(|c| c.is_digit(radix)) {
            text.extend(chars.next());
        }
        u32::from_str_radix(&text, radix)
            .ok()
            .and_then(char::from_u32)
            .map_or_else(|| format!("\\{c}{text}"), String::from)
    };
    match c {
        's' => " ".into(),
        'n' => "\n".into(),
        't' => "\t".into(),
        'r' => "\r".into(),
        'x' => number(2, 16, ""),
        'u' => number(4, 16, ""),
        'U' => number(8, 16, ""),
        '0'..='7' => number(3, 8, &c.to_string()),
        '"' | '\'' | '\\' => c.into(),
        other => format!("\\{other}"),
    }
}

/// The commands of an `Exec…=` value: prefixes removed, `;` as a word of its own separates them.
#[must_use]
pub fn commands(value: &str, names: &Names) -> Vec<Vec<String>> {
    let words: Vec<String> = words(value).iter().map(|word| names.expand(word)).collect();
    words
        .split(|word| word == ";")
        .filter_map(|command| {
            let (program, rest) = command.split_first()?;
            let plain = program.trim_start_matches(['@', '-', ':', '+', '!', '|']);
            let prefix = &program[..program.len() - plain.len()];
            // With `@` the second word is the name that the program is given, argv[0].
            let skipped = usize::from(prefix.contains('@'));
            let mut argv = vec![plain.to_owned()];
            argv.extend(rest.iter().skip(skipped).cloned());
            Some(argv)
        })
        .collect()
}

/// The assignments of an environment file (systemd.exec(5), `EnvironmentFile=`), in order.
#[must_use]
pub fn assignments(text: &str) -> Vec<(String, String)> {
    let mut lines: Vec<String> = Vec::new();
    let mut continued = false;
    for line in text.lines() {
        let open = line.ends_with('\\');
        let content = line.strip_suffix('\\').unwrap_or(line);
        match lines.last_mut() {
            Some(last) if continued => last.push_str(content),
            _ => lines.push(content.to_owned()),
        }
        continued = open;
    }
    lines
        .iter()
        .map(|line| line.trim())
        .filter(|line| !line.starts_with(['#', ';']))
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.trim().to_owned(), unquote(value.trim())))
        .collect()
}

/// A value without the quotes around all of it; unlike words it may hold blanks without any.
fn unquote(value: &str) -> String {
    for quote in ['"', '\''] {
        let inner = value
            .strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote));
        if let Some(inner) = inner {
            return inner.to_owned();
        }
    }
    value.to_owned()
}

impl Names {
    /// Replaces the specifiers of `text` that name places and names; others stay as written.
    #[must_use]
    pub fn expand(&self, text: &str) -> String {
        if !text.contains('%') {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            match chars.next() {
                Some('%') => out.push('%'),
                Some(c) => match self.specifier(c) {
                    Some(value) => out.push_str(&value),
                    None => out.extend(['%', c]),
                },
                None => out.push('%'),
            }
        }
        out
    }

    fn specifier(&self, c: char) -> Option<String> {
        let stem = stem(&self.unit);
        let (prefix, instance) = stem.split_once('@').unwrap_or((stem, ""));
        Some(match c {
            'n' => self.unit.clone(),
            'N' => stem.to_owned(),
            'p' => prefix.to_owned(),
            'P' => unescape_name(prefix),
            'i' => instance.to_owned(),
            'I' => unescape_name(instance),
            'j' => prefix.rsplit('-').next().unwrap_or(prefix).to_owned(),
            'h' => self.home.clone(),
            'u' => self.user.clone(),
            'U' => self.uid.to_string(),
            't' if self.uid == 0 => "/run".into(),
            't' => format!("/run/user/{}", self.uid),
            'S' if self.uid == 0 => "/var/lib".into(),
            'S' => format!("{}/.local/state", self.home),
            'E' if self.uid == 0 => "/etc".into(),
            'E' => format!("{}/.config", self.home),
            'C' if self.uid == 0 => "/var/cache".into(),
            'C' => format!("{}/.cache", self.home),
            _ => return None,
        })
    }
}

/// A unit name without its suffix.
#[must_use]
pub fn stem(unit: &str) -> &str {
    unit.rsplit_once('.').map_or(unit, |(stem, _)| stem)
}

/// The template of an instance's name: `a@.service` of `a@b.service`.
#[must_use]
pub fn template(unit: &str) -> Option<String> {
    let (prefix, rest) = unit.split_once('@')?;
    let (instance, suffix) = rest.rsplit_once('.')?;
    (!instance.is_empty()).then(|| format!("{prefix}@.{suffix}"))
}

/// Reads the escapes of a unit name: `-` is `/`, `\xHH` a byte (systemd-escape(1)).
fn unescape_name(name: &str) -> String {
    let mut out = String::new();
    let mut chars = name.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '-' => out.push('/'),
            '\\' => out.push_str(&unescape(&mut chars)),
            c => out.push(c),
        }
    }
    out
}

/// The names of the folders whose `.conf` files are drop-ins of `unit`, the general ones first.
#[must_use]
pub fn drop_in_folders(unit: &str) -> Vec<String> {
    let Some((stem, suffix)) = unit.rsplit_once('.') else {
        return Vec::new();
    };
    let mut folders = vec![format!("{suffix}.d")];
    let plain = stem.split('@').next().unwrap_or(stem);
    // `a-b.service` also has those of `a-.service`.
    for (at, _) in plain.match_indices('-') {
        folders.push(format!("{}.{suffix}.d", &plain[..=at]));
    }
    folders.extend(template(unit).map(|template| format!("{template}.d")));
    folders.push(format!("{unit}.d"));
    folders
}

/// The drop-ins of `unit` in the order in which they apply: by file name, where a folder that
/// stands earlier in `path` hides a file of the same name in a later one.
#[must_use]
pub fn drop_ins(unit: &str, path: &[PathBuf]) -> Vec<PathBuf> {
    let mut found: BTreeMap<std::ffi::OsString, PathBuf> = BTreeMap::new();
    for folder in drop_in_folders(unit) {
        let mut here: BTreeMap<std::ffi::OsString, PathBuf> = BTreeMap::new();
        for root in path {
            let Ok(listing) = std::fs::read_dir(root.join(&folder)) else {
                continue;
            };
            for file in listing.flatten() {
                if file.path().extension().is_some_and(|ext| ext == "conf") {
                    here.entry(file.file_name()).or_insert_with(|| file.path());
                }
            }
        }
        // The more specific folder comes later and wins.
        found.extend(here);
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        Names {
            unit: "agent@ops-2.service".into(),
            home: "/home/ann".into(),
            user: "ann".into(),
            uid: 1001,
        }
    }

    #[test]
    fn continued_lines_join_and_comments_inside_them_do_not_end_them() {
        let text = "[Unit]\nDescription=a\n\n[Service]\nExecStart=/bin/a \\\n# why\n  -b \\\n  c\nRestart = always\nnonsense\n";
        let entries = parse(text);
        let pairs: Vec<(&str, &str, Vec<String>)> = entries
            .iter()
            .map(|e| (e.section.as_str(), e.key.as_str(), words(&e.value)))
            .collect();
        assert_eq!(
            pairs,
            [
                ("Unit", "Description", vec!["a".to_owned()]),
                (
                    "Service",
                    "ExecStart",
                    ["/bin/a", "-b", "c"].map(String::from).to_vec()
                ),
                ("Service", "Restart", vec!["always".to_owned()]),
            ]
        );
    }

    #[test]
    fn words_are_split_as_systemd_splits_them() {
        for (value, expected) in [
            ("a  b", vec!["a", "b"]),
            ("\"a b\" 'c d'", vec!["a b", "c d"]),
            ("a\"b c\"d", vec!["ab cd"]),
            (r"a\sb \x41 \101", vec!["a b", "A", "A"]),
            ("''", vec![""]),
            (r#""A=it's""#, vec!["A=it's"]),
            (r"a\qb", vec![r"a\qb"]),
            ("", vec![]),
        ] {
            assert_eq!(words(value), expected, "{value}");
        }
    }

    #[test]
    fn commands_lose_their_prefixes_and_specifiers() {
        let found = commands("-/bin/a %i ; @%h/b name 100%% %q", &names());
        assert_eq!(
            found,
            [vec!["/bin/a", "ops-2"], vec!["/home/ann/b", "100%", "%q"]]
        );
    }

    #[test]
    fn an_environment_file_is_read_with_quotes_comments_and_continuations() {
        let text = "# c\nA=1\nB=\"two words\"\nC = x\\\ny\nnonsense\n;D=1\n";
        let found = assignments(text);
        let expected = [("A", "1"), ("B", "two words"), ("C", "xy")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(found, expected);
    }

    #[test]
    fn a_unit_has_the_drop_ins_of_its_prefixes_template_and_type() {
        assert_eq!(
            drop_in_folders("a-b@c.service"),
            [
                "service.d",
                "a-.service.d",
                "a-b@.service.d",
                "a-b@c.service.d"
            ]
        );
    }

    #[test]
    fn a_drop_in_of_an_earlier_folder_hides_one_of_the_same_name() {
        let root = tempfile::tempdir().expect("a folder");
        let (high, low) = (root.path().join("high"), root.path().join("low"));
        for (folder, file) in [
            (&high, "a.service.d/20.conf"),
            (&low, "a.service.d/20.conf"),
            (&low, "service.d/10.conf"),
            (&low, "a.service.d/note.txt"),
        ] {
            let path = folder.join(file);
            #[allow(clippy::disallowed_methods, reason = "a test prepares its files")]
            {
                std::fs::create_dir_all(path.parent().expect("has one")).expect("made");
                std::fs::write(path, "").expect("written");
            }
        }
        assert_eq!(
            drop_ins("a.service", &[high.clone(), low.clone()]),
            [
                low.join("service.d/10.conf"),
                high.join("a.service.d/20.conf")
            ]
        );
    }

    #[test]
    fn a_pipe_in_place_of_a_file_is_refused_without_waiting() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::RUSR | Mode::WUSR).expect("made");
        let error = read_bounded(&path, 10, false).expect_err("refused");
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
    }
}
