//! Voice activity of one received channel: the beginning and end of speech, exact to a 10 ms grid. The end of a turn is
//! not found here: the caller sets how much silence ends it.
//!
//! Two judges score each 20 ms: a small neural detector (`earshot`), and the level above the noise floor. In a quiet
//! channel they vote, and two votes of five are speech. 60 ms of speech are reported as an onset, 120 ms without as an
//! end. Both edges are moved back to the first and the last 10 ms whose level is that of speech. In noise, a second
//! network takes the scores of the judges (`foreground_net`), for every frame at once and again 120, 240 and 480 ms
//! later (`lookback`). There an end is 200 ms without anything that still counts as speech.
//!
//! The first 500 ms of a channel that was never quiet are speech also where the detector alone says so (0.75 in three
//! of five frames). A word that began before the channel is as steady as noise.
//!
//! A voice 15 dB above the noise is speech there whatever that network says, where the neural detector is sure of it.
//! The network knows each band by its distance from the recent mean. A person who speaks for a long time becomes that
//! mean. Of speech at length over white noise, 33 to 83 % was found without this, and 91 to 97 % with it. In babble
//! nothing changed. The noise is the lowest floor of the last seconds: in a room speech lifts the floor by 10 dB.
//!
//! Speech 24 dB above the noise begins and ends where something stands out of it. The network alone set edges 20 to 60
//! ms apart with and without an echo.
//!
//! Nothing is known of a channel before its first packet. Silence assumed there made 26 % of the first 3 s of noise (a
//! cafe at 17.5 dB) speech, now 3 %.
//!
//! A channel becomes quiet when a fiftieth of the last 3 s is, and stays so for 6 s without a quiet block. With a
//! tenth, speech without pauses made a quiet channel noisy 70 % of the time. Without the 6 s, 12 s of dense speech were
//! six pieces.

mod blocks;
mod detector;
mod first_word;
mod foreground_net;
mod lookback;
mod lowest_floor;
mod noise_floor;
pub(crate) mod percentiles;
mod steady;
pub(crate) mod tone;
mod tone_run;
mod without_tones;

use crate::dot::squares;
use crate::frame::{FRAME, Frame, PER_MS, Sample};
use blocks::{Block, Blocks, HISTORY};
use detector::Detector;
use foreground_net::ForegroundNet;
use lookback::{Lookback, MARKS};
use lowest_floor::LowestFloor;
use noise_floor::{LOWEST_DBOV, NoiseFloor, QUIET_DBOV};
use steady::Steady;
use tone_run::ToneRun;

/// Length of a block, the grid of edges (10 ms), in samples.
pub(crate) const BLOCK: usize = 160;

/// Number of samples that the detector takes at once (16 ms).
const WINDOW: usize = 256;

/// Number of windows that are kept while the detector sleeps, and given to it when it wakes: as many as it looks back.
const LOOK_BACK: usize = 2;

/// Number of frames with a closed level gate after which the detector sleeps (100 ms).
const AWAKE_FRAMES: u32 = 5;

/// Number of frames after a vote in which running speech of a quiet channel is not examined (120 ms), unless one of
/// them is quiet.
const REST_FRAMES: u32 = 6;

/// Level below which no block is speech, dBov.
const LEAST_DBOV: f32 = -50.0;

/// Least score with which the detector's vote counts.
const SCORE: f32 = 0.5;

/// Score in noise below which, and above 1 less which, scores are not distinguished.
const LEAST_SCORE: f32 = 0.01;

/// Distance below the noise floor, in dB, at which a level in noise shows that it had climbed into speech.
const UNDER_DB: f32 = 3.0;

/// Score, and level above the gate, of which one voting frame needs one before an onset is reported. Murmur rarely gets
/// there, near speech does.
const SURE: f32 = 0.8;
const SURE_DB: f32 = 6.0;

/// Time after the votes within which sound in a quiet channel still belongs to the speech (250 ms): the release of a
/// last consonant.
const TAIL: Sample = 250 * PER_MS;

/// Level of one or two sinusoids above everything else from which they are a tone, dB. In G.711 it is 34 to 40 dB; one
/// frame of speech in a hundred gets there.
const TONE_DB: f32 = 34.0;

/// Number of frames whose votes a tone cancels, its own included: speech that follows it at once is hardly late.
const TONE_FRAMES: u32 = 5;

