//! The part that a mail takes, by its header and by the settings.

use ringer_provider::mail::{DeliveryReport, Sender};
use serde_json::{Value, json};

use super::*;

const OWN: &str = "one@in.example";
const ADDRESS: &str = "dh-1-0123456789abcdef01234567@in.example";

fn mail() -> ReadMail {
    ReadMail {
        sender: Sender { name: String::new(), address: "Desk@Agent.example".into() },
        message_id: Some("two@agent.example".into()),
        references: vec![OWN.into()],
        words: "Good day.".into(),
        ..ReadMail::default()
    }
}

/// Returns the part of a mail of an agent with these settings; the envelope's sender is `bounce@mx.agent.example`.
fn part(agent: Value, email: Email, mail: &ReadMail) -> &'static str {
    part_from(agent, email, mail, "bounce@mx.agent.example")
}

fn part_from(agent: Value, email: Email, mail: &ReadMail, envelope_from: &str) -> &'static str {
    let agent: AgentSpec = serde_json::from_value(agent).expect("an agent");
    let own_ids = [OWN.to_owned()];
    let circumstances = Circumstances {
        agent: &agent,
        email: &email,
        own_ids: &own_ids,
        address: ADDRESS,
        envelope_from,
        has_envelope: true,
    };
    circumstances.part_of(mail).0.as_str()
}

fn agent(extra: Value) -> Value {
    let mut agent = json!({ "name": "Desk", "mode": "EMAIL", "email_address": "desk@agent.example" });
    agent.as_object_mut().expect("an object").extend(extra.as_object().cloned().unwrap_or_default());
    agent
}

#[test]
fn only_allowed_senders_take_turns() {
    let from = |address: &str| ReadMail { sender: Sender { name: String::new(), address: address.into() }, ..mail() };
    for (replies, address, expect) in [
        (json!([]), "desk@agent.example", "turn"),
        (json!([]), "DESK@AGENT.EXAMPLE", "turn"),
        (json!([]), "thief@agent.example", "rejected"),
        (json!([]), "", "rejected"),
        // A letter of another script in the name, and in the domain.
        (json!([]), "d\u{435}sk@agent.example", "rejected"),
        (json!([]), "des\u{212a}@agent.example", "rejected"),
        (json!([]), "desk@\u{430}gent.example", "rejected"),
        (json!(["*@agent.example"]), "anybody@agent.example", "turn"),
        (json!(["*@agent.example"]), "anybody@sub.agent.example", "rejected"),
        (json!(["*@agent.example"]), "agent.example", "rejected"),
        (json!(["other@agent.example"]), "desk@agent.example", "rejected"),
        (json!(["desk@b\u{fc}cher.example"]), "desk@xn--bcher-kva.example", "turn"),
    ] {
        let agent = agent(json!({ "email_reply_addresses": replies }));
        assert_eq!(part(agent, Email::default(), &from(address)), expect, "{address:?}");
    }
}

#[test]
fn mail_of_programs_is_a_turn_where_the_agent_sent_it() {
    let check = |change: fn(&mut ReadMail), email: Email, expect: &str| {
        let mut mail = mail();
        change(&mut mail);
        assert_eq!(part(agent(json!({})), email, &mail), expect);
    };
    check(|mail| mail.is_automatic = true, Email::default(), "turn");
    let off = Email { automatic_replies: false, ..Email::default() };
    check(|mail| mail.is_automatic = true, off.clone(), "automatic");
    check(|_| {}, off, "turn");
    check(|mail| mail.is_list = true, Email::default(), "automatic");
    check(|mail| mail.message_id = Some(OWN.into()), Email::default(), "automatic");
    check(|mail| mail.sender.address = ADDRESS.to_uppercase(), Email::default(), "automatic");
    check(
        |mail| {
            mail.is_automatic = true;
            mail.sender.address = "noreply@other.example".into();
        },
        Email::default(),
        "automatic",
    );
    assert_eq!(part_from(agent(json!({})), Email::default(), &mail(), ""), "automatic", "the null sender");
}

#[test]
fn a_report_counts_where_it_is_on_an_own_mail() {
    let check = |delivery, about: &str, expect: &str| {
        let about = vec![about.to_owned()];
        let report = DeliveryReport { delivery, status: "5.1.1".into(), why: "no such user".into(), about };
        let mail = ReadMail { report: Some(report), references: Vec::new(), ..mail() };
        assert_eq!(part_from(agent(json!({})), Email::default(), &mail, ""), expect, "{delivery:?}");
    };
    check(Delivery::Failed, OWN, "failed");
    check(Delivery::Delayed, OWN, "delayed");
    check(Delivery::Done, OWN, "automatic");
    check(Delivery::Failed, "other@in.example", "automatic");
}

#[test]
fn envelope_and_results_of_the_relay_are_asked_for_where_that_is_set() {
    let strict = Email { check_envelope: true, ..Email::default() };
    for (from, expect) in [("x@agent.example", "turn"), ("x@mx.agent.example", "rejected"), ("x", "rejected")] {
        assert_eq!(part_from(agent(json!({})), strict.clone(), &mail(), from), expect, "{from}");
    }
    let relay = Email { require_auth_results: Some("relay.example".into()), ..Email::default() };
    for (results, expect) in [
        (&[][..], "rejected"),
        (&["relay.example; dmarc=pass header.from=agent.example"], "turn"),
        (&["relay.example; spf=pass; dmarc=fail"], "rejected"),
        (&["relay.example 1; dkim=pass header.d=agent.example"], "turn"),
        (&["relay.example; spf=softfail; dkim=none"], "rejected"),
        (&["evil.example; dmarc=pass"], "rejected"),
        // What the mail brought along stands below what the relay has written.
        (&["relay.example; dmarc=fail", "relay.example; dmarc=pass"], "rejected"),
        (&["other.example; dmarc=fail", "relay.example; dmarc=pass"], "turn"),
        (&["relay.example.evil.example; dmarc=pass"], "rejected"),
    ] {
        let auth_results = results.iter().map(|text| (*text).to_owned()).collect();
        let mail = ReadMail { auth_results, ..mail() };
        assert_eq!(part(agent(json!({})), relay.clone(), &mail), expect, "{results:?}");
    }
}
