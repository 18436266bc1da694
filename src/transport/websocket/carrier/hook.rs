//! Sessions that are opened and closed by messages of their own, numbered on both sides, with pings, pauses and reports
//! of playback.

use std::time::Duration;

use ringer_media::time::Time;
use serde_json::{Value, json};

use super::super::core::Core;
use super::super::protocol::{CallerFacts, SessionControl, SessionEnd, SessionOutput};
use super::super::template::Template;
use super::Carrier;
use super::table::What;

/// Time in which the other side answers `open`.
const OPEN_WITHIN: Duration = Duration::from_secs(5);

/// Time in which the other side answers `close`.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);

/// Time from `opened` to the first ping, and between the later ones.
const FIRST_PING: Duration = Duration::from_secs(1);
const PING_EVERY: Duration = Duration::from_secs(5);

/// Stages of a session.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Stage {
    Opening,
    Open,
    Closing,
}

/// State of a session.
#[derive(Debug)]
pub(super) struct Hook {
    stage: Stage,
    /// Time limit of the present stage; `None` while open.
    until: Option<Time>,
    ping_at: Option<Time>,
    /// Number and time of the ping that has no answer.
    pinged: Option<(u64, Time)>,
    rtt: Option<Duration>,
    pings: u32,
    /// Position at which the present playback began; true once its begin was told.
    playback: Option<(u64, bool)>,
    /// Milliseconds of audio that were not sent during a pause, and where it began.
    paused_at: Option<(Time, u64)>,
}

impl Hook {
    pub(super) fn new(core: &mut Core) -> Hook {
        core.waits_for_answer = true;
        Hook {
            stage: Stage::Opening,
            until: None,
            ping_at: None,
            pinged: None,
            rtt: None,
            pings: 0,
            playback: None,
            paused_at: None,
        }
    }
}

