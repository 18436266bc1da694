//! Parts of a recording: the WAV header, and the received audio in its order. Writing them somewhere is the caller's
//! part.
//!
//! [`Window`] places received audio on the call's sample clock. A position may be written until it is 500 ms old; then
//! it is handed out, once, in order, without gaps. Positions that were never written are silence.

use crate::clip::wav::{HEADER_BYTES, header};
use crate::frame::{FRAME, PER_MS, RATE_HZ, Sample};

/// Length in bytes of every header that [`wav_header`] makes, so that it can be rewritten in place while the file
/// grows.
pub const WAV_HEADER: usize = 104;

/// Contents of the channels of a file.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Layout {
    /// Channel 0 the Digital Human, channel 1 the agent.
    Stereo,
    /// One channel: the agent.
    Agent,
    /// One channel: the Digital Human before noise, audio quality and loss.
    CallerClean,
}

impl Layout {
    /// Returns the number of channels, 1 or 2.
    pub const fn channels(self) -> u16 {
        match self {
            Layout::Stereo => 2,
            Layout::Agent | Layout::CallerClean => 1,
        }
    }

    /// Returns the comment that names the channels.
    pub fn comment(self) -> &'static str {
        match self {
            Layout::Stereo => "channel_0=digital_human;channel_1=agent",
            Layout::Agent => "channel_0=agent",
            Layout::CallerClean => "channel_0=caller_clean",
        }
    }
}

/// Returns the header of a 16 kHz 16-bit PCM WAV file with `samples` samples in each channel. A LIST INFO ICMT comment
/// names the channels. Sizes that do not fit 32 bits are written as the largest that does. Rewritten while the file
/// grows, it leaves a file that is readable whenever the writer stops.
pub fn wav_header(layout: Layout, samples: u64) -> [u8; WAV_HEADER] {
    const COMMENT: u32 = 40;
    let align = layout.channels() * 2;
    let space = u64::from(u32::MAX) - WAV_HEADER as u64;
    let data = samples.saturating_mul(u64::from(align)).min(space - space % u64::from(align)) as u32;
    let mut chunk = [0; WAV_HEADER - HEADER_BYTES];
    let comment = layout.comment().as_bytes();
    let parts: [&[u8]; 5] = [b"LIST", &(4 + 8 + COMMENT).to_le_bytes(), b"INFOICMT", &COMMENT.to_le_bytes(), comment];
    chunk.iter_mut().zip(parts.concat()).for_each(|(to, from)| *to = from);
    header(RATE_HZ, layout.channels(), &chunk, data)
}

/// Age at which a position is handed out, in samples.
pub const WINDOW: Sample = 500 * PER_MS;

/// Number of samples that the window holds: its age limit, the frame that is due and 120 ms ahead of them. Whole
/// frames, so that each lies in one piece.
const HELD: usize = 32 * FRAME;

/// The reorder window of what was heard. What this side sends needs none: it has its position when it is made.
///
/// `push` in any order, then `while let Some(pcm) = advance(to)` at every tick, at the end `while let Some(pcm) =
/// flush(end)`. Allocates in `new` only. Positions before 0 are not part of the recording.
#[derive(Clone, Debug)]
pub struct Window {
    /// Position p is at `p % HELD`.
    ring: Box<[i16]>,
    /// First position that was not handed out.
    base: Sample,
    /// One past the last position that holds something of this recording; from there on the ring has samples handed out
    /// before.
    filled: Sample,
    missed: u64,
}

impl Default for Window {
    fn default() -> Self {
        Window::new()
    }
}

impl Window {
    /// Returns a window that begins at position 0.
    pub fn new() -> Window {
        Window { ring: vec![0; HELD].into(), base: 0, filled: 0, missed: 0 }
    }

    /// Takes `pcm` received at `position`, and replaces samples that are there already. Samples outside of the window
    /// count as missed.
    pub fn push(&mut self, position: Sample, pcm: &[i16]) {
        let end = position + pcm.len() as Sample;
        let from = position.max(self.base);
        let to = end.min(self.base + HELD as Sample).max(from);
        // Samples before position 0 are not counted as missed.
        let recorded = (end - position.max(0)).max(0);
        self.missed += (recorded - (to - from)) as u64;
        if from == to {
            return;
        }
        let kept = &pcm[(from - position) as usize..(to - position) as usize];
        self.silence_up_to(from);
        let [head, tail] = self.pieces_at(from, kept.len());
        let (first, rest) = kept.split_at(head.len());
        head.copy_from_slice(first);
        tail.copy_from_slice(rest);
        self.filled = self.filled.max(to);
    }

