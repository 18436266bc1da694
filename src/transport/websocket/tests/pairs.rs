//! Both roles of each kind against each other: audio both ways, marks, clears, digits and the end.

use super::*;
use crate::websocket::protocol::{DigitPath, SessionEnd};

/// A caller and an agent, joined without delay.
struct Pair {
    caller: Side,
    agent: Side,
}

impl Pair {
    fn new(dialect: &Dialect) -> Pair {
        let mut caller = Side::caller(dialect.clone());
        let own = SessionFacts { from: String::new(), to: String::new(), ..facts() };
        let mut agent = Side::new(Session::agent(dialect.clone(), own));
        agent.open();
        caller.drain();
        let mut pair = Pair { caller, agent };
        pair.exchange();
        pair
    }

    fn exchange(&mut self) {
        while !(self.caller.sent.is_empty() && self.agent.sent.is_empty()) {
            for message in std::mem::take(&mut self.caller.sent) {
                self.agent.receive(message);
            }
            for message in std::mem::take(&mut self.agent.sent) {
                self.caller.receive(message);
            }
        }
    }

    /// Runs 20 ms in which both sides speak.
    fn say(&mut self, caller: &[i16], agent: &[i16]) {
        self.caller.say(caller);
        self.agent.say(agent);
        self.exchange();
    }

    fn wait(&mut self, ms: usize) {
        (0..ms / 20).for_each(|_| self.say(&[0; FRAME], &[0; FRAME]));
    }
}

