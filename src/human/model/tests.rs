//! A mind that asks a language model, by scripted answers.

use ringer_media::call::ConversationLine;
use ringer_provider::testing::{Reply, ScriptedModel};

use super::*;
use crate::{FluencyLevel, Verbosity};

const LONG: Duration = Duration::from_secs(600);
const AT_ONCE: Duration = Duration::ZERO;

fn thought(purpose: Purpose) -> Thought {
    let line = ConversationLine { other: true, text: "hello".into(), digits: Arc::default(), interrupted: false };
    Thought { purpose, history: vec![line], unsaid: None }
}

async fn moves(profile: Profile, reply: Reply, purpose: Purpose, patience: Patience) -> Vec<Move> {
    let model = Arc::new(ScriptedModel::new(vec![reply]));
    let mut mind = ModelMind::new(profile, model, Seed(1), patience);
    let (out, mut moves) = mpsc::channel(32);
    mind.think(thought(purpose), out).await;
    let mut all = Vec::new();
    while let Some(next) = moves.recv().await {
        all.push(next);
    }
    let last = all.pop().expect("a move has an end");
    assert!(!last.more && all.iter().all(|part| part.more), "{all:?} {last:?}");
    all.push(last);
    all
}

async fn reply(reply: Reply) -> Vec<Move> {
    let profile = Profile { intent: "I want help.".into(), verbosity: Verbosity::Low, ..Profile::default() };
    moves(profile, reply, Purpose::Reply, Patience { filler: LONG, give_up: LONG }).await
}

fn texts(moves: &[Move]) -> Vec<&str> {
    moves.iter().map(|part| part.say.as_str()).collect()
}

#[tokio::test]
async fn words_leave_sentence_by_sentence() {
    let said = reply(Reply::says(&["Hello, I am", " Maria. I", " want *coughs* help", "."])).await;
    assert_eq!(texts(&said), ["Hello, I am Maria.", "I want help."]);
    assert!(said.iter().all(|part| part.notes.is_empty() && part.then == Then::Listen));
}

#[tokio::test]
async fn the_word_limit_cuts_at_a_sentence_where_it_can() {
    let check = async |pieces: &[&str], expect: &[&str]| {
        let said = reply(Reply::says(pieces)).await;
        assert_eq!(texts(&said), expect, "{pieces:?}");
    };
    let twenty = "word ".repeat(19) + "word. ";
    check(&[&twenty, &twenty, "More."], &[twenty.trim(), ""]).await;
    let thirty = "word ".repeat(30) + "end. ";
    let cut = "word ".repeat(24) + "word.";
    check(&[&thirty, "More."], &[&cut, ""]).await;
}

#[tokio::test]
async fn a_talkative_model_s_turns_are_about_as_long_as_asked() {
    const LENGTHS: [usize; 7] = [11, 4, 8, 14, 6, 10, 3];
    let words = |count: usize| "word ".repeat(count - 1) + "word. ";
    let even = LENGTHS.map(|count| words(count).repeat(200 / count));
    let turned = |by: usize| LENGTHS.iter().cycle().skip(by).take(30).map(|&count| words(count)).collect();
    let talks: Vec<String> = even.into_iter().chain((0..LENGTHS.len()).map(turned)).collect();
    for (verbosity, target, maximum) in
        [(Verbosity::Low, 12.0, 25), (Verbosity::Medium, 30.0, 60), (Verbosity::High, 70.0, 140)]
    {
        // All at once, and word by word.
        for streamed in [false, true] {
            let mut said = Vec::new();
            for talk in &talks {
                let pieces = if streamed { talk.split_inclusive(' ').collect() } else { vec![talk.as_str()] };
                let profile = Profile { verbosity, ..Profile::default() };
                let patience = Patience { filler: LONG, give_up: LONG };
                let parts = moves(profile, Reply::says(&pieces), Purpose::Reply, patience).await;
                let turn: String = texts(&parts).iter().map(|part| format!("{part} ")).collect();
                assert!(turn.trim().ends_with('.') && talk.starts_with(turn.trim()), "whole sentences: {turn}");
                said.push(word_count(&turn));
            }
            let mean = said.iter().sum::<usize>() as f64 / said.len() as f64;
            assert!((mean / target - 1.0).abs() <= 0.4, "{verbosity:?}: {mean:.1} words a turn: {said:?}");
            assert!(said.iter().all(|&words| words <= maximum), "{verbosity:?}: {said:?}");
            assert!((said[0] as f64 / target - 1.0).abs() <= 0.4, "{verbosity:?}, sentences of 11 words: {}", said[0]);
        }
    }
}

