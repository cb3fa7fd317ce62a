//! The committed completions, loaded by the real shells: names come from the newest receipt.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test may panic, and looks at the program from outside"
)]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder with a program `update` that completes from a receipt of its own, and else tells its arguments.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let receipts = folder.path().join("state/receipts");
        std::fs::create_dir_all(&receipts).unwrap();
        let sample = include_str!("support/receipt.json");
        for name in ["latest", "019cebc1-6a48-7c1f-8c1d-2d7c7f2a9b10"] {
            std::fs::write(receipts.join(format!("{name}.json")), sample).unwrap();
        }
        let program = folder.path().join("update");
        let text = format!(
            "#!/bin/sh\n[ \"$1\" = complete ] || {{ echo \"GOT:$* END\"; exit; }}\nexec {} --state-dir {}/state \"$@\"\n",
            env!("CARGO_BIN_EXE_update"),
            folder.path().display()
        );
        std::fs::write(&program, text).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    /// What a shell prints of a script; `None` where it is not installed, which is said.
    fn run(&self, shell: &str, arguments: &[&str], script: &str) -> Option<String> {
        use std::io::Write as _;
        if !Path::new("/usr/bin").join(shell).exists() {
            let name = std::thread::current().name().unwrap_or("a test").to_owned();
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED {name}: {shell} is not installed"
            );
            return None;
        }
        let file = self.folder.path().join(format!("script.{shell}"));
        std::fs::write(&file, script).unwrap();
        let output = Command::new("timeout")
            .args(["60", shell])
            .args(arguments)
            .arg(&file)
            .env(
                "PATH",
                format!("{}:/usr/bin:/bin", self.folder.path().display()),
            )
            .env("HOME", self.folder.path())
            .env("TERM", "xterm")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && stderr.is_empty(),
            "{shell}: {} {stderr}",
            output.status
        );
        Some(String::from_utf8(output.stdout).unwrap())
    }
}

fn committed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("completions")
        .join(name)
}

const RUN: &str = "019cebc1-6a48-7c1f-8c1d-2d7c7f2a9b10";

#[test]
fn bash_offers_commands_options_and_names() {
    let script = format!(
        r#"set -u
source {}
ask() {{ COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _update update "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD-1]}}"; echo "${{COMPREPLY[*]}}"; }}
ask update st
ask update --profile w
ask update plan --user ''
ask update receipt show 01
ask update mechanisms --explain hermes-dash
ask update migrations show 0025
ask update --restart ''
ask update gen
complete -p update
"#,
        committed("update.bash").display()
    );
    let Some(text) = Place::new().run("bash", &["--norc"], &script) else {
        return;
    };
    let lines: Vec<&str> = text.lines().collect();
    let expected = [
        "status",
        "work",
        "ann bob",
        RUN,
        "hermes-dashboard.service",
        "0025-model-catalog-ttl",
        "stale always never",
        "",
    ];
    assert_eq!(lines[..8], expected, "{text}");
    assert!(lines[8].contains("-F _update"), "{text}");
}

#[test]
fn zsh_completes_what_is_typed() {
    // A terminal of its own, in which keys are pressed.
    let script = format!(
        r#"zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z 'PS1= PROMPT= RPS1=; fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D; print REA""DY'
zpty -r z out '*READY*'
for typed in 'update stat' 'update --profile wo' 'update receipt show 019' 'update mechanisms --explain hermes-dash' 'update migrations show 0025'; do
  zpty -w -n z "$typed"$'\t\n'
  zpty -r z out '*GOT:* END*'
  print -r -- "${{${{out##*GOT:}}%% END*}}"
done
zpty -d z
"#,
        folder = committed("").display()
    );
    let Some(text) = Place::new().run("zsh", &["-f"], &script) else {
        return;
    };
    let words: Vec<String> = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let expected = [
        "status".to_owned(),
        "--profile work".to_owned(),
        format!("receipt show {RUN}"),
        "mechanisms --explain hermes-dashboard.service".to_owned(),
        "migrations show 0025-model-catalog-ttl".to_owned(),
    ];
    assert_eq!(words, expected, "{text}");
}

#[test]
fn fish_offers_commands_and_names() {
    let script = format!(
        "source {}\nfor line in 'update stat' 'update --profile wo' 'update plan --user ' 'update receipt show 01' 'update mechanisms --explain hermes-dash' 'update migrations show 0025' 'update gene'\n\
         \x20   string join ' ' -- (complete -C $line | string split -f1 \\t)\n    echo\nend\n",
        committed("update.fish").display()
    );
    let Some(text) = Place::new().run("fish", &["--no-config"], &script) else {
        return;
    };
    let words: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let expected = [
        "status",
        "work",
        "ann bob",
        RUN,
        "hermes-dashboard.service",
        "0025-model-catalog-ttl",
    ];
    assert_eq!(words, expected, "{text}");
}

#[test]
fn elvish_offers_commands_and_names() {
    // The namespace of the editor exists only on a terminal: these are the two names of it that are used.
    let script = format!(
        r#"var edit: = (ns [&completion:=(ns [&arg-completer=[&]]) &complex-candidate~={{|text &display=''| put $text}}])
eval (slurp < {}) &ns=(ns [&edit:=$edit:])
fn ask {{|@words| echo (str:join ' ' [($edit:completion:arg-completer[update] $@words)]) }}
ask update --profile wo
ask update receipt show ''
ask update ''
"#,
        committed("update.elv").display()
    );
    let Some(text) = Place::new().run("elvish", &[], &format!("use str\n{script}")) else {
        return;
    };
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "default ops scratch work", "{text}");
    assert!(lines[1].starts_with(&format!("{RUN} --html")), "{text}");
    assert!(lines[2].contains(" plan status receipt "), "{text}");
}
