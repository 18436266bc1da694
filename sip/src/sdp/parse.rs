//! Reads text as a [`Session`].

use super::{Attribute, Media, Session};
use crate::error::ParseError;

/// Most `m=` sections and most `a=` lines in one section that are kept.
const MAX_LINES: usize = 200;

/// Longest host name that is kept, characters (RFC 1123 2.1).
const LONGEST_HOST: usize = 255;

impl Session {
    /// Reads a session description. Lines of unknown types are skipped. A description must begin with `v=0` and needs
    /// `o=`. A `c=` that has neither an IP address nor a host name counts as none.
    pub fn parse(text: &str) -> Result<Session, ParseError> {
        let mut lines = text.lines().enumerate().map(|(n, line)| (n + 1, line.trim_end()));
        if lines.next().is_none_or(|(_, line)| line != "v=0") {
            return Err(ParseError::Sdp(1));
        }
        let mut session = None;
        for (n, line) in lines.filter(|(_, line)| !line.is_empty()) {
            let (kind, value) = line.split_once('=').ok_or(ParseError::Sdp(n))?;
            match (kind, &mut session) {
                ("o", None) => session = Some(origin(value).ok_or(ParseError::Sdp(n))?),
                (_, None) if kind.len() == 1 => {}
                (_, Some(session)) => section_line(session, kind, value).ok_or(ParseError::Sdp(n))?,
                _ => return Err(ParseError::Sdp(n)),
            }
        }
        session.ok_or(ParseError::Sdp(2))
    }
}

fn origin(value: &str) -> Option<Session> {
    let mut words = value.split_whitespace();
    let (_user, id, version) = (words.next()?, words.next()?, words.next()?);
    Some(Session {
        id: id.to_owned(),
        // Some senders write a version that no u64 holds; it is only ever compared.
        version: version.parse().unwrap_or(0),
        origin: words.nth(2).unwrap_or("").to_owned(),
        address: None,
        host: None,
        attributes: Vec::new(),
        media: Vec::new(),
    })
}

fn section_line(session: &mut Session, kind: &str, value: &str) -> Option<()> {
    match kind {
        "m" => {
            let media = media(value)?;
            if session.media.len() < MAX_LINES {
                session.media.push(media);
            }
        }
        "c" => {
            let written = value.split_whitespace().nth(2).and_then(|a| a.split('/').next()).unwrap_or_default();
            let address = written.parse().ok();
            let host = address.is_none().then(|| host_name(written)).flatten();
            match session.media.last_mut() {
                Some(media) => (media.address, media.host) = (address, host),
                None => (session.address, session.host) = (address, host),
            }
        }
        "a" => {
            let (name, value) = value.split_once(':').unwrap_or((value, ""));
            let attributes = match session.media.last_mut() {
                Some(media) => &mut media.attributes,
                None => &mut session.attributes,
            };
            if attributes.len() < MAX_LINES {
                attributes.push(Attribute::new(name.trim(), value.trim()));
            }
        }
        _ if kind.len() == 1 => {}
        _ => return None,
    }
    Some(())
}

/// Returns the name, when it can be one of a host (RFC 1123 2.1): letters, digits, dots and hyphens, and a letter in
/// it.
fn host_name(text: &str) -> Option<String> {
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let named =
        text.len() <= LONGEST_HOST && text.chars().all(known) && text.contains(|c: char| c.is_ascii_alphabetic());
    named.then(|| text.to_ascii_lowercase())
}

fn media(value: &str) -> Option<Media> {
    let mut words = value.split_whitespace();
    let (kind, port, protocol) = (words.next()?, words.next()?, words.next()?);
    Some(Media {
        kind: kind.to_owned(),
        port: port.split('/').next()?.parse().ok()?,
        protocol: protocol.to_owned(),
        formats: words.take(MAX_LINES).map(str::to_owned).collect(),
        address: None,
        host: None,
        attributes: Vec::new(),
    })
}
