//! The catalog: an application's migration steps, read from `migrations/<app>/NNNN-slug/step.toml` and
//! from the site's own step files.
//!
//! It answers which steps lie between two versions, and what each of them may touch. It knows no
//! home and applies nothing (`ops`). Steps form a chain: each says which version it starts from, so a
//! step that is missing is seen before anything is stamped. [`lint()`] says what is wrong with one.

use std::collections::BTreeSet;
use std::path::Path as FilePath;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::{Deserialize, Serialize};

pub use super::lint::{Released, lint, parse_checksums, released};
use super::pattern::Pattern;
use super::rule::{Change, RawChange};
use crate::app::{App, BUILTIN};
use crate::digest::sha256;
use crate::error::{Error, Kind, Result};

/// One versioned migration.
#[derive(Debug, Clone)]
pub struct Step {
    /// The folder's or the site file's name: `0025-model-catalog-ttl`.
    pub id: String,
    /// Files of this version and newer ones need it.
    pub from: u32,
    /// The version that a file has after it.
    pub to: u32,
    /// What it does, in one line.
    pub title: String,
    /// Why.
    pub why: String,
    /// Whether it acts on a legacy key: only such a step is applied to a file without a version.
    pub legacy: bool,
    /// What it does, in order.
    pub changes: Vec<Change>,
    /// The paths of the configuration that it may change, and everything below them.
    pub paths: Vec<Pattern>,
    /// The other files of a home that it may change.
    pub files: BTreeSet<String>,
    /// See [`Step::checksum`].
    checksum: OnceLock<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepFile {
    #[serde(default)]
    from: Option<u32>,
    to: u32,
    title: String,
    why: String,
    #[serde(default)]
    legacy: bool,
    #[serde(default)]
    paths: Vec<Pattern>,
    #[serde(default)]
    files: BTreeSet<String>,
    #[serde(default)]
    change: Vec<RawChange>,
}

/// What of a step its checksum is over.
#[derive(Serialize)]
struct Meaning<'a> {
    from: u32,
    to: u32,
    legacy: bool,
    paths: &'a [Pattern],
    files: &'a BTreeSet<String>,
    changes: &'a [Change],
}

impl Step {
    /// Reads one step; `id` is its name, `config` the file that changes are about if they name none.
    ///
    /// # Errors
    /// When the text is not a valid step: which key, and why.
    pub fn parse(id: &str, text: &str, config: &str) -> Result<Self> {
        let step = Self::read(id, text, config)?;
        let invalid = |error: serde_json::Error| format!("step {id}: {error}");
        step.canonical()
            .map_err(|error| Error::new(Kind::Input, invalid(error)))?;
        Ok(step)
    }

    /// As [`Step::parse`], for a text whose meaning is known to have a checksum.
    fn read(id: &str, text: &str, config: &str) -> Result<Self> {
        let invalid = |reason: String| Error::new(Kind::Input, format!("step {id}: {reason}"));
        let file: StepFile =
            toml_edit::de::from_str(text).map_err(|error| invalid(error.to_string()))?;
        let from = file.from.unwrap_or_else(|| file.to.saturating_sub(1));
        if from >= file.to {
            return Err(invalid(format!("from {from} is not below to {}", file.to)));
        }
        let mut paths = file.paths;
        let mut files = file.files;
        let mut changes = Vec::with_capacity(file.change.len());
        for (position, raw) in file.change.into_iter().enumerate() {
            let change = Change::read(raw, config)
                .map_err(|reason| invalid(format!("change {}: {reason}", position + 1)))?;
            for (touched, path) in change.touches() {
                if touched == config {
                    paths.extend(path.cloned());
                } else {
                    files.insert(touched.to_owned());
                }
            }
            changes.push(change);
        }
        paths.sort();
        paths.dedup();
        Ok(Self {
            id: id.to_owned(),
            from,
            to: file.to,
            title: file.title,
            why: file.why,
            legacy: file.legacy,
            checksum: OnceLock::new(),
            changes,
            paths,
            files,
        })
    }

    /// SHA-256 of its parsed meaning; a title, a comment or the order of keys does not count. Made when it is first
    /// asked for: most homes need few of all steps, or none.
    #[must_use]
    pub fn checksum(&self) -> &str {
        // Every step was read by `parse`, or is built in and compared with its released checksum by a test.
        self.checksum.get_or_init(|| {
            self.canonical()
                .map_or_else(|_| String::new(), |text| sha256(&text))
        })
    }

    /// RFC 8785: one text for one meaning, whatever the order of the keys was.
    fn canonical(&self) -> serde_json::Result<Vec<u8>> {
        serde_jcs::to_vec(&Meaning {
            from: self.from,
            to: self.to,
            legacy: self.legacy,
            paths: &self.paths,
            files: &self.files,
            changes: &self.changes,
        })
    }

