//! Speech to words.

use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use ringer_media::clip::write_wav;
use serde_json::json;
use tokio::sync::{Mutex, Notify};
use tokio::time::timeout;

use super::*;
use crate::{Recognized, Recognizer, SpokenIn};

/// Sends one second of sound into `recognizer`; returns what it says, to its last message.
async fn hear(recognizer: &dyn Recognizer) -> Vec<Recognized> {
    let (mut feed, mut news) = recognizer.open(SpokenIn::Known("en"), &["Alvarez".into()]);
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
    assert_eq!(
        said,
        [Recognized::Final {
            text: "Hello.".into(),
            words: vec![word],
            confidence: None,
            detected_language: DetectedLanguage::Unknown
        }]
    );
    assert_eq!(recognizer.status(), Status::Ok);
    let (head, body) = seen.lock().await.remove(0);
    assert!(head.starts_with("post /v1/audio/transcriptions") && head.contains("bearer sesame"), "{head}");
    let text = String::from_utf8_lossy(&body);
    for field in
        ["name=\"model\"\r\n\r\nm1", "name=\"language\"\r\n\r\nen", "name=\"prompt\"\r\n\r\nAlvarez", "verbose_json"]
    {
        assert!(text.contains(field), "{field}");
    }
    let wav = write_wav(16_000, 1, &tone(300.0, 16_000.0, 16_000));
    assert!(body.windows(wav.len()).any(|window| window == wav), "the file is the segment's audio");
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
    let (mut feed, mut news) = recognizer.open(SpokenIn::Known("en"), &[]);
    feed.push(&tone(300.0, 16_000.0, 8000));
    let first = timeout(PATIENCE, news.recv()).await.expect("in time");
    assert_eq!(first, Some(Recognized::Partial("hello".into())));
    feed.push(&tone(300.0, 16_000.0, 4000));
    feed.finish();
    let last = timeout(PATIENCE, news.recv()).await.expect("in time");
    assert_eq!(
        last,
        Some(Recognized::Final {
            text: "hello there".into(),
            words: Vec::new(),
            confidence: None,
            detected_language: DetectedLanguage::Unknown
        })
    );
}

