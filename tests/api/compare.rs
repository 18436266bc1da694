//! Two runs compared, runs found by verdict, text and tag, and a run as one file.

use ringer::model::time::Timestamp;
use serde_json::{Value, json};

use super::page::{judge, put_review};
use super::results::queued;
use super::world::World;

/// Queues the simulation of the first run again, judges its results, and returns its id with theirs.
async fn run_again(world: &World, seed: i64) -> (i64, Vec<i64>) {
    let simulation = world.get("/v1/simulation-runs").await["simulation_runs"][0]["simulation_id"].to_string();
    let body =
        json!({ "simulation_id": simulation, "runs_per_digital_human": 2, "seed": seed, "sip_uri": "sip:a@b.example" });
    let queued = world.post("/v1/queue-simulation-run", body).await;
    let id = |value: &Value| value.as_str().and_then(|text| text.parse().ok()).expect("an id as text");
    let results: Vec<i64> = queued["simulation_result_ids"].as_array().expect("ids").iter().map(id).collect();
    for result in &results {
        judge(world, *result).await;
    }
    (id(&queued["simulation_run_id"]), results)
}

/// A person says that a call has not reached its goal.
async fn fail(world: &World, id: i64) {
    let body = json!({ "reviewer": "Ann", "human_goal_success": false, "human_goal_reasoning": "Wrong day." });
    let answer = put_review(world, id, &[], body).await;
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
}

#[tokio::test]
async fn two_runs_are_compared_call_by_call() {
    let (world, first, [one, two]) = queued().await;
    judge(&world, one).await;
    judge(&world, two).await;
    fail(&world, two).await;
    let (second, [third, fourth]) = run_again(&world, 8).await.map_pair();
    fail(&world, third).await;
    let found = world.get(&format!("/v1/simulation-runs/compare?a={first}&b={second}")).await;
    let counts = json!({
        "regressed": 1, "mended": 1, "still_failing": 0, "still_passing": 0, "not_told": 0, "new": 0, "gone": 0,
    });
    assert_eq!((&found["counts"], &found["p"]), (&counts, &json!(1.0)), "{found}");
    assert_eq!((&found["a"]["id"], &found["b"]["id"]), (&json!(first), &json!(second)));
    let calls = found["calls"].as_array().expect("calls");
    let told: Vec<Value> = calls.iter().map(|call| json!([call["change"], call["a"]["id"], call["b"]["id"]])).collect();
    assert_eq!(told, [json!(["regressed", one, third]), json!(["mended", two, fourth])]);
    assert_eq!(calls[0]["b"]["reason"], "Wrong day.");
    let p50 = &found["figures"][0];
    assert_eq!((&p50["name"], &p50["a"], &p50["difference"]), (&json!("p50_agent_latency"), &json!(0.7), &json!(0.0)));
    assert_eq!(p50["says"], "too few calls to tell");
    let differs: Vec<(&str, &str)> = found["differs"]
        .as_array()
        .expect("differences")
        .iter()
        .map(|one| (one["of"].as_str().unwrap_or_default(), one["field"].as_str().unwrap_or_default()))
        .collect();
    assert_eq!(differs, [("run", "seed")], "{found}");
    let same = world.get(&format!("/v1/simulation-runs/compare?a={second}&b={second}")).await;
    assert_eq!((&same["counts"]["still_passing"], &same["differs"]), (&json!(1), &json!([])));
    for (path, expect) in [
        (format!("/v1/simulation-runs/compare?a={first}&b=99999"), 404),
        (format!("/v1/simulation-runs/compare?a={first}"), 422),
    ] {
        assert_eq!(world.send("GET", &path, &[], Vec::new()).await.status, expect, "{path}");
    }
    let foreign = [("x-api-key".to_owned(), "$foreign".to_owned())];
    let path = format!("/v1/simulation-runs/compare?a={first}&b={second}");
    assert_eq!(world.send("GET", &path, &foreign, Vec::new()).await.status, 404);
}

/// Splits a run of two results.
trait Pair {
    fn map_pair(self) -> (i64, [i64; 2]);
}

