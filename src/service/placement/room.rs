//! Agents in media rooms: names of the room and of the caller in it, what the agent is told, and the way in. The room
//! that was created for a call is removed after it.

use std::sync::Arc;

use ringer_base::clock::random_seed;
use ringer_base::config::Secret;
use ringer_base::error::Result;
use ringer_base::guard::Guard;
use ringer_base::post::Poster;
use ringer_engine::{Destination, RoomDial};
use ringer_model::Object;
use ringer_model::agent::ConnectionType;
use ringer_model::error_code::{ErrorCode, Platform, PlatformFault};
use ringer_model::integration::IntegrationSpec;
use ringer_model::result::ResultDoc;
use ringer_transport::room::access::{AccessFault, Admission, RoomKey, RoomServer, TokenServer, Visit, join_token};
use ringer_transport::room::{Credentials, Patience, RoomTarget, RoomTerms};
use serde_json::json;

use super::{CallRows, Obstacle, Placements, PreparedCall};
use crate::conversation::facts::{met_agent, spoken_facts};
use crate::conversation::outcome::code_of;
use crate::library::folders::stored_integrations;
use crate::{Settings, WEBHOOK_PATIENCE};

/// Names under which the id of the result reaches the agent.
const RESULT_IDS: [&str; 2] = ["X-Simulation-Result-Id", "simulation_result_id"];

/// The room of a call before it is open.
pub struct RoomPlan {
    visit: Visit,
    way: Way,
    /// True once the room server was asked to create the room.
    may_exist: bool,
}

/// The way into a room.
enum Way {
    /// This side creates the room and signs the token.
    Own { url: String, key: RoomKey },
    /// The agent's owner hands out the token, and creates the room.
    Webhook(TokenServer),
}

impl RoomPlan {
    /// Returns the name of the room.
    pub(super) fn room(&self) -> &str {
        &self.visit.room
    }

    /// Returns the name of a room that this side creates; `None`: another one does.
    pub fn own_name(&self) -> Option<&str> {
        matches!(self.way, Way::Own { .. }).then_some(&self.visit.room)
    }
}

/// Returns how a room is joined, without its address and token: these are asked for when the call begins.
pub(super) fn dial(rows: &CallRows, settings: &Settings) -> std::result::Result<RoomDial, Obstacle> {
    if let Some(lack) = rows.missing(ConnectionType::P1) {
        return Err(lack);
    }
    let guard = Some(Guard::new(settings.allow_private_agents).trusting(&settings.roots));
    Ok(RoomDial { peers: settings.peers.clone(), patience: Patience::default(), guard, ..RoomDial::default() })
}

/// Returns the room that a call is to be held in; `draw` tells rooms of one result apart.
pub(super) fn plan(rows: &CallRows, draw: u32) -> RoomPlan {
    let (agent, id) = (&rows.agent.spec, rows.result_id.to_string());
    let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let metadata = metadata(rows);
    let mut attributes = with_ids(Object::new(), &id);
    attributes.extend(
        spoken_facts(&rows.human.traits).into_iter().map(|(name, value)| (format!("trait.{name}"), json!(value))),
    );
    let way = match given(&agent.p1_token_webhook_url) {
        Some(url) => {
            Way::Webhook(TokenServer { url, authorization: given(&agent.p1_token_webhook_auth).map(Secret::new) })
        }
        None => own_way(&rows.platforms),
    };
    let visit = Visit {
        room: format!("svc-{id}-{draw:08x}"),
        identity: format!("dh-{id}"),
        name: rows.human.name.clone().unwrap_or_default(),
        metadata: json!(metadata).to_string(),
        attributes,
        agent_name: agent_name(rows),
        job_metadata: json!(with_ids(metadata, &id)).to_string(),
        is_agent: false,
    };
    RoomPlan { visit, way, may_exist: false }
}

