//! Echo: what this side sent and hears again. An [`EchoGuard`] finds speech in a received channel as
//! [`crate::vad::VoiceActivity`] does, but not in this side's own words.
//!
//! Nothing is looked for until something that was heard may be an echo: speech is found within the reach of own sound. Then
//! the sent audio is correlated with the received at 4 kHz, and the likeliest lags are tried at full rate: a filter is
//! fitted to one part of the stretch and has to foretell the other. From then on that filter takes the echo out before
//! speech is looked for, and follows the path.

mod path;
mod ring;
mod search;

use crate::dot::dot;
use crate::frame::{FRAME, Frame, PER_MS, Sample};
use crate::level::rms_dbov;
use crate::vad::{BLOCK, Edge, Edges, VoiceActivity};
use path::{Path, TAPS};
use ring::Ring;
use search::{BEST, Candidate, LAGS, STEP};

/// Longest echo that is looked for (650 ms).
const LONGEST: Sample = (LAGS * STEP) as Sample;

/// Sent audio that is held (1120 ms): the longest echo, the jitter buffer's depth (200 ms), and what is held of the received.
const SENT: usize = 17_920;

/// Received audio that is held (256 ms).
const HEARD: usize = 4096;

/// Samples that a search examines (80 ms), and how many of them the filter is fitted to (50 ms).
const WINDOW: usize = search::WINDOW * STEP;
const FITTED: usize = 800;

/// The filter's taps begin this far before the lag: 2 ms.
const AHEAD: Sample = TAPS as Sample / 2;

/// Own sound under this echoes nowhere, dBov.
const SOUND_DBOV: f64 = -55.0;

/// What a filter may leave of the stretch that it foretells (-8 dB).
const LEFT: f32 = 0.16;

/// What a known path, fitted anew, may leave of what was heard and is still the path (-10 dB).
const STILL: f32 = 0.1;

/// What is left of a block of echo is no speech below this share of the echo (-8 dB).
const MASKED: f32 = 0.16;

/// A frame of which the filter leaves no more than this is echo alone, and the filter learns from it: -5 dB while the path is
/// new, -10 dB once it is proven.
const LEARN: f32 = 0.3;
const LEARN_PROVEN: f32 = 0.1;

/// Echo below this counts for nothing, power at 1 = full scale (-75 dBov).
const LEAST_POWER: f32 = 3.2e-8;

/// Frames of foretold echo that prove a path (160 ms), and the most that are counted.
const PROVEN: i32 = 8;
const MOST_PROVEN: i32 = 50;

/// While speech is on in reach of own sound, it is examined again after this (100 ms), then twice as long, to at most 1.6 s.
const AGAIN: Sample = 100 * PER_MS;
const SELDOM: Sample = 1600 * PER_MS;

/// Looks without a find after which the first of these pauses is twice as long: where no echo was, it is hardly worth one.
const FRUITLESS: u32 = 4;

/// With an echo about, speech is believed after this much more of it (40 ms).
const DOUBT: Sample = 40 * PER_MS;

/// Without speech, an echo too weak to disturb is looked for this often in a call, this far apart (500 ms).
const LOOKS: u32 = 8;
const LOOK_EVERY: Sample = 500 * PER_MS;

/// Sound above this is worth a look, dBov.
const LOOK_DBOV: f64 = -75.0;

/// An echo path, measured.
#[derive(Copy, Clone, Debug, PartialEq, Default)]
pub struct EchoFigures {
    /// From sending to hearing, in milliseconds.
    pub delay_ms: f64,
    /// Echo return loss: how far the echo lies below what was sent, in dB.
    pub erl_db: f64,
}

