//! Trunks and limits of dialling by what is given and what is said.

use std::path::Path;

use super::*;
use crate::config::{Config, OrganizationLimits};

fn settings_of(file: &str, environment: &[(&str, &str)]) -> Result<Config, String> {
    let environment: BTreeMap<String, String> =
        environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Config::from_texts(Some((Path::new("r.toml"), file)), &environment, &[], 3200).map_err(|error| error.to_string())
}

const FULL: &str = r#"
    [sip]
    srtp = "optional"
    [sip.trunks.carrier-1]
    host = "SIP.Carrier.example."
    port = 5080
    transport = "TLS"
    outbound_proxy = "[2001:db8::1]:5070"
    username = "ringer"
    password = "hush-hush"
    from_domain = "desk.example"
    display_name = "Front desk"
    identity = "private"
    register = true
    expires_s = 600
    keepalive_s = 0
    codecs = ["PCMA"]
    srtp = "required"
    max_calls = 10
    max_cps = 2.5
    max_minutes_per_day = 600
    numbers = ["+1 (555) 000-1111", "+49 30 12345"]
    allowed_prefixes = ["+1", "+49 30"]
    denied_prefixes = ["+1900"]
    default = true
    [sip.trunks.bare]
    host = "192.0.2.7"
    [limits.organizations."desk.example"]
    calls_at_once = 12
    allowed_prefixes = ["+"]
    denied_prefixes = ["+7"]
    max_calls = 3
    max_cps = 0.5
    max_minutes_per_day = 60
"#;

#[test]
fn trunks_and_limits_of_organizations_are_read() {
    let config = settings_of(FULL, &[]).expect("all are allowed");
    let trunk = &config.sip.trunks["carrier-1"];
    assert_eq!(trunk.uri("+15550009999"), "sip:+15550009999@sip.carrier.example:5080;transport=tls");
    assert_eq!(trunk.proxy_uri().as_deref(), Some("sip:[2001:db8::1]:5070;transport=tls"));
    assert_eq!(trunk.numbers, ["+15550001111", "+493012345"]);
    assert_eq!((trunk.register, trunk.expires_s, trunk.keepalive_s, trunk.default), (true, 600, 0, true));
    assert_eq!((trunk.identity, trunk.srtp, trunk.domain()), (Identity::Private, Encryption::Required, "desk.example"));
    assert_eq!(trunk.codecs, [Codec::Pcma]);
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let limits = DialLimits {
        allowed_prefixes: Some(texts(&["+1", "+4930"])),
        denied_prefixes: texts(&["+1900"]),
        max_calls: Some(10),
        max_cps: Some(2.5),
        max_minutes_per_day: Some(600),
    };
    assert_eq!(trunk.limits, limits);
    let limits = DialLimits {
        allowed_prefixes: Some(texts(&["+"])),
        denied_prefixes: texts(&["+7"]),
        max_calls: Some(3),
        max_cps: Some(0.5),
        max_minutes_per_day: Some(60),
    };
    let limits = OrganizationLimits { dial: limits, calls_at_once: Some(12), ..OrganizationLimits::default() };
    assert_eq!(config.limits.organizations, BTreeMap::from([("desk.example".to_owned(), limits)]));
    let bare = &config.sip.trunks["bare"];
    assert_eq!((bare.uri("+1"), bare.proxy_uri(), bare.domain()), ("sip:+1@192.0.2.7".to_owned(), None, "192.0.2.7"));
    assert_eq!(
        (trunk.host_uri(), bare.host_uri()),
        ("sip:sip.carrier.example:5080;transport=tls".into(), "sip:192.0.2.7".into())
    );
    let same = settings_of("[sip.trunks.a]\nhost = 'h'\nport = 5070\noutbound_proxy = 'H:5070'", &[]).expect("good");
    assert_eq!(same.sip.trunks["a"].proxy_uri(), None, "it is the host itself");
    assert_eq!((bare.srtp, bare.expires_s, bare.keepalive_s), (Encryption::Optional, 3600, 30));
    assert_eq!((&bare.codecs[..], &bare.limits), (&CODECS[..], &DialLimits::default()));
    assert_eq!(config.warnings, ["sip.trunks.bare.allowed_prefixes is empty: the trunk dials no number"]);
    let shown = serde_json::to_value(&config).expect("serializes");
    assert_eq!(shown["sip"]["trunks"]["carrier-1"]["password"], "(set)");
    assert_eq!(shown["sip"]["trunks"]["carrier-1"]["max_calls"], 10);
    assert_eq!(shown["sip"]["trunks"]["carrier-1"]["transport"], "tls");
    assert!(!format!("{config:?} {shown}").contains("hush"), "{shown}");
}