    /// Everything that a run of this step may change, as a person would name it.
    #[must_use]
    pub fn touches(&self) -> Vec<String> {
        let paths = self.paths.iter().map(ToString::to_string);
        paths.chain(self.files.iter().cloned()).collect()
    }
}

/// Why the steps do not lead from one version to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The last version that can be reached.
    pub reached: u32,
    /// The version that was wanted.
    pub wanted: u32,
}

/// An application's steps, in order.
#[derive(Debug, Clone)]
pub struct Catalog {
    steps: Vec<Step>,
}

/// A catalog, and all that it was made of.
struct Shared {
    app: String,
    config: String,
    site: Vec<(String, String)>,
    catalog: Arc<Catalog>,
}

impl Catalog {
    /// Reads the built-in steps of `app` and the site's, given as names and texts.
    ///
    /// # Errors
    /// When a step is not valid, or two steps overlap.
    pub fn load(app: &App, site: &[(String, String)]) -> Result<Self> {
        let mut steps = Vec::new();
        for (id, text) in builtin_texts(&app.name) {
            steps.push(Step::read(&id, text, &app.config.file)?);
        }
        for (name, text) in site {
            let id = name.strip_suffix(".toml").unwrap_or(name);
            steps.push(Step::parse(id, text, &app.config.file)?);
        }
        Self::new(steps)
    }

    /// As [`Catalog::load`]; what was asked for last is not read again, and whoever asks meanwhile waits for it.
    ///
    /// # Errors
    /// As [`Catalog::load`].
    pub fn shared(app: &App, site: &[(String, String)]) -> Result<Arc<Self>> {
        static LAST: Mutex<Option<Shared>> = Mutex::new(None);
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = &*last
            && (last.app.as_str(), last.config.as_str()) == (&app.name, &app.config.file)
            && last.site == site
        {
            return Ok(Arc::clone(&last.catalog));
        }
        let catalog = Arc::new(Self::load(app, site)?);
        *last = Some(Shared {
            app: app.name.clone(),
            config: app.config.file.clone(),
            site: site.to_vec(),
            catalog: Arc::clone(&catalog),
        });
        Ok(catalog)
    }

    /// Reads the steps of an application from a folder with the layout of `migrations/<app>`.
    ///
    /// # Errors
    /// When the folder or a step cannot be read, or two steps overlap.
    pub fn read(app: &App, folder: &FilePath) -> Result<Self> {
        let failed = |error| Error::io(format!("cannot read {}", folder.display()), error);
        let mut steps = Vec::new();
        for folder in sorted_folders(folder).map_err(failed)? {
            let id = folder.file_name().unwrap_or_default().to_string_lossy();
            let text = std::fs::read_to_string(folder.join("step.toml")).map_err(failed)?;
            steps.push(Step::parse(&id, &text, &app.config.file)?);
        }
        Self::new(steps)
    }

    /// A catalog of these steps.
    ///
    /// # Errors
    /// When two steps overlap.
    pub fn new(mut steps: Vec<Step>) -> Result<Self> {
        steps.sort_by(|a, b| (a.to, &a.id).cmp(&(b.to, &b.id)));
        for pair in steps.windows(2) {
            if pair[1].from < pair[0].to {
                let what = format!(
                    "steps {} and {} both lead past version {}",
                    pair[0].id, pair[1].id, pair[1].from
                );
                return Err(Error::new(Kind::Input, what));
            }
        }
        Ok(Self { steps })
    }

    /// The newest version that it leads to; 0 if it has no step.
    #[must_use]
    pub fn newest(&self) -> u32 {
        self.steps.last().map_or(0, |step| step.to)
    }

    /// The oldest version that it starts from; 0 if it has no step.
    #[must_use]
    pub fn oldest(&self) -> u32 {
        self.steps.first().map_or(0, |step| step.from)
    }

    /// Every step, in order.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The steps that bring a file from version `from` (`None`: it has no version) to version `to`.
    ///
    /// # Errors
    /// When no unbroken chain of steps leads to `to`.
    pub fn range(&self, from: Option<u32>, to: u32) -> Result<Vec<&Step>, Gap> {
        let mut reached = from.unwrap_or_else(|| self.oldest());
        let mut found = Vec::new();
        for step in &self.steps {
            if step.to <= reached {
                continue;
            }
            if reached >= to {
                break;
            }
            if step.from > reached {
                return Err(Gap {
                    reached,
                    wanted: to,
                });
            }
            // Between two steps lie versions that need no change of a file.
            reached = step.to.min(to);
            if step.to <= to && (step.legacy || from.is_some()) {
                found.push(step);
            }
        }
        if reached < to {
            return Err(Gap {
                reached,
                wanted: to,
            });
        }
        Ok(found)
    }
}

