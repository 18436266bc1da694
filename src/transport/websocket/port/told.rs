//! Report of a port at the end of its call, besides the end itself.

use serde_json::Value;

use super::{AgentError, WebSocketPort};

/// Messages of the other side that this side refused, by code.
#[derive(Debug, Default)]
pub(super) struct Refused {
    counts: Vec<(&'static str, u32)>,
}

impl Refused {
    /// Counts a message by the code of its refusal.
    pub(super) fn count(&mut self, code: &'static str) {
        match self.counts.iter_mut().find(|(known, _)| *known == code) {
            Some((_, count)) => *count += 1,
            None => self.counts.push((code, 1)),
        }
    }

    /// Returns one warning about all of them; `None` when there were none.
    fn warning(&self) -> Option<String> {
        let all: u32 = self.counts.iter().map(|(_, count)| count).sum();
        let noun = if all == 1 { "message" } else { "messages" };
        let codes = match &self.counts[..] {
            [] => return None,
            [(code, _)] => (*code).to_owned(),
            several => several.iter().map(|(code, count)| format!("{code} in {count}")).collect::<Vec<_>>().join(", "),
        };
        Some(format!("{all} {noun} refused, {codes}"))
    }
}

impl WebSocketPort {
    /// Returns the errors that the other side told of.
    pub fn agent_errors(&self) -> &[AgentError] {
        &self.errors
    }

    /// Returns the values that the agent handed over at the end.
    pub fn variables(&self) -> Option<&Value> {
        self.variables.as_ref()
    }

    /// Returns the warning about the other side's messages that were refused; `None` when none was.
    pub fn refused_warning(&self) -> Option<String> {
        self.refused.warning()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_messages_are_one_warning() {
        for (codes, expect) in [
            (&[][..], None),
            (&["NOT_JSON"], Some("1 message refused, NOT_JSON")),
            (&["BAD_BASE64", "BAD_BASE64"], Some("2 messages refused, BAD_BASE64")),
            (&["BAD_BASE64", "NOT_JSON", "BAD_BASE64"], Some("3 messages refused, BAD_BASE64 in 2, NOT_JSON in 1")),
        ] {
            let mut refused = Refused::default();
            codes.iter().for_each(|code| refused.count(code));
            assert_eq!(refused.warning().as_deref(), expect);
        }
    }
}
