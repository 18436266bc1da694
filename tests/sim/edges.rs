//! Beginnings and ends of both sides' speech: in the timeline, and measured in the audio that the other side receives.

use std::sync::Arc;
use std::time::Duration;

use ringer::engine::Placement;
use ringer::engine::sim::{self, Side, Sim};
use ringer::human::Mind;
use ringer::provider::canned::Canned;
use ringer::provider::speech::EmbeddedSpeech;
use ringer::provider::{Job, Synthesizer, VoiceWanted};
use ringer_media::call::{CallSpec, Interruption, Move, Opening, Purpose, Thought};
use ringer_media::codec::{Codec, Decoder, Encoder};
use ringer_media::impair::AudioQuality;
use ringer_media::netem::NetemSpec;
use ringer_media::recording::WAV_HEADER;
use ringer_media::resample::{DELAY, Down2, Up2};
use ringer_media::seed::Seed;
use tokio::sync::mpsc;

use super::plain;

const TEXTS: [(&str, &str); 4] = [
    ("en", "Please hold the line while I look at your account"),
    ("de", "Bitte bleiben Sie am Apparat bis ich Ihr Konto gefunden habe"),
    ("es", "Por favor espere un momento mientras busco su cuenta"),
    ("fr", "Merci de patienter pendant que je cherche votre compte"),
];
const SEEDS: std::ops::Range<u64> = 1..6;
/// Blocks of 10 ms that are louder hold speech, and silence of more than 300 ms parts it.
const LEAST_DBOV: f64 = -50.0;
const BLOCK: usize = 160;
const PAUSE: usize = 30;
const FAR_MS: f64 = 20.0;

/// Says the text first and nothing else.
struct Talk(&'static str);

impl Mind for Talk {
    fn think<'a>(&'a mut self, thought: Thought, out: mpsc::Sender<Move>) -> Job<'a, ()> {
        let say = if thought.purpose == Purpose::Opening { self.0 } else { "" };
        Box::pin(async move {
            let _ = out.send(Move { say: say.into(), ..Move::default() }).await;
        })
    }

    fn speaker(&self) -> String {
        "talk".into()
    }
}

/// Returns the caller's received audio.
fn heard_audio(side: &Side) -> Vec<i16> {
    side.recording[WAV_HEADER..].as_chunks().0.iter().skip(1).step_by(2).map(|two| i16::from_le_bytes(*two)).collect()
}

/// Returns begin and end of each stretch of speech, in milliseconds.
fn measure(pcm: &[i16]) -> Vec<[f64; 2]> {
    let loud = |block: &[i16]| {
        let power = block.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / block.len() as f64;
        10.0 * (power.max(1e-9) / 32_768f64.powi(2)).log10() > LEAST_DBOV
    };
    let mut spans: Vec<[usize; 2]> = Vec::new();
    for at in (0..pcm.len() / BLOCK).filter(|at| loud(&pcm[at * BLOCK..(at + 1) * BLOCK])) {
        match spans.last_mut() {
            Some(last) if at - last[1] <= PAUSE => last[1] = at + 1,
            _ => spans.push([at, at + 1]),
        }
    }
    spans.iter().map(|span| span.map(|block| block as f64 * 10.0)).collect()
}

/// Returns the same of `who` as the timeline tells it.
fn tell(side: &Side, who: &str) -> Vec<[f64; 2]> {
    let of = |name: &str| {
        let entries = side.timeline.iter().filter(|entry| entry.name() == name && entry.side_name() == who);
        entries.map(|entry| entry.offset_ms()).collect::<Vec<f64>>()
    };
    let mut spans: Vec<[f64; 2]> = Vec::new();
    for (from, to) in of("speech.started").into_iter().zip(of("speech.ended")) {
        match spans.last_mut() {
            Some(last) if from - last[1] <= 10.0 * PAUSE as f64 => last[1] = to,
            _ => spans.push([from, to]),
        }
    }
    spans
}

