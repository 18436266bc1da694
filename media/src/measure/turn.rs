//! From stretches of speech to turns. A turn is a run of one side's stretches without a turn of the other side between;
//! backchannels and probes are none.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::ops::Bound;

use super::{Conversation, Echo, Span, Word};
use crate::call::Side;
use crate::frame::{PER_MS, Sample};
use crate::sentence::{goes_on, is_closing, is_end_mark};

/// Length below which a pause is ignored.
const JOIN: Sample = 300 * PER_MS;

/// Length below which a sound is no speech.
const SHORTEST: Sample = 100 * PER_MS;

/// Length below which an agent's sound may be a backchannel.
pub(super) const BACKCHANNEL: Sample = 600 * PER_MS;

/// Time after a sound's end within which the Digital Human may fall silent because of it.
const STOPS_WITHIN: Sample = 200 * PER_MS;

/// Largest error of found positions (60 ms).
const SEAM: Sample = 60 * PER_MS;

/// Largest distance of a recognizer's word times from the speech that was found.
const WORD_SLACK: Sample = 250 * PER_MS;

/// Time from the onset of a turn within which its first word is.
const FIRST_WORD: Sample = 1000 * PER_MS;

/// Number of words before a full stop that tell its meaning.
const WORDS_BEFORE: usize = 2;

/// Largest number of letters of a filler.
const FILLER_CHARS: usize = 1000;

/// One turn: at least one stretch of speech (or of digits) of one side.
#[derive(Clone, Debug, PartialEq)]
pub struct SpokenTurn {
    /// Side that has the turn.
    pub side: Side,
    /// Stretches of the turn, in order.
    pub spans: Vec<Span>,
    /// The latest end of each stretch and those before it: digits may be sent while somebody speaks.
    ends: Vec<Sample>,
}

impl SpokenTurn {
    fn new(side: Side, span: Span) -> SpokenTurn {
        SpokenTurn { side, spans: vec![span], ends: vec![span.to] }
    }

    fn push(&mut self, span: Span) {
        self.ends.push(span.to.max(self.to()));
        self.spans.push(span);
    }

    /// Onset of the turn, in samples; 0 without a stretch.
    pub fn from(&self) -> Sample {
        self.spans.first().map_or(0, |span| span.from)
    }

