//! Random YAML documents and random edits of them, from a seed.

use fleet_update::document::{Edit, Key, Path, Value};

/// A small generator of numbers (xorshift64*): the same seed gives the same documents everywhere.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'v, T: ?Sized>(&mut self, from: &[&'v T]) -> &'v T {
        from[self.below(from.len())]
    }
}

/// Text that is something else without quotes, to some loader or in some place.
pub const AWKWARD: &[&str] = &[
    "y",
    "n",
    "Y",
    "yes",
    "no",
    "on",
    "off",
    "True",
    "null",
    "~",
    "",
    " ",
    "1:30",
    "1_000",
    "1e3",
    "0o10",
    "09",
    "0123",
    "0x1F",
    "0b11",
    "2024-01-01",
    "2024-01-01 10:00:00",
    "=",
    "<<",
    "a: b",
    "a:",
    ":a",
    "#a",
    "a #b",
    " a",
    "a ",
    "a\tb",
    "\ta",
    "a\nb",
    "a\nb\n",
    "a\n\nb\n",
    "a\r\nb",
    "-",
    "- a",
    "-a",
    "?",
    "? a",
    "?a",
    "[",
    "]",
    "{a}",
    "a, b",
    "&a",
    "*a",
    "!a",
    "|",
    ">",
    "%a",
    "@a",
    "`a",
    "'",
    "\"",
    "\\",
    "a'b\"c",
    "\u{7f}",
    "\u{85}",
    "\u{a0}",
    "\u{2028}",
    "\u{2029}",
    "\u{feff}",
    "\u{fffe}",
    "😀",
    "é",
    "---",
    "...",
    "--- a",
    "${VAR}",
    "http://a?b=c#d",
    "C:\\x",
    ".inf",
    ".nan",
    "+1",
    "-1",
    "1.5",
    ".5",
    "+.5",
    "._",
    "-_",
    "a?b",
    "a]b",
    "a: |",
    "x >y",
    "12:30:45.5",
    "190:20:30",
    "1__0",
    "_",
    "+",
    ".",
    "..",
    "<",
    "plain words",
    "x",
    "model/name",
    "10.0.0.1",
    "::1",
];

const WORDS: &[&str] = &[
    "alpha",
    "beta",
    "gamma",
    "delta",
    "ttl_hours",
    "model",
    "name",
    "enabled",
    "list",
    "x-y",
    "a.b",
    "k w",
    "é",
];

const PLAIN: &[&str] = &[
    "1",
    "24",
    "-3",
    "1.5",
    "true",
    "off",
    "null",
    "~",
    "text",
    "two words",
    "it's",
    "a#b",
    "http://x.y/z?q=1",
    "${KEY}",
    "0123",
    "1:30",
    "2024-01-31",
    "😀 > |",
    "C:\\dir",
    "y",
    "-x",
    "a:b",
    "<x>",
    "50%",
    "1_000",
    ".5",
    "1e3",
];

const QUOTED: &[&str] = &[
    "\"x\"",
    "'x'",
    "\"a: b # c\"",
    "'it''s'",
    "\"\\u00e9\\t\\\"\"",
    "''",
    "\"on\"",
    "'# no'",
    "\"tab\there\"",
    "\"{}\"",
];

/// A document in the making.
struct Writer<'r> {
    rng: &'r mut Rng,
    out: String,
    unit: usize,
    dash: usize,
    anchors: usize,
}

/// A document that every loader reads.
pub fn document(rng: &mut Rng) -> String {
    let unit = if rng.chance(70) { 2 } else { 4 };
    let dash = if rng.chance(50) { 0 } else { unit };
    let mut writer = Writer {
        rng,
        out: String::new(),
        unit,
        dash,
        anchors: 0,
    };
    if writer.rng.chance(30) {
        writer.out.push_str("# head\n\n");
    }
    if writer.rng.chance(10) {
        writer.out.push_str("---\n");
    }
    writer.map(0, 0, 0);
    if writer.rng.chance(30) {
        writer.out.push_str("\n# tail\n");
    }
    let mut text = writer.out;
    if rng.chance(15) {
        text = text.trim_end_matches('\n').to_owned();
    }
    if rng.chance(20) {
        text = text.replace('\n', "\r\n");
    } else if rng.chance(5) {
        text = text
            .split_inclusive('\n')
            .enumerate()
            .map(|(at, line)| {
                if at % 3 == 0 {
                    line.replace('\n', "\r\n")
                } else {
                    line.to_owned()
                }
            })
            .collect();
    }
    if rng.chance(10) {
        text.insert(0, '\u{FEFF}');
    }
    text
}

