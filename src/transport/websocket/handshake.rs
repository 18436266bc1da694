//! The upgrade request of the side that dials: address, headers, subprotocols and signatures; and their check by an
//! agent's server.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha1::Sha1;
use sha2::Sha256;

use super::core::Core;
use super::dialect::Dialect;
use super::protocol::{Kind, SessionFacts};

/// Seconds for which a signature holds.
const SIGNATURE_S: i64 = 30;

/// Header that names the simulation result.
const RESULT_HEADER: &str = "X-Simulation-Result-Id";

/// Components of the signature, in order; the first two are derived from the address.
const SIGNED: [&str; 6] = [
    "@request-target",
    "@authority",
    "audiohook-organization-id",
    "audiohook-session-id",
    "audiohook-correlation-id",
    "x-api-key",
];

/// An upgrade request to a server.
#[derive(Clone, PartialEq, Eq)]
pub struct Upgrade {
    /// Address to dial, without user name and password.
    pub url: String,
    /// Headers beside those that every handshake has, in order.
    pub headers: Vec<(String, String)>,
    /// Subprotocols that are offered.
    pub subprotocols: Vec<String>,
}

impl std::fmt::Debug for Upgrade {
    /// Writes no header and no query: they may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let url = self.url.split('?').next().unwrap_or_default();
        write!(f, "Upgrade({url}, {} headers)", self.headers.len())
    }
}

/// Names of a call and its parts, drawn once.
#[derive(Clone, Debug)]
pub(super) struct Ids {
    pub(super) stream: String,
    pub(super) call: String,
    pub(super) account: String,
    /// Session of the call, or its channel.
    pub(super) session: String,
    pub(super) organization: String,
    pub(super) conversation: String,
    pub(super) participant: String,
    pub(super) correlation: String,
    nonce: String,
}

impl Ids {
    /// Draws names in the form of the protocol.
    pub(super) fn new(core: &mut Core) -> Ids {
        let (stream, call, account) = match core.kind() {
            Kind::TwilioMediaStreams | Kind::SignalwireStream | Kind::ExotelAgentstream => {
                let mut named = |prefix: &str| format!("{prefix}{}", core.new_hex());
                (named("MZ"), named("CA"), named("AC"))
            }
            Kind::TelnyxMediaStreaming => (core.new_uuid(), format!("v3:{}", core.new_hex()), core.new_uuid()),
            Kind::ChanWebsocket => {
                let unique = format!("{}.{}", core.facts.epoch_ms.div_euclid(1000), core.ids.bits() % 100_000);
                (core.new_uuid(), unique, format!("WebSocket/c/0x{:08x}", core.ids.bits()))
            }
            _ => (core.new_uuid(), core.new_uuid(), format!("MA{}", core.new_hex()[..18].to_uppercase())),
        };
        Ids {
            stream,
            call,
            account,
            session: core.new_uuid(),
            organization: core.new_uuid(),
            conversation: core.new_uuid(),
            participant: core.new_uuid(),
            correlation: core.new_uuid(),
            nonce: core.new_hex(),
        }
    }
}

/// Returns the upgrade request; `created` is the wall clock in seconds.
pub(super) fn upgrade(dialect: &Dialect, facts: &SessionFacts, ids: &Ids, created: i64) -> Upgrade {
    let (url, user_info) = address(&facts.url);
    let mut url = url;
    if dialect.drop_query {
        url.truncate(url.find('?').unwrap_or(url.len()));
    }
    if dialect.kind == Kind::ChanWebsocket {
        let sign = if url.contains('?') { '&' } else { '?' };
        url.push_str(&format!("{sign}{}={}", dialect.result_id_key, facts.result_id));
    }
    let mut headers: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, value: String| headers.push((name.to_owned(), value));
    let is_set = facts.username.is_some() || facts.password.is_some();
    if is_set {
        let part = |half: &Option<String>| half.clone().unwrap_or_default();
        add("Authorization", basic(&format!("{}:{}", part(&facts.username), part(&facts.password))));
    } else if let Some(user_info) = user_info {
        add("Authorization", basic(&user_info));
    }
    if !dialect.carrier_headers_only {
        add(RESULT_HEADER, facts.result_id.to_string());
        add("User-Agent", facts.user_agent.clone());
        facts.traceparent.iter().for_each(|value| add("traceparent", value.clone()));
    }
    if let Some(key) = &dialect.signing_key {
        add("X-Twilio-Signature", url_signature(key, &url));
    }
    if dialect.kind == Kind::Audiohook {
        let own = [
            ("Audiohook-Organization-Id", ids.organization.clone()),
            ("Audiohook-Session-Id", ids.stream.clone()),
            ("Audiohook-Correlation-Id", ids.correlation.clone()),
            ("X-API-KEY", dialect.api_key.clone().unwrap_or_default()),
        ];
        let values: Vec<&str> = own.iter().map(|(_, value)| value.as_str()).collect();
        if let Some(secret) = &dialect.client_secret {
            let (authority, target) = target_of(&url);
            let components = [target, authority, values[0], values[1], values[2], values[3]];
            let input = signature_input(values[3], &ids.nonce, created);
            add("Signature-Input", format!("sig1={input}"));
            add("Signature", format!("sig1=:{}:", request_signature(secret, &components, &input)));
        }
        own.into_iter().for_each(|(name, value)| add(name, value));
    }
    // Values of the settings replace those of the protocol.
    for (name, value) in &dialect.headers {
        headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        headers.push((name.clone(), value.clone()));
    }
    Upgrade { url, headers, subprotocols: dialect.subprotocol.iter().cloned().collect() }
}

