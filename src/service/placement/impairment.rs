//! Microphone and connection between the Digital Human and the agent, by their named levels.

use ringer_base::config::{Audio, Connection};
use ringer_media::connection::ConnectionSpec;
use ringer_media::impair::{AudioQuality, Clip};
use ringer_model::digital_human::{DigitalHumanSpec, Line, Quality};
use serde_json::{Value, json};

/// Returns the band and the faults of the microphone.
pub(super) fn audio_quality(quality: Quality, levels: &Audio) -> AudioQuality {
    let (level, clip): (_, fn(f64) -> Clip) = match quality {
        Quality::High => return AudioQuality::HIGH,
        Quality::Medium => (&levels.medium, Clip::Soft),
        Quality::Low => (&levels.low, Clip::Soft),
        Quality::Horrible => (&levels.horrible, Clip::Hard),
    };
    AudioQuality {
        band_hz: Some([level.low_hz.into(), level.high_hz.into()]),
        clip: if level.clip_dbfs < 0.0 { clip(level.clip_dbfs) } else { Clip::None },
        noise_snr_db: (level.noise_snr_db < 100.0).then_some(level.noise_snr_db),
        dropouts: level.dropouts as usize,
        is_companded: false,
    }
}

/// Returns the band and the faults of a caller's microphone and line. `by_channel`: the channel itself has the codec of
/// the line.
pub(super) fn sent_quality(human: &DigitalHumanSpec, levels: &Audio, by_channel: bool) -> AudioQuality {
    let quality = audio_quality(human.audio_quality, levels);
    let has_codec = human.line.as_ref().is_some_and(|line| line.codec.is_some());
    if !has_codec || by_channel {
        return quality;
    }
    let [low, high] = quality.band_hz.unwrap_or([0.0, f64::MAX]);
    let [from, to] = AudioQuality::TELEPHONE.band_hz.unwrap_or([low, high]);
    AudioQuality { band_hz: Some([low.max(from), high.min(to)]), is_companded: true, ..quality }
}

/// Returns the loss, jitter and delay of a caller's connection and line.
pub(super) fn connection_of(human: &DigitalHumanSpec, levels: &Connection) -> ConnectionSpec {
    let spec = connection(human.connection_quality, levels);
    let Some(Line { loss_pct, mean_burst, delay_ms, .. }) = human.line else { return spec };
    let spec = ConnectionSpec { delay_ms: delay_ms.max(0) as f64, ..spec };
    match loss_pct {
        Some(loss_pct) => {
            ConnectionSpec { loss: loss_pct / 100.0, mean_burst, jitter_ms: 0.0, sent_only: true, ..spec }
        }
        None => spec,
    }
}

/// Returns the numbers of a bad microphone, for the result; null for a good one.
pub(super) fn audio_in_force(quality: &AudioQuality) -> Value {
    let AudioQuality { band_hz, clip, noise_snr_db, dropouts, is_companded } = quality;
    let clip = match clip {
        Clip::None => Value::Null,
        Clip::Soft(dbfs) => json!({ "kind": "soft", "dbfs": dbfs }),
        Clip::Hard(dbfs) => json!({ "kind": "hard", "dbfs": dbfs }),
    };
    let mut numbers =
        json!({ "band_hz": band_hz, "clip": clip, "noise_snr_db": noise_snr_db, "dropouts_per_10_s": dropouts });
    if *is_companded {
        numbers["companding"] = json!("mu-law");
    }
    if band_hz.is_some() { numbers } else { Value::Null }
}

/// Loss and jitter of the connection.
pub(super) fn connection(quality: Quality, levels: &Connection) -> ConnectionSpec {
    let level = match quality {
        Quality::High => return ConnectionSpec::default(),
        Quality::Medium => &levels.medium,
        Quality::Low => &levels.low,
        Quality::Horrible => &levels.horrible,
    };
    let (loss, jitter_ms) = (level.loss_pct / 100.0, f64::from(level.jitter_ms));
    ConnectionSpec { loss, mean_burst: level.mean_burst, jitter_ms, ..ConnectionSpec::default() }
}

