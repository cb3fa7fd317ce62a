#![no_main]
//! A copy of an audit chain: a broken one is never called whole.

use fleet_update::state::audit;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(chain) = audit::verify_copy(data) else { return };
    if !data.is_empty() {
        // One bit more and the hashes no longer hold.
        let mut bent = data.to_vec();
        let last = bent.len() / 2;
        bent[last] ^= 1;
        if let Ok(other) = audit::verify_copy(&bent[..]) {
            assert!(chain.head != other.head, "two texts are one chain");
        }
    }
});
