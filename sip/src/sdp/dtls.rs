//! `a=fingerprint`, `a=setup` and `a=tls-id`: the DTLS handshake that brings the keys of a stream (RFC 5763, 8122,
//! 8842).

use std::fmt;

use super::{Attribute, Media, Session};

/// Length of the longest digest, in bytes.
const LONGEST_DIGEST: usize = 64;

/// Largest number of fingerprints of one description that are examined.
const MAX_FINGERPRINTS: usize = 8;

/// Lengths of a name of an association, characters (RFC 8842 4).
const TLS_ID_LENGTHS: std::ops::RangeInclusive<usize> = 20..=255;

/// A hash function of fingerprints (RFC 8122 5), weakest first.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HashFunction {
    /// SHA-1, the only function of old programs. It counts where a description has no better one.
    Sha1,
    /// SHA-2 with 256 bits, which every implementation has.
    Sha256,
    /// SHA-2 with 384 bits.
    Sha384,
    /// SHA-2 with 512 bits.
    Sha512,
}

impl HashFunction {
    /// All of them, weakest first.
    pub const ALL: [HashFunction; 4] =
        [HashFunction::Sha1, HashFunction::Sha256, HashFunction::Sha384, HashFunction::Sha512];

    /// Returns the name in SDP.
    pub fn name(self) -> &'static str {
        match self {
            HashFunction::Sha1 => "sha-1",
            HashFunction::Sha256 => "sha-256",
            HashFunction::Sha384 => "sha-384",
            HashFunction::Sha512 => "sha-512",
        }
    }

    /// Returns the length of a digest in bytes.
    pub fn digest_bytes(self) -> usize {
        match self {
            HashFunction::Sha1 => 20,
            HashFunction::Sha256 => 32,
            HashFunction::Sha384 => 48,
            HashFunction::Sha512 => LONGEST_DIGEST,
        }
    }
}

/// Digest of a certificate (RFC 8122 5).
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    hash: HashFunction,
    /// Bytes of the digest, with zeros at the end where it is shorter.
    digest: [u8; LONGEST_DIGEST],
}

impl Fingerprint {
    /// Returns the fingerprint of this digest; `None` when its length is not that of the function.
    pub fn new(hash: HashFunction, digest: &[u8]) -> Option<Fingerprint> {
        let mut bytes = [0; LONGEST_DIGEST];
        bytes.get_mut(..digest.len()).filter(|_| digest.len() == hash.digest_bytes())?.copy_from_slice(digest);
        Some(Fingerprint { hash, digest: bytes })
    }

    /// Returns the hash function.
    pub fn hash(&self) -> HashFunction {
        self.hash
    }

    /// Returns the bytes of the digest.
    pub fn digest(&self) -> &[u8] {
        &self.digest[..self.hash.digest_bytes()]
    }

    /// Reads the value of an `a=fingerprint` line: `sha-256 4A:AD:...`. `None` when it is malformed or its function is
    /// not known.
    pub fn parse(value: &str) -> Option<Fingerprint> {
        let (name, digits) = value.trim().split_once(char::is_whitespace)?;
        let hash = HashFunction::ALL.into_iter().find(|hash| hash.name().eq_ignore_ascii_case(name))?;
        let mut digest = Vec::with_capacity(hash.digest_bytes());
        for pair in digits.trim().split(':').take(hash.digest_bytes() + 1) {
            let is_byte = pair.len() == 2 && pair.bytes().all(|digit| digit.is_ascii_hexdigit());
            digest.push(u8::from_str_radix(pair, 16).ok().filter(|_| is_byte)?);
        }
        Fingerprint::new(hash, &digest)
    }
}

/// Writes the value of an `a=fingerprint` line.
impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.hash.name())?;
        for (at, byte) in self.digest().iter().enumerate() {
            write!(f, "{}{byte:02X}", if at == 0 { ' ' } else { ':' })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Part of a side in beginning the handshake (RFC 4145 4, RFC 5763 5).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Setup {
    /// Either side may begin: the answer decides.
    Actpass,
    /// The side that writes it begins.
    Active,
    /// The side that reads it begins.
    Passive,
    /// Nobody begins for now.
    Holdconn,
}

impl Setup {
    /// Returns the word in SDP.
    pub fn as_str(self) -> &'static str {
        match self {
            Setup::Actpass => "actpass",
            Setup::Active => "active",
            Setup::Passive => "passive",
            Setup::Holdconn => "holdconn",
        }
    }

    fn parse(word: &str) -> Option<Setup> {
        let all = [Setup::Actpass, Setup::Active, Setup::Passive, Setup::Holdconn];
        all.into_iter().find(|setup| setup.as_str().eq_ignore_ascii_case(word.trim()))
    }
}

