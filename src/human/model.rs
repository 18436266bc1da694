//! A mind that asks a language model; its words are sent sentence by sentence as they arrive.
//!
//! A late model is covered by a filler, a silent or failing one by the built-in speaker. After it was late, it is
//! waited for only as long as its first words may take. The built-in speaker then answers instead of a filler, until
//! the model is in time again: the agent has gone on meanwhile.
//!
//! After it was late it has 2.5 s. With 6 s for each turn the agent had answered the filler each time, for 46 s of
//! fillers.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringer_base::config::Words;
use ringer_media::call::{Comparison, Move, Purpose, Then, Thought};
use ringer_media::seed::{Seed, Stream};
use ringer_provider::{ChatPart, ChatRequest, Failure, Job, LanguageModel, complete};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::frequent::rare;
use super::markup::spoken;
use super::phrases::phrases;
use super::plain::{frequent_words, manner};
use super::prompt::{self, END_CALL, SEND_DTMF, STAY_SILENT};
use super::template::{self, Template};
use super::text::{first_words, sentence_end, sentences, word_count};
use super::whole::Whole;
use super::{FluencyLevel, MIXED, Mind, Profile, meaning};

/// Words of an interruption: all that fit.
const CUT_IN: Words = Words { target: 12, maximum: 12 };
/// Most digits of one move.
const DIGITS_MAX: usize = 32;
/// Note of a move whose answer broke off, so that only its beginning is said.
const BROKE_OFF: &str = "answer_broke_off";
/// Note of a move whose answer came to the limit of its tokens.
const OUT_OF_TOKENS: &str = "answer_out_of_tokens";
/// Note of a move with words that a beginner does not know, and that the model does not replace.
const RARE_WORDS: &str = "rare_words";
/// Times that a sentence is worded anew without the words that a beginner does not know.
const REWORDINGS: usize = 2;
/// Longest unfinished sentence that is held, in bytes.
const OPEN_BYTES_MAX: usize = 4096;

/// Time limits of a model.
#[derive(Copy, Clone, Debug)]
pub(super) struct Patience {
    /// Limit of its first words; then a filler is said.
    pub(super) filler: Duration,
    /// Limit of its first words, and then of each next piece; then the built-in speaker answers, or the move ends.
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

    /// Returns the waits for a model that was late, or where nobody waits for an answer: nothing is said meanwhile.
    fn short(self) -> Waits {
        Waits { filler: Duration::MAX, first: self.filler.min(self.give_up), next: self.give_up }
    }

    /// Returns the time limits of a caller that speaks or writes as `profile` says.
    pub(super) fn of(profile: &Profile) -> Patience {
        if profile.written { Patience::of_a_writer() } else { Patience::default() }
    }

    /// Returns the time limits of a writer, who needs no filler.
    pub(super) fn of_a_writer() -> Patience {
        Patience { filler: Duration::MAX, give_up: Duration::from_secs(30) }
    }
}

/// Waits for one answer.
#[derive(Copy, Clone, Debug)]
struct Waits {
    /// Time until a filler is said.
    filler: Duration,
    /// Time limit of its first piece.
    first: Duration,
    /// Time limit of each next piece.
    next: Duration,
}

/// True while the first words of a call's model were late the last time; shared by all who ask it.
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

/// Record of the speakers of a call so far, shared by all minds of it.
#[derive(Clone, Default)]
pub(super) struct Spoken {
    model: Arc<AtomicBool>,
    built_in: Arc<AtomicBool>,
}

impl Spoken {
    /// Returns the name of the speaker; that of `model` also before anybody has spoken.
    pub(super) fn name(&self, model: &dyn LanguageModel) -> String {
        match [&self.model, &self.built_in].map(|flag| flag.load(Ordering::Relaxed)) {
            [true, true] => MIXED.into(),
            [false, true] => template::NAME.into(),
            [_, false] => model.name(),
        }
    }
}

/// A mind that asks a language model.
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

    /// Returns the mind with the knowledge of other minds of the same call about the model's lateness.
    pub(super) fn knowing(self, late: &Late) -> ModelMind {
        ModelMind { late: late.clone(), ..self }
    }

    /// Returns the mind with a shared record of the speakers.
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
            Purpose::BargeIn | Purpose::Contextual { .. } | Purpose::StillThere => &CUT_IN,
        };
        let contextual = matches!(thought.purpose, Purpose::Contextual { .. });
        let cuts_in = matches!(thought.purpose, Purpose::BargeIn | Purpose::Contextual { .. });
        // An opening may be generated while it rings, when nobody waits. So no filler comes before it, and its lateness
        // says nothing about later turns.
        let opens = thought.purpose == Purpose::Opening;
        let waits = match () {
            () if opens => Waits { filler: Duration::MAX, ..self.patience.whole() },
            () if self.late.get() || cuts_in => self.patience.short(),
            () => self.patience.whole(),
        };
        let late = if opens { Late::default() } else { self.late.clone() };
        let mut speech = Speech::new(&self.profile, length, contextual, out);
        speech.editor = self.profile.is_limited().then_some((&*self.model, waits.next));
        let end = listen(&*self.model, &request, waits, &mut speech, &late).await;
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

    fn recall(&mut self, thought: &Thought) {
        if thought.purpose != Purpose::Opening || self.profile.first_message.is_none() {
            self.draw.bits();
        }
    }

    /// Its first words, where they are given: the model makes the others.
    fn known_texts(&self) -> Vec<String> {
        self.profile.first_message.iter().map(|text| super::exactly(text, &self.profile).say).collect()
    }

    fn speak(&mut self, language: &str) {
        language.clone_into(&mut self.profile.language);
        self.template.speak(language);
    }

    fn compare(&mut self, comparison: Comparison) -> Job<'_, Result<Option<usize>, Failure>> {
        Box::pin(async move {
            let compared = timeout(self.patience.give_up, meaning::compare(&*self.model, &comparison)).await;
            compared.unwrap_or_else(|_| Err(meaning::not_told()))
        })
    }

    fn speaker(&self) -> String {
        self.spoken.name(&*self.model)
    }
}

