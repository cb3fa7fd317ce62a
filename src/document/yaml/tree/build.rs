//! Builds a tree from the events of the parser, and refuses what YAML 1.1 loaders read otherwise.

mod comments;
mod spans;

use std::collections::HashSet;
use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, Span, StructureStyle, Tag};

use super::super::super::{Invalid, MAX_ALIASES, MAX_DEPTH, Value};
use super::super::lines::Lines;
use super::super::schema::{self, Plain};
use super::{Id, Kind, Node, Tree};

/// Reads one document.
pub(in super::super) fn build(text: &str, lines: &Lines<'_>) -> Result<Tree, Invalid> {
    let mut builder = Builder::new(text, lines);
    for event in Parser::new_from_str_with_options(text, options()) {
        let (event, span) = event.map_err(|error| {
            let line = lines.above() + error.marker().line();
            Invalid::new(line, error.info().to_string())
        })?;
        builder.take(event, &span)?;
    }
    builder.finish()?;
    builder.tree.comments = builder.comments();
    Ok(builder.tree)
}

/// How the parser is asked to read.
fn options() -> granit_parser::Options {
    granit_parser::options! {
        disallow_directives: true,
        block_scalar_eof_without_line_feed: true,
        emit_anchor_events: true,
    }
}

/// A collection that is being read.
struct Open {
    id: Id,
    /// Where its children begin among those of all that is open: items, or keys and values in turn.
    children: usize,
    is_map: bool,
    is_flow: bool,
}

struct Builder<'t> {
    text: &'t str,
    lines: &'t Lines<'t>,
    tree: Tree,
    open: Vec<Open>,
    /// The children so far of all that is open, those of the innermost last.
    children: Vec<Id>,
    names: HashSet<String>,
    documents: usize,
    is_explicit: bool,
    /// Plain scalars that hold a `#`, in order.
    hashes: Vec<Range<usize>>,
    /// The first plain text in a flow collection that holds a colon.
    flow_colon: Option<usize>,
    /// The first plain scalar that YAML 1.2 types differently, if the document has a `---`.
    young: Option<usize>,
    aliases: usize,
}

impl<'t> Builder<'t> {
    fn new(text: &'t str, lines: &'t Lines<'t>) -> Self {
        // A colon seldom stands for more than three nodes; a text of colons alone is refused soon.
        let colons = text.bytes().filter(|byte| *byte == b':').count();
        Builder {
            text,
            lines,
            tree: Tree {
                nodes: Vec::with_capacity(8 + (3 * colons).min(text.len() / 12)),
                root: None,
                comments: Vec::new(),
                anchors: Vec::new(),
                referenced: Vec::new(),
                start: 0,
                opaque: Vec::new(),
            },
            open: Vec::new(),
            children: Vec::new(),
            names: HashSet::new(),
            documents: 0,
            is_explicit: false,
            hashes: Vec::new(),
            flow_colon: None,
            young: None,
            aliases: 0,
        }
    }
}

