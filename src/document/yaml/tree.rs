//! Where everything stands in a YAML text: nodes with byte ranges, and the comments.
//!
//! Built from the events of a parser that follows YAML 1.2, after [`super::preflight`] refused the bytes
//! on which YAML 1.1 loaders differ from it. Knows what a mapping is, but not what its values mean
//! after merging (`resolve`), and changes nothing.

mod build;

use std::ops::Range;

use granit_parser::ScalarStyle;

use super::super::{Key, Path, Scalar, Value};

pub(super) use build::build;

/// The number of a node in its tree.
pub(super) type Id = usize;

/// One node.
#[derive(Debug)]
pub(super) struct Node {
    /// What it is.
    pub kind: Kind,
    /// From its first byte (an anchor or tag counts) to behind its last; a block collection ends with
    /// its last entry. An empty scalar has an empty range where it would be written.
    pub range: Range<usize>,
    /// The first byte of its content, behind anchor and tag; the `|` or `>` of a block scalar.
    pub body: usize,
    /// The number of its anchor; 0 is none.
    pub anchor: usize,
    /// Whether it has a tag.
    pub tagged: bool,
    /// The collection that holds it; its own number for the root.
    pub parent: Id,
}

/// What a node is.
#[derive(Debug)]
pub(super) enum Kind {
    /// A scalar, typed.
    Scalar(ScalarStyle, Value),
    /// A plain `<<`.
    Merge,
    /// A reference to the node with this anchor.
    Alias(usize),
    /// A sequence.
    Seq(bool, Vec<Item>),
    /// A mapping.
    Map(bool, Vec<Entry>),
}

/// An item of a sequence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    /// Its first byte: the `-`, or the value in flow style.
    pub start: usize,
    /// The value.
    pub value: Id,
}

/// An entry of a mapping.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// Its first byte: the key, or its `?`.
    pub start: usize,
    /// The key.
    pub key: Id,
    /// Behind the `:`; nothing in `{key}`.
    pub colon: Option<usize>,
    /// The value.
    pub value: Id,
}

/// By how much numbers and places are smaller in a slice of a tree.
struct Moved {
    ids: usize,
    bytes: usize,
}

impl Moved {
    fn range(&self, range: &Range<usize>) -> Range<usize> {
        range.start - self.bytes..range.end - self.bytes
    }

    fn entry(&self, entry: &Entry) -> Entry {
        Entry {
            start: entry.start - self.bytes,
            key: entry.key - self.ids,
            colon: entry.colon.map(|colon| colon - self.bytes),
            value: entry.value - self.ids,
        }
    }

    fn item(&self, item: &Item) -> Item {
        Item {
            start: item.start - self.bytes,
            value: item.value - self.ids,
        }
    }

    fn node(&self, node: &Node, root: Id) -> Node {
        Node {
            kind: match &node.kind {
                Kind::Scalar(style, value) => Kind::Scalar(*style, value.clone()),
                Kind::Merge => Kind::Merge,
                Kind::Alias(anchor) => Kind::Alias(*anchor),
                Kind::Seq(is_flow, items) => {
                    Kind::Seq(*is_flow, items.iter().map(|item| self.item(item)).collect())
                }
                Kind::Map(is_flow, entries) => {
                    Kind::Map(*is_flow, entries.iter().map(|e| self.entry(e)).collect())
                }
            },
            range: self.range(&node.range),
            body: node.body - self.bytes,
            anchor: node.anchor,
            tagged: node.tagged,
            parent: if node.parent == root {
                0
            } else {
                node.parent - self.ids
            },
        }
    }
}

/// A text's nodes and comments.
#[derive(Debug)]
pub(super) struct Tree {
    /// All nodes; a collection stands before what it holds.
    pub nodes: Vec<Node>,
    /// The root, unless the document is empty.
    pub root: Option<Id>,
    /// From `#` to the end of the line, in order.
    pub comments: Vec<Range<usize>>,
    /// The node of each anchor, by its number from 1.
    pub anchors: Vec<Id>,
    /// Whether an alias refers to the anchor of that number.
    pub referenced: Vec<bool>,
    /// Where an empty document begins: behind `---`, else 0.
    pub start: usize,
    /// Quoted and block scalars, in order: what looks like syntax there is none.
    pub opaque: Vec<Range<usize>>,
}

