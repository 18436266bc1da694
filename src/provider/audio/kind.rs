//! The kind of a file by its first bytes: names and types that come with it are not to be relied on.

use ringer_media::clip::wav::is_wav;

use super::joined::{Frame, adts, mpeg, tag_bytes};

/// Bytes that are enough to tell everything but frames.
const ENOUGH: usize = 64;

/// Kinds of files that have their name in their first bytes, with its place.
const NAMED: [(usize, &[u8], Kind); 17] = [
    (0, b"OggS", Kind::Ogg),
    (0, b"fLaC", Kind::Flac),
    (4, b"ftyp", Kind::Mp4),
    (0, b"\x1a\x45\xdf\xa3", Kind::Other("a WebM or Matroska file")),
    (8, b"AIFF", Kind::Other("an AIFF file")),
    (8, b"AIFC", Kind::Other("an AIFF file")),
    (0, b".snd", Kind::Other("an AU file")),
    (0, b"caff", Kind::Other("a CAF file")),
    (0, b"#!AMR", Kind::Other("an AMR file")),
    (0, b"\x30\x26\xb2\x75", Kind::Other("a WMA file")),
    (0, b"\x1f\x8b\x08", Kind::Other("a gzip file")),
    (0, b"PK\x03\x04", Kind::Other("a ZIP file")),
    (0, b"%PDF", Kind::Other("a PDF file")),
    (0, b"\x89PNG", Kind::Other("a PNG image")),
    (0, b"GIF8", Kind::Other("a GIF image")),
    (0, b"\xff\xd8\xff\xe0", Kind::Other("a JPEG image")),
    (0, b"\x28\xb5\x2f\xfd", Kind::Other("a Zstandard file")),
];

/// A kind of bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// RIFF, RIFX or RF64 with WAVE.
    Wav,
    /// MPEG audio, maybe behind a tag.
    Mp3,
    /// AAC in ADTS frames.
    Aac,
    /// Vorbis or Opus, and maybe others.
    Ogg,
    /// Free Lossless Audio Codec in its own container (RFC 9639).
    Flac,
    /// MP4, M4A or QuickTime, by the box `ftyp`.
    Mp4,
    /// A file that is not read, with its article.
    Other(&'static str),
    /// Words: what they look like.
    Text(&'static str),
}

impl Kind {
    /// Returns the name of the kind for display, with an article where it has one.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Wav => "a WAV file",
            Kind::Mp3 => "an MP3 file",
            Kind::Aac => "an AAC file",
            Kind::Ogg => "an Ogg file",
            Kind::Flac => "a FLAC file",
            Kind::Mp4 => "an MP4 file",
            Kind::Other(name) | Kind::Text(name) => name,
        }
    }
}

/// Result of a look at the first bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// The bytes are too few to tell. Never the answer for a whole file or for 16 KiB.
    More,
    /// The bytes are of this kind.
    Is(Kind),
    /// The bytes are of no known kind.
    Unknown,
}

/// Looks at the first bytes of something: all of it when `is_whole`.
pub fn look(bytes: &[u8], is_whole: bool) -> Look {
    let is_long = is_whole || bytes.len() >= ENOUGH;
    match tag_bytes(bytes) {
        0 => {}
        tag => {
            let behind = bytes.get(tag..).unwrap_or_default();
            return match look(behind, true) {
                Look::Is(kind @ (Kind::Flac | Kind::Aac | Kind::Ogg)) => Look::Is(kind),
                _ => Look::Is(Kind::Mp3),
            };
        }
    }
    let named = |(at, name, _): &&(usize, &[u8], Kind)| bytes.get(*at..*at + name.len()) == Some(*name);
    match NAMED.iter().find(named) {
        _ if is_wav(bytes) => return Look::Is(Kind::Wav),
        Some((8, ..)) if !bytes.starts_with(b"FORM") => {}
        Some((_, _, kind)) => return Look::Is(*kind),
        None if !is_long => return Look::More,
        None => {}
    }
    if matches!(bytes.get(..4), Some(b"RIFF" | b"RIFX" | b"RF64")) {
        return Look::Is(Kind::Other("a RIFF file without WAVE"));
    }
    for (frame, kind) in [(mpeg as fn(&[u8]) -> Option<Frame>, Kind::Mp3), (adts, Kind::Aac)] {
        // Samples may begin like a frame, but not twice at the right distance.
        let Some(first) = frame(bytes) else { continue };
        match bytes.get(first.bytes..).filter(|rest| rest.len() >= 8) {
            Some(rest) if frame(rest).is_some_and(|next| next.key == first.key) => return Look::Is(kind),
            None if !is_whole => return Look::More,
            None if bytes.len() == first.bytes => return Look::Is(kind),
            _ => {}
        }
    }
    text(bytes).map_or(Look::Unknown, |name| Look::Is(Kind::Text(name)))
}

