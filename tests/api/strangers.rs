//! Ids of one organization with the key of another, wherever an id can stand: nothing is told, nothing changes, and the
//! answer is that of an id that nobody has.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use regex_lite::Regex;
use ringer::api::{Rates, Setup};
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use uuid::Uuid;

use super::generated::every_request;
use super::places::{self, HOLE, Place};
use super::rows::{Form, Rows, form_of};
use super::world::World;

/// Word in every text of the rows that must not be seen.
const MARK: &str = "zanzibar";
/// Word in the requests of strangers.
const STRANGER: &str = "stranger";

/// Time limit of an answer on a busy machine; streams of events must end too.
const PATIENCE: Duration = Duration::from_secs(30);
/// Places that the document has at least.
const LEAST_PLACES: usize = 400;
/// Least number of places where an own id is answered in another way than one that nobody has.
const LEAST_ALIVE: usize = 150;

/// A place gets one id of this many, of kinds that it does not ask for.
const TURNS: usize = 4;

/// Fields whose values are drawn.
const DRAWN: [&str; 5] = ["api_key", "http_webhook_key", "seed", "signing_key", "P11_inbound_token"];

/// Kinds of id in paths: words of the path before the parameter, the parameter, and the kind.
const NAMED: [(&str, &str, &str); 13] = [
    ("", "{agent_id}", "agent"),
    ("", "{simulation_id}", "simulation"),
    ("", "{digital_human_id}", "digital_human"),
    ("", "{metric_id}", "metric"),
    ("", "{workflow_id}", "scenario"),
    ("", "{persona_id}", "persona"),
    ("", "{trait_id}", "trait"),
    ("", "{webhook_id}", "webhook"),
    ("", "{schedule_id}", "schedule"),
    ("community/", "{id}", "community"),
    ("-community/", "{id}", "community"),
    ("community/", "{community_id}", "community"),
    ("-community/", "{community_id}", "community"),
];

/// Returns the path with ids of the first organization; `None`: the world has no such row.
fn fill(world: &World, path: &str) -> Option<String> {
    let mut path = path.to_owned();
    for (before, parameter, row) in NAMED {
        path = path.replace(&format!("{before}{parameter}"), &format!("{before}{}", world.name(row)));
    }
    // Resources below an agent are not asked for when the agent is not there.
    for (parameter, value) in [("{version}", "1"), ("{label_id}", "6a1e0b64-6f0a-4c3b-9a25-0f4f6f7a1c11")] {
        path = path.replace(parameter, value);
    }
    (!path.contains('{')).then_some(path)
}

/// Returns everything that the first organization can read of the rows that paths name.
async fn readable(world: &World, paths: &[(String, String)]) -> Vec<Value> {
    let mut seen = Vec::new();
    for (_, path) in paths.iter().filter(|(method, _)| method == "GET") {
        seen.push(world.send("GET", path, &[], Vec::new()).await.body.into());
    }
    seen
}

#[tokio::test]
async fn nobody_reaches_the_rows_of_another_organization() {
    let world = World::with_rows().await;
    let document = world.get("/openapi.json").await;
    let mut paths = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for method in item.as_object().expect("methods").keys() {
            if path.contains('{')
                && let Some(path) = fill(&world, path)
            {
                paths.push((method.to_uppercase(), path));
            }
        }
    }
    assert!(paths.len() >= 60, "only {} operations name a row of the world", paths.len());
    let before = readable(&world, &paths).await;
    let key = [("x-api-key".to_owned(), "$foreign".to_owned())];
    let mut leaks = Vec::new();
    for (method, path) in &paths {
        for body in ["", "{}"] {
            let answer = world.send(method, path, &key, body.into()).await;
            // A body that is needed and is not there is told before the row is looked for.
            let allowed: &[u16] = match method.as_str() {
                // The agent's own token opens it, and no key does.
                _ if path.ends_with("/inbound-messages") => &[401],
                "GET" | "DELETE" => &[403, 404],
                _ => &[403, 404, 422],
            };
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            let tells = ["Desk", "Booking", "Maria"].iter().any(|name| text.contains(name));
            // Deleting by label asks for the label first.
            let asks = answer.status == 400 && text.contains("label is required");
            if tells || (!allowed.contains(&answer.status) && !asks) {
                leaks.push(format!("{method} {path}: {} {text}", answer.status));
            }
        }
    }
    assert!(leaks.is_empty(), "{} leaks:\n{}", leaks.len(), leaks.join("\n"));
    assert_eq!(before, readable(&world, &paths).await, "something has changed");
}