fn own_way(platforms: &IntegrationSpec) -> Way {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let key = RoomKey { key: text(&platforms.P1_api_key), secret: Secret::new(text(&platforms.P1_api_secret)) };
    Way::Own { url: text(&platforms.P1_url), key }
}

/// Returns the metadata of the room: the run's, the Digital Human's or the agent's, whole.
fn metadata(rows: &CallRows) -> Object {
    let given = [&rows.overrides.p1_metadata, &rows.human.p1_metadata, &rows.agent.spec.p1_metadata];
    given.into_iter().flatten().next().cloned().unwrap_or_default()
}

/// Returns the name of the agent that is dispatched: the run's or the agent's; empty for the default dispatch.
fn agent_name(rows: &CallRows) -> String {
    let name = rows.overrides.p1_agent_name.as_ref().or(rows.agent.spec.p1_agent_name.as_ref());
    name.filter(|name| !name.trim().is_empty()).cloned().unwrap_or_default()
}

fn with_ids(mut fields: Object, id: &str) -> Object {
    fields.extend(RESULT_IDS.map(|name| (name.to_owned(), json!(id))));
    fields
}

/// Returns the topic of tool calls in the room of an agent.
pub(super) fn tool_topic(rows: &CallRows) -> Option<String> {
    rows.agent.spec.p1_customer_tool_topic.clone().filter(|topic| !topic.trim().is_empty())
}

/// Returns a draw for [`plan`].
pub(super) fn draw() -> u32 {
    random_seed() as u32
}

fn obstacle(fault: &AccessFault) -> Obstacle {
    Obstacle::new(code_of(fault.kind()), fault.text(Credentials::Integration))
}

impl Placements {
    /// Opens the room of a call that is in one: asks for its token, or creates it with its agent. A pipeline that has
    /// to be started is, and may hand out a room; a platform's session is asked for. Other calls stay as they are.
    ///
    /// # Errors
    /// The reason for which there can be no call.
    pub async fn open_room(&self, prepared: &mut PreparedCall) -> std::result::Result<(), Obstacle> {
        if prepared.session.is_some() {
            return self.open_session(prepared).await;
        }
        let Some(plan) = prepared.room.as_mut() else { return self.start_pipeline(prepared).await };
        let Destination::Room(dial) = &mut prepared.placement.destination else { return Ok(()) };
        let agent_name = plan.visit.agent_name.clone();
        let (admission, credentials) = match &plan.way {
            Way::Webhook(server) => {
                let rooms = dial.guard.clone().unwrap_or_else(|| Guard::new(self.settings.allow_private_agents));
                let admitted = server.admit(&self.poster, &self.clock, &rooms, &plan.visit).await;
                (admitted.map_err(|fault| obstacle(&fault))?, Credentials::Webhook)
            }
            Way::Own { url, key } => {
                let server = self.room_server(url, key)?;
                plan.may_exist = true;
                if let Err(fault) = server.create(&plan.visit).await {
                    plan.may_exist = fault.is_unsure();
                    return Err(obstacle(&fault));
                }
                let token = join_token(key, &plan.visit, self.clock.now_ms());
                (Admission { server_url: url.clone(), token }, Credentials::Integration)
            }
        };
        let Admission { server_url, token } = admission;
        let dispatched = Some(agent_name.clone()).filter(|name| !name.is_empty());
        dial.terms = RoomTerms { agent_name, credentials, ..RoomTerms::default() };
        dial.target = RoomTarget { server_url, token, tool_topic: prepared.tool_topic.clone(), agent_name: dispatched };
        Ok(())
    }

    /// Removes the room that was created for a call. A room that cannot be removed is logged; the room server removes
    /// it itself some time after everybody has left.
    pub async fn close_room(&self, plan: &RoomPlan) {
        match &plan.way {
            Way::Own { url, key } if plan.may_exist => self.remove_room(url, key, &plan.visit.room).await,
            _ => {}
        }
    }

