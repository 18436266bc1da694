//! Against servers on loopback sockets that answer well, late, wrongly, in half or not at all.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use ringer_media::level::{active_level_dbov, gain};
use ringer_media::resample::resample_whole;
use ringer_media::seed::Seed;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Notify, mpsc};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, accept_async};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::*;
use crate::provider::speech::EmbeddedSpeech;
use crate::provider::{Recognized, Recognizer, Spoken, Synthesizer, Voice, VoiceWanted, whole_speech};
use crate::tasks::Tasks;

/// How long a step may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// A limit that a test waits for.
const SHORT: Duration = Duration::from_millis(200);
const TEXT: &str = "Hello, I am calling because my last electricity bill was much higher than I expected. I have \
    checked the meter twice and the number on the paper does not match what I see. Could you please look at my account?";

/// A server on a loopback port: `serve` has each connection. Closed when dropped.
struct Server {
    address: String,
    _stop: DropGuard,
}

impl Server {
    async fn start<R>(serve: impl Fn(TcpStream) -> R + Send + Sync + 'static) -> Server
    where
        R: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port is free");
        let address = listener.local_addr().expect("it is bound").to_string();
        let (stop, tasks) = (CancellationToken::new(), Tasks::new());
        let stopped = stop.clone();
        Tasks::new().spawn("fake speech server", async move {
            while let Some(Ok((socket, _))) = stopped.run_until_cancelled(listener.accept()).await {
                let (stopped, served) = (stopped.clone(), serve(socket));
                tasks.spawn("fake speech connection", async move {
                    let _ = stopped.run_until_cancelled(served).await;
                });
            }
        });
        Server { address, _stop: stop.drop_guard() }
    }

    fn http(&self) -> Remote {
        Remote { answer: SHORT, ..Remote::new(&format!("http://{}/v1", self.address), Some("sesame".into()), "m1") }
    }

    fn ws(&self) -> Remote {
        Remote { answer: SHORT, ..Remote::new(&format!("ws://{}/x", self.address), Some("sesame".into()), "m1") }
    }
}

/// A request, head and body.
async fn request(socket: &mut TcpStream) -> (String, Vec<u8>) {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 8192]);
    loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..at]).to_lowercase();
            let length =
                head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
            if bytes.len() - at - 4 >= length.unwrap_or(0) {
                return (head, bytes.split_off(at + 4));
            }
        }
        let count = socket.read(&mut buffer).await.expect("it is readable");
        assert!(count > 0, "the request is whole");
        bytes.extend_from_slice(&buffer[..count]);
    }
}

async fn head(socket: &mut TcpStream, status: u16, kind: &str) {
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await.expect("somebody reads");
}

async fn chunk(socket: &mut TcpStream, bytes: &[u8]) {
    let chunk = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
    let _ = socket.write_all(&chunk).await;
}

/// Waits until the other side is gone.
async fn gone(socket: &mut TcpStream) {
    let mut buffer = [0; 64];
    while socket.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
}

fn tone(hz: f32, rate_hz: f32, samples: usize) -> Vec<i16> {
    let at = |n: usize| (6000.0 * (std::f32::consts::TAU * hz * n as f32 / rate_hz).sin()) as i16;
    (0..samples).map(at).collect()
}

// --- recognizers ---

/// One second of sound into `recognizer`; what it says, to its last message.
async fn hear(recognizer: &dyn Recognizer) -> Vec<Recognized> {
    let (mut feed, mut news) = recognizer.open("en", &["Alvarez".into()]);
    tone(300.0, 16_000.0, 16_000).chunks(320).for_each(|frame| feed.push(frame));
    feed.finish();
    let mut all = Vec::new();
    while let Some(message) = timeout(PATIENCE, news.recv()).await.expect("it ends in time") {
        all.push(message);
    }
    all
}

async fn fails_as(recognizer: &dyn Recognizer, code: &str) {
    let said = hear(recognizer).await;
    let Some(Recognized::Failed(failure)) = said.last() else { panic!("{code}: {said:?}") };
    assert_eq!(failure.code, code, "{}", failure.message);
    assert!(!failure.message.contains("sesame") && !failure.message.contains("127.0.0.1"), "{}", failure.message);
    assert!(matches!(recognizer.status(), Status::Down(_)), "{code}");
}