#[tokio::test]
async fn a_beginner_s_model_says_short_sentences_of_plain_words() {
    let facts = "number four hundred and twelve old mill road north in upper saint george";
    let traits = vec![("address".to_owned(), facts.to_owned())];
    let long = "I require assistance because my last bill was much higher than I expected, and nobody has told me why.";
    let check = async |purpose: Purpose, said: &str, fluency: FluencyLevel, expect: &[&str]| {
        let profile = Profile { traits: traits.clone(), fluency, ..Profile::default() };
        let patience = Patience { filler: LONG, give_up: LONG };
        let said = moves(profile, Reply::says(&[said]), purpose, patience).await;
        assert_eq!(texts(&said), expect);
    };
    let plain = "I need help. Because my last bill was much higher than I expected. And nobody has told me why.";
    check(Purpose::Reply, long, FluencyLevel::Beginner, &[plain]).await;
    check(Purpose::Reply, long, FluencyLevel::Intermediate, &[long]).await;
    check(Purpose::BargeIn, long, FluencyLevel::Beginner, &["I need help."]).await;
    let address = format!("I live at {facts}.");
    let kept = format!("I live at. {}.", facts.replacen('n', "N", 1));
    check(Purpose::Reply, &address, FluencyLevel::Beginner, &[&kept]).await;
}

