//! Unpacking files that came compressed: gzip (RFC 1952) around deflate (RFC 1951), with a bound on what comes out.

/// Lengths of what is repeated, by symbol from 257 on, and how many more bits they have (RFC 1951 3.2.5).
const LENGTHS: [u16; 29] =
    [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258];
const LENGTH_BITS: [u8; 29] = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
/// How far back it stands.
const DISTANCES: [u16; 30] = [
    1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145,
    8193, 12_289, 16_385, 24_577,
];
const DISTANCE_BITS: [u8; 30] =
    [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13];
/// In which order the lengths of the codes for code lengths stand (RFC 1951 3.2.7).
const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
/// Longest code in bits.
const CODE_MAX: usize = 15;
/// Symbol that ends a block.
const END: usize = 256;

/// Why a file could not be unpacked.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Packed {
    /// It is damaged, or not whole.
    Broken,
    /// More comes out than may.
    TooLarge,
}

/// True when a file begins as gzip files do.
pub(super) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// What is in a gzip file of one or more members, at most `most` bytes.
///
/// # Errors
/// When it is damaged, or holds more.
pub(super) fn unpack(bytes: &[u8], most: usize) -> Result<Vec<u8>, Packed> {
    let mut out = Vec::new();
    let mut bits = Bits { bytes, at: 0, held: 0, count: 0 };
    while bits.at < bytes.len() {
        member(&mut bits, &mut out, most)?;
    }
    Ok(out)
}

fn member(bits: &mut Bits<'_>, out: &mut Vec<u8>, most: usize) -> Result<(), Packed> {
    let [0x1f, 0x8b, 8, flags, ..] = bits.whole(10)? else { return Err(Packed::Broken) };
    let flags = *flags;
    if flags & 0xe0 != 0 {
        return Err(Packed::Broken);
    }
    if flags & 4 != 0 {
        let length = bits.whole(2)?;
        bits.whole(usize::from(u16::from_le_bytes([length[0], length[1]])))?;
    }
    // A name and a comment, each up to its NUL.
    for _ in 0..(flags >> 3 & 1) + (flags >> 4 & 1) {
        while bits.whole(1)? != [0] {}
    }
    if flags & 2 != 0 {
        bits.whole(2)?;
    }
    let from = out.len();
    inflate(bits, out, from, most)?;
    let trailer = bits.whole(8)?;
    let number = |at: usize| u32::from_le_bytes([trailer[at], trailer[at + 1], trailer[at + 2], trailer[at + 3]]);
    let is_whole = number(0) == crc32(&out[from..]) && number(4) == (out.len() - from) as u32;
    if is_whole { Ok(()) } else { Err(Packed::Broken) }
}

/// Appends what the blocks hold; `from` is where this member begins in `out`.
fn inflate(bits: &mut Bits<'_>, out: &mut Vec<u8>, from: usize, most: usize) -> Result<(), Packed> {
    loop {
        let is_last = bits.take(1)? == 1;
        match bits.take(2)? {
            0 => {
                bits.skip_rest();
                let head = bits.whole(4)?;
                let length = u16::from_le_bytes([head[0], head[1]]);
                if length != !u16::from_le_bytes([head[2], head[3]]) {
                    return Err(Packed::Broken);
                }
                let stored = bits.whole(usize::from(length))?;
                if out.len() + stored.len() > most {
                    return Err(Packed::TooLarge);
                }
                out.extend_from_slice(stored);
            }
            1 => {
                let lengths: Vec<u8> = (0..288)
                    .map(|symbol| match symbol {
                        0..144 => 8,
                        144..256 => 9,
                        256..280 => 7,
                        _ => 8,
                    })
                    .collect();
                block(bits, &Code::of(&lengths)?, &Code::of(&[5; 30])?, out, from, most)?;
            }
            2 => {
                let (symbols, distances) = codes(bits)?;
                block(bits, &symbols, &distances, out, from, most)?;
            }
            _ => return Err(Packed::Broken),
        }
        if is_last {
            bits.skip_rest();
            return Ok(());
        }
    }
}

/// The two codes of a block that brings its own.
fn codes(bits: &mut Bits<'_>) -> Result<(Code, Code), Packed> {
    let (symbols, distances) = (bits.take(5)? as usize + 257, bits.take(5)? as usize + 1);
    let mut lengths = [0; 19];
    for place in &ORDER[..bits.take(4)? as usize + 4] {
        lengths[*place] = bits.take(3)? as u8;
    }
    let code = Code::of(&lengths)?;
    let mut lengths: Vec<u8> = Vec::with_capacity(symbols + distances);
    while lengths.len() < symbols + distances {
        let (length, times) = match code.symbol(bits)? {
            length @ 0..16 => (length as u8, 1),
            16 => (*lengths.last().ok_or(Packed::Broken)?, bits.take(2)? + 3),
            17 => (0, bits.take(3)? + 3),
            _ => (0, bits.take(7)? + 11),
        };
        lengths.extend((0..times).map(|_| length));
    }
    if lengths.len() > symbols + distances {
        return Err(Packed::Broken);
    }
    let distances = lengths.split_off(symbols);
    Ok((Code::of(&lengths)?, Code::of(&distances)?))
}

