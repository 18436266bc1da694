//! From dialling to the end: signals, timers, endings.

use super::channel::BY_MESSAGE;
use super::dial::TONE_MS;
use super::ending::{EndReason, Ending, Fault, Quality, RemoteEnd, RemoteKind};
use super::event::{EventKind, Side};
use super::io::{Control, HangupCause, MediaChannel, Output, Signal};
use super::mouth::Mouth;
use super::spec::DtmfMethod;
use super::transfer::Target;
use super::{Call, TICK, ms, ntp};
use crate::codec::Codec;
use crate::codec::opus::About;
use crate::connection::Connection;
use crate::frame::{FRAME, RATE_HZ, Sample};
use crate::leg::{Leg, LegParams};
use crate::line_tones::LineTones;
use crate::rtp::srtp::SrtpParams;
use crate::time::Time;
use std::time::Duration;

/// Time after the end in which a recognizer may still bring the last words: as long as in the call. A busy machine
/// needs seconds for a turn, and the last one often decides.
const LAST_WORDS: Duration = Duration::from_millis(10_000);
/// Most signals that may come between an answer and the tick that makes it the connection.
const MOST_BEHIND: usize = 32;

/// Longest time before the connection for which audio of the other side has a place in the call.
pub const MOST_BEFORE: Duration = Duration::from_secs(10);

/// Progress of listening to what came before the connection.
#[derive(Copy, Clone, Debug)]
pub(super) struct Earlier {
    /// Time of the next tick that is to be listened to.
    pub next: Time,
    /// Newest sign of the other side at the last listening.
    pub sign: Option<Time>,
    /// Number of ticks for which the first packet was waited for.
    pub waits: u8,
}

/// Phase of the call, from dialling to the end.
#[derive(Debug)]
pub(super) enum Phase {
    /// The call has not begun to dial.
    Idle,
    /// The call is being placed; media may come early.
    Dialing { since: Time },
    /// The call is up: sample 0 has passed.
    Connected,
    /// The call is over, but last words are still awaited.
    Closing { until: Time, ending: Box<Ending> },
    /// The end of the call was reported.
    Over,
}

impl Phase {
    pub(super) fn is_connected(&self) -> bool {
        matches!(self, Phase::Connected)
    }

    pub(super) fn is_dialling(&self) -> bool {
        matches!(self, Phase::Dialing { .. })
    }
}

/// State that waits for something, and the moments since which it does.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// An answer that the next tick turns into the connection.
    pub answered: Option<(u16, LegParams)>,
    /// Signals that came behind that answer: they are of a call that is up.
    pub behind: Vec<Signal>,
    /// Address that was called.
    pub address: Option<String>,
    /// Events from before sample 0 was known.
    pub before: Vec<(Time, Side, EventKind)>,
    /// True while the other side has put the call on hold.
    pub on_hold: bool,
    /// Time at which the other side left, while it may come back.
    pub away: Option<Time>,
    /// Target of a transfer that is being called.
    pub target: Option<Target>,
    /// Time at which packets last came.
    pub media_at: Option<Time>,
    /// Position of the next report of network figures.
    pub network_at: Sample,
    /// Ticks from before the connection that are still to be listened to; before it, the time of the first.
    pub earlier: Option<Box<Earlier>>,
    /// Keys that handshakes have brought, of RTP and of reports: for the leg that begins.
    pub keys: [Option<SrtpParams>; 2],
}

