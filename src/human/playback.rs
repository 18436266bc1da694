//! A mind that plays steps in order: its own when it has the turn, the agent's by hearing one whole turn each. Other
//! purposes (interrupting, asking whether somebody is still there) are left to the mind behind it.

use std::sync::Arc;

use ringer_media::call::{Comparison, ConversationLine, Move, Purpose, Then, Thought, TimedBargeIn, contains_phrase};
use ringer_media::seed::Seed;
use ringer_provider::{Failure, Job, LanguageModel};
use tokio::sync::mpsc;

use super::model::{Late, ModelMind, Patience, Spoken};
use super::text::{is_alike, plain_words};
use super::{Mind, Profile};

/// One step of a playback.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// This side says exactly this.
    Say(String),
    /// This side says something of this meaning; without a language model, the text itself.
    Mean(String),
    /// This side presses digits.
    Digits(String),
    /// This side is silent for this many milliseconds, whatever the other side says.
    SilenceMs(u32),
    /// The other side takes a turn.
    Hear,
    /// This side waits in silence for the other side, for this many milliseconds.
    WaitMs(u32),
    /// This side interrupts the other side's next turn; if that turn ends before, it says the words as a turn.
    BargeIn(TimedBargeIn),
}

impl Step {
    /// Returns the words and the time of an interruption.
    fn barge_in(&self) -> Option<&TimedBargeIn> {
        match self {
            Step::BargeIn(barge_in) => Some(barge_in),
            _ => None,
        }
    }
}

/// Words that are tested in a turn of the agent during the call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// Phrases that must all occur, as whole words.
    pub contains: Vec<String>,
    /// Phrases of which none may occur.
    pub excludes: Vec<String>,
    /// Text that the turn must resemble.
    pub exact: Option<String>,
}

impl Wanted {
    /// True if `heard` certainly misses the wanted words; a turn without words misses nothing.
    fn is_missed_by(&self, heard: &str) -> bool {
        let has = |phrase: &String| contains_phrase(heard, phrase);
        let differs = |wanted: &String| !is_alike(heard, wanted);
        !heard.trim().is_empty()
            && (!self.contains.iter().all(has)
                || self.excludes.iter().any(has)
                || self.exact.as_ref().is_some_and(differs))
    }
}

/// A move that was sent and whose words may or may not have been said.
struct Pending {
    /// Number of lines in the conversation when it was sent.
    lines: usize,
    /// Words of the move; `None` when they are not known before they are said.
    words: Option<Vec<String>>,
    digits: String,
    /// Index of the next step after the agent's turn; `begun`: after the words have begun; `done`: after all is done.
    heard: usize,
    begun: usize,
    done: usize,
}

/// A mind that plays the steps of its profile.
pub(super) struct PlaybackMind {
    profile: Profile,
    model: Option<Arc<dyn LanguageModel>>,
    seed: Seed,
    behind: Box<dyn Mind>,
    late: Late,
    spoken: Spoken,
    at: usize,
    pending: Option<Pending>,
    /// Number of lines in the conversation when words of an interruption were prepared.
    armed_at: Option<usize>,
}

impl PlaybackMind {
    pub(super) fn new(profile: Profile, model: Option<Arc<dyn LanguageModel>>, seed: Seed) -> PlaybackMind {
        let free = Profile { playback: Vec::new(), ..profile.clone() };
        let spoken = Spoken::default();
        // The call knows the words of a first step that interrupts from its beginning.
        let armed_at = matches!(profile.playback.first(), Some(Step::BargeIn(_))).then_some(0);
        let behind = super::free_mind(free, model.clone(), seed, &spoken);
        PlaybackMind { profile, model, seed, behind, late: Late::default(), spoken, at: 0, pending: None, armed_at }
    }

    /// Advances over the steps that really happened since the last move.
    fn settle(&mut self, thought: &Thought) {
        let Some(pending) = self.pending.take() else { return };
        let later = thought.history.get(pending.lines..).unwrap_or_default();
        let own = later.iter().filter(|line| !line.other).find(|line| pending.is_begun_by(line));
        self.at = match own {
            _ if thought.purpose == Purpose::GoOn => pending.done,
            Some(line) if line.interrupted => pending.begun,
            Some(_) => pending.done,
            None if !later.is_empty() && pending.is_empty() => pending.done,
            None if !later.is_empty() => pending.heard,
            // The same turn goes on: the move never happened.
            None => self.at,
        };
    }

