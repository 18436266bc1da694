//! Mail: notices through the relay of the settings; mails of conversations, which are written, sent and read.

mod letter;
mod quoted;
mod read;
mod relay;
mod report;

use std::time::Duration;

use lettre::message::Mailbox;
use lettre::{Message, SmtpTransport, Transport};

pub use self::letter::{Letter, LetterFault, MailParty, one_line, reply_subject, subject_of};
pub use self::quoted::{SplitText, new_words, split_text};
pub use self::read::{MailFault, MostMail, ReadMail, Sender, read_mail};
pub use self::relay::{Handover, MailRefusal, Relay};
pub use self::report::{Delivery, DeliveryReport};
use super::Failure;
use super::tls::install_tls;

/// Time limit for each answer of a mail relay.
const PATIENCE: Duration = Duration::from_secs(30);

fn failure(why: impl std::fmt::Display) -> Failure {
    Failure { code: "not_sent", message: why.to_string() }
}

/// Plain-text mail to one recipient.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Mail<'a> {
    /// Address of the sender.
    pub from: &'a str,
    /// Address of the recipient.
    pub to: &'a str,
    /// Subject, a single line.
    pub subject: &'a str,
    /// Body in plain text.
    pub text: &'a str,
}

/// Sends a mail through the relay at `relay`, `smtp://` (STARTTLS where it is offered) or `smtps://` with credentials
/// in the URL.
///
/// # Errors
/// `not_sent`: an address or URL that cannot be used, a relay that does not answer or refuses. The message holds no
/// credentials.
pub async fn mail(relay: &str, mail: Mail<'_>) -> Result<(), Failure> {
    install_tls();
    let mailbox = |text: &str| text.parse::<Mailbox>().map_err(|_| failure("an address is not valid"));
    let subject: String = mail.subject.chars().filter(|c| !c.is_control()).collect();
    let message = Message::builder().from(mailbox(mail.from)?).to(mailbox(mail.to)?).subject(subject);
    let message = message.body(mail.text.to_owned()).map_err(failure)?;
    let relay = if relay.starts_with("smtp://") && !relay.contains("tls=") {
        format!("{relay}{}tls=opportunistic", if relay.contains('?') { "&" } else { "?" })
    } else {
        relay.to_owned()
    };
    let transport = SmtpTransport::from_url(&relay).map_err(|_| failure("notify.smtp_url is not valid"))?;
    let transport = transport.timeout(Some(PATIENCE)).build();
    let sent = tokio::task::spawn_blocking(move || transport.send(&message)).await.map_err(failure)?;
    sent.map(drop).map_err(|error| failure(format_args!("the mail relay refused: {error}")))
}
