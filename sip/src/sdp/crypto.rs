//! `a=crypto`: suites and keys for secure RTP in session descriptions (RFC 4568).
//!
//! A line is understood when this side can do all that it asks: a known suite, one key without master key identifier
//! that lasts for a call, no parameter that changes how packets are protected. Other lines are passed over, as RFC 4568
//! 7.1.2 wants.

use std::fmt;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Some write the padding and some do not.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A key that lasts for fewer packets might not last for a call: 2^20 of 20 ms are almost six hours.
const SHORTEST_LIFETIME: u64 = 1 << 20;

/// Smallest replay window (RFC 4568 6.3.7).
const SMALLEST_WINDOW: u32 = 64;

/// A crypto suite (RFC 4568 6.2, RFC 7714 14.1).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum CryptoSuite {
    /// AES in counter mode, tags of 80 bits.
    AesCm128HmacSha1_80,
    /// AES in counter mode, tags of 32 bits.
    AesCm128HmacSha1_32,
    /// AES in Galois/counter mode, keys of 128 bits (RFC 7714).
    AeadAes128Gcm,
}

impl CryptoSuite {
    /// All of them, in the order in which they are offered.
    pub const ALL: [CryptoSuite; 3] =
        [CryptoSuite::AesCm128HmacSha1_80, CryptoSuite::AesCm128HmacSha1_32, CryptoSuite::AeadAes128Gcm];

    /// Returns the name of the suite in SDP (RFC 4568 6.2).
    pub fn name(self) -> &'static str {
        match self {
            CryptoSuite::AesCm128HmacSha1_80 => "AES_CM_128_HMAC_SHA1_80",
            CryptoSuite::AesCm128HmacSha1_32 => "AES_CM_128_HMAC_SHA1_32",
            CryptoSuite::AeadAes128Gcm => "AEAD_AES_128_GCM",
        }
    }

    /// Returns the length of master key and salt together, in bytes.
    pub fn key_bytes(self) -> usize {
        match self {
            CryptoSuite::AesCm128HmacSha1_80 | CryptoSuite::AesCm128HmacSha1_32 => 30,
            CryptoSuite::AeadAes128Gcm => 28,
        }
    }
}

/// A master key and salt. Never shown: `Debug` says only that it is there.
#[derive(Clone, PartialEq, Eq)]
pub struct KeySalt(Vec<u8>);

impl KeySalt {
    /// Returns key and salt in one; `None` when their length is not that of `suite`.
    pub fn new(suite: CryptoSuite, bytes: &[u8]) -> Option<KeySalt> {
        (bytes.len() == suite.key_bytes()).then(|| KeySalt(bytes.to_vec()))
    }

    /// Returns the bytes, for the code that protects packets with them.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for KeySalt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(set)")
    }
}

/// One way to protect a stream, with the key of the side that writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crypto {
    /// Number that names it in offer and answer, 0 to 999999999.
    pub tag: u32,
    /// Suite that protects the stream.
    pub suite: CryptoSuite,
    /// Master key and salt of the side that writes the line.
    pub key: KeySalt,
}

impl Crypto {
    /// Reads the value of an `a=crypto` line; `None` when it is malformed or asks for something that this side cannot
    /// do.
    pub fn parse(value: &str) -> Option<Crypto> {
        let mut words = value.split_whitespace();
        let tag = words.next().filter(|tag| tag.len() <= 9 && tag.bytes().all(|byte| byte.is_ascii_digit()))?;
        let name = words.next()?;
        let suite = CryptoSuite::ALL.into_iter().find(|suite| suite.name() == name)?;
        let key = key(suite, words.next()?)?;
        words.all(harmless).then_some(Crypto { tag: tag.parse().ok()?, suite, key })
    }
}

/// Writes the value of an `a=crypto` line, with the key.
impl fmt::Display for Crypto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} inline:{}", self.tag, self.suite.name(), BASE64.encode(&self.key.0))
    }
}

/// Reads `inline:KEY[|LIFETIME][|MKI:LENGTH]`. Several keys, parted by semicolons, need identifiers and are refused.
fn key(suite: CryptoSuite, params: &str) -> Option<KeySalt> {
    let (method, info) = params.split_once(':')?;
    let mut parts = info.split('|');
    let key = BASE64.decode(parts.next()?).ok()?;
    let lasts = parts.next().is_none_or(|part| lifetime(part).is_some_and(|packets| packets >= SHORTEST_LIFETIME));
    (method.eq_ignore_ascii_case("inline") && lasts && parts.next().is_none()).then(|| KeySalt::new(suite, &key))?
}

/// Reads a number of packets, written as a number or as a power of two.
fn lifetime(text: &str) -> Option<u64> {
    match text.strip_prefix("2^") {
        Some(power) => 1u64.checked_shl(power.parse().ok()?),
        None => text.parse().ok(),
    }
}

/// True for parameters that change nothing for this side: the size of the window, and those that may be ignored (RFC
/// 4568 6.3.7, 6.3.8).
fn harmless(param: &str) -> bool {
    match param.strip_prefix("WSH=") {
        Some(size) => size.parse().is_ok_and(|size: u32| size >= SMALLEST_WINDOW),
        None => param.starts_with('-'),
    }
}
