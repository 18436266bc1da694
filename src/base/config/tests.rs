//! Settings by what is given and what is said.

use std::collections::BTreeMap;
use std::path::Path;

use ringer_media::codec::Codec;

use super::{
    CODECS, Config, Dtmf, Encryption, OfferedIn, OpusChoice, Place, Refer, Secret, SrtpKeys, most_calls, parse_ports,
};

fn read_config(file: &str, environment: &[(&str, &str)], flags: &[(&str, &str)]) -> Result<Config, String> {
    let environment: BTreeMap<String, String> =
        environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let flags: Vec<(&str, String)> = flags.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
    Config::from_texts(Some((Path::new("r.toml"), file)), &environment, &flags, 3200).map_err(|error| error.to_string())
}

#[test]
fn nothing_given_is_the_defaults() {
    let config = read_config("", &[], &[]).expect("an empty file is allowed");
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.sip.rtp_ports, 20000..=29999);
    assert_eq!(config.limits.max_calls, 1000);
    assert_eq!((config.sip.srtp, config.sip.refer), (Encryption::Off, Refer::Refuse));
    assert_eq!((config.sip.offer, config.sip.session_interval_s), (OfferedIn::Invite, 0));
    assert_eq!(config.sip.srtp_keys, SrtpKeys::Sdes);
    assert_eq!(config.behaviour.noise_snr_db(0.4), 20.0);
    assert_eq!(config.behaviour.speed.slowest, 110.0);
    assert!(config.security.allow_private_targets);
    assert!(config.warnings.is_empty());
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let file =
        "[sip]\nlisten = '127.0.0.1:1'\n[recognizer]\ngrace_ms = 7\n[limits]\nmax_calls = 3\nstart_rate_per_s = 2";
    let environment = [("RINGER_SIP_LISTEN", "127.0.0.1:2"), ("RINGER_RECOGNIZER_GRACE_MS", "8"), ("HOME", "/")];
    let config = read_config(file, &environment, &[("sip.listen", "127.0.0.1:3")]).expect("all are allowed");
    assert_eq!(config.sip.listen, std::net::SocketAddr::from(([127, 0, 0, 1], 3)).into());
    assert_eq!(config.recognizer.grace_ms, 8);
    assert_eq!((config.limits.max_calls, config.limits.start_rate_per_s), (3, 2.0));
}