impl Pair for (i64, Vec<i64>) {
    fn map_pair(self) -> (i64, [i64; 2]) {
        (self.0, self.1.try_into().expect("two results"))
    }
}

#[tokio::test]
async fn a_caller_that_is_in_one_run_alone_is_new_or_gone() {
    let (world, first, _) = queued().await;
    let simulation = world.get("/v1/simulation-runs").await["simulation_runs"][0]["simulation_id"].to_string();
    let body = json!({ "simulation_id": simulation, "seed": 7, "sip_uri": "sip:other@b.example" });
    let queued = world.post("/v1/queue-simulation-run", body).await["simulation_run_id"].clone();
    let second = queued.as_str().expect("an id");
    let found = world.get(&format!("/v1/simulation-runs/compare?a={first}&b={second}")).await;
    assert_eq!((&found["counts"]["gone"], &found["counts"]["not_told"]), (&json!(1), &json!(1)), "{found}");
    let back = world.get(&format!("/v1/simulation-runs/compare?a={second}&b={first}")).await;
    assert_eq!(back["counts"]["new"], 1);
    let address = json!({
        "of": "run", "field": "sip_uri", "a": "sip:a@b.example", "b": "sip:other@b.example", "callers": [],
    });
    assert!(found["differs"].as_array().expect("differences").contains(&address), "{found}");
}

