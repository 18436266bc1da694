//! Echo: audio that this side sent and receives again. An [`EchoGuard`] finds speech in a received channel as
//! [`crate::vad::VoiceActivity`] does, but not in this side's own words.
//!
//! Nothing is searched until received sound may be an echo: speech is found within the reach of own sound. Then the
//! sent audio is correlated with the received at 4 kHz, and the likeliest lags are tried at full rate. A filter is
//! fitted to one part of the stretch and has to predict the other. From then on that filter removes the echo before
//! speech is looked for, and follows the path.
//!
//! An echo that many searches did not find is searched for more seldom. A search cost 65 us, a fifth of a call while
//! both sides speak.

mod path;
mod ring;
mod search;

use crate::dot::dot;
use crate::frame::{FRAME, Frame, PER_MS, Sample};
use crate::level::rms_dbov;
use crate::vad::{BLOCK, Edge, Edges, VoiceActivity};
use path::{EchoPath, TAPS};
use ring::Ring;
use search::{BEST, Candidate, LAGS, STEP};

/// Longest delay of an echo that is searched for (650 ms).
const LONGEST: Sample = (LAGS * STEP) as Sample;

/// Length of the sent audio that is kept (1120 ms): the longest echo, the depth of the jitter buffer (200 ms), and the
/// received audio that is kept.
const SENT: usize = 17_920;

/// Length of the received audio that is kept (256 ms).
const HEARD: usize = 4096;

/// Samples that a search examines (80 ms), and how many of them the filter is fitted to (50 ms).
const WINDOW: usize = search::WINDOW * STEP;
const FITTED: usize = 800;

/// Samples from the filter's first tap to the lag: 2 ms.
const AHEAD: Sample = TAPS as Sample / 2;

/// Level of own sound, in dBov, below which it counts as having no echo.
const SOUND_DBOV: f64 = -55.0;

/// Largest remainder of the stretch that a filter predicts, as a share of its power (-8 dB).
const LEFT: f32 = 0.16;

/// Largest remainder of the received audio at which a known path, fitted anew, counts as unchanged (-10 dB).
const STILL: f32 = 0.1;

/// Share of the echo's power below which the remainder of a block is no speech (-8 dB).
const MASKED: f32 = 0.16;

/// Largest remainder of a frame that is echo alone, from which the filter learns: -5 dB while the path is new, -10 dB
/// once it is proven.
const LEARN: f32 = 0.3;
const LEARN_PROVEN: f32 = 0.1;

/// Power below which an echo is ignored; 1 is full scale (-75 dBov).
const LEAST_POWER: f32 = 3.2e-8;

/// Number of predicted frames that prove a path (160 ms), and the largest count.
const PROVEN: i32 = 8;
const MOST_PROVEN: i32 = 50;

/// Time after which speech in reach of own sound is examined again (100 ms). It doubles each time, up to 1.6 s.
const AGAIN: Sample = 100 * PER_MS;
const SELDOM: Sample = 1600 * PER_MS;

/// Number of searches without a result after which the first of these pauses doubles: where no echo was, it is hardly
/// worth one.
const FRUITLESS: u32 = 4;

/// Additional speech that is needed before it is believed while an echo is known (40 ms).
const DOUBT: Sample = 40 * PER_MS;

/// Number of searches in a call for an echo too weak to disturb, made without speech, 500 ms apart.
const LOOKS: u32 = 8;
const LOOK_EVERY: Sample = 500 * PER_MS;

/// Level of sound that is worth a search, dBov.
const LOOK_DBOV: f64 = -75.0;

/// Measured figures of an echo path.
#[derive(Copy, Clone, Debug, PartialEq, Default)]
pub struct EchoFigures {
    /// Time from sending to receiving, in milliseconds.
    pub delay_ms: f64,
    /// Echo return loss: level of the sent audio over that of its echo, in dB.
    pub erl_db: f64,
}

