//! Where things stand that the parser does not say, or says otherwise: block scalars, the entries and items of
//! a collection, empty values.

use granit_parser::ScalarStyle;

use super::super::super::super::Invalid;
use super::super::{Entry, Id, Item, Kind};
use super::Builder;

impl Builder<'_> {
    /// Where a block scalar ends, before the line end of its last line: blank lines behind it belong to it
    /// only if it keeps them (`+`).
    pub(super) fn block_end(
        &self,
        header: usize,
        limit: usize,
        indent: usize,
    ) -> Result<usize, Invalid> {
        let bytes = self.text.as_bytes();
        let modifiers = bytes[header + 1..]
            .iter()
            .take_while(|b| matches!(b, b'+' | b'-' | b'0'..=b'9'))
            .count();
        let behind = header + 1 + modifiers;
        let keeps = bytes[header + 1..behind].contains(&b'+');
        let mut end = behind;
        let mut line = self.lines.next(header);
        // The parser's range may end with the indentation of the line that follows.
        while line < bytes.len() && self.lines.end(line) <= limit {
            let text_end = self.lines.end(line);
            let spaces = bytes[line..text_end]
                .iter()
                .take_while(|b| **b == b' ')
                .count();
            // The first line of content sets the indentation, so a tab there counts as one in it.
            if bytes.get(line + spaces) == Some(&b'\t') && (spaces < indent || end == behind) {
                return self.fail(line, "a tab in the indentation of a block of text");
            }
            let is_blank =
                text_end - line <= indent && bytes[line..text_end].iter().all(|b| *b == b' ');
            if keeps || !is_blank {
                end = text_end;
            }
            line = self.lines.next(line);
        }
        Ok(end)
    }

    /// The `|` or `>` of a block scalar whose content starts at `content`: on the line where the node is
    /// introduced, behind which only its modifiers and a comment may stand.
    pub(super) fn header(&self, content: usize, style: ScalarStyle) -> usize {
        let indicator = if style == ScalarStyle::Literal {
            b'|'
        } else {
            b'>'
        };
        let bytes = self.text.as_bytes();
        let floor = self.floor();
        // The first indicator after what was read so far: in between stand only `:`, blanks, properties.
        let ahead = &bytes[floor..content];
        let mut at = 0;
        while at < ahead.len() {
            match ahead[at] {
                byte if byte == indicator => return floor + at,
                b'#' if at == 0 || ahead[at - 1].is_ascii_whitespace() => {
                    at += ahead[at..]
                        .iter()
                        .position(|b| *b == b'\n')
                        .unwrap_or(ahead.len() - at);
                }
                b'!' => {
                    at += ahead[at..]
                        .iter()
                        .position(u8::is_ascii_whitespace)
                        .unwrap_or(ahead.len() - at);
                }
                _ => at += 1,
            }
        }
        content
    }

    /// Behind what was read last.
    fn floor(&self) -> usize {
        let open = match self.open.last() {
            None => return self.tree.start,
            Some(open) => open,
        };
        self.children[open.children..].last().map_or_else(
            || self.tree.nodes[open.id].body,
            |last| self.tree.nodes[*last].range.end,
        )
    }

    /// Corrects where the content of a block collection begins: the parser names the first child.
    pub(super) fn begin_at(&mut self, id: Id, start: usize) {
        let node = &mut self.tree.nodes[id];
        if node.range.start == node.body {
            node.range.start = start;
        }
        node.body = start;
    }

    /// Skips blanks, line ends and comments.
    fn skip(&self, mut at: usize) -> usize {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(at) {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => at += 1,
                b'#' => at = self.lines.end(at),
                _ => break,
            }
        }
        at
    }

    pub(super) fn entry(
        &mut self,
        key: Id,
        value: Id,
        at: usize,
        is_flow: bool,
    ) -> Result<Entry, Invalid> {
        let bytes = self.text.as_bytes();
        let key_range = self.tree.nodes[key].range.clone();
        let mut start = key_range.start;
        let mut lead = self.skip(at);
        if is_flow {
            while matches!(bytes.get(lead), Some(b',' | b'{' | b'[')) && lead < start {
                lead = self.skip(lead + 1);
            }
        }
        if lead < start && bytes.get(lead) == Some(&b'?') {
            start = lead;
        }
        if key_range.is_empty() {
            return self.fail(key_range.start, "a key is empty");
        }
        if start == key_range.start && self.text[key_range.clone()].contains('\n') {
            return self.fail(key_range.start, "a key of more than one line");
        }
        let ahead = self.skip(key_range.end);
        // In a block, a `:` without a blank behind it begins the next key.
        let is_colon = bytes.get(ahead) == Some(&b':')
            && (is_flow || bytes.get(ahead + 1).is_none_or(u8::is_ascii_whitespace));
        let colon = is_colon.then_some(ahead + 1);
        let is_plain = matches!(
            self.tree.nodes[key].kind,
            Kind::Scalar(ScalarStyle::Plain, _)
        );
        if is_flow
            && is_plain
            && matches!(
                colon.and_then(|colon| bytes.get(colon)),
                Some(b',' | b'[' | b']' | b'{' | b'}')
            )
        {
            return self.fail(
                key_range.start,
                "no blank behind a `:` inside brackets, which loaders read differently",
            );
        }
        self.place_empty(value, colon.unwrap_or(key_range.end));
        Ok(Entry {
            start,
            key,
            colon,
            value,
        })
    }

    /// Corrects where an empty value stands, which the parser puts before the colon or behind comments: at
    /// `introduced`, behind its colon or dash, or behind its anchor and tag.
    pub(super) fn place_empty(&mut self, value: Id, introduced: usize) {
        let node = &self.tree.nodes[value];
        if node.body != node.range.end || !matches!(node.kind, Kind::Scalar(ScalarStyle::Plain, _))
        {
            return;
        }
        let bytes = self.text.as_bytes();
        let has_properties = node.anchor > 0 || node.tagged;
        let start = if has_properties {
            node.range.start
        } else {
            introduced
        };
        let mut end = start;
        let mut at = start;
        while has_properties && matches!(bytes.get(at), Some(b'&' | b'!')) {
            let ends_it = |b: &u8| b.is_ascii_whitespace() || matches!(b, b',' | b']' | b'}');
            end = at
                + bytes[at..]
                    .iter()
                    .position(ends_it)
                    .unwrap_or(bytes.len() - at);
            at = end + bytes[end..].iter().take_while(|b| **b == b' ').count();
        }
        let node = &mut self.tree.nodes[value];
        node.range = start..end;
        node.body = end;
    }

    /// Behind the last byte of what a collection holds next, from `start` to `end`; refused where that is not behind
    /// what it holds before, which ends at `at`: an edit would cut one of the two.
    pub(super) fn follows(&self, at: usize, start: usize, end: usize) -> Result<usize, Invalid> {
        if start < at || end < start || !self.text.is_char_boundary(end) {
            return self.fail(start, "where this ends is not certain");
        }
        Ok(end)
    }

    pub(super) fn item(&self, value: Id, at: Option<usize>, is_flow: bool) -> Item {
        let range = &self.tree.nodes[value].range;
        if is_flow {
            return Item {
                start: range.start,
                value,
            };
        }
        let bytes = self.text.as_bytes();
        let start = match at {
            Some(at) => self.skip(at),
            // Before the first item stand only its dash, blanks and comments.
            None => self.first_dash(range.start),
        };
        debug_assert_eq!(bytes.get(start), Some(&b'-'));
        Item { start, value }
    }

    /// The dash of a sequence's first item, whose value starts at `value`.
    fn first_dash(&self, value: usize) -> usize {
        let bytes = self.text.as_bytes();
        let mut end = value;
        loop {
            let line = self.lines.start(end);
            let comment = self.comment_before(line, end);
            let before = &bytes[line..comment.unwrap_or(end)];
            if let Some(dash) = before.iter().rposition(|b| !b.is_ascii_whitespace()) {
                return line + dash;
            }
            if line == 0 {
                return value;
            }
            end = line - 1;
        }
    }
}