#[test]
fn name_servers_are_read() {
    let config =
        read_config("[sip]\ndns_servers = ['192.0.2.53', '127.0.0.1:5353', '2001:db8::53', '[::1]:54']", &[], &[]);
    let servers = serde_json::to_string(&config.expect("all are allowed").sip.dns_servers).expect("serializes");
    assert_eq!(servers, r#"["192.0.2.53:53","127.0.0.1:5353","[2001:db8::53]:53","[::1]:54"]"#);
    for bad in ["dns.example", "127.0.0.1:0", "127.0.0.1:70000", "/etc/resolv.conf"] {
        let why = read_config("", &[("RINGER_SIP_DNS_SERVERS", bad)], &[]).expect_err("no address");
        assert_eq!(why, format!("sip.dns_servers: {bad:?} is no IP address like 192.0.2.53 or 127.0.0.1:5353"));
    }
    assert!(read_config("", &[], &[]).expect("the defaults").sip.dns_servers.is_empty());
}

#[test]
fn who_may_call_in_is_read() {
    let config =
        read_config("[sip]\ninbound_allow = ['192.0.2.7', '10.0.0.0/8']\n[journey]\nstop_on_failure = true", &[], &[]);
    let config = config.expect("all are allowed");
    assert!(config.journey.stop_on_failure);
    for (from, expect) in [("192.0.2.7", true), ("10.1.2.3", true), ("192.0.2.8", false)] {
        assert_eq!(config.sip.inbound_allow.allow(from.parse().expect("an address")), expect, "{from}");
    }
    let config = read_config("", &[("RINGER_SIP_INBOUND_ALLOW", "192.0.2.0/24, ::1")], &[]).expect("all are allowed");
    assert_eq!(serde_json::to_string(&config.sip.inbound_allow).expect("serializes"), r#"["192.0.2.0/24","::1/128"]"#);
    let why = read_config("[sip]\ninbound_allow = ['here']", &[], &[]).expect_err("no address");
    assert_eq!(why, "sip.inbound_allow: \"here\" is no address or network like 192.0.2.0/24");
}

#[test]
fn how_calls_begin_is_read() {
    let read_sip = |text: &str| read_config(&format!("[sip]\n{text}"), &[], &[]).map(|config| config.sip);
    assert_eq!(read_sip("offer = 'answer'").map(|sip| sip.offer), Ok(OfferedIn::Answer));
    assert_eq!(read_sip("offer = 'invite'").map(|sip| sip.offer), Ok(OfferedIn::Invite));
    for seconds in [0, 90, 1800, 86_400] {
        let found = read_sip(&format!("session_interval_s = {seconds}")).map(|sip| sip.session_interval_s);
        assert_eq!(found, Ok(seconds));
    }
    let check = |text: &str, why: &str| {
        let found = read_sip(text).expect_err(text);
        assert_eq!(found, format!("r.toml:2: sip.{text} is not allowed: it must be {why}"));
    };
    check("offer = \"late\"", "invite or answer");
    for (wrong, why) in [
        ("1", "it must be 0, or from 90 to 86400"),
        ("89", "it must be 0, or from 90 to 86400"),
        ("86401", "it must be a whole number from 0 to 86400"),
        ("-1", "it must be a whole number from 0 to 86400"),
    ] {
        let text = format!("session_interval_s = {wrong}");
        let found = read_sip(&text).expect_err(&text);
        assert!(found.contains("sip.session_interval_s") && found.contains(why), "{found}");
    }
}

#[test]
fn targets_that_calls_may_be_sent_on_to_are_read() {
    let nothing = read_config("", &[], &[]).expect("defaults").sip;
    assert!(
        !nothing.redirects.allow("192.0.2.7", None, Some("h"))
            && !nothing.refer_targets.allow("192.0.2.7", None, Some("h"))
    );
    let file = "[sip]\nrefer = 'follow'\nrefer_targets = ['*.example.com', '+49']\nredirects = ['192.0.2.0/24']";
    let sip = read_config(file, &[], &[]).expect("all are allowed").sip;
    assert_eq!(sip.refer, Refer::Follow);
    assert!(
        sip.refer_targets.allow("a.example.com", None, Some("h"))
            && !sip.refer_targets.allow("192.0.2.7", None, Some("h"))
    );
    assert!(
        sip.redirects.allow("192.0.2.7", None, Some("h"))
            && !sip.redirects.allow("a.example.com", Some("+491"), Some("h"))
    );
    let sip = read_config("", &[("RINGER_SIP_REDIRECTS", "pbx.example.com, +1")], &[]).expect("all are allowed").sip;
    assert!(
        sip.redirects.allow("PBX.example.com", None, Some("h"))
            && sip.redirects.allow("h", Some("+15550001"), Some("h"))
    );
    for key in ["refer_targets", "redirects"] {
        let why =
            read_config(&format!("[sip]\n{key} = ['a.example', 'b.example:5060']"), &[], &[]).expect_err("no target");
        let expect = format!(
            "sip.{key}: \"b.example:5060\" is no host like pbx.example.com or *.example.com, address, network like \
             192.0.2.0/24, or prefix of numbers like +49"
        );
        assert_eq!(why, expect);
    }
}

#[test]
fn who_is_told_and_how_is_read() {
    let file = r#"
        [notify]
        smtp_url = "smtp://user:hidden-word@mail.example:587"
        from = "ringer@desk.example"
        pager_url = "https://events.example/v2"
        [phone_numbers]
        pool = ["+14155550100"]
        price = 150
    "#;
    let environment = [("RINGER_SECURITY_NOTIFICATION_KEY", "k"), ("RINGER_ISSUES_SIMILARITY_THRESHOLD", "0.9")];
    let config = read_config(file, &environment, &[]).expect("all are allowed");
    assert_eq!(config.notify.from.as_deref(), Some("ringer@desk.example"));
    assert_eq!(config.notify.key.as_ref().map(Secret::expose), Some("k"));
    assert_eq!((config.phone_numbers.pool.len(), config.phone_numbers.price), (1, 150));
    assert_eq!(config.issues.similarity_threshold, 0.9);
    let shown = format!("{config:?} {}", serde_json::to_string(&config).expect("serializes"));
    assert!(!shown.contains("hidden-word") && !shown.contains("\"k\""), "{shown}");
    let why = read_config("[notify]\nsmtp_url = 'smtp://mail.example'", &[], &[]).expect_err("nobody sends");
    assert_eq!(why, "notify.from is missing: notify.smtp_url is set");
}

#[test]
fn how_texts_go_is_read() {
    let file = r#"
        [text]
        reply_delay_ms = 700
        [sms]
        send_url = "https://carrier.example/messages?key=hidden"
        send_method = "put"
        send_body = "To={{to}}&Body={{text}}"
        id_pointer = "/sid"
        group_seconds = 3
        [sms.send_headers]
        Authorization = "Basic hidden"
        [sms.inbound_fields]
        text = "Body"
    "#;
    let config = read_config(file, &[("RINGER_SMS_INBOUND_TOKEN", "hidden")], &[]).expect("all are allowed");
    let sms = &config.sms;
    assert_eq!((config.text.reply_delay_ms, sms.group_seconds, sms.send_method.as_str()), (700, 3, "PUT"));
    assert_eq!(
        (sms.inbound_field("text"), sms.inbound_field("from"), sms.id_pointer.as_deref()),
        ("Body", "from", Some("/sid"))
    );
    assert_eq!(sms.send_headers["Authorization"].expose(), "Basic hidden");
    assert_eq!(sms.inbound_token.as_ref().map(Secret::expose), Some("hidden"));
    let shown = format!("{config:?} {}", serde_json::to_string(&config).expect("serializes"));
    assert!(!shown.contains("hidden"), "{shown}");
    for (file, why) in [
        (
            "[sms]\nsend_method = 'DROP'",
            "r.toml:2: sms.send_method = \"DROP\" is not allowed: it must be one of GET, POST, PUT, PATCH",
        ),
        (
            "[sms.inbound_fields]\nbody = 'Body'",
            "sms.inbound_fields.body is not known: it must be one of from, to, text, message_id",
        ),
        (
            "[sms]\nid_pointer = 'sid'",
            "r.toml:2: sms.id_pointer = \"sid\" is not allowed: it must be a JSON pointer like /data/id",
        ),
    ] {
        assert_eq!(read_config(file, &[], &[]).expect_err("it is refused"), why);
    }
}

#[test]
fn codecs_are_read_in_their_order() {
    assert_eq!(read_config("", &[], &[]).expect("defaults").sip.codecs, CODECS);
    let config = read_config("", &[("RINGER_SIP_CODECS", "opus, pcma")], &[]).expect("they are known");
    assert_eq!(config.sip.codecs, [Codec::Opus, Codec::Pcma]);
    assert!(serde_json::to_string(&config.sip).expect("serializes").contains(r#""codecs":["OPUS","PCMA"]"#));
    let why = read_config("[sip]\ncodecs = ['PCMU', 'GSM']", &[], &[]).expect_err("one is unknown");
    assert!(why.starts_with("sip.codecs: \"GSM\" is not one of "), "{why}");
    assert!(read_config("[sip]\ncodecs = []", &[], &[]).is_err());
}

#[test]
fn the_library_of_opus_is_chosen() {
    let read = |file: &str| read_config(file, &[], &[]).map(|config| (config.media.opus, config.media.opus_library));
    assert_eq!(read(""), Ok((OpusChoice::Auto, None)));
    assert_eq!(read("media.opus = 'port'"), Ok((OpusChoice::Port, None)));
    let file = Some("/opt/libopus.so.0".into());
    assert_eq!(read("[media]\nopus = 'libopus'\nopus_library = '/opt/libopus.so.0'"), Ok((OpusChoice::Libopus, file)));
    let refused = read("media.opus = 'ropus'").expect_err("it is no choice");
    assert!(refused.contains("media.opus") && refused.contains("auto, libopus or port"), "{refused}");
}

#[test]
fn tables_lists_and_names_of_the_user_are_read() {
    let file = r#"
        data = "/var/lib/ringer"
        server.cors_origins = ["http://a", "http://b"]
        sip.dtmf = "info"
        sip.srtp = "optional"
        sip.srtp_keys = "dtls"
        sip.refer = "refuse"
        [rate_limit.routes]
        "POST /v1/queue-simulation-run" = 60
        [behaviour.connection.low]
        loss_pct = 7.5
        [behaviour.interruption]
        high = 1
        [behaviour.audio.medium]
        high_hz = 3000
    "#;
    let config =
        read_config(file, &[("RINGER_METRICS_FILLER_PHRASES", "um, let me check")], &[]).expect("all are allowed");
    assert_eq!(config.data, Path::new("/var/lib/ringer"));
    assert_eq!(config.server.cors_origins, ["http://a", "http://b"]);
    assert_eq!((config.sip.dtmf, config.sip.srtp), (Dtmf::Info, Encryption::Optional));
    assert_eq!(config.sip.srtp_keys, SrtpKeys::Dtls);
    assert_eq!(config.rate_limit.routes["POST /v1/queue-simulation-run"], 60);
    assert_eq!(config.behaviour.connection.low.loss_pct, 7.5);
    assert_eq!(config.behaviour.interruption.high, 1.0);
    assert_eq!((config.behaviour.audio.medium.low_hz, config.behaviour.audio.medium.high_hz), (200, 3000));
    assert_eq!(config.metrics.filler_phrases, ["um", "let me check"]);
    let within = [("RINGER_METRICS_YIELD_WITHIN_MS", "1500")];
    let config = read_config("", &within, &[]).expect("it is allowed");
    assert_eq!((Config::default().metrics.yielding.within_ms, config.metrics.yielding.within_ms), (1000, 1500));
}

#[test]
fn problems_name_the_place_the_value_and_what_is_allowed() {
    let check = |file: &str, environment: &[(&str, &str)], expect: &str| {
        assert_eq!(read_config(file, environment, &[]).expect_err(file), expect, "{file}");
    };
    check("\n[limits]\nmax_cals = 3", &[], "r.toml:3: unknown setting limits.max_cals, did you mean limits.max_calls?");
    check("[server]\nrtp_ports = 'x'", &[], "r.toml:2: unknown setting server.rtp_ports, did you mean sip.rtp_ports?");
    check("zzz = 1", &[], "r.toml:1: unknown setting zzz");
    check(
        "[sip]\nlisten = 'here'",
        &[],
        "r.toml:2: sip.listen = \"here\" is not allowed: it must be an address like 127.0.0.1:5060, which is UDP, or a list \
         of at most one each of udp:127.0.0.1:5060, tcp:127.0.0.1:5060 and tls:127.0.0.1:5061",
    );
    check(
        "[limits]\nmax_calls = 0",
        &[],
        "r.toml:2: limits.max_calls = 0 is not allowed: it must be a whole number from 1 to 1000000",
    );
    check(
        "[metrics]\npublic = 'perhaps'",
        &[],
        "r.toml:2: metrics.public = \"perhaps\" is not allowed: it must be true or false",
    );
    check(
        "",
        &[("RINGER_SIP_DTMF", "voice")],
        "environment variable RINGER_SIP_DTMF: sip.dtmf = \"voice\" is not allowed: it must be one of rtp, inband, info",
    );
    check("sip.refer = 'leave'", &[], "r.toml:1: sip.refer = \"leave\" is not allowed: it must be refuse or follow");
    check(
        "[language_model]\nbase_url = 'http://h'",
        &[],
        "language_model.model is missing: language_model.base_url is set",
    );
    check(
        "[language_model]\nmax_tokens = 0",
        &[],
        "r.toml:2: language_model.max_tokens = 0 is not allowed: it must be a whole number from 1 to 1000000",
    );
    check("security = 5", &[], "r.toml:1: unknown setting security");
    check("[sip", &[], "r.toml:1: unclosed table, expected `]`");
    check(
        "[behaviour.interruption]\nfrom_ms = 4000",
        &[],
        "behaviour.interruption.from_ms = 4000 is not allowed: it must be at most behaviour.interruption.to_ms, which is 3000",
    );
}

#[test]
fn every_problem_is_named_at_once() {
    let text = read_config("[limits]\nmax_calls = 0\n[sip]\nfoo = 1\ndtmf = 4", &[], &[]).expect_err("three are wrong");
    assert_eq!(text.lines().count(), 3, "{text}");
}

#[test]
fn an_unknown_variable_is_a_warning() {
    let config =
        read_config("", &[("RINGER_SERVER_LISTN", "x"), ("RINGER_PORT", "tcp://1")], &[]).expect("not an error");
    assert_eq!(
        config.warnings,
        [
            "unknown environment variable RINGER_PORT",
            "unknown environment variable RINGER_SERVER_LISTN, did you mean RINGER_SERVER_LISTEN?"
        ]
    );
}

#[test]
fn a_database_server_is_named_without_showing_it() {
    let url = "postgres://ringer:tell-nobody@db/ringer";
    let config = read_config("", &[("RINGER_DATABASE_URL", url)], &[]).expect("all are allowed");
    assert_eq!(config.database.url.as_ref().map(Secret::expose), Some(url));
    let file = "database.url = 'postgresql://file'";
    let config =
        read_config(file, &[("RINGER_DATABASE_URL", url)], &[("database.url", "postgres://flag")]).expect("allowed");
    assert_eq!(config.database.url.as_ref().map(Secret::expose), Some("postgres://flag"));
    assert_eq!(read_config("", &[("RINGER_DATABASE_URL", "")], &[]).expect("allowed").database.url, None);
    let problem = read_config("database.url = 'mysql://u:tell-nobody@h'", &[], &[]).expect_err("no such kind");
    assert_eq!(problem, "database.url must be like postgres://USER:PASSWORD@HOST:PORT/NAME");
}

#[test]
fn tokens_of_answers_are_set_for_each_model() {
    let config = read_config("[language_model]\nmax_tokens = 8000", &[("RINGER_AUDIO_MODEL_MAX_TOKENS", "9000")], &[]);
    let config = config.expect("all are allowed");
    assert_eq!((config.language_model.max_tokens, config.audio_model.max_tokens), (Some(8000), Some(9000)));
    assert_eq!(read_config("", &[], &[]).expect("allowed").language_model.max_tokens, None);
}

#[test]
fn secrets_do_not_show() {
    let file = "bootstrap_key = 'tell-nobody-else'\n[language_model]\napi_key = 'tell-nobody'\n[security]\ninternal_token = 'tell-nobody'\n\
                secret_key = 'tell-nobody-but-the-vault-of-32-letters'\nold_secret_keys = ['tell-nobody']";
    let config = read_config(file, &[], &[]).expect("all are allowed");
    assert_eq!(config.bootstrap_key.as_ref().map(Secret::expose), Some("tell-nobody-else"));
    let json = serde_json::to_string(&config).expect("settings have text keys only");
    assert!(!format!("{config:?}{json}").contains("tell-nobody"));
    let refused = read_config("security.old_secret_keys = [['tell-nobody']]", &[], &[]).expect_err("not texts");
    assert!(!refused.contains("tell-nobody"), "{refused}");
    let refused = read_config("secret_key = 'tell-nobody'", &[], &[]).expect_err("too short");
    assert_eq!(refused, "security.secret_key must have at least 32 characters");
    let refused = read_config("bootstrap_key = ['tell-nobody']", &[], &[]).expect_err("not a text");
    assert!(!refused.contains("tell-nobody"), "{refused}");
}

#[test]
fn the_key_of_secrets_has_a_short_name() {
    let key = |file: &str, environment: &[(&str, &str)]| {
        read_config(file, environment, &[]).expect("long enough").security.secret_key.map(|key| key.expose().to_owned())
    };
    let (one, other) = ("1".repeat(32), "2".repeat(32));
    assert_eq!(key("", &[("RINGER_SECRET_KEY", one.as_str())]), Some(one.clone()));
    assert_eq!(key("", &[("RINGER_SECURITY_SECRET_KEY", one.as_str())]), Some(one.clone()));
    assert_eq!(key(&format!("[security]\nsecret_key = '{other}'"), &[]), Some(other));
    assert_eq!(key("", &[]), None);
}

#[test]
fn private_targets_follow_the_address_of_the_api() {
    let allows = |listen: &str| {
        read_config("", &[], &[("server.listen", listen)]).expect("an address").security.allow_private_targets
    };
    assert!(allows("127.0.0.1:80"));
    assert!(!allows("0.0.0.0:80"));
}

#[test]
fn ports_and_calls() {
    let check = |text: &str, expect| assert_eq!(parse_ports(text), expect, "{text}");
    check("20000-20001", Some(20000..=20001));
    check(" 20000 - 20009 ", Some(20000..=20009));
    for bad in ["", "20000", "20001-20010", "20000-20000", "30000-20000", "80-90", "20000-70000", "a-b"] {
        check(bad, None);
    }
    let calls = |files, last, expect| assert_eq!(most_calls(files, &(20000..=last)), expect, "{files} {last}");
    calls(1024, 29999, 274);
    calls(1_048_576, 29999, 5000);
    calls(100, 29999, 1);
}

#[test]
fn servers_of_speech_have_addresses_of_their_kind_and_keys_that_never_show() {
    let file = r#"
        [synthesizer]
        kind = "http"
        base_url = "https://speech.example/v1"
        voice = "plain"
        voices = { en-british-female = "emma", male = "tom" }
        [recognizer]
        kind = "websocket"
        base_url = "wss://speech.example/listen"
        fallback = false
    "#;
    let keys = [("RINGER_SYNTHESIZER_API_KEY", "sesame"), ("RINGER_RECOGNIZER_API_KEY", "sesame")];
    let config = read_config(file, &keys, &[]).expect("all are allowed");
    assert_eq!((config.synthesizer.kind, config.recognizer.kind), (Place::Http, Place::Websocket));
    assert_eq!(config.synthesizer.voices["en-british-female"], "emma");
    assert!(config.synthesizer.fallback && !config.recognizer.fallback);
    assert_eq!(config.synthesizer.api_key.as_ref().map(Secret::expose), Some("sesame"));
    let shown = format!("{config:?}{}", serde_json::to_string(&config).expect("it is plain data"));
    assert!(!shown.contains("sesame"));

    let refused = |file: &str, part: &str| {
        let problems = read_config(file, &[], &[]).expect_err(part);
        assert!(problems.contains(part), "{problems}");
    };
    refused("recognizer.kind = 'http'", "recognizer.base_url must begin with https:// or http://");
    refused("[recognizer]\nkind = 'websocket'\nbase_url = 'http://x'", "must begin with wss:// or ws://");
    refused("[synthesizer]\nkind = 'http'\nbase_url = 'http://x'", "synthesizer.voice is missing");
    refused("[synthesizer]\nkind = 'cloud'", "one of auto, embedded, piper, kokoro, http, websocket");
    refused("[recognizer]\nkind = 'piper'", "one of auto, embedded, whisper, http, websocket");
    refused("[synthesizer]\nkind = 'whisper'", "one of auto, embedded, piper");
}

#[test]
fn sip_is_heard_over_three_transports() {
    let check = |file: &str, expect: Result<&str, &str>| {
        let read = read_config(file, &[], &[]).map(|config| config.sip.listen.to_string());
        assert_eq!(read.as_deref().map_err(String::as_str), expect, "{file}");
    };
    let identity = "tls_certificate = 'a.pem'\ntls_key = 'a.key'";
    check("", Ok("127.0.0.1:5060"));
    check("[sip]\nlisten = '[::1]:5060'", Ok("[::1]:5060"));
    check("[sip]\nlisten = ['tcp:[::1]:5060']", Ok("tcp:[::1]:5060"));
    let all = "udp:127.0.0.1:5060,tcp:127.0.0.1:5060,tls:127.0.0.1:5061";
    check(&format!("[sip]\nlisten = ['{}']\n{identity}", all.replace(',', "', '")), Ok(all));
    check(&format!("[sip]\nlisten = '{all}'\n{identity}"), Ok(all));
    let missing = "sip.tls_certificate is missing: sip.listen has a tls: address";
    check("[sip]\nlisten = ['tls:127.0.0.1:5061']", Err(missing));
    check("[sip]\ntls_certificate = 'a.pem'", Err("sip.tls_key is missing: sip.tls_certificate is set"));
    check("[sip]\ntls_key = 'a.pem'", Err("sip.tls_certificate is missing: sip.tls_key is set"));
    check("[tls]\ninsecure_hosts = ['*']", Err("tls.insecure_hosts: \"*\" is not of the form host:port"));
    let config =
        read_config("[tls]\ninsecure_hosts = ['lab.example:5061', '[::1]:5061']", &[], &[]).expect("both are exact");
    assert_eq!(config.tls.insecure_hosts, ["lab.example:5061", "[::1]:5061"]);
}

#[test]
fn further_models_have_an_address_and_a_default() {
    let default = "[language_model]\nbase_url = 'http://127.0.0.1:1'\nmodel = 'm1'\n";
    let careful = "[language_models.careful]\nbase_url = 'http://127.0.0.1:2'\nmodel = 'm2'\n";
    let config = read_config(&format!("{default}{careful}"), &[], &[]).expect("both are allowed");
    assert_eq!(config.language_models["careful"].model.as_deref(), Some("m2"));
    let limits = "usd_per_million_input_tokens = 0.5\nusd_per_million_output_tokens = 2\nmax_usd_per_day = 5\n";
    let config = read_config(&format!("{default}{limits}max_per_minute = 60"), &[], &[]).expect("all are allowed");
    let model = config.language_model;
    assert_eq!((model.usd_per_million_input_tokens, model.usd_per_million_output_tokens), (Some(0.5), Some(2.0)));
    assert_eq!((model.max_usd_per_day, model.max_per_minute), (Some(5.0), Some(60)));
    for (text, expect) in [
        (careful.to_owned(), "language_models.careful needs a default: language_model.base_url is not set"),
        (format!("{default}[language_models.x]\nmodel = 'm'"), "language_models.x.base_url is missing"),
        ("[audio_models.x]\nmodell = 'm'".to_owned(), "unknown setting audio_models.x.modell"),
        (
            format!("{default}max_usd_per_day = 5\nusd_per_million_input_tokens = 1"),
            "language_model.usd_per_million_output_tokens is missing: language_model.max_usd_per_day is set",
        ),
        (
            format!("{default}{careful}max_usd_per_day = 5\nusd_per_million_output_tokens = 1"),
            "language_models.careful.usd_per_million_input_tokens is missing: language_models.careful.max_usd_per_day is set",
        ),
        (
            format!("{default}max_per_minute = 0"),
            "language_model.max_per_minute = 0 is not allowed: it must be a whole number from 1 to 100000",
        ),
    ] {
        let error = read_config(&text, &[], &[]).expect_err("it is refused").to_string();
        assert!(error.contains(expect), "{error}");
    }
}

#[test]
fn a_panel_is_of_models_that_are_there() {
    let default = "[language_model]\nbase_url = 'http://127.0.0.1:1'\nmodel = 'm1'\n";
    let careful = "[language_models.careful]\nbase_url = 'http://127.0.0.1:2'\nmodel = 'm2'\n";
    let judge = read_config("", &[], &[]).expect("nothing is needed").judge;
    assert_eq!((judge.least_tpr, judge.least_tnr, judge.panel), (0.8, 0.9, Vec::<String>::new()));
    let text = format!("{default}{careful}[judge]\nleast_tnr = 0.95\npanel = ['default', 'careful']\n");
    let judge = read_config(&text, &[], &[]).expect("both are there").judge;
    assert_eq!((judge.least_tnr, judge.panel.join(" ").as_str()), (0.95, "default careful"));
    for (panel, expect) in [
        (
            "['default', 'carefull']",
            "judge.panel: \"carefull\" is no language model of [language_models], did you mean",
        ),
        ("['careful', 'careful']", "judge.panel: \"careful\" is in it twice"),
        ("['careful']", "judge.panel: one model is no panel; name two or more"),
        ("[]\nleast_tpr = 80", "judge.least_tpr = 80 is not allowed"),
    ] {
        let text = format!("{default}{careful}[judge]\npanel = {panel}\n");
        let error = read_config(&text, &[], &[]).expect_err("it is refused").to_string();
        assert!(error.contains(expect), "{error}");
    }
}
