//! Synthesizers that send something else than they were asked for.

use std::process::Command;
use std::sync::Arc;

use futures_util::StreamExt;
use ringer_media::clip::write_wav;
use ringer_media::seed::Seed;
use serde_json::json;
use tokio::sync::mpsc;

use super::*;
use crate::fallback::SynthesizerPair;
use crate::speech::EmbeddedSpeech;
use crate::{Spoken, Synthesizer, VoiceWanted, whole_speech};

/// Returns a server that says these pieces for every text.
async fn says(form: Form, kind: &'static str, pieces: Vec<Vec<u8>>) -> Server {
    let pieces: Arc<[Vec<u8>]> = pieces.into();
    Server::start(move |mut socket| {
        let pieces = pieces.clone();
        async move {
            if form == Form::Http {
                request(&mut socket).await;
                head(&mut socket, 200, kind).await;
                for piece in pieces.iter() {
                    chunk(&mut socket, piece).await;
                }
                chunk(&mut socket, b"").await;
                return;
            }
            let mut stream = accept(socket).await;
            let _ = stream.next().await;
            for piece in pieces.iter() {
                let _ = stream.send(Message::binary(piece.clone())).await;
            }
            tell(&mut stream, json!({"type": "done"})).await;
            while let Some(Ok(_)) = stream.next().await {}
        }
    })
    .await
}

fn synthesizer(form: Form, server: &Server) -> RemoteSynthesizer {
    let remote = if form == Form::Http { server.http() } else { server.ws() };
    let voices = RemoteVoices { default: "plain".into(), named: Default::default(), natural_wpm: 170.0 };
    RemoteSynthesizer::new(form, Remote { answer: PATIENCE, ..remote }, voices).expect("TLS is there")
}

/// Returns the speech made of bytes that come in pieces of these lengths, the last of them again and again.
async fn synthesize(form: Form, kind: &'static str, bytes: &[u8], lengths: &[usize]) -> Result<Arc<[i16]>, Failure> {
    let (mut pieces, mut rest, mut lengths) = (Vec::new(), bytes, lengths.iter().peekable());
    while !rest.is_empty() {
        let length = if lengths.len() > 1 { lengths.next() } else { lengths.peek().copied() };
        let (piece, later) = rest.split_at(length.copied().unwrap_or(1000).min(rest.len()));
        pieces.push(piece.to_vec());
        rest = later;
    }
    let server = says(form, kind, pieces).await;
    let speech = synthesizer(form, &server);
    let voice = speech.voice(&VoiceWanted::of("en")).expect("there is a voice");
    whole_speech(&speech, "Hello there.", &voice).await
}

/// Returns a second of 1000 Hz, as ffmpeg writes it.
fn file(name: &str, arguments: &[&str]) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    let input = ["-hide_banner", "-loglevel", "error", "-f", "lavfi", "-i", "sine=f=1000:d=1:r=24000"];
    let done = Command::new("ffmpeg").args(input).args(arguments).arg(&path).status();
    assert!(done.expect("the package ffmpeg is installed").success(), "ffmpeg writes {name}");
    std::fs::read(&path).expect("ffmpeg wrote a file")
}

/// Returns the share of the power that a tone of 1000 Hz has, but for the ends.
fn purity(pcm: &[i16]) -> f64 {
    let part = &pcm[800..pcm.len() - 800];
    let turn = |n: usize| std::f64::consts::TAU * n as f64 / 16.0;
    let sum = |of: fn(f64) -> f64| part.iter().enumerate().map(|(n, &x)| f64::from(x) * of(turn(n))).sum::<f64>();
    let power: f64 = part.iter().map(|&x| f64::from(x).powi(2)).sum();
    2.0 * sum(f64::sin).hypot(sum(f64::cos)).powi(2) / part.len() as f64 / power
}

/// Returns a WAV file whose sizes were never filled in.
fn endless(mut wav: Vec<u8>) -> Vec<u8> {
    wav[4..8].fill(0xff);
    wav[40..44].fill(0xff);
    wav
}