/// Returns the numbers of a bad connection, for the result; null for a good one.
pub(super) fn connection_in_force(spec: &ConnectionSpec) -> Value {
    let ConnectionSpec { loss, mean_burst, jitter_ms, delay_ms, sent_only } = spec;
    if spec.is_clear() {
        return Value::Null;
    }
    let mut numbers = json!({ "loss_pct": 100.0 * loss, "mean_burst": mean_burst, "jitter_ms": jitter_ms });
    if *delay_ms > 0.0 {
        numbers["delay_ms"] = json!(delay_ms);
    }
    if *sent_only {
        numbers["direction"] = json!("sent");
    }
    numbers
}

#[cfg(test)]
mod tests {
    use ringer_base::config::Behaviour;
    use ringer_media::codec::Codec;

    use super::super::tests::{placement_settings, rows_of};
    use super::super::{PlacementSettings, Settings};
    use super::*;

    #[tokio::test]
    async fn bands_and_faults_are_those_of_the_settings() {
        let mut behaviour = Behaviour::default();
        (behaviour.audio.low.low_hz, behaviour.audio.horrible.dropouts) = (350, 3);
        let terms = PlacementSettings { behaviour, ..placement_settings() };
        for (quality, expect) in [
            ("high", json!(null)),
            (
                "medium",
                json!({ "band_hz": [200.0, 3400.0], "clip": null, "noise_snr_db": null, "dropouts_per_10_s": 0 }),
            ),
            (
                "low",
                json!({
                    "band_hz": [350.0, 2700.0], "clip": { "kind": "soft", "dbfs": -6.0 }, "noise_snr_db": 30.0,
                    "dropouts_per_10_s": 0,
                }),
            ),
            (
                "horrible",
                json!({
                    "band_hz": [400.0, 2200.0], "clip": { "kind": "hard", "dbfs": -12.0 }, "noise_snr_db": 15.0,
                    "dropouts_per_10_s": 3,
                }),
            ),
        ] {
            let rows =
                rows_of(json!({ "sip_uri": "sip:bob@127.0.0.1:5080" }), json!({ "audio_quality": quality }), json!({}));
            let prepared = rows.place(&terms, &Settings::new("unused")).await.expect("it can be placed");
            assert_eq!(prepared.notes["behaviour"]["audio"], expect, "{quality}");
        }
    }

    #[test]
    fn levels_of_the_connection() {
        let levels = Behaviour::default().connection;
        for (quality, loss, mean_burst, jitter_ms) in [
            (Quality::High, 0.0, 0.0, 0.0),
            (Quality::Medium, 0.01, 1.0, 10.0),
            (Quality::Low, 0.05, 3.0, 30.0),
            (Quality::Horrible, 0.15, 6.0, 80.0),
        ] {
            let spec = connection(quality, &levels);
            assert_eq!(spec, ConnectionSpec { loss, mean_burst, jitter_ms, ..ConnectionSpec::default() });
            assert_eq!(connection_in_force(&spec).is_null(), quality == Quality::High);
        }
    }

    #[tokio::test]
    async fn a_line_has_its_codec_its_losses_and_its_delay() {
        let line = json!({ "codec": "PCMU", "loss_pct": 5.0, "delay_ms": 400 });
        let lossy = json!({ "loss_pct": 5.0, "mean_burst": 1.0, "jitter_ms": 0.0, "delay_ms": 400.0,
            "direction": "sent" });
        let band = json!({ "band_hz": [300.0, 3400.0], "clip": null, "noise_snr_db": null, "dropouts_per_10_s": 0,
            "companding": "mu-law" });
        let (sip, socket) = (
            json!({ "sip_uri": "sip:bob@127.0.0.1:5080" }),
            json!({ "connection_type": "WEBSOCKET",
            "websocket_url": "ws://127.0.0.1:9/" }),
        );
        for (agent, audio, is_offered) in [(sip, json!(null), true), (socket, band, false)] {
            let mut settings = Settings { allow_private_agents: true, ..Settings::new("unused") };
            settings.any_host = true;
            let rows = rows_of(agent.clone(), json!({ "line": line }), json!({}));
            let prepared = rows.place(&placement_settings(), &settings).await;
            let prepared = prepared.unwrap_or_else(|obstacle| panic!("{}: {}", obstacle.code, obstacle.message));
            let behaviour = &prepared.notes["behaviour"];
            assert_eq!((&behaviour["audio"], &behaviour["connection"]), (&audio, &lossy), "{agent}");
            let codecs = prepared.placement.destination.codecs();
            assert_eq!(codecs == [Codec::Pcmu], is_offered, "{agent}: {codecs:?}");
        }
    }
}
