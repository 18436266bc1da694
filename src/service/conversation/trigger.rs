//! Asking an agent's owner for the conversation of a result: what the request says, how often it is made, and what
//! comes of it.

use std::time::Duration;

use ringer_base::error::Result;
use ringer_base::guard::Guard;
use ringer_base::post::{Poster, RESULT_ID, signatures};
use ringer_model::error_code::ErrorCode;
use ringer_model::result::{ResultDoc, find_note};
use ringer_model::status::ResultStatus;
use ringer_model::{Object, text_of};
use ringer_store::queue::TriggerJob;
use ringer_store::{Row, Session};
use ringer_syntax::placeholder;
use ringer_syntax::placeholder::Budget;
use serde_json::{Value, json};

use super::Conversations;
use super::facts::met_agent;
use super::inbound_address::{Stage, stage};
use super::obstacle::Obstacle;
use super::stream_address::url_of;
use super::trace_context::{TRACEPARENT, traceparent};
use crate::library::simulations::name_of;
use crate::outbox::addresses::{address_uri, address_user};

/// Time limit for a connection and its answer together.
const PATIENCE: Duration = Duration::from_secs(10);
/// Waits after the first request and the second; the third is the last.
const WAITS_MS: [i64; 2] = [1000, 2000];
/// Two requests of one result are one wish.
const IDEMPOTENCY_KEY: &str = "X-Svc-Idempotency-Key";

impl Conversations {
    /// Asks the owner of a READY result's agent for the conversation, where it wants to be asked.
    pub(crate) async fn ask_owner(&self, db: &mut Session, row: &Row<ResultDoc>) -> Result<()> {
        let body = &row.doc.body;
        let Some(agent) = met_agent(db, &row.doc).await? else { return Ok(()) };
        if agent.outbound_trigger_webhook_url.is_none() && !agent.is_placed_by_platform() {
            return Ok(());
        }
        let organization = db.organization().to_owned();
        let job = TriggerJob { organization, result_id: row.id, attempt: body.attempt, request: 1 };
        db.put(&job, self.clock.now_ms(), None).await
    }

    /// Asks once for the call of a result that waits for it. What fails is asked again a little later; after the last
    /// time the result ends. A result that was called meanwhile is left alone.
    pub async fn ask_for_call(&self, job: &TriggerJob) -> Result<()> {
        let mut db = self.store.org(&job.organization).read().await?;
        let Some(row) = db.find::<ResultDoc>(job.result_id).await? else { return Ok(()) };
        if !waits(&row.doc, job) {
            return Ok(());
        }
        let Some(stage) = stage(&mut db, &row).await? else { return Ok(()) };
        let trace = match self.settings.telemetry.propagate {
            true => db.find_trace(row.id, row.doc.body.attempt).await?,
            false => None,
        };
        drop(db);
        let Some(url) = &stage.agent.outbound_trigger_webhook_url else { return Ok(()) };
        let body = self.trigger_body(job, &row.doc, &stage).to_string();
        let mut headers = [IDEMPOTENCY_KEY, RESULT_ID].map(|name| (name, job.result_id.to_string())).to_vec();
        headers.extend(trace.and_then(|trace| traceparent(&trace)).map(|value| (TRACEPARENT, value)));
        let (id, now_ms) = (job.result_id.to_string(), self.clock.now_ms());
        headers.extend(stage.agent_key.iter().flat_map(|key| signatures(key, &id, now_ms, &body)));
        let poster =
            Poster::new(Guard::new(self.settings.allow_private_targets).trusting(&self.settings.roots), PATIENCE);
        let why = match poster.post(url, &headers, body).await {
            Ok(200..=299) => return Ok(()),
            Ok(status) => format!("The outbound trigger webhook answered {status}"),
            Err(why) => format!("The outbound trigger webhook could not be asked: {why}"),
        };
        tracing::warn!(
            result = job.result_id,
            request = job.request,
            why,
            "failed to request a call from the agent's owner"
        );
        self.trigger_failed(job, why).await
    }

