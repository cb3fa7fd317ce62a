#![no_main]
//! A site's mechanism rows: read or refused; what was read comes before the built-in rows.

use fleet_update::restart::table::Table;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let site = [("50-site.toml".to_owned(), text.to_owned())];
    let Ok(table) = Table::load(None, &site) else { return };
    let builtin = Table::load(None, &[]).expect("the built-in rows are valid");
    assert!(table.rows().len() >= builtin.rows().len());
    let own = table.rows().len() - builtin.rows().len();
    for row in &table.rows()[..own] {
        assert!(!row.id.is_empty());
    }
});
