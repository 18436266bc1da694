//! The signed manifest of an archive, and the check of one. A signature proves who signed only to those who know the
//! public key from elsewhere: the archive's own copy of it proves nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use ringer_model::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::stamp::{Authorities, Stamp};

/// Name of the manifest in an archive.
pub(super) const MANIFEST: &str = "manifest.json";
/// Name of its signature.
pub(super) const SIGNATURE: &str = "manifest.sig";
/// Name of the stamp of an authority over the manifest (RFC 3161), as `openssl ts` reads it.
pub(super) const STAMP: &str = "manifest.tsr";
/// Form of manifests that this release writes and reads.
const FORM: &str = "ringer-evidence/1";
/// Form of chains of manifests.
const CHAIN_FORM: &str = "ringer-evidence-chain/1";
/// Name of the algorithm (RFC 8032).
const ALGORITHM: &str = "Ed25519";
/// Characters of a fingerprint: the beginning of the SHA-256 of a public key.
const FINGERPRINT: usize = 32;
/// Most bytes of a manifest or a signature that are read.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// List of the files of an archive, and facts on how its call was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// Form of the manifest.
    pub form: String,
    /// Identifier of the result.
    pub result_id: i64,
    /// Identifier of its run.
    pub run_id: i64,
    /// Seed of the call.
    pub seed: i64,
    /// Version of the program that packed the archive.
    pub version: String,
    /// Time at which the call was connected, as in the record.
    pub started_at: Value,
    /// Time at which it ended.
    pub ended_at: Value,
    /// Measurements of this side's own exactness; null: there are none.
    pub engine_quality: Value,
    /// Programs and models that spoke, heard and judged, by their names in the record.
    pub models: BTreeMap<String, Value>,
    /// SHA-256 and length of each other file by its name.
    pub files: BTreeMap<String, Packed>,
    /// Fingerprint of the public key that signs.
    pub key: String,
}

/// A file of an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Packed {
    /// SHA-256 in hexadecimal digits.
    pub sha256: String,
    /// Length of the file in bytes.
    pub bytes: u64,
}

/// A signature beside what it signs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Signature {
    /// Name of the algorithm: Ed25519 (RFC 8032).
    pub algorithm: String,
    /// Fingerprint of the public key.
    pub key: String,
    /// The public key, 64 hexadecimal digits. It proves nothing by itself.
    pub public_key: String,
    /// The signature, 128 hexadecimal digits.
    pub signature: String,
}

impl Manifest {
    /// Returns an empty manifest of this release.
    pub(super) fn new(result_id: i64, run_id: i64, seed: i64) -> Manifest {
        Manifest {
            form: FORM.to_owned(),
            result_id,
            run_id,
            seed,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: Value::Null,
            ended_at: Value::Null,
            engine_quality: Value::Null,
            models: BTreeMap::new(),
            files: BTreeMap::new(),
            key: String::new(),
        }
    }

    /// Returns the texts of the manifest and of its signature by a key.
    pub(super) fn sign(mut self, pair: &Ed25519KeyPair) -> io::Result<(Vec<u8>, Vec<u8>)> {
        self.key = fingerprint(pair.public_key().as_ref());
        let text = serde_json::to_vec_pretty(&self)?;
        let signature = serde_json::to_vec_pretty(&signature_of(pair, &text))?;
        Ok((text, signature))
    }
}

fn signature_of(pair: &Ed25519KeyPair, message: &[u8]) -> Signature {
    Signature {
        algorithm: ALGORITHM.to_owned(),
        key: fingerprint(pair.public_key().as_ref()),
        public_key: hex::encode(pair.public_key().as_ref()),
        signature: hex::encode(pair.sign(message).as_ref()),
    }
}

/// Returns the fingerprint of a public key: the first 32 digits of its SHA-256.
pub fn fingerprint(public_key: &[u8]) -> String {
    hex::encode(Sha256::digest(public_key))[..FINGERPRINT].to_owned()
}

/// Manifests of a run's results, each bound to those before it, under one signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Chain {
    /// Form of the chain.
    pub form: String,
    /// Identifier of the run.
    pub run_id: i64,
    /// Manifests of its results, in the order of their ids.
    pub links: Vec<Link>,
    /// Hash of the last link, hexadecimal.
    pub head: String,
    /// Signature of form, run and head.
    pub signature: Signature,
}

/// One manifest of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// Identifier of the result.
    pub result_id: i64,
    /// SHA-256 of its manifest.
    pub manifest_sha256: String,
}

