//! Media over RTP: 16 kHz frames in, RTP packets out; RTP packets in, 16 kHz frames with positions out; telephone
//! events and reports beside them.
//!
//! At every 20 ms tick the owner calls [`RtpLeg::send`] (or [`RtpLeg::skip`]) and then [`RtpLeg::packet`] until there
//! is none, then [`RtpLeg::listen`]; packets go in with [`RtpLeg::receive`] whenever they arrive. After `new` nothing
//! allocates, but for the codec Opus, new keys, and an agreement that changes the codec or the packets.
//!
//! Positions count samples of 16 kHz from the origin. A received packet's audio begins at the moment at which the
//! packet would have arrived had it been as little delayed as the least delayed ones; neither the network's jitter nor
//! the jitter buffer counts.

mod ears;

use self::ears::Ears;
use super::{HeardFrame, HeardKind, LegFigures, NARROW, Passed, Scratch};
use crate::codec::opus::Opus;
use crate::codec::{Codec, Encoder};
use crate::frame::Frame;
use crate::resample::Down2;
use crate::rtp::events::EventReceiver;
use crate::rtp::jitter::{Content, MAX_PAYLOAD, span};
use crate::rtp::packet::{EventPayload, HEADER, Malformed, Packet, is_rtcp};
use crate::rtp::packetize::{Packed, Packetizer};
use crate::rtp::playout::{Played, Playout};
use crate::rtp::rtcp::{self, Reporter, SenderInfo};
use crate::rtp::session::{Due, EventPacket, Sender};
use crate::rtp::srtp::{self, MAX_DATAGRAM, MAX_OVERHEAD, Secure, SrtpParams};
use crate::rtp::unheard::Tally;
use crate::seed::Seed;
use crate::time::Time;

pub use crate::rtp::events::ReceivedDigit;
pub use crate::rtp::source::Refused;
pub use crate::rtp::unheard::Unheard;

/// Bytes of the longest packet that a leg makes.
pub const MAX_PACKET: usize = HEADER + MAX_PAYLOAD + MAX_OVERHEAD;

/// Static payload type of comfort noise (RFC 3389 4).
const COMFORT_NOISE: u8 = 13;

/// Frames of silence that are passed over in one tick: a timestamp that jumps by hours must not hold up the tick.
const MOST_SILENCE: usize = 50;

/// Parameters of RTP media, as offer and answer have settled them (RFC 3264).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct MediaParams {
    /// Codec in both directions.
    pub codec: Codec,
    /// RTP payload type to send, which the other side announced (RFC 3264 5.1).
    pub payload_type: u8,
    /// RTP payload type that is received, which this side announced.
    pub receive_payload_type: u8,
    /// Payload type of telephone events to send, when negotiated.
    pub event_payload_type: Option<u8>,
    /// Payload type of telephone events that are received.
    pub receive_event_payload_type: Option<u8>,
    /// Clock in which durations of telephone events are counted: the codec's RTP clock, or 8000 where the other side
    /// has `telephone-event/8000` alone. Timestamps of events run on the audio's clock, as one source has one clock
    /// (RFC 4733 2.1, RFC 3550 5.1).
    pub event_clock_hz: u32,
    /// Milliseconds of audio in a sent packet: 10, 20, 30, 40, 50 or 60. Received ones may have any length up to 200
    /// (Opus: 120).
    pub ptime_ms: u8,
    /// True while the other side wants to receive. When false, no RTP is sent (RFC 3264 5.1, 6.1, 8.4); reports are.
    pub may_send: bool,
    /// True while the other side sends. When false, nothing is missing when no RTP comes.
    pub may_receive: bool,
    /// True when the other side uses forward error correction within the codec (Opus).
    pub fec: bool,
    /// Highest bit rate of Opus that the other side takes, in bits a second (`maxaveragebitrate`, RFC 7587 6.1).
    pub max_bitrate: Option<u32>,
    /// Suite and keys when both directions are secure RTP; `None`: plain RTP, or keys that a handshake brings later.
    pub srtp: Option<SrtpParams>,
    /// Source of the keys.
    pub key_source: KeySource,
}

