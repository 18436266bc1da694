//! Session descriptions of the other side, read before the library sees them: length, sections, certificate,
//! candidates.

use std::borrow::Cow;

use ringer_base::guard::Guard;
use ringer_media::codec::Codec;
use ringer_media::codec::opus::max_bitrate;
use ringer_media::leg::MediaParams;

use super::candidate::{Admission, Tally};
use super::{MAX_SDP, PeerFault, RemoteTrack};

/// Lines of the longest description that is read.
const MAX_LINES: usize = 4096;

/// Tracks of one description that are told of.
const MAX_TRACKS: usize = 64;

/// Sources of one track that are told of.
const MAX_SOURCES: usize = 4;

/// Payload type under which Opus is offered, as browsers do.
pub(super) const OPUS: u8 = 111;

/// Kind of a description.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Offer; other sections beside the audio are refused.
    Offer,
    /// Answer, which states the accepted media.
    Answer,
    /// It says what a server takes; it may send nothing.
    Published,
    /// A server offers to send any number of tracks, or none yet.
    Heard,
    /// A server says what it takes and sends over one connection.
    Joint,
}

/// A description that may be used.
#[derive(Clone, Debug, PartialEq)]
pub struct Remote {
    /// The description without its candidates.
    pub sdp: String,
    /// Candidates that may be used.
    pub candidates: Vec<String>,
    /// Counts of all candidates.
    pub tally: Tally,
    /// Media that this side sends and receives by it.
    pub media: MediaParams,
    /// Tracks of Opus that the other side sends.
    pub tracks: Vec<RemoteTrack>,
}

/// A section and what is known of it.
#[derive(Default)]
struct Section<'a> {
    head: &'a str,
    attributes: Vec<&'a str>,
}

impl<'a> Section<'a> {
    fn is_audio(&self) -> bool {
        self.head.starts_with("audio ") && self.fields().nth(1) != Some("0")
    }

    fn fields(&self) -> impl Iterator<Item = &'a str> {
        self.head.split_ascii_whitespace()
    }

    /// Returns the values of the attributes of this name.
    fn values(&self, name: &str) -> impl Iterator<Item = &'a str> {
        self.attributes.iter().filter_map(move |line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    }

    fn has(&self, name: &str) -> bool {
        self.attributes.contains(&name)
    }

    /// The track of Opus that the other side sends in this section.
    fn track(&self) -> Option<RemoteTrack> {
        if self.has("recvonly") || self.has("inactive") {
            return None;
        }
        let (payload_type, _) = self.opus()?;
        let source = |value: &str| value.split_ascii_whitespace().next()?.parse::<u32>().ok();
        let mut sources: Vec<u32> = Vec::new();
        for found in self.values("ssrc").filter_map(source) {
            if sources.len() < MAX_SOURCES && !sources.contains(&found) {
                sources.push(found);
            }
        }
        let (stream, id) = self.values("msid").next().and_then(|value| value.split_once(' ')).unwrap_or_default();
        Some(RemoteTrack {
            mid: self.values("mid").next().unwrap_or_default().to_owned(),
            stream: stream.to_owned(),
            id: id.trim().to_owned(),
            sources,
            payload_type,
        })
    }

    /// The first payload type of the section's head that is Opus, and its format parameters.
    fn opus(&self) -> Option<(u8, &'a str)> {
        let types = self.fields().skip(3).filter_map(|field| field.parse::<u8>().ok()).filter(|number| *number < 128);
        let of = |name: &str, number: u8| {
            self.values(name).find_map(|value| {
                let (first, rest) = value.split_once(' ')?;
                (first.parse() == Ok(number)).then_some(rest.trim())
            })
        };
        let is_opus = |map: &str| map.get(..10).is_some_and(|start| start.eq_ignore_ascii_case("opus/48000"));
        types
            .into_iter()
            .find(|number| of("rtpmap", *number).is_some_and(is_opus))
            .map(|number| (number, of("fmtp", number).unwrap_or_default()))
    }
}

