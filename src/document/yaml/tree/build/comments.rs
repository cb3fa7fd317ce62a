//! Finds the comments of a text whose scalars are known.
//!
//! A `#` begins one unless it stands in a scalar: an anchor or a tag that may be read holds none. The parser can be
//! built to tell them; reading takes a tenth longer if it is, and a sixth to a half if it does.

use std::ops::Range;

use super::Builder;

impl Builder<'_> {
    /// Every comment, from its `#` to the end of its line, in order; all scalars must have been read.
    pub(super) fn comments(&self) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        // Both are in order.
        let (mut opaque, mut hashes) = (&self.tree.opaque[..], &self.hashes[..]);
        let mut at = 0;
        while let Some(next) = self.text[at..].find('#') {
            let hash = at + next;
            at = match inside(&mut opaque, hash).or_else(|| inside(&mut hashes, hash)) {
                Some(end) => end,
                None => {
                    let line = &self.text[hash..];
                    let line = &line[..line.find('\n').unwrap_or(line.len())];
                    let end = hash + line.strip_suffix('\r').unwrap_or(line).len();
                    found.push(hash..end);
                    end
                }
            };
        }
        found
    }

    /// The first comment on the line that begins at `line`, before `end`, as far as scalars were read.
    pub(super) fn comment_before(&self, line: usize, end: usize) -> Option<usize> {
        let is_inside = |at: usize| {
            let known = self.tree.opaque.iter().chain(&self.hashes).rev();
            known
                .take_while(|range| range.end > line)
                .any(|range| range.contains(&at))
        };
        let hashes = self.text[line..end].match_indices('#');
        hashes.map(|(at, _)| line + at).find(|at| !is_inside(*at))
    }
}

/// Where the range ends that holds `at`, if one does; those before it are left behind.
fn inside(ranges: &mut &[Range<usize>], at: usize) -> Option<usize> {
    while let Some((first, rest)) = ranges.split_first() {
        if at < first.end {
            return (first.start <= at).then_some(first.end);
        }
        *ranges = rest;
    }
    None
}