#[tokio::test]
async fn every_trouble_of_an_http_recognizer_has_its_code() {
    async fn check(status: u16, body: &'static str, whole: bool, stalls: bool, code: &str) {
        let server = Server::start(move |mut socket| async move {
            request(&mut socket).await;
            head(&mut socket, status, "application/json").await;
            chunk(&mut socket, body.as_bytes()).await;
            if stalls {
                wait_until_gone(&mut socket).await;
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

#[tokio::test]
async fn a_stream_gives_running_text_before_its_end_and_pieces_add_up() {
    let server = Server::start(|socket| async move {
        let mut stream = accept(socket).await;
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
                    tell(&mut stream, json!({"type": "final", "text": "there.", "confidence": 0.5, "words": words}))
                        .await;
                    tell(&mut stream, json!({"type": "done"})).await;
                }
                _ => {}
            }
            if bytes >= 16_000 && !halfway {
                halfway = true;
                tell(&mut stream, json!({"type": "partial", "text": "hel"})).await;
                tell(&mut stream, json!({"type": "final", "text": "Hello", "confidence": 1.0})).await;
                tell(&mut stream, json!({"type": "partial", "text": "the"})).await;
            }
        }
    })
    .await;
    let recognizer = WsRecognizer::new(server.ws());
    let (mut feed, mut news) = recognizer.open(SpokenIn::Known("en"), &["Alvarez".into()]);
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
    let expect = Recognized::Final {
        text: "Hello there.".into(),
        words: vec![word],
        confidence: Some(0.75),
        detected_language: DetectedLanguage::Unknown,
    };
    assert_eq!(last, Some(expect));
}

#[tokio::test]
async fn a_language_that_is_not_known_is_found_by_the_server() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let saw = seen.clone();
    let server = Server::start(move |mut socket| {
        let saw = saw.clone();
        async move {
            let (_, form) = request(&mut socket).await;
            saw.lock().await.push(String::from_utf8_lossy(&form).into_owned());
            head(&mut socket, 200, "application/json").await;
            chunk(&mut socket, json!({"text": "Hola.", "language": "Spanish"}).to_string().as_bytes()).await;
            chunk(&mut socket, b"").await;
        }
    })
    .await;
    let saw = seen.clone();
    let sockets = Server::start(move |socket| {
        let saw = saw.clone();
        async move {
            let mut stream = accept(socket).await;
            while let Some(Ok(message)) = stream.next().await {
                let Message::Text(text) = message else { continue };
                if !text.contains("finish") {
                    saw.lock().await.push(text.to_string());
                    continue;
                }
                tell(&mut stream, json!({"type": "final", "text": "Hola", "language": "es-MX"})).await;
                tell(&mut stream, json!({"type": "final", "text": "a todos."})).await;
                tell(&mut stream, json!({"type": "done"})).await;
            }
        }
    })
    .await;
    let by_http = HttpRecognizer::new(server.http(), 0, false).expect("TLS is there");
    let by_socket = WsRecognizer::new(sockets.ws());
    let recognizers: [(&dyn Recognizer, &str, &str); 2] =
        [(&by_http, "Hola.", "spanish"), (&by_socket, "Hola a todos.", "es-mx")];
    for (recognizer, expect, named) in recognizers {
        assert_eq!(recognizer.identifies(), Ok(()));
        let (mut feed, mut news) = recognizer.open(SpokenIn::Likely("en"), &[]);
        feed.push(&tone(300.0, 16_000.0, 16_000));
        feed.finish();
        let mut last = None;
        while let Some(said) = timeout(PATIENCE, news.recv()).await.expect("in time") {
            last = Some(said);
        }
        let Some(Recognized::Final { text, detected_language, .. }) = last else { panic!("{last:?}") };
        assert_eq!((text.as_str(), detected_language), (expect, DetectedLanguage::Detected(named.into())));
    }
    let seen = seen.lock().await;
    assert!(!seen[0].contains("name=\"language\""), "{}", seen[0]);
    assert!(seen[1].contains("\"language\":\"en\"") && seen[1].contains("\"detect_language\":true"), "{}", seen[1]);
}

#[tokio::test]
async fn every_trouble_of_a_websocket_recognizer_has_its_code() {
    async fn check(answer: &'static str, stays: bool, code: &str) {
        let server = Server::start(move |socket| async move {
            let mut stream = accept(socket).await;
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
    let silent = Server::start(|mut socket| async move { wait_until_gone(&mut socket).await }).await;
    let remote = Remote { connect: SHORT, ..silent.ws() };
    fails_as(&WsRecognizer::new(remote), "recognizer_unreachable").await;
}

#[tokio::test]
async fn pieces_without_text_bring_no_more_words_than_a_stretch_can_have() {
    for (words, bytes, is_heard) in [(5000, 5, true), (5001, 5, false), (10, 3200, true), (10, 3300, false)] {
        let server = Server::start(move |socket| async move {
            let mut stream = accept(socket).await;
            while let Some(Ok(message)) = stream.next().await {
                if matches!(&message, Message::Text(text) if text.contains("finish")) {
                    let word = json!({"word": "a".repeat(bytes), "start": 0.5, "end": 1.0});
                    let piece = json!({"type": "final", "text": "", "words": vec![word; words]}).to_string();
                    for text in [piece.clone(), piece, json!({"type": "done"}).to_string()] {
                        let _ = stream.send(Message::text(text)).await;
                    }
                }
            }
        })
        .await;
        let recognizer = WsRecognizer::new(server.ws());
        if is_heard {
            let said = hear(&recognizer).await;
            let Some(Recognized::Final { words: heard, .. }) = said.last() else { panic!("{words} of {bytes}") };
            assert_eq!(heard.len(), 2 * words, "{bytes}");
        } else {
            fails_as(&recognizer, "recognizer_failed").await;
        }
    }
}

#[tokio::test]
async fn a_stream_that_is_given_up_closes_its_connection() {
    let over = Arc::new(Notify::new());
    let ended = over.clone();
    let server = Server::start(move |socket| {
        let ended = ended.clone();
        async move {
            let mut stream = accept(socket).await;
            while let Some(Ok(_)) = stream.next().await {}
            ended.notify_one();
        }
    })
    .await;
    let recognizer = WsRecognizer::new(server.ws());
    let (mut feed, news) = recognizer.open(SpokenIn::Known("en"), &[]);
    feed.push(&[1; 320]);
    drop(feed);
    timeout(PATIENCE, over.notified()).await.expect("the server sees the end");
    drop(news);
}
