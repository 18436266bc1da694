//! A mind that asks a language model: its words go out sentence by sentence as they come. A late model is covered by a filler,
//! a silent or failing one by the built-in speaker. Once it was late it is waited for only as long as its first words may take,
//! and the built-in speaker answers instead of a filler, until it is in time again: the other side has gone on meanwhile.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringer_media::call::{Comparison, Move, Purpose, Then, Thought};
use ringer_media::seed::{Seed, Stream};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::markup::spoken;
use super::phrases::phrases;
use super::plain::manner;
use super::prompt::{self, END_CALL, SEND_DTMF, STAY_SILENT};
use super::template::{self, Template};
use super::text::{first_words, sentence_end, sentences, word_count};
use super::whole::Whole;
use super::{MIXED, Mind, Profile, meaning};
use crate::config::Words;
use crate::provider::{ChatPart, ChatRequest, Failure, Job, LanguageModel};

/// Words to cut in with: all that fit.
const CUT_IN: Words = Words { target: 12, maximum: 12 };
/// Digits of one move.
const DIGITS_MAX: usize = 32;
/// Note of a move that is said only as far as its answer had come.
const BROKE_OFF: &str = "answer_broke_off";
/// Longest text that is held while its sentence is not over.
const OPEN_BYTES_MAX: usize = 4096;

/// How long a model may take.
#[derive(Copy, Clone, Debug)]
pub(super) struct Patience {
    /// For its first words; then a filler is said.
    pub(super) filler: Duration,
    /// For its first words, and then for each next piece; then the built-in speaker answers, or the move ends.
    pub(super) give_up: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience { filler: Duration::from_millis(2500), give_up: Duration::from_secs(6) }
    }
}

impl Patience {
    fn whole(self) -> Waits {
        Waits { filler: self.filler, first: self.give_up, next: self.give_up }
    }

    /// With a model that was late, and where there is no answer to wait for: nothing is said meanwhile.
    fn short(self) -> Waits {
        Waits { filler: Duration::MAX, first: self.filler.min(self.give_up), next: self.give_up }
    }

    /// Of whoever speaks or writes so.
    pub(super) fn of(profile: &Profile) -> Patience {
        if profile.written { Patience::of_a_writer() } else { Patience::default() }
    }

    /// Nobody hears a writer think.
    pub(super) fn of_a_writer() -> Patience {
        Patience { filler: Duration::MAX, give_up: Duration::from_secs(30) }
    }
}

/// How long one answer is waited for.
#[derive(Copy, Clone, Debug)]
struct Waits {
    /// Until a filler is said.
    filler: Duration,
    /// For its first piece.
    first: Duration,
    /// For each next piece.
    next: Duration,
}

/// The first words of a call's model were late the last time that it was asked; known to all who ask it.
#[derive(Clone, Default)]
pub(super) struct Late(Arc<AtomicBool>);

impl Late {
    fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, late: bool) {
        self.0.store(late, Ordering::Relaxed);
    }
}

/// Who has spoken in a call so far; known to all minds of it.
#[derive(Clone, Default)]
pub(super) struct Spoken {
    model: Arc<AtomicBool>,
    built_in: Arc<AtomicBool>,
}

impl Spoken {
    /// The name of whoever has spoken; `model` also before anybody has.
    pub(super) fn name(&self, model: &dyn LanguageModel) -> String {
        match [&self.model, &self.built_in].map(|flag| flag.load(Ordering::Relaxed)) {
            [true, true] => MIXED.into(),
            [false, true] => template::NAME.into(),
            [_, false] => model.name(),
        }
    }
}

/// Asks a language model.
pub(super) struct ModelMind {
    profile: Profile,
    model: Arc<dyn LanguageModel>,
    template: Template,
    draw: Stream,
    patience: Patience,
    late: Late,
    spoken: Spoken,
}

impl ModelMind {
    pub(super) fn new(profile: Profile, model: Arc<dyn LanguageModel>, seed: Seed, patience: Patience) -> ModelMind {
        let (template, draw) = (Template::new(&profile, seed), seed.stream("model"));
        ModelMind { profile, model, template, draw, patience, late: Late::default(), spoken: Spoken::default() }
    }

