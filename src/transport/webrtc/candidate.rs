//! Candidates of the other side, judged before anything is sent to them.

use std::fmt;
use std::net::IpAddr;

use ringer_base::guard::Guard;

use super::MAX_CANDIDATES;

/// Characters of the longest candidate line that is read.
const MAX_LINE: usize = 512;

/// Result of judging a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The candidate is used: the line without what stands behind its type.
    Used(String),
    /// The candidate is not used.
    Ignored(Ignored),
    /// No more candidates follow: an empty line (RFC 8840 8.2).
    End,
}

/// Reason for which a candidate is not used.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// The candidate cannot be read.
    Malformed,
    /// The candidate is not of UDP, or of a component other than RTP. RTCP shares the port of RTP.
    Transport,
    /// The address is a name, of multicast DNS or another: none is looked up.
    Name,
    /// The address may not be sent to.
    NotAllowed,
    /// The candidate is one too many.
    TooMany,
}

/// Counts of candidates of the other side.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Candidates that are used.
    pub used: u64,
    /// Candidates that cannot be read.
    pub malformed: u64,
    /// Candidates of another transport than UDP.
    pub transport: u64,
    /// Candidates with a name for an address.
    pub names: u64,
    /// Candidates whose address may not be sent to.
    pub not_allowed: u64,
    /// Candidates in excess of [`MAX_CANDIDATES`].
    pub too_many: u64,
}

impl Tally {
    /// Judges a line and counts it.
    pub(super) fn admit(&mut self, line: &str, guard: &Guard) -> Admission {
        let admission = match judge(line, guard) {
            Admission::Used(_) if self.used >= MAX_CANDIDATES as u64 => Admission::Ignored(Ignored::TooMany),
            other => other,
        };
        match &admission {
            Admission::Used(_) => self.used += 1,
            Admission::Ignored(Ignored::Malformed) => self.malformed += 1,
            Admission::Ignored(Ignored::Transport) => self.transport += 1,
            Admission::Ignored(Ignored::Name) => self.names += 1,
            Admission::Ignored(Ignored::NotAllowed) => self.not_allowed += 1,
            Admission::Ignored(Ignored::TooMany) => self.too_many += 1,
            Admission::End => {}
        }
        admission
    }

    /// Returns the number of those that are not used.
    pub fn ignored_count(&self) -> u64 {
        self.malformed + self.transport + self.names + self.not_allowed + self.too_many
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} used", self.used)?;
        let counts = [
            (self.not_allowed, "at addresses that are not allowed"),
            (self.names, "with names for addresses"),
            (self.transport, "not over UDP"),
            (self.malformed, "unreadable"),
            (self.too_many, "too many"),
        ];
        counts.iter().filter(|(count, _)| *count > 0).try_for_each(|(count, what)| write!(f, ", {count} {what}"))
    }
}

/// Judges a candidate line: `candidate:FOUNDATION COMPONENT TRANSPORT PRIORITY ADDRESS PORT typ TYPE ...` (RFC 8839
/// 5.1).
fn judge(line: &str, guard: &Guard) -> Admission {
    let line = line.trim();
    let line = line.strip_prefix("a=").unwrap_or(line);
    let line = line.strip_prefix("candidate:").unwrap_or(line).trim();
    if line.is_empty() {
        return Admission::End;
    }
    let fields: Vec<&str> = line.split_ascii_whitespace().take(8).collect();
    let [foundation, component, transport, priority, address, port, "typ", kind] = fields[..] else {
        return Admission::Ignored(Ignored::Malformed);
    };
    let whole =
        foundation.len() <= 32 && priority.parse::<u32>().is_ok() && port.parse::<u16>().is_ok_and(|port| port > 0);
    if line.len() > MAX_LINE || !whole || !matches!(kind, "host" | "srflx" | "prflx" | "relay") {
        return Admission::Ignored(Ignored::Malformed);
    }
    if component != "1" || !transport.eq_ignore_ascii_case("udp") {
        return Admission::Ignored(Ignored::Transport);
    }
    let Ok(ip) = address.parse::<IpAddr>() else { return Admission::Ignored(Ignored::Name) };
    if !guard.allows(ip) {
        return Admission::Ignored(Ignored::NotAllowed);
    }
    Admission::Used(format!("candidate:{foundation} 1 udp {priority} {address} {port} typ {kind}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(address: &str) -> String {
        format!("candidate:1 1 UDP 2130706431 {address} 50000 typ host generation 0")
    }

    #[test]
    fn a_candidate_is_judged_before_anything_is_sent_to_it() {
        let check = |private: bool, line: &str, expect: Result<&str, Ignored>| {
            let found = judge(line, &Guard::new(private));
            let expect = expect.map_or_else(Admission::Ignored, |line| Admission::Used(line.to_owned()));
            assert_eq!(found, expect, "{line}");
        };
        let used = |address: &str| format!("candidate:1 1 udp 2130706431 {address} 50000 typ host");
        for (address, private, public) in [
            ("93.184.216.34", true, true),
            ("2606:2800:220:1::1", true, true),
            ("127.0.0.1", true, false),
            ("10.0.0.1", true, false),
            ("::ffff:127.0.0.1", true, false),
            ("169.254.169.254", false, false),
        ] {
            for (allows_private, allowed) in [(true, private), (false, public)] {
                let line = used(address);
                let expect = if allowed { Ok(line.as_str()) } else { Err(Ignored::NotAllowed) };
                check(allows_private, &host(address), expect);
            }
        }
        check(true, &host("0b3a.local"), Err(Ignored::Name));
        check(true, &host("agent.example"), Err(Ignored::Name));
        check(true, "a=candidate:1 1 tcp 1 127.0.0.1 9 typ host tcptype passive", Err(Ignored::Transport));
        check(true, "candidate:1 2 udp 1 127.0.0.1 9 typ host", Err(Ignored::Transport));
        let relay = "candidate:a 1 udp 7 127.0.0.1 9 typ relay";
        check(true, &format!("{relay} raddr 10.0.0.1 rport 9"), Ok(relay));
        for broken in [
            "candidate:1 1 udp x 127.0.0.1 9 typ host",
            "candidate:1 1 udp 1 127.0.0.1 0 typ host",
            "candidate:1 1 udp 1 127.0.0.1 99999 typ host",
            "candidate:1 1 udp 1 127.0.0.1 9 typ strange",
            "candidate:1 1 udp 1 127.0.0.1",
            "nonsense",
        ] {
            check(true, broken, Err(Ignored::Malformed));
        }
        check(true, &format!("{} {}", host("127.0.0.1"), "x".repeat(600)), Err(Ignored::Malformed));
        assert_eq!(judge("candidate:", &Guard::new(true)), Admission::End);
    }

    #[test]
    fn twenty_candidates_are_used_and_the_rest_is_counted() {
        let (mut tally, guard) = (Tally::default(), Guard::new(true));
        for _ in 0..1000 {
            tally.admit(&host("127.0.0.1"), &guard);
        }
        tally.admit(&host("x.local"), &guard);
        assert_eq!(tally, Tally { used: 20, too_many: 980, names: 1, ..Tally::default() });
        assert_eq!(tally.to_string(), "20 used, 1 with names for addresses, 980 too many");
        assert_eq!(tally.ignored_count(), 981);
    }
}
