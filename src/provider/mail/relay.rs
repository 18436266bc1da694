//! Sending of a mail in two steps. First the relay is asked whether it takes the mail from this sender for this
//! recipient. Then the mail itself is handed over. Between the two a conversation notes that the mail may be with the
//! relay, so that it is never sent twice.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use lettre::address::Address;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{Certificate, SmtpConnection, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::{ClientId, Extension, MailBodyParameter, MailParameter};
use percent_encoding::percent_decode_str;
use ringer_base::config::Secret;
use ringer_base::tls::Roots;
use tokio::sync::oneshot;
use url::{Host, Url};

use super::super::tls::install_tls;

/// Time limit for each answer of a relay.
const PATIENCE: Duration = Duration::from_secs(30);
/// Name by which this side greets.
const GREETING: &str = "localhost";

/// A relay that takes mails.
#[derive(Clone, Debug)]
pub struct Relay {
    url: Arc<Secret>,
    roots: Roots,
}

/// Reason why a mail was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailRefusal {
    /// True if another attempt would be refused, too.
    pub is_permanent: bool,
    /// True if the mail may have been taken, since no answer came to it.
    pub is_unknown: bool,
    /// Explanation for display, without the relay's URL.
    pub message: String,
}

/// A mail that the relay is ready to take.
#[derive(Debug)]
pub struct Handover {
    go: oneshot::Sender<()>,
    answer: oneshot::Receiver<Result<String, MailRefusal>>,
}

/// A mail with its envelope.
struct Parcel {
    from: Address,
    to: Address,
    bytes: Vec<u8>,
}

impl MailRefusal {
    fn of(what: &str, error: &lettre::transport::smtp::Error) -> MailRefusal {
        let is_permanent = error.is_permanent() || error.is_client();
        MailRefusal { is_permanent, is_unknown: false, message: format!("{what}: {error}") }
    }

    fn permanent(message: &str) -> MailRefusal {
        MailRefusal { is_permanent: true, is_unknown: false, message: message.to_owned() }
    }

    fn gave_up() -> MailRefusal {
        MailRefusal { is_permanent: false, is_unknown: false, message: "the sending was given up".to_owned() }
    }
}

impl Relay {
    /// Returns the relay at `smtp://` (STARTTLS where it is offered) or `smtps://`, with credentials in the URL.
    /// `roots`: authorities that it may be certified by, beside the well-known ones.
    pub fn new(url: Secret, roots: Roots) -> Relay {
        Relay { url: Arc::new(url), roots }
    }

    /// Asks the relay to take a mail.
    ///
    /// # Errors
    /// The relay cannot be reached, or refuses sender, recipient or the mail itself.
    pub async fn offer(&self, from: &str, to: &str, bytes: Vec<u8>) -> Result<Handover, MailRefusal> {
        let address = |text: &str| text.parse::<Address>().ok();
        let (Some(from), Some(to)) = (address(from), address(to)) else {
            return Err(MailRefusal::permanent("an address is not valid"));
        };
        let (relay, parcel) = (self.clone(), Parcel { from, to, bytes });
        let (ready, is_ready) = oneshot::channel();
        let (go, goes) = oneshot::channel();
        let (answered, answer) = oneshot::channel();
        tokio::task::spawn_blocking(move || {
            let mut connection = match relay.open(&parcel) {
                Ok(connection) => connection,
                Err(refusal) => return drop(ready.send(Err(refusal))),
            };
            // Whoever asked may have gone, with this channel or the next one.
            if ready.send(Ok(())).is_err() || goes.blocking_recv().is_err() {
                return connection.abort();
            }
            let _ = answered.send(hand_over(&mut connection, &parcel.bytes));
            let _ = connection.quit();
        });
        is_ready.await.unwrap_or_else(|_| Err(MailRefusal::gave_up()))?;
        Ok(Handover { go, answer })
    }

