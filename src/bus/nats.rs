//! The side through a server of NATS.

use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event, Request, Subject};
use async_trait::async_trait;
use futures_util::StreamExt;
use parking_lot::Mutex;
use ringer_base::config::Bus;
use ringer_base::tasks::Tasks;
use ringer_base::tls::Roots;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::{Inner, Link, LiveBus, MESSAGE_BYTES, Message, Reply, Subscription};

/// Longest time for which a start waits for the first connection.
const FIRST: Duration = Duration::from_secs(5);
/// Longest time for one try to connect.
const ONE_TRY: Duration = Duration::from_secs(3);
/// Longest time between two tries to connect.
const BETWEEN: Duration = Duration::from_secs(2);
/// Time between two tries after the server has refused the credentials.
const BETWEEN_REFUSALS: Duration = Duration::from_secs(15);
/// Interval at which a silent connection is tested.
const PING_EVERY: Duration = Duration::from_secs(10);
/// Messages that may wait to be sent; more are lost.
const WAITING: usize = 4096;
/// Messages that may wait for one listener; more are lost.
const WAITING_IN: usize = 8192;

/// Text of the client about credentials that the server refuses.
const REFUSED: &str = "authorization violation";

/// A message on its way to the server.
struct Outgoing {
    subject: String,
    bytes: Vec<u8>,
}

/// Messages through a server of NATS, or a cluster of them. A lost connection is made again.
pub struct NatsBus {
    client: Client,
    link: watch::Receiver<Link>,
    outgoing: mpsc::Sender<Outgoing>,
}

/// Messages of one subscription.
pub(crate) struct Incoming {
    messages: async_nats::Subscriber,
    outgoing: mpsc::Sender<Outgoing>,
}

impl NatsBus {
    /// Connects to the servers of the settings, and goes on trying while there is no connection. Returns after the
    /// first try, whatever came of it.
    ///
    /// # Errors
    /// The settings cannot be used: the file of credentials, an address. The text names the setting.
    pub async fn connect(settings: &Bus, roots: &Roots, name: &str, tasks: &Tasks) -> Result<NatsBus, String> {
        let state = Arc::new(State::new(settings));
        let mut link = state.link.subscribe();
        let (noted, paced) = (state.clone(), state);
        let options = options(settings, roots)
            .await?
            .name(format!("ringer {name}"))
            .retry_on_initial_connect()
            .max_reconnects(None)
            .reconnect_delay_callback(move |tries| paced.pause(tries))
            .event_callback(move |event| {
                noted.note(&event);
                std::future::ready(())
            });
        let client = options.connect(&settings.url).await.map_err(|error| format!("bus.url: {error}"))?;
        let known = async { while link.borrow().clone() == first_link() && link.changed().await.is_ok() {} };
        let _ = timeout(FIRST, known).await;
        let (outgoing, waiting) = mpsc::channel(WAITING);
        tasks.spawn_until_stop("bus", send(client.clone(), link.clone(), waiting));
        Ok(NatsBus { client, link, outgoing })
    }
}

/// Asks the servers of the settings once; returns the version of the one that answers.
///
/// # Errors
/// Says why there is no connection, and names the setting.
pub async fn check(settings: &Bus, roots: &Roots) -> Result<String, String> {
    let client = options(settings, roots).await?.connect(&settings.url).await;
    let client = client.map_err(|error| reason(settings, &error.to_string()))?;
    let version = client.server_info().version;
    let _ = client.drain().await;
    Ok(version)
}

async fn options(settings: &Bus, roots: &Roots) -> Result<ConnectOptions, String> {
    let mut options = ConnectOptions::new()
        .connection_timeout(ONE_TRY)
        .ping_interval(PING_EVERY)
        .subscription_capacity(WAITING_IN)
        .custom_inbox_prefix(format!("{}.inbox", settings.prefix))
        .tls_client_config(roots.config());
    if let (Some(user), Some(password)) = (&settings.user, &settings.password) {
        options = options.user_and_password(user.clone(), password.expose().to_owned());
    }
    if let Some(path) = &settings.credentials {
        let text = tokio::fs::read_to_string(path).await;
        let text = text.map_err(|error| format!("bus.credentials: {}: {error}", path.display()))?;
        let read = options.credentials(&text);
        options = read.map_err(|_| format!("bus.credentials: {}: it holds no credentials", path.display()))?;
    }
    Ok(options)
}

/// Returns the state before the first try.
fn first_link() -> Link {
    Link::Away(String::new())
}

/// Returns why there is no connection, with the settings that can mend it.
fn reason(settings: &Bus, said: &str) -> String {
    let at = settings.url.join(", ");
    if said.to_ascii_lowercase().contains(REFUSED) || said.contains("signing nonce") {
        return format!(
            "the bus at {at} refuses the credentials, or asks for some (bus.user and bus.password, or bus.credentials)"
        );
    }
    if said.contains("TLS") || said.to_ascii_lowercase().contains("certificate") {
        return format!("the bus at {at}: the TLS connection failed: {said} (bus.url, tls.root_file)");
    }
    format!("the bus at {at} does not answer: {said} (bus.url)")
}

/// State of the connection, as far as the client tells it.
struct State {
    settings: Bus,
    link: watch::Sender<Link>,
    /// Reason that was logged last; `None`: the connection was made since.
    logged: Mutex<Option<String>>,
}

