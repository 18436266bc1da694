//! A mailbox that is read by IMAP (RFC 3501, IDLE of RFC 2177), for those who cannot open a port. Unread mails to
//! addresses of conversations are taken and then marked as read. All others are left as they are, and none is deleted.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_imap::types::{Fetch, UnsolicitedResponse};
use async_imap::{Client, Session};
use futures_util::TryStreamExt;
use percent_encoding::percent_decode_str;
use ringer_base::config::Secret;
use ringer_base::tls::Roots;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;
use url::{Host, Url};

use super::smtp::SessionLimits;
use super::{Arrival, Postbox, Stored};

/// Time limit for an answer of the server.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time after which the mailbox is looked through though nothing was announced.
const LOOK_EVERY: Duration = Duration::from_secs(300);
/// The same on a server without IDLE.
const POLL_EVERY: Duration = Duration::from_secs(30);
/// Waits before a lost connection is opened again: the first, and the longest.
const RECONNECT: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];
/// Most mails that are remembered as not ours.
const FOREIGN: usize = 100_000;
/// Most addresses that are read in the header of a mail.
const ADDRESSES: usize = 200;
/// Header fields with the addresses that a mail came to.
const TO_FIELDS: [&str; 6] = ["to", "cc", "delivered-to", "x-original-to", "envelope-to", "x-envelope-to"];

/// A mailbox on a server.
#[derive(Clone, Debug)]
pub struct Mailbox {
    url: Arc<Secret>,
    roots: Roots,
}

/// Reason why a mailbox cannot be read now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailboxFault(String);

impl fmt::Display for MailboxFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Stream to a server, in the clear or encrypted.
trait Wire: AsyncRead + AsyncWrite + Unpin + Send + fmt::Debug {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + fmt::Debug> Wire for T {}

type Opened = Session<Box<dyn Wire>>;

fn fault(what: &str) -> impl Fn(&dyn fmt::Display) -> MailboxFault {
    move |why| MailboxFault(format!("{what}: {why}"))
}

/// Returns the outcome of work within [`PATIENCE`].
async fn in_time<T, E: fmt::Display>(what: &str, work: impl Future<Output = Result<T, E>>) -> Result<T, MailboxFault> {
    match timeout(PATIENCE, work).await {
        Ok(done) => done.map_err(|why| fault(what)(&why)),
        Err(_) => Err(fault(what)(&"no answer in time")),
    }
}

impl Mailbox {
    /// Returns the mailbox at `imaps://USER:PASSWORD@HOST:PORT/FOLDER`. `roots`: authorities that the server may be
    /// certified by, beside the well-known ones.
    pub fn new(url: Secret, roots: Roots) -> Mailbox {
        Mailbox { url: Arc::new(url), roots }
    }

    /// Reads the mailbox until `stopping`. A connection that is lost is opened again.
    pub async fn serve(self, postbox: Arc<dyn Postbox>, stopping: CancellationToken) {
        let reading = async {
            let (mut foreign, mut wait) = (Foreign::default(), RECONNECT[0]);
            loop {
                let (has_read, why) = self.read_once(&*postbox, &mut foreign).await;
                tracing::warn!(%why, "the mailbox cannot be read");
                wait = if has_read { RECONNECT[0] } else { wait };
                sleep(wait).await;
                wait = (2 * wait).min(RECONNECT[1]);
            }
        };
        tokio::select! {
            () = stopping.cancelled() => {}
            () = reading => {}
        }
    }

    /// Reads the mailbox as long as the connection lasts; returns true beside the reason if it was read.
    async fn read_once(&self, postbox: &dyn Postbox, foreign: &mut Foreign) -> (bool, MailboxFault) {
        let (mut session, can_idle) = match self.open(foreign).await {
            Ok(opened) => opened,
            Err(why) => return (false, why),
        };
        let mut has_news = announcements(&session);
        loop {
            // What was announced so far is found now.
            has_news();
            if let Err(why) = take_unread(&mut session, postbox, foreign).await {
                return (true, why);
            }
            // The server announces a mail once, in its answer to any command.
            if has_news() {
                continue;
            }
            session = match wait_for_mail(session, can_idle).await {
                Ok(session) => session,
                Err(why) => return (true, why),
            };
        }
    }

