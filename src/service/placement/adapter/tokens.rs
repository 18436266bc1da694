//! Access tokens of service accounts (RFC 7523), kept until shortly before they end.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use ringer_base::clock::Clock;
use ringer_base::post::{NotPosted, Posted, Poster, Posting};
use ringer_transport::websocket::platform::auth::Grant;

/// Time before the end of a token at which it is no longer used, in milliseconds.
const MARGIN_MS: i64 = 60_000;
/// Largest number of tokens that are kept.
const MOST: usize = 1000;
/// Time limit of the request, and its answer together.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest answer that is read, in bytes.
const ANSWER_BYTES: usize = 64 * 1024;

/// A token, and the time in milliseconds since 1970 until which it is used.
struct Kept {
    token: String,
    until_ms: i64,
}

/// Reason why there is no token.
#[derive(Clone, Debug)]
pub(super) enum NoToken {
    /// The account is refused.
    Refused(String),
    /// The endpoint gives none at present, or a wrong answer.
    NotGiven(String),
    /// This machine could not ask.
    NotAsked(String),
}

/// Token of one account. It is locked while it is fetched: whoever comes meanwhile waits for the outcome.
#[derive(Default)]
struct Place {
    /// Number of requests that are over.
    fetched: AtomicU64,
    /// Outcome of the last request.
    last: tokio::sync::Mutex<Option<Result<Kept, NoToken>>>,
}

/// Tokens of all organizations, by the hash of account and scope.
#[derive(Default)]
pub(in crate::placement) struct Tokens(Mutex<HashMap<String, Arc<Place>>>);

impl Tokens {
    /// Returns the token of an account, and true if it was fetched now. `renewed`: a kept one is not used. Whoever
    /// waited for a request of somebody else gets its outcome, a failure too.
    pub(super) async fn token(
        &self,
        grant: &Grant,
        poster: &Poster,
        clock: &Clock,
        renewed: bool,
    ) -> Result<(String, bool), NoToken> {
        let place = self.place(&grant.name);
        let before = place.fetched.load(Ordering::Acquire);
        let mut last = place.last.lock().await;
        let is_fresh = place.fetched.load(Ordering::Acquire) != before;
        match &*last {
            Some(Err(why)) if is_fresh => return Err(why.clone()),
            Some(Ok(kept)) if is_fresh || (!renewed && clock.now_ms() < kept.until_ms) => {
                return Ok((kept.token.clone(), is_fresh));
            }
            _ => {}
        }
        let fetched = fetch(grant, poster, clock).await;
        let token = fetched.as_ref().map(|kept| (kept.token.clone(), true)).map_err(Clone::clone);
        *last = Some(fetched);
        place.fetched.fetch_add(1, Ordering::Release);
        token
    }

    fn place(&self, name: &str) -> Arc<Place> {
        let mut places = self.0.lock();
        if places.len() >= MOST && !places.contains_key(name) {
            // Places that somebody holds are in use.
            places.retain(|_, place| Arc::strong_count(place) > 1);
        }
        match places.len() < MOST {
            true => places.entry(name.to_owned()).or_default().clone(),
            false => places.get(name).cloned().unwrap_or_default(),
        }
    }
}

/// Asks for a token.
async fn fetch(grant: &Grant, poster: &Poster, clock: &Clock) -> Result<Kept, NoToken> {
    let now_ms = clock.now_ms();
    let body = grant.form(now_ms.div_euclid(1000)).map_err(NoToken::Refused)?;
    let headers = [("Content-Type", "application/x-www-form-urlencoded".to_owned())];
    let (url, patience, answer_bytes) = (grant.url.as_str(), PATIENCE, ANSWER_BYTES);
    let posting = Posting { method: "POST", url, headers: &headers, body, patience, answer_bytes };
    let Posted { status, body, .. } = poster.exchange(posting).await.map_err(not_asked)?;
    match status {
        200..=299 => {
            let given = grant.parse_token(&body).map_err(NoToken::NotGiven)?;
            let until_ms = now_ms.saturating_add(given.lasts_s.saturating_mul(1000)) - MARGIN_MS;
            Ok(Kept { token: given.text, until_ms })
        }
        // An account that is unknown, or a signature that is wrong, is a bad request (RFC 6749 5.2).
        400 | 401 | 403 => Err(NoToken::Refused(format!("token_uri answered {status}: the credentials are refused"))),
        status => Err(NoToken::NotGiven(format!("token_uri answered {status}"))),
    }
}

fn not_asked(failed: NotPosted) -> NoToken {
    match failed.is_own {
        true => NoToken::NotAsked(failed.why),
        false => NoToken::NotGiven(format!("token_uri: {}", failed.why)),
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;
    use ringer_base::guard::Guard;
    use ringer_base::testing::WebServer;
    use ringer_transport::websocket::platform::adapter::{Adapter, Facts, Names};
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn one_outcome_answers_all_who_wait_for_it() {
        let given = "HTTP/1.1 200 X\r\ncontent-length: 23\r\nconnection: close\r\n\r\n{\"access_token\":\"abcd\"}";
        let failed = "HTTP/1.1 500 X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        for (answer, expect) in [(given, Some("abcd")), (failed, None)] {
            let server = WebServer::start(move |_| answer.as_bytes().to_vec()).await.expect("loopback has a free port");
            let table = json!({ "transport": "websocket", "url": "wss://h.example/", "auth": "service_account" });
            let table = table.as_object().expect("an object was written");
            let adapter = Adapter::parse("P7", table, &Names::default()).expect("it is good");
            let account = json!({ "client_email": "a@b.example", "token_uri": server.url("/token"),
                "private_key": include_str!("../../../../fixtures/keys/service_account.pem") });
            let integration = json!({ "key": account }).as_object().expect("an object was written").clone();
            let facts = Facts { integration, ..Facts::default() };
            let grant = adapter.grant(&facts).expect("it is good").expect("one is needed");
            let poster = Poster::new(Guard::new(true), PATIENCE);
            let (tokens, clock) = (Tokens::default(), Clock::Real);
            let ask = || tokens.token(&grant, &poster, &clock, true);
            for asked in 1..=2 {
                let outcomes = join_all((0..20).map(|_| ask())).await;
                for outcome in outcomes {
                    assert_eq!(outcome.ok(), expect.map(|text| (text.to_owned(), true)));
                }
                assert_eq!(server.paths().len(), asked, "those who come later ask anew");
            }
        }
    }
}
