//! Conversations in virtual time.

mod last_words;

use ringer_media::call::Response;
use serde_json::{Value, json};

use super::*;

/// A conversation whose mind and network are the test.
struct Stage {
    now: i64,
    dialogue: Dialogue,
    /// Outputs in order, as short texts; events by name.
    asked: Vec<String>,
    timeline: Vec<TimelineEntry>,
    end: Option<DialogueEnd>,
}

fn spec() -> DialogueSpec {
    DialogueSpec {
        channel: "http",
        first: First::Agent,
        sync: false,
        tells_end: true,
        last_reply_ms: 0,
        reply_delay_ms: 0,
        group_ms: 0,
        max_duration_ms: None,
        inactivity_ms: 300_000,
        max_turns: None,
        script: Vec::new(),
        script_ordered: false,
        asks_meaning: false,
        hangup_phrases: Vec::new(),
        follows_language: false,
    }
}

impl Stage {
    fn of(spec: DialogueSpec) -> Stage {
        let dialogue = Dialogue::new(spec);
        let mut stage = Stage { now: 1_000_000, dialogue, asked: Vec::new(), timeline: Vec::new(), end: None };
        stage.feed(Input::Begin);
        stage
    }

    /// Puts the conversation aside and takes it up again, where it can be. The trouble of a sending is its driver's.
    fn put_aside(&mut self) {
        let is_troubled = matches!(self.dialogue.doing, Doing::Sending { trouble: Some(_), .. });
        if let Some(saved) = self.dialogue.save().filter(|_| !is_troubled) {
            let text = serde_json::to_string(&saved).expect("it is JSON");
            let saved = serde_json::from_str(&text).expect("it is read back");
            self.dialogue = Dialogue::resume(self.dialogue.spec.clone(), saved);
        }
    }

    /// Feeds an input to a conversation that was put aside before it, so that every test shows that this changes
    /// nothing.
    fn feed(&mut self, input: Input) {
        self.put_aside();
        self.dialogue.handle(self.now, input);
        while let Some(output) = self.dialogue.poll() {
            match output {
                Output::Speak(language) => self.asked.push(format!("speak {language}")),
                Output::Think(thought) => self.asked.push(format!("think {:?}", thought.purpose)),
                Output::Compare(comparison) => self.asked.push(format!("compare {:?}", comparison.phrases)),
                Output::Send { text, ends } => {
                    self.asked.push(format!("send {text}{}", if ends { " END" } else { "" }))
                }
                Output::Event(entry) => self.timeline.push(entry),
                Output::Ended(end) => {
                    assert!(self.end.is_none(), "one end");
                    self.end = Some(end);
                }
            }
        }
    }

    /// Lets time pass, with a tick whenever one is due.
    fn wait(&mut self, ms: i64) {
        let until = self.now + ms;
        while let Some(due) = self.dialogue.due().filter(|due| *due <= until) {
            assert!(due >= self.now, "what was due is done");
            self.now = due;
            self.feed(Input::Tick);
        }
        self.now = until;
    }

    fn hears(&mut self, text: &str) {
        self.feed(Input::Heard(self.now, Heard { text: text.into(), ..Heard::default() }));
    }

    fn thinks(&mut self, say: &str, then: Then) {
        self.feed(Input::Thought(Move { say: say.into(), then, ..Move::default() }));
    }

    /// Reports that the message was taken 200 ms after it was sent off.
    fn confirm_sent(&mut self) {
        let at_ms = self.now;
        self.wait(200);
        self.feed(Input::Sent { at_ms, message_id: "m".into(), is_answered: false });
    }

    /// Returns the outputs since the last call.
    fn take_outputs(&mut self) -> Vec<String> {
        std::mem::take(&mut self.asked)
    }

    fn reason(&self) -> Option<EndReason> {
        self.end.as_ref().map(|end| end.reason)
    }

    fn events(&self) -> Vec<(&str, f64)> {
        self.timeline.iter().map(|entry| (entry.name(), entry.offset_ms())).collect()
    }
}