    /// What is known of the model from other minds of the same call.
    pub(super) fn knowing(self, late: &Late) -> ModelMind {
        ModelMind { late: late.clone(), ..self }
    }

    /// Notes there who speaks.
    pub(super) fn noting(self, spoken: &Spoken) -> ModelMind {
        ModelMind { spoken: spoken.clone(), ..self }
    }

    async fn answer(&mut self, thought: Thought, out: mpsc::Sender<Move>) {
        if let (Purpose::Opening, Some(first)) = (&thought.purpose, &self.profile.first_message) {
            let _ = out.send(super::exactly(first, &self.profile)).await;
            return;
        }
        let request = prompt::request(&self.profile, &thought, u64::from(self.draw.bits()));
        let length = match thought.purpose {
            Purpose::Opening | Purpose::Reply | Purpose::GoOn => self.profile.words(),
            Purpose::CutIn | Purpose::Contextual { .. } | Purpose::StillThere => &CUT_IN,
        };
        let contextual = matches!(thought.purpose, Purpose::Contextual { .. });
        let cuts_in = matches!(thought.purpose, Purpose::CutIn | Purpose::Contextual { .. });
        let waits = if self.late.get() || cuts_in { self.patience.short() } else { self.patience.whole() };
        let mut speech = Speech::new(&self.profile, length, contextual, out);
        let end = listen(&*self.model, &request, waits, &mut speech, &self.late).await;
        if speech.said_or_did() || contextual {
            self.spoken.model.fetch_or(speech.said_or_did(), Ordering::Relaxed);
            return speech.close(end).await;
        }
        let mut instead = self.template.next(&thought);
        if end == End::InVain && !speech.covered {
            instead.notes.push("late_first_token");
        }
        instead.notes.push("fallback_speaker");
        self.spoken.built_in.store(true, Ordering::Relaxed);
        let _ = speech.out.send(instead).await;
    }
}

impl Mind for ModelMind {
    fn think<'a>(&'a mut self, thought: Thought, out: mpsc::Sender<Move>) -> Job<'a, ()> {
        Box::pin(self.answer(thought, out))
    }

    fn speak(&mut self, language: &str) {
        language.clone_into(&mut self.profile.language);
        self.template.speak(language);
    }

    fn compare(&mut self, comparison: Comparison) -> Job<'_, Result<Option<usize>, Failure>> {
        Box::pin(async move {
            let told = timeout(self.patience.give_up, meaning::compare(&*self.model, &comparison)).await;
            told.unwrap_or_else(|_| Err(meaning::not_told()))
        })
    }

    fn speaker(&self) -> String {
        self.spoken.name(&*self.model)
    }
}

/// How an answer came to its end.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum End {
    /// By itself.
    Whole,
    /// The model failed.
    Failed,
    /// It was not waited for any longer.
    InVain,
}

/// Takes the model's answer until it is over, fails, or is too late. `late` learns whether its first words are, also when the future
/// is dropped before they come.
async fn listen(
    model: &dyn LanguageModel,
    request: &ChatRequest,
    waits: Waits,
    speech: &mut Speech<'_>,
    late: &Late,
) -> End {
    let (sender, mut parts) = mpsc::channel(64);
    let mut chat = model.chat(request, sender);
    let mut filler = pin!(sleep(waits.filler));
    let mut give_up = pin!(sleep(waits.first));
    let (mut begun, mut closed, mut over) = (false, false, None);
    loop {
        if let (true, Some(end)) = (closed, over) {
            return end;
        }
        tokio::select! {
            biased;
            part = parts.recv(), if !closed => match part {
                Some(part) => {
                    begun = true;
                    late.set(false);
                    give_up.set(sleep(waits.next));
                    speech.take(part).await;
                }
                None => closed = true,
            },
            result = &mut chat, if over.is_none() => over = Some(if result.is_ok() { End::Whole } else { End::Failed }),
            () = &mut filler, if !begun && !speech.covered => {
                late.set(true);
                speech.cover().await;
            }
            () = &mut give_up => {
                late.set(late.get() || !begun);
                return End::InVain;
            }
        }
    }
}