#[tokio::test]
async fn a_segment_goes_out_as_a_wav_file_and_comes_back_as_words() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let saw = seen.clone();
    let server = Server::start(move |mut socket| {
        let saw = saw.clone();
        async move {
            let asked = request(&mut socket).await;
            saw.lock().await.push(asked);
            head(&mut socket, 200, "application/json").await;
            let words = json!([{"word": "Hello", "start": 0.25, "end": 0.5}, {"word": "odd", "start": -1, "end": 2}]);
            chunk(&mut socket, json!({"text": " Hello. ", "words": words}).to_string().as_bytes()).await;
            chunk(&mut socket, b"").await;
        }
    })
    .await;
    let recognizer = HttpRecognizer::new(server.http(), 0, true).expect("TLS is there");
    let said = hear(&recognizer).await;
    let word = RecognizedWord { text: "Hello".into(), from: 4000, to: 8000, confidence: None };
    assert_eq!(said, [Recognized::Final { text: "Hello.".into(), words: vec![word], confidence: None }]);
    assert_eq!(recognizer.status(), Status::Ok);
    let (head, body) = seen.lock().await.remove(0);
    assert!(head.starts_with("post /v1/audio/transcriptions") && head.contains("bearer sesame"), "{head}");
    let text = String::from_utf8_lossy(&body);
    for field in
        ["name=\"model\"\r\n\r\nm1", "name=\"language\"\r\n\r\nen", "name=\"prompt\"\r\n\r\nAlvarez", "verbose_json"]
    {
        assert!(text.contains(field), "{field}");
    }
    let wav = write_wav_of_the_second();
    assert!(body.windows(wav.len()).any(|window| window == wav), "the file is the segment's audio");
}

fn write_wav_of_the_second() -> Vec<u8> {
    ringer_media::clip::write_wav(16_000, 1, &tone(300.0, 16_000.0, 16_000))
}

#[tokio::test]
async fn running_text_comes_while_the_segment_runs() {
    let server = Server::start(|mut socket| async move {
        let (_, body) = request(&mut socket).await;
        head(&mut socket, 200, "application/json").await;
        let text = if body.len() < 20_000 { "hello" } else { "hello there" };
        chunk(&mut socket, json!({"text": text}).to_string().as_bytes()).await;
        chunk(&mut socket, b"").await;
    })
    .await;
    let recognizer = HttpRecognizer::new(server.http(), 500, false).expect("TLS is there");
    let (mut feed, mut news) = recognizer.open("en", &[]);
    feed.push(&tone(300.0, 16_000.0, 8000));
    let first = timeout(PATIENCE, news.recv()).await.expect("in time");
    assert_eq!(first, Some(Recognized::Partial("hello".into())));
    feed.push(&tone(300.0, 16_000.0, 4000));
    feed.finish();
    let last = timeout(PATIENCE, news.recv()).await.expect("in time");
    assert_eq!(last, Some(Recognized::Final { text: "hello there".into(), words: Vec::new(), confidence: None }));
}

#[tokio::test]
async fn every_trouble_of_an_http_recognizer_has_its_code() {
    async fn check(status: u16, body: &'static str, whole: bool, stalls: bool, code: &str) {
        let server = Server::start(move |mut socket| async move {
            request(&mut socket).await;
            head(&mut socket, status, "application/json").await;
            chunk(&mut socket, body.as_bytes()).await;
            if stalls {
                gone(&mut socket).await;
            } else if whole {
                chunk(&mut socket, b"").await;
            }
        })
        .await;
        fails_as(&HttpRecognizer::new(server.http(), 0, false).expect("TLS is there"), code).await;
    }
    check(500, "{}", true, false, "recognizer_refused").await;
    check(200, "{nonsense", true, false, "recognizer_failed").await;
    check(200, "{\"words\":[]}", true, false, "recognizer_failed").await;
    check(200, "{\"text\":", false, false, "recognizer_failed").await;
    check(200, "{\"text\":", false, true, "recognizer_late").await;
    let server = Server::start(|_| async {}).await;
    let remote = server.http();
    drop(server);
    tokio::task::yield_now().await;
    let said = hear(&HttpRecognizer::new(remote, 0, false).expect("TLS is there")).await;
    assert!(matches!(said.last(), Some(Recognized::Failed(_))), "{said:?}");
}