    /// End of the turn, in samples.
    pub fn to(&self) -> Sample {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Span from onset to end.
    pub fn span(&self) -> Span {
        Span { from: self.from(), to: self.to() }
    }

    /// Number of samples in which both speak.
    pub fn overlap(&self, other: &SpokenTurn) -> Sample {
        self.spans.iter().map(|mine| other.near(*mine).iter().map(|theirs| mine.overlap(*theirs)).sum::<Sample>()).sum()
    }

    /// Returns its stretches without those that end before `stretch` begins, or begin after its end.
    fn near(&self, stretch: Span) -> &[Span] {
        let first = self.ends.partition_point(|end| *end <= stretch.from);
        let after = self.spans.partition_point(|span| span.from < stretch.to);
        self.spans.get(first..after).unwrap_or_default()
    }
}

/// Returns the spans that share a sample with `stretch`, by a binary search: `spans` lie apart and in order.
pub(super) fn near(spans: &[Span], stretch: Span) -> &[Span] {
    let first = spans.partition_point(|span| span.to <= stretch.from);
    let after = spans.partition_point(|span| span.from < stretch.to);
    spans.get(first..after).unwrap_or_default()
}

/// Returns the span that holds `at`, by a binary search: `spans` lie apart and in order.
pub(super) fn holding(spans: &[Span], at: Sample) -> Option<&Span> {
    near(spans, Span { from: at, to: at + 1 }).first()
}

/// Returns the turns of a conversation, by onset.
pub fn turns(conversation: &Conversation) -> Vec<SpokenTurn> {
    HeardSpeech::of(conversation).turns
}

/// Joins pauses under 300 ms and then drops what is under 100 ms; the result is in order.
pub(super) fn join_spans(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    let mut joined: Vec<Span> = Vec::new();
    for span in spans {
        match joined.last_mut() {
            Some(last) if span.from - last.to < JOIN => last.to = last.to.max(span.to),
            _ => joined.push(span),
        }
    }
    joined.retain(|span| span.length() >= SHORTEST);
    joined
}

/// Speech of a conversation, joined and cut to its time, and the turns.
pub(super) struct HeardSpeech {
    /// All speech of the Digital Human.
    pub dh: Vec<Span>,
    /// All speech of the agent, backchannels included.
    pub agent: Vec<Span>,
    /// Turns of both sides, in the order of their onsets.
    pub turns: Vec<SpokenTurn>,
}

impl HeardSpeech {
    /// Takes the speech after the start and before the end of a conversation.
    pub(super) fn of(conversation: &Conversation) -> HeardSpeech {
        let cut = |spans: &[Span]| -> Vec<Span> {
            let inside = spans
                .iter()
                .map(|span| Span { from: span.from.max(conversation.start), to: span.to.min(conversation.duration) });
            inside.filter(|span| span.length() > 0).collect()
        };
        let mut agent = conversation.agent.clone();
        agent.retain(|span| !conversation.echo.is_some_and(|echo| begins_echo(*span, echo, &conversation.dh)));
        let (dh, agent) = (join_spans(cut(&conversation.dh)), join_spans(cut(&agent)));
        let probe = |span: &Span| conversation.probes.iter().any(|probe| 2 * probe.span.overlap(*span) > span.length());
        let dh: Vec<Span> = dh.into_iter().filter(|span| !probe(span)).collect();
        // A sound that stops the Digital Human is none, even when it was over first.
        let stops =
            |span: &Span| conversation.stopped.iter().any(|at| (span.from..=span.to + STOPS_WITHIN).contains(at));
        let within = |span: &Span| holding(&dh, span.from).is_some_and(|dh| dh.to >= span.to);
        let backchannel = |span: &Span| span.length() < BACKCHANNEL && within(span) && !stops(span);
        let said: Vec<Span> = agent.iter().copied().filter(|span| !backchannel(span)).collect();
        let mut asked = dh.clone();
        asked.extend(cut(&conversation.digits));
        asked.sort_unstable();
        let mut turns = runs(Side::Dh, &asked, &said);
        turns.extend(runs(Side::Agent, &said, &asked));
        turns.sort_by_key(|turn| (turn.from(), turn.side == Side::Agent));
        HeardSpeech { dh, agent, turns }
    }

    /// Returns the turns of one side.
    pub(super) fn turns_of(&self, side: Side) -> impl Iterator<Item = &SpokenTurn> {
        self.turns.iter().filter(move |turn| turn.side == side)
    }

    /// Returns the agent's turns that answer, each with the Digital Human's turn before it, which was over.
    pub(super) fn answers(&self) -> Vec<(&SpokenTurn, &SpokenTurn)> {
        self.after(Side::Agent)
    }

    /// Returns the Digital Human's turns that follow, each with the agent's turn before it, which was over.
    pub(super) fn replies(&self) -> Vec<(&SpokenTurn, &SpokenTurn)> {
        self.after(Side::Dh)
    }

