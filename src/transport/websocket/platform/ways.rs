//! Calls of platforms that are not held over one WebSocket, and the requests beside a call: where their settings stand,
//! and what a call fills into them.

use serde_json::{Map, Value};
use url::Url;

use super::adapter::{Adapter, Facts, SessionReply, SessionRequest, header_value};
use super::address::check_scheme;
use super::fill::{fill, fill_text, percent_encode, plain};
use super::rules::Table;
use super::secrets::{Secrets, add_texts};
use super::transport::Transport;
use super::when::text_at;
use crate::peer::without_secrets;
use crate::pipeline::{PlatformOffer, SDP_PLACE};
use crate::sip::address::Address;

/// Schemes of requests, and of room servers and WebSockets.
const HTTP: [&str; 2] = ["http", "https"];
const SOCKET: [&str; 2] = ["ws", "wss"];

/// Ends of the names of an agent's fields that hold secrets.
const SECRET_FIELDS: [&str; 5] = ["_token", "_secret", "_password", "_key", "_auth"];

/// Tables of requests beside a call or without one, each with an address of its own.
const REQUESTS: [&str; 4] = ["offer", "place", "after", "definition"];

/// Settings of transports other than a WebSocket: those of the session, of the requests, and their own.
const COMMON: [&str; 10] = [
    "transport",
    "session_url",
    "session_method",
    "session_headers",
    "session_body",
    "id_pointer",
    "auth",
    "place",
    "after",
    "preset",
];

impl Adapter {
    /// Returns the channel over which calls are held.
    pub fn transport(&self) -> Transport {
        // A preset is of a WebSocket, or writes and holds no calls.
        Transport::parse(self.preset()).unwrap_or(Transport::WebSocket)
    }

    /// True if the platform can be asked to place the call of an agent.
    pub fn places_calls(&self) -> bool {
        self.settings.contains_key("place")
    }

    /// True if there is a way to call an agent: an adapter may only ask for calls.
    pub fn can_call(&self) -> bool {
        ["url", "url_pointer", "offer"].iter().any(|key| self.settings.contains_key(*key))
    }

