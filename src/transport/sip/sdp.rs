//! Offers made of codecs, and media plans made of answers (RFC 3264).

use std::net::{IpAddr, SocketAddr};

use ringer_base::config::{Encryption, SrtpKeys};
use ringer_media::codec::Codec;
use ringer_media::codec::opus::max_bitrate;
use ringer_media::leg::{KeySource, MediaParams};
use ringer_media::rtp::srtp::{MasterKey, SrtpParams, Suite};
use ringer_sip::sdp::{
    self, Crypto, CryptoSuite, Dtls, Fingerprint, KeyOrigin, KeySalt, Negotiated, Offer, Protection,
};

use crate::dtls::Expected;

/// Parameters of Opus (RFC 7587 6.1): mono at 16 kHz is what is heard and sent, and lost packets are made up for.
const OPUS_FMTP: &str = "maxplaybackrate=16000;sprop-maxcapturerate=16000;stereo=0;sprop-stereo=0;useinbandfec=1";

/// Random bytes of the name of an association: 120 bits are the least (RFC 8842 4).
const TLS_ID_BYTES: usize = 16;

/// Addresses and form of the media of a call.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct MediaPlan {
    /// Parameters of the leg.
    pub media: MediaParams,
    /// Address that RTP goes to and comes from.
    pub rtp: SocketAddr,
    /// Address that RTCP goes to and comes from. It is `rtp` where both share a port (RFC 5761).
    pub rtcp: SocketAddr,
    /// The handshake that the keys come from; `None`: there is none.
    pub handshake: Option<Expected>,
}

/// Returns the offer of `codecs` at `host:port`, over plain RTP.
pub fn offer(codecs: &[Codec], host: IpAddr, port: u16, session_id: u64) -> Offer {
    let mut events: Vec<sdp::Codec> = Vec::new();
    for codec in codecs {
        if events.iter().all(|known| known.clock_rate_hz != codec.rtp_clock_hz()) {
            events.push(sdp::Codec::events(codec.event_payload_type(), codec.rtp_clock_hz()));
        }
    }
    let codecs = codecs.iter().map(|codec| sdp_codec(*codec)).collect();
    Offer { events, session_id, ..Offer::new(SocketAddr::new(host, port), codecs) }
}

/// Returns the offer as `encryption` wants it. Keys are drawn from `random`, which fills a slice: each suite of each
/// offer has a key of its own.
pub fn secure(mut offer: Offer, encryption: Encryption, random: impl FnMut(&mut [u8])) -> Offer {
    offer.crypto_required = encryption == Encryption::Required;
    if encryption != Encryption::Off {
        offer.crypto = fresh_keys(random);
    }
    offer
}

/// Returns the secured offer with the other way to keys beside it: a handshake with the certificate of this
/// fingerprint. RTP and RTCP then share a port where the other side can do so: two ports need two handshakes (RFC 5764
/// 4).
pub fn with_handshake(
    mut offer: Offer,
    keys: SrtpKeys,
    fingerprint: Fingerprint,
    mut random: impl FnMut(&mut [u8]),
) -> Offer {
    let mut name = [0; TLS_ID_BYTES];
    random(&mut name);
    offer.dtls = Some(Dtls::offering(fingerprint, hex::encode(name)));
    offer.rtcp_mux = true;
    offer.key_origin = match keys {
        SrtpKeys::Sdes => KeyOrigin::Sdes,
        SrtpKeys::Dtls => KeyOrigin::Dtls,
        SrtpKeys::Any => KeyOrigin::Any,
    };
    offer
}

fn fresh_keys(mut random: impl FnMut(&mut [u8])) -> Vec<Crypto> {
    let drawn = (1..).zip(CryptoSuite::ALL).filter_map(|(tag, suite)| {
        let mut bytes = vec![0; suite.key_bytes()];
        random(&mut bytes);
        Some(Crypto { tag, suite, key: KeySalt::new(suite, &bytes)? })
    });
    drawn.collect()
}

fn sdp_codec(codec: Codec) -> sdp::Codec {
    let plain = sdp::Codec::new(codec.encoding(), codec.payload_type(), codec.rtp_clock_hz());
    match codec {
        // Always two channels in the map, whatever is sent (RFC 7587 7).
        Codec::Opus => sdp::Codec { channels: 2, fmtp: OPUS_FMTP.into(), ..plain },
        _ => plain,
    }
}

