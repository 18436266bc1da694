//! Judgements at the same time: how many, and those of each organization in turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use ringer::jobs::{Judging, Workshop};
use ringer::model::digital_human::Role;
use ringer::model::status::ResultStatus as S;
use ringer::model::transcript::{EntrySource, Transcript, TranscriptEntry};
use ringer::provider::{ChatPart, ChatRequest, Failure, Job, LanguageModel, Status};
use ringer::service::PlacementSettings;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use super::judged::judgement;
use super::world::World;

/// Time limit on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const CONVERSATION: &str = "You judge a conversation";
/// Keys of the two organizations of a world.
const KEYS: [&str; 2] = ["$admin", "$foreign"];

/// Judges conversations when it is let, and knows how many it judges at the same time.
#[derive(Default)]
struct Judge {
    /// Time that a judgement takes; zero: until it is let.
    takes: Duration,
    allowed: watch::Sender<bool>,
    now: watch::Sender<usize>,
    most: AtomicUsize,
    /// Last words of each request, in order.
    asked: Mutex<Vec<String>>,
}

impl LanguageModel for Judge {
    fn chat<'a>(&'a self, request: &'a ChatRequest, out: mpsc::Sender<ChatPart>) -> Job<'a, Result<(), Failure>> {
        let text = |at: Option<&ringer::provider::ChatMessage>| at.map(|one| one.content.clone()).unwrap_or_default();
        let (first, last) = (text(request.messages.first()), text(request.messages.last()));
        Box::pin(async move {
            if !first.contains(CONVERSATION) {
                return Err(Failure { code: "language_model_failed", message: "it judges conversations".into() });
            }
            self.asked.lock().push(last);
            self.now.send_modify(|count| *count += 1);
            self.most.fetch_max(*self.now.borrow(), Ordering::SeqCst);
            match self.takes {
                Duration::ZERO => drop(self.allowed.subscribe().wait_for(|allowed| *allowed).await),
                // The time of a model is what the figure is about; only the measurement of 200 results sets it.
                takes => sleep(takes).await,
            }
            self.now.send_modify(|count| *count -= 1);
            let _ = out.send(ChatPart::Text(judgement())).await;
            Ok(())
        })
    }

    fn name(&self) -> String {
        "judge".into()
    }

    fn status(&self) -> Status {
        Status::Ok
    }
}

