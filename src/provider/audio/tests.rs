//! Files that ffmpeg wrote, as they are, joined, cut off and broken.

use std::f64::consts::TAU;
use std::process::Command;

use ringer_media::frame::RATE_HZ;
use ringer_media::seed::Seed;

use super::*;

/// Returns three seconds of 440 Hz on the left and 1000 Hz on the right, each at a peak of 8000, as ffmpeg writes them.
fn file(name: &str, arguments: &[&str]) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    let tones = "aevalsrc=0.24414*sin(440*2*PI*t)|0.24414*sin(1000*2*PI*t):s=44100:d=3";
    let input = ["-hide_banner", "-loglevel", "error", "-f", "lavfi", "-i", tones];
    let done = Command::new("ffmpeg").args(input).args(arguments).arg(&path).status();
    assert!(done.expect("the package ffmpeg is installed").success(), "ffmpeg writes {name}");
    std::fs::read(&path).expect("ffmpeg wrote a file")
}

/// Returns the peak of a tone in the middle second.
fn peak(pcm: &[i16], hz: f64) -> f64 {
    let part = &pcm[16_000..32_000];
    let turn = |n: usize| TAU * hz * n as f64 / 16_000.0;
    let sum = |of: fn(f64) -> f64| part.iter().enumerate().map(|(n, &x)| f64::from(x) * of(turn(n))).sum::<f64>();
    2.0 * sum(f64::sin).hypot(sum(f64::cos)) / part.len() as f64
}

#[test]
fn every_kind_of_file_is_heard_whole_in_mono_and_at_its_level() {
    for (name, arguments) in [
        ("pcm.wav", &[][..]),
        ("float.wav", &["-c:a", "pcm_f32le"]),
        ("24.wav", &["-c:a", "pcm_s24le", "-ar", "96000"]),
        ("high.flac", &["-c:a", "flac", "-ar", "192000"]),
        ("alaw.wav", &["-c:a", "pcm_alaw", "-ar", "8000"]),
        ("a.mp3", &["-c:a", "libmp3lame", "-b:a", "128k"]),
        ("a.flac", &["-c:a", "flac"]),
        ("vorbis.ogg", &["-c:a", "libvorbis", "-q:a", "5"]),
        ("opus.ogg", &["-c:a", "libopus", "-b:a", "96k"]),
        ("mono.opus", &["-c:a", "libopus", "-af", "pan=mono|c0=0.5*c0+0.5*c1"]),
        ("a.m4a", &["-c:a", "aac", "-b:a", "128k"]),
        ("a.aac", &["-c:a", "aac", "-b:a", "128k"]),
        ("a.rf64.wav", &["-rf64", "always"]),
        // A guess of the length by the first frame's rate of bits would end too early.
        ("no-length.mp3", &["-c:a", "libmp3lame", "-q:a", "2", "-write_xing", "0", "-id3v2_version", "0"]),
    ] {
        let Sound { pcm, unread } =
            decode(file(name, arguments)).unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
        assert_eq!(unread, None, "{name}");
        let seconds = pcm.len() as f64 / 16_000.0;
        let (low, high) = (peak(&pcm, 440.0), peak(&pcm, 1000.0));
        println!("{name}: {seconds:.3} s, {low:.0} and {high:.0} of 4000");
        assert!((seconds - 3.0).abs() < 0.1, "{name}: {seconds} s");
        for level in [low, high] {
            assert!((20.0 * (level / 4000.0).log10()).abs() < 0.5, "{name}: {low:.0}, {high:.0}");
        }
        assert!(peak(&pcm, 700.0) < 60.0, "{name}");
    }
}

