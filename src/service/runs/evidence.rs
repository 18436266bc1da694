//! Archive of all records of a finished conversation, for reports and other programs.

mod capture;
pub(crate) mod manifest;
pub(crate) mod stamp;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::signature::Ed25519KeyPair;
use ringer_base::config::Capture;
use ringer_base::error::{Error, Result};
use ringer_base::post::Posting;
use ringer_model::result::{ResultDoc, find_note};
use ringer_model::run::RunDoc;
use ringer_model::secret::mask;
use ringer_model::time::Timestamp;
use ringer_store::{EvidenceKey, Owner};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tracing::warn;

pub(crate) use self::capture::{Message, messages};
use self::manifest::{Chain, Link, MANIFEST, Manifest, Packed, SIGNATURE, STAMP, fingerprint};
use super::Runs;
use crate::Caller;
use crate::conversation::artifacts::{CAPTURED, SIP_LOG, evidence, is_hidden};
use crate::conversation::privacy::{redact_settings, redactor_of};
use crate::conversation::snapshot::settings_of;
use crate::files::result_owner;
use crate::spending::note_usage;

/// Name of the file of hashes in an archive.
const HASHES: &str = "hashes.sha256";
/// Bytes of a file that are hashed at once.
const PIECE: usize = 64 * 1024;
/// Time limit for the answer of an authority that stamps.
const STAMPED_WITHIN: Duration = Duration::from_secs(10);
/// Time from which on an authority that failed was slow, and time for which it is not asked then, in milliseconds.
const SLOW_MS: i64 = 1000;
const AUTHORITY_RESTS_MS: i64 = 60_000;

/// One member of the archive.
enum Member {
    File(PathBuf),
    Bytes(Vec<u8>),
    /// The packets of a call: those of its SIP log, and the captured ones when there is such a file. Left out when
    /// there are none.
    Capture {
        log: String,
        media: PathBuf,
    },
}

impl Runs {
    /// Returns a tar archive (POSIX ustar) of a finished conversation. It holds recordings, timeline, transcript and
    /// record, the signalling as log and as capture (with captured media), and the log of requests of a written
    /// conversation. It also holds the settings without secrets, the seed, and the SHA-256 of each file. The file is at
    /// its beginning and has no name. A manifest of all files is signed by the key of this installation, and stamped
    /// with the time where an authority is set that answers.
    ///
    /// # Errors
    /// [`Error::NotAvailable`] before the conversation is finished, or while what is private is still in it.
    pub async fn evidence(&self, caller: &Caller, result_id: i64) -> Result<File> {
        let (mut archive, ended_ms, manifest) = self.archive(caller, result_id).await?;
        let stamp = self.stamp_of(result_id, &manifest).await?;
        let finished = tokio::task::spawn_blocking(move || {
            if let Some(stamp) = stamp {
                append(&mut archive, STAMP, stamp.len() as u64, ended_ms, &stamp[..])?;
            }
            let mut file = archive.into_inner()?;
            file.seek(SeekFrom::Start(0))?;
            Ok::<_, io::Error>(file)
        });
        finished.await.map_err(Error::internal)?.map_err(Error::internal)
    }

    /// Returns the stamp over a manifest: the stored one, else a new one where an authority is set. One that
    /// fails after [`SLOW_MS`] is left alone for [`AUTHORITY_RESTS_MS`], so that not every archive waits for it.
    async fn stamp_of(&self, result_id: i64, manifest: &[u8]) -> Result<Option<Vec<u8>>> {
        let sha256 = Sha256::digest(manifest);
        let name = hex::encode(sha256);
        let stored = match (self.store.evidence_stamp(result_id, &name).await?, &self.settings.timestamp_url) {
            (None, None) => return Ok(None),
            (Some(stored), _) => stored,
            _ if self.clock.now_ms() < self.authority_asked_from_ms.load(Ordering::Relaxed) => return Ok(None),
            (None, Some(url)) => {
                let asked_ms = self.clock.now_ms();
                match self.ask_for_stamp(url, &sha256).await {
                    Ok(answer) => {
                        let stamp = BASE64.encode(answer);
                        self.store.keep_evidence_stamp(result_id, &name, &stamp, self.clock.now_ms()).await?
                    }
                    Err(why) => {
                        warn!(result = result_id, "evidence has no time stamp: {why}");
                        let now_ms = self.clock.now_ms();
                        if now_ms - asked_ms >= SLOW_MS {
                            self.authority_asked_from_ms.store(now_ms + AUTHORITY_RESTS_MS, Ordering::Relaxed);
                        }
                        return Ok(None);
                    }
                }
            }
        };
        BASE64.decode(stored).map(Some).map_err(Error::internal)
    }

