//! Rules about single values that a schema cannot say: numbers, addresses, hosts.

use std::collections::BTreeMap;

use ringer_base::error::{Error, Result};
use ringer_base::guard::{Blocked, Guard, host_allowed};
use ringer_model::Object;
use ringer_model::merge::merge;
use ringer_syntax::phone::e164;
use ringer_transport::sip::address::Address;
use ringer_transport::websocket::dialect::read_parameters;
use serde::Serialize;
use serde::de::DeserializeOwned;
use url::Url;
use uuid::Uuid;

use crate::Settings;

/// Text of two twins that differ.
const TWINS: &str = "prompt_id and agent_version_id must be the same";

/// A rule that is broken.
pub(crate) struct Broken {
    /// The field that it is told of, where the text does not name one.
    pub field: Option<&'static str>,
    /// Error to report for the rule.
    pub error: Error,
}

impl From<Error> for Broken {
    fn from(error: Error) -> Broken {
        Broken { field: None, error }
    }
}

/// Checks a number, E.164 after blanks, hyphens, dots and parentheses are removed; the value is left in that form.
pub fn phone(field: &str, value: &mut Option<String>) -> Result<()> {
    let Some(number) = value else { return Ok(()) };
    *number = e164(number).ok_or_else(|| Error::Refused(format!("{field} must be in E.164 format")))?;
    Ok(())
}

/// Checks each entry as [`phone`] does.
pub(crate) fn phones(field: &str, values: &mut [String]) -> Result<()> {
    for value in values {
        let mut number = Some(std::mem::take(value));
        let checked = phone(field, &mut number);
        *value = number.unwrap_or_default();
        checked?;
    }
    Ok(())
}

/// Checks an address, `sip:user@host[:port][;parameters]` or `sips:`, with a host that agents may have.
pub(crate) fn sip_uri(value: Option<&str>, settings: &Settings) -> Result<()> {
    let Some(text) = value else { return Ok(()) };
    match Address::parse(text) {
        Ok(address) if !address.is_telephone() && !address.is_host_allowed(settings.allow_private_agents) => {
            Err(not_allowed("sip_uri"))
        }
        Ok(address) if !address.is_telephone() => Ok(()),
        _ => Err(Error::Refused("sip_uri must be of the form sip:<user>@<host>".into())),
    }
}

/// Checks an absolute http or https URL to a host that may be asked.
pub(crate) fn webhook(field: &str, value: Option<&str>, settings: &Settings) -> Result<()> {
    let Some(text) = value else { return Ok(()) };
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => check_host(field, &url, settings.allow_private_targets),
        _ => Err(Error::Refused(format!("{field} must be a valid http or https URL"))),
    }
}

/// Checks a ws, wss, http or https URL to a host that agents may have.
pub(crate) fn websocket(value: Option<&str>, settings: &Settings) -> Result<()> {
    socket_url("websocket_url", value, settings)
}

/// As [`websocket`], of a field of another name.
pub(crate) fn socket_url(field: &str, value: Option<&str>, settings: &Settings) -> Result<()> {
    let Some(text) = value else { return Ok(()) };
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "ws" | "wss" | "http" | "https") && url.has_host() => {
            check_host(field, &url, settings.allow_private_agents)
        }
        _ => Err(Error::Refused(format!("{field} must be a ws, wss, http or https URL"))),
    }
}

/// Checks the name of a kind of dialect or of one of the settings.
pub(crate) fn dialect(value: Option<&str>, settings: &Settings) -> Result<()> {
    value.map_or(Ok(()), |name| settings.dialect(Some(name)).map(drop))
}

/// Parameters that a dialect carries: their number, names and values.
pub(crate) fn parameters(value: Option<&BTreeMap<String, String>>) -> Result<()> {
    let read = read_parameters(&serde_json::json!(value));
    read.map(drop).map_err(|error| Error::Refused(error.to_string()))
}

/// Refuses hosts by what they are written as. Names are checked again, with their addresses, when they are connected
/// to.
fn check_host(field: &str, url: &Url, private: bool) -> Result<()> {
    if host_allowed(url, private) { Ok(()) } else { Err(not_allowed(field)) }
}

/// Refuses URLs (each with its field) whose names lead to where nothing may be sent. To be done before a transaction:
/// names may take long. What is no URL, or is refused by how it is written, is left to [`webhook`].
pub(crate) async fn look(urls: &[(String, String)], settings: &Settings, guard: &Guard) -> Result<()> {
    for (field, text) in urls {
        let url = Url::parse(text).ok().filter(|url| url.domain().is_some());
        if let Some(url) = url.filter(|url| host_allowed(url, settings.allow_private_targets)) {
            looked_up(field, &url, guard).await?;
        }
    }
    Ok(())
}

