//! Tags, branches, Call-IDs and cnonces: unguessable without the seed, repeatable with it (RFC 3261 19.3). Also the
//! names of calls and transactions.

use std::sync::Arc;

use sha2::{Digest, Sha256};

/// Name of a call of one [`Endpoint`](crate::Endpoint); never used again.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallKey(pub u64);

/// Name of a transaction: branch and method, for a server's also the sender (RFC 3261 17.2.3).
pub(crate) type TransactionKey = Arc<str>;

/// A stream of identifiers: SHA-256 over the seed and a counter.
pub(crate) struct Ids {
    seed: u64,
    count: u64,
}

impl Ids {
    /// Returns the stream of `seed`.
    pub(crate) fn new(seed: u64) -> Ids {
        Ids { seed, count: 0 }
    }

    /// Returns the next identifier, 20 hexadecimal digits (80 bits).
    pub(crate) fn next(&mut self) -> String {
        self.count += 1;
        hex(&self.keyed_hash(&self.count.to_be_bytes())[..10])
    }

    /// Draws a number from 0 to `below` - 1, evenly.
    pub(crate) fn draw(&mut self, below: u64) -> u64 {
        self.count += 1;
        let bytes = self.keyed_hash(&self.count.to_be_bytes());
        let number = bytes.iter().take(8).fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
        number % below.max(1)
    }

    /// Returns a keyed hash of `text` that outsiders cannot make, for nonces.
    pub(crate) fn seal(&self, text: &str) -> String {
        hex(&self.keyed_hash(format!("seal{text}").as_bytes())[..16])
    }

    fn keyed_hash(&self, bytes: &[u8]) -> [u8; 32] {
        Sha256::new()
            .chain_update(b"ringer sip")
            .chain_update(self.seed.to_be_bytes())
            .chain_update(bytes)
            .finalize()
            .into()
    }
}

/// Returns the bytes as hexadecimal digits in lower case, two a byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|b| [DIGITS[usize::from(b >> 4)] as char, DIGITS[usize::from(b & 15)] as char]).collect()
}
