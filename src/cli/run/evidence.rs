//! Evidence archives without the values of variables. The engine that packs them does not know which texts are secret.

use std::io::{self, Read};

use sha2::{Digest, Sha256};

use crate::suite::mask::mask;

/// Name of the member that lists the hashes of the others.
const HASHES: &str = "hashes.sha256";

/// Names of the signed manifest, its signature and its time stamp: they fit no archive that was changed.
const SIGNED: [&str; 3] = ["manifest.json", "manifest.sig", "manifest.tsr"];

/// Returns a tar archive in which no member has one of the `masked` values, with the hashes of what is left. Texts have
/// `***` instead; other files as many asterisks as the value has bytes, so that their lengths stay right. The
/// signature is left out.
///
/// # Errors
/// The archive cannot be read.
pub(super) fn without_values(archive: &[u8], masked: &[String]) -> io::Result<Vec<u8>> {
    if masked.is_empty() || archive.is_empty() {
        return Ok(archive.to_vec());
    }
    let (mut packed, mut hashes) = (tar::Builder::new(Vec::with_capacity(archive.len())), String::new());
    for member in tar::Archive::new(archive).entries()? {
        let mut member = member?;
        let (mut header, path) = (member.header().clone(), member.path()?.into_owned());
        let mut bytes = Vec::new();
        member.read_to_end(&mut bytes)?;
        let name = path.to_string_lossy();
        if name == HASHES || SIGNED.contains(&&*name) {
            continue;
        }
        let bytes = match std::str::from_utf8(&bytes) {
            Ok(text) => mask(text, masked).into_bytes(),
            Err(_) => overwrite_values(bytes, masked),
        };
        hashes.push_str(&format!("{}  {name}\n", hex::encode(Sha256::digest(&bytes))));
        header.set_size(bytes.len() as u64);
        packed.append_data(&mut header, &path, &bytes[..])?;
    }
    let mut header = tar::Header::new_ustar();
    header.set_size(hashes.len() as u64);
    header.set_mode(0o644);
    packed.append_data(&mut header, HASHES, hashes.as_bytes())?;
    packed.into_inner()
}

/// Returns bytes with asterisks in place of the values.
fn overwrite_values(mut bytes: Vec<u8>, masked: &[String]) -> Vec<u8> {
    for value in masked.iter().map(String::as_bytes).filter(|value| !value.is_empty()) {
        let mut from = 0;
        while let Some(at) = bytes[from..].windows(value.len()).position(|window| window == value) {
            bytes[from + at..][..value.len()].fill(b'*');
            from += at + value.len();
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_member_has_a_value_and_the_hashes_fit() {
        let masked = ["token-of-mine".to_owned()];
        let mut archive = tar::Builder::new(Vec::new());
        let members: [(&str, &[u8]); 3] = [
            ("result.json", b"{\"name\": \"asks for token-of-mine\"}"),
            ("capture.pcapng", b"\xff\xfetoken-of-mine\x00\x80token-of-minetoken-of-mine"),
            (HASHES, b"0  result.json\n"),
        ];
        for (name, bytes) in members {
            let mut header = tar::Header::new_ustar();
            header.set_size(bytes.len() as u64);
            archive.append_data(&mut header, name, bytes).expect("it is packed");
        }
        let archive = archive.into_inner().expect("it is whole");
        let packed = without_values(&archive, &masked).expect("it can be read");
        assert!(!packed.windows(13).any(|window| window == b"token-of-mine"));
        let mut members = std::collections::BTreeMap::new();
        for member in tar::Archive::new(&packed[..]).entries().expect("an archive") {
            let mut member = member.expect("a member");
            let name = member.path().expect("a name").to_string_lossy().into_owned();
            let mut bytes = Vec::new();
            member.read_to_end(&mut bytes).expect("it is whole");
            members.insert(name, bytes);
        }
        assert_eq!(members["result.json"], b"{\"name\": \"asks for ***\"}");
        assert_eq!(members["capture.pcapng"].len(), 43);
        let hashes = String::from_utf8(members[HASHES].clone()).expect("text");
        for name in ["result.json", "capture.pcapng"] {
            assert!(hashes.contains(&format!("{}  {name}\n", hex::encode(Sha256::digest(&members[name])))), "{hashes}");
        }
        assert_eq!(without_values(&archive, &[]).expect("as it is"), archive);
    }
}
