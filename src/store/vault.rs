//! Secrets at rest: sealed with AES-256-GCM (NIST SP 800-38D) under a random nonce of 96 bits. A sealed text names its
//! key, so that keys can be changed: the first key seals, all of them open.
//!
//! The key comes from the settings, or from a file that is made beside the database. Its text is stretched to 256 bits
//! by HMAC-SHA256; its name is derived the same way and reveals nothing about it.

use std::fmt;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use aes_gcm::aead::{Aead, Payload};
use aes_gcm::{Aes256Gcm, KeyInit, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use hmac::{Hmac, Mac};
use ringer_base::clock;
use ringer_base::error::{Error, Result};
use ringer_model::secret;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::Sha256;

use super::{from_text, to_text};

/// Name of the key file.
pub const KEY_FILE: &str = "secret.key";

/// Prefix of sealed texts.
const MARK: &str = "sealed:1:";

const NONCE_BYTES: usize = 12;

struct VaultKey {
    name: String,
    cipher: Aes256Gcm,
}

impl VaultKey {
    fn of(text: &str) -> VaultKey {
        let draw = |purpose: &str| {
            let mut mac =
                <Hmac<Sha256> as Mac>::new_from_slice(text.as_bytes()).expect("HMAC takes keys of any length");
            mac.update(purpose.as_bytes());
            mac.finalize().into_bytes()
        };
        let name = hex::encode(&draw("ringer: name of a key")[..4]);
        VaultKey { name, cipher: Aes256Gcm::new(&draw("ringer: secrets at rest")) }
    }
}

/// A stored secret that cannot be opened; the text says why, without the secret.
#[derive(Debug)]
struct NotOpened(String);

impl fmt::Display for NotOpened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotOpened {}

/// True for the error of a stored secret that cannot be opened.
pub fn is_not_opened(error: &Error) -> bool {
    std::error::Error::source(error).is_some_and(|cause| cause.is::<NotOpened>())
}

/// Keys that seal and open secrets. Cheap to clone.
#[derive(Clone)]
pub struct Vault {
    keys: Arc<[VaultKey]>,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vault({})", self.names())
    }
}

impl Vault {
    /// Returns a vault whose first key seals.
    ///
    /// # Errors
    /// There is no key.
    pub fn new<'a>(keys: impl IntoIterator<Item = &'a str>) -> Result<Vault> {
        let keys: Arc<[VaultKey]> = keys.into_iter().map(VaultKey::of).collect();
        if keys.is_empty() { Err(Error::internal("there is no key for secrets")) } else { Ok(Vault { keys }) }
    }

    /// Opens the configured key, else the one in the key file of `folder`, which is made when absent, readable by its
    /// owner alone.
    ///
    /// `old` keys, and a file beside a configured key, still open what they sealed.
    ///
    /// # Errors
    /// The file cannot be read or made.
    pub fn open(folder: &Path, configured: Option<&str>, old: &[&str]) -> Result<Vault> {
        let path = folder.join(KEY_FILE);
        let failed = |error: std::io::Error| Error::internal_by(format!("the key file {}", path.display()), error);
        let on_file = match std::fs::read_to_string(&path) {
            Ok(text) if text.trim().is_empty() => return Err(failed(ErrorKind::InvalidData.into())),
            Ok(text) => Some(text.trim().to_owned()),
            Err(error) if error.kind() == ErrorKind::NotFound && configured.is_some() => None,
            Err(error) if error.kind() == ErrorKind::NotFound => Some(make_key_file(&path).map_err(failed)?),
            Err(error) => return Err(failed(error)),
        };
        Vault::new(configured.into_iter().chain(on_file.as_deref()).chain(old.iter().copied()))
    }

    /// Returns the name of the key that seals.
    pub fn key_name(&self) -> &str {
        &self.keys[0].name
    }

    /// True if a key of this name is in the vault.
    pub fn knows(&self, name: &str) -> bool {
        self.keys.iter().any(|key| key.name == name)
    }

    /// Returns the names of all keys, for messages.
    pub fn names(&self) -> String {
        self.keys.iter().map(|key| key.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// True if the text was sealed by the key that seals now.
    pub fn is_current(&self, text: &str) -> bool {
        text.strip_prefix(MARK).is_some_and(|rest| rest.split(':').next() == Some(self.key_name()))
    }

    /// Seals a text for a place; it opens in no other.
    pub fn seal(&self, place: &str, text: &str) -> Result<String> {
        let key = &self.keys[0];
        let mut nonce = [0; NONCE_BYTES];
        clock::random_bytes(&mut nonce);
        let payload = Payload { msg: text.as_bytes(), aad: place.as_bytes() };
        let sealed = key.cipher.encrypt(Nonce::from_slice(&nonce), payload);
        let sealed = sealed.map_err(|_| Error::internal("a secret could not be sealed"))?;
        Ok(format!("{MARK}{}:{}", key.name, STANDARD_NO_PAD.encode([&nonce[..], &sealed].concat())))
    }

    /// Opens a text that was sealed for this place. A text that is not sealed is returned as it is: it was written
    /// before there were keys.
    ///
    /// # Errors
    /// The text was sealed by an unknown key or for another place, or was changed since.
    pub fn unseal(&self, place: &str, text: &str) -> Result<String> {
        let Some((name, sealed)) = text.strip_prefix(MARK).and_then(|rest| rest.split_once(':')) else {
            return Ok(text.to_owned());
        };
        let key = self.keys.iter().find(|key| key.name == name);
        let key = key.ok_or_else(|| not_opened(format!("a secret was sealed by the key {name}, which is not set")))?;
        let changed = || not_opened(format!("a secret for {place} was not sealed as it stands"));
        let bytes = STANDARD_NO_PAD.decode(sealed).map_err(|_| changed())?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_BYTES).ok_or_else(changed)?;
        let payload = Payload { msg: sealed, aad: place.as_bytes() };
        let opened = key.cipher.decrypt(Nonce::from_slice(nonce), payload).map_err(|_| changed())?;
        String::from_utf8(opened).map_err(|_| changed())
    }

    /// Returns a document as text, its secrets sealed for `place`. Secrets that are sealed already are sealed again.
    pub(super) fn write<T: Serialize>(&self, place: &str, document: &T) -> Result<String> {
        let text = to_text(document)?;
        if !secret::any_in(&text) {
            return Ok(text);
        }
        let mut value: Value = from_text(&text)?;
        secret::each(&mut value, &mut |name, secret| {
            *secret = Value::String(self.seal(&format!("{place}/{name}"), &secret.to_string())?);
            Ok(())
        })?;
        Ok(value.to_string())
    }

    /// Returns a document from its text, its secrets opened.
    pub(super) fn read<T: DeserializeOwned>(&self, place: &str, text: &str) -> Result<T> {
        if !text.contains(MARK) {
            return from_text(text);
        }
        let mut value: Value = from_text(text)?;
        secret::each(&mut value, &mut |name, secret| {
            if let Value::String(text) = secret
                && text.starts_with(MARK)
            {
                *secret = from_text(&self.unseal(&format!("{place}/{name}"), text)?)?;
            }
            Ok::<(), Error>(())
        })?;
        serde_json::from_value(value).map_err(Error::internal)
    }

    /// True if every secret of a document is sealed by the key that seals now.
    pub(super) fn is_sealed(&self, text: &str) -> Result<bool> {
        let mut value: Value = from_text(text)?;
        let sealed = secret::each(&mut value, &mut |_, secret| match secret {
            Value::String(text) if self.is_current(text) => Ok(()),
            _ => Err(()),
        });
        Ok(sealed.is_ok())
    }
}

