//! A file system in memory that fails when it is told to: with EIO, as a disk that dies does.
//!
//! It is served to the kernel by a thread of the test (fuse(4)). Nothing is cached beyond what one open file needs, so
//! that each read, write, sync, rename and removal of the program under test arrives here and is counted.
//! What the kernel writes back of a shared mapping (SQLite's index of its log) has no caller who could be told,
//! and never fails.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem,
    FopenFlags, Generation, INodeNo, LockOwner, MountOption, OpenFlags, RenameFlags, ReplyAttr,
    ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs,
    ReplyWrite, Request, SessionACL, TimeOrNow, WriteFlags,
};

/// What can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    Write,
    Sync,
    Rename,
    Read,
    Unlink,
}

impl Call {
    pub const ALL: [Self; 5] = [
        Self::Write,
        Self::Sync,
        Self::Rename,
        Self::Read,
        Self::Unlink,
    ];
}

/// Which calls fail.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    pub call: Call,
    /// The first one that fails, counted from one.
    pub from: usize,
    /// Whether all after it fail as well, as on a disk that is gone.
    pub for_good: bool,
}

#[derive(Debug, Default)]
struct Faults {
    fault: Option<Fault>,
    counts: BTreeMap<Call, usize>,
}

/// A mounted file system; it goes when dropped.
pub struct Disk {
    faults: Arc<Mutex<Faults>>,
    _session: BackgroundSession,
}

impl Disk {
    /// Mounts an empty one at `path`; `None` where that is not possible.
    pub fn mount(path: &Path) -> Option<Self> {
        std::fs::create_dir_all(path).expect("room");
        let faults = Arc::<Mutex<Faults>>::default();
        let files = Files {
            faults: Arc::clone(&faults),
            tree: Mutex::new(Tree::new()),
        };
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName("failing".into()),
            MountOption::DefaultPermissions,
        ];
        config.acl = SessionACL::All;
        let session = fuser::spawn_mount(files, path, &config).ok()?;
        Some(Self {
            faults,
            _session: session,
        })
    }

    /// Lets calls fail from now on, and counts anew.
    pub fn fail(&self, fault: Fault) {
        *self.faults.lock().expect("no panic") = Faults {
            fault: Some(fault),
            counts: BTreeMap::new(),
        };
    }

    /// Lets nothing fail any more, counts anew, and gives the counts so far.
    pub fn mend(&self) -> BTreeMap<Call, usize> {
        std::mem::take(&mut *self.faults.lock().expect("no panic")).counts
    }
}

struct Files {
    faults: Arc<Mutex<Faults>>,
    tree: Mutex<Tree>,
}

struct Tree {
    nodes: BTreeMap<INodeNo, Node>,
    next: u64,
}

struct Node {
    attr: FileAttr,
    body: Body,
}

enum Body {
    File(Vec<u8>),
    Folder(BTreeMap<OsString, INodeNo>),
}

/// Attributes and names are asked for each time.
const NO_TIME: Duration = Duration::ZERO;

impl Tree {
    fn new() -> Self {
        let mut tree = Self {
            nodes: BTreeMap::new(),
            next: INodeNo::ROOT.0,
        };
        tree.make(Body::Folder(BTreeMap::new()), 0o700, (0, 0));
        tree
    }

    fn make(&mut self, body: Body, mode: u32, (uid, gid): (u32, u32)) -> FileAttr {
        let now = SystemTime::now();
        let is_folder = matches!(body, Body::Folder(_));
        let attr = FileAttr {
            ino: INodeNo(self.next),
            size: 0,
            blocks: 0,
            atime: now,
            mtime: now,
            ctime: now,
            crtime: now,
            kind: if is_folder {
                FileType::Directory
            } else {
                FileType::RegularFile
            },
            perm: u16::try_from(mode & 0o7777).expect("twelve bits"),
            nlink: 1 + u32::from(is_folder),
            uid,
            gid,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        };
        self.next += 1;
        self.nodes.insert(attr.ino, Node { attr, body });
        attr
    }

    fn folder(&mut self, ino: INodeNo) -> Result<&mut BTreeMap<OsString, INodeNo>, Errno> {
        match self.nodes.get_mut(&ino) {
            Some(Node {
                body: Body::Folder(names),
                ..
            }) => Ok(names),
            Some(_) => Err(Errno::ENOTDIR),
            None => Err(Errno::ENOENT),
        }
    }

    fn file(&mut self, ino: INodeNo) -> Result<(&mut FileAttr, &mut Vec<u8>), Errno> {
        match self.nodes.get_mut(&ino) {
            Some(Node {
                body: Body::File(bytes),
                attr,
            }) => Ok((attr, bytes)),
            Some(_) => Err(Errno::EISDIR),
            None => Err(Errno::ENOENT),
        }
    }

    fn find(&mut self, parent: INodeNo, name: &OsStr) -> Result<INodeNo, Errno> {
        self.folder(parent)?.get(name).copied().ok_or(Errno::ENOENT)
    }

    fn add(&mut self, parent: INodeNo, name: &OsStr, attr: FileAttr) -> Result<FileAttr, Errno> {
        self.folder(parent)?.insert(name.to_owned(), attr.ino);
        Ok(attr)
    }

    /// What still has it open goes on with it: nothing is ever freed.
    fn unlink(&mut self, parent: INodeNo, name: &OsStr) -> Result<(), Errno> {
        let ino = self.folder(parent)?.remove(name).ok_or(Errno::ENOENT)?;
        if let Some(node) = self.nodes.get_mut(&ino) {
            node.attr.nlink = 0;
        }
        Ok(())
    }

