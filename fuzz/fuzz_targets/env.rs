#![no_main]

mod edit;

libfuzzer_sys::fuzz_target!(|data: &[u8]| edit::check(fleet_update::document::Format::Env, data));
