//! A caller that follows the agent's language, on real sockets.

use std::sync::Arc;

use ringer::engine::Speech;
use ringer::human::phrases;
use ringer::provider::fake::FakeRecognizer;
use ringer_media::call::{CallSpec, EndReason};

use super::pair::call;
use super::{CALLER, desk, embedded_speech, spec};

const ES: &str = "claro en qué día de la semana le gustaría venir a vernos";

#[tokio::test(flavor = "multi_thread")]
async fn what_is_heard_tells_the_language() {
    let speech = embedded_speech();
    // As many as there may be stretches of speech.
    let recognizer = Arc::new(FakeRecognizer::new(&[ES; 20], i64::MAX));
    let ours = Speech { synthesizer: speech.clone(), recognizer };
    let spec = CallSpec { follows_language: true, phrases: phrases::call_phrases("en"), ..spec() };
    let outcome = call(&speech, ours, spec, CALLER, desk()).await;
    assert_eq!(outcome.report.ending.reason, EndReason::AgentHangup, "{:?}", outcome.report.ending);
    let taken: Vec<_> = outcome.events("language.taken", "engine").collect();
    let [taken] = taken.as_slice() else { panic!("{taken:?}") };
    assert_eq!((&taken.data()["language"], &taken.data()["by"]), (&"es".into(), &"text".into()));
    let turn = outcome.events("turn.ended", "agent").next().expect("the agent spoke");
    assert_eq!(taken.data()["from_sample"], turn.data()["from_sample"], "the first turn decides");
    let answer = outcome.events("speech.started", "dh").next().expect("the caller answered");
    assert!(taken.sample <= answer.sample, "its first words follow already: {taken:?} {answer:?}");
    assert!(
        !outcome.report.warnings.iter().any(|warning| warning.starts_with("language")),
        "{:?}",
        outcome.report.warnings
    );
}
