//! Servers of the agent's owner that hand out tokens of rooms (`P1_token_webhook_url`).

use std::time::Duration;

use ringer_base::clock::Clock;
use ringer_base::config::Secret;
use ringer_base::guard::Guard;
use ringer_base::post::{Poster, Posting};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use super::{ANSWER_BYTES, AccessFault, Visit, WAITS_MS, ask};

/// Time for a connection and an answer together.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server that hands out tokens.
#[derive(Clone, Debug)]
pub struct TokenServer {
    /// Address of the request.
    pub url: String,
    /// Value of the header `Authorization`; `None`: there is none.
    pub authorization: Option<Secret>,
}

/// A token that was handed out, and the room server that takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Address of the room server: ws, wss, http or https.
    pub server_url: String,
    /// Token (JWT) of the participant.
    pub token: Secret,
}

#[derive(Deserialize)]
struct Answer {
    server_url: String,
    participant_token: String,
}

impl TokenServer {
    /// Asks for a token of the visit, at most three times. `rooms` judges the address of the room server.
    ///
    /// # Errors
    /// The reason of the last attempt.
    pub async fn admit(
        &self,
        poster: &Poster,
        clock: &Clock,
        rooms: &Guard,
        visit: &Visit,
    ) -> Result<Admission, AccessFault> {
        let authorization = self.authorization.iter().map(|text| ("Authorization", text.expose().to_owned()));
        let headers: Vec<(&str, String)> = authorization.collect();
        let posting = Posting {
            method: "POST",
            url: &self.url,
            headers: &headers,
            body: body(visit).to_string(),
            patience: PATIENCE,
            answer_bytes: ANSWER_BYTES,
        };
        let asked = ask(poster, clock, &posting, WAITS_MS.len(), |body| read_answer(body, rooms)).await;
        asked.map_err(|refusal| AccessFault { asked: "P1_token_webhook_url".into(), refusal, of_server: false })
    }
}

fn body(visit: &Visit) -> Value {
    json!({
        "room_name": visit.room,
        "participant_identity": visit.identity,
        "participant_name": visit.name,
        "participant_metadata": visit.metadata,
        "participant_attributes": visit.attributes,
        "room_config": { "agents": visit.agents("agent_name") },
    })
}

fn read_answer(body: &[u8], rooms: &Guard) -> Result<Admission, String> {
    let answer: Value = serde_json::from_slice(body).map_err(|_| "is no JSON".to_owned())?;
    let answer: Answer =
        serde_json::from_value(answer).map_err(|_| "lacks server_url and participant_token as texts".to_owned())?;
    let no_url = || "has a server_url that is no ws, wss, http or https URL".to_owned();
    let url = Url::parse(&answer.server_url).map_err(|_| no_url())?;
    if !matches!(url.scheme(), "ws" | "wss" | "http" | "https") || !url.has_host() {
        return Err(no_url());
    }
    rooms.literal(&url).map_err(|blocked| format!("has a server_url that {blocked}"))?;
    // A header that could not be sent.
    let is_sendable = |token: &str| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_sendable(&answer.participant_token) {
        return Err("has a participant_token that is empty or holds other than visible ASCII".to_owned());
    }
    Ok(Admission { server_url: answer.server_url, token: Secret::new(answer.participant_token) })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{FakeServer, moving, visit};
    use super::*;
    use crate::fault::FaultKind;

    async fn admit(server: &FakeServer, authorization: Option<&str>) -> Result<Admission, AccessFault> {
        let asked = TokenServer {
            url: format!("{}/tokens", server.base),
            authorization: authorization.map(|text| Secret::new(text.to_owned())),
        };
        let (poster, clock) = (Poster::new(Guard::new(true), Duration::from_secs(5)), Clock::standing_at(1_000_000));
        let done = moving(&clock, asked.admit(&poster, &clock, &Guard::new(false), &visit())).await;
        let waited = [0, 0, 1000, 3000][server.requests().len()];
        assert_eq!(clock.now_ms(), 1_000_000 + waited);
        done
    }

    #[tokio::test]
    async fn a_token_is_asked_for() {
        let answer = r#"{"server_url":"wss://rooms.example","participant_token":"a.b.c","more":1}"#;
        for authorization in [Some("Basic abc"), None] {
            let server = FakeServer::start(|_| (200, answer.to_owned())).await;
            let expect = Admission { server_url: "wss://rooms.example".into(), token: Secret::new("a.b.c".into()) };
            assert_eq!(admit(&server, authorization).await, Ok(expect));
            let asked = &server.requests()[0];
            assert_eq!((asked.path.as_str(), asked.authorization.as_deref()), ("/tokens", authorization));
            let body = json!({
                "room_name": "svc-17-0000abcd",
                "participant_identity": "dh-17",
                "participant_name": "Ada",
                "participant_metadata": "{\"tenant\":42}",
                "participant_attributes": { "simulation_result_id": "17", "trait.size": "2" },
                "room_config": { "agents": [{ "agent_name": "desk", "metadata": "{\"tenant\":42,\"id\":\"17\"}" }] },
            });
            assert_eq!(asked.body, body);
        }
    }

    #[tokio::test]
    async fn a_token_is_asked_for_three_times_at_most() {
        let good = r#"{"server_url":"wss://rooms.example","participant_token":"a.b.c"}"#;
        let with =
            |server_url: &str, token: &str| json!({ "server_url": server_url, "participant_token": token }).to_string();
        let lacks = "its answer lacks server_url and participant_token as texts";
        let (no_url, no_token) =
            ("its answer has a server_url that is no", "its answer has a participant_token that is");
        for (answers, times, expect) in [
            (vec![(503, String::new()), (200, good.to_owned())], 2, None),
            (vec![(429, String::new()), (425, String::new()), (200, good.to_owned())], 3, None),
            (vec![(401, String::new())], 1, Some("it answered 401")),
            (vec![(404, String::new())], 1, Some("it answered 404")),
            (vec![(500, String::new()); 3], 3, Some("it answered 500")),
            (vec![(302, String::new()); 3], 3, Some("it answered 302")),
            (vec![(200, "hello".to_owned()); 3], 3, Some("its answer is no JSON")),
            (vec![(200, "{}".to_owned()); 3], 3, Some(lacks)),
            (vec![(200, r#"{"server_url":"wss://h","participant_token":7}"#.to_owned()); 3], 3, Some(lacks)),
            (vec![(200, with("rooms.example", "t")); 3], 3, Some(no_url)),
            (vec![(200, with("ftp://rooms.example", "t")); 3], 3, Some(no_url)),
            (vec![(200, with("ws://127.0.0.1:1", "t")); 3], 3, Some("that points to an address that is not allowed")),
            (vec![(200, with("wss://rooms.example", "")); 3], 3, Some(no_token)),
            (vec![(200, with("wss://rooms.example", "a\r\nb")); 3], 3, Some(no_token)),
        ] {
            let case = format!("{answers:?}");
            let server = FakeServer::start(move |nth| answers[nth.min(answers.len() - 1)].clone()).await;
            let done = admit(&server, None).await;
            assert_eq!(server.requests().len(), times, "{case}");
            match (done, expect) {
                (Ok(_), None) => {}
                (Err(fault), Some(why)) => {
                    assert_eq!(fault.kind(), FaultKind::RoomSetup, "{case}");
                    let text = fault.to_string();
                    assert!(text.starts_with("P1_token_webhook_url: ") && text.contains(why), "{case}: {text}");
                }
                (done, _) => panic!("{case}: {done:?}"),
            }
        }
    }
}
