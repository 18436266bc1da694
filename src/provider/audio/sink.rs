//! Collects decoded audio: each section is brought to 16 kHz by its own rate, as it is read. A small file may hold
//! hours of silence at a high rate.

use ringer_media::frame::RATE_HZ;
use ringer_media::resample::ClipResampler;

use super::{CallAudio, MISSED_S, Part, Unread};

/// Rates that are read, in Hz.
const RATES_HZ: std::ops::RangeInclusive<u32> = 8000..=192_000;

/// Changes of the rate within a file: each takes some milliseconds to prepare for.
const MAX_TURNS: u32 = 32;

/// Samples of silence that are added at once.
const BLOCK: usize = 1 << 16;

/// One side of a file.
struct Side {
    /// `None`: the section is at 16 kHz.
    clip: Option<ClipResampler>,
    pcm: Vec<i16>,
}

impl Side {
    fn turn_to(&mut self, rate_hz: u32) {
        self.end();
        self.clip = ClipResampler::new(rate_hz, RATE_HZ).filter(|_| rate_hz != RATE_HZ);
    }

    fn end(&mut self) {
        if let Some(clip) = self.clip.take() {
            clip.finish(&mut self.pcm);
        }
    }

    fn push(&mut self, pcm: &[i16]) {
        match &mut self.clip {
            Some(clip) => clip.push(pcm, &mut self.pcm),
            None => self.pcm.extend(pcm),
        }
    }
}

/// The audio of a file, and what is missing of it.
pub(super) struct Sink {
    part: Part,
    sides: Vec<Side>,
    /// Rate of the current section; 0 before the first.
    rate_hz: u32,
    lowest_hz: u32,
    turns: u32,
    /// Frames of the current section that there is space for.
    left: usize,
    is_full: bool,
    scratch: Vec<i16>,
    broken_s: f64,
    one_sided_s: f64,
    cut_off: Option<Option<f64>>,
    missed: Vec<String>,
}

impl Sink {
    pub(super) fn new(part: Part) -> Sink {
        Sink {
            part,
            sides: Vec::new(),
            rate_hz: 0,
            lowest_hz: 0,
            turns: 0,
            left: 0,
            is_full: false,
            scratch: Vec::new(),
            broken_s: 0.0,
            one_sided_s: 0.0,
            cut_off: None,
            missed: Vec::new(),
        }
    }

    /// Returns the number of sides; 0 before the first audio.
    pub(super) fn sides(&self) -> usize {
        self.sides.len()
    }

    /// Returns the number of sides of a file with `channels` channels.
    pub(super) fn sides_of(&self, channels: usize) -> usize {
        if self.sides.is_empty() { self.part.sides.min(channels) } else { self.sides.len().min(channels) }
    }

