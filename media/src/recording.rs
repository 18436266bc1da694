//! Makes the bytes of a recording: the WAV header and the stereo frames. Writing them somewhere is the caller's part.
//!
//! [`StereoWindow`] places what both sides said on the call's sample clock, and beside it this side's words before noise and
//! quality were put to them. A position may be written until it is 500 ms old;
//! then it is handed out, once, in order, without gaps. What nobody wrote is silence.

use std::ops::Range;

use crate::frame::{FRAME, Frame, PER_MS, RATE_HZ, Sample};

/// Bytes of every header that [`wav_header`] makes, so that it can be rewritten in place while the file grows.
pub const WAV_HEADER: usize = 104;

/// What the channels of a file hold.
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
    /// How many channels.
    pub const fn channels(self) -> u16 {
        match self {
            Layout::Stereo => 2,
            Layout::Agent | Layout::CallerClean => 1,
        }
    }

    /// The comment that names the channels.
    pub fn comment(self) -> &'static str {
        match self {
            Layout::Stereo => "channel_0=digital_human;channel_1=agent",
            Layout::Agent => "channel_0=agent",
            Layout::CallerClean => "channel_0=caller_clean",
        }
    }
}

/// Header of a 16 kHz 16-bit PCM WAV file with `samples` samples in each channel, with a LIST INFO ICMT comment that names
/// the channels. Sizes that do not fit 32 bits say the largest that does. Rewritten while the file grows, it leaves a file
/// that is readable whenever the writer stops.
pub fn wav_header(layout: Layout, samples: u64) -> [u8; WAV_HEADER] {
    const COMMENT: usize = 40;
    let align = layout.channels() * 2;
    let room = u64::from(u32::MAX) - WAV_HEADER as u64;
    let data = samples.saturating_mul(u64::from(align)).min(room - room % u64::from(align)) as u32;
    let mut comment = [0; COMMENT];
    comment[..layout.comment().len()].copy_from_slice(layout.comment().as_bytes());

    let mut out = [0; WAV_HEADER];
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        out[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    put(b"RIFF");
    put(&(data + (WAV_HEADER as u32 - 8)).to_le_bytes());
    put(b"WAVEfmt ");
    put(&16u32.to_le_bytes());
    put(&1u16.to_le_bytes());
    put(&layout.channels().to_le_bytes());
    put(&RATE_HZ.to_le_bytes());
    put(&(RATE_HZ * u32::from(align)).to_le_bytes());
    put(&align.to_le_bytes());
    put(&16u16.to_le_bytes());
    put(b"LIST");
    put(&(4 + 8 + COMMENT as u32).to_le_bytes());
    put(b"INFOICMT");
    put(&(COMMENT as u32).to_le_bytes());
    put(&comment);
    put(b"data");
    put(&data.to_le_bytes());
    out
}

/// How old a position is when it is handed out.
pub const WINDOW: Sample = 500 * PER_MS;

/// Samples that the window holds for each channel: its age limit, the frame that is due and 120 ms ahead of them. Whole frames,
/// so that each lies in one piece.
const HELD: usize = 32 * FRAME;

/// A stretch of a recording.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Stretch<'a> {
    /// Interleaved: this side, the other.
    pub stereo: &'a [i16],
    /// This side before noise and quality: half as many samples.
    pub clean: &'a [i16],
}

/// The reorder window of a stereo recording: this side on channel 0 (even samples), the other on channel 1; and of the clean
/// track.
///
/// `push_*` in any order, then `while let Some(stretch) = advance(to)` at every tick, at the end `while let Some(stretch) =
/// flush(end)`. Allocates in `new` only. Positions before 0 are not part of the recording.
#[derive(Clone, Debug)]
pub struct StereoWindow {
    /// Interleaved; position p is at `p % HELD`.
    ring: Box<[i16]>,
    /// Position p is at `p % HELD`.
    clean: Box<[i16]>,
    /// The first position that was not handed out.
    base: Sample,
    /// One past the last position that holds something of this recording; behind it lies what was handed out before.
    filled: Sample,
    missed: u64,
}

impl Default for StereoWindow {
    fn default() -> Self {
        StereoWindow::new()
    }
}

impl StereoWindow {
    /// A window that begins at position 0.
    pub fn new() -> StereoWindow {
        StereoWindow { ring: vec![0; HELD * 2].into(), clean: vec![0; HELD].into(), base: 0, filled: 0, missed: 0 }
    }

    /// This side sent `pcm` at `position`, which was `clean` before noise and quality were put to it.
    pub fn push_sent(&mut self, position: Sample, pcm: &Frame, clean: &Frame) {
        let kept = self.put(0, position, pcm);
        let clean = &clean[(kept.start - position) as usize..(kept.end - position) as usize];
        let begin = kept.start as usize % HELD;
        let (head, tail) = clean.split_at(clean.len().min(HELD - begin));
        self.clean[begin..begin + head.len()].copy_from_slice(head);
        self.clean[..tail.len()].copy_from_slice(tail);
    }

