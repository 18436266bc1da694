//! Files with sizes, chunks and ends as writers leave them, at once and in pieces.

use super::stream::WavStream;
use super::*;
use crate::clip::Clip;
use crate::seed::Seed;

/// Returns a chunk with its pad byte.
fn chunk(name: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = [name.as_bytes(), &(body.len() as u32).to_le_bytes(), body].concat();
    bytes.extend((body.len() % 2 == 1).then_some(0));
    bytes
}

/// Returns a chunk without a pad byte.
fn odd_chunk(name: &str, body: &[u8]) -> Vec<u8> {
    [name.as_bytes(), &(body.len() as u32).to_le_bytes(), body].concat()
}

/// Returns a chunk whose size differs from that of its body.
fn chunk_as(name: &str, size: u32, body: &[u8]) -> Vec<u8> {
    [name.as_bytes(), &size.to_le_bytes(), body].concat()
}

/// Returns a format chunk of 16-bit PCM, one channel.
fn fmt(rate_hz: u32) -> Vec<u8> {
    let rate = rate_hz.to_le_bytes();
    chunk("fmt ", &[&[1, 0, 1, 0][..], &rate, &[0; 4], &[2, 0, 16, 0]].concat())
}

fn file(chunks: &[Vec<u8>]) -> Vec<u8> {
    [b"RIFF\0\0\0\0WAVE".to_vec(), chunks.concat()].concat()
}

fn pcm(samples: &[i16]) -> Vec<u8> {
    samples.iter().flat_map(|sample| sample.to_le_bytes()).collect()
}

/// Returns the samples of a file that comes in pieces of this many bytes, each sample with its rate.
fn stream(bytes: &[u8], piece: usize) -> Result<Vec<(u32, i16)>, ClipError> {
    let (mut stream, mut samples) = (WavStream::default(), Vec::new());
    let mut out = |format: Format, bytes: &[u8]| {
        samples.extend(bytes.chunks_exact(format.frame_bytes()).map(|frame| (format.rate_hz, format.mean(frame))));
    };
    bytes.chunks(piece).try_for_each(|piece| stream.push(piece, &mut out))?;
    stream.finish(&mut out)?;
    Ok(samples)
}

/// Returns the samples of a file that comes in one piece, each with its rate.
fn whole(bytes: &[u8]) -> Result<Vec<(u32, i16)>, ClipError> {
    let samples = |section: Section| {
        let (format, bytes) = (section.format, bytes[section.bytes].to_vec());
        let frames = bytes.chunks_exact(format.frame_bytes());
        frames.map(|frame| (format.rate_hz, format.mean(frame))).collect::<Vec<_>>()
    };
    Ok(sections(bytes)?.sections.into_iter().flat_map(samples).collect())
}

#[test]
fn a_file_is_read_whatever_its_sizes_say() {
    let data = pcm(&[1, 2, 3, 4]);
    let more = pcm(&[5, 6]);
    let odd = [&data[..], &[9]].concat();
    let rates = |rate_hz: u32, samples: &[i16]| samples.iter().map(|&sample| (rate_hz, sample)).collect::<Vec<_>>();
    let four = rates(8000, &[1, 2, 3, 4]);
    let both = [four.clone(), rates(24_000, &[5, 6])].concat();
    let plain = file(&[fmt(8000), chunk("data", &data)]);
    let other = file(&[fmt(24_000), chunk("data", &more)]);
    for (name, bytes, expect) in [
        ("plain", plain.clone(), &four),
        ("no size", file(&[fmt(8000), chunk_as("data", 0, &data)]), &four),
        ("no size, as written into a pipe", file(&[fmt(8000), chunk_as("data", u32::MAX, &data)]), &four),
        ("no size, as another program writes it", file(&[fmt(8000), chunk_as("data", 0x7fff_f000, &data)]), &four),
        ("a size beyond the end", file(&[fmt(8000), chunk_as("data", 9000, &data)]), &four),
        ("an odd byte at the end", file(&[fmt(8000), chunk_as("data", u32::MAX, &odd)]), &four),
        ("a padded chunk before", file(&[chunk("LIST", b"abc"), fmt(8000), chunk("data", &data)]), &four),
        ("an odd chunk", file(&[odd_chunk("LIST", b"abc"), fmt(8000), chunk("data", &data)]), &four),
        ("another", file(&[fmt(8000), odd_chunk("zzzz", b"abc"), chunk("data", &data)]), &four),
        ("an unknown padded chunk", file(&[fmt(8000), chunk("zzzz", b"abc"), chunk("data", &data)]), &four),
        ("a chunk of a wrong size", file(&[chunk_as("LIST", 90_000, b"abcd"), fmt(8000), chunk("data", &data)]), &four),
        ("behind the format", file(&[fmt(8000), chunk_as("LIST", u32::MAX, b"abcd"), chunk("data", &data)]), &four),
        ("a chunk behind", file(&[fmt(8000), chunk("data", &odd), chunk("LIST", b"abcdefghijklm")]), &four),
        ("an odd one behind", file(&[fmt(8000), odd_chunk("data", &odd), chunk("LIST", b"abcdefghijklm")]), &four),
        ("a tag behind", [plain.clone(), b"TAG".to_vec(), vec![0; 125]].concat(), &four),
        ("no samples", file(&[fmt(8000), chunk("data", b""), chunk("LIST", b"abcdefgh"), chunk("data", &data)]), &four),
        ("joined", [plain.clone(), other.clone()].concat(), &both),
        (
            "joined behind a chunk",
            [file(&[fmt(8000), chunk("data", &odd), chunk("id3 ", b"a")]), other.clone()].concat(),
            &both,
        ),
        (
            "joined without a size",
            [file(&[fmt(8000), chunk_as("data", u32::MAX, &data)]), other.clone()].concat(),
            &both,
        ),
        (
            "two chunks of samples",
            file(&[fmt(8000), chunk("data", &pcm(&[1])), chunk("data", &pcm(&[2, 3, 4]))]),
            &four,
        ),
        (
            "64 bits",
            [
                b"RF64\xff\xff\xff\xffWAVE".to_vec(),
                chunk("ds64", &[&[0; 8][..], &8u64.to_le_bytes(), &[0; 12]].concat()),
                fmt(8000),
                chunk_as("data", u32::MAX, &data),
                chunk("LIST", b"abcdefghijklm"),
            ]
            .concat(),
            &four,
        ),
    ] {
        assert_eq!(whole(&bytes).as_ref(), Ok(expect), "{name}");
        for piece in [1, 2, 3, 7, 13, 1000] {
            assert_eq!(stream(&bytes, piece).as_ref(), Ok(expect), "{name}, {piece} bytes at a time");
        }
    }
}

