#![no_main]
//! What a helper says to its parent, if its user got hold of it.

use fleet_update::fleet::survey::Surveyed;
use fleet_update::helper::read_message;
use fleet_update::migrate::Evaluation;
use fleet_update::migrate::home::Fetched;
use fleet_update::restart::Observation;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((kind, body)) = data.split_first() else { return };
    // Half of the inputs are framed as they should be, so that more than the frame is tried.
    let framed = [&u32::try_from(body.len()).expect("short").to_be_bytes()[..], body].concat();
    let mut channel = if kind & 0x80 == 0 { &framed[..] } else { body };
    match kind & 3 {
        0 => drop(read_message::<Surveyed>(&mut channel)),
        1 => drop(read_message::<Vec<Evaluation>>(&mut channel)),
        2 => drop(read_message::<Fetched>(&mut channel)),
        _ => drop(read_message::<Observation>(&mut channel)),
    }
});
