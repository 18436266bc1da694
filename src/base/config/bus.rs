//! `[bus]`: the messages between engines that share a database.

use std::path::PathBuf;

use serde::Serialize;

use super::{Secret, Source};

/// Schemes of addresses of a server of NATS.
const SCHEMES: [&str; 2] = ["nats", "tls"];

/// Longest prefix of subjects, in bytes.
const PREFIX_BYTES: usize = 64;

/// Settings of the section `[bus]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bus {
    /// Addresses of the servers of one cluster, `nats://HOST:PORT` or `tls://HOST:PORT`; empty: there is no bus.
    pub url: Vec<String>,
    /// Name of the user; `None`: the server asks for none, or for a file of credentials.
    pub user: Option<String>,
    /// Password of the user.
    pub password: Option<Secret>,
    /// File of credentials, as tools of NATS write it.
    pub credentials: Option<PathBuf>,
    /// Start of all subjects. Clusters of engines that share a server have one each.
    pub prefix: String,
}

impl Default for Bus {
    fn default() -> Bus {
        Bus { url: Vec::new(), user: None, password: None, credentials: None, prefix: "ringer".to_owned() }
    }
}

impl Bus {
    /// True if the settings name a server.
    pub fn is_set(&self) -> bool {
        !self.url.is_empty()
    }

    pub(super) fn read(&mut self, from: &mut Source) {
        let trimmed = |texts: &[String]| -> Option<Vec<String>> {
            Some(texts.iter().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect())
        };
        from.parsed_list("bus.url", "an address like nats://host:4222, or a list of them", trimmed, &mut self.url);
        from.maybe_text("bus.user", &mut self.user);
        from.secret("bus.password", &mut self.password);
        let file = |text: &str| Some((!text.is_empty()).then(|| PathBuf::from(text)));
        from.read_parsed("bus.credentials", "a file", file, &mut self.credentials);
        let prefix = |text: &str| is_prefix(text).then(|| text.to_owned());
        from.read_parsed("bus.prefix", "letters, digits, -, _ and single points, at most 64", prefix, &mut self.prefix);
        for problem in self.url.iter().filter_map(|url| problem_of(url)) {
            from.refuse(format!("bus.url {problem}"));
        }
        if self.user.is_some() != self.password.is_some() {
            from.refuse("bus.user and bus.password are set together or not at all".to_owned());
        }
        if self.user.is_some() && self.credentials.is_some() {
            from.refuse("bus.credentials takes the place of bus.user and bus.password: set one of them".to_owned());
        }
        let has_terms = self.user.is_some() || self.credentials.is_some();
        if has_terms && self.url.is_empty() && !from.has_problem_of("bus.url") {
            from.refuse("bus.url is missing: credentials of the bus are set".to_owned());
        }
    }
}

/// True for the start of a subject: words of letters, digits, `-` and `_`, with points between them.
fn is_prefix(text: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    text.len() <= PREFIX_BYTES && text.split('.').all(is_word)
}

/// Returns what is wrong with the address of a server; `None`: nothing that its text shows. The text is not shown,
/// since it may hold a password.
fn problem_of(url: &str) -> Option<String> {
    let Some((scheme, _)) = url.split_once("://") else {
        return Some("must be like nats://host:4222 or tls://host:4222".to_owned());
    };
    if !SCHEMES.contains(&scheme) {
        return Some("must begin with nats:// or tls://".to_owned());
    }
    let Ok(parsed) = url::Url::parse(url) else {
        return Some("must be like nats://host:4222 or tls://host:4222".to_owned());
    };
    if parsed.password().is_some() || !parsed.username().is_empty() {
        return Some("must hold no credentials: bus.user, bus.password and bus.credentials are for them".to_owned());
    }
    if parsed.host_str().is_none_or(str::is_empty) {
        return Some("names no host: nats://host:4222".to_owned());
    }
    let has_more = !matches!(parsed.path(), "" | "/") || parsed.query().is_some() || parsed.fragment().is_some();
    has_more.then(|| "must end with the port: bus.prefix is for the subjects".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_servers() {
        for (url, expect) in [
            ("nats://bus.example.com:4222", None),
            ("tls://10.0.0.1", None),
            ("nats://[::1]:4222/", None),
            ("bus.example.com:4222", Some("must be like nats://host:4222 or tls://host:4222")),
            ("http://bus", Some("must begin with nats:// or tls://")),
            ("nats://", Some("names no host: nats://host:4222")),
            ("nats://bus:port", Some("must be like nats://host:4222 or tls://host:4222")),
            ("nats://bus:1/x", Some("must end with the port: bus.prefix is for the subjects")),
            (
                "nats://user:secret@bus",
                Some("must hold no credentials: bus.user, bus.password and bus.credentials are for them"),
            ),
        ] {
            assert_eq!(problem_of(url).as_deref(), expect, "{url}");
        }
    }

    #[test]
    fn prefixes_of_subjects() {
        for (text, expect) in
            [("ringer", true), ("a.b-1.c_2", true), ("", false), ("a..b", false), ("a.*", false), ("a b", false)]
        {
            assert_eq!(is_prefix(text), expect, "{text}");
        }
        assert!(!is_prefix(&"x".repeat(PREFIX_BYTES + 1)));
    }
}
