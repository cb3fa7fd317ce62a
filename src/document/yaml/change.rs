//! Computes which bytes an edit of a YAML text replaces. Decides nothing about their truth: the result
//! is parsed and compared by the caller.

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

    /// Removes an entry or item.
    pub(super) fn remove(&self) -> Changed {
        let spot = match self.find.place(self.path)? {
            Place::Here(spot) if !self.path.is_root() => spot,
            Place::Missing(holder, _) => {
                return self.refuse(holder, "it comes from a merged mapping");
            }
            _ => return Err(Refusal::new(0, self.path, "it is not there")),
        };
        if self.find.holds_anchor(spot.id, true) {
            return self.refuse(
                spot.id,
                "it holds an anchored value that an alias refers to",
            );
        }
        match self.find.tree.nodes[spot.holder].kind {
            Kind::Map(true, _) | Kind::Seq(true, _) => self.remove_in_flow(spot),
            _ => self.remove_in_block(spot),
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

    /// Writes what another place holds at the path, as it is written there.
    pub(super) fn copy(&self, from: &Path) -> Changed {
        let (Place::Here(source), Some(value)) = (self.find.place(from)?, self.before.get(from))
        else {
            return Err(Refusal::new(
                0,
                self.path,
                format!("the file does not hold {from} itself"),
            ));
        };
        if self.find.holds_anchor(source.id, false) {
            return self.refuse(source.id, "what is moved holds an anchor");
        }
        let place = self.find.place(self.path)?;
        let (column, depth) = match place {
            Place::Here(spot) => return self.refuse(spot.id, "it is already there"),
            Place::Empty => (0, 0),
            Place::Missing(holder, depth) => match self.child_column(holder) {
                Some(column) if !self.is_inherited(depth) => (column, depth),
                _ => return self.copy_value(source, from, value),
            },
        };
        let is_flow = matches!(
            self.find.tree.nodes[source.holder].kind,
            Kind::Map(true, _) | Kind::Seq(true, _)
        );
        if is_flow {
            return self.copy_value(source, from, value);
        }
        let keys = &self.path.0[depth..];
        let Some((last, parents)) = keys.split_last() else {
            return Err(Refusal::new(0, self.path, "it is already there"));
        };
        let mut text = String::new();
        let mut at = column;
        for key in parents {
            let name = self.at(source.id, emit::path_key(key, ScalarStyle::Plain, false))?;
            text.push_str(&format!("{}{name}:{}", " ".repeat(at), self.layout.eol));
            at += self.layout.unit;
        }
        let name = self.at(source.id, emit::path_key(last, ScalarStyle::Plain, false))?;
        text.push_str(&" ".repeat(at));
        text.push_str(&name);
        text.push_str(&self.carried(source, at)?);
        match place {
            Place::Missing(holder, _) => self.add_lines(holder, &text),
            _ => Ok(vec![self.insert_at_end(&text)]),
        }
    }

    /// Writes the value of another place, which must hold no comment and no alias.
    fn copy_value(&self, source: Spot, from: &Path, value: &Value) -> Changed {
        let tree = self.find.tree;
        let end = tree.nodes[source.id].range.end;
        let removal = Changer {
            find: self.find,
            layout: self.layout,
            before: self.before,
            after: self.after,
            path: from,
        };
        let has_comment = removal
            .remove()?
            .iter()
            .any(|gone| !tree.comments_in(&gone.range).is_empty());
        let has_alias = tree.nodes[source.id..]
            .iter()
            .take_while(|node| node.range.start < end)
            .any(|node| matches!(node.kind, Kind::Alias(_)));
        if has_comment || has_alias {
            return self.refuse(
                source.id,
                "what is moved holds a comment or an alias that would be lost",
            );
        }
        self.set(value)
    }

    /// What follows the key of a moved value, re-indented for a key in `column`: from the colon to the end
    /// of its last line.
    fn carried(&self, source: Spot, column: usize) -> Result<String, Refusal> {
        let (start, end) = self.child(source.holder, source.position);
        let tree = self.find.tree;
        let lines = self.find.lines;
        let body = tree.nodes[source.id].range.start;
        let from = match &tree.nodes[source.holder].kind {
            Kind::Map(_, entries) => {
                let entry = &entries[source.position];
                let colon = entry
                    .colon
                    .filter(|_| entry.start == tree.nodes[entry.key].range.start);
                match colon {
                    Some(colon) => colon,
                    None => return self.refuse(source.id, "its key is written with `?`"),
                }
            }
            _ => start + 1,
        };
        let old = lines.column(start);
        let is_item = matches!(tree.nodes[source.holder].kind, Kind::Seq(..));
        let last = lines.end(end);
        if is_item && tree.is_block(source.id) && lines.start(body) == lines.start(start) {
            // `- name: x`: the mapping goes on lines of its own.
            let new = column + self.layout.unit;
            let moved = self.shift(body..last, lines.column(body), new);
            return Ok(format!(":{}{}{moved}", self.layout.eol, " ".repeat(new)));
        }
        if is_item && tree.is_block(source.id) {
            let new = column + self.layout.unit;
            return Ok(format!(
                ":{}",
                self.shift(from..last, lines.column(body), new)
            ));
        }
        Ok(format!(":{}", self.shift(from..last, old, column)))
    }

    /// A part of the text with the lines behind its first one moved from one column to another.
    fn shift(&self, range: Range<usize>, old: usize, new: usize) -> String {
        let text = &self.find.text[range.clone()];
        let mut moved = String::with_capacity(text.len() + 64);
        let mut at = range.start;
        for (number, line) in text.split_inclusive('\n').enumerate() {
            let content = line.trim_end_matches(['\n', '\r']);
            let spaces = content.len() - content.trim_start_matches(' ').len();
            // A blank line stays as it is, unless its blanks are text of a block scalar.
            let is_blank = spaces == content.len() && !self.is_block_text(at + spaces);
            if number == 0 || is_blank || old == new {
                moved.push_str(line);
            } else if new > old {
                moved.extend(std::iter::repeat_n(' ', new - old));
                moved.push_str(line);
            } else {
                moved.push_str(&line[spaces.min(old - new)..]);
            }
            at += line.len();
        }
        moved
    }

    /// Whether a byte lies in the text of a block scalar, behind the indentation.
    fn is_block_text(&self, at: usize) -> bool {
        let tree = self.find.tree;
        let next = tree.opaque.partition_point(|range| range.start <= at);
        next > 0 && {
            let range = &tree.opaque[next - 1];
            at < range.end && self.find.lines.column(at) > self.find.lines.column(range.start)
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
            None
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

    /// Replaces a value.
    fn replace(&self, spot: Spot, value: &Value) -> Changed {
        if self.find.holds_anchor(spot.id, true) {
            return self.refuse(
                spot.id,
                "it holds an anchored value that an alias refers to",
            );
        }
        if spot.id == spot.holder {
            return self.refuse(spot.id, "the whole document is never replaced");
        }
        if self.find.tree.in_flow(spot.id) {
            return self.replace_in_flow(spot, value);
        }
        let node = &self.find.tree.nodes[spot.id];
        let was_flow = matches!(&node.kind, Kind::Seq(true, _) | Kind::Map(true, _))
            && self.children(spot.id) > 0;
        if emit::is_tall(value) && !was_flow {
            self.replace_by_block(spot, value)
        } else {
            self.replace_inline(spot, value)
        }
    }

    fn replace_in_flow(&self, spot: Spot, value: &Value) -> Changed {
        let node = &self.find.tree.nodes[spot.id];
        let text = self.at(spot.id, emit::inline(value, self.style_of(spot.id), true))?;
        let colon = match &self.find.tree.nodes[spot.holder].kind {
            Kind::Map(_, entries) => entries[spot.position].colon,
            _ => Some(0),
        };
        let start = if node.tagged {
            node.range.start
        } else {
            node.body
        };
        Ok(vec![
            match (node.range.is_empty() || start == node.range.end, colon) {
                (true, Some(_)) => splice(start..node.range.end, format!(" {text}")),
                (true, None) => splice(start..node.range.end, format!(": {text}")),
                (false, _) => splice(start..node.range.end, text),
            },
        ])
    }

    /// The style that text in place of this value gets.
    fn style_of(&self, id: Id) -> ScalarStyle {
        match &self.find.tree.nodes[id].kind {
            Kind::Scalar(style, Value::Str(_)) => *style,
            Kind::Seq(true, _) | Kind::Map(true, _) => self.quoting(id),
            _ => ScalarStyle::Plain,
        }
    }

    fn is_block_scalar(&self, id: Id) -> bool {
        matches!(
            self.find.tree.nodes[id].kind,
            Kind::Scalar(ScalarStyle::Literal | ScalarStyle::Folded, _)
        )
    }

    /// The `|` or `>` of a block scalar with its modifiers.
    fn header(&self, id: Id) -> Range<usize> {
        let body = self.find.tree.nodes[id].body;
        let length = self.find.text[body + 1..]
            .bytes()
            .take_while(|b| matches!(b, b'+' | b'-' | b'0'..=b'9'))
            .count();
        body..body + 1 + length
    }

    /// The lines of a block scalar behind its header, or of a block collection on lines of its own.
    fn own_lines(&self, id: Id) -> Range<usize> {
        let lines = self.find.lines;
        let node = &self.find.tree.nodes[id];
        if self.is_block_scalar(id) {
            let start = lines.next(node.body);
            return start..lines.next(node.range.end).max(start);
        }
        lines.start(node.body)..lines.next(node.range.end)
    }

    /// Whether a block collection begins behind a dash or key on the same line.
    fn is_compact(&self, id: Id) -> bool {
        let body = self.find.tree.nodes[id].body;
        !self.find.text[self.find.lines.start(body)..body]
            .bytes()
            .all(|b| b == b' ')
    }

    /// Replaces a value by one that stands on the line of its key.
    fn replace_inline(&self, spot: Spot, value: &Value) -> Changed {
        let node = &self.find.tree.nodes[spot.id];
        let start = if node.tagged {
            node.range.start
        } else {
            node.body
        };
        if self.is_block_scalar(spot.id) {
            return self.replace_block_scalar(spot, value, start);
        }
        let text = self.at(spot.id, emit::inline(value, self.style_of(spot.id), false))?;
        if self.find.tree.is_block(spot.id) {
            if self.is_compact(spot.id) {
                return Ok(vec![splice(
                    start..self.find.lines.end(node.range.end),
                    text,
                )]);
            }
            let at = self.introduced(spot);
            return Ok(vec![
                splice(at..at, format!(" {text}")),
                splice(self.own_lines(spot.id), ""),
            ]);
        }
        if start == node.range.end {
            return Ok(vec![splice(start..start, format!(" {text}"))]);
        }
        Ok(vec![splice(start..node.range.end, text)])
    }

    fn replace_block_scalar(&self, spot: Spot, value: &Value, start: usize) -> Changed {
        let node = &self.find.tree.nodes[spot.id];
        let header = self.header(spot.id);
        let lines = self.own_lines(spot.id);
        let column = self
            .find
            .lines
            .column(self.find.tree.nodes[node.parent].body)
            + self.layout.unit;
        let layout = self.layout_at(header.start);
        let tall = value
            .as_str()
            .and_then(|text| emit::literal(text, column, layout));
        let Some(tall) = tall.filter(|_| lines.end > lines.start) else {
            let text = self.at(spot.id, emit::inline(value, ScalarStyle::Plain, false))?;
            return Ok(vec![splice(start..header.end, text), splice(lines, "")]);
        };
        let (head, body) = tall.split_once(layout.eol).unwrap_or((&tall, ""));
        let end = self.find.lines.ending(node.range.end).unwrap_or_default();
        Ok(vec![
            splice(start..header.end, head),
            splice(lines, format!("{body}{end}")),
        ])
    }

    /// Behind the colon or dash of a value, or behind its anchor and tag.
    fn introduced(&self, spot: Spot) -> usize {
        let node = &self.find.tree.nodes[spot.id];
        let end = self.find.properties_end(spot.id);
        if end > node.range.start && node.range.start < node.body {
            return end;
        }
        match &self.find.tree.nodes[spot.holder].kind {
            Kind::Map(_, entries) => entries[spot.position].colon.unwrap_or(end),
            Kind::Seq(_, items) => items[spot.position].start + 1,
            _ => end,
        }
    }

    /// Replaces a value by a block.
    fn replace_by_block(&self, spot: Spot, value: &Value) -> Changed {
        let lines = self.find.lines;
        let node = &self.find.tree.nodes[spot.id];
        let layout = self.layout_at(node.range.start);
        let key_column = self.key_column(spot.id);
        let is_item = self.is_item(spot.id);
        if is_item && !(self.find.tree.is_block(spot.id) && !self.is_compact(spot.id)) {
            return self.replace_item(spot, value, layout);
        }
        let was_map = matches!(node.kind, Kind::Map(false, _));
        let column = match value {
            Value::Map(_) if was_map => lines.column(node.body),
            Value::List(_) if !was_map && self.find.tree.is_block(spot.id) => {
                lines.column(node.body)
            }
            Value::List(_) if !is_item => key_column + layout.dash,
            _ => key_column + layout.unit,
        };
        let text = self.at(spot.id, emit::block(value, column, layout))?;
        if self.find.tree.is_block(spot.id) {
            let old = self.own_lines(spot.id);
            let end = lines.ending(node.range.end).unwrap_or_default();
            return Ok(vec![splice(old, format!("{text}{end}"))]);
        }
        if self.is_block_scalar(spot.id) {
            let old = self.own_lines(spot.id);
            let cut =
                self.find.text[..node.body].trim_end_matches(' ').len()..self.header(spot.id).end;
            let end = lines.ending(node.range.end).unwrap_or_default();
            return Ok(vec![splice(cut, ""), splice(old, format!("{text}{end}"))]);
        }
        let cut = self.without_value(spot.id);
        Ok(vec![
            splice(cut, ""),
            self.insert_after(node.range.end, &text, layout),
        ])
    }

    /// Replaces what stands behind a dash by a block that begins there.
    fn replace_item(&self, spot: Spot, value: &Value, layout: Layout) -> Changed {
        let lines = self.find.lines;
        let node = &self.find.tree.nodes[spot.id];
        let (dash, _) = self.child(spot.holder, spot.position);
        let start = if node.tagged {
            node.range.start
        } else {
            node.body
        };
        let column = lines.column(dash) + 2;
        let text = self.at(spot.id, emit::block(value, column, layout))?;
        let text = text.trim_start_matches(' ');
        if self.is_block_scalar(spot.id) {
            let end = lines.ending(node.range.end).unwrap_or_default();
            let (first, rest) = text.split_once(layout.eol).unwrap_or((text, ""));
            let rest = if rest.is_empty() {
                String::new()
            } else {
                format!("{rest}{end}")
            };
            return Ok(vec![
                splice(start..self.header(spot.id).end, first),
                splice(self.own_lines(spot.id), rest),
            ]);
        }
        if self.find.tree.is_block(spot.id) {
            return Ok(vec![splice(start..lines.end(node.range.end), text)]);
        }
        // A comment behind the old value stays on its line.
        let (first, rest) = text.split_once(layout.eol).unwrap_or((text, ""));
        let blank = if start == dash + 1 { " " } else { "" };
        let mut splices = vec![splice(start..node.range.end, format!("{blank}{first}"))];
        if !rest.is_empty() {
            splices.push(self.insert_after(node.range.end, rest, layout));
        }
        Ok(splices)
    }

    fn remove_in_block(&self, spot: Spot) -> Changed {
        let lines = self.find.lines;
        let source = self.find.text;
        let (start, end) = self.child(spot.holder, spot.position);
        let is_alone = source[lines.start(start)..start].bytes().all(|b| b == b' ');
        let whole = lines.start(start)..lines.next(end);
        if self.children(spot.holder) == 1 {
            return self.empty_block(spot.holder, start, end, is_alone);
        }
        if is_alone {
            return Ok(vec![splice(whole, "")]);
        }
        if spot.position > 0 {
            return self.refuse(spot.id, "it shares its line with something else");
        }
        let (next, _) = self.child(spot.holder, 1);
        if self
            .find
            .tree
            .comments_in(&(lines.end(end)..next))
            .is_empty()
        {
            return Ok(vec![splice(start..next, "")]);
        }
        let start = source[..start].trim_end_matches(' ').len();
        Ok(vec![splice(start..lines.end(end), "")])
    }

    /// Leaves `{}` or `[]` where the only entry of a block stood.
    fn empty_block(&self, id: Id, start: usize, end: usize, is_alone: bool) -> Changed {
        let lines = self.find.lines;
        let node = &self.find.tree.nodes[id];
        let empty = if matches!(node.kind, Kind::Map(..)) {
            "{}"
        } else {
            "[]"
        };
        let parent = node.parent;
        if parent == id || !is_alone {
            return Ok(vec![splice(start..lines.end(end), empty)]);
        }
        let position = (0..self.children(parent)).find(|position| {
            let (from, to) = self.child(parent, *position);
            from <= start && end <= to
        });
        let at = self.introduced(Spot {
            id,
            holder: parent,
            position: position.unwrap_or(0),
        });
        Ok(vec![
            splice(at..at, format!(" {empty}")),
            splice(lines.start(start)..lines.next(end), ""),
        ])
    }

    fn remove_in_flow(&self, spot: Spot) -> Changed {
        let source = self.find.text;
        let lines = self.find.lines;
        let tree = self.find.tree;
        let node = &tree.nodes[spot.holder];
        let open = node.body;
        if !matches!(source.as_bytes()[open], b'{' | b'[') {
            return self.refuse(spot.id, "a pair in a list cannot be taken apart");
        }
        let close = node.range.end - 1;
        let (start, end) = self.child(spot.holder, spot.position);
        let count = self.children(spot.holder);
        // The comma behind it, if only blanks are in between.
        let gap = source[end..close]
            .bytes()
            .take_while(u8::is_ascii_whitespace)
            .count();
        let comma = (source.as_bytes().get(end + gap) == Some(&b',')).then_some(end + gap + 1);
        if count == 1 && tree.comments_in(&(open..close)).is_empty() {
            return Ok(vec![splice(open + 1..close, "")]);
        }
        let behind = comma.unwrap_or(end);
        let rest = &source[behind..lines.end(behind)];
        let rest_is_free = rest.trim().is_empty() || rest.trim_start().starts_with('#');
        let stands_alone = source[lines.start(start)..start].bytes().all(|b| b == b' ')
            && lines.start(start) > open
            && lines.end(behind) < close
            && rest_is_free;
        if stands_alone {
            return Ok(vec![splice(lines.start(start)..lines.next(behind), "")]);
        }
        if spot.position + 1 < count {
            let (next, _) = self.child(spot.holder, spot.position + 1);
            if !source[start..next].contains('\n') {
                return Ok(vec![splice(start..next, "")]);
            }
            return match comma {
                Some(comma) => Ok(vec![splice(start..comma, "")]),
                None => self.refuse(spot.id, "a comment stands between it and its comma"),
            };
        }
        if spot.position > 0 {
            let (_, before) = self.child(spot.holder, spot.position - 1);
            if tree.comments_in(&(before..end)).is_empty() {
                return Ok(vec![splice(before..end, "")]);
            }
        }
        Ok(vec![splice(start..behind, "")])
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