impl Chain {
    /// Returns the chain of these manifests, signed by a key.
    pub(super) fn new(run_id: i64, links: Vec<Link>, pair: &Ed25519KeyPair) -> Chain {
        let head = head_of(run_id, &links);
        let signature = signature_of(pair, message_of(run_id, &head).as_bytes());
        Chain { form: CHAIN_FORM.to_owned(), run_id, links, head, signature }
    }
}

/// Returns the last link's hash: each is the SHA-256 of the one before it, the result and its manifest.
fn head_of(run_id: i64, links: &[Link]) -> String {
    links.iter().fold(hex::encode(Sha256::digest(run_id.to_string())), |before, link| {
        hex::encode(Sha256::digest(format!("{before} {} {}", link.result_id, link.manifest_sha256)))
    })
}

fn message_of(run_id: i64, head: &str) -> String {
    format!("{CHAIN_FORM}\n{run_id}\n{head}\n")
}

/// Result of a check of an archive or a chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Lines on what holds.
    pub holds: Vec<String>,
    /// Lines on what does not.
    pub broken: Vec<String>,
    /// Fingerprint of the key that signed; `None`: nothing is signed.
    pub key: Option<String>,
    /// True if it is the key that the reader knows.
    pub is_known: bool,
    /// SHA-256 of the manifest of an archive.
    pub manifest_sha256: Option<String>,
    /// Manifests of a chain.
    pub links: Vec<Link>,
    /// Time stamp over the manifest; `None`: there is none, or none that fits.
    pub stamped: Option<Stamped>,
}

/// Time at which a manifest was there, as an authority says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamped {
    /// Time of the stamp.
    pub at: Timestamp,
    /// Name of the authority, as the stamp's own certificate has it.
    pub authority: String,
    /// True if that certificate is certified by an authority that the reader knows.
    pub is_known: bool,
}

/// Checks an archive, or a chain of manifests, against keys and authorities that the reader knows from elsewhere.
///
/// # Errors
/// The file cannot be read as either.
pub fn verify(file: impl Read, known: &[Vec<u8>], authorities: Option<&Authorities>) -> io::Result<Verified> {
    let mut file = io::BufReader::new(file);
    let start = io::BufRead::fill_buf(&mut file)?;
    if start.first() == Some(&b'{') {
        let chain = serde_json::from_reader(file.take(MOST_BYTES))?;
        return Ok(verify_chain(&chain, known));
    }
    verify_archive(file, known, authorities)
}

fn verify_chain(chain: &Chain, known: &[Vec<u8>]) -> Verified {
    let mut found = Verified { links: chain.links.clone(), ..Verified::default() };
    if chain.form != CHAIN_FORM {
        found.broken.push(format!("the chain has the form {:?}, this program reads {CHAIN_FORM}", chain.form));
    }
    if head_of(chain.run_id, &chain.links) == chain.head {
        found.holds.push(format!("{} manifests of run {} in their order", chain.links.len(), chain.run_id));
    } else {
        found.broken.push("the chain's manifests were changed, left out or moved".to_owned());
    }
    check_signature(&mut found, &chain.signature, message_of(chain.run_id, &chain.head).as_bytes(), known);
    found
}

fn verify_archive(file: impl Read, known: &[Vec<u8>], authorities: Option<&Authorities>) -> io::Result<Verified> {
    let mut hashes = BTreeMap::new();
    let (mut manifest, mut signature, mut stamp) = (None, None, None);
    let mut twice = BTreeSet::new();
    for entry in tar::Archive::new(file).entries()? {
        let mut entry = entry?;
        let name = entry.path()?.to_string_lossy().into_owned();
        let kept = match &*name {
            MANIFEST => Some(&mut manifest),
            SIGNATURE => Some(&mut signature),
            STAMP => Some(&mut stamp),
            _ => None,
        };
        if let Some(kept) = kept {
            let mut bytes = Vec::new();
            (&mut entry).take(MOST_BYTES).read_to_end(&mut bytes)?;
            if kept.replace(bytes).is_some() {
                twice.insert(name);
            }
            continue;
        }
        let mut hash = Sha256::new();
        let bytes = io::copy(&mut entry, &mut hash)?;
        let packed = Packed { sha256: hex::encode(hash.finalize()), bytes };
        if hashes.insert(name.clone(), packed).is_some() {
            twice.insert(name);
        }
    }
    let mut found = Verified::default();
    found.broken.extend(twice.iter().map(|name| format!("{name} is in the archive twice")));
    let (Some(text), Some(signature)) = (manifest, signature) else {
        found.broken.push(
            "the archive has no signed manifest: it was packed by an earlier release, or that was taken out".to_owned(),
        );
        return Ok(found);
    };
    found.manifest_sha256 = Some(hex::encode(Sha256::digest(&text)));
    if let Some(stamp) = stamp {
        check_stamp(&mut found, &stamp, &text, authorities);
    } else if authorities.is_some() {
        found.broken.push("the manifest has no time stamp".to_owned());
    }
    match serde_json::from_slice::<Signature>(&signature) {
        Ok(signature) => check_signature(&mut found, &signature, &text, known),
        Err(error) => found.broken.push(format!("{SIGNATURE} cannot be read: {error}")),
    }
    match serde_json::from_slice::<Manifest>(&text) {
        Ok(manifest) => check_files(&mut found, &manifest, &hashes),
        Err(error) => found.broken.push(format!("{MANIFEST} cannot be read: {error}")),
    }
    Ok(found)
}