/// Returns milliseconds as a duration of ISO 8601.
pub(super) fn duration(ms: u64) -> String {
    let text = format!("{}.{:03}", ms / 1000, ms % 1000);
    format!("PT{}S", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Returns the media that a caller offers.
pub(super) fn offer(core: &Core) -> Value {
    json!([{ "type": "audio", "format": "PCMU", "channels": ["external"], "rate": core.dialect.wire.rate_hz }])
}

impl Carrier {
    pub(super) fn hook_opened(&mut self, now: Time) {
        if let Some(hook) = &mut self.hook {
            hook.until = Some(now + OPEN_WITHIN);
        }
    }

    /// Checks the numbers of a message. Returns false when it does not follow the one before; later ones are counted
    /// from it.
    pub(super) fn follows(&mut self, template: &Template, message: &Value) -> bool {
        let number = |name: &str| template.find(message, name).and_then(Value::as_u64);
        let (Some(seq), Some(answered)) = (number("seq"), number("peer")) else { return false };
        let follows = seq == self.peer_seq.saturating_add(1) && answered <= self.seq;
        self.peer_seq = seq;
        follows
    }

    /// Takes a message of an agent.
    pub(super) fn hook_message(
        &mut self,
        core: &mut Core,
        now: Time,
        what: What,
        template: &Template,
        message: &Value,
    ) {
        let field = |name: &str| template.find(message, name);
        let text = |name: &str| field(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        match what {
            What::Opened => {
                self.on_answer(core, now, field("media"), field("start_paused") == Some(&Value::Bool(true)))
            }
            What::Pong => self.on_pong(core, now, field("peer").and_then(Value::as_u64)),
            What::Entities => {
                for entity in field("entities").and_then(Value::as_array).into_iter().flatten() {
                    self.entity(core, now, entity);
                }
            }
            What::Pause if core.sends => {
                core.sends = false;
                let position = core.sent_ms();
                self.hook.iter_mut().for_each(|hook| hook.paused_at = Some((now, position)));
                self.write(core, now, What::Paused, &[]);
            }
            What::Resume => {
                let Some((at, position)) = self.hook.as_mut().and_then(|hook| hook.paused_at.take()) else { return };
                core.sends = true;
                let discarded = duration(now.since(at).as_millis() as u64);
                let fields = [("start", json!(duration(position))), ("discarded", json!(discarded))];
                self.write(core, now, What::Resumed, &fields);
            }
            What::Disconnect => {
                if let Some(variables) = field("variables") {
                    core.push(SessionOutput::Variables(variables.clone()));
                }
                core.end(match text("reason").as_str() {
                    "unauthorized" => SessionEnd::Unauthorized,
                    "error" => SessionEnd::PeerFault(text("info")),
                    _ => SessionEnd::Peer,
                });
                self.say_close(core, now, "disconnect");
            }
            What::Closed => {
                if let Some(variables) = field("variables") {
                    core.push(SessionOutput::Variables(variables.clone()));
                }
                core.end(SessionEnd::Peer);
                core.close(1000, "call ended");
            }
            What::Error => {
                let code = field("code").map_or_else(String::new, Value::to_string);
                core.push(SessionOutput::PeerError { code, message: text("message") });
            }
            _ => {}
        }
    }

    /// Takes the answer to the opening message.
    fn on_answer(&mut self, core: &mut Core, now: Time, media: Option<&Value>, is_paused: bool) {
        let Some(hook) = self.hook.as_mut().filter(|hook| hook.stage == Stage::Opening) else {
            return core.event("opened_again", Value::Null);
        };
        let chosen = media.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let offered = offer(core);
        if chosen.len() > 1 || chosen.iter().any(|one| offered.as_array().is_none_or(|offered| !offered.contains(one)))
        {
            core.end(SessionEnd::PeerFault("the media of opened are not those that were offered".to_owned()));
            return self.say_close(core, now, "error");
        }
        (hook.stage, hook.until, hook.ping_at) = (Stage::Open, None, Some(now + FIRST_PING));
        core.sends = !chosen.is_empty() && !is_paused;
        if is_paused && !chosen.is_empty() {
            hook.paused_at = Some((now, 0));
        }
        core.establish();
    }

    fn on_pong(&mut self, core: &mut Core, now: Time, answered: Option<u64>) {
        let Some(hook) = &mut self.hook else { return };
        match hook.pinged {
            Some((seq, at)) if Some(seq) == answered => {
                (hook.pinged, hook.rtt) = (None, Some(now.since(at)));
                // The second ping tells the other side the time of the first.
                if hook.pings == 1 {
                    hook.ping_at = Some(now);
                    self.ping(core, now);
                }
            }
            _ => core.violation("BAD_SEQUENCE", "pong answers no ping"),
        }
    }

    fn ping(&mut self, core: &mut Core, now: Time) {
        let Some(hook) = &mut self.hook else { return };
        if hook.stage != Stage::Open || hook.ping_at.is_none_or(|at| now < at) {
            return;
        }
        hook.ping_at = Some(now + PING_EVERY);
        hook.pings += 1;
        let is_missing = hook.pinged.is_some();
        let rtt = hook.rtt.map(|rtt| ("rtt", json!(duration(rtt.as_millis() as u64))));
        hook.pinged = Some((self.seq + 1, now));
        if is_missing {
            core.event("pong_missing", Value::Null);
        }
        self.write(core, now, What::Ping, rtt.as_slice());
    }

    fn entity(&mut self, core: &mut Core, now: Time, entity: &Value) {
        let data = entity.get("data");
        match entity.get("type").and_then(Value::as_str) {
            Some("barge_in") => self.clear_asked(core, now),
            Some("bot_turn_response") => {
                if let Some(text) = data.and_then(|data| data.get("text")).and_then(Value::as_str) {
                    core.push(SessionOutput::Reported(text.to_owned()));
                }
            }
            _ => core.event("unknown_entity", json!({ "type": entity.get("type") })),
        }
    }

    /// Says `close`; the socket is closed when the other side has answered, or has had its time.
    fn say_close(&mut self, core: &mut Core, now: Time, reason: &str) {
        core.sends = false;
        let Some(hook) = self.hook.as_mut().filter(|hook| hook.stage != Stage::Closing) else { return };
        (hook.stage, hook.until) = (Stage::Closing, Some(now + CLOSE_WITHIN));
        self.write(core, now, What::Close, &[("reason", json!(reason))]);
    }

    /// Ends the session in order. Agents ask the caller to close it.
    pub(super) fn hook_hangup(&mut self, core: &mut Core, now: Time) {
        if core.is_caller() {
            core.end(SessionEnd::Own);
            return self.say_close(core, now, "end");
        }
        if !self.is_started {
            return core.close_for(&SessionControl::Hangup);
        }
        core.end(SessionEnd::Own);
        let Some(hook) = self.hook.as_mut().filter(|hook| hook.stage != Stage::Closing) else { return };
        (hook.stage, hook.until) = (Stage::Closing, Some(now + CLOSE_WITHIN));
        self.write(core, now, What::Disconnect, &[("reason", json!("completed"))]);
    }

    /// Takes a message of a caller.
    pub(super) fn hook_request(
        &mut self,
        core: &mut Core,
        now: Time,
        what: What,
        facts: Option<CallerFacts>,
        media: Option<&Value>,
    ) {
        match what {
            What::Start => {
                let Some(hook) = self.hook.as_mut().filter(|hook| hook.stage == Stage::Opening) else { return };
                (hook.stage, hook.until) = (Stage::Open, None);
                let own = offer(core);
                let known = |offered: &&Value| own.as_array().is_some_and(|own| own.contains(offered));
                let chosen: Vec<Value> =
                    media.and_then(Value::as_array).into_iter().flatten().find(known).cloned().into_iter().collect();
                core.sends = !chosen.is_empty();
                self.write(core, now, What::Opened, &[("start_paused", json!(false)), ("media", Value::from(chosen))]);
                core.push(SessionOutput::Called(facts.unwrap_or_default()));
                core.establish();
            }
            What::Ping => self.write(core, now, What::Pong, &[]),
            What::Close => {
                self.write(core, now, What::Closed, &[]);
                core.end(SessionEnd::Peer);
                self.hook
                    .iter_mut()
                    .for_each(|hook| (hook.stage, hook.until) = (Stage::Closing, Some(now + CLOSE_WITHIN)));
            }
            What::PlaybackCompleted => self.reach_all(core),
            _ => {}
        }
    }

    /// Tells of begin and end of what is played.
    pub(super) fn hook_moved(&mut self, core: &mut Core, now: Time) {
        if !core.is_caller() {
            return;
        }
        let (played, waiting) = (core.ears.played_samples(), core.ears.waiting());
        let Some(hook) = self.hook.as_mut().filter(|hook| hook.stage == Stage::Open) else { return };
        let Some((from, is_told)) = hook.playback else { return };
        let (begins, ends) = (!is_told && played > from, waiting == 0 && (is_told || played > from));
        hook.playback = if ends { None } else { Some((from, is_told || begins)) };
        if begins {
            self.write(core, now, What::PlaybackStarted, &[]);
        }
        if ends {
            self.write(core, now, What::PlaybackCompleted, &[]);
        }
    }

    /// Notes that audio came; where nothing waited, a playback begins with it.
    pub(super) fn hook_played(&mut self, core: &Core, before: u64) {
        if let Some(hook) = &mut self.hook
            && hook.playback.is_none()
            && core.ears.accepted_samples() > before
        {
            hook.playback = Some((before, false));
        }
    }

    /// Tells of the end of a playback that was taken back.
    pub(super) fn hook_cleared(&mut self, core: &mut Core, now: Time) {
        let playback = self.hook.as_mut().and_then(|hook| hook.playback.take());
        if playback.is_some_and(|(_, is_told)| is_told) {
            self.write(core, now, What::PlaybackCompleted, &[]);
        }
    }

    pub(super) fn hook_tick(&mut self, core: &mut Core, now: Time) {
        let Some(hook) = &self.hook else { return };
        let is_late = hook.until.is_some_and(|until| now >= until);
        match hook.stage {
            Stage::Opening if is_late && core.is_caller() => {
                core.end(SessionEnd::NoAnswer);
                let fields = [("code", json!(408)), ("message", json!("Open transaction timeout"))];
                self.write(core, now, What::Error, &fields);
                self.say_close(core, now, "error");
            }
            Stage::Closing if is_late => {
                let end = if core.is_caller() { SessionEnd::Own } else { SessionEnd::Peer };
                core.end(end);
                core.close(1000, "call ended");
            }
            Stage::Open if core.is_caller() => self.ping(core, now),
            _ => {}
        }
    }
}
