//! Words to speech.

use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use parking_lot::Mutex;
use ringer_media::level::{active_level_dbov, gain};
use ringer_media::resample::resample_whole;
use ringer_media::seed::Seed;
use serde_json::json;
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use super::*;
use crate::speech::EmbeddedSpeech;
use crate::{Spoken, Synthesizer, VoiceWanted, whole_speech};

const TEXT: &str = "Hello, I am calling because my last electricity bill was much higher than I expected. I have \
    checked the meter twice and the number on the paper does not match what I see. Could you please look at my account?";

fn voices() -> RemoteVoices {
    let named = [("en-british-female", "Emma"), ("en-male", "Tom"), ("es", "Lucia"), ("female", "Alloy")];
    let named = named.map(|(key, name)| (key.to_owned(), name.to_owned())).into();
    RemoteVoices { default: "plain".into(), named, natural_wpm: 170.0 }
}

fn voice_wanted(language: &str, accent: Option<&str>, gender: Option<&str>) -> VoiceWanted {
    VoiceWanted {
        accent: accent.map(Into::into),
        gender: gender.map(Into::into),
        seed: Seed(3),
        ..VoiceWanted::of(language)
    }
}

fn synthesizer(form: Form, server: &Server, answer: Duration) -> RemoteSynthesizer {
    let remote = if form == Form::Http { server.http() } else { server.ws() };
    RemoteSynthesizer::new(form, Remote { answer, ..remote }, voices()).expect("TLS is there")
}

#[tokio::test]
async fn wishes_pick_the_servers_voice_and_a_substitution_is_told() {
    let server = Server::start(|_| async {}).await;
    let speech = synthesizer(Form::Http, &server, PATIENCE);
    let check = |language, accent, gender, id: &str, substituted: bool| {
        let voice = speech.voice(&voice_wanted(language, accent, gender)).expect("there is always a voice");
        assert_eq!(
            (voice.id.as_str(), voice.substituted.is_some()),
            (id, substituted),
            "{language} {accent:?} {gender:?}"
        );
    };
    check("en", Some("british"), Some("female"), "remote:Emma", false);
    check("en", None, Some("male"), "remote:Tom", false);
    check("en", Some("irish"), Some("male"), "remote:Tom", true);
    check("de", None, Some("female"), "remote:Alloy", false);
    check("es", None, None, if is_woman() { "remote:Alloy" } else { "remote:Lucia" }, false);
    check("es", None, Some("male"), "remote:Lucia", true);
    check("fr", None, Some("male"), "remote:plain", true);
    let custom = VoiceWanted { custom_voice_id: Some("own".into()), ..voice_wanted("de", None, None) };
    assert_eq!(speech.voice(&custom).expect("it is passed on").id, "remote:own");
}

/// A server that has some voices is asked for one that a caller names, once where it has it.
#[tokio::test]
async fn a_named_voice_is_looked_for_before_a_call() {
    for form in [Form::Http, Form::WebSocket] {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let notes = asked.clone();
        let server = Server::start(move |mut socket| {
            let notes = notes.clone();
            async move {
                let order = match form {
                    Form::Http => request(&mut socket).await.1,
                    Form::WebSocket => return answer_ws(socket, &notes).await,
                };
                let order: Value = serde_json::from_slice(&order).expect("it is JSON");
                let status = note_voice(&order, &notes);
                head(&mut socket, status, "audio/pcm").await;
                chunk(&mut socket, b"").await;
            }
        })
        .await;
        let speech = synthesizer(form, &server, PATIENCE);
        let check = async |id: &str| {
            let wanted = VoiceWanted { custom_voice_id: Some(id.into()), ..voice_wanted("de", None, None) };
            let voice = speech.voice(&wanted).expect("it is passed on");
            speech.check(&voice).await.map_err(|failure| failure.code)
        };
        assert_eq!(check("own").await, Ok(()), "{form:?}");
        assert_eq!(check("own").await, Ok(()), "{form:?}");
        assert_eq!(check("nobody").await, Err("unknown_voice"), "{form:?}");
        if form == Form::Http {
            assert_eq!(check("busy").await, Ok(()), "who is busy says nothing of the voice");
        }
        assert_eq!(speech.status(), Status::Ok, "a caller's mistake is no fault of the server");
        assert_eq!(asked.lock()[..2], ["own", "nobody"], "{form:?}");
    }
}

