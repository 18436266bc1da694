//! WAV files (RIFF, RIFX, RF64) as they come: with sizes that were never filled in or are wrong, chunks without their
//! pad byte, several files one behind the other. Pieces of a file are read by [`stream::WavStream`], whole ones by
//! [`sections`]. Every header of 16-bit PCM is made by [`header`].
// Why not a crate: `hound` reads none of these (RIFX, RF64, sizes that were never filled in, joined files, pieces), and
// writes no header alone, as a recording needs it that grows.

pub mod stream;

use std::fmt;
use std::ops::Range;

use crate::codec::g711;

/// Rates that are read, in Hz.
pub const RATES_HZ: std::ops::RangeInclusive<u32> = 1000..=192_000;

/// Largest number of channels that is read.
pub const MAX_CHANNELS: u16 = 64;

/// Largest number of sections that is read of joined files.
const MAX_SECTIONS: usize = 10_000;

/// Size from which it counts as unknown: programs that write into a pipe give 2^31 - 1, 2^32 - 1 or a little less.
const UNTOLD: u32 = 0x7fff_0000;

/// Bytes behind the samples that are skipped without an error: tags of other kinds of files.
const TAIL_BYTES: usize = 4096;

/// Names of chunks that stand in WAV files.
const KNOWN: [&[u8; 4]; 34] = [
    b"fmt ", b"data", b"LIST", b"fact", b"bext", b"cue ", b"JUNK", b"junk", b"Junk", b"PAD ", b"FLLR", b"id3 ",
    b"ID3 ", b"iXML", b"axml", b"_PMX", b"smpl", b"inst", b"PEAK", b"DISP", b"ds64", b"afsp", b"cart", b"LGWV",
    b"SAUR", b"INFO", b"minf", b"elm1", b"regn", b"umid", b"levl", b"acid", b"strc", b"plst",
];

/// Reason why bytes are not a clip. Each says which part of the file a user would have to change.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ClipError {
    /// No RIFF/WAVE header: another kind of file.
    NotWav,
    /// The `fmt ` chunk is missing, comes after the data, or is too short.
    NoFormat,
    /// The file has no `data` chunk.
    NoData,
    /// An encoding that is neither PCM nor float nor G.711; its format tag.
    Encoding(u16),
    /// Bits per sample that the encoding does not have.
    Bits(u16),
    /// No channel, or more than are read.
    Channels(u16),
    /// A sample rate outside 1000 to 192,000 Hz.
    Rate(u32),
    /// More than [`super::MAX_SAMPLES`] samples a channel.
    TooLong,
    /// Bytes behind the samples that are no chunk of a WAV file: the header's size of them is wrong.
    Trailing,
}

impl fmt::Display for ClipError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClipError::NotWav => write!(f, "not a WAV file"),
            ClipError::NoFormat => write!(f, "the WAV file has no format chunk before its data"),
            ClipError::NoData => write!(f, "the WAV file has no data chunk"),
            ClipError::Encoding(tag) => write!(f, "WAV encoding {tag:#06x} is not supported: use PCM"),
            ClipError::Bits(bits) => write!(f, "{bits} bits per sample are not supported: use 16"),
            ClipError::Channels(count) => {
                write!(f, "{count} channels are not supported: use 1 to {}", super::MAX_CHANNELS)
            }
            ClipError::Rate(hz) => write!(f, "a rate of {hz} Hz is not supported: use 1000 to 192000"),
            ClipError::TooLong => write!(f, "the WAV file is longer than {} samples", super::MAX_SAMPLES),
            ClipError::Trailing => write!(f, "the WAV file goes on behind the samples that its header tells of"),
        }
    }
}

impl std::error::Error for ClipError {}

/// Number format of a sample.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Encoding {
    U8,
    I16,
    I24,
    I32,
    F32,
    F64,
    MuLaw,
    ALaw,
}

