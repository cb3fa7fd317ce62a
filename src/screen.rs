//! What may be shown: secrets are masked, and names are made harmless.
//!
//! [`text`] and [`json`] mask what looks like a secret, by the name of its key and by its own shape;
//! [`without`] and [`json_without`] mask values that a home's secrets file holds; [`visible`] and
//! [`visible_json`] escape what a terminal or a reader could be fooled with. All are for strings that
//! come from outside. Digests and ids of ours never pass here: they would look like tokens.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::LazyLock;

use regex_lite::Regex;
use serde_json::Value;

/// What stands in a secret's place.
pub const MASK: &str = "[masked]";

/// Words that make a key's value a secret, as whole words of its name.
const SECRET_WORDS: &[&str] = &[
    "apikey",
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "cred",
    "credential",
    "credentials",
    "key",
    "keys",
    "passphrase",
    "passwd",
    "password",
    "passwords",
    "pat",
    "pin",
    "private",
    "psk",
    "pwd",
    "salt",
    "secret",
    "secrets",
    "session",
    "signature",
    "token",
    "tokens",
    "webhook",
];

/// Names that hold such a word and are settings all the same.
const PLAIN_NAMES: &[&str] = &[
    "compression.threshold_tokens",
    "max_tokens",
    "threshold_tokens",
    "session_reset",
    "session",
    "key_env",
];

/// A pattern, and what every text has that it matches. Looking for that costs next to nothing, and most texts
/// are short words without it.
struct Shape {
    needs: fn(&str) -> bool,
    pattern: LazyLock<Option<Regex>>,
}

impl Shape {
    const fn new(needs: fn(&str) -> bool, compile: fn() -> Option<Regex>) -> Self {
        Self {
            needs,
            pattern: LazyLock::new(compile),
        }
    }

    /// The pattern, where it can match.
    fn if_possible(&self, text: &str) -> Option<&Regex> {
        (self.needs)(text).then(|| self.pattern.as_ref()).flatten()
    }
}

/// Shapes that tokens of well-known services have.
static SHAPES: [Shape; 9] = [
    Shape::new(has_marked_word, || {
        Regex::new(r"(?i)\b(sk|pk|rk|ghp|gho|ghu|ghs|ghr|glpat|xox[abposr]|hf|gsk|AIza|ya29|npm|dop|shpat|tvly|nvapi|or)[-_][A-Za-z0-9_\-]{8,}").ok()
    }),
    Shape::new(
        |text| text.contains("github_pat_"),
        || Regex::new(r"\bgithub_pat_[A-Za-z0-9_]{20,}").ok(),
    ),
    Shape::new(
        |text| text.contains("AKIA"),
        || Regex::new(r"\bAKIA[0-9A-Z]{16}\b").ok(),
    ),
    Shape::new(
        |text| text.contains("AIza"),
        || Regex::new(r"\bAIza[0-9A-Za-z_\-]{30,}").ok(),
    ),
    Shape::new(
        |text| text.contains("eyJ"),
        || Regex::new(r"\beyJ[A-Za-z0-9_\-]{8,}(\.[A-Za-z0-9_\-]+){1,2}").ok(),
    ),
    Shape::new(
        |text| text.contains(':'),
        || Regex::new(r"\b[0-9]{8,10}:[A-Za-z0-9_\-]{30,}").ok(),
    ),
    Shape::new(
        |text| {
            text.bytes()
                .any(|byte| matches!(byte, b'\t'..=b'\r' | b' '))
        },
        || Regex::new(r"(?i)\b(bearer|basic|token)\s+[A-Za-z0-9+/_\-.=]{8,}").ok(),
    ),
    Shape::new(
        |text| text.contains("-----BEGIN "),
        || Regex::new(r"-----BEGIN [A-Z ]+-----[^-]*(-----END [A-Z ]+-----)?").ok(),
    ),
    Shape::new(
        |text| text.contains('=') && text.contains(['?', '&']),
        || {
            Regex::new(r"(?i)[?&](key|token|secret|password|sig|signature|auth|access_token|api_key)=[^&\s]+").ok()
        },
    ),
];