#[test]
fn the_sides_of_a_call_stay_apart() {
    for (name, arguments) in [
        ("a.wav", &[][..]),
        ("a.mp3", &["-c:a", "libmp3lame", "-b:a", "128k"]),
        ("a.flac", &["-c:a", "flac"]),
        ("a.ogg", &["-c:a", "libvorbis"]),
        ("a.opus", &["-c:a", "libopus", "-b:a", "128k"]),
        ("a.m4a", &["-c:a", "aac", "-b:a", "128k"]),
    ] {
        let sides = decode_call(file(name, arguments), true).expect(name).sides;
        let [left, right] = sides.as_slice() else { panic!("{name}: {} sides", sides.len()) };
        assert_eq!(left.len(), right.len(), "{name}");
        for (own, hz, other) in [(left, 440.0, right), (right, 1000.0, left)] {
            let (level, leak) = (peak(own, hz), peak(other, hz));
            assert!((20.0 * (level / 8000.0).log10()).abs() < 0.5, "{name}: {level:.0} of 8000 at {hz} Hz");
            assert!(leak < level / 20.0, "{name}: {leak:.0} on the other side at {hz} Hz");
        }
    }
    let mono = decode_call(file("m.wav", &["-ac", "1", "-ar", "8000"]), true).expect("audio");
    assert_eq!((mono.sides.len(), mono.rate_hz), (1, 8000), "nothing is made up");
    let mixed = decode_call(file("s.wav", &[]), false).expect("audio");
    assert_eq!(mixed.sides, [decode(file("s.wav", &[])).expect("audio").pcm.to_vec()]);
}

#[test]
fn garbage_is_a_failure_and_broken_files_are_read_or_refused() {
    let code = |bytes: Vec<u8>| decode(bytes).err().map(|failure| failure.code);
    assert_eq!(code(Vec::new()), Some("audio_not_decoded"));
    assert_eq!(code(b"<html>not found</html>".to_vec()), Some("audio_not_decoded"));
    let mut random = Seed(6).stream("bytes");
    assert_eq!(code((0..100_000).map(|_| random.bits() as u8).collect()), Some("audio_not_decoded"));
    for (name, arguments) in [
        ("a.wav", &[][..]),
        ("a.mp3", &["-c:a", "libmp3lame"]),
        ("a.flac", &["-c:a", "flac"]),
        ("a.ogg", &["-c:a", "libvorbis"]),
        ("a.opus", &["-c:a", "libopus"]),
        ("a.m4a", &["-c:a", "aac"]),
        ("a.aac", &["-c:a", "aac"]),
    ] {
        let whole = file(name, arguments).repeat(2);
        for round in 0..12 {
            let mut broken = whole[..whole.len() - random.index(whole.len() / 2)].to_vec();
            // In the headers, where sizes and counts stand, and anywhere.
            let reach = if round % 2 == 0 { broken.len().min(300) } else { broken.len() };
            for _ in 0..1 + random.index(20) {
                let at = random.index(reach);
                broken[at] = random.bits() as u8;
            }
            if let Ok(sound) = decode(broken) {
                assert!(sound.pcm.len() <= (MAX_SECONDS * RATE_HZ) as usize, "{name}, round {round}");
            }
        }
    }
}

#[test]
fn no_more_is_read_than_the_limit() {
    // Eleven minutes of silence are 16 kB of FLAC: a small file may hold much.
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("long.flac");
    for source in ["anullsrc=r=16000:cl=mono", "anullsrc=r=48000:cl=stereo"] {
        let input = ["-y", "-hide_banner", "-loglevel", "error", "-f", "lavfi", "-i", source, "-t", "660"];
        let done = Command::new("ffmpeg").args(input).arg(&path).status();
        assert!(done.expect("the package ffmpeg is installed").success(), "ffmpeg writes FLAC");
        let sound = decode(std::fs::read(&path).expect("ffmpeg wrote a file")).expect("silence is audio");
        assert_eq!(sound.pcm.len(), (MAX_SECONDS * RATE_HZ) as usize, "{source}");
        let unread = sound.unread.expect("a minute is left out");
        let expect = "600.0 s of the audio file were read, the rest was not: the first 600 s of a file are used";
        assert_eq!((unread.to_string().as_str(), unread.is_limit), (expect, true), "{source}");
    }
}

