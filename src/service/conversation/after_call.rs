//! The time between the end of a call and its judgement: its platform may be asked for a report, whose tools, words and
//! price become part of the result.

use ringer_base::error::Result;
use ringer_media::call::{ChannelEvent, Event, EventKind, Side, TimelineEntry};
use ringer_model::Object;
use ringer_model::agent::AgentMode;
use ringer_model::expectation::{FaultCode, OwnFault};
use ringer_model::result::{PostedToolCall, ResultDoc};
use ringer_model::status::ResultStatus;
use ringer_store::queue::{AfterJob, EvaluateJob};
use ringer_store::{Row, Session};
use ringer_transport::websocket::platform::after::{Report, ReportedText, ReportedTool};
use serde_json::{Value, json};

use super::Conversations;
use super::facts::met_agent;

/// Metadata of the platform's name of a call.
pub(crate) const CALL_ID_NOTE: &str = "platform_call_id";
/// Metadata of the price of a call, as its platform tells it.
const COST_NOTE: &str = "platform_cost";

/// Outcome of the requests for a report.
pub(crate) struct Reported {
    /// Report, as far as it came.
    pub(crate) report: Report,
    /// Reason why it is not whole.
    pub(crate) why: Option<String>,
    /// True if tools may have been called that it does not tell of.
    pub(crate) lacks_tools: bool,
}

impl Conversations {
    /// Requests the judgement of a conversation that is over, or first the report of its platform on it.
    pub(crate) async fn request_evaluation(&self, db: &mut Session, row: &mut Row<ResultDoc>) -> Result<()> {
        let (organization, attempt) = (db.organization().to_owned(), row.doc.body.attempt);
        let agent = met_agent(db, &row.doc).await?;
        let is_written = agent.as_ref().is_some_and(|agent| agent.mode == AgentMode::Text);
        let kind = agent.and_then(|agent| agent.connection());
        let adapter = kind.and_then(|kind| self.settings.adapters.get(kind.as_str()));
        let adapter = adapter.and_then(|adapter| if is_written { adapter.writing() } else { Some(adapter.as_ref()) });
        if adapter.is_some_and(|adapter| adapter.asks_after()) {
            if row.doc.find_note(CALL_ID_NOTE).is_some() {
                let job = AfterJob { organization, result_id: row.id, attempt, request: 1 };
                return db.put(&job, self.clock.now_ms(), None).await;
            }
            row.doc.warn("after: the platform was not asked for a report: it gave the call no name");
            if adapter.is_some_and(|adapter| adapter.reports_tools()) {
                lack_tools(&mut row.doc);
            }
            db.update(row.id, &row.doc, self.clock.now_ms(), None).await?;
        }
        let job = EvaluateJob { organization, result_id: row.id, serial: attempt };
        db.put(&job, self.clock.now_ms(), None).await
    }

    /// Enters tools of a report that is not complete yet into a result that waits for it.
    pub(crate) async fn keep_tools(&self, job: &AfterJob, tools: Vec<ReportedTool>) -> Result<()> {
        if tools.is_empty() {
            return Ok(());
        }
        let mut db = self.store.org(&job.organization).write().await?;
        let Some(mut row) = db.find::<ResultDoc>(job.result_id).await? else { return Ok(()) };
        if !is_open(&row.doc, job) {
            return Ok(());
        }
        enter_tools(&mut row.doc, tools);
        db.update(row.id, &row.doc, self.clock.now_ms(), None).await?;
        db.commit().await
    }

    /// Enters the report of a platform into a result, or the part of it that came, and has the result judged.
    pub(crate) async fn take_report(&self, job: &AfterJob, reported: Reported) -> Result<()> {
        let mut db = self.store.org(&job.organization).write().await?;
        let Some(mut row) = db.find::<ResultDoc>(job.result_id).await? else { return Ok(()) };
        if !is_open(&row.doc, job) {
            return Ok(());
        }
        let Reported { report: Report { tools, texts, cost, .. }, why, lacks_tools } = reported;
        enter_tools(&mut row.doc, tools);
        cost.into_iter().for_each(|cost| row.doc.note(COST_NOTE, cost));
        if !texts.is_empty() {
            let timeline: Option<Vec<Value>> = db.text("timelines", row.id).await?;
            db.put_text("timelines", row.id, &with_texts(timeline.unwrap_or_default(), texts)).await?;
        }
        why.into_iter().for_each(|why| row.doc.warn(&format!("after: {why}")));
        if lacks_tools {
            lack_tools(&mut row.doc);
        }
        db.update(row.id, &row.doc, self.clock.now_ms(), None).await?;
        let (organization, result_id) = (job.organization.clone(), job.result_id);
        db.put(&EvaluateJob { organization, result_id, serial: job.attempt }, self.clock.now_ms(), None).await?;
        db.commit().await
    }
}

