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
//! An edit is made on the entries of the root that it touches, and on no others: their lines are read as a
//! document of their own, edited, and read again. The meaning must be exactly the one that the edit means, and
//! every comment must be there that did not lie in what was replaced. So an edit costs what its entries are
//! long, not what the file is. [`Document::prove`] then says the same of all bytes and of all edits at once.
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

use super::{Document, Edit, Invalid, Key, Path, Refusal, Scalar, Value};
use emit::Layout;
use lines::Lines;
use part::Part;

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
    /// Where the lines of each entry of the root begin; none if they are not told apart.
    entries: Vec<usize>,
    /// Whether all bytes were read together since the last edit.
    is_proved: bool,
}

impl Yaml {
    /// Reads a document.
    ///
    /// # Errors
    /// When not every loader of the application would read the bytes, and read them alike.
    pub fn parse(bytes: &[u8]) -> Result<Self, Invalid> {
        let bom = preflight::bom(bytes);
        let text = preflight::text(bytes)?;
        let part = Part::read(text[bom..].to_owned(), 0)?;
        Ok(Self::of(part, &text[..bom]))
    }

    /// The document that a part is all of.
    fn of(part: Part, bom: &str) -> Self {
        Self {
            layout: part.layout(),
            entries: part.entries(),
            bom: bom.len(),
            text: if bom.is_empty() {
                part.text
            } else {
                format!("{bom}{}", part.text)
            },
            value: part.value,
            comments: part.tree.comments,
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
        let start_of = |entry: usize| self.entries.get(entry).copied();
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

    /// Puts an edited part in the place of its entries.
    fn put(&mut self, run: Range<usize>, part: Part) {
        let old = self.lines_of(&run);
        let end = old.start + part.text.len();
        let moved = |at: usize| at - old.end + end;
        let inside = |starts: &[usize]| {
            starts.partition_point(|at| *at < old.start)..starts.partition_point(|at| *at < old.end)
        };
        let starts: Vec<usize> = self.comments.iter().map(|comment| comment.start).collect();
        let within = inside(&starts);
        for comment in &mut self.comments[within.end..] {
            *comment = moved(comment.start)..moved(comment.end);
        }
        let shifted = |range: &Range<usize>| range.start + old.start..range.end + old.start;
        self.comments
            .splice(within, part.tree.comments.iter().map(shifted));
        for start in &mut self.entries[run.end..] {
            *start = moved(*start);
        }
        let entries = part.entries();
        if entries.is_empty() {
            self.entries.clear();
        } else {
            let entries = entries.iter().map(|start| start + old.start);
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
        if run.len() < self.entries.len()
            && let Some(part) = self.part(&run)
        {
            if let Some(new) = part.changed(edit, self.layout_of(&run))? {
                self.put(run, new);
            }
            return Ok(());
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
        let read = Self::parse(self.text.as_bytes())?;
        if read.value != self.value {
            return Err(Invalid::new(0, "the edits together mean something else"));
        }
        if read.comments != self.comments {
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
