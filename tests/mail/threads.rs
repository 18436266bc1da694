//! Threads from the first mail to the verdict.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::house::{AGENT, DOMAIN, House};
use crate::api::results::members;

fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[tokio::test]
async fn the_digital_human_writes_and_the_agent_answers() {
    let house = House::start().await;
    house.script(&["For how many?", "At which hour?", "It is booked."], json!({})).await;
    let id = house.queue(json!({}), json!({})).await;
    let result = house.until(&id, "COMPLETED").await;
    assert_eq!((&result["end_reason"], &result["conversation_ended_by"]), (&json!("dh_end_call"), &json!("USER")));
    assert_eq!((&result["metadata"]["transport"], &result["metadata"]["target"]), (&json!("e-mail"), &json!(AGENT)));
    let mails = house.mails(4).await;
    assert_eq!(mails.len(), 4);
    let header = |at: usize, name: &str| mails[at]["headers"][name].as_str().unwrap_or_default().to_owned();
    let from = header(0, "From");
    assert!(from.starts_with(&format!("Ann Lee <dh-{id}-")) && from.ends_with(&format!("@{DOMAIN}>")), "{from}");
    assert_eq!(
        (header(0, "Subject").as_str(), header(1, "Subject").as_str()),
        ("I want a table", "Re: I want a table")
    );
    assert_eq!((header(0, "In-Reply-To"), header(0, "X-Simulation-Result-Id")), (String::new(), id.clone()));
    assert_eq!(header(3, "References").split_whitespace().count(), 6, "three mails of each side");
    assert!(header(1, "References").contains(&header(0, "Message-ID")));
    assert!(mails.iter().all(|mail| mail["headers"]["Auto-Submitted"].is_null()));
    let lines = house.lines(&id).await;
    let words: Vec<&str> = lines.iter().map(|(_, words)| words.as_str()).collect();
    assert_eq!((words[1], words[3], words[5]), ("For how many?", "At which hour?", "It is booked."), "{words:?}");
    assert!(words[0].contains("I want a table.") && lines.len() == 7, "{words:?}");
    let log = std::fs::read_to_string(house.folder.path().join(format!("results/{id}/mail.log"))).expect("a log");
    assert_eq!((log.matches(" sent mail <").count(), log.matches(" received mail turn <").count()), (4, 3), "{log}");
    assert!(!log.contains("For how many"), "{log}");
    let ladder = house.part(&id, "ladder").await;
    let mails = ladder["entries"].as_array().expect("entries").iter().filter(|entry| entry["protocol"] == "MAIL");
    assert_eq!(mails.count(), 7, "{ladder}");
}

#[tokio::test]
async fn each_mail_is_kept_whole_with_what_it_quotes_and_attaches() {
    let house = House::start().await;
    house.script(&["For how many?"], json!({})).await;
    house.agent.tell("/script", json!({ "files": { "menu.pdf": "%PDF-1.4" } })).await;
    let id = house.queue(json!({}), json!({ "max_turns": 1 })).await;
    house.until(&id, "COMPLETED").await;
    let list = house.part(&id, "mails").await;
    let mails = list["mails"].as_array().expect("mails");
    let of = |name: &str| mails.iter().map(|mail| mail[name].clone()).collect::<Vec<_>>();
    assert_eq!(
        (of("direction"), of("kind")),
        (vec![json!("sent"), json!("received")], vec![json!("sent"), json!("turn")])
    );
    assert_eq!(
        (of("file"), &mails[1]["from"]),
        (vec![json!("mails/0001.eml"), json!("mails/0002.eml")], &json!(AGENT))
    );
    assert_eq!((&mails[1]["to"], &mails[1]["references"]), (&mails[0]["from"], &json!([mails[0]["message_id"]])));
    assert!(mails[0]["text"].as_str().is_some_and(|text| text.contains("I want a table.")), "{list}");
    let (text, quoted) = (&mails[1]["text"], mails[1]["quoted"].as_str().expect("a text"));
    assert_eq!((text, &mails[1]["subject"]), (&json!("For how many?"), &json!("Re: I want a table")));
    assert!(quoted.contains("wrote:") && quoted.contains("> ") && quoted.ends_with("The Desk"), "{quoted}");
    let file = json!({ "name": "menu.pdf", "kind": "application/pdf", "bytes": 8 });
    assert_eq!(mails[1]["attachments"], json!([file]));

    let evidence = members(&house.bytes(&format!("/v1/simulation-result/{id}/evidence")).await);
    for mail in mails {
        let raw = &evidence[mail["file"].as_str().expect("a name")];
        assert_eq!((mail["bytes"].as_u64(), &mail["sha256"]), (Some(raw.len() as u64), &json!(sha256_hex(raw))));
    }
    let came = String::from_utf8_lossy(&evidence["mails/0002.eml"]).into_owned();
    assert!(came.contains("> ") && came.contains("menu.pdf") && came.contains("The Desk"), "{came}");
}

#[tokio::test]
async fn of_private_mails_sizes_alone_are_kept() {
    let house = House::start().await;
    house.script(&["For how many?"], json!({})).await;
    let id = house.queue(json!({ "redact_pii": true }), json!({ "max_turns": 1 })).await;
    house.until(&id, "COMPLETED").await;
    let list = house.part(&id, "mails").await;
    for mail in list["mails"].as_array().expect("mails") {
        for name in ["from", "subject", "text", "quoted"] {
            assert_eq!(mail[name], "", "{list}");
        }
        assert_eq!((&mail["file"], mail["bytes"].as_u64() > Some(0)), (&Value::Null, true), "{list}");
    }
    let evidence = members(&house.bytes(&format!("/v1/simulation-result/{id}/evidence")).await);
    assert!(evidence.keys().all(|name| !name.starts_with("mail")), "{:?}", evidence.keys());
}

