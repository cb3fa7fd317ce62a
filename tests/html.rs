//! The page of a receipt: safe whatever stands in the receipt, and good to read in a real browser, on a
//! phone, without colour and aloud.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test may panic, and looks at the program from outside"
)]

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fleet_update::receipt::merge::{FleetReceipt, MachineOutcome, Sent, merge};
use fleet_update::receipt::{Receipt, html};
use serde_json::Value;

const SAMPLE: &str = include_str!("support/receipt.json");

fn sample() -> Receipt {
    Receipt::parse(serde_json::from_str(SAMPLE).unwrap()).unwrap()
}

fn sent(stem: &str, receipt: &Receipt) -> Sent {
    Sent {
        file: format!("receipts/{stem}.json"),
        stem: stem.into(),
        content: Ok(serde_json::to_vec(receipt).unwrap()),
    }
}

/// A receipt of another machine whose rows are all fine.
fn clean(host: &str, number: u8) -> Receipt {
    let mut receipt = sample();
    receipt.host.hostname = host.into();
    receipt.run_id = format!("019cebc1-6a48-7c1f-8c1d-2d7c7f2a9b{number:02x}");
    receipt.homes.truncate(3);
    receipt.runtimes.truncate(3);
    receipt.collectors.truncate(2);
    receipt.settle(false);
    receipt
}

fn fleet() -> FleetReceipt {
    let inventory = ["atlas", "borea", "ceres"].map(String::from);
    let receipts = vec![
        sent("atlas", &sample()),
        sent("borea", &clean("borea", 1)),
        sent("ghost", &clean("ghost", 2)),
    ];
    merge(&inventory, receipts, "2026-03-14T10:00:00.000Z", None)
}