/// Mapping that makes the answers to two organizations comparable: ids, drawn values and row numbers are replaced.
struct Alike {
    /// Texts and what stands for them.
    names: Vec<(String, String)>,
    uuid: Regex,
    digits: Regex,
}

impl Alike {
    /// Returns the mapping for answers to `rows`, which sent ids of `owner` after `sent` changed them.
    fn of(rows: &Rows, owner: &Rows, sent: impl Fn(&str) -> String) -> Alike {
        // Numbers of rows are too short to be told from others.
        let long = |rows: &Rows| -> Vec<(&'static str, String)> {
            let organization = ("organization", rows.organization.as_str());
            let ids = rows.ids().chain([organization]).filter(|(_, id)| form_of(id) != Form::Integer);
            ids.map(|(kind, id)| (kind, id.to_owned())).collect()
        };
        let theirs = long(owner).into_iter().map(|(kind, id)| (sent(&id), format!("(owner's {kind})")));
        let own = long(rows).into_iter().map(|(kind, id)| (id, format!("({kind})")));
        let uuid = Regex::new("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{64}").expect("it is one");
        let mark = [(rows.mark.clone(), "(mark)".to_owned())];
        Alike { names: theirs.chain(own).chain(mark).collect(), uuid, digits: Regex::new("[0-9]+").expect("it is one") }
    }

    fn text(&self, text: &str) -> String {
        // Archives are filled up to whole blocks.
        let text = text.split('\0').filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
        let text = self.names.iter().fold(text, |text, (id, name)| text.replace(id, name));
        self.digits.replace_all(&self.uuid.replace_all(&text, "(uuid)"), "#").into_owned()
    }

    fn value(&self, name: &str, value: &Value) -> Value {
        let last = name.rsplit('_').next().unwrap_or_default();
        match value {
            _ if DRAWN.contains(&name) && !value.is_null() => "(drawn)".into(),
            Value::Number(_) if ["id", "ids", "agents"].contains(&last) => "#".into(),
            Value::String(text) => self.text(text).into(),
            Value::Array(items) => items.iter().map(|item| self.value(name, item)).collect(),
            Value::Object(members) => {
                let member = |(name, value): (&String, &Value)| (self.text(name), self.value(name, value));
                members.iter().map(member).collect::<Map<String, Value>>().into()
            }
            other => other.clone(),
        }
    }

    fn body(&self, body: &[u8]) -> Value {
        let text = String::from_utf8_lossy(body);
        serde_json::from_str(&text).map_or_else(|_| self.text(&text).into(), |body| self.value("", &body))
    }
}

/// Returns the same without texts and numbers.
fn form(value: &Value) -> Value {
    match value {
        Value::String(_) => "".into(),
        Value::Number(_) => 0.into(),
        Value::Array(items) => items.iter().map(form).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), form(value))).collect::<Map<String, Value>>().into()
        }
        other => other.clone(),
    }
}

/// Returns a text with an organization's own ids where it names their kinds.
fn with_own(text: &str, rows: &Rows) -> String {
    let mut ids: Vec<(&str, &str)> = rows.ids().collect();
    ids.sort_by_key(|(kind, _)| std::cmp::Reverse(kind.len()));
    ids.iter().fold(text.to_owned(), |text, (kind, id)| text.replace(&format!("${kind}"), id))
}

/// Asks as `rows`, with `id` in the place: status and body.
async fn ask(world: &World, rows: &Rows, place: &Place, id: &str) -> (u16, Vec<u8>) {
    let filled = |text: &str| with_own(&text.replace(HOLE, id), rows);
    let body: Value = serde_json::from_str(&filled(&place.body.to_string())).expect("ids are plain texts");
    let header = place.header.as_ref().map(|name| (name.clone(), id.to_owned()));
    let headers: Vec<(String, String)> = header.into_iter().collect();
    let path = filled(&place.path);
    let answer = timeout(PATIENCE, rows.send_with(world, &place.method, &path, &headers, &body)).await;
    let answer = answer.unwrap_or_else(|_| panic!("{} {path} does not end", place.method));
    (answer.status, answer.body)
}

/// Returns an id like this one that nobody has, always the same.
fn twin(id: &str) -> String {
    match form_of(id) {
        Form::Integer => (800_000_000 + id.parse::<i64>().expect("an integer")).to_string(),
        Form::Uuid => Uuid::from_u128(!Uuid::parse_str(id).expect("a uuid").as_u128()).to_string(),
        // Another country's number.
        Form::Text => id.replacen("+49", "+44", 1),
    }
}

