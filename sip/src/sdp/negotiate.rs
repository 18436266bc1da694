//! Offer and answer: the codecs, addresses and directions that both sides support (RFC 3264 5 to 8).

use std::net::{IpAddr, SocketAddr};

use super::protect::{self, Agreed, crypto, is_secure};
use super::{Attribute, Codec, Direction, Dtls, KeyOrigin, Media, Negotiated, Offer, Refusal, Session, Setup};
use crate::error::ParseError;

/// Packet lengths that are sent, milliseconds, longest first.
const PTIMES_MS: [u32; 6] = [LONGEST_PTIME_MS, 50, 40, 30, 20, 10];

/// RTP clock of the telephone events that go with every codec, hertz.
const EVENT_CLOCK_HZ: u32 = 8000;

/// The longest packets that are sent and asked for.
pub(super) const LONGEST_PTIME_MS: u32 = 60;

impl From<ParseError> for Refusal {
    fn from(error: ParseError) -> Refusal {
        match error {
            ParseError::Sdp(line) => Refusal::Malformed(line),
            _ => Refusal::Malformed(0),
        }
    }
}

/// Answers `offer` with the abilities in `supported`. The answer has the first audio stream with a common codec, in the
/// offerer's order of preference. It has that one codec and telephone events, protected as `supported` says. Every
/// other stream is refused with port 0.
pub fn negotiate(offer: &str, supported: &Offer) -> Result<(Session, Negotiated), Refusal> {
    let offer = Session::parse(offer)?;
    let mut refusal = Refusal::NoAudio;
    let mut chosen = None;
    for (at, media) in offer.media.iter().enumerate().filter(|(_, m)| is_audio(m)) {
        let choice = choose(&offer, media, supported, true);
        match choice.and_then(|choice| Ok((choice, protect::take(&offer, media, supported)?))) {
            Ok(choice) => {
                chosen = Some((at, choice));
                break;
            }
            Err(why) => refusal = why,
        }
    }
    let (at, ((mut agreed, codec), protection)) = chosen.ok_or(refusal)?;
    let (mut own_crypto, mut own_dtls) = (Vec::new(), None);
    match protection {
        Agreed::Plain => {}
        Agreed::Sdes(own, protection) => (own_crypto, agreed.crypto) = (vec![own], Some(protection)),
        Agreed::Dtls(own, handshake) => (own_dtls, agreed.dtls) = (Some(own), Some(handshake)),
    }
    agreed.direction = answer_direction(&offer, &offer.media[at], supported.direction);
    agreed.rtcp_mux = supported.rtcp_mux && offer.media[at].has("rtcp-mux");
    let answering = Offer {
        direction: agreed.direction,
        rtcp_mux: agreed.rtcp_mux,
        crypto: own_crypto,
        dtls: own_dtls,
        ..supported.clone()
    };
    let codec = Codec { payload_type: agreed.payload_type, ..codec };
    let events: Vec<Codec> =
        agreed.event_payload_type.iter().map(|&event| Codec::events(event, agreed.event_clock_rate_hz)).collect();
    let media = offer.media.iter().enumerate().map(|(n, offered)| {
        if n == at {
            answering.media(&offered.protocol, std::slice::from_ref(&codec), &events, agreed.ptime_ms)
        } else {
            Media { port: 0, address: None, host: None, attributes: Vec::new(), ..offered.clone() }
        }
    });
    let media = media.collect();
    agreed.remote_rtcp = rtcp_address(&offer.media[at], agreed.remote_rtp, agreed.rtcp_mux);
    Ok((answering.session_of(media), agreed))
}

/// Reads the other side's `answer` to the `offer` of this side. An error when no codec or key remains in common.
pub fn read_answer(offer: &str, answer: &str) -> Result<Negotiated, Refusal> {
    let (offer, answer) = (Session::parse(offer)?, Session::parse(answer)?);
    let ours = offer.media.iter().position(is_audio).ok_or(Refusal::NoAudio)?;
    let theirs = answer.media.get(ours).filter(|m| is_audio(m)).ok_or(Refusal::NoAudio)?;
    let local = Offer::from_session(&offer).ok_or(Refusal::NoAudio)?;
    let (mut agreed, codec) = choose(&answer, theirs, &local, false)?;
    protect::read_choice(&answer, theirs, &local, &mut agreed)?;
    agreed.receive_payload_type = codec.payload_type;
    let own_events = local.events.iter().find(|ours| ours.clock_rate_hz == agreed.event_clock_rate_hz);
    agreed.receive_event_payload_type = agreed.event_payload_type.and(own_events).map(|ours| ours.payload_type);
    agreed.direction = answer_direction(&answer, theirs, local.direction);
    agreed.rtcp_mux = local.rtcp_mux && theirs.has("rtcp-mux");
    agreed.remote_rtcp = rtcp_address(theirs, agreed.remote_rtp, agreed.rtcp_mux);
    Ok(agreed)
}

