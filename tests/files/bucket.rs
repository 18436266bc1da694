//! A store alone: uploads by parts, reads by range, and what it says when it does something wrong.

use std::path::Path;
use std::sync::atomic::Ordering;

use ringer::config::{Secret, Storage};
use ringer::store::artifacts::Bucket;
use ringer_base::tls::Roots;
use sha2::{Digest, Sha256};

use super::server::{SECRET_KEY, Server};

/// A file of two whole parts and a piece.
const BYTES: usize = (11 << 20) + 17;

fn open(settings: &Storage) -> Bucket {
    Bucket::open(settings, &Roots::default()).expect("the settings fit").expect("there is a store")
}

/// Returns a file's size and digest, of bytes that repeat nowhere near.
fn write(path: &Path, bytes: usize) -> (u64, String) {
    let content: Vec<u8> = (0..bytes as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(path, &content).expect("the folder is writable");
    (bytes as u64, hex::encode(Sha256::digest(&content)))
}

async fn store_it(bucket: &Bucket, file: &Path, (bytes, sha256): &(u64, String)) -> Result<(), String> {
    bucket.put_file("results/1/recording.wav", file, *bytes, sha256).await.map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_large_file_goes_by_parts_and_comes_back_by_range() {
    let (server, folder) = (Server::start().await, tempfile::tempdir().expect("a folder"));
    let (bucket, file) = (open(&server.settings("of/ringer")), folder.path().join("recording.wav"));
    let sent = write(&file, BYTES);
    store_it(&bucket, &file, &sent).await.expect("it is stored");
    assert_eq!(server.faults.parts.load(Ordering::SeqCst), 3, "parts of 5 MiB");
    let object = server.object("of/ringer/results/1/recording.wav");
    let content = std::fs::read(&file).expect("the file");
    assert!(std::fs::read(object).expect("the object") == content, "the same bytes");
    let part =
        bucket.read_range("results/1/recording.wav", 7_000_000, 1000).await.expect("it answers").expect("it is there");
    assert!(part == content[7_000_000..7_001_000], "the bytes of the range");
    let listed = bucket.list("results").await.expect("it answers");
    assert_eq!(
        listed.iter().map(|one| (&*one.path, one.bytes)).collect::<Vec<_>>(),
        [("results/1/recording.wav", BYTES as u64)]
    );
    let copy = folder.path().join("deep/copy.wav");
    assert_eq!(bucket.fetch("results/1/recording.wav", &copy, sent.0, &sent.1).await, Ok(true));
    assert!(std::fs::read(&copy).expect("the copy") == content, "the same bytes");
    bucket.remove("results/1/recording.wav").await.expect("it answers");
    assert_eq!(bucket.size("results/1/recording.wav").await, Ok(None));
    assert_eq!(bucket.fetch("results/1/recording.wav", &copy, sent.0, &sent.1).await, Ok(false));
    bucket.remove("results/1/recording.wav").await.expect("nothing needs nothing");
}

#[tokio::test]
async fn a_store_that_does_something_wrong_is_named_with_what_it_does() {
    let (server, folder) = (Server::start().await, tempfile::tempdir().expect("a folder"));
    let (right, file) = (server.settings("x"), folder.path().join("recording.wav"));
    let sent = write(&file, 4000);
    server.faults.failing.store(2, Ordering::SeqCst);
    store_it(&open(&right), &file, &sent).await.expect("two faults are outlived");
    assert_eq!(server.faults.refused.load(Ordering::SeqCst), 2);
    let wrong = "another secret that nobody may read";
    let credentials = Storage { secret_access_key: Some(Secret::new(wrong.to_owned())), ..right.clone() };
    let gone = Storage { url: Some("s3://not-there/x".into()), ..right.clone() };
    let nowhere = Storage { endpoint: Some("http://127.0.0.1:9".into()), retry_s: 1, ..right.clone() };
    for (settings, name, expect) in [
        (credentials, "s3://calls/x", "the credentials are refused, or lack a right (storage.access_key_id"),
        (gone, "s3://not-there/x", "its bucket is not there (storage.url)"),
        (nowhere, "s3://calls/x", "no connection (storage.endpoint)"),
    ] {
        let bucket = open(&settings);
        for why in [
            store_it(&bucket, &file, &sent).await.expect_err("it is refused"),
            bucket.check().await.expect_err("it is refused").to_string(),
        ] {
            assert!(why.starts_with(&format!("object store {name}: ")) && why.contains(expect), "{why}");
            assert!(!why.contains(SECRET_KEY) && !why.contains(wrong), "{why}");
        }
    }
    open(&right).check().await.expect("it answers");
    server.faults.is_silent.store(true, Ordering::SeqCst);
    let hasty = Storage { timeout_s: 1, retry_s: 1, ..right.clone() };
    let why = store_it(&open(&hasty), &file, &sent).await.expect_err("it does not answer");
    assert!(why.contains("storing results/1/recording.wav: no answer within 1 s (storage.timeout_s)"), "{why}");
    server.faults.speak();
}

#[tokio::test]
async fn a_store_that_gives_back_other_bytes_has_stored_nothing() {
    let (server, folder) = (Server::start().await, tempfile::tempdir().expect("a folder"));
    let (bucket, file) = (open(&server.settings("x")), folder.path().join("recording.wav"));
    let sent = write(&file, 4000);
    server.faults.lies.store(true, Ordering::SeqCst);
    let why = store_it(&bucket, &file, &sent).await.expect_err("it lies");
    let expect =
        "s3://calls/x: results/1/recording.wav: the store gives back other bytes than it was given: 4000 bytes";
    assert!(why.starts_with(expect), "{why}");
    assert!(!server.object("x/results/1/recording.wav").exists(), "what is wrong is not left");
    server.faults.lies.store(false, Ordering::SeqCst);
    store_it(&bucket, &file, &sent).await.expect("it is stored");
    server.faults.lies.store(true, Ordering::SeqCst);
    let copy = folder.path().join("copy.wav");
    let fetched = bucket.fetch("results/1/recording.wav", &copy, sent.0, &sent.1).await;
    assert!(fetched.expect_err("it lies").to_string().contains("other bytes than it was given"));
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 1, "no copy, and no part of one");
}

#[tokio::test]
async fn a_folder_is_a_store_too_and_settings_that_do_not_fit_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("file://{}/store", folder.path().display());
    let bucket = open(&Storage { url: Some(url), ..Storage::default() });
    bucket.check().await.expect("an empty folder");
    let file = folder.path().join("recording.wav");
    let sent = write(&file, BYTES);
    store_it(&bucket, &file, &sent).await.expect("it is stored");
    assert!(folder.path().join("store/results/1/recording.wav").is_file());
    assert_eq!(bucket.digest("results/1/recording.wav").await, Ok(Some(sent)));
    assert_eq!(bucket.digest("results/2/recording.wav").await, Ok(None));
    let server = Server::start().await;
    let options = [("colour".to_owned(), Secret::new("red".into()))].into();
    let odd = Storage { options, ..server.settings("x") };
    let why = Bucket::open(&odd, &Roots::default()).map(drop).expect_err("it is none");
    assert_eq!(why, "storage.options.colour is no option of this store");
}