/// Number of places that are remembered at which speech began under a tone: an onset is reported at most 1 s later.
const DEPARTURES: usize = 8;

/// Number of frames that vote (100 ms), and of votes that are needed.
const VOTERS: u32 = 5;
const VOTES: u32 = 2;

/// Length of speech that is needed before an onset is reported (60 ms).
const CONFIRM: Sample = 60 * PER_MS;

/// Length of silence that is needed before an end is reported (120 ms).
const RELEASE: Sample = 120 * PER_MS;

/// Length of silence in noise before an end is reported (200 ms): later judgements would often find speech that never
/// ended.
const RELEASE_IN_NOISE: Sample = 200 * PER_MS;

/// Number of blocks after which a channel that never was quiet counts as one with noise (500 ms). The onset of a first
/// word is withheld until then: a gap in it or behind it shows whether its weak first sounds are noise.
const UNKNOWN: usize = 50;

/// Largest number of blocks from an onset to the first vote (300 ms): weak first sounds.
const LEAD: usize = 30;

/// Largest number of quiet blocks within a first sound: before a vowel a fricative may fall silent for 80 ms.
const LEAD_GAP: usize = 8;

/// Number of frames without a quiet block (400 ms), and of loud ones among them without a vote, that show noise in a
/// quiet channel. Of clean speech as long without a quiet block the detector seldom doubts a tenth.
const STEP: u32 = 20;
const STEP_DOUBTS: u32 = 12;

/// Number of first blocks whose quiet tells nothing of the channel (40 ms). The first frame may begin before the first
/// packet does, and a codec and a filter begin with silence.
const FIRST: usize = 4;

/// Distance below the highest block within which blocks are speech, dB, in a channel that was received for less than
/// [`UNKNOWN`] and never was quiet.
const FIRST_WORD_DB: f32 = 15.0;

/// Score, and number of voting frames that reach it, from which a first word is speech. The network cannot know yet
/// what lies under the channel: a word that began before the channel is as steady as noise. The detector is never so
/// sure of noise or babble.
const FIRST_WORD_SCORE: f32 = 0.75;
const FIRST_WORD_VOTES: u32 = 3;

/// Number of blocks after which the network has learnt the channel (3 s).
const FIRST_WORD_BLOCKS: usize = 300;

/// Edge of speech, as it is reported.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Speech has begun, at an onset that lies in the past.
    Started {
        /// First sample of the first 10 ms that stand above the noise floor.
        onset: Sample,
    },
    /// Speech has ended, at an end that lies in the past.
    Ended {
        /// One past the last sample of the last 10 ms that stand above the noise floor.
        end: Sample,
    },
}

/// Edge that a frame brought; at most one.
pub type Edges = Option<Edge>;

/// Detector of speech in one channel. Allocates nothing after [`VoiceActivity::new`].
pub struct VoiceActivity {
    detector: Box<Detector>,
    noise_floor: NoiseFloor,
    /// Network that decides, with `lookback`, while noise lies under the channel.
    foreground_net: Box<ForegroundNet>,
    lookback: Lookback,
    /// True once they have taken a frame.
    noisy: bool,
    lowest_floor: LowestFloor,
    /// Samples that the detector has not seen yet, windows aligned to the channel's beginning.
    pending: [i16; WINDOW * (LOOK_BACK + 3)],
    held: usize,
    /// Number of frames until the detector sleeps.
    awake: u32,
    /// Number of frames for which it need not examine running speech.
    rest: u32,
    never_sleeps: bool,
    tones: ToneRun,
    /// First samples of other sound under which a tone went on, the latest first.
    under_tone: [Sample; DEPARTURES],
    /// Number of frames for which a tone cancels the vote.
    tone_frames: u32,
    /// Votes of the last frames, the newest in bit 0.
    votes: u32,
    /// Votes of the last frames that are sure, the newest in bit 0.
    sure: u32,
    /// Frames of the last [`STEP`] that were loud without a vote of the detector, the newest in bit 0.
    doubts: u32,
    steady: Steady,
    /// First sample of the last frame that the votes called speech.
    voted: Sample,
    /// Level of the highest block of the last frame above the gate, dB.
    above_db: f32,
    /// Level of that block, dBov; `None` when nothing but own echo was left.
    louder_dbov: Option<f32>,
    blocks: Blocks,
    /// Number of blocks so far that were no tone.
    measured: usize,
    next: Option<Sample>,
    level_dbov: f32,
    /// End of the last speech block so far, while speech runs.
    speech: Option<Sample>,
    /// Onset of the running or last speech, in a quiet channel.
    onset: Sample,
    /// True for speech that was there before the network could know of it.
    first_word: bool,
    /// True once the channel was quiet, or was received for longer than [`UNKNOWN`].
    known: bool,
    /// True once the channel was quiet.
    was_quiet: bool,
    /// Votes of the last frames of a channel that never was quiet, the newest in bit 0.
    first_votes: u32,
    /// True when some sound of a channel that never was quiet was voted for, and not reported.
    stirred: bool,
    /// Onset of a first word that is not reported yet, and an end that is to be reported behind it.
    withheld: Option<Sample>,
    due: Edges,
    /// Earliest position of an onset: the end of the speech before.
    earliest: Sample,
}

