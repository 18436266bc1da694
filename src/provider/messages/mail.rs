//! Mails to an agent through a relay.

use super::super::mail::{Handover, Letter, MailParty, MailRefusal, Relay, reply_subject, subject_of};
use super::{Message, Reply, Trouble};

const FAILED: [&str; 2] = ["EMAIL_SEND_FAILED"; 2];

/// The relay, and the two sides of a conversation.
#[derive(Clone, Debug)]
pub struct MailRoute {
    /// Relay that takes the mails.
    pub relay: Relay,
    /// The Digital Human, with the address of this conversation.
    pub from: MailParty,
    /// The agent with its address.
    pub to: MailParty,
    /// Id of the result.
    pub result_id: String,
    /// Sentence that the subject of a first mail is made of.
    pub wish: String,
}

/// Place of a mail among those before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MailPlace {
    /// Subject of the mails before; `None`: this is the first.
    pub subject: Option<String>,
    /// Message-IDs of the mails before it, without brackets, oldest first.
    pub references: Vec<String>,
}

impl MailRoute {
    /// Returns the Message-ID of a message, without brackets: the same for every attempt.
    pub fn message_id(&self, message: &Message) -> String {
        let domain = self.from.address.rsplit_once('@').map_or("localhost", |(_, domain)| domain);
        format!("{}@{domain}", message.id)
    }

    /// Returns the mail that carries a message.
    pub fn letter(&self, message: &Message, place: &MailPlace, at_ms: i64) -> Letter {
        let subject = place.subject.as_deref().map_or_else(|| subject_of(&self.wish), reply_subject);
        Letter {
            from: self.from.clone(),
            to: self.to.clone(),
            subject,
            message_id: self.message_id(message),
            references: place.references.clone(),
            result_id: self.result_id.clone(),
            text: message.text.clone(),
            at_ms,
        }
    }

    /// Asks the relay to take a mail; `bytes`: the mail as it is written.
    ///
    /// # Errors
    /// The relay cannot be reached, or refuses it.
    pub async fn offer(&self, bytes: Vec<u8>) -> Result<Handover, MailRefusal> {
        self.relay.offer(&self.from.address, &self.to.address, bytes).await
    }

    /// Delivers a message as the first mail of a thread.
    pub(super) async fn deliver(&self, message: &Message) -> Result<Reply, Trouble> {
        // The id of a message holds the time at which it was made (RFC 9562 5.7).
        let made = message.id.get_timestamp().map(|at| at.to_unix());
        let at_ms = made.map_or(0, |(seconds, nanos)| seconds as i64 * 1000 + i64::from(nanos / 1_000_000));
        let letter = self.letter(message, &MailPlace::default(), at_ms);
        let bytes = letter.bytes().map_err(|fault| Trouble::new(FAILED, fault.as_str().to_owned(), None))?;
        let refused = |why: MailRefusal| {
            let again = (!why.is_permanent && !why.is_unknown).then_some(None);
            Trouble::new(FAILED, why.message, again)
        };
        self.offer(bytes).await.map_err(refused)?.complete().await.map_err(refused)?;
        Ok(Reply { id: Some(letter.message_id), ..Reply::default() })
    }
}
