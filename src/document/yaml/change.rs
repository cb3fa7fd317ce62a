//! Computes which bytes an edit of a YAML text replaces. Decides nothing about their truth: the result
//! is parsed and compared by the caller.

mod carry;
mod remove;
mod replace;

use std::ops::Range;

use granit_parser::ScalarStyle;

use super::super::{Key, Path, Refusal, Value};
use super::emit::{self, Layout};
use super::place::{Finder, Place, Spot};
use super::tree::{Id, Kind};

/// Bytes to replace.
#[derive(Debug, Clone)]
pub(super) struct Splice {
    /// Which.
    pub range: Range<usize>,
    /// By what.
    pub text: String,
}

/// Replacements that belong together; none is no change.
pub(super) type Splices = Vec<Splice>;

fn splice(range: Range<usize>, text: impl Into<String>) -> Splice {
    Splice {
        range,
        text: text.into(),
    }
}

/// One edit in the making.
pub(super) struct Changer<'d> {
    pub find: Finder<'d>,
    pub layout: Layout,
    /// The meaning before and after the edit.
    pub before: &'d Value,
    pub after: &'d Value,
    pub path: &'d Path,
}

type Changed = Result<Splices, Refusal>;

impl Changer<'_> {
    fn refuse<T>(&self, id: Id, reason: impl Into<String>) -> Result<T, Refusal> {
        self.find.refuse(id, self.path, reason)
    }

    /// Names the line of a node in a failure of the emitter.
    fn at<T>(&self, id: Id, result: Result<T, String>) -> Result<T, Refusal> {
        result.or_else(|reason| self.refuse(id, reason))
    }

    /// Gives the path a value.
    pub(super) fn set(&self, value: &Value) -> Changed {
        match self.find.place(self.path)? {
            Place::Here(spot) => self.replace(spot, value),
            Place::Missing(holder, depth) => self.add(holder, depth, value),
            Place::Empty => self.begin(value),
        }
    }

    /// Adds an item at the end of the list.
    pub(super) fn append(&self, value: &Value) -> Changed {
        let spot = match self.find.place(self.path)? {
            Place::Here(spot) => spot,
            Place::Missing(holder, depth) => {
                return self.add(holder, depth, &Value::List(vec![value.clone()]));
            }
            Place::Empty => return self.begin(&Value::List(vec![value.clone()])),
        };
        match &self.find.tree.nodes[spot.id].kind {
            Kind::Scalar(_, Value::Null) => self.replace(spot, &Value::List(vec![value.clone()])),
            Kind::Seq(true, items) => {
                if items.is_empty() && emit::is_tall(value) && self.may_expand(spot.id) {
                    return self.replace(spot, &Value::List(vec![value.clone()]));
                }
                let text = self.at(spot.id, emit::inline(value, self.quoting(spot.id), true))?;
                self.add_in_flow(spot.id, &text)
            }
            Kind::Seq(false, items) => {
                let Some(last) = items.last() else {
                    return self.refuse(spot.id, "the list cannot be read");
                };
                let column = self.find.lines.column(last.start);
                let layout = self.layout_at(last.start);
                let item = self.at(spot.id, emit::item(value, column, layout))?;
                Ok(vec![self.insert_after(
                    self.find.tree.nodes[spot.id].range.end,
                    &item,
                    layout,
                )])
            }
            _ => self.refuse(spot.id, "it is not a list"),
        }
    }

    /// Gives a key of a mapping another name.
    pub(super) fn rename(&self, to: &Key) -> Changed {
        let Place::Here(spot) = self.find.place(self.path)? else {
            return Err(Refusal::new(
                0,
                self.path,
                "the file does not hold it itself",
            ));
        };
        let Kind::Map(is_flow, entries) = &self.find.tree.nodes[spot.holder].kind else {
            return self.refuse(spot.id, "only a key of a mapping has a name");
        };
        let key = &self.find.tree.nodes[entries[spot.position].key];
        match &key.kind {
            Kind::Scalar(style, _) if key.anchor == 0 && !key.tagged => {
                let text = self.at(spot.id, emit::path_key(to, *style, *is_flow))?;
                Ok(vec![splice(key.range.clone(), text)])
            }
            _ => self.refuse(spot.id, "its key is an alias, or has an anchor or a tag"),
        }
    }

    /// The first byte of an entry or item, and behind its last.
    fn child(&self, holder: Id, position: usize) -> (usize, usize) {
        let tree = self.find.tree;
        match &tree.nodes[holder].kind {
            Kind::Map(_, entries) => {
                let entry = &entries[position];
                let end = tree.nodes[entry.value]
                    .range
                    .end
                    .max(entry.colon.unwrap_or(0));
                (entry.start, end.max(tree.nodes[entry.key].range.end))
            }
            Kind::Seq(is_flow, items) => {
                let item = &items[position];
                let least = if *is_flow { item.start } else { item.start + 1 };
                (item.start, tree.nodes[item.value].range.end.max(least))
            }
            _ => {
                let range = &tree.nodes[holder].range;
                (range.start, range.end)
            }
        }
    }

    fn children(&self, holder: Id) -> usize {
        match &self.find.tree.nodes[holder].kind {
            Kind::Map(_, entries) => entries.len(),
            Kind::Seq(_, items) => items.len(),
            _ => 0,
        }
    }

    /// The line ends that new lines next to `at` get.
    fn layout_at(&self, at: usize) -> Layout {
        let lines = self.find.lines;
        let own = lines.ending(at);
        let start = lines.start(at);
        let before = if start > 0 {
            lines.ending(start - 1)
        } else {
            self.layout.above
        };
        Layout {
            eol: own.or(before).unwrap_or(self.layout.eol),
            ..self.layout
        }
    }

    /// New lines behind the line that holds the end of something.
    fn insert_after(&self, end: usize, text: &str, layout: Layout) -> Splice {
        let lines = self.find.lines;
        let next = lines.next(end);
        if lines.ending(end).is_some() {
            splice(next..next, format!("{text}{}", layout.eol))
        } else {
            // The last line has no end, and the new last one gets none.
            splice(next..next, format!("{}{text}", layout.eol))
        }
    }

    /// New lines at the end of a document that holds nothing yet.
    fn insert_at_end(&self, text: &str) -> Splice {
        let end = self.find.text.len();
        if end == 0 || self.find.text.ends_with('\n') {
            splice(end..end, format!("{text}{}", self.layout.eol))
        } else {
            splice(end..end, format!("{}{text}", self.layout.eol))
        }
    }

    /// The first value of an empty document.
    fn begin(&self, value: &Value) -> Changed {
        let Some((first, rest)) = self.path.0.split_first() else {
            return Err(Refusal::new(
                0,
                self.path,
                "the whole document is never replaced",
            ));
        };
        let key = emit::path_key(first, ScalarStyle::Plain, false);
        let text = key.and_then(|key| emit::entry(&key, &nest(rest, value), 0, self.layout));
        match text {
            Ok(text) => Ok(vec![self.insert_at_end(&text)]),
            Err(reason) => Err(Refusal::new(0, self.path, reason)),
        }
    }

    /// Whether the key at `depth` of the path has a value that the mapping only inherits.
    fn is_inherited(&self, depth: usize) -> bool {
        let prefix = Path(self.path.0[..=depth].to_vec());
        self.before.get(&prefix).is_some()
    }

    /// The column of what a mapping or null holds or would hold in block style, if it can.
    fn child_column(&self, holder: Id) -> Option<usize> {
        let tree = self.find.tree;
        let node = &tree.nodes[holder];
        match &node.kind {
            Kind::Map(false, _) => Some(self.find.lines.column(node.body)),
            Kind::Map(true, entries) if entries.is_empty() && self.may_expand(holder) => {
                Some(self.below_column(holder))
            }
            Kind::Scalar(_, Value::Null) if !tree.in_flow(holder) && !self.is_item(holder) => {
                Some(self.below_column(holder))
            }
            _ => None,
        }
    }

    fn is_item(&self, id: Id) -> bool {
        let parent = self.find.tree.nodes[id].parent;
        parent != id && matches!(self.find.tree.nodes[parent].kind, Kind::Seq(..))
    }

    /// The column of a mapping below the key of this value.
    fn below_column(&self, id: Id) -> usize {
        let node = &self.find.tree.nodes[id];
        if node.parent == id {
            0
        } else {
            self.key_column(id) + self.layout.unit
        }
    }

    /// The column of the key or dash that this value belongs to.
    fn key_column(&self, id: Id) -> usize {
        let tree = self.find.tree;
        self.find
            .lines
            .column(tree.nodes[tree.nodes[id].parent].body)
    }

    /// Whether an empty `{}` or `[]` may become a block: it is one line of a block itself.
    fn may_expand(&self, id: Id) -> bool {
        let node = &self.find.tree.nodes[id];
        !self.find.tree.in_flow(id)
            && !node.tagged
            && self.find.tree.comments_in(&node.range).is_empty()
            && !self.find.text[node.range.clone()].contains('\n')
            && (node.parent != id || self.find.lines.column(node.range.start) == 0)
    }

    /// The quotes that new text in a flow collection gets: those of a neighbour key or item.
    fn quoting(&self, holder: Id) -> ScalarStyle {
        let tree = self.find.tree;
        let neighbour = match &tree.nodes[holder].kind {
            Kind::Map(true, entries) => entries.first().map(|entry| entry.key),
            Kind::Seq(true, items) => items.first().map(|item| item.value),
            _ => None,
        };
        match neighbour.map(|id| &tree.nodes[id].kind) {
            Some(Kind::Scalar(
                style @ (ScalarStyle::DoubleQuoted | ScalarStyle::SingleQuoted),
                _,
            )) => *style,
            _ => ScalarStyle::Plain,
        }
    }

    /// Adds the key at `depth` of the path to a mapping or to a null.
    fn add(&self, holder: Id, depth: usize, value: &Value) -> Changed {
        let prefix = Path(self.path.0[..=depth].to_vec());
        let value = if self.is_inherited(depth) {
            // An own key hides all that is inherited under it, so it has to hold all of that.
            match self.after.get(&prefix) {
                Some(value) => value.clone(),
                None => return self.refuse(holder, "it comes from a merged mapping"),
            }
        } else {
            nest(&self.path.0[depth + 1..], value)
        };
        let key = &self.path.0[depth];
        if let Some(column) = self.child_column(holder) {
            let layout = self.layout_at(self.find.tree.nodes[holder].range.end);
            let name = self.at(holder, emit::path_key(key, ScalarStyle::Plain, false))?;
            let text = self.at(holder, emit::entry(&name, &value, column, layout))?;
            return self.add_lines(holder, &text);
        }
        match self.find.tree.nodes[holder].kind {
            Kind::Map(true, _) => {
                let style = self.quoting(holder);
                let name = self.at(holder, emit::path_key(key, style, true))?;
                let text = self.at(holder, emit::inline(&value, style, true))?;
                self.add_in_flow(holder, &format!("{name}: {text}"))
            }
            _ => self.fill(holder, key, value),
        }
    }

    /// Replaces a null that is an item or stands in flow style by a mapping of one key.
    fn fill(&self, id: Id, key: &Key, value: Value) -> Changed {
        let Key::Name(name) = key else {
            return self.refuse(id, "only a key that is text is ever added");
        };
        let parent = self.find.tree.nodes[id].parent;
        let position =
            (0..self.children(parent)).find(|position| match &self.find.tree.nodes[parent].kind {
                Kind::Map(_, entries) => entries[*position].value == id,
                Kind::Seq(_, items) => items[*position].value == id,
                _ => false,
            });
        match position {
            Some(position) if parent != id => {
                let value = Value::Map(vec![(Value::from(name.as_str()), value)]);
                self.replace(
                    Spot {
                        id,
                        holder: parent,
                        position,
                    },
                    &value,
                )
            }
            _ => self.refuse(id, "nothing can be added there"),
        }
    }

    /// Adds ready lines to a block mapping, or below the key of a null or an empty `{}`.
    fn add_lines(&self, holder: Id, text: &str) -> Changed {
        let node = &self.find.tree.nodes[holder];
        let layout = self.layout_at(node.range.end);
        let behind = self.insert_after(node.range.end, text, layout);
        if matches!(node.kind, Kind::Map(false, _)) {
            return Ok(vec![behind]);
        }
        if node.parent == holder {
            // `{}` is all there is.
            return Ok(vec![splice(node.range.clone(), text)]);
        }
        let cut = self.without_value(holder);
        Ok(vec![splice(cut, ""), behind])
    }

    /// The bytes of an inline value and the blanks before it; its anchor stays.
    fn without_value(&self, id: Id) -> Range<usize> {
        let node = &self.find.tree.nodes[id];
        let start = if node.tagged {
            node.range.start
        } else {
            node.body
        };
        let before = &self.find.text[..start];
        if node.range.is_empty() {
            start..start
        } else {
            before.trim_end_matches(' ').len()..node.range.end
        }
    }

    /// Adds ready text at the end of a flow collection.
    fn add_in_flow(&self, id: Id, text: &str) -> Changed {
        let source = self.find.text;
        let node = &self.find.tree.nodes[id];
        let open = node.body;
        if !matches!(source.as_bytes()[open], b'{' | b'[') {
            return self.refuse(id, "a pair in a list cannot be added to");
        }
        let count = self.children(id);
        if count == 0 {
            let inside = open + 1..node.range.end - 1;
            let is_blank = source[inside.clone()].trim_matches(' ').is_empty();
            let range = if is_blank { inside } else { open + 1..open + 1 };
            return Ok(vec![splice(range, text)]);
        }
        let (start, end) = self.child(id, count - 1);
        let lines = self.find.lines;
        let close = node.range.end - 1;
        let indent = &source[lines.start(start)..start];
        let stands_alone = indent.bytes().all(|b| b == b' ')
            && lines.start(start) > open
            && lines.start(close) > end;
        if stands_alone {
            let rest = &source[end..lines.end(end)];
            let comma = rest.trim_start().starts_with(',');
            let eol = lines.ending(end).unwrap_or(self.layout.eol);
            let at = lines.end(end);
            let tail = if comma { "," } else { "" };
            let line = splice(at..at, format!("{eol}{indent}{text}{tail}"));
            // A comma on a later line would come before the new entry twice.
            if comma || !source[end..close].contains(',') {
                return Ok(if comma {
                    vec![line]
                } else {
                    vec![splice(end..end, ","), line]
                });
            }
        }
        Ok(vec![splice(end..end, format!(", {text}"))])
    }
}

/// A value below the rest of a path.
fn nest(keys: &[Key], value: &Value) -> Value {
    keys.iter().rev().fold(value.clone(), |inner, key| {
        let name = match key {
            Key::Name(name) => Value::from(name.as_str()),
            // Never text, so the emitter refuses it.
            Key::Index(_) | Key::Other(_) => Value::Null,
        };
        Value::Map(vec![(name, inner)])
    })
}
