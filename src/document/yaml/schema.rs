//! What a YAML scalar means: the typing of YAML 1.1 as PyYAML does it.
//!
//! No library types scalars this way (`y` is text, `1e3` is text, `0123` is octal, `1:30` is 90), so the
//! rules stand here, without a regular expression. Also says what other loaders of the same file read
//! as something else ([`is_disputed`]), so that nothing of the kind is ever written. Knows nothing of
//! syntax: it gets the text of a scalar after quotes and escapes are gone.

use super::super::Value;

/// Python converts no longer decimal number (`sys.set_int_max_str_digits`).
const MAX_DIGITS: usize = 4_300;

/// What a plain scalar is.
#[derive(Debug, PartialEq)]
pub(super) enum Plain {
    /// A value.
    Value(Value),
    /// `<<`, which merges mappings when it is a key.
    Merge,
}

/// Types a plain scalar that has no tag.
///
/// # Errors
/// When PyYAML fails on it: the reason.
pub(super) fn plain(text: &str) -> Result<Plain, String> {
    let value = match text.as_bytes().first() {
        None | Some(b'~' | b'n' | b'N') if is_null(text) => Value::Null,
        Some(b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O') => {
            truth(text).map_or_else(|| Value::Str(text.into()), Value::Bool)
        }
        Some(b'-' | b'+' | b'.' | b'0'..=b'9') => number_or_date(text)?,
        Some(b'<') if text == "<<" => return Ok(Plain::Merge),
        Some(b'=') if text == "=" => return Err("a bare `=` cannot be read".to_owned()),
        _ => Value::Str(text.into()),
    };
    Ok(Plain::Value(value))
}

/// Types a scalar whose tag is `!!suffix`.
///
/// # Errors
/// When the text is not of that type, or the type is one that no configuration needs.
pub(super) fn tagged(suffix: &str, text: &str) -> Result<Value, String> {
    let misfit = || format!("the text is no `!!{suffix}`");
    match suffix {
        "str" => Ok(Value::Str(text.into())),
        "null" => Ok(Value::Null),
        "bool" => truth_any_case(text).map(Value::Bool).ok_or_else(misfit),
        "int" if is_int(text) => int(text),
        "float" if is_float(text) || is_int(text) && decimal(text) => float(text),
        "timestamp" if is_timestamp(text) => timestamp(text),
        "binary" if !text.is_empty() && text.bytes().all(is_base64) => {
            Ok(Value::Other("binary", text.into()))
        }
        "int" | "float" | "timestamp" | "binary" => Err(misfit()),
        _ => Err(format!("the tag `!!{suffix}` is not known")),
    }
}

/// Whether loaders of the application read a plain scalar as different types: PyYAML as text, ruamel.yaml
/// as a truth value or a number; or YAML 1.2 as something else than YAML 1.1.
pub(super) fn is_disputed(text: &str) -> bool {
    matches!(text, "y" | "Y" | "n" | "N") || is_lenient_float(text) || is_core_number(text)
}

/// Whether YAML 1.2 types a plain scalar differently from the `value` that YAML 1.1 gives it.
pub(super) fn is_young(text: &str, value: &Value) -> bool {
    match value {
        Value::Bool(_) => !matches!(text, "true" | "True" | "TRUE" | "false" | "False" | "FALSE"),
        Value::Int(_) | Value::Float(_) | Value::Other("int", _) => {
            text.contains(':')
                || (unsigned(text).starts_with('0') && unsigned(text).len() > 1)
                || text.contains('_')
        }
        Value::Str(_) => is_disputed(text),
        _ => false,
    }
}

