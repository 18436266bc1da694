//! Calls to agents on platforms that no rows stand for: those of a command, by an id and a key.

use std::sync::Arc;

use ringer_base::clock::Clock;
use ringer_base::guard::Guard;
use ringer_engine::WebSocketDial;
use ringer_model::error_code::ErrorCode;
use ringer_transport::websocket::platform::adapter::Facts;
use ringer_transport::websocket::platform::transport::Transport;
use serde_json::{Map, Value};

use super::Obstacle;
use super::adapter::tokens::Tokens;
use super::adapter::{Adapters, Asker, PLATFORMS, SessionPlan};

/// An agent on a platform, by its id there.
#[derive(Clone, Debug)]
pub struct PlatformLine {
    /// Name of the platform, such as `P4`.
    pub platform: String,
    /// Id of the agent on the platform.
    pub agent_id: String,
    /// Credential of the platform; empty: none.
    pub key: String,
    /// Name of the result for the platform.
    pub result_id: u64,
}

impl PlatformLine {
    /// Returns the way to the agent; a platform that makes sessions is asked for one.
    ///
    /// # Errors
    /// The code and the reason for which there can be no call.
    pub async fn dial(&self, adapters: &Adapters, guard: Guard, clock: &Clock) -> Result<WebSocketDial, Obstacle> {
        let known = PLATFORMS.iter().find(|(kind, ..)| kind.as_str() == self.platform);
        let (Some(adapter), Some((_, platform, ids, key))) = (adapters.get(&self.platform), known) else {
            return Err(Obstacle::new(
                ErrorCode::ConnectionNotSupported,
                format!("There is no adapter for {}", self.platform),
            ));
        };
        if adapter.is_chat() || adapter.transport() != Transport::WebSocket {
            let name = if adapter.is_chat() { "http_chat" } else { adapter.transport().as_str() };
            let why = format!(
                "[adapters.{}] is of transport {name}: only an engine (`ringer up`) calls by it",
                self.platform
            );
            return Err(Obstacle::new(ErrorCode::ConnectionNotSupported, why));
        }
        let text = |name: &str, text: &str| (name.to_owned(), Value::from(text));
        let agent = ["id", ids[0]].into_iter().map(|name| text(name, &self.agent_id)).collect();
        let stored = ["key", key].into_iter().map(|name| text(name, &self.key));
        let facts = Facts {
            agent,
            integration: stored.filter(|_| !self.key.is_empty()).collect(),
            digital_human: Map::new(),
            result_id: self.result_id.to_string(),
            ..Facts::default()
        };
        let mut plan = SessionPlan::new(Arc::clone(adapter), facts, *platform);
        let mut dial = WebSocketDial { result_id: self.result_id, guard: Some(guard), ..WebSocketDial::default() };
        let tokens = Tokens::default();
        let rules = dial.settings.rules.clone();
        plan.open(&mut dial, &Asker { tokens: &tokens, clock, rules: &rules }).await?;
        Ok(dial)
    }
}
