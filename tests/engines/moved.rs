//! Calls that come in by SIP to an engine that does not have their result: it is taken over while it waits, and its
//! caller is sent to the engine that holds it. No engine that is drained takes any.

use std::net::SocketAddr;

use ringer::clock::Clock;
use ringer::service::EngineState;
use serde_json::{Value, json};
use tokio::net::UdpSocket;
use tokio::time::timeout;

use super::outages::{beside, engine, until, until_seen};
use super::proxy::Proxy;
use crate::calls::house::House;
use crate::calls::stage::Stage;
use crate::program::PATIENCE;

/// Returns the final answer to an INVITE for `user`, as text.
async fn answer_to_invite(user: &str, to: SocketAddr) -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let own = socket.local_addr().expect("it is bound");
    let invite = format!(
        "INVITE sip:{user}@{to} SIP/2.0\r\nVia: SIP/2.0/UDP {own};branch=z9hG4bK-{user}\r\nMax-Forwards: 70\r\n\
         From: <sip:agent@{own}>;tag=1\r\nTo: <sip:{user}@{to}>\r\nCall-ID: {user}-{}\r\nCSeq: 1 INVITE\r\n\
         Contact: <sip:agent@{own}>\r\nContent-Length: 0\r\n\r\n",
        own.port()
    );
    socket.send_to(invite.as_bytes(), to).await.expect("loopback takes it");
    let mut bytes = vec![0; 65_535];
    loop {
        let length = timeout(PATIENCE, socket.recv(&mut bytes)).await.expect("it is answered").expect("it is heard");
        let answer = String::from_utf8_lossy(&bytes[..length]).into_owned();
        if !answer.starts_with("SIP/2.0 1") {
            return answer;
        }
    }
}

/// Queues a result that an agent is to call; returns its id and the user part of its address.
async fn await_agent(house: &House) -> (String, String) {
    let asking = json!({ "type": "OUTBOUND", "connection_type": "SIP" });
    let (_, ids) = house.queue(asking, json!({ "max_call_duration": 4 }), &[json!({})]).await;
    let ready = until(house, &ids[0], |result| result["status"] == "READY").await;
    let uri = ready["metadata"]["listening"]["sip_uri"].as_str().expect("an address").to_owned();
    let (_, user) = uri.split_once(':').expect("a scheme");
    (ids[0].clone(), user.split('@').next().unwrap_or_default().to_owned())
}

#[test]
fn a_call_reaches_its_result_at_whichever_engine_it_comes_in() {
    beside(async |folder, schema| {
        let proxy = Proxy::start(folder).await;
        let first = engine("first", &proxy, schema, Clock::correctable(), 8).await;
        let second = engine("second", &proxy, schema, Clock::correctable(), 8).await;
        for house in [&first, &second] {
            until_seen(house, &["first", "second"], EngineState::Up).await;
        }
        let (at_first, at_second) = (first.engine.sip_address(), second.engine.sip_address());
        let (id, user) = await_agent(&first).await;
        let agent = Stage::new().await;
        let placement = agent.placement(&format!("sip:{user}@{at_second}"), "Hello there.");
        let calling = agent.call(placement);
        let meanwhile = async {
            until(&first, &id, |result| result["status"] == "RUNNING").await;
            let sent_on = answer_to_invite(&user, at_first).await;
            assert!(sent_on.starts_with("SIP/2.0 302 "), "{sent_on}");
            assert!(sent_on.contains(&format!("\r\nContact: <sip:{user}@{at_second}>\r\n")), "{sent_on}");
            let busy = answer_to_invite(&user, at_second).await;
            assert!(busy.starts_with("SIP/2.0 486 "), "{busy}");
        };
        let (report, ()) = tokio::join!(calling, meanwhile);
        assert!(report.expect("it was placed").ending.connected);
        let result = until(&first, &id, |result| result["outcome"].is_string()).await;
        assert_eq!((&result["status"], &result["error_code"]), (&json!("COMPLETED"), &Value::Null), "{result}");
        let answered = [&first, &second].map(|house| house.engine.counters().calls().answered);
        assert_eq!(answered, [0, 1], "it was taken over");

        first.service.engines().begin_end();
        let (_, user) = await_agent(&second).await;
        let refused = answer_to_invite(&user, at_first).await;
        assert!(refused.starts_with("SIP/2.0 503 ") && refused.contains("\r\nRetry-After: 60\r\n"), "{refused}");
        tokio::join!(first.stop(), second.stop());
    });
}
