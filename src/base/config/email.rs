//! `[email]`: conversations by mail, sent through a relay, received by a listener of this side or from a mailbox.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use serde::Serialize;
use url::{Host, Url};

use super::{Secret, Source};

/// Most messages that a conversation may be allowed, of both sides.
const MOST_MESSAGES: u64 = 1000;

/// Settings of the section `[email]`. Off without a relay, and without `address` or `inbound_domain`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Email {
    /// Relay that mails are sent through, as in `notify.smtp_url`, which is used where this is not given.
    pub smtp_url: Option<Secret>,
    /// Mailbox whose subaddresses (RFC 5233) belong to conversations, for example `qa@example.com`.
    pub address: Option<String>,
    /// Domain whose addresses all belong to conversations; used without `address`.
    pub inbound_domain: Option<String>,
    /// Address of the SMTP listener; `None`: none listens.
    pub listen: Option<SocketAddr>,
    /// PEM file with the certificates of the listener; `None`: it offers no STARTTLS.
    pub tls_cert: Option<PathBuf>,
    /// PEM file with the private key of the listener.
    pub tls_key: Option<PathBuf>,
    /// Mailbox that is read, `imaps://USER:PASSWORD@HOST:PORT/FOLDER`; `None`: none is.
    pub imap_url: Option<Secret>,
    /// Messages of both sides after which a conversation ends.
    pub max_messages: u32,
    /// True if automatic mail of the agent is a turn where it answers the conversation.
    pub automatic_replies: bool,
    /// True if the domain of the envelope's sender must be that of an allowed sender.
    pub check_envelope: bool,
    /// Relay whose `Authentication-Results` a mail must have, with a pass; `None`: none is asked for.
    pub require_auth_results: Option<String>,
}

impl Default for Email {
    fn default() -> Email {
        Email {
            smtp_url: None,
            address: None,
            inbound_domain: None,
            listen: None,
            tls_cert: None,
            tls_key: None,
            imap_url: None,
            max_messages: 50,
            automatic_replies: true,
            check_envelope: false,
            require_auth_results: None,
        }
    }
}

impl Email {
    /// Reads the section. `relay`: the relay of notifications.
    pub(super) fn read(&mut self, from: &mut Source, relay: Option<&Secret>) {
        from.secret("email.smtp_url", &mut self.smtp_url);
        if self.smtp_url.as_ref().is_some_and(|url| !is_url_of(url, &["smtp", "smtps"])) {
            // It may hold a password: it is not shown.
            from.refuse("email.smtp_url must be like smtp://USER:PASSWORD@HOST:PORT or smtps://HOST".to_owned());
        }
        self.smtp_url = self.smtp_url.take().or_else(|| relay.cloned());
        let address = |text: &str| {
            let (user, domain) = text.split_once('@')?;
            (is_local(user) && is_domain(domain)).then(|| Some(text.to_ascii_lowercase()))
        };
        from.read_parsed("email.address", "an address like qa@example.com", address, &mut self.address);
        let domain = |text: &str| is_domain(text).then(|| Some(text.to_ascii_lowercase()));
        from.read_parsed("email.inbound_domain", "a domain like in.example.com", domain, &mut self.inbound_domain);
        let listen = |texts: &[String]| if let [one] = texts { parse_listen(one.trim()) } else { None };
        from.parsed_list("email.listen", "an address like 127.0.0.1:2525, or a port", listen, &mut self.listen);
        let file = |text: &str| (!text.is_empty()).then(|| Some(PathBuf::from(text)));
        from.read_parsed("email.tls_cert", "a file", file, &mut self.tls_cert);
        from.read_parsed("email.tls_key", "a file", file, &mut self.tls_key);
        if self.tls_cert.is_some() != self.tls_key.is_some() {
            from.refuse("email.tls_cert and email.tls_key are needed together".to_owned());
        }
        from.secret("email.imap_url", &mut self.imap_url);
        if self.imap_url.as_ref().is_some_and(|url| !is_mailbox(url)) {
            from.refuse(
                "email.imap_url must be like imaps://USER:PASSWORD@HOST:PORT/FOLDER; imap:// is for this machine alone"
                    .to_owned(),
            );
        }
        from.whole("email.max_messages", 1..=MOST_MESSAGES, &mut self.max_messages);
        from.boolean("email.automatic_replies", &mut self.automatic_replies);
        from.boolean("email.check_envelope", &mut self.check_envelope);
        from.maybe_text("email.require_auth_results", &mut self.require_auth_results);
        let receives = self.listen.is_some() || self.imap_url.is_some();
        if receives && self.address.is_none() && self.inbound_domain.is_none() {
            from.refuse("email.address or email.inbound_domain is missing: mail is to be received".to_owned());
        }
    }