fn not_opened(why: String) -> Error {
    Error::internal(NotOpened(why))
}

/// Writes a new key of 256 random bits and returns it, or the one that another process has just written.
fn make_key_file(path: &Path) -> std::io::Result<String> {
    let mut bytes = [0; 32];
    clock::random_bytes(&mut bytes);
    let text = hex::encode(bytes);
    let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match made {
        Ok(mut file) => {
            writeln!(file, "{text}")?;
            file.sync_all()?;
            tracing::warn!("secrets are sealed with a new key in {}: keep a copy of it apart", path.display());
            Ok(text)
        }
        // Another process has made the file first.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(std::fs::read_to_string(path)?.trim().to_owned()),
        Err(error) => Err(error),
    }
}

/// Returns the place to which secrets of a table are bound.
pub(super) fn place_of(organization: &str, table: &str) -> String {
    format!("{organization}/{table}")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn vault(keys: &[&str]) -> Vault {
        Vault::new(keys.iter().copied()).expect("there is a key")
    }

    #[test]
    fn what_is_sealed_opens_in_its_place_alone() {
        // So long that it stands in no random text by chance.
        const SECRET: &str = "tell-nobody";
        let one = vault(&["one"]);
        let sealed = one.seal("agents/sip_password", SECRET).expect("sealed");
        assert!(!sealed.contains(SECRET) && one.is_current(&sealed));
        assert_ne!(one.seal("agents/sip_password", SECRET).expect("sealed"), sealed, "nonces differ");
        assert_eq!(one.unseal("agents/sip_password", &sealed).as_deref(), Ok(SECRET));
        assert_eq!(one.unseal("agents/sip_password", "written before").as_deref(), Ok("written before"));
        assert!(one.unseal("agents/P12_api_key", &sealed).is_err(), "another place");
        let (head, last) = sealed.split_at(sealed.len() - 1);
        let changed = format!("{head}{}", if last == "A" { "B" } else { "A" });
        assert!(one.unseal("agents/sip_password", &changed).is_err(), "changed");
        let error = vault(&["two"]).unseal("agents/sip_password", &sealed).expect_err("another key").to_string();
        assert_eq!(error, format!("a secret was sealed by the key {}, which is not set", one.key_name()));
        assert!(one.unseal("x", &format!("{MARK}{}:!", one.key_name())).is_err());
        assert!(one.unseal("x", &format!("{MARK}{}:", one.key_name())).is_err());
    }

    #[test]
    fn an_old_key_opens_and_does_not_seal() {
        let sealed = vault(&["old"]).seal("x", "p").expect("sealed");
        let both = vault(&["new", "old"]);
        assert_eq!(both.unseal("x", &sealed).as_deref(), Ok("p"));
        assert!(!both.is_current(&sealed));
        assert!(vault(&["new"]).is_current(&both.seal("x", "p").expect("sealed")));
    }

    #[test]
    fn the_key_file_is_made_once_for_its_owner_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = Vault::open(folder.path(), None, &[]).expect("made");
        let file = std::fs::metadata(folder.path().join(KEY_FILE)).expect("it is there");
        assert_eq!(file.permissions().mode() & 0o777, 0o600);
        let again = Vault::open(folder.path(), None, &[]).expect("read");
        assert_eq!(again.key_name(), first.key_name());
        let moved = Vault::open(folder.path(), Some("configured"), &[]).expect("both");
        assert!(moved.knows(first.key_name()) && moved.key_name() != first.key_name());
        let other = tempfile::tempdir().expect("a folder");
        Vault::open(other.path(), Some("configured"), &[]).expect("needs no file");
        assert!(!other.path().join(KEY_FILE).exists());
        assert!(!format!("{moved:?}").contains("configured"));
    }
}
