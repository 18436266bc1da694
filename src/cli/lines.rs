//! Events of a timeline as lines for a person: when, who, what.

use std::fmt::Write as _;

use ringer_media::frame::{PER_MS, Sample};
use serde_json::Value;

use crate::engine::TimelineEntry;

/// Columns of the name.
const NAME_WIDTH: usize = 7;
/// Letters of a value that is no words.
const VALUE_MAX: usize = 200;
/// Stretches of the caller's speech that are remembered, to tell what a turn of the agent answers.
const OWN_MAX: usize = 64;

/// Whether lines have colours.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Style {
    coloured: bool,
}

impl Style {
    /// Without colours.
    #[cfg(test)]
    const PLAIN: Style = Style { coloured: false };

    /// In colours where this is a `terminal`, and nothing forbids them there.
    pub fn of(terminal: bool) -> Style {
        Style { coloured: terminal && crate::config::colours() }
    }

    fn paint(self, text: String, colour: &str) -> String {
        if self.coloured && !colour.is_empty() { format!("\x1b[{colour}m{text}\x1b[0m") } else { text }
    }
}

/// One event.
#[derive(Copy, Clone, Debug)]
pub struct Happened<'e> {
    /// Position, 16 samples a millisecond.
    pub sample: Sample,
    /// Wire name.
    pub event: &'e str,
    /// dh, agent or engine.
    pub side: &'e str,
    /// Event data.
    pub data: &'e Value,
}

impl<'e> Happened<'e> {
    /// From its wire form; `None` of what is none.
    pub fn read(entry: &'e Value) -> Option<Happened<'e>> {
        Some(Happened {
            sample: entry["sample"].as_i64()?,
            event: entry["event"].as_str()?,
            side: entry["side"].as_str()?,
            data: &entry["data"],
        })
    }

    fn text(&self, key: &str) -> &'e str {
        self.data[key].as_str().unwrap_or_default()
    }

    fn number(&self, key: &str) -> Option<i64> {
        self.data[key].as_i64()
    }

    /// A figure as it is, `?` where it is not told.
    fn figure(&self, key: &str) -> String {
        if self.data[key].is_null() { "?".to_owned() } else { plain(&self.data[key]) }
    }
}

impl<'e> From<&'e TimelineEntry> for Happened<'e> {
    fn from(entry: &'e TimelineEntry) -> Happened<'e> {
        Happened { sample: entry.sample, event: &entry.event, side: &entry.side, data: &entry.data }
    }
}

/// What a line tells, which decides its colour.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// What somebody says.
    Words,
    /// What else happens.
    Act,
    /// What should not be.
    Warning,
    /// The call begins or ends.
    Turn,
    /// What is printed only on request.
    Detail,
}

impl Kind {
    fn colour(self) -> &'static str {
        match self {
            Kind::Words => "",
            Kind::Act | Kind::Detail => "2",
            Kind::Warning => "33",
            Kind::Turn => "1",
        }
    }
}

/// Makes the lines of one call, in the order of its events.
pub struct Lines {
    caller: String,
    style: Style,
    /// Running text, figures and plans too.
    verbose: bool,
    /// Digits before the conversation, whose answer is no latency.
    extension_digits: usize,
    /// Where the caller spoke or pressed keys; the last may go on.
    own: Vec<(Sample, Option<Sample>)>,
    /// Where the agent's last turn ended.
    agent_end: Sample,
}

impl Lines {
    /// The caller's name is `caller`.
    pub fn new(caller: &str, style: Style) -> Lines {
        let caller = caller.to_owned();
        Lines { caller, style, verbose: false, extension_digits: 0, own: Vec::new(), agent_end: Sample::MIN }
    }

    /// With what is left out elsewhere: running text, beginnings of speech, the network's figures, plans.
    pub fn verbose(self, verbose: bool) -> Lines {
        Lines { verbose, ..self }
    }

