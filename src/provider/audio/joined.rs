//! Files that were joined to one, and where each of them begins: their readers know of one only, or take the length of
//! the first for that of all. Goes through the bytes once, by the sizes that stand in them.

use std::ops::Range;

/// Joined files that are read of one.
const MAX_PIECES: usize = 1000;

/// One of joined files.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Piece {
    pub(super) bytes: Range<usize>,
    /// True if its reader would guess a length.
    pub(super) is_plain: bool,
    /// True if it ends within a part whose size is stated.
    pub(super) is_cut: bool,
    /// Seconds that it tells of beyond those in it.
    pub(super) missing_s: f64,
    /// Seconds of bytes within it that are no audio, about.
    pub(super) skipped_s: f64,
}

impl Piece {
    /// Returns the piece of a file that holds only one.
    pub(super) fn whole(bytes: &[u8]) -> Piece {
        Piece::of(0..bytes.len())
    }

    fn of(bytes: Range<usize>) -> Piece {
        Piece { bytes, is_plain: false, is_cut: false, missing_s: 0.0, skipped_s: 0.0 }
    }
}

/// A frame of MPEG audio or of AAC (ADTS).
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Frame {
    pub(super) bytes: usize,
    samples: u32,
    rate_hz: u32,
    /// Properties that all frames of one decoder share.
    pub(super) key: u32,
    /// Position of the description of the file, in a frame that has one.
    about_at: usize,
}

