//! Digits as tones in the audio, as a call receives them: through a codec, packets and the jitter buffer. Digits at the
//! bounds of ITU-T Q.24 are found, tones beyond them are not, and speech is taken for digits at most once an hour.

use std::f64::consts::TAU;
use std::path::Path;
use std::process::{Command, Stdio};

use ringer_media::clip::Clip;
use ringer_media::codec::Codec;
use ringer_media::dtmf::{Detected, Detector};
use ringer_media::frame::{FRAME, Frame, RATE_HZ, Sample};
use ringer_media::leg::{MediaParams, RtpLeg, Scratch};
use ringer_media::level::to_speech_level;
use ringer_media::seed::{Seed, Stream};
use ringer_media::time::Time;

const CODECS: [Codec; 2] = [Codec::Pcmu, Codec::G722];
const DIGITS: [char; 16] = ['1', '2', '3', 'A', '4', '5', '6', 'B', '7', '8', '9', 'C', '*', '0', '#', 'D'];
const LOW_HZ: [f64; 4] = [697.0, 770.0, 852.0, 941.0];
const HIGH_HZ: [f64; 4] = [1209.0, 1336.0, 1477.0, 1633.0];

/// Two legs and a detector at the far one.
struct Line {
    near: RtpLeg,
    far: RtpLeg,
    detector: Detector,
    now: Time,
}

impl Line {
    fn new(codec: Codec) -> Line {
        let media = MediaParams::new(codec);
        let now = Time::from_millis(1000);
        Line {
            near: RtpLeg::new(media, Seed(1), now),
            far: RtpLeg::new(media, Seed(2), now),
            detector: Detector::new(),
            now,
        }
    }

    fn pass(&mut self, frame: &Frame) -> Option<(char, Sample)> {
        self.now = self.now + ringer_media::call::TICK;
        self.near.send(self.now, frame);
        let packet = self.near.packet().expect("one a tick");
        self.far.receive(self.now, packet);
        let mut scratch = Scratch::default();
        let heard = self.far.listen(self.now, &mut scratch);
        let Detected::Digit { digit, from, .. } = self.detector.push(heard.narrow, heard.position)?;
        Some((digit, from))
    }

    fn pass_all(&mut self, pcm: &[i16]) -> Vec<(char, Sample)> {
        pcm.chunks_exact(FRAME).filter_map(|frame| self.pass(frame.try_into().expect("a frame"))).collect()
    }
}

/// Digits of 40 ms with 40 ms between them, as a bad line brings them.
#[derive(Copy, Clone, Debug)]
struct Tones {
    /// Level of the high group over that of the low group, in dB.
    twist_db: f64,
    /// Relative errors of the low and the high frequency.
    off: [f64; 2],
    /// Level of the tones over white noise, within the 4 kHz of a telephone, in dB.
    snr_db: f64,
}

impl Tones {
    fn audio(self, count: usize, stream: &mut Stream) -> (Vec<i16>, Vec<char>) {
        let peak = |dbov: f64| 32_768.0 * 2f64.sqrt() * 10f64.powf(dbov / 20.0);
        let (low, high) = (peak(-16.0), peak(-16.0 + self.twist_db));
        let mut pcm = vec![0.0; 16_000 + stream.index(FRAME)];
        let digits: Vec<char> = (0..count).map(|_| DIGITS[stream.index(16)]).collect();
        for digit in &digits {
            let place = DIGITS.iter().position(|known| known == digit).expect("a digit");
            let step = |hz: f64, off: f64| TAU * hz * (1.0 + off) / f64::from(RATE_HZ);
            let (low_step, high_step) = (step(LOW_HZ[place / 4], self.off[0]), step(HIGH_HZ[place % 4], self.off[1]));
            let (a, b) = (stream.range(0.0, TAU), stream.range(0.0, TAU));
            let tone = |at: usize| low * (at as f64 * low_step + a).sin() + high * (at as f64 * high_step + b).sin();
            pcm.extend((0..640).map(tone));
            pcm.extend([0.0; 640]);
        }
        pcm.extend([0.0; 8000]);
        // Half of the noise's power lies above 4 kHz.
        let noise = ((low * low + high * high) / 2.0 * 2.0).sqrt() * 10f64.powf(-self.snr_db / 20.0);
        (pcm.into_iter().map(|sample| (sample + noise * stream.normal()).round() as i16).collect(), digits)
    }

    /// Returns the number of digits found in their order of `count`, and of other digits.
    fn score(self, codec: Codec, count: usize) -> (usize, usize) {
        let (pcm, sent) = self.audio(count, &mut Seed(7).stream("tones"));
        let heard = Line::new(codec).pass_all(&pcm);
        // By their places: 80 ms apart, all shifted by the same part of a frame.
        let place = |from: Sample| ((from - 16_000 + 480) / 1280).max(0) as usize;
        let right = heard.iter().filter(|(digit, from)| sent.get(place(*from)) == Some(digit)).count();
        (right, heard.len() - right)
    }
}