/// Queues a run of an organization and ends its conversations without holding them; returns the results.
pub(super) async fn queue_ended(world: &World, key: &str, count: usize) -> Vec<i64> {
    let headers = [("x-api-key".to_owned(), key.to_owned())];
    let post = async |path: &str, body: Value| {
        let answer = world.send("POST", path, &headers, body.to_string().into_bytes()).await;
        assert_eq!(answer.status, 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
        answer.json()
    };
    let agent = post("/v1/add-agent", json!({ "name": "Desk", "sip_uri": "sip:desk@127.0.0.1:9" })).await;
    let body = json!({ "agent_id": agent["agent_id"].to_string(), "name": "Booking" });
    let simulation = post("/v1/create-simulation", body).await["simulation_id"].clone();
    let human = json!({ "digital_human": { "name": "Ann", "success_criteria": format!("Reached by {key}.") } });
    let human = post("/v1/create-digital-human", human).await["digital_human"]["id"].clone();
    let path = format!("/v1/simulation/{simulation}/add-digital-humans");
    post(&path, json!({ "digital_human_ids": [human] })).await;
    let run = json!({ "simulation_id": simulation.to_string(), "runs_per_digital_human": count });
    let queued = post("/v1/queue-simulation-run", run).await;
    let ids = queued["simulation_result_ids"].as_array().expect("results").iter();
    let ids: Vec<i64> = ids.map(|id| id.as_str().and_then(|id| id.parse().ok()).expect("an id")).collect();
    let organization = organization_of(world, key).await;
    for id in &ids {
        let conversations = world.service.conversations();
        let entry = TranscriptEntry::of(Role::Agent, 0, 900, "It is done.".into(), EntrySource::Message);
        let transcript = Transcript { simulation_result_id: *id, language: "en".into(), entries: vec![entry] };
        for step in [S::Initializing, S::Queued, S::Dispatched, S::Running, S::ConversationEnded].windows(2) {
            if step[1] == S::ConversationEnded {
                conversations.store_transcript(&organization, &transcript).await.expect("kept");
            }
            conversations.advance(&organization, *id, step[0], step[1], |_| {}).await.expect("an allowed step");
        }
    }
    ids
}

async fn organization_of(world: &World, key: &str) -> String {
    let key = world.fill_names(key);
    world.service.library().authenticate(&key).await.expect("looked up").expect("a key").organization
}

/// Makes jobs judge by this model, at most so many at the same time.
fn judge_by(workshop: &mut Workshop, judge: &Arc<Judge>, at_once: usize) {
    workshop.judging = Arc::new(Judging::new(at_once));
    let model: Arc<dyn LanguageModel> = judge.clone();
    let terms = PlacementSettings { model: Some(model), ..(*workshop.placement_settings).clone() };
    workshop.placement_settings = Arc::new(terms);
}

/// Waits until all results of an organization are judged.
pub(super) async fn until_judged(world: &World, key: &str, ids: &[i64], patience: Duration) {
    let organization = organization_of(world, key).await;
    let judged = async {
        for id in ids {
            let feed = world.service.feed(*id).expect("calls are made here");
            let mut changes = feed.changes();
            loop {
                changes.mark_unchanged();
                let status = world.service.conversations().status_of(&organization, *id).await.expect("it is there");
                if status == S::Completed {
                    break;
                }
                changes.changed().await.expect("the feed lives");
            }
        }
    };
    timeout(patience, judged).await.expect("they are judged in time");
}

#[tokio::test]
async fn as_many_conversations_are_judged_at_once_as_the_settings_say() {
    let judge = Arc::new(Judge::default());
    let mut world = World::at_work(None).await;
    let mut ids = Vec::new();
    world
        .restart_and_change(async |world| ids = queue_ended(world, KEYS[0], 7).await, |it| judge_by(it, &judge, 4))
        .await;
    let mut now = judge.now.subscribe();
    timeout(PATIENCE, now.wait_for(|count| *count == 4)).await.expect("in time").expect("the judge lives");
    judge.allowed.send_replace(true);
    until_judged(&world, KEYS[0], &ids, PATIENCE).await;
    assert_eq!((judge.most.load(Ordering::SeqCst), judge.asked.lock().len()), (4, 7));
}

#[tokio::test]
async fn many_judgements_of_one_organization_keep_no_other_one_waiting() {
    let judge = Arc::new(Judge::default());
    judge.allowed.send_replace(true);
    let mut world = World::at_work(None).await;
    let (mut many, mut one) = (Vec::new(), Vec::new());
    let queue = async |world: &World| {
        many = queue_ended(world, KEYS[0], 12).await;
        one = queue_ended(world, KEYS[1], 1).await;
    };
    world.restart_and_change(queue, |it| judge_by(it, &judge, 1)).await;
    until_judged(&world, KEYS[1], &one, PATIENCE).await;
    until_judged(&world, KEYS[0], &many, PATIENCE).await;
    let foreign = world.fill_names("Reached by $foreign.");
    let asked = judge.asked.lock().clone();
    let place = asked.iter().position(|last| last.contains(&foreign) || last.contains("Reached by $foreign."));
    assert!(place.is_some_and(|place| place <= 1) && asked.len() == 13, "{place:?} of {}", asked.len());
}

/// `make evaluations`: 200 results, each judged for 5 s, 16 at once.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "no setting of the product: how much is tested")]
async fn two_hundred_results_are_judged_in_a_hundred_seconds() {
    const RESULTS: usize = 200;
    const MOST: Duration = Duration::from_secs(100);
    if std::env::var("RINGER_EVALUATIONS").is_err() {
        return;
    }
    let judge = Arc::new(Judge { takes: Duration::from_secs(5), ..Judge::default() });
    let mut world = World::at_work(None).await;
    let mut ids = Vec::new();
    let queue = async |world: &World| ids = queue_ended(world, KEYS[0], RESULTS).await;
    world.restart_and_change(queue, |it| judge_by(it, &judge, 16)).await;
    let began = ringer::clock::monotonic();
    until_judged(&world, KEYS[0], &ids, 3 * MOST).await;
    let took = Duration::from_nanos(ringer::clock::monotonic().0 - began.0);
    println!("{RESULTS} judgements of 5 s, 16 at once: {:.1} s", took.as_secs_f64());
    assert!(took <= MOST, "{took:?}");
}