/// Checks the stamp over a manifest, and its authority where the reader knows some.
fn check_stamp(found: &mut Verified, stamp: &[u8], manifest: &[u8], authorities: Option<&Authorities>) {
    let stamp = match Stamp::read(stamp) {
        Ok(stamp) if stamp.sha256 == Sha256::digest(manifest)[..] => stamp,
        Ok(_) => return found.broken.push("the time stamp is over another manifest".to_owned()),
        Err(why) => return found.broken.push(format!("{STAMP}: {why}")),
    };
    let at = Timestamp(stamp.at_ms);
    let is_known = match authorities.map(|authorities| stamp.check_authority(authorities)) {
        Some(Err(why)) => return found.broken.push(format!("{STAMP}: {why}")),
        checked => checked.is_some(),
    };
    if is_known {
        found.holds.push(format!("the manifest was there at {at}, by the time stamp of {}", stamp.authority));
    }
    found.stamped = Some(Stamped { at, authority: stamp.authority, is_known });
}

fn check_files(found: &mut Verified, manifest: &Manifest, hashes: &BTreeMap<String, Packed>) {
    if manifest.form != FORM {
        found.broken.push(format!("the manifest has the form {:?}, this program reads {FORM}", manifest.form));
    }
    let mut whole = 0;
    for (name, packed) in &manifest.files {
        match hashes.get(name) {
            Some(is) if is == packed => whole += 1,
            Some(_) => found.broken.push(format!("{name} was changed")),
            None => found.broken.push(format!("{name} is missing")),
        }
    }
    let more = hashes.keys().filter(|name| !manifest.files.contains_key(*name));
    found.broken.extend(more.map(|name| format!("{name} was added")));
    found.holds.push(format!("{whole} of {} files are as they were signed", manifest.files.len()));
    found.holds.push(format!(
        "result {} of run {}, seed {}, packed by version {}",
        manifest.result_id, manifest.run_id, manifest.seed, manifest.version
    ));
}

