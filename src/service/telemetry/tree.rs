//! The spans of one result: the run as far as the result takes part in it, below it the call and the judgement, below
//! the call its turns, and below these the work that they took. Pure: it reads what was stored.
//!
//! Times of turns are those of the timeline, on the wall clock. Spans hold words of the conversation only where that is
//! asked for, and no numbers or addresses.

use ringer_engine::{EffectKind, EffectTime, TimelineEntry};
use ringer_judge::TurnItem;
use ringer_media::call::EventKind;
use ringer_media::frame::PER_MS;
use ringer_model::digital_human::Role;
use ringer_model::error_code::ErrorCode;
use ringer_model::result::{ResultBody, find_note};
use ringer_model::status::ResultStatus;
use ringer_model::time::Timestamp;
use ringer_provider::otlp::{Span, SpanId, TraceId};
use serde_json::{Value, json};

use crate::conversation::trace_context::{CALL, RUN, span_id};

/// Nanoseconds in a millisecond.
const NS: i64 = 1_000_000;
/// Nanoseconds of a sample.
const SAMPLE_NS: i64 = NS / PER_MS;
/// Speaker that no language model stands behind.
const BUILT_IN: [&str; 4] = ["template", "none", "simulated", "playback"];

/// Stored parts of a result that spans are made of.
pub(super) struct Traced<'a> {
    /// Trace of the result.
    pub(super) trace: TraceId,
    /// Id of the result.
    pub(super) result_id: i64,
    /// Time at which it was made, milliseconds since 1970.
    pub(super) created_ms: i64,
    /// Record of the result.
    pub(super) body: &'a ResultBody,
    /// Events of its conversation, in order.
    pub(super) moments: &'a [TimelineEntry],
    /// Turns of its conversation.
    pub(super) turns: &'a [TurnItem],
    /// Times of the work for its conversation.
    pub(super) effects: &'a [EffectTime],
    /// True if spans hold words.
    pub(super) content: bool,
    /// Language model that callers and judges ask; `None`: there is none.
    pub(super) model: Option<&'a str>,
}

