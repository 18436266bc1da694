//! Recordings in smaller forms, made of the finished WAV file: FLAC (RFC 9639), which is the same audio, and Ogg Opus
//! (RFC 7845), which sounds the same.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use flacenc::bitsink::ByteSink;
use flacenc::component::BitRepr;
use flacenc::error::{SourceError, Verify};
use flacenc::source::{Fill, Source};
use ogg::{PacketWriteEndInfo, PacketWriter};
use ringer_media::frame::{FRAME, RATE_HZ};
use ringer_media::pcm;
use ringer_media::recording::{Layout, WAV_HEADER};
use ropus::{Application, Bitrate, Channels, Encoder, ForceChannels};

/// Samples of 48 kHz, in which Ogg Opus counts, for one of ours.
const OPUS_SCALE: u64 = 3;
/// Opus bits a second for one channel: no artefact is heard in speech.
const OPUS_BITS: u32 = 40_000;
/// Longest Opus packet of 20 ms.
const OPUS_PACKET_BYTES: usize = 1275 * 2;
/// The one stream of a file.
const OGG_SERIAL: u32 = 1;

/// Channels of a recording that the output contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Track {
    /// The stereo file: the Digital Human, the agent.
    Both,
    /// One channel of it: 0 the Digital Human, 1 the agent.
    Channel(usize),
    /// The mean of both.
    Mix,
    /// The file of the Digital Human before noise, audio quality and loss.
    CallerClean,
}

/// A form other than WAV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// FLAC with 16-bit samples (RFC 9639).
    Flac,
    /// Opus in an Ogg container (RFC 7845).
    Opus,
}

impl Track {
    fn source_channels(self) -> usize {
        let layout = if self == Track::CallerClean { Layout::CallerClean } else { Layout::Stereo };
        usize::from(layout.channels())
    }

    fn channels(self) -> usize {
        if self == Track::Both { 2 } else { 1 }
    }
}

/// Writes the track of the WAV file `from` to `to`, which must not be there.
///
/// # Errors
/// A file that cannot be read or written, or an encoder's refusal.
pub(crate) fn pack(from: &Path, track: Track, packing: Packing, to: &Path) -> io::Result<()> {
    let mut file = File::open(from)?;
    let data = file.metadata()?.len().saturating_sub(WAV_HEADER as u64);
    file.seek(SeekFrom::Start(WAV_HEADER as u64))?;
    let frames = data / (2 * track.source_channels() as u64);
    let samples = Samples { file: BufReader::with_capacity(1 << 16, file), track, left: frames, bytes: Vec::new() };
    let mut to = io::BufWriter::new(File::create_new(to)?);
    match packing {
        Packing::Flac => flac(samples, &mut to)?,
        Packing::Opus => opus(samples, frames, &mut to)?,
    }
    to.flush()
}

/// A track of a file, read in pieces.
struct Samples {
    file: BufReader<File>,
    track: Track,
    /// Samples of each channel that were not read.
    left: u64,
    bytes: Vec<u8>,
}

impl Samples {
    /// Returns the next samples, interleaved, at most `count` of each channel; nothing at the end.
    fn next(&mut self, count: usize) -> io::Result<Vec<i16>> {
        let count = self.left.min(count as u64);
        self.left -= count;
        let frame_bytes = 2 * self.track.source_channels();
        self.bytes.resize(count as usize * frame_bytes, 0);
        self.file.read_exact(&mut self.bytes)?;
        Ok(match self.track {
            Track::Both | Track::CallerClean => pcm::from_bytes(&self.bytes),
            Track::Channel(channel) => pcm::channel(&self.bytes, usize::from(channel == 1), 2),
            Track::Mix => pcm::mean_of_channels(&self.bytes),
        })
    }
}

impl Source for Samples {
    fn channels(&self) -> usize {
        self.track.channels()
    }

    fn bits_per_sample(&self) -> usize {
        16
    }

    fn sample_rate(&self) -> usize {
        RATE_HZ as usize
    }

    fn read_samples<F: Fill>(&mut self, block_size: usize, dest: &mut F) -> Result<usize, SourceError> {
        let samples: Vec<i32> =
            self.next(block_size).map_err(SourceError::from_io_error)?.into_iter().map(i32::from).collect();
        dest.fill_interleaved(&samples)?;
        Ok(samples.len() / self.track.channels())
    }
}

