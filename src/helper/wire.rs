//! The messages between a helper and whoever started it: JSON with its length before it, and no longer than a bound.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// No single message is larger: one file of a home is at most 8 MiB, and JSON text at most triples it.
const MESSAGE_LIMIT: u32 = 32 << 20;

/// Writes one length-bounded message.
///
/// # Errors
/// When the other end is gone, or the message is too large.
pub fn write_message<M: Serialize>(channel: &mut UnixStream, message: &M) -> std::io::Result<()> {
    let invalid =
        |error: serde_json::Error| std::io::Error::new(std::io::ErrorKind::InvalidData, error);
    let body = serde_json::to_vec(message).map_err(invalid)?;
    let length = u32::try_from(body.len())
        .ok()
        .filter(|length| *length <= MESSAGE_LIMIT)
        .ok_or_else(|| std::io::Error::new(std::io::ErrorKind::InvalidData, "message too large"))?;
    channel.write_all(&length.to_be_bytes())?;
    channel.write_all(&body)
}

/// Reads one length-bounded message.
///
/// # Errors
/// When the other end is gone, or what came is no such message.
pub fn read_message<M: DeserializeOwned>(channel: &mut impl Read) -> std::io::Result<M> {
    let mut length = [0; 4];
    channel.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > MESSAGE_LIMIT {
        let text = format!("a message of {length} bytes");
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, text));
    }
    // The buffer grows with what arrives, so a lying length costs nothing.
    let mut body = Vec::new();
    channel.take(u64::from(length)).read_to_end(&mut body)?;
    if body.len() != length as usize {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    serde_json::from_slice(&body)
        .map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidData, error))
}

/// Reads with one deadline over all of a message, however slowly its bytes arrive.
pub(super) struct Bounded<'a> {
    pub(super) channel: &'a UnixStream,
    pub(super) deadline: Instant,
}

impl Read for Bounded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        self.channel.set_read_timeout(Some(left))?;
        (&mut &*self.channel).read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(length: u32, body: &[u8]) -> Vec<u8> {
        [&length.to_be_bytes()[..], body].concat()
    }

    #[test]
    fn a_message_that_lies_about_its_length_is_refused() {
        for (bytes, kind) in [
            (framed(u32::MAX, b"{}"), std::io::ErrorKind::InvalidData),
            (framed(10, b"{}"), std::io::ErrorKind::UnexpectedEof),
            (framed(2, b"{]"), std::io::ErrorKind::InvalidData),
            (vec![0, 0], std::io::ErrorKind::UnexpectedEof),
        ] {
            let error = read_message::<serde_json::Value>(&mut &bytes[..]).expect_err("refused");
            assert_eq!(error.kind(), kind, "{bytes:?}");
        }
    }
}