/// Finds the other side's speech in a channel that may carry this side's own. Allocates nothing after
/// [`EchoGuard::new`].
pub struct EchoGuard {
    vad: VoiceActivity,
    sent: Ring<SENT>,
    heard: Ring<HEARD>,
    /// One past the last sample of own sound.
    sounded_to: Sample,
    path: Box<EchoPath>,
    /// Delay of the echo in samples; `None` while no path is known.
    lag: Option<Sample>,
    /// Number of frames that the path predicted, less those that it did not.
    proof: i32,
    is_reported: bool,
    news: bool,
    /// Sums of squares of the predicted echo and of the sent audio that it came from.
    powers: [f64; 2],
    /// Power of the echo in the last blocks, which decays.
    lingering: f32,
    /// Position up to which speech may be the rest of an echo, and the onset of that speech.
    doubted: Option<(Sample, Sample)>,
    /// Onset of the last speech.
    onset: Sample,
    next_look: Sample,
    pause: Sample,
    looks: u32,
    /// True once anything was received.
    has_begun: bool,
    /// Number of searches since the last result.
    fruitless: u32,
}

impl EchoGuard {
    /// Returns a guard for a channel without a past.
    pub fn new() -> EchoGuard {
        EchoGuard {
            vad: VoiceActivity::new(),
            sent: Ring::new(),
            heard: Ring::new(),
            sounded_to: Sample::MIN / 2,
            path: Box::new(EchoPath::new()),
            lag: None,
            proof: 0,
            is_reported: false,
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

    /// Returns the voice activity after the removal of echo: running speech, noise floor and level.
    pub fn vad(&self) -> &VoiceActivity {
        &self.vad
    }

    /// Moves all positions `by` samples back; a path that was found is searched for again.
    pub fn move_back(&mut self, by: Sample) {
        self.vad.move_back(by);
        self.onset -= by;
        self.doubted = self.doubted.map(|(until, onset)| (until - by, onset - by));
    }

    /// Ends the channel: running speech ends at its last block.
    pub fn finish(&mut self) -> Edges {
        let edge = self.vad.finish();
        if self.doubted.take().is_some() { None } else { edge }
    }

    /// Figures of the path, once it is proven.
    pub fn figures(&self) -> Option<EchoFigures> {
        let lag = self.lag.filter(|_| self.is_reported)?;
        let delay_ms = (lag - AHEAD + self.path.peak() as Sample) as f64 / PER_MS as f64;
        let [echo, sent] = self.powers;
        Some(EchoFigures { delay_ms, erl_db: 10.0 * (sent.max(1.0) / echo.max(1.0)).log10() })
    }

    /// Takes the figures of a path that was proven since the last call.
    pub fn news(&mut self) -> Option<EchoFigures> {
        if std::mem::take(&mut self.news) { self.figures() } else { None }
    }

    /// Takes the 20 ms from `at` on that this side sends.
    pub fn take_sent(&mut self, at: Sample, pcm: &Frame) {
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

    /// Takes the 20 ms from `from` on, and removes known echo from `pcm`. `is_real` is false for audio that was not
    /// received. Before the first received frame such audio is ignored: it is no silence.
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

    /// Decides whether the audio up to `end`, and the `edge` in it, belongs to the other side.
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
                self.pause = if self.is_reported { AGAIN } else { (self.pause * 2).min(SELDOM) };
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

    /// Returns the pause from one search to the next while speech runs.
    fn first_pause(&self) -> Sample {
        (AGAIN << (self.fruitless / FRUITLESS).min(4)).min(SELDOM)
    }

    /// Subtracts the known echo; true for each block that held nothing else.
    fn take_out(&mut self, pcm: &mut Frame, from: Sample, is_real: bool) -> [bool; 2] {
        let Some(lag) = self.lag else { return [false; 2] };
        let (mut sent, mut echo) = ([0.0; FRAME + TAPS - 1], [0.0; FRAME]);
        self.sent.copy_to(first_sent(from, lag), &mut sent);
        self.path.echo(&sent, &mut echo);
        let heard: [f32; FRAME] = std::array::from_fn(|n| f32::from(pcm[n]));
        let left: [f32; FRAME] = std::array::from_fn(|n| heard[n] - echo[n]);
        if is_real && mean_power(&left) > mean_power(&heard) {
            // The predicted echo is not there: the other side is mute, or the path has changed.
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

    /// Adapts the path, and counts whether it still predicts the echo.
    fn learn(&mut self, sent: &[f32; FRAME + TAPS - 1], heard: &[f32; FRAME], left: f32, echo: f32) {
        if left < (if self.is_reported { LEARN_PROVEN } else { LEARN }) * mean_power(heard) {
            self.path.add(sent, heard);
            self.proof = (self.proof + 1).min(MOST_PROVEN);
            if self.proof % 4 == 0 || self.proof == MOST_PROVEN {
                self.path.solve();
            }
            self.powers[0] += f64::from(echo) * 1e6;
            self.powers[1] += f64::from(mean_power(&sent[TAPS - 1 - AHEAD as usize..][..FRAME])) * 1e6;
            if self.proof >= PROVEN && !self.is_reported {
                (self.is_reported, self.news) = (true, true);
            }
        } else if !self.is_reported {
            self.proof -= 1;
            if self.proof < -2 {
                self.lag = None;
            }
        }
    }

    /// Searches for an echo in the audio up to `end`; true when one is found, and its path is used from then on. Its
    /// memory (60 KB with [`EchoPath::solve`]) is on the stack: it is seldom called, and a call need not hold it.
    fn look(&mut self, end: Sample) -> bool {
        let found = search::best(&search::thin(&self.sent, end), &search::thin(&self.heard, end));
        let mut heard = [0.0; WINDOW];
        self.heard.copy_to(end - WINDOW as Sample, &mut heard);
        let Some((lag, path)) = self.proven(end, &heard, &found) else {
            self.fruitless += 1;
            return false;
        };
        self.fruitless = 0;
        *self.path = path;
        self.lag = Some(lag);
        if !self.is_reported {
            (self.proof, self.powers) = (0, [0.0; 2]);
        }
        true
    }

    /// Returns the first candidate whose filter, fitted to one part of the received audio, predicts the other.
    fn proven(&self, end: Sample, heard: &[f32; WINDOW], found: &[Candidate; BEST]) -> Option<(Sample, EchoPath)> {
        let mut sent = [0.0; WINDOW + TAPS - 1];
        if let Some(lag) = self.lag {
            self.sent.copy_to(first_sent(end - WINDOW as Sample, lag), &mut sent);
            let mut trial = (*self.path).clone();
            trial.add(&sent, heard);
            trial.solve();
            let mut echo = [0.0; WINDOW];
            trial.echo(&sent, &mut echo);
            if residual_share(heard, &echo) < STILL {
                return Some((lag, trial));
            }
        }
        let mut echo = [0.0; WINDOW - FITTED];
        for candidate in found.iter().filter(|candidate| candidate.likeness > 0.0) {
            let lag = candidate.lag as Sample;
            self.sent.copy_to(first_sent(end - WINDOW as Sample, lag), &mut sent);
            let mut trial = EchoPath::new();
            trial.add(&sent[..FITTED + TAPS - 1], &heard[..FITTED]);
            trial.solve();
            trial.echo(&sent[FITTED..], &mut echo);
            if residual_share(&heard[FITTED..], &echo) < LEFT {
                trial.add(&sent[FITTED..], &heard[FITTED..]);
                trial.solve();
                return Some((lag, trial));
            }
        }
        None
    }

    /// Returns the sample from which up to `end` nothing but echo was heard.
    fn alone_since(&mut self, end: Sample) -> Sample {
        let Some(lag) = self.lag else { return end };
        let (mut heard, mut echo) = ([0.0; BLOCK], [0.0; BLOCK]);
        let mut sent = [0.0; BLOCK + TAPS - 1];
        let mut since = end;
        while since > end - (HEARD - BLOCK) as Sample {
            let from = since - BLOCK as Sample;
            self.heard.copy_to(from, &mut heard);
            self.sent.copy_to(first_sent(from, lag), &mut sent);
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

/// Returns the first sent sample that a filter at `lag` needs for the audio received from `from` on.
fn first_sent(from: Sample, lag: Sample) -> Sample {
    from - lag + AHEAD - (TAPS as Sample - 1)
}

/// Returns the share of the received power that is no echo.
fn residual_share(heard: &[f32], echo: &[f32]) -> f32 {
    let left: f32 = heard.iter().zip(echo).map(|(heard, echo)| (heard - echo).powi(2)).sum();
    left / dot::<16>(heard, heard).max(1.0)
}

/// Power of full scale.
const FULL: f32 = 32_768.0 * 32_768.0;

/// Returns the mean power, 1 being full scale.
fn mean_power(pcm: &[f32]) -> f32 {
    dot::<16>(pcm, pcm) / (pcm.len() as f32 * FULL)
}

#[cfg(test)]
mod tests;
