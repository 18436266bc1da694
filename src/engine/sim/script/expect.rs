//! Expectations of a script: read from a line, and held against what became of the call.

use std::net::SocketAddr;

use ringer_media::frame::RATE_HZ;
use ringer_media::pcm;
use ringer_media::recording::WAV_HEADER;
use serde_json::Value;

use super::super::{Outcome, START, SentRtp, Side, TimelineEntry};
use super::words::Words;

/// Blocks of 10 ms that are louder are audible.
const AUDIBLE_DBOV: f64 = -50.0;
/// Least share of the power that a tone has.
const TONE_SHARE: f64 = 0.8;
const BLOCK: usize = RATE_HZ as usize / 100;

/// An expectation and its line in the file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Expectation {
    /// Number of the line, from 1.
    pub line: usize,
    /// The line as it is written.
    pub text: String,
    who: Who,
    what: Expected,
}

/// The sides of a call.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Who {
    Caller,
    Agent,
    Target,
}

/// Names of the sides, in order.
const SIDES: [&str; 3] = ["caller", "agent", "target"];

impl Who {
    fn at(place: usize) -> Who {
        [Who::Caller, Who::Agent, Who::Target][place]
    }

    fn side(self, outcome: &Outcome) -> Result<&Side, String> {
        match self {
            Who::Caller => Ok(&outcome.caller),
            Who::Agent => Ok(&outcome.agent),
            Who::Target => outcome.target.as_ref().ok_or_else(|| "there is no target".to_owned()),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Expected {
    Event { name: String, data: Vec<Datum>, range: Option<Range>, count: Option<usize> },
    Recording { of: Who, audible: bool, range: Range },
    EarlySeconds(Range),
    EarlyAudible(bool, Option<Range>),
    EarlyTone(f64, Range),
    RecordedTone { of: Who, hz: f64, range: Range },
    Ended(String),
    Media { to: Option<SocketAddr>, payload_type: Option<u8>, bytes: Option<usize>, range: Range },
    EndText(String),
    Warning(String),
    SipText { text: String, contains: bool },
    SipCount { start: String, count: usize },
    Message { is_sent: bool, text: String, range: Option<Range>, count: Option<usize> },
}

/// A condition on the data of an event.
#[derive(Clone, Debug, PartialEq)]
struct Datum {
    key: String,
    value: String,
    /// True if the value is a part of what the event has.
    is_part: bool,
}

/// Range from the first to the second number, both included.
#[derive(Copy, Clone, Debug, PartialEq)]
struct Range(f64, f64);

impl Range {
    /// Reads `between A and B` or `at T +- D`; `None` where the line goes on with something else.
    fn parse(words: &mut Words) -> Result<Option<Range>, String> {
        let most = super::LATEST_S;
        if words.take("at") {
            return Range::about(words).map(Some);
        }
        if !words.take("between") {
            return Ok(None);
        }
        let from = words.number("the begin of the range", 0.0, most)?;
        words.keyword("and")?;
        let to = words.number("the end of the range", 0.0, most)?;
        if to < from {
            return Err("the range ends before it begins".to_owned());
        }
        Ok(Some(Range(from, to)))
    }

    /// Reads `X +- D` as a range.
    fn about(words: &mut Words) -> Result<Range, String> {
        let middle = words.number("the value", 0.0, super::LATEST_S)?;
        words.keyword("+-")?;
        let spread = words.number("the tolerance", 0.0, super::LATEST_S)?;
        Ok(Range(middle - spread, middle + spread))
    }

    fn require(words: &mut Words) -> Result<Range, String> {
        Range::parse(words)?.ok_or_else(|| "between A and B, or at T +- D, is missing".to_owned())
    }

    fn contains(self, value: f64) -> bool {
        // Decimal fractions are not exact in binary.
        self.0 - 1e-6 <= value && value <= self.1 + 1e-6
    }
}

impl Expectation {
    /// Reads what follows `expect`.
    ///
    /// # Errors
    /// For a person: the word that is wrong or missing.
    pub(crate) fn parse(line: usize, words: &mut Words) -> Result<Expectation, String> {
        let text = words.line().to_owned();
        let place = SIDES.iter().position(|side| words.take(side)).unwrap_or_default();
        Ok(Expectation { line, text, who: Who::at(place), what: Expected::parse(words)? })
    }

    /// Holds the expectation against `outcome`.
    ///
    /// # Errors
    /// Says what is found instead.
    pub(crate) fn check(&self, outcome: &Outcome) -> Result<(), String> {
        let side = self.who.side(outcome)?;
        match &self.what {
            Expected::Event { name, data, range, count } => event(side, name, data, *range, *count),
            Expected::Recording { of, audible, range } => {
                recording(side, usize::from(*of != self.who), *audible, *range)
            }
            Expected::EarlySeconds(range) => {
                let seconds = side.early.len() as f64 / f64::from(RATE_HZ);
                if range.contains(seconds) { Ok(()) } else { Err(format!("{seconds:.2} s were recorded")) }
            }
            Expected::EarlyAudible(audible, None) => sounds(&side.early, *audible),
            Expected::EarlyAudible(audible, Some(range)) => sounds(early_part(side, *range)?, *audible),
            Expected::EarlyTone(hz, range) => has_tone(early_part(side, *range)?, *hz),
            Expected::RecordedTone { of, hz, range } => {
                let track = usize::from(*of != self.who);
                has_tone(&recorded_part(side, track, *range)?, *hz)
            }
            Expected::Ended(reason) => match side.ending.as_ref().map(|ending| ending.reason.as_str()) {
                Some(found) if found == reason => Ok(()),
                Some(found) => Err(format!("it ended by {found}")),
                None if reason == "never" => Ok(()),
                None => Err("it never began".to_owned()),
            },
            Expected::Media { to, payload_type, bytes, range } => media(side, *to, *payload_type, *bytes, *range),
            Expected::EndText(text) => match side.ending.as_ref().and_then(|ending| ending.remote.as_ref()) {
                Some(end) if end.text.contains(text) => Ok(()),
                Some(end) => Err(format!("its text is {:?}", end.text)),
                None => Err("the other side did not end it".to_owned()),
            },
            Expected::Warning(text) => match side.warnings.iter().any(|warning| warning.contains(text)) {
                true => Ok(()),
                false => Err(format!("the warnings are {:?}", side.warnings)),
            },
            Expected::SipText { text, contains } => match side.sip_log.contains(text) {
                found if found == *contains => Ok(()),
                true => Err("it is in the log".to_owned()),
                false => Err("it is not in the log".to_owned()),
            },
            Expected::Message { is_sent, text, range, count } => {
                check_times(&lines_of(&side.sip_log, *is_sent, text), *range, *count)
            }
            Expected::SipCount { start, count } => match messages(&side.sip_log, start) {
                found if found == *count => Ok(()),
                found => Err(format!("there are {found}")),
            },
        }
    }
}

impl Expected {
    fn parse(words: &mut Words) -> Result<Expected, String> {
        const KINDS: [&str; 9] =
            ["event", "recording", "early_media", "ended", "media", "warning", "sip", "end", "message"];
        match words.one_of("what is expected", &KINDS)? {
            0 => Expected::read_event(words),
            1 => {
                let of = Who::at(words.one_of("the track", &SIDES)?);
                match words.one_of("how it sounds", &["silent", "audible", "tone"])? {
                    2 => {
                        let hz = words.number("the frequency", 100.0, 4000.0)?;
                        Ok(Expected::RecordedTone { of, hz, range: Range::require(words)? })
                    }
                    sound => Ok(Expected::Recording { of, audible: sound == 1, range: Range::require(words)? }),
                }
            }
            2 => match words.one_of("what is expected of it", &["seconds", "silent", "audible", "tone"])? {
                0 => Ok(Expected::EarlySeconds(Range::about(words)?)),
                3 => Ok(Expected::EarlyTone(words.number("the frequency", 100.0, 4000.0)?, Range::require(words)?)),
                sound => Ok(Expected::EarlyAudible(sound == 2, Range::parse(words)?)),
            },
            3 => Ok(Expected::Ended(words.text("the reason")?)),
            4 => Expected::read_media(words),
            5 => {
                words.keyword("contains")?;
                Ok(Expected::Warning(words.text("the text")?))
            }
            6 => Expected::read_sip(words),
            8 => Expected::read_message(words),
            _ => {
                words.keyword("contains")?;
                Ok(Expected::EndText(words.text("the text")?))
            }
        }
    }

    fn read_event(words: &mut Words) -> Result<Expected, String> {
        let name = words.text("the name of the event")?;
        let (mut data, mut range, mut count) = (Vec::new(), None, None);
        while !words.is_empty() {
            if let Some(read) = Range::parse(words)? {
                range = Some(read);
            } else if words.take("count") {
                count = Some(words.whole("the count", 0, 1000)?.into());
            } else {
                let key = words.text("the key")?;
                let is_part = words.one_of("how it is compared", &["=", "contains"])? == 1;
                data.push(Datum { key, value: words.text("the value")?, is_part });
            }
        }
        Ok(Expected::Event { name, data, range, count })
    }

    fn read_media(words: &mut Words) -> Result<Expected, String> {
        words.keyword("to")?;
        let to = words.text("the address")?;
        let to = match to.as_str() {
            "nowhere" => None,
            address => Some(address.parse().map_err(|_| format!("{address:?} is no address with a port"))?),
        };
        let payload_type = match words.take("payload_type") {
            true => Some(words.whole("the payload type", 0, 127)? as u8),
            false => None,
        };
        let bytes = match words.take("bytes") {
            true => Some(words.whole("the bytes of a payload", 0, 2000)?.into()),
            false => None,
        };
        if to.is_none() && (payload_type.is_some() || bytes.is_some()) {
            return Err("media that go nowhere have neither payload_type nor bytes".to_owned());
        }
        Ok(Expected::Media { to, payload_type, bytes, range: Range::require(words)? })
    }

    fn read_message(words: &mut Words) -> Result<Expected, String> {
        let is_sent = words.one_of("the direction", &["sent", "received"])? == 0;
        let text = words.text("the text")?;
        let (mut range, mut count) = (None, None);
        while !words.is_empty() {
            match Range::parse(words)? {
                Some(read) => range = Some(read),
                None => {
                    words.keyword("count")?;
                    count = Some(words.whole("the count", 0, 1000)?.into());
                }
            }
        }
        Ok(Expected::Message { is_sent, text, range, count })
    }

    fn read_sip(words: &mut Words) -> Result<Expected, String> {
        match words.one_of("what is expected of it", &["contains", "lacks", "count"])? {
            2 => {
                words.keyword("of")?;
                let start = words.text("the beginning of the messages")?;
                words.keyword("=")?;
                Ok(Expected::SipCount { start, count: words.whole("the count", 0, 1000)?.into() })
            }
            how => Ok(Expected::SipText { text: words.text("the text")?, contains: how == 0 }),
        }
    }
}

fn event(side: &Side, name: &str, data: &[Datum], range: Option<Range>, count: Option<usize>) -> Result<(), String> {
    let fits = |entry: &&TimelineEntry| entry.name() == name && data.iter().all(|datum| datum.fits(&entry.data()));
    let times: Vec<f64> = side.timeline.iter().filter(fits).map(|entry| after_invite(side, entry)).collect();
    check_times(&times, range, count)
}

/// Checks that something happened at one of `times` within `range`: `count` times, or at all.
fn check_times(times: &[f64], range: Option<Range>, count: Option<usize>) -> Result<(), String> {
    let found = times.iter().filter(|at| range.is_none_or(|range| range.contains(**at))).count();
    match count {
        Some(count) if found == count => Ok(()),
        None if found > 0 => Ok(()),
        _ if times.is_empty() => Err("it never happened".to_owned()),
        _ => {
            let times: Vec<String> = times.iter().map(|at| format!("{at:.2}")).collect();
            Err(format!("it happened at {}", times.join(", ")))
        }
    }
}

impl Datum {
    fn fits(&self, data: &Value) -> bool {
        let found = match &data[&self.key] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        if self.is_part { found.contains(&self.value) } else { found == self.value }
    }
}

/// Returns the time of an entry, in seconds after the INVITE.
fn after_invite(side: &Side, entry: &TimelineEntry) -> f64 {
    side.zero.as_secs_f64() + entry.offset_ms() / 1000.0
}

/// Checks a track of the recording of `side`: 0 is its own, 1 the other one.
fn recording(side: &Side, track: usize, audible: bool, range: Range) -> Result<(), String> {
    sounds(&recorded_part(side, track, range)?, audible)
}

fn recorded_part(side: &Side, track: usize, range: Range) -> Result<Vec<i16>, String> {
    let pcm = pcm::channel(side.recording.get(WAV_HEADER..).unwrap_or_default(), track, 2);
    let zero = side.zero.as_secs_f64();
    let place = |at: f64| ((at - zero).max(0.0) * f64::from(RATE_HZ)) as usize;
    let (from, to) = (place(range.0), place(range.1));
    match pcm.get(from..to) {
        Some(part) if !part.is_empty() => Ok(part.to_vec()),
        _ => {
            let end = zero + pcm.len() as f64 / f64::from(RATE_HZ);
            Err(format!("the recording goes from {zero:.2} to {end:.2}"))
        }
    }
}

/// Returns a part of what was recorded before the answer; that ends where the recording begins.
fn early_part(side: &Side, range: Range) -> Result<&[i16], String> {
    let begin = side.zero.as_secs_f64() - side.early.len() as f64 / f64::from(RATE_HZ);
    let place = |at: f64| ((at - begin).max(0.0) * f64::from(RATE_HZ)) as usize;
    let part = side.early.get(place(range.0)..place(range.1)).filter(|part| !part.is_empty());
    part.ok_or_else(|| format!("the early media go from {begin:.2} to {:.2}", side.zero.as_secs_f64()))
}

/// Checks that most of the power of `pcm` lies at `hz`.
fn has_tone(pcm: &[i16], hz: f64) -> Result<(), String> {
    let (mut re, mut im, mut power) = (0.0, 0.0, 0.0);
    for (at, sample) in pcm.iter().enumerate() {
        let (phase, value) = (std::f64::consts::TAU * hz * at as f64 / f64::from(RATE_HZ), f64::from(*sample));
        re += value * phase.cos();
        im += value * phase.sin();
        power += value * value;
    }
    let share = 2.0 * (re * re + im * im) / (pcm.len() as f64 * power.max(1.0));
    if share > TONE_SHARE { Ok(()) } else { Err(format!("{:.0} % of its power are at {hz} Hz", 100.0 * share)) }
}

/// Checks that a block of `pcm` is audible, or that none is.
fn sounds(pcm: &[i16], audible: bool) -> Result<(), String> {
    let level = |block: &[i16]| {
        let power = block.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / block.len() as f64;
        10.0 * (power.max(1e-9) / 32_768f64.powi(2)).log10()
    };
    if pcm.is_empty() {
        return Err("nothing was recorded".to_owned());
    }
    let loudest = pcm.chunks(BLOCK).map(level).fold(-100.0, f64::max);
    match (loudest > AUDIBLE_DBOV) == audible {
        true => Ok(()),
        false => Err(format!("its loudest 10 ms have {loudest:.0} dBov")),
    }
}

fn media(
    side: &Side,
    to: Option<SocketAddr>,
    payload_type: Option<u8>,
    bytes: Option<usize>,
    range: Range,
) -> Result<(), String> {
    let at = |sent: &&SentRtp| range.contains(sent.after_invite.as_secs_f64());
    let inside: Vec<&SentRtp> = side.sent_rtp.iter().filter(at).collect();
    let Some(to) = to else {
        return match inside.first() {
            None => Ok(()),
            Some(first) => Err(format!("{} packets went, the first at {:?}", inside.len(), first.after_invite)),
        };
    };
    let fits = |sent: &&&SentRtp| {
        sent.to == to
            && payload_type.is_none_or(|wanted| sent.payload_type == wanted)
            && bytes.is_none_or(|wanted| sent.payload_bytes == wanted)
    };
    match inside.iter().find(|sent| !fits(sent)) {
        Some(SentRtp { after_invite, to, payload_type, payload_bytes }) => {
            let at = after_invite.as_secs_f64();
            Err(format!("at {at:.2} payload type {payload_type}, {payload_bytes} bytes, went to {to}"))
        }
        None if inside.is_empty() => Err("no packet went".to_owned()),
        None => Ok(()),
    }
}

/// Returns the times of the lines with `text` in them in the log of a WebSocket, in seconds after the request.
fn lines_of(log: &str, is_sent: bool, text: &str) -> Vec<f64> {
    let sign = if is_sent { "> " } else { "< " };
    let line = |line: &str| {
        let (at_ms, line) = line.split_once(' ')?;
        line.strip_prefix(sign).filter(|line| line.contains(text))?;
        Some((at_ms.parse::<f64>().ok()? - START.0 as f64 / 1e6) / 1000.0)
    };
    log.lines().filter_map(line).collect()
}

/// Returns the number of messages in a SIP log that begin with `start`.
fn messages(log: &str, start: &str) -> usize {
    let lines: Vec<&str> = log.lines().collect();
    let first = |pair: &&[&str]| !pair[0].starts_with(' ') && !pair[0].is_empty();
    lines.windows(2).filter(first).filter(|pair| pair[1].trim_start().starts_with(start)).count()
}
