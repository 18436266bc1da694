//! Figures of the engine's own part in a call, and the bounds within which they can be relied on.

use ringer_media::call::Ending;
use ringer_media::codec::opus::About;
use ringer_media::connection::Impairment;
use ringer_media::frame::{FRAME, PER_MS};
use ringer_media::recording::WAV_HEADER;
use ringer_model::result::{EchoQuality, EngineQuality, OpusLibrary, SimulatedLoss};
use serde_json::{Value, json};

/// Largest sending time error of a trusted call, 99th percentile.
const TRUSTED_PACING_MS: f64 = 5.0;
/// Share of frames that a trusted call may have sent late.
const TRUSTED_LATE_FRAMES: f64 = 0.001;
/// Frames in a row after which time that was lost cannot be made good.
const TRUSTED_GAP_FRAMES: u64 = 3;
/// Largest drift of the machine's clocks during a trusted call: one frame, in milliseconds.
const TRUSTED_SLIP_MS: f64 = 20.0;
/// Share of a trusted call that may be concealed.
const TRUSTED_CONCEALED: f64 = 0.01;

/// Returns the losses that the asked-for bad connection made, percent to three decimals.
fn simulated_loss(done: Impairment) -> SimulatedLoss {
    let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
    SimulatedLoss { sent: rounded(done.sent.loss_pct), received: rounded(done.received.loss_pct) }
}

/// Returns the losses and jitter that the asked-for bad connection made, to three decimals.
pub(super) fn impairment(done: Impairment) -> Value {
    let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
    let Impairment { sent, received } = done;
    json!({
        "sent_loss_pct": rounded(sent.loss_pct),
        "sent_mean_burst": rounded(sent.mean_burst),
        "sent_jitter_ms": rounded(sent.jitter_ms),
        "received_loss_pct": rounded(received.loss_pct),
        "received_mean_burst": rounded(received.mean_burst),
        "received_jitter_ms": rounded(received.jitter_ms),
    })
}

/// Returns the figures of the engine's own part, and whether they can be relied on; `None` for a call that never
/// connected. `recording_bytes`: size of the stereo file, when there is one.
pub(super) fn quality(ending: &Ending, recording_bytes: Option<u64>) -> Option<EngineQuality> {
    if !ending.connected {
        return None;
    }
    let quality = &ending.quality;
    let untrusted_reason = untrusted_reason(ending, recording_bytes);
    Some(EngineQuality {
        pacing_p99_ms: (quality.pacing_p99_ms * 1000.0).round() / 1000.0,
        late_frames: quality.late_frames as i64,
        lost_packets: quality.lost_packets as i64,
        simulated_loss_pct: quality.impairment.map(simulated_loss),
        concealed_ms: quality.concealed_ms as i64,
        unknown_payload_type_packets: quality.unknown_payload_type as i64,
        wrong_length_packets: quality.wrong_length as i64,
        foreign_source_packets: quality.foreign_source as i64,
        foreign_address_packets: quality.foreign_address as i64,
        malformed_packets: quality.malformed as i64,
        unprotected_packets: quality.unprotected as i64,
        trusted: untrusted_reason.is_none(),
        untrusted_reason,
        echo: quality.echo.map(|echo| EchoQuality { delay_ms: tenths(echo.delay_ms), erl_db: tenths(echo.erl_db) }),
        opus: ending.opus.clone().map(opus_library),
    })
}