fn check_signature(found: &mut Verified, signature: &Signature, message: &[u8], known: &[Vec<u8>]) {
    let bytes = (hex::decode(&signature.public_key), hex::decode(&signature.signature));
    let (Ok(own), Ok(signed)) = bytes else {
        found.broken.push("the signature is not hexadecimal".to_owned());
        return;
    };
    let key = fingerprint(&own);
    found.key = Some(key.clone());
    if signature.algorithm != ALGORITHM || signature.key != key {
        found.broken.push("the signature names another algorithm or key than its own".to_owned());
        return;
    }
    // A key in the archive proves nothing, unless the reader knows it.
    found.is_known = known.contains(&own);
    if !known.is_empty() && !found.is_known {
        let wanted: Vec<String> = known.iter().map(|key| fingerprint(key)).collect();
        found.broken.push(format!("it is signed by the key {key}, and not by {}", wanted.join(" or ")));
    } else if UnparsedPublicKey::new(&ED25519, &own).verify(message, &signed).is_ok() {
        found.holds.push(format!("the signature of the key {key} fits"));
    } else {
        found.broken.push(format!("the signature of the key {key} does not fit: something was changed after it"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(byte: u8) -> Ed25519KeyPair {
        Ed25519KeyPair::from_seed_unchecked(&[byte; 32]).expect("it is a seed")
    }

    fn archive(files: &[(&str, &[u8])], pair: &Ed25519KeyPair) -> Vec<u8> {
        let mut manifest = Manifest::new(3, 2, 7);
        for (name, bytes) in files {
            let packed = Packed { sha256: hex::encode(Sha256::digest(bytes)), bytes: bytes.len() as u64 };
            manifest.files.insert((*name).to_owned(), packed);
        }
        let (text, signature) = manifest.sign(pair).expect("it is signed");
        tar_of(&[files, &[(MANIFEST, &text), (SIGNATURE, &signature)]].concat())
    }

    fn tar_of(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut archive = tar::Builder::new(Vec::new());
        for (name, bytes) in files {
            let mut header = tar::Header::new_ustar();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            archive.append_data(&mut header, name, *bytes).expect("it is written");
        }
        archive.into_inner().expect("it is written")
    }

    #[test]
    fn an_archive_that_was_changed_by_one_byte_is_found() {
        let pair = pair(1);
        let public = [pair.public_key().as_ref().to_vec()];
        let whole = archive(&[("seed.txt", b"7\n"), ("sip.log", b"INVITE sip:a@b SIP/2.0")], &pair);
        let good = verify(&whole[..], &public, None).expect("it is read");
        assert!(good.broken.is_empty() && good.is_known, "{good:?}");
        // Each byte of a file, of the manifest and of the signature counts.
        let mut found = 0;
        for at in (0..whole.len()).filter(|at| (at / 512) % 2 == 1) {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            match verify(&changed[..], &public, None) {
                Ok(one) if one.broken.is_empty() => assert_eq!(whole[at], 0, "byte {at} is not padding"),
                _ => found += 1,
            }
        }
        assert!(found > 100, "{found}");
    }

    #[test]
    fn a_key_in_the_archive_proves_nothing() {
        let (ours, theirs) = (pair(1), pair(2));
        let forged = archive(&[("seed.txt", b"8\n")], &theirs);
        let unknown = verify(&forged[..], &[], None).expect("it is read");
        assert!(!unknown.is_known && unknown.broken.is_empty());
        assert_eq!(unknown.key, Some(fingerprint(theirs.public_key().as_ref())));
        let known = verify(&forged[..], &[ours.public_key().as_ref().to_vec()], None).expect("it is read");
        assert!(known.broken[0].contains("and not by"), "{known:?}");
    }

    #[test]
    fn files_that_are_missing_added_or_twice_are_told() {
        let pair = pair(1);
        let (text, signature) = {
            let mut manifest = Manifest::new(3, 2, 7);
            let packed = Packed { sha256: hex::encode(Sha256::digest(b"7\n")), bytes: 2 };
            manifest.files.insert("seed.txt".to_owned(), packed.clone());
            manifest.files.insert("gone.txt".to_owned(), packed);
            manifest.sign(&pair).expect("it is signed")
        };
        let files: [(&str, &[u8]); 5] = [
            ("seed.txt", b"7\n"),
            ("seed.txt", b"7\n"),
            ("more.txt", b"x"),
            (MANIFEST, &text),
            (SIGNATURE, &signature),
        ];
        let found = verify(&tar_of(&files)[..], &[], None).expect("it is read");
        assert_eq!(found.broken, ["seed.txt is in the archive twice", "gone.txt is missing", "more.txt was added"]);
        let bare = verify(&tar_of(&files[..1])[..], &[], None).expect("it is read");
        assert!(bare.broken[0].contains("no signed manifest"), "{bare:?}");
    }

    #[test]
    fn a_chain_holds_the_order_of_its_manifests() {
        let pair = pair(1);
        let link = |result_id, hash: &str| Link { result_id, manifest_sha256: hash.to_owned() };
        let chain = Chain::new(2, vec![link(3, "aa"), link(4, "bb")], &pair);
        let check = |chain: &Chain| {
            let text = serde_json::to_vec(chain).expect("it is JSON");
            verify(&text[..], &[pair.public_key().as_ref().to_vec()], None).expect("it is read")
        };
        assert!(check(&chain).broken.is_empty());
        let mut turned = chain.clone();
        turned.links.reverse();
        assert!(check(&turned).broken[0].contains("changed, left out or moved"));
        let mut other = chain.clone();
        other.head = head_of(2, &turned.links);
        other.links = turned.links;
        assert!(check(&other).broken[0].contains("does not fit"), "{:?}", check(&other));
    }
}
