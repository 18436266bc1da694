//! Work that panics is a fault of that work alone: what waits for it ends or is done again, and the next one is done.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringer::provider::fake::FakeSynthesizer;
use ringer::provider::{
    ChatPart, ChatRequest, Failure, Job, LanguageModel, Spoken, Status, Synthesizer, Voice, VoiceWanted,
};
use ringer::service::PlacementSettings;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::yield_now;
use tokio::time::timeout;

use super::receiver::Receiver;
use super::talk::Talk;
use super::world::World;

/// Panics the first time that it is asked by whoever says this, and else is of few words.
struct FaultyModel {
    at: &'static str,
    is_sound: AtomicBool,
}

impl FaultyModel {
    fn new(at: &'static str) -> Arc<FaultyModel> {
        Arc::new(FaultyModel { at, is_sound: AtomicBool::new(false) })
    }
}

impl LanguageModel for FaultyModel {
    fn chat<'a>(&'a self, request: &'a ChatRequest, out: mpsc::Sender<ChatPart>) -> Job<'a, Result<(), Failure>> {
        Box::pin(async move {
            if request.messages.iter().any(|message| message.content.contains(self.at)) {
                assert!(self.is_sound.swap(true, Ordering::Relaxed), "as told");
            }
            let _ = out.send(ChatPart::Text("A table for two.".into())).await;
            Ok(())
        })
    }

    fn name(&self) -> String {
        "faulty".into()
    }

    fn status(&self) -> Status {
        Status::Ok
    }
}

/// Panics the first time that a voice is chosen.
#[derive(Default)]
struct FaultySynthesizer {
    is_sound: AtomicBool,
    speaks: FakeSynthesizer,
}

impl Synthesizer for FaultySynthesizer {
    fn voice(&self, wanted: &VoiceWanted) -> Result<Voice, Failure> {
        assert!(self.is_sound.swap(true, Ordering::Relaxed), "as told");
        self.speaks.voice(wanted)
    }

    fn synthesize<'a>(
        &'a self,
        text: &'a str,
        voice: &'a Voice,
        out: mpsc::Sender<Spoken>,
    ) -> Job<'a, Result<(), Failure>> {
        self.speaks.synthesize(text, voice, out)
    }

    fn status(&self) -> Status {
        Status::Ok
    }
}

impl Talk {
    /// Returns a conversation of an agent of its own in the same world.
    async fn next(self, agent: Value) -> Talk {
        Talk::of(self.world, agent, json!({}), json!({})).await
    }
}

#[tokio::test]
async fn a_written_conversation_that_panics_ends_and_the_next_one_is_held() {
    let hook = Receiver::new(&[]).await;
    let agent = json!({ "http_webhook": hook.url("/hook") });
    let world = World::at_work(Some(FaultyModel::new("You are a person who writes"))).await;
    let talk = Talk::of(world, agent.clone(), json!({}), json!({})).await;
    talk.until("READY").await;
    talk.says("Good day, how can I help?").await;
    let result = talk.until("SYSTEM_ERROR").await;
    assert_eq!(result["error_code"], "INTERNAL_ERROR");
    let talk = talk.next(agent).await;
    talk.until("READY").await;
    talk.says("Good day, how can I help?").await;
    assert_eq!(hook.wait_for(1).await.json()["message"], "A table for two.");
}

#[tokio::test]
async fn a_call_that_panics_ends_and_the_next_one_is_made() {
    let agent = json!({ "mode": "VOICE", "connection_type": "SIP", "sip_uri": "sip:desk@127.0.0.1:9" });
    let mut world = World::at_work(None).await;
    let synthesizer: Arc<dyn Synthesizer> = Arc::new(FaultySynthesizer::default());
    let faulty = |settings: &PlacementSettings| Arc::new(PlacementSettings { synthesizer, ..settings.clone() });
    world.restart_with(|workshop| workshop.placement_settings = faulty(&workshop.placement_settings)).await;
    let talk = Talk::of(world, agent.clone(), json!({}), json!({})).await;
    let result = talk.until("SYSTEM_ERROR").await;
    assert_eq!(result["error_code"], "INTERNAL_ERROR");
    let result = talk.next(agent).await.until("NO_CONNECTION").await;
    assert_eq!(result["error_code"], "SIP_DIAL_FAILED");
}

#[tokio::test]
async fn an_evaluation_that_panics_is_done_again_and_so_are_the_next_ones() {
    let hook = Receiver::new(&[]).await;
    let agent = json!({ "http_webhook": hook.url("/hook") });
    let model = FaultyModel::new("You judge a conversation");
    let mut talk = Talk::of(World::at_work(Some(model.clone())).await, agent.clone(), json!({}), json!({})).await;
    for _ in 0..2 {
        talk.until("READY").await;
        talk.says("Good day, how can I help?").await;
        talk.event("message.sent", 1).await;
        assert_eq!(talk.send(json!({ "message": "Bye.", "end_conversation": true })).await.0, 200);
        if !model.is_sound.load(Ordering::Relaxed) {
            let queue = talk.world.service.queue();
            let waits = ("evaluate".to_owned(), "waiting", 1);
            let given_back = async {
                while !model.is_sound.load(Ordering::Relaxed) || !queue.depth().await.expect("counted").contains(&waits)
                {
                    yield_now().await;
                }
            };
            timeout(Duration::from_secs(60), given_back).await.expect("the job is given back");
            talk.advance(1000);
        }
        talk.until("COMPLETED").await;
        talk = talk.next(agent.clone()).await;
    }
}