    /// Returns the templates of every address, with the names of their settings, and the schemes that each may have.
    /// The SIP address is not among them.
    pub(super) fn addresses(&self) -> Vec<(String, &str, [&'static str; 2])> {
        let text = |key: &str| self.settings.get(key).and_then(Value::as_str);
        let is_sip = self.transport() == Transport::Sip;
        let schemes = if self.is_chat() { HTTP } else { SOCKET };
        let url = text("url").filter(|_| !is_sip).map(|url| ("url".to_owned(), url, schemes));
        let session = text("session_url").map(|url| ("session_url".to_owned(), url, HTTP));
        let requests = REQUESTS.iter().filter_map(|key| {
            let url = self.settings.get(*key)?.get("url")?.as_str()?;
            Some((format!("{key}.url"), url, HTTP))
        });
        url.into_iter().chain(session).chain(requests).collect()
    }

    /// Checks that there is a way to a call, and the settings of the requests beside it.
    ///
    /// # Errors
    /// A setting that is missing, wrong, or without effect.
    pub(super) fn check_ways(&self) -> Result<(), String> {
        let (transport, name) = (self.transport(), self.transport().as_str());
        let is_known = |key: &&String| COMMON.contains(&key.as_str()) || transport.own().contains(&key.as_str());
        match transport {
            Transport::WebSocket if self.settings.contains_key("offer") => {
                return Err("offer needs transport = \"webrtc\"".to_owned());
            }
            Transport::WebSocket => {}
            _ => {
                if let Some(key) = self.given.iter().find(|key| !is_known(key)) {
                    return Err(format!("{key} has no effect with transport = {name:?}"));
                }
            }
        }
        let has = |key: &str| self.settings.contains_key(key);
        let has_address = has("url") || has("session_url") && has("url_pointer");
        match transport {
            _ if !self.can_call() && self.places_calls() => {}
            Transport::WebSocket if !has_address => {
                return Err("needs a url, or a session_url with a url_pointer".to_owned());
            }
            Transport::Room if !(has("session_url") && has("token_pointer")) || !(has("url") || has("url_pointer")) => {
                return Err("a room needs a session_url with a token_pointer, and a url or a url_pointer".to_owned());
            }
            Transport::Sip if !has_address => {
                return Err("needs a url that is a SIP address, or a session_url with a url_pointer".to_owned());
            }
            Transport::WebRtc if !has("offer") => return Err("needs an offer".to_owned()),
            _ => {}
        }
        self.check_sip()?;
        self.check_request("offer", &["url", "headers", "body", "answer_pointer"])?;
        self.check_request("place", &["url", "method", "headers", "body", "id_pointer"])?;
        self.check_after()
    }

    fn check_sip(&self) -> Result<(), String> {
        let (Transport::Sip, Some(url)) = (self.transport(), self.settings.get("url").and_then(Value::as_str)) else {
            return Ok(());
        };
        let (user, host) = url.rsplit_once('@').ok_or("url has no user: it is sip:USER@HOST")?;
        if host.contains("{{") || !["sip:", "sips:"].iter().any(|scheme| user.starts_with(scheme)) {
            return Err("url has a place in its scheme, host or port".to_owned());
        }
        let filled = fill_text(url, &|_| Some("x".into()), &|text| text);
        Address::parse(&filled).map_err(|fault| format!("url {fault}"))?;
        let headers = Table::new("", &self.settings).texts("headers")?;
        match headers.iter().find(|(name, _)| !name.to_ascii_lowercase().starts_with("x-")) {
            Some((name, _)) => Err(format!("headers: {name:?} cannot be set: header fields of SIP begin with X-")),
            None => Ok(()),
        }
    }

    /// Checks the table of a request beside a call.
    pub(super) fn check_request(&self, key: &str, keys: &[&str]) -> Result<(), String> {
        let Some(table) = self.settings.get(key) else { return Ok(()) };
        let members = table.as_object().ok_or_else(|| format!("{key} must be a table"))?;
        if let Some(unknown) = members.keys().find(|known| !keys.contains(&known.as_str())) {
            return Err(format!("{key} has no setting {unknown:?}; it has {}", keys.join(", ")));
        }
        let table = Table::new(key, members);
        table.text("url")?.ok_or_else(|| format!("{key}.url is missing"))?;
        if !matches!(table.text("method")?, None | Some("GET" | "POST")) {
            return Err(format!("{key}.method is neither GET nor POST"));
        }
        table.pointer("id_pointer")?;
        if table.text("answer_pointer")? != Some("") {
            table.pointer("answer_pointer")?;
        }
        let headers = table.texts("headers")?;
        super::adapter::check_headers(&format!("{key}.headers"), headers.iter().map(|(name, _)| *name))?;
        let holds_offer = |body: &Value| body.to_string().contains(SDP_PLACE);
        match members.get("body") {
            Some(body) if key == "offer" && !holds_offer(body) => {
                Err(format!("offer.body must have {SDP_PLACE} in one of its texts"))
            }
            _ => Ok(()),
        }
    }

    /// Checks the address of a session's answer, whose host is checked when it is connected to.
    ///
    /// # Errors
    /// The fault of the address.
    pub(super) fn check_named(&self, url: &str) -> Result<(), String> {
        match self.transport() {
            Transport::Sip => Address::parse(url).map(drop).map_err(|_| "is no SIP address".to_owned()),
            Transport::Room if url.starts_with("http") => check_scheme(url, HTTP),
            _ => check_scheme(url, SOCKET),
        }
    }

    /// Returns the server and the token of a call's room.
    ///
    /// # Errors
    /// A value of the agent that cannot stand where the settings put it, or no address or token.
    pub fn room(&self, facts: &Facts, reply: &SessionReply) -> Result<(String, String), String> {
        let value = |name: &str| self.value(name, facts, reply);
        let url = match (&reply.url, self.settings.get("url").and_then(Value::as_str)) {
            (Some(url), _) => url.clone(),
            (None, Some(url)) => self.address("url", url, &value, SOCKET)?,
            (None, None) => return Err("url is not set".to_owned()),
        };
        let token = reply.token.clone().ok_or("token_pointer is not set")?;
        match token.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Ok((url, token)),
            false => Err("the session's answer has a token that no request can hold".to_owned()),
        }
    }

    /// Returns the SIP address of a call, and the header fields of its INVITE.
    ///
    /// # Errors
    /// A value of the agent that cannot stand where the settings put it.
    pub fn sip(&self, facts: &Facts, reply: &SessionReply) -> Result<(String, Vec<(String, String)>), String> {
        let value = |name: &str| self.value(name, facts, reply);
        let url = match (&reply.url, self.settings.get("url").and_then(Value::as_str)) {
            (Some(url), _) => url.clone(),
            (None, Some(url)) => fill_text(url, &value, &|text| percent_encode(&text)),
            (None, None) => return Err("url is not set".to_owned()),
        };
        Address::parse(&url).map_err(|_| "url would be no SIP address".to_owned())?;
        let headers = self.settings.get("headers").and_then(Value::as_object);
        Ok((url, filled_headers(headers, &value)?))
    }

