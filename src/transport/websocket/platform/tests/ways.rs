//! Settings of calls that are not held over one WebSocket, and of the requests beside a call.

use serde_json::{Value, json};

use super::{adapter, facts};
use crate::websocket::platform::adapter::{Adapter, SessionReply};
use crate::websocket::platform::after::{Report, ReportedText, ReportedTool};
use crate::websocket::platform::transport::Transport;

/// Returns the settings with more members.
fn with(mut settings: Value, more: Value) -> Value {
    let members = settings.as_object_mut().expect("an object was written");
    members.extend(more.as_object().expect("an object was written").clone());
    settings
}

fn good(settings: Value) -> Adapter {
    adapter(settings).unwrap_or_else(|why| panic!("{why}"))
}

fn room() -> Value {
    json!({ "transport": "room", "session_url": "https://h/s", "url_pointer": "/url", "token_pointer": "/token" })
}

fn offer(members: Value) -> Value {
    json!({ "transport": "webrtc", "offer": with(json!({ "url": "https://h/o" }), members) })
}

fn sip() -> Value {
    json!({ "transport": "sip", "url": "sip:{{agent.id}}@sip.example.com" })
}

#[test]
fn settings_without_effect_are_named() {
    let after =
        |members: Value| with(sip(), json!({ "after": with(json!({ "url": "https://h/{{call.id}}" }), members) }));
    let place = |members: Value| with(sip(), json!({ "place": with(json!({ "url": "https://h/p" }), members) }));
    for (settings, expect) in [
        (json!({ "transport": "room" }), "a room needs a session_url with a token_pointer"),
        (json!({ "transport": "room", "session_url": "https://h" }), "a room needs a session_url with a token_pointer"),
        (with(room(), json!({ "encoding": "PCMU" })), "encoding has no effect with transport = \"room\""),
        (with(room(), json!({ "offer": { "url": "https://h" } })), "offer has no effect"),
        (json!({ "transport": "sip" }), "needs a url that is a SIP address"),
        (with(sip(), json!({ "url": "sip:sip.example.com" })), "url has no user"),
        (with(sip(), json!({ "url": "sip:a@{{agent.name}}" })), "url has a place in its scheme, host or port"),
        (with(sip(), json!({ "url": "{{agent.name}}:a@h" })), "url has a place in its scheme, host or port"),
        (with(sip(), json!({ "headers": { "Via": "x" } })), "header fields of SIP begin with X-"),
        (offer(json!({ "urls": "x" })), "offer has no setting \"urls\""),
        (offer(json!({ "url": "http://h" })), "offer.url must begin with https://"),
        (offer(json!({ "url": "https://{{agent.name}}" })), "offer.url has a place in its scheme, host or port"),
        (offer(json!({ "body": { "a": "b" } })), "offer.body must have {{offer.sdp}}"),
        (offer(json!({ "answer_pointer": "sdp" })), "offer.answer_pointer must be a pointer"),
        (offer(json!({ "headers": { "Content-Type": "x" } })), "offer.headers: \"Content-Type\" cannot be set"),
        (with(offer(json!({})), json!({ "url": "wss://h" })), "url has no effect"),
        (place(json!({ "method": "PUT" })), "place.method is neither GET nor POST"),
        (place(json!({ "body": { "a": "{{offer.sdp}}" } })), "place: nothing is called {{offer.sdp}}"),
        (place(json!({ "body": { "a": "{{session.token}}" } })), "place: nothing is called {{session.token}}"),
        (after(json!({})), "after asks for nothing"),
        (after(json!({ "cost": "price" })), "after.cost must be a pointer"),
        (after(json!({ "tool": { "list": "/a" } })), "after.tool.name is missing"),
        (after(json!({ "text": { "list": "/a", "role": "/r", "words": "/w" } })), "after.text has no setting"),
        (after(json!({ "cost": "/c", "headers": { "X": "{{digital_human.sip_uri}}" } })), "nothing is called"),
        (with(sip(), json!({ "headers": { "X-A": "{{call.id}}" } })), "headers: nothing is called {{call.id}}"),
    ] {
        let why = adapter(settings.clone()).map(|_| ()).expect_err("it is refused");
        assert!(why.starts_with("[adapters.P4] ") && why.contains(expect), "{settings}: {why}");
    }
}