/// Returns the name of the kind of text; `None`: the bytes are none. Samples that are all printable would be loud from
/// the first on.
fn text(bytes: &[u8]) -> Option<&'static str> {
    let start = &bytes[..bytes.len().min(ENOUGH)];
    let words = match std::str::from_utf8(start) {
        Ok(words) => words,
        // A letter may be cut by the end of what is looked at.
        Err(error) if error.error_len().is_none() => std::str::from_utf8(&start[..error.valid_up_to()]).ok()?,
        Err(_) => return None,
    };
    let words = words.trim_start_matches('\u{feff}').trim_start();
    let lower = words.get(..words.len().min(9)).unwrap_or_default().to_ascii_lowercase();
    if words.len() < 2 || words.chars().any(|c| c.is_control() && !c.is_whitespace()) {
        return None;
    }
    match words.as_bytes()[0] {
        b'{' | b'[' => Some("JSON"),
        b'<' if lower.starts_with("<html") || lower.starts_with("<!doctype") => Some("HTML"),
        b'<' => Some("XML"),
        _ if words.len() >= 4 => Some("text"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell_what_it_is() {
        let long = |start: &[u8]| [start, &[0; 80]].concat();
        for (bytes, expect) in [
            (long(b"RIFF\0\0\0\0WAVE"), Look::Is(Kind::Wav)),
            (long(b"RIFX\0\0\0\0WAVE"), Look::Is(Kind::Wav)),
            (long(b"RF64\0\0\0\0WAVE"), Look::Is(Kind::Wav)),
            (long(b"RIFF\0\0\0\0AVI "), Look::Is(Kind::Other("a RIFF file without WAVE"))),
            (long(b"OggS"), Look::Is(Kind::Ogg)),
            (long(b"fLaC"), Look::Is(Kind::Flac)),
            (long(b"\0\0\0\x20ftypM4A "), Look::Is(Kind::Mp4)),
            (long(b"\x1a\x45\xdf\xa3"), Look::Is(Kind::Other("a WebM or Matroska file"))),
            (long(b"FORM\0\0\0\0AIFF"), Look::Is(Kind::Other("an AIFF file"))),
            (long(b"ID3\x04\0\0\0\0\0\x02"), Look::Is(Kind::Mp3)),
            ([&b"ID3\x04\0\0\0\0\0\x02\0\0"[..], b"fLaC"].concat(), Look::Is(Kind::Flac)),
            (b"{\"error\":{\"message\":\"no such voice\"}}".to_vec(), Look::Is(Kind::Text("JSON"))),
            (b"\xef\xbb\xbf [1]".to_vec(), Look::Is(Kind::Text("JSON"))),
            (b"<!DOCTYPE html><html><body>Sorry</body></html>".to_vec(), Look::Is(Kind::Text("HTML"))),
            (b"<HTML>".to_vec(), Look::Is(Kind::Text("HTML"))),
            (b"<?xml version=\"1.0\"?><Error/>".to_vec(), Look::Is(Kind::Text("XML"))),
            (b"Quota exceeded".to_vec(), Look::Is(Kind::Text("text"))),
            ("\u{914d}\u{989d}\u{5df2}\u{7528}\u{5b8c}".repeat(9).into_bytes(), Look::Is(Kind::Text("text"))),
            // Samples: silence, and small ones of either sign, which begin like MPEG frames.
            (long(b""), Look::Unknown),
            (vec![0xff; 100], Look::Unknown),
            ([0xff, 0xfb, 0x90, 0x64].repeat(500), Look::Unknown),
            ([0xff, 0xf1, 0x50, 0x80, 2, 0x1f, 0xfc].repeat(500), Look::Unknown),
            (vec![0x20; 1], Look::Unknown),
            (Vec::new(), Look::Unknown),
        ] {
            assert_eq!(look(&bytes, true), expect, "{:?}", String::from_utf8_lossy(&bytes[..bytes.len().min(40)]));
            // No first part of it is taken for something else.
            for end in 0..bytes.len() {
                let partly = look(&bytes[..end], false);
                let is_sure = |look: Look| matches!(look, Look::More) || look == expect;
                let is_tag = bytes.starts_with(b"ID3") && partly == Look::Is(Kind::Mp3);
                assert!(is_sure(partly) || is_tag, "{partly:?} after {end} bytes, {expect:?} of all");
            }
        }
    }
}