impl Encoding {
    fn new(tag: u16, bits: u16) -> Result<Encoding, ClipError> {
        match (tag, bits) {
            (1, 8) => Ok(Encoding::U8),
            (1, 16) => Ok(Encoding::I16),
            (1, 24) => Ok(Encoding::I24),
            (1, 32) => Ok(Encoding::I32),
            (3, 32) => Ok(Encoding::F32),
            (3, 64) => Ok(Encoding::F64),
            (6, 8) => Ok(Encoding::ALaw),
            (7, 8) => Ok(Encoding::MuLaw),
            (1 | 3 | 6 | 7, _) => Err(ClipError::Bits(bits)),
            _ => Err(ClipError::Encoding(tag)),
        }
    }

    fn bytes(self) -> usize {
        match self {
            Encoding::U8 | Encoding::MuLaw | Encoding::ALaw => 1,
            Encoding::I16 => 2,
            Encoding::I24 => 3,
            Encoding::I32 | Encoding::F32 => 4,
            Encoding::F64 => 8,
        }
    }
}

/// Format of the samples of a file.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Format {
    encoding: Encoding,
    is_big_endian: bool,
    /// Sample rate, in samples a second.
    pub rate_hz: u32,
    /// Number of channels, from 1 to [`MAX_CHANNELS`].
    pub channels: u16,
}

impl Format {
    /// Returns the format of 16-bit PCM, little endian.
    pub fn pcm16(rate_hz: u32, channels: u16) -> Format {
        Format { encoding: Encoding::I16, is_big_endian: false, rate_hz, channels: channels.max(1) }
    }

    /// True for 16-bit PCM, little endian.
    pub fn is_pcm16(&self) -> bool {
        self.encoding == Encoding::I16 && !self.is_big_endian
    }

    /// Number of bytes of a frame: one sample of every channel.
    pub fn frame_bytes(&self) -> usize {
        self.encoding.bytes() * usize::from(self.channels)
    }

    /// Returns the mean of the channels of a frame ([`Format::frame_bytes`] long).
    pub fn mean(&self, frame: &[u8]) -> i16 {
        let sum: f64 = frame.chunks_exact(self.encoding.bytes()).map(|sample| self.sample(sample)).sum();
        (sum / f64::from(self.channels)).round() as i16
    }

    /// Returns one channel of a frame; 0 for a channel that is not there.
    pub fn channel(&self, frame: &[u8], channel: usize) -> i16 {
        let sample = frame.chunks_exact(self.encoding.bytes()).nth(channel);
        sample.map_or(0, |sample| self.sample(sample).round() as i16)
    }

    /// Returns one sample in units of 16-bit PCM, limited to its range; not a number is 0.
    fn sample(&self, bytes: &[u8]) -> f64 {
        let join = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        let integer = match self.is_big_endian {
            true => bytes.iter().fold(0, join),
            false => bytes.iter().rev().fold(0, join),
        };
        // Integers are moved to the top of 32 bits, so that their sign is where it belongs.
        let signed = |bits: u32| f64::from((integer << (32 - bits)) as u32 as i32) / 65_536.0;
        let float = |value: f64| if value.is_nan() { 0.0 } else { (value * 32_768.0).clamp(-32_768.0, 32_767.0) };
        match self.encoding {
            Encoding::U8 => (f64::from(bytes[0]) - 128.0) * 256.0,
            Encoding::I16 => signed(16),
            Encoding::I24 => signed(24).min(32_767.0),
            Encoding::I32 => signed(32).min(32_767.0),
            Encoding::F32 => float(f64::from(f32::from_bits(integer as u32))),
            Encoding::F64 => float(f64::from_bits(integer)),
            Encoding::MuLaw => f64::from(g711::FROM_MU_LAW[usize::from(bytes[0])]),
            Encoding::ALaw => f64::from(g711::FROM_A_LAW[usize::from(bytes[0])]),
        }
    }