impl Writer<'_> {
    fn pad(&mut self, column: usize) {
        self.out.extend(std::iter::repeat_n(' ', column));
    }

    fn own_comment(&mut self, column: usize) {
        if self.rng.chance(12) {
            self.out.push('\n');
        }
        if self.rng.chance(18) {
            let column = if self.rng.chance(85) { column } else { 0 };
            self.pad(column);
            let number = self.rng.below(1000);
            self.out.push_str(&format!("# own {number}\n"));
        }
    }

    fn end_line(&mut self) {
        if self.rng.chance(15) {
            let number = self.rng.below(1000);
            let blanks = 1 + self.rng.below(3);
            self.pad(blanks);
            self.out.push_str(&format!("# side {number}"));
        }
        self.out.push('\n');
    }

    /// A mapping whose first key is at the cursor if `skip` is the column reached.
    fn map(&mut self, column: usize, depth: usize, skip: usize) {
        let count = 1 + self.rng.below(4);
        let mut used = Vec::new();
        for position in 0..count {
            let word = *self.rng.pick(&WORDS.iter().collect::<Vec<_>>());
            if used.contains(&word) {
                continue;
            }
            used.push(word);
            if position > 0 || skip == 0 {
                self.own_comment(column);
                self.pad(column);
            }
            match self.rng.below(12) {
                0 => self.out.push_str(&format!("\"{word}\"")),
                1 => self.out.push_str(&format!("'{word}'")),
                _ => self.out.push_str(word),
            }
            if self.rng.chance(3) {
                self.out.push(' ');
            }
            self.out.push(':');
            self.value(column, depth, true);
        }
    }

    fn list(&mut self, column: usize, depth: usize, skip: usize) {
        for position in 0..1 + self.rng.below(3) {
            if position > 0 || skip == 0 {
                self.own_comment(column);
                self.pad(column);
            }
            self.out.push('-');
            self.value(column, depth, false);
        }
    }

    /// What follows a colon or dash whose key or dash is in `column`.
    fn value(&mut self, column: usize, depth: usize, is_entry: bool) {
        if self.rng.chance(3) {
            self.anchors += 1;
            self.out.push_str(&format!(" &a{}", self.anchors));
        } else if self.anchors > 0 && self.rng.chance(6) {
            let anchor = 1 + self.rng.below(self.anchors);
            self.out.push_str(&format!(" *a{anchor}"));
            return self.end_line();
        }
        let deep = depth >= 4;
        match self.rng.below(if deep { 8 } else { 14 }) {
            0 => self.end_line(),
            1 | 2 => {
                let text = self
                    .rng
                    .pick(&QUOTED.iter().collect::<Vec<_>>())
                    .to_string();
                self.out.push_str(&format!(" {text}"));
                self.end_line();
            }
            3 => {
                let header = *self.rng.pick(&[&"|", &"|-", &">", &">-", &"|+", &">+"]);
                self.out.push_str(&format!(" {header}"));
                self.end_line();
                let indent = column + self.unit.max(2);
                for line in ["one # no comment", "", "two: 2", "  more"]
                    .iter()
                    .take(1 + self.rng.below(4))
                {
                    if !line.is_empty() {
                        self.pad(indent);
                        self.out.push_str(line);
                    }
                    self.out.push('\n');
                }
                if self.rng.chance(40) {
                    self.out.push('\n');
                }
            }
            4 => {
                self.out.push(' ');
                self.flow(column + 2, 0);
                self.end_line();
            }
            5 => {
                let folded = if self.rng.chance(50) {
                    ("one", "two")
                } else {
                    ("\"one", "two\"")
                };
                self.out.push_str(&format!(" {}\n", folded.0));
                self.pad(column + 2);
                self.out.push_str(folded.1);
                self.end_line();
            }
            6 | 7 => {
                let text = self.rng.pick(&PLAIN.iter().collect::<Vec<_>>()).to_string();
                self.out.push_str(&format!(" {text}"));
                self.end_line();
            }
            8..=10 if is_entry => {
                self.end_line();
                let column = column + self.unit;
                self.map(column, depth + 1, 0);
            }
            8..=10 => {
                // A compact mapping, unless an anchor or the dice put it on a line of its own.
                if self.out.ends_with('-') && self.rng.chance(85) {
                    self.out.push(' ');
                    self.map(column + 2, depth + 1, 1);
                } else {
                    self.end_line();
                    self.map(column + 2, depth + 1, 0);
                }
            }
            _ if is_entry => {
                self.end_line();
                let column = column + self.dash;
                self.list(column, depth + 1, 0);
            }
            _ => {
                if self.out.ends_with('-') {
                    self.out.push(' ');
                    self.list(column + 2, depth + 1, 1);
                } else {
                    self.end_line();
                    self.list(column + 2, depth + 1, 0);
                }
            }
        }
    }

    fn flow(&mut self, column: usize, depth: usize) {
        let is_map = self.rng.chance(50);
        let is_tall = self.rng.chance(25);
        self.out.push(if is_map { '{' } else { '[' });
        let count = self.rng.below(4);
        for position in 0..count {
            if is_tall {
                self.end_line();
                self.pad(column);
            } else if position > 0 {
                self.out.push(' ');
            }
            if is_map {
                let name = *self.rng.pick(&[&"p", &"\"q\"", &"'r'", &"s"]);
                self.out.push_str(
                    &format!("{name}{position}: ")
                        .replace("\"q\"", "\"q")
                        .replace("'r'", "'r"),
                );
                if self.out.contains("\"q") || self.out.contains("'r") {
                    let fixed = self
                        .out
                        .replace("\"q0: ", "\"q0\": ")
                        .replace("\"q1: ", "\"q1\": ")
                        .replace("\"q2: ", "\"q2\": ");
                    self.out = fixed
                        .replace("'r0: ", "'r0': ")
                        .replace("'r1: ", "'r1': ")
                        .replace("'r2: ", "'r2': ");
                }
            }
            if depth < 2 && self.rng.chance(20) {
                self.flow(column + 2, depth + 1);
            } else {
                let text = *self.rng.pick(&[
                    &"1",
                    &"x",
                    &"\"s\"",
                    &"'t'",
                    &"true",
                    &"two words",
                    &"1.5",
                    &"http://x/y",
                    &"a:b",
                ]);
                self.out.push_str(text);
            }
            if position + 1 < count || self.rng.chance(15) {
                self.out.push(',');
            }
        }
        if is_tall && count > 0 {
            self.end_line();
            self.pad(column - 1);
        }
        self.out.push(if is_map { '}' } else { ']' });
    }
}