/// Passwords in addresses.
static URL_USER: Shape = Shape::new(
    |text| text.contains("://") && text.contains('@'),
    || Regex::new(r"([A-Za-z][A-Za-z0-9+.\-]*://)[^/\s@]+@").ok(),
);

static ASSIGNED: Shape = Shape::new(has_secret_assignment, || {
    Regex::new(r#"([A-Za-z_][A-Za-z0-9_\-]*)(\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s,;&]+)"#).ok()
});

static WORD: Shape = Shape::new(
    |text| text.len() >= LONG && long_words(text).any(is_random),
    || Regex::new(r"[A-Za-z0-9+/_\-=]{20,}").ok(),
);

/// How tokens begin that have a mark before their `-` or `_`.
const MARKS: &[&str] = &[
    "sk", "pk", "rk", "ghp", "gho", "ghu", "ghs", "ghr", "glpat", "xoxa", "xoxb", "xoxo", "xoxp",
    "xoxr", "xoxs", "hf", "gsk", "aiza", "ya29", "npm", "dop", "shpat", "tvly", "nvapi", "or",
];

/// Whether eight letters, digits, `-` and `_` stand behind a mark and its `-` or `_`.
fn has_marked_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let ends_with = |before: &[u8], mark: &str| {
        let mark = mark.as_bytes();
        before.len() >= mark.len() && before[before.len() - mark.len()..].eq_ignore_ascii_case(mark)
    };
    let follows = |(at, byte): (usize, &u8)| {
        matches!(byte, b'_' | b'-')
            && bytes
                .get(at + 1..at + 9)
                .is_some_and(|word| word.iter().all(is_word))
            && MARKS.iter().any(|mark| ends_with(&bytes[..at], mark))
    };
    bytes.iter().enumerate().any(follows)
}

/// Whether a name of a secret stands before some `=` or `:`.
fn has_secret_assignment(text: &str) -> bool {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    text.match_indices(['=', ':']).any(|(at, _)| {
        let before = text[..at].trim_end();
        let start = before.trim_end_matches(is_name).len();
        let name = before[start..].trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
        !name.is_empty() && is_secret_name(name)
    })
}

/// From this length on a word may be random.
const LONG: usize = 20;

/// The words of a text that are long enough to be random.
fn long_words(text: &str) -> impl Iterator<Item = &str> {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '_' | '-' | '=');
    let words = text.split(move |c: char| !is_letter(c));
    words.filter(|word| word.len() >= LONG)
}

/// Whether a key of this name holds a secret. Dots separate the parts of a path; the last counts most.
#[must_use]
pub fn is_secret_name(path: &str) -> bool {
    let name = path
        .rsplit('.')
        .find(|part| !part.is_empty() && !part.starts_with('['))
        .unwrap_or(path);
    let lower = name.to_ascii_lowercase();
    if PLAIN_NAMES.contains(&lower.as_str()) || PLAIN_NAMES.contains(&path) {
        return false;
    }
    // `apiKey`, `API_KEY`, `api-key`: words end where the case rises or at a separator.
    let mut word = String::new();
    let mut before_lower = false;
    for letter in name.chars() {
        if (!letter.is_alphanumeric() || (letter.is_uppercase() && before_lower))
            && is_secret_word(&std::mem::take(&mut word))
        {
            return true;
        }
        if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        }
        before_lower = letter.is_lowercase();
    }
    is_secret_word(&word)
}

fn is_secret_word(word: &str) -> bool {
    SECRET_WORDS.contains(&word)
}

/// Masks what in a text looks like a secret: known shapes, passwords in addresses, values of
/// secret-named assignments, and long random words.
#[must_use]
pub fn text(input: &str) -> String {
    masked(input, Shape::if_possible).into_owned()
}