impl Session {
    /// Leaves of the first audio stream's codecs this one alone, and the telephone events; all where it is not there.
    pub(crate) fn narrow_to(&mut self, name: &str, clock_rate_hz: u32) {
        let Some(media) = self.media.iter_mut().find(|media| is_audio(media)) else { return };
        let is_it = |codec: &Codec| codec.name.eq_ignore_ascii_case(name) && codec.clock_rate_hz == clock_rate_hz;
        let known = codecs(media);
        if !known.iter().any(is_it) {
            return;
        }
        let kept: Vec<String> = known
            .iter()
            .filter(|codec| is_it(codec) || is_event(codec))
            .map(|codec| codec.payload_type.to_string())
            .collect();
        let is_of = |value: &Option<String>| {
            let format = value.as_deref().and_then(|value| value.split_whitespace().next()).unwrap_or_default();
            kept.iter().any(|kept| kept == format)
        };
        media.attributes.retain(|line| !matches!(line.name.as_str(), "rtpmap" | "fmtp") || is_of(&line.value));
        media.formats = kept;
    }

    /// Sets the direction of the first audio stream.
    pub(crate) fn set_direction(&mut self, direction: Direction) {
        let Some(media) = self.media.iter_mut().find(|media| is_audio(media)) else { return };
        media.attributes.retain(|line| Direction::parse(&line.name).is_none());
        media.attributes.push(Attribute { name: direction.as_str().to_owned(), value: None });
    }
}

impl Offer {
    /// Reads back the offer in a description of this side; `None` without a usable audio stream.
    pub fn from_session(session: &Session) -> Option<Offer> {
        let media = session.media.iter().find(|m| is_audio(m))?;
        let address = media.address.or(session.address)?;
        let (events, codecs) = codecs(media).into_iter().partition::<Vec<_>, _>(is_event);
        Some(Offer {
            rtp: SocketAddr::new(address, media.port),
            codecs,
            events,
            ptime_ms: ptime_ms(media, 20),
            direction: direction(session, media),
            rtcp_mux: media.has("rtcp-mux"),
            session_id: session.id.parse().unwrap_or(1),
            crypto: crypto(media).collect(),
            crypto_required: is_secure(media),
            dtls: Dtls::of_stream(session, media, Setup::Actpass),
            key_origin: KeyOrigin::Any,
        })
    }
}

/// Returns the part of `local` that `remote` agrees to, and the local codec. The caller fills in direction, RTCP and
/// encryption. `answers`: this side answers, and may take events of 8000 Hz that it would not have offered.
fn choose(session: &Session, remote: &Media, local: &Offer, answers: bool) -> Result<(Negotiated, Codec), Refusal> {
    let offered = codecs(remote);
    let common =
        |theirs: &Codec| local.codecs.iter().find(|ours| ours.same(theirs)).map(|ours| (theirs.clone(), ours.clone()));
    let (theirs, ours) = offered.iter().filter(|c| !is_event(c)).find_map(common).ok_or(Refusal::NoCodec)?;
    let event = choose_event(&offered, local, theirs.clock_rate_hz, answers);
    let (address, host) = place(session, remote).ok_or(Refusal::NoAddress)?;
    let remote_rtp = SocketAddr::new(address, remote.port);
    let towards = direction(session, remote);
    let agreed = Negotiated {
        codec: ours.name.clone(),
        clock_rate_hz: ours.clock_rate_hz,
        payload_type: theirs.payload_type,
        receive_payload_type: theirs.payload_type,
        fmtp: theirs.fmtp,
        event_payload_type: event.map(|e| e.payload_type),
        receive_event_payload_type: event.map(|e| e.payload_type),
        event_clock_rate_hz: event.map_or(ours.clock_rate_hz, |e| e.clock_rate_hz),
        ptime_ms: ptime_ms(remote, local.ptime_ms),
        remote_rtp,
        remote_rtcp: remote_rtp,
        rtcp_mux: false,
        direction: local.direction,
        on_hold: !towards.receives() || (host.is_none() && address.is_unspecified()),
        remote_host: host,
        crypto: None,
        dtls: None,
    };
    Ok((agreed, ours))
}