/// All paths of a value, the root excepted.
pub fn paths(value: &Value) -> Vec<Path> {
    fn walk(value: &Value, at: &Path, found: &mut Vec<Path>) {
        let children: Vec<(Key, &Value)> = match value {
            Value::Map(entries) => entries
                .iter()
                .map(|(key, value)| (key.to_key(), value))
                .collect(),
            Value::List(items) => items
                .iter()
                .enumerate()
                .map(|(index, value)| (Key::Index(index), value))
                .collect(),
            _ => Vec::new(),
        };
        for (key, value) in children {
            let path = at.child(key);
            found.push(path.clone());
            walk(value, &path, found);
        }
    }
    let mut found = Vec::new();
    walk(value, &Path::root(), &mut found);
    found
}

/// A value to write.
pub fn value(rng: &mut Rng, depth: usize) -> Value {
    match rng.below(if depth < 2 { 11 } else { 8 }) {
        0 => Value::Null,
        1 => Value::Bool(rng.chance(50)),
        2 => Value::Int(rng.next() as i64 - 1_000_000),
        3 => Value::Float(
            [1.5, 1e300, -2.5e-7, 0.1, 3.0, f64::INFINITY, f64::NAN, 1e16][rng.below(8)],
        ),
        4..=7 => Value::from(AWKWARD[rng.below(AWKWARD.len())]),
        8 => Value::List((0..rng.below(4)).map(|_| value(rng, depth + 1)).collect()),
        _ => {
            let mut entries: Vec<(Value, Value)> = Vec::new();
            for _ in 0..rng.below(4) {
                let name = if rng.chance(30) {
                    AWKWARD[rng.below(AWKWARD.len())]
                } else {
                    WORDS[rng.below(WORDS.len())]
                };
                if !entries.iter().any(|(key, _)| key.as_str() == Some(name)) {
                    entries.push((Value::from(name), value(rng, depth + 1)));
                }
            }
            Value::Map(entries)
        }
    }
}

/// An edit of a document that means `of`.
pub fn edit(rng: &mut Rng, of: &Value) -> Edit {
    let all = paths(of);
    let some = |rng: &mut Rng| {
        if all.is_empty() {
            Path::from(["alpha"])
        } else {
            all[rng.below(all.len())].clone()
        }
    };
    let fresh = |rng: &mut Rng| {
        let mut path = if rng.chance(30) {
            Path::root()
        } else {
            some(rng)
        };
        for _ in 0..1 + rng.below(2) {
            let name = if rng.chance(15) {
                AWKWARD[rng.below(AWKWARD.len())]
            } else {
                *rng.pick(&[&"new", &"other", &"third"])
            };
            path = path.name(name);
        }
        path
    };
    match rng.below(10) {
        0..=2 => Edit::Set {
            path: some(rng),
            value: value(rng, 0),
        },
        3 | 4 => Edit::Set {
            path: fresh(rng),
            value: value(rng, 0),
        },
        5 | 6 => Edit::Remove { path: some(rng) },
        7 => {
            let lists: Vec<&Path> = all
                .iter()
                .filter(|path| of.get(path).and_then(Value::as_list).is_some())
                .collect();
            let path = if lists.is_empty() {
                some(rng)
            } else {
                lists[rng.below(lists.len())].clone()
            };
            Edit::Append {
                path,
                value: value(rng, 1),
            }
        }
        8 => {
            let from = some(rng);
            let to = match from.split_last() {
                Some((parent, _)) => parent.name("renamed"),
                None => Path::from(["renamed"]),
            };
            Edit::Move { from, to }
        }
        _ => Edit::Move {
            from: some(rng),
            to: fresh(rng),
        },
    }
}
