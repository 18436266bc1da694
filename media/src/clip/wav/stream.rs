//! A WAV file that comes in pieces of any length, its samples given as soon as they are there.

use super::{ClipError, Format, TAIL_BYTES, UNTOLD, data_bytes, head, is_known, is_wav, long, next_file};

/// Longest header: 1 MiB. It is kept in memory until the samples begin.
const HEAD_BYTES: usize = 1 << 20;

/// Number of bytes that are needed to recognize a chunk: a pad byte, and the start of another file.
const CHUNK_BYTES: usize = 13;

/// Place of the next byte in the file.
#[derive(Debug)]
enum State {
    /// Before the samples, within the header.
    Head,
    /// Within this many bytes of samples; `None`: as many as come.
    Data(Format, Option<u64>),
    /// Behind samples or a chunk; `is_odd`: a pad byte may come first.
    After { format: Format, is_odd: bool },
    /// Within a chunk of no interest.
    Chunk { format: Format, left: u64, is_odd: bool },
    /// Behind all chunks: bytes so far that are not zero.
    Tail(usize),
}

/// Reads WAV files, one behind the other. Holds no more than a header.
#[derive(Debug)]
pub struct WavStream {
    state: State,
    buffer: Vec<u8>,
}

impl Default for WavStream {
    fn default() -> Self {
        WavStream { state: State::Head, buffer: Vec::new() }
    }
}

impl WavStream {
    /// Takes the next bytes and gives `out` the whole frames that are known by then, with how they are written.
    ///
    /// # Errors
    /// As [`head`]; [`ClipError::Trailing`].
    pub fn push(&mut self, bytes: &[u8], out: &mut impl FnMut(Format, &[u8])) -> Result<(), ClipError> {
        self.buffer.extend_from_slice(bytes);
        self.drain(false, out)
    }

    /// Hands out the rest.
    ///
    /// # Errors
    ///
    /// As [`WavStream::push`]: a header that is not whole is one.
    pub fn finish(mut self, out: &mut impl FnMut(Format, &[u8])) -> Result<(), ClipError> {
        self.drain(true, out)
    }

    fn drain(&mut self, is_whole: bool, out: &mut impl FnMut(Format, &[u8])) -> Result<(), ClipError> {
        while self.step(is_whole, out)? {}
        Ok(())
    }

    /// Steps to the next state; false when that takes more bytes.
    fn step(&mut self, is_whole: bool, out: &mut impl FnMut(Format, &[u8])) -> Result<bool, ClipError> {
        let length = self.buffer.len();
        match self.state {
            State::Head => {
                let Some(head) = head(&self.buffer, is_whole || length >= HEAD_BYTES)? else { return Ok(false) };
                self.turn_to(head.data_at, State::Data(head.format, head.data_bytes));
            }
            State::Data(format, Some(left)) => {
                let frame = format.frame_bytes();
                let count = usize::try_from(left).unwrap_or(usize::MAX).min(length);
                let whole = count - count % frame;
                self.give(whole, format, out);
                if (count as u64) < left {
                    self.turn_to(whole, State::Data(format, Some(left - whole as u64)));
                    return Ok(false);
                }
                self.turn_to(count, State::After { format, is_odd: left % 2 == 1 });
            }
            State::Data(format, None) => {
                let next = next_file(&self.buffer);
                // The start of another file may be here in part.
                let count = next.unwrap_or(if is_whole { length } else { length.saturating_sub(11) });
                let whole = count - count % format.frame_bytes();
                self.give(whole, format, out);
                if next.is_none() {
                    self.turn_to(whole, State::Data(format, None));
                    return Ok(false);
                }
                self.turn_to(count, State::Head);
            }
            State::After { format, is_odd } => {
                if !self.step_over_chunk(format, is_odd, is_whole) {
                    return Ok(false);
                }
            }
            State::Chunk { format, left, is_odd } => {
                let count = usize::try_from(left).unwrap_or(usize::MAX).min(length);
                let left = left - count as u64;
                self.turn_to(count, State::Chunk { format, left, is_odd });
                if left > 0 {
                    return Ok(false);
                }
                self.state = State::After { format, is_odd };
            }
            State::Tail(before) => {
                let count = before + self.buffer.iter().filter(|byte| **byte != 0).count();
                if count > TAIL_BYTES {
                    return Err(ClipError::Trailing);
                }
                self.turn_to(length, State::Tail(count));
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Recognizes what follows samples or a chunk; false when that takes more bytes.
    fn step_over_chunk(&mut self, format: Format, is_odd: bool, is_whole: bool) -> bool {
        let length = self.buffer.len();
        if length < CHUNK_BYTES && !is_whole || length < 8 {
            return false;
        }
        let is_start = |at: usize| self.buffer.get(at..).is_some_and(|rest| is_wav(rest) || is_known(rest));
        let at = if is_odd && (is_start(1) || !is_start(0)) { 1 } else { 0 };
        let rest = &self.buffer[at..];
        let size = rest.get(4..8).map_or(0, |size| long(size, format.is_big_endian));
        match () {
            () if is_wav(rest) => self.turn_to(at, State::Head),
            () if rest.starts_with(b"data") => {
                if rest.len() < 16 && !is_whole {
                    return false;
                }
                let follows = rest.get(8..).unwrap_or_default();
                let data_bytes = data_bytes(size, None, follows, format.is_big_endian);
                self.turn_to(at + 8, State::Data(format, data_bytes));
            }
            () if is_known(rest) && size < UNTOLD => {
                let (left, is_odd) = (u64::from(size) + 8, size % 2 == 1);
                self.turn_to(at, State::Chunk { format, left, is_odd });
            }
            () => self.state = State::Tail(0),
        }
        true
    }

    fn give(&self, count: usize, format: Format, out: &mut impl FnMut(Format, &[u8])) {
        if count > 0 {
            out(format, &self.buffer[..count]);
        }
    }

    fn turn_to(&mut self, count: usize, state: State) {
        self.buffer.drain(..count.min(self.buffer.len()));
        self.state = state;
    }
}