#[tokio::test]
async fn runs_are_found_by_verdict_text_and_tag() {
    let (world, first, [one, two]) = queued().await;
    judge(&world, one).await;
    judge(&world, two).await;
    let row = world.get("/v1/simulation-runs").await["simulation_runs"][0].clone();
    let simulation = row["simulation_id"].clone();
    let human = world.get("/v1/digital-humans").await["digital_humans"][0]["id"].clone();
    let put = async |path: String, body: Value| {
        let answer = world.send("PUT", &path, &[], body.to_string().into_bytes()).await;
        assert_eq!(answer.status, 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
    };
    put(format!("/v1/simulation/{simulation}"), json!({ "tags": ["nightly"] })).await;
    put(format!("/v1/update-digital-human/{human}"), json!({ "tags": ["Elderly"] })).await;
    let (second, [third, _]) = run_again(&world, 8).await.map_pair();
    fail(&world, third).await;
    for (query, expect) in [
        ("outcome=passed", vec![first]),
        ("outcome=failed", vec![second]),
        ("outcome=warning", vec![]),
        ("q=DESK", vec![second, first]),
        ("q=elder", vec![second]),
        ("q=nobody", vec![]),
        ("tag=nightly", vec![second]),
        ("tag=Elderly", vec![second]),
        ("q=desk&outcome=passed&limit=1", vec![first]),
    ] {
        let page = world.get(&format!("/v1/simulation-runs?{query}")).await;
        let runs = page["simulation_runs"].as_array().expect("runs");
        let ids: Vec<i64> = runs.iter().filter_map(|run| run["id"].as_i64()).collect();
        assert_eq!(ids, expect, "{query}: {page}");
    }
    let page = world.get("/v1/simulation-runs?q=desk&limit=1").await;
    assert_eq!((&page["simulation_runs"][0]["id"], &page["next_cursor"]), (&json!(second), &json!(second.to_string())));
    assert_eq!(page["simulation_runs"][0]["tags"], json!(["Elderly", "nightly"]));
    let answer = world.send("GET", "/v1/simulation-runs?outcome=good", &[], Vec::new()).await;
    assert_eq!(answer.status, 422);
}

#[tokio::test]
async fn a_run_has_the_name_that_it_was_given() {
    let (world, run, _) = queued().await;
    let path = format!("/v1/simulation-run/{run}");
    let named = world.call("PATCH", &path, json!({ "name": "  Before the move " })).await;
    assert_eq!((&named["id"], &named["name"]), (&json!(run), &json!("Before the move")));
    for (query, expect) in [("q=the%20MOVE", vec![run]), ("q=after", vec![])] {
        let page = world.get(&format!("/v1/simulation-runs?{query}")).await;
        let runs = page["simulation_runs"].as_array().expect("runs");
        assert_eq!(runs.iter().filter_map(|one| one["id"].as_i64()).collect::<Vec<_>>(), expect, "{query}");
    }
    let whole = world.get(&format!("/v1/retrieve-simulation-results/{run}")).await;
    assert_eq!(whole["simulation_run"]["name"], "Before the move");
    for (body, status) in [(json!({}), 422), (json!({ "name": "n".repeat(201) }), 422), (json!({ "name": 7 }), 422)] {
        let answer = world.send("PATCH", &path, &[], body.to_string().into_bytes()).await;
        assert_eq!(answer.status, status, "{body}");
    }
    assert_eq!(world.call("PATCH", &path, json!({ "name": " " })).await["name"], Value::Null);
    let other = world.send("PATCH", "/v1/simulation-run/999", &[], br#"{"name":"x"}"#.to_vec()).await;
    assert_eq!(other.status, 404);
}

#[tokio::test]
async fn a_simulation_keeps_its_baseline() {
    let (world, first, _) = queued().await;
    let simulation = world.get("/v1/simulation-runs").await["simulation_runs"][0]["simulation_id"].clone();
    let path = format!("/v1/simulation/{simulation}");
    let put = async |body: Value| world.send("PUT", &path, &[], body.to_string().into_bytes()).await;
    assert_eq!(put(json!({ "baseline_run_id": first })).await.status, 200);
    assert_eq!(world.get(&path).await["settings"]["baseline_run_id"], first);
    assert_eq!(put(json!({ "baseline_run_id": 99_999 })).await.status, 404);
    let agent = world.get(&path).await["agent_id"].to_string();
    let other = world.post("/v1/create-simulation", json!({ "agent_id": agent })).await["simulation_id"].clone();
    let answer = world
        .send(
            "PUT",
            &format!("/v1/simulation/{other}"),
            &[],
            json!({ "baseline_run_id": first }).to_string().into_bytes(),
        )
        .await;
    let detail = "baseline_run_id must be a run of this simulation";
    assert_eq!((answer.status, &answer.json()["detail"]), (400, &json!(detail)));
    assert_eq!(put(json!({ "baseline_run_id": null })).await.status, 200);
    assert_eq!(world.get(&path).await["settings"]["baseline_run_id"], Value::Null);
}

#[tokio::test]
async fn a_run_is_one_file_with_its_failed_calls_first() {
    let (world, run, [one, two]) = queued().await;
    judge(&world, one).await;
    judge(&world, two).await;
    fail(&world, two).await;
    let hostile = json!({ "simulation_result_id": one, "tags": ["</script><script>alert(1)</script>"] });
    world.post("/v1/update-simulation-result", hostile).await;
    let path = format!("/v1/simulation-run/{run}/page");
    let answer = world.send("GET", &path, &[], Vec::new()).await;
    assert_eq!(answer.headers["content-disposition"], format!("attachment; filename=\"run-{run}.html\""));
    let page = String::from_utf8(answer.body).expect("a text");
    assert_eq!(page.matches("<script").count(), 3, "no other script than its own");
    assert!(page.contains("default-src 'none'"));
    let (_, data) = page.split_once("id=\"data\">").expect("data");
    let (data, _) = data.split_once("</script>").expect("their end");
    let data: Value = serde_json::from_str(data).expect("JSON");
    let ids = |list: &Value, of: &str| -> Vec<Value> {
        list.as_array().expect("a list").iter().map(|one| one.pointer(of).cloned().unwrap_or_default()).collect()
    };
    assert_eq!(ids(&data["results"], "/id"), [json!(two), json!(one)]);
    assert_eq!(ids(&data["calls"], "/result/id"), [json!(two), json!(one)]);
    assert_eq!((&data["run"]["id"], &data["run"]["tests_failed"]), (&json!(run), &json!(1)));
    let known = [("if-none-match".to_owned(), answer.headers["etag"].to_str().expect("a tag").to_owned())];
    assert_eq!(world.send("GET", &path, &known, Vec::new()).await.status, 304);
    assert_eq!(world.send("GET", "/v1/simulation-run/99999/page", &[], Vec::new()).await.status, 404);
    assert!(Timestamp::parse(data["run"]["started_at"].as_str().expect("a time")).is_some());
}
