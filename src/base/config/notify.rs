//! `[notify]`: channels of notifications.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Secret;
use super::source::Source;

/// Relays, tokens and addresses of notifications. A notification for a channel without settings is stored and marked as
/// failed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Notify {
    /// `smtp://user:password@host:port` (STARTTLS where the relay offers it) or `smtps://` (TLS).
    pub smtp_url: Option<Secret>,
    /// Sender address of e-mails; needed with `smtp_url`.
    pub from: Option<String>,
    /// Bearer token for channels that are named by an id.
    pub slack_token: Option<Secret>,
    /// URL that messages to such channels are posted to.
    pub slack_url: String,
    /// URL that incidents are posted to.
    pub pager_url: Option<String>,
    /// Key that signs notifications to webhooks.
    pub key: Option<Secret>,
    /// E-mail addresses of an organization's administrators, by its name, separated by commas.
    pub admins: BTreeMap<String, String>,
}

impl Default for Notify {
    fn default() -> Notify {
        Notify {
            smtp_url: None,
            from: None,
            slack_token: None,
            slack_url: "https://slack.com/api/chat.postMessage".to_owned(),
            pager_url: None,
            key: None,
            admins: BTreeMap::new(),
        }
    }
}

impl Notify {
    /// Returns the administrators' addresses of the organization of this name.
    pub fn admins_of(&self, organization: &str) -> Vec<&str> {
        self.admins.get(organization).into_iter().flat_map(|list| addresses(list)).collect()
    }

    pub(super) fn read(&mut self, from: &mut Source) {
        from.secret("notify.smtp_url", &mut self.smtp_url);
        from.maybe_text("notify.from", &mut self.from);
        from.secret("notify.slack_token", &mut self.slack_token);
        let url = |text: &str| text.contains("://").then(|| text.to_owned());
        from.read_parsed("notify.slack_url", "a URL", url, &mut self.slack_url);
        from.maybe_text("notify.pager_url", &mut self.pager_url);
        from.secret("security.notification_key", &mut self.key);
        from.text_map("notify.admins", &mut self.admins);
        for (name, list) in &self.admins {
            let is_address =
                |text: &str| text.split_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty());
            if !addresses(list).all(is_address) {
                from.refuse(format!("notify.admins.{name} must be mail addresses, parted by commas"));
            }
        }
        if self.smtp_url.is_some() && self.from.is_none() {
            from.refuse("notify.from is missing: notify.smtp_url is set".to_owned());
        }
    }
}

fn addresses(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|address| !address.is_empty())
}