    /// Returns the next move; for a step whose words a model finds, also that step's meaning.
    fn next(&mut self, thought: &Thought) -> (Move, Option<String>) {
        self.settle(thought);
        let steps = &self.profile.playback;
        let answers = thought.purpose == Purpose::Reply && thought.history.last().is_some_and(|line| line.other);
        let mut at = self.at;
        // Words that interrupted, or for which there was no turn to interrupt.
        if let Some(Step::BargeIn(TimedBargeIn { say, .. })) = steps.get(at)
            && self.armed_at.is_some_and(|lines| is_said(thought.history.get(lines..).unwrap_or_default(), say))
        {
            at += 1;
        }
        let heard_turn = thought.history.iter().rfind(|line| line.other).map(|line| line.text.to_string());
        let is_missed = |at: usize| {
            let wanted = self.profile.wanted.get(&at);
            wanted.zip(heard_turn.as_ref()).is_some_and(|(wanted, heard)| wanted.is_missed_by(heard))
        };
        let hears = steps.get(at) == Some(&Step::Hear);
        if answers && (hears && is_missed(at) || at == steps.len()) {
            return (Move { then: Then::Finish, ..Move::default() }, None);
        }
        if answers && hears {
            at += 1;
        }
        let heard = at;
        let (mut said, mut exact, mut digits, mut meant) = (Vec::new(), true, String::new(), None);
        while let Some(step) = steps.get(at) {
            match step {
                Step::Say(text) if digits.is_empty() => said.push(text.as_str()),
                Step::Mean(text) if digits.is_empty() && self.model.is_none() => {
                    said.push(text.as_str());
                    exact = false;
                }
                Step::Mean(text) if digits.is_empty() && said.is_empty() => meant = Some(text.clone()),
                Step::Digits(more) => digits.push_str(more),
                // The interruption was prepared, and the other side's turn ended too soon.
                Step::BargeIn(TimedBargeIn { say, .. })
                    if self.armed_at.is_some() && at == self.at && digits.is_empty() =>
                {
                    said.push(say.as_str());
                }
                _ => break,
            }
            at += 1;
            if meant.is_some() {
                break;
            }
        }
        let begun = at;
        let lines = thought.history.len();
        let then = match steps.get(at) {
            Some(Step::SilenceMs(ms) | Step::WaitMs(ms)) => {
                at += 1;
                Then::Pause { ms: *ms }
            }
            Some(Step::Hear | Step::BargeIn(_)) => Then::Listen,
            Some(_) => Then::Pause { ms: 0 },
            // The answer to last words of this side is still heard; digits and a wait end the script.
            None if !matches!(steps.last(), Some(Step::Say(_) | Step::Mean(_) | Step::BargeIn(_)) | None) => {
                Then::Finish
            }
            None => Then::Listen,
        };
        let say = said.join(" ");
        // Fillers may come between words that are not exact.
        let words = (exact && meant.is_none()).then(|| plain_words(&say));
        let cut = steps.get(at).and_then(Step::barge_in).cloned();
        self.armed_at = cut.as_ref().map(|_| lines);
        self.pending = Some(Pending { lines, words, digits: digits.clone(), heard, begun, done: at });
        (Move { say, exact, dtmf: digits, then, cut, ..Move::default() }, meant)
    }

    async fn play(&mut self, thought: Thought, out: mpsc::Sender<Move>) {
        match thought.purpose {
            Purpose::Opening | Purpose::Reply | Purpose::GoOn => {}
            Purpose::BargeIn | Purpose::Contextual { .. } | Purpose::StillThere => {
                return self.behind.think(thought, out).await;
            }
        }
        let (last, meant) = self.next(&thought);
        let Some(intent) = meant else {
            let _ = out.send(last).await;
            return;
        };
        let profile = Profile {
            playback: Vec::new(),
            intent,
            allow_end_call: false,
            allow_silence: false,
            allow_dtmf: false,
            ..self.profile.clone()
        };
        let seed = Seed::of(&format!("{} step {}", self.seed.0, self.at));
        let Some(model) = self.model.clone() else { return };
        let patience = Patience::of(&profile);
        let mut voice = ModelMind::new(profile, model, seed, patience).knowing(&self.late).noting(&self.spoken);
        let (parts, mut moves) = mpsc::channel(8);
        let thought = Thought { purpose: Purpose::Reply, ..thought };
        tokio::join!(voice.think(thought, parts), async {
            while let Some(part) = moves.recv().await {
                let ends = !part.more;
                let dtmf = if ends { last.dtmf.clone() } else { String::new() };
                let then = if ends { last.then } else { Then::Listen };
                let cut = if ends { last.cut.clone() } else { None };
                let _ = out.send(Move { dtmf, then, cut, ..part }).await;
            }
        });
    }
}

