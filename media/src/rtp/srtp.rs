//! Secure RTP and RTCP (RFC 3711) with keys that offer and answer brought (RFC 4568): AES in counter mode with
//! HMAC-SHA1, and AES-GCM (RFC 7714). Packets are protected and opened in place.
//!
//! No clock, no randomness, no allocation after `new`. What cannot be opened is an error and changes nothing: a source
//! exists only once a packet of it was authentic. Not here: key exchange, re-keying (a new key is a new [`Protector`]
//! or [`Opener`]), the master key identifier and key derivation rates, none of which offer and answer of this package
//! agree to.

mod keys;
mod secure;
mod transform;
mod window;

pub use keys::{MasterKey, SrtpParams, Suite};
pub use secure::{MAX_DATAGRAM, Secure};
use transform::Transform;
use window::Window;

use super::packet::header_bytes;

/// Largest number of bytes by which a protected packet is longer: the tag of AES-GCM and the index of a report.
pub const MAX_OVERHEAD: usize = 20;

/// Number of sources that are kept apart: a media room sends each track under one of its own. Beyond them the one
/// silent for longest is forgotten; only the holder of the key can make any.
const SOURCES: usize = 32;

/// Number of bytes of a report that stay clear: first header word and source (RFC 3711 3.4).
const REPORT_CLEAR: usize = 8;

/// Marks a report as encrypted, before its index (RFC 3711 3.4).
const ENCRYPTED: u32 = 1 << 31;

/// Reason why a packet was not opened.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The packet is too short for its kind, or not RTP.
    Malformed,
    /// The packet came already, or is older than the replay window (RFC 3711 3.3.2).
    Replayed,
    /// The packet is not of the owner of the key: tampered with, under another key, or not protected at all.
    Forged,
}

/// Protection of the packets that one side sends: one source.
#[derive(Clone)]
pub struct Protector {
    rtp: Transform,
    rtcp: Transform,
    /// Index of the last packet: rollover counter and sequence number.
    last: Option<u64>,
    reports: u32,
}

impl Protector {
    /// Returns a protector of `suite` with the sender's own key.
    pub fn new(suite: Suite, key: &MasterKey) -> Protector {
        let (rtp, rtcp) = Transform::pair(suite, key);
        Protector { rtp, rtcp, last: None, reports: 0 }
    }

    /// Protects the RTP packet in the first `len` bytes of `buffer`, which has [`MAX_OVERHEAD`] bytes more, and returns
    /// its new length. Sequence numbers must grow as they are sent. Bytes that are no RTP packet are left unchanged.
    pub fn protect(&mut self, buffer: &mut [u8], len: usize) -> usize {
        let Some((clear, sequence, ssrc)) = rtp_parts(&buffer[..len]) else { return len };
        let index = match self.last {
            None => u64::from(sequence),
            Some(last) => last + u64::from(sequence.wrapping_sub(last as u16)),
        };
        self.last = Some(index);
        self.rtp.seal_packet(buffer, clear, len, ssrc, index)
    }

    /// Continues where another protector of the same key has stopped: `last` is the index of its last packet, and fewer
    /// reports than `reports` have left. Thus no index is used twice (RFC 3711 9.1).
    pub fn go_on_from(&mut self, last: Option<u64>, reports: u32) {
        (self.last, self.reports) = (last, reports);
    }

    /// Protects a compound RTCP packet in the first `len` bytes of `buffer`, and returns its new length.
    pub fn protect_report(&mut self, buffer: &mut [u8], len: usize) -> usize {
        let Some(ssrc) = report_source(&buffer[..len]) else { return len };
        // At one report in seconds the 31 bits last for centuries.
        let index = self.reports & !ENCRYPTED;
        self.reports += 1;
        self.rtcp.seal_report(buffer, len, ssrc, index)
    }
}

#[derive(Copy, Clone, Debug, Default)]
struct SrtpSource {
    ssrc: u32,
    /// Moment at which it was last heard, in packets of all sources.
    heard: u64,
    rtp: Window,
    rtcp: Window,
}

/// Sources of one key, and the numbers of their packets that came.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    all: [SrtpSource; SOURCES],
    known: usize,
    packets: u64,
}

impl Sources {
    /// Records an RTP packet that somebody else has opened. Returns false for one that came already, or is older than
    /// the replay window.
    pub fn take(&mut self, packet: &[u8]) -> bool {
        let Some((_, sequence, ssrc)) = rtp_parts(packet) else { return false };
        let window = self.window(ssrc);
        let Some(index) = window.index_of(sequence).filter(|index| window.is_new(*index)) else { return false };
        self.of(ssrc).rtp.accept(index);
        true
    }

