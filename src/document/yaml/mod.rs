//! YAML, read as the application reads it, and edited in place.
//!
//! | file | answers |
//! |---|---|
//! | `preflight` | which bytes the loaders do not read alike |
//! | `tree` | where everything stands |
//! | `schema`, `resolve` | what it means, by YAML 1.1 |
//! | `place` | what a path names, as far as it may be edited |
//! | `change`, `emit` | which bytes an edit replaces, by which |
//! | `part` | the text after an edit, proved |
//!
//! An edit is made on the entries of the root that it touches, and on no others: where things stand in them is
//! known since they were read last, and their new lines are read as a document of their own. The meaning must be
//! exactly the one that the edit means, and every comment must be there that did not lie in what was replaced. So
//! an edit costs what its entries are long, not what the file is. [`Document::prove`] then says the same of all
//! bytes and of all edits at once.
//! Where entries cannot be told apart (an alias, a root in flow style), the whole text is the one part.

mod change;
mod emit;
mod lines;
mod part;
mod place;
mod preflight;
mod resolve;
mod schema;
mod tree;

use std::ops::Range;
use std::sync::Arc;

use super::{Document, Edit, Invalid, Key, Path, Refusal, Scalar, Value};
use emit::Layout;
use lines::Lines;
use part::Part;
use tree::Tree;

/// A YAML document.
#[derive(Debug)]
pub struct Yaml {
    /// The text with its BOM; all places below count from behind the BOM.
    text: String,
    /// The length of the BOM.
    bom: usize,
    value: Value,
    /// As it was read, whatever was edited since.
    layout: Layout,
    comments: Vec<Range<usize>>,
    /// The entries of the root; none if they are not told apart.
    entries: Vec<Entry>,
    /// Whether all bytes were read together since the last edit.
    is_proved: bool,
}

/// An entry of the root.
#[derive(Debug)]
struct Entry {
    /// Where its lines begin.
    start: usize,
    /// What it was read with last: the document, or the entries of one edit.
    read: Arc<Read>,
    /// Which entry it was there.
    position: usize,
}

/// A tree that was read, without its comments.
#[derive(Debug)]
struct Read {
    tree: Tree,
    /// Where the lines of each entry began.
    starts: Vec<usize>,
}

impl Entry {
    /// The entries of a tree that was just read, whose lines begin at `starts`, and now `above` bytes below.
    fn all(tree: Tree, starts: Vec<usize>, above: usize) -> Vec<Self> {
        let read = Arc::new(Read { tree, starts });
        let starts = read.starts.iter().enumerate();
        starts
            .map(|(position, start)| Self {
                start: start + above,
                read: Arc::clone(&read),
                position,
            })
            .collect()
    }
}

impl Yaml {
    /// Reads a document.
    ///
    /// # Errors
    /// When not every loader of the application would read the bytes, and read them alike.
    pub fn parse(bytes: &[u8]) -> Result<Self, Invalid> {
        let (bom, part) = Self::read(bytes)?;
        Ok(Self::of(part, bom))
    }

    /// The BOM of a text, and what it says behind it.
    fn read(bytes: &[u8]) -> Result<(&str, Part), Invalid> {
        let (bom, body) = preflight::text(bytes)?.split_at(preflight::bom(bytes));
        Ok((bom, Part::read(body.to_owned(), 0)?))
    }

    /// The document that a part is all of.
    fn of(part: Part, bom: &str) -> Self {
        let (layout, starts) = (part.layout(), part.entries());
        let mut tree = part.tree;
        Self {
            layout,
            comments: std::mem::take(&mut tree.comments),
            entries: Entry::all(tree, starts, 0),
            bom: bom.len(),
            text: if bom.is_empty() {
                part.text
            } else {
                format!("{bom}{}", part.text)
            },
            value: part.value,
            is_proved: true,
        }
    }

    fn body(&self) -> &str {
        &self.text[self.bom..]
    }