    fn after(&self, side: Side) -> Vec<(&SpokenTurn, &SpokenTurn)> {
        turns_after(&self.turns, side)
    }
}

/// Returns the turns of `side`, each with the other side's turn before it, where that was over.
pub fn turns_after(turns: &[SpokenTurn], side: Side) -> Vec<(&SpokenTurn, &SpokenTurn)> {
    let mut pairs = Vec::new();
    let mut before: Option<&SpokenTurn> = None;
    for turn in turns {
        match before {
            _ if turn.side != side => before = Some(turn),
            Some(other) if other.to() <= turn.from() => pairs.push((turn, other)),
            _ => {}
        }
    }
    pairs
}

/// Returns the turns of `side` that begin in a turn of the other side, after `spoken` samples of it, and that `counts`
/// takes. Each comes with the turn that it interrupts.
pub(super) fn onsets(
    heard: &HeardSpeech,
    side: Side,
    spoken: Sample,
    counts: impl Fn(&SpokenTurn, &SpokenTurn) -> bool,
) -> Vec<(&SpokenTurn, &SpokenTurn)> {
    let into = |turn: &&SpokenTurn, other: &&SpokenTurn| {
        other.from() + spoken <= turn.from() && turn.from() < other.to() && counts(turn, other)
    };
    let others: Vec<&SpokenTurn> = heard.turns.iter().filter(|other| other.side != side).collect();
    let ends = latest_ends(&others);
    heard
        .turns_of(side)
        .filter_map(|turn| {
            // Those before have ended, those after have not begun.
            let first = ends.partition_point(|end| *end <= turn.from());
            let after = others.partition_point(|other| other.from() < turn.from());
            let interrupted = others.get(first..after)?.iter().find(|other| into(&turn, other))?;
            Some((turn, *interrupted))
        })
        .collect()
}

/// Returns for each turn the latest end of it and of those before it.
pub(super) fn latest_ends(turns: &[&SpokenTurn]) -> Vec<Sample> {
    let latest = |end: &mut Sample, turn: &&SpokenTurn| {
        *end = turn.to().max(*end);
        Some(*end)
    };
    turns.iter().scan(Sample::MIN, latest).collect()
}

/// True when agent speech from before the echo was known is the beginning of an echo. Such speech begins as an echo of
/// one of the Digital Human's `own` utterances does, and is over before it.
fn begins_echo(span: Span, echo: Echo, own: &[Span]) -> bool {
    let is_back = |own: &Span| {
        let back = Span { from: own.from + echo.delay, to: own.to + echo.delay };
        (span.from - back.from).abs() <= SEAM && span.to <= back.to + SEAM
    };
    span.to <= echo.known && own.iter().any(is_back)
}

/// Returns runs of `mine` without anything of `theirs` between: something that ends after the one and begins before the
/// next. Both are in order of onset.
fn runs(side: Side, mine: &[Span], theirs: &[Span]) -> Vec<SpokenTurn> {
    let mut turns: Vec<SpokenTurn> = Vec::new();
    // The end of the last one that begins before the next.
    let (mut others, mut end) = (theirs.iter().peekable(), Sample::MIN);
    for &span in mine {
        while let Some(other) = others.next_if(|other| other.from < span.from) {
            end = end.max(other.to);
        }
        match turns.last_mut() {
            Some(turn) if end <= turn.to() => turn.push(span),
            _ => turns.push(SpokenTurn::new(side, span)),
        }
    }
    turns
}

/// Words of the agent, and the phrases that only fill time.
pub(super) struct Words<'c> {
    words: &'c [Word],
    /// Middle of each word with its index, in order of time.
    middles: Vec<(Sample, usize)>,
    /// Filler phrases without blanks and punctuation.
    fillers: BTreeSet<String>,
    /// Number of letters of the longest filler.
    filler_chars: usize,
    /// True when a word ends a sentence.
    has_sentence_ends: bool,
}

impl<'c> Words<'c> {
    /// Indexes the words and fillers of a conversation.
    pub(super) fn of(conversation: &'c Conversation) -> Words<'c> {
        let words = &conversation.words[..];
        let middle = |(at, word): (usize, &Word)| ((word.span.from + word.span.to) / 2, at);
        let mut middles: Vec<(Sample, usize)> = words.iter().enumerate().map(middle).collect();
        middles.sort_unstable();
        let together = |phrase: &String| phrase.split_whitespace().map(plain).collect::<String>();
        let chars = |phrase: &String| phrase.chars().count();
        let fillers = conversation.fillers.iter().map(together);
        let fillers: BTreeSet<String> = fillers.filter(|phrase| (1..=FILLER_CHARS).contains(&chars(phrase))).collect();
        let filler_chars = fillers.iter().map(chars).max().unwrap_or(0);
        let has_sentence_ends = (0..words.len()).any(|at| ends_sentence(words, at));
        Words { words, middles, fillers, filler_chars, has_sentence_ends }
    }

    /// Returns the words of a turn, in their order.
    fn of_turn(&self, turn: &SpokenTurn) -> Vec<&'c Word> {
        self.within(turn.span())
    }