/// Source of the keys of secure RTP.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum KeySource {
    /// The session description brings the keys, or there are none.
    #[default]
    Description,
    /// A handshake brings them, on the port that RTP and reports share (RFC 5764, RFC 5761). Until it is done nothing
    /// is sent or received.
    Handshake,
    /// Two handshakes bring them, one on the port of RTP and one on that of the reports (RFC 5764 4).
    HandshakeEach,
}

impl MediaParams {
    /// True when a handshake brings the keys.
    pub fn awaits_keys(&self) -> bool {
        self.key_source != KeySource::Description
    }

    fn is_secure(&self) -> bool {
        self.srtp.is_some() || self.awaits_keys()
    }

    /// Returns parameters of 20 ms packets of `codec` with the payload types under which this side offers them,
    /// telephone events, and forward error correction; plain RTP.
    pub fn new(codec: Codec) -> MediaParams {
        MediaParams {
            codec,
            payload_type: codec.payload_type(),
            receive_payload_type: codec.payload_type(),
            event_payload_type: Some(codec.event_payload_type()),
            receive_event_payload_type: Some(codec.event_payload_type()),
            event_clock_hz: codec.rtp_clock_hz(),
            ptime_ms: 20,
            may_send: true,
            may_receive: true,
            fec: true,
            max_bitrate: None,
            srtp: None,
            key_source: KeySource::Description,
        }
    }
}

/// Result of taking a datagram.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Received {
    /// Audio that will be played.
    Audio,
    /// The sender falls silent (RFC 3389).
    Comfort,
    /// Part of a telephone event.
    Event,
    /// A report on the media port (RFC 5761).
    Report,
    /// A datagram that has nothing for this leg.
    Ignored(Ignored),
}

/// Reason for which a datagram was ignored.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Ignored {
    /// The datagram is no RTP packet.
    Malformed(Malformed),
    /// A payload type that was not negotiated, or a payload that cannot be one of it.
    Payload,
    /// An RTP packet that is a duplicate, too late, or of another source.
    Refused(Refused),
    /// A datagram that is not secure RTP of the other side's key, or is a copy of one.
    Unprotected(srtp::Refused),
    /// A datagram that came before the handshake had brought its key.
    BeforeKeys,
}

/// Both directions of one side's media over RTP.
pub struct RtpLeg {
    params: MediaParams,
    sender: Sender,
    encoder: Encoder,
    packets: Packetizer,
    event: Option<EventPacket>,
    /// Space for the longest packet.
    out: Box<[u8]>,
    secure: Option<Box<Secure>>,
    /// Number of datagrams that came before the keys.
    before_keys: u64,
    sent_at: Time,
    reported: u32,
    playout: Playout,
    events: EventReceiver,
    reporter: Reporter,
    down: Down2,
    ears: Ears,
    unheard: Tally,
    last_arrival: Option<Time>,
    depth_ms: f64,
}

impl RtpLeg {
    /// Returns a leg whose source, numbers and report times are drawn from `seed`; position 0 is `origin`. Opus is
    /// coded by the port in Rust.
    pub fn new(params: MediaParams, seed: Seed, origin: Time) -> RtpLeg {
        RtpLeg::with_opus(params, &Opus::default(), seed, origin)
    }

    /// Returns the same leg with the library for Opus.
    pub fn with_opus(params: MediaParams, opus: &Opus, seed: Seed, origin: Time) -> RtpLeg {
        let clock_hz = params.codec.rtp_clock_hz();
        let mut encoder = Encoder::with(params.codec, opus);
        encoder.set_fec(params.fec);
        encoder.set_max_bitrate(params.max_bitrate);
        let mut sender = Sender::new(clock_hz, &mut seed.stream("rtp"));
        if params.is_secure() {
            sender.begin_low();
        }
        sender.set_event_clock(params.event_clock_hz);
        let mut events = EventReceiver::new(clock_hz);
        events.set_event_clock(params.event_clock_hz);
        let packets = Packetizer::new(params.codec, params.ptime_ms);
        RtpLeg {
            params,
            sender,
            encoder,
            out: packet_space(&packets),
            packets,
            event: None,
            secure: params.srtp.as_ref().map(|keys| Box::new(Secure::new(keys))),
            before_keys: 0,
            sent_at: origin,
            reported: 0,
            playout: Playout::new(params.codec, opus, origin),
            events,
            reporter: Reporter::new(seed.stream("rtcp")),
            down: Down2::new(),
            ears: Ears::new(params.codec),
            unheard: Tally::default(),
            last_arrival: None,
            depth_ms: 0.0,
        }
    }