#[tokio::test]
async fn files_are_said_as_what_they_are() {
    let wav = |rate_hz: u32| write_wav(rate_hz, 1, &tone(1000.0, rate_hz as f32, rate_hz as usize / 2));
    let stereo: Vec<i16> = tone(1000.0, 48_000.0, 48_000).into_iter().flat_map(|sample| [sample, sample]).collect();
    let plain = pcm::to_bytes(&tone(1000.0, 24_000.0, 24_000));
    for (name, bytes, kind) in [
        ("samples", plain.clone(), "audio/pcm"),
        ("samples with an odd byte behind", [&plain[..], &[1]].concat(), "application/octet-stream"),
        ("samples without a name", plain.clone(), ""),
        ("WAV", write_wav(16_000, 1, &tone(1000.0, 16_000.0, 16_000)), "audio/pcm"),
        ("WAV of another rate and more channels", write_wav(48_000, 2, &stereo), "application/octet-stream"),
        ("WAV without sizes", endless(write_wav(8000, 1, &tone(1000.0, 8000.0, 8000))), "audio/wav"),
        ("two WAV files", [wav(16_000), wav(24_000)].concat(), "audio/wav"),
        ("two WAV files without sizes", [endless(wav(24_000)), endless(wav(16_000))].concat(), "audio/wav"),
        ("float", file("f.wav", &["-c:a", "pcm_f32le"]), "audio/wav"),
        ("MP3", file("a.mp3", &["-c:a", "libmp3lame"]), "audio/pcm"),
        ("MP3 without a tag", file("a.mp3", &["-c:a", "libmp3lame", "-id3v2_version", "0"]), "audio/mpeg"),
        ("AAC", file("a.aac", &["-c:a", "aac"]), "audio/aac"),
        ("FLAC", file("a.flac", &["-c:a", "flac"]), "audio/pcm"),
        ("Opus", file("a.opus", &["-c:a", "libopus"]), "audio/ogg"),
        ("Vorbis", file("a.ogg", &["-c:a", "libvorbis"]), "audio/pcm"),
        ("MP4", file("a.m4a", &["-c:a", "aac"]), "text/plain"),
    ] {
        for form in [Form::Http, Form::WebSocket] {
            for lengths in [&[usize::MAX][..], &[1, 2, 9, 4001], &[44, 3, 1777]] {
                let pcm = synthesize(form, kind, &bytes, lengths).await;
                let pcm = pcm.unwrap_or_else(|failure| panic!("{name}, {form:?}: {failure:?}"));
                assert!(pcm.len().abs_diff(16_000) < 1500, "{name}, {form:?}, {lengths:?}: {} samples", pcm.len());
                let purity = purity(&pcm);
                // The tone may be off by a part of a sample where two rates meet.
                let least = if name.starts_with("two") { 0.94 } else { 0.97 };
                assert!(purity > least, "{name}, {form:?}, {lengths:?}: {purity:.3} of it is the tone");
            }
        }
    }
}

#[tokio::test]
async fn a_rate_that_is_told_beside_samples_counts() {
    let stereo: Vec<i16> = tone(1000.0, 16_000.0, 16_000).into_iter().flat_map(|sample| [sample, sample]).collect();
    for (kind, pcm) in [
        ("audio/pcm; rate=16000", tone(1000.0, 16_000.0, 16_000)),
        ("audio/L16;rate=48000", tone(1000.0, 48_000.0, 48_000)),
        ("audio/pcm;rate=16000;channels=2", stereo),
        ("audio/pcm;rate=1", tone(1000.0, 24_000.0, 24_000)),
    ] {
        let said = synthesize(Form::Http, kind, &pcm::to_bytes(&pcm), &[4001]).await.expect(kind);
        assert!(said.len().abs_diff(16_000) < 100 && purity(&said) > 0.97, "{kind}: {} samples", said.len());
    }
}