    fn rename(
        &mut self,
        (parent, name): (INodeNo, &OsStr),
        (new_parent, new_name): (INodeNo, &OsStr),
        keep: bool,
    ) -> Result<(), Errno> {
        let ino = self.find(parent, name)?;
        if self.find(new_parent, new_name).is_ok() {
            if keep {
                return Err(Errno::EEXIST);
            }
            self.unlink(new_parent, new_name)?;
        }
        self.folder(parent)?.remove(name);
        self.folder(new_parent)?.insert(new_name.to_owned(), ino);
        Ok(())
    }
}

impl Files {
    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().expect("no panic")
    }

    /// Counts a call, and says if it is to fail.
    fn call(&self, call: Call) -> Result<(), Errno> {
        let mut faults = self.faults.lock().expect("no panic");
        let count = faults.counts.entry(call).or_default();
        *count += 1;
        let count = *count;
        match faults.fault {
            Some(fault)
                if fault.call == call
                    && (count == fault.from || fault.for_good && count > fault.from) =>
            {
                Err(Errno::EIO)
            }
            _ => Ok(()),
        }
    }
}

fn empty(reply: ReplyEmpty, result: Result<(), Errno>) {
    match result {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

fn entry(reply: ReplyEntry, result: Result<FileAttr, Errno>) {
    match result {
        Ok(attr) => reply.entry(&NO_TIME, &attr, Generation(0)),
        Err(errno) => reply.error(errno),
    }
}

fn time(time: TimeOrNow) -> SystemTime {
    match time {
        TimeOrNow::SpecificTime(time) => time,
        TimeOrNow::Now => SystemTime::now(),
    }
}

impl Filesystem for Files {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut tree = self.tree();
        let found = tree.find(parent, name);
        entry(reply, found.map(|ino| tree.nodes[&ino].attr));
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.tree().nodes.get(&ino) {
            Some(node) => reply.attr(&NO_TIME, &node.attr),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut tree = self.tree();
        let Some(node) = tree.nodes.get_mut(&ino) else {
            return reply.error(Errno::ENOENT);
        };
        let attr = &mut node.attr;
        if let Some(mode) = mode {
            attr.perm = u16::try_from(mode & 0o7777).expect("twelve bits");
        }
        attr.uid = uid.unwrap_or(attr.uid);
        attr.gid = gid.unwrap_or(attr.gid);
        attr.atime = atime.map_or(attr.atime, time);
        attr.mtime = mtime.map_or(attr.mtime, time);
        attr.ctime = SystemTime::now();
        if let (Some(size), Body::File(bytes)) = (size, &mut node.body) {
            bytes.resize(usize::try_from(size).expect("memory"), 0);
            attr.size = size;
            attr.mtime = attr.ctime;
        }
        reply.attr(&NO_TIME, attr);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let mut tree = self.tree();
        let owner = (request.uid(), request.gid());
        let attr = tree.make(Body::Folder(BTreeMap::new()), mode & !umask, owner);
        entry(reply, tree.add(parent, name, attr));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let result = self.call(Call::Unlink);
        empty(
            reply,
            result.and_then(|()| self.tree().unlink(parent, name)),
        );
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let mut tree = self.tree();
        let result = tree.find(parent, name).and_then(|ino| {
            let is_empty = tree.folder(ino)?.is_empty();
            if is_empty {
                tree.unlink(parent, name)
            } else {
                Err(Errno::ENOTEMPTY)
            }
        });
        empty(reply, result);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let keep = flags.contains(RenameFlags::RENAME_NOREPLACE);
        let result = self.call(Call::Rename);
        let rename = |()| {
            self.tree()
                .rename((parent, name), (new_parent, new_name), keep)
        };
        empty(reply, result.and_then(rename));
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let mut tree = self.tree();
        let owner = (request.uid(), request.gid());
        let attr = tree.make(Body::File(Vec::new()), mode & !umask, owner);
        match tree.add(parent, name, attr) {
            Ok(attr) => reply.created(
                &NO_TIME,
                &attr,
                Generation(0),
                FileHandle(0),
                FopenFlags::empty(),
            ),
            Err(errno) => reply.error(errno),
        }
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::empty());
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if let Err(errno) = self.call(Call::Read) {
            return reply.error(errno);
        }
        match self.tree().file(ino) {
            Ok((_, bytes)) => {
                let start = usize::try_from(offset).expect("memory").min(bytes.len());
                let end = bytes.len().min(start + size as usize);
                reply.data(&bytes[start..end]);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        how: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        if !how.contains(WriteFlags::FUSE_WRITE_CACHE)
            && let Err(errno) = self.call(Call::Write)
        {
            return reply.error(errno);
        }
        match self.tree().file(ino) {
            Ok((attr, bytes)) => {
                let start = usize::try_from(offset).expect("memory");
                let end = start + data.len();
                bytes.resize(bytes.len().max(end), 0);
                bytes[start..end].copy_from_slice(data);
                attr.size = bytes.len() as u64;
                attr.blocks = attr.size.div_ceil(512);
                attr.mtime = SystemTime::now();
                attr.ctime = attr.mtime;
                reply.written(u32::try_from(data.len()).expect("a message"));
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        empty(reply, self.call(Call::Sync));
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        empty(reply, self.call(Call::Sync));
    }

    fn readdir(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let mut tree = self.tree();
        let names = match tree.folder(ino) {
            Ok(names) => names.clone(),
            Err(errno) => return reply.error(errno),
        };
        let own = [(OsString::from("."), ino), (OsString::from(".."), ino)];
        let all = own.into_iter().chain(names).zip(1_u64..);
        for ((name, ino), next) in all.skip(usize::try_from(offset).expect("memory")) {
            if reply.add(ino, next, tree.nodes[&ino].attr.kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        reply.statfs(1 << 20, 1 << 19, 1 << 19, 1 << 20, 1 << 19, 4096, 255, 4096);
    }
}