    /// The first digits are an extension.
    pub fn with_extension(self, extension_digits: usize) -> Lines {
        Lines { extension_digits, ..self }
    }

    /// The line of an event; `None`: it is told by another one, or only on request.
    pub fn line(&mut self, happened: Happened<'_>) -> Option<String> {
        let latency_ms = self.follow(happened);
        let (who, what, kind) = self.told(happened, latency_ms);
        if kind == Kind::Detail && !self.verbose {
            return None;
        }
        let seconds = happened.sample as f64 / PER_MS as f64 / 1000.0;
        let (name, colour) = match who {
            "dh" => (self.caller.as_str(), "36"),
            "agent" => ("agent", "32"),
            _ => ("engine", "2"),
        };
        let name = self.style.paint(format!("{name:<NAME_WIDTH$}"), colour);
        let what = self.style.paint(printable(&what), kind.colour());
        Some(format!("{seconds:9.2} s  {name}  {what}"))
    }

    /// Follows who spoke when. Answers what the agent's turn that ends took to answer, in milliseconds.
    fn follow(&mut self, happened: Happened<'_>) -> Option<f64> {
        let sound = happened.text("kind") == "probe";
        match (happened.event, happened.side) {
            ("speech.started", "dh") if !sound => self.own.push((happened.sample, None)),
            ("speech.ended", "dh") if !sound => {
                let open = self.own.iter_mut().rev().find(|(_, to)| to.is_none());
                open.into_iter().for_each(|(_, to)| *to = Some(happened.sample));
            }
            ("dtmf_sent", _) if self.extension_digits > 0 => self.extension_digits -= 1,
            ("dtmf_sent", _) => {
                let length = happened.number("duration_ms").unwrap_or_default() * PER_MS;
                self.own.push((happened.sample, Some(happened.sample + length)));
            }
            ("turn.ended", _) => return self.latency_ms(happened),
            _ => {}
        }
        let most = self.own.len().saturating_sub(OWN_MAX);
        self.own.drain(..most);
        None
    }

    fn latency_ms(&mut self, turn: Happened<'_>) -> Option<f64> {
        let from = turn.number("from_sample")?;
        let before = std::mem::replace(&mut self.agent_end, turn.number("end_sample").unwrap_or(turn.sample));
        let (_, end) = self.own.iter().rev().find(|(start, _)| *start <= from)?;
        let end = (*end).filter(|end| *end <= from && *end > before)?;
        Some((from - end) as f64 / PER_MS as f64)
    }

