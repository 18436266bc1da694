//! Encryption and authentication of one kind of packet under one master key.

use aes::Aes128;
use aes::cipher::KeyInit;
use aes_gcm::{AeadInPlace, Aes128Gcm};
use hmac::{Hmac, Mac};
use sha1::Sha1;

use super::keys::{KEY, MasterKey, Suite, key_stream};
use super::{ENCRYPTED, REPORT_CLEAR, Refused};

/// Length of an AES-GCM tag, in bytes.
const GCM_TAG: usize = 16;

/// Length of the index of a report, in bytes.
const INDEX: usize = 4;

/// Session keys and their use (RFC 3711 4, RFC 7714 8 and 9).
#[derive(Clone)]
pub(super) enum Transform {
    Cm { aes: Aes128, salt: u128, mac: Hmac<Sha1>, tag: usize },
    Gcm { aead: Aes128Gcm, salt: u128 },
}

impl Transform {
    /// Returns the transforms of RTP and of RTCP, whose keys have labels of their own (RFC 3711 4.3.2).
    pub(super) fn pair(suite: Suite, master: &MasterKey) -> (Transform, Transform) {
        let rtp_tag = if suite == Suite::AesCm128HmacSha1_32 { 4 } else { 10 };
        (Transform::derive(suite, master, 0, rtp_tag), Transform::derive(suite, master, 3, 10))
    }

    fn derive(suite: Suite, master: &MasterKey, first_label: u8, tag: usize) -> Transform {
        let (mut key, mut auth, mut salt) = ([0; KEY], [0; 20], [0; 14]);
        master.derive(first_label, &mut key);
        master.derive(first_label + 1, &mut auth);
        let salt = &mut salt[..suite.salt_bytes()];
        master.derive(first_label + 2, salt);
        Transform::of_session_keys(suite, &key, &auth, salt, tag)
    }

    /// Returns a transform of session keys that are derived already.
    pub(super) fn of_session_keys(
        suite: Suite,
        key: &[u8; KEY],
        auth: &[u8; 20],
        salt: &[u8],
        tag: usize,
    ) -> Transform {
        let salt = salt.iter().fold(0, |number, byte| number << 8 | u128::from(*byte));
        match suite {
            Suite::AesCm128HmacSha1_80 | Suite::AesCm128HmacSha1_32 => {
                let mac = <Hmac<Sha1> as Mac>::new_from_slice(auth).expect("HMAC takes a key of any length");
                Transform::Cm { aes: Aes128::new(key.into()), salt, mac, tag }
            }
            Suite::AeadAes128Gcm => Transform::Gcm { aead: Aes128Gcm::new(key.into()), salt },
        }
    }

    /// Protects `buffer[..len]`, of which `clear` bytes stay readable; returns the new length.
    pub(super) fn seal_packet(&self, buffer: &mut [u8], clear: usize, len: usize, ssrc: u32, index: u64) -> usize {
        match self {
            Transform::Cm { aes, salt, mac, tag } => {
                encrypt_cm(aes, *salt, &mut buffer[clear..len], ssrc, index);
                let sum = rollover_mac(mac, &buffer[..len], index).finalize().into_bytes();
                buffer[len..len + tag].copy_from_slice(&sum[..*tag]);
                len + tag
            }
            Transform::Gcm { aead, salt } => {
                let (head, rest) = buffer.split_at_mut(clear);
                let (body, after) = rest.split_at_mut(len - clear);
                after[..GCM_TAG].copy_from_slice(&seal_gcm(aead, *salt, head, body, ssrc, index));
                len + GCM_TAG
            }
        }
    }

    /// Checks and decrypts `packet`; returns the length without its tag.
    pub(super) fn open_packet(&self, packet: &mut [u8], clear: usize, ssrc: u32, index: u64) -> Result<usize, Refused> {
        let tag = if let Transform::Cm { tag, .. } = self { *tag } else { GCM_TAG };
        let len = packet.len().checked_sub(tag).filter(|len| *len >= clear).ok_or(Refused::Malformed)?;
        let (inner, tag) = packet.split_at_mut(len);
        match self {
            Transform::Cm { aes, salt, mac, .. } => {
                rollover_mac(mac, inner, index).verify_truncated_left(tag).map_err(|_| Refused::Forged)?;
                encrypt_cm(aes, *salt, &mut inner[clear..], ssrc, index);
            }
            Transform::Gcm { aead, salt } => {
                let (head, body) = inner.split_at_mut(clear);
                open_gcm(aead, *salt, head, body, tag, ssrc, index)?;
            }
        }
        Ok(len)
    }