impl Call {
    pub(super) fn signal(&mut self, now: Time, signal: Signal) {
        if self.waits.answered.is_some() {
            // The end counts in any case.
            if self.waits.behind.len() < MOST_BEHIND || matches!(signal, Signal::Ended(_)) {
                self.waits.behind.push(signal);
            }
            return;
        }
        match signal {
            Signal::Dialing { address } => {
                self.phase = Phase::Dialing { since: now };
                self.waits.address = Some(address.clone());
                self.waits.before.push((now, Side::Engine, EventKind::Dialing { address }));
                self.turn_taking().prepare_opening();
                self.carry_out();
            }
            Signal::Ringing { code } => {
                let address = self.waits.address.clone();
                self.waits.before.push((now, Side::Agent, EventKind::Ringing { address, code }));
            }
            Signal::EarlyMedia { code, leg } if !self.phase.is_connected() => {
                let address = self.waits.address.clone();
                self.waits.before.push((now, Side::Agent, EventKind::EarlyMedia { address, code }));
                self.hear_early(now, leg);
            }
            Signal::Ready if matches!(self.phase, Phase::Idle | Phase::Dialing { .. }) => {
                self.waits.before.retain(|(_, _, what)| !matches!(what, EventKind::Ready));
                self.waits.before.push((now, Side::Engine, EventKind::Ready));
            }
            Signal::UpSince(at) if !self.phase.is_connected() => {
                self.waits.earlier = Some(Box::new(Earlier { next: at, sign: None, waits: 0 }));
            }
            Signal::Answered { code, leg, text } if matches!(self.phase, Phase::Idle | Phase::Dialing { .. }) => {
                self.waits.answered = Some((code, leg));
                self.ears.which.text &= text;
                if matches!(self.phase, Phase::Idle) {
                    self.phase = Phase::Dialing { since: now };
                }
            }
            Signal::Digit { digit, duration_ms } if self.phase.is_connected() => {
                // It is sent when the digit is released.
                let from = (self.sample(now) - ms(duration_ms)).clamp(0, self.frame_at);
                self.digit_beside_audio(digit, from, duration_ms, "info");
            }
            Signal::DigitMessage { digit, duration_ms } if self.phase.is_connected() => {
                self.digit_by_message(digit, duration_ms);
            }
            Signal::Channel { event, follows_own } => self.take_channel_event(event, follows_own),
            Signal::Overflowed { frames } if self.phase.is_connected() => {
                self.event(self.frame_at, Side::Engine, EventKind::RxOverflow { packets: frames });
            }
            Signal::DigitRefused if self.phase.is_connected() => {
                self.note(self.frame_at, "dtmf_info_refused");
            }
            Signal::Renegotiated { leg: params } if self.phase.is_connected() => {
                // Media that were not sent until now are not late.
                self.waits.media_at = Some(now);
                if !self.leg.as_mut().is_some_and(|leg| leg.renegotiate(params)) {
                    self.note(self.frame_at, "codec_change_not_followed");
                } else if self.is_mute() {
                    self.fall_silent();
                }
            }
            Signal::Renegotiated { leg } if self.phase.is_dialling() => self.hear_early(now, leg),
            Signal::SessionAnswered { code } if self.phase.is_connected() => {
                self.event(self.frame_at, Side::Agent, EventKind::SessionAnswered { code });
            }
            Signal::Hold(held) if self.phase.is_connected() && held != self.waits.on_hold => {
                self.waits.on_hold = held;
                if held {
                    self.fall_silent();
                }
                self.waits.media_at = Some(now);
                self.event(self.frame_at, Side::Agent, if held { EventKind::Held } else { EventKind::Unheld });
            }
            Signal::Away(since) if self.phase.is_connected() => {
                self.waits.away = since;
                self.waits.media_at = Some(now);
            }
            Signal::Keys { rtp, reports } => self.take_keys(rtp, reports),
            Signal::Transfer { to, can_follow } => self.transfer(now, to, can_follow),
            Signal::LeftAlone => self.left_alone(),
            Signal::Transferred { to, outcome, code, leg } => self.take_outcome(now, to, outcome, code, leg),
            Signal::Ended(remote) => self.remote_end(now, remote),
            Signal::EarlyMedia { .. }
            | Signal::Ready
            | Signal::UpSince(_)
            | Signal::Answered { .. }
            | Signal::Digit { .. }
            | Signal::DigitMessage { .. }
            | Signal::Overflowed { .. }
            | Signal::DigitRefused
            | Signal::Renegotiated { .. }
            | Signal::SessionAnswered { .. }
            | Signal::Hold(_)
            | Signal::Away(_) => {}
        }
    }

    /// Begins media before the answer. Media of another branch, or of new terms, take the place of those before.
    fn hear_early(&mut self, now: Time, params: LegParams) {
        if !self.leg.as_mut().is_some_and(|leg| leg.renegotiate(params)) {
            self.begin_leg(params, now);
        }
    }

