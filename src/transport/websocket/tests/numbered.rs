//! Sessions that are opened, numbered and closed by messages of their own.

use serde_json::json;

use super::*;
use crate::websocket::protocol::SessionEnd;

/// A caller, and an agent's counter of messages.
struct Agent {
    side: Side,
    id: String,
    seq: u64,
}

impl Agent {
    fn new() -> Agent {
        let side = Side::of(Kind::Audiohook);
        let id = stream(&side);
        Agent { side, id, seq: 0 }
    }

    fn open() -> Agent {
        let mut agent = Agent::new();
        let media = json!([{"type": "audio", "format": "PCMU", "channels": ["external"], "rate": 8000}]);
        agent.says("opened", json!({ "media": media }));
        agent
    }

    fn says(&mut self, kind: &str, parameters: Value) {
        self.says_after(kind, parameters, 1);
    }

    fn says_after(&mut self, kind: &str, parameters: Value, answered: u64) {
        self.seq += 1;
        let text = json!({"version": "2", "id": self.id, "type": kind, "seq": self.seq, "clientseq": answered, "parameters": parameters});
        self.side.text(&text.to_string());
    }

    fn types(&mut self) -> Vec<String> {
        self.side.texts().iter().map(|text| text["type"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

#[test]
fn the_opening_is_that_of_the_platform() {
    let mut side = Side::of(Kind::Audiohook);
    side.wait(1000);
    let mut texts = side.texts();
    assert_eq!(texts.len(), 1, "no audio before the answer");
    let open = texts.remove(0);
    assert_eq!(
        (&open["version"], &open["type"], &open["seq"], &open["serverseq"]),
        (&json!("2"), &json!("open"), &json!(1), &json!(0))
    );
    assert_eq!(open["position"], "PT0S");
    let parameters = &open["parameters"];
    assert_eq!(
        (&parameters["participant"]["ani"], &parameters["participant"]["dnis"]),
        (&json!("+15550100"), &json!("+15550101"))
    );
    assert_eq!(parameters["inputVariables"], json!({"simulation_result_id": "13062"}));
    assert_eq!(
        parameters["media"],
        json!([{"type": "audio", "format": "PCMU", "channels": ["external"], "rate": 8000}])
    );
    assert!(side.seen.is_empty(), "silence does not establish it: {:?}", side.seen);
}

#[test]
fn audio_and_pings_follow_the_answer() {
    let mut agent = Agent::open();
    assert!(agent.side.has_seen(&SessionOutput::Opened));
    agent.side.sent.clear();
    agent.side.wait(980);
    assert_eq!(agent.side.sent, vec![Message::Binary(vec![0xff; 1600]); 4]);
    agent.side.wait(20);
    let ping = agent.side.texts().remove(0);
    assert_eq!(
        (&ping["type"], &ping["seq"], &ping["serverseq"], &ping["position"]),
        (&json!("ping"), &json!(2), &json!(1), &json!("PT0.8S"))
    );
    assert_eq!(ping["parameters"], json!({}));
    agent.side.wait(40);
    agent.says_after("pong", json!({}), 2);
    let second = agent.side.texts().remove(0);
    assert_eq!(
        (&second["type"], &second["seq"], &second["parameters"]),
        (&json!("ping"), &json!(3), &json!({"rtt": "PT0.04S"}))
    );
    agent.says_after("pong", json!({}), 3);
    agent.side.wait(4980);
    assert!(agent.types().is_empty());
    agent.side.wait(20);
    assert_eq!(agent.types(), ["ping"]);
    agent.says_after("pong", json!({}), 2);
    assert_eq!(agent.side.codes(), ["BAD_SEQUENCE"]);
}

#[test]
fn an_answer_that_does_not_come_fails() {
    let mut side = Side::of(Kind::Audiohook);
    side.wait(4980);
    assert!(!side.has_seen(&SessionOutput::Ended(SessionEnd::NoAnswer)));
    side.wait(20);
    assert!(side.has_seen(&SessionOutput::Ended(SessionEnd::NoAnswer)));
    side.wait(10_000);
    assert_eq!(side.close(), Some((1000, "call ended")));
    // Media that nobody offered are no answer.
    let mut agent = Agent::new();
    agent
        .says("opened", json!({"media": [{"type": "audio", "format": "L16", "channels": ["external"], "rate": 8000}]}));
    assert!(agent.side.seen.iter().any(|(_, output)| matches!(output, SessionOutput::Ended(SessionEnd::PeerFault(_)))));
    // None at all is an answer without audio.
    let mut agent = Agent::new();
    agent.says("opened", json!({"media": []}));
    agent.side.sent.clear();
    agent.side.wait(500);
    assert!(agent.side.has_seen(&SessionOutput::Opened) && agent.side.sent.is_empty());
}

#[test]
fn numbers_names_and_answers_are_checked() {
    let check = |change: &dyn Fn(&mut Agent), expect: &str| {
        let mut agent = Agent::open();
        change(&mut agent);
        agent.says("updated", json!({}));
        assert_eq!(agent.side.codes(), [expect]);
        agent.says("updated", json!({}));
        assert_eq!(agent.side.codes(), [expect], "the next one counts from it");
    };
    check(&|agent| agent.seq += 1, "BAD_SEQUENCE");
    check(&|agent| agent.seq = 0, "BAD_SEQUENCE");
    let mut agent = Agent::open();
    agent.says_after("updated", json!({}), 2);
    assert_eq!(agent.side.codes(), ["BAD_SEQUENCE"], "it answers what was not said");
    let mut agent = Agent::open();
    agent.id = "x".to_owned();
    agent.says("updated", json!({}));
    assert_eq!(agent.side.codes(), ["WRONG_STREAM_ID"]);
    let mut agent = Agent::open();
    let id = agent.id.clone();
    agent.side.text(&json!({"id": id, "type": "updated", "parameters": {}}).to_string());
    assert_eq!(agent.side.codes(), ["MISSING_FIELD"]);
}

#[test]
fn playback_is_told_and_a_barge_in_stops_it() {
    let mut agent = Agent::open();
    agent.side.sent.clear();
    agent.side.binary(&[0x10; 8000]);
    assert!(agent.types().is_empty());
    agent.side.wait(20);
    assert_eq!(agent.types(), ["playback_started"]);
    agent.side.wait(480);
    agent.says("event", json!({"entities": [{"type": "barge_in", "data": {}}]}));
    assert_eq!(agent.types(), ["playback_completed"]);
    assert!(agent.side.has_seen(&SessionOutput::Cleared { dropped: 8000 }));
    assert!(agent.side.queue.is_empty());
    agent.side.wait(300);
    agent.says("event", json!({"entities": [{"type": "barge_in"}]}));
    assert_eq!(agent.types(), Vec::<String>::new(), "nothing was played");
    agent.side.binary(&[0x10; 800]);
    agent.side.wait(80);
    assert!(agent.types().contains(&"playback_started".to_owned()));
    agent.side.wait(20);
    assert_eq!(agent.types(), ["playback_completed"]);
}

#[test]
fn a_pause_stops_audio() {
    let mut agent = Agent::open();
    agent.side.wait(400);
    agent.side.sent.clear();
    agent.says("pause", json!({}));
    assert_eq!(agent.types(), ["paused"]);
    agent.side.wait(400);
    assert!(agent.side.sent.is_empty());
    agent.says("resume", json!({}));
    let resumed = agent.side.texts().remove(0);
    assert_eq!(resumed["parameters"], json!({"start": "PT0.4S", "discarded": "PT0.4S"}));
    agent.side.wait(200);
    assert!(agent.side.sent.contains(&Message::Binary(vec![0xff; 1600])));
}

#[test]
fn both_sides_can_end_it() {
    let mut agent = Agent::open();
    agent.side.sent.clear();
    agent.side.order(SessionControl::Hangup);
    let close = agent.side.texts().remove(0);
    assert_eq!((&close["type"], &close["parameters"]["reason"]), (&json!("close"), &json!("end")));
    assert_eq!(agent.side.close(), None);
    agent.side.wait(200);
    assert!(agent.side.sent.is_empty(), "no audio follows");
    agent.says("closed", json!({"outputVariables": {"a": "b"}}));
    assert_eq!(agent.side.close(), Some((1000, "call ended")));
    assert!(agent.side.has_seen(&SessionOutput::Variables(json!({"a": "b"}))));

    let check = |parameters: Value, end: SessionEnd| {
        let mut agent = Agent::open();
        agent.side.sent.clear();
        agent.says("disconnect", parameters);
        assert!(agent.side.has_seen(&SessionOutput::Ended(end.clone())), "{end:?} {:?}", agent.side.seen);
        assert_eq!(agent.side.texts()[0]["parameters"]["reason"], "disconnect");
        agent.side.wait(9980);
        assert_eq!(agent.side.close(), None);
        agent.side.wait(20);
        assert_eq!(agent.side.close(), Some((1000, "call ended")), "without an answer");
        let ends = agent.side.seen.iter().filter(|(_, output)| matches!(output, SessionOutput::Ended(_))).count();
        assert_eq!(ends, 1);
    };
    check(json!({"reason": "completed", "outputVariables": {}}), SessionEnd::Peer);
    check(json!({"reason": "unauthorized"}), SessionEnd::Unauthorized);
    check(json!({"reason": "error", "info": "i"}), SessionEnd::PeerFault("i".to_owned()));
}

#[test]
fn the_agents_words_are_reported() {
    let mut agent = Agent::open();
    let data = json!({"disposition": "match", "text": "hello", "confidence": 1});
    agent.says("event", json!({"entities": [{"type": "bot_turn_response", "data": data}, {"type": "x"}]}));
    assert!(agent.side.has_seen(&SessionOutput::Reported("hello".to_owned())));
    assert_eq!(agent.side.events(), ["unknown_entity"]);
}
