//! Agents that have a telephone number, called through sipp as the trunk.

use axum::body::to_bytes;
use serde_json::{Value, json};

use super::house::House;
use crate::api::receiver::Receiver;
use crate::peers::Peer;

/// Returns the settings of a trunk at a peer, with these further lines.
fn trunk(peer: &Peer, more: &str) -> String {
    let (host, port) = (peer.sip.ip(), peer.sip.port());
    format!(
        "[sip.trunks.near]\nhost = '{host}'\nport = {port}\nnumbers = ['+15550001111', '+15550001112']\n\
         allowed_prefixes = ['+1']\ndenied_prefixes = ['+1900']\ndisplay_name = 'Front desk'\nfrom_domain = 'desk.example'\n{more}"
    )
}

async fn figures(house: &House) -> String {
    let (status, page) = house.ask("GET", "/metrics", Value::Null).await;
    assert_eq!(status, 200);
    String::from_utf8(to_bytes(page, 1 << 20).await.expect("a body").to_vec()).expect("text")
}

/// Returns the value of a header field of a request.
fn field<'a>(request: &'a str, name: &str) -> Option<&'a str> {
    request.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_with_a_number_is_called_through_the_trunk() {
    let peer = Peer::scenario("trunk");
    let house = House::with_trunks(&trunk(&peer, "identity = 'private'\nmax_calls = 1")).await;
    let agent = json!({ "phone_number": "+1 (555) 000-9999", "custom_sip_headers": { "Tenant": "42" } });
    let fact = json!({ "trait_name": "vip", "trait_data_type": "BOOLEAN", "value": true, "is_sip_header": true });
    let human = json!({ "extension": "12", "phone_number": "+15550001112", "traits": [fact] });
    let (_, ids) = house.queue(agent, json!({}), &[human]).await;
    let events = house.events(&ids[0]).await;
    let result = house.result(&ids[0]).await;
    assert_eq!((&result["status"], &result["error_code"]), (&json!("COMPLETED"), &Value::Null), "{result}");
    let noted = (&result["metadata"]["trunk"], &result["metadata"]["caller_number"], &result["metadata"]["codec"]);
    assert_eq!(noted, (&json!("near"), &json!("+15550001112"), &json!("PCMU")));
    let keyed = events.iter().filter(|(name, _)| name == "dtmf_sent").map(|(_, event)| &event["data"]["digits"]);
    assert_eq!(keyed.collect::<Vec<_>>(), ["1", "2"], "the extension");
    let at = peer.sip;
    let invite = peer.end();
    assert!(invite.contains(&format!("INVITE sip:+15550009999@{at} SIP/2.0")), "{invite}");
    let from = field(&invite, "From").expect("From");
    assert!(from.starts_with("\"Front desk\" <sip:+15550001112@desk.example>;tag="), "{from}");
    assert_eq!(field(&invite, "To"), Some(format!("<sip:+15550009999@{at}>").as_str()));
    let asserted = Some("\"Front desk\" <sip:+15550001112@desk.example>");
    assert_eq!((field(&invite, "P-Asserted-Identity"), field(&invite, "Privacy")), (asserted, Some("id")));
    assert!(!invite.lines().any(|line| line.to_ascii_lowercase().starts_with("x-")), "{invite}");
    let offered = invite.lines().find(|line| line.starts_with("m=audio")).expect("an offer");
    assert!(offered.contains("RTP/AVP 0 8 9 "), "PCMU, PCMA, G722: {offered}");
    house.stop().await;
}