/// Refuses a description without a certificate's fingerprint of a function that is compared, or without ICE
/// credentials.
fn check_keys(section: &Section<'_>, session: &Section<'_>) -> Result<(), PeerFault> {
    let all = |name: &'static str| section.values(name).chain(session.values(name)).filter(|value| !value.is_empty());
    let has = |name: &'static str| all(name).next().is_some();
    match has("ice-ufrag") && has("ice-pwd") {
        _ if !has("fingerprint") => Err(PeerFault::NoFingerprint),
        _ if !all("fingerprint").any(|value| comparable(value).is_some()) => {
            let function = |value: &str| value.chars().take_while(|letter| !letter.is_whitespace()).take(20).collect();
            Err(PeerFault::OtherHash(all("fingerprint").next().map(function).unwrap_or_default()))
        }
        false => Err(PeerFault::NoIce),
        true => Ok(()),
    }
}

/// Returns a fingerprint's value as the library compares it: `sha-256`, one blank, the digest. `None` for another hash
/// function, which the library cannot compare. Names of functions have no case (RFC 8122 5).
fn comparable(value: &str) -> Option<String> {
    let (function, digest) = value.trim().split_once(char::is_whitespace)?;
    let is_compared = function.eq_ignore_ascii_case("sha-256");
    is_compared.then(|| format!("sha-256 {}", digest.trim()))
}

/// Returns a line as the library reads it; `None` for a fingerprint that it cannot compare, beside one that it can (RFC
/// 8122 5.1).
fn for_library(line: &str) -> Option<Cow<'_, str>> {
    match line.strip_prefix("a=fingerprint:") {
        None => Some(line.into()),
        Some(value) => comparable(value).map(|value| format!("a=fingerprint:{value}").into()),
    }
}

/// True for a line that the library reads by laxer rules than this side: nothing may pass it unjudged.
fn is_lax(line: &str) -> bool {
    let is_indented = |text: &str| text.starts_with(char::is_whitespace);
    line.contains('\r') || is_indented(line) || line.strip_prefix("a=").is_some_and(is_indented)
}

