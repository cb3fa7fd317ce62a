//! What a tree means: aliases followed, `<<` merged, duplicate keys found.
//!
//! Merging follows PyYAML: what is merged comes first, an own key wins, of several merged mappings the
//! first wins. A node budget stops files that mean far more than they say.

use std::collections::HashMap;

use super::super::{Invalid, MAX_NODES, Value};
use super::lines::Lines;
use super::tree::{Entry, Id, Kind, Tree};
use granit_parser::ScalarStyle;

/// The meaning of the whole document; an empty one is an empty mapping.
pub(super) fn resolve(tree: &Tree, lines: &Lines<'_>) -> Result<Value, Invalid> {
    let Some(root) = tree.root else {
        return Ok(Value::Map(Vec::new()));
    };
    let node = &tree.nodes[root];
    match &node.kind {
        Kind::Map(..) => Resolver {
            tree,
            lines,
            left: MAX_NODES,
        }
        .value(root),
        Kind::Scalar(ScalarStyle::Plain, Value::Null)
            if node.range.is_empty() && node.anchor == 0 =>
        {
            Ok(Value::Map(Vec::new()))
        }
        _ => Err(Invalid::new(
            lines.number(node.body),
            "the document is not a mapping",
        )),
    }
}

struct Resolver<'t> {
    tree: &'t Tree,
    lines: &'t Lines<'t>,
    left: usize,
}