    /// The entries of the root that an edit touches: those that its paths lead into, for a new one the last one,
    /// and beside one that goes another one, because an empty mapping is written differently.
    fn touched(&self, edit: &Edit) -> Range<usize> {
        let all = 0..self.entries.len();
        let goes = match edit {
            Edit::Remove { path } => path.0.len() == 1,
            Edit::Move { from, .. } => from.0.len() == 1,
            _ => false,
        };
        let mut run = match self.entry_of(edit.path().0.first()) {
            Some(entry) if goes => entry.saturating_sub(1)..(entry + 1 + usize::from(entry == 0)),
            Some(entry) => entry..entry + 1,
            None => return all,
        };
        if let Edit::Move { to, .. } = edit {
            let Some(entry) = self.entry_of(to.0.first()) else {
                return all;
            };
            run = run.start.min(entry)..run.end.max(entry + 1);
        }
        run.start..run.end.min(all.end)
    }

    /// The entry of the root that a path leads into; for a new one the last one, which it follows.
    fn entry_of(&self, key: Option<&Key>) -> Option<usize> {
        let (key, last) = (key?, self.entries.len().checked_sub(1)?);
        let found = self
            .value
            .as_map()?
            .iter()
            .position(|(own, _)| own.is_key(key));
        Some(found.unwrap_or(last))
    }

    /// The bytes of some entries.
    fn lines_of(&self, run: &Range<usize>) -> Range<usize> {
        let start_of = |entry: usize| self.entries.get(entry).map(|entry| entry.start);
        start_of(run.start).unwrap_or(0)..start_of(run.end).unwrap_or(self.body().len())
    }

    /// How new lines are to look in some entries.
    fn layout_of(&self, run: &Range<usize>) -> Layout {
        let body = self.body();
        let above = self.lines_of(run).start.checked_sub(1);
        Layout {
            above: above.and_then(|feed| Lines::new(body, 0).ending(feed)),
            ..self.layout
        }
    }

    /// Some entries as a part, as they were read together last. What is made of it is read by itself. Its lines
    /// are counted from its own first one.
    fn known(&self, run: &Range<usize>) -> Option<Part> {
        let own = self.entries.get(run.clone())?;
        let first = own.first()?;
        let is_next = |pair: &[Entry]| {
            Arc::ptr_eq(&pair[0].read, &pair[1].read) && pair[1].position == pair[0].position + 1
        };
        let Value::Map(values) = &self.value else {
            return None;
        };
        if !own.windows(2).all(is_next) {
            return None;
        }
        let bytes = self.lines_of(run);
        let comments = self.comments[self.comments_in(&bytes)].iter();
        let comments = comments.map(|c| c.start - bytes.start..c.end - bytes.start);
        let places = first.position..first.position + own.len();
        let read = &first.read;
        let start = *read.starts.get(places.start)?;
        let lines = start..start + bytes.len();
        let tree = read.tree.slice(places, lines, comments.collect())?;
        let value = Value::Map(values.get(run.clone())?.to_vec());
        let text = self.body()[bytes.clone()].to_owned();
        Some(Part::known(text, tree, value))
    }

    /// Which comments stand in some bytes.
    fn comments_in(&self, bytes: &Range<usize>) -> Range<usize> {
        let before = |end: usize| self.comments.partition_point(|comment| comment.start < end);
        before(bytes.start)..before(bytes.end)
    }

    /// Some entries as a part, if their lines mean by themselves what they mean in the document.
    fn part(&self, run: &Range<usize>) -> Option<Part> {
        let bytes = self.lines_of(run);
        let above = self.body()[..bytes.start].matches('\n').count();
        let part = Part::read(self.body()[bytes].to_owned(), above).ok()?;
        let is_same = match (&part.value, &self.value) {
            (Value::Map(own), Value::Map(all)) => all.get(run.clone()) == Some(own),
            _ => false,
        };
        is_same.then_some(part)
    }

    /// The whole text as a part.
    fn whole(&self) -> Result<Part, Invalid> {
        Part::read(self.body().to_owned(), 0)
    }