impl VoiceActivity {
    /// Returns a detector for a channel without a past.
    pub fn new() -> VoiceActivity {
        VoiceActivity {
            detector: Box::new(Detector::new()),
            noise_floor: NoiseFloor::new(),
            foreground_net: Box::new(ForegroundNet::new()),
            lookback: Lookback::new(&MARKS),
            noisy: false,
            lowest_floor: LowestFloor::new(),
            pending: [0; WINDOW * (LOOK_BACK + 3)],
            held: 0,
            awake: 0,
            rest: 0,
            never_sleeps: false,
            tones: ToneRun::new(),
            under_tone: [Sample::MIN / 2; DEPARTURES],
            tone_frames: 0,
            votes: 0,
            sure: 0,
            doubts: 0,
            steady: Steady::new(),
            voted: 0,
            above_db: 0.0,
            louder_dbov: None,
            blocks: Blocks::new(),
            measured: 0,
            next: None,
            level_dbov: LOWEST_DBOV,
            speech: None,
            onset: Sample::MIN,
            first_word: false,
            known: false,
            was_quiet: false,
            first_votes: 0,
            stirred: false,
            withheld: None,
            due: None,
            earliest: Sample::MIN,
        }
    }

    /// Takes the 20 ms that begin at `from`. Positions may jump: missing audio counts as silence, and a jump back as no
    /// time at all.
    pub fn push(&mut self, pcm: &Frame, from: Sample) -> Edges {
        self.push_beside(pcm, from, [false; 2])
    }

    /// Takes a frame as [`VoiceActivity::push`] does, after this side's own echo was removed from `pcm`. A block (10
    /// ms) that is `masked` held nothing else: it is silence, and cannot raise the noise floor.
    pub fn push_beside(&mut self, pcm: &Frame, from: Sample, masked: [bool; 2]) -> Edges {
        let missing = self.next.map_or(0, |next| from.saturating_sub(next));
        if missing < 0 {
            self.speech = self.speech.map(|end| end.min(from));
            (self.earliest, self.voted) = (self.earliest.min(from), self.voted.min(from));
            self.lookback.forget();
        }
        self.next = Some(from + FRAME as Sample);
        let ended = if missing >= RELEASE { self.silence() } else { None };
        let mut without_tone = *pcm;
        let tone = self.take_out_tone(&mut without_tone, from);
        let pcm = &without_tone;
        self.measure(pcm, from, masked, tone);
        let (score, is_tone) = self.judge(pcm);
        self.doubt(pcm, score, from);
        let quiet = self.noise_floor.quiet() && self.noise_floor.has_levels();
        let found_quiet = quiet && !self.was_quiet;
        self.was_quiet |= quiet;
        if found_quiet && self.measured <= HISTORY {
            self.place_first_word(from);
        }
        if !self.known && quiet {
            // The speech so far stood in no noise.
            self.sure = self.votes;
        }
        self.known |= quiet || self.measured > UNKNOWN;
        self.first_word &= !self.noise_floor.quiet() && self.measured <= FIRST_WORD_BLOCKS;
        let edge = if self.noise_floor.quiet() {
            if std::mem::take(&mut self.noisy) {
                self.foreground_net.forget();
                self.lookback.forget();
                self.lowest_floor = LowestFloor::new();
            }
            self.hear_in_quiet(score, is_tone, from)
        } else {
            self.noisy = true;
            self.hear_in_noise(score, is_tone, from)
        };
        // The silence before this frame ended the speech; its own speech cannot have been confirmed yet.
        let edge = if ended.is_some() { ended } else { edge };
        self.withhold(edge, tone)
    }