    /// Ends a result whose call cannot be had, unless it has come meanwhile.
    pub(crate) async fn refuse_awaited(&self, job: &TriggerJob, why: Obstacle) -> Result<()> {
        let mut db = self.store.org(&job.organization).write().await?;
        let Some(mut row) = db.find::<ResultDoc>(job.result_id).await? else { return Ok(()) };
        if !waits(&row.doc, job) {
            return Ok(());
        }
        row.doc.body.fail(why.code, why.message);
        self.step(&mut db, &mut row, ResultStatus::NoConnection).await?;
        db.commit().await?;
        self.live.note_change(job.result_id);
        Ok(())
    }

    async fn trigger_failed(&self, job: &TriggerJob, why: String) -> Result<()> {
        let mut db = self.store.org(&job.organization).write().await?;
        let Some(mut row) = db.find::<ResultDoc>(job.result_id).await? else { return Ok(()) };
        if !waits(&row.doc, job) {
            return Ok(());
        }
        match WAITS_MS.get(job.request as usize - 1) {
            Some(wait) => {
                let again = TriggerJob { request: job.request + 1, ..job.clone() };
                db.put(&again, self.clock.now_ms() + wait, None).await?;
            }
            None => {
                row.doc.body.fail(ErrorCode::OutboundTriggerFailed, why);
                self.step(&mut db, &mut row, ResultStatus::NoConnection).await?;
            }
        }
        db.commit().await?;
        self.live.note_change(job.result_id);
        Ok(())
    }

    fn trigger_body(&self, job: &TriggerJob, doc: &ResultDoc, stage: &Stage) -> Value {
        let body = &doc.body;
        let user = address_user(&job.organization, stage.human_id, &stage.human, body.simulation_run_id);
        let sip_uri = address_uri(&user, self.live.sip_address().filter(|_| stage.agent.calls_by_sip()));
        let (number, id) = (stage.number().unwrap_or_default(), job.result_id.to_string());
        let websocket_url = url_of(doc);
        let listening = find_note(&body.metadata, "listening");
        let email_address = listening.and_then(|at| at["email_address"].as_str()).unwrap_or_default();
        let Some(template) = &stage.agent.outbound_trigger_payload_template else {
            return match stage.agent.is_over_websocket() {
                _ if stage.agent.is_email() => json!({ "email_address": email_address, "sim_conversation_id": id }),
                true => json!({
                    "phone_number": number, "websocket_url": websocket_url, "sim_conversation_id": id,
                }),
                false => json!({ "phone_number": number, "sip_uri": sip_uri, "sim_conversation_id": id }),
            };
        };
        let intent = stage.step.as_ref().map_or(&stage.human.intent, |step| &step.intent);
        let tokens = Tokens::from([
            ("digital_human.phone_number", json!(number)),
            ("digital_human.sip_uri", json!(sip_uri)),
            ("digital_human.websocket_url", json!(websocket_url)),
            ("digital_human.email_address", json!(email_address)),
            ("digital_human.id", json!(stage.human_id)),
            ("digital_human.name", json!(stage.human.name.as_deref().unwrap_or_default())),
            ("digital_human.intent", json!(intent)),
            ("sim_conversation_id", json!(id)),
            ("simulation.id", json!(body.simulation_id)),
            ("simulation.name", json!(name_of(&stage.simulation))),
            ("agent.id", json!(body.agent_id)),
            ("agent.name", json!(stage.agent.name)),
        ]);
        Value::Object(fill_template(template, &tokens, &Budget::default()))
    }
}

/// True while the call that a job asks for is still waited for.
pub(crate) fn waits(doc: &ResultDoc, job: &TriggerJob) -> bool {
    doc.body.status == ResultStatus::Ready && doc.body.attempt == job.attempt
}