#[tokio::test]
async fn nothing_is_said_of_what_is_no_speech() {
    let mut random = Seed(9).stream("bytes");
    let mut bytes = |count: usize| (0..count).map(|_| random.bits() as u8).collect::<Vec<u8>>();
    let webm = [&b"\x1a\x45\xdf\xa3"[..], &bytes(9000)].concat();
    let mp3 = file("a.mp3", &["-c:a", "libmp3lame"]);
    let mut broken = mp3.clone();
    broken.truncate(mp3.len() / 2);
    let adpcm = file("a.wav", &["-c:a", "adpcm_ima_wav"]);
    let trailing = [write_wav(24_000, 1, &[9; 2400]), bytes(9000)].concat();
    let shifted = [&[7][..], &pcm::to_bytes(&loud())].concat();
    let json = b"{\"error\":{\"message\":\"sesame: the voice is not known\",\"type\":\"invalid\"}}".to_vec();
    for (bytes, kind, expect) in [
        (json, "audio/pcm", "the synthesizer sent JSON instead of sound"),
        (b"<html>Bad gateway</html>".to_vec(), "audio/pcm", "the synthesizer sent HTML instead of sound"),
        (b"Quota exceeded".to_vec(), "", "the synthesizer sent text instead of sound"),
        (webm, "audio/pcm", "the synthesizer sent a WebM or Matroska file instead of sound that is read"),
        (broken, "audio/pcm", "the synthesizer sent an MP3 file that could not be used: "),
        (b"OggS and then nothing of it".repeat(9), "", "the synthesizer sent an Ogg file that could not be used: "),
        (adpcm, "audio/pcm", "the synthesizer sent a WAV file that could not be used: WAV encoding 0x0011"),
        (trailing, "audio/wav", "the synthesizer sent a WAV file that could not be used: the WAV file goes on"),
        (bytes(48_000), "audio/pcm", "the synthesizer sent noise: "),
        (shifted, "audio/pcm", "the synthesizer sent noise: "),
        (
            pcm::to_bytes(&tone(500.0, 24_000.0, 24_000)),
            "audio/mpeg",
            "the synthesizer sent bytes that are not the audio/mpeg",
        ),
        (Vec::new(), "audio/pcm", "the synthesizer sent no speech"),
    ] {
        for form in [Form::Http, Form::WebSocket] {
            if form == Form::WebSocket && expect.contains("not the audio/mpeg") {
                continue;
            }
            for lengths in [&[usize::MAX][..], &[1, 1, 1000]] {
                let failure = synthesize(form, kind, &bytes, lengths).await.expect_err(expect);
                assert_eq!(failure.code, "synthesizer_failed", "{form:?}: {failure:?}");
                if !(form == Form::WebSocket && kind == "audio/wav") {
                    assert!(failure.message.starts_with(expect), "{form:?}, {lengths:?}: {failure:?}");
                }
                assert!(!failure.message.contains("sesame"), "{failure:?}");
            }
        }
    }
}

/// Returns speech-like samples whose low bytes are anything: off by a byte they are noise.
fn loud() -> Vec<i16> {
    let mut random = Seed(4).stream("low bytes");
    tone(300.0, 24_000.0, 24_000).into_iter().map(|sample| sample ^ (random.bits() & 0xff) as i16).collect()
}

#[tokio::test]
async fn samples_that_only_begin_like_something_else_are_said() {
    let speech = tone(1000.0, 24_000.0, 24_000);
    for start in [[-1, -1], [-5, -28_000], [-1025, 25_744], [0x4449, 0x0333], [0x7b, 0x22]] {
        let pcm = [&start[..], &speech].concat();
        let said =
            synthesize(Form::Http, "audio/pcm", &pcm::to_bytes(&pcm), &[1, 1, 1, 500]).await.expect("it is speech");
        assert!(said.len().abs_diff(16_000) < 400 && purity(&said) > 0.97, "{start:?}: {} samples", said.len());
    }
}

#[tokio::test]
async fn another_synthesizer_speaks_instead_and_that_is_told() {
    let server = says(Form::Http, "audio/pcm", vec![b"{\"error\":\"no credit\"}".to_vec()]).await;
    let embedded = EmbeddedSpeech::new().expect("there is a temporary folder");
    let pair = SynthesizerPair::new(Arc::new(synthesizer(Form::Http, &server)), Arc::new(embedded));
    let voice = pair.voice(&VoiceWanted::of("en")).expect("there is a voice");
    let (out, mut parts) = mpsc::channel(16);
    let result = pair.synthesize("Hello there.", &voice, out).await;
    assert_eq!(result, Ok(()));
    let failure =
        Failure { code: "synthesizer_failed", message: "the synthesizer sent JSON instead of sound".to_owned() };
    assert_eq!(parts.recv().await, Some(Spoken::Fallback(failure)));
    assert!(matches!(parts.recv().await, Some(Spoken::Audio(pcm)) if pcm.len() > 8000));
}