#[test]
fn the_environment_names_trunks_too() {
    let environment = [
        ("RINGER_SIP_TRUNKS_CARRIER_1_PASSWORD", "other"),
        ("RINGER_SIP_TRUNKS_CARRIER_1_NUMBERS", "+15550001111, +15550001112"),
        ("RINGER_SIP_TRUNKS_NEW_ONE_HOST", "new.example"),
        ("RINGER_SIP_TRUNKS_NEW_ONE_DENIED_PREFIXES", "+1"),
        ("RINGER_LIMITS_ORGANIZATIONS_DEFAULT_MAX_CALLS", "4"),
        ("RINGER_SIP_TRUNKS_NEW_ONE_HOSTT", "slip"),
    ];
    let config = settings_of(FULL, &environment).expect("all are allowed");
    let names: Vec<&str> = config.sip.trunks.keys().map(String::as_str).collect();
    assert_eq!(names, ["bare", "carrier-1", "new_one"]);
    let carrier = &config.sip.trunks["carrier-1"];
    assert_eq!(carrier.password.as_ref().map(Secret::expose), Some("other"));
    assert_eq!(carrier.numbers, ["+15550001111", "+15550001112"]);
    let new = &config.sip.trunks["new_one"];
    assert_eq!((new.host.as_str(), &new.limits.denied_prefixes[..]), ("new.example", &["+1".to_owned()][..]));
    assert_eq!(config.limits.organizations["default"].dial.max_calls, Some(4));
    let slip = "unknown environment variable RINGER_SIP_TRUNKS_NEW_ONE_HOSTT";
    assert!(config.warnings.iter().any(|warning| warning.starts_with(slip)), "{:?}", config.warnings);
}

/// A number is of the trunk that lists it, else of the one that has the longest beginning of it.
#[test]
fn a_number_has_one_carrier() {
    let file = "[sip.trunks.a]\nhost = 'h'\nnumbers = ['+15550001111']\ncarries = ['+1', '+49 30']\n\
                [sip.trunks.b]\nhost = 'h'\nnumbers = ['+493099999']\ncarries = ['+1555']";
    let trunks = settings_of(file, &[]).expect("all are allowed").sip.trunks;
    for (number, expect) in [
        ("+15550001111", Some("a")),
        ("+15550001112", Some("b")),
        ("+14155550100", Some("a")),
        ("+493012345", Some("a")),
        ("+493099999", Some("b")),
        ("+33123456789", None),
    ] {
        assert_eq!(carrier(&trunks, number).map(|(name, _)| name), expect, "{number}");
    }
    assert!(trunks["a"].lists("+15550001111") && !trunks["a"].lists("+14155550100"));
}

