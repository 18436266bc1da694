//! Colours of labels: given, changed, taken away, and carried by bundles.

use serde_json::{Value, json};

use super::world::World;

const AGENT: &str = "f3d2a87c-1e4b-4b9a-9c2d-7f1e6b5a4c33";
const SIMULATION: &str = "b1a04e88-7c2f-4d23-9a5e-2f8c6d1b7a09";
/// Path that bundles are pushed to.
const PUSH: &str = "/v1/svc-as-code";

fn bundle() -> Value {
    json!({
        "agents": [{ "svc_as_code_id": AGENT, "name": "Front desk", "system_prompt": "You book visits." }],
        "simulations": [{ "svc_as_code_id": SIMULATION, "name": "Booking", "agent": AGENT }],
        "digital_humans": [], "custom_metrics": [],
    })
}

fn actions(pushed: &Value) -> Vec<String> {
    assert_eq!((&pushed["valid"], &pushed["errors"]), (&json!(true), &json!([])), "{pushed}");
    let actions = pushed["actions"].as_array().expect("a list").iter();
    actions.map(|action| action.as_str().expect("a text").to_owned()).collect()
}

#[tokio::test]
async fn labels_have_colours() {
    let world = World::new().await;
    let agent = json!({ "name": "Desk", "labels": ["beta"] });
    let agent = format!("/v1/agents/{}", world.post("/v1/add-agent", agent).await["agent_id"]);
    let post =
        async |body: Value| world.send("POST", &format!("{agent}/labels"), &[], body.to_string().into_bytes()).await;
    let made = world.post(&format!("{agent}/labels"), json!({ "label_text": "Red", "color": "#ff0000" })).await;
    assert_eq!((&made["color"], &made["knowledge_base_id"]), (&json!("#ff0000"), &Value::Null));
    let path = format!("{agent}/labels/{}", made["id"].as_str().expect("an id"));
    for (change, expect) in [
        (json!({ "label_text": "Red" }), json!("#ff0000")),
        (json!({ "label_text": "Red", "color": "#00Ff7f" }), json!("#00Ff7f")),
        (json!({ "label_text": "Green" }), json!("#00Ff7f")),
        (json!({ "label_text": "Green", "color": null }), Value::Null),
        (json!({ "label_text": "Green", "color": "#123456" }), json!("#123456")),
    ] {
        let changed = world.call("PUT", &path, change.clone()).await;
        assert_eq!((&changed["color"], &world.get(&path).await["color"]), (&expect, &expect), "{change}");
    }
    let listed = world.get(&format!("{agent}/labels")).await;
    let listed: Vec<_> =
        listed.as_array().expect("a list").iter().map(|one| [&one["label_text"], &one["color"]]).collect();
    assert_eq!(json!(listed), json!([["Green", "#123456"], ["beta", null]]));
    for color in [json!("red"), json!("#12345"), json!("#1234567"), json!("#12345g"), json!("123456"), json!(5)] {
        for answer in [
            post(json!({ "label_text": "New", "color": color })).await,
            world
                .send("PUT", &path, &[], json!({ "label_text": "Green", "color": color }).to_string().into_bytes())
                .await,
        ] {
            assert_eq!(
                (answer.status, &answer.json()["detail"][0]["loc"]),
                (422, &json!(["body", "color"])),
                "{color}"
            );
        }
    }
    assert_eq!(world.get(&path).await["color"], "#123456");
}

#[tokio::test]
async fn colours_of_labels_are_pushed_and_pulled() {
    let world = World::new().await;
    let mut wanted = bundle();
    wanted["agents"][0]["label_colors"] = json!({ "beta": "#00ff00" });
    let pushed = world.post(PUSH, wanted.clone()).await;
    assert!(actions(&pushed).contains(&"Created label 'beta'".to_owned()), "{pushed}");
    let path = format!("/v1/svc-as-code/simulation/{SIMULATION}");
    let pulled = world.get(&path).await;
    assert_eq!(pulled["agents"][0]["label_colors"], json!({ "beta": "#00ff00" }));
    assert_eq!(actions(&world.post(PUSH, pulled.clone()).await), Vec::<String>::new());
    wanted["agents"][0]["label_colors"] = json!({ "beta": null });
    assert_eq!(actions(&world.post(PUSH, wanted.clone()).await), ["Updated label 'beta'"]);
    assert_eq!(world.get(&path).await["agents"][0].get("label_colors"), None);
    for (colours, text) in [
        (json!({ "beta": "green" }), "label_colors.beta: a colour is written #RRGGBB"),
        (json!({ "production": "#00ff00" }), "label_colors: Label 'production' is reserved"),
    ] {
        wanted["agents"][0]["label_colors"] = colours;
        let refused = world.post(PUSH, wanted.clone()).await;
        assert_eq!((&refused["valid"], &refused["errors"][0]["errors"]), (&json!(false), &json!([text])), "{refused}");
    }
}
