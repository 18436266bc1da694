//! DTLS handshakes that bring the keys of secure RTP (RFC 5763, RFC 5764), without sockets and clocks: datagrams and
//! times go in, datagrams and keys come out. No media thread does this work.

mod association;
mod channel;
mod queue;
mod repeats;

use std::sync::Arc;

use ringer_sip::sdp::{Fingerprint, Handshake, HashFunction};
use rtc_dtls::crypto::Certificate;
use rtc_dtls::crypto_provider::{RTCCryptoProvider, default_provider};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};

pub use self::association::Fault;
pub use self::channel::{Channel, News};
pub use self::queue::{QUEUE_BYTES, QueueReader, QueueWriter, queue};

/// First bytes of DTLS datagrams, where they share a port with RTP (RFC 7983 7).
const FIRST_BYTES: std::ops::RangeInclusive<u8> = 20..=63;

/// Fingerprints of one description that are looked at.
const MAX_FINGERPRINTS: usize = 8;

/// True for a datagram of DTLS, by its first byte.
pub fn is_dtls(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| FIRST_BYTES.contains(first))
}

/// The certificate that this engine presents, with its key: of P-256, signed by itself, made anew at each start.
#[derive(Clone)]
pub struct Identity {
    provider: Arc<dyn RTCCryptoProvider>,
    certificate: Certificate,
    fingerprint: Fingerprint,
}

impl Identity {
    /// Makes a certificate.
    ///
    /// # Errors
    /// The library's, when the system gives no randomness.
    pub fn new() -> Result<Identity, String> {
        let provider = default_provider().map_err(|error| error.to_string())?;
        let certificate =
            Certificate::generate_self_signed(Vec::new(), provider.crypto()).map_err(|error| error.to_string())?;
        let der = certificate.certificate.first().ok_or("a certificate without its text")?;
        let fingerprint = fingerprint(HashFunction::Sha256, der).ok_or("a digest of another length")?;
        Ok(Identity { provider, certificate, fingerprint })
    }

    /// Returns the SHA-256 digest of the certificate.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

/// Returns the fingerprint of a certificate in DER.
pub fn fingerprint(hash: HashFunction, certificate: &[u8]) -> Option<Fingerprint> {
    match hash {
        HashFunction::Sha1 => Fingerprint::new(hash, &Sha1::digest(certificate)),
        HashFunction::Sha256 => Fingerprint::new(hash, &Sha256::digest(certificate)),
        HashFunction::Sha384 => Fingerprint::new(hash, &Sha384::digest(certificate)),
        HashFunction::Sha512 => Fingerprint::new(hash, &Sha512::digest(certificate)),
    }
}

/// The handshake that the keys of a media plan come from.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    fingerprints: [Option<Fingerprint>; MAX_FINGERPRINTS],
    /// True if this side begins the handshake.
    active: bool,
    /// SHA-256 of the name that the other side gave the association.
    tls_id: Option<[u8; 32]>,
}

impl From<&Handshake> for Expected {
    fn from(agreed: &Handshake) -> Expected {
        let mut known = agreed.fingerprints.iter().copied();
        Expected {
            fingerprints: std::array::from_fn(|_| known.next()),
            active: agreed.active,
            tls_id: agreed.tls_id.as_ref().map(|name| Sha256::digest(name).into()),
        }
    }
}

impl Expected {
    /// True when both mean one association: it goes on, whoever would begin another one (RFC 8842 4).
    pub fn is_same_association(&self, other: &Expected) -> bool {
        (self.fingerprints, self.tls_id) == (other.fingerprints, other.tls_id)
    }

    /// True when the certificate has one of the fingerprints.
    fn is_of(&self, certificate: &[u8]) -> bool {
        let known = self.fingerprints.iter().flatten();
        known.into_iter().any(|known| fingerprint(known.hash(), certificate).as_ref() == Some(known))
    }
}

#[cfg(test)]
mod tests;
