//! How much of speech survives a network: a leg sends it, a seeded network carries it, another leg hears it, and the
//! recording is compared with what was spoken by ITU-T P.862 (PCMU, raw score and the MOS-LQO of P.862.1) and P.862.2
//! (G.722).
//!
//! `cargo test -p ringer-media --test quality -- --nocapture` prints the figures.

mod corpus;

use InItsPlace::{Concealed, Silence};
use corpus::{prompts, sentences};
use ringer_media::codec::Codec;
use ringer_media::frame::{FRAME, Frame, SILENCE, Sample};
use ringer_media::leg::{HeardKind, MediaParams, RtpLeg, Scratch};
use ringer_media::netem::{Loss, Netem, NetemSpec};
use ringer_media::recording::Window;
use ringer_media::seed::Seed;
use ringer_media::time::Time;

const SEEDS: &[u64] = &[1, 2, 3];

/// Path delay of every network here, in milliseconds.
const PATH_MS: u64 = 30;

const CALM: NetemSpec = NetemSpec {
    delay_ms: PATH_MS as f64,
    jitter_ms: 0.0,
    overtake: false,
    loss: Loss::None,
    reorder: 0.0,
    reorder_ms: 0.0,
    duplicate: 0.0,
    rate_bps: 0,
    queue_ms: 0.0,
};

/// The sender's tick and the listener's, in milliseconds after the origin: a packet of a tick is heard in a later one.
const LISTEN_MS: u64 = 7;

/// Audio that takes the place of lost audio.
#[derive(Copy, Clone, Debug, PartialEq)]
enum InItsPlace {
    /// Concealment as the leg makes it.
    Concealed,
    Silence,
}

/// Returns `pcm` (16 kHz) as it is in the recording behind a network.
fn record(codec: Codec, pcm: &[i16], spec: NetemSpec, seed: u64, lost: InItsPlace) -> Vec<i16> {
    let params = MediaParams { event_payload_type: None, ..MediaParams::new(codec) };
    let origin = Time::from_millis(5000);
    let mut sender = RtpLeg::new(params, Seed(seed), origin);
    let mut receiver = RtpLeg::new(params, Seed(seed + 100), origin);
    let mut netem = Netem::new(spec, Seed(seed).stream("netem"));
    let mut window = Window::new();
    let mut heard = Vec::new();
    let frames = pcm.len().div_ceil(FRAME);
    for tick in 0..frames + 40 {
        let now = Time(origin.0 + tick as u64 * 20_000_000);
        let from = (tick * FRAME).min(pcm.len());
        let mut frame: Frame = SILENCE;
        let some = &pcm[from..pcm.len().min(from + FRAME)];
        frame[..some.len()].copy_from_slice(some);
        sender.send(now, &frame);
        netem.send(now, sender.packet().expect("one a tick"));
        let now = Time(now.0 + LISTEN_MS * 1_000_000);
        while let Some((arrived, bytes)) = netem.receive(now) {
            receiver.receive(arrived, &bytes);
        }
        let mut scratch = Scratch::default();
        let out = receiver.listen(now, &mut scratch);
        window.move_back(out.moved);
        let mut keep = |position, kind, pcm| match kind {
            HeardKind::Lost if lost == InItsPlace::Silence => window.push(position, &SILENCE),
            HeardKind::Real | HeardKind::Lost => window.push(position, pcm),
            _ => {}
        };
        if let Some(passed) = out.passed {
            keep(passed.position, passed.kind, passed.pcm);
        }
        keep(out.position, out.kind, out.pcm);
        while let Some(pcm) = window.advance((tick * FRAME) as Sample) {
            heard.extend_from_slice(pcm);
        }
    }
    while let Some(pcm) = window.flush(((frames + 40) * FRAME) as Sample) {
        heard.extend_from_slice(pcm);
    }
    heard.drain(..PATH_MS as usize * 16);
    heard.truncate(pcm.len());
    heard
}

/// Means over files and seeds.
#[derive(Copy, Clone, Debug, PartialEq)]
struct Score {
    /// Raw score of P.862; for wideband codecs the MOS-LQO of P.862.2.
    raw: f64,
    /// MOS-LQO of P.862.1 or P.862.2.
    lqo: f64,
}