/// Returns the kinds of files that are compressed, at a rate.
fn kinds(rate_hz: &'static str) -> Vec<(&'static str, Vec<&'static str>)> {
    vec![
        ("a.wav", vec!["-ar", rate_hz]),
        ("a.mp3", vec!["-ar", rate_hz, "-c:a", "libmp3lame", "-b:a", "64k"]),
        ("a.flac", vec!["-ar", rate_hz, "-c:a", "flac"]),
        ("vorbis.ogg", vec!["-ar", rate_hz, "-c:a", "libvorbis"]),
        ("opus.ogg", vec!["-ar", if rate_hz == "44100" { "48000" } else { rate_hz }, "-c:a", "libopus"]),
        ("a.m4a", vec!["-ar", rate_hz, "-c:a", "aac"]),
        ("a.aac", vec!["-ar", rate_hz, "-c:a", "aac"]),
    ]
}

#[test]
fn joined_files_are_read_to_their_end_each_at_its_rate() {
    for (first_hz, second_hz) in [("44100", "44100"), ("16000", "24000"), ("48000", "24000")] {
        for ((name, first), (_, second)) in kinds(first_hz).into_iter().zip(kinds(second_hz)) {
            let (first, second) = (file(name, &first), file(name, &second));
            let name = format!("{name} of {first_hz} and {second_hz} Hz");
            let joined = [&first[..], &second, &first].concat();
            let sound = decode(joined).unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
            let seconds = sound.pcm.len() as f64 / 16_000.0;
            assert!((seconds - 9.0).abs() < 0.3, "{name}: {seconds} s");
            for at in [0, 48_000, 96_000] {
                for hz in [440.0, 1000.0] {
                    let level = peak(&sound.pcm[at..], hz);
                    assert!((20.0 * (level / 4000.0).log10()).abs() < 0.7, "{name}: {level:.0} of 4000 at {hz} Hz");
                }
            }
            assert_eq!(sound.unread, None, "{name}");
        }
    }
}

#[test]
fn channels_may_change_in_the_middle() {
    let (stereo, mono) = (file("s.wav", &[]), file("m.wav", &["-ac", "1", "-ar", "8000"]));
    let why_unread = |audio: CallAudio| audio.unread.map(|unread| unread.why);
    let joined = decode_call([&stereo[..], &mono, &stereo].concat(), true).expect("audio");
    let [left, right] = joined.sides.as_slice() else { panic!("{} sides", joined.sides.len()) };
    assert_eq!((left.len(), right.len(), joined.rate_hz), (144_000, 144_000, 8000));
    assert!(left[48_100..95_900].iter().chain(&right[48_100..95_900]).all(|sample| *sample == 0), "nobody said it");
    assert!(peak(&right[96_000..], 1000.0) > 7500.0, "what follows is where it was");
    assert_eq!(why_unread(joined).as_deref(), Some("3.0 s of it have one channel, not two"));
    let joined = decode_call([&mono[..], &stereo].concat(), true).expect("audio");
    assert_eq!(joined.sides.len(), 1);
    let level = peak(&joined.sides[0][48_000..], 1000.0);
    assert!((level / 4000.0 - 1.0).abs() < 0.1, "{level}");
    assert_eq!(why_unread(joined), None);
}

