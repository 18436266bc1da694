//! Keys of secure RTP, out of the handshake that the library makes (RFC 5764 4.2).
//!
//! The library keeps its keys to itself, but takes every operation of cryptography from a provider that its user may
//! give. This one hands all of them to the library's own, and listens for one: the first HMAC of the exporter of keys,
//! whose text begins with the exporter's label. The exporter (RFC 5705 4) is then computed here too.

use std::sync::Arc;

use parking_lot::Mutex;
use ringer_media::rtp::srtp::{MasterKey, SrtpParams, Suite};
use webrtc::peer_connection::SrtpProtectionProfile;
use webrtc::peer_connection::crypto::{
    ActiveKeyExchange, AeadAlgorithm, AeadCipher, BlockCipherAlgorithm, CbcAlgorithm, CbcCipher, CryptoAlgorithm,
    CryptoError, HashAlgorithm, HmacAlgorithm, KeyExchangeAlgorithm, Mac, PublicKey, RTCCrypto, RTCCryptoProvider,
    RTCRandom, SignatureScheme, SigningKey, StreamCipher, StreamCipherAlgorithm, default_provider,
};

/// Label of the exporter (RFC 5764 4.2).
const LABEL: &[u8] = b"EXTRACTOR-dtls_srtp";

/// Bytes of one round of the exporter: of SHA-256, which all cipher suites of the library have.
const ROUND: usize = 32;

/// Bytes of a master key.
const KEY: usize = 16;

/// Profiles that a handshake may settle, best first (RFC 7714 14.2, RFC 5764 4.1.2). AES-GCM costs a third of the other
/// two. That of 256 bits is not among them: media threads have keys of 128.
pub(super) fn profiles() -> Vec<SrtpProtectionProfile> {
    vec![
        SrtpProtectionProfile::Srtp_Aead_Aes_128_Gcm,
        SrtpProtectionProfile::Srtp_Aes128_Cm_Hmac_Sha1_80,
        SrtpProtectionProfile::Srtp_Aes128_Cm_Hmac_Sha1_32,
    ]
}

/// Returns the suite that the library names so in its figures.
pub(super) fn suite_of(name: &str) -> Option<Suite> {
    match name {
        "SRTP_AEAD_AES_128_GCM" => Some(Suite::AeadAes128Gcm),
        "SRTP_AES128_CM_HMAC_SHA1_80" => Some(Suite::AesCm128HmacSha1_80),
        "SRTP_AES128_CM_HMAC_SHA1_32" => Some(Suite::AesCm128HmacSha1_32),
        _ => None,
    }
}

/// Keying material of a handshake: as much of it as the longest suite takes.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Material([u8; 2 * ROUND]);

impl Material {
    /// Returns the keys in it; `is_client`: this side began the handshake (RFC 5764 4.2).
    pub(super) fn keys(&self, suite: Suite, is_client: bool) -> Option<SrtpParams> {
        let salt = suite.salt_bytes();
        let (keys, rest) = self.0.split_at(2 * KEY);
        let of = |side: usize| {
            let whole = [&keys[side * KEY..][..KEY], rest.get(side * salt..)?.get(..salt)?].concat();
            MasterKey::new(suite, &whole)
        };
        let (own, other) = if is_client { (0, 1) } else { (1, 0) };
        Some(SrtpParams { suite, send: of(own)?, receive: of(other)? })
    }
}

/// The place where the keying material of a connection's last handshake lies.
#[derive(Clone, Default)]
pub(super) struct Heard(Arc<Mutex<Option<Material>>>);

impl Heard {
    /// Returns the material of the last handshake; `None` before one.
    pub(super) fn material(&self) -> Option<Material> {
        self.0.lock().clone()
    }
}

/// The provider of one connection.
pub(super) struct Provider {
    own: Arc<dyn RTCCryptoProvider>,
    heard: Heard,
}

impl Provider {
    /// Returns a provider that leaves keying material at `heard`.
    ///
    /// # Errors
    /// The library has none of its own.
    pub(super) fn new(heard: Heard) -> Result<Provider, CryptoError> {
        Ok(Provider { own: default_provider()?, heard })
    }
}

