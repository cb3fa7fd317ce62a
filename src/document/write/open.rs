//! Opens folders so that no link leads anywhere else.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Opens what lies below a folder; links may lead about inside it, but not out of it.
pub(super) fn beneath(
    folder: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::ResolveFlags;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(folder, path, flags, Mode::empty(), resolve) {
            // Older than Linux 5.6, or filtered by seccomp.
            Err(Errno::NOSYS | Errno::PERM) => {}
            found => return found,
        }
    }
    walk(
        folder.try_clone_to_owned().map_err(|_| Errno::MFILE)?,
        path,
        flags,
    )
}

/// Opens a folder by an absolute path that holds no link.
pub(super) fn without_links(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::ResolveFlags;
        match rustix::fs::openat2(
            rustix::fs::CWD,
            path,
            flags,
            Mode::empty(),
            ResolveFlags::NO_SYMLINKS,
        ) {
            Err(Errno::NOSYS | Errno::PERM) => {}
            found => return found,
        }
    }
    let root = rustix::fs::open("/", flags, Mode::empty())?;
    walk(root, path, flags)
}

/// Goes down part by part and follows no link at all.
fn walk(from: OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let step = flags | OFlags::NOFOLLOW;
    let mut at = from;
    for part in path.components() {
        at = match part {
            Component::RootDir => continue,
            Component::CurDir => rustix::fs::openat(at.as_fd(), ".", step, Mode::empty())?,
            Component::Normal(name) => rustix::fs::openat(at.as_fd(), name, step, Mode::empty())?,
            Component::ParentDir | Component::Prefix(_) => return Err(Errno::XDEV),
        };
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walk_follows_no_link_and_goes_nowhere_up() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("a/b")).unwrap();
        std::os::unix::fs::symlink("a", folder.path().join("l")).unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = || rustix::fs::open(folder.path(), flags, Mode::empty()).unwrap();
        assert!(walk(open(), Path::new("a/b"), flags).is_ok());
        assert!(walk(open(), Path::new("l/b"), flags).is_err());
        assert_eq!(
            walk(open(), Path::new("a/.."), flags).unwrap_err(),
            Errno::XDEV
        );
        assert!(beneath(open().as_fd(), Path::new("l/b"), flags).is_ok());
        assert!(beneath(open().as_fd(), Path::new(".."), flags).is_err());
    }
}
