//! Audio metrics of a conversation, by name, from its recording.

use std::io;
use std::path::Path;

use ringer_media::call::{EventKind, TimelineEntry};
use ringer_media::frame::{PER_MS, Sample};
use ringer_media::measure::{Channel, Sound, Span, echoes, sound, speech};
use ringer_media::pcm;
use ringer_media::recording::WAV_HEADER;
use ringer_model::custom_metric::EvalSegment;
use ringer_model::result::MetricValue;
use serde_json::{Value, json};

use super::measures::{Facts, conversation, measure_part};
use super::{PartMeasures, span_of};

/// The Digital Human's channel of a recording, and the agent's.
const CHANNELS: [usize; 2] = [0, 1];

/// Returns the audio metrics that have a value, of the whole call or of a part. `codec` is that of the call; reads the
/// stereo recording, a channel at a time.
///
/// # Errors
/// When the file cannot be read.
pub fn audio_metrics(
    moments: &[TimelineEntry],
    facts: &Facts,
    codec: Option<&str>,
    recording: &Path,
    part: Option<Span>,
) -> io::Result<Vec<MetricValue>> {
    let whole = conversation(moments, facts);
    let window = part.unwrap_or(Span { from: 0, to: Sample::MAX });
    let conversation = whole.part(window);
    let (mut dh, agent) = speech(&conversation);
    // Probes are no noise.
    dh.extend(conversation.probes.iter().map(|probe| probe.span));
    let made_up: Vec<Span> = moments.iter().filter_map(made_up_in).collect();
    let start = conversation.start;
    let shifted = |spans: &[Span], by: Sample| -> Vec<Span> {
        spans.iter().map(|span| Span { from: span.from - by, to: span.to - by }).collect()
    };
    let bytes = std::fs::read(recording)?;
    // The agent's channel is recorded as it came: with the Digital Human's own words, where they come back.
    let echo = echoes(&conversation);
    let [user, agent] = [(CHANNELS[0], dh, vec![], vec![]), (CHANNELS[1], agent, made_up, echo)].map(
        |(channel, speech, made_up, echo)| {
            let pcm = channel_of(&bytes, channel);
            let end = window.to.clamp(0, pcm.len() as Sample) as usize;
            let pcm = pcm.get((window.from + start).max(0) as usize..end).unwrap_or_default();
            let (speech, apart) = (shifted(&speech, start), shifted(&echo, start));
            let concealed = shifted(&made_up, window.from + start);
            let (full_scale, idle) = if channel == CHANNELS[1] { range(codec) } else { (32_768, 0) };
            sound(&Channel { pcm, speech: &speech, concealed: &concealed, apart: &apart, full_scale, idle })
        },
    );
    Ok(values(agent, user, packet_loss(moments).filter(|_| part.is_none())))
}

/// Measures parts of a call; with a recording, their audio too.
///
/// # Errors
/// When the file cannot be read.
pub fn measure_parts(
    parts: &[(EvalSegment, (i64, i64))],
    (moments, facts): (&[TimelineEntry], &Facts),
    codec: Option<&str>,
    recording: Option<&Path>,
) -> io::Result<Vec<PartMeasures>> {
    let mut all = Vec::new();
    for &(segment, span_ms) in parts {
        let window = span_of(span_ms);
        let mut measures = measure_part(moments, facts, window);
        if measures.is_empty() {
            continue;
        }
        if let Some(recording) = recording {
            measures.extend(audio_metrics(moments, facts, codec, recording, Some(window))?);
        }
        all.push(PartMeasures { segment, measures });
    }
    Ok(all)
}

/// Returns one channel of a stereo file as this engine writes it.
fn channel_of(file: &[u8], channel: usize) -> Vec<i16> {
    pcm::channel(file.get(WAV_HEADER..).unwrap_or_default(), channel, CHANNELS.len())
}

/// Returns the greatest value of a codec, and its value for digital silence (ITU-T G.711 tables 1 and 2 for the
/// logarithmic codecs).
fn range(codec: Option<&str>) -> (u16, u16) {
    match codec {
        Some("PCMU") => (32_124, 0),
        Some("PCMA") => (32_256, 8),
        _ => (32_768, 0),
    }
}

fn made_up_in(moment: &TimelineEntry) -> Option<Span> {
    let EventKind::RxUnderrun { duration_ms } = moment.reading() else { return None };
    Some(Span { from: moment.sample, to: moment.sample + i64::from(*duration_ms) * PER_MS })
}