    /// Removes the room of a result whose engine is gone, where that engine may have created one.
    ///
    /// # Errors
    /// Faults of the store.
    pub async fn close_left_room(&self, organization: &str, result_id: i64) -> Result<()> {
        let mut db = self.store.org(organization).read().await?;
        let Some(row) = db.find::<ResultDoc>(result_id).await? else { return Ok(()) };
        // A call that goes on here, though its claim could not be renewed, keeps its room.
        let Some(room) = row.doc.room.clone().filter(|_| !self.live.holds(result_id)) else { return Ok(()) };
        let is_own = match met_agent(&mut db, &row.doc).await? {
            // An agent without a connection was called in a room that its run named.
            Some(agent) => agent.connection().is_none_or(|kind| kind == ConnectionType::P1),
            None => true,
        };
        let platforms = stored_integrations(&mut db).await?;
        drop(db);
        if let (true, Way::Own { url, key }) = (is_own, own_way(&platforms)) {
            self.remove_room(&url, &key, &room).await;
        }
        Ok(())
    }

    async fn remove_room(&self, url: &str, key: &RoomKey, room: &str) {
        let removed = match self.room_server(url, key) {
            Ok(server) => server.remove(room).await.map_err(|fault| fault.to_string()),
            Err(obstacle) => Err(obstacle.message),
        };
        if let Err(why) = removed {
            tracing::warn!(room, why, "failed to delete a media room");
        }
    }