    /// Moves the samples that were not handed out `by` samples (0 or more) back.
    pub fn move_back(&mut self, by: Sample) {
        for to in self.base..if by > 0 { self.filled } else { self.base } {
            let from = to + by;
            let sample = if from < self.filled { self.ring[from as usize % HELD] } else { 0 };
            self.ring[to as usize % HELD] = sample;
        }
    }

    /// Returns the next 20 ms when all of it is older than `to` by the window, else `None`.
    pub fn advance(&mut self, to: Sample) -> Option<&[i16]> {
        (self.base + FRAME as Sample + WINDOW <= to).then(|| self.hand_out(FRAME))
    }

    /// Returns the rest up to `end`, 20 ms at a time, the last piece as short as it is; `None` when all is handed out.
    pub fn flush(&mut self, end: Sample) -> Option<&[i16]> {
        let count = (end - self.base).min(FRAME as Sample);
        (count > 0).then(|| self.hand_out(count as usize))
    }

    /// Number of samples that came after their position was handed out, or more than 120 ms early.
    #[cfg(test)]
    pub(crate) fn missed_samples(&self) -> u64 {
        self.missed
    }

    /// Returns the slots of `count` samples from `from` on, in the one or two pieces in which they lie.
    fn pieces_at(&mut self, from: Sample, count: usize) -> [&mut [i16]; 2] {
        let begin = from as usize % HELD;
        let head = count.min(HELD - begin);
        let (front, back) = self.ring.split_at_mut(begin);
        [&mut back[..head], &mut front[..count - head]]
    }

    /// Fills positions before `to` that were never written with silence.
    fn silence_up_to(&mut self, to: Sample) {
        if self.filled < to {
            self.pieces_at(self.filled, (to - self.filled) as usize).into_iter().for_each(|piece| piece.fill(0));
            self.filled = to;
        }
    }