    /// Opens the mailbox; returns true beside the session if the server announces mails by itself (IDLE).
    async fn open(&self, foreign: &mut Foreign) -> Result<(Opened, bool), MailboxFault> {
        let bad = || MailboxFault("email.imap_url is not valid".to_owned());
        let url = Url::parse(self.url.expose()).map_err(|_| bad())?;
        let host = match url.host().ok_or_else(bad)? {
            Host::Ipv6(address) => address.to_string(),
            other => other.to_string(),
        };
        let is_encrypted = url.scheme() == "imaps";
        let port = url.port().unwrap_or(if is_encrypted { 993 } else { 143 });
        let stream = in_time("connecting", TcpStream::connect((host.as_str(), port))).await?;
        let wire: Box<dyn Wire> = match is_encrypted {
            false => Box::new(stream),
            true => {
                let name = ServerName::try_from(host).map_err(|_| bad())?;
                let connector = TlsConnector::from(Arc::new(self.roots.config()));
                Box::new(in_time("TLS", connector.connect(name, stream)).await?)
            }
        };
        let mut client = Client::new(wire);
        in_time("greeting", client.read_response()).await?;
        let decoded = |text: &str| percent_decode_str(text).decode_utf8().map(|text| text.into_owned());
        let password = decoded(url.password().unwrap_or_default()).map_err(|_| bad())?;
        let user = decoded(url.username()).map_err(|_| bad())?;
        let login = async { client.login(user, password).await.map_err(|(why, _)| why) };
        let mut session = in_time("login", login).await?;
        let folder = decoded(url.path().trim_start_matches('/')).map_err(|_| bad())?;
        let folder = if folder.is_empty() { "INBOX".to_owned() } else { folder };
        let selected = in_time("selecting the folder", session.select(folder)).await?;
        foreign.begin(selected.uid_validity);
        let capabilities = in_time("capabilities", session.capabilities()).await?;
        Ok((session, capabilities.has_str("IDLE")))
    }
}

/// Mails that were looked at and are not ours, by their numbers in the folder.
#[derive(Debug, Default)]
struct Foreign {
    validity: Option<u32>,
    known: HashSet<u32>,
}

impl Foreign {
    /// Forgets numbers that the server has given anew.
    fn begin(&mut self, validity: Option<u32>) {
        if self.validity != validity {
            self.known.clear();
            self.validity = validity;
        }
    }

