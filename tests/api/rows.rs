//! An organization with a row of every kind that an id can name.

use std::collections::BTreeMap;

use ringer::model::api_key::Scope;
use ringer::model::judge_card::JudgeCardDoc;
use ringer::model::result::MetricValue;
use ringer::model::status::ResultStatus as S;
use serde_json::{Value, json};
use uuid::Uuid;

use super::noises;
use super::world::{Answer, World};

/// Form of an id.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Integer,
    Uuid,
    Text,
}

/// The rows of one organization.
pub(super) struct Rows {
    /// Id of the organization.
    pub organization: String,
    /// Word in every text of its rows.
    pub mark: String,
    key: String,
    /// The id of a row by its kind.
    ids: BTreeMap<&'static str, String>,
}

impl Rows {
    /// Fills a new organization of the world. Every text of its rows holds `mark`; `number` is the number that it owns.
    pub(super) async fn of(world: &World, mark: &str, number: &str) -> Rows {
        let key = world
            .service
            .library()
            .create_key_in(mark, Scope::Admin, &format!("{mark} key"))
            .await
            .expect("a key")
            .api_key;
        let organization = world.service.library().create_organization(mark).await.expect("it was made with its key");
        let ids = BTreeMap::from([("organization", organization.clone())]);
        let mut rows = Rows { organization, mark: mark.to_owned(), key, ids };
        rows.people(world, mark).await;
        rows.agents(world, mark).await;
        rows.beside_agents(world, mark, number).await;
        rows.watchers(world, mark).await;
        rows.conversations(world, mark).await;
        rows
    }

    /// Returns the id of the row of a kind.
    pub(super) fn id(&self, kind: &str) -> &str {
        self.ids.get(kind).unwrap_or_else(|| panic!("there is no {kind}"))
    }

    /// Returns every kind and the id of its row.
    pub(super) fn ids(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.ids.iter().map(|(kind, id)| (*kind, id.as_str()))
    }

    pub(super) async fn send(&self, world: &World, method: &str, path: &str, body: &Value) -> Answer {
        self.send_with(world, method, path, &[], body).await
    }

    /// Asks with the key of this organization; null is no body.
    pub(super) async fn send_with(
        &self,
        world: &World,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: &Value,
    ) -> Answer {
        let key = ("x-api-key".to_owned(), self.key.clone());
        let headers: Vec<_> = std::iter::once(key).chain(headers.iter().cloned()).collect();
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        world.send(method, path, &headers, body).await
    }

    async fn ask(&self, world: &World, method: &str, path: &str, body: Value) -> Value {
        let answer = self.send(world, method, path, &body).await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!((200..300).contains(&answer.status), "{method} {path}: {} {text}", answer.status);
        serde_json::from_str(&text).unwrap_or_default()
    }

    async fn post(&self, world: &World, path: &str, body: Value) -> Value {
        self.ask(world, "POST", path, body).await
    }

    async fn get(&self, world: &World, path: &str) -> Value {
        self.ask(world, "GET", path, Value::Null).await
    }

    fn keep(&mut self, kind: &'static str, id: &Value) -> String {
        let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
        assert!(!id.is_empty() && id != "null", "no id of a {kind}");
        self.ids.insert(kind, id.clone());
        id
    }

    fn number(&self, kind: &str) -> i64 {
        self.id(kind).parse().expect("an integer")
    }

    /// Returns a handle that an organization gives itself. It holds no mark: it is sent by others.
    fn handle(&mut self, kind: &'static str) -> Value {
        let handle = Value::from(ringer::clock::new_id().to_string());
        self.keep(kind, &handle);
        handle
    }

    async fn people(&mut self, world: &World, mark: &str) {
        let (code, test) = (self.handle("human_code"), self.handle("test_name"));
        let human = json!({
            "name": format!("{mark} Maria"), "intent": format!("{mark} books."), "success_criteria": mark, "test_name": test,
            "svc_as_code_id": code, "tag": mark, "phone_number": null,
        });
        let human = self.post(world, "/v1/create-digital-human", json!({ "digital_human": human })).await;
        self.keep("digital_human", &human["digital_human"]["id"]);
        let title = json!({ "title": mark, "description": mark, "digital_human_ids": [self.number("digital_human")] });
        let community = self.post(world, "/v1/create-community", title).await;
        self.keep("community", &community["id"]);
    }

