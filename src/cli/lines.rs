//! Events of a timeline as lines for a person: when, who, what.

use std::fmt::Write as _;

use ringer_media::call::{ChannelEvent, Event, EventKind, Kind as Said, Side, TimelineEntry, ToolCall};
use ringer_media::frame::{PER_MS, Sample};
use serde_json::Value;

/// Columns of the name.
const NAME_WIDTH: usize = 7;
/// Letters of a value that is no words.
const VALUE_MAX: usize = 200;
/// Stretches of the caller's speech that are remembered, to tell what a turn of the agent answers.
const OWN_MAX: usize = 64;

/// Style of printed lines: with or without colours.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    coloured: bool,
}

impl Style {
    /// Style of lines without colours.
    #[cfg(test)]
    const PLAIN: Style = Style { coloured: false };

    /// Returns coloured lines on a `terminal`, unless something forbids colours there.
    pub(crate) fn of(terminal: bool) -> Style {
        Style { coloured: terminal && crate::config::colours() }
    }

    fn paint(self, text: String, colour: &str) -> String {
        if self.coloured && !colour.is_empty() { format!("\x1b[{colour}m{text}\x1b[0m") } else { text }
    }
}

/// Kind of a line, which decides its colour.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// Words that a side says.
    Words,
    /// Any other event of a side.
    Act,
    /// Warning of a fault or a loss.
    Warning,
    /// The call begins or ends.
    Turn,
    /// Detail that is printed only on request.
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
pub(crate) struct Lines {
    caller: String,
    style: Style,
    /// True if running text, figures and plans are printed too.
    verbose: bool,
    /// Digits before the conversation, whose answer is no latency.
    extension_digits: usize,
    /// Spans in which the caller spoke or pressed digits; the last may still be open.
    own: Vec<(Sample, Option<Sample>)>,
    /// Position at which the agent's last turn ended.
    agent_end: Sample,
}

impl Lines {
    /// Returns lines that name the caller `caller`.
    pub(crate) fn new(caller: &str, style: Style) -> Lines {
        let caller = caller.to_owned();
        Lines { caller, style, verbose: false, extension_digits: 0, own: Vec::new(), agent_end: Sample::MIN }
    }

    /// Returns lines that also show running text, beginnings of speech, figures of the network and plans.
    pub(crate) fn verbose(self, verbose: bool) -> Lines {
        Lines { verbose, ..self }
    }

    /// Returns the lines with the first digits taken as an extension.
    pub(crate) fn with_extension(self, extension_digits: usize) -> Lines {
        Lines { extension_digits, ..self }
    }

    /// Returns the line of an event; `None`: it is told by another one, or only on request.
    pub(crate) fn line(&mut self, event: &Event) -> Option<String> {
        let latency_ms = self.follow(event);
        let (who, what, kind) = self.line_of(event, latency_ms);
        if kind == Kind::Detail && !self.verbose {
            return None;
        }
        let seconds = event.sample as f64 / PER_MS as f64 / 1000.0;
        let (name, colour) = match who {
            Side::Dh => (self.caller.as_str(), "36"),
            Side::Agent => ("agent", "32"),
            Side::Engine => ("engine", "2"),
        };
        let name = self.style.paint(format!("{name:<NAME_WIDTH$}"), colour);
        let what = self.style.paint(printable(&what), kind.colour());
        Some(format!("{seconds:9.2} s  {name}  {what}"))
    }

    /// Follows who spoke when. Answers what the agent's turn that ends took to answer, in milliseconds.
    fn follow(&mut self, event: &Event) -> Option<f64> {
        match event.reading() {
            EventKind::SpeechStarted { kind: Said::Probe, .. } | EventKind::SpeechEnded { kind: Said::Probe, .. } => {}
            EventKind::SpeechStarted { .. } => self.own.push((event.sample, None)),
            EventKind::SpeechEnded { .. } => {
                let open = self.own.iter_mut().rev().find(|(_, to)| to.is_none());
                open.into_iter().for_each(|(_, to)| *to = Some(event.sample));
            }
            EventKind::DtmfSent { .. } if self.extension_digits > 0 => self.extension_digits -= 1,
            EventKind::DtmfSent { duration_ms, .. } => {
                let length = i64::from(*duration_ms) * PER_MS;
                self.own.push((event.sample, Some(event.sample + length)));
            }
            EventKind::TurnEnded { from_sample, end_sample, .. }
            | EventKind::TurnWritten { from_sample, end_sample, .. } => {
                return self.latency_ms(*from_sample, *end_sample);
            }
            _ => {}
        }
        let most = self.own.len().saturating_sub(OWN_MAX);
        self.own.drain(..most);
        None
    }

