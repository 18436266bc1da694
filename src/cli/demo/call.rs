//! One call of the demonstration: followed while it lasts, and what is left of it.

use std::io::IsTerminal;

use indicatif::ProgressBar;
use ringer_media::call::{Event, EventKind, Side, TimelineEntry};
use ringer_media::clip::Clip;
use ringer_media::frame::PER_MS;
use ringer_media::measure::Span;
use serde::Deserialize;
use serde_json::Value;

use super::api::Api;
use super::cast::Shows;
use crate::cli::lines::{Lines, Style};
use crate::judge;
use crate::model::time::Timestamp;

/// A call that is over.
pub(crate) struct Call {
    /// Name of the caller.
    pub name: &'static str,
    /// Behaviour that the call is to show.
    pub shows: Shows,
    /// Id of its result.
    pub result_id: String,
    /// Result record as the API returned it.
    pub result: Value,
    /// The events of its timeline.
    pub timeline: Vec<TimelineEntry>,
    /// The entries of its transcript.
    pub transcript: Vec<Value>,
    /// Samples of the caller (left) and of the agent (right); empty when there is no recording.
    pub recording: [Vec<i16>; 2],
}

impl Call {
    /// Returns a call of which nothing is known.
    #[cfg(test)]
    pub(super) fn empty(name: &'static str) -> Call {
        Call {
            name,
            shows: Shows::Script,
            result_id: String::new(),
            result: Value::Null,
            timeline: Vec::new(),
            transcript: Vec::new(),
            recording: Default::default(),
        }
    }

    /// Follows the result's events to their end, each turn told by `tell`, and fetches what is left.
    pub(crate) async fn follow(
        api: &Api,
        (name, shows): (&'static str, Shows),
        result_id: &str,
        bar: &ProgressBar,
        tell: impl Fn(String),
    ) -> Result<Call, String> {
        let mut events = api.events(result_id).await?;
        // Lines stand on standard error where that is a terminal.
        let mut lines = Lines::new(name, Style::of(std::io::stderr().is_terminal()));
        while let Some((event, data)) = events.next().await? {
            match event.as_str() {
                "status" => bar.set_message(data["status"].as_str().unwrap_or_default().to_owned()),
                "end" => break,
                _ => {
                    bar.set_message(event.clone());
                    if let Some(line) = Event::deserialize(&data).ok().and_then(|event| lines.line(&event)) {
                        tell(format!("{name:>7} | {line}"));
                    }
                }
            }
            bar.tick();
        }
        let path = |part: &str| format!("/v1/simulation-result/{result_id}/{part}");
        let record = api.get(&format!("/v1/retrieve-simulation-result/{result_id}")).await?;
        let mut call = Call {
            name,
            shows,
            result_id: result_id.to_owned(),
            result: record["simulation_result"].clone(),
            timeline: Vec::new(),
            transcript: Vec::new(),
            recording: Default::default(),
        };
        if let Ok(timeline) = api.get(&path("timeline")).await {
            call.timeline = judge::moments(&timeline["events"]);
        }
        if let Ok(transcript) = api.get(&path("transcript")).await {
            call.transcript = transcript["entries"].as_array().cloned().unwrap_or_default();
        }
        for (channel, pcm) in call.recording.iter_mut().enumerate() {
            if let Ok(file) = api.file(&path(&format!("recording?channel={channel}"))).await {
                *pcm = Clip::from_wav(&file).map(|clip| clip.pcm).unwrap_or_default();
            }
        }
        Ok(call)
    }

    /// Returns the status of the result.
    pub(crate) fn status(&self) -> &str {
        self.result["status"].as_str().unwrap_or("unknown")
    }

    /// Returns the events of this name.
    pub(crate) fn events_named<'a>(&'a self, event: &'a str) -> impl Iterator<Item = &'a TimelineEntry> {
        self.timeline.iter().filter(move |entry| entry.name() == event)
    }

    /// Returns the spans in which the caller spoke, in samples.
    pub(crate) fn own_speech(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut from = None;
        for entry in &self.timeline {
            match entry.reading() {
                EventKind::SpeechStarted { .. } => from = Some(entry.sample),
                EventKind::SpeechEnded { .. } => spans.extend(from.take().map(|from| Span { from, to: entry.sample })),
                _ => {}
            }
        }
        spans
    }

    /// Returns the ends of the caller's words and digits, in ascending order, in milliseconds from connect.
    pub(crate) fn own_ends_ms(&self) -> Vec<f64> {
        let digits = self.timeline.iter().filter_map(|entry| match entry.reading() {
            EventKind::DtmfSent { duration_ms, .. } => Some(entry.offset_ms() + f64::from(*duration_ms)),
            _ => None,
        });
        let mut ends: Vec<f64> =
            self.own_speech().iter().map(|span| span.to as f64 / PER_MS as f64).chain(digits).collect();
        ends.sort_by(f64::total_cmp);
        ends
    }

    /// Returns the time of connection, in milliseconds since 1970.
    pub(crate) fn connected_ms(&self) -> Option<f64> {
        Some(Timestamp::parse(self.result["start_time"].as_str()?)?.0 as f64)
    }

    /// Returns the digits that the caller pressed, in order.
    pub(crate) fn digits(&self) -> String {
        let digit = |entry: &TimelineEntry| match entry.reading() {
            EventKind::DtmfSent { digit, .. } => Some(*digit),
            _ => None,
        };
        self.timeline.iter().filter_map(digit).collect()
    }

    /// Returns the latency of each of the agent's turns, in milliseconds.
    pub(crate) fn latencies_ms(&self) -> Vec<f64> {
        let seconds = self.result["latency"].as_array();
        seconds.map_or_else(Vec::new, |all| all.iter().filter_map(Value::as_f64).map(|s| s * 1000.0).collect())
    }

    /// Returns the times until a side that was interrupted fell silent, in milliseconds; `by` interrupted.
    pub(crate) fn stops_ms(&self, cutting: Side) -> Vec<i64> {
        let stop = |entry: &TimelineEntry| match entry.reading() {
            EventKind::BargeIn { by, stop_ms, .. } if *by == cutting => stop_ms.map(i64::from),
            _ => None,
        };
        self.timeline.iter().filter_map(stop).collect()
    }
}
