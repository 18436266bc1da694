//! Digest of a caller (RFC 3261 22, RFC 7616, RFC 8760).

use super::{Scripted, answer_to};
use crate::auth::{Algorithm, Demand, Qop, Verdict};
use crate::message::{Method, Request};
use crate::testing::offer;
use crate::useragent::{CallEvent, EndKind};

/// Returns a challenge for realm `f`.
fn challenge(nonce: &str, rest: &str) -> String {
    format!("Digest realm=\"f\", nonce=\"{nonce}\"{rest}")
}

/// Returns the value of a parameter of the credentials in this field.
fn param(request: &Request, field: &str, name: &str) -> String {
    let value = request.headers.get(field).unwrap_or_else(|| panic!("no {field} in {}", request.method));
    let mut params = value.split(", ").filter_map(|param| param.split_once('='));
    let found = params.find(|(known, _)| known.trim_start_matches("Digest ") == name);
    found.map(|(_, value)| value.trim_matches('"').to_owned()).unwrap_or_default()
}

fn count_of(request: &Request) -> u32 {
    u32::from_str_radix(&param(request, "Authorization", "nc"), 16).unwrap()
}

/// A server that knows the password finds every form right, with the body in it or without.
#[test]
fn every_form_of_digest_is_accepted() {
    for algorithm in [Algorithm::Md5, Algorithm::Sha256, Algorithm::Sha512_256] {
        for (qop, proxy) in [(Qop::None, false), (Qop::Auth, true), (Qop::AuthInt, false), (Qop::AuthInt, true)] {
            let demand = Demand { algorithms: vec![algorithm], qop, proxy, ..Demand::new("f", "u", "secret") };
            let (mut stage, _, first) = Scripted::calling(Some(("u", "secret")));
            let (field, value) = demand.challenges("n", false).remove(0);
            stage.reply(&first, if proxy { 407 } else { 401 }, "b", &[(field, &value)], None);
            stage.request(Method::Ack);
            let second = stage.request(Method::Invite);
            assert_eq!(second.body, first.body);
            let judged = |body: &[u8]| demand.verify(&second.headers, "INVITE", body, |nonce| nonce == "n");
            assert_eq!(judged(&second.body), Verdict::Accepted, "{algorithm:?} {qop:?}");
            let other = if qop == Qop::AuthInt { Verdict::Wrong } else { Verdict::Accepted };
            assert_eq!(judged(b"another body"), other, "{algorithm:?} {qop:?}");
        }
    }
}

#[test]
fn several_challenges_of_one_response_are_answered() {
    let (mut stage, _, first) = Scripted::calling(Some(("u", "secret")));
    let headers = [
        ("WWW-Authenticate", "Basic realm=\"f\""),
        ("WWW-Authenticate", "Digest realm=\"f\", nonce=\"1\", algorithm=MD5, qop=\"auth\""),
        ("WWW-Authenticate", "Digest realm=\"f\", nonce=\"2\", algorithm=SHA-512-256, qop=\"auth-int\""),
        ("WWW-Authenticate", "Digest realm=\"f\", nonce=\"3\", algorithm=SHA-256, qop=\"auth\""),
        ("Proxy-Authenticate", "Digest realm=\"p\", nonce=\"4\", opaque=\"o\", qop=\"auth\""),
        ("Proxy-Authenticate", "Digest realm=\"q\", nonce=\"5\", qop=\"auth\""),
    ];
    stage.reply(&first, 401, "b", &headers, None);
    stage.request(Method::Ack);
    let second = stage.request(Method::Invite);
    assert_eq!(second.headers.all("Authorization").count(), 1, "one a realm");
    let own = |name: &str| param(&second, "Authorization", name);
    assert_eq!((own("algorithm"), own("nonce"), own("qop")), ("SHA-512-256".into(), "2".into(), "auth-int".into()));
    let proxies: Vec<_> = second.headers.all("Proxy-Authorization").collect();
    assert_eq!(proxies.len(), 2);
    assert!(proxies[0].contains("realm=\"p\"") && proxies[0].contains("opaque=\"o\""), "{proxies:?}");
    assert!(proxies[1].contains("realm=\"q\""), "{proxies:?}");
}

