//! Mails that no listener wants.

use serde_json::json;

use super::house::{AGENT, DOMAIN, House};

#[tokio::test]
async fn bombs_and_strangers_are_refused_and_the_thread_goes_on() {
    let house = House::start().await;
    let id = house.queue(json!({}), json!({ "max_turns": 1 })).await;
    let to = house.mails(1).await[0]["from"].as_str().expect("an address").to_owned();
    let headers: String = (0..100_000).map(|n| format!("X-{n}: y\r\n")).collect();
    let head = format!("From: {AGENT}\r\nTo: {to}\r\n");
    let deep: String =
        (0..60).map(|n| format!("Content-Type: multipart/mixed; boundary=b{n}\r\n\r\n--b{n}\r\n")).collect();
    for (raw, answer) in [
        (format!("{head}{headers}\r\nx\r\n"), 554),
        (format!("{head}{deep}Content-Type: text/plain\r\n\r\nx\r\n"), 554),
        (format!("{head}\r\n{}", "x".repeat(70).repeat(400_000)), 552),
        (format!("From: {AGENT}, other@agent.example\r\nTo: {to}\r\n\r\nTwo senders.\r\n"), 250),
        (format!("From: \"{AGENT}\" <thief@evil.example>\r\nTo: {to}\r\n\r\nA shown name.\r\n"), 250),
        (format!("From: desk@\u{430}gent.example\r\nTo: {to}\r\n\r\nA letter that looks alike.\r\n"), 250),
        ("Content-Type: multipart/mixed; boundary=\"\"\r\n\r\n----\r\n=?utf-8?q?=?=".to_owned(), 250),
    ] {
        let got = house.send(json!({ "to": [to], "raw": raw })).await;
        assert_eq!(got, answer, "{:?}", &raw[..raw.len().min(200)]);
    }
    for unknown in [format!("dh-{id}-000000000000000000000000@{DOMAIN}"), format!("x@{DOMAIN}"), AGENT.to_owned()] {
        assert_eq!(house.send(json!({ "to": [unknown], "text": "x" })).await, 550);
    }
    assert_eq!(house.send(json!({ "to": [to], "text": "For how many?" })).await, 250);
    let result = house.until(&id, "COMPLETED").await;
    assert_eq!(result["end_reason"], "max_turns");
    let events = house.events(&id).await;
    let rejected = events.iter().filter(|event| *event == "email_sender_rejected").count();
    assert_eq!((rejected, events.iter().filter(|event| *event == "message.received").count()), (4, 1), "{events:?}");
}