/// Returns the events beside a codec with this clock: those with the same clock, else those of 8000 Hz, which many
/// senders offer beside every codec.
fn choose_event<'a>(offered: &'a [Codec], local: &Offer, clock_rate_hz: u32, answers: bool) -> Option<&'a Codec> {
    let known = |clock: u32| local.events.iter().any(|ours| ours.clock_rate_hz == clock);
    let of_clock = |clock: u32| offered.iter().find(|c| is_event(c) && c.clock_rate_hz == clock);
    let same = of_clock(clock_rate_hz).filter(|_| known(clock_rate_hz));
    let taken = known(EVENT_CLOCK_HZ) || (answers && !local.events.is_empty());
    same.or_else(|| of_clock(EVENT_CLOCK_HZ).filter(|_| taken))
}

/// Returns where the other side receives: its address, or 0.0.0.0 and its host name.
fn place(session: &Session, remote: &Media) -> Option<(IpAddr, Option<String>)> {
    let nowhere = IpAddr::from([0, 0, 0, 0]);
    let named = |host: &Option<String>| host.clone().map(|host| (nowhere, Some(host)));
    let of_media = remote.address.map(|address| (address, None)).or_else(|| named(&remote.host));
    of_media.or_else(|| session.address.map(|address| (address, None))).or_else(|| named(&session.host))
}

/// True for a stream of audio over RTP or secure RTP that is not refused.
fn is_audio(media: &Media) -> bool {
    let known = matches!(media.protocol.as_str(), "RTP/AVP" | "RTP/AVPF") || is_secure(media);
    media.kind == "audio" && media.port != 0 && known
}

fn is_event(codec: &Codec) -> bool {
    codec.name.eq_ignore_ascii_case("telephone-event")
}

/// Returns the direction that both sides allow this side (RFC 3264 6.1). An address of 0.0.0.0 (the old way of hold,
/// RFC 3264 8.4) takes away the right to send.
fn answer_direction(session: &Session, remote: &Media, local: Direction) -> Direction {
    let theirs = direction(session, remote).reverse();
    let reachable = place(session, remote).is_some_and(|(address, host)| host.is_some() || !address.is_unspecified());
    Direction::new(theirs.sends() && local.sends() && reachable, theirs.receives() && local.receives())
}

fn direction(session: &Session, media: &Media) -> Direction {
    let find = |list: &[Attribute]| list.iter().find_map(|a| Direction::parse(&a.name));
    find(&media.attributes).or_else(|| find(&session.attributes)).unwrap_or_default()
}

/// Returns the codecs of an `m=` line in its order. Static payload types have their meaning with `rtpmap` or without
/// (RFC 3551 6).
fn codecs(media: &Media) -> Vec<Codec> {
    media.formats.iter().filter_map(|format| codec(media, format)).collect()
}

fn codec(media: &Media, format: &str) -> Option<Codec> {
    let payload_type: u8 = format.parse().ok().filter(|p| *p < 128)?;
    let of_format = |value: &str| {
        let (number, rest) = value.split_once(char::is_whitespace)?;
        (number == format).then(|| rest.trim().to_owned())
    };
    let mut codec = match payload_type {
        0 => Codec::pcmu(),
        8 => Codec::pcma(),
        9 => Codec::g722(),
        _ => {
            let map = media.values("rtpmap").find_map(of_format)?;
            let mut parts = map.split('/');
            let mut codec = Codec::new(parts.next()?, payload_type, parts.next()?.trim().parse().ok()?);
            codec.channels = parts.next().and_then(|c| c.trim().parse().ok()).unwrap_or(1);
            codec
        }
    };
    codec.fmtp = media.values("fmtp").find_map(of_format).unwrap_or_default();
    Some(codec)
}

fn ptime_ms(media: &Media, otherwise: u32) -> u32 {
    let asked = media.values("ptime").next().and_then(|v| v.parse::<f64>().ok()).map_or(otherwise, |v| v as u32);
    let most = media.values("maxptime").next().and_then(|v| v.parse().ok()).unwrap_or(LONGEST_PTIME_MS);
    PTIMES_MS.into_iter().find(|length| *length <= asked.min(most)).unwrap_or(10)
}

/// Returns the address of `a=rtcp:port [IN IP4 address]` (RFC 3605), else one port above RTP.
fn rtcp_address(media: &Media, rtp: SocketAddr, mux: bool) -> SocketAddr {
    if mux {
        return rtp;
    }
    let given = media.values("rtcp").next().and_then(|value| {
        let mut words = value.split_whitespace();
        let port = words.next()?.parse().ok()?;
        let address: Option<IpAddr> = words.nth(2).and_then(|a| a.parse().ok());
        Some(SocketAddr::new(address.unwrap_or(rtp.ip()), port))
    });
    given.unwrap_or_else(|| SocketAddr::new(rtp.ip(), rtp.port().wrapping_add(1).max(1)))
}
