//! Unpacks files that came compressed (gzip, RFC 1952), with a bound on what comes out.

use std::io::Read;

use flate2::read::MultiGzDecoder;

/// Reason why a file could not be unpacked.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Packed {
    /// The file is damaged or incomplete.
    Broken,
    /// The file would expand to more bytes than allowed.
    TooLarge,
}

/// True if a file begins as gzip files do.
pub(super) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// Returns the content of a gzip file of one or more members, at most `most` bytes.
///
/// # Errors
/// When it is damaged, or holds more.
pub(super) fn unpack(bytes: &[u8], most: usize) -> Result<Vec<u8>, Packed> {
    let mut out = Vec::new();
    let read = MultiGzDecoder::new(bytes).take(most as u64 + 1).read_to_end(&mut out);
    match read {
        _ if out.len() > most => Err(Packed::TooLarge),
        Ok(_) => Ok(out),
        Err(_) => Err(Packed::Broken),
    }
}

#[cfg(test)]
pub(super) const ENTRY: &str = "1f8b08000000000002038bae562a2e492c2a89cf4f4b2b4e2d89cf2d56b252503250d251504acd4b4111b53430008a1617a\
    42666a716815439babbfa858054969694a41625e625a782443d32f5946a63014fff15f058000000";

#[cfg(test)]
mod tests {
    use super::*;

    /// Data with fixed Huffman codes, and without codes.
    const FIXED: &str = "1f8b08000000000002034b4c840185a4c43c202c06007b77c61612000000";
    const STORED: &str = "1f8b0800000000000403010600f9ff73746f7265640bf9435606000000";

    fn bytes(text: &str) -> Vec<u8> {
        hex::decode(text).expect("hexadecimal digits")
    }

    #[test]
    fn every_kind_of_block_is_unpacked() {
        let entry = r#"[{"start_offset_ms": "0", "end_offset_ms": 900, "speaker": "AGENT", "utterance": "Hi."}]"#;
        let named = [&[0x1f, 0x8b, 8, 0x1c, 0, 0, 0, 0, 0, 3, 1, 0, b'x'][..], b"a.json\0", b"why\0"].concat();
        let named = [&named[..], &bytes(STORED)[10..]].concat();
        for (packed, expect) in [
            (bytes(ENTRY), entry.to_owned()),
            (bytes(FIXED), "aaaaaaaaaa bananas".into()),
            (bytes(STORED), "stored".into()),
            (named, "stored".into()),
            ([bytes(FIXED), bytes(STORED)].concat(), "aaaaaaaaaa bananasstored".into()),
        ] {
            assert!(is_gzip(&packed));
            assert_eq!(unpack(&packed, 1000).map(|out| String::from_utf8(out).expect("UTF-8")), Ok(expect.clone()));
            assert_eq!(unpack(&packed, expect.len()).map(|out| out.len()), Ok(expect.len()));
            assert_eq!(unpack(&packed, expect.len() - 1), Err(Packed::TooLarge));
        }
        assert!(!is_gzip(b"[]") && !is_gzip(&[0x1f]));
    }

    #[test]
    fn what_is_damaged_is_refused() {
        for whole in [ENTRY, FIXED, STORED].map(bytes) {
            for end in 2..whole.len() {
                assert_eq!(unpack(&whole[..end], 1000), Err(Packed::Broken), "{end}");
            }
            for at in (10..whole.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
                let mut damaged = whole.clone();
                damaged[at.0] ^= 1 << at.1;
                // Padding behind the last block is no content.
                let found = unpack(&damaged, 1000);
                assert!(found.is_err() || found == unpack(&whole, 1000), "{at:?}");
            }
            assert_eq!(unpack(&[&whole[..], b"more"].concat(), 1000), Err(Packed::Broken));
        }
    }
}
