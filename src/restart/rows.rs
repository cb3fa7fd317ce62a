//! Rows of the mechanism table as they are written: TOML to [`Mechanism`], or an error that names the
//! file, the line and what is wrong there. Only `table` calls it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use toml_edit::Document;

use super::fields::{Piece, pieces};
use super::table::{Action, Drain, Match, Mechanism, Owner, SignalName};
use crate::error::{Error, Kind, Result};

/// How long a row's restart settles where the row does not say.
const SETTLE: Duration = Duration::from_secs(3);

/// The same, where the runtime says nothing of itself.
const SETTLE_SILENT: Duration = Duration::from_secs(10);

/// How long a runtime that spoke before may take to speak again.
const SPEAK_LIMIT: Duration = Duration::from_secs(60);

/// What stands for a budget that a unit sets to infinity.
const LIMIT: Duration = Duration::from_secs(600);

/// Names that an instruction or an argument may hold in braces.
const FIELDS: &[&str] = &[
    "unit",
    "systemctl",
    "pid",
    "user",
    "uid",
    "kind",
    "profile",
    "home",
    "program",
    "slot",
    "label",
    "domain",
    "container",
    "command",
    "folder",
];

/// Those of them that are for a person alone: what an owner may have written as it likes.
const FOR_A_PERSON: &[&str] = &["command", "folder"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default)]
    mechanism: Vec<RawRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRow {
    id: String,
    #[serde(rename = "match", deserialize_with = "one_or_many")]
    matches: Vec<Match>,
    action: Action,
    #[serde(default)]
    drain: Option<RawDrain>,
    #[serde(default)]
    settle: Option<Span>,
    #[serde(default)]
    settle_silent: Option<Span>,
    #[serde(default)]
    speak_limit: Option<Span>,
    #[serde(default)]
    limit: Option<Span>,
    #[serde(default)]
    argv: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    instruction: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDrain {
    signal: SignalName,
    limit: Span,
}

/// A duration as it is written: `500ms`, `3s`, `2m`, `1h`.
struct Span(Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        span(&text).map(Self).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "{text:?} is no duration such as 500ms, 3s, 2m or 1h"
            ))
        })
    }
}

fn span(text: &str) -> Option<Duration> {
    let at = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(at);
    let number: u64 = number.parse().ok()?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.checked_mul(millis).map(Duration::from_millis)
}

/// A list, or one item in place of a list.
pub(super) fn one_or_many<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Visitor<T>(std::marker::PhantomData<T>);
    impl<'de, T: Deserialize<'de>> serde::de::Visitor<'de> for Visitor<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("one item or a list")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
            let text = serde::de::value::StrDeserializer::new(text);
            Ok(vec![T::deserialize(text)?])
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            let map = serde::de::value::MapAccessDeserializer::new(map);
            Ok(vec![T::deserialize(map)?])
        }

        fn visit_seq<A: serde::de::SeqAccess<'de>>(
            self,
            mut seq: A,
        ) -> Result<Self::Value, A::Error> {
            let mut items = Vec::new();
            while let Some(item) = seq.next_element()? {
                items.push(item);
            }
            Ok(items)
        }
    }
    deserializer.deserialize_any(Visitor(std::marker::PhantomData))
}