/// True while a report on the conversation can be entered.
pub(crate) fn is_open(doc: &ResultDoc, job: &AfterJob) -> bool {
    doc.body.status == ResultStatus::ConversationEnded && doc.body.attempt == job.attempt
}

/// Notes that tools may have been called which nobody has told of: a missing call does not count against the agent.
fn lack_tools(doc: &mut ResultDoc) {
    doc.body.own_faults.push(OwnFault { code: FaultCode::ReportMissing, at_ms: None, turn: None });
}

/// Adds tools that were called, except those that the call itself has told of. A report has no times: they stand at the
/// end of the call.
fn enter_tools(doc: &mut ResultDoc, tools: Vec<ReportedTool>) {
    let mut is_matched = vec![false; doc.heard_calls.len()];
    let start_offset_ms = doc.body.duration_ms.unwrap_or_default();
    for ReportedTool { name, arguments, result } in tools {
        let parameters = match arguments {
            Value::Null => None,
            Value::Object(members) => Some(members.into_iter().collect()),
            other => Some(Object::from_iter([("value".to_owned(), other)])),
        };
        let is_same = |at: &usize| {
            let call = &doc.heard_calls[*at];
            !is_matched[*at] && call.name == name && call.parameters == parameters
        };
        match (0..is_matched.len()).find(is_same) {
            Some(at) => {
                is_matched[at] = true;
                // A call is told of before its result is known.
                let output = &mut doc.heard_calls[at].output;
                *output = if output.is_null() { result } else { output.take() };
            }
            None => {
                let call = PostedToolCall { name, start_offset_ms, description: None, parameters, output: result };
                doc.heard_calls.push(call);
            }
        }
    }
}

/// Returns a timeline with words that were reported after the call, before its last event. They have the time of its
/// end.
fn with_texts(mut timeline: Vec<Value>, texts: Vec<ReportedText>) -> Vec<Value> {
    let at = timeline.iter().rposition(|event| event["event"] == "call.ended").unwrap_or(timeline.len());
    let rest = timeline.split_off(at);
    let last = rest.first().or(timeline.last());
    let (sample, seq) = last.map_or((0, 0), |event| (number(&event["sample"]), number(&event["seq"])));
    let first_seq = if rest.is_empty() { seq + 1 } else { seq };
    let count = texts.len() as i64;
    let entries = texts.into_iter().zip(first_seq..).map(|(ReportedText { is_agents, text }, seq)| {
        let told = match is_agents {
            true => ChannelEvent::Reported { text },
            false => ChannelEvent::Other { name: "caller_reported".into(), data: json!({ "text": text }) },
        };
        let event = Event { sample, side: Side::Agent, what: EventKind::Channel(Box::new(told)) };
        json!(TimelineEntry { seq, event })
    });
    timeline.extend(entries);
    timeline.extend(rest.into_iter().map(|mut event| {
        event["seq"] = json!(number(&event["seq"]) + count);
        event
    }));
    timeline
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reported_words_stand_before_the_end() {
        let event = |seq: i64, sample: i64, name: &str| json!({ "seq": seq, "sample": sample, "event": name });
        let texts = || {
            let said = |is_agents, text: &str| ReportedText { is_agents, text: text.to_owned() };
            vec![said(true, "Hello."), said(false, "Hi.")]
        };
        let timeline = with_texts(vec![event(0, 0, "call.connected"), event(1, 320, "call.ended")], texts());
        let seen: Vec<_> = timeline.iter().map(|event| (&event["seq"], &event["sample"], &event["event"])).collect();
        let expect = [
            (json!(0), json!(0), json!("call.connected")),
            (json!(1), json!(320), json!("agent_reported")),
            (json!(2), json!(320), json!("channel_event")),
            (json!(3), json!(320), json!("call.ended")),
        ];
        let expect: Vec<_> = expect.iter().map(|(seq, sample, name)| (seq, sample, name)).collect();
        assert_eq!(seen, expect);
        assert_eq!((&timeline[1]["side"], &timeline[1]["data"]["text"]), (&json!("agent"), &json!("Hello.")));
        assert_eq!(with_texts(Vec::new(), texts())[1]["seq"], 2);
    }

    #[test]
    fn tools_that_the_call_told_of_are_not_entered_again() {
        let tool = |city: &str| ReportedTool {
            name: "weather".into(),
            arguments: json!({ "city": city }),
            result: json!("sunny"),
        };
        let mut doc = ResultDoc::default();
        doc.body.duration_ms = Some(1500);
        enter_tools(&mut doc, vec![tool("Oslo")]);
        assert_eq!(doc.heard_calls[0].start_offset_ms, 1500);
        enter_tools(&mut doc, vec![tool("Oslo"), tool("Oslo"), tool("Bern")]);
        let cities: Vec<Value> = doc.heard_calls.iter().map(|call| json!(call.parameters)["city"].clone()).collect();
        assert_eq!(cities, [json!("Oslo"), json!("Oslo"), json!("Bern")]);
    }
}
