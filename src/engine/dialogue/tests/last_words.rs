//! Answers to the last message of a conversation.

use super::*;

#[test]
fn the_answer_to_the_last_message_is_heard() {
    for (text, expect) in [(Some("Bye!"), 2), (None, 1)] {
        let mut stage = Stage::of(DialogueSpec { sync: true, ..spec() });
        stage.hears("Yes?");
        stage.thinks("That is all, thank you.", Then::Hangup);
        let sent_ms = stage.now;
        stage.wait(700);
        stage.feed(Input::Sent { at_ms: sent_ms, message_id: "m".into(), is_answered: true });
        assert!(stage.end.is_none(), "its answer is on the way");
        let call = ToolCall { name: "book".into(), parameters: Value::Null, output: Value::Null, source: None };
        stage.feed(Input::Called { at_ms: stage.now, call });
        if let Some(text) = text {
            stage.hears(text);
        }
        stage.feed(Input::Settled);
        assert_eq!(stage.reason(), Some(EndReason::DhEndCall));
        let names: Vec<&str> = stage.events().iter().map(|(name, _)| *name).collect();
        assert_eq!(names.iter().filter(|name| **name == "turn.ended").count(), expect, "{names:?}");
        assert!(names.contains(&"tool_call") && names.last() == Some(&"call.ended"), "{names:?}");
        assert_eq!(
            stage.asked.last().map(String::as_str),
            Some("send That is all, thank you. END"),
            "it is not answered"
        );
    }
}

#[test]
fn an_answer_that_overtakes_the_receipt_of_the_last_message_is_heard() {
    for ends in [None, Some(EndReason::AgentHangup)] {
        let mut stage = Stage::of(spec());
        stage.hears("Yes?");
        stage.thinks("That is all, thank you.", Then::Hangup);
        let sent_ms = stage.now;
        stage.wait(100);
        let heard = Heard { text: "Bye!".into(), ends, ..Heard::default() };
        stage.feed(Input::Heard(stage.now, heard));
        assert!(stage.end.is_none(), "the last words are on their way");
        stage.feed(Input::Sent { at_ms: sent_ms, message_id: "m".into(), is_answered: false });
        assert_eq!(stage.reason(), Some(EndReason::DhEndCall));
        let names: Vec<&str> = stage.events().iter().map(|(name, _)| *name).collect();
        assert_eq!(names.iter().filter(|name| **name == "turn.ended").count(), 2, "{names:?}");
        assert!(names.contains(&"message.sent") && names.last() == Some(&"call.ended"), "{names:?}");
    }
}

/// Lets an agent that posts its messages answer the last one in these parts, 700 ms apart, with a tool call behind
/// them.
fn last_words_answered_by(parts: &[(&str, bool)]) -> Stage {
    let mut stage = Stage::of(DialogueSpec { last_reply_ms: 5000, ..spec() });
    stage.hears("Yes?");
    stage.thinks("Book it. That is all, thank you.", Then::Hangup);
    stage.confirm_sent();
    stage.feed(Input::Settled);
    stage.wait(700);
    let call = ToolCall { name: "book".into(), parameters: Value::Null, output: Value::Null, source: None };
    stage.feed(Input::Called { at_ms: stage.now, call });
    for (text, more) in parts {
        stage.wait(700);
        let heard = Heard { text: (*text).into(), more: *more, ..Heard::default() };
        stage.feed(Input::Heard(stage.now, heard));
    }
    stage
}

#[test]
fn an_agent_that_posts_its_messages_may_answer_the_last_one() {
    for (parts, end_ms, turns) in [
        (vec![], 900.0, 1),
        (vec![("It is booked.", false)], 1600.0, 2),
        (vec![("It is", true), ("booked.", false)], 2300.0, 2),
        (vec![("It is", true)], 1600.0, 2),
    ] {
        let mut stage = last_words_answered_by(&parts);
        let is_whole = parts.last().is_some_and(|(_, more)| !more);
        assert_eq!(stage.reason().is_some(), is_whole, "{parts:?}");
        stage.wait(5000);
        assert_eq!(stage.reason(), Some(EndReason::DhEndCall), "{parts:?}");
        let events = stage.events();
        assert_eq!(events.iter().filter(|(name, _)| *name == "turn.ended").count(), turns, "{events:?}");
        assert_eq!(events.last(), Some(&("call.ended", end_ms)), "waiting for nobody is not part of it: {events:?}");
        assert_eq!(stage.asked.last().map(String::as_str), Some("send Book it. That is all, thank you. END"));
    }
    // Whoever ends it meanwhile does not change why it ended.
    let mut stage = last_words_answered_by(&[]);
    stage.feed(Input::Hangup(EndReason::Shutdown));
    assert_eq!(
        (stage.reason(), stage.events().last().copied()),
        (Some(EndReason::DhEndCall), Some(("call.ended", 900.0)))
    );
    // The end that is told without words is not answered.
    let mut stage = Stage::of(DialogueSpec { last_reply_ms: 5000, ..spec() });
    stage.hears("Yes?");
    stage.thinks("", Then::Finish);
    stage.confirm_sent();
    assert_eq!(stage.reason(), Some(EndReason::PlaybackEnd));
}