/// Finds the other side's speech in a channel that may carry this side's own. Allocates nothing after [`EchoGuard::new`].
pub struct EchoGuard {
    vad: VoiceActivity,
    sent: Ring<SENT>,
    heard: Ring<HEARD>,
    /// One past the last own sound.
    sounded_to: Sample,
    path: Box<Path>,
    /// Samples from sending to hearing, when a path is known.
    lag: Option<Sample>,
    /// Frames that the path foretold, less those that it did not.
    proof: i32,
    told: bool,
    news: bool,
    /// Sums of squares of foretold echo and of the sent audio that it came from.
    powers: [f64; 2],
    /// Echo in the last blocks.
    lingering: f32,
    /// Speech of which is not sure until then that it is no rest of an echo, and its onset.
    doubted: Option<(Sample, Sample)>,
    /// Where the last speech began.
    onset: Sample,
    next_look: Sample,
    pause: Sample,
    looks: u32,
    /// Something was received.
    has_begun: bool,
    /// Looks since the last find.
    fruitless: u32,
}

impl EchoGuard {
    /// For a channel of which nothing was heard.
    pub fn new() -> EchoGuard {
        EchoGuard {
            vad: VoiceActivity::new(),
            sent: Ring::new(),
            heard: Ring::new(),
            sounded_to: Sample::MIN / 2,
            path: Box::new(Path::new()),
            lag: None,
            proof: 0,
            told: false,
            news: false,
            powers: [0.0; 2],
            lingering: 0.0,
            doubted: None,
            onset: 0,
            next_look: Sample::MIN / 2,
            pause: AGAIN,
            looks: 0,
            has_begun: false,
            fruitless: 0,
        }
    }

    /// The speech that is on, the floor and the level, as heard without echo.
    pub fn vad(&self) -> &VoiceActivity {
        &self.vad
    }

    /// All that was heard lies `by` samples earlier than was said; a path that was found is looked for again.
    pub fn move_back(&mut self, by: Sample) {
        self.vad.move_back(by);
        self.onset -= by;
        self.doubted = self.doubted.map(|(until, onset)| (until - by, onset - by));
    }

    /// The channel is over: speech that is still on ends at its last block.
    pub fn finish(&mut self) -> Edges {
        let edge = self.vad.finish();
        if self.doubted.take().is_some() { None } else { edge }
    }

    /// The path, once it is proven.
    pub fn figures(&self) -> Option<EchoFigures> {
        let lag = self.lag.filter(|_| self.told)?;
        let delay_ms = (lag - AHEAD + self.path.peak() as Sample) as f64 / PER_MS as f64;
        let [echo, sent] = self.powers;
        Some(EchoFigures { delay_ms, erl_db: 10.0 * (sent.max(1.0) / echo.max(1.0)).log10() })
    }

    /// A path that was proven since this was last asked.
    pub fn news(&mut self) -> Option<EchoFigures> {
        if std::mem::take(&mut self.news) { self.figures() } else { None }
    }

    /// This side sends the 20 ms that begin at `at`.
    pub fn sent(&mut self, at: Sample, pcm: &Frame) {
        if rms_dbov(pcm) > SOUND_DBOV {
            if at > self.sounded_to + LONGEST {
                self.pause = self.first_pause();
            }
            self.sounded_to = at + FRAME as Sample;
        }
        if at < self.sounded_to + LONGEST {
            self.sent.write(at, pcm);
        }
    }

    /// Hears the 20 ms that begin at `from`; `is_real` is false for what was not received, and before the first that was it is
    /// not heard at all: no silence, but nothing known of the channel yet. Own echo is taken out of `pcm` where it is known.
    pub fn push(&mut self, pcm: &mut Frame, from: Sample, is_real: bool) -> Edges {
        self.has_begun |= is_real;
        if !self.has_begun {
            return None;
        }
        if from > self.sounded_to + LONGEST {
            let edge = self.vad.push(pcm, from);
            return match (self.doubted.take(), edge) {
                (Some((_, onset)), None) => Some(Edge::Started { onset }),
                (Some(_), Some(_)) => None,
                (None, edge) => edge,
            };
        }
        // Only a search for an echo of which nothing is known asks for it.
        let searches = self.lag.is_none() && self.looks < LOOKS;
        let raw_dbov = if searches { rms_dbov(pcm) } else { f64::NEG_INFINITY };
        self.heard.write(from, pcm);
        let masked = self.take_out(pcm, from, is_real);
        let edge = self.vad.push_beside(pcm, from, masked);
        self.judge(edge, from + FRAME as Sample, raw_dbov)
    }

