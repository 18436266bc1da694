//! Bytes of a synthesizer on their way to a call. Their format is detected from the bytes themselves: a server may send
//! another kind of audio than requested, or none. Such bytes are never played to an agent.

use ringer_media::clip::wav::Format;
use ringer_media::clip::wav::stream::WavStream;
use ringer_media::frame::RATE_HZ;

use super::SYNTHESIZER;
use super::flow::{Flow, Measured};
use crate::audio::kind::{Kind, Look, look};
use crate::{Failure, audio};

/// Longest file of a kind that is decoded when it is whole: 32 MiB.
const FILE_BYTES_MAX: usize = 32 << 20;
/// Samples by which noise is told.
const NOISE_SAMPLES: usize = 1024;
/// Noise is louder than this share of full scale (RMS), and each sample knows less than this of the next.
const NOISE: (f64, f64) = (0.4, 0.2);
/// Names that servers give to samples without a header, or to nothing in particular.
const PLAIN: [&str; 3] = ["octet-stream", "pcm", "raw"];
/// Names of sound that has a header; all other names of sound are taken for samples without one.
const WITH_HEADER: [&str; 11] = ["mpeg", "mp3", "wav", "wave", "ogg", "opus", "vorbis", "flac", "aac", "mp4", "webm"];

/// Kind of the bytes that come.
enum State {
    /// There is not enough yet to tell.
    Begun(Vec<u8>),
    /// Samples without a header: those that are not passed on yet.
    Plain(Vec<u8>),
    Wav(WavStream),
    /// A file that is decoded when it is whole.
    File(Kind, Vec<u8>),
}

/// One text's speech as it comes from a server.
pub(super) struct Incoming {
    flow: Flow,
    state: State,
    /// Format of samples without a header.
    format: Format,
    /// The server names a kind of sound that has a header; empty where it does not.
    named: String,
    /// Samples without a header that were passed on.
    passed: usize,
}

impl Incoming {
    /// Returns the state before the first byte. `rate_hz` is what was asked for, `kind` the content type, which may be
    /// empty.
    pub(super) fn new(flow: Flow, rate_hz: u32, kind: &str) -> Incoming {
        let kind = kind.to_ascii_lowercase();
        let mut parts = kind.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let value_of =
            |key: &str| parts.clone().find_map(|part| part.strip_prefix(key)?.strip_prefix('=')?.parse().ok());
        let rate_hz = value_of("rate").filter(|rate_hz| (8000..=192_000).contains(rate_hz)).unwrap_or(rate_hz);
        let channels = value_of("channels").filter(|channels| (1..=8).contains(channels)).unwrap_or(1);
        let is_sound = |sound: &str| !WITH_HEADER.contains(&sound.trim_start_matches("x-"));
        let is_plain = name.is_empty()
            || PLAIN.iter().any(|plain| name.ends_with(plain))
            || name.strip_prefix("audio/").is_some_and(is_sound);
        Incoming {
            flow,
            state: State::Begun(Vec::new()),
            format: Format::pcm16(rate_hz, channels as u16),
            named: if is_plain { String::new() } else { name.chars().take(64).collect() },
            passed: 0,
        }
    }

