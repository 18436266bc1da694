//! Agents on platforms that an adapter speaks with: what the adapter is told of the agent, the session that is asked
//! for before the call, and the WebSocket of the call.

mod ask;
pub(super) mod chat;
pub(super) mod tokens;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ringer_base::config::AdapterTable;
use ringer_base::guard::Guard;
use ringer_base::post::Poster;
use ringer_engine::{Destination, WebSocketDial};
use ringer_model::agent::{AgentSpec, ConnectionType};
use ringer_model::digital_human::DigitalHumanSpec;
use ringer_model::error_code::{ErrorCode, Platform, PlatformFault};
use ringer_model::integration::IntegrationSpec;
use ringer_transport::websocket::platform::adapter::{Adapter, Facts, Names, SessionReply};
use serde_json::{Map, Value, json};

pub(super) use self::ask::{Asker, Asking, NotSent, wait_ms};
use super::platform::NOT_SUPPORTED;
use super::{CallRows, Obstacle};
use crate::Settings;

/// Time limit of the request that makes a session, and its answer together.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// Longest answer that is read, in bytes.
const ANSWER_BYTES: usize = 256 * 1024;

/// Longest message of a platform: 16 MiB. Some send a whole answer's audio in one.
const MESSAGE_BYTES: usize = 16 << 20;

/// Adapters of the settings, by the names of their platforms.
pub type Adapters = BTreeMap<String, Arc<Adapter>>;

/// Platforms that adapters speak with: the fields of agents of which one names the agent, and that of the credentials
/// which holds the key.
pub(super) const PLATFORMS: [(ConnectionType, Platform, &[&str], &str); 9] = [
    (ConnectionType::P3, Platform::P3, &["P3_agent_id"], "P3_api_key"),
    (ConnectionType::P4, Platform::P4, &["P4_agent_id"], "P4_api_key"),
    (ConnectionType::P5, Platform::P5, &["P5_assistant_id"], "P5_private_key"),
    (ConnectionType::P6, Platform::P6, &["P6_app_id"], "P6_credentials"),
    (ConnectionType::P7, Platform::P7, &["P7_agent_id"], "P7_credentials"),
    (ConnectionType::P8, Platform::P8, &["P8_flow_name", "P8_agent_name"], "P8_credentials"),
    (ConnectionType::P9, Platform::P9, &["P9_pathway_id", "P9_agent_id"], "P9_api_key"),
    (ConnectionType::P10, Platform::P10, &["P10_agent_token"], "P10_api_key"),
    (ConnectionType::P11, Platform::P11, &["P11_bot_id"], "P11_client_secret"),
];

/// Returns the adapters of the settings `[adapters.Pn]`.
///
/// # Errors
/// Everything in them that cannot be used.
pub fn adapters(tables: &BTreeMap<String, AdapterTable>) -> Result<Adapters, Vec<String>> {
    let names = field_names();
    let (mut found, mut problems) = (Adapters::new(), Vec::new());
    for (platform, AdapterTable(table)) in tables {
        match Adapter::parse(platform, table, &names) {
            Ok(adapter) => drop(found.insert(platform.clone(), Arc::new(adapter))),
            Err(error) => problems.push(error.to_string()),
        }
    }
    if problems.is_empty() { Ok(found) } else { Err(problems) }
}

/// Returns the names of the fields that templates may fill in.
pub(super) fn field_names() -> Names {
    let fields = |value: Value| value.as_object().map(|fields| fields.keys().cloned().collect()).unwrap_or_default();
    Names {
        agent: fields(json!(AgentSpec::default())),
        integration: fields(json!(IntegrationSpec::default())),
        digital_human: fields(json!(DigitalHumanSpec::default())),
    }
}

/// A session that has to be asked for before its call.
#[derive(Clone)]
pub struct SessionPlan {
    pub(super) adapter: Arc<Adapter>,
    pub(super) facts: Facts,
    pub(super) platform: Platform,
    /// True if an access token that is kept is not used: the platform has refused it.
    renews: bool,
}