/// Returns everything that an organization reads of its rows, by the request.
async fn reads(world: &World, rows: &Rows, places: &[Place]) -> BTreeMap<String, Value> {
    let mut seen = BTreeMap::new();
    let whole = |place: &&Place| place.method == "GET" && place.header.is_some();
    for place in places.iter().filter(whole) {
        let read = Place { header: None, ..place.clone() };
        let (status, body) = ask(world, rows, &read, "").await;
        let body: Value = serde_json::from_slice(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).into());
        seen.insert(place.path.clone(), json!([status, body]));
    }
    seen
}

fn ids_for<'r>(place: &Place, owner: &'r Rows) -> Vec<(&'static str, &'r str)> {
    let organization = ("organization", owner.organization.as_str());
    let takes = |id: &str| place.takes.contains(&form_of(id));
    // A number is an id of some table: of that of the place, when the place has one. Another table may have it too.
    let fits = |kind: &str, id: &str| match place.own {
        Some(own) if form_of(id) == Form::Integer => kind == own || kind.ends_with(&format!("_{own}")),
        _ => true,
    };
    match place.header {
        Some(_) => vec![organization],
        None => owner.ids().chain([organization]).filter(|&(kind, id)| takes(id) && fits(kind, id)).collect(),
    }
}

/// Returns the answer about a Digital Human, the one kind that may be told to be another organization's: nothing of it
/// is shown.
fn mask_allowed(kind: &str, (status, body): (u16, Vec<u8>)) -> (u16, Vec<u8>) {
    if kind != "digital_human" {
        return (status, body);
    }
    let text = String::from_utf8_lossy(&body).into_owned();
    let plain = text.replace("Digital human belongs to a different organization", "Digital human not found");
    (if status == 403 && plain != text { 404 } else { status }, plain.into_bytes())
}

/// Returns the refusal of a number of another organization, where numbers are registered, released and used. That a
/// number is taken is told, and no more.
fn refusal_of_number(kind: &str, place: &Place) -> Option<(u16, Value)> {
    if kind != "phone_number" {
        return None;
    }
    let foreign = "phone_number: the number belongs to another organization";
    let field = place.label.rsplit('.').next().unwrap_or_default().trim_end_matches("[]");
    match (place.method.as_str(), place.path.as_str()) {
        ("POST", path) if path.starts_with("/v1/phone-numbers/") => {
            Some((409, json!({ "detail": "Phone number is already registered" })))
        }
        (_, path) if path.starts_with("/v1/phone-numbers/") => {
            Some((404, json!({ "detail": "Phone number not found" })))
        }
        _ if place.label.contains("journey_steps") => None,
        (_, path) if field != "phone_number" || !path.contains("digital-human") => None,
        ("POST", path) if path.ends_with("/create-digital-humans") => {
            Some((200, json!({ "created": [], "errors": [{ "index": 0, "detail": foreign }] })))
        }
        ("POST" | "PUT", _) => Some((409, json!({ "detail": foreign }))),
        _ => None,
    }
}

/// Puts every id of `owner` in every place, as a stranger; another stranger puts ids that nobody has. What differs is
/// told.
async fn differences(world: &World, owner: &Rows, strangers: [&Rows; 2], places: &[Place]) -> Vec<String> {
    let mine = Alike::of(strangers[0], owner, str::to_owned);
    let theirs = Alike::of(strangers[1], owner, twin);
    let mut leaks = Vec::new();
    for (at, place) in places.iter().enumerate() {
        let ids = ids_for(place, owner).into_iter().enumerate();
        // A place's own kind always; others in turn, unless every request is made.
        let tried = ids.filter(|(turn, (kind, _))| {
            every_request() || place.own == Some(*kind) || (at + turn).is_multiple_of(TURNS)
        });
        for (_, (kind, id)) in tried {
            let case = format!("{} {} {} = {kind}", place.method, place.path, place.label);
            let (status, body) = mask_allowed(kind, ask(world, strangers[0], place, id).await);
            let (text, alike) = (String::from_utf8_lossy(&body), mine.body(&body));
            if let Some(refusal) = refusal_of_number(kind, place) {
                assert_eq!((status, alike), refusal, "{case}");
                continue;
            }
            let (other_status, other_body) = ask(world, strangers[1], place, &twin(id)).await;
            let other = theirs.body(&other_body);
            // People are drawn from the whole request, this text among it: other people of the same form.
            let is_drawn = place.path == "/v1/generate-digital-humans" && place.label == "body.knowledge_base_id";
            let [alike, other] = if is_drawn { [form(&alike), form(&other)] } else { [alike, other] };
            if text.to_lowercase().contains(MARK) {
                leaks.push(format!("{case}: the owner's words are told: {text}"));
            } else if (status, &alike) != (other_status, &other) {
                leaks.push(format!("{case}:\n  it is {status} {alike}\n  nobody's {other_status} {other}"));
            }
            assert_ne!(status, 500, "{case}: {text}");
        }
    }
    leaks
}