fn flac(samples: Samples, to: &mut impl Write) -> io::Result<()> {
    let config = flacenc::config::Encoder::default().into_verified();
    let config = config.map_err(|(_, error)| io::Error::other(error.to_string()))?;
    let stream = flacenc::encode_with_fixed_block_size(&config, samples, config.block_size);
    let stream = stream.map_err(|error| io::Error::other(error.to_string()))?;
    let mut sink = ByteSink::new();
    stream.write(&mut sink).map_err(|error| io::Error::other(error.to_string()))?;
    to.write_all(sink.as_slice())
}

/// Writes Ogg Opus. `frames`: samples of each channel.
fn opus(mut samples: Samples, frames: u64, to: &mut impl Write) -> io::Result<()> {
    let channels = samples.track.channels();
    let (form, force) =
        if channels == 2 { (Channels::Stereo, ForceChannels::Stereo) } else { (Channels::Mono, ForceChannels::Mono) };
    let mut encoder = Encoder::builder(RATE_HZ, form, Application::Audio)
        .bitrate(Bitrate::Bits(OPUS_BITS * channels as u32))
        .force_channels(force)
        .build()
        .map_err(|error| io::Error::other(error.to_string()))?;
    // At the encoder's own rate.
    let lookahead = u64::from(encoder.lookahead());
    let skipped = lookahead * OPUS_SCALE;
    let mut ogg = PacketWriter::new(to);
    let (head, tags) = (opus_head(channels as u8, skipped as u16), opus_tags(samples.track));
    ogg.write_packet(head, OGG_SERIAL, PacketWriteEndInfo::EndPage, 0)?;
    ogg.write_packet(tags, OGG_SERIAL, PacketWriteEndInfo::EndPage, 0)?;
    let packets = (frames + lookahead).div_ceil(FRAME as u64).max(1);
    for n in 1..=packets {
        let mut pcm = samples.next(FRAME)?;
        pcm.resize(FRAME * channels, 0);
        let mut packet = vec![0; OPUS_PACKET_BYTES];
        let length = encoder.encode(&pcm, &mut packet).map_err(|error| io::Error::other(error.to_string()))?;
        packet.truncate(length);
        // The last position says how much of the last packet belongs to the recording (RFC 7845 4).
        let (end, position) = match n == packets {
            true => (PacketWriteEndInfo::EndStream, skipped + frames * OPUS_SCALE),
            false => (PacketWriteEndInfo::NormalPacket, n * FRAME as u64 * OPUS_SCALE),
        };
        ogg.write_packet(packet, OGG_SERIAL, end, position)?;
    }
    Ok(())
}

/// Returns the identification header of Ogg Opus (RFC 7845 5.1).
fn opus_head(channels: u8, skipped: u16) -> Vec<u8> {
    let mut head = b"OpusHead\x01".to_vec();
    head.push(channels);
    head.extend(skipped.to_le_bytes());
    head.extend(RATE_HZ.to_le_bytes());
    head.extend([0, 0, 0]);
    head
}

