//! Writes what one place holds at another, as it is written, re-indented; the caller removes it from the first.

use std::ops::Range;

use granit_parser::ScalarStyle;

use super::super::super::{Path, Refusal, Value};
use super::super::emit;
use super::super::place::{Place, Spot};
use super::super::tree::Kind;
use super::{Changed, Changer};

impl Changer<'_> {
    /// Writes what another place holds at the path, as it is written there.
    pub(in super::super) fn copy(&self, from: &Path) -> Changed {
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
}