impl SessionPlan {
    pub(super) fn new(adapter: Arc<Adapter>, facts: Facts, platform: Platform) -> SessionPlan {
        SessionPlan { adapter, facts, platform, renews: false }
    }

    /// Marks the kept access token as refused: another one is fetched.
    pub(crate) fn renew(&mut self) {
        self.renews = true;
    }

    pub(super) fn obstacle(&self, fault: PlatformFault, message: impl Into<String>) -> Obstacle {
        Obstacle::new(ErrorCode::Platform(self.platform, fault), message)
    }

    /// Writes the address and the protocol of the session into a dial.
    pub(super) fn finish(&self, dial: &mut WebSocketDial, reply: &SessionReply) -> Result<(), Obstacle> {
        let made = self.adapter.dialect(&self.facts, reply);
        let (url, dialect) = made.map_err(|why| self.obstacle(PlatformFault::SessionSetupFailed, why))?;
        (dial.url, dial.dialect) = (url, Some(dialect));
        Ok(())
    }

    /// Asks for the session, where the platform makes one, and writes it into a dial. Returns the platform's name of
    /// the call.
    ///
    /// # Errors
    /// The reason for which there can be no call.
    pub(super) async fn open(
        &mut self,
        dial: &mut WebSocketDial,
        asker: &Asker<'_>,
    ) -> Result<Option<String>, Obstacle> {
        let poster = Poster::new(dial.guard.clone().unwrap_or_else(|| Guard::new(false)), PATIENCE);
        let is_kept = asker.authorize(self, &poster, false).await?;
        let reply = asker.ask(self, &poster, is_kept).await?;
        self.finish(dial, &reply)?;
        Ok(reply.id)
    }
}

/// Returns how an adapter knows the agents of a kind of connection.
pub(super) fn known_platform(
    kind: ConnectionType,
) -> Option<&'static (ConnectionType, Platform, &'static [&'static str], &'static str)> {
    PLATFORMS.iter().find(|(known, ..)| *known == kind)
}

/// Returns the adapter of a kind of connection, where there is one.
pub(super) fn adapter_of(kind: ConnectionType, settings: &Settings) -> Option<&Arc<Adapter>> {
    settings.adapters.get(kind.as_str())
}

/// Returns the adapter of an agent with what it is told of the call.
pub(super) fn plan_of(rows: &CallRows, kind: ConnectionType, settings: &Settings) -> Result<SessionPlan, Obstacle> {
    let (Some(adapter), Some((_, platform, ids, key))) = (adapter_of(kind, settings), known_platform(kind)) else {
        return Err(rows.unmet(kind));
    };
    if let Some(lack) = rows.missing(kind) {
        return Err(lack);
    }
    if adapter.is_chat() {
        let message =
            format!("The adapter of {} writes (http_chat): an agent of mode VOICE needs another", kind.as_str());
        return Err(Obstacle::new(NOT_SUPPORTED, message));
    }
    Ok(SessionPlan::new(adapter.clone(), facts(rows, ids, key), *platform))
}

/// Returns the WebSocket of the agent of a platform, and the session that has to be asked for first.
pub(super) fn dial(
    rows: &CallRows,
    kind: ConnectionType,
    settings: &Settings,
) -> Result<(WebSocketDial, Option<SessionPlan>), Obstacle> {
    let plan = plan_of(rows, kind, settings)?;
    let mut sockets = settings.sockets.clone();
    sockets.limits.max_message_bytes = MESSAGE_BYTES;
    let mut dial = WebSocketDial {
        result_id: u64::try_from(rows.result_id).unwrap_or_default(),
        settings: sockets,
        guard: Some(Guard::new(settings.allow_private_agents).trusting(&settings.roots)),
        ..WebSocketDial::default()
    };
    if plan.adapter.needs_session() || plan.adapter.needs_token() {
        return Ok((dial, Some(plan)));
    }
    plan.finish(&mut dial, &SessionReply::default())?;
    Ok((dial, None))
}