    fn parse(chunk: &[u8], is_big_endian: bool) -> Result<Format, ClipError> {
        let number = |at: usize| {
            let two = chunk.get(at..at + 2)?.try_into().ok()?;
            Some(if is_big_endian { u16::from_be_bytes(two) } else { u16::from_le_bytes(two) })
        };
        let rate = chunk.get(4..8).map(|four| long(four, is_big_endian));
        let fields = (|| Some((number(0)?, number(2)?, rate?, number(14)?)))();
        let (mut tag, channels, rate_hz, bits) = fields.ok_or(ClipError::NoFormat)?;
        if tag == 0xfffe {
            // WAVE_FORMAT_EXTENSIBLE: the first two bytes of the sub-format's GUID are the tag.
            tag = number(24).ok_or(ClipError::NoFormat)?;
        }
        if !(1..=MAX_CHANNELS).contains(&channels) {
            return Err(ClipError::Channels(channels));
        }
        if !RATES_HZ.contains(&rate_hz) {
            return Err(ClipError::Rate(rate_hz));
        }
        Ok(Format { encoding: Encoding::new(tag, bits)?, is_big_endian, channels, rate_hz })
    }
}

/// Reads four bytes as a number.
fn long(four: &[u8], is_big_endian: bool) -> u32 {
    let fold = |value: u32, byte: &u8| value << 8 | u32::from(*byte);
    if is_big_endian { four.iter().fold(0, fold) } else { four.iter().rev().fold(0, fold) }
}

/// Header of a WAV file.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Format of the samples.
    pub format: Format,
    /// Position of the first byte of the samples.
    pub data_at: usize,
    /// Number of bytes of samples; `None` when the header does not know.
    pub data_bytes: Option<u64>,
}

/// Bytes of a header without chunks between format and samples.
pub const HEADER_BYTES: usize = 44;

