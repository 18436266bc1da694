//! Calls of the built program whose files go to the store, and are read from it.

use std::path::Path;

use reqwest::StatusCode;
use reqwest::header::{LOCATION, RANGE};
use reqwest::redirect::Policy;
use ringer_media::recording::WAV_HEADER;
use serde_json::json;

use super::server::{BUCKET, SECRET_KEY, Server};
use super::{Engine, until_true};
use crate::program::{KEY, client};

fn url() -> String {
    format!("s3://{BUCKET}/of/ringer")
}

fn id_of(result: &serde_json::Value) -> String {
    result["id"].to_string().trim_matches('"').to_owned()
}

fn local(folder: &Path, id: &str) -> std::path::PathBuf {
    folder.join("results").join(id)
}

#[tokio::test]
async fn a_recording_goes_to_the_store_is_read_from_there_and_is_deleted_there() {
    let (server, folder) = (Server::start().await, tempfile::tempdir().expect("a folder"));
    let engine = Engine::start(folder.path(), &server.section(&url(), SECRET_KEY, "")).await;
    let id = id_of(&engine.call().await);
    let result = engine.until_stored(&id).await;
    assert!(result["audio_url"].is_string(), "{result}");
    let object = server.object(&format!("of/ringer/results/{id}/recording.wav"));
    let stored = std::fs::read(&object).expect("the object");
    assert!(stored.starts_with(b"RIFF"));
    until_true(|| !local(folder.path(), &id).join("recording.wav").exists()).await;
    let path = format!("/v1/simulation-result/{id}/recording");
    assert!(engine.bytes(&path).await == stored, "the same bytes");
    assert!(!local(folder.path(), &id).join("recording.wav").exists(), "read without a copy");
    let asked =
        client().get(format!("{}{path}", engine.base)).header("x-api-key", KEY).header(RANGE, "bytes=1000-1999");
    let part = asked.send().await.expect("it answers");
    assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
    assert!(part.bytes().await.expect("all of it") == stored[1000..2000], "the bytes of the range");
    let mono = engine.bytes(&format!("{path}?channel=1")).await;
    assert_eq!(mono.len(), 44 + (stored.len() - WAV_HEADER) / 2);
    let stranger = client().get(format!("{}{path}", engine.base)).send().await.expect("it answers");
    assert_eq!(stranger.status(), StatusCode::UNAUTHORIZED);
    assert!(!engine.bytes(&format!("{path}?format=opus")).await.is_empty(), "made of a copy");
    let peaks = engine.json(&format!("/v1/simulation-result/{id}/peaks?zoom=0")).await;
    assert_eq!(peaks["channels"].as_array().map(Vec::len), Some(2), "{peaks}");
    let evidence = engine.bytes(&format!("/v1/simulation-result/{id}/evidence")).await;
    assert!(evidence.len() > stored.len(), "the recording is in it");
    engine.delete(&format!("/v1/simulation-result/{id}")).await;
    until_true(|| !object.exists()).await;
    assert_eq!(engine.get(&path).await.status(), StatusCode::NOT_FOUND);
    engine.stop().await;
}

#[tokio::test]
async fn a_recording_stays_here_until_the_store_takes_it() {
    let (server, folder) = (Server::start().await, tempfile::tempdir().expect("a folder"));
    let wrong = "another secret that nobody may read";
    let engine = Engine::start(folder.path(), &server.section(&url(), wrong, "")).await;
    let result = engine.call().await;
    let id = id_of(&result);
    assert_eq!((&result["status"], &result["metadata"]["recording"]), (&json!("COMPLETED"), &json!("pending")));
    let log = || std::fs::read_to_string(folder.path().join("log")).expect("text");
    let told = "results/1/recording.wav: the credentials are refused";
    until_true(|| log().contains("files wait for the object store")).await;
    assert!(log().contains("the credentials are refused, or lack a right (storage.access_key_id"), "{told}: {}", log());
    let path = format!("/v1/simulation-result/{id}/recording");
    let here = engine.bytes(&path).await;
    assert!(here.starts_with(b"RIFF"), "it is read here");
    engine.stop().await;
    let gone = Engine::start(folder.path(), &server.section("s3://not-there/x", SECRET_KEY, "")).await;
    until_true(|| log().contains("object store s3://not-there/x: ")).await;
    until_true(|| log().contains("its bucket is not there (storage.url)")).await;
    assert_eq!(gone.result(&id).await["metadata"]["recording"], "pending");
    gone.stop().await;
    let engine = Engine::start(folder.path(), &server.section(&url(), SECRET_KEY, "")).await;
    engine.until_stored(&id).await;
    until_true(|| !local(folder.path(), &id).join("recording.wav").exists()).await;
    assert!(engine.bytes(&path).await == here, "the same bytes");
    engine.stop().await;
    assert!(!log().contains(wrong) && !log().contains(SECRET_KEY), "no secret is logged");
}

#[tokio::test]
async fn readers_are_sent_to_a_signed_address_where_the_settings_say_so() {
    let (server, folder) = (Server::start().await, tempfile::tempdir().expect("a folder"));
    let engine = Engine::start(folder.path(), &server.section(&url(), SECRET_KEY, "redirect = true")).await;
    let id = id_of(&engine.call().await);
    engine.until_stored(&id).await;
    let path = format!("{}/v1/simulation-result/{id}/recording", engine.base);
    let plain = reqwest::Client::builder().redirect(Policy::none()).build().expect("a client");
    let answer = plain.get(&path).header("x-api-key", KEY).send().await.expect("it answers");
    assert_eq!(answer.status(), StatusCode::TEMPORARY_REDIRECT);
    let address = answer.headers()[LOCATION].to_str().expect("text").to_owned();
    assert!(address.contains("X-Amz-Expires=300") && !address.contains(SECRET_KEY), "{address}");
    let stored = std::fs::read(server.object(&format!("of/ringer/results/{id}/recording.wav"))).expect("the object");
    let read = plain.get(&address).send().await.expect("it answers");
    assert!(read.bytes().await.expect("all of it") == stored, "anybody with the address");
    let stranger = plain.get(&path).send().await.expect("it answers");
    assert_eq!(stranger.status(), StatusCode::UNAUTHORIZED);
    // One channel is not in the store.
    let mono = plain.get(format!("{path}?channel=0")).header("x-api-key", KEY).send().await.expect("it answers");
    assert_eq!(mono.status(), StatusCode::OK);
    engine.stop().await;
}