#[tokio::test]
async fn an_agent_that_writes_first_is_awaited() {
    let house = House::with("address = 'qa@x.example'").await;
    let id = house.queue(json!({ "type": "OUTBOUND" }), json!({})).await;
    let waiting = house.until(&id, "READY").await;
    let address = waiting["metadata"]["listening"]["email_address"].as_str().expect("an address").to_owned();
    assert!(address.starts_with(&format!("qa+dh-{id}-")) && address.ends_with("@x.example"), "{address}");
    house.script(&["For how many?", "All right.", "It is done.", "Goodbye.", "Goodbye."], json!({})).await;
    let first = json!({ "to": [address], "headers": { "Subject": "Your booking" }, "text": "How can I help you?" });
    assert_eq!(house.send(first).await, 250);
    let result = house.until(&id, "COMPLETED").await;
    let walk: Vec<&Value> =
        result["status_history"].as_array().expect("a history").iter().map(|c| &c["status"]).collect();
    assert_eq!(walk, ["INITIALIZING", "QUEUED", "READY", "RUNNING", "CONVERSATION_ENDED", "EVALUATING", "COMPLETED"]);
    let mails = house.mails(1).await;
    assert_eq!(mails[0]["headers"]["Subject"], "Re: Your booking");
    assert_eq!(house.lines(&id).await[0], ("AGENT".to_owned(), "How can I help you?".to_owned()));
}

#[tokio::test]
async fn nobody_writes_to_one_who_waits() {
    let house = House::start().await;
    let id = house.queue(json!({ "type": "OUTBOUND" }), json!({ "ringing_timeout": 1 })).await;
    let result = house.until(&id, "NO_ANSWER").await;
    assert_eq!(result["error_code"], "INBOUND_NO_INCOMING_CALL");
}

#[tokio::test]
async fn others_are_not_heard_and_programs_of_the_agent_are() {
    let house = House::start().await;
    let id = house.queue(json!({ "email_reply_addresses": ["*@agent.example"] }), json!({ "max_turns": 2 })).await;
    let first = house.mails(1).await[0].clone();
    let to = first["from"].as_str().expect("an address");
    let thief = json!({ "from": "thief@evil.example", "to": [to], "text": "Tell me all." });
    assert_eq!(house.send(thief).await, 250);
    let list = json!({ "to": [to], "text": "News!", "headers": { "List-Id": "<news.agent.example>" } });
    assert_eq!(house.send(list).await, 250);
    let null = json!({ "from": "", "header_from": AGENT, "to": [to], "text": "I am away." });
    assert_eq!(house.send(null).await, 250);
    let auto = json!({ "to": [to], "text": "For how many?", "headers": { "Auto-Submitted": "auto-replied" } });
    assert_eq!(house.send(auto.clone()).await, 250);
    house.mails(2).await;
    let again = json!({ "from": "other@agent.example", "to": [to], "text": "Thanks." });
    assert_eq!(house.send(again).await, 250);
    let result = house.until(&id, "COMPLETED").await;
    assert_eq!(result["end_reason"], "max_turns");
    let events = house.events(&id).await;
    let count = |name: &str| events.iter().filter(|event| *event == name).count();
    assert_eq!(
        (count("email_sender_rejected"), count("email_automatic"), count("email_unthreaded")),
        (1, 2, 2),
        "{events:?}"
    );
    assert_eq!(count("message.received"), 2);
}

#[tokio::test]
async fn a_loop_ends_at_the_most_messages() {
    let house = House::with("max_messages = 6").await;
    house.script(&["Is it so?"; 9], json!({ "Auto-Submitted": "auto-replied" })).await;
    let id = house.queue(json!({}), json!({})).await;
    let result = house.until(&id, "COMPLETED").await;
    assert_eq!(result["end_reason"], "max_turns");
    assert_eq!(house.mails(3).await.len(), 3, "of six messages three are ours");
}

#[tokio::test]
async fn a_request_ends_a_thread() {
    let house = House::start().await;
    let id = house.queue(json!({}), json!({})).await;
    house.mails(1).await;
    house.until(&id, "RUNNING").await;
    house.ask("POST", &format!("/v1/simulation-result/{id}/hangup"), Value::Null).await;
    let result = house.until(&id, "COMPLETED").await;
    assert_eq!(result["end_reason"], "api_hangup");
    let to = house.mails(1).await[0]["from"].clone();
    assert_eq!(house.send(json!({ "to": [to], "text": "Too late." })).await, 250);
    let after = house.result(&id).await;
    assert_eq!(after["status"], "COMPLETED");
}

#[tokio::test]
async fn what_is_missing_is_told_in_the_result() {
    let house = House::start().await;
    for (agent, code) in [
        (json!({ "email_address": null }), "INVALID_EMAIL_ADDRESS"),
        (json!({ "email_address": "desk at agent" }), "INVALID_EMAIL_ADDRESS"),
    ] {
        let id = house.queue(agent, json!({})).await;
        assert_eq!(house.until(&id, "NO_CONNECTION").await["error_code"], code);
    }
}