    async fn agents(&mut self, world: &World, mark: &str) {
        let (code, external) = (self.handle("agent_code"), self.handle("external"));
        let agent = json!({
            "name": format!("{mark} desk"), "system_prompt": format!("{mark} prompt"), "goals": [mark], "folder": mark,
            "labels": [mark], "svc_as_code_id": code, "external_agent_id": external, "sip_uri": "sip:desk@127.0.0.1:5099",
            "http_webhook": "http://127.0.0.1:9/hook", "sip_password": mark,
        });
        let agent = self.post(world, "/v1/add-agent", agent).await;
        let agent = self.keep("agent", &agent["agent_id"]);
        let hook = json!({ "name": format!("{mark} hook"), "mode": "TEXT", "http_webhook": "http://127.0.0.1:9/hook" });
        let hook = self.post(world, "/v1/add-agent", hook).await;
        self.keep("text_agent", &hook["agent_id"]);
        let sms = json!({ "name": format!("{mark} sms"), "mode": "TEXT", "phone_number": "+15550002222" });
        let sms = self.post(world, "/v1/add-agent", sms).await;
        self.keep("sms_agent", &sms["agent_id"]);
        let folders = self.get(world, "/v1/all-folders").await;
        self.keep("folder", &folders[0]["id"]);
        let version = json!({ "prompt_text": format!("{mark} second"), "commit_message": mark });
        let version = self.post(world, &format!("/v1/agents/{agent}/versions"), version).await;
        self.keep("version", &version["id"]);
        let label = json!({ "label_text": format!("{mark}-free") });
        let label = self.post(world, &format!("/v1/agents/{agent}/labels"), label).await;
        self.keep("label", &label["id"]);
        let human = self.number("digital_human");
        for (kind, of) in [("simulation", "agent"), ("text_simulation", "text_agent"), ("sms_simulation", "sms_agent")]
        {
            let mut body = json!({ "agent_id": self.id(of), "name": format!("{mark} {kind}"), "description": mark });
            if kind == "simulation" {
                body["svc_as_code_id"] = self.handle("simulation_code");
            }
            let made = self.post(world, "/v1/create-simulation", body).await;
            let id = self.keep(kind, &made["simulation_id"]);
            let path = format!("/v1/simulation/{id}/add-digital-humans");
            self.post(world, &path, json!({ "digital_human_ids": [human] })).await;
        }
    }

    async fn beside_agents(&mut self, world: &World, mark: &str, number: &str) {
        let agent = self.number("agent");
        let code = self.handle("metric_code");
        let metric = json!({
            "name": format!("{mark} polite"), "description": mark, "response_type": "pass_fail", "agent_ids": [agent],
            "eval_method": "deterministic", "settings": { "check": "contains", "value": mark }, "tags": [mark],
            "svc_as_code_id": code,
        });
        let metric = self.post(world, "/v1/create-custom-metric", metric).await;
        self.keep("metric", &metric["id"]);
        let definition = json!({ "nodes": [{ "id": "start", "type": "start" }], "edges": [] });
        let scenario = json!({ "name": mark, "description": mark, "definition": definition, "agent_ids": [agent] });
        let scenario = self.post(world, "/v1/scenario", scenario).await;
        self.keep("scenario", &scenario["id"]);
        let persona = json!({ "name": mark, "description": mark, "goal": mark, "agent_id": agent });
        let persona = self.post(world, "/v1/create-customer-persona", persona).await;
        self.keep("persona", &persona["id"]);
        let member = json!({ "agent_id": agent, "name": mark, "data_type": "STRING", "default_value": mark });
        let member = self.post(world, "/v1/create-customer-trait", member).await;
        self.keep("trait", &member["id"]);
        let noise = noises::upload_as(world, &self.key, mark).await;
        let noise = self.keep("noise", &noise["id"]);
        let loud = json!({ "name": mark, "background_noise": "custom", "custom_background_noise_url": noise });
        self.post(world, "/v1/create-digital-human", json!({ "digital_human": loud })).await;
        self.post(world, "/v1/phone-numbers/add", json!({ "phone_number": number })).await;
        let numbers = self.get(world, "/v1/phone-numbers").await;
        self.keep("phone_number", &numbers[0]["phone_number"]);
        self.keep("phone_number_row", &numbers[0]["id"]);
        self.ask(world, "PATCH", "/v1/integrations", json!({ "P1_api_key": mark })).await;
        let talk = json!({ "redis_key": self.handle("conversation"), "test_case_id": self.id("digital_human") });
        self.post(world, "/v1/send-text", talk).await;
    }

