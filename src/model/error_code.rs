//! Error codes of results: the status each leads to, and the owner who has to act.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::kept::Words;
use super::status::ResultStatus;

words! {
    /// Party that has to act on an error.
    kept Owner {
        AgentOwner = "agent_owner", SimulatedCaller = "simulated_caller", Engine = "engine", Network = "network",
        Provider = "provider",
    }
}

use Owner::{AgentOwner, Engine, Network, Provider, SimulatedCaller};
use ResultStatus::{CallDropped, NoAnswer, NoConnection, OutOfFunds, SystemError};

words! {
    /// A platform that agents are on.
    Platform {
        P1 = "P1", P2 = "P2", P3 = "P3", P4 = "P4", P5 = "P5", P6 = "P6", P7 = "P7", P8 = "P8", P9 = "P9", P10 = "P10",
        P11 = "P11", P12 = "P12",
    }
}

words! {
    /// A setting that an agent on a platform may lack.
    Setting {
        Integration = "INTEGRATION", AgentId = "AGENT_ID", AssistantId = "ASSISTANT_ID", AppId = "APP_ID",
        Configuration = "CONFIGURATION", AgentToken = "AGENT_TOKEN",
    }
}

/// The text of something with the name of a platform in it.
macro_rules! of_platform {
    ($platform:expr, $before:literal, $after:literal) => {
        of_platform!($platform, $before, $after, P1 P2 P3 P4 P5 P6 P7 P8 P9 P10 P11 P12)
    };
    ($platform:expr, $before:literal, $after:literal, $($name:ident)+) => {
        match $platform { $(Platform::$name => concat!($before, stringify!($name), $after)),+ }
    };
}

