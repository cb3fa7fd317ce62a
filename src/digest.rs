//! SHA-256, and bytes as hexadecimal digits: how the crate names content, everywhere alike.
//!
//! Anybody may ask; it knows nothing of what the bytes are.

use std::fs::File;
use std::io::Read as _;
use std::sync::OnceLock;

use sha2::{Digest as _, Sha256};

/// The SHA-256 of bytes, in 64 hexadecimal digits.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The SHA-256 of the program that runs; nothing where it cannot be read. It is computed once, and takes as long as
/// other things that a run begins with: ask early, in a thread.
#[must_use]
pub fn own_program() -> Option<&'static str> {
    static OWN: OnceLock<Option<String>> = OnceLock::new();
    let compute = || {
        // The file that was started, also when its path was replaced since (proc(5)).
        let mut program = File::open("/proc/self/exe").ok()?;
        let mut digest = Sha256::new();
        let mut piece = vec![0; 64 << 10];
        loop {
            match program.read(&mut piece).ok()? {
                0 => return Some(hex(&digest.finalize())),
                count => digest.update(&piece[..count]),
            }
        }
    };
    OWN.get_or_init(compute).as_deref()
}

/// Bytes in lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// The bytes that hexadecimal digits stand for; `None` if they are anything else.
#[must_use]
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => u8::try_from(digit(*high)? << 4 | digit(*low)?).ok(),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_named_as_sha256sum_names_it() {
        // FIPS 180-4, example of one block.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc"), abc);
    }

    #[test]
    fn the_program_that_runs_is_named_like_any_content() {
        let own = std::env::current_exe().and_then(std::fs::read);
        assert_eq!(own_program(), Some(&*sha256(&own.expect("readable"))));
    }

    #[test]
    fn hexadecimal_digits_are_read_back() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(unhex(&hex(&all)), Some(all));
        for text in ["0", "0g", "+1", "0x", "é"] {
            assert_eq!(unhex(text), None, "{text}");
        }
    }
}