/// Values of a template's tokens, by name.
type Tokens = std::collections::BTreeMap<&'static str, Value>;

/// Returns a template with its tokens (`{{agent.id}}`) replaced in every text at any depth, but not in keys. A text
/// that is one token becomes the token's own value; within other text it becomes text. What is no known token stays.
fn fill_template(template: &Object, tokens: &Tokens, budget: &Budget) -> Object {
    template.iter().map(|(key, value)| (key.clone(), filled_value(value, tokens, budget))).collect()
}

fn filled_value(value: &Value, tokens: &Tokens, budget: &Budget) -> Value {
    match value {
        Value::String(text) => filled_text(text, tokens, budget),
        Value::Array(items) => items.iter().map(|item| filled_value(item, tokens, budget)).collect(),
        Value::Object(members) => Value::Object(fill_template(members, tokens, budget)),
        plain => plain.clone(),
    }
}

fn filled_text(text: &str, tokens: &Tokens, budget: &Budget) -> Value {
    let whole = text.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
    if let Some(value) = whole.and_then(|name| tokens.get(name.trim())).filter(|value| !value.is_string()) {
        return value.clone();
    }
    Value::String(placeholder::fill(text, budget, |name| tokens.get(name.trim()).map(text_of)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_filled_in() {
        let tokens = Tokens::from([
            ("agent.id", json!(258)),
            ("agent.name", json!("Front {{agent.id}} desk")),
            ("sim_conversation_id", json!("17")),
        ]);
        for (template, expect) in [
            (json!({"a": "{{agent.id}}"}), json!({"a": 258})),
            (json!({"a": "{{ agent.id }}"}), json!({"a": 258})),
            (json!({"a": "{{sim_conversation_id}}"}), json!({"a": "17"})),
            (json!({"a": "no {{agent.id}}"}), json!({"a": "no 258"})),
            (json!({"a": "{{agent.id}}{{sim_conversation_id}}"}), json!({"a": "25817"})),
            (json!({"a": " {{agent.id}}"}), json!({"a": " 258"})),
            (json!({"a": "{{agent.name}}!"}), json!({"a": "Front {{agent.id}} desk!"})),
            (json!({"a": "{{unknown}} {{agent.id}}"}), json!({"a": "{{unknown}} 258"})),
            (json!({"a": "{{unknown}}"}), json!({"a": "{{unknown}}"})),
            (json!({"a": "{{{agent.id}}}"}), json!({"a": "{258}"})),
            (json!({"a": "{{agent.id"}), json!({"a": "{{agent.id"})),
            (json!({"a": "}}{{"}), json!({"a": "}}{{"})),
            (json!({"a": ""}), json!({"a": ""})),
            (json!({"a": "ü{{agent.id}}ü"}), json!({"a": "ü258ü"})),
            (json!({"{{agent.id}}": 1}), json!({"{{agent.id}}": 1})),
            (
                json!({"a": [1, null, true, {"b": ["{{agent.id}}", 2.5]}]}),
                json!({"a": [1, null, true, {"b": [258, 2.5]}]}),
            ),
        ] {
            let given = template.as_object().expect("an object");
            assert_eq!(Value::Object(fill_template(given, &tokens, &Budget::default())), expect, "{template}");
        }
    }

    #[test]
    fn a_long_value_comes_in_only_so_often() {
        let tokens = Tokens::from([("digital_human.intent", json!("x".repeat(1 << 20)))]);
        let token = "{{digital_human.intent}}";
        let template = json!({ "a": [token, token, format!("{token}{token}"), "{".repeat(4 << 20)] });
        let given = template.as_object().expect("an object");
        let made = Value::Object(fill_template(given, &tokens, &Budget::default()));
        assert!(made.to_string().len() < template.to_string().len() + (1 << 20));
        assert_eq!(made["a"][2], template["a"][2]);
    }
}