/// Returns an address with the scheme of WebSockets and without fragment, and its user name and password.
fn address(url: &str) -> (String, Option<String>) {
    let url = url.split('#').next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("://") else { return (url.to_owned(), None) };
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "http" => "ws".to_owned(),
        "https" => "wss".to_owned(),
        other => other.to_owned(),
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    match authority.rsplit_once('@') {
        Some((user_info, host)) => {
            let decoded = percent_encoding::percent_decode_str(user_info).decode_utf8_lossy().into_owned();
            (format!("{scheme}://{host}{path}"), Some(decoded))
        }
        None => (format!("{scheme}://{authority}{path}"), None),
    }
}

/// Returns the authority and the request target of an address. A port that is the scheme's own is not part of the
/// authority.
fn target_of(url: &str) -> (&str, &str) {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(end);
    let own = if scheme == "wss" { ":443" } else { ":80" };
    (authority.strip_suffix(own).unwrap_or(authority), if target.is_empty() { "/" } else { target })
}

fn basic(user_info: &str) -> String {
    format!("Basic {}", STANDARD.encode(user_info))
}

/// Returns base64 of the HMAC-SHA1 of an address.
fn url_signature(key: &str, url: &str) -> String {
    let mut mac = Hmac::<Sha1>::new_from_slice(key.as_bytes()).expect("keys of HMAC have any length");
    mac.update(url.as_bytes());
    STANDARD.encode(mac.finalize().into_bytes())
}

/// Returns the parameters of a signature without its label.
fn signature_input(key_id: &str, nonce: &str, created: i64) -> String {
    let names: Vec<String> = SIGNED.iter().map(|name| format!("\"{name}\"")).collect();
    let expires = created + SIGNATURE_S;
    format!(
        "({});keyid=\"{key_id}\";nonce=\"{nonce}\";alg=\"hmac-sha256\";created={created};expires={expires}",
        names.join(" ")
    )
}

/// Returns base64 of the signature over components in the order of [`SIGNED`].
fn request_signature(secret: &[u8], components: &[&str; 6], input: &str) -> String {
    let mut base = String::new();
    for (name, value) in SIGNED.iter().zip(components) {
        base.push_str(&format!("\"{name}\": {value}\n"));
    }
    base.push_str(&format!("\"@signature-params\": {input}"));
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("keys of HMAC have any length");
    mac.update(base.as_bytes());
    STANDARD.encode(mac.finalize().into_bytes())
}

/// An upgrade request as an agent's server sees it.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Address that the server has towards its callers, with scheme, host, path and query.
    pub url: String,
    /// Headers in order; names in any case.
    pub headers: Vec<(String, String)>,
}

#[cfg(test)]
mod tests {
    use ringer_media::seed::Seed;
    use ringer_media::time::Time;
    use subtle::ConstantTimeEq;

    use super::*;

    impl Request {
        fn header(&self, name: &str) -> Option<&str> {
            self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
        }
    }

