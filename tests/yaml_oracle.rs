//! Compares what is read and written here with the loaders that the application uses: PyYAML's
//! `SafeLoader` and `CSafeLoader`, ruamel.yaml in 1.1 mode, and python-dotenv, in Python environments.
//!
//! `UPDATE_ORACLE_019` and `UPDATE_ORACLE_NEWEST` name the folders of virtual environments with PyYAML and
//! with ruamel.yaml; without them the test says that it was skipped. `UPDATE_ORACLE_CASES` (5,000) is the
//! number of cases of each kind, `UPDATE_ORACLE_SEED` (1) where they begin.

#![expect(
    clippy::disallowed_methods,
    reason = "a test starts the oracle and is told where it is"
)]
#![allow(
    clippy::print_stderr,
    clippy::expect_used,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test says what it skipped, and panics where it fails"
)]

/// Says that something was not tested, past the capture of the test harness.
macro_rules! skipped {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

#[path = "support/documents.rs"]
mod documents;

use std::io::Write;
use std::process::{Command, Stdio};

use documents::Rng;
use fleet_update::document::{self, Format, Value};
use serde_json::{Value as Json, json};

/// Reads one JSON text a line, writes one line with what each loader makes of it.
const ORACLE: &str = r#"
import sys, json, datetime, warnings, math
warnings.simplefilter("ignore")
sys.setrecursionlimit(10000)
kind = sys.argv[1]
def typed(v):
    if v is None: return ["null"]
    if isinstance(v, bool): return ["bool", v]
    if isinstance(v, int): return ["int", str(v)]
    if isinstance(v, float): return ["float", "nan" if math.isnan(v) else v.hex()]
    if isinstance(v, str): return ["str", v]
    if isinstance(v, bytes): return ["binary"]
    if isinstance(v, (datetime.date, datetime.datetime)): return ["timestamp"]
    if isinstance(v, dict): return ["map", [[typed(k), typed(x)] for k, x in v.items()]]
    if isinstance(v, (list, tuple)): return ["list", [typed(x) for x in v]]
    return ["other", str(type(v))]
if kind == "pyyaml":
    import yaml
    loaders = {"SafeLoader": lambda t: yaml.load(t, yaml.SafeLoader), "CSafeLoader": lambda t: yaml.load(t, yaml.CSafeLoader)}
elif kind == "dotenv":
    import io, logging
    logging.disable(logging.CRITICAL)
    from dotenv import dotenv_values
    loaders = {"dotenv": lambda t: dict(dotenv_values(stream=io.StringIO(t, newline=""), interpolate=False))}
else:
    from ruamel.yaml import YAML
    warnings.warn = lambda *a, **k: None
    def load(text, pure):
        y = YAML(typ="safe", pure=pure); y.version = (1, 1)
        return y.load(text)
    def both(text):
        try: return load(text, False)
        except Exception: return load(text, True)
    loaders = {"ruamel": both}
for line in sys.stdin:
    text = json.loads(line)
    out = {}
    for name, load_ in loaders.items():
        try: out[name] = {"ok": typed(load_(text))}
        except RecursionError: out[name] = {"error": "recursion"}
        except Exception as e: out[name] = {"error": type(e).__name__ + ": " + str(e)[:200]}
    sys.stdout.write(json.dumps(out) + "\n")
"#;

struct Case {
    text: String,
    ours: Result<Value, String>,
}

impl Case {
    fn new(text: String) -> Self {
        let ours = document::parse(Format::Yaml, text.as_bytes());
        Self {
            text,
            ours: ours
                .map(|document| document.value().clone())
                .map_err(|invalid| invalid.to_string()),
        }
    }
}

/// What an oracle makes of each case: one object a case.
fn ask(variable: &str, kind: &str, cases: &[Case]) -> Option<Vec<Json>> {
    let venv = std::env::var(variable).ok()?;
    let mut child = Command::new(format!("{venv}/bin/python3"))
        .args(["-c", ORACLE, kind])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the oracle's python3 starts");
    let mut stdin = child.stdin.take().expect("piped");
    let lines: String = cases
        .iter()
        .map(|case| format!("{}\n", Json::from(case.text.as_str())))
        .collect();
    let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let output = child.wait_with_output().expect("the oracle ends");
    writer.join().expect("no panic").expect("the oracle reads");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let answers: Vec<Json> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(answers.len(), cases.len());
    Some(answers)
}

/// Whether a loader's typed answer is our value; `lenient` allows what ruamel.yaml types differently.
fn same(ours: &Value, theirs: &Json, lenient: bool) -> bool {
    let kind = theirs[0].as_str().unwrap_or_default();
    match (ours, kind) {
        (Value::Null, "null") => true,
        (Value::Bool(value), "bool") => theirs[1] == json!(value),
        (Value::Int(value), "int") => theirs[1] == json!(value.to_string()),
        (Value::Other("int", _), "int")
        | (Value::Other("timestamp", _), "timestamp")
        | (Value::Other("binary", _), "binary") => true,
        (Value::Float(value), "float") => {
            hex(theirs[1].as_str().unwrap_or_default()).is_some_and(|other| {
                other.to_bits() == value.to_bits() || other.is_nan() && value.is_nan()
            })
        }
        (Value::Str(text), "str") => theirs[1] == json!(text.as_str()),
        (Value::Str(text), "bool") if lenient => matches!(text.as_str(), "y" | "Y" | "n" | "N"),
        (Value::Str(text), "float") if lenient => {
            text.contains(['e', 'E', '.']) && text.contains(|c: char| c.is_ascii_digit())
        }
        (Value::List(items), "list") => {
            let others = theirs[1].as_array().expect("a list");
            items.len() == others.len()
                && items
                    .iter()
                    .zip(others)
                    .all(|(item, other)| same(item, other, lenient))
        }
        (Value::Map(entries), "map") => {
            let others = theirs[1].as_array().expect("a map");
            let found = |key: &Value, value: &Value| {
                others
                    .iter()
                    .any(|pair| same(key, &pair[0], lenient) && same(value, &pair[1], lenient))
            };
            entries.len() == others.len() && entries.iter().all(|(key, value)| found(key, value))
        }
        // A document without content is an empty mapping here.
        (Value::Map(entries), "null") => entries.is_empty(),
        _ => false,
    }
}

/// Reads a number as Python's `float.hex` writes it.
fn hex(text: &str) -> Option<f64> {
    match text {
        "nan" => return Some(f64::NAN),
        "inf" => return Some(f64::INFINITY),
        "-inf" => return Some(f64::NEG_INFINITY),
        _ => {}
    }
    let (sign, text) = text
        .strip_prefix('-')
        .map_or((1.0, text), |rest| (-1.0, rest));
    let (mantissa, exponent) = text.strip_prefix("0x")?.split_once('p')?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = u64::from_str_radix(&format!("{whole}{fraction}"), 16).ok()?;
    let exponent: i32 = exponent.parse().ok()?;
    let shift = exponent - 4 * i32::try_from(fraction.len()).ok()?;
    // In two steps, because the smallest numbers leave the range of one.
    Some(sign * digits as f64 * 2f64.powi(shift / 2) * 2f64.powi(shift - shift / 2))
}

fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// Asks both oracles; every text that is accepted here must be read the same by all loaders. Gives the number
/// of accepted ones and of those that only we refuse, or nothing if an oracle is not there.
fn compare(name: &str, cases: &[Case], strict: bool) {
    let oracles = [
        ("UPDATE_ORACLE_019", "pyyaml"),
        ("UPDATE_ORACLE_NEWEST", "ruamel"),
    ];
    let mut answers: Vec<Vec<Json>> = Vec::new();
    for (variable, kind) in oracles {
        match ask(variable, kind, cases) {
            Some(found) => answers.push(found),
            None => {
                skipped!("SKIPPED: {name} against {kind}: {variable} names no virtual environment")
            }
        }
    }
    if answers.is_empty() {
        return;
    }
    let mut wrong = Vec::new();
    let mut stricter = Vec::new();
    let mut accepted = 0;
    for (position, case) in cases.iter().enumerate() {
        let loaders: Vec<(&String, &Json)> = answers
            .iter()
            .flat_map(|answers| answers[position].as_object().expect("an object"))
            .collect();
        match &case.ours {
            Ok(value) => {
                accepted += 1;
                for (loader, answer) in loaders {
                    if !answer
                        .get("ok")
                        .is_some_and(|theirs| same(value, theirs, loader.starts_with("ruamel")))
                    {
                        wrong.push(format!(
                            "{loader}: {:?}\n   ours {value:?}\n   its  {answer}",
                            case.text
                        ));
                        break;
                    }
                }
            }
            Err(reason) => {
                let first = loaders[0].1.get("ok");
                if first.is_some_and(|first| first[0] == "map" || first[0] == "null")
                    && loaders.iter().all(|(_, answer)| answer.get("ok") == first)
                {
                    stricter.push(format!("{:?} ({reason})", case.text));
                }
            }
        }
    }
    eprintln!(
        "{name}: {} cases, {accepted} accepted, {} refused only here, {} wrong",
        cases.len(),
        stricter.len(),
        wrong.len()
    );
    for text in stricter.iter().take(number("UPDATE_ORACLE_SHOW", 0)) {
        eprintln!("   refused only here: {text}");
    }
    assert!(
        wrong.is_empty(),
        "{name}: {} differences\n{}",
        wrong.len(),
        wrong
            .iter()
            .take(number("UPDATE_ORACLE_SHOW", 40))
            .cloned()
            .collect::<Vec<_>>()
            .join("\n")
    );
    assert!(
        !strict || stricter.is_empty(),
        "{name}: refused only here:\n{}",
        stricter.join("\n")
    );
}

fn rng(offset: usize) -> Rng {
    Rng::new((number("UPDATE_ORACLE_SEED", 1) * 1000 + offset) as u64)
}

#[test]
fn plain_scalars_have_the_type_that_the_loaders_give_them() {
    let mut rng = rng(0);
    let alphabets = [
        "0123456789_.:-+eE",
        "01_bxo7afF-+",
        "yYnNoOfFtTrRuUeEsSlLaA",
        "0123456789-:. tTzZ+",
        ".infaINFNn-+_",
        "~=<!|>&*%@`#?,[]{}'\" a1-:",
    ];
    let mut cases: Vec<Case> = documents::AWKWARD
        .iter()
        .filter(|text| !text.contains('\n'))
        .map(|text| Case::new(format!("a: {text}\n")))
        .collect();
    let dates = [
        "2024-02-29",
        "2023-02-29",
        "2024-13-45",
        "0000-01-01",
        "2001-12-14t21:59:43.10-05:00",
        "2001-12-14 21:59:43.10 -5",
        "2024-01-01 25:00:00",
        "2024-01-01T10:00:00Z",
        "2024-01-01T10:00:00 +24:00",
        "2024-1-1 1:00:00",
    ];
    cases.extend(dates.iter().map(|text| Case::new(format!("a: {text}\n"))));
    for _ in 0..number("UPDATE_ORACLE_CASES", 5_000) {
        let alphabet: Vec<char> = rng
            .pick(&alphabets.iter().collect::<Vec<_>>())
            .chars()
            .collect();
        let text: String = (0..1 + rng.below(8))
            .map(|_| alphabet[rng.below(alphabet.len())])
            .collect();
        let template = *rng.pick(&[
            &"a: @\n",
            &"a: @\n",
            &"a: [@]\n",
            &"a: {b: @}\n",
            &"@: 1\n",
            &"a:\n- @\n",
            &"a: !!int @\n",
            &"a: !!float @\n",
            &"a: !!bool @\n",
        ]);
        cases.push(Case::new(template.replace('@', &text)));
    }
    compare("scalars", &cases, false);
}

#[test]
fn documents_are_read_as_the_loaders_read_them() {
    let mut rng = rng(1);
    let cases: Vec<Case> = (0..number("UPDATE_ORACLE_CASES", 5_000))
        .map(|_| Case::new(documents::document(&mut rng)))
        .collect();
    compare("documents", &cases, false);
}

#[test]
fn broken_documents_are_accepted_only_where_every_loader_does() {
    let mut rng = rng(2);
    let pieces = [
        " ", "  ", "\n", "\t", ":", ": ", "- ", "-", "#", " #", "\"", "'", "[", "]", "{", "}", ",",
        "?", "? ", "&a ", "*a", "!", "!!str ", "|", ">", "|2", "|-\n", "%", "@", "`", "\\", "=",
        "<<: ", "---\n", "...\n", "\r\n", "\r", "é", "\u{85}", "\u{2028}", "\u{feff}", "0", "~",
    ];
    let mut cases = Vec::new();
    for _ in 0..number("UPDATE_ORACLE_CASES", 5_000) {
        let mut text = documents::document(&mut rng);
        // A part is enough, and shows more.
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let from = rng.below(lines.len());
        let part: String = lines[from..]
            .iter()
            .take(1 + rng.below(6))
            .copied()
            .collect();
        if rng.chance(70) {
            text = part;
        }
        for _ in 0..1 + rng.below(3) {
            let mut at = rng.below(text.len() + 1);
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            if rng.chance(30) && at < text.len() {
                text.remove(at);
            } else {
                text.insert_str(at, rng.pick(&pieces));
            }
        }
        cases.push(Case::new(text));
    }
    compare("broken documents", &cases, false);
}

#[test]
fn edited_documents_mean_to_the_loaders_what_the_edits_mean() {
    let mut rng = rng(3);
    let mut cases = Vec::new();
    let mut refused = std::collections::BTreeMap::<String, usize>::new();
    for _ in 0..number("UPDATE_ORACLE_CASES", 5_000) {
        let text = documents::document(&mut rng);
        let Ok(mut document) = document::parse(Format::Yaml, text.as_bytes()) else {
            continue;
        };
        for _ in 0..1 + rng.below(3) {
            let edit = documents::edit(&mut rng, document.value());
            if let Err(refusal) = document.edit(&edit) {
                if refusal.reason.contains("cannot be written")
                    && number("UPDATE_ORACLE_SHOW", 0) > 0
                {
                    eprintln!(
                        "{refusal}\n{edit:?}\n{}-----",
                        String::from_utf8_lossy(document.bytes())
                    );
                }
                *refused
                    .entry(
                        refusal
                            .reason
                            .rsplit("` ")
                            .next()
                            .unwrap_or_default()
                            .to_owned(),
                    )
                    .or_default() += 1;
            }
        }
        let after = String::from_utf8(document.bytes().to_vec()).expect("UTF-8");
        cases.push(Case {
            text: after,
            ours: Ok(document.value().clone()),
        });
    }
    eprintln!("refused edits: {refused:#?}");
    compare("edited documents", &cases, false);
}

#[test]
fn env_files_are_read_and_edited_as_python_dotenv_reads_them() {
    let mut rng = rng(5);
    let pieces = [
        "A",
        "B",
        "LLM_MODEL",
        "=",
        "=",
        " = ",
        "=",
        "\n",
        "\n",
        "\r\n",
        "#",
        " # c",
        "'",
        "\"",
        "\\",
        "\\'",
        "\\n",
        " ",
        "x",
        "gpt-4",
        "export ",
        "${A}",
        "\t",
        "é",
        "\u{a0}",
    ];
    let mut cases = Vec::new();
    for _ in 0..number("UPDATE_ORACLE_CASES", 5_000) {
        let text: String = (0..rng.below(24)).map(|_| rng.pick(&pieces)).collect();
        let mut document = document::parse(Format::Env, text.as_bytes()).expect("UTF-8");
        cases.push(Case {
            text: text.clone(),
            ours: Ok(document.value().clone()),
        });
        let value = Value::from(documents::AWKWARD[rng.below(documents::AWKWARD.len())]);
        let path = document::Path::from([*rng.pick(&[&"A", &"B", &"LLM_MODEL", &"NEW"])]);
        let edit = if rng.chance(75) {
            document::Edit::Set { path, value }
        } else {
            document::Edit::Remove { path }
        };
        if document.edit(&edit).is_ok() {
            let after = String::from_utf8(document.bytes().to_vec()).expect("UTF-8");
            cases.push(Case {
                text: after,
                ours: Ok(document.value().clone()),
            });
        }
    }
    let Some(answers) = ask("UPDATE_ORACLE_019", "dotenv", &cases) else {
        skipped!("SKIPPED: .env files: UPDATE_ORACLE_019 names no virtual environment");
        return;
    };
    let wrong: Vec<String> = cases
        .iter()
        .zip(&answers)
        .filter(|(case, answer)| {
            !same(
                case.ours.as_ref().expect("read"),
                &answer["dotenv"]["ok"],
                false,
            )
        })
        .map(|(case, answer)| format!("{:?}\n   ours {:?}\n   its  {answer}", case.text, case.ours))
        .collect();
    eprintln!(".env files: {} cases, {} wrong", cases.len(), wrong.len());
    assert!(
        wrong.is_empty(),
        "{}",
        wrong
            .iter()
            .take(20)
            .cloned()
            .collect::<Vec<_>>()
            .join("\n")
    );
}

#[test]
fn real_configurations_are_read_and_edited() {
    let Ok(folder) = std::env::var("UPDATE_REAL_CONFIGS") else {
        skipped!("SKIPPED: real configurations: UPDATE_REAL_CONFIGS names no folder");
        return;
    };
    let mut rng = rng(4);
    let mut cases = Vec::new();
    for file in std::fs::read_dir(folder).expect("a folder") {
        let path = file.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a text");
        let mut document = document::parse(Format::Yaml, text.as_bytes())
            .unwrap_or_else(|invalid| panic!("{}: {invalid}", path.display()));
        let comments = text
            .lines()
            .filter(|line| line.trim_start().starts_with('#'))
            .count();
        cases.push(Case {
            text: text.clone(),
            ours: Ok(document.value().clone()),
        });
        let mut refused = 0;
        for _ in 0..40 {
            let mut copy =
                document::parse(Format::Yaml, text.as_bytes()).expect("it was read before");
            let edit = documents::edit(&mut rng, copy.value());
            refused += usize::from(copy.edit(&edit).is_err());
            refused += usize::from(
                document
                    .edit(&documents::edit(&mut rng, document.value()))
                    .is_err(),
            );
            let after = String::from_utf8(copy.bytes().to_vec()).expect("UTF-8");
            cases.push(Case {
                text: after,
                ours: Ok(copy.value().clone()),
            });
        }
        cases.push(Case {
            text: String::from_utf8(document.bytes().to_vec()).expect("UTF-8"),
            ours: Ok(document.value().clone()),
        });
        eprintln!(
            "{}: {comments} lines of comment, {refused} of 80 edits refused",
            path.display()
        );
    }
    compare("real configurations", &cases, true);
}
