//! What a package holds and says of itself, read without installing it.

use std::path::Path;
use std::process::Command;

use crate::built::{package, run};
use crate::support::skip;

#[test]
fn the_package_depends_on_libc_alone_and_holds_what_belongs_to_it() {
    let Some(package) = package() else { return };
    let field = |name: &str| run(Command::new("dpkg-deb").arg("-f").arg(package).arg(name));
    let depends = field("Depends");
    assert!(depends.starts_with("libc6 "), "{depends}");
    assert!(!depends.contains(','), "{depends}");
    let listing = run(Command::new("dpkg-deb").arg("-c").arg(package));
    let files: Vec<&str> = listing
        .lines()
        .filter_map(|line| line.split(" ./").nth(1))
        .filter(|path| !path.ends_with('/'))
        .collect();
    for file in [
        "etc/cron.d/fleet-update",
        "etc/fleet-update/config.toml",
        "etc/fleet-update/conf.d/README",
        "usr/bin/update",
        "usr/lib/systemd/system-preset/50-fleet-update.preset",
        "usr/lib/systemd/system/fleet-update.service",
        "usr/lib/systemd/system/fleet-update.timer",
        "usr/lib/tmpfiles.d/fleet-update.conf",
        "usr/share/bash-completion/completions/update",
        "usr/share/doc/fleet-update/examples/docker.toml.example",
        "usr/share/doc/fleet-update/examples/respawn.toml.example",
        "usr/share/fish/vendor_completions.d/update.fish",
        "usr/share/man/man5/fleet-update-config.5.gz",
        "usr/share/man/man5/fleet-update-migrations.5.gz",
        "usr/share/man/man5/fleet-update-receipt.5.gz",
        "usr/share/man/man8/update.8.gz",
        "usr/share/zsh/vendor-completions/_update",
    ] {
        assert!(files.contains(&file), "{file} is missing\n{listing}");
    }
    let conffiles = run(Command::new("dpkg-deb")
        .arg("-I")
        .arg(package)
        .arg("conffiles"));
    for file in files.iter().filter(|file| file.starts_with("etc/")) {
        assert!(
            conffiles.lines().any(|line| line == format!("/{file}")),
            "{file} is no conffile"
        );
    }
}

#[test]
fn lintian_has_nothing_to_say() {
    let Some(package) = package() else { return };
    if !Path::new("/usr/bin/lintian").exists() {
        return skip("lintian is missing (Debian package lintian)");
    }
    let output = Command::new("lintian")
        .args([
            "--fail-on",
            "error,warning",
            "--tag-display-limit",
            "0",
            "--allow-root",
        ])
        .arg(package)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.trim().is_empty(), "{said}");
}

#[test]
fn the_packaged_configuration_holds_only_keys_that_exist() {
    // Every line that is commented out, too: it is there to be used.
    let text = include_str!("../../dist/etc/fleet-update/config.toml");
    let folder = tempfile::tempdir().unwrap();
    let keys: String = text
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(rest)
                if rest.starts_with(|first: char| first == '[' || first.is_ascii_lowercase()) =>
            {
                format!("{rest}\n")
            }
            _ => format!("{line}\n"),
        })
        .collect();
    assert!(
        keys.contains("\nlimit = \"30s\"") && keys.contains("[[policy.skip]]"),
        "{keys}"
    );
    for text in [text, &keys] {
        let file = folder.path().join("config.toml");
        std::fs::write(&file, text).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_update"))
            .args(["mechanisms", "--config"])
            .arg(&file)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn installing_schedules_nothing_anywhere() {
    let cron = include_str!("../../dist/etc/cron.d/fleet-update");
    assert!(cron.lines().all(|line| line.starts_with('#')), "{cron}");
    let preset = include_str!("../../dist/usr/lib/systemd/system-preset/50-fleet-update.preset");
    assert!(
        preset.contains("\ndisable fleet-update.timer\n"),
        "{preset}"
    );
    assert!(
        !preset.lines().any(|line| line.starts_with("enable")),
        "{preset}"
    );
    let line = crate::packaged_cron_line("@reboot");
    let guard = "root [ -d /run/systemd/system ] || [ ! -x /usr/bin/update ] || /usr/bin/update\n";
    assert!(line.ends_with(guard), "{line}");
}

#[test]
fn the_formula_and_the_release_script_can_be_read() {
    run(Command::new("bash").args(["-n", "dist/release"]));
    for script in ["postinst", "postrm"] {
        run(Command::new("sh")
            .arg("-n")
            .arg(format!("dist/debian/{script}")));
    }
    if !Path::new("/usr/bin/ruby").exists() {
        return skip("ruby is missing: the formula was not checked (Debian package ruby)");
    }
    run(Command::new("ruby").args(["-c", "dist/homebrew/fleet-update.rb"]));
}

#[test]
fn the_oldest_rust_that_is_promised_is_the_one_that_tests_it() {
    let promised = env!("CARGO_PKG_RUST_VERSION");
    let pinned = include_str!("../../rust-toolchain.toml")
        .lines()
        .find_map(|line| line.strip_prefix("channel = \""))
        .and_then(|rest| rest.strip_suffix('"'))
        .expect("a pinned toolchain");
    assert_eq!(pinned.strip_suffix(".0"), Some(promised));
}
