//! Servers of SIP addresses by DNS (RFC 3263): NAPTR, SRV, A and AAAA. `plan` says what is asked and what follows from
//! the answers, `ask` asks the name servers, and this file lets both work within limits of time and of a guard.

mod ask;
#[allow(unreachable_pub, reason = "`testing` exports its questions and answers")]
mod plan;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use ringer_base::clock::random_bytes;
use ringer_base::config::SipListen;
use ringer_base::guard::Guard;
use ringer_sip::hop::{Hop, Transport};
use ringer_sip::uri::Uri;
use tokio::time::{Instant, sleep, timeout_at};

use self::ask::{NameServers, answer_in, known_here};
use self::plan::{Answer, Question, Search, Ways};
pub use self::plan::{Families, Lost, Trouble, check_spoken};

/// Transports that this build speaks, the preferred one first. Streams need no listener: this side makes the
/// connections of its calls.
pub const SPOKEN: &[Transport] = &Transport::ALL;

/// Limits of time of one search.
#[derive(Copy, Clone, Debug)]
struct Patience {
    /// Time limit of each round before addresses are asked for, so that time for those is left.
    services: Duration,
    /// Time limit of all rounds together.
    total: Duration,
}

const PATIENCE: Patience = Patience { services: Duration::from_millis(1500), total: Duration::from_secs(5) };

/// Looks up where SIP addresses are reached. Cheap to clone: clones share what the name servers have answered.
#[derive(Clone, Debug)]
pub struct Resolver {
    servers: Option<NameServers>,
    families: Families,
    spoken: Arc<[Transport]>,
    patience: Patience,
}

impl Default for Resolver {
    /// Returns the resolver that asks the system for addresses (`getaddrinfo`) and nobody for NAPTR and SRV.
    fn default() -> Resolver {
        Resolver { servers: None, families: Families::default(), spoken: SPOKEN.into(), patience: PATIENCE }
    }
}

impl Resolver {
    /// Returns the resolver that asks these name servers, without any those of `/etc/resolv.conf`. Where that cannot be
    /// read, the system is asked for addresses alone, with a warning.
    pub fn new(servers: &[SocketAddr]) -> Resolver {
        let made = if servers.is_empty() { NameServers::of_system() } else { NameServers::at(servers) };
        let servers = made.inspect_err(|error| {
            tracing::warn!(%error, "no name servers are known: SIP hosts are looked up without NAPTR and SRV");
        });
        Resolver { servers: servers.ok(), ..Resolver::default() }
    }

    /// Returns the same for a SIP socket that sends to these families.
    pub fn for_families(self, families: Families) -> Resolver {
        Resolver { families, ..self }
    }

    /// Returns the same for a side with these SIP sockets: of their families, and without UDP where no socket has it.
    pub fn for_sockets(self, listen: &SipListen) -> Resolver {
        let spoken = SPOKEN.iter().copied().filter(|&spoken| spoken != Transport::Udp || listen.udp.is_some());
        let spoken: Vec<Transport> = spoken.collect();
        self.for_families(Families::of(listen.ip())).for_transports(&spoken)
    }

    /// Returns the same for a side that speaks these transports, the preferred one first.
    pub fn for_transports(self, spoken: &[Transport]) -> Resolver {
        Resolver { spoken: spoken.into(), ..self }
    }

    /// Looks up the hops of `uri` in the order in which they are tried, as far as `guard` lets them be called. A guard
    /// with names of its own is asked for addresses, and nobody for anything else. At most 5 s and [`plan::HOPS_MOST`]
    /// hops.
    ///
    /// # Errors
    /// [`Lost`].
    pub async fn hops(&self, uri: &Uri, guard: &Guard) -> Result<Vec<Hop>, Lost> {
        let servers = self.servers.as_ref().filter(|_| !guard.has_own_names());
        let ways = |has_services| Ways { spoken: self.spoken.to_vec(), families: self.families, has_services };
        let mut search = Search::begin(uri, ways(servers.is_some()))?;
        if servers.is_some() && !search.questions().is_empty() && known_here(search.domain()).is_some() {
            search = Search::begin(uri, ways(false))?;
        }
        // The time of a sleep that nobody waits for: the runtime's clock, which tests can set.
        let deadline = sleep(self.patience.total).deadline();
        loop {
            let questions = search.questions();
            if questions.is_empty() {
                return search.hops(&|address| guard.allows(address));
            }
            let answers = questions.into_iter().map(|question| async {
                let answer = self.answer(&question, servers, guard, deadline).await;
                (question, answer)
            });
            let answers = BTreeMap::from_iter(join_all(answers).await);
            search.take(&answers, &mut draw);
        }
    }

    async fn answer(
        &self,
        question: &Question,
        servers: Option<&NameServers>,
        guard: &Guard,
        deadline: Instant,
    ) -> Answer {
        let until = match question {
            Question::Addresses(_) => deadline,
            Question::Pointers(_) | Question::Services(_) => deadline.min(sleep(self.patience.services).deadline()),
        };
        let asked = async {
            let answer = match servers {
                Some(servers) => servers.ask(question, self.families).await,
                None => Answer::Addresses(Vec::new()),
            };
            match (question, &answer) {
                (Question::Addresses(name), Answer::Addresses(none))
                    if none.is_empty() && servers.is_none_or(|servers| servers.are_of_system) =>
                {
                    system_answer(guard.names(name).await)
                }
                _ => answer,
            }
        };
        timeout_at(until, asked).await.unwrap_or(Answer::Failed(Trouble::Silent))
    }
}

/// Returns the hops of `uri` where each question is answered by the next of these messages of name servers, and by none
/// after the last.
///
/// # Errors
/// [`Lost`].
pub fn hops_by_messages(uri: &Uri, mut messages: &[&[u8]]) -> Result<Vec<Hop>, Lost> {
    let ways = Ways { spoken: SPOKEN.to_vec(), families: Families::Both, has_services: true };
    let mut search = Search::begin(uri, ways)?;
    loop {
        let questions = search.questions();
        if questions.is_empty() {
            return search.hops(&|_| true);
        }
        let answers = questions.into_iter().map(|question| {
            let next = messages.split_off_first().and_then(|message| answer_in(&question, message));
            (question, next.unwrap_or(Answer::Failed(Trouble::Silent)))
        });
        let answers = BTreeMap::from_iter(answers);
        search.take(&answers, &mut |_| 0);
    }
}

/// Returns the answer that the system's look-up amounts to.
fn system_answer(found: io::Result<Vec<IpAddr>>) -> Answer {
    match found {
        Ok(found) => Answer::Addresses(found),
        // getaddrinfo tells its error (EAI_AGAIN) by its text alone.
        Err(error) if error.to_string().contains("Temporary failure") => Answer::Failed(Trouble::Silent),
        Err(error) => {
            tracing::debug!(%error, "the system finds no address of a name");
            Answer::Addresses(Vec::new())
        }
    }
}

/// Draws a number from 0 to `most`.
fn draw(most: u32) -> u32 {
    let mut bytes = [0; 8];
    random_bytes(&mut bytes);
    (u64::from_be_bytes(bytes) % (u64::from(most) + 1)) as u32
}

#[cfg(test)]
mod tests;
