//! Writes a [`Session`] as text, and an [`Offer`] as a [`Session`].

use std::fmt;
use std::net::IpAddr;

use super::negotiate::LONGEST_PTIME_MS;
use super::{Attribute, Codec, Media, Offer, Session};

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = if self.origin.contains(':') { "IP6" } else { "IP4" };
        write!(f, "v=0\r\no=- {} {} IN {family} {}\r\ns=-\r\n", self.id, self.version, self.origin)?;
        connection(f, self.address, self.host.as_deref())?;
        f.write_str("t=0 0\r\n")?;
        attributes(f, &self.attributes)?;
        for media in &self.media {
            write!(f, "m={} {} {}", media.kind, media.port, media.protocol)?;
            for format in &media.formats {
                write!(f, " {format}")?;
            }
            f.write_str("\r\n")?;
            connection(f, media.address, media.host.as_deref())?;
            attributes(f, &media.attributes)?;
        }
        Ok(())
    }
}

fn connection(f: &mut fmt::Formatter<'_>, address: Option<IpAddr>, host: Option<&str>) -> fmt::Result {
    match (address, host) {
        (Some(address), _) => write!(f, "c=IN {} {address}\r\n", if address.is_ipv6() { "IP6" } else { "IP4" }),
        (None, Some(host)) => write!(f, "c=IN IP4 {host}\r\n"),
        (None, None) => Ok(()),
    }
}

fn attributes(f: &mut fmt::Formatter<'_>, attributes: &[Attribute]) -> fmt::Result {
    for attribute in attributes {
        match &attribute.value {
            Some(value) => write!(f, "a={}:{value}\r\n", attribute.name)?,
            None => write!(f, "a={}\r\n", attribute.name)?,
        }
    }
    Ok(())
}

impl Offer {
    /// Returns the session description that offers all of it.
    pub fn session(&self) -> Session {
        let (protocol, crypto, dtls) = self.protection();
        let offered = Offer { crypto: crypto.to_vec(), dtls: dtls.cloned(), ..self.clone() };
        let media = offered.media(protocol, &self.codecs, &self.events, self.ptime_ms);
        self.session_of(vec![media])
    }

    pub(super) fn session_of(&self, media: Vec<Media>) -> Session {
        Session {
            id: self.session_id.to_string(),
            version: 1,
            origin: self.rtp.ip().to_string(),
            address: Some(self.rtp.ip()),
            host: None,
            attributes: Vec::new(),
            media,
        }
    }

    pub(super) fn media(&self, protocol: &str, codecs: &[Codec], events: &[Codec], ptime_ms: u32) -> Media {
        let mut attributes = Vec::new();
        for codec in codecs.iter().chain(events) {
            let channels = if codec.channels > 1 { format!("/{}", codec.channels) } else { String::new() };
            let map = format!("{} {}/{}{channels}", codec.payload_type, codec.name, codec.clock_rate_hz);
            attributes.push(Attribute::new("rtpmap", map));
            if !codec.fmtp.is_empty() {
                attributes.push(Attribute::new("fmtp", format!("{} {}", codec.payload_type, codec.fmtp)));
            }
        }
        attributes.push(Attribute::new("ptime", ptime_ms.to_string()));
        attributes.push(Attribute::new("maxptime", LONGEST_PTIME_MS.to_string()));
        attributes.push(Attribute::new(self.direction.as_str(), ""));
        if self.rtcp_mux {
            attributes.push(Attribute::new("rtcp-mux", ""));
        }
        attributes.extend(self.crypto.iter().map(|crypto| Attribute::new("crypto", crypto.to_string())));
        attributes.extend(self.dtls.iter().flat_map(|dtls| dtls.attributes()));
        Media {
            kind: "audio".into(),
            port: self.rtp.port(),
            protocol: protocol.into(),
            formats: codecs.iter().chain(events).map(|c| c.payload_type.to_string()).collect(),
            address: None,
            host: None,
            attributes,
        }
    }
}
