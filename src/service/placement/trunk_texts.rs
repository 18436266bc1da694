//! Text messages through the trunk that owns the Digital Human's number (RFC 3428).

use std::sync::Arc;

use futures_util::future::BoxFuture;
use ringer_base::config::{Identity, Trunk, carrier as carrier_of};
use ringer_base::guard::Guard;
use ringer_engine::TextSender;
use ringer_model::error_code::ErrorCode;
use ringer_provider::messages::{Carrier, CarrierWay, OWN, SMS_FAILED, TextLine, Trouble, TrunkTexts};
use ringer_sip::Uri;
use ringer_sip::auth::Credentials;
use ringer_sip::messaging::TextMessage;
use ringer_sip::registration::route;
use ringer_syntax::phone::e164;
use ringer_transport::sip::address::Address;
use ringer_transport::sip::driver::NotSent;
use uuid::Uuid;

use super::dial::{CallerNumber, Outgoing};
use super::phone::{quote, unreachable};
use super::platform::no_carrier;
use super::{CallRows, Obstacle};
use crate::{LiveCalls, Settings};

/// Time in milliseconds that a conversation whose end is not known counts as under way: a day.
const LASTS_MS: i64 = 86_400_000;

/// Returns the way of text messages between two numbers, and the number that leaves.
///
/// # Errors
/// No trunk owns the Digital Human's number, the agent's is no number, or the trunk cannot be found.
pub(super) async fn carrier(
    rows: &CallRows,
    live: &dyn LiveCalls,
    settings: &Settings,
) -> Result<(Carrier, Outgoing), Obstacle> {
    let [from, to] = rows.overrides.text_numbers(&rows.agent.spec, &rows.human, rows.step.as_ref());
    let invalid = |message: &str| Obstacle::new(ErrorCode::InvalidPhoneNumber, message);
    let from = from.ok_or_else(|| invalid("The Digital Human has no number for text messages"))?;
    let to = to.ok_or_else(|| invalid("The agent has no phone_number"))?;
    let number = e164(&to).ok_or_else(|| invalid("phone_number is no number in E.164"))?;
    let own = e164(&from).unwrap_or_default();
    let found = carrier_of(&settings.trunks, &own);
    let Some((name, trunk)) = found.filter(|(_, trunk)| trunk.lists(&own) || rows.has_added_number) else {
        let message = format!("No trunk owns {from}: text messages leave by the trunk of their number");
        return Err(Obstacle::new(ErrorCode::SmsNotConfigured, message));
    };
    let sender = live.text_sender().ok_or_else(no_carrier)?;
    let message = message(trunk, &from, &number, settings).await.map_err(|fault| {
        let Obstacle { code, message } = unreachable(name, &fault);
        let is_dialled = code == ErrorCode::SipDialFailed;
        Obstacle::new(if is_dialled { ErrorCode::SmsSendFailed } else { code }, message)
    })?;
    let texts = TrunkTexts {
        room: sender.room(&message),
        target: trunk.port.map_or_else(|| format!("sip:{}", trunk.host), |port| format!("sip:{}:{port}", trunk.host)),
        line: Arc::new(Line { sender, message }),
    };
    let outgoing = Outgoing {
        trunk: name.to_owned(),
        number,
        caller: CallerNumber::Own(from.clone()),
        rings_ms: LASTS_MS,
        lasts_ms: 0,
    };
    Ok((Carrier { way: CarrierWay::Trunk(texts), from, to }, outgoing))
}

/// Returns a message from one number to another, without words.
async fn message(
    trunk: &Trunk,
    from: &str,
    number: &str,
    settings: &Settings,
) -> Result<TextMessage, ringer_transport::sip::address::AddressFault> {
    let target = Address::parse(&trunk.uri(number))?;
    let proxy = trunk.proxy_uri().and_then(|proxy| Uri::parse(&proxy).ok());
    let next = proxy.clone().map_or_else(|| target.clone(), Address::from);
    // Whoever sets the engine up chooses where its trunks are.
    let places = next.hops(&settings.names, &Guard::new(true)).await?;
    let display = trunk.display_name.as_deref().map(|name| format!("{} ", quote(name))).unwrap_or_default();
    let from = format!("{display}<sip:{from}@{}>", trunk.domain());
    let mut headers: Vec<(String, String)> = proxy.iter().map(|proxy| ("Route".to_owned(), route(proxy))).collect();
    if trunk.identity != Identity::Off {
        headers.push(("P-Asserted-Identity".to_owned(), from.clone()));
    }
    if trunk.identity == Identity::Private {
        headers.push(("Privacy".to_owned(), "id".to_owned()));
    }
    let password = trunk.password.as_ref().map(|password| password.expose().to_owned());
    let credentials = trunk.username.clone().zip(password);
    Ok(TextMessage {
        target: target.uri().clone(),
        from,
        headers,
        text: String::new(),
        // As long as that of every message.
        call_id: Uuid::nil().to_string(),
        credentials: credentials.map(|(username, password)| Credentials { username, password }),
        places,
    })
}

