//! Removes an entry or item with what stands beside it; comments on lines of their own stay.

use super::super::super::Refusal;
use super::super::place::{Place, Spot};
use super::super::tree::{Id, Kind};
use super::{Changed, Changer, splice};

impl Changer<'_> {
    /// Removes an entry or item.
    pub(in super::super) fn remove(&self) -> Changed {
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
