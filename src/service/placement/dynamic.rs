//! Address of an agent that gives it call by call (`dynamic_sip_webhook_url`): its owner is asked before dialling.

use std::collections::BTreeMap;
use std::time::Duration;

use ringer_base::clock::Clock;
use ringer_base::config::Secret;
use ringer_base::error::Result;
use ringer_base::post::{Poster, Posting, signatures};
use ringer_model::Object;
use ringer_model::agent::ConnectionType;
use ringer_model::error_code::ErrorCode;
use ringer_model::time::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{CallRows, Obstacle, Placements};
use crate::conversation::trace_context::TRACEPARENT;
use crate::library::field_rules;
use crate::{NotDone, Settings};

/// Time limit for a connection and its answer together.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest answer that is read, in bytes.
const ANSWER_BYTES: usize = 64 * 1024;
/// Waits after the first request and the second; the third is the last.
const WAITS_MS: [Option<i64>; 3] = [Some(1000), Some(2000), None];
/// Longest wait that an answer may ask for.
const WAIT_MOST_S: u64 = 10;

/// Address that an agent's owner returned for one call.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
struct DynamicAddress {
    #[serde(default)]
    sip_uri: Option<String>,
    #[serde(default)]
    phone_number: Option<String>,
    #[serde(default)]
    sip_username: Option<String>,
    #[serde(default)]
    sip_password: Option<String>,
    #[serde(default)]
    custom_headers: Option<BTreeMap<String, String>>,
    #[serde(default)]
    metadata: Option<Object>,
}

impl Placements {
    /// Asks for the agent's address when it has to be asked for, and puts it into `rows`. Returns the part of the
    /// answer that is kept with the result.
    pub(super) async fn find_address(
        &self,
        organization: &str,
        rows: &mut CallRows,
    ) -> Result<Object, NotDone<Obstacle>> {
        let asks = !rows.is_called() && rows.overrides.sip_uri.is_none();
        let Some(url) = rows.agent.spec.dynamic_sip_webhook_url.clone().filter(|_| asks) else {
            return Ok(Object::new());
        };
        let id = rows.result_id.to_string();
        let body = json!({
            "test_result_id": id,
            "experiment_run_id": rows.run_id,
            "agent_id": rows.agent_id,
            "organization_id": organization,
            "nonce": id,
            "timestamp": Timestamp(self.clock.now_ms()),
        });
        let key = rows.agent.http_webhook_key.clone().map(Secret::new);
        let asked = Asked { poster: &self.poster, clock: &self.clock, settings: &self.settings };
        match asked.ask(&url, key, &body, rows.traceparent.as_deref()).await {
            Ok(found) => Ok(rows.take_address(found)),
            Err(why) => {
                let message = format!("dynamic_sip_webhook_url: {why}");
                Err(Obstacle::new(ErrorCode::DynamicEndpointFailed, message).into())
            }
        }
    }
}

impl CallRows {
    fn take_address(&mut self, address: DynamicAddress) -> Object {
        let spec = &mut self.agent.spec;
        spec.dynamic_sip_webhook_url = None;
        // The dynamic address made it one of SIP, whatever it says.
        spec.connection_type =
            Some(if address.sip_uri.is_some() { ConnectionType::Sip } else { ConnectionType::Phone });
        match address.sip_uri {
            Some(uri) => spec.sip_uri = Some(uri),
            // The address counts where both are given.
            None => spec.phone_number = address.phone_number,
        }
        spec.sip_username = address.sip_username.or(spec.sip_username.take());
        spec.sip_password = address.sip_password.or(spec.sip_password.take());
        if let Some(more) = address.custom_headers {
            let headers = spec.custom_sip_headers.get_or_insert_default();
            headers.retain(|name, _| !more.keys().any(|new| new.eq_ignore_ascii_case(name)));
            headers.extend(more);
        }
        address.metadata.unwrap_or_default()
    }
}

struct Asked<'a> {
    poster: &'a Poster,
    clock: &'a Clock,
    settings: &'a Settings,
}

impl Asked<'_> {
    /// Asks until there is an address, at most three times.
    async fn ask(
        &self,
        url: &str,
        key: Option<Secret>,
        body: &Value,
        traceparent: Option<&str>,
    ) -> std::result::Result<DynamicAddress, String> {
        let body = body.to_string();
        let mut headers: Vec<(&str, String)> =
            key.iter().flat_map(|key| signatures(key.expose(), "", self.clock.now_ms(), &body)).collect();
        headers.extend(traceparent.map(|value| (TRACEPARENT, value.to_owned())));
        let mut why = String::new();
        for wait in WAITS_MS {
            let posting = Posting {
                method: "POST",
                url,
                headers: &headers,
                body: body.clone(),
                patience: PATIENCE,
                answer_bytes: ANSWER_BYTES,
            };
            let mut asked_s = None;
            match self.poster.exchange(posting).await {
                Ok(posted) if posted.status == 200 => match self.parse_answer(&posted.body) {
                    Ok(address) => return Ok(address),
                    Err(bad) => why = bad,
                },
                Ok(posted) => {
                    why = format!("it answered {}", posted.status);
                    if matches!(posted.status, 400..=499) && !matches!(posted.status, 408 | 425 | 429) {
                        break;
                    }
                    asked_s = posted.retry_after_s.filter(|_| posted.status == 429);
                }
                Err(failed) => why = failed.why,
            }
            let Some(wait) = wait else { break };
            let wait = asked_s.map_or(wait, |seconds| 1000 * seconds.min(WAIT_MOST_S) as i64);
            self.clock.until(self.clock.now_ms() + wait).await;
        }
        Err(why)
    }

    fn parse_answer(&self, body: &[u8]) -> std::result::Result<DynamicAddress, String> {
        let mut document: DynamicAddress =
            serde_json::from_slice(body).map_err(|_| "its answer is no JSON of an address".to_owned())?;
        let given = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        if !given(&document.sip_uri) {
            document.sip_uri = None;
        }
        let checked = match (&document.sip_uri, given(&document.phone_number)) {
            (Some(uri), _) => field_rules::sip_uri(Some(uri), self.settings),
            (None, true) => field_rules::phone("phone_number", &mut document.phone_number),
            (None, false) => return Err("its answer has neither sip_uri nor phone_number".to_owned()),
        };
        checked.map_err(|error| error.to_string()).map(|()| document)
    }
}

