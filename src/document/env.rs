//! `NAME=value` lines, read as python-dotenv reads them and edited line by line.
//!
//! `export`, quotes, escapes and comments are understood; of equal names the last one counts; a line that is
//! nothing of the kind stays and means nothing. `${…}` is text here: it is never expanded. An edit touches
//! only the lines of its name.

use std::ops::Range;

use super::{Document, Edit, Invalid, Key, Path, Refusal, Scalar, Value, intent};

/// Every value that a text of such lines holds and that could tell anything, the longest first.
#[must_use]
pub fn values(text: &str) -> Vec<String> {
    let bindings = Reader::new(text).bindings().into_iter();
    tellable(bindings.filter_map(|binding| binding.value).collect())
}

/// Those of these values that could tell anything, each once, the longest first.
#[must_use]
pub fn tellable(mut values: Vec<String>) -> Vec<String> {
    // Switches are no secrets, and masking every `true` hides what was done.
    values.retain(|value| {
        value.len() > 1
            && !matches!(
                value.as_str(),
                "true" | "false" | "on" | "off" | "yes" | "no"
            )
    });
    values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    values.dedup();
    values
}

/// A file of `NAME=value` lines.
#[derive(Debug)]
pub struct Env {
    text: String,
    bindings: Vec<Binding>,
    value: Value,
}

/// One name with its value.
#[derive(Debug, Clone)]
struct Binding {
    name: String,
    /// Where the name stands, without quotes.
    name_at: Range<usize>,
    /// Nothing in a line without `=`.
    value: Option<String>,
    /// Where the value stands with its quotes; behind the name if there is none.
    value_at: Range<usize>,
    /// Its whole lines, without the blank ones before it.
    lines: Range<usize>,
}

impl Env {
    /// Reads the lines.
    ///
    /// # Errors
    /// When the bytes are not UTF-8.
    pub fn parse(bytes: &[u8]) -> Result<Self, Invalid> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self::read(text.to_owned())),
            Err(error) => {
                let before = &bytes[..error.valid_up_to()];
                let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
                Err(Invalid::new(line, "not UTF-8"))
            }
        }
    }

    fn read(text: String) -> Self {
        let bindings = Reader::new(&text).bindings();
        let mut entries: Vec<(Value, Value)> = Vec::new();
        for binding in &bindings {
            let value = binding.value.as_deref().map_or(Value::Null, Value::from);
            match entries
                .iter_mut()
                .find(|(name, _)| name.as_str() == Some(&binding.name))
            {
                Some((_, old)) => *old = value,
                None => entries.push((Value::from(binding.name.as_str()), value)),
            }
        }
        Self {
            text,
            bindings,
            value: Value::Map(entries),
        }
    }

    /// The last binding of a name: the one that counts.
    fn binding(&self, name: &str) -> Option<&Binding> {
        self.bindings
            .iter()
            .rev()
            .find(|binding| binding.name == name)
    }

    fn line(&self, at: usize) -> usize {
        1 + self.text[..at].matches('\n').count()
    }

    /// The texts that an edit may lead to, the plainest first.
    fn candidates(&self, edit: &Edit) -> Result<Vec<String>, String> {
        let name = name_of(&edit.path())?;
        match edit {
            Edit::Set {
                value: Value::Str(value),
                ..
            } => Ok(match self.binding(&name) {
                Some(binding) => self.replaced(binding, value),
                None => self.added(&name, value)?,
            }),
            Edit::Set { .. } => Err("a value here is text".to_owned()),
            Edit::Remove { .. } => Ok(vec![self.removed(&name)]),
            Edit::Move { to, .. } => {
                let to = valid_name(&name_of(to)?)?;
                let mut found = self.bindings.iter().filter(|binding| binding.name == name);
                match (found.next(), found.next()) {
                    (Some(binding), None) => Ok(vec![self.with(&binding.name_at, &to)]),
                    _ => Err("the name is there more than once".to_owned()),
                }
            }
            Edit::Append { .. } | Edit::Text { .. } => {
                Err("there are only names with values here".to_owned())
            }
        }
    }

    fn with(&self, range: &Range<usize>, text: &str) -> String {
        format!(
            "{}{text}{}",
            &self.text[..range.start],
            &self.text[range.end..]
        )
    }

    fn replaced(&self, binding: &Binding, value: &str) -> Vec<String> {
        let old = &self.text[binding.value_at.clone()];
        let equals = if binding.value.is_some() { "" } else { "=" };
        let mut notations = notations(value);
        // The old quotes, if they can hold it.
        let quote = old
            .chars()
            .next()
            .filter(|c| !value.is_empty() && matches!(c, '"' | '\''));
        if let Some(quote) = quote {
            notations.sort_by_key(|notation| !notation.starts_with(quote));
        }
        notations
            .iter()
            .map(|notation| self.with(&binding.value_at, &format!("{equals}{notation}")))
            .collect()
    }

    fn added(&self, name: &str, value: &str) -> Result<Vec<String>, String> {
        let name = valid_name(name)?;
        let first_end = self.text.find('\n');
        let is_crlf = first_end.is_some_and(|end| self.text[..end].ends_with('\r'));
        let eol = if is_crlf { "\r\n" } else { "\n" };
        let body = self.text.trim_start_matches('\u{feff}');
        let is_open = !body.is_empty() && !body.ends_with('\n');
        let (before, after) = if is_open { (eol, "") } else { ("", eol) };
        Ok(notations(value)
            .iter()
            .map(|notation| format!("{}{before}{name}={notation}{after}", self.text))
            .collect())
    }

    fn removed(&self, name: &str) -> String {
        let mut text = String::with_capacity(self.text.len());
        let mut at = 0;
        for binding in self.bindings.iter().filter(|binding| binding.name == name) {
            text.push_str(&self.text[at..binding.lines.start]);
            at = binding.lines.end;
        }
        text.push_str(&self.text[at..]);
        text
    }
}