#[test]
fn a_new_nonce_is_answered_with_stale_and_without() {
    for (code, field, answer) in
        [(401, "WWW-Authenticate", "Authorization"), (407, "Proxy-Authenticate", "Proxy-Authorization")]
    {
        for stale in ["", ", stale=true", ", stale=false"] {
            let (mut stage, _, first) = Scripted::calling(Some(("u", "secret")));
            stage.reply(&first, code, "b", &[(field, &challenge("1", ", qop=\"auth\""))], None);
            stage.request(Method::Ack);
            let second = stage.request(Method::Invite);
            stage.reply(&second, code, "b", &[(field, &challenge("2", &format!(", qop=\"auth\"{stale}")))], None);
            stage.request(Method::Ack);
            let third = stage.request(Method::Invite);
            let of = |name: &str| param(&third, answer, name);
            assert_eq!((of("nonce"), of("nc")), ("2".into(), "00000001".into()), "each nonce is counted for itself");
            assert_eq!(third.headers.all(answer).count(), 1);
            // Three attempts, then it is a refusal.
            stage.reply(&third, code, "b", &[(field, &challenge("3", stale))], None);
            stage.request(Method::Ack);
            stage.quiet();
            assert_eq!((stage.end().kind, stage.end().sip_code), (EndKind::AuthFailed, Some(code)));
        }
    }
}

#[test]
fn credentials_that_were_refused_are_not_sent_again() {
    let check = |second_challenge: &str, who: Option<(&str, &str)>, attempts: usize| {
        let (mut stage, _, mut asked) = Scripted::calling(who);
        let mut sent = 1;
        for text in [&challenge("1", ""), second_challenge] {
            stage.reply(&asked, 401, "b", &[("WWW-Authenticate", text)], None);
            stage.request(Method::Ack);
            if stage.sent.is_empty() {
                break;
            }
            asked = stage.request(Method::Invite);
            sent += 1;
        }
        assert_eq!((sent, stage.end().kind), (attempts, EndKind::AuthFailed), "{second_challenge}");
    };
    check(&challenge("1", ""), Some(("u", "secret")), 2);
    check("Basic realm=\"f\"", Some(("u", "secret")), 2);
    check("Digest realm=\"f\", nonce=\"2\", algorithm=X", Some(("u", "secret")), 2);
    check(&challenge("1", ""), None, 1);
}

#[test]
fn requests_of_a_dialog_count_their_nonce_and_follow_a_new_one() {
    let (mut stage, key, first) = Scripted::calling(Some(("u", "secret")));
    stage.reply(&first, 401, "b", &[("WWW-Authenticate", &challenge("1", ", qop=\"auth\""))], None);
    stage.request(Method::Ack);
    let second = stage.request(Method::Invite);
    assert_eq!(count_of(&second), 1);
    let reliable = [("Require", "100rel"), ("RSeq", "1"), ("Contact", "<sip:bob@10.0.0.2>")];
    stage.reply(&second, 180, "b", &reliable, None);
    let prack = stage.request(Method::Prack);
    assert_eq!((count_of(&prack), param(&prack, "Authorization", "uri")), (2, prack.uri.clone()));
    stage.reply(&prack, 200, "b", &[], None);
    stage.answer(&second, "b");
    assert_eq!(count_of(&stage.request(Method::Ack)), 1, "an ACK has what its INVITE had");
    stage.events.clear();

    // Each is challenged with a nonce of its own, and sent again under the next CSeq number.
    let mut nonce = 1;
    for method in [Method::Update, Method::Invite, Method::Info, Method::Bye] {
        let now = stage.now;
        let own = offer(1).session().to_string();
        match method {
            Method::Update => assert!(stage.endpoint.update(now, key, Some(own))),
            Method::Invite => assert!(stage.endpoint.reinvite(now, key, own)),
            Method::Info => stage.endpoint.send_digit(now, key, '5', 100),
            _ => stage.endpoint.hangup(now, key, 16, "x"),
        }
        let asked = stage.request(method.clone());
        assert_eq!(param(&asked, "Authorization", "nonce"), nonce.to_string());
        nonce += 1;
        let fresh = challenge(&nonce.to_string(), ", qop=\"auth\", stale=true");
        stage.reply(&asked, 401, "b", &[("WWW-Authenticate", &fresh)], None);
        if method == Method::Invite {
            stage.request(Method::Ack);
        }
        let again = stage.request(method.clone());
        let seq = |request: &Request| request.headers.cseq().unwrap().seq;
        assert_eq!((seq(&again), count_of(&again)), (seq(&asked) + 1, 1), "{method}");
        assert_eq!(param(&again, "Authorization", "nonce"), nonce.to_string());
        assert_eq!((&again.body, again.headers.all("Authorization").count()), (&asked.body, 1));
        let described = matches!(method, Method::Update | Method::Invite).then(|| answer_to(&again));
        stage.reply(&again, 200, "b", &[], described.as_deref());
        if method == Method::Invite {
            assert_eq!(stage.request(Method::Ack).headers.get("Authorization"), again.headers.get("Authorization"));
        }
        stage.quiet();
    }
    let codes = stage.events.iter().filter_map(|event| match event {
        CallEvent::Updated { code, .. } | CallEvent::Reinvited { code, .. } => Some(*code),
        _ => None,
    });
    assert_eq!(codes.collect::<Vec<_>>(), [200, 200]);
}

