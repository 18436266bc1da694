//! The listener with a certificate of its own: mail of `smtplib` after STARTTLS, and commands that were slipped in
//! before.

use serde_json::{Value, json};

use super::house::House;

#[tokio::test]
async fn mail_comes_encrypted_and_nothing_is_slipped_in_before() {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
    let folder = tempfile::tempdir().expect("a folder");
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).expect("it can be written");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("it can be written");
    let (ca, key) = (certificate.display().to_string(), key.display());
    let house = House::with(&format!("tls_cert = '{ca}'\ntls_key = '{key}'")).await;
    let id = house.queue(json!({}), json!({ "max_turns": 1 })).await;
    let to = house.mails(1).await[0]["from"].as_str().expect("an address").to_owned();
    // Behind STARTTLS in its packet: a mail that would be taken, up to DATA.
    let commands = format!("MAIL FROM:<desk@agent.example>\r\nRCPT TO:<{to}>\r\n");
    let injected = json!({ "port": house.listens, "ca": ca, "commands": commands });
    house.agent.tell("/inject", injected).await;
    assert_eq!(house.answers(1).await, [503]);
    assert_eq!(house.send(json!({ "to": [to], "text": "It is booked.", "ca": ca })).await, 250);
    house.until(&id, "COMPLETED").await;
    let mails = house.part(&id, "mails").await;
    let kinds: Vec<&Value> = mails["mails"].as_array().expect("mails").iter().map(|mail| &mail["kind"]).collect();
    assert_eq!(kinds, ["sent", "turn"], "{mails}");
}
