//! JSON form of events: names and data of the timeline.

use serde::ser::{Serialize, SerializeStruct, Serializer};
use serde_json::{Value, json};

use super::event::{Event, EventKind, TimelineEntry, Word};
use crate::frame::{PER_MS, Sample};

impl Event {
    /// Names of all events but notes, whose names are their codes.
    pub const NAMES: [&str; 42] = [
        "call.dialing",
        "call.ringing",
        "call.early_media",
        "call.ready",
        "call.connected",
        "call.ended",
        "speech.started",
        "speech.ended",
        "turn.ended",
        "language.taken",
        "transcript.partial",
        "barge_in",
        "late_turn",
        "scripted_response",
        "interruption.decided",
        "silence_tool",
        "reprompt",
        "dtmf_sent",
        "dtmf_received",
        "session.answered",
        "hold",
        "unhold",
        "transfer",
        "transferred",
        "probe",
        "line_tone",
        "answering_machine",
        "network",
        "suspected_echo_event",
        "rx_underrun",
        "rx_overflow",
        "engine.late_frames",
        "message.sent",
        "message.received",
        "tool_call",
        "playback_step",
        "agent_speech_event",
        "agent_reported",
        "agent_cleared",
        "agent_error",
        "dialect_violation",
        "channel_event",
    ];

    /// Returns the name of the event in timelines.
    pub fn name(&self) -> &str {
        match &self.what {
            EventKind::Dialing { .. } => "call.dialing",
            EventKind::Ringing { .. } => "call.ringing",
            EventKind::EarlyMedia { .. } => "call.early_media",
            EventKind::Ready => "call.ready",
            EventKind::Connected { .. } => "call.connected",
            EventKind::Ended { .. } => "call.ended",
            EventKind::SpeechStarted { .. } | EventKind::AgentSpeechStarted { .. } => "speech.started",
            EventKind::SpeechEnded { .. } | EventKind::AgentSpeechEnded { .. } => "speech.ended",
            EventKind::TurnEnded { .. } | EventKind::TurnWritten { .. } => "turn.ended",
            EventKind::LanguageTaken { .. } => "language.taken",
            EventKind::TranscriptPartial { .. } => "transcript.partial",
            EventKind::BargeIn { .. } => "barge_in",
            EventKind::LateTurn { .. } => "late_turn",
            EventKind::ScriptedResponse { .. } => "scripted_response",
            EventKind::InterruptionDecided { .. } => "interruption.decided",
            EventKind::SilenceTool { .. } => "silence_tool",
            EventKind::Reprompt { .. } => "reprompt",
            EventKind::DtmfSent { .. } => "dtmf_sent",
            EventKind::DtmfReceived { .. } => "dtmf_received",
            EventKind::SessionAnswered { .. } => "session.answered",
            EventKind::Held => "hold",
            EventKind::Unheld => "unhold",
            EventKind::Transfer { .. } => "transfer",
            EventKind::Transferred { .. } => "transferred",
            EventKind::Probe { .. } => "probe",
            EventKind::LineTone { .. } => "line_tone",
            EventKind::AnsweringMachine { .. } => "answering_machine",
            EventKind::Network { .. } => "network",
            EventKind::Echo(_) => "suspected_echo_event",
            EventKind::RxUnderrun { .. } => "rx_underrun",
            EventKind::RxOverflow { .. } => "rx_overflow",
            EventKind::LateFrames { .. } => "engine.late_frames",
            EventKind::Note { code, .. } => code,
            EventKind::MessageSent { .. } => "message.sent",
            EventKind::MessageReceived { .. } => "message.received",
            EventKind::ToolCall(_) => "tool_call",
            EventKind::PlaybackStep { .. } => "playback_step",
            EventKind::Channel(event) => event.name(),
            EventKind::Unknown(unknown) => &unknown.event,
        }
    }

    /// Returns the name of the event's side in timelines.
    pub fn side_name(&self) -> &str {
        match &self.what {
            EventKind::Unknown(unknown) => unknown.side.as_deref().unwrap_or(self.side.name()),
            _ => self.side.name(),
        }
    }

