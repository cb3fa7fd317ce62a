#![no_main]
//! A step file of a site: read or refused, and read means that it can be shown, looked up and used.

use fleet_update::migrate::catalog::{Catalog, Step};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(step) = Step::parse("fuzzed", text, "config.yaml") else { return };
    assert!(step.from < step.to);
    let again = Step::parse("other", text, "config.yaml").expect("the same text");
    assert_eq!(step.checksum(), again.checksum(), "the name changed what a step means");
    let touched = step.touches();
    assert_eq!(touched, again.touches());
    let (from, to) = (step.from, step.to);
    let Ok(catalog) = Catalog::new(vec![step]) else { return };
    assert_eq!((catalog.oldest(), catalog.newest()), (from, to));
    assert!(catalog.range(Some(from), to).is_ok());
});
