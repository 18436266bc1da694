//! Requests to platforms before a call or a conversation: access tokens, and the session.

use ringer_base::clock::Clock;
use ringer_base::post::{NotPosted, Posted, Poster, Posting, RESULT_ID};
use ringer_model::error_code::{ErrorCode, PlatformFault};
use ringer_transport::websocket::platform::adapter::{SessionReply, SessionRequest};
use ringer_transport::websocket::port::DialRules;

use super::tokens::{NoToken, Tokens};
use super::{ANSWER_BYTES, PATIENCE, SessionPlan};
use crate::placement::{Obstacle, Placements};

/// Longest wait that a platform may ask for, in milliseconds.
const LONGEST_WAIT_MS: i64 = 60_000;

/// A request to a platform.
pub(in crate::placement) struct Asking<'a> {
    /// Makes the request by what the platform is told.
    pub make: &'a (dyn Fn(&SessionPlan) -> Result<SessionRequest, String> + Send + Sync),
    /// Result that a header of the request holds.
    pub result_id: Option<i64>,
    /// Longest answer that is read, in bytes.
    pub answer_bytes: usize,
}

/// Reason why a request was not sent, or not answered.
pub(in crate::placement) enum NotSent {
    /// There is no access token.
    NoToken(Obstacle),
    /// A value cannot stand where the settings put it.
    NotMade(String),
    /// There was no answer.
    NotPosted(NotPosted),
}

/// Means of asking platforms.
pub(in crate::placement) struct Asker<'a> {
    /// Access tokens that are kept.
    pub tokens: &'a Tokens,
    /// Clock of the waits.
    pub clock: &'a Clock,
    /// Number of repeats, and the waits before them.
    pub rules: &'a DialRules,
}

impl Placements {
    /// Returns the means of asking the platforms of calls and conversations.
    pub(in crate::placement) fn asker(&self) -> Asker<'_> {
        Asker { tokens: &self.tokens, clock: &self.clock, rules: &self.settings.sockets.rules }
    }
}

