//! SIP sockets, and the conduct of calls over SIP.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use ringer_media::codec::Codec;
use serde::{Serialize, Serializer};

use super::codecs::{codec_names, read_codecs};
use super::srtp::{Encryption, SrtpKeys};
use super::trunks::{Trunk, read_trunks};
use super::{SipListen, Source, Sources, Targets};

/// Settings of the section `[sip]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sip {
    /// Addresses of the SIP sockets; a plain address is UDP alone.
    pub listen: SipListen,
    /// PEM file of the certificate and its intermediates, shown to callers over TLS, and to agents that ask for one.
    pub tls_certificate: Option<PathBuf>,
    /// PEM file of that certificate's private key.
    pub tls_key: Option<PathBuf>,
    /// Address put into SDP and Contact; `None`: the address of the socket.
    pub advertise: Option<IpAddr>,
    /// Ports for RTP (even) and RTCP (odd), written `20000-29999`.
    #[serde(serialize_with = "ports_text")]
    pub rtp_ports: RangeInclusive<u16>,
    /// Codecs that SIP addresses are offered, in order of preference, and of which the best is taken for incoming
    /// calls.
    #[serde(serialize_with = "codec_names")]
    pub codecs: Vec<Codec>,
    /// Transport of DTMF digits that are sent.
    pub dtmf: Dtmf,
    /// Use of secure RTP.
    pub srtp: Encryption,
    /// Kind of keys of secure RTP.
    pub srtp_keys: SrtpKeys,
    /// Addresses that RTP is taken from while nothing comes from the one in the agent's description.
    pub symmetric_rtp: SymmetricRtp,
    /// Side whose session description comes first in outgoing calls.
    pub offer: OfferedIn,
    /// Session interval that outgoing calls ask for, in seconds (RFC 4028): 90 to 86400; 0: they do not ask.
    pub session_interval_s: u32,
    /// Reaction to an agent that transfers a call which goes on.
    pub refer: Refer,
    /// Targets to which a transfer is followed; empty: none.
    pub refer_targets: Targets,
    /// Targets to which a redirect (3xx) is followed, once; empty: none.
    pub redirects: Targets,
    /// Name servers for SIP hosts; empty: those of the system.
    pub dns_servers: Vec<SocketAddr>,
    /// Addresses that may call in; empty: all.
    pub inbound_allow: Sources,
    /// Trunks to telephone providers, by name.
    pub trunks: BTreeMap<String, Trunk>,
}

/// Port of name servers (RFC 1035 4.2).
const DNS_PORT: u16 = 53;

/// Codecs of a call where none are asked for, in order: a recognizer needs 16 kHz.
pub const CODECS: [Codec; 4] = [Codec::G722, Codec::Pcmu, Codec::Pcma, Codec::Opus];

/// Transport of digits in SIP calls.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtmf {
    /// Telephone events when negotiated (RFC 4733), else tones.
    Rtp,
    /// Tones in the audio.
    Inband,
    /// SIP INFO requests (RFC 6086).
    Info,
}

/// Message with the session offer of an outgoing call (RFC 3261 13.2.1).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OfferedIn {
    /// The INVITE has it.
    #[default]
    Invite,
    /// The INVITE has none: the other side makes the offer in its answer, or in a reliable response before that.
    Answer,
}

/// Shortest session interval that calls may ask for, in seconds (RFC 4028 4).
const SHORTEST_SESSION_S: u32 = 90;
/// Longest session interval that calls may ask for, in seconds: a day.
const LONGEST_SESSION_S: u64 = 86_400;

/// Other addresses that RTP is taken from (RFC 4961), while nothing comes from the agreed one.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SymmetricRtp {
    /// None: RTP of other addresses is counted, and warned of.
    #[default]
    Off,
    /// Other ports of the agreed host.
    On,
    /// Every address that has sent packets of one source in a row, of other hosts too.
    Any,
}

/// Reaction of a call to a transfer (SIP REFER) that does not end it.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Refer {
    /// The transfer is refused with 603, and the call goes on as it was.
    #[default]
    Refuse,
    /// A target within `refer_targets` is called, and the call goes on with it; any other is refused.
    Follow,
}

impl Default for Sip {
    fn default() -> Sip {
        Sip {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 5060)).into(),
            tls_certificate: None,
            tls_key: None,
            advertise: None,
            rtp_ports: 20000..=29999,
            codecs: CODECS.to_vec(),
            dtmf: Dtmf::Rtp,
            srtp: Encryption::Off,
            srtp_keys: SrtpKeys::Sdes,
            symmetric_rtp: SymmetricRtp::Off,
            offer: OfferedIn::Invite,
            session_interval_s: 0,
            refer: Refer::Refuse,
            refer_targets: Targets::default(),
            redirects: Targets::default(),
            dns_servers: Vec::new(),
            inbound_allow: Sources::default(),
            trunks: BTreeMap::new(),
        }
    }
}

