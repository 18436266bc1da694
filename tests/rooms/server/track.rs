//! Wishes of a participant that are in the address of its connection, and packets that are passed on.

use std::collections::HashMap;

use axum::http::Uri;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use prost::Message;
use ringer::transport::room::messages::{JoinRequest, SessionDescription, WrappedJoinRequest};

/// Wishes of whoever connects.
pub(super) struct Wish {
    pub auto_subscribe: bool,
    pub rejoins: Option<String>,
    /// The first offer, where it is in the address.
    pub offer: Option<SessionDescription>,
}

/// Returns the query of an address.
pub(super) fn query(uri: &Uri) -> HashMap<String, String> {
    let query = uri.query().unwrap_or_default();
    url::form_urlencoded::parse(query.as_bytes()).map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

impl Wish {
    pub(super) fn of(query: &HashMap<String, String>, is_joint: bool) -> Wish {
        let is = |name: &str| query.get(name).is_some_and(|value| value == "1" || value == "true");
        if !is_joint {
            let rejoins = query.get("sid").filter(|_| is("reconnect")).cloned();
            return Wish { auto_subscribe: is("auto_subscribe"), rejoins, offer: None };
        }
        let wrapped = query.get("join_request").and_then(|wrapped| URL_SAFE.decode(wrapped).ok()).unwrap_or_default();
        let wrapped = WrappedJoinRequest::decode(&wrapped[..]).unwrap_or_default();
        let request = match wrapped.compression {
            0 => wrapped.join_request,
            _ => unzip(&wrapped.join_request),
        };
        let request = JoinRequest::decode(&request[..]).unwrap_or_default();
        let auto_subscribe = request.connection_settings.is_some_and(|settings| settings.auto_subscribe);
        let rejoins = request.reconnect.then_some(request.participant_sid);
        Wish { auto_subscribe, rejoins, offer: request.publisher_offer }
    }
}

fn unzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut reader = flate2::read::GzDecoder::new(bytes);
    let _ = std::io::Read::read_to_end(&mut reader, &mut out);
    out
}
