//! Audio files as they come from users: WAV, MP3, FLAC, Ogg (Vorbis, Opus) and MP4 (AAC) in memory to 16 kHz mono. Any bytes
//! are answered with audio or a failure, in memory that follows the limits here and not what a file claims.

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ringer_media::frame::RATE_HZ;
use ringer_media::resample::ClipResampler;
use symphonia::core::codecs::audio::well_known::CODEC_ID_OPUS;
use symphonia::core::codecs::audio::{AudioDecoder, AudioDecoderOptions};
use symphonia::core::errors::Error;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::{FormatOptions, FormatReader, TrackType};
use symphonia::core::io::MediaSourceStream;
use symphonia::core::meta::MetadataOptions;

use super::Failure;

/// What is read of a file; the rest is left out.
pub const MAX_SECONDS: u32 = 600;

/// Rates that are read, in Hz.
const RATES_HZ: std::ops::RangeInclusive<u32> = 8000..=192_000;

/// Broken packets that are passed over.
const MAX_BROKEN: u32 = 1000;

/// What is read of the recording of a conversation; the rest is left out.
pub const MAX_CALL_SECONDS: u32 = 3600;

/// Samples of the longest Opus packet (120 ms) at 16 kHz (RFC 6716 2.1.4).
const OPUS_SAMPLES: usize = RATE_HZ as usize * 120 / 1000;

/// Clock of Opus positions over that of the samples (RFC 7845 4).
const OPUS_TICKS: u64 = 48_000 / RATE_HZ as u64;

/// The first [`MAX_SECONDS`] of an audio file at 16 kHz, its channels averaged. Takes up to some seconds of computing for the
/// largest files: not for async tasks.
///
/// # Errors
/// `audio_not_decoded`: the bytes are no audio, or of a kind that is not read.
pub fn decode(bytes: Vec<u8>) -> Result<Vec<i16>, Failure> {
    let mixed = Part { seconds: MAX_SECONDS, sides: 1 };
    Ok(guarded(bytes, mixed)?.sides.swap_remove(0))
}

/// The first [`MAX_CALL_SECONDS`] of the recording of a conversation at 16 kHz: one channel, or two of equal length when
/// `two_sides`. Of two sides the first two channels are taken; a file with only one gives only one. As costly as [`decode`].
///
/// # Errors
/// As [`decode`].
pub fn decode_call(bytes: Vec<u8>, two_sides: bool) -> Result<CallAudio, Failure> {
    guarded(bytes, Part { seconds: MAX_CALL_SECONDS, sides: if two_sides { 2 } else { 1 } })
}

/// The audio of a conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallAudio {
    /// At 16 kHz.
    pub sides: Vec<Vec<i16>>,
    /// Rate of the file, in Hz: what is above half of it was never there.
    pub rate_hz: u32,
}

/// How much of a file is wanted: of several sides each is a channel, one side is the mean of all channels.
#[derive(Copy, Clone)]
struct Part {
    seconds: u32,
    sides: usize,
}

/// Decoders read bytes of strangers: what one of them did not foresee is a broken file, not the end of a thread.
fn guarded(bytes: Vec<u8>, part: Part) -> Result<CallAudio, Failure> {
    let pcm = catch_unwind(AssertUnwindSafe(|| read(bytes, part))).unwrap_or(Err("the file is broken".to_owned()));
    match pcm {
        Ok(audio) if audio.sides.first().is_none_or(Vec::is_empty) => Err(failure("the file holds no audio")),
        Ok(audio) => Ok(audio),
        Err(why) => Err(failure(&why)),
    }
}

fn failure(why: &str) -> Failure {
    Failure { code: "audio_not_decoded", message: format!("Audio file could not be decoded: {why}") }
}