    fn latency_ms(&mut self, from: Sample, turn_end: Sample) -> Option<f64> {
        let before = std::mem::replace(&mut self.agent_end, turn_end);
        let (_, end) = self.own.iter().rev().find(|(start, _)| *start <= from)?;
        let end = (*end).filter(|end| *end <= from && *end > before)?;
        Some((from - end) as f64 / PER_MS as f64)
    }

    /// Returns the side, the text and the kind of an event's line.
    fn line_of(&self, event: &Event, latency_ms: Option<f64>) -> (Side, String, Kind) {
        let side = event.side;
        let act = |what: String| (side, what, Kind::Act);
        let warning = |what: String| (side, what, Kind::Warning);
        let detail = |what: String| (side, what, Kind::Detail);
        match event.reading() {
            EventKind::Dialing { address } => (Side::Dh, format!("calls {address}"), Kind::Act),
            EventKind::Ringing { code, .. } => (Side::Agent, format!("is called, SIP {code}"), Kind::Act),
            EventKind::EarlyMedia { code, .. } => {
                (Side::Agent, format!("is heard before the answer, SIP {code}"), Kind::Act)
            }
            EventKind::Ready => (Side::Agent, "can speak from here on".to_owned(), Kind::Detail),
            EventKind::Connected { codec: name, .. } => (Side::Agent, format!("answers{}", codec(name)), Kind::Turn),
            EventKind::Ended { by: who, .. } => (by(who).unwrap_or(side), ending(event), Kind::Turn),
            EventKind::SpeechStarted { text, .. } => detail(format!("begins: {text}")),
            EventKind::AgentSpeechStarted { .. } => detail("begins to speak".into()),
            EventKind::SpeechEnded { text, kind, interrupted, .. } => {
                said_line(text.voiced_text(), *kind, *interrupted)
            }
            EventKind::AgentSpeechEnded { .. } => detail("falls silent".into()),
            EventKind::TurnEnded { text, missing, late, concealed_ms, .. } => {
                heard_line(text, missing.as_deref(), *late, *concealed_ms, latency_ms)
            }
            EventKind::TurnWritten { text, .. } => heard_line(text, None, false, 0, latency_ms),
            EventKind::TranscriptPartial { text } => detail(format!("... {text}")),
            EventKind::LanguageTaken { language, .. } => {
                act(format!("goes on in the other side's language: {language}"))
            }
            EventKind::BargeIn { by, stop_ms, .. } => cut_in(*by, *stop_ms, &self.caller),
            EventKind::LateTurn { late_ms, .. } => {
                warning(format!("speaks {late_ms} ms late: the words were not ready"))
            }
            EventKind::ScriptedResponse { index, match_type, response_type } => {
                act(format!("scripted response {index} ({}: {})", in_words(match_type), in_words(response_type)))
            }
            EventKind::InterruptionDecided { kind, at_ms, keyword, .. } => {
                let keyword = keyword.as_deref().filter(|word| !word.is_empty());
                let keyword = keyword.map(|word| format!(", at the word {word}")).unwrap_or_default();
                detail(format!("decides to cut in after {at_ms} ms ({}{keyword})", in_words(kind)))
            }
            EventKind::SilenceTool { seconds } => act(format!("stays silent for up to {seconds} s")),
            EventKind::Reprompt { n } => act(format!("gets no answer and asks again ({n})")),
            EventKind::DtmfSent { digit, method, .. } => (Side::Dh, press(*digit, method), Kind::Act),
            EventKind::DtmfReceived { digit, method, .. } => (Side::Agent, press(*digit, method), Kind::Act),
            EventKind::LineTone { kind, frequency_hz, .. } => {
                act(format!("a tone of the line: {} ({frequency_hz} Hz)", in_words(kind.name())))
            }
            EventKind::AnsweringMachine { beep_ms, .. } => {
                act(format!("sounds like an answering machine: a beep of {beep_ms} ms after speech"))
            }
            EventKind::Probe { kind } => {
                act(format!("makes a sound that asks for no answer: {}", in_words(kind.name())))
            }
            EventKind::PlaybackStep { index, passed } => {
                let came_to = passed.map_or("", |passed| if passed { ": passed" } else { ": not passed" });
                let kind = if *passed == Some(false) { Kind::Warning } else { Kind::Act };
                (side, format!("step {index}{came_to}"), kind)
            }
            EventKind::ToolCall(call) => act(tool_call(call)),
            EventKind::MessageSent { text, channel, .. } | EventKind::MessageReceived { text, channel, .. } => {
                let channel = channel.as_deref().filter(|channel| !channel.is_empty());
                let channel = channel.map(|channel| format!(" ({channel})")).unwrap_or_default();
                (side, format!("{text}{channel}"), Kind::Words)
            }
            EventKind::Note { .. } => warning(told_all(event)),
            EventKind::Unknown(unknown) if unknown.event == "mark" => act(told_all(event)),
            EventKind::Unknown(_) => warning(told_all(event)),
            _ => self.of_session(event),
        }
    }