/// The name that a path means.
fn name_of(path: &Path) -> Result<String, String> {
    match path.0.as_slice() {
        [Key::Name(name)] => Ok(name.clone()),
        _ => Err("a name here has no parts".to_owned()),
    }
}

/// A name that every shell and library takes.
fn valid_name(name: &str) -> Result<String, String> {
    let is_valid = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if is_valid {
        Ok(name.to_owned())
    } else {
        Err("not a name of a variable".to_owned())
    }
}

/// How a value can be written, the plainest first.
fn notations(value: &str) -> Vec<String> {
    let mut all = Vec::new();
    let is_plain = |c: char| c.is_alphanumeric() || "_./:@%+,=-".contains(c);
    if value.chars().all(is_plain) {
        all.push(value.to_owned());
    }
    if !value.contains(['\'', '\\', '\n', '\r']) && !value.is_empty() {
        all.push(format!("'{value}'"));
    }
    let escaped = value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
        .replace('\r', "\\r");
    all.push(format!("\"{escaped}\""));
    all
}

impl Document for Env {
    fn value(&self) -> &Value {
        &self.value
    }

    fn bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    fn edit(&mut self, edit: &Edit) -> Result<(), Refusal> {
        let path = edit.path();
        let line = self.line_of(&path).unwrap_or(0);
        let refuse = |reason: String| Refusal::new(line, &path, reason);
        let after = intent::after(&self.value, edit).map_err(refuse)?;
        if after == self.value {
            return Ok(());
        }
        for text in self.candidates(edit).map_err(refuse)? {
            let new = Self::read(text);
            if new.value == after {
                *self = new;
                return Ok(());
            }
        }
        Err(refuse(
            "it cannot be written in place: something else would change, too".to_owned(),
        ))
    }

    fn prove(&self) -> Result<(), Invalid> {
        // Every edit was proved on the whole text.
        Ok(())
    }

    fn line_of(&self, path: &Path) -> Option<usize> {
        let name = name_of(path).ok()?;
        self.binding(&name)
            .map(|binding| self.line(binding.name_at.start))
    }

    fn scalars(&self) -> Result<Vec<Scalar>, Invalid> {
        let bound = self.bindings.iter().filter_map(|binding| {
            Some(Scalar {
                path: Path::root().name(&binding.name),
                at: binding.value_at.clone(),
                value: binding.value.as_deref()?.into(),
            })
        });
        Ok(bound.collect())
    }
}

/// Whitespace as Python's `\s` means it.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// Goes through a text as python-dotenv's reader does.
struct Reader<'t> {
    text: &'t str,
    /// Where the first line begins.
    start: usize,
    at: usize,
}

/// What a line turned out not to be.
struct NoBinding;

impl<'t> Reader<'t> {
    /// A BOM in front is no part of the first name: applications read these files as `utf-8-sig`.
    fn new(text: &'t str) -> Self {
        let start = if text.starts_with('\u{feff}') {
            '\u{feff}'.len_utf8()
        } else {
            0
        };
        Self {
            text,
            start,
            at: start,
        }
    }

