//! Limits of what the other side of a call can make this one write: bytes of the signalling log, and events of the
//! timeline.

use std::fs::File;
use std::io::Write;

use ringer_media::call::{Event, EventKind, Side};

/// Most bytes of the signalling log of a call: 4 MiB, as for a WebSocket.
const MAX_LOG_BYTES: usize = 4 << 20;
/// Bytes of the time before a message, and of what ends it.
const STAMP_BYTES: usize = 15;
/// Bytes of them that only messages of a BYE get.
const KEPT_BYTES: usize = 64 << 10;
/// Most events of one call that the other side causes by signalling and keys, as for a WebSocket.
const MAX_EVENTS: usize = 5000;

/// Signalling log of a call. Past its limit messages are counted and not written.
#[derive(Debug, Default)]
pub(crate) struct SignallingLog {
    file: Option<File>,
    written: usize,
    missing: u64,
}

impl SignallingLog {
    /// Returns a log that is written to `file`; `None`: nowhere.
    pub(crate) fn new(file: Option<File>) -> SignallingLog {
        SignallingLog { file, ..SignallingLog::default() }
    }

    /// Writes one message with its time in milliseconds since 1970.
    pub(crate) fn write(&mut self, at_ms: i64, message: &str) {
        let Some(file) = &mut self.file else { return };
        // The end of the call has a place of its own.
        let kept = if message.contains(" BYE\n") { 0 } else { KEPT_BYTES };
        if self.written + message.len() > MAX_LOG_BYTES - kept {
            self.missing += 1;
            return;
        }
        self.written += message.len() + STAMP_BYTES;
        if writeln!(file, "{at_ms} {message}").is_err() {
            self.file = None;
        }
    }

    /// Returns a warning about messages that were not written; `None`: all were.
    pub(crate) fn warning(&self) -> Option<String> {
        let (missing, most) = (self.missing, MAX_LOG_BYTES >> 20);
        (missing > 0).then(|| format!("{missing} messages are missing in the signalling log, which takes {most} MiB"))
    }
}

/// Counts events that the other side causes at will.
#[derive(Debug, Default)]
pub(crate) struct SignalledEvents {
    count: usize,
    /// True after a hold that was kept, until its end.
    is_on_hold: bool,
}

impl SignalledEvents {
    /// True if an event is kept: those of this side and of the conversation always, others up to a limit.
    pub(crate) fn take(&mut self, event: &Event) -> bool {
        let is_signalled = matches!(
            event.what,
            EventKind::Ringing { .. }
                | EventKind::EarlyMedia { .. }
                | EventKind::DtmfReceived { .. }
                | EventKind::Held
                | EventKind::Unheld
                | EventKind::SessionAnswered { .. }
                | EventKind::Transfer { .. }
        );
        if !is_signalled || event.side == Side::Dh {
            return true;
        }
        self.count += 1;
        // The end of a hold that is kept is kept, too.
        let is_kept = self.count <= MAX_EVENTS || matches!(event.what, EventKind::Unheld) && self.is_on_hold;
        if is_kept {
            self.is_on_hold =
                matches!(event.what, EventKind::Held) || self.is_on_hold && event.what != EventKind::Unheld;
        }
        is_kept
    }

    /// Returns a warning about events that were not kept; `None`: all were.
    pub(crate) fn warning(&self) -> Option<String> {
        let missing = self.count.saturating_sub(MAX_EVENTS);
        (missing > 0).then(|| {
            format!("the agent caused more than {MAX_EVENTS} events of signalling and keys: {missing} are not kept")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_takes_no_more_than_its_limit() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("sip.log");
        let mut log = SignallingLog::new(Some(File::create(&path).expect("it can be made")));
        let message = "x".repeat(65_535);
        for n in 0..100 {
            log.write(n, &message);
        }
        let length = std::fs::metadata(&path).expect("it is there").len();
        assert!((3 << 20..=4 << 20).contains(&length), "{length}");
        log.write(100, " BYE sip:a@b SIP/2.0\n CSeq: 2 BYE\n \n");
        assert!(std::fs::read_to_string(&path).expect("text").ends_with(" CSeq: 2 BYE\n \n\n"), "the end is kept");
        let expect = "38 messages are missing in the signalling log, which takes 4 MiB";
        assert_eq!(log.warning().as_deref(), Some(expect));
        assert_eq!(SignallingLog::default().warning(), None);
    }

    #[test]
    fn events_at_will_have_a_limit_and_words_have_none() {
        let event = |what: EventKind, side: Side| Event { sample: 0, side, what };
        let mut events = SignalledEvents::default();
        let held = event(EventKind::Held, Side::Agent);
        assert_eq!((0..6000).filter(|_| events.take(&held)).count(), MAX_EVENTS);
        let own = event(EventKind::DtmfSent { digit: '1', method: "rtp".into(), duration_ms: 100 }, Side::Dh);
        assert!(events.take(&own) && !events.take(&held));
        assert!(events.warning().is_some_and(|warning| warning.contains("1001 are not kept")));
        assert!(SignalledEvents::default().warning().is_none());
    }
}