#[tokio::test]
async fn tools_become_the_end_of_the_move() {
    let said = reply(Reply::says(&["Goodbye."]).calls(END_CALL, "{}")).await;
    assert_eq!((said[0].say.as_str(), said[0].then), ("Goodbye.", Then::Hangup));
    let said = reply(Reply::says(&[]).calls(STAY_SILENT, "")).await;
    assert_eq!((texts(&said), said[0].then), (vec![""], Then::StaySilent));
    let said = reply(Reply::says(&[]).calls(SEND_DTMF, r#"{"digits":"12x#"}"#)).await;
    assert_eq!(said[0].dtmf, "12#");
    let forbidden = Profile { allow_end_call: false, ..Profile::default() };
    let patience = Patience { filler: LONG, give_up: LONG };
    let said = moves(forbidden, Reply::says(&["Bye."]).calls(END_CALL, "{}"), Purpose::Reply, patience).await;
    assert_eq!(said[0].then, Then::Listen);
}

#[tokio::test]
async fn the_built_in_speaker_stands_in() {
    let check = async |answer: Reply| {
        let said = reply(answer).await;
        assert_eq!((texts(&said), &said[0].notes[..]), (vec!["I want help."], &["fallback_speaker"][..]));
    };
    check(Reply::status(500)).await;
    check(Reply::says(&[]).broken_off()).await;
    check(Reply::says(&[])).await;
    check(Reply::says(&["*nods*"])).await;
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_said_as_far_as_it_came_and_that_is_told() {
    let check = async |answer: Reply, expect: &[&str], notes: &[&str]| {
        let profile = Profile { intent: "I want help.".into(), ..Profile::default() };
        let patience = Patience { filler: LONG, give_up: Duration::from_millis(50) };
        let said = moves(profile, answer, Purpose::Reply, patience).await;
        assert_eq!((texts(&said), &said.last().expect("an end").notes[..]), (expect.to_vec(), notes));
    };
    let halves = ["My name is Maria.", "And my"];
    check(Reply::says(&["My name is Maria. And my"]).broken_off(), &halves, &["answer_broke_off"]).await;
    check(Reply::says(&["My name is Maria. And my"]).stall(), &halves, &["answer_broke_off"]).await;
    check(Reply::says(&["My name is Maria."]).broken_off(), &["My name is Maria."], &["answer_broke_off"]).await;
    check(Reply::says(&["My name is Maria. And my"]), &halves, &[]).await;
    check(Reply::says(&["*nods*"]).broken_off(), &["I want help."], &["fallback_speaker"]).await;
}

#[tokio::test]
async fn a_late_model_is_covered_and_then_replaced() {
    let profile = || Profile { intent: "I want help.".into(), ..Profile::default() };
    let patience = Patience { filler: AT_ONCE, give_up: Duration::from_millis(5) };
    let said = moves(profile(), Reply::says(&[]).stall(), Purpose::Reply, patience).await;
    assert_eq!(texts(&said), ["Hm, one moment.", "I want help."]);
    assert_eq!((&said[0].notes[..], &said[1].notes[..]), (&["late_first_token"][..], &["fallback_speaker"][..]));
    assert!(said[0].exact && !said[1].exact);

    let patience = Patience { filler: AT_ONCE, give_up: LONG };
    let said = moves(profile(), Reply::says(&["Here I am."]).with_delay(5), Purpose::Reply, patience).await;
    assert_eq!(texts(&said), ["Hm, one moment.", "Here I am."]);

    let patience = Patience { filler: LONG, give_up: Duration::from_millis(5) };
    let said = moves(profile(), Reply::says(&["One. Two"]).stall(), Purpose::Reply, patience).await;
    assert_eq!(texts(&said), ["One.", "Two"]);
}

/// Returns the words and notes of each part of a reply.
async fn turn(mind: &mut ModelMind) -> Vec<(String, Vec<&'static str>)> {
    let (out, mut moves) = mpsc::channel(32);
    mind.think(thought(Purpose::Reply), out).await;
    let mut said = Vec::new();
    while let Some(next) = moves.recv().await {
        said.push((next.say, next.notes));
    }
    said
}

fn mind(replies: Vec<Reply>, patience: Patience) -> ModelMind {
    let profile = Profile { intent: "I want help.".into(), ..Profile::default() };
    ModelMind::new(profile, Arc::new(ScriptedModel::new(replies)), Seed(1), patience)
}

#[tokio::test]
async fn a_model_that_was_late_has_no_more_than_the_time_for_its_first_words() {
    let hangs = || Reply::says(&[]).stall();
    let replies = vec![hangs(), hangs(), Reply::status(500), Reply::says(&["Here I am."]), hangs()];
    let mut mind = mind(replies, Patience { filler: AT_ONCE, give_up: Duration::from_millis(5) });
    let filler = || ("Hm, one moment.".to_owned(), vec!["late_first_token"]);
    let instead = |notes: &[&'static str]| ("I want help.".to_owned(), notes.to_vec());
    assert_eq!(turn(&mut mind).await, [filler(), instead(&["fallback_speaker"])]);
    assert_eq!(mind.speaker(), "template", "the model has said nothing");
    assert_eq!(turn(&mut mind).await, [instead(&["late_first_token", "fallback_speaker"])]);
    assert_eq!(turn(&mut mind).await, [instead(&["fallback_speaker"])], "it failed in time");
    assert_eq!(turn(&mut mind).await, [("Here I am.".to_owned(), vec![])]);
    assert_eq!(mind.speaker(), "mixed", "both have spoken");
    assert_eq!(turn(&mut mind).await, [filler(), instead(&["fallback_speaker"])], "it was in time before");
}

#[tokio::test]
async fn a_model_is_late_also_when_the_other_side_goes_on_meanwhile() {
    let hangs = || Reply::says(&[]).stall();
    let mut mind = mind(vec![hangs(), hangs()], Patience { filler: AT_ONCE, give_up: LONG });
    let (out, mut moves) = mpsc::channel(32);
    tokio::select! {
        biased;
        filler = moves.recv() => assert_eq!(filler.map(|part| part.say).as_deref(), Some("Hm, one moment.")),
        () = mind.think(thought(Purpose::Reply), out) => panic!("it hangs"),
    }
    let said = turn(&mut mind).await;
    assert_eq!(said, [("I want help.".to_owned(), vec!["late_first_token", "fallback_speaker"])]);
}

#[tokio::test]
async fn nobody_waits_long_to_cut_in() {
    for (purpose, expect) in [
        (Purpose::BargeIn, &["late_first_token", "fallback_speaker"][..]),
        (Purpose::Contextual { prompt: "The agent names a price.".into() }, &[]),
    ] {
        let patience = Patience { filler: AT_ONCE, give_up: LONG };
        let said = moves(Profile::default(), Reply::says(&[]).stall(), purpose, patience).await;
        assert_eq!((said.len(), &said[0].notes[..], said[0].say.is_empty()), (1, expect, expect.is_empty()));
    }
}

#[tokio::test]
async fn cutting_in_is_short_and_a_no_is_silent() {
    let check = async |purpose: Purpose, answer: &str, expect: &str| {
        let patience = Patience { filler: LONG, give_up: LONG };
        let said = moves(Profile::default(), Reply::says(&[answer]), purpose, patience).await;
        assert_eq!(texts(&said), [expect], "{answer}");
    };
    let asked = || Purpose::Contextual { prompt: "The agent names a price.".into() };
    check(asked(), "NO", "").await;
    check(asked(), "no.", "").await;
    check(asked(), "Wait, that is too much!", "Wait, that is too much!").await;
    check(Purpose::BargeIn, &"word ".repeat(15), &("word ".repeat(11) + "word.")).await;
}