async fn accepted(socket: TcpStream) -> WebSocketStream<TcpStream> {
    accept_async(socket).await.expect("the client speaks WebSocket")
}

async fn told(stream: &mut WebSocketStream<TcpStream>, message: Value) {
    let _ = stream.send(Message::text(message.to_string())).await;
}

#[tokio::test]
async fn a_stream_gives_running_text_before_its_end_and_pieces_add_up() {
    let server = Server::start(|socket| async move {
        let mut stream = accepted(socket).await;
        let (mut bytes, mut halfway) = (0, false);
        while let Some(Ok(message)) = stream.next().await {
            match message {
                Message::Binary(audio) => bytes += audio.len(),
                Message::Text(text) if text.contains("\"start\"") => {
                    assert!(
                        text.contains("\"sample_rate\":16000")
                            && text.contains("Alvarez")
                            && text.contains("pcm_s16le")
                    );
                }
                Message::Text(text) => {
                    assert!(text.contains("\"finish\"") && bytes == 32_000, "{text} after {bytes} bytes");
                    let words = json!([{"word": "there", "start": 0.5, "end": 1.0, "confidence": 0.5}]);
                    told(&mut stream, json!({"type": "final", "text": "there.", "confidence": 0.5, "words": words}))
                        .await;
                    told(&mut stream, json!({"type": "done"})).await;
                }
                _ => {}
            }
            if bytes >= 16_000 && !halfway {
                halfway = true;
                told(&mut stream, json!({"type": "partial", "text": "hel"})).await;
                told(&mut stream, json!({"type": "final", "text": "Hello", "confidence": 1.0})).await;
                told(&mut stream, json!({"type": "partial", "text": "the"})).await;
            }
        }
    })
    .await;
    let recognizer = WsRecognizer::new(server.ws());
    let (mut feed, mut news) = recognizer.open("en", &["Alvarez".into()]);
    let pcm = tone(300.0, 16_000.0, 16_000);
    pcm[..8000].chunks(320).for_each(|frame| feed.push(frame));
    for expect in ["hel", "Hello", "Hello the"] {
        let said = timeout(PATIENCE, news.recv()).await.expect("in time");
        assert_eq!(said, Some(Recognized::Partial(expect.into())), "before the end");
    }
    pcm[8000..].chunks(320).for_each(|frame| feed.push(frame));
    feed.finish();
    let mut last = None;
    while let Some(said) = timeout(PATIENCE, news.recv()).await.expect("in time") {
        last = Some(said);
    }
    let word = RecognizedWord { text: "there".into(), from: 8000, to: 16_000, confidence: Some(0.5) };
    let expect = Recognized::Final { text: "Hello there.".into(), words: vec![word], confidence: Some(0.75) };
    assert_eq!(last, Some(expect));
}

#[tokio::test]
async fn every_trouble_of_a_websocket_recognizer_has_its_code() {
    async fn check(answer: &'static str, stays: bool, code: &str) {
        let server = Server::start(move |socket| async move {
            let mut stream = accepted(socket).await;
            while let Some(Ok(message)) = stream.next().await {
                if matches!(&message, Message::Text(text) if text.contains("finish")) {
                    let _ = stream.send(Message::text(answer)).await;
                    if !stays {
                        return;
                    }
                }
            }
        })
        .await;
        fails_as(&WsRecognizer::new(server.ws()), code).await;
    }
    check("{\"type\":\"error\",\"message\":\"no\"}", true, "recognizer_failed").await;
    check("{nonsense", true, "recognizer_failed").await;
    check("{\"type\":\"final\"}", true, "recognizer_failed").await;
    check("{\"type\":\"final\",\"text\":\"half\"}", false, "recognizer_failed").await;
    check("{\"type\":\"partial\",\"text\":\"half\"}", true, "recognizer_late").await;
    let refusing = Server::start(|mut socket| async move {
        let (asked, _) = request(&mut socket).await;
        assert!(asked.contains("authorization: bearer sesame"), "{asked}");
        let _ = socket.write_all(b"HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n").await;
    })
    .await;
    fails_as(&WsRecognizer::new(refusing.ws()), "recognizer_refused").await;
    let silent = Server::start(|mut socket| async move { gone(&mut socket).await }).await;
    let remote = Remote { connect: SHORT, ..silent.ws() };
    fails_as(&WsRecognizer::new(remote), "recognizer_unreachable").await;
}

