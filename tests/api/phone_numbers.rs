//! Phone numbers: from the pool, registered, given back.

use serde_json::{Value, json};

use super::world::World;
use crate::store::dials::with_trunks;

/// Returns a world with a pool of two numbers and one that is registered.
pub async fn with_pool() -> World {
    let world = World::with_rows_and(|settings| {
        settings.number_pool = vec!["+14155550100".into(), "+12125550101".into()];
        settings.number_price = 150;
    })
    .await;
    world.post("/v1/phone-numbers/add", json!({ "phone_number": "+49 30 1234567" })).await;
    world
}

#[tokio::test]
async fn numbers_come_from_the_pool_and_go_back() {
    let world = with_pool().await;
    let organization = world.name("organization").to_owned();
    let added = world.post("/v1/phone-numbers/add", json!({ "area_code": "212" })).await;
    for (field, expect) in [
        ("phone_number", json!("+12125550101")),
        ("organization_id", json!(organization)),
        ("purchase_date", json!("2026-01-05")),
        ("price", json!(150)),
    ] {
        assert_eq!(added.get(field), Some(&expect), "{field}");
    }
    assert_eq!(added["carrier_sid"], "", "no carrier has told");
    let listed = world.get("/v1/phone-numbers").await;
    let record = &listed.as_array().expect("a list")[0];
    let expect = json!({
        "id": record["id"], "created_at": "2026-01-05T09:00:00.000000Z", "phone_number": "+12125550101",
        "purchase_date": "2026-01-05", "price": 150, "organization_id": organization,
    });
    assert_eq!(*record, expect);
    let registered = &listed[1];
    assert_eq!(registered["phone_number"], "+49301234567");
    assert_eq!((&registered["purchase_date"], &registered["price"]), (&Value::Null, &Value::Null));
    let added = world.post("/v1/phone-numbers/add", json!({ "phone_number": "+49 30 7654321" })).await;
    let expect = json!({
        "phone_number": "+49307654321", "carrier_sid": "", "organization_id": organization, "purchase_date": null,
        "price": null,
    });
    assert_eq!(added, expect, "who registers a number tells nothing but the number");
    let none = async |body: Value| {
        let answer = world.send("POST", "/v1/phone-numbers/add", &[], body.to_string().into_bytes()).await;
        (answer.status, answer.json()["detail"].clone())
    };
    assert_eq!(none(json!({ "area_code": "212" })).await, (409, json!("No phone number available")));
    world.post("/v1/phone-numbers/add", json!({})).await;
    assert_eq!(none(json!({})).await, (409, json!("No phone number available")));

    let released = world.call("DELETE", "/v1/phone-numbers/+12125550101/release", Value::Null).await;
    assert_eq!(released, json!({ "phone_number": "+12125550101", "released": true }));
    world.post("/v1/phone-numbers/add", json!({ "area_code": "212" })).await;
    let human = json!({ "digital_human": { "phone_number": "+12125550101" } });
    world.post("/v1/create-digital-human", human).await;
    let answer = world.send("DELETE", "/v1/phone-numbers/+12125550101/release", &[], Vec::new()).await;
    assert_eq!((answer.status, answer.json()["detail"].clone()), (409, json!("Phone number is in use")));
}

#[tokio::test]
async fn numbers_of_trunks_are_listed_and_stay() {
    let world = World::with_rows_and(|settings| {
        let file =
            "[sip.trunks.near]\nhost = 'h'\nnumbers = ['+14155550100', '+12125550101']\nallowed_prefixes = ['+1']";
        *settings = with_trunks(settings, file);
    })
    .await;
    let organization = world.name("organization").to_owned();
    let configured = |number: &str, id: i64| {
        json!({
            "id": id, "created_at": "1970-01-01T00:00:00.000000Z", "phone_number": number, "purchase_date": null,
            "price": null, "organization_id": organization,
        })
    };
    let (first, second) = (configured("+14155550100", -14_155_550_100), configured("+12125550101", -12_125_550_101));
    assert_eq!(world.get("/v1/phone-numbers").await, json!([first, second]));
    let release = async |number: &str| {
        let answer = world.send("DELETE", &format!("/v1/phone-numbers/{number}/release"), &[], Vec::new()).await;
        (answer.status, answer.json()["detail"].clone())
    };
    let refused = "Phone number is set up in sip.trunks.near.numbers";
    assert_eq!(release("+14155550100").await, (409, json!(refused)));
    assert_eq!(release("+13105550100").await, (404, json!("Phone number not found")));
    // One that is registered is listed once, and can be given back.
    world.post("/v1/phone-numbers/add", json!({ "phone_number": "+14155550100" })).await;
    let listed = world.get("/v1/phone-numbers").await;
    assert_eq!((&listed[0]["phone_number"], &listed[1]), (&json!("+14155550100"), &second));
    assert!(listed[0]["id"].as_i64().is_some_and(|id| id > 0) && listed.as_array().is_some_and(|all| all.len() == 2));
    assert_eq!(release("+14155550100").await.0, 200);
    assert_eq!(world.get("/v1/phone-numbers").await, json!([first, second]));
}

/// A number that an organization has registered is nobody else's to listen on, to call from or to text with.
#[tokio::test]
async fn a_number_of_another_organization_is_not_used() {
    let world = World::with_rows().await;
    let foreign = [("x-api-key".to_owned(), "$foreign".to_owned())];
    let body = json!({ "phone_number": "+14155550100" }).to_string().into_bytes();
    assert_eq!(world.send("POST", "/v1/phone-numbers/add", &foreign, body).await.status, 200);
    let step = json!([{ "step": 1, "intent": "Ask.", "phone_number": "+14155550100" }]);
    for (field, value) in [
        ("phone_number", json!("+14155550100")),
        ("outbound_text_number", json!("+14155550100")),
        ("journey_steps", step),
    ] {
        let body = json!({ "digital_human": { "name": "Ann", field: value } });
        let answer = world.send("POST", "/v1/create-digital-human", &[], body.to_string().into_bytes()).await;
        assert_eq!(answer.status, 409, "{field}: {}", String::from_utf8_lossy(&answer.body));
        let detail = answer.json()["detail"].as_str().unwrap_or_default().to_owned();
        assert!(detail.starts_with(field) && detail.ends_with("belongs to another organization"), "{detail}");
    }
    let path = format!("/v1/update-digital-human/{}", world.name("digital_human"));
    let body = json!({ "phone_number": "+14155550100" });
    let changed = world.send("PUT", &path, &[], body.to_string().into_bytes()).await;
    assert!(changed.status == 409, "{} {}", changed.status, String::from_utf8_lossy(&changed.body));
    // A number that another one listens on is not taken over by registering it.
    let body = json!({ "always_on": true, "agent_id": "$agent", "name": "On" });
    let simulation = world.post("/v1/create-simulation", body).await["simulation_id"].clone();
    let human =
        json!({ "name": "Bea", "phone_number": "+14155550101", "always_on_mode": true, "always_on_active": true });
    world.post("/v1/create-digital-human", json!({ "digital_human": human, "simulation_id": simulation })).await;
    let body = json!({ "phone_number": "+14155550101" }).to_string().into_bytes();
    let refused = world.send("POST", "/v1/phone-numbers/add", &foreign, body).await;
    assert_eq!(
        (refused.status, refused.json()["detail"].clone()),
        (409, json!("Phone number is in use by another organization"))
    );
}