/// True if the words, or their beginning, were said in these lines.
fn is_said(lines: &[ConversationLine], words: &str) -> bool {
    let words = plain_words(words);
    let begins = |line: &ConversationLine| {
        let said = plain_words(&line.text);
        !said.is_empty() && words.starts_with(&said)
    };
    lines.iter().filter(|line| !line.other).any(begins)
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.digits.is_empty() && self.words.as_ref().is_some_and(Vec::is_empty)
    }

    /// True if the line is the beginning of this move, and not a re-prompt.
    fn is_begun_by(&self, line: &ConversationLine) -> bool {
        if !line.digits.is_empty() {
            return !self.digits.is_empty() && self.digits.starts_with(&*line.digits);
        }
        let said = plain_words(&line.text);
        match &self.words {
            Some(words) => !words.is_empty() && !said.is_empty() && words.starts_with(&said),
            None => !said.is_empty(),
        }
    }
}

impl Mind for PlaybackMind {
    fn speak(&mut self, language: &str) {
        language.clone_into(&mut self.profile.language);
        self.behind.speak(language);
    }

    fn think<'a>(&'a mut self, thought: Thought, out: mpsc::Sender<Move>) -> Job<'a, ()> {
        Box::pin(self.play(thought, out))
    }

    fn recall(&mut self, thought: &Thought) {
        match thought.purpose {
            Purpose::Opening | Purpose::Reply | Purpose::GoOn => drop(self.next(thought)),
            Purpose::BargeIn | Purpose::Contextual { .. } | Purpose::StillThere => self.behind.recall(thought),
        }
    }

    fn compare(&mut self, comparison: Comparison) -> Job<'_, Result<Option<usize>, Failure>> {
        self.behind.compare(comparison)
    }

    fn known_texts(&self) -> Vec<String> {
        let words = |step: &Step| match step {
            Step::Say(text) => Some(text.clone()),
            Step::Mean(text) => Some(text.clone()).filter(|_| self.model.is_none()),
            Step::BargeIn(barge_in) => Some(barge_in.say.clone()),
            _ => None,
        };
        self.profile.playback.iter().filter_map(words).collect()
    }

    fn speaker(&self) -> String {
        self.behind.speaker()
    }
}

#[cfg(test)]
mod tests {
    use ringer_provider::testing::{Reply, ScriptedModel};

    use super::*;

    fn line(other: bool, text: &str, interrupted: bool) -> ConversationLine {
        ConversationLine { other, text: text.into(), digits: Arc::default(), interrupted }
    }

    fn mind(playback: Vec<Step>, model: Option<Arc<dyn LanguageModel>>) -> PlaybackMind {
        PlaybackMind::new(Profile { playback, ..Profile::default() }, model, Seed(1))
    }

    async fn next(mind: &mut PlaybackMind, purpose: Purpose, history: &[ConversationLine]) -> Vec<Move> {
        let (out, mut moves) = mpsc::channel(16);
        mind.think(Thought { purpose, history: history.to_vec(), unsaid: None }, out).await;
        let mut all = Vec::new();
        while let Some(part) = moves.recv().await {
            all.push(part);
        }
        all
    }

    fn say(text: &str) -> Step {
        Step::Say(text.into())
    }

    #[tokio::test]
    async fn a_mind_that_is_made_anew_goes_on_where_the_first_one_was() {
        let steps = || vec![say("One."), Step::Hear, say("Two."), Step::Hear, say("Three.")];
        let mut history = Vec::new();
        let mut thoughts = Vec::new();
        for expect in ["One.", "Two.", "Three."] {
            let mut anew = mind(steps(), None);
            thoughts.iter().for_each(|thought| anew.recall(thought));
            let purpose = if history.is_empty() { Purpose::Opening } else { Purpose::Reply };
            thoughts.push(Thought { purpose: purpose.clone(), history: history.clone(), unsaid: None });
            assert_eq!(next(&mut anew, purpose, &history).await[0].say, expect);
            history.extend([line(false, expect, false), line(true, "and then?", false)]);
        }
    }