    fn bindings(mut self) -> Vec<Binding> {
        let mut found = Vec::new();
        while self.at < self.text.len() {
            self.skip(is_space);
            match self.binding() {
                Ok(binding) => found.extend(binding),
                Err(NoBinding) => self.rest_of_line(),
            }
        }
        found
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn skip(&mut self, what: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches(what).len();
    }

    fn blanks(&mut self) {
        self.skip(|c| is_space(c) && c != '\r' && c != '\n');
    }

    fn rest_of_line(&mut self) {
        self.skip(|c| c != '\r' && c != '\n');
        if self.rest().starts_with(['\r', '\n']) {
            self.at += 1;
        }
    }

    /// A binding; nothing for a comment or the end.
    fn binding(&mut self) -> Result<Option<Binding>, NoBinding> {
        let line = self.text[..self.at]
            .rfind(['\n', '\r'])
            .map_or(self.start, |end| end + 1);
        if self.rest().is_empty() {
            return Ok(None);
        }
        if let Some(after) = self.rest().strip_prefix("export")
            && after.starts_with(|c| is_space(c) && c != '\r' && c != '\n')
        {
            self.at += "export".len();
            self.blanks();
        }
        let name_at = self.name()?;
        let mut value_at = self.at..self.at;
        if let Some(name_at) = &name_at {
            value_at = name_at.end..name_at.end;
        }
        self.blanks();
        let mut value = None;
        if self.rest().starts_with('=') {
            self.at += 1;
            self.blanks();
            let (text, range) = self.value()?;
            value_at = range;
            value = Some(text);
        }
        let before_comment = self.at;
        self.blanks();
        if self.rest().starts_with('#') {
            self.skip(|c| c != '\r' && c != '\n');
        } else {
            self.at = before_comment;
        }
        self.end_of_line()?;
        Ok(name_at.map(|name_at| {
            let quoted = self.text[..name_at.start].ends_with('\'');
            if quoted && value.is_none() {
                value_at = name_at.end + 1..name_at.end + 1;
            }
            Binding {
                name: self.text[name_at.clone()].to_owned(),
                name_at,
                value,
                value_at,
                lines: line..self.at,
            }
        }))
    }

    /// Where a name stands; nothing if a comment does.
    fn name(&mut self) -> Result<Option<Range<usize>>, NoBinding> {
        let start = self.at;
        if self.rest().starts_with('#') {
            return Ok(None);
        }
        if let Some(inside) = self.rest().strip_prefix('\'') {
            let length = inside
                .find('\'')
                .filter(|length| *length > 0)
                .ok_or(NoBinding)?;
            self.at += length + 2;
            return Ok(Some(start + 1..start + 1 + length));
        }
        self.skip(|c| !is_space(c) && c != '=' && c != '#');
        if self.at == start {
            Err(NoBinding)
        } else {
            Ok(Some(start..self.at))
        }
    }

    fn value(&mut self) -> Result<(String, Range<usize>), NoBinding> {
        let start = self.at;
        match self.rest().chars().next() {
            Some(quote @ ('\'' | '"')) => {
                let inside = &self.rest()[1..];
                let length = closing(inside, quote).ok_or(NoBinding)?;
                self.at += length + 2;
                let escapes = if quote == '"' { "\\'\"abfnrtv" } else { "\\'" };
                Ok((unescape(&inside[..length], escapes), start..self.at))
            }
            _ => {
                self.skip(|c| c != '\r' && c != '\n');
                let line = &self.text[start..self.at];
                let value = without_comment(line).trim_end_matches(is_space);
                Ok((value.to_owned(), start..start + value.len()))
            }
        }
    }

    fn end_of_line(&mut self) -> Result<(), NoBinding> {
        self.blanks();
        let rest = self.rest();
        let length = match rest.as_bytes() {
            [b'\r', b'\n', ..] => 2,
            [b'\r' | b'\n', ..] => 1,
            [] => 0,
            _ => return Err(NoBinding),
        };
        self.at += length;
        Ok(())
    }
}

/// How far it is to the closing quote: the first that no backslash stands before, else the last one.
fn closing(inside: &str, quote: char) -> Option<usize> {
    let mut last = None;
    for (at, _) in inside.match_indices(quote) {
        last = Some(at);
        if !inside[..at].ends_with('\\') {
            return last;
        }
    }
    last
}

/// A value without quotes, up to blanks followed by `#`.
fn without_comment(line: &str) -> &str {
    for (at, _) in line.match_indices('#') {
        let before = line[..at].trim_end_matches(is_space);
        if before.len() < at {
            return before;
        }
    }
    line
}

fn unescape(text: &str, known: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let next = chars
            .clone()
            .next()
            .filter(|next| c == '\\' && known.contains(*next));
        match next {
            None => plain.push(c),
            Some(next) => {
                chars.next();
                plain.push(match next {
                    'a' => '\u{7}',
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    'v' => '\u{b}',
                    other => other,
                });
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests;
