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

/// Codes with their first status and their owner. `Pn_` stands for the prefix of any platform, `P1_` to `P12_`.
const CODES: &[(&str, ResultStatus, Owner)] = &[
    ("Pn_AUTH_FAILED", NoConnection, AgentOwner),
    ("WEBSOCKET_AUTH_FAILED", NoConnection, AgentOwner),
    ("SIP_AUTH_FAILED", NoConnection, AgentOwner),
    ("NO_P2_AGENT_NAME", NoConnection, AgentOwner),
    ("NO_CONNECTION_TYPE", NoConnection, AgentOwner),
    ("Pn_ADAPTER_NOT_CONFIGURED", NoConnection, Engine),
    ("CONNECTION_NOT_SUPPORTED", NoConnection, Engine),
    ("DIAL_PREFIX_REFUSED", NoConnection, Engine),
    ("DIAL_RATE_REFUSED", NoConnection, Engine),
    ("DIAL_CALLS_REFUSED", NoConnection, Engine),
    ("DIAL_MINUTES_REFUSED", NoConnection, Engine),
    ("Pn_INTEGRATION_DECRYPT_FAILED", NoConnection, Engine),
    ("Pn_BRIDGE_CONNECT_FAILED", NoConnection, Provider),
    ("Pn_SESSION_SETUP_FAILED", NoConnection, Provider),
    ("P2_CONNECTION_FAILED", NoConnection, Provider),
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
    ("Pn_AGENT_ERROR", CallDropped, AgentOwner),
    ("Pn_AGENT_START_FAILED", CallDropped, AgentOwner),
    ("Pn_MONITORING_ERROR", CallDropped, Provider),
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
const ALSO_DROPS: &[&str] = &["HTTP_WEBHOOK_FAILED", "SMS_SEND_FAILED", "EMAIL_SEND_FAILED", "P2_CONNECTION_FAILED"];

/// Start of the codes of settings that an agent lacks, one for each kind.
const MISSING: &str = "MISSING_";

impl Owner {
    /// True for faults of this side, which show nothing about the agent.
    pub fn is_own(self) -> bool {
        matches!(self, Engine | SimulatedCaller)
    }
}

/// Who has to act. Unknown codes are the engine's.
pub fn owner(code: &str) -> Owner {
    if code.starts_with(MISSING) {
        return AgentOwner;
    }
    row(code).map_or(Engine, |(_, _, owner)| *owner)
}

/// The terminal status that a code leads to; `connected`: the conversation had begun.
pub fn status(code: &str, connected: bool) -> ResultStatus {
    if code.starts_with(MISSING) {
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
    find(code).or_else(|| find(&format!("Pn_{}", without_platform(code)?)))
}

/// The part after `P1_` .. `P12_`.
fn without_platform(code: &str) -> Option<&str> {
    let (number, rest) = code.strip_prefix('P')?.split_once('_')?;
    number.parse::<u8>().is_ok_and(|n| (1..=12).contains(&n)).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Codes, their statuses (the second is that of a conversation under way), their owner. A row may hold several codes.
    const TABLE: &str = "
        Pn_AUTH_FAILED WEBSOCKET_AUTH_FAILED SIP_AUTH_FAILED | NO_CONNECTION | agent_owner
        MISSING_Pn_INTEGRATION MISSING_P3_AGENT_ID MISSING_P10_AGENT_TOKEN | NO_CONNECTION | agent_owner
        NO_P2_AGENT_NAME NO_CONNECTION_TYPE | NO_CONNECTION | agent_owner
        Pn_ADAPTER_NOT_CONFIGURED CONNECTION_NOT_SUPPORTED | NO_CONNECTION | engine
        DIAL_PREFIX_REFUSED DIAL_RATE_REFUSED DIAL_CALLS_REFUSED DIAL_MINUTES_REFUSED | NO_CONNECTION | engine
        Pn_INTEGRATION_DECRYPT_FAILED | NO_CONNECTION | engine
        Pn_BRIDGE_CONNECT_FAILED Pn_SESSION_SETUP_FAILED | NO_CONNECTION | provider
        P2_CONNECTION_FAILED | NO_CONNECTION CALL_DROPPED | provider
        WEBSOCKET_CONNECT_FAILED | NO_CONNECTION | agent_owner
        BRIDGE_PRE_START_FAILED | NO_CONNECTION | engine
        UNUSABLE_CALLER_ID | NO_CONNECTION | simulated_caller
        INVALID_PHONE_NUMBER INVALID_SIP_DESTINATION INVALID_EMAIL_ADDRESS | NO_CONNECTION | agent_owner
        SIP_DIAL_FAILED | NO_CONNECTION | network
        SIP_NOT_CONFIGURED SMS_NOT_CONFIGURED EMAIL_NOT_CONFIGURED | NO_CONNECTION | engine
        CUSTOMER_CONCURRENCY_LIMIT | NO_CONNECTION | provider
        DYNAMIC_ENDPOINT_FAILED OUTBOUND_TRIGGER_FAILED | NO_CONNECTION | agent_owner
        HTTP_WEBHOOK_FAILED | NO_CONNECTION CALL_DROPPED | agent_owner
        SMS_SEND_FAILED EMAIL_SEND_FAILED | NO_CONNECTION CALL_DROPPED | provider
        ALWAYS_ON_PHONE_IN_USE SIP_TRUNK_RECYCLED | NO_CONNECTION | simulated_caller
        NO_ANSWER CALL_REJECTED AGENT_HUNG_UP_BEFORE_SPEECH INBOUND_NO_INCOMING_CALL | NO_ANSWER | agent_owner
        Pn_AGENT_ERROR Pn_AGENT_START_FAILED | CALL_DROPPED | agent_owner
        Pn_MONITORING_ERROR | CALL_DROPPED | provider
        BRIDGE_DISCONNECTED | CALL_DROPPED | provider
        MEDIA_TIMEOUT | CALL_DROPPED | network
        INSUFFICIENT_BALANCE | OUT_OF_FUNDS | engine
        CUSTOM_NOISE_FAILED | SYSTEM_ERROR | simulated_caller
        LANGUAGE_MODEL_FAILED SYNTHESIZER_FAILED RECOGNIZER_FAILED RECORDING_FAILED | SYSTEM_ERROR | engine
        EVALUATION_TIMEOUT ENGINE_RESTARTED ENGINE_SHUTDOWN INTERNAL_ERROR | SYSTEM_ERROR | engine";

    #[test]
    fn every_code_has_its_status_and_its_owner() {
        let mut told = Vec::new();
        for line in TABLE.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let [codes, statuses, of] = line.split(" | ").collect::<Vec<_>>()[..] else { panic!("{line}") };
            let statuses: Vec<_> = statuses.split(' ').map(|name| ResultStatus::parse(name).expect(name)).collect();
            let of = Owner::parse(of).expect(of);
            for name in codes.split(' ') {
                let platforms = if name.contains("Pn_") { 1..=12 } else { 1..=1 };
                for code in platforms.map(|n| name.replace("Pn_", &format!("P{n}_"))) {
                    let found = [status(&code, false), status(&code, true)];
                    let expect = [statuses[0], statuses[statuses.len() - 1]];
                    assert_eq!((found, owner(&code)), (expect, of), "{code}");
                }
                told.push(name);
            }
        }
        let untold: Vec<_> = CODES.iter().filter(|(code, ..)| !told.contains(code)).collect();
        assert!(untold.is_empty(), "{untold:?}");
    }

    #[test]
    fn codes_that_nobody_knows_are_the_engines() {
        for code in ["P13_AUTH_FAILED", "AUTH_FAILED", "P3_CONNECTION_FAILED", "P0_AGENT_ERROR", "never heard of", ""] {
            assert_eq!((status(code, true), owner(code)), (SystemError, Engine), "{code}");
        }
    }
}
