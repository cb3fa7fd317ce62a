//! Files in, files out.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use rustix::fs::XattrFlags;

use super::*;
use crate::document::MAX_BYTES;

struct Home {
    root: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("home")).unwrap();
        std::fs::create_dir(root.path().join("other")).unwrap();
        Self { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join("home").join(name)
    }

    fn folder(&self) -> Folder {
        Folder::open(&self.path("")).unwrap()
    }

    fn file(&self, name: &str, text: &str, mode: u32) {
        std::fs::write(self.path(name), text).unwrap();
        std::fs::set_permissions(self.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Names in the home and in the folder beside it.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = ["home", "other"]
            .iter()
            .flat_map(|folder| std::fs::read_dir(self.root.path().join(folder)).unwrap())
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

fn read(folder: &Folder, name: &str) -> Original {
    folder.read(Path::new(name), MAX_BYTES).unwrap().unwrap()
}

#[test]
fn a_replacement_keeps_mode_owner_and_attributes() {
    let home = Home::new();
    home.file("c", "old", 0o640);
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        std::os::unix::fs::chown(home.path("c"), Some(1001), Some(1002)).unwrap();
    }
    let fd = std::fs::File::open(home.path("c")).unwrap();
    let has_attributes = rustix::fs::fsetxattr(&fd, "user.note", b"x", XattrFlags::empty()).is_ok();
    // Version 2; owner rw, user 1003 r, group r, mask r, others nothing (acl(5), linux/posix_acl_xattr.h).
    let acl: Vec<u8> = [
        [2, 0, 0, 0].as_slice(),
        &[1, 0, 6, 0, 255, 255, 255, 255],
        &[2, 0, 4, 0, 235, 3, 0, 0],
        &[4, 0, 4, 0, 255, 255, 255, 255],
        &[16, 0, 4, 0, 255, 255, 255, 255],
        &[32, 0, 0, 0, 255, 255, 255, 255],
    ]
    .concat();
    let has_acl = rustix::fs::fsetxattr(&fd, ACL, &acl, XattrFlags::empty()).is_ok();
    let folder = home.folder();
    let original = read(&folder, "c");
    let inode = original.identity.inode;
    let attributes_before = original.attributes.clone();
    let written = folder.replace(&original, b"new").unwrap().unwrap();
    assert_eq!(std::fs::read(home.path("c")).unwrap(), b"new");
    assert_eq!(written.after.bytes, b"new");
    assert_ne!(written.after.identity.inode, inode);
    let metadata = std::fs::metadata(home.path("c")).unwrap();
    assert_eq!(metadata.mode() & 0o7777, 0o640);
    if is_root {
        assert_eq!((metadata.uid(), metadata.gid()), (1001, 1002));
    }
    assert_eq!(written.before.as_deref(), Some(b"old".as_slice()));
    assert_eq!(attributes_before, written.after.attributes);
    assert_eq!(
        has_attributes,
        written
            .after
            .attributes
            .iter()
            .any(|(name, _)| name == "user.note")
    );
    assert_eq!(
        has_acl,
        written
            .after
            .attributes
            .iter()
            .any(|(name, _)| name.as_bytes() == ACL)
    );
    assert_eq!(home.names(), ["c"]);

    folder.undo(&written).unwrap();
    assert_eq!(std::fs::read(home.path("c")).unwrap(), b"old");
    assert_eq!(
        std::fs::metadata(home.path("c")).unwrap().mode() & 0o7777,
        0o640
    );
}

#[test]
fn a_default_acl_of_the_folder_does_not_widen_a_replacement() {
    let home = Home::new();
    home.file("c", "old", 0o600);
    let acl: Vec<u8> = [
        [2, 0, 0, 0].as_slice(),
        &[1, 0, 6, 0, 255, 255, 255, 255],
        &[2, 0, 7, 0, 235, 3, 0, 0],
        &[4, 0, 4, 0, 255, 255, 255, 255],
        &[16, 0, 7, 0, 255, 255, 255, 255],
        &[32, 0, 4, 0, 255, 255, 255, 255],
    ]
    .concat();
    let fd = std::fs::File::open(home.path("")).unwrap();
    if rustix::fs::fsetxattr(&fd, "system.posix_acl_default", &acl, XattrFlags::empty()).is_err() {
        return;
    }
    let folder = home.folder();
    let written = folder
        .replace(&read(&folder, "c"), b"new")
        .unwrap()
        .unwrap();
    assert!(
        written.after.attributes.is_empty(),
        "{:?}",
        written.after.attributes
    );
    assert_eq!(written.after.mode, 0o600);
}

#[test]
fn equal_bytes_are_no_write() {
    let home = Home::new();
    home.file("c", "old", 0o600);
    let folder = home.folder();
    let before = std::fs::metadata(home.path("c")).unwrap();
    assert!(
        folder
            .replace(&read(&folder, "c"), b"old")
            .unwrap()
            .is_none()
    );
    let after = std::fs::metadata(home.path("c")).unwrap();
    assert_eq!(
        (before.ino(), before.ctime_nsec(), before.mtime_nsec()),
        (after.ino(), after.ctime_nsec(), after.mtime_nsec())
    );
}

#[test]
fn a_link_stays_and_its_target_is_replaced() {
    let home = Home::new();
    let target = home.root.path().join("other/real.yaml");
    std::fs::write(&target, "old").unwrap();
    symlink("../other/real.yaml", home.path("step")).unwrap();
    symlink("step", home.path("c")).unwrap();
    let folder = home.folder();
    let original = read(&folder, "c");
    assert_eq!(
        original.target.as_deref(),
        Some(std::fs::canonicalize(&target).unwrap().as_path())
    );
    let written = folder.replace(&original, b"new").unwrap().unwrap();
    assert_eq!(std::fs::read(&target).unwrap(), b"new");
    assert!(
        std::fs::symlink_metadata(home.path("c"))
            .unwrap()
            .is_symlink()
    );
    folder.undo(&written).unwrap();
    assert_eq!(std::fs::read(&target).unwrap(), b"old");
    assert_eq!(home.names(), ["c", "real.yaml", "step"]);

    let inside = home.folder().within(&home.path(""));
    let error = inside.read(Path::new("c"), MAX_BYTES).unwrap_err();
    assert!(error.reason.contains("out of"), "{error}");
    let around = home.folder().within(home.root.path());
    assert!(around.read(Path::new("c"), MAX_BYTES).is_ok());

    // The link leads elsewhere by now.
    let original = read(&folder, "c");
    std::fs::write(home.root.path().join("other/second"), "old").unwrap();
    std::fs::remove_file(home.path("step")).unwrap();
    symlink("../other/second", home.path("step")).unwrap();
    assert!(matches!(
        folder.replace(&original, b"new"),
        Err(WriteError::Changed { .. })
    ));
}

#[test]
fn what_somebody_changed_meanwhile_is_left_alone() {
    let home = Home::new();
    let folder = home.folder();
    let changes: [fn(&Path); 5] = [
        |path| std::fs::write(path, "nwe").unwrap(),
        |path| std::fs::remove_file(path).unwrap(),
        |path| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap(),
        |path| {
            std::fs::write(path.with_extension("x"), "old").unwrap();
            std::fs::rename(path.with_extension("x"), path).unwrap();
        },
        |path| {
            std::fs::remove_file(path).unwrap();
            symlink("/etc/passwd", path).unwrap();
        },
    ];
    for change in changes {
        let _ = std::fs::remove_file(home.path("c"));
        home.file("c", "old", 0o600);
        let original = read(&folder, "c");
        change(&home.path("c"));
        let there = std::fs::read(home.path("c")).ok();
        let error = folder.replace(&original, b"new").unwrap_err();
        assert!(
            matches!(
                error,
                WriteError::Changed { .. } | WriteError::ReadOnly { .. }
            ) || there.is_none(),
            "{error}"
        );
        assert_eq!(std::fs::read(home.path("c")).ok(), there);
        assert!(
            home.names().iter().all(|name| name == "c"),
            "{:?}",
            home.names()
        );
    }
}

#[test]
fn only_regular_files_of_a_sane_size_are_read() {
    let home = Home::new();
    let folder = home.folder();
    assert!(folder.read(Path::new("none"), MAX_BYTES).unwrap().is_none());
    assert!(
        folder
            .read(Path::new("none/none"), MAX_BYTES)
            .unwrap()
            .is_none()
    );
    std::fs::create_dir(home.path("d")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        home.path("fifo"),
        FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )
    .unwrap();
    symlink("fifo", home.path("to-fifo")).unwrap();
    symlink("/dev/zero", home.path("to-zero")).unwrap();
    symlink("nowhere", home.path("dangling")).unwrap();
    symlink("loop", home.path("loop")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(home.path("socket")).unwrap();
    std::fs::File::create(home.path("huge"))
        .unwrap()
        .set_len(10 << 30)
        .unwrap();
    for name in [
        "d",
        "fifo",
        "to-fifo",
        "to-zero",
        "dangling",
        "loop",
        "socket",
        "huge",
        "../other",
        "/etc/passwd",
    ] {
        let error = folder.read(Path::new(name), MAX_BYTES).expect_err(name);
        assert!(error.to_string().contains("cannot read"), "{error}");
    }
}

#[test]
fn a_file_with_a_second_name_is_refused() {
    let home = Home::new();
    home.file("c", "old", 0o600);
    std::fs::hard_link(home.path("c"), home.path("twin")).unwrap();
    let folder = home.folder();
    let error = folder.replace(&read(&folder, "c"), b"new").unwrap_err();
    assert!(error.to_string().contains("2 names"), "{error}");
    assert_eq!(std::fs::read(home.path("c")).unwrap(), b"old");
}

#[test]
fn a_full_disk_leaves_the_original_and_no_litter() {
    let home = Home::new();
    home.file("c", "old", 0o600);
    let folder = home.folder();
    let original = read(&folder, "c");
    let path = folder.path().join("c");
    // Writing to a descriptor that cannot be written stands for a write that fails half-way.
    let mut temporary = Temporary::create(original.holder.as_fd(), &path).unwrap();
    assert_eq!(home.names().len(), 2);
    temporary.file = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let error = temporary.fill(b"new").unwrap_err();
    assert!(
        matches!(&error, WriteError::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull),
        "{error}"
    );
    drop(temporary);
    assert_eq!(home.names(), ["c"]);
}

#[test]
fn leftovers_of_a_killed_run_are_removed() {
    let home = Home::new();
    home.file("c", "old", 0o600);
    home.file(".fleet-update-1-0.tmp", "half", 0o600);
    std::fs::create_dir(home.path(".fleet-update-folder")).unwrap();
    std::fs::write(home.root.path().join("other/t"), "x").unwrap();
    std::fs::write(home.root.path().join("other/.fleet-update-2-0.tmp"), "x").unwrap();
    symlink("../other/t", home.path("l")).unwrap();
    let folder = home.folder();
    let linked = read(&folder, "l");
    assert_eq!(folder.sweep([&linked]).unwrap(), 2);
    assert_eq!(folder.sweep([]).unwrap(), 0);
    assert_eq!(home.names(), [".fleet-update-folder", "c", "l", "t"]);
}

#[test]
fn a_file_is_created_once_and_for_its_owner_only() {
    let home = Home::new();
    let folder = home.folder();
    let written = folder.create(Path::new(".env"), b"A=1\n").unwrap();
    assert_eq!(written.after.mode, 0o600);
    assert!(matches!(
        folder.create(Path::new(".env"), b"B"),
        Err(WriteError::Changed { .. })
    ));
    assert_eq!(std::fs::read(home.path(".env")).unwrap(), b"A=1\n");
    assert!(folder.create(Path::new("none/x"), b"").is_err());
    folder.undo(&written).unwrap();
    assert!(home.names().is_empty());
}

#[test]
fn a_folder_is_made_as_open_as_the_one_above() {
    let home = Home::new();
    std::fs::set_permissions(home.path(""), std::fs::Permissions::from_mode(0o700)).unwrap();
    let folder = home.folder();
    assert!(folder.make_dir(Path::new("logs/curator")).unwrap());
    assert!(!folder.make_dir(Path::new("logs/curator")).unwrap());
    assert_eq!(
        std::fs::metadata(home.path("logs/curator")).unwrap().mode() & 0o777,
        0o700
    );
    home.file("f", "", 0o600);
    assert!(matches!(
        folder.make_dir(Path::new("f/x")),
        Err(WriteError::Refused { .. })
    ));
    symlink("../other", home.path("out")).unwrap();
    assert!(folder.make_dir(Path::new("out/x")).is_err());
    assert!(folder.make_dir(Path::new("../x")).is_err());
}

#[test]
fn what_is_not_writable_is_found_out_beforehand() {
    let home = Home::new();
    home.file("c", "old", 0o600);
    let folder = home.folder();
    assert!(folder.writable(&read(&folder, "c")).is_ok());
    assert!(folder.creatable(Path::new("logs/curator")).is_ok());
    // Root may write everywhere but here.
    let proc = Folder::open(Path::new("/proc/self"))
        .unwrap_or_else(|_| Folder::open(Path::new("/proc")).unwrap());
    assert!(proc.creatable(Path::new("x")).is_err() || rustix::process::geteuid().is_root());
}