/// Returns the session that the call of a destination needs; `None` where it needs none.
pub(super) fn plan(
    rows: &CallRows,
    destination: &Destination,
    settings: &Settings,
) -> Result<Option<Box<SessionPlan>>, Obstacle> {
    let kind = rows.telephony().filter(|_| !matches!(destination, Destination::Incoming(_)));
    let is_sip = matches!(destination, Destination::Sip(_));
    let is_asked = |kind: &ConnectionType| {
        adapter_of(*kind, settings).is_some_and(|known| known.needs_session() || (!is_sip && known.needs_token()))
    };
    kind.filter(is_asked).map(|kind| plan_of(rows, kind, settings).map(Box::new)).transpose()
}

/// Fields of agents that are there to be passed on, by their platforms.
const PASSED_ON: [(ConnectionType, &[&str]); 2] =
    [(ConnectionType::P9, &["P9_call_settings"]), (ConnectionType::P10, &["P10_release", "P10_agent_parameters"])];

/// Returns warnings about fields of an agent that its adapter passes on to nobody.
pub(super) fn warn_of_idle(rows: &CallRows, settings: &Settings) -> Vec<String> {
    let Some(kind) = rows.agent.spec.connection() else { return Vec::new() };
    let Some(adapter) = adapter_of(kind, settings) else { return Vec::new() };
    let adapter = if rows.agent.spec.is_written() { adapter.writing() } else { Some(adapter.as_ref()) };
    let agent = json!(rows.agent.spec);
    let is_set = |field: &&&str| !matches!(&agent[**field], Value::Null) && agent[**field] != json!({});
    let fields = PASSED_ON.iter().filter(|(known, _)| *known == kind).flat_map(|(_, fields)| *fields);
    let idle = fields.filter(is_set).filter(|field| adapter.is_some_and(|adapter| !adapter.passes_on(field)));
    idle.map(|field| format!("{field}: no setting of [adapters.{}] passes it on", kind.as_str())).collect()
}

/// Returns the fields of a value that are set.
fn set_fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        _ => Map::new(),
    }
}

fn facts(rows: &CallRows, ids: &[&str], key: &str) -> Facts {
    let mut agent = set_fields(json!(rows.agent.spec));
    agent.extend(set_fields(json!(rows.overrides)).into_iter().filter(|(name, _)| name.starts_with('P')));
    let result_id = rows.result_id.to_string();
    Facts {
        digital_human: set_fields(json!(rows.human)),
        conversation: result_id.clone(),
        result_id,
        ..base_facts(Value::Object(agent), json!(rows.platforms), ids, key)
    }
}