/// Returns the comment header of Ogg Opus, which names the channels (RFC 7845 5.2).
fn opus_tags(track: Track) -> Vec<u8> {
    let comment = match track {
        Track::Both => Layout::Stereo.comment(),
        Track::Channel(1) => Layout::Agent.comment(),
        Track::Channel(_) => "channel_0=digital_human",
        Track::Mix => "channel_0=digital_human+agent",
        Track::CallerClean => Layout::CallerClean.comment(),
    };
    let comment = format!("COMMENT={comment}");
    let mut tags = b"OpusTags\x06\0\0\0ringer\x01\0\0\0".to_vec();
    tags.extend((comment.len() as u32).to_le_bytes());
    tags.extend(comment.as_bytes());
    tags
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;
    use std::process::Command;

    use ringer_media::recording::wav_header;

    use super::*;

    const TONES_HZ: [f64; 2] = [440.0, 1000.0];
    const PEAK: f64 = 6000.0;
    /// No multiple of any frame.
    const LENGTH: usize = 50_123;

    /// Returns a different tone on each channel, and noise that no codec can guess in the lowest bits.
    fn sample(n: usize, channel: usize) -> i16 {
        let noise = (n as u32).wrapping_mul(2_654_435_761) >> 29;
        (PEAK * (TAU * TONES_HZ[channel] * n as f64 / 16_000.0).sin()) as i16 + noise as i16
    }

    fn wav(folder: &Path, track: Track) -> std::path::PathBuf {
        let layout = if track == Track::CallerClean { Layout::CallerClean } else { Layout::Stereo };
        let mut bytes = wav_header(layout, LENGTH as u64).to_vec();
        for n in 0..LENGTH {
            (0..track.source_channels()).for_each(|channel| bytes.extend(sample(n, channel).to_le_bytes()));
        }
        let path = folder.join(track.file());
        std::fs::write(&path, bytes).expect("writes");
        path
    }

    /// Decodes a file with ffmpeg to interleaved samples at 16 kHz.
    fn decode(path: &Path) -> Vec<i16> {
        let mut decode = Command::new("ffmpeg");
        decode.args(["-v", "error", "-xerror", "-i"]).arg(path);
        let output =
            decode.args(["-ar", "16000", "-f", "s16le", "-"]).output().expect("the package ffmpeg is installed");
        assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        pcm::from_bytes(&output.stdout)
    }

    fn pack_and_decode(track: Track, packing: Packing) -> Vec<i16> {
        let folder = tempfile::tempdir().expect("a folder");
        let from = wav(folder.path(), track);
        let to = folder.path().join(track.packed_file(packing));
        pack(&from, track, packing, &to).expect("it is packed");
        let [large, small] = [&from, &to].map(|path| path.metadata().expect("a file").len());
        assert!(small < large, "{track:?} {packing:?}: {small} of {large}");
        decode(&to)
    }

    const TRACKS: [Track; 5] = [Track::Both, Track::Channel(0), Track::Channel(1), Track::Mix, Track::CallerClean];

    #[test]
    fn flac_is_the_same_audio() {
        for track in TRACKS {
            let found = pack_and_decode(track, Packing::Flac);
            let expect: Vec<i16> = (0..LENGTH)
                .flat_map(|n| match track {
                    Track::Both => vec![sample(n, 0), sample(n, 1)],
                    Track::Channel(channel) => vec![sample(n, channel)],
                    Track::CallerClean => vec![sample(n, 0)],
                    Track::Mix => vec![((i32::from(sample(n, 0)) + i32::from(sample(n, 1))) / 2) as i16],
                })
                .collect();
            assert_eq!(found.len(), expect.len(), "{track:?}");
            assert!(found == expect, "{track:?} differs");
        }
    }

    /// Returns the amplitude of a tone in a channel.
    fn amplitude(pcm: &[f64], hz: f64) -> f64 {
        let turn = |n: usize| TAU * hz * n as f64 / 16_000.0;
        let (sine, cosine) = pcm
            .iter()
            .enumerate()
            .fold((0.0, 0.0), |(sine, cosine), (n, x)| (sine + x * turn(n).sin(), cosine + x * turn(n).cos()));
        2.0 * f64::hypot(sine, cosine) / pcm.len() as f64
    }

    #[test]
    fn opus_sounds_the_same() {
        for track in TRACKS {
            let found = pack_and_decode(track, Packing::Opus);
            assert_eq!(found.len(), LENGTH * track.channels(), "{track:?}");
            for channel in 0..track.channels() {
                let pcm: Vec<f64> = found
                    .iter()
                    .skip(channel)
                    .step_by(track.channels())
                    .skip(800)
                    .take(48_000)
                    .map(|x| f64::from(*x))
                    .collect();
                let expect = match track {
                    Track::Both if channel == 0 => [PEAK, 0.0],
                    Track::Channel(0) | Track::CallerClean => [PEAK, 0.0],
                    Track::Both | Track::Channel(_) => [0.0, PEAK],
                    Track::Mix => [PEAK / 2.0, PEAK / 2.0],
                };
                for (hz, expect) in TONES_HZ.into_iter().zip(expect) {
                    let found = amplitude(&pcm, hz);
                    println!("{track:?} channel {channel}: {hz} Hz {found:.0} of {expect:.0}");
                    // Within 1 dB; what is not there stays 30 dB below.
                    let right =
                        if expect > 0.0 { (0.891..1.122).contains(&(found / expect)) } else { found < PEAK / 31.6 };
                    assert!(right, "{track:?} channel {channel}: {hz} Hz {found:.0} of {expect:.0}");
                }
            }
        }
    }

    #[test]
    fn a_call_without_audio_is_packed_as_well() {
        let folder = tempfile::tempdir().expect("a folder");
        let from = folder.path().join("recording.wav");
        std::fs::write(&from, wav_header(Layout::Stereo, 0)).expect("writes");
        for packing in [Packing::Flac, Packing::Opus] {
            let to = folder.path().join(Track::Mix.packed_file(packing));
            pack(&from, Track::Mix, packing, &to).expect("it is packed");
            assert_eq!(decode(&to).len(), 0, "{packing:?}");
        }
    }
}
