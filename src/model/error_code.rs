//! Why a result has no good ending: codes, the status they lead to and who has to act.

use super::status::ResultStatus;

words! {
    /// Who has to act on an error.
    Owner {
        AgentOwner = "agent_owner", SimulatedCaller = "simulated_caller", Engine = "engine", Network = "network",
        Provider = "provider",
    }
}

use Owner::*;
use ResultStatus::{CallDropped, NoAnswer, NoConnection, OutOfFunds, SystemError};

/// Codes with one status and one owner. Platform codes (`P3_AUTH_FAILED`) are rows without their prefix.
const CODES: &[(&str, ResultStatus, Owner)] = &[
    ("AUTH_FAILED", NoConnection, AgentOwner),
    ("WEBSOCKET_AUTH_FAILED", NoConnection, AgentOwner),
    ("SIP_AUTH_FAILED", NoConnection, AgentOwner),
    ("ADAPTER_NOT_CONFIGURED", NoConnection, AgentOwner),
    ("NO_P2_AGENT_NAME", NoConnection, AgentOwner),
    ("NO_CONNECTION_TYPE", NoConnection, AgentOwner),
    ("INTEGRATION_DECRYPT_FAILED", NoConnection, Engine),
    ("BRIDGE_CONNECT_FAILED", NoConnection, Provider),
    ("SESSION_SETUP_FAILED", NoConnection, Provider),
    ("CONNECTION_FAILED", NoConnection, Provider),
    ("WEBSOCKET_CONNECT_FAILED", NoConnection, AgentOwner),
    ("BRIDGE_PRE_START_FAILED", NoConnection, Engine),
    ("UNUSABLE_CALLER_ID", NoConnection, SimulatedCaller),
    ("INVALID_PHONE_NUMBER", NoConnection, AgentOwner),
    ("INVALID_SIP_DESTINATION", NoConnection, AgentOwner),
    ("INVALID_EMAIL_ADDRESS", NoConnection, AgentOwner),
    ("SIP_DIAL_FAILED", NoConnection, Network),
    ("SIP_NOT_CONFIGURED", NoConnection, Engine),
    ("SMS_NOT_CONFIGURED", NoConnection, Engine),
    ("EMAIL_NOT_CONFIGURED", NoConnection, Engine),
    ("CUSTOMER_CONCURRENCY_LIMIT", NoConnection, Provider),
    ("DYNAMIC_ENDPOINT_FAILED", NoConnection, AgentOwner),
    ("OUTBOUND_TRIGGER_FAILED", NoConnection, AgentOwner),
    ("HTTP_WEBHOOK_FAILED", NoConnection, AgentOwner),
    ("SMS_SEND_FAILED", NoConnection, Provider),
    ("EMAIL_SEND_FAILED", NoConnection, Provider),
    ("ALWAYS_ON_PHONE_IN_USE", NoConnection, SimulatedCaller),
    ("SIP_TRUNK_RECYCLED", NoConnection, SimulatedCaller),
    ("NO_ANSWER", NoAnswer, AgentOwner),
    ("CALL_REJECTED", NoAnswer, AgentOwner),
    ("AGENT_HUNG_UP_BEFORE_SPEECH", NoAnswer, AgentOwner),
    ("INBOUND_NO_INCOMING_CALL", NoAnswer, AgentOwner),
    ("AGENT_ERROR", CallDropped, AgentOwner),
    ("AGENT_START_FAILED", CallDropped, AgentOwner),
    ("MONITORING_ERROR", CallDropped, Provider),
    ("BRIDGE_DISCONNECTED", CallDropped, Provider),
    ("MEDIA_TIMEOUT", CallDropped, Network),
    ("INSUFFICIENT_BALANCE", OutOfFunds, Engine),
    ("CUSTOM_NOISE_FAILED", SystemError, SimulatedCaller),
    ("LANGUAGE_MODEL_FAILED", SystemError, Engine),
    ("SYNTHESIZER_FAILED", SystemError, Engine),
    ("RECOGNIZER_FAILED", SystemError, Engine),
    ("RECORDING_FAILED", SystemError, Engine),
    ("EVALUATION_TIMEOUT", SystemError, Engine),
    ("ENGINE_RESTARTED", SystemError, Engine),
    ("ENGINE_SHUTDOWN", SystemError, Engine),
    ("INTERNAL_ERROR", SystemError, Engine),
];

/// Codes that can also break off a conversation that was under way.
const ALSO_DROPS: &[&str] = &["HTTP_WEBHOOK_FAILED", "SMS_SEND_FAILED", "EMAIL_SEND_FAILED", "CONNECTION_FAILED"];

/// Who has to act. Unknown codes are the engine's.
pub fn owner(code: &str) -> Owner {
    if code.starts_with("MISSING_") {
        return AgentOwner;
    }
    row(code).map_or(Engine, |(_, _, owner)| *owner)
}

/// The terminal status that a code leads to; `connected`: the conversation had begun.
pub fn status(code: &str, connected: bool) -> ResultStatus {
    if code.starts_with("MISSING_") {
        return NoConnection;
    }
    match row(code) {
        Some((name, _, _)) if connected && ALSO_DROPS.contains(name) => CallDropped,
        Some((_, status, _)) => *status,
        None => SystemError,
    }
}

fn row(code: &str) -> Option<&'static (&'static str, ResultStatus, Owner)> {
    let find = |name: &str| CODES.iter().find(|(code, _, _)| *code == name);
    find(code).or_else(|| find(without_platform(code)?))
}

/// The part after `P1_` .. `P12_`.
fn without_platform(code: &str) -> Option<&str> {
    let (number, rest) = code.strip_prefix('P')?.split_once('_')?;
    number.parse::<u8>().is_ok_and(|n| (1..=12).contains(&n)).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_lead_to_a_status_and_an_owner() {
        for (code, connected, expect_status, expect_owner) in [
            ("P7_AUTH_FAILED", false, NoConnection, AgentOwner),
            ("P3_INTEGRATION_DECRYPT_FAILED", false, NoConnection, Engine),
            ("MISSING_P10_AGENT_TOKEN", false, NoConnection, AgentOwner),
            ("P2_CONNECTION_FAILED", false, NoConnection, Provider),
            ("P2_CONNECTION_FAILED", true, CallDropped, Provider),
            ("HTTP_WEBHOOK_FAILED", true, CallDropped, AgentOwner),
            ("CALL_REJECTED", false, NoAnswer, AgentOwner),
            ("MEDIA_TIMEOUT", true, CallDropped, Network),
            ("INSUFFICIENT_BALANCE", true, OutOfFunds, Engine),
            ("CUSTOM_NOISE_FAILED", false, SystemError, SimulatedCaller),
            ("P13_AUTH_FAILED", false, SystemError, Engine),
            ("never heard of", false, SystemError, Engine),
        ] {
            assert_eq!((status(code, connected), owner(code)), (expect_status, expect_owner), "{code}");
        }
    }
}