#[tokio::test]
async fn a_stream_that_is_given_up_closes_its_connection() {
    let over = Arc::new(Notify::new());
    let ended = over.clone();
    let server = Server::start(move |socket| {
        let ended = ended.clone();
        async move {
            let mut stream = accepted(socket).await;
            while let Some(Ok(_)) = stream.next().await {}
            ended.notify_one();
        }
    })
    .await;
    let recognizer = WsRecognizer::new(server.ws());
    let (mut feed, news) = recognizer.open("en", &[]);
    feed.push(&[1; 320]);
    drop(feed);
    timeout(PATIENCE, over.notified()).await.expect("the server sees the end");
    drop(news);
}

// --- synthesizers ---

fn voices() -> RemoteVoices {
    let named = [("en-british-female", "Emma"), ("en-male", "Tom"), ("es", "Lucia"), ("female", "Alloy")];
    let named = named.map(|(key, name)| (key.to_owned(), name.to_owned())).into();
    RemoteVoices { default: "plain".into(), named, natural_wpm: 170.0 }
}

fn wanted(language: &str, accent: Option<&str>, gender: Option<&str>) -> VoiceWanted {
    VoiceWanted {
        language: language.into(),
        accent: accent.map(Into::into),
        gender: gender.map(Into::into),
        custom_voice_id: None,
        speed: "normal".into(),
        seed: Seed(3),
    }
}

fn synthesizer(form: Form, server: &Server) -> RemoteSynthesizer {
    let remote = if form == Form::Http { server.http() } else { server.ws() };
    RemoteSynthesizer::new(form, remote, voices()).expect("TLS is there")
}

#[tokio::test]
async fn wishes_pick_the_servers_voice_and_a_substitution_is_told() {
    let server = Server::start(|_| async {}).await;
    let speech = synthesizer(Form::Http, &server);
    let check = |language, accent, gender, id: &str, substituted: bool| {
        let voice = speech.voice(&wanted(language, accent, gender)).expect("there is always a voice");
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
    let custom = VoiceWanted { custom_voice_id: Some("own".into()), ..wanted("de", None, None) };
    assert_eq!(speech.voice(&custom).expect("it is passed on").id, "remote:own");
}

fn is_woman() -> bool {
    crate::provider::voice::is_female(&wanted("es", None, None))
}

/// The first piece of speech is taken before the server sends the second; says how it went on.
async fn first_before_last(form: Form) {
    let heard = Arc::new(Notify::new());
    let waits = heard.clone();
    let server = Server::start(move |mut socket| {
        let waits = waits.clone();
        async move {
            let pcm = tone(1000.0, 24_000.0, 24_000);
            let (first, rest) = pcm.split_at(7001);
            // Cut inside a sample.
            let (first, rest) = (bytes_of(first), bytes_of(rest));
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
                chunk(&mut socket, &[&first, odd].concat()).await;
                waits.notified().await;
                chunk(&mut socket, rest).await;
                chunk(&mut socket, b"").await;
            } else {
                let mut stream = accepted(socket).await;
                let order =
                    stream.next().await.expect("it asks").expect("it is whole").into_text().expect("it is text");
                assert!(order.contains("\"sample_rate\":24000") && order.contains("\"voice\":\"Tom\""), "{order}");
                let _ = stream.send(Message::binary([&first, odd].concat())).await;
                waits.notified().await;
                let _ = stream.send(Message::binary(rest.to_vec())).await;
                told(&mut stream, json!({"type": "done"})).await;
                while let Some(Ok(_)) = stream.next().await {}
            }
        }
    })
    .await;
    let mut speech = synthesizer(form, &server);
    speech.remote.answer = PATIENCE;
    let voice = speech.voice(&wanted("en", None, Some("male"))).expect("there is a voice");
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
    first_before_last(Form::Http).await;
    first_before_last(Form::WebSocket).await;
}

