//! A text that was read as a whole: a document, or some entries of its root, with where everything stands
//! and what it means. An edit makes another text of it, which is read anew and proved.

use std::ops::Range;

use super::super::{Edit, Invalid, Path, Refusal, Value, intent};
use super::change::{Changer, Splices};
use super::emit::Layout;
use super::lines::Lines;
use super::place::{Finder, Place};
use super::tree::{self, Kind, Tree};
use super::{preflight, resolve};

/// A text with its tree and its meaning.
#[derive(Debug)]
pub(super) struct Part {
    /// The text, without a BOM.
    pub text: String,
    /// The lines of the document that stand above it.
    above: usize,
    pub tree: Tree,
    /// What it means: always a mapping.
    pub value: Value,
}

impl Part {
    /// Reads a text that stands below `above` lines of its document.
    pub(super) fn read(text: String, above: usize) -> Result<Self, Invalid> {
        let lines = Lines::new(&text, above);
        let tree = tree::build(&text, &lines)?;
        preflight::tabs(&text, &tree, &lines)?;
        let value = resolve::resolve(&tree, &lines)?;
        Ok(Self {
            text,
            above,
            tree,
            value,
        })
    }

    /// A text whose tree and meaning are known from what it was read with.
    pub(super) const fn known(text: String, tree: Tree, value: Value) -> Self {
        Self {
            text,
            above: 0,
            tree,
            value,
        }
    }

    /// The first entry and the others, each as a part.
    pub(super) fn split(self) -> Option<(Self, Self)> {
        let middle = *self.entries().get(1)?;
        let Value::Map(mut first) = self.value else {
            return None;
        };
        let others = first.split_off(1);
        let comments = &self.tree.comments;
        let cut = comments.partition_point(|comment| comment.start < middle);
        let (above, below) = comments.split_at(cut);
        let below = below.iter().map(|c| c.start - middle..c.end - middle);
        let tree = &self.tree;
        let upper = tree.slice(
            1..1 + others.len(),
            middle..self.text.len(),
            below.collect(),
        )?;
        let lower = tree.slice(0..1, 0..middle, above.to_vec())?;
        let (head, tail) = self.text.split_at(middle);
        Some((
            Self::known(head.to_owned(), lower, Value::Map(first)),
            Self::known(tail.to_owned(), upper, Value::Map(others)),
        ))
    }