/// Returns what an adapter is told of an agent and of the stored credentials.
pub(super) fn base_facts(agent: Value, platforms: Value, ids: &[&str], key: &str) -> Facts {
    let (mut agent, mut integration) = (set_fields(agent), set_fields(platforms));
    let id = ids.iter().find_map(|name| agent.get(*name)).cloned().unwrap_or_default();
    let own = agent.get(key).cloned();
    let stored = integration.get(key).cloned().or_else(|| own.clone()).unwrap_or_default();
    agent.insert("id".to_owned(), id);
    agent.extend(own.map(|own| ("key".to_owned(), own)));
    integration.insert("key".to_owned(), stored);
    Facts { agent, integration, ..Facts::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::tests::rows_of;

    fn settings(table: Value) -> Settings {
        let Value::Object(table) = table else { unreachable!("an object was written") };
        let tables = BTreeMap::from([("P4".to_owned(), AdapterTable(table))]);
        Settings { adapters: Arc::new(adapters(&tables).expect("it is good")), ..Settings::new("unused") }
    }

    fn dial_of(agent: Value, run: Value, table: Value) -> Result<(WebSocketDial, Option<SessionPlan>), Obstacle> {
        let platforms = serde_json::from_value(json!({ "P4_api_key": "secret-key" })).expect("it fits");
        let rows = CallRows { platforms, ..rows_of(agent, json!({ "name": "Ann" }), run) };
        dial(&rows, ConnectionType::P4, &settings(table))
    }

    #[test]
    fn an_agent_is_dialled_by_its_adapter() {
        let agent = json!({ "P4_agent_id": "desk 1" });
        let (dial, plan) =
            dial_of(agent.clone(), json!({}), json!({ "preset": "openai_realtime" })).expect("it can be dialled");
        assert_eq!((dial.url.as_str(), plan.is_none()), ("wss://api.openai.com/v1/realtime?model=desk%201", true));
        let dialect = dial.dialect.expect("there is one");
        assert_eq!(dialect.headers, [("Authorization".to_owned(), "Bearer secret-key".to_owned())]);
        let (dial, plan) = dial_of(agent.clone(), json!({}), json!({ "preset": "ultravox" })).expect("it can be asked");
        assert!(dial.url.is_empty() && plan.is_some(), "the session comes first");
        let refused = dial_of(json!({}), json!({}), json!({ "preset": "ultravox" })).map(|_| ());
        assert_eq!(refused.expect_err("it cannot be dialled").code.as_str(), "MISSING_P4_AGENT_ID");
        let rows = rows_of(agent, json!({}), json!({}));
        let none =
            super::dial(&rows, ConnectionType::P4, &Settings::new("unused")).map(|_| ()).expect_err("there is none");
        assert_eq!(none.code.as_str(), "MISSING_P4_INTEGRATION");
    }

    /// Fields of agents reach the platform, and those of a run in their place.
    #[test]
    fn fields_of_agents_and_of_runs_reach_the_platform() {
        let asked = |kind: ConnectionType, agent: Value, run: Value, body: Value| {
            let table = json!({ "preset": "ultravox", "session_body": body });
            let tables = BTreeMap::from([(
                kind.as_str().to_owned(),
                AdapterTable(table.as_object().expect("an object was written").clone()),
            )]);
            let adapters = Arc::new(adapters(&tables).expect("it is good"));
            let settings = Settings { adapters, ..Settings::new("unused") };
            let platforms = json!({ "P3_api_key": "k", "P4_api_key": "k", "P5_private_key": "k", "P9_api_key": "k" });
            let platforms = serde_json::from_value(platforms).expect("it fits");
            let rows = CallRows { platforms, ..rows_of(agent, json!({}), run) };
            let (_, plan) = dial(&rows, kind, &settings).expect("it can be asked");
            let plan = plan.expect("the session comes first");
            let request = plan.adapter.session_request(&plan.facts).expect("it is good").expect("there is one");
            (request.url, serde_json::from_str::<Value>(&request.body).expect("JSON"))
        };
        for (kind, field) in [
            (ConnectionType::P3, "P3_agent_id"),
            (ConnectionType::P4, "P4_agent_id"),
            (ConnectionType::P5, "P5_assistant_id"),
        ] {
            let (url, _) = asked(kind, json!({ field: "own" }), json!({}), json!({}));
            assert_eq!(url, "https://api.ultravox.ai/api/agents/own/calls");
            let (url, _) = asked(kind, json!({ field: "own" }), json!({ field: "other" }), json!({}));
            assert_eq!(url, "https://api.ultravox.ai/api/agents/other/calls", "{field} of the run");
        }
        let agent = json!({ "P9_pathway_id": "p", "P9_call_settings": { "voice": "x", "n": [1] } });
        let (_, body) = asked(ConnectionType::P9, agent, json!({}), json!({ "call": "{{agent.P9_call_settings}}" }));
        assert_eq!(body["call"], json!({ "voice": "x", "n": [1] }));
        let agent =
            json!({ "P10_agent_token": "t", "P10_release": "canary", "P10_agent_parameters": { "tier": "gold" } });
        let more = json!({ "release": "{{agent.P10_release}}", "parameters": "{{agent.P10_agent_parameters}}" });
        let (_, body) = asked(ConnectionType::P10, agent, json!({}), more);
        assert_eq!((&body["release"], &body["parameters"]), (&json!("canary"), &json!({ "tier": "gold" })));
    }

    #[test]
    fn fields_that_no_setting_passes_on_are_told() {
        let told = |kind: &str, agent: Value, table: Value| {
            let table = AdapterTable(table.as_object().expect("an object was written").clone());
            let adapters = adapters(&BTreeMap::from([(kind.to_owned(), table)])).expect("it is good");
            let settings = Settings { adapters: Arc::new(adapters), ..Settings::new("unused") };
            warn_of_idle(&rows_of(agent, json!({ "name": "Ann" }), json!({})), &settings)
        };
        let p9 = json!({ "P9_pathway_id": "p", "P9_call_settings": { "voice": "x" } });
        let why = "P9_call_settings: no setting of [adapters.P9] passes it on";
        assert_eq!(told("P9", p9.clone(), json!({ "preset": "ultravox" })), [why]);
        let body = json!({ "call": "{{ agent.P9_call_settings }}" });
        assert_eq!(told("P9", p9, json!({ "preset": "ultravox", "session_body": body })), [""; 0]);
        assert_eq!(told("P9", json!({ "P9_pathway_id": "p" }), json!({ "preset": "ultravox" })), [""; 0]);
        let p10 = json!({ "P10_agent_token": "t", "P10_agent_parameters": { "a": 1 }, "mode": "TEXT" });
        assert_eq!(told("P10", p10, json!({ "preset": "dialog_interact" })), [""; 0]);
    }

    /// Whoever may change an agent must not learn the organization's credentials.
    #[test]
    fn a_host_that_the_agent_names_is_given_no_stored_credential() {
        let tables = |table: Value| {
            let table = AdapterTable(table.as_object().expect("an object was written").clone());
            adapters(&BTreeMap::from([("P8".to_owned(), table)]))
        };
        let table = json!({ "transport": "websocket", "url": "{{agent.P8_base_url}}/talk/{{agent.P8_domain_code}}",
            "auth": "bearer", "audio_out": { "type": "audio", "pointer": "/audio" },
            "audio_in": { "type": "audio", "pointer": "/audio" }, "encoding": "L16", "rate": 16000 });
        let agent = json!({ "P8_base_url": "https://elsewhere.example", "P8_domain_code": "d", "P8_agent_name": "a" });
        let platforms = serde_json::from_value(json!({ "P8_credentials": "secret-key" })).expect("it fits");
        let rows = CallRows { platforms, ..rows_of(agent, json!({ "name": "Ann" }), json!({})) };
        let adapters_of_p8 = Arc::new(tables(table.clone()).expect("it is good"));
        let settings = Settings { adapters: adapters_of_p8, ..Settings::new("unused") };
        let (dial, _) = dial(&rows, ConnectionType::P8, &settings).expect("it can be dialled");
        assert_eq!(dial.url, "wss://elsewhere.example/talk/d");
        assert_eq!(dial.dialect.expect("there is one").headers, []);
        let mut with_key = table;
        with_key["headers"] = json!({ "X-Key": "{{integration.key}}" });
        let problems = tables(with_key).map(|_| ()).expect_err("it would send a secret");
        assert!(problems[0].contains("cannot go to a host that the agent names"), "{problems:?}");
    }

    #[test]
    fn settings_that_cannot_be_used_are_all_told() {
        let table = |value: Value| AdapterTable(value.as_object().expect("an object was written").clone());
        let tables = BTreeMap::from([
            ("P2".to_owned(), table(json!({ "preset": "ultravox" }))),
            ("P4".to_owned(), table(json!({ "preset": "ultravox", "url": "wss://h/{{agent.nothing}}" }))),
            ("P5".to_owned(), table(json!({ "preset": "ultravox", "url": "wss://h/{{agent.P5_assistant_id}}" }))),
        ]);
        let problems = adapters(&tables).map(|_| ()).expect_err("two are refused");
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[1].contains("nothing is called {{agent.nothing}}"), "{problems:?}");
    }
}