/// The same; `find` gives the pattern of a shape.
fn masked<'t>(
    input: &'t str,
    find: for<'s> fn(&'s Shape, &str) -> Option<&'s Regex>,
) -> Cow<'t, str> {
    let mut output = Cow::Borrowed(input);
    if let Some(pattern) = find(&URL_USER, &output) {
        let with_mask = format!("${{1}}{MASK}@");
        output = Cow::Owned(pattern.replace_all(&output, with_mask).into_owned());
    }
    for shape in &SHAPES {
        if let Some(pattern) = find(shape, &output) {
            output = Cow::Owned(pattern.replace_all(&output, MASK).into_owned());
        }
    }
    if let Some(pattern) = find(&ASSIGNED, &output) {
        let masked = pattern.replace_all(&output, |found: &regex_lite::Captures<'_>| {
            if is_secret_name(&found[1]) && &found[3] != MASK && !is_truth(&found[3]) {
                format!("{}{}{MASK}", &found[1], &found[2])
            } else {
                found[0].to_owned()
            }
        });
        output = Cow::Owned(masked.into_owned());
    }
    if let Some(pattern) = find(&WORD, &output) {
        let masked = pattern.replace_all(&output, |found: &regex_lite::Captures<'_>| {
            if is_random(&found[0]) {
                MASK.to_owned()
            } else {
                found[0].to_owned()
            }
        });
        output = Cow::Owned(masked.into_owned());
    }
    output
}

/// Whether a value only says yes, no or nothing, as a program or a configuration writes it.
fn is_truth(value: &str) -> bool {
    let words = ["true", "false", "none", "null"];
    words.iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// Masks the secrets of a value that stands at `path`.
#[must_use]
pub fn json(path: &str, value: &Value) -> Value {
    match value {
        Value::String(content)
            if !content.is_empty() && is_secret_name(path) && !is_reference(content) =>
        {
            Value::String(MASK.to_owned())
        }
        Value::Number(_) if is_secret_name(path) => Value::String(MASK.to_owned()),
        Value::String(content) => Value::String(text(content)),
        Value::Array(items) => Value::Array(items.iter().map(|item| json(path, item)).collect()),
        Value::Object(entries) => Value::Object(
            entries
                .iter()
                .map(|(key, value)| (text(key), json(&format!("{path}.{key}"), value)))
                .collect(),
        ),
        other => other.clone(),
    }
}

/// `${NAME}` names a secret, it does not hold one.
fn is_reference(content: &str) -> bool {
    content.starts_with("${")
        && content.ends_with('}')
        && content[2..content.len() - 1]
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether a word is too random to be a name: long, of mixed kinds of letters, and of high entropy.
fn is_random(word: &str) -> bool {
    // systemd-run(1) names a unit so.
    if let Some(id) = word.strip_prefix("run-r")
        && id.len() == 32
        && id.bytes().all(|byte| byte.is_ascii_hexdigit())
    {
        return false;
    }
    // Paths and kebab-case names are long as well; their parts are not random.
    if word.contains('/') && word.split('/').all(|part| part.len() < 20) {
        return false;
    }
    let kinds = [
        word.chars().any(|c| c.is_ascii_lowercase()),
        word.chars().any(|c| c.is_ascii_uppercase()),
        word.chars().any(|c| c.is_ascii_digit()),
    ];
    let mixed = kinds.into_iter().filter(|kind| *kind).count();
    let digits = word.chars().filter(char::is_ascii_digit).count();
    let mut counts = [0_u32; 256];
    for byte in word.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let length = word.len() as f64;
    let entropy: f64 = counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| {
            let share = f64::from(*count) / length;
            -share * share.log2()
        })
        .sum();
    (mixed == 3 && entropy > 3.5)
        || (mixed == 2 && digits >= 4 && entropy > 3.4 && !word.contains('-'))
        || (mixed == 2 && digits * 3 > word.len() && entropy > 3.2)
}

/// Escapes control characters, escape sequences, line ends and marks that change the direction of
/// text, so that a name cannot draw on a terminal or forge a line.
#[must_use]
pub fn visible(input: &str) -> Cow<'_, str> {
    if input.chars().all(is_harmless) {
        return Cow::Borrowed(input);
    }
    let mut output = String::with_capacity(input.len() + 8);
    for letter in input.chars() {
        match letter {
            '\n' => output.push_str("\\n"),
            '\r' => output.push_str("\\r"),
            '\t' => output.push_str("\\t"),
            letter if is_harmless(letter) => output.push(letter),
            letter => {
                // Writing into a string cannot fail.
                let _ = write!(output, "\\u{{{:x}}}", u32::from(letter));
            }
        }
    }
    Cow::Owned(output)
}