    /// True after audio that there is no space for.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sides.is_empty()
    }

    /// Prepares for a number of frames, and returns how many of them go to each side. `None`: no frames, since their
    /// sides are not apart, and silence is in their place.
    pub(super) fn admit(&mut self, rate_hz: u32, channels: usize, frames: usize) -> Result<Option<usize>, String> {
        if frames == 0 {
            return Ok(Some(0));
        }
        if !RATES_HZ.contains(&rate_hz) || channels == 0 {
            return Err(format!("{channels} channels at {rate_hz} Hz are not read: use 8000 to 192000 Hz"));
        }
        if self.sides.is_empty() {
            let sides = self.part.sides.min(channels);
            self.sides.extend((0..sides).map(|_| Side { clip: None, pcm: Vec::new() }));
            self.left = self.part.seconds as usize * RATE_HZ as usize;
            (self.rate_hz, self.lowest_hz) = (RATE_HZ, rate_hz);
        }
        if self.rate_hz != rate_hz {
            if self.turns == MAX_TURNS {
                return Err(format!("its rate changes more than {MAX_TURNS} times"));
            }
            self.turns += 1;
            self.left = (self.left as u64 * u64::from(rate_hz) / u64::from(self.rate_hz)) as usize;
            self.sides.iter_mut().for_each(|side| side.turn_to(rate_hz));
            (self.rate_hz, self.lowest_hz) = (rate_hz, self.lowest_hz.min(rate_hz));
        }
        if channels < self.sides.len() {
            self.one_sided_s += frames as f64 / f64::from(rate_hz);
            self.silence(frames);
            return Ok(None);
        }
        Ok(Some(self.take(frames)))
    }

    fn take(&mut self, frames: usize) -> usize {
        let taken = frames.min(self.left);
        self.is_full |= taken < frames;
        self.left -= taken;
        taken
    }

    /// Adds to one side.
    pub(super) fn give(&mut self, side: usize, pcm: impl Iterator<Item = i16>) {
        self.scratch.clear();
        self.scratch.extend(pcm);
        self.sides[side].push(&self.scratch);
    }

    fn silence(&mut self, frames: usize) {
        let mut left = self.take(frames);
        while left > 0 {
            let count = left.min(BLOCK);
            self.scratch.clear();
            self.scratch.resize(count, 0);
            self.sides.iter_mut().for_each(|side| side.push(&self.scratch));
            left -= count;
        }
    }

    /// Puts silence in the place of `seconds` that could not be decoded, so that what follows stays where it was.
    pub(super) fn broken(&mut self, seconds: f64) {
        self.broken_s += seconds;
        self.silence((seconds * f64::from(self.rate_hz)) as usize);
    }

    /// Counts seconds that are no audio within a file that goes on behind them.
    pub(super) fn skipped(&mut self, seconds: f64) {
        self.broken_s += seconds.max(0.0);
    }

    /// Notes that the file ends before its end; the seconds that it should have had beyond, where that is known.
    pub(super) fn cut_off(&mut self, missing_s: Option<f64>) {
        self.cut_off = match (self.cut_off, missing_s) {
            (Some(None), _) | (_, None) => Some(None),
            (Some(Some(before)), Some(missing_s)) => Some(Some(before + missing_s)),
            (None, some) => Some(some),
        };
    }

    /// Notes another reason for missing audio.
    pub(super) fn miss(&mut self, why: String) {
        self.missed.push(why);
    }

    /// Returns the seconds of audio so far.
    pub(super) fn seconds(&self) -> f64 {
        if self.rate_hz == 0 {
            return 0.0;
        }
        f64::from(self.part.seconds) - self.left as f64 / f64::from(self.rate_hz)
    }

    pub(super) fn finish(mut self) -> CallAudio {
        let most = self.part.seconds as usize * RATE_HZ as usize;
        for side in &mut self.sides {
            side.end();
            side.pcm.truncate(most);
        }
        let unread = self.unread();
        let sides = self.sides.into_iter().map(|side| side.pcm).collect();
        CallAudio { sides, rate_hz: self.lowest_hz, unread }
    }

    fn unread(&mut self) -> Option<Unread> {
        let mut why = std::mem::take(&mut self.missed);
        why.extend((self.broken_s > MISSED_S).then(|| format!("{:.1} s of it are broken", self.broken_s)));
        let one_sided_s = self.one_sided_s;
        why.extend((one_sided_s > 0.0).then(|| format!("{one_sided_s:.1} s of it have one channel, not two")));
        why.extend(match self.cut_off {
            Some(Some(missing_s)) if missing_s <= MISSED_S => None,
            Some(Some(missing_s)) => {
                Some(format!("the file is not complete: {missing_s:.1} s that it tells of are not in it"))
            }
            Some(None) => Some("the file is not complete: it ends in the middle".to_owned()),
            None => None,
        });
        let is_limit = why.is_empty();
        let limit_s = self.part.seconds;
        why.extend(self.is_full.then(|| format!("the first {limit_s} s of a file are used")));
        let read_s = self.sides.first().map_or(0.0, |side| side.pcm.len() as f64 / f64::from(RATE_HZ));
        (!why.is_empty()).then(|| Unread { read_s, why: why.join("; "), is_limit })
    }
}