/// Refuses a URL that agents are reached by and whose name leads to where no agent may be.
pub(crate) async fn look_agents(field: &str, text: &str, settings: &Settings) -> Result<()> {
    match Url::parse(text).ok().filter(|url| url.domain().is_some()) {
        Some(url) => looked_up(field, &url, &Guard::new(settings.allow_private_agents)).await,
        None => Ok(()),
    }
}

/// Refuses a URL whose name leads to where nothing may be sent. One without an address now may have one later.
pub(crate) async fn looked_up(field: &str, url: &Url, guard: &Guard) -> Result<()> {
    match guard.look(url).await {
        Err(Blocked::NotAllowed) => Err(not_allowed(field)),
        Ok(()) | Err(Blocked::NoAddress) => Ok(()),
    }
}

/// Returns the refusal of a field that leads to where nothing may be sent.
fn not_allowed(field: &str) -> Error {
    Error::Refused(format!("{field} points to a host that is not allowed"))
}

/// Refuses what the first of these says.
pub(crate) fn first(broken: Vec<Error>) -> Result<()> {
    broken.into_iter().next().map_or(Ok(()), Err)
}

/// Returns the one value of two twin fields.
pub(crate) fn twins(agent_version_id: Option<Uuid>, prompt_id: Option<Uuid>) -> Result<Option<Uuid>> {
    match (agent_version_id, prompt_id) {
        (Some(a), Some(b)) if a != b => Err(Error::Refused(TWINS.into())),
        (version, prompt) => Ok(version.or(prompt)),
    }
}

/// Returns a stored Spec with a partial update laid over it. The update was walked against the Spec's schema, so that
/// what does not fit is a fault of the engine.
pub(crate) fn apply_patch<T: Serialize + DeserializeOwned + Default>(stored: &T, patch: &Object) -> Result<T> {
    merge(stored, patch).map_err(Error::internal)
}

/// True when `patch` gives a value, not null, for `key`.
pub(crate) fn gives(patch: &Object, key: &str) -> bool {
    patch.get(key).is_some_and(|value| !value.is_null())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(result: Result<()>) -> String {
        result.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn phone_numbers_are_e164() {
        for (value, expect) in [
            ("+1 (555) 000-11.11", Some("+15550001111")),
            ("+4912345", Some("+4912345")),
            ("+491234", None),
            ("15550001111", None),
            ("+05550001111", None),
            ("+1555000111122223", None),
            ("+1555x001111", None),
            ("", None),
        ] {
            let mut number = Some(value.to_owned());
            match expect {
                Some(expect) => {
                    assert_eq!(phone("phone_number", &mut number), Ok(()), "{value}");
                    assert_eq!(number.as_deref(), Some(expect));
                }
                None => assert_eq!(text(phone("f", &mut number)), "f must be in E.164 format", "{value}"),
            }
        }
    }

    #[test]
    fn sip_addresses_have_user_and_host() {
        let settings = Settings::new("/tmp");
        for good in ["sip:a@b", "sips:a@b.example:5061;transport=tls", "sip:+15550001111@10.0.0.1", "sip:a@[::1]:5060"]
        {
            assert_eq!(sip_uri(Some(good), &settings), Ok(()), "{good}");
        }
        for bad in ["sip:b", "a@b", "http://a@b", "sip:@b", "sip:a@", "sip:a@b c", "sip:a@b@c", "sip:a@:5060", ""] {
            assert_eq!(text(sip_uri(Some(bad), &settings)), "sip_uri must be of the form sip:<user>@<host>", "{bad}");
        }
        assert_eq!(
            text(sip_uri(Some("sip:a@169.254.169.254"), &settings)),
            "sip_uri points to a host that is not allowed"
        );
    }

    #[test]
    fn hosts_are_refused_by_kind() {
        let open = Settings::new("/tmp");
        let closed = Settings { allow_private_targets: false, ..Settings::new("/tmp") };
        for (url, when_open, when_closed) in [
            ("https://example.com/x", true, true),
            ("http://127.0.0.1:80/", true, false),
            ("http://169.254.169.254/latest", false, false),
        ] {
            assert_eq!(webhook("u", Some(url), &open).is_ok(), when_open, "{url}");
            assert_eq!(webhook("u", Some(url), &closed).is_ok(), when_closed, "{url}");
        }
        for bad in ["ftp://h/", "/path", "http://", "h"] {
            assert_eq!(text(webhook("u", Some(bad), &open)), "u must be a valid http or https URL", "{bad}");
        }
        assert_eq!(websocket(Some("wss://h/x"), &open), Ok(()));
        assert_eq!(text(websocket(Some("sip:h"), &open)), "websocket_url must be a ws, wss, http or https URL");
    }
}