impl Builder<'_> {
    fn fail<T>(&self, at: usize, reason: impl Into<String>) -> Result<T, Invalid> {
        Err(Invalid::new(self.lines.number(at), reason))
    }

    fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), Invalid> {
        let range = span.byte_range().unwrap_or_default();
        match event {
            Event::DocumentStart(explicit, _) => {
                self.documents += 1;
                if self.documents > 1 {
                    return self.fail(range.start, "more than one document");
                }
                self.is_explicit = explicit;
                if explicit {
                    self.tree.start = range.end;
                }
            }
            Event::Anchor(id, name) => self.anchor(id, &name, range)?,
            Event::Alias(anchor) => {
                self.aliases += 1;
                if self.aliases > MAX_ALIASES {
                    return self.fail(range.start, "more than 1,000 aliases");
                }
                self.alias(anchor, range)?;
            }
            Event::Scalar(value, style, _, tag) => {
                self.scalar(&value, style, tag.as_deref(), range, span)?
            }
            Event::SequenceStart(style, _, tag) => {
                self.start(
                    false,
                    style == StructureStyle::Flow,
                    tag.as_deref(),
                    range,
                    span,
                )?;
            }
            Event::MappingStart(style, _, tag) => {
                self.start(
                    true,
                    style == StructureStyle::Flow,
                    tag.as_deref(),
                    range,
                    span,
                )?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(range)?,
            Event::UnresolvedAlias(_) => {
                return self.fail(range.start, "an alias without an anchor");
            }
            _ => {}
        }
        Ok(())
    }

    /// What only the whole text shows.
    fn finish(&self) -> Result<(), Invalid> {
        // ruamel.yaml's C loader fails on such a colon, and its other one reads what follows a `---` by YAML 1.2.
        if let (Some(_), Some(at)) = (self.flow_colon, self.young) {
            return self.fail(at, "below a `---`, some loaders read this by YAML 1.2");
        }
        let content = self
            .tree
            .root
            .map_or(self.text.len(), |root| self.tree.nodes[root].range.start);
        let mut at = 0;
        for line in self.text[..content].split_inclusive('\n') {
            if line.starts_with("...") && content >= at {
                return self.fail(at, "a `...` that ends nothing");
            }
            at += line.len();
        }
        Ok(())
    }

    /// Adds a node to what is open.
    fn add(&mut self, kind: Kind, range: Range<usize>, span: &Span) -> Id {
        let id = self.tree.nodes.len();
        let tag = span.tag_span().and_then(|tag| tag.byte_range());
        let parent = match self.open.last() {
            Some(open) => {
                self.children.push(id);
                open.id
            }
            None => {
                self.tree.root.get_or_insert(id);
                id
            }
        };
        let start = tag
            .as_ref()
            .map_or(range.start, |tag| tag.start.min(range.start));
        self.tree.nodes.push(Node {
            kind,
            body: range.start,
            range: start..range.end,
            anchor: 0,
            tagged: tag.is_some(),
            parent,
        });
        id
    }

    fn anchor(&mut self, anchor: usize, name: &str, range: Range<usize>) -> Result<(), Invalid> {
        if !name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        {
            return self.fail(
                range.start,
                "the name of an anchor is not made of letters, digits, `-` and `_`",
            );
        }
        // The event follows the one of its node directly.
        let id = self.tree.nodes.len() - 1;
        if !self.names.insert(name.to_owned()) {
            return self.fail(range.start, format!("the anchor `{name}` is defined twice"));
        }
        let node = &mut self.tree.nodes[id];
        node.range.start = node.range.start.min(range.start);
        node.anchor = anchor;
        self.tree.anchors.push(id);
        self.tree.referenced.push(false);
        Ok(())
    }

    fn alias(&mut self, anchor: usize, range: Range<usize>) -> Result<(), Invalid> {
        let Some(target) = self.tree.anchors.get(anchor.wrapping_sub(1)).copied() else {
            return self.fail(range.start, "an alias without an anchor");
        };
        if self.open.iter().any(|open| open.id == target) {
            return self.fail(range.start, "an alias to what it stands in");
        }
        let name = &self.text[range.clone()];
        if !name[1..]
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        {
            return self.fail(
                range.start,
                "the name of an alias is not made of letters, digits, `-` and `_`",
            );
        }
        self.tree.referenced[anchor - 1] = true;
        self.add(Kind::Alias(anchor), range.clone(), &Span::default());
        Ok(())
    }

    fn scalar(
        &mut self,
        value: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        mut range: Range<usize>,
        span: &Span,
    ) -> Result<(), Invalid> {
        // An empty plain scalar arrives as `~`.
        let value = if range.is_empty() && style == ScalarStyle::Plain {
            ""
        } else {
            value
        };
        match style {
            ScalarStyle::Literal | ScalarStyle::Folded => {
                let content = range.start;
                range.start = self.header(content, style);
                range.end = self.block_end(range.start, range.end, span.indent.unwrap_or(0))?;
                // It begins below its header; of one without a word the parser names other places.
                let below = self.lines.next(range.start).min(range.end);
                self.tree.opaque.push(below..range.end);
            }
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => {
                self.tree.opaque.push(range.clone())
            }
            ScalarStyle::Plain => {
                if value.contains('#') {
                    self.hashes.push(range.clone());
                }
                self.plain_in_flow(&range)?;
            }
        }
        let plain = match (tag, style) {
            (Some(tag), _) => match tag.core_suffix() {
                Some(suffix) => schema::tagged(suffix, value).map(Plain::Value),
                None => Err(format!("the tag `{}` is not known", tag.original())),
            },
            (None, ScalarStyle::Plain) if schema::breaks_ruamel(value) => {
                Err(format!("`{value}` is a broken number to some loaders"))
            }
            (None, ScalarStyle::Plain) => schema::plain(value),
            (None, _) => Ok(Plain::Value(Value::Str(value.into()))),
        };
        match plain {
            Ok(Plain::Value(read)) => {
                if self.is_explicit && style == ScalarStyle::Plain && schema::is_young(value, &read)
                {
                    self.young.get_or_insert(range.start);
                }
                let value = read;
                self.add(Kind::Scalar(style, value), range, span);
            }
            Ok(Plain::Merge) => {
                self.add(Kind::Merge, range, span);
            }
            Err(reason) => return self.fail(range.start, reason),
        }
        Ok(())
    }

    /// Refuses plain text in a flow collection that holds what some loaders take for syntax there.
    fn plain_in_flow(&mut self, range: &Range<usize>) -> Result<(), Invalid> {
        let text = &self.text[range.clone()];
        if !self.open.last().is_some_and(|open| open.is_flow) {
            return Ok(());
        }
        if text.starts_with(':') || text.contains('?') {
            return self.fail(
                range.start,
                "`?` or `:` in plain text inside brackets, which loaders read differently",
            );
        }
        if text.contains(':') {
            self.flow_colon.get_or_insert(range.start);
        }
        Ok(())
    }

    fn start(
        &mut self,
        is_map: bool,
        is_flow: bool,
        tag: Option<&Tag>,
        range: Range<usize>,
        span: &Span,
    ) -> Result<(), Invalid> {
        if self.open.len() == MAX_DEPTH {
            return self.fail(range.start, "nested more than 64 levels deep");
        }
        if let Some(tag) = tag
            && tag.core_suffix() != Some(if is_map { "map" } else { "seq" })
        {
            return self.fail(
                range.start,
                format!("the tag `{}` is not known", tag.original()),
            );
        }
        let kind = if is_map {
            Kind::Map(is_flow, Vec::new())
        } else {
            Kind::Seq(is_flow, Vec::new())
        };
        let id = self.add(kind, range, span);
        self.open.push(Open {
            id,
            children: self.children.len(),
            is_map,
            is_flow,
        });
        Ok(())
    }

    fn end(&mut self, range: Range<usize>) -> Result<(), Invalid> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let id = open.id;
        let mut end = range.end;
        let count = self.children.len() - open.children;
        let kind = if open.is_map {
            let mut entries = Vec::with_capacity(count / 2);
            let mut at = self.tree.nodes[id].body;
            for pair in 0..count / 2 {
                let key = open.children + 2 * pair;
                let (key, value) = (self.children[key], self.children[key + 1]);
                let entry = self.entry(key, value, at, open.is_flow)?;
                at = self.follows(at, entry.start, self.tree.end_of(&entry))?;
                entries.push(entry);
            }
            if !open.is_flow {
                end = at;
                if let Some(first) = entries.first() {
                    self.begin_at(id, first.start);
                }
            }
            Kind::Map(open.is_flow, entries)
        } else {
            let mut items = Vec::with_capacity(count);
            let mut at = None;
            for child in 0..count {
                let value = self.children[open.children + child];
                let item = self.item(value, at, open.is_flow);
                if !open.is_flow {
                    self.place_empty(value, item.start + 1);
                }
                let end = self.tree.nodes[value].range.end.max(item.start + 1);
                at = Some(self.follows(at.unwrap_or(0), item.start, end)?);
                items.push(item);
            }
            if !open.is_flow {
                end = at.unwrap_or(end);
                if let Some(first) = items.first() {
                    self.begin_at(id, first.start);
                }
            }
            Kind::Seq(open.is_flow, items)
        };
        self.children.truncate(open.children);
        let node = &mut self.tree.nodes[id];
        node.kind = kind;
        node.range.end = end;
        Ok(())
    }
}
