//! Homes with known bytes before and after.
//!
//! What comes after was read by a person, and means to the peer what its own migration of the same file means
//! (`migrate` compares the two).

use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

/// The configuration of a home.
pub const FILE: &str = "config.yaml";

/// The version that the stand-ins' code expects.
pub const EXPECTED: u32 = 50;

/// Homes of one user: more than so many are spread over more users.
const A_USER: usize = 1000;

const BEFORE: &str = include_str!("home.before.yaml");
const AFTER: &str = include_str!("home.after.yaml");

/// One home of the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// From 0.
    pub number: usize,
    /// Number of its user, from 0.
    pub user: usize,
    /// Its profile.
    pub profile: String,
}

/// The configuration of a home at version 12.
pub fn before(number: usize) -> String {
    BEFORE.replace("{n}", &format!("{number:05}"))
}

/// The same at version [`EXPECTED`].
pub fn after(number: usize) -> String {
    AFTER.replace("{n}", &format!("{number:05}"))
}

/// So many homes, spread over users.
pub fn spread(count: usize) -> Vec<Home> {
    let home = |number| Home {
        number,
        user: number / A_USER,
        profile: match number % A_USER {
            0 => "default".into(),
            _ => format!("p{number:05}"),
        },
    };
    (0..count).map(home).collect()
}

/// Login name of a user by number.
pub fn login(user: usize) -> String {
    format!("ann{user}")
}

/// User id of a user by number.
pub fn uid(user: usize) -> u32 {
    3000 + u32::try_from(user).unwrap()
}

impl Home {
    /// Its folder, below the folder that holds the users' own.
    pub fn below(&self, homes: &Path) -> PathBuf {
        let root = homes.join(login(self.user)).join(".hermes");
        match self.profile.as_str() {
            "default" => root,
            profile => root.join("profiles").join(profile),
        }
    }

    /// The unit of its runtime.
    pub fn unit(&self) -> String {
        match self.profile.as_str() {
            "default" => "hermes-gateway.service".into(),
            profile => format!("hermes-gateway-{profile}.service"),
        }
    }
}

/// Gives every home the bytes that `text` says, each as its user's file.
pub fn write(homes: &[Home], below: &Path, text: fn(usize) -> String) {
    for home in homes {
        let (folder, uid) = (home.below(below), uid(home.user));
        if !folder.exists() {
            let mut missing = vec![folder.clone()];
            while let Some(up) = missing.last().unwrap().parent().filter(|up| !up.exists()) {
                missing.push(up.to_owned());
            }
            for folder in missing.iter().rev() {
                std::fs::create_dir(folder).unwrap();
                chown(folder, Some(uid), Some(uid)).unwrap();
            }
        }
        let file = folder.join(FILE);
        std::fs::write(&file, text(home.number)).unwrap();
        chown(&file, Some(uid), Some(uid)).unwrap();
    }
}

/// Which home does not hold what `text` says, if one does not.
pub fn differing(homes: &[Home], below: &Path, text: fn(usize) -> String) -> Option<PathBuf> {
    homes.iter().find_map(|home| {
        let file = home.below(below).join(FILE);
        let same = std::fs::read_to_string(&file).is_ok_and(|found| found == text(home.number));
        (!same).then_some(file)
    })
}