impl Tree {
    /// The tree of some entries of the root, as their lines would be read by themselves: `lines` are their bytes,
    /// and `comments` stand in these, counted from where they begin. Nothing if a root that is no plain block, or
    /// an anchor, does not let them stand alone.
    pub(super) fn slice(
        &self,
        run: Range<usize>,
        lines: Range<usize>,
        comments: Vec<Range<usize>>,
    ) -> Option<Self> {
        let root = self.root?;
        let Kind::Map(false, entries) = &self.nodes[root].kind else {
            return None;
        };
        if self.nodes[root].tagged || !self.anchors.is_empty() {
            return None;
        }
        // What an entry holds follows its key directly, up to the key of the next one.
        let first = entries.get(run.start)?.key;
        let behind = entries
            .get(run.end)
            .map_or(self.nodes.len(), |entry| entry.key);
        let start = if run.start == 0 { self.start } else { 0 };
        let entries = entries.get(run)?;
        let moved = Moved {
            ids: first - 1,
            bytes: lines.start,
        };
        let opaque = {
            let before = |end: usize| self.opaque.partition_point(|range| range.start < end);
            &self.opaque[before(lines.start)..before(lines.end)]
        };
        let own = &self.nodes[first..behind];
        let mut nodes = Vec::with_capacity(own.len() + 8);
        let top = entries.first()?.start - lines.start;
        nodes.push(Node {
            kind: Kind::Map(false, entries.iter().map(|e| moved.entry(e)).collect()),
            range: top..self.end_of(entries.last()?) - lines.start,
            body: top,
            anchor: 0,
            tagged: false,
            parent: 0,
        });
        nodes.extend(own.iter().map(|node| moved.node(node, root)));
        Some(Self {
            nodes,
            root: Some(0),
            comments,
            anchors: Vec::new(),
            referenced: Vec::new(),
            start,
            opaque: opaque.iter().map(|range| moved.range(range)).collect(),
        })
    }

    /// Behind the last byte of an entry.
    pub(super) fn end_of(&self, entry: &Entry) -> usize {
        let value = self.nodes[entry.value].range.end;
        let key = self.nodes[entry.key].range.end;
        value.max(entry.colon.unwrap_or(0)).max(key)
    }

    /// Whether a node is written in flow style or stands in something that is.
    pub(super) fn in_flow(&self, id: Id) -> bool {
        let node = &self.nodes[id];
        node.parent != id
            && matches!(
                self.nodes[node.parent].kind,
                Kind::Seq(true, _) | Kind::Map(true, _)
            )
    }

    /// Whether a node is a collection in block style.
    pub(super) fn is_block(&self, id: Id) -> bool {
        matches!(
            self.nodes[id].kind,
            Kind::Seq(false, _) | Kind::Map(false, _)
        )
    }

    /// Whether some alias refers to this node.
    pub(super) fn is_referenced(&self, id: Id) -> bool {
        let anchor = self.nodes[id].anchor;
        anchor > 0 && self.referenced[anchor - 1]
    }

    /// Every scalar that is a value, in the order of the text.
    pub(super) fn scalars(&self) -> Vec<Scalar> {
        let mut found = Vec::new();
        if let Some(root) = self.root {
            self.collect_scalars(root, &Path::root(), &mut found);
        }
        found
    }

    fn collect_scalars(&self, id: Id, path: &Path, found: &mut Vec<Scalar>) {
        let node = &self.nodes[id];
        match &node.kind {
            Kind::Scalar(_, value) => found.push(Scalar {
                path: path.clone(),
                at: node.body..node.range.end,
                value: value.clone(),
            }),
            Kind::Merge | Kind::Alias(_) => {}
            Kind::Seq(_, items) => {
                for (index, item) in items.iter().enumerate() {
                    self.collect_scalars(item.value, &path.index(index), found);
                }
            }
            Kind::Map(_, entries) => {
                for entry in entries {
                    let key = match &self.nodes[entry.key].kind {
                        Kind::Scalar(_, key) => key.to_key(),
                        _ => Key::Other(String::new()),
                    };
                    self.collect_scalars(entry.value, &path.child(key), found);
                }
            }
        }
    }

    /// The comments that lie in a range.
    pub(super) fn comments_in(&self, range: &Range<usize>) -> &[Range<usize>] {
        let from = self
            .comments
            .partition_point(|comment| comment.start < range.start);
        let to = self
            .comments
            .partition_point(|comment| comment.start < range.end);
        &self.comments[from..to.max(from)]
    }
}