    fn room_server(&self, url: &str, key: &RoomKey) -> std::result::Result<RoomServer, Obstacle> {
        let guard = Guard::new(self.settings.allow_private_agents).trusting(&self.settings.roots);
        let poster = Poster::new(guard, WEBHOOK_PATIENCE);
        RoomServer::new(url, key.clone(), Arc::new(poster), self.clock.clone()).map_err(|why| {
            let failed = ErrorCode::Platform(Platform::P1, PlatformFault::SessionSetupFailed);
            Obstacle::new(failed, format!("P1_url {why}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::placement::tests::rows_of;

    const DRAW: u32 = 0xabcd;

    fn plan_of(agent: Value, human: Value, run: Value) -> RoomPlan {
        let stored = json!({ "P1_url": "wss://rooms.example", "P1_api_key": "k", "P1_api_secret": "s" });
        let platforms = serde_json::from_value(stored).expect("every field has a default");
        plan(&CallRows { platforms, ..rows_of(agent, human, run) }, DRAW)
    }

    #[test]
    fn names_and_attributes_of_the_caller() {
        let facts = json!([
            { "trait_name": "size", "trait_data_type": "NUMBER", "value": 2 },
            { "trait_name": "full name", "trait_data_type": "STRING", "value": "Ada L." },
            { "trait_name": "vip", "trait_data_type": "BOOLEAN", "value": true },
        ]);
        let plan = plan_of(json!({}), json!({ "name": "Ada", "traits": facts }), json!({}));
        assert_eq!((plan.room(), plan.own_name()), ("svc-17-0000abcd", Some("svc-17-0000abcd")));
        assert_eq!((plan.visit.identity.as_str(), plan.visit.name.as_str()), ("dh-17", "Ada"));
        let expect = json!({
            "X-Simulation-Result-Id": "17", "simulation_result_id": "17",
            "trait.size": "2", "trait.full name": "Ada L.", "trait.vip": "true",
        });
        assert_eq!(json!(plan.visit.attributes), expect);
        let nameless = plan_of(json!({}), json!({}), json!({}));
        assert_eq!(nameless.visit.name, "");
    }

    #[test]
    fn the_nearest_metadata_and_name_count() {
        let some = |text: &str| json!({ "from": text });
        for (agent, human, run, expect) in [
            (Value::Null, Value::Null, Value::Null, json!({})),
            (some("agent"), Value::Null, Value::Null, some("agent")),
            (some("agent"), some("human"), Value::Null, some("human")),
            (some("agent"), some("human"), some("run"), some("run")),
            // Whole: nothing of the others is mixed in.
            (json!({ "a": 1 }), json!({}), Value::Null, json!({})),
            (json!({ "a": 1 }), Value::Null, json!({ "b": [2] }), json!({ "b": [2] })),
            (
                json!({ "simulation_result_id": "theirs" }),
                Value::Null,
                Value::Null,
                json!({ "simulation_result_id": "theirs" }),
            ),
        ] {
            let of = |metadata: &Value| json!({ "P1_metadata": metadata });
            let plan = plan_of(of(&agent), of(&human), of(&run));
            let read = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
            assert_eq!(read(&plan.visit.metadata), expect, "{agent} {human} {run}");
            let mut job = expect.clone();
            job["X-Simulation-Result-Id"] = json!("17");
            job["simulation_result_id"] = json!("17");
            assert_eq!(read(&plan.visit.job_metadata), job, "{agent} {human} {run}");
        }
        for (agent, run, expect) in [
            (Value::Null, Value::Null, ""),
            (json!("desk"), Value::Null, "desk"),
            (json!("desk"), json!("other"), "other"),
            (json!("desk"), json!(""), ""),
            (json!(" "), Value::Null, ""),
        ] {
            let of = |name: &Value| json!({ "P1_agent_name": name });
            assert_eq!(plan_of(of(&agent), json!({}), of(&run)).visit.agent_name, expect, "{agent} {run}");
        }
    }

    #[test]
    fn the_way_into_a_room() {
        let webhook = json!({ "P1_token_webhook_url": "http://h/t", "P1_token_webhook_auth": "Basic x" });
        let plan = plan_of(webhook, json!({}), json!({}));
        assert_eq!(plan.own_name(), None);
        let Way::Webhook(TokenServer { url, authorization }) = plan.way else { panic!("its owner is asked") };
        assert_eq!((url.as_str(), authorization), ("http://h/t", Some(Secret::new("Basic x".into()))));
        let plan =
            plan_of(json!({ "P1_token_webhook_url": "http://h/t", "P1_token_webhook_auth": "" }), json!({}), json!({}));
        assert!(matches!(plan.way, Way::Webhook(TokenServer { authorization: None, .. })));
        let Way::Own { url, key } = plan_of(json!({ "P1_token_webhook_url": "" }), json!({}), json!({})).way else {
            panic!("this side asks the room server")
        };
        assert_eq!((url.as_str(), key.key.as_str(), key.secret.expose()), ("wss://rooms.example", "k", "s"));
    }

    #[test]
    fn missing_settings_have_their_codes() {
        let url = json!({ "P1_url": "wss://h" });
        let keyed = json!({ "P1_url": "wss://h", "P1_api_key": "k" });
        let all = json!({ "P1_url": "wss://h", "P1_api_key": "k", "P1_api_secret": "s" });
        for (agent, stored, expect) in [
            (json!({ "P1_agent_name": "" }), json!({}), Some("P1_url or P1_token_webhook_url is not set")),
            (json!({ "P1_agent_name": "a" }), url, Some("P1_api_key or P1_token_webhook_url is not set")),
            (json!({ "P1_agent_name": "a" }), keyed, Some("P1_api_secret or P1_token_webhook_url is not set")),
            (json!({ "P1_agent_name": "a" }), all, None),
            (json!({ "P1_token_webhook_url": "http://h" }), json!({}), None),
        ] {
            let platforms = serde_json::from_value(stored).expect("every field has a default");
            let rows = CallRows { platforms, ..rows_of(agent.clone(), json!({}), json!({})) };
            let found = dial(&rows, &Settings::new("unused")).err().map(|obstacle| (obstacle.code, obstacle.message));
            let expect = expect.map(|why| (ErrorCode::from("MISSING_P1_INTEGRATION"), why.to_owned()));
            assert_eq!(found, expect, "{agent}");
        }
    }
}