    /// Who, what, and of which kind.
    fn told<'h>(&self, happened: Happened<'h>, latency_ms: Option<f64>) -> (&'h str, String, Kind) {
        let Happened { event, side, .. } = happened;
        let (figure, text) = (|key: &str| happened.figure(key), |key: &str| happened.text(key));
        let (other, own) = if side == "dh" { ("agent", &*self.caller) } else { (&*self.caller, "agent") };
        let act = |what: String| (side, what, Kind::Act);
        let warning = |what: String| (side, what, Kind::Warning);
        let detail = |what: String| (side, what, Kind::Detail);
        match event {
            "call.dialing" => ("dh", format!("calls {}", text("address")), Kind::Act),
            "call.ringing" => ("agent", format!("is called, SIP {}", figure("code")), Kind::Act),
            "call.early_media" => ("agent", format!("is heard before the answer, SIP {}", figure("code")), Kind::Act),
            "call.connected" => ("agent", format!("answers{}", codec(text("codec"))), Kind::Turn),
            "call.ended" => ending(happened),
            "speech.started" if side == "dh" => detail(format!("begins: {}", text("text"))),
            "speech.started" => detail("begins to speak".into()),
            "speech.ended" if side == "dh" => said(happened),
            "speech.ended" => detail("falls silent".into()),
            "turn.ended" => heard(happened, latency_ms),
            "transcript.partial" => detail(format!("... {}", text("text"))),
            "language.taken" => act(format!("goes on in the other side's language: {}", text("language"))),
            "barge_in" => cut_in(happened, &self.caller),
            "late_turn" => warning(format!("speaks {} ms late: the words were not ready", figure("late_ms"))),
            "scripted_response" => {
                let (on, does) = (worded(text("match_type")), worded(text("response_type")));
                act(format!("scripted response {} ({on}: {does})", figure("index")))
            }
            "interruption.decided" => {
                let keyword = Some(text("keyword")).filter(|word| !word.is_empty());
                let keyword = keyword.map(|word| format!(", at the word {word}")).unwrap_or_default();
                detail(format!("decides to cut in after {} ms ({}{keyword})", figure("at_ms"), worded(text("type"))))
            }
            "silence_tool" => act(format!("stays silent for up to {} s", figure("seconds"))),
            "reprompt" => act(format!("gets no answer and asks again ({})", figure("n"))),
            "hold" => act(format!("puts the {other} on hold")),
            "unhold" => act(format!("takes the {other} off hold")),
            "transfer" => {
                let accepted = match happened.data["accepted"].as_bool() {
                    Some(true) => ": accepted",
                    Some(false) => ": refused",
                    None => "",
                };
                act(format!("hands the call on to {}{accepted}", text("to")))
            }
            "session.answered" => detail(format!("changes the session, answered with {}", figure("code"))),
            "dtmf_sent" => ("dh", keys(happened), Kind::Act),
            "dtmf_received" => ("agent", keys(happened), Kind::Act),
            "probe" => act(format!("makes a sound that asks for no answer: {}", worded(text("kind")))),
            "playback_step" => {
                let passed = happened.data["passed"].as_bool();
                let came_to = passed.map_or("", |passed| if passed { ": passed" } else { ": not passed" });
                let kind = if passed == Some(false) { Kind::Warning } else { Kind::Act };
                (side, format!("step {}{came_to}", figure("index")), kind)
            }
            "tool_call" => {
                let output = &happened.data["output"];
                let output = if output.is_null() { String::new() } else { format!(": {}", plain(output)) };
                act(format!("calls the tool {}({}){output}", text("name"), plain(&happened.data["parameters"])))
            }
            "message.sent" | "message.received" => {
                let channel = Some(text("channel")).filter(|channel| !channel.is_empty());
                let channel = channel.map(|channel| format!(" ({channel})")).unwrap_or_default();
                (side, format!("{}{channel}", text("text")), Kind::Words)
            }
            "mark" => act(told_all("mark", happened.data)),
            "suspected_echo_event" => {
                let (delay, loss) = (figure("delay_ms"), figure("erl_db"));
                warning(format!(
                    "the {own}'s side sends the {other}'s words back, {delay} ms later and {loss} dB quieter"
                ))
            }
            "rx_underrun" => warning(format!("{} ms of the agent's sound did not come", figure("duration_ms"))),
            "rx_overflow" => warning(format!("{} packets came at once and were dropped", figure("packets"))),
            "network" => {
                let (received, lost, late) = (figure("received"), figure("lost"), figure("late"));
                detail(format!(
                    "network: {received} received, {lost} lost, {late} late, jitter {} ms",
                    figure("jitter_ms")
                ))
            }
            "engine.late_frames" => ("engine", format!("{} frames were sent late", figure("count")), Kind::Warning),
            _ => (side, told_all(note(event).unwrap_or(&worded(event)), happened.data), Kind::Warning),
        }
    }
}