/// A move on its way out.
struct Speech<'a> {
    profile: &'a Profile,
    whole: Whole<'a>,
    out: mpsc::Sender<Move>,
    open: String,
    words: usize,
    length: &'a Words,
    /// Nothing more is said.
    full: bool,
    /// A filler was said.
    covered: bool,
    /// A `no` says nothing at all; the words are one short sentence, so they go out at the end.
    contextual: bool,
    then: Option<Then>,
    dtmf: String,
}

impl<'a> Speech<'a> {
    fn new(profile: &'a Profile, length: &'a Words, contextual: bool, out: mpsc::Sender<Move>) -> Speech<'a> {
        Speech {
            profile,
            whole: Whole::of(profile),
            out,
            open: String::new(),
            words: 0,
            length,
            full: false,
            covered: false,
            contextual,
            then: None,
            dtmf: String::new(),
        }
    }

    fn said_or_did(&self) -> bool {
        self.words > 0
            || self.then.is_some()
            || !self.dtmf.is_empty()
            || word_count(&spoken(&self.open, &self.whole)) > 0
    }

    async fn cover(&mut self) {
        self.covered = true;
        let notes = vec!["late_first_token"];
        let say = phrases(&self.profile.language).moment.into();
        let filler = Move { say, exact: true, more: true, notes, ..Move::default() };
        let _ = self.out.send(filler).await;
    }

    async fn take(&mut self, part: ChatPart) {
        match part {
            ChatPart::Text(text) if !self.full && self.open.len() + text.len() <= OPEN_BYTES_MAX => {
                self.open.push_str(&text);
                while !self.contextual
                    && let Some(end) = sentence_end(&self.open)
                {
                    let rest = self.open.split_off(end);
                    let sentence = std::mem::replace(&mut self.open, rest);
                    self.say(&sentence, Move { more: true, ..Move::default() }).await;
                }
            }
            ChatPart::Text(_) => {}
            ChatPart::Tool { name, arguments } => self.call(&name, &arguments),
        }
    }

    fn call(&mut self, name: &str, arguments: &str) {
        match name {
            END_CALL if self.profile.allow_end_call => self.then = Some(Then::Hangup),
            STAY_SILENT if self.profile.allow_silence && self.then.is_none() => self.then = Some(Then::StaySilent),
            SEND_DTMF if self.profile.allow_dtmf => {
                let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
                let key = |c: &char| c.is_ascii_digit() || "*#ABCD".contains(*c);
                let digits = arguments["digits"].as_str().unwrap_or_default().chars().filter(key);
                self.dtmf.extend(digits.take(DIGITS_MAX - self.dtmf.len()));
            }
            _ => {}
        }
    }

    /// Sends what is said of a sentence with `with`, or nothing when that is nothing and `with` is not the end.
    async fn say(&mut self, sentence: &str, with: Move) {
        let say = self.fitting(sentence);
        if !say.is_empty() || !with.more {
            let _ = self.out.send(Move { say, ..with }).await;
        }
    }

    /// What is said of a sentence, in the manner of this speaker: a turn ends at the sentence end that is nearest to its
    /// target. Only a first sentence that is longer than a turn may be is cut.
    fn fitting(&mut self, sentence: &str) -> String {
        let (target, maximum) = (self.length.target as usize, self.length.maximum as usize);
        let mut said = Vec::new();
        for mut sentence in sentences(&manner(self.profile, &spoken(sentence, &self.whole))) {
            if self.words == 0 {
                sentence = first_words(&sentence, maximum, &self.whole);
            }
            let words = self.words + word_count(&sentence);
            let is_nearer = words <= maximum && words.abs_diff(target) < self.words.abs_diff(target);
            if self.full || !(self.words == 0 || is_nearer) {
                (self.full, self.open) = (true, String::new());
                break;
            }
            self.words = words;
            said.push(sentence);
        }
        said.join(" ")
    }

    async fn close(mut self, end: End) {
        let breaks_off = end != End::Whole && self.said_or_did();
        let notes = if breaks_off { vec![BROKE_OFF] } else { Vec::new() };
        let mut rest = std::mem::take(&mut self.open);
        if self.contextual && is_no(&rest) {
            rest.clear();
        }
        let (dtmf, then) = (std::mem::take(&mut self.dtmf), self.then.unwrap_or_default());
        self.say(&rest, Move { dtmf, then, notes, ..Move::default() }).await;
    }
}