/// Returns the header of a file of 16-bit PCM, little endian, with whole `chunks` between its format and `data_bytes`
/// of samples. `BYTES` is [`HEADER_BYTES`] and the length of `chunks`.
pub fn header<const BYTES: usize>(rate_hz: u32, channels: u16, chunks: &[u8], data_bytes: u32) -> [u8; BYTES] {
    let frame_bytes = channels.saturating_mul(2);
    let mut out = [0; BYTES];
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        out[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    put(b"RIFF");
    put(&data_bytes.saturating_add(BYTES as u32 - 8).to_le_bytes());
    put(b"WAVEfmt \x10\0\0\0\x01\0");
    put(&channels.to_le_bytes());
    put(&rate_hz.to_le_bytes());
    put(&rate_hz.saturating_mul(u32::from(frame_bytes)).to_le_bytes());
    put(&frame_bytes.to_le_bytes());
    put(b"\x10\0");
    put(chunks);
    put(b"data");
    put(&data_bytes.to_le_bytes());
    out
}

/// True where bytes begin as a WAV file does.
pub fn is_wav(bytes: &[u8]) -> bool {
    let kind = bytes.get(..4).unwrap_or_default();
    matches!(kind, b"RIFF" | b"RIFX" | b"RF64" | b"BW64") && bytes.get(8..12) == Some(b"WAVE")
}

/// Reads the header of a file whose first bytes are here: all of it when `is_whole`. `None`: more of it is needed.
/// The format and the samples are found by the names of their chunks where the sizes of the chunks lead nowhere.
///
/// # Errors
///
/// The bytes are no WAV file, or one that is not read.
pub fn head(bytes: &[u8], is_whole: bool) -> Result<Option<Head>, ClipError> {
    if !is_wav(bytes) {
        return if is_whole || bytes.len() >= 12 { Err(ClipError::NotWav) } else { Ok(None) };
    }
    let is_big_endian = &bytes[..4] == b"RIFX";
    let (mut at, mut format, mut long_bytes) = (12, None, None);
    while let Some(chunk) = bytes.get(at..at + 8) {
        let size = long(&chunk[4..], is_big_endian);
        let body = &bytes[at + 8..];
        let wanted = match &chunk[..4] {
            b"fmt " => size.min(64),
            b"ds64" => size.min(16),
            // That there are no samples is told by what follows.
            b"data" if size == 0 => 8,
            _ => 0,
        } as usize;
        if body.len() < wanted && !is_whole {
            return Ok(None);
        }
        let body = &body[..wanted.min(body.len())];
        match &chunk[..4] {
            b"fmt " => format = Some(Format::parse(body, is_big_endian)?),
            b"ds64" => long_bytes = body.get(8..16).and_then(|eight| eight.try_into().ok()).map(u64::from_le_bytes),
            b"data" => {
                let format = format.ok_or(ClipError::NoFormat)?;
                let data_bytes = data_bytes(size, long_bytes, body, is_big_endian);
                return Ok(Some(Head { format, data_at: at + 8, data_bytes }));
            }
            _ => {}
        }
        match next_chunk(bytes, at + 8, size, is_whole) {
            Some(next) => at = next,
            None if is_whole => break,
            None => return Ok(None),
        }
    }
    if is_whole { by_name(bytes, format, is_big_endian).map(Some) } else { Ok(None) }
}

/// Returns the number of bytes of samples, by the size of their chunk and the bytes after its head.
fn data_bytes(size: u32, long_bytes: Option<u64>, follows: &[u8], is_big_endian: bool) -> Option<u64> {
    match (size, long_bytes) {
        (u32::MAX, Some(long_bytes)) if long_bytes > 0 => Some(long_bytes),
        (UNTOLD.., _) => None,
        (0, _) => {
            let is_chunk = is_known(follows) && long(follows.get(4..8).unwrap_or_default(), is_big_endian) < UNTOLD;
            is_chunk.then_some(0)
        }
        _ => Some(u64::from(size)),
    }
}

fn is_known(bytes: &[u8]) -> bool {
    bytes.get(..4).is_some_and(|name| KNOWN.iter().any(|known| &known[..] == name))
}

/// True for a name that a chunk may have.
fn is_name(bytes: &[u8]) -> bool {
    let printable = |byte: &u8| (0x20..0x7f).contains(byte);
    bytes.get(..4).is_some_and(|name| name.iter().all(printable) && name[0].is_ascii_alphanumeric())
}

/// Returns the position of the chunk after one of `size` bytes at `body_at`: behind its pad byte, which some writers
/// leave out. `None`: there is none, or it is not known yet.
fn next_chunk(bytes: &[u8], body_at: usize, size: u32, is_whole: bool) -> Option<usize> {
    let end = body_at.checked_add(size as usize)?;
    let padded = end.checked_add(size as usize % 2)?;
    let from = |at: usize| bytes.get(at..).unwrap_or_default();
    if end == padded || (is_whole && from(padded).len() < 4) {
        let fits = is_name(from(end)) || from(end).len() < 4;
        return (fits && padded <= bytes.len()).then_some(padded);
    }
    if from(padded).len() < 4 {
        return None;
    }
    let fits: [fn(&[u8]) -> bool; 2] = [is_known, is_name];
    fits.iter().find_map(|fits| [padded, end].into_iter().find(|&at| fits(from(at))))
}

/// Finds the header by the names of its chunks alone.
fn by_name(bytes: &[u8], format: Option<Format>, is_big_endian: bool) -> Result<Head, ClipError> {
    let find = |name: &[u8], from: usize| {
        let rest = bytes.get(from..)?;
        rest.windows(8).position(|window| &window[..4] == name).map(|at| from + at + 8)
    };
    let mut from = 12;
    let format = match format {
        Some(format) => format,
        None => loop {
            let body_at = find(b"fmt ", from).ok_or(ClipError::NoFormat)?;
            let is_sized = (14..=4096).contains(&long(&bytes[body_at - 4..body_at], is_big_endian));
            from = body_at;
            if let (true, Ok(format)) = (is_sized, Format::parse(&bytes[body_at..], is_big_endian)) {
                break format;
            }
        },
    };
    let data_at = find(b"data", from).ok_or(ClipError::NoData)?;
    let size = long(&bytes[data_at - 4..data_at], is_big_endian);
    Ok(Head { format, data_at, data_bytes: data_bytes(size, None, &bytes[data_at..], is_big_endian) })
}

/// Part of a file behind its samples.
#[derive(Clone, Debug, PartialEq, Eq)]
enum After {
    /// Another file begins at this byte.
    File(usize),
    /// More samples of the same format.
    Data(usize, Option<u64>),
    /// The rest of the file has nothing more that is sound.
    End,
    /// Bytes from here on that are no chunk.
    Unknown(usize),
}

/// Finds the part behind samples that end at `end`.
fn after(bytes: &[u8], data_at: usize, end: usize, is_big_endian: bool) -> After {
    let mut at = match end.saturating_sub(data_at) % 2 {
        0 => end,
        _ => match [end + 1, end]
            .into_iter()
            .find(|&at| bytes.get(at..).is_some_and(|rest| is_wav(rest) || is_known(rest)))
        {
            Some(at) => at,
            None => end + 1,
        },
    };
    loop {
        let Some(rest) = bytes.get(at..).filter(|rest| rest.len() >= 8) else { return After::End };
        let size = long(&rest[4..8], is_big_endian);
        match () {
            () if is_wav(rest) => return After::File(at),
            () if rest.starts_with(b"data") => {
                return After::Data(at + 8, data_bytes(size, None, &rest[8..], is_big_endian));
            }
            () if !is_name(rest) => return After::Unknown(at),
            () => {}
        }
        match next_chunk(bytes, at + 8, size, true) {
            Some(next) => at = next,
            // A last chunk that is cut off holds no sound.
            None if is_known(rest) => return After::End,
            None => return After::Unknown(at),
        }
    }
}

/// Samples of one format within a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Format of the samples.
    pub format: Format,
    /// Range of the samples in the file, in bytes.
    pub bytes: Range<usize>,
}

