//! The lines of a document as they may be shown: the same lines, with its secrets masked in their places.
//!
//! A value is masked as a whole, wherever its bytes stand and however they are quoted, if its key or its
//! shape makes it a secret, or if it is one of the values that are handed in. What stands between values
//! (keys, comments, a text without structure) is masked by shape. What cannot be read is not shown at all.

use std::ops::Range;

use super::{Path, Scalar, Value, parse};
use crate::app::Format;
use crate::screen::{self, MASK};

/// The values that a document's keys make secrets, where they could tell anything: what it repeats
/// elsewhere is one there, too.
#[must_use]
pub fn secrets(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(value, &Path::root(), &mut found);
    found
}

fn collect(value: &Value, path: &Path, found: &mut Vec<String>) {
    match value {
        Value::Map(entries) => {
            for (key, value) in entries {
                collect(value, &path.child(key.to_key()), found);
            }
        }
        Value::List(items) => {
            for (index, value) in items.iter().enumerate() {
                collect(value, &path.index(index), found);
            }
        }
        Value::Null | Value::Bool(_) => {}
        scalar => {
            if screen::json(&path.to_string(), &scalar.to_json()) == MASK {
                found.push(scalar.key_text());
            }
        }
    }
}

/// A text whose lines are to be shown. A line is looked at only when it is asked for: of a long text a diff
/// shows few.
#[derive(Debug)]
pub struct Shown<'a> {
    format: Format,
    text: &'a str,
    secrets: &'a [String],
    /// Where each line begins.
    starts: Vec<usize>,
    /// In the order of the text; none if it cannot be read.
    scalars: Option<Vec<Scalar>>,
}

impl<'a> Shown<'a> {
    /// A text in which these values are secrets, whatever their keys and shapes are.
    #[must_use]
    pub fn new(format: Format, text: &'a str, secrets: &'a [String]) -> Self {
        let document = parse(format, text.as_bytes());
        let mut starts = vec![0];
        starts.extend(text.match_indices('\n').map(|(at, _)| at + 1));
        Self {
            format,
            text,
            secrets,
            starts,
            scalars: document.and_then(|document| document.scalars()).ok(),
        }
    }

    /// A line, from 0, with its line end; empty behind the last one.
    #[must_use]
    pub fn line(&self, index: usize) -> String {
        let start_of = |index: usize| self.starts.get(index).copied();
        let start = start_of(index).unwrap_or(self.text.len());
        let whole = start..start_of(index + 1).unwrap_or(self.text.len());
        let (body, end) = split_end(&self.text[whole]);
        let Some(scalars) = &self.scalars else {
            return hidden(body) + end;
        };
        // They do not overlap: those that ended above are all before those that did not.
        let first = scalars.partition_point(|scalar| scalar.at.end < start);
        let range = start..start + body.len();
        let within = scalars[first..]
            .iter()
            .take_while(|scalar| scalar.at.start <= range.end);
        self.show(&range, within) + end
    }

    /// The bytes of a line, with those of its values masked that are secrets.
    fn show<'s>(&self, line: &Range<usize>, values: impl Iterator<Item = &'s Scalar>) -> String {
        let mut shown = String::new();
        let mut at = line.start;
        let mut holds_value = false;
        for value in values {
            holds_value = true;
            let from = value.at.start.clamp(at, line.end);
            let to = value.at.end.clamp(from, line.end);
            shown.push_str(&self.between(&self.text[at..from]));
            let own = &self.text[from..to];
            if self.is_secret(value) {
                shown.push_str(&hidden(own));
            } else {
                shown.push_str(own);
            }
            at = to;
        }
        let rest = &self.text[at..line.end];
        // A line of variables that sets none may still be what is left of one.
        if self.format == Format::Env && !holds_value && !rest.trim_start().starts_with('#') {
            return hidden(rest);
        }
        shown + &self.between(rest)
    }

    /// Whether a value must not be shown: by its key, by what it means or by how it is written.
    fn is_secret(&self, scalar: &Scalar) -> bool {
        let value = scalar.value.to_json();
        let text = scalar.value.key_text();
        let written = &self.text[scalar.at.clone()];
        screen::json(&scalar.path.to_string(), &value) != value
            || screen::without(self.secrets, &text) != text
            || screen::text(&screen::without(self.secrets, written)) != written
    }

    /// What stands beside values: in a document keys and signs up to a comment, in a text all of it.
    fn between(&self, text: &str) -> String {
        let text = screen::without(self.secrets, text);
        let comment = match self.format {
            Format::Text => 0,
            _ => text.find('#').unwrap_or(text.len()),
        };
        let (signs, comment) = text.split_at(comment);
        let mut shown = String::new();
        let mut rest = signs;
        while let Some(end) = end_of_key(rest) {
            shown.push_str(&screen::text(&rest[..end]));
            rest = &rest[end..];
        }
        shown.push_str(&screen::text(rest));
        let comment = screen::text(comment);
        // A variable that is commented out keeps its value.
        match comment.find('=').filter(|_| self.format == Format::Env) {
            Some(equals) => {
                shown.push_str(&comment[..=equals]);
                shown.push_str(&hidden(&comment[equals + 1..]));
            }
            None => shown.push_str(&comment),
        }
        shown
    }
}