fn read(bytes: Vec<u8>, part: Part) -> Result<CallAudio, String> {
    let source = MediaSourceStream::new(Box::new(Cursor::new(bytes)), Default::default());
    let probe = symphonia::default::get_probe();
    let (format, meta) = (FormatOptions::default(), MetadataOptions::default());
    let mut format = probe.probe(&Hint::new(), source, format, meta).map_err(|error| match error {
        Error::IoError(_) | Error::Unsupported(_) => "not a WAV, MP3, FLAC, Ogg or MP4 file".to_owned(),
        error => error.to_string(),
    })?;
    let track = format.default_track(TrackType::Audio).ok_or("the file has no audio track")?;
    let params = track.codec_params.as_ref().and_then(|params| params.audio()).ok_or("the codec is not known")?;
    let id = track.id;
    if params.codec == CODEC_ID_OPUS {
        let head = params.extra_data.clone().unwrap_or_default();
        return read_opus(&mut *format, id, &head, part);
    }
    let decoders = symphonia::default::get_codecs();
    let decoder = decoders.make_audio_decoder(params, &AudioDecoderOptions::default()).map_err(|e| e.to_string())?;
    read_track(&mut *format, id, decoder, part)
}

/// One side of a file, brought to 16 kHz as it is read: a small file may hold hours of silence at a high rate.
struct Side {
    /// `None`: it is at 16 kHz.
    clip: Option<ClipResampler>,
    pcm: Vec<i16>,
}

impl Side {
    fn new(rate_hz: u32) -> Side {
        Side { clip: ClipResampler::new(rate_hz, RATE_HZ).filter(|_| rate_hz != RATE_HZ), pcm: Vec::new() }
    }

    fn push(&mut self, pcm: &[i16]) {
        match &mut self.clip {
            Some(clip) => clip.push(pcm, &mut self.pcm),
            None => self.pcm.extend(pcm),
        }
    }

    fn finish(mut self) -> Vec<i16> {
        if let Some(clip) = self.clip {
            clip.finish(&mut self.pcm);
        }
        self.pcm
    }
}

fn read_track(
    format: &mut dyn FormatReader,
    id: u32,
    mut decoder: Box<dyn AudioDecoder>,
    part: Part,
) -> Result<CallAudio, String> {
    let (mut sides, mut rate_hz, mut left, mut broken) = (Vec::new(), 0, 0, 0);
    let (mut interleaved, mut pcm): (Vec<f32>, Vec<i16>) = Default::default();
    while let Ok(Some(packet)) = format.next_packet() {
        if packet.track_id != id {
            continue;
        }
        let decoded = match decoder.decode(&packet) {
            Ok(decoded) => decoded,
            Err(Error::DecodeError(_) | Error::IoError(_)) if broken < MAX_BROKEN => {
                broken += 1;
                continue;
            }
            Err(_) => break,
        };
        let (rate, channels) = (decoded.spec().rate(), decoded.spec().channels().count());
        if !RATES_HZ.contains(&rate) || channels == 0 {
            return Err(format!("{channels} channels at {rate} Hz are not read: use 8000 to 192000 Hz"));
        }
        let count = part.sides.min(channels);
        if rate_hz == 0 {
            (rate_hz, left) = (rate, part.seconds as usize * rate as usize);
            sides = (0..count).map(|_| Side::new(rate)).collect();
        }
        if rate_hz != rate || sides.len() != count {
            break;
        }
        decoded.copy_to_vec_interleaved(&mut interleaved);
        let taken = left.min(interleaved.len() / channels);
        let sample = |value: f32| (value * 32_768.0).round() as i16;
        for (n, side) in sides.iter_mut().enumerate() {
            let frames = interleaved.chunks_exact(channels).take(taken);
            pcm.clear();
            match count {
                1 => pcm.extend(frames.map(|frame| sample(frame.iter().sum::<f32>() / channels as f32))),
                _ => pcm.extend(frames.map(|frame| sample(frame[n]))),
            }
            side.push(&pcm);
        }
        left -= taken;
        if left == 0 {
            break;
        }
    }
    Ok(CallAudio { sides: sides.into_iter().map(Side::finish).collect(), rate_hz })
}

