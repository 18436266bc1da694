//! Error codes of failures of calls to voice pipelines and media rooms. Pure.

use ringer_model::error_code::{ErrorCode, Platform, PlatformFault};
use ringer_transport::fault::{AdapterFault, FaultKind};

/// Returns the error code of a result whose call failed so.
pub(crate) fn code_of(kind: FaultKind) -> ErrorCode {
    use PlatformFault::{AgentError, AuthFailed, BridgeConnectFailed, SessionSetupFailed};
    match kind {
        FaultKind::RoomAuth => ErrorCode::Platform(Platform::P1, AuthFailed),
        FaultKind::RoomSetup => ErrorCode::Platform(Platform::P1, SessionSetupFailed),
        FaultKind::RoomConnect => ErrorCode::Platform(Platform::P1, BridgeConnectFailed),
        FaultKind::RoomAgent => ErrorCode::Platform(Platform::P1, AgentError),
        FaultKind::RoomNoAgent => ErrorCode::NoAnswer,
        FaultKind::RoomLost => ErrorCode::BridgeDisconnected,
        FaultKind::PipelineAuth => ErrorCode::Platform(Platform::P2, AuthFailed),
        FaultKind::PipelineSetup => ErrorCode::Platform(Platform::P2, SessionSetupFailed),
        FaultKind::PipelineConnect => ErrorCode::P2ConnectionFailed,
        FaultKind::PipelineAgent => ErrorCode::Platform(Platform::P2, AgentError),
        FaultKind::PipelineRoom => ErrorCode::ConnectionNotSupported,
        FaultKind::Events => ErrorCode::Platform(Platform::P2, PlatformFault::MonitoringError),
        FaultKind::Busy => ErrorCode::CustomerConcurrencyLimit,
        FaultKind::OwnBeforeCall => ErrorCode::BridgePreStartFailed,
        FaultKind::OwnInCall => ErrorCode::InternalError,
    }
}

/// Returns the error code of a kind that an end of a call names; an unknown name is a fault of this side.
pub(super) fn code_named(name: &str) -> ErrorCode {
    if let Some((platform, fault)) = AdapterFault::parse(name)
        && let Some(platform) = Platform::parse(platform)
    {
        return code_of_adapter(platform, fault);
    }
    FaultKind::parse(name).map_or(ErrorCode::InternalError, code_of)
}

fn code_of_adapter(platform: Platform, fault: AdapterFault) -> ErrorCode {
    let fault = match fault {
        // The agent has not hung up, and its platform has not failed.
        AdapterFault::Limit => return ErrorCode::BridgeDisconnected,
        AdapterFault::Events => PlatformFault::MonitoringError,
        AdapterFault::Auth => PlatformFault::AuthFailed,
        AdapterFault::Setup => PlatformFault::SessionSetupFailed,
        AdapterFault::Connect => PlatformFault::BridgeConnectFailed,
        AdapterFault::Start => PlatformFault::AgentStartFailed,
        AdapterFault::Agent => PlatformFault::AgentError,
    };
    ErrorCode::Platform(platform, fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_lead_to_codes() {
        let codes = [
            "P1_AUTH_FAILED",
            "P1_SESSION_SETUP_FAILED",
            "P1_BRIDGE_CONNECT_FAILED",
            "P1_AGENT_ERROR",
            "NO_ANSWER",
            "BRIDGE_DISCONNECTED",
            "P2_AUTH_FAILED",
            "P2_SESSION_SETUP_FAILED",
            "P2_CONNECTION_FAILED",
            "P2_AGENT_ERROR",
            "CONNECTION_NOT_SUPPORTED",
            "P2_MONITORING_ERROR",
            "CUSTOMER_CONCURRENCY_LIMIT",
            "BRIDGE_PRE_START_FAILED",
            "INTERNAL_ERROR",
        ];
        assert_eq!(FaultKind::ALL.len(), codes.len());
        for (kind, code) in FaultKind::ALL.iter().zip(codes) {
            assert_eq!(code_named(kind.as_str()).as_str(), code, "{kind:?}");
            assert_eq!(ErrorCode::from(code), code_of(*kind), "{code}");
        }
        for (name, code) in [
            ("P4 auth", "P4_AUTH_FAILED"),
            ("P3 setup", "P3_SESSION_SETUP_FAILED"),
            ("P10 connect", "P10_BRIDGE_CONNECT_FAILED"),
            ("P9 start", "P9_AGENT_START_FAILED"),
            ("P5 agent", "P5_AGENT_ERROR"),
            ("P6 events", "P6_MONITORING_ERROR"),
            ("P7 limit", "BRIDGE_DISCONNECTED"),
        ] {
            assert_eq!(code_named(name).as_str(), code);
        }
        assert_eq!((code_named("else"), code_named("PX auth")), (ErrorCode::InternalError, ErrorCode::InternalError));
    }
}
