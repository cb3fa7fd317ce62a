//! What a document means: typed values, whatever notation they were read from.
//!
//! Equality here is by meaning: the order of a mapping's keys does not count, `NaN` equals itself,
//! and types never mix (`1` is not `1.0` or `true`). Values come and go through serde, so that a step's
//! file, a receipt and a table can hold them.

use std::fmt;

use compact_str::{CompactString, ToCompactString as _};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::path::{Key, Path};

/// A value as the application reads it: aliases and merge keys resolved, scalars typed.
#[derive(Debug, Clone)]
pub enum Value {
    /// Nothing.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number; wider ones stay text in [`Value::Other`].
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Text; most of it is short, and takes no allocation of its own.
    Str(CompactString),
    /// A scalar of another type (date, binary, a wide integer): its type and its text.
    Other(&'static str, CompactString),
    /// A sequence.
    List(Vec<Value>),
    /// A mapping, in the order written. Keys need not be text.
    Map(Vec<(Value, Value)>),
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a == b || (a.is_nan() && b.is_nan()),
            (Self::Str(a), Self::Str(b)) => a == b,
            (Self::Other(a, x), Self::Other(b, y)) => a == b && x == y,
            (Self::List(a), Self::List(b)) => a == b,
            (Self::Map(a), Self::Map(b)) => same_entries(a, b),
            _ => false,
        }
    }
}

/// Whether two mappings hold the same keys with the same values, in whatever order.
fn same_entries(a: &[(Value, Value)], b: &[(Value, Value)]) -> bool {
    let mut lookup = Lookup::new(b);
    a.len() == b.len() && a.iter().all(|(key, value)| lookup.find(key) == Some(value))
}

/// Finds entries of one mapping by the keys of another one, which nearly always come in the same order, but for
/// one more or less: each search begins where the last one ended.
#[derive(Debug)]
pub(crate) struct Lookup<'v> {
    entries: &'v [(Value, Value)],
    next: usize,
}

impl<'v> Lookup<'v> {
    /// Of these entries.
    pub(crate) const fn new(entries: &'v [(Value, Value)]) -> Self {
        Self { entries, next: 0 }
    }

    /// The value under a key.
    pub(crate) fn find(&mut self, key: &Value) -> Option<&'v Value> {
        let (before, behind) = self.entries.split_at(self.next);
        let mut all = behind.iter().chain(before);
        let steps = all.position(|(own, _)| own == key)?;
        let place = (self.next + steps) % self.entries.len();
        self.next = place + 1;
        Some(&self.entries[place].1)
    }
}

impl Value {
    /// The value at `path`, if there is one.
    #[must_use]
    pub fn get(&self, path: &Path) -> Option<&Self> {
        path.0.iter().try_fold(self, |value, key| value.step(key))
    }

