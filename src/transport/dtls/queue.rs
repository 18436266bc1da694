//! Datagrams on their way from a media thread to the task of a call: a ring of bytes, so that nothing is allocated or
//! waited for.

use ringer_media::call::MediaChannel;
use rtrb::{Consumer, Producer, RingBuffer};

/// Bytes of the ring of one call: more than both sides of two handshakes send at once.
pub const QUEUE_BYTES: usize = 16 * 1024;

/// Bytes before a datagram: its port, and its length.
const HEAD: usize = 3;

/// The media thread's end.
pub struct QueueWriter(Producer<u8>);

/// The end of the task.
pub struct QueueReader(Consumer<u8>);

/// Returns both ends of a queue.
pub fn queue() -> (QueueWriter, QueueReader) {
    let (writer, reader) = RingBuffer::new(QUEUE_BYTES);
    (QueueWriter(writer), QueueReader(reader))
}

impl QueueWriter {
    /// Appends a datagram. Returns false where it does not fit: it is lost, as on the network, and the other side
    /// sends it again.
    pub fn push(&mut self, path: MediaChannel, datagram: &[u8]) -> bool {
        let Ok(length) = u16::try_from(datagram.len()) else { return false };
        if self.0.slots() < HEAD + datagram.len() {
            return false;
        }
        let [high, low] = length.to_be_bytes();
        let head = [u8::from(path == MediaChannel::Rtcp), high, low];
        self.0.push_entire_slice(&head).is_ok() && self.0.push_entire_slice(datagram).is_ok()
    }
}

impl QueueReader {
    /// Takes the next datagram.
    pub fn pop(&mut self) -> Option<(MediaChannel, Vec<u8>)> {
        let head = self.0.read_chunk(HEAD).ok()?;
        let mut bytes = [0; HEAD];
        let (first, second) = head.as_slices();
        bytes[..first.len()].copy_from_slice(first);
        bytes[first.len()..].copy_from_slice(second);
        let [port, high, low] = bytes;
        let length = usize::from(u16::from_be_bytes([high, low]));
        // The head is written before the datagram: until that is there, both stay.
        if self.0.slots() < HEAD + length {
            return None;
        }
        if let Ok(head) = self.0.read_chunk(HEAD) {
            head.commit_all();
        }
        let body = self.0.read_chunk(length).ok()?;
        let datagram = body.into_iter().collect();
        Some((if port == 0 { MediaChannel::Rtp } else { MediaChannel::Rtcp }, datagram))
    }
}
