//! Calls of tools that a pipeline tells of in parts: name and arguments first, the result later.

use std::collections::VecDeque;
use std::time::Duration;

use ringer_media::call::ChannelEvent;
use ringer_media::time::Time;
use serde_json::Value;

use crate::pipeline::rtvi::{ToolNews, ToolPhase};

/// Calls that may wait for their results.
const MAX_WAITING: usize = 64;

/// Time after which a call is told without its result.
const RESULT_WITHIN: Duration = Duration::from_secs(10);

/// Name of a tool that the pipeline does not tell.
const UNNAMED: &str = "(not told)";

/// Source of the calls, as timelines tell it.
const SOURCE: &str = "pipeline";

/// Calls whose results are not known yet, in order.
#[derive(Debug, Default)]
pub(super) struct Tools {
    /// Beginning of the call.
    since: Time,
    waiting: VecDeque<(Time, ToolNews)>,
}

impl Tools {
    /// Takes note of the beginning of the call.
    pub(super) fn begin(&mut self, now: Time) {
        self.since = now;
    }

    /// Takes news of a call. Returns the call that is complete by them.
    pub(super) fn take(&mut self, now: Time, news: ToolNews) -> Option<ChannelEvent> {
        match news.phase {
            // Its arguments follow.
            ToolPhase::Started => None,
            ToolPhase::InProgress => {
                self.waiting.push_back((now, news));
                let oldest = if self.waiting.len() > MAX_WAITING { self.waiting.pop_front() } else { None };
                oldest.map(|call| self.event_of(call))
            }
            ToolPhase::Stopped => {
                let is_same = |known: &ToolNews| match &news.id {
                    Some(_) => known.id == news.id,
                    None => known.name == news.name,
                };
                let at = self.waiting.iter().position(|(_, known)| is_same(known));
                let known = at.and_then(|at| self.waiting.remove(at));
                let (at, known) = known.unwrap_or((now, news.clone()));
                Some(self.event_of((at, ToolNews { result: news.result, ..known })))
            }
        }
    }

    /// Returns the calls that have waited for too long.
    pub(super) fn late(&mut self, now: Time) -> Vec<ChannelEvent> {
        let is_late = |from: Time| now.since(from) >= RESULT_WITHIN;
        let late: Vec<_> = std::iter::from_fn(|| self.waiting.pop_front_if(|(from, _)| is_late(*from))).collect();
        late.into_iter().map(|call| self.event_of(call)).collect()
    }

    /// Returns all calls that wait.
    pub(super) fn all(&mut self) -> Vec<ChannelEvent> {
        std::mem::take(&mut self.waiting).into_iter().map(|call| self.event_of(call)).collect()
    }

    /// Returns the event of a call, at the time at which it was told of first.
    fn event_of(&self, (at, news): (Time, ToolNews)) -> ChannelEvent {
        ChannelEvent::ToolCalled {
            name: news.name.unwrap_or_else(|| UNNAMED.to_owned()).into(),
            parameters: news.arguments.unwrap_or(Value::Null),
            output: news.result.unwrap_or(Value::Null),
            source: SOURCE.into(),
            at_ms: u32::try_from(at.since(self.since).as_millis()).ok(),
        }
    }
}