/// Notes the voice of an order, and returns the status of its answer.
fn note_voice(order: &Value, notes: &Mutex<Vec<String>>) -> u16 {
    let voice = order["voice"].as_str().unwrap_or_default();
    notes.lock().push(voice.to_owned());
    match voice {
        "own" => 200,
        "busy" => 429,
        _ => 404,
    }
}

async fn answer_ws(socket: TcpStream, notes: &Mutex<Vec<String>>) {
    let mut stream = accept(socket).await;
    let order = stream.next().await.expect("it asks").expect("it is whole").into_text().expect("it is text");
    let order = serde_json::from_str(&order).expect("it is JSON");
    match note_voice(&order, notes) {
        200 => drop(stream.send(Message::binary(vec![0; 960])).await),
        _ => tell(&mut stream, json!({"type": "error"})).await,
    }
}

fn is_woman() -> bool {
    crate::voice::is_female(&voice_wanted("es", None, None))
}

/// Checks that the first piece of speech is taken before the server sends the second; says how it went on.
async fn first_before_last(form: Form, header: &'static [u8]) {
    let heard = Arc::new(Notify::new());
    let waits = heard.clone();
    let server = Server::start(move |mut socket| {
        let waits = waits.clone();
        async move {
            let pcm = tone(1000.0, 24_000.0, 24_000);
            let (first, rest) = pcm.split_at(7001);
            // Cut inside a sample.
            let (first, rest) = ([header, &pcm::to_bytes(first)].concat(), pcm::to_bytes(rest));
            let (rest, odd) = (&rest[1..], &rest[..1]);
            if form == Form::Http {
                let (head_text, body) = request(&mut socket).await;
                assert!(
                    head_text.starts_with("post /v1/audio/speech") && head_text.contains("bearer sesame"),
                    "{head_text}"
                );
                let body: Value = serde_json::from_slice(&body).expect("it is JSON");
                assert_eq!(
                    (&body["response_format"], &body["model"], &body["voice"]),
                    (&json!("pcm"), &json!("m1"), &json!("Tom"))
                );
                head(&mut socket, 200, "audio/pcm").await;
                chunk(&mut socket, &[&first[..], odd].concat()).await;
                waits.notified().await;
                chunk(&mut socket, rest).await;
                chunk(&mut socket, b"").await;
            } else {
                let mut stream = accept(socket).await;
                let order =
                    stream.next().await.expect("it asks").expect("it is whole").into_text().expect("it is text");
                assert!(order.contains("\"sample_rate\":24000") && order.contains("\"voice\":\"Tom\""), "{order}");
                let _ = stream.send(Message::binary([&first[..], odd].concat())).await;
                waits.notified().await;
                let _ = stream.send(Message::binary(rest.to_vec())).await;
                tell(&mut stream, json!({"type": "done"})).await;
                while let Some(Ok(_)) = stream.next().await {}
            }
        }
    })
    .await;
    let speech = synthesizer(form, &server, PATIENCE);
    let voice = speech.voice(&voice_wanted("en", None, Some("male"))).expect("there is a voice");
    let (out, mut parts) = mpsc::channel(4);
    let listening = async {
        let mut all = Vec::new();
        while let Some(Spoken::Audio(pcm)) = timeout(PATIENCE, parts.recv()).await.expect("in time") {
            heard.notify_one();
            all.push(pcm.to_vec());
        }
        all
    };
    let (result, pieces) = tokio::join!(speech.synthesize("A tone.", &voice, out), listening);
    assert_eq!(result, Ok(()), "{form:?}");
    assert!(pieces.len() >= 2 && pieces[0].len() >= 1600, "{form:?}: {} pieces", pieces.len());
    let pcm = pieces.concat();
    assert!(pcm.len().abs_diff(16_000) <= 40, "{form:?}: {} samples", pcm.len());
    // Still the tone: 1000 Hz at 16 kHz repeats each 16 samples; the gain moves slowly.
    let apart = pcm[200..15_000].iter().zip(&pcm[216..]).map(|(a, b)| (i32::from(*a) - i32::from(*b)).abs()).max();
    assert!(apart.is_some_and(|apart| apart <= 12), "{form:?}: {apart:?}");
}