/// Line between two numbers.
struct Line {
    sender: TextSender,
    /// Message between the numbers, without words.
    message: TextMessage,
}

impl TextLine for Line {
    fn send(&self, id: Uuid, text: String) -> BoxFuture<'_, Result<(), Trouble>> {
        let message = TextMessage { text, call_id: id.to_string(), ..self.message.clone() };
        Box::pin(async move { self.sender.send(message).await.map_err(trouble) })
    }
}

/// Returns the trouble of a text that was not sent. Another attempt is made only where it was certainly not read.
fn trouble(NotSent { refusal, is_own }: NotSent) -> Trouble {
    let is_passing = !refusal.is_open && (!refusal.is_answer || matches!(refusal.code, 480 | 500 | 503 | 504));
    let wait_ms = refusal.retry_after_s.map(|wait_s| i64::try_from(wait_s).unwrap_or(i64::MAX).saturating_mul(1000));
    let message = match refusal.is_answer {
        true => format!("the trunk answered {}", refusal.text),
        false => format!("the trunk ({}): {}", refusal.code, refusal.text),
    };
    let again = is_passing.then(|| wait_ms.map(|wait_ms| wait_ms.min(LONGEST_WAIT_MS)));
    let status = refusal.is_answer.then_some(refusal.code);
    Trouble { status, ..Trouble::new(if is_own { OWN } else { SMS_FAILED }, message, again) }
}

/// Longest Retry-After that is kept, in milliseconds.
const LONGEST_WAIT_MS: i64 = 10_000;

#[cfg(test)]
mod tests {
    use ringer_sip::messaging::TextRefusal;
    use serde_json::{Value, json};

    use super::*;
    use crate::NoLiveCalls;
    use crate::placement::tests::rows_of;
    use crate::placement::trunks::tests::{TWO, trunks};

    #[tokio::test]
    async fn a_text_leaves_by_the_trunk_that_owns_its_number() {
        let settings = Settings { trunks: Arc::new(trunks(TWO)), ..Settings::new("unused") };
        let refused = async |agent: Value, human: Value| {
            let refused = carrier(&rows_of(agent, human, json!({})), &NoLiveCalls, &settings).await.err();
            refused.map(|obstacle| obstacle.code.as_str().to_owned()).unwrap_or_default()
        };
        let agent = json!({ "mode": "TEXT", "phone_number": "+15550009999" });
        for (agent, human, expect) in [
            (agent.clone(), json!({}), "INVALID_PHONE_NUMBER"),
            (agent.clone(), json!({ "phone_number": "+15550007777" }), "SMS_NOT_CONFIGURED"),
            (json!({ "mode": "TEXT" }), json!({ "phone_number": "+15550002222" }), "INVALID_PHONE_NUMBER"),
            // There is no engine that sends.
            (agent, json!({ "phone_number": "+15550002222" }), "SMS_NOT_CONFIGURED"),
        ] {
            assert_eq!(refused(agent, human.clone()).await, expect, "{human}");
        }
        let far = &settings.trunks["far"];
        let far = Trunk { outbound_proxy: None, display_name: Some("Front \"desk\"".into()), ..far.clone() };
        let message = message(&far, "+15550002222", "+15550009999", &settings).await.expect("it is an address");
        assert_eq!(message.target.to_string(), "sip:+15550009999@192.0.2.7");
        assert_eq!(message.from, r#""Front \"desk\"" <sip:+15550002222@192.0.2.7>"#);
        assert_eq!(message.places.iter().map(ToString::to_string).collect::<Vec<_>>(), ["UDP 192.0.2.7:5060"]);
    }

    #[test]
    fn only_what_was_not_read_is_sent_again() {
        for (code, is_answer, is_open, wait, expect) in [
            (404, true, false, None, (Some(404), None)),
            (408, false, true, None, (None, None)),
            (503, true, false, Some(2), (Some(503), Some(Some(2000)))),
            (503, true, false, Some(u64::MAX), (Some(503), Some(Some(10_000)))),
            (503, false, false, None, (None, Some(None))),
            (503, false, true, None, (None, None)),
        ] {
            let refusal = TextRefusal { code, is_answer, text: "why".into(), retry_after_s: wait, is_open };
            let trouble = trouble(NotSent { refusal, is_own: false });
            assert_eq!((trouble.status, trouble.again), expect, "{code} {is_answer} {is_open}");
            assert_eq!(trouble.codes, SMS_FAILED);
        }
    }
}