fn every_dialect() -> Vec<Dialect> {
    let mut all: Vec<Dialect> = Kind::DIALECTS.into_iter().map(Dialect::new).collect();
    all.push(Dialect::new(Kind::Default));
    all.push(Dialect { plain_control: true, ..Dialect::new(Kind::ChanWebsocket) });
    let table = |text: &str| Dialect::parse("x", &serde_json::from_str(text).expect("JSON")).expect("a dialect");
    all.extend([
        table(r#"{"kind":"signalwire_stream","encoding":"L16"}"#),
        table(r#"{"kind":"telnyx_media_streaming","encoding":"PCMA"}"#),
        table(r#"{"kind":"telnyx_media_streaming","encoding":"L16","rate":16000}"#),
        table(r#"{"kind":"plivo_audio_streaming","encoding":"L16","rate":16000}"#),
        table(r#"{"kind":"exotel_agentstream","rate":24000}"#),
        table(r#"{"kind":"vonage_websocket","rate":24000}"#),
        table(r#"{"kind":"chan_websocket","encoding":"L16"}"#),
        table(r#"{"kind":"raw_pcm16","rate":44100,"byte_order":"big"}"#),
        table(r#"{"kind":"raw_pcm16","rate":8000,"agent_rate":48000}"#),
    ]);
    all
}

/// Returns the position of the first sample that is not silent.
fn onset(pcm: &[i16]) -> usize {
    pcm.iter().position(|sample| sample.abs() > 2000).unwrap_or(usize::MAX)
}

#[test]
fn both_hear_each_other_at_their_level() {
    for dialect in every_dialect() {
        let mut pair = Pair::new(&dialect);
        for at in 0..150 {
            let said = |hz: f64| tone(hz, 20, at * FRAME);
            pair.say(&said(700.0), &said(1100.0));
        }
        pair.wait(600);
        for (side, heard, other) in [(&pair.agent, 700.0, 1100.0), (&pair.caller, 1100.0, 700.0)] {
            let pcm = &side.heard;
            let middle = &pcm[16_000..16_000 + 24_000];
            let (own, leak) = (level(middle, heard), level(middle, other));
            assert!((0.97..1.03).contains(&own) && leak < 0.01, "{dialect:?} {own} {leak}");
            // A chunk has to fill, one more step has to pass, and filters take 5 ms: the longest is 200 ms.
            let chunk = pair.agent.session.dialect().chunk_ms.max(200) as usize;
            assert!(onset(pcm) < 16 * (chunk + 60), "{dialect:?} {}", onset(pcm));
            // Without a gap: every 10 ms between the ends sound.
            let (first, last) = (onset(pcm) + 320, onset(pcm) + 16 * 2700);
            let quiet =
                pcm[first..last].chunks(160).filter(|piece| piece.iter().all(|sample| sample.abs() < 2000)).count();
            assert_eq!(quiet, 0, "{dialect:?}");
            assert_eq!(side.codes(), Vec::<&str>::new(), "{dialect:?}");
        }
    }
}

#[test]
fn an_agent_learns_who_calls() {
    for dialect in every_dialect() {
        let pair = Pair::new(&dialect);
        let called = pair.agent.seen.iter().find_map(|(_, output)| match output {
            SessionOutput::Called(facts) => Some(facts.clone()),
            _ => None,
        });
        match dialect.kind {
            Kind::Default | Kind::PipecatProtobuf | Kind::RawPcm16 => assert_eq!(called, None),
            kind => {
                let called = called.expect("the opening message tells it");
                let is_plain = dialect.plain_control;
                assert_eq!(called.result_id.as_deref(), (!is_plain).then_some("13062"), "{dialect:?}");
                let numbers = [Kind::TelnyxMediaStreaming, Kind::ExotelAgentstream, Kind::Audiohook].contains(&kind);
                assert_eq!(called.from == "+15550100" && called.to == "+15550101", numbers, "{dialect:?}");
            }
        }
    }
}

#[test]
fn marks_are_reached_in_order_and_time() {
    for dialect in every_dialect() {
        let mut pair = Pair::new(&dialect);
        let chunk = match dialect.kind {
            Kind::ExotelAgentstream => 200,
            _ => dialect.chunk_ms as usize,
        };
        for name in ["a", "b"] {
            for _ in 0..chunk / 20 {
                pair.say(&[0; FRAME], &[3000; FRAME]);
            }
            pair.agent.order(SessionControl::Mark(name.to_owned()));
            pair.exchange();
        }
        let asked = pair.agent.ms();
        pair.wait(2000);
        let marks: Vec<(u64, &str)> = pair
            .agent
            .seen
            .iter()
            .filter_map(|(at, output)| match output {
                SessionOutput::MarkReached(name) => Some((*at, name.as_str())),
                _ => None,
            })
            .collect();
        match dialect.kind {
            Kind::PipecatProtobuf | Kind::RawPcm16 => assert!(marks.is_empty()),
            // One report for both, at the end of what was played.
            Kind::Audiohook => assert!(marks.len() == 2 && marks[1].1 == "b", "{marks:?}"),
            _ => {
                assert_eq!(marks.iter().map(|(_, name)| *name).collect::<Vec<_>>(), ["a", "b"], "{dialect:?}");
                let late = marks[1].0 - asked;
                assert!(late <= chunk as u64 + 20, "{dialect:?} {late}");
            }
        }
    }
}

#[test]
fn a_clear_silences_the_agent() {
    for dialect in every_dialect() {
        let mut pair = Pair::new(&dialect);
        if matches!(dialect.kind, Kind::Default | Kind::RawPcm16 | Kind::ChanWebsocket) {
            // No message, or frames that stay in the queue; the queue of the channel has tests of its own.
            continue;
        }
        // Two seconds at once.
        for at in 0..100 {
            let frame = tone(500.0, 20, at * FRAME);
            pair.agent.session.frame(pair.agent.now, &frame);
        }
        pair.agent.drain();
        pair.agent.order(SessionControl::Mark("m".to_owned()));
        pair.exchange();
        pair.wait(200);
        pair.agent.order(SessionControl::Clear);
        pair.exchange();
        let from = pair.caller.heard.len();
        pair.wait(1000);
        assert!(pair.caller.heard[from + FRAME..].iter().all(|sample| sample.abs() < 500), "{dialect:?}");
        let cleared = pair
            .caller
            .seen
            .iter()
            .any(|(_, output)| matches!(output, SessionOutput::Cleared { dropped } if *dropped > 20_000));
        assert!(cleared, "{dialect:?}");
        let reached = pair.agent.seen.iter().any(|(_, output)| matches!(output, SessionOutput::MarkReached(_)));
        let returns =
            !matches!(dialect.kind, Kind::PlivoAudioStreaming | Kind::VonageWebsocket | Kind::PipecatProtobuf);
        assert_eq!(reached, returns, "{dialect:?}");
    }
}

#[test]
fn digits_arrive_as_messages() {
    for dialect in every_dialect() {
        let mut pair = Pair::new(&dialect);
        let by_message = pair.caller.session.digits() != DigitPath::Tones;
        for digit in "5#".chars() {
            pair.caller.order(SessionControl::Digit { digit, duration_ms: 100 });
        }
        pair.exchange();
        let digits: String = pair
            .agent
            .seen
            .iter()
            .filter_map(|(_, output)| if let SessionOutput::Digit(digit) = output { Some(*digit) } else { None })
            .collect();
        assert_eq!(digits, if by_message { "5#" } else { "" }, "{dialect:?}");
    }
}

#[test]
fn each_side_can_hang_up() {
    for dialect in every_dialect() {
        let mut pair = Pair::new(&dialect);
        pair.wait(200);
        pair.caller.order(SessionControl::Hangup);
        pair.exchange();
        assert!(pair.caller.has_seen(&SessionOutput::Ended(SessionEnd::Own)), "{dialect:?}");
        assert_eq!(pair.caller.close(), Some((1000, "call ended")), "{dialect:?}");
        let has_ended = pair.agent.has_seen(&SessionOutput::Ended(SessionEnd::Peer));
        let tells = matches!(
            dialect.kind,
            Kind::TwilioMediaStreams
                | Kind::SignalwireStream
                | Kind::TelnyxMediaStreaming
                | Kind::ExotelAgentstream
                | Kind::Audiohook
        );
        assert_eq!(has_ended, tells, "{dialect:?}");

        let mut pair = Pair::new(&dialect);
        pair.agent.order(SessionControl::Hangup);
        pair.exchange();
        let is_told = matches!(dialect.kind, Kind::Audiohook | Kind::ChanWebsocket);
        assert_eq!(pair.caller.has_seen(&SessionOutput::Ended(SessionEnd::Peer)), is_told, "{dialect:?}");
        if dialect.kind == Kind::Audiohook {
            assert_eq!(pair.caller.close(), Some((1000, "call ended")));
        }
    }
}

#[test]
fn speech_is_told_by_the_default_protocol() {
    let mut pair = Pair::new(&Dialect::new(Kind::Default));
    pair.caller.order(SessionControl::UtteranceStarted);
    pair.agent.order(SessionControl::UtteranceStarted);
    pair.exchange();
    let started = |id: &str| SessionOutput::SpeechStarted { utterance_id: id.to_owned(), follows_own: true };
    assert!(pair.agent.has_seen(&started("dh-13062-1")));
    assert!(pair.caller.has_seen(&started("agent-13062-1")));
}

#[test]
fn the_same_seed_sends_the_same_bytes() {
    for dialect in every_dialect() {
        let sent = || {
            let mut side = Side::caller(dialect.clone());
            (0..20).for_each(|at| side.say(&tone(300.0, 20, at * FRAME)));
            side.order(SessionControl::Hangup);
            side.sent
        };
        assert_eq!(sent(), sent());
    }
}