/// `No.`, `NO`, or nothing.
fn is_no(answer: &str) -> bool {
    let answer = answer.trim().trim_end_matches(['.', '!']).trim_matches('"');
    answer.is_empty() || answer.eq_ignore_ascii_case("no")
}

#[cfg(test)]
mod tests {
    use ringer_media::call::Line;

    use super::*;
    use crate::human::{FluencyLevel, Verbosity};
    use crate::provider::fake::{Reply, ScriptedModel};

    const LONG: Duration = Duration::from_secs(600);
    const AT_ONCE: Duration = Duration::ZERO;

    fn thought(purpose: Purpose) -> Thought {
        let line = Line { other: true, text: "hello".into(), digits: Arc::default(), interrupted: false };
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
                assert!(
                    (said[0] as f64 / target - 1.0).abs() <= 0.4,
                    "{verbosity:?}, sentences of 11 words: {}",
                    said[0]
                );
            }
        }
    }

    #[tokio::test]
    async fn a_beginner_s_model_says_short_sentences_of_plain_words() {
        let facts = "number four hundred and twelve old mill road north in upper saint george";
        let traits = vec![("address".to_owned(), facts.to_owned())];
        let long =
            "I require assistance because my last bill was much higher than I expected, and nobody has told me why.";
        let check = async |purpose: Purpose, said: &str, fluency: FluencyLevel, expect: &[&str]| {
            let profile = Profile { traits: traits.clone(), fluency, ..Profile::default() };
            let patience = Patience { filler: LONG, give_up: LONG };
            let said = moves(profile, Reply::says(&[said]), purpose, patience).await;
            assert_eq!(texts(&said), expect);
        };
        let plain = "I need help. Because my last bill was much higher than I expected. And nobody has told me why.";
        check(Purpose::Reply, long, FluencyLevel::Beginner, &[plain]).await;
        check(Purpose::Reply, long, FluencyLevel::Intermediate, &[long]).await;
        check(Purpose::CutIn, long, FluencyLevel::Beginner, &["I need help."]).await;
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
        check(Reply::says(&[]).cut()).await;
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
        check(Reply::says(&["My name is Maria. And my"]).cut(), &halves, &["answer_broke_off"]).await;
        check(Reply::says(&["My name is Maria. And my"]).stall(), &halves, &["answer_broke_off"]).await;
        check(Reply::says(&["My name is Maria."]).cut(), &["My name is Maria."], &["answer_broke_off"]).await;
        check(Reply::says(&["My name is Maria. And my"]), &halves, &[]).await;
        check(Reply::says(&["*nods*"]).cut(), &["I want help."], &["fallback_speaker"]).await;
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
        let said = moves(profile(), Reply::says(&["Here I am."]).delayed(5), Purpose::Reply, patience).await;
        assert_eq!(texts(&said), ["Hm, one moment.", "Here I am."]);

        let patience = Patience { filler: LONG, give_up: Duration::from_millis(5) };
        let said = moves(profile(), Reply::says(&["One. Two"]).stall(), Purpose::Reply, patience).await;
        assert_eq!(texts(&said), ["One.", "Two"]);
    }

    /// The words and notes of each part of a reply.
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
            (Purpose::CutIn, &["late_first_token", "fallback_speaker"][..]),
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
        check(Purpose::CutIn, &"word ".repeat(15), &("word ".repeat(11) + "word.")).await;
    }
}
