#![no_main]
//! A receipt that came from another machine: refused, or shown without drawing on a terminal or
//! adding to a page.

use fleet_update::receipt::{Receipt, html, text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(value) = serde_json::from_slice(data) else { return };
    let Ok(mut receipt) = Receipt::parse(value) else { return };
    for verbose in [false, true] {
        let style = text::Style { color: false, verbose, plan: false };
        let shown = text::render(&receipt, style);
        assert!(
            shown.chars().all(|letter| letter == '\n' || !letter.is_control()),
            "{shown:?}"
        );
    }
    let page = html::page(&receipt);
    assert_eq!(page.matches("<body").count(), 1);
    assert!(!page.contains('\u{1b}'));
    let written = serde_json::to_value(&receipt).expect("a receipt can be written");
    Receipt::parse(written).expect("what was written is read");
    receipt.settle(true);
    assert!(!receipt.is_clean(), "an interrupted run is never clean");
});