    /// Makes `origin` position 0 from now on: early media becomes the connected call.
    pub fn set_origin(&mut self, origin: Time) {
        self.playout.set_origin(origin);
    }

    /// Takes a new agreement (RFC 3264 8): codec, payload types, packet length, direction, keys. False without
    /// any change when the codec has another RTP clock or bit rate, or encryption begins or ends.
    pub fn renegotiate(&mut self, mut params: MediaParams) -> bool {
        let old = self.params;
        if !is_alike(params.codec, old.codec) || params.is_secure() != old.is_secure() {
            return false;
        }
        if params.codec != old.codec {
            self.change_codec(&params);
        }
        if params.awaits_keys() {
            // Until a handshake brings others, the keys stay.
            params.srtp = old.srtp;
        }
        if params.ptime_ms != old.ptime_ms || !params.may_send {
            self.packets = Packetizer::new(params.codec, params.ptime_ms);
        }
        if self.out.len() < longest_packet(&self.packets) {
            self.out = packet_space(&self.packets);
        }
        self.encoder.set_fec(params.fec);
        self.encoder.set_max_bitrate(params.max_bitrate);
        self.sender.set_event_clock(params.event_clock_hz);
        self.events.set_event_clock(params.event_clock_hz);
        if !params.may_send {
            self.sender.drop_event();
            self.event = None;
        }
        if let Some(new) = &params.srtp {
            self.take_keys(new);
        }
        self.params = params;
        true
    }

    /// Encodes and decodes by another codec from now on: G.711 and G.722 share clock and bit rate.
    fn change_codec(&mut self, params: &MediaParams) {
        self.encoder = Encoder::new(params.codec);
        self.packets = Packetizer::new(params.codec, params.ptime_ms);
        self.playout.change_codec(params.codec);
        (self.ears, self.down) = (Ears::new(params.codec), Down2::new());
    }

    /// Takes the keys that a handshake on the port of RTP has brought.
    pub fn take_keys(&mut self, new: &SrtpParams) {
        match (&mut self.secure, &self.params.srtp) {
            (Some(secure), Some(old)) => secure.renew(old, new),
            (secure, _) => *secure = Some(Box::new(Secure::new(new))),
        }
        self.params.srtp = Some(*new);
    }

    /// Takes the keys that a handshake on the port of the reports has brought; without keys of RTP they are of
    /// no use.
    pub fn take_report_keys(&mut self, new: &SrtpParams) {
        if let Some(secure) = &mut self.secure {
            secure.set_report_keys(new);
        }
    }

    /// True while a handshake is to bring the keys of RTP.
    fn waits_for_keys(&self) -> bool {
        self.params.awaits_keys() && self.secure.is_none()
    }

    /// True while a handshake is to bring the keys of reports.
    fn reports_wait_for_keys(&self) -> bool {
        let own = self.secure.as_ref().is_some_and(|secure| secure.has_report_keys());
        self.waits_for_keys() || (self.params.key_source == KeySource::HandshakeEach && !own)
    }

    /// Returns the parameters in force.
    pub fn params(&self) -> &MediaParams {
        &self.params
    }

    /// Returns the length of the longest datagram that this leg makes, reports included, in bytes; at most
    /// [`MAX_PACKET`].
    pub fn longest_packet(&self) -> usize {
        longest_packet(&self.packets)
    }

