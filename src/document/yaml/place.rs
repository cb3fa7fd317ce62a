//! Finds what a path names in a tree, as far as the file itself holds it.
//!
//! What comes through an alias, or is itself referred to by one, is never a place to edit: a change
//! there would show elsewhere.

use super::super::{Key, Path, Refusal, Value};
use super::lines::Lines;
use super::tree::{Entry, Id, Kind, Tree};

/// A value that the file holds itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot {
    /// The value.
    pub id: Id,
    /// The collection that holds it, and its number there.
    pub holder: Id,
    /// Which entry or item of its holder it is.
    pub position: usize,
}

/// Where a path leads.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// To a value.
    Here(Spot),
    /// To nothing: this mapping, or this null, lacks the key at that depth of the path.
    Missing(Id, usize),
    /// To nothing: the document is empty.
    Empty,
}

/// A text, its tree and the path that an edit is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Finder<'d> {
    pub text: &'d str,
    pub lines: &'d Lines<'d>,
    pub tree: &'d Tree,
}

impl Finder<'_> {
    /// The line of a byte, from 1.
    pub(super) fn line(&self, at: usize) -> usize {
        self.lines.number(at)
    }

    /// A refusal that names the line of a node.
    pub(super) fn refuse<T>(
        &self,
        id: Id,
        path: &Path,
        reason: impl Into<String>,
    ) -> Result<T, Refusal> {
        Err(Refusal::new(
            self.line(self.tree.nodes[id].range.start),
            path,
            reason,
        ))
    }

    /// Follows a path through what may be edited.
    pub(super) fn place(&self, path: &Path) -> Result<Place, Refusal> {
        let Some(root) = self
            .tree
            .root
            .filter(|root| self.tree.nodes[*root].range.end > self.tree.nodes[*root].range.start)
        else {
            return Ok(Place::Empty);
        };
        let mut spot = Spot {
            id: root,
            holder: root,
            position: 0,
        };
        for (depth, key) in path.0.iter().enumerate() {
            self.editable(spot.id, path)?;
            let (id, position) = match (&self.tree.nodes[spot.id].kind, key) {
                (Kind::Map(_, entries), key) => {
                    let found = entries.iter().position(|entry| self.names(entry, key));
                    match found {
                        Some(position) => (entries[position].value, position),
                        None => return Ok(Place::Missing(spot.id, depth)),
                    }
                }
                (Kind::Seq(_, items), Key::Index(index)) => match items.get(*index) {
                    Some(item) => (item.value, *index),
                    None => {
                        return self.refuse(
                            spot.id,
                            path,
                            format!("the list has {} items", items.len()),
                        );
                    }
                },
                (Kind::Scalar(_, Value::Null), _) => return Ok(Place::Missing(spot.id, depth)),
                (Kind::Scalar(_, value), _) => {
                    return self.refuse(
                        spot.id,
                        path,
                        format!("`{key}` would stand in {}", value.kind()),
                    );
                }
                _ => return self.refuse(spot.id, path, format!("`{key}` would stand in a list")),
            };
            spot = Spot {
                id,
                holder: spot.id,
                position,
            };
        }
        self.editable(spot.id, path)?;
        Ok(Place::Here(spot))
    }

    /// The first byte of the entry, item or value at a path, however it is held.
    pub(super) fn start_of(&self, path: &Path) -> Option<usize> {
        let mut id = self.tree.root?;
        let mut start = self.tree.nodes[id].range.start;
        for key in &path.0 {
            if let Kind::Alias(anchor) = self.tree.nodes[id].kind {
                id = self.tree.anchors[anchor - 1];
            }
            (id, start) = match (&self.tree.nodes[id].kind, key) {
                (Kind::Map(_, entries), key) => {
                    let entry = entries.iter().find(|entry| self.names(entry, key))?;
                    (entry.value, entry.start)
                }
                (Kind::Seq(_, items), Key::Index(index)) => {
                    let item = items.get(*index)?;
                    (item.value, item.start)
                }
                _ => return None,
            };
        }
        Some(start)
    }

    fn editable(&self, id: Id, path: &Path) -> Result<(), Refusal> {
        if matches!(self.tree.nodes[id].kind, Kind::Alias(_)) {
            return self.refuse(id, path, "an alias stands there");
        }
        if self.tree.is_referenced(id) {
            return self.refuse(
                id,
                path,
                "it lies in an anchored value that an alias refers to",
            );
        }
        Ok(())
    }

    /// Whether the key of an entry is what a step of a path names.
    fn names(&self, entry: &Entry, key: &Key) -> bool {
        let id = match self.tree.nodes[entry.key].kind {
            Kind::Alias(anchor) => self.tree.anchors[anchor - 1],
            _ => entry.key,
        };
        match &self.tree.nodes[id].kind {
            Kind::Scalar(_, value) => value.is_key(key),
            _ => false,
        }
    }

    /// Whether something inside a node, or the node itself, has an anchor.
    pub(super) fn holds_anchor(&self, id: Id, referenced: bool) -> bool {
        let end = self.tree.nodes[id].range.end;
        // What a node holds follows it directly.
        self.tree.nodes[id..]
            .iter()
            .take_while(|node| node.range.start <= end)
            .enumerate()
            .any(|(offset, node)| {
                node.anchor > 0
                    && node.range.end <= end
                    && (!referenced || self.tree.is_referenced(id + offset))
            })
    }

    /// Behind the anchor and tag of a node, or where the node begins.
    pub(super) fn properties_end(&self, id: Id) -> usize {
        let bytes = self.text.as_bytes();
        let node = &self.tree.nodes[id];
        let mut end = node.range.start;
        let mut at = end;
        while matches!(bytes.get(at), Some(b'&' | b'!')) && at < node.body {
            end = at
                + bytes[at..]
                    .iter()
                    .position(u8::is_ascii_whitespace)
                    .unwrap_or(bytes.len() - at);
            at = end
                + bytes[end..]
                    .iter()
                    .position(|b| !b.is_ascii_whitespace())
                    .unwrap_or(bytes.len() - end);
        }
        end
    }
}