    /// Asks the authority for a stamp over a hash, and answers what it sent once that is checked.
    async fn ask_for_stamp(&self, url: &str, sha256: &[u8]) -> std::result::Result<Vec<u8>, String> {
        let (query, nonce) = stamp::query(sha256).map_err(|error| error.to_string())?;
        let headers = [("Content-Type", stamp::QUERY_TYPE.to_owned())];
        let (patience, answer_bytes) = (STAMPED_WITHIN, stamp::ANSWER_BYTES);
        let body = String::new();
        let posting = Posting { method: "POST", url, headers: &headers, body, patience, answer_bytes };
        let posted = self.authority.exchange_bytes(posting, query).await.map_err(|failed| failed.why)?;
        if posted.status != 200 {
            return Err(format!("the authority answers with the status {}", posted.status));
        }
        stamp::read_answer(&posted.body, sha256, &nonce)?;
        Ok(posted.body)
    }

    /// Returns the archive without its end, the time of its files, and its manifest.
    async fn archive(&self, caller: &Caller, result_id: i64) -> Result<(tar::Builder<File>, i64, Vec<u8>)> {
        let pair = self.store.signing_key(self.clock.now_ms()).await?;
        let mut db = self.store.org(&caller.organization).read().await?;
        let mut row = db.get::<ResultDoc>(result_id).await?;
        if !row.doc.body.status.is_terminal() || is_hidden(&row.doc, caller) {
            return Err(Error::NotAvailable("Evidence not available".into()));
        }
        let mut config = settings_of(&mut db, &row).await?;
        config["behaviour"] = json!(find_note(&row.doc.body.metadata, "behaviour"));
        if let Some(redactor) = redactor_of(&mut db, &row.doc).await? {
            redact_settings(&mut config, &redactor);
        }
        note_usage(&mut row, &db.use_of_result(result_id).await?);
        drop(db);
        self.conversations.bring_files(&row).await?;
        let folder = self.settings.result_folder(result_id);
        // The same archive whenever it is asked for.
        let ended_ms = row.doc.body.end_time.map_or(row.updated_ms, |end| end.0);
        let seed = format!("{}\n", row.doc.body.seed);
        let manifest = manifest_of(result_id, &row.doc)?;
        let mut members = vec![
            ("result.json".to_owned(), pretty(&self.result_record(row, &HashMap::new(), caller))?),
            ("config.json".to_owned(), pretty(&mask(&config))?),
            ("seed.txt".to_owned(), Member::Bytes(seed.into_bytes())),
        ];
        for name in evidence() {
            let path = folder.join(name);
            if tokio::fs::try_exists(&path).await.unwrap_or(false) {
                members.push((name.to_owned(), Member::File(path)));
            }
        }
        let mails = self.mail_files(&caller.organization, result_id).await?;
        members.extend(mails.into_iter().map(|(name, path)| (name, Member::File(path))));
        match self.conversations.timeline(caller, result_id).await {
            Ok(timeline) => members.push(("timeline.json".to_owned(), pretty(&timeline)?)),
            Err(Error::NotAvailable(_)) => {}
            Err(error) => return Err(error),
        }
        match self.conversations.transcript(caller, result_id).await {
            Ok(transcript) => members.push(("transcript.json".to_owned(), pretty(&transcript)?)),
            Err(Error::NotAvailable(_)) => {}
            Err(error) => return Err(error),
        }
        if self.settings.capture != Capture::Off {
            let log = tokio::fs::read_to_string(folder.join(SIP_LOG)).await.unwrap_or_default();
            members.push(("capture.pcapng".to_owned(), Member::Capture { log, media: folder.join(CAPTURED) }));
        }
        members.sort_by(|one, other| one.0.cmp(&other.0));
        let data = self.settings.data.clone();
        let packed = tokio::task::spawn_blocking(move || pack(&data, members, ended_ms, (manifest, &pair)))
            .await
            .map_err(Error::internal)?;
        let (archive, manifest) = packed.map_err(Error::internal)?;
        Ok((archive, ended_ms, manifest))
    }
}

