//! Events, errors and warnings that a port tells of the other side, and its report at the end of the call besides the
//! end itself.

use ringer_media::call::{AUDIO_NOT_PLAYED, ChannelEvent, Event, EventKind, Signal};
use ringer_media::frame::PER_MS;
use serde_json::{Value, json};

use super::{MAX_DATA, PortOutput, SessionControl, State, WebSocketPort};
use crate::peer::AgentError;
use crate::websocket::Kind;
use crate::websocket::protobuf::PROTOBUF_FRAMES;

/// Code of audio in a message of JSON that cannot be decoded.
const BAD_BASE64: &str = "BAD_BASE64";

/// Most errors of the other side that are kept with the result.
const MAX_ERRORS: usize = 100;
/// Sound that may be unplayed at the end without a word about it: 300 ms. A sender may be 200 ms ahead, and playing
/// takes time.
const UNPLAYED: u64 = 300 * PER_MS as u64;
/// Most characters of an error's code, and of its message.
const ERROR_CHARS: usize = 500;

/// Messages of the other side that broke the rules of the dialect.
#[derive(Debug, Default)]
pub(super) struct Refused {
    /// Number of messages that were dropped, by code.
    counts: Vec<(&'static str, u32)>,
    /// Code of the first one, whether it was dropped or not.
    first: Option<&'static str>,
}

impl Refused {
    /// Counts a message by the code of its fault.
    pub(super) fn count(&mut self, code: &'static str, is_refused: bool) {
        self.first.get_or_insert(code);
        if !is_refused {
            return;
        }
        match self.counts.iter_mut().find(|(known, _)| *known == code) {
            Some((_, count)) => *count += 1,
            None => self.counts.push((code, 1)),
        }
    }

    /// Returns one warning about all of them, at the end of a call with `dialect`; `None` when there is nothing to
    /// tell.
    fn warning(&self, dialect: &str, has_audio: bool) -> Option<String> {
        let all: u32 = self.counts.iter().map(|(_, count)| count).sum();
        let noun = if all == 1 { "message" } else { "messages" };
        let codes = match &self.counts[..] {
            [(code, _)] => (*code).to_owned(),
            several => several.iter().map(|(code, count)| format!("{code} in {count}")).collect::<Vec<_>>().join(", "),
        };
        let refused = (all > 0).then(|| format!("{all} {noun} refused, {codes}"));
        let doubt = match self.first? {
            PROTOBUF_FRAMES => Some(format!("its binary messages are frames of {}", Kind::PipecatProtobuf.name())),
            // Only audio of the dialect is coded like that.
            BAD_BASE64 => None,
            _ if !has_audio => Some("no message held audio of it".to_owned()),
            _ => None,
        };
        let doubt = doubt.map(|why| format!("does the agent speak the dialect {dialect}? {why}"));
        (refused.is_some() || doubt.is_some()).then(|| refused.into_iter().chain(doubt).collect::<Vec<_>>().join("; "))
    }
}

impl WebSocketPort {
    pub(super) fn keep_error(&mut self, code: String, message: String) {
        let short = |text: String| text.chars().take(ERROR_CHARS).collect::<String>();
        let (code, message) = (short(code), short(message));
        if self.errors.len() < MAX_ERRORS {
            let at_ms = self.facts.epoch_ms + (self.now.since(self.facts.at).as_millis() as i64);
            self.errors.push(AgentError { code: code.clone(), message: message.clone(), at_ms });
        }
        self.tell(ChannelEvent::Error { code, message }, false);
    }

    pub(super) fn tell_tool(&mut self, name: String, parameters: Value, output: Value) {
        let short =
            |data: Value| if data.to_string().len() > MAX_DATA { json!({ "dropped": "too long" }) } else { data };
        let (parameters, output) = (short(parameters), short(output));
        let name = name.chars().take(ERROR_CHARS).collect::<String>().into();
        let source = self.dialect.kind.name().into();
        self.tell(ChannelEvent::ToolCalled { name, parameters, output, source, at_ms: None }, false);
    }

    pub(super) fn tell_other(&mut self, name: &'static str, data: Value) {
        let data = if data.to_string().len() > MAX_DATA { json!({ "dropped": "too long" }) } else { data };
        self.tell(ChannelEvent::Other { name: name.into(), data }, false);
    }

    /// Tells how much of the other side's sound waits to be played, and never will be: the other side ends the call.
    pub(super) fn tell_unplayed(&mut self) {
        let samples = self.session.unplayed_sound();
        if samples > UNPLAYED {
            let unplayed_ms = samples / PER_MS as u64;
            let seconds = unplayed_ms as f64 / 1000.0;
            let text =
                format!("{seconds:.1} s of the agent's audio were sent and not played, as the carrier would cut them");
            self.out.push_back(PortOutput::Warning(text));
            self.tell_always(AUDIO_NOT_PLAYED, json!({ "unplayed_ms": unplayed_ms }));
        }
    }

    /// Takes an event of the call, of which the server of a platform tells its client the words.
    pub fn own_event(&mut self, event: &Event) {
        let control = match &event.what {
            _ if self.dialect.far.is_none() || self.state != State::Open => return,
            EventKind::SpeechStarted { text, .. } => SessionControl::Words(text.to_string()),
            EventKind::SpeechEnded { text, interrupted: true, .. } => SessionControl::Cut(text.to_string()),
            _ => return,
        };
        self.session.control(self.now, control);
        self.drain();
    }

    /// Tells of something that this side found out.
    pub(super) fn tell_always(&mut self, name: &'static str, data: Value) {
        let event = ChannelEvent::Other { name: name.into(), data };
        self.signal(Signal::Channel { event, follows_own: false });
    }

    /// Returns the errors that the other side told of.
    pub fn agent_errors(&self) -> &[AgentError] {
        &self.errors
    }

    /// Returns the values that the agent handed over at the end.
    pub fn variables(&self) -> Option<&Value> {
        self.variables.as_ref()
    }

    /// Returns the warning about the other side's messages that were refused; `None` when none was.
    pub fn refused_warning(&self) -> Option<String> {
        self.refused.warning(self.dialect.name(), self.session.has_heard_audio())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_messages_are_one_warning() {
        for (codes, expect) in [
            (&[][..], None),
            (&["NOT_JSON"], Some("1 message refused, NOT_JSON")),
            (&["NO_TYPE", "NO_TYPE"], Some("2 messages refused, NO_TYPE")),
            (&["NO_TYPE", "NOT_JSON", "NO_TYPE"], Some("3 messages refused, NO_TYPE in 2, NOT_JSON in 1")),
        ] {
            let mut refused = Refused::default();
            codes.iter().for_each(|code| refused.count(code, true));
            assert_eq!(refused.warning(Kind::Default.name(), true).as_deref(), expect);
            let doubt = "; does the agent speak the dialect default? no message held audio of it";
            let expect = expect.map(|expect| format!("{expect}{doubt}"));
            assert_eq!(refused.warning(Kind::Default.name(), false), expect, "nothing that was said could be heard");
        }
        let mut deviating = Refused::default();
        deviating.count("UNKNOWN_TYPE", false);
        assert_eq!(deviating.warning(Kind::Default.name(), true), None, "what is played all the same is an event");
    }
}