    /// Sends `pcm` in this tick, or the telephone event that runs in its place. [`RtpLeg::packet`] gives the packets;
    /// there are none while the other side does not want to receive.
    pub fn send(&mut self, now: Time, pcm: &Frame) {
        self.sent_at = now;
        if !self.params.may_send || self.waits_for_keys() {
            return self.sender.skip();
        }
        match self.sender.tick() {
            Due::Event(event) => {
                self.packets.cut_short();
                self.event = Some(event);
            }
            Due::Audio(timestamp) => {
                let frame = self.packets.frame(timestamp);
                if frame.len() == NARROW {
                    self.down.process(pcm, frame);
                } else {
                    frame.copy_from_slice(pcm);
                }
            }
        }
    }

    /// Returns the next packet to send; to be called until `None` after each [`RtpLeg::send`]. Packets of 20 ms come
    /// one a tick, others as they are full. At the end of an event its repetitions follow (at most 4).
    pub fn packet(&mut self) -> Option<&[u8]> {
        let (head, body) = self.out.split_first_chunk_mut().expect("the buffer is longer than a header");
        if let Some(Packed { timestamp, units, pcm }) = self.packets.packet() {
            let len = self.encoder.encode(pcm, body);
            self.sender.audio(self.params.payload_type, timestamp, units, len).write(head);
            return Some(self.outgoing(HEADER + len));
        }
        let event = self.event.take()?;
        self.sender.event(self.params.event_payload_type?, &event).write(head);
        let payload = event.payload.bytes();
        body[..payload.len()].copy_from_slice(&payload);
        Some(self.outgoing(HEADER + payload.len()))
    }

    /// Records a tick in which nothing is sent.
    pub fn skip(&mut self) {
        self.packets.cut_short();
        self.sender.skip();
    }

    /// Sends `digit` as a telephone event from the next tick on, or up to two ticks later while the end of the one
    /// before is repeated. It lasts at most 8 s (1.3 s with events on the clock of Opus). False when events were not
    /// negotiated, `digit` is none, another event still runs, or the other side does not want to receive. Nothing is
    /// sent then.
    pub fn start_event(&mut self, digit: char, duration_ms: u32) -> bool {
        let has_events = self.params.event_payload_type.is_some() && self.params.may_send && !self.waits_for_keys();
        has_events && self.sender.start_event(digit, duration_ms)
    }

    /// True while a telephone event takes the place of audio.
    pub fn sending_event(&self) -> bool {
        self.sender.sending_event()
    }

    /// Takes a datagram of the RTP socket.
    pub fn receive(&mut self, arrived: Time, bytes: &[u8]) -> Received {
        if is_rtcp(bytes) {
            self.receive_report(arrived, bytes);
            return Received::Report;
        }
        if self.waits_for_keys() {
            self.before_keys += 1;
            return Received::Ignored(Ignored::BeforeKeys);
        }
        let Some(secure) = &mut self.secure else { return self.receive_plain(arrived, bytes) };
        match secure.open(bytes, &mut [0; MAX_DATAGRAM]) {
            Ok(plain) => self.receive_plain(arrived, plain),
            Err(why) => {
                self.unheard.refuse(arrived, why);
                Received::Ignored(Ignored::Unprotected(why))
            }
        }
    }

    fn receive_plain(&mut self, arrived: Time, bytes: &[u8]) -> Received {
        let packet = match Packet::parse(bytes) {
            Ok(packet) => packet,
            Err(why) => {
                self.unheard.count(arrived, Unheard::Malformed);
                return Received::Ignored(Ignored::Malformed(why));
            }
        };
        let kind = packet.header.payload_type;
        let is_event = self.is_event(kind);
        let event = EventPayload::parse(packet.payload).filter(|_| is_event);
        let is_audio = kind == self.params.receive_payload_type;
        let (content, received) = if event.is_some() {
            (Content::Other, Received::Event)
        } else if kind == COMFORT_NOISE {
            (Content::Comfort, Received::Comfort)
        } else if is_audio && span(self.params.codec, packet.payload).is_some() {
            (Content::Audio(packet.payload), Received::Audio)
        } else {
            (Content::Other, Received::Ignored(Ignored::Payload))
        };
        let changes = self.playout.jitter().source().changes();
        let refused = self.playout.jitter_mut().insert(arrived, &packet.header, content).err();
        if self.playout.jitter().source().changes() != changes {
            self.unheard.believe(packet.header.ssrc);
            self.events.believe(&self.playout, arrived, &packet.header);
        }
        if refused == Some(Refused::Foreign) {
            self.unheard.count(arrived, Unheard::Source(packet.header.ssrc));
            event.into_iter().for_each(|event| self.events.hold(arrived, &packet.header, event));
        } else {
            self.last_arrival = self.last_arrival.max(Some(arrived));
        }
        match (refused, event) {
            (None | Some(Refused::Late), Some(event)) => {
                self.events.hear(&self.playout, arrived, &packet.header, event);
            }
            (Some(why), _) => return Received::Ignored(Ignored::Refused(why)),
            (None, None) if received == Received::Ignored(Ignored::Payload) => {
                self.unheard.count(arrived, Unheard::payload(kind, is_audio || is_event, packet.payload.len()));
            }
            (None, None) => {}
        }
        received
    }

