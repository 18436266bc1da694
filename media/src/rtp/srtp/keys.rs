//! Crypto suites, master keys, and the session keys that come of them.

use std::fmt;

use aes::Aes128;
use aes::cipher::{InnerIvInit, KeyInit, StreamCipherCore};
use ctr::{CtrCore, flavors::Ctr128BE};

/// Length of a master key and of a session key, in bytes.
pub(super) const KEY: usize = 16;

/// Length of the longest master salt, in bytes.
const SALT: usize = 14;

/// Crypto suite of secure RTP (RFC 4568 6.2, RFC 7714 14.1).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Suite {
    /// AES-CM with an authentication tag of 80 bits.
    AesCm128HmacSha1_80,
    /// AES-CM with an authentication tag of 32 bits; reports have 80.
    AesCm128HmacSha1_32,
    /// AES-GCM with a tag of 128 bits.
    AeadAes128Gcm,
}

impl Suite {
    /// All suites, in the order in which they are offered.
    pub const ALL: [Suite; 3] = [Suite::AesCm128HmacSha1_80, Suite::AesCm128HmacSha1_32, Suite::AeadAes128Gcm];

    /// Returns the name of the suite in SDP (RFC 4568 6.2).
    pub fn name(self) -> &'static str {
        match self {
            Suite::AesCm128HmacSha1_80 => "AES_CM_128_HMAC_SHA1_80",
            Suite::AesCm128HmacSha1_32 => "AES_CM_128_HMAC_SHA1_32",
            Suite::AeadAes128Gcm => "AEAD_AES_128_GCM",
        }
    }

    /// Returns the suite of this name in SDP; `None` for an unknown one.
    pub fn from_name(name: &str) -> Option<Suite> {
        Suite::ALL.into_iter().find(|suite| suite.name() == name)
    }

    /// Returns the length of its master salt, in bytes.
    pub fn salt_bytes(self) -> usize {
        match self {
            Suite::AesCm128HmacSha1_80 | Suite::AesCm128HmacSha1_32 => 14,
            Suite::AeadAes128Gcm => 12,
        }
    }
}

/// A master key with its salt. Never shown: `Debug` says only that it is there.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct MasterKey {
    key: [u8; KEY],
    /// Zeros at the end when the suite's salt is shorter.
    salt: [u8; SALT],
}

impl MasterKey {
    /// Reads key and salt of `suite` as they stand in an SDP `inline:` value: 16 bytes and the salt. `None` when the
    /// length is another.
    pub fn new(suite: Suite, bytes: &[u8]) -> Option<MasterKey> {
        let (key, given) = bytes.split_first_chunk::<KEY>()?;
        let mut salt = [0; SALT];
        salt.get_mut(..given.len()).filter(|_| given.len() == suite.salt_bytes())?.copy_from_slice(given);
        Some(MasterKey { key: *key, salt })
    }

    /// Fills `out` with the session key of `label` (RFC 3711 4.3.1, 4.3.3; the key derivation rate is 0).
    pub(super) fn derive(&self, label: u8, out: &mut [u8]) {
        let mut start = [0; 16];
        start[..SALT].copy_from_slice(&self.salt);
        start[7] ^= label;
        let aes = Aes128::new(&self.key.into());
        out.fill(0);
        key_stream(&aes, &start, out);
    }
}

/// Adds to `body` the key stream that begins at `start` (RFC 3711 4.1.1), which encrypts and decrypts.
pub(super) fn key_stream(aes: &Aes128, start: &[u8; 16], body: &mut [u8]) {
    CtrCore::<&Aes128, Ctr128BE>::inner_iv_init(aes, start.into()).apply_keystream_partial(body.into());
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(set)")
    }
}

/// Parameters of secure RTP that offer and answer settled: one suite and a key for each direction.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SrtpParams {
    /// Suite of both directions.
    pub suite: Suite,
    /// Key of this side's packets.
    pub send: MasterKey,
    /// Key of the other side's packets.
    pub receive: MasterKey,
}