/// What the caller said, and how much of it.
fn said(happened: Happened<'_>) -> (&str, String, Kind) {
    let kind = match happened.text("kind") {
        "interruption" => "cuts in: ",
        "scripted" => "by the script: ",
        "reprompt" => "asks again: ",
        "filler" => "meanwhile: ",
        "probe" => return ("dh", format!("beside the conversation: {}", happened.text("text")), Kind::Detail),
        _ => "",
    };
    let cut = happened.data["interrupted"] == true;
    let what = match (happened.text("text"), cut) {
        ("", true) => format!("{kind}[stops before a word is said]"),
        ("", false) => return ("dh", "ends".into(), Kind::Detail),
        (text, true) => format!("{kind}{text} -- [stops here]"),
        (text, false) => format!("{kind}{text}"),
    };
    ("dh", what, Kind::Words)
}

/// What was heard of the agent's turn, and what was not.
fn heard(happened: Happened<'_>, latency_ms: Option<f64>) -> (&str, String, Kind) {
    let mut what = happened.text("text").to_owned();
    let missing = Some(happened.text("text_missing")).filter(|why| !why.is_empty());
    let not_heard = match (what.is_empty(), missing) {
        (true, Some(why)) => format!("[words not known: {}]", missing_words(why)),
        (true, None) => "[words not known]".into(),
        (false, Some(why)) => format!(" [further words not known: {}]", missing_words(why)),
        (false, None) => String::new(),
    };
    what.push_str(&not_heard);
    if happened.data["text_late"] == true {
        what.push_str(" [answered before the words were known]");
    }
    match happened.number("concealed_ms") {
        Some(ms) if ms > 0 => _ = write!(what, " [{ms} ms of the sound did not come]"),
        _ => {}
    }
    if let Some(ms) = latency_ms {
        let _ = write!(what, "  (latency {} ms)", whole_ms(ms));
    }
    ("agent", what, if not_heard.is_empty() { Kind::Words } else { Kind::Warning })
}

/// Why words of a turn are not known.
fn missing_words(code: &str) -> String {
    match code {
        "no_recognizer" => "no recognizer".into(),
        "recognizer_late" => "the recognizer was late".into(),
        "not_understood" => "not understood".into(),
        code => worded(code),
    }
}

fn cut_in<'h>(happened: Happened<'h>, caller: &str) -> (&'h str, String, Kind) {
    let (by, other) = if happened.text("by") == "agent" { ("agent", caller) } else { ("dh", "agent") };
    let what = match happened.number("stop_ms") {
        Some(ms) => format!("cuts in; {other} is silent after {ms} ms"),
        None => format!("cuts in; {other} does not fall silent for it"),
    };
    (by, what, Kind::Act)
}

fn keys(happened: Happened<'_>) -> String {
    let method = match happened.text("method") {
        "rtp_event" => " (telephone event)".into(),
        "inband" => " (tones)".into(),
        "info" => " (SIP INFO)".into(),
        "" => String::new(),
        other => format!(" ({})", worded(other)),
    };
    format!("presses {}{method}", happened.text("digits"))
}

fn codec(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(", codec {name}") }
}

fn ending(happened: Happened<'_>) -> (&str, String, Kind) {
    let who = by(happened.text("by")).unwrap_or(happened.side);
    let mut what = format!("ends the call: {}", reason(happened.text("reason")));
    for (key, name) in [("sip_code", "SIP"), ("q850_cause", "Q.850 cause"), ("close_code", "close code")] {
        if let Some(code) = happened.number(key) {
            let _ = write!(what, ", {name} {code}");
        }
    }
    (who, what, Kind::Turn)
}

/// The side that an ending names.
fn by(name: &str) -> Option<&'static str> {
    match name {
        "AGENT" => Some("agent"),
        "USER" => Some("dh"),
        "engine" => Some("engine"),
        _ => None,
    }
}

