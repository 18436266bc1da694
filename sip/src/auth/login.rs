//! Challenges that were answered, and are answered again in later requests (RFC 3261 22, RFC 8760).

use super::{Challenge, Credentials};
use crate::ids::Ids;
use crate::message::{Request, Response};

/// Most challenges of one realm that are answered for one request: a first one, and one with a new nonce.
const MAX_OF_REALM: usize = 2;

/// Largest number of challenges that are answered for one request: a proxy's, the other side's, and a new nonce of
/// each.
const MAX_OF_REQUEST: usize = 4;

/// Most realms whose challenges are kept.
const MAX_KNOWN: usize = 8;

/// Realms, each from a proxy (true) or not, whose challenges were answered for one request.
pub(crate) type Challenged = Vec<(bool, String)>;

/// Challenges that were answered, to be answered again in later requests.
pub(crate) struct Login {
    who: Option<Credentials>,
    /// Challenges, each with the number of its nonce's uses.
    known: Vec<(Challenge, u32)>,
}

impl Login {
    pub(crate) fn new(who: Option<Credentials>) -> Login {
        Login { who, known: Vec::new() }
    }

    /// True when a challenge was answered.
    pub(crate) fn is_challenged(&self) -> bool {
        !self.known.is_empty()
    }

    /// Forgets all challenges, as another server is asked from now on.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }

    /// Forgets the credentials, too: they are for another host than the one that is asked from now on.
    pub(crate) fn withhold(&mut self) {
        self.known.clear();
        self.who = None;
    }

    /// Takes the challenges of a 401 or 407; false when they cannot be answered, or when the credentials were refused.
    /// `answered` has those of the same request.
    pub(crate) fn learn(&mut self, response: &Response, answered: &mut Challenged) -> bool {
        let challenges = Challenge::parse_all(&response.headers);
        if self.who.is_none() || challenges.is_empty() {
            return false;
        }
        for challenge in challenges {
            let realm = (challenge.proxy, challenge.realm.clone());
            let times = answered.iter().filter(|known| **known == realm).count();
            if times >= MAX_OF_REALM || answered.len() >= MAX_OF_REQUEST {
                return false;
            }
            answered.push(realm);
            let same = |(known, _): &(Challenge, u32)| known.proxy == challenge.proxy && known.realm == challenge.realm;
            match self.known.iter().position(same) {
                // The credentials that were refused would be sent again.
                Some(at) if self.known[at].0.nonce == challenge.nonce && !challenge.stale => return false,
                Some(at) => self.known[at] = (challenge, 0),
                None => {
                    if self.known.len() == MAX_KNOWN {
                        self.known.remove(0);
                    }
                    self.known.push((challenge, 0));
                }
            }
        }
        true
    }

    /// Adds the credentials for every challenge that is known.
    pub(crate) fn sign(&mut self, request: &mut Request, ids: &mut Ids) {
        let Some(who) = &self.who else { return };
        for (challenge, count) in &mut self.known {
            *count += 1;
            let cnonce = ids.next();
            let value = challenge.answer(who, request.method.as_str(), &request.uri, &request.body, *count, &cnonce);
            request.headers.push(if challenge.proxy { "Proxy-Authorization" } else { "Authorization" }, value);
        }
    }
}
