//! From stretches of speech to turns. A turn is a run of one side's stretches without a turn of the other side between;
//! backchannels and probes are none.

use super::{Conversation, Echo, Span};
use crate::call::Side;
use crate::frame::{PER_MS, Sample};

/// Pauses shorter than this are no pauses.
const JOIN: Sample = 300 * PER_MS;

/// Sounds shorter than this are no speech.
const SHORTEST: Sample = 100 * PER_MS;

/// An agent's sound shorter than this may be a backchannel.
const BACKCHANNEL: Sample = 600 * PER_MS;

/// A sound may be over before the Digital Human has fallen silent because of it.
const STOPS_WITHIN: Sample = 200 * PER_MS;

/// How far what was found may lie from where it truly is (60 ms).
const SEAM: Sample = 60 * PER_MS;

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
        let mut agent = conversation.agent.clone();
        agent.retain(|span| !conversation.echo.is_some_and(|echo| begins_echo(*span, echo, &conversation.dh)));
        let (dh, agent) = (joined(cut(&conversation.dh)), joined(cut(&agent)));
        let probe = |span: &Span| conversation.probes.iter().any(|probe| 2 * probe.span.overlap(*span) > span.length());
        let dh: Vec<Span> = dh.into_iter().filter(|span| !probe(span)).collect();
        let mut asked = dh.clone();
        // What stops the Digital Human is none, also where it was over first.
        let stops =
            |span: &Span| conversation.stopped.iter().any(|at| (span.from..=span.to + STOPS_WITHIN).contains(at));
        let within = |span: &Span| asked.iter().any(|dh| dh.holds(span.from) && dh.to >= span.to);
        let backchannel = |span: &Span| span.length() < BACKCHANNEL && within(span) && !stops(span);
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

/// Whether what was taken for the agent's speech, before the echo was known, is the beginning of an echo: it begins as one of
/// the Digital Human's `own` utterances that comes back, and is over before it.
fn begins_echo(span: Span, echo: Echo, own: &[Span]) -> bool {
    let is_back = |own: &Span| {
        let back = Span { from: own.from + echo.delay, to: own.to + echo.delay };
        (span.from - back.from).abs() <= SEAM && span.to <= back.to + SEAM
    };
    span.to <= echo.known && own.iter().any(is_back)
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

/// Words of the longest filler phrase that `words` begin with. Blanks do not count: recognizers part some languages anywhere.
fn filler(words: &[String], fillers: &[String]) -> Option<usize> {
    let begins = |phrase: &String| {
        let phrase: String = phrase.split_whitespace().map(plain).collect();
        let mut said = String::new();
        let ends = |word: &String| {
            said.push_str(word);
            said == phrase
        };
        let shorter = words.iter().take(phrase.chars().count());
        (!phrase.is_empty()).then(|| shorter.map(ends).position(|is_whole| is_whole).map(|last| last + 1)).flatten()
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
    match word.strip_suffix('.') {
        Some(before) => !abbreviated(before),
        None => word.ends_with(['?', '!', '\u{2026}', '\u{3002}', '\u{ff1f}', '\u{ff01}', '\u{0964}', '\u{061f}']),
    }
}

/// Whether a full stop after `word` belongs to it: `Dr.`, `J.`, but not `42.` or `I.`.
pub fn abbreviated(word: &str) -> bool {
    let single = word.chars().count() == 1 && word != "I" && word.chars().all(char::is_uppercase);
    single || ["Dr", "Mr", "Mrs", "Ms", "St", "Prof", "Sr", "Jr"].contains(&word)
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