    /// Returns side, words and kind of an event about the session and its network.
    fn of_session(&self, event: &Event) -> (Side, String, Kind) {
        let side = event.side;
        let (other, own) = if side == Side::Dh { ("agent", &*self.caller) } else { (&*self.caller, "agent") };
        let act = |what: String| (side, what, Kind::Act);
        let warning = |what: String| (side, what, Kind::Warning);
        let detail = |what: String| (side, what, Kind::Detail);
        match event.reading() {
            EventKind::Channel(channel_event) => channel_line(channel_event).unwrap_or_else(|| detail(told_all(event))),
            EventKind::Held => act(format!("puts the {other} on hold")),
            EventKind::Unheld => act(format!("takes the {other} off hold")),
            EventKind::Transfer { to, accepted } => {
                act(format!("hands the call on to {to}: {}", if *accepted { "accepted" } else { "refused" }))
            }
            EventKind::Transferred { to, outcome, code } => (
                Side::Engine,
                match &**outcome {
                    "answered" => format!("{to} took the call over"),
                    _ => format!("{to} did not take the call over: {} ({code})", outcome.replace('_', " ")),
                },
                Kind::Act,
            ),
            EventKind::SessionAnswered { code } => detail(format!("changes the session, answered with {code}")),
            EventKind::Echo(echo) => {
                let (delay_ms, loss_db) = (figure(echo.delay_ms), figure(echo.erl_db));
                warning(format!(
                    "the {own}'s side sends the {other}'s words back, {delay_ms} ms later and {loss_db} dB quieter"
                ))
            }
            EventKind::RxUnderrun { duration_ms } => {
                warning(format!("{duration_ms} ms of the agent's sound did not come"))
            }
            EventKind::RxOverflow { packets } => warning(format!("{packets} packets came at once and were dropped")),
            EventKind::Network { received, lost, late, jitter_ms } => {
                let jitter_ms = figure(*jitter_ms);
                detail(format!("network: {received} received, {lost} lost, {late} late, jitter {jitter_ms} ms"))
            }
            EventKind::LateFrames { count } => (Side::Engine, format!("{count} frames were sent late"), Kind::Warning),
            _ => detail(String::new()),
        }
    }
}

/// Returns the line of an event that the channel tells; `None`: it has no words of its own.
fn channel_line(channel_event: &ChannelEvent) -> Option<(Side, String, Kind)> {
    let ChannelEvent::Other { name, data } = channel_event else { return None };
    let text = |field: &str| data[field].as_str().filter(|text| !text.is_empty()).unwrap_or("unknown");
    let (side, words) = match &**name {
        "room_joined" => {
            let (room, version, flow) = (text("room"), text("server_version"), text("flow"));
            (Side::Dh, format!("is in the room {room} (version of the server: {version}; {flow})"))
        }
        "agent_joined" => (Side::Agent, format!("is {}", text("identity"))),
        "agent_rejoined" => {
            let gap = data["gap_ms"].as_f64().map(|gap_ms| format!(", after {:.2} s", gap_ms / 1000.0));
            (Side::Agent, format!("is back in the room{}", gap.unwrap_or_default()))
        }
        "agent_changed" => (Side::Agent, format!("is {} from now on, in place of {}", text("identity"), text("from"))),
        "agent_state" => return Some((Side::Agent, format!("is in the state {}", text("state")), Kind::Detail)),
        "connection_restarts" => {
            let line = format!("the connection is lost and is taken up again: {}", text("why"));
            return Some((Side::Engine, line, Kind::Warning));
        }
        "connection_restarted" => (Side::Engine, "the connection is back".to_owned()),
        _ => return None,
    };
    Some((side, words, Kind::Act))
}