/// Whether the server sees the connection end within `limit` after the future is dropped.
async fn is_cut_within(form: Form, limit: Duration) -> bool {
    let (ended, mut over) = mpsc::channel(1);
    let server = Server::start(move |mut socket| {
        let ended = ended.clone();
        async move {
            let speech = bytes_of(&tone(1000.0, 24_000.0, 12_000));
            if form == Form::Http {
                request(&mut socket).await;
                head(&mut socket, 200, "audio/pcm").await;
                chunk(&mut socket, &speech).await;
                gone(&mut socket).await;
            } else {
                let mut stream = accepted(socket).await;
                let _ = stream.send(Message::binary(speech)).await;
                while let Some(Ok(_)) = stream.next().await {}
            }
            let _ = ended.send(()).await;
        }
    })
    .await;
    let mut speech = synthesizer(form, &server);
    speech.remote.answer = PATIENCE;
    let voice = speech.voice(&wanted("en", None, Some("male"))).expect("there is a voice");
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

/// A server that says `pcm` (24 kHz) for every text.
async fn says(pcm: Vec<i16>) -> Server {
    let bytes: Arc<[u8]> = bytes_of(&pcm).into();
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
    let voice = embedded.voice(&wanted("en", None, Some("male"))).expect("flite has a voice");
    let mut loud = whole_speech(&embedded, TEXT, &voice).await.expect("flite is installed").to_vec();
    gain(&mut loud, 7.0);
    let silence = vec![0; 8000];
    let server = says(resample_whole(&[&silence, &loud[..], &silence].concat(), 16_000, 24_000)).await;
    let speech = synthesizer(Form::Http, &server);
    let voice = speech.voice(&wanted("en", None, Some("male"))).expect("there is a voice");
    let first = whole_speech(&speech, TEXT, &voice).await.expect("it is said");
    assert!(
        first.len().abs_diff(loud.len()) < 2000,
        "{} of {}: silence at the ends is removed",
        first.len(),
        loud.len()
    );
    // Both begin with the first sound, 10 ms before it.
    let from = |pcm: &[i16]| pcm.iter().position(|sample| sample.unsigned_abs() > 100).expect("there is sound");
    let (a, b) = (&loud[from(&loud)..], &first[from(&first)..]);
    let power = |pcm: &[i16]| pcm.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>();
    let gains: Vec<f64> =
        a.chunks(16_000).zip(b.chunks(16_000)).map(|(a, b)| 10.0 * (power(b) / power(a)).log10()).collect();
    println!("gain of each second: {gains:.2?}");
    assert!(gains[0] > -1.0 && gains.windows(2).all(|pair| (pair[0] - pair[1]).abs() < 1.25), "{gains:?}");
    assert!(gains[5] < -3.5, "{gains:?}");
    let second = whole_speech(&speech, TEXT, &voice).await.expect("it is said");
    let level = active_level_dbov(&second, 16_000).expect("not silent").level_dbov;
    println!("level of the second text: {level:.2} dBov");
    assert!((level + 26.0).abs() < 0.5, "{level} dBov");
    assert!(second.iter().all(|x| x.unsigned_abs() < 23_300), "a peak above -3 dBFS");
}

#[tokio::test]
async fn every_trouble_of_a_synthesizer_has_its_code() {
    async fn check(form: Form, server: Server, code: &str) {
        let speech = synthesizer(form, &server);
        let voice = speech.voice(&wanted("en", None, None)).expect("there is a voice");
        let failure = whole_speech(&speech, "Hello.", &voice).await.expect_err(code);
        assert_eq!(failure.code, code, "{form:?}: {}", failure.message);
        assert!(!failure.message.contains("sesame"), "{}", failure.message);
        assert!(matches!(speech.status(), Status::Down(_)), "{code}");
    }
    async fn http(status: u16, kind: &'static str, stalls: bool, ends: bool) -> Server {
        Server::start(move |mut socket| async move {
            request(&mut socket).await;
            head(&mut socket, status, kind).await;
            chunk(&mut socket, &bytes_of(&tone(500.0, 24_000.0, 6000))).await;
            if stalls {
                gone(&mut socket).await;
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
                let mut stream = accepted(socket).await;
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
