//! Runs of the members of communities.

use serde_json::{Value, json};

use super::world::World;

/// An agent's simulation with its Digital Humans, and a community.
struct Booth {
    world: World,
    simulation: Value,
    humans: Vec<i64>,
}

impl Booth {
    async fn new(agent: Value) -> Booth {
        let world = World::new().await;
        let agent = world.post("/v1/add-agent", agent).await["agent_id"].to_string();
        let made = world.post("/v1/create-simulation", json!({ "agent_id": agent })).await;
        let simulation = made["simulation_id"].clone();
        let mut booth = Booth { world, simulation: simulation.clone(), humans: Vec::new() };
        for name in ["Ann", "Bob", "Cid", "Dan"] {
            let id = booth.human(name, json!([simulation])).await;
            booth.humans.push(id);
        }
        booth
    }

    async fn human(&self, name: &str, simulations: Value) -> i64 {
        let number = "+4930555000".to_owned() + &self.humans.len().to_string();
        let human = json!({ "name": name, "intent": "Book.", "phone_number": number });
        let body = json!({ "digital_human": human, "simulation_ids": simulations });
        self.world.post("/v1/create-digital-human", body).await["digital_human"]["id"].as_i64().expect("an id")
    }

    async fn community(&self, title: &str, members: &[i64]) -> Value {
        let body = json!({ "title": title, "digital_human_ids": members });
        self.world.post("/v1/create-community", body).await["id"].clone()
    }

    /// Queues a run with these fields besides; returns the status, and the refusal or the Digital Humans of the run.
    async fn queue(&self, path: &str, fields: Value) -> (u16, Value) {
        let mut body = json!({ "simulation_id": self.simulation.to_string() });
        body.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        let answer = self.world.send("POST", path, &[], body.to_string().into_bytes()).await;
        let queued = answer.json();
        if answer.status != 200 {
            return (answer.status, queued["detail"].clone());
        }
        let run = queued["simulation_run_id"].as_str().expect("an id");
        let read = self.world.get(&format!("/v1/retrieve-simulation-results/{run}")).await;
        let results = read["simulation_results"].as_array().expect("a list");
        (200, results.iter().map(|result| result["digital_human_id"].clone()).collect())
    }
}

#[tokio::test]
async fn a_run_has_the_members_of_communities_and_each_human_once() {
    let booth = Booth::new(json!({ "name": "Desk", "sip_uri": "sip:desk@pbx.example.com" })).await;
    let [ann, bob, cid, _] = booth.humans[..] else { panic!("there are four") };
    let (first, second) = (booth.community("First", &[bob, ann]).await, booth.community("Second", &[bob, cid]).await);
    let run = "/v1/queue-simulation-run";
    for (fields, expect) in [
        (json!({ "community_ids": [first] }), json!([ann, bob])),
        (json!({ "community_ids": [first, second, first] }), json!([ann, bob, cid])),
        (json!({ "community_ids": [first], "digital_human_ids": [cid.to_string(), bob] }), json!([ann, bob, cid])),
        (json!({ "community_ids": [], "digital_human_ids": [cid] }), json!([cid])),
        (json!({ "community_ids": [], "digital_human_ids": [] }), json!(booth.humans)),
        (json!({ "community_ids": null }), json!(booth.humans)),
    ] {
        assert_eq!(booth.queue(run, fields.clone()).await, (200, expect), "{fields}");
    }
}

#[tokio::test]
async fn communities_that_cannot_be_run_are_told() {
    let booth = Booth::new(json!({ "name": "Desk", "sip_uri": "sip:desk@pbx.example.com" })).await;
    let (ann, simulation) = (booth.humans[0], booth.simulation.clone());
    let (one, other) = (booth.human("Eve", json!([])).await, booth.human("Fay", json!([])).await);
    let half = booth.community("Half", &[one, ann]).await;
    let most = booth.community("Most", &[one, ann, other]).await;
    let empty = booth.community("Empty", &[]).await;
    let unknown = json!("9f3a1c7e-5b2d-4e88-a4f1-0c7b3d6a9e21");
    let foreign = [("x-api-key".to_owned(), "$foreign".to_owned())];
    let theirs = json!({ "title": "Theirs" }).to_string().into_bytes();
    let theirs = booth.world.send("POST", "/v1/create-community", &foreign, theirs).await.json()["id"].clone();
    let run = "/v1/queue-simulation-run";
    let part = format!("not part of simulation {simulation}");
    for (community, status, detail) in [
        (half, 400, format!("Digital human {one} of community 'Half' is {part}")),
        (most, 400, format!("Digital humans {one}, {other} of community 'Most' are {part}")),
        (empty, 400, "Community 'Empty' has no digital humans".to_owned()),
        (unknown, 404, "Community not found".to_owned()),
        (theirs, 404, "Community not found".to_owned()),
    ] {
        let told = booth.queue(run, json!({ "community_ids": [community] })).await;
        assert_eq!(told, (status, json!(detail)));
    }
    let (status, detail) = booth.queue(run, json!({ "community_ids": ["x"] })).await;
    assert_eq!((status, &detail[0]["loc"]), (422, &json!(["body", "community_ids", 0])));
    let runs = booth.world.get(&format!("/v1/get-simulation-runs/{simulation}")).await;
    assert_eq!(runs["simulation_runs"], json!([]));
}

#[tokio::test]
async fn every_way_of_queueing_takes_communities() {
    let text = json!({ "name": "Desk", "mode": "TEXT", "http_webhook": "http://127.0.0.1:9/hook" });
    let sms = json!({ "name": "Desk", "mode": "TEXT", "phone_number": "+493055544444" });
    for (agent, path) in [(text, "/v1/queue-http-text-simulation-run"), (sms, "/v1/queue-sms-simulation-run")] {
        let booth = Booth::new(agent).await;
        let two = booth.community("Two", &booth.humans[1..3]).await;
        let queued = booth.queue(path, json!({ "community_ids": [two] })).await;
        assert_eq!(queued, (200, json!(&booth.humans[1..3])), "{path}");
    }
    let booth = Booth::new(json!({ "name": "Desk", "sip_uri": "sip:desk@pbx.example.com" })).await;
    let two = booth.community("Two", &booth.humans[1..3]).await;
    let code = "b1a04e88-7c2f-4d23-9a5e-2f8c6d1b7a09";
    let path = format!("/v1/simulation/{}", booth.simulation);
    booth.world.call("PUT", &path, json!({ "svc_as_code_id": code })).await;
    let body = json!({ "community_ids": [two] });
    let queued = booth.world.post(&format!("/v1/svc-as-code/run/{code}"), body).await;
    assert_eq!(queued["simulation_result_ids"].as_array().map(Vec::len), Some(2));
}
