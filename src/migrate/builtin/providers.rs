//! The list `custom_providers` becomes the map `providers`.

use super::super::ops::{Draft, Failure, at};
use super::{Edit, Path, Value, remove, trimmed};

/// What a field must be to be kept, and what it becomes.
type Keep = fn(&Value) -> Option<Value>;

/// Fields that keep their name.
const KEPT: &[(&str, Keep)] = &[
    ("api_key", text),
    ("key_env", text),
    ("key_cmd", text),
    ("models", models),
    ("models_discovered", only_true),
    ("context_length", positive),
    ("rate_limit_delay", not_negative),
    ("discover_models", truth_or_text),
    ("extra_body", mapping),
    ("extra_headers", headers),
    ("session_affinity_header", text),
    ("ssl_ca_cert", text),
    ("ssl_verify", truth_or_trimmed),
    ("catalog_provider", text),
];

/// Other spellings of a field; they count where the field itself is absent.
const SPELLINGS: &[(&str, &str)] = &[
    ("api_key_env", "key_env"),
    ("apiKey", "api_key"),
    ("baseUrl", "base_url"),
    ("apiMode", "api_mode"),
    ("keyEnv", "key_env"),
    ("apiKeyEnv", "key_env"),
    ("defaultModel", "default_model"),
    ("contextLength", "context_length"),
    ("rateLimitDelay", "rate_limit_delay"),
    ("sessionAffinityHeader", "session_affinity_header"),
];

/// Older names of a transport.
const TRANSPORTS: &[(&str, &str)] = &[
    ("openai", "chat_completions"),
    ("openai_chat", "chat_completions"),
    ("openai-chat", "chat_completions"),
    ("chat-completions", "chat_completions"),
    ("chatcompletions", "chat_completions"),
    ("responses", "codex_responses"),
    ("openai_responses", "codex_responses"),
    ("openai-responses", "codex_responses"),
    ("anthropic", "anthropic_messages"),
    ("anthropic-messages", "anthropic_messages"),
    ("messages", "anthropic_messages"),
    ("bedrock", "bedrock_converse"),
    ("bedrock-converse", "bedrock_converse"),
];

/// Keys that stand for "there is no key".
const NO_KEY: &[&str] = &["no-key", "no-key-required"];

pub(super) fn custom_providers(draft: &mut Draft<'_>, _: &Value) -> Result<(), Failure> {
    let list = Path::from(["custom_providers"]);
    let Some(Value::List(entries)) = draft.config().get(&list) else {
        return Ok(());
    };
    let known = match draft.config().field("providers") {
        None | Some(Value::Null) => &[][..],
        Some(Value::Map(known)) => known.as_slice(),
        Some(other) => {
            let reason = format!("a mapping is expected, here is {}", other.kind());
            return Err(at(&Path::from(["providers"]), reason));
        }
    };
    let mut taken: Vec<String> = known.iter().map(|(key, _)| key.key_text()).collect();
    let mut found: Vec<(String, Value)> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let place = list.index(index);
        if !matches!(entry, Value::Map(_)) {
            continue;
        }
        if !["base_url", "url", "api"]
            .into_iter()
            .any(|key| entry.field(key).is_some_and(is_something))
        {
            continue;
        }
        let name = match entry.field("name") {
            None | Some(Value::Null) => "",
            Some(Value::Str(name)) => name,
            Some(other) => {
                let reason = format!("text is expected, here is {}", other.kind());
                return Err(at(&place.name("name"), reason));
            }
        };
        let key = free_key(&taken, &key_of(name, entry, found.len()), found.len());
        if let Some(provider) = provider_of(entry, name, &key) {
            taken.push(key.clone());
            found.push((key, provider));
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    for (key, value) in found {
        let path = Path::from(["providers"]).name(key);
        draft.edit_config(&Edit::Set { path, value })?;
    }
    remove(draft, list)
}

/// Whether Python takes a value for true.
fn is_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) | Value::Int(0) => false,
        Value::Float(number) => *number != 0.0,
        Value::Str(text) => !text.is_empty(),
        Value::List(items) => !items.is_empty(),
        Value::Map(entries) => !entries.is_empty(),
        Value::Bool(true) | Value::Int(_) | Value::Other(..) => true,
    }
}

