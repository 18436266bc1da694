//! The way into media rooms through the API and the shell: tokens as the official library reads them, rooms that are
//! created with their agent and removed after the call, and the codes of what goes wrong.

use parking_lot::Mutex;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use ringer::clock::Clock;
use ringer::config::Secret;
use ringer::transport::room::access::{RoomKey, Visit, join_token};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;

use super::answers::{fixed_answer, serve};
use super::official::official;
use super::server::{KEY, RoomServer, SECRET, lock};
use crate::calls::house::House;
use crate::json::with;
use crate::peers::python::python;
use crate::program::{PATIENCE, Program, ringer};

/// A room server whose own API answers so, and in whose rooms nobody can be; it ends with the test.
struct Rooms {
    base: String,
    asked: Arc<Mutex<Vec<(String, Value, String)>>>,
    /// True once rooms are created at once.
    creates: watch::Sender<bool>,
}

impl Rooms {
    async fn start(status: u16, answer: &'static str) -> Rooms {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let base = format!("http://{}", listener.local_addr().expect("it is bound"));
        let asked = Arc::<Mutex<Vec<(String, Value, String)>>>::default();
        let kept = asked.clone();
        let (creates, may_create) = watch::channel(true);
        let app = Router::new().fallback(move |request: Request<Body>| {
            let (kept, mut may_create) = (kept.clone(), may_create.clone());
            async move {
                let (parts, body) = request.into_parts();
                let path = parts.uri.path().to_owned();
                let bytes = to_bytes(body, 1 << 20).await.unwrap_or_default();
                let body = serde_json::from_slice(&bytes).unwrap_or_default();
                let authorization = parts.headers.get("authorization").and_then(|value| value.to_str().ok());
                let authorization = authorization.unwrap_or_default().to_owned();
                let is_api = path.starts_with("/twirp/") || path == "/tokens";
                let is_create = path.ends_with("/CreateRoom");
                kept.lock().push((path, body, authorization));
                if is_create {
                    let _ = may_create.wait_for(|may| *may).await;
                }
                let status = if is_api { status } else { 401 };
                (StatusCode::from_u16(status).expect("a status"), answer)
            }
        });
        #[expect(clippy::disallowed_methods, reason = "it ends with the test")]
        drop(tokio::spawn(async move { axum::serve(listener, app).await }));
        Rooms { base, asked, creates }
    }

    /// The requests to the API: the last part of the path, the body, the credentials.
    fn requests(&self) -> Vec<(String, Value, String)> {
        let asked = self.asked.lock().clone();
        let api = asked.into_iter().filter(|(path, ..)| path.starts_with("/twirp/") || path == "/tokens");
        api.map(|(path, body, key)| (path.rsplit('/').next().unwrap_or_default().to_owned(), body, key)).collect()
    }

    /// The same, once the room was removed.
    async fn until_removed(&self) -> Vec<(String, Value, String)> {
        self.until_asked("DeleteRoom").await
    }