impl Runs {
    /// Returns the packets of a finished conversation, as in its evidence. The file is at its beginning and has no
    /// name.
    ///
    /// # Errors
    /// [`Error::NotAvailable`] before the end, where nothing was captured, or while what is private is still in it.
    pub async fn capture(&self, caller: &Caller, result_id: i64) -> Result<File> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let row = db.get::<ResultDoc>(result_id).await?;
        drop(db);
        let none = || Error::NotAvailable("Capture not available".into());
        let is_off = self.settings.capture == Capture::Off;
        if is_off || !row.doc.body.status.is_terminal() || is_hidden(&row.doc, caller) {
            return Err(none());
        }
        self.settings.bring(&result_owner(result_id)).await?;
        let (folder, data) = (self.settings.result_folder(result_id), self.settings.data.clone());
        let log = tokio::fs::read_to_string(folder.join(SIP_LOG)).await.unwrap_or_default();
        let packing = move || {
            let mut packets = BufWriter::new(nameless(&data)?);
            let any = capture::write(&log, File::open(folder.join(CAPTURED)).ok(), &mut packets)?;
            let mut file = packets.into_inner()?;
            file.seek(SeekFrom::Start(0))?;
            Ok::<_, io::Error>(any.then_some(file))
        };
        let packed = tokio::task::spawn_blocking(packing).await.map_err(Error::internal)?;
        packed.map_err(Error::internal)?.ok_or_else(none)
    }
}

impl Runs {
    /// Returns the manifests of all finished results of a run, bound to each other and signed.
    ///
    /// # Errors
    /// [`Error::NotAvailable`] while a result is not finished, or what is private is still in it.
    pub async fn evidence_chain(&self, caller: &Caller, run_id: i64) -> Result<Chain> {
        let mut db = self.store.org(&caller.organization).read().await?;
        db.get::<RunDoc>(run_id).await?;
        let results = db.result_ids(Owner::Run, run_id).await?;
        drop(db);
        let mut links = Vec::with_capacity(results.len());
        for result_id in results {
            let (_, _, manifest) = self.archive(caller, result_id).await?;
            links.push(Link { result_id, manifest_sha256: hex::encode(Sha256::digest(manifest)) });
        }
        let pair = self.store.signing_key(self.clock.now_ms()).await?;
        Ok(Chain::new(run_id, links, &pair))
    }

    /// Returns the public keys by which evidence was and is signed, the newest first.
    pub async fn evidence_keys(&self) -> Result<EvidenceKeys> {
        // The first one is made, so that it is known before anything is signed.
        self.store.signing_key(self.clock.now_ms()).await?;
        let keys = self.store.evidence_keys().await?;
        Ok(EvidenceKeys { keys: keys.into_iter().map(EvidenceKeyOut::from).collect() })
    }

    /// Makes a new key sign evidence from now on.
    pub async fn rotate_evidence_key(&self) -> Result<EvidenceKeyOut> {
        Ok(self.store.rotate_evidence_key(self.clock.now_ms()).await?.into())
    }
}

/// Public keys of this installation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EvidenceKeys {
    /// Keys that sign evidence or did, the newest first.
    pub keys: Vec<EvidenceKeyOut>,
}

/// A public key by which evidence is checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EvidenceKeyOut {
    /// Name of the algorithm: Ed25519 (RFC 8032).
    pub algorithm: String,
    /// The first 32 hexadecimal digits of the SHA-256 of the key.
    pub fingerprint: String,
    /// The key, 64 hexadecimal digits.
    pub public_key: String,
    /// Time from which it signs.
    pub made_at: Timestamp,
    /// Time at which another one took its place; null: it signs.
    pub ended_at: Option<Timestamp>,
}

impl From<EvidenceKey> for EvidenceKeyOut {
    fn from(key: EvidenceKey) -> EvidenceKeyOut {
        EvidenceKeyOut {
            algorithm: "Ed25519".to_owned(),
            fingerprint: fingerprint(&hex::decode(&key.public_key).unwrap_or_default()),
            public_key: key.public_key,
            made_at: Timestamp(key.made_ms),
            ended_at: key.ended_ms.map(Timestamp),
        }
    }
}