/// Returns the line of the caller's words, marked where they were cut off.
fn said_line(text: &str, kind: Said, cut: bool) -> (Side, String, Kind) {
    let kind = match kind {
        Said::Interruption => "cuts in: ",
        Said::Scripted => "by the script: ",
        Said::Reprompt => "asks again: ",
        Said::Filler => "meanwhile: ",
        Said::Probe => return (Side::Dh, format!("beside the conversation: {text}"), Kind::Detail),
        Said::Turn | Said::Opening => "",
    };
    let what = match (text, cut) {
        ("", true) => format!("{kind}[stops before a word is said]"),
        ("", false) => return (Side::Dh, "ends".into(), Kind::Detail),
        (text, true) => format!("{kind}{text} -- [stops here]"),
        (text, false) => format!("{kind}{text}"),
    };
    (Side::Dh, what, Kind::Words)
}

/// Returns the line of the agent's turn, with notes on words that are not known.
fn heard_line(
    text: &str,
    missing: Option<&str>,
    late: bool,
    concealed_ms: u64,
    latency_ms: Option<f64>,
) -> (Side, String, Kind) {
    let mut what = text.to_owned();
    let not_heard = match (what.is_empty(), missing.filter(|why| !why.is_empty())) {
        (true, Some(why)) => format!("[words not known: {}]", missing_words(why)),
        (true, None) => "[words not known]".into(),
        (false, Some(why)) => format!(" [further words not known: {}]", missing_words(why)),
        (false, None) => String::new(),
    };
    what.push_str(&not_heard);
    if late {
        what.push_str(" [answered before the words were known]");
    }
    if concealed_ms > 0 {
        let _ = write!(what, " [{concealed_ms} ms of the sound did not come]");
    }
    if let Some(ms) = latency_ms {
        let _ = write!(what, "  (latency {} ms)", whole_ms(ms));
    }
    (Side::Agent, what, if not_heard.is_empty() { Kind::Words } else { Kind::Warning })
}

/// Returns the reason why words of a turn are not known, from its code.
fn missing_words(code: &str) -> String {
    match code {
        "no_recognizer" => "no recognizer".into(),
        "recognizer_late" => "the recognizer was late".into(),
        "not_understood" => "not understood".into(),
        code => in_words(code),
    }
}

fn cut_in(by: Side, stop_ms: Option<u32>, caller: &str) -> (Side, String, Kind) {
    let (by, other) = if by == Side::Agent { (by, caller) } else { (Side::Dh, "agent") };
    let what = match stop_ms {
        Some(ms) => format!("cuts in; {other} is silent after {ms} ms"),
        None => format!("cuts in; {other} does not fall silent for it"),
    };
    (by, what, Kind::Act)
}

fn press(digit: char, method: &str) -> String {
    let method = match method {
        "rtp_event" => " (telephone event)".into(),
        "inband" => " (tones)".into(),
        "info" => " (SIP INFO)".into(),
        "" => String::new(),
        other => format!(" ({})", in_words(other)),
    };
    format!("presses {digit}{method}")
}

fn codec(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(", codec {name}") }
}

/// Returns the line of a call's end, with reason and codes.
fn ending(event: &Event) -> String {
    let data = event.data();
    let mut what = format!("ends the call: {}", reason(data["reason"].as_str().unwrap_or_default()));
    for (key, name) in [("sip_code", "SIP"), ("q850_cause", "Q.850 cause"), ("close_code", "close code")] {
        if let Some(code) = data[key].as_i64() {
            let _ = write!(what, ", {name} {code}");
        }
    }
    what
}

/// Returns the side that an ending names.
fn by(name: &str) -> Option<Side> {
    match name {
        "AGENT" => Some(Side::Agent),
        "USER" => Some(Side::Dh),
        "engine" => Some(Side::Engine),
        _ => None,
    }
}

