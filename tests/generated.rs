//! What is committed below `man/` and `completions/` is what `update generate` prints, and the help is one
//! that a person can find the way in.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test may panic, and looks at the program from outside"
)]

use std::process::Command;

fn update(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_update"))
        .args(arguments)
        .env("COLUMNS", "100")
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn committed_pages_and_completions_are_those_that_are_generated() {
    for (what, file) in [
        ("man", "man/update.8"),
        ("bash", "completions/update.bash"),
        ("zsh", "completions/_update"),
        ("fish", "completions/update.fish"),
        ("elvish", "completions/update.elv"),
        ("powershell", "completions/_update.ps1"),
    ] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let committed = std::fs::read_to_string(&path).unwrap();
        assert!(
            update(&["generate", what]) == committed,
            "{file} is out of date: `update generate {what} > {file}`"
        );
    }
}

#[test]
fn the_help_fits_a_screen_and_names_the_commands_that_matter_first() {
    let help = update(&["--help"]);
    let lines: Vec<&str> = help.lines().collect();
    assert!(
        (24..=40).contains(&lines.len()),
        "{} lines:\n{help}",
        lines.len()
    );
    assert!(
        lines.iter().all(|line| line.chars().count() <= 100),
        "{help}"
    );
    let at = |word: &str| {
        lines
            .iter()
            .position(|line| line.trim_start().starts_with(word))
            .unwrap_or_else(|| panic!("{word} is not in\n{help}"))
    };
    for word in ["apply ", "plan ", "status ", "receipt ", "rehearse "] {
        assert!(at(word) < 16, "{word} stands too low:\n{help}");
    }
    for hidden in ["generate", "complete", "--max-failures", "--state-dir"] {
        assert!(!help.contains(hidden), "{hidden} is in the short help");
    }
    assert_eq!(help, update(&["-h"]));
    let long = update(&["--help-all"]);
    assert!(long.contains("--max-failures") && long.contains("--state-dir"));
    assert!(update(&["plan", "--help"]).contains("--check"));
}

#[test]
fn a_name_to_complete_costs_a_few_milliseconds_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let receipts = folder.path().join("receipts");
    std::fs::create_dir(&receipts).unwrap();
    let sample = include_str!("support/receipt.json");
    std::fs::write(receipts.join("latest.json"), sample).unwrap();
    std::fs::write(
        receipts.join("019cebc1-6a48-7c1f-8c1d-2d7c7f2a9b10.json"),
        sample,
    )
    .unwrap();
    let state = folder.path().to_str().unwrap();
    let complete = |kind: &str| update(&["--state-dir", state, "complete", kind]);
    // A profile called `<script>…` is not offered: a shell might run what it is given.
    assert_eq!(complete("profile"), "default\nops\nscratch\nwork\n");
    assert_eq!(complete("user"), "ann\nbob\n");
    assert_eq!(complete("run"), "019cebc1-6a48-7c1f-8c1d-2d7c7f2a9b10\n");
    assert!(complete("unit").contains("hermes-gateway-work.service\n"));
    assert!(complete("migration").contains("0025-model-catalog-ttl\n"));
    let quickest = (0..10)
        .map(|_| {
            let start = std::time::Instant::now();
            complete("profile");
            start.elapsed()
        })
        .min()
        .unwrap();
    assert!(quickest.as_millis() < 20, "{quickest:?}");
    let empty = tempfile::tempdir().unwrap();
    let state = empty.path().join("none");
    assert_eq!(
        update(&["--state-dir", state.to_str().unwrap(), "complete", "run"]),
        ""
    );
    assert_eq!(std::fs::read_dir(empty.path()).unwrap().count(), 0);
}
