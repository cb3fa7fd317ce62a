#![no_main]
//! Texts of `/proc`: names and variables in them are whatever their process chose.

use fleet_update::fleet::procfs::{FileLock, text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let words = String::from_utf8_lossy(data);
    if let Some(stat) = text::Stat::parse(&words) {
        // What stands in the name's parentheses changes nothing.
        let end = words.rfind(')').expect("a valid one has a name");
        let renamed = format!("1 (a) b) ({}", &words[end..]);
        assert_eq!(text::Stat::parse(&renamed), Some(stat));
    }
    let _ = text::status_field(&words, "Uid");
    let group = text::unified_path(&words);
    assert!(!group.contains('\n'));
    if let Some(unit) = text::innermost_service(&group) {
        assert!(group.contains(&unit.unit));
    }
    for line in words.lines() {
        let _ = FileLock::parse(line);
    }
    let wanted = ["HOME".to_owned(), "HERMES_HOME".to_owned()];
    let found = text::variables(data, &wanted);
    assert!(found.len() <= wanted.len());
    let tokens = text::tokens(data);
    assert!(tokens.len() <= data.len());
});