    /// True if mails can be sent, and answers to them have an address.
    pub fn is_configured(&self) -> bool {
        self.smtp_url.is_some() && (self.address.is_some() || self.inbound_domain.is_some())
    }
}

/// Returns the address of a listener: a port alone is on this machine's loopback.
fn parse_listen(text: &str) -> Option<Option<SocketAddr>> {
    let port = || Some(SocketAddr::from((Ipv4Addr::LOCALHOST, text.parse().ok()?)));
    text.parse().ok().or_else(port).map(Some)
}

fn is_url_of(url: &Secret, schemes: &[&str]) -> bool {
    Url::parse(url.expose()).is_ok_and(|url| schemes.contains(&url.scheme()) && url.host_str().is_some())
}

/// True for the URL of a mailbox with its user. Without TLS it must be on this machine.
fn is_mailbox(url: &Secret) -> bool {
    let Ok(url) = Url::parse(url.expose()) else { return false };
    let host = url.host_str().unwrap_or_default();
    let is_near = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    let is_host = matches!(url.host(), Some(Host::Domain(_) | Host::Ipv4(_) | Host::Ipv6(_)));
    is_host && !url.username().is_empty() && (url.scheme() == "imaps" || (url.scheme() == "imap" && is_near))
}

/// True for a plain local part that a subaddress can follow.
fn is_local(user: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !user.is_empty() && user.len() <= 24 && user.chars().all(is_plain)
}

fn is_domain(domain: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') && !label.starts_with('-')
    };
    domain.len() <= 253 && domain.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::super::Config;
    use super::*;

    fn read_email(text: &str) -> Result<Email, String> {
        let config = Config::from_texts(Some((Path::new("r.toml"), text)), &BTreeMap::new(), &[], 1024);
        config.map(|config| config.email).map_err(|error| error.to_string())
    }

    #[test]
    fn the_relay_of_notifications_serves_conversations_too() {
        let email = read_email(
            "[notify]\nsmtp_url = 'smtp://relay.example'\nfrom = 'a@b.example'\n[email]\naddress = 'QA@x.example'\nlisten = 2525",
        );
        let email = email.expect("it fits");
        assert!(email.is_configured());
        assert_eq!(email.address.as_deref(), Some("qa@x.example"));
        assert_eq!(email.listen, Some(([127, 0, 0, 1], 2525).into()));
        assert_eq!((email.max_messages, email.automatic_replies, email.check_envelope), (50, true, false));
        assert!(!read_email("[email]\nsmtp_url = 'smtp://relay.example'").expect("it fits").is_configured());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, expect) in [
            ("smtp_url = 'http://h:secret@x'", "email.smtp_url must be like"),
            ("address = 'qa'", "email.address = \"qa\" is not allowed"),
            ("address = 'q a@x.example'", "email.address"),
            ("inbound_domain = 'x..y'", "email.inbound_domain"),
            ("listen = 'everywhere'", "email.listen"),
            ("tls_cert = 'c.pem'", "email.tls_cert and email.tls_key are needed together"),
            ("imap_url = 'imap://u:secret@mail.example'", "email.imap_url must be like"),
            ("imap_url = 'imaps://mail.example'", "email.imap_url must be like"),
            ("listen = 2525", "email.address or email.inbound_domain is missing"),
            ("max_messages = 0", "email.max_messages"),
        ] {
            let why = read_email(&format!("[email]\n{text}")).expect_err(text);
            assert!(why.contains(expect) && !why.contains("secret"), "{text}: {why}");
        }
        let fits = "[email]\ninbound_domain = 'in.example'\nimap_url = 'imap://u:p@127.0.0.1:143/INBOX'";
        assert!(read_email(fits).is_ok());
    }
}