    #[tokio::test]
    async fn a_step_that_was_cut_off_was_taken_and_what_followed_it_in_the_move_comes_later() {
        let mut mind = mind(vec![say("I want help now."), Step::SilenceMs(3000), say("Hello?"), Step::Hear], None);
        let mut history = vec![line(true, "hi", false)];
        let first = next(&mut mind, Purpose::Reply, &history).await;
        assert_eq!((first[0].say.as_str(), first[0].then), ("I want help now.", Then::Pause { ms: 3000 }));
        history.extend([line(false, "I want", true), line(true, "sorry", false)]);
        let second = next(&mut mind, Purpose::Reply, &history).await;
        assert_eq!((second[0].say.as_str(), second[0].then), ("", Then::Pause { ms: 3000 }));
        let third = next(&mut mind, Purpose::GoOn, &history).await;
        assert_eq!((third[0].say.as_str(), third[0].then), ("Hello?", Then::Listen));
        // A re-prompt is none of its words.
        history.extend([line(false, "Are you still there?", false), line(true, "yes", false)]);
        let again = next(&mut mind, Purpose::Reply, &history).await;
        assert_eq!((again[0].say.as_str(), again[0].then), ("Hello?", Then::Listen));
        history.extend([line(false, "Hello?", false), line(true, "here", false)]);
        assert_eq!(next(&mut mind, Purpose::Reply, &history).await[0].then, Then::Finish);
    }

    #[tokio::test]
    async fn the_agent_s_steps_take_a_turn_each_and_an_opening_is_the_first_own_step() {
        let mut both = mind(vec![Step::Hear, Step::Hear, say("Now.")], None);
        assert_eq!(next(&mut both, Purpose::Opening, &[]).await[0], Move { exact: true, ..Move::default() });
        let mut history = vec![line(true, "one", false)];
        assert_eq!(next(&mut both, Purpose::Reply, &history).await[0].say, "");
        history.push(line(true, "two", false));
        assert_eq!(next(&mut both, Purpose::Reply, &history).await[0].say, "Now.");
        let mut own = mind(vec![say("I begin."), Step::Hear], None);
        assert_eq!(next(&mut own, Purpose::Opening, &[]).await[0].say, "I begin.");
        let history = [line(false, "I begin.", false), line(true, "fine", false)];
        assert_eq!(next(&mut own, Purpose::Reply, &history).await[0].then, Then::Finish);
    }

    #[tokio::test]
    async fn words_that_cut_in_are_given_before_the_turn_and_said_as_a_turn_when_it_was_too_short() {
        let cut = || TimedBargeIn { after_ms: 1200, say: "Excuse me, one question.".into() };
        let steps = || vec![say("Yes."), Step::BargeIn(cut()), Step::Hear, say("Thanks."), Step::Hear];
        for (own, expect) in
            [(Some(line(false, "Excuse me, one", true)), "Thanks."), (None, "Excuse me, one question.")]
        {
            let mut mind = mind(steps(), None);
            let mut history = vec![line(true, "hi", false)];
            let first = next(&mut mind, Purpose::Reply, &history).await;
            assert_eq!((first[0].say.as_str(), &first[0].cut, first[0].then), ("Yes.", &Some(cut()), Then::Listen));
            history.push(line(false, "Yes.", false));
            history.push(line(true, "well", false));
            history.extend(own.clone());
            history.extend(own.map(|_| line(true, "of course", false)));
            let second = next(&mut mind, Purpose::Reply, &history).await;
            assert_eq!((second[0].say.as_str(), &second[0].cut), (expect, &None));
        }
        let mut first = mind(vec![Step::BargeIn(cut()), Step::Hear, say("Bye."), Step::Hear], None);
        let history = [line(true, "welcome", false), line(false, "Excuse me, one question.", false)];
        let history = [history.as_slice(), &[line(true, "yes", false)]].concat();
        assert_eq!(next(&mut first, Purpose::Reply, &history).await[0].say, "Bye.");
    }