/// One side's part in a handshake, as its description tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dtls {
    /// One for each certificate that may be presented, all of the strongest function that the description has (RFC 8122
    /// 5).
    pub fingerprints: Vec<Fingerprint>,
    /// Part in the handshake.
    pub setup: Setup,
    /// Name of the association (RFC 8842 4); another name wants another handshake.
    pub tls_id: Option<String>,
}

/// A handshake as offer and answer settled it, seen from this side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// Fingerprints, one of which the other side's certificate has.
    pub fingerprints: Vec<Fingerprint>,
    /// True when this side begins (it is the DTLS client).
    pub active: bool,
    /// Name that the other side gave the association.
    pub tls_id: Option<String>,
}

impl Dtls {
    /// Returns what an offer says: either side may begin.
    pub fn offering(fingerprint: Fingerprint, tls_id: String) -> Dtls {
        Dtls { fingerprints: vec![fingerprint], setup: Setup::Actpass, tls_id: Some(tls_id) }
    }

    /// Reads the lines of a stream; what the stream does not say, the session says (RFC 8122 5). `otherwise` holds
    /// where `a=setup` is missing. `None` without a usable fingerprint.
    pub(super) fn of_stream(session: &Session, media: &Media, otherwise: Setup) -> Option<Dtls> {
        let values = |name: &'static str| {
            let here = if media.has(name) { &media.attributes } else { &session.attributes };
            here.iter().filter(move |line| line.name == name).filter_map(|line| line.value.as_deref())
        };
        let known: Vec<Fingerprint> =
            values("fingerprint").filter_map(Fingerprint::parse).take(MAX_FINGERPRINTS).collect();
        let strongest = known.iter().map(Fingerprint::hash).max()?;
        let setup = match values("setup").next() {
            Some(word) => Setup::parse(word)?,
            None => otherwise,
        };
        let fingerprints = known.into_iter().filter(|known| known.hash() == strongest).collect();
        Some(Dtls { fingerprints, setup, tls_id: values("tls-id").next().and_then(tls_id) })
    }

    /// Returns the answer to the offer `theirs`, and what both then agree on. `None` when no handshake is wanted now.
    ///
    /// A side that has a part already keeps it where the offer leaves the choice; another one begins (RFC 5763 5).
    pub(super) fn answer(&self, theirs: Dtls) -> Option<(Dtls, Handshake)> {
        let setup = match theirs.setup {
            Setup::Actpass if self.setup == Setup::Passive => Setup::Passive,
            Setup::Actpass | Setup::Passive => Setup::Active,
            Setup::Active => Setup::Passive,
            Setup::Holdconn => return None,
        };
        // A name is an answer to a name (RFC 8842 5.3).
        let tls_id = self.tls_id.clone().filter(|_| theirs.tls_id.is_some());
        let answer = Dtls { fingerprints: self.fingerprints.clone(), setup, tls_id };
        Some((answer, theirs.handshake(setup == Setup::Active)))
    }

    /// Returns what the answer `theirs` to this offer means. `None` when no handshake is wanted now.
    pub(super) fn take_answer(&self, theirs: Dtls) -> Option<Handshake> {
        match theirs.setup {
            Setup::Active => Some(theirs.handshake(false)),
            // An answer has to choose; one that does not leaves it to this side.
            Setup::Passive | Setup::Actpass => Some(theirs.handshake(true)),
            Setup::Holdconn => None,
        }
    }

    fn handshake(self, active: bool) -> Handshake {
        Handshake { fingerprints: self.fingerprints, active, tls_id: self.tls_id }
    }

    /// Returns the lines of a stream.
    pub(super) fn attributes(&self) -> Vec<Attribute> {
        let fingerprints = self.fingerprints.iter().map(|print| Attribute::new("fingerprint", print.to_string()));
        let setup = std::iter::once(Attribute::new("setup", self.setup.as_str()));
        let tls_id = self.tls_id.iter().map(|id| Attribute::new("tls-id", id.as_str()));
        fingerprints.chain(setup).chain(tls_id).collect()
    }
}

impl Session {
    /// Leaves it to the answer which side begins a handshake, as every offer does (RFC 5763 5).
    pub(crate) fn leave_setup_open(&mut self) {
        let sections = self.media.iter_mut().map(|media| &mut media.attributes).chain([&mut self.attributes]);
        for line in sections.flatten().filter(|line| line.name == "setup") {
            line.value = Some(Setup::Actpass.as_str().to_owned());
        }
    }
}

impl Handshake {
    /// Returns the word of `a=setup` by which this side keeps its part.
    pub fn setup(&self) -> Setup {
        if self.active { Setup::Active } else { Setup::Passive }
    }
}

/// Returns the name, when it can be one of an association.
fn tls_id(value: &str) -> Option<String> {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte);
    (TLS_ID_LENGTHS.contains(&value.len()) && value.bytes().all(known)).then(|| value.to_owned())
}
