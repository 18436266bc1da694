//! The handshake of one port, until there are keys: associations that fail make way for fresh ones.
//!
//! Anybody who can send datagrams from the agreed address can begin a handshake. As long as none has brought keys, each
//! ClientHello with another random number is an association of its own, so that a forged one does not stand in the way
//! of the real one.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ringer_media::rtp::srtp::SrtpParams;

use super::association::{Association, Fault};
use super::{Expected, Identity};

/// Most associations at once.
const MOST_AT_ONCE: usize = 4;

/// Associations that one channel begins in a second: each costs a key. Others are passed over until the next second, as
/// if they had been lost.
const MOST_IN_A_SECOND: u32 = 64;

/// Least distance between two handshakes that this side begins.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Record type of handshake messages (RFC 6347 4.1).
const HANDSHAKE: u8 = 22;

/// Message type of a ClientHello (RFC 6347 4.2.2).
const CLIENT_HELLO: u8 = 1;

/// Place of the random number in a datagram with a ClientHello: behind both headers and the version.
const RANDOM: std::ops::Range<usize> = 27..59;

/// An output of a channel.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// A datagram to send.
    Send(Vec<u8>),
    /// The handshake is done.
    Keys(SrtpParams),
}

/// A handshake that was begun.
struct Candidate {
    /// Random number of the ClientHello that began it; `None`: this side did.
    random: Option<[u8; 32]>,
    /// True if its ClientHello had a cookie. Only a reader of the agreed address can know it (RFC 6347 4.2.1).
    has_cookie: bool,
    association: Association,
}

/// The handshake of one port.
pub struct Channel {
    identity: Identity,
    expected: Expected,
    /// Oldest first. Once there are keys, the one that brought them.
    candidates: Vec<Candidate>,
    /// Associations of the second that began then.
    begun: (u32, Instant),
    /// Time at which this side begins again.
    again_at: Option<Instant>,
    is_done: bool,
    fault: Option<Fault>,
    news: VecDeque<News>,
}

impl Channel {
    /// Returns a channel that begins at once where this side is the client.
    pub fn new(identity: &Identity, expected: Expected, now: Instant) -> Channel {
        let mut channel = Channel {
            identity: identity.clone(),
            expected,
            candidates: Vec::new(),
            begun: (0, now),
            again_at: None,
            is_done: false,
            fault: None,
            news: VecDeque::new(),
        };
        if expected.active {
            channel.begin(None, now);
        }
        channel
    }

    /// True once there are keys.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Returns the reason that counts most for which there are no keys yet: a wrong certificate before all others.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// Takes a datagram that came from the other side.
    pub fn receive(&mut self, datagram: &[u8], now: Instant) {
        let hello = client_hello(datagram);
        // Also behind a handshake that is done: the other side may have missed its end, given up and begun anew.
        if let Some((random, has_cookie)) = hello.filter(|_| !self.expected.active) {
            let known = self.candidates.iter_mut().find(|candidate| candidate.random == Some(random));
            match known {
                Some(candidate) => candidate.has_cookie |= has_cookie,
                None => self.begin(Some(random), now),
            }
        }
        let is_for = |candidate: &Candidate| match hello {
            Some((random, _)) => candidate.random.is_none_or(|known| known == random),
            // Later datagrams do not show their sender; one that never read an answer has none to send.
            None => candidate.random.is_none() || candidate.has_cookie,
        };
        let for_whom: Vec<bool> = self.candidates.iter().map(is_for).collect();
        let mut at = 0;
        for is_for in for_whom {
            if !is_for {
                at += 1;
                continue;
            }
            let candidate = &mut self.candidates[at];
            let taken = candidate.association.receive(datagram, now);
            let sent = std::iter::from_fn(|| candidate.association.datagram()).map(News::Send);
            self.news.extend(sent);
            match taken {
                Ok(None) => at += 1,
                Ok(Some(keys)) => {
                    self.is_done = true;
                    self.candidates.swap(0, at);
                    self.candidates.truncate(1);
                    self.news.push_back(News::Keys(keys));
                    return;
                }
                Err(fault) => self.drop_candidate(at, fault, now),
            }
        }
    }

    /// Sends again what was not answered, and begins again where that is due.
    pub fn wake(&mut self, now: Instant) {
        let mut at = 0;
        while let Some(candidate) = self.candidates.get_mut(at) {
            let woken = candidate.association.wake(now);
            let sent = std::iter::from_fn(|| candidate.association.datagram()).map(News::Send);
            self.news.extend(sent);
            match woken {
                Ok(()) => at += 1,
                Err(_) if candidate.association.is_done() => at += 1,
                Err(fault) => self.drop_candidate(at, fault, now),
            }
        }
        if self.again_at.is_some_and(|due| due <= now) && !self.is_done && self.candidates.is_empty() {
            self.again_at = None;
            self.begin(None, now);
        }
    }

    /// Returns the next piece of news.
    pub fn poll(&mut self) -> Option<News> {
        self.news.pop_front()
    }

    fn begin(&mut self, random: Option<[u8; 32]>, now: Instant) {
        if now.saturating_duration_since(self.begun.1) >= Duration::from_secs(1) {
            self.begun = (0, now);
        }
        if self.begun.0 >= MOST_IN_A_SECOND {
            return;
        }
        self.begun.0 += 1;
        if self.candidates.len() >= MOST_AT_ONCE {
            let least = self.candidates.iter().position(|candidate| !candidate.has_cookie);
            let undone = self.candidates.iter().position(|candidate| !candidate.association.is_done());
            self.candidates.remove(least.or(undone).unwrap_or(0));
        }
        match Association::new(&self.identity, self.expected, now) {
            Ok(mut association) => {
                self.news.extend(std::iter::from_fn(|| association.datagram()).map(News::Send));
                self.candidates.push(Candidate { random, has_cookie: false, association });
            }
            Err(fault) => self.note(fault, now),
        }
    }

    fn drop_candidate(&mut self, at: usize, fault: Fault, now: Instant) {
        self.candidates.remove(at);
        self.note(fault, now);
    }

    fn note(&mut self, fault: Fault, now: Instant) {
        if self.expected.active {
            self.again_at = Some(now + AGAIN_AFTER);
        }
        if self.fault != Some(Fault::Certificate) {
            self.fault = Some(fault);
        }
    }
}

/// Returns the random number of a ClientHello, and whether it has a cookie; `None` for every other datagram.
fn client_hello(datagram: &[u8]) -> Option<([u8; 32], bool)> {
    let is_first_piece = datagram.get(19..22)? == [0, 0, 0];
    if datagram[0] != HANDSHAKE || datagram[3..5] != [0, 0] || datagram[13] != CLIENT_HELLO || !is_first_piece {
        return None;
    }
    let random = datagram.get(RANDOM)?.try_into().ok()?;
    // A session's name, and then the cookie, each behind its length.
    let name = usize::from(*datagram.get(RANDOM.end)?);
    let cookie = datagram.get(RANDOM.end + 1 + name)?;
    Some((random, *cookie > 0))
}
