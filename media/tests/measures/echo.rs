//! The caller's own words that come back are no part of the agent's measures: the conversation of
//! `fixtures/audio/measures.json` with an echo measures as it does without.

use ringer_media::codec::{Codec, Decoder, Encoder};
use ringer_media::echo::EchoGuard;
use ringer_media::frame::{FRAME, PER_MS};
use ringer_media::level::to_speech_level;
use ringer_media::measure::{Channel, Conversation, Echo, Span, echoes, metrics, sound, speech};
use ringer_media::resample::resample_whole;
use ringer_media::vad::Edge;
use serde_json::{Value, json};

use super::{first_samples, fixture, noise, place, say, spans};

/// Returns the audio after PCMU.
fn encode_and_decode(pcm: &[i16]) -> Vec<i16> {
    let narrow = resample_whole(pcm, 16_000, 8000);
    let (mut bytes, mut decoded) = (vec![0; narrow.len()], vec![0; narrow.len()]);
    Encoder::new(Codec::Pcmu).encode(&narrow, &mut bytes);
    Decoder::new(Codec::Pcmu).decode(&bytes, &mut decoded);
    resample_whole(&decoded, 8000, 16_000)
}

/// Returns speech of `voice` at the level of a call (-26 dBov, ITU-T P.56) in these spans, over noise of this level.
fn channel(layout: &Value, voice: &str, length: usize, noise_dbfs: f64) -> Vec<i16> {
    let (mut clip, mut pcm) = (say(voice), vec![0i16; length]);
    to_speech_level(&mut clip, 16_000);
    for span in spans(layout) {
        let said = first_samples(&clip, span.length() as usize);
        pcm[span.from as usize..span.to as usize].copy_from_slice(said);
    }
    pcm.iter_mut().zip(noise(length, noise_dbfs)).for_each(|(x, n)| *x = x.saturating_add(n.round() as i16));
    pcm
}

/// Returns the speech of the other side that a call finds, and the echo of its own words.
fn hear(own: &[i16], far: &[i16]) -> (Vec<Span>, Option<Echo>) {
    let mut guard = EchoGuard::new();
    let (mut edges, mut echo) = (Vec::new(), None);
    for (n, (own, far)) in own.chunks_exact(FRAME).zip(far.chunks_exact(FRAME)).enumerate() {
        let at = (n * FRAME) as i64;
        guard.take_sent(at, own.try_into().expect("a frame"));
        edges.extend(guard.push(&mut far.try_into().expect("a frame"), at, true));
        let delay = guard.news().map(|news| (news.delay_ms * PER_MS as f64).round() as i64);
        echo = echo.or(delay.map(|delay| Echo { delay, known: at }));
    }
    edges.extend(guard.finish());
    let spans = edges.chunks(2).map(|pair| match *pair {
        [Edge::Started { onset }, Edge::Ended { end }] => Span { from: onset, to: end },
        _ => panic!("an edge without its other: {pair:?}"),
    });
    (spans.collect(), echo)
}

/// Returns all measures, by name.
fn measure(case: &Value, own: &[i16], far: &[i16]) -> Value {
    let (agent, echo) = hear(own, far);
    let conversation = Conversation {
        duration: own.len() as i64,
        dh: spans(&case["dh"]),
        agent,
        echo,
        interface: "PHONE",
        ..Conversation::default()
    };
    let mut all = serde_json::to_value(metrics(&conversation)).expect("metrics are plain numbers");
    let (_, said) = speech(&conversation);
    let apart = echoes(&conversation);
    let channel = Channel { pcm: far, speech: &said, concealed: &[], apart: &apart, full_scale: 32_124, idle: 0 };
    let found = sound(&channel).expect("the agent speaks");
    for (name, value) in [
        ("agent_perceived_loudness", json!(found.loudness_lufs)),
        ("agent_audio_clipping", json!(found.clipping_percent)),
        ("agent_snr", json!(found.snr_db)),
        ("agent_noise", json!(found.noise_dbfs)),
        ("agent_audio_dropouts", json!(found.dropouts)),
        ("agent_dropout_ms", json!(found.dropout_ms)),
        ("agent_pitch_variability", json!(found.pitch_semitones)),
        ("agent_audio_clarity", json!(found.clarity)),
    ] {
        all[name] = value;
    }
    all
}

#[test]
fn an_echo_moves_no_metric() {
    let fixture = fixture();
    let (case, about) = (&fixture["conversation"], &fixture["echo"]);
    let length = place(case["seconds"].as_f64().expect("seconds"));
    let numbers = |key: &str| -> Vec<f64> {
        about[key].as_array().expect("a list").iter().map(|number| number.as_f64().expect("a number")).collect()
    };
    for noise_dbfs in numbers("noise_dbfs") {
        let own = encode_and_decode(&channel(&case["dh"], "slt", length, -96.0));
        let agent = channel(&case["agent"], "awb", length, noise_dbfs);
        let plain = measure(case, &own, &encode_and_decode(&agent));
        let mut worst = serde_json::Map::new();
        for erl_db in numbers("erl_db") {
            for delay_ms in numbers("delay_ms") {
                let gain = 10f64.powf(-erl_db / 20.0);
                let late = delay_ms as usize * PER_MS as usize;
                let mut far = agent.clone();
                for (x, back) in far[late..].iter_mut().zip(&own) {
                    *x = x.saturating_add((f64::from(*back) * gain).round() as i16);
                }
                let found = measure(case, &own, &encode_and_decode(&far));
                for (name, before) in plain.as_object().expect("metrics") {
                    let after = &found[name];
                    let which = format!("{name} at {erl_db} dB, {delay_ms} ms, noise {noise_dbfs}");
                    let (Some(one), Some(other)) = (before.as_f64(), after.as_f64()) else {
                        assert_eq!(before, after, "{which}");
                        continue;
                    };
                    let moved = (one - other).abs();
                    let most = worst.get(name).and_then(Value::as_f64).unwrap_or(0.0).max(moved);
                    worst.insert(name.clone(), json!(most));
                    let tolerance = about["tolerance"][name].as_f64().unwrap_or(0.0);
                    assert!(moved <= tolerance + 1e-9, "{which}: {one} without, {other} with it");
                }
            }
        }
        worst.retain(|_, moved| moved.as_f64() > Some(0.0));
        println!("noise at {noise_dbfs} dBFS, moved most: {}", Value::from(worst));
    }
}