/// A line without its end, and its end.
fn split_end(line: &str) -> (&str, &str) {
    let body = line.strip_suffix('\n').unwrap_or(line);
    line.split_at(body.strip_suffix('\r').unwrap_or(body).len())
}

/// The mask in place of a text, behind its indentation; a blank one stays.
fn hidden(text: &str) -> String {
    let body = text.trim_start();
    let indent = &text[..text.len() - body.len()];
    let mask = if body.is_empty() { "" } else { MASK };
    format!("{indent}{mask}")
}

/// Behind the first sign that ends a key. What follows it here is a bracket, an alias or nothing: the value
/// itself is looked at on its own, so the name of the key must not mask the bracket.
fn end_of_key(text: &str) -> Option<usize> {
    let signs = text.match_indices([':', '=']);
    let is_end = |rest: &str| {
        let next = rest.chars().next();
        next.is_none_or(|c| c.is_whitespace() || matches!(c, '[' | '{'))
    };
    let mut ends = signs.map(|(at, sign)| at + sign.len());
    ends.find(|at| is_end(&text[*at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(format: Format, text: &str, secrets: &[&str]) -> String {
        let secrets: Vec<String> = secrets.iter().map(|&secret| secret.to_owned()).collect();
        let shown = Shown::new(format, text, &secrets);
        let lines = text.split_inclusive('\n').count();
        assert_eq!(shown.line(lines), "");
        (0..lines).map(|index| shown.line(index)).collect()
    }

    #[test]
    fn values_are_masked_in_their_places_however_they_are_written() {
        let text = "\u{feff}# keep\nmodel: gpt # fine\r\n\
                    p: {api_key: ab1, \"token\": 'it''s', url: x, n: 3}\n\
                    password: \"two\\\n  \\x6cines\"\n\
                    secret: |\n  first line\n\n  second\nnext: [1, 2]\n\
                    key: !!str\n  far below\n\
                    base: &b hunter22\nauth: *b\nother: xhunter22y\n\
                    api_key_ref:\n  api_key: ${NAME}\nplain: false\ntoken: 77\n";
        let expected = "\u{feff}# keep\nmodel: gpt # fine\r\n\
                    p: {api_key: [masked], \"token\": [masked], url: x, n: 3}\n\
                    password: [masked]\n  [masked]\n\
                    secret: [masked]\n  [masked]\n\n  [masked]\nnext: [1, 2]\n\
                    key: !!str\n  [masked]\n\
                    base: &b [masked]\nauth: *b\nother: [masked]\n\
                    api_key_ref:\n  api_key: ${NAME}\nplain: false\ntoken: [masked]\n";
        let value = parse(Format::Yaml, text.as_bytes()).unwrap();
        let own = secrets(value.value());
        assert!(own.contains(&"hunter22".to_owned()), "{own:?}");
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        assert_eq!(shown(Format::Yaml, text, &own), expected);
    }

    #[test]
    fn values_of_the_home_are_masked_in_comments_and_values() {
        let text =
            "# not longsecret any more\na: longsecret\nb: dev\nlongsecret: 1\ndevice: dev x\n";
        assert_eq!(
            shown(Format::Yaml, text, &["longsecret", "dev"]),
            "# not [masked] any more\na: [masked]\nb: [masked]\n[masked]: 1\ndevice: dev x\n"
        );
        assert_eq!(
            shown(Format::Text, "be longsecret\n\tdev\n", &["longsecret"]),
            "be [masked]\n\tdev\n"
        );
    }

    #[test]
    fn json_and_toml_are_masked_by_key() {
        assert_eq!(
            shown(
                Format::Json,
                "{\n \"api_key\": \"a\\u0062\", \"l\": [{\"pin\": 1}],\n \"x\": \"y\"\n}\n",
                &[]
            ),
            "{\n \"api_key\": [masked], \"l\": [{\"pin\": [masked]}],\n \"x\": \"y\"\n}\n"
        );
        assert_eq!(
            shown(
                Format::Toml,
                "a.token = 'x'\nb = {pwd = \"y\", z = 1}\nsecret = '''\none\ntwo'''\n[[c]]\nkeys = ['k']\nd = 1\n",
                &[]
            ),
            "a.token = [masked]\nb = {pwd = [masked], z = 1}\nsecret = [masked]\n[masked]\n[masked]\n[[c]]\nkeys = [[masked]]\nd = 1\n"
        );
    }

    #[test]
    fn lines_of_variables_show_names_alone_where_a_value_could_be_one() {
        let text = "# a note\nexport A=word1 # B=word2\n#C=word3\nD='two\nlines'\nE=\n\njunk word4\nF=on\n";
        let own = crate::document::env::values(text);
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        assert_eq!(
            shown(Format::Env, text, &own),
            "# a note\nexport A=[masked] # B=[masked]\n#C=[masked]\nD=[masked]\n[masked]\nE=\n\n[masked]\nF=on\n"
        );
    }

    #[test]
    fn what_cannot_be_read_is_not_shown() {
        assert_eq!(
            shown(Format::Yaml, "a: [\n\n  word\n", &[]),
            "[masked]\n\n  [masked]\n"
        );
    }
}