    impl Dialect {
        /// Checks the signatures and keys of an upgrade request that the settings name; `now_s` is the wall clock in
        /// seconds.
        ///
        /// # Errors
        ///
        /// The reason in words when a signature or key is missing, wrong or too old.
        fn check_request(&self, request: &Request, now_s: i64) -> Result<(), &'static str> {
            let equal = |given: &str, expected: &str| bool::from(given.as_bytes().ct_eq(expected.as_bytes()));
            if let Some(key) = &self.signing_key {
                let given = request.header("X-Twilio-Signature").ok_or("X-Twilio-Signature is missing")?;
                if !equal(given, &url_signature(key, &address(&request.url).0)) {
                    return Err("X-Twilio-Signature is wrong");
                }
            }
            if self.kind != Kind::Audiohook {
                return Ok(());
            }
            if let Some(key) = &self.api_key {
                let given = request.header("X-API-KEY").ok_or("X-API-KEY is missing")?;
                if !equal(given, key) {
                    return Err("X-API-KEY is wrong");
                }
            }
            let Some(secret) = &self.client_secret else { return Ok(()) };
            let label = |name: &str| request.header(name).and_then(|value| value.strip_prefix("sig1="));
            let input = label("Signature-Input").ok_or("Signature-Input is missing")?;
            let given = label("Signature").and_then(|value| value.strip_prefix(':')?.strip_suffix(':'));
            let given = given.ok_or("Signature is missing")?;
            let number = |name: &str| -> Option<i64> {
                input.split(';').find_map(|part| part.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
            };
            let (created, expires) = number("created").zip(number("expires")).ok_or("Signature-Input has no times")?;
            if now_s > expires || now_s < created - SIGNATURE_S {
                return Err("Signature is too old");
            }
            let expected: Vec<String> = SIGNED.iter().map(|name| format!("\"{name}\"")).collect();
            if !input.starts_with(&format!("({});", expected.join(" "))) {
                return Err("Signature-Input does not name what is to be signed");
            }
            let url = address(&request.url).0;
            let (authority, target) = target_of(&url);
            let value = |name: &str| request.header(name).unwrap_or_default();
            let components =
                [target, authority, value(SIGNED[2]), value(SIGNED[3]), value(SIGNED[4]), value(SIGNED[5])];
            if equal(given, &request_signature(secret, &components, input)) {
                Ok(())
            } else {
                Err("Signature is wrong")
            }
        }
    }

    fn facts(url: &str) -> SessionFacts {
        SessionFacts::new(13_062, url, Seed(1), Time(0), 1_767_225_600_000)
    }

    fn request(dialect: Dialect, facts: SessionFacts) -> Upgrade {
        super::super::Session::caller(dialect, facts).upgrade(Time(0))
    }