impl Sip {
    pub(super) fn read(&mut self, from: &mut Source) {
        from.parsed_list("sip.listen", SipListen::FORM, SipListen::parse_list, &mut self.listen);
        let file = |text: &str| (!text.is_empty()).then(|| Some(PathBuf::from(text)));
        from.read_parsed("sip.tls_certificate", "a file", file, &mut self.tls_certificate);
        from.read_parsed("sip.tls_key", "a file", file, &mut self.tls_key);
        match (&self.tls_certificate, &self.tls_key) {
            (Some(_), None) => from.refuse("sip.tls_key is missing: sip.tls_certificate is set".to_owned()),
            (None, Some(_)) => from.refuse("sip.tls_certificate is missing: sip.tls_key is set".to_owned()),
            (None, None) if self.listen.tls.is_some() => {
                from.refuse("sip.tls_certificate is missing: sip.listen has a tls: address".to_owned());
            }
            _ => {}
        }
        from.read_parsed("sip.advertise", "an IP address", |text| Some(Some(text.parse().ok()?)), &mut self.advertise);
        let allowed = "two ports like 20000-29999, the first even, with at least one pair";
        from.read_parsed("sip.rtp_ports", allowed, parse_ports, &mut self.rtp_ports);
        read_codecs("sip.codecs", &mut self.codecs, from);
        let dtmf = |text: &str| match text {
            "rtp" => Some(Dtmf::Rtp),
            "inband" => Some(Dtmf::Inband),
            "info" => Some(Dtmf::Info),
            _ => None,
        };
        from.read_parsed("sip.dtmf", "one of rtp, inband, info", dtmf, &mut self.dtmf);
        from.read_parsed("sip.srtp", Encryption::WORDS, Encryption::parse, &mut self.srtp);
        let keys = |text: &str| match text {
            "sdes" => Some(SrtpKeys::Sdes),
            "dtls" => Some(SrtpKeys::Dtls),
            "any" => Some(SrtpKeys::Any),
            _ => None,
        };
        from.read_parsed("sip.srtp_keys", "one of sdes, dtls, any", keys, &mut self.srtp_keys);
        let switch = |text: &str| match text {
            "off" => Some(SymmetricRtp::Off),
            "on" => Some(SymmetricRtp::On),
            "any" => Some(SymmetricRtp::Any),
            _ => None,
        };
        from.read_parsed("sip.symmetric_rtp", "off, on or any", switch, &mut self.symmetric_rtp);
        let offer = |text: &str| match text {
            "invite" => Some(OfferedIn::Invite),
            "answer" => Some(OfferedIn::Answer),
            _ => None,
        };
        from.read_parsed("sip.offer", "invite or answer", offer, &mut self.offer);
        from.whole("sip.session_interval_s", 0..=LONGEST_SESSION_S, &mut self.session_interval_s);
        if (1..SHORTEST_SESSION_S).contains(&self.session_interval_s) {
            let given = self.session_interval_s;
            from.refuse(format!(
                "sip.session_interval_s = {given} is not allowed: it must be 0, or from {SHORTEST_SESSION_S} to {LONGEST_SESSION_S}"
            ));
        }
        let refer = |text: &str| match text {
            "refuse" => Some(Refer::Refuse),
            "follow" => Some(Refer::Follow),
            _ => None,
        };
        from.read_parsed("sip.refer", "refuse or follow", refer, &mut self.refer);
        read_targets(from, "sip.refer_targets", &mut self.refer_targets);
        read_targets(from, "sip.redirects", &mut self.redirects);
        let mut servers: Vec<String> = self.dns_servers.iter().map(SocketAddr::to_string).collect();
        from.list("sip.dns_servers", &mut servers);
        match servers.iter().map(|text| parse_name_server(text).ok_or(text)).collect() {
            Ok(read) => self.dns_servers = read,
            Err(bad) => {
                from.refuse(format!("sip.dns_servers: {bad:?} is no IP address like 192.0.2.53 or 127.0.0.1:5353"))
            }
        }
        let mut sources = Vec::new();
        from.list("sip.inbound_allow", &mut sources);
        match Sources::parse(&sources) {
            Ok(sources) => self.inbound_allow = sources,
            Err(bad) => from.refuse(format!("sip.inbound_allow: {bad:?} is no address or network like 192.0.2.0/24")),
        }
        self.trunks = read_trunks(from, self.srtp);
    }
}

fn read_targets(from: &mut Source, key: &str, into: &mut Targets) {
    let mut entries = Vec::new();
    from.list(key, &mut entries);
    match Targets::parse(&entries) {
        Ok(targets) => *into = targets,
        Err(bad) => from.refuse(format!(
            "{key}: {bad:?} is no host like pbx.example.com or *.example.com, address, network like 192.0.2.0/24, or \
             prefix of numbers like +49"
        )),
    }
}

/// Reads `20000-29999`: first port even, at least one pair.
pub fn parse_ports(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-')?;
    let (first, last): (u16, u16) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first.is_multiple_of(2) && first >= 1024 && last > first).then_some(first..=last)
}

/// Reads `192.0.2.53`, `2001:db8::53` (port 53), `127.0.0.1:5353` or `[::1]:5353`.
fn parse_name_server(text: &str) -> Option<SocketAddr> {
    let with_port = || text.parse().ok().filter(|server: &SocketAddr| server.port() != 0);
    text.parse().map(|host: IpAddr| SocketAddr::new(host, DNS_PORT)).ok().or_else(with_port)
}

fn ports_text<S: Serializer>(ports: &RangeInclusive<u16>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&format!("{}-{}", ports.start(), ports.end()))
}