#[test]
fn a_room_is_named_by_the_session() {
    let adapter = good(room());
    assert_eq!((adapter.transport(), adapter.can_call(), adapter.places_calls()), (Transport::Room, true, false));
    for (answer, expect) in [
        (json!({ "url": "wss://r.example", "token": "a.b" }), Ok(("wss://r.example", "a.b"))),
        (json!({ "url": "https://r.example", "token": "a.b" }), Ok(("https://r.example", "a.b"))),
        (json!({ "url": "ws://r.example", "token": "a.b" }), Err("must begin with wss://")),
        (json!({ "url": "http://r.example", "token": "a.b" }), Err("must begin with https://")),
        (json!({ "url": "sip:a@r.example", "token": "a.b" }), Err("has no host")),
        (json!({ "url": "wss://r.example" }), Err("nothing at /token (token_pointer)")),
        (json!({ "url": "wss://r.example", "token": "a b" }), Err("a token that no request can hold")),
    ] {
        let reply = adapter.read_session(answer.to_string().as_bytes());
        let found = reply.and_then(|reply| adapter.room(&facts(), &reply));
        match expect {
            Ok((url, token)) => assert_eq!(found, Ok((url.to_owned(), token.to_owned())), "{answer}"),
            Err(why) => assert!(found.as_ref().is_err_and(|found| found.contains(why)), "{answer}: {found:?}"),
        }
    }
}

#[test]
fn a_sip_address_is_filled_or_named_by_the_session() {
    let adapter = good(with(sip(), json!({ "headers": { "X-Tenant": "t-{{agent.name}}" } })));
    let (uri, headers) = adapter.sip(&facts(), &SessionReply::default()).expect("it can be called");
    assert_eq!(uri, "sip:a%2F1@sip.example.com");
    assert_eq!(headers, [("X-Tenant".to_owned(), "t-Desk".to_owned())]);
    let named = good(json!({ "transport": "sip", "session_url": "https://h/s", "url_pointer": "/sip" }));
    let read =
        |answer: Value| named.read_session(answer.to_string().as_bytes()).and_then(|reply| named.sip(&facts(), &reply));
    assert_eq!(read(json!({ "sip": "sips:x@h.example" })).map(|(uri, _)| uri), Ok("sips:x@h.example".to_owned()));
    for wrong in ["https://h", "sip:h.example", "x"] {
        assert!(read(json!({ "sip": wrong })).is_err_and(|why| why.contains("is no SIP address")), "{wrong}");
    }
}