/// Adds the rows of one file; rows from `own_from` on can be hidden by mistake, earlier ones only on purpose.
pub(super) fn add(
    rows: &mut Vec<Mechanism>,
    own_from: usize,
    name: &str,
    text: &str,
) -> Result<()> {
    let refuse = |line: usize, what: &str| {
        Error::new(Kind::Input, format!("{name} line {line}: {what}"))
            .with_hint("fleet-update-mechanisms(5) explains the keys of a row")
    };
    let at = |span: Option<std::ops::Range<usize>>| line_of(text, span.map_or(0, |s| s.start));
    let raw: RawFile = toml_edit::de::from_str(text).map_err(|error| {
        refuse(
            at(error.span()),
            error.message().lines().next().unwrap_or(""),
        )
    })?;
    let document =
        Document::parse(text).map_err(|error| refuse(at(error.span()), error.message()))?;
    let tables = document
        .get("mechanism")
        .and_then(toml_edit::Item::as_array_of_tables);
    for (index, raw) in raw.mechanism.into_iter().enumerate() {
        let table = tables.and_then(|tables| tables.get(index));
        let line = at(table.and_then(toml_edit::Table::span));
        let row = raw
            .check(format!("{name}:{line}"))
            .map_err(|what| refuse(line, &what))?;
        if let Some(first) = rows.iter().find(|known| known.id == row.id) {
            // A site that names one of our rows replaces it.
            if !rows[own_from..].contains(first) {
                continue;
            }
            let what = format!("a second row {:?}, the first is {}", row.id, first.origin);
            return Err(refuse(line, &what));
        }
        let hider = rows[own_from..].iter().find(|earlier| {
            row.matches
                .iter()
                .all(|theirs| earlier.matches.iter().any(|ours| ours.covers(theirs)))
        });
        if let Some(hider) = hider {
            let what = format!(
                "row {:?} can never match: {:?} ({}) matches all of it first",
                row.id, hider.id, hider.origin
            );
            return Err(refuse(line, &what));
        }
        rows.push(row);
    }
    Ok(())
}

fn line_of(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or(text);
    before.matches('\n').count() + 1
}

impl RawRow {
    /// The row, if it can mean what it says.
    fn check(self, origin: String) -> Result<Mechanism, String> {
        if self.id.is_empty() {
            return Err("a row needs an id".into());
        }
        if self.matches.is_empty() {
            return Err(format!("row {:?} matches nothing", self.id));
        }
        let texts = self.argv.iter().chain([&self.instruction]);
        for piece in texts.flat_map(|text| pieces(text)) {
            if let Piece::Field(name) = piece
                && !FIELDS.contains(&name)
            {
                return Err(format!("{{{name}}} is none of: {}", FIELDS.join(", ")));
            }
        }
        for piece in self.argv.iter().flat_map(|text| pieces(text)) {
            if let Piece::Field(name) = piece
                && FOR_A_PERSON.contains(&name)
            {
                return Err(format!("{{{name}}} is for an instruction alone"));
            }
        }
        match (self.action, self.argv.first()) {
            (Action::Command, None) => return Err("action \"command\" needs argv".into()),
            (Action::Command, Some(program)) if !program.starts_with('/') => {
                return Err(format!("the program {program:?} must be an absolute path"));
            }
            (Action::Command, Some(program)) if program.contains('{') => {
                return Err("the program itself must not hold a field".into());
            }
            (Action::Command, Some(_)) | (_, None) => {}
            (_, Some(_)) => return Err("argv belongs to action \"command\"".into()),
        }
        if self.action == Action::Signal && self.drain.is_none() {
            return Err("action \"signal\" needs a drain with the signal".into());
        }
        if self.action == Action::Respawn {
            let kept = |entry: &Match| {
                let nobody = |owner: &Owner| matches!(owner, Owner::Scope | Owner::Nobody);
                entry.manager.is_empty() || !entry.manager.iter().all(nobody)
            };
            if self.matches.iter().any(kept) {
                return Err(
                    "action \"respawn\" is for manager \"scope\" and \"nobody\" alone: who keeps a \
                     runtime starts it"
                        .into(),
                );
            }
        }
        if self.instruction.is_empty() {
            return Err("a row needs an instruction for a person".into());
        }
        let span = |given: Option<Span>, default| given.map_or(default, |span| span.0);
        Ok(Mechanism {
            id: self.id,
            matches: self.matches,
            action: self.action,
            drain: self.drain.map(|drain| Drain {
                signal: drain.signal,
                limit: drain.limit.0,
            }),
            settle: span(self.settle, SETTLE),
            settle_silent: span(self.settle_silent, SETTLE_SILENT),
            speak_limit: span(self.speak_limit, SPEAK_LIMIT),
            limit: span(self.limit, LIMIT),
            argv: self.argv,
            env: self.env,
            instruction: self.instruction,
            origin,
        })
    }
}