    /// Returns the data of the event: an object, unless the event was read and had something else.
    pub fn data(&self) -> Value {
        match &self.what {
            EventKind::Dialing { address } => json!({ "address": address }),
            EventKind::Ringing { address, code } | EventKind::EarlyMedia { address, code } => {
                json!({ "address": address, "code": code })
            }
            EventKind::Connected { address, code, codec } => {
                json!({ "address": address, "code": code, "codec": codec })
            }
            EventKind::Ended { .. } => self.end_data(),
            EventKind::SpeechStarted { utterance_id, text, kind } => {
                json!({ "utterance_id": utterance_id, "text": text, "kind": kind })
            }
            EventKind::SpeechEnded { .. }
            | EventKind::AgentSpeechStarted { .. }
            | EventKind::AgentSpeechEnded { .. } => self.speech_data(),
            EventKind::TurnEnded { .. } | EventKind::TurnWritten { .. } => self.turn_data(),
            EventKind::LanguageTaken { language, by, from_sample } => {
                json!({ "language": language, "by": by, "from_sample": from_sample })
            }
            EventKind::TranscriptPartial { text } => json!({ "text": text }),
            EventKind::BargeIn { by, overlap_ms, stop_ms } => {
                json!({ "by": by, "overlap_ms": overlap_ms, "stop_ms": stop_ms })
            }
            EventKind::LateTurn { late_ms, utterance_id } => {
                json!({ "late_ms": late_ms, "utterance_id": utterance_id })
            }
            EventKind::ScriptedResponse { index, match_type, response_type } => {
                json!({ "index": index, "match_type": match_type, "response_type": response_type })
            }
            EventKind::InterruptionDecided { kind, u, at_ms, keyword } => {
                json!({ "type": kind, "u": round3(*u), "at_ms": at_ms, "keyword": keyword })
            }
            EventKind::Note { why, .. } if !why.is_empty() => json!({ "message": why }),
            EventKind::SilenceTool { seconds } => json!({ "seconds": seconds }),
            EventKind::Note { .. } | EventKind::Ready => json!({}),
            EventKind::SessionAnswered { code } => json!({ "code": code }),
            // The endpoint answers a change of the session that it takes with 200.
            EventKind::Held | EventKind::Unheld => json!({ "code": 200 }),
            EventKind::Transfer { to, accepted } => {
                json!({ "to": to, "accepted": accepted, "code": refer_code(*accepted) })
            }
            EventKind::Transferred { to, outcome, code } => json!({ "to": to, "outcome": outcome, "code": code }),
            EventKind::Reprompt { n } => json!({ "n": n }),
            EventKind::DtmfSent { digit, method, duration_ms }
            | EventKind::DtmfReceived { digit, method, duration_ms } => {
                json!({ "digits": digit.to_string(), "method": method, "duration_ms": duration_ms })
            }
            EventKind::Probe { kind } => json!({ "kind": kind.name() }),
            EventKind::LineTone { .. }
            | EventKind::AnsweringMachine { .. }
            | EventKind::Network { .. }
            | EventKind::Echo(_)
            | EventKind::RxUnderrun { .. }
            | EventKind::RxOverflow { .. }
            | EventKind::LateFrames { .. } => self.figures(),
            EventKind::MessageSent { message_id, text, channel, kind } => {
                json!({ "message_id": message_id, "text": text, "channel": channel, "kind": kind })
            }
            EventKind::MessageReceived { message_id, text, channel } => {
                json!({ "message_id": message_id, "text": text, "channel": channel })
            }
            EventKind::ToolCall(call) => json!({
                "name": call.name, "parameters": call.parameters, "output": call.output, "source": call.source,
            }),
            EventKind::PlaybackStep { index, passed } => json!({ "index": index, "passed": passed }),
            EventKind::Channel(event) => event.data(),
            EventKind::Unknown(unknown) => unknown.data.clone(),
        }
    }

    /// Returns the data of what was measured on the line and the network.
    fn figures(&self) -> Value {
        match &self.what {
            EventKind::LineTone { kind, frequency_hz, cadence_ms } => {
                json!({ "kind": kind.name(), "frequency_hz": frequency_hz, "cadence_ms": cadence_ms })
            }
            EventKind::AnsweringMachine { greeting_from_sample, greeting_end_sample, beep_ms, frequency_hz } => json!({
                "greeting_from_sample": greeting_from_sample, "greeting_end_sample": greeting_end_sample,
                "beep_ms": beep_ms, "frequency_hz": frequency_hz,
            }),
            EventKind::Network { received, lost, late, jitter_ms } => {
                json!({ "received": received, "lost": lost, "late": late, "jitter_ms": round3(*jitter_ms) })
            }
            EventKind::Echo(echo) => json!({ "delay_ms": round3(echo.delay_ms), "erl_db": round3(echo.erl_db) }),
            EventKind::RxUnderrun { duration_ms } => json!({ "duration_ms": duration_ms }),
            EventKind::RxOverflow { packets } => json!({ "packets": packets }),
            EventKind::LateFrames { count } => json!({ "count": count }),
            _ => json!({}),
        }
    }

