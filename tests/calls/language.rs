//! Language of the Digital Human, as its result states it.

use std::sync::Arc;

use ringer::provider::fake::FakeRecognizer;
use ringer::provider::{Recognized, Recognizer, RecognizerFeed, SpokenIn, Status};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::house::House;
use super::runs::sip;
use crate::peers::Peer;

/// Hears every language as English.
#[derive(Default)]
struct EnglishAlone(FakeRecognizer);

impl Recognizer for EnglishAlone {
    fn supports(&self, language: &str, rate_hz: u32) -> Result<(), String> {
        self.0.supports(language, rate_hz)
    }

    fn identifies(&self) -> Result<(), String> {
        Err("it knows English alone".into())
    }

    fn open(
        &self,
        language: SpokenIn<'_>,
        keyterms: &[String],
    ) -> (Box<dyn RecognizerFeed>, mpsc::Receiver<Recognized>) {
        self.0.open(language, keyterms)
    }

    fn status(&self) -> Status {
        self.0.status()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_language_that_nothing_can_identify_is_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let house = House::of(folder, 20, &[], None, Arc::new(EnglishAlone::default())).await;
    let peer = Peer::answering(2);
    let humans = [json!({ "language": "ad" }), json!({ "language": "en" })];
    let (_, ids) = house.queue(sip(&peer), json!({ "max_concurrent": 1 }), &humans).await;
    let mut found = Vec::new();
    for id in &ids {
        house.events(id).await;
        let metadata = house.result(id).await["metadata"].clone();
        assert_eq!((&metadata["behaviour"]["language"], &metadata["languages"]), (&json!("en"), &Value::Null));
        let warnings = metadata["warnings"].as_array().cloned().unwrap_or_default();
        let warnings = warnings.iter().filter_map(Value::as_str).filter(|text| text.starts_with("language"));
        found.push((metadata["behaviour"]["follows_language"].clone(), warnings.map(String::from).collect::<Vec<_>>()));
    }
    let expect = [
        "language: the intent is said as it is written: only a model speaks the agent's language",
        "language: the agent's language was not identified, English was spoken: it knows English alone",
    ];
    found.sort_by_key(|(follows, _)| !follows.as_bool().unwrap_or_default());
    assert_eq!(found, [(json!(true), expect.map(String::from).to_vec()), (json!(false), vec![])]);
    peer.end();
    house.stop().await;
}
