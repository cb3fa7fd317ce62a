//! The messages between a helper and whoever started it: JSON with its length before it, and no longer than a bound.

use std::io::{BufReader, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// No single message is larger: one file of a home is at most 8 MiB, and JSON text at most triples it.
const MESSAGE_LIMIT: u32 = 32 << 20;

/// Writes one length-bounded message.
///
/// # Errors
/// When the other end is gone, or the message is too large.
pub fn write_message<M: Serialize>(channel: &mut UnixStream, message: &M) -> std::io::Result<()> {
    let invalid = |error: serde_json::Error| std::io::Error::new(ErrorKind::InvalidData, error);
    let body = serde_json::to_vec(message).map_err(invalid)?;
    let length = u32::try_from(body.len())
        .ok()
        .filter(|length| *length <= MESSAGE_LIMIT)
        .ok_or_else(|| std::io::Error::new(ErrorKind::InvalidData, "message too large"))?;
    // In one piece, so that the other end is woken once.
    channel.write_all(&[&length.to_be_bytes()[..], &body].concat())
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
        return Err(std::io::Error::new(ErrorKind::InvalidData, text));
    }
    // The buffer grows with what arrives, so a lying length costs nothing.
    let mut body = Vec::with_capacity((length as usize).min(BUFFER));
    channel.take(u64::from(length)).read_to_end(&mut body)?;
    if body.len() != length as usize {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    serde_json::from_slice(&body)
        .map_err(|error| std::io::Error::new(ErrorKind::InvalidData, error))
}

/// The parent's end of the channel: no message is waited for past the deadline, however slowly its bytes arrive.
#[derive(Debug)]
pub(super) struct Channel {
    reader: BufReader<Bounded>,
}

/// The socket, with the moment after which nothing is read from it or written to it.
#[derive(Debug)]
struct Bounded {
    stream: UnixStream,
    deadline: Instant,
}

/// As many bytes as a helper may have said are read at once.
const BUFFER: usize = 64 << 10;

impl Channel {
    pub(super) fn new(stream: UnixStream) -> Self {
        let deadline = Instant::now();
        Self {
            reader: BufReader::with_capacity(BUFFER, Bounded { stream, deadline }),
        }
    }

    /// The moment that counts from now on.
    pub(super) fn set_deadline(&mut self, deadline: Instant) {
        self.reader.get_mut().deadline = deadline;
    }

    /// See [`write_message`].
    pub(super) fn write<M: Serialize>(&mut self, message: &M) -> std::io::Result<()> {
        let bounded = self.reader.get_mut();
        let left = bounded.left()?;
        bounded.stream.set_write_timeout(Some(left))?;
        write_message(&mut bounded.stream, message)
    }

    /// See [`read_message`].
    pub(super) fn read<M: DeserializeOwned>(&mut self) -> std::io::Result<M> {
        read_message(&mut self.reader)
    }

    /// Whether more came than was read.
    pub(super) fn has_more(&self) -> bool {
        !self.reader.buffer().is_empty()
    }

    /// Closes it, which ends a helper that waits for work.
    pub(super) fn close(&self) {
        let _ = self.reader.get_ref().stream.shutdown(Shutdown::Both);
    }
}

impl Bounded {
    fn left(&self) -> std::io::Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        Ok(left)
    }
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        self.stream.read(buffer)
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
            (framed(u32::MAX, b"{}"), ErrorKind::InvalidData),
            (framed(10, b"{}"), ErrorKind::UnexpectedEof),
            (framed(2, b"{]"), ErrorKind::InvalidData),
            (vec![0, 0], ErrorKind::UnexpectedEof),
        ] {
            let error = read_message::<serde_json::Value>(&mut &bytes[..]).expect_err("refused");
            assert_eq!(error.kind(), kind, "{bytes:?}");
        }
    }
}
