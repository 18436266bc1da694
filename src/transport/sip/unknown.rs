//! Limits of what strangers send, looked at before it is parsed: a token bucket for each host, in a table of fixed
//! size. While that is full, the hosts that have no place in it share one bucket. Nobody is banned: over UDP a source
//! may be forged.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::time::Duration;

use ringer_base::config::{Sources, network_of};
use ringer_sip::{CallKey, Time};

/// Messages that a host may send at once. A call takes about four.
const BURST: u32 = 200;
/// Messages a second that a host may send on and on.
const RATE: u32 = 50;
/// Hosts that have a bucket of their own.
const HOSTS: usize = 1024;
/// Messages at once, and a second, of all hosts that have no bucket of their own.
const SHARED: (u32, u32) = (200, 100);
/// Shortest distance of two searches for hosts that have been silent.
const SWEEP: Duration = Duration::from_secs(1);

/// Messages that may still come; it fills with time.
#[derive(Copy, Clone, Debug)]
struct Bucket {
    left: f64,
    at: Time,
}

impl Bucket {
    fn take(&mut self, now: Time, (burst, rate): (u32, u32)) -> bool {
        self.fill(now, (burst, rate));
        let has = self.left >= 1.0;
        self.left -= f64::from(u8::from(has));
        has
    }

    fn fill(&mut self, now: Time, (burst, rate): (u32, u32)) {
        let more = now.since(self.at).as_secs_f64() * f64::from(rate);
        (self.left, self.at) = ((self.left + more).min(f64::from(burst)), now);
    }
}

/// Strangers, and those who are none.
pub(super) struct Strangers {
    /// Hosts that may call in by the settings; `None`: nobody is limited.
    allowed: Option<Sources>,
    hosts: HashMap<IpAddr, Bucket>,
    shared: Bucket,
    swept: Time,
    /// Hosts of calls that were answered, or are being made.
    partners: HashMap<CallKey, HashSet<IpAddr>>,
    /// Number of calls with each of them.
    calls: HashMap<IpAddr, usize>,
}

impl Strangers {
    pub(super) fn new(now: Time) -> Strangers {
        let shared = Bucket { left: f64::from(SHARED.0), at: now };
        let (hosts, partners, calls) = (HashMap::new(), HashMap::new(), HashMap::new());
        Strangers { allowed: None, hosts, shared, swept: now, partners, calls }
    }

    /// Limits everybody from now on who is not in `allowed`; an empty list names nobody.
    pub(super) fn limit(&mut self, allowed: Sources) {
        self.allowed = Some(allowed);
    }

    /// True if a host is a stranger, and strangers are limited.
    pub(super) fn is_one(&self, host: IpAddr) -> bool {
        let is_allowed = |allowed: &Sources| !allowed.is_empty() && allowed.allow(host);
        self.allowed.as_ref().is_some_and(|allowed| !is_allowed(allowed))
            && !self.calls.contains_key(&host.to_canonical())
    }

    /// Takes a host that a call has to do with.
    pub(super) fn note_partner(&mut self, call: CallKey, host: IpAddr) {
        let host = host.to_canonical();
        if self.partners.entry(call).or_default().insert(host) {
            *self.calls.entry(host).or_default() += 1;
        }
    }

    /// True for a call that was answered, or is being made.
    pub(super) fn has_call(&self, call: CallKey) -> bool {
        self.partners.contains_key(&call)
    }

    /// Returns the number of calls whose hosts are known.
    pub(super) fn count_calls(&self) -> usize {
        self.partners.len()
    }

    /// Forgets the calls for which `is_live` is false.
    pub(super) fn retain(&mut self, is_live: impl Fn(&CallKey) -> bool) {
        let calls = &mut self.calls;
        self.partners.retain(|call, hosts| {
            let is_kept = is_live(call);
            for host in hosts.iter().filter(|_| !is_kept) {
                if let Some(count) = calls.get_mut(host) {
                    *count -= 1;
                    if *count == 0 {
                        calls.remove(host);
                    }
                }
            }
            is_kept
        });
    }

