//! Both directions of one side's secure media, with counts of refused packets.

use super::{MAX_OVERHEAD, Opener, Protector, Refused, Sources, SrtpParams};
use crate::rtp::rtcp::LONGEST;

/// Length of the longest datagram that is opened, in bytes.
pub const MAX_DATAGRAM: usize = 2048;

/// Secure RTP of a leg: keys of both directions, and the packets that were refused.
#[derive(Clone)]
pub struct Secure {
    protector: Protector,
    opener: Opener,
    /// Keys, protector and opener of reports that have keys of their own.
    reports: Option<Box<(SrtpParams, Protector, Opener)>>,
    report: [u8; LONGEST + MAX_OVERHEAD],
    forged: u64,
    replayed: u64,
}

impl Secure {
    /// Returns the state for keys that offer and answer settled.
    pub fn new(params: &SrtpParams) -> Secure {
        Secure {
            protector: Protector::new(params.suite, &params.send),
            opener: Opener::new(params.suite, &params.receive),
            reports: None,
            report: [0; LONGEST + MAX_OVERHEAD],
            forged: 0,
            replayed: 0,
        }
    }

    /// Returns the state for keys of which somebody else has opened packets of `sources`, and protected those up to the
    /// index `last` and fewer reports than `reports`.
    pub fn taken_over(params: &SrtpParams, sources: Sources, last: Option<u64>, reports: u32) -> Secure {
        let mut secure = Secure::new(params);
        secure.opener = Opener::with_sources(params.suite, &params.receive, sources);
        secure.protector.go_on_from(last, reports);
        secure
    }

    /// Records an RTP packet that somebody else has opened. Returns false for one that came already, which is counted.
    pub fn take(&mut self, packet: &[u8]) -> bool {
        let is_new = self.opener.take(packet);
        self.replayed += u64::from(!is_new);
        is_new
    }

    /// Takes newly settled keys; a direction whose key is the same goes on as it was.
    pub fn renew(&mut self, old: &SrtpParams, new: &SrtpParams) {
        if (new.suite, &new.send) != (old.suite, &old.send) {
            self.protector = Protector::new(new.suite, &new.send);
        }
        if (new.suite, &new.receive) != (old.suite, &old.receive) {
            self.opener = Opener::new(new.suite, &new.receive);
        }
    }

    /// Gives reports keys of their own (RFC 5764 4: each port has its handshake).
    pub fn set_report_keys(&mut self, new: &SrtpParams) {
        if self.reports.as_ref().is_none_or(|known| known.0 != *new) {
            let (send, receive) = (Protector::new(new.suite, &new.send), Opener::new(new.suite, &new.receive));
            self.reports = Some(Box::new((*new, send, receive)));
        }
    }

    /// True when reports have keys of their own.
    pub fn has_report_keys(&self) -> bool {
        self.reports.is_some()
    }

    /// Protects an RTP packet, as [`Protector::protect`] does.
    pub fn protect(&mut self, buffer: &mut [u8], len: usize) -> usize {
        self.protector.protect(buffer, len)
    }

    /// Returns the protected form of a compound RTCP packet of at most [`LONGEST`] bytes.
    pub fn protect_report(&mut self, plain: &[u8]) -> &[u8] {
        self.report[..plain.len()].copy_from_slice(plain);
        let protector = self.reports.as_mut().map_or(&mut self.protector, |own| &mut own.1);
        let len = protector.protect_report(&mut self.report, plain.len());
        &self.report[..len]
    }

    /// Returns the RTP packet of a datagram, opened in `buffer`.
    pub fn open<'a>(&mut self, bytes: &[u8], buffer: &'a mut [u8; MAX_DATAGRAM]) -> Result<&'a [u8], Refused> {
        let opened = copy(bytes, buffer).and_then(|packet| self.opener.open(packet));
        self.count(opened)
    }

    /// Returns the compound RTCP packet of a datagram, opened in `buffer`.
    pub fn open_report<'a>(&mut self, bytes: &[u8], buffer: &'a mut [u8; MAX_DATAGRAM]) -> Result<&'a [u8], Refused> {
        let opener = self.reports.as_mut().map_or(&mut self.opener, |own| &mut own.2);
        let opened = copy(bytes, buffer).and_then(|packet| opener.open_report(packet));
        self.count(opened)
    }

    /// Number of datagrams that the owner of the other side's key did not make.
    pub fn forged_count(&self) -> u64 {
        self.forged
    }

    /// Number of datagrams that came again.
    pub fn replayed_count(&self) -> u64 {
        self.replayed
    }

    fn count<'a>(&mut self, opened: Result<&'a [u8], Refused>) -> Result<&'a [u8], Refused> {
        match opened {
            Err(Refused::Replayed) => self.replayed += 1,
            Err(Refused::Forged | Refused::Malformed) => self.forged += 1,
            Ok(_) => {}
        }
        opened
    }
}

fn copy<'a>(bytes: &[u8], buffer: &'a mut [u8; MAX_DATAGRAM]) -> Result<&'a mut [u8], Refused> {
    let packet = buffer.get_mut(..bytes.len()).ok_or(Refused::Malformed)?;
    packet.copy_from_slice(bytes);
    Ok(packet)
}
