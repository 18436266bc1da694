//! Destination of a call, and the headers of its INVITE.

use ringer_base::config::Secret;
use ringer_base::guard::Guard;
use ringer_engine::{Answering, Destination, SipDial};
use ringer_media::codec::Codec;
use ringer_model::agent::ConnectionType;
use ringer_model::error_code::ErrorCode;
use ringer_sip::Hop;
use ringer_transport::sip::address::{Address, AddressFault};
use ringer_transport::sip::names::Resolver;

use super::dial::Outgoing;
use super::platform::NOT_SUPPORTED;
use super::{CallRows, Obstacle, adapter, adapter_place, adapter_ways, phone, pipeline, room, socket};
use crate::Settings;
use crate::conversation::facts::spoken_value;
use crate::conversation::trace_context::TRACEPARENT;

/// Header fields that are the engine's own.
const OWN_HEADERS: [&str; 2] = ["X-Simulation-Result-Id", "X-Call-Type"];

/// Longest value of a header field.
const VALUE_BYTES: usize = 1024;

/// Returns how the call with the agent comes about, and the number that leaves by it.
pub(super) async fn destination(
    rows: &CallRows,
    codecs: &[Codec],
    settings: &Settings,
) -> Result<(Destination, Option<Outgoing>), Obstacle> {
    let kind = reachable(rows, settings)?;
    let agent = &rows.agent.spec;
    // The other side states where media goes, whichever calls.
    let guard = Guard::new(settings.allow_private_agents);
    if rows.is_called() {
        if kind.is_by_adapter() {
            // It is better known now than when the Digital Human listens.
            match agent.is_placed_by_platform() {
                true => adapter_place::place_plan(rows, settings).map(drop)?,
                false => adapter::plan_of(rows, kind, settings).map(drop)?,
            }
        }
        let (codecs, headers) = (codecs.to_vec(), headers(rows));
        let websocket = match kind {
            ConnectionType::WebSocket => Some(Box::new(socket::terms(rows, settings)?)),
            _ => None,
        };
        let platform = agent.is_placed_by_platform().then(|| kind.as_str().into());
        let answering = Answering { codecs, guard: Some(guard), headers, websocket, platform, ..Answering::default() };
        return Ok((Destination::Incoming(answering), None));
    }
    if kind == ConnectionType::WebSocket {
        return Ok((Destination::WebSocket(Box::new(socket::dial(rows, settings)?)), None));
    }
    if kind.is_by_adapter() {
        return adapter_ways::destination(rows, kind, codecs, headers(rows), settings).await;
    }
    if kind == ConnectionType::P1 {
        return Ok((Destination::Room(Box::new(room::dial(rows, settings)?)), None));
    }
    if kind == ConnectionType::P2 {
        return Ok((Destination::Pipeline(Box::new(pipeline::dial(rows, settings)?)), None));
    }
    if kind == ConnectionType::Phone {
        let (dial, outgoing) = phone::dial(rows, settings).await?;
        return Ok((Destination::Sip(dial), Some(outgoing)));
    }
    let target = rows.overrides.sip_uri.as_ref().or(agent.sip_uri.as_ref());
    let target = target.ok_or_else(|| Obstacle::new(ErrorCode::InvalidSipDestination, "The agent has no sip_uri"))?;
    let hops = find_hops(target, &settings.names, &guard).await?;
    let behind = phone::behind(rows, target, &hops, settings).await;
    let dial = SipDial {
        target: target.clone(),
        hops,
        guard: Some(guard),
        username: agent.sip_username.clone(),
        password: agent.sip_password.clone().map(Secret::new),
        headers: with_trace(headers(rows), rows.traceparent.as_ref().filter(|_| behind.is_none())),
        codecs: codecs.to_vec(),
        from_user: rows.shown_number(behind.as_ref(), settings),
        ..SipDial::default()
    };
    Ok((Destination::Sip(dial), behind))
}

/// Returns the kind of the agent, when it is one that can be called.
fn reachable(rows: &CallRows, settings: &Settings) -> Result<ConnectionType, Obstacle> {
    match rows.telephony() {
        None => Err(Obstacle::new(ErrorCode::NoConnectionType, "The agent has no connection_type and no address")),
        Some(
            kind @ (ConnectionType::Sip
            | ConnectionType::Phone
            | ConnectionType::WebSocket
            | ConnectionType::P1
            | ConnectionType::P2),
        ) => Ok(kind),
        Some(other) if adapter::adapter_of(other, settings).is_some() => Ok(other),
        Some(other) => Err(rows.unmet(other)),
    }
}