#[test]
fn what_is_wrong_is_named() {
    let trunk = |more: &str| format!("[sip.trunks.a]\nhost = 'h'\n{more}");
    for (file, expect) in [
        ("[sip.trunks.a]".to_owned(), "sip.trunks.a.host is missing: the trunk needs it"),
        ("[sip]\ntrunks.a = 5".to_owned(), "r.toml:2: unknown setting sip.trunks.a"),
        ("[sip.trunks.'a b']\nhost = 'h'".to_owned(), "sip.trunks.a b: the name of a trunk must be of letters"),
        ("[sip.trunks.a]\nhost = 'h:5060'".to_owned(), "r.toml:2: sip.trunks.a.host = \"h:5060\" is not allowed"),
        ("[sip.trunks.a]\nhost = 'h h'".to_owned(), "sip.trunks.a.host = \"h h\" is not allowed"),
        ("[sip.trunks.a]\nhost = '1.2.3'".to_owned(), "sip.trunks.a.host = \"1.2.3\" is not allowed"),
        (trunk("prot = 5"), "r.toml:3: unknown setting sip.trunks.a.prot"),
        (
            trunk("port = 0"),
            "r.toml:3: sip.trunks.a.port = 0 is not allowed: it must be a whole number from 1 to 65535",
        ),
        (
            trunk("transport = 'sctp'"),
            "sip.trunks.a.transport = \"sctp\" is not allowed: it must be one of udp, tcp, tls",
        ),
        (trunk("outbound_proxy = '2001:db8::1:99999:5060'"), "sip.trunks.a.outbound_proxy"),
        (trunk("outbound_proxy = 'p:0'"), "sip.trunks.a.outbound_proxy"),
        (trunk("identity = 'on'"), "sip.trunks.a.identity = \"on\" is not allowed: it must be one of off, asserted"),
        (trunk("password = 'hush'"), "sip.trunks.a.username is missing: its password needs it"),
        (trunk("register = true"), "sip.trunks.a.username is missing: its registration needs it"),
        (trunk("display_name = \"a\\tb\""), "sip.trunks.a.display_name"),
        (trunk("expires_s = 5"), "sip.trunks.a.expires_s = 5 is not allowed"),
        (trunk("codecs = []"), "sip.trunks.a.codecs: at least one is needed"),
        (trunk("codecs = ['G729']"), "sip.trunks.a.codecs: \"G729\" is not one of"),
        (trunk("srtp = 'on'"), "sip.trunks.a.srtp = \"on\" is not allowed: it must be one of off, optional, required"),
        (trunk("max_calls = 0"), "sip.trunks.a.max_calls = 0 is not allowed"),
        (trunk("max_cps = 0"), "sip.trunks.a.max_cps = 0 is not allowed"),
        (trunk("max_minutes_per_day = 1.5"), "sip.trunks.a.max_minutes_per_day = 1.5 is not allowed"),
        (trunk("numbers = ['5550001111']"), "sip.trunks.a.numbers: \"5550001111\" is not allowed: it must be a number"),
        (trunk("carries = ['+']"), "sip.trunks.a.carries: \"+\" is not allowed: it must be the beginning of a number"),
        (
            trunk("carries = ['+1555']\n[sip.trunks.b]\nhost = 'h'\ncarries = ['+1 555']"),
            "sip.trunks.b.carries: +1555 is in sip.trunks.a.carries already",
        ),
        (trunk("allowed_prefixes = ['1']"), "sip.trunks.a.allowed_prefixes: \"1\" is not allowed"),
        (trunk("denied_prefixes = ['+0']"), "sip.trunks.a.denied_prefixes: \"+0\" is not allowed"),
        (
            trunk("numbers = ['+15550001111']\n[sip.trunks.b]\nhost = 'h'\nnumbers = ['+1 555 000 1111']"),
            "sip.trunks.b.numbers: +15550001111 is in sip.trunks.a.numbers already",
        ),
        (
            trunk("default = true\n[sip.trunks.b]\nhost = 'h'\ndefault = true"),
            "sip.trunks.b.default: sip.trunks.a is the default already",
        ),
        (
            "[sip.trunks.a-b]\nhost = 'h'\n[sip.trunks.a_b]\nhost = 'h'".to_owned(),
            "sip.trunks.a_b and sip.trunks.a-b cannot be told apart",
        ),
        (
            "[limits.organizations.o]\nmax_call = 1".to_owned(),
            "r.toml:2: unknown setting limits.organizations.o.max_call",
        ),
        ("[limits.organizations.o]\nmax_cps = 'x'".to_owned(), "r.toml:2: limits.organizations.o.max_cps = \"x\""),
    ] {
        let why = settings_of(&file, &[]).expect_err(&file);
        assert!(why.contains(expect), "{file}: {why}");
        assert_eq!(why.lines().count(), 1, "{file}: {why}");
        assert!(!why.contains("hush"), "{why}");
    }
}
