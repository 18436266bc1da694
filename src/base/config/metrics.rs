//! `[metrics]`: words and times of built-in metrics, and who may read `/metrics`.

use ringer_media::measure::{ProbeTimes, YieldTimes};
use serde::Serialize;

use super::Source;

/// Settings of the section `[metrics]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Metrics {
    /// True if `/metrics` needs no key.
    pub public: bool,
    /// Filler phrases of agents, in addition to the built-in list.
    pub filler_phrases: Vec<String>,
    /// Times of the verdict on an agent that hears a sound which asks for no reaction.
    pub probe: ProbeTimes,
    /// Times of the verdict on an agent that is interrupted.
    #[serde(rename = "yield")]
    pub yielding: YieldTimes,
}

impl Metrics {
    pub(super) fn read(&mut self, from: &mut Source) {
        from.boolean("metrics.public", &mut self.public);
        from.list("metrics.filler_phrases", &mut self.filler_phrases);
        let probe = &mut self.probe;
        from.whole("metrics.probe.spoken_ms", 0..=10_000, &mut probe.spoken_ms);
        from.whole("metrics.probe.silence_ms", 100..=10_000, &mut probe.silence_ms);
        from.whole("metrics.probe.from_ms", 0..=1000, &mut probe.from_ms);
        from.whole("metrics.probe.to_ms", 1000..=10_000, &mut probe.to_ms);
        from.whole("metrics.yield.within_ms", 300..=10_000, &mut self.yielding.within_ms);
    }
}