#[test]
fn edges_of_clean_speech_in_the_timeline_are_those_of_the_recording() {
    let speech = Arc::new(EmbeddedSpeech::new().expect("there is a temporary folder"));
    let (mut edges, mut beyond) = (0, Vec::new());
    for ((language, text), codec) in TEXTS.into_iter().zip([Codec::Pcmu, Codec::G722].into_iter().cycle()) {
        for seed in SEEDS.map(Seed) {
            let voice = speech.voice(&VoiceWanted { seed, ..VoiceWanted::of(language) }).expect("there is a voice");
            let base = plain(seed.0, &Arc::new(Canned::default()));
            let side = |placement: Placement, opening, text| {
                let spec =
                    CallSpec { opening, interruption: Interruption::None, noise: None, ..placement.spec.clone() };
                Placement { spec, mind: Box::new(Talk(text)), voice: Some(voice.clone()), ..placement }
            };
            let mut caller = side(base.caller, Opening::Listen { open_after_ms: None }, "");
            caller.destination.set_codecs(vec![codec]);
            let outcome = sim::run(Sim {
                network: NetemSpec { delay_ms: 20.0, ..NetemSpec::default() },
                caller,
                agent: side(base.agent, Opening::Made, text),
                synthesizer: speech.clone(),
                longest: Duration::from_secs(8),
                ..base
            })
            .expect("it runs");
            let (measured, reported) = (measure(&heard_audio(&outcome.caller)), tell(&outcome.caller, "agent"));
            let case = format!("{language} {codec:?} {}: {measured:?} measured, {reported:?} told", seed.0);
            assert_eq!((measured.is_empty(), measured.len()), (false, reported.len()), "{case}");
            edges += 2 * measured.len();
            let far = |(measured, reported): (&[f64; 2], &[f64; 2])| {
                (0..2).any(|n| (measured[n] - reported[n]).abs() > FAR_MS)
            };
            beyond.extend(measured.iter().zip(&reported).any(far).then_some(case));
        }
    }
    println!("{edges} edges, beyond {FAR_MS} ms: {beyond:#?}");
    assert!(edges >= 40 && beyond.is_empty(), "{edges} edges: {beyond:#?}");
}

const ORDERS: [&str; 4] = [
    "I want to cancel my order please.",
    "Sixty six of those small boxes.",
    "Yes, she says so.",
    "Is this the price for all of these glasses?",
];

/// Returns the caller's audio as the agent's decoder gives it.
fn on_the_wire(side: &Side, codec: Codec) -> Vec<i16> {
    let sent: Vec<i16> =
        side.recording[WAV_HEADER..].as_chunks().0.iter().step_by(2).map(|two| i16::from_le_bytes(*two)).collect();
    if codec.rate_hz() == 16_000 {
        return sent;
    }
    let mut narrow = vec![0; sent.len() / 2];
    Down2::new().process(&sent, &mut narrow);
    let mut bytes = vec![0; narrow.len()];
    Encoder::new(codec).encode(&narrow, &mut bytes);
    Decoder::new(codec).decode(&bytes, &mut narrow);
    let mut wide = vec![0; 2 * narrow.len()];
    Up2::new().process(&narrow, &mut wide);
    wide.split_off(2 * DELAY as usize)
}

#[test]
fn edges_of_the_callers_own_speech_are_those_of_the_wire() {
    let speech = Arc::new(EmbeddedSpeech::new().expect("there is a temporary folder"));
    let (mut edges, mut beyond) = (0, Vec::new());
    for text in ORDERS {
        for (codec, audio_quality) in [
            (Codec::Pcmu, AudioQuality::HIGH),
            (Codec::Pcma, AudioQuality::MEDIUM),
            (Codec::G722, AudioQuality::HIGH),
            (Codec::G722, AudioQuality::LOW),
        ] {
            for seed in SEEDS.map(Seed) {
                let voice = speech.voice(&VoiceWanted { seed, ..VoiceWanted::of("en") }).expect("there is a voice");
                let base = plain(seed.0, &Arc::new(Canned::default()));
                let side = |placement: Placement, opening, text| {
                    let (interruption, noise) = (Interruption::None, None);
                    let spec = CallSpec { opening, interruption, noise, audio_quality, ..placement.spec.clone() };
                    Placement { spec, mind: Box::new(Talk(text)), voice: Some(voice.clone()), ..placement }
                };
                let mut caller = side(base.caller, Opening::Made, text);
                caller.destination.set_codecs(vec![codec]);
                let outcome = sim::run(Sim {
                    caller,
                    agent: side(base.agent, Opening::Listen { open_after_ms: None }, ""),
                    synthesizer: speech.clone(),
                    longest: Duration::from_secs(8),
                    ..base
                })
                .expect("it runs");
                let (measured, reported) = (measure(&on_the_wire(&outcome.caller, codec)), tell(&outcome.caller, "dh"));
                let case = format!("{text} {codec:?} {}: {measured:?} measured, {reported:?} told", seed.0);
                let [heard, said] = [&measured, &reported].map(|spans| [spans[0][0], spans[spans.len() - 1][1]]);
                edges += 2;
                beyond.extend((0..2).any(|n| (heard[n] - said[n]).abs() > FAR_MS).then_some(case));
            }
        }
    }
    println!("{edges} edges, beyond {FAR_MS} ms: {beyond:#?}");
    assert!(edges >= 160 && beyond.is_empty(), "{edges} edges: {beyond:#?}");
}