/// End of an answer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum End {
    /// The answer is complete.
    Whole,
    /// The model has failed.
    Failed,
    /// The answer was too late.
    InVain,
}

/// Reads the model's answer until it is complete, fails, or is too late.
///
/// `late` records whether its first words are late, also when the future is dropped before they arrive.
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
                    // A sentence that is worded anew takes its own time.
                    speech.take(part).await;
                    give_up.set(sleep(waits.next));
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

/// A move while it is sent.
struct Speech<'a> {
    profile: &'a Profile,
    whole: Whole<'a>,
    out: mpsc::Sender<Move>,
    open: String,
    words: usize,
    length: &'a Words,
    /// True: nothing more is said.
    full: bool,
    /// True: a filler was said.
    covered: bool,
    /// True: the answer may be `no`, which says nothing. Its words are one short sentence and are sent at the end.
    contextual: bool,
    /// True: the answer came to the limit of its tokens.
    is_cut: bool,
    then: Option<Then>,
    dtmf: String,
    /// Model that replaces a beginner's rare words, and the time that it has; `None`: all words are said.
    editor: Option<(&'a dyn LanguageModel, Duration)>,
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
            is_cut: false,
            then: None,
            dtmf: String::new(),
            editor: None,
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
            // Words that would not have been said are not missing.
            ChatPart::Cut => self.is_cut = !self.full,
        }
    }

    fn call(&mut self, name: &str, arguments: &str) {
        match name {
            END_CALL if self.profile.allow_end_call => self.then = Some(Then::Hangup),
            STAY_SILENT if self.profile.allow_silence && self.then.is_none() => self.then = Some(Then::StaySilent),
            SEND_DTMF if self.profile.allow_dtmf => {
                let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
                let is_digit = |c: &char| c.is_ascii_digit() || "*#ABCD".contains(*c);
                let digits = arguments["digits"].as_str().unwrap_or_default().chars().filter(is_digit);
                self.dtmf.extend(digits.take(DIGITS_MAX - self.dtmf.len()));
            }
            _ => {}
        }
    }

    /// Sends the spoken part of a sentence with `with`; sends nothing when that part is empty and `with` is not the
    /// end.
    async fn say(&mut self, sentence: &str, mut with: Move) {
        let sentence = self.reword(sentence, &mut with.notes).await;
        let say = self.fitting(&sentence);
        if !say.is_empty() || !with.more {
            let _ = self.out.send(Move { say, ..with }).await;
        }
    }

    /// Returns a sentence without words that a beginner does not know, as far as the model finds others.
    async fn reword(&self, sentence: &str, notes: &mut Vec<&'static str>) -> String {
        let Some((model, limit)) = self.editor.filter(|_| !self.full) else { return sentence.to_owned() };
        let mut said = frequent_words(self.profile, &spoken(sentence, &self.whole));
        let mut unknown = rare(self.profile, &said);
        for _ in 0..REWORDINGS {
            if unknown.is_empty() {
                break;
            }
            let request = prompt::rewording(self.profile, &said, &unknown);
            let Ok(Ok(answer)) = timeout(limit, complete(model, &request)).await else { break };
            let answer = spoken(&answer, &self.whole);
            let left = rare(self.profile, &answer);
            if word_count(&answer) > 0 && left.len() < unknown.len() {
                (said, unknown) = (answer, left);
            }
        }
        if !unknown.is_empty() && !notes.contains(&RARE_WORDS) {
            notes.push(RARE_WORDS);
        }
        said
    }

    /// Returns the spoken part of a sentence, at this speaker's level of fluency.
    ///
    /// A turn ends at the sentence end that is nearest to its target. Only a first sentence longer than the maximum is
    /// cut.
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
        let mut notes = if breaks_off { vec![BROKE_OFF] } else { Vec::new() };
        notes.extend((self.is_cut && self.said_or_did()).then_some(OUT_OF_TOKENS));
        let mut rest = std::mem::take(&mut self.open);
        if self.contextual && is_no(&rest) {
            rest.clear();
        }
        let (dtmf, then) = (std::mem::take(&mut self.dtmf), self.then.unwrap_or_default());
        self.say(&rest, Move { dtmf, then, notes, ..Move::default() }).await;
    }
}

impl Profile {
    /// True for a beginner whose frequent words are known.
    fn is_limited(&self) -> bool {
        self.fluency == FluencyLevel::Beginner && super::frequent::has_list(&self.language)
    }
}

/// True for `No.`, `NO`, or an empty answer.
fn is_no(answer: &str) -> bool {
    let answer = answer.trim().trim_end_matches(['.', '!']).trim_matches('"');
    answer.is_empty() || answer.eq_ignore_ascii_case("no")
}

#[cfg(test)]
mod tests;