impl RTCCryptoProvider for Provider {
    fn name(&self) -> &'static str {
        self.own.name()
    }

    fn crypto(&self) -> &dyn RTCCrypto {
        self
    }

    fn random(&self) -> &dyn RTCRandom {
        self.own.random()
    }
}

impl RTCCrypto for Provider {
    fn supports(&self, algorithm: CryptoAlgorithm) -> bool {
        self.own.crypto().supports(algorithm)
    }

    fn hash(&self, algorithm: HashAlgorithm, data: &[u8]) -> Result<Vec<u8>, CryptoError> {
        self.own.crypto().hash(algorithm, data)
    }

    fn block_encrypt(&self, algorithm: BlockCipherAlgorithm, key: &[u8], block: &mut [u8]) -> Result<(), CryptoError> {
        self.own.crypto().block_encrypt(algorithm, key, block)
    }

    fn new_hmac(&self, algorithm: HmacAlgorithm, key: &[u8]) -> Result<Box<dyn Mac>, CryptoError> {
        let own = self.own.crypto().new_hmac(algorithm, key)?;
        if algorithm != HmacAlgorithm::Sha256 {
            return Ok(own);
        }
        Ok(Box::new(ListeningMac { own, heard: self.heard.clone() }))
    }

    fn new_stream_cipher(
        &self,
        algorithm: StreamCipherAlgorithm,
        key: &[u8],
    ) -> Result<Box<dyn StreamCipher>, CryptoError> {
        self.own.crypto().new_stream_cipher(algorithm, key)
    }

    fn new_aead(&self, algorithm: AeadAlgorithm, key: &[u8]) -> Result<Box<dyn AeadCipher>, CryptoError> {
        self.own.crypto().new_aead(algorithm, key)
    }

    fn new_cbc(&self, algorithm: CbcAlgorithm, key: &[u8]) -> Result<Box<dyn CbcCipher>, CryptoError> {
        self.own.crypto().new_cbc(algorithm, key)
    }

    fn start_key_exchange(&self, algorithm: KeyExchangeAlgorithm) -> Result<Box<dyn ActiveKeyExchange>, CryptoError> {
        self.own.crypto().start_key_exchange(algorithm)
    }

    fn generate_signing_key(&self, scheme: SignatureScheme) -> Result<Arc<dyn SigningKey>, CryptoError> {
        self.own.crypto().generate_signing_key(scheme)
    }

    fn import_signing_key(&self, scheme: SignatureScheme, pkcs8: &[u8]) -> Result<Arc<dyn SigningKey>, CryptoError> {
        self.own.crypto().import_signing_key(scheme, pkcs8)
    }

    fn verify_signature(
        &self,
        scheme: SignatureScheme,
        key: PublicKey<'_>,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), CryptoError> {
        self.own.crypto().verify_signature(scheme, key, message, signature)
    }
}

/// A code of HMAC-SHA-256 that listens for the exporter.
struct ListeningMac {
    own: Box<dyn Mac>,
    heard: Heard,
}

impl ListeningMac {
    /// Returns the exporter's first rounds under this key (RFC 5246 5: `P_hash`).
    fn export(&mut self, seed: &[u8]) -> Result<Material, CryptoError> {
        let (mut material, mut chain) = ([0; 2 * ROUND], [0; ROUND]);
        self.own.sign(&[seed], &mut chain)?;
        for round in material.chunks_exact_mut(ROUND) {
            self.own.sign(&[&chain, seed], round)?;
            let last = chain;
            self.own.sign(&[&last], &mut chain)?;
        }
        Ok(Material(material))
    }
}

impl Mac for ListeningMac {
    fn output_len(&self) -> usize {
        self.own.output_len()
    }

    fn sign(&mut self, input: &[&[u8]], output: &mut [u8]) -> Result<(), CryptoError> {
        if let [seed] = input
            && seed.starts_with(LABEL)
        {
            *self.heard.0.lock() = Some(self.export(seed)?);
        }
        self.own.sign(input, output)
    }

    fn verify(&mut self, input: &[&[u8]], expected: &[u8]) -> Result<(), CryptoError> {
        self.own.verify(input, expected)
    }
}
