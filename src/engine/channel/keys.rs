//! Keys of a call's media that DTLS handshakes bring: beside the call's task, since no media thread does such work.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ringer_media::call::{MediaChannel, RemoteKind};
use ringer_media::leg::KeySource;
use ringer_media::rtp::srtp::SrtpParams;
use ringer_transport::dtls::{Channel, Expected, Fault, Identity, News, QueueReader};
use ringer_transport::sip::sdp::MediaPlan;

/// Time from the answer within which there must be keys.
const LIMIT: Duration = Duration::from_secs(10);

/// Time between two looks at a handshake that runs.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Orders to a call task for the keys of its call.
#[derive(Debug)]
pub(super) enum KeyNews {
    /// A datagram to send.
    Send(MediaChannel, Vec<u8>),
    /// The keys of RTP and of reports so far.
    Keys(Option<SrtpParams>, Option<SrtpParams>),
    /// The port of reports has a handshake of its own, or has none any more.
    AwaitReports(bool),
    /// The keys failed, and the call has to end.
    Failed(RemoteKind, String),
}

/// The handshakes of one call.
pub(super) struct Keys {
    identity: Identity,
    queue: QueueReader,
    /// Handshake of the media plan in force.
    expected: Option<Expected>,
    /// True if each port has a handshake.
    each: bool,
    /// Handshakes of RTP and of reports.
    channels: [Option<Channel>; 2],
    keys: [Option<SrtpParams>; 2],
    /// True once there were keys.
    is_keyed: bool,
    is_up: bool,
    is_over: bool,
    limit: Option<Instant>,
    now: Option<Instant>,
    news: VecDeque<KeyNews>,
}

impl Keys {
    /// Returns the keys of a call whose handshakes come by `queue`.
    pub(crate) fn new(identity: Identity, queue: QueueReader) -> Keys {
        Keys {
            identity,
            queue,
            expected: None,
            each: false,
            channels: [None, None],
            keys: [None, None],
            is_keyed: false,
            is_up: false,
            is_over: true,
            limit: None,
            now: None,
            news: VecDeque::new(),
        }
    }

    /// Follows a media plan: what names another association needs another handshake.
    pub(crate) fn follow(&mut self, plan: &MediaPlan) {
        let each = plan.media.key_source == KeySource::HandshakeEach;
        let goes_on = |known: &Expected| plan.handshake.is_some_and(|new| new.is_same_association(known));
        if self.expected.as_ref().is_some_and(goes_on) && self.each == each {
            return;
        }
        if self.keys != [None, None] {
            self.news.push_back(KeyNews::Keys(None, None));
        }
        (self.expected, self.each, self.limit) = (plan.handshake, each, None);
        (self.channels, self.keys, self.is_over) = ([None, None], [None, None], plan.handshake.is_none());
        self.news.push_back(KeyNews::AwaitReports(each));
    }

    /// Notes that the call is up: from now on missing keys count.
    pub(crate) fn miss_from_now(&mut self) {
        self.is_up = true;
    }

    /// True while [`Keys::look`] has work.
    pub(crate) fn is_open(&self) -> bool {
        !self.is_over
    }

    /// True when the media of the call wait for keys.
    pub(crate) fn are_missing(&self) -> bool {
        self.expected.is_some() && self.keys[0].is_none()
    }

    /// Carries handshakes on at `now`.
    pub(crate) fn look(&mut self, now: Instant) {
        self.now = Some(now);
        let Some(expected) = self.expected.filter(|_| !self.is_over) else { return };
        for at in 0..if self.each { 2 } else { 1 } {
            self.channels[at].get_or_insert_with(|| Channel::new(&self.identity, expected, now));
        }
        self.receive();
        self.channels.iter_mut().flatten().for_each(|channel| channel.wake(now));
        self.gather();
        let is_done = |channel: &Option<Channel>| channel.as_ref().is_none_or(Channel::is_done);
        if self.channels.iter().all(is_done) {
            return self.close();
        }
        if self.is_up && now >= *self.limit.get_or_insert(now + LIMIT) {
            if !is_done(&self.channels[0]) {
                let kind = if self.is_keyed { RemoteKind::KeysLost } else { RemoteKind::NoKeys };
                self.news.push_back(KeyNews::Failed(kind, self.why()));
            }
            // Without keys of their own there are no reports, and the call goes on.
            self.close();
        }
    }

    /// Takes the datagrams that wait. Before the first look they go on waiting.
    pub(crate) fn receive(&mut self) {
        let Some(now) = self.now.filter(|_| self.channels[0].is_some()) else { return };
        while let Some((path, datagram)) = self.queue.pop() {
            if let Some(channel) = &mut self.channels[usize::from(path == MediaChannel::Rtcp)] {
                channel.receive(&datagram, now);
            }
        }
        self.gather();
    }

    /// Returns the next piece of news.
    pub(crate) fn poll(&mut self) -> Option<KeyNews> {
        self.news.pop_front()
    }

    fn gather(&mut self) {
        for (at, path) in [MediaChannel::Rtp, MediaChannel::Rtcp].into_iter().enumerate() {
            while let Some(news) = self.channels[at].as_mut().and_then(Channel::poll) {
                match news {
                    News::Send(datagram) => self.news.push_back(KeyNews::Send(path, datagram)),
                    News::Keys(keys) => {
                        self.keys[at] = Some(keys);
                        self.is_keyed |= path == MediaChannel::Rtp;
                        self.news.push_back(KeyNews::Keys(self.keys[0], self.keys[1]));
                    }
                }
            }
        }
    }

    fn close(&mut self) {
        self.is_over = true;
        self.news.push_back(KeyNews::AwaitReports(false));
    }

    /// Returns the reason why there are no keys for RTP.
    fn why(&self) -> String {
        match self.channels[0].as_ref().and_then(Channel::fault) {
            Some(Fault::Certificate) => {
                "the DTLS certificate of the media does not match the fingerprint in SDP".to_owned()
            }
            Some(Fault::Broken(why)) => format!("the DTLS handshake of the media failed: {why}"),
            None => format!("no DTLS handshake of the media came about within {} s", LIMIT.as_secs()),
        }
    }
}