    /// A move between two entries with others between them, made on the lines of the two alone; nothing where it
    /// cannot be made so.
    fn moved_between(&self, edit: &Edit) -> Option<[(Range<usize>, Part); 2]> {
        let (Edit::Move { from, to }, Value::Map(values)) = (edit, &self.value) else {
            return None;
        };
        let (from_entry, to_entry) = (self.entry_of(from.0.first())?, self.entry_of(to.0.first())?);
        let (low, high) = (from_entry.min(to_entry), from_entry.max(to_entry));
        if from.0.len() == 1 || high - low < 2 {
            return None;
        }
        let (low, high) = (low..low + 1, high..high + 1);
        let lines = |run: &Range<usize>| &self.body()[self.lines_of(run)];
        let part = Part::read(format!("{}{}", lines(&low), lines(&high)), 0).ok()?;
        let (first, second) = (values.get(low.start)?, values.get(high.start)?);
        if part.value != Value::Map(vec![first.clone(), second.clone()]) {
            return None;
        }
        let (lower, upper) = part.changed(edit, self.layout_of(&low)).ok()??.split()?;
        // A key that is new stands behind the last entry.
        let is_first = |part: &Part, key: &Value| {
            let entries = part.value.as_map();
            entries
                .and_then(<[_]>::first)
                .is_some_and(|(own, _)| own == key)
        };
        let stays = is_first(&lower, &first.0) && is_first(&upper, &second.0);
        stays.then_some([(high, upper), (low, lower)])
    }

    /// Puts an edited part in the place of its entries.
    fn put(&mut self, run: Range<usize>, part: Part) {
        let old = self.lines_of(&run);
        let end = old.start + part.text.len();
        let moved = |at: usize| at - old.end + end;
        let within = self.comments_in(&old);
        for comment in &mut self.comments[within.end..] {
            *comment = moved(comment.start)..moved(comment.end);
        }
        let starts = part.entries();
        let mut tree = part.tree;
        let comments = std::mem::take(&mut tree.comments).into_iter();
        self.comments.splice(
            within,
            comments.map(|range| range.start + old.start..range.end + old.start),
        );
        if starts.is_empty() {
            self.entries.clear();
        } else {
            for entry in &mut self.entries[run.end..] {
                entry.start = moved(entry.start);
            }
            let entries = Entry::all(tree, starts, old.start);
            self.entries.splice(run.clone(), entries);
        }
        if let (Value::Map(all), Value::Map(own)) = (&mut self.value, part.value) {
            all.splice(run, own);
        }
        self.text
            .replace_range(self.bom + old.start..self.bom + old.end, &part.text);
        self.is_proved = false;
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
        let run = self.touched(edit);
        if let Some(parts) = self.moved_between(edit) {
            // The lower one first, so that the other one's place is still the same.
            for (run, part) in parts {
                self.put(run, part);
            }
            return Ok(());
        }
        if run.len() < self.entries.len() {
            let layout = self.layout_of(&run);
            // What cannot be made of what is known is refused only after the lines were read by themselves.
            let known = self.known(&run);
            let made = known.and_then(|part| part.changed(edit, layout).ok());
            let made = match made {
                Some(made) => Some(made),
                None => match self.part(&run) {
                    Some(part) => Some(part.changed(edit, layout)?),
                    None => None,
                },
            };
            if let Some(made) = made {
                if let Some(new) = made {
                    self.put(run, new);
                }
                return Ok(());
            }
        }
        let part = self
            .whole()
            .map_err(|invalid| Refusal::new(invalid.line, &edit.path(), invalid.reason))?;
        if let Some(new) = part.changed(edit, self.layout)? {
            *self = Self {
                layout: self.layout,
                ..Self::of(new, &self.text[..self.bom])
            };
        }
        Ok(())
    }

    fn prove(&self) -> Result<(), Invalid> {
        if self.is_proved {
            return Ok(());
        }
        let (_, read) = Self::read(self.text.as_bytes())?;
        if read.value != self.value {
            return Err(Invalid::new(0, "the edits together mean something else"));
        }
        if read.tree.comments != self.comments {
            return Err(Invalid::new(0, "a comment would be lost"));
        }
        Ok(())
    }

    fn line_of(&self, path: &Path) -> Option<usize> {
        let entry = self.entry_of(path.0.first());
        let part = entry.and_then(|entry| self.part(&(entry..entry + 1)));
        part.or_else(|| self.whole().ok())?.line_of(path)
    }

    fn scalars(&self) -> Result<Vec<Scalar>, Invalid> {
        let mut found = self.whole()?.tree.scalars();
        for scalar in &mut found {
            scalar.at = scalar.at.start + self.bom..scalar.at.end + self.bom;
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests;
