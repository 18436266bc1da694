//! Adapters of calls from the command line: another server in the place of the platform's own, and the need of a key.

use serde_json::Value;
use url::{Host, Url};

use super::Adapter;
use crate::websocket::dialect::DialectError;
use crate::websocket::platform::address::split_base;

impl Adapter {
    /// True if requests to the platform hold a credential of the organization.
    pub fn needs_key(&self) -> bool {
        let fills_one = || Value::Object(self.settings.clone()).to_string().contains("{{integration.");
        self.settings.contains_key("auth") || fills_one()
    }

    /// True if the first address that is asked is on this machine.
    pub fn is_on_this_machine(&self) -> bool {
        let first = ["session_url", "url"].into_iter().find_map(|key| self.settings.get(key)).and_then(Value::as_str);
        let base = first.map(|url| split_base(&self.platform, url).0).and_then(|base| Url::parse(base).ok());
        match base.as_ref().and_then(Url::host) {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
    }

    /// Returns the same adapter with scheme, host and port of `base` in all of its addresses.
    ///
    /// # Errors
    /// A text that is no address of a server, or one without encryption that is not on this machine.
    pub fn with_base(mut self, base: &str) -> Result<Adapter, DialectError> {
        let refused = |why: &str| DialectError(format!("the base {why}"));
        let parsed = Url::parse(base).map_err(|_| refused("is no address"))?;
        let is_safe = match parsed.scheme() {
            "wss" | "https" => true,
            "ws" | "http" => false,
            _ => return Err(refused("must begin with ws://, wss://, http:// or https://")),
        };
        let host = parsed.host_str().ok_or_else(|| refused("has no host"))?;
        if !matches!(parsed.path(), "" | "/") || parsed.query().is_some() || !parsed.username().is_empty() {
            return Err(refused("has more than a scheme, a host and a port"));
        }
        let port = parsed.port().map(|port| format!(":{port}")).unwrap_or_default();
        for (key, schemes) in [("url", ["ws", "wss"]), ("session_url", ["http", "https"])] {
            let Some(Value::String(url)) = self.settings.get(key) else { continue };
            let rest = split_base(&self.platform, url).1;
            let url = format!("{}://{host}{port}{rest}", schemes[usize::from(is_safe)]);
            self.settings.insert(key.to_owned(), url.into());
        }
        self.check_addresses().map_err(DialectError)?;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::websocket::platform::adapter::{Facts, Names, SessionReply};
    use crate::websocket::platform::far::FarSide;

    fn adapter(preset: &str) -> Adapter {
        let table = json!({ "preset": preset });
        Adapter::parse("P4", table.as_object().expect("an object"), &Names::default()).expect("a good preset")
    }

    #[test]
    fn another_server_takes_the_place_of_the_platforms_own() {
        let agent = json!({ "id": "desk 1" }).as_object().expect("an object").clone();
        let facts = Facts { agent, ..Facts::default() };
        let moved = adapter("openai_realtime").with_base("http://127.0.0.1:81/").expect("it is good");
        let (url, _) = moved.dialect(&facts, &SessionReply::default()).expect("it can be dialled");
        assert_eq!(url, "ws://127.0.0.1:81/v1/realtime?model=desk%201");
        assert!(moved.is_on_this_machine() && !adapter("openai_realtime").is_on_this_machine());
        let moved = adapter("ultravox").with_base("wss://other.example").expect("it is good");
        let request = moved.session_request(&facts).expect("it can be asked").expect("there is one");
        assert_eq!(request.url, "https://other.example/api/agents/desk%201/calls");
        for (base, expect) in [
            ("desk", "is no address"),
            ("ftp://h", "must begin with"),
            ("ws://h.example", "unless it is on this machine"),
            ("wss://h.example/path", "more than a scheme"),
            ("wss://user@h.example", "more than a scheme"),
        ] {
            let why = adapter("openai_realtime").with_base(base).expect_err(base).to_string();
            assert!(why.contains(expect), "{base}: {why}");
        }
    }

    #[test]
    fn most_presets_need_a_key() {
        for preset in FarSide::names() {
            assert!(adapter(preset).needs_key(), "{preset}");
        }
        let table = json!({ "transport": "websocket", "url": "ws://127.0.0.1/" });
        let open = Adapter::parse("P4", table.as_object().expect("an object"), &Names::default()).expect("it is good");
        assert!(!open.needs_key());
    }
}