/// Checks the address, and finds the hops to it.
async fn find_hops(target: &str, names: &Resolver, guard: &Guard) -> Result<Vec<Hop>, Obstacle> {
    let invalid = |message: String| Obstacle::new(ErrorCode::InvalidSipDestination, message);
    let found = match Address::parse(target) {
        Ok(address) => address.hops(names, guard).await,
        Err(fault) => Err(fault),
    };
    found.map_err(|fault| match fault {
        AddressFault::Malformed(why) => invalid(format!("sip_uri: {why}")),
        AddressFault::NotAllowed(_) => invalid("sip_uri points to a host that is not allowed".to_owned()),
        AddressFault::NotSpoken(why) => Obstacle::new(NOT_SUPPORTED, format!("sip_uri: {why}")),
        AddressFault::NotFound(_) => {
            Obstacle::new(ErrorCode::SipDialFailed, format!("The host of {target:?} cannot be resolved"))
        }
        AddressFault::NotAnswered(why) => Obstacle::new(ErrorCode::SipDialFailed, format!("sip_uri: {why}")),
    })
}

/// Returns the extra header fields of the INVITE, in order: the engine's, the agent's, the caller's traits. A later one
/// of the same name takes the place of an earlier one, except of the engine's.
fn headers(rows: &CallRows) -> Vec<(String, String)> {
    let own = [rows.result_id.to_string(), "SIP".to_owned()];
    let mut headers: Vec<(String, String)> = OWN_HEADERS.map(str::to_owned).into_iter().zip(own).collect();
    let custom = rows.agent.spec.custom_sip_headers.iter().flatten();
    let traits = rows.human.traits.iter().filter(|fact| fact.is_sip_header);
    let custom = custom.map(|(name, value)| (name.clone(), value.clone()));
    for (name, value) in custom.chain(traits.map(|fact| (fact.trait_name.clone(), spoken_value(&fact.value)))) {
        let name = header_name(&name);
        if OWN_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(&name)) {
            continue;
        }
        headers.retain(|(known, _)| !known.eq_ignore_ascii_case(&name));
        headers.push((name, header_value(&value)));
    }
    headers
}

/// Adds the trace context of an agent, if it is told one. A trunk is no agent.
fn with_trace(mut headers: Vec<(String, String)>, traceparent: Option<&String>) -> Vec<(String, String)> {
    headers.extend(traceparent.map(|value| (TRACEPARENT.to_owned(), value.clone())));
    headers
}

/// Returns `X-NAME`, of letters, digits and hyphens.
fn header_name(name: &str) -> String {
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let has_prefix = plain.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("x-"));
    if has_prefix { plain } else { format!("X-{plain}") }
}

