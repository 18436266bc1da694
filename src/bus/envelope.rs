//! A message as it is sent: version, HMAC-SHA256 (RFC 2104, FIPS 180-4) and JSON with the sender, the time and the
//! body.

use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::Sha256;
use uuid::Uuid;

/// Version of the form of messages: their first byte.
const VERSION: u8 = 1;

/// Length of the code that follows the version.
const MAC_BYTES: usize = 32;

/// Time by which a message may be older or newer than its listener's clock, in milliseconds.
const FRESH_MS: i64 = 60_000;

/// Reason for which a message is dropped.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// Its code is not that of the key.
    Forged,
    /// Its time is too far from now.
    Old,
    /// Its number was taken before.
    Repeated,
    /// It has another version.
    Version,
    /// Its code is right, and its content is not what was expected.
    Unreadable,
}

impl Fault {
    /// Reasons in the order of their counts.
    pub(crate) const ALL: [Fault; 5] = [Fault::Forged, Fault::Old, Fault::Repeated, Fault::Version, Fault::Unreadable];

    /// Returns the name of the reason, for figures and the log.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Fault::Forged => "forged",
            Fault::Old => "old",
            Fault::Repeated => "repeated",
            Fault::Version => "version",
            Fault::Unreadable => "unreadable",
        }
    }
}

/// Content of a message.
#[derive(Serialize, Deserialize)]
pub(crate) struct Envelope {
    /// Name of the engine that sent it.
    pub from: String,
    /// Identifier; a request that is made again keeps it.
    pub id: Uuid,
    /// Number of the message, which its sender counts up.
    pub n: u64,
    /// Time of sending, milliseconds since 1970.
    pub at: i64,
    pub body: Box<RawValue>,
}

/// The key of the engines of one database.
#[derive(Clone)]
pub(crate) struct Key(Hmac<Sha256>);

impl Key {
    pub(crate) fn new(bytes: &[u8]) -> Key {
        Key(<Hmac<Sha256> as Mac>::new_from_slice(bytes).expect("HMAC takes keys of any length"))
    }

    fn mac_of(&self, subject: &str, json: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(&[VERSION]);
        mac.update(&(subject.len() as u64).to_be_bytes());
        mac.update(subject.as_bytes());
        mac.update(json);
        mac
    }

    /// Returns the bytes of a message for a subject; on another one it is forged.
    pub(crate) fn seal(&self, subject: &str, envelope: &Envelope) -> Vec<u8> {
        let json = serde_json::to_vec(envelope).expect("texts, numbers and JSON can be written");
        let mac = self.mac_of(subject, &json).finalize().into_bytes();
        let mut bytes = Vec::with_capacity(1 + MAC_BYTES + json.len());
        bytes.push(VERSION);
        bytes.extend_from_slice(&mac);
        bytes.extend_from_slice(&json);
        bytes
    }

    /// Returns the content of a message that came on a subject.
    pub(crate) fn open(&self, subject: &str, bytes: &[u8], now_ms: i64) -> Result<Envelope, Fault> {
        let (version, rest) = bytes.split_first().ok_or(Fault::Forged)?;
        if *version != VERSION {
            return Err(Fault::Version);
        }
        let (mac, json) = rest.split_at_checked(MAC_BYTES).ok_or(Fault::Forged)?;
        self.mac_of(subject, json).verify_slice(mac).map_err(|_| Fault::Forged)?;
        let envelope: Envelope = serde_json::from_slice(json).map_err(|_| Fault::Unreadable)?;
        if (now_ms - envelope.at).abs() > FRESH_MS {
            return Err(Fault::Old);
        }
        Ok(envelope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_767_603_600_000;

    fn envelope(at: i64) -> Envelope {
        let body = RawValue::from_string("{\"a\":1}".to_owned()).expect("JSON");
        Envelope { from: "one".to_owned(), id: Uuid::nil(), n: 7, at, body }
    }

    #[test]
    fn a_message_opens_on_its_subject_under_its_key_and_in_its_time() {
        let key = Key::new(b"a key");
        let bytes = key.seal("r.orders.one", &envelope(NOW_MS));
        let opened = key.open("r.orders.one", &bytes, NOW_MS + FRESH_MS).expect("it is right");
        assert_eq!((opened.from.as_str(), opened.n, opened.body.get()), ("one", 7, "{\"a\":1}"));
        let reason = |bytes: &[u8], subject: &str, now_ms: i64| key.open(subject, bytes, now_ms).map(drop).err();
        assert_eq!(reason(&bytes, "r.orders.two", NOW_MS), Some(Fault::Forged));
        assert_eq!(reason(&bytes, "r.orders.one", NOW_MS + FRESH_MS + 1), Some(Fault::Old));
        assert_eq!(reason(&bytes, "r.orders.one", NOW_MS - FRESH_MS - 1), Some(Fault::Old));
        let other = Key::new(b"another key").seal("r.orders.one", &envelope(NOW_MS));
        assert_eq!(reason(&other, "r.orders.one", NOW_MS), Some(Fault::Forged));
        for at in 1..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(reason(&changed, "r.orders.one", NOW_MS), Some(Fault::Forged), "byte {at}");
        }
        let mut newer = bytes.clone();
        newer[0] = VERSION + 1;
        assert_eq!(reason(&newer, "r.orders.one", NOW_MS), Some(Fault::Version));
        for short in [&b""[..], &bytes[..1], &bytes[..20]] {
            assert_eq!(reason(short, "r.orders.one", NOW_MS), Some(Fault::Forged));
        }
    }
}