/// Returns the reason of a call's end for display, with its code.
pub(crate) fn reason(code: &str) -> String {
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
        "usage_limit" => "the minutes are used up",
        "playback_end" => "the last step is over",
        "rejected" => "refused or busy",
        "no_answer" => "not answered",
        "dial_failed" => "it could not be set up",
        "media_timeout" => "no more sound came",
        "connection_lost" => "the connection to the agent broke",
        "session_expired" => "the agent's side did not refresh the session",
        "cancelled" => "cancelled before the answer",
        "shutdown" => "the engine stops",
        "fault" => "a fault of the engine",
        "" => return "the reason is not told".into(),
        code => return in_words(code),
    };
    format!("{why} ({code})")
}

/// Returns the meaning of a note's code; `None` for an unknown code.
fn note(code: &str) -> Option<&'static str> {
    Some(match code {
        "late_first_token" => "the language model's first words are late",
        "fallback_speaker" => "the built-in speaker answers in place of the language model",
        "rare_words" => "a beginner says rare words, for which the language model had no others",
        "meaning_late" => "what the turn means was told too late",
        "meaning_not_told" => "nobody tells what the turn means",
        "recognizer_late" => "the recognizer is late",
        "synthesizer_failed" => "the synthesizer failed",
        "dtmf_info_refused" => "the other side refuses keys by SIP INFO",
        "codec_change_not_followed" => "the other side changes the codec, and is not followed",
        "speech_under_tone" => "the agent began to speak under a tone",
        "probe_not_ready" => "a sound that asks for no answer was not ready",
        "probe_words_do_not_fit" => "no words of a sound that asks for no answer fit its time",
        "email_sender_rejected" => "an email of an unknown sender is left out",
        "email_unthreaded" => "an email names no mail that it answers",
        "email_automatic" => "an email of a program is no turn",
        "email_attachment" => "an email has a file",
        "email_delayed" => "an email is not delivered yet",
        "email_unconfirmed" => "an email may not have been taken",
        "agent_error" => "the agent failed",
        _ => return None,
    })
}

/// Returns an event with all of its fields.
fn told_all(event: &Event) -> String {
    let (data, worded_name) = (event.data(), in_words(event.name()));
    let name = note(event.name()).unwrap_or(&worded_name);
    let fields = data.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    let one = |(key, value): (&String, &Value)| match key.as_str() {
        "message" | "text" => plain(value),
        key => format!("{} {}", in_words(key), plain(value)),
    };
    let fields: Vec<String> = fields.map(one).collect();
    if fields.is_empty() { name.to_owned() } else { format!("{name}: {}", fields.join(", ")) }
}

/// Returns the name of an event as words.
fn in_words(name: &str) -> String {
    name.replace(['_', '.'], " ")
}

/// Returns a value without quotes and braces, cut where it is long.
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

/// Returns one line of letters that move nothing on a terminal.
fn printable(text: &str) -> String {
    let moves = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let one = |c: char| match c {
        c if c.is_whitespace() => ' ',
        c if c.is_control() || moves(c) => '\u{fffd}',
        c => c,
    };
    text.chars().map(one).collect()
}

/// Returns a figure, to three decimals.
fn figure(value: f64) -> String {
    Value::from((value * 1000.0).round() / 1000.0).to_string()
}

/// Returns a time of whole samples, in ms, to the nearest ms; the noise of its arithmetic decides no tie.
fn whole_ms(ms: f64) -> String {
    let samples = (ms * PER_MS as f64).round();
    format!("{:.0}", samples / PER_MS as f64)
}

/// Latencies as a list.
pub(crate) fn latencies(all_ms: &[f64]) -> String {
    let list: Vec<String> = all_ms.iter().map(|ms| whole_ms(*ms)).collect();
    match list.is_empty() {
        true => "latency of the agent's turns: none answered the caller".into(),
        false => format!("latency of the agent's turns: {} ms", list.join(", ")),
    }
}

/// Returns a line with the number of interruptions by each side.
pub(crate) fn interruptions(timeline: &[TimelineEntry], caller: &str) -> String {
    let (mut own, mut agents) = (0, 0);
    for entry in timeline {
        if let EventKind::BargeIn { by, .. } = entry.reading() {
            *if *by == Side::Dh { &mut own } else { &mut agents } += 1;
        }
    }
    format!("interruptions: {own} by {caller}, {agents} by the agent")
}

/// Returns the words for a call of a tool, with its output.
fn tool_call(call: &ToolCall) -> String {
    let output = match &call.output {
        Value::Null => String::new(),
        output => format!(": {}", plain(output)),
    };
    format!("calls the tool {}({}){output}", call.name, plain(&call.parameters))
}

#[cfg(test)]
mod tests;