/// The samples of a whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sections {
    /// Sections in their order: more than one when files were joined.
    pub sections: Vec<Section>,
    /// Number of bytes that the last header promises and that are not there.
    pub missing: u64,
    /// Number of bytes at the end that are neither samples nor chunks nor zeros, and more than the tag of another kind
    /// of file.
    pub unknown: u64,
}

/// Reads a whole file. What ends early, or whose size was never filled in, is read as far as it goes.
///
/// # Errors
/// As [`head`], for the first of joined files; later ones that are not read are `unknown`.
pub fn sections(bytes: &[u8]) -> Result<Sections, ClipError> {
    let mut found = Sections { sections: Vec::new(), missing: 0, unknown: 0 };
    let (mut from, mut head) = (0, head(bytes, true)?.ok_or(ClipError::NotWav)?);
    while found.sections.len() < MAX_SECTIONS {
        let rest = bytes.get(head.data_at..).unwrap_or_default();
        let count = match head.data_bytes {
            Some(count) => usize::try_from(count).unwrap_or(usize::MAX).min(rest.len()),
            None => next_file(rest).unwrap_or(rest.len()),
        };
        found.missing = head.data_bytes.map_or(0, |declared| declared - count as u64);
        let end = head.data_at + count;
        found.sections.push(Section { format: head.format, bytes: head.data_at..end });
        match after(bytes, head.data_at, end, head.format.is_big_endian) {
            After::File(at) => {
                from = at;
                let Ok(Some(next)) = self::head(&bytes[at..], true) else { break };
                head = Head { data_at: at + next.data_at, ..next };
            }
            After::Data(data_at, data_bytes) => {
                from = data_at;
                head = Head { data_at, data_bytes, ..head };
            }
            After::End => return Ok(found),
            After::Unknown(at) => {
                from = at;
                break;
            }
        }
    }
    let rest = &bytes[from..];
    found.unknown = if rest.len() > TAIL_BYTES && rest.iter().any(|byte| *byte != 0) { rest.len() as u64 } else { 0 };
    Ok(found)
}

/// Returns the position of another file within samples that have no size.
fn next_file(bytes: &[u8]) -> Option<usize> {
    bytes.windows(12).position(is_wav)
}

#[cfg(test)]
mod tests;