/// A number of the trunk's block is called from once it was added; before that, and without a trunk, it says why not.
#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_was_added_is_called_from() {
    let peer = Peer::scenario("trunk");
    let house = House::with_trunks(&trunk(&peer, "carries = ['+155500022']")).await;
    let agent = json!({ "phone_number": "+15550009999" });
    let outcome = async |number: &str| {
        let (_, ids) = house.queue(agent.clone(), json!({}), &[json!({ "phone_number": number })]).await;
        house.events(&ids[0]).await;
        house.result(&ids[0]).await
    };
    let early = outcome("+15550002233").await;
    assert_eq!((&early["status"], &early["error_code"]), (&json!("NO_CONNECTION"), &json!("UNUSABLE_CALLER_ID")));
    let why = early["error_message"].as_str().expect("a reason");
    assert!(why.contains("sip.trunks.near.carries: it has to be added"), "{why}");
    let add = async |number: &str| house.call("POST", "/v1/phone-numbers/add", json!({ "phone_number": number })).await;
    let added = add("+15550002233").await;
    assert_eq!((&added["trunk"], &added["warnings"]), (&json!("near"), &json!([])));
    let uncarried = add("+4930123456").await;
    assert!(uncarried["warnings"][0].as_str().is_some_and(|why| why.starts_with("No trunk carries +4930123456")));
    let refused = outcome("+4930123456").await;
    assert_eq!(refused["error_code"], "UNUSABLE_CALLER_ID", "{refused}");
    assert_eq!(peer.log(), "", "nothing was sent");
    let result = outcome("+15550002233").await;
    assert_eq!((&result["status"], &result["error_code"]), (&json!("COMPLETED"), &Value::Null), "{result}");
    let noted = (&result["metadata"]["trunk"], &result["metadata"]["caller_number"]);
    assert_eq!(noted, (&json!("near"), &json!("+15550002233")));
    let invite = peer.end();
    let from = field(&invite, "From").expect("From");
    assert!(from.contains("<sip:+15550002233@desk.example>"), "{from}");
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_of_an_agent_may_tell_a_number() {
    let peer = Peer::scenario("trunk");
    let house = House::with_trunks(&trunk(&peer, "")).await;
    let owner = Receiver::answering(vec![(200, json!({ "phone_number": "+1 555 000 8888" }).to_string())]).await;
    let (_, ids) =
        house.queue(json!({ "dynamic_sip_webhook_url": owner.url("/where") }), json!({}), &[json!({})]).await;
    house.events(&ids[0]).await;
    let result = house.result(&ids[0]).await;
    assert_eq!((&result["status"], &result["error_code"]), (&json!("COMPLETED"), &Value::Null), "{result}");
    let invite = peer.end();
    assert!(invite.contains("INVITE sip:+15550008888@"), "{invite}");
    assert_eq!((field(&invite, "P-Asserted-Identity"), field(&invite, "Privacy")), (None, None), "{invite}");
    let from = field(&invite, "From").expect("From");
    assert!(from.contains("<sip:+15550001111@desk.example>"), "a free number: {from}");
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_a_limit_refuses_is_not_dialled() {
    let peer = Peer::scenario("trunk");
    let house = House::with_trunks(&format!(
        "{}\n[limits.organizations.{}]\nmax_minutes_per_day = 1",
        trunk(&peer, ""),
        "elsewhere"
    ))
    .await;
    for (agent, human, code, owner) in [
        (json!({ "phone_number": "+19005550000" }), json!({}), "DIAL_PREFIX_REFUSED", "engine"),
        (json!({ "phone_number": "+4930123456" }), json!({}), "DIAL_PREFIX_REFUSED", "engine"),
        (json!({ "sip_uri": format!("sip:+19005550000@{}", peer.sip) }), json!({}), "DIAL_PREFIX_REFUSED", "engine"),
        (json!({ "sip_uri": format!("sip:911@{}", peer.sip.ip()) }), json!({}), "DIAL_PREFIX_REFUSED", "engine"),
        (
            json!({ "phone_number": "+15550009999" }),
            json!({ "phone_number": "+15550007777" }),
            "UNUSABLE_CALLER_ID",
            "simulated_caller",
        ),
    ] {
        let (_, ids) = house.queue(agent.clone(), json!({}), &[human]).await;
        house.events(&ids[0]).await;
        let result = house.result(&ids[0]).await;
        let outcome = (&result["status"], &result["error_code"], &result["error_owner"]);
        assert_eq!(outcome, (&json!("NO_CONNECTION"), &json!(code), &json!(owner)), "{agent}: {result}");
    }
    let counted = r#"ringer_dial_refused_total{code="DIAL_PREFIX_REFUSED",trunk="near"} 4"#;
    let page = figures(&house).await;
    assert!(page.lines().any(|line| line == counted), "{page}");
    assert_eq!(peer.log(), "", "nothing was sent");
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_to_a_number_that_is_denied_is_not_followed() {
    let peer = Peer::scenario_with("redirect", "contact", "sip:+19005550000@localhost");
    let house = House::with_trunks(&format!("[sip]\nredirects = ['localhost']\n{}", trunk(&peer, ""))).await;
    let (_, ids) = house.queue(json!({ "phone_number": "+15550009999" }), json!({}), &[json!({})]).await;
    house.events(&ids[0]).await;
    let result = house.result(&ids[0]).await;
    let outcome = (&result["status"], &result["error_code"]);
    assert_eq!(outcome, (&json!("NO_CONNECTION"), &json!("SIP_DIAL_FAILED")), "{result}");
    peer.end();
    let counted = r#"ringer_dial_refused_total{code="DIAL_PREFIX_REFUSED",trunk="near"} 1"#;
    let page = figures(&house).await;
    assert!(page.lines().any(|line| line == counted), "{page}");
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_the_owner_of_an_agent_tells_is_limited_too() {
    let peer = Peer::scenario("trunk");
    let house = House::with_trunks(&trunk(&peer, "")).await;
    let owner = Receiver::answering(vec![(200, json!({ "phone_number": "+1 900 555 0000" }).to_string())]).await;
    let (_, ids) =
        house.queue(json!({ "dynamic_sip_webhook_url": owner.url("/where") }), json!({}), &[json!({})]).await;
    house.events(&ids[0]).await;
    let result = house.result(&ids[0]).await;
    let outcome = (&result["status"], &result["error_code"]);
    assert_eq!(outcome, (&json!("NO_CONNECTION"), &json!("DIAL_PREFIX_REFUSED")), "{result}");
    assert_eq!(peer.log(), "", "nothing was sent");
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outbound_proxy_is_told_whom_a_call_is_for() {
    let peer = Peer::scenario("trunk");
    let at = peer.sip;
    let settings = format!(
        "[sip.trunks.far]\nhost = 'carrier.invalid'\noutbound_proxy = '{at}'\nnumbers = ['+15550001111']\n\
         allowed_prefixes = ['+1']"
    );
    let house = House::with_trunks(&settings).await;
    let (_, ids) = house.queue(json!({ "phone_number": "+15550009999" }), json!({}), &[json!({})]).await;
    house.events(&ids[0]).await;
    let result = house.result(&ids[0]).await;
    assert_eq!((&result["status"], &result["error_code"]), (&json!("COMPLETED"), &Value::Null), "{result}");
    let invite = peer.end();
    assert!(invite.contains("INVITE sip:+15550009999@carrier.invalid SIP/2.0"), "{invite}");
    assert_eq!(field(&invite, "Route"), Some(format!("<sip:{at};lr>").as_str()), "{invite}");
    house.stop().await;
}
