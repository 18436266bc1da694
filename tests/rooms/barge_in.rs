//! Calls to a pipeline in which one side cuts in on the other.

use ringer::engine::CallReport;
use ringer_media::call::{EventKind, Interruption, Opening};

use super::calls::{INTENT, channel_events, has, placement};
use super::pipelines::bot;
use crate::calls::stage::{Stage, names};

/// Milliseconds from each onset of `by` until the other side was silent.
pub(super) fn stops(report: &CallReport, by: &str) -> Vec<Option<i64>> {
    let cuts = report.timeline.iter().filter(|entry| entry.name() == "barge_in" && entry.data()["by"] == by);
    cuts.map(|entry| entry.data()["stop_ms"].as_i64()).collect()
}

/// Texts that were said by this side, and whether each was cut off.
fn words_of(report: &CallReport) -> Vec<(&str, bool)> {
    let ended = report.timeline.iter().filter_map(|entry| match &entry.what {
        EventKind::SpeechEnded { text, interrupted, .. } => Some((text.as_str(), *interrupted)),
        _ => None,
    });
    ended.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_caller_gives_way_to_a_pipeline_that_cuts_in() {
    let (bot, stage) = (bot(&["--cuts-in"]).await, Stage::new().await);
    let mut placement = placement(&stage, &bot.base, 7000);
    placement.spec.extension = None;
    let report = stage.call(placement).await.expect("a place is free");
    let events = names(&report).join(" ");
    let stops = stops(&report, "agent");
    assert!(matches!(stops[0], Some(stop) if stop <= 400), "{stops:?} {events}");
    let (words, was_cut) = words_of(&report)[0];
    assert!(was_cut && words.len() < INTENT.len() && INTENT.starts_with(words), "{words}: {events}");
    stage.engine.stop().await;
}

/// Tests of the time within which an agent stops.
mod alone {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_pipeline_that_is_cut_in_on_gives_way() {
        let (bot, stage) = (bot(&["--yields"]).await, Stage::new().await);
        let mut placement = placement(&stage, &bot.base, 8000);
        placement.spec.opening = Opening::Say("Good morning.".to_owned());
        placement.spec.extension = None;
        placement.spec.interruption =
            Interruption::Level { name: "level", probability: 1.0, from_ms: 1500, to_ms: 1600, at_most: Some(1) };
        let report = stage.call(placement).await.expect("a place is free");
        let events = names(&report).join(" ");
        // It stops after 200 ms of the caller's words; two jitter buffers and a busy machine are allowed for.
        assert!(matches!(stops(&report, "dh")[..], [Some(stop)] if (200..=900).contains(&stop)), "{events}");
        let words = words_of(&report);
        assert_eq!(words[0], ("Good morning.", false));
        assert!(!words[1].0.is_empty() && !words[1].1, "the caller keeps the floor: {words:?}");
        assert!(has(&report, "agent_interrupted"), "{:?}", channel_events(&report));
        stage.engine.stop().await;
    }
}
