//! Replaces a value by another: in flow style, on the line of its key, or by lines of its own.

use std::ops::Range;

use granit_parser::ScalarStyle;

use super::super::super::Value;
use super::super::emit::{self, Layout};
use super::super::place::Spot;
use super::super::tree::{Id, Kind};
use super::{Changed, Changer, splice};

impl Changer<'_> {
    /// Replaces a value.
    pub(super) fn replace(&self, spot: Spot, value: &Value) -> Changed {
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
    pub(super) fn introduced(&self, spot: Spot) -> usize {
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
        if is_item && (!self.find.tree.is_block(spot.id) || self.is_compact(spot.id)) {
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
}
