//! Runs that a language model sums up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ringer::service::Caller;
use serde_json::{Value, json};

use super::oracle::Oracle;
use super::talk::queue;
use super::world::World;

const RUN: &str = "the outcome of a test run";

#[tokio::test]
async fn a_run_is_summed_up_by_the_model_and_by_its_counters_without_one() {
    let times = Arc::new(AtomicUsize::new(0));
    let counted = times.clone();
    let model = Oracle::new(move |first, _| {
        let time = counted.load(Ordering::SeqCst);
        (first.contains(RUN) && time < 2).then(|| {
            counted.store(time + 1, Ordering::SeqCst);
            json!({ "summary": format!("Summary {time}.") }).to_string()
        })
    });
    let world = World::with_model(model.clone()).await;
    let agent = json!({ "http_webhook": "http://127.0.0.1:9/hook" });
    let (simulation, result) = queue(&world, agent, json!({ "runs_per_digital_human": 2 }), json!({})).await;
    let caller = Caller::engine(world.name("organization"));
    let item = async || {
        let id = simulation.parse().expect("an id");
        world.service.runs().simulation_runs(&caller, id).await.expect("runs").remove(0)
    };
    let run = item().await.id;
    world.service.runs().cancel_run(&caller, run, true).await.expect("cancelled");
    // Until the model has answered, and wherever it cannot, the counters stand there.
    assert_eq!(item().await.summary.as_deref(), Some("0 passed, 0 failed, 2 cancelled of 2"));
    world.work_off_with(Some(model.clone())).await;
    assert_eq!(item().await.summary.as_deref(), Some("Summary 0."));
    let request = model.requests_with(RUN).remove(0);
    assert_eq!(request, "0 passed, 0 failed, 2 cancelled of 2\n- Ann: cancelled\n- Ann: cancelled");
    // A change without effect on a counter changes no summary.
    let update = json!({ "simulation_result_id": result, "tags": ["x"] });
    world.post("/v1/update-simulation-result", update).await;
    world.work_off_with(Some(model.clone())).await;
    assert_eq!(item().await.summary.as_deref(), Some("Summary 0."));
    // A changed counter is summed up anew.
    world.call("DELETE", &format!("/v1/simulation-result/{result}"), Value::Null).await;
    assert_eq!(item().await.summary.as_deref(), Some("0 passed, 0 failed, 1 cancelled of 1"));
    world.work_off_with(Some(model.clone())).await;
    assert_eq!(item().await.summary.as_deref(), Some("Summary 1."));
    // The model fails.
    let (other, _) = queue(&world, json!({ "http_webhook": "http://127.0.0.1:9/hook" }), json!({}), json!({})).await;
    let id: i64 = other.parse().expect("an id");
    let run = world.service.runs().simulation_runs(&caller, id).await.expect("runs").remove(0).id;
    world.service.runs().cancel_run(&caller, run, true).await.expect("cancelled");
    world.work_off_with(Some(model)).await;
    let run = world.service.runs().simulation_runs(&caller, id).await.expect("runs").remove(0);
    assert_eq!(run.summary.as_deref(), Some("0 passed, 0 failed, 1 cancelled of 1"));
}