/// Returns the frame of MPEG audio (ISO/IEC 11172-3 2.4.1.3, 13818-3 2.4.1.3) that begins here.
pub(super) fn mpeg(bytes: &[u8]) -> Option<Frame> {
    /// Bit rates in kbit/s by version (1, then 2 and 2.5) and layer (I, II, III); the first entry means a rate that is
    /// not stated.
    const KBITS: [[[u32; 15]; 3]; 2] = [
        [
            [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
            [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
            [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
        ],
        [
            [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
            [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
            [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
        ],
    ];
    const HZ: [u32; 3] = [44_100, 48_000, 32_000];
    let head = u32::from_be_bytes(bytes.get(..4)?.try_into().ok()?);
    let (version, layer) = (head >> 19 & 3, head >> 17 & 3);
    if head >> 21 != 0x7ff || version == 1 || layer == 0 {
        return None;
    }
    let (is_first, layer) = (version == 3, 3 - layer as usize);
    let kbits = *KBITS[usize::from(!is_first)][layer].get((head >> 12 & 15) as usize)?;
    let rate_hz = HZ.get((head >> 10 & 3) as usize)? >> [2, 0, 1, 0][version as usize];
    let samples = [384, 1152, if is_first { 1152 } else { 576 }][layer];
    let padding = head >> 9 & 1;
    let size = match layer {
        0 => (12_000 * kbits / rate_hz + padding) * 4,
        _ => samples / 8 * 1000 * kbits / rate_hz + padding,
    };
    let is_mono = head >> 6 & 3 == 3;
    let about_at = 4 + match (is_first, is_mono) {
        (true, false) => 32,
        (true, true) | (false, false) => 17,
        (false, true) => 9,
    };
    let key = head & 0x001e_0c00 | u32::from(is_mono);
    (kbits > 0).then_some(Frame { bytes: size as usize, samples, rate_hz, key, about_at })
}

/// Returns the ADTS frame (ISO/IEC 13818-7 6.2) that begins here.
pub(super) fn adts(bytes: &[u8]) -> Option<Frame> {
    const HZ: [u32; 13] =
        [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8000, 7350];
    let &[first, second, third, fourth, fifth, sixth] = bytes.first_chunk()?;
    let rate_hz = *HZ.get(usize::from(third >> 2 & 15))?;
    let size = usize::from(fourth & 3) << 11 | usize::from(fifth) << 3 | usize::from(sixth >> 5);
    let key = u32::from(second & 8) << 16 | u32::from(third & 0xfd) << 8 | u32::from(fourth & 0xc0);
    let is_frame = first == 0xff && second & 0xf6 == 0xf0 && size > 7;
    is_frame.then_some(Frame { bytes: size, samples: 1024, rate_hz, key, about_at: usize::MAX })
}

/// Returns the length of the ID3v2 tag (ID3v2.4 3.1) that begins here; 0 where none does.
pub(super) fn tag_bytes(bytes: &[u8]) -> usize {
    match bytes.first_chunk::<10>() {
        Some([b'I', b'D', b'3', major, minor, flags, size @ ..])
            if *major < 0xff && *minor < 0xff && size.iter().all(|byte| *byte < 0x80) =>
        {
            let body = size.iter().fold(0, |size, byte| size << 7 | usize::from(*byte));
            10 + body + if flags & 0x10 == 0 { 0 } else { 10 }
        }
        _ => 0,
    }
}

/// Returns the frames that a description of a file tells of (Xing, Info, VBRI); the inner `None`: it does not tell.
fn about(frame: &Frame, bytes: &[u8]) -> Option<Option<u32>> {
    let long = |at: usize| bytes.get(at..at + 4).map(|four| u32::from_be_bytes(four.try_into().expect("it has four")));
    let at = frame.about_at;
    match bytes.get(at..at.checked_add(4)?) {
        Some(b"Xing" | b"Info") => Some(long(at + 4).filter(|flags| flags & 1 == 1).and_then(|_| long(at + 8))),
        _ if bytes.get(36..40) == Some(b"VBRI") => Some(long(36 + 14)),
        _ => None,
    }
}

/// True where a file begins with its tag or description.
fn is_start(bytes: &[u8], read: fn(&[u8]) -> Option<Frame>) -> bool {
    tag_bytes(bytes) > 0 || read(bytes).is_some_and(|frame| about(&frame, bytes).is_some())
}

/// Frames that are read as one file.
struct Run {
    from: usize,
    to: usize,
    first: Frame,
    /// Description of the file: where it ends, and the frames that it tells of.
    about: Option<(usize, Option<u32>)>,
    frames: u32,
    skipped: usize,
}

impl Run {
    fn piece(self) -> Piece {
        let frame_s = f64::from(self.first.samples) / f64::from(self.first.rate_hz);
        let mut piece = Piece { is_plain: true, ..Piece::of(self.from..self.to) };
        match self.about {
            Some((_, Some(declared))) if declared >= self.frames => {
                piece.missing_s = f64::from(declared - self.frames) * frame_s;
            }
            // It tells of fewer frames than there are: its reader would stop after them.
            Some((end, Some(_))) => piece.bytes.start = end,
            _ => {}
        }
        let frame_bytes = (self.to - self.from - self.skipped) as f64 / f64::from(self.frames.max(1));
        piece.skipped_s = self.skipped as f64 / frame_bytes.max(1.0) * frame_s;
        piece
    }
}

/// Runs of frames of one kind, each with the same rate and channels, and with at most one description.
pub(super) fn frames(bytes: &[u8], read: fn(&[u8]) -> Option<Frame>) -> Vec<Piece> {
    let (mut pieces, mut run, mut at): (Vec<Piece>, Option<Run>, usize) = (Vec::new(), None, 0);
    // Bytes since the last frame that are none.
    let mut lost = 0;
    while at + 4 <= bytes.len() && pieces.len() < MAX_PIECES {
        let rest = &bytes[at..];
        let tag = match tag_bytes(rest) {
            0 if rest.starts_with(b"TAG") => 128,
            tag => tag,
        };
        // A tag that goes beyond the end is none, or nothing stands behind it.
        if tag > 0 && tag <= rest.len() {
            pieces.extend(run.take().map(Run::piece));
            (at, lost) = (at + tag, 0);
            continue;
        }
        let frame = read(rest).filter(|frame| {
            let Some(next) = rest.get(frame.bytes..) else { return false };
            let goes_on = read(next).is_some_and(|next| next.key == frame.key) || tag_bytes(next) > 0;
            let is_same = lost == 0 && run.as_ref().is_some_and(|run| run.first.key == frame.key);
            // A file that was cut off before another was joined to it would take the start of that one along.
            let is_cut = || is_same && (1..frame.bytes).any(|at| is_start(&rest[at..], read));
            goes_on || next.len() < 4 || next.starts_with(b"TAG") || is_same && !is_cut()
        });
        let Some(frame) = frame else {
            (at, lost) = (at + 1, lost + 1);
            continue;
        };
        let body = &rest[..frame.bytes];
        let about = about(&frame, body);
        if about.is_some() || run.as_ref().is_some_and(|run| run.first.key != frame.key) {
            pieces.extend(run.take().map(Run::piece));
            lost = 0;
        }
        let end = at + frame.bytes;
        let run = run.get_or_insert(Run { from: at, to: end, first: frame, about: None, frames: 0, skipped: 0 });
        match about {
            Some(declared) => run.about = Some((end, declared)),
            None => run.frames += 1,
        }
        (run.to, run.skipped) = (end, run.skipped + if run.frames > 0 { lost } else { 0 });
        (at, lost) = (end, 0);
    }
    pieces.extend(run.map(Run::piece));
    if let Some(last) = pieces.last_mut() {
        last.is_cut = at + 4 <= bytes.len();
    }
    if pieces.is_empty() { vec![Piece::whole(bytes)] } else { pieces }
}

/// Returns the chained streams of an Ogg file (RFC 3533 4): a page that begins a stream, behind one that does not,
/// begins the next. Bytes that are no whole page, or whose sum is another, are taken out.
pub(super) fn ogg(bytes: &mut Vec<u8>) -> Vec<Piece> {
    let (mut pieces, mut at, mut end, mut is_head) = (vec![Piece::of(0..0)], 0, 0, true);
    // Bytes of pages whose sums may still turn out wrong: such pages lie within each other where somebody wants it.
    let mut patience = 4 * bytes.len() + (1 << 20);
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let piece = pieces.last_mut().expect("there is always one");
        let size = page_bytes(rest);
        if patience < size.unwrap_or(0) {
            piece.is_cut = true;
            break;
        }
        let Some(size) = size.filter(|size| has_its_sum(&rest[..*size])) else {
            patience -= size.unwrap_or(0);
            piece.is_cut |= rest.starts_with(b"OggS") || b"OggS".starts_with(rest);
            at += next_page(rest).unwrap_or(rest.len());
            continue;
        };
        let is_first = rest[5] & 2 == 2;
        if is_first && !is_head && pieces.len() < MAX_PIECES {
            pieces.push(Piece::of(end..end));
        }
        is_head = is_first;
        bytes.copy_within(at..at + size, end);
        (at, end) = (at + size, end + size);
        pieces.last_mut().expect("there is always one").bytes.end = end;
    }
    bytes.truncate(end);
    pieces
}

/// Returns the length of the Ogg page that begins here (RFC 3533 6), if all of it is here.
fn page_bytes(bytes: &[u8]) -> Option<usize> {
    if !bytes.starts_with(b"OggS\0") {
        return None;
    }
    let sizes = bytes.get(27..27 + usize::from(*bytes.get(26)?))?;
    let size = 27 + sizes.len() + sizes.iter().map(|size| usize::from(*size)).sum::<usize>();
    (size <= bytes.len()).then_some(size)
}

/// True where the sum of a page, its place being 0, is the one that stands in it.
fn has_its_sum(page: &[u8]) -> bool {
    let checksum = u32::from_le_bytes(page[22..26].try_into().expect("it has four"));
    let summed = page[..22].iter().chain(&[0; 4]).chain(&page[26..]);
    let sum = summed.fold(0, |sum: u32, byte| sum << 8 ^ SUMS[usize::from((sum >> 24) as u8 ^ byte)]);
    sum == checksum
}

/// Sums of single bytes by the polynomial 0x04c11db7.
static SUMS: [u32; 256] = {
    let (mut sums, mut byte) = ([0; 256], 0);
    while byte < 256 {
        let (mut sum, mut bit) = ((byte as u32) << 24, 0);
        while bit < 8 {
            sum = sum << 1 ^ if sum >> 31 == 1 { 0x04c1_1db7 } else { 0 };
            bit += 1;
        }
        sums[byte] = sum;
        byte += 1;
    }
    sums
};

/// Returns the position of the next Ogg page behind the first byte.
fn next_page(bytes: &[u8]) -> Option<usize> {
    bytes.get(1..)?.windows(5).position(|window| window == b"OggS\0").map(|at| at + 1)
}

/// Returns the files joined to one FLAC file: each begins with its marker and the size of its STREAMINFO (RFC 9639 8).
pub(super) fn flac(bytes: &[u8]) -> Vec<Piece> {
    let is_start = |window: &[u8]| window[..4] == *b"fLaC" && window[4] & 0x7f == 0 && window[5..] == [0, 0, 34];
    let starts = bytes.windows(8).enumerate().skip(1).filter(|(_, window)| is_start(window)).map(|(at, _)| at);
    let mut pieces = vec![Piece::whole(bytes)];
    for at in starts.take(MAX_PIECES) {
        pieces.last_mut().expect("there is always one").bytes.end = at;
        pieces.push(Piece::of(at..bytes.len()));
    }
    pieces
}

/// Joined MP4 files: each begins with its `ftyp` box (ISO/IEC 14496-12 4.3). The size of a last box that is cut off
/// becomes that of what is there, so that its reader takes it.
///
/// # Errors
/// The first has no index.
pub(super) fn mp4(bytes: &mut [u8]) -> Result<Vec<Piece>, String> {
    let (mut pieces, mut at, mut has_index) = (vec![Piece::of(0..0)], 0, false);
    while let Some(head) = bytes.get(at..at + 8) {
        let short = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
        let (kind, left) = ([head[4], head[5], head[6], head[7]], bytes.len() - at);
        let long = bytes.get(at + 8..at + 16).map(|long| u64::from_be_bytes(long.try_into().expect("it has eight")));
        let size = match short {
            0 => left,
            1 => long.and_then(|long| usize::try_from(long).ok()).unwrap_or(usize::MAX),
            short => short as usize,
        };
        if size < 8 {
            break;
        }
        if &kind == b"ftyp" && at > 0 && pieces.len() < MAX_PIECES {
            pieces.push(Piece::of(at..at));
        }
        has_index |= &kind == b"moov" && size <= left;
        let piece = pieces.last_mut().expect("there is always one");
        if size > left {
            piece.is_cut = true;
            if &kind == b"mdat" && left <= u32::MAX as usize && short != 1 {
                bytes[at..at + 4].copy_from_slice(&(left as u32).to_be_bytes());
            }
        }
        at += size.min(left);
        piece.bytes.end = at;
    }
    match (has_index, pieces.iter().any(|piece| piece.is_cut)) {
        (false, true) => Err("the file is not complete: its index (moov), which comes last, is missing".to_owned()),
        (false, false) => Err("the MP4 file has no index (moov)".to_owned()),
        (true, _) => Ok(pieces),
    }
}
