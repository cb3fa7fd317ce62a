//! A replacement in the making: written beside the original, made like it, and given its name.
#![expect(
    clippy::disallowed_methods,
    reason = "the writing part of the module that owns every write into a home"
)]

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, RenameFlags, Uid, XattrFlags};
use rustix::io::Errno;

use super::{ACL, Original, Ownership, PREFIX, WriteError, attributes, give_to};
use crate::world::fail_point;

/// A replacement in the making; it vanishes unless it took a name.
pub(super) struct Temporary<'f> {
    folder: BorrowedFd<'f>,
    name: String,
    pub(super) file: std::fs::File,
    path: &'f Path,
    is_named: std::cell::Cell<bool>,
}

impl<'f> Temporary<'f> {
    pub(super) fn create(folder: BorrowedFd<'f>, path: &'f Path) -> Result<Self, WriteError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("{PREFIX}{}-{number}.tmp", std::process::id());
            match rustix::fs::openat(folder, &name, flags, Mode::RUSR | Mode::WUSR) {
                // A leftover of a process that had our number.
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(WriteError::from_system(path, "write beside", errno)),
                Ok(fd) => {
                    let file = std::fs::File::from(fd);
                    return Ok(Self {
                        folder,
                        name,
                        file,
                        path,
                        is_named: std::cell::Cell::new(false),
                    });
                }
            }
        }
    }

    fn system(&self, tried: &'static str) -> impl Fn(Errno) -> WriteError + '_ {
        move |errno| WriteError::from_system(self.path, tried, errno)
    }

    pub(super) fn fill(&self, bytes: &[u8]) -> Result<(), WriteError> {
        let (first, second) = bytes.split_at(bytes.len() / 2);
        fail_point("home-file.created");
        (&self.file)
            .write_all(first)
            .and_then(|()| {
                fail_point("home-file.half-written");
                (&self.file).write_all(second)
            })
            .map_err(|source| WriteError::Io {
                path: self.path.to_owned(),
                tried: "write beside",
                source,
            })
    }

    /// Takes owner, mode and attributes over.
    pub(super) fn resemble(&self, original: &Original) -> Result<(), WriteError> {
        let fd = self.file.as_fd();
        // Before the mode, because chown(2) clears the set-id bits.
        self.belong_to(original.uid, original.gid)?;
        let inherited = attributes(fd).map_err(self.system("read the attributes of"))?;
        let has_acl =
            |list: &[(OsString, Vec<u8>)]| list.iter().any(|(name, _)| name.as_bytes() == ACL);
        if has_acl(&inherited) && !has_acl(&original.attributes) {
            // The folder's default ACL gave it one that the original does not have.
            rustix::fs::fremovexattr(fd, ACL).map_err(self.system("set the permissions of"))?;
        }
        rustix::fs::fchmod(fd, Mode::from_raw_mode(original.mode))
            .map_err(self.system("set the mode of"))?;
        for attribute in &original.attributes {
            if inherited.contains(attribute) {
                continue;
            }
            let (name, value) = attribute;
            rustix::fs::fsetxattr(fd, name.as_os_str(), value, XattrFlags::empty()).map_err(
                |errno| WriteError::Refused {
                    path: self.path.to_owned(),
                    reason: format!(
                        "its attribute {} cannot be kept: {}",
                        name.to_string_lossy(),
                        io::Error::from(errno)
                    ),
                },
            )?;
        }
        Ok(())
    }

    fn belong_to(&self, uid: u32, gid: u32) -> Result<(), WriteError> {
        let fd = self.file.as_fd();
        let own = rustix::fs::fstat(fd).map_err(self.system("look at the replacement of"))?;
        if own.st_uid == uid && own.st_gid == gid {
            return Ok(());
        }
        rustix::fs::fchown(fd, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))).map_err(
            |errno| WriteError::Refused {
                path: self.path.to_owned(),
                reason: format!("its owner cannot be kept: {}", io::Error::from(errno)),
            },
        )
    }

    /// Belongs to whom the file belonged, with the permissions that it had.
    pub(super) fn admit(&self, access: &Ownership) -> Result<(), WriteError> {
        self.belong_to(access.uid, access.gid)?;
        rustix::fs::fchmod(self.file.as_fd(), Mode::from_raw_mode(access.mode))
            .map_err(self.system("set the mode of"))
    }

    /// Belongs to whom the folder belongs, if we may give it away.
    pub(super) fn belong_to_folder(&self) -> Result<(), WriteError> {
        rustix::fs::fstat(self.folder)
            .and_then(|folder| give_to(self.file.as_fd(), &folder))
            .map_err(self.system("set the owner of"))
    }

    pub(super) fn sync(&self) -> Result<(), WriteError> {
        fail_point("home-file.written");
        rustix::fs::fsync(&self.file).map_err(self.system("sync the replacement of"))?;
        fail_point("home-file.synced");
        Ok(())
    }

    /// Takes the place of what has that name.
    pub(super) fn take_name(&self, name: &OsStr) -> Result<(), WriteError> {
        rustix::fs::renameat(self.folder, &self.name, self.folder, name)
            .map_err(self.system("replace"))?;
        self.is_named.set(true);
        fail_point("home-file.renamed");
        Ok(())
    }

    /// Makes the name that it took durable.
    pub(super) fn sync_folder(&self) -> Result<(), WriteError> {
        rustix::fs::fsync(self.folder).map_err(self.system("sync the folder of"))?;
        fail_point("home-file.durable");
        Ok(())
    }

    /// Takes a name that nothing has, for good or not at all.
    pub(super) fn take_free_name(&self, name: &OsStr) -> Result<(), WriteError> {
        let taken = match rustix::fs::renameat_with(
            self.folder,
            &self.name,
            self.folder,
            name,
            RenameFlags::NOREPLACE,
        ) {
            // Not every file system knows the flag; a link never replaces anything either.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                rustix::fs::linkat(self.folder, &self.name, self.folder, name, AtFlags::empty())
            }
            found => found.inspect(|()| self.is_named.set(true)),
        };
        match taken {
            Err(Errno::EXIST) => Err(WriteError::Changed {
                path: self.path.to_owned(),
            }),
            found => found
                .and_then(|()| {
                    rustix::fs::fsync(self.folder).inspect_err(|_| {
                        // Nothing more can be done about a failure here, and the caller is told of one.
                        let _ = rustix::fs::unlinkat(self.folder, name, AtFlags::empty());
                    })
                })
                .map_err(self.system("create")),
        }
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.is_named.get() {
            // Nothing more can be done about a failure here; `sweep` finds it next time.
            let _ = rustix::fs::unlinkat(self.folder, &self.name, AtFlags::empty());
        }
    }
}
