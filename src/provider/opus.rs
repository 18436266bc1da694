//! libopus of the system (`libopus.so.0`, version 1.3 or newer), opened at run time: it sounds better than the port to
//! Rust for less time, and allocates nothing within a frame. Where it cannot be used, the port takes its place,
//! and the reason is kept for results and `ringer doctor`.
//!
//! A library is tried before it is used: a second of a tone has to come back from it.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::{NonNull, null};
use std::sync::{Arc, OnceLock};

use libloading::Library as Shared;
use ringer_base::config::{Media, OpusChoice};
use ringer_media::codec::opus::{About, EXPECTED_LOSS, FrameDecoder, FrameEncoder, Library, Opus, RATE_HZ, bitrate};

/// Name of the library where the settings name no file.
const FILE: &str = "libopus.so.0";

/// Package that brings the library.
pub const PACKAGE: &str = "libopus0";

/// Oldest version that is used: the one before lacks the repairs of the decoder in RFC 8251.
const OLDEST: [u32; 2] = [1, 3];

/// Effort, 0 to 10, and bit rate in bits a second. Bits cost less time than effort, so that this sounds better than the
/// port at 1 and 32 kbit/s for less time. Microseconds to encode and decode a frame with FEC, and P.862.2 of speech
/// without losses and with 10 % lost:
///
/// | library | effort | kbit/s | us | P.862.2 |
/// |---|---|---|---|---|
/// | port | 1 | 32 | 69 | 4.01, 3.58 |
/// | 1.3.1 | 1 | 32 | 59 | 3.49, 3.28 |
/// | 1.3.1 | 1 | 48 | 63 | 4.15, 3.93 |
/// | 1.3.1 | 4 | 32 | 122 | 4.03, 3.81 |
/// | 1.6.1 | 1 | 48 | 56 | 4.30, 4.02 |
/// | 1.6.1 | 4 | 40 | 132 | 4.38, 4.11 |
const COMPLEXITY: c_int = 1;
const BITRATE: c_int = 48_000;

/// Numbers of requests, as in `opus_defines.h`.
const APPLICATION_VOIP: c_int = 2048;
const SIGNAL_VOICE: c_int = 3001;
const BANDWIDTH_WIDEBAND: c_int = 1103;
const SET_BITRATE: c_int = 4002;
const SET_BANDWIDTH: c_int = 4008;
const SET_COMPLEXITY: c_int = 4010;
const SET_INBAND_FEC: c_int = 4012;
const SET_PACKET_LOSS_PERC: c_int = 4014;
const SET_SIGNAL: c_int = 4024;

type State = c_void;

/// Returns the Opus that the settings ask for: libopus, or the port with the reason why.
pub fn choose(media: &Media) -> Opus {
    match media.opus {
        OpusChoice::Port => Opus::port(None),
        OpusChoice::Auto | OpusChoice::Libopus => match open(media.opus_library.as_deref()) {
            Ok(opus) => opus,
            Err(why) => {
                if media.opus == OpusChoice::Libopus || media.opus_library.is_some() {
                    tracing::warn!("{why}; Opus is coded by the port in its place");
                }
                Opus::port(Some(why))
            }
        },
    }
}

/// Opens the library of the system, or the one in `file`.
///
/// # Errors
/// A text for a person: why it cannot be used.
pub fn open(file: Option<&Path>) -> Result<Opus, String> {
    // The library of the system is opened once: each opening tries it.
    static SYSTEM: OnceLock<Result<Opus, String>> = OnceLock::new();
    match file {
        None => SYSTEM.get_or_init(|| open_file(Path::new(FILE))).clone(),
        Some(file) => open_file(file),
    }
}

fn open_file(file: &Path) -> Result<Opus, String> {
    let library = Arc::new(Functions::load(file)?);
    let about = About { name: "libopus", version: library.version(file)?, fallback_reason: None };
    let opus = LibOpus { library, about };
    opus.try_it().ok_or_else(|| format!("{} does not code as Opus should", file.display()))?;
    Ok(Opus::of(Arc::new(opus)))
}