    /// Returns the offer that opens a call.
    ///
    /// # Errors
    /// A value of the agent that cannot stand where the settings put it.
    pub fn offer(&self, facts: &Facts, reply: &SessionReply) -> Result<PlatformOffer, String> {
        let request = self.request("offer", facts, reply, !self.needs_session())?;
        let table = &self.settings["offer"];
        let is_whole = table.get("body").is_none_or(|body| body.as_str().is_some_and(|body| body.trim() == SDP_PLACE));
        Ok(PlatformOffer {
            platform: self.platform.clone(),
            shown: self.secrets(facts, reply).hide(without_secrets(&request.url)),
            url: request.url,
            headers: request.headers,
            body: (!is_whole).then_some(request.body),
            answer_pointer: table.get("answer_pointer").map(plain).unwrap_or_default(),
        })
    }

    /// Returns the request that has the platform place the call of an agent.
    ///
    /// # Errors
    /// A value of the agent that cannot stand where the settings put it.
    pub fn place_request(&self, facts: &Facts) -> Result<SessionRequest, String> {
        self.request("place", facts, &SessionReply::default(), true)
    }

    /// Returns the platform's name of a call that it was asked to place, where its answer has one.
    pub fn read_placed(&self, answer: &[u8]) -> Option<String> {
        let pointer = self.settings.get("place")?.get("id_pointer")?.as_str()?;
        let answer: Value = serde_json::from_slice(answer).ok()?;
        Some(text_at(&answer, pointer)).filter(|id| !id.is_empty())
    }

    /// Returns the texts of a call that are written nowhere: credentials, tokens, and the path or the user of a
    /// session's address.
    pub fn secrets(&self, facts: &Facts, reply: &SessionReply) -> Secrets {
        let mut found = Vec::new();
        let stored = facts.integration.iter().filter(|(name, _)| !name.ends_with("_url"));
        stored.for_each(|(_, value)| add_texts(value, &mut found));
        let is_secret = |name: &str| SECRET_FIELDS.iter().any(|end| name.ends_with(end)) || name == "key";
        let agents = facts.agent.iter().filter(|(name, _)| is_secret(name));
        agents.for_each(|(_, value)| add_texts(value, &mut found));
        found.extend(reply.token.iter().chain(&facts.bearer).cloned());
        let named = reply.url.as_deref();
        found.extend(match self.transport() {
            Transport::Sip => named.and_then(|url| Address::parse(url).ok()?.uri().user.clone()),
            _ => named.and_then(|url| Some(Url::parse(url).ok()?.path().to_owned())),
        });
        Secrets::new(found)
    }

    /// Returns a request beside a call, with the credentials where `has_auth`.
    pub(super) fn request(
        &self,
        key: &str,
        facts: &Facts,
        reply: &SessionReply,
        has_auth: bool,
    ) -> Result<SessionRequest, String> {
        let value = |name: &str| self.value(name, facts, reply);
        let table = self.settings.get(key).and_then(Value::as_object).ok_or_else(|| format!("{key} is not set"))?;
        let text = |name: &str| table.get(name).and_then(Value::as_str);
        let url = self.address(&format!("{key}.url"), text("url").unwrap_or_default(), &value, HTTP)?;
        let mut headers = if has_auth { self.auth(facts)? } else { Vec::new() };
        headers.extend(filled_headers(table.get("headers").and_then(Value::as_object), &value)?);
        let method = text("method").unwrap_or(if key == "after" { "GET" } else { "POST" }).to_owned();
        let body = table.get("body").filter(|_| method != "GET").map(|body| fill(body, &value).to_string());
        Ok(SessionRequest { method, url, headers, body: body.unwrap_or_default() })
    }
}

/// Returns headers with their places filled.
fn filled_headers(
    headers: Option<&Map<String, Value>>,
    value: &dyn Fn(&str) -> Option<Value>,
) -> Result<Vec<(String, String)>, String> {
    let filled = headers.into_iter().flatten().map(|(name, text)| {
        let text = fill_text(&plain(text), value, &|text| text);
        Ok((name.clone(), header_value(name, text)?))
    });
    filled.collect()
}