/// Names and texts of the built-in steps of an application, in order.
fn builtin_texts(app: &str) -> Vec<(String, &'static str)> {
    let mut found: Vec<(String, &'static str)> = BUILTIN
        .get_dir(app)
        .map(|dir| dir.dirs())
        .into_iter()
        .flatten()
        .filter_map(|dir| {
            let file = dir.get_file(dir.path().join("step.toml"))?;
            let id = dir.path().file_name()?.to_string_lossy().into_owned();
            Some((id, file.contents_utf8()?))
        })
        .collect();
    found.sort();
    found
}

/// The folders in a folder, in order.
pub(super) fn sorted_folders(folder: &FilePath) -> std::io::Result<Vec<std::path::PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(from: u32, to: u32, legacy: bool) -> Step {
        let text =
            format!("from = {from}\nto = {to}\nlegacy = {legacy}\ntitle = \"t\"\nwhy = \"w\"\n");
        Step::parse(&format!("{to:04}-x"), &text, "c.yaml").unwrap()
    }

    fn ids(steps: &[&Step]) -> Vec<u32> {
        steps.iter().map(|step| step.to).collect()
    }

    #[test]
    fn a_missing_step_breaks_the_chain() {
        let whole =
            Catalog::new(vec![step(1, 2, true), step(2, 5, false), step(5, 6, false)]).unwrap();
        assert_eq!(
            whole.range(Some(1), 6).map(|found| ids(&found)),
            Ok(vec![2, 5, 6])
        );
        assert_eq!(
            whole.range(Some(3), 5).map(|found| ids(&found)),
            Ok(vec![5])
        );
        assert_eq!(whole.range(Some(2), 4).map(|found| ids(&found)), Ok(vec![]));
        assert_eq!(whole.range(None, 6).map(|found| ids(&found)), Ok(vec![2]));
        assert_eq!(whole.range(Some(6), 6).map(|found| ids(&found)), Ok(vec![]));
        assert_eq!(
            whole.range(Some(2), 7).err(),
            Some(Gap {
                reached: 6,
                wanted: 7
            })
        );
        let broken = Catalog::new(vec![step(1, 2, true), step(5, 6, false)]).unwrap();
        assert_eq!(
            broken.range(Some(1), 6).err(),
            Some(Gap {
                reached: 2,
                wanted: 6
            })
        );
        assert_eq!(
            broken.range(None, 6).err(),
            Some(Gap {
                reached: 2,
                wanted: 6
            })
        );
        assert_eq!(
            broken.range(Some(5), 6).map(|found| ids(&found)),
            Ok(vec![6])
        );
    }

    #[test]
    fn overlapping_steps_are_refused() {
        assert!(Catalog::new(vec![step(1, 3, false), step(2, 4, false)]).is_err());
        assert!(Catalog::new(vec![step(1, 3, false), step(2, 3, false)]).is_err());
    }

    #[test]
    fn a_checksum_is_over_the_meaning() {
        let parse = |text: &str| {
            let step = Step::parse("0002-x", text, "c.yaml").unwrap();
            step.checksum().to_owned()
        };
        let one = parse(
            "to = 2\ntitle = \"a\"\nwhy = \"b\"\n[[change]]\nop = \"remove\"\npath = \"k\"\n",
        );
        let same = parse(
            "# a comment\nwhy = \"other\"\ntitle = \"words\"\nto = 2\nfrom = 1\n[[change]]\npath = \"k\"\nop = \"remove\"\n",
        );
        let other = parse(
            "to = 2\ntitle = \"a\"\nwhy = \"b\"\n[[change]]\nop = \"remove\"\npath = \"l\"\n",
        );
        assert_eq!(one, same);
        assert_ne!(one, other);
    }

    #[test]
    fn unknown_keys_are_refused() {
        for text in [
            "to = 2\ntitle = \"a\"\nwhy = \"b\"\nx = 1\n",
            "to = 2\ntitle = \"a\"\nwhy = \"b\"\n[[change]]\nop = \"remove\"\npath = \"k\"\nx = 1\n",
            "to = 2\ntitle = \"a\"\nwhy = \"b\"\n[[change]]\nop = \"remove\"\npath = \"k\"\nvalue = 1\n",
            "to = 2\ntitle = \"a\"\nwhy = \"b\"\n[[change]]\nop = \"replace\"\npath = \"k\"\n",
            "to = 2\ntitle = \"a\"\nwhy = \"b\"\n[[change]]\nop = \"remove\"\npath = \"k\"\nwhen = { equal = 1 }\n",
            "to = 2\nfrom = 2\ntitle = \"a\"\nwhy = \"b\"\n",
        ] {
            assert!(Step::parse("0002-x", text, "c.yaml").is_err(), "{text}");
        }
    }

    #[test]
    fn the_built_in_catalog_of_every_application_loads() {
        for name in App::names() {
            let app = App::builtin(&name).unwrap();
            let catalog = Catalog::load(&app, &[]).unwrap();
            assert!(catalog.steps().iter().all(|step| step.canonical().is_ok()));
            assert!(
                catalog
                    .range(Some(catalog.oldest()), catalog.newest())
                    .is_ok()
            );
        }
    }
}
