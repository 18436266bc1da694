//! Settings of one side, which hold for the whole script.

use std::net::IpAddr;
use std::time::Duration;

use ringer_base::config::Refer;
use ringer_media::codec::Codec;
use ringer_transport::sip::transfer::Forwarding;

use super::words::Words;
use super::{address, codec, targets};

/// The manner of one side, as far as its script tells it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manner {
    /// Codecs, best first; none: the usual ones.
    pub codecs: Vec<Codec>,
    /// Words that it says first.
    pub says: Option<String>,
    /// True if it says nothing.
    pub is_quiet: bool,
    /// Addresses that it may call and send media to; `None`: all.
    pub allows: Option<Vec<IpAddr>>,
    /// Targets to which it may be sent on.
    pub forwarding: Forwarding,
    /// Time that it waits for an answer.
    pub patience: Option<Duration>,
    /// Time that it waits for media.
    pub media_timeout: Option<Duration>,
    /// Host name that stands in its session descriptions in the place of its address.
    pub media_host: Option<String>,
    /// Session interval that it asks for, in seconds.
    pub session_interval_s: Option<u32>,
    /// Further header fields of its INVITE.
    pub headers: Vec<(String, String)>,
    /// True if its INVITE has no offer.
    pub has_no_offer: bool,
    /// True if a message that the other side speaks does not stop it.
    pub ignores_claims: bool,
}

impl Manner {
    /// Reads one setting.
    ///
    /// # Errors
    /// For a person: the word that is wrong or missing.
    pub(super) fn take_words(&mut self, words: &mut Words) -> Result<(), String> {
        const KEYS: [&str; 13] = [
            "codecs",
            "says",
            "quiet",
            "allows",
            "patience",
            "media_timeout",
            "media_host",
            "session_interval",
            "header",
            "without_offer",
            "redirects",
            "follows",
            "ignores_claims",
        ];
        match words.one_of("the setting", &KEYS)? {
            0 => {
                while !words.is_empty() {
                    self.codecs.push(codec(words)?);
                }
                if self.codecs.is_empty() {
                    return Err("the codecs are missing".to_owned());
                }
            }
            1 => self.says = Some(words.text("the words")?),
            2 => self.is_quiet = true,
            3 => {
                let allowed = self.allows.get_or_insert_default();
                while !words.is_empty() {
                    allowed.push(address(words)?);
                }
            }
            4 => self.patience = Some(words.seconds("the patience")?),
            5 => self.media_timeout = Some(words.seconds("the time-out")?),
            6 => self.media_host = Some(words.text("the host name")?),
            7 => self.session_interval_s = Some(words.whole("the interval in seconds", 90, 600)?.into()),
            8 => {
                let field = words.text("the header field")?;
                let (name, value) =
                    field.split_once(':').ok_or_else(|| format!("{field:?} is no header field: it has no colon"))?;
                self.headers.push((name.trim().to_owned(), value.trim().to_owned()));
            }
            9 => self.has_no_offer = true,
            10 => self.forwarding.redirects = targets(words)?,
            12 => self.ignores_claims = true,
            _ => {
                self.forwarding.refer = Refer::Follow;
                self.forwarding.refer_targets = targets(words)?;
            }
        }
        Ok(())
    }
}
