//! Metrics that are made from templates, and lists of metrics by category.

use serde_json::{Value, json};

use super::world::World;

const UNKNOWN: &str = "9f3a1c7e-5b2d-4e88-a4f1-0c7b3d6a9e21";

async fn template(world: &World, name: &str) -> Value {
    let all = world.get("/v1/custom-metric-templates").await;
    let found = all.as_array().expect("a list").iter().find(|template| template["name"] == name);
    found.unwrap_or_else(|| panic!("there is no {name}")).clone()
}

async fn refuse(world: &World, method: &str, path: &str, body: Value) -> (u16, Value) {
    let answer = world.send(method, path, &[], body.to_string().into_bytes()).await;
    (answer.status, answer.json()["detail"].clone())
}

#[tokio::test]
async fn every_template_makes_a_metric() {
    let world = World::new().await;
    let all = world.get("/v1/custom-metric-templates").await;
    let all = all.as_array().expect("a list");
    assert_eq!(all.len(), 30);
    for template in all {
        let made = world.post("/v1/create-custom-metric", json!({ "template_id": template["template_id"] })).await;
        for (field, value) in template.as_object().expect("an object") {
            assert_eq!(&made[field], value, "{field} of {}", template["name"]);
        }
        let same = world.post("/v1/create-custom-metric", template.clone()).await;
        assert_eq!((&same["description"], &same["settings"]), (&made["description"], &made["settings"]));
    }
    let compliance = world.get("/v1/custom-metric-templates?category=compliance").await;
    let compliance = compliance.as_array().expect("a list");
    assert!(compliance.len() >= 5 && compliance.iter().all(|one| one["category"] == "compliance"));
    assert_eq!(world.get("/v1/custom-metric-templates?category=Compliance").await, json!([]));
}

#[tokio::test]
async fn given_fields_win_and_others_come_from_the_template() {
    let world = World::new().await;
    let empathy = template(&world, "Empathy").await;
    let id = empathy["template_id"].clone();
    let mine = json!({ "template_id": id, "name": "Warmth", "max_value": 5, "scoring_guidance": null, "tags": ["a"] });
    let made = world.post("/v1/create-custom-metrics", json!({ "metrics": [mine] })).await["metrics"][0].clone();
    assert_eq!((&made["name"], &made["max_value"], &made["tags"]), (&json!("Warmth"), &json!(5.0), &json!(["a"])));
    for field in ["description", "response_type", "scoring_guidance", "min_value", "category", "template_id"] {
        assert_eq!(made[field], empathy[field], "{field}");
    }
    let create = "/v1/create-custom-metric";
    let broken = json!({ "template_id": id, "max_value": -1 });
    let text = "min_value must be less than max_value";
    assert_eq!(refuse(&world, "POST", create, broken).await, (400, json!(text)));
    let unknown = json!({ "name": "n", "description": "d", "response_type": "yes_no", "template_id": UNKNOWN });
    let text = format!("Unknown template '{UNKNOWN}'");
    assert_eq!(refuse(&world, "POST", create, unknown.clone()).await, (400, json!(text)));
    let several = json!({ "metrics": [{ "template_id": id }, unknown] });
    assert_eq!(refuse(&world, "POST", "/v1/create-custom-metrics", several).await, (400, json!(text)));
    assert_eq!(world.get("/v1/custom-metrics").await["total_count"], 1, "all or none");
    for body in [json!({}), json!({ "template_id": null })] {
        let (status, issues) = refuse(&world, "POST", create, body).await;
        let missing: Vec<&Value> = issues.as_array().expect("a list").iter().map(|issue| &issue["loc"][1]).collect();
        assert_eq!((status, missing), (422, vec![&json!("name"), &json!("description"), &json!("response_type")]));
    }
}

/// A template that was stored before templates were known stays, and cannot be chosen anew.
#[tokio::test]
async fn an_unknown_template_from_before_stays() {
    let world = World::new().await;
    let body = json!({ "name": "n", "description": "d", "response_type": "yes_no" });
    let id = world.post("/v1/create-custom-metric", body).await["id"].clone();
    let path = format!("/v1/update-custom-metric/{}", id.as_str().expect("an id"));
    let text = format!("Unknown template '{UNKNOWN}'");
    assert_eq!(refuse(&world, "PUT", &path, json!({ "template_id": UNKNOWN })).await, (400, json!(text)));
    let id = id.as_str().expect("an id").parse().expect("a uuid");
    let mut db = world.service.store().org(world.name("organization")).write().await.expect("a session");
    let mut row = db.metric(id).await.expect("it is there");
    row.doc.template_id = Some(UNKNOWN.parse().expect("a uuid"));
    db.update(id, &row.doc, row.updated_ms, None).await.expect("is written");
    db.commit().await.expect("is kept");
    let same = world.call("PUT", &path, json!({ "template_id": UNKNOWN, "name": "m" })).await;
    assert_eq!((&same["name"], &same["template_id"]), (&json!("m"), &json!(UNKNOWN)));
    let known = template(&world, "Dead air").await["template_id"].clone();
    let changed = world.call("PUT", &path, json!({ "template_id": known })).await;
    assert_eq!((&changed["template_id"], &changed["description"]), (&known, &json!("d")));
}

