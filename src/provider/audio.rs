//! Audio files as they come from users and servers: WAV, MP3, AAC, FLAC, Ogg (Vorbis, Opus) and MP4 (AAC) in memory to
//! 16 kHz mono. Joined files are read to the end of the last one. Any bytes are answered with audio or a failure, in
//! memory that follows the limits here and not what a file claims; what of a file is not in the audio is told.

mod joined;
pub mod kind;
mod packets;
mod sink;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ringer_media::clip::wav;

use self::kind::{Kind, Look, look};
use self::sink::Sink;
use super::Failure;

/// Seconds that are read of a file; the rest is left out.
pub const MAX_SECONDS: u32 = 600;

/// Seconds that are read of the recording of a conversation; the rest is left out.
pub const MAX_CALL_SECONDS: u32 = 3600;

/// Missing audio of less than this is not reported: 200 ms. Encoders pad by as much.
const MISSED_S: f64 = 0.2;

/// Returns the first [`MAX_SECONDS`] of an audio file at 16 kHz, its channels averaged. Takes up to some seconds of
/// computing for the largest files: not for async tasks.
///
/// # Errors
/// `audio_not_decoded`: the bytes are no audio, or of a kind that is not read.
pub fn decode(bytes: Vec<u8>) -> Result<Sound, Failure> {
    let CallAudio { mut sides, unread, .. } = read_guarded(bytes, Part { seconds: MAX_SECONDS, sides: 1 })?;
    Ok(Sound { pcm: sides.swap_remove(0).into(), unread })
}

/// Returns the first [`MAX_CALL_SECONDS`] of the recording of a conversation at 16 kHz: one channel, or two of equal
/// length when `two_sides`. Of two sides the first two channels are taken; a file with only one gives only one. As
/// costly as [`decode`].
///
/// # Errors
/// As [`decode`].
pub fn decode_call(bytes: Vec<u8>, two_sides: bool) -> Result<CallAudio, Failure> {
    read_guarded(bytes, Part { seconds: MAX_CALL_SECONDS, sides: if two_sides { 2 } else { 1 } })
}

/// The audio of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Sound {
    /// Samples at 16 kHz, mono.
    pub pcm: Arc<[i16]>,
    /// The part of the file that is not in it, if any.
    pub unread: Option<Unread>,
}

/// The audio of a conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallAudio {
    /// Samples of each side at 16 kHz: one channel with both sides, or one for each.
    pub sides: Vec<Vec<i16>>,
    /// Rate of the file, in Hz, the lowest of joined ones: what is above half of it was never there.
    pub rate_hz: u32,
    /// The part of the file that is not in it, if any.
    pub unread: Option<Unread>,
}

/// Reason why less audio was read than the file has, or had.
#[derive(Clone, Debug, PartialEq)]
pub struct Unread {
    /// Seconds of audio that there are.
    pub read_s: f64,
    /// Explanation in words, for display.
    pub why: String,
    /// True if the file is whole, and only longer than the limit.
    pub is_limit: bool,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} s of the audio file were read, the rest was not: {}", self.read_s, self.why)
    }
}

/// Part of a file to read. With several sides each is a channel; one side is the mean of all channels.
#[derive(Copy, Clone)]
struct Part {
    seconds: u32,
    sides: usize,
}

/// Decoders read bytes of strangers: what one of them did not foresee is a broken file, not the end of a thread.
fn read_guarded(bytes: Vec<u8>, part: Part) -> Result<CallAudio, Failure> {
    let pcm =
        catch_unwind(AssertUnwindSafe(|| read_audio(bytes, part))).unwrap_or(Err("the file is broken".to_owned()));
    match pcm {
        Ok(audio) if audio.sides.first().is_none_or(Vec::is_empty) => Err(failure("the file holds no audio")),
        Ok(audio) => Ok(audio),
        Err(why) => Err(failure(&why)),
    }
}

fn failure(why: &str) -> Failure {
    Failure { code: "audio_not_decoded", message: format!("Audio file could not be decoded: {why}") }
}