    /// Decides a frame of a quiet channel by the votes.
    fn hear_in_quiet(&mut self, score: f32, is_tone: bool, from: Sample) -> Edges {
        let vote = self.above_db > 0.0 && score > SCORE && !is_tone;
        if !self.rests() {
            self.cast(vote, vote && (score > SURE || self.above_db > SURE_DB));
        }
        let active = self.votes.count_ones() >= VOTES;
        self.voted = if active { from } else { self.voted };
        match self.speech {
            None => (active && self.sure > 0).then(|| self.start(from)).flatten(),
            Some(_) => self.go_on(active, vote, from),
        }
    }

    fn cast(&mut self, vote: bool, sure: bool) {
        let cast = |votes: u32, yes| (votes << 1 | u32::from(yes)) & ((1 << VOTERS) - 1);
        (self.votes, self.sure) = (cast(self.votes, vote), cast(self.sure, sure));
    }

    /// Decides a frame in noise by the network, at once and in later judgements.
    fn hear_in_noise(&mut self, score: f32, is_tone: bool, from: Sample) -> Edges {
        let score = score.clamp(LEAST_SCORE, 1.0 - LEAST_SCORE);
        let above_db = self.louder_dbov.map_or(f32::MIN, |level_dbov| level_dbov - self.noise_floor.floor_dbov());
        self.lowest_floor.push(self.noise_floor.floor_dbov());
        let score_odds = (score / (1.0 - score)).ln();
        let odds = self.foreground_net.push(&self.detector.latest, score_odds, above_db);
        let blocks = [0, 1].map(|back| self.blocks.ago(back));
        let loud_to = blocks.iter().find(|block| block.loud).map(|block| block.from + BLOCK as Sample);
        let sure = self.is_surely_speech(score_odds, above_db, is_tone);
        self.lookback.push(from, loud_to, above_db, &odds, sure);
        if self.known {
            self.cast(odds[0] > 0.0, false);
        } else {
            self.cast(score > SCORE && !is_tone, score > FIRST_WORD_SCORE && !is_tone);
        }
        let voted = score > SCORE && !is_tone && self.level_dbov > LEAST_DBOV;
        self.first_votes =
            if self.was_quiet { 0 } else { (self.first_votes << 1 | u32::from(voted)) & ((1 << VOTERS) - 1) };
        self.stirred |= self.first_votes.count_ones() >= VOTES;
        let now = from + FRAME as Sample;
        let Some(end) = self.speech else { return self.begin_in_noise(from) };
        // Frames from before the noise are not remembered: what was said in them stands.
        let end = self.lookback.last().unwrap_or(end);
        let goes_on = self.first_word && score > SCORE && self.level_dbov > self.top_dbov() - FIRST_WORD_DB;
        let end = if goes_on { now } else { end };
        self.speech = Some(end);
        self.voted = if end == now { from } else { self.voted };
        if now - end >= RELEASE_IN_NOISE && self.withheld.is_none() { self.silence() } else { None }
    }

    /// Moves all positions `by` samples back.
    pub fn move_back(&mut self, by: Sample) {
        self.blocks.move_back(by);
        self.next = self.next.map(|next| next - by);
        self.speech = self.speech.map(|end| end - by);
        self.voted -= by;
        self.tones.move_back(by);
        self.under_tone.iter_mut().for_each(|from| *from -= by);
        self.withheld = self.withheld.map(|onset| onset - by);
        if let Some(Edge::Ended { end }) = &mut self.due {
            *end -= by;
        }
        self.onset = self.onset.saturating_sub(by);
        self.lookback.move_back(by);
        self.earliest = self.earliest.saturating_sub(by);
    }

    /// Ends the channel: running speech ends at its last block.
    pub fn finish(&mut self) -> Edges {
        if self.withheld.take().is_some() {
            self.silence();
            return None;
        }
        self.due.take().or_else(|| self.silence())
    }

    /// Takes back the onset that was just reported: it was no speech.
    pub fn take_back(&mut self) {
        self.silence();
    }