#[tokio::test]
async fn the_first_words_come_before_the_last_are_made() {
    let wav =
        b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0\x01\0\xc0\x5d\0\0\x80\xbb\0\0\x02\0\x10\0data\xff\xff\xff\xff";
    for header in [&b""[..], wav] {
        first_before_last(Form::Http, header).await;
        first_before_last(Form::WebSocket, header).await;
    }
}

/// True if the server sees the connection end within `limit` after the future is dropped.
async fn is_cut_within(form: Form, limit: Duration) -> bool {
    let (ended, mut over) = mpsc::channel(1);
    let server = Server::start(move |mut socket| {
        let ended = ended.clone();
        async move {
            let speech = pcm::to_bytes(&tone(1000.0, 24_000.0, 12_000));
            if form == Form::Http {
                request(&mut socket).await;
                head(&mut socket, 200, "audio/pcm").await;
                chunk(&mut socket, &speech).await;
                wait_until_gone(&mut socket).await;
            } else {
                let mut stream = accept(socket).await;
                let _ = stream.send(Message::binary(speech)).await;
                while let Some(Ok(_)) = stream.next().await {}
            }
            let _ = ended.send(()).await;
        }
    })
    .await;
    let speech = synthesizer(form, &server, PATIENCE);
    let voice = speech.voice(&voice_wanted("en", None, Some("male"))).expect("there is a voice");
    let (out, mut parts) = mpsc::channel(4);
    {
        let speaking = speech.synthesize("A tone.", &voice, out);
        tokio::pin!(speaking);
        tokio::select! {
            result = &mut speaking => panic!("it was to wait: {result:?}"),
            part = timeout(PATIENCE, parts.recv()) => assert!(matches!(part, Ok(Some(Spoken::Audio(_))))),
        }
    }
    timeout(limit, over.recv()).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_in_ends_the_connection_within_a_tick() {
    for form in [Form::Http, Form::WebSocket] {
        // More than one try: a busy machine may hold one up, the code cannot make one faster than it is.
        let mut met = None;
        for limit_ms in [1, 2, 5, 10, 20, 20, 20, 20] {
            if is_cut_within(form, Duration::from_millis(limit_ms)).await {
                met = Some(limit_ms);
                break;
            }
        }
        println!("{form:?}: the server sees the end within {met:?} ms of the cut");
        assert!(met.is_some(), "{form:?}: the connection is still there after a tick");
    }
}

/// Returns a server that says `pcm` (24 kHz) for every text.
async fn says(pcm: Vec<i16>) -> Server {
    let bytes: Arc<[u8]> = pcm::to_bytes(&pcm).into();
    Server::start(move |mut socket| {
        let bytes = bytes.clone();
        async move {
            request(&mut socket).await;
            head(&mut socket, 200, "audio/pcm").await;
            for piece in bytes.chunks(4801) {
                chunk(&mut socket, piece).await;
            }
            chunk(&mut socket, b"").await;
        }
    })
    .await
}

#[tokio::test]
async fn the_level_moves_a_decibel_a_second_and_the_next_text_has_it() {
    let embedded = EmbeddedSpeech::new().expect("there is a temporary folder");
    let voice = embedded.voice(&voice_wanted("en", None, Some("male"))).expect("flite has a voice");
    let mut soft = whole_speech(&embedded, TEXT, &voice).await.expect("flite is installed").to_vec();
    // Soft enough that no peak is limited while the gain is looked at.
    gain(&mut soft, -4.0);
    let silence = vec![0; 8000];
    let server = says(resample_whole(&[&silence, &soft[..], &silence].concat(), 16_000, 24_000)).await;
    let speech = synthesizer(Form::Http, &server, PATIENCE);
    let voice = speech.voice(&voice_wanted("en", None, Some("male"))).expect("there is a voice");
    let first = whole_speech(&speech, TEXT, &voice).await.expect("it is said");
    assert!(
        first.len().abs_diff(soft.len()) < 2000,
        "{} of {}: silence at the ends is removed",
        first.len(),
        soft.len()
    );
    // Both begin with the first sound, 10 ms before it.
    let from = |pcm: &[i16]| pcm.iter().position(|sample| sample.unsigned_abs() > 100).expect("there is sound");
    let (a, b) = (&soft[from(&soft)..], &first[from(&first)..]);
    let power = |pcm: &[i16]| pcm.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>();
    let gains: Vec<Option<f64>> = a
        .chunks_exact(1600)
        .zip(b.chunks_exact(1600))
        .map(|(a, b)| (power(a) > 1600.0 * 9e4).then(|| 10.0 * (power(b) / power(a)).log10()))
        .collect();
    let moved = |pair: &[Option<f64>]| Some((pair[10]? - pair[0]?).abs());
    let most = gains.windows(11).filter_map(moved).fold(0.0, f64::max);
    let (first, last) = (gains.iter().flatten().next(), gains.iter().flatten().last());
    println!("gain {first:.2?} dB at first, {last:.2?} dB at last, at most {most:.2} dB in a second");
    assert!(most < 1.15 && first.is_some_and(|db| db.abs() < 0.2) && last.is_some_and(|db| (db - 4.0).abs() < 1.0));
    let second = whole_speech(&speech, TEXT, &voice).await.expect("it is said");
    let level = active_level_dbov(&second, 16_000).expect("not silent").level_dbov;
    println!("level of the second text: {level:.2} dBov");
    assert!((level + 26.0).abs() < 0.5, "{level} dBov");
    assert!(second.iter().all(|x| x.unsigned_abs() < 23_300), "a peak above -3 dBFS");
}

/// Returns a server that says `natural_wpm` at speed 1, and the speeds that it is asked for.
async fn paced_server(natural_wpm: f64) -> (Server, mpsc::Receiver<f64>) {
    let (sender_of_requests, asked) = mpsc::channel(1);
    let server = Server::start(move |mut socket| {
        let sender = sender_of_requests.clone();
        async move {
            let (_, body) = request(&mut socket).await;
            let body: Value = serde_json::from_slice(&body).expect("it is JSON");
            let speed = body["speed"].as_f64().expect("it is a number");
            let words = body["input"].as_str().expect("it is a text").split_whitespace().count();
            let _ = sender.send(speed).await;
            let samples = words as f64 * 60.0 / (natural_wpm * speed) * 24_000.0;
            head(&mut socket, 200, "audio/pcm").await;
            chunk(&mut socket, &pcm::to_bytes(&tone(500.0, 24_000.0, samples as usize))).await;
            chunk(&mut socket, b"").await;
        }
    })
    .await;
    (server, asked)
}

#[tokio::test]
async fn the_asked_speed_is_learnt_where_words_are_counted_and_else_a_factor() {
    let (server, mut asked) = paced_server(230.0).await;
    let speech = synthesizer(Form::Http, &server, PATIENCE);
    let mut speeds = async |language: &str, speed: &str| {
        let wanted = VoiceWanted { speed: speed.into(), ..voice_wanted(language, None, Some("female")) };
        let voice = speech.voice(&wanted).expect("there is a voice");
        assert_eq!(voice.id, "remote:Alloy");
        let mut speeds = Vec::new();
        for _ in 0..5 {
            whole_speech(&speech, "eins zwei drei vier fünf sechs", &voice).await.expect("it is said");
            speeds.push(asked.recv().await.expect("it was asked"));
        }
        speeds
    };
    let near = |found: f64, expect: f64, off: f64| (found / expect - 1.0).abs() < off;
    for (language, speed, wpm) in [("en", "normal", 170.0), ("de", "fastest", 250.0), ("tr", "slowest", 110.0)] {
        let found = speeds(language, speed).await;
        println!("{language} {speed}: {found:.3?}");
        // Speeds learnt of another language do not hold for this one.
        assert!(near(found[0], wpm / 170.0, 0.001), "{language}: {found:?}");
        assert!(near(found[4], wpm / 230.0, 0.08), "{language}: {found:?}");
    }
    for (language, speed, wpm) in [
        ("ko", "normal", 170.0),
        ("ml", "slowest", 110.0),
        ("zh", "slow", 140.0),
        ("ja", "fast", 205.0),
        ("yue", "fastest", 250.0),
    ] {
        let found = speeds(language, speed).await;
        assert!(found.iter().all(|&found| near(found, wpm / 170.0, 0.001)), "{language}: {found:?}");
    }
}

#[tokio::test]
async fn every_trouble_of_a_synthesizer_has_its_code() {
    async fn check(form: Form, server: Server, code: &str) {
        let speech = synthesizer(form, &server, SHORT);
        let voice = speech.voice(&voice_wanted("en", None, None)).expect("there is a voice");
        let failure = whole_speech(&speech, "Hello.", &voice).await.expect_err(code);
        assert_eq!(failure.code, code, "{form:?}: {}", failure.message);
        assert!(!failure.message.contains("sesame"), "{}", failure.message);
        assert!(matches!(speech.status(), Status::Down(_)), "{code}");
    }
    async fn http(status: u16, kind: &'static str, stalls: bool, ends: bool) -> Server {
        Server::start(move |mut socket| async move {
            request(&mut socket).await;
            head(&mut socket, status, kind).await;
            chunk(&mut socket, &pcm::to_bytes(&tone(500.0, 24_000.0, 6000))).await;
            if stalls {
                wait_until_gone(&mut socket).await;
            }
            if ends {
                chunk(&mut socket, b"").await;
            }
        })
        .await
    }
    check(Form::Http, http(429, "text/plain", false, true).await, "synthesizer_refused").await;
    check(Form::Http, http(200, "application/json", false, true).await, "synthesizer_failed").await;
    check(Form::Http, http(200, "audio/pcm", true, false).await, "synthesizer_late").await;
    check(Form::Http, http(200, "audio/pcm", false, false).await, "synthesizer_failed").await;
    check(Form::Http, says(vec![0; 24_000]).await, "synthesizer_failed").await;
    async fn ws(message: Message, stays: bool) -> Server {
        Server::start(move |socket| {
            let message = message.clone();
            async move {
                let mut stream = accept(socket).await;
                let _ = stream.next().await;
                let _ = stream.send(message).await;
                while let Some(Ok(_)) = if stays { stream.next().await } else { None } {}
            }
        })
        .await
    }
    check(Form::WebSocket, ws(Message::text("{\"type\":\"error\"}"), true).await, "synthesizer_failed").await;
    check(Form::WebSocket, ws(Message::text("nonsense"), true).await, "synthesizer_failed").await;
    check(Form::WebSocket, ws(Message::binary(vec![0, 9]), false).await, "synthesizer_failed").await;
    check(Form::WebSocket, ws(Message::binary(vec![0, 9]), true).await, "synthesizer_late").await;
}
