//! The scripted other side: it sends sounds and digits at given samples, and decodes the audio that it receives.

use std::sync::Arc;

use crate::call::{MediaChannel, Word};
use crate::codec::opus::Opus;
use crate::dtmf::{Detected, Detector, Pace, Tones};
use crate::frame::{FRAME, Frame, PER_MS, SILENCE, Sample};
use crate::leg::{Leg, LegParams, Scratch};
use crate::rtp::packet::HEADER;
use crate::seed::Seed;
use crate::time::Time;

/// Length of a digit sent as an event, in milliseconds.
const DIGIT_MS: u32 = 100;

/// Speech or sound of the other side.
#[derive(Clone, Debug)]
pub struct Spoken {
    /// Position of the first sample.
    pub from: Sample,
    /// Samples at 16 kHz.
    pub pcm: Arc<[i16]>,
    /// Words of the sound; empty for one without words.
    pub text: String,
}

impl Spoken {
    /// One past the last sample.
    pub fn to(&self) -> Sample {
        self.from + self.pcm.len() as Sample
    }

    /// Returns its words, spread evenly over its characters.
    pub fn words(&self) -> Vec<Word> {
        let total = self.text.chars().count().max(1) as Sample;
        let at = |chars: usize| self.from + self.pcm.len() as Sample * chars as Sample / total;
        let mut chars = 0;
        let mut words = Vec::new();
        for word in self.text.split(' ') {
            let len = word.chars().count();
            words.push(Word { text: word.into(), from: at(chars), to: at(chars + len), confidence: Some(1.0) });
            chars += len + 1;
        }
        words.retain(|word| !word.text.is_empty());
        words
    }
}

/// Echo of a side that sends back the audio that it receives.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Echo {
    /// Delay from receiving to sending. Its jitter buffer is as deep as 80 ms: a shorter delay has no effect.
    pub delay_ms: u32,
    /// Echo return loss in dB.
    pub erl_db: f64,
}

/// Returns samples as bytes, the lower one first.
pub(super) fn bytes(pcm: &[i16]) -> Vec<u8> {
    pcm.iter().flat_map(|sample| sample.to_le_bytes()).collect()
}

/// Returns the samples of [`bytes`].
pub(super) fn samples(bytes: &[u8]) -> Vec<i16> {
    bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect()
}

/// The scripted other side, with one leg.
pub struct Far {
    leg: Leg,
    /// Sounds to send, on its own sample clock (0 at connect).
    pub spoken: Vec<Spoken>,
    /// Digits to send: sample, digit, and true for tones in the audio.
    pub digits: Vec<(Sample, char, bool)>,
    /// True while it sends packets.
    pub sending: bool,
    /// Payload type and payload length of an odd packet that it sends in place of its next one.
    pub odd: Option<(u8, usize)>,
    /// Digits of the call that it received, with their samples.
    pub heard: Vec<(Sample, char)>,
    /// Echo of the received audio; `None` for none.
    pub echo: Option<Echo>,
    /// Audio that it received, from position 0 of its own clock.
    ears: Vec<i16>,
    tones: Option<Tones>,
    detector: Detector,
    at: Sample,
}

impl Far {
    /// Returns a silent other side whose next frame begins at `at`.
    pub fn new(params: LegParams, seed: Seed, now: Time, at: Sample) -> Far {
        Far {
            leg: Leg::new(params, &Opus::default(), seed, now),
            spoken: Vec::new(),
            digits: Vec::new(),
            sending: true,
            odd: None,
            heard: Vec::new(),
            echo: None,
            ears: Vec::new(),
            tones: None,
            detector: Detector::new(),
            at,
        }
    }