    async fn watchers(&mut self, world: &World, mark: &str) {
        let agent = self.number("agent");
        let checks = json!([
            { "checkType": "agent_responds" },
            { "checkType": "digital_human", "config": { "digital_human_id": self.number("digital_human") } },
        ]);
        let channels = json!([{ "type": "slack", "target": mark }]);
        let monitor = json!({ "agent_id": agent, "checks": checks, "notifications": { "channels": channels } });
        let monitor = self.post(world, "/v1/uptime/monitors", monitor).await;
        self.keep("monitor", &monitor["id"]);
        let alert = json!({
            "name": mark, "entity_type": "standard_metric", "entity_field": "avg_agent_latency", "min_events": 1,
            "operator": "greater_than", "comparison_value": "2", "notification_channels": channels,
        });
        let alert = self.post(world, "/v1/create-alert", alert).await;
        self.keep("alert", &alert["id"]);
        let webhook = json!({ "url": format!("http://127.0.0.1:9/{mark}"), "event_types": ["simulation_ended"] });
        let webhook = self.post(world, "/v1/webhooks", webhook).await;
        self.keep("webhook", &webhook["id"]);
        let schedule = json!({ "frequency": "daily", "time": "09:30" });
        let schedule = json!({ "simulation_id": self.id("simulation"), "schedule": schedule });
        let schedule = self.post(world, "/v1/create-schedule", schedule).await;
        self.keep("schedule", &schedule["id"]);
        let spare = self.post(world, "/v1/api-keys", json!({ "scope": "read", "name": mark })).await;
        self.keep("api_key", &spare["id"]);
    }

    async fn conversations(&mut self, world: &World, mark: &str) {
        let names = [
            ("queue-simulation-run", "simulation", "run", "result"),
            ("queue-http-text-simulation-run", "text_simulation", "text_run", "text_result"),
            ("queue-simulation-run", "simulation", "open_run", "open_result"),
        ];
        for (queue, simulation, run, result) in names {
            let body = json!({ "simulation_id": self.id(simulation) });
            let queued = self.post(world, &format!("/v1/{queue}"), body).await;
            self.keep(run, &queued["simulation_run_id"]);
            self.keep(result, &queued["simulation_result_ids"][0]);
        }
        self.end(world, "result", mark).await;
        let issues = self.get(world, "/v1/issues").await;
        self.keep("issue", &issues[0]["id"]);
        let call = self.evaluate(world, mark).await;
        self.keep("call", &call);
        let card = JudgeCardDoc { model: mark.to_owned(), meaning: Some(mark.to_owned()), ..JudgeCardDoc::default() };
        let mut db = world.service.store().org(&self.organization).write().await.expect("a session");
        let card = db.insert(&card, world.service.clock().now_ms(), None).await.expect("it is kept");
        db.commit().await.expect("it is kept");
        self.keep("judge_card", &json!(card));
    }

    /// Ends a result: its agent has said the mark in a tool call that failed, and was slow.
    pub(super) async fn end(&self, world: &World, kind: &str, mark: &str) {
        let id = self.number(kind);
        let output = json!({ "status": 500, "error": mark });
        let call = json!({ "name": mark, "start_offset_ms": 5, "output": output });
        let document =
            json!({ "simulation_result_id": id, "tool_calls": [call], "metadata": { "text": mark }, "tags": [mark] });
        self.post(world, "/v1/update-simulation-result", document).await;
        let way = [S::Initializing, S::Queued, S::Dispatched, S::Running, S::ConversationEnded, S::Evaluating];
        for step in way.windows(2) {
            world
                .service
                .conversations()
                .advance(&self.organization, id, step[0], step[1], |_| ())
                .await
                .expect("an allowed step");
        }
        let slow = MetricValue { name: "avg_agent_latency".into(), value: json!(3), note: None };
        let ended = world.service.conversations().advance(&self.organization, id, S::Evaluating, S::Completed, |doc| {
            doc.body.metrics.push(slow);
        });
        ended.await.expect("an allowed step");
        world.work_off().await;
    }

    /// Brings in a call of the agent and has it judged; its id.
    pub(super) async fn evaluate(&self, world: &World, mark: &str) -> Value {
        let said = |speaker: &str, at: i64| json!({ "speaker": speaker, "utterance": mark, "start_offset_ms": at, "end_offset_ms": at + 900 });
        let call = json!({
            "agent_id": self.id("agent"), "start_time_utc": "2026-01-05T08:00:00Z", "tags": [mark],
            "participants": [{ "role": "AGENT", "name": mark }, { "role": "USER" }],
            "transcript": [said("AGENT", 0), said("USER", 1000)],
        });
        let queued = self.post(world, "/v1/evaluate", call).await;
        world.work_off().await;
        queued["call_id"].clone()
    }
}

/// Returns the form of an id's text.
pub(super) fn form_of(id: &str) -> Form {
    if id.bytes().all(|byte| byte.is_ascii_digit()) {
        Form::Integer
    } else if Uuid::parse_str(id).is_ok() {
        Form::Uuid
    } else {
        Form::Text
    }
}