/// Reads a description of the other side: audio of Opus, exactly one section of it unless a server sends it, a
/// certificate's fingerprint, ICE credentials.
///
/// # Errors
/// What of that is missing, or the description is too long.
pub fn read_description(sdp: &str, kind: Kind, guard: &Guard) -> Result<Remote, PeerFault> {
    if sdp.len() > MAX_SDP {
        return Err(PeerFault::TooLong(sdp.len()));
    }
    if !sdp.starts_with("v=0") {
        return Err(PeerFault::Malformed("it does not begin with v=0".to_owned()));
    }
    let (mut kept, mut candidates, mut tally) = (String::with_capacity(sdp.len()), Vec::new(), Tally::default());
    let (mut session, mut sections) = (Section::default(), Vec::<Section>::new());
    for (at, line) in sdp.lines().map(str::trim_end).filter(|line| !line.is_empty()).enumerate() {
        if at >= MAX_LINES {
            return Err(PeerFault::Malformed(format!("it has more than {MAX_LINES} lines")));
        }
        if is_lax(line) {
            return Err(PeerFault::Malformed(format!("line {} has a blank where none may be", at + 1)));
        }
        if line.starts_with("a=candidate:") {
            if let Admission::Used(line) = tally.admit(line, guard) {
                candidates.push(line);
            }
            continue;
        }
        if line == "a=end-of-candidates" {
            continue;
        }
        match (line.strip_prefix("m="), line.strip_prefix("a=")) {
            (Some(head), _) => sections.push(Section { head, attributes: Vec::new() }),
            (_, Some(attribute)) => sections.last_mut().unwrap_or(&mut session).attributes.push(attribute),
            _ => {}
        }
        if let Some(line) = for_library(line) {
            kept.extend([&*line, "\r\n"]);
        }
    }
    let audio: Vec<&Section> = sections.iter().filter(|section| section.is_audio()).collect();
    let tracks: Vec<RemoteTrack> = audio.iter().filter_map(|section| section.track()).take(MAX_TRACKS).collect();
    let section = match (&audio[..], kind) {
        ([section], Kind::Offer | Kind::Answer | Kind::Published) => *section,
        // The first section is the one that this side sends in.
        ([section, ..], Kind::Joint | Kind::Heard) => *section,
        ([], Kind::Heard) => sections.first().ok_or(PeerFault::NoAudio)?,
        ([], _) => return Err(PeerFault::NoAudio),
        _ => return Err(PeerFault::ManyAudio(audio.len())),
    };
    let (payload_type, format) = match section.opus() {
        Some(found) => found,
        None if kind == Kind::Heard => (OPUS, ""),
        None => return Err(PeerFault::NoOpus),
    };
    check_keys(section, &session)?;
    let may_send = ![section, &session].iter().any(|part| part.has("sendonly") || part.has("inactive"));
    if kind == Kind::Answer && (section.has("recvonly") || section.has("inactive")) {
        // It will never be heard.
        return Err(PeerFault::NoAudio);
    }
    let media = MediaParams {
        payload_type,
        receive_payload_type: payload_type,
        event_payload_type: None,
        receive_event_payload_type: None,
        may_send,
        may_receive: true,
        fec: !format.contains("useinbandfec=0"),
        max_bitrate: max_bitrate(format),
        ..MediaParams::new(Codec::Opus)
    };
    Ok(Remote { sdp: kept, candidates, tally, media, tracks })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &str = "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0\r\n";
    const KEYS: &str = "a=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\na=fingerprint:sha-256 AA:BB\r\n";
    const AUDIO: &str = "m=audio 9 UDP/TLS/RTP/SAVPF 0 96\r\na=mid:0\r\na=rtpmap:0 PCMU/8000\r\na=rtpmap:96 opus/48000/2\r\n\
                         a=fmtp:96 minptime=10;useinbandfec=1\r\na=sendrecv\r\n";

    fn whole() -> String {
        format!("{SESSION}{AUDIO}{KEYS}")
    }

    #[test]
    fn a_description_is_read_before_it_is_used() {
        let check = |sdp: &str, expect: Result<u8, PeerFault>| {
            let found = read_description(sdp, Kind::Answer, &Guard::new(true)).map(|remote| remote.media.payload_type);
            assert_eq!(found, expect, "{sdp}");
        };
        check(&whole(), Ok(96));
        check(&format!("{SESSION}{KEYS}{AUDIO}"), Ok(96));
        check(&whole().replace("\r\n", "\n"), Ok(96));
        check(&whole().replace("opus", "OPUS"), Ok(96));
        check(
            &whole().replace("m=audio 9 UDP/TLS/RTP/SAVPF 0 96", "m=audio 9 UDP/TLS/RTP/SAVPF 0"),
            Err(PeerFault::NoOpus),
        );
        check(&whole().replace("opus/48000", "isac/16000"), Err(PeerFault::NoOpus));
        check(&whole().replace("m=audio 9", "m=audio 0"), Err(PeerFault::NoAudio));
        check(&whole().replace("m=audio", "m=video"), Err(PeerFault::NoAudio));
        check(&whole().replace("sendrecv", "inactive"), Err(PeerFault::NoAudio));
        check(&whole().replace("sendrecv", "recvonly"), Err(PeerFault::NoAudio));
        check(&format!("{}{AUDIO}", whole()), Err(PeerFault::ManyAudio(2)));
        check(&whole().replace("fingerprint", "fingerpoint"), Err(PeerFault::NoFingerprint));
        check(&whole().replace("sha-256", "sha-512"), Err(PeerFault::OtherHash("sha-512".to_owned())));
        check(&whole().replace("ice-pwd", "ice-x"), Err(PeerFault::NoIce));
        check(SESSION, Err(PeerFault::NoAudio));
        check("", Err(PeerFault::Malformed("it does not begin with v=0".to_owned())));
        let long = format!("{}a=x:{}\r\n", whole(), "y".repeat(MAX_SDP));
        check(&long, Err(PeerFault::TooLong(long.len())));
        let lines = format!("{}{}", whole(), "b=\r\n".repeat(5000));
        check(&lines, Err(PeerFault::Malformed("it has more than 4096 lines".to_owned())));
    }

    #[test]
    fn fingerprints_are_compared_whatever_the_case_of_their_function() {
        let check = |written: &str| {
            let sdp = whole().replace("a=fingerprint:sha-256 AA:BB", written);
            let remote = read_description(&sdp, Kind::Answer, &Guard::new(true)).expect("it can be used");
            assert_eq!(remote.sdp, whole(), "{written}");
        };
        check("a=fingerprint:SHA-256 AA:BB");
        check("a=fingerprint:Sha-256   AA:BB ");
        // The library refuses every description whose first fingerprint has another function.
        check("a=fingerprint:sha-512 CC:DD\r\na=fingerprint:SHA-256 AA:BB");
        check("a=fingerprint:sha-256 AA:BB\r\na=fingerprint:sha-1 CC:DD");
    }

    #[test]
    fn candidates_are_taken_out_and_judged() {
        let many = "a=candidate:1 1 udp 1 127.0.0.1 9 typ host\r\n".repeat(1000);
        let remote =
            read_description(&format!("{}{many}a=end-of-candidates\r\n", whole()), Kind::Answer, &Guard::new(true));
        let remote = remote.expect("it can be used");
        assert_eq!((remote.candidates.len(), remote.tally.too_many), (20, 980));
        assert_eq!(remote.sdp, whole());
        let remote =
            read_description(&format!("{}{many}", whole()), Kind::Answer, &Guard::new(false)).expect("it can be used");
        assert_eq!((remote.candidates.len(), remote.tally.not_allowed), (0, 1000));
        // Spellings that the library takes for candidates.
        for line in
            ["a= candidate:1 1 udp 1 169.254.169.254 80 typ host", "\ra=candidate:1 1 udp 1 10.0.0.1 80 typ host"]
        {
            let sdp = format!("{}{line}\r\n", whole());
            let refused = read_description(&sdp, Kind::Answer, &Guard::new(false));
            assert!(matches!(refused, Err(PeerFault::Malformed(_))), "{line:?}: {refused:?}");
        }
    }

    #[test]
    fn tracks_of_a_server_are_told_apart() {
        let section = |mid: &str, more: &str| AUDIO.replace("a=mid:0", &format!("a=mid:{mid}\r\n{more}"));
        let one = section(
            "1",
            "a=msid:PA_a|TR_b TR_b\r\na=ssrc:7 cname:x\r\na=ssrc:7 msid:PA_a|TR_b TR_b\r\na=ssrc:8 cname:x",
        );
        let two = section("2", "a=recvonly").replace("a=sendrecv\r\n", "");
        let data = "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:0\r\n";
        let read = |sdp: &str, kind| read_description(sdp, kind, &Guard::new(true));
        let heard = read(&format!("{SESSION}{KEYS}{data}{one}{two}"), Kind::Heard).expect("it can be used");
        let track = RemoteTrack {
            mid: "1".into(),
            stream: "PA_a|TR_b".into(),
            id: "TR_b".into(),
            sources: vec![7, 8],
            payload_type: 96,
        };
        assert_eq!((heard.tracks, heard.media.payload_type), (vec![track], 96));
        let none = read(&format!("{SESSION}{KEYS}{data}"), Kind::Heard).expect("it can be used");
        assert_eq!((none.tracks, none.media.payload_type), (vec![], OPUS));
        let published = whole().replace("sendrecv", "recvonly");
        let published = read(&published, Kind::Published).expect("it can be used");
        assert_eq!((published.tracks, published.media.payload_type), (vec![], 96));
        assert_eq!(read(&format!("{}{AUDIO}", whole()), Kind::Published), Err(PeerFault::ManyAudio(2)));
        let joint = read(&format!("{SESSION}{KEYS}{two}{one}"), Kind::Joint).expect("it can be used");
        assert_eq!(joint.tracks[0].sources, [7, 8]);
    }

    #[test]
    fn direction_and_format_are_settled() {
        let check = |from: &str, to: &str, expect: (bool, bool)| {
            let remote =
                read_description(&whole().replace(from, to), Kind::Offer, &Guard::new(true)).expect("it can be used");
            assert_eq!((remote.media.may_send, remote.media.fec), expect, "{to}");
        };
        check("sendrecv", "sendrecv", (true, true));
        check("sendrecv", "sendonly", (false, true));
        check("sendrecv", "recvonly", (true, true));
        check("useinbandfec=1", "useinbandfec=0", (true, false));
        let slow = whole().replace("useinbandfec=1", "useinbandfec=1; maxaveragebitrate=20000");
        let remote = read_description(&slow, Kind::Offer, &Guard::new(true)).expect("it can be used");
        assert_eq!(remote.media.max_bitrate, Some(20_000));
    }
}