    #[tokio::test]
    async fn a_step_that_is_not_met_ends_the_call_where_that_is_asked_for() {
        let words = |contains: &[&str], excludes: &[&str], exact: Option<&str>| Wanted {
            contains: contains.iter().map(|&phrase| phrase.into()).collect(),
            excludes: excludes.iter().map(|&phrase| phrase.into()).collect(),
            exact: exact.map(str::to_owned),
        };
        for (wanted, heard, ends) in [
            (words(&["press one"], &[], None), "please PRESS one", false),
            (words(&["press one"], &[], None), "please press two", true),
            (words(&["press one"], &[], None), "press oneself", true),
            (words(&[], &["press"], None), "press", true),
            (words(&[], &["press"], None), "pressing", false),
            (words(&[], &[], Some("good bye")), "good bye", false),
            (words(&[], &[], Some("good bye")), "welcome back", true),
            // What was not heard is not what was not said.
            (words(&["press one"], &[], None), "", false),
        ] {
            let playback = vec![Step::Hear, say("Now.")];
            let profile = Profile { playback, wanted: [(0, wanted.clone())].into(), ..Profile::default() };
            let mut mind = PlaybackMind::new(profile, None, Seed(1));
            let then = next(&mut mind, Purpose::Reply, &[line(true, heard, false)]).await[0].then;
            assert_eq!(then == Then::Finish, ends, "{wanted:?} {heard}");
        }
    }

    #[tokio::test]
    async fn a_script_ends_with_its_last_keys_or_wait() {
        let heard = [line(true, "hello", false)];
        for (last, expect) in [
            (Step::Digits("1".into()), Then::Finish),
            (say("Bye."), Then::Listen),
            (Step::SilenceMs(3000), Then::Pause { ms: 3000 }),
        ] {
            let mut mind = mind(vec![Step::Hear, last.clone()], None);
            assert_eq!(next(&mut mind, Purpose::Reply, &heard).await[0].then, expect, "{last:?}");
            if matches!(last, Step::SilenceMs(_)) {
                assert_eq!(next(&mut mind, Purpose::GoOn, &heard).await[0].then, Then::Finish);
            }
        }
    }

    #[tokio::test]
    async fn meanings_are_worded_by_the_model_or_said_as_they_stand() {
        let steps = vec![Step::Mean("Ask for Ann.".into()), Step::Digits("1".into()), say("Bye."), Step::Hear];
        let heard = [line(true, "hello", false)];
        let mut plain = mind(steps.clone(), None);
        let said = next(&mut plain, Purpose::Reply, &heard).await;
        assert_eq!((said[0].say.as_str(), said[0].exact, said[0].dtmf.as_str()), ("Ask for Ann.", false, "1"));
        assert_eq!(said[0].then, Then::Pause { ms: 0 });
        let model = Arc::new(ScriptedModel::new(vec![Reply::says(&["Is Ann there? ", "I need her."])]));
        let mut worded = mind(steps, Some(model));
        let said = next(&mut worded, Purpose::Reply, &heard).await;
        let texts: Vec<&str> = said.iter().map(|part| part.say.as_str()).filter(|text| !text.is_empty()).collect();
        assert_eq!(texts, ["Is Ann there?", "I need her."]);
        let last = said.last().expect("a move");
        assert_eq!((last.more, last.dtmf.as_str(), last.then), (false, "", Then::Pause { ms: 0 }));
        let digits = next(&mut worded, Purpose::GoOn, &[heard[0].clone(), line(false, "Is Ann there?", false)]).await;
        assert_eq!((digits[0].dtmf.as_str(), digits[0].then), ("1", Then::Pause { ms: 0 }));
    }

    #[tokio::test]
    async fn who_worded_the_steps_and_what_came_between_is_known() {
        let fails = || Reply::status(500);
        let words = || Reply::says(&["Is Ann there?"]);
        for (model, replies, expect) in [
            (false, vec![], "template"),
            (true, vec![words(), words()], "scripted"),
            (true, vec![fails(), fails()], "template"),
            (true, vec![words(), fails()], "mixed"),
            (true, vec![fails(), words()], "mixed"),
        ] {
            let model = model.then(|| Arc::new(ScriptedModel::new(replies)) as Arc<dyn LanguageModel>);
            let mut mind = mind(vec![Step::Mean("Ask for Ann.".into()), Step::Hear], model);
            next(&mut mind, Purpose::Reply, &[line(true, "hello", false)]).await;
            // The mind behind the steps is asked.
            next(&mut mind, Purpose::BargeIn, &[line(true, "hello", false)]).await;
            assert_eq!(mind.speaker(), expect);
        }
    }
}