#[test]
fn the_agent_s_turns_are_answered_one_by_one() {
    let mut stage = Stage::of(spec());
    stage.wait(5_000_000);
    assert!(
        stage.take_outputs().is_empty() && stage.end.is_none(),
        "nobody waits for a conversation that has not begun"
    );
    stage.hears("Hello?");
    assert_eq!(stage.take_outputs(), ["think Reply"]);
    stage.wait(100);
    stage.hears("Are you there?");
    stage.thinks("I want to book.", Then::Listen);
    assert_eq!(stage.take_outputs(), ["send I want to book."]);
    stage.confirm_sent();
    assert_eq!(stage.take_outputs(), ["think Reply"], "the second turn waited for the first answer");
    stage.thinks("Yes.", Then::Hangup);
    assert_eq!(stage.take_outputs(), ["send Yes. END"]);
    stage.confirm_sent();
    assert_eq!(stage.reason(), Some(EndReason::DhEndCall));
    // The second turn overtook the word that the first answer was taken: that counts from its sending.
    let expect = [
        ("message.received", 0.0),
        ("turn.ended", 0.0),
        ("message.received", 100.0),
        ("turn.ended", 100.0),
        ("message.sent", 100.0),
        ("message.sent", 500.0),
        ("call.ended", 500.0),
    ];
    assert_eq!(stage.events(), expect);
    let end = stage.end.as_ref().expect("it is over");
    assert_eq!((end.began_ms, end.ended_ms), (Some(6_000_000), 6_000_500));
    let said: Vec<(bool, &str)> = stage.dialogue.history().iter().map(|line| (line.other, &*line.text)).collect();
    let expect = [(true, "Hello?"), (false, "I want to book."), (true, "Are you there?"), (false, "Yes.")];
    assert_eq!(said, expect);
    stage.hears("More?");
    stage.feed(Input::Hangup(EndReason::ApiHangup));
    assert_eq!((stage.take_outputs(), stage.dialogue.due()), (vec![], None), "nothing follows");
}

#[test]
fn who_begins() {
    for (first, expect) in [
        (First::Agent, vec![]),
        (First::Say("Hi.".into()), vec!["send Hi."]),
        (First::Made, vec!["think Opening"]),
        (First::Invited, vec!["send "]),
    ] {
        let mut stage = Stage::of(DialogueSpec { first: first.clone(), ..spec() });
        assert_eq!(stage.take_outputs(), expect, "{first:?}");
    }
    let mut stage = Stage::of(DialogueSpec { first: First::Invited, sync: true, ..spec() });
    stage.confirm_sent();
    assert_eq!(stage.events(), [], "an invitation is no message");
    stage.hears("Good day.");
    assert_eq!(stage.events(), [("message.received", 200.0), ("turn.ended", 200.0)]);
    // An agent that was faster is answered.
    let mut dialogue = Dialogue::new(DialogueSpec { first: First::Made, ..spec() });
    dialogue.handle(10, Input::Heard(5, Heard { text: "Hello.".into(), ..Heard::default() }));
    dialogue.handle(10, Input::Begin);
    let mut thoughts = std::iter::from_fn(|| dialogue.poll()).filter_map(|output| match output {
        Output::Think(thought) => Some(thought.purpose),
        _ => None,
    });
    assert_eq!((thoughts.next(), thoughts.next()), (Some(Purpose::Reply), None));
}

#[test]
fn nobody_begins_for_ever() {
    for (most_ms, expect, after_ms) in
        [(Some(30_000), EndReason::MaxDuration, 30_000), (None, EndReason::InactivityTimeout, 300_000)]
    {
        let mut stage = Stage::of(DialogueSpec { first: First::Made, max_duration_ms: most_ms, ..spec() });
        stage.thinks("", Then::Listen);
        stage.wait(after_ms - 1);
        assert_eq!(stage.reason(), None);
        stage.wait(1);
        assert_eq!(stage.reason(), Some(expect));
    }
}