fn score(codec: Codec, files: &[Vec<i16>], seeds: &[u64], spec: NetemSpec, lost: InItsPlace) -> Score {
    let mut sum = Score { raw: 0.0, lqo: 0.0 };
    let share = 1.0 / (files.len() * seeds.len()) as f64;
    for (n, pcm) in files.iter().enumerate() {
        for &seed in seeds {
            let heard = record(codec, pcm, spec, seed * 1000 + n as u64, lost);
            let (raw, lqo) = if codec != Codec::Pcmu {
                let lqo = pesq::pesq_wb(pcm, &heard).expect("there is speech");
                (lqo, lqo)
            } else {
                let raw = pesq::pesq(pcm, &heard).expect("there is speech");
                (raw, pesq::score::mos_lqo(raw.into()))
            };
            sum.raw += f64::from(raw) * share;
            sum.lqo += f64::from(lqo) * share;
        }
    }
    sum
}

/// Bound of raw score and MOS-LQO alike.
#[derive(Copy, Clone, Debug)]
enum Asked {
    /// Largest distance below the codec behind a calm network.
    BelowCodec(f64),
    AtLeast(f64),
}

fn check(name: &str, codec: Codec, files: &[Vec<i16>], seeds: &[u64], lossy: [f64; 2]) {
    let alone = score(codec, files, &seeds[..1], CALM, Concealed);
    println!("{name}, {codec:?} alone: {:.2} (MOS-LQO {:.2})", alone.raw, alone.lqo);
    let jitter = NetemSpec { jitter_ms: 60.0, ..CALM };
    let lost = |share: f64| NetemSpec { loss: Loss::Independent(share), ..CALM };
    for (network, spec, asked) in [
        ("jitter 60 ms, in order", jitter, Asked::BelowCodec(0.1)),
        ("jitter 60 ms, overtaking", NetemSpec { overtake: true, ..jitter }, Asked::BelowCodec(0.1)),
        ("loss 5 %", lost(0.05), Asked::AtLeast(lossy[0])),
        ("loss 10 %", lost(0.10), Asked::AtLeast(lossy[1])),
    ] {
        let Score { raw, lqo } = score(codec, files, seeds, spec, Concealed);
        println!("{name}, {codec:?}, {network}: {raw:.2} (MOS-LQO {lqo:.2})");
        let (least_raw, least_lqo) = match asked {
            Asked::BelowCodec(by) => (alone.raw - by, alone.lqo - by),
            Asked::AtLeast(least) => (least, least),
        };
        assert!(raw >= least_raw && lqo >= least_lqo, "{name} {codec:?} {network}: {raw:.2} (MOS-LQO {lqo:.2})");
    }
}

#[test]
fn narrowband_speech_survives_jitter_and_loss() {
    check("flite", Codec::Pcmu, &sentences(), SEEDS, [3.2, 2.8]);
}

#[test]
fn a_recorded_voice_survives_jitter_and_loss() {
    check("prompts", Codec::Pcmu, &prompts(), &SEEDS[..1], [3.2, 2.8]);
}

/// Second one of two lost packets in a row, which comes back from the packet behind it; the first is concealed.
#[test]
fn what_is_concealed_is_better_than_silence() {
    let bursts = NetemSpec { loss: Loss::Burst { enter: 0.05, leave: 0.5, loss: 1.0 }, ..CALM };
    for codec in [Codec::Opus, Codec::Pcmu] {
        let score = |lost| score(codec, &sentences(), &SEEDS[..1], bursts, lost).lqo;
        let (concealed, silent) = (score(Concealed), score(Silence));
        println!("{codec:?}, one of ten lost, two in a row: {concealed:.2} concealed, {silent:.2} with silence");
        assert!(concealed > silent + 0.4, "{codec:?}: {concealed:.2} and {silent:.2}");
    }
}

/// A lost packet also leaves the ADPCM of G.722 out of step for a while.
#[test]
fn wideband_speech_survives_jitter_and_loss() {
    check("flite", Codec::G722, &sentences(), &SEEDS[..1], [2.5, 1.8]);
}