fn block(
    bits: &mut Bits<'_>,
    symbols: &Code,
    distances: &Code,
    out: &mut Vec<u8>,
    from: usize,
    most: usize,
) -> Result<(), Packed> {
    loop {
        let symbol = symbols.symbol(bits)?;
        let repeated = match symbol {
            END => return Ok(()),
            0..END => {
                if out.len() >= most {
                    return Err(Packed::TooLarge);
                }
                out.push(symbol as u8);
                continue;
            }
            _ => symbol - END - 1,
        };
        let base = usize::from(*LENGTHS.get(repeated).ok_or(Packed::Broken)?);
        let length = base + bits.take(LENGTH_BITS[repeated])? as usize;
        let place = distances.symbol(bits)?;
        let base = usize::from(*DISTANCES.get(place).ok_or(Packed::Broken)?);
        let distance = base + bits.take(DISTANCE_BITS[place])? as usize;
        if distance > out.len() - from {
            return Err(Packed::Broken);
        }
        if out.len() + length > most {
            return Err(Packed::TooLarge);
        }
        for _ in 0..length {
            out.push(out[out.len() - distance]);
        }
    }
}

/// A canonical Huffman code (RFC 1951 3.2.2).
struct Code {
    /// How many codes there are of each length.
    counts: [u16; CODE_MAX + 1],
    /// What they stand for, in order.
    symbols: Vec<u16>,
}

impl Code {
    /// The code whose symbols have these lengths; 0: the symbol does not occur.
    fn of(lengths: &[u8]) -> Result<Code, Packed> {
        let mut counts = [0u16; CODE_MAX + 1];
        lengths.iter().filter(|length| **length > 0).for_each(|length| counts[usize::from(*length)] += 1);
        let mut left = 1i32;
        for count in &counts[1..] {
            left = 2 * left - i32::from(*count);
            if left < 0 {
                return Err(Packed::Broken);
            }
        }
        let mut symbols: Vec<u16> = (0..lengths.len() as u16).filter(|at| lengths[usize::from(*at)] > 0).collect();
        symbols.sort_by_key(|at| lengths[usize::from(*at)]);
        Ok(Code { counts, symbols })
    }

    fn symbol(&self, bits: &mut Bits<'_>) -> Result<usize, Packed> {
        let (mut code, mut first, mut index) = (0, 0, 0);
        for count in &self.counts[1..] {
            code = code << 1 | bits.take(1)?;
            let count = u32::from(*count);
            if code < first + count {
                return Ok(usize::from(self.symbols[(index + code - first) as usize]));
            }
            index += count;
            first = (first + count) << 1;
        }
        Err(Packed::Broken)
    }
}

/// A file, read by bits, the lowest of each byte first.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
    held: u32,
    count: u8,
}

impl<'a> Bits<'a> {
    /// The next bits, at most 16.
    fn take(&mut self, count: u8) -> Result<u32, Packed> {
        while self.count < count {
            let next = *self.bytes.get(self.at).ok_or(Packed::Broken)?;
            self.held |= u32::from(next) << self.count;
            self.count += 8;
            self.at += 1;
        }
        let taken = self.held & ((1 << count) - 1);
        self.held >>= count;
        self.count -= count;
        Ok(taken)
    }

    /// Leaves out what is left of a byte.
    fn skip_rest(&mut self) {
        (self.held, self.count) = (0, 0);
    }

    /// The next bytes; only where no bits of one are left.
    fn whole(&mut self, count: usize) -> Result<&'a [u8], Packed> {
        let bytes = self.bytes.get(self.at..).and_then(|rest| rest.get(..count)).ok_or(Packed::Broken)?;
        self.at += count;
        Ok(bytes)
    }
}

/// CRC-32 (RFC 1952 8).
fn crc32(bytes: &[u8]) -> u32 {
    let table: Vec<u32> = (0..256u32)
        .map(|byte| (0..8).fold(byte, |c, _| if c & 1 == 1 { 0xedb8_8320 ^ c >> 1 } else { c >> 1 }))
        .collect();
    !bytes.iter().fold(!0, |crc, byte| table[((crc ^ u32::from(*byte)) & 0xff) as usize] ^ crc >> 8)
}

/// A list of one transcript entry, compressed with codes of its own.
#[cfg(test)]
pub(super) const ENTRY: &str = "1f8b08000000000002038bae562a2e492c2a89cf4f4b2b4e2d89cf2d56b252503250d251504acd4b4111b53430008a1617a\
    42666a716815439babbfa858054969694a41625e625a782443d32f5946a63014fff15f058000000";

#[cfg(test)]
mod tests {
    use super::*;

    /// With the codes that are fixed, and with none.
    const FIXED: &str = "1f8b08000000000002034b4c840185a4c43c202c06007b77c61612000000";
    const STORED: &str = "1f8b0800000000000403010600f9ff73746f7265640bf9435606000000";

    fn bytes(text: &str) -> Vec<u8> {
        hex::decode(text).expect("hexadecimal digits")
    }

    #[test]
    fn every_kind_of_block_is_unpacked() {
        let entry = r#"[{"start_offset_ms": "0", "end_offset_ms": 900, "speaker": "AGENT", "utterance": "Hi."}]"#;
        let named = [&[0x1f, 0x8b, 8, 0x1e, 0, 0, 0, 0, 0, 3, 1, 0, b'x'][..], b"a.json\0", b"why\0", &[0, 0]].concat();
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
