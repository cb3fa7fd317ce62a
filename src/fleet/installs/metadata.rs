//! What an installer wrote down of a package: the `.dist-info` folder of the packaging specifications.

use std::path::{Path, PathBuf};

use super::{SMALL_LIMIT, change_of, names_in};
use crate::app::App;
use crate::fleet::units::files::read_bounded;

/// An installed distribution's metadata (the `.dist-info` folder of the packaging specifications).
pub(super) struct Metadata {
    pub(super) folder: PathBuf,
    pub(super) version: String,
}

impl Metadata {
    /// The one that was written last, should an interrupted installer have left two.
    pub(super) fn find(app: &App, site: &Path) -> Option<Self> {
        let wanted: Vec<String> = app
            .code
            .distributions
            .iter()
            .map(|name| normalized(name))
            .collect();
        names_in(site)
            .into_iter()
            .filter_map(|entry| {
                let (name, version) = entry.strip_suffix(".dist-info")?.split_once('-')?;
                wanted.contains(&normalized(name)).then(|| Self {
                    folder: site.join(&entry),
                    version: version.to_owned(),
                })
            })
            .max_by_key(|found| {
                change_of(found.folder.join("RECORD")).map(|changed| changed.at_nanos)
            })
    }

    pub(super) fn installer(&self) -> String {
        read_bounded(&self.folder.join("INSTALLER"), SMALL_LIMIT, true)
            .map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned())
            .unwrap_or_default()
    }

    /// The source folder of an editable install (`direct_url.json`, PEP 610).
    pub(super) fn source(&self) -> Option<PathBuf> {
        let bytes = read_bounded(&self.folder.join("direct_url.json"), SMALL_LIMIT, true).ok()?;
        let value: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
        value
            .pointer("/dir_info/editable")?
            .as_bool()
            .filter(|editable| *editable)?;
        let path = value.get("url")?.as_str()?.strip_prefix("file://")?;
        Some(PathBuf::from(percent_decoded(path)))
    }
}

pub(super) fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = tail
            .get(..2)
            .filter(|_| *first == b'%')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A project's name as the packaging specifications compare it.
pub(super) fn normalized(name: &str) -> String {
    name.to_lowercase()
        .split(['-', '_', '.'])
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("_")
}
