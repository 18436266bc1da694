//! Calls of tools that a pipeline tells of in parts: name and arguments first, the result later.

use std::collections::VecDeque;
use std::time::Duration;

use ringer_media::call::ToolCall;
use ringer_media::time::Time;
use serde_json::Value;

use crate::transport::pipeline::rtvi::{ToolNews, ToolPhase};

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
    waiting: VecDeque<(Time, Option<String>, ToolCall)>,
}

impl Tools {
    /// Takes news of a call. Returns the call that is complete by them.
    pub(super) fn take(&mut self, now: Time, news: ToolNews) -> Option<ToolCall> {
        match news.phase {
            // Its arguments follow.
            ToolPhase::Started => None,
            ToolPhase::InProgress => {
                self.waiting.push_back((now, news.id.clone(), call_of(news)));
                if self.waiting.len() > MAX_WAITING { self.waiting.pop_front().map(|(_, _, call)| call) } else { None }
            }
            ToolPhase::Stopped => {
                let at = self.waiting.iter().position(|(_, id, call)| match &news.id {
                    Some(_) => *id == news.id,
                    None => news.name.as_deref() == Some(&call.name),
                });
                let known = at.and_then(|at| self.waiting.remove(at)).map(|(_, _, call)| call);
                let told = call_of(news);
                Some(match known {
                    Some(known) => ToolCall { output: told.output, ..known },
                    None => told,
                })
            }
        }
    }

    /// Returns the calls that have waited for too long.
    pub(super) fn late(&mut self, now: Time) -> Vec<ToolCall> {
        let is_late = |from: Time| now.since(from) >= RESULT_WITHIN;
        std::iter::from_fn(|| self.waiting.pop_front_if(|(from, ..)| is_late(*from))).map(|(_, _, call)| call).collect()
    }

    /// Returns all calls that wait.
    pub(super) fn all(&mut self) -> Vec<ToolCall> {
        self.waiting.drain(..).map(|(_, _, call)| call).collect()
    }
}

fn call_of(news: ToolNews) -> ToolCall {
    ToolCall {
        name: news.name.unwrap_or_else(|| UNNAMED.to_owned()).into(),
        parameters: news.arguments.unwrap_or(Value::Null),
        output: news.result.unwrap_or(Value::Null),
        source: Some(SOURCE.into()),
    }
}
