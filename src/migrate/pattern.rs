//! Patterns of paths: `mcp_servers.*.disabled`, where `*` is each key of a mapping or item of a list.
//!
//! It answers which paths of a value a pattern means, and whether a path that changed is one that a
//! step declared. It changes nothing.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::document::{Key, Path, Value};

/// A path with `*` for each key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pattern(Path);

/// One place that a pattern means, and the key that each `*` stood for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Where.
    pub path: Path,
    /// What each `*` stood for, in order.
    pub keys: Vec<Key>,
}

fn is_star(key: &Key) -> bool {
    matches!(key, Key::Name(name) if name == "*")
}

impl Pattern {
    /// How many `*` it has.
    #[must_use]
    pub fn stars(&self) -> usize {
        self.0.0.iter().filter(|key| is_star(key)).count()
    }

    /// The places of `value` that it means. Each `*` is a key that is there; what follows the last one
    /// need not be.
    #[must_use]
    pub fn places(&self, value: &Value) -> Vec<Place> {
        let mut found = Vec::new();
        self.collect(value, 0, Path::root(), Vec::new(), &mut found);
        found
    }

    fn collect(
        &self,
        at: &Value,
        position: usize,
        path: Path,
        keys: Vec<Key>,
        found: &mut Vec<Place>,
    ) {
        let rest = &self.0.0[position..];
        let Some(star) = rest.iter().position(is_star) else {
            let mut path = path;
            path.0.extend(rest.iter().cloned());
            found.push(Place { path, keys });
            return;
        };
        let names = Path(rest[..star].to_vec());
        let Some(container) = at.get(&names) else {
            return;
        };
        let children: Vec<(Key, &Value)> = match container {
            Value::Map(entries) => entries
                .iter()
                .map(|(key, value)| (key.to_key(), value))
                .collect(),
            Value::List(items) => items
                .iter()
                .enumerate()
                .map(|(i, item)| (Key::Index(i), item))
                .collect(),
            _ => return,
        };
        for (key, child) in children {
            let mut path = path.clone();
            path.0.extend(names.0.iter().cloned());
            path.0.push(key.clone());
            let mut keys = keys.clone();
            keys.push(key);
            self.collect(child, position + star + 1, path, keys, found);
        }
    }

    /// The path that it means where `keys` stand for its `*`.
    #[must_use]
    pub fn bind(&self, keys: &[Key]) -> Path {
        let mut keys = keys.iter();
        let steps = self.0.0.iter().map(|key| match is_star(key) {
            true => keys.next().unwrap_or(key).clone(),
            false => key.clone(),
        });
        Path(steps.collect())
    }

    /// Whether `path` is a place that it means, or lies below one.
    #[must_use]
    pub fn covers(&self, path: &Path) -> bool {
        path.0.len() >= self.0.0.len()
            && self
                .0
                .0
                .iter()
                .zip(&path.0)
                .all(|(own, key)| is_star(own) || own == key)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl From<Path> for Pattern {
    fn from(path: Path) -> Self {
        Self(path)
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Path::deserialize(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern(text.parse().unwrap())
    }

    #[test]
    fn a_star_is_each_key() {
        let value: Value =
            serde_json::from_str(r#"{"a":{"x":{"k":1},"y":{},"z":5},"l":[{"n":1}]}"#).unwrap();
        let paths = |text: &str| -> Vec<String> {
            pattern(text)
                .places(&value)
                .iter()
                .map(|place| place.path.to_string())
                .collect()
        };
        assert_eq!(paths("a.*.k"), ["a.x.k", "a.y.k", "a.z.k"]);
        assert_eq!(paths("a.x.*"), ["a.x.k"]);
        assert_eq!(paths("l.*.n"), ["l[0].n"]);
        assert_eq!(paths("none.*"), Vec::<String>::new());
        assert_eq!(paths("none.k"), ["none.k"]);
        let place = &pattern("a.*").places(&value)[1];
        assert_eq!(pattern("b.*.c").bind(&place.keys).to_string(), "b.y.c");
    }

    #[test]
    fn a_declared_path_covers_what_lies_below_it() {
        let path = |text: &str| text.parse::<Path>().unwrap();
        assert!(pattern("a.*").covers(&path("a.b")));
        assert!(pattern("a.*").covers(&path("a.b.c")));
        assert!(!pattern("a.*").covers(&path("a")));
        assert!(!pattern("a.b").covers(&path("a.c")));
    }
}