/// Returns the percentage of packets that never came, by the last figures of the network.
fn packet_loss(moments: &[TimelineEntry]) -> Option<f64> {
    let figures = |moment: &TimelineEntry| match moment.reading() {
        EventKind::Network { received, lost, .. } => Some((*received, *lost)),
        _ => None,
    };
    let (received, lost) = moments.iter().rev().find_map(figures)?;
    (received + lost > 0).then(|| (100_000.0 * lost as f64 / (received + lost) as f64).round() / 1000.0)
}

/// Names of the metrics of sound, in their order.
pub(super) const NAMES: [&str; 9] = [
    "agent_perceived_loudness",
    "agent_audio_clipping",
    "agent_snr",
    "agent_audio_dropouts",
    "agent_dropout_ms",
    "agent_pitch_variability",
    "agent_audio_clarity",
    "user_audio_clarity",
    "audio_fidelity",
];

pub(super) fn values(agent: Option<Sound>, user: Option<Sound>, packet_loss: Option<f64>) -> Vec<MetricValue> {
    let fidelity = agent.map(|sound| {
        json!({
            "overall": sound.clarity, "noise": sound.noise_dbfs, "reverb": sound.reverb_s, "interfering_speech": null,
            "background_media": null, "packet_loss": packet_loss, "loudness": sound.loudness_lufs,
        })
    });
    let of_agent = |figure: fn(&Sound) -> Value| agent.as_ref().map_or(Value::Null, figure);
    let all = [
        of_agent(|sound| json!(sound.loudness_lufs)),
        of_agent(|sound| json!(sound.clipping_percent)),
        of_agent(|sound| json!(sound.snr_db)),
        of_agent(|sound| json!(sound.dropouts)),
        of_agent(|sound| json!(sound.dropout_ms)),
        of_agent(|sound| json!(sound.pitch_semitones)),
        of_agent(|sound| json!(sound.clarity)),
        json!(user.and_then(|sound| sound.clarity)),
        fidelity.unwrap_or(Value::Null),
    ];
    let given = NAMES.into_iter().zip(all).filter(|(_, value)| !value.is_null());
    given.map(|(name, value)| MetricValue { name: name.into(), value, note: None }).collect()
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use ringer_media::codec::{Codec, Decoder, Encoder};
    use ringer_media::recording::{Layout, wav_header};
    use ringer_media::resample::Up2;

    use super::*;
    use crate::moments;

    /// Returns both channels silent but for a tone where the agent speaks, 2.0 to 6.0 s; 100 ms of it are missing. With
    /// `echo` also the Digital Human's, 7.0 to 8.0 s, which comes back 300 ms later and 20 dB down.
    fn recording(echo: bool) -> tempfile::NamedTempFile {
        let mut bytes = wav_header(Layout::Stereo, 160_000).to_vec();
        for n in 0..160_000u32 {
            let speaks = (32_000..96_000).contains(&n) && !(48_000..49_600).contains(&n);
            let tone = 3276.8 * (TAU * 997.0 * f64::from(n) / 16_000.0).sin();
            let own = if echo && (112_000..128_000).contains(&n) { tone } else { 0.0 };
            let back = if echo && (116_800..132_800).contains(&n) { tone / 10.0 } else { 0.0 };
            bytes.extend((own as i16).to_le_bytes());
            bytes.extend((if speaks { tone as i16 } else { back as i16 }).to_le_bytes());
        }
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), bytes).expect("writes");
        file
    }

    #[test]
    fn metrics_have_their_names() {
        let at = |ms: i64, event: &str, side: &str, data: Value| json!({"seq": ms, "sample": ms * 16, "event": event, "side": side, "data": data});
        let timeline = json!([
            at(2000, "speech.started", "agent", json!({})),
            at(5000, "rx_underrun", "engine", json!({"duration_ms": 60})),
            at(6000, "speech.ended", "agent", json!({})),
            at(9000, "network", "engine", json!({"received": 495, "lost": 5})),
            at(10_000, "call.ended", "engine", json!({})),
        ]);
        let file = recording(false);
        let facts = Facts { interface: "PHONE", ..Facts::default() };
        let found = audio_metrics(&moments(&timeline), &facts, Some("PCMU"), file.path(), None).expect("reads");
        let value = |name: &str| found.iter().find(|metric| metric.name == name).map(|metric| metric.value.clone());
        let loudness = value("agent_perceived_loudness").and_then(|value| value.as_f64()).expect("a loudness");
        assert!((loudness + 23.0).abs() < 0.2, "{loudness}");
        for (name, expect) in [
            ("agent_audio_clipping", Some(json!(0.0))),
            ("agent_snr", Some(json!(60.0))),
            ("agent_audio_dropouts", Some(json!(2))),
            ("agent_dropout_ms", Some(json!(160.0))),
            ("agent_pitch_variability", None),
            ("agent_audio_clarity", Some(json!(40.0))),
            ("user_audio_clarity", None),
        ] {
            assert_eq!(value(name), expect, "{name}");
        }
        let fidelity = value("audio_fidelity").expect("fidelity");
        assert_eq!((&fidelity["overall"], &fidelity["packet_loss"]), (&json!(40.0), &json!(1.0)), "{fidelity}");
        assert_eq!((&fidelity["noise"], &fidelity["reverb"]), (&json!(-96.0), &Value::Null));
        let opening = Span { from: 0, to: 64_000 };
        let part = audio_metrics(&moments(&timeline), &facts, Some("PCMU"), file.path(), Some(opening)).expect("reads");
        let of_part = |name: &str| part.iter().find(|metric| metric.name == name).map(|metric| metric.value.clone());
        // The concealed audio came later; 1.9 s of the tone are in it.
        assert_eq!((of_part("agent_audio_dropouts"), of_part("agent_snr")), (Some(json!(1)), Some(json!(60.0))));
        assert_eq!(of_part("audio_fidelity").map(|all| all["packet_loss"].clone()), Some(Value::Null));
        let absent = audio_metrics(&moments(&json!([])), &facts, None, file.path(), None).expect("reads");
        assert_eq!(absent, []);
    }

    #[test]
    fn what_a_codec_makes_of_digital_silence_is_no_noise() {
        let at = |ms: i64, event: &str, side: &str| json!({"seq": ms, "sample": ms * 16, "event": event, "side": side, "data": {}});
        let timeline = json!([
            at(2000, "speech.started", "agent"),
            at(6000, "speech.ended", "agent"),
            at(10_000, "call.ended", "engine"),
        ]);
        let tone = |n: u32| (3276.8 * (TAU * 997.0 * f64::from(n) / 8000.0).sin()) as i16;
        let spoken: Vec<i16> = (0..80_000).map(|n| if (16_000..48_000).contains(&n) { tone(n) } else { 0 }).collect();
        for codec in [Codec::Pcma, Codec::Pcmu] {
            let (mut bytes, mut narrow, mut pcm) = (vec![0; 80_000], vec![0; 80_000], vec![0; 160_000]);
            Encoder::new(codec).encode(&spoken, &mut bytes);
            Decoder::new(codec).decode(&bytes, &mut narrow);
            Up2::new().process(&narrow, &mut pcm);
            let mut wav = wav_header(Layout::Stereo, 160_000).to_vec();
            wav.extend(pcm.iter().flat_map(|sample| [0, *sample]).flat_map(i16::to_le_bytes));
            let file = tempfile::NamedTempFile::new().expect("a file");
            std::fs::write(file.path(), wav).expect("writes");
            let found = audio_metrics(&moments(&timeline), &Facts::default(), Some(codec.name()), file.path(), None);
            let found = found.expect("reads");
            let value = |name: &str| found.iter().find(|metric| metric.name == name).expect("a value").value.clone();
            assert_eq!(
                (value("agent_snr"), value("audio_fidelity")["noise"].clone()),
                (json!(60.0), json!(-96.0)),
                "{codec:?}"
            );
        }
    }

    #[test]
    fn an_echo_is_no_noise_of_the_agent() {
        let at = |ms: i64, event: &str, side: &str, data: Value| json!({"seq": ms, "sample": ms * 16, "event": event, "side": side, "data": data});
        let mut timeline = vec![
            at(2000, "speech.started", "agent", json!({})),
            at(6000, "speech.ended", "agent", json!({})),
            at(7000, "speech.started", "dh", json!({"utterance_id": 1, "text": "Hello", "kind": "turn"})),
            at(8000, "speech.ended", "dh", json!({"utterance_id": 1, "text": "Hello", "kind": "turn"})),
            at(10_000, "call.ended", "engine", json!({})),
        ];
        let file = recording(true);
        let snr = |timeline: &[Value]| {
            let facts = Facts { interface: "PHONE", ..Facts::default() };
            let moments = moments(&Value::from(timeline));
            let found = audio_metrics(&moments, &facts, None, file.path(), None).expect("reads");
            found
                .iter()
                .find(|metric| metric.name == "agent_snr")
                .and_then(|metric| metric.value.as_f64())
                .expect("a ratio")
        };
        assert!(snr(&timeline) < 40.0, "nobody knows of it: {}", snr(&timeline));
        timeline.push(at(7400, "suspected_echo_event", "engine", json!({"delay_ms": 300.0, "erl_db": 20.0})));
        assert_eq!(snr(&timeline), 60.0);
    }
}
