//! Digital Humans that are heard before any call.

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::world::World;
use crate::calls::house::{House, KEY};

/// Asks for a preview; answers status, header fields and body.
async fn ask(house: &House, body: Value) -> (u16, HeaderMap, Vec<u8>) {
    let request = Request::builder().method("POST").uri("/v1/preview").header("x-api-key", KEY);
    let request = request.header("content-type", "application/json").body(Body::from(body.to_string())).expect("legal");
    let response = house.router.clone().oneshot(request).await.expect("a router answers");
    let (parts, body) = response.into_parts();
    (parts.status.as_u16(), parts.headers, to_bytes(body, 1 << 24).await.expect("a body").to_vec())
}

fn figure(headers: &HeaderMap, name: &str) -> Option<f64> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

/// Returns the sample rate and the number of samples of a WAV file.
fn wav(bytes: &[u8]) -> (u32, usize) {
    assert_eq!((&bytes[..4], &bytes[8..12]), (&b"RIFF"[..], &b"WAVE"[..]));
    (u32::from_le_bytes(bytes[24..28].try_into().expect("four bytes")), (bytes.len() - 44) / 2)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_is_heard_clean_as_sent_and_its_noise_alone() {
    let house = House::new().await;
    let human = json!({ "intent": "Book a table for two", "background_noise": "cafe", "background_noise_volume": 0.6 });
    for (part, codec, rate, snr) in [
        ("clean", "PCMU", 16_000, Some(15.0)),
        ("sent", "PCMU", 8000, Some(15.0)),
        ("sent", "OPUS", 16_000, Some(15.0)),
        ("noise", "G722", 16_000, Some(15.0)),
    ] {
        let (status, headers, body) =
            ask(&house, json!({ "digital_human": human, "part": part, "codec": codec })).await;
        assert_eq!(status, 200, "{part}: {}", String::from_utf8_lossy(&body));
        let (found_rate, samples) = wav(&body);
        assert_eq!((found_rate, headers["content-type"].as_bytes()), (rate, &b"audio/wav"[..]), "{part} {codec}");
        assert!(samples <= 10 * rate as usize && samples >= rate as usize, "{part}: {samples} samples");
        let level = figure(&headers, "x-level-dbov").expect("a level");
        let expect = if part == "noise" { -41.0 } else { -26.0 };
        assert!((level - expect).abs() < 2.5, "{part} {codec}: {level}");
        // The noise of a place is not the same at every moment.
        let found = figure(&headers, "x-snr-db");
        let near = found.zip(snr).is_some_and(|(found, snr): (f64, f64)| (found - snr).abs() < 3.0);
        assert!(near, "{part} {codec}: {found:?}");
        assert_eq!(headers.get("x-voice").is_some(), part != "noise");
    }
    let quiet = json!({ "digital_human": { "intent": "Book a table" }, "text": "Hello there", "part": "clean" });
    let (status, headers, body) = ask(&house, quiet).await;
    assert_eq!((status, headers.get("x-snr-db"), wav(&body).1), (200, None, 2 * 4800));
    let long = vec!["word"; 60].join(" ");
    let (_, headers, body) = ask(&house, json!({ "digital_human": {}, "text": long, "codec": "L16" })).await;
    assert_eq!((headers["x-cut"].as_bytes(), wav(&body)), (&b"true"[..], (16_000, 160_000)));
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_that_cannot_be_made_says_why_and_a_third_one_waits() {
    let house = House::new().await;
    let human = json!({ "background_noise": "custom", "custom_background_noise_url": uuid::Uuid::nil() });
    for (body, expect, text) in [
        (json!({ "digital_human": {} }), 400, "text is needed where the intent is empty"),
        (json!({ "digital_human": human, "text": "Hello" }), 404, "Background noise not found"),
        (json!({ "digital_human": {}, "text": "Hello", "codec": "MP3" }), 422, "PCMU"),
        (json!({ "digital_human": {}, "text": "Hello", "part": "loud" }), 422, "clean"),
        (json!({ "digital_human": { "voice_speed": "warp" }, "text": "Hello" }), 422, "voice_speed"),
        (json!({ "text": "Hello" }), 422, "digital_human"),
    ] {
        let (status, _, answer) = ask(&house, body.clone()).await;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(status == expect && answer.contains(text), "{body}: {status} {answer}");
    }
    // Each makes the loop of a place first, which takes longer than to be refused.
    let of = |noise: &str| json!({ "digital_human": { "background_noise": noise }, "text": "Hello", "part": "noise" });
    let (one, two, three) =
        tokio::join!(ask(&house, of("park")), ask(&house, of("traffic")), ask(&house, of("hospital")));
    let mut statuses = [one.0, two.0, three.0];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 429]);
    let refused = [one, two, three].into_iter().find(|(status, ..)| *status == 429).expect("one is refused");
    assert_eq!(refused.1["retry-after"], "1");
    assert_eq!(String::from_utf8_lossy(&refused.2), "{\"detail\":\"2 previews are made already\",\"retry_after\":1}");
    assert_eq!(ask(&house, of("park")).await.0, 200, "there is room again");
    house.stop().await;
}

#[tokio::test]
async fn previews_need_a_key_that_writes_and_an_engine() {
    let world = World::new().await;
    let body = json!({ "digital_human": {}, "text": "Hello" }).to_string().into_bytes();
    for (key, expect) in [("$read", 403), ("", 401), ("$write", 503)] {
        let headers = [("x-api-key".to_owned(), key.to_owned())];
        assert_eq!(world.send("POST", "/v1/preview", &headers, body.clone()).await.status, expect, "{key}");
    }
}