    /// Whether what was heard up to `end`, and the `edge` in it, is the other side's.
    fn judge(&mut self, edge: Edges, end: Sample, raw_dbov: f64) -> Edges {
        match edge {
            Some(Edge::Started { onset }) => {
                self.onset = onset;
                self.pause = self.first_pause();
                self.next_look = end + self.pause;
                if self.look(end) {
                    self.vad.take_back();
                    return None;
                }
                if self.lag.is_some() {
                    self.doubted = Some((end + DOUBT, onset));
                    return None;
                }
            }
            Some(Edge::Ended { .. }) if self.doubted.take().is_some() => return None,
            None if self.doubted.is_some_and(|(until, _)| end >= until) => {
                let (_, onset) = self.doubted.take()?;
                if self.look(end) {
                    self.vad.take_back();
                    return None;
                }
                return Some(Edge::Started { onset });
            }
            None if self.vad.speaking() && end >= self.next_look => {
                self.next_look = end + self.pause;
                self.pause = if self.told { AGAIN } else { (self.pause * 2).min(SELDOM) };
                if self.look(end) {
                    let spoken_to = self.alone_since(end);
                    self.vad.cut_back(spoken_to.max(self.onset + BLOCK as Sample));
                }
            }
            None if self.lag.is_none()
                && self.looks < LOOKS
                && end >= self.next_look
                && raw_dbov > LOOK_DBOV
                && !self.vad.speaking() =>
            {
                self.next_look = end + LOOK_EVERY;
                self.looks += 1;
                self.look(end);
            }
            _ => {}
        }
        edge
    }

    /// From one look to the next while speech is on.
    fn first_pause(&self) -> Sample {
        (AGAIN << (self.fruitless / FRUITLESS).min(4)).min(SELDOM)
    }

    /// Subtracts the known echo; true for each block that was nothing else.
    fn take_out(&mut self, pcm: &mut Frame, from: Sample, is_real: bool) -> [bool; 2] {
        let Some(lag) = self.lag else { return [false; 2] };
        let (mut sent, mut echo) = ([0.0; FRAME + TAPS - 1], [0.0; FRAME]);
        self.sent.read(first_sent(from, lag), &mut sent);
        self.path.echo(&sent, &mut echo);
        let heard: [f32; FRAME] = std::array::from_fn(|n| f32::from(pcm[n]));
        let left: [f32; FRAME] = std::array::from_fn(|n| heard[n] - echo[n]);
        if is_real && mean_power(&left) > mean_power(&heard) {
            // What would be taken out is not there: the other side is mute, or the path has changed.
            return [false; 2];
        }
        let mut masked = [false; 2];
        for (block, masked) in masked.iter_mut().enumerate() {
            let part = block * BLOCK..(block + 1) * BLOCK;
            let power = mean_power(&echo[part.clone()]);
            self.lingering = power.max(self.lingering * 0.5);
            let lost = !is_real && !self.vad.speaking() && self.lingering > LEAST_POWER;
            *masked = lost || mean_power(&left[part]) < MASKED * self.lingering;
        }
        pcm.iter_mut().zip(left).for_each(|(x, left)| *x = left.round() as i16);
        if is_real && mean_power(&echo) > LEAST_POWER {
            self.learn(&sent, &heard, mean_power(&left), mean_power(&echo));
        }
        masked
    }

    /// Follows the path, and keeps count of whether it is one.
    fn learn(&mut self, sent: &[f32; FRAME + TAPS - 1], heard: &[f32; FRAME], left: f32, echo: f32) {
        if left < (if self.told { LEARN_PROVEN } else { LEARN }) * mean_power(heard) {
            self.path.add(sent, heard);
            self.proof = (self.proof + 1).min(MOST_PROVEN);
            if self.proof % 4 == 0 || self.proof == MOST_PROVEN {
                self.path.solve();
            }
            self.powers[0] += f64::from(echo) * 1e6;
            self.powers[1] += f64::from(mean_power(&sent[TAPS - 1 - AHEAD as usize..][..FRAME])) * 1e6;
            if self.proof >= PROVEN && !self.told {
                (self.told, self.news) = (true, true);
            }
        } else if !self.told {
            self.proof -= 1;
            if self.proof < -2 {
                self.lag = None;
            }
        }
    }