    /// Returns the data of the end of a call.
    fn end_data(&self) -> Value {
        let EventKind::Ended { by, reason, sip_code, q850_cause, close_code } = &self.what else { return json!({}) };
        let mut data = json!({ "by": by, "reason": reason, "sip_code": sip_code, "q850_cause": q850_cause });
        if let Some(close_code) = close_code {
            data["close_code"] = (*close_code).into();
        }
        data
    }

    /// Returns the data of words of this side that are over, and of an edge of the other side's speech.
    fn speech_data(&self) -> Value {
        match &self.what {
            EventKind::SpeechEnded { utterance_id, text, kind, interrupted, exact, pauses } => {
                let mut data = json!({
                    "utterance_id": utterance_id, "text": text.voiced_text(), "kind": kind, "interrupted": interrupted,
                    "scripted": exact,
                });
                if !pauses.is_empty() {
                    data["pauses"] = pauses.iter().map(pause).collect();
                }
                data
            }
            EventKind::AgentSpeechStarted { arrival_ms, pre_conversation }
            | EventKind::AgentSpeechEnded { arrival_ms, pre_conversation } => {
                let mut data = json!({ "arrival_ms": round3(*arrival_ms) });
                if *pre_conversation {
                    data["pre_conversation"] = true.into();
                }
                data
            }
            _ => json!({}),
        }
    }

    /// Returns the data of a turn that is over, spoken or written.
    fn turn_data(&self) -> Value {
        match &self.what {
            EventKind::TurnEnded {
                text,
                from_sample,
                end_sample,
                confidence,
                words,
                concealed_ms,
                missing,
                late,
                reported,
            } => {
                let mut data = json!({
                    "text": text, "from_sample": from_sample, "end_sample": end_sample, "confidence": confidence,
                    "concealed_ms": concealed_ms,
                    "words": words.iter().map(word).collect::<Vec<_>>(),
                });
                if let Some(why) = missing {
                    data["text_missing"] = (**why).into();
                }
                if *late {
                    data["text_late"] = true.into();
                }
                if *reported {
                    data["text_source"] = "reported".into();
                }
                data
            }
            EventKind::TurnWritten { text, from_sample, end_sample, channel } => json!({
                "text": text, "from_sample": from_sample, "end_sample": end_sample, "confidence": null, "words": [],
                "channel": channel,
            }),
            _ => json!({}),
        }
    }

    /// Returns the milliseconds since connect, to three decimals.
    pub fn offset_ms(&self) -> f64 {
        round3(self.sample as f64 / PER_MS as f64)
    }
}

impl Event {
    fn members<S: SerializeStruct>(&self, line: &mut S) -> Result<(), S::Error> {
        line.serialize_field("sample", &self.sample)?;
        line.serialize_field("offset_ms", &self.offset_ms())?;
        line.serialize_field("event", self.name())?;
        line.serialize_field("side", self.side_name())?;
        line.serialize_field("data", &self.data())
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut line = serializer.serialize_struct("Event", 5)?;
        self.members(&mut line)?;
        line.end()
    }
}

impl Serialize for TimelineEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut line = serializer.serialize_struct("TimelineEntry", 6)?;
        line.serialize_field("seq", &self.seq)?;
        self.event.members(&mut line)?;
        line.end()
    }
}

/// Returns the status code that answers a REFER (RFC 3515).
fn refer_code(accepted: bool) -> u16 {
    if accepted { 202 } else { 603 }
}

fn pause([from, to]: &[Sample; 2]) -> Value {
    json!({ "from_sample": from, "to_sample": to })
}

fn word(word: &Word) -> Value {
    json!({
        "word": word.text, "start_offset_ms": word.from / PER_MS, "end_offset_ms": word.to / PER_MS,
        "confidence": word.confidence,
    })
}

fn round3(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
