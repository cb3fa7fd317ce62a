//! YAML, read as the application reads it, and edited in place.
//!
//! | file | answers |
//! |---|---|
//! | `preflight` | which bytes the loaders do not read alike |
//! | `tree` | where everything stands |
//! | `schema`, `resolve` | what it means, by YAML 1.1 |
//! | `place` | what a path names, as far as it may be edited |
//! | `change`, `emit` | which bytes an edit replaces, by which |
//!
//! This file makes the edit and proves it: the new text is parsed, its meaning must be exactly the one
//! that the edit means, and every comment must be there that did not lie in what was replaced.

mod change;
mod emit;
mod lines;
mod place;
mod preflight;
mod resolve;
mod schema;
mod tree;

use super::{Document, Edit, Invalid, Path, Refusal, Value, intent};
use change::{Changer, Splices};
use emit::Layout;
use lines::Lines;
use place::Finder;
use tree::{Kind, Tree};

/// A YAML document.
#[derive(Debug)]
pub struct Yaml {
    /// The text with its BOM.
    text: String,
    /// The length of the BOM; the tree counts from behind it.
    bom: usize,
    tree: Tree,
    value: Value,
}

impl Yaml {
    /// Reads a document.
    ///
    /// # Errors
    /// When not every loader of the application would read the bytes, and read them alike.
    pub fn parse(bytes: &[u8]) -> Result<Self, Invalid> {
        Self::read(preflight::text(bytes)?.to_owned(), preflight::bom(bytes))
    }

    fn read(text: String, bom: usize) -> Result<Self, Invalid> {
        let body = &text[bom..];
        let lines = Lines::new(body);
        let tree = tree::build(body, &lines)?;
        preflight::tabs(body, &tree, &lines)?;
        let value = resolve::resolve(&tree, &lines)?;
        Ok(Self {
            text,
            bom,
            tree,
            value,
        })
    }

    fn body(&self) -> &str {
        &self.text[self.bom..]
    }

    /// How new lines are to look.
    fn layout(&self) -> Layout {
        let lines = Lines::new(self.body());
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
        }
    }

    /// The document after one change, proved.
    fn changed(&self, edit: &Edit, path: &Path) -> Result<Option<Self>, Refusal> {
        let refuse = |reason: String| {
            let line = self.line_of(&edit.path()).unwrap_or(0);
            Refusal::new(line, path, reason)
        };
        let after = intent::after(&self.value, edit).map_err(refuse)?;
        let lines = Lines::new(self.body());
        let changer = Changer {
            find: Finder {
                text: self.body(),
                lines: &lines,
                tree: &self.tree,
            },
            layout: self.layout(),
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
                _ => return self.moved(from, to).map(Some),
            },
            Edit::Text { .. } => {
                return Err(refuse("only a text is replaced as a whole".to_owned()));
            }
        };
        self.spliced(splices, &after, Vec::new())
            .map(Some)
            .map_err(refuse)
    }

    /// The document after a move: written at the new place first, so that no mapping is empty in between.
    fn moved(&self, from: &Path, to: &Path) -> Result<Self, Refusal> {
        let refuse = |reason: String| Refusal::new(self.line_of(from).unwrap_or(0), from, reason);
        let value = self.value.get(from).cloned().unwrap_or(Value::Null);
        let set = Edit::Set {
            path: to.clone(),
            value,
        };
        let after = intent::after(&self.value, &set).map_err(refuse)?;
        let lines = Lines::new(self.body());
        let changer = Changer {
            find: Finder {
                text: self.body(),
                lines: &lines,
                tree: &self.tree,
            },
            layout: self.layout(),
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
        let removed = copied.changed(&Edit::Remove { path: from.clone() }, from)?;
        removed.ok_or_else(|| refuse("it could not be removed from where it was".to_owned()))
    }

    /// The comments beside and inside the entry at a path.
    fn comments_of(&self, path: &Path) -> Vec<&str> {
        let lines = Lines::new(self.body());
        let find = Finder {
            text: self.body(),
            lines: &lines,
            tree: &self.tree,
        };
        let Ok(place::Place::Here(spot)) = find.place(path) else {
            return Vec::new();
        };
        let start = find.start_of(path).unwrap_or(0);
        let end = lines.end(self.tree.nodes[spot.id].range.end.max(start));
        let comments = self.tree.comments_in(&(start..end));
        comments
            .iter()
            .map(|comment| &self.body()[comment.clone()])
            .collect()
    }

    /// The document with bytes replaced, if it means `after` and holds every comment that it must:
    /// those that were outside what is replaced, and the `added` ones.
    fn spliced(
        &self,
        mut splices: Splices,
        after: &Value,
        added: Vec<&str>,
    ) -> Result<Self, String> {
        splices.sort_by_key(|splice| (splice.range.start, splice.range.end));
        let body = self.body();
        let mut text = String::with_capacity(self.text.len() + 256);
        text.push_str(&self.text[..self.bom]);
        let mut at = 0;
        for splice in &splices {
            if splice.range.start < at {
                return Err("the parts to replace overlap".to_owned());
            }
            text.push_str(&body[at..splice.range.start]);
            text.push_str(&splice.text);
            at = splice.range.end;
        }
        text.push_str(&body[at..]);
        let new = Self::read(text, self.bom).map_err(|invalid| {
            format!("it cannot be written in place without doubt ({invalid})")
        })?;
        if new.value != *after {
            return Err(
                "it cannot be written in place: something else would change, too".to_owned(),
            );
        }
        let is_kept = |comment: &&std::ops::Range<usize>| {
            !splices
                .iter()
                .any(|s| s.range.start <= comment.start && comment.end <= s.range.end)
        };
        let kept = self
            .tree
            .comments
            .iter()
            .filter(is_kept)
            .map(|comment| &body[comment.clone()]);
        let mut expected: Vec<&str> = kept.chain(added).collect();
        let mut found: Vec<&str> = new
            .tree
            .comments
            .iter()
            .map(|comment| &new.body()[comment.clone()])
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

impl Document for Yaml {
    fn value(&self) -> &Value {
        &self.value
    }

    fn bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    fn edit(&mut self, edit: &Edit) -> Result<(), Refusal> {
        if let Some(new) = self.changed(edit, &edit.path())? {
            *self = new;
        }
        Ok(())
    }

    fn line_of(&self, path: &Path) -> Option<usize> {
        let lines = Lines::new(self.body());
        let find = Finder {
            text: self.body(),
            lines: &lines,
            tree: &self.tree,
        };
        find.start_of(path).map(|start| lines.number(start))
    }
}

#[cfg(test)]
mod tests;