/// The same for a JSON document that was rendered already: harmful letters in its strings become the
/// escapes of JSON, so that it means the same and is as safe to print.
#[must_use]
pub fn visible_json(rendered: &str) -> Cow<'_, str> {
    // Nearly every document is ASCII: without a branch a byte, many are looked at together.
    let is_plain = |byte: &u8| matches!(byte, b'\n' | b' '..=b'~');
    let mut stretches = rendered.as_bytes().chunks(64);
    if stretches.all(|stretch| stretch.iter().fold(true, |all, byte| all & is_plain(byte))) {
        return Cow::Borrowed(rendered);
    }
    let is_fine = |letter: char| letter == '\n' || is_harmless(letter);
    if rendered.chars().all(is_fine) {
        return Cow::Borrowed(rendered);
    }
    let mut output = String::with_capacity(rendered.len() + 16);
    for letter in rendered.chars() {
        if is_fine(letter) {
            output.push(letter);
            continue;
        }
        // Outside of the first plane a letter is two escapes (RFC 8259, section 7).
        for unit in letter.encode_utf16(&mut [0; 2]) {
            // Writing into a string cannot fail.
            let _ = write!(output, "\\u{unit:04x}");
        }
    }
    Cow::Owned(output)
}

/// Masks these values, whatever their shape, in a text of the same home.
#[must_use]
pub fn without(values: &[String], input: &str) -> String {
    values.iter().fold(input.to_owned(), |text, value| {
        if text == *value || value.len() >= SHORT {
            text.replace(value.as_str(), MASK)
        } else {
            text
        }
    })
}

/// The same in every string of a value.
#[must_use]
pub fn json_without(values: &[String], value: &Value) -> Value {
    match value {
        Value::String(content) => Value::String(without(values, content)),
        Value::Number(number) if values.contains(&number.to_string()) => {
            Value::String(MASK.to_owned())
        }
        Value::Array(items) => items
            .iter()
            .map(|item| json_without(values, item))
            .collect(),
        Value::Object(entries) => Value::Object(
            entries
                .iter()
                .map(|(key, value)| (without(values, key), json_without(values, value)))
                .collect(),
        ),
        other => other.clone(),
    }
}

/// A shorter value is masked only where it is the whole text: `on` stands in many words.
const SHORT: usize = 6;