    fn header<'u>(upgrade: &'u Upgrade, name: &str) -> Option<&'u str> {
        upgrade.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    #[test]
    fn the_signature_of_the_reference_is_made_and_checked() {
        const KEY: &str = "SGVsbG8sIEkgYW0gdGhlIEFQSSBrZXkh";
        const IDS: [&str; 3] = [
            "d7934305-0972-4844-938e-9060eef73d05",
            "30b0e395-84d3-4570-ac13-9a62d8f514c0",
            "e160e428-53e2-487c-977d-96989bf5c99d",
        ];
        let secret = STANDARD.decode("TXlTdXBlclNlY3JldEtleVRlbGxOby0xITJAMyM0JDU=").expect("it is base64");
        // The reference lets its example hold for a long time.
        let input = signature_input(KEY, "VGhpc0lzQVVuaXF1ZU5vbmNl", 1_641_013_200).replace("1641013230", "3282026430");
        let parts = ["/api/v1/voicebiometrics/ws", "audiohook.example.com", IDS[0], IDS[1], IDS[2], KEY];
        let expected = "NZBwyBHRRyRoeLqy1IzOa9VYBuI8TgMFt2GRDkDuJh4=";
        assert_eq!(request_signature(&secret, &parts, &input), expected);

        let dialect =
            Dialect { api_key: Some(KEY.to_owned()), client_secret: Some(secret), ..Dialect::new(Kind::Audiohook) };
        let check = |change: &dyn Fn(&mut Request), now_s: i64| {
            let headers = [
                ("signature", format!("sig1=:{expected}:")),
                ("signature-input", format!("sig1={input}")),
                ("Audiohook-Organization-Id", IDS[0].to_owned()),
                ("Audiohook-Session-Id", IDS[1].to_owned()),
                ("Audiohook-Correlation-Id", IDS[2].to_owned()),
                ("X-API-KEY", KEY.to_owned()),
            ];
            let headers = headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            let mut request =
                Request { url: "wss://audiohook.example.com/api/v1/voicebiometrics/ws".to_owned(), headers };
            change(&mut request);
            dialect.check_request(&request, now_s)
        };
        assert_eq!(check(&|_| {}, 1_641_013_210), Ok(()));
        assert_eq!(check(&|_| {}, 3_282_026_431), Err("Signature is too old"));
        assert_eq!(check(&|request| request.url.push('x'), 1_641_013_210), Err("Signature is wrong"));
        assert_eq!(check(&|request| request.headers.truncate(1), 0), Err("X-API-KEY is missing"));
        assert_eq!(check(&|request| request.headers[5].1.push('x'), 0), Err("X-API-KEY is wrong"));
        assert_eq!(check(&|request| drop(request.headers.remove(0)), 0), Err("Signature is missing"));
    }

    #[test]
    fn what_a_caller_signs_its_agent_accepts() {
        for kind in [Kind::TwilioMediaStreams, Kind::Audiohook] {
            let dialect = Dialect {
                signing_key: (kind == Kind::TwilioMediaStreams).then(|| "key".to_owned()),
                api_key: (kind == Kind::Audiohook).then(|| "id".to_owned()),
                client_secret: (kind == Kind::Audiohook).then(|| vec![7; 32]),
                ..Dialect::new(kind)
            };
            for url in ["wss://h:443/a?b=c", "ws://h:8080", "https://u:p@h/x"] {
                let sent = request(dialect.clone(), facts(url));
                let got = Request { url: sent.url.clone(), headers: sent.headers.clone() };
                assert_eq!(dialect.check_request(&got, 1_767_225_605), Ok(()), "{kind:?} {url}");
                let other = Request { url: format!("{}/y", sent.url), headers: sent.headers };
                assert!(dialect.check_request(&other, 1_767_225_605).is_err(), "{kind:?} {url}");
            }
        }
    }

    #[test]
    fn an_address_is_signed_whole() {
        // echo -n wss://h/ws | openssl dgst -sha1 -hmac 12345 -binary | base64
        assert_eq!(url_signature("12345", "wss://h/ws"), "QcuQUnimTd6KG5Lh7dlL4mi8Jk8=");
    }

    #[test]
    fn addresses_and_headers_are_those_of_the_kind() {
        let check = |dialect: &Dialect, url: &str, expect: &str| {
            assert_eq!(request(dialect.clone(), facts(url)).url, expect, "{url}");
        };
        let default = Dialect::new(Kind::Default);
        check(&default, "http://h:1/a%20b?c=d#e", "ws://h:1/a%20b?c=d");
        check(&default, "HTTPS://u:p%40@h", "wss://h");
        let dropping = Dialect { drop_query: true, ..Dialect::new(Kind::TwilioMediaStreams) };
        check(&dropping, "wss://h/a?b=c", "wss://h/a");
        check(&Dialect::new(Kind::TwilioMediaStreams), "wss://h/a?b=c", "wss://h/a?b=c");
        check(&Dialect::new(Kind::ChanWebsocket), "ws://h/a?b=c", "ws://h/a?b=c&SIMULATION_RESULT_ID=13062");

        let sent = request(default.clone(), facts("wss://u:p%40@h"));
        assert_eq!(header(&sent, "Authorization"), Some("Basic dTpwQA=="));
        assert_eq!(header(&sent, "X-Simulation-Result-Id"), Some("13062"));
        assert_eq!(header(&sent, "User-Agent"), Some(concat!("Ringer/", env!("CARGO_PKG_VERSION"))));
        assert!(sent.subprotocols.is_empty());
        let half = SessionFacts { password: Some("é".to_owned()), ..facts("wss://u:p@h") };
        assert_eq!(header(&request(default, half), "Authorization"), Some("Basic OsOp"));

        let carrier = Dialect {
            carrier_headers_only: true,
            headers: vec![("authorization".to_owned(), "Bearer x".to_owned())],
            ..Dialect::new(Kind::PlivoAudioStreaming)
        };
        let traced = SessionFacts { traceparent: Some("00-a-b-01".to_owned()), ..facts("wss://u:p@h") };
        let told = request(Dialect::new(Kind::Default), traced.clone());
        assert_eq!(header(&told, "traceparent"), Some("00-a-b-01"));
        let sent = request(carrier, traced);
        assert_eq!(sent.headers, [("authorization".to_owned(), "Bearer x".to_owned())]);
        assert_eq!(sent.subprotocols, ["audio.plivo.com"]);
        assert_eq!(request(Dialect::new(Kind::ChanWebsocket), facts("ws://h")).subprotocols, ["media"]);
    }
}
