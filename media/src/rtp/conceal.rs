//! Fills lost audio by repeating the last pitch period, after ITU-T G.711 Appendix I, on decoded samples of any codec.
//!
//! The first 10 ms keep their level, then the repetition fades; from 70 ms on it is silence. The first real samples after a
//! loss are cross-faded with the repetition. Unlike the Appendix no delay is added: the past is not changed.

/// Samples at 8 kHz: the shortest and the longest pitch period (200 to 67 Hz), what is compared, the past that this needs.
const SHORTEST: usize = 40;
const LONGEST: usize = 120;
const COMPARED: usize = 160;
const PAST: usize = LONGEST + COMPARED;

/// Milliseconds of repetition at full level, and until silence.
const FULL_MS: usize = 10;
const SILENT_MS: usize = 70;

/// Milliseconds of the cross-fade back into real audio.
const RETURN_MS: usize = 5;

/// Remembers the last 35 ms of one stream. Allocates nothing.
#[derive(Clone, Debug)]
pub struct Concealer {
    /// 1 at 8 kHz, 2 at 16 kHz.
    scale: usize,
    past: [i16; PAST * 2],
    cycle: [i16; LONGEST * 2],
    period: usize,
    /// Samples concealed since the last real one.
    lost: usize,
}

impl Concealer {
    /// For a stream at 8000 or 16000 Hz.
    pub fn new(rate_hz: u32) -> Concealer {
        let scale = if rate_hz > 8000 { 2 } else { 1 };
        Concealer { scale, past: [0; PAST * 2], cycle: [0; LONGEST * 2], period: SHORTEST, lost: 0 }
    }

    /// Real audio follows: cross-fades its beginning when something was concealed before it.
    pub fn real(&mut self, pcm: &mut [i16]) {
        if self.lost > 0 {
            let fade = pcm.len().min(RETURN_MS * 8 * self.scale);
            for (i, sample) in pcm[..fade].iter_mut().enumerate() {
                let share = (i + 1) as f32 / (fade + 1) as f32;
                *sample = (f32::from(*sample) * share + self.next() * (1.0 - share)) as i16;
            }
            self.lost = 0;
        }
        self.remember(pcm);
    }

    /// What was filled was only a wait: real audio goes on exactly where it stopped, and is not cross-faded.
    pub fn resume(&mut self) {
        self.lost = 0;
    }

    /// Nothing came: fills `pcm`.
    pub fn conceal(&mut self, pcm: &mut [i16]) {
        if self.lost == 0 {
            self.find_cycle();
        }
        for sample in pcm.iter_mut() {
            *sample = self.next() as i16;
        }
        self.remember(pcm);
    }

    fn next(&mut self) -> f32 {
        let (full, silent) = (FULL_MS * 8 * self.scale, SILENT_MS * 8 * self.scale);
        let at = self.lost;
        self.lost += 1;
        if at >= silent {
            return 0.0;
        }
        let gain = if at < full { 1.0 } else { (silent - at) as f32 / (silent - full) as f32 };
        f32::from(self.cycle[at % self.period]) * gain
    }

    fn remember(&mut self, pcm: &[i16]) {
        let past = &mut self.past[..PAST * self.scale];
        let kept = past.len().saturating_sub(pcm.len());
        past.copy_within(past.len() - kept.., 0);
        past[kept..].copy_from_slice(&pcm[pcm.len() - (PAST * self.scale - kept)..]);
    }

    /// Takes the last period as the cycle to repeat; its end is faded into what came before its beginning, so that it loops
    /// without a step.
    fn find_cycle(&mut self) {
        let past = &self.past[..PAST * self.scale];
        self.period = pitch(past, self.scale) * self.scale;
        let begin = past.len() - self.period;
        self.cycle[..self.period].copy_from_slice(&past[begin..]);
        let fade = self.period / 4;
        for i in 0..fade {
            let share = (i + 1) as f32 / (fade + 1) as f32;
            let (end, before) = (self.period - fade + i, begin - fade + i);
            let mixed = f32::from(self.cycle[end]) * (1.0 - share) + f32::from(past[before]) * share;
            self.cycle[end] = mixed as i16;
        }
    }
}