/// Declares the codes: variant, code, first status, owner; then, after the prefix of any platform, the faults of
/// platforms.
macro_rules! codes {
    (
        { $($variant:ident = $code:literal: $status:ident, $owner:ident;)+ }
        { $($fault:ident = $end:literal: $fault_status:ident, $fault_owner:ident;)+ }
    ) => {
        /// Code of the reason why a result has no good ending.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $(#[doc = concat!("`", $code, "`.")] $variant,)+
            /// A fault of an agent's platform, `P1_...` to `P12_...`.
            Platform(Platform, PlatformFault),
            /// A setting that an agent on a platform lacks, `MISSING_P1_...` to `MISSING_P12_...`.
            Missing(Platform, Setting),
            /// A code that this release does not know, as it stands.
            Unknown(String),
        }

        /// A kind of fault that any platform may have.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
        pub enum PlatformFault {
            $(#[doc = concat!("`Pn", $end, "`.")] $fault,)+
        }

        impl PlatformFault {
            /// Every fault, in declared order.
            pub const ALL: &'static [PlatformFault] = &[$(PlatformFault::$fault),+];

            /// Returns the code of this fault of a platform.
            pub fn of(self, platform: Platform) -> &'static str {
                match self { $(PlatformFault::$fault => of_platform!(platform, "", $end)),+ }
            }

            fn status(self) -> ResultStatus {
                match self { $(PlatformFault::$fault => $fault_status),+ }
            }

            fn owner(self) -> Owner {
                match self { $(PlatformFault::$fault => $fault_owner),+ }
            }
        }

        impl ErrorCode {
            /// Every code that is neither of a platform nor unknown, in declared order.
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$variant),+];

            /// Returns the code as in JSON and in the store.
            pub fn as_str(&self) -> &str {
                match self {
                    $(ErrorCode::$variant => $code,)+
                    ErrorCode::Platform(platform, fault) => fault.of(*platform),
                    ErrorCode::Missing(platform, setting) => missing(*platform, *setting),
                    ErrorCode::Unknown(code) => code,
                }
            }

            fn first_status(&self) -> ResultStatus {
                match self {
                    $(ErrorCode::$variant => $status,)+
                    ErrorCode::Platform(_, fault) => fault.status(),
                    ErrorCode::Missing(..) => NoConnection,
                    ErrorCode::Unknown(code) if code.starts_with(MISSING) => NoConnection,
                    ErrorCode::Unknown(_) => SystemError,
                }
            }

            /// Returns who has to act. A code that this release does not know is the engine's, unless it names a
            /// setting that is missing.
            pub fn owner(&self) -> Owner {
                match self {
                    $(ErrorCode::$variant => $owner,)+
                    ErrorCode::Platform(_, fault) => fault.owner(),
                    ErrorCode::Missing(..) => AgentOwner,
                    ErrorCode::Unknown(code) if code.starts_with(MISSING) => AgentOwner,
                    ErrorCode::Unknown(_) => Engine,
                }
            }

            /// Returns the code with this text, if it is of neither a platform nor a missing setting.
            fn plain(code: &str) -> Option<ErrorCode> {
                match code {
                    $($code => Some(ErrorCode::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

codes! {
    {
        WebsocketAuthFailed = "WEBSOCKET_AUTH_FAILED": NoConnection, AgentOwner;
        SipAuthFailed = "SIP_AUTH_FAILED": NoConnection, AgentOwner;
        NoP2AgentName = "NO_P2_AGENT_NAME": NoConnection, AgentOwner;
        NoConnectionType = "NO_CONNECTION_TYPE": NoConnection, AgentOwner;
        ConnectionNotSupported = "CONNECTION_NOT_SUPPORTED": NoConnection, Engine;
        DialPrefixRefused = "DIAL_PREFIX_REFUSED": NoConnection, Engine;
        DialRateRefused = "DIAL_RATE_REFUSED": NoConnection, Engine;
        DialCallsRefused = "DIAL_CALLS_REFUSED": NoConnection, Engine;
        DialMinutesRefused = "DIAL_MINUTES_REFUSED": NoConnection, Engine;
        P2ConnectionFailed = "P2_CONNECTION_FAILED": NoConnection, Provider;
        WebsocketConnectFailed = "WEBSOCKET_CONNECT_FAILED": NoConnection, AgentOwner;
        BridgePreStartFailed = "BRIDGE_PRE_START_FAILED": NoConnection, Engine;
        UnusableCallerId = "UNUSABLE_CALLER_ID": NoConnection, SimulatedCaller;
        InvalidPhoneNumber = "INVALID_PHONE_NUMBER": NoConnection, AgentOwner;
        InvalidSipDestination = "INVALID_SIP_DESTINATION": NoConnection, AgentOwner;
        InvalidEmailAddress = "INVALID_EMAIL_ADDRESS": NoConnection, AgentOwner;
        SipDialFailed = "SIP_DIAL_FAILED": NoConnection, Network;
        SipNotConfigured = "SIP_NOT_CONFIGURED": NoConnection, Engine;
        SmsNotConfigured = "SMS_NOT_CONFIGURED": NoConnection, Engine;
        EmailNotConfigured = "EMAIL_NOT_CONFIGURED": NoConnection, Engine;
        CustomerConcurrencyLimit = "CUSTOMER_CONCURRENCY_LIMIT": NoConnection, Provider;
        DynamicEndpointFailed = "DYNAMIC_ENDPOINT_FAILED": NoConnection, AgentOwner;
        OutboundTriggerFailed = "OUTBOUND_TRIGGER_FAILED": NoConnection, AgentOwner;
        HttpWebhookFailed = "HTTP_WEBHOOK_FAILED": NoConnection, AgentOwner;
        SmsSendFailed = "SMS_SEND_FAILED": NoConnection, Provider;
        EmailSendFailed = "EMAIL_SEND_FAILED": NoConnection, Provider;
        AlwaysOnPhoneInUse = "ALWAYS_ON_PHONE_IN_USE": NoConnection, SimulatedCaller;
        SipTrunkRecycled = "SIP_TRUNK_RECYCLED": NoConnection, SimulatedCaller;
        NoAnswer = "NO_ANSWER": NoAnswer, AgentOwner;
        CallRejected = "CALL_REJECTED": NoAnswer, AgentOwner;
        AgentHungUpBeforeSpeech = "AGENT_HUNG_UP_BEFORE_SPEECH": NoAnswer, AgentOwner;
        InboundNoIncomingCall = "INBOUND_NO_INCOMING_CALL": NoAnswer, AgentOwner;
        BridgeDisconnected = "BRIDGE_DISCONNECTED": CallDropped, Provider;
        MediaTimeout = "MEDIA_TIMEOUT": CallDropped, Network;
        InsufficientBalance = "INSUFFICIENT_BALANCE": OutOfFunds, Engine;
        CustomNoiseFailed = "CUSTOM_NOISE_FAILED": SystemError, SimulatedCaller;
        LanguageModelFailed = "LANGUAGE_MODEL_FAILED": SystemError, Engine;
        SynthesizerFailed = "SYNTHESIZER_FAILED": SystemError, Engine;
        RecognizerFailed = "RECOGNIZER_FAILED": SystemError, Engine;
        RecordingFailed = "RECORDING_FAILED": SystemError, Engine;
        EvaluationTimeout = "EVALUATION_TIMEOUT": SystemError, Engine;
        EngineRestarted = "ENGINE_RESTARTED": SystemError, Engine;
        ResultNotStored = "RESULT_NOT_STORED": SystemError, Engine;
        EngineShutdown = "ENGINE_SHUTDOWN": SystemError, Engine;
        InternalError = "INTERNAL_ERROR": SystemError, Engine;
    }
    {
        AuthFailed = "_AUTH_FAILED": NoConnection, AgentOwner;
        AdapterNotConfigured = "_ADAPTER_NOT_CONFIGURED": NoConnection, Engine;
        IntegrationDecryptFailed = "_INTEGRATION_DECRYPT_FAILED": NoConnection, Engine;
        BridgeConnectFailed = "_BRIDGE_CONNECT_FAILED": NoConnection, Provider;
        SessionSetupFailed = "_SESSION_SETUP_FAILED": NoConnection, Provider;
        AgentError = "_AGENT_ERROR": CallDropped, AgentOwner;
        AgentStartFailed = "_AGENT_START_FAILED": CallDropped, AgentOwner;
        MonitoringError = "_MONITORING_ERROR": CallDropped, Provider;
    }
}

/// Start of the codes of settings that an agent lacks.
const MISSING: &str = "MISSING_";
/// End of the codes of parts of this side that are not set up.
const NOT_CONFIGURED: &str = "_NOT_CONFIGURED";
/// Start of the codes of addresses that are wrong.
const INVALID: &str = "INVALID_";
/// End of the codes of refused credentials.
const AUTH_FAILED: &str = "_AUTH_FAILED";

impl ErrorCode {
    /// Returns the status of a result that ends by this code; `connected`: the conversation had begun.
    pub fn status(&self, connected: bool) -> ResultStatus {
        if connected && self.also_drops() { CallDropped } else { self.first_status() }
    }

    /// True if this code can also end a conversation that has begun.
    pub fn also_drops(&self) -> bool {
        use ErrorCode::{EmailSendFailed, HttpWebhookFailed, P2ConnectionFailed, SmsSendFailed};
        matches!(self, HttpWebhookFailed | SmsSendFailed | EmailSendFailed | P2ConnectionFailed)
    }

    /// True if another attempt ends in the same code: a setting, an address or credentials are missing or wrong.
    pub fn is_lasting(&self) -> bool {
        let text = self.as_str();
        let lasting = [ErrorCode::NoConnectionType, ErrorCode::ConnectionNotSupported];
        [MISSING, INVALID].iter().any(|start| text.starts_with(start))
            || [AUTH_FAILED, NOT_CONFIGURED].iter().any(|end| text.ends_with(end))
                && !matches!(self, ErrorCode::Unknown(_))
            || lasting.contains(self)
    }
}

impl ErrorCode {
    /// True for the code of a setting that is missing.
    pub fn names_missing_setting(&self) -> bool {
        let text = self.as_str();
        text.starts_with(MISSING) || text.ends_with(NOT_CONFIGURED) || *self == ErrorCode::NoConnectionType
    }
}

impl Owner {
    /// True if the fault shows nothing about the agent: it is of this side, or of an owner that this release does not
    /// know.
    pub fn is_own(self) -> bool {
        matches!(self, Engine | SimulatedCaller | Owner::Unknown(_))
    }
}

fn missing(platform: Platform, setting: Setting) -> &'static str {
    match setting {
        Setting::Integration => of_platform!(platform, "MISSING_", "_INTEGRATION"),
        Setting::AgentId => of_platform!(platform, "MISSING_", "_AGENT_ID"),
        Setting::AssistantId => of_platform!(platform, "MISSING_", "_ASSISTANT_ID"),
        Setting::AppId => of_platform!(platform, "MISSING_", "_APP_ID"),
        Setting::Configuration => of_platform!(platform, "MISSING_", "_CONFIGURATION"),
        Setting::AgentToken => of_platform!(platform, "MISSING_", "_AGENT_TOKEN"),
    }
}

/// Returns the code of a platform with this text.
fn parse_platform(code: &str) -> Option<ErrorCode> {
    if let Some(rest) = code.strip_prefix(MISSING) {
        let (name, setting) = rest.split_once('_')?;
        return Some(ErrorCode::Missing(Platform::parse(name)?, Setting::parse(setting)?));
    }
    let platform = Platform::parse(code.split_once('_')?.0)?;
    let fault = PlatformFault::ALL.iter().find(|fault| fault.of(platform) == code)?;
    Some(ErrorCode::Platform(platform, *fault))
}

impl From<&str> for ErrorCode {
    fn from(code: &str) -> ErrorCode {
        let known = ErrorCode::plain(code).or_else(|| parse_platform(code));
        known.unwrap_or_else(|| ErrorCode::Unknown(code.to_owned()))
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ErrorCode {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<ErrorCode, D::Error> {
        from.deserialize_str(Words::default())
    }
}

/// Any string: other releases know other codes.
impl JsonSchema for ErrorCode {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        String::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Rows of the specification: a code (`Pn` stands for each platform), its statuses, its owner.
    const TABLE: &str = include_str!("../../fixtures/api/error_codes.txt");

    type Expected = (ResultStatus, ResultStatus, Owner);

    /// Returns every code of the table, with the status before and after the conversation began, and the owner.
    fn table() -> BTreeMap<String, Expected> {
        let mut all = BTreeMap::new();
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let [code, statuses, owner] = line.split(' ').collect::<Vec<_>>()[..] else {
                panic!("three words: {line}")
            };
            let statuses: Vec<_> = statuses.split(',').map(|word| ResultStatus::parse(word).expect(word)).collect();
            let expect = (statuses[0], statuses[statuses.len() - 1], Owner::parse(owner).expect(owner));
            let platforms = if code.contains("Pn_") { Platform::ALL } else { &Platform::ALL[..1] };
            for platform in platforms {
                let code = code.replace("Pn_", &format!("{}_", platform.as_str()));
                assert_eq!(all.insert(code, expect), None, "{line} is there once");
            }
        }
        all
    }

    fn values(code: &ErrorCode) -> Expected {
        (code.status(false), code.status(true), code.owner())
    }

    #[test]
    fn every_code_of_the_table_has_its_status_and_its_owner() {
        for (text, expect) in table() {
            let code = ErrorCode::from(text.as_str());
            assert!(!matches!(code, ErrorCode::Unknown(_)), "{text}");
            assert_eq!((values(&code), code.as_str()), (expect, text.as_str()));
            assert_eq!(code.also_drops(), expect.0 != expect.1, "{text}");
        }
    }

    #[test]
    fn every_code_is_in_the_table_and_is_read_as_it_is_written() {
        let table = table();
        let mut all = ErrorCode::ALL.to_vec();
        for platform in Platform::ALL {
            all.extend(PlatformFault::ALL.iter().map(|fault| ErrorCode::Platform(*platform, *fault)));
        }
        for code in &all {
            assert_eq!(table.get(code.as_str()), Some(&values(code)), "{code}");
        }
        for platform in Platform::ALL {
            all.extend(Setting::ALL.iter().map(|setting| ErrorCode::Missing(*platform, *setting)));
        }
        for code in &all {
            let written = format!("\"{code}\"");
            assert_eq!(serde_json::to_string(code).expect("a text"), written);
            assert_eq!(serde_json::from_str::<ErrorCode>(&written).expect("a code"), *code);
            let text = code.as_str();
            let lasts = ["MISSING_", "INVALID_"].iter().any(|start| text.starts_with(start))
                || ["_AUTH_FAILED", "_NOT_CONFIGURED"].iter().any(|end| text.ends_with(end))
                || ["NO_CONNECTION_TYPE", "CONNECTION_NOT_SUPPORTED"].contains(&text);
            assert_eq!(code.is_lasting(), lasts, "{code}");
        }
        let missing = all.iter().filter(|code| matches!(code, ErrorCode::Missing(..)));
        assert!(missing.map(values).all(|values| values == (NoConnection, NoConnection, AgentOwner)));
    }

    #[test]
    fn a_code_that_is_not_known_is_kept_and_is_the_engines() {
        for text in [
            "SOME_NEW_CODE",
            "P13_AUTH_FAILED",
            "P03_AUTH_FAILED",
            "P+3_AUTH_FAILED",
            "AUTH_FAILED",
            "P3_CONNECTION_FAILED",
            "P0_AGENT_ERROR",
            "media_timeout",
            "MEDIA_TIMEOUT ",
            "never heard of",
            "",
        ] {
            let code: ErrorCode = serde_json::from_value(text.into()).expect("every text is a code");
            assert_eq!(code, ErrorCode::Unknown(text.to_owned()));
            assert_eq!((values(&code), code.is_lasting()), ((SystemError, SystemError, Engine), false), "{text}");
            assert_eq!(serde_json::to_value(&code).expect("a text"), text);
        }
        for text in ["MISSING_P3_VOICE", "MISSING_P13_AGENT_ID", "MISSING_KEY"] {
            let code = ErrorCode::from(text);
            assert_eq!((&code, code.as_str()), (&ErrorCode::Unknown(text.to_owned()), text));
            assert_eq!((values(&code), code.is_lasting()), ((NoConnection, NoConnection, AgentOwner), true), "{text}");
        }
    }

    #[test]
    fn a_fault_of_somebody_who_is_not_known_is_not_the_agents() {
        let own: Vec<&str> = Owner::ALL.iter().filter(|owner| owner.is_own()).map(|owner| owner.as_str()).collect();
        assert_eq!(own, ["simulated_caller", "engine"]);
        assert!(Owner::from("carrier").is_own());
    }
}