    /// The other side was heard with `pcm` at `position`. What was there before is replaced.
    pub fn push_heard(&mut self, position: Sample, pcm: &[i16]) {
        self.put(1, position, pcm);
    }

    /// All that was heard and not handed out lies `by` samples (0 or more) earlier than was said.
    pub fn move_heard(&mut self, by: Sample) {
        for to in self.base..if by > 0 { self.filled } else { self.base } {
            let from = to + by;
            let sample = if from < self.filled { self.ring[from as usize % HELD * 2 + 1] } else { 0 };
            self.ring[to as usize % HELD * 2 + 1] = sample;
        }
    }

    /// The next 20 ms (320 samples of each channel) when all of it is older than `to` by the window, else `None`.
    pub fn advance(&mut self, to: Sample) -> Option<Stretch<'_>> {
        self.is_due(to).then(|| self.hand_out(FRAME))
    }

    /// Whether [`StereoWindow::advance`] has something to give.
    pub fn is_due(&self, to: Sample) -> bool {
        self.base + FRAME as Sample + WINDOW <= to
    }

    /// The rest up to `end`, 20 ms at a time, the last piece as short as it is; `None` when all is handed out.
    pub fn flush(&mut self, end: Sample) -> Option<Stretch<'_>> {
        let count = (end - self.base).min(FRAME as Sample);
        (count > 0).then(|| self.hand_out(count as usize))
    }

    /// The first position that was not handed out yet.
    pub fn position(&self) -> Sample {
        self.base
    }

    /// Samples of either channel that came after their position was handed out, or more than 120 ms early.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Writes what fits, and gives the positions of it (an empty range at `position` when nothing does).
    fn put(&mut self, channel: usize, position: Sample, pcm: &[i16]) -> Range<Sample> {
        let end = position + pcm.len() as Sample;
        let from = position.max(self.base);
        let to = end.min(self.base + HELD as Sample).max(from);
        // Of what does not fit, the part before position 0 is not missed.
        let recorded = (end - position.max(0)).max(0);
        self.missed += (recorded - (to - from)) as u64;
        let Some(pcm) = pcm.get((from - position) as usize..(to - position) as usize) else {
            return position..position;
        };
        self.silence_up_to(from);
        let known = (self.filled.max(from).min(to) - from) as usize;
        let (replaced, added) = pcm.split_at(known);
        self.each_piece(from, replaced, |pairs, pcm| {
            for (pair, &sample) in pairs.chunks_exact_mut(2).zip(pcm) {
                pair[channel] = sample;
            }
        });
        if channel != 0 {
            self.silence_clean(from + known as Sample, added.len());
        }
        let shift = 16 * channel as u32;
        self.each_piece(from + known as Sample, added, |pairs, pcm| {
            for (pair, &sample) in pairs.chunks_exact_mut(2).zip(pcm) {
                let both = u32::from(sample as u16) << shift;
                (pair[0], pair[1]) = (both as u16 as i16, (both >> 16) as u16 as i16);
            }
        });
        self.filled = self.filled.max(to);
        from..to
    }

    fn silence_clean(&mut self, from: Sample, count: usize) {
        let begin = from as usize % HELD;
        let head = count.min(HELD - begin);
        self.clean[begin..begin + head].fill(0);
        self.clean[..count - head].fill(0);
    }

    /// Hands `write` the interleaved room of `pcm` at `from`, in the one or two pieces in which it lies.
    fn each_piece(&mut self, from: Sample, pcm: &[i16], write: impl Fn(&mut [i16], &[i16])) {
        let begin = from as usize % HELD;
        let (head, tail) = pcm.split_at(pcm.len().min(HELD - begin));
        write(&mut self.ring[begin * 2..(begin + head.len()) * 2], head);
        write(&mut self.ring[..tail.len() * 2], tail);
    }

    /// What nobody wrote before `to` is silence.
    fn silence_up_to(&mut self, to: Sample) {
        while self.filled < to {
            let begin = self.filled as usize % HELD;
            let count = ((to - self.filled) as usize).min(HELD - begin);
            self.ring[begin * 2..(begin + count) * 2].fill(0);
            self.clean[begin..begin + count].fill(0);
            self.filled += count as Sample;
        }
    }

    fn hand_out(&mut self, count: usize) -> Stretch<'_> {
        let begin = self.base as usize % HELD;
        self.base += count as Sample;
        self.silence_up_to(self.base);
        Stretch { stereo: &self.ring[begin * 2..(begin + count) * 2], clean: &self.clean[begin..begin + count] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_heard_can_be_moved_to_an_earlier_place() {
        let mut window = StereoWindow::new();
        window.push_sent(0, &[7; FRAME], &[7; FRAME]);
        window.push_heard(100, &[1; 50]);
        window.push_heard(150, &[2; 50]);
        window.move_heard(60);
        window.move_heard(0);
        let frame = window.flush(FRAME as Sample).unwrap();
        let heard: Vec<i16> = frame.stereo.chunks_exact(2).map(|pair| pair[1]).collect();
        assert_eq!((&heard[..40], &heard[40..90], &heard[90..140]), (&[0; 40][..], &[1; 50][..], &[2; 50][..]));
        assert!(heard[140..].iter().all(|&sample| sample == 0));
        assert!(frame.stereo.chunks_exact(2).all(|pair| pair[0] == 7));
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
    fn a_file_too_long_for_its_header_still_has_one() {
        let header = wav_header(Layout::Stereo, u64::MAX);
        let data = chunks(&header)[2].1;
        assert!(data > u32::MAX - 200 && data.is_multiple_of(4));
    }

    /// Runs ticks up to `end`, pushing each piece at its tick, and returns both channels.
    fn record(end: Sample, pushes: &[(Sample, usize, Sample, i16)]) -> (Vec<[i16; 2]>, u64) {
        let mut window = StereoWindow::new();
        let mut file = Vec::new();
        // The clean track carries twice what was sent, wherever that was kept.
        let mut keep = |stretch: Stretch<'_>| {
            assert_eq!(stretch.stereo.len(), 2 * stretch.clean.len());
            assert!(stretch.stereo.chunks(2).zip(stretch.clean).all(|(pair, clean)| 2 * pair[0] == *clean));
            file.extend(stretch.stereo.chunks(2).map(|pair| [pair[0], pair[1]]));
        };
        for tick in (0..end).step_by(FRAME) {
            for &(at, channel, position, value) in pushes.iter().filter(|push| push.0 == tick) {
                match channel {
                    0 => window.push_sent(position, &[value; FRAME], &[2 * value; FRAME]),
                    _ => window.push_heard(position, &[value; FRAME]),
                }
                assert_eq!(at, tick);
            }
            while let Some(stretch) = window.advance(tick + FRAME as Sample) {
                keep(stretch);
            }
        }
        while let Some(stretch) = window.flush(end) {
            keep(stretch);
        }
        (file, window.missed())
    }

    #[test]
    fn frames_land_at_their_positions() {
        let check = |end: Sample,
                     pushes: &[(Sample, usize, Sample, i16)],
                     expect: &[(usize, Sample, Sample, i16)],
                     missed: u64| {
            let (file, lost) = record(end, pushes);
            assert_eq!((file.len() as Sample, lost), (end, missed), "{pushes:?}");
            let mut wanted = vec![[0; 2]; file.len()];
            for &(channel, from, to, value) in expect {
                wanted[from as usize..to as usize].iter_mut().for_each(|pair| pair[channel] = value);
            }
            assert!(file == wanted, "{pushes:?}");
        };
        check(1000, &[], &[], 0);
        check(12_345, &[(0, 0, 0, 7), (320, 0, 320, 8)], &[(0, 0, 320, 7), (0, 320, 640, 8)], 0);
        // Both at the same position stay aligned; odd positions are kept to the sample.
        check(
            32_000,
            &[(16_000, 0, 16_000, 1), (16_320, 1, 16_000, 2)],
            &[(0, 16_000, 16_320, 1), (1, 16_000, 16_320, 2)],
            0,
        );
        check(32_000, &[(16_000, 1, 15_001, 3)], &[(1, 15_001, 15_321, 3)], 0);
        // The other side ahead of this one, and this one's old clean track wiped when the window comes round to it.
        check(
            48_000,
            &[(0, 0, 0, 7), (9600, 1, 10_240, 2), (10_240, 0, 10_400, 4)],
            &[(0, 0, 320, 7), (1, 10_240, 10_560, 2), (0, 10_400, 10_720, 4)],
            0,
        );
        // Out of order, overlapping, a gap between.
        check(
            32_000,
            &[(16_000, 1, 15_400, 5), (16_000, 1, 15_000, 4), (16_320, 1, 15_200, 6)],
            &[(1, 15_400, 15_720, 5), (1, 15_000, 15_320, 4), (1, 15_200, 15_520, 6)],
            0,
        );
        // Just in time, partly too late, wholly too late, far too early, before the recording.
        check(32_000, &[(16_000, 1, 8_000, 9)], &[(1, 8_000, 8_320, 9)], 0);
        check(32_000, &[(16_000, 1, 7_900, 9)], &[(1, 8_000, 8_220, 9)], 100);
        check(32_000, &[(16_000, 1, 3_000, 9)], &[], 320);
        check(48_000, &[(16_000, 1, 30_000, 9)], &[], 320);
        check(1_000, &[(0, 1, -200, 9)], &[(1, 0, 120, 9)], 0);
        // What lies beyond the end is cut off at the exact sample.
        check(16_100, &[(16_000, 0, 16_000, 1)], &[(0, 16_000, 16_100, 1)], 0);
    }
}