/// The lag at 8 kHz at which the last 20 ms are most like themselves (normalised cross-correlation).
fn pitch(past: &[i16], scale: usize) -> usize {
    let mut line = [0.0f32; PAST];
    for (slot, pair) in line.iter_mut().zip(past.chunks_exact(scale)) {
        *slot = f32::from(pair[0]);
    }
    let recent: &[f32; COMPARED] = line.last_chunk().expect("the line is longer than what is compared");
    let mut best = (0.0, SHORTEST);
    for lag in SHORTEST..=LONGEST {
        let earlier = &line[PAST - COMPARED - lag..PAST - lag];
        let (mut dot, mut energy) = ([0.0f32; 8], [1.0f32; 8]);
        for (a, b) in recent.chunks_exact(8).zip(earlier.chunks_exact(8)) {
            for lane in 0..8 {
                dot[lane] += a[lane] * b[lane];
                energy[lane] += b[lane] * b[lane];
            }
        }
        let score = dot.iter().sum::<f32>() / energy.iter().sum::<f32>().sqrt();
        if score > best.0 {
            best = (score, lag);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(rate_hz: u32, hz: f64, count: usize) -> Vec<i16> {
        let step = std::f64::consts::TAU * hz / f64::from(rate_hz);
        (0..count).map(|i| (8000.0 * (i as f64 * step).sin()) as i16).collect()
    }

    fn rms(pcm: &[i16]) -> f64 {
        (pcm.iter().map(|&s| f64::from(s).powi(2)).sum::<f64>() / pcm.len() as f64).sqrt()
    }

    #[test]
    fn a_lost_frame_of_a_tone_is_hardly_heard() {
        for rate_hz in [8000, 16000] {
            for hz in [100.0, 170.0, 440.0, 1000.0] {
                let frame = rate_hz as usize / 50;
                let truth = tone(rate_hz, hz, frame * 10);
                let mut concealer = Concealer::new(rate_hz);
                let mut heard = truth.clone();
                for (i, chunk) in heard.chunks_mut(frame).enumerate() {
                    if i == 5 { concealer.conceal(chunk) } else { concealer.real(chunk) }
                }
                let lost = frame * 5..frame * 5 + frame / 2;
                let error: Vec<i16> = lost.clone().map(|i| heard[i].saturating_sub(truth[i])).collect();
                let snr_db = 20.0 * (rms(&truth[lost]) / rms(&error)).log10();
                assert!(snr_db > 6.0, "{rate_hz} {hz}: {snr_db}");
                let after = frame * 7..;
                assert_eq!(heard[after.clone()], truth[after]);
            }
        }
    }

    #[test]
    fn a_long_loss_fades_into_silence() {
        for rate_hz in [8000, 16000] {
            let frame = rate_hz as usize / 50;
            let mut concealer = Concealer::new(rate_hz);
            concealer.real(&mut tone(rate_hz, 250.0, frame * 3));
            let mut levels = Vec::new();
            for _ in 0..6 {
                let mut pcm = vec![1; frame];
                concealer.conceal(&mut pcm);
                levels.push(rms(&pcm));
            }
            assert!(levels[0] > 5000.0 && levels.windows(2).all(|pair| pair[1] <= pair[0]), "{levels:?}");
            assert_eq!(levels[4..], [0.0, 0.0]);
        }
    }

    #[test]
    fn nothing_is_made_of_silence_and_extremes_do_not_wrap() {
        let mut concealer = Concealer::new(8000);
        let mut pcm = [5; 240];
        concealer.conceal(&mut pcm);
        assert_eq!(pcm, [0; 240]);
        let mut loud: Vec<i16> = (0..800).map(|i| if i / 40 % 2 == 0 { i16::MAX } else { i16::MIN }).collect();
        concealer.real(&mut loud);
        concealer.conceal(&mut pcm);
        assert!(pcm[..40].iter().all(|&s| s == i16::MAX) && pcm[45..70].iter().all(|&s| s < -30_000), "{pcm:?}");
    }
}