    /// The value under the text key `name`, if this is a mapping that has it.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Self> {
        self.as_map()?
            .iter()
            .find(|(key, _)| key.as_str() == Some(name))
            .map(|(_, value)| value)
    }

    /// The value one step down.
    #[must_use]
    pub fn step(&self, key: &Key) -> Option<&Self> {
        match (self, key) {
            (Self::List(items), Key::Index(index)) => items.get(*index),
            (Self::Map(entries), key) => entries
                .iter()
                .find(|(own, _)| own.is_key(key))
                .map(|(_, value)| value),
            _ => None,
        }
    }

    /// Whether this value, as the key of a mapping, is what `key` names.
    #[must_use]
    pub fn is_key(&self, key: &Key) -> bool {
        match (self, key) {
            (Self::Str(text), Key::Name(name)) => text == name,
            (Self::Str(_), _) | (_, Key::Name(_) | Key::Index(_)) => false,
            (other, Key::Other(text)) => other.key_text() == *text,
        }
    }

    /// This value as a step of a path, when it is the key of a mapping.
    #[must_use]
    pub fn to_key(&self) -> Key {
        match self {
            Self::Str(text) => Key::Name(text.to_string()),
            other => Key::Other(other.key_text()),
        }
    }

    /// How a key that is not text is spelled in a path and in JSON.
    #[must_use]
    pub fn key_text(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Int(value) => value.to_string(),
            Self::Float(value) => value.to_string(),
            Self::Str(text) | Self::Other(_, text) => text.to_string(),
            Self::List(_) | Self::Map(_) => self.to_json().to_string(),
        }
    }

    /// The text, if this is text.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The whole number, if this is one.
    #[must_use]
    pub const fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The truth value, if this is one.
    #[must_use]
    pub const fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The items, if this is a sequence.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Self]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    /// The entries, if this is a mapping.
    #[must_use]
    pub fn as_map(&self) -> Option<&[(Self, Self)]> {
        match self {
            Self::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// Whether this is nothing.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// What kind of value this is, for a message.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a truth value",
            Self::Int(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::Str(_) => "text",
            Self::Other(kind, _) => kind,
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }

    /// The same in JSON: keys become text; dates, wide and endless numbers become text, too.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Null => serde_json::Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Int(value) => (*value).into(),
            Self::Float(value) => serde_json::Number::from_f64(*value).map_or_else(
                || serde_json::Value::from(value.to_string()),
                serde_json::Value::Number,
            ),
            Self::Str(text) | Self::Other(_, text) => text.as_str().into(),
            Self::List(items) => items.iter().map(Self::to_json).collect(),
            Self::Map(entries) => entries
                .iter()
                .map(|(key, value)| (key.key_text(), value.to_json()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }
}

impl From<&serde_json::Value> for Value {
    fn from(json: &serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(value) => Self::Bool(*value),
            serde_json::Value::Number(number) => number.as_i64().map_or_else(
                || {
                    if number.is_u64() {
                        Self::Other("int", number.to_compact_string())
                    } else {
                        Self::Float(number.as_f64().unwrap_or(f64::NAN))
                    }
                },
                Self::Int,
            ),
            serde_json::Value::String(text) => Self::Str(text.into()),
            serde_json::Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            serde_json::Value::Object(entries) => Self::Map(
                entries
                    .iter()
                    .map(|(key, value)| (Self::Str(key.into()), Self::from(value)))
                    .collect(),
            ),
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Str(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Str(text.into())
    }
}

impl From<Vec<Self>> for Value {
    fn from(items: Vec<Self>) -> Self {
        Self::List(items)
    }
}

impl<const N: usize> From<[(&str, Self); N]> for Value {
    fn from(entries: [(&str, Self); N]) -> Self {
        Self::Map(
            entries
                .into_iter()
                .map(|(key, value)| (Self::from(key), value))
                .collect(),
        )
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Int(value) => serializer.serialize_i64(*value),
            Self::Float(value) if value.is_finite() => serializer.serialize_f64(*value),
            Self::Float(value) => serializer.collect_str(value),
            Self::Str(text) | Self::Other(_, text) => serializer.serialize_str(text),
            Self::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(item)?;
                }
                list.end()
            }
            Self::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(&key.key_text(), value)?;
                }
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

/// Builds a [`Value`] from whatever a format offers.
struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(i64::try_from(value).map_or_else(
            |_| Value::Other("int", value.to_compact_string()),
            Value::Int,
        ))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Str(text.into()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(Self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Value::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equality_is_by_meaning() {
        let a = Value::from([("x", Value::Int(1)), ("y", Value::Float(f64::NAN))]);
        let b = Value::from([("y", Value::Float(f64::NAN)), ("x", Value::Int(1))]);
        assert_eq!(a, b);
        assert_ne!(Value::Int(1), Value::Float(1.0));
        assert_ne!(Value::Int(1), Value::Bool(true));
        assert_ne!(Value::Str("1".into()), Value::Int(1));
    }

    #[test]
    fn json_comes_back_as_it_went() {
        let json = serde_json::json!({"a": [1, 1.5, null, true, "x"], "b": {}});
        let value = Value::from(&json);
        assert_eq!(value.to_json(), json);
        assert_eq!(
            serde_json::from_value::<Value>(json.clone()).unwrap(),
            value
        );
        assert_eq!(serde_json::to_value(&value).unwrap(), json);
    }

    #[test]
    fn a_text_key_never_names_a_number() {
        let value = Value::Map(vec![(Value::Int(5), Value::Bool(true))]);
        assert_eq!(value.get(&"5".parse().unwrap()), None);
        assert_eq!(value.get(&"{5}".parse().unwrap()), Some(&Value::Bool(true)));
    }
}