    fn hand_out(&mut self, count: usize) -> &[i16] {
        let begin = self.base as usize % HELD;
        self.base += count as Sample;
        self.silence_up_to(self.base);
        &self.ring[begin..begin + count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_heard_can_be_moved_to_an_earlier_place() {
        let mut window = Window::new();
        window.push(100, &[1; 50]);
        window.push(150, &[2; 50]);
        window.move_back(60);
        window.move_back(0);
        let heard = window.flush(FRAME as Sample).unwrap();
        assert_eq!((&heard[..40], &heard[40..90], &heard[90..140]), (&[0; 40][..], &[1; 50][..], &[2; 50][..]));
        assert!(heard[140..].iter().all(|&sample| sample == 0));
    }

    /// Walks RIFF chunks as a reader does: (id, body) pairs; the data chunk's body is its declared size.
    fn chunks(header: &[u8]) -> Vec<(&str, u32, &[u8])> {
        let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap());
        let mut at = 12;
        let mut found = Vec::new();
        while at < header.len() {
            let size = word(at + 4);
            let body = &header[at + 8..(at + 8 + size as usize).min(header.len())];
            found.push((std::str::from_utf8(&header[at..at + 4]).unwrap(), size, body));
            at += 8 + (size + size % 2) as usize;
        }
        found
    }

    #[test]
    fn the_header_says_what_the_file_holds() {
        for (layout, samples) in
            [(Layout::Stereo, 0), (Layout::Stereo, 48_123), (Layout::Agent, 16_000), (Layout::CallerClean, 320)]
        {
            let header = wav_header(layout, samples);
            let align = layout.channels() as usize * 2;
            let data = samples as usize * align;
            assert_eq!(&header[..4], b"RIFF");
            assert_eq!(u32::from_le_bytes(header[4..8].try_into().unwrap()) as usize, header.len() - 8 + data);
            assert_eq!(&header[8..12], b"WAVE");
            let chunks = chunks(&header);
            assert_eq!(chunks.iter().map(|chunk| chunk.0).collect::<Vec<_>>(), ["fmt ", "LIST", "data"]);
            let half = |at: usize| u16::from_le_bytes([chunks[0].2[at], chunks[0].2[at + 1]]);
            assert_eq!((half(0), half(2), half(12), half(14)), (1, layout.channels(), align as u16, 16));
            assert_eq!(u32::from_le_bytes(chunks[0].2[4..8].try_into().unwrap()), 16_000);
            assert_eq!(u32::from_le_bytes(chunks[0].2[8..12].try_into().unwrap()), 16_000 * align as u32);
            assert_eq!(&chunks[1].2[..8], b"INFOICMT");
            let text = std::str::from_utf8(&chunks[1].2[12..]).unwrap();
            assert_eq!(text.trim_end_matches('\0'), layout.comment());
            assert_eq!(chunks[2].1 as usize, data);
        }
    }

    #[test]
    fn the_channels_are_named_in_the_file() {
        for (layout, expect) in [
            (Layout::Stereo, "channel_0=digital_human;channel_1=agent"),
            (Layout::Agent, "channel_0=agent"),
            (Layout::CallerClean, "channel_0=caller_clean"),
        ] {
            let header = wav_header(layout, 320);
            let info = chunks(&header)[1].2;
            assert_eq!(&info[..8], b"INFOICMT");
            let length = u32::from_le_bytes(info[8..12].try_into().unwrap()) as usize;
            let text = &info[12..12 + length];
            assert_eq!(text.split(|&byte| byte == 0).next(), Some(expect.as_bytes()), "{layout:?}");
        }
    }

    #[test]
    fn a_file_too_long_for_its_header_still_has_one() {
        let header = wav_header(Layout::Stereo, u64::MAX);
        let data = chunks(&header)[2].1;
        assert!(data > u32::MAX - 200 && data.is_multiple_of(4));
    }

    /// Runs ticks up to `end`, pushing each piece (tick, position, value) at its tick, and returns the file and what
    /// was missed.
    fn record(end: Sample, pushes: &[(Sample, Sample, i16)]) -> (Vec<i16>, u64) {
        let mut window = Window::new();
        let mut file = Vec::new();
        for tick in (0..end).step_by(FRAME) {
            for &(_, position, value) in pushes.iter().filter(|push| push.0 == tick) {
                window.push(position, &[value; FRAME]);
            }
            while let Some(pcm) = window.advance(tick + FRAME as Sample) {
                file.extend_from_slice(pcm);
            }
        }
        while let Some(pcm) = window.flush(end) {
            file.extend_from_slice(pcm);
        }
        (file, window.missed_samples())
    }

    #[test]
    fn frames_land_at_their_positions() {
        let check = |end: Sample, pushes: &[(Sample, Sample, i16)], expect: &[(Sample, Sample, i16)], missed: u64| {
            assert!(pushes.iter().all(|push| push.0 % FRAME as Sample == 0 && push.0 < end), "{pushes:?}");
            let (file, lost) = record(end, pushes);
            assert_eq!((file.len() as Sample, lost), (end, missed), "{pushes:?}");
            let mut wanted = vec![0; file.len()];
            for &(from, to, value) in expect {
                wanted[from as usize..to as usize].fill(value);
            }
            assert!(file == wanted, "{pushes:?}");
        };
        check(1000, &[], &[], 0);
        check(12_345, &[(0, 0, 7), (320, 320, 8)], &[(0, 320, 7), (320, 640, 8)], 0);
        // Odd positions are kept to the sample.
        check(32_000, &[(16_000, 15_001, 3)], &[(15_001, 15_321, 3)], 0);
        // Ahead of its time; and silence where the window comes round to what was there before.
        check(48_000, &[(0, 0, 7), (9600, 10_240, 2)], &[(0, 320, 7), (10_240, 10_560, 2)], 0);
        // Out of order, overlapping, a gap between.
        check(
            32_000,
            &[(16_000, 15_400, 5), (16_000, 15_000, 4), (16_320, 15_200, 6)],
            &[(15_400, 15_720, 5), (15_000, 15_320, 4), (15_200, 15_520, 6)],
            0,
        );
        // Just in time, partly too late, wholly too late, far too early, before the recording.
        check(32_000, &[(16_000, 8_000, 9)], &[(8_000, 8_320, 9)], 0);
        check(32_000, &[(16_000, 7_900, 9)], &[(8_000, 8_220, 9)], 100);
        check(32_000, &[(16_000, 3_000, 9)], &[], 320);
        check(48_000, &[(16_000, 30_000, 9)], &[], 320);
        check(1_000, &[(0, -200, 9)], &[(0, 120, 9)], 0);
        // Audio beyond the end is cut off at the exact sample.
        check(16_100, &[(16_000, 16_000, 1)], &[(16_000, 16_100, 1)], 0);
    }
}
