//! Compressed audio, a packet at a time.

use std::io::Cursor;

use ringer_media::frame::RATE_HZ;
use symphonia::core::codecs::audio::well_known::CODEC_ID_OPUS;
use symphonia::core::codecs::audio::{AudioDecoder, AudioDecoderOptions};
use symphonia::core::errors::Error;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::{FormatOptions, FormatReader, Track, TrackType};
use symphonia::core::io::{MediaSource, MediaSourceStream, ReadOnlySource};
use symphonia::core::meta::MetadataOptions;
use symphonia::core::packet::Packet;
use symphonia::core::units::{Duration, TimeBase, Timestamp};

use super::MISSED_S;
use super::joined::Piece;
use super::sink::Sink;

/// Broken packets of a file that are passed over.
const MAX_BROKEN: u32 = 1000;

/// Packets of a file that may give no audio: what is cut from the start and end of streams are a few.
const MAX_FRUITLESS: u32 = 20_000;

/// Samples of the longest Opus packet (120 ms) at 16 kHz (RFC 6716 2.1.4).
const OPUS_SAMPLES: usize = RATE_HZ as usize * 120 / 1000;

/// Clock of Opus positions over that of the samples (RFC 7845 4).
const OPUS_TICKS: u64 = 48_000 / RATE_HZ as u64;

/// Longer gaps between packets are no matter of rounding, in seconds.
const GAP_S: f64 = 0.02;
/// Longest gap that is kept, in seconds.
const GAP_MAX_S: f64 = 60.0;
/// Longest packet that silence is put in the place of, in seconds.
const PACKET_MAX_S: f64 = 1.0;

/// Reads one of joined files.
///
/// # Errors
/// It is none, or cannot be decoded.
pub(super) fn read(bytes: &[u8], piece: &Piece, sink: &mut Sink) -> Result<(), String> {
    let begun_s = sink.seconds();
    let cursor = Cursor::new(&bytes[piece.bytes.clone()]);
    // A length that is guessed by the size of the file would cut the audio.
    let source: Box<dyn MediaSource + '_> = match piece.is_plain {
        true => Box::new(ReadOnlySource::new(cursor)),
        false => Box::new(cursor),
    };
    let source = MediaSourceStream::new(source, Default::default());
    let probe = symphonia::default::get_probe();
    let (format, meta) = (FormatOptions::default(), MetadataOptions::default());
    let mut format = probe.probe(&Hint::new(), source, format, meta).map_err(|error| match error {
        Error::IoError(_) if piece.is_cut => "the file is not complete: it ends before its sound begins".to_owned(),
        Error::IoError(_) | Error::Unsupported(_) => "not a WAV, MP3, FLAC, Ogg or MP4 file".to_owned(),
        error => error.to_string(),
    })?;
    let track = format.default_track(TrackType::Audio).ok_or("the file has no audio track")?;
    let params = track.codec_params.as_ref().and_then(|params| params.audio()).ok_or("the codec is not known")?;
    let (id, told_s) = (track.id, if piece.is_plain { None } else { told_s(track) });
    let is_cut = if params.codec == CODEC_ID_OPUS {
        let head = params.extra_data.clone().unwrap_or_default();
        read_opus(&mut *format, id, &head, sink)?
    } else {
        let decoders = symphonia::default::get_codecs();
        let decoder =
            decoders.make_audio_decoder(params, &AudioDecoderOptions::default()).map_err(|e| e.to_string())?;
        read_track(&mut *format, id, decoder, sink)?
    };
    if sink.is_full() {
        return Ok(());
    }
    sink.skipped(piece.skipped_s);
    let missing_s = told_s.map(|told_s| told_s - (sink.seconds() - begun_s)).unwrap_or(0.0).max(piece.missing_s);
    match missing_s > MISSED_S {
        true => sink.cut_off(Some(missing_s)),
        false if piece.is_cut || is_cut => sink.cut_off(None),
        false => {}
    }
    Ok(())
}

/// Returns the seconds that a track has by what its file tells.
fn told_s(track: &Track) -> Option<f64> {
    let base = track.time_base?;
    let ticks = track.duration?.get();
    let told_s = ticks as f64 * f64::from(base.numer.get()) / f64::from(base.denom.get());
    Some(told_s).filter(|told_s| *told_s > 0.0)
}

/// The packets of a track, to their end.
struct Packets<'a> {
    format: &'a mut dyn FormatReader,
    id: u32,
    base: Option<TimeBase>,
    /// Time at which the next packet should begin, once one was decoded.
    due: Option<Timestamp>,
    /// True if the packets end before the file does.
    is_cut: bool,
    /// Number of packets that gave no audio.
    fruitless: u32,
}