impl Resolver<'_> {
    fn fail<T>(&self, at: Id, reason: impl Into<String>) -> Result<T, Invalid> {
        Err(Invalid::new(
            self.lines.number(self.tree.nodes[at].range.start),
            reason,
        ))
    }

    fn value(&mut self, id: Id) -> Result<Value, Invalid> {
        // Long text counts for more, because an alias of it means all of it again.
        let weight = match &self.tree.nodes[id].kind {
            Kind::Scalar(_, Value::Str(text)) => 1 + text.len() / 64,
            _ => 1,
        };
        let Some(left) = self.left.checked_sub(weight) else {
            return self.fail(id, "the aliases mean more than 1,000,000 values");
        };
        self.left = left;
        match &self.tree.nodes[id].kind {
            Kind::Scalar(_, value) => Ok(value.clone()),
            Kind::Merge => self.fail(id, "a bare `<<` is no value"),
            Kind::Alias(anchor) => self.value(self.tree.anchors[anchor - 1]),
            Kind::Seq(_, items) => items
                .iter()
                .map(|item| self.value(item.value))
                .collect::<Result<_, _>>()
                .map(Value::List),
            Kind::Map(_, entries) => self.map(entries).map(Value::Map),
        }
    }

    fn map(&mut self, entries: &[Entry]) -> Result<Vec<(Value, Value)>, Invalid> {
        let mut own = Vec::with_capacity(entries.len());
        let mut merged: Option<Vec<(Value, Value)>> = None;
        for entry in entries {
            if matches!(self.tree.nodes[entry.key].kind, Kind::Merge) {
                if merged.is_some() {
                    return self.fail(entry.key, "a second `<<` in one mapping");
                }
                merged = Some(self.merge(entry.value)?);
            } else {
                let key = self.value(entry.key)?;
                if matches!(key, Value::List(_) | Value::Map(_)) {
                    return self.fail(entry.key, "a key that is a list or a mapping");
                }
                own.push((key, self.value(entry.value)?));
            }
        }
        self.unique(entries, &own)?;
        Ok(match merged {
            None => own,
            Some(merged) => over(merged, own),
        })
    }

    /// What a `<<` brings in: of several, the first wins.
    fn merge(&mut self, id: Id) -> Result<Vec<(Value, Value)>, Invalid> {
        let sources: Vec<Id> = match &self.tree.nodes[self.target(id)].kind {
            Kind::Map(..) => vec![id],
            Kind::Seq(_, items) => items.iter().rev().map(|item| item.value).collect(),
            _ => return self.fail(id, "`<<` merges something that is no mapping"),
        };
        let mut all = Vec::new();
        for source in sources {
            match self.value(source)? {
                Value::Map(entries) => all = over(all, entries),
                _ => return self.fail(source, "`<<` merges something that is no mapping"),
            }
        }
        Ok(all)
    }

    /// The node behind an alias, or the node itself.
    fn target(&self, id: Id) -> Id {
        match self.tree.nodes[id].kind {
            Kind::Alias(anchor) => self.tree.anchors[anchor - 1],
            _ => id,
        }
    }

    /// Refuses two equal keys; equal is what Python holds for equal (`1`, `1.0` and `true` are).
    fn unique(&self, entries: &[Entry], own: &[(Value, Value)]) -> Result<(), Invalid> {
        let keys = entries
            .iter()
            .map(|entry| entry.key)
            .filter(|key| !matches!(self.tree.nodes[*key].kind, Kind::Merge));
        let mut seen = Keys::of(own.len());
        let mut ruamel: [Option<Id>; 2] = [None; 2];
        for ((key, _), id) in own.iter().zip(keys) {
            let twin = seen.insert(Python::from(key), id).or_else(|| {
                // To ruamel.yaml a bare `y` is a truth value, too.
                let truth = self.bare_truth(id, key)?;
                ruamel[usize::from(truth)].replace(id)
            });
            if let Some(first) = twin {
                let line = self.lines.number(self.tree.nodes[first].range.start);
                return self.fail(
                    id,
                    format!(
                        "the key `{}` is there twice, first in line {line}",
                        key.key_text()
                    ),
                );
            }
        }
        Ok(())
    }

    /// What a key is as a truth value to the most lenient loader.
    fn bare_truth(&self, id: Id, key: &Value) -> Option<bool> {
        match (key, &self.tree.nodes[id].kind) {
            (Value::Bool(value), _) => Some(*value),
            (Value::Int(value @ (0 | 1)), _) => Some(*value == 1),
            (Value::Str(text), Kind::Scalar(ScalarStyle::Plain, _)) => match text.as_str() {
                "y" | "Y" => Some(true),
                "n" | "N" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }
}

/// One mapping over another: what both have gets the upper value where the lower one stands.
fn over(mut lower: Vec<(Value, Value)>, upper: Vec<(Value, Value)>) -> Vec<(Value, Value)> {
    let places: Vec<Option<usize>> = {
        let index: HashMap<Python<'_>, usize> = lower
            .iter()
            .enumerate()
            .map(|(place, (key, _))| (Python::from(key), place))
            .collect();
        upper
            .iter()
            .map(|(key, _)| index.get(&Python::from(key)).copied())
            .collect()
    };
    for ((key, value), place) in upper.into_iter().zip(places) {
        match place {
            Some(place) => lower[place].1 = value,
            None => lower.push((key, value)),
        }
    }
    lower
}

/// The keys of a mapping, and which node each is. A few are compared sooner than hashed.
enum Keys<'v> {
    Few(Vec<(Python<'v>, Id)>),
    Many(HashMap<Python<'v>, Id>),
}

impl<'v> Keys<'v> {
    /// More keys are hashed.
    const FEW: usize = 24;

    /// Room for some keys.
    fn of(count: usize) -> Self {
        if count <= Self::FEW {
            Self::Few(Vec::with_capacity(count))
        } else {
            Self::Many(HashMap::with_capacity(count))
        }
    }

    /// Adds a key; the node of an equal one that is there already.
    fn insert(&mut self, key: Python<'v>, id: Id) -> Option<Id> {
        match self {
            Self::Few(keys) => match keys.iter().find(|(own, _)| *own == key) {
                Some((_, twin)) => Some(*twin),
                None => {
                    keys.push((key, id));
                    None
                }
            },
            Self::Many(keys) => keys.insert(key, id),
        }
    }
}

/// A key as Python compares it.
#[derive(PartialEq, Eq, Hash)]
enum Python<'v> {
    Null,
    Number(u64),
    Text(&'v str),
    Other(&'v str, &'v str),
}

impl<'v> From<&'v Value> for Python<'v> {
    fn from(value: &'v Value) -> Self {
        match value {
            Value::Bool(value) => Self::Number(f64::from(u8::from(*value)).to_bits()),
            // Exact up to 2^53; beyond that two keys are at worst held for equal and refused.
            #[expect(clippy::cast_precision_loss, reason = "equal keys stay equal")]
            Value::Int(value) => Self::Number((*value as f64).to_bits()),
            Value::Float(value) => Self::Number((*value + 0.0).to_bits()),
            Value::Str(text) => Self::Text(text),
            Value::Other(kind, text) => Self::Other(kind, text),
            Value::Null | Value::List(_) | Value::Map(_) => Self::Null,
        }
    }
}