#[tokio::test]
async fn metrics_are_listed_by_category() {
    let world = World::new().await;
    let agent = world.post("/v1/add-agent", json!({ "name": "Desk" })).await["agent_id"].clone();
    for (name, category, agents) in [
        ("a", json!("voice"), json!([agent])),
        ("b", json!("voice"), json!([])),
        ("c", Value::Null, json!([agent])),
        ("d", json!("Voice"), json!([agent])),
        ("e", json!("voice"), json!([agent])),
    ] {
        let body = json!({ "name": name, "description": "d", "response_type": "yes_no", "category": category,
            "agent_ids": agents });
        world.post("/v1/create-custom-metric", body).await;
    }
    let list = async |path: String| {
        let page = world.get(&path).await;
        let names: Vec<String> =
            page["metrics"].as_array().expect("a list").iter().map(|one| one["name"].to_string()).collect();
        (names.join(" ").replace('"', ""), page["total_count"].clone(), page["total_pages"].clone())
    };
    let expect = |names: &str, total: i64, pages: i64| (names.to_owned(), json!(total), json!(pages));
    assert_eq!(list("/v1/custom-metrics?category=voice".into()).await, expect("e b a", 3, 1));
    assert_eq!(list("/v1/custom-metrics?category=voice&page_size=2".into()).await, expect("e b", 3, 2));
    assert_eq!(list("/v1/custom-metrics?category=voice&page_size=2&page=2".into()).await, expect("a", 3, 2));
    assert_eq!(list("/v1/custom-metrics?category=voice&page=9".into()).await, expect("", 3, 1));
    assert_eq!(list(format!("/v1/custom-metrics?category=voice&agent_id={agent}")).await, expect("e a", 2, 1));
    assert_eq!(list("/v1/custom-metrics?category=none".into()).await, expect("", 0, 0));
    assert_eq!(list("/v1/custom-metrics".into()).await, expect("e d c b a", 5, 1));
    let of_agent = format!("/v1/custom-metrics-by-agent/{agent}");
    assert_eq!(list(format!("{of_agent}?category=voice")).await, expect("e a", 2, 1));
    assert_eq!(list(of_agent).await, expect("e d c a", 4, 1));
}

#[tokio::test]
async fn labels_are_described_as_labels() {
    let document = World::new().await.get("/openapi.json").await;
    let fields: [(&str, &[&str]); 2] = [
        ("/components/schemas/AgentSpec", &["voice_provider", "provider_id", "provider"]),
        ("/components/schemas/NewCustomMetric", &["metric_type", "source", "summary"]),
    ];
    for (schema, names) in fields {
        let schema = document.pointer(schema).unwrap_or_else(|| panic!("{schema} is described"));
        for name in names {
            let told = schema["properties"][*name]["description"].as_str().unwrap_or_default();
            assert!(told.contains("a label only"), "{name}: {told}");
        }
    }
}

#[tokio::test]
async fn a_metric_of_a_bundle_is_filled_from_its_template() {
    let world = World::new().await;
    let all = world.get("/v1/custom-metric-templates").await;
    let template = &all[0];
    let code = "11111111-3d4f-4a8e-b612-9c5f0d3a1e88";
    let metric = json!({ "svc_as_code_id": code, "template_id": template["template_id"], "description": "Ours." });
    let mut wanted = json!({
        "agents": [{ "svc_as_code_id": "f3d2a87c-1e4b-4b9a-9c2d-7f1e6b5a4c33", "name": "Desk" }],
        "simulations": [{ "svc_as_code_id": "b1a04e88-7c2f-4d23-9a5e-2f8c6d1b7a09", "name": "Booking" }],
        "digital_humans": [],
        "custom_metrics": [metric],
    });
    let pushed = world.post("/v1/svc-as-code", wanted.clone()).await;
    assert_eq!((&pushed["valid"], &pushed["errors"]), (&json!(true), &json!([])));
    let stored = world.get("/v1/custom-metrics").await["metrics"][0].clone();
    for field in ["name", "response_type", "category", "template_id"] {
        assert!(!template[field].is_null(), "{field}");
        assert_eq!(stored[field], template[field], "{field}");
    }
    assert_eq!(stored["description"], "Ours.");
    // A field that was changed here and is not in the bundle stays.
    let path = format!("/v1/update-custom-metric/{}", stored["id"].as_str().expect("an id"));
    world.call("PUT", &path, json!({ "name": "Another" })).await;
    let again = world.post("/v1/svc-as-code", wanted.clone()).await;
    assert_eq!((&again["valid"], &again["actions"]), (&json!(true), &json!([])));
    assert_eq!(world.get("/v1/custom-metrics").await["metrics"][0]["name"], "Another");
    wanted["custom_metrics"][0]["template_id"] = json!(UNKNOWN);
    let refused = world.post("/v1/svc-as-code", wanted).await;
    let errors = refused["errors"][0]["errors"].to_string();
    assert!(errors.contains(&format!("template_id: Unknown template '{UNKNOWN}'")), "{errors}");
}
