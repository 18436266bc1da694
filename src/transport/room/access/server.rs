//! Rooms of a room server by its own API: Twirp, which takes bodies of JSON.

use std::sync::Arc;
use std::time::Duration;

use ringer_base::clock::Clock;
use ringer_base::post::{Poster, Posting};
use serde_json::{Value, json};
use url::Url;

use super::token::{RoomKey, admin_token};
use super::{ANSWER_BYTES, AccessFault, Visit, WAITS_MS, ask};
use crate::room::fault::place_of;

/// Time for a connection and an answer together.
const PATIENCE: Duration = Duration::from_secs(10);

/// Time for a request that removes a room: nobody waits for it but the end of the call.
const REMOVE_PATIENCE: Duration = Duration::from_secs(5);

/// Attempts to remove a room.
const REMOVE_ATTEMPTS: usize = 2;

/// Seconds after which the server itself removes a room that nobody has joined.
const EMPTY_S: u32 = 120;

/// Seconds after which the server itself removes a room that everybody has left.
const DEPARTED_S: u32 = 20;

/// A room server, and the key to its API. Cheap to clone.
#[derive(Clone)]
pub struct RoomServer {
    base: String,
    /// Host and port, as failures name the server.
    place: String,
    key: RoomKey,
    poster: Arc<Poster>,
    clock: Clock,
}

impl RoomServer {
    /// Returns the server at `url`, which is asked through `poster`.
    ///
    /// # Errors
    /// A text for an address that is none of ws, wss, http and https, or has no host.
    pub fn new(url: &str, key: RoomKey, poster: Arc<Poster>, clock: Clock) -> Result<RoomServer, String> {
        let no = || "must be a ws, wss, http or https URL".to_owned();
        let parsed = Url::parse(url.trim()).map_err(|_| no())?;
        let scheme = match parsed.scheme() {
            "ws" | "http" => "http",
            "wss" | "https" => "https",
            _ => return Err(no()),
        };
        let host = parsed.host_str().filter(|host| !host.is_empty()).ok_or_else(no)?.to_owned();
        let port = parsed.port().map(|port| format!(":{port}")).unwrap_or_default();
        let path = parsed.path().trim_end_matches('/');
        Ok(RoomServer { base: format!("{scheme}://{host}{port}{path}"), place: place_of(url), key, poster, clock })
    }

    /// Creates the room of a visit, with its metadata, and dispatches its agent there. A room that is there already is
    /// kept.
    ///
    /// # Errors
    /// The request that failed, after three attempts.
    pub async fn create(&self, visit: &Visit) -> Result<(), AccessFault> {
        let body = json!({
            "name": visit.room,
            "metadata": visit.metadata,
            "empty_timeout": EMPTY_S,
            "departure_timeout": DEPARTED_S,
            // With the room itself: a dispatch of its own would come on top of the default one.
            "agents": visit.agents("agent_name"),
        });
        self.twirp("livekit.RoomService/CreateRoom", &visit.room, &body, PATIENCE, WAITS_MS.len()).await
    }

    /// Removes a room: whoever is still there is sent out. One that is gone already is no fault.
    ///
    /// # Errors
    /// The request that failed, after two attempts.
    pub async fn remove(&self, room: &str) -> Result<(), AccessFault> {
        let body = json!({ "room": room });
        let method = "livekit.RoomService/DeleteRoom";
        match self.twirp(method, room, &body, REMOVE_PATIENCE, REMOVE_ATTEMPTS).await {
            Err(AccessFault { refusal: super::Refusal::Status(404, _), .. }) => Ok(()),
            done => done,
        }
    }

    async fn twirp(
        &self,
        method: &str,
        room: &str,
        body: &Value,
        patience: Duration,
        attempts: usize,
    ) -> Result<(), AccessFault> {
        let url = format!("{}/twirp/{method}", self.base);
        let token = admin_token(&self.key, room, self.clock.now_ms());
        let posting = Posting {
            method: "POST",
            url: &url,
            headers: &[("Authorization", format!("Bearer {}", token.expose()))],
            body: body.to_string(),
            patience,
            answer_bytes: ANSWER_BYTES,
        };
        let read = |body: &[u8]| match serde_json::from_slice::<Value>(body) {
            Ok(Value::Object(_)) => Ok(()),
            _ => Err("is no JSON object".to_owned()),
        };
        ask(&self.poster, &self.clock, &posting, attempts, read).await.map_err(|refusal| {
            let asked = format!("{} at the room server {}", method.rsplit('/').next().unwrap_or(method), self.place);
            AccessFault { asked, refusal, of_server: true }
        })
    }
}