#[test]
fn offers_and_requests_are_filled() {
    let whole = good(with(offer(json!({})), json!({ "auth": "bearer" })));
    let made = whole.offer(&facts(), &SessionReply::default()).expect("it can be made");
    assert_eq!((made.platform.as_str(), made.url.as_str(), &made.body), ("P4", "https://h/o", &None));
    assert_eq!(made.headers, [("Authorization".to_owned(), "Bearer secret-key".to_owned())]);
    let keyed = with(offer(json!({})), json!({ "offer": { "url": "https://h/{{integration.key}}/o?n=1" } }));
    let made = good(keyed).offer(&facts(), &SessionReply::default()).expect("it can be made");
    assert_eq!((made.url.as_str(), made.shown.as_str()), ("https://h/secret-key/o?n=1", "https://h/(secret)/o"));
    assert!(!format!("{made:?}").contains("secret-key"));
    let body = json!({ "sdp": "{{offer.sdp}}", "agent": "{{agent.id}}", "key": "{{session.token}}" });
    let session = json!({ "session_url": "https://h/s", "token_pointer": "/t", "auth": "bearer" });
    let by_session = good(with(offer(json!({ "body": body, "answer_pointer": "/sdp" })), session));
    let reply = SessionReply { token: Some("tok".to_owned()), ..SessionReply::default() };
    let made = by_session.offer(&facts(), &reply).expect("it can be made");
    let body: Value = serde_json::from_str(&made.body.expect("there is one")).expect("JSON");
    assert_eq!(body, json!({ "sdp": "{{offer.sdp}}", "agent": "a/1", "key": "tok" }));
    assert_eq!((made.headers.len(), made.answer_pointer.as_str()), (0, "/sdp"), "the key is for the session alone");

    let body = json!({ "to": "{{digital_human.sip_uri}}", "who": "{{digital_human.name}}" });
    let place = json!({ "url": "https://h/{{agent.id}}", "body": body, "id_pointer": "/call/id" });
    let placing = good(json!({ "transport": "sip", "auth": "header X-Key", "place": place }));
    assert!(placing.places_calls() && !placing.can_call());
    let mut known = facts();
    known.digital_human.insert("sip_uri".to_owned(), json!("sip:dh@h"));
    let request = placing.place_request(&known).expect("it can be made");
    assert_eq!((request.method.as_str(), request.url.as_str()), ("POST", "https://h/a%2F1"));
    assert_eq!(request.body, json!({ "to": "sip:dh@h", "who": "Ann" }).to_string());
    assert_eq!(request.headers, [("X-Key".to_owned(), "secret-key".to_owned())]);
    assert_eq!(placing.read_placed(br#"{"call":{"id":7}}"#).as_deref(), Some("7"));
    assert_eq!((placing.read_placed(b"{}"), placing.read_placed(b"<html>")), (None, None));
}

#[test]
fn reports_are_read_as_far_as_they_are_there() {
    let after = json!({
        "url": "https://h/calls/{{session.id}}?x={{call.id}}", "id": "/id", "ready": "/status=ended", "cost": "/cost",
        "tool": { "list": "/turns/*/calls", "name": "/name", "arguments": "/args", "result": "/result" },
        "text": { "list": "/turns", "role": "/who", "text": "/said", "agent": "desk" },
    });
    let adapter = good(with(sip(), json!({ "after": after })));
    let request = adapter.after_request(&facts(), "c/1").expect("it can be made");
    assert_eq!((request.method.as_str(), request.url.as_str()), ("GET", "https://h/calls/c%2F1?x=c%2F1"));
    let turns = json!([
        { "who": "desk", "said": "Hello.", "calls": [{ "name": "book", "args": "{\"n\":2}", "result": [1] }, {}] },
        { "who": "Caller", "said": "Hi." }, { "who": "system", "said": "Be kind." }, { "who": "desk", "said": " " },
    ]);
    let whole = json!({ "id": "c1", "status": "ended", "cost": "0.10 EUR", "turns": turns });
    let read = |answer: &Value| adapter.read_report(answer.to_string().as_bytes(), "c1");
    let said = |is_agents, text: &str| ReportedText { is_agents, text: text.to_owned() };
    let expect = Report {
        tools: vec![ReportedTool { name: "book".into(), arguments: json!({ "n": 2 }), result: json!([1]) }],
        texts: vec![said(true, "Hello."), said(false, "Hi.")],
        cost: Some(json!("0.10 EUR")),
        lacks: Vec::new(),
    };
    assert_eq!(read(&whole), Some(expect));
    for (member, value, lacks, tools, has_all) in [
        ("status", json!("queued"), &["ready"][..], 1, false),
        ("cost", Value::Null, &["cost"], 1, true),
        ("turns", json!([{ "calls": [{ "name": "book" }] }]), &["text"], 1, true),
        ("turns", json!([]), &["text"], 0, true),
        ("turns", Value::Null, &["tool", "text"], 0, false),
    ] {
        let mut answer = whole.clone();
        answer[member] = value;
        let report = read(&answer).unwrap_or_else(|| panic!("{answer}"));
        assert_eq!(
            (&report.lacks[..], report.tools.len(), report.has_all_tools()),
            (lacks, tools, has_all),
            "{answer}"
        );
    }
    assert_eq!(read(&with(whole, json!({ "id": "c2" }))), None);
    assert_eq!(adapter.read_report(b"<html>", "c1"), None);
    let plain = json!({ "url": "https://h/a", "tool": { "list": "/tools", "name": "/n" } });
    let plain = good(with(sip(), json!({ "after": plain })));
    assert_eq!(plain.read_report(br#"{"tools":[]}"#, "c1"), Some(Report::default()), "it called none");
    let none = Report { lacks: vec!["tool"], ..Report::default() };
    assert_eq!(plain.read_report(b"{}", "c1"), Some(none));
    assert!(plain.reports_tools() && !good(sip()).reports_tools());
}