    /// True for the payload type of telephone events: the one that this side announced, and the other side's own, which
    /// some senders use.
    fn is_event(&self, kind: u8) -> bool {
        let MediaParams { receive_event_payload_type, event_payload_type, receive_payload_type, .. } = self.params;
        Some(kind) == receive_event_payload_type || (Some(kind) == event_payload_type && kind != receive_payload_type)
    }

    /// Returns a kind of packets that is not heard and came for the first time; each kind once.
    pub fn unheard(&mut self, now: Time) -> Option<Unheard> {
        self.unheard.news(now)
    }

    /// Returns the next 20 ms of received audio, written into `scratch`.
    pub fn listen<'a>(&mut self, now: Time, scratch: &'a mut Scratch) -> HeardFrame<'a> {
        self.events.expire(now);
        let samples = self.ears.samples();
        self.depth_ms = self.playout.depth_ms(now);
        let mut played = self.ears.decode(scratch, |pcm| self.playout.frame(now, pcm));
        let mut moved = played.moved;
        for _ in 0..MOST_SILENCE {
            if played.kind != HeardKind::Silence || !self.playout.may_catch_up(now, samples) {
                break;
            }
            played = self.ears.decode(scratch, |pcm| self.playout.frame(now, pcm));
            moved += played.moved;
        }
        let mut passed = None;
        if played.kind != HeardKind::Stretched && self.playout.may_catch_up(now, samples) {
            scratch.before = scratch.wide;
            let before = played;
            played = self.ears.decode(scratch, |pcm| self.playout.frame(now, pcm));
            moved += played.moved;
            passed = Some((before.position - played.moved, before.kind));
        }
        let passed = passed.map(|(position, kind)| Passed { position, kind, pcm: &scratch.before });
        let Played { position, kind, .. } = played;
        HeardFrame { position, kind, pcm: &scratch.wide, narrow: &scratch.narrow, passed, moved }
    }

    /// Returns the next digit that came as a telephone event and is over.
    pub fn digit(&mut self) -> Option<ReceivedDigit> {
        self.events.digit()
    }

    /// Returns the report that is due at `now`; `ntp_now` is the wallclock (NTP format, 32.32).
    pub fn report(&mut self, now: Time, ntp_now: u64) -> Option<&[u8]> {
        let is_due = !self.reports_wait_for_keys() && self.reporter.is_due(now);
        if is_due { Some(self.write_report(now, ntp_now, false)) } else { None }
    }

    /// Returns the last report, which says BYE. `None` where nothing was ever sent: a side that never joined cannot
    /// leave (RFC 3550 6.3.7).
    pub fn goodbye(&mut self, now: Time, ntp_now: u64) -> Option<&[u8]> {
        (self.sender.counts().1 > 0 && !self.reports_wait_for_keys()).then(|| self.write_report(now, ntp_now, true))
    }

    /// Takes a datagram of the RTCP socket.
    pub fn receive_report(&mut self, arrived: Time, bytes: &[u8]) {
        if self.reports_wait_for_keys() {
            self.before_keys += 1;
            return;
        }
        let mut buffer = [0; MAX_DATAGRAM];
        let opened = match &mut self.secure {
            Some(secure) => secure.open_report(bytes, &mut buffer),
            None => Ok(bytes),
        };
        if let Ok(plain) = opened {
            self.reporter.receive(arrived, plain, self.sender.ssrc());
        }
    }

    /// Returns the time at which RTP or a report last came from the other side.
    pub fn last_sign(&self) -> Option<Time> {
        self.last_arrival.max(self.reporter.last())
    }

    /// Number of packets that came and were dropped, because too many came at once.
    pub fn overflow_count(&self) -> u64 {
        self.playout.jitter().overflow_count()
    }

    /// Milliseconds of audio that were concealed because their packets were lost or late.
    pub fn concealed_ms(&self) -> u64 {
        self.playout.jitter().concealed_ticks() / 8
    }

    /// Returns the figures up to now.
    pub fn figures(&self) -> LegFigures {
        let jitter = self.playout.jitter();
        let source = jitter.source();
        LegFigures {
            sent: u64::from(self.sender.counts().1),
            received: source.received_count(),
            lost: source.lost_count(),
            late: jitter.late(),
            duplicates: source.duplicates(),
            foreign: source.foreign(),
            source_changes: source.changes(),
            unknown_payload_type: self.unheard.payload_types(),
            wrong_length: self.unheard.lengths(),
            malformed: self.unheard.malformed_datagrams(),
            forged: self.secure.as_ref().map_or(0, |secure| secure.forged_count()),
            replayed: self.secure.as_ref().map_or(0, |secure| secure.replayed_count()),
            before_keys: self.before_keys,
            concealed_ms: self.concealed_ms(),
            jitter_ms: jitter.timing().jitter_ns() / 1e6,
            depth_ms: self.depth_ms,
            last_arrival: self.last_arrival,
            last_report: self.reporter.last(),
            round_trip_ms: self.reporter.round_trip_ms(),
            remote_fraction_lost: self.reporter.remote_fraction_lost(),
        }
    }

    /// Returns the packet of `len` bytes in the form in which it is sent.
    fn outgoing(&mut self, len: usize) -> &[u8] {
        let len = self.secure.as_mut().map_or(len, |secure| secure.protect(&mut self.out, len));
        &self.out[..len]
    }

    fn write_report(&mut self, now: Time, ntp_now: u64, leaving: bool) -> &[u8] {
        let (next, packets, octets) = self.sender.counts();
        let clock_hz = self.params.codec.rtp_clock_hz();
        let since = (now.since(self.sent_at).as_nanos() * u128::from(clock_hz) / 1_000_000_000) as u32;
        let timestamp = next.wrapping_sub(clock_hz / 50).wrapping_add(since);
        let sent = (packets != self.reported).then_some(SenderInfo { ntp: ntp_now, timestamp, packets, octets });
        self.reported = packets;
        let jitter = self.playout.jitter_mut();
        let units = (jitter.timing().jitter_ns() * f64::from(clock_hz) / 1e9) as u32;
        let received = jitter.source_mut().reception().map(|reception| (reception, units));
        let plain = self.reporter.write(now, ntp_now, self.sender.ssrc(), sent, received, leaving);
        match &mut self.secure {
            Some(secure) => secure.protect_report(plain),
            None => plain,
        }
    }
}

/// Returns the length of the longest datagram that a leg makes of `packets`, reports included, in bytes.
fn longest_packet(packets: &Packetizer) -> usize {
    (HEADER + packets.longest_payload()).max(rtcp::LONGEST) + MAX_OVERHEAD
}

fn packet_space(packets: &Packetizer) -> Box<[u8]> {
    vec![0; longest_packet(packets)].into()
}

/// True where a stream may change from one codec to the other: its timestamps and the memory for its payloads go on.
fn is_alike(one: Codec, other: Codec) -> bool {
    let has_same_bytes = one.bytes_per_tick().is_some() && one.bytes_per_tick() == other.bytes_per_tick();
    one == other || has_same_bytes && one.rtp_clock_hz() == other.rtp_clock_hz()
}

#[cfg(test)]
mod tests;