#[test]
fn latency_counts_from_what_the_way_allows() {
    for (sync, expect) in [(false, 200.0), (true, 0.0)] {
        let mut stage = Stage::of(DialogueSpec { first: First::Say("Hi.".into()), sync, ..spec() });
        let began = stage.now;
        stage.confirm_sent();
        let sent = stage.dialogue.began_ms().expect("it began") - began;
        assert_eq!((stage.events(), sent as f64), (vec![("message.sent", 0.0)], expect), "sync {sync}");
    }
}

#[test]
fn parts_of_a_turn_are_joined() {
    let mut stage = Stage::of(spec());
    let part = |text: &str, more| Heard { text: text.into(), more, ..Heard::default() };
    for (text, more) in [("One", true), ("", true), ("two", true), ("three", false)] {
        stage.feed(Input::Heard(stage.now, part(text, more)));
        stage.wait(500);
    }
    assert_eq!(stage.take_outputs(), ["think Reply"]);
    assert_eq!(stage.dialogue.history()[0].text.as_ref(), "One\ntwo\nthree");
    let turn = stage.timeline.iter().find(|entry| entry.name() == "turn.ended").expect("it ended");
    assert_eq!((&turn.data()["from_sample"], &turn.data()["end_sample"]), (&json!(0), &json!(1500 * 16)));
}

#[test]
fn messages_close_together_are_one_turn() {
    let mut stage = Stage::of(DialogueSpec { group_ms: 8000, ..spec() });
    stage.hears("One");
    stage.wait(7999);
    stage.hears("two");
    stage.wait(7999);
    assert!(stage.take_outputs().is_empty());
    stage.wait(1);
    assert_eq!(stage.take_outputs(), ["think Reply"]);
    assert_eq!(stage.dialogue.history()[0].text.as_ref(), "One\ntwo");
}

#[test]
fn silence_and_time_end_it() {
    let by = |change: fn(&mut DialogueSpec), play: fn(&mut Stage)| {
        let mut spec = spec();
        change(&mut spec);
        let mut stage = Stage::of(spec);
        play(&mut stage);
        (stage.reason(), stage.take_outputs(), stage.now - 1_000_000)
    };
    let whole = |_: &mut DialogueSpec| {};
    // Nobody writes on.
    let quiet = by(whole, |stage| {
        stage.hears("Yes?");
        stage.take_outputs();
        stage.wait(299_999);
        assert!(stage.end.is_none());
        stage.wait(1);
    });
    assert_eq!(quiet, (Some(EndReason::InactivityTimeout), vec![], 300_000));
    // The longest time cuts at once.
    let long = by(
        |spec| spec.max_duration_ms = Some(60_000),
        |stage| {
            stage.hears("Yes?");
            stage.wait(59_999);
            stage.thinks("Late.", Then::Listen);
            stage.wait(1);
            stage.asked.clear();
        },
    );
    assert_eq!(long, (Some(EndReason::MaxDuration), vec![], 60_000));
}

/// The agent takes a message, and lets the time pass.
#[test]
fn a_message_that_is_not_answered_ends_with_the_longest_time() {
    let trouble = || Some(("HTTP_WEBHOOK_FAILED", "answered 503".to_owned()));
    let limited = |first| DialogueSpec { first, sync: true, max_duration_ms: Some(60_000), ..spec() };
    // The first one: there was no conversation.
    let mut stage = Stage::of(limited(First::Say("Hi.".into())));
    stage.feed(Input::Troubled(trouble()));
    stage.feed(Input::Troubled(None));
    stage.wait(59_999);
    assert!(stage.end.is_none());
    stage.wait(1);
    let end = stage.end.as_ref().expect("it is over");
    assert_eq!((end.reason, end.began_ms), (EndReason::NoAnswer, None));
    // It was not taken: that is no silence.
    let mut stage = Stage::of(limited(First::Say("Hi.".into())));
    stage.feed(Input::Troubled(trouble()));
    stage.wait(60_000);
    let end = stage.end.as_ref().expect("it is over");
    assert_eq!((end.reason, end.fault.clone()), (EndReason::Fault, trouble()));
    // A later one: it is in the record, so that the silence after it counts.
    let mut stage = Stage::of(limited(First::Agent));
    stage.hears("Yes?");
    stage.wait(1000);
    stage.thinks("Well.", Then::Listen);
    stage.wait(59_000);
    let expect = [("message.received", 0.0), ("turn.ended", 0.0), ("message.sent", 1000.0), ("call.ended", 60_000.0)];
    assert_eq!((stage.reason(), stage.events()), (Some(EndReason::MaxDuration), expect.to_vec()));
}