#[test]
fn a_challenged_prack_is_sent_again() {
    let (mut stage, _, first) = Scripted::calling(Some(("u", "secret")));
    let reliable = [("Require", "100rel"), ("RSeq", "1"), ("Contact", "<sip:bob@10.0.0.2>")];
    stage.reply(&first, 183, "b", &reliable, Some(&answer_to(&first)));
    let mut prack = stage.request(Method::Prack);
    for nonce in ["1", "2"] {
        let text = challenge(nonce, ", qop=\"auth\"");
        stage.reply(&prack, 407, "b", &[("Proxy-Authenticate", &text)], None);
        let again = stage.request(Method::Prack);
        assert_eq!(again.headers.get("RAck"), prack.headers.get("RAck"));
        assert_eq!(param(&again, "Proxy-Authorization", "nonce"), nonce);
        prack = again;
    }
    stage.reply(&prack, 407, "b", &[("Proxy-Authenticate", &challenge("3", ""))], None);
    stage.quiet();
    // The call goes on all the same.
    stage.reply(&first, 200, "b", &[], None);
    stage.request(Method::Ack);
    assert!(matches!(stage.events.last(), Some(CallEvent::Answered { .. })));
}

#[test]
fn realms_without_end_are_given_up() {
    let (mut stage, _, mut asked) = Scripted::calling(Some(("u", "secret")));
    for n in 0..4 {
        let text = format!("Digest realm=\"r{n}\", nonce=\"{n}\"");
        stage.reply(&asked, 407, "b", &[("Proxy-Authenticate", &text)], None);
        stage.request(Method::Ack);
        asked = stage.request(Method::Invite);
        assert_eq!(asked.headers.all("Proxy-Authorization").count(), n + 1);
    }
    stage.reply(&asked, 407, "b", &[("Proxy-Authenticate", "Digest realm=\"r4\", nonce=\"4\"")], None);
    stage.request(Method::Ack);
    stage.quiet();
    assert_eq!(stage.end().kind, EndKind::AuthFailed);
}

#[test]
fn credentials_stay_with_the_host_that_they_are_for() {
    let challenge = challenge("n", "");
    for (contact, is_answered) in [("<sip:bob@B.example:5070>", true), ("<sip:bob@evil.example>", false)] {
        let (mut stage, key, first) = Scripted::calling(Some(("u", "secret")));
        stage.reply(&first, 401, "x", &[("WWW-Authenticate", &challenge)], None);
        stage.request(Method::Ack);
        let signed = stage.request(Method::Invite);
        assert!(signed.headers.get("Authorization").is_some());
        stage.reply(&signed, 302, "x", &[("Contact", contact)], None);
        stage.request(Method::Ack);
        stage.endpoint.take_destinations(stage.now, key, [crate::Hop::udp(stage.far)]);
        let moved = stage.request(Method::Invite);
        assert_eq!(moved.headers.get("Authorization"), None, "{contact}");
        stage.reply(&moved, 401, "y", &[("WWW-Authenticate", &challenge)], None);
        stage.request(Method::Ack);
        if is_answered {
            assert!(stage.request(Method::Invite).headers.get("Authorization").is_some());
        } else {
            stage.quiet();
            assert_eq!((stage.end().kind, stage.end().sip_code), (EndKind::AuthFailed, Some(401)));
        }
    }
}
