//! The SIP socket, and how calls over SIP are held.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;

use ringer_media::codec::Codec;
use serde::{Serialize, Serializer};

use super::{Source, Sources};

/// `[sip]`
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sip {
    /// Address of the SIP socket (UDP).
    pub listen: SocketAddr,
    /// Address put into SDP and Contact; without it, the address of the socket.
    pub advertise: Option<IpAddr>,
    /// Ports for RTP (even) and RTCP (odd), written `20000-29999`.
    #[serde(serialize_with = "ports_text")]
    pub rtp_ports: RangeInclusive<u16>,
    /// Codecs that SIP addresses are offered, in order, or of which the best of whoever calls is taken.
    #[serde(serialize_with = "codec_names")]
    pub codecs: Vec<Codec>,
    /// How digits are sent.
    pub dtmf: Dtmf,
    /// Secure RTP.
    pub srtp: Encryption,
    /// Kind of keys of secure RTP.
    pub srtp_keys: SrtpKeys,
    /// RTP is taken from another port of the host that the agent's SDP names, when nothing comes from the one it names.
    pub symmetric_rtp: Switch,
    /// What is done when an agent transfers a call that goes on.
    pub refer: Refer,
    /// Who may call in; empty: everybody.
    pub inbound_allow: Sources,
}

/// Codecs of a call where none are asked for, in order: a recognizer needs 16 kHz.
pub const CODECS: [Codec; 4] = [Codec::G722, Codec::Pcmu, Codec::Pcma, Codec::Opus];

/// How digits are sent on SIP calls.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtmf {
    /// Telephone events when negotiated (RFC 4733), else tones.
    Rtp,
    /// Tones in the audio.
    Inband,
    /// SIP INFO requests.
    Info,
}

/// Use of secure RTP in calls.
///
/// Its keys come in the session description (RFC 4568), and are then as secret as the signalling, or from a DTLS handshake
/// (RFC 5763).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Encryption {
    /// Plain RTP alone.
    #[default]
    Off,
    /// RTP/AVP is offered with keys of both kinds: the other side may use them or not. Every kind of offer is answered.
    Optional,
    /// Secure RTP is offered, as [`SrtpKeys`] says, and there is no call without keys.
    Required,
}

/// Kind of keys that `sip.srtp = "required"` offers, and that is taken of an offer that has both. An offer with one kind is
/// answered in that kind.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SrtpKeys {
    /// Keys in the session description: RTP/SAVP with `a=crypto` (RFC 4568).
    #[default]
    Sdes,
    /// A DTLS handshake: UDP/TLS/RTP/SAVP with `a=fingerprint` (RFC 5763).
    Dtls,
    /// RTP/SAVP with both, of which the other side chooses; of its offers the handshake is taken.
    Any,
}

/// A rule that is followed or not.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Switch {
    /// The rule is not followed.
    #[default]
    Off,
    /// The rule is followed.
    On,
}

/// What calls do when they are asked to go elsewhere (SIP REFER) and do not end by it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Refer {
    /// 603; the call goes on as it was.
    Refuse,
}

impl Default for Sip {
    fn default() -> Sip {
        Sip {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 5060)),
            advertise: None,
            rtp_ports: 20000..=29999,
            codecs: CODECS.to_vec(),
            dtmf: Dtmf::Rtp,
            srtp: Encryption::Off,
            srtp_keys: SrtpKeys::Sdes,
            symmetric_rtp: Switch::Off,
            refer: Refer::Refuse,
            inbound_allow: Sources::default(),
        }
    }
}

impl Sip {
    pub(super) fn read(&mut self, from: &mut Source) {
        from.parsed("sip.listen", "an address like 127.0.0.1:5060", |text| text.parse().ok(), &mut self.listen);
        from.parsed("sip.advertise", "an IP address", |text| Some(Some(text.parse().ok()?)), &mut self.advertise);
        let allowed = "two ports like 20000-29999, the first even, with at least one pair";
        from.parsed("sip.rtp_ports", allowed, parse_ports, &mut self.rtp_ports);
        let mut codecs: Vec<String> = self.codecs.iter().map(|codec| codec.name().to_owned()).collect();
        from.list("sip.codecs", &mut codecs);
        match codecs.iter().map(|name| Codec::from_name(name).ok_or(name)).collect::<Result<Vec<_>, _>>() {
            Ok(read) if !read.is_empty() => self.codecs = read,
            Ok(_) => from.refuse("sip.codecs: at least one is needed".to_owned()),
            Err(name) => {
                let known = Codec::ALL.map(Codec::name).join(", ");
                from.refuse(format!("sip.codecs: {name:?} is not one of {known}"));
            }
        }
        let dtmf = |text: &str| match text {
            "rtp" => Some(Dtmf::Rtp),
            "inband" => Some(Dtmf::Inband),
            "info" => Some(Dtmf::Info),
            _ => None,
        };
        from.parsed("sip.dtmf", "one of rtp, inband, info", dtmf, &mut self.dtmf);
        let srtp = |text: &str| match text {
            "off" => Some(Encryption::Off),
            "optional" => Some(Encryption::Optional),
            "required" => Some(Encryption::Required),
            _ => None,
        };
        from.parsed("sip.srtp", "one of off, optional, required", srtp, &mut self.srtp);
        let keys = |text: &str| match text {
            "sdes" => Some(SrtpKeys::Sdes),
            "dtls" => Some(SrtpKeys::Dtls),
            "any" => Some(SrtpKeys::Any),
            _ => None,
        };
        from.parsed("sip.srtp_keys", "one of sdes, dtls, any", keys, &mut self.srtp_keys);
        let switch = |text: &str| match text {
            "off" => Some(Switch::Off),
            "on" => Some(Switch::On),
            _ => None,
        };
        from.parsed("sip.symmetric_rtp", "off or on", switch, &mut self.symmetric_rtp);
        let refer = |text: &str| (text == "refuse").then_some(Refer::Refuse);
        from.parsed("sip.refer", "refuse; to follow is not there yet", refer, &mut self.refer);
        let mut sources = Vec::new();
        from.list("sip.inbound_allow", &mut sources);
        match Sources::read(&sources) {
            Ok(sources) => self.inbound_allow = sources,
            Err(bad) => from.refuse(format!("sip.inbound_allow: {bad:?} is no address or network like 192.0.2.0/24")),
        }
    }
}

/// Reads `20000-29999`: first port even, at least one pair.
pub fn parse_ports(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-')?;
    let (first, last): (u16, u16) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first.is_multiple_of(2) && first >= 1024 && last > first).then_some(first..=last)
}

fn ports_text<S: Serializer>(ports: &RangeInclusive<u16>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&format!("{}-{}", ports.start(), ports.end()))
}

fn codec_names<S: Serializer>(codecs: &[Codec], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(codecs.iter().map(|codec| codec.name()))
}