impl Asker<'_> {
    /// Sets the time of the requests, and the access token that they need; returns true if that token was kept from
    /// earlier ones. `renewed`: a kept one is not used, nor is it where the plan says so.
    pub(in crate::placement) async fn authorize(
        &self,
        plan: &mut SessionPlan,
        poster: &Poster,
        renewed: bool,
    ) -> Result<bool, Obstacle> {
        use PlatformFault::{AuthFailed, SessionSetupFailed};
        plan.facts.now_s = self.clock.now_ms().div_euclid(1000);
        let grant = plan.adapter.grant(&plan.facts).map_err(|why| plan.obstacle(AuthFailed, why))?;
        let Some(grant) = grant else { return Ok(false) };
        let renewed = renewed || plan.renews;
        let given = self.tokens.token(&grant, poster, self.clock, renewed).await;
        let (token, is_new) = given.map_err(|none| match none {
            NoToken::Refused(why) => plan.obstacle(AuthFailed, why),
            NoToken::NotGiven(why) => plan.obstacle(SessionSetupFailed, why),
            NoToken::NotAsked(why) => Obstacle::new(ErrorCode::BridgePreStartFailed, why),
        })?;
        (plan.facts.bearer, plan.renews) = (Some(token), false);
        Ok(!is_new)
    }

    /// Sends a request of a plan whose access token is set. Where that token was kept and the platform refuses it, the
    /// request is sent once more with a fresh one.
    pub(in crate::placement) async fn send(
        &self,
        plan: &mut SessionPlan,
        poster: &Poster,
        is_kept: bool,
        asking: &Asking<'_>,
    ) -> Result<Posted, NotSent> {
        let mut may_have_expired = is_kept;
        loop {
            let SessionRequest { method, url, headers, body } = (asking.make)(plan).map_err(NotSent::NotMade)?;
            let id = asking.result_id.map(|id| (RESULT_ID, id.to_string()));
            let own = headers.iter().map(|(name, value)| (name.as_str(), value.clone()));
            let headers: Vec<(&str, String)> = own.chain(id).collect();
            let (url, method, answer_bytes) = (&url[..], &method[..], asking.answer_bytes);
            let posting = Posting { method, url, headers: &headers, body, patience: PATIENCE, answer_bytes };
            let posted = poster.exchange(posting).await.map_err(NotSent::NotPosted)?;
            if posted.status != 401 || !may_have_expired {
                return Ok(posted);
            }
            may_have_expired = false;
            self.authorize(plan, poster, true).await.map_err(NotSent::NoToken)?;
        }
    }

    /// Sends the request for a session, again where the platform is busy. `is_kept`: its access token was kept.
    pub(in crate::placement) async fn ask(
        &self,
        plan: &mut SessionPlan,
        poster: &Poster,
        is_kept: bool,
    ) -> Result<SessionReply, Obstacle> {
        use PlatformFault::{AuthFailed, SessionSetupFailed};
        if !plan.adapter.needs_session() {
            return Ok(SessionReply::default());
        }
        let make = |plan: &SessionPlan| {
            let request = plan.adapter.session_request(&plan.facts)?;
            request.ok_or_else(|| "session_url is not set".to_owned())
        };
        let asking = Asking { make: &make, result_id: None, answer_bytes: ANSWER_BYTES };
        let waits = &self.rules.backoff_ms;
        for attempt in 0..=self.rules.retries as usize {
            let sent = self.send(plan, poster, is_kept, &asking).await;
            let Posted { status, body, retry_after_s } = sent.map_err(|not| not_asked(plan, not))?;
            match status {
                200..=299 => {
                    let read = plan.adapter.read_session(&body);
                    return read.map_err(|why| plan.obstacle(SessionSetupFailed, format!("session_url: {why}")));
                }
                401 | 403 => {
                    let message = format!("session_url answered {status}: the credentials are refused");
                    return Err(plan.obstacle(AuthFailed, message));
                }
                // These statuses say that no session was made.
                429 | 503 => {
                    let wait = waits.get(attempt).or(waits.last()).copied().unwrap_or_default();
                    if attempt < self.rules.retries as usize {
                        let wait_ms = wait_ms(i64::from(wait), retry_after_s);
                        self.clock.until(self.clock.now_ms() + wait_ms).await;
                    }
                }
                status => return Err(plan.obstacle(SessionSetupFailed, format!("session_url answered {status}"))),
            }
        }
        let message = "session_url: the platform takes no further call at present (429 or 503)";
        Err(Obstacle::new(ErrorCode::CustomerConcurrencyLimit, message))
    }
}

/// Returns the wait before a request is repeated, in milliseconds: `own`, or the longer one that the platform asks for.
pub(in crate::placement) fn wait_ms(own: i64, retry_after_s: Option<u64>) -> i64 {
    let asked_ms = retry_after_s.map_or(0, |wait| i64::try_from(wait).unwrap_or(i64::MAX).saturating_mul(1000));
    asked_ms.min(LONGEST_WAIT_MS).max(own)
}

fn not_asked(plan: &SessionPlan, not: NotSent) -> Obstacle {
    use PlatformFault::SessionSetupFailed;
    match not {
        NotSent::NoToken(why) => why,
        NotSent::NotMade(why) => plan.obstacle(SessionSetupFailed, why),
        NotSent::NotPosted(failed) if failed.is_own => Obstacle::new(ErrorCode::BridgePreStartFailed, failed.why),
        NotSent::NotPosted(failed) => plan.obstacle(SessionSetupFailed, format!("session_url: {}", failed.why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_platform_may_ask_for_a_longer_wait() {
        for (own, asked_s, expect) in
            [(500, None, 500), (500, Some(3), 3000), (2000, Some(1), 2000), (500, Some(u64::MAX), LONGEST_WAIT_MS)]
        {
            assert_eq!(wait_ms(own, asked_s), expect, "{asked_s:?}");
        }
    }
}
