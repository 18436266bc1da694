//! Values of the flags of a call, and their limits.

use super::platform::{check_address, platform};
use crate::transport::sip::address::Address;
use crate::transport::websocket::Kind;

/// Background noises by name.
pub const NOISES: [&str; 9] =
    ["none", "office", "talking", "traffic", "cafe", "park", "tv", "noisy_restaurant", "hospital"];

/// Volume of a noise that is named alone.
const NOISE_VOLUME: f64 = 0.8;

/// Header fields that a call writes itself, with their short forms (RFC 3261 7.3.3 and 20).
const WRITTEN: [&str; 24] = [
    "via",
    "v",
    "from",
    "f",
    "to",
    "t",
    "call-id",
    "i",
    "cseq",
    "contact",
    "m",
    "max-forwards",
    "route",
    "record-route",
    "content-type",
    "c",
    "content-length",
    "l",
    "authorization",
    "proxy-authorization",
    "require",
    "supported",
    "k",
    "allow",
];

/// Background noise and how loud it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Noise {
    /// Kind of noise, one of [`NOISES`].
    pub kind: String,
    /// Volume from 0 to 1.
    pub volume: f64,
}

/// True for the address of a WebSocket.
pub(crate) fn is_socket(text: &str) -> bool {
    let is = |scheme: &str| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    is("ws://") || is("wss://")
}

/// Returns the base address behind `pipeline:`; `None` for another address.
pub(crate) fn pipeline(text: &str) -> Option<&str> {
    let (scheme, base) = text.split_once(':')?;
    scheme.eq_ignore_ascii_case("pipeline").then_some(base)
}

/// Returns the address of the room server behind `room:`; `None` for another address.
pub(crate) fn room(text: &str) -> Option<&str> {
    let (scheme, server) = text.split_once(':')?;
    scheme.eq_ignore_ascii_case("room").then_some(server)
}

/// Reads an address that can be called: one of [`line_address`], of a media room, or of an agent on a platform.
pub(crate) fn address(text: &str) -> Result<String, String> {
    if let Some((scheme @ ("http" | "https"), place)) = text.split_once("://") {
        let socket = if scheme == "http" { "ws" } else { "wss" };
        return Err(format!(
            "calls are not made to {scheme}:// alone: {socket}://{place} is a WebSocket, pipeline:{text} a voice pipeline"
        ));
    }
    if let Some((platform, agent)) = platform(text) {
        return check_address(&platform, agent).map(|()| text.to_owned());
    }
    let Some(server) = room(text) else { return line_address(text) };
    match url::Url::parse(server) {
        Ok(url) if matches!(url.scheme(), "ws" | "wss" | "http" | "https") && url.has_host() => Ok(text.to_owned()),
        _ => Err("room: needs an address with ws://, wss://, http:// or https:// behind it".to_owned()),
    }
}

/// Reads an address that needs nothing beside it: of SIP, of a WebSocket, or of a voice pipeline.
pub(crate) fn line_address(text: &str) -> Result<String, String> {
    if let Some(base) = pipeline(text) {
        return match url::Url::parse(base) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(text.to_owned()),
            _ => Err("pipeline: needs an address with http:// or https:// behind it".to_owned()),
        };
    }
    if !is_socket(text) {
        return sip_address(text);
    }
    match url::Url::parse(text) {
        Ok(url) if url.has_host() => Ok(text.to_owned()),
        Ok(_) => Err("the address has no host".to_owned()),
        Err(error) => Err(format!("the address is no URL: {error}")),
    }
}

/// Reads the name of a dialect of WebSockets.
pub(crate) fn dialect(text: &str) -> Result<Kind, String> {
    let names = || Kind::DIALECTS.map(Kind::name).join(", ");
    Kind::from_name(text).ok_or_else(|| format!("it must be one of {}", names()))
}

/// Returns an address that can be called.
pub(crate) fn sip_address(text: &str) -> Result<String, String> {
    let address = Address::parse(text).map_err(|fault| fault.to_string())?;
    address.check_spoken().map(|()| text.to_owned()).map_err(|fault| fault.to_string())
}

/// Parses `NAME` or `NAME:VOLUME`; the volume is `NOISE_VOLUME` by default.
///
/// # Errors
/// The name is unknown, or the volume is not a number from 0 to 1.
pub(crate) fn noise(text: &str) -> Result<Noise, String> {
    let (kind, volume) = text.split_once(':').map_or((text, None), |(kind, volume)| (kind, Some(volume)));
    if !NOISES.contains(&kind) {
        return Err(format!("the noise must be one of {}", NOISES.join(", ")));
    }
    let volume = volume.map_or(Some(NOISE_VOLUME), |volume| volume.parse().ok());
    match volume.filter(|volume| (0.0..=1.0).contains(volume)) {
        Some(volume) => Ok(Noise { kind: kind.to_owned(), volume }),
        None => Err("the volume must be a number from 0 to 1".to_owned()),
    }
}

/// Parses keys, and commas for pauses; letters become capital.
///
/// # Errors
/// The text is empty or holds other characters.
pub(crate) fn digits(text: &str) -> Result<String, String> {
    let known = |digit: char| digit.is_ascii_digit() || "*#ABCDabcd,".contains(digit);
    match text.chars().all(known) {
        true if !text.is_empty() => Ok(text.to_ascii_uppercase()),
        _ => Err("digits may hold only 0-9, *, #, A-D and commas".to_owned()),
    }
}