    /// True if one more message of this stranger is looked at.
    pub(super) fn admits(&mut self, now: Time, host: IpAddr) -> bool {
        let host = network_of(host);
        if let Some(bucket) = self.hosts.get_mut(&host) {
            return bucket.take(now, (BURST, RATE));
        }
        if self.hosts.len() >= HOSTS && now.since(self.swept) >= SWEEP {
            self.swept = now;
            self.hosts.retain(|_, bucket| {
                bucket.fill(now, (BURST, RATE));
                bucket.left < f64::from(BURST)
            });
        }
        if self.hosts.len() >= HOSTS {
            return self.shared.take(now, SHARED);
        }
        self.hosts.insert(host, Bucket { left: f64::from(BURST) - 1.0, at: now });
        true
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn host(number: u32) -> IpAddr {
        Ipv4Addr::from_bits(0x0a00_0000 + number).into()
    }

    /// Returns how many of these messages are looked at, which come at the same time.
    fn count_admitted(strangers: &mut Strangers, now: Time, from: impl Iterator<Item = IpAddr>) -> u32 {
        from.map(|host| u32::from(strangers.admits(now, host))).sum()
    }

    #[test]
    fn one_host_has_its_burst_and_its_rate() {
        let mut strangers = Strangers::new(Time(0));
        let flood = || std::iter::repeat_n(host(1), 10_000);
        assert_eq!(count_admitted(&mut strangers, Time(0), flood()), BURST);
        assert_eq!(count_admitted(&mut strangers, Time::from_millis(1000), flood()), RATE);
        assert!(strangers.admits(Time::from_millis(1000), host(2)), "another one is not in its way");
        assert_eq!(count_admitted(&mut strangers, Time::from_millis(100_000), flood()), BURST);
        // An IPv6 network is one host, and an IPv4 address one in either form.
        let one: IpAddr = "2001:db8::1".parse().unwrap();
        let other: IpAddr = "2001:db8::2".parse().unwrap();
        assert_eq!(count_admitted(&mut strangers, Time(0), std::iter::repeat_n([one, other], 200).flatten()), BURST);
        let mapped: IpAddr = "::ffff:10.0.0.1".parse().unwrap();
        assert!(!strangers.admits(Time::from_millis(100_000), mapped));
    }

    #[test]
    fn a_full_table_limits_the_others_as_a_whole() {
        let mut strangers = Strangers::new(Time(0));
        let forged = |first: u32| (first..first + 10_000).map(host);
        assert_eq!(count_admitted(&mut strangers, Time(0), forged(0)), HOSTS as u32 + SHARED.0);
        assert_eq!(strangers.hosts.len(), HOSTS);
        assert!(strangers.admits(Time(0), host(7)), "who has a bucket keeps it");
        // When they are silent again, others have their places.
        assert_eq!(count_admitted(&mut strangers, Time::from_millis(5000), forged(100_000)), HOSTS as u32 + SHARED.0);
        assert_eq!(strangers.hosts.len(), HOSTS);
    }

    #[test]
    fn partners_of_calls_are_no_strangers() {
        let mut strangers = Strangers::new(Time(0));
        assert!(!strangers.is_one(host(1)), "nobody is limited");
        strangers.limit(Sources::default());
        assert!(strangers.is_one(host(1)));
        strangers.limit(Sources::parse(&["10.0.0.9".into()]).unwrap());
        assert!(strangers.is_one(host(1)) && !strangers.is_one(host(9)));
        for call in [1, 2] {
            strangers.note_partner(CallKey(call), host(1));
            strangers.note_partner(CallKey(call), host(1));
        }
        assert!(!strangers.is_one(host(1)) && strangers.has_call(CallKey(1)));
        strangers.retain(|call| *call == CallKey(2));
        assert!(!strangers.is_one(host(1)) && !strangers.has_call(CallKey(1)));
        strangers.retain(|_| false);
        assert!(strangers.is_one(host(1)) && strangers.calls.is_empty() && strangers.count_calls() == 0);
    }
}
