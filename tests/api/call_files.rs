//! Transcripts of production calls that come as files: read as those in a request are.

use ringer_base::testing::WebServer;
use serde_json::{Value, json};

use super::call_logs::{body_entries, evaluate};
use super::world::World;

/// Returns the entries with their offsets as texts, behind a byte order mark.
fn as_texts() -> Vec<u8> {
    let mut entries = body_entries();
    for entry in entries.as_array_mut().expect("entries") {
        for name in ["start_offset_ms", "end_offset_ms"] {
            entry[name] = entry[name].to_string().into();
        }
    }
    format!("\u{feff}{entries}").into_bytes()
}

/// Returns a gzip file (RFC 1952) with one block that is not compressed.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let crc = bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 })
    });
    let length = u16::try_from(bytes.len()).expect("one block");
    let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1];
    let sizes = [length.to_le_bytes(), (!length).to_le_bytes()].concat();
    let trailer = [(!crc).to_le_bytes(), u32::from(length).to_le_bytes()].concat();
    [&head[..], &sizes, bytes, &trailer].concat()
}

#[tokio::test]
async fn a_file_is_read_as_a_request_is() {
    let encoded = |bytes: &[u8]| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n", bytes.len());
        [format!("{head}connection: close\r\n\r\n").as_bytes(), bytes].concat()
    };
    let server = WebServer::start(move |path: &str| match path {
        "/texts.json" => WebServer::file(&as_texts()),
        "/packed.json" => WebServer::file(&gzip(&as_texts())),
        "/encoded.json" => encoded(&gzip(&as_texts())),
        "/cut.json" => WebServer::file(&gzip(&as_texts())[..40]),
        _ => WebServer::file(b"[]"),
    });
    let server = server.await.expect("loopback has a free port");
    let world = World::with_rows().await;
    let at = |path: &str| json!({ "transcript_url": server.url(path), "transcript": null });
    for path in ["/texts.json", "/packed.json", "/encoded.json"] {
        let log = evaluate(&world, at(path)).await;
        assert_eq!((&log["status"], &log["error_message"]), (&json!("COMPLETED"), &Value::Null), "{path}");
        assert_eq!(log["evaluations"][0]["latency"]["max_agent_latency"], 1.2, "{path}");
    }
    for (path, expect) in [
        ("/cut.json", "transcript_url: the file is no whole gzip file"),
        ("/empty.json", "transcript_url: the file has no transcript entries"),
    ] {
        let log = evaluate(&world, at(path)).await;
        assert_eq!((&log["status"], &log["error_message"]), (&json!("INCOMPLETED"), &json!(expect)), "{path}");
    }
}