fn opus_library(About { name, version, fallback_reason }: About) -> OpusLibrary {
    OpusLibrary { name: name.to_owned(), version, fallback_reason }
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// Returns the reason why a call's figures cannot be relied on; `None` when they can. `recording_bytes`: size of the
/// stereo file, when there is one.
fn untrusted_reason(ending: &Ending, recording_bytes: Option<u64>) -> Option<String> {
    let quality = &ending.quality;
    let frames = quality.sent_frames + quality.late_frames;
    let duration_ms = ending.samples as f64 / PER_MS as f64;
    let (late, concealed_ms, slip_ms) = (quality.late_frames, quality.concealed_ms, quality.clock_slip_ms);
    if quality.pacing_p99_ms > TRUSTED_PACING_MS {
        let p99_ms = tenths(quality.pacing_p99_ms);
        return Some(format!("pacing_p99_ms is {p99_ms}, more than {TRUSTED_PACING_MS}"));
    }
    if late as f64 > TRUSTED_LATE_FRAMES * frames as f64 {
        return Some(format!("late_frames are {late} of {frames}, more than {} %", 100.0 * TRUSTED_LATE_FRAMES));
    }
    if quality.longest_gap_frames > TRUSTED_GAP_FRAMES {
        let gap = quality.longest_gap_frames;
        return Some(format!("the clock slipped: {gap} frames in a row were not sent, more than {TRUSTED_GAP_FRAMES}"));
    }
    if slip_ms > TRUSTED_SLIP_MS {
        let slip_ms = tenths(slip_ms);
        return Some(format!("the clock slipped: the machine's time was set by {slip_ms} ms, or it slept"));
    }
    if concealed_ms as f64 > TRUSTED_CONCEALED * duration_ms {
        return Some(format!("concealed_ms is {concealed_ms}, more than {} % of the call", 100.0 * TRUSTED_CONCEALED));
    }
    if quality.recording_dropped > 0 {
        return Some(format!("the recording lacks {} frames", quality.recording_dropped));
    }
    let Some(bytes) = recording_bytes else { return Some("there is no recording".into()) };
    let recorded = bytes.saturating_sub(WAV_HEADER as u64) as i64 / 4;
    let is_whole = (recorded - ending.samples).abs() <= FRAME as i64;
    (!is_whole).then(|| format!("the recording has {recorded} samples, the call {}", ending.samples))
}

#[cfg(test)]
mod tests {
    use ringer_media::call::{EndReason, Quality};

    use super::*;

    #[test]
    fn only_a_clean_call_is_trusted() {
        let clean = Quality { pacing_p99_ms: 0.7, sent_frames: 5000, ..Quality::default() };
        let samples = 5000 * FRAME as i64;
        let whole = Some(WAV_HEADER as u64 + 4 * samples as u64);
        let gap = Quality { late_frames: 4, ..clean };
        for (quality, bytes, expect) in [
            (clean, whole, None),
            (Quality { late_frames: 5, ..clean }, whole, None),
            (Quality { late_frames: 6, ..clean }, whole, Some("late_frames are 6 of 5006, more than 0.1 %")),
            (Quality { pacing_p99_ms: 5.1, ..clean }, whole, Some("pacing_p99_ms is 5.1, more than 5")),
            // The first failure is reported.
            (Quality { pacing_p99_ms: 5.1, late_frames: 6, ..clean }, None, Some("pacing_p99_ms is 5.1, more than 5")),
            (Quality { longest_gap_frames: 3, ..gap }, whole, None),
            (
                Quality { longest_gap_frames: 4, ..gap },
                whole,
                Some("the clock slipped: 4 frames in a row were not sent, more than 3"),
            ),
            (Quality { clock_slip_ms: 20.0, ..clean }, whole, None),
            (
                Quality { clock_slip_ms: 1000.04, ..clean },
                whole,
                Some("the clock slipped: the machine's time was set by 1000 ms, or it slept"),
            ),
            (Quality { concealed_ms: 1000, ..clean }, whole, None),
            (Quality { concealed_ms: 1001, ..clean }, whole, Some("concealed_ms is 1001, more than 1 % of the call")),
            (Quality { recording_dropped: 1, ..clean }, whole, Some("the recording lacks 1 frames")),
            (clean, whole.map(|bytes| bytes - 4 * 320), None),
            (clean, whole.map(|bytes| bytes - 4 * 321), Some("the recording has 1599679 samples, the call 1600000")),
            (clean, None, Some("there is no recording")),
        ] {
            let ending = ending(samples, quality);
            assert_eq!(untrusted_reason(&ending, bytes).as_deref(), expect, "{quality:?} {bytes:?}");
        }
    }

    fn ending(samples: i64, quality: Quality) -> Ending {
        let reason = EndReason::DhEndCall;
        Ending { reason, connected: true, samples, remote: None, fault: None, other_spoke: true, quality, opus: None }
    }

    #[test]
    fn an_echo_is_in_the_figures_and_costs_no_trust() {
        use ringer_media::echo::EchoFigures;

        let bytes = Some(WAV_HEADER as u64 + 4 * 16_000);
        let echo = |echo| Quality { pacing_p99_ms: 0.7, sent_frames: 50, echo, ..Quality::default() };
        for (given, expect) in [
            (None, None),
            (
                Some(EchoFigures { delay_ms: 240.04, erl_db: 18.06 }),
                Some(EchoQuality { delay_ms: 240.0, erl_db: 18.1 }),
            ),
        ] {
            let measured = quality(&ending(16_000, echo(given)), bytes).expect("it was connected");
            assert_eq!((measured.echo, measured.trusted, measured.untrusted_reason), (expect, true, None));
        }
        let never = Ending { connected: false, ..ending(0, echo(None)) };
        assert_eq!(quality(&never, bytes), None);
    }

    #[test]
    fn what_was_not_heard_is_in_the_figures() {
        let unheard = Quality {
            unknown_payload_type: 1,
            wrong_length: 2,
            foreign_source: 3,
            foreign_address: 4,
            malformed: 5,
            unprotected: 6,
            ..Quality::default()
        };
        let figures = json!(quality(&ending(16_000, unheard), None).expect("it was connected"));
        let names =
            ["unknown_payload_type", "wrong_length", "foreign_source", "foreign_address", "malformed", "unprotected"];
        for (count, name) in (1..).zip(names) {
            assert_eq!(figures[format!("{name}_packets")], json!(count), "{figures}");
        }
        // A result that was kept before these were counted can still be read.
        let kept =
            json!({ "pacing_p99_ms": 0.7, "late_frames": 0, "lost_packets": 0, "concealed_ms": 0, "trusted": true });
        let read: EngineQuality = serde_json::from_value(kept).expect("a quality");
        assert_eq!((read.unprotected_packets, read.untrusted_reason), (0, None));
    }

    #[test]
    fn the_library_of_opus_is_told() {
        let fallback_reason = Some("libopus.so.0 cannot be opened".to_owned());
        let opus = Some(About { name: "ropus", version: "0.12.18".to_owned(), fallback_reason });
        let call = Ending { opus, ..ending(16_000, Quality::default()) };
        let figures = json!(quality(&call, None).expect("it was connected"));
        let expect = json!({
            "name": "ropus", "version": "0.12.18", "fallback_reason": "libopus.so.0 cannot be opened",
        });
        assert_eq!(figures["opus"], expect);
        let other = json!(quality(&ending(16_000, Quality::default()), None).expect("it was connected"));
        assert_eq!(other["opus"], Value::Null);
    }

    #[test]
    fn a_bad_connection_is_told_as_measured() {
        use ringer_media::connection::Measured;

        let sent = Measured { loss_pct: 15.11114, mean_burst: 6.0, jitter_ms: 104.9996 };
        let notes = impairment(Impairment { sent, received: Measured::default() });
        let expect = json!({
            "sent_loss_pct": 15.111, "sent_mean_burst": 6.0, "sent_jitter_ms": 105.0,
            "received_loss_pct": 0.0, "received_mean_burst": 0.0, "received_jitter_ms": 0.0,
        });
        assert_eq!(notes, expect);
        let impaired = Quality { impairment: Some(Impairment { sent, received: sent }), ..Quality::default() };
        let figures = quality(&ending(16_000, impaired), None).expect("it was connected");
        assert_eq!(figures.simulated_loss_pct, Some(SimulatedLoss { sent: 15.111, received: 15.111 }));
        assert_eq!(figures.lost_packets, 0, "the network lost none");
    }
}