/// Leaves at most so many samples of each side; true when there is no room for more.
fn cut(pcm: &mut [Vec<i16>], most: usize) -> bool {
    let is_full = pcm.iter().any(|side| side.len() >= most);
    pcm.iter_mut().for_each(|side| side.truncate(most));
    is_full
}

/// `head`: the identification header (RFC 7845 5.1).
fn read_opus(format: &mut dyn FormatReader, id: u32, head: &[u8], part: Part) -> Result<CallAudio, String> {
    let channels = head.get(9).copied().unwrap_or(1);
    if !(1..=2).contains(&channels) {
        return Err(format!("Opus of {channels} channels is not read: use 1 or 2"));
    }
    let sides = part.sides.min(usize::from(channels));
    let layout = if sides == 2 { ropus::Channels::Stereo } else { ropus::Channels::Mono };
    let mut decoder = ropus::Decoder::new(RATE_HZ, layout).map_err(|error| error.to_string())?;
    if let Some(&[low, high]) = head.get(16..18) {
        decoder.set_gain(i16::from_le_bytes([low, high]).into()).map_err(|error| error.to_string())?;
    }
    let (mut pcm, mut room, mut broken) = (vec![Vec::new(); sides], vec![0; sides * OPUS_SAMPLES], 0);
    while let Ok(Some(packet)) = format.next_packet() {
        if packet.track_id != id || packet.data.is_empty() {
            continue;
        }
        let Ok(count) = decoder.decode(&packet.data, &mut room, ropus::DecodeMode::Normal) else {
            broken += 1;
            if broken > MAX_BROKEN {
                break;
            }
            continue;
        };
        let trimmed = |ticks: u64| ((ticks / OPUS_TICKS) as usize).min(count);
        let (from, to) = (trimmed(packet.trim_start.get()), count - trimmed(packet.trim_end.get()));
        for (n, side) in pcm.iter_mut().enumerate() {
            let frames = room.get(from * sides..to * sides).unwrap_or_default().chunks_exact(sides);
            side.extend(frames.map(|frame| frame[n]));
        }
        if cut(&mut pcm, part.seconds as usize * RATE_HZ as usize) {
            break;
        }
    }
    Ok(CallAudio { sides: pcm, rate_hz: RATE_HZ })
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;
    use std::process::Command;

    use ringer_media::seed::Seed;

    use super::*;

    /// Three seconds of 440 Hz on the left and 1000 Hz on the right, each at a peak of 8000, as ffmpeg writes them.
    fn file(name: &str, arguments: &[&str]) -> Vec<u8> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        let tones = "aevalsrc=0.24414*sin(440*2*PI*t)|0.24414*sin(1000*2*PI*t):s=44100:d=3";
        let input = ["-hide_banner", "-loglevel", "error", "-f", "lavfi", "-i", tones];
        let done = Command::new("ffmpeg").args(input).args(arguments).arg(&path).status();
        assert!(done.expect("the package ffmpeg is installed").success(), "ffmpeg writes {name}");
        std::fs::read(&path).expect("ffmpeg wrote a file")
    }

    /// Peak of a tone in the middle second.
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
        ] {
            let pcm = decode(file(name, arguments)).unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
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
        assert_eq!(mixed.sides, [decode(file("s.wav", &[])).expect("audio")]);
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
        ] {
            let whole = file(name, arguments);
            for round in 0..12 {
                let mut broken = whole[..whole.len() - random.index(whole.len() / 2)].to_vec();
                // In the headers, where sizes and counts stand, and anywhere.
                let reach = if round % 2 == 0 { broken.len().min(300) } else { broken.len() };
                for _ in 0..1 + random.index(20) {
                    let at = random.index(reach);
                    broken[at] = random.bits() as u8;
                }
                if let Ok(pcm) = decode(broken) {
                    assert!(pcm.len() <= (MAX_SECONDS * RATE_HZ) as usize, "{name}, round {round}");
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
            let pcm = decode(std::fs::read(&path).expect("ffmpeg wrote a file")).expect("silence is audio");
            assert_eq!(pcm.len(), (MAX_SECONDS * RATE_HZ) as usize, "{source}");
        }
    }
}