fn paths(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(at),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                paths(item, format!("{at}/{index}"), found);
            }
        }
        Value::Object(entries) => {
            for (key, item) in entries {
                paths(item, format!("{at}/{key}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn no_string_of_a_receipt_can_be_more_than_text() {
    let whole: Value = serde_json::from_str(SAMPLE).unwrap();
    let mut places = Vec::new();
    paths(&whole, String::new(), &mut places);
    let mut tried = BTreeSet::new();
    for place in &places {
        let mut value = whole.clone();
        let evil = "</style></code><img src=//x onerror=alert(1)>\"'&\u{202e}";
        *value.pointer_mut(place).unwrap() = evil.into();
        // An outcome is one of a few words, and is refused.
        let Ok(receipt) = Receipt::parse(value) else {
            continue;
        };
        tried.insert(
            place
                .split('/')
                .filter(|part| part.parse::<u32>().is_err())
                .collect::<Vec<_>>()
                .join("/"),
        );
        for page in [
            html::page(&receipt),
            html::fleet(&merge(
                &[evil.into()],
                vec![sent("x", &receipt)],
                "2026-03-14T10:00:00Z",
                None,
            )),
        ] {
            assert!(
                !page.contains("<img") && !page.contains('\u{202e}'),
                "{place}"
            );
            assert_eq!(page.matches("<style>").count(), 1, "{place}");
            assert_eq!(page.matches("</style>").count(), 1, "{place}");
        }
    }
    assert!(tried.len() > 60, "{tried:?}");
}

#[test]
fn a_page_needs_nothing_and_shows_no_secret() {
    let mut receipt = sample();
    receipt.homes[0].changes[0].path = "providers.x.api_key".into();
    receipt.homes[0].changes[0].before = Some("sk-proj-abcdefgh12345678".into());
    receipt.runtimes[0].reason = "Bearer abcdefgh.12345678".into();
    for page in [
        html::page(&receipt),
        html::fleet(&merge(&[], vec![sent("x", &receipt)], "x", None)),
    ] {
        for word in [
            "http:",
            "https:",
            "//x",
            "<script",
            "<link",
            "src=",
            "url(",
            "@import",
            "javascript:",
        ] {
            assert!(!page.contains(word), "{word}");
        }
        assert!(page.contains("default-src 'none'"));
        for secret in ["sk-proj", "abcdefgh.12345678", "hunter2"] {
            assert!(!page.contains(secret), "{secret}");
        }
    }
}

#[test]
fn a_page_has_what_a_screen_reader_needs() {
    for page in [html::page(&sample()), html::fleet(&fleet())] {
        assert!(page.starts_with("<!DOCTYPE html>\n<html lang=\"en\">"));
        for landmark in [
            "<header",
            "<main id=\"main\">",
            "<footer>",
            "href=\"#main\"",
            "<title>Not clean: ",
        ] {
            assert_eq!(page.matches(landmark).count(), 1, "{landmark}");
        }
        assert_eq!(page.matches("<h1").count(), 1);
        let tables = page.matches("<table").count();
        assert!(tables > 0);
        assert_eq!(page.matches("<caption>").count(), tables);
        for cell in page.split("<th ").skip(1) {
            assert!(
                cell.split('>').next().unwrap().contains("scope="),
                "{cell:.60}"
            );
        }
        let mut ids = BTreeSet::new();
        for id in page
            .split(" id=\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap())
        {
            assert!(ids.insert(id), "{id} stands twice");
        }
        for named in page.split("aria-labelledby=\"").skip(1) {
            assert!(ids.contains(named.split('"').next().unwrap()));
        }
        // A sign is for the eye, and has its word beside it.
        for badge in page.split("<span class=\"badge ").skip(1) {
            let (sign, word) = badge.split_once("</span> ").unwrap();
            assert!(sign.contains("aria-hidden=\"true\""));
            assert!(
                word.split("</span>")
                    .next()
                    .unwrap()
                    .chars()
                    .any(char::is_alphabetic)
            );
        }
    }
    let page = html::page(&sample());
    assert!(
        page.contains("finished its work in 1.1 s, down for 0.3 s, up after 1.5 s"),
        "the bars have no text"
    );
}

/// Relative luminance of `#rrggbb` or `#rgb` (WCAG 2).
fn luminance(color: &str) -> f64 {
    let digits: Vec<u32> = color
        .trim_start_matches('#')
        .chars()
        .map(|digit| digit.to_digit(16).unwrap())
        .collect();
    let channel = |index: usize| {
        let value = if digits.len() == 3 {
            digits[index] * 17
        } else {
            digits[index * 2] * 16 + digits[index * 2 + 1]
        };
        let share = f64::from(value) / 255.0;
        if share <= 0.04045 {
            share / 12.92
        } else {
            ((share + 0.055) / 1.055).powf(2.4)
        }
    };
    0.2126 * channel(0) + 0.7152 * channel(1) + 0.0722 * channel(2)
}

#[test]
fn the_colours_have_contrast_by_day_and_by_night() {
    let style = include_str!("../src/receipt/html/style.css");
    let blocks: Vec<&str> = style
        .split(":root{")
        .skip(1)
        .map(|rest| rest.split('}').next().unwrap())
        .collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        let color = |name: &str| {
            let rest = block
                .split(&format!("--{name}:"))
                .nth(1)
                .unwrap_or_else(|| panic!("no {name}"));
            luminance(rest.split(';').next().unwrap().trim())
        };
        let pairs = [
            ("ink", "paper"),
            ("ink", "card"),
            ("soft", "paper"),
            ("soft", "card"),
            ("soft", "quiet-bg"),
            ("good", "good-bg"),
            ("done", "done-bg"),
            ("quiet", "quiet-bg"),
            ("bad", "bad-bg"),
            ("bad", "card"),
            ("good", "card"),
        ];
        for (front, back) in pairs {
            let (a, b) = (color(front), color(back));
            let ratio = (a.max(b) + 0.05) / (a.min(b) + 0.05);
            assert!(ratio >= 4.5, "{front} on {back}: {ratio:.2}");
        }
    }
}

#[test]
fn a_fleet_is_clean_only_if_every_machine_proves_it() {
    let names = |inventory: &[&str]| {
        inventory
            .iter()
            .map(|&name| name.to_owned())
            .collect::<Vec<_>>()
    };
    let now = "2026-03-14T10:00:00.000Z";
    let outcome = |fleet: &FleetReceipt, name: &str| {
        let rows = fleet.machines.iter().filter(|row| row.name == name);
        rows.map(|row| row.outcome).collect::<Vec<_>>()
    };
    use MachineOutcome as O;

    let good = || {
        vec![
            sent("a", &clean("a", 1)),
            sent("x", &clean("b.example.org", 2)),
        ]
    };
    let fleet = merge(&names(&["a", "b"]), good(), now, None);
    assert_eq!(
        (fleet.verdict.exit_status, outcome(&fleet, "b")),
        (0, vec![O::Clean]),
        "{:?}",
        fleet.verdict
    );

    let fleet = merge(&names(&["a", "b", "c"]), good(), now, None);
    assert_eq!(
        (fleet.verdict.exit_status, outcome(&fleet, "c")),
        (1, vec![O::Missing])
    );

    let fleet = merge(&names(&["a"]), good(), now, None);
    assert_eq!(
        (fleet.verdict.exit_status, outcome(&fleet, "b.example.org")),
        (1, vec![O::Foreign])
    );

    // One receipt under two names, and two receipts of one machine.
    let copied = vec![sent("a", &clean("a", 1)), sent("b", &clean("a", 1))];
    let fleet = merge(&names(&["a", "b"]), copied, now, None);
    assert_eq!(fleet.verdict.exit_status, 1);
    assert_eq!(outcome(&fleet, "b"), [O::Missing, O::Duplicate]);
    let twice = vec![sent("a", &clean("a", 1)), sent("old-a", &clean("a", 2))];
    let fleet = merge(&names(&["a"]), twice, now, None);
    assert_eq!(outcome(&fleet, "a"), [O::Clean, O::Duplicate]);

    // A newer format, a plan, something else, a lie, one without an end, an old one.
    let mut newer = serde_json::to_value(clean("a", 1)).unwrap();
    newer["schema"] = 2.into();
    let one = |content: Vec<u8>| {
        let sent = Sent {
            file: "a.json".into(),
            stem: "a".into(),
            content: Ok(content),
        };
        outcome(
            &merge(
                &names(&["a"]),
                vec![sent],
                now,
                Some(std::time::Duration::from_secs(86_400)),
            ),
            "a",
        )
    };
    assert_eq!(one(serde_json::to_vec(&newer).unwrap()), [O::NewerSchema]);
    let mut plan = clean("a", 1);
    plan.run_id = "plan".into();
    assert_eq!(one(serde_json::to_vec(&plan).unwrap()), [O::Damaged]);
    assert_eq!(one(b"{}".to_vec()), [O::Damaged]);
    assert_eq!(one(b"\xff".to_vec()), [O::Damaged]);
    let mut lie = sample();
    lie.verdict.outcome = fleet_update::receipt::VerdictOutcome::Clean;
    assert_eq!(one(serde_json::to_vec(&lie).unwrap()), [O::NotClean]);
    let mut open = clean("a", 1);
    open.finished_at = None;
    assert_eq!(one(serde_json::to_vec(&open).unwrap()), [O::NotClean]);
    let mut old = clean("a", 1);
    old.started_at = "2026-03-10T10:00:00.000Z".into();
    assert_eq!(one(serde_json::to_vec(&old).unwrap()), [O::Stale]);
    assert_eq!(one(serde_json::to_vec(&clean("a", 1)).unwrap()), [O::Clean]);
    assert_eq!(merge(&[], Vec::new(), now, None).verdict.exit_status, 1);
}

#[test]
fn the_commands_write_the_page_and_end_with_the_fleets_status() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(at("state/receipts")).unwrap();
    std::fs::write(at("state/receipts/latest.json"), SAMPLE).unwrap();
    std::fs::write(at("hosts"), "[all]\natlas\nborea\n").unwrap();
    std::fs::write(
        at("atlas.json"),
        serde_json::to_vec(&clean("atlas", 1)).unwrap(),
    )
    .unwrap();
    std::fs::write(
        at("borea.json"),
        serde_json::to_vec(&clean("borea", 2)).unwrap(),
    )
    .unwrap();
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_update"))
            .args(["--state-dir", "state"])
            .args(arguments)
            .current_dir(folder.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        (output.status.code().unwrap(), text)
    };
    assert_eq!(
        run(&["receipt", "show", "--html", "page.html"]),
        (0, String::new())
    );
    assert_eq!(
        std::fs::read_to_string(at("page.html")).unwrap(),
        html::page(&sample())
    );
    let (status, text) = run(&[
        "receipt",
        "merge",
        "--inventory",
        "hosts",
        "atlas.json",
        "borea.json",
    ]);
    assert_eq!(status, 0, "{text}");
    assert!(text.ends_with("clean: machines 2 clean\n"), "{text}");
    let (status, text) = run(&[
        "receipt",
        "merge",
        "--inventory",
        "hosts",
        "atlas.json",
        "none.json",
    ]);
    assert_eq!(status, 1, "{text}");
    assert!(
        text.contains("! borea  missing") && text.contains("! none"),
        "{text}"
    );
    let (status, text) = run(&["receipt", "merge", "--inventory", "none", "atlas.json"]);
    assert_eq!(status, 3, "{text}");
}

fn chromium() -> Option<PathBuf> {
    let found = [
        "/usr/bin/chromium",
        "/usr/bin/chromium-browser",
        "/usr/bin/google-chrome",
    ];
    let found = found.iter().map(PathBuf::from).find(|path| path.exists());
    if found.is_none() {
        let name = std::thread::current().name().unwrap_or("a test").to_owned();
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED {name}: chromium is not installed"
        );
    }
    found
}

/// Runs the browser on a page, without a network, a profile or a sandbox of its own (this may be root).
fn browse(program: &Path, folder: &Path, page: &Path, arguments: &[String]) -> String {
    let profile = tempfile::tempdir_in(folder).unwrap();
    let output = Command::new("timeout")
        .arg("90")
        .arg(program)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--hide-scrollbars",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(arguments)
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn dimensions(png: &[u8]) -> (u32, u32) {
    assert_eq!(&png[1..4], b"PNG");
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

#[test]
fn a_browser_shows_the_page_on_a_desk_and_on_a_phone() {
    let Some(program) = chromium() else { return };
    let folder = tempfile::tempdir().unwrap();
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots");
    std::fs::create_dir_all(&kept).unwrap();
    for (name, page) in [
        ("receipt", html::page(&sample())),
        ("fleet", html::fleet(&fleet())),
    ] {
        let file = folder.path().join(format!("{name}.html"));
        std::fs::write(&file, &page).unwrap();
        for (form, width, height) in [("desk", 1280, 2400), ("phone", 500, 3600)] {
            if (name, form) == ("fleet", "phone") {
                // The frame below measures it.
                continue;
            }
            let picture = kept.join(format!("{name}-{form}.png"));
            let _ = std::fs::remove_file(&picture);
            browse(
                &program,
                folder.path(),
                &file,
                &[
                    format!("--window-size={width},{height}"),
                    format!("--screenshot={}", picture.display()),
                ],
            );
            let bytes = std::fs::read(&picture).unwrap();
            assert_eq!(dimensions(&bytes), (width, height));
            assert!(bytes.len() > 40_000, "{form} of {name} is nearly empty");
        }
        // A frame as wide as a small phone, measured by the page around it.
        let quoted = page.replace('&', "&amp;").replace('"', "&quot;");
        let around = format!(
            "<!DOCTYPE html><title>none</title><iframe id=f width=360 height=700 srcdoc=\"{quoted}\"></iframe><script>\
             onload = () => {{ const d = document.getElementById('f').contentDocument;\
             const cells = [...d.querySelectorAll('td,th')].filter(e => e.getClientRects().length);\
             document.title = 'width ' + d.documentElement.scrollWidth + ' small ' +\
             [...d.querySelectorAll('body *')].filter(e => e.children.length == 0 && e.textContent.trim() && !e.closest('.aloud') && parseFloat(getComputedStyle(e).fontSize) < 12).length +\
             ' cells ' + cells.length + ' run ' + d.scripts.length; }}</script>"
        );
        let frame = folder.path().join("frame.html");
        std::fs::write(&frame, around).unwrap();
        let dom = browse(&program, folder.path(), &frame, &["--dump-dom".into()]);
        let title = dom
            .split("<title>")
            .nth(1)
            .unwrap()
            .split("</title>")
            .next()
            .unwrap();
        let numbers: Vec<u32> = title
            .split(' ')
            .filter_map(|word| word.parse().ok())
            .collect();
        assert_eq!(numbers.len(), 4, "{title}");
        assert!(numbers[0] <= 360, "{name} is wider than a phone: {title}");
        assert_eq!(numbers[1], 0, "{name} has text that is too small: {title}");
        assert!(numbers[2] > 5, "{title}");
        assert_eq!(numbers[3], 0, "{title}");
    }
}