    /// Ends running speech at `end` at the latest.
    pub fn cut_back(&mut self, end: Sample) {
        self.speech = self.speech.map(|spoken| spoken.min(end));
        self.voted = self.voted.min(end - TAIL);
        (self.votes, self.sure, self.rest) = (0, 0, 0);
        self.first_word = false;
        self.lookback.cut_back(end);
    }

    /// True between a reported onset and a reported end.
    pub fn speaking(&self) -> bool {
        self.speech.is_some() && self.withheld.is_none()
    }

    /// True while noise lies under the channel: edges may be taken back up to 480 ms later.
    pub fn in_noise(&self) -> bool {
        self.noisy
    }

    /// True when no speech runs, but some was voted for in the last 100 ms: an onset may be reported soon.
    pub fn is_stirring(&self) -> bool {
        self.withheld.is_some() || (self.speech.is_none() && self.votes != 0)
    }

    /// Returns one past the last block of the running speech, as far as received.
    pub fn spoken_to(&self) -> Option<Sample> {
        self.speech.filter(|_| self.withheld.is_none())
    }

    /// Returns the noise floor, dBov: 10th percentile of the last 3 s, the 2nd in a quiet channel; -96 before the first
    /// frame.
    pub fn floor_dbov(&self) -> f32 {
        self.noise_floor.floor_dbov()
    }

    /// Returns the level of the last frame, dBov; -96 is digital silence.
    pub fn level_dbov(&self) -> f32 {
        self.level_dbov
    }

    /// Measures the levels of the frame's two blocks against the noise floor; the first `tone` samples tell nothing of
    /// it.
    fn measure(&mut self, pcm: &Frame, from: Sample, masked: [bool; 2], tone: usize) {
        // The rest of a block in which a tone ends is as loud as it is.
        let rest = |n: usize| (tone.saturating_sub(n * BLOCK) % BLOCK).min(BLOCK - 1);
        let powers = [power(&pcm[rest(0)..BLOCK]), power(&pcm[BLOCK + rest(1)..])];
        self.level_dbov = dbov((powers[0] + powers[1]) / 2.0);
        let levels = powers.map(dbov);
        for (n, (level, masked)) in levels.into_iter().zip(masked).enumerate() {
            if n * BLOCK < tone || (self.measured < FIRST && level <= QUIET_DBOV) {
                continue;
            }
            self.noise_floor.push(if masked { level.min(self.noise_floor.floor_dbov()) } else { level });
        }
        self.noise_floor.settle();
        let gate = LEAST_DBOV.max(self.noise_floor.floor_dbov() + self.noise_floor.margin_db());
        let left: [Option<f32>; 2] = std::array::from_fn(|n| (!masked[n]).then_some(levels[n]));
        self.blocks.push(from, [0, 1].map(|n| (left[n].is_some_and(|level| level > gate), levels[n])));
        self.measured += (0..2).filter(|n| n * BLOCK >= tone).count();
        self.louder_dbov = left.into_iter().flatten().reduce(f32::max);
        self.above_db = self.louder_dbov.map_or(f32::MIN, |level| level - gate);
    }

    /// Returns the score of a frame as speech, 0 to 1, and whether it is a tone or follows one at once. In a quiet
    /// channel the detector runs only while the gate is open or was open a short time ago (else 0). In noise its memory
    /// of the noise counts, so there it never sleeps.
    fn judge(&mut self, pcm: &Frame) -> (f32, bool) {
        let open = self.above_db > 0.0;
        self.pending[self.held..self.held + FRAME].copy_from_slice(pcm);
        self.held += FRAME;
        self.awake = if open || !self.noise_floor.quiet() || self.never_sleeps {
            AWAKE_FRAMES
        } else {
            self.awake.saturating_sub(1)
        };
        let rests = self.rests();
        let windows = self.held / WINDOW;
        let mut score = 0f32;
        let seen = if self.awake > 0 && !rests {
            for window in self.pending[..windows * WINDOW].as_chunks().0 {
                score = score.max(self.detector.score(window));
            }
            windows
        } else {
            windows.saturating_sub(LOOK_BACK)
        };
        self.pending.copy_within(seen * WINDOW..self.held, 0);
        self.held -= seen * WINDOW;
        if open && score > SCORE {
            // After a tone its own end, and the beginning of the next one, are no longer pure: they do not vote either.
            let tone = tone::is_tone(pcm, TONE_DB);
            self.tone_frames = if tone { TONE_FRAMES } else { self.tone_frames.saturating_sub(1) };
        }
        (score, self.tone_frames > 0)
    }

