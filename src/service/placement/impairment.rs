//! Microphone and connection between the Digital Human and the agent, by their named levels.

use ringer_base::config::{Audio, Connection};
use ringer_media::connection::ConnectionSpec;
use ringer_media::impair::{AudioQuality, Clip};
use ringer_model::digital_human::Quality;
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
    }
}

/// Returns the numbers of a bad microphone, for the result; null for a good one.
pub(super) fn audio_in_force(quality: &AudioQuality) -> Value {
    let AudioQuality { band_hz, clip, noise_snr_db, dropouts } = quality;
    let clip = match clip {
        Clip::None => Value::Null,
        Clip::Soft(dbfs) => json!({ "kind": "soft", "dbfs": dbfs }),
        Clip::Hard(dbfs) => json!({ "kind": "hard", "dbfs": dbfs }),
    };
    let numbers =
        json!({ "band_hz": band_hz, "clip": clip, "noise_snr_db": noise_snr_db, "dropouts_per_10_s": dropouts });
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
    ConnectionSpec { loss, mean_burst: level.mean_burst, jitter_ms }
}

/// Returns the numbers of a bad connection, for the result; null for a good one.
pub(super) fn connection_in_force(spec: &ConnectionSpec) -> Value {
    let ConnectionSpec { loss, mean_burst, jitter_ms } = spec;
    let numbers = || json!({ "loss_pct": 100.0 * loss, "mean_burst": mean_burst, "jitter_ms": jitter_ms });
    if spec.is_clear() { Value::Null } else { numbers() }
}

#[cfg(test)]
mod tests {
    use ringer_base::config::Behaviour;

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
            assert_eq!(spec, ConnectionSpec { loss, mean_burst, jitter_ms });
            assert_eq!(connection_in_force(&spec).is_null(), quality == Quality::High);
        }
    }
}