#[cfg(test)]
mod tests {
    use ringer_base::guard::Guard;

    use super::super::testing::{Asked, FakeServer, claims_of, key, moving, visit};
    use super::*;
    use crate::fault::FaultKind;

    fn at(url: &str) -> Result<RoomServer, String> {
        let poster = Arc::new(Poster::new(Guard::new(true), PATIENCE));
        RoomServer::new(url, key(), poster, Clock::standing_at(1_767_603_600_000))
    }

    #[test]
    fn addresses_of_room_servers() {
        for (url, expect) in [
            ("wss://rooms.example", Some("https://rooms.example")),
            ("ws://127.0.0.1:7880/", Some("http://127.0.0.1:7880")),
            (" https://rooms.example/eu/ ", Some("https://rooms.example/eu")),
            ("http://[::1]:7880", Some("http://[::1]:7880")),
            ("wss://user:word@rooms.example?x=1", Some("https://rooms.example")),
            ("rooms.example", None),
            ("ftp://rooms.example", None),
            ("wss://", None),
        ] {
            let found = at(url).map(|server| server.base);
            let expect = expect.map(str::to_owned).ok_or("must be a ws, wss, http or https URL".to_owned());
            assert_eq!(found, expect, "{url}");
        }
    }

    #[tokio::test]
    async fn a_room_is_created_with_its_agent_and_removed() {
        let fake = FakeServer::start(|_| (200, "{}".to_owned())).await;
        let server = at(&fake.base.replace("http", "ws")).expect("an address");
        assert_eq!(server.create(&visit()).await, Ok(()));
        assert_eq!(server.remove("svc-17-0000abcd").await, Ok(()));
        let asked = fake.requests();
        let paths: Vec<&str> = asked.iter().map(|asked| asked.path.as_str()).collect();
        assert_eq!(paths, ["/twirp/livekit.RoomService/CreateRoom", "/twirp/livekit.RoomService/DeleteRoom"]);
        let create = json!({
            "name": "svc-17-0000abcd",
            "metadata": "{\"tenant\":42}",
            "empty_timeout": 120,
            "departure_timeout": 20,
            "agents": [{ "agent_name": "desk", "metadata": "{\"tenant\":42,\"id\":\"17\"}" }],
        });
        assert_eq!((&asked[0].body, &asked[1].body), (&create, &json!({ "room": "svc-17-0000abcd" })));
        for Asked { authorization, .. } in &asked {
            let token = authorization.as_deref().and_then(|text| text.strip_prefix("Bearer ")).expect("a token");
            let grants = json!({ "roomCreate": true, "roomAdmin": true, "room": "svc-17-0000abcd" });
            assert_eq!(claims_of(token)["video"], grants);
        }
    }

    #[tokio::test]
    async fn refusals_of_the_room_server() {
        let denied = r#"{"code":"unauthenticated","msg":"invalid API key: APIkey"}"#;
        let failed = FaultKind::RoomSetup;
        for (status, body, times, kind, why) in [
            (401, denied, 1, FaultKind::RoomAuth, "it answered 401 (unauthenticated)"),
            (404, "", 1, failed, "it answered 404"),
            (429, "", 3, FaultKind::Busy, "it answered 429"),
            (500, "", 3, failed, "it answered 500"),
            (302, "", 3, failed, "it answered 302"),
            (200, "<html>", 3, failed, "its answer is no JSON object"),
        ] {
            let fake = FakeServer::start(move |_| (status, body.to_owned())).await;
            let server = at(&fake.base).expect("an address");
            let refused = moving(&server.clock, server.create(&visit())).await.expect_err("it is refused");
            let place = fake.base.trim_start_matches("http://");
            let expect = format!("CreateRoom at the room server {place}: {why}");
            assert_eq!((refused.kind(), refused.to_string()), (kind, expect));
            assert_eq!(fake.requests().len(), times, "{status}");
            // It ends with the call; a room that is gone is gone.
            let removed = moving(&server.clock, server.remove("r")).await;
            assert_eq!(removed.is_ok(), status == 404, "{status}");
            assert_eq!(fake.requests().len(), times + times.min(2), "{status}");
        }
        let closed = at("ws://127.0.0.1:1").expect("an address");
        let refused = moving(&closed.clock, closed.create(&visit())).await.expect_err("nobody is there");
        assert_eq!(
            (refused.kind(), refused.to_string().as_str()),
            (failed, "CreateRoom at the room server 127.0.0.1:1: no connection: Connection refused (os error 111)")
        );
    }
}
