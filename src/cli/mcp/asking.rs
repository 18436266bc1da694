//! Telephone numbers: whether one may be called, and the question to the person before it. A number costs money and
//! reaches somebody.

use std::collections::BTreeMap;

use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitationAction, ElicitationSchema, InputRequest, InputRequests,
    InputRequiredResult, ProtocolVersion,
};
use serde_json::{Map, Value};

use super::session::Call;
use crate::cli::run::client::Trouble;

/// Reason why a tool has no result.
pub(super) enum Fault {
    /// Text that the assistant is told.
    Told(String),
    /// A person is to be asked first; the assistant then asks again.
    Asks(Box<InputRequiredResult>),
}

impl Fault {
    /// Returns a fault with this text.
    pub(super) fn from_text(why: impl Into<String>) -> Fault {
        Fault::Told(why.into())
    }
}

impl From<Trouble> for Fault {
    fn from(trouble: Trouble) -> Fault {
        let Trouble::Refused(refusal) = &trouble else { return Fault::Told(trouble.to_string()) };
        let lines: Vec<String> = refusal.detail.as_array().into_iter().flatten().map(problem).collect();
        match lines.is_empty() {
            true => Fault::Told(trouble.to_string()),
            false => Fault::Told(format!("the server refuses it: {}", lines.join("; "))),
        }
    }
}

/// Returns one problem of a refused body as a place and a message.
fn problem(one: &Value) -> String {
    let step = |step: &Value| step.as_str().map_or_else(|| step.to_string(), str::to_owned);
    let place: Vec<String> = one["loc"].as_array().into_iter().flatten().map(step).collect();
    format!("{}: {}", place.join("."), one["msg"].as_str().unwrap_or("not allowed"))
}

/// Digits from which on the user of a SIP address is taken for a telephone number.
const LEAST_DIGITS: usize = 7;
/// Short numbers that lead to the telephone network from many exchanges.
const EMERGENCY: [&str; 5] = ["110", "112", "911", "988", "999"];

/// Returns the telephone number that is called for an agent with these fields; `None`: it has none. A SIP address whose
/// user is a number counts, since it may lead to a trunk.
pub(super) fn number_of(agent: &Map<String, Value>) -> Option<String> {
    let text = |name: &str| agent.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let user = || {
        let uri = text("sip_uri")?;
        let (scheme, rest) = uri.split_once(':')?;
        let user = rest.split_once('@').map_or(if scheme.eq_ignore_ascii_case("tel") { rest } else { "" }, |at| at.0);
        let user = percent_encoding::percent_decode_str(user).decode_utf8_lossy();
        let number: String = user.split([';', ':']).next()?.chars().filter(|c| !"-.() ".contains(*c)).collect();
        // Codes before a number, as *67 or 9 and a comma, are no letters.
        let digits: String = number.chars().filter(char::is_ascii_digit).collect();
        let is_number = digits.len() >= LEAST_DIGITS || EMERGENCY.contains(&&*digits);
        (is_number && !number.chars().any(char::is_alphabetic)).then_some(number)
    };
    // Whoever answers may name a number.
    let dynamic = || text("dynamic_sip_webhook_url").map(|_| "that its webhook names".to_owned());
    text("phone_number").map(str::to_owned).or_else(user).or_else(dynamic)
}

/// Checks whether a call to these numbers may be made.
///
/// # Errors
/// Numbers are not allowed, the person has to be asked or has declined.
pub(super) async fn admit(call: &Call<'_>, numbers: &[String], calls: usize) -> Result<(), Fault> {
    if numbers.is_empty() {
        return Ok(());
    }
    if !call.allow_trunks {
        return Err(Fault::from_text(format!(
            "{} is a telephone number, and those are not called: `ringer mcp --allow-trunks` or the setting \
             mcp.allow_trunks of the server allows it",
            numbers.join(", ")
        )));
    }
    let can_ask = call.context.client_capabilities().is_some_and(|can| {
        can.elicitation.is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none())
    });
    if !can_ask {
        return Ok(());
    }
    let name = format!("call {calls} {}", numbers.join(" "));
    let message = format!(
        "Call the telephone number {} ({calls} {})? The trunk's provider may charge for it.",
        numbers.join(", "),
        if calls == 1 { "call" } else { "calls" }
    );
    let action = if is_of_rounds(call) { earlier_answer(call, &name, message)? } else { ask(call, message).await? };
    match action {
        ElicitationAction::Accept => Ok(()),
        _ => Err(Fault::from_text("the person did not allow the call to the telephone number: nothing was called")),
    }
}

/// True for a protocol in which a question is an answer, and the request comes again with what was said (MCP
/// 2026-07-28).
fn is_of_rounds(call: &Call<'_>) -> bool {
    let version = call.context.protocol_version();
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Returns what the person said in the round before; the name of the question binds it to these numbers.
fn earlier_answer(call: &Call<'_>, name: &str, message: String) -> Result<ElicitationAction, Fault> {
    let Some(answer) = call.answers.get(name) else {
        let asks = InputRequest::Elicitation(ElicitRequest::new(question(message)));
        let asks = InputRequests::from([(name.to_owned(), asks)]);
        return Err(Fault::Asks(Box::new(InputRequiredResult::from_input_requests(asks))));
    };
    serde_json::from_value(answer["action"].clone()).map_err(|_| Fault::from_text("the person's answer has no action"))
}

async fn ask(call: &Call<'_>, message: String) -> Result<ElicitationAction, Fault> {
    let asked = call.context.peer.create_elicitation(question(message)).await;
    asked.map(|answer| answer.action).map_err(|error| {
        Fault::from_text(format!("the person could not be asked, so the telephone number is not called: {error}"))
    })
}

fn question(message: String) -> ElicitRequestParams {
    let requested_schema = ElicitationSchema::new(BTreeMap::new());
    ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_number_is_found_in_each_of_its_places() {
        for (agent, expect) in [
            (json!({ "phone_number": "+14155550100" }), Some("+14155550100")),
            (json!({ "sip_uri": "sip:+1-415-555-0100@trunk.example;transport=tls" }), Some("+14155550100")),
            (json!({ "sip_uri": "SIPS:14155550100;user=phone@trunk.example" }), Some("14155550100")),
            (json!({ "sip_uri": "sip:%2B14155550100@trunk.example" }), Some("+14155550100")),
            (json!({ "sip_uri": "tel:+14155550100" }), Some("+14155550100")),
            (json!({ "sip_uri": "sip:desk@127.0.0.1:5080" }), None),
            (json!({ "sip_uri": "sip:1000@pbx.example" }), None),
            (json!({ "sip_uri": "sip:127.0.0.1:5080" }), None),
            (json!({ "phone_number": null, "sip_uri": null, "websocket_url": "wss://1.example/+14155550100" }), None),
            (json!({ "phone_number": "" }), None),
        ] {
            let fields = agent.as_object().cloned().expect("an object");
            assert_eq!(number_of(&fields).as_deref(), expect, "{agent}");
        }
    }
}
