//! Phone numbers: from the pool, registered, given back.

use serde_json::{Value, json};

use super::world::World;
use crate::store::dials::with_trunks;

/// Returns a world with a pool of two numbers and one that is registered.
pub(super) async fn with_pool() -> World {
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
        "purchase_date": "2026-01-05", "price": 150, "organization_id": organization, "trunk": null,
    });
    assert_eq!(*record, expect);
    let registered = &listed[1];
    assert_eq!(registered["phone_number"], "+49301234567");
    assert_eq!((&registered["purchase_date"], &registered["price"]), (&Value::Null, &Value::Null));
    let added = world.post("/v1/phone-numbers/add", json!({ "phone_number": "+49 30 7654321" })).await;
    let expect = json!({
        "phone_number": "+49307654321", "carrier_sid": "", "organization_id": organization, "purchase_date": null,
        "price": null, "trunk": null, "warnings": [
            "No trunk carries +49307654321: calls cannot be made from it, and none comes in to it by a trunk. A trunk carries \
             the numbers of sip.trunks.NAME.numbers, and those that begin as sip.trunks.NAME.carries",
        ],
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
            "id": id, "created_at": "2026-01-05T09:00:00.000000Z", "phone_number": number, "purchase_date": null,
            "price": null, "organization_id": organization, "trunk": "near",
        })
    };
    let (first, second) = (configured("+14155550100", 1_000_000_001), configured("+12125550101", 1_000_000_002));
    assert_eq!(world.get("/v1/phone-numbers").await, json!([first, second]));
    // They are the same at every look, whenever that is, and for everybody.
    world.service.clock().advance_ms(3_600_000);
    assert_eq!(world.get("/v1/phone-numbers").await, json!([first, second]));
    let foreign = [("x-api-key".to_owned(), "$foreign".to_owned())];
    let seen = world.send("GET", "/v1/phone-numbers", &foreign, Vec::new()).await.json();
    assert_eq!((&seen[1]["id"], &seen[1]["created_at"]), (&second["id"], &second["created_at"]));
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

/// A number of a trunk's block, and one of the pool, are told with the trunk that carries them.
#[tokio::test]
async fn a_number_is_told_with_the_trunk_that_carries_it() {
    let world = World::with_rows_and(|settings| {
        let file = "[sip.trunks.near]\nhost = 'h'\nnumbers = ['+14155550100']\n[sip.trunks.block]\nhost = 'h'\n\
                    carries = ['+1 212 555', '+44']";
        *settings = with_trunks(settings, file);
        settings.number_pool = vec!["+442012345678".into()];
    })
    .await;
    let taken = world.post("/v1/phone-numbers/add", json!({})).await;
    let told = (&taken["phone_number"], &taken["trunk"], &taken["warnings"]);
    assert_eq!(told, (&json!("+442012345678"), &json!("block"), &json!([])));
    let added = world.post("/v1/phone-numbers/add", json!({ "phone_number": "+1 212 555 0101" })).await;
    assert_eq!((&added["trunk"], &added["warnings"]), (&json!("block"), &json!([])));
    let uncarried = world.post("/v1/phone-numbers/add", json!({ "phone_number": "+4930123456" })).await;
    assert_eq!(uncarried["trunk"], Value::Null);
    let why = uncarried["warnings"][0].as_str().expect("a warning");
    assert!(why.starts_with("No trunk carries +4930123456: calls cannot be made from it"), "{why}");
    let listed = world.get("/v1/phone-numbers").await;
    let listed: Vec<_> =
        listed.as_array().expect("a list").iter().map(|one| [&one["phone_number"], &one["trunk"]]).collect();
    let expect =
        json!(
            [["+4930123456", null], ["+12125550101", "block"], ["+442012345678", "block"], ["+14155550100", "near"],]
        );
    assert_eq!(json!(listed), expect);
    // Who may not manage the engine takes no number of a trunk that others may call from.
    let writes = [("x-api-key".to_owned(), "$write".to_owned())];
    let body = json!({ "phone_number": "+12125550102" }).to_string().into_bytes();
    let refused = world.send("POST", "/v1/phone-numbers/add", &writes, body).await;
    let why = "A number of sip.trunks.block.carries is registered with a key of scope admin";
    assert_eq!((refused.status, refused.json()["detail"].clone()), (403, json!(why)));
    // A Digital Human is told what it cannot do with its number.
    let warnings = async |number: &str| {
        let human = json!({ "digital_human": { "name": "Ann", "phone_number": number } });
        world.post("/v1/create-digital-human", human).await["warnings"][0].clone()
    };
    assert_eq!(warnings("+12125550101").await, Value::Null);
    for (number, part) in [("+4930123456", "no trunk carries"), ("+12125550103", "has to be added before")] {
        let warning = warnings(number).await;
        assert!(warning.as_str().is_some_and(|text| text.contains(part)), "{number}: {warning}");
    }
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
