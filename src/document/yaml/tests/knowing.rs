//! What is known without asking the parser again is what it would say.

use std::ops::Range;

use super::*;

/// Texts of a few such pieces are often YAML, and seldom what anybody would write.
const PIECES: &[&str] = &[
    "a: ",
    "b: ",
    "c:",
    "d-e: ",
    "\"q # r\": ",
    "'it''s #': ",
    "? k\n: ",
    "? m\n:: ",
    "- ",
    "-\n",
    "  ",
    " ",
    "\n",
    "\n",
    "\n",
    "\n\n",
    "\r\n",
    "1",
    "word",
    "x#y",
    "#",
    " # note",
    "# 'note",
    " #\t\"",
    "\"two\n  # lines\"",
    "'#'",
    "''",
    "|\n  # text\n  more\n",
    "| # head\n  text\n",
    ">-\n  folded\n\n  # text\n",
    "|+\n  kept\n\n",
    "|\n",
    "[",
    "]",
    "{",
    "}",
    ", ",
    "{x: 1}",
    "[1, two] ",
    "[a,\n  # in\n  b]",
    "!!str ",
    "!!map ",
    "~",
    "plain words\n  that go on",
    "a b#c # d",
    "---\n",
    "...\n",
    "  e: 1\n",
    "  - f\n",
    "    g: 'h'\n",
    "<<: ",
    "é",
    "http://x/#y",
];

/// Some text for a number.
fn text(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = |limit: usize| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        usize::try_from(state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33).expect("31 bits") % limit
    };
    let mut text = String::new();
    for _ in 0..1 + next(4) {
        // Half of the lines begin as an entry of the root does.
        let keys = ["k: ", "l:\n  m: ", "n:\n  - ", "", "", ""];
        text += &keys[next(keys.len())].replacen('k', &"kopqrst"[next(7)..][..1], 1);
        for _ in 0..next(5) {
            text += PIECES[next(PIECES.len())];
        }
        text += "\n";
    }
    text
}

/// All that a part knows but its number of lines. Of block text without a word the parser tells different places.
fn shown(part: Part) -> String {
    let Part {
        text,
        mut tree,
        value,
        ..
    } = part;
    let is_word = |c: char| !c.is_whitespace() && !matches!(c, '|' | '>' | '+' | '-');
    tree.opaque
        .retain(|range| text[range.clone()].contains(is_word));
    format!("{tree:?} {value:?} {text:?}")
}

/// The bytes of every `#` of a text.
fn hashes(text: &str) -> impl Iterator<Item = usize> {
    text.match_indices('#').map(|(at, _)| at)
}

/// The text with other bytes in a range.
fn replaced(text: &str, range: &Range<usize>, with: &str) -> String {
    format!("{}{with}{}", &text[..range.start], &text[range.end..])
}

#[test]
fn what_comments_say_means_nothing_and_every_other_hash_does() {
    let (mut comments, mut others) = (0, 0);
    for seed in 0..40_000 {
        let text = text(seed);
        let Ok(document) = Yaml::parse(text.as_bytes()) else {
            continue;
        };
        let means_the_same = |changed: &str| {
            Yaml::parse(changed.as_bytes()).is_ok_and(|changed| changed.value == document.value)
        };
        for comment in &document.comments {
            let said = &text[comment.clone()];
            assert!(said.starts_with('#') && !said.contains('\n'), "{text:?}");
            let changed = replaced(&text, comment, "# 'other\" words: [");
            assert!(means_the_same(&changed), "{said:?} of {text:?}");
        }
        comments += document.comments.len();
        let is_inside = |at: &usize| document.comments.iter().any(|c| c.contains(at));
        for at in hashes(&text).filter(|at| !is_inside(at)) {
            let changed = replaced(&text, &(at..at + 1), "x");
            assert!(!means_the_same(&changed), "{at} of {text:?}");
            others += 1;
        }
    }
    assert!(comments > 1_000 && others > 1_000, "{comments}, {others}");
}

#[test]
fn a_comment_above_the_header_of_empty_block_text_is_one() {
    let text = "a:\n\nb:\n  #\n \n\n | #\n \n\nc:\n | #\n \n\n";
    let mut document = Yaml::parse(text.as_bytes()).unwrap();
    let all: Vec<_> = hashes(text).map(|at| at..at + 1).collect();
    assert_eq!(document.comments, all);
    for edit in [
        set("a", "\"yes\""),
        set("d.e", "1"),
        remove("a"),
        append("a", "1"),
        moved("a", "f.g"),
    ] {
        document.edit(&edit).unwrap();
        document.prove().unwrap();
    }
}

#[test]
fn entries_that_are_known_are_those_that_would_be_read() {
    let mut compared = 0;
    for seed in 0..40_000 {
        let text = text(seed);
        let Ok(document) = Yaml::parse(text.as_bytes()) else {
            continue;
        };
        let count = document.entries.len();
        for start in 0..count {
            for end in start + 1..=count {
                let run = start..end;
                // What does not mean the same by itself is never known to.
                let (Some(known), Some(read)) = (document.known(&run), document.part(&run)) else {
                    continue;
                };
                assert_eq!(shown(known), shown(read), "{run:?} of {text:?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 1_000, "only {compared} were compared");
}

#[test]
fn what_is_known_after_an_edit_is_what_would_be_read() {
    let text = "# head\na: 1\nb:\n  c: x#y # note\n  d: |\n    # text\ne: [1, 2]\nf: {g: 'h'}\n";
    let mut document = Yaml::parse(text.as_bytes()).unwrap();
    let edits = [
        set("b.c", "\"longer than before\""),
        set("e", "3"),
        set("new.key", "true"),
        moved("b.d", "f.d"),
        moved("f.g", "later.g"),
        moved("later.g", "b.g"),
        remove("a"),
        append("list", "1"),
        remove("b"),
    ];
    for edit in edits {
        document.edit(&edit).unwrap();
        let count = document.entries.len();
        for run in (0..count).flat_map(|start| (start + 1..=count).map(move |end| start..end)) {
            let Some(known) = document.known(&run) else {
                continue;
            };
            let read = document.part(&run).expect("it stands alone");
            assert_eq!(shown(known), shown(read), "{edit:?}");
        }
        let known = (0..count).filter(|entry| document.known(&(*entry..entry + 1)).is_some());
        assert_eq!(known.count(), count, "{edit:?}");
    }
    document.prove().unwrap();
}

#[test]
fn a_move_leaves_what_stands_between_alone() {
    let between = "b: 1   # one\n\n# two\nc: {d: 'e'}\n";
    check(&[
        (
            &format!("a:\n  x: 1  # x\n  y: 2\n{between}z:\n  w: 3"),
            moved("a.x", "z.x"),
            &format!("a:\n  y: 2\n{between}z:\n  w: 3\n  x: 1  # x"),
        ),
        (
            &format!("a:\n  x: 1\n# above\n{between}z:\n  w: 3  # w\n# last\n"),
            moved("z.w", "a.w"),
            &format!("a:\n  x: 1\n  w: 3  # w\n# above\n{between}z: {{}}\n# last\n"),
        ),
        (
            &format!("a:\n  x: 1\n{between}z:\n  w: 3\n"),
            moved("a.x", "new.x"),
            &format!("a: {{}}\n{between}z:\n  w: 3\nnew:\n  x: 1\n"),
        ),
    ]);
}