/// The C functions in use, valid as long as the library is held.
struct Functions {
    version: unsafe extern "C" fn() -> *const c_char,
    encoder_create: unsafe extern "C" fn(i32, c_int, c_int, *mut c_int) -> *mut State,
    encoder_ctl: unsafe extern "C" fn(*mut State, c_int, ...) -> c_int,
    encode: unsafe extern "C" fn(*mut State, *const i16, c_int, *mut u8, i32) -> i32,
    encoder_destroy: unsafe extern "C" fn(*mut State),
    decoder_create: unsafe extern "C" fn(i32, c_int, *mut c_int) -> *mut State,
    decode: unsafe extern "C" fn(*mut State, *const u8, i32, *mut i16, c_int, c_int) -> c_int,
    decoder_destroy: unsafe extern "C" fn(*mut State),
    _held: Shared,
}

impl Functions {
    fn load(file: &Path) -> Result<Functions, String> {
        // SAFETY: the initialisers of libopus do nothing beyond what any C library's do; another file is named by
        // whoever runs this program.
        let library = unsafe { Shared::new(file) };
        let library = library.map_err(|cause| match file == Path::new(FILE) {
            true => format!("{FILE} cannot be opened: install the package {PACKAGE}"),
            false => format!("{} cannot be opened: {}", file.display(), first_line_of(&cause)),
        })?;
        // SAFETY: the signatures are those of opus.h, which are the same in all versions with the soname 0; the library
        // is held as long as the pointers.
        let loaded = unsafe {
            (|| {
                Ok(Functions {
                    version: *library.get(b"opus_get_version_string\0")?,
                    encoder_create: *library.get(b"opus_encoder_create\0")?,
                    encoder_ctl: *library.get(b"opus_encoder_ctl\0")?,
                    encode: *library.get(b"opus_encode\0")?,
                    encoder_destroy: *library.get(b"opus_encoder_destroy\0")?,
                    decoder_create: *library.get(b"opus_decoder_create\0")?,
                    decode: *library.get(b"opus_decode\0")?,
                    decoder_destroy: *library.get(b"opus_decoder_destroy\0")?,
                    _held: library,
                })
            })()
        };
        loaded
            .map_err(|cause: libloading::Error| format!("{} is no libopus: {}", file.display(), first_line_of(&cause)))
    }

    /// Returns the version, where it is new enough.
    fn version(&self, file: &Path) -> Result<String, String> {
        // SAFETY: the function takes nothing; the returned string is null or static, and is copied here.
        let said = unsafe {
            let said = (self.version)();
            if said.is_null() { String::new() } else { CStr::from_ptr(said).to_string_lossy().into_owned() }
        };
        version_of(&said).map_err(|why| format!("{} {why}", file.display()))
    }
}

