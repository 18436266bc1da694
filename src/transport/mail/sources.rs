//! Sessions and failures of each source. The table has a fixed size; when it is full, a source that did least is
//! forgotten.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

/// Most sources that are remembered.
const SOURCES: usize = 4096;

/// Limits of sources and their sessions.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceLimits {
    /// Sessions of all sources at once.
    pub sessions: usize,
    /// Sessions of one source at once.
    pub of_source: usize,
    /// Failures of a source after which it is not heard for a while.
    pub failures: usize,
}

#[derive(Debug)]
struct Source {
    sessions: usize,
    failures: usize,
}

/// The sources that connect.
#[derive(Debug)]
pub(super) struct Sources {
    limits: SourceLimits,
    known: HashMap<IpAddr, Source>,
    sessions: usize,
}

impl Sources {
    pub(super) fn new(limits: SourceLimits) -> Sources {
        Sources { limits, known: HashMap::new(), sessions: 0 }
    }

    /// Counts a session in; false: there is no place for it.
    pub(super) fn enter(&mut self, address: IpAddr) -> bool {
        if self.sessions >= self.limits.sessions || self.is_banned(address) {
            return false;
        }
        let limit = self.limits.of_source;
        let source = self.source(address);
        if source.sessions >= limit {
            return false;
        }
        source.sessions += 1;
        self.sessions += 1;
        true
    }

    /// Counts a session out.
    pub(super) fn leave(&mut self, address: IpAddr) {
        self.sessions = self.sessions.saturating_sub(1);
        let key = source_of(address);
        if let Some(source) = self.known.get_mut(&key) {
            source.sessions = source.sessions.saturating_sub(1);
            if source.sessions == 0 && source.failures == 0 {
                self.known.remove(&key);
            }
        }
    }

    /// Counts a failure; true: the source is not heard any more.
    pub(super) fn fail(&mut self, address: IpAddr) -> bool {
        let limit = self.limits.failures;
        let source = self.source(address);
        source.failures += 1;
        source.failures >= limit
    }

    /// Forgets the failures of a source that has brought a mail.
    pub(super) fn forgive(&mut self, address: IpAddr) {
        if let Some(source) = self.known.get_mut(&source_of(address)) {
            source.failures = 0;
        }
    }

    /// Forgets the failures of all sources: each is heard again.
    pub(super) fn forgive_all(&mut self) {
        self.known.retain(|_, source| source.sessions > 0);
        self.known.values_mut().for_each(|source| source.failures = 0);
    }

    fn is_banned(&self, address: IpAddr) -> bool {
        let source = self.known.get(&source_of(address));
        source.is_some_and(|source| source.failures >= self.limits.failures)
    }

    fn source(&mut self, address: IpAddr) -> &mut Source {
        let key = source_of(address);
        if self.known.len() >= SOURCES && !self.known.contains_key(&key) {
            let idle = self.known.iter().filter(|(_, source)| source.sessions == 0);
            if let Some(least) = idle.min_by_key(|(_, source)| source.failures).map(|(key, _)| *key) {
                self.known.remove(&least);
            }
        }
        self.known.entry(key).or_insert(Source { sessions: 0, failures: 0 })
    }
}

/// Returns the source that an address belongs to: of IPv6 the network of 64 bits.
fn source_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: SourceLimits = SourceLimits { sessions: 3, of_source: 2, failures: 2 };

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn sessions_are_limited_in_all_and_for_each_source() {
        let mut sources = Sources::new(LIMITS);
        let (one, other) = (ip("2001:db8::1"), ip("2001:db8::2"));
        assert!(sources.enter(one) && sources.enter(other), "two of one network");
        assert!(!sources.enter(one));
        assert!(sources.enter(ip("192.0.2.1")));
        assert!(!sources.enter(ip("192.0.2.2")), "no place at all");
        sources.leave(one);
        assert!(sources.enter(ip("192.0.2.2")));
    }

    #[test]
    fn a_source_that_fails_is_not_heard_for_a_while() {
        let mut sources = Sources::new(LIMITS);
        let (bad, good) = (ip("192.0.2.1"), ip("192.0.2.2"));
        assert!(!sources.fail(bad));
        assert!(sources.fail(bad));
        assert!(!sources.enter(bad) && sources.enter(good));
        sources.forgive_all();
        assert!(sources.enter(bad), "for a while");
        assert!(!sources.fail(good));
        sources.forgive(good);
        assert!(!sources.fail(good), "a mail makes up for it");
    }

    #[test]
    fn the_table_keeps_its_size() {
        let mut sources = Sources::new(LIMITS);
        for n in 0..2 * SOURCES as u32 {
            sources.fail(IpAddr::V4(n.into()));
        }
        assert!(sources.known.len() <= SOURCES);
    }
}
