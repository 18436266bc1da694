//! Users: whose keys made and changed something.

use serde_json::{Value, json};

use super::world::World;

async fn send(world: &World, method: &str, path: &str, key: &str, body: Value) -> Value {
    let headers = [("x-api-key".to_owned(), key.to_owned())];
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let answer = world.send(method, path, &headers, body).await;
    assert_eq!(answer.status, 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
    answer.json()
}

#[tokio::test]
async fn what_a_key_makes_is_its_users() {
    let world = World::new().await;
    let make = async |user: Value| {
        let body = json!({ "scope": "write", "name": "laptop", "user": user });
        send(&world, "POST", "/v1/api-keys", "$admin", body).await
    };
    let (first, second, nobodys) = (make(json!("Ann")).await, make(json!(" Ann ")).await, make(Value::Null).await);
    let ann = &first["user_id"];
    assert!(ann.is_string() && second["user_id"] == *ann && nobodys["user_id"].is_null(), "{second} {nobodys}");
    let text = |key: &Value| key["api_key"].as_str().expect("a key").to_owned();
    let made = send(&world, "POST", "/v1/add-agent", &text(&first), json!({ "name": "Desk" })).await;
    let agent = made["agent_id"].to_string();
    let simulation = json!({ "agent_id": agent, "name": "Booking" });
    let simulation = send(&world, "POST", "/v1/create-simulation", &text(&first), simulation).await;
    let path = format!("/v1/simulation/{}", simulation["simulation_id"]);
    let read = send(&world, "GET", &path, "$read", Value::Null).await;
    let read = read.get("simulation").unwrap_or(&read).clone();
    assert_eq!((&read["created_by"], &read["updated_by"]), (ann, ann), "{read}");
    let users = send(&world, "GET", "/v1/users", "$read", Value::Null).await;
    let name = |id: &Value| {
        let found = users.as_array().expect("a list").iter().find(|user| user["id"] == *id);
        found.map(|user| user["name"].clone())
    };
    assert_eq!((name(ann), name(&nobodys["id"])), (Some(json!("Ann")), Some(json!("laptop"))), "{users}");
    let foreign = send(&world, "GET", "/v1/users", "$foreign", Value::Null).await;
    assert!(!foreign.to_string().contains("Ann"), "{foreign}");
    let refused = json!({ "scope": "write", "user": " " }).to_string().into_bytes();
    let headers = [("x-api-key".to_owned(), "$admin".to_owned())];
    assert_eq!(world.send("POST", "/v1/api-keys", &headers, refused).await.status, 400);
}