#[test]
fn what_is_missing_of_a_file_is_told() {
    for (name, arguments) in kinds("24000") {
        // With its index before the sound.
        let front: &[&str] = if name == "a.m4a" { &["-movflags", "+faststart"] } else { &[] };
        let whole = file(name, &[&arguments[..], front].concat());
        let half =
            decode(whole[..whole.len() * 6 / 10].to_vec()).unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
        let seconds = half.pcm.len() as f64 / 16_000.0;
        assert!((0.5..2.4).contains(&seconds), "{name}: {seconds} s");
        if name == "a.aac" {
            // Its frames tell nothing of those that follow.
            continue;
        }
        let unread = half.unread.unwrap_or_else(|| panic!("{name}: nothing is said of the other half"));
        println!("{name}: {unread}");
        assert!(!unread.is_limit && unread.why.contains("the file is not complete"), "{name}: {unread}");
        assert!((unread.read_s - seconds).abs() < 0.001, "{name}: {unread}");
        // A file that was cut off does not take the joined one along.
        if name != "a.m4a" && name != "a.wav" {
            let joined = [&whole[..whole.len() * 6 / 10], &whole].concat();
            let joined = decode(joined).expect("there is audio");
            let both = joined.pcm.len() as f64 / 16_000.0;
            assert!((both - seconds - 3.0).abs() < 0.3, "{name}: {both} s of {seconds} and 3");
            assert!(joined.unread.is_some(), "{name}");
        }
    }
    let whole = file("late.m4a", &["-c:a", "aac"]);
    let why = decode(whole[..whole.len() * 6 / 10].to_vec()).expect_err("there is no index").message;
    let expect = "the file is not complete: its index (moov), which comes last, is missing";
    assert_eq!(why, format!("Audio file could not be decoded: {expect}"));
}

#[test]
fn sizes_in_the_header_of_a_wav_file_are_not_relied_on() {
    let whole = file("a.wav", &["-ar", "16000", "-ac", "1", "-bitexact"]);
    let data = whole.windows(4).position(|four| four == b"data").expect("it has samples");
    let expect = decode(whole.clone()).expect("audio").pcm;
    for (size, missing) in [(0, None), (u32::MAX, None), (0x7fff_f000, None), (300_000, Some("6.4 s"))] {
        let mut bytes = whole.clone();
        bytes[4..8].copy_from_slice(&[0; 4]);
        bytes[data + 4..data + 8].copy_from_slice(&u32::to_le_bytes(size));
        let sound = decode(bytes).expect("audio");
        assert_eq!(sound.pcm, expect, "{size}");
        let why_unread = sound.unread.map(|unread| unread.why);
        assert_eq!(why_unread.is_some(), missing.is_some(), "{size}: {why_unread:?}");
        assert!(why_unread.is_none_or(|why_unread| why_unread.contains(missing.unwrap_or_default())), "{size}");
    }
    let odd = [&whole[..12], b"LIST\x03\0\0\0abc", &whole[12..]].concat();
    assert_eq!(decode(odd).expect("audio").pcm, expect);
}

#[test]
fn broken_parts_are_told_and_what_follows_stays_in_its_place() {
    for (name, arguments) in kinds("24000").into_iter().filter(|(name, _)| !["a.wav", "a.m4a"].contains(name)) {
        let pages: &[&str] = if name.ends_with(".ogg") { &["-page_duration", "100000"] } else { &[] };
        let mut bytes = file(name, &[&arguments[..], pages].concat());
        let (from, to) = (bytes.len() * 5 / 10, bytes.len() * 7 / 10);
        let mut random = Seed(7).stream("bytes");
        bytes[from..to].iter_mut().for_each(|byte| *byte = random.bits() as u8 & 0x7f);
        let sound = decode(bytes).unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
        println!("{name}: {} samples, {:?}", sound.pcm.len(), sound.unread);
        let unread = sound.unread.unwrap_or_else(|| panic!("{name}: a fifth of it is broken"));
        assert!(unread.why.contains("broken") || unread.why.contains("not complete"), "{name}: {unread}");
        // Audio behind the gap is where it was, if positions are stated.
        if !["a.mp3", "a.aac"].contains(&name) {
            assert!(sound.pcm.len().abs_diff(48_000) < 1600, "{name}: {} samples", sound.pcm.len());
        }
    }
}