impl State {
    fn new(settings: &Bus) -> State {
        State { settings: settings.clone(), link: watch::Sender::new(first_link()), logged: Mutex::default() }
    }

    /// Takes an event of the client, and logs what changes.
    fn note(&self, event: &Event) {
        match event {
            Event::Connected => {
                self.logged.lock().take();
                tracing::info!(at = self.settings.url.join(", "), "connected to the bus");
                self.link.send_replace(Link::Up);
            }
            Event::Disconnected | Event::Closed => self.be_away("the connection was lost".to_owned()),
            Event::ServerError(error) => {
                let why = error.to_string();
                // Others are about one message, and the connection stays.
                match why.to_ascii_lowercase().contains(REFUSED) {
                    true => self.be_away(reason(&self.settings, &why)),
                    false => tracing::warn!(error = %why, "the server of the bus refused something"),
                }
            }
            Event::ClientError(error) if !self.link.borrow().is_up() => {
                self.be_away(reason(&self.settings, &error.to_string()));
            }
            Event::SlowConsumer(_) => tracing::warn!("messages of the bus were lost: too many came at once"),
            Event::ClientError(_) | Event::LameDuckMode | Event::Draining => {}
        }
    }

    fn be_away(&self, why: String) {
        let mut logged = self.logged.lock();
        if logged.as_ref() != Some(&why) {
            tracing::warn!("no bus: {why}; calls, jobs and results go on without it");
            *logged = Some(why.clone());
        }
        drop(logged);
        self.link.send_replace(Link::Away(why));
    }

    /// Returns the time before the next try to connect.
    fn pause(&self, tries: usize) -> Duration {
        let is_refused = matches!(&*self.link.borrow(), Link::Away(why) if why.contains("refuses the credentials"));
        if is_refused {
            return BETWEEN_REFUSALS;
        }
        let doublings = u32::try_from(tries.saturating_sub(1)).unwrap_or(u32::MAX);
        Duration::from_millis(50).saturating_mul(2_u32.saturating_pow(doublings.min(10))).min(BETWEEN)
    }
}

/// Hands messages to the client in their order. What waits while there is no connection is lost: it is news of then.
async fn send(client: Client, link: watch::Receiver<Link>, mut waiting: mpsc::Receiver<Outgoing>) {
    while let Some(Outgoing { subject, bytes }) = waiting.recv().await {
        if !link.borrow().is_up() {
            continue;
        }
        if let Err(error) = client.publish(subject, bytes.into()).await {
            tracing::warn!(%error, "a message could not be sent on the bus");
        }
    }
}

#[async_trait]
impl LiveBus for NatsBus {
    fn publish(&self, subject: String, bytes: Vec<u8>) {
        if bytes.len() > MESSAGE_BYTES {
            tracing::warn!(bytes = bytes.len(), "a message was too long for the bus");
            return;
        }
        let _ = self.outgoing.try_send(Outgoing { subject, bytes });
    }

    async fn subscribe(&self, pattern: String) -> Subscription {
        match self.client.subscribe(pattern).await {
            Ok(messages) => {
                let incoming = Incoming { messages, outgoing: self.outgoing.clone() };
                Subscription(Inner::Nats(Box::new(incoming)))
            }
            Err(error) => {
                tracing::error!(%error, "the bus takes no more listeners");
                Subscription(Inner::Silent)
            }
        }
    }

    async fn request(&self, subject: String, bytes: Vec<u8>, within: Duration) -> Option<Vec<u8>> {
        if !self.link.borrow().is_up() {
            return None;
        }
        let request = Request::new().payload(bytes.into()).timeout(Some(within));
        let answer = self.client.send_request(Subject::from(subject), request).await.ok()?;
        Some(answer.payload.to_vec())
    }

    fn link(&self) -> watch::Receiver<Link> {
        self.link.clone()
    }
}

impl Incoming {
    pub(crate) async fn next(&mut self) -> Option<Message> {
        let message = self.messages.next().await?;
        let outgoing = self.outgoing.clone();
        let reply = message.reply.map(|subject| {
            Reply(Box::new(move |bytes| {
                let _ = outgoing.try_send(Outgoing { subject: subject.to_string(), bytes });
            }))
        });
        Some(Message { subject: message.subject.to_string(), bytes: message.payload.to_vec(), reply })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_names_the_setting_that_can_mend_it() {
        let settings = Bus { url: vec!["nats://bus:4222".to_owned()], ..Bus::default() };
        for (said, expect) in [
            ("authorization violation", "refuses the credentials, or asks for some (bus.user and bus.password"),
            ("TLS error", "the TLS connection failed: TLS error (bus.url, tls.root_file)"),
            ("IO error", "does not answer: IO error (bus.url)"),
        ] {
            let why = reason(&settings, said);
            assert!(why.starts_with("the bus at nats://bus:4222") && why.contains(expect), "{why}");
        }
    }

    #[test]
    fn tries_to_connect_grow_rare_and_those_with_wrong_credentials_are_rare() {
        let state = State::new(&Bus::default());
        assert_eq!(state.pause(1), Duration::from_millis(50));
        assert_eq!(state.pause(3), Duration::from_millis(200));
        assert_eq!((state.pause(9), state.pause(usize::MAX)), (BETWEEN, BETWEEN));
        state.note(&Event::ClientError(async_nats::ClientError::Other(REFUSED.to_owned())));
        assert_eq!(state.pause(1), BETWEEN_REFUSALS);
    }
}