    /// Returns the words of a stretch, in their order.
    fn within(&self, stretch: Span) -> Vec<&'c Word> {
        let (from, to) = (stretch.from - WORD_SLACK, stretch.to + WORD_SLACK);
        let place = |at: Sample| self.middles.partition_point(|(middle, _)| *middle < at);
        let within = self.middles.get(place(from)..place(to)).unwrap_or_default();
        let mut places: Vec<usize> = within.iter().map(|(_, at)| *at).collect();
        places.sort_unstable();
        places.into_iter().map(|at| &self.words[at]).collect()
    }

    /// Returns the first words of a stretch, at most `count`, in lower case.
    pub(super) fn first(&self, stretch: Span, count: usize) -> Vec<String> {
        let plain = self.within(stretch).into_iter().map(|word| plain(&word.text));
        plain.filter(|word| !word.is_empty()).take(count).collect()
    }

    /// Returns the words of a stretch up to the one that ends last.
    pub(super) fn up_to_last(&self, stretch: Span) -> Vec<&'c Word> {
        let mut words = self.within(stretch);
        let last = (0..words.len()).max_by_key(|at| words[*at].span.to);
        words.truncate(last.map_or(0, |at| at + 1));
        words
    }

    /// True when the words are written with marks of sentences, or the turn that begins at `from` with a capital.
    pub(super) fn tell_sentences(&self, from: Sample) -> bool {
        let is_capital = |word: &&Word| {
            let mut letters = word.text.chars().filter(|c| c.is_alphanumeric());
            letters.next().is_some_and(char::is_uppercase) && letters.next().is_some_and(char::is_lowercase)
        };
        let first = self.within(Span { from, to: from + FIRST_WORD });
        self.has_sentence_ends || first.first().is_some_and(is_capital)
    }

    /// Returns the position from which a turn has meaning: its onset, or the first word after leading fillers. `None`
    /// when its words are not known, or are fillers alone.
    pub(super) fn meaning_from(&self, turn: &SpokenTurn) -> Option<Sample> {
        let words = self.of_turn(turn);
        let plain: Vec<String> = words.iter().map(|word| plain(&word.text)).collect();
        let mut skipped = 0;
        while let Some(length) = self.filler(&plain[skipped..]) {
            skipped += length;
        }
        match words.get(skipped)? {
            _ if skipped == 0 => Some(turn.from()),
            word => Some(word.span.from.max(turn.from())),
        }
    }

    /// Returns the number of words of the longest filler phrase that `words` begin with. Blanks do not count:
    /// recognizers part some languages anywhere.
    fn filler(&self, words: &[String]) -> Option<usize> {
        let (mut said, mut longest) = (String::new(), None);
        for (at, word) in words.iter().take(self.filler_chars).enumerate() {
            said.push_str(word);
            let next = self.fillers.range::<str, _>((Bound::Included(&*said), Bound::Unbounded)).next();
            let Some(phrase) = next.filter(|phrase| phrase.starts_with(&*said)) else { break };
            // A blank word ends no phrase.
            if !word.is_empty() && *phrase == said && at < said.chars().count() {
                longest = Some(at + 1);
            }
        }
        let blank = words.first().is_some_and(String::is_empty).then_some(1);
        longest.or(blank)
    }
}

/// Returns the word in lower case, without punctuation at its ends.
fn plain(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

/// True when a sentence ends with the word at this place among `words`; the next one, if there is one, helps to tell.
pub(super) fn ends_sentence<W: Borrow<Word>>(words: &[W], at: usize) -> bool {
    let text = |word: &W| word.borrow().text.trim().to_owned();
    let Some(word) = words.get(at) else { return false };
    let word = text(word);
    let word = word.trim_end_matches(is_closing);
    let Some(word) = word.strip_suffix('.') else { return word.ends_with(is_end_mark) };
    let mut before: Vec<String> = words[at.saturating_sub(WORDS_BEFORE)..at].iter().map(text).collect();
    before.push(word.to_owned());
    let next = words.get(at + 1).map(|next| text(next) + " ").unwrap_or_default();
    goes_on(&before.join(" "), &next) != Some(true)
}

/// True when a sentence is complete with the last of these words. Three dots and a dash tell that it was broken off.
pub(super) fn complete_sentence<W: Borrow<Word>>(words: &[W]) -> bool {
    let Some(at) = words.len().checked_sub(1) else { return false };
    let word = words[at].borrow().text.trim().trim_end_matches(is_closing);
    ends_sentence(words, at) && !word.ends_with("..") && !word.ends_with('\u{2026}')
}

/// Returns the pauses inside agent turns between the last word of a sentence and the first of the next.
pub(super) fn sentence_pauses(heard: &HeardSpeech, words: &Words<'_>) -> Vec<Sample> {
    let mut pauses = Vec::new();
    for turn in heard.turns_of(Side::Agent) {
        let words = words.of_turn(turn);
        let ends = (1..words.len()).filter(|next| ends_sentence(&words, next - 1));
        pauses.extend(ends.map(|next| (words[next].span.from - words[next - 1].span.to).max(0)));
    }
    pauses
}