/// Hears one message and answers it.
fn turn(stage: &mut Stage) {
    stage.hears("Yes?");
    stage.thinks("Hm.", Then::Listen);
    stage.confirm_sent();
    stage.take_outputs();
}

#[test]
fn turns_and_phrases_end_it() {
    // The last turn is not answered.
    let mut stage = Stage::of(DialogueSpec { max_turns: Some(2), ..spec() });
    turn(&mut stage);
    stage.hears("And?");
    assert_eq!((stage.reason(), stage.take_outputs()), (Some(EndReason::MaxTurns), vec![]));
    // Phrases of either side.
    let phrases = vec!["good bye".to_owned()];
    let mut stage = Stage::of(DialogueSpec { hangup_phrases: phrases.clone(), ..spec() });
    turn(&mut stage);
    stage.hears("Good-bye, then!");
    assert_eq!((stage.reason(), stage.take_outputs()), (Some(EndReason::HangupPhrase), vec![]));
    let mut stage = Stage::of(DialogueSpec { hangup_phrases: phrases, ..spec() });
    stage.hears("Yes?");
    stage.thinks("Good bye.", Then::Listen);
    stage.confirm_sent();
    assert_eq!(
        (stage.reason(), stage.asked.last().map(String::as_str)),
        (Some(EndReason::HangupPhrase), Some("send Good bye. END"))
    );
}

#[test]
fn the_agent_a_fault_and_a_last_decision_end_it() {
    // The agent ends it, whatever is on its way.
    let mut stage = Stage::of(spec());
    stage.hears("Yes?");
    stage.thinks("Hm.", Then::Listen);
    let ends = Some(EndReason::AgentHangup);
    stage.feed(Input::Heard(stage.now, Heard { text: "Bye.".into(), ends, ..Heard::default() }));
    stage.feed(Input::Sent { at_ms: stage.now, message_id: "m".into(), is_answered: false });
    assert_eq!(stage.reason(), Some(EndReason::AgentHangup));
    assert!(stage.end.as_ref().is_some_and(|end| end.other_spoke));
    assert_eq!(stage.events().iter().filter(|(event, _)| *event == "turn.ended").count(), 2);
    // It cannot be reached.
    let mut stage = Stage::of(DialogueSpec { first: First::Say("Hi.".into()), ..spec() });
    stage.feed(Input::NotSent { code: "HTTP_WEBHOOK_FAILED", message: "answered 500".into() });
    let end = stage.end.as_ref().expect("it is over");
    assert_eq!((end.reason, end.began_ms, end.other_spoke), (EndReason::Fault, None, false));
    assert_eq!(end.fault, Some(("HTTP_WEBHOOK_FAILED", "answered 500".into())));
    // A last decision without words is told where that is possible.
    for (tells_end, expect) in [(true, vec!["send  END"]), (false, vec![])] {
        let mut stage = Stage::of(DialogueSpec { tells_end, ..spec() });
        stage.hears("Yes?");
        stage.take_outputs();
        stage.thinks("", Then::Finish);
        assert_eq!(stage.take_outputs(), expect);
        if tells_end {
            stage.confirm_sent();
        }
        assert_eq!(stage.reason(), Some(EndReason::PlaybackEnd));
        assert!(stage.events().iter().all(|(event, _)| *event != "message.sent"));
    }
}