/// Returns the words of the system about a library that cannot be used, on one line.
fn first_line_of(error: &libloading::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// Returns the version in `libopus 1.5.2`, or why the library is not used.
fn version_of(said: &str) -> Result<String, String> {
    let Some(version) = said.strip_prefix("libopus ") else {
        return Err(format!("calls itself {said:?}, not libopus"));
    };
    let number = |part: Option<&str>| {
        let digits = part?.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse::<u32>().ok()
    };
    let mut parts = version.split('.');
    let (Some(major), Some(minor)) = (number(parts.next()), number(parts.next())) else {
        return Err(format!("has the version {version:?}, which is no number"));
    };
    let [oldest_major, oldest_minor] = OLDEST;
    if [major, minor] < OLDEST {
        return Err(format!("has version {version}: {oldest_major}.{oldest_minor} or newer is needed"));
    }
    Ok(version.to_owned())
}

/// libopus as a library of calls.
struct LibOpus {
    library: Arc<Functions>,
    about: About,
}

impl LibOpus {
    fn make_encoder(&self) -> Option<Encoder> {
        let mut error = 0;
        // SAFETY: the out pointer is valid for the call.
        let made = unsafe { (self.library.encoder_create)(RATE_HZ, 1, APPLICATION_VOIP, &mut error) };
        let mut encoder = Encoder { library: self.library.clone(), state: NonNull::new(made)? };
        let settings = [
            (SET_BITRATE, BITRATE),
            (SET_COMPLEXITY, COMPLEXITY),
            (SET_SIGNAL, SIGNAL_VOICE),
            // A fixed bandwidth keeps all frames of one configuration, which frames of one packet must share.
            (SET_BANDWIDTH, BANDWIDTH_WIDEBAND),
            (SET_PACKET_LOSS_PERC, EXPECTED_LOSS),
            (SET_INBAND_FEC, 1),
        ];
        settings.into_iter().all(|(what, value)| encoder.set(what, value)).then_some(encoder)
    }

    fn make_decoder(&self) -> Option<Decoder> {
        let mut error = 0;
        // SAFETY: the out pointer is valid for the call.
        let made = unsafe { (self.library.decoder_create)(RATE_HZ, 1, &mut error) };
        Some(Decoder { library: self.library.clone(), state: NonNull::new(made)? })
    }

    /// Sends a second of a tone through encoder and decoder; `None` when it does not come back.
    fn try_it(&self) -> Option<()> {
        const FRAME: usize = 320;
        let (mut encoder, mut decoder) = (self.make_encoder()?, self.make_decoder()?);
        let tone: Vec<i16> = (0..RATE_HZ).map(|at| (8000.0 * (f64::from(at) * 0.17).sin()) as i16).collect();
        let (mut packet, mut heard, mut power) = ([0; 400], [0; FRAME], 0.0);
        for frame in tone.chunks_exact(FRAME) {
            let len = encoder.encode(frame, &mut packet);
            if !(2..=packet.len()).contains(&len) || !decoder.decode(Some(&packet[..len]), &mut heard, false) {
                return None;
            }
            power = heard.iter().map(|&sample| f64::from(sample).powi(2)).sum::<f64>() / FRAME as f64;
        }
        // Within 3 dB of the tone.
        (16e6..64e6).contains(&power).then_some(())
    }
}

impl Library for LibOpus {
    fn about(&self) -> &About {
        &self.about
    }

    fn encoder(&self) -> Option<Box<dyn FrameEncoder>> {
        self.make_encoder().map(|encoder| Box::new(encoder) as Box<dyn FrameEncoder>)
    }

    fn decoder(&self) -> Option<Box<dyn FrameDecoder>> {
        self.make_decoder().map(|decoder| Box::new(decoder) as Box<dyn FrameDecoder>)
    }
}

struct Encoder {
    library: Arc<Functions>,
    state: NonNull<State>,
}

// SAFETY: the state is owned here and used by one thread at a time; libopus has no state of threads.
unsafe impl Send for Encoder {}

impl Encoder {
    fn set(&mut self, what: c_int, value: c_int) -> bool {
        // SAFETY: the state is live, and each setting used here takes one int.
        unsafe { (self.library.encoder_ctl)(self.state.as_ptr(), what, value) == 0 }
    }
}

impl FrameEncoder for Encoder {
    fn set_fec(&mut self, fec: bool) {
        self.set(SET_INBAND_FEC, fec.into());
    }

    fn set_max_bitrate(&mut self, max: Option<u32>) {
        self.set(SET_BITRATE, bitrate(BITRATE, max));
    }

    fn encode(&mut self, pcm: &[i16], out: &mut [u8]) -> usize {
        let (count, space) = (pcm.len() as c_int, out.len() as i32);
        // SAFETY: the state is live, and both slices are valid for their lengths.
        let len = unsafe { (self.library.encode)(self.state.as_ptr(), pcm.as_ptr(), count, out.as_mut_ptr(), space) };
        usize::try_from(len).unwrap_or(0).min(out.len())
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        // SAFETY: the state is owned here and not used again.
        unsafe { (self.library.encoder_destroy)(self.state.as_ptr()) };
    }
}

struct Decoder {
    library: Arc<Functions>,
    state: NonNull<State>,
}

// SAFETY: as for the encoder.
unsafe impl Send for Decoder {}

impl FrameDecoder for Decoder {
    fn decode(&mut self, packet: Option<&[u8]>, out: &mut [i16], fec: bool) -> bool {
        let count = out.len() as c_int;
        let (bytes, len) = packet.map_or((null(), 0), |packet| (packet.as_ptr(), packet.len() as i32));
        // SAFETY: the state is live; the packet is valid for its length, or null, which asks for concealment; `out` has
        // room for `count` samples of one channel.
        let filled =
            unsafe { (self.library.decode)(self.state.as_ptr(), bytes, len, out.as_mut_ptr(), count, fec.into()) };
        filled == count
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        // SAFETY: the state is owned here and not used again.
        unsafe { (self.library.decoder_destroy)(self.state.as_ptr()) };
    }
}

#[cfg(test)]
mod tests;
