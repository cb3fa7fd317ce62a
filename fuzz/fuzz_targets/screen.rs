#![no_main]
//! Masking and escaping of what strangers wrote.

use fleet_update::screen;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let shown = screen::visible(text);
    assert!(shown.chars().all(|letter| !letter.is_control()), "{shown:?}");
    assert_eq!(screen::visible(&shown), shown, "escaped twice");
    let masked = screen::text(text);
    assert!(masked.len() <= 8 * text.len() + 8);
    // A word that is known to be a token is gone, whatever surrounds it.
    let token = "sk-ant-api03-Zk3vQ9xW7bR2tY5uP8sD1fG4hJ6kL0mN";
    let around = format!("{text} {token} {text}");
    assert!(!screen::text(&around).contains(token), "{around:?}");
});