    fn lines(&self) -> Lines<'_> {
        Lines::new(&self.text, self.above)
    }

    /// Where the lines of each entry of the root begin, from 0 on, if each entry can be read without the others:
    /// they are lines of their own, nothing is merged into the root, and nothing refers to anything else.
    pub(super) fn entries(&self) -> Vec<usize> {
        let root = self.tree.root.map(|root| &self.tree.nodes[root].kind);
        let Some(Kind::Map(false, entries)) = root else {
            return Vec::new();
        };
        let is_merge = |id: usize| matches!(self.tree.nodes[id].kind, Kind::Merge);
        if !self.tree.anchors.is_empty() || entries.iter().any(|entry| is_merge(entry.key)) {
            return Vec::new();
        }
        let lines = self.lines();
        let starts = entries.iter().map(|entry| lines.start(entry.start));
        // What stands above the first entry belongs to it.
        std::iter::once(0).chain(starts.skip(1)).collect()
    }

    /// How new lines are to look.
    pub(super) fn layout(&self) -> Layout {
        let lines = self.lines();
        let nodes = &self.tree.nodes;
        let column = |id: usize| lines.column(nodes[id].body);
        // How far below its key each block stands, the first of either kind.
        let below = |is_map: bool| {
            nodes.iter().enumerate().find_map(|(id, node)| {
                let fits = match node.kind {
                    Kind::Map(false, _) => is_map,
                    Kind::Seq(false, _) => !is_map,
                    _ => false,
                };
                let parent = node.parent;
                let is_value = parent != id && matches!(nodes[parent].kind, Kind::Map(false, _));
                (fits && is_value).then(|| column(id).saturating_sub(column(parent)))
            })
        };
        let unit = below(true).filter(|unit| *unit > 0).unwrap_or(2);
        Layout {
            unit,
            dash: below(false).unwrap_or(unit),
            eol: lines.ending(0).unwrap_or("\n"),
            above: None,
        }
    }

    /// The line of the value at a path, from 1.
    pub(super) fn line_of(&self, path: &Path) -> Option<usize> {
        let lines = self.lines();
        let start = self.finder(&lines).start_of(path)?;
        Some(lines.number(start))
    }

    fn finder<'d>(&'d self, lines: &'d Lines<'d>) -> Finder<'d> {
        Finder {
            text: &self.text,
            lines,
            tree: &self.tree,
        }
    }

    /// The text after one change, proved; nothing if the change is none.
    pub(super) fn changed(&self, edit: &Edit, layout: Layout) -> Result<Option<Self>, Refusal> {
        let path = &edit.path();
        let refuse = |reason: String| Refusal::new(self.line_of(path).unwrap_or(0), path, reason);
        let after = intent::after(&self.value, edit).map_err(refuse)?;
        let lines = self.lines();
        let changer = Changer {
            find: self.finder(&lines),
            layout,
            before: &self.value,
            after: &after,
            path,
        };
        let splices = match edit {
            _ if after == self.value => return Ok(None),
            Edit::Set { value, .. } => changer.set(value)?,
            Edit::Append { value, .. } => changer.append(value)?,
            Edit::Remove { .. } => changer.remove()?,
            Edit::Move { from, to } => match to.0.last() {
                Some(name) if intent::same_holder(from, to) => changer.rename(name)?,
                _ => return self.moved(from, to, layout).map(Some),
            },
            Edit::Text { .. } => {
                return Err(refuse("only a text is replaced as a whole".to_owned()));
            }
        };
        self.spliced(splices, &after, Vec::new())
            .map(Some)
            .map_err(refuse)
    }

    /// The text after a move: written at the new place first, so that no mapping is empty in between.
    fn moved(&self, from: &Path, to: &Path, layout: Layout) -> Result<Self, Refusal> {
        let refuse = |reason: String| Refusal::new(self.line_of(from).unwrap_or(0), from, reason);
        let value = self.value.get(from).cloned().unwrap_or(Value::Null);
        let set = Edit::Set {
            path: to.clone(),
            value,
        };
        let after = intent::after(&self.value, &set).map_err(refuse)?;
        let lines = self.lines();
        let changer = Changer {
            find: self.finder(&lines),
            layout,
            before: &self.value,
            after: &after,
            path: to,
        };
        let splices = changer.copy(from)?;
        let carried: usize = splices
            .iter()
            .map(|splice| splice.text.matches('#').count())
            .sum();
        let copies = if carried == 0 {
            Vec::new()
        } else {
            self.comments_of(from)
        };
        let copied = self.spliced(splices, &after, copies).map_err(refuse)?;
        let removed = copied.changed(&Edit::Remove { path: from.clone() }, layout)?;
        removed.ok_or_else(|| refuse("it could not be removed from where it was".to_owned()))
    }

    /// The comments beside and inside the entry at a path.
    fn comments_of(&self, path: &Path) -> Vec<&str> {
        let lines = self.lines();
        let find = self.finder(&lines);
        let Ok(Place::Here(spot)) = find.place(path) else {
            return Vec::new();
        };
        let start = find.start_of(path).unwrap_or(0);
        let end = lines.end(self.tree.nodes[spot.id].range.end.max(start));
        let comments = self.tree.comments_in(&(start..end));
        comments
            .iter()
            .map(|comment| &self.text[comment.clone()])
            .collect()
    }

    /// The text with bytes replaced, if it means `after` and holds every comment that it must:
    /// those that were outside what is replaced, and the `added` ones.
    fn spliced(
        &self,
        mut splices: Splices,
        after: &Value,
        added: Vec<&str>,
    ) -> Result<Self, String> {
        splices.sort_by_key(|splice| (splice.range.start, splice.range.end));
        let mut text = String::with_capacity(self.text.len() + 256);
        let mut at = 0;
        for splice in &splices {
            if splice.range.start < at {
                return Err("the parts to replace overlap".to_owned());
            }
            text.push_str(&self.text[at..splice.range.start]);
            text.push_str(&splice.text);
            at = splice.range.end;
        }
        text.push_str(&self.text[at..]);
        let new = Self::read(text, self.above).map_err(|invalid| {
            format!("it cannot be written in place without doubt ({invalid})")
        })?;
        if new.value != *after {
            return Err(
                "it cannot be written in place: something else would change, too".to_owned(),
            );
        }
        let is_kept = |comment: &&Range<usize>| {
            !splices
                .iter()
                .any(|s| s.range.start <= comment.start && comment.end <= s.range.end)
        };
        let kept = self
            .tree
            .comments
            .iter()
            .filter(is_kept)
            .map(|comment| &self.text[comment.clone()]);
        let mut expected: Vec<&str> = kept.chain(added).collect();
        let mut found: Vec<&str> = new
            .tree
            .comments
            .iter()
            .map(|comment| &new.text[comment.clone()])
            .collect();
        if expected != found {
            expected.sort_unstable();
            found.sort_unstable();
            if expected != found {
                return Err("a comment would be lost".to_owned());
            }
        }
        Ok(new)
    }
}