/// Answers an offer with what `supported` allows.
///
/// # Errors
/// No common codec, no usable address, no usable encryption, an offer that cannot be read.
pub fn answer(offer: &str, supported: &Offer) -> Result<(String, MediaPlan), String> {
    let (session, negotiated) = sdp::negotiate(offer, supported).map_err(|refusal| refusal.to_string())?;
    Ok((session.to_string(), media_plan(&negotiated)?))
}

/// Returns the media plan that offer and answer mean.
///
/// # Errors
/// A codec or a crypto suite that this engine does not speak, or a host name in place of a media address.
pub fn media_plan(negotiated: &Negotiated) -> Result<MediaPlan, String> {
    let codec = Codec::from_encoding(&negotiated.codec, negotiated.clock_rate_hz)
        .ok_or_else(|| format!("no common codec: {}", negotiated.codec))?;
    if let Some(host) = &negotiated.remote_host {
        return Err(format!("the media address is a host name ({host}), which is not resolved"));
    }
    let media = MediaParams {
        codec,
        payload_type: negotiated.payload_type,
        receive_payload_type: negotiated.receive_payload_type,
        event_payload_type: negotiated.event_payload_type,
        receive_event_payload_type: negotiated.receive_event_payload_type,
        event_clock_hz: negotiated.event_clock_rate_hz,
        may_send: negotiated.direction.sends(),
        may_receive: negotiated.direction.receives(),
        ptime_ms: negotiated.ptime_ms as u8,
        fec: negotiated.fmtp.split(';').any(|parameter| parameter.trim() == "useinbandfec=1"),
        max_bitrate: max_bitrate(&negotiated.fmtp),
        srtp: negotiated.crypto.as_ref().map(srtp_params).transpose()?,
        key_source: match &negotiated.dtls {
            None => KeySource::Description,
            Some(_) if negotiated.rtcp_mux => KeySource::Handshake,
            Some(_) => KeySource::HandshakeEach,
        },
    };
    let handshake = negotiated.dtls.as_ref().map(Expected::from);
    Ok(MediaPlan { media, rtp: negotiated.remote_rtp, rtcp: negotiated.remote_rtcp, handshake })
}

fn srtp_params(agreed: &Protection) -> Result<SrtpParams, String> {
    let name = agreed.suite.name();
    let suite = Suite::from_name(name).ok_or_else(|| format!("no common encryption: {name}"))?;
    let key = |key: &KeySalt| {
        MasterKey::new(suite, key.expose()).ok_or_else(|| format!("a key of the wrong length for {name}"))
    };
    Ok(SrtpParams { suite, send: key(&agreed.send)?, receive: key(&agreed.receive)? })
}

#[cfg(test)]
mod tests {
    use ringer_base::config::CODECS;
    use ringer_media::seed::Seed;

    use super::*;

    fn side(encryption: Encryption, seed: u64) -> Offer {
        let mut draws = Seed(seed).stream("srtp");
        let fill = |bytes: &mut [u8]| bytes.fill_with(|| draws.bits() as u8);
        secure(offer(&CODECS, IpAddr::from([127, 0, 0, 1]), 4000, 1), encryption, fill)
    }

    #[test]
    fn keys_are_fresh_and_both_sides_end_up_with_the_same() {
        let ours = side(Encryption::Required, 1).session().to_string();
        assert_eq!(ours, side(Encryption::Required, 1).session().to_string(), "the same draws, the same keys");
        assert_ne!(ours, side(Encryption::Required, 2).session().to_string());
        let keys: std::collections::HashSet<&str> = ours.split("inline:").skip(1).collect();
        assert_eq!(keys.len(), 3, "a key for each suite: {ours}");
        let (answer, there) = answer(&ours, &side(Encryption::Optional, 2)).unwrap();
        let here = media_plan(&sdp::read_answer(&ours, &answer).unwrap()).unwrap();
        let (here, there) = (here.media.srtp.unwrap(), there.media.srtp.unwrap());
        assert_eq!((here.suite, here.send, here.receive), (there.suite, there.receive, there.send));
        assert_ne!(here.send, here.receive);
    }

    #[test]
    fn encryption_that_cannot_be_had_is_named() {
        let plain = side(Encryption::Off, 1).session().to_string();
        let refused = answer(&plain, &side(Encryption::Required, 2)).unwrap_err();
        assert!(refused.contains("encryption"), "{refused}");
        let open = answer(&plain, &side(Encryption::Optional, 2)).unwrap().1;
        assert!(open.media.srtp.is_none());
    }
}