impl Traced<'_> {
    /// Returns all spans of a result that is final, parents before their children.
    pub(super) fn spans(&self) -> Vec<Span> {
        let mut spans = vec![self.run()];
        if let Some(call) = self.call() {
            let (from_ns, to_ns) = (call.from_ns, call.to_ns);
            spans.push(call);
            let inside = self.setup().into_iter().chain(self.turn_spans()).chain(self.effect_spans());
            spans.extend(inside.map(|span| within(span, from_ns, to_ns)));
        }
        spans.extend(self.judgement());
        spans
    }

    /// Returns the span of a judgement that took place after the first one. Only its end is known.
    pub(super) fn again(&self) -> Option<Span> {
        let evaluation = self.body.evaluations.first()?;
        let Timestamp(at_ms) = evaluation.created_at;
        let name = format!("judgement {at_ms}");
        let mut span = self.span("judgement", &name, self.id(RUN), (at_ms * NS, at_ms * NS));
        span.attributes = self.verdict_terms();
        span.attributes.push(("ringer.judgement.again", json!(true)));
        Some(span)
    }

    fn id(&self, name: &str) -> SpanId {
        span_id(&self.trace, name)
    }

    /// Returns a span that is known by `key` within the trace.
    fn span(&self, name: &str, key: &str, parent: SpanId, (from_ns, to_ns): (i64, i64)) -> Span {
        Span {
            trace: self.trace,
            id: self.id(key),
            parent: Some(parent),
            name: name.to_owned(),
            is_request: false,
            from_ns: from_ns.max(0) as u64,
            to_ns: to_ns.max(from_ns).max(0) as u64,
            attributes: Vec::new(),
            error: None,
        }
    }

    /// Returns the time at which this attempt entered a state, milliseconds since 1970.
    fn entered_ms(&self, wanted: impl Fn(ResultStatus) -> bool) -> Option<i64> {
        let history = &self.body.status_history;
        let begun = history.iter().rposition(|change| change.status == ResultStatus::Queued).unwrap_or(0);
        history[begun..].iter().find(|change| wanted(change.status)).map(|change| change.at.0)
    }

    fn note(&self, key: &str) -> &Value {
        find_note(&self.body.metadata, key).unwrap_or(&Value::Null)
    }

    fn run(&self) -> Span {
        let body = self.body;
        let queued = self.entered_ms(|status| status == ResultStatus::Queued);
        let from_ms = if body.attempt > 1 { queued.unwrap_or(self.created_ms) } else { self.created_ms };
        let to_ms = self.entered_ms(ResultStatus::is_terminal).unwrap_or(from_ms);
        let mut span = self.span("run", RUN, SpanId::default(), (from_ms * NS, to_ms * NS));
        span.parent = None;
        span.error = self.error();
        span.attributes = vec![
            ("ringer.run.id", json!(body.simulation_run_id)),
            ("ringer.simulation.id", json!(body.simulation_id)),
            ("ringer.agent.id", json!(body.agent_id)),
            ("ringer.agent.version_id", json!(body.agent_version_id)),
            ("ringer.digital_human.id", json!(body.digital_human_id)),
            ("ringer.result.id", json!(self.result_id)),
            ("ringer.result.attempt", json!(body.attempt)),
            ("ringer.result.status", json!(body.status)),
            ("ringer.result.outcome", json!(body.outcome)),
            ("error.type", json!(body.error_code.as_ref().map(ErrorCode::as_str))),
        ];
        span
    }

    /// Returns the code of the error of the result; its words may name an address.
    fn error(&self) -> Option<String> {
        self.body.error_code.as_ref().map(|code| code.as_str().to_owned())
    }

    /// Returns the call; `None`: none was made.
    fn call(&self) -> Option<Span> {
        let body = self.body;
        let started = |status| matches!(status, ResultStatus::Dispatched | ResultStatus::Running);
        let began_ms = self.entered_ms(started)?;
        let ended = |status: ResultStatus| status == ResultStatus::ConversationEnded || status.is_terminal();
        let left_ms = self.entered_ms(ended)?;
        let end_ms = body.end_time.map_or(left_ms, |Timestamp(end)| end);
        // The state is stored a little after the conversation began, and some events before it.
        let at = |entry: Option<&TimelineEntry>| entry.and_then(|entry| self.sample_ns(entry.sample));
        let from_ns = at(self.moments.first()).map_or(began_ms * NS, |first| first.min(began_ms * NS));
        let to_ns = at(self.moments.last()).map_or(end_ms * NS, |last| last.max(end_ms * NS));
        let mut span = self.span("call", CALL, self.id(RUN), (from_ns, to_ns));
        span.is_request = true;
        span.error = self.error();
        span.attributes = vec![
            ("gen_ai.conversation.id", json!(self.result_id.to_string())),
            ("ringer.result.id", json!(self.result_id)),
            ("ringer.call.transport", self.note("transport").clone()),
            ("ringer.call.codec", self.note("codec").clone()),
            ("ringer.call.connected", json!(body.start_time.is_some())),
            ("ringer.call.duration_ms", json!(body.duration_ms)),
            ("ringer.call.end_reason", json!(body.end_reason)),
            ("ringer.call.ended_by", json!(body.conversation_ended_by)),
            ("ringer.call.sip_code", json!(body.sip_code)),
            ("ringer.call.timing_trusted", json!(body.engine_quality.as_ref().map(|quality| quality.trusted))),
            ("error.type", json!(body.error_code.as_ref().map(ErrorCode::as_str))),
        ];
        Some(span)
    }

    /// Returns the wall clock at a sample in nanoseconds; `None`: the conversation has not begun.
    fn sample_ns(&self, sample: i64) -> Option<i64> {
        self.body.start_time.map(|Timestamp(start)| start * NS + sample.saturating_mul(SAMPLE_NS))
    }

    /// Returns the time from dialling to the answer.
    fn setup(&self) -> Option<Span> {
        let dialled = self.moments.iter().find(|entry| matches!(entry.reading(), EventKind::Dialing { .. }))?;
        let answered = self.moments.iter().find(|entry| matches!(entry.reading(), EventKind::Connected { .. }))?;
        let times = (self.sample_ns(dialled.sample)?, self.sample_ns(answered.sample)?);
        Some(self.span("setup", "setup", self.id(CALL), times))
    }

    fn turn_spans(&self) -> Vec<Span> {
        let span = |turn: &TurnItem| {
            let times = (self.sample_ns(turn.from_sample)?, self.sample_ns(turn.to_sample)?);
            let mut span = self.span("turn", &turn_key(turn), self.id(CALL), times);
            let speaker = if turn.speaker == Role::Agent { "agent" } else { "digital_human" };
            span.attributes = vec![
                ("ringer.turn.index", json!(turn.index)),
                ("ringer.turn.speaker", json!(speaker)),
                ("ringer.turn.latency_ms", json!(turn.latency_ms)),
                ("ringer.turn.interrupted", json!(turn.interrupted)),
                ("ringer.turn.overlap_ms", json!(turn.overlap_ms)),
                ("ringer.turn.text_missing", json!(turn.text_missing)),
            ];
            if self.content {
                span.attributes.push(("ringer.turn.text", json!(turn.text)));
            }
            Some(span)
        };
        self.turns.iter().filter_map(span).collect()
    }

    fn effect_spans(&self) -> Vec<Span> {
        let Some(start_ns) = self.sample_ns(0) else { return Vec::new() };
        let span = |(number, effect): (usize, &EffectTime)| {
            let turn = self.turn_of(effect).map(turn_key);
            let parent = self.id(turn.as_deref().unwrap_or(CALL));
            let times = (start_ns + effect.from_ns, start_ns + effect.to_ns);
            let mut span = self.span(name_of(effect.kind), &format!("effect {number}"), parent, times);
            span.attributes = self.terms_of(effect.kind);
            span.attributes.push(("ringer.effect.cancelled", json!(effect.cancelled)));
            let first_ms = effect.first_ns.map(|first| (first - effect.from_ns) as f64 / NS as f64);
            span.attributes.push(("ringer.effect.first_answer_ms", json!(first_ms)));
            span.attributes.push(("error.type", json!(effect.failed)));
            span.error = effect.failed.clone();
            span
        };
        self.effects.iter().enumerate().map(span).collect()
    }

    /// Returns the turn that a piece of work was done for; `None`: it led to none.
    fn turn_of(&self, effect: &EffectTime) -> Option<&TurnItem> {
        let (from, to) = (effect.from_ns / SAMPLE_NS, effect.to_ns / SAMPLE_NS);
        if effect.kind == EffectKind::Recognize {
            let shared = |turn: &&TurnItem| turn.to_sample.min(to) - turn.from_sample.max(from);
            let heard = self.turns.iter().filter(|turn| turn.speaker == Role::Agent);
            return heard.filter(|turn| shared(turn) > 0).max_by_key(shared);
        }
        // Words are thought of and spoken before they are heard, and the rest of a long turn during it.
        let mut own = self.turns.iter().filter(|turn| turn.speaker == Role::User);
        own.find(|turn| turn.to_sample > from)
    }

    /// Returns attributes by the semantic conventions for generative models, where a model does the work.
    fn terms_of(&self, kind: EffectKind) -> Vec<(&'static str, Value)> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let (operation, output, provider, model) = match kind {
            EffectKind::Think | EffectKind::Compare => match self.speaker_model() {
                Some(model) => ("chat", "text", None, Some(model.to_owned())),
                None => return vec![("ringer.speaker", self.note("speaker").clone())],
            },
            EffectKind::Speak => {
                let note = self.note("synthesizer");
                ("generate_content", "speech", text(&note["kind"]), text(&note["model"]))
            }
            EffectKind::Recognize => {
                let note = self.note("recognizer");
                ("generate_content", "text", text(&note["kind"]), text(&note["model"]))
            }
        };
        vec![
            ("gen_ai.operation.name", json!(operation)),
            ("gen_ai.output.type", json!(output)),
            ("gen_ai.provider.name", json!(provider)),
            ("gen_ai.request.model", json!(model)),
        ]
    }

    /// Returns the language model that words the caller; `None`: the built-in speaker does.
    fn speaker_model(&self) -> Option<&str> {
        let speaker = self.note("speaker").as_str()?;
        self.model.filter(|_| !BUILT_IN.contains(&speaker))
    }

    fn judgement(&self) -> Option<Span> {
        let from_ms = self.entered_ms(|status| status == ResultStatus::Evaluating)?;
        let to_ms = self.entered_ms(ResultStatus::is_terminal)?;
        let mut span = self.span("judgement", "judgement", self.id(RUN), (from_ms * NS, to_ms * NS));
        span.attributes = self.verdict_terms();
        Some(span)
    }

    fn verdict_terms(&self) -> Vec<(&'static str, Value)> {
        let Some(evaluation) = self.body.evaluations.first() else { return Vec::new() };
        let goal = evaluation.goal_success;
        let label = goal.map(|is_met| if is_met { "pass" } else { "fail" });
        let mut judged = vec![
            ("ringer.result.outcome", json!(self.body.outcome)),
            ("ringer.judgement.status", json!(evaluation.status)),
        ];
        if goal.is_some() {
            judged.extend([
                ("gen_ai.operation.name", json!(self.model.map(|_| "chat"))),
                ("gen_ai.request.model", json!(self.model)),
                ("gen_ai.evaluation.name", json!("goal_success")),
                ("gen_ai.evaluation.score.label", json!(label)),
            ]);
        }
        if self.content {
            judged.push(("gen_ai.evaluation.explanation", json!(evaluation.goal_reasoning)));
        }
        judged
    }
}

/// Moves what lies outside of a call to its edge: the clocks of two threads may differ a little.
fn within(mut span: Span, from_ns: u64, to_ns: u64) -> Span {
    span.from_ns = span.from_ns.clamp(from_ns, to_ns);
    span.to_ns = span.to_ns.clamp(span.from_ns, to_ns);
    span
}

fn turn_key(turn: &TurnItem) -> String {
    format!("turn {}", turn.index)
}

fn name_of(kind: EffectKind) -> &'static str {
    match kind {
        EffectKind::Recognize => "recognize",
        EffectKind::Think => "think",
        EffectKind::Compare => "compare",
        EffectKind::Speak => "speak",
    }
}

#[cfg(test)]
mod tests;
