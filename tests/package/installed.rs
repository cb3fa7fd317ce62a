//! The Debian package on a real fleet: its timer, and an administrator's own crontab line.

use std::path::Path;
use std::time::Duration;

use crate::built::package;
use crate::support::fleet::{CONFIG_V12, Fleet, Gateway, Plan};
use crate::support::skip;
use crate::support::update::Receipt;
use crate::support::wait_for;
use crate::support::watcher::Watcher;
use crate::{latest_in, readme_cron_line};

const LIMIT: Duration = Duration::from_secs(120);

/// The receipt of the next run that ends.
fn next_receipt(fleet: &Fleet, after: Option<&Receipt>) -> Receipt {
    let known = after.map(|receipt| receipt.0["run_id"].clone());
    wait_for("a run ends", LIMIT, || {
        latest_in(&fleet.sandbox).filter(|receipt| {
            Some(&receipt.0["run_id"]) != known.as_ref() && !receipt.0["finished_at"].is_null()
        })
    })
}

#[test]
fn the_package_schedules_nothing_its_timer_does_the_main_job_and_cron_mails_only_what_is_not_clean()
{
    let Some(package) = package() else { return };
    if !Path::new("/usr/sbin/cron").exists() {
        return skip("cron is missing (Debian package cron)");
    }
    let Some(fleet) = Plan::default().without_program().boot() else {
        return;
    };
    let sandbox = &fleet.sandbox;
    let all = Gateway::all();
    let lives = fleet.lives(&all);
    std::fs::copy(package, sandbox.path("/opt/fleet-update.deb")).unwrap();
    // The fleet's accounts may be older than this machine's cron, whose group dpkg asks for.
    sandbox.sh(
        None,
        "rm -f /usr/sbin/policy-rc.d; groupadd -f -r crontab; dpkg -i /opt/fleet-update.deb",
    );

    // Installed, and nothing happens.
    let state = |what: &str| {
        let output = sandbox.shell(None, &format!("systemctl {what} fleet-update.timer"));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(
        (&*state("is-enabled"), &*state("is-active")),
        ("disabled", "inactive")
    );
    assert!(latest_in(sandbox).is_none());
    assert_eq!(
        fleet.lives(&all),
        lives,
        "an installation restarted something"
    );
    sandbox.sh(
        None,
        "systemd-analyze verify fleet-update.service fleet-update.timer",
    );
    let score = sandbox.sh(
        None,
        "systemd-analyze security --no-pager fleet-update.service | tail -n 1",
    );
    let exposure: f64 = score
        .split_whitespace()
        .find_map(|word| word.parse().ok())
        .unwrap_or_else(|| panic!("no score in {score}"));
    assert!(exposure < 5.0, "{score}");

    // The timer: it missed a day while the machine was off, and catches up. Only its random delay is taken away.
    let watchers = [
        Watcher::start(sandbox, "ann"),
        Watcher::start(sandbox, "bob"),
    ];
    sandbox.write(
        "/etc/systemd/system/fleet-update.timer.d/now.conf",
        "[Timer]\nRandomizedDelaySec=0\n",
        0o644,
    );
    sandbox.sh(
        None,
        "mkdir -p /var/lib/systemd/timers
         touch -d '3 days ago' /var/lib/systemd/timers/stamp-fleet-update.timer
         systemctl daemon-reload && systemctl enable -q --now fleet-update.timer",
    );
    let receipt = next_receipt(&fleet, None);
    assert_eq!(receipt.0["trigger"], "cron");
    assert_eq!(
        receipt.0["verdict"]["outcome"],
        "clean",
        "{}",
        receipt.summary()
    );
    for gateway in &all {
        assert_eq!(
            receipt.home_outcome(*gateway),
            "migrated",
            "{}",
            receipt.summary()
        );
        assert_eq!(
            receipt.outcome(*gateway),
            "restarted",
            "{}",
            receipt.summary()
        );
        let starts: usize = watchers
            .iter()
            .zip(["ann", "bob"])
            .filter(|(_, user)| *user == gateway.user)
            .map(|(watcher, _)| watcher.starts_of(&gateway.unit()))
            .sum();
        assert_eq!(starts, 1, "{gateway:?}");
        assert!(fleet.config(*gateway).contains("_config_version: 33 "));
    }
    let service = wait_for("the service ends", LIMIT, || {
        let text = sandbox.sh(
            None,
            "systemctl show -p ActiveState,Result,ExecMainStatus fleet-update.service",
        );
        text.contains("ActiveState=inactive").then_some(text)
    });
    assert!(
        service.contains("Result=success") && service.contains("ExecMainStatus=0"),
        "{service}"
    );
    sandbox.sh(None, "systemctl disable -q --now fleet-update.timer");

    // An administrator's own line under the real cron, in the small environment that cron gives.
    sandbox.write(
        "/usr/sbin/sendmail",
        "#!/bin/sh\ncat >\"$(mktemp /run/mail-XXXXXX)\"\n",
        0o755,
    );
    for gateway in &all {
        fleet.set_config(*gateway, CONFIG_V12);
    }
    let cron = |also: &str| {
        let text = format!("MAILTO=root\n{}{also}", readme_cron_line("@reboot"));
        sandbox.write("/etc/cron.d/site", &text, 0o644);
        sandbox.sh(None, "rm -f /run/crond.reboot; systemctl restart cron");
    };
    let mails = || {
        let text = sandbox.sh(None, "cat /run/mail-* 2>/dev/null || true");
        (!text.is_empty()).then_some(text)
    };
    cron("");
    let clean = next_receipt(&fleet, Some(&receipt));
    assert_eq!(clean.0["trigger"], "cron", "{}", clean.summary());
    assert_eq!(
        clean.0["verdict"]["outcome"],
        "clean",
        "{}",
        clean.summary()
    );
    for gateway in &all {
        assert_eq!(clean.outcome(*gateway), "restarted", "{}", clean.summary());
    }
    // The mail of another line in the same crontab comes: that of ours would have come before.
    cron("@reboot root sleep 8; echo witness\n");
    let silent = next_receipt(&fleet, Some(&clean));
    assert_eq!(
        silent.0["verdict"]["outcome"],
        "clean",
        "{}",
        silent.summary()
    );
    let mail = wait_for("the other line's mail", LIMIT, mails);
    assert!(mail.contains("\nwitness\n"), "{mail}");
    assert_eq!(
        mail.matches("Subject:").count(),
        1,
        "clean runs were mailed: {mail}"
    );

    sandbox.sh(None, "rm -f /run/mail-*");
    fleet.set_config(all[1], "model: [\n");
    cron("");
    let unclean = next_receipt(&fleet, Some(&silent));
    assert_eq!(
        unclean.0["verdict"]["outcome"],
        "not-clean",
        "{}",
        unclean.summary()
    );
    let mail = wait_for("the mail", LIMIT, mails);
    assert_eq!(mail.matches("Subject:").count(), 1, "{mail}");
    assert!(
        mail.contains(&all[1].home()) || mail.contains(all[1].profile),
        "{mail}"
    );
    assert!(mail.contains("invalid"), "{mail}");
    assert!(!mail.contains('\u{1b}'), "colours in a mail: {mail}");

    // Purged on a running machine: nothing of it is left, and the fleet runs on.
    fleet.set_config(all[1], &fleet.config(all[2]));
    let lives = fleet.lives(&all);
    sandbox.sh(
        None,
        "rm /etc/cron.d/site; rm -r /etc/systemd/system/fleet-update.timer.d; dpkg -P fleet-update",
    );
    let left = sandbox.sh(
        None,
        "find /boot /etc /run /usr /var -path /var/lib/dpkg -prune -o -path /var/cache -prune \
         -o -path /var/log -prune -o -name '*fleet-update*' -print",
    );
    assert_eq!(left, "", "left behind");
    assert_eq!(fleet.lives(&all), lives);
}