    /// True when the call is connected and this tick sends.
    pub(super) fn run_phase(&mut self, now: Time) -> bool {
        match &self.phase {
            Phase::Connected => return true,
            Phase::Dialing { since } => {
                if let Some((code, leg)) = self.waits.answered.take() {
                    self.connect(now, code, leg);
                    for signal in std::mem::take(&mut self.waits.behind) {
                        self.signal(now, signal);
                    }
                    return self.phase.is_connected();
                }
                if now.since(*since) >= Duration::from_millis(self.spec.limits.ringing_ms.into()) {
                    self.out.push(Output::Control(Control::Cancel));
                    self.finish(now, EndReason::NoAnswer, None, None);
                }
            }
            Phase::Closing { until, .. } => {
                if !self.turn_taking.is_waiting_for_text() || now >= *until {
                    self.turn_taking().close_late(Sample::MAX);
                    self.carry_out();
                    self.over();
                }
            }
            Phase::Idle | Phase::Over => {}
        }
        false
    }

    fn connect(&mut self, now: Time, code: u16, params: LegParams) {
        self.begin_clock(now);
        self.ears.line = LineTones::default();
        let keyed = self.with_keys(params);
        match &mut self.leg {
            Some(leg) if leg.params() == keyed => leg.set_origin(self.origin),
            _ => self.begin_leg(params, self.origin),
        }
        self.turn_taking.mouth = Mouth::new(&self.spec, params.rate_hz());
        self.connection = Connection::new(&self.spec.connection, self.spec.seed).map(Box::new);
        self.phase = Phase::Connected;
        self.waits.media_at = Some(now);
        self.tell_before();
        let address = self.waits.address.take();
        self.event(0, Side::Engine, EventKind::Connected { address, code, codec: params.codec_name().into() });
        let extension = self.spec.extension.clone();
        let turn_taking = self.turn_taking();
        turn_taking.begin_call(extension.as_deref());
        turn_taking.prepare_audio();
        self.carry_out();
    }

    /// Makes this tick the first that sends. Sample 0 is there, or where media could come before it.
    fn begin_clock(&mut self, now: Time) {
        let since = self.waits.earlier.take().map_or(now, |earlier| earlier.next);
        let before = now.since(since).min(MOST_BEFORE).as_nanos().div_ceil(TICK.as_nanos()) as u32;
        self.origin = Time(now.0.saturating_sub((TICK * before).as_nanos() as u64));
        self.frame_at = Sample::from(before) * FRAME as Sample;
        self.waits.earlier = (before > 0).then(|| Box::new(Earlier { next: self.origin, sign: None, waits: 0 }));
    }

    fn tell_before(&mut self) {
        for (at, side, what) in std::mem::take(&mut self.waits.before) {
            let sample = self.sample(at).min(0);
            self.event(sample, side, what);
        }
    }

    /// Runs everything that happens at a frame's start: due digits, silences that are over, timers, plans.
    pub(super) fn act(&mut self, now: Time) {
        let is_held = self.is_held();
        if !is_held {
            self.turn_taking().run_dial();
            self.carry_out();
        }
        self.run_timers(now);
        if !self.phase.is_connected() {
            return;
        }
        self.turn_taking().tick(is_held);
        self.carry_out();
    }

    /// Sends a digit whose tone begins at `at`, and reports it.
    pub(super) fn send_digit(&mut self, digit: char, at: Sample) {
        let method = self.play_digit(digit, at);
        self.event(at, Side::Dh, EventKind::DtmfSent { digit, method: method.into(), duration_ms: TONE_MS });
    }