    /// Returns the requests up to the first of this method.
    async fn until_asked(&self, wanted: &str) -> Vec<(String, Value, String)> {
        let asked = async {
            while !self.requests().iter().any(|(method, ..)| method == wanted) {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, asked).await.unwrap_or_else(|_| panic!("{:?}", self.requests()));
        self.requests()
    }

    /// Returns host and port of the server.
    fn place(&self) -> &str {
        self.base.trim_start_matches("http://")
    }

    fn settings(&self) -> Value {
        json!({ "P1_url": self.base.replace("http", "ws"), "P1_api_key": KEY, "P1_api_secret": SECRET })
    }
}

/// Returns the claims of a token as the official library reads them.
async fn read_token(token: &str) -> Value {
    let mut command = python("tokens.py", &[token, KEY, SECRET]);
    let output = timeout(PATIENCE, command.stderr(Stdio::piped()).output()).await.expect("in time").expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[tokio::test]
async fn the_official_library_reads_our_tokens() {
    let key = RoomKey { key: KEY.into(), secret: Secret::new(SECRET.into()) };
    let visit = Visit {
        room: "svc-17-0000abcd".into(),
        identity: "dh-17".into(),
        name: "Zoë \"Z\"".into(),
        metadata: json!({ "tenant": 42 }).to_string(),
        attributes: Map::from_iter([("simulation_result_id".to_owned(), json!("17"))]),
        agent_name: "desk".into(),
        job_metadata: json!({ "simulation_result_id": "17" }).to_string(),
        is_agent: false,
    };
    let claims = read_token(join_token(&key, &visit, Clock::Real.now_ms()).expose()).await;
    let expect = json!({
        "identity": "dh-17",
        "name": "Zoë \"Z\"",
        "metadata": "{\"tenant\":42}",
        "attributes": { "simulation_result_id": "17" },
        "room": "svc-17-0000abcd",
        "grants": { "roomJoin": true, "room": "svc-17-0000abcd", "canPublish": true, "canSubscribe": true,
                    "canPublishData": true },
        "agents": [["desk", "{\"simulation_result_id\":\"17\"}"]],
        "lasts_s": 3600,
    });
    assert_eq!(claims, expect);
}

/// A run of one call to an agent in a room. Returns the id of its result, and the result.
async fn run(house: &House, agent: Value, stored: Value, human: Value, run: Value) -> (String, Value) {
    let id = queue(house, agent, stored, human, run).await;
    house.events(&id).await;
    let result = house.result(&id).await;
    (id, result)
}

/// Queues a run of one call to an agent in a room. Returns the id of its result.
async fn queue(house: &House, agent: Value, stored: Value, human: Value, run: Value) -> String {
    house.call("PATCH", "/v1/integrations", stored).await;
    let agent = with(json!({ "name": "Desk", "connection_type": "P1" }), agent);
    let agent = house.post("/v1/add-agent", agent).await["agent_id"].to_string();
    let body = json!({ "agent_id": agent, "max_call_duration": 5, "max_call_duration_units": "seconds" });
    let simulation = house.post("/v1/create-simulation", body).await["simulation_id"].clone();
    let human = with(json!({ "intent": "Book a table." }), human);
    house.post("/v1/create-digital-human", json!({ "digital_human": human, "simulation_ids": [simulation] })).await;
    let body = with(json!({ "simulation_id": simulation.to_string() }), run);
    let queued = house.post("/v1/queue-simulation-run", body).await;
    queued["simulation_result_ids"][0].as_str().expect("an id").to_owned()
}

/// Requests to the API of a room server, once it has been asked for the last of these methods.
async fn requests_up_to(server: &RoomServer, last: &str) -> Vec<(String, Value)> {
    let asked = async {
        while !lock(&server.room.api).iter().any(|(method, _)| method == last) {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, asked).await.unwrap_or_else(|_| panic!("{:?}", lock(&server.room.api)));
    lock(&server.room.api).clone()
}

/// A whole call: the server takes the token that was signed here, the agent is met in the room, and sent out at the
/// end.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_in_a_room_of_its_own() {
    let (server, house) = (RoomServer::start().await, House::understanding("Good morning.").await);
    let official = official(&server, "agent-1", &["--seconds", "2"]).await;
    let stored = json!({ "P1_url": server.url, "P1_api_key": KEY, "P1_api_secret": SECRET });
    let agent = json!({ "P1_agent_name": "desk", "P1_customer_tool_topic": "tools" });
    let (id, result) = run(&house, agent, stored, json!({ "name": "Ada" }), json!({})).await;
    assert_eq!((&result["status"], &result["error_code"]), (&json!("COMPLETED"), &Value::Null), "{result}");
    let metadata = &result["metadata"];
    assert_eq!(metadata["transport"], "WebRTC, UDP/TLS/RTP/SAVPF", "{metadata}");
    let asked = requests_up_to(&server, "DeleteRoom").await;
    let methods: Vec<&str> = asked.iter().map(|(method, _)| method.as_str()).collect();
    assert_eq!(methods, ["CreateRoom", "DeleteRoom"]);
    assert_eq!((&asked[0].1["name"], &asked[1].1["room"]), (&metadata["room"], &metadata["room"]));
    let seen = official.look().await;
    assert_eq!(seen["participants"], json!([format!("dh-{id}")]), "{seen}");
    house.stop().await;
}

/// A call that is taken back while its agent is waited for leaves no room behind.
#[tokio::test(flavor = "multi_thread")]
async fn a_room_of_a_cancelled_call_is_removed() {
    let (server, house) = (RoomServer::start().await, House::new().await);
    let stored = json!({ "P1_url": server.url, "P1_api_key": KEY, "P1_api_secret": SECRET });
    let id = queue(&house, json!({}), stored, json!({}), json!({})).await;
    let joined = async {
        while server.room.joins.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, joined).await.expect("the room is joined");
    let run = house.result(&id).await["simulation_run_id"].to_string();
    house.post(&format!("/v1/simulation-run/{}/cancel", run.trim_matches('"')), Value::Null).await;
    requests_up_to(&server, "DeleteRoom").await;
    assert_eq!(house.result(&id).await["status"], "CANCELLED");
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_is_created_for_a_run_and_removed_after_it() {
    let (rooms, house) = (Rooms::start(200, "{}").await, House::new().await);
    let agent = json!({ "P1_agent_name": "desk", "P1_metadata": { "from": "agent" } });
    let facts = json!([{ "trait_name": "size", "trait_data_type": "NUMBER", "value": 2 }]);
    let human = json!({ "name": "Ada", "traits": facts, "P1_metadata": { "from": "human" } });
    let (id, result) = run(&house, agent, rooms.settings(), human, json!({ "P1_agent_name": "night" })).await;
    // Nobody can be in the rooms of this server.
    assert_eq!(result["status"], "NO_CONNECTION", "{result}");
    let asked = rooms.until_removed().await;
    let methods: Vec<&str> = asked.iter().map(|(method, ..)| method.as_str()).collect();
    assert_eq!(methods, ["CreateRoom", "DeleteRoom"]);
    let (_, create, token) = &asked[0];
    let name = create["name"].as_str().expect("a name");
    let draw = name.strip_prefix(&format!("svc-{id}-")).expect("it begins with the result");
    assert!(draw.len() == 8 && draw.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
    assert_eq!(create["metadata"], r#"{"from":"human"}"#);
    let job: Value = serde_json::from_str(create["agents"][0]["metadata"].as_str().expect("a text")).expect("JSON");
    assert_eq!(create["agents"][0]["agent_name"], "night");
    assert_eq!(job, json!({ "from": "human", "X-Simulation-Result-Id": id, "simulation_result_id": id }));
    let claims = read_token(token.strip_prefix("Bearer ").expect("a token")).await;
    assert_eq!(
        (&claims["room"], &claims["grants"]),
        (&json!(name), &json!({ "roomCreate": true, "roomAdmin": true, "room": name }))
    );
    assert_eq!(asked[1].1, json!({ "room": name }));
    assert!(!result.to_string().contains(SECRET), "{result}");
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_becomes_of_rooms_that_cannot_be_opened() {
    let house = House::new().await;
    let failed = "P1_SESSION_SETUP_FAILED";
    let denied = r#"{"code":"unauthenticated","msg":"invalid API key"}"#;
    let refused = "it answered 401 (unauthenticated): are P1_api_key and P1_api_secret \
                   (of a suite: RINGER_ROOM_KEY and RINGER_ROOM_SECRET) those of this server?";
    for (status, answer, code, owner, why) in
        [(401, denied, "P1_AUTH_FAILED", "agent_owner", refused), (404, "", failed, "provider", "it answered 404")]
    {
        let rooms = Rooms::start(status, answer).await;
        let why = format!("CreateRoom at the room server {}: {why}", rooms.place());
        let (_, result) = run(&house, json!({}), rooms.settings(), json!({}), json!({})).await;
        let outcome = (&result["status"], &result["error_code"], &result["error_owner"], &result["error_message"]);
        assert_eq!(outcome, (&json!("NO_CONNECTION"), &json!(code), &json!(owner), &json!(why)), "{result}");
        let methods: Vec<String> = rooms.requests().into_iter().map(|(method, ..)| method).collect();
        assert_eq!(methods, ["CreateRoom"], "nothing is there to be removed");
    }
    let (_, result) = run(&house, json!({}), json!({ "P1_api_secret": null }), json!({}), json!({})).await;
    let stored = (&result["status"], &result["error_code"], &result["error_owner"], &result["error_message"]);
    let why = "P1_api_secret or P1_token_webhook_url is not set";
    let expect = (&json!("NO_CONNECTION"), &json!("MISSING_P1_INTEGRATION"), &json!("agent_owner"), &json!(why));
    assert_eq!(stored, expect, "{result}");
    let (status, _) = house.ask("PATCH", "/v1/integrations", json!({ "P1_url": "rooms.example" })).await;
    assert_eq!(status, 400);
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_of_an_agent_hands_out_tokens() {
    let house = House::new().await;
    let agent = |rooms: &Rooms| {
        json!({ "P1_agent_name": "desk", "P1_token_webhook_url": format!("{}/tokens", rooms.base),
            "P1_token_webhook_auth": "Basic hidden" })
    };
    let rooms = Rooms::start(403, "").await;
    let (_, result) = run(&house, agent(&rooms), json!({}), json!({}), json!({})).await;
    let outcome = (&result["error_code"], &result["error_owner"], &result["error_message"]);
    let why = "P1_token_webhook_url: it answered 403";
    assert_eq!(outcome, (&json!("P1_SESSION_SETUP_FAILED"), &json!("provider"), &json!(why)), "{result}");
    // The room server that it names refuses the token.
    let other = Rooms::start(200, "{}").await;
    let answer = json!({ "server_url": other.base.replace("http", "ws"), "participant_token": "a.b.c" }).to_string();
    let rooms = Rooms::start(200, answer.leak()).await;
    let (id, result) = run(&house, agent(&rooms), json!({}), json!({ "name": "Ada" }), json!({})).await;
    assert_eq!(result["status"], "NO_CONNECTION", "{result}");
    let why = format!("the room server at {} refuses the token (401", other.place());
    let message = result["error_message"].as_str().unwrap_or_default();
    let question = "is the token of P1_token_webhook_url (of a suite: RINGER_ROOM_TOKEN, or RINGER_ROOM_KEY and \
                    RINGER_ROOM_SECRET) one of this server?";
    assert!(message.contains(&why) && message.ends_with(question), "{message}");
    let asked = rooms.requests();
    let [(_, body, authorization)] = &asked[..] else { panic!("{asked:?}") };
    let known = (authorization.as_str(), &body["participant_identity"], &body["participant_name"]);
    assert_eq!(known, ("Basic hidden", &json!(format!("dh-{id}")), &json!("Ada")));
    assert_eq!(body["participant_attributes"]["simulation_result_id"], json!(id));
    assert_eq!(body["room_config"]["agents"][0]["agent_name"], "desk");
    assert!(other.requests().is_empty(), "who creates the room removes it: {:?}", other.requests());
    house.stop().await;
}

/// The room is created and removed, though nobody can be in it; and no secret is printed.
#[tokio::test(flavor = "multi_thread")]
async fn the_program_opens_a_room_of_its_own() {
    let rooms = Rooms::start(200, "{}").await;
    let to = format!("room:{}", rooms.base.replace("http", "ws"));
    let call = |args: &[&str], with_key: bool| {
        let mut command = ringer(&["call", &to]);
        command.args(args).stderr(Stdio::piped());
        if with_key {
            command.env("RINGER_ROOM_KEY", KEY).env("RINGER_ROOM_SECRET", SECRET);
        }
        async move { timeout(PATIENCE, command.output()).await.expect("in time").expect("it was built") }
    };
    let output = call(&["--agent-name", "desk", "--metadata", r#"{"a":1}"#], true).await;
    let printed = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(4), "{printed}");
    assert!(!printed.contains(SECRET), "{printed}");
    let asked = rooms.until_removed().await;
    let methods: Vec<&str> = asked.iter().map(|(method, ..)| method.as_str()).collect();
    assert_eq!(methods, ["CreateRoom", "DeleteRoom"], "{printed}");
    let agents = json!([{ "agent_name": "desk", "metadata": r#"{"a":1}"# }]);
    assert_eq!((&asked[0].1["metadata"], &asked[0].1["agents"]), (&json!(r#"{"a":1}"#), &agents));
    for (args, with_key, why) in [
        (&[][..], false, "a room needs RINGER_ROOM_KEY and RINGER_ROOM_SECRET, or RINGER_ROOM_TOKEN"),
        (&["--metadata", "[]"], true, "it is no JSON object"),
    ] {
        let output = call(args, with_key).await;
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && printed.contains(why), "{printed}");
    }
    let refusing = Rooms::start(401, r#"{"code":"unauthenticated"}"#).await;
    let mut command = ringer(&["call", &format!("room:{}", refusing.base), "--json"]);
    command.env("RINGER_ROOM_KEY", KEY).env("RINGER_ROOM_SECRET", SECRET).stderr(Stdio::piped());
    let output = timeout(PATIENCE, command.output()).await.expect("in time").expect("it was built");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let question = "are RINGER_ROOM_KEY and RINGER_ROOM_SECRET those of this server?";
    let refused = "it answered 401 (unauthenticated)";
    let why = format!("CreateRoom at the room server {}: {refused}: {question}", refusing.place());
    assert!(printed.contains(&why), "{printed}");
}

/// A program that is told to end while its room is being created removes it, whether the room server answers by then or
/// not.
#[tokio::test(flavor = "multi_thread")]
async fn the_program_removes_a_room_that_is_being_created() {
    for answers in [true, false] {
        let rooms = Rooms::start(200, "{}").await;
        rooms.creates.send_replace(false);
        let to = format!("room:{}", rooms.base);
        let mut command = ringer(&["call", &to, "--json"]);
        command.env("RINGER_ROOM_KEY", KEY).env("RINGER_ROOM_SECRET", SECRET).stderr(Stdio::null());
        let mut caller = Program::start(&mut command);
        rooms.until_asked("CreateRoom").await;
        let pid = caller.child.id().expect("it runs") as i32;
        // SAFETY: a signal to a child of this test.
        unsafe { libc::kill(pid, libc::SIGINT) };
        if answers {
            rooms.creates.send_replace(true);
        }
        let asked = rooms.until_removed().await;
        let methods: Vec<&str> = asked.iter().map(|(method, ..)| method.as_str()).collect();
        assert_eq!((methods, &asked[1].1["room"]), (vec!["CreateRoom", "DeleteRoom"], &asked[0].1["name"]));
        let code = caller.wait_for_end().await.code();
        // An answer may be seen before the signal: the call then goes to the media server, which nobody is here.
        assert!(code == Some(1) || answers && code == Some(4), "{code:?}");
    }
}

/// Addresses that a token server or a pipeline hands out are judged like all others: nothing is asked there.
#[tokio::test(flavor = "multi_thread")]
async fn a_room_at_a_forbidden_address_is_not_joined_whoever_names_it() {
    // Never allowed, in three spellings.
    for host in ["169.254.169.254", "[::ffff:169.254.169.254]", "0xa9fea9fe"] {
        let url = format!("ws://{host}:7880");
        let tokens =
            serve(fixed_answer(200, json!({ "server_url": url, "participant_token": "a.b.c" }).to_string())).await;
        let start = serve(fixed_answer(200, json!({ "url": url, "token": "a.b.c" }).to_string())).await;
        let house = House::with_trunks(&format!("[p2]\nstart_url = '{start}'\n")).await;
        let by_tokens = json!({ "P1_agent_name": "desk", "P1_token_webhook_url": format!("{tokens}/tokens") });
        let by_start = json!({ "connection_type": "P2", "P2_agent_name": "desk" });
        for (agent, stored) in [(by_tokens, json!({})), (by_start, json!({ "P2_base_url": start }))] {
            let (_, result) = run(&house, agent, stored, json!({}), json!({})).await;
            assert_eq!(result["status"], "NO_CONNECTION", "{result}");
            let why = result["error_message"].as_str().unwrap_or_default();
            assert!(why.contains("not allowed"), "{host}: {result}");
        }
        let (status, _) = house.ask("PATCH", "/v1/integrations", json!({ "P1_url": url })).await;
        assert_eq!(status, 400, "{host}");
        house.stop().await;
    }
}

/// A start request may hand out a media room in place of a base address: the call is held there, and nobody makes an
/// offer.
#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_that_hands_out_a_room_is_met_there() {
    let rooms = Rooms::start(200, "{}").await;
    let answer = json!({ "url": rooms.base.replace("http", "ws"), "token": "a.b.c" }).to_string();
    let base = serve(fixed_answer(200, answer)).await;
    let house = House::with_trunks(&format!("[p2]\nstart_url = '{base}'\n")).await;
    let agent = json!({ "connection_type": "P2", "P2_agent_name": "desk" });
    let (_, result) = run(&house, agent, json!({ "P2_base_url": base }), json!({}), json!({})).await;
    assert_eq!(result["status"], "NO_CONNECTION", "nobody can be in this room: {result}");
    let code = result["error_code"].as_str().expect("a code");
    assert!(code != "CONNECTION_NOT_SUPPORTED" && !code.starts_with("P2_"), "{result}");
    assert!(rooms.requests().is_empty(), "who made the room removes it: {:?}", rooms.requests());
    house.stop().await;
}
