//! `ringer storage`: files go from the data folder to a store, to another one, and back.

use std::path::Path;
use std::sync::atomic::Ordering;

use super::Engine;
use super::server::{BUCKET, SECRET_KEY, Server};
use crate::program::ringer;

/// Runs `ringer storage` on a folder; returns its exit code, and what it printed.
async fn storage(folder: &Path, args: &[&str]) -> (Option<i32>, String) {
    let data = folder.display().to_string();
    let args = [&["storage"][..], args, &["--data", &data]].concat();
    let mut command = ringer(&args);
    let done = command.current_dir(folder).stderr(std::process::Stdio::piped()).output().await.expect("it was built");
    let text = [done.stdout, done.stderr].concat();
    (done.status.code(), String::from_utf8(text).expect("text"))
}

#[tokio::test]
async fn files_move_between_stores_and_a_move_goes_on_where_it_was_broken_off() {
    let (server, folder) = (Server::start().await, tempfile::tempdir().expect("a folder"));
    let engine = Engine::start(folder.path(), "").await;
    engine.call().await;
    let recording = engine.bytes("/v1/simulation-result/1/recording").await;
    engine.stop().await;
    let files = std::fs::read_dir(folder.path().join("results/1")).expect("a folder").count();
    assert!(files > 1, "recordings and logs");
    let (first, second) = (format!("s3://{BUCKET}/first"), format!("s3://{BUCKET}/second"));
    std::fs::write(folder.path().join("ringer.toml"), server.section(&first, SECRET_KEY, "")).expect("writable");
    let (code, text) = storage(folder.path(), &["check"]).await;
    assert_eq!((code, text.contains("s3://calls/first answers")), (Some(0), true), "{text}");
    // The store takes the first file, and then no more.
    server.faults.writes_left.store(1, Ordering::SeqCst);
    let (code, text) = storage(folder.path(), &["move", "local", &first]).await;
    assert_eq!((code, text.contains("object store s3://calls/first: storing results/1/")), (Some(1), true), "{text}");
    server.faults.writes_left.store(usize::MAX, Ordering::SeqCst);
    let (code, text) = storage(folder.path(), &["move", "local", &first]).await;
    let told = format!("{} copied from local to s3://calls/first", count(files - 1));
    assert!(code == Some(0) && text.contains(&told) && text.contains("1 there already"), "{text}");
    server.faults.writes_left.store(1, Ordering::SeqCst);
    assert_eq!(storage(folder.path(), &["move", &first, &second]).await.0, Some(1));
    server.faults.writes_left.store(usize::MAX, Ordering::SeqCst);
    let (code, text) = storage(folder.path(), &["move", &first, &second]).await;
    assert!(code == Some(0) && text.contains("1 there already"), "{text}");
    let (code, text) = storage(folder.path(), &["move", &first, &second]).await;
    assert!(code == Some(0) && text.contains("0 files copied"), "{text}");
    assert!(std::fs::read(server.object("second/results/1/recording.wav")).expect("the object") == recording);
    // An engine with the second store alone has all of it.
    std::fs::remove_dir_all(folder.path().join("results")).expect("it was there");
    let engine = Engine::start(folder.path(), &server.section(&second, SECRET_KEY, "")).await;
    assert!(engine.bytes("/v1/simulation-result/1/recording").await == recording, "the same bytes");
    engine.stop().await;
    let (code, text) = storage(folder.path(), &["move", &second, "local"]).await;
    assert_eq!(code, Some(0), "{text}");
    let engine = Engine::start(folder.path(), "").await;
    assert!(engine.bytes("/v1/simulation-result/1/recording").await == recording, "the same bytes");
    engine.stop().await;
    for (args, expect) in [
        (["move", "local", "local"], "local is both sides of the move"),
        (["move", "local", "ftp://x"], "ftp://x: storage.url begins with ftp:// and must begin with"),
        (["move", "s3://not-there", "local"], "object store s3://not-there: listing: its bucket is not there"),
    ] {
        let text = server.section(&first, SECRET_KEY, "");
        std::fs::write(folder.path().join("ringer.toml"), text).expect("writable");
        let (code, text) = storage(folder.path(), &args).await;
        assert!(code == Some(1) && text.contains(expect), "{args:?}: {text}");
    }
}

fn count(files: usize) -> String {
    if files == 1 { "1 file".to_owned() } else { format!("{files} files") }
}