/// Whether ruamel.yaml fails on a plain scalar that PyYAML reads as text.
pub(super) fn breaks_ruamel(text: &str) -> bool {
    let body = unsigned(text);
    // Its integer pattern takes `_` for a digit, and a dot may be followed by `_` only.
    match body.as_bytes() {
        [b'_', ..] => {
            body.len() < text.len() && body.bytes().all(|b| matches!(b, b'_' | b'0'..=b'7'))
        }
        [b'.', rest @ ..] => {
            body.len() == text.len() && !rest.is_empty() && {
                let digits = rest
                    .iter()
                    .take_while(|b| matches!(b, b'_' | b'0'..=b'9'))
                    .count();
                digits > 0
                    && rest[..digits].iter().all(|b| *b == b'_')
                    && is_signed_exponent(&rest[digits..])
            }
        }
        _ => false,
    }
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

fn truth(text: &str) -> Option<bool> {
    match text {
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Some(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

fn truth_any_case(text: &str) -> Option<bool> {
    truth(&text.to_ascii_lowercase())
}

fn number_or_date(text: &str) -> Result<Value, String> {
    if is_float(text) {
        float(text)
    } else if is_int(text) {
        int(text)
    } else if is_timestamp(text) {
        timestamp(text)
    } else {
        Ok(Value::Str(text.into()))
    }
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix(['-', '+']).unwrap_or(text)
}

/// The length of a run of digits and `_` that starts with a digit.
fn run(bytes: &[u8]) -> usize {
    if bytes.first().is_some_and(u8::is_ascii_digit) {
        tail(bytes)
    } else {
        0
    }
}

/// The length of a run of digits and `_`.
fn tail(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take_while(|b| b.is_ascii_digit() || **b == b'_')
        .count()
}

/// `(:[0-5]?[0-9])+` at the front: its length.
fn sixties(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        at += match &bytes[at..] {
            [b':', b'0'..=b'5', b'0'..=b'9', ..] => 3,
            [b':', b'0'..=b'9', ..] => 2,
            _ => return at,
        };
    }
}

/// `[eE][-+][0-9]+`, or nothing, up to the end.
fn is_signed_exponent(bytes: &[u8]) -> bool {
    match bytes {
        [] => true,
        [b'e' | b'E', b'-' | b'+', digits @ ..] => all_digits(digits),
        _ => false,
    }
}

fn all_digits(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit)
}

fn is_float(text: &str) -> bool {
    let body = unsigned(text).as_bytes();
    let is_signed = body.len() < text.len();
    if matches!(body, b".inf" | b".Inf" | b".INF") {
        return true;
    }
    if matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    if let [b'.', rest @ ..] = body {
        let digits = run(rest);
        return !is_signed && digits > 0 && is_signed_exponent(&rest[digits..]);
    }
    let whole = run(body);
    if whole == 0 {
        return false;
    }
    let sixties = sixties(&body[whole..]);
    match &body[whole + sixties..] {
        [b'.', rest @ ..] => {
            let digits = tail(rest);
            let end = &rest[digits..];
            if sixties == 0 {
                is_signed_exponent(end)
            } else {
                end.is_empty()
            }
        }
        _ => false,
    }
}

/// Floats of ruamel.yaml that PyYAML takes for text: no dot, or an exponent without a sign.
fn is_lenient_float(text: &str) -> bool {
    let body = unsigned(text).as_bytes();
    let exponent = |bytes: &[u8]| match bytes {
        [b'e' | b'E', b'-' | b'+', digits @ ..] | [b'e' | b'E', digits @ ..] => all_digits(digits),
        _ => false,
    };
    let whole = run(body);
    if whole == 0 {
        return match body {
            // `.5` with a sign or a leading `_` is text to one of the two.
            [b'.', rest @ ..] => {
                let digits = tail(rest);
                digits > 0
                    && (is_signed_exponent(&rest[digits..]) || exponent(&rest[digits..]))
                    && !is_float(text)
            }
            _ => false,
        };
    }
    match &body[whole..] {
        [b'.', rest @ ..] => exponent(&rest[tail(rest)..]) && !is_float(text),
        rest => exponent(rest),
    }
}

/// Numbers of YAML 1.2 that are text in YAML 1.1, or other numbers.
fn is_core_number(text: &str) -> bool {
    let body = unsigned(text).as_bytes();
    match body {
        [b'0', b'o', digits @ ..] => {
            !digits.is_empty() && digits.iter().all(|b| matches!(b, b'0'..=b'7'))
        }
        digits => digits.len() > 1 && digits[0] == b'0' && all_digits(digits),
    }
}

fn is_int(text: &str) -> bool {
    let body = unsigned(text).as_bytes();
    let rest_is =
        |digits: &[u8], allowed: fn(&u8) -> bool| !digits.is_empty() && digits.iter().all(allowed);
    match body {
        b"0" => true,
        [b'0', b'b', digits @ ..] => rest_is(digits, |b| matches!(b, b'0' | b'1' | b'_')),
        [b'0', b'x', digits @ ..] => rest_is(digits, |b| b.is_ascii_hexdigit() || *b == b'_'),
        [b'0', digits @ ..] => rest_is(digits, |b| matches!(b, b'0'..=b'7' | b'_')),
        [b'1'..=b'9', ..] => {
            let whole = run(body);
            whole + sixties(&body[whole..]) == body.len()
        }
        _ => false,
    }
}

/// Whether an integer's text is a plain decimal one.
fn decimal(text: &str) -> bool {
    unsigned(text)
        .bytes()
        .all(|b| b.is_ascii_digit() || b == b'_')
}

fn int(text: &str) -> Result<Value, String> {
    // Nearly all are these; a leading zero makes another number of the same digits.
    if let [b'1'..=b'9', ..] | b"0" = unsigned(text).as_bytes()
        && let Ok(value) = text.parse()
    {
        return Ok(Value::Int(value));
    }
    let bare = text.replace('_', "");
    let digits = unsigned(&bare);
    let sign = if bare.starts_with('-') { -1 } else { 1 };
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'b', ..] => (&digits[2..], 2),
        [b'0', b'x', ..] => (&digits[2..], 16),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    if digits.is_empty() {
        return Err("a number without digits".to_owned());
    }
    if radix == 10 && digits.len() > MAX_DIGITS {
        return Err("a number that is too long".to_owned());
    }
    let wide = || Ok(Value::Other("int", bare.trim_start_matches('+').into()));
    if digits.contains(':') {
        let mut total: i64 = 0;
        for part in digits.split(':') {
            let next = part
                .parse()
                .ok()
                .and_then(|part: i64| total.checked_mul(60)?.checked_add(part));
            let Some(next) = next else { return wide() };
            total = next;
        }
        return Ok(Value::Int(sign * total));
    }
    // The sign belongs to the parse: the smallest number has no positive twin.
    let signed = if sign < 0 {
        format!("-{digits}")
    } else {
        digits.to_owned()
    };
    i64::from_str_radix(&signed, radix).map_or_else(|_| wide(), |value| Ok(Value::Int(value)))
}

fn float(text: &str) -> Result<Value, String> {
    let bare = text.replace('_', "").to_ascii_lowercase();
    let digits = unsigned(&bare);
    let sign = if bare.starts_with('-') { -1.0 } else { 1.0 };
    let fail = || format!("{text} is no number");
    let value = match digits {
        ".inf" => f64::INFINITY,
        ".nan" => f64::NAN,
        _ if digits.contains(':') => {
            let mut total = 0.0;
            let mut base = 1.0;
            for part in digits.rsplit(':') {
                total += part.parse::<f64>().map_err(|_| fail())? * base;
                base *= 60.0;
            }
            total
        }
        _ => digits.parse::<f64>().map_err(|_| fail())?,
    };
    Ok(Value::Float(sign * value))
}

/// A date, or a date and a time.
struct Timestamp<'t> {
    date: [&'t str; 3],
    time: Option<[&'t str; 3]>,
    offset: Option<(&'t str, &'t str)>,
}

fn is_timestamp(text: &str) -> bool {
    split_timestamp(text).is_some()
}

/// Takes digits off the front: at least `least`, at most `most`.
fn digits<'t>(rest: &mut &'t str, least: usize, most: usize) -> Option<&'t str> {
    let count = rest
        .bytes()
        .take(most)
        .take_while(u8::is_ascii_digit)
        .count();
    if count < least {
        return None;
    }
    let (head, after) = rest.split_at(count);
    *rest = after;
    Some(head)
}

