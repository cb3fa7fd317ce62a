//! What the machine allows: programs that do nothing but the reads, writes and syncs that cannot be left out.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::read;
use sha2::{Digest as _, Sha256};

use crate::homes;

/// Lists `/proc` and reads three files of every process; says how many there were.
pub fn walk() -> usize {
    let folder = File::open("/proc").unwrap();
    let mut buffer = vec![0; 1 << 16];
    let mut count = 0;
    for entry in rustix::fs::Dir::read_from(&folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_str().unwrap_or_default();
        if !name.starts_with(|first: char| first.is_ascii_digit()) {
            continue;
        }
        count += 1;
        for file in ["stat", "cmdline", "cgroup"] {
            let path = format!("{name}/{file}");
            // One that ended meanwhile is not there any more.
            let Ok(file) = openat(
                &folder,
                path,
                OFlags::RDONLY | OFlags::CLOEXEC,
                Mode::empty(),
            ) else {
                continue;
            };
            while read(&file, &mut buffer).is_ok_and(|length| length > 0) {}
        }
    }
    count
}

/// The homes of a list: number and folder.
fn listed(list: &str) -> Vec<(usize, PathBuf)> {
    let text = std::fs::read_to_string(list).unwrap();
    let line = |line: &str| {
        let (number, folder) = line.split_once(' ').unwrap();
        (number.parse().unwrap(), PathBuf::from(folder))
    };
    text.lines().map(line).collect()
}

/// Walks `/proc` and reads the configuration of every home, so many times; says how many bytes there were.
pub fn look(list: &str, times: usize) -> usize {
    let homes = listed(list);
    let mut bytes = Vec::new();
    let mut total = 0;
    for _ in 0..times {
        walk();
        for (_, folder) in &homes {
            bytes.clear();
            File::open(folder.join(homes::FILE))
                .unwrap()
                .read_to_end(&mut bytes)
                .unwrap();
            total += bytes.len();
        }
    }
    total
}

/// Copies the configurations of all homes into one file, and then replaces each: temporary file, write, sync,
/// rename, sync of the folder.
pub fn write(list: &str, threads: usize) {
    let homes = listed(list);
    let state = Path::new("/var/lib/fleet-update");
    let mut copy = File::create(state.join("bare-copy")).unwrap();
    let mut bytes = Vec::new();
    for (_, folder) in &homes {
        bytes.extend(std::fs::read(folder.join(homes::FILE)).unwrap());
    }
    copy.write_all(&bytes).unwrap();
    copy.sync_all().unwrap();
    File::open(state).unwrap().sync_all().unwrap();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((number, folder)) = homes.get(next.fetch_add(1, Ordering::Relaxed)) {
                    replace(folder, homes::after(*number).as_bytes());
                }
            });
        }
    });
}

fn replace(folder: &Path, bytes: &[u8]) {
    let new = folder.join(".new");
    let mut file = File::create(&new).unwrap();
    file.write_all(bytes).unwrap();
    file.sync_all().unwrap();
    std::fs::rename(&new, folder.join(homes::FILE)).unwrap();
    File::open(folder).unwrap().sync_all().unwrap();
}

/// Reads a file and says its digest's first byte.
pub fn hash(path: &str) -> u8 {
    Sha256::digest(std::fs::read(path).unwrap())[0]
}
