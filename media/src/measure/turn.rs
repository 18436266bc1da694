//! From stretches of speech to turns. A turn is a run of one side's stretches without a turn of the other side between;
//! backchannels and probes are none.

use super::{Conversation, Span};
use crate::call::Side;
use crate::frame::{PER_MS, Sample};

/// Pauses shorter than this are no pauses.
const JOIN: Sample = 300 * PER_MS;

/// Sounds shorter than this are no speech.
const SHORTEST: Sample = 100 * PER_MS;

/// An agent's sound shorter than this may be a backchannel.
const BACKCHANNEL: Sample = 600 * PER_MS;

/// How far a recognizer's word times may lie outside of the speech that was found.
const WORD_SLACK: Sample = 250 * PER_MS;

/// One turn: at least one stretch of speech (or of digits) of one side.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// Whose.
    pub side: Side,
    /// Its stretches, in order.
    pub spans: Vec<Span>,
}

impl Turn {
    /// Onset.
    pub fn from(&self) -> Sample {
        self.spans.first().map_or(0, |span| span.from)
    }

    /// End.
    pub fn to(&self) -> Sample {
        self.spans.iter().map(|span| span.to).max().unwrap_or(0)
    }

    /// From onset to end.
    pub fn span(&self) -> Span {
        Span { from: self.from(), to: self.to() }
    }

    /// Samples in which both speak.
    pub fn overlap(&self, other: &Turn) -> Sample {
        self.spans.iter().map(|mine| other.spans.iter().map(|theirs| mine.overlap(*theirs)).sum::<Sample>()).sum()
    }
}

/// The turns of a conversation, by onset.
pub fn turns(conversation: &Conversation) -> Vec<Turn> {
    Heard::of(conversation).turns
}

/// Joins pauses under 300 ms and then drops what is under 100 ms; the result is in order.
pub fn joined(mut spans: Vec<Span>) -> Vec<Span> {
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

/// A conversation as it counts: speech joined and cut to its time, and the turns.
pub struct Heard {
    /// All speech of the Digital Human.
    pub dh: Vec<Span>,
    /// All speech of the agent, backchannels included.
    pub agent: Vec<Span>,
    /// By onset.
    pub turns: Vec<Turn>,
}

impl Heard {
    /// Takes in what is after the start and before the end.
    pub fn of(conversation: &Conversation) -> Heard {
        let cut = |spans: &[Span]| -> Vec<Span> {
            let inside = spans
                .iter()
                .map(|span| Span { from: span.from.max(conversation.start), to: span.to.min(conversation.duration) });
            inside.filter(|span| span.length() > 0).collect()
        };
        let (dh, agent) = (joined(cut(&conversation.dh)), joined(cut(&conversation.agent)));
        let probe = |span: &Span| conversation.probes.iter().any(|probe| 2 * probe.span.overlap(*span) > span.length());
        let dh: Vec<Span> = dh.into_iter().filter(|span| !probe(span)).collect();
        let mut asked = dh.clone();
        let backchannel =
            |span: &Span| span.length() < BACKCHANNEL && asked.iter().any(|dh| dh.holds(span.from) && dh.to >= span.to);
        let said: Vec<Span> = agent.iter().copied().filter(|span| !backchannel(span)).collect();
        asked.extend(cut(&conversation.digits));
        asked.sort_unstable();
        let mut turns = runs(Side::Dh, &asked, &said);
        turns.extend(runs(Side::Agent, &said, &asked));
        turns.sort_by_key(|turn| (turn.from(), turn.side == Side::Agent));
        Heard { dh, agent, turns }
    }

    /// The turns of one side.
    pub fn turns_of(&self, side: Side) -> impl Iterator<Item = &Turn> {
        self.turns.iter().filter(move |turn| turn.side == side)
    }

    /// The agent's turns that answer, each with the Digital Human's turn before it, which was over.
    pub fn answers(&self) -> Vec<(&Turn, &Turn)> {
        self.after(Side::Agent)
    }

    /// The Digital Human's turns that follow, each with the agent's turn before it, which was over.
    pub fn replies(&self) -> Vec<(&Turn, &Turn)> {
        self.after(Side::Dh)
    }

    fn after(&self, side: Side) -> Vec<(&Turn, &Turn)> {
        let mut pairs = Vec::new();
        let mut before: Option<&Turn> = None;
        for turn in &self.turns {
            match before {
                _ if turn.side != side => before = Some(turn),
                Some(other) if other.to() <= turn.from() => pairs.push((turn, other)),
                _ => {}
            }
        }
        pairs
    }
}

/// Runs of `mine` without anything of `theirs` between: something that ends after the one and begins before the next.
fn runs(side: Side, mine: &[Span], theirs: &[Span]) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for &span in mine {
        match turns.last_mut() {
            Some(turn) if !theirs.iter().any(|other| other.to > turn.to() && other.from < span.from) => {
                turn.spans.push(span);
            }
            _ => turns.push(Turn { side, spans: vec![span] }),
        }
    }
    turns
}

/// Where a turn begins to say something: its onset, or the first word after leading fillers. `None` when its words are not
/// known, or are fillers alone.
pub fn meaning_from(turn: &Turn, conversation: &Conversation) -> Option<Sample> {
    let words: Vec<&super::Word> = words_of(turn, conversation).collect();
    let plain: Vec<String> = words.iter().map(|word| plain(&word.text)).collect();
    let mut skipped = 0;
    while let Some(length) = filler(&plain[skipped..], &conversation.fillers) {
        skipped += length;
    }
    match words.get(skipped)? {
        _ if skipped == 0 => Some(turn.from()),
        word => Some(word.span.from.max(turn.from())),
    }
}

/// Words of the longest filler phrase that `words` begin with.
fn filler(words: &[String], fillers: &[String]) -> Option<usize> {
    let begins = |phrase: &String| {
        let phrase: Vec<String> = phrase.split_whitespace().map(plain).filter(|word| !word.is_empty()).collect();
        (!phrase.is_empty() && words.starts_with(&phrase)).then_some(phrase.len())
    };
    let blank = words.first().is_some_and(String::is_empty).then_some(1);
    fillers.iter().filter_map(begins).max().or(blank)
}

/// Lower case, without punctuation at its ends.
fn plain(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

fn words_of<'a>(turn: &'a Turn, conversation: &'a Conversation) -> impl Iterator<Item = &'a super::Word> {
    let near = Span { from: turn.from() - WORD_SLACK, to: turn.to() + WORD_SLACK };
    conversation.words.iter().filter(move |word| near.holds((word.span.from + word.span.to) / 2))
}

/// True when a sentence ends with this word.
pub fn ends_sentence(word: &str) -> bool {
    let word = word.trim_end_matches(['"', '\'', ')', '\u{201d}', '\u{2019}']);
    word.ends_with(['.', '?', '!', '\u{2026}', '\u{3002}', '\u{ff1f}', '\u{ff01}', '\u{0964}', '\u{061f}'])
}

/// Pauses inside agent turns between the last word of a sentence and the first of the next.
pub fn sentence_pauses(heard: &Heard, conversation: &Conversation) -> Vec<Sample> {
    let mut pauses = Vec::new();
    for turn in heard.turns_of(Side::Agent) {
        let words: Vec<&super::Word> = words_of(turn, conversation).collect();
        let ends = words.windows(2).filter(|pair| ends_sentence(&pair[0].text));
        pauses.extend(ends.map(|pair| (pair[1].span.from - pair[0].span.to).max(0)));
    }
    pauses
}