    /// Hands the next frame's packets to `send`.
    pub fn tick(&mut self, now: Time, mut send: impl FnMut(&[u8])) {
        let at = self.at;
        self.at += FRAME as Sample;
        let due: Vec<(char, bool)> =
            self.digits.iter().filter(|(from, ..)| (at..self.at).contains(from)).map(|due| (due.1, due.2)).collect();
        for (digit, inband) in due {
            if inband || !self.leg.has_events() {
                self.tones = Some(Tones::new(digit.encode_utf8(&mut [0; 4]), at, Pace::default()));
            } else {
                self.leg.start_event(digit, DIGIT_MS);
            }
        }
        let frame = self.render(at);
        if !self.sending {
            return self.leg.skip();
        }
        match &mut self.leg {
            Leg::Rtp(leg) => {
                leg.send(now, &frame);
                while let Some(bytes) = leg.packet() {
                    match self.odd.take() {
                        Some((payload_type, length)) => {
                            let mut packet = bytes[..HEADER].to_vec();
                            packet[1] = packet[1] & 0x80 | payload_type;
                            packet.resize(HEADER + length, 0xff);
                            send(&packet);
                        }
                        None => send(bytes),
                    }
                }
            }
            Leg::Pcm(leg) => send(&bytes(leg.send(&frame))),
        }
    }

    fn render(&mut self, at: Sample) -> Frame {
        let mut sums = [0i32; FRAME];
        for said in &self.spoken {
            for (n, sum) in sums.iter_mut().enumerate() {
                let index = at + n as Sample - said.from;
                if (0..said.pcm.len() as Sample).contains(&index) {
                    *sum += i32::from(said.pcm[index as usize]);
                }
            }
        }
        self.mix_echo(at, &mut sums);
        self.tones.take_if(|tones| !tones.mix(at, &mut sums));
        let mut frame = SILENCE;
        for (sample, sum) in frame.iter_mut().zip(sums) {
            *sample = sum.clamp(i16::MIN.into(), i16::MAX.into()) as i16;
        }
        frame
    }

    fn mix_echo(&self, at: Sample, sums: &mut [i32; FRAME]) {
        let Some(echo) = self.echo else { return };
        let gain = 10f64.powf(-echo.erl_db / 20.0);
        let from = at - Sample::from(echo.delay_ms) * PER_MS;
        for (sum, at) in sums.iter_mut().zip(from..) {
            let heard = usize::try_from(at).ok().and_then(|at| self.ears.get(at));
            *sum += heard.map_or(0, |&heard| (f64::from(heard) * gain).round() as i32);
        }
    }

    /// Takes a packet of the call.
    pub fn receive(&mut self, path: MediaChannel, now: Time, bytes: &[u8]) {
        let Leg::Rtp(leg) = &mut self.leg else { return };
        match path {
            MediaChannel::Rtp => {
                leg.receive(now, bytes);
            }
            MediaChannel::Rtcp => leg.receive_report(now, bytes),
        }
    }

    /// Takes a frame of the call, over PCM.
    pub fn receive_frame(&mut self, now: Time, pcm: &[i16]) {
        if let Leg::Pcm(leg) = &mut self.leg {
            leg.receive(now, pcm);
        }
    }

    /// Receives 20 ms of the call.
    pub fn listen(&mut self, now: Time) {
        let is_rtp = matches!(self.leg, Leg::Rtp(_));
        let mut scratch = Scratch::default();
        let heard = self.leg.listen(now, &mut scratch);
        if let Ok(from) = usize::try_from(heard.position) {
            self.ears.resize(self.ears.len().max(from + FRAME), 0);
            self.ears[from..from + FRAME].copy_from_slice(heard.pcm);
        }
        let (narrow, position) = (*heard.narrow, heard.position);
        while let Some(digit) = self.leg.digit() {
            self.heard.push((digit.from, digit.digit));
        }
        if let Some(Detected::Digit { digit, from, .. }) =
            self.detector.push(&narrow, if is_rtp { self.at } else { position })
        {
            self.heard.push((from, digit));
        }
    }

    /// Returns the audio that it received, from position 0 of its own clock.
    pub fn ears(&self) -> &[i16] {
        &self.ears
    }

    /// Returns the words that were said in `from..to` of its own clock, by their middles.
    pub fn words(&self, from: Sample, to: Sample) -> Vec<Word> {
        let mut words: Vec<Word> = self.spoken.iter().flat_map(Spoken::words).collect();
        words.retain(|word| (from - 50 * PER_MS..to + 50 * PER_MS).contains(&((word.from + word.to) / 2)));
        words
    }
}