/// Labels of the places where some own id is answered in another way than one that nobody has.
async fn alive(world: &World, rows: &Rows, places: &[Place]) -> BTreeSet<String> {
    let mut alive = BTreeSet::new();
    // Deleting requests come last.
    let ends = |place: &Place| place.method == "DELETE" || place.path.contains("delete");
    let ordered = places.iter().filter(|place| !ends(place)).chain(places.iter().filter(|place| ends(place)));
    // A stream about a running conversation does not end.
    for place in ordered.filter(|place| !place.path.ends_with("/events")) {
        for (_, id) in ids_for(place, rows) {
            let label = format!("{} {} {}", place.method, place.path, place.label);
            if alive.contains(&label) {
                break;
            }
            let (nobodys, _) = ask(world, rows, place, &twin(id)).await;
            let (own, _) = ask(world, rows, place, id).await;
            if own != nobodys {
                alive.insert(label);
            }
        }
    }
    alive
}

#[tokio::test]
async fn no_id_of_another_organization_is_more_than_one_that_nobody_has() {
    // This number of requests would be refused, all alike.
    let rates = Rates { generation_per_minute: 0, ..Rates::default() };
    let world = World::with_setup(Setup { rates, ..Setup::default() }).await;
    let owner = Rows::of(&world, MARK, "+4930111111").await;
    let strangers =
        [Rows::of(&world, "quagmire", "+4930222222").await, Rows::of(&world, "marzipan", "+4930333333").await];
    let strangers = [&strangers[0], &strangers[1]];
    let places = places::all(&world.get("/openapi.json").await);
    assert!(places.len() >= LEAST_PLACES, "only {} places", places.len());
    // The first look names what is read as code and has no name there yet.
    reads(&world, &owner, &places).await;
    let before = reads(&world, &owner, &places).await;
    assert!(before.values().filter(|read| read.to_string().contains(MARK)).count() >= 30, "the owner reads its rows");

    let leaks = differences(&world, &owner, strangers, &places).await;
    assert!(leaks.is_empty(), "{} leaks:\n{}", leaks.len(), leaks.join("\n"));
    let after = reads(&world, &owner, &places).await;
    for (path, read) in &before {
        assert_eq!(after.get(path), Some(read), "GET {path}");
    }
    // State kept by strangers must not affect the owner's next conversations, nor the owner's rows theirs.
    for (rows, words) in [(&owner, MARK), (strangers[0], STRANGER), (strangers[1], STRANGER)] {
        rows.end(&world, "open_result", words).await;
        rows.evaluate(&world, words).await;
    }
    let [first, other] = [reads(&world, strangers[0], &places).await, reads(&world, strangers[1], &places).await];
    for (path, read) in &reads(&world, &owner, &places).await {
        assert!(!read.to_string().contains(STRANGER), "GET {path}: {read}");
    }
    let mine = Alike::of(strangers[0], &owner, str::to_owned);
    let theirs = Alike::of(strangers[1], &owner, twin);
    for (path, read) in &first {
        assert!(!read.to_string().contains(MARK), "GET {path}: {read}");
        let (mine, theirs) = (mine.value("", read), theirs.value("", &other[path]));
        assert_eq!(mine, theirs, "GET {path}: what was kept of the owner's ids and of nobody's");
    }

    let alive = alive(&world, &owner, &places).await;
    assert!(alive.len() >= LEAST_ALIVE, "only {} places tell an own id from nobody's: {alive:#?}", alive.len());
}

#[tokio::test]
async fn an_idempotency_key_of_another_organization_replays_nothing() {
    let world = World::new().await;
    let (owner, stranger) =
        (Rows::of(&world, MARK, "+4930111111").await, Rows::of(&world, "quagmire", "+4930222222").await);
    let key = [("idempotency-key".to_owned(), "once".to_owned())];
    let body = json!({ "name": "shared" });
    let mut ids = BTreeSet::new();
    for (rows, replayed) in [(&owner, false), (&stranger, false), (&owner, true)] {
        let answer = rows.send_with(&world, "POST", "/v1/create-folder", &key, &body).await;
        assert_eq!((answer.status, answer.headers.contains_key("idempotency-replayed")), (200, replayed));
        assert_eq!(answer.json()["organization_id"], rows.organization.as_str());
        ids.insert(answer.json()["id"].to_string());
    }
    assert_eq!(ids.len(), 2);
}