/// Parses `NAME:VALUE`, the name a token (RFC 3261 25.1) that the call does not write itself.
pub(crate) fn header(text: &str) -> Result<(String, String), String> {
    let token = |c: char| c.is_ascii_alphanumeric() || "-.!%*_+`'~".contains(c);
    let (name, value) = text.split_once(':').ok_or("a header is written NAME:VALUE")?;
    if name.is_empty() || !name.chars().all(token) {
        return Err(format!("{name:?} is no name of a header: only letters, digits and -.!%*_+`'~ may stand in it"));
    }
    if WRITTEN.contains(&name.to_ascii_lowercase().as_str()) {
        return Err(format!("{name} is written by the call itself and cannot be given"));
    }
    if value.contains(|c: char| c.is_control() && c != '\t') {
        return Err("the value of a header is one line of text".to_owned());
    }
    Ok((name.to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{address, dialect, header, line_address, sip_address};

    #[test]
    fn addresses_of_websockets_are_urls() {
        for good in ["ws://h", "WSS://h:1/a?b=c", "ws://[::1]:8080/", "sip:a@h"] {
            assert_eq!(address(good), Ok(good.to_owned()));
        }
        for good in ["p3:a", "P11:agent 1/2", "p4:desk"] {
            assert_eq!(address(good), Ok(good.to_owned()));
        }
        for (bad, part) in [
            ("p2:a", "p3: to p11:"),
            ("p04:a", "p3: to p11:"),
            ("p4:", "p4: needs the id of the agent"),
            ("ws://", "no URL"),
            ("wss://h:port", "no URL"),
            ("http://h", "ws://h is a WebSocket, pipeline:http://h a voice pipeline"),
            ("https://h/a", "wss://h/a is"),
        ] {
            let why = address(bad).expect_err(bad);
            assert!(why.contains(part), "{bad}: {why}");
        }
        for good in ["pipeline:http://127.0.0.1:7860", "PIPELINE:https://h/base"] {
            assert_eq!(address(good), Ok(good.to_owned()));
        }
        for bad in ["pipeline:", "pipeline:h:7860", "pipeline:ftp://h", "pipeline:http://"] {
            let why = address(bad).expect_err(bad);
            assert!(why.contains("http://"), "{bad}: {why}");
        }
        for good in ["room:wss://rooms.example", "ROOM:http://[::1]:7880/base"] {
            assert_eq!(address(good), Ok(good.to_owned()));
            assert!(line_address(good).is_err(), "{good}");
        }
        for bad in ["room:", "room:h:7880", "room:sip:a@h", "room:wss://"] {
            let why = address(bad).expect_err(bad);
            assert!(why.contains("wss://"), "{bad}: {why}");
        }
        assert!(dialect("raw_pcm16").is_ok());
        assert!(dialect("default").expect_err("it is no dialect").contains("twilio_media_streams, "));
    }

    #[test]
    fn addresses_that_cannot_be_called_are_named() {
        for good in [
            "sip:a@127.0.0.1",
            "SIP:a@example.com:5080",
            "sip:a@[::1]:5060",
            "sip:a@h;transport=UDP",
            "sip:a@h;transport=tcp",
            "sips:a@h",
        ] {
            assert_eq!(sip_address(good), Ok(good.to_owned()));
        }
        for (bad, part) in [
            ("bob", "must start with sip:"),
            ("tel:123", "must start with sip:"),
            ("sip:", "sip:<user>@<host>"),
            ("sip:127.0.0.1", "sip:<user>@<host>"),
            ("sip:@127.0.0.1", "sip:<user>@<host>"),
            ("sip:a@", "sip:<user>@<host>"),
            ("sip:a@h:port", "sip:<user>@<host>"),
            ("sip:a@127.0.0.1;transport=sctp", "SIP is spoken over UDP, TCP and TLS alone"),
            ("sips:a@127.0.0.1;transport=udp", "sips: needs TLS"),
        ] {
            let why = sip_address(bad).expect_err(bad);
            assert!(why.contains(part), "{bad}: {why}");
        }
    }

    #[test]
    fn headers_of_the_protocol_are_refused() {
        let given = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(header("X-Run: a: b "), given("X-Run", "a: b"));
        assert_eq!(header("Subject:"), given("Subject", ""));
        assert_eq!(header("!.%*_+`'~:\tx"), given("!.%*_+`'~", "x"));
        for name in ["Via", "v", "FROM", "t", "call-id", "I", "CSeq", "m", "Max-Forwards", "Route", "record-route"] {
            let why = header(&format!("{name}:x")).expect_err(name);
            assert_eq!(why, format!("{name} is written by the call itself and cannot be given"));
        }
        for name in ["c", "L", "Authorization", "Proxy-Authorization", "Require", "k", "Allow", "Content-Length"] {
            assert!(header(&format!("{name}:x")).is_err(), "{name}");
        }
        for (bad, part) in [
            ("X-Run", "NAME:VALUE"),
            (":x", "no name"),
            ("X Run:x", "no name"),
            ("X-Run :x", "no name"),
            ("X-R\u{fc}n:x", "no name"),
            ("X-Run:a\r\nVia: b", "one line"),
            ("X-Run:a\0", "one line"),
        ] {
            let why = header(bad).expect_err(bad);
            assert!(why.contains(part), "{bad}: {why}");
        }
    }
}