#[test]
fn other_kinds_of_files_are_named() {
    for (bytes, expect) in [
        (&b"\x1a\x45\xdf\xa3"[..], "a WebM or Matroska file is not read: use WAV, MP3, FLAC, Ogg or MP4"),
        (b"FORM\0\0\0\0AIFF", "an AIFF file is not read: use WAV, MP3, FLAC, Ogg or MP4"),
        (b"{\"error\": 1}", "not a WAV, MP3, FLAC, Ogg or MP4 file"),
    ] {
        let why = decode(bytes.repeat(40)).expect_err("it is no audio").message;
        assert_eq!(why, format!("Audio file could not be decoded: {expect}"));
    }
}

/// Each would take hours where a part of the file is gone through again for each of its parts.
#[test]
fn bytes_made_to_take_long_do_not() {
    let mp3 = file("a.mp3", &["-t", "0.2", "-c:a", "libmp3lame", "-b:a", "32k", "-ar", "16000", "-id3v2_version", "0"]);
    let wav = |rate_hz: u32| ringer_media::clip::write_wav(rate_hz, 1, &[5; 2]);
    for pattern in [
        b"OggS\0".to_vec(),
        b"fLaC\0\0\0\x22".to_vec(),
        [b"RIFF\0\0\0\0WAVEfmt \xff\xff\xff\xff".as_slice(), &[0; 5]].concat(),
        [wav(191_999), wav(191_991)].concat(),
        [&mp3[..mp3.len() / 3], b"ID3\x04\0\0\0\0\0\0"].concat(),
        vec![0xff, 0xfb, 0x10, 0x64, 0],
        vec![0xff, 0xf1, 0x50, 0x80, 0x01, 0x1f, 0xfc],
        b"\0\0\0\x08ftyp".to_vec(),
        file("a.ogg", &["-t", "0.05", "-c:a", "libopus"]),
        file("a.flac", &["-t", "0.01", "-c:a", "flac"]),
    ] {
        let bytes = pattern.repeat((2 << 20) / pattern.len());
        let found = decode(bytes).map(|sound| (sound.pcm.len(), sound.unread));
        println!("{:?}: {found:?}", String::from_utf8_lossy(&pattern[..pattern.len().min(8)]));
        assert!(found.is_err() || found.is_ok_and(|(count, _)| count <= (MAX_SECONDS * RATE_HZ) as usize));
    }
}

/// Returns a page of an Ogg stream (RFC 3533 6) that holds 255 packets without a byte.
fn empty_packets(serial: &[u8], number: u32) -> Vec<u8> {
    let mut page = [b"OggS\0\0", &[0; 8][..], serial, &number.to_le_bytes(), &[0; 4], &[255]].concat();
    page.extend([0; 255]);
    let sum = page.iter().fold(0_u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte) << 24, |sum, _| sum << 1 ^ if sum >> 31 == 1 { 0x04c1_1db7 } else { 0 })
    });
    page[22..26].copy_from_slice(&sum.to_le_bytes());
    page
}

#[test]
fn packets_that_give_no_audio_are_read_up_to_a_limit() {
    let whole = file("mono.opus", &["-c:a", "libopus", "-af", "pan=mono|c0=c0"]);
    let starts: Vec<usize> = (0..whole.len() - 5).filter(|at| whole[*at..].starts_with(b"OggS\0")).collect();
    let (head, body) = whole.split_at(starts[2]);
    for (pages, is_read) in [(10, true), (100, false)] {
        let empty: Vec<u8> = (0..pages).flat_map(|n| empty_packets(&whole[14..18], 2 + n)).collect();
        let read = decode([head, &empty, body].concat());
        let seconds = read.map_or(0.0, |sound| sound.pcm.len() as f64 / 16_000.0);
        assert_eq!(seconds > 2.9, is_read, "{pages} pages: {seconds} s");
    }
}
