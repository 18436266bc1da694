//! Agents behind a voice pipeline: where the offer goes, and what is said along with it.

use ringer_base::config::{Secret, is_http_address};
use ringer_base::guard::Guard;
use ringer_base::post::Poster;
use ringer_engine::{Destination, PipelineDial, RoomDial};
use ringer_model::agent::ConnectionType;
use ringer_model::error_code::ErrorCode;
use ringer_transport::pipeline::{Patience, PipelineTarget, Start, Started, start};
use ringer_transport::room;
use ringer_transport::room::{Credentials, RoomTarget, RoomTerms};
use serde_json::{Value, json};

use super::{CallRows, Obstacle, Placements, PreparedCall};
use crate::Settings;
use crate::conversation::outcome::code_of;

/// Returns how the pipeline of the agent is reached.
pub(super) fn dial(rows: &CallRows, settings: &Settings) -> Result<PipelineDial, Obstacle> {
    let (run, agent, platform) = (&rows.overrides, &rows.agent.spec, &rows.platforms);
    let name = [&run.p2_agent_name, &agent.p2_agent_name].into_iter().flatten().find(|name| !name.trim().is_empty());
    let address = name.filter(|name| settings.pipelines.named_by_address && is_http_address(name));
    if let (None, Some(lack)) = (address, rows.missing(ConnectionType::P2)) {
        return Err(lack);
    }
    let start = match (&settings.pipelines.start_url, name) {
        (None, _) => None,
        _ if address.is_some() => None,
        (Some(_), None) => {
            let message = "P2_agent_name is not set, which p2.start_url needs";
            return Err(Obstacle::new(ErrorCode::NoP2AgentName, message));
        }
        (Some(url), Some(name)) => {
            Some(Start { url: url.clone(), agent_name: name.clone(), body: settings.pipelines.start_body.clone() })
        }
    };
    let configuration = run.p2_agent_configuration.as_ref().or(agent.p2_agent_configuration.as_ref());
    let room_properties = run.p2_room_properties.as_ref().or(agent.p2_room_properties.as_ref());
    let target = PipelineTarget {
        base_url: address.or(platform.P2_base_url.as_ref()).cloned().unwrap_or_default(),
        api_key: platform.P2_api_key.clone().filter(|key| !key.is_empty()).map(Secret::new),
        start,
        configuration: configuration.cloned().unwrap_or_default(),
        room_properties: room_properties.map_or(Value::Null, |properties| json!(properties)),
        result_id: rows.result_id.to_string(),
        offer: None,
        traceparent: rows.traceparent.clone(),
    };
    let guard = Some(Guard::new(settings.allow_private_agents));
    let patience = Patience::answered_within(settings.pipelines.answer_timeout_s);
    Ok(PipelineDial { target, peers: settings.peers.clone(), patience, guard })
}