    /// Whether what was heard up to `end` is an echo; then the path is taken over. Its room (60 KB with [`Path::solve`]) is on the
    /// stack: it is seldom called, and a call need not hold it.
    fn look(&mut self, end: Sample) -> bool {
        let found = search::best(&search::thin(&self.sent, end), &search::thin(&self.heard, end));
        let mut heard = [0.0; WINDOW];
        self.heard.read(end - WINDOW as Sample, &mut heard);
        let Some((lag, path)) = self.proven(end, &heard, &found) else {
            self.fruitless += 1;
            return false;
        };
        self.fruitless = 0;
        *self.path = path;
        self.lag = Some(lag);
        if !self.told {
            (self.proof, self.powers) = (0, [0.0; 2]);
        }
        true
    }

    /// The first of the candidates whose filter, fitted to one part of what was heard, foretells the other.
    fn proven(&self, end: Sample, heard: &[f32; WINDOW], found: &[Candidate; BEST]) -> Option<(Sample, Path)> {
        let mut sent = [0.0; WINDOW + TAPS - 1];
        if let Some(lag) = self.lag {
            self.sent.read(first_sent(end - WINDOW as Sample, lag), &mut sent);
            let mut trial = (*self.path).clone();
            trial.add(&sent, heard);
            trial.solve();
            let mut echo = [0.0; WINDOW];
            trial.echo(&sent, &mut echo);
            if left(heard, &echo) < STILL {
                return Some((lag, trial));
            }
        }
        let mut echo = [0.0; WINDOW - FITTED];
        for candidate in found.iter().filter(|candidate| candidate.likeness > 0.0) {
            let lag = candidate.lag as Sample;
            self.sent.read(first_sent(end - WINDOW as Sample, lag), &mut sent);
            let mut trial = Path::new();
            trial.add(&sent[..FITTED + TAPS - 1], &heard[..FITTED]);
            trial.solve();
            trial.echo(&sent[FITTED..], &mut echo);
            if left(&heard[FITTED..], &echo) < LEFT {
                trial.add(&sent[FITTED..], &heard[FITTED..]);
                trial.solve();
                return Some((lag, trial));
            }
        }
        None
    }

    /// Since when, up to `end`, nothing but echo was heard.
    fn alone_since(&mut self, end: Sample) -> Sample {
        let Some(lag) = self.lag else { return end };
        let (mut heard, mut echo) = ([0.0; BLOCK], [0.0; BLOCK]);
        let mut sent = [0.0; BLOCK + TAPS - 1];
        let mut since = end;
        while since > end - (HEARD - BLOCK) as Sample {
            let from = since - BLOCK as Sample;
            self.heard.read(from, &mut heard);
            self.sent.read(first_sent(from, lag), &mut sent);
            self.path.echo(&sent, &mut echo);
            let left = heard.iter().zip(&echo).map(|(heard, echo)| (heard - echo).powi(2)).sum::<f32>() / BLOCK as f32;
            let power = mean_power(&echo);
            if left / FULL > (MASKED * 2.0 * power).max(LEAST_POWER) {
                break;
            }
            since = from;
        }
        since
    }
}

impl Default for EchoGuard {
    fn default() -> EchoGuard {
        EchoGuard::new()
    }
}

/// The first sent sample that a filter at `lag` needs for what was heard from `from` on.
fn first_sent(from: Sample, lag: Sample) -> Sample {
    from - lag + AHEAD - (TAPS as Sample - 1)
}

/// The share of what was heard that is no echo.
fn left(heard: &[f32], echo: &[f32]) -> f32 {
    let left: f32 = heard.iter().zip(echo).map(|(heard, echo)| (heard - echo).powi(2)).sum();
    left / dot::<16>(heard, heard).max(1.0)
}

/// Power of full scale.
const FULL: f32 = 32_768.0 * 32_768.0;

/// Mean power, 1 being full scale.
fn mean_power(pcm: &[f32]) -> f32 {
    dot::<16>(pcm, pcm) / (pcm.len() as f32 * FULL)
}

#[cfg(test)]
mod tests;