    fn add(&mut self, uid: u32) {
        if self.known.len() >= FOREIGN {
            self.known.clear();
        }
        self.known.insert(uid);
    }
}

/// Takes the unread mails to addresses of conversations.
async fn take_unread(session: &mut Opened, postbox: &dyn Postbox, foreign: &mut Foreign) -> Result<(), MailboxFault> {
    let unread = in_time("searching", session.uid_search("UNSEEN")).await?;
    let mut unread: Vec<u32> = unread.into_iter().filter(|uid| !foreign.known.contains(uid)).collect();
    unread.sort_unstable();
    for uid in unread {
        let query = "(UID RFC822.SIZE BODY.PEEK[HEADER])";
        let Some(head) = fetch(session, uid, query).await? else { continue };
        let most = SessionLimits::default();
        if head.size.is_some_and(|size| size as usize > most.mail_bytes) {
            tracing::warn!(uid, "a mail in the mailbox is too large and left there");
            foreign.add(uid);
            continue;
        }
        let (mut recipients, mut is_certain) = (Vec::new(), true);
        for address in addresses_in(&String::from_utf8_lossy(head.header().unwrap_or_default())) {
            match postbox.knows(&address).await {
                Some(true) if recipients.len() < most.recipients => recipients.push(address),
                Some(_) => {}
                None => is_certain = false,
            }
        }
        if recipients.is_empty() {
            if is_certain {
                foreign.add(uid);
            }
            continue;
        }
        let Some(whole) = fetch(session, uid, "(UID BODY.PEEK[])").await? else { continue };
        let raw = whole.body().unwrap_or_default().to_vec();
        let envelope_from = return_path(&raw);
        match postbox.store(Arrival { source: None, envelope_from, recipients, raw }).await {
            Stored::Kept => {
                let marked = async {
                    let changes = session.uid_store(uid.to_string(), "+FLAGS (\\Seen)").await?;
                    changes.try_collect::<Vec<_>>().await
                };
                in_time("marking a mail as read", marked).await?;
            }
            Stored::Refused(why) => {
                tracing::warn!(uid, why, "a mail in the mailbox is refused and left there");
                foreign.add(uid);
            }
            // It is found again at the next look.
            Stored::Later => {}
        }
    }
    Ok(())
}

async fn fetch(session: &mut Opened, uid: u32, query: &str) -> Result<Option<Fetch>, MailboxFault> {
    let fetched = async {
        let fetched = session.uid_fetch(uid.to_string(), query).await?;
        fetched.try_collect::<Vec<_>>().await
    };
    Ok(in_time("fetching a mail", fetched).await?.into_iter().find(|mail| mail.uid == Some(uid)))
}

/// Returns a function that tells if mails were announced since it was last asked.
fn announcements(session: &Opened) -> impl FnMut() -> bool + use<> {
    let responses = session.unsolicited_responses.clone();
    move || {
        let mut is_announced = false;
        while let Ok(response) = responses.try_recv() {
            is_announced |= matches!(response, UnsolicitedResponse::Exists(_) | UnsolicitedResponse::Recent(_));
        }
        is_announced
    }
}

/// Waits until the server announces something, or for a while.
async fn wait_for_mail(mut session: Opened, can_idle: bool) -> Result<Opened, MailboxFault> {
    if !can_idle {
        sleep(POLL_EVERY).await;
        in_time("asking for news", session.noop()).await?;
        return Ok(session);
    }
    let mut has_news = announcements(&session);
    let mut idle = session.idle();
    in_time("waiting", idle.init()).await?;
    if !has_news() {
        let (news, _interrupt) = idle.wait_with_timeout(LOOK_EVERY);
        // A keep-alive of the server must not put the next look off for ever.
        let _ = timeout(LOOK_EVERY, news)
            .await
            .map(|news| news.map_err(|why| fault("waiting")(&why)))
            .unwrap_or_else(|_| Ok(async_imap::extensions::idle::IdleResponse::Timeout))?;
    }
    in_time("ending the wait", idle.done()).await
}

/// Returns the addresses in the fields of a header that tell to whom a mail came, each once.
fn addresses_in(header: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_wanted = false;
    for line in header.lines() {
        let text = match line.starts_with([' ', '\t']) {
            true => line,
            false => {
                let (name, value) = line.split_once(':').unwrap_or(("", ""));
                is_wanted = TO_FIELDS.iter().any(|field| name.trim().eq_ignore_ascii_case(field));
                value
            }
        };
        if !is_wanted {
            continue;
        }
        let words = text.split(|c: char| c.is_whitespace() || "<>,;:\"()".contains(c));
        for word in words.filter(|word| word.contains('@')) {
            let word = word.to_ascii_lowercase();
            if found.len() < ADDRESSES && !found.contains(&word) {
                found.push(word);
            }
        }
    }
    found
}

/// Returns the sender of the envelope, as the server noted it in the first field Return-Path.
fn return_path(raw: &[u8]) -> String {
    let head = String::from_utf8_lossy(&raw[..raw.len().min(64 * 1024)]).into_owned();
    let lines = head.lines().take_while(|line| !line.is_empty());
    let field = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("return-path").then(|| value.trim().trim_matches(['<', '>']).to_owned())
    };
    lines.filter_map(field).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_that_a_mail_came_to_are_found() {
        let header = "Delivered-To: qa+dh-1-0a@x.example\r\nFrom: other@y.example\r\nTo: \"A, B\" <QA+dh-1-0a@x.example>,\r\n \
                      <c@d.example>\r\nSubject: to: z@z.example\r\nCc: e@f.example\r\n";
        assert_eq!(addresses_in(header), ["qa+dh-1-0a@x.example", "c@d.example", "e@f.example"]);
        assert!(addresses_in("no header").is_empty());
        assert_eq!(addresses_in(&format!("To: {}", "a@b ".repeat(3))).len(), 1);
    }

    #[test]
    fn the_sender_of_the_envelope_is_the_servers() {
        assert_eq!(return_path(b"Return-Path: <a@b.example>\r\nFrom: c@d\r\n\r\nReturn-Path: <e@f>"), "a@b.example");
        assert_eq!(return_path(b"Return-Path: <>\r\n\r\n"), "");
        assert_eq!(return_path(b"From: c@d\r\n\r\nReturn-Path: <e@f>"), "");
    }
}