impl Placements {
    /// Starts the pipeline of a call that needs it. Where the pipeline hands out a media room, the call is held there.
    ///
    /// # Errors
    /// The fault of the last attempt.
    pub(super) async fn start_pipeline(&self, prepared: &mut PreparedCall) -> Result<(), Obstacle> {
        let Destination::Pipeline(dial) = &mut prepared.placement.destination else { return Ok(()) };
        let Some(begins) = dial.target.start.clone() else { return Ok(()) };
        let guard = dial.guard.clone().unwrap_or_else(|| Guard::new(self.settings.allow_private_agents));
        let poster = Poster::new(guard.trusting(&self.settings.roots), dial.patience.request);
        let started = start(&dial.target, &begins, &poster, dial.patience).await;
        match started.map_err(|fault| Obstacle::new(code_of(fault.kind()), fault.to_string()))? {
            Started::Pipeline { base_url, key } => {
                let target = &mut dial.target;
                (target.base_url, target.api_key, target.start) = (base_url, key, None);
            }
            Started::Room { server_url, token } => {
                let tool_topic = prepared.tool_topic.clone();
                let target = RoomTarget { server_url, token, tool_topic, agent_name: None };
                let (peers, guard) = (dial.peers.clone(), dial.guard.clone());
                let (agent_name, credentials) = (begins.agent_name.clone(), Credentials::Start);
                let terms = RoomTerms { agent_name, credentials, ..RoomTerms::default() };
                let joined = RoomDial { target, terms, peers, patience: room::Patience::default(), guard };
                prepared.placement.destination = Destination::Room(Box::new(joined));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ringer_base::config::Pipelines;

    use super::*;
    use crate::placement::tests::rows_of;

    fn dial_of(agent: Value, run: Value, stored: Value, start: bool) -> Result<PipelineDial, (String, String)> {
        let start_url = start.then(|| "http://start".to_owned());
        let settings =
            Settings { pipelines: Pipelines { start_url, ..Pipelines::default() }.into(), ..Settings::new("unused") };
        let platforms = serde_json::from_value(stored).expect("every field has a default");
        let rows = CallRows { platforms, ..rows_of(agent, json!({}), run) };
        dial(&rows, &settings).map_err(|obstacle| (obstacle.code.as_str().to_owned(), obstacle.message))
    }

    #[test]
    fn the_nearest_settings_count() {
        let stored = json!({ "P2_base_url": "http://base", "P2_api_key": "k" });
        let agent = json!({
            "P2_agent_name": "desk", "P2_agent_configuration": { "voice": "calm" }, "P2_room_properties": { "n": 1 },
        });
        let found = dial_of(agent.clone(), json!({}), stored.clone(), true).expect("it can be dialled");
        assert_eq!((found.target.base_url.as_str(), found.target.result_id.as_str()), ("http://base", "17"));
        assert_eq!(found.target.start.as_ref().map(|start| start.agent_name.as_str()), Some("desk"));
        assert_eq!(json!(found.target.configuration), json!({ "voice": "calm" }));
        assert_eq!(found.target.room_properties, json!({ "n": 1 }));
        let run = json!({ "P2_agent_name": "other", "P2_agent_configuration": { "a": 1 }, "P2_room_properties": {} });
        let found = dial_of(agent.clone(), run, stored.clone(), true).expect("it can be dialled");
        assert_eq!(found.target.start.map(|start| start.agent_name), Some("other".to_owned()));
        assert_eq!((json!(found.target.configuration), found.target.room_properties), (json!({ "a": 1 }), json!({})));
        let found = dial_of(json!({}), json!({}), stored, false).expect("no name is needed");
        assert!(found.target.start.is_none());
    }

    #[test]
    fn a_name_is_an_address_where_the_settings_say_so() {
        let pipelines =
            Pipelines { start_url: Some("http://start".to_owned()), named_by_address: true, ..Pipelines::default() };
        let settings = Settings { pipelines: pipelines.into(), ..Settings::new("unused") };
        let dial_of = |name: &str| dial(&rows_of(json!({ "P2_agent_name": name }), json!({}), json!({})), &settings);
        let found = dial_of("http://127.0.0.1:7860").expect("it can be dialled");
        assert_eq!(found.target.base_url, "http://127.0.0.1:7860");
        assert!(found.target.start.is_none());
        assert!(dial_of("desk").is_err());
    }

    #[test]
    fn missing_settings_have_their_codes() {
        let check = |agent: Value, stored: Value, start: bool, code: &str| {
            let (found, message) = dial_of(agent, json!({}), stored, start).expect_err("it cannot be dialled");
            assert_eq!(found, code, "{message}");
        };
        check(json!({ "P2_agent_name": "a" }), json!({}), false, "MISSING_P2_INTEGRATION");
        check(json!({ "P2_agent_name": "a" }), json!({ "P2_api_key": "k" }), true, "MISSING_P2_INTEGRATION");
        check(json!({}), json!({ "P2_base_url": "http://h" }), true, "NO_P2_AGENT_NAME");
        check(json!({ "P2_agent_name": " " }), json!({ "P2_base_url": "http://h" }), true, "NO_P2_AGENT_NAME");
    }
}