/// The key of an entry: its name in kebab case, else the host of its URL.
fn key_of(name: &str, entry: &Value, position: usize) -> String {
    let mut key = name
        .trim()
        .to_lowercase()
        .replace(' ', "-")
        .replace(['(', ')'], "");
    while key.contains("--") {
        key = key.replace("--", "-");
    }
    let key = key.trim_matches('-');
    if !key.is_empty() {
        return key.to_owned();
    }
    let first = ["base_url", "url", "api"]
        .into_iter()
        .find_map(|key| entry.field(key).filter(|v| is_something(v)));
    match first {
        Some(Value::Str(url)) => match Url::split(url) {
            Some(url) => url
                .host()
                .unwrap_or_else(|| "endpoint".to_owned())
                .replace('.', "-"),
            None => format!("endpoint-{position}"),
        },
        _ => format!("endpoint-{position}"),
    }
}

/// The first of `key`, `key-N`, `key-N+1`, … that is free.
fn free_key(taken: &[String], key: &str, from: usize) -> String {
    let is_free = |key: &str| !taken.iter().any(|own| own == key);
    if is_free(key) {
        return key.to_owned();
    }
    let mut suffix = from;
    loop {
        let numbered = format!("{key}-{suffix}");
        if is_free(&numbered) {
            return numbered;
        }
        suffix += 1;
    }
}

/// An entry of the list as an entry of the map; `None` if it has no URL that can be called.
fn provider_of(entry: &Value, name: &str, key: &str) -> Option<Value> {
    let field = |name: &str| {
        let spelled = SPELLINGS.iter().filter(|(_, own)| *own == name);
        let mut spelled = spelled.filter_map(|(other, _)| entry.field(other));
        entry.field(name).or_else(|| spelled.next())
    };
    let mut provider = vec![(Value::from("api"), Value::from(base_url(&field)?))];
    let mut put = |name: &str, value: Option<Value>| {
        provider.extend(value.map(|value| (Value::from(name), value)));
    };
    // A name that only repeats the key would say nothing.
    if !name.is_empty() {
        let shown = Some(name.trim())
            .filter(|name| !name.is_empty())
            .unwrap_or(key);
        put("name", Some(Value::from(shown)));
    }
    for (name, keep) in KEPT {
        let value = field(name).and_then(keep);
        match *name {
            "api_key" => put(
                name,
                value.filter(|key| !NO_KEY.iter().any(|no| key.as_str() == Some(no))),
            ),
            "models_discovered" => put(name, value.or_else(|| discovered(field("models")))),
            "key_env" => put(name, either(&field, name, "api_key_env").map(Value::from)),
            _ => put(name, value),
        }
    }
    put(
        "default_model",
        either(&field, "model", "default_model").map(Value::from),
    );
    put(
        "transport",
        either(&field, "api_mode", "transport").map(|mode| Value::from(transport(mode))),
    );
    Some(Value::Map(provider))
}

/// The first of two fields that says something, if that is text.
fn either<'v>(
    field: &impl Fn(&str) -> Option<&'v Value>,
    first: &str,
    second: &str,
) -> Option<&'v str> {
    trimmed(
        field(first)
            .filter(|value| is_something(value))
            .or_else(|| field(second)),
    )
}

fn transport(mode: &str) -> &str {
    let lower = mode.to_lowercase();
    let known = TRANSPORTS.iter().find(|(older, _)| *older == lower);
    known.map_or(mode, |(_, name)| name)
}

/// The first URL that can be called, or that holds a placeholder which is filled in later.
fn base_url<'v>(field: &impl Fn(&str) -> Option<&'v Value>) -> Option<&'v str> {
    ["base_url", "url", "api"].into_iter().find_map(|key| {
        let url = trimmed(field(key))?;
        let callable =
            Url::split(url).is_some_and(|url| !url.scheme.is_empty() && !url.authority.is_empty());
        (callable || has_placeholder(url)).then_some(url)
    })
}

fn has_placeholder(url: &str) -> bool {
    url.split('{')
        .skip(1)
        .any(|rest| rest.find('}').is_some_and(|end| end > 0))
}

/// The parts of a URL that matter here, split the way Python's `urlsplit` does.
struct Url<'u> {
    scheme: &'u str,
    authority: &'u str,
}

impl<'u> Url<'u> {
    /// `None` for brackets that do not match, which Python refuses.
    fn split(url: &'u str) -> Option<Self> {
        let url = url.trim_start_matches(|c: char| c <= ' ');
        let scheme = url.split_once(':').filter(|(scheme, _)| {
            scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        });
        let (scheme, rest) = scheme.unwrap_or(("", url));
        let authority = rest.strip_prefix("//").map_or("", |rest| {
            rest.split(['/', '?', '#']).next().unwrap_or_default()
        });
        (authority.contains('[') == authority.contains(']')).then_some(Self { scheme, authority })
    }

