//! Which homes exist below given places, what each folder is, and what a plain start would use.
//!
//! Every folder among the profiles is a row, also one that the application would not take for a
//! profile: what is left out cannot be accounted for. Two paths are one home if they lead to one
//! folder (device and inode). Nothing depends on who asks or on a variable of theirs: places come
//! from the user database, from units, from processes, from flags and from the configuration.
//!
//! Call it as the homes' owner: links are followed with that user's rights. Nothing is created.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::installs::identifier;
use super::runtimes::{Sticky, root_above};
use super::units::files::read_bounded;
use super::{Home, HomeStatus};
use crate::app::App;
pub(super) use updater::active_updater;

mod updater;

/// More homes than this below one user's places are an attack, or a mistake to hear of.
const HOME_LIMIT: usize = 20_000;

/// The sticky profile's file is a line.
const SMALL_LIMIT: u64 = 64 << 10;

/// A place where a home may be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// Absolute path of a root home or of a profile's.
    pub path: PathBuf,
    /// Who named it: `passwd`, `unit x.service`, `process 12`, `--home`, `config`, `system`.
    pub found_by: String,
    /// How far to look from there.
    pub reach: Reach,
}

/// How far to look from a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reach {
    /// The root home that it is or belongs to, and all its profiles; its absence is normal.
    Fleet,
    /// The same, but a folder of somebody else is no home: a process or unit merely claims it.
    Claimed,
    /// The same, but a folder without a marker and without profiles is no home: others use such names.
    Likely,
    /// A profile alone, or a root home with its profiles; it must exist.
    Exact,
}

/// A root home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Its resolved path.
    pub path: PathBuf,
    /// Device and inode of its folder.
    pub file_id: (u64, u64),
    /// Which profile a plain start uses.
    pub sticky: Sticky,
}

/// What was found below some candidates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HomesFound {
    /// Homes, in the order of their paths.
    pub homes: Vec<Home>,
    /// Root homes.
    pub roots: Vec<Root>,
    /// Facts worth a line.
    pub notes: Vec<String>,
    /// What could not be looked at: these places may hold homes that are not in the list.
    pub trouble: Vec<String>,
}

impl HomesFound {
    /// The home that a path leads to.
    #[must_use]
    pub fn at(&self, path: &Path) -> Option<&Home> {
        let meta = std::fs::metadata(path).ok()?;
        let id = (meta.dev(), meta.ino());
        self.homes.iter().find(|home| home.file_id == id)
    }

    /// What a plain start in a root home uses.
    #[must_use]
    pub fn sticky(&self, root: &Path) -> Sticky {
        let id = match std::fs::metadata(root) {
            Ok(meta) => (meta.dev(), meta.ino()),
            // A root home that is yet to be made names no profile.
            Err(error) if error.kind() == ErrorKind::NotFound => return Sticky::Root,
            Err(error) => {
                return Sticky::Unknown(format!("cannot look at {}: {error}", root.display()));
            }
        };
        self.roots
            .iter()
            .find(|root| root.file_id == id)
            .map_or_else(
                || Sticky::Unknown(format!("{} was not looked at", root.display())),
                |root| root.sticky.clone(),
            )
    }
}

/// Looks below `candidates` for the homes that `uid` owns or claims.
#[must_use]
pub fn enumerate(app: &App, uid: u32, candidates: &[Candidate]) -> HomesFound {
    let mut search = Search {
        app,
        uid,
        homes: BTreeMap::new(),
        listed: BTreeSet::new(),
        updaters: BTreeMap::new(),
        parent: None,
        found: HomesFound::default(),
    };
    for candidate in candidates {
        search.look(candidate);
    }
    search.found.homes = search.homes.into_values().collect();
    search.found.homes.sort_by(|a, b| a.path.cmp(&b.path));
    search.found
}

struct Search<'a> {
    app: &'a App,
    uid: u32,
    homes: BTreeMap<(u64, u64), Home>,
    /// Root homes whose profiles were listed.
    listed: BTreeSet<(u64, u64)>,
    /// The updater that works on each root home, if one does: it is looked for once, not for each profile.
    updaters: BTreeMap<PathBuf, Option<String>>,
    /// The folder that was resolved last, and what it is: hundreds of profiles stand in one.
    parent: Option<(PathBuf, PathBuf)>,
    found: HomesFound,
}

/// How the folder of a home is entitled to be one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Title {
    /// It is a root home by its place.
    Root,
    /// It is a profile if it holds a marker.
    Profile,
    /// It is only above the profiles that were named.
    Above,
}

/// A path that can stand in a document: what is not text in it is replaced.
fn as_text(path: &Path) -> PathBuf {
    PathBuf::from(path.to_string_lossy().into_owned())
}