#[test]
fn digits_at_all_bounds_at_once_are_heard() {
    const COUNT: usize = 1000;
    for codec in CODECS {
        let (mut right, mut wrong, mut least) = (0, 0, COUNT);
        for twist_db in [4.0, 0.0, -8.0] {
            for off in [[0.015, 0.015], [-0.015, -0.015], [0.015, -0.015], [-0.015, 0.015]] {
                let tones = Tones { twist_db, off, snr_db: 15.0 };
                let (hits, misses) = tones.score(codec, COUNT);
                println!("{codec:?} {tones:?}: {hits} of {COUNT}, {misses} wrong");
                (right, wrong, least) = (right + hits, wrong + misses, least.min(hits));
            }
        }
        println!("{codec:?}: {right} of {} right, the worst corner {least} of {COUNT}, {wrong} wrong", 12 * COUNT);
        assert!(least * 100 >= COUNT * 99 && wrong * 1000 <= 12 * COUNT, "{codec:?}: {least}, {wrong} wrong");
    }
}

#[test]
fn frequencies_that_are_off_are_refused() {
    for codec in CODECS {
        for off in [[0.035, 0.0], [-0.035, 0.0], [0.0, 0.035], [0.0, -0.035], [0.035, -0.035], [-0.035, 0.035]] {
            for twist_db in [4.0, 0.0, -8.0] {
                let tones = Tones { twist_db, off, snr_db: 40.0 };
                assert_eq!(tones.score(codec, 320), (0, 0), "{codec:?} {tones:?}");
            }
        }
    }
}

// --- speech ---

/// Voices of synthesizers: program and name of the voice.
const VOICES: [(&str, &str); 9] = [
    ("flite", "slt"),
    ("flite", "rms"),
    ("flite", "awb"),
    ("flite", "kal16"),
    ("espeak-ng", "en-us"),
    ("espeak-ng", "en-gb+f3"),
    ("espeak-ng", "de+m3"),
    ("espeak-ng", "es+f2"),
    ("espeak-ng", "fr+m7"),
];

const WHO: [&str; 12] = [
    "my brother",
    "the lady at the desk",
    "your colleague",
    "a customer",
    "the new doctor",
    "our neighbour",
    "the driver",
    "somebody from billing",
    "the whole family",
    "an old friend",
    "the manager",
    "everyone in the office",
];
const DOES: [&str; 14] = [
    "has moved",
    "would like to cancel",
    "forgot about",
    "is waiting for",
    "already paid for",
    "keeps asking me about",
    "changed",
    "lost",
    "needs",
    "does not believe in",
    "will call you about",
    "wrote down",
    "was charged twice for",
    "really enjoys",
];
const WHAT: [&str; 14] = [
    "the appointment on Tuesday",
    "a blue envelope",
    "number seventeen",
    "the monthly invoice",
    "that long holiday in Rome",
    "a reservation for six people",
    "the broken washing machine",
    "his insurance policy",
    "two tickets to the opera",
    "the address in the system",
    "a cup of coffee",
    "an early train",
    "this confirmation code",
    "the delivery",
];
const WHY: [&str; 10] = [
    "because of the weather",
    "although nobody noticed",
    "and I wonder why",
    "if that is possible",
    "before noon",
    "as usual",
    "so please have a look at it",
    "without telling anybody",
    "again and again",
    "for no good reason at all",
];

fn sentence(stream: &mut Stream) -> String {
    let mut of = |words: &[&'static str]| words[stream.index(words.len())];
    format!("{} {} {}, {}. ", of(&WHO), of(&DOES), of(&WHAT), of(&WHY))
}

/// Returns some forty seconds of one voice, at 16 kHz and -26 dBov.
fn speech((program, voice): (&str, &str), stream: &mut Stream) -> Vec<i16> {
    let text: String = (0..10).map(|_| sentence(stream)).collect();
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("talk_off_{}_{}.wav", voice, stream.bits()));
    let mut command = Command::new(program);
    match program {
        "flite" => command.args(["-voice", voice, "-t", &text, "-o"]).arg(&out),
        _ => command.args(["-v", voice, "-w"]).arg(&out).arg(&text),
    };
    let done = command.stdout(Stdio::null()).status();
    assert!(done.is_ok_and(|status| status.success()), "{program} does not run: install the package {program}");
    let bytes = std::fs::read(&out).expect("the synthesizer wrote a file");
    std::fs::remove_file(&out).expect("it can be removed");
    let mut pcm = Clip::from_wav(&bytes).expect("a WAV file").to_16k();
    to_speech_level(&mut pcm, RATE_HZ);
    pcm
}

/// Counts the digits that `minutes` of speech are taken for, by codec.
fn talk_off(minutes: usize) {
    let mut stream = Seed(21).stream("talk off");
    let mut lines = CODECS.map(Line::new);
    let mut false_digits = [0; 2];
    let (mut samples, mut voices) = (0, VOICES.iter().cycle());
    while samples < minutes * 60 * RATE_HZ as usize {
        let pcm = speech(*voices.next().expect("a cycle"), &mut stream);
        samples += pcm.len();
        for (line, count) in lines.iter_mut().zip(&mut false_digits) {
            let found = line.pass_all(&pcm);
            *count += found.len();
        }
    }
    let hours = samples as f64 / 3600.0 / f64::from(RATE_HZ);
    println!("{:.1} minutes of speech: {false_digits:?} false digits through {CODECS:?}", hours * 60.0);
    assert!(false_digits.iter().all(|count| *count as f64 <= hours), "{false_digits:?} in {hours} hours");
}

#[test]
fn speech_is_not_taken_for_digits() {
    talk_off(60);
}