    fn host(&self) -> Option<String> {
        let after_user = self
            .authority
            .rsplit_once('@')
            .map_or(self.authority, |(_, host)| host);
        let host = match after_user.strip_prefix('[') {
            Some(address) => address.split(']').next().unwrap_or_default(),
            None => after_user.split(':').next().unwrap_or_default(),
        };
        (!host.is_empty()).then(|| host.to_lowercase())
    }
}

fn text(value: &Value) -> Option<Value> {
    trimmed(Some(value)).map(Value::from)
}

fn only_true(value: &Value) -> Option<Value> {
    (value.as_bool() == Some(true)).then(|| value.clone())
}

fn positive(value: &Value) -> Option<Value> {
    // To Python true is the number 1.
    let fits = value.as_int().is_some_and(|number| number > 0) || value.as_bool() == Some(true);
    fits.then(|| value.clone())
}

fn not_negative(value: &Value) -> Option<Value> {
    let fits = match value {
        Value::Int(number) => *number >= 0,
        Value::Float(number) => *number >= 0.0,
        Value::Bool(_) => true,
        _ => false,
    };
    fits.then(|| value.clone())
}

fn truth_or_text(value: &Value) -> Option<Value> {
    matches!(value, Value::Bool(_) | Value::Str(_)).then(|| value.clone())
}

fn truth_or_trimmed(value: &Value) -> Option<Value> {
    match value {
        Value::Bool(_) => Some(value.clone()),
        other => text(other),
    }
}

fn mapping(value: &Value) -> Option<Value> {
    matches!(value, Value::Map(_)).then(|| value.clone())
}

fn headers(value: &Value) -> Option<Value> {
    let entries = value.as_map()?.iter().filter(|(_, value)| !value.is_null());
    let entries: Vec<_> = entries
        .map(|(key, value)| {
            (
                Value::from(super::python_text(key)),
                Value::from(super::python_text(value)),
            )
        })
        .collect();
    (!entries.is_empty()).then_some(Value::Map(entries))
}

/// Marks in a map of models that are no model.
const DISCOVERED: &str = "__discovered_model_catalog__";
const EXPLICIT: &str = "__explicit_model_allowlist__";

fn discovered(models: Option<&Value>) -> Option<Value> {
    only_true(models?.field(DISCOVERED)?)
}

/// Models as a map, however they were listed.
fn models(value: &Value) -> Option<Value> {
    let found: Vec<(Value, Value)> = match value {
        Value::Map(entries) => {
            let is_mark = |key: &Value| matches!(key.as_str(), Some(DISCOVERED | EXPLICIT));
            entries
                .iter()
                .filter(|(key, _)| !is_mark(key))
                .cloned()
                .collect()
        }
        Value::List(items) => {
            let mut found: Vec<(Value, Value)> = Vec::new();
            for (id, rest) in items.iter().filter_map(model) {
                found.retain(|(own, _)| *own != id);
                found.push((id, rest));
            }
            found
        }
        _ => Vec::new(),
    };
    (!found.is_empty()).then_some(Value::Map(found))
}

fn model(item: &Value) -> Option<(Value, Value)> {
    if let Some(id) = text(item) {
        return Some((id, Value::Map(Vec::new())));
    }
    let id = item
        .field("id")
        .and_then(text)
        .or_else(|| item.field("name").and_then(text))?;
    let rest = item
        .as_map()?
        .iter()
        .filter(|(key, _)| !matches!(key.as_str(), Some("id" | "name")));
    Some((id, Value::Map(rest.cloned().collect())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_name_or_the_host() {
        let entry: Value =
            serde_json::from_str(r#"{"base_url":"https://u@Api.Example.com:8/v1"}"#).unwrap();
        assert_eq!(key_of(" My (Own)  LLM ", &entry, 0), "my-own-llm");
        assert_eq!(key_of("", &entry, 0), "api-example-com");
        assert_eq!(free_key(&["a".into(), "a-1".into()], "a", 1), "a-2");
    }

    #[test]
    fn a_url_needs_a_scheme_and_a_host_or_a_placeholder() {
        let url = |text: &'static str| {
            let entry = Value::from([("base_url", Value::from(text))]);
            base_url(&|name: &str| entry.field(name).cloned().map(|v| &*Box::leak(Box::new(v))))
                .is_some()
        };
        for (text, fits) in [
            ("https://h/v1", true),
            ("localhost:8080", false),
            ("h/v1", false),
            ("${BASE}/v1", true),
            ("http://[::1/v1", false),
            ("{}", false),
        ] {
            assert_eq!(url(text), fits, "{text}");
        }
    }
}