#[test]
fn the_other_byte_order_is_read() {
    let long = |value: u32| value.to_be_bytes();
    let bytes = [
        &b"RIFX\0\0\0\0WAVEfmt "[..],
        &long(16),
        &[0, 1, 0, 2],
        &long(44_100),
        &[0; 4],
        &[0, 4, 0, 16],
        b"data",
        &long(8),
        &[1, 0, 3, 0, 0xff, 0xfe, 0xff, 0xfe],
    ]
    .concat();
    for samples in [whole(&bytes), stream(&bytes, 1)] {
        assert_eq!(samples, Ok(vec![(44_100, 512), (44_100, -2)]));
    }
    assert_eq!(Clip::from_wav(&bytes).map(|clip| clip.pcm), Ok(vec![512, -2]));
}

#[test]
fn what_is_not_read_is_counted() {
    let data = pcm(&[1, 2, 3, 4]);
    let counts = |chunks: &[Vec<u8>]| sections(&file(chunks)).map(|found| (found.missing, found.unknown));
    for (chunks, expect) in [
        (vec![fmt(8000), chunk("data", &data)], (0, 0)),
        (vec![fmt(8000), chunk_as("data", 9000, &data)], (8992, 0)),
        (vec![fmt(8000), chunk_as("data", u32::MAX, &data)], (0, 0)),
        (vec![fmt(8000), chunk("data", &data), vec![7; 4096]], (0, 0)),
        (vec![fmt(8000), chunk("data", &data), vec![0; 9000]], (0, 0)),
        (vec![fmt(8000), chunk("data", &data), vec![7; 5000]], (0, 5000)),
        (vec![fmt(8000), chunk("data", &data), file(&[vec![7; 5000]])], (0, 5012)),
    ] {
        assert_eq!(counts(&chunks), Ok(expect));
    }
    let trailing = file(&[fmt(8000), chunk("data", &data), vec![7; 5000]]);
    assert_eq!(stream(&trailing, 100), Err(ClipError::Trailing));
    assert_eq!(stream(&file(&[fmt(8000)]), 3), Err(ClipError::NoData));
    assert_eq!(stream(b"OggS, and more", 1), Err(ClipError::NotWav));
}

#[test]
fn samples_are_given_as_soon_as_they_are_there() {
    for size in [0, 4000, u32::MAX] {
        let bytes = file(&[fmt(8000), chunk_as("data", size, &[5; 400])]);
        let (mut stream, mut given) = (WavStream::default(), 0);
        for (at, piece) in bytes.chunks(1).enumerate() {
            stream.push(piece, &mut |_, bytes| given += bytes.len()).expect("it is a WAV file");
            let held = (at + 1).saturating_sub(44 + given);
            assert!(held <= 12, "{held} bytes are held at {at}");
        }
        stream.finish(&mut |_, bytes| given += bytes.len()).expect("it is one");
        assert_eq!(given, 400, "{size}");
    }
}

#[test]
fn any_bytes_are_samples_or_an_error() {
    let joined = [
        file(&[chunk("LIST", b"abc"), fmt(8000), chunk("data", &pcm(&[1, 2, 3]))]),
        file(&[fmt(24_000), chunk_as("data", u32::MAX, &pcm(&[4, 5]))]),
    ]
    .concat();
    let mut random = Seed(8).stream("bytes");
    for _ in 0..20_000 {
        let mut broken = joined[..12 + random.index(joined.len() - 11)].to_vec();
        for _ in 0..random.index(6) {
            let at = random.index(broken.len());
            broken[at] = random.bits() as u8;
        }
        let count = broken.len();
        let (at_once, piece) = (whole(&broken), 1 + random.index(40));
        assert!(at_once.is_err() || at_once.is_ok_and(|samples| samples.len() <= count));
        assert!(stream(&broken, piece).map_or(0, |samples| samples.len()) <= count);
    }
}