    /// Opens a connection up to the relay's answer to DATA.
    fn open(&self, parcel: &Parcel) -> Result<SmtpConnection, MailRefusal> {
        let mut connection = self.connect()?;
        let refused = |what: &'static str| move |error: lettre::transport::smtp::Error| MailRefusal::of(what, &error);
        let mut parameters = Vec::new();
        let info = connection.server_info();
        if !parcel.bytes.is_ascii() && info.supports_feature(Extension::EightBitMime) {
            parameters.push(MailParameter::Body(MailBodyParameter::EightBitMime));
        }
        let is_ascii = parcel.from.to_string().is_ascii() && parcel.to.to_string().is_ascii();
        if !is_ascii && !info.supports_feature(Extension::SmtpUtfEight) {
            return Err(MailRefusal::permanent("the relay takes no addresses beyond ASCII (SMTPUTF8)"));
        }
        if !is_ascii {
            parameters.push(MailParameter::SmtpUtfEight);
        }
        let begun = connection
            .command(Mail::new(Some(parcel.from.clone()), parameters))
            .map_err(refused("the relay refused the sender"))
            .and_then(|_| {
                let rcpt = connection.command(Rcpt::new(parcel.to.clone(), Vec::new()));
                rcpt.map_err(refused("the relay refused the recipient"))
            })
            .and_then(|_| connection.command(Data).map_err(refused("the relay refused the mail")));
        match begun {
            Ok(_) => Ok(connection),
            Err(refusal) => {
                connection.abort();
                Err(refusal)
            }
        }
    }

    /// Connects, with TLS and credentials as the URL says.
    fn connect(&self) -> Result<SmtpConnection, MailRefusal> {
        install_tls();
        let bad = || MailRefusal::permanent("email.smtp_url is not valid");
        let url = Url::parse(self.url.expose()).map_err(|_| bad())?;
        let host = match url.host().ok_or_else(bad)? {
            Host::Ipv6(address) => address.to_string(),
            other => other.to_string(),
        };
        let is_wrapped = url.scheme() == "smtps";
        let port = url.port().unwrap_or(if is_wrapped { 465 } else { 587 });
        let failed = |error| MailRefusal::of("the relay could not be used", &error);
        let mut tls = TlsParameters::builder(host.clone());
        for root in self.roots.certificates() {
            tls = tls.add_root_certificate(Certificate::from_der(root.to_vec()).map_err(failed)?);
        }
        let tls = tls.build().map_err(failed)?;
        let greeting = match host.parse::<IpAddr>() {
            Ok(IpAddr::V4(address)) if address.is_loopback() => ClientId::Ipv4(address),
            _ => ClientId::Domain(GREETING.to_owned()),
        };
        let wrapped = is_wrapped.then_some(&tls);
        let mut connection =
            SmtpConnection::connect((host.as_str(), port), Some(PATIENCE), &greeting, wrapped, None).map_err(failed)?;
        let must_encrypt = url.query_pairs().any(|(key, value)| key == "tls" && value == "required");
        if connection.can_starttls() || (must_encrypt && !is_wrapped) {
            connection.starttls(&tls, &greeting).map_err(failed)?;
        }
        if let Some(password) = url.password() {
            let decoded = |text: &str| percent_decode_str(text).decode_utf8().map(|text| text.into_owned());
            let (Ok(user), Ok(password)) = (decoded(url.username()), decoded(password)) else { return Err(bad()) };
            let login = connection.auth(&[Mechanism::Plain, Mechanism::Login], &Credentials::new(user, password));
            login.map_err(failed)?;
        }
        Ok(connection)
    }
}

impl Handover {
    /// Hands the mail over and returns the relay's answer.
    ///
    /// # Errors
    /// The relay refused the mail, or its answer did not come.
    pub async fn complete(self) -> Result<String, MailRefusal> {
        if self.go.send(()).is_err() {
            return Err(MailRefusal::gave_up());
        }
        self.answer.await.unwrap_or_else(|_| Err(MailRefusal::gave_up()))
    }
}

/// Sends the mail itself. Without an answer it is not known whether it was taken.
fn hand_over(connection: &mut SmtpConnection, bytes: &[u8]) -> Result<String, MailRefusal> {
    match connection.message(bytes) {
        Ok(response) => {
            let text: Vec<&str> = response.message().collect();
            Ok(format!("{} {}", response.code(), text.join(" ")).trim_end().to_owned())
        }
        Err(error) => {
            let is_unknown = error.status().is_none();
            Err(MailRefusal { is_unknown, ..MailRefusal::of("the relay refused the mail", &error) })
        }
    }
}