const fn is_harmless(letter: char) -> bool {
    !matches!(
        letter,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' | '\u{61c}' | '\u{ad}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_masked_by_their_shape() {
        for secret in [
            "sk-proj-abcdefgh12345678",
            "ghp_abcdefghijklmnopqrst1234",
            "AKIAIOSFODNN7EXAMPLE",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
            "1234567890:AAFakeFakeFakeFakeFakeFakeFakeFake12",
            "Bearer abcdefgh.12345678",
            "q8Zr1LmX0vB7nT4kYc2W",
        ] {
            let shown = text(&format!("see {secret} there"));
            assert!(!shown.contains(secret), "{secret} is shown in {shown}");
            assert!(shown.contains(MASK));
        }
    }

    #[test]
    fn a_pattern_that_is_not_tried_would_not_have_matched() {
        let pieces = [
            "sk",
            "-",
            "_",
            "ghp_",
            "NVAPI-",
            "xoxs",
            "or_",
            "github_pat_",
            "AKIA",
            "IOSFODNN7EXAMPLE",
            "AIza",
            "eyJ",
            ".",
            "12345678",
            ":",
            "bearer",
            "TOKEN",
            " ",
            "\t",
            "\u{b}",
            "\u{a0}",
            "-----BEGIN ",
            "KEY-----",
            "?key=",
            "&sig=",
            "=",
            "://",
            "@",
            "/",
            "user",
            "api_key",
            "'",
            "\"",
            ",",
            "a1B2c3D4",
            "q8Zr1LmX0vB7nT4kYc2W",
            "é",
            "ſk",
            "[masked]",
        ];
        let mut state = 7_u64;
        let mut next = |limit: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            usize::try_from(state >> 33).expect("31 bits") % limit
        };
        let (mut all, mut tried) = (0, 0);
        for _ in 0..3_000 {
            let input: String = (0..next(9)).map(|_| pieces[next(pieces.len())]).collect();
            let thorough = masked(&input, |shape, _| shape.pattern.as_ref());
            assert_eq!(text(&input), thorough, "{input:?}");
            let shapes = SHAPES.iter().chain([&URL_USER, &ASSIGNED, &WORD]);
            for shape in shapes {
                all += 1;
                tried += usize::from(shape.if_possible(&input).is_some());
            }
        }
        assert!(tried < all / 2, "{tried} of {all}");
    }

    #[test]
    fn a_truth_and_a_name_that_systemd_gives_are_no_secrets() {
        for plain in [
            "sys._pin_home = True; import x",
            "token: none",
            "auth=\"x\" session=false",
            "run-r4f3c0d1e2b5a69788796a5b4c3d2e1f0.scope",
        ] {
            let masked = plain.replace("\"x\"", MASK);
            assert_eq!(text(plain), masked);
        }
        for secret in [
            "pin = Truest1",
            "run-r4f3c0d1e2b5a69788796a5b4c3d2e1f0aa",
            "run-x4f3c0d1e2b5a69788796a5b4c3d2e1f0",
        ] {
            assert!(text(secret).contains(MASK), "{secret}");
        }
    }

    #[test]
    fn passwords_in_addresses_and_assignments_are_masked() {
        assert_eq!(text("https://u:p@h/x"), format!("https://{MASK}@h/x"));
        assert_eq!(
            text("OPENAI_API_KEY=abc and x=1"),
            format!("OPENAI_API_KEY={MASK} and x=1")
        );
        assert_eq!(text("password: hunter2"), format!("password: {MASK}"));
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        for plain in [
            "cannot replace /home/ann/.hermes/profiles/work/config.yaml: permission denied",
            "hermes-gateway-work.service",
            "delegation.max_concurrent_children 3 → 10",
            "user@1001.service/app.slice/hermes-gateway.service",
            "display.background_process_notifications",
        ] {
            assert_eq!(text(plain), plain);
        }
    }

    #[test]
    fn a_key_names_its_secret_and_a_reference_is_shown() {
        assert_eq!(json("a.api_key", &"x".into()), Value::from(MASK));
        assert_eq!(json("apiKey", &"x".into()), Value::from(MASK));
        assert_eq!(json("a.api_key", &"${K}".into()), Value::from("${K}"));
        assert_eq!(json("display.mode", &"x".into()), Value::from("x"));
        assert_eq!(
            json("compression.threshold_tokens", &256_000.into()),
            Value::from(256_000)
        );
        let nested = serde_json::json!({"token": "x", "url": "y"});
        assert_eq!(
            json("providers.p", &nested),
            serde_json::json!({"token": MASK, "url": "y"})
        );
    }

    #[test]
    fn a_printed_document_cannot_draw_and_means_the_same() {
        let value = serde_json::json!({"a\u{202e}": "x\u{9b}2J\u{e0041}\n\u{1b}日"});
        let text = serde_json::to_string_pretty(&value).expect("it is JSON");
        let shown = visible_json(&text);
        assert!(
            shown.chars().all(|c| c == '\n' || is_harmless(c)),
            "{shown}"
        );
        assert_eq!(
            serde_json::from_str::<Value>(&shown).expect("still JSON"),
            value
        );
    }

    #[test]
    fn values_of_a_home_are_masked_whatever_they_look_like() {
        let values = ["plainword".to_owned(), "on".to_owned(), "4711".to_owned()];
        assert_eq!(
            without(&values, "is plainword, once"),
            format!("is {MASK}, once")
        );
        assert_eq!(without(&values, "once"), "once");
        let value = serde_json::json!({"a": ["on", 4711, {"plainword": 1}]});
        let expected = serde_json::json!({"a": [MASK, MASK, {MASK: 1}]});
        assert_eq!(json_without(&values, &value), expected);
    }

    #[test]
    fn names_cannot_draw_on_a_terminal() {
        assert_eq!(
            visible("a\u{1b}[31mb\nc\u{202e}d"),
            "a\\u{1b}[31mb\\nc\\u{202e}d"
        );
        assert_eq!(visible("naïve 日本"), "naïve 日本");
    }
}