fn read_audio(mut bytes: Vec<u8>, part: Part) -> Result<CallAudio, String> {
    let mut sink = Sink::new(part);
    let tag = joined::tag_bytes(&bytes);
    match look(&bytes, true) {
        Look::Is(Kind::Wav) => read_wav(&bytes, &mut sink)?,
        Look::Is(kind @ (Kind::Mp3 | Kind::Aac)) => {
            let frame = if kind == Kind::Mp3 { joined::mpeg } else { joined::adts };
            read_all(&bytes, &joined::frames(&bytes, frame), &mut sink)?;
        }
        Look::Is(Kind::Ogg) => {
            let pieces = joined::ogg(&mut bytes);
            read_all(&bytes, &pieces, &mut sink)?;
        }
        Look::Is(Kind::Flac) => read_all(&bytes[tag..], &joined::flac(&bytes[tag..]), &mut sink)?,
        Look::Is(Kind::Mp4) => {
            let pieces = joined::mp4(&mut bytes)?;
            read_all(&bytes, &pieces, &mut sink)?;
        }
        Look::Is(Kind::Other(name)) => return Err(format!("{name} is not read: use WAV, MP3, FLAC, Ogg or MP4")),
        // Some bytes may stand before the audio.
        Look::Is(Kind::Text(_)) | Look::Unknown | Look::More => {
            read_all(&bytes, &[joined::Piece::whole(&bytes)], &mut sink)?;
        }
    }
    Ok(sink.finish())
}

fn read_wav(bytes: &[u8], sink: &mut Sink) -> Result<(), String> {
    let found = wav::sections(bytes).map_err(|error| error.to_string())?;
    let mut refused = Vec::new();
    for section in &found.sections {
        refused.extend(read_samples(section.format, &bytes[section.bytes.clone()], sink).err());
        if sink.is_full() {
            return Ok(());
        }
    }
    if let (1.., Some(wav::Section { format, .. })) = (found.missing, found.sections.last()) {
        let bytes_a_second = f64::from(format.rate_hz) * format.frame_bytes() as f64;
        sink.cut_off(Some(found.missing as f64 / bytes_a_second));
    }
    if found.unknown > 0 {
        sink.miss(format!("{} bytes behind its sound are of no known kind", found.unknown));
    }
    settle(&refused, found.sections.len(), sink)
}

/// Reads samples of one format.
fn read_samples(format: wav::Format, bytes: &[u8], sink: &mut Sink) -> Result<(), String> {
    let width = format.frame_bytes();
    // A piece at a time: what is not wanted is not converted.
    for piece in bytes.chunks(width << 14) {
        let frames = piece.chunks_exact(width);
        let Some(taken) = sink.admit(format.rate_hz, usize::from(format.channels), frames.len())? else { continue };
        let frames = frames.take(taken);
        match sink.sides() {
            1 => sink.give(0, frames.map(|frame| format.mean(frame))),
            sides => (0..sides).for_each(|n| sink.give(n, frames.clone().map(|frame| format.channel(frame, n)))),
        }
        if sink.is_full() {
            break;
        }
    }
    Ok(())
}

/// Reads joined files. One that cannot be read is told, unless none can be.
fn read_all(bytes: &[u8], pieces: &[joined::Piece], sink: &mut Sink) -> Result<(), String> {
    let mut refused = Vec::new();
    for piece in pieces {
        if let Err(why) = packets::read(bytes, piece, sink) {
            refused.push(why);
        }
        if sink.is_full() {
            break;
        }
    }
    settle(&refused, pieces.len(), sink)
}

/// Tells why some of joined files are not read; an error where none is.
fn settle(refused: &[String], count: usize, sink: &mut Sink) -> Result<(), String> {
    match refused.first() {
        Some(why) if sink.is_empty() => Err(why.clone()),
        Some(why) => {
            sink.miss(format!("{} of {count} joined files could not be decoded: {why}", refused.len()));
            Ok(())
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
