//! Mail of conversations: the addresses that belong to them, and mails as they are stored.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Start of the local part of every conversation's address.
const START: &str = "dh-";
/// Length of the random part of an address in characters: 96 bits as hexadecimal digits.
const TOKEN_CHARS: usize = 24;

/// Address space of the conversations: the subaddresses of a mailbox (RFC 5233), or all addresses of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailHome {
    /// Local part that stands before `+`; `None`: the whole domain belongs to conversations.
    user: Option<String>,
    domain: String,
}

impl MailHome {
    /// Returns the subaddresses of a mailbox; without one, the addresses of a domain. `None`: there is neither.
    pub fn new(mailbox: Option<&str>, domain: Option<&str>) -> Option<MailHome> {
        let lower = |text: &str| text.to_ascii_lowercase();
        match (mailbox.and_then(|mailbox| mailbox.split_once('@')), domain) {
            (Some((user, domain)), _) => Some(MailHome { user: Some(lower(user)), domain: lower(domain) }),
            (None, Some(domain)) => Some(MailHome { user: None, domain: lower(domain) }),
            (None, None) => None,
        }
    }

    /// Returns the domain of all addresses.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// Returns the address of a conversation.
    pub fn address(&self, result_id: i64, token: &str) -> String {
        let start = self.user.as_ref().map(|user| format!("{user}+")).unwrap_or_default();
        format!("{start}{START}{result_id}-{token}@{}", self.domain)
    }

    /// Returns the result and the random part of a conversation's address; `None` for every other address.
    pub fn parse(&self, address: &str) -> Option<(i64, String)> {
        let (local, domain) = address.trim().rsplit_once('@')?;
        if !domain.eq_ignore_ascii_case(&self.domain) {
            return None;
        }
        let local = local.to_ascii_lowercase();
        let local = match &self.user {
            Some(user) => local.strip_prefix(user.as_str())?.strip_prefix('+')?,
            None => &local,
        };
        let (id, token) = local.strip_prefix(START)?.split_once('-')?;
        let is_token = token.len() == TOKEN_CHARS && token.chars().all(|c| c.is_ascii_hexdigit());
        let is_id = !id.is_empty() && id.len() <= 18 && id.chars().all(|c| c.is_ascii_digit());
        (is_token && is_id).then_some(())?;
        Some((id.parse().ok()?, token.to_owned()))
    }
}

words! {
    /// Part that a mail takes in its conversation.
    kept MailKind {
        Turn = "turn", Automatic = "automatic", Rejected = "rejected", Failed = "failed", Delayed = "delayed",
        Late = "late", Sent = "sent", Unsent = "unsent",
    } default Turn
}

/// Attached file of a mail.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attachment {
    /// Name of the file; empty: it has none.
    pub name: String,
    /// Type of the content, as in `application/pdf`.
    pub kind: String,
    /// Decoded size in bytes.
    pub bytes: u64,
}

/// Mail of a conversation as it is stored, without its raw text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MailDoc {
    /// Part that it takes in the conversation.
    pub kind: MailKind,
    /// Address of the header From; empty: it has none that can be read.
    pub from: String,
    /// Sender of the envelope; empty: the null sender.
    pub envelope_from: String,
    /// Recipient of the envelope.
    pub to: String,
    /// Subject in one line.
    pub subject: String,
    /// Message-ID without brackets; made from the content where there is none.
    pub message_id: String,
    /// Ids of In-Reply-To and References, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<String>,
    /// New words of the mail, without quoted history and signature.
    pub text: String,
    /// Quoted history and signature, as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub quoted: String,
    /// Size of the whole mail in bytes.
    pub bytes: u64,
    /// SHA-256 of the whole mail, as hexadecimal digits.
    pub sha256: String,
    /// Files attached to the mail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Reason for the part that it takes, or the relay's answer to a sent mail; empty: there is none.
    #[serde(default)]
    pub why: String,
    /// True if it names no mail of this side as the one that it answers.
    #[serde(default)]
    pub unthreaded: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef01234567";

    #[test]
    fn addresses_are_made_and_read_back() {
        let check = |mailbox, domain, expect: &str| {
            let home = MailHome::new(mailbox, domain).expect("a home");
            let address = home.address(17, TOKEN);
            assert_eq!(address, expect);
            for written in [address.clone(), address.to_ascii_uppercase(), format!(" {address} ")] {
                assert_eq!(home.parse(&written), Some((17, TOKEN.to_owned())), "{written}");
            }
        };
        check(None, Some("In.example"), "dh-17-0123456789abcdef01234567@in.example");
        check(Some("qa@x.example"), Some("in.example"), "qa+dh-17-0123456789abcdef01234567@x.example");
        assert_eq!(MailHome::new(None, None), None);
    }

    #[test]
    fn other_addresses_belong_to_nobody() {
        let home = MailHome::new(Some("qa@x.example"), None).expect("a home");
        for other in [
            "qa@x.example",
            "dh-17-0123456789abcdef01234567@x.example",
            "qa+dh-17-0123456789abcdef01234567@y.example",
            "qa+dh-17-0123456789abcdef0123456@x.example",
            "qa+dh-17-0123456789abcdef0123456g@x.example",
            "qa+dh--0123456789abcdef01234567@x.example",
            "qa+dh-+7-0123456789abcdef01234567@x.example",
            "qa+dh-99999999999999999999-0123456789abcdef01234567@x.example",
            "",
        ] {
            assert_eq!(home.parse(other), None, "{other}");
        }
    }
}