/// Returns one line of at most [`VALUE_BYTES`] bytes.
fn header_value(value: &str) -> String {
    let mut line: String = value.chars().filter(|c| !c.is_control() || *c == '\t').collect();
    line.truncate(line.floor_char_boundary(VALUE_BYTES));
    line.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use ringer_transport::sip::names::testing::NameServer;
    use serde_json::{Value, json};

    use super::*;
    use crate::placement::tests::rows_of;

    #[test]
    fn headers_of_the_invite() {
        let check = |custom, traits, expect: &[(&str, &str)]| {
            let rows = rows_of(json!({ "custom_sip_headers": custom }), json!({ "traits": traits }), json!({}));
            let own = [("X-Simulation-Result-Id".to_owned(), "17".to_owned()), ("X-Call-Type".into(), "SIP".into())];
            let expect =
                own.into_iter().chain(expect.iter().map(|(name, value)| (name.to_string(), value.to_string())));
            assert_eq!(headers(&rows), expect.collect::<Vec<_>>());
        };
        let fact = |name: &str, kind: &str, value: Value| json!({"trait_name": name, "trait_data_type": kind, "value": value, "is_sip_header": true});
        check(json!({"Tenant": "42", "x-Run": "7"}), json!([]), &[("X-Tenant", "42"), ("x-Run", "7")]);
        check(json!({"a b:c": "1\r\nVia: x"}), json!([]), &[("X-a-b-c", "1Via: x")]);
        check(json!({"Tenant": "42"}), json!([fact("tenant", "NUMBER", json!(43))]), &[("X-tenant", "43")]);
        check(json!(null), json!([fact("vip", "BOOLEAN", json!(true))]), &[("X-vip", "true")]);
        check(json!({"Call-Type": "FAKE", "x-simulation-result-id": "1"}), json!([]), &[]);
        let hidden = json!([{"trait_name": "pin", "trait_data_type": "STRING", "value": "1"}]);
        check(json!(null), hidden, &[]);
        check(json!({"Long": "ü".repeat(600)}), json!([]), &[("X-Long", "ü".repeat(512).as_str())]);
    }

    #[tokio::test]
    async fn hosts_are_looked_up_by_the_name_servers_of_the_settings() {
        let zone = "
            _sip._udp.test.example. SRV 1 1 5070 one.example.
            one.example. A 192.0.2.1
            inside.example. A 10.0.0.1
            broken.example. A SERVFAIL";
        let server = NameServer::start(zone).await;
        let names = Resolver::new(&[server.address]);
        let settings = Settings { names, allow_private_agents: false, ..Settings::new("unused") };
        let broken = "sip_uri: the host of \"sip:bob@broken.example\" could not be looked up: the name servers answered with an \
                      error (Server Failure)";
        for (host, expect) in [
            ("test.example", Ok("UDP 192.0.2.1:5070")),
            ("inside.example", Err(("INVALID_SIP_DESTINATION", "sip_uri points to a host that is not allowed"))),
            ("none.example", Err(("SIP_DIAL_FAILED", "The host of \"sip:bob@none.example\" cannot be resolved"))),
            ("broken.example", Err(("SIP_DIAL_FAILED", broken))),
        ] {
            let rows = rows_of(json!({ "sip_uri": format!("sip:bob@{host}") }), json!({}), json!({}));
            let found = destination(&rows, &[Codec::Pcmu], &settings).await;
            let found = found.map(|(mut found, _)| {
                found.sip().and_then(|dial| dial.hops.first().cloned()).expect("it dials").to_string()
            });
            let found = found.as_deref().map_err(|obstacle| (obstacle.code.as_str(), obstacle.message.as_str()));
            assert_eq!(found, expect, "{host}");
        }
    }

    #[tokio::test]
    async fn what_cannot_be_dialled_says_why() {
        let settings = Settings::new("unused");
        let sip = "sip:bob@127.0.0.1:5080";
        for (agent, run, expect) in [
            (json!({"sip_uri": sip}), json!({}), None),
            (json!({}), json!({"sip_uri": sip}), None),
            (json!({}), json!({}), Some("NO_CONNECTION_TYPE")),
            (json!({"phone_number": "+15550001111"}), json!({}), Some("SIP_NOT_CONFIGURED")),
            (json!({}), json!({"phone_number": "+15550001111"}), Some("SIP_NOT_CONFIGURED")),
            (json!({"websocket_url": "ws://h"}), json!({}), None),
            (json!({"connection_type": "WEBSOCKET"}), json!({}), Some("WEBSOCKET_CONNECT_FAILED")),
            (json!({"connection_type": "WEBSOCKET"}), json!({"websocket_url": "ws://h"}), None),
            (json!({"mode": "EMAIL"}), json!({}), Some("EMAIL_NOT_CONFIGURED")),
            (json!({"P1_agent_name": "a"}), json!({}), Some("MISSING_P1_INTEGRATION")),
            (json!({"P1_token_webhook_url": "http://h"}), json!({}), None),
            (json!({"P1_token_webhook_url": "http://h", "type": "OUTBOUND"}), json!({}), None),
            (json!({"P2_agent_name": "a"}), json!({}), Some("MISSING_P2_INTEGRATION")),
            (json!({"P4_agent_id": "a"}), json!({}), Some("MISSING_P4_INTEGRATION")),
            (json!({"P10_agent_token": "t"}), json!({}), Some("P10_ADAPTER_NOT_CONFIGURED")),
            (json!({"connection_type": "SIP"}), json!({}), Some("INVALID_SIP_DESTINATION")),
            (json!({"sip_uri": "sip:127.0.0.1"}), json!({}), Some("INVALID_SIP_DESTINATION")),
            (json!({"sip_uri": "sip:bob@169.254.169.254"}), json!({}), Some("INVALID_SIP_DESTINATION")),
            (json!({"sip_uri": "sip:bob@127.0.0.1;transport=sctp"}), json!({}), Some("CONNECTION_NOT_SUPPORTED")),
            (json!({"sip_uri": "sip:bob@host.invalid"}), json!({}), Some("SIP_DIAL_FAILED")),
            (json!({"sip_uri": sip, "type": "OUTBOUND"}), json!({}), None),
            (json!({"connection_type": "SIP", "type": "OUTBOUND"}), json!({}), None),
            (json!({"phone_number": "+15550001111", "type": "OUTBOUND"}), json!({}), None),
            (json!({"websocket_url": "ws://h", "type": "OUTBOUND"}), json!({}), None),
            (json!({"connection_type": "WEBSOCKET", "type": "OUTBOUND"}), json!({}), None),
            (json!({"dynamic_sip_webhook_url": "http://h"}), json!({"sip_uri": sip}), None),
        ] {
            let dialled = destination(&rows_of(agent.clone(), json!({}), run.clone()), &[Codec::Pcmu], &settings).await;
            assert_eq!(dialled.err().map(|obstacle| obstacle.code), expect.map(ErrorCode::from), "{agent} {run}");
        }
    }
}