fn split_timestamp(text: &str) -> Option<Timestamp<'_>> {
    let mut rest = text;
    let year = digits(&mut rest, 4, 4)?;
    rest = rest.strip_prefix('-')?;
    let month = digits(&mut rest, 1, 2)?;
    rest = rest.strip_prefix('-')?;
    let day = digits(&mut rest, 1, 2)?;
    let date = [year, month, day];
    if rest.is_empty() {
        let is_full = month.len() == 2 && day.len() == 2;
        return is_full.then_some(Timestamp {
            date,
            time: None,
            offset: None,
        });
    }
    let blank = |c| c == ' ' || c == '\t';
    rest = match rest.strip_prefix(['T', 't']) {
        Some(after) => after,
        None => Some(rest.trim_start_matches(blank)).filter(|after| after.len() < rest.len())?,
    };
    let hour = digits(&mut rest, 1, 2)?;
    rest = rest.strip_prefix(':')?;
    let minute = digits(&mut rest, 2, 2)?;
    rest = rest.strip_prefix(':')?;
    let second = digits(&mut rest, 2, 2)?;
    if let Some(fraction) = rest.strip_prefix('.') {
        rest = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    let time = Some([hour, minute, second]);
    rest = rest.trim_start_matches(blank);
    // Blanks before nothing at all are not part of a timestamp; the text of a scalar never ends in one.
    if rest.is_empty() || rest == "Z" {
        return Some(Timestamp {
            date,
            time,
            offset: None,
        });
    }
    rest = rest.strip_prefix(['-', '+'])?;
    let hours = digits(&mut rest, 1, 2)?;
    let minutes = match rest.strip_prefix(':') {
        Some(after) => {
            rest = after;
            digits(&mut rest, 2, 2)?
        }
        None => "0",
    };
    rest.is_empty().then_some(Timestamp {
        date,
        time,
        offset: Some((hours, minutes)),
    })
}

fn timestamp(text: &str) -> Result<Value, String> {
    let fail = || Err(format!("{text} is no date that there is"));
    let Some(parts) = split_timestamp(text) else {
        return fail();
    };
    let number = |digits: &str| digits.parse::<u32>().unwrap_or(u32::MAX);
    let [year, month, day] = parts.date.map(number);
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 31,
    };
    if year == 0 || !(1..=12).contains(&month) || day == 0 || day > days {
        return fail();
    }
    if let Some([hour, minute, second]) = parts.time.map(|time| time.map(number))
        && (hour > 23 || minute > 59 || second > 59)
    {
        return fail();
    }
    if let Some((hours, minutes)) = parts.offset
        && number(hours) * 60 + number(minutes) >= 24 * 60
    {
        return fail();
    }
    Ok(Value::Other("timestamp", text.into()))
}

const fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'\n' | b' ')
}
