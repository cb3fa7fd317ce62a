//! Bytes on which the loaders of YAML 1.1 differ from each other or from YAML 1.2, refused beforehand.
//!
//! What is left after these checks, PyYAML's pure loader, its C loader and ruamel.yaml read alike.

use super::super::Invalid;
use super::lines::Lines;
use super::tree::Tree;

/// The byte order mark in UTF-8.
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Bytes that are looked at together.
const STRETCH: usize = 64;

/// The length of the BOM in front, if there is one.
pub(super) fn bom(bytes: &[u8]) -> usize {
    if bytes.starts_with(BOM) { BOM.len() } else { 0 }
}

/// Reads the bytes as text: UTF-8, a BOM only in front, no control characters, no line end that is one to
/// YAML 1.1 only.
pub(super) fn text(bytes: &[u8]) -> Result<&str, Invalid> {
    let body = &bytes[bom(bytes)..];
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()]
            .iter()
            .filter(|b| **b == b'\n')
            .count();
        Invalid::new(line, "not UTF-8")
    })?;
    match forbidden(body) {
        Some((at, reason)) => Err(Invalid::new(
            Lines::new(&text[bom(bytes)..], 0).number(at),
            reason,
        )),
        None => Ok(text),
    }
}

/// The first byte that no loader, or not every one, takes.
fn forbidden(bytes: &[u8]) -> Option<(usize, &'static str)> {
    // Of the bytes that begin something forbidden none is a common one.
    let is_suspect = |byte: &u8| matches!(byte, 0..=8 | 0x0B..=0x1F | 0x7F | 0xC2 | 0xE2 | 0xEF);
    // Without a branch a byte, so that many are looked at together.
    let has_one = |stretch: &[u8]| {
        stretch
            .iter()
            .fold(false, |any, byte| any | is_suspect(byte))
    };
    let suspects = bytes
        .chunks(STRETCH)
        .enumerate()
        .filter(|(_, stretch)| has_one(stretch))
        .flat_map(|(number, stretch)| (number * STRETCH..).zip(stretch))
        .filter(|(_, byte)| is_suspect(byte));
    for (at, byte) in suspects {
        let reason = match (byte, &bytes[at + 1..]) {
            (b'\r', [b'\n', ..]) => continue,
            (b'\r', _) => "a carriage return that ends no line",
            (0..=0x1F | 0x7F, _) => "a control character",
            (0xC2, [0x85, ..]) | (0xE2, [0x80, 0xA8 | 0xA9, ..]) => {
                "a Unicode line end, which only some loaders hold for one"
            }
            (0xC2, [0x80..=0x9F, ..]) => "a control character",
            (0xEF, [0xBB, 0xBF, ..]) => "a byte order mark inside the text",
            (0xEF, [0xBF, 0xBE | 0xBF, ..]) => "a character that no text may hold",
            _ => continue,
        };
        return Some((at, reason));
    }
    None
}

/// Refuses tabs outside quoted text, block text and comments: only the C loader takes them.
pub(super) fn tabs(text: &str, tree: &Tree, lines: &Lines<'_>) -> Result<(), Invalid> {
    let is_inside = |ranges: &[std::ops::Range<usize>], at: usize| {
        let next = ranges.partition_point(|range| range.start <= at);
        next > 0 && at < ranges[next - 1].end
    };
    let tab = text
        .match_indices('\t')
        .find(|(at, _)| !is_inside(&tree.opaque, *at) && !is_inside(&tree.comments, *at));
    match tab {
        Some((at, _)) => Err(Invalid::new(
            lines.number(at),
            "a tab, which not every loader takes there",
        )),
        None => Ok(()),
    }
}