impl Search<'_> {
    fn look(&mut self, candidate: &Candidate) {
        let path = &candidate.path;
        if !path.is_absolute() {
            self.found.notes.push(format!(
                "{}: {} is not an absolute path",
                candidate.found_by,
                path.display()
            ));
            return;
        }
        if !self.is_there(candidate) {
            return;
        }
        match root_above(self.app, path) {
            Some(_) if candidate.reach == Reach::Exact => {
                self.add(path, candidate, Title::Profile);
                if let Some(root) = root_above(self.app, path) {
                    self.note_root(&root);
                }
            }
            Some(root) => {
                self.add(&root, candidate, Title::Above);
                self.add_profiles(&root, candidate);
                // A folder that is named as a profile's, and is not listed among them, is still one.
                self.add(path, candidate, Title::Profile);
                self.note_root(&root);
            }
            None => {
                self.add(path, candidate, Title::Root);
                self.add_profiles(path, candidate);
                self.note_root(path);
            }
        }
    }

    /// Whether a candidate is a folder that may be looked at. What is not is said where it matters.
    fn is_there(&mut self, candidate: &Candidate) -> bool {
        let shown = candidate.path.display();
        match std::fs::metadata(&candidate.path) {
            Ok(meta) if !meta.is_dir() => {
                let text = format!("{}: {shown} is not a folder", candidate.found_by);
                match candidate.reach {
                    Reach::Exact => self.found.trouble.push(text),
                    Reach::Fleet | Reach::Claimed | Reach::Likely => self.found.notes.push(text),
                }
                false
            }
            Ok(meta) if candidate.reach == Reach::Claimed && meta.uid() != self.uid => {
                let text = format!(
                    "{}: {shown} belongs to uid {}",
                    candidate.found_by,
                    meta.uid()
                );
                self.found.notes.push(text);
                false
            }
            Ok(_) => candidate.reach != Reach::Likely || self.looks_used(&candidate.path),
            Err(error)
                if error.kind() == ErrorKind::NotFound && candidate.reach != Reach::Exact =>
            {
                let dangling = std::fs::symlink_metadata(&candidate.path).is_ok();
                if dangling || candidate.reach == Reach::Claimed {
                    let text = format!("{}: {shown} does not exist", candidate.found_by);
                    self.found.notes.push(text);
                }
                false
            }
            // A file where the root home's parent would be: there is none, like for `nobody`.
            Err(error)
                if error.kind() == ErrorKind::NotADirectory && candidate.reach != Reach::Exact =>
            {
                false
            }
            Err(error) => {
                let text = format!("{}: cannot look at {shown}: {error}", candidate.found_by);
                self.found.trouble.push(text);
                false
            }
        }
    }

    fn looks_used(&self, path: &Path) -> bool {
        let home = &self.app.home;
        home.markers
            .iter()
            .chain(&home.profiles)
            .any(|name| std::fs::symlink_metadata(path.join(name)).is_ok())
    }

    fn add_profiles(&mut self, root: &Path, candidate: &Candidate) {
        if let Ok(meta) = std::fs::metadata(root) {
            let new = self.listed.insert((meta.dev(), meta.ino()));
            // Who merely claims a root adds nothing to its profiles, and there may be hundreds of both.
            if !new && candidate.reach == Reach::Claimed {
                return;
            }
        }
        let Some(profiles) = self
            .app
            .home
            .profiles
            .as_deref()
            .map(|name| root.join(name))
        else {
            return;
        };
        let entries = match std::fs::read_dir(&profiles) {
            Ok(entries) => entries,
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return;
            }
            Err(error) => {
                self.found
                    .trouble
                    .push(format!("cannot list {}: {error}", profiles.display()));
                return;
            }
        };
        let mut names = Vec::new();
        for entry in entries {
            match entry {
                Ok(entry) => {
                    let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
                    names.push((is_link, entry.file_name()));
                }
                Err(error) => {
                    self.found
                        .trouble
                        .push(format!("cannot list {}: {error}", profiles.display()));
                    break;
                }
            }
            if names.len() > HOME_LIMIT {
                let text = format!(
                    "{} holds more than {HOME_LIMIT} entries",
                    profiles.display()
                );
                self.found.trouble.push(text);
                break;
            }
        }
        // Folders before links to them: a home goes by its own name.
        names.sort_unstable();
        for (_, name) in names {
            let path = profiles.join(&name);
            // Folders and links to folders are profiles or pretend to be; plain files do not.
            match std::fs::metadata(&path) {
                Ok(meta) if !meta.is_dir() => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    self.found
                        .notes
                        .push(format!("{} leads nowhere", path.display()));
                }
                Ok(_) | Err(_) => self.add(&path, candidate, Title::Profile),
            }
        }
    }

    fn add(&mut self, path: &Path, candidate: &Candidate, title: Title) {
        let root = root_above(self.app, path)
            .filter(|_| title == Title::Profile)
            .unwrap_or_else(|| path.to_path_buf());
        let meta = match std::fs::metadata(path) {
            Ok(meta) if meta.is_dir() => meta,
            Ok(_) => return,
            Err(error) if error.kind() == ErrorKind::NotFound => return,
            Err(error) => {
                self.found
                    .trouble
                    .push(format!("cannot look at {}: {error}", path.display()));
                return;
            }
        };
        let file_id = (meta.dev(), meta.ino());
        if let Some(known) = self.homes.get_mut(&file_id) {
            // Of those who merely claim a home, the first is enough to know why it is looked at.
            let claimed = candidate.reach == Reach::Claimed;
            if !claimed && !known.found_by.contains(&candidate.found_by) {
                known.found_by.push(candidate.found_by.clone());
            }
            return;
        }
        if self.homes.len() >= HOME_LIMIT {
            let text = format!(
                "more than {HOME_LIMIT} homes: {} and others are left out",
                path.display()
            );
            if self.found.trouble.last() != Some(&text) && self.homes.len() == HOME_LIMIT {
                self.found.trouble.push(text);
            }
            return;
        }
        let resolved = self.resolved(path);
        let status = if path.to_str().is_none() && title == Title::Profile {
            // No application names one so, and no document of ours could: it is shown, and never opened.
            HomeStatus::NotAProfile
        } else if path.to_str().is_none() {
            HomeStatus::Unreadable("its path is not text".into())
        } else if meta.uid() == self.uid {
            self.status(path, title)
        } else {
            HomeStatus::Foreign(format!("the folder belongs to uid {}", meta.uid()))
        };
        let home = Home {
            id: identifier(&resolved),
            profile: self.profile_name(path, title),
            path: as_text(path),
            updater: self.updater(&root),
            root: as_text(&root),
            uid: meta.uid(),
            file_id,
            status,
            found_by: vec![candidate.found_by.clone()],
            foreign_state: None,
        };
        self.homes.insert(file_id, home);
    }

    /// The path without links.
    fn resolved(&mut self, path: &Path) -> PathBuf {
        let is_folder = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
        let (Some(parent), Some(name), true) = (path.parent(), path.file_name(), is_folder) else {
            return std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        };
        let known = self.parent.as_ref().filter(|(known, _)| known == parent);
        let real = match known {
            Some((_, real)) => real.clone(),
            None => {
                let Ok(real) = std::fs::canonicalize(parent) else {
                    return path.to_path_buf();
                };
                self.parent = Some((parent.to_path_buf(), real.clone()));
                real
            }
        };
        real.join(name)
    }

    fn updater(&mut self, root: &Path) -> Option<String> {
        if let Some(known) = self.updaters.get(root) {
            return known.clone();
        }
        let found = active_updater(self.app, root);
        self.updaters.insert(root.to_path_buf(), found.clone());
        found
    }

    fn profile_name(&self, path: &Path, title: Title) -> String {
        match title {
            Title::Root | Title::Above => self.app.home.default_profile.clone(),
            Title::Profile => path
                .file_name()
                .unwrap_or(path.as_os_str())
                .to_string_lossy()
                .into_owned(),
        }
    }

    fn status(&self, path: &Path, title: Title) -> HomeStatus {
        let marked = || {
            // A dangling link of that name counts, as it does for the application.
            self.app
                .home
                .markers
                .iter()
                .any(|marker| std::fs::symlink_metadata(path.join(marker)).is_ok())
        };
        let name = self.profile_name(path, title);
        let is_profile = match title {
            Title::Root => true,
            Title::Above => marked(),
            Title::Profile => {
                name != self.app.home.default_profile
                    && self.app.home.profile_pattern.is_match(&name)
                    && (self.app.home.markers.is_empty() || marked())
            }
        };
        match std::fs::metadata(path.join(&self.app.config.file)) {
            Err(error)
                if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                HomeStatus::Unreadable(format!(
                    "cannot look at its {}: {error}",
                    self.app.config.file
                ))
            }
            _ if !is_profile => HomeStatus::NotAProfile,
            Ok(_) => HomeStatus::Configured,
            Err(_) => HomeStatus::Unconfigured,
        }
    }

    fn note_root(&mut self, root: &Path) {
        let Ok(meta) = std::fs::metadata(root) else {
            return;
        };
        let file_id = (meta.dev(), meta.ino());
        if self
            .found
            .roots
            .iter()
            .any(|known| known.file_id == file_id)
        {
            return;
        }
        let path = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_path_buf());
        let sticky = self.sticky(&path);
        self.found.roots.push(Root {
            path,
            file_id,
            sticky,
        });
    }

    fn sticky(&self, root: &Path) -> Sticky {
        let Some(file) = self.app.home.active.as_deref().map(|name| root.join(name)) else {
            return Sticky::Root;
        };
        match read_bounded(&file, SMALL_LIMIT, true) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                let name = text.trim_start_matches('\u{feff}').trim();
                if name.is_empty() || name == self.app.home.default_profile {
                    Sticky::Root
                } else {
                    Sticky::Named(name.to_owned())
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Sticky::Root,
            Err(error) => Sticky::Unknown(format!("cannot read {}: {error}", file.display())),
        }
    }
}

#[cfg(test)]
mod tests;
