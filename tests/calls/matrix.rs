//! Ways of signalling, keys of media, codecs and directions in combination, with a softphone as the other side of each.

use futures_util::future::join_all;
use ringer::config::{Encryption, SrtpKeys};
use ringer::engine::EngineConfig;
use ringer_media::call::{EndReason, Opening};
use ringer_media::clip::Clip;
use ringer_media::codec::Codec;
use tempfile::TempDir;

use super::local;
use super::peers::best_share;
use super::stage::{RTP_PORTS, Stage, channels};
use super::streams::with_certificate;
use crate::peers::{Softphone, TONE_HZ};

const WORDS: &str = "Hello, this is a sentence that takes a while.";
/// Rows that are played at once.
const AT_ONCE: usize = 4;

const TRANSPORTS: [&str; 3] = ["UDP", "TCP", "TLS"];
/// Protection of the media, and the profile that tells it.
const KEYS: [(&str, &str); 3] = [("", "RTP/AVP"), ("srtp-mand", "RTP/SAVP"), ("dtls_srtp", "UDP/TLS/RTP/SAVP")];
const CODECS: [(Codec, &str); 4] = [
    (Codec::Pcmu, "PCMU/8000/1"),
    (Codec::Pcma, "PCMA/8000/1"),
    (Codec::G722, "G722/16000/1"),
    (Codec::Opus, "opus/48000/2"),
];

/// One combination: indexes of transport, keys and codec; true where the engine calls.
type Row = (usize, usize, usize, bool);

/// Returns 12 rows in which each pair of values comes.
fn pairwise() -> Vec<Row> {
    let row = |(transport, codec)| (transport, (transport + codec) % 3, codec, (transport + codec) % 2 == 0);
    (0..3).flat_map(|transport| (0..4).map(move |codec| (transport, codec))).map(row).collect()
}

/// Returns all 72 rows.
fn all() -> Vec<Row> {
    let rows = (0..3).flat_map(|transport| (0..3).map(move |keys| (transport, keys)));
    let rows = rows.flat_map(|(transport, keys)| (0..4).map(move |codec| (transport, keys, codec)));
    rows.flat_map(|(transport, keys, codec)| [true, false].map(|out| (transport, keys, codec, out))).collect()
}

#[test]
fn each_pair_of_values_comes_in_a_row() {
    let of = |(transport, keys, codec, out): Row| [transport, keys, codec, usize::from(out)];
    let rows: Vec<_> = pairwise().into_iter().map(of).collect();
    let sizes = [3, 3, 4, 2];
    for (one, other) in (0..4).flat_map(|one| (0..one).map(move |other| (one, other))) {
        for (first, second) in (0..sizes[one]).flat_map(|a| (0..sizes[other]).map(move |b| (a, b))) {
            let comes = rows.iter().any(|row| (row[one], row[other]) == (first, second));
            assert!(comes, "{one}: {first} with {other}: {second}");
        }
    }
    assert_eq!((rows.len(), all().len()), (12, 72));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_softphone_is_called_and_calls_in_each_pair_of_ways() {
    play(&if asked_for_all() { all() } else { pairwise() }).await;
}

#[expect(clippy::disallowed_methods, reason = "no setting of the product: how much is tested")]
fn asked_for_all() -> bool {
    std::env::var("RINGER_MATRIX").is_ok_and(|asked| asked == "all")
}

async fn play(rows: &[Row]) {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    for rows in rows.chunks(AT_ONCE) {
        join_all(rows.iter().map(|row| talk(&folder, *row))).await;
    }
}

/// Plays one row: both sides hear the other, by the transport, keys and codec of the row.
async fn talk(certificates: &TempDir, (transport, keys, codec, out): Row) {
    let (transport, (keys, profile), (codec, codec_name)) = (TRANSPORTS[transport], KEYS[keys], CODECS[codec]);
    let row = format!("{transport} {profile} {codec_name} {}", if out { "out" } else { "in" });
    let own = tempfile::tempdir_in(certificates).expect("the folder is writable");
    let (mut tls, trusting) = with_certificate(&own, "127.0.0.1");
    tls.roots = trusting.roots;
    let (srtp, srtp_keys) = match keys {
        "" => (Encryption::Off, SrtpKeys::Sdes),
        "dtls_srtp" => (Encryption::Required, SrtpKeys::Dtls),
        _ => (Encryption::Required, SrtpKeys::Sdes),
    };
    let sip = "udp:127.0.0.1:0,tcp:127.0.0.1:0,tls:127.0.0.1:0".parse().expect("good addresses");
    let config = EngineConfig { sip, tls, srtp, srtp_keys, ..local::config(RTP_PORTS, 10) };
    let (stage, mut calls) = Stage::with_calls(config, ringer::clock::Clock::Real).await;
    let certificates = Some(own.path());
    let phone = Softphone { codec: codec_name, keys, transport, certificates, ..Softphone::default() };
    let recorded = tempfile::tempdir().expect("the folder for temporary files is writable");
    let (report, peer) = if out {
        let peer = phone.answering();
        let mut placement = stage.placement(&peer.uri(transport), WORDS);
        placement.folder = Some(recorded.path().into());
        placement.destination.set_codecs(vec![codec]);
        placement.spec.opening = Opening::Say(WORDS.into());
        placement.spec.limits.max_duration_ms = Some(3000);
        let report = stage.call(placement).await.unwrap_or_else(|error| panic!("{row}: {error:?}"));
        (report, peer)
    } else {
        let listen = stage.engine.sip_addresses();
        let address = match transport {
            "UDP" => listen.udp,
            "TCP" => listen.tcp,
            _ => listen.tls,
        };
        let address = address.expect("it listens");
        let peer = phone.calling(&format!("sip:ringer@{address};transport={}", transport.to_lowercase()));
        let report = stage.answer_with(&mut calls, recorded.path(), WORDS, 3000, codec).await;
        (report, peer)
    };
    let log = std::fs::read_to_string(recorded.path().join("sip.log")).expect("it was written");
    assert_eq!(report.ending.reason, EndReason::MaxDuration, "{row}: {log}\n{}", peer.output());
    assert_eq!(report.peer.transport(), format!("SIP/{transport}, {profile}"), "{row}: {log}");
    assert_eq!(report.peer.codec, Some(codec.name()), "{row}: {log}");
    // baresip may send a packet before it has its keys.
    assert!(report.ending.quality.unprotected <= 2, "{row}: {}", report.ending.quality.unprotected);
    let secret = log.lines().find(|line| line.contains("inline:") && !line.contains("inline:(masked)"));
    assert_eq!(secret, None, "{row}");
    let [sent, heard] = channels(report.recording.as_deref().expect("it was recorded"));
    let hum_hz = f64::from(stage.synthesizer.tone_hz);
    let tone = best_share(&heard, f64::from(TONE_HZ));
    assert!(tone > 0.95, "{row}: the tone is what is heard: {tone}");
    assert!(best_share(&sent, hum_hz) > 0.95, "{row}: something was said");
    peer.wait_for("terminated");
    let theirs = std::fs::read(peer.heard_file().expect("baresip keeps what it heard")).expect("it is readable");
    let said = Clip::from_wav(&theirs).expect("it is a WAV file").to_16k();
    let hum = best_share(&said, hum_hz);
    assert!(hum > 0.9, "{row}: baresip heard {hum}");
}