#[test]
fn silence_waits_for_the_agent_or_for_its_time() {
    let mut stage = Stage::of(spec());
    stage.hears("One moment, please.");
    stage.take_outputs();
    stage.thinks("", Then::StaySilent);
    stage.wait(59_999);
    assert!(stage.take_outputs().is_empty());
    stage.wait(1);
    assert_eq!(stage.take_outputs(), ["think StillThere"]);
    stage.thinks("Are you still there?", Then::StaySilent);
    stage.confirm_sent();
    stage.take_outputs();
    stage.hears("Yes.");
    assert_eq!(stage.take_outputs(), ["think Reply"]);
    // A pause is kept whatever comes, and what came is known after it.
    stage.thinks("", Then::Pause { ms: 4000 });
    stage.wait(1000);
    stage.hears("Hello?");
    stage.wait(2999);
    assert!(stage.take_outputs().is_empty());
    stage.wait(1);
    assert_eq!(stage.take_outputs(), ["think GoOn"]);
    assert_eq!(stage.dialogue.history().last().map(|line| &*line.text), Some("Hello?"));
}

#[test]
fn scripted_answers_take_the_mind_s_place() {
    let rule = |index, phrase: &str, response| ScriptRule {
        index,
        matching: Matching::Exact,
        phrase: phrase.into(),
        response,
        first_n: None,
    };
    let script = vec![
        rule(0, "your name", Response::Phrase("Ann.".into())),
        rule(1, "one moment", Response::Silence { duration_ms: Some(2000), then: Some("Well?".into()) }),
        rule(2, "hold on", Response::Silence { duration_ms: None, then: Some("Back.".into()) }),
        rule(3, "please hold", Response::Silence { duration_ms: None, then: None }),
        rule(4, "press a key", Response::Dtmf("1".into())),
    ];
    let mut stage = Stage::of(DialogueSpec { script, reply_delay_ms: 700, ..spec() });
    stage.hears("May I have your name?");
    assert!(stage.take_outputs().is_empty(), "an answer has its delay");
    stage.wait(700);
    assert_eq!(stage.take_outputs(), ["send Ann."]);
    stage.confirm_sent();
    stage.hears("One moment.");
    stage.wait(1000);
    stage.hears("Still looking.");
    stage.wait(1000);
    assert_eq!(stage.take_outputs(), ["send Well?"]);
    stage.confirm_sent();
    stage.hears("Hold on.");
    stage.wait(100_000);
    assert!(stage.take_outputs().is_empty());
    stage.hears("Here I am.");
    assert_eq!(stage.take_outputs(), ["send Back."]);
    stage.confirm_sent();
    stage.hears("Please hold.");
    stage.hears("Done.");
    assert_eq!(stage.take_outputs(), ["think Reply"]);
    stage.thinks("", Then::Listen);
    stage.hears("Press a key.");
    stage.wait(700);
    assert_eq!(stage.take_outputs(), ["send 1"]);
    stage.confirm_sent();
    let fired: Vec<_> = stage.timeline.iter().filter(|entry| entry.name() == "scripted_response").collect();
    assert_eq!(fired.iter().map(|entry| entry.data()["index"].clone()).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    let types: Vec<_> = fired.iter().map(|entry| entry.data()["response_type"].clone()).collect();
    assert_eq!(types, ["phrase", "silence", "silence", "silence", "dtmf"]);
    let kinds: Vec<_> = stage.timeline.iter().filter(|entry| entry.name() == "message.sent").collect();
    assert!(kinds.iter().all(|entry| entry.data()["kind"] == "scripted") && kinds.len() == 4);
}

#[test]
fn tools_are_told_and_keys_are_typed() {
    let mut stage = Stage::of(spec());
    stage.hears("Press 1.");
    stage.take_outputs();
    let menu = ToolCall { name: "menu".into(), parameters: Value::Null, output: Value::Null, source: None };
    stage.feed(Input::Called { at_ms: stage.now + 40, call: menu });
    stage.feed(Input::Thought(Move { dtmf: "1".into(), notes: vec!["fallback_speaker"], ..Move::default() }));
    assert_eq!(stage.take_outputs(), ["send 1"]);
    let events = stage.events();
    assert!(events.contains(&("tool_call", 40.0)) && events.contains(&("fallback_speaker", 0.0)), "{events:?}");
}

#[test]
fn the_agent_s_language_is_followed_where_that_is_asked() {
    for follows_language in [true, false] {
        let mut stage = Stage::of(DialogueSpec { follows_language, ..spec() });
        let mut asked = Vec::new();
        for text in [
            "OK.",
            "Hola, en qué puedo ayudarle hoy?",
            "Of course, what is your name please?",
            "Claro, cuál es su fecha de nacimiento?",
            "Of course, what is your name please?",
            "Thank you, how can I help you with that?",
        ] {
            stage.hears(text);
            asked.extend(stage.take_outputs());
            stage.thinks("Well.", Then::Listen);
            stage.confirm_sent();
            stage.take_outputs();
        }
        asked.retain(|what| what.starts_with("speak"));
        let taken = stage.events().iter().filter(|(event, _)| *event == "language.taken").count();
        let expect: &[&str] = if follows_language { &["speak es", "speak en"] } else { &[] };
        assert_eq!(asked, expect);
        assert_eq!(taken, expect.len());
    }
}

#[test]
fn the_mind_tells_the_meaning_of_a_turn_and_words_do_where_it_cannot() {
    let rule = |index, matching, phrase: &str, say: &str| ScriptRule {
        index,
        matching,
        phrase: phrase.into(),
        response: Response::Phrase(say.into()),
        first_n: None,
    };
    let script = vec![
        rule(0, Matching::Context, "tell me your birth date", "March third."),
        rule(1, Matching::Context, "asks for the postal code", "12345."),
        rule(2, Matching::Exact, "your name", "Ann."),
    ];
    let ask = "compare [\"tell me your birth date\", \"asks for the postal code\"]";
    // Words that mean something else, and words without one in common.
    let (alike, unlike) = ("I cannot tell your birth date.", "Where does the letter go?");
    for (says, meant, expect) in [
        (alike, Some(Some(0)), "send March third."),
        (alike, Some(None), "think Reply"),
        (alike, None, "send March third."),
        (unlike, Some(Some(1)), "send 12345."),
        (unlike, Some(Some(7)), "think Reply"),
        (unlike, None, "think Reply"),
    ] {
        let mut stage = Stage::of(DialogueSpec { script: script.clone(), asks_meaning: true, ..spec() });
        stage.hears(says);
        assert_eq!(stage.take_outputs(), [ask], "{says}");
        stage.feed(Input::Meant(meant));
        assert_eq!(stage.take_outputs(), [expect], "{says} {meant:?}");
    }
    let mut stage = Stage::of(DialogueSpec { script: script.clone(), asks_meaning: true, ..spec() });
    stage.hears("Your name, please?");
    assert_eq!(stage.take_outputs(), ["send Ann."], "nobody is asked about an exact rule");
    stage.feed(Input::Meant(Some(Some(0))));
    assert!(stage.take_outputs().is_empty(), "nobody asked");
    let mut stage = Stage::of(DialogueSpec { script, ..spec() });
    stage.hears(alike);
    assert_eq!(stage.take_outputs(), ["send March third."], "without a model the words tell");
}

/// The words and digits of a move are one message, and two lines of what was said.
#[test]
fn keys_are_typed_behind_words_and_remembered_as_keys() {
    let lines = |dialogue: &Dialogue| -> Vec<(String, String)> {
        let own = dialogue.history().iter().filter(|line| !line.other);
        own.map(|line| (line.text.to_string(), line.digits.to_string())).collect()
    };
    let mut stage = Stage::of(spec());
    for (say, dtmf, sent) in [("One.", "12", "send One. 12"), ("", "3,4#", "send 3,4#"), ("12", "", "send 12")] {
        stage.hears("Well?");
        stage.feed(Input::Thought(Move { say: say.into(), dtmf: dtmf.into(), ..Move::default() }));
        stage.confirm_sent();
        assert_eq!(stage.take_outputs(), ["think Reply", sent]);
    }
    let expect = [("One.", ""), ("", "12"), ("", "3,4#"), ("12", "")];
    assert_eq!(lines(&stage.dialogue), expect.map(|(text, digits)| (text.to_owned(), digits.to_owned())));
}