impl<'a> Packets<'a> {
    fn new(format: &'a mut dyn FormatReader, id: u32) -> Packets<'a> {
        let base = format.tracks().iter().find(|track| track.id == id).and_then(|track| track.time_base);
        Packets { format, id, base, due: None, is_cut: false, fruitless: 0 }
    }

    /// Returns the next packet. What lies between it and the one before is silence.
    fn next(&mut self, sink: &mut Sink) -> Option<Packet> {
        if sink.is_full() {
            return None;
        }
        if self.fruitless > MAX_FRUITLESS {
            // A small file can hold millions of packets that are decoded for nothing.
            self.is_cut = true;
            return None;
        }
        let packet = loop {
            match self.format.next_packet() {
                Ok(Some(packet)) if packet.track_id == self.id => break packet,
                Ok(Some(_)) => {}
                Ok(None) | Err(Error::IoError(_)) => return None,
                Err(_) => {
                    self.is_cut = true;
                    return None;
                }
            }
        };
        let gap = self.due.and_then(|due| packet.pts.duration_from(due)).map_or(0.0, |gap| self.seconds(gap));
        if gap > GAP_S {
            sink.broken(gap.min(GAP_MAX_S));
        }
        Some(packet)
    }

    /// Takes a decoded packet with this number of frames of audio.
    fn take_packet(&mut self, packet: &Packet, frames: usize) {
        self.due = packet.pts.checked_add(packet.dur);
        self.fruitless += u32::from(frames == 0);
    }

    /// Notes a packet that could not be decoded: it is silence, but before the first that could.
    fn broken(&mut self, packet: &Packet, sink: &mut Sink) {
        if self.due.is_some() {
            sink.broken(self.seconds(packet.dur).min(PACKET_MAX_S));
            self.take_packet(packet, 1);
        }
    }

    fn seconds(&self, ticks: Duration) -> f64 {
        let scale = |base: TimeBase| f64::from(base.numer.get()) / f64::from(base.denom.get());
        ticks.get() as f64 * self.base.map_or(0.0, scale)
    }
}

/// True where the packets end before the file does.
fn read_track(
    format: &mut dyn FormatReader,
    id: u32,
    mut decoder: Box<dyn AudioDecoder>,
    sink: &mut Sink,
) -> Result<bool, String> {
    let (mut packets, mut broken) = (Packets::new(format, id), 0);
    let mut interleaved: Vec<f32> = Vec::new();
    while let Some(packet) = packets.next(sink) {
        let decoded = match decoder.decode(&packet) {
            Ok(decoded) => decoded,
            Err(Error::DecodeError(_) | Error::IoError(_)) if broken < MAX_BROKEN => {
                broken += 1;
                packets.broken(&packet, sink);
                continue;
            }
            Err(_) => return Ok(true),
        };
        let (rate_hz, channels) = (decoded.spec().rate(), decoded.spec().channels().count());
        decoded.copy_to_vec_interleaved(&mut interleaved);
        let frames = interleaved.len() / channels.max(1);
        packets.take_packet(&packet, frames);
        let Some(taken) = sink.admit(rate_hz, channels, frames)? else { continue };
        let sample = |value: f32| (value * 32_768.0).round() as i16;
        let frames = interleaved.chunks_exact(channels.max(1)).take(taken);
        match sink.sides() {
            1 => sink.give(0, frames.map(|frame| sample(frame.iter().sum::<f32>() / channels as f32))),
            sides => (0..sides).for_each(|n| sink.give(n, frames.clone().map(|frame| sample(frame[n])))),
        }
        if sink.is_full() {
            break;
        }
    }
    Ok(packets.is_cut)
}

/// Reads Ogg Opus. `head`: the identification header (RFC 7845 5.1). Returns true if the packets end before the file
/// does.
fn read_opus(format: &mut dyn FormatReader, id: u32, head: &[u8], sink: &mut Sink) -> Result<bool, String> {
    let channels = head.get(9).copied().unwrap_or(1);
    if !(1..=2).contains(&channels) {
        return Err(format!("Opus of {channels} channels is not read: use 1 or 2"));
    }
    let sides = sink.sides_of(usize::from(channels));
    let layout = if sides == 2 { ropus::Channels::Stereo } else { ropus::Channels::Mono };
    let mut decoder = ropus::Decoder::new(RATE_HZ, layout).map_err(|error| error.to_string())?;
    if let Some(&[low, high]) = head.get(16..18) {
        decoder.set_gain(i16::from_le_bytes([low, high]).into()).map_err(|error| error.to_string())?;
    }
    let (mut samples, mut broken) = (vec![0; sides * OPUS_SAMPLES], 0);
    let mut packets = Packets::new(format, id);
    while let Some(packet) = packets.next(sink) {
        if packet.data.is_empty() {
            packets.fruitless += 1;
            continue;
        }
        let Ok(count) = decoder.decode(&packet.data, &mut samples, ropus::DecodeMode::Normal) else {
            broken += 1;
            if broken > MAX_BROKEN {
                return Ok(true);
            }
            packets.broken(&packet, sink);
            continue;
        };
        let trimmed = |ticks: u64| ((ticks / OPUS_TICKS) as usize).min(count);
        let (from, to) = (trimmed(packet.trim_start.get()), count - trimmed(packet.trim_end.get()));
        let decoded = samples.get(from * sides..to * sides).unwrap_or_default();
        packets.take_packet(&packet, decoded.len());
        let Some(taken) = sink.admit(RATE_HZ, sides, decoded.len() / sides)? else { continue };
        let frames = decoded.chunks_exact(sides).take(taken);
        (0..sink.sides()).for_each(|n| sink.give(n, frames.clone().map(|frame| frame[n])));
        if sink.is_full() {
            break;
        }
    }
    Ok(packets.is_cut)
}