    /// Takes the next bytes. Errors: `synthesizer_failed` where they are no speech.
    pub(super) async fn take(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match &mut self.state {
            State::Begun(held) => {
                held.extend_from_slice(bytes);
                let look = look(held, false);
                self.turn_to(look).await
            }
            State::Plain(held) => {
                held.extend_from_slice(bytes);
                self.pass_plain(false).await
            }
            State::Wav(_) => self.pass_wav(bytes).await,
            State::File(kind, held) => {
                if held.len() + bytes.len() > FILE_BYTES_MAX {
                    let (name, most) = (kind.name(), FILE_BYTES_MAX >> 20);
                    return Err(SYNTHESIZER.general_failure(&format!("sent {name} of more than {most} MiB")));
                }
                held.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Ends the answer: what is left goes out.
    pub(super) async fn finish(mut self) -> Result<Option<Measured>, Failure> {
        if let State::Begun(held) = &self.state {
            let look = look(held, true);
            self.turn_to(look).await?;
        }
        match std::mem::replace(&mut self.state, State::Begun(Vec::new())) {
            State::Begun(_) => {}
            State::Plain(held) => {
                self.state = State::Plain(held);
                self.pass_plain(true).await?;
            }
            State::Wav(stream) => {
                let mut sound = Pieces::default();
                stream.finish(&mut |format, frames| sound.add(format, frames)).map_err(|error| broken(&error))?;
                self.pass(sound).await?;
            }
            State::File(kind, held) => self.pass_file(kind, held).await?,
        }
        self.flow.finish().await
    }

    /// Takes the kind of audio that the first bytes show.
    async fn turn_to(&mut self, look: Look) -> Result<(), Failure> {
        let State::Begun(held) = &mut self.state else { return Ok(()) };
        let held = match look {
            Look::More => return Ok(()),
            _ => std::mem::take(held),
        };
        match look {
            Look::Is(kind @ (Kind::Text(name) | Kind::Other(name))) => {
                let of = if matches!(kind, Kind::Text(_)) { "sound" } else { "sound that is read" };
                return Err(SYNTHESIZER.general_failure(&format!("sent {name} instead of {of}")));
            }
            Look::Is(Kind::Wav) => self.state = State::Wav(WavStream::default()),
            Look::Is(kind) => self.state = State::File(kind, Vec::new()),
            Look::Unknown | Look::More if held.is_empty() || self.named.is_empty() => {
                self.state = State::Plain(Vec::new());
            }
            Look::Unknown | Look::More => {
                return Err(
                    SYNTHESIZER.general_failure(&format!("sent bytes that are not the {} it calls them", self.named))
                );
            }
        }
        Box::pin(self.take(&held)).await
    }

    /// Passes on whole samples, once there are enough of them to tell that they are no noise.
    async fn pass_plain(&mut self, is_end: bool) -> Result<(), Failure> {
        let State::Plain(held) = &mut self.state else { return Ok(()) };
        let width = self.format.frame_bytes();
        if held.len() < width * NOISE_SAMPLES && self.passed == 0 && !is_end {
            return Ok(());
        }
        let count = held.len() - held.len() % width;
        let pcm: Vec<i16> = held[..count].chunks_exact(width).map(|frame| self.format.mean(frame)).collect();
        held.drain(..count);
        if pcm.chunks(NOISE_SAMPLES).any(is_noise) {
            return Err(SYNTHESIZER.general_failure("sent noise: its bytes are not the PCM that was asked for"));
        }
        self.passed += pcm.len();
        self.flow.turn_to(self.format.rate_hz)?;
        self.flow.take(&pcm).await
    }

    async fn pass_wav(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let State::Wav(stream) = &mut self.state else { return Ok(()) };
        let mut sound = Pieces::default();
        stream.push(bytes, &mut |format, frames| sound.add(format, frames)).map_err(|error| broken(&error))?;
        self.pass(sound).await
    }

    async fn pass(&mut self, sound: Pieces) -> Result<(), Failure> {
        for (rate_hz, pcm) in sound.0 {
            self.flow.turn_to(rate_hz)?;
            self.flow.take(&pcm).await?;
        }
        Ok(())
    }

    async fn pass_file(&mut self, kind: Kind, bytes: Vec<u8>) -> Result<(), Failure> {
        let decoded = tokio::task::spawn_blocking(move || audio::decode(bytes)).await;
        let broken =
            |why: &str| SYNTHESIZER.general_failure(&format!("sent {} that could not be used: {why}", kind.name()));
        let sound = decoded.map_err(|_| broken("its decoder failed"))?.map_err(|failure| broken(&failure.message))?;
        if let Some(unread) = sound.unread {
            return Err(broken(&unread.to_string()));
        }
        self.flow.turn_to(RATE_HZ)?;
        self.flow.take(&sound.pcm).await
    }
}

fn broken(error: &ringer_media::clip::ClipError) -> Failure {
    SYNTHESIZER.general_failure(&format!("sent a WAV file that could not be used: {error}"))
}

/// Samples, each stretch with its rate.
#[derive(Default)]
struct Pieces(Vec<(u32, Vec<i16>)>);

impl Pieces {
    fn add(&mut self, format: Format, frames: &[u8]) {
        let pcm = frames.chunks_exact(format.frame_bytes()).map(|frame| format.mean(frame));
        match self.0.last_mut() {
            Some((rate_hz, before)) if *rate_hz == format.rate_hz => before.extend(pcm),
            _ => self.0.push((format.rate_hz, pcm.collect())),
        }
    }
}

/// True for samples that are loud and unrelated to each other. Bytes of a file that are taken for samples are such, and
/// samples that are off by a byte. Speech never is: its loud sounds are voiced.
fn is_noise(pcm: &[i16]) -> bool {
    if pcm.len() < NOISE_SAMPLES / 2 {
        return false;
    }
    let power = pcm.iter().map(|&sample| f64::from(sample).powi(2)).sum::<f64>();
    let next = pcm.windows(2).map(|pair| f64::from(pair[0]) * f64::from(pair[1])).sum::<f64>();
    let level = (power / pcm.len() as f64).sqrt() / 32_768.0;
    level > NOISE.0 && next.abs() < NOISE.1 * power
}