    /// Sends one digit that begins at `at`; returns the method's name in timelines.
    fn play_digit(&mut self, digit: char, at: Sample) -> &'static str {
        let events = self.leg.as_mut().filter(|leg| leg.has_events());
        match (self.spec.dtmf, events) {
            (method @ (DtmfMethod::Message | DtmfMethod::MessageAndTone), _) => {
                self.out.push(Output::Control(Control::Digit { digit, duration_ms: TONE_MS }));
                if method == DtmfMethod::MessageAndTone {
                    self.sound_digit(digit, at);
                }
                BY_MESSAGE
            }
            (DtmfMethod::Info, _) => {
                self.out.push(Output::Control(Control::Digit { digit, duration_ms: TONE_MS }));
                "info"
            }
            (DtmfMethod::Rtp, Some(leg)) => {
                leg.start_event(digit, TONE_MS);
                "rtp_event"
            }
            _ => {
                self.sound_digit(digit, at);
                "inband"
            }
        }
    }

    fn run_timers(&mut self, now: Time) {
        let at = self.frame_at;
        let limits = &self.spec.limits;
        let over = |limit: Option<u32>, since: Sample| limit.is_some_and(|limit| at - since >= ms(limit));
        let is_there = self.waits.away.is_none();
        let hangup = self.turn_taking.due_hangup(at).filter(|reason| is_there || *reason != EndReason::SilenceTimeout);
        let media_late = |media_at: Time| now.since(media_at) >= Duration::from_millis(limits.media_timeout_ms.into());
        if let Some(reason) = hangup {
            self.end_now(now, reason);
        } else if over(limits.max_duration_ms, 0) {
            self.end_now(now, EndReason::MaxDuration);
        } else if is_there && over(limits.inactivity_ms, self.turn_taking.active_at()) && self.turn_taking.is_quiet() {
            self.end_now(now, EndReason::InactivityTimeout);
        } else if !self.waits.on_hold
            && is_there
            && !self.is_alone()
            && self.leg.as_ref().is_none_or(Leg::may_receive)
            && self.waits.media_at.is_some_and(media_late)
        {
            self.end_now(now, EndReason::MediaTimeout);
        } else {
            self.run_target(now);
        }
    }

    /// Hangs up by order of the control API.
    pub(super) fn hang_up(&mut self, now: Time, reason: EndReason) {
        match self.phase {
            Phase::Connected => self.end_now(now, reason),
            Phase::Idle | Phase::Dialing { .. } => {
                self.out.push(Output::Control(Control::Cancel));
                self.finish(now, EndReason::Cancelled, None, None);
            }
            Phase::Closing { .. } | Phase::Over => {}
        }
    }

    /// Ends a connected call from this side.
    pub(super) fn end_now(&mut self, now: Time, reason: EndReason) {
        let cause = match reason {
            EndReason::MaxDuration => HangupCause::Timer,
            EndReason::Shutdown => HangupCause::Shutdown,
            EndReason::Fault => HangupCause::Fault,
            _ => HangupCause::Normal,
        };
        self.end_announcement(self.frame_at);
        self.out.push(Output::Control(Control::Hangup(cause)));
        self.finish(now, reason, None, None);
    }

    /// Ends the call for a fault of this side.
    pub(super) fn fail(&mut self, fault: Fault) {
        if self.phase.is_connected() {
            self.end_announcement(self.frame_at);
            self.out.push(Output::Control(Control::Hangup(HangupCause::Fault)));
            let now =
                self.origin + Duration::from_micros((self.frame_at.max(0) as u64 * 1_000_000) / u64::from(RATE_HZ));
            self.finish(now, EndReason::Fault, None, Some(fault));
        }
    }

    fn remote_end(&mut self, now: Time, remote: RemoteEnd) {
        let reason = match self.phase {
            Phase::Connected if remote.kind == RemoteKind::Expired => EndReason::SessionExpired,
            Phase::Connected if matches!(remote.kind, RemoteKind::NoKeys | RemoteKind::KeysLost) => {
                EndReason::DialFailed
            }
            Phase::Connected if remote.kind == RemoteKind::Lost => EndReason::ConnectionLost,
            Phase::Connected => EndReason::AgentHangup,
            Phase::Closing { .. } | Phase::Over => return,
            _ if remote.kind == RemoteKind::Refused => EndReason::Rejected,
            _ => EndReason::DialFailed,
        };
        self.finish(now, reason, Some(remote), None);
    }

    fn finish(&mut self, now: Time, reason: EndReason, remote: Option<RemoteEnd>, fault: Option<Fault>) {
        let connected = self.phase.is_connected();
        // The other side was gone before its end was known.
        let gone = self.waits.away.filter(|_| remote.is_some()).map_or(now, |left| left.min(now));
        if !connected {
            self.origin = now;
            self.tell_before();
        }
        let end = if connected { self.recorded_end(gone, reason) } else { 0 };
        if connected {
            self.stop_speech(end);
            self.end_other_speech(end, now);
            self.say_goodbye(now);
        }
        self.turn_taking().drop_plans();
        self.carry_out();
        let by = match reason {
            EndReason::AgentHangup | EndReason::Rejected => "AGENT",
            EndReason::Fault
            | EndReason::Shutdown
            | EndReason::UsageLimit
            | EndReason::MediaTimeout
            | EndReason::SessionExpired
            | EndReason::ConnectionLost
            | EndReason::DialFailed => "engine",
            _ => "USER",
        };
        let (sip_code, q850_cause) = remote.as_ref().map_or((None, None), |end| (end.sip_code(), end.q850_cause()));
        let close_code = remote.as_ref().and_then(RemoteEnd::close_code);
        let at = if connected { self.sample(gone).clamp(end, end.max(self.frame_at)) } else { 0 };
        self.event(
            at,
            Side::Engine,
            EventKind::Ended { by: by.into(), reason: reason.as_str().into(), sip_code, q850_cause, close_code },
        );
        let ending = Ending {
            reason,
            connected,
            samples: end,
            remote,
            fault,
            other_spoke: self.turn_taking.has_heard_speech(),
            quality: self.quality(),
            opus: self.opus_in_use(),
        };
        if let Some(connection) = &mut self.connection {
            connection.sent.clear();
        }
        self.phase = Phase::Closing { until: now + LAST_WORDS, ending: Box::new(ending) };
    }

    /// Leaves the RTP session with a BYE (RFC 3550 6.6).
    fn say_goodbye(&mut self, now: Time) {
        let Some(Leg::Rtp(leg)) = &mut self.leg else { return };
        if let Some(bytes) = leg.goodbye(now, ntp(now)) {
            self.out.packet(MediaChannel::Rtcp, bytes);
        }
    }

    /// Returns the end of the recording: that of the call, or the last packet when the media of the other side stopped.
    fn recorded_end(&self, now: Time, reason: EndReason) -> Sample {
        let last_packet = self.leg.as_ref().and_then(|leg| leg.figures().last_arrival);
        match (reason, last_packet) {
            (EndReason::MediaTimeout, Some(at)) => (self.sample(at) + FRAME as Sample).clamp(0, self.frame_at),
            (EndReason::MediaTimeout, None) => 0,
            _ => self.sample(now).clamp(0, self.frame_at),
        }
    }

    fn over(&mut self) {
        let phase = std::mem::replace(&mut self.phase, Phase::Over);
        if let Phase::Closing { ending, .. } = phase {
            self.out.push(Output::Ended(ending));
        }
    }

    /// Returns the library of Opus, where the last leg was coded by it.
    fn opus_in_use(&self) -> Option<About> {
        let is_opus = matches!(self.leg.as_ref()?.params(), LegParams::Rtp(media) if media.codec == Codec::Opus);
        is_opus.then(|| self.spec.opus.about().clone())
    }

    fn quality(&self) -> Quality {
        let figures = self.leg.as_ref().map(Leg::figures).unwrap_or_default();
        Quality {
            pacing_p99_ms: self.pacing.quantile_ms(0.99),
            pacing_max_ms: self.pacing.max_ms(),
            sent_frames: self.pacing.frames(),
            late_frames: self.pacing.late_frames(),
            longest_gap_frames: self.pacing.longest_gap_frames(),
            clock_slip_ms: 0.0,
            received_packets: figures.received,
            lost_packets: figures.lost,
            late_packets: figures.late,
            concealed_ms: figures.concealed_ms,
            jitter_ms: figures.jitter_ms,
            recording_dropped: 0,
            unknown_payload_type: figures.unknown_payload_type,
            wrong_length: figures.wrong_length,
            foreign_source: figures.foreign,
            foreign_address: 0,
            malformed: figures.malformed,
            unprotected: figures.forged,
            echo: self.ears.witness.as_deref().unwrap_or(&self.ears.voice).figures(),
            impairment: self.connection.as_ref().map(|connection| connection.measurement()),
        }
    }
}
