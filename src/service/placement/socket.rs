//! Agents that are reached by a WebSocket: address, dialect and parameters of the call.

use ringer_base::config::{Secret, nearest};
use ringer_base::error::{Error, Result};
use ringer_base::guard::Guard;
use ringer_engine::WebSocketDial;
use ringer_model::error_code::ErrorCode;
use ringer_transport::websocket::dialect::DialectError;
use ringer_transport::websocket::{Dialect, Kind};

use super::{CallRows, Obstacle};
use crate::Settings;

/// Returns how the server of the agent is reached.
pub(super) fn dial(rows: &CallRows, settings: &Settings) -> Result<WebSocketDial, Obstacle> {
    let missing = || Obstacle::new(ErrorCode::WebsocketConnectFailed, "The agent has no websocket_url");
    let url = url(rows).ok_or_else(missing)?;
    let terms = terms(rows, settings)?;
    if let Some(dialect) = terms.dialect.as_ref().filter(|dialect| !settings.any_host && !dialect.may_go_to(&url)) {
        let message = format!(
            "The dialect's headers and keys go to its hosts alone ({}): websocket_url leads to none of them",
            dialect.hosts.join(", ")
        );
        return Err(Obstacle::new(ErrorCode::WebsocketConnectFailed, message));
    }
    Ok(WebSocketDial { url, traceparent: rows.traceparent.clone(), ..terms })
}

/// Returns the terms of a call over a WebSocket, whoever opens it.
pub(super) fn terms(rows: &CallRows, settings: &Settings) -> Result<WebSocketDial, Obstacle> {
    let agent = &rows.agent.spec;
    let named = rows.overrides.websocket_dialect.as_deref().or(rows.human.websocket_dialect.as_deref());
    let unknown = |error: Error| Obstacle::new(ErrorCode::WebsocketConnectFailed, error.to_string());
    let dialect = settings.dialect(named.or(agent.websocket_dialect.as_deref())).map_err(unknown)?;
    let parameters: Vec<(String, String)> =
        agent.websocket_parameters.iter().flatten().map(|(key, value)| (key.clone(), value.clone())).collect();
    let refused = |error: DialectError| Obstacle::new(ErrorCode::WebsocketConnectFailed, error.to_string());
    dialect.check_parameters(&parameters).map_err(refused)?;
    Ok(WebSocketDial {
        url: String::new(),
        username: agent.websocket_username.clone(),
        password: agent.websocket_password.clone().map(Secret::new),
        dialect: Some(dialect),
        parameters,
        result_id: u64::try_from(rows.result_id).unwrap_or_default(),
        from: rows.human.phone_number.clone().unwrap_or_default(),
        to: agent.phone_number.clone().unwrap_or_default(),
        settings: settings.sockets.clone(),
        guard: Some(Guard::new(settings.allow_private_agents)),
        traceparent: None,
    })
}

impl Settings {
    /// Returns the dialect of a name; `None`: the engine's own protocol.
    ///
    /// # Errors
    /// The name is neither a kind's nor one of the settings.
    pub fn dialect(&self, name: Option<&str>) -> Result<Dialect> {
        let Some(name) = name else { return Ok(Dialect::new(Kind::Default)) };
        let known = Kind::from_name(name).map(Dialect::new).or_else(|| self.dialects.get(name).cloned());
        known.ok_or_else(|| {
            let mut names: Vec<&str> = Kind::DIALECTS.map(Kind::name).to_vec();
            names.extend(self.dialects.keys().map(String::as_str));
            Error::Refused(Kind::unknown(name) + &nearest(name, names.into_iter()))
        })
    }
}

/// Returns the address of the server: the run's, the Digital Human's or the agent's.
fn url(rows: &CallRows) -> Option<String> {
    let given = [&rows.overrides.websocket_url, &rows.human.websocket_url, &rows.agent.spec.websocket_url];
    given.into_iter().flatten().find(|url| !url.is_empty()).cloned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ringer_engine::Destination;
    use ringer_media::call::DtmfMethod;
    use ringer_transport::websocket::{Dialect, Kind};
    use serde_json::{Value, json};

    use super::*;
    use crate::placement::tests::rows_of;

    #[test]
    fn the_nearest_address_and_dialect_count() {
        let of = |agent: Value, human: Value, run: Value| {
            let desk = Dialect::new(Kind::VonageWebsocket);
            let dialects = BTreeMap::from([("desk".to_owned(), desk)]).into();
            let settings = Settings { dialects, ..Settings::new("unused") };
            let dial = dial(&rows_of(agent, human, run), &settings);
            dial.map_err(|obstacle| (obstacle.code.as_str().to_owned(), obstacle.message))
        };
        let agent = json!({
            "websocket_url": "ws://agent", "websocket_username": "u", "websocket_dialect": "raw_pcm16",
            "websocket_parameters": { "a": "b" },
        });
        for (human, run, url, kind) in [
            (json!({}), json!({}), "ws://agent", Kind::RawPcm16),
            (json!({ "websocket_url": "ws://human" }), json!({}), "ws://human", Kind::RawPcm16),
            (
                json!({ "websocket_url": "ws://human", "websocket_dialect": "desk" }),
                json!({ "websocket_url": "ws://run" }),
                "ws://run",
                Kind::VonageWebsocket,
            ),
            (json!({}), json!({ "websocket_dialect": "audiohook" }), "ws://agent", Kind::Audiohook),
        ] {
            let found = of(agent.clone(), human, run).expect("it can be dialled");
            assert_eq!((found.url.as_str(), found.dialect().kind), (url, kind));
            assert_eq!((found.result_id, found.username.as_deref()), (17, Some("u")));
            assert_eq!(found.parameters, [("a".to_owned(), "b".to_owned())]);
        }
        let code = "WEBSOCKET_CONNECT_FAILED".to_owned();
        let missing = of(json!({ "connection_type": "WEBSOCKET" }), json!({}), json!({})).expect_err("there is none");
        assert_eq!(missing, (code.clone(), "The agent has no websocket_url".to_owned()));
        let unknown = of(agent, json!({}), json!({ "websocket_dialect": "x" })).expect_err("there is none");
        assert_eq!(unknown, (code, "Unknown websocket_dialect \'x\'".to_owned()));
    }

    #[test]
    fn digits_go_as_the_dialect_says() {
        let mut inband = Dialect::new(Kind::TwilioMediaStreams);
        inband.dtmf_inband = true;
        for (dialect, expect) in [
            (Dialect::new(Kind::Default), DtmfMethod::Inband),
            (Dialect::new(Kind::TwilioMediaStreams), DtmfMethod::Message),
            (inband, DtmfMethod::MessageAndTone),
        ] {
            let dial = WebSocketDial { dialect: Some(dialect), ..WebSocketDial::default() };
            assert_eq!(Destination::WebSocket(Box::new(dial)).digit_method(), Some(expect));
        }
        assert_eq!(Destination::default().digit_method(), None);
        assert_eq!(Destination::Pipeline(Box::default()).digit_method(), Some(DtmfMethod::MessageAndTone));
        assert_eq!(Destination::Room(Box::default()).digit_method(), Some(DtmfMethod::MessageAndTone));
    }
}
