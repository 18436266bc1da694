//! Rate limits: a token bucket for each key and route. Time comes from the service's clock; nothing waits.

use std::collections::{BTreeMap, HashMap};

use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::response::Response;
use parking_lot::Mutex;
use serde_json::json;
use uuid::Uuid;

use crate::endpoint::Endpoint;
use crate::response::{JSON, respond};

/// Most buckets that are kept; above it full ones are dropped, which changes nothing for their keys.
const MAX_BUCKETS: usize = 10_000;

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// Requests a minute of one key on one route; 0: no limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Limit of routes that ask a language model.
    pub generation_per_minute: u32,
    /// Limit of all other routes.
    pub default_per_minute: u32,
    /// Limits of single routes by method and path template (`POST /v1/add-agent`), which win over the two above.
    pub routes: BTreeMap<String, u32>,
}

impl Default for Rates {
    fn default() -> Rates {
        Rates { generation_per_minute: 100, default_per_minute: 0, routes: BTreeMap::new() }
    }
}

impl Rates {
    /// Returns the limit of a route in requests a minute; 0: none.
    pub fn of(&self, endpoint: &Endpoint) -> u32 {
        let own = self.routes.get(&endpoint.name());
        let kind = if endpoint.generates { self.generation_per_minute } else { self.default_per_minute };
        own.copied().unwrap_or(kind)
    }
}

/// Remaining requests of a key on a route.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quota {
    limit: u32,
    left: f64,
    /// False: this request exceeds the limit.
    pub allowed: bool,
}

impl Quota {
    fn seconds(self, tokens: f64) -> u64 {
        (tokens * 60.0 / f64::from(self.limit)).ceil().max(0.0) as u64
    }

    /// Writes the quota into the headers of an answer.
    pub fn show(self, response: &mut Response) {
        let headers = response.headers_mut();
        headers.insert(LIMIT, HeaderValue::from(self.limit));
        headers.insert(REMAINING, HeaderValue::from(self.left as u32));
        headers.insert(RESET, HeaderValue::from(self.seconds(f64::from(self.limit) - self.left)));
    }

    /// Returns the answer to a request that exceeds the limit.
    pub fn refusal(self) -> Response {
        let seconds = self.seconds(1.0 - self.left).max(1);
        let body = json!({ "detail": "Rate limit exceeded", "retry_after": seconds });
        let mut response = respond(StatusCode::TOO_MANY_REQUESTS, JSON, body.to_string());
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        self.show(&mut response);
        response
    }
}

struct Bucket {
    limit: u32,
    left: f64,
    at_ms: i64,
}

impl Bucket {
    fn refill(&self, now_ms: i64) -> f64 {
        let refill = (now_ms - self.at_ms).max(0) as f64 * f64::from(self.limit) / 60_000.0;
        (self.left + refill).min(f64::from(self.limit))
    }
}

/// Token buckets of all keys, by method and path template.
#[derive(Default)]
pub struct Buckets {
    buckets: Mutex<HashMap<(Uuid, Method, &'static str), Bucket>>,
}

impl Buckets {
    /// Takes a token of `key` for a route with `limit` requests a minute; `None`: there is no limit.
    pub fn take(&self, key: Uuid, method: Method, path: &'static str, limit: u32, now_ms: i64) -> Option<Quota> {
        if limit == 0 {
            return None;
        }
        let mut buckets = self.buckets.lock();
        if buckets.len() >= MAX_BUCKETS {
            buckets.retain(|_, bucket| bucket.refill(now_ms) < f64::from(bucket.limit));
        }
        let full = || Bucket { limit, left: f64::from(limit), at_ms: now_ms };
        let bucket = buckets.entry((key, method, path)).or_insert_with(full);
        bucket.left = bucket.refill(now_ms);
        bucket.at_ms = now_ms;
        let allowed = bucket.left >= 1.0;
        if allowed {
            bucket.left -= 1.0;
        }
        Some(Quota { limit, left: bucket.left, allowed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_empties_and_refills() {
        let buckets = Buckets::default();
        let take =
            |key: u128, now_ms| buckets.take(Uuid::from_u128(key), Method::POST, "/x", 3, now_ms).expect("limited");
        // Key, time, allowed, tokens left, seconds until the next.
        for (key, now_ms, allowed, left) in [
            (1, 0, true, 2.0),
            (1, 0, true, 1.0),
            (2, 0, true, 2.0),
            (1, 0, true, 0.0),
            (1, 0, false, 0.0),
            (1, 10_000, false, 0.5),
            (1, 20_000, true, 0.0),
            (1, 200_000, true, 2.0),
        ] {
            let quota = take(key, now_ms);
            assert_eq!((quota.allowed, quota.left), (allowed, left), "key {key} at {now_ms}");
        }
        assert_eq!(buckets.take(Uuid::nil(), Method::POST, "/x", 0, 0), None);
    }
}
