//! Engines and their threads end.

use std::pin::pin;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Wake};

use parking_lot::Mutex;
use ringer_base::clock::Clock;
use ringer_media::call::Opening;
use ringer_provider::fake::{FakeRecognizer, FakeSynthesizer};
use ringer_provider::{Failure, Job, Spoken, Status, Synthesizer, VoiceWanted};
use ringer_transport::sip::names::Resolver;

use super::*;
use crate::named;
use crate::recording_blocks::recording_blocks;

#[test]
fn a_media_thread_ends_with_its_engine() {
    let (shard, _messages) = start_shard(0, recording_blocks().0).expect("a thread starts");
    let thread = shard.thread.lock().take().expect("it was started");
    let (ended, end) = std::sync::mpsc::sync_channel(1);
    std::thread::Builder::new()
        .name("waits".to_owned())
        .spawn(move || ended.send(thread.join().is_ok()))
        .expect("a thread starts");
    drop(shard);
    assert_eq!(end.recv_timeout(std::time::Duration::from_secs(60)), Ok(true));
}

async fn engine() -> (Engine, mpsc::Receiver<Incoming>) {
    let config = named::config("127.0.0.1:0", Resolver::default());
    let speech =
        Speech { synthesizer: Arc::new(FakeSynthesizer::default()), recognizer: Arc::new(FakeRecognizer::new(&[], 0)) };
    Engine::start(config, speech, Clock::Real).await.expect("loopback has a free port")
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The end of the last call wakes an engine that stops; it does not look again and again.
#[tokio::test]
async fn an_engine_that_stops_is_told_of_the_end_of_its_last_call() {
    let (engine, _incoming) = engine().await;
    engine.services.wait_idle().await;
    let [first, last] = [(); 2].map(|()| engine.services.permit().expect("a place"));
    let woken = Arc::<Woken>::default();
    let waker = woken.clone().into();
    let mut context = Context::from_waker(&waker);
    let mut waiting = pin!(engine.services.wait_idle());
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    drop(first);
    assert!(!woken.0.load(Ordering::Relaxed), "one is left");
    drop(last);
    assert!(woken.0.load(Ordering::Relaxed));
    assert!(waiting.as_mut().poll(&mut context).is_ready());
    assert_eq!(engine.live_calls(), 0);
}

/// The tasks of an engine run on threads that outlive it, and must not hold it.
#[tokio::test]
async fn an_engine_that_nobody_holds_any_more_is_gone_with_its_threads() {
    let (engine, incoming) = engine().await;
    let (services, shared) = (Arc::downgrade(&engine.services), engine.services.shards[0].shared.clone());
    drop((engine, incoming));
    assert!(services.upgrade().is_none(), "a task holds the engine");
    assert!(shared.stop.load(Ordering::Relaxed), "the media thread is told to end");
}

/// A hum that notes what it is to make before a call.
#[derive(Default)]
struct NotingSynthesizer {
    hum: FakeSynthesizer,
    prepared: Mutex<Vec<String>>,
}

impl Synthesizer for NotingSynthesizer {
    fn voice(&self, wanted: &VoiceWanted) -> Result<Voice, Failure> {
        self.hum.voice(wanted)
    }

    fn synthesize<'a>(
        &'a self,
        text: &'a str,
        voice: &'a Voice,
        out: mpsc::Sender<Spoken>,
    ) -> Job<'a, Result<(), Failure>> {
        self.hum.synthesize(text, voice, out)
    }

    fn prepare<'a>(&'a self, texts: &'a [String], _voice: &'a Voice) -> Job<'a, ()> {
        self.prepared.lock().extend_from_slice(texts);
        Box::pin(std::future::ready(()))
    }

    fn status(&self) -> Status {
        Status::Ok
    }
}

#[tokio::test]
async fn words_that_are_known_are_made_before_the_call() {
    let synthesizer = Arc::new(NotingSynthesizer::default());
    let recognizer = Arc::new(FakeRecognizer::new(&[], 0));
    let config = named::config("127.0.0.1:0", Resolver::default());
    let speech = Speech { synthesizer: synthesizer.clone(), recognizer };
    let (engine, _incoming) = Engine::start(config, speech, Clock::Real).await.expect("loopback has a free port");
    let mut placement = named::placement("sip:nobody@127.0.0.1:9", None, &*synthesizer);
    placement.spec.opening = Opening::Say("Good morning.".to_owned());
    let _handle = engine.place(placement).await.expect("it is dialled");
    let prepared = synthesizer.prepared.lock().clone();
    assert_eq!(prepared.first().map(String::as_str), Some("Good morning."));
    assert!(prepared.iter().any(|text| text == "Hello? Are you there?"), "{prepared:?}");
    engine.stop().await;
}