    /// Protects the compound packet in `buffer[..len]`; returns the new length.
    pub(super) fn seal_report(&self, buffer: &mut [u8], len: usize, ssrc: u32, index: u32) -> usize {
        let marked = (index | ENCRYPTED).to_be_bytes();
        match self {
            Transform::Cm { aes, salt, mac, tag } => {
                encrypt_cm(aes, *salt, &mut buffer[REPORT_CLEAR..len], ssrc, index.into());
                buffer[len..len + INDEX].copy_from_slice(&marked);
                let end = len + INDEX;
                let sum = mac.clone().chain_update(&buffer[..end]).finalize().into_bytes();
                buffer[end..end + tag].copy_from_slice(&sum[..*tag]);
                end + tag
            }
            Transform::Gcm { aead, salt } => {
                let known = report_known(buffer, marked);
                let tag = seal_gcm(aead, *salt, &known, &mut buffer[REPORT_CLEAR..len], ssrc, index.into());
                buffer[len..len + GCM_TAG].copy_from_slice(&tag);
                buffer[len + GCM_TAG..][..INDEX].copy_from_slice(&marked);
                len + GCM_TAG + INDEX
            }
        }
    }

    /// Returns the index of a report with its mark of encryption; `None` when the packet is too short to have one.
    pub(super) fn report_index(&self, packet: &[u8]) -> Option<u32> {
        let end = match self {
            Transform::Cm { tag, .. } => packet.len().checked_sub(*tag)?,
            Transform::Gcm { .. } => packet.len(),
        };
        let shortest = REPORT_CLEAR + if let Transform::Gcm { .. } = self { GCM_TAG } else { 0 };
        let (body, index) = packet.get(..end)?.split_last_chunk::<INDEX>()?;
        (body.len() >= shortest).then_some(u32::from_be_bytes(*index))
    }

    /// Checks and decrypts a report that has an index; returns the length of the compound packet.
    pub(super) fn open_report(&self, packet: &mut [u8], ssrc: u32, index: u32) -> Result<usize, Refused> {
        match self {
            Transform::Cm { aes, salt, mac, tag } => {
                let (inner, tag) = packet.split_at_mut(packet.len() - tag);
                mac.clone().chain_update(&*inner).verify_truncated_left(tag).map_err(|_| Refused::Forged)?;
                let len = inner.len() - INDEX;
                encrypt_cm(aes, *salt, &mut inner[REPORT_CLEAR..len], ssrc, index.into());
                Ok(len)
            }
            Transform::Gcm { aead, salt } => {
                let known = report_known(packet, (index | ENCRYPTED).to_be_bytes());
                let len = packet.len() - GCM_TAG - INDEX;
                let (inner, tag) = packet.split_at_mut(len);
                open_gcm(aead, *salt, &known, &mut inner[REPORT_CLEAR..], &tag[..GCM_TAG], ssrc, index.into())?;
                Ok(len)
            }
        }
    }
}

/// Encrypts, or decrypts, by AES in counter mode (RFC 3711 4.1.1).
fn encrypt_cm(aes: &Aes128, salt: u128, body: &mut [u8], ssrc: u32, index: u64) {
    let start = salt << 16 ^ u128::from(ssrc) << 64 ^ u128::from(index) << 16;
    key_stream(aes, &start.to_be_bytes(), body);
}

/// Returns the authentication state of the packet and its rollover counter, which is not sent (RFC 3711 4.2).
fn rollover_mac(mac: &Hmac<Sha1>, packet: &[u8], index: u64) -> Hmac<Sha1> {
    mac.clone().chain_update(packet).chain_update(((index >> 16) as u32).to_be_bytes())
}

/// Returns the nonce of RFC 7714 8.1 and 9.1: two zero bytes, source, and 48 bits of index.
fn nonce(salt: u128, ssrc: u32, index: u64) -> [u8; 12] {
    let number = salt ^ u128::from(ssrc) << 48 ^ u128::from(index);
    let [_, _, _, _, nonce @ ..] = number.to_be_bytes();
    nonce
}

fn seal_gcm(aead: &Aes128Gcm, salt: u128, known: &[u8], body: &mut [u8], ssrc: u32, index: u64) -> [u8; GCM_TAG] {
    let sealed = aead.encrypt_in_place_detached(&nonce(salt, ssrc, index).into(), known, body);
    sealed.expect("a datagram is shorter than the 64 GiB that AES-GCM takes").into()
}

fn open_gcm(
    aead: &Aes128Gcm,
    salt: u128,
    known: &[u8],
    body: &mut [u8],
    tag: &[u8],
    ssrc: u32,
    index: u64,
) -> Result<(), Refused> {
    let opened = aead.decrypt_in_place_detached(&nonce(salt, ssrc, index).into(), known, body, tag.into());
    opened.map_err(|_| Refused::Forged)
}

/// Returns the bytes of a report that are authenticated and not encrypted (RFC 7714 9.2).
fn report_known(packet: &[u8], index: [u8; INDEX]) -> [u8; REPORT_CLEAR + INDEX] {
    let mut known = [0; REPORT_CLEAR + INDEX];
    known[..REPORT_CLEAR].copy_from_slice(&packet[..REPORT_CLEAR]);
    known[REPORT_CLEAR..].copy_from_slice(&index);
    known
}