    /// Returns the RTP window of a source, which is empty for a new one.
    fn window(&self, ssrc: u32) -> Window {
        self.find(ssrc).map_or(Window::default(), |at| self.all[at].rtp)
    }

    fn find(&self, ssrc: u32) -> Option<usize> {
        self.all[..self.known].iter().position(|source| source.ssrc == ssrc)
    }

    /// Returns the state of a source from which something authentic came just now.
    fn of(&mut self, ssrc: u32) -> &mut SrtpSource {
        self.packets += 1;
        let at = self.find(ssrc).unwrap_or_else(|| {
            let oldest = || (0..SOURCES).min_by_key(|at| self.all[*at].heard).unwrap_or(0);
            let at = if self.known < SOURCES { self.known } else { oldest() };
            self.all[at] = SrtpSource { ssrc, ..SrtpSource::default() };
            self.known = (self.known + 1).min(SOURCES);
            at
        });
        let source = &mut self.all[at];
        source.heard = self.packets;
        source
    }
}

/// Opens packets that the other side protected, of any source under its key.
#[derive(Clone)]
pub struct Opener {
    rtp: Transform,
    rtcp: Transform,
    sources: Sources,
}

impl Opener {
    /// Returns an opener of `suite` with the other side's key.
    pub fn new(suite: Suite, key: &MasterKey) -> Opener {
        Opener::with_sources(suite, key, Sources::default())
    }

    /// Returns the same, for a key of which somebody else has opened packets of `sources`.
    pub fn with_sources(suite: Suite, key: &MasterKey, sources: Sources) -> Opener {
        let (rtp, rtcp) = Transform::pair(suite, key);
        Opener { rtp, rtcp, sources }
    }

    /// Records an RTP packet that somebody else has opened, as [`Sources::take`] does.
    pub fn take(&mut self, packet: &[u8]) -> bool {
        self.sources.take(packet)
    }

    /// Opens an SRTP packet and gives the RTP packet (RFC 3711 3.3). `packet` is unchanged when it is refused.
    pub fn open<'a>(&mut self, packet: &'a mut [u8]) -> Result<&'a [u8], Refused> {
        let (clear, sequence, ssrc) = rtp_parts(packet).ok_or(Refused::Malformed)?;
        let window = self.sources.window(ssrc);
        let index = window.index_of(sequence).filter(|index| window.is_new(*index)).ok_or(Refused::Replayed)?;
        let len = self.rtp.open_packet(packet, clear, ssrc, index)?;
        self.sources.of(ssrc).rtp.accept(index);
        Ok(&packet[..len])
    }

    /// Opens an SRTCP packet and gives the compound RTCP packet (RFC 3711 3.4). One that is not encrypted is refused.
    pub fn open_report<'a>(&mut self, packet: &'a mut [u8]) -> Result<&'a [u8], Refused> {
        let ssrc = report_source(packet).ok_or(Refused::Malformed)?;
        let index = self.rtcp.report_index(packet).ok_or(Refused::Malformed)?;
        if index & ENCRYPTED == 0 {
            return Err(Refused::Forged);
        }
        let index = index & !ENCRYPTED;
        let window = self.sources.find(ssrc).map_or(Window::default(), |at| self.sources.all[at].rtcp);
        if !window.is_new(index.into()) {
            return Err(Refused::Replayed);
        }
        let len = self.rtcp.open_report(packet, ssrc, index)?;
        self.sources.of(ssrc).rtcp.accept(index.into());
        Ok(&packet[..len])
    }
}

/// Returns the number of bytes that stay clear, the sequence number and the source.
fn rtp_parts(packet: &[u8]) -> Option<(usize, u16, u32)> {
    let clear = header_bytes(packet).ok()?;
    let &[_, _, high, low, _, _, _, _, a, b, c, d] = packet.first_chunk()?;
    Some((clear, u16::from_be_bytes([high, low]), u32::from_be_bytes([a, b, c, d])))
}

fn report_source(packet: &[u8]) -> Option<u32> {
    let &[first, _, _, _, a, b, c, d] = packet.first_chunk::<REPORT_CLEAR>()?;
    (first >> 6 == 2).then_some(u32::from_be_bytes([a, b, c, d]))
}

#[cfg(test)]
mod tests;
