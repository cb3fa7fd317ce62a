//! The table, from the receipt that other tests of views share.

use super::*;

fn sample() -> Receipt {
    let mut receipt: Receipt =
        serde_json::from_str(include_str!("../../../tests/support/receipt.json")).expect("valid");
    receipt.started_at = "2026-03-14T10:00:02.000Z".into();
    receipt.homes.truncate(3);
    receipt.runtimes.truncate(3);
    receipt.notes.clear();
    receipt.collectors.clear();
    for (row, stale) in receipt.runtimes.iter_mut().zip([true, false, false]) {
        row.stale = Some(stale);
        row.outcome = if stale {
            RuntimeOutcome::Unaccounted
        } else {
            RuntimeOutcome::Current
        };
        row.reason.clear();
    }
    receipt.runtimes[0].stale_reason = "its code changed at noon".into();
    receipt.runtimes[0].reason = "its code changed at noon".into();
    receipt.runtimes[2].before = None;
    receipt.runtimes[2].stale = None;
    receipt.runtimes[2].outcome = RuntimeOutcome::Down;
    receipt.runtimes[2].reason = "before: last status 1".into();
    receipt
}

const fn wide(width: Option<usize>) -> View {
    View {
        color: false,
        width,
    }
}

#[test]
fn a_wide_view_has_one_line_a_runtime_and_says_below_it_what_is_odd() {
    let expected = "\
ann (uid 2001)
  /opt/hermes-0.19.0  venv 0.19.0, expects 33
    PROFILE  VERSION  RUNTIME  PID   AGE  STALE  SUPERVISOR      UNIT
    default  12 → 33  gateway  1745  12h  yes    systemd (user)  hermes-gateway.service
      its code changed at noon
    ops      33       gateway  1746  12h  no     systemd (user)  hermes-gateway-ops.service
!   work     12 → 33  gateway  -     -    -      systemd (user)  hermes-gateway-work.service
      it is down: before: last status 1
3 homes, 2 runtimes running: 1 stale, 0 unknown; 1 marked ! (update plan says what to do)
";
    for width in [None, Some(100)] {
        let found = render(&sample(), wide(width));
        assert!(found == expected, "{found}");
    }
}

#[test]
fn a_narrow_view_puts_the_supervisor_below() {
    let expected = "\
ann (uid 2001)
  /opt/hermes-0.19.0  venv 0.19.0, expects 33
    PROFILE  VERSION  RUNTIME  PID   AGE  STALE
    default  12 → 33  gateway  1745  12h  yes
      systemd (user) hermes-gateway.service
      its code changed at noon
";
    let found = render(&sample(), wide(Some(80)));
    assert!(found.starts_with(expected), "{found}");
}

#[test]
fn no_line_is_wider_than_the_terminal_and_no_runtime_is_left_out() {
    let mut receipt = sample();
    receipt.homes[1].profile = "p".repeat(64);
    receipt.runtimes[1].unit = Some(format!("{}.service", "u".repeat(120)));
    receipt.runtimes[1].stale_reason = "because ".repeat(40);
    receipt.runtimes[1].stale = Some(true);
    let wide_text = render(&receipt, wide(None));
    for width in [40, 60, 79, 80, 81, 120, 200] {
        let text = render(&receipt, wide(Some(width)));
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{width}: {line:?}");
        }
        for row in receipt
            .runtimes
            .iter()
            .filter_map(|row| row.before.as_ref())
        {
            let pid = row.incarnation.pid.to_string();
            assert!(text.contains(&pid), "{width}: {text}");
        }
        assert_eq!(
            text.matches('p').count(),
            wide_text.matches('p').count(),
            "{width}: {text}"
        );
    }
}

#[test]
fn colour_only_adds_colour() {
    let plain = render(&sample(), wide(Some(100)));
    let painted = render(
        &sample(),
        View {
            color: true,
            width: Some(100),
        },
    );
    assert_ne!(plain, painted);
    assert_eq!(anstream::adapter::strip_str(&painted).to_string(), plain);
}

#[test]
fn what_serves_several_homes_stands_with_each_and_is_counted_once() {
    let mut receipt = sample();
    receipt.runtimes.truncate(1);
    receipt.runtimes[0].homes = receipt.homes.iter().map(|home| home.id.clone()).collect();
    let text = render(&receipt, wide(None));
    assert_eq!(text.matches(" 1745 ").count(), 3, "{text}");
    assert!(
        text.contains("3 homes, 1 runtime running: 1 stale"),
        "{text}"
    );
}

#[test]
fn installs_and_users_are_groups_of_their_own() {
    let mut receipt = sample();
    let mut other = receipt.installs[0].clone();
    other.id = "other".into();
    other.path = "/opt/fork".into();
    other.config_version = None;
    receipt.installs.push(other);
    receipt.runtimes[1].install = Some("other".into());
    receipt.runtimes[0].homes = vec!["unknown".into()];
    receipt.runtimes[0].uid = 7;
    receipt.runtimes[0].user = "odd\x1b[31m".into();
    receipt.homes[0].install = None;
    let text = render(&receipt, wide(None));
    for heading in [
        "odd\\u{1b}[31m (uid 7)\n",
        "  /opt/fork  venv 0.19.0, expects no known version\n",
        "  no install is known\n",
    ] {
        assert!(text.contains(heading), "{heading}\n{text}");
    }
    assert!(!text.contains('\x1b'), "{text}");
}

#[test]
fn an_age_is_told_in_its_largest_unit() {
    for (started, expected) in [
        ("2026-03-14T09:59:59Z", "3s"),
        ("2026-03-14T09:58:02Z", "2m"),
        ("2026-03-14T08:00:02Z", "2h"),
        ("2026-03-10T08:00:02Z", "4d"),
        ("2026-03-15T08:00:02Z", "0s"),
    ] {
        let found = age(started, "2026-03-14T10:00:02Z");
        assert_eq!(found.as_deref(), Some(expected), "{started}");
    }
    assert_eq!(age("yesterday", "2026-03-14T10:00:02Z"), None);
}
