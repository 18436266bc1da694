//! Engines and their threads end.

use super::*;
use crate::clock::Clock;
use crate::engine::named;
use crate::provider::fake::{FakeRecognizer, FakeSynthesizer};
use crate::transport::sip::names::Resolver;

#[test]
fn a_media_thread_ends_with_its_engine() {
    let (shard, _messages) = start_shard(0).expect("a thread starts");
    let thread = shard.thread.lock().take().expect("it was started");
    let (ended, end) = std::sync::mpsc::sync_channel(1);
    std::thread::Builder::new()
        .name("waits".to_owned())
        .spawn(move || ended.send(thread.join().is_ok()))
        .expect("a thread starts");
    drop(shard);
    assert_eq!(end.recv_timeout(std::time::Duration::from_secs(60)), Ok(true));
}

/// The tasks of an engine run on threads that outlive it, and must not hold it.
#[tokio::test]
async fn an_engine_that_nobody_holds_any_more_is_gone_with_its_threads() {
    let config = named::config("127.0.0.1:0", Resolver::default());
    let speech =
        Speech { synthesizer: Arc::new(FakeSynthesizer::default()), recognizer: Arc::new(FakeRecognizer::new(&[], 0)) };
    let (engine, incoming) = Engine::start(config, speech, Clock::Real).await.expect("loopback has a free port");
    let (services, shared) = (Arc::downgrade(&engine.services), engine.services.shards[0].shared.clone());
    drop((engine, incoming));
    assert!(services.upgrade().is_none(), "a task holds the engine");
    assert!(shared.stop.load(Ordering::Relaxed), "the media thread is told to end");
}