/// Names in a record of what spoke, heard, worded and judged.
const MODELS: [&str; 4] = ["recognizer", "synthesizer", "speaker", "judge_model"];

/// Returns the manifest of a result, without files.
fn manifest_of(result_id: i64, doc: &ResultDoc) -> Result<Manifest> {
    let body = &doc.body;
    let mut manifest = Manifest::new(result_id, body.simulation_run_id, body.seed);
    manifest.started_at = json!(body.start_time);
    manifest.ended_at = json!(body.end_time);
    manifest.engine_quality = serde_json::to_value(&body.engine_quality).map_err(Error::internal)?;
    let known = MODELS.iter().filter_map(|name| Some(((*name).to_owned(), find_note(&body.metadata, name)?.clone())));
    manifest.models = known.collect();
    Ok(manifest)
}

fn pretty(part: &impl Serialize) -> Result<Member> {
    let value: Value = serde_json::to_value(part).map_err(Error::internal)?;
    serde_json::to_vec_pretty(&value).map(Member::Bytes).map_err(Error::internal)
}

/// Returns a file in `folder` that loses its name at once.
fn nameless(folder: &Path) -> io::Result<File> {
    let path = folder.join(format!("evidence-{}.part", ringer_base::clock::new_id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// Writes the archive to a nameless file in `folder`; returns it without its end, and its manifest.
fn pack(
    folder: &Path,
    members: Vec<(String, Member)>,
    at_ms: i64,
    (mut manifest, pair): (Manifest, &Ed25519KeyPair),
) -> io::Result<(tar::Builder<File>, Vec<u8>)> {
    let mut archive = tar::Builder::new(nameless(folder)?);
    let mut hashes = String::new();
    for (name, member) in members {
        let (hash, bytes) = match member {
            Member::Bytes(bytes) => {
                append(&mut archive, &name, bytes.len() as u64, at_ms, &bytes[..])?;
                (Sha256::digest(&bytes), bytes.len() as u64)
            }
            Member::File(path) => append_file(&mut archive, &name, at_ms, File::open(path)?)?,
            Member::Capture { log, media } => {
                let mut packets = BufWriter::new(nameless(folder)?);
                if !capture::write(&log, File::open(media).ok(), &mut packets)? {
                    continue;
                }
                append_file(&mut archive, &name, at_ms, packets.into_inner()?)?
            }
        };
        hashes.push_str(&format!("{}  {name}\n", hex::encode(hash)));
        manifest.files.insert(name, Packed { sha256: hex::encode(hash), bytes });
    }
    append(&mut archive, HASHES, hashes.len() as u64, at_ms, hashes.as_bytes())?;
    let sha256 = hex::encode(Sha256::digest(&hashes));
    manifest.files.insert(HASHES.to_owned(), Packed { sha256, bytes: hashes.len() as u64 });
    let (text, signature) = manifest.sign(pair)?;
    append(&mut archive, MANIFEST, text.len() as u64, at_ms, &text[..])?;
    append(&mut archive, SIGNATURE, signature.len() as u64, at_ms, &signature[..])?;
    Ok((archive, text))
}

fn append(archive: &mut tar::Builder<File>, name: &str, size: u64, at_ms: i64, from: impl io::Read) -> io::Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_size(size);
    header.set_mode(0o644);
    header.set_mtime(u64::try_from(at_ms / 1000).unwrap_or(0));
    archive.append_data(&mut header, name, from.take(size))
}

/// Appends all of a file, and answers its hash and length.
fn append_file(
    archive: &mut tar::Builder<File>,
    name: &str,
    at_ms: i64,
    mut file: File,
) -> io::Result<(sha2::digest::Output<Sha256>, u64)> {
    file.seek(SeekFrom::Start(0))?;
    let bytes = file.metadata()?.len();
    append(archive, name, bytes, at_ms, &file)?;
    Ok((hash_of(&mut file)?, bytes))
}

fn hash_of(file: &mut File) -> io::Result<sha2::digest::Output<Sha256>> {
    file.seek(SeekFrom::Start(0))?;
    let (mut hash, mut piece) = (Sha256::new(), vec![0; PIECE]);
    loop {
        let count = io::Read::read(file, &mut piece)?;
        if count == 0 {
            return Ok(hash.finalize());
        }
        hash.update(&piece[..count]);
    }
}