/// Why a call ended, for a person, with its code.
pub fn reason(code: &str) -> String {
    let why = match code {
        "dh_end_call" => "the caller is done",
        "hangup_phrase" => "a hang-up phrase was said",
        "silence_timeout" => "silence for too long",
        "inactivity_timeout" => "nothing happened for too long",
        "max_duration" => "the longest duration is over",
        "max_turns" => "the most turns are over",
        "agent_hangup" => "the agent hung up",
        "transfer" => "the agent handed it on",
        "api_hangup" => "told to hang up",
        "playback_end" => "the last step is over",
        "rejected" => "refused or busy",
        "no_answer" => "not answered",
        "dial_failed" => "it could not be set up",
        "media_timeout" => "no more sound came",
        "cancelled" => "cancelled before the answer",
        "shutdown" => "the engine stops",
        "fault" => "a fault of the engine",
        "" => return "the reason is not told".into(),
        code => return worded(code),
    };
    format!("{why} ({code})")
}

/// What a note of the mind, a provider or the transport means.
fn note(code: &str) -> Option<&'static str> {
    Some(match code {
        "late_first_token" => "the language model's first words are late",
        "fallback_speaker" => "the built-in speaker answers in place of the language model",
        "meaning_late" => "what the turn means was told too late",
        "meaning_not_told" => "nobody tells what the turn means",
        "recognizer_late" => "the recognizer is late",
        "synthesizer_failed" => "the synthesizer failed",
        "dtmf_info_refused" => "the other side refuses keys by SIP INFO",
        "codec_change_not_followed" => "the other side changes the codec, and is not followed",
        "probe_not_ready" => "a sound that asks for no answer was not ready",
        "probe_words_do_not_fit" => "no words of a sound that asks for no answer fit its time",
        "email_sender_rejected" => "an email of an unknown sender is left out",
        "email_unthreaded" => "an email belongs to no conversation",
        "agent_error" => "the agent failed",
        _ => return None,
    })
}

/// An event with all of its fields.
fn told_all(name: &str, data: &Value) -> String {
    let fields = data.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    let one = |(key, value): (&String, &Value)| match key.as_str() {
        "message" | "text" => plain(value),
        key => format!("{} {}", worded(key), plain(value)),
    };
    let fields: Vec<String> = fields.map(one).collect();
    if fields.is_empty() { name.to_owned() } else { format!("{name}: {}", fields.join(", ")) }
}

/// A wire name as words.
fn worded(name: &str) -> String {
    name.replace(['_', '.'], " ")
}

/// A value without quotes and braces, cut where it is long.
fn plain(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            let fields: Vec<String> = fields.map(|(key, value)| format!("{key}: {}", plain(value))).collect();
            fields.join(", ")
        }
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        value => value.to_string(),
    };
    match text.char_indices().nth(VALUE_MAX) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    }
}

/// One line of letters that move nothing on a terminal.
fn printable(text: &str) -> String {
    let moves = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let one = |c: char| match c {
        c if c.is_whitespace() => ' ',
        c if c.is_control() || moves(c) => '\u{fffd}',
        c => c,
    };
    text.chars().map(one).collect()
}

/// Returns a time of whole samples, in ms, to the nearest ms; the noise of its arithmetic decides no tie.
fn whole_ms(ms: f64) -> String {
    let samples = (ms * PER_MS as f64).round();
    format!("{:.0}", samples / PER_MS as f64)
}

/// Latencies as a list.
pub fn latencies(all_ms: &[f64]) -> String {
    let list: Vec<String> = all_ms.iter().map(|ms| whole_ms(*ms)).collect();
    match list.is_empty() {
        true => "latency of the agent's turns: none answered the caller".into(),
        false => format!("latency of the agent's turns: {} ms", list.join(", ")),
    }
}

/// How often each side cut in.
pub fn interruptions<'v>(events: impl Iterator<Item = Happened<'v>>, caller: &str) -> String {
    let (mut own, mut agents) = (0, 0);
    for cut in events.filter(|happened| happened.event == "barge_in") {
        *if cut.text("by") == "dh" { &mut own } else { &mut agents } += 1;
    }
    format!("interruptions: {own} by {caller}, {agents} by the agent")
}

#[cfg(test)]
mod tests;