    /// Ends a quiet channel when noise has come into it. Speech that the noise was taken for ends where it began.
    fn doubt(&mut self, pcm: &Frame, score: f32, from: Sample) {
        let doubted = self.above_db > 0.0 && score <= SCORE && !self.rests();
        self.doubts = (self.doubts << 1 | u32::from(doubted)) & ((1 << STEP) - 1);
        if !self.noise_floor.quiet() {
            return;
        }
        let blocks = STEP as usize * FRAME / BLOCK;
        let doubted = self.doubts.count_ones() >= STEP_DOUBTS && self.noise_floor.unquiet() >= blocks;
        if self.steady.push(pcm, &self.noise_floor) || doubted {
            let began = from + FRAME as Sample - (self.noise_floor.unquiet() * BLOCK) as Sample;
            if self.onset >= began {
                self.speech = self.speech.map(|end| end.min(self.onset + FRAME as Sample));
            }
            self.noise_floor.forget_before(blocks);
            self.noise_floor.settle();
        }
    }

    /// True when speech goes on without the detector: it was there a moment ago, and nothing was quiet since.
    fn rests(&self) -> bool {
        self.rest > 0 && self.above_db > 0.0 && self.noise_floor.quiet() && !self.never_sleeps
    }

    /// Returns the beginning and end of the loud audio up to the frame that begins at `from`.
    fn loud_to_now(&self, from: Sample) -> Option<(Sample, Sample)> {
        let first_vote = 2 * (VOTERS.min(32 - self.votes.leading_zeros()) as usize);
        // A channel that began with speech has shown no noise floor yet that the speech could stand above.
        let first = self.measured < UNKNOWN;
        let top = if first { self.top_dbov() } else { f32::MAX };
        let block = |back: usize| {
            let block = self.blocks.ago(back);
            Block { loud: block.loud || block.level_dbov > LEAST_DBOV.max(top - FIRST_WORD_DB), ..block }
        };
        let (mut onset, mut end, mut quiet) = (None, None, 0);
        let mut later = from + FRAME as Sample;
        for back in 0..self.blocks.len().min(if first { UNKNOWN } else { first_vote + LEAD }) {
            let block = block(back);
            let joined = (block.from + BLOCK as Sample - later).abs() <= BLOCK as Sample;
            if block.from < self.earliest || !joined || (back >= first_vote && quiet > LEAD_GAP) {
                break;
            }
            later = block.from;
            quiet = if block.loud { 0 } else { quiet + 1 };
            if block.loud {
                onset = Some(block.from);
                end = end.or(Some(block.from + BLOCK as Sample));
            }
        }
        Some((onset?, end?))
    }

    /// Moves the end of running speech forward, or reports it.
    fn go_on(&mut self, active: bool, vote: bool, from: Sample) -> Edges {
        self.rest = if vote && active { REST_FRAMES } else { self.rest.saturating_sub(1) };
        if active || from - self.voted < TAIL {
            self.extend();
        }
        if from + FRAME as Sample - self.speech? >= RELEASE { self.silence() } else { None }
    }

    /// Moves the end of the speech to the last loud block of the last frame.
    fn extend(&mut self) {
        for back in [1, 0] {
            let block = self.blocks.ago(back);
            if block.loud {
                self.speech = Some(block.from + BLOCK as Sample);
            }
        }
    }

    /// Ends running speech, and forgets votes and blocks.
    fn silence(&mut self) -> Edges {
        (self.votes, self.sure, self.rest) = (0, 0, 0);
        self.first_word = false;
        let end = self.speech.take()?;
        self.lookback.close(end);
        self.earliest = end;
        Some(Edge::Ended { end })
    }
}

impl Default for VoiceActivity {
    fn default() -> VoiceActivity {
        VoiceActivity::new()
    }
}

/// Returns the mean power of a block, 1 being full scale.
fn power(pcm: &[i16]) -> f32 {
    squares(pcm) as f32 / (pcm.len() as f32 * 32_768.0 * 32_768.0)
}

fn dbov(power: f32) -> f32 {
    if power > 0.0 { (10.0 * power.log10()).max(LOWEST_DBOV) } else { LOWEST_DBOV }
}

#[cfg(test)]
pub(crate) mod tests;