#[cfg(test)]
mod tests {
    use ringer_base::guard::Guard;
    use ringer_base::testing::WebServer;

    use super::*;
    use crate::placement::tests::rows_of;

    fn poster() -> Poster {
        Poster::new(Guard::new(true), PATIENCE)
    }

    #[tokio::test]
    async fn an_address_is_asked_for_three_times_at_most() {
        let answer = |status: &str, body: &str| {
            let length = body.len();
            format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}").into_bytes()
        };
        let server = WebServer::start(move |path: &str| match path {
            "/good" => answer("200", r#"{"sip_uri": "sip:a@192.0.2.1", "phone_number": "+15550001111"}"#),
            "/number" => answer("200", r#"{"sip_uri": "", "phone_number": "+1 555 000 1111"}"#),
            "/empty" => answer("200", "{}"),
            "/bad" => answer("200", r#"{"sip_uri": "nobody"}"#),
            "/inside" => answer("200", r#"{"sip_uri": "sip:a@169.254.169.254"}"#),
            "/text" => answer("200", "hello"),
            path => answer(path.trim_start_matches('/'), ""),
        });
        let server = server.await.expect("loopback has a free port");
        let settings = Settings::new("unused");
        for (path, times, expect) in [
            ("/good", 1, Ok("sip:a@192.0.2.1")),
            ("/number", 1, Ok("+15550001111")),
            ("/empty", 3, Err("its answer has neither sip_uri nor phone_number")),
            ("/bad", 3, Err("sip_uri must be of the form sip:<user>@<host>")),
            ("/inside", 3, Err("sip_uri points to a host that is not allowed")),
            ("/text", 3, Err("its answer is no JSON of an address")),
            ("/404", 1, Err("it answered 404")),
            ("/401", 1, Err("it answered 401")),
            ("/302", 3, Err("it answered 302")),
            ("/204", 3, Err("it answered 204")),
            ("/408", 3, Err("it answered 408")),
            ("/429", 3, Err("it answered 429")),
            ("/503", 3, Err("it answered 503")),
        ] {
            let clock = Clock::standing_at(1_000_000);
            let (poster, url) = (poster(), server.url(path));
            let asked = Asked { poster: &poster, clock: &clock, settings: &settings };
            let before = server.paths().len();
            let body = json!({});
            let waits = async {
                loop {
                    clock.advance_to_wait(10_000).await;
                    tokio::task::yield_now().await;
                }
            };
            let stated = tokio::select! {
                found = asked.ask(&url, None, &body, None) => found,
                () = waits => unreachable!("it waits for ever"),
            };
            let found = stated.map(|stated| stated.sip_uri.or(stated.phone_number).expect("one of them"));
            assert_eq!(found, expect.map(str::to_owned).map_err(str::to_owned), "{path}");
            assert_eq!(server.paths().len() - before, times, "{path}");
            let waited = if times == 3 { 3000 } else { 0 };
            assert_eq!(clock.now_ms(), 1_000_000 + waited, "{path}");
        }
    }

    #[test]
    fn what_is_told_holds_for_this_call() {
        let agent = json!({ "dynamic_sip_webhook_url": "http://h", "sip_username": "own", "sip_password": "old",
            "custom_sip_headers": { "Tenant": "1", "Kept": "2" } });
        let mut rows = rows_of(agent, json!({}), json!({}));
        let answer = json!({ "sip_uri": "sip:a@192.0.2.1", "sip_password": "new", "custom_headers": { "tenant": "3" },
            "metadata": { "region": "eu" } });
        let kept = rows.take_address(serde_json::from_value(answer).expect("it fits"));
        let spec = &rows.agent.spec;
        assert_eq!((spec.sip_uri.as_deref(), &spec.dynamic_sip_webhook_url), (Some("sip:a@192.0.2.1"), &None));
        assert_eq!((spec.sip_username.as_deref(), spec.sip_password.as_deref()), (Some("own"), Some("new")));
        let headers: Vec<(&str, &str)> =
            spec.custom_sip_headers.iter().flatten().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(headers.len(), 2);
        assert!(headers.contains(&("tenant", "3")) && headers.contains(&("Kept", "2")), "{headers:?}");
        assert_eq!(Value::Object(kept), json!({ "region": "eu" }));
        let number = DynamicAddress { phone_number: Some("+15550001111".into()), ..DynamicAddress::default() };
        rows.take_address(number);
        let spec = &rows.agent.spec;
        assert_eq!(
            (spec.connection(), spec.phone_number.as_deref()),
            (Some(ConnectionType::Phone), Some("+15550001111"))
        );
    }
}
